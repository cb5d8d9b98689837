"""What do all the benchmarks measure today, and what has moved since the kept figures?

    STREAMS_DATA=folder python benchmarks/all.py                    # all, three times each; about half an hour
    python benchmarks/all.py --only abers,banks --repeat 5          # some
    python benchmarks/all.py --keep --markdown docs/benchmarks.md   # these figures are kept from now on

Every benchmark of a speed that a page quotes runs in its own process, in turn, with settings that take at most a minute
or two. The table has the figures that the pages give: the median over the repetitions, the spread (smallest and
largest), a ratio if the script measures one, and the median kept in `benchmarks/kept.json` with its change. A figure
has *moved* when it differs by more than 10 % and the two spreads do not overlap. A benchmark that fails is in the table
with its last line, and the exit status is 1. Studies, whose pages give their day, are left out. Nobody else should use
the machine. After `--keep`, `python -m tools.figures` writes the kept figures into the pages that give them.
"""

import argparse
import datetime
import json
import math
import os
import platform
import re
import statistics
import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from rich.console import Console
from rich.table import Table

HERE = Path(__file__).parent
KEPT = HERE / "kept.json"
PACKAGES = ("numpy", "scipy", "scikit-learn", "numba")


@dataclass(frozen=True)
class Figure:
    """A number of a benchmark's JSON line: its place there, and its unit."""

    path: str
    unit: str
    more: bool = False
    "Whether more is better."

    def read(self, lines):
        """Return it from the printed lines; its path begins with the number of a line: `0.rows.2.n`."""
        value = lines
        for part in self.path.split("."):
            value = value[int(part)] if isinstance(value, list) else value[part]
        return None if value is None else float(value)


@dataclass(frozen=True)
class Benchmark:
    """A command, without `python benchmarks/`, and the figures read from its output."""

    command: str
    figures: tuple[Figure, ...]

    @property
    def name(self):
        return self.command.split(".py", maxsplit=1)[0]


#: A command, and below it the place and unit of each figure; a unit that begins with + means that more is better.
TABLE = """\
refitting.py --samples 6
    0.hinge.seconds: s the replay, hinge loss | 0.hinge.ratio: +times as fast as SVC, c x c fits a step |
    0.squares.machine_seconds: s the replay, least squares | 0.squares.abers_seconds: s with Venn-Abers |
    0.squares.ratio: +times as fast as an inverse a step
window.py
    0.steps_a_second: +steps a second | 0.ratio: +times as fast as KernelRidge
abers.py
    0.us_a_step: µs a step at 1e4 | 0.ratio: +times as fast as two refits
inductive.py
    0.examples_a_second: +examples a second | 0.ratio: +times as fast as by hand
regression.py
    0.beside_the_machine_us: µs beside the machine's own |
    0.times_faster_than_refitting: +times as fast as refitting
given_scorers.py
    0.forest.one: +rows a second, one at a time, forest | 0.forest.ratio_one: +times as fast as scikit-learn, forest |
    0.forest.ratio_block: +times as fast in blocks, forest |
    0.trees.one: +rows a second, one at a time, histogram boosting |
    0.trees.ratio_one: +times as fast as scikit-learn, histogram boosting |
    0.trees.ratio_block: +times as fast in blocks, histogram boosting
banks.py
    0.bank of 3: times one machine, V-mix on 3 | 0.bank of 12: times one machine, V-mix on 12 |
    0.bank of 12, 2 threads: the same, on 2 threads |
    0.two threads, classes.4: +times as fast on 2 threads, hinge, 4 classes |
    0.two threads, classes.10: +times as fast on 2 threads, hinge, 10 classes
journal.py
    0.slower_than_memory.journal: times a step in memory, journaled |
    0.slower_than_memory.transactions: times a step in memory, transactions of 64 |
    0.verify_us_an_event: µs an event, verify
collection.py --rows 4000000
    0.rows_per_second.here: +rows a second, here | 0.rows_per_second.2 workers: +rows a second, 2 workers
forecaster_cost.py
    0.seconds_2000: s, the forecaster's first 2000 steps, 2 classes |
    0.forest_seconds_2000: s, a forest fitted anew every 150, 2 classes |
    0.us_a_step.1000: µs a step, to 1000, 2 classes | 0.us_a_step.1900: µs a step, to 1900, 2 classes |
    0.us_a_step.2100: µs a step, to 2100, 2 classes | 0.longest_ms: ms, the longest stop, 2 classes |
    1.seconds_2000: s, the forecaster's first 2000 steps, numbers |
    1.forest_seconds_2000: s, a forest fitted anew every 150, numbers |
    1.us_a_step.1000: µs a step, to 1000, numbers | 1.us_a_step.1900: µs a step, to 1900, numbers |
    1.us_a_step.2100: µs a step, to 2100, numbers | 1.longest_ms: ms, the longest stop, numbers
floors.py --repeat 1
    0.squares.times_floor: times its floor, squares | 0.classwise.times_floor: times its floor, classwise |
    0.hinge.times_floor: times its floor, hinge | 0.abers.times_floor: times its floor, abers |
    0.counting.times_floor: times its floor, counting | 0.panel.times_floor: times its floor, panel |
    0.journal.times_floor: times its floor, journal
footprint.py
    0.import_ms: ms, import venn | 0.command_ms: ms, venn --version |
    0.first_replay_s.cold: s, the first replay, compiling | 0.first_replay_s.cached: s, the first replay, cached |
    0.bytes_an_example.OneVsAllSVM: bytes an example, hinge, n = 1000 |
    0.bytes_an_example.LeastSquaresSVM: bytes an example, squares, n = 1000 |
    0.bytes_an_example.VennAbers: bytes an example, inductive Venn-Abers
certificates.py --streams 300
    0.worst_over_tolerance: of the tolerance at worst
"""
COMMANDS = re.split(r"\n(?! )", TABLE.rstrip())
BENCHMARKS = tuple(
    Benchmark(command, tuple(
        Figure(path, unit.removeprefix("+"), unit.startswith("+"))
        for path, unit in (one.strip().split(": ", maxsplit=1) for one in figures.split("|"))
    ))
    for command, figures in (one.split("\n", maxsplit=1) for one in COMMANDS)
)  # fmt: skip


