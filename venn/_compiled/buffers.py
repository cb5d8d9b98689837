"""Buffers of c support vector machines over the same objects, and structures that compiled functions share."""

from typing import Any, NamedTuple

# How a solved branch is committed: the margin stays, is updated by the path's events, is rebuilt, or is one that the
# caller holds. UNSOLVED asks the caller to solve the branch by another method.
KEEP, UPDATE, REBUILD, HELD, UNSOLVED = 0, 1, 2, 3, 4


class Objects(NamedTuple):
    """The distinct objects and the examples at them: by machine, for which they are positive, negative or neither."""

    kernel: Any  # (room, room)
    positive: Any  # (c, room) sum of the weights of the positive examples at each object
    total: Any  # (c, room), of the negative ones too
    sizes: Any  # (c, 2) int64, number of positive examples, and with the negative ones


class Solved(NamedTuple):
    """The current machines."""

    beta: Any  # (c, room) signed coefficients
    score: Any  # (c, room)
    state: Any  # (c, room) int8
    bias: Any  # (c,)
    members: Any  # (c, margin room) int64
    size: Any  # (c,) int64, members
    inverse: Any  # (c, margin room, margin room), of the bordered margin
    spare: Any  # (c, margin room, margin room), the same without a member that is asked about
    drift: Any  # (c,), how far rounding may have moved scores from those that the coefficients give


class Branches(NamedTuple):
    """The answers to all suppositions about an object.

    The last of the s sides supposes a positive example of machine k. Each other side supposes a negative one, with one
    of its possible weights; there is one such side where all classes weigh alike.
    """

    beta: Any  # (s, c, room)
    score: Any  # (s, c, room)
    state: Any  # (s, c, room) int8
    commit: Any  # (c, s) int64: KEEP, UPDATE, REBUILD, HELD or UNSOLVED
    slots: Any  # (c, s) int64: bias, old members, joined ones
    index: Any  # (c, s, margin room) int64, object in each slot
    alive: Any  # (c, s, margin room) bool, still a member
    events: Any  # (c, s) int64
    terms: Any  # (c, s, EVENTS, margin room), rank-one terms of the inverse
    kappa: Any  # (c, s, EVENTS), their divisors
    alternate: Any  # (c, s) bool, whether terms refer to `Solved.spare`
    drift: Any  # (c, s), like `Solved.drift`, including the worst violation


class Scratch(NamedTuple):
    """Room for intermediate values."""

    order: Any  # 0, 1, 2, ...
    margin: Any  # (9, margin room)
    around: Any  # (12, room + EVENTS + 8)
    near: Any  # (room + EVENTS + 8,) int64
    pack: Any  # flat, margin room x (room + EVENTS + 8)


class Supposition(NamedTuple):
    """One machine's problem with one more example of sign `sign` at object p."""

    sign: int  # +1 or -1
    p: int
    kernel: Any  # (room, room)
    objects: int  # p included
    positive: Any  # (room,) weights of the positive examples, the supposed one included
    total: Any  # (room,) weights of all examples, the supposed one included
    C: float
    scale: float  # see `HingeState`
    tolerance: float  # worst violation promised


class MarginBuffers(NamedTuple):
    """Members of a margin and the inverse of its bordered matrix."""

    members: Any  # (>= size,) int64
    size: int
    inverse: Any  # (>= size + 1, >= size + 1)


class Motion(NamedTuple):
    """How a margin and all scores move per unit of one object's coefficient."""

    direction: Any  # (margin room,): motion of the bias, then of the members' coefficients
    response: Any  # (>= count,): motion of the scores


class Base(NamedTuple):
    """A solved machine, with the object asked about at its place but not in the margin."""

    beta: Any  # (room,)
    score: Any  # (room,)
    state: Any  # (>= count,) int8
    up: Any  # (>= count,) level that a rising score meets next, or +inf
    down: Any  # (>= count,) level that a falling score meets next, or -inf


class Branch(NamedTuple):
    """Room for one supposition's answer: its part of `Branches`, and the levels."""

    beta: Any  # (room,)
    score: Any  # (room,)
    state: Any  # (room,) int8
    up: Any  # (>= count,)
    down: Any  # (>= count,)
    index: Any  # (margin room,) int64
    alive: Any  # (margin room,) bool
    terms: Any  # (EVENTS, margin room)
    kappa: Any  # (EVENTS,)


class Slots(NamedTuple):
    """What moves with p's coefficient: the bias in slot 0, then the members at the start, then those that joined."""

    rate: Any  # motion per unit of p's coefficient
    kernel: Any  # with p; 1 for the bias
    change: Any  # room for the motion that compensates another object
    now: Any  # value
    lowest: Any  # ends of its segment
    highest: Any
    rhs: Any  # room
    ratio: Any  # room


class WatchedBuffers(NamedTuple):
    """The objects whose scores are watched on a path."""

    near: Any  # (room + EVENTS + 8,) int64
    score: Any
    rate: Any  # motion per unit of p's coefficient
    up: Any  # levels, as in `Base`
    down: Any
    lift: Any  # room
    ratio: Any  # room
