"""For scikit-learn: classifiers that learn one example after the other, and those of them that keep the whole bag."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets

from venn.adapters.checks import (
    HoldsPredictor,
    declared_classes,
    example_weights,
    label_codes,
    objects_of,
    refuse_fractions,
    refuse_mixtures,
    whole,
)
from venn.machines.hinge import OneVsAllSVM
from venn.machines.kernels import RBF, Kernel, fitted_to
from venn.machines.machine import Machine
from venn.machines.scale import scale_of
from venn.machines.window import inside
from venn.prediction import Label
from venn.turns import turn_of


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
