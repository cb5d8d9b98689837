"""Compiler flags, once for all loops, and a word to whoever waits for the compiler."""

from __future__ import annotations

import logging
from typing import Any

import numba
from numba.core import event

# "contract" lets multiply and add fuse; nothing else is relaxed, so sums keep their order and a
# result depends on the numbers alone. error_model="numpy" drops the division check from inner loops.
# nogil lets go of Python's lock, so that machines may solve their classes side by side on threads.
# numba's cache does not notice when flags change: delete __pycache__ then.
compiled = numba.njit(cache=True, error_model="numpy", fastmath={"contract"}, nogil=True)

# For long sums that limit the speed: the compiler may add in lanes of the width that the processor has.
# The last bits then differ between processors, not between calls.
in_lanes = numba.njit(cache=True, error_model="numpy", fastmath={"contract", "reassoc", "nsz"}, nogil=True)


class _Announcement(event.Listener):
    """Says once in a process that loops are being compiled; loops that come from the cache make no such event."""

    def __init__(self) -> None:
        self._made = False

    def on_start(self, event: Any) -> None:
        function = event.data["dispatcher"]
        if not self._made and function.py_func.__module__.startswith("venn."):
            self._made = True
            # A warning, since nothing lower is shown where nobody has set up logging.
            logging.getLogger("venn").warning(
                "compiling loops for this processor: seconds to a minute, once; kept in %s", function.stats.cache_path
            )

    def on_end(self, event: Any) -> None:
        pass


event.register("numba:compile", _Announcement())
