"""Small bags full of ties: every answer against its definition, in any order of the bag, however it came about."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from centroids import NearestCentroid
from conftest import KERNELS, LABELS, OBJECTS, labels, objects, same_answer
from naive import abers_by_class, conformal, priors, span, svm, taxonomies
from naive import inductive as naive_inductive
from naive import scaling as naive_scaling
from naive import taxonomies as naive_taxonomies
from naive import venn as naive_venn
from naive import weights as weighted
from naive.coins import coin
from test_taxonomies import PAIRS, TWO_CLASSES

import venn
from venn.online import checkpoint

from .tally import Tally

#: Machines that weigh examples; the others take no kernel.
WEIGHTED = {
    "hinge": venn.OneVsAllSVM,
    "squares": venn.LeastSquaresSVM,
}
PLAIN = ("centroid",)
# The kernels under which all answers keep eight digits at any penalty drawn here; the others are tried by scores alone.
CALM = ("rbf", "rbf sharp", "linear")
NEAR = 1e-7  # a score so close to the edge of a cell of the grid may be on either side of it


@dataclass
class Case:
    """A bag and an object to ask about."""

    name: str
    kernel: str
    C: float
    c: int
    X: np.ndarray
    y: np.ndarray
    w: np.ndarray
    x: np.ndarray
    class_weights: np.ndarray

    @property
    def takes_weights(self) -> bool:
        return self.name in WEIGHTED

    @property
    def plain(self) -> bool:
        """Whether all examples weigh 1."""
        return bool((self.w == 1).all() and (self.class_weights == 1).all())

    def machine(self) -> Any:
        if self.takes_weights:
            return WEIGHTED[self.name](KERNELS[self.kernel][0], self.C, range(self.c), self.class_weights)
        return NearestCentroid(range(self.c))

    def teach(self, machine: Any, i: int) -> None:
        more = (float(self.w[i]),) if self.takes_weights else ()
        machine.learn_one(self.X[i], int(self.y[i]), *more)

    def taught(self, order: Any = None) -> Any:
        machine = self.machine()
        for i in range(len(self.y)) if order is None else order:
            self.teach(machine, i)
        return machine

    def gram(self) -> np.ndarray:
        bag = np.vstack([self.X, self.x])
        return KERNELS[self.kernel][1](bag, bag)


def drawn(rng: np.random.Generator, most: int = 13) -> Case:
    """Return a case."""
    name = str(rng.choice([*WEIGHTED, *WEIGHTED, *PLAIN]))
    c, n = int(rng.integers(2, 5)), int(rng.integers(0, most))
    kind = str(rng.choice(OBJECTS))
    X = objects(kind, rng, n + 1) * rng.choice([1.0, 1.0, 0.5, 3.0])
    y = labels(str(rng.choice([*LABELS, "one"])), rng, X, c)
    x = X[int(rng.integers(n))] if n and rng.random() < 0.5 else X[-1]
    ones = rng.random() < 0.6 or name not in WEIGHTED
    return Case(
        name, str(rng.choice([*CALM, *KERNELS])), float(rng.choice([0.05, 0.5, 1.0, 4.0, 10.0, 100.0])), c,
        X[:n], y[:n], np.ones(n) if ones else rng.choice([0.5, 1.0, 1.5], n), x.copy(),
        np.ones(c) if ones or rng.random() < 0.5 else rng.choice([0.5, 1.0, 2.0], c),
    )  # fmt: skip


# Definitions ---------------------------------------------------------------------------------------------------------


def defined(case: Case, j: int, leave_one_out: bool) -> np.ndarray | None:
    """Return the (n + 1, c) scores under hypothesis j, or None where the definition is another convention."""
    n, c, C = len(case.y), case.c, case.C
    codes = np.append(case.y, j).astype(int)
    bag = np.vstack([case.X, case.x])
    if case.name in PLAIN:
        return taxonomies.centroid(bag, codes, c, leave_one_out)
    w = np.append(case.w, 1.0) * case.class_weights[codes]
    K = case.gram()
    if case.name == "hinge" and leave_one_out:
        if not case.plain:
            return None
        distinct, where = np.unique(bag, axis=0, return_inverse=True)
        return span.one_vs_all(KERNELS[case.kernel][1](distinct, distinct), where.ravel(), codes, c, C)
    if case.name == "hinge":
        return svm.one_vs_all(K, codes, c, C) if case.plain else weighted.one_vs_all(K, codes, w, c, C) if n else None
    if not leave_one_out:
        return weighted.least_squares(K, codes, w, c, C)
    if n == 0:
        return np.zeros((1, c))
    return np.array([weighted.least_squares(K, codes, w, c, C, i)[i] for i in range(n + 1)])


def tolerance(case: Case) -> float:
    """Return how far scores may be from their definitions: the kernel's size times what its condition leaves."""
    if case.name in PLAIN:
        return 1e-9
    K = case.gram()
    scale = max(1.0, float(abs(K).max()))
    return 1e-6 * scale if case.kernel in CALM else 1e-5 * scale * max(1.0, case.C)


