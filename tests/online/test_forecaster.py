"""The forecaster: what it is made of, what it says, and what is left of it when it is saved, stopped or goes on."""

import copy
import json
import pickle
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import goes_on, learned, refused
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

import streams
import venn
from venn.machines import Bank, Mixture, MultiscaleLaplacian, Stack
from venn.nonconformity import Share
from venn.online import Forecaster, checkpoint
from venn.predictors import ExpertMixture, Refits, ScorerForecast, Switch
from venn.schedules import Prefix, PrefixRestart

CLASSES = ("no", "yes")


def stream(n, seed=0, flip=None):
    """Two overlapping clouds; from `flip` on the labels are exchanged."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    X = rng.normal(size=(n, 2)) + 1.5 * y[:, None]
    if flip is not None:
        y[flip:] = 1 - y[flip:]
    return X, [CLASSES[code] for code in y]


def same_answer(one, other):
    numbers = [np.asarray(getattr(p, "p_values", getattr(p, "pairs", getattr(p, "proba", None)))) for p in (one, other)]
    return type(one) is type(other) and np.array_equal(*numbers)


def same_outlook(one, other):
    return one.keys() == other.keys() and all(same_answer(one[name], other[name]) for name in one)


def test_an_outlook_says_all_in_one():
    X, y = stream(60)
    model = learned(Forecaster(CLASSES), X, y)
    outlook = model.predict_one([1.5, 1.5])
    assert outlook.classes == CLASSES
    assert outlook.proba.sum() == pytest.approx(1)
    assert outlook.label == outlook.best == "yes"
    assert outlook.intervals.shape == (2, 2)
    assert (outlook.intervals[:, 0] <= outlook.intervals[:, 1]).all()
    assert outlook.set(0.01) == outlook["sets"].set(0.01)
    assert outlook.guaranteed == {"forecast": "log loss", "intervals": "each class", "sets": "error rate"}
    assert list(outlook) == ["forecast", "intervals", "sets"]
    assert repr(outlook).startswith("Outlook('no': 0.")


@pytest.mark.parametrize("given", [{}, {"first": 0}, {"ranges": [(-3.0, 5.0)] * 2}])
def test_its_parts_are_those_of_a_panel_built_by_hand(given):
    X, y = stream(80)
    scale = False if given == {"first": 0} else venn.Scale(**given, teach=True)
    bank = Bank(MultiscaleLaplacian(), CLASSES, scale=scale)
    late = venn.InductiveVennAbers(Stack(CLASSES), schedule=Prefix(0.7, first=2000))
    intervals = venn.TransductiveVennAbers(Mixture(bank))
    every = Switch(venn.TransductiveVennAbers(Mixture(bank, whole=True)), late)
    mixed = ExpertMixture([every, ScorerForecast(every), Refits(CLASSES)], (1.2, 0.0, 0.1, 0.0, 0.0))
    panel = venn.Panel(intervals=intervals, both=mixed, sets=venn.Conformal(intervals.machine, Share()))
    model = Forecaster(CLASSES, **given)
    for x, label in zip(X, y, strict=True):
        outlook, parts = model.predict_one(x), panel.predict_one(x)
        assert same_answer(outlook["intervals"], parts["intervals"])
        assert same_answer(outlook["sets"], parts["sets"])
        assert np.array_equal(outlook.proba, parts["both"].proba)
        model.learn_one(x, label)
        panel.learn_one(x, label)


def test_it_hands_over_at_the_number_that_was_fixed_and_forgets_the_bank():
    X, y = stream(90)
    model = Forecaster(CLASSES, transductive=40, last=80)
    late = venn.InductiveVennAbers(Stack(CLASSES), schedule=Prefix(0.7, first=40, growth=1.4, last=80))
    for i, (x, label) in enumerate(zip(X, y, strict=True)):
        outlook = model.predict_one(x)
        if i >= 40:
            assert model.machines == ()
            assert same_answer(outlook["intervals"], late.predict_one(x))
        else:
            assert len(model.machines) == 1
        model.learn_one(x, label)
        late.learn_one(x, label)
    assert model.n == 90


def test_a_hand_over_inside_a_mixture_takes_place_too():
    X, y = stream(40)
    machine, schedule = venn.LeastSquaresSVM(venn.RBF(1.0), 1.0, CLASSES), Prefix(0.5, first=20)
    late = venn.InductiveVennAbers(machine.fresh(), schedule=schedule)
    inner = Switch(venn.TransductiveVennAbers(machine), late)
    panel = learned(venn.Panel(mean=ExpertMixture([inner])), X[:19], y[:19])
    assert len(panel.machines) == 1
    learned(panel, X[19:], y[19:])
    assert panel.machines == ()
    assert inner.over
    assert panel["mean"].n == late.n == 40


def test_in_service_the_verdict_is_that_of_the_monitors_that_everybody_is_shown():
    X, y = stream(30)
    monitors = venn.monitors.together(["intervals", "sets"], CLASSES, level=0.02)
    watched, alone = venn.Online(Forecaster(CLASSES), monitors), venn.Online(Forecaster(CLASSES))
    for x, label in zip(X, y, strict=True):
        for online in (watched, alone):
            online.ask(x)
            online.answer(online.asked, label)
    shown = {name: monitor.verdict() for name, monitor in watched.monitors.items()}
    assert watched.verdict() == venn.monitors.worst(shown)
    assert alone.verdict() == alone.panel.verdict()
    assert watched.verdict() == watched.panel.verdict() != alone.verdict()


@pytest.mark.parametrize("n", [10, 40, 55])
def test_saved_at_any_time_it_goes_on_to_the_last_bit(n, tmp_path):
    X, y = stream(75)
    model = learned(Forecaster(CLASSES, transductive=40), X[:n], y[:n])
    goes_on(model, X[n:], y[n:], same_outlook, tmp_path)


def test_a_run_with_a_journal_goes_on_over_the_hand_over(tmp_path):
    X, y = stream(70)
    silent = Forecaster(CLASSES, transductive=40)
    for begin, end in ((0, 30), (30, 50), (50, 70)):
        with venn.Online(Forecaster(CLASSES, transductive=40), journal=tmp_path / "run.db") as online:
            for x, label in zip(X[begin:end], y[begin:end], strict=True):
                assert same_outlook(silent.predict_one(x), online.ask(x))
                online.answer(online.asked, label)
                silent.learn_one(x, label)
            record = online.record()
    assert record.names == ("forecast", "intervals", "sets")


def test_a_run_with_a_journal_goes_on_over_a_change(tmp_path):
    X, y = stream(320, flip=150)
    alone = Forecaster(CLASSES)
    for begin, end in ((0, 140), (140, 220), (220, 320)):
        with venn.Online(Forecaster(CLASSES), journal=tmp_path / "run.db", watch=False) as online:
            for x, label in zip(X[begin:end], y[begin:end], strict=True):
                assert same_outlook(alone.predict_one(x), online.ask(x))
                online.answer(online.asked, label)
                alone.learn_one(x, label)
            assert replace(online.verdict(), at=None, heard="") == alone.verdict()
    assert "began anew after" in online.verdict().details
    assert alone["intervals"].n < 160
    with pytest.raises(venn.online.JournalError, match="must hold a run that started from the same state"):
        venn.Online(Forecaster(CLASSES, on_change="keep"), journal=tmp_path / "run.db", watch=False)


def test_a_given_scorer_is_calibrated_and_its_classes_are_known():
    X, y = stream(150)
    scorer = LogisticRegression().fit(X[:50], y[:50])
    model = learned(Forecaster(scorer=scorer), X[50:100], y[50:100])
    assert model.classes == CLASSES
    by_hand = learned(venn.InductiveVennAbers(venn.FrozenScorer(scorer)), X[50:100], y[50:100])
    assert same_answer(model.predict_one(X[120])["intervals"], by_hand.predict_one(X[120]))
    assert model.machines == ()


def test_a_refused_example_leaves_everything_as_it_was():
    X, y = stream(30)
    model = learned(Forecaster(CLASSES), X, y)
    before = pickle.dumps(model)
    for x, label in ((X[0], "maybe"), ([np.nan, 0.0], "no"), ([1.0], "yes")):
        with pytest.raises(ValueError, match="must"):
            model.learn_one(x, label)
    for learn in (model.learn_many, model.replay_many):
        with pytest.raises(ValueError, match="X must"):
            learn([[0.0, 1.0], [np.nan, 0.0]], ["no", "yes"])
    with pytest.raises(ValueError, match=r"prepared must be what prepare\(x, y\) returned, got 'prepared'"):
        model.learn_one(X[0], y[0], "prepared")
    assert pickle.dumps(model) == before


@pytest.mark.parametrize("scorer", [None, LogisticRegression().fit(*stream(60, seed=9))])
def test_after_a_change_it_begins_anew_and_is_soon_as_good_as_before(scorer, tmp_path):
    X, y = stream(560, flip=200)
    given = {"classes": CLASSES} if scorer is None else {"scorer": scorer}
    model, right, before = Forecaster(**given), [], None
    for i, (x, label) in enumerate(zip(X, y, strict=True)):
        right.append(model.predict_one(x).label == label)
        before = model["intervals"]
        model.learn_one(x, label)
        if model["intervals"] is not before:
            found = model.verdict()
            assert found.state == "changed"
            assert 170 < found.since < 230
            assert found.details.endswith(f"; began anew after {i + 1}")
            assert len(model.machines) == (scorer is None)
            assert model["forecast"].experts[-1].n == i + 1
            venn.save(tmp_path / "model", model)
            model = venn.load(tmp_path / "model", models=[] if scorer is None else [scorer])
    assert model.n == 560
    assert model["intervals"].n < 340
    if scorer is None:  # else what a given scorer says is upside down now, and its order is all there is
        assert np.mean(right[-150:]) > np.mean(right[100:200]) - 0.06
    assert model.verdict().since == found.since


def losses(model, X, y):
    """Return the log loss of the forecast at each step."""
    found = []
    for x, label in zip(X, y, strict=True):
        found.append(-np.log(model.predict_one(x)["forecast"].proba[CLASSES.index(label)]))
        model.learn_one(x, label)
    return np.array(found)


def test_a_false_alarm_does_not_cost_the_calibration_of_a_given_scorer_and_a_change_is_learned():
    X, y = stream(700)
    X = np.tile(X, 4)  # naive Bayes counts each column: it is far too sure
    scorer = GaussianNB().fit(X[:100], y[:100])
    never, rang = (learned(Forecaster(scorer=scorer), X[100:400], y[100:400]) for _ in range(2))
    rang._begin_anew()  # noqa: SLF001
    forgot = Forecaster(scorer=scorer)
    at_rest, kept, anew = (losses(one, X[400:500], y[400:500]).mean() for one in (never, rang, forgot))
    assert at_rest < kept < anew - 0.02
    other = [CLASSES[1 - CLASSES.index(label)] for label in y[500:]]
    rang._begin_anew()  # noqa: SLF001
    assert rang["forecast"].experts[-1].n == 400
    late = slice(100, None)
    assert (
        abs(losses(rang, X[500:], other)[late].mean() - losses(Forecaster(scorer=scorer), X[500:], other)[late].mean())
        < 0.02
    )
    merged = rang.merge(learned(Forecaster(scorer=scorer), X[:50], y[:50]))  # which has fewer experts
    assert merged["intervals"].n == 250
    assert len(merged["forecast"].experts) == 2


def test_the_verdict_finds_exchanged_labels_and_stands_through_a_hand_over():
    X, y = stream(270, flip=130)
    model = learned(Forecaster(CLASSES, transductive=250, on_change="keep"), X[:130], y[:130])
    assert model.verdict().state in ("too early to say", "as claimed")
    learned(model, X[130:249], y[130:249])
    assert model["intervals"].n == 249  # nothing began anew
    learned(model, X[249:250], y[249:250])  # hands over
    assert model.verdict().state == "changed"
    assert 100 < model.verdict().since < 160
    learned(model, X[250:], y[250:])  # the new period knows too little to say anything yet
    assert model.verdict().state == "changed"


def test_an_object_is_asked_about_once_although_it_is_learned_afterwards():
    class Counting(GaussianNB):
        calls = 0

        def predict_proba(self, X):
            Counting.calls += len(X)
            return super().predict_proba(X)

    X, y = stream(60)
    model = Forecaster(scorer=Counting().fit(X[:30], y[:30]))
    Counting.calls = 0
    for x, label in zip(X[30:], y[30:], strict=True):
        model.predict_one(x)
        model.learn_one(x, label)
    assert Counting.calls <= 60  # by the intervals, by the sets


def raw_table(seed, n):
    """Six columns of scales 1e-3 to 1e6 and other offsets; returned with the same table scaled beforehand."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, 6))
    y = rng.random(n) < 1 / (1 + np.exp(-2 * (1.5 * Z[:, 0] - Z[:, 1] + Z[:, 2] * Z[:, 3])))
    X = Z * [1e-3, 1e6, 1.0, 1e3, 1e-2, 1e5] + [5e-3, 1e7, 0.0, 1e4, 3.0, -2e5]
    return X, (X - X.mean(axis=0)) / X.std(axis=0), np.array(CLASSES)[y.astype(int)].tolist()


