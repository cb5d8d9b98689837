"""Theorems without probability: defensive forecasting and calibeating against adversaries, and what breaks them."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from naive import defensive as naive
from naive import scaled as by_hand

import venn
from venn.predictors import Defensive, calibeating
from venn.predictors.inductive import regret_bound, regret_of
from venn.taxonomies import Argmax, ScoreBins, TopTwo

NEAR = 1e-9


def rbf(gamma):
    return lambda x, z: float(np.exp(-gamma * np.sum((x - z) ** 2)))


def contrary(p, rng):
    """The adversary of the acceptance table: the label that the forecast thinks less likely."""
    return int(p < 0.5)


def coin(p, rng):
    return int(rng.random() < 0.3)


def sudden(p, rng):
    """Against forecasts near the middle, otherwise constant."""
    return int(p < 0.5) if abs(p - 0.5) < 0.2 else 1


ADVERSARIES = [contrary, coin, sudden]


# Defensive forecasting -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("adversary", ADVERSARIES, ids=lambda one: one.__name__)
@pytest.mark.parametrize("gamma", [0.5, 10.0, 50.0])
def test_it_is_the_definition_and_the_inequality_holds_at_every_step(adversary, gamma):
    rng = np.random.default_rng(0)
    model, past, kernel = Defensive(venn.RBF(0.5), (0, 1), gamma=gamma), [], rbf(0.5)
    for step in range(70):
        x = rng.integers(0, 3, 2) / 2  # full of duplicates
        p = float(model.predict_one(x).proba[1])
        wanted = naive.forecast(x, past, gamma, kernel)
        assert abs(p - wanted) < 1e-6, step
        if 0 < p < 1:
            assert abs(naive.s_of(p, x, past, gamma, kernel)) < NEAR
        y = adversary(p, rng)
        model.learn_one(x, y)
        past.append((p, x, y))
        found = model.certificate
        left, right = naive.sides(past, gamma, kernel) if step % 7 == 6 or step < 7 else (found.left, found.right)
        assert abs(found.left - left) < NEAR * (1 + right)
        assert abs(found.right - right) < NEAR * (1 + right)
        assert found.holds
        assert left <= right + NEAR * (1 + right)
        assert (found.n, found.missed) == (step + 1, 0.0)


@pytest.mark.parametrize(
    "kernel", [venn.RBF(1.0), venn.Linear(), venn.machines.Polynomial(2), venn.machines.MultiscaleRBF()]
)
@pytest.mark.parametrize("landmarks", [None, 1, 7])
def test_the_inequality_holds_at_every_step_of_a_long_adversarial_stream(kernel, landmarks):
    rng = np.random.default_rng(1)
    model = Defensive(kernel, ("no", "yes"), landmarks=landmarks)
    for _ in range(400):
        x = rng.normal(size=2)
        y = contrary(model.predict_one(x).proba[1], rng)
        model.learn_one(x, ("no", "yes")[y])
        assert model.certificate.holds


@pytest.mark.parametrize("landmarks", [None, 7])
def test_scaled_by_the_first_it_is_the_definition_on_scaled_objects(landmarks):
    """Columns of any unit: the objects are 0 until the first 5 have fixed the scale; all of them count."""
    rng = np.random.default_rng(11)
    X = np.column_stack([rng.integers(0, 3, 60) * 1e6, rng.integers(0, 3, 60) * 1e-3, np.full(60, 7.0)])
    scale = by_hand.fixed_by(X[:5])
    placed = np.clip([by_hand.on_scale(x, *scale) for x in X], -10, 10)
    placed[:5] = 0.0
    model = Defensive(venn.RBF(0.5), (0, 1), scale=5, landmarks=landmarks)
    past = []
    for x, z in zip(X, placed, strict=True):
        p = float(model.predict_one(x).proba[1])
        if landmarks is None:
            assert abs(p - naive.forecast(z, past, 10.0, rbf(0.5))) < 1e-6
        y = contrary(p, rng)
        model.learn_one(x, y)
        past.append((p, z, y))
        assert model.certificate.holds
    assert model.certificate.n == 60


@pytest.mark.filterwarnings("ignore::venn.machines.ScaleWarning")
def test_scaling_makes_raw_columns_useful():
    """The label hangs on a small column beside a large one: unscaled the kernel does not see it."""
    rng = np.random.default_rng(12)
    X = rng.normal(size=(300, 2)) * [1e5, 1e-3]
    y = (X[:, 1] > 0).astype(int)
    losses = {}
    for how, scale in {"raw": None, "first": True, "ranges": venn.Scale(ranges=[(-3e5, 3e5), (-3e-3, 3e-3)])}.items():
        model = Defensive(venn.RBF(1.0), (0, 1), landmarks=50, scale=scale)
        loss = 0.0
        for x, label in zip(X, y.tolist(), strict=True):
            loss += (label - model.predict_one(x).proba[1]) ** 2
            model.learn_one(x, label)
        losses[how] = loss / 300
    assert losses["raw"] > 0.2
    assert max(losses["first"], losses["ranges"]) < 0.1


def test_functions_of_forecast_and_object_are_answered_on_average():
    """What follows from the inequality: no function of the kernel's space finds a departure above its bound."""
    rng = np.random.default_rng(2)
    model, centre = Defensive(venn.RBF(0.5), (0, 1)), np.array([0.5, 0.0])
    total = of_object = of_forecast = 0.0
    for t in range(600):
        x = rng.normal(size=2)
        p = float(model.predict_one(x).proba[1])
        y = int(rng.random() < (0.9 if x[0] > 0 else 0.2)) if t % 2 else contrary(p, rng)
        total += y - p
        of_object += (y - p) * rbf(0.5)(x, centre)
        of_forecast += (y - p) * np.exp(-10.0 * (p - 0.7) ** 2)
        model.learn_one(x, y)
        bound = model.certificate.bound()
        assert max(abs(of_object), abs(of_forecast)) <= bound * (1 + NEAR)


