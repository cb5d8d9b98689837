"""Which kind of change: whether the classes come in other shares, or their objects look different."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from math import isnan, nan
from operator import attrgetter
from typing import Any

import numpy as np

from venn._compiled.strangers import watch_examples
from venn.labels import Classes, label_space
from venn.monitors.alarms import Alarm, logs_of, odds, pair_of, shares
from venn.monitors.change_point import MEMORY, ChangePoint, change_of_counts
from venn.monitors.column_drift import has_distances
from venn.monitors.drift import ObjectRuler, none_or_two, ranking_pattern
from venn.monitors.evidence import Exchangeability, against
from venn.monitors.martingales import CellJumper, Martingale
from venn.monitors.naming import MOST, Naming, Ties, rarity
from venn.monitors.rankings import AmongAll, Ranking, is_row, plain
from venn.monitors.verdict import CLAIMED, DOUBTFUL, OF_CLASSES, Verdict
from venn.monitors.watching import LASTED, Case, Watching
from venn.parameters import Parameters, above_one, fraction, integer
from venn.prediction import Floats, Integers, Label
from venn.saved import array, code, component, each, own, param, restored_twin, state, twin
from venn.turns import TakesTurns, changes

PARTS = LABELS, WITHIN = "labels", "objects within classes"
WORDS = {
    LABELS: "the ranks of labels by how often they come (p-values)",
    WITHIN: "the ranks of objects within their classes (p-values)",
}
NAMED = "Classes"
SHOWN = 3  # classes whose shares are told
PLAIN = 4.0  # square of the number of standard deviations from which a share has moved
FAR = 2**62


@component
class OfExamples(Parameters):
    """A source of p-values that `ClassDrift` makes itself, under their name."""

    of_event = False

    name: str = param()

    @property
    def words(self) -> str:
        """What the p-values are, for sentences."""
        return WORDS[self.name]

    def suits(self, kind: str, guaranteed: str) -> bool:
        """Return False: they do not belong to predictions."""
        return False

    def read(self, steps: Any, tau: Any) -> tuple[Any, None]:
        """Return the p-value of this name."""
        return steps[self.name], None


def _labels(name: str, value: Any) -> tuple[Label, ...]:
    """Return labels, as a space of classes checks them; or say what is wrong with them."""
    found = (value if isinstance(value, Classes) else Classes(value)).labels
    if len(found) > MOST:
        raise ValueError(f"{name} must be at most {MOST}, got {len(found)}")
    return found


def _rankings(drift: ClassDrift) -> tuple[Ranking, ...]:
    return tuple(drift.ranking.fresh() for _ in drift.classes)


def _evidence(name: str, drift: ClassDrift) -> Exchangeability:
    martingale: Martingale = CellJumper() if name == LABELS else drift.ranking.martingale
    return Exchangeability(OfExamples(name), martingale, drift.share, 2 * drift.run_length)


def _exact(name: str, ranking: Any) -> Ranking:
    """Check that a ranking's p-values are uniform: `Naming` bets on small and on large ones."""
    pattern = ranking_pattern(name, ranking)
    if pattern.risk > 0:
        raise ValueError(f"{name} must be one of exact p-values, such as AmongAll(), got {ranking!r}")
    return pattern


LABELS_OWN, WITHIN_OWN = own(lambda drift: _evidence(LABELS, drift)), own(lambda drift: _evidence(WITHIN, drift))
CLASSES = own(lambda drift: len(drift.classes))


