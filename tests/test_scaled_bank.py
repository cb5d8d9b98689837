"""A bank that scales its objects: against the definition after every step, valid by enumeration, saved at any time."""

from __future__ import annotations

import copy
import itertools
import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import KERNELS, leaving_out, objects
from naive import mixture as naive
from naive import scaled as by_hand

import venn
from venn.machines import Bank, Member, Mixture, MultiscaleRBF, Scaled, ScaledBank
from venn.online import checkpoint

UNITS = np.array([1e-3, 1e6])
PENALTIES = (0.5, 5.0)
BOTH = ("rbf", "linear")


def bank(c=2, **scale):
    return ScaledBank(Bank([KERNELS[name][0] for name in BOTH], range(c), PENALTIES), **scale)


def stream(seed=0, n=24, c=2, kind="grid"):
    rng = np.random.default_rng(seed)
    X = objects(kind, rng, n)[:, :2]
    return X * UNITS + UNITS, rng.integers(0, c, n)


def placed(X, fixed):
    """Return objects on the scale of some, none farther than 10 deviations."""
    return np.clip([by_hand.on_scale(x, *by_hand.fixed_by(fixed)) for x in X], -10, 10)


def taught(model, X, y):
    for x, label in zip(X, y, strict=True):
        model.learn_one(x, int(label))
    return model


# Against the definition ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("c", [2, 3])
def test_pairs_are_those_of_the_definition_before_and_after_the_scale_is_fixed(c):
    X, y = stream(c, 20, c)
    model = venn.TransductiveVennAbers(Mixture(bank(c, first=8)))
    whole = venn.TransductiveVennAbers(Mixture(model.machine.bank, whole=True))
    for i in range(20):
        fixed = X[: i + 1] if i < 8 else X[:8]  # of all objects and the new one, then of the first
        aside = 0 if i < 8 else 8
        assert (model.machine.bank.learned, model.machine.n, whole.machine.n) == (i, i - aside, i)
        if i in (3, 7, 8, 9, 13, 19):
            Z = placed(X[: i + 1], fixed)
            kernels = [KERNELS[name][1](Z, Z) for name in BOTH]
            for reader, left_out in ((model, aside), (whole, 0)):
                wanted = naive.pairs(kernels, PENALTIES, y[:i], c, 1.0, left_out)
                assert np.allclose(reader.predict_one(X[i]).pairs, wanted, atol=1e-6)
        model.learn_one(X[i], int(y[i]))


def test_members_are_single_machines_on_scaled_objects():
    X, y = stream(3, 24)
    made, alone = bank(first=6), venn.LeastSquaresSVM(KERNELS["linear"][0], PENALTIES[0], range(2))
    taught(made, X, y)
    taught(alone, placed(X, X[:6]), y)
    z = placed(X[:1] * 1.1, X[:6])[0]
    for whole, aside in ((True, 0), (False, 6)):
        member = Member(made, 2, whole)
        assert member.n == 24 - aside
        assert np.allclose(member.scores(X[0] * 1.1), alone.scores(z), atol=1e-9)
        assert np.allclose(member.deleted_bag.scores, alone.deleted_bag.scores[:, aside:], atol=1e-9)
        assert np.allclose(member.bag.scores, alone.bag.scores[:, aside:], atol=1e-9)
        assert np.array_equal(member.bag.counts, alone.bag.counts[aside:])
        answer, wanted = member.hypotheses(X[0] * 1.1), alone.hypotheses(z)
        for j in range(2):
            assert np.allclose(answer.deleted(j), wanted.deleted(j)[aside:], atol=1e-9)
            assert np.allclose(answer.scores(j), wanted.scores(j)[aside:], atol=1e-9)
        assert np.array_equal(answer.labels, y[aside:])
    assert made.residual < 1e-7
    assert made.bag.scores.shape == made.deleted_bag.scores.shape == (2, 18)
    assert np.allclose(made.hypotheses(X[1]).deleted_table.negative.shape, (2, 19))


