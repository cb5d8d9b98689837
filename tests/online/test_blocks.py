"""A forecaster takes rows in blocks: to the last bit what it says and learns one by one."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.svm import LinearSVC

import venn
from venn.machines.fit_ahead import Fits
from venn.machines.machine import NotConverged
from venn.machines.stack import Fit
from venn.nonconformity import APS
from venn.online import checkpoint
from venn.online.in_blocks import InBlocks

PARTS = ("proba", "intervals", "p_values")
N, CHANGE = 330, 200  # rows; labels mean others from there on


def rows(classes, n, seed, change=10**6, d=4):
    """Rows of d columns and their labels, which are exchanged from some row on."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)).round(1)  # ties
    scores = 4 * X @ np.random.default_rng(9).normal(size=(d, classes)) + rng.gumbel(size=(n, classes))
    codes = (scores.argmax(axis=1) + (np.arange(n) >= change)) % classes
    return X, [f"c{code}" for code in codes]


def fitted(estimator, classes=2, d=4):
    return estimator.fit(*rows(classes, 300, 1, d=d))


def one_by_one(model, X, y):
    """What a model says of rows in turn."""
    said = []
    for i, label in enumerate(y):
        x = X[[i]] if scipy.sparse.issparse(X) else X[i]
        said.append(model.predict_one(x))
        model.learn_one(x, label)
    return tuple(np.array([getattr(one, part) for one in said]) for part in PARTS)


def in_blocks_of(size, model, X, y):
    """The same in blocks of this size."""
    said = [model.replay_many(X[i : i + size], y[i : i + size]) for i in range(0, len(y), size)]
    return tuple(np.concatenate([getattr(one, part) for one in said]) for part in PARTS)


def same(one, other):
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def assert_alike(make, X, y, sizes=(7, 64, N)):
    """Blocks of any size say what one by one is said, and leave the same state, alarms and verdict; return these."""
    alone = make()
    said, states = one_by_one(alone, X, y), checkpoint.pack(alone)
    for size in sizes:
        model = make()
        assert same(in_blocks_of(size, model, X, y), said), size
        assert checkpoint.pack(model) == states
        assert str(model.verdict()) == str(alone.verdict())
        assert [one.alarms for one in model.monitors.values()] == [one.alarms for one in alone.monitors.values()]
        learned = make()
        for i in range(0, len(y), size):
            learned.learn_many(X[i : i + size], y[i : i + size])
        assert checkpoint.pack(learned) == states
    return alone


@pytest.mark.parametrize(
    ("estimator", "classes", "given"),
    [
        (LogisticRegression(), 2, {}),  # scores are log odds: the scorer is an expert, too
        (LinearSVC(), 2, {"on_change": "keep"}),  # it is none
        (RandomForestClassifier(8, random_state=0), 3, {"measure": APS(), "floor": 0.6}),
    ],
    ids=["log odds", "kept", "floor"],
)
def test_blocks_say_what_rows_say_one_by_one_across_pool_fits_and_a_change(estimator, classes, given):
    """Its pool is fitted at 20, 40, 60, 110, ...; an alarm in the middle of a block makes it begin anew."""
    scorer = fitted(estimator, classes)
    alone = assert_alike(lambda: venn.Forecaster(scorer=scorer, **given), *rows(classes, N, 2, CHANGE))
    assert alone.verdict().state in ("changed", "below the floor")
    anew = alone.monitors["sets"].verdict().anew
    assert anew is None if given.get("on_change") == "keep" else CHANGE < anew < N


def test_blocks_are_taken_by_the_loops_and_not_one_by_one(monkeypatch):
    """Otherwise the other tests would compare nothing."""
    monkeypatch.delattr(InBlocks, "_singly")
    model = venn.Forecaster(scorer=fitted(LogisticRegression()))
    model.learn_many(*rows(2, 100, 2))
    assert model.n == 100


def test_what_no_loop_knows_goes_one_by_one():
    """A predictor beside it, and a user's own forecasts: they learn as they always did."""
    scorer = fitted(LogisticRegression())

    def make():
        beside = {"own": venn.InductiveVenn(venn.FrozenScorer(scorer), venn.taxonomies.Argmax())}
        return venn.Forecaster(scorer=scorer, beside=beside)

    assert_alike(make, *rows(2, 60, 2), sizes=(1, 25))


