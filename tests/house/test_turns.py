"""Threads that share a model take turns: each answer is one that a single thread may get, whatever others do."""

import copy
import gc
import inspect
import os
import pickle
import sys
import threading
import time
import weakref
from contextlib import contextmanager
from functools import wraps

import numpy as np
import pytest
from conftest import public
from test_contract import CLASSES, MACHINES, PREDICTORS, squares
from test_numbers_contract import SUBJECTS

import venn
from venn import turns
from venn.description import same_content
from venn.online import checkpoint
from venn.predictors import Predictor
from venn.turns import TakesTurns, asks, one_turn, turn_of

COUNT = 4
RNG = np.random.default_rng(0)
N = 16
X = RNG.normal(size=(N, 2)).round(2)
Y = [CLASSES[k] for k in RNG.integers(0, 3, N).tolist()]
ASKED = RNG.normal(size=(5, 2)).round(2)


@pytest.fixture(autouse=True)
def _hurried():
    """Let threads change places as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def together(*works):
    """Run functions on threads that start at once; return what each returns, or raise what one has raised."""
    meet, results, errors = threading.Barrier(len(works), timeout=60), {}, []

    def run(i):
        meet.wait()
        try:
            results[i] = works[i]()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(i,), daemon=True) for i in range(len(works))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    if errors:
        raise errors[0]
    return [results[i] for i in range(len(works))]


def in_any_order(ask, seed):
    """Return what `ask` says of each object, asked in an order of its own, twice."""
    order = np.random.default_rng(seed).permutation(np.tile(np.arange(len(ASKED)), 2)).tolist()
    return dict([(i, ask(ASKED[i])) for i in order])


def taught(model, examples):
    for x, y in examples:
        model.learn_one(x, y)
    return model


def asking(model):
    if not hasattr(model, "predict_one"):

        def read(x):
            with turn_of(model):
                answer = model.hypotheses(x)
                return [table.scores(j) for table, codes in answer.tables(True) for j in codes], model.scores(x)

        return read
    return model.predict_one


MODELS = PREDICTORS | MACHINES | {name: make for name, make in SUBJECTS.items() if "by ranges" not in name}
MODELS["handed over"] = lambda: venn.Forecaster(CLASSES, first=0, transductive=12)


def examples_for(model):
    if isinstance(getattr(model, "space", None), venn.labels.Real):
        return [(x, float(x[0])) for x in X]
    return list(zip(X, [model.classes[CLASSES.index(y) % len(model.classes)] for y in Y], strict=True))


@pytest.mark.parametrize("name", MODELS)
def test_threads_get_the_answers_of_one(name):
    model = MODELS[name]()
    taught(model, examples_for(model))
    alone = in_any_order(asking(model), 0)
    for told in together(*[lambda k=k: in_any_order(asking(model), k) for k in range(COUNT)]):
        assert all(same_content(told[i], alone[i]) for i in alone)


@pytest.mark.parametrize("name", MODELS)
def test_those_who_ask_beside_teachers_get_the_answers_of_some_state(name):
    model, order, told = MODELS[name](), [], []
    examples = examples_for(model)
    taught(model, examples[:10])
    ask = asking(model)

    def teach(part):
        for x, y in part:
            with turn_of(model):  # to know the order
                model.learn_one(x, y)
                order.append((x, y))

    def question():
        told.extend((i, ask(ASKED[i])) for _ in range(2) for i in (0, 1))

    together(lambda: teach(examples[10::2]), lambda: teach(examples[11::2]), question, question)
    twin = taught(MODELS[name](), examples[:10])
    possible = {i: [asking(twin)(ASKED[i])] for i in (0, 1)}
    for x, y in order:
        twin.learn_one(x, y)
        for i, answers in possible.items():
            answers.append(asking(twin)(ASKED[i]))
    assert len(order) == N - 10
    assert getattr(model, "n", N) == getattr(twin, "n", N)
    assert all(any(same_content(answer, one) for one in possible[i]) for i, answer in told)
    assert all(same_content(ask(ASKED[i]), possible[i][-1]) for i in (0, 1))


def test_predictors_of_one_bank_wait_for_each_other():
    scale = venn.Scale(5, teach=True)
    scaled = venn.machines.Bank([venn.RBF(0.5), venn.Linear()], CLASSES, (0.5, 5.0), scale=scale)
    members = [venn.Conformal(one) for one in scaled.members]
    members += [venn.TransductiveVennAbers(venn.machines.Mixture(scaled))]
    for x, y in zip(X, Y, strict=True):
        scaled.learn_one(x, y)
    alone = [in_any_order(one.predict_one, 0) for one in members]
    told = together(*[lambda one=one, k=k: in_any_order(one.predict_one, k) for k, one in enumerate(members)])
    assert all(same_content(told[k][i], alone[k][i]) for k in range(len(members)) for i in alone[k])


@pytest.mark.parametrize("again", range(8))
def test_a_panel_and_its_parts_have_one_turn_from_its_first_use_on(again):
    """Parts that were asked by themselves before, and are meanwhile, come to the turn of the panel."""
    parts = {"a": venn.Conformal(squares()), "b": venn.TransductiveVenn(squares()), "c": venn.Conformal(squares())}
    for one in parts.values():
        taught(one, zip(X, Y, strict=True))
    alone = {name: in_any_order(one.predict_one, 0) for name, one in parts.items()}
    panel = venn.Panel(**parts)
    *told, every = together(
        *[lambda one=one: in_any_order(one.predict_one, again) for one in parts.values()],
        lambda: in_any_order(panel.predict_one, again),
    )
    for name, answers in zip(parts, told, strict=True):
        assert all(same_content(answers[i], alone[name][i]) for i in answers)
        assert all(same_content(every[i][name], alone[name][i]) for i in answers)
    assert one_turn(parts.values()) is one_turn([panel, *panel.machines])


def test_panels_that_share_machines_crosswise_do_not_block_each_other():
    first, second = venn.Conformal(squares()), venn.Conformal(squares())
    panels = [venn.Panel(a=first, b=second), venn.Panel(a=second, b=first)]
    for x, y in zip(X, Y, strict=True):
        panels[0].learn_one(x, y)
    told = together(*[lambda one=one: in_any_order(one.predict_one, 0) for one in panels])
    assert all(same_content(told[0][i]["a"], told[1][i]["b"]) for i in told[0])


# ------------------------------------------------------------------- monitors, loops, adapters


SAID = venn.PredictionSet(np.array([0.02, 0.3, 0.9]), CLASSES)


@pytest.mark.parametrize(
    ("make", "step"), [(lambda: venn.Monitor(CLASSES), (SAID, "c")), (venn.monitors.Drift, ([0.5, 0.25],))]
)
def test_no_step_of_a_monitor_is_lost(make, step):
    shared, alone = make(), make()
    together(*[lambda: [shared.update(*step) for _ in range(25)]] * COUNT)
    for _ in range(25 * COUNT):
        alone.update(*step)
    assert shared.n == 25 * COUNT
    assert same_content(shared.state, alone.state)


def test_a_run_with_a_journal_loses_nothing(tmp_path):
    journal = tmp_path / "run.db"
    with venn.Online(venn.Forecaster(CLASSES), journal=journal, patience=1000) as online:

        def work(k):
            for i in range(k, N, COUNT):
                with online.transaction() if k % 2 else turn_of():
                    online.ask(X[i], i)
                    online.answer(i, Y[i])

        together(*[lambda k=k: work(k) for k in range(COUNT)])
        assert (online.asked, online.answered, online.pending) == (N, N, ())
        after = online.panel.predict_one(ASKED[0])
        assert len(online.record()) == N
    venn.online.verify(journal)
    with venn.Online(venn.Forecaster(CLASSES), journal=journal, patience=1000) as again:
        assert same_content(again.panel.predict_one(ASKED[0]), after)


def test_nobody_comes_into_the_transaction_of_another():
    online, seen = venn.Online(venn.Conformal(squares())), []

    def long():
        with online.transaction():
            began.set()
            time.sleep(0.02)
            seen.append(online.asked)

    def other():
        assert began.wait(60)
        online.ask(X[0])

    began = threading.Event()
    together(long, other)
    assert seen == [0]


def grown(classes):
    return venn.Conformal(venn.LeastSquaresSVM(venn.RBF(0.5), 1.0, classes))


@pytest.mark.parametrize("own", [lambda: venn.Conformal(squares()), lambda: grown])
def test_models_of_river_are_shared(own):
    pytest.importorskip("river")
    rows = [dict(enumerate(x)) for x in X]
    model, other = venn.RiverClassifier(own()), venn.RiverClassifier(own())
    for row, y in zip(rows, Y, strict=True):
        model.learn_one(row, y)
    alone = [model.prediction_one(row) for row in rows]
    for told in together(*[lambda: [model.prediction_one(row) for row in rows]] * COUNT):
        assert same_content(told, alone)
    together(*[lambda k=k: [other.learn_one(rows[i], Y[i]) for i in range(k, N, COUNT)] for k in range(COUNT)])
    assert other._model.machine.n == N


def test_parts_merge_while_they_are_used():
    from sklearn.svm import LinearSVC

    scorer = venn.FrozenScorer(LinearSVC().fit(X, Y))
    one, other = (taught(venn.InductiveVennAbers(scorer), zip(X, Y, strict=True)) for _ in range(2))
    first, second = together(lambda: one.merge(other), lambda: other.merge(one))
    assert first.n == second.n == 2 * N


# --------------------------------------------------------------------------------- users' own


class Scratch(Predictor):
    """Writes something down, lets others go on, and reads it again."""

    classes = ("no", "yes")

    def __init__(self):
        self.n = 0

    def predict_one(self, x):
        self.prepared = x
        time.sleep(0.0005)
        return self.prepared

    def commit(self, x, y, prepared=None):
        n = self.n
        time.sleep(0.0005)
        self.n = n + 1


class Around(Predictor):
    """Holds another one, without saying so."""

    classes = ("no", "yes")

    def __init__(self, inside):
        self.inside = inside

    def predict_one(self, x):
        return self.inside.predict_one(x)

    def prepare(self, x, y):
        self.inside.learn_one(x, y)


def test_a_users_predictor_needs_nothing():
    inside = Scratch()
    models = [inside, Around(inside), venn.Panel(a=inside)]
    told = together(*[lambda one=one, k=k: [one.predict_one(k) for _ in range(5)] for k, one in enumerate(models)])
    assert told == [[0] * 5, [1] * 5, [{"a": 2}] * 5]
    together(*[lambda one=one: taught(one, [([0.0], "no")] * 5) for one in models])
    assert inside.n == 15
    assert inside.predict_one(x=3) == 3
    assert str(inspect.signature(Scratch.predict_one)) == "(self, x)"
    assert str(inspect.signature(Scratch.commit)) == "(self, x, y, prepared=None)"


def test_a_call_keeps_its_parameters():
    class Odd(TakesTurns):
        @asks
        def update(self, a, /, b=2, *c, d, e=5, **f):
            return a, b, c, d, e, f

        @wraps(update)
        def update_many(*args, **named):
            return type(args[0]), *args[1:], named

    assert Odd().update_many(1, d=4) == (Odd, 1, {"d": 4})
    assert Odd().update(1, d=4) == (1, 2, (), 4, 5, {})
    assert Odd().update(1, 3, 4, d=0, e=6, g=7) == (1, 3, (4,), 0, 6, {"g": 7})
    assert str(inspect.signature(Odd.update)) == "(self, a, /, b=2, *c, d, e=5, **f)"


def test_parameters_may_have_any_names():
    class Named(Predictor):
        classes = ("no", "yes")

        def predict_one(self, call_, turn_=1, of_=2, thing=3, turn=4, call=5, **args):
            return call_, turn_, of_, thing, turn, call, args

    assert Named().predict_one(0, of_=7, args=8, named=9) == (0, 1, 7, 3, 4, 5, {"args": 8, "named": 9})
    assert Named().predict_one(call_=0) == (0, 1, 2, 3, 4, 5, {})


SHARED = (
    {
        name: kind
        for name, kind in public().items()
        if inspect.isclass(kind) and hasattr(kind, "predict_one" if hasattr(kind, "predict_one") else "hypotheses")
    }
    | {"Online": venn.Online, "Monitor": venn.Monitor, "Drift": venn.monitors.Drift}
    | {"ClassDrift": venn.monitors.ClassDrift}
)


PUBLIC = (
    "ask", "bag", "close", "coefficients", "leave_one_out_bag", "duals", "expire", "hypotheses", "learn_many",
    "learn_one", "predict_many", "predict_one", "record", "replay_many", "residual", "restart", "restore", "score_many",
    "scores", "snapshot", "state", "under", "unlearn_one", "update", "update_many", "verdict",
)  # fmt: skip


@pytest.mark.parametrize("name", SHARED)
def test_every_public_model_takes_turns(name):
    """All that has the calls of a model's contract: a class that comes later, too."""
    kind = SHARED[name]
    assert issubclass(kind, TakesTurns)
    for call in PUBLIC:
        found = inspect.getattr_static(kind, call, None)
        function = found.fget if isinstance(found, property) else found
        if inspect.isfunction(function) and function.__name__ != "<lambda>":  # which asks what takes turns
            assert function.__code__.co_filename == turns.__file__, call


