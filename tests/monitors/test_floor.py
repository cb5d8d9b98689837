"""A floor that the user sets: its bets by their definition, false alarms as seldom as proved, alarms that come."""

import json
from fractions import Fraction
from itertools import pairwise, product
from math import log

import numpy as np
import pytest
from click.testing import CliRunner
from conftest import refused, well
from naive import floor as naive
from scipy.stats import binom

import venn
from venn.cli import main
from venn.monitors.floor import Floor, FloorWatch
from venn.monitors.floor_bets import FloorBets
from venn.monitors.losses import Accuracy, Cost, Coverage
from venn.monitors.verdict import Verdict
from venn.online.checkpoint import pack, unpack
from venn.online.lot import Draw, Settling

CLASSES = ("no", "yes")
SETTINGS = [(0.1, 1.0, False), (0.35, 1.0, False), (0.1, 0.2, False), (0.1, 0.2, True), (0.5, 0.3, True)]


def losses_by_lot(rng, shape, risk, chance, guessed):
    """Return what is bet on where each loss has the mean `risk` exactly: its guess differs from step to step."""
    guess = np.where(rng.random(shape) < 0.5, risk / 2, 3 * risk / 2) if guessed else np.zeros(shape)
    loss = rng.random(shape) < (guess if guessed else risk)
    return guess + (rng.random(shape) < chance) * (loss - guess) / chance


# -------------------------------------------------------------------------------- definition


@pytest.mark.parametrize(("risk", "chance", "guessed"), SETTINGS)
def test_capital_and_sum_are_those_of_the_definition_after_every_step(risk, chance, guessed):
    rng, bets, zs = np.random.default_rng(1), FloorBets(risk, chance, guessed), []
    each = naive.bets(risk, chance, guessed)
    assert bets.bets == pytest.approx(each)
    for _ in range(40):
        guess = rng.choice([0, 0.25, 1]) if guessed else 0.0
        zs.append(naive.by_lot(rng.choice([0, 0.5, 1]), guess, chance, rng.random() < chance))
        bets.update(zs[-1])
        assert bets.log == pytest.approx(log(naive.capital(zs, risk, each)), rel=1e-9, abs=1e-12)
        assert bets.log_sum == pytest.approx(log(naive.sum_of_capitals(zs, risk, each)), rel=1e-9, abs=1e-12)
    many = FloorBets(risk, chance, guessed)
    assert many.update_many(zs)[-1].tolist() == [bets.log, bets.log_sum]
    bets.forget()
    bets.update(zs[0])
    assert bets.log_sum == pytest.approx(log(naive.capital(zs[:1], risk, each)))


@pytest.mark.parametrize(("loss", "guess", "chance"), list(product((0, 0.5, 1), (0, 0.25, 1), (1, 0.5, 0.125))))
def test_what_stands_for_a_loss_has_its_mean(loss, guess, chance):
    """By enumeration of the draw, in fractions; at chance 1 and without a guess it is the loss itself, to the bit."""
    found = {}
    for asked in (True, False)[: 1 + (chance < 1)]:
        watch = FloorWatch(Floor(0.9, chance=chance))
        if guess and not watch.bets.guessed:
            return
        watch.update(loss if asked else None, guess)
        found[asked] = Fraction(float(watch.trace.latest(1)[0]))
        assert float(found[asked]) == naive.by_lot(loss, guess, chance, asked)
    share = Fraction(chance)
    assert share * found[True] + (1 - share) * found.get(False, 0) == Fraction(loss)


def test_the_largest_bet_loses_less_than_all():
    for risk, chance, guessed in SETTINGS:
        bets = FloorBets(risk, chance, guessed)
        assert 1 + max(bets.bets) * (bets.lowest - risk) > 0.05
        assert not guessed or max(bets.bets) < 1 / (risk + 1 / chance - 1)


# -------------------------------------------------------------------------- false alarms, true ones


def rings(zs, risk, chance, guessed, level, run_length):
    """Return of (streams, n) numbers how many streams rang: by K, by R."""
    found = np.zeros(2, int)
    for one in zs:
        path = FloorBets(risk, chance, guessed).update_many(one)
        found += (path >= (-log(level), log(run_length))).any(axis=0)
    return found


