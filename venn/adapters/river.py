"""For river: our predictors as river classifiers."""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from math import isfinite
from typing import Any

import numpy as np

from venn.machines.machine import check_names, fields_in, renamed
from venn.monitors.verdict import Verdict
from venn.online.forecaster import Forecaster
from venn.online.outlook import FORECAST, INTERVALS, SETS, Outlook
from venn.parameters import flag, has_methods, is_number, number, python_value
from venn.prediction import Floats, Forecast, Label, Prediction, PredictionSet
from venn.predictors.learning import Predictor, names_among
from venn.turns import TakesTurns, asks, changes

try:
    from river import base as base
except ImportError:
    from venn.adapters import without_river as base

Model = Predictor | Forecaster
Make = Callable[[tuple[Label, ...]], Model]
CHANGING_FEATURES = {
    "check_emerging_features",
    "check_disappearing_features",
    "check_radically_disappearing_features",
    "check_learn_many_matches_learn_one",
}


class Points(TakesTurns):
    """Base of river's estimators here: makes an object of a dict of features."""

    def __init__(self, features: Sequence[Hashable] | None, missing: float | None, ignore_unknown: bool) -> None:
        self.features = features
        self.missing = None if missing is None else number("missing", missing)
        self.ignore_unknown = flag("ignore_unknown", ignore_unknown)
        self._names = None if features is None else checked_names(features)

    def _names_from(self, model: Any, names: tuple[Hashable, ...] | None) -> tuple[Hashable, ...] | None:
        """Return the names of features in the order in which the model's scorer takes them, or the names as they are.

        Raise if both are known and differ: a dict would silently be handed over in the wrong order.
        """
        own = names_among(model.values() if has_methods(model, "values") else [model])
        if own is not None and names is not None:
            check_names("features must be those that the scorer was fitted to,", names, own)
        return names if own is None else own

    def _unit_test_skips(self) -> set[str]:
        """Checks of river that feed changing features: they pass with `missing` and `ignore_unknown`."""
        return set() if self.missing is not None and self.ignore_unknown else CHANGING_FEATURES

    def _names_for(self, x: Any) -> tuple[Hashable, ...]:
        if not isinstance(x, Mapping):
            advice = "x._asdict() is one" if isinstance(x, tuple) and fields_in(x) else "river.stream converts tables"
            raise TypeError(f"x must be a dict from feature to number, got a {type(x).__name__}: {advice}")
        # By name, so that the order of a dict makes no difference, not even in the last bit.
        names = in_order(x) if self._names is None else self._names
        if not names:
            raise ValueError("x must have at least one feature, got none")
        return names

    def _point(self, x: Mapping[Any, Any], names: tuple[Hashable, ...], idle: bool = False) -> Floats:
        """Return the object; if nothing is learned yet, so that no answer depends on it, its gaps hold 0."""
        x = renamed(x, names)
        lacking = [name for name in names if name not in x]
        if lacking and self.missing is None:
            raise ValueError(
                f"x must have the features {list(names)!r}, got no {', '.join(map(repr, lacking))}: missing=0.0, say, "
                "fills it in"
            )
        values: list[Any] = [x.get(name) for name in names]
        fill = 0.0 if idle and self.missing is None else self.missing
        if fill is not None:
            values = [fill if is_gap(value) else value for value in values]
        if len(x) > len(names) - len(lacking) and not self.ignore_unknown:
            unknown = next(name for name in x if name not in names)
            raise ValueError(
                f"x must have no features but {list(names)!r}, got {unknown!r}: ignore_unknown=True leaves it out"
            )
        values = [number_in(value) if isinstance(value, str) else value for value in values]
        for name, value in zip(names, values, strict=True):
            if type(value) is not float and not is_number(value):
                advice = (
                    "make it 0 and 1, if that is meant" if isinstance(value, bool | np.bool_) else "encode it first"
                )
                raise TypeError(f"x must hold numbers, got {value!r} for feature {name!r}: {advice}")
        try:
            point = np.array(values, np.float64)
        except OverflowError:
            name = next(name for name, value in zip(names, values, strict=True) if not finite(value))
            raise ValueError(f"x must be finite as float64, got a number too large for feature {name!r}") from None
        if not np.isfinite(point).all():
            j = int(np.flatnonzero(~np.isfinite(point))[0])
            advice = ": missing=0.0, say, fills it in" if np.isnan(point[j]) else ""
            raise ValueError(f"x must be finite, got {values[j]!r} for feature {names[j]!r}{advice}")
        return point

    def _table(self, X: Any) -> list[dict[Any, Any]]:
        """Return the rows of a data frame as dicts."""
        if hasattr(X, "iloc"):  # pandas, whose columns may have names of any type
            return X.to_dict("records")
        try:
            import narwhals

            return list(narwhals.from_native(X, eager_only=True).iter_rows(named=True))
        except (ImportError, TypeError):
            raise TypeError(f"X must be a data frame, one row for each example, got a {type(X).__name__}") from None

    def _examples_of(self, X: Any, y: Any) -> list[tuple[dict[Any, Any], Any]]:
        """Return the rows of a data frame with their labels: a bad one is refused before any is learned."""
        rows, labels = self._table(X), list(y)
        if len(rows) != len(labels):
            raise ValueError(f"y must hold a label for each of the {len(rows)} rows of X, got {len(labels)}")
        names = self._names_for(rows[0]) if rows else ()
        for row in rows:
            self._point(row, names)
        return list(zip(rows, labels, strict=True))


