"""Threads that share a model take turns: in the calls of its contract one is at work, and the others wait."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from functools import cache, update_wrapper
from inspect import Parameter, getattr_static, signature
from threading import RLock, active_count
from types import FunctionType
from typing import Any, ClassVar, NoReturn
from weakref import WeakSet, WeakValueDictionary, ref

#: Calls that take turns, in all classes below and in their subclasses.
ASKING = frozenset((
    "bag", "check", "check_many", "coefficients", "deleted_bag", "duals", "expect", "forget", "hypotheses",
    "member_bag", "member_bags", "member_scores", "member_scores_many", "note", "note_late", "predict_block",
    "predict_many", "predict_one", "residual", "score_many", "scores", "snapshot", "state", "under", "verdict",
))  # fmt: skip
#: Those of them that change what was learned: a process that is forked in between has half of the change.
LEARNING = frozenset((
    "after_learning", "expect_deleted", "learn_many", "learn_one", "replay_many", "restart", "restore",
    "unlearn_one", "update", "update_like", "update_many",
))  # fmt: skip


class Turn(type(RLock())):  # type: ignore[misc]
    """A lock which the thread that holds it may take again. It is no state: a copy of it is another one, and free."""

    __slots__ = ("changing", "copies", "holders", "into")

    def __init__(self) -> None:
        super().__init__()
        self.changing = False  # whether what was learned is being changed
        self.copies: tuple[tuple[Any, Any], ...] = ()  # what pickles have copied since the last change, and the copies
        self.into: Turn | None = None  # what has taken its place
        self.holders: WeakValueDictionary[int, Any] = WeakValueDictionary()  # by identity
        _turns.add(self)

    def __reduce__(self) -> Any:
        return Turn, ()


_turns: WeakSet[Turn] = WeakSet()
_giving = RLock()  # held while an object gets its turn or changes it, and nothing else is waited for


def _of(thing: Any) -> Any:
    """Return the turn of an object, which it gets when that is first asked for."""
    try:
        return thing._turn
    except AttributeError:
        turn = one_turn(thing._turns_with())
    with _giving:
        while turn.into is not None:
            turn = turn.into
        _give(getattr(thing, "_turn", turn), thing)  # another thread may have been first
    return thing._turn


def _give(turn: Any, thing: Any) -> None:
    object.__setattr__(thing, "_turn", turn)  # not by vars(), which would make all its attributes slower
    turn.holders[id(thing)] = thing


class TakesTurns:
    """Base of what several threads may share: in the calls named above one thread is at work, and the others wait.

    So a question and all that is read to answer it are one step, and each answer is one that a single thread may get.
    What holds others takes turns together with them: all predictors on a machine, all of a panel. A subclass that
    overrides a call needs nothing for that.

    Examples
    --------
    >>> class Counter(TakesTurns):
    ...     n = 0
    ...     def update(self):
    ...         n = self.n  # another thread would come in between
    ...         self.n = n + 1
    >>> from threading import Thread
    >>> counter = Counter()
    >>> threads = [Thread(target=counter.update) for _ in range(4)]
    >>> for thread in threads:
    ...     thread.start()
    >>> for thread in threads:
    ...     thread.join()
    >>> counter.n
    4
    """

    _turn: Any
    #: Calls that take turns besides those of the contract.
    _calls: ClassVar[frozenset[str]] = frozenset()

    def __init_subclass__(cls, **named: Any) -> None:
        super().__init_subclass__(**named)
        for name in ASKING | LEARNING | cls._calls:
            found = getattr_static(cls, name, None)
            call = found.fget if isinstance(found, property) else found
            if not isinstance(call, FunctionType) or call.__code__.co_filename == __file__:  # it takes turns already
                continue
            made = in_turn(call, name in LEARNING)
            setattr(cls, name, property(made, found.fset, found.fdel) if isinstance(found, property) else made)

    def _turns_with(self) -> Iterable[Any]:
        """Return what is read or taught in a call: all of it has one turn."""
        return ()

    # A copy waits for its turn, for whoever teaches meanwhile would tear it in two. A pickler takes an object apart bit
    # by bit, and says nothing at the end: where there are other threads it gets a copy of its own.

    def __copy__(self) -> Any:
        return deepcopy(self)  # of two that share what learns, each would learn only half of it

    def __deepcopy__(self, memo: dict[Any, Any]) -> Any:
        with turn_of(self):
            twin = _again(self._taken_apart(PROTOCOL), self, memo)
        if COPIED in memo:
            memo[COPIED].append((self, twin))
        return twin

    def __reduce_ex__(self, protocol: Any) -> Any:
        if active_count() > 1 and type(getattr(self, "_turn", None)) is not Unshared:
            return _copied(self)._taken_apart(protocol)
        return self._taken_apart(protocol)

    def _taken_apart(self, protocol: Any) -> Any:
        """Return what copies are made of: see `object.__reduce_ex__`."""
        return super().__reduce_ex__(protocol)

    def __getstate__(self) -> Any:
        state = super().__getstate__()
        return {name: v for name, v in state.items() if name != "_turn"} if isinstance(state, dict) else state


PROTOCOL = 4
COPIED = "copied"  # in the memory of a deep copy, whose other keys are numbers: the objects that take turns, and copies


class Unshared:
    """The turn of a copy that a pickler alone has: there is nothing to wait for."""

    into, changing, copies = None, False, ()

    def __init__(self) -> None:
        self.holders: dict[int, Any] = {}

    def _is_owned(self) -> bool:
        return True

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass


def _copied(thing: Any) -> Any:
    """Return a copy for a pickler; two objects that share a third one have copies that share one."""
    with turn_of(thing):
        turn = thing._turn
        made: list[tuple[Any, Any]] = []
        memo: dict[Any, Any] = {COPIED: made}
        for one, twin in turn.copies:
            if one() is not None and twin() is not None:
                memo[id(one())] = twin()
        found = deepcopy(thing, memo)
        for _, twin in made:
            object.__setattr__(twin, "_turn", Unshared())
        turn.copies = (*turn.copies, *((ref(one), ref(twin)) for one, twin in made))
        return found


def _again(parts: Any, thing: Any, memo: dict[Any, Any]) -> Any:
    """Return an object made again of deep copies of what `__reduce_ex__` returns."""
    make, given, state = (*parts, None)[:3]
    memo[id(thing)] = twin = make(*deepcopy(given, memo))
    state = deepcopy(state, memo)
    if state is not None and hasattr(twin, "__setstate__"):
        twin.__setstate__(state)
    elif state is not None:
        plain, slots = state if isinstance(state, tuple) else (state, None)
        vars(twin).update(plain or {})
        for name, value in (slots or {}).items():
            object.__setattr__(twin, name, value)
    return twin


def in_turn(call: FunctionType, learns: bool) -> Any:
    """Return a method that waits for the turn of its object first.

    It has the parameters of the call: to pass on `*args` and `**named` would take twice the time.
    """
    own = signature(call, follow_wrapped=False)
    each = list(own.parameters.values())
    plain = [one.replace(annotation=one.empty, default=one.empty if one.default is one.empty else None) for one in each]
    given = str(own.replace(parameters=plain, return_annotation=Parameter.empty))
    stars: dict[Any, str] = {Parameter.VAR_POSITIONAL: "*", Parameter.VAR_KEYWORD: "**"}
    passed = [
        f"{one.name}={one.name}" if one.kind is one.KEYWORD_ONLY else stars.get(one.kind, "") + one.name for one in each
    ]
    thing = f"{each[0].name}[0]" if each[0].kind is Parameter.VAR_POSITIONAL else each[0].name
    made = _waiting(given, thing, ", ".join(passed), learns)(call, _of)
    # A code of its own, which Python makes faster for the types that it meets; with the globals of the call, as doctest
    # and others look there for where a function comes from.
    code = made.__code__.replace(co_name=call.__name__, co_qualname=call.__qualname__)
    waiting = FunctionType(code, call.__globals__, call.__name__, call.__defaults__, made.__closure__)
    waiting.__kwdefaults__ = call.__kwdefaults__
    return update_wrapper(waiting, call)


@cache
def _waiting(given: str, thing: str, passed: str, learns: bool) -> Callable[..., FunctionType]:
    """Return what makes such methods of calls with these parameters, one of them the object, passed on so."""
    body = f"return call_({passed})"
    if learns:
        body = f"""before_, turn_.changing, turn_.copies = turn_.changing, True, ()
                    try:
                        {body}
                    finally:
                        turn_.changing = before_"""
    # Whoever waits may find that its object takes turns with others meanwhile: then it waits for these.
    code = f"""def made(call_, of_):
    def waiting{given}:
        while True:
            try:
                turn_ = {thing}._turn
            except AttributeError:
                turn_ = of_({thing})
            with turn_:
                if turn_ is {thing}._turn:
                    {body}
    return waiting"""
    room: dict[str, Any] = {}
    exec(compile(code, __file__, "exec"), room)  # as dataclasses make their methods
    return room["made"]


def one_turn(things: Iterable[Any]) -> Turn:
    """Return the turn that all these have from now on; what takes no turns has no part in it."""
    sharing = [thing for thing in things if isinstance(thing, TakesTurns)]
    if len(turns := {_of(thing) for thing in sharing}) < 2:
        return turns.pop() if turns else Turn()
    # If this thread is in the call of one of them, that is the one to keep: the call goes on.
    within = next((one for one in turns if one._is_owned()), None)
    with turn_of(*sharing), _giving:
        turns = {_of(thing) for thing in sharing}
        turn = within if within is not None and within in turns else turns.pop()
        for one in turns - {turn}:
            _put(turn, one)
        return turn


def _put(turn: Any, old: Turn) -> None:
    """Let all who have the old turn have this one."""
    old.into = turn
    for thing in list(old.holders.values()):
        _give(turn, thing)


@contextmanager
def turn_of(*things: Any) -> Iterator[None]:
    """Hold the turns of models for several calls that belong together; what takes no turns is not held.

    Examples
    --------
    >>> import venn
    >>> model = venn.Forecaster(["no", "yes"])
    >>> with turn_of(model):  # nobody teaches it meanwhile
    ...     said, n = model.predict_one([0.5]), model.n
    """
    sharing = [thing for thing in things if isinstance(thing, TakesTurns)]
    while True:
        turns = [_of(thing) for thing in sharing]
        with _each_of(sorted(set(turns), key=id)):  # in one order, so that no two wait for each other
            if all(thing._turn is turn for thing, turn in zip(sharing, turns, strict=True)):
                yield
                return


@contextmanager
def _each_of(turns: list[Any]) -> Iterator[None]:
    """Hold these turns; an interrupt leaves none held."""
    if not turns:
        yield
        return
    with turns[0], _each_of(turns[1:]):
        yield


class Lost:
    """The turn of what another thread was changing when this process was forked."""

    into = None

    def __init__(self) -> None:
        self.holders: dict[int, Any] = {}

    def _is_owned(self) -> bool:
        return False

    def __enter__(self) -> NoReturn:
        raise RuntimeError(
            "this model is half changed: another thread taught it when this process was forked. Fork when no thread "
            "teaches, or load the model in the new process"
        )

    def __exit__(self, *_: object) -> None:
        pass


def _forked() -> None:
    """In a forked process there are no other threads to end their turns: who had one has a new one, or is lost."""
    global _giving
    _giving = RLock()
    for turn in list(_turns):
        if turn.acquire(blocking=False):
            turn.release()
        else:
            _put(Lost() if turn.changing else Turn(), turn)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
