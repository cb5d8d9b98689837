"""The scale of machines that the first examples teach as well: banks and machines of numbers; validity and state."""

import copy
import itertools
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import KERNELS, leaving_out, objects
from naive import kernel_ridge as naive_ridge
from naive import mixture as naive_mixture
from naive import scaled as naive
from scipy import stats
from sklearn.datasets import load_diabetes
from test_machine_scale import UNITS

import venn
from venn.adapters import ConformalRegressor
from venn.machines import Bank, KernelRidge, Member, Mixture, MultiscaleRBF, ScaleWarning
from venn.online import checkpoint
from venn.predictors import ConformalDistribution, ConformalIntervals

PENALTIES = (0.5, 5.0)
BOTH = ("rbf", "linear")


def bank(c=2, **scale):
    scale = venn.Scale(**scale, teach=True) if scale else None
    return Bank([KERNELS[name][0] for name in BOTH], range(c), PENALTIES, scale=scale)


def several():
    return Bank(MultiscaleRBF(), range(2), scale=venn.Scale(8, teach=True))


def drawn(seed=0, n=24, c=2, kind="grid"):
    rng = np.random.default_rng(seed)
    X = objects(kind, rng, n)[:, :2]
    return X * UNITS + UNITS, rng.integers(0, c, n)


def placed(X, fixed):
    """Return objects on the scale of some, none farther than 10 deviations."""
    return np.clip([naive.on_scale(x, *naive.fixed_by(fixed)) for x in X], -10, 10)


def taught(model, X, y):
    for x, label in zip(X, y, strict=True):
        model.learn_one(x, int(label))
    return model


# Where the first examples teach, against the definition --------------------------------------------------------------


@pytest.mark.parametrize("c", [2, 3])
def test_pairs_are_those_of_the_definition_before_and_after_the_scale_is_fixed(c):
    X, y = drawn(c, 20, c)
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
                wanted = naive_mixture.pairs(kernels, PENALTIES, y[:i], c, 1.0, left_out)
                assert np.allclose(reader.predict_one(X[i]).pairs, wanted, atol=1e-6)
        model.learn_one(X[i], int(y[i]))


def test_members_are_single_machines_on_scaled_objects():
    X, y = drawn(3, 24)
    made, alone = bank(first=6), venn.LeastSquaresSVM(KERNELS["linear"][0], PENALTIES[0], range(2))
    taught(made, X, y)
    taught(alone, placed(X, X[:6]), y)
    z = placed(X[:1] * 1.1, X[:6])[0]
    for whole, aside in ((True, 0), (False, 6)):
        member = Member(made, 2, whole=whole)
        assert member.n == 24 - aside
        assert np.allclose(member.scores(X[0] * 1.1), alone.scores(z), atol=1e-9)
        assert np.allclose(member.leave_one_out_bag.scores, alone.leave_one_out_bag.scores[:, aside:], atol=1e-9)
        assert np.allclose(member.bag.scores, alone.bag.scores[:, aside:], atol=1e-9)
        assert np.array_equal(member.bag.counts, alone.bag.counts[aside:])
        answer, wanted = member.hypotheses(X[0] * 1.1), alone.hypotheses(z)
        for j in range(2):
            assert np.allclose(answer.leave_one_out(j), wanted.leave_one_out(j)[aside:], atol=1e-9)
            assert np.allclose(answer.scores(j), wanted.scores(j)[aside:], atol=1e-9)
        assert np.array_equal(answer.labels, y[aside:])
    assert made.residual < 1e-7
    assert made.bag.scores.shape == made.leave_one_out_bag.scores.shape == (2, 18)
    assert made.hypotheses(X[1]).leave_one_out_table.weights.sum() == 18


