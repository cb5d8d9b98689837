"""One contract for all that is brought up to date step by step: martingales, detectors, bounds, the monitor."""

import copy
import math
import pickle
import sys

import numpy as np
import pytest
from conftest import public

import venn
from venn.online.checkpoint import pack, unpack

NOT_NUMBERS = ("x", None, [0.5], True)
OUTSIDE = (math.nan, 1.2, -1.5, math.inf)


def martingale(make):
    return make, lambda rng: (float(rng.random()),), [*((bad,) for bad in (*NOT_NUMBERS, *OUTSIDE))]


def jumper():
    return venn.monitors.SimpleJumper(0.1)


def set_monitor_step(rng):
    return venn.PredictionSet(rng.random(2), ("a", "b")), "ab"[rng.integers(2)]


# How to make one, a good step, bad steps.
RUNNING = {
    "Power": martingale(venn.monitors.Power),
    "SimpleJumper": martingale(jumper), "CompositeJumper": martingale(venn.monitors.CompositeJumper),
    "CellJumper": martingale(venn.monitors.CellJumper),
    "Ville": martingale(lambda: venn.monitors.Ville(jumper(), 0.2)),
    "CUSUM": martingale(lambda: venn.monitors.CUSUM(jumper(), 3)),
    "ShiryaevRoberts": martingale(lambda: venn.monitors.ShiryaevRoberts(jumper(), 30)),
    "DeviationBand": (
        venn.monitors.DeviationBand,
        lambda rng: (float(rng.uniform(-1, 1)),),
        [(bad,) for bad in (*NOT_NUMBERS, *OUTSIDE)],
    ),
    "ForwardEProcess": (
        venn.monitors.ForwardEProcess,
        lambda rng: (bool(rng.random() < 0.5), 0.25, 0.75),
        [(0.5, 0.1, 0.2), (1, 0.5, 0.4), (1, math.nan, 0.5), (1, 0.5, "x"), (None, 0.1, 0.2), (1, -0.1, 0.2)],
    ),
    **{
        name: (
            getattr(venn.monitors, name),
            lambda rng: (float(rng.random()),),
            [("x",), (None,), (math.nan,), (1.2,), (-1,)],
        )
        for name in ("StitchedBound", "BettingBound")
    },
    "FloorWatch": (
        lambda: venn.monitors.FloorWatch(0.4, memory=50),
        lambda rng: (float(rng.random()),),
        [("x",), (math.nan,), (1.2,), (-1,), (0.5, "x"), (0.5, 1.5)],
    ),
    "Monitor": (
        lambda: venn.Monitor(("a", "b"), window=8),
        set_monitor_step,
        [(0.5, "a"), (venn.PredictionSet(np.ones(2), ("a", "b")), "c"), (venn.PredictionSet(np.ones(2), (0, 1)), "a")],
    ),
}  # fmt: skip


def stepped(name, n, seed=0, subject=None):
    make, step, _ = RUNNING[name]
    subject = make() if subject is None else subject
    rng = np.random.default_rng(seed)
    for _ in range(n):
        subject.update(*step(rng))
    return subject


@pytest.mark.parametrize("name", RUNNING)
def test_copies_pickles_and_states_go_on_alone(name):
    step = RUNNING[name][1]
    for n in (0, 1, 30):
        subject = stepped(name, n)
        restored = unpack(pack(subject))
        assert (pack(restored), repr(restored)) == (pack(subject), repr(subject))
        twins = [copy.deepcopy(subject), pickle.loads(pickle.dumps(subject)), restored]
        rng = np.random.default_rng(1)
        for arguments in [step(rng) for _ in range(n)]:
            subject.update(*arguments)
            for twin in twins:
                twin.update(*arguments)
                assert pack(twin) == pack(subject)
        assert subject.n == restored.n == 2 * n


@pytest.mark.parametrize("name", RUNNING)
def test_a_refused_step_changes_nothing(name):
    subject = RUNNING[name][0]()
    for n in (0, 5):
        stepped(name, n, subject=subject)
        before = pack(subject)
        for bad in RUNNING[name][2]:
            with pytest.raises((TypeError, ValueError), match=r"must|got"):
                subject.update(*bad)
            assert pack(subject) == before


@pytest.mark.parametrize("name", RUNNING)
def test_damaged_states_are_refused(name):
    subject, other = stepped(name, 10), RUNNING[name][0]()
    good, before = subject.state, pack(other)
    broken = [good | {key: {}} for key in good]  # the last ones after others have been read
    for memory in [good["memory"]] if "memory" in good else []:
        wrong = [memory[:-1], np.append(memory, 0.0), memory.astype(np.float32), memory.tolist(), None, memory + np.nan]
        broken += [{"memory": one} for one in (*wrong, *(np.append(n, memory[1:]) for n in (-1.0, 1e300)))]
    for bad in (None, 3, {}, {key: good[key] for key in list(good)[1:]}, good | {"more": 1}, *broken):
        with pytest.raises((TypeError, ValueError), match="must"):
            other.restore(bad)
        assert pack(other) == before
    other.restore(good)
    assert pickle.dumps(other.state) == pickle.dumps(good)


def shown(subject):
    """What a row of the path of many steps says: what is certified, or the logarithm of the evidence."""
    pairs = ("total", "radius"), ("lower", "upper")
    found = next((pair for pair in pairs if hasattr(subject, pair[0])), ("log",))
    return np.squeeze([getattr(subject, name) for name in found])


@pytest.mark.parametrize("name", [name for name in RUNNING if name not in ("Monitor", "FloorWatch")])
def test_many_steps_are_the_loop(name):
    make, step, _ = RUNNING[name]
    rng = np.random.default_rng(2)
    values, *more = (np.array(column) for column in zip(*(step(rng) for _ in range(300)), strict=True))
    whole, parts, loop = make(), make(), make()
    path = whole.update_many(values, *more)
    path = path[0] if isinstance(path, tuple) else path  # the other one is the alarms
    for part in (slice(1), slice(1, 1), slice(1, 100), slice(100, 300)):
        parts.update_many(values[part], *(column[part] for column in more))
    for row, arguments in zip(path, zip(values.tolist(), *more, strict=True), strict=True):
        loop.update(*arguments)
        assert np.array_equal(row, shown(loop))
    before = pack(whole)
    assert before == pack(parts) == pack(loop)
    for bad in (values[:, None], ["x"], [0.5, math.nan], [0.5, 1.5], 0.5, None):
        with pytest.raises((TypeError, ValueError), match=r"must|got"):
            whole.update_many(bad, *more)
        assert pack(whole) == before


@pytest.mark.parametrize("name", RUNNING)
def test_the_repr_can_be_typed_and_fresh_ones_have_seen_nothing(name):
    subject = stepped(name, 10)
    again = eval(repr(subject), public())
    assert repr(again) == repr(subject)
    assert again.n == 0
    if name != "Monitor":
        assert pack(subject.fresh()) == pack(again)


@pytest.mark.parametrize("name", RUNNING)
def test_memory_does_not_grow(name):
    sizes = []
    subject = RUNNING[name][0]()
    for _ in range(3):
        stepped(name, 400, subject=subject)
        sizes.append(len(pickle.dumps(subject)))
    # Numbers of more digits, and a last alarm, may take a few bytes.
    assert sizes[2] - sizes[1] < 200, sizes
    assert sys.getsizeof(subject) < 10_000
