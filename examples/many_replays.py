"""
Which C is best for the machine on each data set, and is the answer more than the luck of one order?
====================================================================================================

Every combination of data set, C and shuffle is a task; processes of this machine do them in parallel, and results
are kept: a second run only reads them::

    python examples/many_replays.py    # or with the address of a Dask scheduler, tcp://HOST:8786
"""

import sys
from functools import partial

import streams
import venn
from venn.scale import grid, replays


def sharp(classes, C):
    """Make the predictor of one replay; a function at the top of a module, which the workers import."""
    return venn.TransductiveVennAbers(venn.LeastSquaresSVM(venn.RBF(0.1), C, classes))


def main():
    """Replay, and say which C had the least log loss, and how sure that is."""
    address = sys.argv[1] if len(sys.argv) > 1 else None
    penalties = (0.1, 1, 10)
    tasks = grid(
        stream={name: partial(streams.load, name) for name in ("car", "breast_cancer")},
        predictor={"sharp": sharp},
        shuffle=range(4),
        steps=150,
        C=penalties,
    )
    rows = replays(tasks, "runs/many_replays", cluster=address)  # a list of dicts: pandas.DataFrame(rows)
    for data in ("car", "breast_cancer"):
        losses = {
            (row["shuffle"], row["C"]): row["log_loss"] for row in rows if row["stream"] == data and not row["error"]
        }
        print(data, *(f"C={C:g}: {sum(losses[i, C] for i in range(4)) / 4:.3f}" for C in penalties), sep="  ")
        best = [min(penalties, key=lambda C, i=i: losses[i, C]) for i in range(4)]
        print(f"  least log loss in each of 4 orders: C = {', '.join(f'{C:g}' for C in best)}")
    print(f"{len(rows)} replays in runs/many_replays; run it again, and nothing is done twice")


if __name__ == "__main__":  # the workers import this file
    main()
