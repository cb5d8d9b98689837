"""Scorecards: the losses and errors of a collection's predictions, in sums that merge."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from venn._compiled.outcomes import PROBABILITY, WIDTH
from venn.labels import label_space
from venn.monitors.calibration import CLIP, MeanLogLoss
from venn.monitors.evidence import Scored
from venn.monitors.kinds import KINDS
from venn.monitors.sums import Tallies, WidthBins, class_codes
from venn.parameters import LARGEST_INTEGER, fraction, integer, is_number
from venn.parameters import class_codes as codes_of
from venn.prediction import LEVELS, Floats, Integers, Label
from venn.predictors.blocks import ManyClassIntervals, ManyForecasts, ManyMultiprobabilities, ManyPredictionSets
from venn.saved import component, param

IN_BINS = "forecasts", "hits", "confidence", "variance", "lower", "upper"
ROUNDING = 1e-12  # of means: a rate that is no farther outside a band lies in it


def plain_labels(name: str, classes: Sequence[Label]) -> tuple[Label, ...]:
    """Return labels as Python objects, with the same repr and JSON wherever they come from; or refuse them."""
    return tuple(codes_of(classes))


@component
class Card(Tallies):
    """Base of scorecards: of predictions of the same classes."""

    classes: Sequence[Label] = param(plain_labels)

    def _belongs(self, block: Any, *kinds: type[Any]) -> None:
        if type(block) not in kinds:
            names = " or ".join(kind.__name__ for kind in kinds)
            raise TypeError(f"block must be {names} for a {type(self).__name__}, got {block!r}")
        own = block.classes
        if own != self.classes:
            raise ValueError(f"block must be of the classes {self.classes!r}, got {own!r}")

    def _scored(self, block: Any, truth: Integers, clip: float = CLIP) -> tuple[dict[str, Floats], Floats]:
        """Return the columns of n predictions that a monitor averages, and (n,) their `Outcomes.probability`."""
        kind = KINDS[block.one.__name__]
        numbers, rows = np.empty((len(block), WIDTH)), np.empty((len(block), len(self.classes)))
        predicted = kind.scored_many(block, "block", label_space(self.classes), truth, numbers, rows)
        scored = Scored(np.asarray(truth, np.float64), np.asarray(predicted, np.float64), numbers, rows)
        return kind.averaged(scored, clip), numbers[:, PROBABILITY]


@component
class Scorecard(Card):
    """Scores many probability predictions: losses, and whether frequencies lie in the claimed bands.

    Everything is a sum over the predictions. So scorecards of parts of a collection merge to that of the whole, but for
    rounding. Results that depend on the order of a stream, such as martingales and alarms, cannot be merged and are not
    here.

    `venn.save` keeps one in a file, and it goes on when loaded.

    It describes what happened. If calibration and scored examples are exchangeable, each single prediction is valid.
    Frequencies over a collection that shares one calibration set differ from the bands by the error of that set, and by
    the noise of the collection.

    Parameters
    ----------
    classes : sequence of c >= 2 labels
    bins : int >= 1, default 10
        Of equal width, by the probability of the predicted label.
    clip : float in (0, 1), default 1e-15
        Probabilities of the true label below it count as `clip` in the log loss.

    Attributes
    ----------
    n : int
        Number of predictions.
    errors : int
        Number of wrong predicted labels.

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described.

    Examples
    --------
    >>> import venn
    >>> block = ManyMultiprobabilities(np.array([[1, 3], [3, 1]]), ("no", "yes"), venn.prediction.RowMean())
    >>> card = Scorecard(("no", "yes"))
    >>> card.update_many(block, [1, 1])
    >>> card.errors, card.brier, card.lower, card.upper
    (1, 0.58, 0.6, 0.8)
    >>> card.merge(card).n, card == card.merge(card.fresh())
    (4, True)
    """

    bins: int = param(integer, 1, LARGEST_INTEGER, default=10, sized=True)
    clip: float = param(fraction, default=CLIP)

    def derive(self) -> None:
        """Find the cuts."""
        self._cuts = WidthBins(self.bins).cuts(np.empty(0))

    @property
    def columns(self) -> dict[str, int]:
        """How many counts or sums there are of each name."""
        once, by_class = (
            dict.fromkeys(("n", "clipped", "log_loss", "brier"), 1),
            ("labels", "class_lower", "class_upper"),
        )
        return once | dict.fromkeys(by_class, len(self.classes)) | dict.fromkeys(IN_BINS, self.bins)

    def update_many(
        self, block: ManyMultiprobabilities | ManyClassIntervals | ManyForecasts, codes: Any, times: Any = None
    ) -> None:
        """Add n predictions and their true labels.

        Parameters
        ----------
        block : ManyMultiprobabilities, ManyClassIntervals or ManyForecasts
            The result of a predictor's `predict_many`.
        codes : (n,) int from 0 to c - 1
            Class codes of the true labels.
        times : (n,) int >= 0, optional
            How often each prediction occurred with its label; once by default.

        Raises
        ------
        TypeError, ValueError
            An argument is not as described; nothing is added.
        """
        self._belongs(block, ManyMultiprobabilities, ManyClassIntervals, ManyForecasts)
        n, c = len(block), len(self.classes)
        truth = class_codes("codes", codes, n, c)
        weights = np.ones(n) if times is None else self._times(times, n)
        scored, (lower, upper) = self._scored(block, truth, self.clip)[0], block.bounds
        confidence = np.minimum(scored["confidence"], 1.0)  # that of class intervals may exceed 1 by rounding
        places = np.searchsorted(self._cuts, confidence, side="right")
        by_bin = {
            "forecasts": np.ones(n), "hits": scored["accuracy"], "confidence": confidence,
            "variance": confidence * (1.0 - confidence), "lower": scored["lower"], "upper": scored["upper"],
        }  # fmt: skip
        self.add(
            {
                "n": weights.sum(),
                "labels": np.bincount(truth, weights, c),
                "class_lower": weights @ lower,
                "class_upper": weights @ upper,
                **{name: scored[name] @ weights for name in ("clipped", "log_loss", "brier")},
                **{name: np.bincount(places, column * weights, self.bins) for name, column in by_bin.items()},
            }
        )

    def _times(self, times: Any, n: int) -> Floats:
        clean = np.asarray(times)
        if clean.dtype.kind not in "iu" or clean.shape != (n,) or (n and int(clean.min()) < 0):
            raise ValueError(f"times must be ({n},) integers >= 0, got {times!r}")
        return clean.astype(np.float64)

    # ------------------------------------------------------------------ reading

    @property
    def errors(self) -> int:
        """Number of wrong predicted labels."""
        return self.n - int(self._table["hits"].sum())

    @property
    def accuracy(self) -> float:
        """Share of predicted labels that were right."""
        return 1.0 - self.errors / self.n if self.n else math.nan

    @property
    def log_loss(self) -> MeanLogLoss:
        """Mean log loss of the point forecasts, in nats, its clip and how many were clipped."""
        return MeanLogLoss(self._mean(self._table["log_loss"][0]), int(self._table["clipped"][0]), self.clip)

    @property
    def brier(self) -> float:
        """Mean Brier score of the point forecasts, in [0, 2]."""
        return self._mean(self._table["brier"][0])

    @property
    def lower(self) -> float:
        """Mean lower bound of the predicted labels."""
        return self._mean(self._table["lower"].sum())

    @property
    def upper(self) -> float:
        """Mean upper bound of the predicted labels."""
        return self._mean(self._table["upper"].sum())

    @property
    def width(self) -> float:
        """Mean width of the intervals of the predicted labels."""
        return self._mean((self._table["upper"] - self._table["lower"]).sum())

    @property
    def deviation(self) -> float:
        """How far the accuracy lies outside the mean band of the predicted labels: below it < 0, above > 0, inside 0.

        For valid predictions it is small, not 0: see the class.
        """
        return _outside(self.accuracy, self.lower, self.upper)

    @property
    def ece(self) -> float:
        """Expected calibration error of the predicted labels over the bins."""
        return self._mean(np.abs(self._table["hits"] - self._table["confidence"]).sum()) if self.n else 0.0

    @property
    def frequencies(self) -> list[dict[str, Any]]:
        """For each class, its frequency and the mean band that was claimed for it, as plain data.

        With keys label, count, frequency, lower, upper, deviation (how far the frequency is outside the band) and
        score: the deviation in standard errors of a frequency. Bands from many calibration examples are narrower than
        that: frequencies of a valid predictor lie outside by chance, typically by a standard error or two.
        """
        found = []
        for k, (label, came) in enumerate(zip(self.classes, self._table["labels"].tolist(), strict=True)):
            low, high = (self._mean(self._table[name][k]) for name in ("class_lower", "class_upper"))
            rate = came / self.n
            gap = _outside(rate, low, high)
            score = _in_units(gap, math.sqrt(rate * (1.0 - rate) / self.n))
            found.append(
                {
                    "label": label,
                    "count": int(came),
                    "frequency": rate,
                    "lower": low,
                    "upper": high,
                    "deviation": gap,
                    "score": score,
                }
            )
        return found

    @property
    def labels_in_band(self) -> int:
        """Number of classes whose frequency lies in the mean band that was claimed."""
        return sum(one["deviation"] == 0.0 for one in self.frequencies)

    @property
    def reliability(self) -> list[dict[str, float]]:
        """The non-empty bins, by the probability of the predicted label, as plain data.

        With keys from_, to, count, confidence (mean probability), accuracy, lower, upper (mean band), deviation
        (how far the accuracy is outside of the band) and score: (hits - sum p) / sqrt(sum p (1 - p)), which is
        about standard normal if hits are independent and as probable as forecast; 0 if all were certain and right.
        """
        ends = [0.0, *self._cuts.tolist(), 1.0]
        found = []
        for i, (number, hits, *sums) in enumerate(np.array([self._table[name] for name in IN_BINS]).T.tolist()):
            if number:
                claimed, spread, low, high = (sum_ / number for sum_ in sums)
                rate, gap = hits / number, hits - sums[0]
                found.append(
                    {
                        "from_": ends[i],
                        "to": ends[i + 1],
                        "count": int(number),
                        "confidence": claimed,
                        "accuracy": rate,
                        "lower": low,
                        "upper": high,
                        "deviation": _outside(rate, low, high),
                        "score": _in_units(gap, math.sqrt(number * spread)),
                    }
                )
        return found

    def __str__(self) -> str:
        if not self.n:
            return "no prediction scored"
        loss, most = self.log_loss, max(abs(one["score"]) for one in self.frequencies)
        return (
            f"{self.n} predictions: accuracy {self.accuracy:.4f} in a mean band [{self.lower:.4f}, {self.upper:.4f}], "
            f"log loss {loss.value:.4f} ({loss.clipped} clipped at {loss.clip:g}), Brier {self.brier:.4f}, "
            f"frequencies of classes at most {most:.1f} standard errors outside their bands"
        )


def _in_units(gap: float, unit: float) -> float:
    if gap == 0.0:
        return 0.0
    return gap / unit if unit > 0 else math.copysign(math.inf, gap)


def _outside(rate: float, lower: float, upper: float) -> float:
    gap = min(rate - lower, 0.0) + max(rate - upper, 0.0)
    return gap if abs(gap) > ROUNDING else 0.0


@component
class SetScorecard(Card):
    """Scores many prediction sets: errors and sizes at several levels, and p-values.

    Like `Scorecard`, it keeps sums that merge. Objects of a block are compared with
    the same examples: each p-value is uniform, but those of one block are not independent. Ties are broken by a random
    number for each object; equal objects share theirs.

    Parameters
    ----------
    classes : sequence of c >= 2 labels
    bins : int >= 1, default 20
        Of the histogram of the true labels' p-values.

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described.

    Examples
    --------
    >>> card = SetScorecard(("no", "yes"))
    >>> card.update_many(ManyPredictionSets(np.array([[0.5, 0.03], [0.25, 0.75]]), ("no", "yes")), [0, 0])
    >>> card.errors(0.05), card.sizes(0.05)
    (0, 3)
    """

    bins: int = param(integer, 1, LARGEST_INTEGER, default=20, sized=True)

    @property
    def columns(self) -> dict[str, int]:
        """How many counts or sums there are of each name."""
        once = dict.fromkeys(("n", "hits"), 1)
        return once | dict.fromkeys(("errors", "sizes"), len(LEVELS)) | {"histogram": self.bins}

    def update_many(self, block: ManyPredictionSets, codes: Any) -> None:
        """Add n predictions and their true labels.

        Parameters
        ----------
        block : ManyPredictionSets
        codes : (n,) int from 0 to c - 1
            Class codes of the true labels.

        Raises
        ------
        TypeError, ValueError
            An argument is not as described; nothing is added.
        """
        self._belongs(block, ManyPredictionSets)
        n = len(block)
        truth = class_codes("codes", codes, n, len(self.classes))
        scored, own = self._scored(block, truth)
        places = np.minimum((own * self.bins).astype(np.int64), self.bins - 1)
        at_levels = {f"{name}s": [scored[f"{name}_{level}"].sum() for level in LEVELS] for name in ("error", "size")}
        self.add(
            {
                "n": n,
                "hits": scored["accuracy"].sum(),
                "histogram": np.bincount(places, minlength=self.bins),
                **{name: np.array(sums) for name, sums in at_levels.items()},
            }
        )

    @property
    def accuracy(self) -> float:
        """Share of labels of largest p-value that were right."""
        return float(self._table["hits"][0]) / self.n if self.n else math.nan

    def errors(self, epsilon: float) -> int:
        """Return how many sets missed their label at a level among 0.01, 0.05, 0.1 and 0.2."""
        return int(self._table["errors"][_place(epsilon)])

    def sizes(self, epsilon: float) -> int:
        """Return how many labels the sets hold together at one of those levels."""
        return int(self._table["sizes"][_place(epsilon)])

    @property
    def histogram(self) -> list[int]:
        """Numbers of p-values of true labels in each bin of [0, 1]: about equal if predictions are valid."""
        return [int(count) for count in self._table["histogram"]]

    def __str__(self) -> str:
        if not self.n:
            return "no prediction scored"
        rates = ", ".join(f"{self.errors(e) / self.n:.4f} at {e:g}" for e in LEVELS)
        return f"{self.n} prediction sets: error rate {rates}; {self.sizes(0.05) / self.n:.3f} labels a set at 0.05"


def _place(epsilon: float) -> int:
    if not is_number(epsilon) or epsilon not in LEVELS:
        raise ValueError(f"epsilon must be among {LEVELS}, got {epsilon!r}")
    return LEVELS.index(epsilon)
