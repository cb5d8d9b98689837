"""Figures of a long replay are drawn in two processes: they are those that one draws."""

import pytest

import streams
import venn
from venn.cli import drawing
from venn.cli.drawing import TwoDrawers


@pytest.fixture(scope="module")
def record():
    stream = streams.gaussians(40, seed=0)
    machine = venn.LeastSquaresSVM(venn.RBF(1.0), C=10, classes=stream.classes)
    panel = venn.Panel(abers=venn.TransductiveVennAbers(machine), sets=venn.Conformal(machine))
    return venn.replay(stream, panel, progress=False)


@pytest.mark.parametrize("fails", [False, True])
def test_two_processes_draw_the_figures_of_one(record, tmp_path, monkeypatch, fails):
    monkeypatch.setattr(drawing, "LONG", 40)
    monkeypatch.setattr(drawing, "LAST", 30)
    monkeypatch.setattr(drawing, "one_core", lambda: False)
    if fails:
        monkeypatch.setattr(drawing, "DRAWS", ("nowhere",))
    here, there = [], drawing.draw_all
    monkeypatch.setattr(drawing, "draw_all", lambda *given: (here.extend(given[2]), there(*given))[1])
    by = TwoDrawers(len(record))
    file = tmp_path / "two" / "record.npz"
    file.parent.mkdir()
    record.save(file)
    for n in range(len(record)):
        by.at(n)
    drawn = by.draw(record, file)
    assert here == ["curves", "martingales", "reliability"] + (["errors", "p_values"] if fails else [])
    alone = TwoDrawers(len(record) - 1).draw(record, tmp_path / "one" / "record.npz")
    assert [path.name for path in drawn] == [path.name for path in alone]
    assert [path.read_bytes() for path in drawn] == [path.read_bytes() for path in alone]
