"""A run for the tests of page, report and metrics: ties, late labels, hostile names, a change."""

from functools import cache
from time import time
from typing import Any, NamedTuple

import numpy as np

from venn.monitors.alarms import Alarm
from venn.monitors.drift import Drift
from venn.monitors.episodes import Episodes, episodes_of
from venn.monitors.monitor import Monitor
from venn.online.chain import encode
from venn.online.journal import Journal, QuestionRow
from venn.online.watch import ENDED, EPISODES
from venn.prediction import ClassIntervals, Forecast, Multiprobability, Prediction, PredictionSet

HOSTILE = '<img src=x onerror="window.hacked=1">$$x$$'
CLASSES = ("no", "yes", HOSTILE)
CREATED = 1_700_000_000.0
STATES = ("as claimed", "too early to say", "changed", "doubtful", "silent")


def predictions(rng: np.random.Generator, kinds: str) -> dict[str, Prediction]:
    """Return one prediction of each kind asked for, of few different values, by name."""
    p = rng.choice([0.4, 0.6, 0.8])
    row = np.array([p, (1 - p) / 2, (1 - p) / 2])
    found: dict[str, Prediction] = {
        "venn": Multiprobability(np.array([row, 0.9 * row + 0.1 / 3, row]), CLASSES),
        "abers": ClassIntervals(np.array([[p - 0.1, p], [0.1, 0.3], [0.1, 0.2]]), CLASSES),
        "conformal": PredictionSet(rng.integers(0, 5, 3) / 4, CLASSES),
        "platt": Forecast(row, CLASSES),
    }
    return {name: found[name] for name in kinds.split()}


class Made(NamedTuple):
    """What a journal was made of."""

    said: list[dict[str, Prediction]]
    truths: list[str]
    told: dict[str, Monitor]


def write(
    path: Any, n: int, kinds: str = "venn abers conformal platt", *, pending: int = 3, expired: int = 1,
    created: float = CREATED, seed: int = 0, flip: int | None = None, watched: bool = True, evil: str = "",
) -> Made:  # fmt: skip
    """Write the journal of n answers, one event a second, with a point of the curves every 8; return its content.

    `evil` ends the names of predictors; if there is any, it is also the name of what watches the objects.
    """
    rng = np.random.default_rng(seed)
    names = [name + evil for name in kinds.split()]
    told = {name: Monitor(CLASSES, window=50) for name in names}
    journal = Journal(path)
    header = {
        "classes": list(CLASSES), "names": names, "alone": len(names) == 1, "created": created, "start": 0,
        "predictors": {name: f"{name}(<b>)" for name in names},
        "monitors": {name: "Monitor()" for name in (*names, *([evil] if evil else []))} if watched else {},
    }  # fmt: skip
    journal.open(header)
    said, truths = [], []
    event = 0
    with journal:
        for step in range(1, n + 1):
            made = dict(zip(names, predictions(rng, kinds).values(), strict=True))
            y = 0 if rng.random() < 0.7 else 1
            if flip is not None and step > flip:
                y = 2
            journal.ask(QuestionRow(event + 1, f"{HOSTILE}{step}", step - 1, b"", encode(made), created + event + 1))
            journal.answer(step, event + 2, event + 1, created + event + 2, y)
            event += 2
            for name, monitor in told.items():
                for number, alarm in enumerate(monitor.update(made[name], CLASSES[y]), monitor.count):
                    journal.ring(name, number, step, created + event, alarm)
            said.append(made)
            truths.append(CLASSES[y])
            if step % 8 == 0:
                journal.draw(step, created + event, {name: figures(one, watched) for name, one in told.items()})
        for number in range(pending + expired):
            event += 1
            made = dict(zip(names, predictions(rng, kinds).values(), strict=True))
            question = QuestionRow(event, number, n, b"", encode(made), created + event)
            journal.ask(question)
            if number < expired:
                event += 1
                journal.expire(number + 1, event, event - 1, created + event)
        for name, one in told.items():
            seen = one.snapshot()
            journal.show(name, n, created + event, {"told": seen, "monitor": seen if watched else None})
        if evil:
            journal.show(evil, n, created + event, {"told": None, "monitor": Drift().snapshot()})
            journal.ring(evil, 1, 1, created + event, Alarm(1, evil, 9.0, f"{evil} Theorem: {evil}", evil))
    journal.close()
    return Made(said, truths, told)


def figures(monitor: Monitor, watched: bool = True) -> dict[str, Any]:
    """Return what a point of the curves says of one predictor."""
    seen = monitor.snapshot()
    evidence = {f"{one['detector']}: {one['name']}": one.get("log10") for one in seen["evidence"]}
    return {"curves": seen["curves"], "window": seen["window"], "evidence": evidence if watched else {}}


def truthful(rng: np.random.Generator, kinds: str) -> tuple[dict[str, Prediction], int]:
    """Return predictions of each kind that keep what they claim, and the code of the label."""
    p = rng.choice([0.7, 0.8, 0.9])
    row = np.array([p, (1 - p) / 2, (1 - p) / 2])
    y = int(rng.choice(3, p=row))
    p_values = rng.random(3) * np.array([1.0, 0.1, 0.1])
    p_values[y] = rng.random()
    found: dict[str, Prediction] = {
        "venn": Multiprobability(np.array([row, 0.97 * row + 0.01, 0.97 * row + 0.01]), CLASSES),
        "abers": ClassIntervals(
            np.array([[p - 0.02, p + 0.02], *[[(1 - p) / 2 - 0.02, (1 - p) / 2 + 0.02]] * 2]), CLASSES
        ),
        "conformal": PredictionSet(p_values, CLASSES),
        "platt": Forecast(row, CLASSES),
    }
    return {name: found[name] for name in kinds.split()}, y


