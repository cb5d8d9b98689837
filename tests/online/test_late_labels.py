"""Questions and answers: any order, any number pending, labels that never come; what stays valid, and what does not."""

import functools

import numpy as np
import pytest
from centroids import NearestCentroid
from conftest import labels, objects, refused
from naive import late
from scipy.stats import binom, kstest

import streams
import venn
from venn.labels import Classes
from venn.online import chain, checkpoint
from venn.online.chain import decode, decode_many, encode
from venn.online.checkpoint import pack
from venn.online.lot import unlabelled

CLASSES = ("a", "b", "c")


def squares():
    return venn.LeastSquaresSVM(venn.RBF(0.5), 1.0, CLASSES)


MAKERS = {
    "venn": lambda: venn.TransductiveVenn(squares()),
    "published": lambda: venn.TransductiveVenn(venn.OneVsAllSVM(venn.RBF(0.5), 1.0, CLASSES), venn.Argmax()),
    "abers": lambda: venn.TransductiveVennAbers(squares()),
    "conformal": lambda: venn.Conformal(squares(), seed=3),
    "platt": lambda: venn.ScoreCalibrator(squares(), venn.maps.Platt()),
    "inductive": lambda: venn.InductiveVenn(squares(), schedule=venn.schedules.PrefixRestart(first=6)),
}


def examples(kind, n, seed=0):
    rng = np.random.default_rng(seed)
    X = objects(kind, rng, n)
    return X, [CLASSES[code] for code in labels("signal", rng, X, 3)]


def shuffled_events(n, seed):
    """Return events of n questions, answers in any order, one in five never: ("ask", i) and ("tell", i)."""
    rng = np.random.default_rng(seed)
    due = {}
    for i in range(n):
        if rng.random() < 0.8:
            due.setdefault(i + int(rng.integers(0, 6)), []).append(i)
    events = []
    for i in range(n + 6):
        events += [("ask", i)] if i < n else []
        answers = due.get(i, [])
        rng.shuffle(answers)
        events += [("tell", j) for j in answers]
    return events


@pytest.mark.parametrize("kind", ["grid", "repeats"])
@pytest.mark.parametrize("name", MAKERS)
def test_every_prediction_is_that_of_a_predictor_made_anew(name, kind):
    X, y = examples(kind, 22)
    events = shuffled_events(22, seed=1)
    plain = [("ask", i, X[i]) if what == "ask" else (i, y[i]) for what, i in events]
    online = venn.Online(MAKERS[name]())
    said = []
    for what, i in events:
        if what == "ask":
            said.append(online.ask(X[i], id=i))
        else:
            online.answer(i, y[i])
    for ours, theirs in zip(said, late.predictions(MAKERS[name], plain), strict=True):
        assert encode({"": ours}) == encode({"": theirs})
    assert online.asked == 22
    assert online.answered == sum(what == "tell" for what, _ in events)
    assert set(online.pending) == set(range(22)) - {i for what, i in events if what == "tell"}


def test_monitors_hear_what_would_be_said_as_the_label_comes():
    X, y = examples("grid", 25)
    events = shuffled_events(25, seed=2)
    plain = [("ask", i, X[i]) if what == "ask" else (i, y[i]) for what, i in events]
    online = venn.Online(MAKERS["conformal"](), venn.Monitor(CLASSES))
    for what, i in events:
        if what == "ask":
            online.ask(X[i], i)
        else:
            online.answer(i, y[i])
    expected = venn.Monitor(CLASSES)
    told = venn.Monitor(CLASSES, sources=())
    answered = [event for event in plain if len(event) == 2]
    for (_, label), prediction in zip(answered, late.now(MAKERS["conformal"], plain), strict=True):
        expected.update(prediction, label)
    by_id = dict(zip((e[1] for e in plain if len(e) == 3), late.predictions(MAKERS["conformal"], plain), strict=True))
    for i, label in answered:
        told.update(by_id[i], label)
    assert pack(online.monitors["Conformal"]) == pack(expected)
    assert pack(online.told["Conformal"]) == pack(told)
    assert expected.snapshot()["curves"] != told.snapshot()["curves"], "the two were to differ"


