"""Evidence that a stream has changed, for each of many streams, and two procedures that name the changed ones."""

from __future__ import annotations

from math import log, nan
from typing import Any, NamedTuple

import numpy as np

from venn._compiled.martingales import WIDTH, bet_each, no_bets
from venn.labels import label_space
from venn.monitors.change_point import MEMORY, Trace
from venn.monitors.curves import outcome
from venn.monitors.kinds import Scorer, kind_of
from venn.monitors.monitor import labels_of
from venn.monitors.naming import rarity_of
from venn.monitors.sources import ClassShare, usual_sources
from venn.parameters import flag, fraction, integer, optional, real_array
from venn.prediction import ERROR_RATE, Floats, Integers
from venn.saved import (
    Saved,
    array,
    component,
    each,
    own,
    param,
    restored_codes,
    restored_finite,
    restored_int,
    restored_text,
    state,
    twin,
)
from venn.smoothing import Smoothing

FAR = 2**62
SHOWN = log(20.0)  # logarithm of a capital from which on a change is dated
BOTH = 0.5  # a bet is mentioned if its log capital is this share of the largest or more
SHARES, FIT = "how often classes come", "how labels fit their objects"
NOTHING = -700.0  # the logarithm of next to nothing
OUTCOMES = 9  # numbers that a scorer writes


def log_adjusted(logs: Any) -> Floats:
    """Return ln A(m) of the logarithms of suprema: A makes the largest capital so far a fair price again.

    A(m) = (m - 1 - ln m) / ln^2 m, A(1) = 1/2. The integral of A(m) / m^2 from 1 on is 1, and by Ville the largest
    capital of a martingale exceeds m with probability at most 1 / m; so the mean of A of it is at most 1, whenever one
    looks.

    Parameters
    ----------
    logs : array of numbers >= 0
        ln m.

    References
    ----------
    Shafer, Shen, Vereshchagin & Vovk (2011), "Test martingales, Bayes factors and p-values".

    Examples
    --------
    >>> np.exp(log_adjusted([0.0, 5.0])).round(3)
    array([0.5  , 5.697])
    """
    t = np.asarray(logs, np.float64)
    near = t < 1e-3
    far = np.where(near, 1.0, t)
    with np.errstate(under="ignore"):
        exact = far + np.log1p(-(1.0 + far) * np.exp(-far)) - 2.0 * np.log(far)
    found: Floats = np.where(near, log(0.5) + t / 3.0 + t * t / 36.0, exact)
    return found


def e_bh(logs: Any, rate: float, among: int | None = None) -> Integers:
    """Return which of K e-values are named by e-BH, the largest first.

    The k* largest are named, k* the largest k whose k-th largest e-value is at least K / (k rate). Then the expected
    share of wrong names among those named is at most `rate`, however the e-values depend on each other.

    Parameters
    ----------
    logs : (K,) float64
        Logarithms of e-values.
    rate : float in (0, 1)
    among : int >= K, optional
        Count as if there were so many.

    References
    ----------
    Wang & Ramdas (2022), "False discovery rate control with e-values".

    Examples
    --------
    >>> e_bh(np.log([1.0, 50.0, 0.5, 30.0]), rate=0.2).tolist()
    [1, 3]
    """
    values = real_array(logs, "logs must be numbers")
    order = np.argsort(-values, kind="stable")
    k = np.arange(1, len(order) + 1)
    total = len(order) if among is None else integer("among", among, len(order))
    fine = np.flatnonzero(values[order] >= np.log(max(total, 1)) - np.log(k) - log(fraction("rate", rate)))
    return order[: fine[-1] + 1 if fine.size else 0]


def holm(logs: Any, level: float, among: int | None = None) -> Integers:
    """Return which of K claims are rejected by Holm's procedure, the clearest first.

    The probability that a true one is ever among them is at most `level`, however they depend on each other.

    Parameters
    ----------
    logs : (K,) float64
        Logarithms of 1 / p, p a p-value.
    level : float in (0, 1)
    among : int >= K, optional
        Count as if there were so many.

    References
    ----------
    Holm (1979), "A simple sequentially rejective multiple test procedure".

    Examples
    --------
    >>> holm(np.log([1.0, 500.0, 2.0, 150.0]), level=0.02).tolist()
    [1, 3]
    """
    values = real_array(logs, "logs must be numbers")
    order = np.argsort(-values, kind="stable")
    total = len(order) if among is None else integer("among", among, len(order))
    left = total - np.arange(len(order))
    wrong = np.flatnonzero(values[order] < np.log(left) - log(fraction("level", level)))
    return order[: wrong[0] if wrong.size else len(order)]


