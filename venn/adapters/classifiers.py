"""For scikit-learn: classifiers that learn one example after the other, over an exact support vector machine."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets

from venn.adapters.checks import (
    FromOdds,
    FromPValues,
    HoldsPredictor,
    declared_classes,
    example_weights,
    label_codes,
    objects_of,
    refuse_fractions,
    refuse_mixtures,
    seed_of,
    settled,
    whole,
)
from venn.machines.hinge import OneVsAllSVM
from venn.machines.kernels import RBF, Kernel, fitted_to
from venn.machines.least_squares import LeastSquaresSVM
from venn.machines.machine import Machine
from venn.machines.scale import scale_of
from venn.machines.window import inside
from venn.nonconformity.scores import Measure
from venn.parameters import flag, fraction, share
from venn.prediction import Floats, Integers, Label, RowMean, Rule
from venn.predictors.adaptive import Adaptive
from venn.predictors.transductive import Conformal, TransductiveVenn
from venn.taxonomies.scores import Taxonomy
from venn.turns import turn_of

# ------------------------------------------------------------------------------------------------------------------ bag
# For scikit-learn: classifiers that learn one example after the other, and those of them that keep the whole bag.


class LearnsInTurn(HoldsPredictor, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Base of classifiers around one predictor that learns one example after the other.

    A subclass has `_made`, which makes the predictor.
    """

    classes_: Any
    predictor_: Any

    def _made(self, X: Any, labels: list[Label]) -> Any:
        """Return a predictor of these labels that has learned nothing; X are the first objects."""
        raise NotImplementedError

    def _labels(self, y: Any, classes: Any) -> Any:
        """Return the labels in sorted order: the declared ones or, without these, those of the examples."""
        return declared_classes(y if classes is None else classes)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Forget everything, and learn these examples one after the other.

        Parameters
        ----------
        X : (n, d) array, data frame or sparse matrix of finite numbers
        y : (n,) labels of at least two classes
        sample_weight : (n,) whole numbers >= 0, optional
            An example of weight w is learned w times. With any weight other than 1 nothing is proved: see the class.

        Returns
        -------
        self

        Raises
        ------
        TypeError, ValueError
            A parameter, X, y or weights are not as described. What was fitted before stays; the same below.
        NotConverged
            The machine misses its tolerance: see the machine.
        """
        return self._learn(X, y, sample_weight, True, None)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn more examples; the bag is the same as if all had been fitted at once.

        Parameters
        ----------
        X : (n, d) array, data frame or sparse matrix of finite numbers
            One example is X = [x].
        y : (n,) labels
        classes : sequence of at least two labels, optional
            All labels that may ever come; required in the first call, unless there was a `fit`.
        sample_weight : (n,) whole numbers >= 0, optional
            An example of weight w is learned w times. With any weight other than 1 nothing is proved: see the class.

        Returns
        -------
        self

        Raises
        ------
        TypeError, ValueError
            A label is outside the classes, or as for `fit`. Nothing of the batch is learned.
        NotConverged
            The machine misses its tolerance. Nothing of the batch is learned.

        Notes
        -----
        A parameter that is set after the first call has no effect until the next `fit`. A batch of several examples is
        learned on a copy, which replaces the machine if all goes well.
        """
        first = not hasattr(self, "classes_")
        if first and classes is None:
            raise ValueError("classes must be given in the first partial_fit, all labels that may ever come, got None")
        return self._learn(X, y, sample_weight, first, classes)

    def _learn(self, X: Any, y: Any, sample_weight: Any, anew: bool, classes: Any) -> Self:
        with turn_of(self):
            return self._take_in(X, y, sample_weight, anew, classes)

    @whole
    def _take_in(self, X: Any, y: Any, sample_weight: Any, anew: bool, classes: Any) -> Self:
        """Learn in place, except that more than one example puts another object in place of `predictor_`."""
        refuse_mixtures("y", y)  # before numpy makes strings of numbers
        X, y = self._validated(X, y, reset=anew)
        check_classification_targets(y)
        weights = example_weights(sample_weight, len(y))
        refuse_fractions(weights, "for Venn and conformal predictors, which count examples")
        present = weights > 0
        X, y, times = X[present], y[present], weights[present].astype(np.int64)
        if anew:
            self._start(X, y, classes)
        elif classes is not None and declared_classes(classes).tolist() != self.classes_.tolist():
            raise ValueError(
                f"classes must be the same as in the first call, {self.classes_.tolist()!r}, got {classes!r}: fit anew"
            )
        labels = self.classes_[label_codes(self.classes_, y)].tolist()
        if not anew and times.sum() > 1:  # a single refused example leaves no trace anyway
            self.predictor_ = deepcopy(self.predictor_)
        for x, label, w in zip(objects_of(X), labels, times.tolist(), strict=True):
            for _ in range(w):
                self.predictor_.learn_one(x, label)
        return self

    def _start(self, X: Any, y: Any, classes: Any) -> None:
        """Make the predictor for the declared classes or, without these, for the classes of the examples."""
        self.classes_ = self._labels(y, classes)
        if len(self.classes_) < 2:
            what = "y must hold" if classes is None else "classes must be"
            raise ValueError(
                f"{what} at least 2 classes, got 1 class, {self.classes_.tolist()!r}; where another one may come "
                "later, partial_fit(X, y, classes=...) declares both"
            )
        self.predictor_ = self._made(X, self.classes_.tolist())


