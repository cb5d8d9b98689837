"""Unlearning: what is left is the machine that has learned the others, after every step of any sequence."""

import copy
import pickle

import numpy as np
import pytest
from centroids import NearestCentroid
from conftest import KERNELS, LABELS, OBJECTS, halved, labels, objects, same_answer
from naive import svm, taxonomies
from naive import weights as weighted

import venn
from venn._compiled.margin import certify
from venn._compiled.masses import follow_masses, mend
from venn._compiled.path import SOLVED
from venn.online import checkpoint

C = 2.0
HINGE = {"one vs all": venn.OneVsAllSVM}
# Machine of three classes, and its scores by definition: (X, y, leave-one-out) -> (n, c).
KEPT = {"centroid": (lambda: NearestCentroid(range(3)), lambda *bag: taxonomies.centroid(*bag[:2], 3, bag[2]))}
MACHINES = {name: lambda make=make: make(venn.RBF(0.5), C, range(3)) for name, make in HINGE.items()}
MACHINES |= {name: make for name, (make, _) in KEPT.items()}
every_machine = pytest.mark.parametrize("name", MACHINES)
every_hinge = pytest.mark.parametrize("name", HINGE)


class Stream:
    """A machine that learns and unlearns at random, and the examples that it holds, in order of arrival."""

    def __init__(self, machine, kind, seed, n, sequence="noise"):
        self.rng = np.random.default_rng([len(kind), seed])
        self.machine, self.held = machine, []
        self.X = objects(kind, self.rng, n)
        self.y = labels(sequence, self.rng, self.X, 3)
        self.w = self.rng.choice([0.5, 1.0, 1.5], n)
        self.takes_weights = any(isinstance(machine, each) for each in HINGE.values())

    def teach(self, machine, i):
        more = (self.w[i],) if self.takes_weights else ()
        machine.learn_one(self.X[i], int(self.y[i]), *more)

    def ask(self, machine, i):
        return machine.hypotheses(self.X[i], *((self.w[i],) if self.takes_weights else ()))

    def steps(self, size):
        """Learn all; about `size` examples are held, once in a while none. Yields after each change."""
        for i in range(len(self.X)):
            self.teach(self.machine, i)
            self.held.append(i)
            yield i
            goes = self.rng.integers(0, 3) if len(self.held) >= size else int(self.rng.random() < 0.2)
            for _ in range(len(self.held) if i == 2 * size else goes):
                place = int(self.rng.integers(len(self.held)))
                if self.rng.random() < 0.5:
                    self.ask(self.machine, i).leave_one_out(0)  # what is remembered must go, and leave no trace
                self.machine.unlearn_one(place)
                del self.held[place]
                yield i

    def refitted(self):
        machine = self.machine.fresh()
        for i in self.held:
            self.teach(machine, i)
        return machine


def assert_equal_answers(first, second, tolerance=1e-7, tables=("scores", "leave_one_out", "duals")):
    np.testing.assert_array_equal(first.labels, second.labels)
    np.testing.assert_allclose(first.test_scores, second.test_scores, rtol=0, atol=tolerance)
    for j in range(first.test_scores.size):
        for read in tables:
            np.testing.assert_allclose(getattr(first, read)(j), getattr(second, read)(j), rtol=0, atol=tolerance)


# Against the definition ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["normal", "grid", "few"])
@pytest.mark.parametrize("class_weights", [None, (0.5, 1.0, 2.0)], ids=["equal", "weights"])
@pytest.mark.parametrize("name", HINGE)
def test_a_weighted_machine_equals_the_definition(name, kind, class_weights):
    define = {"one vs all": weighted.one_vs_all}[name]
    stream = Stream(HINGE[name](venn.RBF(0.5), C, range(3), class_weights), kind, 1, 11, "late")
    of_class = np.array(class_weights or (1.0, 1.0, 1.0))
    for step, i in enumerate(stream.steps(5)):
        rows, j = [*stream.held, i], step % 3
        codes = np.append(stream.y[stream.held], j)
        expected = define(svm.rbf(0.5)(stream.X[rows], stream.X[rows]), codes, stream.w[rows] * of_class[codes], 3, C)
        np.testing.assert_allclose(stream.ask(stream.machine, i).scores(j), expected, rtol=0, atol=1e-5)
        assert stream.machine.n == len(stream.held)