@pytest.mark.parametrize(("risk", "chance", "guessed"), SETTINGS)
def test_false_alarms_are_as_rare_as_proved_where_the_floor_is_just_kept(risk, chance, guessed):
    """At E L = r: K crosses 1/d with probability at most d, R its threshold t in n steps with n/t; exact binomial."""
    level, run_length, n, streams = 0.1, 5000, 1000, 400
    rng = np.random.default_rng(7)
    zs = losses_by_lot(rng, (streams, n), risk, chance, guessed)
    by_k, by_r = rings(zs, risk, chance, guessed, level, run_length)
    assert binom.sf(by_k - 1, streams, level) > 1e-3
    assert binom.sf(by_r - 1, streams, n / run_length) > 1e-3
    # A predictor that errs more often must fail the same test.
    worse = losses_by_lot(rng, (streams, n), risk + 0.15, chance, guessed)
    assert binom.sf(rings(worse, risk, chance, guessed, level, run_length)[0] - 1, streams, level) < 1e-9


def test_who_forgets_the_draw_fails():
    """Losses divided by the chance of their label, but of labelled examples alone: the floor is kept, and it rings."""
    risk, chance, level, streams = 0.1, 0.2, 0.1, 100
    rng = np.random.default_rng(3)
    zs = (rng.random((streams, 500)) < risk) / chance
    assert binom.sf(rings(zs, risk, chance, False, level, 1e9)[0] - 1, streams, level) < 1e-9


def test_below_since_the_start_is_as_rare_as_proved():
    level, streams, wrong = 0.2, 60, 0
    for seed in range(streams):
        watch = FloorWatch(Floor(0.7, level=level))
        low = False
        for loss in np.random.default_rng(seed).random(200) < 0.3:
            watch.update(float(loss))
            low = low or watch.since_start
        wrong += low
    assert binom.sf(wrong - 1, streams, level) > 1e-3
    watch = FloorWatch(0.7)
    for _ in range(100):
        watch.update(1.0)
    assert watch.since_start
    assert "since the start right in ." in watch.sentence


def test_it_rings_after_a_long_calm_and_recovers():
    rng, watch, rung = np.random.default_rng(0), FloorWatch(0.9, memory=300), []
    for step in range(6000):
        risk = 0.3 if 4000 <= step < 4600 else 0.05
        rung += watch.update(float(rng.random() < risk))
        if step == 4300:
            assert watch.below
            assert watch.case().change.lower <= 4001 <= watch.case().change.upper
    assert rung[0].detector == "ShiryaevRoberts"
    assert 4000 < rung[0].step < 4100
    assert not watch.below
    assert watch.bets.log < 0


def test_a_bad_start_is_not_taken_for_when_it_sank_again():
    watch = FloorWatch(0.8)
    for loss in [1.0] * 20 + [0.0] * 400:
        watch.update(loss)
    assert (watch.below, watch.case().change.step) == (True, 1)  # the alarm is still among the latest steps
    for _ in range(40):
        watch.update(1.0)
    assert watch.case().change.step == 421


# ------------------------------------------------------------------------------- of predictions


def forecast(p):
    return venn.Forecast(np.array([1 - p, p]), CLASSES)


def fed(watch, n=400, after=200, seed=0):
    rng = np.random.default_rng(seed)
    for step in range(n):
        watch.see(forecast(0.9), "yes" if rng.random() < (0.95 if step < after else 0.5) else "no")
    return watch


def test_it_is_a_watch_like_others():
    watch = fed(FloorWatch(0.8))
    verdict, shown = watch.verdict(), watch.snapshot()
    assert verdict.state == "below the floor"
    assert verdict.details.startswith("below the floor, accuracy of at least .80, since about 2")
    assert (
        str(verdict) == f"Below the floor, accuracy of at least .80, since step {verdict.since}. Look at what changed."
    )
    assert verdict.since == watch.case().change.step
    assert abs(verdict.since - 201) < 40
    assert watch.count == len(watch.alarms) == shown["alarms"]["count"] > 0
    assert [one.change.step for one in watch.cases] == [verdict.since]
    before = Verdict("changed", 201, None, "probabilities", "Ville", "changed since about 201")
    assert venn.monitors.worst({"a": before, "b": verdict}).predictor == "b"
    assert shown["floor"]["below"]
    assert [one["name"] for one in shown["evidence"]] == ["floor, accuracy of at least .80"] * 2
    assert json.loads(json.dumps(shown)) == shown
    assert fed(FloorWatch(0.2)).verdict().state == "as claimed"
    assert str(fed(FloorWatch(0.2), 20).verdict()).startswith("Wait, too early to say: floor, accuracy of at least .20")
    assert str(FloorWatch(0.9).verdict()) == "Wait, too early to say: no step of 265."