class KeepsTheBag(LearnsInTurn):
    """Base of classifiers around one predictor that reads an exact machine of all examples.

    A subclass has the parameters `kernel`, `C` and `svm`, and `_predictor`.
    """

    kernel: Kernel | None
    C: float
    svm: Callable[..., Machine] | None
    usual: ClassVar[type] = OneVsAllSVM  #: what makes the machine by default

    def _predictor(self, machine: Machine) -> Any:
        """Return the predictor over a machine that has learned nothing."""
        raise NotImplementedError

    def _made(self, X: Any, labels: list[Label]) -> Any:
        """Return the predictor, on a machine that suits the number of features or, if its kernel asks for it, X."""
        svm = self.usual if self.svm is None else self.svm
        if not callable(svm):
            raise TypeError(f"svm must make a machine of a kernel, C and classes, as LeastSquaresSVM does, got {svm!r}")
        kernel = RBF(1 / self.n_features_in_) if self.kernel is None else self.kernel
        machine = svm(kernel, self.C, labels)
        if scale_of(inside(machine)) is None:  # what scales knows the variance itself
            machine = svm(fitted_to(kernel, X), self.C, labels)
        return self._predictor(machine)


# ---------------------------------------------------------------------------------------------------------- classifiers
# For scikit-learn: transductive Venn and conformal predictors over an exact support vector machine.