@pytest.mark.parametrize(("kind", "name"), halved(OBJECTS, KEPT))
def test_a_machine_that_keeps_objects_equals_the_definition_and_a_fresh_one_to_the_last_bit(name, kind):
    make, define = KEPT[name]
    stream = Stream(make(), kind, 2, 24, LABELS[len(kind) % len(LABELS)])
    for step, i in enumerate(stream.steps(10)):
        answer, j = stream.machine.hypotheses(stream.X[i]), step % 3
        assert same_answer(answer, stream.refitted().hypotheses(stream.X[i]))
        X, y = stream.X[[*stream.held, i]].tolist(), [*stream.y[stream.held].tolist(), j]
        np.testing.assert_allclose(answer.leave_one_out(j), define(X, y, True), rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(answer.scores(j), define(X, y, False), rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(answer.labels, y[:-1])


# Against a machine that learned nothing else -----------------------------------------------------------------


@pytest.mark.parametrize("kind", ["normal", "grid", "repeats"])
@pytest.mark.parametrize("kernel", KERNELS)
@every_hinge
def test_a_sequence_leaves_what_a_fresh_machine_learns(name, kernel, kind):
    for bound in (0.05, 100.0):
        stream = Stream(HINGE[name](KERNELS[kernel][0], bound, range(3)), kind, 3, 9)
        for step, i in enumerate(stream.steps(6)):
            assert stream.machine.residual <= 1e-8
            if step % 4 == 0:
                ours, theirs = (stream.ask(machine, i) for machine in (stream.machine, stream.refitted()))
                # With a flat kernel all but the scores is at the end of double precision.
                assert_equal_answers(
                    ours, theirs, 1e-6, ("scores",) if kernel == "rbf flat" else ("scores", "leave_one_out")
                )


@every_machine
def test_to_learn_and_to_unlearn_again_changes_nothing(name):
    stream = Stream(MACHINES[name](), "grid", 5, 25)
    for i in range(15):
        stream.teach(stream.machine, i)
    before = stream.ask(copy.deepcopy(stream.machine), 16)
    for i in range(16, 25):
        stream.teach(stream.machine, i)
        stream.machine.unlearn_one(15)
        assert_equal_answers(stream.ask(stream.machine, 16), before, 1e-8, ("scores", "leave_one_out"))


@every_machine
def test_all_may_be_unlearned_and_objects_of_another_length_learned(name):
    machine = MACHINES[name]()
    first, second = (Stream(machine, kind, 6, 12) for kind in ("normal", "binary"))
    for order in (lambda n: 0, lambda n: n - 1):
        for i in range(12):
            first.teach(machine, i)
        while machine.n:
            machine.unlearn_one(order(machine.n))
        assert machine.residual == 0.0
        assert machine.bag.scores.shape[1] == machine.leave_one_out_bag.scores.shape[1] == 0
        with pytest.raises(ValueError, match="i must be"):
            machine.unlearn_one()
    fresh = machine.fresh()
    for i in range(12):
        assert same_answer(second.ask(machine, i), second.ask(fresh, i))
        second.teach(machine, i)
        second.teach(fresh, i)


@every_hinge
def test_one_class_is_left_and_others_come_again(name):
    machine = HINGE[name](venn.RBF(0.5), C, list("abc"))
    for x, label in [(0.0, "a"), (0.5, "b"), (1.0, "b"), (0.0, "b"), (2.0, "c")]:
        machine.learn_one([x], label)
    machine.unlearn_one()  # a
    machine.unlearn_one(3)  # c
    fresh = machine.fresh()
    for x in (0.5, 1.0, 0.0):
        fresh.learn_one([x], "b")
    assert_equal_answers(machine.hypotheses([0.7]), fresh.hypotheses([0.7]), 1e-12)
    for each in (machine, fresh):
        each.learn_one([0.7], "a")
    assert_equal_answers(machine.hypotheses([0.1]), fresh.hypotheses([0.1]))


@every_hinge
def test_an_example_beyond_its_level_had_no_part(name):
    """To the last bit: nothing is solved."""
    machine = HINGE[name](venn.RBF(0.5), C, list("ab"))
    for x, label in [(0.0, "a"), (1.0, "b"), (0.1, "a"), (1.2, "b"), (-0.5, "a"), (-0.45, "a"), (-0.55, "a")]:
        machine.learn_one([x], label)
    # The sure one stands at an object of its own, or shares it with one that is not sure.
    sure = int(np.argmax(np.abs(machine.bag.scores).min(axis=0)))
    assert np.abs(machine.bag.scores[:, sure]).min() > (1.01 if name == "one vs all" else 0)
    before = machine.scores([0.4])
    machine.unlearn_one(sure)
    assert machine.scores([0.4]).tolist() == pytest.approx(before.tolist(), abs=1e-15)


@every_hinge
def test_a_failed_path_is_replaced_by_a_batch_solve(name, monkeypatch):
    stream = Stream(MACHINES[name](), "grid", 7, 30)
    assert list(stream.steps(60)).count(29) > 0

    def failing(*arguments):
        _, *rest = follow_masses(*arguments)
        return SOLVED + 1, *rest

    monkeypatch.setattr("venn.machines.other_masses.follow_masses", failing)
    while len(stream.held) > 10:
        stream.machine.unlearn_one(3)
        del stream.held[3]
        assert stream.machine.residual <= 1e-8
    assert_equal_answers(*(stream.ask(machine, 0) for machine in (stream.machine, stream.refitted())))


# Over a long time -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "steps"), [("one vs all", 420)])
def test_nothing_drifts_in_a_sliding_window(name, steps):
    stream = Stream(HINGE[name](venn.RBF(0.5), 10.0, range(3)), "constant", 8, steps)
    for i in range(steps):
        stream.teach(stream.machine, i)
        stream.held.append(i)
        if len(stream.held) > 14:
            stream.machine.unlearn_one()
            del stream.held[0]
        assert stream.machine.residual <= 1e-9
    assert stream.machine.n == 14
    assert_equal_answers(*(stream.ask(machine, 0) for machine in (stream.machine, stream.refitted())))


def test_scores_are_recomputed_where_rounding_may_have_added_up(monkeypatch):
    done = []

    def counted(k, *rest):
        done.append(k)
        return certify(k, *rest)

    monkeypatch.setattr("venn.machines.hinge.certify", counted)
    machine = venn.OneVsAllSVM(venn.RBF(0.5), C, range(3))
    stream = Stream(machine, "normal", 9, 60)
    stream.y = np.arange(60) % 3
    for i in range(60):
        stream.teach(machine, i)
    often = len(done)
    assert often < 30  # margins that are built anew; else scores are kept from step to step
    monkeypatch.setattr("venn.machines.hinge.PART", 0.0)  # any rounding is too much
    for i in range(5):
        before = len(done)
        stream.teach(machine, i)
        assert sorted(set(done[before:])) == [0, 1, 2]


# Its readers --------------------------------------------------------------------------------------------


READERS = {
    "argmax": lambda machine: venn.TransductiveVenn(machine, venn.Argmax()),
    "leave_one_out": lambda machine: venn.TransductiveVenn(machine, venn.LeaveOneOut(venn.Argmax())),
    "abers": lambda machine: venn.TransductiveVennAbers(machine),
    "conformal": lambda machine: venn.Conformal(machine, venn.nonconformity.Margin(), smoothed=False),
    "platt": lambda machine: venn.ScoreCalibrator(machine, venn.maps.Platt(), venn.predictors.TrainingScores()),
    "isotonic": lambda machine: venn.ScoreCalibrator(
        machine, venn.maps.Isotonic(), venn.predictors.LeaveOneOutScores()
    ),
}


@every_machine
def test_readers_see_only_what_is_held(name):
    stream = Stream(MACHINES[name](), "constant", 10, 30)
    for i in range(30):
        stream.teach(stream.machine, i)
        stream.held.append(i)
        if i >= 20:
            stream.machine.unlearn_one(i % 3)
            del stream.held[i % 3]
    fresh = stream.refitted()
    for reader, attach in READERS.items():
        ours, theirs = attach(stream.machine), attach(fresh)
        for x in stream.X[:5]:
            first, second = ours.predict_one(x), theirs.predict_one(x)
            for part in ("probabilities", "p_values", "lower", "upper"):
                if hasattr(second, part):
                    np.testing.assert_allclose(
                        getattr(first, part), getattr(second, part), rtol=0, atol=1e-6, err_msg=reader
                    )


@every_machine
def test_what_was_remembered_is_out_of_date_and_copies_go_on_alone(name):
    stream = Stream(MACHINES[name](), "grid", 11, 20)
    for i in range(15):
        stream.teach(stream.machine, i)
    twin = pickle.loads(pickle.dumps(stream.machine))
    answer = stream.ask(stream.machine, 16)
    stream.machine.unlearn_one(4)
    assert not answer.current
    with pytest.raises(RuntimeError, match="out of date"):
        answer.scores(0)
    assert (stream.machine.n, twin.n) == (14, 15)
    twin.unlearn_one(4)
    for each in (stream.machine, twin):
        stream.teach(each, 17)
        each.unlearn_one(0)
    assert same_answer(stream.ask(stream.machine, 16), stream.ask(twin, 16))


# What is refused ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [-1, 8, 10**30, 0.0, "0", None, True, np.nan], ids=repr)
@every_machine
def test_a_bad_place_changes_nothing(name, bad):
    stream = Stream(MACHINES[name](), "grid", 12, 9)
    for i in range(8):
        stream.teach(stream.machine, i)
    answer, before = stream.ask(stream.machine, 8), pickle.dumps(stream.machine)
    with pytest.raises((ValueError, TypeError), match=r"i must be an integer from 0 to .*8.*, got ") as refusal:
        stream.machine.unlearn_one(bad)
    assert repr(bad) in str(refusal.value)
    assert answer.current
    assert pickle.dumps(stream.machine) == before


@pytest.mark.parametrize("name", HINGE)
def test_what_does_not_converge_changes_nothing(name, monkeypatch):
    stream = Stream(MACHINES[name](), "normal", 13, 16)
    for i in range(15):
        stream.teach(stream.machine, i)

    def failing(*arguments):
        raise venn.machines.NotConverged("residual must be small, got a large one")

    monkeypatch.setattr("venn.machines.hinge.tolerance_of", lambda C, scale: -1.0)
    refused = []
    for i in range(15):
        machine = copy.deepcopy(stream.machine)
        before = pickle.dumps(machine)
        try:
            machine.unlearn_one(i)
        except venn.machines.NotConverged:
            assert pickle.dumps(machine) == before
            refused.append(machine)
    monkeypatch.undo()
    assert len(refused) > 3
    for machine in refused:
        machine.unlearn_one()
        assert machine.n == 14


@pytest.mark.parametrize("name", HINGE)
def test_a_step_that_is_refused_after_a_look_at_the_kernel_changes_nothing(name, monkeypatch):
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(25, 2)), rng.integers(0, 3, 25)
    machine, other = (HINGE[name](venn.RBF(1.0), C, range(3)) for _ in range(2))
    for i in range(24):
        machine.learn_one(X[i], y[i])
        other.learn_one(X[i], y[i])
    before = checkpoint.pack(machine)
    with monkeypatch.context() as patch:
        patch.setattr("venn.machines.hinge.PART", 0.0)  # any rounding is doubtful: scores are computed afresh
        patch.setattr("venn.machines.hinge.certify", lambda *_: np.inf)
        with pytest.raises(venn.machines.NotConverged):
            machine.learn_one(X[24], y[24])
    assert checkpoint.pack(machine) == before
    for one in (machine, other):
        one.learn_one(X[24], y[24])
    assert checkpoint.pack(machine) == checkpoint.pack(other)


def test_a_step_of_refinement_squares_the_error_of_an_inverse():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6, 2))
    K, m = KERNELS["rbf"][1](X, X), 6
    bordered = np.block([[np.zeros((1, 1)), np.ones((1, m))], [np.ones((m, 1)), K]])
    inverse = np.linalg.inv(bordered) * (1 + 1e-5 * rng.normal(size=(m + 1, m + 1)))
    right = rng.normal(size=m + 1)
    out = inverse @ right
    before = abs(bordered @ out - right).max()
    mend(K, np.arange(m), m, inverse, np.arange(m + 1), right, out)
    assert abs(bordered @ out - right).max() < 1e-3 * before
