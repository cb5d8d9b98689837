"""Probabilities of two classes by votes of linear support vector machines on resamples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from venn.adapters.checks import validate_data, whole
from venn.batch.resamples import Draw, Fitted, Linear, resampled
from venn.batch.two_classes import TwoClasses, two_classes
from venn.parameters import integer, positive, share
from venn.prediction import Floats, Integers

CS = tuple(2.0**k for k in range(-6, 5))
CHUNK = 2_000_000  # scores at a time
ROUNDING = 1e-12  # sums of votes closer to 1/2 count as 1/2; scores relatively closer to the threshold count as on it


class BootstrapSVC(TwoClasses):
    """Probabilities of two classes by the bootstrap of linear support vector machines, for scikit-learn.

    Algorithm 1 of the reference. For each C a machine is trained on each of `resamples` samples of the examples with
    replacement, the same for each C; its accuracy is measured on the examples left out. For one C, the probability of
    the first class is the share of machines with a score below 0. The values of C whose mean accuracy is within
    `epsilon` of the largest are combined: their probabilities are averaged with weights proportional to the squared
    accuracy.

    It is a heuristic: nothing is proved about these probabilities. They say how stable the decision is over resamples,
    not how often the label is right: with many examples they go to 0 and 1, and are then not calibrated.

    Parameters
    ----------
    Cs : sequence of floats > 0
        By default 2^-6, ..., 2^4. These are C in 1/2 |w|^2 + C sum xi; in the reference, w'w + C sum xi, C is twice
        as large: its grid 2^-5, ..., 2^5 is the default.
    resamples : int >= 1, default 500
    epsilon : float >= 0, default 0.02
        The reference does not state its own. With 0 only the best C remains, or several if equally good.
    base : estimator, optional
        With a parameter C, `fit` and `decision_function`, such as `ConstrainedSVC` (Ctrl2 of the reference). It is
        fitted to each resample: with the multiplicities as `sample_weight`, or to copies of examples if it takes no
        weights. By default our own linear support vector machine.
    sensitivity : float in [0, 1], optional
        Ctrl1 of the reference: a score counts as negative below -a, where a >= 0 is the least number for which this
        share of the positive training examples has a probability above 1/2, each by the votes of the machines it was
        left out of. By default a = 0. See also `controlled`.
    random_state : int, RandomState or None
    jobs : int >= 1, default 1
        Threads. The answers do not depend on it, to the last bit.
    progress : callable, optional
        Called with the number of resamples done and the total.

    Attributes
    ----------
    classes_ : (2,) array
        Labels in sorted order; the second is the positive class.
    accuracies_ : (R,) array
        Mean accuracy by C on examples left out, NaN where all fits failed.
    weights_ : (R,) array
        Weights of the values of C; 0 for those left out. They sum to 1.
    threshold_ : float
        The number a.
    outcomes_ : Counter
        Number of fits by outcome: "optimal", or for `base` its `status_` if it has one, else "fitted"; or the name of
        the error raised: such a fit has no vote.
    n_features_in_ : int
    feature_names_in_ : (d,) array of str
        If X had names.

    Notes
    -----
    Resamples of one class are drawn again. A resample that leaves no example out has no accuracy. A score of 0 counts
    as positive. A fit ends when its objective exceeds the least one by a relative 1e-6 at most.

    References
    ----------
    Benitez-Pena, Blanquero, Carrizosa & Ramirez-Cobo (2020), "Cost-sensitive probabilistic predictions for support
    vector machines".

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = (X - X.mean(axis=0)) / X.std(axis=0)
    >>> model = BootstrapSVC(resamples=20, Cs=[0.1, 1.0], random_state=0).fit(X[:400], y[:400])
    >>> p = model.predict_proba(X[400:])
    >>> p.shape, bool(((0 <= p) & (p <= 1)).all()), bool(model.score(X[400:], y[400:]) > 0.9)
    ((169, 2), True, True)
    >>> careful = model.controlled(X[:400], y[:400], sensitivity=1.0)
    >>> bool((careful.predict_proba(X[400:])[:, 1] >= p[:, 1]).all())
    True
    """

    def __init__(
        self,
        Cs: Sequence[float] = CS,
        resamples: int = 500,
        epsilon: float = 0.02,
        *,
        base: Any = None,
        sensitivity: float | None = None,
        random_state: Any = None,
        jobs: int = 1,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self.Cs = Cs
        self.resamples = resamples
        self.epsilon = epsilon
        self.base = base
        self.sensitivity = sensitivity
        self.random_state = random_state
        self.jobs = jobs
        self.progress = progress

    def _more_tags(self) -> dict[str, Any]:  # scikit-learn < 1.6
        return {"non_deterministic": self.random_state is None}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = self.random_state is None
        return tags

    @whole
    def fit(self, X: Any, y: Any) -> BootstrapSVC:
        """Train on resamples.

        Parameters
        ----------
        X : (n, d) array or data frame of finite numbers
        y : (n,) labels of two classes

        Returns
        -------
        self

        Raises
        ------
        TypeError, ValueError
            A parameter, X or y are not as described; or no resample leaves an example out. What was fitted before
            stays.
        NotConverged
            The solver does not reach its tolerance.
        RuntimeError
            All fits of `base` failed; the last error is the cause.
        """
        Cs, resamples, epsilon, jobs, wanted = self._checked()
        X, y = validate_data(self, X, y, dtype=np.float64, order="C")
        classes = two_classes(y)
        codes = (y == classes[1]).astype(np.int64)
        signs = np.where(codes == 1, 1.0, -1.0)
        draws = list(resampled(codes, resamples, check_random_state(self.random_state)))
        if all(len(draw.out) == 0 for draw in draws):
            raise ValueError(f"X must have examples that some resample leaves out, got {len(X)} and none of them")
        scorers: Any = Linear(X, signs, Cs) if self.base is None else Fitted(X, y, self.base, Cs)
        found: list[list[Any]] = [[] for _ in Cs]
        # For each C: resamples that have a scorer, and accuracies.
        where: list[list[int]] = [[] for _ in Cs]
        accuracies: list[list[float]] = [[] for _ in Cs]
        outcomes: Counter[str] = Counter()

        def accuracy(scorer: Any, draw: Draw) -> float:
            right = (scorers.own_scores(scorer, draw.out) >= 0) == (signs[draw.out] > 0)
            return float(right.mean())

        def one(draw: Draw) -> tuple[list[Any], list[str], list[float]]:
            own, said = scorers.fit(draw)
            return own, said, [np.nan if f is None or len(draw.out) == 0 else accuracy(f, draw) for f in own]

        with ThreadPoolExecutor(jobs) as pool:
            for b, (own, said, accurate) in enumerate(pool.map(one, draws) if jobs > 1 else map(one, draws)):
                outcomes.update(said)
                for r, scorer in enumerate(own):
                    if scorer is not None:
                        found[r].append(scorer)
                        where[r].append(b)
                    if not np.isnan(accurate[r]):
                        accuracies[r].append(accurate[r])
                if self.progress is not None:
                    self.progress(b + 1, resamples)
        if not any(found):
            raise RuntimeError(
                f"base must be fitted to some resample, got {dict(outcomes)} from {self.base!r}"
            ) from scorers.error
        self.accuracies_ = np.array([np.mean(own) if own else np.nan for own in accuracies])
        if np.isnan(self.accuracies_).all():
            raise ValueError(f"base must be fitted to some resample that leaves examples out, got {dict(outcomes)}")
        self.weights_ = accuracy_weights(self.accuracies_, epsilon)
        self.classes_ = classes
        self.outcomes_ = outcomes
        self.threshold_ = 0.0
        chosen = np.flatnonzero(self.weights_)
        if wanted is not None:
            medians = self._left_out(scorers, codes, draws, [found[r] for r in chosen], [where[r] for r in chosen])
            self.threshold_ = least_threshold(medians, wanted)
        self._scorers, self._packed = scorers, scorers.packed([found[r] for r in chosen])
        return self

    def _checked(self) -> tuple[list[float], int, float, int, float | None]:
        try:
            Cs = [positive("Cs", C) for C in self.Cs]
        except TypeError as error:
            raise TypeError(f"Cs must be a sequence of finite numbers > 0, got {self.Cs!r}") from error
        if not Cs:
            raise ValueError(f"Cs must hold at least one number, got {self.Cs!r}")
        wanted = None if self.sensitivity is None else share("sensitivity", self.sensitivity)
        if self.base is not None and (
            isinstance(self.base, type)
            or not all(callable(getattr(self.base, name, None)) for name in ("fit", "decision_function", "get_params"))
            or "C" not in self.base.get_params()
        ):
            raise TypeError(
                "base must be an estimator with fit, decision_function and a parameter C, such as ConstrainedSVC(), "
                f"got {self.base!r}"
            )
        epsilon = positive("epsilon", self.epsilon, zero=True)
        return Cs, integer("resamples", self.resamples, 1), epsilon, integer("jobs", self.jobs, 1), wanted

    def _left_out(
        self, scorers: Any, codes: Integers, draws: list[Draw], found: list[list[Any]], where: list[list[int]]
    ) -> Floats:
        """Return medians of the scores of positive training examples, by machines that they were left out of."""
        some = np.flatnonzero(codes == 1)
        weights = self.weights_[self.weights_ > 0]
        room = max(1, CHUNK // sum(len(own) for own in found))
        medians = []
        for first in range(0, len(some), room):
            part = some[first : first + room]
            out = np.array([draw.counts[part] == 0 for draw in draws]).T
            scores, votes = [], []
            for own, places, weight in zip(found, where, weights, strict=True):
                scores.append(np.column_stack([scorers.own_scores(scorer, part) for scorer in own]))
                votes.append(weight * shares(out[:, places]))
            medians.append(lower_medians(np.concatenate(scores, axis=1), np.concatenate(votes, axis=1)))
        every = np.concatenate(medians)
        known = every[~np.isnan(every)]
        if len(known) == 0:
            raise ValueError("sensitivity must have positive examples that some resample leaves out, got none")
        return known

    def _objects(self, X: Any) -> Floats:
        check_is_fitted(self, "weights_")
        return validate_data(self, X, dtype=np.float64, order="C", reset=False)

    def _scores(self, X: Floats) -> Iterator[tuple[slice, list[Floats]]]:
        """Yield parts of the objects, each with its (m, B) scores by each C that counts."""
        room = max(1, CHUNK // sum(len(own) for own in self._packed))
        for first in range(0, len(X), room):
            part = slice(first, first + room)
            read = self._scorers.reader(X[part])
            yield part, [read(own) for own in self._packed]

    def controlled(self, X: Any, y: Any, sensitivity: float) -> BootstrapSVC:
        """Return a copy whose threshold gives the wanted share of these positive examples a probability above 1/2.

        The reference seems to use the examples that it then evaluates. That is optimistic: use separate examples.

        Parameters
        ----------
        X : (n, d) array or data frame of finite numbers
        y : (n,) labels of `classes_`, at least one positive
        sensitivity : float in [0, 1]

        Raises
        ------
        ValueError
            y has another length than X, a label that is not in `classes_`, or no positive one; or `sensitivity` is not
            in [0, 1].
        """
        wanted = share("sensitivity", sensitivity)
        objects = self._objects(X)
        y = np.asarray(y)
        if y.shape != (len(objects),):
            raise ValueError(f"y must have shape ({len(objects)},), one label for each object, got {y.shape}")
        unknown = ~np.isin(y, self.classes_)
        if unknown.any():
            i = int(unknown.argmax())
            raise ValueError(f"y must hold labels of {self.classes_.tolist()!r}, got {y[i]!r} at {i}")
        objects = objects[y == self.classes_[1]]
        if len(objects) == 0:
            raise ValueError(f"y must hold at least one {self.classes_.tolist()[1]!r}, got none")
        weights = self.weights_[self.weights_ > 0]
        medians = np.empty(len(objects))
        for part, scores in self._scores(objects):
            votes = [weight * shares(np.ones(own.shape, bool)) for own, weight in zip(scores, weights, strict=True)]
            medians[part] = lower_medians(np.concatenate(scores, axis=1), np.concatenate(votes, axis=1))
        other = copy(self)
        other.threshold_ = least_threshold(medians, wanted)
        return other

    def probabilities(self, X: Any, threshold: float) -> Floats:
        """Return (n, 2) probabilities if a score counts as negative below -threshold; `predict_proba` has its own.

        The probability of `classes_[1]` does not fall as the threshold rises; with 0 it is that of Algorithm 1.

        Parameters
        ----------
        X : (n, d) array or data frame of finite numbers
        threshold : float >= 0
        """
        a = positive("threshold", threshold, zero=True)
        objects = self._objects(X)
        weights = self.weights_[self.weights_ > 0]
        negative = np.zeros(len(objects))
        for part, scores in self._scores(objects):
            for own, weight in zip(scores, weights, strict=True):
                negative[part] += weight * (own < -a).mean(axis=1)
        negative = np.minimum(negative, 1.0)  # weights sum to 1 up to rounding
        return np.column_stack([negative, 1.0 - negative])

    def predict_proba(self, X: Any) -> Floats:
        """Return (n, 2) probabilities of the classes of n objects.

        Parameters
        ----------
        X : (n, d) array or data frame of finite numbers
        """
        check_is_fitted(self, "weights_")
        return self.probabilities(X, self.threshold_)

    def predict(self, X: Any) -> Any:
        """Return (n,) labels of n objects, as for `predict_proba`: `classes_[1]` where its probability is above 1/2."""
        second = self.predict_proba(X)[:, 1] > 0.5 + ROUNDING
        return self.classes_[second.astype(np.int64)]


def accuracy_weights(accuracies: Floats, epsilon: float) -> Floats:
    """Return weights proportional to squared accuracies within `epsilon` of the largest; others, and NaN, get 0.

    >>> accuracy_weights(np.array([0.6, 0.8, np.nan, 0.5]), 0.25).round(2)
    array([0.36, 0.64, 0.  , 0.  ])
    """
    kept = np.nan_to_num(accuracies, nan=-np.inf) >= np.nanmax(accuracies) - epsilon
    squares = np.where(kept, accuracies, 0.0) ** 2 if np.nanmax(accuracies) > 0 else kept.astype(np.float64)
    return squares / squares.sum()


def shares(counted: Any) -> Floats:
    """Return (m, B) shares: in each row equal for the entries that are counted, and 0 for the others."""
    many = counted.sum(axis=1, keepdims=True)
    return counted / np.maximum(many, 1)


def lower_medians(scores: Floats, votes: Floats) -> Floats:
    """Return (m,) least scores, by row, that have at least half of the votes up to them; NaN without votes.

    The votes below t are less than half of all if t is at most that score, and only then.

    >>> lower_medians(np.array([[3.0, 1.0, 2.0, 4.0]]), np.ones((1, 4)))
    array([2.])
    """
    order = scores.argsort(axis=1)
    total = np.take_along_axis(votes, order, axis=1).cumsum(axis=1)
    first = (total >= total[:, -1:] * (0.5 - ROUNDING)).argmax(axis=1)
    medians: Floats = np.take_along_axis(scores, order, axis=1)[np.arange(len(scores)), first]
    return np.where(total[:, -1] > 0, medians, np.nan)


def least_threshold(medians: Floats, wanted: float) -> float:
    """Return the least a >= 0 for which the share `wanted` of these medians is at least -a; slightly more, for
    rounding.

    >>> round(least_threshold(np.array([-0.5, -0.1, 0.3, 2.0]), 0.75), 9)
    0.1
    """
    many = int(np.ceil(wanted * len(medians) - 1e-9))
    a = 0.0 if many == 0 else -float(np.sort(medians)[::-1][many - 1])
    return a + ROUNDING * (1.0 + a) if a > 0 else 0.0
