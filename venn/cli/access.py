"""Who may read what a command serves, and where it is."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from venn.cli.options import Config

TOKEN = "VENN_TOKEN"  # of the environment


def guard(config: Config) -> dict[str, Any]:
    """Return the guard of a server. A token file takes precedence over the environment."""
    access, token = config.access, config.access.token or os.environ.get(TOKEN)
    if access.token_file is not None:
        if access.no_token:
            raise click.UsageError(f"{config.where('access', 'no_token')} does not go with --token-file")
        where = config.where("access", "token_file")
        try:
            token = Path(access.token_file).read_text("utf-8-sig").partition("\n")[0].strip()
        except (OSError, UnicodeDecodeError) as error:
            raise click.ClickException(f"{where} must be a file that can be read: {error}") from None
    return {
        "allowed": access.allow_host or (), "token": None if access.no_token else token, "unguarded": access.no_token,
    }  # fmt: skip


def address(host: str, port: int) -> str:
    """Return the address of a server."""
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"
