"""Models in MLflow's registry: a real store in a folder; loaded, they go on to the last bit, or predict frames."""

import os

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import venn

os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
CLASSES = ("no", "yes")


class Own:
    """A scorer of a user's own, which skops does not know."""

    classes_ = np.array(CLASSES)

    def predict_proba(self, X):
        p = 1 / (1 + np.exp(-np.asarray(X, float)[:, 0]))
        return np.column_stack([1 - p, p])


def rows(n=80, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.integers(-3, 4, size=(n, 2)) / 2
    return X, [CLASSES[int(x[0] + rng.normal() > 0)] for x in X]


def fitted(frame=False):
    X, y = rows(60, 1)
    X = pd.DataFrame(X, columns=["age", "net"]) if frame else X
    return make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)


MODELS = {
    "forecaster": lambda: venn.Forecaster(CLASSES, first=10), "numbers": lambda: venn.Forecaster(float, first=10),
    "given": lambda: venn.Forecaster(scorer=fitted()), "own": lambda: venn.Forecaster(scorer=Own()),
    "table": lambda: venn.Forecaster(scorer=fitted(frame=True)),
    "conformal": lambda: venn.Conformal(venn.LeastSquaresSVM(venn.RBF(0.5), 1.0, CLASSES)),
}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def imported():
    """Not by a worker that has no test of this file: to import MLflow takes a second."""
    global mlflow, registry
    mlflow = pytest.importorskip("mlflow", reason="mlflow is not installed")
    registry = pytest.importorskip("venn.adapters.mlflow")


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # mlflow-skinny has no other
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri((tmp_path / "mlruns").as_uri())
    yield tmp_path
    mlflow.set_tracking_uri(before)


@pytest.mark.parametrize("kind", MODELS)
def test_a_model_that_is_loaded_goes_on_to_the_last_bit_and_predicts_frames(kind, tmp_path, caplog):
    model, (X, y) = MODELS[kind](), rows()
    y = [float(len(one)) for one in y] if kind == "numbers" else y
    objects = [dict(zip(("age", "net"), x, strict=True)) for x in X] if kind == "table" else list(X)
    for x, label in zip(objects[:50], y, strict=False):
        model.learn_one(x, label)
    example = pd.DataFrame(X[:3], columns=["age", "net"])
    registry.save_model(model, tmp_path / "model", input_example=example, extra_pip_requirements=["requests"])
    again = registry.load_model(str(tmp_path / "model"))
    for x, label in zip(objects[50:], y[50:], strict=True):
        assert repr(again.predict_one(x)) == repr(model.predict_one(x))
        for one in (model, again):
            one.learn_one(x, label)
    assert venn.online.checkpoint.pack(again) == venn.online.checkpoint.pack(model)
    told = (tmp_path / "model/requirements.txt").read_text()
    assert f"vennstream=={venn.__version__}" in told
    assert "requests" in told
    assert (tmp_path / "model/model/scorers.pkl").exists() == (kind == "own")
    assert ("pickle, which runs code where it is loaded" in caplog.text) == (kind == "own")
    loaded = mlflow.pyfunc.load_model(str(tmp_path / "model"))
    frame = loaded.predict(example)
    at = registry.load_model(str(tmp_path / "model"))
    for i, x in enumerate(objects[:3]):
        said = at.predict_one(x)
        if kind == "conformal":
            assert frame.loc[i, "Conformal.label"] == said.label
        elif kind == "numbers":
            assert list(frame.loc[i, ["lower", "upper"]]) == list(said.interval(0.05))
        else:
            k = CLASSES.index(said.label)
            assert frame.loc[i, "label"] == said.label
            assert list(frame.loc[i, ["probability", "lower", "upper"]]) == [said.proba[k], *said.intervals[k]]
            assert [one for one in CLASSES if frame.loc[i, f"set_{one}"]] == list(said.set(0.05))
    assert loaded.metadata.signature is not None
    assert [one.name for one in loaded.metadata.signature.inputs] == ["age", "net"]
    with pytest.raises(FileExistsError, match="path must be a new folder"):
        registry.save_model(model, tmp_path / "model")


def test_the_registry_keeps_versions(store):
    model, (X, y) = venn.Forecaster(scorer=fitted()), rows()
    for count in (20, 40):
        for x, label in list(zip(X, y, strict=True))[count - 20 : count]:
            model.learn_one(x, label)
        with mlflow.start_run():
            registry.log_model(model, registered_model_name="churn", input_example=X[:2])
    for version, count in ((1, 20), (2, 40)):
        found = registry.load_model(f"models:/churn/{version}")
        assert found.n == count
    assert list(mlflow.pyfunc.load_model("models:/churn/2").predict(X[:2]).columns) == [
        "label", "probability", "lower", "upper", "set_no", "set_yes",
    ]  # fmt: skip
