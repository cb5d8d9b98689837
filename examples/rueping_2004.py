"""
Which way from the scores of a support vector machine to probabilities is best?
===============================================================================

And was it the same in 2004? Rueping compared eight scalings of SVM scores with kernel logistic regression on eleven
data sets. This is the same comparison on the seven public ones, with isotonic regression, beta calibration,
temperature, and Venn-Abers predictors added::

    python examples/rueping_2004.py            # docs/rueping.md and docs/rueping.png
    python examples/rueping_2004.py --quick    # three small sets, five folds, under a minute; into runs/
    python examples/rueping_2004.py --scores train    # maps fitted to the machine's own training scores: biased

Every result is kept in a folder; after an interruption the same command continues where it stopped, and computes
nothing twice. The data are read from the folder in ``$STREAMS_DATA``, or downloaded.
"""

import argparse
import time
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rueping import sets, tables
from rueping.study import Study, choices, run
from studies.store import Store

QUICK = ("liver", "ionosphere", "promoters")
FIRST, LAST = "<!-- tables: written by examples/rueping_2004.py -->", "<!-- end of the tables -->"


def written(path, lines):
    """Write the lines between the markers of a file; the text that people wrote around them stays."""
    text = path.read_text() if path.exists() else f"# The comparison of Rueping (2004)\n\n{FIRST}\n{LAST}\n"
    if FIRST not in text or LAST not in text:
        raise ValueError(f"{path} must have the lines {FIRST!r} and {LAST!r}, between which the tables go")
    before, after = text.split(FIRST)[0], text.split(LAST)[1]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([before + FIRST, "", *lines, "", LAST + after]))


def arguments(given=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help=f"five folds of {', '.join(QUICK)}")
    parser.add_argument("--data", nargs="+", choices=sets.PUBLISHED, metavar="SET", help="by default all seven")
    parser.add_argument("--scores", choices=["cross", "train"], default="cross", help="what maps are fitted to")
    parser.add_argument("--jobs", type=int, default=1, help="processes; some 2 GB of memory each for mushroom")
    parser.add_argument("--cache", type=Path, default=Path("runs/rueping"), help="folder of kept results")
    parser.add_argument("--out", type=Path, help="folder of tables and figure: docs, or runs if not all is run")
    args = parser.parse_args(given)
    args.data = tuple(args.data or (QUICK if args.quick else sets.PUBLISHED))
    whole = not args.quick and args.scores == "cross" and set(args.data) == set(sets.PUBLISHED)
    args.out = args.out or Path("docs" if whole else "runs")
    return args


def main(given=None):
    args = arguments(given)
    study = Study(args.data, 5 if args.quick else 10, args.scores)
    start, tasks = time.perf_counter(), study.tasks()
    columns = TextColumn("{task.description:<24}"), BarColumn(), MofNCompleteColumn()
    console = Console(stderr=True)
    try:
        with Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=console) as progress:
            bar = progress.add_task("starting", total=len(tasks))
            table, computed = run(
                study,
                args.cache,
                args.jobs,
                lambda task: progress.update(bar, advance=1, description="{}, {}, fold {}".format(*task)),
            )
    except KeyboardInterrupt:
        raise SystemExit(f"stopped; results so far are in {args.cache}: the same command continues") from None
    store = Store(args.cache)
    data = [sets.load(name, store) for name in study.data]
    chosen = {(one.name, kernel): choices(one, kernel, store) for one in data for kernel in tables.NAMES}
    losses = tables.Losses(study, table)
    lines = tables.document(losses, data, chosen)
    print("\n".join(tables.orderings_table(losses)))
    lines += ["", "## Seconds of the processor, one thread", "", *tables.seconds_table(losses, chosen)]
    written(args.out / "rueping.md", lines)
    print(f"\n{computed} results computed, the others kept from before; {time.perf_counter() - start:.0f} s")
    print(f"tables: {args.out / 'rueping.md'}")
    try:
        from rueping.figure import draw

        draw(losses, args.out / "rueping.png")
        print(f"figure: {args.out / 'rueping.png'}")
    except ImportError as error:
        print(f"no figure: {error}")


if __name__ == "__main__":
    main()
# %%
# It takes 20 minutes on two cores, so it does not run here. :doc:`Its results </rueping>`:
#
# .. image:: /rueping.png
#    :alt: Mean ranks here and in the paper; cross-entropy of every method on every set
#
# sphinx_gallery_thumbnail_path = '../docs/rueping.png'