def like(X: Any, columns: Mapping[Any, Sequence[Any]]) -> Any:
    """Return columns as a data frame of the kind of X, with its index."""
    if hasattr(X, "iloc"):
        return type(X)(dict(columns), index=X.index)
    import narwhals

    backend = narwhals.from_native(X, eager_only=True).implementation
    return narwhals.from_dict({str(name): values for name, values in columns.items()}, backend=backend).to_native()


def is_gap(value: Any) -> bool:
    """Whether a value is None or NaN: a number that an example lacks."""
    return value is None or (isinstance(value, float | np.floating) and bool(np.isnan(value)))


def untaught(model: Any) -> bool:
    """Whether a model is known to have learned nothing, so that its answers depend on no object."""
    return model is None or getattr(model, "n", getattr(getattr(model, "machine", None), "n", None)) == 0


class RiverClassifier(Points, base.MiniBatchClassifier):  # type: ignore[misc]
    """One of our predictors, or a `Forecaster`, as a classifier of river.

    It passes river's estimator checks and works in its pipelines and evaluations. Guarantees hold exactly as in
    `replay`. A step before it that learns from the stream, such as river's `StandardScaler`, treats old and new
    examples differently, and *voids them*: give it examples scaled beforehand instead. Choosing which labels are
    revealed by looking at them voids them too.

    Parameters
    ----------
    predictor : Predictor or Forecaster, or function from classes to one
        A predictor's classes are declared, and other labels are refused. It is copied with what it has learned; the
        original is not taught, and a clone starts from it again. A function is called with a tuple of two or more
        classes whenever a new label comes; the predictor that it makes learns all examples again, in order. They are
        kept for this. (It must not be a lambda if it is to be pickled.) With nothing to choose:
        `RiverClassifier(venn.Forecaster)`, where classes come as they will, or
        `RiverClassifier(venn.Forecaster([False, True]))`, where they are declared.
    classes : sequence of labels, optional
        Only with a function: classes known before the first label.
    features : sequence of names, optional
        The features that make the object, in this order. By default those of the table that the predictor's scorer was
        fitted to; without such a scorer those of the first example learned, sorted by name.
    missing : finite number, optional
        Value of features that an example lacks, or has as None or NaN. None: such an example is refused. But before
        the first example is learned no answer depends on the object, and NaN is let pass: some scalers of river give
        it then.
    ignore_unknown : bool, default False
        Whether features that are not among those above are ignored. False: such an example is refused.

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described. When learning or predicting: `x` is not a dict of finite numbers, features are
        missing or unknown, the label is not a declared class. Nothing is learned then.

    Notes
    -----
    *Undeclared classes.* Think of the predictor whose classes are, at each step, the labels of all examples so far and
    of the new one. These do not depend on the order of the examples (classes have an order of their own), so what is
    proved of a predictor that treats all examples alike is proved of this one. Such a predictor would have to know
    whether a new class is coming; but our predictor differs from it only where one comes. There the true label is not
    even considered: it is in no set and has no row. So in a whole stream there is at most one more error for each
    undeclared class, and at single steps the guarantee holds up to the probability that a new class comes. Before two
    classes have come there is no predictor, and the single class has probability 1 with the interval [0, 1], which
    claims nothing. Learning again costs as much as all steps so far, once for each class.

    *Labels.* `predict_one` returns the label that the predictor's rule picks, which need not be the most probable one.
    In a sum of metrics, such as `LogLoss() + Accuracy()`, river takes the most probable one throughout.

    *Missing features.* Filling in a constant treats all examples alike; whether it makes sense is another question.

    Examples
    --------
    >>> import venn
    >>> from river import datasets, evaluate, metrics
    >>> machine = venn.LeastSquaresSVM(venn.RBF(1.0), C=10, classes=[False, True])
    >>> model = RiverClassifier(venn.TransductiveVenn(machine))
    >>> evaluate.progressive_val_score(datasets.Phishing().take(100), model, metrics.Accuracy())
    Accuracy: 80.00%
    >>> x, y = next(iter(datasets.Phishing()))
    >>> lower, upper = model.predict_interval_one(x)[y]
    >>> print(f"{y}: {lower:.3f} to {upper:.3f}")
    True: 0.812 to 0.941
    """

    def __init__(
        self,
        predictor: Model | Make,
        classes: Sequence[Label] | None = None,
        features: Sequence[Hashable] | None = None,
        missing: float | None = None,
        ignore_unknown: bool = False,
    ) -> None:
        made_by = not isinstance(predictor, Model)
        if made_by and not callable(predictor):
            raise TypeError(
                f"predictor must be a predictor or a Forecaster, or a function from classes to one, got {predictor!r}"
            )
        if classes is not None and not made_by:
            raise ValueError(f"classes must be None for a predictor, which has its own, got {classes!r}")
        Points.__init__(self, features, missing, ignore_unknown)
        self.predictor = predictor
        self.classes = classes
        self._declared: tuple[Label, ...] = () if classes is None else checked_labels(classes)
        self._known = self._declared
        self._examples: list[tuple[Floats, Label]] = []
        self._make: Make | None = None
        self._model: Model | None = None
        if not made_by:
            self._model = copy.deepcopy(predictor)  # type: ignore[assignment]
            self._known = tuple(self._model.classes)  # type: ignore[union-attr]
            self._names = self._names_from(self._model, self._names)
        else:
            self._make = predictor  # type: ignore[assignment]
            if len(self._known) > 1:
                self._model = self._made(self._known)
                self._names = self._names_from(self._model, self._names)

    def _made(self, classes: tuple[Label, ...]) -> Model:
        assert self._make is not None
        made = self._make(classes)
        if not isinstance(made, Model) or tuple(made.classes) != classes:
            raise TypeError(f"predictor must be a function that makes a predictor of classes {classes!r}, got {made!r}")
        return made

    # What river needs from a classifier -------------------------------------------------------------------------------

    @property
    def _multiclass(self) -> bool:
        return self._make is not None or set(self._known) != {False, True}

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        from venn.machines.kernels import RBF
        from venn.machines.least_squares import LeastSquaresSVM
        from venn.predictors.transductive import TransductiveVenn

        yield {"predictor": TransductiveVenn(LeastSquaresSVM(RBF(1.0), C=1, classes=[False, True]))}

    @changes
    def learn_one(self, x: Mapping[Any, Any], y: Label) -> None:
        """Learn one example.

        Parameters
        ----------
        x : dict from feature to finite number
        y : label
        """
        names = self._names_for(x)
        point = self._point(x, names)
        label = self._checked(y)
        if self._make is None:
            assert self._model is not None
            self._model.learn_one(point, label)
        else:
            self._learn(point, label, names)
        self._names = names

    def _checked(self, y: Any) -> Label:
        label = _label(y)
        same = next((known for known in self._known if known == label), label)
        if isinstance(same, bool) != isinstance(label, bool):  # equal as keys of a dict
            raise ValueError(f"y must not be equal in Python to the class {same!r}, got {y!r}")
        return label

    def _learn(self, point: Floats, label: Label, names: tuple[Hashable, ...]) -> None:
        if label not in self._known:
            # Undeclared classes are ordered by name: the order must not show which came first.
            known = (*self._declared, *in_order({*self._known, label} - {*self._declared}))
            model = self._made(known) if len(known) > 1 else None
            if model is not None:
                self._names_from(model, names)
                for example in (*self._examples, (point, label)):
                    model.learn_one(*example)
            self._known, self._model = known, model
        elif self._model is not None:
            self._model.learn_one(point, label)
        self._examples.append((point, label))

    @asks
    def predict_one(self, x: Mapping[Any, Any]) -> Label | None:
        """Return the predicted label; None if no class is known.

        Parameters
        ----------
        x : dict from feature to finite number
        """
        prediction = self.prediction_one(x)
        if prediction is not None:
            return prediction.label
        return self._known[0] if self._known else None

    def predict_proba_one(self, x: Mapping[Any, Any]) -> dict[Label, float]:
        """Return the point forecast: a probability for each known class.

        Parameters
        ----------
        x : dict from feature to finite number

        Raises
        ------
        NotImplementedError
            The predictor gives p-values: see `predict_set_one`.
        """
        prediction = self.prediction_one(x)
        if prediction is None:
            return dict.fromkeys(self._known[:1], 1.0)
        prediction = _part(prediction, FORECAST)
        if isinstance(prediction, PredictionSet):
            raise NotImplementedError(f"{type(self._model).__name__} gives p-values, no probabilities: predict_set_one")
        return dict(zip(prediction.classes, prediction.proba.tolist(), strict=True))

    @changes
    def learn_many(self, X: Any, y: Any) -> None:
        """Learn the rows of a data frame, in their order, as `learn_one` does.

        Parameters
        ----------
        X : (b, d) data frame of finite numbers
        y : (b,) labels
        """
        examples = self._examples_of(X, y)
        for _, label in examples:
            self._checked(label)
        for x, label in examples:
            self.learn_one(x, label)

    @asks
    def predict_many(self, X: Any) -> Any:
        """Return the predicted label of each row of a data frame, as `predict_one` does.

        Parameters
        ----------
        X : (b, d) data frame of finite numbers

        Returns
        -------
        (b,) series of the frame's kind
        """
        return like(X, {"label": [self.predict_one(x) for x in self._table(X)]})["label"]

    def predict_proba_many(self, X: Any) -> Any:
        """Return the probability of each known class for each row of a data frame, as `predict_proba_one` does.

        Parameters
        ----------
        X : (b, d) data frame of finite numbers

        Returns
        -------
        (b, classes) data frame of the frame's kind
        """
        said = [self.predict_proba_one(x) for x in self._table(X)]
        return like(X, {label: [one[label] for one in said] for label in (said[0] if said else self._known)})

    # What river does not need ------------------------------------------------------------------------------------

    @asks
    def verdict(self) -> Verdict | None:
        """Return whether the forecaster does what it claims, as its `verdict`; None until two classes are known.

        Raises
        ------
        NotImplementedError
            It is a predictor, which does not watch itself: give its predictions, `prediction_one`, to a `Monitor`.
        """
        if isinstance(self._model, Predictor):
            raise NotImplementedError(f"{type(self._model).__name__} does not watch itself: a Monitor does")
        return None if self._model is None else self._model.verdict()

    @asks
    def prediction_one(self, x: Mapping[Any, Any]) -> Prediction | Outlook | None:
        """Return the prediction, for a `Monitor` or to look at; None until two classes are known.

        That of a forecaster is an `Outlook`.

        Parameters
        ----------
        x : dict from feature to finite number
        """
        point = self._point(x, self._names_for(x), untaught(self._model))
        return None if self._model is None else self._model.predict_one(point)

    def predict_interval_one(self, x: Mapping[Any, Any]) -> dict[Label, tuple[float, float]]:
        """Return the lower and the upper probability of each known class.

        Parameters
        ----------
        x : dict from feature to finite number

        Raises
        ------
        NotImplementedError
            The predictor gives a point forecast or p-values.
        """
        prediction = self.prediction_one(x)
        if prediction is None:
            return dict.fromkeys(self._known[:1], (0.0, 1.0))
        prediction = _part(prediction, INTERVALS)
        if isinstance(prediction, Forecast | PredictionSet):
            raise NotImplementedError(f"{type(self._model).__name__} gives no intervals, but a {prediction!r}")
        return dict(zip(prediction.classes, zip(*prediction.bounds.tolist(), strict=True), strict=True))

    def predict_set_one(self, x: Mapping[Any, Any], epsilon: float) -> tuple[Label, ...]:
        """Return the labels of p-value above `epsilon`; all known labels, if fewer than two are known.

        Parameters
        ----------
        x : dict from feature to finite number
        epsilon : float in [0, 1]
            Significance level: the chance of an error.

        Raises
        ------
        NotImplementedError
            The predictor gives no p-values.
        """
        prediction = self.prediction_one(x)
        if prediction is None:
            return self._known
        prediction = _part(prediction, SETS)
        if not isinstance(prediction, PredictionSet):
            raise NotImplementedError(f"{type(self._model).__name__} gives no p-values, but a {prediction!r}")
        return prediction.set(epsilon)


