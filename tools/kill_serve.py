"""Does a served model that dies at any moment keep all that it has said? Kill it while clients ask, answer and retry.

    python -m tools.kill_serve [--kills 200] [--clients 8] [--seed 0] [--setups trees,inductive]   # half an hour

The server is forked from a process that has imported and compiled everything, and killed by SIGKILL after a random
time, at times after its process of HTTP. Clients, in a process of their own, send each request until it is answered.
Then everything is compared: what anybody was told is in the journal, and is said again to the last byte; nothing is
learned twice; and the library, called in the order of the journal, leaves the same tables and the same state.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import signal
import sqlite3
import tempfile
import threading
import time
import warnings
from contextlib import closing
from pathlib import Path
from typing import Any

import venn
from tests.ports import free_port
from tests.serve_cases import begun_by
from tools.kill import CAR, SETUPS, in_child, left, tell
from venn.online.chain import decode_object
from venn.online.journal import Journal
from venn.show.apart import WebProcess

EXAMPLES = list(CAR)
WRONG = "errors", "lost", "twice", "other_bytes", "differences"  # must be 0


def live(setup: str, path: Path, port: int) -> None:
    """Serve until the process is killed."""
    model, monitors = SETUPS[setup]()
    journal: Any = Journal(path, every=50, share=1.0)
    app = venn.serve(model, journal, monitor=monitors, patience=200)
    with WebProcess() as web, app, web.serving(app.routes, "127.0.0.1", port):
        while not web.failure:
            time.sleep(0.01)


class KilledClient:
    """A client that sends each request until it is answered, and remembers what it was told.

    Parameters
    ----------
    port : int
    name : int
    seed : int
    stop : threading.Event
        It asks until this is set.
    """

    def __init__(self, port: int, name: int, seed: int, stop: threading.Event) -> None:
        self.port, self.name, self.stop = port, name, stop
        self.dice = random.Random(seed * 1000 + name)
        self.told: list[tuple[str, Any, str]] = []  # path, message and reply
        self.retries = self.errors = 0

    def post(self, path: str, message: Any) -> str:
        """Return the reply to a request."""
        while True:
            try:
                with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)) as connection:
                    connection.request("POST", path, json.dumps(message), {"Content-Type": "application/json"})
                    reply = connection.getresponse()
                    text = reply.read().decode()
                if reply.status == 200:
                    self.told.append((path, message, text))
                    return text
                if reply.status not in (429, 503):
                    self.errors += reply.status != 410
                    return ""
            except (OSError, http.client.HTTPException):
                self.retries += 1
            time.sleep(0.02)

    def run(self) -> None:
        """Ask and answer, in an order of its own; repeat now and then."""
        waiting: list[tuple[str, Any]] = []
        number = 0
        while not self.stop.is_set():
            number += 1
            x, y = EXAMPLES[self.dice.randrange(len(EXAMPLES))]
            id = f"{self.name}-{number}"
            self.post("/ask", {"id": id, "x": x.tolist()})
            waiting.append((id, y))
            while waiting and self.dice.random() < 0.55:
                id, y = waiting.pop(self.dice.randrange(len(waiting)))
                if self.dice.random() < 0.9:  # some labels never come
                    self.post("/answer", {"id": id, "y": y})
            if self.told and self.dice.random() < 0.1:
                path, message, text = self.dice.choice(self.told)
                if self.post(path, message) not in (text, ""):
                    self.errors += 1


def clients(port: int, many: int, seed: int, out: Path, stopped: Path) -> None:
    """Let clients work until there is a file `stopped`; write what they were told."""
    stop = threading.Event()
    each = [KilledClient(port, name, seed, stop) for name in range(many)]
    threads = [threading.Thread(target=one.run) for one in each]
    for thread in threads:
        thread.start()
    while not stopped.exists():
        time.sleep(0.05)
    stop.set()
    for thread in threads:
        thread.join()
    told = [said for one in each for said in one.told]
    counts = {"retries": sum(one.retries for one in each), "errors": sum(one.errors for one in each)}
    out.write_text(json.dumps({"told": told, **counts}))


def compared(setup: str, path: Path, told: list[Any], port: int) -> dict[str, int]:
    """Compare what was told with the journal, with what is said now, and with the library; return numbers."""
    with closing(sqlite3.connect(path)) as db:
        ids = {id: event for event, id in db.execute("SELECT event, id FROM questions")}
        answers = {question: truth for question, truth in db.execute("SELECT question, truth FROM answers")}
        twice = db.execute("SELECT count(*) - count(DISTINCT question) FROM answers").fetchone()[0]
    lost = sum(message["id"] not in ids for _, message, _ in told)
    lost += sum(answers.get(ids[message["id"]]) is None for at, message, _ in told if at == "/answer")
    child = in_child(lambda: live(setup, path, port))
    again = KilledClient(port, 0, 0, threading.Event())
    other = sum(again.post(at, message) != text for at, message, text in {(a, json.dumps(m), t): (a, m, t)
                for a, m, t in told}.values())  # fmt: skip
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    model, monitors = SETUPS[setup]()
    after = venn.Online(model, monitors, Journal(path), patience=200)
    found = left(after, path)
    events = [
        *((event, id, decode_object(x), None) for event, id, _, x, _ in found["questions"]),
        *((event, question, None, truth) for _, event, question, truth in found["answers"]),
    ]  # type: ignore[attr-defined]
    model, monitors = SETUPS[setup]()
    fresh = path.with_name(f"{setup} library.db")
    online = venn.Online(model, monitors, Journal(fresh, every=10**9), patience=200)
    by_event = {event: id for id, event in ids.items()}
    for _, what, x, truth in sorted(events, key=lambda one: one[0]):
        if x is not None:
            online.ask(x, what)
        else:
            online.answer(by_event[what], online.panel.space.decode(truth))
    expected = left(online, fresh)
    for parts in (found, expected):  # how far its source has been read, and what was served, the library does not say
        parts.pop("positions")
    differ = [part for part, value in expected.items() if found[part] != value]
    if differ:
        tell(f"{setup}: {', '.join(differ)} differ from the library's")
    for one in (after, online):
        assert one.journal is not None
        one.journal.close()
    return {"lost": lost, "twice": twice, "other_bytes": other, "differences": len(differ)}


def killed(setup: str, kills: int, options: argparse.Namespace, folder: Path, dice: random.Random) -> dict[str, int]:
    """Kill a server again and again while clients use it; return numbers of what came of it."""
    model, monitors = SETUPS[setup]()  # compiles what the servers need
    with venn.Online(model, monitors, Journal(folder / f"{setup} warm.db")) as warm:
        for x, y in EXAMPLES[:200]:
            warm.ask(x)
            warm.answer(warm.asked, y)
    port, path, out, stopped = free_port(), folder / f"{setup}.db", folder / f"{setup}.json", folder / f"{setup} stops"
    work = in_child(lambda: clients(port, options.clients, options.seed, out, stopped))
    for _ in range(kills):
        server = in_child(lambda: live(setup, path, port))
        time.sleep(dice.uniform(0.05, options.lifetime))
        if dice.random() < 0.5:  # that of the web server first
            for one in begun_by(server):
                os.kill(one, signal.SIGKILL)
            time.sleep(dice.uniform(0, 0.5))
        os.kill(server, signal.SIGKILL)
        os.waitpid(server, 0)
    stopped.touch()
    server = in_child(lambda: live(setup, path, port))
    _, status = os.waitpid(work, 0)
    os.kill(server, signal.SIGKILL)
    os.waitpid(server, 0)
    if status:
        raise SystemExit(f"{setup}: the clients ended with status {status}")
    found = json.loads(out.read_text())
    told = found.pop("told")
    return {"kills": kills, "told": len(told), **found, **compared(setup, path, told, port)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--lifetime", type=float, default=3.0, help="seconds that a server lives at most")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--setups", default="trees,inductive")
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("error")
    dice, setups = random.Random(options.seed), options.setups.split(",")
    total: dict[str, int] = {}
    with tempfile.TemporaryDirectory(dir=options.folder) as scratch:
        for setup in setups:
            counts = killed(setup, options.kills // len(setups), options, Path(scratch), dice)
            tell(f"{setup}: {counts}")
            total = {key: total.get(key, 0) + count for key, count in counts.items()}
    print(json.dumps(total))
    if any(total[wrong] for wrong in WRONG) or not total["told"]:
        raise SystemExit("a kill has changed something")


if __name__ == "__main__":
    main()
