"""Keep how hostile arguments are refused, in tests/house/refusals.json: a refusal that comes or goes changes a line.

    python -m tools.refusals

Each public function, and the methods of each public class, get eight calls, in each of which an argument or two are
hostile. Which ones follows from the name alone, so that what is added changes nothing of the others.
"""

from __future__ import annotations

import functools
import json
import zlib

from tools import ROOT
from tools.campaign import driver, fuzzing, subjects
from tools.campaign.tally import Tally

KEPT = ROOT / "tests" / "house" / "refusals.json"
CALLS = {f"{name}()": functools.partial(fuzzing.call_function, name=name) for name in fuzzing.FUNCTIONS} | {
    f"{name}.": functools.partial(fuzzing.call_method, owner=name) for name in subjects.INSTANCES
}


def called(name: str) -> Tally:
    """Make the calls of a function, `name()`, or of the methods of a class, `name.`; return how each ended."""
    return driver.made(CALLS[name], zlib.crc32(name.encode()))


@functools.cache
def kept() -> dict[str, list[str]]:
    """Return how the calls ended when they were kept."""
    return json.loads(KEPT.read_text())


def main() -> None:
    lines = (f"{json.dumps(name)}: {json.dumps(called(name).outcomes)}" for name in CALLS)
    KEPT.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
