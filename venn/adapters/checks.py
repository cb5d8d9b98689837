"""For scikit-learn: checks shared by all estimators, and scores of intervals and distributions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import deepcopy
from datetime import date, timedelta
from functools import wraps
from numbers import Integral, Number
from typing import Any, Self, TypeVar, cast

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import check_random_state, validation
from sklearn.utils.validation import check_array, check_is_fitted

from venn._compiled.hulls import LIMIT
from venn.distribution import interval_score
from venn.machines.machine import check_columns
from venn.machines.objects import clean_rows
from venn.online import checkpoint
from venn.parameters import fraction, share
from venn.prediction import TIE, Floats, Label
from venn.saved import Saved
from venn.turns import TakesTurns, turn_of

# --------------------------------------------------------------------------------------------------------------- checks
# For scikit-learn: checks shared by all estimators.

try:
    from sklearn.utils import get_tags
except ImportError:  # scikit-learn < 1.6
    get_tags = None

Fit = TypeVar("Fit", bound=Callable[..., Any])
DATES = (date, timedelta, np.datetime64, np.timedelta64)  # pandas' own are subclasses, and so is its NaT


def refuse_dates(X: Any) -> None:
    """Raise if X holds dates or durations: a cast would turn NaT into a number, and hide the unit."""
    if issparse(X):
        return
    try:
        types = list(X.dtypes) if hasattr(X, "dtypes") else [np.asarray(X).dtype]
    except (TypeError, ValueError):
        return  # neither a table nor an array: later checks say so
    found = [str(t) for t in types if getattr(t, "kind", "") in ("m", "M") or getattr(t, "is_temporal", bool)()]
    if any(getattr(t, "kind", "") == "O" for t in types):
        found += [type(value).__name__ for value in np.asarray(X, object).flat if isinstance(value, DATES)]
    if found:
        raise TypeError(
            f"X must hold numbers, got dates or durations, {found[0]}: make numbers of them first, such as days since "
            "a date that is fixed beforehand, (X - start) / np.timedelta64(1, 'D')"
        )


def validate_data(estimator: Any, X: Any, y: Any = "no_validation", **checks: Any) -> Any:
    """Return X, and y if given, as scikit-learn's function of that name does; refuse what it would cast."""
    refuse_dates(X)
    try:
        if hasattr(validation, "validate_data"):
            return validation.validate_data(estimator, X, y, **checks)
        if "ensure_all_finite" in checks:
            checks["force_all_finite"] = checks.pop("ensure_all_finite")
        return estimator._validate_data(X, y, **checks)  # noqa: SLF001 -- scikit-learn < 1.6
    except OverflowError as error:
        raise ValueError(f"X must hold numbers that a float64 can hold, got one that is too large: {error}") from None


def takes(estimator: Any, what: str) -> bool:
    """Whether an estimator says by its tags that it takes `what`: "sparse", "string" or "allow_nan"."""
    try:
        if get_tags is None:  # scikit-learn < 1.6
            return bool(estimator._get_tags().get(what, False))  # noqa: SLF001
        return bool(getattr(get_tags(estimator).input_tags, what))
    except AttributeError:  # it follows the protocol of scikit-learn, but has no tags
        return False


def example_weights(sample_weight: Any, n: int) -> Floats:
    """Return (n,) weights, 1 each by default, or say what is wrong with them."""
    if sample_weight is None:
        return np.ones(n)
    try:
        w: Floats = check_array(sample_weight, ensure_2d=False, dtype=np.float64, input_name="sample_weight")
    except OverflowError as error:
        raise ValueError(f"sample_weight must hold numbers that a float64 can hold: {error}") from None
    if w.shape != (n,):
        raise ValueError(f"sample_weight must have shape ({n},), one weight for each example, got {w.shape}")
    if (w < 0).any():
        i = int((w < 0).argmax())
        raise ValueError(f"sample_weight must be >= 0, got {w[i]} at {i}")
    if not w.any():
        raise ValueError(f"sample_weight must be > 0 for some example, got zero for all {n}")
    return w


def refuse_fractions(w: Floats, advice: str) -> None:
    """Raise if weights are not whole numbers, or too many: examples are counted."""
    broken = w != np.floor(w)
    if broken.any():
        i = int(broken.argmax())
        raise ValueError(f"sample_weight must hold whole numbers {advice}, got {w[i]} at {i}")
    if w.sum() > LIMIT:
        raise ValueError(f"sample_weight must sum to at most {LIMIT} for Venn methods, got {w.sum():g}")


