"""Does a promise about the answers hold, and how many questions does it leave unanswered?

    STREAMS_DATA=folder python benchmarks/answers.py [--errors .05 .1] [--allowance 5] [--rows 1500]

A `Forecaster` goes through ten tables, all of those in the data folder with 500 rows or more but for one of two of
digits, shuffled, and through elec2 in its own order, which changes. Beside it stand accounts for several errors
(`venn.Selective`); labels come at once. For each, in the order of the tables:

    kept       whether wrong + waiting <= error x answered + allowance after every question
    answered   share of the questions that was answered
    of_best    answered, over what the best fixed threshold on the probability answers, chosen in hindsight among those
               whose own account is kept at every moment

`least`, `median` and `mean` are of `of_best` over the ten tables. One JSON line.
"""

from time import process_time

import numpy as np
from workload import command, command_options

import streams
import venn
from venn.online.selective import Answering

TABLES = (
    "adult", "banknote", "car", "covtype", "german", "mushroom", "optdigits", "pima", "wdbc", "wine_red",
)  # fmt: skip
CHANGING = "elec2"


def forecasts(stream, accounts):
    """Go through a stream; return sureness and errors, and for each account the answers and whether it was kept."""
    model = venn.Forecaster(stream.classes)
    sure, wrong = [], []
    given, kept = {error: [] for error in accounts}, dict.fromkeys(accounts, True)
    for number, (x, y) in enumerate(stream, 1):
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
    """Return how many questions the best threshold answers whose account is kept at every moment."""
    most = 0
    for level in np.unique(sure):
        given = sure >= level
        room = error * np.cumsum(given) + allowance - np.cumsum(given & wrong)
        most = max(most, int(given.sum())) if room.min() >= -1e-9 else most
    return most


@command()
def main():
    options = command_options(__doc__, errors=[0.05, 0.1], allowance=5.0, rows=1500, tables=[*TABLES, CHANGING])
    found, start = {error: {} for error in options.errors}, process_time()
    for name in options.tables:
        stream = streams.load(name, shuffle=None if name == CHANGING else 0)
        stream = stream.take(min(options.rows, len(stream)))
        accounts = {error: Answering(error, options.allowance) for error in options.errors}
        sure, wrong, given, kept = forecasts(stream, accounts)
        for error in options.errors:
            answered = np.array(given[error])
            best = best_fixed(sure, wrong, error, options.allowance)
            found[error][name] = {
                "kept": bool(kept[error]),
                "answered": round(float(answered.mean()), 3),
                "wrong": round(float(wrong[answered].mean()), 4) if answered.any() else None,
                "of_best": round(int(answered.sum()) / max(best, 1), 3),
            }
    told = {}
    for error, each in found.items():
        shares = [one["of_best"] for name, one in each.items() if name != CHANGING]
        told[f"error_{error:g}"] = {
            "kept": all(one["kept"] for one in each.values()), "least": min(shares, default=None),
            "median": round(float(np.median(shares)), 3) if shares else None,
            "mean": round(float(np.mean(shares)), 3) if shares else None, "tables": each,
        }  # fmt: skip
    return {"rows": options.rows, **told, "seconds": round(process_time() - start, 1)}
