"""For scikit-learn: threads that share an estimator take turns."""

from __future__ import annotations

import os
import threading
from typing import Any
from weakref import WeakKeyDictionary

# The locks are kept apart from the estimators, which are pickled and copied. A forked child starts without: the threads
# of its parent that hold some are not there to let go.
_turns: WeakKeyDictionary[Any, threading.RLock] = WeakKeyDictionary()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_turns.clear)


def turn(estimator: Any) -> threading.RLock:
    """Return the lock of an estimator, for what learns or asks: questions are solved in buffers that all share."""
    return _turns.setdefault(estimator, threading.RLock())
