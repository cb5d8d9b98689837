"""Does a promise about the answers hold, and how many questions does it leave unanswered?

    STREAMS_DATA=folder python benchmarks/answers.py [--errors .05 .1] [--allowance 5] [--rows 1500]

A `Forecaster` goes through ten tables, all of those in the data folder with 500 rows or more but for one of two of
digits, shuffled, and through elec2 in its own order, which changes. Beside it stand accounts for several errors
(`venn.Selective`); labels come at once. For each, in the order of the tables:

    kept       whether wrong + waiting <= error x answered + allowance after every question
    answered   share of the questions that was answered
    of_best    answered, over what the best fixed threshold on the probability answers, chosen in hindsight among those
               whose own account is kept at every moment
    of_end     the same among those whose account is kept at the end, whatever happened before
    plain      what one would do otherwise: answer where the probability is at least 1 - error; the share of wrong ones
               among these answers

`least`, `median` and `mean` are of `of_best` over the ten tables. With `--fitted 1000` the forecaster calibrates a
logistic regression that was fitted to so many rows, and the others are the stream: so long ones take little time. One
JSON line.
"""

from __future__ import annotations

import argparse
import json
from time import process_time

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

import streams
import venn
from venn.online.selective import Answering

TABLES = (
    "adult", "banknote", "car", "covtype", "german", "mushroom", "optdigits", "pima", "wdbc", "wine_red",
)  # fmt: skip
CHANGING = "elec2"


def forecasts(stream, accounts, fitted):
    """Go through a stream; return sureness and errors, and for each account the answers and whether it was kept."""
    model, examples = venn.Forecaster(stream.classes), list(stream)
    if fitted:
        X, y = zip(*examples[:fitted], strict=True)
        scorer = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(np.array(X), list(y))
        model, examples = venn.Forecaster(scorer=scorer), [one for one in examples[fitted:] if one[1] in set(y)]
    sure, wrong = [], []
    given, kept = {error: [] for error in accounts}, dict.fromkeys(accounts, True)
    for number, (x, y) in enumerate(examples, 1):
        outlook = model.predict_one(x)
        sure.append(float(outlook.proba.max()))
        wrong.append(outlook.label != y)
        for error, account in accounts.items():
            given[error].append(not account.ask(number, outlook).why)
            kept[error] &= account.account.kept
            account.reveal(number, y)
            kept[error] &= account.account.kept
        model.learn_one(x, y)
    return np.array(sure), np.array(wrong), given, kept


def best_fixed(sure, wrong, error, allowance):
    """Return how many questions the best threshold answers: its account kept at every moment, and at the end."""
    always = end = 0
    for level in np.unique(sure):
        given = sure >= level
        room = error * np.cumsum(given) + allowance - np.cumsum(given & wrong)
        always = max(always, int(given.sum())) if room.min() >= -1e-9 else always
        end = max(end, int(given.sum())) if room[-1] >= -1e-9 else end
    return always, end


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--errors", type=float, nargs="+", default=[0.05, 0.1])
    parser.add_argument("--allowance", type=float, default=5.0)
    parser.add_argument("--rows", type=int, default=1500)
    parser.add_argument("--fitted", type=int, default=0)
    parser.add_argument("--tables", nargs="+", default=[*TABLES, CHANGING])
    options = parser.parse_args()
    found, start = {error: {} for error in options.errors}, process_time()
    for name in options.tables:
        stream = streams.load(name, shuffle=None if name == CHANGING else 0)
        stream = stream.take(min(options.fitted + options.rows, len(stream)))
        accounts = {error: Answering(error, options.allowance) for error in options.errors}
        sure, wrong, given, kept = forecasts(stream, accounts, options.fitted)
        for error in options.errors:
            answered = np.array(given[error])
            always, end = best_fixed(sure, wrong, error, options.allowance)
            plain = sure >= 1 - error
            found[error][name] = {
                "kept": bool(kept[error]),
                "answered": round(float(answered.mean()), 3),
                "wrong": round(float(wrong[answered].mean()), 4) if answered.any() else None,
                "of_best": round(int(answered.sum()) / max(always, 1), 3),
                "of_end": round(int(answered.sum()) / max(end, 1), 3),
                "plain": round(float(wrong[plain].mean()), 4) if plain.any() else None,
            }
    told = {}
    for error, each in found.items():
        shares = [one["of_best"] for name, one in each.items() if name != CHANGING]
        told[f"error_{error:g}"] = {
            "kept": all(one["kept"] for one in each.values()),
            "least": min(shares, default=None),
            "median": round(float(np.median(shares)), 3) if shares else None,
            "mean": round(float(np.mean(shares)), 3) if shares else None,
            "tables": each,
        }
    print(json.dumps({"rows": options.rows, **told, "seconds": round(process_time() - start, 1)}))


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