def test_declared_ranges_leave_all_examples_in_the_bag():
    X, y = stream(4, 16)
    made = taught(bank(ranges=[(0.0, 2e-3), (-1e6, 3e6)]), X, y)
    Z = np.array([[(x[0] - 1e-3) / 2e-3, (x[1] - 1e6) / 4e6] for x in X]) * 12**0.5
    alone = taught(Bank([KERNELS[name][0] for name in BOTH], range(2), PENALTIES), np.clip(Z, -10, 10), y)
    assert (made.n, made.aside, made.learned) == (16, 0, 16)
    assert np.allclose(made.deleted_bag.scores, alone.deleted_bag.scores, atol=1e-9)


def test_a_column_that_moves_later_does_not_drown_the_others():
    X, y = stream(5, 40)
    X[:, 0] = 5.0
    made = taught(bank(first=8), X[:8], y[:8])
    X[20:, 0] = 1e9
    taught(made, X[8:], y[8:])
    assert np.array_equal(made.fixed.center, [5.0, by_hand.fixed_by(X[:8])[0][1]])
    assert np.array_equal(made.bank.residual < 1e-7, True)
    assert np.array_equal(made.scores(X[30]), made.scores([1e12, X[30, 1]]))


def test_sparse_objects_keep_their_zeros():
    rng = np.random.default_rng(3)
    X = rng.integers(0, 3, (24, 5)) * 10.0 ** np.arange(-2, 3)
    y = rng.integers(0, 2, 24)
    made = ScaledBank(Bank(MultiscaleRBF(), range(2)), first=8)
    for i in range(24):
        row = sp.csr_array(X[i : i + 1])
        if i in (4, 12):
            assert np.array_equal(made.scores(X[i]), made.scores(row))
            assert np.array_equal(made.hypotheses(X[i]).deleted(1), made.hypotheses(row).deleted(1))
        made.learn_one(row, int(y[i]))
        made = checkpoint.unpack(checkpoint.pack(made))
    alone = taught(Bank(MultiscaleRBF(), range(2)), X / by_hand.root_mean_squares(X[:8]), y)
    assert np.allclose(made.scores(X[0]), alone.scores(X[0] / by_hand.root_mean_squares(X[:8])), atol=1e-9)


# Validity ------------------------------------------------------------------------------------------------------------


def departures(prediction, y):
    is_class = np.arange(len(prediction.classes)) == y
    return is_class - prediction.pairs[np.arange(len(is_class)), is_class.astype(int)]


def over_the_bag(make, X, y):
    """Return the mean departure over the choice of the last example: 0 where all are treated alike."""
    return np.mean([departures(model.predict_one(X[i]), int(y[i])) for i, model in leaving_out(make, X, y)], axis=0)