def test_a_change_ends_where_the_floor_is_kept_again():
    watch = fed(FloorWatch(0.8, memory=100))
    assert watch.lasting()
    for _ in range(watch.cases[0].last + 400 - watch.n + 100):
        watch.update(0.0)
    (case,) = watch.cases
    assert case.ended
    assert not watch.below


def test_saved_and_resumed_goes_on_to_the_bit():
    whole, part = fed(FloorWatch(0.8), 400), fed(FloorWatch(0.8), 230)
    again = unpack(pack(part))
    rng = np.random.default_rng(0)
    steps = ["yes" if rng.random() < (0.95 if step < 200 else 0.5) else "no" for step in range(400)]
    for y in steps[230:]:
        again.see(forecast(0.9), y)
    assert pack(again) == pack(whole)
    with pytest.raises(ValueError, match="bets must be one like"):
        FloorWatch(0.9).restore(FloorWatch(0.8).state)


def test_losses_of_every_sort():
    sets = venn.PredictionSet(np.array([0.03, 0.5]), CLASSES)
    for of, y, loss in (
        (Coverage(0.01), "no", 0.0), (Coverage(), "no", 1.0), (Coverage(), "yes", 0.0), ("accuracy", "no", 1.0),
        (Cost({"no": {"no": 0, "yes": 4}, "yes": {"no": 1, "yes": 0}}), "no", 0.25),
    ):  # fmt: skip
        watch = FloorWatch(Floor(0.9, of=of))
        watch.see(sets, y)
        assert watch.trace.latest(1)[0] == loss
    number = FloorWatch(Floor(0.9, of="coverage"))
    number.see(venn.distribution.NormalDistribution(0.0, 1.0), 3.0)
    number.see(venn.distribution.NormalDistribution(0.0, 1.0), 1.0)
    assert number.trace.latest(2).tolist() == [1.0, 0.0]

    class Brier(Accuracy):
        name = "half the Brier score"

        def loss(self, step, kind, space):
            return step.brier / 2

    own = FloorWatch(Floor(0.9, of=Brier()))
    own.see(forecast(0.9), "no")
    assert own.trace.latest(1)[0] == pytest.approx(0.81)
    with pytest.raises(ValueError, match="has no sets"):
        FloorWatch(Floor(0.9, of="coverage")).see(forecast(0.9), "no")


test_refusals_name_what_must_hold = refused(None, [
    (lambda: Floor(1.0), "at must be such that a loss in"),
    (lambda: Floor("x"), "at must be a finite number"),
    (lambda: Floor(0.9, of="speed"), "of must be 'accuracy' or 'coverage'"),
    (lambda: Floor(0.9, chance=0), r"chance must be a number in \(0, 1\]"),
    (lambda: Coverage(0.07), "epsilon must be one of"),
    (lambda: Cost({"a": {"b": 1}}), "costs must have a cost for every"),
    (lambda: FloorWatch("high"), "floor must be a Floor or a number"),
    (lambda: FloorWatch(0.9).see("yes", "yes"), "the predictor must predict"),
    (lambda: FloorWatch(0.9).see(forecast(0.9), "maybe"), "must be one of"),
    (lambda: FloorWatch(0.9, predictor=1), "predictor must be text"),
    (lambda: venn.Online(Says(), {"low": FloorWatch(0.9, predictor="b")}), "predictor of low must be one of Says"),
    (lambda: venn.Online(Says(), {"Says": FloorWatch(0.9)}), "a name that no predictor has"),
    (lambda: venn.Online(venn.Forecaster(CLASSES, floor=0.9), FloorWatch(0.8)), "a name that no predictor has"),
    (lambda: venn.Forecaster(CLASSES, floor=0.9, beside={"floor": Says()}), "beside must not hold 'floor'"),
    (lambda: FloorWatch(0.9).update(1.5), "loss must be a number in"),
    (lambda: FloorWatch(Floor(0.9, chance=0.5)).update(0.5, chance=0.1), "chance must be at least that"),
])  # fmt: skip


# ------------------------------------------------------------------ forecaster and command line


