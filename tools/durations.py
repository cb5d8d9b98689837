"""Keep how long each test takes, in tests/durations.json: the order of the tests and the quick lane follow from it.

    python -m pytest -n 2 --dist loadfile --no-loadscope-reorder --junitxml times.xml
    python -m tools.durations times.xml

The first command runs the usual tests, on a machine with nothing else to do. Only tests that take some time in all
their cases are kept, under their names without parameters; one that was skipped keeps what it had.
"""

from __future__ import annotations

import argparse
import json
import re
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from pathlib import Path

from tools import ROOT

KEPT = ROOT / "tests" / "durations.json"
LEAST = 0.1  # seconds of a test in all its cases


def durations(report: Path) -> dict[str, dict[str, tuple[float, int]]]:
    """Return seconds and cases of each test of some length, by file, from a report in JUnit's format."""
    before = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    cases: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    for case in ElementTree.parse(report).iter("testcase"):
        module = case.get("classname", "").split(".")
        if module[0] == "tests":
            took = cases[f"{module[-1]}.py", case.get("name", "").partition("[")[0]]
            if case.find("skipped") is None:
                took.append(float(case.get("time", 0)))
    found: dict[str, dict[str, tuple[float, int]]] = {}
    for (file, test), took in sorted(cases.items()):
        if not took and test in before.get(file, {}):
            found.setdefault(file, {})[test] = before[file][test]
        elif sum(took) >= LEAST:
            found.setdefault(file, {})[test] = round(sum(took), 2), len(took)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("report", type=Path, help="what pytest wrote with --junitxml")
    files = durations(parser.parse_args().report)
    # A line for each test, so that a change shows which tests it changed.
    text = re.sub(r"\[\s+([\d.]+),\s+(\d+)\s+\]", r"[\1, \2]", json.dumps(files, indent=1))
    KEPT.write_text(f"{text}\n")
    total = sum(seconds for tests in files.values() for seconds, _ in tests.values())
    print(f"{sum(map(len, files.values()))} tests of {len(files)} files, {total:.0f} s")


if __name__ == "__main__":
    main()
