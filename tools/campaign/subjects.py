"""What is called: every public function, constructor and method, and good arguments by the names of parameters."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from test_contract import (
    CLASSES,
    MACHINES,
    PARAMETERS,
    PREDICTIONS,
    PREDICTORS,
    learned,
    small_stream,
    squares,
)
from test_monitor_contract import RUNNING, stepped

import streams
import venn
from venn import monitors, scale

X, Y = small_stream(0, 20)
CODES = np.array([CLASSES.index(label) for label in Y])
P = np.random.default_rng(0).dirichlet(np.ones(3), 20)
NUMBERS = np.tile(X, (3, 1))[:56], np.tile(CODES, 3)[:56] + 0.5 * (np.arange(56) % 3)  # past a fit and a training


def frozen() -> Any:
    return venn.FrozenScorer(LinearSVC().fit(X, Y))


def file(name: str, text: str) -> str:
    Path(name).write_text(text)
    return name


def csv() -> str:
    return file("good.csv", "a,b,label\n1,2,x\n2,1,y\n0,0,x\n")


def lines() -> str:
    return file("good.jsonl", '{"id": 1, "x": [0.5, 1.0]}\n{"id": 1, "y": "a"}\n')


def online() -> Any:
    made = venn.Online(venn.TransductiveVenn(squares()), venn.Monitor(CLASSES))
    for x, y in zip(X[:6], Y[:6], strict=True):
        made.ask(x)
        made.answer(made.asked, y)
    made.ask(X[6], "open")
    return made


def record() -> Any:
    return venn.replay(
        zip(X, Y, strict=True), venn.Panel(TransductiveVenn=venn.TransductiveVenn(squares())), progress=False
    )


def stream() -> Any:
    return streams.from_arrays(X, Y, classes=CLASSES)


def block() -> Any:
    model = venn.InductiveVenn(frozen())
    model.learn_many(X, Y)
    return model.predict_many(X)


def sets() -> Any:
    model = venn.InductiveConformal(frozen())
    model.learn_many(X, Y)
    return model.predict_many(X)


def carded(kind: Any, of: Any) -> Any:
    card = kind(CLASSES)
    card.update_many(of(), CODES)
    return card


def journal() -> Any:
    online = venn.Online(venn.TransductiveVenn(squares()), venn.Monitor(CLASSES), "some.db")
    online.ask(X[0], 1)
    online.answer(1, "a")
    online.close()
    return Path("some.db")


def abers() -> Any:
    made = venn.maps.VennAbers()
    made.insert_many(P[:, 0], CODES == 0)
    return made


def updated(monitor: Any, steps: Any) -> Any:
    for step in steps:
        monitor.update(*step)
    return monitor


def fitted(estimator: Any) -> Callable[[], Any]:
    return lambda: estimator().fit(X, Y)


def river() -> Any:
    model = venn.RiverClassifier(venn.TransductiveVenn(squares()))
    for row, y in zip(X[:8], Y[:8], strict=True):
        model.learn_one(dict(zip("pq", row.tolist(), strict=True)), y)
    return model


#: Good values by the names of parameters, made when needed.
GOOD: dict[str, Callable[[], Any]] = {
    "C": lambda: 1.0,
    "Cs": lambda: (0.5, 1.0),
    "X": lambda: X.copy(),
    "a": lambda: 0,
    "b": lambda: 1,
    "after": lambda: 3,
    "alpha": lambda: 0.1,
    "before": stream,
    "then": stream,
    "bins": lambda: 4,
    "block": block,
    "by": lambda: 0,
    "c": lambda: 3,
    "calibrates": lambda: CODES == 0,
    "calibration_labels": lambda: (CODES == 0).astype(int),
    "calibration_scores": lambda: P[:, 0],
    "category": lambda: 1,
    "cells": lambda: 100,
    "class_weights": lambda: [1.0, 2.0, 1.0],
    "classes": lambda: CLASSES,
    "clip": lambda: 1e-9,
    "code": lambda: 1,
    "codes": lambda: CODES.copy(),
    "coef0": lambda: 1.0,
    "count": lambda: 4,
    "cv": lambda: 3,
    "d": lambda: 0.25,
    "degree": lambda: 2,
    "delta": lambda: 0.1,
    "edges": lambda: (0.25, 0.5),
    "epsilon": lambda: 0.1,
    "estimator": lambda: LogisticRegression().fit(X, Y),
    "every": lambda: 10,
    "features": lambda: ["p", "q"],
    "first": lambda: 6,
    "folder": lambda: "folder",
    "folds": lambda: 3,
    "form": lambda: streams.Form(["a", "b"]),
    "found": lambda: ["1", "2"],
    "gamma": lambda: 0.5,
    "grid": lambda: 4,
    "growth": lambda: 1.5,
    "hit": lambda: 1,
    "hits": lambda: [1, 0],
    "i": lambda: 0,
    "id": lambda: "open",
    "jump": lambda: 0.1,
    "jumps": lambda: (0.1, 0.2),
    "k": lambda: 2,
    "kappa": lambda: 0.5,
    "keep": lambda: (1.0, 0.5, 1.0),
    "kernel": lambda: venn.RBF(0.5),
    "kernels": lambda: [venn.RBF(0.5)],
    "key": lambda: "shop",
    "label": lambda: "label",
    "labels": lambda: (CODES == 0).astype(int),
    "last": lambda: 40,
    "level": lambda: 0.1,
    "lower": lambda: 0.25,
    "machine": squares,
    "make": lambda: lambda key: venn.TransductiveVenn(squares()),
    "map": venn.maps.Platt,
    "martingale": venn.monitors.SimpleJumper,
    "mean": lambda: 2.0,
    "measure": venn.nonconformity.Margin,
    "merge": venn.maps.LogMerge,
    "model": lambda: None,
    "monitor": lambda: venn.Monitor(CLASSES),
    "n": lambda: 12,
    "name": lambda: "TransductiveVenn",
    "names": lambda: ["one"],
    "number": lambda: 0,
    "open": lambda: 2,
    "operational": lambda: (0.2, 0.3, 0.5),
    "train": lambda: (0.5, 0.25, 0.25),
    "costs": lambda: (1.0, 2.0, 3.0),
    "p": lambda: 0.3,
    "p0": lambda: np.full((4, 3), 0.2),
    "p1": lambda: np.full((4, 3), 0.4),
    "ps": lambda: [0.1, 0.9],
    "p_values": lambda: P.copy(),
    "pairs": lambda: np.array([[0.2, 0.4], [0.1, 0.3], [0.5, 0.75]]),
    "path": lambda: "file.out",
    "patience": lambda: 5,
    "penalties": lambda: (1.0,),
    "prediction": lambda: venn.PredictionSet(np.array([0.1, 0.9]), ("a", "b")),
    "predictor": PREDICTORS["TransductiveVenn"],
    "prefix": lambda: list(zip(X, Y, strict=True)),
    "proba": lambda: P.copy(),
    "probabilities": lambda: np.eye(3),
    "probability": lambda: 0.5,
    "proportions": lambda: (0.2, 0.3, 0.5),
    "rate": lambda: 0.01,
    "rng": lambda: np.random.default_rng(0),
    "rule": venn.prediction.RowMean,
    "run_length": lambda: 1000.0,
    "schedule": lambda: venn.schedules.PrefixRestart(6),
    "score": lambda: 0.25,
    "scores": lambda: P.copy(),
    "seed": lambda: 1,
    "share": lambda: 0.5,
    "shift": lambda: venn.shifts.PriorShift((0.5, 0.25, 0.25), (0.2, 0.3, 0.5)),
    "shuffle": lambda: 0,
    "size": lambda: 8,
    "source": lambda: "queue",
    "spread": lambda: 0.5,
    "steps": lambda: 2,
    "stream": stream,
    "coefficients": lambda: [1.0, -0.5],
    "free": lambda: 1,
    "intercept": lambda: 0.0,
    "new": lambda: X.copy(),
    "old": lambda: X.copy(),
    "penalty": lambda: 1.0,
    "power": lambda: 0.6,
    "randomised": lambda: True,
    "rows": lambda: X.copy(),
    "temperature": lambda: 1.0,
    "table": lambda: learned(squares(), X, Y).hypotheses([0.5, 0.5]).table,
    "hypotheses": lambda: learned(squares(), X, Y).hypotheses([0.5, 0.5]),
    "tau": lambda: 0.5,
    "taxonomy": venn.Argmax,
    "teacher": lambda: streams.Delayed(2),
    "threads": lambda: 2,
    "threshold": lambda: 20.0,
    "thing": squares,
    "tol": lambda: 1e-4,
    "truth": lambda: CODES.copy(),
    "uniform": lambda: 0.1,
    "upper": lambda: 0.75,
    "values": lambda: ("1", "2"),
    "wait": lambda: 0.0,
    "weight": lambda: 1.0,
    "weights": lambda: np.ones(20),
    "window": lambda: 8,
    "x": lambda: [0.5, 1.0],
    "y": lambda: "a",
    "high": lambda: 2.0,
    "low": lambda: -2.0,
    "size_": lambda: 3,
    "radius": lambda: 0.1,
    "method": lambda: None,
    "progress": lambda: False,
    "turn": lambda: 0.1,
    "category_class": lambda: 1,
    "guaranteed": lambda: "nothing",
    "text": lambda: "1",
    "column": lambda: 0,
    "dataset": lambda: [({"p": 0.5, "q": 1.0}, "a"), ({"p": 1.0, "q": 0.0}, "b")],
    "delimiter": lambda: ",",
    "frames": lambda: [__import__("pandas").DataFrame({"p": [0.5], "q": [1.0], "label": ["a"]})],
    "position": lambda: None,
    "events": lambda: [streams.Question(7, np.array([0.5, 1.0])), streams.Answer(7, "a")],
    "predictions": lambda: {"TransductiveVenn": venn.Multiprobability(np.eye(3), CLASSES)},
    "event": lambda: 1,
    "points": lambda: 10,
    "questions": lambda: 5,
    "totals": lambda: np.ones(20),
    "times": lambda: np.ones(20, int),
    "deviation": lambda: [1.0, 2.0],
    "state": dict,
    "other": lambda: None,
    "sample_weight": lambda: None,
    "interpolation": lambda: "step",
    "tasks": list,
    "numbers": lambda: [0],
    "log_rows": lambda: np.log(P[:4]),
    "log_weights": lambda: np.log(np.full(4, 0.25)),
    "of_class": lambda: np.ones(20),
    "of_all": lambda: np.full(20, 2.0),
    "counts": lambda: np.ones((20, 3), int),
    "score_": lambda: 0.5,
    "random_state": lambda: 0,
    "jobs": lambda: 1,
    "validation": lambda: None,
    "message": lambda: streams.Message("k", np.array([0.5, 1.0]), None, 1),
    "servers": lambda: "127.0.0.1:1",
    "topic": lambda: "t",
    "url": lambda: "redis://127.0.0.1:1/0",
    "limit": lambda: 3,
    "missing": lambda: "?",
    "fill": lambda: 0.0,
    "schema": lambda: None,
    "scaling": lambda: None,
    "scale": lambda: False,
    "default": lambda: None,
}

#: Good values of certain calls, where the names alone mislead.
OF_CALLS: dict[str, dict[str, Callable[[], Any]]] = {
    "OneVsAll": {"map": venn.maps.Platt},
    "Forecast": {"proba": lambda: np.array([0.2, 0.3, 0.5])},
    "PredictionSet": {"p_values": lambda: np.array([0.02, 0.3, 0.9]), "guaranteed": lambda: None},
    "Adaptive": {
        "predictor": PREDICTORS["Conformal"],
        "levels": lambda: (0.1, 0.2),
        "groups": lambda: None,
        "steps": venn.predictors.ConstantSteps,
    },
    "CovariateShift": {"weight": lambda: venn.shifts.LogLinear([1.0, -0.5])},
    "FrozenScorer": {"estimator": lambda: LinearSVC().fit(X, Y)},
    "load": {"path": lambda: (venn.save("m.npz", squares()), "m.npz")[1], "name": lambda: "car"},
    "Watch": {"path": journal},
    "from_csv": {"path": csv, "label": lambda: "label", "name": lambda: "n", "shuffle": lambda: 0},
    "CSVRows": {
        "path": csv,
        "label": lambda: "label",
        "follow": lambda: False,
        "id": lambda: None,
        "form": lambda: None,
    },
    "JSONLines": {"path": lines, "follow": lambda: False, "form": lambda: None},
    "from_arrays": {"y": lambda: list(Y)},
    "gaussians": {"n": lambda: 30, "classes": lambda: 3, "features": lambda: 2},
    "from_frames": {"features": lambda: None},
    "from_river": {"features": lambda: None, "classes": lambda: None},
    "RandomDelay": {"mean": lambda: 2.0},
    "Scaling": {"mean": lambda: [0.0, 1.0]},
    "to_json": {"x": lambda: [0.5, 1.0], "id": lambda: 1},
    "cross_venn_abers": {"folds": lambda: [(P[:, 0], CODES == 0)] * 2, "scores": lambda: P[:, 1]},
    "venn_abers": {"scores": lambda: P[:, 1]},
    "operational_priors": {"train": lambda: (0.5, 0.25, 0.25)},
    "Online": {"journal": lambda: None},
    "Restarting": {"predictor": lambda: venn.Conformal(venn.SlidingWindow(squares(), 50)), "keep": lambda: 5},
    "Monitor": {"window": lambda: 20, "sources": lambda: None, "level": lambda: 0.05},
    "Record": {"parameters": dict, "data": lambda: "car", "before": lambda: {"one": 3}},
    "replay": {"monitors": dict, "steps": lambda: 4},
    "score": {"predictor": lambda: learned_many()},
    "score_block": {"predictor": lambda: learned_many(), "y": lambda: list(Y)},
    "calibrate": {"predictor": lambda: venn.InductiveVenn(frozen()), "X": lambda: [(X, Y)], "y": lambda: None},
    "RiverClassifier": {"predictor": PREDICTORS["TransductiveVenn"], "features": lambda: None},
    "Binning": {"edges": venn.maps.EqualWidth, "bins": lambda: 4},
    "Fleet": {"prior": lambda: None, "folder": lambda: None, "most": lambda: 5, "on_alarm": lambda: None},
    "Refitted": {"estimator": LogisticRegression},
    "Scale": {"first": lambda: 5, "ranges": lambda: None},
}


def learned_many() -> Any:
    model = venn.InductiveVenn(frozen())
    model.learn_many(X, Y)
    return model


#: Instances whose methods are called, as they are when something has been learned.
INSTANCES: dict[str, Callable[[], Any]] = {
    **{name: (lambda make=make: make()[0]) for name, make in PARAMETERS.items()},
    **{name: (lambda make=make: learned(make(), X[:9], Y[:9])) for name, make in {**MACHINES, **PREDICTORS}.items()},
    **PREDICTIONS,
    **{name: (lambda name=name: stepped(name, 12)) for name in RUNNING},
    "FrozenScorer": frozen,
    "InductiveVenn of blocks": learned_many,
    "VennAbers": abers,
    "FrozenScorer of trees": lambda: venn.FrozenScorer(DecisionTreeClassifier().fit(X, Y)),
    "Forecaster after its hand-over": lambda: learned(
        venn.Forecaster(CLASSES, first=2, transductive=8, floor=0.5), X[:14], Y[:14]
    ),
    "Drift of columns": lambda: updated(venn.monitors.Drift(columns=True), zip(X[:12], strict=True)),
    "ClassDrift": lambda: updated(venn.monitors.ClassDrift(CLASSES), zip(X[:12], Y[:12], strict=True)),
    "Online by lot": lambda: venn.Online(
        venn.TransductiveVenn(squares()), venn.monitors.FloorWatch(0.5), labels=venn.online.Lot(0.5)
    ),
    "Online": online,
    "Record": record,
    "Scorecard": lambda: carded(venn.monitors.Scorecard, block),
    "SetScorecard": lambda: carded(venn.monitors.SetScorecard, sets),
    "Watch": lambda: venn.online.Watch(journal()),
    "RiverClassifier": river,
    "Forecaster of numbers": lambda: learned(venn.Forecaster(float, transductive=53), *NUMBERS),
    "Refitted": lambda: learned(venn.predictors.Refitted(LogisticRegression(), CLASSES), X[:9], Y[:9]),
    "Tuning": lambda: venn.tune(list(zip(X, Y, strict=True)), CLASSES, kernels=[venn.RBF(0.5)], penalties=(1.0,)),
    "ProbabilitySVC": fitted(venn.ProbabilitySVC),
    "VennClassifier": fitted(venn.VennClassifier),
    "ConformalClassifier": fitted(venn.ConformalClassifier),
    "VennAbersCalibrator": lambda: venn.VennAbersCalibrator(LogisticRegression()).fit(X, Y),
    "Stream": stream,
    "Synthetic": lambda: streams.gaussians(20, seed=1),
    "FrameStream": lambda: streams.from_frames(GOOD["frames"](), "label", classes=CLASSES),
    "CSVRows": lambda: streams.CSVRows(csv(), "label", follow=False),
    "JSONLines": lambda: streams.JSONLines(lines(), follow=False),
    "Nominal": lambda: streams.Nominal(("1", "2")),
    "Numeric": streams.Numeric,
    "Ordinal": lambda: streams.Ordinal(("1", "2")),
    "Lazy": lambda: streams.Lazy(0.2),
    "Delayed": lambda: streams.Delayed(2),
    "RandomDelay": lambda: streams.RandomDelay(2.0),
    "Fleet": lambda: scale.Fleet(GOOD["make"]()),
}
#: These keep scikit-learn's contract, and its own words and warnings for bad input.
ESTIMATORS = {
    "ProbabilitySVC", "VennClassifier", "ConformalClassifier", "VennAbersCalibrator", "CrossVennAbers",
}  # fmt: skip
#: What is not for users, though its name has no underscore: handed around between our own parts, which check before.
INNER = {
    "each",
    "altered",
    "answer",
    "ask_anew",
    "calibrated",
    "unchecked",
    "steps_with_each_label",
    "at",
    "member_bag",
    "finished",
    "compiled_values",
    "fill",
    "fill_near",
    "expect_training",
    "foresee",
    "gather",
    "made_of",
    "predict_rows",
    "predict_scored",
    "learn_block",
    "risk",
    "guess",
    "said",
    "move",
    "begin",
    "derive",
    "proximity_row",
    "score_rows",
    "score_alone",
    "scores_alone",
    "replay_scored",
    "of_scores",
    "heard_many",
    "weigh_many",
    "take_back",
    "keep_many",
    "scores_by",
    "takes_blocks",
    "scored",
    "in_turn",
    "quiet",
    "go_on",
    "block",
    "put_many",
    "rang",
    "advised",
    "scores_of",
    "scores_of_one",
    "said_of",
    "learn_row",
    "row_of",
    "read",
    "of_machine",
    "takes",
    "go",
    "tell",
    "check_room",
    "weigh_heard",
    "sparse_proximity_row",
    "stand_on",
    "take",
    "commit",
    "combined",
    "count_table",
    "rank_table",
    "of_grid",
    "row",
    "sparse_row",
    "follower",
    "follow",
    "feed",
    "event",
    "suits",
    "encode",
    "fit_counts",
    "heading",
    "parts",
    "where",
    "figure",
    "next_training",
    "split",
    "calibrates",
    "checked_values",
    "check_machine",
    "fixes_class",
    "class_of",
    "merge_folds",
    "regret",
    "losses",
    "forecast",
    "cuts",
    "choose",
    "steps",
    "set_params",
    "get_metadata_routing",
    "clone",
    "mutate",
    "solve",
    "best",
    "module",
    "delays",
    "add_note",
    "with_traceback",
    "index",
    "monitor",
    "sync",
    "count",
    "declared",
    "judged",
    "loss",
    "mixed",
    "rank",
    "weigh_table",
    "weighed_ranks",
    "values",
    "under",
    "abandon",
    "close",
}
#: Constructors of what only our own functions make, and what would wait for a server or many processes.
NOT_CALLED = {
    "Event",
    "Results",
    "DatasetInfo",
    "FrameStream",
    "Stream",
    "Synthetic",
    "Waves",
    "Source",
    "Tuning",
    "RedisStream",
    "KafkaTopic",
    "client_of",
    "replays",
    "BadMessage",
    "Tally",
    "Answer",
    "Question",
    "Message",
    "Task",
    "ClassShare",
    "OneClass",
    "key_of",
    "Alarm",
    "FromRiver",
    "Skip",
    "grid",
}


def functions() -> dict[str, Any]:
    """Return every public function and constructor by name."""
    found = {}
    for module in (venn, scale, monitors, streams):
        for name in module.__all__:
            thing = getattr(module, name)
            if callable(thing) and name not in NOT_CALLED and not (
                inspect.isclass(thing) and issubclass(thing, BaseException)
            ):  # fmt: skip
                found[name if module is not streams or name != "load" else "streams.load"] = thing
    return found


def methods(subject: Any) -> Iterator[str]:
    """Yield the names of a subject's public methods that users call."""
    for name in sorted(set(dir(type(subject)))):
        if name.startswith(("_", "set_", "plot")) or name in INNER:
            continue
        if callable(getattr(subject, name, None)) and not isinstance(vars(type(subject)).get(name), property):
            yield name