class Unlike:
    """A classifier of one's own whose rows get other numbers in a block than alone, as by products of matrices."""

    classes_ = ("c0", "c1")

    def __deepcopy__(self, memo):
        return self

    def predict_proba(self, X):
        p = 1 / (1 + np.exp(-X[:, 0] - 0.01 * (len(X) > 1)))
        return np.column_stack([1 - p, p])


def test_a_users_own_forecaster_is_asked_row_by_row():
    class Counting(venn.Forecaster):
        learned = 0

        def learn_one(self, x, y, prepared=None):
            self.learned += 1
            super().learn_one(x, y, prepared)

    model = Counting(scorer=fitted(LogisticRegression()))
    model.learn_many(*rows(2, 20, 2))
    assert model.learned == model.n == 20


def test_a_scorer_whose_rows_differ_in_a_block_is_asked_row_by_row():
    assert_alike(lambda: venn.Forecaster(scorer=Unlike()), *rows(2, 60, 2), sizes=(30,))


def test_sparse_rows_come_in_blocks():
    X, y = rows(2, 60, 2)
    scorer = fitted(LogisticRegression())
    assert_alike(lambda: venn.Forecaster(scorer=scorer), scipy.sparse.csr_array(X * (X > 0)), y, sizes=(30,))


def test_tables_come_in_blocks():
    pandas = pytest.importorskip("pandas")
    X, y = rows(2, 40, 2)
    frame = pandas.DataFrame(X, columns=list("abcd"))
    scorer = LogisticRegression().fit(frame, y)
    model, alone = (venn.Forecaster(scorer=scorer) for _ in range(2))
    said = one_by_one(alone, X, y)
    assert same(in_blocks_of(17, model, frame, y), said)
    assert checkpoint.pack(model) == checkpoint.pack(alone)


def test_gaps_come_in_blocks_where_the_scorer_takes_them():
    X, y = rows(2, 60, 2)
    X[::7, 1] = np.nan
    scorer = HistGradientBoostingClassifier(max_iter=3).fit(X, y)
    assert_alike(lambda: venn.Forecaster(scorer=scorer), X, y, sizes=(30,))


def test_rows_without_text_in_a_table_with_text_are_as_alone():
    """A category that is missing is NaN: alone such a row is an array of numbers, in a block a row of a table."""
    pandas = pytest.importorskip("pandas")
    X, y = rows(2, 90, 2)
    table = pandas.DataFrame(X, columns=list("abcd"))
    table["kind"] = pandas.Series(np.where(X[:, 1] > 0, "large", "small"), dtype=object).where(X[:, 2] > -0.5, np.nan)
    encoder = make_column_transformer((OneHotEncoder(), ["kind"]), remainder="passthrough")
    scorer = make_pipeline(encoder, RandomForestClassifier(8, random_state=0)).fit(table, y)
    alone, model = (venn.Forecaster(scorer=scorer) for _ in range(2))
    said = []
    for x, label in zip(table.to_dict("records"), y, strict=True):
        said.append(alone.predict_one(x))
        alone.learn_one(x, label)
    found = in_blocks_of(30, model, table, y)
    assert same(found, tuple(np.array([getattr(one, part) for one in said]) for part in PARTS))
    assert checkpoint.pack(model) == checkpoint.pack(alone)


def test_a_row_that_the_scorer_refuses_leaves_those_before_it_learned():
    X, y = rows(2, 30, 2)
    scorer = GaussianNB().fit(X, y)
    X[20, 0] = np.nan
    alone, model = (venn.Forecaster(scorer=scorer) for _ in range(2))
    with pytest.raises(ValueError, match="NaN"):
        one_by_one(alone, X, y)
    with pytest.raises(ValueError, match="NaN"):
        model.replay_many(X, y)
    assert model.n == 20
    assert checkpoint.pack(model) == checkpoint.pack(alone)


