"""The public names and the modules that have them: what a type checker reads, and what is imported at first use."""

from .bank import Bank as Bank
from .bank import Member as Member
from .base import BaseHypotheses as BaseHypotheses
from .base import BaseMachine as BaseMachine
from .distances import NeighbourDistances as NeighbourDistances
from .frozen import FrozenScorer as FrozenScorer
from .kernels import RBF as RBF
from .kernels import Linear as Linear
from .kernels import MultiscaleRBF as MultiscaleRBF
from .kernels import Polynomial as Polynomial
from .least_squares import LeastSquaresSVM as LeastSquaresSVM
from .logistic import KernelLogisticRegression as KernelLogisticRegression
from .machine import Bag as Bag
from .machine import NotConverged as NotConverged
from .machine import ScoreTable as ScoreTable
from .mixture import Mixture as Mixture
from .objects import NearestCentroid as NearestCentroid
from .objects import NearestNeighbours as NearestNeighbours
from .one_vs_all import OneVsAllSVM as OneVsAllSVM
from .one_vs_one import OneVsOneSVM as OneVsOneSVM
from .scaled import Scaled as Scaled
from .scaled_bank import ScaledBank as ScaledBank
from .store import ScaleWarning as ScaleWarning
from .tuning import Tuning as Tuning
from .tuning import tune as tune
from .window import SlidingWindow as SlidingWindow