def arguments(call: str, function: Any) -> dict[str, Callable[[], Any]] | None:
    """Return makers of good arguments for every parameter of a callable; None if it tells no signature."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (ValueError, TypeError):
        return None
    own = OF_CALLS.get(call, {})
    return {
        one.name: own.get(one.name) or GOOD.get(one.name) or (lambda default=one.default: default)
        for one in parameters
        if not one.name.startswith("_") and one.kind is not one.VAR_KEYWORD
    }


#: Good values of methods: the class may be any.
OF_METHODS: dict[str, dict[str, Callable[[], Any]]] = {
    "fit": {"y": lambda: list(Y), "scores": lambda: P[:, 0], "validation": lambda: None},
    "partial_fit": {"y": lambda: list(Y), "classes": lambda: None},
    "learn_many": {"y": lambda: list(Y)},
    "replay_many": {"y": lambda: list(Y)},
    "score": {"y": lambda: list(Y)},
    "calibrate": {"labels": lambda: list(Y)},
    "insert": {"score": lambda: 0.25, "y": lambda: True},
    "insert_many": {"scores": lambda: P[:, 1], "labels": lambda: CODES == 1},
    "delete": {"score": lambda: float(P[0, 0]), "y": lambda: bool(CODES[0] == 0)},
    "query_many": {"scores": lambda: P[:, 1]},
    "values": {"codes": lambda: CODES.copy()},
    "answer": {"y": lambda: "a"},
    "ask": {"id": lambda: "new"},
    "reach": {"position": lambda: 7},
    "take": {"n": lambda: 5},
    "drop": {"n": lambda: 5},
    "restart": {"keep": lambda: 4},
    "merge": {"p0": lambda: np.full((3, 4), 0.2), "p1": lambda: np.full((3, 4), 0.4)},
    "update": {"x": lambda: 0.25},
    "update_many": {
        "x": lambda: [0.25, 0.5],
        "d": lambda: [0.25, 0.5],
        "lower": lambda: [0.25, 0.2],
        "upper": lambda: [0.5, 0.9],
    },
}
