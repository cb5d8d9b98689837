"""A fleet: each key is as if it were alone, whoever closes, kills or opens it; blocks, refusals, the shared model."""

import contextlib
import os
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from time import sleep

import numpy as np
import pytest
from conftest import refused
from sklearn.linear_model import LogisticRegression

import venn
from venn.monitors.key_evidence import KeyEvidence
from venn.online import checkpoint
from venn.online.journal import JournalError
from venn.scale.fleet_store import FILE, read_rows
from venn.scale.key_changes import verdict_of

KEYS = ["a", "ä/b:c", "..", "A", "a key with spaces"]


def make(key):
    machine = venn.LeastSquaresSVM(venn.RBF(1.0), 10, ("no", "yes"))
    return (
        venn.Conformal(machine)
        if key != "A"
        else venn.Panel(sets=venn.Conformal(machine), venn=venn.TransductiveVenn(machine))
    )


def said_at(step, rng):
    """Return the key and object of a step, full of ties, and its label."""
    x = rng.integers(3, size=2).astype(float)
    return KEYS[rng.integers(len(KEYS))], x, "yes" if x.sum() + rng.integers(2) > 2 else "no"


def happenings(n, seed=0):
    """Return n calls: questions, answers that come late, in another order, or never, examples, questions given up."""
    rng, waiting, found = np.random.default_rng(seed), [], []
    for i in range(n):
        key, x, y = said_at(i, rng)
        what = rng.integers(5)
        if what < 2 and waiting:
            key, id, y = waiting.pop(rng.integers(len(waiting)))
            found.append(("answer", key, id, y) if rng.random() < 0.9 else ("expire", key, id))
        elif what < 4:
            found.append(("ask", key, x, i if i % 2 else f"q{i}"))
            waiting.append((key, found[-1][3], y))
        else:
            found.append(("learn_one", key, x, y))
    return found


def happen(fleet, calls):
    for name, *given in calls:
        getattr(fleet, name)(*given)


def die(fleet):
    """Close the file as the death of a process does: nothing more is written."""
    fleet._store.close()
    fleet._closed = True


def state_of(fleet):
    """Return, by key, all that is known of it but times, as bytes."""
    found = {}
    for key in fleet:
        model = fleet.model(key)
        run = fleet._run(key)[1]
        waiting = [(id, one.number, one.step, one.x.tolist()) for id, one in run.waiting.items()]
        row = fleet._rows[fleet._numbers[key]][:-1]
        found[key] = (checkpoint.pack([model, run.evidence]), waiting, row)
    return found


@pytest.fixture(scope="module")
def expected():
    fleet = venn.Fleet(make)
    happen(fleet, happenings(160))
    return state_of(fleet)


@pytest.mark.parametrize("kept", ["memory", "folder"])
def test_each_key_is_as_if_it_were_alone(kept, tmp_path):
    """Two keys in memory at most, all others closed, equal a model and its evidence by themselves, after every step."""
    fleet = venn.Fleet(make, None if kept == "memory" else tmp_path, open=2, every=7)
    alone, right, rng = {}, {}, np.random.default_rng(3)
    for step in range(60):
        key, x, y = said_at(step, rng)
        if key not in alone:
            model = make(key)
            alone[key] = model, KeyEvidence(("no", "yes"), seed=fleet._fresh(key).evidence.seed)
        model, evidence = alone[key]
        said, mine = model.predict_one(x), fleet.predict_one(key, x)
        sets, my_sets = (said["sets"], mine["sets"]) if key == "A" else (said, mine)
        assert my_sets.p_values.tobytes() == sets.p_values.tobytes()
        right.setdefault(key, []).append(sets.label == y)
        evidence.update(sets, y)
        model.learn_one(x, y)
        fleet.learn_one(key, x, y)
        row = fleet._rows[fleet._numbers[key]]
        assert (row.log_e, row.log_p, row.since, row.kind) == tuple(evidence.standing)
    assert len(fleet._open) == 2
    for key, (model, evidence) in alone.items():
        assert checkpoint.pack([fleet.model(key), fleet._run(key)[1].evidence]) == checkpoint.pack([model, evidence])
    shown = fleet.frame()
    assert shown["asked"].tolist() == shown["answered"].tolist() == [len(right[key]) for key in fleet]
    assert shown["accuracy"].tolist() == [np.mean(right[key]) for key in fleet]
    fleet.close()


