"""A record summarised in plain words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from venn.monitors.together import together
from venn.monitors.verdict import Verdict, worst
from venn.online.forecaster import FORECAST, INTERVALS, Forecaster
from venn.online.panel import Panel
from venn.online.record import Record

SHARP, PUBLISHED = (INTERVALS, "abers"), "venn"


def plain_words(record: Record) -> list[str]:
    """Say in plain words how the accuracy of each predictor compares with what it claimed."""
    lines, claims = [], []
    for name in record:
        curves: Any = record[name]
        said = record.kind(name).conclusion(name, curves, record.guaranteed[name])
        if said is None:
            claims.append(f"{name} {curves.lower[-1] - curves.accuracy[-1]:+.3f}")
        else:
            lines.append(said)
    sharp = next((name for name in SHARP if name in record), None)
    if sharp is not None and PUBLISHED in record:
        means = record.means()
        pairs = (
            f"{field.replace('_', ' ')} {means[sharp][field]:.3f} against {means[PUBLISHED][field]:.3f}"
            for field in ("width", "log_loss")
        )
        lines.append(f"{sharp} beside the published {PUBLISHED}: {', '.join(pairs)}.")
    if claims:
        lines.append(f"Mean claim minus accuracy: {', '.join(claims)}.")
    return lines


def conclusion(verdict: Verdict | None) -> list[str]:
    """Return the last line of a command: the worst verdict on its predictors; nothing without one."""
    return [] if verdict is None else [f"verdict: {verdict}"]


def watched(panel: Panel) -> list[str]:
    """Return the names of the predictors to monitor: all but a forecaster's forecast, of which nothing is claimed."""
    return [name for name in panel if name != FORECAST or not isinstance(panel, Forecaster)]


def verdict_on(panel: Panel, verdicts: Mapping[str, Verdict]) -> Verdict:
    """Return the forecaster's own verdict, or else the worst of these on the predictors."""
    return panel.verdict() if isinstance(panel, Forecaster) else worst(verdicts)


def verdicts_of(record: Record) -> Mapping[str, Verdict]:
    """Return the verdicts of monitors that watch a record from its first step to its last, sharing one level."""
    shares = together(record, record.space)
    return {
        name: record.monitor(name, level=share.level, run_length=share.run_length).verdict()
        for name, share in shares.items()
    }
