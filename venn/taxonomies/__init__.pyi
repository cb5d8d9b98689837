"""The public names and the modules that have them: what a type checker reads, and what is imported at first use."""

from .groups import Grouped as Grouped
from .scores import AdaptiveMarginBins as AdaptiveMarginBins
from .scores import Argmax as Argmax
from .scores import ByScores as ByScores
from .scores import Gap as Gap
from .scores import LeaveOneOut as LeaveOneOut
from .scores import MarginBins as MarginBins
from .scores import RunnerUp as RunnerUp
from .scores import ScoreBins as ScoreBins
from .scores import Threshold as Threshold
from .scores import TopScoreBins as TopScoreBins
from .scores import TopTwo as TopTwo
