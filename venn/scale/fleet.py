"""Thousands of streams, each with a model of its own, and one answer: which of them have changed."""

from __future__ import annotations

import logging
import os
import re
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from math import log
from pathlib import Path
from threading import RLock
from typing import Any, TypeVar

import numpy as np

from venn.monitors.episodes import Episode
from venn.monitors.verdict import CHANGED, Moment, Verdict
from venn.online import checkpoint
from venn.online.chain import copy_object, decode_object, encode, encode_object
from venn.online.figures import frame
from venn.online.forecaster import Forecaster
from venn.online.journal import JournalError, checked_id
from venn.online.outlook import FORECAST
from venn.online.panel import Panel
from venn.online.run import REFUSALS
from venn.parameters import flag, fraction, has_methods, integer, members, path_of
from venn.prediction import Floats
from venn.predictors.distribution_mixture import quantiles_of
from venn.predictors.expert_mixture import said_by
from venn.predictors.shared import SharedForecast
from venn.saved import described
from venn.scale.fleet_key import KeyRun
from venn.scale.fleet_store import ANSWER, ASK, EXPIRE, LEARN, PRIOR, FleetEvent, Folder, KeyRow, Memory
from venn.scale.key_changes import RATE, FleetVerdict, KeyChange, changes, columns_of, verdict_of
from venn.show.notify import BEGAN, teller

TOLD = "venn told of names"  # beside the positions of sources
ENDED = {ANSWER: "is answered", EXPIRE: "was given up"}
ANSWERED, GIVEN_UP = "answered", "given up"
EVERY = 500  # events of a key after which its state is kept
LONGEST = 200  # letters of a key
CONTROL = re.compile("[\\x00-\\x1f\\x7f-\\x9f\\u2028\\u2029]")  # they would break lines and pages that name a key
log_of = logging.getLogger("venn")
Call = TypeVar("Call", bound=Callable[..., Any])
Given = TypeVar("Given")


def in_turn(call: Call) -> Call:
    """Let one thread at a time in."""

    @wraps(call)
    def taking_turns(self: Any, *given: Any, **named: Any) -> Any:
        with self.turn:
            return call(self, *given, **named)

    return taking_turns  # type: ignore[return-value]


def cleaned(x: Any) -> tuple[Any, bytes]:
    """Return an object as a question keeps it, and its content."""
    kept = copy_object(x)
    return kept, encode_object(kept)


def checked_key(key: Any) -> str:
    """Return a key, or say what is wrong with it."""
    if not isinstance(key, str):
        raise TypeError(f"key must be text, got {key!r}")
    if not 1 <= len(key) <= LONGEST:
        raise ValueError(f"key must have 1 to {LONGEST} letters, got {len(key):,}")
    try:
        key.encode()
    except UnicodeEncodeError:
        raise ValueError(f"key must be text that UTF-8 can write, got {key!r}") from None
    if CONTROL.search(key):
        raise ValueError(f"key must have no control characters, got {key!r}")
    return str(key)


