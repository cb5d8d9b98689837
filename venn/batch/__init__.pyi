"""The public names and the modules that have them: what a type checker reads, and what is imported at first use."""

from .bootstrap import BootstrapSVC as BootstrapSVC
from .constrained import ClassWeightScan as ClassWeightScan
from .constrained import ConstrainedSVC as ConstrainedSVC
from .constrained import Infeasible as Infeasible
from .constrained import Scip as Scip
from .pairwise import PairwiseSVC as PairwiseSVC
from .posterior import PosteriorSVC as PosteriorSVC
