"""The group of commands; Ctrl-C and SIGTERM as requests that are honoured between two steps."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from time import sleep
from types import FrameType
from typing import Any, NamedTuple, Self

import click

from venn import __version__
from venn.machines.fit_ahead import get_ready

# ------------------------------------------------------------------------------------------------------------ interrupt
# Ctrl-C and SIGTERM as requests that are honoured between two steps; the end of a pipe that nobody reads.

NAP = 0.1  # seconds
INTERRUPTED, TERMINATED = 130, 143  # exit codes of programs ended by SIGINT and by SIGTERM
UNREAD = 141  # and by SIGPIPE


class Interrupt:
    """While it is entered, the first Ctrl-C or SIGTERM only sets `pressed`; the next one ends the program.

    So no step is left half done, and no Ctrl-C is lost in compiled code, where Python may swallow the exception.
    Signals reach the main thread only: in other threads nothing changes. If Ctrl-C is ignored, as in a background job
    of a script, it remains ignored.

    Attributes
    ----------
    pressed : bool
        Whether either of them came.
    terminated : bool
        Whether SIGTERM came.

    Examples
    --------
    >>> with Interrupt() as interrupt:
    ...     interrupt.pressed, interrupt.terminated
    (False, False)
    """

    def __init__(self) -> None:
        self.pressed = self.terminated = False
        self._before: dict[int, Any] = {}

    @property
    def status(self) -> int:
        """The exit code of a program that ended because of it; 0 if neither came."""
        return TERMINATED if self.terminated else INTERRUPTED if self.pressed else 0

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                if number == signal.SIGTERM or signal.getsignal(number) is not signal.SIG_IGN:
                    self._before[number] = signal.signal(number, self._take)
        return self

    def __exit__(self, *_: object) -> None:
        while self._before:
            signal.signal(*self._before.popitem())

    def wait(self) -> None:
        """Wait until one of the signals comes."""
        while not self.pressed:
            sleep(NAP)

    def _take(self, number: int, frame: FrameType | None) -> None:
        if self.pressed:
            self._again(number)
        self.pressed = True
        self.terminated = self.terminated or number == signal.SIGTERM

    def _again(self, number: int) -> None:
        """End the program: a signal has come before."""
        raise SystemExit(TERMINATED) if number == signal.SIGTERM else KeyboardInterrupt


@contextmanager
def as_interrupt() -> Iterator[None]:
    """Raise KeyboardInterrupt if Ctrl-C caused a SystemError.

    Python calls the handler of a signal also where numba makes Python objects of what a loop returns, or reads a loop
    from its cache. Numba does not look whether it raised, and Python then says "returned a result with an exception
    set": one SystemError for each call on the way out.

    Examples
    --------
    >>> try:
    ...     with as_interrupt():
    ...         raise SystemError("returned a result with an exception set") from KeyboardInterrupt()
    ... except KeyboardInterrupt:
    ...     print("Ctrl-C")
    Ctrl-C
    """
    try:
        yield
    except SystemError as error:
        cause: BaseException | None = error
        while isinstance(cause, SystemError):
            cause = cause.__cause__
        if isinstance(cause, KeyboardInterrupt):
            raise KeyboardInterrupt from error
        raise


def close_stdout() -> None:
    """Discard further output, since nobody reads it; otherwise Python reports an error at exit."""
    if sys.stdout is sys.__stdout__:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


@contextmanager
def unread() -> Iterator[None]:
    """End the program in silence where nobody reads its output any more, as after ``| head -1``."""
    try:
        yield
    except BrokenPipeError:
        close_stdout()
        raise SystemExit(UNREAD) from None


class Ending(Interrupt):
    """An `Interrupt` whose second Ctrl-C ends the process at once, like a kill, and whose second SIGTERM does nothing.

    For programs that can be killed at any moment without harm.

    Examples
    --------
    >>> with Ending() as ending:
    ...     ending.pressed, ending.terminated
    (False, False)
    """

    def _again(self, number: int) -> None:
        if number == signal.SIGINT and not self.terminated:
            os._exit(INTERRUPTED)


# ------------------------------------------------------------------------------------------------------------- commands
# The group of commands, and the smallest of them.


class Command(NamedTuple):
    """A command that is imported when needed: its module, and its line in the list of commands."""

    module: str
    help: str


COMMANDS = {
    "replay": Command("replay", "Predict, then learn, every example of a data set or file."),
    "compare": Command("replay", "Compare predictors over several data sets and orders."),
    "monitor": Command("monitor", "Watch predictors live, on data or a run; serve a page."),
    "run": Command("run", "Predict for a live source, learn its answers, keep both."),
    "serve": Command("serve", "Serve a model that learns, over HTTP."),
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

    def resolve_command(self, context: click.Context, args: list[str]) -> Any:
        own = ("-h", "--help", "--predictor", "--scorer", "--series")  # of these a replay fits nothing, or says what
        if args[0] == "replay" and "venn.cli.replay" not in sys.modules and not any(a.startswith(own) for a in args):
            get_ready()  # while this process imports the command
        return super().resolve_command(context, args)

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
    """Calibrated probabilities and prediction sets for data streams, with a proof and with alarms."""


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
