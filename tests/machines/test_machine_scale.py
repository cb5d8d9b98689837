"""The scale of a machine, by the first examples or by declared ranges; who reads it; who warns where there is none."""

import itertools
import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from centroids import NearestCentroid
from conftest import labels, learned, objects, refused
from naive import scaled as naive
from naive.coins import coin

import venn
from venn.machines import MultiscaleRBF, Polynomial, ScaleWarning
from venn.machines.scale import middle
from venn.online import checkpoint

CLASSES = ("a", "b", "c")
UNITS = np.array([1e-3, 1e6])
MACHINES = {
    "squares": lambda **scale: venn.LeastSquaresSVM(venn.RBF("auto"), 5.0, CLASSES, **scale),
    "hinge": lambda **scale: venn.OneVsAllSVM(venn.RBF("scale" if scale else "auto"), 1.0, CLASSES, **scale),
    "several": lambda **scale: venn.OneVsAllSVM(MultiscaleRBF("scale" if scale else "auto"), 1.0, CLASSES, **scale),
    "bank": lambda **scale: venn.machines.Bank(MultiscaleRBF(), CLASSES, (1.0, 5.0), **scale),
    "centroid": lambda **scale: NearestCentroid(CLASSES, **scale),
}
READERS = {
    "leave_one_out": lambda m: venn.TransductiveVenn(m),
    "conformal": lambda m: venn.Conformal(m),
    "platt": lambda m: venn.ScoreCalibrator(m, venn.maps.Platt()),
}


def stream(seed, n, kind="grid"):
    rng = np.random.default_rng(seed)
    X = objects(kind, rng, n)[:, :2]
    return X * UNITS + UNITS, np.array(CLASSES)[labels("noise", rng, X, 3)].tolist()


def numbers(prediction):
    for name in ("probabilities", "pairs", "p_values"):
        if hasattr(prediction, name):
            return getattr(prediction, name)
    return prediction.proba


def same(one, other, x):
    return np.array_equal(numbers(one.predict_one(x)), numbers(other.predict_one(x)))


# The machine ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MACHINES)
def test_it_is_the_machine_on_objects_scaled_by_the_first(name):
    X, y = stream(len(name), 26)
    machine, alone = MACHINES[name](scale=8), MACHINES[name]()
    for step, (x, label) in enumerate(zip(X, y, strict=True)):
        assert (machine.n, machine.learned) == (max(0, step - 8), step)
        if step < 8:
            assert np.array_equal(machine.scores(x), alone.scores([0.0, 0.0]))
            assert len(machine.hypotheses(x).labels) == 0
        else:
            scale = naive.fixed_by(X[:8])
            z = naive.on_scale(x, *scale)
            assert np.allclose(
                (machine.fixed.center, machine.fixed.spread, machine.fixed.stretch), scale, rtol=1e-13, atol=0
            )
            assert np.allclose(machine.scores(x), alone.scores(z), atol=1e-7)
            assert np.allclose(machine.hypotheses(x).leave_one_out(1), alone.hypotheses(z).leave_one_out(1), atol=1e-6)
            alone.learn_one(z, label)
        machine.learn_one(x, label)
    assert machine.residual < 1e-6
    assert np.allclose(machine.bag.scores, alone.bag.scores, atol=1e-7)


def test_the_order_of_the_first_changes_no_bit():
    X, y = stream(1, 30, "normal")
    kept = [MACHINES["squares"](scale=12) for _ in range(4)]
    for seed, machine in enumerate(kept):
        order = np.append(np.random.default_rng(seed).permutation(12), np.arange(12, 30))
        learned(machine, X[order], [y[i] for i in order])
    for machine in kept[1:]:
        assert np.array_equal(machine.fixed.center, kept[0].fixed.center)
        assert np.array_equal(machine.scores(X[0]), kept[0].scores(X[0]))


def test_a_constant_column_is_only_centred():
    machine = MACHINES["squares"](scale=4)
    learned(machine, [[0.1, 3.0], [0.1, 5.0], [0.1, 3.0], [0.1, 5.0]], "abca")
    assert (machine.fixed.center.tolist(), machine.fixed.spread[0], machine.fixed.stretch[0]) == ([0.1, 4.0], 1.0, 1.0)


