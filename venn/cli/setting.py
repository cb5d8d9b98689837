"""The command line: ``venn replay`` and ``venn datasets``."""

from __future__ import annotations

import difflib
import json
import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from rich.console import Console

import streams
from venn import __version__
from venn.machines.kernels import RBF, Kernel, Linear, Polynomial
from venn.machines.least_squares import LeastSquaresSVM
from venn.machines.machine import Machine
from venn.machines.one_vs_all import OneVsAllSVM
from venn.machines.tuning import PENALTIES, Tuning, tune
from venn.online.panel import Panel, Predictor
from venn.online.record import Record
from venn.online.replay import replay as run
from venn.prediction import PREDICTED_LABEL
from venn.predictors.classwise import TransductiveVennAbers
from venn.predictors.scaling import Binning, Isotonic, Platt
from venn.predictors.transductive import TransductiveVenn
from venn.show.terminal import Progress
from venn.taxonomies import AdaptiveMarginBins, Argmax, Deleted

MACHINES: dict[str, tuple[str, Callable[..., Machine]]] = {
    "squares": ("least-squares SVM", LeastSquaresSVM),
    "hinge": ("one-vs-all SVM", OneVsAllSVM),
}

# The machine that a predictor reads, and how to make it.
PREDICTORS: dict[str, tuple[str, Callable[[Any], Predictor]]] = {
    "abers": ("squares", TransductiveVennAbers),
    "deleted": ("squares", lambda machine: TransductiveVenn(machine, Deleted(AdaptiveMarginBins()))),
    "venn": ("hinge", lambda machine: TransductiveVenn(machine, Argmax())),
    "platt": ("hinge", Platt),
    "binning": ("hinge", Binning),
    "isotonic": ("hinge", Isotonic),
}
SHARP, PUBLISHED = "abers", "venn"

# gamma of the RBF kernel and C for the data of Lambrou, Papadopoulos & Gammerman (2012). They tuned the
# width and print no value: these are ours.
SETTINGS = {
    "squares": {"car": (0.5, 10.0), "wine_red": (0.1, 1.0)},
    "hinge": {"car": (0.1, 10.0), "wine_red": (0.1, 1.0)},
}
FEWEST_TO_TUNE, MOST_TO_TUNE, SHARE_TO_TUNE = 20, 200, 5
DEFAULT_C = 10.0
DEFAULT_DEGREE = 3


def _positive(text: str, zero: bool = False) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number) or number < 0 or (number == 0 and not zero):
        raise click.BadParameter(f"must be a finite number {'>=' if zero else '>'} 0, got {text!r}")
    return number


def _not_negative(text: str) -> float:
    return _positive(text, zero=True)


def _seed(text: str) -> int | None:
    if text == "none":
        return None
    if not (text.isascii() and text.isdigit()):
        raise click.BadParameter(f"must be an integer >= 0 or none, got {text!r}")
    return int(text)


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in PREDICTORS:
            close = _close(name, PREDICTORS)
            raise click.BadParameter(f"must be of {', '.join(PREDICTORS)}, got {name!r}{close}")
    if len(set(names)) < len(names):
        raise click.BadParameter(f"must have each name once, got {text!r}")
    return names


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="venn")
def main() -> None:
    """Online Venn prediction over exact incremental support vector machines."""