@pytest.mark.parametrize("kind", ["venn", "conformal"])
@pytest.mark.parametrize("window", [7, 1000, 4000])
def test_the_verdict_has_the_numbers_of_the_predictions_that_were_given(kind, window):
    """All questions come before any answer: what was given knew nothing, what the monitor compares has learned."""
    X, y = examples("grid", 30)
    given = [MAKERS[kind]().predict_one(x) for x in X]
    online = venn.Online(MAKERS[kind](), venn.Monitor(CLASSES, window=window))
    for i, x in enumerate(X):
        online.ask(x, id=i)
    for i, label in enumerate(y):
        online.answer(i, label)
    size = min(window, 30)
    if kind == "venn":
        right = np.mean([one.label == label for one, label in zip(given, y, strict=True)][-size:])
        said = f"it claims .00 to 1.00 and is right in {right:.2f} of ".replace(" 0.", " .")
    else:
        misses = np.mean(
            [one.p_values[CLASSES.index(label)] <= 0.05 for one, label in zip(given, y, strict=True)][-size:]
        )
        said = f"its sets at level .05 miss the label in {misses:.2f} of ".replace(" 0.", " .")
    sentence = online.verdict().details
    assert said in sentence
    assert "; made anew when each label came, " in sentence
    (name,) = online.verdicts()
    assert online.verdicts()[name] == online.verdict()
    recent = online.monitors[name].snapshot(online.told[name])["recent"]
    assert recent == online.told[name].snapshot()["window"]
    assert online.monitors[name].snapshot()["recent"] != recent
    other = venn.Monitor(CLASSES)  # of other steps
    assert online.monitors[name].verdict(other) == online.monitors[name].verdict()
    for wrong in (3, "told", online):
        with pytest.raises(TypeError, match="given must be a Monitor, got"):
            online.monitors[name].verdict(wrong)
        with pytest.raises(TypeError, match="given must be a Monitor, got"):
            online.monitors[name].snapshot(wrong)
        with pytest.raises(TypeError, match="given must be a mapping of names to monitors, got"):
            venn.Forecaster(CLASSES).verdict(wrong)


def test_an_object_may_be_reused_by_its_owner():
    X, y = examples("grid", 12)
    once, again = venn.Online(MAKERS["venn"]()), venn.Online(MAKERS["venn"]())
    buffer = np.empty(2)
    for x in X:
        buffer[:] = x
        assert repr(once.ask(buffer)) == repr(again.ask(x))
    for i, label in enumerate(y, 1):
        once.answer(i, label)
        again.answer(i, label)
    assert repr(once.ask([1.0, 1.0])) == repr(again.ask([1.0, 1.0]))


def test_a_panel_answers_by_name_and_a_teacher_drives_it():
    X, y = examples("grid", 30)
    stream = streams.from_arrays(X, y, classes=CLASSES)
    machine = squares()
    panel = venn.Panel(venn=venn.TransductiveVenn(machine), conformal=venn.Conformal(machine))
    online = venn.Online(panel, {"conformal": venn.Monitor(CLASSES)})
    said = list(online.follow(streams.teach(stream, streams.Delayed(3))))
    assert [set(one) for one in said] == [{"venn", "conformal"}] * 30
    assert (online.asked, online.answered, online.monitors["conformal"].n) == (30, 30, 30)


# ------------------------------------------------------------------------ refusals


def state(online):
    """All that a checkpoint holds, but for the mark of the run and all times."""
    kept = {name: value for name, value in online._state().items() if name not in ("run", "last", "mark")}
    kept["latest"] = {what: [(number, *more) for number, _, *more in of] for what, of in kept["latest"].items()}
    kept["moments"] = [(*one[:3], *one[4:]) for one in kept["moments"]]
    return checkpoint.pack(kept), online.pending


REFUSED = {
    "an object with NaN": (lambda o: o.ask([np.nan, 0.0]), ValueError, "x must be finite"),
    "an object of another length": (lambda o: o.ask([1.0]), ValueError, "x must have 2 features"),
    "text for an object": (lambda o: o.ask("ab"), TypeError, "x must be a sequence of numbers"),
    "an id that waits": (lambda o: o.ask([0.0, 0.0], "waits"), ValueError, "id must be a new one, got 'waits'"),
    "an id of another type": (lambda o: o.ask([0.0, 0.0], 1.5), TypeError, "id must be an int or a str, got 1.5"),
    "a truth for an id": (lambda o: o.ask([0.0, 0.0], True), TypeError, "id must be an int or a str, got True"),
    "a large id": (lambda o: o.ask([0.0, 0.0], 2**63), ValueError, "at most 64 bits"),
    "half a character": (lambda o: o.ask([0.0, 0.0], "\ud800"), ValueError, "id must be text that UTF-8 can write"),
    "an answer twice": (lambda o: o.answer("done", "a"), ValueError, "id must be that of a question that waits"),
    "an unknown answer": (lambda o: o.answer("never", "a"), ValueError, "id must be that of a question that waits"),
    "an unhashable id": (lambda o: o.answer(["waits"], "a"), TypeError, "id must be an int or a str"),
    "an unknown label": (lambda o: o.answer("waits", "z"), ValueError, "y must be one of the classes"),
    "an unhashable label": (lambda o: o.answer("waits", ["a"]), ValueError, "y must be one of the classes"),
    "giving up what does not wait": (lambda o: o.expire("done"), ValueError, "id must be that of a question"),
}


