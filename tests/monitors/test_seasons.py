"""What comes and goes, and other shares of the classes: found where the predicted label is as often right as it says.

Each stream has one number x in [0, 1], and the predictor is a Venn predictor whose categories are fifths of x. So what
it says is valid while examples are exchangeable, and quick to compute.
"""

import re
from math import log

import numpy as np
import pytest
from scipy.stats import binom

import venn
from venn.monitors.change_point import Trace
from venn.prediction import ClassIntervals, Forecast, Multiprobability, PredictionSet

CLASSES = ("no", "yes")
N, CALM = 2000, 1000


def chances(name, x):
    """Return P(yes | x) at each step: of `calm`, .2 to .8; `season`: the log odds go up and down by 1."""
    step = np.arange(len(x))
    odds = 2.8 * (x - 0.5)
    if name == "season":
        odds += np.sin(2 * np.pi * step / 500)
    elif name == "share":  # "yes" from 50 to 80 %
        odds += log(4) * (step >= CALM)
    return 1 / (1 + np.exp(-odds))


def examples(name, seed, n=N):
    """Return the numbers and the labels, as codes."""
    rng = np.random.default_rng(seed)
    x = rng.random(n)
    return x, (rng.random(n) < chances(name, x)).astype(int)


def said(kind, counts, place, rng):
    """Return the prediction in a category with these counts of labels."""
    no, yes = counts[place]
    low, high = yes / (no + yes + 1), (yes + 1) / (no + yes + 1)
    if kind == "classes":
        return ClassIntervals([[1 - high, 1 - low], [low, high]], CLASSES)
    if kind == "row":
        return Multiprobability([[1 - low, low], [1 - high, high]], CLASSES)
    if kind == "point":
        return Forecast([1 - (low + high) / 2, (low + high) / 2], CLASSES)
    # Conformal: a label is the stranger the rarer it is in the category of its object.
    tau, ps = rng.random(), []
    for label in (0, 1):
        bag = counts.copy()
        bag[place, label] += 1
        shares = bag / np.maximum(bag.sum(axis=1, keepdims=True), 1)
        own = shares[place, label]
        ps.append((bag[shares < own].sum() + tau * bag[shares == own].sum()) / bag.sum())
    return PredictionSet(ps, CLASSES)


def steps(name, kind, seed, n=N):
    """Yield predictions and labels."""
    counts, rng = np.zeros((5, 2)), np.random.default_rng(1000 + seed)
    for x, y in zip(*examples(name, seed, n), strict=True):
        place = int(5 * x)
        yield said(kind, counts, place, rng), CLASSES[y]
        counts[place, y] += 1


def watched(name, kind, seed, n=N, **parameters):
    monitor = venn.Monitor(CLASSES, seed=seed, **parameters)
    for prediction, y in steps(name, kind, seed, n):
        monitor.update(prediction, y)
    return monitor


# ------------------------------------------------------------------------- they ring


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", ["classes", "row"])
@pytest.mark.parametrize("name", ["season", "share"])
def test_what_comes_and_goes_and_other_shares_ring(name, kind, seed):
    monitor = watched(name, kind, seed)
    assert monitor.count
    verdict = monitor.verdict()
    assert verdict.state in ("changed", "doubtful")
    assert "class 'yes' came in ." in verdict.reason
    if name == "share":
        assert monitor.alarms[0].step > CALM
        assert abs(verdict.since - CALM) < 200
    # The predicted label alone shows nothing: it is right as often as it says.
    assert watched(name, kind, seed, sources=()).verdict().state == "as claimed"


@pytest.mark.parametrize("name", ["season", "share"])
def test_of_point_forecasts_at_least_a_doubt(name):
    monitor, states = venn.Monitor(CLASSES), set()
    for prediction, y in steps(name, "point", 0):
        monitor.update(prediction, y)
        if monitor.n % 25 == 0:
            states.add(monitor.verdict().state)
    assert states & {"doubtful", "changed"}
    assert watched("calm", "point", 0).verdict().state == "as claimed"


