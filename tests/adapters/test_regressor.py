"""The scikit-learn regressor: its contract, and that it says what the predictor says."""

import pickle

import numpy as np
import pytest
import scipy.sparse
from conftest import refused
from estimator_checks import parametrize_with_each
from scipy import stats
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeRegressor

import venn
from venn.adapters import ConformalRegressor, CoverageScorer, CRPSScorer, IntervalScorer
from venn.machines import FrozenQuantiles, FrozenRegressor
from venn.predictors import InductiveDistribution, InductiveIntervals


@parametrize_with_each(
    [
        ConformalRegressor(),
        ConformalRegressor(LinearRegression(), cv=2),
        ConformalRegressor(kernel=venn.Linear(), C=1.0, first=0),
    ]
)
def test_the_contract_of_scikit_learn(estimator, check):
    if estimator.first is None and "sample_weight_equivalence" in str(check):
        pytest.skip("it compares two orders: the first examples fix the scale")
    check(estimator)


def data(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, X[:, 0] * 5 + rng.normal(size=n)


def test_it_says_what_its_predictor_says():
    X, y = data()
    model = ConformalRegressor(kernel=venn.RBF(0.3), C=2.0, alpha=0.2, first=15, seed=4).fit(X[:50], y[:50])
    said = [model.predictor_.predict_one(x) for x in X[50:]]
    assert np.array_equal(model.predict(X[50:]), [p.label for p in said])
    assert np.array_equal(model.predict_interval(X[50:]), [p.interval(0.2) for p in said])
    assert np.array_equal(model.predict_interval(X[50:], 0.5), [p.interval(0.5) for p in said])
    assert np.array_equal(model.predict_quantile(X[50:], 0.3), [p.quantile(0.3) for p in said])
    assert model.predict_quantile(X[50:], [0.1, 0.9]).shape == (10, 2)
    assert np.array_equal(model.predict_cdf(X[50:], y[50:]), [p.cdf(v) for p, v in zip(said, y[50:], strict=True)])
    assert np.array_equal(model.predict_cdf(X[50:], 1.0), [p.cdf(1.0) for p in said])
    parts = clone(model).partial_fit(X[:20], y[:20]).partial_fit(X[20:50], y[20:50])
    assert np.array_equal(parts.predict(X[50:]), model.predict(X[50:]))
    plain = clone(model).set_params(first=0)  # scaled columns that are sparse keep their zeros
    sparse, dense = clone(plain).fit(scipy.sparse.csr_array(X[:50]), y[:50]), plain.fit(X[:50], y[:50])
    assert np.allclose(sparse.predict(scipy.sparse.csr_array(X[50:])), dense.predict(X[50:]), rtol=0, atol=1e-9)
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict(X[50:]), model.predict(X[50:]))


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda m, X: m.predict_interval(X, 1.5), "epsilon must lie"),
        (lambda m, X: m.predict_quantile(X, 2.0), "q must be a number in"),
        (lambda m, X: m.predict_cdf(X, [1.0]), "y must be one number, or one for each of 60"),
        (lambda m, X: m.partial_fit(X, X[:, 0], [-1.0] * 60), "sample_weight must be >= 0"),
        (lambda m, X: m.fit(X, np.full(60, 1e300)), "y must be a finite number of size at most"),
        (lambda m, X: m.set_params(alpha=2.0).fit(X, X[:, 0]), "alpha must be a number in"),
    ],
)
def test_bad_questions_leave_the_fit_alone(ask, message):
    X, y = data()
    model = ConformalRegressor().fit(X, y)
    before = model.predict(X[:5])
    with pytest.raises((TypeError, ValueError), match=message):
        ask(model, X)
    assert np.array_equal(model.predict(X[:5]), before)


def test_the_checks_of_river():
    checks = pytest.importorskip("river.checks")
    from venn.adapters import RiverRegressor

    for parameters in RiverRegressor._unit_test_params():
        for check in checks.yield_checks(RiverRegressor(**parameters)):
            if check.__name__ not in RiverRegressor(**parameters)._unit_test_skips():
                check(RiverRegressor(**parameters))