@pytest.mark.parametrize("journaled", [False, True], ids=["memory", "journal"])
@pytest.mark.parametrize("what", REFUSED)
def test_what_is_refused_changes_nothing(what, journaled, tmp_path):
    online = venn.Online(MAKERS["venn"](), venn.Monitor(CLASSES), tmp_path / "run.db" if journaled else None)
    for i, (x, y) in enumerate(zip(*examples("grid", 8), strict=True)):
        online.ask(x, f"question {i}")
        online.answer(f"question {i}", y)
    online.ask([1.0, 1.0], "done")
    online.answer("done", "b")
    online.ask([2.0, 1.0], "waits")
    before = state(online)
    attempt, error, message = REFUSED[what]
    with pytest.raises(error, match=message):
        attempt(online)
    assert state(online) == before
    online.answer("waits", "c")
    online.close()


test_bad_parameters = refused(lambda parameters: venn.Online(MAKERS["venn"](), **parameters), [
    ({"patience": 0}, ValueError, "patience must be an integer >= 1, got 0"),
    ({"patience": True}, TypeError, "patience must be"),
    ({"monitor": "yes"}, TypeError, "monitor must be a Monitor or a mapping"),
    ({"monitor": {"b": 3}}, TypeError, "monitor must be a Monitor or a mapping"),
    ({"monitor": {"b": venn.Monitor(CLASSES)}}, ValueError, "monitor must have names of predictors"),
    ({"monitor": venn.Monitor(("x", "y"))}, ValueError, "monitor must be for the classes"),
    ({"journal": 3}, TypeError, "journal must be a Journal, a path or None, got 3"),
])  # fmt: skip


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: list(venn.Online(venn.Forecaster([0, 1])).follow(3)), "events must be an iterable of questions"),
        (lambda: venn.Forecaster([0, 1], beside=3), "beside must be a mapping of names to predictors, got 3"),
        (lambda: venn.Forecaster([0, 1], beside={1: 2}), "beside must be a mapping of names to predictors, got {1: 2}"),
        (lambda: venn.load(3), "path must be a str or path, got 3"),
        (lambda: venn.online.Journal(3), "path must be a str or path, got 3"),
        (lambda: venn.online.Watch(3), "path must be a str or path, got 3"),
        (lambda: venn.online.verify(3), "path must be a str or path, got 3"),
        (lambda: venn.online.salvage("run.db", 3), "rescued must be a str or path, got 3"),
    ],
)
def test_an_error_names_the_parameter_what_it_must_be_and_what_it_was(call, message):
    with pytest.raises(TypeError, match=f"^{message}"):
        call()


def test_one_monitor_is_not_enough_for_a_panel():
    machine = squares()
    panel = venn.Panel(a=venn.TransductiveVenn(machine), b=venn.Conformal(machine))
    with pytest.raises(TypeError, match="monitor must be a mapping for a panel of a, b"):
        venn.Online(panel, venn.Monitor(CLASSES))


def test_patience():
    online = venn.Online(MAKERS["venn"](), patience=3)
    for i in range(5):
        online.ask([float(i), 0.0])
    assert online.pending == (3, 4, 5)
    assert online.expired == 2
    with pytest.raises(ValueError, match="got 1: never asked, answered or given up"):
        online.answer(1, "a")
    online.answer(4, "a")
    online.ask([9.0, 0.0])
    assert online.pending == (5, 6)
    online.expire(5)
    assert (online.pending, online.expired) == ((6,), 4)


# --------------------------------------------------------------------- predictions


