"""
Are the half-hours of the Australian electricity market exchangeable?
=====================================================================

And if not, how soon can one be sure? The stream ``elec2``: 45 312 half-hours of prices in New South Wales, first in
order of time, then shuffled. An inductive conformal predictor says how strange each half-hour is among those before it;
a martingale bets that they are not exchangeable. In order of time it must find that out; in shuffled order it must
stay silent. With ``--quick`` the first 2500 half-hours.
"""

import sys

import numpy as np

import streams
import venn
from venn.show import plot

STEPS = 2500 if "--quick" in sys.argv else 45312


def watched(shuffle: int | None) -> tuple[venn.Monitor, np.ndarray]:
    """Return the monitor and the path of the log10-martingale."""
    stream = streams.load("elec2", shuffle=shuffle).take(STEPS)
    machine = venn.LeastSquaresSVM(venn.RBF(1 / 8), C=10, classes=stream.classes)
    model = venn.InductiveConformal(machine, schedule=venn.schedules.PrefixRestart(last=2048))
    record = venn.replay(stream, venn.Panel(conformal=model))
    (p,) = record.p_values("conformal").values()
    monitor = record.monitor("conformal")
    curves = record["conformal"]
    errors = ", ".join(f"{e}: {curves.errors(e)[-1] / len(record):.3f}" for e in (0.01, 0.05, 0.1, 0.2))
    print(f"  error rate at {errors}; accuracy {curves.accuracy[-1]:.3f}; {record.seconds:.1f} s")
    return monitor, venn.monitors.CompositeJumper().update_many(p) / np.log(10)


paths, alarms = {}, {}
for order, shuffle in (("in order of time", None), ("shuffled", 0)):
    print(f"{order}:")
    monitor, paths[order] = watched(shuffle)
    first = {}
    for alarm in monitor.alarms:
        first.setdefault(alarm.detector, alarm)
    ville = np.flatnonzero(paths[order] >= 2)[:1]
    alarms[order] = [int(step) + 1 for step in ville]
    print(f"  martingale: largest log10 {paths[order].max():.1f}, last {paths[order][-1]:.1f}; ", end="")
    print(f"100 to 1 at step {alarms[order][0]}" if alarms[order] else "never 100 to 1")
    print(f"  the monitor rang {monitor.count} times{'; the last time:' if monitor.count else ''}")
    if monitor.count:
        print(f"  {monitor.alarms[-1].sentence}")
try:
    title = f"elec2: {STEPS} half-hours, exchangeability martingale"
    plot.martingales(paths, {"100 to 1": 2.0}, alarms, title, "runs/electricity.png")
    print("figure: runs/electricity.png")
except ImportError as error:
    print(f"no figure: {error}")
