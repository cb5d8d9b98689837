"""The transductive Venn predictor: count labels in the new object's category, under every hypothesis."""

from __future__ import annotations

from typing import Any

from venn.machines.machine import Machine
from venn.prediction import Label, Multiprobability, RowMean, Rule
from venn.taxonomies import Argmax, Taxonomy


class TransductiveVenn:
    """Venn predictor over the whole augmented bag.

    For each class j the new object joins the bag with label j, the machine is solved exactly, and all
    examples, the new one included, are put into categories; row j of the answer is the label
    distribution in the new object's category. Under exchangeability, and for a machine and taxonomy that
    treat all examples alike, the row of the true label is perfectly calibrated:
    E[1{y = k} | row of y] = row of y at k. With an in-sample taxonomy such as `Argmax` no such statement
    holds for the *predicted* label, which depends on all rows.

    Parameters
    ----------
    machine : Machine
        Shared with other predictors when they stand in one `Panel`.
    taxonomy : Taxonomy, default Argmax()
    rule : Rule, default RowMean()
        Picks the predicted class from the matrix: `RowMean()` or `Maximin()`.

    References
    ----------
    Vovk, Shafer & Nouretdinov (2003); Lambrou, Papadopoulos & Gammerman (2012).

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

    def __init__(self, machine: Machine, taxonomy: Taxonomy | None = None, rule: Rule | None = None) -> None:
        for name, value, method in (
            ("machine", machine, "hypotheses"),
            ("taxonomy", taxonomy, "count"),
            ("rule", rule, "quality"),
        ):
            if value is not None and (isinstance(value, type | str) or not callable(getattr(value, method, None))):
                raise TypeError(f"{name} must be a {name} object, with a method {method!r}, got {value!r}")
        if machine is None:
            raise TypeError("machine must be a machine object, with a method 'hypotheses', got None")
        self.machine = machine
        self.taxonomy: Taxonomy = Argmax() if taxonomy is None else taxonomy
        self.rule: Rule = RowMean() if rule is None else rule

    def __repr__(self) -> str:
        return f"TransductiveVenn({self.machine!r}, {self.taxonomy!r}, rule={self.rule!r})"

    @property
    def classes(self) -> tuple[Label, ...]:
        """Labels in class order."""
        return self.machine.classes

    def predict_one(self, x: Any) -> Multiprobability:
        """Return the multiprobability of `x`; leaves no trace.

        Parameters
        ----------
        x : (d,) finite numbers
        """
        counts = self.taxonomy.count(self.machine.hypotheses(x))
        # Every category holds at least the new example, so no row is empty.
        return Multiprobability(counts / counts.sum(axis=1, keepdims=True), self.classes, self.rule)

    def learn_one(self, x: Any, y: Label) -> None:
        """Learn one example."""
        self.machine.learn_one(x, y)
        self.after_learning(x, y)

    def after_learning(self, x: Any, y: Label) -> None:
        """Nothing: the machine holds all there is to know."""
