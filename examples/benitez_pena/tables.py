"""Tables of the study's answers next to the paper's."""

import numpy as np

from benitez_pena import published
from benitez_pena.answers import ERROR, LOG, MSE, mean_ranks
from benitez_pena.control import SHARES
from benitez_pena.methods import CONSTANT, OTHERS, PAPER, PPSVM

TABLE_3 = ("bootstrap", "Sollich", "Platt", *PPSVM)
TABLE_4 = ("bootstrap", "best C, resampled", "best C, one machine")
RANKED = (*PAPER, *OTHERS)


def table(head, rows):
    """Return the lines of a table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(map(str, line)) + " |" for line in lines]


def number(value):
    """Return a probability or a loss with three decimals and without the leading zero, as in the paper's tables."""
    text = f"{value:.3f}"
    return text[1:] if text.startswith("0.") else text


def beside(ours, theirs):
    """Return our number, and theirs in brackets if there is one."""
    return number(ours) if theirs is None else f"{number(ours)} ({number(theirs)})"


def _bold(texts, values):
    least = np.nanmin(np.round(values, 3))
    return [f"**{text}**" if round(value, 3) == least else text for text, value in zip(texts, values, strict=True)]


# Sets ------------------------------------------------------------------------------------------------


# Tables 3 and 4 --------------------------------------------------------------------------------------


def losses_table(answers, methods, loss, theirs=True):
    """Return the table of a loss by set, with the paper's MSE if wanted; the smallest of each row in bold."""
    rows = []
    for name in (*answers.data, *answers.aside):
        values = [answers.loss(name, method, loss) for method in methods]
        known = [published.mse(name, m) if theirs else None for m in methods]
        rows.append([name, *_bold([beside(*pair) for pair in zip(values, known, strict=True)], values)])
    means = [np.mean([answers.loss(name, method, loss) for name in answers.data]) for method in methods]
    rows.append(["mean of the paper's sets", *_bold([number(value) for value in means], means)])
    return table(["set", *methods], rows)


def ranks_table(answers):
    """Return the table of mean ranks, among the paper's methods and among all."""
    ours = answers.ranks(MSE, TABLE_3)
    theirs = mean_ranks([[published.mse(name, m) for m in TABLE_3] for name in answers.data])
    theirs = dict(zip(TABLE_3, theirs.tolist(), strict=True))
    every = [answers.ranks(loss, RANKED) for loss in (MSE, LOG)]
    rows, folds = [], sum(map(answers.study.folds_of, answers.data))
    for method in RANKED:
        infinite = sum(answers.infinite(name, method) for name in answers.data)
        cells = (ours.get(method), theirs.get(method), *(one[method] for one in every))
        rows.append([method, *("" if cell is None else f"{cell:.2f}" for cell in cells), f"{infinite} of {folds}"])
    head = ["method", f"MSE, of {len(TABLE_3)}", "paper", f"MSE, of {len(RANKED)}", f"log loss, of {len(RANKED)}"]
    return table([*head, "folds with probability 0 of what came"], rows)


def claims(answers):
    """Return (the paper's claim, its number of sets, ours, the sets here) for every ordering that is counted."""
    ours = {m: {name: round(answers.loss(name, m, MSE), 3) for name in answers.data} for m in RANKED}
    theirs = {m: {name: published.mse(name, m) for name in answers.data} for m in PAPER}
    constant = {name: round(answers.loss(name, CONSTANT, MSE), 3) for name in answers.data}

    def where(one, holds):
        return [name for name in answers.data if holds(one, name)]

    def least(one, method):
        return lambda _, name: one[method][name] <= min(one[m][name] for m in TABLE_3)

    def not_above(a, b):
        return lambda one, name: one[a][name] <= one[b][name]

    found = []
    for method in ("bootstrap", "Platt", "Sollich"):
        found.append((f"{method} has the least MSE of {len(TABLE_3)}", where(theirs, least(theirs, method)),
                      where(ours, least(ours, method))))  # fmt: skip
    for a, b, said in (
        ("bootstrap", "best C, resampled", "the ensemble is not worse than its best C alone, resampled"),
        ("bootstrap", "best C, one machine", "the ensemble is not worse than the label of one machine of best C"),
        ("bootstrap", "Platt", "bootstrap not worse than Platt"),
        ("Platt", "Sollich", "Platt not worse than Sollich"),
        ("PPSVM 0", "PPSVM 30", "PPSVM not worse at r = 0 than at 30"),
    ):
        found.append((said, where(theirs, not_above(a, b)), where(ours, not_above(a, b))))
    of_frequency = [[name for name in answers.data if one["Sollich"][name] > constant[name]] for one in (theirs, ours)]
    found.append(("Sollich worse than the class frequency here", *of_frequency))
    return found


