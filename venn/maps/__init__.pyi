"""The public names and the modules that have them: what a type checker reads, and what is imported at first use."""

from .abers import VennAbers as VennAbers
from .abers import venn_abers as venn_abers
from .beta_calibration import BetaCalibration as BetaCalibration
from .binning import Binning as Binning
from .binning import EqualFrequency as EqualFrequency
from .binning import EqualWidth as EqualWidth
from .contract import BinaryMap as BinaryMap
from .cross_abers import cross_venn_abers as cross_venn_abers
from .isotonic import Isotonic as Isotonic
from .merges import BrierMerge as BrierMerge
from .merges import LogMerge as LogMerge
from .one_vs_all import OneVsAll as OneVsAll
from .platt import Platt as Platt
from .temperature import Temperature as Temperature
