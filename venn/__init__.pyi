"""The public names and the modules that have them: what a type checker reads, and what is imported at first use."""

from . import adapters as adapters
from . import batch as batch
from . import machines as machines
from . import maps as maps
from . import monitors as monitors
from . import nonconformity as nonconformity
from . import online as online
from . import prediction as prediction
from . import predictors as predictors
from . import priors as priors
from . import scale as scale
from . import schedules as schedules
from . import taxonomies as taxonomies
from .adapters import ConformalClassifier as ConformalClassifier
from .adapters import RiverClassifier as RiverClassifier
from .adapters import VennAbersCalibrator as VennAbersCalibrator
from .adapters import VennClassifier as VennClassifier
from .machines import RBF as RBF
from .machines import FrozenScorer as FrozenScorer
from .machines import KernelLogisticRegression as KernelLogisticRegression
from .machines import LeastSquaresSVM as LeastSquaresSVM
from .machines import Linear as Linear
from .machines import OneVsAllSVM as OneVsAllSVM
from .machines import SlidingWindow as SlidingWindow
from .machines import tune as tune
from .monitors import Monitor as Monitor
from .online import Online as Online
from .online import Panel as Panel
from .online import Record as Record
from .online import load as load
from .online import replay as replay
from .online import save as save
from .prediction import Forecast as Forecast
from .prediction import Multiprobability as Multiprobability
from .prediction import PredictionSet as PredictionSet
from .predictors import Conformal as Conformal
from .predictors import InductiveConformal as InductiveConformal
from .predictors import InductiveVenn as InductiveVenn
from .predictors import InductiveVennAbers as InductiveVennAbers
from .predictors import Scaler as Scaler
from .predictors import TransductiveVenn as TransductiveVenn
from .predictors import TransductiveVennAbers as TransductiveVennAbers
from .taxonomies import Argmax as Argmax
from .taxonomies import Deleted as Deleted

__version__: str
