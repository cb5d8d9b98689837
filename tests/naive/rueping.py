"""What the tables of the study of Rueping (2004) are made of, by definition."""

import math


def mean_squared_error(p: list[float], y: list[int]) -> float:
    return sum((label - q) ** 2 for q, label in zip(p, y, strict=True)) / len(p)


def cross_entropy(p: list[float], y: list[int]) -> float:
    total = 0.0
    for q, label in zip(p, y, strict=True):
        right = q if label == 1 else 1 - q
        total += math.inf if right == 0 else -math.log(right)
    return total / len(p)


def mean_ranks(values: list[list[float]]) -> list[float]:
    """Return the mean rank of each row over the columns: 1 + number of smaller values in the column."""
    ranks = [
        [1 + sum(other[c] < row[c] for other in values) for c in range(len(row))]
        for row in values
    ]  # fmt: skip
    return [sum(row) / len(row) for row in ranks]
