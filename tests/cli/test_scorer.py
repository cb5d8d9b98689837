"""A model of the user's own on the command line: loaded, given its own columns, calibrated, and known again."""

import json
import os
import pickle
import signal
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from conftest import well
from run_cases import Life, counts, left, nobody_survives, until
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

import venn
from venn import cli
from venn.machines.tables import known_categories

assert nobody_survives
pandas = pytest.importorskip("pandas")
joblib = pytest.importorskip("joblib")

N = 10  # rows
CITIES = ("Oslo", "Rome", "Paris")


def frame(n, seed):
    rng = np.random.default_rng(seed)
    city, age = rng.choice(CITIES, n), rng.integers(18, 90, n)
    found = pandas.DataFrame({"age": age.astype(float), "city": city})
    number = (city == "Rome") * 20.0 + age + rng.normal(size=n) * 20
    return found, number


def pipeline(last, seed=0, unknown="ignore"):
    X, number = frame(80, seed)
    columns = make_column_transformer(
        (OneHotEncoder(handle_unknown=unknown), ["city"]), (make_pipeline(SimpleImputer(), StandardScaler()), ["age"])
    )
    y = number if isinstance(last, LinearRegression) else np.where(number > 55, "yes", "no")
    return make_pipeline(columns, last).fit(X, y)


def classifier(seed=0):
    return pipeline(LogisticRegression(), seed)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Stand in a folder with rows, of which some have gaps, and one a category that no model knows."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])  # to which the command adds
    X, number = frame(N, 9)
    rows = X.assign(id=[f"k{i}" for i in range(N)], bought=np.where(number > 55, "yes", "no"), paid=number)
    rows.loc[0, "city"] = np.nan
    rows.loc[3, "age"] = np.nan
    rows.loc[7, "city"] = "Bergen"
    rows.to_csv("rows.csv", index=False)
    joblib.dump(classifier(), "model.joblib")
    return tmp_path


def venn_(*arguments):
    return CliRunner().invoke(cli.main, [*map(str, arguments)])


MODEL = ("--scorer", "model.joblib", "--scorer-runs-code")
LIVE = ("--source", "csv:rows.csv", "--end", "--id", "id", "--label", "bought", "--journal", "run.db", "--out", "out")


def said(path="out"):
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


def test_what_is_said_is_what_the_model_itself_calibrated_says(folder):
    result = well(venn_("run", *LIVE, *MODEL))
    model = venn.Forecaster(scorer=classifier())
    rows = pandas.read_csv("rows.csv").to_dict("records")
    for row, line in zip(rows, said(), strict=True):
        x = {"age": row["age"], "city": row["city"]}
        outlook, y = model.predict_one(x), row["bought"]
        assert line["id"] == row["id"]
        assert list(line["predictions"]["forecast"]["probabilities"].values()) == pytest.approx(outlook.proba)
        assert list(line["predictions"]["sets"]["p_values"].values()) == pytest.approx(outlook.p_values)
        model.learn_one(x, y)
    assert "'Bergen' in column city, which the model does not know" in result.stderr
    assert "met an unknown category 1 times" in result.stderr
    assert "columns as they come, by name: 'age', 'city'" in result.stderr


def test_messages_of_json_give_the_same(folder):
    venn_("run", *LIVE, *MODEL)
    rows = pandas.read_csv("rows.csv").astype(object).where(lambda one: one.notna(), None).to_dict("records")
    Path("in.jsonl").write_text("".join(
        json.dumps({"id": row["id"], "x": {"city": row["city"], "age": row["age"]}, "y": row["bought"]}) + "\n"
        for row in rows
    ))  # fmt: skip
    result = well(venn_("run", "--source", "jsonl:in.jsonl", "--end", "--journal", "b.db", "--out", "b", *MODEL))
    assert said("b") == said()
    for cell in (["Oslo"], {"a": 1}, 10**400):
        Path("in.jsonl").write_text(json.dumps({"id": "z", "x": {"city": cell, "age": 3}}) + "\n")
        result = venn_("run", "--source", "jsonl:in.jsonl", "--end", "--journal", "c.db", *MODEL)
        assert f"x, feature 'city' must be a finite number, text or null, got {cell!r:.50}" in result.stderr