@pytest.mark.parametrize("kernel", [venn.RBF(0.5), venn.Linear()])
def test_landmarks_cost_what_the_certificate_says(kernel):
    rng = np.random.default_rng(3)
    model = Defensive(kernel, (0, 1), landmarks=5)
    of = rbf(0.5) if isinstance(kernel, venn.RBF) else lambda x, z: float(x @ z)
    centres, sums = rng.normal(size=(6, 2)), np.zeros(6)
    for _ in range(300):
        x = rng.normal(size=2)
        p = float(model.predict_one(x).proba[1])
        y = contrary(p, rng)
        sums += [(y - p) * of(x, z) for z in centres]
        model.learn_one(x, y)
        norms = np.array([np.sqrt(of(z, z)) for z in centres])
        assert (abs(sums) <= norms * model.certificate.bound() * (1 + NEAR)).all()
    if isinstance(kernel, venn.Linear):  # two landmarks explain the plane: nothing is missed
        assert model.certificate.missed < 1e-4
        assert len(model.state["weights"]) == 2
    else:
        assert model.certificate.missed > 1


def test_as_many_landmarks_as_objects_change_nothing():
    rng = np.random.default_rng(4)
    whole, landmarks = Defensive(venn.RBF(0.5), (0, 1)), Defensive(venn.RBF(0.5), (0, 1), landmarks=100)
    for _ in range(60):
        x = rng.integers(0, 4, 2) / 2
        p = whole.predict_one(x).proba[1]
        assert abs(p - landmarks.predict_one(x).proba[1]) < 1e-6
        for model in (whole, landmarks):
            model.learn_one(x, contrary(p, rng))
    assert len(landmarks.state["weights"]) == 16  # distinct objects
    assert landmarks.certificate.missed < 1e-4


def test_a_window_breaks_it():
    """Forecasts that remember the latest examples only: the contrary adversary drives the sum beyond its bound."""
    past, kernel = [], rbf(0.5)
    model = Defensive(venn.RBF(0.5), (0, 1))
    for t in range(150):
        x = np.array([t % 2])
        p = naive.forecast(x, past[-10:], 10.0, kernel)
        past.append((p, x, contrary(p, None)))
        model.learn_one(x, contrary(model.predict_one(x).proba[1], None))
    left, right = naive.sides(past, 10.0, kernel)
    assert left > 10 * right
    assert model.certificate.holds


