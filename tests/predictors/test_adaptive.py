"""Adaptive sets: equal to their definition, under their bound on every stream, broken variants are not."""

import copy
import pickle

import numpy as np
import pytest
from conftest import refused
from naive import adaptive as naive

import venn
from venn.machines.window import SlidingWindow
from venn.monitors.kinds import KINDS
from venn.prediction import PredictionSet
from venn.predictors import Adaptive, ConstantSteps, DecayingSteps, Predictor, Restarting

CLASSES = ("a", "b", "c")
LEVELS = (0.05, 0.1, 0.3)
STEPS = {"constant": ConstantSteps(0.05), "decaying": DecayingSteps(0.4, 0.6)}


class Given(Predictor):
    """P-values are the object itself."""

    classes = CLASSES

    def predict_one(self, x):
        return PredictionSet(np.asarray(x, np.float64), self.classes)


class Ringing:
    """A monitor that rings at given steps, counted from its start."""

    def __init__(self, every, seed=0):
        self.every, self.n = every, 0

    def update(self, prediction, y):
        self.n += 1
        return ("ring",) if self.n == self.every else ()

    def fresh(self, seed):
        return Ringing(self.every)


def adversaries(model, rng, n):
    """Yield p-values and labels: noise with ties, then what hurts most, by what the model tells."""
    for t in range(n):
        p = rng.integers(0, 6, size=3) / 5
        which = t * 6 // n
        if which == 1:
            p[:] = 0.0
        elif which == 2:
            p[:] = 1.0
        elif which == 3:  # just inside or outside the set of a level
            cut = float(np.clip(model.thresholds.max(axis=0)[0], 0, 1))
            p = np.clip([cut + 1e-9, cut - 1e-9, cut + 2e-9], 0, 1)
        told = model.predict_one(p)
        if which == 4:  # always an error, if there can be one
            yield p, CLASSES[int(told.p_values.argmin())]
        elif which == 5:  # an error only while there are few
            yield p, CLASSES[int(told.p_values.argmin() if t % 50 < 25 else told.p_values.argmax())]
        else:
            yield p, CLASSES[int(rng.integers(3))]


@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("seed", range(3))
def test_sets_thresholds_and_certificates_are_those_of_the_definition(steps, seed):
    model = Adaptive(Given(), LEVELS, STEPS[steps], Ringing(70))
    twin = naive.Adaptive(LEVELS, STEPS[steps].at)
    rng = np.random.default_rng(seed)
    for n, (p, y) in enumerate(adversaries(model, rng, 600), 1):
        told, sets = model.predict_one(p), twin.sets(p)
        for level, members in zip(LEVELS, sets, strict=True):
            assert told.set(level) == tuple(CLASSES[j] for j in members)
        model.learn_one(p, y)
        twin.learn(sets, CLASSES.index(y))
        if n % 70 == 0 and steps == "decaying":
            twin.restart()
        assert model.thresholds[:, 0] == pytest.approx(twin.thresholds, abs=1e-12)
        for k, one in enumerate(model.certificates):
            assert (one.n, one.errors) == (n, twin.errors[k])
            assert one.bound == pytest.approx(twin.bound(k))
            assert abs(one.errors - n * one.level) <= one.bound + 1e-9
    assert [n for n, _ in model.alarms] == list(range(70, 601, 70))


def test_sets_are_exact_to_the_last_bit():
    """A p-value equal to a threshold is outside the set, the next number above inside, on the scale of levels too."""
    model = Adaptive(Given(), LEVELS, ConstantSteps(0.11))
    rng = np.random.default_rng(3)
    for _ in range(500):
        cuts = np.maximum.accumulate(model.thresholds[:, 0])
        near = rng.choice(cuts)
        p = np.clip([near, np.nextafter(near, -1), np.nextafter(near, 2)], 0, 1)
        told = model.predict_one(p)
        for level, cut in zip(LEVELS, cuts, strict=True):
            assert told.set(level) == tuple(k for k, value in zip(CLASSES, p, strict=True) if value > cut)
        assert (np.diff(told.p_values[np.argsort(p, kind="stable")]) >= 0).all()
        model.learn_one(p, CLASSES[int(rng.integers(3))])


