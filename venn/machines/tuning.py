"""Kernel width and C from a prefix of the stream, by leave-one-out scores in closed form."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import eigh
from scipy.spatial.distance import pdist

from venn._compiled.scaling import apply_platt, fit_platt
from venn.labels import checked_labels
from venn.machines.kernels import RBF, Kernel, checked_kernel, fitted_to
from venn.machines.least_squares import LeastSquaresSVM
from venn.machines.machine import code_of
from venn.machines.objects import clean_object
from venn.machines.sparse import clean_sparse, is_sparse
from venn.machines.threads import one_thread
from venn.parameters import class_codes, positive
from venn.prediction import Floats, Integers, Label
from venn.saved import Saved, component, param

WIDTHS = tuple(2.0**k for k in range(-4, 4))  # times 1 / median squared distance
PENALTIES = (0.1, 1.0, 10.0, 100.0)
FEWEST = 4
PAIRS = "prefix must iterate (x, y) pairs, as streams.from_arrays(X, y) does"


class Trial(NamedTuple):
    """One choice, with its quality on the prefix."""

    kernel: Kernel
    C: float
    log_loss: float  #: of sigmoids fitted to the leave-one-out scores, natural logarithm
    error: float  #: share of examples whose largest leave-one-out score is of another class


def _restored_trials(name: str, trials: Any) -> tuple[Trial, ...]:
    return tuple(Trial(checked_kernel("kernel", kernel), *map(float, rest)) for kernel, *rest in trials)


def _restored_prefix(name: str, prefix: Any) -> tuple[tuple[bytes, Label], ...]:
    """Return the examples, objects by their content, in a canonical order."""
    examples = [(x if isinstance(x, bytes) else x.tobytes(), y) for x, y in prefix]
    return tuple(sorted(examples, key=lambda example: (example[0], repr(example[1]))))


@component
class Tuning(Saved):
    """What `tune` found.

    Attributes
    ----------
    kernel, C
        The choice of least log loss; of equal ones the first in the grid.
    trials : tuple of Trial
        The whole grid, in order.
    n : int
        Number of examples in the prefix.

    Examples
    --------
    >>> import streams, venn
    >>> tuning = venn.tune(streams.synthetic.gaussians(40, classes=2, seed=0))
    >>> tuning.n, tuning.best.log_loss == min(trial.log_loss for trial in tuning.trials)
    (40, True)
    >>> tuning.machine().C == tuning.C
    True
    """

    trials: Any = param(_restored_trials)
    prefix: Any = param(_restored_prefix)
    classes: Any = param(checked_labels, 2)

    def derive(self) -> None:
        """Choose."""
        self.best = min(self.trials, key=attrgetter("log_loss"))
        self.kernel, self.C = self.best.kernel, self.best.C
        self.n = len(self.prefix)
        self._known = frozenset(self.prefix)

    @property
    def parameters(self) -> dict[str, Any]:
        """The arguments of the constructor, with trials as plain tuples."""
        return super().parameters | {"trials": tuple(tuple(trial) for trial in self.trials)}

    def machine(self, kind: Callable[..., Any] = LeastSquaresSVM) -> Any:
        """Return a new machine, of the given class, with the kernel, C and classes of this choice.

        `venn.replay` warns when such a machine, or one made by its `fresh()`, is taught what it was tuned on.

        Raises
        ------
        TypeError
            `kind` does not make machines.
        """
        if not callable(kind):
            raise TypeError(f"kind must be a class of machines, such as LeastSquaresSVM, got {kind!r}")
        machine = kind(self.kernel, self.C, self.classes)
        try:
            machine.tuning = self
        except AttributeError:
            raise TypeError(f"kind must be a class of machines, such as LeastSquaresSVM, got {kind!r}") from None
        return machine

    def met(self, x: Any, y: Label) -> bool:
        """Whether the example is one of those tuned on."""
        return (dense_object(x, None).tobytes(), y) in self._known

    def __repr__(self) -> str:
        return f"Tuning({self.kernel!r}, C={self.C:g}; log loss {self.best.log_loss:.3f} on {self.n} examples)"


def tune(
    prefix: Iterable[tuple[Any, Label]],
    classes: Sequence[Label] | None = None,
    *,
    kernels: Sequence[Kernel] | None = None,
    penalties: Sequence[float] = PENALTIES,
    progress: Callable[[int, int], None] | None = None,
) -> Tuning:
    """Choose a kernel and C for the examples that follow.

    For every kernel and C the least-squares machines' leave-one-out scores on the prefix follow in closed
    form from one eigendecomposition per kernel. The choice is that of least log loss, by a sigmoid for
    each class fitted to these scores.

    Validity requires that the examples predicted and learned be exchangeable given the choice. So the prefix must
    belong to no bag: continue with the rest of the stream, and let no machine learn the prefix. Tuning on the past
    repeatedly, as examples come, would treat the new example unlike the others.

    Parameters
    ----------
    prefix : iterable of (x, y), at least 4
        Such as `stream.take(200)`; go on with `stream.drop(200)`. Sparse objects are made dense here; there are few of
        them.
    classes : sequence of labels, optional
        By default those of the stream.
    kernels : sequence of Kernel, optional
        By default `RBF(gamma)` for gamma from 1/16 to 8 times the reciprocal of the median squared distance.
    penalties : sequence of float > 0
        Values of C.
    progress : callable, optional
        Called with the number of kernels done and their total.

    Returns
    -------
    Tuning

    Raises
    ------
    ValueError, TypeError
        Fewer than 4 examples or 2 classes in the prefix, a bad object, label, kernel or penalty, or no classes given
        by argument or stream.

    References
    ----------
    Cawley & Talbot (2004), "Fast exact leave-one-out cross-validation of sparse least-squares support vector
    machines".

    Examples
    --------
    >>> import streams, venn
    >>> stream = streams.load("car", shuffle=0)
    >>> tuning = venn.tune(stream.take(100))
    >>> model = venn.TransductiveVenn(tuning.machine(), venn.LeaveOneOut(venn.Argmax()))
    >>> for x, y in stream.drop(100).take(20):
    ...     prediction = model.predict_one(x)
    ...     model.learn_one(x, y)
    """
    _refuse_tables(prefix)
    if classes is None:
        classes = getattr(prefix, "classes", None)
        if classes is None:
            raise TypeError("classes must be given for a prefix that is no stream with classes, got None")
    codes = class_codes(classes)
    examples: list[tuple[Floats, Label]] = []
    for example in prefix:
        if not isinstance(example, tuple | list) or len(example) != 2:
            raise TypeError(f"{PAIRS}, got {example!r}")
        x, label = example
        examples.append((dense_object(x, len(examples[0][0]) if examples else None), label))
        code_of(label, codes)
    if len(examples) < FEWEST:
        raise ValueError(f"prefix must have at least {FEWEST} examples, got {len(examples)}")
    X = np.array([x for x, _ in examples])
    y = np.array([codes[label] for _, label in examples])
    if not isinstance(penalties, Iterable) or not isinstance(kernels, Iterable | None):
        raise TypeError(f"kernels and penalties must be sequences, got {kernels!r} and {penalties!r}")
    if progress is not None and not callable(progress):
        raise TypeError(f"progress must be a function of two numbers or None, got {progress!r}")
    if len(set(y.tolist())) < 2:
        raise ValueError(
            f"prefix must hold examples of at least 2 classes, got {len(y)} of {examples[0][1]!r} alone: nothing can "
            "be chosen; take a longer one, or shuffle"
        )
    tried = [positive("penalties", C) for C in penalties]
    candidates = widths(X) if kernels is None else [fitted_to(checked_kernel("kernel", one), X) for one in kernels]
    if not tried or not candidates:
        raise ValueError(f"kernels and penalties must hold at least one each, got {candidates!r} and {tried!r}")
    trials: list[Trial] = []
    for done, kernel in enumerate(candidates):
        if progress is not None:
            progress(done, len(candidates))
        with one_thread():
            values, vectors = eigh(gram(kernel, X), check_finite=False)
            for C in tried:
                scores = leave_one_out(np.maximum(values, 0.0), vectors, y, len(codes), C)
                trials.append(Trial(kernel, C, *quality(scores, y)))
    if progress is not None:
        progress(len(candidates), len(candidates))
    return Tuning(trials, examples, tuple(codes))


def _refuse_tables(prefix: Any) -> None:
    """Raise for arrays and tables, which are not pairs (x, y), before anything else is checked."""
    several = isinstance(prefix, tuple | list)
    first = prefix[0] if several and len(prefix) == 2 else None  # as in (X, y)
    for one, where in ((prefix, ""), (first, f" in a {type(prefix).__name__}")):
        if isinstance(one, np.ndarray | str) or hasattr(type(one), "columns") or is_sparse(one):
            raise TypeError(f"{PAIRS}, got a {type(one).__name__}{where}")
    if not isinstance(prefix, Iterable):
        raise TypeError(f"{PAIRS}, got {prefix!r}")


def dense_object(x: Any, features: int | None) -> Floats:
    """Return `x` as `clean_object` does; sparse objects are made dense."""
    return clean_sparse("x", x, features).toarray()[0] if is_sparse(x) else clean_object(x, features)


def widths(X: Floats) -> list[Kernel]:
    """Return RBF kernels of the default widths for the objects."""
    distances = pdist(X, "sqeuclidean")
    typical = float(np.median(distances)) or float(distances.mean()) or float(X.shape[1])
    if not 1e-150 < typical < 1e150:
        raise ValueError(f"prefix must have features of a sensible size, got a median squared distance of {typical:g}")
    return [RBF(width / typical) for width in WIDTHS]


def gram(kernel: Kernel, X: Floats) -> Floats:
    """Return the (n, n) kernel matrix of the objects."""
    n = len(X)
    columns = np.ascontiguousarray(X.T)
    K = np.empty((n, n))
    for i in range(n):
        kernel.row(columns, n, X[i], K[i])
    if not np.isfinite(K).all():
        raise ValueError(f"kernels must have finite values on the prefix, got {kernel!r} which has not")
    return K


def leave_one_out(values: Floats, vectors: Floats, y: Integers, c: int, C: float) -> Floats:
    """Return (c, n) leave-one-out scores from the eigenvalues and -vectors of the kernel matrix."""
    shrunk = 1.0 / (values + 1.0 / C)
    targets = np.where(y == np.arange(c)[:, None], 1.0, -1.0)
    sums = vectors @ (shrunk * vectors.sum(axis=0))
    diagonal = (vectors**2) @ shrunk
    solutions = ((targets @ vectors) * shrunk) @ vectors.T
    total = sums.sum()
    a = solutions - solutions.sum(axis=1, keepdims=True) / total * sums
    return targets - a / (diagonal - sums**2 / total)


def quality(scores: Floats, y: Integers) -> tuple[float, float]:
    """Return the log loss of sigmoids fitted to the scores (c, n), and the share of errors of their argmax.

    Where the kernel carries no information, a leave-one-out score is little more than the mean target of the *other*
    examples. That is lower for positive examples than for negative ones, so a falling sigmoid would reveal the label.
    Such a sigmoid is replaced by the rate of the class.
    """
    c, n = scores.shape
    positives = (y == np.arange(c)[:, None]).astype(np.int64)
    maps, failed = fit_platt(scores, positives, np.ones(n, np.int64), np.full((c, 3), np.nan))
    error = float((scores.argmax(axis=0) != y).mean())
    if failed >= 0:
        return np.inf, error
    p = np.array([apply_platt(maps, np.ascontiguousarray(column)) for column in scores.T])
    falling = maps[:, 0] >= 0
    p[:, falling] = ((positives.sum(axis=1) + 1) / (n + 2))[falling]
    return float(-np.log(p[np.arange(n), y] / p.sum(axis=1)).mean()), error
