"""In which order tests run, and which are slow: both follow from how long they took, which durations.json keeps.

`python -m tools.durations` writes that file anew. A test that is not in it is short, or new.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

QUICK = 0.05  # seconds that one test with all its cases may take in the quick lane
CASES = 5  # of one test in the quick lane: to set one up costs as much as most of them take
WHOLE = ("test_contract.py", "test_monitor_contract.py")  # every public class: all cases are in the quick lane


class Took(NamedTuple):
    """Seconds of a test with all its cases, and how many these are."""

    seconds: float
    cases: int


@cache
def durations() -> dict[str, dict[str, Took]]:
    """Return what was measured, by file and test."""
    kept = json.loads(Path(__file__).with_name("durations.json").read_text())
    return {file: {test: Took(*took) for test, took in tests.items()} for file, tests in kept.items()}


@cache
def seconds(file: str) -> float:
    """Return how long a file of tests took."""
    return sum(took.seconds for took in durations().get(file, {}).values())


def quick(file: str, test: str, cases: int) -> set[int]:
    """Return which cases of a test are in the quick lane: as many as there is time for, evenly spread."""
    took = durations().get(file, {}).get(test)
    if file in WHOLE:
        return set(range(cases))
    affordable = min(cases, CASES if took is None else min(CASES, int(QUICK * took.cases / took.seconds)))
    return {(2 * i + 1) * cases // (2 * affordable) for i in range(affordable)}


def slow(items: Iterable) -> list:
    """Return those of the collected tests that are not in the quick lane."""
    cases = defaultdict(list)
    for item in items:
        cases[item.path.name, item.name.partition("[")[0]].append(item)
    found = []
    for (file, test), group in cases.items():
        kept = quick(file, test, len(group))
        found += [item for i, item in enumerate(group) if i not in kept]
    return found
