"""Another fitted model in the place of the one that was calibrated: refused, or calibration begins anew with it."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.naive_bayes import BernoulliNB, GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import venn
from venn.machines.frozen_numbers import FrozenRegressor
from venn.machines.reference_answers import MOST, AnotherModel
from venn.online import Journal, JournalError, checkpoint


class Own:
    """A classifier of a user's own, of one number."""

    classes_ = ("no", "yes")

    def __init__(self, at):
        self.at = at

    def predict_proba(self, X):
        p = 1 / (1 + np.exp(self.at - np.asarray(X, float)[:, 0]))
        return np.column_stack([1 - p, p])


def data(seed, n=120):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.where(X[:, 0] + rng.normal(size=n) > 0, "yes", "no")


def lightgbm():
    return pytest.importorskip("lightgbm").LGBMClassifier(n_estimators=5, verbosity=-1, n_jobs=1)


CLASSIFIERS = {
    "forest": lambda: RandomForestClassifier(5, random_state=0),
    "boosted trees": lambda: GradientBoostingClassifier(n_estimators=5, random_state=0),
    "histograms": lambda: HistGradientBoostingClassifier(max_iter=5), "naive Bayes": GaussianNB,
    "network": lambda: MLPClassifier((4,), max_iter=20, random_state=0),
    "pipeline": lambda: make_pipeline(StandardScaler(), LogisticRegression()), "linear": LogisticRegression,
    "lightgbm": lightgbm,
}  # fmt: skip


def fitted(name, seed):
    if name == "own":
        return Own(seed / 10)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # twenty steps of a network
        return CLASSIFIERS[name]().fit(*data(seed))


def service(scorer, path, every=1000, **more):
    return venn.Online(venn.Forecaster(scorer=scorer), journal=Journal(path, every=every), **more)


def serve(online, begin, end):
    X, y = data(9)
    for i in range(begin, end):
        online.ask(X[i], id=i)
        online.answer(i, str(y[i]))


def kill(online):
    """Leave a run as a kill does: nothing more is written."""
    online.journal.checkpoints.wait()
    online.journal.close()


@pytest.mark.parametrize("name", [*CLASSIFIERS, "own"])
def test_a_retrained_classifier_is_refused_and_the_same_goes_on(name, tmp_path):
    first, second = fitted(name, 1), fitted(name, 2)
    with service(first, tmp_path / "run.db") as online:
        serve(online, 0, 12)
        venn.save(tmp_path / "model", online.panel)
    venn.load(tmp_path / "model", [pickle.loads(pickle.dumps(first))])
    with pytest.raises(ValueError, match=r"the fitted estimators that were in use.*make the predictor anew"):
        venn.load(tmp_path / "model", [second])
    with pytest.raises(JournalError, match="new_scorer=True"):
        service(second, tmp_path / "run.db")
    with service(pickle.loads(pickle.dumps(first)), tmp_path / "run.db") as online:
        assert online.answered == 12
        serve(online, 12, 14)


@pytest.mark.parametrize("spread", [False, True])
def test_a_retrained_regressor_is_refused_and_the_same_goes_on(spread, tmp_path):
    def scorer(seed):
        X, _ = data(seed)
        y = X[:, 0] + np.random.default_rng(seed).normal(size=len(X))
        mean = LinearRegression().fit(X, X[:, 0]) if spread else RandomForestRegressor(5, random_state=0).fit(X, y)
        wide = RandomForestRegressor(5, random_state=0).fit(X, np.abs(y) + 1)
        return FrozenRegressor(mean, wide) if spread else mean

    X, _ = data(9)
    for _ in range(2):
        with venn.Online(venn.Forecaster(float, scorer=scorer(1)), journal=tmp_path / "run.db") as online:
            for x in X[online.asked : online.asked + 12]:
                online.ask(x)
                online.answer(online.asked, float(x[0]))
    assert online.answered == 24
    with pytest.raises(JournalError, match="new_scorer=True"):
        venn.Online(venn.Forecaster(float, scorer=scorer(2)), journal=tmp_path / "run.db")