def test_a_file_by_its_name_and_the_commands_that_look(folder, undrawn):
    result = well(venn_("run", "--source", "rows.csv", "--label", "bought", "--journal", "a.db", "--out", "a", *MODEL))
    assert "categories that the model does not know: 'Bergen' in column city (1 times)" in result.stderr
    venn_("run", *LIVE, *MODEL)
    assert [one["predictions"] for one in said("a")] == [one["predictions"] for one in said()]
    result = well(venn_("replay", "rows.csv", "--label", "bought", "--json", "--out", "r", *MODEL))
    right = np.mean([one["predictions"]["forecast"]["label"] == one["y"] for one in said()])
    assert json.loads(result.stdout)["predictors"]["forecast"]["accuracy"] == pytest.approx(right)
    result = well(venn_("monitor", "rows.csv", "--label", "bought", "--json", *MODEL))
    assert {"intervals", "sets", "objects", "classes"} <= json.loads(result.stdout).keys()
    result = well(venn_("compare", "rows.csv", "--label", "bought", "--json", "--shuffles", "2", *MODEL))
    assert len(json.loads(result.stdout)["rows"]) == 6
    assert venn_("monitor", "run.db", "--once").exit_code == 0


def test_a_regressor_predicts_numbers(folder, undrawn):
    joblib.dump(pipeline(LinearRegression()), "model.joblib")
    numbers = ("--label", "paid", "--set", "source.end=true")
    arguments = ("--source", "csv:rows.csv", "--id", "id", "--journal", "run.db", "--out", "out", *numbers)
    well(venn_("run", *arguments, *MODEL))
    model = venn.Forecaster(float, scorer=pipeline(LinearRegression()))
    row = pandas.read_csv("rows.csv").to_dict("records")[0]
    outlook = model.predict_one({"age": row["age"], "city": row["city"]})
    first = said()[0]["predictions"]
    assert list(first) == ["distribution", "forecast"] == list(outlook)
    assert first["distribution"]["guaranteed"] == outlook["distribution"].guaranteed
    assert venn_("replay", "rows.csv", "--label", "paid", "--out", "r", *MODEL).exit_code == 0


BY_HAND = """
import numpy as np


class ByHand:
    def predict_proba(self, X):
        p = 1 / (1 + np.exp(-(X[:, 0] - 50) / 20))
        return np.column_stack([1 - p, p])


def fitted():
    return ByHand()


nothing = 3
"""


def test_a_model_of_a_module(folder):
    (folder / "by_hand_for_test.py").write_text(BY_HAND)
    with_classes = ("--classes", "no,yes", "--features", "age")
    for name in ("fitted", "ByHand"):
        arguments = (*LIVE[:7], "--journal", f"{name}.db", "--out", name, "--skip-bad", *with_classes)
        result = well(venn_("run", *arguments, "--scorer", f"by_hand_for_test:{name}"))
        assert len(said(name)) == N - 1, "one age is missing, which this model cannot take"
    result = venn_("run", *LIVE, "--scorer", "by_hand_for_test:fitted")
    assert "--classes must say which labels may come" in result.stderr
    for name, what in (("nothing", "must be a fitted model, or a function"), ("none", "AttributeError: ")):
        result = venn_("run", *LIVE, "--scorer", f"by_hand_for_test:{name}")
        assert result.exit_code == 1
        assert what in result.stderr
    assert "ModuleNotFoundError: " in venn_("run", *LIVE, "--scorer", "no_such_module:model").stderr


class Runs:
    def __reduce__(self):
        return os.mkdir, ("ran",)


@pytest.mark.parametrize("name", ["m.joblib", "m.pkl", "m.pickle"])
def test_a_file_that_runs_code_is_not_opened_without_a_word(folder, name):
    with open(name, "wb") as file:
        pickle.dump(Runs(), file)
    for command in (("run", *LIVE), ("replay", "rows.csv", "--label", "bought")):
        result = venn_(*command, "--scorer", name)
        assert result.exit_code == 2
        assert "runs whatever code it holds" in result.stderr
        assert not Path("ran").exists()
    assert "must be a fitted model" in venn_("run", *LIVE, "--scorer", name, "--scorer-runs-code").stderr
    assert Path("ran").exists()