@pytest.mark.parametrize("first", [0, 5, 15])
@pytest.mark.parametrize("landmarks", [None, 4, 100_000])
def test_saved_and_loaded_it_goes_on_to_the_bit(landmarks, first, tmp_path):
    rng = np.random.default_rng(6)
    model = Defensive(venn.RBF("auto"), ("no", "yes"), gamma=3.0, landmarks=landmarks, scale=first or None)
    for twin_of in (0, 12):
        for _ in range(twin_of):
            model.learn_one(rng.integers(0, 3, 2), ("no", "yes")[int(rng.integers(2))])
        venn.save(tmp_path / "model.npz", model)
        twins = [venn.load(tmp_path / "model.npz"), copy.deepcopy(model), pickle.loads(pickle.dumps(model))]
        for _ in range(12):
            x, y = rng.integers(0, 3, 2), ("no", "yes")[int(rng.integers(2))]
            for twin in (*twins, model):
                twin.predict_one(x + 7.0)
                assert np.array_equal(twin.predict_one(x).proba, model.predict_one(x).proba)
            for twin in (*twins, model):
                twin.learn_one(x, y)
                assert twin.certificate == twins[0].certificate or twin is model
        assert model.certificate == twins[0].certificate
        assert all(repr(twin) == repr(model) for twin in twins)
    assert repr(eval(repr(model), {"Defensive": Defensive, "RBF": venn.RBF, "Scale": venn.Scale})) == repr(model)


@pytest.mark.parametrize("first", [0, 30])
def test_while_no_object_can_be_kept_it_is_saved_too(first, tmp_path):
    """Landmarks are kept where they leave a part of K(x, x), which is 0 for all objects until the scale is fixed."""
    model = Defensive(venn.machines.Linear(), ["n", "y"], landmarks=5, scale=first or None)
    for i in range(3):
        model.learn_one([float(i), 2.0] if first else [0.0, 0.0], "y")
    venn.save(tmp_path / "model.npz", model)
    for twin in (venn.load(tmp_path / "model.npz"), copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        original = copy.deepcopy(model)
        for i in range(40):
            x, y = [float(i % 7), -2.0 + i % 3], "ny"[i % 2]
            assert np.array_equal(twin.predict_one(x).proba, original.predict_one(x).proba)
            twin.learn_one(x, y)
            original.learn_one(x, y)
        assert twin.certificate == original.certificate


def test_it_stands_in_panels_replays_records_and_journals(tmp_path):
    rng = np.random.default_rng(7)
    stream = [(rng.normal(size=2), ("no", "yes")[int(rng.integers(2))]) for _ in range(40)]
    squares = venn.LeastSquaresSVM(venn.RBF(1.0), 1.0, ("no", "yes"))
    record = venn.replay(
        stream, venn.Panel(a=Defensive(venn.RBF(1.0), ("no", "yes")), b=venn.Conformal(squares)), progress=False
    )
    assert record.guaranteed["a"] == "nothing"
    assert record.kinds["a"] == "Forecast"
    for part in (stream[:25], stream[25:]):
        with venn.Online(Defensive(venn.RBF(1.0), ("no", "yes")), journal=tmp_path / "run.db") as online:
            for x, y in part:
                online.ask(x)
                online.answer(online.asked, y)
            model = online.panel["Defensive"]
    assert model.certificate.n == 40
    assert model.certificate.holds


def test_sparse_rows_give_the_same():
    scipy_sparse = pytest.importorskip("scipy.sparse")
    rng = np.random.default_rng(8)
    dense, sparse = (Defensive(venn.RBF(0.5), (0, 1), landmarks=3) for _ in range(2))
    for _ in range(12):
        x, y = rng.integers(0, 2, 4).astype(float), int(rng.integers(2))
        row = scipy_sparse.csr_array(x[None])
        assert abs(dense.predict_one(x).proba[1] - sparse.predict_one(row).proba[1]) < NEAR
        dense.learn_one(x, y)
        sparse.learn_one(row, y)
    assert np.array_equal(copy.deepcopy(sparse).predict_one(row).proba, sparse.predict_one(row).proba)


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"classes": (0, 1, 2)}, ValueError, "classes must be two"),
        ({"gamma": 0.0}, ValueError, "gamma must"), ({"gamma": 51}, ValueError, "gamma must be at most"),
        ({"scale": 1}, ValueError, "scale must"), ({"scale": "30"}, TypeError, "scale must"),
    ],
)  # fmt: skip
def test_bad_parameters_are_refused(options, error, match):
    given = {"kernel": venn.RBF(1.0), "classes": (0, 1)} | options
    with pytest.raises(error, match=match):
        Defensive(**given)


