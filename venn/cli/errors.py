"""Errors as one line for the terminal."""

from __future__ import annotations

import difflib
import errno
import os
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from shlex import quote
from typing import Any

import click

from streams.checks import Doubtful

OURS = (ValueError, TypeError, OSError, RuntimeError)  # of our own checks


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Return a question that suggests similar names, if there are any."""
    near = [repr(one) if one != one.strip() else one for one in difflib.get_close_matches(name, list(names), n=3)]
    return f" (did you mean {' or '.join(near)}?)" if near else ""


def in_shell(text: str) -> str:
    """Return text quoted for a shell, always on one line.

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
    """Turn errors of our own checks into one line and exit code 1, and our own warning into one line."""
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
    except (*OURS, ImportError) as error:  # the latter names the extra that is missing
        raise click.ClickException(one_line(error)) from error


def one_line(error: Exception) -> str:
    """Return what an error says, with its notes, as one line."""
    notes = "".join(f" ({note})" for note in getattr(error, "__notes__", ()))
    return " ".join(f"{error}{notes}".split())


def warned(warning: Any) -> str:
    """Return the text of a warning, with an option in place of the remedy in Python."""
    if not isinstance(warning, Doubtful):
        return f"warning: {warning}"
    option = {
        "identifier": f"; --skip {in_shell(warning.name)} leaves it out" if warning.name else "",
        "alike": "; --merge-alike makes them one",
        "missing": f"; --missing-texts {in_shell(warning.name)} takes it as a missing one",
        "row": "",
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
    """If a path cannot be written, name the option that gave it."""
    try:
        yield
    except BrokenPipeError:
        raise  # nobody reads on
    except OSError as error:
        raise click.ClickException(
            f"{option} must be a place that can be written, got {path}: {error.strerror or error}"
        ) from error


def spared(option: str, path: str | Path, *read: str) -> None:
    """Refuse to write into a file that is also read, whatever its name: its content would be lost."""
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