def test_a_forecaster_watches_the_floor_of_its_forecast_and_does_not_begin_anew_for_it():
    model, rng = venn.Forecaster(CLASSES, first=0, floor=0.95), np.random.default_rng(0)
    for _ in range(60):
        x = rng.normal(size=2)
        model.predict_one(x)
        model.learn_one(x, CLASSES[rng.integers(2)])
    assert model.verdict().predictor == "floor"
    assert model.verdict().state == "below the floor"
    assert model.predict_one([0.0, 0.0]).guaranteed.keys() == {"forecast", "intervals", "sets"}
    assert "began anew" not in str(model.monitors["intervals"].verdict())
    again = unpack(pack(model))
    assert again.floor == Floor(0.95)
    assert again.verdict() == model.verdict()


@pytest.mark.parametrize("name", ["forecast", "intervals"])
def test_a_floor_judges_what_was_said_though_the_label_comes_late(name):
    model = venn.Forecaster(CLASSES, first=0, floor=0.9 if name == "forecast" else None)
    monitors = {} if name == "forecast" else {"floor": FloorWatch(0.9, predictor=name)}
    online, rng, losses, now = venn.Online(model, monitors), np.random.default_rng(0), [], []
    for begin in range(0, 60, 20):
        xs = rng.normal(size=20)
        said = [online.ask([x], begin + i)[name].label for i, x in enumerate(xs)]
        for i, x in enumerate(xs):
            y = CLASSES[int(x > 0)]
            losses.append(float(said[i] != y))
            now.append(float(model[name].predict_one([x]).label != y))
            online.answer(begin + i, y)
    assert online.monitors["floor"].trace.latest(60).tolist() == losses != now


def test_the_command_line_rings_and_ends_with_a_code(tmp_path, undrawn):
    def call(*arguments):
        return CliRunner().invoke(main, [*arguments], catch_exceptions=False)

    run = ("run", "--source", "car", "--shuffle", "0", "--steps", "100", "--predictors", "abers", "--no-drift")
    hook = ("--on-alarm", f"/bin/sh -c 'cat > {tmp_path}/alarm.json'", "--out", str(tmp_path / "out.jsonl"))
    for floor, code, state in ((".99", 3, "Below the floor, accuracy of at least .990"), (".3", 0, "as claimed")):
        journal = str(tmp_path / f"{floor}.db")
        well(call(*run, "--journal", journal, "--floor", floor, *(hook if code else hook[2:])))
        hook = (*hook[:3], str(tmp_path / "other.jsonl"))
        shown = call("monitor", journal, "--once")
        assert shown.exit_code == code
        assert (state in shown.output) == (code == 3)
    page = tmp_path / "page.html"
    assert call("report", str(tmp_path / ".99.db"), "--out", str(page)).exit_code == 0
    assert 'class="status below-the-floor"' in page.read_text()
    sent = json.loads((tmp_path / "alarm.json").read_text())
    assert sent["verdict"]["state"] == "below the floor"
    assert sent["text"].endswith(". Look at what changed.")
    replayed = call(
        "replay", "car", "--steps", "120", "--predictors", "abers", "--floor", ".99", "--out", str(tmp_path / "r")
    )
    assert "verdict: floor: Below the floor" in replayed.output
    assert call("monitor", str(tmp_path / "r" / "record.npz"), "--floor", ".99").exit_code == 3


# -------------------------------------------------------------------------------- labels by lot


class Says(venn.predictors.Predictor):
    """Says .9 for "yes", and learns nothing but how many examples there were."""

    classes = CLASSES

    def __init__(self):
        self.n = 0

    def predict_one(self, x):
        return forecast(0.9 if x[0] < 5 else 0.6)

    def commit(self, x, y, prepared=None):
        self.n += 1


def machine():
    return venn.TransductiveVenn(venn.LeastSquaresSVM(venn.RBF(0.5), 1.0, CLASSES))


def asked(online, n, start=0, late=0, risk=0.1):
    """Ask, and answer what is wanted, some questions late; return what was wanted."""
    rng, found, held = np.random.default_rng(5), [], []
    for number in range(start + n):
        x, wrong = rng.normal(size=2), rng.random() < risk
        if number < start:
            continue
        answer = online.ask(x, number)
        wanted = True if online.labels is None else answer.wanted
        found.append(wanted)
        held += [(number, CLASSES[1 - wrong])] if wanted else []
        while len(held) > late:
            online.answer(*held.pop(0))
    for one in held:
        online.answer(*one)
    return found


