"""Given scorers in a stream: an object is scored once, and in a block as alone where that is known."""

import warnings
from contextlib import nullcontext

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, PolynomialFeatures, StandardScaler
from sklearn.tree import DecisionTreeClassifier

import streams
import venn
from venn.machines import FrozenRegressor, frozen
from venn.machines.frozen import FrozenScorer
from venn.machines.objects import clean_rows
from venn.machines.tables import TableRows, alike_cells
from venn.maps import Platt
from venn.predictors import InductiveDistribution
from venn.predictors.balanced import Balanced
from venn.predictors.inductive import InductiveVenn
from venn.predictors.inductive_abers import InductiveVennAbers
from venn.predictors.inductive_conformal import InductiveConformal
from venn.predictors.scaling import HeldOutScores, ScoreCalibrator

CLASSES = ("a", "b", "c")


def boosted():
    return HistGradientBoostingClassifier(max_iter=15, random_state=0)


def foreign(package, name, **options):
    return getattr(pytest.importorskip(package), name)(n_estimators=20, **options)


ROW_BY_ROW = {
    "hist": boosted, "gradient": lambda: GradientBoostingClassifier(n_estimators=10, random_state=0),
    "forest": lambda: RandomForestClassifier(25, random_state=0),
    "extra": lambda: ExtraTreesClassifier(25, random_state=0), "tree": lambda: DecisionTreeClassifier(random_state=0),
    "scaled": lambda: make_pipeline(StandardScaler(), MinMaxScaler(), boosted()),
    "lightgbm": lambda: foreign("lightgbm", "LGBMClassifier", verbose=-1),
    "xgboost": lambda: foreign("xgboost", "XGBClassifier"),
}  # fmt: skip
NOT_KNOWN = {
    "threads": lambda: RandomForestClassifier(5, n_jobs=2),
    "network": lambda: MLPClassifier((5,), max_iter=5),
    "linear after scaling": lambda: make_pipeline(StandardScaler(), LogisticRegression()),
    "started by another": lambda: GradientBoostingClassifier(n_estimators=5, init=LogisticRegression()),
}


def table(n=900, c=3, seed=0):
    """Objects with ties and duplicates, and their class codes."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5)).round(1)
    X[n // 2 :: 3] = X[: len(X[n // 2 :: 3])]
    return X, np.clip(np.abs(X[:, :2]).sum(axis=1) + rng.normal(size=n) / 3, 0, c - 0.01).astype(int)


def fitted(estimator, c=3):
    X, y = table(400, c, seed=1)
    if type(estimator).__name__ == "XGBClassifier":
        return estimator.fit(X, y)  # takes no words
    return estimator.fit(X, np.array(CLASSES)[y])


def scorer_of(estimator, **options):
    return FrozenScorer(fitted(estimator), **options)


@pytest.mark.parametrize("c", [2, 3])
@pytest.mark.parametrize("name", ROW_BY_ROW)
def test_a_row_has_the_same_scores_in_a_block_as_alone(name, c):
    """What blocks rest on: of scikit-learn, not of this project."""
    scorer = FrozenScorer(fitted(ROW_BY_ROW[name](), c))
    assert scorer.row_by_row
    X, _ = table(300, c)
    whole = scorer.score_many(X)
    for size in (1, 7, 100):
        parts = [scorer.score_many(X[start : start + size]) for start in range(0, 14 if size < 8 else 300, size)]
        found = np.concatenate(parts)
        assert found.tobytes() == whole[: len(found)].tobytes()


MIXED = {"city": ["Oslo", "Rome", None], "flag": ["x", "y"], "age": [31.5, 40, np.nan], "n": [1, 2.5, 3]}


def mixed_rows(n):
    """Rows whose columns hold text, gaps, and numbers of several types."""
    rng = np.random.default_rng(0)
    return [{name: cells[rng.integers(len(cells))] for name, cells in MIXED.items()} for _ in range(n)]


def encoded_pipeline(classes):
    """A pipeline of encoders that was fitted to a table with text."""
    pd = pytest.importorskip("pandas")
    number = make_pipeline(SimpleImputer(), StandardScaler())
    columns = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore", sparse_output=False), ["city", "flag"]), (number, ["age"]),
        remainder="passthrough",
    )  # fmt: skip
    return make_pipeline(columns, boosted()).fit(pd.DataFrame(mixed_rows(300)), np.arange(300) % classes)


@pytest.mark.parametrize("classes", [2, 9])
def test_encoders_and_text_go_in_blocks_as_alone(classes, monkeypatch):
    """Of nine classes scikit-learn's boosted trees have other last bits in a block: theirs go one by one."""
    pipeline = encoded_pipeline(classes)
    scorer, rows = FrozenScorer(pipeline), mixed_rows(80)
    transform, calls = ColumnTransformer.transform, []
    monkeypatch.setattr(ColumnTransformer, "transform", lambda *a, **k: calls.append(1) or transform(*a, **k))
    together = scorer.score_alone(clean_rows(rows, 4, tuple(MIXED), missing=True))
    assert len(calls) == 12 if classes == 2 else len(calls) > 70  # kinds of cells: 2 of city, 3 of age, 2 of n
    assert together.tobytes() == np.concatenate([scorer.scores(x)[None] for x in rows]).tobytes()
    frames = [TableRows(np.array([list(x.values())], object), tuple(MIXED)).frame() for x in rows[:20]]
    theirs = np.concatenate([pipeline.decision_function(frame) for frame in frames])
    assert (together[:20, 1] if classes == 2 else together[:20]).tolist() == theirs.tolist()


