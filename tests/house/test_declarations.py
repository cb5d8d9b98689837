"""What each class declares of its parameters is what its constructor refuses: tested from the declarations."""

import inspect
import math
import re

import numpy as np
import pytest
from conftest import public
from test_contract import MACHINES, PARAMETERS, PREDICTORS, present
from test_monitor_contract import RUNNING
from test_numbers_contract import SUBJECTS as OF_NUMBERS

import venn
import venn.smoothing
from venn import parameters
from venn.saved import component, own
from venn.taxonomies import ByScores

NO_NUMBERS = ("x", None, True, [0.5])
HUGE = 10**400
NO_SEQUENCES = ("ab", 0.5, None)
OF_NUMBERS_ABOVE_ZERO = ([(1.0, 0.0), (math.nan,), (HUGE,)], [*NO_SEQUENCES, (), (True,)])
PROBABILITIES = (
    [(1.5, -0.5), (0.5, 0.5 + 2e-9), (0.5, 0.4), (1.0,), (), (0.5, math.nan), (0.5, math.inf), (HUGE, 1)],
    [*NO_SEQUENCES, ("0.5", "0.5"), (True, False), (0.5 + 0j, 0.5), {0: 0.5, 1: 0.5}, {0.25, 0.75}, [[0.25] * 2] * 2],
)

# By check: what it must refuse with ValueError, and what with TypeError; for c classes where it is told how many.
REFUSED = {
    "checked_labels": (
        [[], [0], [0, 0], [1, True], [0, math.nan]],
        [*NO_SEQUENCES, b"ab", [[0], [1]], {"a", "b"}],
    ),
    "checked_kernel": ([], [None, "rbf", 0.5, venn.RBF, lambda x, z: 1.0]),
    "checked_gamma": ([0, -1.0, math.nan, math.inf, HUGE, "wide"], [None, True, [0.5]]),
    "_checked_kernels": ([[]], ["rbf", [venn.RBF(1.0), 3], None]),
    "checked_penalties": ([*OF_NUMBERS_ABOVE_ZERO[0], (1e-301,)], OF_NUMBERS_ABOVE_ZERO[1]),
    "several_positive": OF_NUMBERS_ABOVE_ZERO, "ascending": ([(0,), (5, 5), (7, 3)], ["ab", 5, (1.5,), (True,)]),
    "rising": ([(), (0.1, 0.1), (0.2, 0.1), (0.0,), (math.nan,)], [*NO_SEQUENCES, (True,)]),
    "increasing": ([(), (1.0, 1.0), (2.0, 1.0), (math.inf,), (math.nan,), (HUGE,)], [*NO_SEQUENCES, ("x",)]),
    "probabilities": PROBABILITIES, "_rate": ([0.0, 1.1, -HUGE, HUGE, math.nan], list(NO_NUMBERS)),
    "_rates": ([(0.1, math.nan), (0.1, -HUGE), (0.1, 0.0), (1.1,)], [*NO_SEQUENCES, (), (True,)]),
    "_fine": ([1, 4097, HUGE], [*NO_NUMBERS, 2.0]),
}  # fmt: skip
OF_CLASSES = {
    "checked_class_weights": lambda c: (
        [(1.0,) * (c - 1), (1.0,) * (c + 1), (0,) * c],
        ["ab", 0.5, *((bad,) * c for bad in (-1, math.nan, "2", True, HUGE))],
    ),
    "_checked_costs": lambda c: (
        [(1.0,) * (c - 1), (1.0,) * (c + 1), *((bad,) * c for bad in (0, -1, math.nan, math.inf, HUGE))],
        [*NO_SEQUENCES, (True,) * c, ("1",) * c],
    ),
}


def values(check, *arguments):
    """Return what a check must refuse with ValueError, and what with TypeError."""
    if check is parameters.integer:
        least, most = arguments if len(arguments) == 2 else (*arguments, math.inf)
        return [least - 1, *([most + 1] if most < math.inf else [])], [*NO_NUMBERS, least + 0.5, float(least)]
    if check is parameters.optional:
        wrong, strange = values(*arguments)
        return wrong, [one for one in strange if one is not None]
    called = getattr(check, "__name__", "")
    if called in OF_CLASSES:
        (classes,) = arguments
        return OF_CLASSES[called](classes if isinstance(classes, int) else len(classes))
    if called in REFUSED:
        return REFUSED[called]
    bounds = {
        parameters.fraction: [0, 1, -0.5, 1.5], parameters.share: [-1e-9, 1.1], parameters.above_one: [1, 0.5, HUGE],
        parameters.positive: [0, -1.0, HUGE], parameters.not_negative: [-1e-9, HUGE], parameters.number: [HUGE],
    }  # fmt: skip
    if check in bounds:
        return [*bounds[check], math.nan, math.inf, -math.inf], list(NO_NUMBERS)
    return [], [1, "yes", None, np.zeros(2)] if check is parameters.flag else [object()]


