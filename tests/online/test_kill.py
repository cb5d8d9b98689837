"""A process that may die at any moment, and nothing is lost, learned twice or different."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.program
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a Unix")
def test_deaths_change_nothing(tmp_path):
    """On the first examples of Car, each machine and predictor in turn; `python -m tools.kill` kills more, on all."""
    told = subprocess.run(
        [sys.executable, "-m", "tools.kill", "--examples", "60", "--kills", "24", "--folder", tmp_path],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    assert told.returncode == 0, told.stdout[-2000:] + told.stderr[-2000:]
    found = json.loads(told.stdout.splitlines()[-1])
    assert found["kills"] >= 20
    assert found["differences"] == 0


@pytest.mark.program
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a Unix")
def test_a_run_that_forgets_is_noticed(tmp_path):
    """The comparison can fail: a predictor whose state is not all in its checkpoint."""
    code = """
import os, sys
from tools import kill
from venn.online import checkpoint
whole = checkpoint.Snapshot
main = os.getpid()
def forgetful(thing):
    if os.getpid() != main:  # not the undisturbed run, and the one that looks at what is left
        thing = {**thing, "monitors": {name: one.fresh() for name, one in thing["monitors"].items()}}
    return whole(thing)
checkpoint.Snapshot = forgetful
sys.argv = ["kill.py", "--examples", "100", "--kills", "5", "--setups", "squares"]
kill.main()
"""
    told = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert told.returncode != 0
    assert re.search(r"squares: \w+ differs after [1-9]\d* deaths", told.stderr)
