"""A run goes on where numbers are rounded otherwise, says so once, and refuses whatever differs by more."""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import venn
from venn.labels import Real
from venn.monitors.kind import NUMBER
from venn.monitors.kinds import kind_of
from venn.monitors.number_kinds import NestedIntervalsKind
from venn.online.journal import Journal, JournalError
from venn.online.panel import Panel
from venn.online.restart import NEAR, RunSnapshot
from venn.online.run import Rung

ROOT = Path(__file__).parents[2]
RNG = np.random.default_rng(0)
X = RNG.normal(size=(24, 2))
CLASSES = ["no", "yes"]


def of_classes():
    machine = venn.LeastSquaresSVM(venn.RBF(0.5), 10.0, CLASSES)
    return venn.Panel(
        venn=venn.TransductiveVenn(machine), abers=venn.TransductiveVennAbers(machine), sets=venn.Conformal(machine),
        platt=venn.ScoreCalibrator(machine, venn.maps.Platt()),
    )  # fmt: skip


def of_numbers():
    machine = venn.machines.KernelRidge(venn.RBF(0.5), 3.0)
    return venn.Panel(
        whole=venn.predictors.ConformalDistribution(machine), intervals=venn.predictors.ConformalIntervals(machine)
    )


MAKERS = {"classes": of_classes, "numbers": of_numbers}


def label(kind, x):
    return float(x[0]) if kind == "numbers" else CLASSES[int(x[0] > 0)]


def begun(kind, path):
    """Leave a journal as a kill leaves it."""
    online = venn.Online(MAKERS[kind](), journal=Journal(path, every=10**9))
    for x in X:
        online.ask(x)
        online.answer(online.asked, label(kind, x))
    online.journal.close()
    return online


def nudged(prediction, space, by):
    """Return a prediction with its numbers rounded otherwise."""
    kind = kind_of(prediction)
    kept = kind.kept(prediction)
    arrays = [np.array(getattr(kept, name), dtype) for name, dtype in kind.arrays]
    for one in arrays if isinstance(space, Real) else ():
        one *= 1 - by if one.dtype == NUMBER else 1
    for one in arrays if not isinstance(space, Real) else ():  # sums stay 1
        moved = one[..., 1] * by
        one[..., 1] -= moved
        one[..., 0] += moved
    return kind.made(*arrays, space.labels, *kind.known(kept))


def elsewhere(monkeypatch, by, first=0):
    """Let predictions be rounded otherwise from now on, after the first ones."""
    asked, plain = [], Panel.predict_one

    def predict_one(panel, x):
        found = plain(panel, x)
        asked.append(x)
        return {n: nudged(p, panel.space, by) if len(asked) > first else p for n, p in found.items()}

    monkeypatch.setattr(Panel, "predict_one", predict_one)


@pytest.mark.parametrize("kind", MAKERS)
def test_it_goes_on_and_says_so_once(kind, tmp_path, monkeypatch, caplog):
    path = tmp_path / "run.db"
    before = begun(kind, path)
    elsewhere(monkeypatch, 1e-12)
    with venn.Online(MAKERS[kind](), journal=Journal(path, every=10**9)) as online:
        count = len(X) - (kind == "numbers")  # before any number there are no points to be rounded
        assert online.rounded == count
        assert f"{count} rounded otherwise" in repr(online)
        assert online.told.keys() == before.told.keys()
        for name, told in online.told.items():  # of what was said, which stands
            assert told.figures() == before.told[name].figures()
        online.ask([0.1, 0.2], "more")
    assert len(caplog.records) == 1
    assert f"{count} predictions are rounded otherwise here, by 1e-12 at most" in caplog.text
    with venn.Online(MAKERS[kind](), journal=path) as again:  # the checkpoint at the end has all of it
        assert (again.rounded, again.pending) == (0, ("more",))
        again.journal.check()


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("by", [1e-8, 0.01])
def test_it_refuses_what_differs_by_more(kind, by, tmp_path, monkeypatch):
    path = tmp_path / "run.db"
    begun(kind, path)
    elsewhere(monkeypatch, by, first=4)
    with pytest.raises(JournalError, match=r"must hold the predictions of this program.* at event 9 "):
        venn.Online(MAKERS[kind](), journal=path)