class KeyStanding(NamedTuple):
    """The evidence that one stream has changed; the first two numbers never fall.

    Examples
    --------
    >>> KeyEvidence(("no", "yes")).standing
    KeyStanding(log_e=-0.6931471805599453, log_p=0.0, since=0, kind='')
    """

    log_e: float  #: ln of its e-value, for `e_bh`
    log_p: float  #: ln of 1 / p, for `holm`
    since: int  #: the step from which on it shows, an estimate; 0 where little speaks against it
    kind: str  #: what speaks against it, in words


def _no_traces(bets: int) -> tuple[Trace, ...]:
    return tuple(Trace(False, MEMORY) for _ in range(bets))


STREAMS, EACH = own(lambda one: len(one.memory)), own(lambda one: (len(one.memory),))


@component
class KeyEvidence(Saved):
    """Bets against the claim that a stream's examples come in random order, and keeps the largest capital.

    It bets on the p-values of its predictions, as a `Monitor` does: on the ranks of true labels where an error rate is
    guaranteed, else on the event that is. Where labels are classes it also bets on how often each comes, as `rarity`
    ranks it. Each bet is a mixture over the moments at which a change may begin, and over what it may look like; it
    never loses more than four fifths of its capital.

    With S the largest capital so far, the e-value of the stream is the mean of A(S) over its bets, see `log_adjusted`;
    its p-value is the number of bets, times the smallest 1 / S.

    Parameters
    ----------
    classes : sequence of labels, or LabelSpace
    seed : int >= 0, default 0
        Of the random numbers that break ties.
    trains : bool, default False
        Whether the predictor trains now and then, so that its p-values are valid from one training to the next: then
        bets begin anew at each (`begin_anew`), and each period has its share of the e-value, the first nine tenths.

    Attributes
    ----------
    n : int
        Number of steps.
    counts : (c,) int64
        How often each class came.
    memory : (k, width) float64
        Of each bet, see `venn._compiled.martingales`: steps, the logarithm of its capital, the largest so far.

    Examples
    --------
    >>> evidence = KeyEvidence(("no", "yes"))
    >>> for step in range(60):
    ...     evidence.update(None, "no" if step < 30 else "yes")
    >>> evidence.standing.kind, 20 < evidence.standing.since < 40
    ('how often classes come', True)
    """

    classes: Any = param(labels_of)
    seed: int = param(integer, 0, default=0, kw_only=True)
    trains: bool = param(flag, default=False, kw_only=True)

    n: int = state(restored_int, start=0)
    _round: int = state(restored_int, 1, start=1)
    #: Logarithms of the e-value and of 1 / p of earlier periods; and since when, and what, of their latest.
    _before: Floats = state(restored_finite, (2,), start=own(lambda _: np.array([NOTHING, 0.0])))
    _before_since: int = state(restored_int, start=0)
    _before_kind: str = state(restored_text, start="")
    _guaranteed: str | None = state(optional, restored_text, start=None)
    counts: Integers = state(
        restored_codes, own(lambda one: (len(label_space(one.classes).labels),)), 0, FAR,
        start=own(lambda one: np.zeros(len(label_space(one.classes).labels), np.int64)),
    )  # fmt: skip
    memory: Floats = state(array(None, WIDTH), start=own(lambda one: no_bets(int(len(one.counts) > 0))))
    _traces: tuple[Trace, ...] = state(
        each(twin(own(lambda _: Trace(False, MEMORY))), STREAMS, of=tuple),
        start=own(lambda one: _no_traces(len(one.memory))),
    )
    #: Of each bet the step after which a change shows, and the largest logarithm when that was looked for.
    _since: Integers = state(restored_codes, EACH, 0, FAR, start=own(lambda one: np.zeros(len(one.memory), np.int64)))
    _looked: Floats = state(restored_finite, EACH, start=own(lambda one: np.zeros(len(one.memory))))

    def derive(self) -> None:
        """Set up the reading of predictions."""
        self.space, self._smoothing = label_space(self.classes), Smoothing(self.seed)
        self._scorer = Scorer("the predictor", self.space)
        self._numbers = np.empty(OUTCOMES)
        self._standing: KeyStanding | None = None
        self._sources = () if self._guaranteed is None else self._bet_on(self._guaranteed)
        self._ranked = self._reads_ranks()
        wanted = len(self._sources) + int(self.counts.size > 0)
        if len(self.memory) != wanted or self.memory.shape[1:] != (WIDTH,):
            raise ValueError(f"memory must be that of {wanted} bets, got {len(self.memory)}")

    def _bet_on(self, guaranteed: str) -> tuple[Any, ...]:
        """Return the sources of p-values, besides the frequencies of classes."""
        each = usual_sources(guaranteed, self.space.labels)
        return tuple(one for one in each if not isinstance(one, ClassShare))

    def _reads_ranks(self) -> bool:
        """Whether it bets on the p-values of the classes of sets, as they are."""
        return self._guaranteed == ERROR_RATE and bool(self.space.labels)

    def _is_set(self, prediction: Any, truth: int) -> bool:
        """Whether a prediction is a set of these classes with a p-value of the label; else the scorer says why not."""
        return (
            getattr(prediction, "classes", None) == self.space.labels
            and hasattr(prediction, "p_values")
            and 0 <= prediction.p_values[truth] <= 1
        )

    def _begin(self, prediction: Any) -> None:
        self._guaranteed, self._standing = prediction.guaranteed, None
        self._sources = self._bet_on(self._guaranteed)
        self._ranked = self._reads_ranks()
        more = len(self._sources)
        self.memory = np.concatenate([no_bets(more), self.memory])
        self._traces = (*_no_traces(more), *self._traces)
        self._since = np.append(np.zeros(more, np.int64), self._since)
        self._looked = np.append(np.zeros(more), self._looked)

    def update(self, prediction: Any, y: Any) -> None:
        """Process a label and the prediction for its object from just before it is learned; None if there is none.

        Raises
        ------
        TypeError, ValueError
            It is no prediction with these labels, or guarantees something else than the first one.
        """
        truth = self.space.encode(y)
        if prediction is not None and prediction.guaranteed != self._guaranteed:
            if self._guaranteed is not None:
                raise ValueError(f"prediction must guarantee {self._guaranteed!r}, got {prediction.guaranteed!r}")
            self._begin(prediction)
        ps = [nan] * len(self.memory)
        if self._ranked and self._is_set(prediction, truth):
            ps[0] = float(prediction.p_values[truth])  # as below, and quicker
        elif prediction is not None and self._sources:
            row = np.empty(kind_of(prediction, "the predictor").breadth(self.space))
            predicted = self._scorer.score(prediction, truth, self._numbers, row)
            step, first = outcome(truth, predicted, self._numbers, row), self._smoothing.at(2 * self.n)
            for i, source in enumerate(self._sources):
                ps[i] = float(source.read(step, first)[0])
        if self.counts.size:
            self.counts[truth] += 1
            ps[-1] = rarity_of(self.counts.tolist(), truth, self._smoothing.at(2 * self.n + 1))
        self.n += 1
        for trace, p in zip(self._traces, ps, strict=True):
            if p == p:
                trace.add(p)
        if bet_each(self.memory, np.array(ps)):
            self._standing = None
            for i, most in enumerate(self.memory[:, 2].tolist()):
                if most >= self._looked[i] + 1.0 and most >= SHOWN:
                    self._since[i], self._looked[i] = self._traces[i].change(self.n).step, most

    def begin_anew(self) -> None:
        """Bet from the next step on as if it were the first, where the predictor has just trained.

        Raises
        ------
        ValueError
            It was not made for that: its e-value would be no e-value.
        """
        if not self.trains:
            raise ValueError("trains must be True, for bets to begin anew, got False")
        log_e, log_p, self._before_since, self._before_kind = self.standing
        self._before, self._round, self._standing = np.array([log_e, log_p]), self._round + 1, None
        bets = len(self.memory)
        self.memory, self._traces = no_bets(bets), _no_traces(bets)
        self._since, self._looked = np.zeros(bets, np.int64), np.zeros(bets)

    @property
    def _share(self) -> float:
        """The logarithm of the share of the present period: .9, then .1 / (r (r - 1)) of period r; the sum is 1."""
        if not self.trains:
            return 0.0
        return log(0.9) if self._round == 1 else log(0.1 / (self._round * (self._round - 1)))

    @property
    def standing(self) -> KeyStanding:
        """The evidence so far."""
        if self._standing is None:
            self._standing = self._stands()
        return self._standing

    def _stands(self) -> KeyStanding:
        logs = self.memory[:, 2]
        if not logs.size:
            return KeyStanding(log(0.5), 0.0, 0, "")
        best, each = int(logs.argmax()), log_adjusted(logs)
        log_e = float(np.logaddexp.reduce(each)) - log(len(each))
        log_p = max(0.0, float(self._before[1]), float(logs[best]) - log(len(logs)) + self._share)
        if self.trains:
            log_e = float(np.logaddexp(self._before[0], log_e + self._share))
        if self._before_since and not self._since[best]:
            return KeyStanding(log_e, log_p, self._before_since, self._before_kind)
        loud = logs >= max(BOTH * logs[best], 1e-300)
        named = [FIT] if loud[: len(self._sources)].any() else []
        named += [SHARES] if loud[len(self._sources) :].any() else []
        return KeyStanding(log_e, log_p, int(self._since[best]), " and ".join(named))
