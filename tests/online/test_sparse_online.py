"""Sparse objects in loops: questions that wait, journals, restarts, histories in checkpoints."""

import numpy as np
import pytest
import scipy.sparse as sp

import venn
from venn.machines.window import SlidingWindow
from venn.predictors.restarting import Restarting


def stream(n=30, d=12):
    rng = np.random.default_rng(0)
    X = np.where(rng.random((n, d)) < 0.7, 0.0, rng.integers(-2, 3, (n, d)) / 2)
    return [sp.coo_array(x[None]).tocsr() for x in X], rng.integers(0, 2, n).tolist()


def model():
    return venn.Conformal(venn.LeastSquaresSVM(venn.RBF(0.5), 2.0, [0, 1]), seed=1)


@pytest.mark.parametrize("stop", [0, 7, 8, 21])
def test_a_journal_of_sparse_questions_goes_on_to_the_last_bit(tmp_path, stop):
    rows, y = stream()
    straight, wanted = model(), []
    for x, label in zip(rows, y, strict=True):
        wanted.append(repr(straight.predict_one(x)))
        straight.learn_one(x, label)
    found = []
    with venn.Online(model(), journal=tmp_path / "run") as online:
        for i in range(stop):
            found.append(repr(online.ask(rows[i].tocoo(), i)))
            if i < stop - 1:  # the last one waits, across the restart
                online.answer(i, y[i])
    with venn.Online(model(), journal=tmp_path / "run") as online:
        for i in range(len(rows)):
            if i >= stop:
                found.append(repr(online.ask(rows[i], i)))
            if i >= stop - 1:
                online.answer(i, y[i])
    assert found == wanted


def test_what_is_asked_is_kept_as_it_was():
    rows, _ = stream()
    online = venn.Online(model())
    x = rows[0].copy()
    online.ask(x, "first")
    x.data[:] = 9.0
    kept = online._run.waiting["first"].x
    assert sp.issparse(kept)
    assert (kept != rows[0]).nnz == 0


def test_a_window_restarts_on_sparse_objects():
    rows, y = stream()
    window = SlidingWindow(venn.LeastSquaresSVM(venn.RBF(0.5), 2.0, [0, 1]), 10)
    predictor = Restarting(venn.Conformal(window, seed=1), venn.Monitor([0, 1]))
    for x, label in zip(rows, y, strict=True):
        predictor.learn_one(x, label)
    assert predictor.n == len(rows)


def test_a_history_of_sparse_objects_is_saved(tmp_path):
    rows, y = stream()
    make = lambda: venn.InductiveVenn(  # noqa: E731
        venn.LeastSquaresSVM(venn.RBF(0.5), 2.0, [0, 1]), schedule=venn.schedules.PrefixRestart(first=8)
    )
    first = make()
    for x, label in zip(rows[:20], y[:20], strict=True):
        first.learn_one(x, label)
    venn.save(tmp_path / "model", first)
    second = venn.load(tmp_path / "model")
    for x, label in zip(rows[20:], y[20:], strict=True):
        first.learn_one(x, label)
        second.learn_one(x, label)
        assert repr(second.predict_one(x)) == repr(first.predict_one(x))
    assert np.array_equal(second._history.examples[0].toarray(), first._history.examples[0].toarray())
