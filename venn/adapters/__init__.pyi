"""The public names and the modules that have them: what a type checker reads, and what is imported at first use."""

from .calibrator import VennAbersCalibrator as VennAbersCalibrator
from .checks import CoverageScorer as CoverageScorer
from .checks import CRPSScorer as CRPSScorer
from .checks import IntervalScorer as IntervalScorer
from .classifiers import ConformalClassifier as ConformalClassifier
from .classifiers import VennClassifier as VennClassifier
from .cross_fitting import CrossVennAbers as CrossVennAbers
from .forecaster import ForecasterClassifier as ForecasterClassifier
from .regressor import ConformalRegressor as ConformalRegressor
from .river import RiverClassifier as RiverClassifier
from .river_models import FromRiver as FromRiver
from .river_models import RegressorFromRiver as RegressorFromRiver
from .river_models import RiverRegressor as RiverRegressor
from .river_series import RiverForecaster as RiverForecaster
from .svc import ProbabilitySVC as ProbabilitySVC
