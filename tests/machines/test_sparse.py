"""Sparse objects: the same machine, to the last bits, as of dense ones; kept sparse; whatever form they come in."""

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from centroids import NearestCentroid
from conftest import learned, same_answer
from naive import sparse as naive
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.naive_bayes import GaussianNB, MultinomialNB

import venn
from venn.machines.sparse import MOST, SparseRows, clean_sparse, read_object, rows_of
from venn.machines.store import ObjectStore
from venn.machines.window import SlidingWindow

KERNELS = {"linear": venn.Linear(), "rbf": venn.RBF(0.5), "quadratic": venn.machines.Polynomial(2)}
MACHINES = {"one vs all": venn.OneVsAllSVM, "least squares": venn.LeastSquaresSVM}
FORMATS = ("csr", "csc", "coo", "lil", "dok", "bsr", "dia")
every_machine = pytest.mark.parametrize("name", MACHINES)
every_kernel = pytest.mark.parametrize("kernel", KERNELS)


def made(name, kernel="rbf", C=2.0):
    return MACHINES[name](KERNELS[kernel], C, range(3))


def stream(seed, n=40, d=17):
    """n rows of d features, most of them 0, full of ties: repeated, empty, full, and nearly equal ones; labels."""
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((n, d)) < 0.75, 0.0, rng.integers(-2, 3, (n, d)) / 2)
    X[rng.integers(0, n, n // 3)] = X[rng.integers(0, n, n // 3)]
    X[rng.integers(0, n, 3)] = 0.0
    X[rng.integers(0, n)] = rng.normal(size=d)
    X[n // 2] = X[n // 2 - 1] + np.where(X[n // 2 - 1] != 0, 1e-9, 0)
    return X, rng.integers(0, 3, n)


def row(x, form="csr"):
    return sp.coo_array(x[None]).asformat(form)


def worst_difference(first, second):
    return max(
        float(np.abs(getattr(first, kind)(j) - getattr(second, kind)(j)).max())
        for kind in ("scores", "leave_one_out")
        for j in range(3)
    )


# --------------------------------------------------------------------------------------- rows themselves


@pytest.mark.parametrize("seed", range(8))
def test_rows_of_any_format_are_what_their_entries_mean(seed):
    rng = np.random.default_rng(seed)
    n = rng.integers(0, 12)
    indices, values = rng.integers(0, 6, n), rng.integers(-2, 3, n) / 2
    wanted = naive.entries(indices, values)
    given = sp.coo_array((values, (np.zeros(n, int), indices)), shape=(1, 6))
    unsorted = sp.csr_array((values, indices, [0, n]), shape=(1, 6))
    before = unsorted.data.copy(), unsorted.indices.copy()
    forms = [given, sp.coo_matrix(given), unsorted, *(given.asformat(form) for form in FORMATS)]
    for form in (*forms, *(() if not hasattr(sp, "coo_array") or sp.coo_array([1.0]).ndim == 2 else (flat(given),))):
        found = clean_sparse("x", form, 6)
        assert found.arrays.indices.tolist() == list(wanted)
        assert found.arrays.values.tolist() == list(wanted.values())
        assert (found.shape, found.tobytes()) == ((1, 6), clean_sparse("x", given, None).tobytes())
    assert np.array_equal(unsorted.data, before[0])  # what was given is as it was
    assert np.array_equal(unsorted.indices, before[1])


def flat(x):
    return sp.coo_array(x.toarray()[0])


def test_a_row_of_one_dimension():
    x = sp.coo_array([0.0, 2.0, 0.0])
    if x.ndim == 2:
        pytest.skip("this scipy has no sparse arrays of one dimension")
    assert clean_sparse("x", x, 3).toarray().tolist() == [[0, 2, 0]]
    machine = made("least squares")
    machine.learn_one(x, 0)
    assert machine.hypotheses([0.0, 2.0, 0.0]) is machine.hypotheses(x)


@pytest.mark.parametrize("seed", range(4))
def test_blocks_of_rows_are_chosen_as_dense_ones_are(seed):
    rng = np.random.default_rng(seed)
    X, _ = stream(seed, 12, 5)
    rows = clean_sparse("X", sp.coo_array(X), 5)
    mask, places = rng.random(12) < 0.5, rng.integers(0, 12, 7)
    for which in (slice(2, 9), slice(None, None, -2), mask, places, np.zeros(0, int)):
        assert np.array_equal(rows[which].toarray(), X[which])
        assert np.array_equal(rows[which].tocsr().toarray(), X[which])
        assert rows[which].tobytes() == rows_of(X[which]).tobytes()
    for i in (0, 5, -1):
        assert np.array_equal(rows[i].toarray()[0], X[i])
        assert np.array_equal(read_object(rows[i].tobytes()).toarray()[0], X[i])
    assert (len(rows), rows.shape) == (12, (12, 5))
    with pytest.raises(IndexError):
        rows[12]


def test_different_rows_have_different_keys():
    rng = np.random.default_rng(0)
    rows = {}
    for _ in range(400):
        d = int(rng.integers(1, 5))
        x = rng.integers(0, 2, d) * rng.integers(0, 2, d).astype(float)
        key = rows_of(x[None]).tobytes()
        assert rows.setdefault(key, (d, *x)) == (d, *x)
        assert key != x.tobytes()  # a dense one's
    # Of 2 values and 2 indices there are as many bytes as of 3 numbers.
    tricky = np.array([np.frombuffer(np.array([0, 1], np.int32).tobytes())[0], 1.0, 2.0])
    assert rows_of(np.array([[1.0, 2.0, 0.0]])).tobytes() != tricky.tobytes()


GOOD = sp.csr_array(([1.0, 2.0], [0, 2], [0, 2]), shape=(1, 4))


def broken(**parts):
    x = GOOD.copy()
    for name, value in parts.items():
        setattr(x, name, np.array(value))
    return x


@pytest.mark.parametrize(
    ("x", "error", "says"),
    [
        (row(np.array([0.0, np.nan, 1.0, 0.0])), ValueError, "x must be finite, got nan at feature 1"),
        (row(np.array([0.0, 0.0, 1.0, -np.inf])), ValueError, "x must be finite, got -inf at feature 3"),
        (broken(data=[1e308, 1e308], indices=[1, 1]), ValueError, "x must be finite, got inf at feature 1"),
        (GOOD.astype(complex), TypeError, "x must be rows of numbers, got a sparse one of dtype complex128"),
        (broken(data=np.array([1.0, 2.0], object)), TypeError, "x must be rows of numbers, got a sparse one of dtype"),
        (sp.csr_array((1, 3)), ValueError, "x must have 4 features as the first object had, got 3"),
        (sp.csr_array((2, 4)), ValueError, r"x must be one object, of shape \(1, d\) or \(d,\).*\(2, 4\)"),
        (sp.csr_array((0, 4)), ValueError, r"x must be one object.*got a sparse one of shape \(0, 4\)"),
        (sp.csr_array((1, 0)), ValueError, r"at least one feature, got a sparse one of shape \(1, 0\)"),
        (broken(indices=[0, 9]), ValueError, "x must have indices from 0 to 3, got 0 to 9"),
        (broken(indices=[-1, 2]), ValueError, "x must have indices from 0 to 3, got -1 to 2"),
        (broken(indptr=[1, 2]), ValueError, "x must have an indptr that ascends from 0"),
        (broken(indptr=[0, 3]), ValueError, "x must have an indptr that ascends from 0"),
    ],
    ids=lambda value: None if not isinstance(value, str) else value[:40],
)  # fmt: skip
@pytest.mark.parametrize("name", ["one vs all", "least squares"])
def test_bad_objects_are_refused_and_leave_no_trace(name, x, error, says):
    X, y = stream(0, 12, 4)
    machine = learned(made(name), [row(one) for one in X], y)
    before = pickle.dumps(machine)
    for call in (machine.hypotheses, machine.scores, lambda x: machine.learn_one(x, 0), lambda x: machine.check(x, 0)):
        with pytest.raises(error, match=says):
            call(x)
    assert pickle.dumps(machine) == before


def test_too_many_features_and_masked_data():
    with pytest.raises(ValueError, match=f"x must have at most {MOST} features where it is sparse"):
        clean_sparse("x", sp.csr_array((1, MOST + 1)), None)
    x = GOOD.copy()
    x.data = np.ma.masked_array([1.0, 2.0], [True, False])
    with pytest.raises(TypeError, match="x must have no masked values"):
        clean_sparse("x", x, None)


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int64", "bool", "float32"])
def test_numbers_of_other_types_are_those_numbers(dtype):
    x = sp.csr_array(np.array([[0, 1, 0, 1]], dtype))
    assert clean_sparse("x", x, None).tobytes() == rows_of(np.array([[0.0, 1.0, 0.0, 1.0]])).tobytes()


def test_a_machine_without_a_kernel_says_what_to_do():
    machine = NearestCentroid(["a", "b"])
    with pytest.raises(TypeError, match=r"x must be dense here, got a sparse csr_array: pass x\.toarray\(\)"):
        machine.learn_one(GOOD, "a")
    machine.learn_one(GOOD.toarray().ravel(), "a")
    assert machine.n == 1


def test_a_kernel_of_ones_own_needs_a_method_for_sparse_rows():
    class Own:
        def row(self, columns, n, x, out):
            out[:n] = x @ columns[:, :n]

    class Both(Own):
        def sparse_row(self, rows, n, x, work, out):
            out[:n] = (rows.tocsr() @ x.toarray()[0])[:n]

    machine = venn.LeastSquaresSVM(Own(), 1.0, ["a", "b"])
    for call in (machine.scores, lambda x: machine.check(x, "a"), lambda x: machine.learn_one(x, "a")):
        with pytest.raises(TypeError, match="kernel must have a method 'sparse_row' for sparse objects"):
            call(GOOD)
    machine.learn_one(GOOD.toarray()[0], "a")
    both = learned(venn.LeastSquaresSVM(Both(), 1.0, ["a", "b"]), [GOOD], "a")
    assert np.array_equal(both.scores(2 * GOOD), machine.scores(2 * GOOD.toarray()[0]))


# ------------------------------------------------------------------------------------------ kernel rows


@every_kernel
@pytest.mark.parametrize("seed", range(3))
def test_kernel_rows_are_those_of_the_definition(kernel, seed):
    X, _ = stream(seed)
    dense, sparse = ObjectStore(KERNELS[kernel]), ObjectStore(KERNELS[kernel])
    rows = [naive.entries(range(X.shape[1]), x) for x in X]
    out, dense_out = np.empty((2, len(X)))
    for i, x in enumerate(X):
        for store, given in ((dense, x), (sparse, row(x))):
            store.put(i, store.clean(given))
            store.keep(i)
        sparse.row_of(i, i + 1, out)
        dense.row_of(i, i + 1, dense_out)
        wanted = [naive.kernel(kernel, rows[i], other) for other in rows[: i + 1]]
        assert np.allclose(out[: i + 1], wanted, rtol=1e-13, atol=1e-13)
        if kernel == "rbf":
            same = [j for j in range(i + 1) if np.array_equal(X[j], X[i])]
            assert (out[same] == 1.0).all()
            assert np.allclose(out[: i + 1], dense_out[: i + 1], rtol=1e-14, atol=0)
        else:
            assert np.array_equal(out[: i + 1], dense_out[: i + 1])
    gram = np.empty((len(X), len(X)))
    for i in range(len(X)):
        sparse.row_of(i, len(X), gram[i])
    assert np.allclose(gram, gram.T, rtol=1e-14, atol=0)


def test_distances_of_near_duplicates_keep_their_digits():
    """By |x|^2 + |z|^2 - 2 <x, z> the distance would be lost: 1e-12 beside 1e8."""
    x = np.zeros(50)
    x[[3, 20, 40]] = 1e4, -2.0, 0.5
    z = x.copy()
    z[20] += 2.0**-20
    store = ObjectStore(venn.RBF(1e10))
    store.put(0, store.clean(row(x)))
    store.keep(0)
    assert store.row_with(1, store.clean(row(z)))[0] == pytest.approx(np.exp(-1e10 * 2.0**-40), rel=1e-12)


# --------------------------------------------------------------------------------------------- machines


@every_machine
@every_kernel
def test_a_sparse_machine_is_the_dense_one_step_by_step(name, kernel):
    X, y = stream(len(name) + len(kernel))
    rng = np.random.default_rng(1)
    dense, sparse = made(name, kernel), made(name, kernel)
    for i, x in enumerate(X):
        given = row(x, FORMATS[i % len(FORMATS)])
        first, second = dense.hypotheses(x), sparse.hypotheses(given)
        # Kernel rows of inner products agree to the last bit, so all does; distances are added in another order.
        close = 0.0 if kernel == "quadratic" or (kernel == "linear" and "one vs" not in name) else 1e-8
        assert worst_difference(first, second) <= close, f"step {i}"
        assert sparse.hypotheses(row(x)) is second  # in another format it is the same question
        dense.learn_one(x, y[i])
        sparse.learn_one(given, y[i])
        if i % 4 == 3 and "one vs" not in name:
            place = int(rng.integers(dense.n))
            dense.unlearn_one(place)
            sparse.unlearn_one(place)
        assert sparse.residual <= 1e-8
        assert np.allclose(sparse.scores(given), dense.scores(x), atol=close, rtol=0)
    assert sparse._columns.size == 0
    if "one vs" in name:
        return
    while sparse.n:
        sparse.unlearn_one(sparse.n // 2)
    learned(sparse, [[0.5, 1.0]], [0])  # other objects may come: dense ones, of another length
    assert np.array_equal(sparse.scores([0.5, 1.0]), learned(made(name, kernel), [[0.5, 1.0]], [0]).scores([0.5, 1.0]))


@every_machine
def test_equal_objects_are_one_however_they_come(name):
    X, y = stream(3, 16)
    rows = [row(x) for x in X]
    alike = learned(made(name), rows, y)
    either = [rows[0], *(x if i % 2 else rows[i] for i, x in enumerate(X) if i)]
    mixed = learned(made(name), either, y)
    assert same_answer(mixed.hypotheses(X[5]), alike.hypotheses(rows[5]))
    dense = learned(made(name), X, y)
    turned = learned(made(name), [X[0], *rows[1:]], y)  # the first one decides: dense
    assert same_answer(turned.hypotheses(rows[5]), dense.hypotheses(X[5]))
    assert turned._columns.size > 0


@every_machine
def test_saved_loaded_copied_it_goes_on_to_the_last_bit(name, tmp_path):
    X, y = stream(4, 24)
    rows = [row(x) for x in X]
    machine = learned(made(name), rows[:16], y[:16])
    forgets = hasattr(machine, "unlearn_one")
    if forgets:
        machine.unlearn_one(3)
    machine.hypotheses(rows[20]).leave_one_out(0)  # an answer that is remembered
    venn.save(tmp_path / "machine", machine)
    others = [venn.load(tmp_path / "machine"), copy.deepcopy(machine), pickle.loads(pickle.dumps(machine))]
    for other in others:
        assert other._columns.size == 0
    for x, label in zip(rows[16:], y[16:], strict=True):
        machine.learn_one(x, label)
        for other in others:
            other.learn_one(x, label)
            assert same_answer(other.hypotheses(rows[2]), machine.hypotheses(rows[2]))
    for one in (*others, machine) if forgets else ():
        one.unlearn_one()
    assert all(np.array_equal(other.leave_one_out_bag.scores, machine.leave_one_out_bag.scores) for other in others)
    venn.save(tmp_path / "again", others[0])
    venn.save(tmp_path / "machine", machine)
    if name != "one vs all":  # which keeps the order in which kinds of examples came
        assert (tmp_path / "again").read_bytes() == (tmp_path / "machine").read_bytes()


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("indices", lambda a: a + 1000), ("indices", lambda a: a[::-1].copy()), ("values", lambda a: a * 0),
        ("values", lambda a: a * np.nan), ("stops", lambda a: a[::-1].copy()), ("stops", lambda a: a + 1),
    ],
)  # fmt: skip
def test_sparse_rows_that_contradict_themselves_are_refused(part, value):
    from venn.machines.sparse import SparseRows

    good = rows_of(stream(5)[0]).parameters
    assert np.array_equal(SparseRows.made_of(dict(good)).toarray(), stream(5)[0])
    with pytest.raises(ValueError, match="must"):
        SparseRows.made_of(good | {part: value(good[part])})


def test_a_window_slides_over_sparse_objects():
    X, y = stream(6, 60)
    window, dense = SlidingWindow(made("least squares"), 8), SlidingWindow(made("least squares"), 8)
    for x, label in zip(X, y, strict=True):
        window.learn_one(row(x), label)
        dense.learn_one(x, label)
        assert np.allclose(window.scores(row(x)), dense.scores(x), atol=1e-9, rtol=0)
    assert (window.n, window.forgotten) == (8, 52)


def test_entries_of_objects_that_have_gone_are_freed():
    rng = np.random.default_rng(7)
    window = SlidingWindow(made("least squares"), 5)
    for _ in range(300):
        x = np.zeros((1, 400))
        x[0, rng.choice(400, 50, replace=False)] = rng.random(50)
        window.learn_one(sp.csr_array(x), int(rng.integers(3)))
    # 300 objects would be 15 000 entries; 5 are 250, and as many as 1024 may have gone.
    assert window.machine._store._objects._indices.size <= 2048
    assert window.residual <= 1e-8


def test_a_failed_unlearning_puts_a_sparse_object_back(monkeypatch):
    X, y = stream(8, 20)
    rows = [row(x) for x in X]
    machine = learned(made("least squares"), rows, y)
    before = machine.leave_one_out_bag.scores
    held = machine._store.held(20).toarray()
    with monkeypatch.context() as patch:
        patch.setattr(type(machine._system), "_probed", lambda *_: np.inf)
        with pytest.raises(venn.machines.NotConverged):
            machine.unlearn_one(4)
    assert np.array_equal(machine._store.held(20).toarray(), held)
    assert np.allclose(machine.leave_one_out_bag.scores, before, atol=1e-12)
    machine.unlearn_one(4)
    assert np.array_equal(machine._store.held(19).toarray(), np.delete(held, 4, axis=0))


def test_predictors_say_the_same_of_sparse_objects():
    X, y = stream(9, 30)
    models = [
        (venn.TransductiveVenn(made("least squares"), venn.LeaveOneOut(venn.Argmax())) for _ in range(2)),
        (venn.Conformal(made("one vs all"), seed=1) for _ in range(2)),
        (venn.TransductiveVennAbers(made("least squares")) for _ in range(2)),
    ]
    for dense, sparse in models:
        for x, label in zip(X, y, strict=True):
            first, second = dense.predict_one(x), sparse.predict_one(row(x))
            assert repr(first) == repr(second)
            dense.learn_one(x, label)
            sparse.learn_one(row(x), label)


def test_groups_by_feature_need_dense_objects():
    X, y = stream(10, 12)
    model = venn.TransductiveVenn(made("least squares"), venn.taxonomies.Grouped(0, venn.Argmax()))
    learned(model, [row(x) for x in X], y)
    with pytest.raises(TypeError, match="table must hold the objects"):
        model.predict_one(row(X[0]))


def test_tuning_takes_sparse_objects_and_knows_them_again():
    X, y = stream(11, 30)
    rows = [row(x) for x in X]
    sparse, dense = (venn.tune(zip(prefix, y, strict=True), classes=range(3)) for prefix in (rows, X))
    assert sparse.trials == dense.trials
    assert sparse.met(X[3], y[3])
    assert sparse.met(rows[3], y[3])
    assert dense.met(rows[3], y[3])
    assert not dense.met(row(X[3] + 1), y[3])


# ------------------------------------------------------------------------- scorers and inductive predictors


@pytest.mark.parametrize("make", [LogisticRegression, SGDClassifier, MultinomialNB], ids=lambda make: make.__name__)
@pytest.mark.parametrize("d", [3, 8, 21])
def test_a_frozen_scorer_takes_sparse_rows(make, d):
    X, y = stream(d, 40, d)
    X = np.abs(X)
    scorer = venn.FrozenScorer(make().fit(sp.csr_matrix(X), y))
    block = scorer.score_many(sp.coo_array(X))
    if make is MultinomialNB:  # asked itself
        assert np.allclose(block, scorer.score_many(X), rtol=1e-12)
    else:
        assert np.array_equal(block, scorer.score_many(X))  # the same sums
    assert np.array_equal([scorer.scores(row(x)) for x in X], block)
    with pytest.raises(ValueError, match=f"X must have {d} features as the first object had, got 1"):
        scorer.score_many(sp.csr_array((4, 1)))
    with pytest.raises(ValueError, match="X must be finite, got inf at row 1, feature 2"):
        scorer.score_many(sp.coo_array(([np.inf, 1.0], ([1, 0], [2, 0])), shape=(4, d)))


def test_an_estimator_that_wants_dense_rows_says_so():
    X, y = stream(12, 40, 5)
    scorer = venn.FrozenScorer(GaussianNB().fit(X, y))
    with pytest.raises(TypeError, match="dense data is required"):
        scorer.scores(row(X[0]))


def inductive(schedule=None):
    return venn.InductiveVenn(made("least squares"), schedule=schedule or venn.schedules.PrefixRestart(first=8))


def test_inductive_predictors_replay_sparse_blocks_as_dense_ones():
    X, y = stream(13, 60)
    block = sp.coo_array(X)
    dense, sparse, single, turned = (inductive() for _ in range(4))
    wanted = dense.replay_many(X, y)
    assert np.array_equal(sparse.replay_many(block, y).counts, wanted.counts)
    for x, label in zip(X, y, strict=True):
        single.learn_one(row(x), label)
    turned.learn_many(X[:5], y[:5])  # the first ones decide how all are kept
    turned.learn_many(sp.csr_array(X[5:]), y[5:])
    other = inductive()
    other.learn_many(sp.csr_array(X[:5]), y[:5])
    other.learn_many(X[5:], y[5:])
    asked = dense.predict_many(X).counts
    for model in (sparse, single, turned, other):
        assert np.array_equal(model.predict_many(block).counts, asked)
        assert np.array_equal(model.predict_many(X).counts, asked)
    assert isinstance(sparse._history.examples[0], SparseRows)
    assert np.array_equal(sparse._history.examples[0].toarray(), X)
    assert isinstance(turned._history.examples[0], np.ndarray)
    assert np.array_equal(other._history.examples[0].toarray(), X)
    assert np.array_equal(turned._history.examples[0], X)
    assert sparse.predict_one(row(X[0])).label == dense.predict_one(X[0]).label
    assert sparse.scorer._columns.size == 0
    with pytest.raises(ValueError, match=r"X must be two-dimensional \(n, d\)|X must have 17 features"):
        sparse.predict_many(sp.csr_array((3, 2)))


def test_numpy_does_not_turn_sparse_rows_into_something_else():
    rows = rows_of(np.eye(3))
    with pytest.raises(TypeError, match="made dense by toarray"):
        np.asarray(rows)
    assert repr(rows) == "<3 sparse rows of 3 features, 3 of them not 0>"
