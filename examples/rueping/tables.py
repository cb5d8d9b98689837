"""Tables of the losses of all folds, next to the paper's."""

import numpy as np
from scipy import stats

from rueping import machines, published, sets
from rueping.methods import ALL, ASIDE, DEFAULT, PAPER

MSE, ENTROPY, CLIPPED, ERROR, SECONDS = range(5)  # columns of the losses
RANKED = tuple(name for name in ALL if name not in ASIDE)
LEVEL = 0.05
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

    def worse(self, kernel, row, column):
        """Return on which sets (sets,) "the row is better than the column" is rejected, by clipped entropy."""
        return np.array([
            rejected(self._table[name, kernel, row][:, CLIPPED] - self._table[name, kernel, column][:, CLIPPED])
            for name in self.data
        ])  # fmt: skip


def rejected(differences):
    """Return whether a one-sided paired t-test at level .05 rejects that the mean difference is <= 0.

    Folds that all differ by the same amount have no variance: then the sign of that amount decides.
    """
    mean, spread = differences.mean(), differences.std(ddof=1) / np.sqrt(len(differences))
    # Equal up to rounding: no difference.
    if np.abs(differences).max() < 1e-12:
        return False
    if spread <= 1e-12 * abs(mean):
        return bool(mean > 0)
    return bool(mean / spread > stats.t.ppf(1 - LEVEL, len(differences) - 1))


def _table(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(line) + " |" for line in lines]


def _number(value, digits=4):
    if np.isinf(value):
        return "∞"
    return f"{value:.{digits}f}" if value == 0 or value >= 10.0**-digits else f"{value:.0e}"


def choices_table(data, choices):
    """Return the table of sets and of parameters; `choices` by (set, kernel) for each machine (see `machines`)."""
    rows = []
    for one in data:
        n, d = one.X.shape
        row = [one.name, f"{one.negative}, {one.positive}", f"{n} × {d}", "{} × {}".format(*sets.PUBLISHED[one.name])]
        for kernel in machines.KERNELS:
            for parameters, accuracy, _ in choices[one.name, kernel].values():
                ends = machines.at_ends(parameters, d)
                text = f"{parameters.C:g}{'*' * ('C' in ends)}"
                if parameters.gamma:
                    text += f", {parameters.gamma * d:g}{'*' * ('gamma' in ends)}"
                row.append(f"{text} ({accuracy:.3f})")
        rows.append(row)
    head = ["set", "classes 0, 1", "here", "paper"]
    kinds = [f"{machine}, {kernel}" for kernel in ("linear", "RBF") for machine in ("SVM", "KLR", "LS-SVM")]
    return _table([*head, *kinds], rows)


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


def rejections_table(losses, kernel):
    """Return the table of the paper's t-tests: on how many sets the row is not better than the column."""
    rows = [
        [row, *(
            "" if row == column else f"{losses.worse(kernel, row, column).sum()} ({theirs})"
            for column, theirs in zip(published.TESTED, published.REJECTIONS[kernel][r], strict=True)
        )]
        for r, row in enumerate(published.TESTED)
    ]  # fmt: skip
    return _table(["", *published.TESTED], rows)


def against_platt_table(losses):
    """Return the table of significant differences from Platt."""
    rows = []
    for method in RANKED:
        if method != "Platt":
            counts = [losses.worse(k, *pair).sum() for k in NAMES for pair in (("Platt", method), (method, "Platt"))]
            rows.append([method, *map(str, counts)])
    return _table(["method", *(f"{k}: {way}" for k in ("linear", "RBF") for way in ("better", "worse"))], rows)


def by_set_table(losses, kernel, loss):
    """Return the table of one loss by set, the best of each in bold."""
    values = {method: losses.by_set(kernel, method, loss) for method in RANKED}
    best = np.min(list(values.values()), axis=0)
    rows = [
        [method, *(f"**{_number(v)}**" if v == b else _number(v) for v, b in zip(row, best, strict=True))]
        for method, row in values.items()
    ]
    return _table(["method", *losses.data], rows)


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


