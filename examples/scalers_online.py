"""
Which scaling of SVM scores can I believe when examples come one at a time?
===========================================================================

Rueping (2004) compared scalings by cross-validation. Lambrou, Papadopoulos & Gammerman (2012) drew, for a few of them
and Venn predictors, what was claimed along a stream and how often it was right. Here all scalings stand in one panel,
on car and wine_red and on Rueping's seven public sets, twice: fitted to the training scores of an ordinary SVM, the
published way, and to the exact leave-one-out scores of a least-squares SVM, in which no example influences its own
score::

    python examples/scalers_online.py            # runs/scalers_online.md and runs/scalers_online.png
    python examples/scalers_online.py --quick    # 60 examples of two sets; into runs/

The record of every stream is kept in a folder; after an interruption the same command continues with the stream at
which it stopped. The data are read from the folder in ``$STREAMS_DATA``, or downloaded.
"""

import argparse
import hashlib
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rueping import sets
from rueping.beta import Beta2, BetaScaling
from rueping.maps import Sigma01, SigmaPP, Softmax
from scipy.optimize import isotonic_regression
from studies.document import written
from studies.store import Store

import streams
import venn

EDITION = 1  # raise it when a record would change with the same settings
SHUFFLE, LONGEST, PREFIX, SHARE = 0, 2000, 200, 5
OWN = ("car", "wine_red")
FULL = (*OWN, "diabetes", "liver", "ionosphere", "promoters", "digits", "mushroom", "covtype")
QUICK, QUICK_STEPS = ("car", "breast_cancer"), 60
# gamma and C of each machine on the engine's own sets, as on the command line; elsewhere they are tuned.
SETTINGS = {"car": ((0.1, 10.0), (0.5, 10.0)), "wine_red": ((0.1, 1.0), (0.1, 1.0))}

MAPS = {
    "Platt": venn.maps.Platt(),
    "beta calibration": venn.maps.BetaCalibration(),
    "temperature": venn.maps.Temperature(),
    "Beta-2": Beta2(),
    "Beta": BetaScaling(tuned=True),
    "isotonic, step": venn.maps.Isotonic("step"),
    "isotonic, linear": venn.maps.Isotonic("linear"),
    "Bin-10": venn.maps.Binning(10),
    "Bin-50": venn.maps.Binning(50),
    "Softmax": Softmax(),
    "01": Sigma01(),
    "PP": SigmaPP(),
}
HINGE, SQUARES = "SVM", "least-squares SVM"
SOURCES = {
    "training": venn.predictors.TrainingScores(),
    "leave_one_out": venn.predictors.LeaveOneOutScores(),
    "cross-fitted": venn.predictors.CrossFittedScores(folds=5),
    "held out": venn.predictors.HeldOutScores(venn.schedules.PrefixRestart()),
}
WAYS = {"Training scores": (HINGE, "training"), "Leave-one-out scores": (SQUARES, "leave_one_out")}
VENN = {"Training scores": "Venn", "Leave-one-out scores": "Venn-Abers"}
# Two maps from every source, on both machines where it makes a difference: is it the machine or the source?
BOTH = ("Platt", "isotonic, step")
MORE = ((HINGE, "leave_one_out"), (HINGE, "cross-fitted"), (HINGE, "held out"), (SQUARES, "training"))
BEYOND = 3.29  # deviations that chance exceeds once in a thousand cases
SCRIPT, TITLE = "examples/scalers_online.py", "Scalings of SVM scores along a stream"


def key(name, machine, source):
    """Return the name of a scaler in the panel."""
    return f"{name} / {machine} / {source}"


def panel(hinge, squares):
    """Return all predictors on two machines."""
    machines = {HINGE: hinge, SQUARES: squares}
    predictors = {
        "Venn": venn.TransductiveVenn(hinge, venn.Argmax()),
        "Venn-Abers": venn.TransductiveVennAbers(squares),
    }
    for name, map_ in MAPS.items():
        for machine, source in (*WAYS.values(), *(MORE if name in BOTH else ())):
            predictors[key(name, machine, source)] = venn.ScoreCalibrator(machines[machine], map_, SOURCES[source])
    return venn.Panel(**predictors)


