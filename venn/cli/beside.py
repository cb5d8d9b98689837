"""Compiles nearly half of what `venn replay car` compiles when it is first called on a machine, in another process.

Numba compiles one loop at a time in a process, so a second process is what a second core is good for. The cache gives
what it has compiled to both. It begins with what takes longest, the loop of the hinge machine.
"""

from __future__ import annotations

import subprocess
import sys
from contextlib import ExitStack, suppress
from pathlib import Path
from tempfile import TemporaryFile
from threading import Thread
from typing import Any

import numpy as np

from venn._compiled import jit, margin, mixture, ridge, scaling, step
from venn._compiled.life import show_life
from venn.machines.fit_ahead import is_frozen, one_core

#: Loops that the other process compiles first, in this order; this one waits for them.
AWAITED = (
    step.solve_step, scaling.fit_platt, scaling.ranges, scaling.fit_bins, scaling.fit_isotonic,
    ridge.leave_one_out_scores, mixture.fit_mixture, margin.certify,
)  # fmt: skip


def compile_beside() -> None:
    """Begin to compile loops in another process, unless that of the hinge machine is in the cache already."""
    cache: Any = getattr(step.solve_step, "_cache", None)
    file = getattr(cache, "_cache_file", None)  # there is none where nothing may be kept
    if file is None or one_core() or is_frozen() or Path(file._index_path).exists():  # noqa: SLF001 - numba has no other door
        return
    with suppress(OSError), ExitStack() as failed:  # no process may be begun here, or no file made
        dated = failed.enter_context(TemporaryFile())
        other = subprocess.Popen(
            [sys.executable, "-m", __name__], stdin=subprocess.DEVNULL, stdout=dated, stderr=subprocess.DEVNULL
        )
        failed.pop_all()
        jit.compiled_elsewhere.update((loop.py_func, (other, dated)) for loop in AWAITED)


def compile_loops() -> None:
    """Let a hinge machine answer, maps be fitted to such scores, a mixture learn, and monitors follow a record."""
    import venn
    from venn.machines import Bank, Mixture, MultiscaleLaplacian
    from venn.maps.contract import follower_of
    from venn.monitors.curves import Outcomes
    from venn.prediction import ERROR_RATE, NOTHING

    classes = ["a", "b", "c"]
    machine: Any = venn.OneVsAllSVM(venn.RBF(0.5), C=10, classes=classes)
    machine.hypotheses([0.0])
    scores, counts = np.arange(6.0).reshape(3, 2), np.eye(3, 2, dtype=np.int64)
    for score_map in (venn.maps.Platt(), venn.maps.Binning(), venn.maps.Isotonic()):
        follower_of(score_map, classes).fit(scores, counts, counts.sum(axis=0))
    mixed = Mixture(Bank(MultiscaleLaplacian(), classes))
    for label in classes:
        mixed.learn_one([0.0], label)
    mixed.scores([0.0])
    margin.certify(0, 0.0, 0, 10.0, machine._buffers.objects, machine._buffers.solved)  # noqa: SLF001
    steps = Outcomes._make([*np.zeros((11, 2)), np.zeros((3, 2))])
    for kind, guaranteed in (("PredictionSet", ERROR_RATE), ("Forecast", NOTHING)):
        venn.Monitor(classes).follow(steps, kind, guaranteed)


if __name__ == "__main__":
    Thread(target=show_life, args=(1,), daemon=True).start()  # its output is the file that it dates
    compile_loops()