def test_declared_ranges_leave_all_examples_in_the_bag():
    X, y = drawn(4, 16)
    made = taught(bank(ranges=[(0.0, 2e-3), (-1e6, 3e6)]), X, y)
    Z = np.array([[(x[0] - 1e-3) / 2e-3, (x[1] - 1e6) / 4e6] for x in X]) * 12**0.5
    alone = taught(bank(), np.clip(Z, -10, 10), y)
    assert (made.n, made.aside, made.learned) == (16, 0, 16)
    assert np.allclose(made.leave_one_out_bag.scores, alone.leave_one_out_bag.scores, atol=1e-9)


def test_a_column_that_moves_later_does_not_drown_the_others():
    X, y = drawn(5, 40)
    X[:, 0] = 5.0
    made = taught(bank(first=8), X[:8], y[:8])
    X[20:, 0] = 1e9
    taught(made, X[8:], y[8:])
    assert np.array_equal(made.fixed.center, [5.0, naive.fixed_by(X[:8])[0][1]])
    assert made.residual < 1e-7
    assert np.array_equal(made.scores(X[30]), made.scores([1e12, X[30, 1]]))


def test_a_bank_keeps_the_zeros_of_sparse_objects():
    rng = np.random.default_rng(3)
    X = rng.integers(0, 3, (24, 5)) * 10.0 ** np.arange(-2, 3)
    y = rng.integers(0, 2, 24)
    made = several()
    for i in range(24):
        row = sp.csr_array(X[i : i + 1])
        if i in (4, 12):
            assert np.array_equal(made.scores(X[i]), made.scores(row))
            assert np.array_equal(made.hypotheses(X[i]).leave_one_out(1), made.hypotheses(row).leave_one_out(1))
        made.learn_one(row, int(y[i]))
        made = checkpoint.unpack(checkpoint.pack(made))
    alone = taught(Bank(MultiscaleRBF(), range(2)), X / naive.root_mean_squares(X[:8]), y)
    assert np.allclose(made.scores(X[0]), alone.scores(X[0] / naive.root_mean_squares(X[:8])), atol=1e-9)


# and validity --------------------------------------------------------------------------------------------------------


def missed(prediction, y):
    is_class = np.arange(len(prediction.classes)) == y
    return is_class - prediction.pairs[np.arange(len(is_class)), is_class.astype(int)]


def over_the_bag(make, X, y):
    """Return the mean departure over the choice of the last example: 0 where all are treated alike."""
    return np.mean([missed(model.predict_one(X[i]), int(y[i])) for i, model in leaving_out(make, X, y)], axis=0)


def biased(seed, n=16):
    """Return examples whose labels are mostly 1 among the first, and depend on the object."""
    X, _ = drawn(seed, n, kind="normal")
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


class OfThePast(Bank):
    """Broken: until the scale is fixed it is that of the examples learned, without the new one."""

    def answer(self, x, weight=1.0):
        return self._answered(self._clean(x), weight)


def test_departures_do_not_cancel_where_the_scale_is_that_of_the_past():
    X, y = biased(0, 12)
    for kind, fair in ((OfThePast, False), (Bank, True)):
        machine = kind(MultiscaleRBF(), range(2), PENALTIES, scale=venn.Scale(30, teach=True))
        model = venn.TransductiveVennAbers(Mixture(machine))
        most = abs(over_the_bag(lambda model=model: copy.deepcopy(model), X, y)).max()
        assert most < 1e-12 if fair else most > 1e-3


def test_ranks_of_p_values_are_uniform_and_independent_over_all_orders():
    """Six examples, three of which fix the scale: which three, which of them is last, which of the others is last."""
    X, y = drawn(11, 6, kind="normal")[0], np.arange(6) % 3  # no three of one class: margins have no ties
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


# and state -----------------------------------------------------------------------------------------------------------


def test_the_order_of_the_first_changes_no_scale_and_that_of_the_bag_no_answer():
    X, y = drawn(6, 24, kind="normal")
    model = taught(venn.TransductiveVennAbers(Mixture(bank(first=10))), X, y)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        order = np.append(rng.permutation(10), 10 + rng.permutation(14))
        other = taught(venn.TransductiveVennAbers(Mixture(bank(first=10))), X[order], y[order])
        assert np.array_equal(other.machine.bank.fixed.spread, model.machine.bank.fixed.spread)
        assert np.allclose(other.predict_one(X[0]).pairs, model.predict_one(X[0]).pairs, atol=1e-9)