def on_an_edge(values: Any) -> bool:
    """Whether one of some numbers is so close to the edge of a cell of the grid that rounding decides."""
    values = np.asarray(values, float)
    cells = values[np.isfinite(values)] * 1e6 + 0.2718281828
    return bool((abs(cells - np.floor(cells) - 0.5) < NEAR * 1e6).any())


# Readers: what they say, from the machine's own scores ----------------------------------------------------------------


def rows_of(categories: list[Any], y: np.ndarray, ratios: np.ndarray | None, c: int) -> np.ndarray:
    if ratios is None:
        return naive_venn.matrix([list(own) for own in categories], y.tolist(), c)
    return np.array([priors.row(list(own), [*y, j], ratios.tolist(), c) for j, own in enumerate(categories)])


def shift_of(case: Case, rng: np.random.Generator) -> venn.shifts.PriorShift | None:
    if rng.random() < 0.6:
        return None
    train, operational = rng.dirichlet(np.ones(case.c), 2) * 0.9 + 0.1 / case.c
    return venn.shifts.PriorShift(train, operational)


def check_venn(case: Case, machine: Any, rng: np.random.Generator, tally: Tally) -> Callable[[Any], np.ndarray]:
    table = PAIRS | (TWO_CLASSES if case.c == 2 else {})
    name = str(rng.choice(list(table)))
    taxonomy, definition = table[name]
    leave_one_out, grouped = bool(rng.random() < 0.5), rng.random() < 0.3 and case.takes_weights
    if grouped:
        taxonomy = venn.taxonomies.Grouped(0, taxonomy)
    shift = shift_of(case, rng)
    rule = venn.prediction.RowMean() if rng.random() < 0.4 else None

    def model(machine: Any) -> Any:
        return venn.TransductiveVenn(machine, venn.LeaveOneOut(taxonomy) if leave_one_out else taxonomy, rule, shift)

    found = model(machine).predict_one(case.x)
    answer = machine.hypotheses(case.x)
    scores = [answer.leave_one_out(j) if leave_one_out else answer.scores(j) for j in range(case.c)]
    if grouped:
        definition = naive_taxonomies.within([*case.X[:, 0].tolist(), float(case.x[0])], definition)
    expected = rows_of([definition(s) for s in scores], case.y, None if shift is None else shift.ratios, case.c)
    how = f"{' leave-one-out' * leave_one_out}{' grouped' * grouped}{' shifted' * (shift is not None)}"
    what = f"venn {name}{how} of {case.name}"
    tally.same(abs(found.probabilities - expected).max() < 1e-12, what, (case, found.probabilities, expected))
    chosen = found.probabilities[:, found.index]
    tally.same((found.lower, found.upper) == (chosen.min(), chosen.max()), f"{what}: bounds", case)
    if rule is not None:
        means = expected.mean(axis=0)
        tally.same(means[found.index] >= means.max() - 1e-12, f"{what}: label", (case, found))
    return lambda machine: model(machine).predict_one(case.x).probabilities


def check_abers(case: Case, machine: Any, rng: np.random.Generator, tally: Tally) -> Callable[[Any], np.ndarray] | None:
    leave_one_out = bool(rng.random() < 0.5)
    if len(set(case.class_weights.tolist())) > 1 or case.name == "pairs":  # hypotheses have a table each
        try:
            venn.TransductiveVennAbers(machine, leave_one_out=leave_one_out).predict_one(case.x)
        except (TypeError, ValueError) as error:
            said = "class_weights must be equal", "machine must score a class against all others"
            tally.same(str(error).startswith(said), "abers with weights of classes", error)
        return None
    found = venn.TransductiveVennAbers(machine, leave_one_out=leave_one_out).predict_one(case.x)
    answer = machine.hypotheses(case.x)
    scores = [answer.leave_one_out(j) if leave_one_out else answer.scores(j) for j in range(case.c)]
    expected = abers_by_class.pairs(scores, case.y, case.c)
    what = f"abers{' leave-one-out' * leave_one_out} of {case.name}"
    tally.same(abs(found.pairs - expected).max() < 1e-12, what, (case, found.pairs, expected))
    return lambda machine: venn.TransductiveVennAbers(machine, leave_one_out=leave_one_out).predict_one(case.x).pairs