# Streams ---------------------------------------------------------------------------------------------------------


def opened(name, folder):
    """Return the whole stream, shuffled."""
    if name not in sets.PUBLISHED:
        return streams.load(name, shuffle=SHUFFLE)
    data = sets.load(name, Store(folder))
    labels = np.where(data.y == 1, data.positive, data.negative)
    return streams.from_arrays(data.X, labels, name=name, shuffle=SHUFFLE)


def machines(name, stream):
    """Return both machines, their stream, and how many examples were used to choose parameters."""
    if name in SETTINGS:
        hinge, squares = SETTINGS[name]
        makers = (venn.OneVsAllSVM, hinge), (venn.LeastSquaresSVM, squares)
        return [make(venn.RBF(gamma), C, stream.classes) for make, (gamma, C) in makers], stream, 0
    prefix = min(PREFIX, len(stream) // SHARE)
    tuning = venn.tune(stream.take(prefix))
    return [tuning.machine(venn.OneVsAllSVM), tuning.machine()], stream.drop(prefix), prefix


def replayed(name, steps, folder):
    """Return the record of a stream of at most `steps` examples, made now or earlier."""
    settings = EDITION, name, steps, SHUFFLE, PREFIX, SHARE, SETTINGS.get(name), MAPS, SOURCES, WAYS, BOTH, MORE
    path = folder / f"{name}-{hashlib.sha256(repr(settings).encode()).hexdigest()[:16]}.npz"
    if path.exists():
        return venn.Record.load(path)
    stream = opened(name, folder)
    both, stream, prefix = machines(name, stream.take(min(steps, len(stream))))
    print(f"{name}: {len(stream)} examples", flush=True)
    started = time.process_time()
    record = venn.replay(stream, panel(*both))
    record.shuffle = SHUFFLE
    record.data = name
    for title, machine in zip((HINGE, SQUARES), both, strict=True):
        record.parameters[title] = f"{machine.kernel.gamma:.3g}, {machine.C:g}"
    record.parameters |= {"prefix": str(prefix), "processor seconds": f"{time.process_time() - started:.0f}"}
    record.save(path)
    return record


# Results ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fared:
    """The results of one predictor on one stream: means over its steps."""

    accuracy: float
    claimed: float  # probability of the predicted label by the point forecast
    deviations: float  # of claimed - accuracy, in standard deviations that the claims themselves imply
    log_loss: float  # in nats, over the steps with finite loss
    infinite: int  # steps whose true label had probability 0
    brier: float
    lower: float
    upper: float

    @property
    def gap(self):
        """Claimed minus accuracy: positive is too bold."""
        return self.claimed - self.accuracy

    @property
    def outside(self):
        """Distance of the accuracy from a Venn predictor's band, with the sign of `gap`."""
        return max(self.lower - self.accuracy, 0.0) + min(self.upper - self.accuracy, 0.0)

    @classmethod
    def of(cls, record, name):
        """Read a record."""
        curves = record[name]
        steps = curves.per_step
        excess = (steps.confidence - steps.hit).sum()
        variance = (steps.confidence * (1 - steps.confidence)).clip(0).sum()
        # A predictor that is always certain has no deviation; rounding of sums is no departure.
        with np.errstate(divide="ignore"):
            deviations = excess / np.sqrt(variance) if abs(excess) > 1e-9 else 0.0
        possible = steps.probability > 0
        return cls(
            float(curves.accuracy[-1]), float(steps.confidence.mean()), float(deviations),
            float(-np.log(steps.probability[possible]).mean()), int((~possible).sum()), float(curves.brier[-1]),
            float(curves.lower[-1]), float(curves.upper[-1]),
        )  # fmt: skip


def names_of(way):
    """Return the predictors shown for a source of scores: their names in the panel by title."""
    return {VENN[way]: VENN[way]} | {name: key(name, *WAYS[way]) for name in MAPS}


def table(head, rows):
    """Return a Markdown table as lines."""
    lines = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(line) + " |" for line in lines]


