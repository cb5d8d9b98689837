"""The verdict: what a monitor says of its predictor in one sentence, by which rules, and how often it is wrong."""

import dataclasses
import json
import pickle
import re
from math import log, sqrt

import numpy as np
import pytest
from click.testing import CliRunner
from conftest import well
from naive import change as naive
from scipy.stats import binom

import streams
import venn
from venn import cli
from venn.monitors import ChangePoint, Verdict, together, worst
from venn.monitors.change_point import Trace, change_point, of_events, of_p_values
from venn.online.checkpoint import pack, unpack
from venn.prediction import CategoryClass, ClassIntervals, Forecast, Multiprobability, PredictionSet

CLASSES = ("no", "yes")
ENOUGH = 265


def labelled(hits, rng, says="label"):
    """Yield predictions of one kind and labels; hits[n] is the chance of "yes", which is predicted at step n.

    Each is the frequency of labels so far: a Venn predictor with one category, valid while the chance is the same.
    """
    ones = n = 0
    for chance in hits:
        y = int(rng.random() < chance)
        low, high = ones / (n + 1), (ones + 1) / (n + 1)
        if says == "label":
            prediction = Multiprobability([[1 - low, low], [1 - high, high]], CLASSES, CategoryClass(), 1)
        elif says == "row":
            prediction = Multiprobability([[1 - low, low], [1 - high, high]], CLASSES)
        elif says == "classes":
            prediction = ClassIntervals(np.array([[1 - high, 1 - low], [low, high]]), CLASSES)
        elif says == "point":
            prediction = Forecast([0.2, 0.8], CLASSES)
        else:  # conformal: "yes" is never strange, "no" is strange if labels are mostly "yes"
            tau = rng.random()
            strange = (n - ones + 1) * tau / (n + 1)
            usual = (n - ones + (ones + 1) * tau) / (n + 1)
            prediction = PredictionSet([strange, usual], CLASSES, says == "smoothed")
        yield prediction, CLASSES[y]
        n, ones = n + 1, ones + y


def watched(hits, seed=0, says="label", **parameters):
    monitor = venn.Monitor(CLASSES, **parameters)
    for prediction, y in labelled(hits, np.random.default_rng(seed), says):
        monitor.update(prediction, y)
    return monitor


KINDS = ("label", "row", "classes", "point", "smoothed")
FLIP = [0.8] * 900 + [0.25] * 1300


# ----------------------------------------------------------------------- the states


@pytest.mark.parametrize("says", [*KINDS, "plain"])
def test_fifty_examples_are_too_few(says):
    verdict = watched([0.8] * 50, says=says).verdict()
    assert (verdict.state, verdict.since, verdict.change) == ("too early to say", None, None)
    assert verdict.details.startswith("too early to say: 50 of 265 examples; ")
    assert str(verdict) == "Wait, too early to say: 50 of 265 examples."
    assert venn.Monitor(CLASSES).verdict().details == "too early to say: no example of 265"


@pytest.mark.parametrize("says", [*KINDS, "plain"])
def test_without_a_change_it_is_as_claimed(says):
    monitor = watched([0.8] * ENOUGH, 3, says)
    assert monitor.verdict().state == "as claimed"
    for prediction, y in list(labelled([0.8] * 1200, np.random.default_rng(3), says))[ENOUGH:]:
        monitor.update(prediction, y)
    verdict = monitor.verdict()
    assert (verdict.state, verdict.since, verdict.change, verdict.detector) == ("as claimed", None, None, "")
    bets = {"point": "point forecasts", "smoothed": "p-values", "plain": "none"}
    assert verdict.evidence == bets.get(says, "probabilities")
    assert " of the last 1000" in verdict.details
    assert verdict.details.endswith("; nothing bets against it") == (says == "plain")
    assert ("nothing is guaranteed" in verdict.details) == (says == "point")
    assert ("its sets at level .05 miss" in verdict.details) == (says in ("smoothed", "plain"))


@pytest.mark.parametrize("says", KINDS)
def test_flipped_labels_are_a_change_with_its_step_and_its_numbers(says):
    """Accuracy .8, then .25, as labels that change their meaning cause it."""
    monitor = watched(FLIP, says=says)
    verdict = monitor.verdict()
    assert verdict.state == "changed"
    assert verdict.change.lower <= 901 <= verdict.change.upper
    assert verdict.since == verdict.change.step
    assert verdict.change.upper - verdict.change.lower < 150
    assert verdict.details.startswith(f"changed since {verdict.change}: ")
    assert verdict.details.endswith(f"; last alarm at {monitor.alarms[-1].step}")
    assert verdict.detector
    if says == "point":
        assert "it says .80 and is right in .2" in verdict.details