def check_conformal(case: Case, machine: Any, rng: np.random.Generator, tally: Tally) -> Callable[[Any], np.ndarray]:
    leave_one_out, seed = bool(rng.random() < 0.5), int(rng.integers(1000))
    conditional, smoothed = (bool(one) for one in rng.random(2) < 0.5)
    measure = venn.nonconformity.Margin(leave_one_out)
    shift = shift_of(case, rng)

    def model(machine: Any) -> Any:
        return venn.Conformal(machine, measure, conditional, smoothed, seed, shift)

    found = model(machine).predict_one(case.x).p_values
    answer = machine.hypotheses(case.x)
    tau = coin(seed, len(case.y), case.x) if smoothed else 1.0
    expected, every = [], []
    for j in range(case.c):
        codes = np.append(case.y, j).astype(int)
        rows = answer.leave_one_out(j) if leave_one_out else answer.scores(j)
        values = conformal.margins(rows.tolist(), codes.tolist())
        every += values
        steps = [conformal.on_grid(value) for value in values]
        ratios = np.ones(case.c) if shift is None else shift.ratios
        expected.append(priors.p_value(steps, codes.tolist(), ratios.tolist(), tau, conditional))
    what = f"conformal {measure!r}{' by class' * conditional}{' shifted' * (shift is not None)} of {case.name}"
    holds = abs(found - expected).max() < 1e-12
    if not holds and on_an_edge(every):
        tally.note("a nonconformity on the edge of a cell")
    else:
        tally.same(holds, what, (case, found, expected))
    return lambda machine: model(machine).predict_one(case.x).p_values


