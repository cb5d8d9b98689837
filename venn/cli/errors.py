"""Errors as one line for the terminal; Ctrl-C and SIGTERM as requests that are honoured between two steps."""

from __future__ import annotations

import difflib
import errno
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from shlex import quote
from time import sleep
from types import FrameType
from typing import Any, Self

import click

from streams.checks import Doubtful

# --------------------------------------------------------------------------------------------------------------- errors
# Errors as one line for the terminal.

OURS = (ValueError, TypeError, OSError, RuntimeError)  # of our own checks


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Return a question that suggests similar names, if there are any."""
    near = [repr(one) if one != one.strip() else one for one in difflib.get_close_matches(name, list(names), n=3)]
    return f" (did you mean {' or '.join(near)}?)" if near else ""


def in_shell(text: str) -> str:
    """Return text as a shell takes it, on one line whatever is in it.

    Examples
    --------
    >>> print(in_shell("a b"), in_shell("two\\nlines"))
    'a b' $'two\\nlines'
    """
    if text.isprintable():
        return quote(text)
    escaped = text.encode("unicode_escape").decode().replace("'", "\\'")
    return f"$'{escaped}'"


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Turn the errors of our own checks into one line for the terminal, exit code 1; our own warning into one, too."""
    try:
        with warnings.catch_warnings():
            warnings.showwarning = partial(_show, warnings.showwarning)
            yield
    except (BrokenPipeError, click.exceptions.Exit):
        raise  # nobody reads on, see `interrupt.unread`; or an end with a code: no errors
    except MemoryError:
        raise click.ClickException(
            "too little memory for the kernel of all examples, 8 bytes a pair: take fewer with --steps"
        ) from None
    except OURS as error:
        raise click.ClickException(one_line(error)) from error


def one_line(error: Exception) -> str:
    """Return what an error says, with its notes, as one line."""
    notes = "".join(f" ({note})" for note in getattr(error, "__notes__", ()))
    return " ".join(f"{error}{notes}".split())


def warned(warning: Any) -> str:
    """Return what a warning says, with an option in place of the remedy in a program."""
    if not isinstance(warning, Doubtful):
        return f"warning: {warning}"
    option = {
        "identifier": f"; --skip {in_shell(warning.name)} leaves it out" if warning.name else "",
        "alike": "; --merge-alike makes them one",
        "missing": f"; --missing-texts {in_shell(warning.name)} takes it as a missing one",
    }
    return f"warning: {warning.what}{option[warning.doubt]}"


def _show(usual: Any, message: Any, category: type[Warning], *place: Any) -> None:
    """Show our own warning without a place in our code, any other as usual."""
    from venn.machines.store import ScaleWarning  # slow to import, and hardly ever needed

    if issubclass(category, Doubtful | ScaleWarning):
        click.echo(warned(message), err=True)
    else:
        usual(message, category, *place)


@contextmanager
def writing(option: str, path: object) -> Iterator[None]:
    """If a place cannot be written, say which option names it."""
    try:
        yield
    except OSError as error:
        raise click.ClickException(
            f"{option} must be a place that can be written, got {path}: {error.strerror or error}"
        ) from error


def spared(option: str, path: str | Path, *read: str) -> None:
    """Refuse to write into a file that is read, whatever name it has: what it holds would be lost."""
    for one in read:
        same = os.path.realpath(path) == os.path.realpath(one)
        if same or (os.path.exists(path) and os.path.exists(one) and os.path.samefile(path, one)):
            raise click.UsageError(f"{option} must be another file than {one}, got {path}")


@contextmanager
def listening(host: str, port: int) -> Iterator[None]:
    """If a port is taken, name it, and say what to do."""
    try:
        yield
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        raise click.ClickException(f"port {port} of {host} is taken by another program: give another") from error


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
        """Wait until either of them comes."""
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
    """Raise KeyboardInterrupt where Ctrl-C came as the cause of a SystemError.

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
    """Write to nowhere from now on, since nobody reads: otherwise Python reports it again at exit."""
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
    """The same, but a second Ctrl-C ends the process immediately, like a kill, and a second SIGTERM does nothing.

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