class Fleet:
    """Many streams with a model for each key. One verdict names the keys that have changed.

    A key is made when it is first seen. Of those in memory, the ones that were not used for longest are closed: into
    the folder, or without one into a few bytes. Each key is as if it were alone: what is proved of its predictions is
    proved of its own examples. What is merged is the evidence that they have changed, see `verdict`.

    With a folder the process may be killed at any moment: made again, the fleet goes on where it was, to the last bit.
    A folder belongs to one process. To divide keys among several, let each have the folders of some partitions: see
    `venn.scale.follow_partitions`.

    Parameters
    ----------
    make : callable
        ``make(key)`` returns the predictor or panel of a key before it has learned anything, always with the same
        parameters: what is kept is compared with it.
    folder : str or path, optional
        Made if there is none. By default all is lost with the process.
    open : int >= 1, default 1000
        So many keys are in memory as models.
    prior : Predictor or Panel, optional
        A shared model of the rows of all keys. Each key's model, a `Forecaster`, has what it says as one more expert of
        its forecast; so the first forecasts of a key are those of the fleet. Intervals and sets stay each key's own.
    rate : float in (0, 1), default 0.1
        At which keys are named by `on_alarm`, and in what `answer` returns.
    most : int >= 1, optional
        How many keys there will be at most, if that is known: see `verdict`.
    on_alarm : callable, command or address, optional
        Who is told when a key is named first, as for `Online`. The `Episode` has the key as its only watcher.
    durable : bool, default False
        Whether each call reaches the disk before it counts; else a loss of power may lose the last ones as a whole.
    every : int >= 1, default 500
        After so many events of a key its state is kept; about as many are learned again when it is opened after a kill.

    Attributes
    ----------
    folder : Path or None

    Raises
    ------
    JournalError
        Another process has the folder, it holds something else, or it cannot be read or written.
    TypeError, ValueError
        A parameter is not as described.

    See Also
    --------
    venn.by_group : one predictor for all, where keys obey one law.

    Examples
    --------
    >>> import numpy as np, venn
    >>> def make(key):
    ...     return venn.Conformal(venn.LeastSquaresSVM(venn.Linear(), C=1, classes=["no", "yes"]))
    >>> fleet, rng = venn.Fleet(make), np.random.default_rng(0)
    >>> for step in range(120):
    ...     for key in ("a", "b", "c"):
    ...         turned = key == "b" and step >= 60
    ...         x = rng.normal(size=2)
    ...         prediction = fleet.predict_one(key, x)
    ...         named = fleet.learn_one(key, x, "yes" if (x[0] > 0) != turned else "no")
    >>> fleet.verdict().names, fleet.verdict(ever=0.01).names
    (('b',), ('b',))
    """

    def __init__(
        self,
        make: Callable[[str], Any],
        folder: str | os.PathLike[str] | None = None,
        open: int = 1000,
        *,
        prior: Any = None,
        rate: float = RATE,
        most: int | None = None,
        on_alarm: Any = None,
        durable: bool = False,
        every: int = EVERY,
    ) -> None:
        if not callable(make):
            raise TypeError(f"make must be a function of the key, got {make!r}")
        self.turn = RLock()
        self._make, self._most_open = make, integer("open", open, 1)
        self._rate, self._every = fraction("rate", rate), integer("every", every, 1)
        self._most = None if most is None else integer("most", most, 1)
        if prior is not None and not has_methods(prior, "predict_one", "learn_one"):
            raise TypeError(f"prior must be a predictor, or None, got {prior!r}")
        self._prior = prior
        durable = flag("durable", durable)
        self._teller = teller("on_alarm", on_alarm, log_of.warning)
        self._owner, self._closed = os.getpid(), False
        self._store: Memory = Memory() if folder is None else Folder(path_of("folder", folder), durable)
        self._open: OrderedDict[int, KeyRun] = OrderedDict()  # last used comes last
        self._touched: dict[int, KeyRow] = {}  # rows of keys from before the transaction
        self._depth = 0
        self._broken: set[int] = set()
        try:
            self._begin()
            self._tell()  # names that nobody heard of because a process died
        except BaseException:
            self._store.close()
            raise

    def _begin(self) -> None:
        self._rows = self._store.keys()
        self._numbers = {row.key: place for place, row in enumerate(self._rows)}
        self._untold: list[KeyChange] = []  # named in the present transaction
        told = {*(self._store.position(TOLD) or ())}
        self._untold += [one for row in self._rows if row.named and row.key not in told for one in changes([row])]
        self._learned = 0  # rows that the shared model has learned
        if self._prior is not None:
            self._models = checkpoint.models(self._prior)
            self._start = checkpoint.pack(self._prior)
            self._read_prior()

    @property
    def folder(self) -> Path | None:
        """Where it is kept."""
        return self._store.path

    @property
    def connection(self) -> Any:
        """The open database of its folder, for tables beside its own; None without one."""
        return self._store.connection

    def __repr__(self) -> str:
        where = "in memory" if self.folder is None else f"in {str(self.folder)!r}"
        answered = sum(row.answered for row in self._rows)
        return f"Fleet({len(self._rows):,} keys, {answered:,} answers, {len(self._open):,} open, {where})"

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[str]:
        return iter([row.key for row in self._rows])

    def __contains__(self, key: object) -> bool:
        return key in self._numbers

    # --------------------------------------------------------------------- keys

    def _check_open(self) -> None:
        if os.getpid() != self._owner:
            raise JournalError("a fleet must be used by the process that made it, got a call in a forked one")
        if self._closed:
            raise JournalError("this fleet is closed: make it again to go on")

    def _fresh(self, key: str) -> KeyRun:
        model, shared = self._make(key), None
        if self._prior is not None:
            if not isinstance(model, Forecaster):
                raise TypeError(
                    f"make must return a Forecaster, for the prior is an expert of its forecast, got {model!r}"
                )
            shared = SharedForecast(model.space)
            model = model.joined_by(shared)
        return KeyRun(key, model, shared)

    def _run(self, key: Any) -> tuple[int, KeyRun]:
        """Return the place of a key and its run, opened where necessary; a new one begins with its first event."""
        self._check_open()
        place = self._numbers.get(key) if isinstance(key, str) else None
        if place is None:
            return len(self._rows), self._fresh(checked_key(key))
        run_found = self._open.get(place)
        if run_found is not None:
            self._open.move_to_end(place)
            return place, run_found
        if place in self._broken:
            raise JournalError(f"key {key!r} was interrupted, and is kept nowhere: begin it anew under another name")
        row = self._rows[place]
        run = self._fresh(key)
        try:
            content = self._store.state(row.number)
            if content is not None:
                run.restore(content, checkpoint.models(run.panel))
            for event in self._store.since(row.number):
                run.happen(event)
        except (ValueError, TypeError, LookupError) as error:
            raise JournalError(f"key {key!r} cannot be gone on with: {error}") from error
        if (run.asked, run.answered, run.expired) != (row.asked, row.answered, row.expired):
            raise JournalError(f"key {key!r} cannot be gone on with: events are missing")
        self._put(place, run)
        return place, run

    def _put(self, place: int, run: KeyRun) -> None:
        while len(self._open) >= self._most_open:
            old = next(iter(self._open))
            self._keep(old)
            del self._open[old]
        self._open[place] = run

    def _add(self, place: int, run: KeyRun) -> None:
        """Take a new key in."""
        row = KeyRow(place + 1, run.key, right=run.right, time=time.time())
        self._store.add(row)
        self._put(place, run)
        self._rows.append(row)
        self._numbers[run.key] = place

    def _keep(self, place: int) -> None:
        """Keep the state of an open key, if something has happened since."""
        run = self._open[place]
        if run.events != run.kept:
            self._store.keep(self._rows[place].number, run.events, checkpoint.pack(run.state))
            run.kept = run.events

    def _tried(self, place: int, call: Callable[..., Given], *given: Any) -> Given:
        """Return what a call with a key returns; let refusals pass, after any other error the key is read again."""
        try:
            return call(*given)
        except REFUSALS as error:
            if isinstance(error, JournalError):
                self._drop(place)
            raise
        except BaseException:
            self._drop(place)
            raise

    def _drop(self, place: int) -> None:
        self._open.pop(place, None)
        if self.folder is None and place < len(self._rows):
            self._broken.add(place)

    # -------------------------------------------------------------------- prior

    def _read_prior(self) -> None:
        content = self._store.state(PRIOR)
        self._prior, self._learned = checkpoint.unpack(self._start, self._models), 0
        if content is not None:
            state = checkpoint.unpack(content, self._models)
            if described(state["model"]) != described(self._prior):
                raise JournalError(f"prior must be that of the folder, {state['model']!r}, got {self._prior!r}")
            self._prior, self._learned = state["model"], state["learned"]
        for event in self._store.since(PRIOR):
            self._teach(decode_object(event.x or b""), self._prior.space.decode(event.y))

    def _foretell(self, x: Any) -> Floats:
        """Return the shared model's probabilities for an object."""
        said = self._prior.predict_one(x)
        if isinstance(self._prior, Panel):
            said = said[FORECAST] if FORECAST in said else next(iter(said.values()))
        classes = self._prior.classes
        each = said_by(said) if classes else quantiles_of(said)
        return np.array(each if len(each) == 1 else each.mean(axis=0, keepdims=True), np.float64)

    def _teach(self, x: Any, y: Any) -> None:
        try:
            self._prior.learn_one(x, y)
        except REFUSALS as error:
            log_of.warning("the shared model has not learned an example: %s", error)
        self._learned += 1

    def _share(self, x: Any, content: bytes, y: Any, code: Any, now: float) -> None:
        """Teach the shared model an example of a key."""
        self._teach(x, y)
        event = FleetEvent(self._learned, LEARN, None, content, code, None, None, now)
        self._store.log(PRIOR, event)
        if self._learned % self._every == 0:
            self._keep_prior()

    def _keep_prior(self) -> None:
        if self._prior is not None and self.folder is not None:
            state = {"model": self._prior, "learned": self._learned}
            self._store.keep(PRIOR, self._learned, checkpoint.pack(state))

    # ------------------------------------------------------------------- events

    @in_turn
    def predict_one(self, key: str, x: Any) -> Any:
        """Predict the label of a key's object; nothing is kept, and no answer is awaited.

        Parameters
        ----------
        key : str of 1 to 200 letters
        x : object, as the key's model takes it

        Raises
        ------
        TypeError, ValueError
            The key or the object is not as described.
        """
        return self._predicted(key, [cleaned(x)])[0]

    def _predicted(self, key: Any, objects: Iterable[tuple[Any, bytes]]) -> list[Any]:
        self._check_open()
        place, run = self._run(key)  # a new one is not kept: a key begins with its first event
        return self._tried(place, self._predictions_for, run, objects)

    def _predictions_for(self, run: KeyRun, objects: Iterable[tuple[Any, bytes]]) -> list[Any]:
        return [self._for_user(run, run.predict(*x, self._foretell).predictions) for x in objects]

    @staticmethod
    def _for_user(run: KeyRun, predictions: Any) -> Any:
        return next(iter(predictions.values())) if run.alone else predictions

    @in_turn
    def ask(self, key: str, x: Any, id: int | str | None = None) -> Any:
        """Predict the label of a key's object; the question waits for its answer.

        Parameters
        ----------
        key : str of 1 to 200 letters
        x : object, as the key's model takes it
        id : int or str, optional
            The answer will name the question by it. By default the number of the key's question, from 1.

        Raises
        ------
        TypeError, ValueError
            For a bad key, object or id, or an id of a question of this key that waits. In a folder also one that is
            answered or given up: so a message that a sender repeats is not learned twice. Nothing happened.
        JournalError
            The folder cannot be written, and the call had no effect; or the fleet is closed.
        """
        kept, content = cleaned(x)
        with self.transaction():
            place, run = self._run(key)
            return self._tried(place, self._ask, place, run, id, kept, content)

    def _ask(self, place: int, run: KeyRun, id: int | str | None, x: Any, content: bytes) -> Any:
        id = run.asked + 1 if id is None else checked_id(id)
        if id in run.waiting:
            raise ValueError(f"id must be a new one, got {id!r}, which waits for its answer")
        if place < len(self._rows) and (ended := self._store.ended(self._rows[place].number, id)) is not None:
            raise ValueError(f"id must be a new one, got {id!r}, which {ENDED[ended]}")
        found = run.predict(x, content, self._foretell)
        said = encode(found.predictions)
        run.ask(id, x, found.predictions)
        self._write(place, run, ASK, id, content, None, said, found.prior)
        return self._for_user(run, found.predictions)

    @in_turn
    def answer(self, key: str, id: int | str, y: Any) -> tuple[KeyChange, ...]:
        """Reveal the label of a question of a key, and learn it.

        Returns
        -------
        tuple of KeyChange
            The keys that are named now and never were before: not always this one alone.

        Raises
        ------
        TypeError, ValueError
            No question of this id waits at this key, the label is none, or the example is refused. Nothing happened.
        """
        with self.transaction():
            place, run = self._known(key, id)
            failure = self._tried(place, self._answer, place, run, id, y)
            named = self._named(place)
        if failure is not None:
            raise failure
        return named

    def _answer(self, place: int, run: KeyRun, id: int | str, y: Any) -> Exception | None:
        asked = run.waiting[id]
        content = encode_object(asked.x)
        found = run.predict(asked.x, content, self._foretell)
        code = run.panel.space.encode(y)
        prepared = run.prepare(found.question, y, asked)
        del run.waiting[id]
        failure = run.learn(found.question, y, found.predictions, asked.predictions, prepared)
        now = self._write(place, run, ANSWER, id, None, code, None, found.prior)
        if self._prior is not None:
            self._share(asked.x, content, y, code, now)
        return failure

    def _known(self, key: Any, id: Any) -> tuple[int, KeyRun]:
        """Return the place and the run of a key with a question that waits."""
        checked = checked_id(id)
        if checked_key(key) not in self._numbers:
            raise ValueError(f"key must be one that was asked about, got {key!r}")
        place, run = self._run(key)
        if checked not in run.waiting:
            ended = self._store.ended(self._rows[place].number, checked)
            which = "" if ended is None else f", which {ENDED[ended]}"
            raise ValueError(f"id must be that of a question of {key!r} that waits, got {id!r}{which}")
        return place, run

    @in_turn
    def expire(self, key: str, id: int | str) -> None:
        """Give up a question of a key: its answer will be refused.

        Raises
        ------
        TypeError, ValueError
            No question of this id waits at this key.
        """
        with self.transaction():
            place, run = self._known(key, id)
            del run.waiting[checked_id(id)]
            run.expired += 1
            self._tried(place, self._write, place, run, EXPIRE, id, None, None, None, None)

    @in_turn
    def learn_one(self, key: str, x: Any, y: Any) -> tuple[KeyChange, ...]:
        """Learn an example of a key, object and label at once.

        Returns
        -------
        tuple of KeyChange
            As of `answer`.

        Raises
        ------
        TypeError, ValueError
            For a bad key, object or label. Nothing happened.
        """
        kept, content = cleaned(x)
        with self.transaction():
            place, run = self._run(key)
            failure = self._tried(place, self._learn, place, run, kept, content, y)
            named = self._named(place)
        if failure is not None:
            raise failure
        return named

    def _learn(self, place: int, run: KeyRun, x: Any, content: bytes, y: Any) -> Exception | None:
        code = run.panel.space.encode(y)
        found = run.predict(x, content, self._foretell)
        prepared = run.prepare(found.question, y, None)
        said = encode(found.predictions)
        run.asked += 1
        failure = run.learn(found.question, y, found.predictions, found.predictions, prepared)
        now = self._write(place, run, LEARN, None, content, code, said, found.prior)
        if self._prior is not None:
            self._share(x, content, y, code, now)
        return failure

    def _write(
        self, place: int, run: KeyRun, what: int, id: Any, x: Any, y: Any, said: Any, prior: Floats | None
    ) -> float:
        """Store an event; return its time."""
        now = time.time()
        if place == len(self._rows):
            self._add(place, run)
        before = self._rows[place]
        self._touched.setdefault(place, before)
        row = self._rows[place] = run.row(before, now)
        told = None if prior is None else prior.tobytes()
        self._store.write(row, FleetEvent(run.events, what, id, x, y, said, told, now))
        if run.events - max(run.kept, 0) >= self._every:
            self._keep(place)
        return now

    # ------------------------------------------------------------------- blocks

    def _grouped(self, keys: Iterable[str], X: Any) -> tuple[list[tuple[Any, bytes]], dict[str, list[int]]]:
        """Return the objects, cleaned, and for each key the positions of its rows."""
        each = members("keys", keys, "texts, one for each row")
        if hasattr(X, "iloc"):
            X = X.to_dict("records")
        elif type(X) is np.ndarray and X.ndim == 2 and X.dtype.kind in "fiub":
            X = np.asarray(X, np.float64)
        objects = [cleaned(X[i]) for i in range(len(X))]
        if len(each) != len(objects):
            raise ValueError(f"keys must be one for each of {len(objects)} rows of X, got {len(each)}")
        found: dict[str, list[int]] = {}
        for i, key in enumerate(each):
            found.setdefault(key if type(key) is str and key in self._numbers else checked_key(key), []).append(i)
        return objects, found

    @in_turn
    def predict_many(self, keys: Iterable[str], X: Any) -> list[Any]:
        """Return the predictions for rows of many keys, in their order; nothing is learned.

        Parameters
        ----------
        keys : sequence of n str
        X : (n, d) numbers, sequence of n objects, or data frame of pandas

        Raises
        ------
        TypeError, ValueError
            As by `predict_one`, or the numbers of keys and rows differ.
        """
        objects, found = self._grouped(keys, X)
        said: list[Any] = [None] * len(objects)
        for key, places in found.items():
            for i, one in zip(places, self._predicted(key, [objects[i] for i in places]), strict=True):
                said[i] = one
        return said

    @in_turn
    def learn_many(self, keys: Iterable[str], X: Any, y: Iterable[Any]) -> tuple[KeyChange, ...]:
        """Learn rows of many keys: each key learns its own in their order, as by `learn_one`.

        Keys are named when all rows have been learned. If a row is refused, no row counts; without a folder, or where
        a transaction of your own goes on after the refusal, the rows before it count.

        Parameters
        ----------
        keys : sequence of n str
        X : (n, d) numbers, sequence of n objects, or data frame of pandas
        y : sequence of n labels

        Returns
        -------
        tuple of KeyChange
            As of `answer`.

        Raises
        ------
        TypeError, ValueError
            As by `learn_one` for one of the rows, or the numbers of keys, rows and labels differ.
        """
        objects, found = self._grouped(keys, X)
        labels = members("y", y, "labels")
        if len(labels) != len(objects):
            raise ValueError(f"y must hold a label for each of {len(objects)} rows of X, got {len(labels)}")
        order = list(found.items())
        if self._prior is not None:  # it learns from all keys, in this order
            order = sorted(((key, [i]) for key, places in order for i in places), key=lambda one: one[1])
        failure: Exception | None = None
        with self.transaction():
            for key, places in order:
                place, run = self._run(key)
                for i in places:
                    failure = self._tried(place, self._learn, place, run, *objects[i], labels[i]) or failure
            named = self._named()
        if failure is not None:
            raise failure
        return named

    # ------------------------------------------------------------------- naming

    def _named(self, place: int | None = None) -> tuple[KeyChange, ...]:
        """Return the keys that are named now for the first time."""
        if place is not None:
            row, before = self._rows[place], self._touched.get(place)
            # Each named key needs evidence of at least 1 / rate.
            if row.named or row.log_e < -log(self._rate) or (before is not None and before.log_e == row.log_e):
                return ()
        found = verdict_of(self._rows, rate=self._rate, most=self._most).changed
        new = tuple(one for one in found if not self._rows[self._numbers[one.key]].named)
        for one in new:
            at = self._numbers[one.key]
            self._touched.setdefault(at, self._rows[at])
            row = self._rows[at] = self._rows[at]._replace(named=one.answered)
            self._store.write(row, None)
        self._untold += new
        return new

    def _tell(self) -> None:
        """Notify of the keys that the last transaction named, once it counts."""
        untold, self._untold = self._untold, []
        if not untold:
            return
        if self._teller is not None:
            self._tell_of(untold)
        self._store.reach(TOLD, [*(self._store.position(TOLD) or ()), *(one.key for one in untold)])

    def _tell_of(self, untold: Sequence[KeyChange]) -> None:
        verdict = self.verdict()
        for one in untold:
            at = Moment(one.answered)
            named = sum(row.named > 0 for row in self._rows)
            reason = (
                f"its e-value is {10 ** min(one.evidence, 300):.3g}, one of {named} named among {len(self._rows)} keys"
            )
            episode = Episode(
                named, Moment(max(one.since, 1)), at, at, (one.key,), one.kind, (), (), reason, 1, claims=True
            )
            said = Verdict(
                CHANGED, one.since, None, "p-values", "e-BH", f"{CHANGED}: {one}; {verdict}", predictor=one.key
            )
            self._teller.told("fleet" if self.folder is None else str(self.folder), BEGAN, episode, said)

    @in_turn
    def verdict(self, rate: float | None = None, ever: float | None = None) -> FleetVerdict:
        """Return which keys have changed.

        Each key bets against the claim that its examples come in random order, see `KeyEvidence`, and keeps the largest
        capital S that it has had. With `rate`, keys are named by `e_bh` on A(S): of K keys the k with the largest
        e-values, the largest k such that each has at least K / (k rate). With `ever`, they are named by `holm` on
        1 / S, which takes more evidence.

        Theorem, however the keys depend on each other. With `rate`: the expected share of wrong names among those named
        is at most `rate`, at any moment, also one that is chosen because of what has come. With `ever`: the probability
        that a key is ever named that has not changed is at most `ever`. A key that has not changed is one whose
        examples are exchangeable, with a model for which the theorems of `Monitor` hold; where it trains, bets begin
        anew. The number of keys must not depend on what they say: it is fixed from the beginning on by `most`, or from
        when no more come. A key that is named remains so as long as no others come; each new key
        raises the bar a little, unless `most` has counted it already.

        Parameters
        ----------
        rate : float in (0, 1), default 0.1
        ever : float in (0, 1), optional
            Instead of `rate`.

        Raises
        ------
        TypeError, ValueError
            Both are given, or one is not as described.
        """
        return verdict_of(self._rows, rate, ever, self._most)

    @in_turn
    def frame(self, backend: str | None = None) -> Any:
        """Return what is known of all keys, one row for each, in the order in which they came.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}, optional
            By default it is a dict of arrays.

        Returns
        -------
        dict of str to array, or data frame
            ``key``; ``asked``, ``answered``, ``expired``; ``since``, ``kind`` and ``named``, the answer after which it
            was named first, 0 if it was not; ``accuracy`` of what was said, NaN of numbers; ``log10_e`` and
            ``log10_p``, of its e-value and of its p-value; ``time`` of its last event, in seconds since 1970.

        Raises
        ------
        ValueError, ImportError
            The backend is none of these, or not installed.
        """
        columns = columns_of(self._rows)
        if backend is None:
            return columns
        return frame({name: values.tolist() for name, values in columns.items()}, backend)

    @in_turn
    def model(self, key: str) -> Any:
        """Return the model of a key, to look at; it is valid until other keys are used.

        Raises
        ------
        KeyError
            There is no such key.
        """
        if key not in self._numbers:
            raise KeyError(f"key: there is no {key!r} in this fleet of {len(self._rows):,}")
        run = self._run(key)[1]
        return next(iter(run.panel.values())) if run.alone else run.panel

    @in_turn
    def pending(self, key: str) -> tuple[int | str, ...]:
        """Return the ids of a key's questions that wait, oldest first; none of an unknown key."""
        return tuple(self._run(key)[1].waiting) if key in self._numbers else ()

    @in_turn
    def ended(self, key: str, id: int | str) -> str | None:
        """Return how a question of a key has ended, "answered" or "given up"; None if it has not.

        Also None if there was no such question, and without a folder, where closed questions are not kept.
        """
        self._check_open()
        place = self._numbers.get(key)
        found = None if place is None else self._store.ended(self._rows[place].number, checked_id(id))
        return None if found is None else ANSWERED if found == ANSWER else GIVEN_UP

    # ------------------------------------------------------------- transactions

    @contextmanager
    def transaction(self) -> Iterator[Fleet]:
        """Let everything inside count together, or, if the process dies, not at all.

        If an exception leaves the block nothing of it counts; without a folder what was learned stays.
        """
        with self.turn:
            self._check_open()
            if self._depth:
                yield self
                return
            self._depth, self._touched, self._untold = 1, {}, []
            keys, learned = len(self._rows), self._learned
            try:
                with self._store.transaction():
                    yield self
            except BaseException:
                self._undo(keys, learned)
                raise
            finally:
                self._depth = 0
            self._tell()

    def _undo(self, keys: int, learned: int) -> None:
        """Return to the state in the store."""
        for place in range(len(self._rows) - 1, keys - 1, -1):
            row = self._rows[place]
            if self.folder is None and row.events:
                break
            self._open.pop(place, None)
            del self._rows[place], self._numbers[row.key]
        if self.folder is None:
            return
        for place, row in self._touched.items():
            if place < keys:
                self._rows[place] = row
            self._open.pop(place, None)
        if self._learned != learned:
            self._read_prior()

    @in_turn
    def reach(self, source: str, position: Any) -> None:
        """Keep how far a source has been read, in the transaction with its events."""
        self._check_open()
        self._store.reach(source, position)

    @in_turn
    def position(self, source: str) -> Any:
        """Return how far a source had been read; None before its start, or without a folder."""
        self._check_open()
        return self._store.position(source)

    @in_turn
    def sync(self) -> None:
        """Keep the states of all open keys, and let everything reach the disk."""
        self._check_open()
        with self.transaction():
            for place in list(self._open):
                self._keep(place)
            self._keep_prior()
        self._store.sync()

    @in_turn
    def close(self) -> None:
        """Keep all states, and let others have the folder. Harmless when repeated."""
        if self._closed:
            return
        if self._depth:
            raise JournalError("a fleet must be closed after its transaction, got a call within it")
        try:
            self.sync()
        finally:
            self._closed = True
            self._store.close()
            if self._teller is not None:
                self._teller.close()

    def __enter__(self) -> Fleet:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