def test_errors_stay_under_the_bound_where_it_is_tight():
    """An adversary that errs whenever it can comes within a few steps of what the theorem allows."""
    model = Adaptive(Given(), (0.1,), ConstantSteps(0.02))
    furthest = 0.0
    for _ in range(300):
        p = np.clip(np.full(3, model.thresholds[0, 0]), 0, 1)  # a p-value at the threshold is an error
        model.learn_one(p, "a")
        (one,) = model.certificates
        assert abs(one.errors - one.n * one.level) <= one.bound
        furthest = max(furthest, abs(one.errors - one.n * one.level) / one.bound)
    for _ in range(2000):
        model.learn_one(np.ones(3), "a")
        (one,) = model.certificates
        assert abs(one.errors - one.n * one.level) <= one.bound
        furthest = max(furthest, abs(one.errors - one.n * one.level) / one.bound)
    assert furthest > 0.85


def test_a_clipped_variant_breaks_the_bound():
    """Labels whose p-value is 0 for a while, then 1: thresholds held in [0, 1] forget the errors."""
    errors, threshold, worst = 0, 0.1, 0.0
    for n in range(1, 2001):
        p = 0.0 if n % 2 else 1.0
        missed = p <= threshold
        errors += missed
        threshold = min(max(threshold + 0.02 * (0.1 - missed), 0.0), 1.0)
        worst = max(worst, abs(errors - 0.1 * n) / ((1 + 0.02) / 0.02))
    assert worst > 10  # 0 is never below the threshold: every other set misses
    model = Adaptive(Given(), (0.1,), ConstantSteps(0.02))
    for n in range(1, 2001):
        model.learn_one(np.full(3, 0.0 if n % 2 else 1.0), "a")
    assert abs(model.errors[0.1] - 200) <= model.bound[0.1]


@pytest.mark.parametrize("delay", [1, 7, 40])
@pytest.mark.parametrize("steps", STEPS)
def test_late_labels_widen_the_bound_and_no_more(delay, steps):
    online = venn.Online(Adaptive(Given(), LEVELS, STEPS[steps]))
    rng = np.random.default_rng(delay)
    told, errors = [], np.zeros(3)
    for t in range(800):
        p = rng.random(3) if t % 300 < 150 else np.full(3, float(rng.integers(2)))
        told.append((online.asked + 1, online.ask(p)))
        if len(told) > delay:
            id, said = told.pop(0)
            hurt = t % 400 < 200
            y = CLASSES[int(said.p_values.argmin() if hurt else said.p_values.argmax())]
            online.answer(id, y)
            errors += [y not in said.set(level) for level in LEVELS]
            (model,) = online.panel.values()
            for k, one in enumerate(model.certificates):
                assert one.errors == errors[k]
                assert abs(one.errors - one.n * one.level) <= one.bound
    size = STEPS[steps]
    assert model.bound[0.1] == pytest.approx((1 + 2 * size.at(1) * (1 + delay)) / size.at(model.n))


def test_a_variant_that_counts_the_sets_of_now_misses_what_was_told():
    """Labels 30 steps late: the errors of sets made anew are not those of the sets that were told."""
    online = venn.Online(Adaptive(Given(), (0.2,), ConstantSteps(0.2)))
    waiting, errors_told, errors_now = [], 0, 0
    rng = np.random.default_rng(0)
    for _ in range(600):
        p = rng.random(3)
        waiting.append((online.asked + 1, p, online.ask(p)))
        if len(waiting) > 30:
            id, p, said = waiting.pop(0)
            (model,) = online.panel.values()
            errors_now += "a" not in model.predict_one(p).set(0.2)
            errors_told += "a" not in said.set(0.2)
            online.answer(id, "a")
    assert model.errors[0.2] == errors_told
    assert errors_now != errors_told


