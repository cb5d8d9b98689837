"""One key of a fleet: its model, its evidence, the questions that wait, and what each event does to them."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from venn.labels import Real
from venn.machines.objects import Query
from venn.monitors.key_evidence import KeyEvidence
from venn.monitors.shared_level import trainings
from venn.monitors.sources import usual_sources
from venn.online import checkpoint
from venn.online.chain import decode, decode_object, encode, encode_object
from venn.online.journal import JournalError
from venn.online.outlook import FORECAST
from venn.online.panel import Panel, panel_of
from venn.online.restart import NEAR, apart
from venn.online.run import REFUSALS
from venn.prediction import ERROR_RATE, Floats, Prediction
from venn.predictors.shared import SharedForecast
from venn.saved import described
from venn.scale.fleet_store import ANSWER, ASK, EXPIRE, FleetEvent, KeyRow


class KeyQuestion(NamedTuple):
    """A question of a key that waits for its answer."""

    number: int
    step: int  #: answers that had been learned when it was asked
    x: Any
    predictions: dict[str, Prediction]


class Foretold(NamedTuple):
    """The predictions for an object since the last example."""

    content: bytes  #: of the object, and of what the shared model says
    question: Query  #: the object, with all that was computed for it
    prior: Floats | None  #: by the shared model
    predictions: Any


class KeyRun:
    """One key: its model, its evidence, and the questions that wait.

    Parameters
    ----------
    key : str
    model : Predictor or Panel
        It has seen nothing.
    shared : SharedForecast, optional
        The expert of its forecast that says what the shared model says.
    """

    def __init__(self, key: str, model: Any, shared: SharedForecast | None) -> None:
        self.key, self.panel, self.alone = key, panel_of(model), not isinstance(model, Panel)
        self._trains = any(trainings(one) for one in self.panel.values())
        self.evidence = KeyEvidence(self.panel.space, seed=zlib.crc32(key.encode()), trains=self._trains)
        self.waiting: dict[int | str, KeyQuestion] = {}
        self.asked = self.answered = self.expired = 0
        self.right: float | None = None if isinstance(self.panel.space, Real) else 0.0
        self.kept = -1  # events when its state was kept last
        self._bet_on: str | None = None
        self._shared = shared
        self._foretold: Foretold | None = None

    @property
    def events(self) -> int:
        """Number of events so far."""
        return self.asked + self.answered + self.expired

    def row(self, before: KeyRow, now: float) -> KeyRow:
        """Return its row: counts, evidence, times."""
        standing = self.evidence.standing
        return KeyRow(
            before.number, before.key, self.asked, self.answered, self.expired, self.right, *standing, before.named, now
        )

    # -------------------------------------------------------------------- events

    def predict(self, x: Any, content: bytes, prior: Callable[[Any], Floats | None]) -> Foretold:
        """Return the predictions for an object; nothing is learned."""
        known, said, told = self._foretold, None, content
        if self._shared is not None:  # other keys may have taught the shared model meanwhile
            said = self._shared.said = prior(x)
            told += b"" if said is None else said.tobytes()
        if known is None or known.content != told:
            if self._shared is not None:
                panel: Any = self.panel
                panel.ask_anew()
            question = Query(x)
            known = self._foretold = Foretold(told, question, said, self.panel.predict_one(question))
        return known

    def ask(self, id: int | str, x: Any, predictions: dict[str, Prediction]) -> None:
        """Let a question wait for its answer."""
        self.asked += 1
        self.waiting[id] = KeyQuestion(self.asked, self.answered, x, predictions)

    def prepare(self, question: Query, y: Any, asked: KeyQuestion | None) -> Any:
        """Return what the model notes before it learns; raise what learning would raise."""
        late = 0 if asked is None else self.answered - asked.step
        return self.panel.prepare(question, y, None if asked is None else asked.predictions, late)

    def learn(self, question: Query, y: Any, now: Any, said: Any, prepared: Any) -> Exception | None:
        """Learn an example; return what failed. `now` are the predictions now, `said` those of the question."""
        failure: Exception | None = None
        # What is proved of p-values holds from one training to the next.
        bet_on = self._bet_on if self._trains else None
        anew = bool(bet_on) and 1 in trainings(self.panel[bet_on or ""])
        try:
            self.panel.learn_one(question, y, prepared)
        except REFUSALS as error:
            failure = error
        self._foretold = None
        self.answered += 1
        self.count(now, said, y)
        if anew:
            self.evidence.begin_anew()
        return failure

    def count(self, now: Any, said: Any, y: Any) -> None:
        """Update counts and evidence by a label."""
        if self._bet_on is None:
            self._bet_on = _bet_on(now, self.panel.space.labels)
        self.evidence.update(now[self._bet_on] if self._bet_on else None, y)
        if self.right is not None:
            first = next(iter(said.values()))
            self.right += getattr(first, "index", None) == self.panel.space.encode(y)

    def happen(self, event: FleetEvent) -> None:
        """Repeat an event."""
        space = self.panel.space
        self._foretold = None
        prior = None if event.prior is None else np.frombuffer(event.prior).reshape(1, -1)
        if event.what == EXPIRE:
            del self.waiting[event.id]  # type: ignore[arg-type]
            self.expired += 1
            return
        x = self.waiting[event.id].x if event.what == ANSWER else decode_object(event.x or b"")  # type: ignore[index]
        content = encode_object(x)
        foretold, said = self.predict(x, content, lambda _: prior), None
        found = foretold.predictions
        if event.said is not None and encode(found) != event.said:
            said = decode(event.said, tuple(self.panel), space)
            off = apart(said, decode(encode(found), tuple(self.panel), space))
            if off > NEAR:
                raise JournalError(
                    f"event {event.event} must have the predictions that this program makes with these parameters, and "
                    "has others"
                )
        if event.what == ASK:
            assert event.id is not None
            self.ask(event.id, x, found if said is None else said)
            return
        y = space.decode(event.y)
        asked = self.waiting.pop(event.id) if event.what == ANSWER else None  # type: ignore[arg-type]
        self.asked += asked is None
        prepared = self.prepare(foretold.question, y, asked)
        self.learn(foretold.question, y, found, (said or found) if asked is None else asked.predictions, prepared)

    # --------------------------------------------------------------------- state

    @property
    def state(self) -> dict[str, Any]:
        """All that it has learned, and the questions that wait."""
        return {
            "panel": self.panel, "evidence": self.evidence, "asked": self.asked, "answered": self.answered,
            "expired": self.expired, "right": self.right, "bet_on": self._bet_on,
            "waiting": [
                (id, one.number, one.step, encode_object(one.x), encode(one.predictions))
                for id, one in self.waiting.items()
            ],
        }  # fmt: skip

    def restore(self, content: bytes, models: Sequence[Any]) -> None:
        """Take over a state, or raise ValueError and change nothing."""
        state = checkpoint.unpack(content, models, copied=False)
        if not isinstance(state, dict) or state.keys() != self.state.keys():
            raise ValueError("it is no state of a key")
        if described(state["panel"]) != described(self.panel):
            raise ValueError(f"it holds {state['panel']!r}, where make gives {self.panel!r}")
        self.panel, self.evidence, self._bet_on = state["panel"], state["evidence"], state["bet_on"]
        self.asked, self.answered, self.expired = state["asked"], state["answered"], state["expired"]
        self.right = state["right"]
        space, names = self.panel.space, tuple(self.panel)
        self.waiting = {
            id: KeyQuestion(number, step, decode_object(x), decode(said, names, space))
            for id, number, step, x, said in state["waiting"]
        }
        if self._shared is not None:
            forecast: Any = self.panel[FORECAST]
            self._shared = next(one for one in forecast.experts if type(one) is SharedForecast)
        self.kept = self.events


def _bet_on(said: Any, labels: Any) -> str:
    """Return the name of the prediction whose p-values are bet on; empty if none has any."""
    guaranteed = {name: one.guaranteed for name, one in said.items()}
    sets = [name for name, what in guaranteed.items() if what == ERROR_RATE]
    return next(iter(sets + [name for name, what in guaranteed.items() if usual_sources(what, labels)]), "")