def test_a_short_window_sees_what_cancels_in_a_long_one():
    """50 too many, then 50 too few, and so on: the sum over 1000 steps is nothing, that over 150 is not."""
    trace = Trace(True, 1000)
    for step in range(1000):
        trace.add(0.6 if step // 125 % 2 else -0.6)
    assert trace.departure(1000) == pytest.approx(0, abs=1e-9)
    assert trace.departure(125) == pytest.approx(2 * 125 * 0.6**2)
    told = trace.told(125, "class 'yes' came")
    assert told == "class 'yes' came in 1.00 of 125 steps, where .40 was claimed"


# --------------------------------------------------------- false alarms, as certified


@pytest.mark.parametrize("kind", ["classes", "row", "set"])
def test_false_changes_are_as_rare_as_certified(kind):
    """P("changed" ever in n steps) <= level + n / run_length; exact binomial test at .001, fixed seeds."""
    level, run_length, n, streams = 0.1, 5000, 300, 40
    count = sum(watched("calm", kind, 500 + s, n, level=level, run_length=run_length).count > 0 for s in range(streams))
    assert binom.sf(count - 1, streams, level + n / run_length) > 1e-3


@pytest.mark.parametrize("kind", ["row", "set"])
def test_false_doubts_by_the_latest_steps_are_as_rare_as_certified(kind):
    """At each step at most `level`, here .1, of all windows and sums together: exact binomial test at .001."""
    level, streams, count = 0.1, 40, 0
    for seed in range(streams):
        verdict = watched("calm", kind, 700 + seed, 300, level=level, run_length=1e9).verdict()
        count += (verdict.state, verdict.evidence) == ("doubtful", "latest steps")
    assert binom.sf(count - 1, streams, level) > 1e-3


# ------------------------------------------------------------------- reasons that fit


OF_EVENT = re.compile(r"in (1?\.\d+) of (\d+) steps, where (1?\.\d+) was claimed")
OF_RANKS = re.compile(r"are too (strange|regular): at most (\.\d+) in (1?\.\d+) of (\d+) steps")


def check(verdict):
    """Whatever is given as the reason stands on the other side of the claim, by more than chance."""
    event, ranks = OF_EVENT.search(verdict.reason), OF_RANKS.search(verdict.reason)
    if event:
        found, n, claimed = float(event[1]), int(event[2]), float(event[3])
        assert n * (found - claimed) ** 2 > 2 * (claimed * (1 - claimed) + 1 / n), verdict
    elif ranks:
        cut, found, n = float(ranks[2]), float(ranks[3]), int(ranks[4])
        assert (found > cut) == (ranks[1] == "strange"), verdict
        assert n * (found - cut) ** 2 > 2 * (cut * (1 - cut) + 1 / n), verdict
    else:
        assert "than chance explains" in verdict.reason or "which chance hardly explains" in verdict.reason, verdict


def too_regular(n):
    """Yield sets whose p-values of the true labels are too large from half of the steps on; their errors too few."""
    rng = np.random.default_rng(3)
    for step in range(n):
        p = rng.random()
        yield PredictionSet([0.0, p if step < n // 2 else p**0.4], CLASSES), "yes"


def exchanged(kind, n):
    """Yield what is right in .9, and then in .1."""
    rng = np.random.default_rng(4)
    for step in range(n):
        hit = rng.random() < (0.9 if step < n // 2 else 0.1)
        y = int(rng.random() < 0.5)
        p = np.where(np.arange(2) == y, 0.9, 0.1) if hit else np.where(np.arange(2) == y, 0.1, 0.9)
        if kind == "set":
            yield PredictionSet(rng.random() * np.where(p > 0.5, 1.0, 0.1), CLASSES), CLASSES[y]
        elif kind == "point":
            yield Forecast(p, CLASSES), CLASSES[y]
        else:
            yield Multiprobability([p, p], CLASSES), CLASSES[y]


CASES = {
    **{
        f"{name} {kind}": (steps, name, kind, 1) for name in ("season", "share") for kind in ("classes", "point", "set")
    },
    "too regular": (too_regular, 1200),
    **{f"exchanged {kind}": (exchanged, kind, 900) for kind in ("set", "point", "row")},
}


@pytest.mark.parametrize("case", CASES)
def test_no_reason_stands_on_the_side_of_the_claim(case):
    monitor, found = venn.Monitor(CLASSES), set()
    make, *given = CASES[case]
    for prediction, y in make(*given):
        monitor.update(prediction, y)
        if monitor.n % 10 == 0 or monitor.ringing:
            verdict = monitor.verdict()
            if verdict.state in ("changed", "doubtful"):
                found.add(verdict.state)
                check(verdict)
                assert verdict.reason in verdict.details
                about = verdict.detector.partition(" against the ")[2]
                named = {"true label": "ranks of the true labels", "predicted label": "predicted label"}
                assert verdict.state == "doubtful" or named.get(about, "") in verdict.reason
            else:
                assert not verdict.reason
    assert found or case == "season set"


def test_sets_that_miss_too_seldom_are_said_to_be_too_regular():
    """Not: "changed: its sets at level .05 miss the label in .02", and no more."""
    monitor = venn.Monitor(CLASSES)
    for prediction, y in too_regular(1200):
        monitor.update(prediction, y)
    verdict = monitor.verdict()
    assert verdict.state == "changed"
    assert verdict.reason.startswith("the ranks of the true labels (p-values) are too regular: at most .")
    assert re.search(r"miss the label in \.0[01]\d* of the \d+ since then", verdict.details)


def test_a_monitor_tells_whether_it_rings_now_and_since_when_the_change_is():
    monitor, rang = venn.Monitor(CLASSES), 0
    assert monitor.ringing is None
    for prediction, y in steps("share", "classes", 1):
        alarms = monitor.update(prediction, y)
        assert (monitor.ringing is not None) == bool(alarms)
        if alarms:
            rang += 1
            assert monitor.ringing == monitor.verdict().change
            again = monitor.fresh()
            again.restore(monitor.state)
            assert again.ringing == monitor.ringing
    assert rang


def test_objects_that_change_give_their_ranks_as_the_reason():
    drift, rng = venn.monitors.Drift(), np.random.default_rng(0)
    assert not drift.verdict().reason
    for step in range(450):
        drift.update(rng.normal(3 * (step >= 300), size=2))
    verdict = drift.verdict()
    check(verdict)
    assert "the ranks of objects among those before (p-values) are too strange: at most ." in verdict.details
    again = drift.fresh()
    again.restore(drift.state)
    assert again.verdict() == verdict
    with pytest.raises(ValueError, match="cases must be a list, got None"):
        again.restore(drift.state | {"cases": None})
