"""The group of commands, and the smallest of them."""

from __future__ import annotations

from importlib import import_module

import click

from venn import __version__

COMMANDS = {  # name: its module; a command, or --version, imports no other module
    "replay": "replay", "compare": "compare", "monitor": "monitor", "run": "run", "report": "report",
    "metrics": "serve", "verify": "keeping", "salvage": "keeping",
}  # fmt: skip


class Commands(click.Group):
    """A group whose commands are imported when they are needed."""

    def list_commands(self, context: click.Context) -> list[str]:
        return sorted([*COMMANDS, *self.commands])

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name in COMMANDS and name not in self.commands:
            self.add_command(getattr(import_module(f"venn.cli.{COMMANDS[name]}"), name))
        return self.commands.get(name)


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
