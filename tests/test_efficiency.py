"""The ten criteria of efficiency against their definitions in plain Python; what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from venn.monitors.curves import Efficiency, efficiency

NAMES = (
    "sum_of_p_values", "size", "unconfidence", "fuzziness", "multiple", "excess",
    "observed_unconfidence", "observed_fuzziness", "observed_multiple", "observed_excess",
)  # fmt: skip


def by_definition(p, y, epsilon):
    """Return the ten criteria of one step."""
    inside = {k for k, value in enumerate(p) if value > epsilon}
    false = [value for k, value in enumerate(p) if k != y]
    ascending = sorted(p)
    return {
        "sum_of_p_values": sum(p),
        "size": len(inside),
        "unconfidence": ascending[-2],
        "fuzziness": sum(ascending[:-1]),
        "multiple": int(len(inside) > 1),
        "excess": max(0, len(inside) - 1),
        "observed_unconfidence": max(false),
        "observed_fuzziness": sum(false),
        "observed_multiple": int(bool(inside - {y})),
        "observed_excess": len(inside - {y}),
    }


@pytest.mark.parametrize("c", [2, 3, 7])
@pytest.mark.parametrize("epsilon", [0, 0.125, 0.25, 0.3, 1])
def test_every_step_is_the_definition(c, epsilon):
    rng = np.random.default_rng(c)
    p = rng.integers(0, 9, size=(200, c)) / 8  # ties with each other and with epsilon, zeros and ones
    y = rng.integers(0, c, 200)
    criteria = efficiency(p, y, epsilon)
    expected = [by_definition(row, label, epsilon) for row, label in zip(p.tolist(), y.tolist(), strict=True)]
    for name in NAMES:
        values = getattr(criteria, name)
        assert values.shape == (200,)
        assert values.dtype == np.float64
        assert values.tolist() == [step[name] for step in expected], name
        assert criteria.means[name] == pytest.approx(np.mean([step[name] for step in expected]), abs=1e-12)
    assert tuple(criteria.means) == NAMES
    assert len(criteria) == 200
    assert criteria.epsilon == epsilon


def test_by_hand():
    criteria = efficiency([[0.5, 0.25, 0.125]], [1], epsilon=0.2)
    assert {name: getattr(criteria, name).tolist() for name in NAMES} == {
        "sum_of_p_values": [0.875], "size": [2], "unconfidence": [0.25], "fuzziness": [0.375], "multiple": [1],
        "excess": [1], "observed_unconfidence": [0.5], "observed_fuzziness": [0.625], "observed_multiple": [1],
        "observed_excess": [1],
    }  # fmt: skip
    assert repr(criteria) == "Efficiency(1 steps, epsilon 0.2)"


def test_two_classes_merge_four_pairs():
    rng = np.random.default_rng(1)
    criteria = efficiency(rng.random((300, 2)), rng.integers(0, 2, 300), 0.3)
    assert np.array_equal(criteria.unconfidence, criteria.fuzziness)
    assert np.array_equal(criteria.multiple, criteria.excess)
    assert np.array_equal(criteria.observed_unconfidence, criteria.observed_fuzziness)
    assert np.array_equal(criteria.observed_multiple, criteria.observed_excess)


def expected_criteria(truth, ranking, epsilon):
    """Return the expectation of each criterion in a world of two objects, examples being without end.

    `truth` (2, 3) are label probabilities in sixths; `ranking` lists (object, label) pairs, the strangest first. The
    p-value of a pair is the probability of the stranger ones and a share tau of its own. For an epsilon in twelfths
    12 values of tau give the exact mean.
    """
    low, own, below = np.zeros((2, 3)), truth / 12, 0.0
    for pair in ranking:
        low[pair], below = below, below + own[pair]
    tau = (np.arange(12) + 0.5) / 12
    p = low + tau[:, None, None] * own  # (tau, object, label)
    criteria = efficiency(np.repeat(p.reshape(-1, 3), 3, axis=0), np.tile([0, 1, 2], 24), epsilon)
    chance = np.tile(own.ravel(), 12) / 12
    return {name: float(chance @ getattr(criteria, name)) for name in NAMES}


def test_the_proper_criteria_are_those_that_never_prefer_another_ranking():
    rng = np.random.default_rng(4)
    pairs = [(x, label) for x in range(2) for label in range(3)]
    gain = dict.fromkeys(NAMES, 0.0)
    for _ in range(60):
        truth, epsilon = rng.multinomial(3, [1 / 3] * 3, size=2) + 1.0, rng.integers(1, 10) / 12
        ranking = sorted(pairs, key=lambda pair: truth[pair])
        best = expected_criteria(truth, ranking, epsilon)
        for _ in range(30):
            other = expected_criteria(truth, [pairs[i] for i in rng.permutation(6)], epsilon)
            for name in NAMES:
                gain[name] = max(gain[name], best[name] - other[name])
    assert {name for name in NAMES if gain[name] < 1e-12} == set(Efficiency.proper)
    assert min(gain[name] for name in NAMES if name not in Efficiency.proper) > 0.01


def test_a_prefix_is_a_slice_and_arguments_stay_as_they_are():
    rng = np.random.default_rng(2)
    p, y = rng.random((50, 4)), rng.integers(0, 4, 50)
    kept = p.copy(), y.copy()
    whole, part = efficiency(p, y), efficiency(p[10:20], y[10:20])
    for name in NAMES:
        assert np.array_equal(getattr(whole, name)[10:20], getattr(part, name))
    assert np.array_equal(p, kept[0])
    assert np.array_equal(y, kept[1])
    p[:] = 0.0
    assert whole.unconfidence.max() > 0
    assert np.array_equal(efficiency(p[::2].tolist(), y[::2].tolist()).size, np.zeros(25))


def test_no_steps():
    nothing = efficiency(np.empty((0, 3)), np.empty(0, int))
    assert len(nothing) == 0
    assert nothing.size.shape == (0,)
    with pytest.raises(ValueError, match="means are of at least one step, got 0"):
        nothing.means  # noqa: B018


GOOD = np.full((2, 3), 0.5)


@pytest.mark.parametrize(
    ("p", "truth", "epsilon", "error", "match"),
    [
        ([[0.5, np.nan]], [0], 0.1, ValueError, r"p_values must lie in \[0, 1\], got nan of label 1 in row 0"),
        ([[0.5, 0.5], [1.2, 0.5]], [0, 0], 0.1, ValueError, r"p_values must .* got 1.2 of label 0 in row 1"),
        ([[0.5, -1e-9]], [0], 0.1, ValueError, "p_values must lie"),
        ([[0.5, np.inf]], [0], 0.1, ValueError, "p_values must lie"),
        ([["0.5", "0.5"]], [0], 0.1, TypeError, "p_values must be"),
        ([[True, False]], [0], 0.1, TypeError, "p_values must be"),
        ([[0.5, None]], [0], 0.1, TypeError, "p_values must be"),
        ([[0.5, 0.5], [0.5]], [0, 0], 0.1, TypeError, "p_values must be"),
        (None, [0], 0.1, TypeError, "p_values must be"),
        ([0.5, 0.5], [0], 0.1, ValueError, r"p_values must have shape \(n, c\)"),
        ([[0.5]], [0], 0.1, ValueError, r"p_values must have shape \(n, c\)"),
        (GOOD, [0], 0.1, ValueError, r"truth must have shape \(2,\)"),
        (GOOD, [[0, 1]], 0.1, ValueError, "truth must have shape"),
        (GOOD, [0, 3], 0.1, ValueError, "truth must be class codes from 0 to 2, got 3 in row 1"),
        (GOOD, [-1, 0], 0.1, ValueError, "truth must be class codes from 0 to 2, got -1 in row 0"),
        (GOOD, [0.0, 1.0], 0.1, TypeError, "truth must be class codes"),
        (GOOD, ["a", "b"], 0.1, TypeError, "truth must be class codes"),
        (GOOD, [True, False], 0.1, TypeError, "truth must be class codes"),
        (GOOD, None, 0.1, TypeError, "truth must be class codes"),
        (GOOD, [[0], [0, 1]], 0.1, TypeError, "truth must be class codes"),
        (GOOD, [0, 1], 1.5, ValueError, r"epsilon must lie in \[0, 1\], got 1.5"),
        (GOOD, [0, 1], np.nan, ValueError, r"epsilon must lie in \[0, 1\], got nan"),
        (GOOD, [0, 1], "0.1", TypeError, "epsilon must be a number"),
        (GOOD, [0, 1], None, TypeError, "epsilon must be a number"),
        (GOOD, [0, 1], True, TypeError, "epsilon must be a number"),
    ],
)  # fmt: skip
def test_what_it_refuses(p, truth, epsilon, error, match):
    with pytest.raises(error, match=match):
        efficiency(p, truth, epsilon)
