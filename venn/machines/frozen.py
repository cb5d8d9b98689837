"""Any fitted scikit-learn classifier as a scorer that no longer learns."""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property, partial
from operator import attrgetter
from typing import Any, ClassVar, Self

import numpy as np

from venn._compiled.ranks import all_finite
from venn._compiled.rows import sparse_linear_scores
from venn._compiled.scorecard import linear_scores, softmax
from venn.machines.estimators import (
    METHODS,
    KeptEstimator,
    by_softmax,
    copied,
    has_method,
    labels_of,
    method_of,
    of_log_odds,
    read_alone,
    scikit_learns,
    scores_row_by_row,
    stages,
)
from venn.machines.objects import ObjectRows, clean_row, clean_rows
from venn.machines.reference_answers import MUST, AnotherModel, ReferenceAnswers
from venn.machines.sparse import SparseRows
from venn.machines.tables import TableRows, alike_cells, categories_of, codes_of, columns_of, innermost, unwrapped
from venn.machines.threads import asked, one_thread
from venn.machines.trees import FlatTrees
from venn.parameters import class_codes, flag, has_methods, optional
from venn.prediction import Floats, Integers, Label
from venn.saved import Saved, component, own, param

ROUNDED = 1e-3  # how far from 1 the sum of probabilities may be that were computed in single precision, or rounded
FEW = 1024  # rows that are scored by one thread


def _fitted(name: str, given: Any, beside: tuple[Any, Any]) -> Any:
    """Return a copy of a fitted classifier, or say what it must be, beside classes and a method."""
    classes, wanted = beside
    estimator = unwrapped(given.estimator if isinstance(given, KeptEstimator) else given)
    if wanted is not None and (
        not isinstance(wanted, str) or wanted not in METHODS or not has_method(estimator, wanted)
    ):
        raise ValueError(f"method must be one of {METHODS} that the estimator has, or None, got {wanted!r}")
    method = "" if isinstance(estimator, type) else method_of(estimator, wanted)
    own_classes, found = labels_of(estimator, classes), getattr(estimator, "classes_", None)
    if isinstance(estimator, type) or (
        not method and (found is not None or own_classes or not has_method(estimator, "fit"))
    ):
        raise TypeError(f"{name} must have decision_function or predict_proba, got {estimator!r}")
    if found is None and not own_classes:
        number = not method and has_methods(estimator, "predict")
        advice = ": a regressor stands in InductiveDistribution(FrozenRegressor(fitted))" if number else ""
        raise ValueError(f"{name} must be a fitted classifier, with classes_, got {estimator!r}{advice}")
    if not own_classes or any(isinstance(label, np.ndarray | list) for label in own_classes):
        raise ValueError(f"{name} must predict one label, got classes_ = {found!r}")
    shape = getattr(innermost(estimator), "decision_function_shape", None)
    if method == "decision_function" and len(own_classes) > 2 and shape == "ovo":
        raise ValueError(f"{name} must have one decision value for each class, got one-against-one {estimator!r}")
    return estimator if isinstance(given, KeptEstimator) else copied(estimator)


def _restored_classes(name: str, classes: Any, estimator: Any) -> tuple[Label, ...]:
    """Return the classes, by default those of the estimator, all of which must be among them."""
    found = labels_of(estimator, classes)
    codes = class_codes(found if classes is None else classes)
    for label in found:
        if label not in codes:
            raise ValueError(f"{name} must hold all classes of the estimator, {found!r}, got {list(codes)!r}")
    return tuple(codes)


