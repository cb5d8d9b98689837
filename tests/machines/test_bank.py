"""Banks of machines, their members and their mixtures, against definitions and single machines, after every step."""

import pickle

import numpy as np
import pytest
from conftest import KERNELS, labels, learned, objects, refused, same_answer
from naive import mixture as naive

import venn
from venn._compiled.mixture import fit_mixture, mixture_tables
from venn.machines import Bank, Member, Mixture, MultiscaleRBF, NotConverged

PENALTIES = (0.5, 5.0)
BOTH = ("rbf", "linear")


def bank(c, names=BOTH, penalties=PENALTIES):
    return Bank([KERNELS[name][0] for name in names], range(c), penalties)


def singles(c, names=BOTH, penalties=PENALTIES):
    return [venn.LeastSquaresSVM(KERNELS[name][0], C, range(c)) for name in names for C in penalties]


def stream(kind, c, n=24, seed=0):
    rng = np.random.default_rng(seed)
    X = objects(kind, rng, n)
    return X, labels("signal" if kind == "normal" else "noise", rng, X, c)


# The bank and its members ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["normal", "grid", "repeats"])
def test_members_are_the_single_machines_to_the_bit(kind):
    X, y = stream(kind, 3, 80)
    whole, alone = bank(3), singles(3)
    rng = np.random.default_rng(0)
    for i in range(80):
        mean = np.zeros(3)
        for member, single in zip(whole.members, alone, strict=True):
            assert same_answer(member.hypotheses(X[i]), single.hypotheses(X[i]))
            assert np.array_equal(member.scores(X[i]), single.scores(X[i]))
            mean += single.scores(X[i]) / len(alone)
        assert np.allclose(whole.scores(X[i]), mean, atol=1e-12)
        assert np.allclose(whole.hypotheses(X[i]).test_scores, mean, atol=1e-12)
        whole.learn_one(X[i], int(y[i]))
        for single in alone:
            single.learn_one(X[i], int(y[i]))
        if i % 5 == 4:
            gone = int(rng.integers(whole.n))
            whole.unlearn_one(gone)
            for single in alone:
                single.unlearn_one(gone)
        for member, single in zip(whole.members, alone, strict=True):
            assert np.array_equal(member.leave_one_out_bag.scores, single.leave_one_out_bag.scores)
            assert np.array_equal(member.bag.scores, single.bag.scores)
            assert np.array_equal(member.bag.counts, single.bag.counts)
    assert whole.n == alone[0].n == 64
    assert whole.residual == max(single.residual for single in alone)
    assert [member.residual for member in whole.members] == [single.residual for single in alone]


def test_a_bank_deletes_exactly():
    X, y = stream("repeats", 3)
    whole = learned(bank(3), X, y)
    scores = whole.leave_one_out_bag.scores
    for i in range(len(y)):
        rest = np.arange(len(y)) != i
        assert np.allclose(learned(bank(3), X[rest], y[rest]).scores(X[i]), scores[:, i], atol=1e-9)
    answer = whole.hypotheses(X[0] + 0.1)
    for j in range(3):
        bigger = learned(bank(3), [*X, X[0] + 0.1], [*y, j])
        assert np.allclose(answer.leave_one_out(j).T, bigger.leave_one_out_bag.scores, atol=1e-9)
        assert np.allclose(answer.scores(j).T, bigger.bag.scores, atol=1e-9)


def test_a_row_is_computed_once():
    class Counting(venn.RBF):
        rows = 0

        def row(self, columns, n, x, out):
            Counting.rows += 1
            super().row(columns, n, x, out)

    X, y = stream("normal", 2)
    whole = learned(Bank(Counting(0.5), [0, 1]), X, y)
    Counting.rows = 0
    answer = whole.hypotheses([0.1, 0.2])
    whole.learn_one([0.1, 0.2], 1)
    assert Counting.rows == 2  # the new object's, and that of the example whose equations are checked
    assert len(answer.members) == 3


def test_sparse_objects_say_the_same():
    sparse = pytest.importorskip("scipy.sparse")
    X, y = stream("binary", 2, 30)
    dense, other = bank(2), bank(2)
    for i in range(30):
        row = sparse.csr_array(X[i : i + 1])
        assert np.allclose(dense.scores(X[i]), other.scores(row), atol=1e-12)
        dense.learn_one(X[i], int(y[i]))
        other.learn_one(row, int(y[i]))
        if i == 20:
            dense.unlearn_one(3)
            other.unlearn_one(3)
    block = Mixture(other).score_many(sparse.csr_array(X))
    assert np.allclose(block, Mixture(dense).score_many(X), atol=1e-9)
    assert np.array_equal(block, [Mixture(other).scores(sparse.csr_array(X[i : i + 1])) for i in range(30)])


