"""Sharp as well as valid: log losses reported for Venn-Abers by class on leave-one-out scores.

They come from one shuffle each, of another program; so ours, from eight, must agree within what one shuffle
varies by, estimated here.
"""

import math

import numpy as np
import pytest

import streams
import venn

# gamma, C, steps, log loss, Brier loss
REPORTED = {
    "car": (0.5, 10.0, 700, 0.243, 0.124), "pima": (0.125, 1.0, 700, 0.511, 0.342),
    "ionosphere": (0.029, 1.0, 351, 0.194, 0.108), "german": (0.016, 1.0, 700, 0.512, 0.341),
    "wine_red": (0.091, 1.0, 700, 1.028, 0.557), "optdigits": (0.016, 10.0, 500, 0.385, 0.161),
}  # fmt: skip


@pytest.mark.program
@pytest.mark.parametrize("name", REPORTED)
def test_reported_losses_are_reached_within_their_noise(name):
    gamma, C, steps, *reported = REPORTED[name]
    shuffles, losses, scaled = 8, [], []
    for seed in range(shuffles):
        try:
            stream = streams.load(name, shuffle=seed).take(steps)
        except FileNotFoundError as error:
            pytest.skip(str(error))
        machine = venn.LeastSquaresSVM(venn.RBF(gamma), C, stream.classes)
        readers = {"abers": venn.TransductiveVennAbers(machine)}
        if seed < 2:
            readers["platt"] = venn.ScoreCalibrator(machine, venn.maps.Platt())
            readers["leave_one_out"] = venn.ScoreCalibrator(
                machine, venn.maps.Platt(), venn.predictors.LeaveOneOutScores()
            )
        means = venn.replay(stream, venn.Panel(**readers), progress=False).means()
        losses.append([means["abers"]["log_loss"], means["abers"]["brier"]])
        if seed < 2:
            scaled.append(min(means["platt"]["log_loss"], means["leave_one_out"]["log_loss"]))
    spread = np.std(losses, axis=0, ddof=1)
    assert (abs(np.mean(losses, axis=0) - reported) < 4 * spread * math.sqrt(1 + 1 / shuffles)).all()
    # Not worse than the better sigmoid by more than a few percent, on any of the sets.
    assert np.mean(losses[:2], axis=0)[0] < 1.06 * np.mean(scaled)