def test_tables_with_text_and_sparse_rows_are_compared(tmp_path):
    pd, sparse = pytest.importorskip("pandas"), pytest.importorskip("scipy.sparse")
    table = pd.DataFrame({"city": ["Oslo", "Lyon", "Rome"] * 8, "age": range(24)})
    y = np.array(["no", "yes", "yes"] * 8)

    def of_table(wrong):
        pipe = make_pipeline(OneHotEncoder(handle_unknown="ignore"), BernoulliNB())
        return pipe.fit(table, np.where(np.arange(24) < wrong, "no", y))

    def of_sparse(wrong):
        X = sparse.csr_array(np.eye(3)[np.arange(24) % 3])
        return BernoulliNB().fit(X, np.where(np.arange(24) < wrong, "no", y))

    rows = [{"city": "Oslo", "age": 3}, {"city": "Lyon", "age": 4}, {"city": None, "age": 5}]
    for make, objects in ((of_table, rows), (of_sparse, [sparse.csr_array(np.eye(3)[[i]]) for i in range(3)])):
        model = venn.Forecaster(scorer=make(0))
        for x in objects:
            model.learn_one(x, "yes")
        venn.save(tmp_path / "model", model)
        again = venn.load(tmp_path / "model", [make(0)])
        venn.save(tmp_path / "again", again)
        assert (tmp_path / "model").read_bytes() == (tmp_path / "again").read_bytes()
        with pytest.raises(AnotherModel, match="in place of"):
            venn.load(tmp_path / "model", [make(9)])


def test_last_bits_are_no_other_model(tmp_path):
    class Single(Own):
        def __init__(self, at, error):
            self.at, self.error = at, error

        def predict_proba(self, X):
            p = super().predict_proba(X).astype(np.float32) + np.float32(self.error)
            return np.column_stack([1 - p[:, 1], p[:, 1]])

    model = venn.Forecaster(scorer=Single(0.0, 0.0))
    for x in data(9)[0]:
        model.predict_one(x)
    venn.save(tmp_path / "model", model)
    venn.load(tmp_path / "model", [Single(0.0, 1e-6)])
    with pytest.raises(AnotherModel):
        venn.load(tmp_path / "model", [Single(0.0, 1e-3)])


class Dice(Own):
    """One that adds noise to its answers, as dropout does, or says nothing but noise."""

    def __init__(self, at, noise):
        self.at, self.noise = at, noise

    def predict_proba(self, X):
        p = super().predict_proba(X)[:, 1]
        p = np.clip(p + self.noise * np.random.default_rng().normal(size=len(p)), 0, 1)
        return np.column_stack([1 - p, p])


@pytest.mark.parametrize("noise", [1e-3, 10.0])
def test_one_that_throws_dice_is_compared_as_well_as_they_allow(noise, tmp_path):
    model = venn.Forecaster(scorer=Dice(0, noise))
    for x in data(9)[0]:
        model.predict_one(x)
    venn.save(tmp_path / "model", model)
    with pytest.warns(UserWarning, match="answers the same object in two ways"):
        venn.load(tmp_path / "model", [Dice(0, noise)])
    if noise < 1:
        with pytest.raises(AnotherModel):
            venn.load(tmp_path / "model", [Dice(1, noise)])


def test_one_that_takes_an_object_at_a_time_goes_on(tmp_path):
    class Single(Own):
        def predict_proba(self, X):
            (row,) = X
            return super().predict_proba([row])

    model = venn.Forecaster(scorer=Single(0.0))
    for x in data(9)[0][:5]:
        model.learn_one(x, "yes")
    venn.save(tmp_path / "model", model)
    venn.load(tmp_path / "model", [Single(0.0)])
    with pytest.raises(AnotherModel):
        venn.load(tmp_path / "model", [Single(0.1)])


