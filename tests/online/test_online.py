"""The panel shares machines and learns all or nothing; the replay tests, then learns."""

import io
import sys

import numpy as np
import pytest
from centroids import NearestCentroid

import venn
from venn.online.panel import Panel
from venn.online.replaying import replay
from venn.prediction import Forecast, Multiprobability
from venn.predictors import Predictor

CLASSES = ("no", "yes", "maybe")


class CountingMachine:
    """Knows only how often each label came; counts what is asked of it and remembers like a real one."""

    tuning = None

    def __init__(self, classes=CLASSES, refuses=()):
        self.classes = tuple(classes)
        self.refuses = refuses
        self.counts = np.zeros(len(self.classes), dtype=int)
        self.solved = self.learned = 0
        self._asked = None

    def hypotheses(self, x):
        if self._asked is None or not np.array_equal(self._asked, x):
            self.solved += 1
            self._asked = np.array(x)
        return self.counts

    def check(self, x, y):
        if any(np.array_equal(x, bad) for bad in self.refuses):
            raise ValueError(f"x must not be {x!r}")
        if y not in self.classes:
            raise ValueError(f"y must be a class, got {y!r}")

    def learn_one(self, x, y):
        self.check(x, y)
        self.learned += 1
        self._asked = None
        self.counts[self.classes.index(y)] += 1


class UncheckedMachine(CountingMachine):
    check = None


class Reader(Predictor):
    """A predictor that reads a machine's counts, and keeps the examples learned."""

    def __init__(self, machine, classes=None):
        self.machine = machine
        self.classes = tuple(classes or machine.classes)
        self.told = []

    def commit(self, x, y, prepared=None):
        self.told.append((tuple(x), y))


class OneCategory(Reader):
    """The Venn predictor that puts everything into one category."""

    def predict_one(self, x):
        counts = self.machine.hypotheses(x)
        rows = counts + np.eye(len(self.classes))
        return Multiprobability(rows / rows.sum(axis=1, keepdims=True), self.classes)


class Frequencies(Reader):
    """The point forecaster of smoothed label frequencies."""

    def predict_one(self, x):
        counts = self.machine.hypotheses(x) + 1
        return Forecast(counts / counts.sum(), self.classes)


class Uniform(Predictor):
    """A predictor without a machine."""

    classes = CLASSES

    def __init__(self):
        self.told = 0

    def predict_one(self, x):
        return Forecast(np.full(3, 1 / 3), self.classes)

    def commit(self, x, y, prepared=None):
        self.told += 1


def examples(n, seed=0, classes=CLASSES):
    rng = np.random.default_rng(seed)
    return [(rng.normal(size=2), classes[rng.integers(len(classes))]) for _ in range(n)]


def shared():
    machine = CountingMachine()
    return machine, Panel(venn=OneCategory(machine), counts=Frequencies(machine), uniform=Uniform())


# ----------------------------------------------------------------------------------- panel


def test_shared_machine_is_solved_once_and_learns_once():
    machine, panel = shared()
    for x, y in examples(20):
        panel.predict_one(x)
        panel.learn_one(x, y)
    assert (machine.solved, machine.learned) == (20, 20)
    assert [len(panel[name].told) for name in ("venn", "counts")] == [20, 20]
    assert panel["uniform"].told == 20


def test_equal_machines_that_are_not_the_same_object_both_learn():
    first, second = CountingMachine(), CountingMachine()
    panel = Panel(a=OneCategory(first), b=OneCategory(second), c=Frequencies(second))
    for x, y in examples(5):
        panel.learn_one(x, y)
    assert (first.learned, second.learned) == (5, 5)


def test_panel_says_what_each_predictor_says_alone():
    _, panel = shared()
    alone = OneCategory(CountingMachine())
    for x, y in examples(30):
        together = panel.predict_one(x)
        assert list(together) == ["venn", "counts", "uniform"]
        np.testing.assert_array_equal(together["venn"].probabilities, alone.predict_one(x).probabilities)
        panel.learn_one(x, y)
        alone.learn_one(x, y)


@pytest.mark.parametrize("refusing", [0, 1])
def test_refused_example_leaves_all_machines_and_predictors_unchanged(refusing):
    bad = np.array([7.0, 7.0])
    machines = [CountingMachine(refuses=[bad] if i == refusing else []) for i in range(2)]
    panel = Panel(a=OneCategory(machines[0]), b=OneCategory(machines[1]), c=Uniform())
    with pytest.raises(ValueError, match="x must not be"):
        panel.learn_one(bad, "yes")
    assert [machine.learned for machine in machines] == [0, 0]
    assert not panel["a"].told
    assert not panel["b"].told
    assert panel["c"].told == 0


