"""The public names and the modules that have them: what a type checker reads, and what is imported at first use."""

from .abers import BrierMerge as BrierMerge
from .abers import LogMerge as LogMerge
from .abers import OneVsAllAbers as OneVsAllAbers
from .abers import VennAbers as VennAbers
from .abers import cross_venn_abers as cross_venn_abers
from .abers import venn_abers as venn_abers
from .contract import BinaryMap as BinaryMap
from .fits import BetaCalibration as BetaCalibration
from .fits import Binning as Binning
from .fits import EqualFrequency as EqualFrequency
from .fits import EqualWidth as EqualWidth
from .fits import Isotonic as Isotonic
from .fits import OneVsAll as OneVsAll
from .fits import Platt as Platt
from .fits import Temperature as Temperature
