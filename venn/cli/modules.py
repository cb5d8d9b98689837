"""Imports what a user names as MODULE:NAME: a model or a source."""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

import click

from venn.cli.errors import one_line


def is_in_module(text: str) -> bool:
    """Whether a text has the form MODULE:NAME.

    Examples
    --------
    >>> is_in_module("shop.orders:Orders"), is_in_module("jsonl:in.jsonl"), is_in_module("redis://host")
    (True, True, False)
    """
    module, colon, name = text.rpartition(":")
    return bool(colon) and all(part.isidentifier() for part in (*module.split("."), *name.split(".")))


def found_in_module(where: str, given: str, methods: tuple[str, ...]) -> Any:
    """Return an object of a module that has one of these methods, or the result of calling a function or class there.

    It is imported as Python would; the folder where the command runs is looked in last.

    Raises
    ------
    click.ClickException
        It is not there, or its own code has raised an error.
    """
    if (here := os.getcwd()) not in sys.path:
        sys.path.append(here)
    module, _, name = given.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
        ready = not isinstance(found, type) and any(hasattr(found, method) for method in methods)
        return found() if callable(found) and not ready else found
    except Exception as error:  # whatever code of the user's own raises
        raise click.ClickException(f"{where} {given} cannot be loaded: {told(error)}") from error


def told(error: Exception) -> str:
    """Return an error of a user's own code as one line."""
    return f"{type(error).__name__}: {one_line(error)}"
