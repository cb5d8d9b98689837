"""The group of commands, and the smallest of them."""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple

import click

from venn import __version__
from venn.cli.interrupt import as_interrupt, unread


class Command(NamedTuple):
    """A command that is imported when it is needed: its module, and what the list of commands says of it."""

    module: str
    help: str


COMMANDS = {
    "replay": Command("replay", "Predict, then learn, every example of a data set or file."),
    "compare": Command("replay", "Compare predictors over several data sets and orders."),
    "monitor": Command("monitor", "Watch predictors live, on data or a run; serve a page."),
    "run": Command("run", "Predict for a live source, learn its answers, keep both."),
    "report": Command("journals", "Write a run as one HTML file with all its figures."),
    "metrics": Command("journals", "Serve the figures of a run to Prometheus."),
    "verify": Command("journals", "Compare a journal with its checksums."),
    "export": Command("journals", "Write a journal as a table, .csv or .parquet."),
    "salvage": Command("journals", "Write what is whole of a damaged journal to a new one."),
}


class Commands(click.Group):
    """A group whose commands are imported when they are needed; to list them, none is."""

    def list_commands(self, context: click.Context) -> list[str]:
        return sorted([*COMMANDS, *self.commands.keys() - COMMANDS.keys()])

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name in COMMANDS and name not in self.commands:
            self.add_command(getattr(import_module(f"venn.cli.{COMMANDS[name].module}"), name))
        return self.commands.get(name)

    def invoke(self, context: click.Context) -> Any:
        with unread(), as_interrupt():  # around the import of a command as well
            return super().invoke(context)

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(
                [
                    (name, COMMANDS[name].help if name in COMMANDS else self.commands[name].get_short_help_str(60))
                    for name in self.list_commands(context)
                ]
            )


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="venn")
def main() -> None:
    """Online Venn and conformal prediction over exact incremental support vector machines."""


@main.command()
def datasets() -> None:
    """List the named data sets and where each would come from."""
    import streams
    from venn.show.terminal import aligned

    head = ("name", "rows", "features", "classes", "where")
    rows = [
        (info.name, str(info.rows), str(info.features), str(info.classes), str(info.where))
        for info in streams.datasets()
    ]
    for line in aligned([head, *rows], [0] * len(head), "<>>><"):
        click.echo(line)
