"""Compare what two checkouts of the project answer: each run below must be equal to the last bit.

    python -m tools.same ../before .            # all runs: three minutes
    python -m tools.same ../before . diabetes   # those whose names contain a text
    python -m tools.same ../before kept.json    # keep what a checkout answers, to compare others with the file
    python -m tools.same kept.json .

Each run is made in a process of its own with the checkout in front on the path, in its own folder, and prints what it
answered, floats as hexadecimal digits do. Runs that only one of them can make, as of a predictor that has left, are
named. The exit code is 1 if a run differs.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ONLINE = (
    "run --source {source} --shuffle 0 --steps {steps} --delay 5 --missing .05 --quiet --journal run.db --out out.jsonl"
)
PREDICTORS = (
    "abers,leave_one_out,venn,platt,binning,isotonic,beta_calibration,temperature,conformal,conformal_by_class",
    "inductive,inductive_abers,inductive_conformal,inductive_conformal_by_class,adaptive,inductive_adaptive",
)
NUMBERS = "distribution,intervals,inductive_distribution,adaptive_intervals,inductive_adaptive_intervals"


def commands() -> dict[str, str]:
    """Return the runs of the command line, by name."""
    runs = {
        f"{source} {names}": ONLINE.format(source=source, steps=steps) + f" --kernel rbf --predictors {names}"
        for source, steps in (("car", 260), ("breast_cancer", 160))
        for names in PREDICTORS
    }
    online = ONLINE.format(source="car", steps=300)
    runs["car scaled"] = online + " --kernel rbf --scale --predictors abers,leave_one_out,conformal,inductive_abers"
    runs["car window"] = online + " --kernel rbf --window 60 --restart-on-alarm --keep 20"
    runs["car window scaled"] = online + " --kernel rbf --window 60 --scale"
    runs["car groups"] = online + " --kernel rbf --groups safety --predictors abers,conformal"
    runs["car linear"] = online + " --kernel linear --predictors abers,conformal"
    runs["car poly"] = online + " --kernel poly --predictors leave_one_out"
    runs["car forecaster"] = online
    numbers = ONLINE.format(source="diabetes", steps=200)
    runs["diabetes numbers"] = f"{numbers} --kernel rbf --predictors {NUMBERS}"
    runs["diabetes default"] = numbers
    runs["diabetes window"] = numbers + " --kernel rbf --window 60 --predictors distribution"
    runs["diabetes scaled"] = numbers + " --kernel rbf --scale --predictors distribution,intervals"
    runs["replay car"] = "replay car --json --no-progress --steps 300 --out replay"
    runs["replay breast_cancer"] = "replay breast_cancer --json --no-progress --steps 200 --out replay --scale"
    runs["replay diabetes"] = "replay diabetes --json --no-progress --steps 200 --out replay"
    return runs


MACHINES = """
import itertools, streams, venn
stream = streams.load("car", shuffle=0)
data = list(itertools.islice(stream, 160))
classes = stream.classes
from venn import machines, taxonomies, nonconformity, predictors
def made(machine):
    yield venn.TransductiveVennAbers(machine)
    yield venn.TransductiveVenn(machine, venn.Argmax())
    yield venn.Conformal(machine)
for machine in (
    venn.LeastSquaresSVM(venn.RBF(.5), C=10., classes=classes),
    venn.LeastSquaresSVM(venn.RBF("auto"), C=2., classes=classes),
    venn.OneVsAllSVM(venn.RBF(.1), C=10., classes=classes),
):
    models = list(made(machine))
    for x, y in data[:90]:
        for model in models:
            say(model.predict_one(x))
        models[0].learn_one(x, y) if hasattr(models[0], "learn_one") else machine.learn_one(x, y)
    if not isinstance(machine, venn.OneVsAllSVM):
        machine.unlearn_one(3)
        machine.unlearn_one(40)
    for x, y in data[90:110]:
        for model in models:
            say(model.predict_one(x))
"""

FORECASTER = """
import itertools, streams, venn
stream = streams.load("breast_cancer", shuffle=0)
data = list(stream)[:330]
model = venn.Forecaster(stream.classes, transductive=200, last=400)
for x, y in data:
    p = model.predict_one(x)
    say(p.proba, p.intervals, p.set(.1))
    model.learn_one(x, y)
