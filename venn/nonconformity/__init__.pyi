"""The public names and the modules that have them: what a type checker reads, and what is imported at first use."""

from .own import OwnScore as OwnScore
from .own import Share as Share
from .probabilities import APS as APS
from .probabilities import LAC as LAC
from .probabilities import RAPS as RAPS
from .scores import Margin as Margin
from .scores import ScoreMeasure as ScoreMeasure
