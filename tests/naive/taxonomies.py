"""Taxonomies by definition: from the scores of one bag to categories, as tuples whose first entry is the top class."""

import numpy as np

from naive.venn import on_grid


def ranked(row):
    """Return the classes of a row of scores by falling score on the grid, ties in class order."""
    whole = on_grid(row)
    return sorted(range(len(row)), key=lambda k: (-whole[k], k))


def shares(row):
    """Return the softmax of a row of scores on the grid."""
    whole = on_grid(row) / 1e6
    terms = np.exp(whole - whole.max())
    return terms / terms.sum()


def argmax(scores):
    return [(ranked(row)[0],) for row in scores]


def top_two(scores):
    return [tuple(ranked(row)[:2]) for row in scores]


def exceeds(value, level):
    return bool(on_grid(value) > on_grid(level))


def threshold(level):
    return lambda scores: [(ranked(row)[0], exceeds(max(shares(row)), level)) for row in scores]


def runner_up(level):
    return lambda scores: [(ranked(row)[0], exceeds(sorted(shares(row))[-2], level)) for row in scores]


def gap(level):
    def categories(scores):
        answer = []
        for row in scores:
            low, high = sorted(shares(row))[-2:]
            answer.append((ranked(row)[0], exceeds(high - low, level)))
        return answer

    return categories


def margin(row):
    """Return the margin of a row of scores, in whole steps of the grid."""
    first, second = ranked(row)[:2]
    return on_grid(row)[first] - on_grid(row)[second]


def margin_bins(edges):
    return lambda scores: [
        (ranked(row)[0], sum(margin(row) >= round(edge * 1e6) for edge in edges)) for row in scores
    ]  # fmt: skip


def top_score_bins(edges):
    return lambda scores: [
        (ranked(row)[0], sum(on_grid(max(row)) >= on_grid(edge) for edge in edges)) for row in scores
    ]  # fmt: skip


def score_bins(bins, low, high):
    """Two classes: bins (low, high] of half the difference of the scores."""

    def categories(scores):
        width = (high - low) / bins
        answer = []
        for row in scores:
            twice = on_grid(row)[1] - on_grid(row)[0]
            place = sum(twice > round(2e6 * (low + k * width)) for k in range(1, bins))
            answer.append((int(low + (place + 0.5) * width > 0), place))
        return answer

    return categories


def adaptive(scores):
    """Floor of the cube root of the number of equal top classes: so many quantile bins."""
    tops = [ranked(row)[0] for row in scores]
    margins = [margin(row) for row in scores]
    answer = []
    for top, mine in zip(tops, margins, strict=True):
        rivals = [other for t, other in zip(tops, margins, strict=True) if t == top]
        bins = max(b for b in range(1, len(rivals) + 1) if b**3 <= len(rivals))
        answer.append((top, sum(other < mine for other in rivals) * bins // len(rivals)))
    return answer


def within(groups, taxonomy):
    """Return (group, category), the taxonomy applied to the rows of each group alone."""

    def categories(scores):
        answer = [None] * len(groups)
        for group in set(groups):
            rows = [i for i, g in enumerate(groups) if g == group]
            for i, category in zip(rows, taxonomy(scores[rows]), strict=True):
                answer[i] = (group, category)
        return answer

    return categories


def centroid(X, y, c, leave_one_out):
    """Return (n, c) minus the distances to the class means; -1e9 for a class without examples."""
    X, y = np.asarray(X, float), np.asarray(y)
    answer = np.full((len(y), c), -1e9)
    for i in range(len(y)):
        for k in range(c):
            members = [o for o in range(len(y)) if y[o] == k and not (leave_one_out and o == i)]
            if members:
                answer[i, k] = -np.linalg.norm(X[i] - X[members].mean(axis=0))
    return answer
