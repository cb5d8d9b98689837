"""A mixture of distributions: its definition at every step, its bound on any sequence, sleep, files, merging."""

import numpy as np
import pytest
from conftest import refused
from naive import distribution_mixture as naive
from sklearn.ensemble import RandomForestRegressor

import venn
from venn.distribution import NestedIntervals, NormalDistribution, PredictiveDistribution
from venn.labels import Real
from venn.machines import number_experts
from venn.machines.number_experts import Process, QuantileForest, cost
from venn.machines.scale import restored_scale
from venn.machines.shapes import PLAIN, STRETCHED, Shape
from venn.predictors import ConformalDistribution, DistributionMixture, NumberRefits, Predictor
from venn.predictors.distribution_mixture import LEVELS, quantiles_of


class Told(Predictor):
    """Says what its object says: (M, 100) quantiles, NaN for nobody."""

    classes, space, n = (), Real(), 0

    def __init__(self, m):
        self.experts_inside = m

    def predict_one(self, x):
        return np.asarray(x)

    def commit(self, x, y, prepared=None):
        self.n += 1


def said(n, m, seed=0, unit=1.0):
    """Sorted quantiles and labels on a coarse grid, full of ties; the numbers grow with time."""
    rng = np.random.default_rng(seed)
    Q = np.sort(rng.integers(-4, 5, (n, m, 100)) * (1 + np.arange(n) // 5)[:, None, None], axis=2) * unit
    return Q.astype(float), rng.integers(-6, 7, n) * (1.0 + np.arange(n) // 5) * unit


@pytest.mark.parametrize(("share", "unit"), [(0.001, 1.0), (0.2, 1e50)])
def test_it_is_what_its_definition_says_at_every_step(share, unit):
    Q, labels = said(16, 3, unit=unit)
    Q[:6, 1] = np.nan
    model = DistributionMixture([Told(3)], share)
    rows = [[None if np.isnan(q[0]) else q.tolist() for q in each] for each in Q]
    weights = np.full(3, 1 / 3)
    for x, row, y, expected in zip(Q, rows, labels, naive.follow(rows, labels.tolist(), share), strict=True):
        forecast, awake = model.predict_one(x), [i for i in range(3) if row[i] is not None]
        for u in (-3 * unit, 0.0, 2.5 * unit):
            w = weights[awake] / weights[awake].sum()
            found = naive.merged([row[i] for i in awake], w, u)
            assert forecast.cdf(u + 1e-9 * unit) == pytest.approx(found, abs=1e-9)
        model.learn_one(x, y)
        loss, losses, allowance, weights = expected[0], *map(np.array, expected[1:])
        assert model.loss == pytest.approx(loss)
        np.testing.assert_allclose(model.losses, losses)
        np.testing.assert_allclose(model.allowance, allowance)
        np.testing.assert_allclose(model.weights, weights)


def adversary(model, x, labels):
    """Return the label at which the forecast loses most beside the experts, weighed as it weighs them."""
    forecast = model.predict_one(x)
    each = [PredictiveDistribution(q) for q in x]
    weights = model.weights.tolist()
    return max(labels, key=lambda y: forecast.crps(y) - sum(w * e.crps(y) for w, e in zip(weights, each, strict=True)))


@pytest.mark.parametrize("grows", [False, True])
def test_against_labels_chosen_by_an_adversary_it_keeps_its_bound(grows):
    """Experts are sure of one end each; with `grows` labels run out of every range that was seen."""
    model, unit = DistributionMixture([Told(3)]), 1.0
    for step in range(200):
        unit *= 1.03 if grows else 1.0
        x = np.array([np.zeros(100), np.full(100, unit), np.linspace(0, unit, 100) ** (1 + step % 3)])
        x[2].sort()
        model.learn_one(x, adversary(model, x, np.linspace(-0.2, 1.5, 18) * unit if grows else [0.0, unit]))
        assert (model.loss <= model.losses + model.allowance + 1e-9 * unit).all()
    if not grows:
        assert model.allowance.max() == pytest.approx(0.5 * np.log(3) + 200 * 0.0005 * 2 / 3, rel=0.01)
        assert model.span == 1


def test_the_bound_is_near_what_can_happen():
    """The check above can fail: with less of the allowance it does, where one expert is always right."""
    x = np.array([np.zeros(100), np.ones(100)])
    model = DistributionMixture([Told(2)], share=1e-9)
    for _ in range(60):
        model.learn_one(x, 0.0)
    assert 0.8 * model.allowance[0] < model.loss - model.losses[0] <= model.allowance[0]


def test_what_an_expert_says_is_read_off_any_distribution():
    points = np.sort(np.random.default_rng(0).normal(size=1000))
    expected = points[(LEVELS * 1000).astype(int)]
    np.testing.assert_array_equal(quantiles_of(PredictiveDistribution(points))[0], points[4::10])
    np.testing.assert_allclose(quantiles_of(PredictiveDistribution(points))[0], expected, atol=0.3)
    assert quantiles_of(NormalDistribution(1.0, 2.0))[0, 49:51].mean() == pytest.approx(1.0)
    assert np.isnan(quantiles_of(PredictiveDistribution([]))).all()
    with pytest.raises(TypeError, match="predictors must give distributions, got NestedIntervals"):
        quantiles_of(NestedIntervals([1.0, 3.0], 2.0))
    nobody = DistributionMixture([Told(2)])
    assert nobody.predict_one(np.full((2, 100), np.nan)).label == 0
    nobody.learn_one(np.full((2, 100), np.nan), 3.0)
    assert (nobody.loss, nobody.losses.tolist(), nobody.span) == (3, [3, 3], 0)


def ridges(n=2):
    return [ConformalDistribution(venn.machines.KernelRidge(venn.RBF(0.5), C)) for C in (0.1, 10.0)[:n]]


test_what_cannot_be_is_refused = refused(DistributionMixture, [
    ([], "predictors must be a sequence of at least one predictor"),
    ([venn.TransductiveVenn(venn.LeastSquaresSVM(venn.RBF(1.0), 1.0, ["a", "b"]))], "predictors must predict num"),
])  # fmt: skip


def test_saved_merged_and_in_a_panel(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(70, 2)).round(1), rng.normal(size=70).round(1)
    one, refits = ridges(1)[0], NumberRefits(first=30, growth=1.5)
    panel = venn.Panel(ridge=one, both=DistributionMixture([one, refits]))
    for i in range(55):
        panel.learn_one(X[i], y[i])
    venn.save(tmp_path / "panel", panel)
    again = venn.load(tmp_path / "panel")
    for i in range(55, 70):
        for model in (panel, again):
            model.learn_one(X[i], y[i])
        assert np.array_equal(panel.predict_one(X[0])["both"].points, again.predict_one(X[0])["both"].points)
    assert np.array_equal(panel["both"].losses, again["both"].losses)
    Q, labels = said(12, 2)
    parts = [DistributionMixture([Told(2)]) for _ in range(2)]
    for i, (x, label) in enumerate(zip(Q, labels, strict=True)):
        parts[i % 2].learn_one(x, label)
    both = parts[0].joined(parts[1], [Told(2)])
    np.testing.assert_allclose(both.losses, parts[0].losses + parts[1].losses)
    for x, label in zip(Q, labels, strict=True):
        both.learn_one(x, label)
        assert (both.loss <= both.losses + both.allowance).all()


def test_a_forest_says_the_labels_of_the_leaves_that_an_object_comes_to():
    rng = np.random.default_rng(0)
    X, y = rng.uniform(size=(80, 2)).round(1), rng.integers(0, 4, 80).astype(float)
    y[7] = 4  # the largest
    forest = QuantileForest.fitted(X, y)
    order = np.argsort(y, kind="stable")
    placed, labels = restored_scale(forest.scale).place(X[order], 10.0), y[order]
    woods = RandomForestRegressor(number_experts.TREES, min_samples_leaf=5, max_features=0.5, random_state=0)
    leaves = woods.fit(placed, (labels - np.median(y)) / y.max()).apply(placed)
    asked = np.vstack([X[7], rng.uniform(size=(5, 2))])
    for row, at in zip(asked, woods.apply(restored_scale(forest.scale).place(asked, 10.0)), strict=True):
        same = leaves == at
        weights = (same / same.sum(axis=0)).mean(axis=1)
        for level in (0.15, 0.5, 0.85, 1 - 1e-9):
            below = [weights[labels < u - 0.5].sum() for u in range(5)]
            expected = max(u for u in range(5) if below[u] < level)
            assert forest.quantiles([row], np.array([level]))[0, 0] == expected
    assert forest.quantiles(X[7:8], np.array([0.0, 1.0]))[0].tolist() == [0, 4]
    ends = forest.ends.copy()
    ends[0] = ends[1]
    for name, value in (("ends", ends), ("ends", forest.ends[:-1]), ("members", forest.members[1:]), ("trees", None)):
        with pytest.raises(ValueError, match=f"{name} must"):
            QuantileForest.made_of(forest.parameters | {name: value})


def test_a_process_is_the_normal_distribution_given_the_examples():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    y = 5 + np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=40)
    process = Process.fitted(X, y)
    shaped = process.shape.of(y)
    rows = np.vstack([process.rows, restored_scale(process.scale).place(np.array([[0.3, 0.2]]), 10.0) / process.widths])
    K = process.height**2 * np.exp(-0.5 * ((rows[:, None] - rows) ** 2).sum(axis=2))
    K += (process.noise**2 + 1e-6 * process.height**2) * np.eye(41)
    weights = np.linalg.solve(K[:40, :40], K[40, :40])
    mean, deviation = process.normal(np.array([[0.3, 0.2]]))[0]
    assert mean == pytest.approx(shaped.mean() + weights @ (shaped - shaped.mean()))
    assert process.quantiles(np.array([[0.3, 0.2]]), np.ones(1))[0] == pytest.approx(
        process.shape.back(mean + deviation)
    )
    assert deviation == pytest.approx(shaped.std() * np.sqrt(K[40, 40] - weights @ K[40, :40]), rel=1e-4)
    logs, usual, apart = rng.normal(size=4) * 0.3, np.zeros(4), np.full(4, 1.5)
    _, gradient = cost(logs, X, y - 5, usual, apart)
    for k in range(4):
        step = 1e-5 * np.eye(4)[k]
        two = [cost(logs + sign * step, X, y - 5, usual, apart)[0] for sign in (1, -1)]
        assert gradient[k] == pytest.approx((two[0] - two[1]) / 2e-5, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("far", [1e9, 1e12])
def test_a_forest_of_labels_far_from_0_is_that_of_the_labels_near_it(far):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 2))
    labels = np.rint(1024 * X[:, 0]) / 1024  # exact beside far, too
    near, away = (QuantileForest.fitted(X, labels + add).quantiles(X, LEVELS) for add in (0.0, far))
    np.testing.assert_array_equal(away - far, near)


def test_a_process_takes_labels_in_the_likelier_shape_and_says_only_what_labels_may_be():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    noise = rng.normal(size=80)
    processes = [Process.fitted(X, y) for y in (X[:, 0] + noise, np.exp(2 * X[:, 0] + noise), 1.0 * (noise > 0))]
    assert [process.shape.reach for process in processes[:2]] == [PLAIN, STRETCHED]
    assert set(processes[2].quantiles(X, np.linspace(-2, 2, 9)).ravel()) == {0.0, 1.0}
    # Densities of labels, by the same shape: the likelihood of a normal label in it, times the slope of the map.
    shape, y = Shape.fitted(noise, STRETCHED), noise[:5]
    slopes = (shape.of(y + 1e-7) - shape.of(y)) / 1e-7 * shape.unit
    assert shape.steepness(y) == pytest.approx(np.log(slopes).sum(), abs=1e-5)


def test_one_wild_label_does_not_make_the_forecast_wide_for_ever():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(120, 2))
    y = X[:, 0] + 0.3 * rng.normal(size=120)
    y[10] = 1e6
    refits = NumberRefits(first=50)
    for x, label in zip(X, y, strict=True):
        refits.learn_one(x, label)
    for quantiles in refits.predict_one(X[0])[1:]:
        assert quantiles[90] - quantiles[10] < 10