def test_types_of_skops_are_named_and_trusted(folder):
    io = pytest.importorskip("skops.io")
    io.dump(classifier(), "model.skops")
    strange = io.get_untrusted_types(file="model.skops")
    trusts = ()
    if strange:
        result = venn_("run", *LIVE, "--scorer", "model.skops")
        assert f"add --scorer-trusts {','.join(strange)}" in result.stderr
        trusts = ("--scorer-trusts", ",".join(strange))
    assert venn_("run", *LIVE, "--scorer", "model.skops", *trusts).exit_code == 0
    result = venn_("run", *LIVE[:-2], "--out", "again", *MODEL)
    assert f"goes on after {N} questions" in result.stderr, "the same model of another file is the same"


def test_the_file_of_settings(folder):
    Path("run.toml").write_text(
        '[source]\nurl = "csv:rows.csv"\nend = true\nlabel = "bought"\n[journal]\npath = "run.db"\n'
        '[predictor]\nscorer = "model.joblib"\nscorer_runs_code = true\n'
    )
    result = well(venn_("run", "--config", "run.toml", "--check"))
    assert "calibrates model.joblib, a Pipeline" in result.stdout
    assert "classes: 'no', 'yes'" in result.stdout


@pytest.mark.parametrize(
    ("more", "what"),
    [
        (("--kernel", "rbf"), "--kernel does not go with --scorer"),
        (("--scale",), "--scale does not go with --scorer"),
        (("--nominal", "city=Oslo"), "--nominal does not go with --scorer"),
        (("--predictors", "abers"), "--predictors must be forecaster with --scorer"),
        (("--features", "age"), "--features does not go with a model that names its columns: 'age', 'city'"),
        (("--classes", "a,b"), "must hold all classes of the estimator"),
    ],
)
def test_what_does_not_go_with_a_model(folder, more, what):
    result = venn_("run", *LIVE, *MODEL, *more)
    assert result.exit_code in (1, 2)
    assert what in result.stderr
    assert not Path("run.db").exists()


@pytest.mark.parametrize("given", [("--scorer", "model.txt"), ("--scorer", "a b:c"), ("--new-scorer",)])
def test_what_is_no_model(folder, given):
    result = venn_("run", *LIVE, *given)
    assert result.exit_code == 2
    assert "--scorer" in result.stderr


@pytest.mark.parametrize("name", ["gone.skops", "gone.joblib"])
def test_a_file_that_is_not_there_is_not_to_be_trusted_first(folder, name):
    result = venn_("run", *LIVE, "--scorer", name)
    assert result.exit_code == 2
    assert f"must be a file that is there, got {name}" in result.stderr


def test_another_model_is_refused_or_calibration_begins_anew(folder, caplog):
    assert venn_("run", *LIVE, *MODEL).exit_code == 0
    for other in (classifier(seed=1), pipeline(LogisticRegression(C=0.1))):  # of the same description, and of another
        before = left("run.db")
        joblib.dump(other, "model.joblib")
        result = venn_("run", *LIVE, *MODEL)
        assert result.exit_code == 1
        assert "--new-scorer begins calibration anew with it, in the same journal" in result.stderr
        assert left("run.db") == before
        result = well(venn_("run", *LIVE, *MODEL, "--new-scorer"))
        assert f"begins anew after {N} examples" in caplog.text
        caplog.clear()
    assert venn_("run", *LIVE, *MODEL, "--new-scorer").exit_code == 0
    assert "begins anew" not in caplog.text, "the model has stayed the same"