def test_soon_after_a_change_the_numbers_are_those_since():
    monitor = watched(FLIP[:1000])
    verdict = monitor.verdict()
    since = 1000 - verdict.since + 1
    assert f"of the {since} since then" in verdict.details
    rng = np.random.default_rng(0)
    steps = list(labelled(FLIP[:1000], rng))[-since:]
    lower, upper, hits = (
        np.mean([p.lower for p, _ in steps]),
        np.mean([p.upper for p, _ in steps]),
        np.mean([p.label == y for p, y in steps]),
    )
    band = f"{lower:.2f}"[1:] if f"{lower:.2f}" == f"{upper:.2f}" else f"{lower:.2f} to {upper:.2f}".replace("0.", ".")
    assert f"it claims {band} and is right in {f'{hits:.2f}'[1:]} " in verdict.details


def test_a_slow_drift_is_doubtful_before_it_is_a_change():
    states = {}
    monitor = venn.Monitor(CLASSES)
    hits = np.concatenate([np.full(600, 0.9), np.linspace(0.9, 0.4, 2500)])
    for prediction, y in labelled(hits, np.random.default_rng(1)):
        monitor.update(prediction, y)
        if monitor.n % 5 == 0:
            states.setdefault(monitor.verdict().state, monitor.n)
    assert list(states) == ["too early to say", "as claimed", "doubtful", "changed"]
    assert 600 < states["doubtful"] < states["changed"]
    assert monitor.verdict().change.upper > 600


def test_the_latest_steps_raise_a_doubt_where_nothing_is_bet_on():
    steps = watched([0.8] * 600 + [0.2] * 400, sources=())
    verdict = steps.verdict()
    assert (verdict.state, verdict.evidence) == ("doubtful", "latest steps")
    assert verdict.details.endswith(" of the last 150, which chance hardly explains")
    assert verdict.details == f"doubtful: {verdict.reason}"
    means = steps.snapshot()["window"]
    assert means["lower"] - means["accuracy"] > sqrt(log(2 / 0.01) / (2 * 1000))


@pytest.mark.parametrize(("right", "said"), [(780, True), (790, False), (810, False), (820, True)])
def test_a_departure_of_more_than_a_standard_deviation_is_within_chance(right, said):
    """It is said that .80 of 1000 steps are right: the standard deviation is .0158 at most, by sqrt(1 / (4 N))."""
    monitor = venn.Monitor(CLASSES, sources=())
    for step in range(1000):
        hit = (step + 1) * right // 1000 > step * right // 1000
        monitor.update(Forecast([0.2, 0.8], CLASSES), "yes" if hit else "no")
    verdict = monitor.verdict()
    assert verdict.state == "as claimed"
    assert (", within chance" in verdict.details) == said


@pytest.mark.parametrize(("errors", "state"), [(72, "as claimed"), (78, "doubtful"), (30, "as claimed")])
def test_plain_sets_are_in_doubt_only_if_they_err_more(errors, state):
    monitor = venn.Monitor(CLASSES)
    for n in range(1000):
        monitor.update(PredictionSet([0.5, 0.01], CLASSES, smoothed=False), CLASSES[n < errors])
    assert monitor.verdict().state == state


def test_smoothed_sets_are_in_doubt_also_if_they_err_less():
    monitor = venn.Monitor(CLASSES, sources=())
    for n in range(1000):
        monitor.update(PredictionSet([0.5, 0.01], CLASSES), CLASSES[n < 20])
    assert monitor.verdict().state == "doubtful"