def test_few_objects_are_kept_and_no_state_holds_them():
    scorer = venn.FrozenScorer(Own(0.0))
    before = checkpoint.pack(scorer)
    scorer.score_many(np.arange(1000.0)[:, None])
    ((rows, answers),) = scorer.told
    assert len(rows) == len(answers) == MOST
    assert checkpoint.pack(scorer) == before


def test_a_model_of_another_class_may_take_its_place_and_alarms_are_counted_on(tmp_path):
    def made(name, **more):
        model = venn.Forecaster(scorer=fitted(name, 1))
        monitor = {"sets": venn.Monitor(model.classes, level=0.5), "objects": venn.monitors.Drift()}
        return venn.Online(model, monitor, tmp_path / "run.db", **more)

    with made("forest") as online:
        serve(online, 0, 10)
        online.journal.put("alarms", ("sets", 1, 10, 0.0, "{}"))  # as if it had rung
    with pytest.raises(JournalError, match=r"with the same predictors.*new_scorer=True"):
        made("naive Bayes")
    for new_scorer in (True, False):
        with made("naive Bayes", new_scorer=new_scorer) as online:
            assert online.answered == 10
            assert online.monitors["sets"].n == 0
            assert online.monitors["objects"].n == 10
        state = checkpoint.load(online.journal.checkpoints.files()[0], checkpoint.models(online.panel))
        assert state["alarms"]["sets"] == 1  # the next one is the second


def test_what_goes_with_no_new_scorer(tmp_path):
    with pytest.raises(ValueError, match="new_scorer must be False where labels come by lot"):
        service(fitted("forest", 1), tmp_path / "run.db", new_scorer=True, labels=venn.online.Lot(0.5))
    with pytest.raises(TypeError, match="new_scorer must be"):
        service(fitted("forest", 1), tmp_path / "run.db", new_scorer=1)
    machine = venn.LeastSquaresSVM(venn.Linear(), 1.0, ("no", "yes"))
    with venn.Online(venn.Conformal(machine), journal=tmp_path / "run.db", new_scorer=True) as online:
        online.ask([0.0])
    other = venn.LeastSquaresSVM(venn.Linear(), 2.0, ("no", "yes"))
    with pytest.raises(JournalError, match="same predictors") as caught:  # there is no given scorer
        venn.Online(venn.Conformal(other), journal=tmp_path / "run.db", new_scorer=True)
    assert "new_scorer" not in str(caught.value)


@pytest.mark.parametrize("how", ["closed", "killed early", "killed later"])
@pytest.mark.parametrize("name", ["forest", "linear"])
def test_calibration_begins_anew_in_the_same_journal(how, name, tmp_path):
    path, (X, y) = tmp_path / "run.db", data(9)
    first, second = fitted(name, 1), fitted(name, 2)
    online = service(first, path, every=5 if how == "killed later" else 1000)
    serve(online, 0, 12)
    online.ask(X[12], id="waits")
    online.close() if how == "closed" else kill(online)

    online = service(second, path, new_scorer=True)
    assert (online.asked, online.answered, online.pending) == (13, 12, ("waits",))
    alone = venn.Forecaster(scorer=second)
    assert repr(online.panel.predict_one(X[0])) == repr(alone.predict_one(X[0]))  # nothing is calibrated
    online.answer("waits", str(y[12]))
    serve(online, 13, 20)
    for i in range(12, 20):
        alone.learn_one(X[i], str(y[i]))
    assert repr(online.panel.predict_one(X[60])) == repr(alone.predict_one(X[60]))
    kill(online)

    for new_scorer in (True, False):  # with the scorer that the journal knows all goes on, without checkpoints, too
        for file in online.journal.checkpoints.files():
            file.unlink()
        online = service(second, path, new_scorer=new_scorer)
        assert repr(online.panel.predict_one(X[60])) == repr(alone.predict_one(X[60]))
        assert online.answered == 20
        kill(online)
    with pytest.raises(JournalError, match="new_scorer=True"):
        service(first, path)
    with service(second, path) as online:
        assert len(online.record()) == 20
        assert online.verdicts()
