"""Threads that share a model take turns: in the calls of its contract one is at work, and the others wait."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from functools import update_wrapper
from threading import RLock, active_count, get_ident
from types import FunctionType
from typing import Any, NoReturn, TypeVar
from weakref import WeakSet, ref

Call = TypeVar("Call", bound=Callable[..., Any])


def asks(call: Call) -> Call:
    """Let a call wait for the turn of its object, in a subclass of `TakesTurns`; so do those that override it."""
    vars(call)["_changes"] = False
    return call


def changes(call: Call) -> Call:
    """Let a call wait that changes what was learned: a process that is forked in between has half of the change."""
    vars(call)["_changes"] = True
    return call


class Turn(type(RLock())):  # type: ignore[misc]
    """A lock which the thread that holds it may take again. It is no state: a copy of it is another one, and free."""

    __slots__ = ("changing", "copies", "into")

    def __init__(self) -> None:
        super().__init__()
        self.changing = False  # whether what was learned is being changed
        self.copies: dict[int, Any] = {}  # by thread, references to what its pickle has copied since the last change
        self.into: Any = None  # what has taken its place: who finds that it has waits for this
        _turns.add(self)

    def __reduce__(self) -> Any:
        return Turn, ()


_turns: WeakSet[Turn] = WeakSet()
_giving = RLock()  # held while an object gets its turn or changes it, and nothing else is waited for


def _of(thing: Any) -> Any:
    """Return the turn of an object, which it gets when that is first asked for."""
    if not hasattr(thing, "_turn"):
        turn = one_turn(thing._turns_with())
        with _giving:
            _give(getattr(thing, "_turn", turn), thing)  # another thread may have been first
    turn = thing._turn
    while turn.into is not None:
        turn = turn.into
        _give(turn, thing)
    return turn


def _give(turn: Any, thing: Any) -> None:
    object.__setattr__(thing, "_turn", turn)  # not by vars(), which would make all its attributes slower


class TakesTurns:
    """Base of what several threads may share: in calls that ask or change one thread is at work, and the others wait.

    So a question and all that is read to answer it are one step, and each answer is one that a single thread may get.
    What holds others takes turns together with them: all predictors on a machine, all of a panel. Calls that wait are
    marked by `asks` and `changes` where they stand; a subclass that overrides one needs nothing for that.

    Examples
    --------
    >>> class Counter(TakesTurns):
    ...     n = 0
    ...     @changes
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

    def __init_subclass__(cls, **named: Any) -> None:
        super().__init_subclass__(**named)
        found: dict[str, Any] = {}
        marked: dict[str, bool] = {}
        for kind in reversed(cls.__mro__):
            found |= vars(kind)
            marked |= {name: mark for name, member in vars(kind).items() if (mark := _mark(member)) is not None}
        for name, changing in marked.items():
            call = member = found[name]
            if isinstance(member, property):
                call = member.fget
            if isinstance(call, FunctionType) and call.__code__.co_filename != __file__:  # it does not wait already
                made = _waiting(call, changing)
                setattr(cls, name, made if call is member else property(made, member.fset, member.fdel))

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
    """The turn of copies that a pickler alone has: there is nothing to wait for."""

    into, changing = None, False

    def __init__(self) -> None:
        self.asked: set[int] = set()  # the objects that the pickler has asked for, each once
        self.memo: dict[Any, Any] = {}  # all that was copied, and the copies
        self.copies: dict[int, Any] = {}

    def _is_owned(self) -> bool:
        return True

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass


def _copied(thing: Any) -> Any:
    """Return a copy for a pickler; what it takes apart together shares in the copies what it shares.

    A pickler asks for each object once: who asks for one again is another, and gets other copies.
    """
    with turn_of(thing):
        turn, thread = thing._turn, get_ident()
        alone = turn.copies[thread]() if thread in turn.copies else None
        if alone is None or id(thing) in alone.asked:
            alone = Unshared()
            turn.copies[thread] = ref(alone)
        alone.asked.add(id(thing))
        made: list[tuple[Any, Any]] = []
        alone.memo[COPIED] = made
        found = deepcopy(thing, alone.memo)
        for _, twin in made:
            _give(alone, twin)
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


def _mark(member: Any) -> bool | None:
    """Return whether a call that was marked changes what was learned; None of all others."""
    call = member.fget if isinstance(member, property) else member
    return vars(call).get("_changes") if isinstance(call, FunctionType) else None


def _waiting(call: FunctionType, changing: bool, of: Callable[[Any], Any] = _of) -> Any:
    """Return a method that waits for the turn of its object first."""

    def waiting(*args: Any, **named: Any) -> Any:
        thing = args[0]
        while True:
            try:
                turn = thing._turn
            except AttributeError:
                turn = of(thing)
            with turn:
                if turn.into is None:
                    before = turn.changing
                    if changing:
                        turn.changing, turn.copies = True, {}
                    try:
                        return call(*args, **named)
                    finally:
                        turn.changing = before
            of(thing)  # it takes turns with others meanwhile

    # A code of its own, which Python makes faster for the types that it meets; with the globals of the call, as doctest
    # and others look there for where a function comes from.
    code = waiting.__code__.replace(co_name=call.__name__, co_qualname=call.__qualname__)
    return update_wrapper(FunctionType(code, call.__globals__, call.__name__, None, waiting.__closure__), call)


def one_turn(things: Iterable[Any]) -> Any:
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
            one.into = turn
        return turn


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
            if all(turn.into is None for turn in turns):
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
    """In a forked process there are no other threads to end their turns: what one had is free again, or lost."""
    global _giving
    _giving = RLock()
    for turn in list(_turns):
        if turn.acquire(blocking=False):
            turn.release()
        else:
            turn._at_fork_reinit()
            turn.into = Lost() if turn.changing else None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
