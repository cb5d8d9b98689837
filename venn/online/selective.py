"""Answers with a promise: it abstains where one more wrong answer would break a bound on the errors."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from math import inf
from operator import attrgetter
from typing import Any, Literal, NamedTuple

import numpy as np

from venn.labels import HasLabels, Real
from venn.machines.machine import grown
from venn.machines.objects import clean_row, clean_rows
from venn.machines.sparse import is_sparse
from venn.machines.tables import TableRows, is_gap
from venn.monitors.kinds import kept, kind_of
from venn.monitors.number_kinds import NumberKind
from venn.online.account import Account
from venn.online.chain import copy_object, encode_object
from venn.online.panel import Panel, panel_of
from venn.parameters import fraction, has_methods, is_number, members, number, one_of, optional, positive
from venn.prediction import LEVELS, Floats, Label, Prediction, PredictionSet
from venn.predictors.learning import names_among
from venn.saved import Saved, array, checked_keys, component, own, param, restored_int, saved, state
from venn.turns import TakesTurns, asks, changes

WRONG, RIGHT, OUT = "wrong", "right", "out"
MOST = 1e308  # width: that of an interval without bounds
WINDOW = 1000  # latest labelled questions, by which it sets its threshold
DECIDES = "forecast", "distribution"  # predictors that answer: for classes, and for numbers
RESERVE = 0.7  # share of the allowance that is kept for errors to come
LAST = 1.0  # room in which one more wrong answer silences it
SPENT_OVER = 100  # answers over which the room beyond the reserve is spent
SPARED = 1  # observed errors that do not count against the threshold
EARLY, RICH = 50, 0.3  # labelled questions; share of the usual answers that remains at half the error


class AnswerChoice(NamedTuple):
    """What is answered to a question."""

    answer: Any  #: a label; of numbers the (lower, upper) ends of an interval; None: it abstains
    why: str  #: why it abstains; empty for an answer


class Candidate(NamedTuple):
    """A possible answer: how sure the predictor is of it, and the chance of an error that it claims."""

    answer: Any
    sure: float  #: the larger, the sooner it is answered
    claimed: float  #: chance of an error by the predictor itself


class AnswerWaiting(NamedTuple):
    """A question whose label has not come."""

    answer: Any  #: what was answered, or would have been
    sure: float
    claimed: float
    given: bool  #: whether an answer was given


class AnswerLadder:
    """Labelled questions from the surest down, with the number of errors among the first of them.

    Errors are those observed less one, so that a single accident does not silence it, or those that the predictor
    expected, whichever are more.

    Parameters
    ----------
    sure : (n,) float64
        How sure it was of each, answered or not.
    claimed : (n,) float64
        The chance of an error, by the predictor itself.
    wrong : (n,) float64
        1 where the answer was wrong, or would have been.

    Examples
    --------
    >>> ladder = AnswerLadder([0.9, 0.6, 0.8, 0.7], [0.1, 0.4, 0.2, 0.3], [0, 1, 0, 0])
    >>> ladder.most(0.2), ladder.least(0.2), ladder.least(0.01), ladder.least(0.9)
    (3, 0.7, inf, -inf)
    """

    def __init__(self, sure: Any, claimed: Any, wrong: Any) -> None:
        order = np.argsort(-np.asarray(sure, np.float64), kind="stable")
        self._sure = np.asarray(sure, np.float64)[order]
        said, seen = (np.cumsum(np.asarray(one, np.float64)[order]) for one in (claimed, wrong))
        self._errors = np.maximum(said, seen - SPARED)
        self._count = np.arange(1, len(order) + 1)
        self._last = np.append(np.diff(self._sure) != 0, True)[: len(order)]  # equal ones go together

    def __len__(self) -> int:
        return len(self._count)

    def most(self, target: float) -> int:
        """Return the largest number of surest questions whose share of errors is at most `target`."""
        places = np.flatnonzero((self._errors <= target * self._count) & self._last)
        return int(places[-1]) + 1 if len(places) else 0

    def least(self, target: float) -> float:
        """Return how sure the last of these is: infinity if there are none, minus infinity if all are among them."""
        found = self.most(target)
        return inf if not found else -inf if found == len(self) else float(self._sure[found - 1])


def _restored_waiting(name: str, value: Any) -> dict[int, AnswerWaiting]:
    """Return the questions that wait by number, as a file has them."""
    if not isinstance(value, list) or not all(isinstance(one, tuple | list) and len(one) == 5 for one in value):
        raise ValueError(f"{name} must be a list of numbers of questions and what was answered, got {value!r}")
    return {
        restored_int(name, number, 1): AnswerWaiting(answer, float(sure), float(claimed), bool(given))
        for number, answer, sure, claimed, given in value
    }


@component
class Answering(Saved):
    """Decides which questions are answered, and keeps the account: see `Selective`."""

    error: float = param(fraction, default=0.05)
    allowance: float = param(lambda name, value: _allowance(name, value), default=5.0)
    unknown: str = param(one_of, (WRONG, RIGHT, OUT), default=WRONG, kw_only=True)
    width: float | None = param(optional, positive, default=None, kw_only=True)
    level: float | None = param(optional, lambda name, value: _level(name, value), default=None, kw_only=True)

    asked: int = state(restored_int, start=0)
    answered: int = state(restored_int, 0, own(attrgetter("asked")), start=0)
    wrong: int = state(restored_int, 0, own(attrgetter("answered")), start=0)
    _waiting: dict[int, AnswerWaiting] = state(_restored_waiting, start=own(lambda _: {}))
    known: int = state(restored_int, start=0)
    _latest: Floats = state(  # sure, claimed and wrong of labelled questions
        array(3, own(lambda one: min(one.known, WINDOW))), start=own(lambda _: np.zeros((3, 0)))
    )

    def derive(self) -> None:
        """Count the answers that wait, and make room."""
        if self.level is not None and self.level > self.error:
            raise ValueError(
                f"level must be at most error, {self.error:g}, for intervals miss so often, got {self.level!r}"
            )
        self._latest = grown(self._latest, 3, WINDOW)
        self._open = sum(one.given for one in self._waiting.values())
        self._sorted: AnswerLadder | None = None

    @property
    def state(self) -> dict[str, Any]:
        """The counts, the open questions, and the latest closed ones."""
        waiting = [(number, *one) for number, one in self._waiting.items()]
        return super().state | {"waiting": waiting, "latest": self._latest[:, : self.known].copy()}

    @property
    def account(self) -> Account:
        """The account as it is now."""
        return Account(self.asked, self.answered, self.wrong, self._open, self.error, self.allowance)

    def candidate(self, said: Mapping[str, Prediction]) -> Candidate:
        """Return what could be answered, by the predictions of a panel as a journal keeps them.

        Raises
        ------
        TypeError
            Labels are numbers and no width is given, or it is given and they are classes.
        """
        name = next((one for one in DECIDES[:: 1 if self.width is None else -1] if one in said), next(iter(said)))
        prediction: Any = said[name]
        if isinstance(kind_of(prediction, name), NumberKind) != (self.width is not None):
            raise TypeError(f"width must be given where labels are numbers, and only there, got {self.width!r}")
        if self.level is not None:
            lower, upper = map(float, prediction.interval(self.level))
            return Candidate((lower, upper), max(lower - upper, -MOST), 0.0)  # how often such miss is seen
        if isinstance(prediction, PredictionSet):
            sure, answer = prediction.confidence, prediction.label
        else:
            place = int(prediction.proba.argmax())
            sure, answer = float(prediction.proba[place]), prediction.classes[place]
        return Candidate(answer, sure, 1.0 - sure)

    def choose(self, said: Mapping[str, Prediction]) -> tuple[AnswerChoice, Candidate]:
        """Return what is answered now to a question with these predictions; nothing is counted."""
        one, account = self.candidate(said), self.account
        if not account.may_answer:
            return AnswerChoice(None, account.silence), one
        if self.width is not None and not -one.sure < self.width:
            told = (
                f"its interval at {self.level:g} is {-one.sure:.4g} wide, and answers are narrower than {self.width:g}"
            )
            return AnswerChoice(None, told), one
        target = self.target(account)
        sure = self.width is None and one.claimed <= target
        if not sure and one.sure < self._ladder.least(target):
            return AnswerChoice(None, self._unsure(one, target)), one
        return AnswerChoice(one.answer, ""), one

    def target(self, account: Account) -> float:
        """Return the share of the next answers that may be wrong: less than `error` if the account is nearly full.

        Below a reserve, less room means that it must be surer: so chance does not silence it. Room beyond the reserve
        is spent over the next answers. If questions of which it is that sure are rare, waiting for them would be
        silence too; then the reserve is smaller.
        """
        ladder, reserve = self._ladder, RESERVE * self.allowance - LAST
        if len(ladder) >= EARLY:
            usual = ladder.most(self.error)
            reserve *= min(1.0, ladder.most(self.error / 2) / usual / RICH) if usual else 0.0
        beyond = account.room - LAST - reserve
        if beyond >= 0 or reserve <= 0:
            return self.error + beyond / SPENT_OVER
        return self.error * max(0.0, 1.0 + beyond / reserve)

    @property
    def _ladder(self) -> AnswerLadder:
        if self._sorted is None:
            self._sorted = AnswerLadder(*self._latest[:, : self.known])
        return self._sorted

    def _unsure(self, one: Candidate, target: float) -> str:
        """Say why it abstains though the account has room."""
        least = self._ladder.least(target)
        if self.width is not None:
            if least == inf:
                return f"no width is known at which intervals miss at most {target:.3g} of the labels"
            return f"its interval is {-one.sure:.4g} wide, and answers begin at {-least:.4g}"
        if least == inf:
            sure = f"it is sure to {one.sure:.3g}"
            return f"{sure}, and no degree is known at which at most {target:.3g} of the answers are wrong"
        return f"it is sure to {one.sure:.3g}, and answers begin at {least:.3g}"

    # ------------------------------------------------------------------- events

    def ask(self, number: int, said: Mapping[str, Prediction]) -> AnswerChoice:
        """Count a question, and return what is answered."""
        choice, one = self.choose(said)
        given = not choice.why
        self.asked += 1
        self.answered += given
        self._open += given
        self._waiting[number] = AnswerWaiting(*one, given)
        return choice

    def reveal(self, number: int, y: Label) -> None:
        """Record the label of a question."""
        one = self._waiting.pop(number)
        wrong = not one.answer[0] <= y <= one.answer[1] if self.width is not None else y != one.answer
        self._open -= one.given
        self.wrong += one.given and wrong
        self._latest[:, self.known % WINDOW] = one.sure, one.claimed, wrong
        self.known += 1
        self._sorted = None

    def give_up(self, number: int) -> None:
        """Count a question whose label never comes."""
        one = self._waiting.pop(number)
        self._open -= one.given
        self.wrong += one.given and self.unknown == WRONG
        self.answered -= one.given and self.unknown == OUT


def _allowance(name: str, value: Any) -> float:
    found = number(name, value)
    if not 1 <= found < inf:
        raise ValueError(f"{name} must be a number >= 1: with less the first answer is never given, got {value!r}")
    return found


def _level(name: str, value: Any) -> float:
    if value not in LEVELS:
        raise ValueError(f"{name} must be one of {', '.join(map(str, LEVELS))}, got {value!r}")
    return float(value)


# --------------------------------------------------------------------------------------------------------- what it says


class SelectiveAnswer:
    """What a `Selective` says of one object: the answer, and all attributes and items of the prediction.

    Attributes
    ----------
    answer : label or None
        The label that is answered; of numbers the (lower, upper) ends of an interval. None: it abstains.
    why : str
        Why it abstains, and where it has fallen silent what would make it speak again; empty for an answer.
    account : Account
        After this question.
    prediction : prediction, Outlook, or dict of predictions by name
        What the model says.

    Examples
    --------
    >>> import venn
    >>> model = venn.Selective(venn.Forecaster(["no", "yes"]))
    >>> model.predict_one([0.5]).answer is None
    True
    """

    __slots__ = ("account", "answer", "prediction", "why")

    def __init__(self, prediction: Any, choice: AnswerChoice, account: Account) -> None:
        self.prediction, self.account = prediction, account
        self.answer, self.why = choice

    def __getattr__(self, name: str) -> Any:
        if name in SelectiveAnswer.__slots__:  # of one that is being copied
            raise AttributeError(name)
        return getattr(self.prediction, name)

    def __getitem__(self, name: Any) -> Any:
        return self.prediction[name]

    def __repr__(self) -> str:
        said = f"answer {self.answer!r}" if not self.why else f"no answer: {self.why}"
        return f"SelectiveAnswer({said}; {self.prediction!r})"


class SelectiveAnswers:
    """What a `Selective` says of many objects: their answers, and the predictions in arrays.

    Attributes
    ----------
    answers : list
        As `SelectiveAnswer.answer`, of each object.
    whys : list of str
        Why it abstains, of each object.
    account : Account
        After all of them.
    prediction : block, Outlooks, or dict of blocks by name
        What the model says; this object has all its attributes and items.

    Examples
    --------
    >>> import venn
    >>> venn.Selective(venn.Forecaster(["no", "yes"])).predict_many([[0.5], [0.7]]).answers
    [None, None]
    """

    __slots__ = ("account", "answers", "prediction", "whys")

    def __init__(self, prediction: Any, choices: Sequence[AnswerChoice], account: Account) -> None:
        self.prediction, self.account = prediction, account
        self.answers, self.whys = [one.answer for one in choices], [one.why for one in choices]

    def __getattr__(self, name: str) -> Any:
        if name in SelectiveAnswers.__slots__:
            raise AttributeError(name)
        return getattr(self.prediction, name)

    def __getitem__(self, name: Any) -> Any:
        return self.prediction[name]

    def __len__(self) -> int:
        return len(self.answers)

    def __repr__(self) -> str:
        return f"SelectiveAnswers({len(self)} objects: {self.account})"


@saved
class Selective(TakesTurns, HasLabels, Saved):
    """Answers where it may, and abstains elsewhere, so that few of the answers that are given are wrong.

    It keeps an account. At every moment, **on any sequence of questions and labels**,

        wrong + waiting <= error x answered + allowance,

    where waiting are the answers whose label has not come: they count as wrong until it does. It answers only if this
    would hold with one more wrong answer. That is arithmetic: nothing is assumed of the data, of the model, or of when
    labels come. Nothing else is promised; in particular not how many questions are answered. After a change it may
    fall silent for good: `SelectiveAnswer.why` and `account.silence` then say why, and what would make it speak again.

    Which questions are answered first: those of the largest probability of the label (of sets, of the largest
    confidence). The threshold is the least one from which on, among the latest 1000 labelled questions, the errors
    that were seen and those that the forecast itself expects are both few enough: a share `error`, less where the
    account is nearly full, more where it has much left.

    `predict_one` counts: what it answers has been said. `learn_one` reveals the label of the earliest question that
    waits about an equal object; an object that was never asked about is only learned. In an `Online`, ids say which
    question a label belongs to, and a restart goes on with the same account.

    Parameters
    ----------
    model : Forecaster, predictor or Panel
        Of a panel "forecast" decides, or else its first predictor.
    error : float in (0, 1), default 0.05
        Share of the answers that may be wrong.
    allowance : float >= 1, default 5
        How many more may be wrong, so that it can begin.
    unknown : "wrong", "right" or "out", default "wrong"
        What an answer counts as whose question is given up: it was wrong, it was right, or it was never given. With
        labels by lot all questions are given up whose label is not drawn: with "out" the promise is about the others.
    width : float > 0, optional
        Where labels are numbers: an answer is an interval that is narrower than this, and it is wrong where the label
        lies outside.
    level : float, optional
        Of that interval: 0.01, 0.05, 0.1 or 0.2, and at most `error`. By default the largest of them.

    Attributes
    ----------
    account : Account
        The questions, answers, errors, and answers that wait, so far.

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described.

    Examples
    --------
    >>> import streams, venn
    >>> stream = streams.load("breast_cancer", shuffle=0).take(200)
    >>> model = venn.Selective(venn.Forecaster(stream.classes), error=0.02, allowance=2)
    >>> for x, y in stream:
    ...     said = model.predict_one(x)
    ...     model.learn_one(x, y)
    >>> model.account.kept, model.account.answered > 100
    (True, True)
    """

    learns = True

    def __init__(
        self, model: Any, error: float = 0.05, allowance: float = 5.0, *,
        unknown: Literal["wrong", "right", "out"] = "wrong", width: float | None = None, level: float | None = None,
    ) -> None:  # fmt: skip
        self.model, self._panel = model, panel_of(model)
        self.space = self._panel.space
        if width is not None and level is None:
            level = max((one for one in LEVELS if is_number(error) and one <= error), default=LEVELS[0])
        if (width is not None) != isinstance(self.space, Real):
            raise TypeError(f"width must be given where labels are numbers, and only there, got {width!r}")
        self.answering = Answering(error, allowance, unknown=unknown, width=width, level=level)
        self._numbers: dict[bytes, deque[int]] = {}  # of the questions that wait, by their object

    def _turns_with(self) -> Iterable[Any]:
        return (self.model,)

    @property
    def parameters(self) -> dict[str, Any]:
        """The model as it is, and what was chosen."""
        return {"model": self.model, **self.answering.parameters}

    @property
    @asks
    def state(self) -> dict[str, Any]:
        """The account, and which questions wait."""
        numbers = [(key, list(found)) for key, found in self._numbers.items()]
        return {"answering": self.answering.state, "numbers": numbers}

    @changes
    def restore(self, state: dict[str, Any]) -> None:
        """Take over an account."""
        checked_keys("state", state, self.state)
        self.answering.restore(state["answering"])
        self._numbers = {key: deque(found) for key, found in state["numbers"]}

    @property
    def account(self) -> Account:
        """The questions, answers, errors, and answers that wait, so far."""
        return self.answering.account

    @property
    def _columns(self) -> tuple[str, ...] | None:
        """Names of the columns that a given scorer was fitted to."""
        return names_among(self._panel.values())

    def _key(self, x: Any) -> bytes:
        """Return what equal objects share, in whatever form they come."""
        if self._columns is not None and not is_sparse(x):
            row = clean_row(x, None, self._columns, missing=True)
            cells = (row.cells if isinstance(row, TableRows) else row)[0].tolist()  # type: ignore[union-attr]
            return repr([None if is_gap(cell) else cell + 0.0 if is_number(cell) else cell for cell in cells]).encode()
        kept_object = copy_object(x)
        return encode_object(kept_object + 0.0 if type(kept_object) is np.ndarray else kept_object)  # no -0.0

    def _ask(self, x: Any, said: Any) -> AnswerChoice:
        by_name = said if isinstance(self.model, Panel) else {next(iter(self._panel)): said}
        key, number = self._key(x), self.answering.asked + 1
        choice = self.answering.ask(number, kept(by_name))
        self._numbers.setdefault(key, deque()).append(number)
        return choice

    @changes
    def predict_one(self, x: Any) -> SelectiveAnswer:
        """Return the answer to a question about an object, which counts from now on, and the prediction.

        Raises
        ------
        TypeError, ValueError
            For a bad object: nothing is counted.
        """
        said = self.model.predict_one(x)
        choice = self._ask(x, said)
        return SelectiveAnswer(said, choice, self.account)

    @changes
    def predict_many(self, X: Any) -> SelectiveAnswers:
        """Return the answers to questions about (n, d) objects, as `predict_one` gives them one after the other.

        Raises
        ------
        TypeError, ValueError
            X is not as described: nothing is counted.
        """
        if has_methods(self.model, "predict_many"):
            rows, said = clean_rows(X, None, self._columns, missing=True), self.model.predict_many(X)
            each = [said.one(i) if hasattr(said, "one") else _of_row(said, i) for i in range(len(rows))]
        else:
            rows = clean_rows(X, None, self._columns, missing=True)
            said = each = [self.model.predict_one(rows[i]) for i in range(len(rows))]
        return SelectiveAnswers(said, [self._ask(rows[i], one) for i, one in enumerate(each)], self.account)

    @changes
    def learn_one(self, x: Any, y: Label) -> None:
        """Learn one example; if a question about this object waits, its label has come.

        Raises
        ------
        TypeError, ValueError
            The model refuses the example: nothing is learned or counted.
        NotConverged
            A machine of the model fails: if a question waits, its label has come all the same.
        """
        self.space.check(y)
        try:
            self.model.learn_one(x, y)
        except (TypeError, ValueError):
            raise
        except Exception:
            self._reveal(x, y)
            raise
        self._reveal(x, y)

    @changes
    def learn_many(self, X: Any, y: Iterable[Label]) -> None:
        """Learn many examples, as `learn_one` would one after the other."""
        labels, rows = members("y", y, "labels"), clean_rows(X, None, self._columns, missing=True)
        if has_methods(self.model, "learn_many"):
            before, learned = getattr(self.model, "n", 0), None
            try:
                self.model.learn_many(X, labels)
            except Exception:  # those before the one that is refused may have been learned
                learned = getattr(self.model, "n", 0) - before
                raise
            finally:
                for i, label in enumerate(labels[:learned]):
                    self._reveal(rows[i], label)
            return
        if len(labels) != len(rows):
            raise ValueError(f"y must hold a label for each of {len(rows)} rows of X, got {len(labels)}")
        for i, label in enumerate(labels):
            self.learn_one(rows[i], label)

    @changes
    def give_up(self, x: Any) -> None:
        """Say that the label of the earliest question that waits about an equal object never comes.

        Raises
        ------
        ValueError
            No such question waits.
        """
        number = self._first(x)
        if number is None:
            raise ValueError(f"x must be an object about which a question waits, got {x!r}")
        self.answering.give_up(number)

    def _first(self, x: Any) -> int | None:
        """Return the number of the earliest question that waits about an equal object, and forget it."""
        key = self._key(x)
        waiting = self._numbers.get(key)
        if not waiting:
            return None
        number = waiting.popleft()
        if not waiting:
            del self._numbers[key]
        return number

    def _reveal(self, x: Any, y: Label) -> None:
        number = self._first(x)
        if number is not None:
            self.answering.reveal(number, y)


def _of_row(said: Any, i: int) -> Any:
    """Return the prediction for object i of a block, or those of blocks by name."""
    return {name: block[i] for name, block in said.items()} if isinstance(said, Mapping) else said[i]
