"""Rows whose values have names: whatever a field is called, it goes by its name, or is refused by one sentence."""

from collections import namedtuple
from dataclasses import make_dataclass

import numpy as np
import pytest
from centroids import NearestCentroid

import venn
from venn.machines.machine import fields_in, is_table, names_in
from venn.machines.sparse import is_sparse
from venn.machines.tables import by_name, named_object

STRANGE = ["index", "columns", "tocsr", "shape", "count", "dtype", "ndim", "values", "items", "to_numpy", "toarray"]
NAMES = ["age", *STRANGE]
VALUES = [float(place) for place in range(len(NAMES))]


def tuple_of(names, values):
    return namedtuple("Row", names)(*values)


def data_of(names, values):
    return make_dataclass("Row", names)(*values)


def slots_of(names, values):
    return make_dataclass("Row", names, slots=True, frozen=True)(*values)


def series_of(names, values):
    return pytest.importorskip("pandas").Series(values, index=names)


def dict_of(names, values):
    return dict(zip(names, values, strict=True))


MAKE = {"tuple": tuple_of, "dataclass": data_of, "slots": slots_of, "series": series_of, "dict": dict_of}


class Fitted:
    """A classifier that was fitted to a table: its score is its first feature."""

    classes_ = np.array(["down", "up"])
    n_features_in_ = len(NAMES)
    feature_names_in_ = np.array(NAMES, object)

    def decision_function(self, X):
        return np.asarray(X, float) @ np.arange(len(NAMES)) - 1

    def fit(self, X, y):
        raise AssertionError


@pytest.fixture(params=MAKE.values(), ids=MAKE)
def make(request):
    return request.param


def test_names_are_read_as_names(make):
    x = make(NAMES, VALUES)
    assert names_in(x) == NAMES
    assert not is_table(x)
    assert not is_sparse(x)
    assert (fields_in(x) is None) == (make in (series_of, dict_of))
    assert [float(one) for one in by_name(x, tuple(NAMES))] == VALUES


def test_a_scorer_takes_its_own_names_and_no_others(make):
    scorer = venn.FrozenScorer(Fitted())
    own = make(NAMES, VALUES)
    assert np.array_equal(scorer.scores(own), scorer.scores(VALUES))
    assert np.array_equal(scorer.score_many([own, own])[1], scorer.scores(VALUES))
    with pytest.raises(ValueError, match="x must have the features"):
        scorer.scores(make(["other", *STRANGE], VALUES))


def own_machine():
    return venn.LeastSquaresSVM(venn.RBF(1.0), 1.0, ["down", "up"])


MODELS = {
    "kernel": lambda: venn.Conformal(own_machine()),
    "centroid": lambda: venn.Conformal(NearestCentroid(["down", "up"])),
    "forecaster": lambda: venn.Forecaster(["down", "up"]),
    "numbers": lambda: venn.Forecaster(float),
}


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("name", ["age", *STRANGE])
def test_a_machine_that_knows_no_names_refuses_them_by_one_sentence(make, model, name):
    with pytest.raises(TypeError, match="x must be a sequence of numbers, ") as caught:
        model().predict_one(make(["first", name], [1.0, 2.0]))
    assert name in str(caught.value)


def test_the_number_of_a_row_is_no_feature():
    pandas = pytest.importorskip("pandas")
    row = next(pandas.DataFrame([VALUES[:2]], columns=["a", "b"]).itertuples())
    drift = venn.monitors.Drift(columns=True)
    for ask in (MODELS["kernel"]().predict_one, MODELS["forecaster"]().predict_one, drift.update):
        with pytest.raises(TypeError, match=r"Index=0: itertuples\(index=False\) leaves it out"):
            ask(row)
    frame = pandas.DataFrame([VALUES], columns=NAMES)
    scorer = venn.FrozenScorer(Fitted())
    with pytest.raises(TypeError, match=r"itertuples\(index=False\)"):
        scorer.scores(next(frame.itertuples()))
    assert np.array_equal(scorer.scores(next(frame.itertuples(index=False))), scorer.scores(VALUES))


def test_a_watch_over_columns_takes_named_rows(make):
    names = ["index", "count"]
    drift = venn.monitors.Drift(columns=names)
    drift.update(make(names, [1.0, 2.0]))
    swapped = make(["count", "index"], [1.0, 2.0])
    if make in (tuple_of, series_of):  # these have an order, and go by it
        with pytest.raises(ValueError, match=r"x must have the (features|columns)"):
            drift.update(swapped)
        assert drift.n == 1
    else:
        drift.update(swapped)
        assert drift.n == 2


def test_a_journal_keeps_named_rows(make, tmp_path):
    model = venn.InductiveConformal(venn.FrozenScorer(Fitted()))
    with venn.Online(model, journal=tmp_path / "run.db") as online:
        online.ask(make(NAMES, VALUES), id="first")
    again = venn.InductiveConformal(venn.FrozenScorer(Fitted()))
    with venn.Online(again, journal=tmp_path / "run.db") as online:
        online.answer("first", "up")


def test_text_of_a_dataclass_goes_by_name():
    assert named_object(data_of(["index", "city"], [1.0, "Oslo"])) == {"index": 1.0, "city": "Oslo"}


def test_river_says_how_a_named_tuple_becomes_a_dict_and_reads_numbers_that_are_text():
    pytest.importorskip("river")
    model = venn.RiverClassifier(MODELS["kernel"]())
    with pytest.raises(TypeError, match=r"x\._asdict\(\) is one"):
        model.learn_one(tuple_of(["index"], [1.0]), "up")
    model.learn_one({"a": "1.5", "b": 2}, "up")
    with pytest.raises(TypeError, match="got '1,5' for feature 'a'"):
        model.learn_one({"a": "1,5", "b": 2}, "up")
