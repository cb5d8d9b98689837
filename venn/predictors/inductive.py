"""Inductive Venn predictors: one, one for each fold, and a bound on the loss on any sequence."""

from __future__ import annotations

from math import lgamma, log, pi
from typing import Any, NamedTuple

import numpy as np

from venn.labels import space_of
from venn.parameters import above_one, integer, optional
from venn.prediction import NOTHING, Bools, Integers, Label, Multiprobability, RowMean, Rule, fitting_rule
from venn.predictors.blocks import ManyMultiprobabilities
from venn.predictors.counts import counter
from venn.predictors.inductive_base import GIVEN, Inductive, InductivePart, OnGiven, fitting_schedule, scorer_of_classes
from venn.predictors.learning import WeighsClasses, teach_all
from venn.predictors.merging import MergingReader
from venn.saved import component, own, param, saved, state
from venn.schedules import FIRST, NoTraining, RandomAssignment, Schedule
from venn.shifts import PriorShift, checked_ratios
from venn.taxonomies import Argmax, ByScores
from venn.turns import asks

# ------------------------------------------------------------------------------------------------------------ inductive
# The inductive Venn predictor counts labels in the new object's category; its scorer is trained on other examples.

CALIBEATING = "calibeating"


def checked_taxonomy(name: str, taxonomy: Any, c: int) -> ByScores:
    """Return the taxonomy, by default `Argmax()`, or say what is wrong with it for `c` classes."""
    if taxonomy is None:
        return Argmax()
    if not isinstance(taxonomy, ByScores):
        raise TypeError(f"{name} must be a function of the scores alone, such as Argmax(), got {taxonomy!r}")
    taxonomy.categories(np.zeros((1, c)))  # raises now, not later, if it is not for c classes
    return taxonomy