def refuse_mixtures(name: str, labels: Any) -> None:
    """Raise if labels are not of one kind: they have no order, or numpy would turn numbers into strings."""
    if not isinstance(labels, list | tuple) and getattr(labels, "dtype", None) != np.dtype(object):
        return
    kinds = {}
    for label in labels if isinstance(labels, list | tuple) else np.asarray(labels, object).flat:
        kind = next((kind for kind in (str, Number) if isinstance(label, kind)), type(label))
        kinds[Number if kind is np.bool_ else kind] = type(label).__name__
    if len(kinds) > 1:
        raise TypeError(f"{name} must hold labels of one kind, numbers or strings, got {sorted(kinds.values())}")


def label_codes(classes: Any, y: Any) -> Any:
    """Return (n,) positions of labels among the (c,) sorted classes, or say which is not one of them."""
    codes: dict[Label, int] = {label: k for k, label in enumerate(classes.tolist())}
    names = np.asarray(y).tolist()
    for i, label in enumerate(names):
        if label not in codes:
            raise ValueError(
                f"y must be among the classes {list(codes)!r}, got {label!r} at {i}: declare it beforehand, by classes "
                "in the first partial_fit, or fit anew; nothing was learned"
            )
    return np.array([codes[label] for label in names], np.int64)


def declared_classes(classes: Any, *others: Any) -> Any:
    """Return the labels of all these sequences, distinct and in sorted order, or say what is wrong with them."""
    for labels in (classes, *others):
        refuse_mixtures("classes", labels)
    parts = [np.asarray(part) for part in (classes, *others)]
    if any(part.ndim != 1 for part in parts):
        raise ValueError(f"classes must be a sequence of labels, got {classes!r}")
    if len({part.dtype.kind in "biuf" for part in parts}) > 1:
        raise ValueError(
            f"classes must be labels of one kind, numbers or strings, got {[part.dtype for part in parts]}"
        )
    return np.unique(np.concatenate(parts))


def seed_of(seed: Any, random_state: Any) -> Any:
    """Return the seed: `random_state`, scikit-learn's name for it, in place of `seed` where it is given."""
    if random_state is None or isinstance(random_state, Integral):
        return seed if random_state is None else int(random_state)
    return int(check_random_state(random_state).randint(2**31))


def twin(estimator: Any) -> Any:
    """Return a shallow copy, made without `__copy__` and `__setstate__`, which copy what was learned."""
    other = object.__new__(type(estimator))
    other.__dict__ = dict(estimator.__dict__)
    return other


def whole(fit: Fit) -> Fit:
    """Decorate a method that fits: it fits a copy, which then replaces the object. A refused call leaves no trace."""

    @wraps(fit)
    def fitting(estimator: Any, *arguments: Any, **named: Any) -> Any:
        other = twin(estimator)
        fit(other, *arguments, **named)
        estimator.__dict__ = other.__dict__
        return estimator

    return cast(Fit, fitting)


def settled(p: Floats) -> Floats:
    """Return (n, c) probabilities; those that tie for the largest are made equal to the last bit."""
    most = p.max(axis=1, keepdims=True)
    return np.where(p >= most - TIE, most, p)


def log_odds(p: Floats) -> Floats:
    """Return the `decision_function` for (n, c) probabilities in (0, 1): (n,) log(p1 / p0) for two classes.

    For more, (n, c) log(p_k / (1 - p_k)). The order is that of the probabilities: of two classes the sign is exact.
    """
    if p.shape[1] == 2:
        return np.log1p((p[:, 1] - p[:, 0]) / p[:, 0])
    return np.log(p) - np.log1p(-p)


def odds_of_each(p: Floats) -> Floats:
    """Return (n, c) log p_k minus the log of the sum of all others, finite and as precise near 1 as near 0.

    The sum is not computed as 1 - p_k, which loses all digits near 1. Probabilities below 2^-1022 count as that.
    """
    none = np.zeros((len(p), 1))
    before = np.cumsum(np.hstack([none, p[:, :-1]]), axis=1)
    after = np.cumsum(np.hstack([none, p[:, :0:-1]]), axis=1)[:, ::-1]
    least = np.finfo(np.float64).tiny
    return np.log(np.maximum(p, least)) - np.log(np.maximum(before + after, least))


def objects_of(X: Any) -> Iterable[Any]:
    """Return the rows of X; those of a sparse X as sparse arrays (1, d)."""
    return (X[i : i + 1] for i in range(X.shape[0])) if issparse(X) else X


