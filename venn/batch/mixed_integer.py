"""Linear support vector machines with constraints on the number of correct examples: a mixed-integer program."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from venn.batch.linear_svm import LinearSVM
from venn.machines.machine import NotConverged
from venn.parameters import Parameters, integer, positive
from venn.prediction import Floats

TOLERANCE = 1e-6  # a margin may fall short by this much and count as reached
POWERS = tuple(2.0**k for k in range(11))
OPTIMAL, TIME_LIMIT, HEURISTIC = "optimal", "time limit", "heuristic"


class Infeasible(ValueError):
    """No hyperplane meets the constraints: proved, up to the solver's tolerance.

    Raised by `ConstrainedSVC.fit`; its message names the constraints. Ask for less, or add features.

    Examples
    --------
    >>> raise Infeasible("no hyperplane has sensitivity >= 0.9 and specificity >= 1 here")
    Traceback (most recent call last):
    ...
    venn.batch.mixed_integer.Infeasible: no hyperplane has sensitivity >= 0.9 and specificity >= 1 here
    """


class Requirement(NamedTuple):
    """A least weight on the right side, outside the margin: the sum of `counted` over these examples >= `least`."""

    name: str
    share: float
    counted: Floats  #: (n,) weights of the examples that count, 0 for others
    least: float

    def __str__(self) -> str:
        return f"{self.name} >= {self.share:g}"


class Problem(NamedTuple):
    """Minimise 1/2 |w|^2 + C sum_i weight_i xi_i so that all requirements are met, xi_i = max(0, 1 - sign_i f(x_i)).

    No two rows have the same object and sign.
    """

    objects: Floats  #: (n, d)
    signs: Floats  #: (n,)
    weights: Floats  #: (n,)
    C: float
    requirements: tuple[Requirement, ...]

    def margins(self, plane: Plane) -> Floats:
        """Return (n,) sign_i f(x_i)."""
        return self.signs * (self.objects @ plane.coef + plane.bias)

    def objective(self, plane: Plane) -> float:
        """Return the objective of a hyperplane."""
        slack = np.maximum(0.0, 1.0 - self.margins(plane))
        return float(0.5 * plane.coef @ plane.coef + self.C * self.weights @ slack)

    def met(self, plane: Plane) -> bool:
        """Whether the hyperplane itself meets all requirements."""
        correct = self.margins(plane) >= 1 - TOLERANCE
        return all(each.counted[correct].sum() >= each.least * (1 - 1e-12) for each in self.requirements)

    def trained(self, weights: Floats) -> Plane:
        """Return the SVM with other weights of the examples."""
        fit = LinearSVM(self.C, tolerance=1e-9).fit(self.objects, self.signs, weights)
        return Plane(fit.coef, fit.bias)

    def with_correct(self, correct: Any) -> Plane | None:
        """Return the SVM in which examples `correct` (n,) must reach the margin; None if it is not found.

        The hinge loss is an exact penalty: with large enough weights these examples have no loss at all.
        """
        for factor in 10.0 ** np.arange(1, 8):
            try:
                plane = self.trained(np.where(correct, factor, 1.0) * self.weights)
            except NotConverged:
                return None
            reached = self.margins(plane)[correct]
            if reached.size == 0 or reached.min() >= 1 - 1e-8:
                return plane
        return None


class Plane(NamedTuple):
    """A scorer f(x) = coef . x + bias."""

    coef: Floats
    bias: float


class Found(NamedTuple):
    """A solver's result: a hyperplane that meets all requirements, and how good it is."""

    plane: Plane
    status: str  #: "optimal", "time limit" or "heuristic"
    bound: float  #: no hyperplane that meets the requirements has a lower objective; 0 if nothing is proved
    bound_active: bool = False  #: False proves that the bound M on the losses changes nothing, True leaves it open


class Solver(Protocol):
    """A way to train a constrained SVM."""

    def solve(self, problem: Problem) -> Found:
        """Return a hyperplane that meets the requirements.

        Raises
        ------
        Infeasible
            There is none.
        NotConverged
            None was found.
        """


def named(requirements: Sequence[Requirement]) -> str:
    """Return the requirements in words."""
    return " and ".join(map(str, requirements))


