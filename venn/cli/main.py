"""The group of commands, and the smallest of them."""

from __future__ import annotations

import click

import streams
from venn import __version__
from venn.cli.compare import compare
from venn.cli.monitor import monitor
from venn.cli.replay import replay
from venn.cli.report import report
from venn.cli.run import run
from venn.cli.serve import metrics


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="venn")
def main() -> None:
    """Online Venn and conformal prediction over exact incremental support vector machines."""


main.add_command(replay)
main.add_command(compare)
main.add_command(monitor)
main.add_command(run)
main.add_command(report)
main.add_command(metrics)


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
