"""A mixture of experts: the identity and the bounds on any sequence, the pool, sleep, panels, files, merging."""

import math

import numpy as np
import pytest
from conftest import refused
from naive import experts as naive

import venn
from venn.machines import stack
from venn.machines.stack import fitted_pool
from venn.predictors import ExpertMixture, Predictor
from venn.predictors.expert_mixture import FLOOR

CLASSES = ("a", "b", "c")


class Told(Predictor):
    """Says what its object says in one place: probabilities, or nothing."""

    classes = CLASSES
    n = 0

    def __init__(self, place=0):
        self.place = place

    def predict_one(self, x):
        said = np.asarray(x, np.float64)[self.place]
        return said[None] if np.isnan(said).any() else venn.Forecast(said / said.sum(), CLASSES)

    def commit(self, x, y, prepared=None):
        self.n += 1


def stream(n, experts=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 6, (n, experts, 3)) + (rng.random((n, experts, 3)) < 0.2)
    X[:, :, 0] += X.sum(axis=2) == 0
    return X.astype(float), rng.integers(0, 3, n)


def follow(model, X, codes):
    """Return what the experts and the pool said, as it counts, and the forecasts, step by step."""
    said, told = [], []
    for x, code in zip(X, codes, strict=True):
        merged, each = model.merged([model.heard([one.predict_one(x) for one in model.experts])])
        assert np.array_equal(model.predict_one(x).proba, merged)
        said.append(each.copy())
        told.append(merged)
        model.learn_one(x, CLASSES[code])
    return said, told


@pytest.mark.parametrize("share", [0.001, 0.3])
def test_its_loss_is_that_of_the_sum_over_all_sequences_of_experts(share):
    """Also of sequences that change: each of them loses at least what the mixture loses less its cost."""
    for seed in range(4):
        X, codes = stream(6, seed=seed)
        model = ExpertMixture([Told(0), Told(1)], share=share)
        said, _ = follow(model, X, codes)
        prior = [0.1, 0.1, 0.8]
        assert model.loss == pytest.approx(-math.log(naive.probability(said, codes, prior, share)), abs=1e-9)
        for path in ((0, 0, 1, 1, 2, 2), (1, 1, 1, 1, 1, 0)):
            lost = -sum(math.log(said[t][i][k]) for t, (i, k) in enumerate(zip(path, codes, strict=True)))
            assert model.loss <= lost + naive.cost(path, prior, share) + 1e-9
        for i in range(3):
            assert model.losses[i] == pytest.approx(-sum(math.log(s[i][k]) for s, k in zip(said, codes, strict=True)))
            assert model.allowance[i] >= naive.cost((i,) * 6, prior, share) - 1e-9


def test_against_labels_chosen_by_an_adversary_it_keeps_its_bound():
    X, _ = stream(400, 3)
    model = ExpertMixture([Told(i) for i in range(3)])
    for x in X:
        model.learn_one(x, CLASSES[int(model.predict_one(x).proba.argmin())])
        assert (model.loss <= model.losses + model.allowance + 1e-9).all()
    assert model.weights.sum() == pytest.approx(1)
    assert model.allowance.max() == pytest.approx(math.log(15), abs=0.4)  # 400 steps


def test_who_never_errs_pays_a_floor_that_falls_and_who_excludes_a_label_the_logarithm_of_what_it_is():
    """At most .01 (2 + ln(n / 100)) after n examples, where a fixed floor costs .0001 each; then ln(c) + ln(100 n)."""
    model = ExpertMixture([Told(0), Told(1)])
    sure = np.array([[1.0, 0.0, 0.0], [2.0, 2.0, 2.0]])
    for n in range(1, 1001):
        model.learn_one(sure, "a")
        if n >= 100:
            assert model.losses[0] <= 0.01 * (2 + math.log(n / 100))
    assert model.loss <= model.losses[0] + model.allowance[0]
    before = model.losses[0]
    model.learn_one(sure, "b")
    assert model.losses[0] - before == pytest.approx(math.log(3) + math.log(100 * 1000))


