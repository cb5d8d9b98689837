"""The bench of detectors: what it counts, and that river's stand on it beside ours."""

import numpy as np
import pytest

import streams
import venn
from venn.monitors import BenchRow, ClassDrift, Drift, FloorWatch, Scenario, bench, together

CLASSES = ("no", "yes")
SAID = venn.Forecast(np.array([0.1, 0.9]), CLASSES)
SUDDEN = Scenario("sudden", [([0.0], SAID, "yes")] * 60 + [([0.0], SAID, "no")] * 60, 60)


class At:
    """Rings at given steps."""

    def __init__(self, *steps):
        self.steps, self.n = steps, 0

    def ring(self, x, said, y):
        self.n += 1
        return self.n in self.steps


def test_false_alarms_delays_and_misses_are_counted():
    none = Scenario("none", SUDDEN.steps)
    assert bench(lambda: At(3, 60, 64, 70), [SUDDEN, none, SUDDEN]) == [
        BenchRow("sudden", 2, 120, 4, (4, 4), 0),
        BenchRow("none", 1, 120, 4, (), 0),
    ]
    (row,) = bench(lambda: At(60), [SUDDEN])
    assert (row.false, row.delay, row.missed) == (1, None, 1)


@pytest.mark.parametrize(
    "make",
    [
        lambda: FloorWatch(0.8), lambda: venn.Monitor(CLASSES), lambda: together(["a"], CLASSES, objects=Drift()),
        pytest.param("ADWIN", id="ADWIN"), pytest.param("PageHinkley", id="PageHinkley"),
    ],
)  # fmt: skip
def test_each_sort_of_detector_finds_a_sudden_change(make):
    if isinstance(make, str):
        name, drift = make, pytest.importorskip("river.drift")
        settings = {"threshold": 10} if name == "PageHinkley" else {}
        (row,) = bench(lambda: getattr(drift, name)(**settings), [SUDDEN])
    else:
        (row,) = bench(make, [SUDDEN])
    assert (row.false, row.missed) == (0, 0)
    assert 0 < row.delay < 60


def test_of_several_predictions_each_monitor_sees_its_own():
    wrong = venn.Forecast(np.array([0.9, 0.1]), CLASSES)
    both = Scenario("none", [([0.0], {"good": SAID, "bad": wrong}, "yes")] * 100)
    assert bench(lambda: together(["good"], CLASSES), [both])[0].false == 0
    assert bench(lambda: together(["good", "bad"], CLASSES), [both])[0].false > 0
    assert bench(lambda: FloorWatch(0.8), [both])[0].false == 0  # the first one counts


def test_what_is_no_detector_is_refused():
    for make, scenarios, message in (
        (3, [SUDDEN], "detector must be a function or a class"),
        (lambda: object(), [SUDDEN], "detector must make a monitor"),
        (lambda: At(1), [SUDDEN.steps], "scenarios must be of Scenario"),
    ):
        with pytest.raises(TypeError, match=message):
            bench(make, scenarios)


def test_a_stream_that_keeps_its_concept_is_one():
    stream = streams.gaussians(4000, 2, seed=3)
    shifted = streams.covariate_shift(stream, 1000)
    known = {x.tobytes(): P for x, P in zip(stream.X, stream.probabilities, strict=True)}
    assert all(np.array_equal(known[x.tobytes()], P) for x, P in zip(shifted.X, shifted.probabilities, strict=True))
    stuck = streams.stuck_sensor(stream, 1000, 1)
    assert set(stuck.X[999:, 1]) == {stream.X[999, 1]}
    assert np.array_equal(stuck.X[:, 0], stream.X[:, 0])
    assert type(stuck) is streams.Stream
    late = streams.gradual(stream, streams.flip_labels(stream, 0), 1000, 1000)
    own = stream.y == late.y
    assert own[:1000].all()
    assert not own[2000:].any()
    assert 0.4 < own[1000:2000].mean() < 0.6


def test_what_watches_classes_sees_objects_and_labels():
    """A class that comes seldom from one step on: predictions alone keep their promise."""
    rng = np.random.default_rng(0)
    seldom = [
        ([float(rng.normal())], SAID, CLASSES[int(rng.random() < (0.5 if n < 200 else 0.95))]) for n in range(400)
    ]
    (row,) = bench(lambda: ClassDrift(CLASSES), [Scenario("shares", seldom, 200)])
    assert (row.false, row.missed) == (0, 0)
