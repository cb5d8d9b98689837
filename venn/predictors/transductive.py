"""The transductive Venn predictor counts labels in the new object's category, under every hypothesis."""

from __future__ import annotations

from typing import Any

from venn.covariates import CovariateShift
from venn.machines.machine import Machine, under_each
from venn.parameters import with_methods
from venn.prediction import Integers, Multiprobability, Rule, fitting_rule
from venn.predictors.blocks import shares
from venn.predictors.learning import OnMachine, WeighsClasses, machine_of_classes
from venn.priors import PriorShift, checked_ratios
from venn.saved import component, own, param
from venn.taxonomies import AdaptiveMarginBins, Deleted
from venn.taxonomies.base import Taxonomy, weighable


def _counting(name: str, taxonomy: Any) -> Taxonomy:
    """Return the taxonomy, by default the one of least log loss, or say what is wrong with it."""
    taxonomy = Deleted(AdaptiveMarginBins()) if taxonomy is None else taxonomy
    wanted = "a taxonomy object, with methods 'count' and 'fixes_class' and an attribute 'deleted'"
    return with_methods(name, taxonomy, wanted, "count", "fixes_class", has=["deleted"])


@component
class TransductiveVenn(WeighsClasses, OnMachine):
    """Venn predictor over the whole augmented bag.

    For each class j the new object joins the bag with label j, the machine is solved exactly, and all
    examples, the new one included, are put into categories; row j of the answer is the label
    distribution in the new object's category. Under exchangeability, and for a machine and taxonomy that
    treat all examples alike, the row of the true label is perfectly calibrated:
    E[1{y = k} | row of y] = row of y at k. For the *predicted* label the same holds if the rule is
    `CategoryClass()`; see there. Each prediction says in `guaranteed` which of the two holds.

    With a `shift` the same holds of each single prediction for other class frequencies, if examples of the operational
    stream are not learned: see `PriorShift`; with a `CovariateShift`, for objects that are distributed differently.

    Parameters
    ----------
    machine : Machine
        Shared with other predictors when they stand in one `Panel`.
    taxonomy : Taxonomy, optional
        By default `Deleted(AdaptiveMarginBins())`: among the taxonomies that guarantee the predicted label it has the
        least log loss over the data sets of docs/quality.md. `Argmax()` is the published one.
    rule : Rule, optional
        Picks the predicted class. By default `CategoryClass()` where the category stands for a class, the
        same under every hypothesis (deleted scores of a machine that deletes exactly), and `RowMean()` elsewhere.
    shift : PriorShift or CovariateShift, optional
        For examples learned that come with other class frequencies than the objects asked about, or whose objects are
        distributed differently; the latter needs a taxonomy on scores, deleted or not, and a machine that keeps dense
        objects. The machine's own `class_weights` are something else: they change no guarantee.

    Raises
    ------
    TypeError
        A part is not what it must be.
    ValueError
        The rule is `CategoryClass()` and the class of the category may depend on the hypothesis; the shift is of
        another number of classes.

    References
    ----------
    Vovk, Shafer & Nouretdinov (2003); Lambrou, Papadopoulos & Gammerman (2012); for label shift Podkopaev & Ramdas
    (2021), arXiv:2103.03323.

    Examples
    --------
    >>> import venn
    >>> machine = venn.OneVsAllSVM(venn.RBF(1.0), C=1, classes=["no", "yes"])
    >>> model = TransductiveVenn(machine, venn.Argmax())
    >>> model.predict_one([0.0]).probabilities
    array([[1., 0.],
           [0., 1.]])
    >>> for x, y in [([0.0], "no"), ([1.0], "yes"), ([0.1], "no"), ([1.2], "yes")]:
    ...     model.learn_one(x, y)
    >>> model.predict_one([0.05])
    Multiprobability('no': [0.667, 1.000])
    """

    unnamed = 2

    machine: Machine = param(machine_of_classes)
    taxonomy: Any = param(_counting, default=None)
    rule: Rule = param(
        fitting_rule, own(lambda m: m.taxonomy), own(lambda m: m.taxonomy.fixes_class(m.machine)), default=None
    )
    shift: PriorShift | CovariateShift | None = param(default=None)

    def derive(self) -> None:
        """Say which scores are read, and how examples weigh."""
        self._fixed = self.taxonomy.fixes_class(self.machine)
        if self.taxonomy.deleted:
            self.machine.expect_deleted()
        self._ratios = None
        if isinstance(self.shift, CovariateShift):
            self._inside = weighable(self.taxonomy)
        else:
            self._ratios = checked_ratios(self.shift, self.machine.classes)

    def predict_one(self, x: Any) -> Multiprobability:
        """Return the multiprobability of `x`; leaves no trace.

        Parameters
        ----------
        x : (d,) finite numbers
        """
        answer = self.machine.hypotheses(x)
        labels: Any
        if isinstance(self.shift, CovariateShift):
            shift, tables = self.shift, answer.tables(self.taxonomy.deleted)
            labels, categories = under_each(tables, lambda table: self._inside.weigh_table(table, shift))
        else:
            labels, categories = self.taxonomy.count(answer)
        category_class = self._class_of(categories) if self._fixed else None
        # Every category holds at least the new example, so no row is empty.
        rows = labels / labels.sum(axis=1, keepdims=True) if self._ratios is None else shares(labels, self._ratios)
        return Multiprobability(rows, self.classes, self.rule, category_class)

    def _class_of(self, categories: Integers) -> int:
        """Return the class of the new example's category; every hypothesis must give the same."""
        c = len(categories)
        classes = {self.taxonomy.class_of(category, c) for category in set(categories.tolist())}
        if len(classes) > 1:
            raise RuntimeError(
                f"taxonomy must give the new example a category of one class under every hypothesis, got "
                f"classes {sorted(classes)} by {self.taxonomy!r}"
            )
        return classes.pop()
