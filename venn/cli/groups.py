"""Predictors within the groups that a column names."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import click

from venn.cli.errors import did_you_mean
from venn.cli.predictors import FORECASTER
from venn.online.forecaster import Forecaster
from venn.online.panel import Panel
from venn.predictors.groups import by_group

NAME_OTHERS = "name predictors that have groups, such as --predictors conformal,abers"


def positions_of(column: str, features: Sequence[str]) -> tuple[int, ...]:
    """Return the positions of a column's features: one, or those that encode its values.

    Examples
    --------
    >>> positions_of("colour", ["age", "colour=red", "colour=blue"])
    (1, 2)
    """
    found = tuple(i for i, name in enumerate(features) if name == column or name.startswith(f"{column}="))
    if not found:
        columns = list(dict.fromkeys(name.partition("=")[0] for name in features))
        close = did_you_mean(column, columns)
        raise click.UsageError(f"--groups must be a column, of {', '.join(columns)}, got {column!r}{close}")
    return found


def within_groups(panel: Panel, column: str, features: Sequence[str], say: Callable[[str], None]) -> Panel:
    """Return a panel of the same predictors within the groups of equal values in a column."""
    positions = positions_of(column, features)
    if isinstance(panel, Forecaster):
        raise click.UsageError(f"--groups does not go with {FORECASTER}: {NAME_OTHERS}")
    grouped = {}
    for name, one in panel.items():
        try:
            grouped[name] = by_group(one, positions)
        except TypeError:
            raise click.UsageError(f"--groups does not go with {name}: {NAME_OTHERS}") from None
    say(f"within groups by {column}: each example is compared with those of its group only")
    return Panel(**grouped)
