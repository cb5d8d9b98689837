"""Write the kept figures of the benchmarks into the pages that give them.

    python -m tools.figures

`benchmarks/all.py --keep` keeps what it measured in `benchmarks/kept.json`. Each line of SAID is a piece of a page,
with # in the place of each number, and says which kept figures these numbers are. This program writes them, to two
digits; tests/house/test_docs.py compares. The table of docs/benchmarks.md is written by `benchmarks/all.py` itself.
"""

from __future__ import annotations

import json
import re
import statistics
from typing import NamedTuple

from tools import ROOT

NUMBER = r"(\d[\d ]*\d|\d*\.\d+|\d+)"
KEPT: dict[str, dict[str, list[float]]] = json.loads((ROOT / "benchmarks" / "kept.json").read_text())["figures"]


class Said(NamedTuple):
    """A piece of a page; the command that measures its numbers, and the place of each in what the command prints."""

    page: str
    words: str
    command: str
    places: tuple[str, ...]

    @property
    def pattern(self) -> re.Pattern[str]:
        """What finds the piece, however its lines are broken."""
        words = [NUMBER.join(map(re.escape, word.split("#"))) for word in self.words.split()]
        return re.compile(r"\s+".join(words))

    @property
    def numbers(self) -> list[str]:
        """The numbers as they should be there."""
        return [written(kept(self.command, place)) for place in self.places]


def kept(command: str, place: str) -> float:
    """Return a kept figure, of repeated ones the median; of `place / 1e6`, in millions."""
    path, _, unit = place.partition(" / ")
    return statistics.median(KEPT[command][path]) / float(unit or 1)


def written(value: float) -> str:
    """Return a number to two digits, as the pages write it: .83, 2.8, 1300, 64 000."""
    number = float(f"{value:.2g}")
    if number >= 10:
        return f"{number:,.0f}".replace(",", " " if number >= 10_000 else "")
    return f"{number:g}".removeprefix("0") or "0"


def found(text: str, said: Said) -> list[str]:
    """Return the numbers that a page gives, where the words are there once."""
    places = list(said.pattern.finditer(text))
    if len(places) != 1:
        raise ValueError(f"{said.page} must have these words once, not {len(places)} times: {said.words}")
    return list(places[0].groups())


def with_kept(text: str, said: Said) -> str:
    """Return a page with the kept figures in the place of those that it gives."""
    found(text, said)  # raises where the words are missing
    match = said.pattern.search(text)
    assert match
    for place, number in reversed(list(enumerate(said.numbers, 1))):
        text = text[: match.start(place)] + number + text[match.end(place) :]
    return text


