"""What is learned from labels whose delay, and whose absence, depend on the class, as those of fraud do?

    STREAMS_DATA=folder python benchmarks/ripening.py [--runs 8] [--rows 1800]

The rarer class of `adult` (about a quarter) plays the fraud: it is reported after 20 questions on average, one in
fifty only after 400. The other class is reported for one question in ten, after 60 on average, and for the rest never.
A logistic regression is fitted to 1500 rows; a `Forecaster` calibrates it on others, in several orders:

    early    each label is learned when it comes, what is silent is given up after 150 questions
    reported each label that has come is learned after 150 questions, what is silent is given up
    ripe     the same, and silence is "honest": Online(ripe=150, silent=...)
    known    the true label is learned after 150 questions: what nobody has

For each: `claimed`, the mean probability of fraud in the second half of the questions, beside `true`, its share there;
`missed`, how often sets at .05 miss the true label; `log_loss`; `alarms`, the share of runs in which an alarm rings,
though nothing changes: by design at most .01 (.01 of the level and .00001 an example); `late`, labels too late. One
JSON line.
"""

from time import process_time

import numpy as np
from sklearn.linear_model import LogisticRegression
from workload import command, command_options

import streams
import venn

FITTED, RIPE, SOON, LATE, SELDOM, SOME, WHILE = 1500, 150, 20, 400, 0.02, 0.1, 60


def reports(y, fraud, rng):
    """Return after which question each label is reported; None for never."""
    found = []
    for label in y:
        if label == fraud:
            found.append(LATE if rng.random() < SELDOM else int(rng.geometric(1 / SOON)))
        else:
            found.append(int(rng.geometric(1 / WHILE)) if rng.random() < SOME else None)
    return found


def run(way, model, X, y, after, fraud):
    """Let one run happen; return what it said in the second half, and whether it rang."""
    honest = next(label for label in model.classes if label != fraud)
    given = {"early": {"patience": RIPE}, "reported": {"ripe": RIPE}, "ripe": {"ripe": RIPE, "silent": honest}}
    online = venn.Online(model, **given.get(way, {"ripe": RIPE}), watch=False)
    come = [[] for _ in range(len(X) + LATE + 1000)]
    for number, steps in enumerate(after):
        steps = 0 if way == "known" else steps
        if steps is not None:
            come[number + steps].append(number)
    said, waits = [], set()
    for number, x in enumerate(X):
        said.append(online.ask(x, number))
        waits.add(number)
        for one in come[number]:
            if way == "early" and number - one >= RIPE:
                continue  # given up
            online.answer(one, y[one])
    half = len(X) // 2
    rows = np.array([one[fraud] for one in said[half:]])
    true = np.array([label == fraud for label in y[half:]])
    missed = np.mean([label not in one.set(0.05) for one, label in zip(said[half:], y[half:], strict=True)])
    loss = -np.mean(np.log(np.clip(np.where(true, rows, 1 - rows), 1e-9, 1)))
    rang = any(one.count for one in online.monitors.values())
    late = 0 if online.ripening is None else online.ripening.late
    return rows.mean(), true.mean(), missed, loss, rang, late


@command()
def main():
    options = command_options(__doc__, runs=8, rows=1800)
    start = process_time()
    each = {way: [] for way in ("early", "reported", "ripe", "known")}
    for seed in range(options.runs):
        X, y = zip(*streams.load("adult", shuffle=seed).take(FITTED + options.rows), strict=True)
        X, y = np.array(X), list(y)
        fraud = min(set(y), key=y.count)
        scorer = LogisticRegression(max_iter=2000).fit(X[:FITTED], y[:FITTED])
        after = reports(y[FITTED:], fraud, np.random.default_rng(seed))
        for way, found in each.items():
            model = venn.Forecaster(scorer=scorer)
            found.append(run(way, model, X[FITTED:], y[FITTED:], after, fraud))
    names = ("claimed", "true", "missed", "log_loss", "alarms", "late")
    told = {
        way: dict(zip(names, np.round(np.mean(found, axis=0), 4).tolist(), strict=True)) for way, found in each.items()
    }
    return {"runs": options.runs, "rows": options.rows, **told, "seconds": round(process_time() - start, 1)}
