"""In which order tests run, and in which lane: both follow from how long they took, which durations.json keeps.

`python -m tools.durations` writes that file anew. A test that is not in it is short, or new.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

QUICK = 0.05  # seconds that one test with all its cases may take in the quick lane
CASES = 5  # of one test in the quick lane: to set one up costs as much as most of them take
USUAL = 0.6  # seconds that the cases of one test may take where all tests are asked for; the others are programs
ENOUGH = 0.05  # seconds of a test after which a case must have what none before it had: a kernel, a class, not a seed
LONGEST = 2.1  # seconds of a case: what takes longer is a program as a whole
WHOLE = ("test_contract.py", "test_monitor_contract.py")  # every public class: all cases are in both lanes

Cases = list[set[Hashable]]  # of each case of a test, its values


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


def quick(file: str, test: str, cases: Cases) -> set[int]:
    """Return which cases of a test are in the quick lane: as many as there is time for, perhaps none."""
    took = durations().get(file, {}).get(test)
    if file in WHOLE:
        return set(range(len(cases)))
    return spread(len(cases), CASES if took is None else min(CASES, int(QUICK * took.cases / took.seconds)))


def usual(file: str, test: str, cases: Cases) -> set[int]:
    """Return which cases of a test run where all are asked for: one, more if there is time; of validity each value."""
    took = durations().get(file, {}).get(test)
    if file in WHOLE or took is None:
        return set(range(len(cases)))
    most, enough = (max(1, int(seconds * took.cases / took.seconds)) for seconds in (USUAL, ENOUGH))
    if "validity" in file:
        return covering(cases, len(cases), enough)
    return covering(cases, most, enough) if took.seconds / took.cases <= LONGEST else set()


def covering(cases: Cases, most: int, enough: int) -> set[int]:
    """Return at most so many numbers of cases that have all values, if they can, and evenly spread: or just enough."""
    first = spread(len(cases), most)
    left = sorted(range(len(cases)), key=lambda i: i not in first)
    kept: set[int] = set()
    seen: set[Hashable] = set()
    while left and len(kept) < most:
        best = max(left, key=lambda i: len(cases[i] - seen))
        if cases[best] <= seen and len(kept) >= enough:
            break
        left.remove(best)
        kept.add(best)
        seen |= cases[best]
    return kept


def spread(cases: int, most: int) -> set[int]:
    """Return at most so many numbers of cases, evenly spread."""
    few = min(cases, most)
    return {(2 * i + 1) * cases // (2 * few) for i in range(few)}


def values(item) -> set[Hashable]:
    """Return what a case of a test has of its own; another seed is nothing new."""
    given = item.callspec.params if hasattr(item, "callspec") else {}
    plain = str, int, float, type(None)
    return {(name, one if isinstance(one, plain) else id(one)) for name, one in given.items() if name != "seed"}


def beyond(lane: Callable[[str, str, Cases], set[int]], items: Iterable) -> list:
    """Return those of the collected tests that are not in a lane."""
    cases = defaultdict(list)
    for item in items:
        cases[item.path.name, item.name.partition("[")[0]].append(item)
    found = []
    for (file, test), group in cases.items():
        kept = lane(file, test, [values(item) for item in group])
        found += [item for i, item in enumerate(group) if i not in kept]
    return found
