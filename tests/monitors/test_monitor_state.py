"""What a monitor keeps: it goes on from its state, refuses a damaged one, and begins anew in each period."""

import copy
import itertools
import pickle
from collections import deque

import numpy as np
import pytest
from scipy import stats
from test_monitor import CLASSES, KINDS, machine, predictions, run

import streams
import venn
from venn.monitors import OneClass, Power
from venn.monitors.evidence import Exchangeability
from venn.monitors.sums import Means
from venn.online.checkpoint import pack, unpack
from venn.prediction import Multiprobability, PredictionSet
from venn.smoothing import Smoothing

# -------------------------------------------------------------------------- state


@pytest.mark.parametrize("kind", KINDS)
def test_a_monitor_goes_on_from_its_state(kind):
    rng = np.random.default_rng(5)
    steps = [(prediction, CLASSES[rng.integers(3)]) for prediction in predictions(kind, rng, 90)]
    whole = venn.Monitor(CLASSES, window=16)
    for step in steps:
        whole.update(*step)
    first = venn.Monitor(CLASSES, window=16)
    for step in steps[:40]:
        first.update(*step)
    for monitor in unpack(pack(first)), pickle.loads(pickle.dumps(first)), copy.deepcopy(first):
        for step in steps[40:]:
            monitor.update(*step)
        assert pack(monitor) == pack(whole)
        assert monitor.snapshot() == whole.snapshot()


@pytest.mark.parametrize("kind", ["Multiprobability", "PredictionSet"])
def test_a_monitor_goes_on_after_a_step_of_a_record_that_it_refuses(kind):
    monitor, record = run(kind, 20)
    last, steps = run(kind, 20)[0].state["evidence"][-1].p_value, record.outcomes("it")
    with pytest.raises(ValueError, match=r"p-value of .* must lie in \[0, 1\]"):
        monitor.follow(
            steps._replace(probability=steps.probability * np.nan, row=steps.row * np.nan),
            record.kinds["it"],
            record.guaranteed["it"],
        )
    assert monitor.state["evidence"][-1].p_value == last
    other = copy.deepcopy(monitor)
    for prediction in predictions(kind, np.random.default_rng(1), 30):
        assert monitor.update(prediction, CLASSES[0]) == other.update(prediction, CLASSES[0])
    assert pack(monitor) == pack(other)


def test_damaged_states_are_refused():
    monitor, _ = run("Multiprobability", 20)
    good, other = monitor.state, venn.Monitor(CLASSES)
    before, means = pack(other), good["means"]
    stranger = Exchangeability(OneClass("other", 7), Power(), 0.1, 10)
    for bad in (
        {"means": Means(means.names, 5)},
        {"means": Means(means.names[1:], means.window)},  # a compiled function writes into all columns
        {"predictions": "Oracle"},
        {"predictions": "PredictionSet"},
        {"guaranteed": 3},
        {"evidence": list(good["evidence"])},
        {"evidence": (3,)},
        {"evidence": (stranger,)},
        {"truths": deque([3])},
        {"truths": deque([-1])},
        {"truths": None},
        {"count": -1},
        {"alarms": deque([3])},
        {"begins": (2, 1)},
        {"anew": 1.0},
        {"calibration": good["accuracy"]},
    ):
        with pytest.raises(ValueError, match="must"):
            other.restore(good | bad)
        assert pack(other) == before
    held = means.state
    for bad in ({"sums": np.ones(1)}, {"ring": held["ring"][1:]}, {"ring": held["ring"] * np.nan}, {"n": 19}):
        with pytest.raises(ValueError, match="must"):
            means.fresh().restore(held | bad)
    other.restore(good)
    assert other.snapshot() == monitor.snapshot()


def test_a_replay_tells_its_monitors():
    stream = streams.gaussians(60, seed=2)
    shared = machine()
    panel = venn.Panel(venn=venn.TransductiveVenn(shared), conformal=venn.Conformal(shared))
    monitors = {name: venn.Monitor(stream.classes) for name in panel}
    record = venn.replay(stream, panel, monitors=monitors)
    for name in panel:
        assert pack(monitors[name]) == pack(record.monitor(name))
    with pytest.raises(ValueError, match="monitors must have names of predictors, venn, conformal, got 'platt'"):
        venn.replay(stream, panel, monitors={"platt": monitors["venn"]})


def coins(n, seed):
    """Return predictions that claim .7 for "yes", and labels of which .7 are so."""
    labels = np.where(np.random.default_rng(seed).random(n) < 0.7, "yes", "no").tolist()
    return [Multiprobability(np.array([[0.3, 0.7]] * 2), ["no", "yes"])] * n, labels