def test_rows_of_a_group_have_the_types_of_columns_that_each_has_alone():
    pytest.importorskip("pandas")
    rows = TableRows(np.array([list(x.values()) for x in mixed_rows(200)], object), tuple(MIXED))
    rows.cells[::7, 3], rows.cells[::9, 1], rows.cells[::11, 1] = 2**70, True, 0.5
    groups = alike_cells(rows)
    assert sorted(i for group in groups for i in group) == list(range(200))
    for group in groups:
        together = rows[group].frame().dtypes.tolist()
        assert all(rows[i : i + 1].frame().dtypes.tolist() == together for i in group)
    gaps = np.array([[1.0, np.nan], [np.nan, 2.0], [3.0, np.nan]])
    assert alike_cells(gaps) == [[0, 2], [1]]


def test_a_row_of_calibrated_boosted_trees_is_asked_about_on_one_thread(monkeypatch):
    asked = []
    monkeypatch.setattr(frozen, "one_thread", lambda blas: asked.append(blas) or nullcontext())
    for estimator, count in ((CalibratedClassifierCV(boosted(), cv=2), 1), (MLPClassifier((5,), max_iter=5), 0)):
        asked.clear()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            scorer = scorer_of(estimator)
        scorer.scores(table()[0][0])
        assert asked == [False] * count


def test_trees_behind_steps_and_in_a_search_answer_as_scikit_learn_does():
    X, _ = table(40)
    for estimator in (
        make_pipeline(PolynomialFeatures(), boosted()),
        make_pipeline(make_pipeline(StandardScaler(), "passthrough"), RandomForestClassifier(5)),
        GridSearchCV(make_pipeline(StandardScaler(), boosted()), {}, cv=2),
    ):
        scorer = scorer_of(estimator)
        method = "decision_function" if hasattr(estimator, "decision_function") else "predict_proba"
        theirs = np.concatenate([getattr(estimator, method)(X[i : i + 1]) for i in range(40)])
        scorer.scores(X[0])  # it reads the trees, and compares them
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(HistGradientBoostingClassifier, "decision_function", None)
            patch.setattr(RandomForestClassifier, "predict_proba", None)
            assert np.concatenate([scorer.score_many(X[i : i + 1]) for i in range(40)]).tolist() == theirs.tolist()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NOT_KNOWN)
def test_what_is_not_known_to_go_row_by_row_is_scored_alone(name):
    assert not scorer_of(NOT_KNOWN[name]()).row_by_row
    X, _ = table()
    for row_by_row, calls in ((None, [1] * 20), (True, [20])):
        scorer, asked = counted(NOT_KNOWN[name](), row_by_row)
        scorer.score_alone(X[:20])
        assert asked == calls


def test_the_users_word_counts():
    with pytest.raises(TypeError, match="row_by_row must be True or False, got 1"):
        scorer_of(ROW_BY_ROW["tree"](), row_by_row=1)
    scorer = scorer_of(RandomForestClassifier(5, n_jobs=2), row_by_row=True)
    assert scorer.row_by_row
    assert repr(scorer).endswith("row_by_row=True)")
    no = scorer_of(ROW_BY_ROW["tree"](), row_by_row=False)
    assert not no.row_by_row


