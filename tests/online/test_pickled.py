"""Objects are compared, and named, by what pickle would keep of them, without what is there by chance."""

import copy

import numpy as np
import pytest
from sklearn.neighbors import KDTree

from venn.description import same_content


def records(between):
    """Two records of a byte and a double, `between` in the seven bytes that no field has."""
    table = np.zeros(2, np.dtype("i1,f8", align=True))
    table.view(np.uint8)[:] = between
    table["f0"], table["f1"] = [1, 2], [0.5, 0.25]
    return table


def asked(times):
    """A tree that counts how often it was asked."""
    tree = KDTree(np.arange(12.0).reshape(6, 2))
    for _ in range(times):
        tree.query([[0.0, 0.0]])
    return tree


def filled(times):
    """A masked array that has made its filler, or not."""
    array = np.ma.masked_array([1.0, 2.0], [True, False])
    for _ in range(times):
        assert array.fill_value == 1e20
    return array


@pytest.mark.parametrize("make", [records, asked, filled])
def test_what_is_there_by_chance_does_not_count(make):
    one, other = make(0), make(3)
    assert same_content(one, other)


def test_what_a_record_holds_counts():
    one, other = records(0), records(0)
    other["f1"][1] = 0.75
    assert not same_content(one, other)


def test_an_object_that_holds_itself_is_the_same_as_its_copy():
    own = [1, {"a": 2.0}]
    own.append(own)
    other = copy.deepcopy(own)
    assert same_content(own, other)
    other[1]["a"] = 3.0
    assert not same_content(own, other)
