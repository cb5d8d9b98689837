"""Tuning on a prefix: leave-one-out in closed form against leaving one out."""

import warnings

import numpy as np
import pytest
from conftest import KERNELS, objects
from naive import least_squares as naive
from naive import scaling
from scipy import sparse

import streams
import venn
from venn.machines.tuning import gram, leave_one_out, quality


def prefix_of(n=40, c=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return [(x, int(np.clip(np.floor(x[0] + 1.5), 0, c - 1))) for x in X]


@pytest.mark.parametrize("kind", ["normal", "grid", "repeats"])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("C", [0.1, 10.0])
def test_closed_form_equals_leaving_one_out(kind, kernel, C):
    rng = np.random.default_rng(1)
    X, y = objects(kind, rng, 25), rng.integers(0, 3, 25)
    ours, theirs = KERNELS[kernel]
    K = theirs(X, X)
    assert np.allclose(gram(ours, X), K)
    values, vectors = np.linalg.eigh(K)
    scores = leave_one_out(np.maximum(values, 0), vectors, y, 3, C)
    assert np.allclose(scores.T, naive.leave_one_out(K, y, 3, C), atol=1e-8)


def test_the_best_of_the_grid_is_chosen():
    prefix = prefix_of()
    tuning = venn.tune(prefix, range(3), kernels=[venn.RBF(1e-4), venn.RBF(0.5), venn.RBF(500.0)], penalties=[0.1, 10])
    assert len(tuning.trials) == 6
    assert tuning.best.log_loss == min(trial.log_loss for trial in tuning.trials)
    assert tuning.kernel == venn.RBF(0.5)
    X, y = np.array([x for x, _ in prefix]), np.array([label for _, label in prefix])
    compared = 0
    for trial in tuning.trials:
        K = np.exp(-trial.kernel.gamma * ((X[:, None] - X[None]) ** 2).sum(axis=2))
        scores = naive.leave_one_out(K, y, 3, trial.C)
        assert trial.error == np.mean(scores.argmax(axis=1) != y)
        maps = [scaling.platt(s, y == k) for k, s in enumerate(scores.T)]
        p = np.array([fitted(s) for fitted, s in zip(maps, scores.T, strict=True)])
        rising = [fitted(s.max()) >= fitted(s.min()) for fitted, s in zip(maps, scores.T, strict=True)]
        if all(rising):
            log_loss = -np.log(p[y, np.arange(len(y))] / p.sum(axis=0)).mean()
            assert log_loss == pytest.approx(trial.log_loss, abs=1e-5)
            compared += 1
    assert compared >= 2  # a falling sigmoid is replaced: the next test's business
    machine = tuning.machine()
    assert repr(machine) == repr(venn.LeastSquaresSVM(tuning.kernel, tuning.C, range(3)))
    assert isinstance(tuning.machine(venn.OneVsAllSVM), venn.OneVsAllSVM)


def test_a_kernel_that_says_nothing_is_not_chosen_for_reading_labels_off_their_absence():
    """The mean of the other targets tells a positive from a negative example; it must not count as skill."""
    y = np.array([0, 1] * 20)
    scores = np.array([(1.0 - 2 * y).sum() - (1.0 - 2 * y), (2.0 * y - 1).sum() - (2.0 * y - 1)]) / 39
    assert quality(scores, y) == (pytest.approx(np.log(2)), 1.0)


def test_the_order_of_the_prefix_does_not_matter():
    prefix = prefix_of()
    first = venn.tune(prefix, range(3))
    again = venn.tune(prefix[::-1], range(3))
    assert (first.kernel, first.C) == (again.kernel, again.C)
    assert np.allclose([t.log_loss for t in first.trials], [t.log_loss for t in again.trials], atol=1e-9)


def test_progress_is_told():
    told = []
    venn.tune(prefix_of(), range(3), progress=lambda done, total: told.append((done, total)))
    assert told == [(i, 8) for i in range(9)]


def test_equal_objects():
    tuning = venn.tune([([1.0, 2.0], y) for y in [0, 1, 0, 1, 2]], range(3))
    assert np.isfinite(tuning.best.log_loss)


def left_out(machine):
    return venn.TransductiveVenn(machine, venn.LeaveOneOut(venn.Argmax()))


@pytest.mark.parametrize(
    "model",
    [
        left_out, lambda machine: left_out(machine.fresh()),
        lambda machine: venn.Panel(
            abers=venn.TransductiveVennAbers(machine), platt=venn.ScoreCalibrator(machine, venn.maps.Platt())
        ),
        venn.InductiveVenn, venn.predictors.CrossVenn,
    ],
)  # fmt: skip
def test_teaching_the_prefix_is_warned_of(model):
    stream = streams.load("car", shuffle=0)
    tuning = venn.tune(stream.take(50))
    for again in (stream.take(60), list(stream.take(50))[::-1]):
        with pytest.warns(UserWarning, match=r"tuned on 50 examples, .* no guarantee holds"):
            venn.replay(again, model(tuning.machine()), progress=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        venn.replay(stream.drop(50).take(10), model(tuning.machine()), progress=False)
        venn.replay(stream.take(4), model(tuning.machine()), progress=False)  # too few to tell


def test_a_bad_object_is_refused_by_the_machine_not_by_the_comparison():
    tuning = venn.tune(prefix_of(), range(3))
    with pytest.raises(TypeError, match="x must be a sequence of numbers"):
        venn.replay([(["a", "b"], 0)], left_out(tuning.machine()), progress=False)


@pytest.mark.parametrize(
    ("form", "got"),
    [
        (lambda X, y: (X, y), "an? ndarray in a tuple"), (lambda X, y: [X, y], "an? ndarray in a list"),
        (lambda X, y: (sparse.csr_array(X), y), "a csr_array in a tuple"), (lambda X, y: X, "an? ndarray"),
        (lambda X, y: "car", "a str"), (lambda X, y: (X.tolist(), y.tolist()), r"\[\["), (lambda X, y: None, "None"),
    ],
)  # fmt: skip
def test_arrays_are_no_pairs(form, got):
    prefix = prefix_of(6)
    X, y = np.array([x for x, _ in prefix]), np.array([label for _, label in prefix])
    with pytest.raises(TypeError, match=r"prefix must .* pairs, as streams.from_arrays\(X, y\) does, got " + got):
        venn.tune(form(X, y), range(3))
    assert venn.tune(streams.from_arrays(X, y)).n == 6


def test_bad_input():
    good = prefix_of()
    with pytest.raises(TypeError, match="classes must be given"):
        venn.tune(good)
    with pytest.raises(ValueError, match="at least 4 examples, got 3"):
        venn.tune(good[:3], range(3))
    with pytest.raises(ValueError, match="y must be one of"):
        venn.tune(good, [5, 6])
    with pytest.raises(ValueError, match="x must be finite"):
        venn.tune([*good, ([np.nan, 0.0], 0)], range(3))
    with pytest.raises(ValueError, match="x must have 2 features"):
        venn.tune([*good, ([0.0], 0)], range(3))
    with pytest.raises(TypeError, match="kernel must be"):
        venn.tune(good, range(3), kernels=["rbf"])
    with pytest.raises(ValueError, match="penalties must be"):
        venn.tune(good, range(3), penalties=[0.0])
    with pytest.raises(ValueError, match="at least 2 classes, got 5 of 0 alone"):
        venn.tune([([float(i)], 0) for i in range(5)], range(3))
    with pytest.raises(ValueError, match="features of a sensible size"):
        venn.tune([(x * 1e120, y) for x, y in good], range(3))
    for bad in ({"kernels": venn.RBF(1.0)}, {"penalties": 1.0}):
        with pytest.raises(TypeError, match="must be sequences"):
            venn.tune(good, range(3), **bad)
    with pytest.raises(ValueError, match="at least one each"):
        venn.tune(good, range(3), penalties=[])


def test_a_kind_that_makes_no_machine_is_refused():
    rng = np.random.default_rng(0)
    found = venn.tune(list(zip(rng.normal(size=(12, 2)), [0, 1] * 6, strict=True)), range(2))
    with pytest.raises(TypeError, match="kind must be a class of machines, such as LeastSquaresSVM, got"):
        found.machine(lambda *parameters: None)
