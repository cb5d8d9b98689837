"""Venn multicalibration by definition, in fractions: the normal equations of the whole bag, solved exactly."""

from fractions import Fraction


def solved(A, right):
    """Return one exact solution of A x = right, which has one, by elimination; free unknowns are 0."""
    m = len(A)
    rows = [[*map(Fraction, A[i]), Fraction(right[i])] for i in range(m)]
    places, r = [], 0
    for column in range(m):
        pivot = next((i for i in range(r, m) if rows[i][column] != 0), None)
        if pivot is None:
            continue
        rows[r], rows[pivot] = rows[pivot], rows[r]
        rows[r] = [value / rows[r][column] for value in rows[r]]
        for i in range(m):
            if i != r and rows[i][column] != 0:
                rows[i] = [a - rows[i][column] * b for a, b in zip(rows[i], rows[r], strict=True)]
        places.append(column)
        r += 1
    assert all(row[-1] == 0 for row in rows[r:]), "the equations have no solution"
    x = [Fraction(0)] * m
    for row, column in zip(rows, places, strict=False):
        x[column] = row[-1]
    return x


def values(scores, targets, functions, ridge=0, clip=False):
    """Return the exact values of all examples of a bag: score plus what is fitted to the errors.

    With a ridge, or clipped, they are those of broken variants.
    """
    g = [[Fraction(1), *map(Fraction, row)] for row in functions]
    s = list(map(Fraction, scores))
    errors = [Fraction(int(t)) - a for t, a in zip(targets, s, strict=True)]
    m = len(g[0])
    A = [[sum(row[i] * row[j] for row in g) + (Fraction(ridge) if i == j else 0) for j in range(m)] for i in range(m)]
    right = [sum(row[i] * e for row, e in zip(g, errors, strict=True)) for i in range(m)]
    beta = solved(A, right)
    fitted = [a + sum(b * c for b, c in zip(beta, row, strict=True)) for a, row in zip(s, g, strict=True)]
    return [min(max(p, Fraction(0)), Fraction(1)) for p in fitted] if clip else fitted


def pair(scores, targets, functions, score, function, **broken):
    """Return the values of a new example, supposed 0 and supposed 1."""
    return [values([*scores, score], [*targets, v], [*functions, function], **broken)[-1] for v in (0, 1)]


def imbalance(scores, targets, functions, pairs):
    """Return |sum over the bag of g (y - value)| for each function, each example having been the last one in turn."""
    g = [[1, *row] for row in functions]
    return [
        abs(sum(row[k] * (t - p[int(t)]) for row, t, p in zip(g, targets, pairs, strict=True)))
        for k in range(len(g[0]))
    ]
