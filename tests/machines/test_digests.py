"""Digests of objects: what is equal has equal ones, in full or sparse; nothing else has, nor do they show a pattern."""

import itertools

import numpy as np
import pytest
from naive import coins
from scipy import sparse, stats

from venn.machines.digests import digest_of, digests_of
from venn.machines.objects import clean_rows
from venn.machines.sparse import clean_sparse, rows_of


def rows(n=40, d=7, seed=0):
    rng = np.random.default_rng(seed)
    return np.where(rng.random((n, d)) < 0.5, rng.normal(size=(n, d)) * 10.0 ** rng.integers(-300, 300, (n, d)), 0.0)


def test_digests_are_the_definition():
    X = rows()
    X[3], X[4] = 0.0, -0.0
    assert digests_of(X).tolist() == [coins.digest(x) for x in X.tolist()]
    assert digests_of(X[:0]).tolist() == []
    assert digests_of(np.array([[1.0, 0.0, -2.5]])).tolist() == [3173871657815479109]  # on every platform, for ever


@pytest.mark.parametrize("form", [sparse.csr_array, sparse.csc_array, sparse.coo_array, sparse.lil_matrix])
def test_a_sparse_row_has_the_digest_of_the_row_in_full(form):
    X = rows()
    wanted = digests_of(X)
    clean = clean_rows(form(X), 7)
    assert np.array_equal(digests_of(clean), wanted)
    chosen = np.array([5, 5, 0, 39, 17])
    for some in (chosen, slice(3, 30, 4), wanted % 2 == 0):
        assert np.array_equal(digests_of(clean[some]), wanted[some])
    assert [digest_of(form(X[[i]])) for i in range(40)] == wanted.tolist()


def test_zeros_of_either_sign_count_for_nothing_kept_or_not():
    X = np.array([[0.0, 2.0, -0.0], [-0.0, 2.0, 0.0]])
    kept = sparse.csr_array((np.array([0.0, 2.0, -0.0]), np.array([0, 1, 2]), np.array([0, 3])), shape=(1, 3))
    digests = [*digests_of(X), *digests_of(rows_of(X)), *digests_of(clean_sparse("X", kept, 3))]
    assert len(set(digests)) == 1


def test_one_object_in_whatever_form():
    wanted = coins.digest([1.0, 0.0, 3.0])
    for x in ([1, 0, 3], (True, -0.0, 3.0), np.array([1, 0, 3], np.float32), np.array([9, 1, 0, 3])[1:],
              np.array([[1.0, 9.0], [0.0, 9.0], [3.0, 9.0]])[:, 0], sparse.csr_array([[1.0, 0.0, 3.0]])):  # fmt: skip
        assert digest_of(x) == wanted
    frozen = np.array([1.0, 0.0, 3.0])
    frozen.setflags(write=False)
    assert digest_of(frozen) == wanted


@pytest.mark.parametrize("x", ["text", ["a", "b"], {"a": 1}, None, 7.0, [[1.0]], [[1.0], [1.0, 2.0]], object()])
def test_what_is_no_row_of_numbers_has_the_digest_of_none(x):
    """A machine of one's own may take it."""
    assert digest_of(x) == 0


CROWDED = {  # objects that a weak digest would confuse
    "all rows of 0 and 1": np.array(list(itertools.product([0.0, 1.0], repeat=15))),
    "counted": np.arange(1.0, 20_001.0)[:, None],
    "one of 500 features": np.eye(500),
    "neighbouring numbers": (1.0 + np.arange(20_000) * 2.0**-52)[:, None],
    "small whole numbers": np.array(list(itertools.product(range(-13, 14), repeat=3)), float),
    "permutations": np.array(list(itertools.permutations(range(1, 8))), float),
}


@pytest.mark.parametrize("name", CROWDED)
def test_digests_differ_and_each_bit_of_them_looks_random(name):
    digests = digests_of(CROWDED[name])
    n = len(digests)
    assert len(np.unique(digests)) == n
    ones = ((digests[:, None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1)).sum(axis=0)
    assert 2 * stats.norm.sf(abs(ones - n / 2).max() / (n**0.5 / 2)) * 64 > 1e-3
