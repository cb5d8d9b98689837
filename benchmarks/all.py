"""What do all the benchmarks measure today, and what has moved since the kept figures?

    STREAMS_DATA=folder python benchmarks/all.py                    # all, three times each; about half an hour
    python benchmarks/all.py --only abers,panel --repeat 5          # some
    python benchmarks/all.py --keep --markdown docs/benchmarks.md   # these figures are kept from now on

Every benchmark of this folder runs in its own process, in turn, with settings that take at most a minute or two; if
more is needed to repeat a figure of the documentation, its script says how. The table has some figures of each: the
median over the repetitions, the spread (smallest and largest), a ratio if the script measures one, and the median kept
in `benchmarks/kept.json` with its change. A figure has *moved* when it differs by more than 10 % and the two spreads
do not overlap. A benchmark that fails is in the table with its last line, and the exit status is 1. Studies of
hours, which have their own pages, are left out: `quality.py`, `which_predictor.py`, `peers.py`, `series.py`. Nobody
else should use the machine. After `--keep`, `python -m tools.figures` writes the kept figures into the pages that
give them.
"""

from __future__ import annotations

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
transductive.py --data car --gamma 0.1 --C 10 --samples 6
    0.ours_seconds: s the replay | 0.ratio_A: +times as fast as SVC, c x c fits a step |
    0.ratio_B: +times as fast as SVC, 2c fits a step | 0.ratio_C: +times as fast as the same on a kept kernel matrix
transductive.py --data wine_red --gamma 0.1 --C 1 --samples 6
    0.ours_seconds: s the replay | 0.ratio_A: +times as fast as SVC, c x c fits a step |
    0.ratio_B: +times as fast as SVC, 2c fits a step | 0.ratio_C: +times as fast as the same on a kept kernel matrix
transductive.py --data car --gamma 0.2 --C 100 --samples 6
    0.ours_seconds: s the replay | 0.ratio_A: +times as fast as SVC, c x c fits a step |
    0.ratio_B: +times as fast as SVC, 2c fits a step | 0.ratio_C: +times as fast as the same on a kept kernel matrix
transductive.py --data gaussians-5000 --gamma 0.05 --C 1 --baselines AB --repeat 1 --samples 6
    0.ours_seconds: s the replay | 0.ratio_A: +times as fast as SVC, c x c fits a step |
    0.ratio_B: +times as fast as SVC, 2c fits a step
least_squares.py --data car --gamma 0.5 --C 10 --samples 6 --no-hinge
    0.machine_seconds: s the replay, machine alone | 0.ours_seconds: s with leave-one-out scores |
    0.abers_seconds: s with Venn-Abers | 0.ratio_refit: +times as fast as refitting |
    0.ours_over_floor: times reading the factor
least_squares.py --data wine_red --gamma 0.1 --C 1 --samples 6 --no-hinge
    0.machine_seconds: s the replay, machine alone | 0.ours_seconds: s with leave-one-out scores |
    0.abers_seconds: s with Venn-Abers | 0.ratio_refit: +times as fast as refitting |
    0.ours_over_floor: times reading the factor
lattice.py
    0.worst_ratio: times Gaussians, nominal features | 0.worst_over_median: medians the worst step |
    0.batch_solves: batch solves
raw_table.py
    0.raw.1.seconds: s, RBF that sees one raw column | 0.raw.4.rows: rows by a linear kernel, raw |
    0.scaled.4.seconds: s, linear, scaled
threads.py --sizes 2000
    0.rows.0.times_faster: +times as fast, hinge, 4 classes |
    0.rows.1.times_faster: +times as fast, hinge, 10 classes
fleet.py 50
    0.ratio: times the step of a key's model alone | 0.fleet.disk_bytes_a_key: bytes a key on disk |
    0.fleet.open_ms_a_key: ms to open a key
young_keys.py
    0.adult.ratio: of the log loss, adult | 0.elec2.ratio: of the log loss, elec2 |
    0.mushroom.ratio: of the log loss, mushroom
certificates.py --streams 300
    0.worst_over_tolerance: of the tolerance at worst | 0.seconds: s
window.py --machine squares --steps 4000
    0.machine_steps_a_second: +steps a second, machine | 0.venn_steps_a_second: +steps a second, Venn |
    0.ratio: +times as fast as KernelRidge
