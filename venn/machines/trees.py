"""Fitted trees as plain arrays: one row through all of them in microseconds, as scikit-learn answers.

Much of what scikit-learn's fitted trees hold is private, so it may stand elsewhere in another version: what is not
found as expected is not read, and `FlatTrees.of` compares the answers.

The library treelite (4.8) does it, too: through a forest of 100 in 49 microseconds, of 300 in 195, where the walk here
takes 10 and 40, and boosted trees' probabilities have other last bits there.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from venn._compiled.rows import NODE, tree_sums
from venn.machines.threads import one_thread
from venn.parameters import flag, one_of
from venn.prediction import Floats, Integers
from venn.saved import Saved, array, component, own, param, restored_codes, restored_finite

Parts: TypeAlias = dict[str, Any]  #: arguments of `FlatTrees`


class _Tree(NamedTuple):
    """A tree as scikit-learn numbers its nodes."""

    leaf: NDArray[np.bool_]
    left: Any
    right: Any
    columns: Any
    thresholds: Any
    how: Any
    values: Any
    "(nodes, w): what is added up."


def parts(estimator: Any) -> Parts | None:
    """Return the arguments of a `FlatTrees`; None where it is of another class, or holds something unexpected."""
    name = type(estimator).__name__
    for module, names, read in READERS:
        # Exactly these classes: one derived from them may answer otherwise.
        if name in names and getattr(sys.modules.get(module), name, None) is type(estimator):
            try:
                return read(estimator, name.endswith("Classifier"))
            except (AttributeError, IndexError, KeyError, TypeError, ValueError):
                return None
    return None


def _one_tree(estimator: Any, classifies: bool) -> Parts | None:
    return _averaged(estimator, [estimator], classifies)


def _forest(estimator: Any, classifies: bool) -> Parts | None:
    return _averaged(estimator, estimator.estimators_, classifies)


def _averaged(estimator: Any, members: Sequence[Any], classifies: bool) -> Parts | None:
    """Return the parts of what answers with the mean of its trees' answers."""
    if estimator.n_outputs_ != 1 or (classifies and len(estimator.classes_) != estimator.n_classes_):
        return None
    c = estimator.n_classes_ if classifies else 1
    trees = [_plain(member.tree_, member.tree_.value[:, 0, :c]) for member in members]
    return _joined(trees, estimator.n_features_in_, single=True, link="shares" if classifies else "mean",
                   start=np.zeros(c))  # fmt: skip


def _gradient(estimator: Any, classifies: bool) -> Parts | None:
    """Return the parts of gradient boosting on exact thresholds."""
    start = estimator.init_
    # Scikit-learn's own start says the same for every row.
    if start != "zero" and type(start).__module__ != "sklearn.dummy":
        return None
    link = "identity"
    if classifies:
        of_two = {"log_loss": "logistic", "exponential": "half logistic"}
        link = of_two[estimator.loss] if estimator.n_classes_ == 2 else "softmax"
    rate = float(estimator.learning_rate)
    members = [member.tree_ for member in estimator.estimators_.ravel()]
    trees = [_plain(tree, rate * tree.value[:, 0, :1]) for tree in members]
    first = estimator._raw_predict_init(np.zeros((1, estimator.n_features_in_), np.float32))[0]
    return _joined(trees, estimator.n_features_in_, single=True, link=link, start=first)


def _histogram(estimator: Any, classifies: bool) -> Parts | None:
    """Return the parts of gradient boosting on histograms."""
    if classifies:
        c = len(estimator.classes_)
        link = "softmax" if c > 2 else "logistic"
        if c < 2 or estimator.loss != "log_loss":
            return None
    else:
        link = "exponential" if estimator.loss in ("poisson", "gamma") else "identity"
        if not isinstance(estimator.loss, str):
            return None
    d = estimator.n_features_in_
    categories: list[Floats] = [np.zeros(0)] * d
    column: Integers = np.arange(d)
    if estimator._preprocessor is not None:
        # It encodes categories by their places, and puts these columns first.
        chosen = estimator.is_categorical_
        column = np.concatenate([np.flatnonzero(chosen), np.flatnonzero(~chosen)])
        known, place = estimator._bin_mapper.make_known_categories_bitsets()
        for f, found in enumerate(estimator._preprocessor.named_transformers_["encoder"].categories_):
            if found.dtype.kind not in "fiub":
                return None  # words
            numbers = found.astype(np.float64)
            numbers = numbers[~np.isnan(numbers)]
            bits = np.unpackbits(known[place[f]].astype("<u4").view(np.uint8), bitorder="little")
            if not (np.diff(numbers) > 0).all() or not bits[: len(numbers)].all():
                return None
            categories[column[f]] = numbers
    trees, sets, s = [], [np.zeros((0, 8), np.uint32)], 0
    for one in (one for several in estimator._predictors for one in several):
        nodes = one.nodes
        of_set = np.where(nodes["is_categorical"] != 0, 2 * (1 + s + nodes["bitset_idx"].astype(np.int64)), 0)
        trees.append(
            _Tree(
                nodes["is_leaf"] != 0, nodes["left"], nodes["right"], column[nodes["feature_idx"]],
                nodes["num_threshold"], of_set + (nodes["missing_go_to_left"] != 0), nodes["value"][:, None],
            )
        )  # fmt: skip
        sets.append(one.raw_left_cat_bitsets)
        s += len(sets[-1])
    first = np.asarray(estimator._baseline_prediction, np.float64).reshape(-1)
    return _joined(
        trees, d, single=False, link=link, start=first, sets=np.concatenate(sets), categories=categories
    )  # fmt: skip