def _part(prediction: Prediction | Outlook, name: str) -> Prediction:
    """Return a prediction, or the part of this name of what a forecaster says."""
    return prediction[name] if isinstance(prediction, Outlook) else prediction


def in_order(names: Iterable[Hashable]) -> tuple[Hashable, ...]:
    """Return names or labels of any types in an order that depends only on them."""
    return tuple(sorted(names, key=lambda name: (str(name), type(name).__name__)))


def checked_names(names: Any) -> tuple[Hashable, ...]:
    """Return names of features, or say what is wrong with them."""
    if isinstance(names, str | bytes | Mapping) or not isinstance(names, Iterable):
        raise TypeError(f"features must be a sequence of names, got {names!r}")
    known = tuple(names)
    if not known or len(set(known)) < len(known):
        raise ValueError(f"features must be distinct and at least one, got {known!r}")
    return known


def checked_labels(classes: Any) -> tuple[Label, ...]:
    """Return the labels known beforehand, one or more, or say what is wrong with them."""
    if isinstance(classes, str | bytes | Mapping | set | frozenset) or not isinstance(classes, Iterable):
        raise TypeError(f"classes must be a sequence of labels, in class order, got {classes!r}")
    labels = tuple(_label(label) for label in classes)
    if not labels or len(set(labels)) < len(labels):
        raise ValueError(f"classes must be distinct and at least one, got {labels!r}")
    return labels


def _label(y: Any) -> Label:
    """Return a label as a Python object, or say what is wrong with it."""
    label: Label = python_value(y)
    if not isinstance(label, Hashable):
        raise TypeError(f"y must be a hashable label, got {y!r}")
    try:
        missing = label is None or bool(label != label)
    except TypeError:  # pandas.NA has no truth value
        missing = True
    if missing:
        raise ValueError(f"y must be a label, got {y!r}")
    return label


def number_in(text: str) -> Any:
    """Return the number that a text is, as CSV readers give them, or the text.

    Examples
    --------
    >>> number_in(" 1.5 "), number_in("1,5")
    (1.5, '1,5')
    """
    try:
        return float(text) if text.isascii() and "_" not in text else text
    except ValueError:
        return text


def finite(number: Any) -> bool:
    """Whether a number is finite as float64."""
    try:
        return isfinite(number)
    except OverflowError:  # an integer
        return False