class ClassWeightScan(Parameters):
    """A heuristic: scans weights of the two classes for SVMs that meet the constraints, and takes the best of them.

    For each weight of a constrained class (of both for the accuracy; the other weight is 1) it trains a plain SVM. The
    examples beyond what the constraints need are released, those of smallest margin first; the others must stay outside
    the margin. Among the results that meet the constraints, and the constant scores 1 and -1, it returns the one of
    least objective, that of the constrained problem without class weights. Nothing is proved of its distance from the
    optimum, except if the plain SVM meets the constraints: then it is the optimum.

    Parameters
    ----------
    weights : sequence of numbers > 0
        By default powers of 2 from 1 to 1024.

    Raises
    ------
    TypeError, ValueError
        `weights` is empty, or holds something else than numbers > 0.

    Examples
    --------
    >>> ClassWeightScan(weights=(1, 10))
    ClassWeightScan(weights=(1.0, 10.0))
    """

    def __init__(self, weights: Sequence[float] = POWERS) -> None:
        self.weights = tuple(positive("weights", weight) for weight in weights)
        if not self.weights:
            raise ValueError(f"weights must hold at least one number > 0, got {weights!r}")

    def solve(self, problem: Problem) -> Found:
        """Return the best hyperplane found.

        Raises
        ------
        NotConverged
            None meets the requirements, which does not prove that there is none.
        """
        plain = problem.trained(problem.weights)
        if problem.met(plain):
            return Found(plain, OPTIMAL, problem.objective(plain))
        best = self.best(problem)
        if best is None:
            raise NotConverged(
                f"{named(problem.requirements)} must be met by an SVM with weights of classes from {min(self.weights)} "
                f"to {max(self.weights)}, got none that does, which proves nothing: Scip() decides"
            )
        return Found(best, HEURISTIC, 0.0)

    def best(self, problem: Problem) -> Plane | None:
        """Return the best hyperplane that meets the requirements, None if none does."""
        d = problem.objects.shape[1]
        candidates = [Plane(np.zeros(d), side) for side in (1.0, -1.0)]
        about = [
            any(each.counted[problem.signs == side].any() for each in problem.requirements) for side in (1.0, -1.0)
        ]
        for p in self.weights if about[0] else (1.0,):
            for q in self.weights if about[1] else (1.0,):
                try:
                    plane = problem.trained(np.where(problem.signs > 0, p, q) * problem.weights)
                except NotConverged:
                    continue
                candidates.append(plane)
                held = problem.with_correct(self._needed(problem, plane))
                if held is not None:
                    candidates.append(held)
        good = [plane for plane in candidates if problem.met(plane)]
        return min(good, key=problem.objective, default=None)

    def _needed(self, problem: Problem, plane: Plane) -> Any:
        """Return (n,) which examples must be outside the margin: for each requirement those of largest margin."""
        margins = problem.margins(plane)
        order = np.argsort(-margins, kind="stable")
        needed = np.zeros(len(order), np.bool_)
        for each in problem.requirements:
            own = order[each.counted[order] > 0]
            enough = np.cumsum(each.counted[own]) < each.least * (1 - 1e-12)
            needed[own[: np.count_nonzero(enough) + (each.least > 0)]] = True
        return needed