@pytest.mark.parametrize("by", ["features", "function"])
def test_each_group_has_a_certificate(by):
    """Overlapping groups: errors are level times size less the change of theta by the step, and under the bound."""
    step, level = 0.05, 0.1

    class Beside(Given):
        def predict_one(self, x):
            return PredictionSet(np.clip(x[:3], 0, 1), self.classes)

    groups = (3, 4) if by == "features" else lambda x: (x[3] > 0, x[4] > 0)
    model = Adaptive(Beside(), [level], ConstantSteps(step), groups=groups)
    rng = np.random.default_rng(1)
    counts, errors = np.zeros(3), np.zeros(3)
    for t in range(900):
        x = np.append(rng.random(3), rng.integers(0, 2, size=2).astype(float))
        if x[3]:
            x[:3] *= 0.02  # hard for one group
        if t > 540:
            x[:3] = 1 - x[:3]
        g = np.append(1, x[3:])
        said = model.predict_one(x)
        threshold = float(model.thresholds[0] @ g) if t else level
        assert said.set(level) == tuple(k for k, p in zip(CLASSES, np.clip(x[:3], 0, 1), strict=True) if p > threshold)
        model.learn_one(x, "a")
        counts, errors = counts + g, errors + g * ("a" not in said.set(level))
        for i, one in enumerate(model.group_certificates):
            assert (one.n, one.errors) == (counts[i], errors[i])
            moved = (model.thresholds[0, i] - (level if i == 0 else 0)) / step
            assert one.n * level - one.errors == pytest.approx(moved, abs=1e-8)
            assert abs(one.errors - one.n * level) <= one.bound
            grown = (t + 1) * (2 * step * level + 3 * step**2)  # there are three groups with that of all
            assert one.bound == pytest.approx((level + np.sqrt(level**2 + grown)) / step)
    assert abs(errors[1] / counts[1] - level) < 0.04


def test_without_groups_a_hard_group_misses_too_often():
    """The broken variant: one threshold for all lets one group pay for the other."""
    model = Adaptive(Given(), [0.1], ConstantSteps(0.01))
    rng = np.random.default_rng(1)
    errors = np.zeros(2)
    for t in range(4000):
        p = rng.random(3) * (0.2 if t % 2 else 1)
        errors[t % 2] += "a" not in model.predict_one(p).set(0.1)
        model.learn_one(p, "a")
    assert errors[1] / 2000 > 0.15 > 0.1 > errors[0] / 2000


# ------------------------------------------------------------------------ as part of the rest


def machine():
    return venn.LeastSquaresSVM(venn.RBF(0.5), 1.0, CLASSES)


BASES = {
    "transductive": lambda: venn.Conformal(machine()),
    "inductive": lambda: venn.InductiveConformal(machine(), schedule=venn.schedules.PrefixRestart(first=6)),
    "window": lambda: venn.Conformal(SlidingWindow(machine(), 20)),
    "restarting": lambda: Restarting(venn.Conformal(SlidingWindow(machine(), 20)), venn.Monitor(CLASSES)),
    "plain": lambda: venn.Conformal(machine(), smoothed=False),
}


def stream(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 4, size=(n, 2)) / 3
    codes = (X.sum(axis=1) > 1).astype(int) + (rng.random(n) < 0.2)
    return [(x, CLASSES[k]) for x, k in zip(X, codes, strict=True)]


