"""Examples in blocks: what a panel that watches itself says and learns of many, to the last bit as one by one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import islice
from typing import Any, ClassVar, Protocol

import numpy as np

from venn.machines.objects import ObjectRows, clean_rows
from venn.monitors.monitor import Monitor
from venn.online.one_row import BY_SCORES, REFITTED, WEIGHED
from venn.online.panel import Panel
from venn.parameters import members
from venn.prediction import Floats, Integers, Label
from venn.predictors.blocks import block_of, joined
from venn.predictors.distribution_inductive import ManyDistributions
from venn.predictors.expert_mixture import Weighing
from venn.predictors.inductive_conformal import InductiveConformal
from venn.predictors.learning import names_among
from venn.predictors.refits import ScorerForecast
from venn.turns import changes

AT_A_TIME = 512  # examples: as a transaction of `venn run` has; few are taken back where a block ends early
FEW = 4  # examples of which a block costs as much as they do one by one
AT_ONCE = 64  # of numbers: a distribution is all its points
SCORED, HELD = 4096, 2**22  # objects whose scores are kept for their labels, and bytes of these, at most

Said = dict[str, Any]  # a block by name


class Alongside(Protocol):
    """What else happens at each example of a block, in its place: questions, answers, and what watches these."""

    def looked(self, count: int) -> list[int]:
        """Return after how many of the next examples somebody looks at the monitors."""

    def asked(self, i: int) -> None:
        """Let the question of an example be asked: its monitors have not seen it yet."""

    def calm(self, done: int, count: int, shown: dict[str, list[Any]]) -> None:
        """Let examples be asked and answered at which no monitor has rung: they have seen all of them.

        `shown` are the figures of each monitor whenever somebody `looked`.
        """

    def answered(self, i: int) -> None:
        """Let the label of an example come: its monitors have seen it."""


class ScoresAhead:
    """Scores of the latest objects that were asked about, until their labels come: a scorer is asked once for both."""

    def __init__(self) -> None:
        self._by: Any = None
        self._scores: dict[bytes, list[float]] = {}

    def keep(self, by: Any, rows: Any, scores: Floats) -> None:
        """Keep the scores of objects, which a scorer has given."""
        if by is not self._by:
            self._by, self._scores = by, {}
        self._scores.update(zip(map(bytes, rows), scores.tolist(), strict=True))
        for key in list(islice(self._scores, max(0, len(self._scores) - min(SCORED, HELD // rows[0].nbytes)))):
            del self._scores[key]

    def __len__(self) -> int:
        return len(self._scores)

    def take(self, by: Any, rows: Any) -> Floats | None:
        """Return the scores of objects by a scorer, once; None if some are not known."""
        if by is None or by is not self._by:
            return None
        found = [self._scores.pop(key, None) for key in map(bytes, rows)]
        return None if None in found else np.array(found)


class InBlocks(Panel):
    """Base of a panel that watches itself, and begins anew when an alarm says that the stream has changed.

    Around a given scorer, or with its own after the hand-over, a block of examples is one call of each compiled loop.
    An example at which a part is trained or at which it begins anew ends the block. All others go one by one.
    """

    claiming: ClassVar[tuple[str, ...]]  #: those whose claims are watched
    parts: ClassVar[tuple[str, ...]]  #: names of its own predictors
    outlooks: ClassVar[Any]  #: what it says of many objects
    main: ClassVar[str]  #: the one that is asked how many examples it has learned, and of what scorer
    _asked: Any

    @cached_property
    def _ahead(self) -> ScoresAhead:
        return ScoresAhead()

    @property
    def n(self) -> int:
        """Number of examples learned."""
        raise NotImplementedError

    @changes
    def learn_many(self, X: Any, y: Iterable[Label]) -> None:
        """Learn many examples, as `learn_one` would one after the other, to the last bit, and faster.

        Parameters
        ----------
        X : (n, d) array, sparse or not, or a table of the columns that a given scorer was fitted to
        y : iterable of n labels

        Raises
        ------
        TypeError, ValueError
            X or y is not as described: nothing is learned. Or a given scorer refuses an object: those before it are
            learned.

        Examples
        --------
        >>> import venn
        >>> model = venn.Forecaster(["no", "yes"])
        >>> model.learn_many([[i / 40] for i in range(40)], ["yes" if i > 20 else "no" for i in range(40)])
        >>> model.n, model.predict_one([0.9]).label
        (40, 'yes')
        """
        for _ in self._in_turn(X, y, False):
            pass

    @changes
    def replay_many(self, X: Any, y: Iterable[Label]) -> Any:
        """Return the outlook for each example before it is learned; all are learned, one after the other.

        Parameters, Raises
            As of `learn_many`.
        """
        blocks = list(self._in_turn(X, y, True))
        return self.outlooks({name: joined([one[name] for one in blocks]) for name in self})

    def _in_turn(self, X: Any, y: Iterable[Label], tell: bool) -> Iterator[Said]:
        """Learn examples in turn, checked; yield what was said of them, block by block, if that is asked for."""
        labels = members("y", y, "labels")
        rows = self.rows_of(X)
        if len(labels) != len(rows) or not labels:
            raise ValueError(f"y must hold a label for each of {len(rows)} rows of X, at least one, got {len(labels)}")
        codes, done = self.space.encode_many(labels), 0
        while done < len(rows):
            part = slice(done, done + self._room)
            found = self.learn_block(rows[part], codes[part])
            count, said = self._singly(rows[part], labels[part], tell) if found is None else found
            done += count
            yield said

    @property
    def takes_gaps(self) -> bool:
        """Whether objects may have gaps: with a given scorer that is its own concern."""
        return bool(getattr(getattr(self[self.main], "given", None), "missing", False))

    def rows_of(self, X: Any) -> ObjectRows:
        """Return objects as rows, checked."""
        return clean_rows(X, None, names_among(self.values()), self.takes_gaps)

    def _singly(self, rows: Any, labels: Any, tell: bool) -> tuple[int, Said]:
        """Learn examples one by one; return how many, and what was said."""
        objects, said = [rows[i] for i in range(len(rows))], []
        for x, label in zip(objects, labels, strict=True):
            if tell:
                said.append(self.predict_one(x))
            self.learn_one(x, label)
        return len(rows), {name: block_of([one[name] for one in said]) for name in self if tell}

    # -------------------------------------------------------------------- blocks

    @property
    def by_scores(self) -> bool:
        """Whether all that learns reads the scores of a scorer, is fitted at set times, or weighs what does."""
        for one in self._learners:
            read = one.read if type(one) is ScorerForecast else one
            weighs = isinstance(one, Weighing) and type(one.owner) in WEIGHED
            if not weighs and type(read) not in REFITTED and not (type(read) in BY_SCORES and read.takes_blocks):
                return False
        # What others beside its own have learned could not be taken back where it begins anew.
        own = tuple(self) == self.parts or not self._begins_anew
        for name in ("predict_one", "learn_one"):  # a user's own would not be called
            own &= next(kind for kind in type(self).__mro__ if name in vars(kind)).__module__.startswith("venn.")
        return own and all(isinstance(one, Monitor) for one in self.monitors.values())

    @property
    def _room(self) -> int:
        """How many examples make a block at most: the next training ends it."""
        trained = [one for one in self._learners if type(one) in BY_SCORES + REFITTED and one.due is not None]
        most = AT_A_TIME if self.space.labels else AT_ONCE
        return min([most, *(one.due - one.n for one in trained if one.due > one.n)])

    @property
    def calibrates_alone(self) -> bool:
        """Whether it calibrates a given classifier, and nothing is ever trained."""
        trained = (type(one) in REFITTED or (type(one) in BY_SCORES and one.trains) for one in self._learners)
        return bool(self.space.labels) and self.by_scores and not any(trained)

    @property
    def claims_alone(self) -> bool:
        """Whether nothing but claims is watched, so that other things can happen along with a block."""
        return self.calibrates_alone and not self.floors

    def say_block(self, rows: ObjectRows) -> Said | None:
        """Return what is said of objects now, each as if it were alone, to the last bit. None: ask one by one."""
        if len(rows) < FEW or not self.calibrates_alone:
            return None
        rows, scores = positive_zeros(rows), self._scores(rows)
        if scores is None:
            return None
        if (by := self._by(rows)) is not None:
            self._ahead.keep(by, rows, next(iter(scores.values())))
        found: dict[int, Any] = {id(one): one.predict_scored(rows, scores[id(one)]) for one in self._scoring}
        for other in self._learners:
            if type(other) is ScorerForecast:
                found[id(other)] = other.of_scores(scores[id(other.read)])
        for other in self._learners:
            if isinstance(other, Weighing):
                mixture = other.owner
                found[id(mixture)] = mixture.combined_many([self._found(expert, found) for expert in mixture.experts])
        return {name: self._found(predictor, found) for name, predictor in self.items()}

    @property
    def _scoring(self) -> list[Any]:
        """The predictors that read scores."""
        return [one for one in self._learners if type(one) in BY_SCORES]

    def _by(self, rows: ObjectRows) -> Any:
        """Return what gives the scores of objects, if it is one for all and their scores may be kept; else None."""
        each = self._scoring
        kept = isinstance(rows, np.ndarray) and all(alike(each[0], one) for one in each)
        return each[0].scores_by if kept and each else None

    def _scores(self, rows: ObjectRows) -> dict[int, Any] | None:
        """Return scores of objects, each as if it were alone, by who reads them; None where one is refused."""
        scores: dict[int, Any] = {}
        learners = self._scoring
        try:
            for one in learners:
                known = next((other for other in learners if id(other) in scores and alike(one, other)), None)
                scores[id(one)] = one.scores_alone(rows) if known is None else scores[id(known)]
        except Exception:
            return None  # what is wrong with an object is said in its turn
        return scores

    def learn_block(self, rows: ObjectRows, codes: Integers, along: Alongside | None = None) -> tuple[int, Said] | None:
        """Learn examples up to one at which it begins anew; return how many, and what was said. None: one by one."""
        if len(codes) < FEW or not self.by_scores:
            return None
        rows, learners, found = positive_zeros(rows), self._scoring, {}
        known = self._ahead.take(self._by(rows), rows) if self._ahead else None
        scores = self._scores(rows) if known is None else {id(one): known for one in learners}
        if scores is None:
            return None
        try:
            for one in self._learners:
                if type(one) in REFITTED:
                    found[id(one)] = one.predict_many(rows)
        except Exception:
            return None
        self._asked = None
        found |= {id(one): one.replay_scored(rows, codes, scores[id(one)]) for one in learners}
        whole = {key: block for key, block in found.items() if isinstance(block, ManyDistributions)}
        found |= {key: [block[i] for i in range(len(block))] for key, block in whole.items()}  # each is made once
        for other in self._learners:
            if type(other) is ScorerForecast:
                found[id(other)] = other.of_scores(scores[id(other.read)])
        count = self._watched({name: self._found(self[name], dict(found)) for name in self.claiming}, codes, along)
        anew = count < 0
        count = abs(count)
        if count < len(codes):
            for one in learners:
                if type(one) is not InductiveConformal:  # the sets end here: those of what begins anew are others
                    one.take_back(codes[count:], scores[id(one)][count:])
            rows, codes = rows[:count], codes[:count]
            axis = 1 if self.space.labels else 0
            found, whole = ({key: _first(block, count, axis) for key, block in one.items()} for one in (found, whole))
        light = {id(found[key]): block for key, block in whole.items()}
        failure = self._learned_block(rows, codes, found)
        said = {name: self._found(predictor, found) for name, predictor in self.items()}
        for floor in self.floors.values():
            for i, code in enumerate(codes):
                floor.see(floor.among(said)[i], self.space.decode(code))
        if anew:
            self._begin_anew()
            if along is not None:
                along.answered(count - 1)
        if failure is not None:
            raise failure
        return count, {name: light.get(id(block), block) for name, block in said.items()}

    def _learned_block(self, rows: ObjectRows, codes: Integers, found: dict[int, Any]) -> Exception | None:
        """Weigh what was said, and let parts keep the examples; return why one could not be trained by them."""
        failure: Exception | None = None
        for one in self._learners:
            if isinstance(one, Weighing):
                mixture = one.owner
                each = mixture.heard_many([self._found(expert, found) for expert in mixture.experts])
                found[id(mixture)] = mixture.block(mixture.weigh_many(codes, each))
            elif type(one) in BY_SCORES + REFITTED:
                try:
                    one.keep_many(rows, codes)
                except Exception as error:  # the others learn all the same
                    failure = failure or error
        return failure

    def _watched(self, said: Said, codes: Integers, along: Alongside | None = None) -> int:
        """Let monitors compare claims with labels; return of how many, below 0 if it begins anew after them."""
        monitors = [self.monitors[name] for name in self.claiming]
        steps = [one.scored(said[name], codes) for name, one in zip(self.claiming, monitors, strict=True)]
        done = 0
        while done < len(codes):
            rest = [one.part(slice(done, None)) for one in steps]
            calm = min(one.quiet(each) for one, each in zip(monitors, rest, strict=True))
            looked = [] if along is None else along.looked(calm)
            shown = [one.go_on(each.part(slice(calm)), looked, False) for one, each in zip(monitors, rest, strict=True)]
            if calm and along is not None:
                along.calm(done, calm, dict(zip(self.claiming, shown, strict=True)))
            done += calm
            if not calm:
                if along is not None:
                    along.asked(done)
                rung = [one.take(each, done) for one, each in zip(monitors, steps, strict=True)]
                done += 1
                if self._begins_anew and any(rung) and self._changed:
                    return -done
                if along is not None:
                    along.answered(done - 1)
        return done

    @property
    def _begins_anew(self) -> bool:
        """Whether an alarm may make it begin anew."""
        raise NotImplementedError

    @property
    def _changed(self) -> bool:
        """Whether what is claimed has changed."""
        raise NotImplementedError

    def _begin_anew(self) -> None:
        """Forget all examples."""
        raise NotImplementedError


def positive_zeros(rows: ObjectRows) -> ObjectRows:
    """Return rows in which -0.0 is 0.0, as of a single object."""
    return rows + 0.0 if isinstance(rows, np.ndarray) else rows


def alike(one: Any, other: Any) -> bool:
    """Whether two predictors get the same scores of every object."""
    return one.scores_by is other.scores_by and not one.shift and not other.shift


def _first(block: Any, count: int, axis: int) -> Any:
    """Return the first predictions of a block or a list, or of arrays in which objects go along this axis."""
    if isinstance(block, list):
        return block[:count]
    if isinstance(block, np.ndarray):
        return block[:, :count] if axis else block[:count]
    return block.taken(np.arange(count))
