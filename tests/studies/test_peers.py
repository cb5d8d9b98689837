"""The comparison with peers: its figures are what they are called, and it runs whatever is installed."""

import importlib.util
import json
import math
import os
import subprocess
import sys
from itertools import accumulate
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "peers.py"
MODULES = {
    "online-cp": "online_cp", "crepes": "crepes", "mapie": "mapie", "venn-abers": "venn_abers", "river": "river",
    "scikit-learn": "sklearn",
}  # fmt: skip


@pytest.fixture
def measure(monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    return importlib.import_module("side_by_side.measure")


def test_the_limits_are_the_quantiles_of_the_number_of_errors(measure):
    n, level = 60, 0.1
    law = [math.comb(n, k) * level**k * (1 - level) ** (n - k) for k in range(n + 1)]
    up_to = list(accumulate(law))
    least, most = measure.limits(n, level, 0)
    assert least == next(k for k in range(n + 1) if up_to[k] >= 0.005)
    assert most == next(k for k in range(n + 1) if up_to[k] >= 0.995)
    # One calibration set for all: more spread, the same mean.
    fixed = measure.limits(n, level, 99)
    assert fixed[0] <= least
    assert fixed[1] > most


def test_the_deviation_reads_the_row_of_the_true_label(measure):
    rng = np.random.default_rng(0)
    n, c = 50, 3
    rows = rng.dirichlet(np.ones(c), size=(n, c))
    y = rng.integers(0, c, n)
    sums = [sum((y[i] == k) - rows[i][y[i]][k] for i in range(n)) for k in range(c)]
    expected = max(abs(total) for total in sums) / math.sqrt(n * math.log(2 * c / 0.01) / 2)
    assert measure.deviation({"rows": rows}, y) == pytest.approx(expected)


def test_the_deviation_of_pairs_reads_the_true_hypothesis(measure):
    rng = np.random.default_rng(1)
    n, c = 50, 3
    pairs = rng.random((n, c, 2))
    y = rng.integers(0, c, n)
    sums = [sum((y[i] == k) - pairs[i][k][int(y[i] == k)] for i in range(n)) for k in range(c)]
    expected = max(abs(total) for total in sums) / math.sqrt(n * math.log(2 * c / 0.01) / 2)
    assert measure.deviation({"pairs": pairs}, y) == pytest.approx(expected)


def test_losses_by_hand(measure):
    task = SimpleNamespace(
        y=np.array([0, 1]), probabilities=np.array([[1.0, 0.0], [0.5, 0.5]]), size=SimpleNamespace(calibrate=0)
    )
    row = measure.figures({"proba": np.array([[0.5, 0.5], [1.0, 0.0]])}, task, False)
    assert row["log_loss"] == pytest.approx((math.log(2) - math.log(1e-15)) / 2)
    assert row["brier"] == pytest.approx((0.5 + 2) / 2)
    assert (row["zeros"], row["accuracy"], row["off"]) == (1, 0.5, 0.5)
    row = measure.figures({"p": np.array([[0.04, 0.5], [0.3, 0.15]])}, task, False)
    assert [row[f"errors_{level}"] for level in (0.05, 0.1, 0.2)] == [1, 1, 2]
    assert [row[f"size_{level}"] for level in (0.05, 0.1, 0.2)] == [1.5, 1.5, 1.0]


@pytest.mark.program
def test_it_runs_whatever_is_installed():
    command = [sys.executable, str(SCRIPT), "--quick", "--jobs", "^(venn_svm|drift|traps)$"]
    environment = {**os.environ, "PYTHONPATH": str(SCRIPT.parent.parent)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=True)
    head, *rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert head["quick"]
    assert {row["job"] for row in rows} == {"venn_svm", "drift", "traps"}
    for row in rows:
        installed = row["library"] == "ours" or importlib.util.find_spec(MODULES[row["library"]])
        assert row.get("reason") == (None if installed else "not installed"), row
        if row["job"] == "venn_svm" and installed:
            assert 0 <= row["width"] <= 1
            assert row["deviation"] < 1
    ours = next(row for row in rows if row["job"] == "traps" and row["library"] == "ours")["cells"]
    # Two of the cells have an answer by definition.
    assert next(cell for question, cell in ours.items() if "equal scores" in question).count("(0.2475, 0.2574)") == 2
    assert ours["An object with NaN"].startswith("ValueError")