@pytest.mark.program
def test_a_raw_table_loses_little_beside_the_same_table_scaled_beforehand():
    lost = np.zeros(2)
    for seed in range(2):
        *tables, y = raw_table(seed, 180)
        for place, (X, model) in enumerate(
            zip(tables, (Forecaster(CLASSES), Forecaster(CLASSES, first=0)), strict=True)
        ):
            for step, (x, label) in enumerate(zip(X, y, strict=True)):
                if step >= 60:
                    lost[place] -= np.log(model.predict_one(x).proba[CLASSES.index(label)])
                model.learn_one(x, label)
    assert lost[0] < 1.02 * lost[1]


def test_from_the_first_example_on_it_knows_something_and_does_not_care_for_units():
    X, scaled, y = raw_table(3, 45)
    raw, other = Forecaster(CLASSES), Forecaster(CLASSES)
    assert np.array_equal(raw.predict_one(X[0]).intervals, [[0, 1], [0, 1]])
    for step, (x, z, label) in enumerate(zip(X, scaled, y, strict=True)):
        one, two = raw.predict_one(x), other.predict_one(z)
        assert np.allclose(one.proba, two.proba, atol=1e-6)
        assert np.allclose(one.intervals, two.intervals, atol=1e-6)
        if step == 29:
            assert (np.ptp(one.intervals, axis=1) < 0.7).all()
        if step == 30:  # the bag is empty: the first 30 fix the scale, and teach
            assert np.array_equal(one.intervals, [[0, 1], [0, 1]])
            assert one.set(0.05) in ((), *[(label,) for label in CLASSES], CLASSES)
            assert abs(one.proba[0] - 0.5) > 0.01
        raw.learn_one(x, label)
        other.learn_one(z, label)


