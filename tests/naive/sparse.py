"""Sparse rows by dictionaries: what the entries of any format mean, and squared distances one feature at a time."""

import math


def entries(indices, values):
    """Return {feature: value} of a row given by indices in any order, duplicates added, zeros left out."""
    row = {}
    for f, value in zip(indices, values, strict=True):
        row[int(f)] = row.get(int(f), 0.0) + float(value)
    return {f: value for f, value in sorted(row.items()) if value != 0}


def product(a, b):
    """Return the inner product of two rows."""
    return math.fsum(value * b[f] for f, value in a.items() if f in b)


def distance(a, b):
    """Return the squared distance of two rows."""
    return math.fsum((a.get(f, 0.0) - b.get(f, 0.0)) ** 2 for f in a.keys() | b.keys())


def kernel(name, a, b):
    """Return the kernel of two rows: linear, RBF of width 0.5, or (<a, b> + 1)^2."""
    if name == "linear":
        return product(a, b)
    return math.exp(-0.5 * distance(a, b)) if name == "rbf" else (product(a, b) + 1) ** 2
