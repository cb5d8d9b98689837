"""Draws the figures of a long replay in two processes, which have imported what that takes before its end."""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from pathlib import Path
from threading import Thread

from venn.machines.fit_ahead import FitAhead, OtherProcess, is_frozen, one_core
from venn.online.figures import applicable, draw_all
from venn.online.record import Record

LONG = 1000  # steps, of less the figures wait for the import
LAST = 250  # steps during which the other process imports what it needs
DRAWS = ("matplotlib.figure", "matplotlib.layout_engine", "matplotlib.backends.backend_agg")  # what figures import
THERE = ("errors", "p_values")  # about half of the work for records of classes


class TwoDrawers:
    """Draws the figures of a replay of so many steps; it is told of each step, and where it is not it draws alone."""

    def __init__(self, steps: int) -> None:
        self._begins = steps - LAST if steps >= LONG and not one_core() and not is_frozen() else -1
        self._process: OtherProcess | None = None

    def at(self, n: int) -> None:
        """Begin to import: here at the first step, while fits are waited for, there near the end."""
        if n == 0 and self._begins > 0:
            Thread(target=_imported, daemon=True).start()
        if n == self._begins:
            with suppress(OSError):  # no process may be begun here, or no file made
                self._process = OtherProcess(("venn.online.record", *DRAWS))

    def draw(self, record: Record, file: Path) -> list[Path]:
        """Draw all figures that apply beside the file of the record; return their files."""
        if self._process is None:
            return record.plot_all(file.parent)
        wanted = applicable(record)
        there = [name for name in wanted if name in THERE]
        other = FitAhead(drawn_of, (file, there), by=self._process)
        draw_all(record, file.parent, [name for name in wanted if name not in THERE])
        if other.result() is None:
            draw_all(record, file.parent, there)
        return [file.with_name(f"{name}.png") for name in wanted]


def _imported() -> None:
    """Import what figures need; who draws them says what is missing."""
    with suppress(ImportError):
        for module in DRAWS:
            import_module(module)


def drawn_of(file: Path, names: list[str]) -> list[Path]:
    """Draw figures beside the file of a record; return their files."""
    return draw_all(Record.load(file), file.parent, names)
