"""Martingales compared: false alarms on uniform p-values, and how soon a change is seen."""

from __future__ import annotations

import time

import numpy as np
from scipy.stats import binom

import venn

LEVEL = 0.05


def online_cp_path(name, **options):
    def path(ps):
        import online_cp.martingale as theirs

        one = getattr(theirs, name)(**options)
        for p in ps:
            one.update(p)
        return np.array(one.log_martingale_values[1:], float)

    return path


def crepes_path(name, **options):
    def path(ps):
        import crepes.martingales as theirs

        with np.errstate(divide="ignore"):
            return np.log(getattr(theirs, name)(**options).apply(np.array(ps)))

    return path


def mapie_path(method):
    def path(ps):
        from mapie.exchangeability_testing import OnlineMartingaleTest

        test = OnlineMartingaleTest(test_method=method, random_state=0, warn=False)
        bet = test.update_simple_jumper_martingale if method.startswith("jumper") else test.update_plugin_martingale
        for p in ps:
            bet(p)
            test.pvalue_history.append(p)  # as its update does
        with np.errstate(divide="ignore"):
            return np.log(test.martingale_value_history)

    return path


def our_path(name, at_once=False, **options):
    def path(ps):
        one = getattr(venn.monitors, name)(**options)
        if at_once:
            return one.update_many(ps)
        out = []
        for p in ps:
            one.update(p)
            out.append(one.log)
        return np.array(out)

    return path


MARTINGALES = [
    ("online-cp", "SimpleJumper", online_cp_path("SimpleJumper")),
    ("crepes", "SimpleJumper, all at once", crepes_path("SimpleJumper")),
    ("mapie", "jumper of three experts", mapie_path("jumper_martingale")),
    ("ours", "SimpleJumper", our_path("SimpleJumper")),
    ("ours", "SimpleJumper, all at once", our_path("SimpleJumper", True)),
    ("online-cp", "CompositeJumper", online_cp_path("CompositeJumper")),
    ("ours", "CompositeJumper", our_path("CompositeJumper")),
    ("online-cp", "SimpleMixtureMartingale", online_cp_path("SimpleMixtureMartingale")),
    ("ours", "SimpleMixture", our_path("SimpleMixture")),
    ("online-cp", "SleeperStayer", online_cp_path("SleeperStayer")),
    ("crepes", "SleeperStayer, all at once", crepes_path("SleeperStayer")),
    ("crepes", "SleeperDrifter, all at once", crepes_path("SleeperDrifter")),
    ("ours", "Sleeper", our_path("Sleeper")),
    ("online-cp", "PluginMartingale, Gaussian kernel", online_cp_path("PluginMartingale")),
    ("mapie", "plugin", mapie_path("plugin_martingale")),
    ("ours", "PlugIn", our_path("PlugIn")),
    ("ours", "BetaPlugIn", our_path("BetaPlugIn")),
]


def capital_row(path, replays, steps):
    """Return the figures of one martingale: replays of uniform p-values, and as many that change half-way.

    After the change p-values are squares of uniform ones, that is too small. A replay rings when the capital first
    reaches 1 / LEVEL; those that rang before the change do not count as having seen it.
    """
    rng = np.random.default_rng(0)
    calm = rng.random((replays, steps))
    changed = rng.random((replays, steps))
    changed[:, steps // 2 :] **= 2
    path(calm[0][:50].tolist())
    seconds, false, seen, delays = 0.0, 0, 0, []
    for ps in calm.tolist():
        start = time.process_time()
        log = path(ps)
        seconds += time.process_time() - start
        false += bool((np.nan_to_num(log, nan=-np.inf) >= -np.log(LEVEL)).any())
    early = 0
    for ps in changed.tolist():
        rings = np.flatnonzero(np.nan_to_num(path(ps), nan=-np.inf) >= -np.log(LEVEL))
        if not len(rings):
            continue
        if rings[0] < steps // 2:
            early += 1
        else:
            seen += 1
            delays.append(int(rings[0]) - steps // 2 + 1)
    return {
        "steps": replays * steps,
        "seconds": seconds,
        "microseconds": 1e6 * seconds / (replays * steps),
        "false_alarms": false,
        "false_limit": int(binom(replays, LEVEL).ppf(0.99)),
        "replays": replays,
        "seen": seen,
        "early": early,
        "delay": float(np.median(delays)) if delays else None,
    }
