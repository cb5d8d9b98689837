"""For scikit-learn: the forecaster, with nothing to choose."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

from sklearn.utils.validation import check_is_fitted

from venn.adapters.checks import FromOdds, FromPValues, declared_classes, settled, takes
from venn.adapters.classifiers import LearnsInTurn
from venn.machines.tables import columns_of
from venn.monitors.verdict import Verdict
from venn.online.forecaster import Forecaster
from venn.online.outlook import Outlooks
from venn.parameters import share
from venn.prediction import Floats, Label
from venn.turns import turn_of


@dataclass(eq=False, repr=False)
class ForecasterClassifier(FromOdds, FromPValues, LearnsInTurn):
    """The `Forecaster` for scikit-learn: probabilities, intervals, sets and a verdict, with nothing to choose.

    The examples are learned one after the other, in the order of the rows, by `fit` or by `partial_fit` in as many
    parts as one likes. All of them count in every answer until there are `transductive`; then seven tenths train a
    scorer, the others and all later ones calibrate it, and so again at twice, four times, ... as many. Given a fitted
    `scorer`, all of them calibrate that one.

    What is proved, for exchangeable examples and objects: the interval of each class holds a calibrated probability of
    it, and the set of an object misses its label with probability `alpha`. The total log loss of `predict_proba` is
    bounded. See `Forecaster` and `predict_interval`.

    Parameters
    ----------
    scorer : fitted classifier, optional
        Its scores are calibrated; it must not have been fitted to these examples. Where scikit-learn makes clones, as
        in `cross_val_score`, put it into a `sklearn.frozen.FrozenEstimator`, for clones are not fitted. If it was
        fitted to a table, tables must have the same columns in the same order, and text in them is the scorer's to take
        or to refuse. So is NaN, a missing number: boosted trees take it, and pipelines with an imputer.
    transductive : int >= 2, default 2000
        Number of examples up to which every answer uses all of them. Of no effect with a scorer.
    last : int >= transductive, optional
        Number of examples up to which it trains, 100000 by default. Of no effect with a scorer.
    first : int >= 2, or 0, optional
        Number of examples that fix the scale of the columns, 30 by default; 0 takes objects as they are, as behind a
        `StandardScaler`. Not with a scorer.
    alpha : float in [0, 1], default 0.1
        Significance level of `predict_set`: the chance of an error.
    level : float in (0, 1), default 0.01
        Probability that the verdict is ever "changed" although nothing has changed.
    on_change : "keep" or "restart", default "keep"
        "restart" forgets all examples when an alarm says that the stream has changed: for `partial_fit` on a stream.

    Attributes
    ----------
    classes_ : (c,) array
        Labels in sorted order: the order of columns.
    predictor_ : Forecaster
        May be taken from here into an `Online` loop.
    n_features_in_ : int
    feature_names_in_ : (d,) array of str
        If X had names.

    Raises
    ------
    ValueError
        By `fit`: a parameter outside its range, or one class only.
    NotFittedError
        By `predict_proba` and the like, before `fit`.

    Notes
    -----
    Three things void the guarantees. An example learned w times is not exchangeable with the new one, so weights must
    be 1, or 0 if that was decided without looking at the examples. A scaler that was fitted to the training examples,
    as in a pipeline, treats them and the new one differently. And if `fit` takes the classes from y, a new class may
    come, which is in no set and has no interval; `partial_fit` can declare all labels beforehand.

    The order of the rows matters a little: the first of them fix the scale, and the forecast is weighed by its past.
    So scikit-learn's check that a weight is as good as so many rows (`check_sample_weight_equivalence`), which compares
    two orders, does not hold.

    Rows in an order that has to do with their labels, such as all of one class first, are no exchangeable stream: the
    verdict will say "changed", and rightly so. Shuffle such rows.

    Only `fit` and `partial_fit` learn.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.utils import shuffle
    >>> X, y = shuffle(*load_iris(return_X_y=True), random_state=0)
    >>> model = ForecasterClassifier().fit(X[:100], y[:100])
    >>> model.score(X[100:], y[100:]) > 0.9
    True
    >>> model.predict_interval(X[100:]).shape, model.predict_set(X[100:]).shape
    ((50, 3, 2), (50, 3))
    >>> model.verdict().state
    'too early to say'
    """

    scorer: Any = None
    _: KW_ONLY
    transductive: int = 2000
    last: int | None = None
    first: int | None = None
    alpha: float = 0.1
    level: float = 0.01
    on_change: str = "keep"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = takes(self.scorer, "allow_nan")
        return tags

    def _validated(self, X: Any, y: Any = "no_validation", *, reset: bool, **checks: Any) -> Any:
        if reset:  # a scorer that is set later has no effect until then
            # The scorer itself takes or refuses missing numbers: a pipeline has no tag for that.
            self._columns, self._missing = columns_of(self.scorer)[1], self.scorer is not None
        # A scorer that was fitted to a table may read text; it refuses what it does not read.
        return super()._validated(X, y, reset=reset, **checks)

    def _labels(self, y: Any, classes: Any) -> Any:
        own = getattr(self.scorer, "classes_", None)
        return declared_classes(y if classes is None else classes, *([] if own is None else [own]))

    def _made(self, X: Any, labels: list[Label]) -> Forecaster:
        share("alpha", self.alpha)
        return Forecaster(
            labels, scorer=self.scorer, transductive=self.transductive, last=self.last, first=self.first,
            level=self.level, on_change=self.on_change,
        )  # fmt: skip

    def _outlooks(self, X: Any) -> Outlooks:
        X = self._checked(X)
        with turn_of(self):
            return self.predictor_.predict_many(X)

    def predict_proba(self, X: Any) -> Floats:
        """Return (n, c) probabilities of the classes, to decide by.

        Parameters
        ----------
        X : (n, d) array, data frame or sparse matrix of finite numbers
        """
        return settled(self._outlooks(X).proba)

    def predict_interval(self, X: Any) -> Floats:
        """Return (n, c, 2): lower and upper probability of each class.

        Parameters
        ----------
        X : (n, d) array, data frame or sparse matrix of finite numbers
        """
        return self._outlooks(X).intervals

    def predict_p(self, X: Any) -> Floats:
        """Return (n, c) p-values of the classes.

        Parameters
        ----------
        X : (n, d) array, data frame or sparse matrix of finite numbers
        """
        return self._outlooks(X).p_values

    def verdict(self) -> Verdict:
        """Return whether the model does what it claims, as seen while it learned: see `Forecaster.verdict`."""
        check_is_fitted(self, "classes_")
        return self.predictor_.verdict()
