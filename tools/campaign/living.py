"""What goes on for long, against what is made anew: threads, trainings, mixtures, trees, detectors, floors, lots."""

from __future__ import annotations

import copy
import math
import pickle
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import test_trees
import test_turns
from conftest import KERNELS, LABELS, OBJECTS, labels, objects
from naive import floor as naive_floor
from naive import kinds as naive_kinds
from naive import mixture as naive_mixture
from naive import objects as naive_objects
from sklearn.base import is_classifier
from test_contract import CLASSES, numbers

import venn
from venn.monitors import AmongAll, ClassDrift, Drift, Floor, FloorWatch
from venn.monitors.naming import Ties
from venn.online import checkpoint
from venn.saved import same_content
from venn.smoothing import Smoothing
from venn.turns import turn_of

from .tally import Tally

TWINS: tuple[Callable[[Any], Any], ...] = (
    lambda one: checkpoint.unpack(checkpoint.pack(one)),
    copy.deepcopy,
    lambda one: pickle.loads(pickle.dumps(one)),
)


def examples(rng: np.random.Generator, n: int, c: int = 3) -> tuple[np.ndarray, list[Any]]:
    """Return objects, some tied, at some scale, and labels of which some may never come."""
    X = objects(str(rng.choice(OBJECTS)), rng, n) * rng.choice([1.0, 1.0, 1e-3, 1e4])
    return X, [CLASSES[k] for k in labels(str(rng.choice(LABELS)), rng, X, c)]


def twin_of(one: Any, rng: np.random.Generator) -> Any:
    """Return it saved and loaded, copied, or pickled."""
    return TWINS[rng.integers(len(TWINS))](one)


def alike(one: Any, other: Any) -> bool:
    """Whether two predictions have the same numbers, to the last bit."""
    return np.array_equal(numbers(one), numbers(other))


# Threads -------------------------------------------------------------------------------------------------------------


