"""Say which lines of the core rooms the tests reach: with the compiler off, since compiled lines leave no trace.

    python -m tools.coverage_without_compiler
    python -m tools.coverage_without_compiler --lines tests/maps/test_abers.py venn/smoothing.py

Without the compiler some tests take minutes. A test that exceeds its seconds is cut short, and counts for nothing: a
line is covered when a test that came to its end, and passed, reached it; or when importing the package did. Of the
suite only those files are run that test the core rooms in this process. What each test reached, and how long it took,
is kept in a folder, for mutants.py to choose tests from. Needs the package coverage.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import pytest

from tools import ROOT

KEPT = Path(tempfile.gettempdir()) / "venn_coverage"

# The core rooms: folders or files of the package.
ROOMS = (
    "_compiled", "machines", "taxonomies", "predictors", "maps", "nonconformity", "prediction", "distribution",
    "monitors", "smoothing", "shifts", "schedules", "decisions", "labels", "online", "show/notify",
)  # fmt: skip

# Files that test other rooms: estimators, many processes, programs, pages, brokers, figures, streams.
ELSEWHERE = (
    "benitez_pena benitez_pena_machines calibrator campaign classifiers cli cli_columns cli_groups cli_monitor "
    "cli_scale compare compiling covtype docs examples figures frames kafka kill lanes live messages metrics mutants "
    "numbers_cli packaging page peers redis report river rows run run_fuzz run_settings scale_collection scale_keyed "
    "streams streams_csv streams_fetched streams_sets streams_synthetic svc tailing"
)


def suite() -> list[str]:
    """Return the files of the tests, and the rooms, whose docstrings have examples."""
    paths = sorted((ROOT / "tests").rglob("test_*.py"))
    elsewhere = {f"test_{name}" for name in ELSEWHERE.split()}
    files = [str(path.relative_to(ROOT)) for path in paths if path.stem not in elsewhere]
    return files + [source for room in ROOMS for source in sources(room)]


def function(test: str) -> str:
    """Return a test's name without its parameters.

    >>> function("tests/maps/test_abers.py::test_ties[3-rbf]")
    'tests/maps/test_abers.py::test_ties'
    """
    return test.partition("[")[0]


class Watch:
    """Gives each test a context of its own and some seconds, and keeps how it ended."""

    def __init__(self, coverage, seconds: float) -> None:
        self.coverage = coverage
        self.seconds = seconds
        self.ended: dict[str, str] = {}
        self.took: dict[str, float] = {}
        self.spent: Counter[str] = Counter()

    def over(self, number: int, frame: FrameType) -> None:
        # What measures the coverage holds a lock in frames of its own: wait until it is out of them.
        if "coverage" in Path(frame.f_code.co_filename).parts:
            signal.setitimer(signal.ITIMER_REAL, 0.01)
            return
        pytest.skip(f"takes more than {self.seconds:g} s without the compiler")

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        # What passed already, in a measurement that is added to, must not now be cut short.
        items[:] = [item for item in items if self.ended.get(item.nodeid) != "passed"]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.coverage.switch_context(item.nodeid)
        start = time.process_time()
        try:
            return (yield)
        finally:
            self.took[item.nodeid] = time.process_time() - start
            self.spent[function(item.nodeid)] += self.took[item.nodeid]
            self.coverage.switch_context("between")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Iterator[None]:
        if self.spent[function(item.nodeid)] > self.seconds / 2:
            pytest.skip("the other cases of this test took long enough without the compiler")
        return (yield from self.timed())

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        return (yield from self.timed())

    def timed(self) -> Iterator[None]:
        signal.signal(signal.SIGPROF, self.over)
        signal.signal(signal.SIGALRM, self.over)
        signal.setitimer(signal.ITIMER_PROF, self.seconds)
        signal.setitimer(signal.ITIMER_REAL, 10 * self.seconds)  # one that waits for another process
        try:
            return (yield)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.setitimer(signal.ITIMER_REAL, 0)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.outcome == "passed":
            if report.when == "call":
                self.ended[report.nodeid] = "passed"
        elif report.skipped and "without the compiler" in str(report.longrepr):
            self.ended[report.nodeid] = "cut"
        else:
            self.ended[report.nodeid] = report.outcome


def collect(files: list[str], folder: Path, seconds: float, more: bool, quick: bool) -> None:
    """Run tests with the compiler off; leave what they reached in the folder, perhaps beside what is there."""
    os.environ["NUMBA_DISABLE_JIT"] = "1"
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT))
    import coverage

    folder.mkdir(parents=True, exist_ok=True)
    measure = coverage.Coverage(data_file=str(folder / "coverage"), source=["venn"], config_file=False)
    watch = Watch(measure, seconds)
    if more:
        measure.load()
        watch.ended, watch.took = (json.loads((folder / "tests.json").read_text())[part] for part in ("ended", "took"))
    else:
        measure.erase()
    measure.start()
    try:
        # A loop divides as numpy does when compiled; interpreted it also warns.
        options = ["-q", "-p", "no:cacheprovider", "--tb=line", "-W", "ignore::RuntimeWarning"]
        options += ["-m", "not slow"] if quick else []
        pytest.main([*options, *files], plugins=[watch])
    finally:
        measure.stop()
        measure.save()
    (folder / "tests.json").write_text(json.dumps({"ended": watch.ended, "took": watch.took}))


def covered(folder: Path, room: str) -> dict[str, tuple[list[int], list[int]]]:
    """Return, for each file of a room, its lines and those of them that nothing reached that counts."""
    import coverage

    measure = coverage.Coverage(data_file=str(folder / "coverage"), config_file=False)
    measure.load()
    data = measure.get_data()
    ended = json.loads((folder / "tests.json").read_text())["ended"]
    wanted = {context for context in data.measured_contexts() if ended.get(context, "passed") == "passed"}
    files = {}
    for path in sources(room):
        _, lines, _, _, _ = measure.analysis2(str(ROOT / path))
        reached = data.contexts_by_lineno(str(ROOT / path))
        missed = [line for line in lines if not wanted.intersection(reached.get(line, ()))]
        files[path] = (lines, missed)
    return files


def sources(room: str) -> list[str]:
    """Return the files of a room."""
    place = ROOT / "venn" / room
    files = sorted(place.rglob("*.py")) if place.is_dir() else [place.with_suffix(".py")]
    return [str(file.relative_to(ROOT)) for file in files]


def spans(lines: list[int]) -> str:
    """Return line numbers as text, neighbours as one span.

    >>> spans([3, 4, 5, 9])
    '3-5 9'
    """
    runs: list[list[int]] = []
    for line in lines:
        if runs and line == runs[-1][1] + 1:
            runs[-1][1] = line
        else:
            runs.append([line, line])
    return " ".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def show(folder: Path, with_lines: bool) -> bool:
    """Print the table by room; return whether each reaches 95 percent."""
    kept = json.loads((folder / "tests.json").read_text())
    ends = list(kept["ended"].values())
    counts = ", ".join(f"{ends.count(end)} {end}" for end in ("passed", "cut", "failed", "skipped"))
    print(f"tests: {counts}; {sum(kept['took'].values()):.0f} s")
    for test in (test for test, end in kept["ended"].items() if end == "failed"):
        print(f"failed, and counts for nothing: {test}")
    print()
    print(f"{'room':<16}{'lines':>8}{'missed':>8}{'covered':>9}")
    enough, total, total_missed = True, 0, 0
    for room in ROOMS:
        files = covered(folder, room)
        lines = sum(len(all_) for all_, _ in files.values())
        missed = sum(len(missing) for _, missing in files.values())
        total, total_missed = total + lines, total_missed + missed
        enough = enough and missed <= 0.05 * lines
        print(f"{room:<16}{lines:>8}{missed:>8}{100 * (lines - missed) / lines:>8.1f}%")
        if with_lines:
            for path, (_, missing) in files.items():
                if missing:
                    print(f"    {path}: {spans(missing)}")
    print(f"{'all':<16}{total:>8}{total_missed:>8}{100 * (total - total_missed) / total:>8.1f}%")
    return enough


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", help="what to run instead of the usual files")
    parser.add_argument(
        "--seconds", type=float, default=2.0, help="processor time for a test; no more cases after half"
    )
    parser.add_argument("--folder", type=Path, default=KEPT, help="where the measurement is kept")
    parser.add_argument(
        "--more", action="store_true", help="add to the measurement that is kept what has not passed in it"
    )
    parser.add_argument("--quick", action="store_true", help="only the tests of the quick lane")
    parser.add_argument("--lines", action="store_true", help="list the lines that nothing reaches")
    parser.add_argument("--kept", action="store_true", help="show the measurement that is kept, run nothing")
    options = parser.parse_args()
    if not options.kept:
        collect(options.files or suite(), options.folder.resolve(), options.seconds, options.more, options.quick)
    sys.exit(0 if show(options.folder.resolve(), options.lines) else 1)


if __name__ == "__main__":
    main()