def test_predictions_come_back_from_bytes():
    rng = np.random.default_rng(0)
    X, y = examples("grid", 15)
    panel = venn.Panel(**{name: make() for name, make in MAKERS.items()})
    for x, label in zip(X, y, strict=True):
        said = panel.predict_one(x)
        content = encode(said)
        again = decode(content, tuple(panel), panel.space)
        for name, one in said.items():
            assert type(again[name]) is type(one)
            assert (again[name].label, again[name].guaranteed) == (one.label, one.guaranteed)
            assert repr(again[name]) == repr(one)
        assert encode(again) == content
        cut = content[: int(rng.integers(0, len(content)))]
        with pytest.raises(ValueError, match="predictions must be those of"):
            decode(cut, tuple(panel), panel.space)
        panel.learn_one(x, label)


KEPT = {  # predictions of a kind by a number that their rows depend on, and whether they come back in a block
    "forecasts": (lambda p: venn.Forecast(np.array([p, 1 - p, 0.0]), CLASSES), True),
    "mixed": (lambda p: venn.prediction.MixedForecast(np.array([p, 0.0, 1 - p]), CLASSES), True),
    "intervals": (lambda p: venn.prediction.ClassIntervals(np.array([[p / 2, p]] * 3), CLASSES), True),
    "sets": (lambda p: venn.PredictionSet(np.array([p, 1.0, 0.0]), CLASSES, False), True),
    "sets of two kinds": (lambda p: venn.PredictionSet(np.array([p, 1.0, 0.0]), CLASSES, p > 0.5), False),
    "of the long run": (
        lambda p: venn.PredictionSet(np.array([p, 1.0, 0.0]), CLASSES, guaranteed="long-run error rate"), False
    ),
    "with counts": (lambda p: venn.Multiprobability(np.eye(3), CLASSES, venn.prediction.RowMean()), False),
}  # fmt: skip


@pytest.mark.parametrize("kind", KEPT)
def test_many_predictions_come_back_from_bytes_as_one_by_one(kind, monkeypatch):
    make, together = KEPT[kind]
    numbers, names = [0.0, 0.25, 1 / 3, 1.0, 1e-300], ("first", "second")
    contents = [encode(dict.fromkeys(names, make(p))) for p in numbers]
    expected = [decode(one, names, Classes(CLASSES)) for one in contents]
    calls = []
    monkeypatch.setattr(chain, "decode", lambda *given: calls.append(1) or decode(*given))
    again = decode_many(contents, names, Classes(CLASSES))
    assert (len(calls) == 1) == together
    for one, other in zip(again, expected, strict=True):
        assert encode(one) == encode(other)
        for name in names:
            mine, its = one[name], other[name]
            assert (type(mine), mine.label, mine.guaranteed, repr(mine)) == (
                type(its), its.label, its.guaranteed, repr(its)
            )  # fmt: skip
            assert vars(mine).keys() >= vars(its).keys()
    with pytest.raises(ValueError, match="predictions must be those of"):
        decode_many([*contents, contents[0][:-1]], names, Classes(CLASSES))


def test_a_rule_of_a_users_own_comes_back_as_what_it_chose():
    class Last:
        def choose(self, probabilities, category_class):
            return 2

    said = venn.Multiprobability(np.eye(3), CLASSES, Last())
    again = decode(encode({"": said}), ("",), Classes(CLASSES))[""]
    assert (again.label, again.guaranteed, again.lower) == ("c", said.guaranteed, said.lower)
    with pytest.raises(TypeError, match="x must predict one of"):
        encode({"x": 3})


# ------------------------------------------------------------------------ validity

RUNS, QUESTIONS, EPSILON = 160, 12, 0.2


def p_values(teacher, seed):
    """Return two lists of (answers) p-values of the true labels for each run: as told, and as a monitor hears them."""
    told, heard = [], []
    for run in range(RUNS):
        rng = np.random.default_rng([seed, run])
        X = rng.normal(size=(QUESTIONS, 1))
        y = [("a", "b")[int(v)] for v in rng.random(QUESTIONS) < 1 / (1 + np.exp(-2 * X[:, 0]))]
        online = venn.Online(venn.Conformal(NearestCentroid(["a", "b"]), seed=run))
        said = {}
        told.append([])
        heard.append([])
        for event in teacher(run, X, y):
            if hasattr(event, "x"):
                said[event.id] = online.ask(event.x, event.id)
            else:
                waiting = online._run.waiting[event.id]
                now = online.panel.predict_one(waiting.x)["Conformal"]
                for values, prediction in ((told, said[event.id]), (heard, now)):
                    values[-1].append(prediction.p_values[("a", "b").index(event.y)])
                online.answer(event.id, event.y)
    return told, heard


def honest(teacher):
    return lambda run, X, y: streams.teach(streams.from_arrays(X, y, classes=("a", "b")), teacher(run))


