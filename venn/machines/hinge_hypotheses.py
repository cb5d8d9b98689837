"""What support vector machines of the hinge loss answer about a new object, and the arrays that they share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from venn._compiled.buffers import Branches, Objects, Scratch, Solved
from venn._compiled.leave_one_out_span import leave_out_standing, leave_out_step
from venn._compiled.path import EVENTS
from venn.machines.base import BaseHypotheses, PlacedTable
from venn.machines.machine import ScoreTable, Tables, check_code, doubled, grown
from venn.machines.store import ObjectStore
from venn.prediction import Floats, Integers
from venn.saved import checked_keys, restored_array, restored_bool, restored_codes, restored_finite, restored_rows

# Extra columns of a matrix beyond its room, a power of two: else all rows would start at one place of the cache.
OFFSET = 8
SAVED = ("kernel", "beta", "score", "state", "bias", "drift", "size", "members", "inverse")


class HingeBuffers:
    """The arrays of k machines over the same objects. Growing replaces them: hold none.

    Parameters
    ----------
    examples : PlacedTable
        The examples at the objects.
    machines : int
    sides : int
        Number of suppositions about a new object.

    Attributes
    ----------
    objects : Objects
    solved : Solved
        The current machines.
    branches : Branches
        The answers to all suppositions about the object asked about last.
    scratch : Scratch
    room, margin_room : int
        Objects, and members of a margin, that there is room for.
    """

    def __init__(self, examples: PlacedTable, machines: int, sides: int) -> None:
        self.examples, k, s = examples, machines, sides
        self.room = self.margin_room = 0
        self.objects = Objects(np.zeros((0, 0)), np.zeros((k, 0)), np.zeros((k, 0)), np.zeros((k, 2), np.int64))
        self.solved = Solved(
            np.zeros((k, 0)), np.zeros((k, 0)), np.zeros((k, 0), np.int8), np.zeros(k),
            np.zeros((k, 0), np.int64), np.zeros(k, np.int64), np.zeros((k, 0, 0)), np.zeros((k, 0, 0)), np.zeros(k),
        )  # fmt: skip
        counters = np.zeros((3, k, s), np.int64)
        self.branches = Branches(
            np.zeros((s, k, 0)), np.zeros((s, k, 0)), np.zeros((s, k, 0), np.int8), counters[0], counters[1],
            np.zeros((k, s, 0), np.int64), np.zeros((k, s, 0), np.bool_), counters[2],
            np.zeros((k, s, EVENTS, OFFSET)), np.zeros((k, s, EVENTS)), np.zeros((k, s), np.bool_), np.zeros((k, s)),
        )  # fmt: skip
        self._set_scratch()

    def _set_scratch(self) -> None:
        """Make scratch of the sizes that the rooms have now."""
        self.scratch = self.new_scratch()
        self.beside: list[Scratch] = []  # that of each thread that has solved something, while it is not in use

    def new_scratch(self) -> Scratch:
        """Return scratch for one thread."""
        width = self.room + EVENTS + 8
        return Scratch(
            np.arange(max(self.room, self.margin_room)), np.empty((9, self.margin_room)), np.empty((12, width)),
            np.empty(width, np.int64), np.empty(self.margin_room * width),
        )  # fmt: skip

    def make_room(self, objects: int) -> None:
        """Make room for `objects` distinct objects; capacities double."""
        if objects <= self.room:
            return
        room = self.room = doubled(self.room, objects)
        kernel, positive, total, sizes = self.objects
        s, k = self.branches.beta.shape[:2]
        self.objects = Objects(
            grown(kernel, room, room + OFFSET), grown(positive, k, room), grown(total, k, room), sizes
        )
        old, asked = self.solved, self.branches
        self.solved = old._replace(
            beta=grown(old.beta, k, room), score=grown(old.score, k, room), state=grown(old.state, k, room)
        )
        self.branches = asked._replace(
            beta=grown(asked.beta, s, k, room), score=grown(asked.score, s, k, room),
            state=grown(asked.state, s, k, room),
        )  # fmt: skip
        self._set_scratch()

    def make_margin_room(self, size: int) -> None:
        """Make room for margins of `size` members and a path's events; capacities double."""
        need = size + EVENTS + 4
        if need <= self.margin_room:
            return
        s, k = self.branches.beta.shape[:2]
        room = self.margin_room = doubled(max(128, self.margin_room), need)
        old, asked = self.solved, self.branches
        self.solved = old._replace(
            members=grown(old.members, k, room),
            inverse=grown(old.inverse, k, room, room + OFFSET),
            spare=grown(old.spare, k, room, room + OFFSET),
        )
        self.branches = asked._replace(
            index=grown(asked.index, k, s, room),
            alive=grown(asked.alive, k, s, room),
            terms=np.zeros((k, s, EVENTS, room + OFFSET)),
        )
        self._set_scratch()

    def take(self, machines: Mapping[int, Solved]) -> None:
        """Replace machines by those given in separate arrays."""
        self.make_margin_room(max((int(machine.size[0]) for machine in machines.values()), default=0))
        solved = self.solved
        for k, machine in machines.items():
            count, m = machine.beta.shape[1], int(machine.size[0])
            solved.beta[k, :count], solved.score[k, :count] = machine.beta[0], machine.score[0]
            solved.state[k, :count], solved.bias[k] = machine.state[0], machine.bias[0]
            solved.drift[k] = machine.drift[0]
            solved.size[k], solved.members[k, :m] = m, machine.members[0, :m]
            solved.inverse[k, : m + 1, : m + 1] = machine.inverse[0, : m + 1, : m + 1]

    @property
    def state(self) -> dict[str, Any]:
        """What is saved: half of the kernel, and the machines with their margins."""
        count = self.examples.count
        kernel, solved, size = self.objects.kernel, self.solved, self.solved.size
        widest = int(size.max())
        members, inverse = solved.members[:, :widest].copy(), solved.inverse[:, : widest + 1, : widest + 1].copy()
        for own, square, used in zip(members, inverse, size.tolist(), strict=True):
            own[used:] = 0
            bordered = used + 1 if used else 0
            square[bordered:] = square[:, bordered:] = 0.0
        return {
            "kernel": kernel[np.tril_indices(count)], "beta": solved.beta[:, :count],
            "score": solved.score[:, :count], "state": solved.state[:, :count], "bias": solved.bias,
            "drift": solved.drift, "size": size, "members": members, "inverse": inverse,
        }  # fmt: skip

    def restore(self, state: Any) -> None:
        """Take over a `state` of machines over as many objects, or raise a ValueError."""
        checked_keys("buffers", state, SAVED)
        k, m = len(self.solved.bias), self.examples.count
        if m == 0:
            return
        held = restored_finite("kernel", state["kernel"], (m * (m + 1) // 2,))
        size: Integers = restored_codes("size", state["size"], (k,), 0, m + 1)
        widest = int(size.max())
        self.make_room(m)
        self.make_margin_room(widest)
        solved, kernel = self.solved, self.objects.kernel
        solved.size[:] = size
        solved.members[:, :widest] = restored_codes("members", state["members"], (k, widest), 0, m)
        solved.inverse[:, : widest + 1, : widest + 1] = restored_finite(
            "inverse", state["inverse"], (k, widest + 1, widest + 1)
        )
        solved.state[:, :m] = restored_codes("state", state["state"], (k, m), -2, 3, np.int8)
        numbers: dict[str, Floats] = {
            "beta": solved.beta[:, :m], "score": solved.score[:, :m], "bias": solved.bias, "drift": solved.drift
        }  # fmt: skip
        for name, own in numbers.items():
            own[:] = restored_finite(name, state[name], own.shape)
        lower = np.tril_indices(m)
        kernel[lower] = kernel.T[lower] = held


class Entries(NamedTuple):
    """Examples whose leave-one-out scores are wanted: objects, class codes, and weights times those of the classes."""

    objects: Integers
    codes: Integers
    weights: Floats


class Spans:
    """The squared span of each bounded object by each machine: its distance from the span of the free support vectors.

    One costs the square of the margin's size. So the spans by the current machines are computed once. Where they are
    `kept`, learning updates them by the rank-one terms of its path; else they are computed anew after it. What the
    machine was made for decides which, never what it was asked: the last bits differ.

    Parameters
    ----------
    examples : PlacedTable
        The examples at the objects.
    signs : (machines, c) of +1 or -1
        Whether examples of a class are positive or negative for a machine.
    sides : int
        What a machine may suppose of a new object.

    Attributes
    ----------
    kept : bool
        Whether learning updates spans.
    known : (machines, room) float64
        Spans by the current machines, NaN where unknown. Empty until one is needed.
    """

    def __init__(self, examples: PlacedTable, signs: NDArray[np.int8], sides: int) -> None:
        self.examples = examples
        self.signs, self.sides = signs, sides
        self.kept = False
        self.known = np.zeros((len(signs), 0))
        self._supposed = np.zeros((sides, len(signs), 0))  # by the branches about the object asked about last

    def make_room(self, room: int) -> None:
        """Make room for as many objects."""
        old = self.known.shape[1]
        if old < room:
            # What is known stays: the amount of room depends on questions too.
            known, self.known = self.known, np.full((len(self.signs), room), np.nan)
            self.known[:, :old] = known
            self._supposed = np.full((len(self._supposed), *self.known.shape), np.nan)

    def standing(
        self,
        C: float,
        scale: float,
        objects: Objects,
        solved: Solved,
        count: int,
        entries: Entries,
        test: int = -1,
    ) -> Floats:
        """Return the (machines, entries) leave-one-out scores by the current machines; `test` is not their example."""
        self.make_room(objects.positive.shape[1])
        scores = np.empty((len(self.signs), entries.objects.size))
        leave_out_standing(
            count, scale, C, self.signs, objects, solved, self.known, *entries, test, scores,
        )  # fmt: skip
        return scores

    def supposing(
        self,
        p: int,
        supposed: Floats,
        C: float,
        scale: float,
        objects: Objects,
        solved: Solved,
        branches: Branches,
        count: int,
        entries: Entries,
        test: int,
    ) -> Floats:
        """Return the (sides, machines, entries) leave-one-out scores under suppositions about object p.

        `supposed` are the weights of the new example, 0 where nothing is supposed. The new example is entry `test`.
        """
        self.make_room(objects.positive.shape[1])
        # Zeros where a machine has no such supposition: readers compare such scores before they ignore them.
        scores = np.zeros((*supposed.shape, entries.objects.size))
        leave_out_step(
            p, count, scale, C, self.signs, supposed, objects, solved, branches, self.known, self._supposed, *entries,
            test, scores,
        )  # fmt: skip
        return scores

    def take(self, sides: Integers, count: int) -> None:
        """Take over the spans by the branches `sides`."""
        if not self.kept:
            self.known.fill(np.nan)
            return
        self.known[:, :count] = self._supposed[sides, np.arange(len(sides)), :count]

    def forget_object(self, p: int) -> None:
        """Drop the spans of an object: its place holds another one now."""
        self.known[:, p : p + 1] = np.nan

    @property
    def state(self) -> dict[str, Any]:
        """Spans that are kept; others are computed again, to the last bit, from what a machine has learned."""
        known = self.known[:, : self.examples.count] if self.kept and self.known.size else None
        return {"kept": self.kept, "known": known}

    def restore(self, state: Any) -> None:
        """Take over a `state`, or raise a ValueError."""
        checked_keys("spans", state, ("kept", "known"))
        self.kept, known = restored_bool("kept", state["kept"]), state["known"]
        self.known = np.zeros((len(self.signs), 0))
        if known is not None:
            self.known = restored_array("known", known, (len(self.signs), self.examples.count)).copy()


class Distinct(NamedTuple):
    """The distinct examples: first those equal to the first one at each object, then all others."""

    places: Integers  # (objects,) from 0 on
    first: Integers  # (objects,) class of the first example at each
    first_weight: Floats  # (objects,) its weight, without that of its class
    equal: Integers  # (objects,) number of examples like it
    extras: dict[tuple[int, int, float], int]  # number of the others by object, class and weight
    class_weights: Floats

    @property
    def size(self) -> int:
        """Number of objects."""
        return self.places.size

    def examples(self) -> tuple[Integers, Integers, Integers]:
        """Return object, class and number of each distinct example."""
        objects, codes, numbers = self.places, self.first, self.equal
        if self.extras:
            others, classes, _ = zip(*self.extras, strict=True)
            objects, codes = np.concatenate([objects, others]), np.concatenate([codes, classes])
            numbers = np.concatenate([numbers, list(self.extras.values())])
        return objects, codes, numbers

    def entries(self) -> Entries:
        """Return object, class and weight (times that of the class) of one of each."""
        objects, codes, _ = self.examples()
        weights = self.first_weight * self.class_weights[self.first]
        further = [weight * self.class_weights[code] for _, code, weight in self.extras]
        return Entries(objects, codes, np.concatenate([weights, further]))

    def columns(self, objects: Integers, codes: Integers, weights: Floats) -> Integers:
        """Return the place of each of these examples among the distinct ones."""
        columns = objects.copy()
        if self.extras:
            where = {like: self.places.size + column for column, like in enumerate(self.extras)}
            unlike = (codes != self.first[objects]) | (weights != self.first_weight[objects])
            for i in np.flatnonzero(unlike).tolist():
                columns[i] = where[int(objects[i]), int(codes[i]), float(weights[i])]
        return columns


class Listing:
    """The distinct examples while examples come and go: class and weight of the first one at each object, and others.

    Parameters
    ----------
    class_weights : (c,) float64
    """

    def __init__(self, class_weights: Floats) -> None:
        self.class_weights = class_weights
        # Class and weight of the first example at each object, and the number of those equal to it.
        self.first, self.first_weight, self.equal = np.zeros(0, np.int64), np.zeros(0), np.zeros(0, np.int64)
        # Examples at an object that differ from the first in class or weight, and their number.
        self.extras: dict[tuple[int, int, float], int] = {}

    def make_room(self, room: int) -> None:
        """Make room for as many objects."""
        if room > len(self.first):
            self.first, self.first_weight = grown(self.first, room), grown(self.first_weight, room)
            self.equal = grown(self.equal, room)

    def listed(self, places: Integers) -> Distinct:
        """Return the distinct examples at the objects 0, 1, ...; the one asked about may have none yet."""
        m = places.size
        return Distinct(places, self.first[:m], self.first_weight[:m], self.equal[:m], self.extras, self.class_weights)

    def add(self, p: int, label: int, weight: float) -> None:
        """Count an example at object p."""
        if self.equal[p] == 0:
            self.first[p], self.first_weight[p] = label, weight
        if self.first[p] == label and self.first_weight[p] == weight:
            self.equal[p] += 1
        else:
            like = (p, label, float(weight))
            self.extras[like] = self.extras.get(like, 0) + 1

    def begin(self, p: int) -> None:
        """Count no example at object p, which is new."""
        self.first[p] = self.equal[p] = 0

    @property
    def state(self) -> dict[str, Any]:
        """In which order the further examples stand; their numbers follow from the examples."""
        pairs = np.array([like[:2] for like in self.extras], np.int64).reshape(-1, 2)
        return {"examples": pairs, "weights": np.array([like[2] for like in self.extras], np.float64)}

    def restore(self, state: Any) -> None:
        """Take over a `state`, or raise a ValueError; then the examples are to be counted."""
        checked_keys("listing", state, ("examples", "weights"))
        further = restored_rows("examples", state["examples"])
        pairs = restored_array("examples", state["examples"], (further, 2), np.int64).tolist()
        weights = restored_array("weights", state["weights"], (further,)).tolist()
        self.extras = {(p, code, weight): 0 for (p, code), weight in zip(pairs, weights, strict=True)}

    def count(self, examples: Iterable[tuple[int, int, float]]) -> None:
        """Count the examples, each an object with class and weight: those like a further one stand in its place."""
        self.equal[:] = 0
        self.extras = dict.fromkeys(self.extras, 0)
        further = len(self.extras)
        for example in examples:
            self.add(*example)
        if len(self.extras) != further or not all(self.extras.values()):
            raise ValueError("listing must be the distinct examples that differ from the first at their object")


class HingeQuestion(NamedTuple):
    """The object asked about, and the arrays of the machines that answer."""

    test: int  # place of the object among the distinct ones
    weight: float  # of the new example, without that of its supposed class
    C: float
    scale: float  # without the object
    wider: float  # and with it
    signs: NDArray[np.int8]  # (machines, c)
    side: Integers  # (machines, c) what each machine supposes under each hypothesis
    supposed: Floats  # (sides, machines) weight of the new example
    objects: Objects
    solved: Solved
    branches: Branches
    distinct: Distinct
    examples: PlacedTable
    store: ObjectStore
    spans: Spans


def mirrored(values: Floats) -> Floats:
    """Return (2, m) values by class from those (1, m) of the first class's machine."""
    return np.concatenate([values, -values])


class OneVsAllHypotheses(BaseHypotheses):
    """What the machines would look like if the new object had each of the labels.

    There is one table of scores for all hypotheses unless classes differ in weight: then one for each weight.

    Leave-one-out scores are first-order approximations: see `OneVsAllSVM.leave_one_out_bag`. The new example is treated
    like the others. Its leave-one-out scores may depend on the hypothesis, because its coefficient does; at an object
    learned before it has its own column.

    Attributes
    ----------
    asked : HingeQuestion
    """

    def __init__(self, key: bytes, test_scores: Floats, asked: HingeQuestion) -> None:
        super().__init__(key, test_scores, asked.weight)
        self.asked = asked
        self._leave_one_out: Floats | None = None

    def tables(self, leave_one_out: bool) -> Tables:
        """Return the scores of all examples, with the class codes of the hypotheses that a table is for."""
        self.check_current()
        asked = self.asked
        columns, labels, numbers = asked.distinct.examples()
        test = asked.test
        if leave_one_out:
            if self._leave_one_out is None:
                self._leave_one_out = self._supposing(asked.supposed, *self._entries())
            scores = self._leave_one_out
            if scores.shape[2] > columns.size:
                # The new example has a column of its own.
                test = columns.size
                columns, labels, numbers = np.append(columns, asked.test), np.append(labels, 0), np.append(numbers, 0)
            features = asked.store.of(columns)
        else:
            scores, features = asked.branches.score, asked.store.columns
            if columns.size > asked.distinct.size:
                # An object with examples of several classes or weights is several distinct examples of equal scores.
                scores, features = scores[:, :, columns], asked.store.of(columns)
        return [
            (ScoreTable(negative, positive, labels, numbers, test, features), codes)
            for negative, positive, codes in self._pairs(scores)
        ]

    def _entries(self) -> tuple[Entries, int]:
        """Return the distinct examples with the new one, and its place."""
        asked, entries = self.asked, self.asked.distinct.entries()
        if asked.distinct.equal[asked.test] == 0:
            return entries, asked.test
        # An example of its own: its sign is the supposed one.
        test = entries.objects.size
        objects, codes, weights = entries
        return Entries(np.append(objects, asked.test), np.append(codes, 0), np.append(weights, 0.0)), test

    def _supposing(self, supposed: Floats, entries: Entries, test: int) -> Floats:
        asked = self.asked
        return asked.spans.supposing(
            asked.test, supposed, asked.C, asked.wider, asked.objects, asked.solved, asked.branches,
            asked.distinct.size, entries, test,
        )  # fmt: skip

    def measure(self, sides: Integers) -> None:
        """Measure the spans by the branches `sides`, unless already done."""
        if self._leave_one_out is None:
            chosen = np.arange(len(self.asked.supposed))[:, None] == sides
            alone = Entries(np.array([self.asked.test]), np.zeros(1, np.int64), np.zeros(1))  # no other is read
            self._supposing(np.where(chosen, self.asked.supposed, 0.0), alone, 0)

    def _pairs(self, scores: Floats) -> list[tuple[Floats, Floats, Integers]]:
        """Return (c, m) scores where the object is not of class k, where it is, and the hypotheses they are for."""
        side = self.asked.side
        if self.test_scores.size == 2:
            first, second = (scores[side, 0] for side in side[0])  # scores of the first class
            return [(np.array([second, -first]), np.array([first, -second]), np.arange(2))]
        last = len(self.asked.supposed) - 1
        if last == 1:
            return [(scores[0], scores[1], np.arange(len(side)))]
        # The hypotheses under which a machine that is not of their class supposes weight g.
        others = np.where(side == last, -1, side).max(axis=0)
        return [(scores[g], scores[last], np.flatnonzero(others == g)) for g in range(last)]

    @property
    def order(self) -> Integers:
        """(n,) column of each example in the tables, in order of arrival."""
        self.check_current()
        examples = self.asked.examples
        n = examples.n
        return self.asked.distinct.columns(examples.places[:n], examples.codes[:n], examples.weights[:n])

    def duals(self, j: int) -> Floats:
        """Return (n + 1, c) signed coefficients under hypothesis j; equal objects share theirs by weight."""
        self.check_current()
        check_code(j, self.test_scores.size)
        asked, examples, by_class = self.asked, self.asked.examples, self.asked.distinct.class_weights
        places, codes = examples.places[: examples.n], examples.codes[: examples.n]
        betas = asked.branches.beta[asked.side[:, j], np.arange(len(asked.signs)), : asked.distinct.size]
        new = self.weight * by_class[j]
        total = asked.objects.total[:, : asked.distinct.size].copy()
        total[:, asked.test] += new
        weights = np.append(examples.weights[: examples.n] * by_class[codes], new)
        shares: Floats = (betas / np.where(total > 0, total, 1.0))[:, np.append(places, asked.test)] * weights
        return shares.T if self.test_scores.size > 2 else mirrored(shares).T
