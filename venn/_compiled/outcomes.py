"""One prediction scored against the true label: the numbers behind curves, monitors and records."""

import numpy as np

from venn._compiled.jit import compiled

# Columns of the numbers of one step.
LOWER, UPPER, CONFIDENCE, PROBABILITY, BRIER, OWN, REALISED, REALISED_CLASS, UNANIMOUS = range(9)
WIDTH = 9
FINE, NO_PROBABILITIES = 0, 1
SUM_TOLERANCE = 1e-6


@compiled
def score_point(proba, predicted, truth, numbers, row):  # type: ignore[no-untyped-def]
    """Score a point forecast (c,), which is a multiprobability whose rows are all the same."""
    c = proba.shape[0]
    total, brier, best = 0.0, 0.0, 0
    for k in range(c):
        p = proba[k]
        if not p >= 0.0:
            return NO_PROBABILITIES
        total += p
        brier += (p - (k == truth)) ** 2
        best = k if p > proba[best] else best
        row[k] = p
    if not abs(total - 1.0) <= SUM_TOLERANCE:
        return NO_PROBABILITIES
    numbers[LOWER] = numbers[UPPER] = numbers[CONFIDENCE] = numbers[OWN] = proba[predicted]
    numbers[PROBABILITY] = proba[truth]
    numbers[BRIER] = brier
    numbers[REALISED] = proba[best]
    numbers[REALISED_CLASS] = best
    numbers[UNANIMOUS] = 1.0
    return FINE


@compiled
def score_rows(rows, predicted, truth, numbers, row):  # type: ignore[no-untyped-def]
    """Score a multiprobability (c, c); its point forecast is the mean of the rows."""
    c = rows.shape[0]
    total, brier, unanimous, first = 0.0, 0.0, True, 0
    lower, upper = np.inf, -np.inf
    confidence, probability = 0.0, 0.0
    for j in range(c):
        best = 0
        for k in range(c):
            p = rows[j, k]
            if not p >= 0.0:
                return NO_PROBABILITIES
            total += p
            best = k if p > rows[j, best] else best
        if j == 0:
            first = best
        unanimous = unanimous and best == first
        if j == truth:
            numbers[REALISED_CLASS] = best
            numbers[REALISED] = rows[j, best]
        lower = min(lower, rows[j, predicted])
        upper = max(upper, rows[j, predicted])
    if not abs(total - c) <= SUM_TOLERANCE * c:
        return NO_PROBABILITIES
    for k in range(c):
        mean = 0.0
        for j in range(c):
            mean += rows[j, k]
        mean /= c
        brier += (mean - (k == truth)) ** 2
        if k == truth:
            probability = mean
        if k == predicted:
            confidence = mean
        row[k] = rows[truth, k]
    numbers[LOWER], numbers[UPPER] = lower, upper
    numbers[CONFIDENCE], numbers[PROBABILITY], numbers[BRIER] = confidence, probability, brier
    numbers[OWN] = rows[truth, predicted]
    numbers[UNANIMOUS] = unanimous
    return FINE


@compiled
def score_pairs(pairs, predicted, truth, numbers, row):  # type: ignore[no-untyped-def]
    """Score class intervals (c, 2); the point forecast is their means over the sum of the means."""
    c = pairs.shape[0]
    total = 0.0
    best0, best1 = 0, 0
    for k in range(c):
        p0, p1 = pairs[k, 0], pairs[k, 1]
        if not (p0 >= 0.0 and p1 >= 0.0 and p0 <= 1.0 and p1 <= 1.0):
            return NO_PROBABILITIES
        total += 0.5 * (p0 + p1)
        best0 = k if p0 > pairs[best0, 0] else best0
        best1 = k if p1 > pairs[best1, 1] else best1
        row[k] = p1 if k == truth else p0
    brier = 0.0
    for k in range(c):
        p = 0.5 * (pairs[k, 0] + pairs[k, 1]) / total if total > 0.0 else 1.0 / c
        brier += (p - (k == truth)) ** 2
        if k == truth:
            numbers[PROBABILITY] = p
        if k == predicted:
            numbers[CONFIDENCE] = p
    numbers[LOWER] = min(pairs[predicted, 0], pairs[predicted, 1])
    numbers[UPPER] = max(pairs[predicted, 0], pairs[predicted, 1])
    numbers[BRIER] = brier
    numbers[OWN] = numbers[REALISED] = row[predicted]
    numbers[REALISED_CLASS] = predicted
    numbers[UNANIMOUS] = best0 == best1
    return FINE