adaptive.py
    0.over: µs a step over the predictor, 2 classes | 2.over: µs a step over it, 10 classes
groups.py
    0.us.no groups: µs a step, conformal | 0.us.100: µs a step in 100 groups
journal.py --steps 60000
    0.cpu_us_a_step: µs a step | 0.bytes_a_step: bytes a step | 0.verify_us_an_event: µs an event, verify
regression.py
    0.beside_the_machine_us: µs beside the machine's own |
    0.times_faster_than_refitting: +times as fast as refitting
window.py --machine hinge --steps 2000
    0.machine_steps_a_second: +steps a second, machine | 0.ratio: +times as fast as SVC
abers.py --rounds 15 --longest 3
    0.rows.0.us_a_step: µs a step at 1e3 | 0.rows.1.us_a_step: µs a step at 1e4 |
    0.rows.2.us_a_step: µs a step at 1e5 | 0.rows.3.us_a_step: µs a step at 1e6 |
    0.rows.1.ratio_two_refits: +times as fast as two refits at 1e4 |
    0.rows.1.ratio_package: +times as fast as the package at 1e4 | 0.last_vs_first: times as long at 1e6 as at 1e3
inductive.py --rbf 20000
    0.linear.examples_a_second: +examples a second, blocks |
    0.linear.one_by_one_a_second: +examples a second, one by one |
    0.linear.ratio_scored_first: +times as fast as by hand, scored first |
    0.rbf.ratio_scored_first: +the same, RBF scorer | 1.examples_a_second: +examples a second, conformal
counting.py
    0.rows.2.examples_a_second: +examples a second, 2 classes |
    0.rows.5.examples_a_second: +examples a second, 4 classes |
    0.rows.8.examples_a_second: +examples a second, 10 classes |
    0.rows.5.ratio_numpy: +times as fast as numpy, 4 classes | 0.rows.5.times_a_copy: times a copy, 4 classes
panel.py --repeat 3
    0.panel_seconds: s, five predictors | 0.ratio: times Venn alone
bank.py
    0.one.microseconds: µs a step, one machine with Venn-Abers | 0.bank of 3.ratio: times one machine, V-mix on 3 |
    0.bank of 12.ratio: times one machine, V-mix on 12 | 0.bank of 12, 2 threads.ratio: the same, on 2 threads
forecaster_cost.py --tables 20x2 20xfloat --steps 2500
    0.seconds_2000: s, the forecaster's first 2000 steps, 2 classes |
    0.forest_seconds_2000: s, a forest fitted anew every 150, 2 classes |
    0.us_a_step.1000: µs a step, to 1000, 2 classes | 0.us_a_step.1900: µs a step, to 1900, 2 classes |
    0.us_a_step.2100: µs a step, to 2100, 2 classes | 0.longest_ms: ms, the longest stop, 2 classes |
    1.seconds_2000: s, the forecaster's first 2000 steps, numbers |
    1.forest_seconds_2000: s, a forest fitted anew every 150, numbers |
    1.us_a_step.1000: µs a step, to 1000, numbers | 1.us_a_step.1900: µs a step, to 1900, numbers |
    1.us_a_step.2100: µs a step, to 2100, numbers | 1.longest_ms: ms, the longest stop, numbers
scalers.py --n 1000
    0.Platt.microseconds: µs a step, Platt | 0.isotonic.microseconds: µs a step, isotonic |
    0.beta calibration.microseconds: µs a step, beta calibration |
    0.temperature.microseconds: µs a step, temperature | 0.Platt.ratio: +times as fast as refitting, Platt |
    0.isotonic.ratio: +times as fast as refitting, isotonic |
    0.beta calibration.ratio: +times as fast as refitting, beta calibration |
    0.temperature.ratio: +times as fast as refitting, temperature
monitor.py --steps 100000
    0.us_an_update.Multiprobability: µs an update, Multiprobability |
    0.us_an_update.PredictionSet: µs an update, PredictionSet | 0.us_an_update.Forecast: µs an update, Forecast |
    0.us_an_update.ClassIntervals: µs an update, ClassIntervals | 0.us_by_hand: µs, windowed means by numpy