def threads(rng: np.random.Generator, tally: Tally) -> None:
    """Four threads ask while one learns: each answer is that of a state between two examples."""
    name = str(rng.choice(list(test_turns.MODELS)))
    model, told, done = test_turns.MODELS[name](), [], []
    shown = test_turns.examples_for(model)
    held = int(rng.integers(0, 12))
    test_turns.taught(model, shown[:held])
    ask, several = test_turns.asking(model), hasattr(model, "predict_many") and rng.random() < 0.3
    orders = [rng.permutation(len(test_turns.ASKED)).tolist() for _ in range(4)]

    def question(order: list[int]) -> None:
        while len(done) < len(shown) - held:
            for i in order[:2]:
                before = len(done)
                told.append((i, before, ask(test_turns.ASKED[i]), len(done)))

    def teach() -> None:
        for x, y in shown[held:]:
            if several:
                model.predict_many(test_turns.ASKED)
            with turn_of(model):
                model.learn_one(x, y)
                done.append(None)

    test_turns.together(teach, *[lambda one=one: question(one) for one in orders])
    twin = test_turns.taught(test_turns.MODELS[name](), shown[:held])
    said = [[test_turns.asking(twin)(x) for x in test_turns.ASKED]]
    for x, y in shown[held:]:
        twin.learn_one(x, y)
        said.append([test_turns.asking(twin)(x) for x in test_turns.ASKED])
    for i, first, found, last in told[:: max(1, len(told) // 100)]:
        # The teacher writes down that it has learned before its turn ends, so its latest word may be heard early.
        tally.same(any(same_content(found, one[i]) for one in said[first : last + 2]), f"threads: {name}", (i, found))
    tally.same(same_content(ask(test_turns.ASKED[0]), said[-1][0]), f"threads: {name} at last", held)


# Forecasters ---------------------------------------------------------------------------------------------------------


def trainings(rng: np.random.Generator, tally: Tally) -> None:
    """A forecaster past its hand-over and its trainings: its parts alone say the same, and so does any twin."""
    n, c = int(rng.integers(20, 160)), int(rng.integers(2, 4))
    X, y = examples(rng, n, c)
    early = int(rng.integers(8, 60))
    last = early * int(rng.choice([1, 2, 5]))
    first = int(rng.choice([0, 2, 5, 30]))
    if not first:  # columns as they are: too large for the kernel's precision they are refused, with advice
        X = X / max(1.0, np.abs(X).max())
    keep = bool(rng.random() < 0.7)
    chosen = {"transductive": early, "last": last, "first": first, "on_change": "keep" if keep else "restart"}
    if rng.random() < 0.3:
        chosen["floor"] = 0.8
    model = venn.Forecaster(CLASSES[:c], **chosen)
    schedule = venn.schedules.Prefix(0.7, first=early, growth=1.4, last=last)
    stack = venn.machines.Stack(CLASSES[:c])
    alone = {
        "intervals": venn.InductiveVennAbers(stack, schedule=schedule),
        "sets": venn.InductiveConformal(stack.fresh(), schedule=schedule),
    }
    twin, at = None, int(rng.integers(n))
    begun = 0
    for i, (x, label) in enumerate(zip(X, y, strict=True)):
        if i == at:
            twin = twin_of(model, rng)
        if i % 7 == 0 or i >= n - 2:
            said = model.predict_one(x)
            check_outlook(said, chosen, tally)
            if i - begun >= early and begun == 0:
                for name, one in alone.items():
                    own = numbers(one.predict_one(x))
                    tally.same(np.array_equal(numbers(said[name]), own), f"forecaster: {name}, and alone", (i, chosen))
            if twin is not None:
                tally.same(alike(said, twin.predict_one(x)), "forecaster: its twin says another thing", chosen)
        for one in (model, *(() if twin is None else (twin,)), *(alone.values() if begun == 0 else ())):
            one.learn_one(x, label)
        main = model["intervals"].n
        if main != i + 1 - begun:
            begun = i + 1 - main
            tally.note("a forecaster begins anew")
    tally.same(model.n == n, "forecaster: n", (model.n, n))
    tally.same(checkpoint.pack(model) == checkpoint.pack(twin), "forecaster: bytes of its twin", (at, chosen))
    if rng.random() < 0.4:
        many = venn.Forecaster(CLASSES[:c], **chosen)
        cut = int(rng.integers(1, n))
        many.learn_many(X[:cut], y[:cut])
        if cut < n:
            many.replay_many(X[cut:], y[cut:])
        tally.same(checkpoint.pack(many) == checkpoint.pack(model), "forecaster: many examples at once", (cut, chosen))
    if begun:
        anew = venn.Forecaster(CLASSES[:c], **chosen)
        for x, label in zip(X[begun:], y[begun:], strict=True):
            anew.learn_one(x, label)
        if anew["intervals"].n == n - begun:
            said = anew.predict_one(X[0])
            for name in ("intervals", "sets"):  # the forecast keeps what was fitted to all examples
                one = said[name]
                tally.same(np.array_equal(numbers(one), numbers(model.predict_one(X[0])[name])),
                           f"forecaster: {name} after it began anew", (begun, chosen))  # fmt: skip
    block = model.predict_many(X[:3])
    for i in range(3):
        tally.same(np.allclose(block.one(i).proba, model.predict_one(X[i]).proba, atol=1e-12),
                   "forecaster: many objects", (i, chosen))  # fmt: skip


def check_outlook(said: Any, chosen: Any, tally: Tally) -> None:
    low, high = said.intervals.T
    p = said.proba
    tally.same((p >= 0).all() and abs(p.sum() - 1) < 1e-9, "forecaster: no probabilities", (chosen, said))
    tally.same((low >= 0).all() and (low <= high).all() and (high <= 1).all(), "forecaster: intervals", (chosen, said))


def mixtures(rng: np.random.Generator, tally: Tally) -> None:
    """Venn-Abers on a mixture by its definition; in any order of the bag, saved on the way, in a window."""
    c, n = int(rng.integers(2, 4)), int(rng.integers(1, 12))
    X = objects(str(rng.choice(OBJECTS)), rng, n)
    y = labels(str(rng.choice(LABELS)), rng, X, c)
    names = list(rng.choice(["rbf", "linear"], int(rng.integers(1, 3)), replace=False))
    penalties, rate = ((0.5, 5.0), (1.0,))[rng.integers(2)], float(rng.choice([1.0, 0.25, 4.0]))
    bank = venn.machines.Bank([KERNELS[one][0] for one in names], range(c), penalties)
    model = venn.TransductiveVennAbers(venn.machines.Mixture(bank, rate))
    x, at = X[-1], int(rng.integers(n))
    for i in range(n - 1):
        if i == at:
            model = twin_of(model, rng)
        if rng.random() < 0.3:
            model.predict_one(X[int(rng.integers(n))])
        model.learn_one(X[i], int(y[i]))
    found = model.predict_one(x).pairs
    matrices = [KERNELS[one][1](X, X) for one in names]
    try:
        expected = naive_mixture.pairs(matrices, penalties, y[:-1], c, rate)
    except (ArithmeticError, np.linalg.LinAlgError):
        tally.note("the definition gives up")
        return
    tally.same((found >= 0).all() and (found <= 1).all(), "mixture: pairs", found)
    tally.same(np.allclose(found, expected, atol=1e-7), "mixture: its definition", (X, y, names, penalties, rate, found,
               expected))  # fmt: skip
    other = venn.TransductiveVennAbers(venn.machines.Mixture(bank.fresh(), rate))
    for i in rng.permutation(n - 1):
        other.learn_one(X[i], int(y[i]))
    tally.same(np.allclose(other.predict_one(x).pairs, found, atol=1e-7), "mixture: shuffled", (X, y, names, rate))


# Trees ---------------------------------------------------------------------------------------------------------------


def trees(rng: np.random.Generator, tally: Tally) -> None:
    """Fitted trees, walked as arrays, answer as scikit-learn; as given scorers they calibrate as those asked itself."""
    numeric = rng.random() < 0.3
    kinds = test_trees.REGRESSORS if numeric else test_trees.CLASSIFIERS
    name, c = str(rng.choice(list(kinds))), int(rng.integers(2, 5))
    n, d = int(rng.integers(12, 150)), int(rng.integers(1, 6))
    X = rng.normal(size=(n, d)) * rng.choice([1.0, 1e-3, 1e6])
    X = (X.round(1), X, X.astype(np.float32).astype(float), np.floor(X))[rng.integers(4)]
    estimator = kinds[name]().set_params(random_state=int(rng.integers(100)))
    gaps = (name in test_trees.WITH_GAPS or "hist" in name) and rng.random() < 0.5
    if gaps:
        X[rng.random(X.shape) < 0.2] = np.nan
    y = rng.permutation(np.arange(n) % c)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator.fit(X, y if is_classifier(estimator) else y + rng.random(n) + 0.1)
        asked = np.vstack([X[:40], X[:10] * 1.5, np.nextafter(X[:10], np.inf), -X[:5]])
        if rng.random() < 0.3:
            asked[rng.random(asked.shape) < 0.1] = rng.choice([np.nan, np.inf, 1e300, 3.5e38])
        found = venn.machines.trees.FlatTrees.of(estimator)
        if found is None:
            tally.note(f"not walked: {name}")
            return
        for method in found.answers:
            for row in (*asked[:, None], asked):
                try:
                    expected = getattr(estimator, method)(row)
                except ValueError:
                    expected = None
                try:
                    own = found.answer(method, row)
                except ValueError:
                    tally.note("left to the estimator")
                    continue
                # From eight classes on sums of rows in blocks have other last bits; not here.
                tally.same(expected is not None and np.array_equal(own, expected), f"trees: {method} of {name}",
                           (row, own, expected))  # fmt: skip
    if is_classifier(estimator):
        given(estimator, X, [int(one) for one in y], rng, tally, name)


def given(estimator: Any, X: np.ndarray, y: list[int], rng: np.random.Generator, tally: Tally, name: str) -> None:
    """A scorer of trees calibrates to the last bit as one of a class of the user's own, which is not walked."""

    class Own:
        classes_ = estimator.classes_
        n_features_in_ = X.shape[1]

        def predict_proba(self, X: Any) -> Any:
            return estimator.predict_proba(X)

        def predict(self, X: Any) -> Any:
            return estimator.predict(X)

    if hasattr(estimator, "decision_function"):
        Own.decision_function = lambda self, X: estimator.decision_function(X)  # type: ignore[attr-defined]
    kind = (venn.InductiveVenn, venn.InductiveVennAbers, venn.InductiveConformal)[rng.integers(3)]
    known = [one for one in range(len(y)) if np.isfinite(X[one]).all()]
    if not known:
        return
    models = [kind(venn.FrozenScorer(estimator)), kind(venn.FrozenScorer(Own()))]
    for model in models:
        for i in known[:15]:
            model.learn_one(X[i], y[i])
        model.learn_many(X[known[15:]], [y[i] for i in known[15:]]) if known[15:] else None
    for i in known[:5]:
        one, other = (numbers(model.predict_one(X[i])) for model in models)
        tally.same(np.array_equal(one, other), f"trees: {kind.__name__} on {name}", (i, one, other))


# Detectors and floors -------------------------------------------------------------------------------------------------


def drifts(rng: np.random.Generator, tally: Tally) -> None:
    """Classes, columns, floors: p-values, names and bets by definition, with gaps and texts, saved on the way."""
    (of_classes, of_columns, of_floors)[rng.integers(3)](rng, tally)


def of_classes(rng: np.random.Generator, tally: Tally) -> None:
    n, seed, k, level = int(rng.integers(1, 60)), int(rng.integers(100)), int(rng.integers(1, 4)), 0.6
    X, y = objects(str(rng.choice(OBJECTS)), rng, n), [str(one) for one in rng.choice(list("abc"), n)]
    y[n // 2 :] = ["c" if rng.random() < 0.7 else one for one in y[n // 2 :]]
    drift, ties = ClassDrift(list("abc"), AmongAll(k), level=level, seed=seed), Ties(seed)
    at = int(rng.integers(n))
    within: dict[str, list[float]] = {one: [] for one in "abc"}
    for i in range(n):
        if i == at:
            drift = twin_of(drift, rng)
        try:
            drift.update(X[i], "d") if rng.random() < 0.2 else drift.update([math.inf] * X.shape[1], y[i])
            tally.fail("classes: what is bad is taken", i)
        except ValueError:
            pass
        drift.update(X[i], y[i])
        of_label, of_object = ties.at(i)
        alike = [X[j].tolist() for j in range(i + 1) if y[j] == y[i]]
        wanted = naive_kinds.of_label(y[: i + 1], of_label), naive_objects.among_all(alike, k, of_object)
        tally.same(np.allclose(drift.p_values, wanted, atol=1e-12), "classes: p-values", (i, drift.p_values, wanted))
        within[y[i]].append(wanted[1])
    most = [max(naive_kinds.capitals(ps)) if ps else 1.0 for ps in within.values()]
    if all(abs(math.log(one * level / 6)) > 1e-6 for one in most):
        named = naive_kinds.holm([min(1.0, 1 / one) for one in most], level / 3 / 2)
        found = set(np.flatnonzero(drift.state["naming"].named).tolist())
        tally.same(found == named, "classes: names", (found, named, most))
    tally.same(drift.n == n and drift.kinds is not None and str(drift.verdict()), "classes: verdict", drift)


def of_columns(rng: np.random.Generator, tally: Tally) -> None:
    n, d, seed, level = int(rng.integers(1, 90)), int(rng.integers(1, 5)), int(rng.integers(100)), 0.8
    X = rng.integers(0, int(rng.choice([2, 4, 1000])), (n, d)) / 2
    X[rng.random((n, d)) < rng.choice([0.0, 0.1, 0.9])] = np.nan
    words = rng.choice(["a", "b", "c"], n)
    X[n // 2 :, 0] += rng.choice([0.0, 1.5])
    drift, ties = Drift(level=level, seed=seed, columns=True), Smoothing(seed)
    at, mapped = int(rng.integers(n)), rng.random() < 0.5
    ps: list[list[float]] = [[] for _ in range(d + 1)]
    for i in range(n):
        if i == at:
            drift = twin_of(drift, rng)
        values = [*[None if np.isnan(v) else float(v) for v in X[i]], str(words[i])]
        drift.update(dict(zip("pqrstu", values, strict=False)) if mapped else values)
        for j in range(d):
            ps[j].append(naive_kinds.of_number([None if np.isnan(v) else v for v in X[: i + 1, j]], ties.at(i)))
        ps[d].append(naive_kinds.of_label(words[: i + 1].tolist(), ties.at(i)))
        columns: Any = drift.state["column_drift"]
        tally.same(np.allclose(columns.p_values, [own[-1] for own in ps], atol=1e-12), "columns: p-values", (i, X[i]))
    most = [max(naive_kinds.capitals(own)) for own in ps]
    share = columns.level / 2
    if all(abs(math.log(one * share / k)) > 1e-6 for one in most for k in range(1, d + 2)):
        named = naive_kinds.holm([min(1.0, 1 / one) for one in most], share)
        tally.same({one.place for one in columns.found} == named, "columns: names", (named, most))
    tally.same(str(drift.verdict()) and columns.pictures() is not None, "columns: words", drift)


def of_floors(rng: np.random.Generator, tally: Tally) -> None:
    at, n = float(rng.choice([0.5, 0.9, 0.99, 0.35])), int(rng.integers(1, 60))
    chance = float(rng.choice([1.0, 0.7, 0.5, 0.2, 0.01]))
    floor = Floor(at, level=0.2, run_length=30, chance=chance)
    watch, zs, rung = FloorWatch(floor, memory=int(rng.choice([1, 20, 1000]))), [], 0
    guessed = chance <= 0.5
    each, twin_at, since = naive_floor.bets(floor.risk, chance, guessed), int(rng.integers(n)), 0
    for i in range(n):
        if i == twin_at:
            watch = twin_of(watch, rng)
        loss, guess = float(rng.choice([0, 0.5, 1])), float(rng.choice([0, 0.25, 1])) if guessed else 0.0
        asked = bool(rng.random() < chance)
        rang = [one.detector for one in watch.update(loss if asked else None, guess)]
        zs.append(naive_floor.by_lot(loss, guess, chance, asked))
        capital = naive_floor.capital(zs, floor.risk, each)
        total = naive_floor.sum_of_capitals(zs[since:], floor.risk, each)
        tally.same(math.isclose(watch.bets.log, math.log(capital), rel_tol=1e-9, abs_tol=1e-9), "floor: K", (zs, floor))
        if abs(math.log(total / 30)) > 1e-9:
            tally.same(("ShiryaevRoberts" in rang) == (total >= 30), "floor: R rings", (zs, floor, total))
        if "ShiryaevRoberts" in rang:
            since, rung = i + 1, rung + 1
    tally.same(watch.rung == rung and watch.n == n and watch.sentence and watch.snapshot(), "floor: counts", watch)


# Labels by lot --------------------------------------------------------------------------------------------------------


def lots(rng: np.random.Generator, tally: Tally) -> None:
    """Labels by lot, late, never, journaled, restarted: what is learned is what a model learns of the drawn alone."""
    n, chance, seed = int(rng.integers(1, 40)), float(rng.choice([0.1, 0.4, 0.5, 0.8, 1.0])), int(rng.integers(100))
    X, y = examples(rng, n)
    makers = {
        "venn": lambda: venn.TransductiveVenn(test_turns.squares()),
        "abers": lambda: venn.TransductiveVennAbers(test_turns.squares()),
        "conformal": lambda: venn.Conformal(test_turns.squares()),
        "inductive": lambda: venn.InductiveVenn(test_turns.squares(), schedule=venn.schedules.PrefixRestart(first=6)),
    }
    name = str(rng.choice(list(makers)))
    path = Path("run.db") if rng.random() < 0.5 else None
    late = int(rng.integers(0, 5))

    def start() -> venn.Online:
        journal = None if path is None else venn.online.Journal(path, every=int(rng.integers(1, 20)), share=1)
        return venn.Online(makers[name](), FloorWatch(0.6), journal, labels=venn.online.Lot(chance, seed=seed))

    lot = venn.online.Lot(chance, seed=seed)
    online, held, told = start(), [], makers[name]()
    order = []
    for i in range(n):
        said, wanted = online.ask(X[i], i)
        tally.same(wanted == lot.draw(i + 1, X[i]).wanted, "lot: a draw", (i, lot))
        tally.same(alike(said, told.predict_one(X[i])), f"lot: {name}, and of the drawn alone", (i, lot))
        order.append(wanted)
        held += [i] if wanted else []
        if not wanted:
            try:
                online.answer(i, y[i])
                tally.fail("lot: an answer to what was not drawn is taken", i)
            except ValueError:
                tally.compared += 1
        while len(held) > late:
            place = held.pop(int(rng.integers(len(held))))
            online.answer(place, y[place])
            told.learn_one(X[place], y[place])
        if path is not None and rng.random() < 0.1:
            online.close() if rng.random() < 0.5 else online.journal.close()
            online = start()
    for place in held:
        online.answer(place, y[place])
        told.learn_one(X[place], y[place])
    tally.same(online.asked == n and online.answered == sum(order), "lot: counts", (online, order))
    tally.same(not online.pending and online.expired == n - sum(order), "lot: who waits", (online, order))
    tally.same(online.monitors["floor"].n == n, "lot: the floor sees every question", online)
    tally.same(alike(online.panel.predict_one(X[0]), told.predict_one(X[0])), f"lot: {name} at last", lot)
    tally.same(str(online.verdict()), "lot: verdict", online)
    if path is not None:
        online.close()
        venn.online.verify(path)