def test_a_model_that_prints_its_address_is_the_same_in_every_process(folder):
    Path("bare.py").write_text(
        "import numpy as np\n\n\nclass Bare:\n    classes_, feature_names_in_ = ['no', 'yes'], ['age']\n\n"
        "    def predict_proba(self, X):\n        return np.full((len(X), 2), 0.5)\n\n\n"
        "made, kept = lambda: kept.append(Bare()) or kept[-1], []\n"
    )
    model = ("--scorer", "bare:made")
    for _ in range(2):  # each time an object at another place
        well(venn_("run", *LIVE, *model))


def test_a_run_without_a_model_is_not_gone_on_with(folder):
    plain = ("--classes", "no,yes", "--features", "age", "--fill", "age=40")
    assert venn_("run", *LIVE, *plain).exit_code == 0
    result = venn_("run", *LIVE, *MODEL)
    assert "run.db holds a run of another model than model.joblib: begin a new journal" in result.stderr


def test_killed_and_resumed(folder):
    live = (*LIVE[:-4], "--set", "run.batch=1", *MODEL)
    Life(folder, *live, "--journal", "whole.db", "--out", "whole").end()
    life = Life(folder, *live, "--journal", "run.db", "--out", "out")
    until(lambda: counts("run.db")[0] >= 3)
    life.send(signal.SIGKILL).end()
    assert counts("run.db")[0] < N
    assert Life(folder, *live, "--journal", "run.db", "--out", "out").end() == 0
    assert left("run.db") == left("whole.db")
    assert said() == said("whole")


def test_a_model_that_takes_no_unknown_category_refuses_its_questions(folder):
    joblib.dump(pipeline(LogisticRegression(), unknown="error"), "model.joblib")
    result = well(venn_("run", *LIVE, *MODEL))
    assert "met an unknown category 1 times" in result.stderr
    assert "refused a question" in result.stderr
    refused = {row["id"] for row in pandas.read_csv("rows.csv").to_dict("records")} - {one["id"] for one in said()}
    assert refused == {"k0", "k7"}, "a gap, and a category, that it was not fitted to"


def test_boosted_trees_get_their_categories(folder):
    lightgbm = pytest.importorskip("lightgbm")
    X, number = frame(80, 0)
    X = X.assign(city=X.city.astype("category"))
    y = np.where(number > 55, "yes", "no")
    joblib.dump(lightgbm.LGBMClassifier(n_estimators=3, verbosity=-1, n_jobs=1).fit(X, y), "model.joblib")
    result = well(venn_("run", *LIVE, *MODEL))
    assert "'Bergen' in column city" in result.stderr
    assert len(said()) == N


def test_names_with_blanks_are_those_of_boosted_trees_that_know_them_without(folder):
    lightgbm = pytest.importorskip("lightgbm")
    X, number = frame(80, 0)
    X = pandas.DataFrame({"own age": X.age, "floor": number.round()})
    y = np.where(number > 55, "yes", "no")
    joblib.dump(lightgbm.LGBMClassifier(n_estimators=3, verbosity=-1, n_jobs=1).fit(X, y), "model.joblib")
    Path("rows.csv").write_text("floor,own age,bought\n30,20,no\n80,81,yes\n")
    csv = ("--source", "csv:rows.csv", "--end", "--label", "bought", "--journal", "a.db", "--out", "a")
    assert venn_("run", *csv, *MODEL).exit_code == 0
    Path("in.jsonl").write_text(
        '{"x": {"floor": 30, "own age": 20}, "y": "no"}\n{"x": {"own age": 81, "floor": 80}, "y": "yes"}\n'
    )
    json_ = ("--source", "jsonl:in.jsonl", "--end", "--features", "own age,floor", "--journal", "b.db", "--out", "b")
    well(venn_("run", *json_, *MODEL))
    assert said("a") == said("b")
    assert len(said("a")) == 2


ROWS = pandas.DataFrame({"a": [1.0, 2.0, 3.0], "b": ["x", "y", "x"], "c": [7, 8, 7]})
NAMES = ("a", "b", "c")


