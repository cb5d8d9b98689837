"""For scikit-learn: a support vector machine with probabilities, and bounds on them."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.svm import SVC
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from venn.adapters.checks import (
    FromProbabilities,
    example_weights,
    refuse_fractions,
    refuse_mixtures,
    validate_data,
    whole,
)
from venn.adapters.cross_fitting import (
    Abers,
    Categories,
    CrossFold,
    CrossVennAbers,
    FoldScorer,
    Mapped,
    disjoint_splits,
)
from venn.prediction import Floats, Integers
from venn.taxonomies import ByScores

OWN = {"method", "cv", "n_jobs", "probability", "random_state"}  # parameters that `SVC` is not given


def _is_map(method: Any) -> bool:
    """Whether the method is a map rather than a Venn predictor; or say what is wrong with it."""
    if method is None or isinstance(method, CrossVennAbers | ByScores):
        return False
    if not isinstance(method, type) and callable(getattr(method, "fit", None)):
        return True
    raise TypeError(
        "method must be CrossVennAbers(), a taxonomy on scores, such as Argmax(), or a map from scores to "
        f"probabilities, such as Platt(), got {method!r}"
    )


def _gives_intervals(estimator: ProbabilitySVC) -> bool:
    try:
        a_map = _is_map(estimator.method)
    except TypeError as error:
        raise AttributeError(str(error)) from error
    if a_map:
        raise AttributeError(
            f"method {estimator.method!r} gives a probability and no interval; CrossVennAbers() and taxonomies, "
            "such as Argmax(), give intervals"
        )
    return True


@dataclass(eq=False, repr=False)
class ProbabilitySVC(FromProbabilities, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Support vector classifier with calibrated probabilities and Venn bounds, for scikit-learn.

    A replacement for `SVC(probability=True)`, which scikit-learn deprecated in version 1.9. Scores come from
    scikit-learn's `SVC`, one for each class against all others (for two classes, one), cross-fitted: those that
    calibrate come from SVMs that were not trained on the example. `method` turns them into probabilities:

    - `CrossVennAbers()`: every fold's SVM scores the new object and its calibration set gives p0 and p1 for each
      class; these are merged over the folds, and for more than two classes divided by their sum.
    - a taxonomy on scores, such as `Argmax()` or `AdaptiveMarginBins()`: every fold counts the classes in the
      category of the new object, and the counts are averaged, as in `CrossVenn`.
    - a map, such as `Platt()`, `Isotonic()` or `Temperature()`: one map, fitted to the held-out scores of all
      folds, is applied to the scores of an SVM trained on all examples, as in Platt (1999). Binary maps go
      class by class and are divided by their sum.

    What is proved: with one split drawn without looking at the examples, as by `ShuffleSplit(1)`, the two Venn
    methods are the inductive predictors. They are valid if the examples are exchangeable and have no weights, and those
    that train are of all classes. For Venn-Abers, the end of the interval of class k that belongs to the truth (the
    upper one if the label is k, else the lower one) is a perfectly calibrated probability of k; for a taxonomy, the
    row of the true label of the multiprobability is calibrated. Not proved, but heuristics that work well: the merge
    over several folds, stratified splits (which an integer `cv` makes), the point forecast of any method, and all maps.

    Parameters
    ----------
    C, kernel, degree, gamma, coef0, shrinking, cache_size, max_iter
        As in `sklearn.svm.SVC`. Each SVM computes gamma="scale" from the examples it is trained on, here with their
        weights. With kernel="precomputed", X holds kernel values.
    tol : float, default 1e-5
        As in `SVC`, where it is 1e-3. Calibration uses the order of scores: they are rounded to steps of about
        10 tol (at least 1e-6, at most 1), so that scores that differ only by the solver's tolerance are ties.
    method : object, optional
        `CrossVennAbers()`, the default, a taxonomy on scores, or a map.
    cv : int, splitter or iterable of (training, calibration) indices, default 5
        As in `sklearn.model_selection.cross_val_score`; for a splitter that needs groups pass the list of what its
        `split` yields. An example may calibrate in several folds, and counts in each of them, or in none. Where folds
        calibrate with fewer than 30 examples on average, as by `LeaveOneOut`, the two Venn methods make one calibration
        set of all folds, and score a new object by the median of the folds' SVMs.
    probability : bool, default True
        Without effect: probabilities are always on.
    n_jobs : int, optional
        How many SVMs are trained at a time, as everywhere in scikit-learn; the answers are the same.
    random_state : object, optional
        Without effect, as nothing here is random: a script with `SVC(random_state=0)` goes on.

    Attributes
    ----------
    classes_ : (c,) array
        Labels in sorted order: the order of columns.
    n_features_in_ : int
    feature_names_in_ : (d,) array of str
        If X had names.
    n_iter_ : (c,) array of int, (1,) for two classes
        Largest number of steps that a solver took for the SVM of each class against all others.

    Notes
    -----
    `predict` returns the class of largest `predict_proba`: the two never disagree, unlike those of
    `SVC(probability=True)` (scikit-learn issue 13211). There is no `decision_function`, as it would have to
    order objects as the probabilities do: `svm_scores` returns the scores.

    An example with weight w counts as w equal examples, in the SVM and in the calibration. One with weight 0 does not
    count, but a splitter or an iterable as `cv`, unlike an integer, splits it too. Venn methods count, so they refuse
    weights that are not whole numbers. There is no `class_weight`: it would give the probabilities of a population with
    other class frequencies, which `sample_weight` can express; the costs of errors belong in the decision.

    Every fold of a Venn method allows for one more example of any class, which keeps its probabilities away from 0 and
    1: on nearly separable data maps have lower log loss, on noisy data Venn-Abers may.

    In a fold whose training set lacks a class, its score is -1 everywhere. An integer `cv` needs a class with
    at least that many examples, and scikit-learn warns if the smallest has fewer.

    References
    ----------
    Platt (1999), "Probabilistic outputs for support vector machines"; Vovk, Petej & Fedorova (2015),
    arXiv:1511.00213.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = (X - X.mean(axis=0)) / X.std(axis=0)
    >>> model = ProbabilitySVC(C=10, gamma=0.01).fit(X[:400], y[:400])
    >>> p, ends = model.predict_proba(X[400:]), model.predict_interval(X[400:])
    >>> p.shape, ends.shape
    ((169, 2), (169, 2, 2))
    >>> bool((ends[..., 0] <= p).all() and (p <= ends[..., 1]).all())
    True
    """

    _: KW_ONLY
    C: float = 1.0
    kernel: Any = "rbf"
    degree: int = 3
    gamma: Any = "scale"
    coef0: float = 0.0
    shrinking: bool = True
    tol: float = 1e-5
    cache_size: float = 200
    max_iter: int = -1
    method: Any = None
    cv: Any = 5
    n_jobs: int | None = None
    probability: Any = True
    random_state: Any = None

    def _more_tags(self) -> dict[str, Any]:  # scikit-learn < 1.6
        return {"pairwise": self.kernel == "precomputed"}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.input_tags.sparse = self.kernel != "precomputed"
        return tags

    @whole
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> ProbabilitySVC:
        """Train and calibrate.

        Parameters
        ----------
        X : (n, d) array, data frame or sparse matrix of finite numbers
            (n, n) kernel values with kernel="precomputed".
        y : (n,) labels of at least two classes
        sample_weight : (n,) numbers >= 0, optional
            Whole numbers for Venn methods, which repeat an example's scores that often.

        Returns
        -------
        ProbabilitySVC
            The object itself.

        Raises
        ------
        TypeError, ValueError
            A parameter, X, y or weights are not as described; or a fold has no examples to train, none to calibrate, or
            some that do both. What was fitted before stays.
        NotConverged
            From a map that says so.
        """
        a_map = _is_map(self.method)
        self._svc()._validate_params()  # noqa: SLF001 -- scikit-learn's own check of its parameters
        refuse_mixtures("y", y)  # before numpy makes strings of numbers
        X, y = self._validated(X, y)
        check_classification_targets(y)
        weights = example_weights(sample_weight, X.shape[0])
        if not a_map:
            refuse_fractions(weights, "for Venn methods, which count examples (maps, such as Platt(), take other ones)")
        present = weights > 0
        classes = np.unique(y[present])
        c = len(classes)
        if c < 2:
            raise ValueError(f"y must hold at least 2 classes of examples with weight > 0, got {c} class")
        if self.kernel == "precomputed" and X.shape[0] != X.shape[1]:
            raise ValueError(f"X must be a square matrix for kernel='precomputed', got shape {X.shape}")
        codes = classes.searchsorted(y)  # of examples with weight > 0; others are ignored
        given = None if sample_weight is None else weights

        def scorer(rows: Integers) -> FoldScorer:
            return FoldScorer(self._svc(), X, codes, c, given, rows)

        splits = self._splits(X, y, present)
        parts = [training for training, _ in splits] + ([np.flatnonzero(present)] if a_map else [])
        scorers = Parallel(n_jobs=self.n_jobs)(delayed(scorer)(rows) for rows in parts)
        folds = [
            CrossFold(fitted, fitted(X[calibration]), codes[calibration], weights[calibration])
            for fitted, (_, calibration) in zip(scorers, splits, strict=False)
        ]
        if a_map:
            self._answers: Mapped | Categories | Abers = Mapped(self.method, folds, scorers[-1], c)
        elif isinstance(self.method, ByScores):
            self._answers = Categories(self.method, folds, c)
        else:
            self._answers = Abers(None if self.method is None else self.method.merge, folds, c)
        self.classes_ = classes
        self.n_iter_ = np.max([one.iterations for one in scorers], axis=0)
        return self

    def _svc(self) -> Any:
        given = self.get_params(deep=False)
        return SVC(**{name: given[name] for name in given.keys() - OWN})

    def _splits(self, X: Any, y: Any, present: Any) -> list[tuple[Integers, Integers]]:
        """Return training and calibration indices of each fold, of examples with weight > 0."""
        return list(disjoint_splits(self.cv, X, y, present))

    def _objects(self, X: Any) -> Any:
        check_is_fitted(self, "classes_")
        return self._validated(X, reset=False)

    def _validated(self, X: Any, y: Any = "no_validation", reset: bool = True) -> Any:
        """Return objects, and labels if there are any, as scikit-learn checks them."""
        return validate_data(
            self, X, y, reset=reset, dtype=np.float64, order="C", accept_large_sparse=False,
            accept_sparse=False if self.kernel == "precomputed" else "csr",
        )  # fmt: skip

    def predict_proba(self, X: Any) -> Floats:
        """Return (n, c) probabilities of the classes of n objects; each row sums to 1.

        Parameters
        ----------
        X : (n, d) array, data frame or sparse matrix of finite numbers
            (n, n of training) kernel values with kernel="precomputed".
        """
        X = self._objects(X)
        return self._answers.proba(X)

    @available_if(_gives_intervals)  # type: ignore[untyped-decorator]
    def predict_interval(self, X: Any) -> Floats:
        """Return (n, c, 2): lower and upper probability of each class, of n objects. Venn methods only.

        With one fold, the interval of the inductive predictor. With several: for Venn-Abers, the ends p0 and p1 are
        merged over the folds separately, as the merge would merge pairs of equal numbers; for two classes
        the probability lies between them (for more it is divided by a sum, and may lie outside). For a taxonomy,
        [m_k, m_k + 1] / (m + 1) with mean counts m_k and their sum m, which contains the probability.

        Parameters
        ----------
        X : as for `predict_proba`

        Raises
        ------
        AttributeError
            `method` is a map: it gives a probability, and no bounds.
        """
        X = self._objects(X)
        return self._answers.interval(X)

    def svm_scores(self, X: Any) -> Floats:
        """Return (n, c) scores: decision values of each class against all others, rounded according to `tol`.

        For two classes the columns are -f and f. With a map they come from the SVM trained on all examples, with
        Venn methods they are the mean over the folds' SVMs, or the median where folds are small: see `cv`.

        Parameters
        ----------
        X : as for `predict_proba`
        """
        X = self._objects(X)
        return self._answers.scores(X)
