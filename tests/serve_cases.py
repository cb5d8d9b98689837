"""Served models for tests: a small one behind a real server, and what a client gets of it."""

import re
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import httpx
import numpy as np

import venn
from venn.show.server import serving

CLASSES = ("no", "yes")


class Threshold:
    """A fitted classifier of two columns, which refuses some objects in ways of its own."""

    classes_ = np.array(CLASSES)

    def predict_proba(self, X):
        X = np.asarray(X, float)
        if (X == 666).any():
            raise KeyError("no such key")
        p = 1 / (1 + np.exp(-np.clip(X[:, 0], -30, 30)))
        return np.column_stack([1 - p, p])

    def __repr__(self):
        return "Threshold()"


def forecaster():
    return venn.Forecaster(scorer=Threshold())


def conformal():
    return venn.Conformal(venn.LeastSquaresSVM(venn.RBF(0.5), 1.0, CLASSES))


def panel():
    machine = venn.LeastSquaresSVM(venn.RBF(0.5), 1.0, CLASSES)
    return venn.Panel(conformal=venn.Conformal(machine), abers=venn.TransductiveVennAbers(machine))


def numbers():
    return venn.predictors.ConformalIntervals(venn.KernelRidge(venn.RBF(0.5), C=1.0))


@contextmanager
def served(path, model=None, **options):
    """Give a client of a served model, and the model; at the end all is closed."""
    guard = {name: options.pop(name) for name in ("token", "root", "say") if name in options}
    with (
        venn.serve(model or forecaster(), path, **options) as app,
        serving(app.routes, "127.0.0.1", 0, **guard) as port,
        httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client,
    ):
        yield client, app


def begun_by(pid):
    """Return the processes that a process has begun, on Linux."""
    return [int(one) for each in Path(f"/proc/{pid}/task").glob("*/children") for one in each.read_text().split()]


@contextmanager
def process(folder, *options):
    """Give a process of the command that serves, and the address that it says."""
    program = [sys.executable, "-u", "-m", "venn", "serve", *map(str, options)]
    with subprocess.Popen(program, cwd=folder, stderr=subprocess.PIPE, text=True) as made:
        try:
            for line in made.stderr:
                if found := re.search(r"serves .* at (http\S+)/docs", line):
                    made.address = found[1]
                    break
            yield made
        finally:
            made.kill()
