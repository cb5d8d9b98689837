"""The public names and the modules that have them: what a type checker reads, and what is imported at first use."""

from .collection import calibrate as calibrate
from .collection import score as score
from .collection import score_block as score_block
from .keyed import Shards as Shards
from .shard import KeyedEvent as KeyedEvent
from .shard import Shard as Shard
from .shard import key_of as key_of
