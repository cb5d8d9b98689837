"""For scikit-learn: threads that share an estimator wait for each other."""

from __future__ import annotations

import os
import threading
from typing import Any
from weakref import WeakKeyDictionary

# Locks are kept outside the estimators, which are pickled and copied. A forked child starts without any: its parent's
# threads, which may hold some, do not exist there to release them.
_turns: WeakKeyDictionary[Any, threading.RLock] = WeakKeyDictionary()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_turns.clear)


def turn(estimator: Any) -> threading.RLock:
    """Return the lock of an estimator, to hold while it learns or predicts: both use shared buffers."""
    return _turns.setdefault(estimator, threading.RLock())
