"""Parts of a stream, in any number, order and grouping, are the whole; fleets may die at any moment."""

from __future__ import annotations

import pickle
from functools import partial
from pathlib import Path

import numpy as np
import test_fleet as keyed
import test_merging
import test_scale_collection as collection
from naive.merging import alike

import venn
from venn.scale.collection import calibrate, score, score_block

from .tally import Tally


def trial(rng: np.random.Generator, tally: Tally) -> None:
    if rng.random() < 0.3:
        blocks(rng, tally)
        return
    kind = str(rng.choice(list(test_merging.KINDS)))
    make, said, merge = test_merging.KINDS[kind]
    n = int(rng.integers(1, 120))
    whole = test_merging.examples(int(rng.integers(1 << 30)), n)
    number = int(rng.integers(1, 9))
    which = rng.integers(0, number, n)
    parts = [tuple(array[which == i] for array in whole) for i in range(number)]
    made = [make(part) for part in parts]
    copies = [pickle.loads(pickle.dumps(one)) for one in made]
    whole_said = said(make(whole))
    for parts_of, how in ((made, ""), (copies, ", pickled")):
        equal = alike(said(test_merging.at_random(parts_of, merge, rng)), whole_said)
        tally.same(equal, f"parts of {kind}{how}", (n, number))


def blocks(rng: np.random.Generator, tally: Tally) -> None:
    """`scale.calibrate` and `scale.score` over blocks of any length, some empty."""
    name = str(rng.choice(list(collection.MODELS)))
    made = [collection.rows(int(rng.integers(1 << 20)), int(rng.integers(0, 30))) for _ in range(rng.integers(1, 9))]
    X, y = collection.joined(made)
    whole = collection.MODELS[name]()
    whole.learn_many(X, y)
    given = made if rng.random() < 0.5 else [partial(lambda block: block, block) for block in made]
    found = calibrate(collection.MODELS[name](), iter(given) if rng.random() < 0.5 else given)
    tally.same(collection.said(found) == collection.said(whole), f"calibrate over blocks: {name}", len(made))
    if len(y):
        equal = alike(score(found, iter(made)).table, score_block(whole, X, y).table)
        tally.same(equal, f"score over blocks: {name}", len(made))


def fleets(rng: np.random.Generator, tally: Tally) -> None:
    """A fleet that is closed, killed and opened at random places, with few or many keys in memory."""
    n, seed, done = int(rng.integers(5, 80)), int(rng.integers(1 << 20)), 0
    calls, whole = keyed.happenings(n, seed), venn.Fleet(keyed.make)
    keyed.happen(whole, calls)
    while done < n:
        more, every = int(rng.integers(1, 40)), int(rng.integers(1, 30))
        with venn.Fleet(keyed.make, Path.cwd() / "fleet", open=int(rng.integers(1, 6)), every=every) as fleet:
            keyed.happen(fleet, calls[done : done + more])
            if rng.random() < 0.5:
                keyed.die(fleet)
        done += more
    with venn.Fleet(keyed.make, Path.cwd() / "fleet") as fleet:
        first, second = keyed.state_of(whole), keyed.state_of(fleet)
    for key, value in first.items():
        tally.same(second.get(key) == value, "the state of a key of a fleet", (key, seed, n))
    tally.same(first.keys() == second.keys(), "keys", (first.keys(), second.keys()))
