"""What each class declares of its parameters is what its constructor refuses: tested from the declarations."""

from __future__ import annotations

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
from venn.saved import own

NO_NUMBERS = ("x", None, True, [0.5])
HUGE = 10**400


def values(check, *arguments):
    """Return what a check must refuse with ValueError, and what with TypeError."""
    if check is parameters.integer:
        least, most = arguments if len(arguments) == 2 else (*arguments, math.inf)
        return [least - 1, *([most + 1] if most < math.inf else [])], [*NO_NUMBERS, least + 0.5, float(least)]
    if check is parameters.optional:
        wrong, strange = values(*arguments)
        return wrong, [one for one in strange if one is not None]
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
    "AmongAll": lambda: venn.monitors.AmongAll(size=20),
    "Smoothing": lambda: venn.smoothing.Smoothing(1),
    "OneClass": lambda: venn.monitors.OneClass("no", 0),
    "ClassShare": lambda: venn.monitors.ClassShare("no", 0),
    "AgainstFirst": lambda: venn.monitors.AgainstFirst(20),
    "Scorecard": lambda: venn.monitors.Scorecard(["no", "yes"]),
    "SetScorecard": lambda: venn.monitors.SetScorecard(["no", "yes"]),
    "AdaptiveIntervals": OF_NUMBERS["adaptive"],
    "GaussianProcess": OF_NUMBERS["GaussianProcess"],
}


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
    assert len(DECLARED) > 60
    assert {"Power", "Monitor", "Prefix", "Conformal", "InductiveConformal", "InductiveDistribution"} <= DECLARED.keys()
