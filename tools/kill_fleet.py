"""Kill two processes that share the partitions of a fleet, at random moments, and compare what is left with one life.

    python -m tools.kill_fleet [kills]
    python -m tools.kill_fleet served [kills]

Both serve the same partitions; each is taken by one of them, and when that is killed the other one goes on. By default
50 kills. Prints how often, and whether every key is equal to the bit; exits with 1 if not. With `served` it kills
``venn serve --key`` while clients ask, answer and repeat.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from tests.scale.test_fleet_partitions import Told, before_bar, messages_of, opened, states
from tests.serving.test_serve_keyed import killed
from venn.scale import follow_partitions

MESSAGES = 3000  # of each of two partitions
SLOW = """
import sys, time
from pathlib import Path
from tests.scale.test_fleet_partitions import Told, before_bar, messages_of, opened
from venn.scale import follow_partitions
folder, n = Path(sys.argv[1]), int(sys.argv[2])
fleet, source = lambda i: opened(folder, i, every=20), lambda i: Told(messages_of(i, n))
for event in follow_partitions(range(2), fleet, source, key=before_bar, wait=0.01):
    time.sleep(0.02)
"""


def main(kills: int = 50) -> int:
    """Return the exit code."""
    rng, done = np.random.default_rng(0), 0
    with tempfile.TemporaryDirectory() as scratch:
        whole, folder = Path(scratch, "whole"), Path(scratch, "killed")
        for _ in follow_partitions(
            range(2), lambda i: opened(whole, i), lambda i: Told(messages_of(i, MESSAGES)), key=before_bar
        ):
            pass
        processes: list[subprocess.Popen[bytes]] = []

        def start() -> None:
            processes.append(subprocess.Popen([sys.executable, "-c", SLOW, str(folder), str(MESSAGES)]))

        start()
        start()
        while done < kills and any(one.poll() is None for one in processes):
            time.sleep(float(rng.exponential(3.0)))
            victim = processes.pop(int(rng.integers(len(processes))))
            if victim.poll() is None:
                victim.kill()
                done += 1
            victim.wait()
            start()
        failed = False
        for one in processes:
            failed |= one.wait() != 0
        same = states(whole) == states(folder)
    print(f"{done} kills, every key equal to the bit: {same}")
    return 0 if same and not failed else 1


def served(kills: int = 50) -> int:
    """Return the exit code of the same for one server."""
    with tempfile.TemporaryDirectory() as scratch:
        killed(Path(scratch), kills, many=60 * kills, seed=0)  # raises where anything differs
    print(f"{kills} kills of a server, every reply and every key equal to the bit: True")
    return 0


if __name__ == "__main__":
    given = sys.argv[1:]
    sys.exit(served(*map(int, given[1:])) if given[:1] == ["served"] else main(*map(int, given)))
