"""Ports for the servers that tests start."""

import random
import socket
from pathlib import Path

RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")


def free_port():
    """Return a free port of the loopback that stays free until the server has it, and while the server is down.

    A port that the system chooses may go to the next connection of anybody before the server is there, so this is
    one below those that the system chooses from.
    """
    end = int(RANGE.read_text().split()[0]) if RANGE.exists() else 32_768
    dice = random.SystemRandom()  # workers must not meet: hypothesis gives all of them the same seed
    while True:
        port = dice.randrange(10_000, end) if end > 20_000 else 0
        with socket.socket() as found:
            try:
                found.bind(("127.0.0.1", port))
            except OSError:
                continue
            return found.getsockname()[1]
