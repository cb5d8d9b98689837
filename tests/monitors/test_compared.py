"""Two models compared in pairs: right bounds at every moment, the right sign, and refusals."""

import re
from math import log

import numpy as np
import pytest

import venn
from venn.monitors.calibration import log_loss


def test_the_difference_is_that_of_the_mean_log_losses_and_its_sign_names_the_better():
    rng = np.random.default_rng(1)
    p, y = rng.uniform(0.1, 0.9, 3000), rng.integers(0, 2, 3000)
    y = (rng.random(3000) < p).astype(int)
    good, bad = p, np.full(3000, 0.5)
    given = [np.where(y == 1, q, 1 - q) for q in (good, bad)]
    found = venn.compare(*given)
    assert found.difference == pytest.approx(log_loss(good, y).value - log_loss(bad, y).value)
    assert found.lower < found.difference < found.upper < 0
    assert (found.better, found.n) == ("a", 3000)
    other = venn.compare(*given[::-1])
    assert other[:3] == pytest.approx((-found.difference, -found.upper, -found.lower))
    assert other.better == "b"
    assert str(other).startswith("b is better: log loss of a minus that of b +0.")


def test_nothing_is_found_between_equals_at_any_time_more_often_than_said():
    rng, wrong = np.random.default_rng(2), 0
    for _ in range(100):
        p, q = rng.uniform(0.3, 0.9, (2, 400))  # both at random, of equal expected loss
        wrong += any(venn.compare(p[:n], q[:n], level=0.1, least=0.2).better for n in (10, 40, 100, 200, 400))
    assert wrong <= 18  # 100 of probability .1: more has probability .005


def test_a_mistake_costs_no_more_than_is_said():
    found = venn.compare([0.0, 1.0], [1.0, 1.0], least=0.01)
    assert found.difference == pytest.approx(log(100) / 2)
    assert found.better == ""
    assert "neither is known to be better" in str(found)
    assert -log(100) <= found.lower < found.upper <= log(100)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (([0.5], [0.5, 0.5]), "a and b must be of the same examples, at least one, got 1 and 2"),
        (([], []), "a and b must be of the same examples, at least one, got 0 and 0"), (([1.5], [0.5]), "a must"),
        (([0.5], [float("nan")]), "b must"), (([0.5], [0.5], 0), "level must"),
        (([0.5], [0.5], 0.05, 1.0), "least must"),
    ],
)  # fmt: skip
def test_what_is_refused(given, message):
    names = dict(zip(("level", "least"), given[2:], strict=False))
    with pytest.raises((ValueError, TypeError), match=re.escape(message)):
        venn.compare(*given[:2], **names)