@pytest.mark.parametrize("seed", range(3))
def test_closed_and_made_again_at_any_moment(seed, tmp_path, expected):
    """Calls in several lives, some in a transaction, equal one life to the bit."""
    calls, rng, done = happenings(160), np.random.default_rng(seed), 0
    while done < len(calls):
        more = int(rng.integers(1, 60))
        with venn.Fleet(make, tmp_path, open=int(rng.integers(1, 6)), every=int(rng.integers(1, 40))) as fleet:
            with fleet.transaction() if rng.random() < 0.5 else contextlib.nullcontext():
                happen(fleet, calls[done : done + more])
            if rng.random() < 0.5:
                die(fleet)
        done += more
    with venn.Fleet(make, tmp_path) as fleet:
        assert state_of(fleet) == expected
        assert fleet.verdict() == verdict_of(read_rows(tmp_path))


def test_a_transaction_that_fails_counts_for_nothing(tmp_path):
    calls = happenings(80)
    with venn.Fleet(make, tmp_path, open=2, every=5) as fleet:
        happen(fleet, calls[:40])
        before = state_of(fleet), list(fleet)
        with contextlib.suppress(KeyError), fleet.transaction():
            happen(fleet, calls[40:])
            fleet.learn_one("new", [0.0, 1.0], "no")
            raise KeyError
        assert (state_of(fleet), list(fleet)) == before
        happen(fleet, calls[40:])
    whole = venn.Fleet(make)
    happen(whole, calls)
    with venn.Fleet(make, tmp_path) as fleet:
        assert state_of(fleet) == state_of(whole)


def test_what_another_thread_keeps_is_no_part_of_a_transaction_that_fails(tmp_path):
    with venn.Fleet(make, tmp_path) as fleet:
        other = threading.Thread(target=fleet.reach, args=("it", 7))
        with contextlib.suppress(KeyError), fleet.transaction():
            other.start()
            other.join(0.3)
            raise KeyError("stop")
        other.join()
        assert fleet.position("it") == 7


def test_a_block_is_its_rows(tmp_path):
    """Rows of many keys at once, with ties: predictions, learning, names and what is kept."""
    rng = np.random.default_rng(5)
    keys, X, y = (list(each) for each in zip(*[said_at(i, rng) for i in range(80)], strict=True))
    y[40:] = ["no"] * 40  # a change
    one, block = venn.Fleet(make), venn.Fleet(make, tmp_path, open=2)
    for i in range(80):
        one.learn_one(keys[i], X[i], y[i])
    for part in (slice(0, 1), slice(1, 40), slice(40, 80)):
        block.learn_many(keys[part], np.array(X[part]), y[part])
    assert {key: one[:2] for key, one in state_of(one).items()} == {k: v[:2] for k, v in state_of(block).items()}
    said = block.predict_many(keys, np.array(X))
    for key, x, found in zip(keys, X, said, strict=True):
        expected = one.predict_one(key, x)
        pair = (found["sets"], expected["sets"]) if key == "A" else (found, expected)
        assert pair[0].p_values.tobytes() == pair[1].p_values.tobytes()
    before = state_of(block)
    with pytest.raises(ValueError, match="y must be one of"):
        block.learn_many(["new", "a"], [[0.0, 1.0]] * 2, ["no", "maybe"])
    assert state_of(block) == before
    assert "new" not in block
    block.close()


def test_a_change_is_named_told_and_stays(tmp_path):
    def make(key):
        return venn.Conformal(venn.LeastSquaresSVM(venn.Linear(), 1, ("no", "yes")))

    told, rng = [], np.random.default_rng(0)
    with venn.Fleet(make, tmp_path, on_alarm=told.append) as fleet:
        named = []
        for step in range(110):
            for key in ("a", "b", "c"):
                x = rng.normal(size=2)
                label = (x[0] > 0) != (key == "b" and step >= 50)
                named += fleet.learn_one(key, x, "yes" if label else "no")
        assert [one.key for one in named] == ["b"]
        assert [one.watchers for one in told] == [("b",)]
        (change,) = fleet.verdict().changed
        assert 40 <= change.since <= 60
        assert change.kind == "how labels fit their objects"
        assert str(fleet.verdict()).startswith("1 of 3 keys changed: b since about")
        assert fleet.verdict(ever=0.01).names == ("b",)
        columns = fleet.frame()
        assert columns["key"].tolist() == ["a", "b", "c"]
        assert (columns["answered"] == 110).all()
        assert columns["named"].tolist() == [0, named[0].answered, 0]
        assert fleet.frame("pandas").shape == (3, len(columns))
    with venn.Fleet(make, tmp_path, on_alarm=told.append) as fleet:
        fleet.learn_one("b", [0.0, 0.0], "no")
        assert len(told) == 1
        assert fleet.verdict().names == ("b",)


