"""The estimate of the remaining time, by made-up clocks."""

import numpy as np
import pytest

from venn.show.terminal import FEWEST, Remaining, clock

STEPS = 4000


def estimates(costs, interval=0.1):
    """Return (elapsed, remaining) as shares of all, whenever a bar would be drawn."""
    remaining, drawn = Remaining(len(costs)), 0.0
    found = []
    ends = np.cumsum(costs)
    for step, elapsed in enumerate(ends.tolist(), 1):
        if elapsed >= drawn + interval:
            drawn = elapsed
            remaining.saw(step, elapsed)
            left = remaining.seconds()
            if left is not None:
                found.append((elapsed, left))
    return np.array(found) / ends[-1]


@pytest.mark.parametrize("compiling", [0.0, 30.0])
@pytest.mark.parametrize("noise", [0.0, 0.2])
@pytest.mark.parametrize("power", [0, 1, 2])
def test_it_knows_that_steps_get_dearer(power, noise, compiling):
    n = np.arange(1, STEPS + 1)
    costs = 2e-3 + 2e-2 * (n / STEPS) ** power
    costs = costs * np.exp(noise * np.random.default_rng(power).standard_normal(STEPS))
    whole = costs.sum()
    costs[0] += compiling
    found = estimates(costs)
    late = found[found[:, 0] >= (compiling + 0.1 * whole) / (compiling + whole)]
    truth = 1 - late[:, 0]
    assert np.abs(late[:, 1] - truth).max() <= 0.15 * whole / (compiling + whole)
    # It falls, where a rate of all steps so far rises until the middle.
    quarters = late[np.linspace(0, len(late) - 1, 6).astype(int), 1]
    assert (np.diff(quarters) < 0).all()


def test_steps_that_jump_leave_an_estimate_of_the_right_size():
    n = np.arange(1, STEPS + 1)
    found = estimates(np.where(n < 1024, 5e-3, 1e-3))
    late = found[found[:, 0] > 0.8]
    assert (np.abs(late[:, 1] - (1 - late[:, 0])) < 0.15).all()


def test_it_says_nothing_from_a_few_stretches_and_nothing_of_what_is_done():
    remaining = Remaining(100)
    for k in range(FEWEST + 1):
        assert remaining.seconds() is None
        remaining.saw(k + 1, 1.0 + k)
        remaining.saw(k + 1, 1.5 + k)  # the same step again: not a stretch
    assert remaining.seconds() == pytest.approx(94)
    remaining.saw(100, 100.0)
    assert remaining.seconds() == 0
    assert [clock(59.6), clock(3600), clock(36001)] == ["0:01:00", "1:00:00", "10:00:01"]
