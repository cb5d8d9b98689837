"""What watches objects and examples takes rows in blocks as one by one, to the last bit."""

import numpy as np
import pytest

from venn.monitors import AmongAll, ClassDrift, Drift
from venn.monitors.naming import Naming
from venn.saved import same

SIZES = 1, 7, 64, 1000


def rows(kind, n=1500, d=3, seed=0):
    """Return objects that change twice, and come back."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X[400:750, 0] += 4.0
    X[1100:, 1] *= 5.0
    if kind == "ties":
        X = np.round(X)
    elif kind == "gaps":
        X[rng.random((n, d)) < 0.05] = np.nan
        X[700:, 2] = np.where(rng.random(n - 700) < 0.6, np.nan, X[700:, 2])
    elif kind == "constant":
        X[:, 2] = 1.0
        X[:600, 1] = 0.0
    return X


def labels(n, classes, rare, seed=1):
    """Return codes whose shares change."""
    rng = np.random.default_rng(seed)
    shares = np.ones(classes)
    shares[-1] = 0.02 if rare else 0.2
    later = shares[::-1] * np.arange(1, classes + 1)
    first = rng.choice(classes, size=n, p=shares / shares.sum())
    return np.where(np.arange(n) < 500, first, rng.choice(classes, size=n, p=later / later.sum()))


def singly(one, seen):
    return [one.update(*row) for row in seen]


def in_blocks(one, X, codes, size):
    """Take blocks as a run does: what `go` leaves is for `update`."""
    found, at = [], 0
    while at < len(X):
        end, part = min(at + size, len(X)), X[at : at + size]
        while at < end:
            more = () if codes is None else (codes[at:end],)
            count = one.go(X[at:end], *more) if one.takes(part) else 0
            at += count
            found += [()] * count
            if one.pending:
                found[-1] = one.tell()
            elif not count:
                found.append(one.update(X[at], *(() if codes is None else (one.classes[codes[at]],))))
                at += 1
    return found


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", ["plain", "ties", "gaps", "constant"])
@pytest.mark.parametrize("columns", [False, True])
def test_objects_in_blocks_are_watched_as_one_by_one(kind, columns, size):
    if kind == "gaps" and not columns:
        pytest.skip("a gap has no distances")
    X = rows(kind)
    alone, blocks = (Drift(AmongAll(4, size=300), first=30, columns=columns, level=0.05) for _ in range(2))
    wanted, found = singly(alone, [(x,) for x in X]), in_blocks(blocks, X, None, size)
    assert found == wanted
    assert sum(map(bool, wanted)) > 1
    assert len(alone.cases) > 1
    assert any(one.ended or one.anew for one in alone.cases)
    assert same(alone.state, blocks.state)
    assert same(alone.snapshot(), blocks.snapshot())


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", ["plain", "ties", "gaps", "constant"])
@pytest.mark.parametrize("classes", [2, 5])
def test_examples_in_blocks_are_watched_as_one_by_one(kind, classes, size):
    X, codes = rows(kind), labels(1500, classes, classes == 5)
    names = [f"c{k}" for k in range(classes)]
    alone, blocks = (ClassDrift(names, AmongAll(4, size=300), first=30, level=0.05) for _ in range(2))
    wanted = singly(alone, [(x, names[code]) for x, code in zip(X, codes, strict=True)])
    assert in_blocks(blocks, X, codes, size) == wanted
    assert {one.part for one in alone.cases} == {"labels", "objects within classes"}
    assert any(one.anew for one in alone.cases)
    assert same(alone.state, blocks.state)
    assert same(alone.snapshot(), blocks.snapshot())


def test_unscaled_objects_and_too_many_columns_come_in_blocks():
    X = rows("plain", d=101)
    for columns in (False, True):
        alone, blocks = (Drift(AmongAll(3), columns=columns) for _ in range(2))
        assert in_blocks(blocks, X, None, 64) == singly(alone, [(x,) for x in X])
        assert same(alone.state, blocks.state)


def test_what_a_drift_would_refuse_no_block_takes():
    one, two = Drift(first=30), ClassDrift(["no", "yes"], first=30)
    for x in rows("plain", 40):
        one.update(x)
        two.update(x, "no")
    good = rows("plain", 5)
    assert one.takes(good)
    assert two.takes(good)
    for bad in (np.full((2, 3), 1e200), np.full((2, 3), np.inf), np.ones((2, 4)), np.full((2, 3), 1e-300)):
        assert not one.takes(bad)
        assert not two.takes(bad)
    assert not one.takes(np.full((2, 3), np.nan))


def test_a_block_that_goes_on_behind_a_name_is_found_out(monkeypatch):
    monkeypatch.setattr(Naming, "bound", np.inf)
    X = rows("plain")
    alone, blocks = (Drift(AmongAll(4, size=300), first=30, columns=True, level=0.05) for _ in range(2))
    found = in_blocks(blocks, X, None, 64)
    monkeypatch.undo()
    assert found != singly(alone, [(x,) for x in X])
