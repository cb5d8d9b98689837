"""Whether a run in memory is as its journal says, or what has broken it."""

from __future__ import annotations

from types import TracebackType

from venn.online.journal import Journal, JournalError
from venn.online.run import REFUSALS

INTERRUPTED, UNWRITTEN, CLOSED = "was interrupted", "could not write its journal", "is closed"

# Classes, as what `contextmanager` makes costs a twentieth of a quick step.


class Soundness:
    """Says what has broken a run; around an event it keeps memory and journal in agreement.

    An event counts wholly or not at all, or the run breaks.

    Parameters
    ----------
    journal : Journal, optional

    Attributes
    ----------
    broken : str or None
        What happened to the run, so that it can go on from its journal only.
    trying : Trying
        Around what can be refused, before an event.
    """

    def __init__(self, journal: Journal | None) -> None:
        self.broken: str | None = None
        self.trying = Trying(self)
        self._journal = journal
        self._inside = False

    def __enter__(self) -> None:
        self.broken = INTERRUPTED
        self._inside = self._journal is not None and self._journal.within

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if error is None or isinstance(error, ValueError):  # refused before anything was written
            self.broken = None
        elif isinstance(error, JournalError):
            # In a transaction: earlier events in it are learned, but will not be written.
            self.broken = UNWRITTEN if self._inside else None


class Trying:
    """Lets refusals pass; after any other exception, such as an interrupt, the machines' state is unknown."""

    def __init__(self, sound: Soundness) -> None:
        self._sound = sound

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if error is not None and not isinstance(error, REFUSALS):
            self._sound.broken = INTERRUPTED