class GivenScorer(Saved):
    """Base of scorers that are given, which keep what they said of a few objects: another one is found out by that."""

    features: int | None
    feature_names: tuple[str, ...] | None
    missing: bool

    def derive(self) -> None:
        """Keep nothing yet."""
        self._reference = ReferenceAnswers()

    def scores(self, x: Any) -> Floats:
        """Return the scores of an object: (c,) of classes, (m,) numbers.

        Parameters
        ----------
        x : (d,) finite numbers, or a sparse row, or a row with the names of the estimator's columns
            NaN stands for a missing number, if the estimator takes it. Of an estimator fitted to a table, text as well.

        Raises
        ------
        ValueError, TypeError
            x is not as described, or the estimator refuses it, x has other names than the estimator's, a score is not
            finite, or probabilities do not sum to 1.
        """
        return self.score_rows(clean_row(x, self.features, self.feature_names, self.missing))[0]

    def score_many(self, X: Any) -> Floats:
        """Return the scores of n objects, in rows.

        Parameters
        ----------
        X : (n, d) finite numbers
            An array, sparse or not, or a table with the columns of the one that the estimator was fitted to, text
            among them; or a sequence of rows with its names, such as dicts.

        Raises
        ------
        ValueError, TypeError
            X is not as described, or a score is not finite.
        """
        return self.score_rows(self._clean_rows(X))

    def _clean_rows(self, X: Any) -> ObjectRows:
        return clean_rows(X, self.features, self.feature_names, self.missing)

    def score_rows(self, rows: ObjectRows) -> Floats:
        """Return the scores of rows that `clean_rows` has checked."""
        scores = self._score(rows)
        if not self._reference.full:
            self._reference.note(rows, scores)
        return scores

    def _score(self, rows: ObjectRows) -> Floats:
        raise NotImplementedError

    @property
    def told(self) -> Any:
        """What it said of some objects."""
        return self._reference.told

    def recall(self, told: Any) -> None:
        """Compare what it says with what was `told`; raise AnotherModel where it says something else."""
        self._reference.recall(told, self._clean_rows, self._score)