@pytest.mark.parametrize("guesses", [True, False])
def test_a_change_ends_after_a_calm_window_and_a_new_one_may_begin(guesses, monkeypatch):
    """As after a restart: the predictor's bag begins anew. It only knows frequencies: to know them is to guess."""
    state = "no better than guessing" if guesses else "as claimed"
    if not guesses:  # as if they were worse
        monkeypatch.setattr(venn.Monitor, "_frequencies", lambda monitor, size: np.array([0.5, 0.5]))
    monitor, rng = venn.Monitor(CLASSES, window=300), np.random.default_rng(5)
    for prediction, y in labelled([0.8] * 500 + [0.2] * 150, rng):
        monitor.update(prediction, y)
    first, last = monitor.verdict(), monitor.alarms[-1].step
    assert first.state == "changed"
    calm = list(labelled([0.3] * 900, rng))
    for prediction, y in calm:
        monitor.update(prediction, y)
        if monitor.n - last < 300:
            assert monitor.verdict().state == "changed"
            assert monitor.verdict().change == first.change
    again = monitor.verdict()
    assert (again.state, again.since, again.change) == (state, first.since if guesses else last, first.change)
    if guesses:
        assert re.match(f"valid, but {state} by the frequencies of the classes: it claims .3.*", again.details)
        assert "; was right in .8" in again.details
    else:
        assert again.details.startswith("as claimed again: ")
    assert again.details.endswith(f"; no alarm since {last}, after a change at {first.change}")
    for chance in [0.9] * 300:
        monitor.update(calm[-1][0], CLASSES[rng.random() < chance])
    second = monitor.verdict()
    assert second.state == "changed"
    assert abs(second.change.step - 1551) < 20


def test_forecasts_that_were_never_true_are_not_a_change():
    verdict = watched([0.3] * 400, says="point").verdict()
    assert verdict.state == "changed"
    assert verdict.details.startswith("changed: not as claimed from the start: the predicted label was right in .")
    assert "where .80 was claimed; nothing is guaranteed, it says .80 and is right in .2" in verdict.details


def test_a_change_may_be_older_than_what_is_remembered():
    monitor = watched([0.8] * 400 + [0.65] * 1500, 2, window=30)
    change = monitor.verdict().change
    assert change.upper - change.lower < 30
    assert change.lower > 400
    assert change.earlier
    assert str(ChangePoint(90, 60, 95, True)) == "about 90 (before 60 to 95)"


# ------------------------------------------------------------------ what is certified


@pytest.mark.parametrize("says", ["label", "smoothed"])
def test_false_changes_are_as_rare_as_certified(says):
    """P("changed" ever in n steps) <= level + n / run_length; exact binomial test at 0.001, fixed seeds."""
    level, run_length, n, streams = 0.05, 20_000, 400, 90
    count = 0
    for seed in range(streams):
        monitor = watched([0.75] * n, 100 + seed, says, level=level, run_length=run_length)
        count += monitor.count > 0
        assert (monitor.verdict().state == "changed") == (monitor.count > 0)  # the window is longer
    assert binom.sf(count - 1, streams, level + n / run_length) > 1e-3


def test_a_broken_predictor_fails_that_test():
    count = sum(
        watched([0.75] * 250 + [0.35] * 150, 100 + seed, level=0.05, run_length=20_000).count > 0 for seed in range(20)
    )
    assert binom.sf(count - 1, 20, 0.05 + 400 / 20_000) < 1e-3


@pytest.mark.parametrize("says", ["label", "smoothed"])
def test_the_change_lies_in_its_interval_in_most_streams(says):
    """Of 60 streams in which it is found; that it were less than 0.9 would be refuted at 0.001."""
    covered, rng = [], np.random.default_rng(7)
    for seed in range(60):
        at = int(rng.integers(300, 700))
        monitor, found = venn.Monitor(CLASSES), None
        for prediction, y in labelled([0.85] * at + [0.35] * 300, np.random.default_rng(1000 + seed), says):
            if monitor.update(prediction, y):
                found = monitor.verdict()
                break
        assert found is not None
        if monitor.n > at:  # not a false alarm
            covered.append(found.change.lower <= at + 1 <= found.change.upper)
    assert len(covered) >= 57
    assert sum(covered) >= binom.ppf(1e-3, len(covered), 0.9)


# ------------------------------------------------------------------ the change point


