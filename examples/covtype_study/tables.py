"""The results, as lines of Markdown."""

import numpy as np

from covtype_study import published
from covtype_study.published import NAMES
from covtype_study.stream import BLOCK, KEEP, LEVEL, WAYS

PAPER = {
    "standard": (published.STANDARD, published.accuracy(published.STANDARD)),
    "adjusted": (published.ADJUSTED, published.accuracy(published.ADJUSTED)),
    "adjusted to the test part": (None, published.TEST_PRIORS_ACCURACY),
}


def table(head, rows):
    """Return the lines of a table."""
    return ["| " + " | ".join(map(str, row)) + " |" for row in (head, ["---"] * len(head), *rows)]


def protocol_tables(runs, y):
    """Accuracy and mean recall of each run, then its confusion matrix, next to the paper's."""
    rows, matrices = [], []
    for name, run in runs.items():
        ours, (theirs, accuracy) = run.confusion(y), PAPER[name]
        recall = "" if theirs is None else f"{published.mean_recall(theirs):.4f}"
        scores = f"{published.accuracy(ours):.4f}", f"{accuracy:.4f}", f"{published.mean_recall(ours):.4f}", recall
        rows.append((name, *scores, run.support.sum()))
        if theirs is not None:
            matrices += ["", f"### Confusion matrix, {name}: here, and in the paper", ""]
            cells = [
                (f"**{actual}**", *(f"{a} ({b})" for a, b in zip(*both, strict=True)), sum(both[0]))
                for actual, both in zip(NAMES, zip(ours, theirs, strict=True), strict=True)
            ]
            matrices += table(("actual \\ predicted", *NAMES, "rows"), cells)
    head = "machines", "accuracy", "paper", "mean recall", "paper", "support vectors of 21 machines"
    return table(head, rows) + matrices


def choice_table(runs, chosen=("standard", "adjusted")):
    """The parameters chosen by each pair, and its (weighted) errors on the validation examples, in percent."""
    rows = []
    pairs = [(a, b) for a in range(len(NAMES)) for b in range(a + 1, len(NAMES))]
    for i, (a, b) in enumerate(pairs):
        of = (
            f"{run.gamma[i]:g}, {run.C[i]:g}, {100 * run.errors[i]:.1f}, {run.support[i]}"
            for run in map(runs.get, chosen)
        )
        rows.append((f"{NAMES[a]}, {NAMES[b]}", *of))
    return table(("pair", *(f"{name}: gamma, C, errors %, support vectors" for name in chosen)), rows)


def stream_tables(replayed, y):
    """Claims about the predicted class along the stream, in all and by predicted class."""
    hits = replayed.index == y
    rows = []
    for label, own in [("all", np.ones(len(y), bool)), *((NAMES[k], replayed.index == k) for k in range(len(NAMES)))]:
        if own.any():
            claims = (f"{replayed.lower[w, own].mean():.4f}-{replayed.upper[w, own].mean():.4f}" for w in (0, 1))
            rows.append((label, own.sum(), f"{hits[own].mean():.4f}", *claims))
    return table(("predicted", "rows", "was right", *(f"claimed, {way}" for way in WAYS)), rows)


def departure_table(found, segments, segment):
    """Mean departures and their bounds, with a verdict on each."""
    rows = []
    for k, name in enumerate((*NAMES, "the predicted class")):
        cells = []
        for way in (0, 1):
            mean, low, high = found[way][k]
            cells.append(f"{mean:+.4f} in [{low:+.4f}, {high:+.4f}]{'' if low <= 0 <= high else ', **not 0**'}")
        rows.append((name, *cells))
    head = f"mean of 1{{y = k}} - P[y, k], {segments} segments of {segment} rows"
    return table((head, *WAYS), rows)


def beginning_tables(found, claims):
    """The first rows of the file against the others."""
    rows = [
        (name, f"{early:.3f}", f"{late:.3f}", f"{p:.1g}") for name, (early, late, p) in zip(NAMES, found, strict=True)
    ]
    lines = table(("class", "recognised, first 15120 rows", "other rows", "p that they are alike"), rows)
    if claims is None:
        return lines
    names = "the first 15120 rows", "other rows, drawn at random"
    cells = [
        (name, f"{a:.4f}", f"{lower:.4f}-{upper:.4f}") for name, (a, lower, upper) in zip(names, claims, strict=True)
    ]
    return [*lines, "", *table(("calibrated by", "was right", "claimed, with weights"), cells)]


def document(runs, truth, stream, y, found, sizes, early):
    """Return all lines."""
    return [
        "## The published protocol",
        "",
        *protocol_tables(runs, truth),
        "",
        "### What each pair chose",
        "",
        *choice_table(runs),
        "",
        "## The stream",
        "",
        f"{len(y)} rows in random order, labels after every {BLOCK}; kept are {stream.kept.sum()}: each row with "
        "probability " + ", ".join(f"{share:.3g} ({name})" for share, name in zip(KEEP, NAMES, strict=True)) + ".",
        "",
        *stream_tables(stream, y),
        "",
        "The same stream in segments, each begun with nothing known: three quarters of it calibrate, as far as they "
        "are kept, then come the questions of the last quarter. The bounds are for the expectation, "
        f"{100 * (1 - LEVEL):g} % for all of a column together, at whatever number of segments one stops:",
        "",
        *departure_table(found, *sizes),
        "",
        "## The rows that the file begins with",
        "",
        *beginning_tables(*early),
    ]
