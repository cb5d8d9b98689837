"""Arguments that nobody should give: refused in words that name the parameter, without a warning, whatever they are."""

import contextlib
import sys
import warnings

import numpy as np
import pytest

import streams
import venn
from tools import refusals

#: What no user calls: its argument comes from our own parts.
OURS = ("SetScorecard.add(", "Scorecard.add(")
ZERO_D = np.array(0.5)
TWO = np.zeros((2, 2))
RAGGED = [[1.0], [1.0, 2.0]]
HUGE = 10**400
RECORD = venn.Record(["a", "b"], ["one"])
EXAMPLES = [([float(i)], i % 2) for i in range(20)]
PROBA, CLASSES = [0.5, 0.5], ["a", "b"]


def stream():
    return streams.from_arrays(TWO, [0, 1])


def machine():
    return venn.OneVsAllSVM(venn.RBF(1.0), 1.0, [0, 1])


#: What is called, and what the message begins with.
VALUES = {
    "bins": (lambda: venn.monitors.Scorecard(CLASSES, bins=HUGE), "bins must be at most"),
    "gaussians, classes": (lambda: streams.gaussians(5, HUGE), "classes must be at most"),
    "gaussians, shares": (lambda: streams.gaussians(5, HUGE, proportions=[1]), "classes must be at most"),
    "gaussians, spread": (lambda: streams.gaussians(50, spread=1e308), "spread must be so small"),
    "shuffle": (lambda: stream().shuffle(-1), "seed must be an integer >= 0"),
    "fill": (lambda: streams.Numeric("?", TWO), "fill must be a finite number"),
    "p0 and p1": (
        lambda: venn.maps.LogMerge().merge(PROBA, np.full((3, 4), 0.5)),
        "p0 and p1 must have the same shape",
    ),
    "epsilon": (lambda: venn.monitors.SetScorecard(CLASSES).sizes(TWO), "epsilon must be among"),
}
TYPES = {
    "ragged p-values": (lambda: venn.PredictionSet(RAGGED, CLASSES), "p_values must be numbers in"),
    "features": (lambda: streams.from_arrays(TWO, [0, 1], features=5), "features must be a sequence of str"),
    "declared classes": (
        lambda: streams.from_arrays(TWO, [0, 1], classes=ZERO_D),
        "classes must be a sequence of labels",
    ),
    "classes of a set": (lambda: venn.PredictionSet(PROBA, slice(3)), "classes must be a sequence of labels"),
    "classes of a forecast": (lambda: venn.Forecast(PROBA, ZERO_D), "classes must be a sequence of labels"),
    "smoothed": (lambda: venn.PredictionSet(PROBA, CLASSES, TWO), "smoothed must be True or False"),
    "names": (lambda: venn.Record(CLASSES, 5), "names must be a sequence of str"),
    "parameters": (lambda: venn.Record(CLASSES, ["one"], parameters=5), "parameters must be a mapping"),
    "monitors": (
        lambda: venn.replay(stream(), venn.TransductiveVenn(machine(), venn.Argmax()), monitors=TWO),
        "monitors must be a mapping",
    ),
    "progress": (lambda: venn.tune(EXAMPLES, [0, 1], progress=5), "progress must be a function"),
    "kind": (lambda: venn.tune(EXAMPLES, [0, 1]).machine(-1), "kind must be a class of machines"),
    "ragged truth": (lambda: venn.monitors.brier([0.5, 0.5], RAGGED), "truth must be 0 or 1"),
    "ragged proba": (lambda: venn.monitors.sharpness(RAGGED), "proba must be numbers"),
    "verdicts": (lambda: venn.monitors.worst({"a": 5}), "verdicts must be a mapping of names to verdicts"),
    "names of monitors": (lambda: venn.monitors.together(5, CLASSES), "names must be a sequence of str"),
    "rule": (lambda: venn.TransductiveVenn(machine(), venn.Argmax(), TWO), "rule must"),
}


@pytest.mark.parametrize(
    ("error", "case"), [*((ValueError, case) for case in VALUES), *((TypeError, case) for case in TYPES)]
)
def test_the_message_names_the_parameter(error, case):
    call, message = (VALUES if error is ValueError else TYPES)[case]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(error, match=f"^{message}"):
            call()


@pytest.mark.parametrize("name", refusals.CALLS)
def test_hostile_arguments_of_all_that_is_public_are_taken_or_refused_as_kept_and_nothing_changes(name):
    """Eight calls of each function and of the methods of each class; `python -m tools.campaign` makes more."""
    tally = refusals.called(name)
    assert [failure for failure in tally.failures if not failure[0].startswith(OURS)] == []
    kept, found = refusals.kept().get(name), tally.outcomes
    if sys.version_info >= (3, 12):  # a slice may be a key from there on
        kept, found = ([one for one in each if "slice" not in one] for each in (kept or [], found))
    assert found == kept, "if it is meant: python -m tools.refusals"


@pytest.mark.parametrize("name", [slice(3), TWO, 5])
def test_what_is_no_name_is_the_name_of_no_predictor(name):
    with pytest.raises(KeyError, match="name: no predictor"):
        RECORD.kind(name)


def test_the_smallest_level_is_one():
    assert venn.Monitor(CLASSES, level=5e-324).verdict().state == "too early to say"


@pytest.mark.parametrize("C", [5e-324, 1e-310, 1e300, 1e308])
@pytest.mark.parametrize("kind", [venn.OneVsAllSVM, venn.LeastSquaresSVM])
def test_a_penalty_near_the_ends_of_double_precision_is_solved_or_refused_without_a_warning(kind, C):
    """Also with equal objects of different labels, and weights by which the bound of a coefficient leaves the range."""
    machine = kind(venn.RBF(1.0), C, [0, 1, 2], [0.5, 1.0, 2.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with contextlib.suppress(venn.machines.NotConverged, ValueError):
            for i in range(9):
                machine.learn_one([0.1 * (i // 2) ** 2], i % 3, weight=1.5 if i < 4 else 0.5)
    assert machine.residual <= 1e-7
