"""How much a shared model helps young keys: log loss of the rows 1 to 50 of each key, with it over without it.

    python benchmarks/young_keys.py [--keys 14]

Three tables, whose key is a nominal column that the models do not see. The target is a ratio of at most .9.
"""

from collections import Counter
from time import process_time
from typing import Any

import numpy as np
from workload import command, command_options

import venn
from streams import load

ROWS = 50
#: By name of a set: the column that is the key.
TABLES = {"adult": "occupation", "elec2": "day", "mushroom": "habitat"}


def rows_of(name: str, keys: int) -> tuple[list[str], list[Any], list[Any], tuple[Any, ...]]:
    """Return the keys, objects and labels of the first rows of each of the most frequent keys, in a random order."""
    stream = load(name, shuffle=0)
    names = [str(one) for one in stream.features]
    raw = [np.asarray(x, np.float64) for x, _ in stream]
    labels = [y for _, y in stream]
    column = TABLES[name]
    # A nominal column is several columns of zeros and ones, "column=value".
    own = [i for i, one in enumerate(names) if one.partition("=")[0] == column]
    others = [i for i in range(len(names)) if i not in own]
    values = ["/".join(f"{x[i]:g}" for i in own) for x in raw]
    chosen = {one for one, _ in Counter(values).most_common(keys)}
    seen: Counter[str] = Counter()
    found: tuple[list[str], list[Any], list[Any]] = ([], [], [])
    for key, x, y in zip(values, raw, labels, strict=True):
        if key in chosen and seen[key] < ROWS:
            seen[key] += 1
            for where, what in zip(found, (key, x[others], y), strict=True):
                where.append(what)
    return *found, tuple(stream.classes)


def loss(name: str, keys: int, with_prior: bool) -> tuple[float, float]:
    """Return the mean log loss of all rows, and the seconds."""
    each, X, y, classes = rows_of(name, keys)
    prior = venn.predictors.ExpertMixture([venn.predictors.Refits(classes, first=30)]) if with_prior else None
    fleet, start, total = venn.Fleet(lambda key: venn.Forecaster(classes), prior=prior), process_time(), 0.0
    for key, x, label in zip(each, X, y, strict=True):
        total -= np.log(max(fleet.predict_one(key, x)[label], 1e-15))
        fleet.learn_one(key, x, label)
    return total / len(y), process_time() - start


@command(threads=None)
def main():
    keys = command_options(__doc__, keys=14).keys
    found: dict[str, Any] = {"benchmark": "young_keys", "rows": ROWS}
    for name in TABLES:
        (without, _), (with_prior, seconds) = loss(name, keys, False), loss(name, keys, True)
        found[name] = {
            "key": TABLES[name], "without": round(without, 4), "with": round(with_prior, 4),
            "ratio": round(with_prior / without, 3), "seconds": round(seconds, 1),
        }  # fmt: skip
    return found