def losses(finite, infinite):
    """Return cells for a mean log loss over the steps with finite loss, and the number of the others."""
    return f"∞ ({finite:.3f})" if infinite else f"{finite:.3f}", str(infinite or "")


def summary_table(fared, ways):
    """Return the table over all streams; `fared` by (stream, name), `ways` names by title."""
    rows = []
    for title, name in ways.items():
        of = [one for (_, predictor), one in fared.items() if predictor == name]
        gaps = np.array([one.gap for one in of])
        rows.append([
            title, f"{np.mean([one.accuracy for one in of]):.3f}", f"{np.mean([one.claimed for one in of]):.3f}",
            f"{gaps.mean():+.3f}", f"{np.abs(gaps).mean():.3f}", f"{gaps.max():+.3f}", f"{gaps.min():+.3f}",
            str(sum(one.deviations > BEYOND for one in of)), str(sum(one.deviations < -BEYOND for one in of)),
            *losses(np.mean([one.log_loss for one in of]), sum(one.infinite for one in of)),
            f"{np.mean([one.brier for one in of]):.3f}",
        ])  # fmt: skip
    head = [
        "scaling",
        "accuracy",
        "claimed",
        "claimed − accuracy",
        "mean size of it",
        "most bold",
        "most timid",
        "too bold",
    ]
    return table([*head, "too timid", "log loss (finite steps)", "infinite", "Brier"], rows)


def bands_table(fared, streams_):
    """Return the table of the Venn predictors' claims: bands."""
    rows = []
    for stream in streams_:
        row = [stream]
        for name in VENN.values():
            one = fared[stream, name]
            where = "inside" if one.outside == 0 else f"{one.outside:+.3f}"
            row += [f"{one.accuracy:.3f}", f"[{one.lower:.3f}, {one.upper:.3f}]", where]
        rows.append(row)
    return table(["stream", *(f"{n}: {cell}" for n in VENN.values() for cell in ("accuracy", "band", "outside"))], rows)


def document(records, fared):
    """Return all tables as lines of Markdown."""
    lines = []
    for way, (machine, _) in WAYS.items():
        lines += [f"## {way}, {machine}: means over {len(records)} streams", ""]
        lines += [*summary_table(fared, names_of(way)), ""]
    chosen = {
        f"{name}, {machine}, {source}": key(name, machine, source)
        for name in BOTH
        for machine, source in ((HINGE, "training"), *MORE, (SQUARES, "leave_one_out"))
    }
    lines += ["## Bands of the Venn predictors", "", *bands_table(fared, records), ""]
    return [*lines, "## The machine or the source of its scores?", "", *summary_table(fared, chosen)]


# The figure ------------------------------------------------------------------------------------------------------

# Okabe and Ito's colours, which everybody can distinguish; one for each kind of scaling, and a marker within it.
KINDS = {
    "Venn predictor": ("#000000", ("Venn", "Venn-Abers")),
    "smooth, fitted": ("#0072B2", ("Platt", "beta calibration", "temperature", "Beta-2", "Beta")),
    "steps, fitted": ("#D55E00", ("isotonic, step", "isotonic, linear", "Bin-10", "Bin-50")),
    "fixed within the margin": ("#009E73", ("Softmax", "01", "PP")),
}
COLOURS = {name: colour for colour, names in KINDS.values() for name in names}
UNDRAWN = 8  # the first part of a path, 1 in this many, is not drawn: it only jumps about


def spread_out(heights, apart):
    """Return heights in the same order, at least `apart` from each other, moved as little as possible."""
    order = np.argsort(heights, kind="stable")
    steps = apart * np.arange(len(order))
    places = np.empty(len(order))
    # Least squares under order constraints, once the least distances are taken off.
    places[order] = isotonic_regression(np.asarray(heights)[order] - steps).x + steps
    return places