def test_young_keys_begin_with_the_shared_model(tmp_path):
    """It learns the rows of all keys in their order, over restarts too, and speaks first where a key knows nothing."""
    rng, more = np.random.default_rng(6), {"every": 12}
    X = rng.integers(4, size=(30, 2)).astype(float)
    y = ["yes" if x.sum() > 3 else "no" for x in X]
    keys = [f"key {i % 3}" for i in range(30)]

    def young(key):
        return venn.Forecaster(("no", "yes"), first=0)

    def shared():
        return venn.predictors.ExpertMixture([venn.predictors.Refits(("no", "yes"), first=10)])

    whole = venn.Fleet(young, prior=shared(), **more)
    for at in range(0, 30, 10):
        with venn.Fleet(young, tmp_path, prior=shared(), open=2, **more) as fleet:
            for key, x, label in zip(keys[at : at + 10], X[at:], y[at:], strict=False):
                assert np.array_equal(whole.predict_one(key, x).proba, fleet.predict_one(key, x).proba)
                whole.learn_one(key, x, label)
                fleet.ask(key, x)
                fleet.answer(key, fleet.pending(key)[0], label)
            if at == 10:
                die(fleet)
    with venn.Fleet(young, tmp_path, prior=shared(), **more) as fleet:
        assert {key: one[0] for key, one in state_of(fleet).items()} == {k: v[0] for k, v in state_of(whole).items()}
        for x, label in ([0.0, 1.0], "no"), ([3.0, 2.0], "yes"):
            assert fleet.predict_one("new", x)[label] > 0.75
            assert venn.Fleet(young).predict_one("new", x)[label] == pytest.approx(0.5)
        before = checkpoint.pack(fleet._prior)
        with contextlib.suppress(KeyError), fleet.transaction():
            fleet.learn_many(["new", "key 1"], X[:2], y[:2])
            raise KeyError
        assert checkpoint.pack(fleet._prior) == before
    other = venn.predictors.ExpertMixture([venn.predictors.Refits(("no", "yes"), first=11)])
    with pytest.raises(JournalError, match="prior must be that of the folder"):
        venn.Fleet(young, tmp_path, prior=other)
    with pytest.raises(TypeError, match="make must return a Forecaster"):
        venn.Fleet(make, prior=shared()).learn_one("a", [0.0, 1.0], "no")


def test_keys_that_calibrate_a_given_classifier(tmp_path):
    """It is in no file: a key that is opened again is given what `make` gives, and goes on to the bit."""
    classifier = LogisticRegression().fit([[0.0], [1.0], [0.2], [0.9]], ["no", "yes", "no", "yes"])

    def given(key):
        return venn.Forecaster(scorer=classifier)

    whole, rng = venn.Fleet(given), np.random.default_rng(8)
    with venn.Fleet(given, tmp_path, open=1) as fleet:
        for x in rng.random((12, 1)):
            for key in ("a", "b"):
                assert np.array_equal(fleet.predict_one(key, x).proba, whole.predict_one(key, x).proba)
                fleet.learn_one(key, x, "yes" if x > 0.5 else "no")
                whole.learn_one(key, x, "yes" if x > 0.5 else "no")
        assert state_of(fleet) == state_of(whole)


def test_what_is_said_now_is_by_the_shared_model_of_now_whatever_was_asked_before():
    said = []
    for looks in (False, True):
        fleet = venn.Fleet(lambda key: venn.Forecaster(["no", "yes"]), prior=venn.Forecaster(["no", "yes"]))
        for i in range(5):
            fleet.learn_one("a", [i % 3.0], "no")
        if looks:
            fleet.predict_one("a", [1.0])
        for _ in range(12):
            fleet.learn_one("b", [1.0], "yes")
        said.append(fleet.ask("a", [1.0])["forecast"].proba.tolist())
    assert said[0] == said[1]


def test_a_shared_model_of_numbers(tmp_path):
    rng = np.random.default_rng(7)
    prior = venn.predictors.DistributionMixture([venn.predictors.NumberRefits(first=20)])
    fleet = venn.Fleet(lambda key: venn.Forecaster(float, first=0), tmp_path, prior=prior)
    for step, x in enumerate(rng.normal(size=(40, 2))):
        fleet.learn_one(f"key {step % 4}", x, 10 + x[0])
    assert 8 < fleet.predict_one("new", [0.0, 0.0]).median < 12
    assert fleet.frame()["accuracy"].tolist() == pytest.approx([np.nan] * 4, nan_ok=True)
    states = state_of(fleet)
    die(fleet)
    with venn.Fleet(lambda key: venn.Forecaster(float, first=0), tmp_path, prior=prior) as fleet:
        assert state_of(fleet) == states