def test_a_member_that_cannot_forget_leaves_all_as_they_were(monkeypatch):
    X, y = stream("normal", 2)
    for gone in (3, 23):  # by rotations, and the last one
        whole, twin = learned(bank(2), X, y), learned(bank(2), X, y)

        def refuse(i):
            raise NotConverged("residual must be less")

        monkeypatch.setattr(whole.systems[-1], "remove", refuse)
        with pytest.raises(NotConverged):
            whole.unlearn_one(gone)
        monkeypatch.undo()
        assert whole.n == 24
        assert np.allclose(whole.leave_one_out_bag.scores, twin.leave_one_out_bag.scores, atol=1e-9)
        assert np.array_equal(whole.labels, twin.labels)
        for one in (whole, twin):
            one.learn_one([0.5, 0.5], 0)
            one.unlearn_one(gone)
        assert np.allclose(whole.scores(X[0]), twin.scores(X[0]), atol=1e-9)
        assert whole.residual < 1e-9


def test_a_window_on_a_bank():
    X, y = stream("grid", 3, 60)
    window = venn.SlidingWindow(bank(3), 20)
    mixture, second = Mixture(window), Member(window, 1)
    panel = venn.Panel(vmix=venn.TransductiveVennAbers(mixture), sets=venn.Conformal(second))
    assert panel.machines == (window,)
    learned(panel, X, y)
    assert (mixture.n, mixture.learned, second.n, second.learned) == (20, 60, 20, 60)
    fresh = learned(bank(3), X[40:], y[40:])
    expected = venn.TransductiveVennAbers(Mixture(fresh)).predict_one(X[0])
    assert np.allclose(panel.predict_one(X[0])["vmix"].pairs, expected.pairs, atol=1e-9)
    assert np.allclose(second.scores(X[0]), fresh.members[1].scores(X[0]), atol=1e-9)
    window.restart()
    assert mixture.n == second.n == 0
    assert second.scores(X[0]).tolist() == [0.0] * 3
    assert mixture.scores(X[0]).tolist() == [1 / 3] * 3


def test_an_answer_is_not_read_once_the_bank_has_gone_on():
    X, y = stream("normal", 2)
    whole = learned(bank(2), X, y)
    views = [whole, whole.members[0], Mixture(whole)]
    for change in (lambda: whole.learn_one(X[0], 0), lambda: whole.hypotheses([9.0, 9.0]), whole.unlearn_one):
        answers = [view.hypotheses(X[0]) for view in views]
        change()
        for answer in answers:
            with pytest.raises(RuntimeError, match="out of date"):
                answer.tables(True)


def test_a_panel_teaches_a_bank_once():
    X, y = stream("normal", 2)
    whole = Bank(MultiscaleRBF(), [0, 1])
    middle = whole.members[1]
    panel = venn.Panel(
        vmix=venn.TransductiveVennAbers(Mixture(whole)),
        sets=venn.Conformal(middle),
        beta=venn.ScoreCalibrator(middle, venn.maps.BetaCalibration(), venn.predictors.LeaveOneOutScores()),
        mean=venn.TransductiveVennAbers(whole),
    )
    assert panel.machines == (whole,)
    learned(panel, X, y)
    assert whole.n == 24
    alone = venn.Conformal(venn.LeastSquaresSVM(MultiscaleRBF(), 3.0, [0, 1]))
    learned(alone, X, y)
    assert np.array_equal(panel.predict_one(X[0])["sets"].p_values, alone.predict_one(X[0]).p_values)
    with pytest.raises(ValueError, match="y must"):
        panel.learn_one(X[0], 2)
    assert whole.n == 24


test_what_is_no_bank = refused(None, [
    (lambda: Mixture(venn.LeastSquaresSVM(venn.RBF(1.0), 1.0, [0, 1])), "bank must be a Bank"),
    (lambda: Mixture(Bank), "bank must be a Bank"),
    (lambda: Member(bank(2), 4), "index must be below the number of members, 4, got 4"),
    (lambda: Member(bank(2), -1), "index must be an integer >= 0"),
    (lambda: venn.SlidingWindow(Mixture(bank(2)), 5), "machine must be one that can forget"),
])  # fmt: skip


# Mixtures ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [1.0, 0.25])
@pytest.mark.parametrize("kind", ["normal", "grid", "repeats", "few"])
@pytest.mark.parametrize("c", [2, 3, 4])
def test_venn_abers_on_a_mixture_after_every_step(kind, c, rate):
    """The last class of four never comes."""
    rng = np.random.default_rng(c)
    n = 11
    X = objects(kind, rng, n)
    y = np.minimum(labels("signal" if kind == "normal" else "noise", rng, X, c), 2)
    names = ("rbf", "linear") if kind == "normal" else ("rbf",)
    whole = bank(c, names)
    model = venn.TransductiveVennAbers(Mixture(whole, rate))
    for i in range(n):
        matrices = [KERNELS[name][1](X[: i + 1], X[: i + 1]) for name in names]
        expected = naive.pairs(matrices, PENALTIES, y[:i], c, rate)
        assert np.allclose(model.predict_one(X[i]).pairs, expected, atol=1e-9), f"step {i}"
        if i % 3 == 2:
            known = naive.forecasts([K[:i, :i] for K in matrices], PENALTIES, y[:i], c, rate)
            assert np.allclose(model.machine.leave_one_out_bag.scores, known.T, atol=1e-8)
        model.learn_one(X[i], int(y[i]))