print(model.verdict())
"""

GIVEN = """
import numpy as np, streams, venn
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
stream = streams.load("breast_cancer", shuffle=0)
rows = np.array([x for x, _ in stream]); labels = np.array([y for _, y in stream])
for clf in (RandomForestClassifier(20, random_state=0), LogisticRegression(max_iter=5000)):
    clf.fit(rows[:200], labels[:200])
    model = venn.Forecaster(stream.classes, scorer=clf)
    for x, y in zip(rows[200:400], labels[200:400]):
        p = model.predict_one(x)
        say(p.proba, p.intervals, p.set(.1))
        model.learn_one(x, y)
    print(model.verdict())
"""

ADAPTERS = """
import numpy as np, streams, venn, warnings
from sklearn.ensemble import RandomForestClassifier
from sklearn.naive_bayes import GaussianNB
from venn.adapters import VennAbersCalibrator, ForecasterClassifier, ConformalRegressor
stream = streams.load("breast_cancer", shuffle=0)
rows = np.array([x for x, _ in stream]); labels = np.array([y for _, y in stream])
for model in (VennAbersCalibrator(GaussianNB()), ForecasterClassifier()):
    model.fit(rows[:150], labels[:150])
    say(model.predict_proba(rows[150:200]))
from sklearn.datasets import load_diabetes
x, y = load_diabetes(return_X_y=True)
model = ConformalRegressor().fit(x[:150], y[:150])
say(model.predict(x[150:170]))
"""

PROGRAMS = {"machines": MACHINES, "forecaster": FORECASTER, "given": GIVEN, "adapters": ADAPTERS}

SAY = """
import warnings; warnings.simplefilter("ignore")
import numpy as _np
_np.set_printoptions(floatmode="unique", threshold=10**9, linewidth=10**9)
def _plain(thing):
    if hasattr(thing, "lower") and hasattr(thing, "upper"):
        return [_plain(thing.lower), _plain(thing.upper)]
    for name in ("proba", "p_values", "intervals"):
        if hasattr(thing, name) and not callable(getattr(thing, name)):
            return _plain(getattr(thing, name))
    if isinstance(thing, _np.ndarray):
        return thing.tolist()
    if isinstance(thing, float):
        return thing.hex()
    return thing
def say(*things):
    print(*(repr(_plain(thing)) for thing in things))
"""


def answered(checkout: Path, name: str) -> str | None:
    """Return what one run answered, or None if the checkout cannot make it."""
    python = checkout / ".venv-test/bin/python"
    environment = {**os.environ, "PYTHONPATH": str(checkout), "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
    with tempfile.TemporaryDirectory() as folder:
        words = ["-m", "venn", *commands()[name].split()] if name in commands() else ["-c", SAY + PROGRAMS[name]]
        found = subprocess.run(
            [python if python.exists() else sys.executable, *words],
            cwd=folder, env=environment, capture_output=True, text=True,
        )  # fmt: skip
        # A run ends with 3 where an alarm rang.
        if found.returncode not in (0, 3):
            print(f"    {checkout}: {name}: {found.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
            return None
        out = Path(folder, "out.jsonl")
        said = out.read_text() if out.exists() else found.stdout
    if name.startswith("replay"):
        document = json.loads(said)
        for timed in ("seconds", "out", "files", "figures", "memory"):
            document.pop(timed, None)
        said = json.dumps(document)
    return said


def digests(place: str, names: list[str]) -> Iterator[str | None]:
    """Return the digest of each run, made in a checkout or kept in a file."""
    kept = json.loads(Path(place).read_text()) if Path(place).is_file() else None
    for name in names:
        said = answered(Path(place).resolve(), name) if kept is None else kept.get(name)
        yield said if said is None or kept is not None else hashlib.sha256(said.encode()).hexdigest()


def main(before: str, after: str, part: str = "") -> int:
    """Print one line for each run, and return 1 if one differs."""
    names = [name for name in (*commands(), *PROGRAMS) if part in name]
    if after.endswith(".json") and not Path(after).exists():
        Path(after).write_text(json.dumps(dict(zip(names, digests(before, names), strict=True)), indent=1) + "\n")
        return 0
    differ = 0
    for name, one, other in zip(names, digests(before, names), digests(after, names), strict=True):
        if one is None or other is None:
            print(f"{'nobody' if one == other else 'only ' + (before if other is None else after)}: {name}", flush=True)
            continue
        print(f"{'equal' if one == other else 'DIFFERENT'}: {name}, {other[:12]}", flush=True)
        differ += one != other
    return int(differ > 0)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
