"""Compiles the loops of the hinge machine in another process, while this one compiles those that come first.

They are a third of all that `venn replay car` compiles when it is first called on a machine. Numba compiles one loop at
a time in a process, so a second process is what a second core is good for. The cache gives what it has compiled to
both.
"""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from venn._compiled import counting, jit, margin, step

COMPILED = counting, margin, step  # modules whose loops the other process compiles


def compile_hinge_beside() -> None:
    """Begin to compile the loops of the hinge machine in another process, unless they are in the cache already."""
    cache: Any = getattr(step.solve_step, "_cache", None)
    file = getattr(cache, "_cache_file", None)  # there is none where nothing may be kept
    one_core = len(os.sched_getaffinity(0)) < 2 if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1) < 2
    frozen = getattr(sys, "frozen", False) or not sys.executable  # such a program would begin again
    if file is None or one_core or frozen or Path(file._index_path).exists():  # noqa: SLF001 - numba has no other door
        return
    with suppress(OSError):  # no process may be begun here
        other = subprocess.Popen(
            [sys.executable, "-m", __name__],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        jit.compiled_elsewhere.update(dict.fromkeys([module.__name__ for module in COMPILED], other))


def compile_hinge() -> None:
    """Let a hinge machine learn a few examples, so that its loops are compiled."""
    import venn

    machine = venn.OneVsAllSVM(venn.RBF(0.5), C=10, classes=["a", "b", "c"])
    model = venn.TransductiveVenn(machine, venn.Argmax())
    for i in range(12):
        x = [i / 3 - 2, i % 3 - 1.0]
        model.predict_one(x)
        model.learn_one(x, "abc"[i % 3])


if __name__ == "__main__":
    compile_hinge()