def test_a_damaged_state_is_refused():
    X, y = drawn(8, 12)
    for n, name, wrong in [
        (4, "codes", np.full(4, 7)), (4, "rows", np.zeros((9, 2))), (12, "scale", np.ones((4, 2))),
        (12, "scale", np.ones(2)),
    ]:  # fmt: skip
        made = taught(bank(first=6), X[:n], y[:n])
        placing = made.state["placing"] | {name: wrong}
        with pytest.raises(ValueError, match="must"):
            made.fresh().restore(made.state | {"placing": placing})


def test_what_the_first_teach_forgets_nothing():
    for machine in (bank(first=5), ridge()):
        with pytest.raises(ValueError, match="scale must not teach a machine that forgets"):
            venn.SlidingWindow(machine, 5)
        with pytest.raises(TypeError, match="scale must not teach where examples are forgotten"):
            machine.unlearn_one()


def test_it_never_warns_of_scales():
    X, y = drawn(10, 70)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        taught(bank(first=30), X, y)
        taught(venn.Forecaster(range(2)), X, y)
        taught(venn.Forecaster(range(2), first=0), X / UNITS * [1.0, 300.0], y)


@pytest.mark.parametrize("n", [5, 20])
def test_many_objects_are_scored_as_each_alone(n):
    X, y = drawn(11, n)
    made = Mixture(taught(bank(first=8), X, y))
    Z = np.vstack([X[:5], X[:5] * 3])
    assert np.array_equal(made.score_many(Z), [made.scores(z) for z in Z])
    assert made.score_many(Z[:0]).shape == (0, 2)
    model = taught(several(), [sp.csr_array(x[None]) for x in X], y)
    many = Mixture(model).score_many(sp.csr_array(Z))
    assert np.array_equal(many, [Mixture(model).scores(sp.csr_array(z[None])) for z in Z])


def test_a_predictor_that_trains_on_few_scales_by_those():
    X, y = drawn(12, 40, kind="normal")
    schedule = venn.schedules.Prefix(0.5, first=10)
    model = taught(venn.InductiveVennAbers(Mixture(bank(first=30)), schedule=schedule), X, y)
    Z = placed(X, X[:5])
    wanted = taught(venn.InductiveVennAbers(Mixture(bank()), schedule=schedule), Z, y)
    assert np.allclose(model.predict_one(X[0]).pairs, wanted.predict_one(Z[0]).pairs, atol=1e-9)


# Numbers -------------------------------------------------------------------------------------------------------------


GAMMA, C, FIRST = 0.5, 3.0, 6


def ridge(first=FIRST):
    return KernelRidge(venn.RBF(GAMMA), C, scale=venn.Scale(first, teach=True))


def raw(seed, n, tied=True):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 4, (n, 2)) / 2 if tied else rng.normal(size=(n, 2))
    return X * UNITS + 5 * UNITS, np.round(X.sum(axis=1) + rng.integers(-2, 3, n) / 2, 1)


@pytest.mark.parametrize("seed", range(3))
def test_every_p_value_is_that_of_the_definition(seed):
    X, y = raw(seed, 22)
    model = ConformalDistribution(ridge(), seed=seed)
    both = ConformalIntervals(model.machine, seed=seed)
    for i in range(22):
        fixing = X[:FIRST] if i >= FIRST else X[: i + 1]
        scale = naive.fixed_by(fixing)
        Z = np.clip([naive.on_scale(x, *scale) for x in X[: i + 1]], -10, 10)
        K, aside = naive_ridge.kernel(Z, Z, GAMMA), FIRST if i >= FIRST else 0
        prediction, nested = model.predict_one(X[i]), both.predict_one(X[i])
        assert (prediction.n, model.machine.n, model.machine.aside) == (i - aside, i, aside)
        for supposed in (y[i], -3.0, 2.25):
            alphas = naive_ridge.studentised(K, np.full(i + 1, 1 / C), np.append(y[:i], supposed))
            for said, strange in ((prediction, alphas), (nested, -np.abs(alphas))):
                if said is nested and i - aside == 1:
                    continue  # with one other example both are equally strange by definition, or none is
                below, equal = naive_ridge.rank(strange[aside:])
                expected = (below + said.tau * equal) / (i + 1 - aside)
                assert abs(said.p_value(supposed) - expected) < 1e-9
        model.learn_one(X[i], y[i])
    assert model.machine.residual < 1e-10
    assert model.machine.bag.scores.shape == model.machine.leave_one_out_bag.scores.shape == (1, 22 - FIRST)


