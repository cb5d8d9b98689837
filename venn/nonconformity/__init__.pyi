"""The public names and the modules that have them: what a type checker reads, and what is imported at first use."""

from .own import OwnScore as OwnScore
from .own import Share as Share
from .scores import APS as APS
from .scores import LAC as LAC
from .scores import RAPS as RAPS
from .scores import SAPS as SAPS
from .scores import Margin as Margin
from .scores import Multiplier as Multiplier
from .scores import ScoreMeasure as ScoreMeasure
from .scores import TopK as TopK