@component
class InductiveVenn(WeighsClasses, Inductive[ManyMultiprobabilities]):
    """Venn predictor by categories of a scorer that is not trained on the examples it counts.

    Calibration examples and the new object are put into categories by their scores. With m calibration
    examples in the object's category, counts[k] of them of class k, row j of the answer is
    (counts[k] + 1{k = j}) / (m + 1). So the interval of class k is [counts[k], counts[k] + 1] / (m + 1), of
    width 1 / (m + 1). Before the first training, and in an empty category, the answer says nothing: [0, 1].

    Every single prediction is valid when calibration examples and the new one are exchangeable: the row
    of the true label is calibrated. The scorer has not seen the new example, so its category does not depend
    on the supposed label; where categories stand for classes, the predicted label's own probability is
    guaranteed too (see `CategoryClass`). What holds of sums over a stream depends on the schedule: see there.

    Besides the score, learning costs O(c), and predicting O(c), or O(c^2) where the (c, c) matrix is made: by
    `predict_one`, by an item of a block and by its `probabilities`. Taxonomies that look at all examples compute
    all m categories anew for every object, O(c m), except `AdaptiveMarginBins()`: its margins are kept in order, and
    an object costs O(c + m^(2/3)).

    With a `shift` every single prediction is valid for other class frequencies, if all examples that calibrate come
    with the frequencies of training: see `PriorShift`.

    Categories are functions of the scores alone: `by_group(model, by)` makes them within groups of objects;
    `LeaveOneOut`, which needs a machine that learns and unlearns, is for `TransductiveVenn` only.

    With a given scorer and categories by an example's own scores there is a second theorem, for any sequence of labels:
    see `on_any_sequence`.

    Parameters
    ----------
    machine : Machine or FrozenScorer
        A machine that has learned nothing, or a scorer fitted elsewhere, on other examples.
    taxonomy : taxonomy on scores, default Argmax()
    schedule : Schedule, optional
        By default `PrefixRestart()` for a machine, `NoTraining()` for a `FrozenScorer`. The former trains on all
        examples each time: set its `last` where the machine's memory grows as the square of their number.
    rule : Rule, optional
        Picks the predicted class: by default `CategoryClass()` where categories stand for classes,
        `RowMean()` elsewhere.
    shift : PriorShift, optional
        For calibration examples that come with other class frequencies than the objects asked about.

    Attributes
    ----------
    n : int
        Number of examples learned.
    scorer : Machine, FrozenScorer or None
        What scores objects now; None before the first training. Do not teach it.

    Raises
    ------
    TypeError
        A part is not what it must be.
    ValueError
        The machine has learned, the schedule does not suit it, the taxonomy or the shift is not for that many classes,
        or the rule is `CategoryClass()` where categories stand for no class.

    References
    ----------
    Lambrou, Nouretdinov & Papadopoulos (2015), "Inductive Venn prediction"; for label shift Podkopaev & Ramdas (2021),
    "Distribution-free uncertainty quantification for classification under label shift", arXiv:2103.03323.

    Examples
    --------
    >>> import venn
    >>> machine = venn.LeastSquaresSVM(venn.RBF(1.0), C=10, classes=["no", "yes"])
    >>> model = InductiveVenn(machine, schedule=venn.schedules.PrefixRestart(first=4))
    >>> for x, y in [([0.0], "no"), ([1.0], "yes"), ([0.1], "no"), ([1.2], "yes"), ([0.2], "no")]:
    ...     model.learn_one(x, y)
    >>> model.predict_one([0.05])
    Multiprobability('no': [0.500, 1.000])
    >>> block = model.replay_many([[0.1], [1.1]], ["no", "yes"])
    >>> block.labels, block.lower, block.upper
    (['no', 'yes'], array([0.5, 0. ]), array([1., 1.]))
    """

    questioned = True

    unnamed = 2

    machine: Any = param(scorer_of_classes, kept_as="given")
    taxonomy: ByScores = param(checked_taxonomy, own(lambda m: len(m.given.classes)), default=None)
    schedule: Schedule = param(fitting_schedule, GIVEN, default=None, kw_only=True)
    rule: Rule = param(
        fitting_rule, own(lambda m: m.taxonomy), own(lambda m: m.taxonomy.determines_class), default=None, kw_only=True
    )
    shift: PriorShift | None = param(default=None, kw_only=True)

    def new_reader(self) -> MergingReader:
        """Return a reader that counts the labels in each category."""
        classes = tuple(self.given.classes)
        return counter(self.taxonomy, classes, self.rule, checked_ratios(self.shift, classes))

    @property
    def on_any_sequence(self) -> str:
        """What is proved about the point forecasts on any sequence, in addition to `guaranteed`.

        "calibeating" with a given scorer, `NoTraining()`, categories by an example's own scores, and no shift: see
        `calibeating`. Otherwise "nothing".
        """
        fixed = isinstance(self.schedule, NoTraining) and self.taxonomy.pointwise and self.shift is None
        return CALIBEATING if fixed else NOTHING

    def predict_one(self, x: Any) -> Multiprobability:
        """Return the multiprobability of `x`; leaves no trace.

        Parameters
        ----------
        x : (d,) finite numbers
        """
        _, scores = self.scored(x)
        reader = self._reader
        return reader.nothing(1)[0] if self.scorer is None else reader.predict_one(scores)


# ---------------------------------------------------------------------------------------------------------- calibeating
# Calibeating: on any sequence, a Venn predictor with fixed bins loses little more than the best constants by bin.

ROUNDING = 1e-9


class Calibeating(NamedTuple):
    """Compares a predictor's forecasts with the best constant forecast of each bin, chosen in hindsight.

    Examples
    --------
    >>> Calibeating(n=100, bins=2, regret=3.5, bound=6.0, brier_bound=9.0).holds
    True
    """

    n: int  #: examples
    bins: int  #: categories with examples
    regret: float  #: sum of log losses of the forecasts less that of the best constants by bin
    bound: float  #: what the theorem allows for it
    brier_bound: float  #: what it allows for sums of squared distances |e_y - p|^2

    @property
    def holds(self) -> bool:
        """Whether regret <= bound, up to rounding; it always does."""
        return self.regret <= self.bound + ROUNDING * (1.0 + self.bound)