def test_a_weight_that_moves_before_the_forecast_breaks_the_identity():
    """The check above can fail: a mixture that has seen the label loses less than any sequence allows."""
    X, codes = stream(6)
    model, lost = ExpertMixture([Told(0), Told(1)]), 0.0
    said = []
    for x, code in zip(X, codes, strict=True):
        heard = model.heard([one.predict_one(x) for one in model.experts])
        _, each = model.merged([heard])
        said.append(each)
        model.weigh(code, heard)
        lost -= math.log((model.weights @ each)[code])
    assert lost < -math.log(naive.probability(said, codes, [0.1, 0.1, 0.8], 0.001)) - 0.1


def test_the_pool_is_the_product_of_powers_and_they_are_the_best_ones():
    X, codes = stream(60, 3)
    model = ExpertMixture([Told(i) for i in range(3)], exponents=(1.0, 0.5, 0.0))
    said, _ = follow(model, X, codes)
    powers, factors = model.state["powers"], model.state["biases"]
    logs = np.log([each[:3] for each in said])
    _, each = model.merged([model.heard([one.predict_one(X[0]) for one in model.experts])])
    expected = np.array(naive.pool(np.log(each[:3]), powers, factors))
    np.testing.assert_allclose(each[3], (1 - FLOOR) * expected + FLOOR / 3, atol=1e-12)
    powers, factors = fitted_pool(logs, codes, np.array([1.0, 0.5, 0.0]), 2.0)
    best = naive.pool_loss(logs, codes, powers, factors, (1.0, 0.5, 0.0), 2.0)
    for place, values in ((k, v) for v in (powers, factors) for k in range(3)):
        for step in (-1e-2, 1e-2):
            other = [powers.copy(), factors.copy()]
            moved = other[0] if values is powers else other[1]
            moved[place] += step
            if values is factors or moved[place] >= 0:
                assert naive.pool_loss(logs, codes, *other, (1.0, 0.5, 0.0), 2.0) >= best - 1e-6


def test_no_power_of_the_pool_is_fitted_to_a_class_that_hardly_ever_comes(monkeypatch):
    X, codes = stream(240, 2)
    codes %= 2
    codes[100] = 2  # one in more than a hundred
    found = []
    for least in (stack.RARE, 0):
        monkeypatch.setattr(stack, "RARE", least)
        model = ExpertMixture([Told(0), Told(1)], exponents=(1.0, 0.5))
        said, _ = follow(model, X, codes)
        model.fit_pool()
        found.append(np.append(model.state["powers"], model.state["biases"]))
    others = np.arange(240) != 100
    logs = np.log([each[:2] for each in said])[others]
    expected = np.append(*fitted_pool(logs, codes[others], np.array([1.0, 0.5]), 2.0))
    np.testing.assert_allclose(found[0], expected, atol=2e-3)
    assert np.abs(found[1] - expected).max() > 0.02  # so it would be otherwise


def test_an_expert_that_says_nothing_yet_counts_as_the_others_do():
    X, codes = stream(80)
    X[:50, 1] = np.nan
    model = ExpertMixture([Told(0), Told(1)])
    said, told = follow(model, X, codes)
    for t in range(50):
        np.testing.assert_allclose(said[t][1], told[t], rtol=1e-15)
    assert model.losses[1] != model.losses[0]
    assert (model.loss <= model.losses + model.allowance).all()
    silent = ExpertMixture([Told(0), Told(1)])
    X[:, :] = np.nan
    np.testing.assert_allclose(silent.predict_one(X[0]).proba, 1 / 3)


def test_where_nobody_of_the_pool_is_awake_the_others_are_the_pool():
    model = ExpertMixture([Told(0), Told(1), Told(2)], (1.0, 0.0, 0.0))
    _, each = model.merged(np.array([[[np.nan] * 3], [[0.1, 0.2, 0.7]], [[0.4, 0.5, 0.1]]]))
    pool = np.sqrt(each[1] * each[2])
    np.testing.assert_allclose(each[3], (1 - FLOOR) * pool / pool.sum() + FLOOR / 3, atol=1e-12)