def test_p_values_are_uniform_and_independent():
    found = []
    for seed in range(60):
        X, y = raw(1000 + seed, 30, tied=seed % 2 == 0)
        model = ConformalDistribution(ridge(), seed=seed)
        found.append([])
        for x, label in zip(X, y, strict=True):
            found[-1].append(model.predict_one(x).p_value(label))
            model.learn_one(x, label)
    p = np.array(found)
    assert stats.kstest(p.ravel(), "uniform").pvalue > 0.001
    table = np.zeros((3, 3))
    np.add.at(table, tuple(np.digitize(part, [1 / 3, 2 / 3]).ravel() for part in (p[:, :-1], p[:, 1:])), 1)
    assert stats.chisquare(table.ravel()).pvalue > 0.001


def test_a_scale_in_other_units_changes_nothing_that_is_said():
    X, y = raw(4, 30, tied=False)
    one, other = (ConformalDistribution(ridge()) for _ in range(2))
    for x, label in zip(X, y, strict=True):
        a, b = one.predict_one(x), other.predict_one(x * 1024)
        assert a.label == pytest.approx(b.label, rel=0, abs=1e-9)
        assert np.allclose(a.points, b.points, rtol=0, atol=1e-9)
        one.learn_one(x, label)
        other.learn_one(x * 1024, label)


def test_an_answer_about_the_last_of_the_first_is_out_of_date_then():
    machine = ridge(2)
    machine.learn_one([1.0, 2.0], 0.5)
    before = machine.hypotheses([0.0, 1.0])
    machine.learn_one([0.0, 1.0], 1.5)
    with pytest.raises(RuntimeError, match="out of date"):
        before.critical_points()


def test_the_estimator_needs_no_scaler():
    X, y = load_diabetes(return_X_y=True)
    X, y = X[:200], y[:200]
    warnings.simplefilter("ignore", ScaleWarning)
    alike, odd = X / X.std(axis=0), X * 10.0 ** np.arange(-3, 7)
    kernel = venn.machines.MultiscaleRBF()
    scores = [
        ConformalRegressor(kernel=kernel, C=1.0, first=first).fit(Z[:150], y[:150]).score(Z[150:], y[150:])
        for Z, first in ((alike, 0), (odd, None), (odd, 0))
    ]
    assert scores[2] < scores[1] - 0.2
    assert scores[1] > scores[0] - 0.1
    for n in (1, 2, 9):
        assert np.isfinite(ConformalRegressor().fit(odd[:n], y[:n]).predict(odd[n : n + 1])).all()
    for bad in (1, -1, 2.5, "a"):
        with pytest.raises((TypeError, ValueError), match="first must be"):
            ConformalRegressor(first=bad).fit(odd[:5], y[:5])


def test_an_answer_of_the_beginning_is_refused_once_the_machine_has_gone_on():
    machine = ridge(10)
    for i in range(5):
        machine.learn_one([float(i)], float(i))
    answer = machine.hypotheses([2.5])
    machine.scores([7.0])  # made anew without the object asked about
    assert np.isfinite(answer.critical_points()).all()
    machine.learn_one([2.5], 2.0)
    with pytest.raises(RuntimeError, match="out of date"):
        answer.critical_points()
