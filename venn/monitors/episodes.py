"""Episodes: one object for each change, from its first alarm to its end, whichever watchers saw it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from venn.monitors.notebook import table
from venn.monitors.verdict import LONGEST, OF_OBJECTS, Moment
from venn.monitors.watching import ANOTHER, LASTED, QUESTIONS, Case, Watching

NOTHING_DONE, ANEW = "nothing", "it began anew after "


@dataclass(frozen=True)
class Sighting:
    """A change as one watcher sees it, in questions."""

    watcher: str
    sees: str  #: what it watches: "objects", "examples", "predictions"
    case: Case
    lower: int  #: number of the first of the likely questions
    first: Moment
    rang: Moment
    last: Moment
    anew: Moment | None
    ended: Moment | None
    turn: tuple[bool, int]  #: which of those that rang between the same two questions came first

    @property
    def order(self) -> tuple[Any, ...]:
        """By when it rang: what rings later never comes before it, or an episode would seem to begin again."""
        return self.rang.when, self.turn, self.watcher, self.case.part


@dataclass(frozen=True)
class Episode:
    """One change, from its first alarm to its end: what changed, when, what rang, what was done, how it ended.

    `str` gives one sentence that says what to do first.

    Attributes
    ----------
    number : int
        From 1 on, in the order of first alarms.
    first : Moment
        The first question after the change: an estimate. A `Moment` has the `number`, the `time` and the owner's `id`.
    rang, last : Moment
        The questions of its first and of its latest alarm.
    watchers : tuple of str
        Whose alarms rang, in this order: predictors, "objects", "classes".
    kind : str
        What has changed, in words; empty if that is not known.
    columns, classes : tuple of str
        That are named.
    reason : str
        The numbers that the first alarm rests on.
    alarms : int
    done : str
        What was done about it: "nothing", or who began anew after which question.
    ended : Moment or None
        When it ended; None: it lasts.
    how : str
        How it ended.
    claims : bool
        Whether what a predictor claims is broken; else only objects or classes have changed.
    anew : Moment or None
        The question after which a predictor began anew because of it.

    Examples
    --------
    >>> one = Episode(1, Moment(901), Moment(950), Moment(950), ("objects",), "column 'heat' (middle 19 to 67)",
    ...               ("heat",), (), "the odds are 120 to 1", 1)
    >>> print(one)
    Look at the source since question 901: objects are not like before. Column 'heat' (middle 19 to 67).
    """

    number: int
    first: Moment
    rang: Moment
    last: Moment
    watchers: tuple[str, ...]
    kind: str
    columns: tuple[str, ...]
    classes: tuple[str, ...]
    reason: str
    alarms: int
    done: str = NOTHING_DONE
    ended: Moment | None = None
    how: str = ""
    claims: bool = False
    anew: Moment | None = None

    @property
    def lasts(self) -> bool:
        """Whether it has not ended."""
        return self.ended is None

    def __str__(self) -> str:
        what = "Do not rely on it" if self.claims else "Look at the source"
        told = f"{what} since {self.first}: {'what it claims broke' if self.claims else 'objects are not like before'}."
        if self.ended is not None:
            told = f"Over at {self.ended}: the change since {self.first}; {self.how}."
        elif self.done != NOTHING_DONE:
            after = self.done.removeprefix(ANEW)
            told = f"Rely on it only after {after}, where it began anew. Changed since {self.first}."
        for part in self.kind.split("; ") if self.kind else ():
            more = f" {part[:1].upper()}{part[1:]}."
            told += more if len(f"{told}{more}".split()) <= LONGEST else ""
        return told

    @property
    def row(self) -> dict[str, Any]:
        """All of it in words: a line of a table."""
        return {
            "since about": self.first, "first alarm": self.rang, "rang": ", ".join(self.watchers),
            "what": self.kind or self.reason, "done": self.done,
            "ended": "it lasts" if self.ended is None else f"{self.ended}: {self.how}", "alarms": self.alarms,
        }  # fmt: skip

    def _repr_html_(self) -> str:
        """Return its sentence and all of it for notebooks."""
        return table(str(self), {f"{self.number}": self.row})

    @property
    def known(self) -> str:
        """What has changed, in one sentence of at most 25 words."""
        told = f"Known of the change since {self.first}:"
        for part in self.kind.split("; "):
            told += f" {part}." if len(f"{told} {part}".split()) <= LONGEST else ""
        return told.removesuffix(":")

    def plain(self) -> dict[str, Any]:
        """Return all of it as JSON, with its sentence."""
        names = ("watchers", "columns", "classes")
        lists = {name: list(getattr(self, name)) for name in names}
        return asdict(self) | lists | {"lasts": self.lasts, "sentence": str(self)}

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> Episode:
        """Return the episode of which `plain` is the JSON."""
        import msgspec

        return msgspec.convert(plain, cls)


class Episodes(tuple[Episode, ...]):
    """Episodes in the order of their first alarms.

    Examples
    --------
    >>> Episodes(()).frame().empty
    True
    """

    __slots__ = ()

    def _repr_html_(self) -> str:
        """Return a table for notebooks, a line for each."""
        told = "no change" if not self else f"{len(self)} change{'s' * (len(self) > 1)}"
        return table(told, {f"{one.number}": one.row for one in self})

    def frame(self) -> Any:
        """Return them as a pandas frame, one row each."""
        import pandas

        flat = []
        for one in self:
            row = one.plain()
            for name in ("first", "rang", "last", "anew", "ended"):
                at = row.pop(name)
                row |= {f"{name}_{part}": None if at is None else at[part] for part in ("number", "time", "id")}
            flat.append(row)
        return pandas.DataFrame(flat)


#: Maps a watcher's name, what its steps count, and a step to a question.
Placing = Callable[[str, str, int], Moment]


def numbered(watcher: str, counts: str, step: int) -> Moment:
    """Return the question of a step where questions and answers are one, as in a model by itself."""
    return Moment(step)


def episodes_of(watchers: Mapping[str, Any], place: Placing = numbered) -> Episodes:
    """Return the episodes that watchers have seen: alarms of one change make one episode, whichever watcher rang.

    A watcher's later change begins another episode, and so does one that began, at every likely step, 150 questions and
    more after all the others of the episode that lasts first rang; or that rings for a label, late, of a question from
    before all of that began. All else that rings while it lasts goes with it.

    Parameters
    ----------
    watchers : mapping of str to Watching
        Others are left out.
    place : callable, optional
        Says which question a step of a watcher is.
    """
    found: list[list[Sighting]] = []
    for one in sorted(_sightings(watchers, place), key=lambda each: each.order):
        now = found[-1] if found else []
        own = any((one.watcher, one.case.part) == (other.watcher, other.case.part) for other in now)
        over = all(other.ended is not None and other.ended.when <= one.rang.when for other in now)
        later = bool(now) and one.lower > max(other.rang.number for other in now) + LASTED
        earlier = bool(now) and one.rang.number < min(other.lower for other in now)
        if not now or own or over or later or earlier:
            found.append([one])
        else:
            now.append(one)
    after = [each[0].rang for each in found[1:]]
    return Episodes(_episode(number, each, after[number - 1 : number]) for number, each in enumerate(found, 1))


def _sightings(watchers: Mapping[str, Any], place: Placing) -> Iterable[Sighting]:
    for name, watcher in watchers.items():
        for case in watcher.cases if isinstance(watcher, Watching) else ():
            counts = watcher.counts(case.part)

            def at(step: int, name: str = name, counts: str = counts) -> Moment:
                return place(name, counts, step)

            yield Sighting(
                name, watcher.sees, case, at(case.change.lower).number, at(case.change.step), at(case.first),
                at(case.last),
                at(case.anew) if case.anew else None, at(case.ended) if case.ended else None,
                (counts != QUESTIONS, case.first),
            )  # fmt: skip


def _episode(number: int, seen: list[Sighting], after: list[Moment]) -> Episode:
    """Return an episode made of sightings, in the order of first alarms; `after` are the moments of later alarms."""
    best = min(seen, key=lambda one: (one.sees == "objects" and one.case.change.earlier, one.rang.when))
    kinds = list(dict.fromkeys(one.case.kind for one in seen if one.case.kind))
    began = [one.anew for one in seen if one.anew is not None and one.sees == "predictions"]
    ends = [one.ended for one in seen]
    ended = max(ends, key=lambda one: one.when) if all(one is not None for one in ends) else None  # type: ignore
    how = ""
    if ended is not None:
        how = next((one.case.how for one in seen if one.ended == ended), "")
    if after and after[0].number >= best.lower and (ended is None or ended.when >= after[0].when):
        ended, how = after[0], ANOTHER
    return Episode(
        number, best.first, seen[0].rang, max((one.last for one in seen), key=lambda one: one.when),
        tuple(dict.fromkeys(one.watcher for one in seen)), "; ".join(kinds),
        tuple(dict.fromkeys(name for one in seen for name in one.case.columns)),
        tuple(dict.fromkeys(name for one in seen for name in one.case.classes)),
        seen[0].case.reason, sum(one.case.alarms for one in seen),
        f"{ANEW}{began[0].heard}" if began else NOTHING_DONE, ended, how,
        any(one.sees not in (OF_OBJECTS, "examples") for one in seen), began[0] if began else None,
    )  # fmt: skip
