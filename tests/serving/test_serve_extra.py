"""Without the packages of an extra all that does not need them works, and what does names it."""

import json
import subprocess
import sys

from page_cases import write

HIDING = """
import json, sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("starlette", "uvicorn", "httptools", "mlflow"):
            raise ModuleNotFoundError(f"No module named {name!r}")
sys.meta_path.insert(0, Hidden())
from click.testing import CliRunner
from venn.cli import main
for arguments in sys.argv[1:]:
    told = CliRunner().invoke(main, arguments.split())
    print(json.dumps([told.exit_code, told.output]))
"""
WORK = ("datasets", "metrics run.db --once", "monitor run.db --once", "report run.db", "serve --help",
        "run --source car --steps 3 --journal new.db --quiet --check")  # fmt: skip
NEED = ("metrics run.db --port 0", "monitor run.db --serve --port 0", "serve --like car --journal new.db --port 0")


def test_only_what_serves_needs_the_extra(tmp_path):
    write(tmp_path / "run.db", 8, "abers")
    program = [sys.executable, "-c", HIDING, *WORK, *NEED]
    told = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    found = [json.loads(line) for line in told.stdout.splitlines()]
    assert len(found) == len(WORK) + len(NEED), told.stderr
    for command, (status, said) in zip((*WORK, *NEED), found, strict=True):
        assert status == (0 if command in WORK else 1), (command, said)
        if command in NEED:
            assert "pip install 'vennstream[serve]'" in said
            assert said.count("\n") == 1