def test_its_scale_may_be_declared_and_not_for_a_scorer():
    ranged = Forecaster(CLASSES, ranges=[(0, 1), (0, 1e6)])
    assert repr(ranged) == (
        "Forecaster(['no', 'yes'], transductive=2000, last=100000, ranges=((0.0, 1.0), (0.0, 1000000.0)), level=0.01)"
    )
    scorer = LogisticRegression().fit([[0.0], [1.0]], CLASSES)
    with pytest.raises(TypeError, match="first and ranges must not be given with a scorer"):
        Forecaster(scorer=scorer, first=10)
    for wrong, message in ((1, "first must be an integer >= 2, got 1"), (-1, "first must be"), (True, "first must be")):
        with pytest.raises((TypeError, ValueError), match=message):
            Forecaster(CLASSES, first=wrong)


def test_a_replay_without_a_predictor_is_by_a_forecaster():
    stream = streams.load("breast_cancer", shuffle=0).take(12)
    record = venn.replay(stream, progress=False)
    assert record.names == ("forecast", "intervals", "sets")
    with pytest.raises(TypeError, match="predictor must be given for a stream without classes"):
        venn.replay([([0.0], "no")], progress=False)


def test_others_may_stand_beside_it():
    X, y = stream(30)
    machine = venn.LeastSquaresSVM(venn.RBF(1.0), 1.0, CLASSES)
    model = Forecaster(CLASSES, beside={"venn": venn.TransductiveVenn(machine)})
    record = venn.replay(list(zip(X, y, strict=True)), model, progress=False)
    assert record.names == ("forecast", "intervals", "sets", "venn")
    with pytest.raises(ValueError, match=r"beside must have other names than .*, got 'sets'"):
        Forecaster(CLASSES, beside={"sets": venn.TransductiveVenn(machine)})