online.py --blocks 5
    0.steps_a_second.memory: +steps a second, in memory | 0.steps_a_second.journal: +steps a second, journaled |
    0.slower_than_memory.journal: times a step in memory, journaled |
    0.slower_than_memory.transactions: times a step in memory, transactions of 64 |
    0.bytes_a_step: bytes a step of the journal
page.py --steps 100000
    0.first look: ms the first look | 0.page: ms the page | 0.update: ms an update
rows.py
    0.microseconds_a_row.pandas: µs a row, pandas | 0.microseconds_a_row.polars: µs a row, polars |
    0.microseconds_a_row.arrow: µs a row, arrow | 0.microseconds_a_row.parquet: µs a row, parquet |
    0.ratio_to_pandas_by_blocks.iterrows: +times as fast as iterrows
sparse.py --n 600
    0.linear.times_faster: +times as fast as dense, linear | 0.linear.times_less_memory: +times less memory, linear
trees.py
    0.kinds.forest.one: +rows a second, one at a time, forest |
    0.kinds.forest.ratio_one: +times as fast as scikit-learn, forest |
    0.kinds.forest.ratio_block: +times as fast in blocks, forest |
    0.kinds.histogram boosting.one: +rows a second, one at a time, histogram boosting |
    0.kinds.histogram boosting.ratio_one: +times as fast as scikit-learn, histogram boosting |
    0.kinds.histogram boosting.ratio_block: +times as fast in blocks, histogram boosting |
    0.forest_one_by_one: +rows a second, predicted and learned
collection.py --rows 4000000
    0.runs.here.rows_per_second: +rows a second, here | 0.runs.2 workers.rows_per_second: +rows a second, 2 workers
floors.py --repeat 1
    0.squares.times_floor: times its floor, squares | 0.classwise.times_floor: times its floor, classwise |
    0.hinge.times_floor: times its floor, hinge | 0.abers.times_floor: times its floor, abers |
    0.counting.times_floor: times its floor, counting | 0.panel.times_floor: times its floor, panel |
    0.journal.times_floor: times its floor, journal
footprint.py
    0.import_ms: ms, import venn | 0.command_ms: ms, venn --version |
    0.first_replay_s.cold: s, the first replay, compiling | 0.first_replay_s.cached: s, the first replay, cached |
    0.bytes_an_example.OneVsAllSVM.1000: bytes an example, hinge, n = 1000 |
    0.bytes_an_example.LeastSquaresSVM.1000: bytes an example, squares, n = 1000 |
    0.bytes_an_example.InductiveVenn.100000: bytes an example, inductive Venn |
    0.bytes_an_example.VennAbers.100000: bytes an example, inductive Venn-Abers
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
        "processor": models[0].split(":")[1].strip() if models else platform.processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        **{name: version(name) for name in PACKAGES},
    }


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


def markdown(found, kept, on, repeat):
    """Return the page of the documentation."""
    packages = ", ".join(f"{name} {on[name]}" for name in PACKAGES)
    lines = [
        "# Benchmarks",
        "",
        f"Made by `python benchmarks/all.py --repeat {repeat} --keep --markdown docs/benchmarks.md`: each benchmark in",
        "its own process, one thread, compilation excluded unless it is what is measured. Each docstring says what is",
        "compared.",
        f"Measured on {on['date']}: {on['processor']}, {on['cores']} cores, Python {on['python']}, {packages}.",
        "*Moved* is against the figures kept before.",
        "Pages that give a figure of this table without a date mean this one.",
        "",
        "| benchmark | figure | median | spread | kept | moved |",
        "|---|---|---|---|---|---|",
    ]
    last = None
    for command, *cells in rows(found, kept):
        first = f"`{command}`" if command != last else ""
        lines.append(f"| {first} | " + " | ".join(cells) + " |")
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
        args.markdown.write_text(markdown({**kept.get("figures", {}), **found}, kept, on, args.repeat))
    if args.keep:
        good = {command: measured for command, measured in found.items() if isinstance(measured, dict)}
        all_kept = {**kept.get("figures", {}), **good}
        lines = (f"{json.dumps(command)}: {json.dumps(measured)}" for command, measured in all_kept.items())
        KEPT.write_text(f'{{"on": {json.dumps(on)},\n"figures": {{\n' + ",\n".join(lines) + "\n}}\n")
    sys.exit(any(isinstance(measured, str) for measured in found.values()))


if __name__ == "__main__":
    main()
