"""What a checkpoint keeps of Venn-Abers calibrators, readers of scores, and inductive predictors."""

from __future__ import annotations

from typing import Any

import numpy as np

from venn._compiled.hulls import LIMIT
from venn._compiled.ranks import contents, of_sorted
from venn.machines.machine import grown
from venn.machines.sparse import SparseRows
from venn.maps import abers, abers_of_classes
from venn.online.forms.base import Form, register
from venn.online.forms.checks import checked_names, finite, numbers, rows_of, truth, whole, within
from venn.predictors import score_sources
from venn.predictors.counts import CategoryCounts, ScoreBag
from venn.predictors.cross import CrossVenn
from venn.predictors.history import History
from venn.predictors.inductive import InductiveVenn
from venn.predictors.inductive_abers import ClasswiseAbers, InductiveOneVsOneAbers, InductiveVennAbers
from venn.predictors.inductive_base import Inductive
from venn.predictors.inductive_conformal import InductiveConformal, Ranking

# ------------------------------------------------------------------------ Venn-Abers calibrators


def held_abers(calibrator: abers.VennAbers) -> dict[str, Any]:
    """Return the distinct scores and the packed examples at each; they decide all answers."""
    state = calibrator.__getstate__()
    return {"scores": state["scores"][1:], "blocks": state["blocks"][1:]}


def give_abers(calibrator: abers.VennAbers, state: dict[str, Any]) -> None:
    """Let a calibrator hold them."""
    checked_names("state", state, ("scores", "blocks"))
    scores, blocks = _scores_and_blocks(state["scores"], state["blocks"])
    calibrator.__setstate__({"scores": np.append(-np.inf, scores), "blocks": np.append(0, blocks)})


def _scores_and_blocks(scores: Any, blocks: Any) -> tuple[Any, Any]:
    m = rows_of("scores", scores)
    scores, blocks = finite("scores", scores, (m,)), numbers("blocks", blocks, (m,), np.int64)
    count, positive = blocks >> 32, blocks & 0xFFFFFFFF
    if not ((np.diff(scores) > 0).all() and (count >= 1).all() and (positive <= count).all()):
        raise ValueError("scores must be distinct and in order, with a number of examples each")
    if m and sum(count.tolist()) > LIMIT:
        raise ValueError(f"blocks must be at most {LIMIT} examples")
    return scores, blocks


class AbersForm(Form):
    """Of `VennAbers`."""

    views = True

    def state(self, thing: Any) -> dict[str, Any]:
        """Return the examples."""
        return held_abers(thing)

    def give(self, thing: Any, state: dict[str, Any]) -> None:
        """Let it hold the examples."""
        give_abers(thing, state)


class TablesForm(Form):
    """Of Venn-Abers for several classes: the examples of each table."""

    def state(self, thing: Any) -> dict[str, Any]:
        """Return the distinct scores of each table and what is at them, in order; None before there are any."""
        tables = thing._tables
        return {"tables": None if tables is None else [[t._scores, t._blocks] for t in tables.values()]}

    def give(self, thing: Any, state: dict[str, Any]) -> None:
        """Set the tables."""
        super().give(thing, state)
        if state["tables"] is None:
            return
        c = len(thing.classes)
        pairs = [(i, j) for i in range(c) for j in range(i + 1, c)]
        keys = pairs if isinstance(thing, abers_of_classes.OneVsOneAbers) else [(k,) for k in range(c)]
        made = [abers.Table.of_blocks(*_scores_and_blocks(*arrays)) for arrays in state["tables"]]
        if len(made) != len(keys):
            raise ValueError(f"tables must be one for each of {c} classes or their pairs, got {len(made)}")
        thing._tables = dict(zip(keys, made, strict=True))


# ------------------------------------------------------------------------------ readers of scores


def held_reader(reader: Any) -> dict[str, Any]:
    """Return the calibration examples that a reader of scores has taken in."""
    if isinstance(reader, CategoryCounts):
        # In one order, whatever the order in which they were met or parts were merged.
        categories = sorted(reader._places)
        return {"categories": np.array(categories, np.int64), "counts": reader._known(categories)}
    if isinstance(reader, ScoreBag | score_sources.Kept):
        return {"scores": reader._scores[: reader._n], "codes": reader._codes[: reader._n]}
    if isinstance(reader, ClasswiseAbers):
        return {"calibrators": [held_abers(one) for one in reader._calibrators]}
    if isinstance(reader, Ranking):
        return {"values": [contents(buckets) + 0.0 for buckets in reader._seen]}
    raise TypeError(f"a reader of scores must be one of this package, got {reader!r}")


def give_reader(reader: Any, state: dict[str, Any], c: int) -> None:
    """Let a reader that has seen nothing have taken them in."""
    checked_names("state of the reader", state, held_reader(reader))
    if isinstance(reader, CategoryCounts):
        p = rows_of("categories", state["categories"])
        categories = numbers("categories", state["categories"], (p,), np.int64).tolist()
        counts = within("counts", state["counts"], (p, c), 0, 1 << 53)
        reader._places = {category: place for place, category in enumerate(categories)}
        if len(reader._places) != p:
            raise ValueError("categories must be distinct")
        reader._counts = grown(counts, 2 * p + 1, c)
        if reader.taxonomy.determines_class:
            reader._classes_of(categories)
    elif isinstance(reader, ClasswiseAbers):
        for one, held in zip(reader._calibrators, state["calibrators"], strict=True):
            give_abers(one, held)
    elif isinstance(reader, Ranking):
        for g, values in enumerate(state["values"]):
            numbers("values", values, (rows_of("values", values),))
            if np.isnan(values).any():
                raise ValueError("values must be numbers, got NaN")
            reader._seen[g] = of_sorted(np.sort(values))
        if len(state["values"]) != len(reader._seen):
            raise ValueError(f"values must be those of {len(reader._seen)} groups, got {len(state['values'])}")
    else:
        m = rows_of("codes", state["codes"])
        scores = finite("scores", state["scores"], (m, c))
        codes = within("codes", state["codes"], (m,), 0, c)
        reader._n = m
        reader._scores, reader._codes = grown(scores, 2 * m + 1, c), grown(codes, 2 * m + 1)


