"""The command line: ``venn replay``, ``compare``, ``run``, ``monitor``, ``report``, ``metrics`` and ``datasets``."""

from venn.cli.commands import main

__all__ = ["main"]