class Counting:
    """A fitted estimator that notes the number of rows of every call."""

    def __init__(self, estimator):
        self.inner, self.classes_, self.asked = estimator, estimator.classes_, []

    def __deepcopy__(self, memo):
        return self

    def predict_proba(self, X):
        self.asked.append(len(X))
        return self.inner.predict_proba(X)


def counted(estimator, row_by_row=True):
    """Return a scorer, and the list of the numbers of rows of its calls."""
    counting = Counting(fitted(estimator))
    return FrozenScorer(counting, row_by_row=row_by_row), counting.asked


class Fragile:
    """A classifier that fails at some objects."""

    classes_ = np.array(CLASSES)

    def predict_proba(self, X):
        if (X[:, 0] > 1).any():
            raise ArithmeticError("too large")
        return np.tile([0.2, 0.3, 0.5], (len(X), 1))


def test_an_error_of_the_estimator_comes_in_its_turn():
    scorer = FrozenScorer(Fragile(), row_by_row=True)
    model = InductiveVenn(scorer)
    stream = [([0.0], "a"), ([0.5], "b"), ([2.0], "c"), ([0.0], "a")]
    with pytest.raises(ArithmeticError, match="too large") as failure:
        venn.replay(stream, model)
    assert failure.value.__notes__ == ["at step 3 of the replay"]
    assert model.n == 2


def panel(scorer):
    return venn.Panel(
        venn=InductiveVenn(scorer), abers=InductiveVennAbers(scorer), sets=InductiveConformal(scorer),
        platt=ScoreCalibrator(scorer, Platt(), HeldOutScores()),
        few=Balanced(InductiveVenn(scorer), keep=(0.5, 1.0, 1.0)),
    )  # fmt: skip


def outcome(prediction):
    for name in ("pairs", "p_values", "probabilities", "proba"):
        if hasattr(prediction, name):
            return getattr(prediction, name).tobytes()
    raise AssertionError(prediction)


@pytest.mark.parametrize("delay", [0, 9])
def test_following_what_is_at_hand_says_the_same_to_the_last_bit(delay, tmp_path):
    X, y = table(30)
    stream = streams.from_arrays(X, np.array(CLASSES)[y], classes=CLASSES)
    lessons = streams.teach(stream, streams.Delayed(delay))
    found = []
    for number, events in enumerate((lessons, iter(lessons))):
        monitors = {"abers": venn.Monitor(CLASSES), "sets": venn.Monitor(CLASSES)}
        several = panel(scorer_of(ROW_BY_ROW["tree"]()))
        with venn.Online(several, monitors, tmp_path / f"{number}.db") as online, online.transaction():
            answers = [
                {name: outcome(one) for name, one in predictions.items()} for predictions in online.follow(events)
            ]
            snapshots = {name: monitor.snapshot() for name, monitor in online.monitors.items()}
        found.append((answers, snapshots))
    assert found[0] == found[1]


def test_what_comes_before_an_error_of_the_events_counts():
    X, y = table(20)

    class Breaking:
        arrived = True

        def __iter__(self):
            yield from zip(X, [CLASSES[k] for k in y], strict=True)
            raise OSError("the disk is gone")

    model = InductiveVennAbers(scorer_of(ROW_BY_ROW["tree"]()))
    with pytest.raises(OSError, match="the disk is gone"):
        venn.replay(Breaking(), model)
    assert model.n == 20