def test_scores_are_those_of_the_last_fit():
    """The forecast of a new object: sigmoids and weights of the examples learned, applied to its members' scores."""
    X, y = stream("normal", 3, 40)
    whole = learned(bank(3), X, y)
    mixture = Mixture(whole)
    assert np.array_equal(mixture.score_many(X), [mixture.scores(x) for x in X])
    answer = mixture.hypotheses(X[0])
    assert np.array_equal(answer.test_scores, mixture.scores(X[0]))
    maps, weights = mixture.fitted()
    by_hand = np.zeros(3)
    for k in range(3):
        for j, f in enumerate(whole.member_scores(X[0])[:, k]):
            slope, offset, centre = maps[j, k]
            by_hand[k] += weights[k, j] / (1 + np.exp(slope * (f - centre) + offset))
    assert np.allclose(mixture.scores(X[0]), by_hand, atol=1e-5)  # members' scores are taken from the grid
    assert np.allclose(weights.sum(axis=1), 1)
    assert (maps[:, :, 0] <= 0).all()


def test_far_scores_and_flat_ones():
    """Machines that separate the classes, or cannot tell them apart, are fitted too."""
    X = np.array([[float(i)] for i in range(40)])
    for y in (np.arange(40) >= 20, np.arange(40) % 2 == 0, np.arange(40) == 7, np.zeros(40, bool)):
        model = venn.TransductiveVennAbers(Mixture(Bank([venn.RBF(1e-9), venn.RBF(1e3), venn.RBF(1.0)], [0, 1])))
        learned(model, X, y.astype(int))
        for x in ([3.0], [35.5], [1e6]):
            pairs = model.predict_one(x).pairs
            assert ((pairs >= 0) & (pairs <= 1)).all()
            assert np.allclose(pairs[1], 1 - pairs[0][::-1], atol=1e-12)


@pytest.mark.parametrize("share", [0.5, 0.03, 0.005])
@pytest.mark.parametrize("far", [0.3, 3.0])
def test_sigmoids_of_many_examples_are_optimal_from_every_start(share, far):
    """So many that some of them are fitted to first; a class may be rare, and nearly apart."""
    rng = np.random.default_rng(3)
    m = 700
    codes = (rng.permutation(m) < share * m).astype(int)
    scores = rng.normal(size=(2, 3, m)) + far * (codes == np.arange(3)[:, None])
    maps, weights, tables = np.zeros((2, 3, 3)), np.zeros((3, 2)), np.empty((2, 2, 3, m))
    assert fit_mixture(np.ascontiguousarray(scores[:, :, :-1]), codes[:-1], 1.0, maps, weights) == -1
    for start, (below, above) in zip((maps, np.zeros_like(maps)), tables, strict=True):
        assert mixture_tables(scores, scores, codes, 1.0, start, below, above) == -1
    assert np.allclose(*tables, atol=1e-12)
    for side, found in enumerate(tables[0]):
        for k in range(3):
            expected = naive.mixed(scores[:, k], np.append(codes[:-1] == k, side), 1.0)
            assert np.allclose(found[k], expected, atol=1e-9), (k, side)


@pytest.mark.parametrize("make", [venn.InductiveVennAbers, venn.InductiveConformal])
def test_inductive_predictors_on_a_mixture(make):
    X, y = stream("normal", 3, 90)
    schedule = venn.schedules.PrefixRestart(first=30)
    model, twin = make(Mixture(bank(3)), schedule=schedule), make(Mixture(bank(3)), schedule=schedule)
    block = model.replay_many(X, y)
    for i in range(90):
        one = twin.predict_one(X[i])
        numbers = "p_values" if hasattr(one, "p_values") else "pairs"
        assert np.array_equal(getattr(one, numbers), getattr(block[i], numbers))
        twin.learn_one(X[i], int(y[i]))
        if i == 50:
            twin = pickle.loads(pickle.dumps(twin))
    scorer = Mixture(learned(bank(3), X[: model.scorer.n], y[: model.scorer.n]))
    assert np.allclose(model.scorer.scores(X[3]), scorer.scores(X[3]), atol=1e-9)


def test_threads_change_no_bit():
    X, y = stream("repeats", 3, 40)
    one, two = (Bank([venn.RBF(0.7), venn.Linear()], range(3), (0.1, 1.0, 1e6), threads=t) for t in (1, 2))
    for x, label in zip(X, y, strict=True):
        assert np.array_equal(one.hypotheses(x).scores(1), two.hypotheses(x).scores(1))
        for bank in (one, two):
            bank.learn_one(x, label)
        for bank in (one, two) if one.n % 7 == 0 else ():
            bank.unlearn_one(2)
        assert np.array_equal(one.member_bags(True), two.member_bags(True))


def test_a_member_that_is_not_there_has_no_residual():
    bank_ = bank(3)
    members = len(bank_.members)
    assert bank_.member_residual(members - 1) <= bank_.residual
    for bad, error in ((-1, ValueError), (-(2**63), ValueError), (members, ValueError), ("first", TypeError)):
        with pytest.raises(error, match="index must be"):
            bank_.member_residual(bad)
