"""For scikit-learn: Venn-Abers calibration of the scores of any classifier."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import KW_ONLY, dataclass
from numbers import Real
from typing import Any, Self

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.dummy import DummyClassifier
from sklearn.svm import LinearSVC
from sklearn.utils import _safe_indexing, indexable
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted, column_or_1d, has_fit_parameter

from venn.adapters import checks
from venn.adapters.checks import FromOdds
from venn.adapters.cross_fitting import Abers, CrossFold, disjoint_splits, rows_of
from venn.machines.estimators import METHODS, read_alone
from venn.machines.frozen import FrozenScorer
from venn.machines.objects import clean_rows
from venn.machines.tables import has_names
from venn.maps.merges import Merge
from venn.prediction import Floats, Label
from venn.turns import TakesTurns, asks, turn_of

try:
    from sklearn.frozen import FrozenEstimator
except ImportError:  # scikit-learn < 1.6

    class FrozenEstimator:  # type: ignore[no-redef]
        """A stand-in for the class of later versions, without instances."""


LARGEST_FLOAT = np.finfo(np.float64).max
STEP = 2.0**-26  # scores that differ by less are ties: decision values relative to their size, log odds absolutely


class Responses(FrozenScorer):
    """Scores of any objects that a fitted estimator takes: rows of numbers or of a table, texts.

    The estimator checks the objects itself. In a block the last bits of a score may differ from those of a row alone.
    Venn-Abers uses the order of scores, so they are rounded to keep ties. From probabilities the scores are the log
    odds of each class against all others, so that it does not matter which class is called 0.
    """

    def __init__(self, estimator: Any, classes: Sequence[Label] | None) -> None:
        if not any(callable(getattr(estimator, method, None)) for method in METHODS):
            raise TypeError(f"estimator must have {' or '.join(METHODS)}, got {estimator!r}")
        if getattr(estimator, "classes_", None) is None:
            raise ValueError(
                f"estimator must be a fitted classifier, with classes_, got {estimator!r}: where scikit-learn makes "
                'clones, which are not fitted, give a FrozenEstimator in place of cv="prefit"'
            )
        c = len(estimator.classes_ if classes is None else classes)
        super().__init__(estimator, classes, method=read_alone(estimator, c))

    def _linear_map(self) -> None:
        return None  # compiled code takes numbers only

    def __call__(self, X: Any) -> Floats:
        """Return (n, c) rounded scores."""
        if self.feature_names is not None and isinstance(X, list | tuple) and len(X) and has_names(X[0]):
            answers = self._answers.of(self._method, clean_rows(X, self.features, self.feature_names, missing=True))
        else:
            answers = np.asarray(getattr(self.estimator, self._method)(X), np.float64)
        scores = self._score(answers)
        if self._method == "predict_proba":
            return np.rint(checks.odds_of_each(scores) / STEP) * STEP + 0.0
        digits, exponents = np.frexp(scores)
        return np.ldexp(np.rint(digits / STEP) * STEP, exponents) + 0.0

    def _asked(self, block: Any) -> Floats:
        return block  # the estimator has been asked


@dataclass(eq=False, repr=False)
class VennAbersCalibrator(TakesTurns, FromOdds, MetaEstimatorMixin, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Probabilities with bounds from any classifier of scikit-learn, by Venn-Abers.

    The classifier gives scores; calibration examples, on which it was not trained, show what the scores are worth. For
    each class, p0 and p1 are isotonic regressions of "is of this class" on the score, where the new object is supposed
    not to be, and to be, of the class.

    - `cv` with several folds (the default): in each fold one classifier is trained and the rest calibrates; pairs are
      merged over the folds (cross Venn-Abers). Where folds calibrate with fewer than 30 examples on average, the scores
      of all folds make one calibration set, and a new object's score is the median over the classifiers.
    - one split, such as `ShuffleSplit(1)`: inductive Venn-Abers.
    - a fitted classifier, in a `FrozenEstimator` or with cv="prefit": inductive, and all examples calibrate.

    `partial_fit` adds one or many calibration examples after a fit; no classifier is trained again.

    What is proved, for one split drawn without looking at the examples, or for a fitted classifier, if the calibration
    examples are exchangeable with the new one and have no weights: the end of the interval of class k that belongs to
    the truth (the upper one if the label is k, else the lower one) is a perfectly calibrated probability of k. Not
    proved, but heuristics that work well: the merge over several folds, stratified splits (which an integer `cv`
    makes), and `predict_proba`.

    Parameters
    ----------
    estimator : classifier, default LinearSVC(random_state=0)
        With `decision_function` or `predict_proba`. Two classes are scored by decision values where there are any, as
        these do not run into 0 or 1; more by probabilities where there are any, as each class is calibrated by itself
        and a decision value of several means something beside the others only. From probabilities the scores are log
        odds, log p_k minus the log of the sum of the others. Pipelines, searches and estimators of texts or tables are
        fine. It is not trained itself; its copies are.
    cv : int, splitter, iterable of (training, calibration) indices, or "prefit", default 5
        As in `sklearn.model_selection.cross_val_score`. An example may calibrate in several folds, and counts in
        each of them, or in none. Ignored if the estimator is a `FrozenEstimator`. Use that where scikit-learn makes
        clones, as `cross_val_score` does: with "prefit" a clone's estimator is not fitted.
    merge : merge object, default LogMerge()
        Makes one probability of p0 and p1.
    n_jobs : int, optional
        How many folds are trained at a time, as everywhere in scikit-learn; the answers are the same.

    Attributes
    ----------
    classes_ : (c,) array
        Labels in sorted order: the order of columns.
    n_calibration_ : int
        Number of examples that calibrate, in the first fold; in all of them where these make one calibration set.
    n_features_in_ : int
        If the estimator has it.
    feature_names_in_ : (d,) array of str
        If the estimator has them.

    Raises
    ------
    ValueError
        By `fit`: one class only, weights that are not whole numbers, or objects that the
        estimator does not take.
    NotFittedError
        By `predict_proba` and the like, before `fit`.

    Notes
    -----
    Once there is a fit, and for a fitted estimator at once, rows may also come as a list of dicts, named tuples or rows
    of a table, if the estimator was fitted to a table: they go by its names.

    A class that is missing from a fold's calibration set has small probabilities there, above 0 as long as p1 is. A
    class that is missing from the training set has the smallest score of each row, or probability 0 before calibration.
    Columns never go missing.

    Venn-Abers counts: an example of weight w is w equal ones, so weights must be whole numbers. An example of weight 0
    does not count, but a splitter or an iterable as `cv` splits it too. An estimator whose `fit` takes no
    `sample_weight`, such as a `Pipeline`, is trained on copies of the examples instead. With metadata routing enabled
    the estimator receives what it requests: weights for training only may have a name of their own, by
    `estimator.set_fit_request(sample_weight="training_weight")`.

    A parameter that is set after `fit`, such as `merge`, has no effect until the next `fit`.

    A splitter that needs groups receives them only with metadata routing enabled; without it `fit` passes everything to
    the estimator, and you may give the splits themselves: `cv=list(GroupKFold(5).split(X, y, groups))`.

    Scores are compared to about 8 digits. Its own `decision_function` is the logarithm of the odds of `predict_proba`;
    `scores` has the classifier's own scores. No probability is 0 or 1.

    With kernel="precomputed" use `ProbabilitySVC`.

    References
    ----------
    Vovk, Petej & Fedorova (2015), "Large-scale probabilistic predictors with and without guarantees of validity",
    arXiv:1511.00213; Manokhin (2017) for several classes.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = VennAbersCalibrator(GaussianNB()).fit(X[:300], y[:300])
    >>> low, high = model.predict_interval(X[[400]])[0, 1]
    >>> p = model.predict_proba(X[[400]])[0, 1]
    >>> bool(low < p < high)
    True

    A classifier that is trained already, calibrated by later examples:

    >>> model = VennAbersCalibrator(GaussianNB().fit(X[:200], y[:200]), cv="prefit")
    >>> for start in range(200, 500, 100):
    ...     model = model.partial_fit(X[start : start + 100], y[start : start + 100])
    >>> model.n_calibration_
    300
    """

    estimator: Any = None
    _: KW_ONLY
    cv: Any = 5
    merge: Merge | None = None
    n_jobs: int | None = None

    def _more_tags(self) -> dict[str, Any]:  # scikit-learn < 1.6
        return {"allow_nan": checks.takes(self._estimator(), "allow_nan")}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        for what in ("sparse", "allow_nan", "string"):
            setattr(tags.input_tags, what, checks.takes(self._estimator(), what))
        return tags

    def get_metadata_routing(self) -> Any:
        """Return what metadata the methods of this estimator pass on, and to what: see scikit-learn's user guide."""
        fit = MethodMapping().add(caller="fit", callee="fit")
        split = MethodMapping().add(caller="fit", callee="split")
        router = MetadataRouter(owner=type(self).__name__).add_self_request(self)
        return router.add(estimator=self._estimator(), method_mapping=fit).add(splitter=self.cv, method_mapping=split)

    def __copy__(self) -> Self:
        other: Self = checks.twin(self)
        if hasattr(self, "_answers"):  # copied, as `partial_fit` adds to them
            with turn_of(self._answers):
                other._answers = deepcopy(self._answers)
        return other

    # ----------------------------------------------------------------- learning

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **fit_params: Any) -> Self:
        """Train and calibrate; with a fitted estimator only calibrate.

        Parameters
        ----------
        X : (n, ...) objects that the estimator takes
        y : (n,) labels
            Of at least two classes, unless the estimator is fitted; then among its classes.
        sample_weight : (n,) whole numbers >= 0, optional
        **fit_params
            For the `fit` of the estimator; those of length n are split as X is. With metadata routing enabled, for
            every object that has requested them.

        Returns
        -------
        VennAbersCalibrator
            The object itself.

        Raises
        ------
        TypeError, ValueError
            A parameter, y or weights are not as described; a fold has no examples to train, none to calibrate, or some
            that do both; a score is not finite; or the estimator refuses X. What was fitted before stays.
        """
        return self._become(X, y, None, sample_weight, fit_params)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Add examples to the calibration sets of all folds; train nothing.

        The first call is a `fit` if there was none before and the estimator is not fitted.

        Parameters
        ----------
        X : (n, ...) objects that the estimator takes
            The estimator must not have been trained on any of them.
        y : (n,) labels
        classes : sequence of labels, optional
            In the first call, if there was no `fit`: labels that may come besides those known by then.
        sample_weight : (n,) whole numbers >= 0, optional

        Returns
        -------
        VennAbersCalibrator
            The object itself.

        Raises
        ------
        TypeError, ValueError
            A label is outside the classes, or as for `fit`. Nothing of the batch is learned.
        """
        with turn_of(self):  # one thread after the other
            if not hasattr(self, "classes_"):
                return self._become(X, y, classes, sample_weight, {})
        if classes is not None and not set(checks.declared_classes(classes).tolist()) <= set(self.classes_.tolist()):
            raise ValueError(
                f"classes must be among those of the first call, {self.classes_.tolist()!r}, got {classes!r}: fit anew"
            )
        X, y, weights = self._examples(X, y, sample_weight)
        present = np.flatnonzero(weights > 0)
        codes = checks.label_codes(self.classes_, y[present])
        self._answers.add(_safe_indexing(X, present), codes, weights[present])
        return self

    @checks.whole
    def _become(self, X: Any, y: Any, classes: Any, sample_weight: Any, fit_params: dict[str, Any]) -> Self:
        X, y, weights = self._examples(X, y, sample_weight)
        given = [] if classes is None else [classes]
        if isinstance(self.estimator, FrozenEstimator) or (isinstance(self.cv, str) and self.cv == "prefit"):
            folds = self._frozen(X, y, weights, given)
        else:
            folds = self._trained(X, y, weights, given, sample_weight is not None, fit_params)
        c = len(self.classes_)
        self._answers = Abers(self.merge, folds, c)
        for name, of in ("n_features_in_", "features"), ("feature_names_in_", "feature_names"):
            found = getattr(folds[0].scorer, of)
            self.__dict__.pop(name, None)
            if found is not None:
                setattr(self, name, np.array(found, object) if name == "feature_names_in_" else found)
        return self

    def _examples(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Floats]:
        """Return objects, labels and weights, or say what is wrong with them; the estimator checks X."""
        if y is None:
            raise ValueError("VennAbersCalibrator requires y to be passed, but the target y is None")
        if isinstance(X, list | tuple | np.ndarray) and len(X) > 0 and isinstance(X[0], Real | np.bool_):
            raise ValueError(
                f"X must be objects, rows of numbers or what the estimator takes, got the number {X[0]!r} "
                "as the first: one object x is X = [x]"
            )
        checks.refuse_mixtures("y", y)
        X, y = indexable(X, y)
        check_classification_targets(y)
        y = column_or_1d(y, warn=True)
        weights = checks.example_weights(sample_weight, len(y))
        checks.refuse_fractions(weights, "for Venn-Abers, which counts examples (others may train: see the class)")
        return X, y, weights

    def _frozen(self, X: Any, y: Any, weights: Floats, given: Sequence[Any]) -> list[CrossFold]:
        """Return the one fold of a fitted estimator."""
        own = getattr(self.estimator, "classes_", None)
        names = None
        if own is not None and np.ndim(own) == 1:  # otherwise the scorer raises the error
            self.classes_ = checks.declared_classes(own, *given)
            names = self.classes_.tolist()
        scorer = Responses(self.estimator, names)
        present = np.flatnonzero(weights > 0)
        codes = checks.label_codes(self.classes_, y[present])
        return [CrossFold(scorer, scorer(_safe_indexing(X, present)), codes, weights[present])]

    def _trained(
        self, X: Any, y: Any, weights: Floats, given: Sequence[Any], weighted: bool, fit_params: dict[str, Any]
    ) -> list[CrossFold]:
        """Return the folds, with copies of the estimator trained on all examples but those that calibrate."""
        present = weights > 0
        self.classes_ = checks.declared_classes(y[present], *given)
        if len(self.classes_) < 2:
            raise ValueError(
                f"y must hold at least 2 classes of examples with weight > 0, got 1 class, {self.classes_.tolist()!r}"
            )
        codes = np.full(len(y), -1)
        codes[present] = checks.label_codes(self.classes_, y[present])
        fit_params, split_params = dict(fit_params), {}
        copies = weights.astype(np.int64) if weighted else None
        if get_config()["enable_metadata_routing"]:
            routed = process_routing(self, "fit", sample_weight=weights if weighted else None, **fit_params)
            fit_params, split_params, copies = routed.estimator.fit, routed.splitter.split, None
        elif weighted and has_fit_parameter(self._estimator(), "sample_weight"):
            fit_params["sample_weight"], copies = weights, None

        def fold(training: Any, calibration: Any) -> CrossFold:
            rows = training if copies is None else training.repeat(copies[training])
            lone = (codes[rows] == codes[rows[0]]).all()  # some estimators refuse a single class
            model = DummyClassifier(strategy="most_frequent") if lone else clone(self._estimator())
            model.fit(_safe_indexing(X, rows), y[rows], **({} if lone else rows_of(fit_params, len(y), rows)))
            scorer = Responses(model, self.classes_.tolist())
            scores = scorer(_safe_indexing(X, calibration))
            return CrossFold(scorer, scores, codes[calibration], weights[calibration])

        splits = list(disjoint_splits(self.cv, X, y, present, split_params))
        return Parallel(n_jobs=self.n_jobs)(delayed(fold)(*split) for split in splits)

    def _estimator(self) -> Any:
        """Return the classifier, by default that of scikit-learn's `CalibratedClassifierCV`."""
        return LinearSVC(random_state=0) if self.estimator is None else self.estimator

    # --------------------------------------------------------------- predicting

    @property
    def n_calibration_(self) -> int:
        """Number of examples that calibrate in the first fold, weights included; in all where these are made one."""
        return len(self._answers)

    def predict_proba(self, X: Any) -> Floats:
        """Return (n, c) probabilities of the classes of n objects; each row sums to 1.

        Parameters
        ----------
        X : (n, ...) objects that the estimator takes
        """
        check_is_fitted(self, "classes_")
        return checks.settled(self._answers.proba(X))

    def predict_interval(self, X: Any) -> Floats:
        """Return (n, c, 2): lower and upper probability of each class, p0 and p1, of n objects.

        With several folds p0 and p1 are merged separately, as the merge would merge pairs of equal numbers. For two
        classes the probability lies between them; for more it is divided by a sum, and may lie outside.

        Parameters
        ----------
        X : (n, ...) objects that the estimator takes
        """
        check_is_fitted(self, "classes_")
        return self._answers.interval(X)

    @asks
    def scores(self, X: Any) -> Floats:
        """Return (n, c) scores by the classifier, before calibration; of several folds the mean, of small the median.

        For two classes a single decision value f becomes -f and f; probabilities become log odds.

        Parameters
        ----------
        X : (n, ...) objects that the estimator takes
        """
        check_is_fitted(self, "classes_")
        return self._answers.scores(X)