def test_nothing_is_learned_from_a_refused_example():
    model = Defensive(venn.RBF(1.0), (0, 1), landmarks=2)
    with pytest.raises(ValueError, match="y must"):
        model.learn_one([0.0, 1.0, 2.0], 3)
    model.learn_one([0.0, 1.0], 1)
    before = model.certificate
    for x, y, match in (([0.0], 1, "x must"), ([0.0, np.nan], 1, "x must"), ([0.0, 1.0], "a", "y must")):
        with pytest.raises(ValueError, match=match):
            model.learn_one(x, y)
    assert model.certificate == before
    assert model.n == 1


# Calibeating -----------------------------------------------------------------------------------------------------


class Given:
    """A scorer that is fixed: the features are the scores."""

    def __init__(self, c):
        self.classes = tuple(range(c))

    def scores(self, x):
        return np.array(x, float)


def least_likely(proba, rng):
    return int(proba.argmin())


def second(proba, rng):
    """The second least likely: mixes classes in other shares."""
    return int(np.argsort(proba)[1])


def constant(proba, rng):
    return 0


def in_runs(proba, rng):
    """Stay with a label until it is believed, then leave it."""
    return int(np.where(proba > 0.6, -1, proba).argmax())


@pytest.mark.parametrize("adversary", [least_likely, second, constant, in_runs], ids=lambda one: one.__name__)
@pytest.mark.parametrize(("c", "taxonomy"), [(2, ScoreBins(3)), (2, Argmax()), (3, TopTwo()), (3, Argmax())], ids=str)
def test_calibeating_holds_at_every_step(adversary, c, taxonomy):
    rng = np.random.default_rng(9)
    model = venn.InductiveVenn(Given(c), taxonomy)
    assert model.on_any_sequence == "calibeating"
    bins, ys, forecasts = [], [], []
    for step in range(250):
        x = rng.integers(-2, 3, c) / 2
        proba = model.predict_one(x).proba
        y = adversary(proba, rng)
        bins.append(int(taxonomy.categories(x[None])[0]))
        ys.append(y)
        forecasts.append(proba)
        model.learn_one(x, y)
        if step % 25 == 24 or step < 4:
            found = calibeating(model)
            log_loss, squares = naive.bins_losses(bins, ys, np.array(forecasts))
            assert abs(found.regret - log_loss) < 1e-9
            assert found.holds
            assert log_loss <= found.bound
            assert squares <= found.brier_bound
            assert (found.n, found.bins) == (step + 1, len(set(bins)))
    assert model.predict_one(x).guaranteed in ("predicted label", "realised row")  # the first word is untouched


@pytest.mark.parametrize(("c", "most"), [(2, 80), (3, 36), (4, 20), (6, 12), (10, 8)])
def test_the_bound_holds_for_all_counts(c, most):
    for n in range(1, most + 1):
        worst = max(regret_of(counts) for counts in naive.all_counts(n, c))
        assert worst <= regret_bound(n, c) + 1e-12, (n, c)
    large = regret_bound(10**6, c)
    even = np.full(c, 10**6 // c)
    assert regret_of(even) <= large <= regret_of(even) + 2 * c  # of the right order


def test_bins_that_move_with_the_labels_break_it():
    """The latest ten labels instead of all: against the constant best forecast it loses without end."""
    loss, ys, rng = 0.0, [], np.random.default_rng(10)
    for _ in range(2000):
        late = ys[-10:]
        p = (sum(late) + 0.5) / (len(late) + 1)
        y = int(rng.random() < 0.5)
        loss -= np.log(p if y else 1 - p)
        ys.append(y)
    share = np.mean(ys)
    best = -2000 * (share * np.log(share) + (1 - share) * np.log(1 - share))
    assert loss - best > 10 * regret_bound(2000, 2)


def test_it_is_claimed_only_where_it_holds():
    squares = venn.LeastSquaresSVM(venn.RBF(1.0), 1.0, (0, 1))
    shift = venn.shifts.PriorShift((0.5, 0.5), (0.9, 0.1))
    for model in (
        venn.InductiveVenn(squares),
        venn.InductiveVenn(Given(2), venn.taxonomies.AdaptiveMarginBins()),
        venn.InductiveVenn(Given(2), shift=shift),
    ):
        assert model.on_any_sequence == "nothing"
        with pytest.raises(ValueError, match="model must have a given scorer"):
            calibeating(model)
    with pytest.raises(ValueError, match="model must have"):
        calibeating(squares)