def test_a_change_ends_at_the_same_step_in_blocks_as_one_by_one():
    """Steps at which a change may end are made alone; a monitor that takes them in a block looks too late."""
    rng = np.random.default_rng(0)
    hits = rng.random(2000) < 0.9
    hits[300:400] = rng.random(100) < 0.3
    said = venn.Forecast(np.array([0.1, 0.9]), (0, 1))
    alone = venn.Monitor([0, 1], window=200)
    for hit in hits.tolist():
        alone.update(said, int(hit))
    ended = [one.ended for one in alone.cases]
    assert ended
    assert all(400 < step < 2000 for step in ended)
    for size in (64, 500, 2000):
        monitor = venn.Monitor([0, 1], window=200)
        for i in range(0, 2000, size):
            part = hits[i : i + size].astype(int).tolist()
            monitor.update_many([said] * len(part), part)
        assert monitor.cases == alone.cases
        assert checkpoint.pack(monitor) == checkpoint.pack(alone)


@pytest.mark.parametrize(
    ("spoil", "said"), [(lambda X, y: (X, [*y[:-1], "other"]), "classes"), (lambda X, y: (X[:, 1:], y), "3")]
)
def test_a_refused_block_leaves_all_as_it_was(spoil, said):
    model = venn.Forecaster(scorer=fitted(LogisticRegression()))
    model.learn_many(*rows(2, 30, 2))
    before = checkpoint.pack(model)
    with pytest.raises(ValueError, match=said):
        model.learn_many(*spoil(*rows(2, 30, 3)))
    assert checkpoint.pack(model) == before


def test_blocks_go_on_from_a_file(tmp_path):
    scorer, (X, y) = fitted(LogisticRegression()), rows(2, N, 2, CHANGE)
    alone, model = (venn.Forecaster(scorer=scorer) for _ in range(2))
    one_by_one(alone, X, y)
    for i in range(0, N, 121):
        checkpoint.save(tmp_path / "model.venn", model)
        model = checkpoint.load(tmp_path / "model.venn", [scorer])
        model.learn_many(X[i : i + 121], y[i : i + 121])
    assert checkpoint.pack(model) == checkpoint.pack(alone)


def test_alarms_at_many_places_end_blocks_there():
    """Changes come and go: it begins anew several times, once within rows that follow the last time."""
    X, y = rows(2, 900, 4)
    swapped = (np.arange(900) // 150) % 2 == 1
    y = [f"c{1 - int(label[1])}" if other else label for label, other in zip(y, swapped, strict=True)]
    scorer, times = fitted(LogisticRegression()), []

    class Counting(venn.Forecaster):
        def _begin_anew(self):
            times.append(self.n)
            super()._begin_anew()

    alone = venn.Forecaster(scorer=scorer)
    said = one_by_one(alone, X, y)
    model = Counting(scorer=scorer)
    assert same(in_blocks_of(900, model, X, y), said)
    assert len(times) > 1
    assert model.n == alone.n == 900


def events(X, y):
    return list(zip(X, y, strict=True))


def test_a_replay_of_what_is_at_hand_goes_in_blocks_and_records_the_same():
    """An iterator is replayed one by one."""
    scorer, examples = fitted(LogisticRegression()), events(*rows(2, N, 2, CHANGE))
    alone, model = (venn.Forecaster(scorer=scorer) for _ in range(2))
    one, other = venn.replay(iter(examples), alone), venn.replay(examples, model, steps=N - 10)
    assert checkpoint.pack(model) != checkpoint.pack(alone)
    more = venn.replay(examples[-10:], model)
    assert (len(other), len(more)) == (N - 10, 10)
    assert checkpoint.pack(model) == checkpoint.pack(alone)
    for name in one.names:
        for whole, first, rest in zip(one.outcomes(name), other.outcomes(name), more.outcomes(name), strict=True):
            assert np.array_equal(whole, np.concatenate([first, rest], axis=-1))
    assert (other.kind("sets"), other.guaranteed) == (one.kind("sets"), one.guaranteed)


def test_a_replay_without_a_record_has_the_means_of_one():
    scorer, examples = fitted(LogisticRegression()), list(zip(*rows(2, 700, 2), strict=True))
    record = venn.replay(examples, venn.Forecaster(scorer=scorer))
    blocks = venn.replay(examples, venn.Forecaster(scorer=scorer), record=False)
    alone = venn.replay(iter(examples), venn.Forecaster(scorer=scorer), record=False)
    for name, one in blocks.items():
        shown, means = one.snapshot(), record.means()[name]
        assert shown == alone[name].snapshot()
        assert len(means.keys() & shown["curves"].keys()) > 2
        for key in means.keys() & shown["curves"].keys():
            assert shown["curves"][key] == pytest.approx(means[key]), key
    with pytest.raises(TypeError, match="record must be"):
        venn.replay(examples, venn.Forecaster(scorer=scorer), record="no")


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda one: (one[0], "other"), "y must be one of the classes"),
        (lambda one: (one[0][:2], one[1]), "x must have 4 features"),
        (lambda one: one[0], "must give pairs"),
    ],
    ids=["label", "columns", "pair"],
)
def test_a_replay_in_blocks_says_at_which_step_it_is_refused(spoil, said):
    examples = events(*rows(2, 50, 2))
    examples[30] = spoil(examples[30])
    scorer, found = fitted(LogisticRegression()), []
    for stream in (examples, iter(examples)):
        model = venn.Forecaster(scorer=scorer)
        with pytest.raises((TypeError, ValueError), match=said) as refused:
            venn.replay(stream, model)
        found.append((str(refused.value), getattr(refused.value, "__notes__", []), checkpoint.pack(model)))
    assert model.n == 30
    assert found[0] == found[1]


