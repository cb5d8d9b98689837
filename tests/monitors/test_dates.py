"""Alarms of what watches objects and examples, and the dates of their changes, are those of slow definitions."""

import math

import numpy as np
import pytest
from naive import change as by_hand

from venn.monitors import AmongAll, ClassDrift, Drift
from venn.monitors.class_drift import WITHIN
from venn.smoothing import Smoothing

JUMPS, STAKES = (1e-4, 1e-3, 1e-2, 0.1, 1.0), (-1.0, -0.5, 0.0, 0.5, 1.0)
SOON, LONG = 150, 1000


def ranks(objects, k, taus):
    """Return the p-value of each object among those up to it, by the sums of distances to the k nearest others."""
    apart = np.linalg.norm(objects[:, None] - objects[None], axis=2)
    np.fill_diagonal(apart, np.inf)
    found = []
    for n in range(1, len(objects) + 1):
        near = np.partition(apart[:n, :n], min(k, n) - 1, axis=1)[:, :k]
        sums = np.round(np.where(near < np.inf, near, 0.0).sum(axis=1), 9)
        found.append(((sums > sums[-1]).sum() + taus[n - 1] * (sums == sums[-1]).sum()) / n)
    return found


class Capitals:
    """The capital of the mean of jumpers before any p-value and after each."""

    def __init__(self):
        self.path = [1.0]
        self.each = [[1 / 5] * 5 for _ in JUMPS]

    def add(self, p):
        for k, jump in enumerate(JUMPS):
            total = sum(self.each[k])
            mixed = [(1 - jump) * c + jump / 5 * total for c in self.each[k]]
            self.each[k] = [c * (1 + e * (p - 0.5)) for e, c in zip(STAKES, mixed, strict=True)]
        self.path.append(sum(map(sum, self.each)) / len(JUMPS))


def dated(ps, n, since):
    """Return the change of the steps after `since` up to n, of which some have no p-value: None."""
    while ps[since] is None:
        since += 1
    ratios = [[1.0] * 12 if p is None else by_hand.p_value_ratios(p) for p in ps[since:n]]
    return by_hand.change_point(ratios, since + 1)


def watched(objects, k, taus, level, run_length):
    """Return the steps and detectors of all alarms, and of each change first and last alarm, date, and when it began
    anew and ended."""
    began, rung, ever, summed = 0, False, Capitals(), Capitals()
    alarms, cases, shown = [], [], []
    ps = ranks(objects, k, taus)
    for n in range(1, len(objects) + 1):
        if cases and not cases[-1]["ended"]:
            case = cases[-1]
            if case["last"] > case["anew"] and n - 1 - max(case["first"], case["anew"]) >= SOON:
                case["anew"] = began = n - 1
                rung, ever, summed = False, Capitals(), Capitals()
                ps = shown + ranks(objects[began:], k, taus[began:])
            if n - 1 - case["last"] >= LONG:
                case["ended"] = n - 1
        shown.append(ps[n - 1])
        found = []
        ever.add(shown[-1])
        summed.add(shown[-1])
        if not rung and ever.path[-1] >= 1 / level:
            rung = True
            found.append("Ville")
        if sum(summed.path[-1] / one for one in summed.path[:-1]) >= run_length:
            summed = Capitals()
            found.append("ShiryaevRoberts")
        if found:
            alarms += [(n, one) for one in found]
            case = cases[-1] if cases and not cases[-1]["ended"] else None
            another = case is not None and 0 < case["anew"] <= n - SOON and case["last"] <= case["anew"]
            if case is not None and not another:
                case["last"] = n
            else:
                if case is not None:
                    case["ended"] = n
                cases.append({"first": n, "last": n, "change": dated(shown, n, began), "anew": 0, "ended": 0})
    return alarms, cases


