"""What does a served model cost, beside what one would write otherwise: FastAPI, a lock and the same forest?

    python benchmarks/serve.py [--clients 32] [--seconds 8] [--pairs 0] [--servers venn,mounted,fastapi,river]

Each server is a process of its own, each client asks about an object and then says its label, over a connection that
stays open. The processor time of server and clients is measured, too, which changes less on a busy machine. `venn` is a
`Forecaster` around a given forest, with its monitors and its journal, and a second process for HTTP; `mounted` is the
same in one process; `fastapi` is the same forest behind a lock, which keeps labels in a list and nothing else; `river`
is a pipeline that learns, behind a lock. `online` is the same `Forecaster` without any server, in transactions of 32
pairs. With --pairs the load goes on for so many, and memory is measured on the way.
"""

import argparse
import asyncio
import gc
import json
import multiprocessing
import os
import socket
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import uvloop
from sklearn.ensemble import RandomForestClassifier
from workload import command, command_options

FEATURES, ROWS = 10, 2000


def examples(n: int, seed: int) -> tuple[Any, list[str]]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, FEATURES)).round(2)
    return X, ["yes" if one else "no" for one in X[:, 0] + X[:, 1] + rng.normal(size=n) > 0]


def forest() -> Any:
    X, y = examples(ROWS, 1)
    return RandomForestClassifier(100, min_samples_leaf=5, random_state=0, n_jobs=1).fit(X, y)


# --------------------------------------------------------------------------------------------- servers


def of_venn(port: int, folder: str) -> None:
    import venn
    from venn.show.apart import WebProcess

    app = venn.serve(venn.Forecaster(scorer=forest()), f"{folder}/run.db")
    with WebProcess() as web, app, web.serving(app.routes, "127.0.0.1", port, most=512):
        rest()


def of_mounted(port: int, folder: str) -> None:
    import venn
    from venn.show.server import serving

    app = venn.serve(venn.Forecaster(scorer=forest()), f"{folder}/run.db")
    with app, serving(app.routes, "127.0.0.1", port, most=512):
        rest()


def rest() -> None:
    gc.collect()  # as `venn serve` does
    gc.freeze()
    time.sleep(1e6)


def of_fastapi(port: int, folder: str) -> None:
    import uvicorn
    from fastapi import FastAPI

    app, lock, model, asked, labels = FastAPI(), asyncio.Lock(), forest(), dict[str, Any](), list[Any]()

    @app.post("/ask")
    async def ask(message: dict[str, Any]) -> dict[str, Any]:
        async with lock:
            proba = model.predict_proba(np.array([message["x"]]))[0]
            asked[message["id"]] = message["x"]
        return {"id": message["id"], "probabilities": dict(zip(model.classes_, proba.tolist(), strict=True))}

    @app.post("/answer")
    async def answer(message: dict[str, Any]) -> dict[str, Any]:
        async with lock:
            labels.append((asked.pop(message["id"]), message["y"]))
        return {"id": message["id"]}

    uvicorn.run(app, port=port, log_level="critical", access_log=False)


def of_river(port: int, folder: str) -> None:
    import uvicorn
    from fastapi import FastAPI
    from river import forest as forests
    from river import preprocessing

    model = preprocessing.StandardScaler() | forests.ARFClassifier(n_models=10, seed=0)
    app, lock, asked = FastAPI(), asyncio.Lock(), dict[str, Any]()

    @app.post("/ask")
    async def ask(message: dict[str, Any]) -> dict[str, Any]:
        x = {str(i): value for i, value in enumerate(message["x"])}
        async with lock:
            proba = model.predict_proba_one(x)
            asked[message["id"]] = x
        return {"id": message["id"], "probabilities": proba}

    @app.post("/answer")
    async def answer(message: dict[str, Any]) -> dict[str, Any]:
        async with lock:
            model.learn_one(asked.pop(message["id"]), message["y"])
        return {"id": message["id"]}

    uvicorn.run(app, port=port, log_level="critical", access_log=False)


SERVERS = {"venn": of_venn, "mounted": of_mounted, "fastapi": of_fastapi, "river": of_river}


# ------------------------------------------------------------------------------------------------ load


class Asking(asyncio.Protocol):
    """A client: it asks, says the label, and asks again until the end."""

    def __init__(self, port: int, name: int, load: Any) -> None:
        self.port, self.name, self.load, self.number, self.buffer = port, name, load, 0, b""

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.ask()

    def ask(self) -> None:
        place = self.load.taken
        self.load.taken += 1
        if self.load.over():
            self.transport.close()
            return
        self.number += 1
        self.row = place % ROWS
        self.send("/ask", "x", self.load.X[self.row])

    def send(self, path: str, key: str, value: str) -> None:
        body = f'{{"id": "{self.load.prefix}{self.name}-{self.number}", "{key}": {value}}}'
        head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nContent-Type: application/json\r\n"
        self.path, self.at = path, time.perf_counter()
        self.transport.write(f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode())

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        head, found, body = self.buffer.partition(b"\r\n\r\n")
        if not found or len(body) < int(head.lower().partition(b"content-length: ")[2].partition(b"\r")[0]):
            return
        assert head.startswith(b"HTTP/1.1 200"), self.buffer[:300]
        self.buffer = b""
        self.load.latencies.append(time.perf_counter() - self.at)
        if self.path == "/ask":
            self.send("/answer", "y", self.load.y[self.row])
        else:
            self.ask()