@pytest.mark.parametrize("base", BASES)
def test_over_each_predictor_of_sets(base, tmp_path):
    examples = stream()
    model = Adaptive(BASES[base](), steps=DecayingSteps(), monitor=venn.Monitor(CLASSES))
    twin = naive.Adaptive(model.levels, model.steps.at)
    alone = BASES[base]()
    for t, (x, y) in enumerate(examples):
        p = alone.predict_one(x).p_values
        said, sets = model.predict_one(x), twin.sets(p)
        for level, members in zip(model.levels, sets, strict=True):
            assert said.set(level) == tuple(CLASSES[j] for j in members)
        assert said.guaranteed == "long-run error rate"
        twin.learn(sets, CLASSES.index(y))
        model.learn_one(x, y)
        alone.learn_one(x, y)
        if t == 30:
            venn.save(tmp_path / "model", model)
            others = [venn.load(tmp_path / "model"), pickle.loads(pickle.dumps(model)), copy.deepcopy(model)]
            for other in others:
                assert repr(other) == repr(model)
                for z, w in examples[31:]:
                    other.learn_one(z, w)
            break
    for x, y in examples[31:]:
        model.learn_one(x, y)
    for other in others:
        assert other.certificates == model.certificates
        assert np.array_equal(other.predict_one([0.5, 0.1]).p_values, model.predict_one([0.5, 0.1]).p_values)


def test_a_question_asked_again_is_answered_alike_and_changes_nothing():
    model, twin = (Adaptive(BASES["transductive"]()) for _ in range(2))
    for x, y in stream(30):
        model.predict_one([0.3, 0.9])
        model.predict_one(x)
        first = model.predict_one(x)
        changed = x.copy()
        model.predict_one(changed)
        changed += 1  # the owner may change an object after the question
        assert not np.array_equal(model.predict_one(changed).p_values, first.p_values) or model.n < 3
        model.learn_one(x, y)
        twin.learn_one(x, y)
    assert model.certificates == twin.certificates
    assert np.array_equal(model.thresholds, twin.thresholds)


class Surprised(Predictor):
    """Learns an example and then raises: p-values are smaller by each."""

    classes = CLASSES

    def __init__(self, machine=None):
        self.machine, self.seen = machine, 1

    def predict_one(self, x):
        return PredictionSet(np.asarray(x, np.float64) / self.seen, self.classes)

    def commit(self, x, y, prepared=None):
        self.seen += 1
        if self.machine is None:
            raise KeyError("surprised")


@pytest.mark.parametrize(("shared", "error"), [(False, KeyError), (True, RuntimeError)])
def test_after_an_error_within_there_is_no_earlier_answer(shared, error):
    """The predictor may have learned: without `prepared` it has, though its machine did before the question."""
    model = Adaptive(Surprised(machine() if shared else None))
    told = model.predict_one([0.2, 0.4, 0.8])
    with pytest.raises(error):
        model.commit([0.2, 0.4, 0.8], "a")
    assert not np.array_equal(model.predict_one([0.2, 0.4, 0.8]).p_values, told.p_values)


def test_an_object_of_another_shape_is_another_question():
    model = Adaptive(BASES["transductive"]())
    model.predict_one(np.array([0.3, 0.9]))
    with pytest.raises(ValueError, match="x must"):
        model.predict_one(np.array([[0.3, 0.9]]))


def test_in_a_panel_a_record_and_its_file(tmp_path):
    shared = machine()
    panel = venn.Panel(conformal=venn.Conformal(shared), adaptive=Adaptive(venn.Conformal(shared)))
    assert len(panel.machines) == 1
    record = venn.replay(stream(80), panel)
    assert record.guaranteed == {"conformal": "error rate", "adaptive": "long-run error rate"}
    (means, model) = record.means()["adaptive"], panel["adaptive"]
    for level in model.levels:
        assert means[f"error_{level:g}"] == pytest.approx(model.errors[level] / 80)
        assert means[f"size_{level:g}"] == pytest.approx(model.sizes[level])
    record.save(tmp_path / "record")
    again = venn.online.Record.load(tmp_path / "record")
    assert again.guaranteed == record.guaranteed
    assert again.means() == record.means()
    said = record.kind("adaptive").conclusion("adaptive", record["adaptive"], "long-run error rate")
    assert "on any stream" in said
    assert record.monitor("adaptive").verdict().state in ("as claimed", "too early to say")