# A class with the fields that it declares, and one of its kind.
DECLARED = {
    name: make
    for name, make in [
        *((name, lambda name=name: PARAMETERS[name]()[0]) for name in present(PARAMETERS)),
        *((name, make) for name, make in (MACHINES | PREDICTORS | OF_NUMBERS).items()),
        *((name, make) for name, (make, *_) in RUNNING.items()),
    ]
    if getattr(public().get(name), "declared", ())
}
DECLARED |= {
    "Restarting": lambda: venn.predictors.Restarting(
        venn.Conformal(venn.SlidingWindow(venn.LeastSquaresSVM(venn.RBF(1.0), 1.0, ["no", "yes"]), 9)),
        venn.Monitor(["no", "yes"]),
    ),
    "Drift": lambda: venn.monitors.Drift(venn.monitors.AmongAll(size=20)),
    "AmongAll": lambda: venn.monitors.AmongAll(size=20), "Smoothing": lambda: venn.smoothing.Smoothing(1),
    "OneClass": lambda: venn.monitors.OneClass("no", 0), "ClassShare": lambda: venn.monitors.ClassShare("no", 0),
    "AgainstFirst": lambda: venn.monitors.AgainstFirst(20), "Scorecard": lambda: venn.monitors.Scorecard(["no", "yes"]),
    "SetScorecard": lambda: venn.monitors.SetScorecard(["no", "yes"]), "AdaptiveIntervals": OF_NUMBERS["adaptive"],
    "GaussianProcess": OF_NUMBERS["GaussianProcess"],
}  # fmt: skip


@pytest.mark.parametrize("name", DECLARED)
def test_what_is_declared_is_what_is_refused(name):
    thing = DECLARED[name]()
    kind, given = type(thing), thing.parameters
    taken = inspect.signature(kind).parameters
    for field in kind.declared:
        if field.check is None:
            continue
        wrong, strange = values(
            field.check, *(one.of(thing) if isinstance(one, own) else one for one in field.arguments)
        )
        for bad in (*wrong, *strange):
            one = {key: value for key, value in given.items() if key in taken} | {field.name: bad}
            with pytest.raises((TypeError, ValueError)) as caught:
                kind(**one)
            said = str(caught.value)
            assert re.match(rf"{field.name} must .*got ", said, re.DOTALL), (field.name, bad, said)
            if bad in wrong or len(strange) > 1:
                assert caught.type is (ValueError if any(bad is each for each in wrong) else TypeError), (bad, said)


def test_enough_is_declared_for_that():
    assert len(DECLARED) > 80
    assert sum(field.check is not None for make in DECLARED.values() for field in make().declared) > 220
    assert {
        "Power", "Monitor", "Prefix", "Conformal", "InductiveConformal", "InductiveDistribution", "PriorShift",
    } <= DECLARED.keys()  # fmt: skip


def test_a_class_of_ones_own_has_a_name_of_its_own_and_may_be_defined_again(tmp_path):
    with pytest.raises(ValueError, match=r"name of its own, got Argmax, as in venn\.taxonomies\.scores"):
        component(type("Argmax", (ByScores,), {}))

    def sign():  # as in a notebook, where a cell is run again
        class SignOfTheFirst(ByScores):
            def categories(self, scores):
                return (scores[:, 0] > 0).astype(int)

        return SignOfTheFirst

    component(sign())
    machine = venn.LeastSquaresSVM(venn.RBF(1.0), C=1, classes=["no", "yes"])
    venn.save(tmp_path / "model.venn", venn.TransductiveVenn(machine, component(sign())()))
    with pytest.raises(TypeError, match=r"with the decorator venn\.saved\.component"):
        venn.save(tmp_path / "model.venn", venn.TransductiveVenn(machine, sign()()))
    with pytest.raises(NotImplementedError, match=r"Bare must have a method categories\(scores\)"):
        venn.TransductiveVenn(machine, type("Bare", (ByScores,), {})()).predict_one([0.0])