def check_scaler(case: Case, machine: Any, rng: np.random.Generator, tally: Tally) -> None:
    """Platt, isotonic and binned, on the machine's own training scores."""
    if len(case.y) == 0:
        return
    bag = machine.bag
    rows = np.repeat(np.arange(bag.counts.size), bag.counts.ravel())
    scores, truth = bag.scores[:, rows // case.c].tolist(), (rows % case.c).tolist()
    asked = machine.hypotheses(case.x).test_scores
    which = str(rng.choice(["platt", "isotonic", "binning"]))
    bins, frequency, laplace = int(rng.integers(1, 6)), bool(rng.random() < 0.5), bool(rng.random() < 0.5)
    kind = str(rng.choice(["step", "linear"]))
    own, of = {
        "platt": (venn.maps.Platt(), naive_scaling.platt),
        "isotonic": (venn.maps.Isotonic(kind), lambda f, t: naive_scaling.isotonic(f, t, kind)),
        "binning": (
            venn.maps.Binning(bins, venn.maps.EqualFrequency() if frequency else venn.maps.EqualWidth(), laplace),
            lambda f, t: naive_scaling.binning(f, t, bins, frequency, laplace),
        ),
    }[which]
    found = venn.ScoreCalibrator(machine, own, venn.predictors.TrainingScores()).predict_one(case.x).proba
    tally.same(np.isfinite(found).all() and abs(found.sum() - 1) < 1e-9, f"scaler {own!r} says probabilities", case)
    # A score in rounding's reach of another or of an edge is on either side of it: only what is clear is compared.
    gaps = np.array([np.diff(np.sort([*row, s])) for row, s in zip(scores, asked, strict=True)])
    if which == "platt" and (np.ptp(scores, axis=1) < 1e-3).any():
        return
    if which != "platt" and not ((gaps > 1e-6) | (gaps == 0)).all():
        return
    if which == "binning" and not frequency:
        return  # edges are as close to scores as it comes: tests/maps/test_scaling_maps.py has them
    try:
        expected = naive_scaling.forecast(of, scores, truth, asked)
    except ArithmeticError:
        tally.note("the definition of Platt's map gives up")
        return
    tally.same(abs(found - expected).max() < 1e-5, f"scaler {own!r} of {case.name}", (case, found, expected))


READERS = (check_venn, check_venn, check_abers, check_conformal, check_conformal, check_scaler)


# The trial -----------------------------------------------------------------------------------------------------------


def detoured(case: Case, rng: np.random.Generator, tally: Tally) -> Any:
    """Return a machine that holds the bag after learning other things, forgetting them, being saved and loaded."""
    machine = case.machine()
    forgets = hasattr(machine, "unlearn_one")
    loaded_at = int(rng.integers(len(case.y) + 1))
    twin = None
    for i in range(len(case.y)):
        if i == loaded_at:
            twin = checkpoint.unpack(checkpoint.pack(machine))
        for one in (machine, *([] if twin is None else [twin])):
            case.teach(one, i)
        if forgets and rng.random() < 0.4:
            # Something else: what is forgotten again must leave no trace, nor a look at it.
            place = int(rng.integers(len(case.y)))
            at = int(rng.integers(i + 2))
            look = rng.random() < 0.5
            for one in (machine, *([] if twin is None else [twin])):
                if look:
                    one.hypotheses(case.X[place]).leave_one_out(0)
                case.teach(one, place)
                order = [*range(i + 1), place]
                one.unlearn_one(at)  # one of them: the others move up
                order.pop(at)
                if at <= i:  # learn it again, as the last, and forget the copy: the order changes, the bag does not
                    case.teach(one, at)
                    one.unlearn_one(i)
            if at <= i:
                move_to_end(case, at, i)
    if twin is not None:
        tally.same(
            same_answer(machine.hypotheses(case.x), twin.hypotheses(case.x)), f"saved and loaded: {case.name}", case
        )
        tally.same(checkpoint.pack(twin) == checkpoint.pack(machine), f"saved and loaded: bytes of {case.name}", case)
    return machine


def move_to_end(case: Case, at: int, last: int) -> None:
    """Let example `at` of the first `last + 1` be the last of these."""
    order = [*(i for i in range(last + 1) if i != at), at, *range(last + 1, len(case.y))]
    case.X, case.y, case.w = case.X[order], case.y[order], case.w[order]


def check_scores(case: Case, machine: Any, tally: Tally) -> bool:
    """Compare all scores with their definitions; return whether these could be had."""
    answer, allowed = machine.hypotheses(case.x), tolerance(case)
    for j in range(case.c):
        for leave_one_out in (False, True):
            found = answer.leave_one_out(j) if leave_one_out else answer.scores(j)
            tally.same(
                np.isfinite(found).all(), f"scores of {case.name} are no numbers", (case, j, leave_one_out, found)
            )
            try:
                expected = defined(case, j, leave_one_out)
            except (ArithmeticError, AssertionError, RuntimeWarning, np.linalg.LinAlgError, ValueError) as error:
                tally.note(f"the definition gives up: {case.name}, {type(error).__name__}")
                return False
            if expected is None:
                continue
            difference = abs(found - expected).max()
            what = f"{'leave-one-out' if leave_one_out else 'training'} scores of {case.name}, {case.kernel}"
            tally.same(difference <= allowed, what, (case, j, difference, found, expected))
    tally.same(np.array_equal(answer.labels, case.y), f"labels of {case.name}", case)
    tally.same(machine.residual <= 1e-7 * max(1.0, abs(case.gram()).max()), f"residual of {case.name}, {case.kernel}",
               (case, machine.residual))  # fmt: skip
    return True


def compare_orders(
    case: Case, machine: Any, say: Callable[[Any], np.ndarray], rng: np.random.Generator, tally: Tally
) -> None:
    """The same bag in another order says the same to the last bit, but where rounding decides a cell of the grid."""
    order = rng.permutation(len(case.y))
    other = case.taught(order)
    back = np.append(np.argsort(order), len(order))
    mine, theirs = machine.hypotheses(case.x), other.hypotheses(case.x)
    for j in range(case.c):
        for read in ("scores", "leave_one_out"):
            first, second = getattr(mine, read)(j), getattr(theirs, read)(j)[back]
            difference = abs(first - second).max()
            # A leave-one-out score is a decision of whether an example has to go: at a bound either may be right.
            tally.same(
                difference <= 2 * tolerance(case), f"shuffled: {read} of {case.name}, {case.kernel}",
                (case, order, difference, first, second),
            )  # fmt: skip
    if case.kernel in CALM or not case.takes_weights:
        first, second = say(machine), say(other)
        if np.array_equal(first, second):
            tally.same(True, "")
            return
        tables = [getattr(mine, read)(j) for j in range(case.c) for read in ("scores", "leave_one_out")]
        others = [getattr(theirs, read)(j)[back] for j in range(case.c) for read in ("scores", "leave_one_out")]
        grids = [naive_venn.on_grid(table) for table in (*tables, *others)]
        half = len(tables)
        if all(np.array_equal(a, b) for a, b in zip(grids[:half], grids[half:], strict=True)):
            tally.same(abs(first - second).max() < 1e-12, f"shuffled: {case.name} says something else",
                       (case, order, first, second))  # fmt: skip
        else:
            tally.note("shuffled: a score on the edge of a cell")


def check_window(case: Case, rng: np.random.Generator, tally: Tally) -> None:
    """A window holds the last examples, and says what a machine says that has learned only these."""
    if not hasattr(case.machine(), "unlearn_one") or len(case.y) == 0:
        return
    size = int(rng.integers(1, len(case.y) + 2))
    window = venn.SlidingWindow(case.machine(), size)
    saved_at = int(rng.integers(len(case.y)))
    for i in range(len(case.y)):
        if i == saved_at:
            window = checkpoint.unpack(checkpoint.pack(window))
        case.teach(window, i)
    alone = case.taught(range(max(0, len(case.y) - size), len(case.y)))
    first, second = window.hypotheses(case.x), alone.hypotheses(case.x)
    tally.same(np.array_equal(first.labels, second.labels), f"window of {case.name}: labels", case)
    for j in range(case.c):
        for read in ("scores", "leave_one_out"):
            difference = abs(getattr(first, read)(j) - getattr(second, read)(j)).max()
            tally.same(difference <= 2 * tolerance(case), f"window of {case.name}, {case.kernel}: {read}",
                       (case, size, difference))  # fmt: skip


def schedule_of(rng: np.random.Generator) -> tuple[Any, Callable[[int], Any]]:
    """Return a schedule, and the definition of its splits by the number of examples."""
    kind = int(rng.integers(4))
    first, seed, share = int(rng.integers(1, 8)), int(rng.integers(100)), float(rng.choice([0.3, 0.5, 0.7]))
    last = int(rng.integers(8, 20)) if rng.random() < 0.5 else None
    growth = float(rng.choice([1.1, 1.5, 2.0]))
    if kind == 0:
        made = venn.schedules.PrefixRestart(first, growth, last)
        return made, lambda n: naive_inductive.prefix_restart(n, first, growth, last)
    if kind == 1:
        return venn.schedules.Prefix(share, first, last), lambda n: naive_inductive.prefix(n, share, first, last)
    if kind == 2:
        return venn.schedules.FreshSplit(share, seed), lambda n: naive_inductive.fresh_split(n, share, seed)
    made = venn.schedules.RandomAssignment(share, seed, first)
    return made, lambda n: naive_inductive.random_assignment(n, share, seed, first)


def check_inductive(case: Case, rng: np.random.Generator, tally: Tally) -> None:
    """An inductive predictor after every step, by splits and scorers made anew; saved and loaded on the way."""
    schedule, split = schedule_of(rng)
    score = naive_inductive.least_squares(0.5, 2.0)
    model = venn.InductiveVenn(venn.LeastSquaresSVM(venn.RBF(0.5), 2.0, range(case.c)), None, schedule=schedule)
    saved_at = int(rng.integers(len(case.y) + 1))
    for n in range(len(case.y) + 1):
        if n == saved_at:
            model = checkpoint.unpack(checkpoint.pack(model))
        x = case.X[n] if n < len(case.y) else case.x
        places = split(n)
        found = model.predict_one(x).probabilities
        expected = naive_inductive.predict(case.X, case.y, x, places, case.c, score)
        if abs(found - expected).max() >= 1e-12 and on_an_edge(
            score(case.X[places[0]], case.y[places[0]], np.vstack([case.X[places[1]], x]), case.c)
        ):
            tally.note("a score of an inductive scorer on the edge of a cell")
        else:
            tally.same(abs(found - expected).max() < 1e-12, f"inductive {type(schedule).__name__}",
                       (case, schedule, n, found, expected))  # fmt: skip
        if n < len(case.y):
            model.learn_one(x, int(case.y[n]))


def trial(rng: np.random.Generator, tally: Tally) -> None:
    case = drawn(rng)
    machine = detoured(case, rng, tally)
    tally.same(machine.n == len(case.y), f"n of {case.name}", case)
    if case.kernel in CALM or rng.random() < 0.7:
        check_scores(case, machine, tally)
    for reader in rng.choice(len(READERS), 3, replace=False):
        say = READERS[reader](case, machine, rng, tally)
        if say is not None:
            compare_orders(case, machine, say, rng, tally)
    check_window(case, rng, tally)
    if rng.random() < 0.3:
        check_inductive(case, rng, tally)