TEACHERS = {
    "slow": honest(lambda run: streams.Delayed(4)),
    "any order": honest(lambda run: streams.RandomDelay(3, seed=run)),
    "lazy": honest(lambda run: streams.Lazy(0.5, seed=run, teacher=streams.RandomDelay(2, seed=run))),
}


@functools.cache
def taught_by(teacher):
    return p_values(TEACHERS[teacher], seed=1)


@pytest.mark.parametrize("teacher", TEACHERS)
def test_what_a_monitor_hears_is_exact_under_slow_and_lazy_teachers(teacher):
    _, runs = taught_by(teacher)
    values = np.concatenate(runs)
    errors = int((values <= EPSILON).sum())
    low, high = binom.interval(0.999, len(values), EPSILON)
    assert low <= errors <= high
    assert kstest(values, "uniform").pvalue > 1e-3
    # Independent: errors of successive answers meet as often as chance has it.
    pairs = np.concatenate([np.column_stack([run[:-1], run[1:]]) for run in map(np.asarray, runs) if len(run) > 1])
    both = int((pairs <= EPSILON).all(axis=1).sum())
    low, high = binom.interval(0.999, len(pairs), EPSILON**2)
    assert low <= both <= high


@pytest.mark.parametrize("teacher", TEACHERS)
def test_each_prediction_as_it_was_told_is_valid(teacher):
    told, _ = taught_by(teacher)
    last = np.array([run[-1] for run in told if run])
    low, high = binom.interval(0.999, len(last), EPSILON)
    assert low <= (last <= EPSILON).sum() <= high


@pytest.mark.program
def test_sums_of_what_was_told_spread_more_than_binomially():
    """All but three questions come before the next answer: their objects are compared with the same three examples."""

    def late(run, X, y):
        for i in range(3):
            yield streams.Question(i, X[i])
            yield streams.Answer(i, y[i])
        for kind, values in ((streams.Question, X), (streams.Answer, y)):
            yield from (kind(i, values[i]) for i in range(3, QUESTIONS))

    runs, _ = p_values(late, seed=3)
    errors, m = np.array([(np.asarray(run[3:]) <= EPSILON).sum() for run in runs]), QUESTIONS - 3
    assert abs(errors.mean() - m * EPSILON) < 4 * errors.std() / RUNS**0.5
    assert errors.var() > 2 * m * EPSILON * (1 - EPSILON)


def test_objects_asked_about_before_anything_is_known_err_independently():
    """Every p-value is a random number of its object's own."""
    runs, _ = p_values(honest(lambda run: streams.Delayed(QUESTIONS)), seed=3)
    errors = np.array([(np.asarray(run) <= EPSILON).sum() for run in runs])
    low, high = binom.interval(0.999, RUNS * QUESTIONS, EPSILON)
    assert low <= errors.sum() <= high
    assert 0.7 < errors.var() / (QUESTIONS * EPSILON * (1 - EPSILON)) < 1.3


def test_a_teacher_who_looks_at_the_labels_breaks_it():
    """Only what looks like the other class is ever told: the test of what a monitor hears must notice."""

    def biased(run, X, y):
        for i, (x, label) in enumerate(zip(X, y, strict=True)):
            yield streams.Question(i, x)
            if (label == "a") == (x[0] > 0) or i > QUESTIONS - 4:
                yield streams.Answer(i, label)

    _, runs = p_values(biased, seed=4)
    values = np.concatenate([run[-3:] for run in runs])
    assert kstest(values, "uniform").pvalue < 1e-3


@pytest.mark.parametrize("alike", [True, False])
def test_what_open_questions_claim_is_the_mean_of_their_ends(alike):
    rng = np.random.default_rng(3)
    ends = np.sort(rng.random((40, 2)), axis=1)
    said = [venn.Multiprobability([[1 - low, low], [1 - high, high]], ("a", "b")) for low, high in ends]
    if not alike:
        said[::2] = [venn.Forecast([1 - high, high], ("a", "b")) for _, high in ends[::2]]
    found = unlabelled([*said, venn.PredictionSet([0.5, 0.2], ("a", "b"))][: 41 - alike])
    claims = [(one.lower, one.upper) for one in said]
    np.testing.assert_allclose(found[1:], np.mean(claims, axis=0), rtol=1e-12)
    assert found.questions == 40
    assert unlabelled([venn.Forecast([0.0, 1.0], ("a", "b"))] * 3) == (3, 1.0, 1.0)