def test_where_the_quartiles_are_equal_the_spread_is_the_deviation():
    machine = learned(MACHINES["squares"](scale=8), [[x, 0.0] for x in (0, 0, 0, 0, 0, 0, 0, 8)], "abcabcab")
    assert machine.fixed.spread.tolist() == [7**0.5, 1.0]


def test_values_far_out_move_no_scale_and_are_drawn_near():
    X = np.random.default_rng(0).normal(size=(30, 2))
    far = X.copy()
    far[0, 0], far[1, 0] = 1e6, -1e6
    one, other = (
        learned(MACHINES["squares"](scale=True), rows, ["abc"[i % 3] for i in range(30)]) for rows in (X, far)
    )
    assert np.allclose(one.fixed.spread, other.fixed.spread, rtol=0.35)
    assert np.abs(other.fixed.place(np.array([1e6, 0.0]))).max() < 10


def test_rows_are_placed_as_numpy_does_and_only_those_of_as_many_columns():
    X = np.random.default_rng(0).normal(size=(40, 3)) * [1e-3, 1.0, 1e5]
    scale = middle(X)
    expected = np.arcsinh((X - scale.center) / scale.spread) / scale.stretch
    np.testing.assert_allclose(scale.place(X), expected, rtol=1e-14)
    np.testing.assert_array_equal(scale.place(X[::2].T.copy().T, 0.5), np.clip(scale.place(X)[::2], -0.5, 0.5))
    np.testing.assert_array_equal(scale._replace(stretch=None).place(X[3]), (X[3] - scale.center) / scale.spread)
    gap = scale.place(np.array([np.nan, -np.inf, 0.0]), 0.5)
    np.testing.assert_array_equal(gap[:2], [np.nan, -0.5])
    with pytest.raises(ValueError, match="x must have 3 features, as the scale has, got 2"):
        scale.place(X[:3, :2])


def test_far_columns_are_scaled_without_overflow():
    machine = MACHINES["squares"](scale=2)
    learned(machine, [[1e300, 1e-300], [-1e300, 2e-300]], "ab")
    assert np.allclose(machine.fixed.spread * 1.349, [1e300, 5e-301])
    rows = [sp.csr_array([row]) for row in ([1e300, 1e-300], [1e300, 0.0])]
    machine = learned(MACHINES["squares"](scale=2), rows, "ab")
    assert np.allclose(machine.fixed.spread / [1e300, 1e-300], [1, 0.5**0.5])
    machine = learned(MACHINES["squares"](scale=3), [[1.7e308, 0.0], [1.7e308, 0.5]], "ab")
    with pytest.raises(ValueError, match="near enough to scale, got feature 0"):
        machine.learn_one([-1.7e308, 1.0], "c")
    assert machine.learned == 2
    machine.learn_one([0.0, 1.0], "c")
    assert machine.fixed.center.tolist() == [1.7e308, 0.5]
    with pytest.raises(ValueError, match=r"x must stay finite when scaled, got -1.7e\+308 at feature 0"):
        learned(MACHINES["squares"](scale=venn.Scale(ranges=[(0, 1e-9)])), [[-1.7e308]], "a")


def test_declared_ranges_spend_no_example():
    X, y = stream(2, 20)
    ranges = [(0.0, 2e-3), (-1e6, 3e6)]
    machine, alone = MACHINES["hinge"](scale=venn.Scale(ranges=ranges)), MACHINES["hinge"]()
    for x, label in zip(X, y, strict=True):
        z = [(value - (low + high) / 2) / (high - low) * 12**0.5 for value, (low, high) in zip(x, ranges, strict=True)]
        assert np.allclose(machine.scores(x), alone.scores(z), atol=1e-8)
        machine.learn_one(x, label)
        alone.learn_one(z, label)
    assert machine.n == machine.learned == 20


@pytest.mark.parametrize("name", ["squares", "hinge", "several", "bank"])
def test_sparse_objects_keep_their_zeros(name):
    rng = np.random.default_rng(3)
    X = rng.integers(0, 3, (30, 6)) * 10.0 ** np.arange(-3, 3)
    X[:8, 5] = 0.0  # empty while the scale is fixed
    y = np.array(CLASSES)[rng.integers(0, 3, 30)].tolist()
    machine, alone = MACHINES[name](scale=8), MACHINES[name]()
    scale = np.array(naive.root_mean_squares(X[:8]))
    for step, (x, label) in enumerate(zip(X, y, strict=True)):
        row = sp.csr_array(x[None])
        if step >= 8:
            assert np.allclose(machine.scores(row), alone.scores(sp.csr_array(x[None] / scale)), atol=1e-7)
            assert np.array_equal(machine.scores(x), machine.scores(row))  # dense ones are the same objects
            alone.learn_one(sp.csr_array(x[None] / scale), label)
        machine.learn_one(row, label)
        if step in (4, 20):
            machine = checkpoint.unpack(checkpoint.pack(machine))
    assert machine.fixed.center is None
    assert np.allclose(machine.fixed.spread, scale, rtol=1e-14)