class Scip(Parameters):
    """Solves the mixed-integer quadratic program by SCIP, through `pyscipopt`: to the optimum if there is time.

    Minimises t / 2 + C sum_i weight_i xi_i so that t >= |w|^2, sign_i (w . x_i + b) >= 1 - xi_i, 0 <= xi_i <= M,
    xi_i = 0 where the binary zeta_i is 1 (in other words, xi_i <= M (1 - zeta_i)), and enough of the weight has
    zeta_i = 1.

    Exact shortcuts: if the plain SVM meets the constraints, it is the solution. If `ClassWeightScan` finds
    a hyperplane, SCIP starts with it, and its objective bounds t and the xi_i. SCIP's result is solved again
    as the SVM in which the examples with zeta_i = 1 must reach the margin: SCIP's tolerance of 1e-6 in the objective
    allows errors of 1e-3 in w. With one constraint on overlapping classes it took 0.2 seconds for 30 examples, 0.8 for
    60 and 2 for 100 (medians); two constraints, and proofs that there is no such hyperplane, take longer.

    Parameters
    ----------
    M : float > 0, default 1000
        Bound on the losses xi_i of all examples.
    time_limit : float > 0, default 300
        Seconds.
    seed : int >= 0, default 0
        Of SCIP's own random choices.

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described.

    Examples
    --------
    >>> Scip(time_limit=10)
    Scip(M=1000.0, time_limit=10.0, seed=0)
    """

    def __init__(self, M: float = 1000.0, time_limit: float = 300.0, seed: int = 0) -> None:
        self.M = positive("M", M)
        self.time_limit = positive("time_limit", time_limit)
        self.seed = integer("seed", seed, 0)

    def solve(self, problem: Problem) -> Found:
        """Return the optimum, or the best found when the time is up.

        Raises
        ------
        ImportError
            `pyscipopt` is not installed.
        Infeasible
            No hyperplane meets the requirements with losses up to M.
        NotConverged
            The time was up before there was a hyperplane, or SCIP stopped for another reason.
        """
        scip = self.module()
        plain = problem.trained(problem.weights)
        if problem.met(plain) and self._within(problem, plain):
            return Found(plain, OPTIMAL, problem.objective(plain))
        start = ClassWeightScan().best(problem)
        if start is not None and not self._within(problem, start):
            start = None
        model, variables = self._model(scip, problem, start)
        model.optimize()
        status = model.getStatus()
        if status == "userinterrupt":
            raise KeyboardInterrupt
        if status in ("infeasible", "inforunbd") and start is None:
            raise Infeasible(
                f"{named(problem.requirements)} must be met by some hyperplane with losses of at most M = {self.M:g}, "
                "got a proof that there is none"
            )
        if status not in ("optimal", "timelimit"):
            raise NotConverged(f"SCIP must end with an optimum or a time limit, got {status!r}")
        planes = [] if start is None else [start]
        if model.getNSols() > 0:
            w, b, zeta = (np.array([model.getVal(each) for each in some]) for some in variables)
            own = Plane(w, float(b[0]))
            held = problem.with_correct(zeta > 0.5)
            # That problem has no bound M: if the bound matters, SCIP's own point is the answer.
            if held is None or not self._within(problem, held):
                held = _lifted(problem, own, zeta > 0.5)
            planes.append(held)
        planes = [plane for plane in planes if problem.met(plane)]
        if not planes:
            raise NotConverged(
                f"a hyperplane with {named(problem.requirements)} must be found, got none by SCIP, which ended with "
                f"{status!r} and a limit of {self.time_limit:g} seconds"
            )
        best = min(planes, key=problem.objective)
        value = problem.objective(best)
        bound = max(0.0, min(float(model.getDualbound()), value))
        # A single loss of M or more would cost more than this hyperplane: then no better one has it.
        active = value >= problem.C * problem.weights.min() * self.M
        return Found(best, OPTIMAL if status == "optimal" else TIME_LIMIT, bound, active)

    @staticmethod
    def module() -> Any:
        """Return the module `pyscipopt`, or say what to install.

        Raises
        ------
        ImportError
            The package is not there; the message says what to install.
        """
        try:
            import pyscipopt
        except ImportError as error:
            raise ImportError(
                "Scip() needs the package pyscipopt: pip install pyscipopt. Without it ClassWeightScan() is a heuristic"
            ) from error
        return pyscipopt

    def _within(self, problem: Problem, plane: Plane) -> bool:
        return bool((1.0 - problem.margins(plane)).max() < self.M * (1 - TOLERANCE))

    def _model(self, scip: Any, problem: Problem, start: Plane | None) -> tuple[Any, tuple[Any, Any, Any]]:
        """Return SCIP's model, and its w, b, and one zeta for each example."""
        n, d = problem.objects.shape
        model = scip.Model()
        model.hideOutput()
        model.setParam("limits/time", self.time_limit)
        model.setParam("randomization/randomseedshift", self.seed % 2**31)
        # No better hyperplane has a larger |w| or a larger loss than the start's objective allows.
        least = math.inf if start is None else problem.objective(start) * (1 + 1e-4)
        reach = None if start is None else math.sqrt(2 * least)
        w = [model.addVar(lb=None if reach is None else -reach, ub=reach) for _ in range(d)]
        b = model.addVar(lb=None)
        t = model.addVar(lb=0.0)
        caps = np.minimum(self.M, least / (problem.C * problem.weights))
        xi = [model.addVar(lb=0.0, ub=cap) for cap in caps]
        zeta = [model.addVar(vtype="B") for _ in range(n)]
        model.addCons(scip.quicksum(each * each for each in w) <= t)
        for i in range(n):
            row = problem.signs[i] * problem.objects[i]
            f = scip.quicksum(float(row[j]) * w[j] for j in range(d)) + float(problem.signs[i]) * b
            model.addCons(f + xi[i] >= 1)
            model.addConsIndicator(xi[i] <= 0, binvar=zeta[i])
        for each in problem.requirements:
            model.addCons(
                scip.quicksum(float(each.counted[i]) * zeta[i] for i in np.flatnonzero(each.counted))
                >= each.least * (1 - 1e-12)
            )
        model.setObjective(0.5 * t + scip.quicksum(float(problem.C * problem.weights[i]) * xi[i] for i in range(n)))
        if start is not None:
            margins = problem.margins(start)
            known = model.createSol()
            for variable, value in zip(w, start.coef, strict=True):
                model.setSolVal(known, variable, value)
            model.setSolVal(known, b, start.bias)
            model.setSolVal(known, t, start.coef @ start.coef)
            for i in range(n):
                slack = 0.0 if margins[i] >= 1 - TOLERANCE else 1.0 - margins[i]
                model.setSolVal(known, xi[i], slack)
                model.setSolVal(known, zeta[i], float(slack == 0.0))
            model.addSol(known)
        return model, (w, [b], zeta)


def _lifted(problem: Problem, plane: Plane, correct: Any) -> Plane:
    """Return the hyperplane scaled so that the correct examples reach the margin, if little is missing."""
    short = problem.margins(plane)[correct].min(initial=1.0)
    factor = 1.0 / short if 0.9 < short < 1 else 1.0
    return Plane(plane.coef * factor, plane.bias * factor)
