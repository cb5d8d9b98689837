"""Blocks that processes of a cluster make, and a model that scores them: to find these they import little else."""

import json
import os
import signal
from pathlib import Path

import numpy as np

CLASSES = ["no", "perhaps", "yes"]


class Slopes:
    """Scores of classes are linear in the first column."""

    classes_ = np.array(CLASSES)

    def decision_function(self, X):
        return np.column_stack([-X[:, 0] - 0.5, 0.1 - abs(X[:, 0]) / 2, X[:, 0] - 0.5])


def rows(i, n=40):
    """Block i: objects full of ties, and their labels."""
    rng = np.random.default_rng(i)
    X = rng.integers(-3, 4, (n, 2)) / 2.0
    noise = rng.normal(0, 0.7, n)
    return X, np.array(CLASSES)[np.digitize(X[:, 0] + noise, [-0.5, 0.5])]


class Odd(RuntimeError):
    """An error that cannot be made of a text."""

    def __init__(self, code, text):
        super().__init__(code, text)


def failing(how):
    """A block that cannot be made."""
    if how == "json":
        json.loads("{")
    elif how == "bytes":
        b"\xff".decode()
    elif how == "file":
        Path("/nowhere/at/all").read_text()
    raise Odd(7, "no such luck")


def deadly(folder, i):
    """Block i; the first time that block 5 is made its process dies."""
    (folder / f"{i}-{os.getpid()}").touch()
    try:
        if i == 5:
            (folder / "dead").touch(exist_ok=False)
            os.kill(os.getpid(), signal.SIGKILL)
    except FileExistsError:
        pass
    return rows(i)