# --------------------------------------------------------------------------- inductive predictors


def held_history(history: History | None) -> dict[str, Any] | None:
    """Return the examples so far; None where no training is to come."""
    return None if history is None else dict(zip(("X", "codes", "calibrates"), history.examples, strict=True))


def given_history(state: Any, n: int, c: int) -> History:
    """Return a history of n examples."""
    checked_names("history", state, ("X", "codes", "calibrates"))
    X, codes, calibrates = state["X"], state["codes"], state["calibrates"]
    history = History()
    if n:
        d = np.shape(X)[-1]
        whole("number of features", d, 1)
        if not (isinstance(X, SparseRows) and X.shape == (n, d)):  # whose form has checked them
            finite("X", X, (n, d))
        within("codes", codes, (n,), 0, c)
        history.append(X, codes, numbers("calibrates", calibrates, (n,), np.bool_))
    elif any(rows_of(name, value) for name, value in state.items()):
        raise ValueError("history must hold the examples learned, got some of none")
    return history


def held_inductive(part: Inductive[Any]) -> dict[str, Any]:
    """Return what an inductive predictor has learned."""
    return {
        "n": part.n,
        "features": part._features,
        "draws": part._rng,
        "history": held_history(part._history),
        "trained_on": None if part._history is None else part._training_set,
        "machine": None if part._machine is part._given else part._machine,
        "scores": part.scorer is not None,
        "reader": held_reader(part._reader),
    }


def give_inductive(part: Inductive[Any], state: dict[str, Any]) -> None:
    """Let one that has learned nothing have learned it."""
    checked_names("state", state, held_inductive(part))
    c = len(part.classes)
    n, features = whole("n", state["n"]), state["features"]
    if (n == 0 or part._features is not None) and features != part._features:
        raise ValueError(f"features must be {part._features!r}, got {features!r}")
    if n:
        whole("features", features, 1)
    draws = state["draws"]
    if not isinstance(draws, np.random.Generator) or type(draws.bit_generator) is not type(part._rng.bit_generator):
        raise ValueError(f"draws must be a generator as of a new predictor, got {draws!r}")
    machine, scores = state["machine"], truth("scores", state["scores"])
    trains = part._next is not None
    if state["history"] is None:
        part._history = part._next = None
        if state["trained_on"] is not None:
            raise ValueError("trained_on must be None where no training is to come")
    else:
        if not trains:
            raise ValueError(f"history must be None by {part.schedule!r}, got one")
        part._history = given_history(state["history"], n, c)
        part._next = part.schedule.next_training(n)
        if n and np.shape(state["history"]["X"])[1] != features:
            raise ValueError(f"history must be of {features} features")
        m = rows_of("trained_on", state["trained_on"])
        trained = within("trained_on", state["trained_on"], (m,), 0, n)
        if not (np.diff(trained) > 0).all():
            raise ValueError("trained_on must be examples in order")
        part._training_set = trained.copy()
    if machine is None:
        if trains:
            raise ValueError("machine must be one that the schedule trains, got none")
    else:
        if not trains or type(machine) is not type(part._given) or repr(machine) != repr(part._given):
            raise ValueError(f"machine must be one like {part._given!r}, got {machine!r}")
        if part._history is not None and machine.n != len(part._training_set):
            raise ValueError(f"machine must have learned {len(part._training_set)} examples, got one of {machine.n}")
        part._machine = machine
    possible = not scores or part._machine.n > 0 if trains else scores
    if not possible:
        raise ValueError(f"scores must be whether there is a trained machine, got {scores}")
    part.n, part._features, part._rng = n, features, draws
    part.scorer = part._machine if scores else None
    give_reader(part._reader, state["reader"], c)


class InductiveForm(Form):
    """Of `InductiveVenn`, the two inductive Venn-Abers predictors and `InductiveConformal`."""

    views = True

    def state(self, thing: Any) -> dict[str, Any]:
        """Return what it has learned."""
        return held_inductive(thing)

    def give(self, thing: Any, state: dict[str, Any]) -> None:
        """Let it have learned that."""
        give_inductive(thing, state)


class CrossForm(Form):
    """Of `CrossVenn`: what each fold has learned."""

    views = True

    def state(self, thing: Any) -> dict[str, Any]:
        """Return what the folds have learned."""
        return {"parts": [held_inductive(part) for part in thing._parts]}

    def give(self, thing: Any, state: dict[str, Any]) -> None:
        """Let the folds have learned that."""
        checked_names("state", state, ("parts",))
        for part, held in zip(thing._parts, state["parts"], strict=True):
            give_inductive(part, held)


register(
    AbersForm(abers.VennAbers),
    TablesForm(abers_of_classes.OneVsAllAbers, merge="_merge"),
    TablesForm(abers_of_classes.OneVsOneAbers, merge="_merge"),
    InductiveForm(InductiveVenn, machine="_given"),
    InductiveForm(InductiveVennAbers, machine="_given"),
    InductiveForm(InductiveOneVsOneAbers, machine="_given", merge="_merge"),
    InductiveForm(InductiveConformal, machine="_given", seed="_smoothing.seed"),
    CrossForm(
        CrossVenn, machine="_given", seed="_assignment.seed", first="_assignment.first", growth="_assignment.growth",
        last="_assignment.last",
    ),
)  # fmt: skip