@pytest.mark.parametrize("seed", range(6))
def test_the_change_point_of_events_is_the_naive_one(seed):
    rng = np.random.default_rng(seed)
    n, first = int(rng.integers(1, 50)), int(rng.integers(1, 9))
    claimed = rng.choice([0.25, 0.5, 0.75, 0.9375], size=n)  # of which 1 - p is exact
    happened = rng.random(n) < np.where(np.arange(n) < n // 2, claimed, 0.4)
    ratios = [naive.event_ratios(h, p) for h, p in zip(happened.tolist(), claimed.tolist(), strict=True)]
    np.testing.assert_allclose(np.exp(of_events(happened - claimed)), ratios, rtol=1e-12)
    found = change_point(of_events(happened - claimed), first + n - 1)
    assert (found.step, found.lower, found.upper) == naive.change_point(ratios, first)
    assert found.earlier == (found.lower == first > 1)


@pytest.mark.parametrize("began", [(), (20,), (11, 30, 90), (3, 9)])
@pytest.mark.parametrize("smallest", [0.0, 0.2])
def test_the_change_point_over_several_periods_is_the_naive_one(smallest, began):
    rng = np.random.default_rng(len(began))
    ps, first = rng.choice([smallest, 0.25, 0.5, 0.75, 1.0], size=35), 8
    ratios = [naive.p_value_ratios(p) for p in ps.tolist()]
    found = change_point(of_p_values(ps), first + 34, began)
    assert (found.step, found.lower, found.upper) == naive.change_point(ratios, first, began=began)
    assert found.earlier == (found.lower in (first, *(step + 1 for step in began)))


def of_one_event(rng, at, after):
    """Yield forecasts of .5, of which half come true, up to a step, and then other shares for some steps each."""
    for share, size in ((0.5, at), *after):
        for _ in range(size):
            yield Multiprobability([[0.5, 0.5]] * 2, CLASSES), CLASSES[int(rng.random() < share)]


@pytest.mark.parametrize("seed", range(3))
def test_a_change_before_a_training_is_not_dated_to_the_training(seed):
    """It shows otherwise to a predictor that has learned some of it: first too few come, later too many."""
    monitor, trace = venn.Monitor(CLASSES, restarts=(660,), run_length=1e9), Trace(True, 1000)
    for prediction, y in of_one_event(np.random.default_rng(seed), 600, ((0.2, 60), (0.85, 100))):
        trace.add((y == "yes") - 0.5)
        if monitor.update(prediction, y):
            break
    assert monitor.n > 660
    assert 570 < monitor.verdict().since < 630
    assert trace.change(monitor.n).step > 655  # as if nothing had been trained


def test_a_change_that_shows_from_a_training_on_may_be_older_and_says_so():
    monitor = venn.Monitor(CLASSES, restarts=(600,))
    for prediction, y in of_one_event(np.random.default_rng(0), 600, ((0.9, 100),)):
        monitor.update(prediction, y)
    verdict = monitor.verdict()
    assert verdict.state == "changed"
    assert verdict.change.earlier
    assert re.match(r"changed since about 6\d\d \(before \d+ to 6\d\d\): .* was right in .\d\d of ", verdict.details)


@pytest.mark.parametrize("seed", range(6))
def test_the_change_point_of_p_values_is_the_naive_one(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 50))
    ps = rng.choice([0.0, 0.01, 0.25, 0.5, 0.75, 1.0], size=n)
    ratios = [naive.p_value_ratios(p) for p in ps.tolist()]
    np.testing.assert_allclose(np.exp(of_p_values(ps)), ratios, rtol=1e-12)
    found = change_point(of_p_values(ps), n)
    assert (found.step, found.lower, found.upper, found.earlier) == (*naive.change_point(ratios, 1), False)


def test_impossible_and_certain_events_are_bounded():
    assert np.isfinite(of_events(np.array([-1.0, 0.0, 1.0, 0.5, -0.5]))).all()
    certain = of_events(np.array([0.0]))  # a certain event happened
    assert np.array_equal(certain[:, :10], np.zeros((1, 10)))
    assert certain[0, 10] == pytest.approx(log(1e-6), abs=1e-5)  # unless labels are exchanged, which is unlikely now


def test_exchanged_labels_of_sharp_predictions_begin_where_they_do():
    """A tilt of the odds alone finds some surprise long before: likely events then fail as often as unlikely come."""
    rng = np.random.default_rng(4)
    claimed = rng.choice([0.004, 0.996], 500)
    happened = (rng.random(500) < claimed) ^ (np.arange(500) >= 470)
    happened[[5, 113]] = claimed[[5, 113]] < 0.5  # surprises before
    found = change_point(of_events(happened - claimed), 500)
    assert 468 <= found.lower <= 471 <= found.upper <= 473


def test_the_memory_of_a_trace_is_bounded():
    trace = Trace(True, 5)
    for value in np.linspace(-1, 1, 20).tolist():
        trace.add(value)
    assert len(trace.state["numbers"]) == 5


# ---------------------------------------------------------------------- as plain data


