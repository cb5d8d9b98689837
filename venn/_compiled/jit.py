"""Compiler flags for all loops, and a message to users who wait for the compiler."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from contextlib import suppress
from subprocess import Popen
from time import perf_counter
from typing import IO, Any

import numba
from numba.core import event, types
from numba.core.caching import FunctionCache
from numba.core.runtime.nrt import rtsys

from venn._compiled.life import AwaitedSigns

Part: Any = None
Whole: Any = None
NOTICEABLE = 1.0  # seconds of compiling in a process, after which it says so
TRIED = (0, 60), (0, 68)  # tested numba versions, from and to: see compiler.py
if TRIED[0] <= numba.version_info.short <= TRIED[1]:
    from venn._compiled.compiler import Part, Whole


#: By function, the process that compiles its loop meanwhile, and the file that it dates as a sign of life: who needs
#: the loop waits until it is kept, or the process ends or hangs.
compiled_elsewhere: dict[Any, tuple[Popen[bytes], IO[bytes]]] = {}


class LoopCache(FunctionCache):
    """Numba's cache of one loop, which does without where its files cannot be read or written."""

    def load_overload(self, *about: Any) -> Any:
        """Return what is kept, if it can be read."""
        with suppress(OSError):
            other, dated = compiled_elsewhere.pop(self._py_func, (None, None))
            patience = None if dated is None else AwaitedSigns(dated.fileno())
            while (found := self._kept(*about)) is None and other is not None and patience is not None:
                if other.poll() is not None:
                    other = None  # what it kept last is looked for once more
                elif not patience.lasts(0.02):
                    other.kill()
            return found
        return None

    def _kept(self, signature: Any, context: Any) -> Any:
        """Return what is kept, without what only compiling needs: numba would import that first, in half a second."""
        if Whole is None:
            return super().load_overload(signature, context)
        rtsys.initialize(context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(signature, context)

    def save_overload(self, *about: Any) -> None:
        """Keep what was compiled, if it can be written: the disk may be full."""
        try:
            super().save_overload(*about)
        except OSError as error:
            self.disable()
            logging.getLogger("venn").warning("compiled loops cannot be kept in %s: %s", self.cache_path, error)


def keep(loop: Any) -> Any:
    """Let numba keep a loop in its cache, and return it; without a place for that each process compiles it anew."""
    if os.environ.get("NUMBA_DISABLE_CACHING", "0") in ("", "0") and hasattr(loop, "enable_caching"):
        with suppress(RuntimeError):  # numba finds no folder where it may write
            loop._cache = LoopCache(loop.py_func)  # noqa: SLF001 - what its enable_caching() does
    return loop


def loops(**flags: Any) -> Callable[[Any], Any]:
    """Return a decorator of functions that are compiled with these flags.

    If Python calls it, a function is compiled with all that it calls, and kept in the cache. If compiled code calls it,
    it is part of its caller (see `venn._compiled.compiler`).
    """
    njit: Any = numba.njit  # it has more options than it declares
    config: Any = numba.config
    flags["no_cfunc_wrapper"] = True

    def decorate(function: Any) -> Any:
        if Whole is None or config.DISABLE_JIT:
            return keep(njit(**flags)(function))
        loop = keep(njit(pipeline_class=Whole, **flags)(function))
        part = njit(no_cpython_wrapper=True, pipeline_class=Part, **flags)(function)

        def get_call_template(args: Any, kws: Any) -> Any:
            # Numba distinguishes the constant `m = 0` from a variable, and would compile a useless version for it.
            plain = {name: types.unliteral(kind) for name, kind in kws.items()}
            return part.get_call_template(tuple(types.unliteral(kind) for kind in args), plain)

        loop.get_call_template = get_call_template
        loop.get_overload = part.get_overload
        return loop

    return decorate


# "contract" lets multiply and add fuse; nothing else is relaxed, so sums keep their order and a
# result depends on the numbers alone. error_model="numpy" drops the division check from inner loops.
# nogil releases Python's global lock, so that machines may solve their classes in parallel on threads.
# numba's cache does not notice when flags change: delete __pycache__ then.
compiled = loops(error_model="numpy", fastmath={"contract"}, nogil=True)

# Loops copy arrays number by number: for `a[:] = b` numba compiles a message about shapes, which takes two seconds.
# For long sums that limit the speed: the compiler may add in lanes as wide as the processor's.
# The last bits then differ between processors, not between calls.
in_lanes = loops(error_model="numpy", fastmath={"contract", "reassoc", "nsz"}, nogil=True)


class Announcement(event.Listener):
    """Says at most once in a process that loops are being compiled, when that has taken a noticeable time.

    Loops from the cache raise no event. Loops are compiled when they are first used: another command, machine or
    predictor may need further ones, so a new process may have something to compile again. What takes less than a
    second is not worth a line.
    """

    def __init__(self) -> None:
        self._made = False
        self._depth = 0
        self._start = self._spent = 0.0
        self._outer: Any = None  # the loop that is kept in the cache

    def on_start(self, event: Any) -> None:
        now = perf_counter()
        if self._depth == 0:
            self._start, self._outer = now, event.data["dispatcher"]
        self._depth += 1
        # A loop's parts have events of their own, so that a long compilation is noticed before its end.
        function = self._outer
        long = self._spent + now - self._start >= NOTICEABLE
        if long and not self._made and function.py_func.__module__.startswith("venn."):
            self._made = True
            place = function.stats.cache_path
            kept = (
                f"kept in {place}"
                if place
                else "not kept for the next process, which needs a folder that it may write: NUMBA_CACHE_DIR names one"
            )
            # A warning, since lower levels are not shown unless logging is set up.
            logging.getLogger("venn").warning(
                "compiling loops that are used for the first time: seconds to a minute; %s", kept
            )

    def on_end(self, event: Any) -> None:
        self._depth -= 1
        if self._depth == 0:
            self._spent += perf_counter() - self._start


event.register("numba:compile", Announcement())