def test_a_replay_in_blocks_learns_what_came_before_its_source_failed():
    class Failing(list):
        def __iter__(self):
            yield from super().__iter__()
            raise OSError("gone")

    model = venn.Forecaster(scorer=fitted(LogisticRegression()))
    with pytest.raises(OSError, match="gone"):
        venn.replay(Failing(events(*rows(2, 50, 2))), model)
    assert model.n == 50


def test_a_record_refuses_blocks_that_do_not_fit():
    model, (X, y) = venn.Forecaster(scorer=fitted(LogisticRegression())), rows(2, 30, 2)
    record, said = venn.Record(model.classes, list(model)), model.replay_many(X, y)
    for blocks, labels, wrong in (
        ({"sets": said["sets"]}, y, "names"),
        (dict(said), y[1:], "one for each of 30"),
        (dict(said), ["other", *y[1:]], "classes"),
    ):
        with pytest.raises(ValueError, match=wrong):
            record.update_many(blocks, labels)
    assert len(record) == 0
    record.update_many(said, y)
    assert len(record) == 30


def test_whoever_looks_at_a_monitor_in_a_block_changes_nothing(monkeypatch):
    """As a page does from another thread: between what is tried and what is done the evidence may settle."""
    scorer, (X, y) = fitted(LogisticRegression()), rows(2, 200, 2)
    alone, model = (venn.Forecaster(scorer=scorer) for _ in range(2))
    said, go_on = one_by_one(alone, X, y), venn.Monitor.go_on

    def seen(self, steps, *how):
        self.snapshot()
        return go_on(self, steps, *how)

    monkeypatch.setattr(venn.Monitor, "go_on", seen)
    assert same(in_blocks_of(70, model, X, y), said)
    assert checkpoint.pack(model) == checkpoint.pack(alone)


# ------------------------------------------------------------------------------------------- machines of its own

EARLY = {"transductive": 40, "first": 10, "last": 160}  # trained at 40, 56, 78, 109 and 153 examples
MADE = {}  # fits, see below


@pytest.fixture
def fits_once(monkeypatch):
    """Fits to the same examples are made once for all models of a test: they are the same, and take long."""

    def to(self, make, X, labels, *more):
        key = repr(make), X.tobytes(), labels.tobytes(), repr(more)
        if key not in MADE:
            MADE[key] = make(X, labels, *more)
        return MADE[key]

    monkeypatch.setattr(Fits, "to", to)


def own(**given):
    return venn.Forecaster(["c0", "c1"], **EARLY | given)