test_bad_parameters_are_named = refused(lambda given: Forecaster(**given), [
    ({}, TypeError, "Forecaster needs classes, .* or a fitted scorer, got neither"),
    ({"classes": LogisticRegression()}, TypeError, "classes must be .*: a classifier is given as scorer="),
    ({"classes": "yes"}, TypeError, "classes must be a sequence of"),
    ({"classes": 5}, TypeError, "classes must be a sequence of"),
    ({"classes": ["a"]}, ValueError, "classes must hold at least 2"),
    ({"classes": CLASSES, "transductive": 1}, ValueError, "transductive must be an integer >= 2, got 1"),
    ({"classes": CLASSES, "transductive": 50, "last": 49}, ValueError, "last must be an integer >= 50, got 49"),
    (
        {"classes": CLASSES, "on_change": "stop"}, ValueError, "on_change must be one of 'restart', 'keep', got 'stop'",
    ),
    ({"classes": CLASSES, "level": 0}, ValueError, "level must .*, got 0"),
    ({"scorer": LogisticRegression()}, ValueError, "scorer must be a fitted classifier"),
])  # fmt: skip


def test_a_hand_over_needs_two_of_a_kind():
    machine = venn.LeastSquaresSVM(venn.RBF(1.0), 1.0, CLASSES)
    early, late = venn.Conformal(machine), venn.InductiveConformal(machine.fresh(), schedule=PrefixRestart())
    with pytest.raises(TypeError, match="late must be an inductive predictor"):
        Switch(early, early)
    given = venn.InductiveConformal(venn.FrozenScorer(LogisticRegression().fit([[0.0], [1.0]], CLASSES)))
    with pytest.raises(ValueError, match="late must have a schedule that trains"):
        Switch(early, given)
    other = venn.LeastSquaresSVM(venn.RBF(1.0), 1.0, ("a", "b"))
    with pytest.raises(ValueError, match="early and late must have the same classes"):
        Switch(early, venn.InductiveConformal(other, schedule=PrefixRestart()))
    with pytest.raises(TypeError, match="late must be an inductive predictor"):
        Switch(early, ExpertMixture([venn.TransductiveVennAbers(machine)]))
    assert Switch(early, late).over is False
    abers = venn.InductiveVennAbers(machine.fresh(), schedule=PrefixRestart())
    others = [
        early, venn.TransductiveVenn(machine), venn.ScoreCalibrator(machine, venn.maps.Platt()),
        ExpertMixture([venn.TransductiveVennAbers(machine)]),
        venn.predictors.Adaptive(early), Switch(early, late), late,
    ]  # fmt: skip
    for other in others:
        with pytest.raises(TypeError, match="early and late must say the same kind of thing, got"):
            Switch(other, abers)
    window = venn.SlidingWindow(machine, 9)
    for alike in (
        venn.TransductiveVennAbers(machine),
        venn.predictors.Restarting(venn.TransductiveVennAbers(window), venn.Monitor(CLASSES)),
    ):
        assert Switch(alike, abers).over is False


