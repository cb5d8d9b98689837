"""The public names and the modules that have them: what a type checker reads, and what is imported at first use."""

from .calibrator import VennAbersCalibrator as VennAbersCalibrator
from .classifiers import ConformalClassifier as ConformalClassifier
from .classifiers import VennClassifier as VennClassifier
from .cross_fitting import CrossVennAbers as CrossVennAbers
from .forecaster import ForecasterClassifier as ForecasterClassifier
from .regressor import ConformalRegressor as ConformalRegressor
from .river import RiverClassifier as RiverClassifier
from .river_model import FromRiver as FromRiver
from .river_regressor import RegressorFromRiver as RegressorFromRiver
from .river_regressor import RiverRegressor as RiverRegressor
from .scoring import CoverageScorer as CoverageScorer
from .scoring import CRPSScorer as CRPSScorer
from .scoring import IntervalScorer as IntervalScorer
from .svc import ProbabilitySVC as ProbabilitySVC