def test_the_estimator_for_scikit_learn_learns_in_the_order_of_the_rows():
    examples = stream(40)
    X, y = np.array([x for x, _ in examples]), np.array([label for _, label in examples])
    alone = Adaptive(venn.Conformal(machine()), [0.2])
    for x, label in examples:
        alone.learn_one(x, label)
    options = {"kernel": venn.RBF(0.5), "C": 1.0, "alpha": 0.2, "adaptive": True}
    fitted = venn.ConformalClassifier(**options).fit(X, y)
    batches = venn.ConformalClassifier(**options)
    for part in (slice(0, 1), slice(1, 17), slice(17, 40)):
        batches.partial_fit(X[part], y[part], classes=CLASSES)
    for model in (fitted, batches, pickle.loads(pickle.dumps(fitted))):
        assert model.predictor_.certificates == alone.certificates
        p_values = [alone.predict_one(x).p_values for x in X]
        assert np.array_equal(model.predict_set(X), np.array(p_values) > 0.2)
    with pytest.raises(ValueError, match="alpha must"):
        venn.ConformalClassifier(alpha=0.0, adaptive=True).fit(X, y)


def test_the_adapter_for_river_predicts_and_learns():
    pytest.importorskip("river")
    model = venn.RiverClassifier(lambda classes: Adaptive(venn.Conformal(machine())), classes=CLASSES)
    alone = Adaptive(venn.Conformal(machine()))
    for x, label in stream(30):
        row = dict(enumerate(x.tolist()))
        assert model.predict_set_one(row, 0.1) == alone.predict_one(x).set(0.1)
        model.learn_one(row, label)
        alone.learn_one(x, label)


def test_kinds_keep_the_word():
    kind = KINDS["PredictionSet"]
    space = venn.labels.Classes(CLASSES)
    for smoothed in (True, False):
        for word in (None, "long-run error rate"):
            one = PredictionSet(np.array([0.1, 0.2, 1.0]), CLASSES, smoothed, word)
            again, end = kind.decode(kind.encode(one), 0, space)
            assert (again.guaranteed, again.smoothed) == (one.guaranteed, one.smoothed)
            assert end == len(kind.encode(one))


test_bad_parameters_are_refused = refused(lambda parameters: Adaptive(Given(), **parameters), [
    ({"groups": (1,)}, ValueError, "levels must hold a single level"),
    ({"groups": (1,), "levels": (0.1,), "steps": DecayingSteps()}, ValueError, "steps must be Constant"),
])  # fmt: skip


def test_bad_questions_are_refused_and_change_nothing():
    with pytest.raises(TypeError, match="must predict sets of labels"):
        Adaptive(venn.TransductiveVennAbers(machine())).predict_one([0.0])
    model = Adaptive(venn.Conformal(machine()), [0.1], groups=[1])
    with pytest.raises(ValueError, match="x must be a row of numbers with the features"):
        model.learn_one([0.0], "a")
    model.learn_one([0.0, 1.0], "a")
    before = model.certificates, model.thresholds.tolist()
    for x, y, error in (([0.0, 1.0], "z", ValueError), ([0.0], "a", ValueError), ([np.nan, 0], "a", ValueError)):
        with pytest.raises(error):
            model.learn_one(x, y)
    assert (model.certificates, model.thresholds.tolist()) == before
    with pytest.raises(RuntimeError, match="needs what prepare"):
        model.commit([0.0, 1.0], "a")


@pytest.mark.parametrize(
    ("options", "names"),
    [
        (["--predictors", "conformal"], "conformal, adaptive:"),
        (["--predictors", "inductive_abers"], "inductive_abers, inductive_conformal, inductive_adaptive:"),
        (["--predictors", "conformal,adaptive", "--window", "20", "--restart-on-alarm"], "conformal, adaptive:"),
    ],
)
def test_on_the_command_line(options, names, tmp_path):
    from click.testing import CliRunner

    from venn.cli.commands import main

    journal = str(tmp_path / "run.db")
    ran = CliRunner().invoke(
        main, ["run", "--source", "digits", "--journal", journal, "--adaptive", "--check", *options]
    )
    assert ran.exit_code == 0, ran.output
    assert names in ran.output
