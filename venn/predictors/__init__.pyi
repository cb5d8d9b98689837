"""The public names and the modules that have them: what a type checker reads, and what is imported at first use."""

from .averaged import Averaged as Averaged
from .balanced import Balanced as Balanced
from .blocks import ManyClassIntervals as ManyClassIntervals
from .blocks import ManyForecasts as ManyForecasts
from .blocks import ManyMultiprobabilities as ManyMultiprobabilities
from .blocks import ManyPredictionSets as ManyPredictionSets
from .conformal import Conformal as Conformal
from .cross import CrossVenn as CrossVenn
from .hand_over import HandOver as HandOver
from .inductive import InductiveVenn as InductiveVenn
from .inductive_abers import InductiveOneVsOneAbers as InductiveOneVsOneAbers
from .inductive_abers import InductiveVennAbers as InductiveVennAbers
from .inductive_conformal import InductiveConformal as InductiveConformal
from .learning import Predictor as Predictor
from .protected import BrierLoss as BrierLoss
from .protected import LogLoss as LogLoss
from .protected import Protected as Protected
from .refitted import Refitted as Refitted
from .restarting import Restarting as Restarting
from .scaling import Scaler as Scaler
from .score_sources import CrossFittedScores as CrossFittedScores
from .score_sources import DeletedScores as DeletedScores
from .score_sources import HeldOutScores as HeldOutScores
from .score_sources import TrainingScores as TrainingScores
from .transductive import TransductiveVenn as TransductiveVenn
from .transductive_abers import TransductiveVennAbers as TransductiveVennAbers