#: Where the classes are, their names, and who reads them.
READERS: tuple[tuple[str, tuple[str, ...], Callable[[Any, bool], Parts | None]], ...] = (
    (
        "sklearn.tree",
        ("DecisionTreeClassifier", "DecisionTreeRegressor", "ExtraTreeClassifier", "ExtraTreeRegressor"),
        _one_tree,
    ),
    (
        "sklearn.ensemble",
        ("RandomForestClassifier", "RandomForestRegressor", "ExtraTreesClassifier", "ExtraTreesRegressor"),
        _forest,
    ),
    ("sklearn.ensemble", ("GradientBoostingClassifier", "GradientBoostingRegressor"), _gradient),
    ("sklearn.ensemble", ("HistGradientBoostingClassifier", "HistGradientBoostingRegressor"), _histogram),
)


def _plain(tree: Any, values: Floats) -> _Tree:
    """Return one of scikit-learn's exact trees."""
    left = tree.children_left
    return _Tree(
        left < 0, left, tree.children_right, tree.feature, tree.threshold, tree.missing_go_to_left != 0, values
    )  # fmt: skip


def _joined(
    trees: Sequence[_Tree],
    d: int,
    *,
    sets: NDArray[np.uint32] | None = None,
    categories: Sequence[Floats] | None = None,
    **more: Any,
) -> Parts:
    """Return the parts of all trees one after the other: nodes without leaves, and leaves, equal ones once."""
    n = m = 0
    roots, each = [], []
    for tree in trees:
        leaf, asks = tree.leaf, ~tree.leaf
        number = np.where(leaf, -m - np.cumsum(leaf), n - 1 + np.cumsum(asks))
        roots.append(number[0])
        each.append(
            (
                number[tree.left[asks]], number[tree.right[asks]], tree.columns[asks], tree.thresholds[asks],
                tree.how[asks], tree.values[leaf],
            )
        )  # fmt: skip
        n, m = n + int(asks.sum()), m + int(leaf.sum())
    left, right, columns, thresholds, how, values = (np.concatenate(arrays) for arrays in zip(*each, strict=True))
    # Most leaves of a forest hold one class alone. Compared are the bytes, so that no zero changes its sign.
    values = np.ascontiguousarray(values, np.float64)
    _, first, place = np.unique(values.view(f"V{values.itemsize * values.shape[1]}")[:, 0], True, True)

    def among(child: Any) -> Any:
        return np.where(child < 0, -1 - place[-1 - child], child)

    counts = [0] * d if categories is None else [len(one) for one in categories]
    return {
        "missing": True,
        "roots": among(np.array(roots, np.int64)),
        "thresholds": thresholds.astype(np.float64),
        "left": among(left).astype(np.int32),
        "right": among(right).astype(np.int32),
        "columns": columns.astype(np.int32),
        "how": how.astype(np.int32),
        "leaves": values[first],
        "sets": np.zeros((0, 8), np.uint32) if sets is None else sets,
        "places": np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        "categories": np.zeros(0) if categories is None else np.concatenate(categories),
        **more,
    }


#: What each kind of ensemble does with the sums of its leaves, and what it can be asked.
LINKS = {
    "shares": ("predict_proba",),
    "mean": ("predict",),
    "identity": ("predict",),
    "exponential": ("predict",),
    "logistic": ("decision_function", "predict_proba"),
    "half logistic": ("decision_function", "predict_proba"),
    "softmax": ("decision_function", "predict_proba"),
}
NEAR = 1e-12  # relative difference that rounding may make
TRIED = 64  # rows that are compared with scikit-learn's answers
FIELDS = ("thresholds", "threshold"), ("left", "left"), ("right", "right"), ("columns", "column"), ("how", "how")