def test_at_chance_one_the_floor_is_that_without_lots_to_the_bit():
    runs = []
    for labels in (None, venn.online.Lot(1.0)):
        online = venn.Online(Says(), FloorWatch(0.8), labels=labels)
        assert all(asked(online, 60))
        runs.append(online)
    one, other = (pack(run.monitors["floor"]) for run in runs)
    assert one == other
    assert runs[0].panel["Says"].n == runs[1].panel["Says"].n == 60


@pytest.mark.parametrize(("chance", "late"), [(0.5, 0), (0.3, 3), (0.7, 2)])
def test_the_floor_sees_every_question_in_order_and_the_predictor_learns_the_drawn_ones(chance, late):
    online = venn.Online(Says(), FloorWatch(0.8), labels=venn.online.Lot(chance, seed=2))
    wanted = asked(online, 80, late=late, risk=0.4)
    watch, rng, zs = online.monitors["floor"], np.random.default_rng(5), []
    for one in wanted:
        rng.normal(size=2)
        wrong = float(rng.random() < 0.4)
        zs.append(naive.by_lot(wrong, 0.1 if chance <= 0.5 else 0.0, chance, one))
    assert watch.trace.latest(80) == pytest.approx(zs, abs=1e-12)
    assert watch.bets.log == pytest.approx(
        log(naive.capital(zs, 0.2, naive.bets(0.2, chance, chance <= 0.5))), rel=1e-9
    )
    assert online.panel["Says"].n == online.answered == sum(wanted)
    assert binom.cdf(sum(wanted), 80, chance) > 1e-3 < binom.sf(sum(wanted) - 1, 80, chance)
    assert online.expired == 80 - sum(wanted)
    with pytest.raises(ValueError, match="id must be that of a question that waits"):
        online.answer(wanted.index(False), "yes")


def test_a_label_that_never_comes_holds_up_the_floor_until_it_is_given_up_as_no_loss():
    online = venn.Online(Says(), FloorWatch(0.8), patience=5, labels=venn.online.Lot(0.9))
    drawn = [online.ask([0.0, 0.0], number).wanted for number in range(5)]
    watch = online.monitors["floor"]
    assert drawn[0]
    assert watch.n == 0
    for number in range(5, 12):
        online.ask([0.0, 0.0], number)
    assert watch.n > 5
    assert watch.trace.latest(100).tolist() == [0.0] * watch.n


@pytest.mark.parametrize("stop", [20, 37])
def test_a_journal_goes_on_with_the_same_draws_to_the_bit(tmp_path, stop):
    def run(path, steps):
        wanted = []
        for start, n in steps:
            lot = venn.online.Lot(0.4)
            journal = venn.online.Journal(path, every=15)
            monitor = FloorWatch(0.8)
            with venn.Online(machine(), monitor, journal, labels=lot) as online:
                wanted += asked(online, n, start)
                state = pack(online.monitors["floor"]), online.answered, online.expired
        return wanted, state

    whole, parts = run(tmp_path / "a.db", [(0, 60)]), run(tmp_path / "b.db", [(0, stop), (stop, 60 - stop)])
    assert whole == parts
    for file in tmp_path.glob("b.db-state*"):
        file.unlink()
    assert run(tmp_path / "b.db", [(60, 0)])[1] == whole[1]  # all learned again: the draws are in the journal
    venn.online.verify(tmp_path / "b.db")
    with pytest.raises(venn.online.JournalError, match="labels"):
        venn.Online(machine(), FloorWatch(0.8), tmp_path / "b.db", labels=venn.online.Lot(0.5))
    # A run that is told again from the start passes over what was not drawn.
    stream = [venn_event for number in range(60) for venn_event in events(number)]
    with venn.Online(machine(), FloorWatch(0.8), tmp_path / "c.db", labels=venn.online.Lot(0.4)) as c:
        assert len(list(c.follow(stream))) == 60
        assert (pack(c.monitors["floor"]), c.answered, c.expired) == whole[1]


class Event:
    def __init__(self, **given):
        vars(self).update(given)


def events(number):
    rng = np.random.default_rng(5)
    for _ in range(number + 1):
        x, wrong = rng.normal(size=2), rng.random() < 0.1
    return Event(id=number, x=x), Event(id=number, y=CLASSES[1 - wrong])