@pytest.mark.parametrize(
    ("columns", "found"),
    [
        (["b"], {"b": ["x", "y"]}), (["c", "b"], {"b": ["x", "y"], "c": [7, 8]}), ([1], {"b": ["x", "y"]}),
        ([-1], {"c": [7, 8]}), (slice(1, 3), {"b": ["x", "y"], "c": [7, 8]}),
        (slice("b", "c"), {"b": ["x", "y"], "c": [7, 8]}), ([False, True, False], {"b": ["x", "y"]}),
        (lambda X: ["b"], {"b": ["x", "y"]}),
    ],
)  # fmt: skip
def test_categories_are_those_of_the_encoder(columns, found):
    for encoder in (OneHotEncoder(), OrdinalEncoder()):
        step = make_pipeline(SimpleImputer(strategy="most_frequent"), encoder)
        made = make_column_transformer((step, columns), remainder="passthrough").fit(ROWS)
        assert known_categories(made, NAMES) == found
    assert known_categories(make_pipeline(OneHotEncoder()).fit(ROWS), NAMES)["c"] == [7, 8]
    assert known_categories(make_pipeline(StandardScaler()).fit(ROWS[["a"]]), ("a",)) == {}


@pytest.mark.parametrize("kind", ["pipeline", "catboost"])
def test_codes_that_look_like_numbers_stay_the_categories_that_they_are(folder, kind):
    X = pandas.DataFrame({"code": ["007", "012", "9"] * 20, "rank": [1, 2, 3, 4] * 15})
    y = np.where(X.code == "007", "yes", "no")
    if kind == "catboost":
        catboost = pytest.importorskip("catboost")
        model = catboost.CatBoostClassifier(50, cat_features=["code"], verbose=False, thread_count=1)
        model.set_params(allow_writing_files=False)
    else:
        model = make_pipeline(OneHotEncoder(), LogisticRegression())
    joblib.dump(model.fit(X, y), "model.joblib")
    Path("rows.csv").write_text("code,rank,bought\n007,4,yes\n9,2.0,no\n012,1,no\n")
    result = well(venn_("run", *LIVE[:3], *LIVE[5:], *MODEL))
    assert "unknown category" not in result.stderr
    assert [one["predictions"]["forecast"]["label"] for one in said()] == ["yes", "no", "no"]


@pytest.mark.parametrize("named", [True, False])
def test_a_parquet_file_says_what_the_same_rows_in_csv_say(folder, undrawn, named):
    pytest.importorskip("pyarrow")
    X, number = frame(300, 4)
    rows = X.assign(bought=np.where(number > 55, "yes", "no"))
    if not named:
        rows["city"] = rows.city.map({city: float(k) for k, city in enumerate(CITIES)})
        model = LogisticRegression().fit(rows[["age", "city"]].to_numpy(), rows.bought)
        joblib.dump(model, "model.joblib")
    rows.loc[10, "bought"] = None
    rows.to_csv("rows.csv", index=False)
    rows.to_parquet("rows.parquet", row_group_size=64)
    found = []
    for file in ("rows.csv", "rows.parquet"):
        result = venn_("replay", file, "--label", "bought", "--drop-unlabelled", "--json", "--out", file[:-1], *MODEL)
        assert result.exit_code == 0, result.output
        found.append(venn.Record.load(f"{file[:-1]}/record.npz"))
    assert len(found[0]) == len(found[1]) == 299
    for name in found[0].names:
        assert all(np.array_equal(*both) for both in zip(*(one[name].columns.values() for one in found), strict=True))


def test_a_parquet_file_that_cannot_be_replayed_is_refused_by_a_sentence(folder):
    pytest.importorskip("pyarrow")
    rows = pandas.read_csv("rows.csv")
    rows.to_parquet("rows.parquet")
    rows.assign(bought="perhaps").to_parquet("labels.parquet")
    Path("none.parquet").write_text("age,city\n")
    for file, label, what in (
        ("rows.parquet", "nothing", "name the column of its label with --label, not 'nothing'; it has 'age', 'city'"),
        ("labels.parquet", "bought", "labels.parquet, row 1: y must be one of 'no', 'yes', got 'perhaps'"),
        ("none.parquet", "bought", "none.parquet is no Parquet file"),
    ):
        result = venn_("replay", file, "--label", label, *MODEL)
        assert result.exit_code in (1, 2)
        assert what in result.stderr
