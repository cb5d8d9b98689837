"""Without the packages of an extra all that does not need them works, and what does names it."""

from __future__ import annotations

import subprocess
import sys

import pytest
from page_cases import write

HIDING = """
import sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("starlette", "uvicorn", "httptools", "mlflow"):
            raise ModuleNotFoundError(f"No module named {name!r}")
sys.meta_path.insert(0, Hidden())
from venn.cli import main
main(sys.argv[1:], prog_name="venn")
"""


@pytest.mark.parametrize(
    ("arguments", "works"),
    [
        ("datasets", True), ("metrics run.db --once", True), ("monitor run.db --once", True), ("report run.db", True),
        ("run --source car --steps 3 --journal new.db --quiet --check", True),
        ("metrics run.db --port 0", False), ("monitor run.db --serve --port 0", False),
        ("serve --like car --port 0", False),
    ],
)  # fmt: skip
def test_only_what_serves_needs_the_extra(arguments, works, tmp_path):
    write(tmp_path / "run.db", 8)
    program = [sys.executable, "-c", HIDING, *arguments.split()]
    told = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert told.returncode == (0 if works else 1), told.stderr
    if not works:
        assert "pip install 'vennstream[serve]'" in told.stderr
        assert told.stderr.count("\n") == 1