def test_chances_by_object_are_refused_where_something_is_guaranteed_and_weighed_where_not():
    lot = venn.online.Lot(0.2, by=lambda x: 0.2 if x[0] < 0 else 1.0)
    online = venn.Online(machine(), labels=lot)
    with pytest.raises(ValueError, match=r"TransductiveVenn guarantees .* would need weights"):
        online.ask([0.0])
    assert online.asked == 0
    weighed = venn.Online(Says(), FloorWatch(0.8), labels=lot)
    asked(weighed, 50, risk=1.0)
    found = set(np.round(weighed.monitors["floor"].trace.latest(50), 9))
    assert found <= {0.1, round(0.1 + 0.9 / 0.2, 9), 1.0}
    for bad in (0.1, 1.5, "often"):
        with pytest.raises((TypeError, ValueError), match="by must"):
            venn.online.Lot(0.2, by=lambda x, bad=bad: bad).draw(1, [0.0])
    for make in (lambda: venn.online.Lot(0), lambda: venn.Online(Says(), labels=0.1)):
        with pytest.raises((TypeError, ValueError), match="must be a"):
            make()


def test_what_is_claimed_without_labels_is_said_and_that_nothing_is_proved(tmp_path):
    with venn.Online(machine(), venn.Monitor(CLASSES), tmp_path / "run.db") as online:
        asked(online, 40)
        before = online.verdict().details
        said = [online.ask([float(number % 2) * 9, 0.0], 100 + number) for number in range(40)]
        verdict = online.verdict().details
    lower, upper = (f"{np.mean([getattr(one, end) for one in said]):.2f}".lstrip("0") for end in ("lower", "upper"))
    assert verdict.removeprefix(before) == (
        f"; for 40 questions that wait for their label it claims {lower} to {upper}; nothing is proved of that if the "
        "stream has changed"
    )
    with venn.online.Watch(tmp_path / "run.db") as watch:
        assert watch.verdict().details == verdict
        assert watch.snapshot("TransductiveVenn")["told"]["unlabelled"]["questions"] == 40
    well(CliRunner().invoke(main, ["report", str(tmp_path / "run.db"), "--out", str(tmp_path / "page.html")]))
    assert (
        f"40 questions without a label: {lower} to {upper} claimed. Nothing is proved"
        in (tmp_path / "page.html").read_text()
    )


def test_questions_that_hold_up_the_floor_are_in_the_checkpoint(tmp_path):
    def run(path, cuts):
        rng, wanted, found = np.random.default_rng(0), [], None
        for start, stop in pairwise(cuts):
            with venn.Online(machine(), FloorWatch(0.8), path, labels=venn.online.Lot(0.4)) as online:
                for number in range(start, stop):
                    wanted += [number] if online.ask(rng.normal(size=2), number).wanted else []
                if stop == cuts[-1]:
                    for number in reversed(wanted):
                        online.answer(number, CLASSES[number % 3 > 0])
                watch = online.monitors["floor"]
                found = pack(watch), watch.n
        return found

    whole = run(tmp_path / "a.db", (0, 30))
    assert whole == run(tmp_path / "b.db", (0, 11, 24, 30))
    assert whole[1] == 30


# ------------------------------------------------------------------------------- at the edges


def test_before_the_first_step_and_after_forgetting_nothing_is_summed():
    bets = FloorBets(0.1)
    assert (bets.log, bets.log_sum) == (0.0, -1e308)
    bets.update(1.0)
    log = bets.log
    bets.forget()
    assert (bets.log, bets.log_sum) == (log, -1e308)
    assert FloorWatch(0.9).sentence == ""
    assert FloorWatch(0.9).mean(5) == 0.0
    with pytest.raises(ValueError, match="zs must be"):
        bets.update_many([0.5, 2.0])


def test_a_mean_by_lot_is_an_estimate_between_none_and_all_and_evidence_has_thresholds():
    watch = FloorWatch(Floor(0.9, chance=0.25))
    watch.update(1.0)
    assert watch.trace.latest(1).tolist() == [4.0]
    assert watch.mean(10) == 1.0
    assert [one["threshold"] for one in watch.evidence()] == pytest.approx([2.0, 5.0])


def test_what_is_settled_is_forgotten():
    settling = Settling()
    for number in (1, 2):
        settling.ask(number, Draw(0.5, number == 1), {"one": 0.5})
    assert list(settling.settled()) == []
    settling.resolve(1, {"one": 1.0})
    assert [losses for _, losses in settling.settled()] == [{"one": 1.0}, None]
    assert settling.state == {"queue": [], "losses": []}