def parts(c=3):
    machine = venn.LeastSquaresSVM(venn.RBF(0.5), 1.0, range(c))
    return venn.TransductiveVennAbers(machine), venn.ScoreCalibrator(machine, venn.maps.Platt())


def examples(n=90):
    rng = np.random.default_rng(0)
    X = rng.integers(-2, 3, (n, 2)).astype(float)
    return X, rng.integers(0, 3, n).tolist()


def test_a_panel_asks_and_teaches_each_expert_once(monkeypatch):
    X, y = examples()
    abers, platt = parts()
    panel, alone = venn.Panel(abers=abers, both=ExpertMixture([abers, platt])), ExpertMixture(parts())
    asked, taught = [], []
    for one in (abers, platt):
        for name, calls in (("predict_one", asked), ("commit", taught)):
            real = getattr(one, name)
            monkeypatch.setattr(one, name, lambda *a, real=real, calls=calls, one=one: calls.append(one) or real(*a))
    for x, label in zip(X, y, strict=True):
        assert np.array_equal(panel.predict_one(x)["both"].proba, alone.predict_one(x).proba)
        panel.learn_one(x, label)
        alone.learn_one(x, label)
    assert [taught.count(one) for one in (abers, platt)] == [90] * 2
    assert panel["both"].n == alone.n == abers.machine.n == 90
    np.testing.assert_allclose(panel.predict_many(X[:2])["both"].proba[0], alone.predict_one(X[0]).proba)
    with pytest.raises(ValueError, match="prepared must be"):
        panel["both"].predictors[-1].commit(X[0], 1)


def test_a_ring_that_is_full_goes_on_to_the_last_bit(monkeypatch):
    monkeypatch.setattr("venn.predictors.expert_mixture.KEPT", 32)
    X, codes = stream(100)
    kept, model = ExpertMixture([Told(0), Told(1)]), ExpertMixture([Told(0), Told(1)])
    for x, code in zip(X, codes, strict=True):
        again = ExpertMixture([Told(0), Told(1)])
        again.restore(kept.state)
        kept = again
        assert np.array_equal(kept.predict_one(x).proba, model.predict_one(x).proba)
        kept.learn_one(x, CLASSES[code])
        model.learn_one(x, CLASSES[code])
    assert len(model.state["logs"]) == 32


def test_two_mixtures_join_their_evidence():
    X, codes = stream(90)  # until 100 the floor does not depend on how many were seen
    one, two, all_ = (ExpertMixture([Told(0), Told(1)]) for _ in range(3))
    follow(one, X[:50], codes[:50])
    follow(two, X[50:], codes[50:])
    follow(all_, X, codes)
    joined = one.joined(two, [Told(0), Told(1)])
    assert joined.state["seen"] == 90
    np.testing.assert_allclose(joined.losses[:2], all_.losses[:2])
    np.testing.assert_array_equal(joined.state["logs"], all_.state["logs"])
    assert joined.weights.sum() == pytest.approx(1)
    joined.learn_one(X[0], "a")


test_what_cannot_be_mixed = refused(None, [
    (lambda: ExpertMixture([parts()[0]] * 2), "predictors must be different objects"),
    (lambda: ExpertMixture([parts()[0], parts(2)[0]]), "predictors must have the same classes"),
    (lambda: ExpertMixture([venn.Conformal(parts()[0].machine)]).predict_one([0.0]), "must give probabilities"),
])  # fmt: skip


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n", -1), ("due", 0), ("loss", np.nan), ("losses", np.zeros(2)), ("weights", np.full(3, np.nan)),
        ("powers", np.zeros(1)), ("biases", np.zeros(2)), ("logs", np.zeros((2, 2, 3))), ("codes", np.full(5, 3)),
    ],
)  # fmt: skip
def test_a_damaged_state_is_refused(name, value):
    X, codes = stream(5)
    model = ExpertMixture([Told(0), Told(1)])
    follow(model, X, codes)
    with pytest.raises(ValueError, match="must"):
        ExpertMixture([Told(0), Told(1)]).restore(model.state | {name: value})