def in_random_blocks(one, X, codes, rng):
    """Take blocks of random sizes as a run does: what `go` leaves is for `update`; return all alarms."""
    found, at = [], 0
    while at < len(X):
        end = min(at + int(rng.integers(1, 90)), len(X))
        while at < end:
            more = () if codes is None else (codes[at:end],)
            count = one.go(X[at:end], *more) if one.takes(X[at:end]) else 0
            at += count
            if one.pending:
                found += one.tell()
            elif not count:
                found += one.update(X[at], *(() if codes is None else (one.classes[codes[at]],)))
                at += 1
    return found


def of(case):
    date = case.change.step, case.change.lower, case.change.upper
    return {"first": case.first, "last": case.last, "change": date, "anew": case.anew, "ended": case.ended}


@pytest.mark.parametrize("seed", range(2))
def test_objects_ring_when_they_should_and_changes_are_dated(seed):
    rng = np.random.default_rng(seed)
    X = np.round(2.0 * rng.normal(size=(520, 2))) / 2.0
    X[80:] *= 6.0
    X[430:] *= 6.0
    taus = [Smoothing(seed).at(i) for i in range(len(X))]
    alarms, cases = watched(X, 2, taus, 0.05, 1000)
    assert len(cases) > 1
    assert {one for _, one in alarms} == {"Ville", "ShiryaevRoberts"}
    for blocks in (False, True):
        drift = Drift(AmongAll(2), level=0.05, run_length=1000, seed=seed)
        rung = in_random_blocks(drift, X, None, rng) if blocks else [one for x in X for one in drift.update(x)]
        assert [(one.step, one.detector) for one in rung] == alarms
        assert [of(one) for one in drift.cases] == cases


@pytest.mark.parametrize("share", [0.0, 0.5, 0.75])
@pytest.mark.parametrize("seed", range(2))
def test_a_change_is_dated_among_all_examples_though_some_have_gaps(share, seed):
    rng = np.random.default_rng([seed, 7])
    X, codes = rng.integers(0, 3, size=(900, 3)) / 2.0, rng.integers(0, 2, size=900)
    X[500:] += 1.5
    X[rng.random(900) < share, 2] = np.nan
    for first in (0, 20):
        X += 0.1 * rng.normal(size=X.shape) if first else 0.0  # on a scale, what is equal is so but for rounding
        one = ClassDrift(["a", "b"], AmongAll(2), first=first, seed=seed)
        in_random_blocks(one, X, codes, rng)
        case = next(case for case in one.cases if case.part == WITHIN)
        whole = np.flatnonzero(~np.isnan(X).any(axis=1))
        ps = [None] * len(X)
        scaled = X
        if first:
            low, middle, high = np.percentile(X[whole[:first]], [25, 50, 75], axis=0)
            scaled, whole = (X - middle) / ((high - low) / 1.349), whole[first:]
        for code in (0, 1):
            places = whole[codes[whole] == code]
            of_class = ranks(scaled[places], 2, [Smoothing(seed).at(2 * int(i) + 1) for i in places])
            for i, p in zip(places, of_class, strict=True):
                ps[i] = p
        step, lower, upper = dated(ps, case.first, 0)
        assert (case.change.step, case.change.lower, case.change.upper) == (step, lower, upper)
        assert lower - 5 <= 501 <= upper + 5


def test_an_object_that_rings_as_a_whole_is_dated_among_all_though_some_have_gaps():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(1200, 4))
    X[700:, 1:] = X[700:, :1] + 0.05 * X[700:, 1:]  # each column stays as it was
    X[rng.random(1200) < 0.5, 3] = np.nan
    drift = Drift(AmongAll(3), columns=True)
    in_random_blocks(drift, X, None, rng)
    (case,) = drift.cases
    assert not case.columns
    places = np.flatnonzero(~np.isnan(X).any(axis=1))
    ps = [None] * len(X)
    for i, p in zip(places, ranks(X[places], 3, [Smoothing(0).at(int(i)) for i in places]), strict=True):
        ps[i] = p
    assert (case.change.step, case.change.lower, case.change.upper) == dated(ps, case.first, 0)
    assert math.isclose(case.change.step, 701, abs_tol=20)
