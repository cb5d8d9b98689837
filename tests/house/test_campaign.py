"""The campaign itself: each attack makes its trials, what is planted is counted, and a worker may die or hang."""

import faulthandler
import json
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from centroids import NearestCentroid

import venn
from tools.campaign import driver, fuzzing, hostile, shuffling

unix = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a Unix")


@pytest.mark.program
@unix
@pytest.mark.parametrize("attack", driver.ATTACKS)
def test_each_attack_finds_nothing_in_a_few_trials(attack):
    compared = 0
    for number in range(1 if attack.startswith(("kill", "fleet")) else 3):
        tally = driver.attempt(attack, driver.trial_seed(1, attack, number))
        assert tally.failures == []
        compared += tally.compared
    assert compared > 0


def test_seeds_are_fixed_and_all_different():
    seeds = {driver.trial_seed(1, attack, number) for attack in driver.ATTACKS for number in range(200)}
    assert len(seeds) == 200 * len(driver.ATTACKS)
    assert driver.trial_seed(1, "fuzz", 0) == driver.trial_seed(1, "fuzz", 0) != driver.trial_seed(2, "fuzz", 0)


# Planted faults ------------------------------------------------------------------------------------------------------


def failed(attack, most=60):
    """Return what fails first."""
    trial = driver.load(attack) if isinstance(attack, str) else attack
    for number in range(most):
        tally = driver.made(trial, number)
        if tally.failures:
            return tally.failures[0][0]
    return None


def test_a_wrong_score_is_found(monkeypatch):
    real = NearestCentroid.hypotheses

    def wrong(machine, x):
        answer = real(machine, x)
        scores = answer.leave_one_out
        answer.leave_one_out = lambda j: scores(j) * (1 + 1e-4)
        return answer

    monkeypatch.setattr(shuffling, "WEIGHTED", {})
    monkeypatch.setattr(shuffling, "PLAIN", ("centroid",))
    monkeypatch.setattr(NearestCentroid, "hypotheses", wrong)
    assert "centroid" in failed("shuffle")


def test_a_predictor_that_counts_wrongly_is_found(monkeypatch):
    real = venn.TransductiveVennAbers.predict_one
    monkeypatch.setattr(
        venn.TransductiveVennAbers, "predict_one",
        lambda model, x: venn.prediction.ClassIntervals(real(model, x).pairs * 0.999, model.classes),
    )  # fmt: skip
    assert failed("shuffle").startswith("abers")


def test_a_refusal_that_changes_something_is_found(monkeypatch):
    real = venn.monitors.Power.update

    def forgetful(martingale, p):
        try:
            return real(martingale, p)
        except (TypeError, ValueError):
            real(martingale, 0.5)
            raise

    monkeypatch.setattr(venn.monitors.Power, "update", forgetful)
    assert "refused, and something has changed" in failed(partial(fuzzing.call_method, owner="Power"))


def test_another_exception_and_a_warning_are_found(monkeypatch):
    def crude(gamma):
        return 1 / np.float64(gamma) if isinstance(gamma, int | float) else gamma.nothing

    monkeypatch.setattr(fuzzing, "FUNCTIONS", {"crude": crude})
    found = set()
    for number in range(40):
        tally = driver.made(partial(fuzzing.call_function, name="crude"), number)
        found.update(what for what, _ in tally.failures)
    assert any("AttributeError" in what for what in found)
    assert any("a warning, RuntimeWarning" in what for what in found)


def test_hostile_values_are_made_anew():
    for name, make in hostile.VALUES.items():
        first, second = make(), make()
        assert type(first) is type(second), name


# The driver ----------------------------------------------------------------------------------------------------------


def fine(rng, tally):
    tally.same(rng.random() < 1, "never")
    tally.note("a note")


def wrong(rng, tally):
    tally.same(False, "planted", "its detail")
    tally.remark("crude words")


def breaks(rng, tally):
    raise LookupError("planted")


def dies(rng, tally):
    faulthandler.disable()  # of pytest, which would tell of it
    os.kill(os.getpid(), signal.SIGSEGV)


def hangs(rng, tally):
    time.sleep(600)


@pytest.fixture
def planted(monkeypatch):
    attacks = {"fine": fine, "wrong": wrong, "breaks": breaks, "dies": dies, "hangs": hangs}
    monkeypatch.setattr(driver, "load", attacks.__getitem__)
    monkeypatch.setattr(driver, "ATTACKS", {name: ("", "", 2) for name in attacks})
    return list(attacks)


@unix
@pytest.mark.program
def test_everything_is_counted_and_nothing_ends_the_campaign(planted, tmp_path):
    report = tmp_path / "deep" / "report.json"
    campaign = driver.Campaign(planted, 5, report, turn=3.0, most=2)
    said = []
    campaign.run(60, said.append)
    found = json.loads(report.read_text())
    assert {name: book["trials"] for name, book in found["attacks"].items()} == dict.fromkeys(planted, 2)
    assert found["attacks"]["fine"] == {
        **found["attacks"]["fine"], "comparisons": 2, "failed trials": 0, "notes": {"a note": 2},
    }  # fmt: skip
    by_attack = {entry["attack"]: entry for entry in found["failures"]}
    assert set(by_attack) == {"wrong", "breaks", "dies", "hangs"}
    assert by_attack["wrong"]["what"] == "planted"
    assert by_attack["wrong"]["detail"] == "its detail"
    assert by_attack["wrong"]["seeds"] == [driver.trial_seed(5, "wrong", 0), driver.trial_seed(5, "wrong", 1)]
    assert by_attack["breaks"]["what"].startswith("LookupError")
    assert by_attack["dies"]["what"] == f"the process ends with status {-signal.SIGSEGV}"
    assert by_attack["hangs"]["what"] == "hangs for 2 s"
    assert [entry["what"] for entry in found["remarks"]] == ["crude words"]
    assert "FAILURE dies" in campaign.table()
    assert "4 kinds of failure" in said[-1]


@unix
@pytest.mark.program
def test_the_command_replays_a_trial_and_ends_at_ctrl_c(tmp_path):
    seed = driver.trial_seed(1, "shuffle", 0)
    command = [sys.executable, "-m", "tools.campaign"]
    root = Path(__file__).parents[2]
    told = subprocess.run(
        [*command, "--attack", "shuffle", "--trial-seed", str(seed)], cwd=root, capture_output=True, text=True
    )
    assert told.returncode == 0, told.stderr
    assert " comparisons, notes" in told.stdout
    report = tmp_path / "report.json"
    running = subprocess.Popen(
        [*command, "--attacks", "shuffle", "--turn", "0.2", "--seconds", "600", "--report", report],
        cwd=root, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    running.stdout.readline()  # the first turn is over
    running.send_signal(signal.SIGINT)
    rest, _ = running.communicate(timeout=60)
    assert running.returncode == 0, rest
    assert "shuffle" in rest
    assert json.loads(report.read_text())["attacks"]["shuffle"]["trials"] > 0