class Load:
    """What the clients share: examples as JSON, latencies, when to end, and how ids begin."""

    def __init__(self, seconds: float, pairs: int, prefix: str = "") -> None:
        X, y = examples(ROWS, 2)
        self.X, self.y, self.prefix = list(map(json.dumps, X.tolist())), list(map(json.dumps, y)), prefix
        self.latencies: list[float] = []
        self.taken, self.pairs, self.end = 0, pairs, time.perf_counter() + (1e9 if pairs else seconds)

    def over(self) -> bool:
        return time.perf_counter() >= self.end or bool(self.pairs and self.taken > self.pairs)


async def loaded(port: int, clients: int, load: Load, pid: int) -> list[int]:
    """Let clients work until the end; return the memory of the server on the way, in MB."""
    loop = asyncio.get_running_loop()
    made = [
        await loop.create_connection(lambda name=i: Asking(port, name, load), "127.0.0.1", port) for i in range(clients)
    ]
    memory, step = [], max(1, load.pairs // 10)
    while not all(transport.is_closing() for transport, _ in made):
        await asyncio.sleep(0.05)
        if load.pairs and len(load.latencies) // 2 >= step * (len(memory) + 1):
            memory.append(resident(pid))
    return memory


def processes(pid: int) -> list[int]:
    """Return a process and those that it has begun."""
    begun = [one.read_text().split() for one in Path(f"/proc/{pid}/task").glob("*/children")]
    return [pid, *(int(one) for each in begun for one in each)]


def resident(pid: int) -> int:
    """Return the memory of a server, in MB."""
    fields = [Path(f"/proc/{one}/status").read_text().partition("VmRSS:")[2].split() for one in processes(pid)]
    return sum(int(one[0]) for one in fields) // 1024


def worked(pid: int) -> Any:
    """Return the processor seconds of each process of a server so far."""
    fields = [Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split() for one in processes(pid)]
    return np.array([int(one[11]) + int(one[12]) for one in fields]) / os.sysconf("SC_CLK_TCK")


def measured(kind: str, options: argparse.Namespace) -> dict[str, Any]:
    """Return pairs a second and percentiles of one server, in milliseconds."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        server = multiprocessing.get_context("spawn").Process(target=SERVERS[kind], args=(port, folder), daemon=True)
        server.start()
        while True:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                time.sleep(0.1)
        pid = server.pid or 0
        uvloop.run(loaded(port, options.clients, Load(3.0, 0), pid))  # compiles, and fills what has a window
        # With other ids: those of before are known.
        most = options.pairs if kind in ("venn", "mounted") else 0
        load, start = Load(options.seconds, most, "m"), time.perf_counter()
        before, work, own = resident(pid), worked(pid), time.process_time()
        memory = uvloop.run(loaded(port, options.clients, load, pid))
        took = time.perf_counter() - start
        after, work, own = resident(pid), worked(pid) - work, time.process_time() - own
        server.kill()
        server.join()
    times = np.array(load.latencies) * 1e3
    pairs = len(times) / 2
    found = {
        "pairs_a_second": round(pairs / took), "p50_ms": round(float(np.percentile(times, 50)), 1),
        "p99_ms": round(float(np.percentile(times, 99)), 1), "cpu_ms_a_pair": np.round(1e3 * work / pairs, 3).tolist(),
        "client_cpu_ms_a_pair": round(1e3 * own / pairs, 3), "mb": [before, after],
    }  # fmt: skip
    return found | ({"mb_on_the_way": memory} if memory else {})


def online(seconds: float) -> dict[str, float]:
    """Return pairs a second, and their processor time, of the same model and journal, without a server."""
    import venn

    X, y = examples(ROWS, 2)
    with (
        tempfile.TemporaryDirectory() as folder,
        venn.Online(venn.Forecaster(scorer=forest()), journal=f"{folder}/run.db") as run,
    ):
        done, end, start, work = -1000, 0.0, 0, 0.0
        while done < 0 or time.perf_counter() < end:
            rows = [place % ROWS for place in range(done + 1000, done + 1032)]
            with run.transaction():
                for i in rows:
                    run.ask(X[i].tolist())
                    run.answer(run.asked, y[i])
            done += 32
            if end == 0.0 and done >= 0:
                end, start, work = time.perf_counter() + seconds, done, time.process_time()
        pairs = done - start
        cpu = 1e3 * (time.process_time() - work) / pairs
        return {"pairs_a_second": round(pairs / seconds), "cpu_ms_a_pair": round(cpu, 2)}


@command(threads=None)
def main():
    options = command_options(__doc__, clients=32, seconds=8.0, pairs=0, servers=",".join(SERVERS))
    found: dict[str, Any] = {kind: measured(kind, options) for kind in options.servers.split(",")}
    if "venn" in found:
        found["online"] = online(options.seconds)
        rival = found.get("fastapi", {}).get("pairs_a_second")
        found["ratio_to_fastapi"] = round(found["venn"]["pairs_a_second"] / rival, 2) if rival else None
        found["ratio_to_online"] = round(found["venn"]["pairs_a_second"] / found["online"]["pairs_a_second"], 2)
    return {"benchmark": "serve", "clients": options.clients, **found}