def test_after_a_wild_label_the_others_still_move_the_weights():
    """One of two experts is right until a label of 1e6 comes, then the other: it must be found out."""
    Q, labels = said(160, 2)
    right, wrong = labels[:, None] + np.linspace(-0.1, 0.1, 100), np.repeat(labels[:, None] + 50.0, 100, axis=1)
    Q[:40, 0], Q[:40, 1], Q[40:, 0], Q[40:, 1] = right[:40], wrong[:40], wrong[40:], right[40:]
    labels[40] = 1e6
    plain, drawn = DistributionMixture([Told(2)]), DistributionMixture([Told(2)], first=30)
    for model in (plain, drawn):
        for x, y in zip(Q, labels, strict=True):
            model.learn_one(x, y)
            assert (model.loss <= model.losses + model.allowance + 1e-9).all()
    assert drawn.weights[1] > 0.9 > 0.1 > plain.weights[1]
    assert drawn.span < 1000 < 1e5 < plain.span


def test_without_labels_far_out_the_first_ones_are_all_that_does_not_count():
    Q, labels = said(40, 3)
    late, drawn = DistributionMixture([Told(3)]), DistributionMixture([Told(3)], first=30)
    for i, (x, y) in enumerate(zip(Q, labels, strict=True)):
        drawn.learn_one(x, y)
        if i >= 30:
            late.learn_one(x, y)
    assert drawn.shape.reach * drawn.shape.unit > np.abs(Q).max() + abs(drawn.shape.center)
    np.testing.assert_allclose(drawn.weights, late.weights)
    np.testing.assert_allclose(
        [drawn.loss, *drawn.losses, *drawn.allowance], [late.loss, *late.losses, *late.allowance]
    )


def test_on_the_scale_of_the_first_labels_the_bound_holds_against_an_adversary():
    model, naive_loss, naive_losses = DistributionMixture([Told(3)], first=30), 0.0, np.zeros(3)
    for step in range(200):
        x = np.array([np.zeros(100), np.full(100, 1.0), np.linspace(0, 1, 100) ** (1 + step % 3)])
        wide = [0.0, 1.0] if step < 60 else [0.0, 1.0, 10.0 ** (step / 2)]
        y = adversary(model, x, wide) if step >= 30 else float(step % 2)
        if step >= 30:
            near = model.shape.drawn_near
            forecast = model.predict_one(x)
            points = near(forecast.points)
            naive_loss += PredictiveDistribution(points, places=forecast.places, n=forecast.n).crps(float(near(y)))
            naive_losses += [PredictiveDistribution(near(q)).crps(float(near(y))) for q in x]
        model.learn_one(x, y)
        assert (naive_loss <= naive_losses + model.allowance + 1e-9).all()
    assert model.loss == pytest.approx(naive_loss)
    np.testing.assert_allclose(model.losses, naive_losses)
