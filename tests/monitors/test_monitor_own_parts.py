"""A monitor with martingales and sources of a user's own: what they may do, and what is refused."""

import copy
import json
import pickle
from math import log

import numpy as np
import pytest
from test_monitor import CLASSES, KINDS, predictions, run

import venn
from venn.monitors.evidence import Evidence, Exchangeability, PointForecasts
from venn.monitors.sources import TrueLabel
from venn.prediction import PredictionSet


class AllIn:
    """A user's own martingale, without a repr: all is bet that p < 1/2."""

    def __init__(self):
        self.n, self.log = 0, 0.0

    def fresh(self):
        return AllIn()

    def update_many(self, ps):
        path = self.log + np.cumsum(np.where(np.array(ps) < 0.5, log(2), -np.inf))
        self.n, self.log = self.n + len(path), float(path[-1])
        return path


def test_a_martingale_of_ones_own_that_loses_all_leaves_plain_data_and_goes_on():
    steps = [(prediction, "yes") for prediction in predictions("PredictionSet", np.random.default_rng(4), 40)]
    monitor = venn.Monitor(CLASSES, martingale=AllIn())
    for step in steps:
        twins = copy.deepcopy(monitor), pickle.loads(pickle.dumps(monitor))
        alarms = monitor.update(*step)
        json.dumps(monitor.snapshot(), allow_nan=False)
        for twin in twins:
            assert twin.update(*step) == alarms
            assert twin.snapshot() == monitor.snapshot()
        assert all(alarm.detector == "ShiryaevRoberts" for alarm in alarms)
    shown = {entry["detector"]: entry["log10"] for entry in monitor.snapshot()["evidence"]}
    assert shown["Ville"] == -1e6


class Own(TrueLabel):
    """A user's own source: of an event, with given numbers."""

    of_event = True
    name = "own"

    def __init__(self, *numbers):
        self.numbers = numbers

    def read(self, steps, tau):
        return self.numbers


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ((np.nan, 0.0), r"p-value of Own\(.*\) must lie in \[0, 1\], got nan"),
        ((1.5, 0.0), "p-value of .* must lie in"),
        (("x", 0.0), "p-value of .* must be a number"),
        ((0.5, None), r"deviation of .* must be a number in \[-1, 1\], got None"),
        ((0.5, -1.5), "deviation of .* must lie in"),
    ],
)
def test_numbers_of_a_source_that_are_none_are_refused_and_change_nothing(numbers, message):
    monitor = venn.Monitor(CLASSES, sources=[Own(0.5, 0.0)])
    good = PredictionSet(np.full(3, 0.5), CLASSES)
    monitor.update(good, "yes")
    before = monitor.snapshot()
    monitor._evidence[0].source.numbers = numbers
    with pytest.raises((TypeError, ValueError), match=message):
        monitor.update(good, "yes")
    assert monitor.snapshot() == before


def test_deviations_count_only_for_sources_of_events():
    source = Own(np.float32(0.25), 1.0)
    source.of_event = False
    monitor = venn.Monitor(CLASSES, sources=[source])
    for _ in range(3):
        monitor.update(PredictionSet(np.full(3, 0.5), CLASSES), "yes")
    entries = json.loads(json.dumps(monitor.snapshot(), allow_nan=False))["evidence"]
    assert [entry["detector"] for entry in entries] == ["Ville", "ShiryaevRoberts"]
    assert entries[0]["p_value"] == 0.25


def test_without_sources_there_is_no_evidence():
    for kind in KINDS:
        monitor, _ = run(kind, 3, sources=[])
        assert monitor.snapshot()["evidence"] == []


class InNoFile(venn.Monitor):
    """A user's own: copies are made of its attributes."""


def told(kind, make=venn.Monitor):
    """Return what a monitor says of a stream with a change, through copies and new beginnings."""
    rng, monitor, said = np.random.default_rng(7), make(CLASSES, level=0.2, run_length=500, window=90), []
    for step, prediction in enumerate(predictions(kind, rng, 700)):
        y = CLASSES[rng.integers(3)] if step < 300 else "yes"
        said += monitor.update(prediction, y)
        if step in (50, 650):
            monitor.begin_anew()
        if step % 90 == 0:
            said.append(monitor.snapshot())
            monitor = copy.deepcopy(monitor)
    assert monitor.count > 0
    return said


@pytest.mark.parametrize("kind", KINDS[:5])
def test_one_loop_for_all_sources_says_what_they_say_one_by_one(kind, monkeypatch):
    at_once = told(kind)
    assert told(kind, InNoFile) == at_once
    for one in (Exchangeability, PointForecasts):
        monkeypatch.setattr(one, "packed", Evidence.packed)
    assert told(kind) == at_once