def run(benchmark):
    """Run it once; return the objects of its JSON lines."""
    script, *more = benchmark.command.split()
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, HERE / script, *more], capture_output=True, text=True, env=environment)
    if done.returncode:
        raise RuntimeError((done.stderr.strip().splitlines() or ["no message"])[-1])
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def machine():
    """Return the machine and the versions of the measurement."""
    models = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    return {
        "date": datetime.date.today().isoformat(),
        "processor": models[0].split(":")[1].strip() if models else platform.processor(), "cores": os.cpu_count(),
        "python": platform.python_version(), **{name: version(name) for name in PACKAGES},
    }  # fmt: skip


def moved(values, old):
    """Return how a figure moved from its kept value, and whether by more than its spread and 10 %."""
    new, before = statistics.median(values), statistics.median(old)
    change = new / before - 1 if before else 0.0 if new == before else math.inf
    apart = max(values) < min(old) or min(values) > max(old)
    return change, abs(change) > 0.1 and apart


def shown(value):
    """Return a number in at most four digits."""
    if value == 0 or abs(value) >= 1000:
        return f"{value:.0f}"
    return f"{value:.3g}"


def rows(found, kept):
    """Yield (benchmark, unit, median, spread, kept median, moved) as words, in the order of BENCHMARKS."""
    for benchmark in BENCHMARKS:
        if benchmark.command not in found:
            continue
        measured = found[benchmark.command]
        if isinstance(measured, str):
            yield benchmark.command, f"failed: {measured}", "", "", "", ""
            continue
        before = kept.get("figures", {}).get(benchmark.command, {})
        for figure in benchmark.figures:
            values = measured.get(figure.path)
            if not values:
                continue
            old, change = before.get(figure.path), ""
            if old:
                relative, far = moved(values, old)
                verdict = ("better" if (relative > 0) == figure.more else "worse") if far else ""
                change = f"{relative:+.0%} {verdict}".strip()
            yield (
                benchmark.command, figure.unit, shown(statistics.median(values)),
                f"{shown(min(values))} to {shown(max(values))}" if len(values) > 1 else "",
                shown(statistics.median(old)) if old else "", change,
            )  # fmt: skip


def markdown(found, on, repeat):
    """Return the page of the documentation."""
    packages = ", ".join(f"{name} {on[name]}" for name in PACKAGES)
    lines = [
        "# Benchmarks", "",
        f"Made by `python benchmarks/all.py --repeat {repeat} --keep --markdown docs/benchmarks.md`: each benchmark in",
        "its own process, one thread, compilation excluded unless it is what is measured. Each docstring says what is",
        "compared.",
        f"Measured on {on['date']}: {on['processor']}, {on['cores']} cores, Python {on['python']}, {packages}.",
        "Pages that give a figure of this table without a date mean this one.", "",
        "| benchmark | figure | median | spread |", "|---|---|---|---|",
    ]  # fmt: skip
    last = None
    for command, *cells in rows(found, {}):
        first = f"`{command}`" if command != last else ""
        lines.append(f"| {first} | " + " | ".join(cells[:3]) + " |")
        last = command
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="NAMES", help="those whose command holds one of these, by commas")
    parser.add_argument("--repeat", type=int, default=3, help="times that each runs")
    parser.add_argument("--keep", action="store_true", help="keep these figures in benchmarks/kept.json")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the table there as well")
    args = parser.parse_args()
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    wanted = [one for one in BENCHMARKS if any(word in one.command for word in args.only.split(","))]
    found, on, console = {}, machine(), Console(stderr=True)
    for i, benchmark in enumerate(wanted):
        measured = {figure.path: [] for figure in benchmark.figures}
        for repetition in range(args.repeat):
            with console.status(f"{i + 1} of {len(wanted)}: {benchmark.command}, {repetition + 1} of {args.repeat}"):
                try:
                    lines = run(benchmark)
                    for figure in benchmark.figures:
                        value = figure.read(lines)
                        if value is not None:
                            measured[figure.path].append(value)
                except (RuntimeError, KeyError, IndexError) as error:
                    measured = f"{type(error).__name__}: {error}"
                    break
        found[benchmark.command] = measured
        console.print(f"{benchmark.command}: {'failed' if isinstance(measured, str) else 'done'}", highlight=False)
    table = Table("benchmark", "figure", "median", "spread", "kept", "moved")
    last = None
    for command, *cells in rows(found, kept):
        table.add_row(command if command != last else "", *cells)
        last = command
    Console(width=None if sys.stdout.isatty() else 160).print(table)
    if args.markdown is not None:
        args.markdown.write_text(markdown({**kept.get("figures", {}), **found}, on, args.repeat))
    if args.keep:
        good = {command: measured for command, measured in found.items() if isinstance(measured, dict)}
        all_kept = {**kept.get("figures", {}), **good}
        lines = (f"{json.dumps(command)}: {json.dumps(measured)}" for command, measured in all_kept.items())
        KEPT.write_text(f'{{"on": {json.dumps(on)},\n"figures": {{\n' + ",\n".join(lines) + "\n}}\n")
    sys.exit(any(isinstance(measured, str) for measured in found.values()))


if __name__ == "__main__":
    main()