def test_who_was_not_told_as_a_process_died_is_told_later(tmp_path, monkeypatch):
    told = []
    fleet = venn.Fleet(make, tmp_path, rate=0.5)
    with monkeypatch.context() as patch:
        patch.setattr(fleet, "_tell", lambda: None)
        for y in [*["no"] * 40, *["yes"] * 30]:
            fleet.learn_one("a", [0.0, 1.0], y)
    assert fleet.frame()["named"][0]
    die(fleet)
    for _ in range(2):
        venn.Fleet(make, tmp_path, rate=0.5, on_alarm=told.append).close()
        assert [one.watchers for one in told] == [("a",)]


@pytest.mark.parametrize("kept", ["memory", "folder"])
def test_refusals_change_nothing(kept, tmp_path):
    fleet = venn.Fleet(make, None if kept == "memory" else tmp_path)
    fleet.ask("a", [0.0, 1.0], "q")
    fleet.learn_one("a", [1.0, 1.0], "yes")
    before = state_of(fleet)
    refused = (
        (lambda: fleet.ask("a", [0.0]), ValueError, "2"),
        (lambda: fleet.ask("new", ["x"]), TypeError, "x must be"),
        (lambda: fleet.ask("a", [0.0, np.nan]), ValueError, "finite"),
        (lambda: fleet.ask("a", [0.0, 1.0], "q"), ValueError, "id must be a new one"),
        (lambda: fleet.ask("a", [0.0, 1.0], 1.5), TypeError, "id must be"),
        (lambda: fleet.ask(7, [0.0, 1.0]), TypeError, "key must be text"),
        (lambda: fleet.ask("", [0.0, 1.0]), ValueError, "key must have"),
        (lambda: fleet.ask("\ud800", [0.0, 1.0]), ValueError, "UTF-8"),
        (lambda: fleet.ask("a\x1b[2J", [0.0, 1.0]), ValueError, "key must have no control characters"),
        (lambda: fleet.ask("a" * 201, [0.0, 1.0]), ValueError, "key must have 1 to 200 letters, got 201"),
        (lambda: fleet.answer("a", "p", "no"), ValueError, "id must be that of a question"),
        (lambda: fleet.answer("b", "q", "no"), ValueError, "key must be one that was asked about"),
        (lambda: fleet.answer("a", "q", "maybe"), ValueError, "y must be one of"),
        (lambda: fleet.learn_one("b", [0.0, 1.0], "maybe"), ValueError, "y must be one of"),
        (lambda: fleet.expire("a", "p"), ValueError, "id must be"),
        (lambda: fleet.learn_many(["a"], [[0.0, 1.0]] * 2, ["no"] * 2), ValueError, "keys must be one for each"),
        (lambda: fleet.learn_many(["a"] * 2, [[0.0, 1.0]] * 2, ["no"]), ValueError, "y must hold a label"),
        (lambda: fleet.verdict(rate=2.0), ValueError, "rate must"),
        (lambda: fleet.verdict(rate=0.1, ever=0.1), TypeError, "must not both be given"),
        (lambda: fleet.frame("excel"), ValueError, "backend must be one of"),
        (lambda: fleet.model("z"), KeyError, "no 'z'"),
    )
    for call, error, words in refused:
        with pytest.raises(error, match=words):
            call()
    with fleet.transaction():  # in one, too, where others count
        for call, error, words in refused:
            with pytest.raises(error, match=words):
                call()
    assert state_of(fleet) == before
    assert list(fleet) == ["a"]
    assert fleet.pending("a") == ("q",)
    fleet.close()


test_bad_parameters = refused(lambda given: venn.Fleet(**({"make": make} | given)), [
    ({"make": 3}, TypeError, "make must be a function"), ({"open": 0}, ValueError, "open must be"),
    ({"every": 0}, ValueError, "every must be"), ({"rate": 1.0}, ValueError, "rate must"),
    ({"most": 0}, ValueError, "most must be"), ({"prior": 3}, TypeError, "prior must be"),
    ({"folder": 3}, TypeError, "folder must be"),
])  # fmt: skip