class HoldsPredictor(TakesTurns):
    """Base of estimators that hold a predictor: they take sparse objects, and go from process to process."""

    predictor_: Any
    _columns: tuple[str, ...] | None = None  # of the table that a given scorer was fitted to
    _missing = False  # whether it takes missing numbers

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.sparse = True
        return tags

    def set_params(self, **params: Any) -> Self:
        """Set parameters, and those of a kernel or another part by its name, as kernel__gamma; return this estimator.

        The part itself stays as it is, for others may hold it: a changed one takes its place.
        """
        own: dict[str, Any] = {}
        parts: dict[str, dict[str, Any]] = {}
        for name, value in params.items():
            part, nested, inner = name.partition("__")
            if nested and isinstance(params.get(part, getattr(self, part, None)), Saved):
                parts.setdefault(part, {})[inner] = value
            else:
                own[name] = value
        super().set_params(**own)  # type: ignore[misc]
        for part, values in parts.items():
            thing = getattr(self, part)
            unknown = sorted(values.keys() - thing.parameters.keys())
            if unknown:
                raise ValueError(f"{part} must have the parameters that are set, got {unknown} for {thing!r}")
            setattr(self, part, type(thing).made_of(thing.parameters | values))
        return self

    def __getstate__(self) -> dict[str, Any]:
        """Return what skops keeps: bytes and models, for it takes no predictor, whose parts refer to each other."""
        state = cast(dict[str, Any], super().__getstate__()).copy()
        if "predictor_" in state:
            predictor = state.pop("predictor_")
            state["_packed"] = checkpoint.pack(predictor), checkpoint.models(predictor)
        return state

    def _taken_apart(self, protocol: Any) -> Any:
        """Return what pickle and copies keep, which takes predictors of your own as well."""
        state = cast(dict[str, Any], super().__getstate__()).copy()
        return object.__new__, (type(self),), state

    def __setstate__(self, state: dict[str, Any]) -> None:
        packed = state.get("_packed")
        super().__setstate__({name: one for name, one in state.items() if name != "_packed"})  # type: ignore[misc]
        if packed is not None:
            self.predictor_ = checkpoint.unpack(*packed)
        elif hasattr(self, "predictor_"):
            # joblib passes large arrays as read-only maps of a file, but a machine writes into its buffers.
            self.predictor_ = deepcopy(self.predictor_)

    def _checked(self, X: Any) -> Any:
        """Return objects to be asked about as an array or a sparse matrix, or say what is wrong with them."""
        check_is_fitted(self, "predictor_")
        return self._validated(X, reset=False)

    def _validated(self, X: Any, y: Any = "no_validation", *, reset: bool, **checks: Any) -> Any:
        """Return X, and y if given, as the predictor takes them, or say what is wrong with them."""
        if self._columns is not None:
            check_columns(X, self._columns)  # the predictor will see no names
        if self._columns is not None and self._missing:  # cells may be text
            checked = validate_data(
                self, X, y, reset=reset, dtype=None, accept_sparse="csr", ensure_all_finite=False, **checks
            )
            X, *labels = checked if isinstance(checked, tuple) else (checked,)
            rows = X if issparse(X) else clean_rows(X, len(self._columns), self._columns, missing=True)
            return (rows, *labels) if labels else rows
        finite = "allow-nan" if self._missing else True
        form = {"dtype": np.float64, "order": "C", "accept_sparse": "csr", "ensure_all_finite": finite}
        return validate_data(self, X, y, reset=reset, **form, **checks)

    def _ask(self, X: Any, read: Callable[[Any], Any]) -> Any:
        """Return an array made by reading the prediction of each object."""
        X = self._checked(X)
        with turn_of(self):
            return np.array([read(self.predictor_.predict_one(x)) for x in objects_of(X)])


class FromPValues:
    """Base of classifiers with `predict_p`: sets of the classes that cannot be excluded."""

    alpha: float

    def predict_p(self, X: Any) -> Floats:
        """Return (n, c) p-values of the classes."""
        raise NotImplementedError

    def predict_set(self, X: Any, alpha: float | None = None) -> Any:
        """Return (n, c) bool: whether each class is in the set of each object.

        Parameters
        ----------
        X : (n, d) array, data frame or sparse matrix of finite numbers
        alpha : float in [0, 1], optional
            Used instead of the classifier's own.

        Raises
        ------
        TypeError, ValueError
            `alpha` or X is not as described.
        """
        level = share("alpha", self.alpha if alpha is None else alpha)
        return self.predict_p(X) > level