@dataclass(eq=False, repr=False)
class VennClassifier(FromOdds, KeepsTheBag):
    """Transductive Venn predictor over an exact support vector machine, for scikit-learn.

    Each new object joins the training examples with every label in turn; the machine is solved exactly, and row j of
    the multiprobability is the distribution of labels in the object's category under hypothesis j. `predict_interval`
    returns the least and the largest entry for each class, `predict_proba` the mean of the rows.

    What is proved, for exchangeable examples and objects, and a kernel chosen without looking at them: the row
    of the true label is perfectly calibrated, and each of its entries lies in the interval of its class. With
    `rule=CategoryClass()`, which needs a machine with exact leave-one-out scores, such as `LeastSquaresSVM`, the
    interval of the predicted label holds for its own probability of being right. The mean of the rows is a forecast
    that works well, without a theorem.

    Parameters
    ----------
    kernel : Kernel, optional
        By default `RBF(1 / d)` for d features: it does not depend on the examples, so it keeps the guarantee. Scale the
        features beforehand, by numbers that are fixed before the data are seen: see Notes.
    C : float > 0, default 1
    svm : callable, optional
        Makes a machine from a kernel, C and classes: `OneVsAllSVM`, the default; `LeastSquaresSVM`, which is
        several times as fast and its leave-one-out scores are exact; or your own function.
    taxonomy : Taxonomy, optional
        As in `TransductiveVenn`: by default `LeaveOneOut(AdaptiveMarginBins())`.
    rule : Rule, optional
        Picks the predicted class; by default `RowMean()`, the class of largest `predict_proba`. With any other rule
        `predict` may differ from that class, and from `decision_function`.

    Attributes
    ----------
    classes_ : (c,) array
        Labels in sorted order: the order of columns.
    predictor_ : TransductiveVenn
        May be taken from here into a `Panel` or a `Monitor`'s loop.
    n_features_in_ : int
    feature_names_in_ : (d,) array of str
        If X had names.

    Raises
    ------
    ValueError
        By `fit`: C that is not a finite number above 0, one class only, or objects that are not finite.
    NotFittedError
        By `predict_proba` and the like, before `fit`.

    Notes
    -----
    No probability is 0 or 1, so that no log loss is infinite: the new example counts in its own category.

    All examples are kept, in memory that grows with the square of their number; predicting one object costs about as
    much as learning one example. For more than some thousands use `VennAbersCalibrator` or `ProbabilitySVC`.

    Three things void the guarantee. An example learned w times is not exchangeable with the new one, so weights must be
    1, or 0 if that was decided without looking at the examples. A scaler that was fitted to the training examples, as
    in a pipeline, treats them and the new one differently: scale by numbers known beforehand, such as the ranges of the
    instruments. And if `fit` takes the classes from y, a new class may come, which has no row: the guarantee holds up
    to the probability of a label outside `classes_`, and in full if `partial_fit` declared all labels that can come.

    Only `fit` and `partial_fit` learn.

    References
    ----------
    Vovk, Shafer & Nouretdinov (2003); Lambrou, Papadopoulos & Gammerman (2012).

    Examples
    --------
    >>> import venn
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = VennClassifier(venn.RBF(0.5), C=10, svm=venn.LeastSquaresSVM).fit(X[::2], y[::2])
    >>> model.score(X[1::2], y[1::2]) > 0.9
    True
    >>> low, high = model.predict_interval(X[[101]])[0].T
    >>> p = model.predict_proba(X[[101]])[0]
    >>> p.shape, bool((low <= p).all() and (p <= high).all())
    ((3,), True)
    """

    kernel: Kernel | None = None
    C: float = 1.0
    _: KW_ONLY
    svm: Callable[..., Machine] | None = None
    taxonomy: Taxonomy | None = None
    rule: Rule | None = None

    def _predictor(self, machine: Machine) -> TransductiveVenn:
        return TransductiveVenn(machine, self.taxonomy, RowMean() if self.rule is None else self.rule)

    def predict_proba(self, X: Any) -> Floats:
        """Return (n, c) probabilities of the classes, means of the rows of the multiprobabilities.

        Parameters
        ----------
        X : (n, d) array, data frame or sparse matrix of finite numbers
        """
        return settled(self._ask(X, lambda prediction: prediction.proba))

    def predict_interval(self, X: Any) -> Floats:
        """Return (n, c, 2): least and largest probability of each class over the hypotheses.

        Parameters
        ----------
        X : (n, d) array, data frame or sparse matrix of finite numbers
        """

        def ends(prediction: Any) -> Floats:
            rows = prediction.probabilities
            return np.stack([rows.min(axis=0), rows.max(axis=0)], axis=1)

        return self._ask(X, ends)

    def predict(self, X: Any) -> Any:
        """Return (n,) labels, the class that the rule picks: by default that of largest `predict_proba`.

        Parameters
        ----------
        X : (n, d) array, data frame or sparse matrix of finite numbers
        """
        best: Integers = self._ask(X, lambda prediction: prediction.index)
        return self.classes_[best]


