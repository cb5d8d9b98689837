"""
Which way from the scores of a support vector machine to probabilities is best?
===============================================================================

And was it the same in 2004? Rueping compared eight scalings of SVM scores with kernel logistic regression on eleven
data sets. This is the same comparison on the seven public ones, with isotonic regression, beta calibration,
temperature, and Venn-Abers predictors added::

    python examples/rueping_2004.py            # runs/rueping.md and runs/rueping.png
    python examples/rueping_2004.py --quick    # three small sets, five folds, under a minute; into runs/
    python examples/rueping_2004.py --scores train    # maps fitted to the machine's own training scores: biased

Every result is kept in a folder; after an interruption the same command continues where it stopped, and computes
nothing twice. The data are read from the folder in ``$STREAMS_DATA``, or downloaded.
"""

import argparse
import time
from pathlib import Path

from rueping import sets, tables
from rueping.study import Study, run
from studies import script
from studies.document import written

QUICK = ("liver", "ionosphere", "promoters")
SCRIPT, TITLE = "examples/rueping_2004.py", "The comparison of Rueping (2004)"


def arguments(given=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help=f"five folds of {', '.join(QUICK)}")
    parser.add_argument("--data", nargs="+", choices=sets.PUBLISHED, metavar="SET", help="by default all seven")
    parser.add_argument("--scores", choices=["cross", "train"], default="cross", help="what maps are fitted to")
    parser.add_argument("--jobs", type=int, default=1, help="processes; some 2 GB of memory each for mushroom")
    parser.add_argument("--cache", type=Path, default=Path("runs/rueping"), help="folder of kept results")
    parser.add_argument("--out", type=Path, default=Path("runs"), help="folder of tables and figure")
    args = parser.parse_args(given)
    args.data = tuple(args.data or (QUICK if args.quick else sets.PUBLISHED))
    return args


def main(given=None):
    args = arguments(given)
    study = Study(args.data, 5 if args.quick else 10, args.scores)
    start = time.perf_counter()
    with script.bar(args.cache, len(study.tasks())) as step:
        table, computed = run(study, args.cache, args.jobs, lambda task: step("{}, {}, fold {}".format(*task)))
    losses = tables.Losses(study, table)
    print("\n".join(tables.orderings_table(losses)))
    written(args.out / "rueping.md", tables.document(losses), SCRIPT, TITLE)
    print(f"\n{computed} results computed, the others kept from before; {time.perf_counter() - start:.0f} s")
    print(f"tables: {args.out / 'rueping.md'}")
    script.figure("rueping.figure", args.out / "rueping.png", losses)


if __name__ == "__main__":
    main()
# %%
# It takes 20 minutes on two cores, so it does not run here. :doc:`Its results </studies>`:
#
# .. image:: /rueping.png
#    :alt: Mean ranks here and in the paper; cross-entropy of every method on every set
#
# sphinx_gallery_thumbnail_path = '../docs/rueping.png'