def test_in_river_features_go_in_the_order_of_the_given_regressor():
    pandas, _ = pytest.importorskip("pandas"), pytest.importorskip("river")
    from venn.adapters import RiverRegressor

    table = pandas.DataFrame({"wide": [0.0, 1.0, 2.0, 5.0], "long": [1.0, 0.0, 3.0, 1.0]})
    fitted = LinearRegression().fit(table, [0.0, 1.0, 2.0, 5.0])
    predictor = InductiveDistribution(FrozenRegressor(fitted))
    model = RiverRegressor(predictor)
    for x in table.to_dict("records"):
        model.learn_one(x, x["wide"])
    assert model.predict_one({"long": 9.0, "wide": 4.0}) == pytest.approx(4.0)
    with pytest.raises(
        ValueError, match=r"features must be .* \['wide', 'long'\] in this order, got \['long', 'wide'\]"
    ):
        RiverRegressor(predictor, ["long", "wide"])


def test_river_both_ways():
    linear_model = pytest.importorskip("river.linear_model")
    from venn.adapters import RegressorFromRiver, RiverRegressor

    X, y = data()
    inside = venn.predictors.ConformalDistribution(venn.machines.KernelRidge(venn.RBF(0.3), 2.0))
    outside = RiverRegressor(inside)
    own = venn.predictors.ConformalDistribution(venn.machines.KernelRidge(venn.RBF(0.3), 2.0))
    river = linear_model.LinearRegression()
    both = venn.Panel(own=own, river=RegressorFromRiver(river))
    errors = []
    for x, label in zip(X, y.tolist(), strict=True):
        row = dict(zip("abc", x.tolist(), strict=True))
        said = both.predict_one(x)
        assert outside.predict_one(row) == said["own"].label
        assert outside.predict_interval_one(row, 0.2) == said["own"].interval(0.2)
        numbered = dict(enumerate(x.tolist()))
        forecast = river.predict_one(numbered)
        assert said["river"].mean == forecast
        if errors:
            assert said["river"].deviation == pytest.approx(np.sqrt(np.mean(np.square(errors))))
        errors.append(label - forecast)
        outside.learn_one(row, label)
        river.learn_one(numbered, label)
        both.learn_one(x, label)
    interval = outside.predict_one(row, with_interval=True)
    assert (interval.lower, interval.upper) == outside.predict_interval_one(row, 1 - 0.95)
    with pytest.raises(ValueError, match="confidence_level must be"):
        RiverRegressor(inside, confidence_level=1.0)
    table = pytest.importorskip("pandas").DataFrame(X, columns=list("abc"))
    many = RiverRegressor(inside)
    assert many.predict_one(dict.fromkeys("abc", np.nan)) == 0  # as a scaler gives it before it has learned
    many.learn_many(table, y)
    assert many.predict_many(table[:3]).tolist() == [outside.predict_one(x) for x in table[:3].to_dict("records")]
    assert inside.machine.n == 0
    for bad in (np.nan, "a"):
        with pytest.raises(ValueError, match="y must be a finite number"):
            outside.learn_one(row, bad)
    with pytest.raises(TypeError, match="predictor must be one of numbers"):
        RiverRegressor(venn.Conformal(venn.LeastSquaresSVM(venn.RBF(1.0), 1, ["a", "b"])))
    with pytest.raises(TypeError, match="model must be a regressor of river"):
        RegressorFromRiver(3)


def test_the_example_of_river():
    """The figures of its documentation; around the same model, our point forecasts are its own to the last bit."""
    river = pytest.importorskip("river")
    from river import conf, datasets, linear_model, preprocessing

    def model():
        return preprocessing.StandardScaler() | linear_model.LinearRegression(intercept_lr=0.1)

    theirs, rows = conf.RegressionJackknife(model(), confidence_level=0.9), list(datasets.TrumpApproval())
    names = list(rows[0][0])
    ours, inside, widths = venn.adapters.RegressorFromRiver(model(), names), [], []
    for x, y in rows:
        interval = theirs.predict_one(x, with_interval=True)
        inside.append(y in interval)
        widths.append(interval.width)
        assert ours.predict_one([x[name] for name in names]).label == theirs.predict_one(x)
        theirs.learn_one(x, y)
        ours.learn_one([x[name] for name in names], y)
    assert (round(np.mean(inside), 6), round(np.mean(widths), 6)) == (0.939061, 4.078361), river.__version__


def rough(n=300, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 2))
    return X, X[:, 0] + (0.1 + np.abs(X[:, 1])) * rng.normal(size=n)


FOREST = RandomForestRegressor(10, min_samples_leaf=5, random_state=0)
BOOSTED = make_pipeline(StandardScaler(), GradientBoostingRegressor(n_estimators=10, random_state=0))


