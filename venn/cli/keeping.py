"""``venn verify`` and ``venn salvage``: whether a journal is whole, and what of a damaged one can be saved."""

from __future__ import annotations

import click

from venn.cli.errors import one_line_errors
from venn.online.repair import Salvaged, Verified
from venn.online.repair import salvage as save_whole_part
from venn.online.repair import verify as check_all
from venn.online.table import export as write_table


def _events(found: Verified | Salvaged) -> str:
    given_up = f", {found.expired:,} given up" if found.expired else ""
    return f"{found.asked:,} questions, {found.answered:,} answers{given_up}"


@click.command()
@click.argument("run", metavar="RUN")
def verify(run: str) -> None:
    """Compare everything in RUN, a journal, with its checksums; its process may still be running.

    A damaged journal is one line on stderr, which says where, and what can be saved; exit code 1.
    """
    with one_line_errors():
        found = check_all(run)
        click.echo(f"{run} is whole: {_events(found)}; {found.checkpoints} checkpoints")
        for name in found.unreadable:
            click.echo(f"{name} cannot be read: the next start learns more again, and nothing is lost")


@click.command()
@click.argument("damaged", metavar="DAMAGED")
@click.argument("rescued", metavar="RESCUED")
def salvage(damaged: str, rescued: str) -> None:
    """Write what is whole of DAMAGED, a journal, to RESCUED, a new one, with which the run goes on.

    That is its beginning, up to the first event that is not as written, to the last bit. DAMAGED is not changed; its
    run must have ended.
    """
    with one_line_errors():
        found = save_whole_part(damaged, rescued)
        click.echo(f"{rescued} holds the first {_events(found)} of {damaged}, to the last bit")
        if found.damage:
            click.echo(f"{damaged} is damaged: {found.damage}")
        if not found.positions:
            click.echo(
                "lost is what comes after, and the positions in the sources: they are read again from their beginning, "
                "and what the journal holds is refused by its id; remove older lines after these events from --out"
            )


@click.command()
@click.argument("run", metavar="RUN")
@click.option("--out", required=True, metavar="FILE", help="A new file that ends in .csv or .parquet.")
def export(run: str, out: str) -> None:
    """Write RUN, a journal, as a table: one row for each question, with its predictions and its label.

    The process of RUN may still be running. A .parquet file needs the package pyarrow.
    """
    with one_line_errors():
        try:
            rows = write_table(run, out)
        except ImportError as error:
            raise click.ClickException(str(error)) from error
        click.echo(f"{out} holds {rows:,} questions")