def write_state(path: Any, state: str, kinds: str = "abers conformal", *, late: int = 40, pace: float = 60.0,
    after: int | None = None,
) -> None:  # fmt: skip
    """Write the journal of a run in a state: "as claimed", "too early to say", "changed", "doubtful" or "silent".

    Labels come `late` questions after theirs; from one question to the next `pace` seconds pass; the last event was
    now, or a long time ago. `after`: a second later the run ended, after so many events more than the file holds.
    """
    made, last, episodes = lived("as claimed" if state == "silent" else state, kinds, late)
    n, names = len(made) - late, kinds.split()
    end = time() - (20 * pace if state == "silent" else 0.0)
    begun = end - len(made) * pace
    journal = Journal(path)
    journal.open({
        "classes": list(CLASSES), "names": names, "alone": len(names) == 1, "created": begun, "start": 0,
        "predictors": {name: f"{name}()" for name in names}, "monitors": {name: "Monitor()" for name in names},
    })  # fmt: skip
    event, asked = 0, []
    with journal:
        for number, one in enumerate(made, 1):
            now = begun + number * pace
            event += 1
            asked.append(event)
            step = max(number - late, 1) - 1
            journal.ask(QuestionRow(event, f"order-{10_000 + number}", step, b"", one.said, now))
            if number <= late:
                continue
            step, event = number - late, event + 1
            journal.answer(step, event, asked[step - 1], now, made[step - 1].y)
            for name, place, alarm in one.alarms:
                journal.ring(name, place, step, now, alarm)
            if one.drawn:
                journal.draw(step, now, one.drawn)
        for name, seen in last.items():
            journal.show(name, n, end, {"told": seen, "monitor": seen})
        if episodes:
            journal.show(EPISODES, n, end, [one.plain() for one in episodes])
        if after is not None:
            journal.reach(ENDED, {"time": end + 1, "events": event + after})
    journal.close()


class Fitted:
    """A fitted classifier of three columns, as somebody has one."""

    classes_ = np.array(["good", "fraud"])
    feature_names_in_ = np.array(["amount", "age", "items"], dtype=object)

    def predict_proba(self, X: Any) -> Any:
        """Return a row of probabilities for each object; `items` is not used."""
        rows = np.asarray(X, float)
        p = 1 / (1 + np.exp(-np.clip(1.5 * (rows[:, 0] - 20) / 5 + rows[:, 1], -500, 500)))
        return np.column_stack([p, 1 - p])


#: Runs of a fitted model: from which question on what is done to it; the rest is as before.
RUNS = {
    "began anew": {900: "flipped"}, "below the floor": {900: "noise"}, "doubtful twice": {600: "items", 900: ""},
    "several episodes": {500: "unit", 900: "", 1200: "flipped"},
}  # fmt: skip


def write_run(path: Any, run: str, n: int = 1500, late: int = 40, pace: float = 60.0) -> None:
    """Write the journal of a real run of `RUNS` over n questions, a minute each; labels come late; it ends now."""
    from unittest.mock import patch

    import venn

    rng, now = np.random.default_rng(1), [time() - n * pace]
    with patch("time.time", lambda: now[0]):
        floor = 0.7 if run == "below the floor" else None
        online = venn.Online(venn.Forecaster(scorer=Fitted(), floor=floor), journal=path)
        done, wait = "", []
        for i in range(1, n + 1):
            now[0] += pace
            done = RUNS[run].get(i, done)
            amount, age = 20 + 5 * rng.normal(), rng.normal()
            good = rng.random() < 1 / (1 + np.exp(-1.5 * (amount - 20) / 5 - age))
            good ^= done == "flipped" or (done == "noise" and rng.random() < 0.4)
            unit = 785 if done == "unit" else 1
            items = float(rng.integers(1, 6)) + (9 if done == "items" else 0)
            online.ask({"amount": amount * unit, "age": age, "items": items}, f"order-{10_000 + i}")
            wait.append("good" if good else "fraud")
            if i > late:
                online.answer(f"order-{10_000 + i - late}", wait[i - late - 1])
        online._close(False)  # noqa: SLF001 - as if it went on


class Lived(NamedTuple):
    """A question, its label, and what its answer brought."""

    said: bytes
    y: int
    alarms: list[tuple[str, int, Alarm]]
    drawn: dict[str, Any]


@cache
def lived(state: str, kinds: str, late: int) -> tuple[list[Lived], dict[str, Any], Episodes]:
    """Return what happens in a run in a state, whenever it does, what its monitors show at the end, and its changes."""
    n = {"too early to say": 90}.get(state, 1500)
    rng = np.random.default_rng(3)
    told = {name: Monitor(CLASSES) for name in kinds.split()}
    asked, found = [], []
    for number in range(1, n + late + 1):
        made, y = truthful(rng, kinds)
        change = {"changed": 900, "doubtful": 1460}.get(state, n + late)
        if number > change:
            y = (y + 1) % 3 if state == "changed" or rng.random() < 0.8 else y
        asked.append((made, y))
        alarms: list[tuple[str, int, Alarm]] = []
        step = number - late
        if step > 0:
            for name, monitor in told.items():
                said, truth = asked[step - 1]
                rung = monitor.update(said[name], CLASSES[truth])
                alarms += [(name, place, alarm) for place, alarm in enumerate(rung, monitor.count)]
        drawn = {name: figures(one) for name, one in told.items()} if step > 0 and step % 8 == 0 else {}
        found.append(Lived(encode(made), y, alarms, drawn))
    return found, {name: one.snapshot() for name, one in told.items()}, episodes_of(told)