def biased(seed, n=16):
    """Return examples whose labels are mostly 1 among the first, and depend on the object."""
    X, _ = stream(seed, n, kind="normal")
    return X, np.where(np.arange(n) < n // 2, 1, (X[:, 0] > np.median(X[:, 0])).astype(int))


@pytest.mark.parametrize("seed", [0, 1])
def test_departures_cancel_while_the_scale_is_not_fixed(seed):
    X, y = biased(seed)
    assert abs(over_the_bag(lambda: venn.TransductiveVennAbers(Mixture(bank(first=30))), X, y)).max() < 1e-12


@pytest.mark.parametrize("seed", [0, 1])
def test_departures_cancel_given_the_first(seed):
    X, y = biased(seed)
    begun = taught(venn.TransductiveVennAbers(Mixture(bank(first=8))), X[:8], y[:8])
    assert abs(over_the_bag(lambda: copy.deepcopy(begun), X[8:], y[8:])).max() < 1e-12


def test_departures_do_not_cancel_where_the_first_count_too():
    X, y = biased(0)
    begun = taught(venn.TransductiveVennAbers(Mixture(bank(first=8), whole=True)), X[:8], y[:8])
    assert abs(over_the_bag(lambda: copy.deepcopy(begun), X[8:], y[8:])).max() > 1e-2


class OfThePast(ScaledBank):
    """Broken: until the scale is fixed it is that of the examples learned, without the new one."""

    def answer(self, x):
        row = self._clean(x)
        return self.current.answer(self._placed(row))


def test_departures_do_not_cancel_where_the_scale_is_that_of_the_past():
    X, y = biased(0, 12)
    inside = Bank(MultiscaleRBF(), range(2), PENALTIES)
    make = lambda: venn.TransductiveVennAbers(Mixture(OfThePast(inside.fresh(), first=30)))  # noqa: E731
    assert abs(over_the_bag(make, X, y)).max() > 1e-3
    fair = lambda: venn.TransductiveVennAbers(Mixture(ScaledBank(inside.fresh(), first=30)))  # noqa: E731
    assert abs(over_the_bag(fair, X, y)).max() < 1e-12


def test_ranks_of_p_values_are_uniform_and_independent_over_all_orders():
    """Six examples, three of which fix the scale: which three, which of them is last, which of the others is last."""
    X, y = stream(11, 6, kind="normal")[0], np.arange(6) % 3  # no three of one class: margins have no ties
    found = []
    for first in itertools.combinations(range(6), 3):
        rest = [i for i in range(6) if i not in first]
        for last, end in itertools.product(range(3), range(3)):
            order = [*np.delete(first, last), first[last], *np.delete(rest, end), rest[end]]
            model = venn.Conformal(bank(3, first=3).members[0], smoothed=False)
            ranks = []
            for i in order:
                ranks.append(round(model.predict_one(X[i]).p_values[y[i]] * (model.machine.n + 1)))
                model.learn_one(X[i], int(y[i]))
            found.append((ranks[2], ranks[5]))
    assert {pair: found.count(pair) for pair in set(found)} == {(a, b): 20 for a in (1, 2, 3) for b in (1, 2, 3)}


# State and refusals --------------------------------------------------------------------------------------------------


def test_the_order_of_the_first_changes_no_scale_and_that_of_the_bag_no_answer():
    X, y = stream(6, 24, kind="normal")
    model = taught(venn.TransductiveVennAbers(Mixture(bank(first=10))), X, y)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        order = np.append(rng.permutation(10), 10 + rng.permutation(14))
        other = taught(venn.TransductiveVennAbers(Mixture(bank(first=10))), X[order], y[order])
        assert np.array_equal(other.machine.bank.fixed.spread, model.machine.bank.fixed.spread)
        assert np.allclose(other.predict_one(X[0]).pairs, model.predict_one(X[0]).pairs, atol=1e-9)


@pytest.mark.parametrize("keep", [pickle.dumps, checkpoint.pack], ids=["pickle", "checkpoint"])
def test_a_copy_goes_on_alike_from_any_step(keep):
    X, y = stream(7, 20)
    back = pickle.loads if keep is pickle.dumps else checkpoint.unpack
    make = lambda: venn.TransductiveVennAbers(Mixture(bank(first=7)))  # noqa: E731
    model, kept = make(), make()
    for i in range(20):
        kept = back(keep(kept))
        model.predict_one(X[0])  # asking leaves no trace
        assert np.array_equal(model.predict_one(X[i]).pairs, kept.predict_one(X[i]).pairs)
        model.learn_one(X[i], int(y[i]))
        kept.learn_one(X[i], int(y[i]))
    assert repr(kept) == repr(model)


def test_a_damaged_state_is_refused():
    X, y = stream(8, 12)
    for n, name, wrong in [
        (4, "rows", np.zeros((9, 2))), (4, "codes", np.full(4, 7)), (4, "scale", np.ones((3, 2))),
        (12, "scale", np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 1.0]])), (12, "scale", np.ones((4, 2))),
        (12, "scale", np.ones(2)), (12, "rows", np.zeros((1, 2))),
    ]:  # fmt: skip
        made = taught(bank(first=6), X[:n], y[:n])
        with pytest.raises(ValueError, match="must"):
            ScaledBank.made_of(made.parameters).restore(made.state | {name: wrong})


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        (lambda: ScaledBank(3), TypeError, "bank must be a Bank, got 3"),
        (lambda: ScaledBank(bank()), TypeError, "bank must be a Bank, got ScaledBank"),
        (lambda: bank(first=1), ValueError, "first must be an integer >= 2, got 1"),
        (lambda: bank(first=5, ranges=[(0, 1)]), ValueError, "first must not be given with ranges"),
        (lambda: bank(ranges=[(1, 0)]), ValueError, "ranges must be pairs"),
        (lambda: ScaledBank(taught(Bank(venn.RBF(1.0), range(2)), [[0.0]], [1])), ValueError, "bank must have learned"),
        (lambda: venn.SlidingWindow(bank(), 5), TypeError, "machine must be one that can forget"),
        (lambda: Mixture(Scaled(Bank(venn.RBF(1.0), range(2)))), TypeError, r"ScaledBank\(bank\) scales for all"),
        (lambda: Mixture(bank(), whole=1), TypeError, "whole must be True or False, got 1"),
    ],
)
def test_bad_parameters_are_named(wrong, error, message):
    with pytest.raises(error, match=message):
        wrong()


