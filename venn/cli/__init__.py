"""The command line: ``venn replay``, ``compare``, ``run``, ``monitor``, ``report``, ``metrics`` and ``datasets``."""

from venn.cli.main import main
from venn.cli.setting import PREDICTORS
from venn.cli.words import plain_words

__all__ = ["PREDICTORS", "main", "plain_words"]