MODELS = {
    "venn": InductiveVenn, "abers": InductiveVennAbers, "sets": InductiveConformal,
    "balanced": lambda scorer: Balanced(InductiveVenn(scorer), keep=(0.5, 1.0, 1.0)),
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_a_stream_goes_where_objects_and_labels_go_and_a_monitor_takes_the_block(name):
    X, y = table(120)
    words = np.array(CLASSES)[y]
    scorer = scorer_of(ROW_BY_ROW["tree"]())
    stream = streams.from_arrays(X, words, classes=CLASSES[::-1])  # in another order: labels count, not their codes
    one, other, alone = (MODELS[name](scorer) for _ in range(3))
    said, same = one.replay_many(stream), other.replay_many(X, words.tolist())
    assert [outcome(said[i]) for i in range(120)] == [outcome(same[i]) for i in range(120)]
    alone.learn_many(stream)
    assert outcome(alone.predict_one(X[0])) == outcome(one.predict_one(X[0]))
    monitors = [venn.Monitor(CLASSES) for _ in range(3)]
    rung = [alarm for i in range(120) for alarm in monitors[0].update(said[i], words[i])]
    assert monitors[1].update_many(said, words.tolist()) == tuple(rung)
    monitors[2].update_many([said[i] for i in range(50)], iter(words[:50]))
    monitors[2].update_many([said[i] for i in range(50, 120)], words[50:])
    assert monitors[0].snapshot() == monitors[1].snapshot() == monitors[2].snapshot()
    with pytest.raises(TypeError, match="y must be given, or a stream of `streams` for X"):
        one.replay_many(X)
    assert one.n == 120


def test_a_monitor_takes_all_of_many_or_nothing():
    scorer = scorer_of(ROW_BY_ROW["tree"]())
    X, y = table(30)
    words = np.array(CLASSES)[y].tolist()
    counts, intervals = InductiveVenn(scorer).replay_many(X, words), InductiveVennAbers(scorer).replay_many(X, words)
    monitor = venn.Monitor(CLASSES)
    for predictions, labels, message in (
        (counts, words[:29], "labels must be one for each of 30 predictions, got 29"),
        (counts, [*words[:29], "z"], "y must be one of the classes"),
        ([counts[0], intervals[1]], words[:2], "must keep to one kind of prediction"),
        ([counts[0], "yes"], words[:2], "must predict one of"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            monitor.update_many(predictions, labels)
        assert monitor.snapshot() == venn.Monitor(CLASSES).snapshot()
    assert monitor.update_many([], []) == ()
    monitor.update_many(counts, words)
    before = monitor.snapshot()
    with pytest.raises(TypeError, match="must keep to one kind of prediction"):
        monitor.update_many(intervals, words)
    assert monitor.snapshot() == before


@pytest.mark.parametrize("kind", [InductiveVenn, InductiveConformal, InductiveVennAbers])
def test_options_of_inductive_predictors_go_by_name(kind):
    with pytest.raises(TypeError, match="positional"):
        kind(scorer_of(ROW_BY_ROW["tree"]()), None, venn.schedules.NoTraining())
    assert kind(scorer_of(ROW_BY_ROW["tree"]()), schedule=venn.schedules.NoTraining()).n == 0


def gappy(n=150):
    """Return objects with missing numbers, and labels."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(n, 3))
    y = np.array(CLASSES[:2])[(X[:, 0] + 0.5 * rng.normal(size=n) > 0).astype(int)]
    X[rng.random(X.shape) < 0.2] = np.nan
    return X, y


def imputing():
    return make_pipeline(SimpleImputer(), LogisticRegression())


@pytest.mark.parametrize("estimator", [boosted, imputing])
@pytest.mark.parametrize("make", [InductiveVenn, InductiveVennAbers, InductiveConformal])
def test_missing_numbers_are_the_scorers_to_take(estimator, make):
    X, y = gappy()
    scorer = FrozenScorer(estimator().fit(X[:60], y[:60]))
    one, many = make(scorer), make(scorer)
    said = []
    for x, label in zip(X[60:], y[60:], strict=True):
        said.append(one.predict_one(x))
        one.learn_one(x, label)
    assert [repr(p) for p in said] == [repr(p) for p in many.replay_many(X[60:], y[60:])]
    negative = np.copysign(X[:5], -1, where=np.isnan(X[:5]), out=X[:5].copy())  # NaN of other bits are the same object
    assert (
        repr(one.predict_many(X[:5])[0]) == repr(one.predict_one(negative[0])) == repr(many.predict_many(negative)[0])
    )


def test_missing_numbers_of_late_labels_come_back_after_a_kill(tmp_path):
    X, y = gappy()
    model = boosted().fit(X[:60], y[:60])
    asked = streams.teach([(x, label) for x, label in zip(X[60:], y[60:], strict=True)], streams.Delayed(7))
    asked = list(asked)
    whole = [repr(p) for p in venn.Online(venn.Forecaster(scorer=model)).follow(asked)]
    found = []
    for steps in (80, len(asked)):
        online = venn.Online(venn.Forecaster(scorer=model), None, tmp_path / "run.db")
        found += [repr(p) for p in online.follow(asked[:steps], again=True)]
        online.journal.close()
    assert found == whole


@pytest.mark.parametrize(
    ("estimator", "bad", "message"),
    [
        (boosted, np.inf, "x must be finite, got inf at feature 1"),
        (LogisticRegression, np.nan, "x must be finite, got nan at feature 1"),
        (lambda: make_pipeline(StandardScaler(), LogisticRegression()), np.nan, "contains NaN"),
    ],
)
def test_what_the_scorer_does_not_take_is_refused(estimator, bad, message):
    X, y = gappy()
    X = np.nan_to_num(X)
    model = venn.Forecaster(scorer=estimator().fit(X[:60], y[:60]))
    for act in (model.predict_one, lambda x: model.learn_one(x, "a")):
        with pytest.raises(ValueError, match=message):
            act([0.0, bad, 1.0])
    assert model.n == 0


def test_missing_numbers_are_the_regressors_to_take():
    X, _ = gappy()
    target = np.nan_to_num(X).sum(axis=1)
    fitted = make_pipeline(SimpleImputer(), LinearRegression()).fit(X[:60], target[:60])
    scorer = venn.machines.FrozenRegressor(fitted)
    assert np.array_equal(scorer.scores(X[70]), scorer.score_many(X[70:72])[0])


def several(scorer):
    return venn.Panel(venn=InductiveVenn(scorer), abers=InductiveVennAbers(scorer), sets=InductiveConformal(scorer))


@pytest.mark.parametrize("c", [2, 3])
def test_an_object_is_scored_once_a_step_whoever_asks(c):
    """It is asked about when it is predicted, and when it is learned, by each predictor of a panel."""
    X, codes = table(40, c)
    for make in (lambda scorer: venn.Forecaster(scorer=scorer), lambda scorer: several(FrozenScorer(scorer))):
        counting = Counting(fitted(ROW_BY_ROW["tree"](), c))
        model = make(counting)
        for x, k in zip(X, codes, strict=True):
            told = model.predict_one(x)
            model.predict_one(x)
            model.learn_one(x.tolist(), CLASSES[k])
        distinct = 1 + (np.abs(np.diff(X, axis=0)).sum(axis=1) > 0).sum()
        assert counting.asked == [1] * distinct
        assert set(told) == set(model)
    counting = Counting(fitted(ROW_BY_ROW["tree"](), c))
    scorer = FrozenScorer(counting)
    scores = scorer.scores(X[0])
    scores[:] = 7  # a caller's own
    assert scorer.scores(X[0]).tolist() == fitted(ROW_BY_ROW["tree"](), c).predict_proba(X[:1])[0].tolist()
    assert counting.asked == [1]


def test_a_forecast_of_a_number_is_made_once_a_step():
    asked = []

    class Mean(LinearRegression):
        def predict(self, X):
            asked.append(len(X))
            return super().predict(X)

    X = np.arange(20.0)[:, None]
    scorer = FrozenRegressor(Mean().fit(X, X[:, 0]))
    model = venn.Panel(one=InductiveDistribution(scorer), other=InductiveDistribution(scorer, seed=1))
    for x in X:
        model.predict_one(x)
        model.learn_one(x, float(x[0]))
    assert asked == [1] * 20


@pytest.mark.parametrize(
    ("classifier", "heard"),
    [
        (LogisticRegression(), True),
        (make_pipeline(StandardScaler(), HistGradientBoostingClassifier(max_iter=5)), True),
        (GradientBoostingClassifier(n_estimators=5), True),
        (GradientBoostingClassifier(n_estimators=5, loss="exponential"), False),  # its odds are of twice the value
    ],
    ids=repr,
)
def test_a_forecaster_hears_what_a_classifier_of_two_classes_says_itself(classifier, heard):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    classifier.fit(X, np.where(X[:, 0] > 0, "yes", "no"))
    experts = venn.Forecaster(scorer=classifier)["forecast"].experts
    assert len(experts) == 1 + heard
    if heard:
        for x in X[:5]:
            np.testing.assert_allclose(experts[1].predict_one(x)[0], classifier.predict_proba([x])[0], rtol=1e-12)
