"""What a forecaster says of classes: probabilities, intervals and sets, of one object or of many."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from venn.prediction import Floats, Label

FORECAST, INTERVALS, SETS = "forecast", "intervals", "sets"


class Parts(dict[Any, Any]):  # Any: an outlook of classes is asked for these, too
    """Predictions by the name of their predictor."""

    def __missing__(self, name: Any) -> Any:
        more = "; of object i it has .one(i)" if hasattr(self, "one") else ""
        raise KeyError(f"it has {', '.join(self)}{more}, got {name!r}")

    @property
    def guaranteed(self) -> dict[str, str]:
        """What is proved of each part."""
        return {name: one.guaranteed for name, one in self.items()}


class Said(Parts):
    """Base of what a `Forecaster` says: predictions of its predictors by name, of one object or of many."""

    @property
    def classes(self) -> tuple[Label, ...]:
        """Labels in class order."""
        return self[FORECAST].classes

    @property
    def proba(self) -> Floats:
        """(c,) or (n, c) probabilities in class order."""
        return self[FORECAST].proba

    @property
    def intervals(self) -> Floats:
        """(c, 2) or (n, c, 2) lower and upper probability of each class."""
        return np.moveaxis(self[INTERVALS].bounds, 0, -1)

    @property
    def p_values(self) -> Floats:
        """(c,) or (n, c) p-values of each class."""
        return self[SETS].p_values


class Outlook(Said):
    """What a `Forecaster` says of one object: each of its predictors' predictions by name, and all of them in one.

    `outlook["yes"]` is the probability of a class. So no class of a forecaster has the name of one of its predictors.

    Attributes
    ----------
    proba : (c,) float64
        Probabilities in class order, to decide by. They are those of "forecast", another predictor than "intervals":
        it mixes several methods by their past losses. So a probability may lie outside its interval: it is often the
        sharper of the two, while only the interval is guaranteed. `repr` says so where it happens.
    intervals : (c, 2) float64
        Lower and upper probability of each class.
    p_values : (c,) float64
        Of each class: the smallest chance of an error at which the set leaves it out.
    label : label
        The most probable class.
    best : label
        The same: here the label and the largest probability always agree.
    guaranteed : dict of str to str
        What is proved of each part: see docs/guarantees.md for the words.

    Examples
    --------
    >>> import streams, venn
    >>> model = venn.Forecaster(("no", "yes"), first=0)
    >>> for x, y in [([0.0], "no"), ([1.0], "yes"), ([0.1], "no"), ([1.2], "yes")]:
    ...     model.learn_one(x, y)
    >>> outlook = model.predict_one([1.1])
    >>> outlook.label, outlook.intervals.shape, sorted(outlook.guaranteed)
    ('yes', (2, 2), ['forecast', 'intervals', 'sets'])
    >>> outlook["yes"] == outlook.to_dict()["probabilities"]["yes"]
    True
    """

    def __missing__(self, label: Any) -> float:
        if label not in self.classes:
            raise KeyError(f"it has {', '.join(self)}, and the classes {list(self.classes)!r}, got {label!r}")
        return float(self.proba[self.classes.index(label)])

    @property
    def label(self) -> Label:
        """The most probable class."""
        return self[FORECAST].label

    @property
    def best(self) -> Label:
        """The most probable class: here it is also the label."""
        return self.label

    def set(self, epsilon: float) -> tuple[Label, ...]:
        """Return the labels that cannot be excluded at this chance of an error, in class order."""
        return self[SETS].set(epsilon)

    def to_dict(self) -> dict[str, Any]:
        """Return all that is said as plain numbers: of the classes by label, and what is proved of each part.

        With classes that are text it goes into JSON as it is.
        """

        def of_classes(values: Floats) -> dict[Label, Any]:
            return dict(zip(self.classes, values.tolist(), strict=True))

        return {
            "label": self.label,
            "probabilities": of_classes(self.proba),
            "intervals": of_classes(self.intervals),
            "p_values": of_classes(self.p_values),
            "guaranteed": self.guaranteed,
        }

    def _repr_html_(self) -> str:
        """Return a table for notebooks."""
        said = self.to_dict()
        rows = "".join(
            f"<tr><td>{escape(str(label))}</td><td>{p:.3f}</td><td>{low:.3f} to {high:.3f}</td>"
            f"<td>{said['p_values'][label]:.3f}</td></tr>"
            for (label, p), (low, high) in zip(said["probabilities"].items(), said["intervals"].values(), strict=True)
        )
        heads = "".join(f"<th>{head}</th>" for head in ("class", "probability", "between", "p-value"))
        return f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"

    def __repr__(self) -> str:
        each = list(zip(self.classes, self.proba.round(3).tolist(), self.intervals.round(3).tolist(), strict=True))
        shown = ", ".join(f"{label!r}: {p:.3f} [{low:.3f}, {high:.3f}]" for label, p, (low, high) in each)
        outside = any(not low <= p <= high for _, p, (low, high) in each)
        return f"Outlook({shown}{'; a forecast may lie outside its brackets, which another predictor gives' * outside})"


class Outlooks(Said):
    """What a `Forecaster` says of many objects: blocks of its predictors' predictions by name, and all in arrays.

    Attributes
    ----------
    proba : (n, c) float64
        Probabilities in class order, to decide by.
    intervals : (n, c, 2) float64
        Lower and upper probability of each class.
    p_values : (n, c) float64
        Of each class.
    labels, best : list of labels
        The most probable classes.
    guaranteed : dict of str to str
        What is proved of each part.

    Examples
    --------
    >>> import venn
    >>> model = venn.Forecaster(["no", "yes"])
    >>> for i in range(40):
    ...     model.learn_one([i / 40], "yes" if i > 20 else "no")
    >>> outlooks = model.predict_many([[0.1], [0.9]])
    >>> outlooks.labels, outlooks.sets(0.1), outlooks.intervals.shape
    (['no', 'yes'], [('no',), ('yes',)], (2, 2, 2))
    >>> outlooks.one(1).label
    'yes'
    """

    @property
    def labels(self) -> list[Label]:
        """The most probable classes."""
        return self[FORECAST].labels

    @property
    def best(self) -> list[Label]:
        """The most probable classes: here they are also the labels."""
        return self.labels

    def sets(self, epsilon: float) -> list[tuple[Label, ...]]:
        """Return for each object the labels that cannot be excluded at this chance of an error, in class order."""
        return self[SETS].sets(epsilon)

    def one(self, i: int) -> Outlook:
        """Return the outlook for object i."""
        return Outlook({name: block[i] for name, block in self.items()})

    def __repr__(self) -> str:
        return f"Outlooks({len(self[FORECAST])} objects, classes {list(self.classes)!r})"
