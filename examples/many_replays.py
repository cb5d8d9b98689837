"""
Which C is best for the machine on each data set, and is the answer more than the luck of one order?
====================================================================================================

Every combination of data set, order and C is a task of Dask; processes of this machine do them in parallel::

    python examples/many_replays.py    # or with the address of a Dask scheduler, tcp://HOST:8786
"""

import sys
from itertools import product

import dask

import streams
import venn

SETS, ORDERS, PENALTIES = ("car", "breast_cancer"), range(4), (0.1, 1, 10)


@dask.delayed
def log_loss(data, order, C):
    """Replay once, in the process that does it."""
    stream = streams.load(data, shuffle=order)
    model = venn.TransductiveVennAbers(venn.LeastSquaresSVM(venn.RBF(0.1), C, stream.classes))
    record = venn.replay(stream, venn.Panel(model=model), steps=150, progress=False)
    return record.means()["model"]["log_loss"]


def main():
    """Replay, and say which C had the least log loss, and how sure that is."""
    where = "processes"
    if len(sys.argv) > 1:
        from distributed import Client

        where = Client(sys.argv[1])
    tasks = {key: log_loss(*key) for key in product(SETS, ORDERS, PENALTIES)}
    (losses,) = dask.compute(tasks, scheduler=where)
    for data in SETS:
        means = (sum(losses[data, order, C] for order in ORDERS) / len(ORDERS) for C in PENALTIES)
        print(data, *(f"C={C:g}: {mean:.3f}" for C, mean in zip(PENALTIES, means, strict=True)), sep="  ")
        best = [min(PENALTIES, key=lambda C, at=(data, order): losses[*at, C]) for order in ORDERS]
        print(f"  least log loss in each of {len(ORDERS)} orders: C = {', '.join(f'{C:g}' for C in best)}")


if __name__ == "__main__":  # the processes import this file
    main()
