"""Tables of the losses of all folds, next to the paper's."""

import numpy as np
from scipy import stats

from rueping import published
from rueping.methods import ALL, ASIDE, PAPER

MSE, ENTROPY, CLIPPED, ERROR = range(4)  # columns of the losses
RANKED = tuple(name for name in ALL if name not in ASIDE)
NAMES = {"linear": "Linear kernel", "rbf": "RBF kernel"}


class Losses:
    """Losses by (set, kernel, method), arrays (folds, 5), with several summaries."""

    def __init__(self, study, table):
        self.data, self.folds = study.data, study.folds
        self._table = table

    def __getitem__(self, key):
        return self._table[key]

    def by_set(self, kernel, method, loss):
        """Return the means over folds (sets,)."""
        return np.array([self._table[name, kernel, method][:, loss].mean() for name in self.data])

    def mean(self, kernel, method, loss):
        """Return the mean over sets of the means over folds."""
        return float(self.by_set(kernel, method, loss).mean())

    def infinite(self, kernel, method):
        """Return how many folds have infinite cross-entropy."""
        return int(sum(np.isinf(self._table[name, kernel, method][:, ENTROPY]).sum() for name in self.data))

    def mean_ranks(self, kernel, loss, among):
        """Return the mean over sets of each method's rank, 1 the best; ties all have the smallest."""
        values = np.array([self.by_set(kernel, method, loss) for method in among])
        ranks = stats.rankdata(values.round(12), method="min", axis=0)
        return dict(zip(among, ranks.mean(axis=1).tolist(), strict=True))


def _table(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(line) + " |" for line in lines]


def _number(value, digits=4):
    if np.isinf(value):
        return "∞"
    return f"{value:.{digits}f}" if value == 0 or value >= 10.0**-digits else f"{value:.0e}"


def means_table(losses, kernel):
    """Return the table of mean losses beside the paper's."""
    rows = []
    for method in ALL:
        mse, entropy, *_ = published.RESULTS[kernel].get(method, (None, None))
        ours = losses.mean(kernel, method, ENTROPY)
        rows.append([
            method, _number(losses.mean(kernel, method, MSE)), "" if mse is None else _number(mse),
            _number(ours), _number(ours / 10), "" if entropy is None else _number(entropy),
            str(losses.infinite(kernel, method)), _number(losses.mean(kernel, method, CLIPPED)),
            _number(losses.mean(kernel, method, ERROR)),
        ])  # fmt: skip
    folds = losses.folds * len(losses.data)
    head = ["method", "MSE", "paper", "cross-entropy", "/ 10", "paper", f"infinite, of {folds} folds"]
    return _table([*head, "clipped", "error rate"], rows)


def ranks_table(losses, kernel):
    """Return the table of mean ranks, among the paper's nine methods and among all, next to the paper's."""
    found = [losses.mean_ranks(kernel, loss, among) for loss in (MSE, ENTROPY) for among in (PAPER, RANKED)]
    rows = []
    for method in RANKED:
        *_, mse, entropy = published.RESULTS[kernel].get(method, (None, None))
        cells = [found[0].get(method), mse, found[1][method], found[2].get(method), entropy, found[3][method]]
        rows.append([method, *("" if cell is None else f"{cell:.2f}" for cell in cells)])
    head = ["method", "MSE, of 9", "paper", f"MSE, of {len(RANKED)}"]
    return _table([*head, "cross-entropy, of 9", "paper", f"cross-entropy, of {len(RANKED)}"], rows)


AHEAD, BEHIND = ("Platt", "Beta-2", "PP"), ("Softmax", "Bin-10", "Bin-50")


def _place(order, method, among):
    names = sorted(among, key=order.__getitem__)
    place = 1 + sum(order[name] < order[method] for name in among)
    return f"{place} of {len(among)}" + (f", first {names[0]}" if place > 1 else "")


def _pairs(order):
    lost = [f"{b} before {a}" for a in AHEAD for b in BEHIND if not order[a] < order[b]]
    return f"{9 - len(lost)} of 9" + (": " + ", ".join(lost) if lost else "")


def orderings_table(losses):
    """Return the table of the paper's orderings, by each of its four summaries."""
    summaries = ("mean MSE", "mean cross-entropy, clipped", "mean rank, MSE", "mean rank, cross-entropy")
    sane = [method for method in PAPER if method != "Beta"]
    rows = []
    for kernel, title in NAMES.items():
        orders = [{m: losses.mean(kernel, m, loss) for m in PAPER} for loss in (MSE, CLIPPED)]
        orders += [losses.mean_ranks(kernel, loss, PAPER) for loss in (MSE, ENTROPY)]
        rows.append([f"{title}: Platt, Beta-2, PP before Softmax, Bin-10, Bin-50", *map(_pairs, orders)])
        for method in ("KLR", "Platt", "PP", "Bin-50", "Beta"):
            among = PAPER if method == "Beta" else sane
            theirs = _place({m: published.RESULTS[kernel][m][0] for m in PAPER}, method, among).split(",")[0]
            said = f"{title}: place of {method} (paper, by MSE: {theirs})"
            rows.append([said, *(_place(order, method, among) for order in orders)])
    return _table(["", *summaries], rows)


def document(losses):
    """Return all tables as lines of Markdown."""
    out = ["## The paper's orderings", "", *orderings_table(losses)]
    for kernel, title in NAMES.items():
        out += ["", f"## {title}: means", "", *means_table(losses, kernel)]
        out += ["", f"## {title}: mean ranks", "", *ranks_table(losses, kernel)]
    ratios = [
        losses.mean(kernel, method, ENTROPY) / losses.mean(kernel, method, MSE)
        for kernel in NAMES for method in PAPER if not losses.infinite(kernel, method)
    ]  # fmt: skip
    out += [
        "",
        f"Mean cross-entropy by mean MSE lies between {min(ratios):.2f} and {max(ratios):.2f} among the paper's "
        "methods where it is finite; in the paper's tables between 0.317 and 0.352. Natural logarithms with one more "
        "division by 10 explain it, logarithms to base 2 or 10 do not.",
    ]
    return out