SAID = (
    Said("README.md", "each possible label | # s | `SVC` fitted anew each step: # times", "refitting.py --samples 6",
         ("0.hinge.seconds", "0.hinge.ratio")),
    Said("README.md", "by least squares | # s; with Venn-Abers # s | an inverse by LAPACK each step: # times",
         "refitting.py --samples 6",
         ("0.squares.machine_seconds", "0.squares.abers_seconds", "0.squares.ratio")),
    Said("README.md", "least squares | # steps a second | `KernelRidge` on each window: # times", "window.py",
         ("0.steps_a_second", "0.ratio")),
    Said("README.md", "10 000 examples | # µs a step | two isotonic regressions: # times", "abers.py",
         ("0.us_a_step", "0.ratio")),
    Said("README.md", "in blocks | # million a second | counting by hand: # times", "inductive.py",
         ("0.examples_a_second / 1e6", "0.ratio")),
    *(
        Said("docs/speed.md", f"| {loop} | # |", "floors.py --repeat 1", (f"0.{name}.times_floor",))
        for loop, name in {
            "least squares, Car": "squares", "Venn-Abers by class, beside that": "classwise",
            "hinge loss with argmax counts, Car": "hinge", "five predictors on that machine": "panel",
            "online Venn-Abers at 10 000 examples": "abers",
            "inductive counting in blocks, 54 features, 7 classes": "counting", "a journal, beside the step": "journal",
        }.items()
    ),
    Said("docs/speed.md", "| `import venn` | # ms |", "footprint.py", ("0.import_ms",)),
    Said("docs/speed.md", "| `venn --version` | # ms |", "footprint.py", ("0.command_ms",)),
    Said("docs/speed.md", "afterwards | # s; # s |", "footprint.py",
         ("0.first_replay_s.cold", "0.first_replay_s.cached")),
    Said("docs/speed.md", "an example in a hinge-loss machine of 1000 | # kB |", "footprint.py",
         ("0.bytes_an_example.OneVsAllSVM / 1e3",)),
    Said("docs/speed.md", "would take 8 | # kB |", "footprint.py",
         ("0.bytes_an_example.LeastSquaresSVM / 1e3",)),
    Said("docs/speed.md", "an example in online Venn-Abers | # bytes |", "footprint.py",
         ("0.bytes_an_example.VennAbers",)),
    Said("docs/speed.md", "The worst of 300 streams stands at # of its tolerance", "certificates.py --streams 300",
         ("0.worst_over_tolerance",)),
    *(
        Said("docs/speed.md", f"{row} |", "forecaster_cost.py", places)
        for row, places in {
            "the forest | # s; # s | # s; # s": (
                "0.seconds_2000", "0.forest_seconds_2000", "1.seconds_2000", "1.forest_seconds_2000"),
            "a step, to 1000 rows | # ms | # ms": ("0.us_a_step.1000 / 1e3", "1.us_a_step.1000 / 1e3"),
            "a step, to 1900 | # ms | # ms": ("0.us_a_step.1900 / 1e3", "1.us_a_step.1900 / 1e3"),
            "hand-over | # ms | # ms": ("0.us_a_step.2100 / 1e3", "1.us_a_step.2100 / 1e3"),
            "as they are taken | # s | # s": ("0.longest_ms / 1e3", "1.longest_ms / 1e3"),
        }.items()
    ),
    *(
        Said("docs/speed.md", f"| {row} | # | # | # |", "given_scorers.py",
             (f"0.{kind}.one / 1e3", f"0.{kind}.ratio_one", f"0.{kind}.ratio_block"))
        for row, kind in {
            "forest of 100 trees, 700 leaves each": "forest", "histogram boosting, 100 trees": "trees",
        }.items()
    ),
    Said("docs/speed.md", "of 3 machines takes # times as long as on one, of 12 machines # times, on two "
         "threads # times",
         "banks.py", ("0.bank of 3", "0.bank of 12", "0.bank of 12, 2 threads")),
    Said("docs/speed.md", "machine is # times as fast with 4 classes, and # times with 10", "banks.py",
         ("0.two threads, classes.4", "0.two threads, classes.10")),
    Said("docs/running.md", "is written, takes # microseconds an event", "journal.py",
         ("0.verify_us_an_event",)),
    Said("docs/running.md", "takes # times what it takes in memory; if each question and each answer is a "
         "transaction of its own, # times", "journal.py",
         ("0.slower_than_memory.transactions", "0.slower_than_memory.journal")),
    Said("docs/cluster.md", "one process, no cluster | # million", "collection.py --rows 4000000",
         ("0.rows_per_second.here / 1e6",)),
    Said("docs/cluster.md", "2 Dask workers | # million", "collection.py --rows 4000000",
         ("0.rows_per_second.2 workers / 1e6",)),
    Said("docs/regression.md", "takes # microseconds beside the machine's own answer; to fit one ridge anew # times",
         "regression.py", ("0.beside_the_machine_us", "0.times_faster_than_refitting")),
)  # fmt: skip


def main() -> None:
    """Write the pages."""
    for said in SAID:
        page = ROOT / said.page
        page.write_text(with_kept(page.read_text(), said))


if __name__ == "__main__":
    main()
