"""Changes as episodes: are they dated right, how many calls do they make, and how long is what is said of them?

Six scenarios, each on some streams of four columns with a logistic scorer that was fitted before. A date is right if it
lies within 30 rows of a true change. Beside them streams in which nothing changes.

    python benchmarks/episodes.py                     # one stream each
    python benchmarks/episodes.py --runs 10
    python benchmarks/episodes.py --only noise --runs 5
"""

import logging
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from workload import command_options

import venn

AT, AGAIN, ROWS = 500, 900, 1300
NEAR = 30  # rows
WEIGHTS = np.array([1.5, -1.0, 0.5, 0.0])

Floats = np.ndarray
Change = Callable[[Floats, Floats, np.random.Generator], None]


def drawn(rng: np.random.Generator, rows: int) -> tuple[Floats, Floats]:
    """Return objects (n, 4) and labels (n,)."""
    X = rng.normal(size=(rows, 4))
    return X, (rng.random(rows) < 1 / (1 + np.exp(-2 * X @ WEIGHTS))).astype(int)


def flip(X: Floats, y: Floats, rng: Any, start: int = AT, end: int | None = None) -> None:
    """Exchange the labels."""
    y[start:end] = 1 - y[start:end]


def unit(X: Floats, y: Floats, rng: Any, start: int = AT, end: int | None = None) -> None:
    """Give a column in another unit."""
    X[start:end, 1] = 32 + 50 * X[start:end, 1]


def stuck(X: Floats, y: Floats, rng: Any) -> None:
    """Let a sensor stand still."""
    X[AT:, 0] = X[AT - 1, 0]


def thinned(X: Floats, y: Floats, rng: Any, keep: Floats) -> None:
    """Replace rows of class 0 by others of class 1, each with its chance."""
    ones = np.flatnonzero(y == 1)
    rows = np.flatnonzero((y == 0) & (rng.random(len(y)) < keep))
    X[rows], y[rows] = X[other := rng.choice(ones, len(rows))], y[other]


def shares(X: Floats, y: Floats, rng: Any) -> None:
    """Let one class come more often."""
    thinned(X, y, rng, 0.6 * (np.arange(len(y)) >= AT))


def noise(X: Floats, y: Floats, rng: Any, share: float = 0.15) -> None:
    """Make some labels random."""
    hit = np.flatnonzero((np.arange(len(y)) >= AT) & (rng.random(len(y)) < share))
    y[hit] = rng.integers(2, size=len(hit))


def there_and_back(change: Callable[..., None]) -> Change:
    """Return a change that is mended."""
    return lambda X, y, rng: change(X, y, rng, AT, AGAIN)


#: What happens, and at which rows.
SCENARIOS: dict[str, tuple[Change, list[int]]] = {
    "flip": (flip, [AT]), "flip and back": (there_and_back(flip), [AT, AGAIN]),
    "unit and mended": (there_and_back(unit), [AT, AGAIN]), "stuck": (stuck, [AT]), "shares": (shares, [AT]),
    "noise": (noise, [AT]), "nothing": (lambda X, y, rng: None, []),
}  # fmt: skip


def lived(scenario: str, seed: int, rows: int = ROWS) -> tuple[Any, list[str]]:
    """Return an `Online` that has seen a scenario, and the sentences of its calls."""
    rng = np.random.default_rng(seed)
    scorer = LogisticRegression().fit(*drawn(rng, 500))
    X, y = drawn(rng, rows)
    SCENARIOS[scenario][0](X, y, rng)
    calls: list[str] = []
    online = venn.Online(venn.Forecaster(scorer=scorer), on_alarm=lambda one: calls.append(str(one)))
    for i in range(rows):
        online.ask(X[i], f"row-{i + 1}")
        online.answer(f"row-{i + 1}", int(y[i]))
    return online, calls


def right(online: Any, scenario: str, near: int = NEAR) -> list[bool]:
    """Return of each episode whether its first question is that of a true change."""
    true = SCENARIOS[scenario][1]
    return [any(abs(one.first.number - 1 - at) <= near for at in true) for one in online.episodes()]


def main() -> None:
    """Print one line for each scenario."""
    asked = command_options(__doc__, runs=1, rows=ROWS, only=str)
    warnings.simplefilter("ignore")
    logging.disable()
    print(f"{'scenario':<16}{'rang':>6}{'episodes':>10}{'dates right':>13}{'calls':>7}{'words':>7}{'to the ring':>13}")
    for scenario in [asked.only] if asked.only else SCENARIOS:
        found, good, calls, words, waits, rang = 0, 0, 0, 0, [], 0
        for seed in range(asked.runs):
            online, said = lived(scenario, seed, asked.rows)
            episodes = online.episodes()
            rang += bool(episodes)
            found, good, calls = found + len(episodes), good + sum(right(online, scenario)), calls + len(said)
            said.append(online.verdict().sentence)
            words = max(words, *(len(one.split()) for one in said))
            waits += [one.rang.number - AT for one in episodes[:1]]
        dates = f"{good} of {found}" if SCENARIOS[scenario][1] else "-"
        wait = f"{np.median(waits):.0f}" if waits else "-"
        print(
            f"{scenario:<16}{f'{rang}/{asked.runs}':>6}{found:>10}{dates:>13}{calls:>7}{words:>7}{wait:>13}", flush=True
        )


if __name__ == "__main__":
    main()
