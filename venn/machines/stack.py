"""Several kinds of classifiers in one scorer: what inductive predictors train when there are many examples."""

from __future__ import annotations

import logging
import warnings
from typing import Any, ClassVar, Self

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from venn._compiled.mixture import learners_say, pool_loss, product_of_powers, raise_to_powers
from venn._compiled.rows import landmark_scores
from venn._compiled.scorecard import linear_scores
from venn.labels import checked_labels, label_space
from venn.machines.fit_ahead import Fits
from venn.machines.kernels import MultiscaleLaplacian, rate_of
from venn.machines.machine import NotConverged
from venn.machines.objects import clean_row
from venn.machines.scale import ColumnScale, middle, restored_scale
from venn.machines.sparse import SparseRows
from venn.machines.threads import one_thread
from venn.machines.trees import AskedTrees, FlatTrees, trees_of
from venn.parameters import instance, integer, optional
from venn.prediction import Floats, Integers
from venn.saved import (
    Saved,
    array,
    base,
    component,
    own,
    param,
    part,
    restored_finite,
    restored_int,
    state,
)

TREES = 100  # of the forest
LEAVES = 400  # rounds of boosting times classes: with many classes there are fewer rounds
MANY = 1400  # from so many examples on: more trees, more rounds that each learn less, and parts to powers
FARTHEST = 10.0  # deviations from the centre, for the logistic regression
PARTS = ("random forest", "boosted trees", "logistic regression")
KINDS = len(PARTS)
OFTEN = 5  # examples of a class, or it is not boosted: one example may spoil what is said of all others
RARE = 10  # of a class: powers are not fitted to fewer, unless they are a hundredth of all
TRIED = 3  # every third example is left out once, to try the parts
RIDGE = 1.0  # the preferred powers count as much as so many examples
PLAIN = [1.0] * KINDS  # powers that change nothing
POWERS = np.geomspace(0.1, 3.0, 35)  # candidates, of which each part gets one when it is tried

log = logging.getLogger("venn")


K = own(lambda learners: len(learners.present))  # number of classes that the examples have