def regret_bound(n: int, c: int) -> float:
    """Return the largest excess of the log loss of n forecasts (n_k + 1/c) / (n + 1) in one bin over the best constant.

    Two classes: ln(n) / 2 + ln 2 (Krichevsky & Trofimov). For c classes, with a = 1/c, the largest over q from 1 to
    min(c, n) of ln(n) / 2 + (1/2 - a) q ln(n / q) + q (a (1 - a) + ln Gamma(a)) - (q - 1) ln(2 pi) / 2 + 1 / (12 n):
    (c - 1) / 2 ln n + O(1).

    Parameters
    ----------
    n : int >= 0
    c : int >= 2

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described.

    Notes
    -----
    The forecasts are those of a Dirichlet mixture with parameters a, so the sum of their log losses is
    ln n! - sum ln(Gamma(n_k + a) / Gamma(a)), whatever the order. Let q classes occur. By Wendel,
    Gamma(n_k + a) >= n_k! (n_k + a)^(a - 1); by Robbins, the probability of the counts under their own shares is at
    most (2 pi)^((1 - q) / 2) sqrt(n / prod n_k) exp(1 / (12 n)); and ln(n_k + a) <= ln n_k + a. The rest is concave in
    the counts, largest at n_k = n / q.

    Examples
    --------
    >>> round(regret_bound(100, 2), 3), round(regret_bound(100, 3), 3)
    (2.996, 5.842)
    """
    n, c = integer("n", n, 0), integer("c", c, 2)
    if n == 0:
        return 0.0
    if c == 2:
        return 0.5 * log(n) + log(2.0)
    a = 1.0 / c
    each = a * (1.0 - a) + lgamma(a)
    return max(
        0.5 * log(n) + (0.5 - a) * q * log(n / q) + q * each - 0.5 * (q - 1) * log(2.0 * pi) + 1.0 / (12.0 * n)
        for q in range(1, min(c, n) + 1)
    )


def regret_of(counts: Integers) -> float:
    """Return the excess log loss of the forecasts in one bin over the best constant, from (c,) counts of labels.

    It does not depend on the order of the labels.

    Examples
    --------
    >>> import numpy as np
    >>> round(regret_of(np.array([1, 0])), 6), round(regret_of(np.array([3, 1])), 3)
    (0.693147, 0.993)
    """
    found, a = [int(count) for count in counts], 1.0 / len(counts)
    n = sum(found)
    mixture = lgamma(n + 1.0) - sum(lgamma(count + a) - lgamma(a) for count in found)
    return mixture + sum(count * log(count / n) for count in found if count)


