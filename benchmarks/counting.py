"""How many examples a second does the compiled path count under all hypotheses?

    python benchmarks/counting.py

At n = 1e3, 1e5, 1e7 examples and c = 2, 4, 10 classes: the compiled counting of `Argmax`, the same by
vectorised numpy (score table of each hypothesis, argmax, bincount; in blocks where memory asks for
it), and a plain copy of as many bytes as counting reads (two scores for each class, a label and a weight
for each example). The copy moves every byte twice, in and out, so the memory's own speed is that
of two copies; both ratios are given. Prints one JSON line.
"""

from __future__ import annotations

import json
import time

import numpy as np
from threadpoolctl import threadpool_limits

from venn._compiled.counting import GRID, OFFSET, count_argmax


def by_numpy(negative, positive, n, labels, weights, test, block=1_000_000):
    """Counts by whole-array operations."""
    c = negative.shape[0]
    counts = np.zeros((c, c), np.int64)
    for j in range(c):

        def categories(columns, j=j):
            table = np.rint(negative[:, columns] * GRID + OFFSET)
            table[j] = np.rint(positive[j, columns] * GRID + OFFSET)
            return table.argmax(axis=0)

        wanted = categories(slice(test, test + 1))[0]
        for start in range(0, n, block):
            part = slice(start, min(n, start + block))
            beside = categories(part) == wanted
            counts[j] += np.bincount(labels[part][beside], weights[part][beside], minlength=c).astype(np.int64)
        counts[j, j] += 1
    return counts


def best_seconds(function, budget=1.0):
    """Return the fastest of the runs that fit into the budget, after one to warm up."""
    function()
    spent, fastest = 0.0, np.inf
    while spent < budget:
        start = time.perf_counter()
        function()
        fastest = min(fastest, time.perf_counter() - start)
        spent += time.perf_counter() - start
    return fastest


def main():
    rows = []
    rng = np.random.default_rng(0)
    with threadpool_limits(1):
        for c in (2, 4, 10):
            for n in (1_000, 100_000, 10_000_000):
                negative, positive = rng.random((c, n)), rng.random((c, n))
                negative -= 1.0
                labels = rng.integers(0, c, n)
                weights = np.ones(n, np.int64)
                arguments = (negative, positive, n, labels, weights, n - 1)
                assert (count_argmax(*arguments)[0] == by_numpy(*arguments)).all()
                ours = best_seconds(lambda a=arguments: count_argmax(*a))
                numpy_seconds = best_seconds(lambda a=arguments: by_numpy(*a))
                read = [negative, positive, labels, weights]
                into = [np.ones_like(array) for array in read]

                def copy(read=read, into=into):
                    for source, target in zip(read, into, strict=True):
                        np.copyto(target, source)

                copied = best_seconds(copy)
                rows.append(
                    {
                        "c": c,
                        "n": n,
                        "examples_a_second": round(n / ours),
                        "ratio_numpy": round(numpy_seconds / ours, 1),
                        "times_a_copy": round(ours / copied, 2),
                        "times_a_read_at_copy_bandwidth": round(2 * ours / copied, 2),
                    }
                )
                del negative, positive, labels, weights, arguments, read, into, copy
    print(json.dumps({"benchmark": "counting", "rows": rows}))


if __name__ == "__main__":
    main()
