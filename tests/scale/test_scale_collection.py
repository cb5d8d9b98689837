"""Collections: what processes make of blocks, merged, is what one process makes of the whole."""

import threading
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.svm import LinearSVC

pytest.importorskip("distributed")

import dask
import dask.array as da
import dask.dataframe as dd
from distributed import Client
from naive.merging import alike
from scale_blocks import CLASSES, Odd, Slopes, deadly, failing, rows

import venn
from venn.monitors.scorecard import Scorecard
from venn.predictors.inductive import InductiveVenn
from venn.predictors.inductive_abers import InductiveVennAbers
from venn.predictors.inductive_conformal import InductiveConformal
from venn.scale.collection import FAN, WINDOW, calibrate, score, score_block

pytestmark = pytest.mark.usefixtures("patient_nannies")
SCORER = venn.FrozenScorer(Slopes())
MODELS = {
    "counts": lambda: InductiveVenn(SCORER, venn.taxonomies.TopTwo()),
    "bag": lambda: InductiveVenn(SCORER, venn.taxonomies.AdaptiveMarginBins()),
    "abers": lambda: InductiveVennAbers(SCORER),
    "ranks": lambda: InductiveConformal(SCORER, label_conditional=True),
}


def joined(blocks):
    X, y = zip(*blocks, strict=True)
    return np.concatenate(X), np.concatenate(y)


def said(model):
    block = model.predict_many(rows(7)[0])
    return model.n, [
        getattr(block, name).tobytes()
        for name in ("probabilities", "pairs", "p_values", "proba")
        if hasattr(block, name)
    ]


