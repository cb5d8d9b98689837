"""What test martingales share: p-values checked, a compiled bet, a state that is plain data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from venn.monitors.running import number, numbers
from venn.prediction import Floats

State = dict[str, Any]
NEAR = 1e-9  # what was computed from the same numbers agrees better than this


class Martingale(Protocol):
    """What an alarm asks of a martingale: any object with these will do."""

    @property
    def n(self) -> int:
        """Number of p-values seen."""

    @property
    def log(self) -> float:
        """ln S_n; 0 at the start."""

    @property
    def state(self) -> State:
        """All that was learned, as plain JSON data."""

    def update(self, p: float) -> None:
        """Bet on one p-value."""

    def update_many(self, ps: Any) -> Floats:
        """Bet on (m,) p-values in order; return ln S after each."""

    def fresh(self) -> Self:
        """Return a martingale with the same parameters that has seen nothing."""

    def restore(self, state: State) -> None:
        """Go on from a `state` of a martingale with the same parameters."""


def checked_count(name: str, value: Any, least: int) -> int:
    """Return an integer of at least `least`."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        raise TypeError(f"{name} must be an integer >= {least}, got {value!r}")
    if value < least:
        raise ValueError(f"{name} must be an integer >= {least}, got {value!r}")
    return int(value)


class Bettor:
    """What the martingales share: a compiled bet and its state, a fixed number of floats.

    The capital S starts at 1 and is multiplied by f(p) at each p-value, where f, chosen from earlier
    p-values alone, is not negative and has mean 1 over [0, 1].

    Theorem: if p_1, p_2, ... are independent and uniform on [0, 1], as smoothed conformal p-values of
    exchangeable data are, S is a martingale: E S_n = 1 for every n, and the chance that S ever reaches 1/a is at
    most a (Ville). How fast S grows when they are not is no theorem, and depends on the martingale.

    """

    _run: ClassVar[Any]  # compiled: run(constants, state, ps, path)

    def __init__(
        self, parameters: dict[str, Any], constants: Sequence[float] | Floats, sizes: dict[str, int], derived: int = 0
    ) -> None:
        """Take the compiled loop's constants, and the names and sizes of what its state holds beside n and ln S.

        Behind these come `derived` floats that `_derive` can fill again.
        """
        self._parameters = parameters
        self._constants = np.array(constants, np.float64)
        self._sizes = {"n": 1, "log": 1, **sizes}
        self._state = np.zeros(sum(self._sizes.values()) + derived)
        self._one = np.empty(1)  # room for one p-value, and for what comes of it
        self._path = np.empty(1)

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={value!r}" for name, value in self._parameters.items())
        return f"{type(self).__name__}({inside})"

    @property
    def n(self) -> int:
        """Number of p-values seen."""
        return int(self._state[0])

    @property
    def log(self) -> float:
        """ln S_n, the natural logarithm of the capital; 0 at the start."""
        return float(self._state[1])

    def update(self, p: float) -> None:
        """Bet on one p-value.

        Raises
        ------
        TypeError, ValueError
            `p` is not a number in [0, 1]; nothing changes.
        """
        # The usual case first: two comparisons, which NaN fails.
        self._one[0] = p if type(p) is float and 0.0 <= p <= 1.0 else number("p", p)
        self._run(self._constants, self._state, self._one, self._path)

    def update_many(self, ps: Any) -> Floats:
        """Bet on (m,) p-values in order; return the (m,) ln S after each, to the last bit as one by one.

        Raises
        ------
        TypeError, ValueError
            `ps` is not one-dimensional or not all are numbers in [0, 1]; nothing changes.
        """
        clean = numbers("ps", ps)
        path = np.empty(len(clean))
        self._run(self._constants, self._state, clean, path)
        return path

    def fresh(self) -> Self:
        """Return a martingale with the same parameters that has seen nothing."""
        return type(self)(**self._parameters)

    @property
    def state(self) -> State:
        """All that was learned, as plain JSON data; `restore` takes it back, to the last bit."""
        parts = {name: part.tolist() for name, part in self._parts(self._state).items()}
        scalars = {name: part[0] for name, part in parts.items() if len(part) == 1}
        return {"kind": type(self).__name__, "parameters": self._plain(), **parts, **scalars, "n": self.n}

    def restore(self, state: State) -> None:
        """Go on from a `state` of a martingale with the same parameters.

        Raises
        ------
        ValueError
            `state` is not that of such a martingale, or damaged; nothing changes.
        """
        names = {"kind", "parameters", *self._sizes}
        if not isinstance(state, dict) or set(state) != names:
            found = sorted(map(str, state)) if isinstance(state, dict) else state
            raise ValueError(f"state must hold {sorted(names)}, got {found!r}")
        if (state["kind"], state["parameters"]) != (type(self).__name__, self._plain()):
            raise ValueError(
                f"state must be that of {self!r}, got one of {state['kind']!r} with {state['parameters']!r}"
            )
        vector = np.zeros_like(self._state)
        parts = self._parts(vector)
        for name, part in parts.items():
            values = state[name] if len(part) > 1 else [state[name]]
            right = isinstance(values, list) and len(values) == len(part)
            if not right or any(type(v) not in (int, float) or not math.isfinite(v) for v in values):
                raise ValueError(f"state[{name!r}] must hold {len(part)} finite numbers, got {state[name]!r}")
            part[:] = values
        n = state["n"]
        if type(n) is not int or n < 0:
            raise ValueError(f"state['n'] must be an integer >= 0, got {n!r}")
        if (n == 0 and vector.tobytes() != self.fresh()._state.tobytes()) or (n > 0 and not self._possible(parts)):
            raise ValueError(f"state must be one that {self!r} can reach in {n} steps, got a damaged one: {state!r}")
        self._derive(vector)
        self._state = vector

    def _plain(self) -> dict[str, Any]:
        return {name: list(v) if isinstance(v, tuple) else v for name, v in self._parameters.items()}

    def _parts(self, vector: Floats) -> dict[str, Floats]:
        ends = np.cumsum(list(self._sizes.values()))
        return {name: vector[end - size : end] for (name, size), end in zip(self._sizes.items(), ends, strict=True)}

    def _possible(self, parts: dict[str, Floats]) -> bool:
        """Whether the parts of a state, of finite numbers, n >= 1, agree with each other."""
        raise NotImplementedError

    def _derive(self, vector: Floats) -> None:
        """Fill what a state holds beside its parts."""


def whole(values: Floats) -> bool:
    """Whether all are whole numbers >= 0."""
    return bool(((values >= 0) & (values == np.floor(values))).all())


def close(found: float, computed: float) -> bool:
    """Whether two numbers agree that were computed from the same ones."""
    return bool(abs(found - computed) <= NEAR * (1 + abs(computed)))
