"""What does a journal cost a step, how long does its check take, and does memory stay flat for months?

    python benchmarks/journal.py
    python benchmarks/journal.py --soak 5000000 --folder /var/tmp

An inductive Venn predictor on a given linear scorer, the cheapest step and so the hardest case for a journal, with its
monitor, on Gaussian data. Each question is answered at once. Blocks of steps run in turn without a journal, with one (a
transaction for each question and each answer, as in a service) and in transactions of 64 steps (as in `venn run`): the
ratio is that of the medians over blocks. `verify_us_an_event`: processor time of the whole check of `venn verify`.
Compilation is excluded, and nobody else should use the machine. Prints one JSON line.

The soak: as many examples through a journaled run in transactions, resident memory along the way.
"""

import tempfile
import time
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression
from workload import command, command_options, noisy, resident, timed

import venn
from venn.online.checkpoint import pack

CLASSES = (0, 1)
TOGETHER = 64  # steps of a transaction


def opened(journal=None, **more):
    scorer = venn.FrozenScorer(LogisticRegression().fit(*noisy(np.random.default_rng(0), 1000)))
    return venn.Online(venn.InductiveVenn(scorer), venn.Monitor(CLASSES), journal, **more)


def one_by_one(online, X, y):
    """Ask and answer each example."""
    for x, label in zip(X, y, strict=True):
        online.ask(x)
        online.answer(online.asked, label)


def together(online, X, y):
    """The same in transactions."""
    for start in range(0, len(X), TOGETHER):
        with online.transaction():
            one_by_one(online, X[start : start + TOGETHER], y[start : start + TOGETHER])


def compare(folder, blocks, steps):
    """Time the ways in turn; return the figures."""
    path = folder / "transactions.db"
    ways = {"memory": (None, one_by_one), "journal": (folder / "run.db", one_by_one), "transactions": (path, together)}
    runs = {way: opened(journal) for way, (journal, _) in ways.items()}
    rng, seconds = np.random.default_rng(1), {way: [] for way in ways}
    for _ in range(blocks + 1):
        X, y = noisy(rng, steps)
        for way, (_, drive) in ways.items():
            seconds[way].append(timed(lambda way=way, drive=drive: drive(runs[way], X, y), time.perf_counter))  # noqa: B023
    median = {way: float(np.median(times[1:])) for way, times in seconds.items()}  # the first one warms up
    assert pack(runs["memory"].monitors["InductiveVenn"]) == pack(runs["transactions"].monitors["InductiveVenn"])
    for online in runs.values():
        online.close()
    verified = timed(lambda: venn.online.verify(path)) / (2 * (blocks + 1) * steps)
    return {
        "slower_than_memory": {way: round(median[way] / median["memory"], 2) for way in ways if way != "memory"},
        "verify_us_an_event": round(1e6 * verified, 2),
    }


def soak(examples, folder):
    """Run for long; return the figures."""
    online, rng = opened(folder / "soak.db", patience=1000), np.random.default_rng(2)
    memory, marks = [], max(1, examples // 10)
    while online.answered < examples:
        together(online, *noisy(rng, min(50_000, examples - online.answered)))
        if online.answered >= marks * (len(memory) + 1):
            memory.append(round(resident() / 2**20, 1))
            print(f"{online.answered} examples, {memory[-1]} MB", flush=True)
    online.close()
    return {"examples": examples, "memory_mb": memory}


@command()
def main():
    args = command_options(__doc__, blocks=5, steps=5000, soak=0, folder=Path)
    with tempfile.TemporaryDirectory(dir=args.folder) as scratch:
        folder = Path(scratch)
        found = soak(args.soak, folder) if args.soak else compare(folder, args.blocks, args.steps)
        yield {"benchmark": "journal", **found}