@component
class FrozenScorer(GivenScorer):
    """A fitted scikit-learn classifier whose scores a predictor calibrates.

    The estimator is copied and never changes: fitting the original again has no effect here. Scores are those of
    `decision_function` where there is one, otherwise of `predict_proba`, unchanged; with two classes a single decision
    value f becomes the two scores -f and f.

    The examples it was fitted to must be disjoint from those that will calibrate it. That is the only
    assumption about it: any estimator gives valid predictions, and a better one gives sharper ones.

    Columns of arrays go by position. Sparse ones are handed on as a `scipy.sparse.csr_array`, if the estimator takes
    that. Tables are taken where the estimator was fitted to one, with the same columns in the same order, and refused
    elsewhere; an object with names must have these names, too: a row of a table, a table of one row, a named tuple of
    `itertuples`, or a dict, whose order does not matter. Where the estimator was fitted to a table, cells may also be
    text or None. An estimator that selects columns by name, as a `ColumnTransformer` does, or objects with text, are
    handed on as data frames, which needs pandas; so are those of boosted trees whose columns were categories.

    NaN, a missing number, is the estimator's to take or to refuse: boosted trees take it, and pipelines with an
    imputer.

    Parameters
    ----------
    estimator : fitted classifier
        With `classes_`, an array or a list, and `decision_function` or `predict_proba`; pipelines and searches too. Of
        a `sklearn.frozen.FrozenEstimator`, what is inside. A class of your own may be without `classes_`: then
        `classes` are those of its columns.
    classes : sequence of distinct labels, optional
        Class order, by default that of the estimator. Classes that the estimator has not seen may be
        among them: they get the smallest score of each row by `decision_function`, 0 by `predict_proba`.
    row_by_row : bool, optional
        Whether a row has the same scores in a block as alone, to the last bit: then a block is scored in one call.
        By default where that is known: trees and forests of trees (`ROW_BY_ROW`), alone or in a pipeline after scalers,
        imputers and encoders of columns. Rows with text or gaps go in one call for all whose cells are of the same
        kinds.
    method : "decision_function" or "predict_proba", optional
        Where the scores come from; by default the first of these that the estimator has. Venn-Abers and sets of more
        than two classes read probabilities where there are any, if no method is given: see `by_probabilities`.

    Attributes
    ----------
    classes : tuple of labels
    features : int or None
        Number of features; None where the estimator does not say.
    feature_names : tuple of str or None
        Columns of the table that the estimator was fitted to; None where it was an array.
    missing : bool
        Whether objects with NaN are shown to the estimator, which takes or refuses them; False where scores are
        computed from its coefficients.

    Raises
    ------
    TypeError
        The estimator is a class, or has neither method.
    ValueError
        It is not fitted, gives one-against-one decisions, or `classes` lacks one of its classes.

    Notes
    -----
    What the estimator said of the last object is kept: to learn it after its prediction costs no second call.

    The scores of scikit-learn's own linear classifiers are computed from their coefficients by compiled code, and so
    are the probabilities of logistic regression for more than two classes (last bits may differ from `predict_proba`):
    one example costs microseconds, and a row has exactly the same score in a block as alone. So it is with
    scikit-learn's trees, forests and boosted trees, whose scores are theirs to the last bit (`venn.machines.trees`).
    Other estimators compute their scores themselves. Those made of trees treat each row by itself, too. Those with
    products of matrices (networks, linear classifiers in a pipeline, logistic regression of two classes by
    `predict_proba`) may give a row other last bits in a block than alone: then `predict_many` and `predict_one` may
    differ.

    Examples
    --------
    >>> from sklearn.svm import LinearSVC
    >>> X, y = [[0.0], [0.1], [1.0], [1.2]], ["no", "no", "yes", "yes"]
    >>> scorer = FrozenScorer(LinearSVC().fit(X, y))
    >>> scorer.classes
    ('no', 'yes')
    >>> bool(scorer.scores([1.1])[1] > 0)
    True
    """

    _told: ClassVar[Any]  # what was said of it
    __eq__, __hash__ = object.__eq__, object.__hash__  # estimators may define equality in their own way

    estimator: Any = param(_fitted, own(lambda s: (s.classes, s.method)), foreign=True)
    classes: Any = param(_restored_classes, own(attrgetter("estimator")), default=None)
    row_by_row: bool | None = param(optional, flag, default=None, kw_only=True, kept_as="_told")
    method: str | None = param(default=None, kw_only=True)

    @classmethod
    def made_of(cls, parameters: dict[str, Any]) -> Self:
        """Return a scorer by this estimator, which is not copied."""
        return super().made_of(parameters | {"estimator": KeptEstimator(parameters.get("estimator"))})

    def derive(self) -> None:
        """Find out what the estimator answers, and how."""
        super().derive()
        estimator = self.estimator
        codes = {label: code for code, label in enumerate(self.classes)}
        self._columns: Integers = np.array([codes[label] for label in labels_of(estimator, self.classes)])
        self._method = method_of(estimator, self.method)
        self._answers = Answers(estimator)
        self.features, self.feature_names = columns_of(estimator)
        self._linear = self._linear_map()
        self.missing = self._linear is None
        self.row_by_row = scores_row_by_row(estimator) if self._told is None else self._told
        folds = getattr(estimator, "calibrated_classifiers_", None)  # of scikit-learn's own calibration
        self._alone = self.row_by_row or bool(folds and scores_row_by_row(folds[0].estimator))
        self._reference.full = self._linear is not None  # by its coefficients another one is found out

    @property
    def state(self) -> dict[str, Any]:
        """A checksum of the coefficients, where scores are computed from these."""
        return {"checksum": None if self._linear is None else zlib.crc32(b"".join(a.tobytes() for a in self._linear))}

    def restore(self, state: dict[str, Any]) -> None:
        """Compare the checksum of a `state`; raise ValueError where this is another estimator."""
        super().restore(state)
        if state != self.state:
            raise AnotherModel(f"{MUST}, got one with other coefficients")

    @property
    def told(self) -> Any:
        """What it said of some objects; None where the state says which estimator it is."""
        return None if self._linear is not None else super().told

    def by_probabilities(self) -> FrozenScorer:
        """Return the scorer that gives what `read_alone` says, for predictors that read each class by itself.

        It is this one where `method` was given, or where it is so already, and where the class is your own.
        """
        method = read_alone(self.estimator, len(self.classes))
        if type(self) is not FrozenScorer or self.method or method is None or self.probabilities:
            return self
        return FrozenScorer.made_of(self.parameters | {"method": method})

    @cached_property
    def probabilities(self) -> bool:
        """Whether scores are probabilities, by `predict_proba`."""
        return self._method == "predict_proba"

    @cached_property
    def log_odds(self) -> bool:
        """Whether scores are, of two classes, the logarithms of the odds of the estimator's own probabilities."""
        return len(self.classes) == 2 and not self.probabilities and of_log_odds(self.estimator)

    def _linear_map(self) -> tuple[Floats, Floats] | None:
        """Return weights (c, d) and bias (c,) where these give the scores exactly."""
        estimator, c = self.estimator, len(self.classes)
        weights = getattr(estimator, "coef_", None)
        if not isinstance(weights, np.ndarray) or len(self._columns) < c:
            return None
        # Having coefficients is not enough: the decision function must be scikit-learn's own linear one.
        if not scikit_learns(estimator, "decision_function", "LinearClassifierMixin"):
            return None
        if self.probabilities and not (len(self._columns) > 2 and by_softmax(estimator)):
            return None
        weights = np.atleast_2d(weights)
        bias = np.broadcast_to(estimator.intercept_, len(weights))
        if len(weights) == 1:
            weights, bias = np.vstack([-weights, weights]), np.append(-bias, bias)
        order = np.argsort(self._columns)
        return np.ascontiguousarray(weights[order], np.float64), np.ascontiguousarray(bias[order], np.float64)

    def score_alone(self, rows: ObjectRows) -> Floats:
        """Return the (n, c) scores that rows have one by one, to the last bit: in one call where that is the same."""
        if self._linear is not None:
            return self.score_rows(rows)
        scores = np.empty((len(rows), len(self.classes)))
        for group in self._answers.groups(rows, bool(self.row_by_row), self._told is None):
            scores[group] = self.score_rows(rows[group])
        return scores

    def _score(self, rows: ObjectRows) -> Floats:
        scores = np.empty((len(rows), len(self.classes)))
        if self._linear is not None:
            if isinstance(rows, SparseRows):
                sparse_linear_scores(rows.arrays, len(rows), *self._linear, scores)
            else:
                linear_scores(rows, *self._linear, scores)
            if self.probabilities:
                softmax(scores)
        elif len(rows):
            values = self._asked(rows)
            if values.ndim == 1:
                values = np.column_stack([-values, values])
            if values.shape != (len(rows), len(self._columns)):
                raise ValueError(
                    f"scores must be ({len(rows)}, {len(self._columns)}), one for each class of the estimator, "
                    f"got shape {values.shape} from {self._method}"
                )
            if self.probabilities:
                check_proba(values)
            if len(self._columns) < scores.shape[1]:
                proba = self._method == "predict_proba"
                scores[:] = 0.0 if proba else values.min(axis=1, keepdims=True)
            scores[:, self._columns] = values
        if not all_finite(scores.ravel()):
            i, k = np.argwhere(~np.isfinite(scores))[0].tolist()
            raise ValueError(f"scores must be finite, got {scores[i, k]} for class {self.classes[k]!r} at row {i}")
        return scores

    def _asked(self, block: ObjectRows) -> Floats:
        """Return what the estimator answers."""
        if self._answers.trees is not None or not self._alone or len(block) > FEW:
            return self._answers.of(self._method, block)
        # Several threads wait for each other longer than a few rows take, milliseconds where the cores are busy.
        with one_thread(blas=False):
            return self._answers.of(self._method, block)


