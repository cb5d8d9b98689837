"""Run the code of a page, and write what it prints below each block.

    python -m tools.outputs README.md docs/first_steps.md

A block of Python may be followed by a block of text: what it printed. This program writes those blocks anew;
tests/house/test_examples.py compares them. All blocks of a page run one after the other, as one program.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import re
import tempfile
from pathlib import Path
from typing import Any

from tools import ROOT

BLOCK = re.compile(r"```python\n(?P<code>.*?)```\n(?:\n```text\n(?P<printed>.*?)```\n)?", flags=re.S)


def shown(text: str) -> list[tuple[str, str | None]]:
    """Return each block of Python of a page, and what the page says it prints, None if it says nothing."""
    return [(one["code"], one["printed"]) for one in BLOCK.finditer(text)]


def printed(blocks: list[str], folder: Path) -> list[str]:
    """Return what each of the blocks prints, run in order in one namespace, in this folder."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    said = []
    with contextlib.chdir(folder):
        for code in blocks:
            with contextlib.redirect_stdout(io.StringIO()) as out:
                exec(compile(code, "<page>", "exec"), namespace)
            said.append(out.getvalue())
    return said


def written_anew(text: str, said: list[str]) -> str:
    """Return a page with what its blocks print below each that prints something."""
    each = iter(said)

    def block(match: re.Match[str]) -> str:
        output = next(each)
        return f"```python\n{match['code']}```\n" + (f"\n```text\n{output}```\n" if output else "")

    return BLOCK.sub(block, text)


def main() -> None:
    """Write the pages that are named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("pages", nargs="+", help="Markdown files, from the root of the project")
    os.environ.setdefault("COLUMNS", "100")
    for name in parser.parse_args().pages:
        page = ROOT / name
        text = page.read_text()
        with tempfile.TemporaryDirectory() as folder:
            said = printed([code for code, _ in shown(text)], Path(folder))
        page.write_text(written_anew(text, said))


if __name__ == "__main__":
    main()
