"""A linear support vector machine with constraints on its rates of correct classification."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np

from venn.batch.mixed_integer import (
    HEURISTIC,
    TOLERANCE,
    ClassWeightScan,
    Found,
    Infeasible,
    Problem,
    Requirement,
    Scip,
    Solver,
    named,
)
from venn.batch.two_classes import Signed, TwoClassLinear
from venn.machines.machine import NotConverged
from venn.parameters import positive, share, with_methods
from venn.prediction import Floats, Label

__all__ = ["Attained", "ClassWeightScan", "ConstrainedSVC", "Infeasible", "Scip"]


class Attained(NamedTuple):
    """A share of the weight of the training examples, by two meanings of "correct"."""

    outside: float  #: on the right side and outside the margin, y f(x) >= 1 - 1e-6, as the constraints require
    right: float  #: on the right side, as `predict` requires


class ConstrainedSVC(TwoClassLinear):
    """Linear support vector machine with lower bounds on sensitivity, specificity or accuracy, for scikit-learn.

    Minimises 1/2 |w|^2 + C sum_i xi_i under constraints: of the positive training examples at least the share
    `sensitivity` lies on the right side and outside the margin, y_i f(x_i) >= 1, where the loss
    xi_i = max(0, 1 - y_i f(x_i)) is 0; of the negative ones the share `specificity`; of all the share `accuracy`. That
    is stricter than correct classification. It is a mixed-integer quadratic program: `Scip()` solves it, in seconds for
    100 examples; `ClassWeightScan()` is a heuristic.

    The shares hold on the training examples, by construction, and are checked on the hyperplane itself. Nothing is
    proved about new examples. There is no `predict_proba`, as the scores have no probabilities of their own:
    bootstrap them, as the reference does, or calibrate them.

    Parameters
    ----------
    C : float > 0, default 1
        In the usual objective. In the reference's, w'w + C sum_i xi_i, C is twice as large.
    sensitivity, specificity, accuracy : float in [0, 1], optional
        By default no constraint.
    positive : label, optional
        By default the second of `classes_`.
    solver : Scip, ClassWeightScan or an object with the same method, optional
        By default `Scip()` if `pyscipopt` is installed, else `ClassWeightScan()`, with a warning if its answer may
        not be the optimum.

    Attributes
    ----------
    classes_ : (2,) array
        Labels in sorted order.
    positive_ : label
    coef_ : (1, d) array
        Of `decision_function`: coef_ . x + intercept_.
    intercept_ : (1,) array
    status_ : str
        "optimal"; "time limit", the best hyperplane found in time; "heuristic", which meets the constraints, but
        nothing else is proved.
    objective_ : float
    bound_ : float
        No hyperplane that meets the constraints has a lower objective; 0 for a heuristic.
    gap_ : float
        (objective_ - bound_) / objective_, 1 for a heuristic.
    bound_active_ : bool
        False: the bound M of `Scip` on the losses changes nothing. True: a better hyperplane may have a loss above M,
        and a RuntimeWarning is given: raise M.
    sensitivity_, specificity_, accuracy_ : Attained
        Shares of the training examples `outside` the margin and on the `right` side.
    n_features_in_ : int
    feature_names_in_ : (d,) array of str
        If X had names.

    Raises
    ------
    Infeasible, a ValueError
        From `fit`: there is no such hyperplane.
    NotConverged
        From `fit`: none was found, in time or by the heuristic.
    ImportError
        From `fit`: `Scip()` without `pyscipopt`.

    References
    ----------
    Benitez-Pena, Blanquero, Carrizosa & Ramirez-Cobo (2019), "On support vector machines under a multiple-cost
    scenario"; the same (2020), "Cost-sensitive probabilistic predictions for support vector machines", problem (5).

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(80, 4, flip_y=0.2, random_state=0)
    >>> plain = ConstrainedSVC(solver=ClassWeightScan()).fit(X, y)
    >>> model = ConstrainedSVC(sensitivity=0.9, solver=ClassWeightScan()).fit(X, y)
    >>> plain.status_, model.status_
    ('optimal', 'heuristic')
    >>> plain.sensitivity_.outside < 0.9 <= model.sensitivity_.outside
    True
    """

    def __init__(
        self,
        C: float = 1.0,
        sensitivity: float | None = None,
        specificity: float | None = None,
        accuracy: float | None = None,
        *,
        positive: Label | None = None,
        solver: Solver | None = None,
    ) -> None:
        self.C = C
        self.sensitivity = sensitivity
        self.specificity = specificity
        self.accuracy = accuracy
        self.positive = positive
        self.solver = solver

    def _train(self, examples: Signed) -> tuple[Floats, float]:
        C = positive("C", self.C)
        wanted = {name: getattr(self, name) for name in ("sensitivity", "specificity", "accuracy")}
        shares = {name: share(name, value) for name, value in wanted.items() if value is not None}
        solver = self._solver()
        objects, signs, weights = merged(examples)
        centre = objects.mean(axis=0)
        # A shift (the bias is free) or a rotation does not change the machine: keep at most as many columns as rows.
        inside, basis = objects - centre, None
        if inside.shape[1] > len(inside):
            basis, triangle = np.linalg.qr(inside.T)
            inside = triangle.T
        counted = {"sensitivity": weights * (signs > 0), "specificity": weights * (signs < 0), "accuracy": weights}
        requirements = tuple(
            Requirement(name, least, counted[name], least * counted[name].sum()) for name, least in shares.items()
        )
        problem = Problem(np.ascontiguousarray(inside), signs, weights, C, requirements)
        found = solver.solve(problem)
        self._report(problem, found, counted)
        coef = found.plane.coef if basis is None else basis @ found.plane.coef
        return coef, float(found.plane.bias - centre @ coef)

    def _solver(self) -> Solver:
        if self.solver is not None:
            wanted = "an object with a method 'solve', such as Scip() or ClassWeightScan()"
            return with_methods("solver", self.solver, wanted, "solve")
        try:
            Scip.module()
        except ImportError:
            return ClassWeightScan()
        return Scip()

    def _report(self, problem: Problem, found: Found, counted: dict[str, Floats]) -> None:
        """Set the attributes that describe how good the hyperplane is, measured on it."""
        margins = problem.margins(found.plane)
        outside = margins >= 1 - TOLERANCE
        right = (margins > 0) | ((margins == 0) & (problem.signs > 0))
        attained = {
            name: Attained(*(float(own[correct].sum() / own.sum()) for correct in (outside, right)))
            for name, own in counted.items()
        }
        self.sensitivity_, self.specificity_, self.accuracy_ = attained.values()
        if not problem.met(found.plane):
            raise NotConverged(f"{named(problem.requirements)} must be met by the solver's hyperplane, got {attained}")
        self.status_ = found.status
        self.objective_ = problem.objective(found.plane)
        self.bound_ = found.bound
        self.gap_ = 1.0 - found.bound / self.objective_ if self.objective_ > found.bound else 0.0
        self.bound_active_ = found.bound_active
        if found.bound_active:
            warnings.warn(
                f"M of {self.solver or Scip()!r} bounds the losses, and a better hyperplane may have a larger one: "
                "raise M",
                RuntimeWarning,
                stacklevel=5,
            )
        if found.status == HEURISTIC and self.solver is None:
            warnings.warn(
                "pyscipopt is not installed, so this is the heuristic ClassWeightScan(), which meets the constraints "
                "but need not be the optimum: pip install pyscipopt, or give solver=ClassWeightScan()",
                RuntimeWarning,
                stacklevel=5,
            )


def merged(examples: Signed) -> Signed:
    """Return the distinct examples in sorted order, with the sums of their weights.

    In the optimum equal examples of one class are correct together: nothing is lost, the program becomes smaller, and
    the answer does not depend on the order of the examples.
    """
    table = np.column_stack([examples.signs, examples.objects])
    rows, codes = np.unique(table, axis=0, return_inverse=True)
    weights = np.bincount(codes.ravel(), examples.weights).astype(np.float64)
    return Signed(np.ascontiguousarray(rows[:, 1:]), rows[:, 0], weights)
