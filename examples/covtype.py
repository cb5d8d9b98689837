"""
A classifier was trained on equally many examples of each class. What if half of them are of one class in use?
==============================================================================================================

Cawley & Talbot trained pairs of support vector machines on 1620 places of each of seven forest cover types and tested
them on the other 565 892 places of Forest Cover Type, where Lodgepole Pine is 280 times as frequent as Cottonwood. This
is their experiment, without and with weights by class, and then the whole file as a stream through an inductive Venn
predictor that keeps few examples of frequent classes: its claims, with and without weights, and what came true::

    python examples/covtype.py            # runs/covtype.md and runs/covtype.png
    python examples/covtype.py --quick    # a few thousand rows, into runs/

Results are kept in a folder; after an interruption the same command continues where it stopped. The data are read
from the folder in ``$STREAMS_DATA``, or downloaded.
"""

import argparse
import resource
import time
from pathlib import Path

from covtype_study import protocol, stream, tables
from covtype_study.published import NAMES
from studies import script
from studies.document import written
from studies.store import Store
from threadpoolctl import threadpool_limits

import streams
from venn.shifts import PriorShift

SEED = 1999  # of the file's first description


def arguments(given=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few rows, small grids")
    parser.add_argument("--jobs", type=int, default=2, help="threads that train pairs and score rows")
    parser.add_argument("--cache", type=Path, default=Path("runs/covtype"), help="folder of kept results")
    parser.add_argument("--out", type=Path, default=Path("runs"), help="folder of tables and figure")
    args = parser.parse_args(given)
    return args


def computed(args, size, step):
    """Return the arguments of `tables.document`, and processor seconds by part."""
    store = Store(args.cache)
    read = store.of("covtype-set", {"stage": "set"}, load)
    X, y = read["X"].astype(float), read["y"].astype(int)
    parts = protocol.published_parts(y, size, SEED)
    seconds = {"read the file": float(read["seconds"])}
    runs = {}
    for name, shift in protocol.shifts(y, parts).items():
        runs[name] = protocol.done(name, X, y, parts, shift, size, args.jobs, store, step)
        seconds[f"{name}: choose and train"], seconds[f"{name}: score"] = runs[name].seconds
    drawn = protocol.drawn_parts(y, size, SEED)
    shift = PriorShift(protocol.BALANCED, tables.published.PRIORS)
    scorer = protocol.done("stream", X, y, drawn, shift, size, args.jobs, store, step)
    seconds["stream: choose and train"], seconds["stream: score"] = scorer.seconds
    labels = y[drawn.rest]
    start = time.process_time()
    step("stream: predict and count")
    replayed = stream.replayed(scorer.scores, labels, SEED)
    seconds["stream: predict and count"] = time.process_time() - start
    start = time.process_time()
    step("stream: segments")
    means = stream.experiments(scorer.scores, labels, SEED, size.segment)
    seconds["stream: segments"] = time.process_time() - start
    found, sizes = [stream.bounds(one) for one in means], (means.shape[1], size.segment)
    early = stream.beginning(drawn.rest, scorer.scores, labels)
    step("done")
    return (runs, y[parts.rest], replayed, labels, found, sizes, early), seconds


def load():
    """Read the file; its numbers are integers."""
    one = streams.load("covtype", scale=False)
    return {"X": one.X.astype("int16"), "y": one.y.astype("int8")}


def main(given=None):
    args = arguments(given)
    size = protocol.QUICK if args.quick else protocol.WHOLE
    start = time.perf_counter()
    with script.bar(args.cache, width=40) as step, threadpool_limits(1):
        results, seconds = computed(args, size, step)
    runs, truth, replayed, labels, found, _, _ = results
    for name, run in runs.items():
        matrix, paper = run.confusion(truth), tables.PAPER[name][1]
        scores = tables.published.accuracy(matrix), tables.published.mean_recall(matrix)
        print(f"{name:26} accuracy {scores[0]:.4f} (paper {paper:.4f}), mean recall {scores[1]:.4f}")
    hits = (replayed.index == labels).mean()
    for way, name in enumerate(stream.WAYS):
        lower, upper = replayed.lower[way].mean(), replayed.upper[way].mean()
        off = [
            one
            for one, (_, low, high) in zip((*NAMES, "the predicted class"), found[way], strict=True)
            if not low <= 0 <= high
        ]
        verdict = "no departure found" if not off else f"departs for {', '.join(off)}"
        print(f"stream, {name:10} accuracy {hits:.4f}, claimed {lower:.4f} to {upper:.4f}: {verdict}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    clock = time.perf_counter() - start
    print(
        f"{sum(seconds.values()):.0f} s of the processor in all, now {clock:.0f} s by the clock; {peak:.1f} GB at most"
    )
    lines = tables.document(*results)
    costs = [(part, f"{spent:.1f}") for part, spent in seconds.items()]
    lines += ["", "## Seconds of the processor", "", *tables.table(("part", "s"), costs)]
    lines += ["", f"Memory of the last run: {peak:.1f} GB at most."]
    written(args.out / "covtype.md", lines, "examples/covtype.py", "Forest Cover Type, whole")
    print(f"tables: {args.out / 'covtype.md'}")
    script.figure("covtype_study.figure", args.out / "covtype.png", replayed, labels)


if __name__ == "__main__":
    main()
# %%
# It takes four minutes on two cores, so it does not run here. :doc:`Its results </studies>`:
#
# .. image:: /covtype.png
#    :alt: What was claimed of the predicted class and how often it was right, with weights by class and without
#
# sphinx_gallery_thumbnail_path = '../docs/covtype.png'
