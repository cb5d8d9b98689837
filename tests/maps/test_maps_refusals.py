"""What batch maps refuse: bad examples, scores, parameters and edges."""

import numpy as np
import pytest
from test_maps import BINARY, SEVERAL, binary_data, class_data

from venn.machines.machine import NotConverged
from venn.maps.beta_calibration import BetaCalibration
from venn.maps.binning import Binning, EqualFrequency
from venn.maps.platt import Platt

BAD = {
    "NaN score": ([0.0, np.nan], [0, 1], None, "scores must be finite, got nan at"),
    "infinite score": ([0.0, np.inf], [0, 1], None, "scores must be finite, got inf at"),
    "string": (["0", "1"], [0, 1], None, "scores must be"),
    "None": (None, [0, 1], None, "scores must"),
    "bool score": ([True, False], [0, 1], None, "scores must be"),
    "short labels": ([0.0, 1.0], [1], None, "labels must have shape"),
    "label 2": ([0.0, 1.0], [0, 5], None, "labels must be .* got .*5.* at 1"),
    "label -1": ([0.0, 1.0], [-1, 1], None, "labels must be .* got .*-1.* at 0"),
    "label None": ([0.0, 1.0], [None, 1], None, "labels must be"),
    "label string": ([0.0, 1.0], ["0", "1"], None, "labels must be"),
    "label NaN": ([0.0, 1.0], [0.0, np.nan], None, "labels must be"),
    "ragged labels": ([0.0, 1.0], [[1], [0, 1]], None, r"labels must be .* got \[\[1\], \[0, 1\]\]"),
    "masked label": ([0.0, 1.0], np.ma.array([0, 1], mask=[True, False]), None, "labels must have no masked values"),
    "negative weight": ([0.0, 1.0], [0, 1], [1.0, -0.5], "weights must be >= 0, got -0.5 at 1"),
    "NaN weight": ([0.0, 1.0], [0, 1], [1.0, np.nan], "weights must be finite, got nan at 1"),
    "short weights": ([0.0, 1.0], [0, 1], [1.0], "weights must have shape"),
    "no weight": ([0.0, 1.0], [0, 1], [0.0, 0.0], "weights must have a finite sum > 0"),
    "endless weight": ([0.0, 1.0], [0, 1], [1e308, 1e308], "weights must have a finite sum > 0, got inf"),
    "nothing": ([], [], None, "weights must have a finite sum > 0"),
}


@pytest.mark.parametrize("name", [*BINARY, *SEVERAL])
def test_bad_examples_are_refused(name):
    for case, (scores, labels, weights, message) in BAD.items():
        print(case)  # shown where it fails
        if name in SEVERAL:
            if scores is not None:
                scores = np.array([[s, s] for s in scores]).reshape(-1, 2)
            labels = np.array(labels, np.int64) if case == "nothing" else labels
        with pytest.raises((TypeError, ValueError), match=message):
            {**BINARY, **SEVERAL}[name].fit(scores, labels, weights)


@pytest.mark.parametrize("name", [*BINARY, *SEVERAL])
def test_bad_new_scores_are_refused(name):
    f, y, w = class_data(13) if name in SEVERAL else binary_data("normal", 13)
    fitted = {**BINARY, **SEVERAL}[name].fit(f, y, w)
    for bad in (np.full_like(f, np.nan), np.inf + f, None, 0.5, f[None], ["a"]):
        with pytest.raises((TypeError, ValueError), match="scores must"):
            fitted(bad)
    if name in SEVERAL:
        with pytest.raises(ValueError, match="scores must have 3 columns"):
            fitted(f[:, :2])
        with pytest.raises(ValueError, match="at least 2 columns"):
            {**BINARY, **SEVERAL}[name].fit(f[:, :1], y, w)


class Falling:
    def cuts(self, scores, totals, bins):
        return np.arange(bins - 1, 0, -1.0)[None]


def test_edges_that_fall_are_refused():
    with pytest.raises(ValueError, match="edges must give one row of 3 finite nondecreasing cuts"):
        Binning(4, Falling()).fit([0.0, 1.0], [0, 1])
    with pytest.raises(ValueError, match="finite nondecreasing cuts"):
        Binning(4).fit([-1.7e308, 1.7e308], [0, 1])
    assert Binning(4, EqualFrequency()).fit([-1.7e308, 1.7e308], [0, 1]).rates.tolist() == [0, 0, 0, 1]


def test_no_optimum_is_an_error(monkeypatch):
    with pytest.raises(NotConverged, match="the sigmoid must converge"):
        Platt().fit([-1e300, -1e299, 1e299, 1e300], [0, 1, 0, 1])
    far = [-1e200, -1.0, 2.0, 1e200], [0, 1, 0, 1]
    assert BetaCalibration().fit(*far)(far[0]) == pytest.approx([0, 0.5, 0.5, 1], abs=1e-12)
    monkeypatch.setattr("venn.maps.beta_calibration.ROUNDS", 3)
    with pytest.raises(NotConverged, match="beta calibration must converge within 3 steps"):
        BetaCalibration().fit(*far)