def test_a_refused_example_leaves_no_trace():
    X, y = stream(9, 10)
    for n in (3, 7, 10):  # before, at and after the example that fixes the scale
        made = taught(bank(first=8), X[:n], y[:n])
        before = pickle.dumps(made)
        for x, label in ((X[0], 2), ([np.nan, 0.0], 0), ([1.0], 1)):
            with pytest.raises(ValueError, match="must"):
                made.learn_one(x, label)
        assert pickle.dumps(made) == before
    made = taught(bank(first=3), [[1.7e308, 0.0], [1.7e308, 1.0]], [0, 1])
    with pytest.raises(ValueError, match="near enough to scale, got feature 0"):
        made.learn_one([-1.7e308, 1.0], 1)
    assert made.learned == 2


def test_it_never_warns_of_scales():
    X, y = stream(10, 150)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        taught(bank(first=30), X, y)
        taught(venn.Forecaster(range(2)), X, y)
        taught(venn.Forecaster(range(2), first=0), X / UNITS * [1.0, 300.0], y)


@pytest.mark.parametrize("n", [5, 20])
def test_many_objects_are_scored_as_each_alone(n):
    X, y = stream(11, n)
    made = Mixture(taught(bank(first=8), X, y))
    Z = np.vstack([X[:5], X[:5] * 3])
    assert np.array_equal(made.score_many(Z), [made.scores(z) for z in Z])
    assert made.score_many(Z[:0]).shape == (0, 2)
    model = taught(ScaledBank(Bank(MultiscaleRBF(), range(2)), first=8), [sp.csr_array(x[None]) for x in X], y)
    many = Mixture(model).score_many(sp.csr_array(Z))
    assert np.array_equal(many, [Mixture(model).scores(sp.csr_array(z[None])) for z in Z])


def test_a_predictor_that_trains_on_few_scales_by_those():
    X, y = stream(12, 40, kind="normal")
    schedule = venn.schedules.Prefix(0.5, first=10)
    model = taught(venn.InductiveVennAbers(Mixture(bank(first=30)), schedule=schedule), X, y)
    Z = placed(X, X[:5])
    fair = [Bank([KERNELS[name][0] for name in BOTH], range(2), PENALTIES) for _ in range(2)]
    wanted = taught(venn.InductiveVennAbers(Mixture(fair[0]), schedule=schedule), Z, y)
    assert np.allclose(model.predict_one(X[0]).pairs, wanted.predict_one(Z[0]).pairs, atol=1e-9)
