"""A floor that the user sets: its bets by their definition, false alarms as seldom as proved, alarms that come."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import product
from math import log

import numpy as np
import pytest
from click.testing import CliRunner
from naive import floor as naive
from scipy.stats import binom

import venn
from venn.cli import main
from venn.monitors.floor import Accuracy, Cost, Coverage, Floor, FloorBets, FloorWatch
from venn.online.checkpoint import pack, unpack

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
            assert watch.change.lower <= 4001 <= watch.change.upper
    assert rung[0].detector == "ShiryaevRoberts"
    assert 4000 < rung[0].step < 4100
    assert not watch.below
    assert watch.bets.log < 0


# ------------------------------------------------------------------------------- in a monitor


def forecast(p):
    return venn.Forecast(np.array([1 - p, p]), CLASSES)


def fed(monitor, n=400, after=200, seed=0):
    rng = np.random.default_rng(seed)
    for step in range(n):
        monitor.update(forecast(0.9), "yes" if rng.random() < (0.95 if step < after else 0.5) else "no")
    return monitor


def test_a_monitor_says_below_the_floor_and_its_own_verdict_too():
    plain, monitor = fed(venn.Monitor(CLASSES)), fed(venn.Monitor(CLASSES, floor=0.8))
    alone = fed(venn.Monitor(CLASSES, sources=(), floor=0.8))
    verdict, before = monitor.verdict(), plain.verdict()
    assert (verdict.state, before.state, alone.verdict().state) == ("below the floor", "changed", "below the floor")
    assert str(verdict).startswith("below the floor, accuracy of at least .80, since about 2")
    assert str(verdict).endswith(str(before))
    assert verdict.since == monitor.floor_watch.change.step
    assert abs(verdict.since - 201) < 40
    others = [alarm for alarm in monitor.alarms if "floor" not in alarm.about]
    assert others == list(plain.alarms)
    assert venn.monitors.worst({"a": before, "b": verdict}).predictor == "b"
    shown = monitor.snapshot()
    assert shown["floor"]["below"]
    assert [one["name"] for one in shown["evidence"]][-2:] == ["floor, accuracy of at least .80"] * 2
    assert json.loads(json.dumps(shown)) == shown
    assert fed(venn.Monitor(CLASSES, sources=(), floor=0.2)).verdict().state == "as claimed"


def test_saved_and_resumed_goes_on_to_the_bit():
    whole, part = fed(venn.Monitor(CLASSES, floor=0.8), 400), fed(venn.Monitor(CLASSES, floor=0.8), 230)
    again = unpack(pack(part))
    rng = np.random.default_rng(0)
    steps = ["yes" if rng.random() < (0.95 if step < 200 else 0.5) else "no" for step in range(400)]
    for y in steps[230:]:
        again.update(forecast(0.9), y)
    assert pack(again) == pack(whole)
    with pytest.raises(ValueError, match="floor_watch must"):
        venn.Monitor(CLASSES, floor=0.8).restore(fed(venn.Monitor(CLASSES)).state)
    with pytest.raises(ValueError, match="bets must be those of"):
        FloorWatch(0.9).restore(FloorWatch(0.8).state)


def test_losses_of_every_sort():
    sets = venn.PredictionSet(np.array([0.03, 0.5]), CLASSES)
    for of, y, loss in (
        (Coverage(0.01), "no", 0.0), (Coverage(), "no", 1.0), (Coverage(), "yes", 0.0), ("accuracy", "no", 1.0),
        (Cost({"no": {"no": 0, "yes": 4}, "yes": {"no": 1, "yes": 0}}), "no", 0.25),
    ):  # fmt: skip
        monitor = venn.Monitor(CLASSES, floor=Floor(0.9, of=of))
        monitor.update(sets, y)
        assert monitor.floor_watch.trace.latest(1)[0] == loss
    number = venn.Monitor(venn.labels.Real(), floor=Floor(0.9, of="coverage"))
    number.update(venn.distribution.NormalDistribution(0.0, 1.0), 3.0)
    number.update(venn.distribution.NormalDistribution(0.0, 1.0), 1.0)
    assert number.floor_watch.trace.latest(2).tolist() == [1.0, 0.0]

    class Brier(Accuracy):
        name = "half the Brier score"

        def loss(self, step, kind, space):
            return step.brier / 2

    own = venn.Monitor(CLASSES, floor=Floor(0.9, of=Brier()))
    own.update(forecast(0.9), "no")
    assert own.floor_watch.trace.latest(1)[0] == pytest.approx(0.81)
    with pytest.raises(ValueError, match="has no sets"):
        venn.Monitor(CLASSES, floor=Floor(0.9, of="coverage")).update(forecast(0.9), "no")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Floor(1.0), "at must be such that a loss in"),
        (lambda: Floor("x"), "at must be a finite number"),
        (lambda: Floor(0.9, of="speed"), "of must be 'accuracy' or 'coverage'"),
        (lambda: Floor(0.9, chance=0), r"chance must be a number in \(0, 1\)"),
        (lambda: Coverage(0.07), "epsilon must be one of"),
        (lambda: Cost({"a": {"b": 1}}), "costs must have a cost for every"),
        (lambda: venn.Monitor(CLASSES, floor="high"), "floor must be a Floor or a number"),
        (lambda: FloorWatch(0.9).update(1.5), "loss must be a number in"),
        (lambda: FloorWatch(Floor(0.9, chance=0.5)).update(0.5, chance=0.1), "chance must be at least that"),
    ],
)
def test_refusals_name_what_must_hold(make, message):
    with pytest.raises((TypeError, ValueError), match=message):
        make()


# ------------------------------------------------------------------ forecaster and command line


def test_a_forecaster_watches_the_floor_of_its_forecast_and_does_not_begin_anew_for_it():
    model, rng = venn.Forecaster(CLASSES, first=0, floor=0.95), np.random.default_rng(0)
    for _ in range(150):
        x = rng.normal(size=2)
        model.predict_one(x)
        model.learn_one(x, CLASSES[rng.integers(2)])
    assert model.verdict().predictor == "forecast"
    assert model.verdict().state == "below the floor"
    assert model.predict_one([0.0, 0.0]).guaranteed.keys() == {"forecast", "intervals", "sets"}
    assert "began anew" not in str(model.monitors["intervals"].verdict())
    again = unpack(pack(model))
    assert again.floor == Floor(0.95)
    assert again.verdict() == model.verdict()


def test_the_command_line_rings_and_ends_with_a_code(tmp_path):
    def call(*arguments):
        return CliRunner().invoke(main, [*arguments], catch_exceptions=False)

    run = ("run", "--source", "car", "--shuffle", "0", "--steps", "150", "--predictors", "abers", "--no-drift")
    hook = ("--on-alarm", f"/bin/sh -c 'cat > {tmp_path}/alarm.json'", "--out", str(tmp_path / "out.jsonl"))
    for floor, code, state in ((".99", 3, "below the floor, accuracy of at least .990"), (".3", 0, "as claimed")):
        journal = str(tmp_path / f"{floor}.db")
        done = call(*run, "--journal", journal, "--floor", floor, *(hook if code else hook[2:]))
        assert done.exit_code == 0
        hook = (*hook[:3], str(tmp_path / "other.jsonl"))
        shown = call("monitor", journal, "--once")
        assert shown.exit_code == code
        assert (state in shown.output) == (code == 3)
    sent = json.loads((tmp_path / "alarm.json").read_text())
    assert sent["verdict"]["state"] == "below the floor"
    assert sent["about"] == "floor, accuracy of at least .990"
    replayed = call(
        "replay", "car", "--steps", "120", "--predictors", "abers", "--floor", ".99", "--out", str(tmp_path / "r")
    )
    assert "verdict: abers: below the floor" in replayed.output
    assert call("monitor", str(tmp_path / "r" / "record.npz"), "--floor", ".99").exit_code == 3