def test_on_the_same_machine_nothing_is_rounded(tmp_path, caplog):
    path = tmp_path / "run.db"
    begun("classes", path)
    with venn.Online(of_classes(), journal=path) as online:
        assert "rounded" not in repr(online)
    assert not caplog.records


@pytest.mark.parametrize(
    ("there", "differs"),
    [([], None), ([("sets", 1, 7)], None), ([("sets", 1, 8)], "alarm 1 of sets, at step 7"),
     ([("sets", 1, 7), ("sets", 2, 9)], "alarm 2 of sets, at step 9"),
     ([("venn", 1, 3)], "alarm 1 of venn, at step 3")],
)  # fmt: skip
def test_other_alarms_are_refused(there, differs):
    """Those of the journal may be fewer: the last ones may not have been written."""
    journal = SimpleNamespace(path="run.db", alarms=lambda: there)
    snapshot = RunSnapshot(SimpleNamespace(rings={"sets": 1, "venn": 0}))
    snapshot.ring(7, 0.0, [Rung("sets", 1, None)])
    if differs is None:
        snapshot.compare(journal)
        return
    with pytest.raises(JournalError, match=f"run.db must hold the alarms.*{differs}, differs"):
        snapshot.compare(journal)


def sets(values, smoothed=True):
    return venn.prediction.PredictionSet(np.array(values), tuple(CLASSES), smoothed)


def test_what_is_chosen_must_be_the_same():
    kind = kind_of(sets([0.5, 0.6]))
    assert kind.apart(sets([0.5, 0.6]), sets([0.5, 0.6])) == 0
    assert 0 < kind.apart(sets([0.5, 0.6]), sets([0.5, 0.6 - 1e-12])) < NEAR
    assert kind.apart(sets([0.5, 0.5 + 1e-12]), sets([0.5, 0.5 - 1e-12])) == np.inf, "another label"
    assert kind.apart(sets([0.05 + 1e-12, 0.6]), sets([0.05, 0.6])) == np.inf, "another set"
    assert kind.apart(sets([0.5, 0.6]), sets([0.5, 0.6], False)) == np.inf, "another kind of p-value"


def test_ends_that_are_infinite_are_the_same_or_not():
    kind = kind_of(of_numbers().predict_one([0.0, 0.0])["intervals"])
    machine = of_numbers()
    for x in X[:5]:
        machine.learn_one(x, label("numbers", x))
    one = kind.kept(machine.predict_one(X[5])["intervals"])
    other = nudged(one, Real(), 1e-12)
    assert kind.apart(one, one) == 0
    assert kind.apart(one, other) < NEAR
    assert kind.apart(one, kind.kept(of_numbers().predict_one(X[5])["intervals"])) == np.inf


@pytest.mark.parametrize(
    ("one", "other", "apart"),
    [((0.0, 2.0), (1e-9, 2.0), 5e-10), ((0.0, 0.0), (1e-300, 0.0), np.inf), ((-np.inf, 2.0), (-np.inf, 1.0), 0.5),
     ((-np.inf, 2.0), (-9.0, 2.0), np.inf), ((np.nan, 2.0), (np.nan, 2.0), 0.0), ((np.nan, 2.0), (1.0, 2.0), np.inf)],
)  # fmt: skip
def test_numbers_are_compared_with_the_largest(one, other, apart):
    class Ends(NestedIntervalsKind):
        def _read(self, prediction):
            return [], np.array(prediction)

    assert Ends().apart(one, other) == pytest.approx(apart)


@pytest.mark.program
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a Unix")
@pytest.mark.parametrize("change", ["threads", "kernel", "target"])
def test_killed_runs_go_on_in_other_circumstances(change):
    """At some places of each kind; `python -m tools.moving` takes 20 of each."""
    told = subprocess.run(
        [sys.executable, "-m", "tools.moving", "--places", "3", "--changes", change],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    assert told.returncode == 0, told.stdout[-2000:] + told.stderr[-2000:]
    assert json.loads(told.stdout.splitlines()[-1]) == {"places": 12, "refused": 0}