@pytest.mark.parametrize("says", KINDS)
def test_a_verdict_is_plain_data_and_goes_on_with_the_state(says):
    monitor = watched(FLIP[:1100], says=says)
    verdict = monitor.verdict()
    plain = json.loads(json.dumps(verdict.plain(), allow_nan=False))
    assert plain == monitor.snapshot()["verdict"]
    assert Verdict.of(plain) == verdict == pickle.loads(pickle.dumps(verdict))
    again = unpack(pack(monitor))
    assert again.verdict() == verdict
    assert pack(again) == pack(monitor)


def test_a_verdict_that_an_older_version_wrote_is_read():
    """In a journal of 0.3, which reports and pages show, the details are called the sentence."""
    verdict = watched(FLIP[:1100]).verdict()
    plain = verdict.plain()
    assert Verdict.of(plain | {"sentence": plain.pop("details")}) == verdict


def test_asking_leaves_no_trace():
    one, other = venn.Monitor(CLASSES), venn.Monitor(CLASSES)
    for prediction, y in labelled(FLIP[:1200], np.random.default_rng(0)):
        one.update(prediction, y)
        one.verdict()
        other.update(prediction, y)
    assert pack(one) == pack(other)


def test_damaged_cases_and_traces_are_refused():
    monitor = watched(FLIP[:1100])
    (case,), trace = monitor.cases, monitor.state["evidence"][0].trace
    numbers = trace.state["numbers"]
    for one, bad in (
        (monitor, monitor.state | {"cases": 3}),
        (monitor, monitor.state | {"cases": [case, 3]}),
        (trace, {"numbers": numbers * np.inf}),
        (trace, {"numbers": "x"}),
    ):
        with pytest.raises(ValueError, match="must"):
            one.restore(bad)


def test_the_worst_of_several_is_named():
    verdicts = {
        "a": watched([0.8] * 400, 3).verdict(), "b": watched([0.8] * 20, 3).verdict(), "c": watched(FLIP).verdict(),
        "d": watched(FLIP).verdict(),
    }  # fmt: skip
    assert worst(verdicts).predictor == "c"
    assert str(worst(verdicts)) == f"c: {verdicts['c']}"
    assert worst({name: verdicts[name] for name in "ab"}).predictor == "b"
    assert worst({"a": verdicts["a"]}).state == "as claimed"
    with pytest.raises(ValueError, match="verdicts must hold at least one"):
        worst({})


# ------------------------------------------------------------------- the same everywhere


class Always(venn.predictors.Predictor):
    """Says the same at every step."""

    classes = CLASSES

    def predict_one(self, x):
        return Forecast([0.5, 0.5], CLASSES)

    def commit(self, x, y, prepared=None):
        """Learn nothing."""


def test_without_monitors_a_run_is_judged_by_its_latest_steps():
    online = venn.Online(Always())
    assert online.verdict().details == "too early to say: no example of 265"
    for step in range(300):
        online.ask([0.0])
        online.answer(online.asked, CLASSES[step % 2])
    verdict = online.verdict()
    assert (verdict.state, verdict.predictor) == ("as claimed", "")
    assert str(verdict) == "Go on: right in .50 of the last 300, as claimed."
    assert verdict.details.endswith("it says .50 and is right in .50 of all 300; nothing bets against it")


