"""The quick lane and the order of the tests follow from measured durations; no public class is left out."""

import json
import re
from pathlib import Path

import lanes
import pytest
from test_contract import TESTED_ELSEWHERE

from tools import durations, lines

FILES = {path.name: path for path in Path(__file__).parents[1].rglob("test_*.py")}


@pytest.fixture
def measured(monkeypatch):
    tests = {"test_short": lanes.Took(0.3, 3), "test_long": lanes.Took(2.0, 20), "test_one": lanes.Took(9.0, 1)}
    monkeypatch.setattr(lanes, "QUICK", 0.4)
    monkeypatch.setattr(lanes, "CASES", 6)
    monkeypatch.setattr(lanes, "USUAL", 1.0)
    monkeypatch.setattr(lanes, "LONGEST", 8.0)
    monkeypatch.setattr(
        lanes, "durations", lambda: dict.fromkeys(("test_a.py", "test_validity.py", lanes.WHOLE[0]), tests)
    )


@pytest.mark.parametrize(
    ("test", "cases", "kept"),
    [
        ("test_short", 3, {0, 1, 2}), ("test_long", 20, {2, 7, 12, 17}), ("test_long", 2, {0, 1}),
        ("test_one", 1, set()), ("test_new", 2, {0, 1}), ("test_new", 12, {1, 3, 5, 7, 9, 11}),
    ],
)  # fmt: skip
def test_as_many_cases_are_quick_as_there_is_time_for(measured, test, cases, kept):
    assert lanes.quick("test_a.py", test, [{i} for i in range(cases)]) == kept
    assert lanes.quick(lanes.WHOLE[0], test, [set()] * cases) == set(range(cases))


@pytest.mark.parametrize(
    ("test", "cases", "kept"),
    [
        ("test_short", 3, {0, 1, 2}), ("test_long", 20, {1, 3, 5, 7, 9, 11, 13, 15, 17, 19}), ("test_long", 2, {0, 1}),
        ("test_one", 1, set()), ("test_one", 3, set()), ("test_new", 12, set(range(12))),
    ],
)  # fmt: skip
def test_of_a_long_test_some_cases_are_usual_of_a_longer_one_none_of_validity_each_value(measured, test, cases, kept):
    assert lanes.usual("test_a.py", test, [{i} for i in range(cases)]) == kept
    assert lanes.usual("test_validity.py", test, [{i} for i in range(cases)]) == set(range(cases))
    assert lanes.usual(lanes.WHOLE[0], test, [set()] * cases) == set(range(cases))


@pytest.mark.parametrize(
    ("most", "enough", "kept"), [(9, 1, {0, 2, 4}), (9, 5, {0, 1, 2, 3, 4}), (2, 1, {1, 3}), (3, 1, {1, 3, 5})]
)
def test_every_value_has_a_case_before_one_is_there_again(most, enough, kept):
    assert lanes.covering([{a, b} for a in "kl" for b in (1, 2, 3)], most, enough) == kept


def test_what_is_measured_exists():
    """Else a test that was renamed would be thought short."""
    for file, tests in lanes.durations().items():
        defined = set(re.findall(r"^def (test_\w+)", FILES[file].read_text(encoding="utf-8"), flags=re.M))
        assert tests.keys() <= defined, f"{file}: rename or remove them in durations.json, or run tools.durations anew"


def test_every_public_class_is_in_the_quick_lane():
    """Those of the contract are, with all cases; so is some test of each file that the contract names instead."""
    files = set(re.findall(r"test_\w+\.py", " ".join(TESTED_ELSEWHERE.values())))
    for file in files:
        tests = re.findall(r"^def (test_\w+)", FILES[file].read_text(encoding="utf-8"), flags=re.M)
        took = lanes.durations().get(file, {})
        assert any(lanes.quick(file, test, [set()] * (took[test].cases if test in took else 1)) for test in tests), file


def test_durations_are_those_of_a_report(tmp_path, monkeypatch):
    report = tmp_path / "times.xml"
    case = '<testcase classname="{}" name="{}" time="{}"{}'
    report.write_text(
        "<testsuites><testsuite>"
        + case.format("tests.a.test_a", "test_x[1]", 0.5, "/>") + case.format("tests.a.test_a", "test_x[2]", 0.25, "/>")
        + case.format("tests.a.test_a", "test_brief", 0.01, "/>") + case.format("venn.maps", "venn.maps", 9, "/>")
        + case.format("tests.test_b", "test_y", 3, "><skipped/></testcase>") + "</testsuite></testsuites>"
    )  # fmt: skip
    monkeypatch.setattr(durations, "KEPT", tmp_path / "durations.json")
    durations.KEPT.write_text('{"test_a.py": {"test_gone": [4, 1]}, "test_b.py": {"test_y": [7, 2]}}')
    monkeypatch.setattr("sys.argv", ["durations", str(report)])
    durations.main()
    assert json.loads(durations.KEPT.read_text()) == {
        "test_a.py": {"test_x": [0.75, 2]},
        "test_b.py": {"test_y": [7, 2]},
    }


def test_lines_of_code_are_those_that_hold_code(tmp_path):
    source = '"""What it is for.\n\nM."""\n\nx = 1  # why\n# not\n\n\ndef f():\n    """Do."""\n    return """a\nb"""\n'
    assert lines.code_lines(source) == 4
    for path in ("venn/maps/one.py", "venn/one.py", "streams/one.py"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(source)
    assert lines.rooms(tmp_path) == {"venn/maps": 4, "venn/*.py": 4, "streams/*.py": 4}