def calibeating(model: InductiveVenn) -> Calibeating:
    """Compare the forecasts of a Venn predictor with the best constants by bin; return regret and bound.

    Where `model.on_any_sequence` is "calibeating" (a scorer that is given, with `NoTraining()`, categories that depend
    on an example's own scores alone, and no `shift`), the point forecasts `proba` are the frequencies in the category,
    (n_k + 1/c) / (n + 1). On **any** sequence of labels, also one chosen by an adversary who sees the forecasts, the
    sum of their log losses is at most that of the best constant forecasts by category, chosen in hindsight, plus
    `regret_bound(n_b, c)` for each category b; and the sum of their squared distances at most that of the best
    constants plus 1 - 1/c + 2 ln(n_b + 1) for each. So they are never much worse than the scorer with its bins
    relabelled as one likes, and on exchangeable data the predictor keeps what its predictions guarantee. The theorem is
    about forecasts at the time of learning, each label learned before the next forecast.

    Parameters
    ----------
    model : InductiveVenn
        Whose `on_any_sequence` is "calibeating".

    Raises
    ------
    ValueError
        The theorem is not about this predictor.

    References
    ----------
    Foster & Hart (2023), "Calibeating: beating forecasters at their own game", Theoretical Economics; Krichevsky &
    Trofimov (1981). The bounds for forecasts with 1/c are derived here: by the Dirichlet mixture, and by Welford's
    identity with one example at the uniform distribution.

    Examples
    --------
    >>> from sklearn.svm import LinearSVC
    >>> import venn
    >>> scorer = venn.FrozenScorer(LinearSVC().fit([[0.0], [0.1], [1.0], [1.2]], ["no", "no", "yes", "yes"]))
    >>> model = venn.InductiveVenn(scorer, venn.taxonomies.ScoreBins(4))
    >>> for _ in range(100):  # whatever is forecast, the other label comes
    ...     p = model.predict_one([0.4]).proba
    ...     model.learn_one([0.4], "no" if p[0] < 0.5 else "yes")
    >>> found = calibeating(model)
    >>> model.on_any_sequence, found.bins, round(found.regret, 2), round(found.bound, 2), found.holds
    ('calibeating', 1, 2.53, 3.0, True)
    """
    if getattr(model, "on_any_sequence", None) != CALIBEATING:
        raise ValueError(
            "model must have a given scorer with NoTraining(), categories by an example's own scores, and no shift, as "
            f"an InductiveVenn may, got {model!r}: about others there is no theorem for any sequence"
        )
    counts = model.calibration.reader.state["counts"]
    c, sizes = len(model.classes), counts.sum(axis=1)
    return Calibeating(
        int(sizes.sum()),
        int((sizes > 0).sum()),
        sum(regret_of(row) for row in counts[sizes > 0]),
        sum(regret_bound(int(size), c) for size in sizes),
        sum(1.0 - 1.0 / c + 2.0 * log(size + 1.0) for size in sizes.tolist() if size),
    )


# ---------------------------------------------------------------------------------------------------------------- cross
# Cross Venn prediction: several inductive predictors, each calibrated on its own fold of the examples.


@saved
class Fold(RandomAssignment):
    """One fold's assignment: every example belongs to one fold, by draws that all folds share."""

    def __init__(self, fold: int, folds: int, seed: int, first: int, growth: float, last: int | None) -> None:
        super().__init__(1 / folds, seed, first, growth, last)
        self.fold = fold
        self.folds = folds

    def calibrates(self, n: int, count: int, rng: np.random.Generator) -> Bools:
        """Draw for each example whether it belongs to this fold."""
        return np.floor(rng.random(count) * self.folds) == self.fold


def _parts(model: CrossVenn) -> list[InductivePart[ManyMultiprobabilities]]:
    """Return a predictor for each fold."""
    machine, classes = model.given, tuple(model.given.classes)
    ratios = checked_ratios(model.shift, classes)
    return [
        InductivePart(
            machine,
            counter(model.taxonomy, classes, RowMean(), ratios),
            Fold(k, model.folds, model.seed, model.first, model.growth, model.last),
        )
        for k in range(model.folds)
    ]