@main.command()
@click.argument("data")
@click.option("--kernel", type=click.Choice(["rbf", "linear", "poly"]), default="rbf", help="[default: rbf]")
@click.option(
    "--gamma",
    type=_positive,
    metavar="NUMBER",
    help="Of the rbf and poly kernels.  [default: rbf: by --tune, known on car and wine_red; poly: 1 / features]",
)
@click.option("--degree", type=click.IntRange(min=1), metavar="INTEGER", help="Of the poly kernel.  [default: 3]")
@click.option("--coef0", type=_not_negative, metavar="NUMBER", help="Of the poly kernel.  [default: 1]")
@click.option(
    "--C",
    "C",
    type=_positive,
    metavar="NUMBER",
    help="Penalty of the machines.  [default: chosen by --tune; known for rbf on car, wine_red]",
)
@click.option(
    "--tune",
    "tuned_on",
    type=click.IntRange(min=0),
    metavar="INTEGER",
    help="Examples at the start that choose gamma and C and then belong to no bag; 0 takes gamma = 1 / encoded "
    "features, C = 10.  [default: a fifth of them, at most 200, none below 100]",
)
@click.option(
    "--shuffle",
    type=_seed,
    default="0",
    metavar="SEED",
    help="Seed of the order; none keeps the file's order.  [default: 0]",
)
@click.option("--steps", type=click.IntRange(min=1), metavar="INTEGER", help="Stop after so many examples.")
@click.option(
    "--predictors",
    type=_names,
    default=",".join(PREDICTORS),
    metavar="NAMES",
    help=f"Separated by commas.  [default: {','.join(PREDICTORS)}]",
)
@click.option("--label", metavar="COLUMN", help="Column of the label, when DATA is a CSV file.")
@click.option("--nominal", multiple=True, metavar="COLUMN", help="A nominal column of the CSV file; repeatable.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="For the figure and the record.  [default: runs/DATA]",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object; all else goes to stderr.")
@click.option("--no-progress", is_flag=True, help="No progress bar.")
def replay(
    data: str,
    kernel: str,
    gamma: float | None,
    degree: int | None,
    coef0: float | None,
    C: float | None,
    tuned_on: int | None,
    shuffle: int | None,
    steps: int | None,
    predictors: list[str],
    label: str | None,
    nominal: tuple[str, ...],
    out: Path | None,
    as_json: bool,
    no_progress: bool,
) -> None:
    """Predict, then learn, every example of DATA; compare the predictors, which share their machines.

    DATA is a named data set (see `venn datasets`) or the path of a CSV file, which needs --label.
    `venn replay car` alone repeats the experiment of Lambrou, Papadopoulos and Gammerman (2012), beside the
    sharp predictors: abers (Venn-Abers by class on deleted scores) and deleted (Venn on deleted scores, the
    predicted label guaranteed).
    """
    for option, value, kernels in (
        ("--gamma", gamma, ("rbf", "poly")),
        ("--degree", degree, ("poly",)),
        ("--coef0", coef0, ("poly",)),
    ):
        if value is not None and kernel not in kernels:
            raise click.UsageError(f"{option} belongs to the kernel {' or '.join(kernels)}, not to {kernel}")

    def say(text: str) -> None:
        click.echo(text, err=as_json)

    with _one_line_errors():
        stream = _open(data, label, nominal, shuffle)
        if len(stream.classes) < 2:
            raise click.ClickException(
                f"{data} holds one label only, {stream.classes[0]!r}: there is nothing to predict"
            )
        choices, tuning = _choose(data, stream, kernel, gamma, degree, coef0, C, tuned_on, no_progress, say)
        if tuning is not None:
            stream = stream.drop(tuning.n)
        machines = {}
        for kind, (title, make) in MACHINES.items():
            readers = [name for name in predictors if PREDICTORS[name][0] == kind]
            if readers:
                solver, penalty, note = choices[kind]
                machines[kind] = make(solver, penalty, stream.classes)
                say(f"{', '.join(readers)}: {title} with {solver!r}, C={penalty:g}{note}")
        panel = Panel(**{name: PREDICTORS[name][1](machines[PREDICTORS[name][0]]) for name in predictors})
        record = run(stream, panel, progress=False if no_progress else None, steps=steps)
        record.shuffle = shuffle
        folder = Path("runs", stream.name) if out is None else out
        written = [folder / "record.npz"]
        record.save(folder / "record.npz")
        try:
            record.plot(folder / "curves.png")
            written.append(folder / "curves.png")
        except ImportError as error:
            click.echo(f"no figure: {error}", err=True)

    if as_json:
        click.echo(json.dumps(_summary(record, stream.name, tuning), allow_nan=False))
    elif sys.stdout.isatty():
        Console().print(record)
    else:
        click.echo(record.table())
    for line in plain_words(record):
        say(line)
    say(f"{record.seconds:.1f} s; wrote {' and '.join(map(str, written))}")


