"""Ctrl2 of the paper: the linear machine of largest margin that has at least a given sensitivity, its problem (5).

It minimises 1/2 |w|^2 + C sum_i weight_i xi_i, xi_i = max(0, 1 - sign_i f(x_i)); at least a given weight of the
positive examples must lie outside the margin, where xi_i = 0. That is a mixed-integer quadratic program: SCIP solves
it, in seconds for 100 examples. Without SCIP, the package `pyscipopt`, a scan of class weights takes its place.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from benitez_pena.linear_svm import Design, svm
from venn.machines import NotConverged

try:
    import pyscipopt
except ImportError:
    pyscipopt = None

TOLERANCE = 1e-6  # a margin may fall short by this much and count as reached
POWERS = tuple(2.0**k for k in range(11))


class Problem(NamedTuple):
    """The problem; no two rows have the same object and sign. A machine is u: coefficients, then the bias."""

    objects: Any  #: (n, d)
    signs: Any  #: (n,)
    weights: Any  #: (n,)
    C: float
    least: float  #: weight of the positive examples that must be outside the margin

    def margins(self, u):
        """Return (n,) sign_i f(x_i)."""
        return self.signs * (self.objects @ u[:-1] + u[-1])

    def objective(self, u):
        """Return the objective."""
        return float(0.5 * u[:-1] @ u[:-1] + self.C * self.weights @ np.maximum(0.0, 1.0 - self.margins(u)))

    def met(self, u):
        """Whether enough positive examples are outside the margin."""
        correct = (self.margins(u) >= 1 - TOLERANCE) & (self.signs > 0)
        return self.weights[correct].sum() >= self.least * (1 - 1e-12)

    def trained(self, weights):
        """Return the machine without a demand and with other weights of the examples."""
        fit = svm(Design(self.objects), self.signs, self.C, 1e-9, weights=weights)
        return np.append(fit.coef, fit.bias)

    def with_correct(self, correct):
        """Return the machine in which examples `correct` (n,) must reach the margin; None if it is not found.

        The hinge loss is an exact penalty: with large enough weights these examples have no loss at all.
        """
        for factor in 10.0 ** np.arange(1, 8):
            try:
                u = self.trained(np.where(correct, factor, 1.0) * self.weights)
            except NotConverged:
                return None
            if self.margins(u)[correct].min(initial=1.0) >= 1 - 1e-8:
                return u
        return None


def scanned(problem):
    """Return the best machine that some weight of the positive class gives, or the constant score 1.

    For each weight also the machine that keeps no more positive examples outside the margin than it must, those of
    largest margin. Nothing is proved of its distance from the optimum.
    """
    found = [np.append(np.zeros(problem.objects.shape[1]), 1.0)]
    for weight in POWERS:
        try:
            u = problem.trained(np.where(problem.signs > 0, weight, 1.0) * problem.weights)
        except NotConverged:
            continue
        own = np.argsort(-problem.margins(u), kind="stable")
        own = own[problem.signs[own] > 0]
        enough = np.count_nonzero(np.cumsum(problem.weights[own]) < problem.least * (1 - 1e-12))
        needed = np.zeros(len(problem.signs), bool)
        needed[own[: enough + (problem.least > 0)]] = True
        held = problem.with_correct(needed)
        found += [u] if held is None else [u, held]
    return min(filter(problem.met, found), key=problem.objective)


def by_scip(problem, start, seconds):
    """Return the best machine that SCIP finds in time, beginning with another, and whether it is the optimum.

    Minimises t / 2 + C sum_i weight_i xi_i so that t >= |w|^2, sign_i (w . x_i + b) >= 1 - xi_i, xi_i >= 0 and
    xi_i = 0 where the binary zeta_i is 1; enough of the weight has zeta_i = 1. The start's objective bounds t and the
    xi_i. SCIP's result is solved again as the machine in which the examples with zeta_i = 1 must reach the margin:
    SCIP's tolerance of 1e-6 in the objective allows errors of 1e-3 in w.
    """
    n, d = problem.objects.shape
    costs, total = (problem.C * problem.weights).tolist(), pyscipopt.quicksum
    most = problem.objective(start) * (1 + 1e-4)
    reach = math.sqrt(2 * most)
    model = pyscipopt.Model()
    model.hideOutput()
    model.setParam("limits/time", seconds)
    w = [model.addVar(lb=-reach, ub=reach) for _ in range(d)]
    b, t = model.addVar(lb=None), model.addVar(lb=0.0)
    xi = [model.addVar(lb=0.0, ub=most / cost) for cost in costs]
    zeta = [model.addVar(vtype="B") for _ in range(n)]
    model.addCons(total(each * each for each in w) <= t)
    for i, (sign, row) in enumerate(zip(problem.signs.tolist(), problem.objects.tolist(), strict=True)):
        f = total(sign * value * each for value, each in zip(row, w, strict=True)) + sign * b
        model.addCons(f + xi[i] >= 1)
        model.addConsIndicator(xi[i] <= 0, binvar=zeta[i])
    positive = np.flatnonzero(problem.signs > 0).tolist()
    model.addCons(total(float(problem.weights[i]) * zeta[i] for i in positive) >= problem.least * (1 - 1e-12))
    model.setObjective(0.5 * t + total(cost * each for cost, each in zip(costs, xi, strict=True)))
    slack = 1.0 - problem.margins(start)
    slack[slack <= TOLERANCE] = 0.0
    known = model.createSol()
    values = [*start, start[:-1] @ start[:-1], *slack, *(slack == 0.0).astype(float)]
    for variable, value in zip([*w, b, t, *xi, *zeta], values, strict=True):
        model.setSolVal(known, variable, value)
    model.addSol(known)
    model.optimize()
    status = model.getStatus()
    if status == "userinterrupt":
        raise KeyboardInterrupt
    if status not in ("optimal", "timelimit"):
        raise NotConverged(f"SCIP must end with an optimum or a time limit, got {status!r}")
    found = [start]
    if model.getNSols() > 0:
        own = np.array([model.getVal(each) for each in (*w, b)])
        correct = np.array([model.getVal(each) for each in zeta]) > 0.5
        held = problem.with_correct(correct)
        if held is None:  # SCIP's own, scaled so that these reach the margin, if little is missing
            short = problem.margins(own)[correct].min(initial=1.0)
            held = own / short if 0.9 < short < 1 else own
        found.append(held)
    return min(filter(problem.met, found), key=problem.objective), status == "optimal"


def constrained(X, signs, weights, C, sensitivity, seconds):
    """Return coefficients of the machine, the bias last, and how it was found.

    Parameters
    ----------
    X : (n, d) floats
    signs, weights : (n,) floats, the weights > 0
    C : float
    sensitivity : float in [0, 1]
        Least share of the weight of the positive examples that is outside the margin.
    seconds : float
        Time limit of SCIP.

    Returns
    -------
    u : (d + 1,) floats
    outcome : str
        "optimal"; "time limit", the best found in time; "heuristic", without SCIP.
    """
    # Equal examples of one class are correct together: the program becomes smaller, and the order does not matter.
    rows, codes = np.unique(np.column_stack([signs, X]), axis=0, return_inverse=True)
    weights, signs, objects = np.bincount(codes.ravel(), weights), rows[:, 0], rows[:, 1:]
    centre, basis = objects.mean(axis=0), np.eye(X.shape[1])
    # A shift or a rotation does not change the machine: keep at most as many columns as rows.
    inside = np.ascontiguousarray(objects - centre)
    if inside.shape[1] > len(inside):
        basis, triangle = np.linalg.qr(inside.T)
        inside = np.ascontiguousarray(triangle.T)
    problem = Problem(inside, signs, weights, C, sensitivity * weights[signs > 0].sum())
    u, outcome = problem.trained(weights), "optimal"
    if not problem.met(u):
        u, outcome = scanned(problem), "heuristic"
        if pyscipopt is not None:
            u, best = by_scip(problem, u, seconds)
            outcome = "optimal" if best else "time limit"
    coef = basis @ u[:-1]
    return np.append(coef, u[-1] - centre @ coef), outcome


class Constrained:
    """Trains constrained machines with each C, on resamples of these examples, for `Bootstrap`."""

    def __init__(self, X, y, Cs, sensitivity, seconds):
        self.X, self.signs, self.Cs, self.demand = X, 2.0 * y - 1, Cs, (sensitivity, seconds)

    def moved(self, X):
        """Return objects as the machines take them: as they are."""
        return X

    def trained(self, counts, r):
        """Return coefficients, the bias last, of the machine with the r-th C, and how it was found."""
        some = np.flatnonzero(counts)
        weights = counts[some].astype(np.float64)
        return constrained(self.X[some], self.signs[some], weights, self.Cs[r], *self.demand)