@component
class CrossVenn(WeighsClasses, OnGiven):
    """Inductive Venn predictors on complementary parts, their counts averaged.

    Every example is assigned at random, for good, to one of K folds. Predictor k calibrates on fold k and
    trains on all other folds, so that every example calibrates once and trains K - 1 times. Training happens
    at growing numbers of examples (a transductive predictor would retrain at every one); in between, new
    examples calibrate in their fold. The K counts in the object's categories are averaged, and row j of the
    answer is (mean counts + 1{k = j}) / (mean size + 1).

    Each of the K predictions is valid alone. Nothing is proved about their merge: it is offered because it is sharp on
    few data, where giving up examples to calibration costs much.

    Costs K machines, each trained on (K - 1) / K of the examples, and K scorings for a prediction.

    Parameters
    ----------
    machine : Machine
        One that has learned nothing; its `fresh()` copies learn.
    taxonomy : taxonomy on scores, default Argmax()
    folds : int >= 2, default 5
    seed : int >= 0, default 0
        Seed of the assignment to folds.
    first : int >= 1, default 32
        Examples at the first training; predictions before it say nothing.
    growth : float > 1, default 2
        Ratio of the numbers of examples at two trainings.
    last : int >= first, optional
        No training beyond that many examples. By default there is always a next training: set it where the
        machine's memory grows as the square of the number of examples.
    shift : PriorShift, optional
        For learned examples whose class frequencies differ from those of the objects asked about. Each part is then
        valid as `InductiveVenn` says; about the merge nothing is proved, as without a shift.

    Raises
    ------
    ValueError, TypeError
        A parameter is not as described, the taxonomy is not for that many classes, or the machine has learned or cannot
        learn.

    References
    ----------
    After the cross-conformal predictors of Vovk (2015).

    Examples
    --------
    >>> import venn
    >>> machine = venn.LeastSquaresSVM(venn.RBF(1.0), C=10, classes=["no", "yes"])
    >>> model = CrossVenn(machine, folds=2, first=6)
    >>> for x, y in [([0.0], "no"), ([1.0], "yes"), ([0.1], "no"), ([1.2], "yes"), ([0.2], "no"), ([1.1], "yes")]:
    ...     model.learn_one(x, y)
    >>> prediction = model.predict_one([0.05])
    >>> prediction.label, prediction.guaranteed
    ('no', 'nothing')
    """

    unnamed = 2

    machine: Any = param(scorer_of_classes, kept_as="given")
    taxonomy: ByScores = param(checked_taxonomy, own(lambda m: len(m.given.classes)), default=None)
    folds: int = param(integer, 2, default=5, sized=True)
    seed: int = param(integer, 0, default=0, kw_only=True)
    first: int = param(integer, 1, default=32, kw_only=True)
    growth: float = param(above_one, default=2.0, kw_only=True)
    last: int | None = param(optional, integer, FIRST, default=None, kw_only=True)
    shift: PriorShift | None = param(default=None, kw_only=True)

    parts: list[InductivePart[ManyMultiprobabilities]] = state(None, start=own(_parts), within=True)

    def derive(self) -> None:
        """Set the weights of classes."""
        self.space = space_of(self.given)
        self._ratios = checked_ratios(self.shift, self.classes)

    @property
    def n(self) -> int:
        """Number of examples learned."""
        return self.parts[0].n

    @asks
    def predict_many(self, X: Any) -> ManyMultiprobabilities:
        """Return predictions for many objects, all from the present state; leaves no trace.

        Parameters
        ----------
        X : (n, d) finite numbers
        """
        return self._merged([part.predict_many(X) for part in self.parts])

    def _merged(self, blocks: list[ManyMultiprobabilities]) -> ManyMultiprobabilities:
        counts = np.mean([block.counts for block in blocks], axis=0)
        return ManyMultiprobabilities(counts, self.classes, RowMean(), None, NOTHING, self._ratios)

    def predict_one(self, x: Any) -> Multiprobability:
        """Return the multiprobability of `x`; leaves no trace.

        Parameters
        ----------
        x : (d,) finite numbers
        """
        return self._merged([part.predict_block(x) for part in self.parts])[0]

    def prepare(self, x: Any, y: Label) -> list[Any]:
        """Return what each fold prepares, or raise what learning would raise."""
        return [part.prepare(x, y) for part in self.parts]

    def commit(self, x: Any, y: Label, prepared: Any = None) -> None:
        """Learn one example, and train if it is time to.

        Raises
        ------
        NotConverged
            A training failed: that fold says nothing until its next training; all other folds have learned.
        """
        teach_all(self.parts, x, y, prepared or self.prepare(x, y))