@main.command()
def datasets() -> None:
    """List the named data sets and where each would come from."""
    head = ("name", "rows", "features", "classes", "where")
    rows = [
        (info.name, str(info.rows), str(info.features), str(info.classes), str(info.where))
        for info in streams.datasets()
    ]
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    for row in (head, *rows):
        cells = [
            cell.rjust(width) if 0 < i < 4 else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        click.echo("  ".join(cells).rstrip())


def plain_words(record: Record) -> list[str]:
    """Say in plain words how the accuracy of each predictor compares with what it claimed.

    Where the predicted label is guaranteed, chance allows the sum of departures sqrt(N ln(2 / 0.05) / 2).
    """
    lines, claims = [], []
    for name in record:
        curves = record[name]
        accuracy, lower, upper = curves.accuracy[-1], curves.lower[-1], curves.upper[-1]
        if curves.interval:
            inside = curves.inside
            share = "at every step" if inside.all() else f"at {int(inside.sum())} of {len(inside)} steps"
            end = f"{'inside' if inside[-1] else 'outside'} its band [{lower:.3f}, {upper:.3f}]"
            if not inside[-1] and record.guaranteed[name] == PREDICTED_LABEL:
                gap, chance = max(lower - accuracy, accuracy - upper), math.sqrt(math.log(2 / 0.05) / (2 * len(record)))
                end += f" by {gap:.4f}, {'within' if gap <= chance else 'BEYOND'} the {chance:.3f} that chance allows"
            lines.append(f"{name}: the accuracy, {accuracy:.3f}, ends {end}; it was inside {share}.")
        else:
            claims.append(f"{name} {lower - accuracy:+.3f}")
    if SHARP in record and PUBLISHED in record:
        means = record.means()
        pairs = (
            f"{field.replace('_', ' ')} {means[SHARP][field]:.3f} against {means[PUBLISHED][field]:.3f}"
            for field in ("width", "log_loss")
        )
        lines.append(f"{SHARP} beside the published {PUBLISHED}: {', '.join(pairs)}.")
    if claims:
        lines.append(f"Mean claimed probability minus accuracy: {', '.join(claims)}.")
    return lines


def _summary(record: Record, data: str, tuning: Tuning | None) -> dict[str, Any]:
    return {
        "data": data,
        "n": len(record),
        "classes": list(record.classes),
        "shuffle": record.shuffle,
        "seconds": record.seconds,
        "tuned_on": tuning.n if tuning else 0,
        "predictors": record.means(),
    }


def _open(data: str, label: str | None, nominal: Sequence[str], shuffle: int | None) -> streams.Stream:
    named = [info.name for info in streams.datasets()]
    if data in named:
        if label is not None or nominal:
            raise click.UsageError(f"--label and --nominal belong to a CSV file, and {data} is a named data set")
        return streams.load(data, shuffle=shuffle, progress=_announce_once(data))
    if not Path(data).exists():
        if os.sep in data or "." in data:
            raise click.ClickException(f"no such file: {data}")
        raise click.ClickException(
            f"no data set and no file has the name {data!r}{_close(data, named)}; `venn datasets` lists the data sets"
        )
    if Path(data).is_dir():
        raise click.ClickException(f"{data} is a folder: give a CSV file or a name that `venn datasets` lists")
    if label is None:
        raise click.UsageError(f"{data} is a CSV file: name the column of its label with --label")
    schema = {column: streams.Nominal() for column in nominal}
    return streams.from_csv(data, label, schema=schema, shuffle=shuffle)


def _announce_once(data: str) -> Callable[[int, int], None]:
    told = False

    def announce(received: int, expected: int) -> None:
        nonlocal told
        if not told:
            told = True
            click.echo(f"downloading {data} ({expected / 1e6:.1f} MB)", err=True)

    return announce


def _choose(
    data: str,
    stream: streams.Stream,
    kernel: str,
    gamma: float | None,
    degree: int | None,
    coef0: float | None,
    C: float | None,
    tuned_on: int | None,
    no_progress: bool,
    say: Callable[[str], None],
) -> tuple[dict[str, tuple[Kernel, float, str]], Tuning | None]:
    """Return kernel, C and a note for each kind of machine; and the tuning, if examples went into one."""
    if kernel == "rbf" and tuned_on is None and all(data in known for known in SETTINGS.values()):
        chosen = [name for name, value in (("gamma", gamma), ("C", C)) if value is None]
        note = f", by default: {', '.join(chosen)}" if chosen else ""
        known = {kind: SETTINGS[kind][data] for kind in MACHINES}
        return {k: (RBF(gamma or known[k][0]), C or known[k][1], note) for k in MACHINES}, None
    fixed = None
    if gamma is not None or kernel != "rbf":
        fixed = _kernel(kernel, gamma or 1 / len(stream.features), degree, coef0)
    if fixed is not None and C is not None:
        if tuned_on:
            raise click.UsageError("--tune has nothing to choose: the kernel and C are given")
        return {kind: (fixed, C, "") for kind in MACHINES}, None
    if tuned_on is None:
        tuned_on = min(MOST_TO_TUNE, len(stream) // SHARE_TO_TUNE)
        if tuned_on < FEWEST_TO_TUNE:
            tuned_on = 0
    if tuned_on == 0:
        solver, penalty = fixed or RBF(1 / len(stream.features)), C or DEFAULT_C
        return {kind: (solver, penalty, ", by default") for kind in MACHINES}, None
    if tuned_on >= len(stream):
        raise click.UsageError(f"--tune must leave one of the {len(stream)} examples, got {tuned_on}")
    with Progress(None, False if no_progress else None) as bar:
        tuning = tune(
            stream.take(tuned_on),
            kernels=None if fixed is None else [fixed],
            penalties=PENALTIES if C is None else [C],
            progress=lambda done, total: bar.count(done, total, "choosing kernel and C"),
        )
    say(
        f"chose {tuning.kernel!r}, C={tuning.C:g} on the first {tuning.n} examples, by leave-one-out: log loss "
        f"{tuning.best.log_loss:.3f}, error {tuning.best.error:.3f}; they belong to no bag"
    )
    return {kind: (tuning.kernel, tuning.C, ", tuned") for kind in MACHINES}, tuning


def _kernel(name: str, gamma: float, degree: int | None, coef0: float | None) -> Kernel:
    if name == "linear":
        return Linear()
    if name == "rbf":
        return RBF(gamma)
    return Polynomial(DEFAULT_DEGREE if degree is None else degree, gamma, 1.0 if coef0 is None else coef0)


def _close(name: str, names: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, list(names), n=3)
    return f" (did you mean {' or '.join(close)}?)" if close else ""


@contextmanager
def _one_line_errors() -> Iterator[None]:
    """Turn what our own checks raise into one line for the terminal, exit code 1."""
    try:
        yield
    except MemoryError:
        raise click.ClickException(
            "too little memory for the kernel of all examples, 8 bytes a pair: take fewer with --steps"
        ) from None
    except (ValueError, TypeError, OSError, RuntimeError) as error:
        notes = "".join(f" ({note})" for note in getattr(error, "__notes__", ()))
        raise click.ClickException(" ".join(f"{error}{notes}".split())) from error