@pytest.mark.parametrize("restarts", [(40,), (1, 100)])
def test_bets_begin_anew_in_each_period_with_a_share_of_the_level(restarts):
    said, labels = coins(150, 1)
    labels[110:] = ["no"] * 40
    whole = venn.Monitor(["no", "yes"], level=0.03, restarts=restarts)
    rung, expected = [], []
    for begin, end in itertools.pairwise((0, *restarts, 150)):
        one = venn.Monitor(["no", "yes"], level=0.03 / (len(restarts) + 1))  # one for each period
        one._smoothing = Smoothing(0)
        one._smoothing.at = lambda n, begin=begin: Smoothing(0).at(begin + n)
        for step in range(begin, end):
            rung += [(alarm.step, alarm.detector) for alarm in whole.update(said[step], labels[step])]
            expected += [(begin + alarm.step, alarm.detector) for alarm in one.update(said[step], labels[step])]
    assert rung == expected != []
    assert {detector for _, detector in rung} >= {"Ville", "DeviationBand"}


@pytest.mark.parametrize("n", [39, 40, 41, 99])
def test_a_monitor_that_begins_anew_goes_on_from_its_state_to_the_last_bit(n):
    said, labels = coins(120, 2)
    labels[20:] = ["no"] * 100
    monitor = venn.Monitor(["no", "yes"], restarts=(40, 99))
    for step in range(n):
        monitor.update(said[step], labels[step])
    other = unpack(pack(monitor))
    for step in range(n, 120):
        assert other.update(said[step], labels[step]) == monitor.update(said[step], labels[step])
    assert pack(other) == pack(monitor)
    assert other.verdict() == monitor.verdict()


def test_what_is_proved_of_means_is_asked_of_the_present_period_only():
    said, labels = coins(600, 3)
    labels[:60] = ["no"] * 60  # worse than chance explains, but before the training
    quiet = {"level": 0.01, "sources": ()}
    assert venn.Monitor(["no", "yes"], **quiet).update_many(said[:300], labels[:300]) == ()
    one, period = venn.Monitor(["no", "yes"], **quiet), venn.Monitor(["no", "yes"], restarts=(60,), **quiet)
    for monitor in (one, period):
        monitor.update_many(said[:300], labels[:300])
    assert (one.verdict().state, period.verdict().state) == ("doubtful", "as claimed")


class KeepsItsLevel(venn.Monitor):
    """A broken variant: each period has the whole level."""

    def _begin(self, kind, guaranteed):
        split, self.level = self.level, self.level * (len(self.restarts) + 1)
        super()._begin(kind, guaranteed)
        self.level = split


@pytest.mark.parametrize("broken", [False, True])
def test_all_periods_together_ring_falsely_as_seldom_as_they_say(broken):
    level, streams_, restarts = 0.5, 60, tuple(range(40, 640, 40))
    make = KeepsItsLevel if broken else venn.Monitor
    rang = 0
    for seed in range(streams_):
        monitor = make(["no", "yes"], level=level, run_length=1e9, restarts=restarts, window=1)
        for p in np.random.default_rng(seed).random(640):
            if monitor.update(PredictionSet(np.array([p, 0.5]), ["no", "yes"], guaranteed="error rate"), "no"):
                rang += 1
                break
    assert (rang > stats.binom.isf(1e-5, streams_, level)) == broken


class NotedMonitor(venn.Monitor):
    """A user's own, whose constructor passes on what it does not know."""

    def __init__(self, classes, note="", **kwargs):
        super().__init__(classes, **kwargs)
        self.note = note


class PassesAll(venn.Monitor):
    """Another one, with nothing of its own."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)


@pytest.mark.parametrize(("kind", "own"), [(NotedMonitor, {"note": "mine"}), (PassesAll, {})])
def test_a_subclass_that_passes_arguments_on_gives_fresh_ones(kind, own):
    """`Restarting`, `Adaptive` and `together` ask their monitors for fresh ones."""
    monitor = kind(CLASSES, level=0.2, window=7, **own)
    for prediction in predictions("Forecast", np.random.default_rng(1), 5):
        monitor.update(prediction, CLASSES[0])
    again = monitor.fresh(seed=5)
    assert type(again) is kind
    assert repr(again) == repr(monitor).replace("seed=0", "seed=5")
    assert {name: getattr(again, name) for name in own} == own
    assert (again.level, again.window, again.n) == (0.2, 7, 0)
