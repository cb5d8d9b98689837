"""Commands for whoever works on the engine: what attacks it, what measures its tests, what counts its lines.

Each runs from the root of the repository as a module, for example ``python -m tools.lines``. Attacks and measurements
build on what the tests have: their streams, their oracles, their makers of every class.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path += [str(ROOT / "tests"), *sorted({str(path.parent) for path in ROOT.glob("tests/*/test_*.py")})]
