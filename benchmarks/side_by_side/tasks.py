"""The input of a contender: one stream, the same for all, and what was fixed beforehand."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from sklearn.linear_model import LogisticRegression

import streams

# Kernel width (of exp(-gamma |x - z|^2)) and C, fixed beforehand; of a set that is not here: .1 and 1. With many
# features the first is one over their number, scikit-learn's "auto".
SETTINGS = {
    "car": (0.1, 10.0), "wine_red": (0.1, 1.0), "pima": (0.05, 1.0), "banknote": (0.1, 10.0), "adult": (1 / 108, 1.0),
}  # fmt: skip


@dataclass(frozen=True)
class Size:
    """How much of a stream a job takes: examples that train a scorer, that calibrate it, that are predicted."""

    train: int
    calibrate: int
    steps: int

    @property
    def total(self):
        """Number of examples."""
        return self.train + self.calibrate + self.steps

    def quick(self):
        """Return the sizes of a trial that takes seconds."""
        return Size(min(self.train, 200), min(self.calibrate, 99), min(self.steps, 30))


class Task:
    """A stream cut into parts, in its order; labels are the codes 0, 1, ... of the classes."""

    def __init__(self, data, size, part=None):
        self.data, self.size = data, size
        self.gamma, self.C = SETTINGS.get(data, (0.1, 1.0))
        X, y, classes, known = loaded(data, size.total)
        a, b = size.train, size.train + size.calibrate
        self.train, self.calibrate = (X[:a], y[:a]), (X[a:b], y[a:b])
        end = b + size.steps if part is None else b + part
        self.X, self.y = X[b:end], y[b:end]
        self.classes = list(range(classes))
        self.probabilities = None if known is None else known[b:end]

    @property
    def sigma(self):
        """The length that some call the width of the kernel exp(-|x - z|^2 / (2 sigma^2))."""
        return float(np.sqrt(0.5 / self.gamma))

    @cached_property
    def scorer(self):
        """One logistic regression on the first part, the same for all; not counted in anybody's time."""
        return LogisticRegression(max_iter=1000).fit(*self.train)

    def fit_scorer(self):
        """Fit it now, if there is a part to fit it to."""
        return self.scorer if self.size.train else None


ORDERED = ", in order of time"
READ = {}  # what was read, by name and number of examples


def loaded(data, n):
    """Return what `read` returns, read once."""
    if (data, n) not in READ:
        READ[data, n] = read(data, n)
    return READ[data, n]


def read(data, n):
    """Return objects, label codes, number of classes and known probabilities (or None) of the first n examples.

    Shuffled with seed 0, where the name does not end in `ORDERED`; features of real sets are standardised over the
    whole set.
    """
    if data == "gaussians":
        stream = streams.gaussians(n, classes=3, spread=0.7, seed=0)
    elif data == "gaussians, 2 classes":
        stream = streams.gaussians(n, classes=2, spread=1.0, seed=0)
    else:
        name, ordered, _ = data.partition(ORDERED)
        stream = streams.load(name, shuffle=None if ordered else 0).take(n)
    X, y = np.array(stream.X, np.float64), np.array(stream.y, np.int64)
    return X, y, len(stream.classes), getattr(stream, "probabilities", None)
