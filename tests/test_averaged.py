"""The mean of several predictors' forecasts, alone and in a panel with its parts."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from conftest import labels, learned, objects

import venn
from venn.machines import Bank, Mixture
from venn.predictors import Averaged, DeletedScores


def parts(c=3):
    bank = Bank(venn.RBF(0.5), range(c))
    return (
        venn.TransductiveVennAbers(Mixture(bank)),
        venn.Scaler(bank.members[1], venn.maps.BetaCalibration(), DeletedScores()),
        venn.InductiveVennAbers(venn.LeastSquaresSVM(venn.RBF(0.5), 1.0, range(c))),
    )


def stream(n=40, c=3):
    rng = np.random.default_rng(0)
    X = objects("repeats", rng, n)
    return X, labels("noise", rng, X, c)


def test_the_mean_after_every_step():
    X, y = stream()
    model, alone = Averaged(parts()), venn.Panel(a=parts()[0], b=parts()[1], c=parts()[2])
    for x, label in zip(X, y.tolist(), strict=True):
        said = model.predict_one(x)
        expected = np.mean([one.proba for one in alone.predict_one(x).values()], axis=0)
        assert np.allclose(said.proba, expected, atol=1e-12)
        assert said.guaranteed == "nothing"
        model.learn_one(x, label)
        alone.learn_one(x, label)
    assert model.n == model.machine.n == 40


def test_a_panel_asks_and_teaches_each_part_once(monkeypatch):
    X, y = stream()
    vmix, beta, inductive = parts()
    inner = Averaged([vmix, beta])
    panel = venn.Panel(both=inner, vmix=vmix, all=Averaged([inner, inductive]), inductive=inductive)
    asked, taught = [], []
    for one in (vmix, beta, inductive):
        for name, calls in (("predict_one", asked), ("after_learning", taught)):
            real = getattr(one, name)

            def counted(*args, real=real, calls=calls, one=one):
                calls.append(one)
                return real(*args)

            monkeypatch.setattr(one, name, counted)
    learned(panel, X, y)
    assert [taught.count(one) for one in (vmix, beta, inductive)] == [40] * 3
    assert inductive.n == inner.machine.n == 40
    assert panel.machines == (inner.machine,)
    said = panel.predict_one(X[0])
    assert [asked.count(one) for one in (vmix, beta, inductive)] == [1] * 3
    both = (said["vmix"].proba + beta.predict_one(X[0]).proba) / 2
    assert np.allclose(said["both"].proba, both, atol=1e-12)
    assert np.allclose(said["all"].proba, (both + said["inductive"].proba) / 2, atol=1e-12)
    with pytest.raises(ValueError, match="y must"):
        panel.learn_one(X[0], 7)
    with pytest.raises(ValueError, match="noted must be"):
        panel.learn_one(X[0], 1, [None] * 4)


def test_a_panel_with_parts_is_saved(tmp_path):
    X, y = stream()
    vmix, beta, _ = parts()
    panel = learned(venn.Panel(vmix=vmix, both=Averaged([vmix, beta])), X[:30], y[:30])
    venn.save(tmp_path / "panel", panel)
    for twin in (venn.load(tmp_path / "panel"), pickle.loads(pickle.dumps(panel))):
        assert twin["both"].predictors[0] is twin["vmix"]
        learned(twin, X[30:], y[30:])
        assert twin["both"].n == 40
    learned(panel, X[30:], y[30:])
    assert np.array_equal(twin.predict_one(X[0])["both"].proba, panel.predict_one(X[0])["both"].proba)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: Averaged([]), "predictors must be a sequence of at least one"),
        (lambda: Averaged(parts()[0]), "predictors must be a sequence"),
        (lambda: Averaged([3]), "predictors must be a predictor"),
        (lambda: Averaged([parts()[0]] * 2), "predictors must be different objects"),
        (lambda: Averaged([parts()[0], parts(2)[0]]), "predictors must have the same classes"),
        (lambda: Averaged([parts()[0], parts()[1]]), "predictors must read one machine"),
        (lambda: Averaged([venn.Conformal(parts()[0].machine.bank)]).predict_one([0.0]), "must give probabilities"),
    ],
)
def test_what_cannot_be_averaged(wrong, message):
    with pytest.raises((TypeError, ValueError), match=message):
        wrong()
