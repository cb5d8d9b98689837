"""Sparse tables stay sparse, are put in order, and are refused where they are bad."""

import pickle

import numpy as np
import pytest
from scipy import sparse

import streams
from streams import Scaling


def filled(n=30, d=12, seed=0):
    rng = np.random.default_rng(seed)
    return sparse.csr_array(rng.uniform(size=(n, d)) * (rng.uniform(size=(n, d)) < 0.2))


@pytest.mark.parametrize("of", [sparse.csr_array, sparse.csr_matrix, sparse.coo_array, sparse.csc_matrix])
def test_what_is_sparse_stays_sparse(of):
    X, y = of(filled()), [0, 1, 2] * 10
    stream = streams.from_arrays(X, y, shuffle=4)
    dense = streams.from_arrays(X.toarray(), y, shuffle=4)
    for one, other in ((stream, dense), (stream.take(7), dense.take(7)), (stream.drop(7), dense.drop(7))):
        assert isinstance(one.X, sparse.csr_array)
        assert one.X.nnz == np.count_nonzero(other.X)
        assert len(one) == len(other)
        for (x, label), (row, same) in zip(one, other, strict=True):
            assert isinstance(x, sparse.csr_array)
            assert x.shape == (1, 12)
            assert x.dtype == np.float64
            assert np.array_equal(x.toarray()[0], row)
            assert label == same
    again = pickle.loads(pickle.dumps(stream))
    assert (again.X != stream.X).nnz == 0
    for array in (again.X.data, stream.X.indices, next(iter(stream))[0].data):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


def test_entries_twice_out_of_order_and_zero_are_made_one():
    X = sparse.csr_array((np.array([1.0, 2.0, 0.0, 5.0]), np.array([2, 2, 1, 0]), np.array([0, 4])), shape=(1, 3))
    stream = streams.from_arrays(X, ["a"])
    assert stream.X.indices.tolist() == [0, 2]
    assert stream.X.data.tolist() == [5.0, 3.0]
    assert X.nnz == 4  # the caller's own is left as it was


def test_a_scaling_of_mean_zero_keeps_it_sparse():
    X = filled()
    scaling = Scaling(np.zeros(12), np.arange(1.0, 13.0))
    stream = streams.from_arrays(X, [0, 1] * 15, scale=scaling)
    assert np.array_equal(stream.X.toarray(), scaling(X.toarray()))
    assert stream.X.nnz == X.nnz
    assert np.array_equal(scaling(X[:1]).toarray(), scaling(X[:1].toarray()))
    with pytest.raises(ValueError, match=r"mean must be 0 for sparse objects, .* got 2.0 for feature 3"):
        streams.from_arrays(X, [0, 1] * 15, scale=Scaling([0.0] * 3 + [2.0] * 9, np.ones(12)))
    with pytest.raises(ValueError, match="scale must be False or a Scaling of mean 0 for a sparse X"):
        streams.from_arrays(X, [0, 1] * 15, scale=True)
    with pytest.raises(ValueError, match="scale must keep values finite, but feature 'x0' overflows"):
        streams.from_arrays(sparse.csr_array([[1e300]]), [0], scale=Scaling([0.0], [1e-300]))


def test_bad_sparse_tables_are_refused():
    X = filled().tolil()
    X[3, 5] = np.nan
    with pytest.raises(ValueError, match="X, row 3, column 'x5' must be a finite number, got nan"):
        streams.from_arrays(X.tocsc(), [0, 1] * 15)
    with pytest.raises(ValueError, match="at least one example and one feature"):
        streams.from_arrays(sparse.csr_array((0, 3)), [])
    with pytest.raises(ValueError, match="y must hold one label for each of the 30 rows"):
        streams.from_arrays(filled(), [0])
    with pytest.raises(TypeError, match="got complex128"):
        streams.from_arrays(filled().astype(complex), [0, 1] * 15)