def test_a_folder_belongs_to_one_process_and_to_one_make(tmp_path):
    import sqlite3

    with venn.Fleet(make, tmp_path) as fleet:
        fleet.learn_one("a", [0.0, 1.0], "no")
        with pytest.raises(JournalError, match="one process"):
            venn.Fleet(make, tmp_path)
        child = os.fork()
        if not child:
            with contextlib.suppress(JournalError):
                fleet.learn_one("a", [0.0, 1.0], "no")
                os._exit(1)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
    calls = (
        lambda: fleet.learn_one("a", [0.0, 1.0], "no"), lambda: fleet.position("source"), lambda: fleet.ended("a", 0),
        lambda: fleet.pending("a"), lambda: fleet.model("a"),
    )  # fmt: skip
    for call in calls:
        with pytest.raises(JournalError, match="this fleet is closed: make it again to go on"):
            call()
    other = venn.Conformal(venn.LeastSquaresSVM(venn.RBF(2.0), 10, ("no", "yes")))
    with venn.Fleet(lambda _: other, tmp_path) as fleet, pytest.raises(JournalError, match="where make gives"):
        fleet.model("a")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / FILE).write_bytes(b"this is no database" * 100)
    (tmp_path / "strange").mkdir()
    with contextlib.closing(sqlite3.connect(tmp_path / "strange" / FILE)) as db, db:
        db.execute("CREATE TABLE about (name, value)")
    for folder, said in (("other", "cannot be opened as a fleet"), ("strange", "must be a venn fleet of version")):
        for _ in range(2):  # what is refused is let go
            with pytest.raises(JournalError, match=said):
                venn.Fleet(make, tmp_path / folder)
    with pytest.raises(JournalError, match="must be the folder of a fleet"):
        read_rows(tmp_path / "none")


def test_a_changed_label_is_found(tmp_path):
    import sqlite3

    with venn.Fleet(make, tmp_path) as fleet:
        fleet.learn_one("a", [0.0, 1.0], "no")
        die(fleet)
    with contextlib.closing(sqlite3.connect(tmp_path / FILE)) as db, db:
        db.execute("UPDATE log SET y = 1")
    with venn.Fleet(make, tmp_path) as fleet, pytest.raises(JournalError, match="another checksum"):
        fleet.model("a")


def test_a_message_that_is_repeated_is_refused_and_not_learned_again(tmp_path):
    """Whenever it comes again: at once, when the log is cleared, when the key or the fleet was closed."""
    fleet = venn.Fleet(make, tmp_path, open=1, every=2)
    for id in (7, "7", "b"):
        fleet.ask("A", [0.1, 0.2], id)
    fleet.answer("A", 7, "no")
    fleet.answer("A", "7", "yes")
    fleet.expire("A", "b")
    for again in range(3):
        before = state_of(fleet)
        for id, how in ((7, "7, which is answered"), ("7", "'7', which is answered"), ("b", "'b', which was given up")):
            with pytest.raises(ValueError, match=f"id must be a new one, got {how}"):
                fleet.ask("A", [0.1, 0.2], id)
            with pytest.raises(ValueError, match=f"that waits, got {how}"):
                fleet.answer("A", id, "no")
            assert fleet.ended("A", id) == ("given up" if id == "b" else "answered")
            assert fleet.ended("Z", id) is None
        assert state_of(fleet) == before
        assert fleet.ask("B", [0.1, 0.2], 7 + again)  # of another key it is another question
        if again == 1:
            die(fleet)
            fleet = venn.Fleet(make, tmp_path, open=1, every=2)
    fleet.close()


def test_closing_while_others_learn_loses_nothing_that_was_acknowledged(tmp_path):
    fleet, learned, refused = venn.Fleet(make, tmp_path), [], []

    def learn(key):
        try:
            while True:
                fleet.learn_one(key, [0.0, 1.0], "no")
                learned.append(key)
        except JournalError as error:
            refused.append(str(error))

    with ThreadPoolExecutor(3) as pool:
        for key in "abc":
            pool.submit(learn, key)
        while len(learned) < 20:
            sleep(0.001)
        fleet.close()
    assert refused == ["this fleet is closed: make it again to go on"] * 3
    with venn.Fleet(make, tmp_path) as again:
        assert {key: again.model(key).machine.n for key in again} == Counter(learned)


def test_a_fleet_is_not_closed_within_its_transaction(tmp_path):
    """Its database was closed, and the end of the transaction found "database table is locked"."""
    with venn.Fleet(make, tmp_path) as fleet:
        with fleet.transaction():
            fleet.learn_one("a", [0.0, 1.0], "no")
            with pytest.raises(JournalError, match="closed after its transaction"):
                fleet.close()
        assert fleet.model("a").machine.n == 1