def check_proba(values: Floats) -> None:
    """Raise where rows of `predict_proba` are negative or do not sum to 1: these are no probabilities."""
    if len(values) == 1:  # for speed; half the allowance, for this sum may be rounded in another order
        row = values[0].tolist()
        if abs(sum(row) - 1) < ROUNDED / 2 and min(row) >= 0:
            return
    off = np.abs(values.sum(axis=1) - 1) > ROUNDED
    off |= (values < -ROUNDED).any(axis=1)
    if off.any():
        i = int(off.argmax())
        raise ValueError(
            f"predict_proba must give probabilities, which sum to 1, got {values[i].tolist()} at row {i}: other scores "
            "are those of a method decision_function"
        )


class Answers:
    """What a fitted estimator answers about clean rows, which it gets as it can take them; the last answer is kept.

    That is an array. One fitted to a table may select columns by name: it refuses an array, and gets a table of its own
    columns from then on. Where there is text, and where columns were categories, it gets a table at once. Trees of
    scikit-learn's, at the end of a pipeline as well, are walked by compiled code, and asked themselves about what that
    refuses: they say what is wrong.
    """

    def __init__(self, estimator: Any) -> None:
        self._estimator = estimator
        self._steps, self._last_step = stages(estimator)
        self._names = columns_of(estimator)[1]
        self._categories = {} if self._names is None else categories_of(estimator, self._names)
        self._codes = codes_of(estimator)
        self._by_name = bool(self._categories or self._codes)
        self._last: tuple[str, bytes, Floats] | None = None

    @cached_property
    def trees(self) -> FlatTrees | None:
        """Its trees, where it is trees of scikit-learn's and nothing else."""
        return None if self._steps else self._last_trees

    @cached_property
    def _last_trees(self) -> FlatTrees | None:
        return FlatTrees.of(self._last_step)

    def groups(self, rows: ObjectRows, row_by_row: bool, trees: bool = True) -> list[Any]:
        """Return parts of the rows, each to be asked about in one call, so that answers are those of each row alone.

        Parameters
        ----------
        rows : rows
        row_by_row : bool
            Whether the estimator treats each row by itself.
        trees : bool
            Whether it is enough that its trees are walked.
        """
        if isinstance(rows, np.ndarray) and trees and self.trees is not None:
            return [slice(None)]
        if not row_by_row or isinstance(rows, SparseRows):
            return [slice(i, i + 1) for i in range(len(rows))]
        if isinstance(rows, np.ndarray) and not any(hasattr(step, "transformers_") for step in self._steps):
            return [slice(None)]
        return alike_cells(rows)  # types of a table's columns depend on its cells

    def of(self, method: str, rows: ObjectRows) -> Floats:
        """Return what one of its methods answers; only read it.

        Raises
        ------
        ValueError
            It refuses a row; also where its own code then raises KeyError or the like: what asks it must not end.
        """
        try:
            if len(rows) != 1:
                return self._asked(method, rows)
            # An object is asked about when it is predicted and again when it is learned, and by every predictor.
            key, last = rows.tobytes(), self._last
            if last is None or last[:2] != (method, key):
                last = self._last = method, key, self._asked(method, rows)
            return last[2]
        except (LookupError, AttributeError, AssertionError) as error:
            what = "x" if len(rows) == 1 else "X"
            said = f"{type(error).__name__}: {error}"
            raise ValueError(f"{what} must be what the estimator takes, which says: {said}") from error

    def _asked(self, method: str, rows: ObjectRows) -> Floats:
        if isinstance(rows, np.ndarray) and self.trees is not None:
            try:
                return self.trees.answer(method, rows)
            except ValueError:
                pass  # the estimator says what is wrong
        walked = self._steps and self._last_trees is not None
        ask = partial(asked, partial(self._through, method) if walked else getattr(self._estimator, method))
        if isinstance(rows, TableRows):
            return np.asarray(self._of_text(ask, rows), np.float64)
        given = rows.tocsr() if isinstance(rows, SparseRows) else rows
        try:
            return np.asarray(ask(given) if self._names is None else self._named(ask, given), np.float64)
        except ValueError as error:
            if isinstance(rows, SparseRows) or not np.isnan(rows).any():
                raise
            i, f = np.argwhere(np.isnan(rows))[0].tolist()
            which, place = ("x", "") if len(rows) == 1 else ("X", f"row {i}, ")
            said = str(error).partition("\n")[0]
            raise ValueError(
                f"{which} must be finite, got nan at {place}feature {f}; the estimator says: {said}"
            ) from error

    def _through(self, method: str, given: Any) -> Any:
        """Return what a pipeline answers that ends with trees, as it does itself."""
        for step in self._steps:
            given = step.transform(given)
        if type(given) is np.ndarray and self._last_trees is not None:
            with suppress(ValueError):
                return self._last_trees.answer(method, given)
        return getattr(self._last_step, method)(given)

    def _named(self, ask: Callable[[Any], Any], given: Any) -> Any:
        """Return what an estimator that was fitted to a table answers: names have been compared."""
        if self._by_name and isinstance(given, np.ndarray):
            return ask(self._table(given))
        try:
            with warnings.catch_warnings():
                # Rows are in the order of the table that it was fitted to.
                warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)
                return ask(given)
        except Exception as error:
            if not isinstance(given, np.ndarray):
                raise
            try:
                table = self._table(given)
            except ImportError:
                error.add_note("If the estimator selects columns by name, it needs a table here: pip install pandas")
                raise error from None
            answer = ask(table)  # it knows better what is wrong with the numbers
            self._by_name = True
            return answer

    def _table(self, rows: Floats) -> Any:
        return self._frame(TableRows(rows, self._names or ()))

    def _frame(self, rows: TableRows) -> Any:
        """Return the data frame that the estimator gets: codes of categories are whole numbers in it."""
        frame = rows.frame(self._categories)
        for name in self._codes:
            frame[name] = [int(one) if isinstance(one, float) and one.is_integer() else one for one in frame[name]]
        return frame

    def _of_text(self, ask: Callable[[Any], Any], rows: TableRows) -> Any:
        """Return what an estimator answers about rows with text; a table is what it was fitted to."""
        try:
            return ask(self._frame(rows))
        except ImportError as error:
            error.add_note("An object with text is handed on in a table: pip install pandas")
            raise
        except Exception as error:
            which = "x" if len(rows) == 1 else "X"
            said = str(error).partition("\n")[0]
            raise ValueError(f"{which} must be what the estimator takes, which says: {said}") from error
