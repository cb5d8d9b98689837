"""P-values at their ends, tied, changing: martingales and detectors by definition, in any blocks, saved on the way."""

from __future__ import annotations

import math

import numpy as np
from naive import martingales as naive

import venn
from venn.online import checkpoint

from .tally import Tally

ENDS = [0.0, 1.0, 5e-324, 1e-300, 1e-13, 1e-12, 1 - 1e-12, 1 - 2**-53, 0.5, 0.1, 1 / 3]
#: Martingale, its definition (logarithm of the capital after all p-values), longest sequence, tolerance.
MARTINGALES = {
    "power": (lambda: venn.monitors.Power(0.3), lambda ps: naive.power(ps, 0.3), 40, 1e-10),
    "mixture": (venn.monitors.SimpleMixture, naive.mixture, 8, 1e-7),
    "jumper": (lambda: venn.monitors.SimpleJumper(0.05), lambda ps: naive.jumper(ps, 0.05), 60, 1e-10),
    "composite": (venn.monitors.CompositeJumper, lambda ps: naive.composite(ps, (1e-4, 1e-3, 1e-2, 0.1, 1)), 60, 1e-10),
    "sleeper": (lambda: venn.monitors.Sleeper(0.1, 4), lambda ps: naive.sleeper(ps, 0.1, 4), 20, 1e-10),
    "plug-in": (lambda: venn.monitors.PlugIn(0.05, 7), lambda ps: naive.plug_in(ps, 0.05, 7)[-1], 40, 1e-9),
    "beta": (lambda: venn.monitors.BetaPlugIn(0.1), lambda ps: naive.beta_plug_in(ps, 0.1)[-1], 40, 1e-7),
}


def drawn(rng: np.random.Generator, n: int) -> list[float]:
    how = rng.integers(5)
    if how == 0:
        return rng.choice(ENDS, n).tolist()
    if how == 1:
        return [float(rng.choice(ENDS))] * n
    if how == 2:
        return (rng.integers(0, 5, n) / 4).tolist()
    if how == 3:
        return np.where(np.arange(n) < n // 2, rng.random(n), rng.beta(0.1, 1, n)).tolist()
    return rng.beta(*rng.choice([0.05, 1, 30], 2), n).clip(0, 1).tolist()


def trial(rng: np.random.Generator, tally: Tally) -> None:
    name = str(rng.choice(list(MARTINGALES)))
    make, define, most, tolerance = MARTINGALES[name]
    ps = drawn(rng, int(rng.integers(1, most + 1)))
    one, many = make(), make()
    for p in ps:
        one.update(p)
    cut = int(rng.integers(len(ps) + 1))
    many.update_many(ps[:cut])
    many = checkpoint.unpack(checkpoint.pack(many))
    many.update_many(np.array(ps[cut:]))
    tally.same(
        checkpoint.pack(one) == checkpoint.pack(many),
        f"{name}: one by one, and in blocks",
        (ps, cut),
    )
    try:
        expected = define(ps)
    except (OverflowError, ValueError, ZeroDivisionError):
        tally.note("the definition gives up")
        expected = None
    tally.same(math.isfinite(one.log), f"{name}: capital", (ps, one.log))
    if expected is not None and math.isfinite(expected):
        tally.same(
            math.isclose(one.log, expected, rel_tol=tolerance, abs_tol=tolerance),
            f"{name}: its definition",
            (ps, one.log, expected),
        )
    detect(name, ps, rng, tally)
    long_run(name, rng, tally)


def detect(name: str, ps: list[float], rng: np.random.Generator, tally: Tally) -> None:
    """Detectors on the martingale, against theirs."""
    make, define, _, _ = MARTINGALES[name]
    if name in ("plug-in", "beta"):
        return
    threshold = float(rng.choice([1.5, 4.0, 100.0]))
    cusum = rng.random() < 0.5
    detector = (venn.monitors.CUSUM if cusum else venn.monitors.ShiryaevRoberts)(make(), threshold)

    def log_capital(some: list[float]) -> float:
        return define(some) if some else 0.0

    try:
        path, alarms = naive.restarting(
            naive.cusum if cusum else naive.shiryaev_roberts, log_capital, ps[:12], threshold
        )
    except (OverflowError, ValueError, ZeroDivisionError):
        tally.note("the definition gives up")
        return
    if any(abs(value / threshold - 1) < 1e-6 for value in path):
        tally.note("a statistic at the threshold")
        return
    rung = [step for step, p in enumerate(ps[:12], 1) if detector.update(p)]
    tally.same(rung == alarms, f"{type(detector).__name__} of {name}", (ps, threshold, rung, alarms))


def long_run(name: str, rng: np.random.Generator, tally: Tally) -> None:
    """Thousands of extreme p-values: capital stays a number, or the logarithm of one."""
    martingale = MARTINGALES[name][0]()
    path = martingale.update_many(drawn(rng, 3000))
    tally.same(np.isfinite(path).all(), f"{name}: capital of a long run", path)
    tally.same(np.isfinite(martingale.log), f"{name}: the logarithm after it", martingale)