# --------------------------------------------------------------------------- no part of a state


@contextmanager
def held_by_another(model):
    """Let another thread hold the turn of a model."""
    holding, go_on = threading.Event(), threading.Event()

    def hold():
        with turn_of(model):
            holding.set()
            go_on.wait(60)

    thread = threading.Thread(target=hold, daemon=True)
    thread.start()
    assert holding.wait(60)
    try:
        yield
    finally:
        go_on.set()
        thread.join(60)


@pytest.mark.parametrize("name", ["figures", "begin_anew", "snapshot", "__getstate__"])
def test_what_settles_the_evidence_of_a_monitor_waits_for_its_steps(name):
    monitor = venn.Monitor(CLASSES)
    thread = threading.Thread(target=getattr(monitor, name), daemon=True)
    with held_by_another(monitor):
        thread.start()
        thread.join(0.05)
        assert thread.is_alive()
    thread.join(60)
    assert not thread.is_alive()


@pytest.mark.parametrize("name", ["Panel", "ScoreCalibrator", "Adaptive", "OneVsAllSVM", "Member", "own"])
def test_a_copy_has_a_turn_of_its_own(name):
    model = Around(Scratch()) if name == "own" else MODELS[name]()
    ask = asking(model)
    ask(X[0])
    copies = [copy.deepcopy(model), pickle.loads(pickle.dumps(model))]
    with held_by_another(model):
        assert all(together(*[lambda one=one: asking(one)(X[0]) is not None for one in copies]))
    assert "_turn" in vars(model)
    assert "_turn" not in (TakesTurns.__getstate__(model) or {})
    assert copy.deepcopy(model._turn) is not model._turn