@component
class Learners(Saved):
    """A random forest, boosted trees and a logistic regression, fitted to the same examples with nothing to choose.

    They are scikit-learn's; what is kept are plain arrays, so that one object takes microseconds, and files need no
    pickle. `Learners.fitted` makes them. From 1400 examples on half of the forest are extremely randomised trees, which
    learn all examples: of few columns they are sharper.

    Classes of fewer than 5 examples are not boosted: what boosted trees say of them is what the forest says.
    Each part is tried on examples that such a part has not seen. One that says less than the frequencies of the
    classes, to whatever power, says nothing. From 1400 examples on its probabilities count to the power that is best
    there, which mends one that is too bold or too timid; before, powers found so are too small where much is being
    learned, and vary.

    Parameters
    ----------
    c : int >= 2
        Number of classes.
    present : (k,) int64
        Codes of those among the examples, ascending; the others have probability 0.
    often : (j,) int64
        Places in `present` of the classes that are boosted, ascending.
    forest, extra, boosted : FlatTrees or AskedTrees, or None
        None where there is one class, and the second one of few examples: it is half of the forest.
    scale : (3, d) float64
        See `ColumnScale.state`.
    coefficients : (1 or k, d + 1) float64
        Of the logistic regression on scaled columns, the constant last.
    powers : (3,) float64, >= 0
        Of what the forest, the boosted trees and the regression say; 0: it says nothing.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 2))
    >>> learners = Learners.fitted(X, (X[:, 0] > 0).astype(int), 2)
    >>> learners.answers(np.array([[2.0, 0.0]])).argmax(axis=2).ravel().tolist()
    [1, 1, 1]
    """

    c: int = param(restored_int, 1)
    present: Integers = param(array(None, of=np.int64, below="c"))
    often: Integers = param(array(None, of=np.int64, below="present"))
    forest: FlatTrees | AskedTrees | None = param(part(FlatTrees, AskedTrees))
    extra: FlatTrees | AskedTrees | None = param(part(FlatTrees, AskedTrees))
    boosted: FlatTrees | AskedTrees | None = param(part(FlatTrees, AskedTrees))
    scale: Floats = param()
    coefficients: Floats = param(
        restored_finite, own(lambda m: (1 if K.of(m) == 2 else K.of(m), m.scale.shape[-1] + 1))
    )
    powers: Floats = param(array(KINDS))

    @property
    def features(self) -> int:
        """Number of features."""
        return self.scale.shape[-1]

    def derive(self) -> None:
        """Take the arrays apart."""
        self._scale: ColumnScale = restored_scale(self.scale)
        self._weights = np.ascontiguousarray(self.coefficients[:, :-1])
        self._constants = self.coefficients[:, -1].copy()

    @classmethod
    def fitted(cls, X: Any, codes: Integers, c: int) -> Self:
        """Return learners fitted to (n, d) objects and (n,) class codes, n >= 1, and tried on a third of them."""
        return cls.fitted_and_tried(X, codes, c, np.arange(0, len(codes), TRIED))[0]

    @classmethod
    def fitted_and_tried(cls, X: Any, codes: Integers, c: int, tried: Integers) -> tuple[Self, Floats]:
        """Return learners, and what such learners say of some of the examples that they have not seen.

        Parameters
        ----------
        tried : (m,) int64
            Which examples. Boosted trees and a logistic regression are fitted to all others as well; of the forest's
            trees each leaves a third of the examples out anyway.

        Returns
        -------
        Learners, (3, m, c) probabilities; NaN where there are none
        """
        X, others = dense(X), np.ones(len(codes), np.bool_)
        others[tried] = False
        counts = np.bincount(codes[others], minlength=c)
        many = len(codes) >= MANY
        learners, unseen = cls._fitted(X, codes, c, counts, many)
        said = np.full((KINDS, len(tried), c), np.nan)
        if learners.forest is None:
            return learners, said
        said[0] = learners.of_all(unseen[tried])
        if (counts > 0).sum() > 1:
            fewer = cls._fitted(X[others], codes[others], c, counts, many, forest=False)[0]
            placed = fewer.place(X[tried])
            if fewer.extra is not None:
                said[0] = (said[0] + fewer.of_all(fewer.extra.proba(placed))) / 2
            said[1:] = fewer.probas_of(placed, said[0])[1:]
        kept = common(codes[tried], c)
        often = codes[tried][kept]
        worst = -np.log((counts[often] + 1 / c) / (counts.sum() + 1)).sum()
        for i, logs in enumerate(logarithms(said)[:, kept]):
            power, loss = best_power(logs, often)
            if loss > worst or np.isnan(said[i]).all():
                learners.powers[i] = 0.0
            elif many:
                learners.powers[i] = power
        return learners, learners.to_powers(said)

    @classmethod
    def _fitted(
        cls, X: Any, codes: Integers, c: int, counts: Integers, many: bool, forest: bool = True
    ) -> tuple[Self, Floats]:
        """Return learners by which classes are boosted that come often in `counts`, and what the forest says unseen.

        That is of trees which leave a part of the examples out, if they are wanted.
        """
        from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier, RandomForestClassifier
        from sklearn.linear_model import LogisticRegression

        present = np.unique(codes)
        k, scale, powers = len(present), middle(X), np.ones(KINDS)
        if k == 1:
            nothing = np.zeros((1, X.shape[1] + 1))
            return cls(c, present, np.arange(1), None, None, None, scale.state, nothing, powers), np.ones((len(X), 1))
        often = np.flatnonzero(counts[present] >= OFTEN)
        j, kept = len(often), np.isin(codes, present[often])
        rounds = int(np.clip(LEAVES // (j if j > 2 else 1), 20, 100))
        size = 3 * TREES // 2 if many else TREES
        woods = RandomForestClassifier(size, oob_score=True, random_state=0)
        extra = ExtraTreesClassifier(size, random_state=0)
        how = {"max_iter": 2 * rounds, "learning_rate": 0.05} if many else {"max_iter": rounds}
        boosting = HistGradientBoostingClassifier(**how, random_state=0)
        linear = LogisticRegression(max_iter=300)
        placed = scale.place(X, FARTHEST)  # to trees the same, but for numbers that 32 bits do not hold
        with one_thread(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # few examples: some in no tree's rest, a search that has not ended
            if many:
                extra.fit(placed, codes)
            if forest:
                woods.fit(placed, codes)
            if j > 1:
                boosting.fit(placed[kept], codes[kept])
            linear.fit(placed, codes)
        weights = np.column_stack([linear.coef_, linear.intercept_])
        boosted = trees_of(boosting, placed[kept], codes[kept]) if j > 1 else None
        trees, extras = (
            trees_of(one, placed, codes) if fitted else None for one, fitted in ((woods, forest), (extra, many))
        )
        unseen = woods.oob_decision_function_ if forest else np.empty(0)
        return cls(c, present, often, trees, extras, boosted, scale.state, weights, powers), unseen

    def tell(self, whose: str, n: int) -> None:
        """Write into the log which parts are left out of what is fitted to n examples."""
        if not self.powers.all():
            parts = ", ".join(name for name, power in zip(PARTS, self.powers, strict=True) if not power)
            log.info("%s fitted to %d examples goes without %s: how often each class came says more", whose, n, parts)

    def place(self, rows: Any) -> Floats:
        """Return (n, d) objects on the scale of the examples."""
        placed: Floats = self._scale.place(dense(rows), FARTHEST)
        return placed

    def of_all(self, shares: Floats) -> Floats:
        """Return (n, c) probabilities of all classes, given those (n, k) of the classes present."""
        if len(self.present) == self.c:
            return shares
        full = np.zeros((len(shares), self.c))
        full[:, self.present] = shares
        return full

    def answers(self, rows: Floats) -> Floats:
        """Return the (3, n, c) probabilities of n objects by the forest, the boosted trees and the regression."""
        return self.probas_of(self.place(rows))

    def probas_of(self, placed: Floats, by_forest: Floats | None = None) -> Floats:
        """Return the same for (n, d) objects on the scale of the examples; of a row as if it were alone.

        The forest says `by_forest` (n, c), where that is given.
        """
        n = len(placed)
        said, scores = np.empty((KINDS, n, self.c)), np.empty((n, len(self._constants)))
        if len(self.present) == 1:
            said[:] = np.eye(self.c)[self.present[0]]
            return said
        first = self._by_half(self.forest, placed) if by_forest is None else by_forest
        second = first if by_forest is not None or self.extra is None else self._by_half(self.extra, placed)
        linear_scores(placed, self._weights, self._constants, scores)
        boosted = self._by_boosted(placed, first, second)
        if not learners_say(first, second, boosted, scores, self.present, said):
            raise ValueError(f"forest, extra and boosted must be of {self.c} classes, got others")
        return self.to_powers(said)

    def _by_half(self, trees: Any, placed: Floats) -> Floats:
        """Return the (n, c) probabilities by one half of the forest."""
        return np.full((len(placed), self.c), np.nan) if trees is None else self.of_all(trees.proba(placed))

    def _by_boosted(self, placed: Floats, first: Floats, second: Floats) -> Floats:
        """Return those by the boosted trees; of rare classes as both halves of the forest say."""
        if self.boosted is None:
            return np.full(first.shape, np.nan)
        shares: Floats = self.boosted.proba(placed)
        if len(self.often) == self.c:
            return shares
        boosted, full = self.present[self.often], (first + second) / 2
        full[:, boosted] = shares * np.ascontiguousarray(full[:, boosted]).sum(axis=1, keepdims=True)
        return full

    def to_powers(self, said: Floats) -> Floats:
        """Take the (3, n, c) answers of the parts to their powers, and return them; NaN where one counts nothing."""
        if self.powers.tolist() != PLAIN:
            raise_to_powers(said, self.powers, FLOOR)
        return said


def best_power(logs: Floats, codes: Integers) -> tuple[float, float]:
    """Return to what power probabilities should count, by their (n, c) logarithms and n labels, and the least loss.

    It is preferred as near to 1 as by `RIDGE` examples.
    """
    each = POWERS[:, None, None] * logs
    lost = (np.logaddexp.reduce(each, axis=2) - each[:, np.arange(len(codes)), codes]).sum(axis=1)
    best = int((lost + RIDGE * np.log(POWERS) ** 2).argmin())
    return float(POWERS[best]), float(lost.min())


def common(codes: Integers, c: int) -> Any:
    """Return which of n examples powers are fitted to: a mask, or all.

    Not those of a class that comes fewer than ten times, and fewer than once in a hundred: nobody can tell when, and by
    small powers all other classes would pay for it.
    """
    counts = np.bincount(codes, minlength=c)
    often = (counts >= RARE) | (100 * counts >= len(codes))
    return often[codes] if (often & (counts > 0)).sum() > 1 and not often[codes].all() else slice(None)


def dense(rows: Any) -> Floats:
    """Return objects as an array."""
    return rows.toarray() if isinstance(rows, SparseRows) else np.asarray(rows)


ROUNDS = 40  # of L-BFGS


def fitted_pool(
    logs: Floats, codes: Integers, first: Floats, ridge: float, begin: tuple[Floats, Floats] | None = None
) -> tuple[Floats, Floats]:
    """Return the powers >= 0 and the factors of classes with the lowest log loss; the problem is convex.

    Parameters
    ----------
    logs : (n, k, c) float64
        Logarithms of the forecasts of n examples by k experts.
    codes : (n,) int64
        Class codes of their labels.
    first : (k,) float64
        Powers that are preferred: `ridge` times the squared distance is added to the loss, also for the factors from 0.
    begin : (k,) and (c,) float64, optional
        Where the search begins, by default at `first` and 0.

    Returns
    -------
    (k,) powers, (c,) logarithms of factors
    """
    from scipy.optimize import minimize  # it takes longer to import than to run

    _, k, c = logs.shape
    start = np.concatenate([first, np.zeros(c)])
    by_power, by_factor = np.empty(k), np.empty(c)

    def loss(place: Floats) -> tuple[float, Floats]:
        off = place - start
        total = pool_loss(logs, codes, place[:k], place[k:], by_power, by_factor)
        return total + ridge * float(off @ off), np.concatenate([by_power, by_factor]) + 2 * ridge * off

    bounds = [(0.0, None)] * k + [(None, None)] * c
    at = start if begin is None else np.concatenate(begin)
    with one_thread():
        found = minimize(loss, at, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": ROUNDS}).x
    if not np.isfinite(found).all():
        found = at
    return found[:k].copy(), found[k:].copy()


KERNEL = MultiscaleLaplacian()
PENALTIES = (0.3, 3.0, 30.0)  # of the kernel machines
START = (0.3, 0.3, 0.1, 0.0, 1.0, 0.0)  # exponents of learners, and weights of kernel machines, before any evidence
FLOOR = 1e-4
TINY = 1e-300
OPPOSITE = np.array([1.0, -1.0])


def _restored_fit(name: str, fit: Any, stack: Any) -> Any:
    if not isinstance(fit, stack._fits_by | None) or (fit is None) != (stack.learned == 0):  # noqa: SLF001
        raise ValueError(f"{name} must be what {stack.learned} examples are fitted by, got {fit!r}")
    if fit is not None and (fit.c, fit.features) != (len(stack.classes), stack.features):
        raise ValueError(f"{name} must be of {len(stack.classes)} classes and {stack.features} features")
    return fit


@base
class BaseStack(Saved):
    """Base of scorers that are fitted to many examples at once, by an inductive predictor."""

    _fits_by: ClassVar[type[Any]]  #: class of what it fits, whose `of` makes one

    learned: int = state(restored_int, start=0)
    features: int | None = state(optional, restored_int, 1, start=None)
    fit: Any = state(_restored_fit, own(lambda stack: stack), start=None)

    def derive(self) -> None:
        """Forget what copies share."""
        self.fits = Fits()
        self.before: tuple[float, ...] = (0.0, 1.0)  # the scores before anything is fitted

    def fresh(self) -> Self:
        """Return one that is fitted to nothing."""
        new = super().fresh()
        new.fits = self.fits
        return new

    def _given(self, X: Floats, labels: Any) -> tuple[Any, ...]:
        """Return what a fit is made of."""
        raise NotImplementedError

    def fit_rows(self, X: Any, labels: Any) -> None:
        """Fit all parts to (n, d) objects and (n,) numbers or class codes, n >= 1; forget what was fitted before.

        Raises
        ------
        NotConverged
            A part cannot be fitted.
        """
        X = dense(X)
        try:
            self.fit = self.fits.to(self._fits_by.of, *self._given(X, labels))
        except (ValueError, np.linalg.LinAlgError) as error:
            raise NotConverged(f"the stack must be fitted to {len(X)} examples: {error}") from error
        self.learned, self.features = len(X), X.shape[1]

    def expect_rows(self, X: Any, labels: Any) -> None:
        """Let the fit to these examples begin, in another process: no answer depends on it."""
        self.fits.begin(self._fits_by.of, *self._given(dense(X), labels))

    def scores(self, x: Any) -> Floats:
        """Return the scores of one object, as in a row of `score_rows`."""
        return self.score_rows(clean_row(x, self.features, None, False))[0]

    def score_rows(self, rows: Any) -> Floats:
        """Return the scores of n objects: (n, c) of classes, or (n, 2) forecasts and spreads."""
        return np.tile(self.before, (len(rows), 1)) if self.fit is None else self.fit.answers(dense(rows))

    def score_alone(self, rows: Any) -> Floats:
        """Return the same: each row is scored as if it were alone."""
        return self.score_rows(rows)


@component
class Fit(Saved):
    """What a stack has fitted: its parts, and how they are put together.

    Parameters
    ----------
    learners : Learners
    columns : (d, m) float64
        Scaled landmarks.
    coefficients : (3, c, m) float64
    bases : (3, c) float64
    powers : (6,) float64
    biases : (c,) float64
    """

    learners: Learners = param(instance, Learners, "Learners")
    columns: Floats = param(array(own(lambda fit: fit.learners.scale.shape[-1]), None))
    coefficients: Floats = param(array(len(PENALTIES), "learners.c", own(lambda fit: fit.columns.shape[1])))
    bases: Floats = param(array(len(PENALTIES), "learners.c"))
    powers: Floats = param(array(KINDS + len(PENALTIES)))
    biases: Floats = param(array("learners.c"))

    def derive(self) -> None:
        """Take the learners apart."""
        self.c, self.features = self.learners.c, len(self.learners.scale[0])
        rate = rate_of(KERNEL.gamma, self.features)
        self._kernel = np.array(KERNEL.widths) * rate, KERNEL.linear, rate

    @classmethod
    def of(cls, X: Floats, codes: Integers, c: int, landmarks: int) -> Self:
        """Return what is fitted to n examples."""
        first = slice(0, landmarks)
        part = np.arange(0, min(len(X), landmarks), TRIED)
        learners, said = Learners.fitted_and_tried(X, codes, c, part)
        columns = np.ascontiguousarray(learners.place(X[first]).T)
        targets = np.where(codes[first, None] == np.arange(c), 1.0, -1.0)
        gram = kernel_rows(columns, columns.T)
        with one_thread():
            coefficients, bases, left_out = zip(*[ridge(gram, targets, 1 / C) for C in PENALTIES], strict=True)
            logs = np.concatenate([logarithms(said), np.array(left_out)[:, part]]).swapaxes(0, 1)
            kept = common(codes[part], c)
            logs, often = np.ascontiguousarray(logs[kept]), codes[part][kept]
            powers, biases = fitted_pool(logs, often, np.array(START), RIDGE)
        powers[:KINDS][learners.powers == 0] = 0.0
        arrays = np.array(coefficients).swapaxes(1, 2), np.array(bases)
        return cls(learners, columns, np.ascontiguousarray(arrays[0]), arrays[1], powers, biases)

    def answers(self, rows: Floats) -> Floats:
        """Return the (n, c) logarithms of odds for n objects."""
        placed, total = self.learners.place(rows), np.empty((len(rows), self.c))
        product_of_powers(self.learners.probas_of(placed), self.powers, self.biases, FLOOR, total)
        landmark_scores(self.columns, placed, *self._kernel, self.powers[KINDS:], self.coefficients, self.bases, total)
        return odds(total)


@component
class Stack(BaseStack):
    """A forest, boosted trees, a logistic regression and kernel machines in one scorer, with nothing to choose.

    It is fitted to many examples at once, by an inductive predictor: see `InductiveVennAbers`. The scores of an
    object are the logarithms of the odds of each class, by a product of powers of what its parts say; the powers are
    fitted to what each part says of examples that it has not seen, all of them among those that train. The kernel
    machines are least squares with three penalties on the first `landmarks` examples.

    Copies that `fresh` makes of one stack share what is fitted to the same examples: the second costs nothing.

    Parameters
    ----------
    classes : sequence of at least 2 distinct labels
    landmarks : int >= 1, default 2000
        Most examples that the kernel machines learn: time for an object and memory grow with it.

    Attributes
    ----------
    learned : int
        Number of examples that it is fitted to.

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described.

    Examples
    --------
    >>> import venn
    >>> from venn.schedules import Prefix
    >>> model = venn.InductiveVennAbers(Stack(["no", "yes"]), schedule=Prefix(0.7, first=60))
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(80, 2))
    >>> model.learn_many(X, ["yes" if x[0] > 0 else "no" for x in X])
    >>> model.predict_one([2.0, 0.0]).label
    'yes'
    """

    log_odds = True  #: what scores are
    _fits_by = Fit

    classes: Any = param(checked_labels, 2)
    landmarks: int = param(integer, 1, default=2000)

    def derive(self) -> None:
        """Look at the classes; forget what copies share."""
        super().derive()
        self.space, self.before = label_space(self.classes), (0.0,) * len(self.classes)

    def _given(self, X: Floats, labels: Any) -> tuple[Any, ...]:
        return X, labels, len(self.classes), self.landmarks

    def fit_rows(self, X: Any, labels: Any) -> None:
        """Fit as `BaseStack` does, and write into the log what is left out."""
        super().fit_rows(X, labels)
        self.fit.learners.tell("a stack", self.learned)


def kernel_rows(columns: Floats, objects: Floats) -> Floats:
    """Return the (n, m) kernel of n objects (n, d) with m landmarks (d, m)."""
    rows = np.empty((len(objects), columns.shape[1]))
    for x, row in zip(np.ascontiguousarray(objects), rows, strict=True):
        KERNEL.row(columns, len(row), x, row)
    return rows


def ridge(gram: Floats, targets: Floats, penalty: float) -> tuple[Floats, Floats, Floats]:
    """Return (m, c) coefficients, (c,) constants, and (m, c) scores of each example by the others (least squares)."""
    m = len(gram)
    inverse = cho_solve(cho_factor(gram + penalty * np.eye(m), lower=True), np.eye(m))
    sums = inverse.sum(axis=0)
    total = sums.sum()
    bases = sums @ targets / total
    coefficients = inverse @ targets - sums[:, None] * bases
    left = np.diag(inverse) - sums**2 / total
    with np.errstate(divide="ignore", invalid="ignore"):
        left_out = targets - coefficients / left[:, None]
    return coefficients, bases, np.where(np.isfinite(left_out), left_out, 0.0)


def logarithms(said: Floats) -> Floats:
    """Return logarithms of probabilities (.., c), none of them 0; where there are none all classes are alike."""
    c = said.shape[-1]
    return np.log((1 - FLOOR) * np.where(np.isnan(said), 1 / c, said) + FLOOR / c)


def odds(total: Floats) -> Floats:
    """Return the (n, c) logarithms of the odds of each class, given logarithms of probabilities up to a constant."""
    if total.shape[1] == 2:  # of two classes one is the other's opposite, to the last bit
        return (total[:, :1] - total[:, 1:]) * OPPOSITE
    off = total - total.max(axis=1, keepdims=True)
    shares = np.exp(off)
    out = np.empty_like(off)
    for k in range(out.shape[1]):
        out[:, k] = off[:, k] - np.log(np.maximum(np.delete(shares, k, axis=1).sum(axis=1), TINY))
    return out