@dataclass(eq=False, repr=False)
class ConformalClassifier(FromPValues, KeepsTheBag):
    """Transductive conformal predictor over an exact support vector machine, for scikit-learn.

    Each new object joins the training examples with every label in turn; the p-value of a label is the share of
    examples at least as strange as the object would be with it. A set has the labels of p-value above `alpha`.

    What is proved, for exchangeable examples and objects: the set of an object misses its label with probability alpha,
    exactly with smoothed p-values, at most with others. Objects predicted between two updates share one bag, and equal
    ones also the random number that breaks ties: their errors are not independent. Errors are independent if p-values
    are smoothed and each object is learned after its prediction, before the next. There is no `predict_proba`: p-values
    are not probabilities of the labels.

    Parameters
    ----------
    kernel : Kernel, optional
        By default `RBF(1 / d)` for d features: it does not depend on the examples, so it keeps the guarantee. Scale the
        features beforehand, by numbers that are fixed before the data are seen: see Notes.
    C : float > 0, default 1
    svm : callable, optional
        Makes a machine from a kernel, C and classes: `LeastSquaresSVM`, the default, which is several times as fast
        as others and its leave-one-out scores are exact; `OneVsAllSVM`; or your own function.
    measure : Measure, optional
        The nonconformity measure, as in `Conformal`: by default `Margin()`.
    alpha : float in [0, 1], default 0.1
        Significance level of `predict_set`.
    adaptive : bool, default False
        For examples in order of time: after each one that `fit` or `partial_fit` learns, in the order of the rows, the
        level moves by whether its set, made just before, held its label. The share of sets that miss is then alpha in
        the long run on any stream, as by `Adaptive`; about the set of one object nothing is proved.
        `predictor_.certificates` has errors, their bound and sizes. `predict_set` says the sets for what comes next; at
        another alpha nothing holds. Scores on shuffled folds say nothing of it: scikit-learn knows no order of
        time, and its check that a weight is as good as so many rows (`check_sample_weight_equivalence`), which compares
        two orders, does not hold.
    label_conditional : bool, default False
        Compare with examples of the supposed class only: errors are then rare in every class, not only overall.
    smoothed : bool, default True
        Break ties at random.
    seed : int >= 0, default 0
        Of the random numbers, one for each number of examples learned and each object.
    random_state : int, RandomState or None, optional
        scikit-learn's name for the seed: used in place of `seed` where it is given.

    Attributes
    ----------
    classes_ : (c,) array
        Labels in sorted order: the order of columns.
    predictor_ : Conformal, or Adaptive around it
        May be taken from here into a `Panel` or a `Monitor`'s loop.
    n_features_in_ : int
    feature_names_in_ : (d,) array of str
        If X had names.

    Notes
    -----
    All examples are kept, in memory that grows with the square of their number; predicting one object costs about as
    much as learning one example. For more than some thousands use `InductiveConformal`.

    Three things void the guarantee. An example learned w times is not exchangeable with the new one, so weights must be
    1, or 0 if that was decided without looking at the examples. A scaler that was fitted to the training examples, as
    in a pipeline, treats them and the new one differently: scale by numbers known beforehand, such as the ranges of the
    instruments. And if `fit` takes the classes from y, a new class may come, which is in no set: the guarantee holds up
    to the probability of a label outside `classes_`, and in full if `partial_fit` declared all labels that can come.

    Only `fit` and `partial_fit` learn.

    References
    ----------
    Vovk, Gammerman & Shafer (2022), "Algorithmic learning in a random world", chapters 2 and 4.

    Examples
    --------
    >>> import venn
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = ConformalClassifier(venn.RBF(0.5), C=10, alpha=0.05).fit(X[::2], y[::2])
    >>> sets = model.predict_set(X[1::2])
    >>> sets.shape, sets.dtype
    ((75, 3), dtype('bool'))
    >>> bool((sets == (model.predict_p(X[1::2]) > 0.05)).all())
    True

    In order of the file, sorted by class, on a window of 50; each batch is predicted, then learned:

    >>> def window(kernel, C, classes):
    ...     return venn.SlidingWindow(venn.LeastSquaresSVM(kernel, C, classes), 50)
    >>> model = ConformalClassifier(venn.RBF(0.5), C=10, svm=window, alpha=0.1, adaptive=True)
    >>> for part in range(0, 150, 10):
    ...     model = model.partial_fit(X[part : part + 10], y[part : part + 10], classes=[0, 1, 2])
    >>> (certificate,) = model.predictor_.certificates
    >>> certificate.n, abs(certificate.errors - 15) < certificate.bound
    (150, True)
    """

    usual = LeastSquaresSVM

    kernel: Kernel | None = None
    C: float = 1.0
    _: KW_ONLY
    svm: Callable[..., Machine] | None = None
    measure: Measure | None = None
    alpha: float = 0.1
    adaptive: bool = False
    label_conditional: bool = False
    smoothed: bool = True
    seed: int = 0
    random_state: Any = None

    def _predictor(self, machine: Machine) -> Conformal | Adaptive:
        share("alpha", self.alpha)
        seed = seed_of(self.seed, self.random_state)
        sets = Conformal(machine, self.measure, self.label_conditional, self.smoothed, seed)
        return Adaptive(sets, [fraction("alpha", self.alpha)]) if flag("adaptive", self.adaptive) else sets

    def predict_p(self, X: Any) -> Floats:
        """Return (n, c) p-values of the classes.

        Parameters
        ----------
        X : (n, d) array, data frame or sparse matrix of finite numbers
        """
        return self._ask(X, lambda prediction: prediction.p_values)

    def decision_function(self, X: Any) -> Floats:
        """Return the p-values as scores: for two classes (n,), the second minus the first, else (n, c).

        Parameters
        ----------
        X : (n, d) array, data frame or sparse matrix of finite numbers
        """
        p = self.predict_p(X)
        return p[:, 1] - p[:, 0] if p.shape[1] == 2 else p

    def predict(self, X: Any) -> Any:
        """Return (n,) labels: for each object the class of largest p-value, the first of equal ones.

        Parameters
        ----------
        X : (n, d) array, data frame or sparse matrix of finite numbers
        """
        best = self.predict_p(X).argmax(axis=1)
        return self.classes_[best]