def test_a_part_that_must_know_what_was_said_before_gets_no_note_made_afterwards():
    machine = venn.LeastSquaresSVM(venn.RBF(1.0), 1.0, CLASSES)
    late = venn.InductiveConformal(machine.fresh(), schedule=PrefixRestart())
    model = Switch(venn.predictors.Adaptive(venn.Conformal(machine)), late)
    machine.learn_one([0.0], CLASSES[0])
    with pytest.raises(RuntimeError, match="commit needs what prepare"):
        model.commit([0.0], CLASSES[0])
    assert model.early.n == 0
    assert late.n == 1


@pytest.mark.parametrize("classes", [("no", "yes"), ("a<b", "set"), (3, 7, 9)])
def test_an_outlook_is_read_by_class_as_a_dict_and_in_a_notebook(classes):
    model = venn.Forecaster(classes, first=0)
    for i in range(12):
        model.learn_one([i % len(classes) + i / 100], classes[i % len(classes)])
    outlook = model.predict_one([1.0])
    told = outlook.to_dict()
    for k, label in enumerate(classes):
        assert told["probabilities"][label] == outlook.proba[k]
        assert told["intervals"][label] == outlook.intervals[k].tolist()
        assert told["p_values"][label] == outlook["sets"].p_values[k]
        assert outlook[label] == outlook.proba[k]
        assert type(outlook[label]) is float
    assert told["label"] == outlook.label
    assert told["guaranteed"] == outlook.guaranteed
    assert list(outlook) == ["forecast", "intervals", "sets"]
    page = outlook._repr_html_()
    assert page.count("<tr>") == 1 + len(classes)
    assert "a<b" not in page
    for label in ("maybe", 1.5, None):
        with pytest.raises(KeyError, match=r"it has forecast, intervals, sets, and the classes \["):
            outlook[label]
    many = model.predict_many([[0.1]])
    with pytest.raises(KeyError, match=r"it has forecast, intervals, sets; of object i it has \.one\(i\), got 0"):
        many[0]
    assert json.loads(json.dumps(told))["label"] == outlook.label


