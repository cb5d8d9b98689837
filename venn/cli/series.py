"""``--series COLUMN``: forecast a series value after value, in a replay with a table by horizon, or live."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import click

import streams
from venn.cli.commands import Interrupt
from venn.cli.errors import one_line_errors, writing
from venn.cli.options import Config
from venn.cli.output import finite
from venn.cli.words import conclude
from venn.show.terminal import Progress, aligned

if TYPE_CHECKING:
    from venn.online.panel import Panel
    from venn.series import SeriesForecaster
    from venn.series.scores import PathScores

FANS = 6  # in the figure
SHOWN = 12  # horizons in the table
FIGURE = "fans.png"


#: Tables, and keys of others, that say nothing of a series, or have no meaning there.
NOT_OF_SERIES = ("predictor", "machine")
NOT_OF_VALUES = {
    "source": ("classes", "numbers", "like", "label", "features", "key", "nominal", "ordinal", "skip", "fill", "unit",
               "scaling", "delay", "missing", "shuffle", "steps"),
    "journal": ("patience", "ripe", "labels_by_lot"),
    "monitor": ("level", "run_length", "floor", "conformal", "drift", "restart_on_alarm", "keep"),
}  # fmt: skip


def refuse_for_series(config: Config) -> None:
    """Refuse settings that the run of a series does not heed."""
    for table, key in config.origin:
        if table in NOT_OF_SERIES or key in NOT_OF_VALUES.get(table, ()):
            where = config.where("series", "value")
            raise click.UsageError(f"{config.where(table, key)} does not go with {where}, a series: leave it out")


def live_panel(config: Config, say: Callable[[str], None]) -> Panel:
    """Return the forecaster of a series that comes live, as the panel of its next value."""
    from venn.online.panel import Panel
    from venn.series import NextValue, SeriesForecaster

    chosen = config.series
    say(f"series: {chosen.horizon} steps ahead, season {_seasons(chosen.season)}")
    return Panel(series=NextValue(SeriesForecaster(chosen.season, chosen.horizon)))


def forecast(data: str, config: Config) -> None:
    """Forecast the values of a series in their order, and say how good that was."""
    from venn.series import SeriesForecaster
    from venn.series.scores import PathScores

    chosen, as_json = config.series, config.view.json

    def say(text: str) -> None:
        click.echo(text, err=as_json)

    with one_line_errors():
        stream = streams.series(data, str(chosen.value), chosen.covariates or (), delimiter=config.source.delimiter)
        season = chosen.season or stream.seasons or None
        model = SeriesForecaster(season, chosen.horizon)
        say(f"{stream.name}: {len(stream)} values, {chosen.horizon} steps ahead, season {_seasons(season)}")
        n = len(stream) if config.source.steps is None else min(config.source.steps, len(stream))
        season_of_naive = (season or (1,))[-1]
        scores, paths, began = PathScores(chosen.horizon, season_of_naive), [], perf_counter()
        wanted = {n - 1 - chosen.horizon * (FANS - i) for i in range(FANS)}
        future = [x for x, _ in stream] if stream.covariates else None
        done = 0
        with Interrupt() as interrupt, Progress(n, config.view.progress) as bar:
            for t, (x, y) in enumerate(stream):
                if t == n or (interrupt.pressed and t):
                    break
                scores.came(y)
                model.learn_one(y, x)
                ahead = None if future is None else future[t + 1 : t + 1 + chosen.horizon]
                path = model.forecast(xs=ahead if ahead and len(ahead) == chosen.horizon else None)
                scores.told(path)
                done = t + 1
                if t in wanted:
                    paths.append((t, path))
                bar.count(done, n, "values")
        seconds = perf_counter() - began

    if as_json:
        click.echo(json.dumps(summary(stream, model, scores, done, seconds), allow_nan=False))
    else:
        click.echo(table(scores))
        if chosen.season is None and not stream.seasons:
            say(f"season found: {_seasons(model.seasons)}")
    bands = next(one for one in model.accounts() if one.horizon is None and one.level == 0.1)
    if bands.n:
        say(f"bands for the whole path at .1: {bands.errors} of {bands.n} were left, {bands.errors / bands.n:.3f}")
    folder = Path("runs", stream.name) if config.view.out is None else Path(config.view.out)
    drawn = _draw(stream, paths, folder, say)  # after the table: it is not lost where nothing can be written
    say(f"of the next value most weight has: {', '.join(list(model.weights())[:3])}")
    say(f"{seconds:.1f} s, {1000 * seconds / max(done, 1):.2f} ms a value" + (f"; wrote {drawn}" if drawn else ""))
    conclude(model.verdict(), say)
    if interrupt.pressed:
        click.echo(f"interrupted at value {done} of {n}", err=True)
        click.get_current_context().exit(interrupt.status)


def _seasons(season: Any) -> str:
    if season is None:
        return "to be found"
    return "none" if tuple(season) == (1,) else " and ".join(map(str, season))


def _draw(stream: Any, paths: list[Any], folder: Path, say: Callable[[str], None]) -> str:
    """Draw the figure; return where it is, or say what it needs."""
    from venn.show.fans import fans

    if not paths:
        return ""
    try:
        figure = fans(stream.values, paths, stream.name)
    except ImportError as error:
        say(f"no figure: {error}")
        return ""
    with writing("--out", folder):
        folder.mkdir(parents=True, exist_ok=True)
        figure.savefig(folder / FIGURE)
    return str(folder / FIGURE)


def table(scores: PathScores) -> str:
    """Return a line for some of the horizons, and the mean over all."""
    rows = scores.rows
    step = max(1, math.ceil(len(rows) / SHOWN))
    shown = sorted({1, *range(step, len(rows) + 1, step), len(rows)})
    head = ["horizon", "inside .1", "width", "CRPS", "over naive"]

    def line(name: str, row: Any) -> list[str]:
        return [name, f"{row.inside:.3f}", f"{row.width:.4g}", f"{row.crps:.4g}", f"{row.over_naive:.3f}"]

    body = [line(str(h), rows[h - 1]) for h in shown]
    found = aligned([head, *body], [7, 9, 9, 9, 10], "<>>>>")
    note = "Of the intervals at .1 nine in ten hold their value in the long run, at each horizon, on any series."
    return "\n".join([*found, note])


def summary(stream: Any, model: SeriesForecaster, scores: PathScores, done: int, seconds: float) -> dict[str, Any]:
    """Return all of it as JSON."""
    found = {
        "data": stream.name, "n": done, "seasons": list(model.seasons), "horizon": model.horizon, "seconds": seconds,
        "horizons": scores.plain(), "accounts": [one._asdict() for one in model.accounts()],
        "weights": model.weights(), "verdict": model.verdict().plain(),
    }  # fmt: skip
    return dict(finite(found))