@component
class ClassDrift(TakesTurns, Watching):
    """Watches examples and tells two kinds of change apart: in the shares of classes, and in objects within a class.

    It computes two p-values for each example. The one of its *label*, `rarity`, is small if few examples have the
    label. The one *within its class* is the rank of the object among objects of the same label. While examples are
    exchangeable, all these p-values are independent and uniform. If only the frequencies or the order of the labels
    change, those within classes stay so. So what rings says what has changed:

    - the labels: the classes come in other shares;
    - within classes: objects of a class look different, or its label means something else. Which of these two it is, no
      such p-value tells;
    - both: both.

    Objects may ring where neither does, but only because they are seen sooner: what changes in x changes the shares of
    the classes, or x within a class. Classes are named by `Naming`, from the p-values within each.

    In `Online` it stands among the monitors, under a name of its own, and gets each example when its label comes:

        monitors = venn.monitors.together(panel, panel.classes, examples=ClassDrift(panel.classes))
        online = venn.Online(panel, monitors)

    By hand: `alarms = drift.update(x, y)`, once for each example.

    Theorem. While examples are exchangeable, an alarm of `Ville` ever rings, or a class is ever named, with
    probability at most `level`: a third each for the labels, for the objects within classes, and for the names.
    Alarms of `ShiryaevRoberts` come at most n / `run_length` times in n examples on average. While the objects of
    each class are exchangeable, however its labels come, the same is true of what rings within classes, and of
    names.

    After a change of the labels these begin anew once the new state has lasted, as in `Drift`; after one within classes
    the rankings and names do. So labels that change again and again spend no level of what watches within classes.

    Parameters
    ----------
    classes : sequence of c labels, or Classes
        From 2 to 100.
    ranking : AmongAll, default AmongAll()
        A pattern, from which a fresh one is made for each class. Not `AgainstFirst`, whose p-values are not exact.
    level : float in (0, 1), default 0.01
    run_length : float > 1, default 100000
    seed : int >= 0, default 0
        Of the random numbers that break ties.
    first : int >= 2, or 0, default 0
        Number of first objects that fix the scale of the columns, as in `Drift`; their labels count.

    Attributes
    ----------
    n : int
        Number of examples.
    p_values : tuple of two float or None
        Of the latest label, and of its object within its class; None where there is none: of one of the first objects,
        or of one with gaps or text.
    count : int
        Number of alarms so far.

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described.

    References
    ----------
    Vovk (2020), "Testing for concept shift online", arXiv:2012.14246.

    Examples
    --------
    >>> drift, rng = ClassDrift(["no", "yes"]), np.random.default_rng(0)
    >>> for step in range(800):  # from 400 on "yes" comes more often
    ...     y = "yes" if rng.random() < (0.2 if step < 400 else 0.5) else "no"
    ...     alarms = drift.update(rng.normal(2.0 * (y == "yes"), size=1), y)
    >>> print(drift.verdict().kind)
    the classes come in other shares ('yes' .19 to .50)
    """

    unnamed = 2
    sees = "examples"  # with labels: what `update` takes
    about = OF_CLASSES

    classes: Sequence[Label] = param(_labels)
    ranking: Ranking = param(_exact, default=None)
    level: float = param(fraction, default=0.01, kw_only=True)
    run_length: float = param(above_one, default=100_000, kw_only=True)
    seed: int = param(integer, 0, default=0, kw_only=True)
    first: int = param(none_or_two, default=0, kw_only=True)

    p_values: tuple[float | None, float | None] = state(None, start=(None, None))
    _counts: Integers = state(
        array("classes", of=np.int64, below=FAR), start=own(lambda drift: np.zeros(len(drift.classes), np.int64))
    )  # of each class
    #: The same when it began anew.
    _earlier: Integers = state(
        array("classes", of=np.int64, below=FAR), start=own(lambda drift: np.zeros(len(drift.classes), np.int64))
    )
    _rankings: tuple[Ranking, ...] = state(
        each(twin(own(attrgetter("ranking"))), "classes", of=tuple), start=own(_rankings)
    )
    _of_labels: Exchangeability = state(restored_twin, start=LABELS_OWN)
    _within: Exchangeability = state(restored_twin, start=WITHIN_OWN)
    _naming: Naming = state(restored_twin, start=own(lambda drift: Naming(len(drift.classes), drift.share)))
    _ruler: ObjectRuler = state(restored_twin, start=own(lambda drift: ObjectRuler(drift.first)))
    _latest: deque[int] = state(each(code("classes"), of=deque), start=own(lambda _: deque(maxlen=MEMORY)))  # codes
    #: Shares of the classes before the change of the labels.
    _before: Floats = state(array("classes"), start=own(lambda drift: np.zeros(len(drift.classes))))

    def derive(self) -> None:
        """Encode labels; nothing is drawn yet to break ties."""
        self.space = label_space(self.classes)
        self._ties, self.pending = Ties(self.seed), False

    @property
    def share(self) -> float:
        """The level of each part: the labels, the objects within classes, and the names."""
        return self.level / 3

    @property
    def n(self) -> int:
        """Number of examples."""
        return int(self._counts.sum())

    def check(self, x: Any) -> None:
        """Raise what `update(x, y)` would raise for a bad object; nothing is counted."""
        if has_distances(x):
            if self.first:
                self._ruler.placed(x)
            else:
                max(self._rankings, key=lambda one: one.n).check(x)

    @changes
    def update(self, x: Any, y: Label) -> tuple[Alarm, ...]:
        """Process an example; return the alarms that ring now.

        Parameters
        ----------
        x : (d,) numbers
            With gaps or texts only its label is watched.
        y : one of the classes

        Raises
        ------
        TypeError, ValueError
            For a bad object, one of another length than the first, or an unknown label; nothing has changed.
        """
        code = self.space.encode(y)
        usual = is_row(x) and self.takes(x[None])
        if not usual:
            self.check(x)
        if self._naming.last and self.n - self._naming.last >= MEMORY:
            self._naming.begin_anew()
            self._rankings = _rankings(self)
        if self.cases:
            self._look()
        if usual and self.go(x[None], np.array([code])):
            return self.tell() if self.pending else ()
        of_label, of_object = self._ties.at(self.n)
        self._counts[code] += 1
        self._latest.append(code)
        first = rarity(self._counts - self._earlier, code, of_label)
        placed = self._ruler.take(x) if has_distances(x) else None
        second = None if placed is None else self._rankings[code].rank(placed, of_object)
        self.p_values = first, second
        rung = self._heard(0, self._of_labels, self._of_labels.update({LABELS: first}, 0.0))  # type: ignore[arg-type]
        if second is None:
            self._within.trace.add(nan)
        else:
            rung += self._heard(1, self._within, self._within.update({WITHIN: second}, 0.0))  # type: ignore[arg-type]
            ps = np.full(len(self.classes), np.nan)
            ps[code] = second
            rung += [self._named(place) for place in self._naming.update(ps, self.n)]
        return self._took(rung)

    # ------------------------------------------------------------------- blocks

    def takes(self, rows: Floats) -> bool:
        """Whether it would refuse none of these rows (m, d), and `go` may take some of them."""
        width = rows.shape[1]
        known = [self._ruler.features] if self.first else [getattr(one, "features", 0) for one in self._rankings]
        return type(self.ranking) is AmongAll and {*known} <= {None, width} and bool(plain(rows, True).all())

    def go(self, rows: Floats, codes: Integers) -> int:
        """Process the first of some examples that it `takes`, as `update` would; return how many.

        It stops after one at which something rings, which is then `pending` until `tell` is asked; and before one with
        which it begins anew or a change ends: that one is for `update`.
        """
        done, self.pending, naming = 0, False, self._naming
        few = min(self.until(*PARTS), naming.last + MEMORY - self.n if naming.last else FAR)
        if not self._ruler.fixed or few <= 0:
            return 0
        rows, codes = self._ruler.on_scale(rows[:few] + 0.0), codes[:few]  # no -0.0
        gaps = np.isnan(rows).sum(axis=1) > 0
        ps, taus = np.empty((len(rows), 2)), self._ties.block(self.n, len(rows))
        pairs = (self._of_labels.ville, self._of_labels.repeated), (self._within.ville, self._within.repeated)
        logs, (labels, within) = np.array([logs_of(*pair) for pair in pairs]), [pair_of(*pair) for pair in pairs]
        while done < len(rows) and not self.pending:
            ranking: Any = self._rankings[codes[done]]
            crowd, room = ranking.room(rows.shape[1])
            part = slice(done, done + room)
            count, self.pending = watch_examples(
                rows[part], taus[part], codes[part], self._counts, self._earlier, crowd.arrays, crowd.n, labels[1:],
                within, logs, naming.memory, naming.named, naming.bound, ps[part],
            )  # fmt: skip
            crowd.n += count - int(gaps[done : done + count].sum())
            done += count
        for evidence, numbers, log in zip((self._of_labels, self._within), ps[:done].T, logs[:, 2], strict=True):
            evidence.bet(numbers, float(log))
        self._latest.extend(codes[:done].tolist())
        first, second = ps[done - 1].tolist()
        self.p_values = first, None if isnan(second) else second
        return done

    def tell(self) -> tuple[Alarm, ...]:
        """Return the alarms that ring at the latest example, which `go` has found."""
        self.pending = False
        rung, whole = list[Alarm](), self.p_values[1] is not None
        for place, evidence in enumerate((self._of_labels, self._within)[: 1 + whole]):
            rung += self._heard(place, evidence, evidence.alarms())
        return self._took([*rung, *(self._named(place) for place in self._naming.called(self.n) if whole)])

    def _look(self) -> None:
        """Begin anew where a new state has lasted, so that a later change shows; end changes that no longer ring."""
        for part in PARTS:
            one = self.lasting(part)
            if one is not None and one.last > one.anew and self.n - max(one.first, one.anew) >= LASTED:
                self.begin_anew(part)
        self.pass_by()

    def begin_anew(self, part: str) -> None:
        """Restart a part: compare later examples only with each other, and bet anew with the level of a new stream.

        The other part goes on: what rang is no change of it, and its level is not spent again.
        """
        if part == LABELS:
            self._earlier = self._counts.copy()
            self._of_labels.begin_anew()
        else:
            self._rankings, self._ruler = _rankings(self), ObjectRuler(self.first)
            self._naming.begin_anew()
            self._within.begin_anew()
        if (found := self.lasting(part)) is not None:
            self._put(replace(found, anew=self.n))

    def _heard(self, place: int, evidence: Exchangeability, alarms: Sequence[Alarm]) -> list[Alarm]:
        """Record alarms of the labels, 0, or within classes, 1; return them in words."""
        rung = [self._in_words(one) for one in alarms]
        if rung:
            self._rang(place, evidence, rung[0])
        return rung

    def _in_words(self, alarm: Alarm) -> Alarm:
        """Return an alarm with the number of the example, and in words that say which p-values it is about."""
        seldom = f"this alarm ever rings with probability at most {self.share:g}"
        if alarm.detector == "ShiryaevRoberts":
            seldom = f"such alarms come at least {2 * self.run_length:,.12g} examples apart on average"
        meaning = "the classes come in other shares, or in another order"
        if alarm.about == WITHIN:
            meaning = "objects of some class look different, or its label means something else"
        sentence = (
            f"At step {self.n} the odds against {alarm.about} in random order are {odds(alarm.log_evidence)}: "
            f"{meaning}. Theorem: on exchangeable data {seldom}."
        )
        return replace(alarm, step=self.n, sentence=sentence)

    def _rang(self, place: int, evidence: Exchangeability, alarm: Alarm) -> None:
        """Record an alarm; it begins another change if the new state had lasted."""
        n, part, lasting = self.n, PARTS[place], self.lasting(PARTS[place])
        another = lasting is not None and 0 < lasting.anew <= n - LASTED and lasting.last <= lasting.anew
        change = lasting.change if lasting is not None and not another else None
        if change is None:
            if place == 1:  # classes named in an earlier change are no part of this one
                self._naming.before[:] = 0
                latest = self.case(part)
                change = evidence.trace.change(n, (), 0 if latest is None else latest.anew)
            else:  # dated by the labels themselves, which is more exact than by their ranks
                change = change_of_counts(self._since(int(self._earlier.sum()) + 1), len(self.classes), n)
                after = np.bincount(self._since(change.step), minlength=len(self.classes))
                before = np.maximum(self._counts - self._earlier - after, 0)
                self._before = before / max(int(before.sum()), 1)
        kind, detector = self._told(place, change), against(alarm.detector, alarm.about)
        names = tuple(str(self.classes[one]) for one in self._naming.known) if place == 1 else ()
        self._note(Case(n, n, change, OF_CLASSES, detector, kind, part=part, kind=kind, classes=names), another)

    def _named(self, place: int) -> Alarm:
        log = float(self._naming.logs[place])
        sentence = (
            f"At step {self.n} the odds are {odds(log)} that objects of class {self.classes[place]!r} look different, "
            "or its label means something else. Theorem: the chance that a class is ever named whose objects come in "
            f"random order is at most {self.share:g}."
        )
        alarm = Alarm(self.n, NAMED, log, sentence, WITHIN)
        self._rang(1, self._within, alarm)
        return alarm

    @property
    def _lately(self) -> dict[int, ChangePoint]:
        """The changes of the labels, 0, and within classes, 1, that last."""
        found = {place: self.lasting(part) for place, part in enumerate(PARTS)}
        return {place: one.change for place, one in found.items() if one is not None}

    def _since(self, step: int) -> list[int]:
        """Return the codes of the labels from a step on, as many as are remembered."""
        return list(self._latest)[-max(1, self.n - step + 1) :]

    # ------------------------------------------------------------------- reading

    @property
    def kinds(self) -> tuple[str, ...]:
        """What has changed among the latest 1000 examples, in words: none, one or both."""
        return tuple(self._told(place, change) for place, change in self._lately.items())

    def _told(self, place: int, change: ChangePoint) -> str:
        """Return what has changed, of the labels or within classes, in words."""
        if place == 0:
            return f"the classes come in other shares{self._moved(change.step)}"
        known, lasting = [self.classes[one] for one in self._naming.known], self.lasting(WITHIN)
        if not known and lasting is not None:  # bets have begun anew since: what was named stays so
            known = [one for one in self.classes if str(one) in lasting.classes]
        named = [repr(one) for one in known[:SHOWN]]
        all_ = ", ".join([*named[:-2], " and ".join(named[-2:])])
        which = f"class{'es' * (len(named) > 1)} {all_}" if named else "some class"
        return f"objects of {which} look different, or their labels mean something else"

    def _moved(self, step: int) -> str:
        """Return the classes whose shares have moved most, before and after, in words."""
        latest = self._since(step)
        after = np.bincount(latest, minlength=len(self.classes)) / len(latest)
        spread = self._before * (1 - self._before) / len(latest) + 1 / len(latest) ** 2
        far = (after - self._before) ** 2 / spread
        order = [int(k) for k in np.argsort(-far, kind="stable")[:SHOWN] if far[k] >= PLAIN]
        if len(self.classes) == 2:  # the share of one class gives the other
            order = [1] if order else []
        each = [f"{self.classes[k]!r} {' to '.join(shares(self._before[k], after[k]))}" for k in order]
        return f" ({', '.join(each)})" if each else ""

    def verdict(self) -> Verdict:
        """Return "doubtful" if an alarm has rung among the latest 1000 examples, with the kind; or else "as claimed".

        What is claimed of labels may hold all the same: predictors have monitors of their own. The steps of changes are
        estimates, as in `Monitor.verdict`.

        Examples
        --------
        >>> print(ClassDrift(["no", "yes"]).verdict().details)
        as claimed: labels, and objects within classes, come as if in random order
        """
        kinds = self.kinds
        if not kinds:
            again = f" again, no alarm since {max(one.last for one in self.cases)}" if self.cases else ""
            return Verdict(
                CLAIMED, None, None, OF_CLASSES, "",
                f"{CLAIMED}{again}: labels, and objects within classes, come as if in random order",
            )  # fmt: skip
        first = min(self._lately.values(), key=lambda one: one.step)
        last = max((one for one in self.cases if not one.ended), key=lambda one: one.last)
        said = f"since {first} {' and '.join(kinds)}; last alarm at {last.last}"
        return Verdict(
            DOUBTFUL, first.step, first, OF_CLASSES, last.detector,
            f"{DOUBTFUL}: {said}", reason=" and ".join(kinds), kind=" and ".join(kinds),
        )  # fmt: skip

    def snapshot(self) -> dict[str, Any]:
        """Return everything to show now, as plain data, as of a `Monitor`: step, verdict, evidence and alarms."""
        found = super().snapshot()
        found["evidence"] = [one for evidence in (self._of_labels, self._within) for one in evidence.snapshot()]
        found["kinds"] = [
            {"words": self._told(place, one), "since": str(one), "bars": [] if place else self._bars(one)}
            for place, one in self._lately.items()
        ]
        return found

    def _bars(self, change: ChangePoint) -> list[dict[str, Any]]:
        """Return the shares of the classes before and after a change, as plain data."""
        latest = self._since(change.step)
        after = (np.bincount(latest, minlength=len(self.classes)) / len(latest)).tolist()
        each = zip(self.classes, self._before.tolist(), after, strict=True)
        return [{"to": str(label), "before": before, "after": now} for label, before, now in each]
