"""What the commands that measure the tests rest on: mutants are what they say, and quick tests come first."""

import ast
from collections import Counter

import pytest

import venn.smoothing
from tools import ROOT
from tools.coverage_without_compiler import ROOMS, sources
from tools.mutants import Runner, apply, functions, mutants
from venn.smoothing import Smoothing

FILE = "venn/smoothing.py"


def test_every_room_has_files():
    assert [room for room in ROOMS if not all((ROOT / path).is_file() for path in sources(room))] == []


def test_every_mutant_differs_from_the_file_where_it_says():
    """One line differs; it is no signature and no text, and an error may go but not change."""
    before = (ROOT / FILE).read_text(encoding="utf-8")
    plain = ast.unparse(ast.parse(before)).splitlines()
    found = mutants(FILE)
    assert len({str(mutant) for mutant in found}) == len(found) > 20
    for mutant in found:
        after = ast.unparse(mutant.tree).splitlines()
        assert len(after) == len(plain)
        changed = [(old, new) for old, new in zip(plain, after, strict=True) if old != new]
        assert len(changed) == 1, mutant
        old, new = (line.strip() for line in changed[0])
        assert not old.startswith(("def ", '"""'))
        assert not old.startswith("raise ") or new == "pass"
    assert before == (ROOT / FILE).read_text(encoding="utf-8")


def test_no_mutant_is_there_twice():
    found = [str(mutant) for mutant in mutants("venn/_compiled/outcomes.py")]
    assert any("removed: brier +=" in one for one in found)
    assert len(set(found)) == len(found)


def test_a_mutant_lives_in_the_process_alone():
    mutant = next(one for one in mutants(FILE) if one.what.startswith("returns None   [return (z >> 11)"))
    code, number = Smoothing.at.__code__, Smoothing(1).at(3)
    assert apply(mutant, functions())
    try:
        assert Smoothing(1).at(3) is None
    finally:
        venn.smoothing.Smoothing.at.__code__ = code
    assert Smoothing(1).at(3) == number


@pytest.mark.parametrize(("budget", "chosen"), [(100, ["b[1]", "a[2]", "b[0]", "a[1]"]), (3, ["b[1]", "a[2]"])])
def test_the_quickest_case_of_each_test_comes_before_any_second(budget, chosen):
    took = {"a[1]": 5.0, "a[2]": 2.0, "b[0]": 3.0, "b[1]": 1.0}
    runner = Runner([], set, Counter(took), 10.0, budget)
    assert runner.chosen(list(took)) == chosen


def test_rooms_have_files():
    assert sources("smoothing") == [FILE]
    assert "venn/_compiled/counting.py" in sources("_compiled")
