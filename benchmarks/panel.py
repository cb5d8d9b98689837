"""How much does a panel of five predictors on one machine cost, against one of them alone?

    python benchmarks/panel.py --data car --gamma 0.1 --C 10

Alone: `TransductiveVenn` over the whole replay, prediction and learning, no panel. The panel: the same with a
conformal predictor and Platt, binning and isotonic scaling, all on one machine. Each of these four is also timed
with Venn alone, in a panel of two.

Every replay runs to the end, all of them in turn by `--chunk` examples, so that other work of the computer affects
all alike; seconds are processor time in one thread, compilation excluded. The median of `--repeat` such rounds
counts, for ratios too. Prints one JSON line; a reader's microseconds are those that it adds to a step.
"""

from __future__ import annotations

import gc
import json
import time
from statistics import median

from threadpoolctl import threadpool_limits
from workload import options, stream_of

import venn
from venn.nonconformity import Margin
from venn.predictors.transductive import Conformal

READERS = {
    "conformal": lambda machine: Conformal(machine, Margin(leave_one_out=False)),
    "platt": lambda machine: venn.ScoreCalibrator(machine, venn.maps.Platt()),
    "binning": lambda machine: venn.ScoreCalibrator(machine, venn.maps.Binning()),
    "isotonic": lambda machine: venn.ScoreCalibrator(machine, venn.maps.Isotonic()),
}


def alone(machine):
    """Return Venn alone."""
    return venn.TransductiveVenn(machine, venn.Argmax())


def panel(*readers):
    """Return what makes a panel of Venn and the readers named."""
    return lambda machine: venn.Panel(venn=alone(machine), **{name: READERS[name](machine) for name in readers})


CONTENDERS = {"venn": alone, "panel": panel(*READERS)} | {name: panel(name) for name in READERS}


def round_of(stream, gamma, C, chunk):
    """Return the seconds of each contender's whole replay."""
    models = {name: make(venn.OneVsAllSVM(venn.RBF(gamma), C, stream.classes)) for name, make in CONTENDERS.items()}
    seconds = dict.fromkeys(models, 0.0)
    examples = list(stream)
    gc.collect()
    for start in range(0, len(examples), chunk):
        for name, model in models.items():
            before = time.process_time()
            for x, y in examples[start : start + chunk]:
                model.predict_one(x)
                model.learn_one(x, y)
            seconds[name] += time.process_time() - before
    return seconds


def main():
    parser = options(__doc__, gamma=0.1)
    parser.add_argument("--chunk", type=int, default=32, help="examples of one replay before it is the next one's turn")
    parser.add_argument("--repeat", type=int, default=5)
    args = parser.parse_args()
    stream = stream_of(args)
    with threadpool_limits(1):
        round_of(stream.take(60), args.gamma, args.C, args.chunk)  # compilation
        rounds = [round_of(stream, args.gamma, args.C, args.chunk) for _ in range(args.repeat)]
    n = len(stream)
    ratios = [seconds["panel"] / seconds["venn"] for seconds in rounds]
    line = {
        "data": args.data, "n": n, "classes": len(stream.classes), "gamma": args.gamma, "C": args.C,
        "venn_seconds": round(median(seconds["venn"] for seconds in rounds), 3),
        "panel_seconds": round(median(seconds["panel"] for seconds in rounds), 3),
        "ratio": round(median(ratios), 3), "ratio_all": [round(ratio, 3) for ratio in ratios],
    }  # fmt: skip
    for name in READERS:
        added = [seconds[name] - seconds["venn"] for seconds in rounds]
        line[f"{name}_microseconds"] = round(1e6 * median(added) / n, 1)
        line[f"ratio_{name}"] = round(median(seconds[name] / seconds["venn"] for seconds in rounds), 3)
    print(json.dumps(line))


if __name__ == "__main__":
    main()
