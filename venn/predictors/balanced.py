"""Online balancing: learn few examples of frequent classes, and still predict for the stream as it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from venn.labels import Classes, HasLabels
from venn.machines.sparse import is_sparse
from venn.parameters import integer, with_methods
from venn.prediction import Integers, Label, Prediction
from venn.predictors.inductive_base import Inductive, check_stream, with_labels
from venn.predictors.learning import Predictor
from venn.saved import component, own, param, restored_int, restored_like, state
from venn.shifts import PriorShift
from venn.smoothing import Smoothing
from venn.turns import asks, changes

# Unlike those of an inner predictor with the same seed: coins must be independent of the draws that break ties.
# Users' seeds are never this large.
OFFSET = 1 << 64


def _weighing(name: str, predictor: Any) -> Any:
    """Return a predictor like this one that has learned nothing, or say what is wrong with it."""
    with_methods(name, predictor, "one that weighs by class, with a method 'under', such as InductiveVenn", "under")
    if predictor.shift is not None:
        raise ValueError(f"{name} must be without a shift, since 1 / keep is the shift here, got {predictor!r}")
    if _learned(predictor):
        raise ValueError(
            f"{name} must have learned nothing, got one of {_learned(predictor)} examples: they were not kept with "
            "these probabilities"
        )
    return predictor.under(None)


def _shares(name: str, keep: Any, classes: Any) -> tuple[float, ...]:
    """Return probabilities of keeping an example of each class, or say what is wrong with them."""
    PriorShift.of_keeping(keep)
    if len(keep) != len(classes):
        raise ValueError(f"{name} must hold a probability for each of {list(classes)!r}, got {keep!r}")
    return tuple(float(share) for share in keep)


@component
class Balanced(HasLabels, Predictor):
    """Learns each example with a probability given by its class, and weights kept examples to make up for it.

    An example of class k is kept with probability keep[k], by its own coin toss; otherwise it is dropped for ever: it
    never trains or calibrates. Kept examples weigh 1 / keep[k], and so does the new one under the hypothesis of
    class k. So a frequent class costs little memory and time, while predictions are for the stream as it comes.

    Theorem: on exchangeable examples each single prediction is valid, as the predictor's own would be. The reason:
    given which examples were dropped, and the kept ones and the new one in any order, each of these is the new one with
    a probability proportional to 1 / keep of its class. The theorem requires that dropped examples never come back, and
    that coins depend on nothing but the class. Statements of a predictor or its schedule about many steps together do
    not hold: all steps between two kept examples are compared with the same examples, and equal objects among them
    share the random number that breaks ties. Nothing is proved of sums of departures or of errors, and monitors that
    bet on independent p-values may raise alarms on valid predictions.

    The theorem does not say how good a machine becomes on balanced examples. The machine keeps its own
    `class_weights`.

    Parameters
    ----------
    predictor : TransductiveVenn, InductiveVenn, CrossVenn, Conformal or InductiveConformal
        It has no `shift` and has learned nothing; or an object with the same method `under`. One like it learns here,
        with a machine of its own.
    keep : sequence of c probabilities in (0, 1], in class order
        Each may be 1 for the rarest class.
    seed : int >= 0, default 0
        Seed of the coins, one for each example. It must be unrelated to how the examples were made.

    Attributes
    ----------
    machine : None
        There is no machine that a panel may teach or share: it would learn dropped examples.
    learner : predictor
        The predictor that learns the kept examples. Do not teach it.
    n : int
        Number of examples offered; `learner` has learned `kept` of them.

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described.

    Examples
    --------
    >>> import venn
    >>> from venn.predictors.balanced import Balanced
    >>> machine = venn.LeastSquaresSVM(venn.RBF(1.0), C=10, classes=["no", "yes"])
    >>> model = Balanced(venn.TransductiveVenn(machine), keep=(0.1, 1.0))
    >>> for i in range(200):
    ...     model.learn_one([i % 20 / 20], "no")
    ...     if i % 10 == 0:
    ...         model.learn_one([1 + i / 200], "yes")
    >>> model.n, model.kept
    (220, 43)
    >>> model.predict_one([0.15]).label
    'no'
    """

    predictor: Any = param(_weighing)
    keep: Sequence[float] = param(_shares, own(lambda m: m.predictor.classes))
    seed: int = param(integer, 0, default=0)

    n: int = state(restored_int, start=0)
    learner: Any = state(
        restored_like, start=own(lambda model: model.predictor.under(PriorShift.of_keeping(model.keep)))
    )

    def derive(self) -> None:
        """Set up the coin tosses."""
        self.space = Classes(self.predictor.classes)
        self._coins = Smoothing(OFFSET + self.seed)

    @property
    def kept(self) -> int:
        """Number of examples learned."""
        return _learned(self.learner)

    @property
    def tuning(self) -> Any:
        """The result of `tune`, if it chose the machine's kernel and C."""
        return getattr(self.learner if self.learner.machine is None else self.learner.machine, "tuning", None)

    def predict_one(self, x: Any) -> Prediction:
        """Return the prediction for `x`; leaves no trace.

        Parameters
        ----------
        x : (d,) finite numbers
        """
        return self.learner.predict_one(x)

    def prepare(self, x: Any, y: Label) -> Any:
        """Return what the predictor prepares for an example, kept or not, or raise what learning it would raise."""
        if self.learner.machine is not None:
            self.learner.machine.check(x, y)
        prepared = self.learner.prepare(x, y)
        self.space.check(y)
        return prepared

    def commit(self, x: Any, y: Label, prepared: Any = None) -> None:
        """Learn one example, or drop it for ever.

        Raises
        ------
        NotConverged
            As raised by the predictor.
        """
        if self._coins.at(self.n) >= self.keep[self.space.encode(y)]:
            self.n += 1
            return
        before = self.kept
        try:
            if self.learner.machine is not None:
                self.learner.machine.learn_one(x, y)
            self.learner.commit(x, y, prepared)
        finally:
            self.n += self.kept - before  # count what was learned, also when a training failed

    # ------------------------------------------------------------------ many examples

    @asks
    def predict_many(self, X: Any) -> Any:
        """Return predictions for many objects, all from the present state; leaves no trace.

        Parameters
        ----------
        X : (n, d) finite numbers

        Raises
        ------
        TypeError
            The predictor is not inductive, as `InductiveVenn` and `InductiveConformal` are. The same holds below.
        ValueError, TypeError
            X is not as described.
        """
        return self._inductive().predict_many(X)

    @changes
    def learn_many(self, X: Any, y: Any = None) -> None:
        """Learn or drop many examples; the same as `learn_one` for each in turn, and faster.

        Parameters
        ----------
        X : (n, d) finite numbers
            Or a stream of `streams`, which has the labels: then leave out y.
        y : sequence of n labels

        Raises
        ------
        ValueError, TypeError
            For a bad object or label among them, also one that would have been dropped; nothing is learned.
        NotConverged
            As raised by the predictor; examples up to that training are learned or dropped.
        """
        predictor, rows, labels, kept = self._examples(X, y)
        before, n = self.kept, self.n
        try:
            predictor.learn_many(rows[kept], [labels[i] for i in kept])
            self.n = n + len(labels)
        except BaseException:
            learned = self.kept - before
            self.n = n + (int(kept[learned - 1]) + 1 if learned else 0)
            raise

    @changes
    def replay_many(self, X: Any, y: Any = None) -> Any:
        """Predict, then learn or drop, each example in turn; the same as the loop over `predict_one` and `learn_one`.

        Parameters
        ----------
        X : (n, d) finite numbers
            Or a stream of `streams`, which has the labels: then leave out y.
        y : sequence of n labels

        Returns
        -------
        block of predictions
            Row i is the prediction for X[i] after the examples before it have been learned or dropped.

        Raises
        ------
        ValueError, TypeError
            For a bad object or label among them, also one that would have been dropped; nothing is learned.
        NotConverged
            As raised by the predictor; examples up to that training are learned or dropped, their predictions are lost.
        """
        predictor, rows, labels, kept = self._examples(X, y)
        blocks, start = [], 0
        for i in kept.tolist():
            # Nothing is learned between two kept examples, so all objects between them may be predicted at once.
            blocks.append(predictor.predict_many(rows[start : i + 1]))
            before = self.kept
            try:
                predictor.learn_many(rows[i : i + 1], labels[i : i + 1])
            finally:
                self.n += (i + 1 - start) * (self.kept - before)
            start = i + 1
        blocks.append(predictor.predict_many(rows[start:]))
        self.n += len(labels) - start
        return type(blocks[0]).join(blocks)

    def _inductive(self) -> Inductive[Any]:
        if not isinstance(self.learner, Inductive):
            raise TypeError(
                "predictor must be inductive, as InductiveVenn and InductiveConformal are, to take many objects at "
                f"once, got {self.predictor!r}"
            )
        return self.learner

    def _examples(self, X: Any, y: Any) -> tuple[Inductive[Any], Any, list[Label], Integers]:
        """Return the learner, rows, labels, and positions of the examples to keep; or refuse the examples."""
        predictor = self._inductive()
        check_stream(X, predictor.feature_names)
        X, y = with_labels(X, y)
        predictor.check_many(X, y)
        labels = y.tolist() if isinstance(y, np.ndarray) else list(y)
        keep = np.array(self.keep)[self.space.encode_many(labels)]
        kept = np.flatnonzero(self._coins.block(self.n, len(labels)) < keep)
        return predictor, X.tocsr() if is_sparse(X) else np.asarray(X), labels, kept


def _learned(predictor: Any) -> int:
    """Return how many examples a predictor has learned."""
    return predictor.n if predictor.machine is None else predictor.machine.learned
