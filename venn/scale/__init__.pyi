"""The public names and the modules that have them: what a type checker reads, and what is imported at first use."""

from .collection import calibrate as calibrate
from .collection import score as score
from .collection import score_block as score_block
from .fleet import Fleet as Fleet
from .key_changes import FleetVerdict as FleetVerdict
from .key_changes import KeyChange as KeyChange
from .key_changes import fleet_verdict as fleet_verdict
from .partitions import KeyedEvent as KeyedEvent
from .partitions import follow as follow
from .partitions import follow_partitions as follow_partitions
from .partitions import key_of as key_of
from .partitions import partition_of as partition_of
