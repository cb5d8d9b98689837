"""How do we compare with other libraries, on the same streams, and what does each do where things go wrong?

    pip install -e '.[peers]'
    python benchmarks/peers.py --markdown runs/peers.md > rows.jsonl     # ten minutes of one core
    pip install --no-deps torchcp; pip install torch                        # it is not among the peers: it is large
    python benchmarks/peers.py --quick                                   # a trial, of everything a little
    python benchmarks/peers.py --from rows.jsonl --markdown runs/peers.md   # the page anew, nothing run

online-cp, venn-abers, crepes, MAPIE, river and scikit-learn do the jobs that they can do, and so do we, on the same
examples in the same order with the same settings, prequentially if they can: predict, then learn the label. Each
contender runs in its own process, after a short run that compiles and is not counted. Prints one JSON line for
each row: seconds of the processor, peak memory, losses, accuracy, width, how far a guarantee was missed in units
of its bound, errors of sets with the limits of chance. Then the traps: the answers to ties, one class only, NaN,
odd labels, a data frame, and so on; a cell is the result when the script ran. A library that is not installed gets a
row that says so, as does a job longer than `--longest` seconds. Data sets are read from $STREAMS_DATA or generated.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import multiprocessing
import re
import resource
import signal
import sys
import warnings
from importlib import metadata
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).parent.parent / "examples"))
sys.path.insert(0, str(Path(__file__).parent))
from side_by_side.capital import MARTINGALES, capital_row
from side_by_side.jobs import JOBS
from side_by_side.measure import figures, forget_peak, resident
from side_by_side.page import page
from side_by_side.tasks import READ, Task, read
from side_by_side.traps import LIBRARIES, cells
from studies.document import written

WARM = 40  # steps of the run that is not counted
REPLAYS, STEPS = 100, 400  # of martingales
LONGEST = 300.0  # seconds of the processor


def versions():
    """Return the version of each distribution, or None if it is not installed."""
    found = {}
    for name in ("vennstream", *(name for name in LIBRARIES if name != "ours"), "torchcp", "numpy", "numba"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = None
    return found


def machine():
    """Return processor model and Python version."""
    models = (
        re.findall(r"model name\s*: (.*)", cpuinfo.read_text()) if (cpuinfo := Path("/proc/cpuinfo")).exists() else []
    )
    return {"processor": models[0] if models else "unknown", "python": sys.version.split()[0]}


def planned(quick, wanted):
    """Yield the runs, one after the other, as plain data; streams are read here, once for all contenders."""
    for job in JOBS:
        if not re.search(wanted, job.name):
            continue
        generated = [data for data in job.streams if data.startswith("gaussians")] or ["gaussians, 2 classes"]
        for data in generated[:1] if quick else job.streams:
            n = size_of(job, data, quick).total
            if (data, n) not in READ:
                # In a separate process too: memory left from reading would be reused, and not counted.
                found = apart(read, (data, n), LONGEST)
                if found[0] is None:
                    READ[data, n] = found[1]
            for contender in job.contenders:
                yield {"job": job.name, "data": data, "library": contender.library, "title": contender.title}
    if re.search(wanted, "martingales"):
        for library, title, _ in MARTINGALES:
            yield {"job": "martingales", "data": "", "library": library, "title": title}
    if re.search(wanted, "traps"):
        for library in LIBRARIES:
            yield {"job": "traps", "data": "", "library": library, "title": ""}


def contender_of(plan):
    """Return the job and the contender that a plan names."""
    job = next(job for job in JOBS if job.name == plan["job"])
    return job, next(one for one in job.contenders if (one.library, one.title) == (plan["library"], plan["title"]))


def one(plan, quick):
    """Run one contender; return its row and its answers at each step."""
    if plan["job"] == "traps":
        return {"cells": cells(plan["library"])}, {}
    if plan["job"] == "martingales":
        path = next(
            path for library, title, path in MARTINGALES if (library, title) == (plan["library"], plan["title"])
        )
        return capital_row(path, *((8, 100) if quick else (REPLAYS, STEPS))), {}
    job, contender = contender_of(plan)
    size = size_of(job, plan["data"], quick)
    warm = Task(plan["data"], size, part=min(WARM, size.steps))
    contender.make(warm).run(warm)
    task = Task(plan["data"], size)
    task.fit_scorer()  # before the clock starts
    subject = contender.make(task)
    before = resident("VmRSS") if forget_peak() else None
    seconds, said = subject.run(task)
    row = {"gamma": task.gamma, "C": task.C, "steps": len(task.y), "classes": len(task.classes), "seconds": seconds}
    row["grown_mb"] = None if before is None else resident("VmHWM") - before
    return row | figures(said, task, contender.fixed), said


def size_of(job, data, quick):
    """Return how much of a stream a job takes."""
    size = job.streams.get(data) or next(iter(job.streams.values()))
    return size.quick() if quick else size


def send(pipe, function, arguments, longest):
    """Call a function in this process and send its outcome to the parent: a reason, if it failed, and a value."""
    if hasattr(signal, "SIGXCPU"):
        resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(longest), resource.RLIM_INFINITY))
    try:
        pipe.send((None, function(*arguments)))
    except Exception as error:  # a failing contender must not stop the others
        pipe.send((f"{type(error).__name__}: {error}"[:160], None))


def apart(function, arguments, longest):
    """Return why a function failed, or None, and its result; it runs in a separate process."""
    context = multiprocessing.get_context("fork" if "fork" in multiprocessing.get_all_start_methods() else "spawn")
    here, there = context.Pipe(duplex=False)
    child = context.Process(target=send, args=(there, function, arguments, longest))
    child.start()
    there.close()
    try:
        return here.recv()
    except EOFError:
        child.join()
        stopped = child.exitcode == -getattr(signal, "SIGXCPU", 0)
        return (f"longer than {longest:g} s" if stopped else f"ended with exit code {child.exitcode}"), None
    finally:
        child.join()


def missing(plan, found):
    """Return whether a plan needs something that is not installed."""
    needs = {plan["library"]} - {"ours"}
    if "river" in plan["title"]:
        needs.add("river")
    return any(found[name] is None for name in needs)


def differences(plan, row, said):
    """Add the differences from the answers of the contender that is the same by definition."""
    if plan["job"] in ("martingales", "traps") or "seconds" not in row:
        return
    job, contender = contender_of(plan)
    other = next((one for one in job.contenders if one.title == contender.same), None)
    mine = said[plan["data"], contender.library, contender.title]
    its = said.get((plan["data"], other.library, other.title)) if other else None
    # Rows and pairs are what is claimed; a point forecast only where there is nothing else.
    name = next((name for name in ("rows", "pairs", "p", "proba") if its and name in mine and name in its), None)
    if name:
        most = np.abs(mine[name] - its[name]).reshape(len(mine[name]), -1).max(axis=1)
        row["differs_max"], row["differs_share"] = float(most.max()), float((most > 1e-6).mean())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the tables into this page")
    parser.add_argument("--from", type=Path, metavar="ROWS", dest="rows", help="take the rows from this file")
    parser.add_argument("--jobs", default="", metavar="PATTERN", help="only jobs whose name matches")
    parser.add_argument("--quick", action="store_true", help="a trial: 30 steps of generated streams")
    parser.add_argument(
        "--longest", type=float, default=LONGEST, metavar="SECONDS", help="of the processor, for one contender"
    )
    args = parser.parse_args()
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lines = [json.loads(line) for line in args.rows.read_text().splitlines()] if args.rows else list(run(args))
    if args.markdown:
        written(args.markdown, page(lines), "benchmarks/peers.py", "Side by side with peers")


def run(args):
    """Run all that is planned; print and yield one line for each."""
    found = versions()
    head = {"versions": found, **machine(), "date": datetime.date.today().isoformat(), "quick": args.quick}
    print(json.dumps(head), flush=True)
    yield head
    said, of = {}, None
    for plan in planned(args.quick, args.jobs):
        if plan["job"] != of:
            said, of = {}, plan["job"]
        if missing(plan, found):
            row = {"reason": "not installed"}
        else:
            reason, value = apart(one, (plan, args.quick), args.longest)
            row, answers = ({"reason": reason}, {}) if reason else value
            said[plan["data"], plan["library"], plan["title"]] = answers
            differences(plan, row, said)
        line = plan | row
        print(json.dumps(line), flush=True)
        yield line


if __name__ == "__main__":
    main()
