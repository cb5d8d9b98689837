"""
Do resampled support vector machines give better probabilities than Platt's sigmoid?
====================================================================================

Benitez-Pena, Blanquero, Carrizosa and Ramirez-Cobo claimed so in 2020: they take the share of bootstrap machines that
vote for a class as its probability, and compare with Platt, Sollich and Tao on eleven data sets. This is the same
comparison, with isotonic regression, Venn-Abers and the engine's default Venn predictor added, and both of their
controls of sensitivity::

    python examples/benitez_pena_2020.py --jobs 2    # runs/benitez_pena.md and runs/benitez_pena.png
    python examples/benitez_pena_2020.py --quick     # two small sets, 20 resamples, seconds; into runs/

Every result is kept in a folder; after an interruption the same command continues where it stopped, and computes
nothing twice. The data are read from the folder in ``$STREAMS_DATA``, or downloaded. Constrained machines
(Ctrl2) need SCIP, ``pip install '.[studies]'``; without it a heuristic takes their place, and the tables say so.
"""

import argparse
import time
from dataclasses import replace
from pathlib import Path

from benitez_pena import control, published, sets, tables
from benitez_pena.answers import Answers
from benitez_pena.study import Study, run
from studies import script
from studies.document import written

QUICK = Study(
    data=("divorce", "heart"),
    folds=3,
    inner=3,
    resamples=20,
    plan=control.Plan(levels=(0.5, 0.9), Cs=(1 / 64,), splits=1, few=4, largest=40, most_new=60, seconds=2.0),
)
SCRIPT, TITLE = "examples/benitez_pena_2020.py", "Bootstrap probabilities of support vector machines, repeated"


def arguments(given=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help=f"{' and '.join(QUICK.data)}, few folds and resamples")
    parser.add_argument("--data", nargs="+", choices=sets.SOURCES, metavar="SET", help="by default all")
    parser.add_argument("--resamples", type=int, help=f"of each training part, by default {published.RESAMPLES}")
    parser.add_argument("--fewer", type=int, help=f"the same for adult and {', '.join(sets.ASIDE)}: {Study().fewer}")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--cache", type=Path, default=Path("runs/benitez_pena"), help="folder of kept results")
    parser.add_argument("--out", type=Path, default=Path("runs"), help="folder of tables and figure")
    args = parser.parse_args(given)
    args.study = QUICK if args.quick else Study()
    changes = {"data": args.data and tuple(args.data), "resamples": args.resamples, "fewer": args.fewer}
    args.study = replace(args.study, **{name: value for name, value in changes.items() if value is not None})
    return args


def main(given=None):
    args = arguments(given)
    study, start = args.study, time.perf_counter()
    with script.bar(args.cache, len(study.tasks())) as step:
        found, computed = run(study, args.cache, args.jobs, lambda task: step("{}, {} {}".format(*task)))
    answers = Answers(study, found)
    print("\n".join(tables.claims_table(answers)))
    written(args.out / "benitez_pena.md", tables.document(answers), SCRIPT, TITLE)
    print(f"\n{computed} results computed, the others kept from before; {time.perf_counter() - start:.0f} s")
    print(f"tables: {args.out / 'benitez_pena.md'}")
    script.figure("benitez_pena.figure", args.out / "benitez_pena.png", answers)


if __name__ == "__main__":
    main()
# %%
# It takes 38 minutes on two cores, so it does not run here. :doc:`Its results </studies>`:
#
# .. image:: /benitez_pena.png
#    :alt: Error of every method on every set, here and in the paper; curves under both controls
#
# sphinx_gallery_thumbnail_path = '../docs/benitez_pena.png'