def test_sparse_objects_become_dense_on_ranges():
    machine = MACHINES["squares"](scale=venn.Scale(ranges=[(0, 1), (0, 10)]))
    machine.learn_one(sp.csr_array([[0.0, 5.0]]), "a")
    assert np.array_equal(machine.scores([0.0, 5.0]), machine.scores(sp.csr_array([[0.0, 5.0]])))


def test_weights_are_passed_on_and_do_not_count_for_the_scale():
    X, y = stream(4, 12)
    one, other = MACHINES["squares"](scale=4), MACHINES["squares"](scale=4)
    for i, (x, label) in enumerate(zip(X, y, strict=True)):
        one.learn_one(x, label, 2.0 + i)
        other.learn_one(x, label, 1.0 if i < 4 else 2.0 + i)
        one.learn_one(x * 3, label, 0)
    assert np.array_equal(one.scores(X[0]), other.scores(X[0]))
    assert one.learned == 12
    machine = MACHINES["centroid"](scale=4)
    with pytest.raises(TypeError):
        machine.learn_one(X[0], y[0], 2.0)
    with pytest.raises(ValueError, match="weight"):
        MACHINES["squares"](scale=4).learn_one(X[0], y[0], 1e300 * 1e300)
    assert machine.learned == 0


test_bad_parameters_are_named = refused(lambda arguments: venn.Scale(*arguments), [
    ((0,), ValueError, "first must be an integer >= 2, got 0"),
    ((None, []), ValueError, "ranges must be pairs"), ((None, [(1, 1)]), ValueError, "ranges must be pairs"),
    ((None, [(0, np.inf)]), ValueError, "ranges must be pairs"),
    ((None, [0, 1]), TypeError, "ranges must be pairs"), ((None, "ab"), TypeError, "ranges must be pairs"),
])  # fmt: skip


def test_scales_are_values():
    scales = [venn.Scale(), venn.Scale(5), venn.Scale(5, teach=True), venn.Scale(ranges=[(0, 1), (2, 9.5)])]
    for scale in scales:
        for again in (eval(repr(scale), {"Scale": venn.Scale}), pickle.loads(pickle.dumps(scale))):
            assert again == scale
            assert hash(again) == hash(scale)
    assert len(set(scales)) == len(scales)
    assert MACHINES["squares"](scale=True).scale == MACHINES["squares"](scale=30).scale == scales[0]


def test_a_scale_of_another_kind_is_named():
    for scale, error in (("30", TypeError), (1, ValueError), (2.5, TypeError)):
        with pytest.raises(error, match=f"scale must be an integer >= 2, got {scale!r}"):
            MACHINES["squares"](scale=scale)
    with pytest.raises(ValueError, match="scale must not teach a OneVsAllSVM"):
        MACHINES["hinge"](scale=venn.Scale(teach=True))


# Readers -------------------------------------------------------------------------------------------------------------


def test_until_the_scale_is_known_nothing_is_known():
    X, y = stream(5, 6)
    machine = MACHINES["squares"](scale=10)
    panel = venn.Panel(
        **{name: make(machine) for name, make in READERS.items()}, abers=venn.TransductiveVennAbers(machine)
    )
    for step, (x, label) in enumerate(zip(X, y, strict=True)):
        said = panel.predict_one(x)
        assert np.array_equal(said["leave_one_out"].probabilities, np.eye(3))
        assert np.array_equal(said["abers"].pairs, [[0, 1]] * 3)
        assert np.array_equal(said["platt"].proba, np.full(3, 1 / 3))
        assert np.array_equal(said["conformal"].p_values, np.full(3, coin(0, step, x)))  # a new number at each step
        panel.learn_one(x, label)