def test_a_file_is_written_between_two_steps(tmp_path):
    model = taught(venn.Conformal(squares()), zip(X, Y, strict=True))
    path = tmp_path / "model.npz"
    with held_by_another(model):
        thread = threading.Thread(target=venn.save, args=(path, model), daemon=True)
        thread.start()
        thread.join(0.05)
        assert not path.exists()
    thread.join(60)
    assert same_content(venn.load(path).predict_one(X[0]), model.predict_one(X[0]))


def test_a_model_and_what_it_holds_end_with_their_last_user():
    model = taught(PREDICTORS["Panel"](), zip(X, Y, strict=True))
    model.predict_one(X[0])
    ends = [weakref.ref(model), weakref.ref(model._turn)]
    del model
    gc.collect()
    assert [end() for end in ends] == [None, None]


# ----------------------------------------------------------------------------------------- fork


class Gate(Scratch):
    """Stays inside where it is told to, until it may go on."""

    def __init__(self):
        self.inside, self.go_on = threading.Event(), threading.Event()

    def predict_one(self, x):
        if x == "stay":
            self.inside.set()
            self.go_on.wait(60)
        return venn.Forecast(np.array([0.5, 0.5]), self.classes)

    def commit(self, x, y, prepared=None):
        self.predict_one(x)


