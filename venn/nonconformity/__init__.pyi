"""The public names and the modules that have them: what a type checker reads, and what is imported at first use."""

from .multipliers import Multiplier as Multiplier
from .scores import ByScores as ByScores
from .scores import DistanceRatio as DistanceRatio
from .scores import Margin as Margin