def claims_table(answers):
    """Return the table of the paper's orderings: on which sets each holds there and here."""

    def listed(names):
        return f"{len(names)}: {', '.join(names)}" if names else "0"

    rows = [[said, listed(theirs), listed(ours)] for said, theirs, ours in claims(answers)]
    return table(["", f"paper, of {len(answers.data)}", f"here, of {len(answers.data)}"], rows)


# Bounds ----------------------------------------------------------------------------------------------


# Control ---------------------------------------------------------------------------------------------


def control_table(answers, way):
    """Return the table of Ctrl1 for new objects: the sensitivity and both MSEs at some wanted sensitivities."""
    shown = [s for s, share in enumerate(SHARES) if round(100 * share) in (50, 70, 80, 90, 95, 100)]
    rows = []
    for name in (*answers.data, "mean"):
        names = answers.data if name == "mean" else [name]
        cells = [np.mean([answers.controlled(one, way, s) for one in names], axis=0) for s in shown]
        rows.append([name, *(" ".join(map(number, cell)) for cell in cells)])
    return table(["set", *(f"{SHARES[s]:g}" for s in shown)], rows)


def constrained_table(answers):
    """Return the table of Ctrl2 and Ctrl1 on the same small parts: reached sensitivity and both MSEs."""
    levels = answers.study.plan.levels
    rows = []
    for name in (*answers.data, "mean"):
        names = answers.data if name == "mean" else [name]
        for way in ("Ctrl1", "Ctrl2"):
            cells = []
            for place in range(len(levels)):
                found = [split[way][place] for one in names for split in answers.controls(one)]
                cells.append(" ".join(map(number, np.mean(found, axis=0))))
            rows.append([name if way == "Ctrl1" else "", way, *cells])
    return table(["set", "", *(f"{level:g}" for level in levels)], rows)


# Seconds ---------------------------------------------------------------------------------------------


def document(answers):
    """Return all tables as lines of Markdown."""
    plan = answers.study.plan
    out = [
        "## Table 3: mean squared error (the paper's)", "", *losses_table(answers, TABLE_3, MSE),
        "", "## Table 4: the ensemble against the best C alone (the paper's)", "", *losses_table(answers, TABLE_4, MSE),
        "", "## Orderings by MSE", "", *claims_table(answers),
        "", "## Mean ranks", "", *ranks_table(answers),
        "", "## MSE of the others", "", *losses_table(answers, (*OTHERS, CONSTANT), MSE),
        "", "## Log loss, clipped to [.001, .999], nats", "",
        *losses_table(answers, (*(m for m in RANKED if m not in PPSVM[1:]), CONSTANT), LOG, theirs=False),
        "", "## Error rate", "",
        *losses_table(answers, ("bootstrap", "best C, one machine", "Platt", *OTHERS), ERROR, theirs=False),
        "", "## Ctrl1, thresholds by out-of-bag votes", "", *control_table(answers, 0),
        "", "## Ctrl1, thresholds by the new objects' own labels", "", *control_table(answers, 1), "",
        "By wanted sensitivity: the share of new positives with probability above one half, MSE of new positives, MSE "
        "of new negatives.",
    ]  # fmt: skip
    if plan.splits:
        out += [
            "", f"## Ctrl2 and Ctrl1 on at most {plan.largest} examples", "", *constrained_table(answers), "",
            f"The same three numbers; {plan.few} resamples, C {', '.join(f'{C:g}' for C in plan.Cs)}, trained on "
            f"{plan.splits} random part(s) of each set, on objects beside it (at most {plan.most_new}).",
        ]  # fmt: skip
    return out