@pytest.fixture(scope="module")
def client(patient_nannies):
    with Client(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0") as client:
        yield client


# In one process ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
def test_blocks_are_the_whole(name):
    blocks = [rows(i, 5 * i) for i in range(5)]  # the first is empty
    first = MODELS[name]()
    first.learn_many(*rows(50))
    whole = MODELS[name]()
    whole.learn_many(*joined([rows(50), *blocks]))
    before = said(first)
    found = calibrate(first, [partial(rows, i, 5 * i) for i in range(5)])
    assert said(found) == said(whole)
    assert said(first) == before
    found.learn_many(*rows(3))
    assert said(first) == before
    assert said(calibrate(MODELS[name](), iter([]))) == said(MODELS[name]())
    X, y = joined(blocks)
    card = score(found, iter(blocks))
    assert alike(card.table, score_block(found, X, y).table)
    assert card.n == 50


@pytest.mark.parametrize("name", MODELS)
def test_what_comes_of_no_block_is_a_new_one(name):
    model = MODELS[name]()
    model.learn_many(*rows(50))
    before = said(model)
    found = calibrate(model, [])
    assert said(found) == before
    found.learn_many(*rows(3, 200))
    assert said(model) == before != said(found)


def test_a_score_of_counts_is_that_of_every_prediction():
    model = calibrate(MODELS["counts"](), [rows(1)])
    X, y = rows(2, 300)
    card = Scorecard(CLASSES)
    card.update_many(model.predict_many(X), [CLASSES.index(label) for label in y])
    assert alike(score_block(model, X, y).table, card.table)
    assert card.errors > 0


# On Dask collections -------------------------------------------------------------------------------------------------


def test_arrays_and_tables_without_a_cluster():
    X, y = joined([rows(i) for i in range(4)])
    whole = MODELS["counts"]()
    whole.learn_many(X, y)
    arrays = da.from_array(X, chunks=(30, 2)), da.from_array(y, chunks=30)
    assert said(calibrate(MODELS["counts"](), *arrays)) == said(whole)
    table = pd.DataFrame(X, columns=["height", "width"])
    scorer = venn.FrozenScorer(LinearSVC(dual="auto", random_state=0).fit(table, y))
    of_table = InductiveVenn(scorer)
    of_table.learn_many(table, y)
    lazy = dd.from_pandas(table.assign(label=y), npartitions=3)
    assert said_of(calibrate(InductiveVenn(scorer), lazy, "label"), table) == said_of(of_table, table)
    parts = lazy[["height", "width"]], lazy["label"]
    assert said_of(calibrate(InductiveVenn(scorer), *parts), table) == said_of(of_table, table)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_table_may_have_the_name_of_its_label_column(library):
    X, y = joined([rows(i) for i in range(3)])
    table = pd.DataFrame(X, columns=["height", "width"])
    scorer = venn.FrozenScorer(LinearSVC(dual="auto", random_state=0).fit(table, y))
    whole = InductiveVenn(scorer)
    whole.learn_many(table, y)
    columns = {"height": X[:, 0], "answer": y.tolist(), "width": X[:, 1]}
    named = pytest.importorskip(library).DataFrame(columns)
    blocks = [(named[:50], "answer"), (named[50:], "answer")]
    assert said_of(calibrate(InductiveVenn(scorer), blocks), table) == said_of(whole, table)
    assert alike(score(whole, blocks).table, score_block(whole, table, y).table)
    for work in (calibrate, score):
        with pytest.raises(ValueError, match=r"^partition 0: y must be a column of X, got 'label' for \['height'"):
            work(whole, [(named, "label")])


def said_of(model, X):
    return model.n, model.predict_many(X).probabilities.tobytes()


@pytest.mark.parametrize(
    ("X", "y", "says"),
    [
        (da.zeros((6, 2), chunks=(3, 1)), da.zeros(6, chunks=3), "X must be in chunks of whole rows"),
        (da.zeros((6, 2), chunks=(3, 2)), da.zeros(6, chunks=2), "y must be in 2 chunks"),
        (da.zeros((6, 2), chunks=(3, 2)), da.zeros(6, chunks=((2, 4),)), "partition 0: y must hold a label"),
        (da.zeros((6, 2), chunks=(3, 2)), np.zeros(6), r"y must be a dask array \(n,\)"),
        (da.zeros(6, chunks=3), da.zeros(6, chunks=3), "X must be a two-dimensional dask array"),
        (np.zeros((6, 2)), np.zeros(6), "y must be left out if X is an iterable"),
        (np.zeros((6, 2)), None, "X must be a dask collection or an iterable"),
        (3, None, "X must be a dask collection or an iterable"),
        ([(np.zeros((1, 2)), ["no"]), (np.zeros((1, 2)), ["never"])], None, "partition 1: .*'never'"),
        ([(np.full((1, 2), np.nan), ["no"])], None, "partition 0: scores must be finite"),
        ([(np.zeros((2, 2)), ["no"])], None, "partition 0: y must hold a label for each of 2 rows"),
        (dd.from_pandas(pd.DataFrame({"a": [1.0]}), npartitions=1), "b", "partition 0: y must be a column of X"),
        ([(pd.DataFrame({"a": [1.0]}), "b")], None, "partition 0: y must be a column of X"),
        (pd.DataFrame({"a": [1.0]}), None, "X must be a dask collection or an iterable"),
        ([rows(0), list(rows(1))], None, r"partition 1: X must hold blocks .*, got <class 'list'>: \[arr"),
        (rows(0), None, r"partition 0: X must hold blocks that are tuples .*, got <class 'numpy.ndarray'>: array"),
        ([None], None, "partition 0: X must hold blocks that are tuples .*: None"),
        ([lambda: None], None, "partition 0: X must hold blocks that are tuples .*: None"),
        ([(*rows(0), 1)], None, "partition 0: X must hold blocks that are tuples .*, got <class 'tuple'>"),
        ([(np.zeros((1, 2)), None)], None, "partition 0: y must be given"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("work", [calibrate, score])
def test_what_does_not_fit_is_refused(work, X, y, says):
    model = MODELS["counts"]()
    before = said(model)
    with pytest.raises((TypeError, ValueError), match=f"^{says}"):
        work(model, X, y)
    assert said(model) == before


FAILURES = {
    "json": (ValueError, "JSONDecodeError: Expecting property name"),
    "bytes": (UnicodeError, "'utf-8' codec can't decode byte 0xff"),
    "file": (FileNotFoundError, "No such file or directory: '/nowhere/at/all'"),
    "own": (RuntimeError, r"Odd: \(7, 'no such luck'\)"),
}


@pytest.mark.parametrize("how", FAILURES)
@pytest.mark.parametrize("work", [calibrate, score])
def test_what_a_maker_raises_is_said_of_its_partition(work, how):
    kind, says = FAILURES[how]
    for block in (partial(failing, how), dask.delayed(failing)(how)):
        with pytest.raises(kind, match=f"^partition 1: .*{says}") as caught:
            work(MODELS["counts"](), [rows(0), block])
        assert isinstance(caught.value.__cause__, Odd if how == "own" else kind)


def test_predictors_that_cannot_be_calibrated_so():
    with pytest.raises(TypeError, match="client must be a distributed"):
        calibrate(MODELS["counts"](), [rows(0)], client="tcp://127.0.0.1:1")
    with pytest.raises(TypeError, match="predictor must be an inductive predictor"):
        calibrate(SCORER, [rows(0)])
    with pytest.raises(TypeError, match="predictor must be an inductive predictor"):
        score_block(SCORER, *rows(0))
    with pytest.raises(ValueError, match=r"schedule NoTraining\(\)"):
        calibrate(InductiveVenn(SCORER, schedule=venn.schedules.FixedCalibration(10)), [rows(0)])


# On processes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["counts", "abers", "ranks"])
def test_processes_give_what_one_process_gives(client, name):
    X, y = joined([rows(i) for i in range(12)])
    whole = MODELS[name]()
    whole.learn_many(X, y)
    arrays = da.from_array(X, chunks=(50, 2)), da.from_array(y, chunks=50)
    found = calibrate(MODELS[name](), *arrays, client=client)
    assert said(found) == said(whole)
    assert alike(score(found, *arrays, client=client).table, score_block(whole, X, y).table)


def test_more_blocks_than_a_window_and_a_tree(client):
    number = WINDOW + FAN + 1
    card = score(
        calibrate(MODELS["counts"](), [rows(0)]), [dask.delayed(rows)(i, 3) for i in range(number)], client=client
    )
    whole = score_block(calibrate(MODELS["counts"](), [rows(0)]), *joined([rows(i, 3) for i in range(number)]))
    assert alike(card.table, whole.table)


def test_a_bad_label_names_its_partition_from_a_process_too(client):
    bad = [*[partial(rows, i) for i in range(3)], (np.zeros((1, 2)), ["never"])]
    with pytest.raises(ValueError, match=r"partition 3: .*'never'"):
        calibrate(MODELS["counts"](), bad, client=client)


@pytest.mark.parametrize("how", FAILURES)
def test_what_a_maker_raises_in_a_process(client, how):
    kind, says = FAILURES[how]
    with pytest.raises(kind, match=f"^partition 1: .*{says}"):
        calibrate(MODELS["counts"](), [partial(rows, 0), partial(failing, how)], client=client)


def test_a_block_that_cannot_be_sent_is_named(client):
    lock = threading.Lock()
    with pytest.raises(TypeError, match=r"^partition 1: X must hold blocks that can be pickled, .*: cannot pickle"):
        calibrate(MODELS["counts"](), [rows(0), lambda: lock], client=client)


def test_no_block_on_processes_gives_a_new_one(client):
    model = MODELS["abers"]()
    model.learn_many(*rows(50))
    before = said(model)
    found = calibrate(model, [], client=client)
    found.learn_many(*rows(3, 200))
    assert said(model) == before != said(found)


def test_a_killed_process_changes_nothing(client, tmp_path):
    blocks = [partial(deadly, Path(tmp_path), i) for i in range(12)]
    found = calibrate(MODELS["abers"](), blocks, client=client)
    whole = MODELS["abers"]()
    whole.learn_many(*joined([rows(i) for i in range(12)]))
    assert said(found) == said(whole)
    made = [path.name.partition("-") for path in tmp_path.iterdir() if path.name != "dead"]
    assert len({pid for i, _, pid in made if i == "5"}) == 2, "block 5 was to be made by a process that died, and again"