def test_own_machines_come_in_blocks_across_trainings(fits_once):
    """Blocks are cut where a stack or an expert of the forecast is fitted."""
    alone = assert_alike(own, *rows(2, 120, 2), sizes=(64, 1000))
    assert alone["intervals"].over


def test_own_machines_come_in_blocks_across_a_change(fits_once):
    """After it all is transductive again, but for a forest, boosted trees and a regression."""
    alone = assert_alike(own, *rows(2, N, 2, CHANGE), sizes=(64,))
    assert CHANGE < alone.monitors["sets"].verdict().anew < N


def test_after_the_hand_over_no_row_goes_alone(fits_once, monkeypatch):
    """But those just before a training that are too few for a block."""
    X, y = rows(2, N, 2)
    model, alone = own(), []
    model.learn_many(X[:45], y[:45])
    assert model["intervals"].over
    singly = InBlocks._singly  # noqa: SLF001
    monkeypatch.setattr(InBlocks, "_singly", lambda self, X, *rest: (alone.append(len(X)), singly(self, X, *rest))[1])
    model.learn_many(X[45:], y[45:])
    assert sum(alone) < 10, alone
    assert model.n == N


def test_own_machines_go_on_from_a_file_between_blocks(fits_once, tmp_path):
    X, y = rows(2, N, 2)
    alone, model = own(), own()
    one_by_one(alone, X, y)
    for i in range(0, N, 61):
        checkpoint.save(tmp_path / "model.venn", model)
        model = checkpoint.load(tmp_path / "model.venn")
        model.learn_many(X[i : i + 61], y[i : i + 61])
    assert checkpoint.pack(model) == checkpoint.pack(alone)


def refused(call, error):
    with pytest.raises(error):
        call()


def test_a_refused_block_leaves_own_machines_as_they_were(fits_once):
    X, y = rows(2, 100, 2)
    model = own()
    model.learn_many(X[:60], y[:60])
    spoiled, before = X.copy(), checkpoint.pack(model)
    spoiled[80, 1] = np.nan
    refused(lambda: model.replay_many(spoiled[60:], y[60:]), ValueError)
    refused(lambda: model.replay_many(X[60:, 1:], y[60:]), ValueError)
    refused(lambda: model.replay_many(X[60:], [*y[60:99], "other"]), ValueError)
    assert checkpoint.pack(model) == before


def test_a_training_that_fails_in_a_block_leaves_what_it_leaves_alone(fits_once, monkeypatch):
    """The example is learned and the monitors have seen it; those behind it are not learned."""

    def of(cls, X, *more):
        if len(X) == 76:
            raise ValueError("no fit")
        return fit(cls, X, *more)

    fit, (X, y) = Fit.of.__func__, rows(2, N, 2)
    monkeypatch.setattr(Fit, "of", classmethod(of))
    alone, model = own(), own()
    failed = []
    for i in range(N):
        try:
            alone.learn_one(X[i], y[i])
        except NotConverged:
            failed.append(i + 1)
    assert failed == [109]
    refused(lambda: model.replay_many(X, y), NotConverged)
    assert model.n == 109
    model.learn_many(X[109:], y[109:])
    assert checkpoint.pack(model) == checkpoint.pack(alone)


def test_sparse_rows_for_own_machines_come_in_blocks(fits_once):
    X, y = rows(2, 80, 2)
    assert_alike(own, scipy.sparse.csr_array(X), y, sizes=(50,))


def test_a_replay_of_own_machines_goes_in_blocks_after_the_hand_over(fits_once):
    examples = events(*rows(2, 200, 2))
    alone, model = own(), own()
    one, other = venn.replay(iter(examples), alone), venn.replay(examples, model)
    assert checkpoint.pack(model) == checkpoint.pack(alone)
    for name in one.names:
        assert all(map(np.array_equal, one.outcomes(name), other.outcomes(name)))


def test_a_block_that_a_training_does_not_end_is_found_out(fits_once, monkeypatch):
    alone, model, (X, y) = own(), own(), rows(2, 120, 2)
    said = one_by_one(alone, X, y)
    monkeypatch.setattr(InBlocks, "_room", 500)
    assert not same(in_blocks_of(60, model, X, y), said)