def said(call):
    try:
        return type(call()).__name__
    except RuntimeError as error:
        return f"{type(error).__name__}: {error}"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a Unix")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("work", ["ask", "teach", "nothing"])
def test_a_forked_process_waits_for_no_thread_that_it_lacks(work):
    """It may ask; what was half taught is refused, and a run as ever; the first process goes on."""
    gate, sets = Gate(), venn.Conformal(venn.LeastSquaresSVM(venn.RBF(0.5), 1.0, Gate.classes))
    online = venn.Online(venn.Panel(gate=gate, sets=sets))
    calls = [lambda: sets.predict_one([0.0]), lambda: online.ask([0.0])]
    assert [said(call) for call in calls] == ["PredictionSet", "dict"]
    does = {
        "ask": lambda: gate.predict_one("stay"),
        "teach": lambda: gate.learn_one("stay", "no"),
        "nothing": gate.inside.set,
    }
    thread = threading.Thread(target=does[work], daemon=True)
    thread.start()
    assert gate.inside.wait(60)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(write, "\n".join(map(said, calls)).encode())
        finally:
            os._exit(0)
    os.close(write)
    with open(read) as pipe:
        in_child = pipe.read().split("\n")
    os.waitpid(child, 0)
    gate.go_on.set()
    thread.join(60)
    lost = "RuntimeError: this model is half changed"
    wanted = [lost, lost] if work == "teach" else ["PredictionSet", "JournalError: a run must be asked by the process"]
    assert all(told.startswith(start) for told, start in zip(in_child, wanted, strict=True)), in_child
    assert [said(call) for call in calls] == ["PredictionSet", "dict"]