def test_console_record_and_run_tell_one_story(tmp_path, monkeypatch, undrawn):
    monkeypatch.chdir(tmp_path)
    stream = streams.flip_labels(streams.gaussians(540, classes=2, spread=0.4, seed=1), 360)
    rows = [f"{x[0]:.6f},{x[1]:.6f},{'no' if y else 'yes'}" for x, y in stream]
    (tmp_path / "flipped.csv").write_text("\n".join(["p,q,answer", *rows]) + "\n")
    fixed = ["--label", "answer", "--gamma", "0.5", "--C", "1"]
    names = ["--predictors", "leave_one_out,conformal"]
    watched = CliRunner().invoke(cli.main, ["monitor", "flipped.csv", *fixed, *names, "--out", "out"])
    last = watched.stdout.splitlines()[-1]
    told = r"verdict: \w+: Do not rely on it since step 3[56]\d: (wrong|right) in .\d\d of the last 1\d\d, "
    assert re.match(told, last)
    snapshots = json.loads((tmp_path / "out/snapshots.json").read_text())
    said = worst({name: Verdict.of(one["verdict"]) for name, one in snapshots.items()})
    assert last == f"verdict: {said}"
    kinds = "objects of classes 'no' and 'yes' look different, or their labels mean something else"
    assert said.details.endswith(f"; {kinds}")
    assert said.kind == kinds
    whole = last
    del snapshots["objects"], snapshots["classes"]  # a record holds no objects
    said = worst({name: Verdict.of(one["verdict"]) for name, one in snapshots.items()})
    last = f"verdict: {said}"
    again = CliRunner().invoke(cli.main, ["monitor", "out/record.npz"])
    assert again.stdout.splitlines()[-1] == last
    report = CliRunner().invoke(cli.main, ["report", "out/record.npz"])
    assert report.stdout.splitlines()[-1] == last
    replayed = CliRunner().invoke(cli.main, ["replay", "flipped.csv", *fixed, *names, "--shuffle", "none", "--json"])
    assert worst({n: Verdict.of(one) for n, one in json.loads(replayed.stdout)["verdicts"].items()}) == said
    assert replayed.stderr.splitlines()[-1] == last
    source = ["run", "--source", "flipped.csv", *fixed, *names, "--journal", "run.db", "--out", "said.jsonl"]
    ran = well(CliRunner().invoke(cli.main, [*source, "--set", "run.batch=1"]))
    assert re.sub(r"since .* \(question (\d+)\)", r"since step \1", ran.stderr.splitlines()[-1]) == whole
    news = [line for line in ran.stderr.splitlines() if line.startswith("verdict: leave_one_out: ")]
    assert [re.split(r"[:;] | since", line)[2] for line in news[:3]] == ["as claimed", "doubtful", "changed"]


def test_monitors_together_divide_the_level():
    monitors = together(["a", "b"], CLASSES, level=0.02, run_length=1000, window=50)
    for monitor in monitors.values():
        assert (monitor.level, monitor.run_length, monitor.window) == (0.01, 2000, 50)
    assert list(monitors) == ["a", "b"]
    with pytest.raises(ValueError, match="names must be different, at least one"):
        together(["a", "a"], CLASSES)
    with pytest.raises(ValueError, match="names must be different, at least one"):
        together([], CLASSES)
    with pytest.raises(TypeError, match="names must be a sequence of str, such as a panel"):
        together("ab", CLASSES)
    with pytest.raises(ValueError, match="level must be"):
        together(["a"], CLASSES, level=2)


def test_a_change_that_venn_abers_sees_late_rings_soon_with_conformal_p_values_beside():
    stream = streams.change_point(
        streams.gaussians(500, spread=0.6, seed=0), streams.gaussians(300, spread=0.6, turn=60, seed=1000), 400
    )
    machine = venn.LeastSquaresSVM(venn.RBF(0.5), C=1, classes=stream.classes)
    panel = venn.Panel(abers=venn.TransductiveVennAbers(machine), conformal=venn.Conformal(machine))
    monitors, alone = together(panel, stream.classes), venn.Monitor(stream.classes)
    first = {}
    for step, (x, y) in enumerate(stream.take(600), 1):
        predictions = panel.predict_one(x)
        panel.learn_one(x, y)
        if alone.update(predictions["abers"], y):
            first.setdefault("alone", step)
        for name, monitor in monitors.items():
            if monitor.update(predictions[name], y):
                first.setdefault("together", step)
    verdict = worst({name: monitor.verdict() for name, monitor in monitors.items()})
    assert verdict.state == "changed"
    assert 400 < first["together"] < first.get("alone", 1000)


def test_of_a_predictor_that_is_right_more_often_than_it_claims_nobody_is_told_to_retrain_it():
    """Labels that were exchanged for a while are right again: "Do not rely on it", and "Retrain", was said of that."""
    verdict = Verdict("changed", 40, None, "", "", "", lately=("right", 0.93, 0.8, 0.88, 1000), advice="Retrain it.")
    assert str(verdict) == "It claims too little since step 40: right in .93 of the last 1,000, claimed .88."
    worse = dataclasses.replace(verdict, lately=("right", 0.7, 0.8, 0.88, 1000))
    assert str(worse).startswith("Do not rely on it since step 40")
    assert str(worse).endswith("Retrain it.")


@pytest.mark.parametrize("of_event", [True, False])
def test_steps_without_a_number_tell_nothing(of_event):
    trace = Trace(of_event, 10)
    assert trace.told(5, "") is None
    trace.extend(np.full(6, np.nan))
    assert trace.told(5, "") is None
    trace.extend(np.full(5, 0.9))
    assert trace.told(5, "") is not None