class FromProbabilities:
    """Base of classifiers whose labels follow from `predict_proba`."""

    classes_: Any

    def predict_proba(self, X: Any) -> Floats:
        """Return (n, c) probabilities."""
        raise NotImplementedError

    def predict_log_proba(self, X: Any) -> Floats:
        """Return (n, c) natural logarithms of `predict_proba`; minus infinity for 0, which Venn methods never give.

        Parameters
        ----------
        X : as for `predict_proba`
        """
        with np.errstate(divide="ignore"):
            log: Floats = np.log(self.predict_proba(X))
        return log

    def predict(self, X: Any) -> Any:
        """Return (n,) labels: for each object the class of largest `predict_proba`, the first of equal ones.

        Parameters
        ----------
        X : as for `predict_proba`
        """
        best = self.predict_proba(X).argmax(axis=1)
        return self.classes_[best]


class FromOdds(FromProbabilities):
    """Base of classifiers that also order objects as their probabilities do, which are all in (0, 1)."""

    def decision_function(self, X: Any) -> Floats:
        """Return the log odds of `predict_proba`: it is the same forecast on another scale.

        Parameters
        ----------
        X : as for `predict_proba`

        Returns
        -------
        (n,) or (n, c) float64
            For two classes log(p1 / p0), above 0 where the second is predicted; for more log(p_k / (1 - p_k)).
        """
        return log_odds(self.predict_proba(X))


# -------------------------------------------------------------------------------------------------------------- scoring
# For scikit-learn: scores of intervals and distributions, as `cross_val_score` and searches take them.


class _Scorer:
    """A function of (fitted estimator, X, y): greater is better, as everywhere in scikit-learn."""

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        """Return the score on the examples."""
        raise NotImplementedError

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({inside})"


class _OfIntervals(_Scorer):
    def __init__(self, alpha: float = 0.1) -> None:
        self.alpha = fraction("alpha", alpha)

    def _ends(self, estimator: Any, X: Any) -> Any:
        return np.asarray(estimator.predict_interval(X, self.alpha)).T


class IntervalScorer(_OfIntervals):
    """Minus the mean interval score: width, and 2 / alpha times how far outside the label is.

    For `scoring=` of `GridSearchCV`, `cross_val_score` and the like, with a regressor that has
    `predict_interval(X, alpha)`, as `ConformalRegressor`.

    Parameters
    ----------
    alpha : float in (0, 1), default 0.1
        The level of the intervals.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.model_selection import GridSearchCV
    >>> from venn.adapters import ConformalRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> search = GridSearchCV(
    ...     ConformalRegressor(Ridge(), cv=3), {"estimator__alpha": [0.01, 100.0]}, scoring=IntervalScorer(0.1), cv=2
    ... )
    >>> search.fit(X[:150], y[:150]).best_params_
    {'estimator__alpha': 0.01}
    """

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        """Return the score on the examples; minus infinity where an interval is infinite."""
        ends = zip(*self._ends(estimator, X).tolist(), np.asarray(y, np.float64).tolist(), strict=True)
        return -float(np.mean([interval_score(lower, upper, label, self.alpha) for lower, upper, label in ends]))


class CoverageScorer(_OfIntervals):
    """The share of labels inside their intervals, to be looked at beside another score: alone it rewards wide ones.

    Parameters
    ----------
    alpha : float in (0, 1), default 0.1
        The level of the intervals.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from venn.adapters import ConformalRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> CoverageScorer(0.5)(ConformalRegressor().fit(X[:100], y[:100]), X[100:200], y[100:200]) > 0.35
    True
    """

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        """Return the share on the examples."""
        lower, upper = self._ends(estimator, X)
        labels = np.asarray(y, np.float64)
        return float(np.mean((lower <= labels) & (labels <= upper)))


class CRPSScorer(_Scorer):
    """Minus the mean continuous ranked probability score, of a regressor that has `predict_distribution`.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from venn.adapters import ConformalRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> CRPSScorer()(ConformalRegressor().fit(X[:100], y[:100]), X[100:200], y[100:200]) > -45
    True
    """

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        """Return the score on the examples."""
        labels = np.asarray(y, np.float64).tolist()
        said = estimator.predict_distribution(X)
        return -float(np.mean([one.crps(label) for one, label in zip(said, labels, strict=True)]))
