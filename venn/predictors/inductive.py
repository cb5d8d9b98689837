"""The inductive Venn predictor counts labels in the new object's category; its scorer is trained on other examples."""

from __future__ import annotations

from typing import Any

import numpy as np

from venn.prediction import NOTHING, Multiprobability, Rule, fitting_rule
from venn.predictors.blocks import ManyMultiprobabilities
from venn.predictors.counts import counter
from venn.predictors.inductive_base import GIVEN, Inductive, fitting_schedule, scorer_of_classes
from venn.predictors.learning import WeighsClasses
from venn.predictors.merging import MergingReader
from venn.priors import PriorShift, checked_ratios
from venn.saved import component, own, param
from venn.schedules import NoTraining, Schedule
from venn.taxonomies import Argmax, ByScores

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

    Categories are functions of the scores alone: `by_group(model, by)` makes them within groups of objects; `Deleted`,
    which needs a machine that learns and unlearns, is for `TransductiveVenn` only.

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

    unnamed = 2

    machine: Any = param(scorer_of_classes, kept_as="given")
    taxonomy: ByScores = param(checked_taxonomy, own(lambda m: len(m.given.classes)), default=None)
    schedule: Schedule = param(fitting_schedule, GIVEN, default=None, kw_only=True)
    rule: Rule = param(
        fitting_rule, own(lambda m: m.taxonomy), own(lambda m: m.taxonomy.determines_class), default=None, kw_only=True
    )
    shift: PriorShift | None = param(default=None, kw_only=True)

    def new_reader(self) -> MergingReader:
        """Return what counts the labels in each category."""
        classes = tuple(self.given.classes)
        return counter(self.taxonomy, classes, self.rule, checked_ratios(self.shift, classes))

    @property
    def on_any_sequence(self) -> str:
        """What is proved of the point forecasts on any sequence, beside what is guaranteed on exchangeable ones.

        "calibeating" with a given scorer, `NoTraining()`, categories by an example's own scores, and no shift: see
        `venn.predictors.calibeating`. Otherwise "nothing".
        """
        fixed = isinstance(self.schedule, NoTraining) and self.taxonomy.pointwise and self.shift is None
        return CALIBEATING if fixed else NOTHING

    def predict_one(self, x: Any) -> Multiprobability:
        """Return the multiprobability of `x`; leaves no trace.

        Parameters
        ----------
        x : (d,) finite numbers
        """
        scores = self.scores_of(self._row(x))
        reader = self._reader
        return reader.nothing(1)[0] if self.scorer is None else reader.predict_one(scores)