# Inductive predictors ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kept", [False, True], ids=["never stopped", "saved at every step"])
def test_training_examples_fix_the_scale_and_are_learned_too(kept):
    X, y = stream(9, 60)
    schedule = venn.schedules.PrefixRestart(first=6, last=30)
    model = venn.InductiveVennAbers(MACHINES["squares"](scale=10), schedule=schedule)
    for x, label in zip(X, y, strict=True):
        model.learn_one(x, label)
        if kept:
            model = checkpoint.unpack(checkpoint.pack(model))
    scorer = model.scorer
    scale = naive.fixed_by(X[:10])
    alone = MACHINES["squares"]()
    for x, label in zip(X[: scorer.learned], y, strict=False):
        alone.learn_one(naive.on_scale(x, *scale), label)
    assert scorer.n == scorer.learned == alone.n > 10
    for x in X[-5:]:
        assert np.allclose(scorer.scores(x), alone.scores(naive.on_scale(x, *scale)), atol=1e-8)


def test_a_refused_training_leaves_no_trace():
    machine = MACHINES["squares"](scale=2)
    machine.expect_training()
    machine.learn_one([0.0], "a")
    with pytest.raises(TypeError, match="weight must be 1 while examples that are learned fix the scale"):
        machine.learn_one([1.0], "b", 2.0)
    with pytest.raises(ValueError, match="y must be one of"):
        machine.learn_one([1.0], "z")
    with pytest.raises(RuntimeError, match="before the first example"):
        machine.expect_training()
    machine.learn_one([1.0], "b")
    assert (machine.n, machine.learned) == (2, 2)


@pytest.mark.parametrize("bad", [-1, len(CLASSES)])
def test_a_state_with_one_code_of_no_class_is_refused(bad):
    machine = MACHINES["squares"](scale=5)
    machine.expect_training()
    for x in range(3):
        machine.learn_one([float(x)], "a")
    state = machine.state
    state["placing"]["codes"][1] = bad
    with pytest.raises(ValueError, match="codes must be those of"):
        machine.fresh().restore(state)


# Windows -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name, make in MACHINES.items() if hasattr(make(), "unlearn_one")])
def test_a_window_stands_around_it(name):
    X, y = stream(10, 30, "normal")  # in general position: the grid may round ties apart
    window, scale = venn.SlidingWindow(MACHINES[name](scale=5), 7), naive.fixed_by(X[:5])
    for step, (x, label) in enumerate(zip(X, y, strict=True)):
        assert window.learned == step
        if step > 5:
            alone = MACHINES[name]()
            first = max(5, step - 7)
            learned(alone, [naive.on_scale(z, *scale) for z in X[first:step]], y[first:step])
            assert window.n == alone.n
            assert np.allclose(window.scores(x), alone.scores(naive.on_scale(x, *scale)), atol=1e-6)
        window.learn_one(x, label)
    window.restart()
    assert (window.n, window.learned, window.machine.fixed) == (0, 30, None)
    window.learn_one(X[0], y[0])
    assert (window.n, window.learned) == (0, 31)


# Validity ------------------------------------------------------------------------------------------------------------


class ScaledByThePast:
    """Broken: scales the bag and the new object by all objects before the new one, as a pipeline in a stream does."""

    def __init__(self):
        self.X, self.y = [], []

    def ask(self, x):
        X = np.array(self.X)
        scale = np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)
        machine = NearestCentroid(("a", "b"))
        learned(machine, (X - X.mean(axis=0)) / scale, self.y)
        return machine.hypotheses((np.asarray(x) - X.mean(axis=0)) / scale)

    def learn_one(self, x, label):
        self.X.append(np.asarray(x))
        self.y.append(label)


def scaled_by_the_first():
    return NearestCentroid(("a", "b"), scale=2)


