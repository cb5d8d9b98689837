"""Venn-Abers beyond one split and two classes: pairs merged, folds merged, several classes."""

import numpy as np
import pytest
from naive import abers as naive
from test_abers import close, signal

from venn.maps import (
    BrierMerge,
    LogMerge,
    cross_venn_abers,
)


def test_merges_at_known_values():
    close(LogMerge().merge(0.2, 0.5), 5 / 13)
    close(LogMerge().regret(0.2, 0.5), np.log(1.3))
    close(BrierMerge().merge(0.2, 0.5), 0.395)
    close(BrierMerge().regret(0.2, 0.5), 0.116025)
    assert LogMerge().merge(1.0, 0.0) == 0.5
    assert LogMerge().merge(1.0, 1.0) == BrierMerge().merge(1.0, 1.0) == 1.0


def test_merges_regret_both_labels_equally_and_least():
    p0, p1 = np.meshgrid(np.linspace(0.05, 0.95, 10), np.linspace(0.05, 0.95, 10))
    grid = np.linspace(0.001, 0.999, 999)[:, None, None]
    for merge, loss in (
        (LogMerge(), lambda p, y: -np.log(p if y else 1 - p)),
        (BrierMerge(), lambda p, y: (p - y) ** 2),
    ):
        p = merge.merge(p0, p1)
        first, second = loss(p, 0) - loss(p0, 0), loss(p, 1) - loss(p1, 1)
        assert np.allclose(first, second, atol=1e-12)
        assert np.allclose(first, merge.regret(p0, p1), atol=1e-12)
        worst = np.maximum(loss(grid, 0) - loss(p0, 0), loss(grid, 1) - loss(p1, 1)).min(axis=0)
        assert (first <= worst + 1e-12).all()


@pytest.mark.parametrize("merge", [LogMerge(), BrierMerge()])
@pytest.mark.parametrize("pair", [(-0.1, 0.5), (0.2, 1.5), (np.nan, 0.5)])
def test_merges_refuse_what_is_no_probability(merge, pair):
    for ask in (merge.merge, merge.regret, merge.merge_folds):
        with pytest.raises(ValueError, match=r"p[01] must lie in \[0, 1\], got"):
            ask(*pair)


def test_merging_over_folds():
    p0, p1 = np.array([[0.1, 0.0], [0.3, 0.5]]), np.array([[0.2, 0.5], [0.6, 1.0]])
    one, other = np.sqrt(p1[0] * p1[1]), np.sqrt((1 - p0[0]) * (1 - p0[1]))
    close(LogMerge().merge_folds(p0, p1), one / (one + other))
    close(BrierMerge().merge_folds(p0, p1), (p1 + p0**2 / 2 - p1**2 / 2).mean(axis=0))
    for merge in (LogMerge(), BrierMerge()):
        close(merge.merge_folds(p0[:1], p1[:1]), merge.merge(p0[0], p1[0]))


@pytest.mark.parametrize("merge", [LogMerge(), BrierMerge()])
def test_cross_venn_abers(merge):
    rng = np.random.default_rng(12)
    folds, scores = [], rng.integers(0, 20, (3, 15)) / 10
    for _ in range(3):
        s = rng.integers(0, 20, 40) / 10
        folds.append((s, signal(rng, s - 1)))
    pairs = np.array([[naive.refitted(*fold, s) for s in row] for fold, row in zip(folds, scores, strict=True)])
    close(cross_venn_abers(folds, scores, merge), merge.merge_folds(pairs[:, :, 0], pairs[:, :, 1]))
    with pytest.raises(ValueError, match="scores must have one row for each"):
        cross_venn_abers(folds, scores[:2])
    with pytest.raises(TypeError, match="merge must be a merge object"):
        cross_venn_abers(folds, scores, "log")


@pytest.mark.parametrize(
    "bad", [[10**400], ["x"], [[0.1], [0.1, 0.2]], [1j]], ids=["huge", "text", "ragged", "complex"]
)
@pytest.mark.parametrize("merge", [LogMerge(), BrierMerge()], ids=repr)
def test_a_pair_of_what_is_no_number_is_refused(merge, bad):
    with pytest.raises((TypeError, ValueError), match="p0 must"):
        merge.merge(bad, [0.5])