def paths(record, way):
    """Return by title the accuracy and the claimed probability so far, without their beginning."""
    found = {}
    for title, name in names_of(way).items():
        curves = record[name]
        claimed = curves.per_step.confidence.cumsum() / np.arange(1, len(curves) + 1)
        start = len(curves) // UNDRAWN
        found[title] = curves.accuracy[start:], claimed[start:]
    return found


def points(one, title):
    """Return claimed minus accuracy in percentage points and as text; for bands, the excess and half the width."""
    if title not in VENN.values():
        return 100 * one.gap, f"{100 * one.gap:+.1f}"
    outside = 100 * one.outside
    return outside, f"{f'{outside:+.1f}' if outside else 'in'} ±{50 * (one.upper - one.lower):.0f}"


def draw_paths(axes, record, way, x_limits, y_limits):
    """Draw claimed probability against accuracy along one stream, and name the ends at the right."""
    (left, right), (low, high) = x_limits, y_limits
    ends = (min(left, low), max(right, high))
    axes.fill_between(ends, ends, 1.1, color="#F6EBE2", linewidth=0, zorder=0)
    axes.plot(ends, ends, color="0.35", linewidth=1, linestyle=(0, (4, 3)), zorder=1)
    found = paths(record, way)
    for title, (accuracy, claimed) in found.items():
        front = title == VENN[way]
        axes.plot(accuracy, claimed, color=COLOURS[title], linewidth=1.6 if front else 0.9, alpha=0.9 if front else 0.6)
        axes.plot(accuracy[-1], claimed[-1], "o", color=COLOURS[title], ms=7, markeredgecolor="white", zorder=5)
    curves = record[VENN[way]]
    axes.vlines(curves.accuracy[-1], curves.lower[-1], curves.upper[-1], color="black", linewidth=5, alpha=0.2)
    places = spread_out([claimed[-1] for _, claimed in found.values()], 0.036 * (high - low))
    places -= max(0.0, places.max() - high)
    for (title, (accuracy, claimed)), place in zip(found.items(), places, strict=True):
        axes.annotate(
            f"{title}  {points(Fared.of(record, names_of(way)[title]), title)[1]}", (accuracy[-1], claimed[-1]),
            (right + 0.03 * (right - left), place), color=COLOURS[title], fontsize=8.5, va="center",
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": COLOURS[title], "alpha": 0.35, "lw": 0.7, "shrinkA": 1},
        )  # fmt: skip
    axes.set(xlim=x_limits, ylim=y_limits, xlabel="accuracy so far")
    axes.locator_params(axis="x", nbins=6)
    corner = {"color": "0.35", "transform": axes.transAxes, "zorder": 6}
    axes.text(0.03, 0.97, "claims more than it keeps", va="top", **corner)
    axes.text(0.97, 0.03, "claims less", ha="right", **corner)


def draw_gaps(axes, fared, way, streams_):
    """Draw claimed minus accuracy at the end of every stream, as colours and numbers; for bands, the excess."""
    names = names_of(way)
    gaps = np.empty((len(names), len(streams_)))
    for row, (title, name) in enumerate(names.items()):
        for column, stream in enumerate(streams_):
            one = fared[stream, name]
            gaps[row, column], text = points(one, title)
            clear = abs(one.deviations) > BEYOND and title != VENN[way]
            axes.text(
                column, row, text, ha="center", va="center", fontsize=8, weight="bold" if clear else "normal",
                color="white" if abs(gaps[row, column]) > 8 else "black",
            )  # fmt: skip
    image = axes.imshow(gaps, cmap="PuOr_r", vmin=-15, vmax=15, aspect="auto")
    axes.set_xticks(range(len(streams_)), streams_, rotation=30, ha="right")
    axes.set_yticks(range(len(names)), names)
    for label in axes.get_yticklabels():
        label.set_color(COLOURS[label.get_text()])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    return image