def test_unknown_label_is_refused_before_anything_learns():
    machine, panel = shared()
    with pytest.raises(ValueError, match=r"y must be one of the classes .* got 'perhaps'"):
        panel.learn_one(np.zeros(2), "perhaps")
    assert machine.learned == 0
    assert panel["uniform"].told == 0


def test_a_machine_without_check_is_refused():
    with pytest.raises(TypeError, match="b must read a machine with check and learn_one, got <"):
        Panel(a=OneCategory(CountingMachine()), b=OneCategory(UncheckedMachine()))


@pytest.mark.parametrize("prepared", [[], [None, None], [True, True, True], "prepared", 0])
def test_notes_that_are_not_the_panels_are_refused(prepared):
    machine, panel = shared()
    with pytest.raises(ValueError, match=r"prepared must be what prepare\(x, y\) returned, got"):
        panel.learn_one(np.zeros(2), "yes", prepared)
    assert (machine.learned, panel["uniform"].told) == (0, 0)
    panel.learn_one(np.zeros(2), "yes", panel.prepare(np.zeros(2), "yes"))
    assert (machine.learned, panel["uniform"].told) == (1, 1)


@pytest.mark.parametrize("told", [np.zeros((20, 3)), "told", 0, []])
def test_what_was_told_is_a_mapping(told):
    machine, panel = shared()
    with pytest.raises(TypeError, match="told must be what was said by each predictor, by its name, got"):
        panel.prepare(np.zeros(2), "yes", told, 1)
    assert (machine.learned, panel["uniform"].told) == (0, 0)


def test_panel_is_a_mapping():
    machine, panel = shared()
    assert list(panel) == ["venn", "counts", "uniform"]
    assert len(panel) == 3
    assert "venn" in panel
    assert panel["venn"].machine is machine
    assert panel.classes == CLASSES
    assert repr(Panel(u=panel["uniform"])) == "Panel(u=Uniform())"
    assert panel == panel
    assert panel != shared()[1]
    with pytest.raises(KeyError):
        panel["platt"]


def test_panel_refuses_nothing_no_predictor_and_other_classes():
    predictor = Uniform()
    with pytest.raises(ValueError, match="at least one predictor"):
        Panel()
    for unnamed in (predictor, [predictor], {"a": predictor}):
        with pytest.raises(TypeError, match=r"predictors go by name, Panel\(venn=model, \.\.\.\), got .*Uniform"):
            Panel(unnamed)
    for value in (3, "venn", Uniform, CountingMachine(), Panel(u=predictor)):
        with pytest.raises(TypeError, match="a must be a predictor"):
            Panel(a=value)
    with pytest.raises(ValueError, match="must have the same classes"):
        Panel(a=predictor, b=OneCategory(CountingMachine(classes=("yes", "no", "maybe"))))
    with pytest.raises(ValueError, match="a and b are the same predictor object"):
        Panel(a=predictor, b=predictor)


# ---------------------------------------------------------------------------------- replay


def test_replay_is_the_loop():
    stream = examples(40)
    _, panel = shared()
    record = replay(stream, panel, progress=False)
    _, again = shared()
    steps = record["venn"].per_step
    for n, (x, y) in enumerate(stream):
        prediction = again.predict_one(x)["venn"]
        again.learn_one(x, y)
        assert steps.hit[n] == (prediction.label == y)
        assert steps.lower[n] == prediction.lower
        assert steps.upper[n] == prediction.upper
    assert len(record) == 40
    assert [record.classes[code] for code in record.truth] == [y for _, y in stream]


def test_a_replay_by_predictors_that_have_learned_says_so():
    stream = [([float(i % 4)], CLASSES[i % 2]) for i in range(12)]
    machine = venn.SlidingWindow(NearestCentroid(CLASSES), 8)
    panel = Panel(
        window=venn.TransductiveVenn(machine, venn.Argmax()),
        inductive=venn.InductiveVenn(NearestCentroid(CLASSES)),
        mixed=venn.predictors.ExpertMixture([venn.InductiveVennAbers(NearestCentroid(CLASSES))]),
        uniform=Uniform(),  # does not say how much it has learned
    )
    assert replay(stream, panel, progress=False).before == {}
    record = replay(stream, panel, progress=False, steps=2)
    assert record.before == {"window": 12, "inductive": 12, "mixed": 12}
    assert record.title.endswith(", after 12 by window, 12 by inductive, 12 by mixed learned before")
    (again,) = replay(stream, panel["window"], progress=False).before.values()
    assert again == 14


