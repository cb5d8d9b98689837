"""The public names and the modules that have them: what a type checker reads, and what is imported at first use."""

from .abers import VennAbers as VennAbers
from .abers import venn_abers as venn_abers
from .abers_of_classes import OneVsAllAbers as OneVsAllAbers
from .abers_of_classes import cross_venn_abers as cross_venn_abers
from .beta import Beta2 as Beta2
from .beta import BetaScaling as BetaScaling
from .beta_calibration import BetaCalibration as BetaCalibration
from .classes import OneVsAll as OneVsAll
from .classes import Temperature as Temperature
from .merges import BrierMerge as BrierMerge
from .merges import LogMerge as LogMerge
from .sigmoids import Platt as Platt
from .sigmoids import Sigma01 as Sigma01
from .sigmoids import SigmaPP as SigmaPP
from .sigmoids import Softmax as Softmax
from .sollich import Sollich as Sollich
from .steps import Binning as Binning
from .steps import EqualFrequency as EqualFrequency
from .steps import EqualWidth as EqualWidth
from .steps import Isotonic as Isotonic
