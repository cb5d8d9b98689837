"""Ports for the servers that tests start, and a Redis server."""

import random
import socket
import subprocess
import time
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


class RedisServer:
    """A redis-server of our own, whose data outlive it, started.

    What was answered survives a kill, if not a power failure: with "everysec" a server puts writes off while the disk
    is slow, and a kill loses what it has confirmed.
    """

    def __init__(self, folder):
        self.port, self.folder = free_port(), folder
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self.start()

    def start(self):
        """Start it, and wait until it takes commands."""
        keep = ("--hz", "100", "--save", "", "--appendonly", "yes", "--appendfsync", "always")
        self.process = subprocess.Popen(
            ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder), *keep],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        deadline, said = time.monotonic() + 60, b""
        while not said.startswith(b"+PONG"):
            assert time.monotonic() < deadline
            assert self.process.poll() is None
            time.sleep(0.01)
            try:
                with socket.create_connection(("127.0.0.1", self.port), timeout=60) as client:
                    client.sendall(b"PING\r\n")
                    said = client.recv(100)
            except ConnectionError:
                continue

    def kill(self):
        self.process.kill()
        self.process.wait()
