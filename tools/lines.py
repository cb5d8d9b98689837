"""Count lines of code by room: without docstrings, comments and blank lines.

    python -m tools.lines
    python -m tools.lines --since v0.1.0

Below are the modules and classes of both packages, and the lines of all Python files of the repository. The second
command sets an earlier commit's counts beside those of the files as they are.
"""

from __future__ import annotations

import argparse
import ast
import io
import subprocess
import tarfile
import tempfile
import tokenize
from collections import Counter
from pathlib import Path

from tools import ROOT

PACKAGES = ("venn", "streams")
NOTHING = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING,
    tokenize.ENDMARKER,
}  # fmt: skip
DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def code_lines(source: str) -> int:
    """Count the lines of a file that hold code.

    >>> code_lines('"What it is for."\\n\\nx = 1  # why\\n# a comment\\ny = (2,\\n     3)\\n')
    3
    """
    holding: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in NOTHING:
            holding.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(node, DOCUMENTED):
            first = body[0]
            if isinstance(first, ast.Expr) and isinstance(getattr(first.value, "value", None), str):
                holding.difference_update(range(first.lineno, first.end_lineno + 1))
    return len(holding)


def rooms(root: Path) -> Counter[str]:
    """Count the lines of each room: a package's folders, its own files together, and both packages whole."""
    found: Counter[str] = Counter()
    for package in PACKAGES:
        for path in (root / package).rglob("*.py"):
            inside = path.relative_to(root).parts
            found["/".join(inside[:2]) if len(inside) > 2 else f"{package}/*.py"] += code_lines(path.read_text("utf-8"))
    return found


def rooms_at(commit: str) -> Counter[str]:
    """Count the lines of each room as they were at a commit."""
    packed = subprocess.run(["git", "archive", commit, *PACKAGES], cwd=ROOT, capture_output=True, check=True).stdout
    with tempfile.TemporaryDirectory() as folder, tarfile.open(fileobj=io.BytesIO(packed)) as files:
        files.extractall(folder, filter="data")
        return rooms(Path(folder))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--since", metavar="COMMIT", help="compare with this commit")
    options = parser.parse_args()
    now = rooms(ROOT)
    before = rooms_at(options.since) if options.since else None
    for room in sorted(now.keys() | (before or now).keys()):
        print(row(room, now[room], None if before is None else before[room]))
    print(row("all", now.total(), None if before is None else before.total()))
    sources = [path.read_text("utf-8") for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    classes = sum(isinstance(node, ast.ClassDef) for source in sources for node in ast.parse(source).body)
    tracked = subprocess.run(["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, check=True, text=True).stdout
    whole = sum(code_lines((ROOT / name).read_text("utf-8")) for name in tracked.split())
    print(f"{len(sources)} modules, {classes} classes; {whole} lines in all of the repository")


def row(room: str, now: int, before: int | None) -> str:
    return f"{room:<20}{now:>7}" if before is None else f"{room:<20}{before:>7}{now:>7}{now - before:>+7}"


if __name__ == "__main__":
    main()