def test_longer_stream_never_changes_earlier_rows():
    stream = examples(600, seed=2)  # more than a block
    long, short = (replay(part, shared()[1], progress=False) for part in (stream, stream[:300]))
    for name in long:
        for field, values in vars(short[name].per_step).items():
            np.testing.assert_array_equal(getattr(long[name].per_step, field)[:300], values)
        np.testing.assert_array_equal(long[name].accuracy[:300], short[name].accuracy)


def test_steps_stop_the_replay_and_read_no_further():
    source = iter(examples(10))
    assert len(replay(source, Uniform(), progress=False, steps=4)) == 4
    assert len(list(source)) == 6
    assert len(replay(examples(3), Uniform(), progress=False, steps=4)) == 3


@pytest.mark.parametrize("steps", [0, -1, 1.5, "3", True])
def test_steps_must_be_a_whole_number(steps):
    with pytest.raises((TypeError, ValueError), match="steps must be an integer >= 1"):
        replay(examples(3), Uniform(), steps=steps)


def test_single_predictor_goes_by_its_class_and_record_knows_the_stream():
    class Named(list):
        name = "toy"

    record = replay(Named(examples(3)), Uniform(), progress=False)
    assert record.names == ("Uniform",)
    assert record.data == "toy"
    assert record.parameters["Uniform"] == "Uniform()"
    assert record.seconds > 0


def test_empty_stream_is_an_error():
    for stream in ([], iter(())):
        with pytest.raises(ValueError, match="the stream is empty"):
            replay(stream, Uniform())


class Frame:
    """Iterates by column name, like every dataframe."""

    def __dataframe__(self):
        raise NotImplementedError

    def __iter__(self):
        return iter(["xy", "ab"])


@pytest.mark.parametrize(
    ("stream", "remedy"),
    [
        ("car", "streams.load"), (b"car", "streams.load"), ({"x": [1.0], "y": ["no"]}, "pass zip"),
        (Frame(), "pass streams.from_frames"), (np.zeros((3, 2)), r"pass zip\(X, y\)"),
        ((np.zeros((2, 2)), np.array(["no", "yes"])), r"pass zip\(X, y\)"), (7, "got 7"),
    ],
)  # fmt: skip
def test_streams_that_would_iterate_as_something_else_are_refused(stream, remedy):
    with pytest.raises(TypeError, match=r"stream must iterate \(x, y\) pairs") as caught:
        replay(stream, Uniform())
    assert caught.match(remedy)


@pytest.mark.parametrize("example", [np.zeros(3), ("x",), ("x", "no", 1.0), "no", None, {"x": 1, "y": 2}])
def test_examples_must_be_pairs(example):
    with pytest.raises(TypeError, match="step 2: the stream must give pairs"):
        replay([(np.zeros(2), "no"), example], Uniform())


@pytest.mark.parametrize("label", ["perhaps", 0, None, ["no"]])
def test_unknown_label_names_the_step(label):
    machine = CountingMachine()
    stream = [*examples(4), (np.zeros(2), label)]
    with pytest.raises(ValueError, match=r"y must be one of the classes") as caught:
        replay(stream, OneCategory(machine), progress=False)
    assert caught.value.__notes__ == ["at step 5 of the replay"]
    assert machine.learned == 4


def test_what_a_predictor_raises_carries_the_step():
    bad = np.array([7.0, 7.0])
    machine = CountingMachine(refuses=[bad])
    with pytest.raises(ValueError, match="x must not be") as caught:
        replay([*examples(2), (bad, "yes")], OneCategory(machine), progress=False)
    assert caught.value.__notes__ == ["at step 3 of the replay"]
    assert machine.learned == 2


def test_progress_is_silent_without_a_terminal_and_shown_when_forced(monkeypatch, capsys):
    replay(examples(5), Uniform())
    assert capsys.readouterr() == ("", "")
    stderr = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stderr)
    replay(examples(5), OneCategory(CountingMachine()), progress=True)
    assert "5/5" in stderr.getvalue()
    assert "OneCategory: accuracy" in stderr.getvalue()


def test_progress_shows_running_values_on_a_terminal(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    stderr = Terminal()
    monkeypatch.setattr(sys, "stderr", stderr)
    monkeypatch.setattr("venn.show.terminal.perf_counter", iter(range(100)).__next__)  # every step is due
    replay(iter(examples(3)), Uniform())
    assert "loops may need compiling" in stderr.getvalue()
    assert "claimed 0.333" in stderr.getvalue()