def draw(records, fared, shown, path):
    """Draw the figure: paths along one stream above, the ends of all streams below."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 12), layout="constrained")
    panels = figure.subplots(2, 2, height_ratios=(1.2, 1))
    record = records[shown]
    every = [path for way in WAYS for path in paths(record, way).values()]
    (x_limits, y_limits) = (
        (min(values.min() for values in axis) - 0.01, max(values.max() for values in axis) + 0.03)
        for axis in zip(*every, strict=True)
    )
    for column, (way, (machine, _)) in enumerate(WAYS.items()):
        draw_paths(panels[0, column], record, way, x_limits, y_limits)
        panels[0, column].set_title(f"{way} of the {machine}, along {shown}", loc="left")
        image = draw_gaps(panels[1, column], fared, way, list(records))
        panels[1, column].set_title("Claimed − accuracy at the end of every stream", loc="left")
    panels[0, 0].set_ylabel("probability of the predicted label so far, mean")
    handles = [panels[0, 0].plot([], [], "o-", color=colour, label=kind)[0] for kind, (colour, _) in KINDS.items()]
    figure.legend(handles=handles, loc="outside upper center", ncols=len(handles), frameon=False)
    bar = figure.colorbar(image, ax=panels[1, :], location="bottom", shrink=0.4, aspect=40, extend="both")
    bar.set_label(
        "too timid  ←  percentage points  →  too bold\n"
        "in bold: chance alone would do so once in a thousand\n"
        "Venn predictors claim a band: is the accuracy in it (or how far outside), ± half its width"
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)


def main(given=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_STEPS} examples of {' and '.join(QUICK)}")
    parser.add_argument("--data", nargs="+", choices=FULL, metavar="STREAM", help=f"of {', '.join(FULL)}")
    parser.add_argument("--cache", type=Path, default=Path("runs/scalers_online"), help="folder of kept records")
    parser.add_argument("--out", type=Path, default=Path("runs"), help="folder of table and figure")
    args = parser.parse_args(given)
    names = QUICK if args.quick else tuple(args.data or FULL)
    started = time.perf_counter()
    try:
        records = {name: replayed(name, QUICK_STEPS if args.quick else LONGEST, args.cache) for name in names}
    except KeyboardInterrupt:
        raise SystemExit(f"stopped; records so far are in {args.cache}: the same command continues") from None
    fared = {(stream, name): Fared.of(record, name) for stream, record in records.items() for name in record}
    lines = document(records, fared)
    print("\n".join(lines))
    written(args.out / "scalers_online.md", lines, SCRIPT, TITLE)
    print(f"\ntables: {args.out / 'scalers_online.md'}, {time.perf_counter() - started:.0f} s")
    shown = "wine_red" if "wine_red" in names else max(records, key=lambda name: len(records[name]))
    try:
        draw(records, fared, shown, args.out / "scalers_online.png")
        print(f"figure: {args.out / 'scalers_online.png'}")
    except ImportError as error:
        print(f"no figure: {error}")
    for way in WAYS:
        sizes = {title: np.mean([abs(fared[s, key(title, *WAYS[way])].gap) for s in names]) for title in MAPS}
        order = sorted(sizes, key=sizes.__getitem__)
        inside = sum(fared[s, VENN[way]].outside == 0 for s in names)
        print(
            f"{way}: nearest to what they claim {', '.join(f'{title} {sizes[title]:.3f}' for title in order[:3])}; "
            f"furthest {order[-1]} {sizes[order[-1]]:.3f}; {VENN[way]} in its band on {inside} of {len(names)}"
        )


if __name__ == "__main__":
    main()
# %%
# It takes six minutes, so it does not run here. :doc:`Its results </studies>`:
#
# .. image:: /scalers_online.png
#    :alt: Claimed probability against accuracy along a stream, and at the end of nine streams
#
# sphinx_gallery_thumbnail_path = '../docs/scalers_online.png'
