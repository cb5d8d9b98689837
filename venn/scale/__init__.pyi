"""The public names and the modules that have them: what a type checker reads, and what is imported at first use."""

from .collection import calibrate as calibrate
from .collection import score as score
from .collection import score_block as score_block
from .keyed import KeyedEvent as KeyedEvent
from .keyed import Shard as Shard
from .keyed import Shards as Shards
from .keyed import key_of as key_of
