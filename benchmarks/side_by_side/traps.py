"""The traps: questions, and a function for each library's answer; only definitions say what is right."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import venn

from .answers import (
    LIBRARIES,
    after,
    apart,
    bet,
    betting,
    both_orders,
    crepes_lacking,
    five_orders,
    for_all,
    grown,
    lacking,
    learned_nan,
    logistic,
    mapie_abers_says,
    mapie_flat,
    mapie_lacking,
    mapie_one_row,
    mapie_ties,
    online_cp_flat,
    online_cp_frame,
    online_cp_new_class,
    online_cp_one_row,
    online_cp_says,
    online_cp_svm,
    online_cp_ties,
    only,
    ours_flat,
    ours_frame,
    ours_lacking,
    ours_late_class,
    ours_new_class,
    ours_one_row,
    ours_sure,
    ours_svm,
    ours_transductive_ties,
    outcome,
    package_ties,
    pickled,
    river_new_class,
    river_says,
    river_softmax_says,
    river_sure,
    rows_of_frame,
    sklearn_says,
    sklearn_sure,
    sklearn_svm,
    sklearn_ties,
    venn_abers_says,
    with_infinity,
    with_nan,
    with_new_class,
)


@dataclass(frozen=True)
class Trap:
    """A question, and a function for the answer of each library that has such a thing."""

    number: str
    question: str
    answers: dict


TRAPS = [
    Trap(
        "T1",
        "100 equal scores, 25 ones, asked about an equal one: p0, p1. By definition 25/101 = .2475, 26/101 = .2574",
        {
            "ours": lambda: (
                both_orders(lambda y: venn.maps.venn_abers(np.zeros(100), y, [0.0])[0])
                + "; transductive "
                + both_orders(ours_transductive_ties)
            ),
            "online-cp": lambda: both_orders(online_cp_ties),
            "venn-abers": lambda: both_orders(package_ties),
            "mapie": lambda: both_orders(mapie_ties),
            "scikit-learn": lambda: both_orders(sklearn_ties),
        },
    ),
    Trap(
        "T2",
        "Five orders of one bag, SVM, C = 1000: p0 (scikit-learn: the decision value)",
        {
            "ours": lambda: five_orders(ours_svm),
            "online-cp": lambda: five_orders(online_cp_svm),
            "scikit-learn": lambda: five_orders(sklearn_svm),
        },
    ),
    Trap("T4", "Labels 1 and 2, an object of class 2", for_all(only(1, 2))),
    Trap("T4", "Labels -1 and 1, an object of class 1", for_all(only(-1, 1))),
    Trap("T4", "Labels 'a' and 'b', an object of class 'b'", for_all(only("a", "b"))),
    Trap("T4", "All labels 5", for_all(only(5))),
    Trap(
        "T4",
        "After classes 0 and 1 an example of class 2, then an object like it",
        {
            "ours": lambda: f"not declared: {outcome(ours_new_class)}; declared: {outcome(ours_late_class)}",
            "online-cp": online_cp_new_class,
            "river": lambda: (
                f"logistic {outcome(lambda: river_new_class(lambda: None))}; softmax "
                + outcome(lambda: river_softmax_says(*with_new_class()))
            ),
        },
    ),
    Trap(
        "T5",
        "80 rows as a data frame: steps or answers",
        {"ours": ours_frame, "online-cp": online_cp_frame}
        | {name: (lambda name=name: rows_of_frame(name)) for name in LIBRARIES[2:]},
    ),
    Trap("T6", "A martingale pickled after five p-values", betting(pickled)),
    Trap("T6", "Numbers that a martingale holds (crepes takes all p-values at once and has no state)", betting(grown)),
    Trap("T6", "20 000 p-values of 1e-6", betting(lambda name: bet(name, [1e-6] * 20_000)[1])),
    Trap("T7", "An object with NaN", for_all(with_nan)),
    Trap("T7", "An object with infinity", for_all(with_infinity)),
    Trap("T7", "NaN in an example to learn", for_all(learned_nan)),
    Trap("T7", "p = NaN into a martingale", betting(lambda name: after(name, float("nan")))),
    Trap("T7", "p = 1.2 into a martingale", betting(lambda name: after(name, 1.2))),
    Trap(
        "T8",
        "Three classes, none of the third in the calibration set, an object of the third",
        {
            "ours": ours_lacking,
            "crepes": crepes_lacking,
            "mapie": mapie_lacking,
            "venn-abers": lambda: venn_abers_says(*lacking()),
            "scikit-learn": lambda: sklearn_says(*lacking()),
        },
    ),
    Trap(
        "T10",
        "One example of class 1 as the first update, then asked about it",
        {
            "ours": ours_one_row,
            "online-cp": online_cp_one_row,
            "mapie": mapie_one_row,
            "river": lambda: river_says(np.array([[0.5, 0.1]]), np.array([1]), np.array([0.5, 0.1])),
        },
    ),
    Trap(
        "T10",
        "One-dimensional X of six numbers, six labels",
        {
            "ours": ours_flat,
            "online-cp": online_cp_flat,
            "mapie": mapie_flat,
            "scikit-learn": lambda: logistic(np.arange(6.0), np.array([0, 1] * 3)).classes_,
        },
    ),
    Trap(
        "T11",
        "Classes far apart, an object of class 1: probabilities of 0 and 1, and the loss if it were class 0",
        {
            "ours": ours_sure,
            "online-cp": lambda: online_cp_says(*apart()),
            "mapie": lambda: mapie_abers_says(*apart()),
            "venn-abers": lambda: venn_abers_says(*apart()),
            "river": river_sure,
            "scikit-learn": sklearn_sure,
        },
    ),
]


def cells(library):
    """Return a library's answers to all traps: question to text, "-" if it has no such thing."""
    return {trap.question: outcome(trap.answers[library]) if library in trap.answers else "-" for trap in TRAPS}
