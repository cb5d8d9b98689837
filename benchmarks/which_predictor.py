"""Which predictor should I use, and what does each cost?

    python benchmarks/which_predictor.py      # one JSON line for every set and predictor

Three shuffled sets: a small one, a medium one with ten classes, and a long one, where machines that keep every
example would run out of memory, so that a window, a schedule that stops training or a given scorer must bound them.
Kernel and C are chosen by `venn.tune` on a prefix that no machine learns. Every predictor has its own machine, so
that the time is its own: microseconds of the processor for one prediction and one label learned, after everything is
compiled. The last baseline of each set is what a user of scikit-learn would do.
"""

from __future__ import annotations

import argparse
import json
import re
import time

from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

import streams
import venn

SETS = {
    "ionosphere": (351, 100, 5),
    "optdigits": (3300, 300, 1),
    "adult": (22_000, 2_000, 1),
}  # examples, prefix, shuffles
TUNED, WINDOW, LAST, WARM = 500, 1000, 2048, 150  # of the prefix; of a window; of the last training; to compile


class Given(venn.predictors.Predictor):
    """The probabilities that a fitted scikit-learn classifier gives by itself, never fitted again."""

    def __init__(self, estimator, classes):
        self.estimator = estimator
        self.classes = tuple(classes)

    def predict_one(self, x):
        return venn.Forecast(self.estimator.predict_proba(x[None])[0], self.classes)


def transductive(squares, hinge):
    """Return the predictors that keep every example: title to predictor, each on its own machine."""
    return {
        "`TransductiveVennAbers`": lambda: venn.TransductiveVennAbers(squares()),
        "`TransductiveVenn`, `LeaveOneOut(AdaptiveMarginBins())`": lambda: venn.TransductiveVenn(
            squares(), venn.LeaveOneOut(venn.taxonomies.AdaptiveMarginBins())
        ),
        "`TransductiveVenn`, `LeaveOneOut(Argmax())`": lambda: venn.TransductiveVenn(
            squares(), venn.LeaveOneOut(venn.Argmax())
        ),
        "`TransductiveVenn`, `Argmax()`, hinge loss": lambda: venn.TransductiveVenn(hinge(), venn.Argmax()),
        "`Conformal`": lambda: venn.Conformal(squares()),
        "`ScoreCalibrator`, Platt, leave-one-out scores": lambda: venn.ScoreCalibrator(
            squares(), venn.maps.Platt(), venn.predictors.LeaveOneOutScores()
        ),
        "`ScoreCalibrator`, Platt, training scores": lambda: venn.ScoreCalibrator(squares(), venn.maps.Platt()),
        "`ScoreCalibrator`, isotonic, leave-one-out scores": lambda: venn.ScoreCalibrator(
            squares(), venn.maps.Isotonic(), venn.predictors.LeaveOneOutScores()
        ),
    }


def inductive(squares, last=None):
    """Return the predictors that set examples aside."""
    schedule = venn.schedules.PrefixRestart(last=last)
    like, enough = (
        squares(),
        venn.schedules.PrefixRestart(first=256, last=last),
    )  # five of each class, for cross-validation
    svc = SVC(C=like.C, gamma=like.kernel.gamma)
    return {
        "`InductiveVennAbers`": lambda: venn.InductiveVennAbers(squares(), schedule=schedule),
        "`InductiveVenn`, `AdaptiveMarginBins()`": lambda: venn.InductiveVenn(
            squares(), venn.taxonomies.AdaptiveMarginBins(), schedule=schedule
        ),
        "`InductiveVenn`, `Argmax()`": lambda: venn.InductiveVenn(squares(), venn.Argmax(), schedule=schedule),
        "`InductiveConformal`": lambda: venn.InductiveConformal(squares(), schedule=schedule),
        "`CrossVenn`": lambda: venn.predictors.CrossVenn(squares(), last=last),
        "`Refitted(LogisticRegression())`": lambda: venn.predictors.Refitted(
            LogisticRegression(max_iter=1000), like.classes, schedule=schedule
        ),
        "`Refitted(CalibratedClassifierCV(SVC()))`": lambda: venn.predictors.Refitted(
            CalibratedClassifierCV(svc), like.classes, schedule=enough if len(like.classes) > 2 else schedule
        ),
    }


def predictors(name, stream, prefix, tuning):
    """Return the predictors that are compared on one set."""

    def squares():
        return venn.LeastSquaresSVM(tuning.kernel, tuning.C, stream.classes)

    def hinge():
        return venn.OneVsAllSVM(tuning.kernel, tuning.C, stream.classes)

    if name != "adult":
        return transductive(squares, hinge) | inductive(squares)
    first = stream.take(prefix)
    fitted = LogisticRegression(max_iter=1000).fit(first.X, [first.classes[k] for k in first.y])
    keeps = transductive(lambda: venn.SlidingWindow(squares(), WINDOW), lambda: venn.SlidingWindow(hinge(), WINDOW))
    return (
        {f"window: {title}": make for title, make in keeps.items() if "hinge" not in title}
        | {title: make for title, make in inductive(squares, LAST).items() if not re.search("Cross|SVC", title)}
        | {
            "given scorer: `InductiveVennAbers`": lambda: venn.InductiveVennAbers(venn.FrozenScorer(fitted)),
            "given scorer: `InductiveVenn`, `AdaptiveMarginBins()`": lambda: venn.InductiveVenn(
                venn.FrozenScorer(fitted), venn.taxonomies.AdaptiveMarginBins()
            ),
            "given scorer: `InductiveVenn`, `Argmax()`": lambda: venn.InductiveVenn(venn.FrozenScorer(fitted)),
            "given scorer: `InductiveConformal`": lambda: venn.InductiveConformal(venn.FrozenScorer(fitted)),
            "given scorer: its own `predict_proba`": lambda: Given(fitted, stream.classes),
        }
    )


def measured(name, shuffle, only):
    """Yield one row of figures for each predictor of a set whose title matches."""
    n, prefix, _ = SETS[name]
    stream = streams.load(name, shuffle=shuffle).take(n)
    tuning = venn.tune(stream.take(min(prefix, TUNED)))
    for title, make in predictors(name, stream, prefix, tuning).items():
        if not re.search(only, title):
            continue
        warm = make()
        for x, y in stream.take(WARM):
            warm.predict_one(x)
            warm.learn_one(x, y)
        model, record = make(), venn.Record(stream.classes, ("it",))
        seconds = 0.0
        for x, y in stream.drop(prefix):
            start = time.process_time()
            prediction = model.predict_one(x)
            model.learn_one(x, y)
            seconds += time.process_time() - start
            record.update({"it": prediction}, y)
        mean = record.means()["it"]
        steps = len(record)
        found = {"data": name, "shuffle": shuffle, "steps": steps, "predictor": title}
        found["guaranteed"] = getattr(prediction, "guaranteed", "nothing")
        found["microseconds"] = seconds / steps * 1e6
        for field in ("accuracy", "lower", "upper", "width", "log_loss", "brier", "error_0.05", "size_0.05"):
            found[field] = mean.get(field)
        yield found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sets", nargs="*", default=list(SETS), choices=SETS)
    parser.add_argument("--only", default="", metavar="PATTERN", help="predictors whose title matches")
    args = parser.parse_args()
    with threadpool_limits(1):
        for name in args.sets:
            for shuffle in range(SETS[name][2]):
                for row in measured(name, shuffle, args.only):
                    print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