@compiled
def score_set(p_values, predicted, truth, numbers, row):  # type: ignore[no-untyped-def]
    """Score p-values (c,): that of the true label, of the predicted one, and the confidence."""
    c = p_values.shape[0]
    second = 0.0
    for k in range(c):
        p = p_values[k]
        if not (p >= 0.0 and p <= 1.0):
            return NO_PROBABILITIES
        if k != predicted:
            second = max(second, p)
        row[k] = p
    numbers[:] = 0.0
    numbers[CONFIDENCE] = 1.0 - second
    numbers[PROBABILITY] = p_values[truth]
    numbers[OWN] = p_values[predicted]
    return FINE


@compiled
def score_each_point(proba, predicted, truths, numbers, rows):  # type: ignore[no-untyped-def]
    """Score point forecasts (n, c); return the number of the first that is not fine, or n."""
    for i in range(proba.shape[0]):
        if score_point(proba[i], predicted[i], truths[i], numbers[i], rows[i]) != FINE:
            return i
    return proba.shape[0]


@compiled
def score_each_rows(rows, predicted, truths, numbers, own):  # type: ignore[no-untyped-def]
    """Score multiprobabilities (n, c, c); return the number of the first that is not fine, or n."""
    for i in range(rows.shape[0]):
        if score_rows(rows[i], predicted[i], truths[i], numbers[i], own[i]) != FINE:
            return i
    return rows.shape[0]


@compiled
def score_each_pairs(pairs, predicted, truths, numbers, rows):  # type: ignore[no-untyped-def]
    """Score class intervals (n, c, 2); return the number of the first that is not fine, or n."""
    for i in range(pairs.shape[0]):
        if score_pairs(pairs[i], predicted[i], truths[i], numbers[i], rows[i]) != FINE:
            return i
    return pairs.shape[0]


@compiled
def score_each_set(p_values, predicted, truths, numbers, rows):  # type: ignore[no-untyped-def]
    """Score p-values (n, c); return the number of the first that is not fine, or n."""
    for i in range(p_values.shape[0]):
        if score_set(p_values[i], predicted[i], truths[i], numbers[i], rows[i]) != FINE:
            return i
    return p_values.shape[0]


@compiled
def add_graded(predicted, truths, numbers, rows, clip, sums, table):  # type: ignore[no-untyped-def]
    """Write what a monitor averages of n probability predictions into `table` (n, 9), and add it to `sums`."""
    for i in range(numbers.shape[0]):
        ring, probability = table[i], numbers[i, PROBABILITY]
        clipped = probability < clip
        ring[0] = predicted[i] == truths[i]
        ring[1] = numbers[i, LOWER]
        ring[2] = numbers[i, UPPER]
        ring[3] = -np.log(clip if clipped else probability)
        ring[4] = numbers[i, BRIER]
        ring[5] = numbers[i, CONFIDENCE]
        ring[6] = numbers[i, REALISED_CLASS] == truths[i]
        ring[7] = numbers[i, REALISED]
        ring[8] = clipped
        for column in range(sums.shape[0]):
            sums[column] += ring[column]


@compiled
def add_set(predicted, truths, numbers, rows, levels, sums, table):  # type: ignore[no-untyped-def]
    """Write what a monitor averages of n prediction sets into `table` (n, 3 + 2 * levels), and add it to `sums`."""
    for i in range(numbers.shape[0]):
        ring = table[i]
        ring[0] = predicted[i] == truths[i]
        ring[1] = numbers[i, OWN]
        ring[2] = numbers[i, CONFIDENCE]
        for place in range(levels.shape[0]):
            level = levels[place]
            size = 0
            for p in rows[i]:
                size += p > level
            ring[3 + place] = numbers[i, PROBABILITY] <= level
            ring[3 + levels.shape[0] + place] = size
        for column in range(sums.shape[0]):
            sums[column] += ring[column]


@compiled
def mean_of_latest(ring, n, size, window, means):  # type: ignore[no-untyped-def]
    """Set `means` to those of the latest rows of n, whose row i stands at place i modulo the window."""
    for j in range(len(means)):
        means[j] = 0.0
    for i in range(n - size, n):
        row = ring[i % window]
        for j in range(len(means)):
            means[j] += row[j]
    for j in range(len(means)):
        means[j] /= size


@compiled
def keep_latest(ring, n, window, table, stops, means):  # type: ignore[no-untyped-def]
    """Put rows after n others into their places; write the means of the latest ones after each of some stops."""
    done = 0
    for k in range(len(stops)):
        keep_rows(ring, n, window, table, done, stops[k])
        done = stops[k]
        mean_of_latest(ring, n + done, min(n + done, window), window, means[k])
    keep_rows(ring, n, window, table, done, len(table))


@compiled
def keep_rows(ring, n, window, table, start, stop):  # type: ignore[no-untyped-def]
    """Put rows from `start` to `stop` into their places after n + `start` others."""
    for i in range(start, stop):
        row = ring[(n + i) % window]
        for j in range(table.shape[1]):
            row[j] = table[i, j]