def departures(make):
    """Return, over all orders of some examples, how far the last p-value is from uniform, and counts from the truth."""
    examples = [([0.0, 1e5], "a"), ([1e-3, 3e5], "b"), ([4e-3, 0.0], "a"), ([1e-3, 3e5], "a"), ([2e-3, 9e5], "b"),
                ([9e-3, 2e5], "b")]  # fmt: skip
    levels = np.linspace(0, 1, 81)
    reached, missed, orders = np.zeros(levels.size), np.zeros(2), 0
    for order in itertools.permutations(range(len(examples))):
        machine = make()
        for i in order[:-1]:
            machine.learn_one(*examples[i])
        x, label = examples[order[-1]]
        hypotheses, j = machine.ask(x) if hasattr(machine, "ask") else machine.hypotheses(x), "ab".index(label)
        ranks = venn.nonconformity.Margin().rank(hypotheses)
        greater, equal, n = ranks.greater[j].sum(), ranks.equal[j].sum(), ranks.total[j].sum()
        reached += np.clip(
            (levels * n - greater) / equal, 0, 1
        )  # chance, over tau, that (greater + tau equal) / n <= level
        counts, _ = venn.LeaveOneOut(venn.Argmax()).count(hypotheses)
        missed += (np.arange(2) == j) - counts[j] / counts[j].sum()
        orders += 1
    return np.abs(reached / orders - levels).max(), np.abs(missed / orders).max()


def test_over_all_orders_predictions_are_exactly_valid():
    uniform, calibrated = departures(scaled_by_the_first)
    assert uniform < 1e-12
    assert calibrated < 1e-12


def test_scaling_by_the_past_is_not_valid():
    uniform, calibrated = departures(ScaledByThePast)
    assert max(uniform, calibrated) > 0.01


# The warning ---------------------------------------------------------------------------------------------------------


WARNING = {"rbf": lambda: venn.RBF(1.0), "several": MultiscaleRBF, "linear": venn.Linear}


@pytest.mark.parametrize("kernel", WARNING)
@pytest.mark.parametrize("make", [venn.LeastSquaresSVM, venn.OneVsAllSVM])
def test_a_machine_warns_once_where_nothing_scales(make, kernel):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3)) * [1.0, 1e-3, 20.0]
    machine = make(WARNING[kernel](), 1e-3, CLASSES)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for i, x in enumerate(X):
            machine.learn_one(x, CLASSES[i % 3])
            assert len(seen) == (i >= 30)
            if i == 45:
                machine = pickle.loads(pickle.dumps(machine))
    assert seen[0].category is ScaleWarning
    for word in ("column 2 has", "column 1 one", "scale=True", "--scale"):
        assert word in str(seen[0].message)


def test_where_warnings_are_errors_nothing_is_learned_then_and_all_later():
    X = np.random.default_rng(0).normal(size=(40, 2)) * [1.0, 1e4]
    machine, quiet = (venn.LeastSquaresSVM(venn.RBF(1.0), 1.0, CLASSES) for _ in range(2))
    learned(machine, X[:30], [CLASSES[i % 3] for i in range(30)])
    with pytest.raises(ScaleWarning):
        machine.learn_one(X[30], "a")
    assert machine.n == 30
    machine.learn_one(X[30], "a")
    with pytest.warns(ScaleWarning):
        learned(quiet, X[:31], [CLASSES[i % 3] for i in range(30)] + ["a"])
    assert checkpoint.pack(machine) == checkpoint.pack(quiet)


@pytest.mark.parametrize(
    "table", ["rare indicator", "constant", "scaled", "as they are", "sparse", "polynomial", "centroid", "close"]
)
def test_no_warning_where_none_is_due(table):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 3)) * ([1.0, 1e-3, 20.0] if table not in ("rare indicator", "close") else [1.0, 1.0, 50.0])
    kernel = Polynomial(2) if table == "polynomial" else venn.RBF(1.0)
    machine = venn.LeastSquaresSVM(kernel, 1e-3, CLASSES)
    if table == "rare indicator":
        X[:, 0], X[:, 2] = 0.0, rng.normal(size=60) * 5
        X[7, 0] = 1.0
    elif table == "constant":
        X[:, 1] = 1e6
    elif table in ("scaled", "as they are"):
        machine = venn.LeastSquaresSVM(kernel, 1e-3, CLASSES, scale=table == "scaled")
    elif table == "centroid":
        machine = NearestCentroid(CLASSES)
    for i, x in enumerate(X):  # warnings are errors here
        machine.learn_one(sp.csr_array(x[None]) if table == "sparse" else x, CLASSES[i % 3])
    assert machine.learned == 60


def test_an_inductive_predictor_warns_of_its_training_examples():
    X = np.random.default_rng(0).normal(size=(40, 2)) * [1.0, 1e4]
    model = venn.InductiveVennAbers(venn.LeastSquaresSVM(venn.RBF(1.0), 1.0, CLASSES))
    with pytest.warns(ScaleWarning):
        model.learn_many(X, [CLASSES[i % 3] for i in range(40)])