@pytest.mark.parametrize("estimator", [FOREST, BOOSTED, HistGradientBoostingRegressor(max_iter=10)])
@pytest.mark.parametrize("method", ["spread", "cqr"])
def test_any_regressor_has_intervals(estimator, method):
    X, y = rough(600)
    model = ConformalRegressor(estimator, method=method, cv=3).fit(X[:300], y[:300])
    assert model.n_calibration_ == 300
    levels = [0.05, 0.1, 0.2]
    intervals = model.predict_interval(X[300:], levels)
    assert intervals.shape == (300, 3, 2)
    assert np.array_equal(model.predict_interval(X[300:]), intervals[:, 1])
    missed = ((y[300:, None] < intervals[..., 0]) | (y[300:, None] > intervals[..., 1])).sum(axis=0)
    assert all(stats.binomtest(int(m), 300, level).pvalue > 0.001 for m, level in zip(missed, levels, strict=True))
    wide, narrow = np.abs(X[300:, 1]) > 0.7, np.abs(X[300:, 1]) < 0.3
    widths = np.diff(intervals[:, 1])[:, 0]
    assert widths[wide].mean() > widths[narrow].mean()
    assert np.array_equal(model.predict(X[300:]), [one.label for one in model.predict_distribution(X[300:])])
    more = clone(model).fit(X[:300], y[:300]).partial_fit(X[300:], y[300:])
    assert more.n_calibration_ == 300 + 3 * 300


def test_one_split_is_the_inductive_predictor():
    X, y = rough()
    fitted, spread = LinearRegression().fit(X[:100], y[:100]), DecisionTreeRegressor(max_depth=2, random_state=0)
    spread.fit(X[:100], np.abs(y[:100] - fitted.predict(X[:100])))
    model = ConformalRegressor(fitted, spread=spread, cv="prefit").fit(X[100:200], y[100:200])
    own = InductiveDistribution(FrozenRegressor(fitted, spread))
    own.learn_many(X[100:200], y[100:200])
    assert np.array_equal(model.predict_interval(X[200:], 0.2), own.predict_many(X[200:]).interval(0.2))
    levels = (0.05, 0.5, 0.95)
    three = [DecisionTreeRegressor(max_depth=2, random_state=0).fit(X[:100], y[:100] + q) for q in levels]
    model = ConformalRegressor(three, method="cqr", cv="prefit").fit(X[100:200], y[100:200])
    own = InductiveIntervals(FrozenQuantiles(three, levels))
    own.learn_many(X[100:200], y[100:200])
    assert np.array_equal(model.predict_interval(X[200:]), own.predict_many(X[200:]).interval(0.1))
    twice = model.fit(X[100:200], y[100:200], np.repeat([2, 0], 50))
    assert twice.n_calibration_ == 100


def test_a_search_takes_scores_of_intervals_on_a_table_with_text():
    pandas = pytest.importorskip("pandas")
    X, y = rough(120)
    table = pandas.DataFrame({"size": X[:, 0], "kind": np.where(X[:, 1] > 0, "a", "b")})
    columns = make_column_transformer((OneHotEncoder(), ["kind"]), remainder="passthrough")
    model = ConformalRegressor(make_pipeline(columns, Ridge()), cv=3)
    scoring = {"score": IntervalScorer(0.2), "crps": CRPSScorer(), "coverage": CoverageScorer(0.2)}
    search = GridSearchCV(
        model, {"method": ["spread"], "estimator__ridge__alpha": [0.1, 1e6]}, scoring=scoring, refit="score", cv=2
    )
    search.fit(table, y)
    assert search.best_params_["estimator__ridge__alpha"] == 0.1
    assert (search.cv_results_["mean_test_coverage"] > 0.6).all()
    assert search.best_estimator_.feature_names_in_.tolist() == ["size", "kind"]
    assert search.predict(table).shape == (120,)


test_what_is_no_such_regressor_is_refused = refused(lambda model: model.fit(*rough(30)), [
    (ConformalRegressor(Ridge(), method="cqr"), "estimator must be one of quantiles with method='cqr'"),
    (ConformalRegressor(Ridge(), method="plain"), "method must be"),
    (ConformalRegressor(venn.RBF(1.0)), "estimator must be a regressor, with methods 'fit' and 'predict'"),
    (ConformalRegressor(FOREST, method="cqr", alpha=0.0), r"alpha must be in \(0, 1\) with method='cqr'"),
    (ConformalRegressor([FOREST], method="cqr", cv="prefit"), "not fitted"),
])  # fmt: skip