LEAVES = own(lambda trees: -len(trees.leaves))  # the first number of a leaf: nodes are numbered from 0 on
CHILDREN = array("thresholds", of=np.int32, least=LEAVES, below="thresholds")


@component
class FlatTrees(Saved):
    """The trees of a fitted estimator as plain arrays, walked by compiled code.

    `FlatTrees.of(estimator)` makes one. It answers what scikit-learn's estimator answers, and no longer needs that: it
    can be saved, sent and copied. One row costs microseconds, where scikit-learn takes .2 to 20 ms. A row has the same
    answer in a block as alone, to the last bit.

    Parameters
    ----------
    link : str
        A key of `LINKS`.
    single : bool
        Whether numbers are rounded to 32 bits, as all trees but histogram ones do it.
    missing : bool
        Whether NaN is taken.
    start : (k,) float64
        To which the trees are added.
    roots, thresholds, left, right, columns, how, leaves, sets, places, categories : arrays
        See `venn._compiled.rows`.

    Raises
    ------
    ValueError
        The arrays are not those of trees.

    Notes
    -----
    Sums have the order of scikit-learn's on one thread, and the functions that follow are the same. So answers to one
    row are the same to the last bit. To blocks they are the same but for two cases with a difference of some 1e-16:
    histogram boosting of eight or more classes, whose probabilities scikit-learn adds up in another order in blocks;
    and forests on several threads (`n_jobs`), which add trees up in the order in which they end.

    Examples
    --------
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> forest = RandomForestClassifier(10, random_state=0).fit([[0.0], [0.2], [1.0], [1.2]], [0, 0, 1, 1])
    >>> trees = FlatTrees.of(forest)
    >>> trees.proba_one(np.array([1.1])).tolist() == forest.predict_proba([[1.1]])[0].tolist()
    True
    """

    @classmethod
    def of(cls, estimator: Any) -> FlatTrees | None:
        """Return the trees of a fitted estimator, or None where only scikit-learn itself can answer.

        Taken are decision trees, extra trees, forests of both, gradient boosting and histogram gradient boosting, of
        classes and of numbers; exactly scikit-learn's classes, with one output. Missing values and categories are
        taken as the estimator takes them, except categories that are words. Answers are compared with the
        estimator's for some rows, so trees that another version of scikit-learn keeps otherwise give None.
        """
        found = parts(estimator)
        if found is None:
            return None
        try:
            trees = cls(**found)
            rows = trees._rows_to_try()
            with one_thread(), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # rows without names
                try:
                    near = trees._answers_as(estimator, rows)
                except ValueError:  # it takes no missing values
                    trees = cls(**{**found, "missing": False})
                    near = trees._answers_as(estimator, np.nan_to_num(rows))
        except Exception:
            return None  # whatever a version of scikit-learn holds or says, it can be asked itself
        return trees if near else None

    link: str = param(one_of, tuple(LINKS))
    single: bool = param(flag)
    missing: bool = param(flag)
    start: Floats = param(array(None, finite=None))
    thresholds: Floats = param(array(None, finite=None))
    leaves: Floats = param(array(None, own(lambda t: len(t.start) if t.link == "shares" else 1), finite=None))
    roots: Integers = param(array(None, of=np.int64, least=LEAVES, below="thresholds"))
    left: Any = param(CHILDREN)
    right: Any = param(CHILDREN)
    categories: Floats = param(array(None, finite=None))
    places: Integers = param(array(None, of=np.int64, below=own(lambda t: len(t.categories) + 1)))
    columns: Any = param(array("thresholds", of=np.int32, below=own(lambda t: len(t.places) - 1)))
    sets: Any = param(array(None, 8, of=np.uint32))
    how: Any = param(array("thresholds", of=np.int32, below=own(lambda t: 2 * len(t.sets) + 2)))

    def derive(self) -> None:
        """Put the nodes together."""
        if len(self.start) != 1 and (self.link not in ("shares", "softmax") or not len(self.start)):
            raise ValueError(f"start must be one number, or one for each class, got {len(self.start)}")
        for child in (self.left, self.right):
            if ((child >= 0) & (child <= np.arange(len(child)))).any():  # else a walk might never end
                raise ValueError("left and right must be nodes after their parents, or leaves, got others")
        counts, q = np.diff(self.places), len(self.categories)
        if len(counts) < 1 or self.places[0] != 0 or self.places[-1] != q or counts.min() < 0 or counts.max() > 256:
            raise ValueError(f"places must part {q} categories among columns, at most 256 in one, got {self.places}")
        if not len(self.roots):
            raise ValueError("roots must be those of one tree or more, got none")
        if not counts[self.columns[self.how > 1]].all():
            raise ValueError("columns must be categorical ones where a node asks for a set, got others")
        self._nodes = np.empty(len(self.thresholds), NODE)
        for name, field in FIELDS:
            self._nodes[field] = getattr(self, name)
            setattr(self, name, self._nodes[field])  # once in memory
        self._walk = (  # what a compiled loop reads
            self.single, self.missing, self.places, self.categories, self._nodes, self.roots, self.leaves, self.sets,
            self.start, self.link in ("shares", "mean"),
        )  # fmt: skip

    def __repr__(self) -> str:
        return (
            f"<FlatTrees: {len(self.roots)} trees, {len(self.roots) + len(self.thresholds)} leaves, link={self.link!r}>"
        )

    @property
    def features(self) -> int:
        """Number d of features."""
        return len(self.places) - 1

    @property
    def answers(self) -> tuple[str, ...]:
        """The methods of scikit-learn's that `answer` has answers for."""
        return LINKS[self.link]

    def answer(self, method: str, X: Any) -> Floats:
        """Return what the estimator's method returns for (n, d) rows.

        Raises
        ------
        ValueError
            The estimator has no such method, X does not have d columns, or holds a number that the estimator
            refuses: infinite or, except in histogram ones, larger than 32 bits can hold, or a missing one.
        """
        k, link, d = len(self.start), self.link, len(self.places) - 1
        if method not in LINKS[link]:
            raise ValueError(f"method must be one of {self.answers}, got {method!r}")
        rows: Floats = np.ascontiguousarray(X, np.float64)
        if rows.ndim != 2 or rows.shape[1] != d:
            raise ValueError(f"X must be rows (n, {d}), got shape {rows.shape}")
        sums = np.empty((len(rows), k))
        refused = tree_sums(rows, *self._walk, sums)
        if refused >= 0:
            i, f = divmod(refused, d)
            kind = "64" if not self.single else "32"
            what = "numbers, NaN for missing ones," if self.missing else "numbers"
            raise ValueError(f"X must be {what} of {kind} bits, got {rows[i, f]} at row {i}, feature {f}")
        if (method == "decision_function" and k > 1) or link == "shares":
            return sums
        if link == "softmax":
            sums -= sums.max(axis=1, keepdims=True)
            np.exp(sums, sums)
            sums /= sums.sum(axis=1, keepdims=True)
            return sums
        values: Floats = sums[:, 0]
        if link == "exponential":
            np.exp(values, values)
        if method != "predict_proba":
            return values
        shares = np.empty((len(rows), 2))
        shares[:, 1] = expit(2 * values if link == "half logistic" else values)
        shares[:, 0] = 1 - shares[:, 1]
        return shares

    def proba(self, X: Any) -> Floats:
        """Return the (n, c) probabilities of (n, d) rows; raise ValueError as `answer` does."""
        return self.answer("predict_proba", X)

    def proba_one(self, x: Any) -> Floats:
        """Return the (c,) probabilities of one row (d,); raise ValueError as `answer` does."""
        return self.answer("predict_proba", np.asarray(x)[None])[0]

    def predict(self, X: Any) -> Floats:
        """Return the (n,) numbers that a regressor predicts; raise ValueError as `answer` does."""
        return self.answer("predict", X)

    def _rows_to_try(self) -> Floats:
        """Return rows at the thresholds, beside them and around them, with known and unknown categories and none."""
        rng = np.random.default_rng(0)
        nodes = self._nodes[:: 1 + len(self._nodes) // 100_000]
        columns, thresholds = nodes["column"], nodes["threshold"]
        plain = (nodes["how"] < 2) & (np.abs(thresholds) < np.finfo(np.float32).max)
        order = np.argsort(columns[plain], kind="stable")
        thresholds = thresholds[plain][order]
        ends = np.searchsorted(columns[plain][order], np.arange(self.features + 1))
        rows = np.zeros((TRIED, self.features))
        for f in range(self.features):
            pool = thresholds[ends[f] : ends[f + 1]]
            if self.places[f + 1] > self.places[f]:
                pool = self.categories[self.places[f] : self.places[f + 1]]
            if len(pool):
                rows[:, f] = rng.choice(pool, TRIED)
        how = rng.random(rows.shape)
        rows = np.where(how < 0.3, rows + rng.normal(size=rows.shape) * rows.std(axis=0), rows)
        rows = np.where(how > 0.8, np.nextafter(rows, np.inf), rows)
        rows[::2][how[::2] > 0.95] = np.nan
        return rows

    def _answers_as(self, estimator: Any, rows: Floats) -> bool:
        """Whether answers to these rows are the estimator's; ValueError where one of them refuses the rows."""
        for method in self.answers:
            expected = np.asarray(getattr(estimator, method)(rows), np.float64)
            found = self.answer(method, rows)
            if found.shape != expected.shape or not (abs(found - expected) <= NEAR * (1 + abs(expected))).all():
                return False
        return True


#: Forests and boosted trees that are fitted here.
KINDS = (
    "RandomForestClassifier", "ExtraTreesClassifier", "HistGradientBoostingClassifier", "RandomForestRegressor",
    "HistGradientBoostingRegressor",
)  # fmt: skip


def _restored_targets(name: str, targets: Any, n: int) -> Any:
    if isinstance(targets, np.ndarray) and targets.dtype == np.int64:
        return restored_codes(name, targets, (n,), 0, 2**31)
    return restored_finite(name, targets, (n,))


@component
class AskedTrees(Saved):
    """Fitted trees that `FlatTrees` cannot read: scikit-learn itself is asked, and the first one warns.

    It stands where the program has fitted them itself. Rows cost milliseconds. A file holds the examples, to which they
    are fitted again. A row has the same answer in a block as alone.

    Parameters
    ----------
    kind : str
        Name of scikit-learn's class, one of `KINDS`.
    settings : dict
        What it is made with.
    X, y : (n, d) float64, (n,) int64 or float64
        What it is fitted to.

    Raises
    ------
    ValueError
        A parameter is not as described.
    """

    kind: str = param(one_of, KINDS)
    settings: Any = param()
    X: Floats = param(array(None, None))
    y: Any = param(_restored_targets, own(lambda trees: len(trees.X)))

    def derive(self) -> None:
        """Warn, once."""
        global _warned
        self._estimator: Any = None
        self._numbers: Integers | None = None
        if not _warned:
            _warned = True
            warnings.warn(
                "this version of scikit-learn keeps its trees otherwise than they are read here: forests and boosted "
                "trees are asked through scikit-learn, which takes milliseconds a row instead of microseconds",
                RuntimeWarning,
                stacklevel=2,
            )

    @classmethod
    def of(cls, estimator: Any, X: Floats, y: Any) -> AskedTrees:
        """Return one that asks an estimator which was fitted to these examples."""
        asked = cls(type(estimator).__name__, estimator.get_params(), X, y)
        asked._estimator = estimator
        return asked

    @property
    def features(self) -> int:
        """Number of features."""
        return int(self.X.shape[1])

    def proba(self, X: Any) -> Floats:
        """Return the (n, c) probabilities of (n, d) rows."""
        if len(X) > 1 and self.kind.startswith("Hist"):  # in a block it adds up many classes in another order
            return np.concatenate([self.proba(row[None]) for row in X])
        found: Floats = self._asked().predict_proba(X)
        return found

    def predict(self, X: Any) -> Floats:
        """Return the (n,) numbers that a regressor predicts for (n, d) rows."""
        found: Floats = self._asked().predict(X)
        return found

    def leaves_of(self, X: Any) -> Integers:
        """Return, for (n, d) rows and each tree of a forest, the number of the leaf among those of all trees."""
        asked = self._asked()
        if self._numbers is None:
            places = asked.apply(self.X)
            self._before = np.cumsum(np.append(0, places.max(axis=0)[:-1] + 1))
            self._numbers = np.unique(places + self._before)  # each leaf has examples
        found: Integers = self._numbers.searchsorted(asked.apply(X) + self._before)
        return found

    def _asked(self) -> Any:
        """Return the estimator, fitted again where a file has its examples only."""
        if self._estimator is None:
            import sklearn.ensemble

            with one_thread(), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self._estimator = getattr(sklearn.ensemble, self.kind)(**self.settings).fit(self.X, self.y)
        return self._estimator


_warned = False


def trees_of(estimator: Any, X: Floats, y: Any) -> FlatTrees | AskedTrees:
    """Return the trees of an estimator that was fitted to these examples; itself where they cannot be read."""
    return FlatTrees.of(estimator) or AskedTrees.of(estimator, X, y)
