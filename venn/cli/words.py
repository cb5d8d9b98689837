"""A record summarised in plain words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from venn.monitors.together import together
from venn.monitors.verdict import Verdict
from venn.online.record import Record

SHARP, PUBLISHED = "abers", "venn"


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


def conclusion(verdict: Verdict | None) -> list[str]:
    """Return the last line of a command: the worst verdict on its predictors; nothing without one."""
    return [] if verdict is None else [f"verdict: {verdict}"]


def verdicts_of(record: Record) -> Mapping[str, Verdict]:
    """Return the verdicts of monitors that watch a record from its first step to its last, sharing one level."""
    shares = together(record, record.classes)
    return {
        name: record.monitor(name, level=share.level, run_length=share.run_length).verdict()
        for name, share in shares.items()
    }