def test_a_file_asks_for_each_estimator_once():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), rng.integers(0, 3, 60)
    model = Forecaster(scorer=LogisticRegression().fit(X, y))  # read by decision values, and by probabilities
    packed = checkpoint.pack(model)
    (estimator,) = checkpoint.models(model)
    again = checkpoint.unpack(packed, [estimator])
    assert checkpoint.pack(again) == packed
    assert checkpoint.models(again)[0] is not estimator


# --------------------------------------------------------------------------- what is remembered, and what not


def test_what_was_said_of_an_object_is_forgotten_with_the_next_example():
    """An object of numpy's numbers is not remembered: nothing may hang on that."""
    models = [venn.Forecaster(("no", "yes"), first=0) for _ in range(2)]
    for step in range(30):
        x = [float(step % 2), 1.0]
        for model, given in zip(models, (x, [np.float64(v) for v in x]), strict=True):
            model.predict_one(given)
            model.learn_one(given, "yes" if step % 4 else "no")
            model.learn_one(given, "no")
    states = [{name: checkpoint.pack(one) for name, one in model.monitors.items()} for model in models]
    assert states[0] == states[1]


def test_examples_that_fix_the_scale_count_in_the_forecast_alone():
    model = venn.Forecaster(("no", "yes"), first=12)
    for step in range(12):
        model.learn_one([float(step), step % 3], "yes" if step > 5 else "no")
    outlook = model.predict_one([11.0, 1.0])
    assert outlook.intervals.tolist() == [[0.0, 1.0]] * 2
    assert outlook["yes"] > 0.6


@pytest.mark.parametrize("classes", [("no", "yes"), float])
def test_without_a_scale_first_is_0_and_damaged_parts_are_refused(classes):
    model = venn.Forecaster(classes, first=0)
    assert model.first == 0
    with pytest.raises(TypeError, match="y must be a sequence of labels, got 3"):
        model.learn_many([[0.0]], 3)
    with pytest.raises(ValueError, match="monitors must be"):
        model.restore(model.state | {"monitors": {}})
    with pytest.raises(ValueError, match="predictors must begin with"):
        type(model).made_of(model.parameters | {"predictors": {}})


def test_who_has_learned_nothing_is_copied_beside_one_with_sparse_examples():
    model = venn.Forecaster([0, 1])
    model["intervals"].late.learn_one(sp.csr_array([[0.0, 1.0]]), 0)
    assert copy.deepcopy(model["sets"].late).n == 0


def test_examples_for_later_trainings_are_held_once_and_who_learns_others_goes_on_alone(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(90, 3)), rng.integers(0, 2, 90).tolist()
    model = venn.Forecaster([0, 1], transductive=50, last=5000)
    model.learn_many(X[:70], y[:70])
    venn.save(tmp_path / "model.venn", model)
    for one in (model, copy.deepcopy(model), venn.load(tmp_path / "model.venn")):
        learners = [one["intervals"].late, one["sets"].late, one["forecast"].experts[2]]
        histories = [vars(part)["_history"] for part in learners]
        assert len({id(vars(history)["_held"]) for history in histories}) == 1
        one["intervals"].learn_one(X[70], y[70])
        one["sets"].learn_one(X[71], y[71])
        one["intervals"].learn_one(X[72], y[72])
        for history, places in zip(histories, ([70, 72], [71], []), strict=True):
            kept = [*range(70), *places]
            assert np.array_equal(history.examples[0], X[kept])
            assert history.examples[1].tolist() == [y[i] for i in kept]


def test_whoever_looks_for_methods_of_scikit_learn_is_told_where_they_are():
    for model in (venn.Forecaster(["no", "yes"]), venn.Forecaster(float)):
        for name in ("fit", "predict_proba"):
            assert not hasattr(model, name)
            with pytest.raises(AttributeError, match=f"Forecaster' object has no attribute '{name}': venn.Forecaster"):
                getattr(model, name)
        with pytest.raises(AttributeError, match=r"has no attribute 'colour'$"):
            model.colour  # noqa: B018
        assert hasattr(venn.ForecasterClassifier, "predict_proba")
        assert hasattr(venn.ConformalRegressor, "predict")
        assert repr(pickle.loads(pickle.dumps(model))) == repr(copy.deepcopy(model)) == repr(model)