COPIES = {"deepcopy": copy.deepcopy, "pickle": lambda model: pickle.loads(pickle.dumps(model)), "copy": copy.copy}


@pytest.mark.parametrize("how", COPIES)
def test_a_copy_is_made_between_two_steps(how, monkeypatch):
    """Whoever teaches while the kernel of the first machine is copied must wait: the second one would know more."""
    machines = [venn.LeastSquaresSVM(venn.RBF(0.5), 10.0, CLASSES) for _ in range(2)]
    model = taught(venn.Panel(**{f"p{k}": venn.Conformal(one) for k, one in enumerate(machines)}), [(X[0], Y[0])])
    begun, learned = threading.Event(), threading.Event()
    taken = venn.RBF.__reduce_ex__

    def slowly(kernel, protocol):
        begun.set()
        learned.wait(0.05)
        return taken(kernel, protocol)

    def teach():
        begun.wait(60)
        model.learn_one(X[1], Y[1])
        learned.set()

    monkeypatch.setattr(venn.RBF, "__reduce_ex__", slowly)
    thread = threading.Thread(target=teach, daemon=True)
    thread.start()
    twin = COPIES[how](model)
    begun.set()
    thread.join(60)
    assert [one.machine.n for one in twin.values()] == [1, 1]
    assert model["p0"].machine.n == 2


@pytest.mark.parametrize("how", ["deepcopy", "pickle"])
def test_copies_made_while_another_thread_teaches_are_states_of_one_thread(how):
    def fresh():
        machine = squares()
        return venn.Panel(venn=venn.TransductiveVenn(machine), sets=venn.Conformal(machine))

    alone, states = fresh(), [bytes(checkpoint.pack(fresh()))]
    for x, y in zip(X, Y, strict=True):
        alone.learn_one(x, y)
        states.append(bytes(checkpoint.pack(alone)))
    model, ended = fresh(), threading.Event()

    def teach():
        taught(model, zip(X, Y, strict=True))
        ended.set()

    def take():
        found = [COPIES[how](model)]
        while not ended.is_set():
            found.append(COPIES[how](model))
        return found

    for one in together(teach, take)[1]:
        assert bytes(checkpoint.pack(one)) in states
        assert one["venn"].machine is one["sets"].machine


def test_two_predictors_that_are_pickled_together_share_their_machine_beside_other_threads():
    machine = squares()
    both = [venn.TransductiveVenn(machine), venn.Conformal(machine)]
    end = threading.Event()
    thread = threading.Thread(target=end.wait, args=(60,))
    thread.start()
    try:
        twins = pickle.loads(pickle.dumps(both))
        both[0].learn_one(X[0], Y[0])
        later = pickle.loads(pickle.dumps(both))
    finally:
        end.set()
        thread.join()
    assert twins[0].machine is twins[1].machine
    assert (twins[0].machine.n, later[0].machine.n, later[1].machine is later[0].machine) == (0, 1, True)


def test_pickled_beside_other_threads_again_and_again_it_is_the_same_bytes():
    """What takes no turns, such as a scorer that two predictors share, stays one thing in each pickle."""
    model = venn.Forecaster(["ant", "bee"], transductive=30)
    end = threading.Event()
    thread = threading.Thread(target=end.wait, args=(60,))
    thread.start()
    try:
        several = [pickle.dumps(model) for _ in range(3)]
        given = [model["intervals"].late, model["sets"].late]
        twins = pickle.loads(pickle.dumps(given))
    finally:
        end.set()
        thread.join()
    assert several == several[:1] * 3
    assert given[0].scorer is given[1].scorer
    assert twins[0].scorer is twins[1].scorer