def seconds_table(losses, choices):
    """Return the table of processor seconds, by set and kernel."""
    rows = []
    for name in losses.data:
        for kernel in NAMES:
            chosen = sum(seconds for *_, seconds in choices[name, kernel].values())
            maps = sum(losses[name, kernel, m][:, SECONDS].sum() for m in ALL if m not in ("KLR", DEFAULT))
            parts = [losses[name, kernel, "SVM"].sum(), maps]
            parts += [losses[name, kernel, m][:, SECONDS].sum() for m in ("KLR", DEFAULT)]
            rows.append([name, kernel, *(f"{value:.1f}" for value in (chosen, *parts))])
    sums = np.array([[float(cell) for cell in row[2:]] for row in rows]).sum(axis=0)
    rows.append(["all", "", *(f"{value:.0f}" for value in sums)])
    return _table(["set", "kernel", "choice of parameters", "SVM scores", "maps", "KLR", DEFAULT], rows)


def document(losses, data, choices):
    """Return all tables as lines of Markdown, except those of seconds."""
    sets_ = len(losses.data)
    out = ["## Sets and parameters", "", *choices_table(data, choices), ""]
    penalties = [", ".join(f"{C:g}" for C in machines.PENALTIES[kernel]) for kernel in NAMES]
    out += [
        "Rows × features, constant ones left out; then C, and with the RBF kernel γd, γ times the number of features. "
        "They were chosen once for each set, kernel and machine, by accuracy (in brackets; of SVM and KLR by "
        f"{machines.CHOICE_FOLDS}-fold cross-validation, of the least-squares SVM by leave-one-out) on at most "
        f"{machines.LARGEST_CHOICE} examples drawn from the whole set; of equal ones the smallest C, then the smallest "
        f"γ. An asterisk marks an end of what was tried: C {penalties[0]} (linear), {penalties[1]} (RBF); γd "
        f"{', '.join(f'{width:g}' for width in machines.WIDTHS)}.",
    ]
    for kernel, title in NAMES.items():
        out += ["", f"## {title}: means", "", *means_table(losses, kernel)]
        out += ["", f"## {title}: mean ranks", "", *ranks_table(losses, kernel)]
        out += ["", f"## {title}: paired t-tests", "", *rejections_table(losses, kernel)]
    out += [
        "",
        f"Number of the {sets_} sets on which the hypothesis that the row is better than the column is rejected, in "
        f"brackets the paper's of {published.SETS}: one-sided paired t-test over the {losses.folds} folds at level "
        f"{LEVEL:g}, by cross-entropy, clipped (an infinite difference has no t).",
    ]
    out += ["", "## The paper's orderings", "", *orderings_table(losses)]
    out += ["", f"## Better and worse than Platt, of {sets_} sets, by the same tests", "", *against_platt_table(losses)]
    for kernel, title in NAMES.items():
        for loss, name in ((MSE, "MSE"), (ENTROPY, "cross-entropy")):
            out += ["", f"## {title}: {name} by set", "", *by_set_table(losses, kernel, loss)]
    klr = losses.by_set("rbf", "KLR", MSE)
    low, high = int(klr.argmin()), int(klr.argmax())
    ratios = [
        losses.mean(kernel, method, ENTROPY) / losses.mean(kernel, method, MSE)
        for kernel in NAMES for method in PAPER if not losses.infinite(kernel, method)
    ]  # fmt: skip
    out += [
        "",
        f"MSE of KLR with the RBF kernel runs from {klr[low]:.1e} ({losses.data[low]}) to {klr[high]:.3f} "
        f"({losses.data[high]}); in the paper from {published.KLR_RBF_MSE[0]:g} (mushroom) to "
        f"{published.KLR_RBF_MSE[1]:g} (liver).",
        "",
        f"Mean cross-entropy by mean MSE lies between {min(ratios):.2f} and {max(ratios):.2f} among the paper's "
        "methods where it is finite; in the paper's tables between 0.317 and 0.352. Natural logarithms with one more "
        "division by 10 explain it, logarithms to base 2 or 10 do not.",
    ]
    return out
