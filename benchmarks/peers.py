"""How do we compare with other libraries, on the same streams, and what does each do with awkward input?

    pip install -e '.[peers]'
    python benchmarks/peers.py > rows.jsonl                              # ten minutes of one core
    pip install --no-deps torchcp; pip install torch                     # it is not among the peers: it is large
    python benchmarks/peers.py --quick                                   # a trial, of everything a little

online-cp, venn-abers, crepes, MAPIE, river, scikit-learn and TorchCP do the jobs that they can do, and so do we, on the
same examples in the same order with the same settings, prequentially if they can: predict, then learn the label. Each
contender runs in its own process, after a short run that compiles and is not counted. Prints one JSON line for each
row: seconds of the processor, peak memory, losses, accuracy, width, how far a guarantee was missed in units of its
bound (above 1 is evidence against validity), errors of sets with the limits of chance, and the largest difference from
a row that is the same by definition. Then the traps: ties, odd labels, NaN, a data frame, and so on. A library that is
not installed gets a row that says so, as does a job longer than `--longest` seconds.
"""

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

sys.path.insert(0, str(Path(__file__).parent))
from side_by_side.jobs import JOBS
from side_by_side.measure import figures, forget_peak, resident
from side_by_side.tasks import READ, Task, read
from side_by_side.traps import LIBRARIES, cells

WARM = 40  # steps of the run that is not counted
LONGEST = 300.0  # seconds of the processor


def versions():
    """Return the version of each distribution, or None if it is not installed."""
    found = {}
    for name in ("vennstream", *LIBRARIES[1:], "torchcp", "numpy", "numba"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = None
    return found


def planned(quick, wanted):
    """Yield job, stream and contender, one after the other; streams are read here, once for all contenders."""
    for name, job in JOBS.items():
        if not re.search(wanted, name):
            continue
        generated = [data for data in job.streams if data.startswith("gaussians")] or ["gaussians, 2 classes"]
        for data in generated[:1] if quick else job.streams:
            n = size_of(job, data, quick).total
            if (data, n) not in READ:
                # In a separate process too: memory left from reading would be reused, and not counted.
                why, found = apart(read, (data, n), LONGEST)
                if why is None:
                    READ[data, n] = found
            for contender in job.contenders:
                yield name, data, contender


def one(name, data, contender, quick):
    """Run one contender; return its row and its answers at each step."""
    job = JOBS[name]
    size = size_of(job, data, quick)
    warm = Task(data, size, part=min(WARM, size.steps))
    contender.make(warm).run(warm)
    task = Task(data, size)
    task.fit_scorer()  # before the clock starts
    subject = contender.make(task)
    before = resident("VmRSS") if forget_peak() else None
    seconds, said = subject.run(task)
    row = {"gamma": task.gamma, "C": task.C, "steps": len(task.y), "classes": len(task.classes), "seconds": seconds}
    row["grown_mb"] = None if before is None else resident("VmHWM") - before
    return row | figures(said, task, job.fixed), said


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
    context = multiprocessing.get_context("fork")
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


def differences(mine, other):
    """Return how far answers are from those of the contender that is the same by definition."""
    # Rows and pairs are what is claimed; a point forecast only where there is nothing else.
    name = next((name for name in ("rows", "pairs", "p", "proba") if name in mine and name in other), None)
    if name is None:
        return {}
    most = np.abs(mine[name] - other[name]).reshape(len(mine[name]), -1).max(axis=1)
    return {"differs_max": float(most.max()), "differs_share": float((most > 1e-6).mean())}


def lines(args):
    """Run all that is planned; yield one line for each."""
    found, said = versions(), {}
    yield {"versions": found, "date": datetime.date.today().isoformat(), "quick": args.quick}
    for name, data, contender in planned(args.quick, args.jobs):
        line = {"job": name, "data": data, "library": contender.library, "title": contender.title}
        needs = {contender.library, "river" if "river" in contender.title else "ours"} - {"ours"}
        if any(found[library] is None for library in needs):
            yield line | {"reason": "not installed"}
            continue
        reason, value = apart(one, (name, data, contender, args.quick), args.longest)
        if reason:
            yield line | {"reason": reason}
            continue
        row, said[name, data, contender.title] = value
        same = said.get((name, data, contender.same))
        yield line | row | (differences(value[1], same) if same else {})
    for library in LIBRARIES if re.search(args.jobs, "traps") else ():
        missing = library != "ours" and found[library] is None
        what = {"reason": "not installed"} if missing else {"cells": apart(cells, (library,), args.longest)[1]}
        yield {"job": "traps", "library": library, **what}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", default="", metavar="PATTERN", help="only jobs whose name matches")
    parser.add_argument("--quick", action="store_true", help="a trial: 30 steps of generated streams")
    parser.add_argument("--longest", type=float, default=LONGEST, metavar="SECONDS", help="of one contender")
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for line in lines(parser.parse_args()):
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
