"""All pieces of a monitor's evidence a step further at once: reading each source, betting, and whether anything rings.

The memory of a piece is a row of numbers. First come the source's event and its class, the last p-value, a place for
what the bets write, and whatever the piece needs to know whether it rings; then the memories of its bets.
"""

from __future__ import annotations

import numpy as np

from venn._compiled.bounds import deviation_steps, forward_steps
from venn._compiled.jit import compiled, loops
from venn._compiled.martingales import run_jumpers, shiryaev_roberts_after
from venn._compiled.outcomes import OWN, PROBABILITY, REALISED, REALISED_CLASS

#: What a source looks at; the sources say which it is.
LABEL_RIGHT, ROW_RIGHT, LIKELIER, CLASS, P_VALUE = range(5)
REFUSED, CALM, RINGS = -1, 0, 1  # nothing has changed; nothing rings; something may
EVENT, CODE, P, WRITTEN = 0, 1, 2, 3
# Of jumpers: thresholds of both statistics, the second one, ln(1 / level) of a band, NaN without one, whether its end
# no longer rings, what it writes, and its memory.
FIRST, AGAIN, SUM, LEVEL, LEFT, BOUNDS, BAND, BETS = 4, 5, 6, 7, 8, 9, 11, 14
# Of forecasts: the threshold, the step as its process reads it, the process.
TOP, STEP, PROCESS = 4, 5, 8


# As in Python no multiplication fuses with an addition; a flag that is not given would be that of the caller.
@loops(error_model="numpy", fastmath=False, nogil=True)
def read(event, code, truth, predicted, numbers, row, tau):  # type: ignore[no-untyped-def]
    """Return the p-value and the deviation of a step, as `Event.read` and `TrueLabel.read` do; NaN: there is none."""
    if event == P_VALUE:
        return numbers[PROBABILITY], np.nan
    if event == LABEL_RIGHT:
        happened, probability = predicted == truth, numbers[OWN]
    elif event == ROW_RIGHT:
        happened, probability = numbers[REALISED_CLASS] == truth, numbers[REALISED]
    else:
        happened, probability = truth == code, row[int(code)]
        if event == LIKELIER:
            likely = probability >= 0.5
            happened = happened == likely
            probability = 1.0 - probability + likely * (2.0 * probability - 1.0)
    missed = max(1.0 - probability, 0.0)
    p = missed + tau * (1.0 - missed) if happened else tau * missed
    return p, happened - (1.0 - missed)


@compiled
def read_all(rows, latest, place, truth, predicted, numbers, row, tau):  # type: ignore[no-untyped-def]
    """Write each p-value into its row, and the deviation, if any, into `latest[place]`; return whether all may be."""
    fine = True
    for i in range(rows.shape[0]):
        p, deviation = read(rows[i, EVENT], rows[i, CODE], truth, predicted, numbers, row, tau)
        fine = fine and 0.0 <= p <= 1.0 and not abs(deviation) > 1.0
        rows[i, WRITTEN] = p
        latest[place, i] = p if deviation != deviation else deviation
    for i in range(rows.shape[0] if fine else 0):  # else the last p-value stays
        rows[i, P] = rows[i, WRITTEN]
    return fine


@compiled
def jumpers_step(rates, rows, latest, place, truth, predicted, numbers, row, tau):  # type: ignore[no-untyped-def]
    """Take all pieces one step further, each with two composite jumpers and a band; return whether one may ring."""
    if not read_all(rows, latest, place, truth, predicted, numbers, row, tau):
        return REFUSED
    found, size = CALM, 2 + 6 * rates.shape[0]
    for i in range(rows.shape[0]):
        p, written = rows[i, P : P + 1], rows[i, WRITTEN : WRITTEN + 1]
        run_jumpers(rates, rows[i, BETS : BETS + size], p, written)
        if written[0] >= rows[i, FIRST]:
            found = RINGS
        before = rows[i, BETS + size + 1]
        run_jumpers(rates, rows[i, BETS + size :], p, written)
        rows[i, SUM] = shiryaev_roberts_after(rows[i, SUM], written[0] - before)
        if rows[i, SUM] >= rows[i, AGAIN]:
            found = RINGS
        if rows[i, LEVEL] == rows[i, LEVEL]:
            bounds = rows[i, BOUNDS:BAND].reshape(1, 2)
            deviation_steps(rows[i, LEVEL : LEVEL + 1], rows[i, BAND:BETS], latest[place, i : i + 1], bounds)
            if abs(bounds[0, 0]) >= bounds[0, 1] and rows[i, LEFT] == 0.0:
                found = RINGS
    return found


@compiled
def forecasts_step(bets, rows, latest, place, truth, predicted, numbers, row, tau):  # type: ignore[no-untyped-def]
    """Take all pieces one step further, each with a forward e-process; return whether one may ring."""
    if not read_all(rows, latest, place, truth, predicted, numbers, row, tau):
        return REFUSED
    found = CALM
    for i in range(rows.shape[0]):
        deviation, written = latest[place, i], rows[i, WRITTEN : WRITTEN + 1]
        step = rows[i, STEP:PROCESS].reshape(3, 1)
        step[0, 0] = deviation > 0.0
        step[1, 0] = step[2, 0] = 1.0 - deviation if deviation > 0.0 else -deviation
        forward_steps(bets, rows[i, PROCESS:], step, written)
        if written[0] >= rows[i, TOP]:
            found = RINGS
    return found


@compiled
def jumpers_steps(rates, rows, latest, place, truths, predicted, numbers, labels, taus):  # type: ignore[no-untyped-def]
    """Take all pieces n steps further as `jumpers_step` does; return how many there are before one that is not calm.

    That step is not undone.

    Parameters
    ----------
    truths, predicted, taus : (n,) float64
    numbers, labels : (n, 9) and (n, c) float64
    """
    for i in range(truths.shape[0]):
        step = jumpers_step(rates, rows, latest, place + i, truths[i], predicted[i], numbers[i], labels[i], taus[i])
        if step != CALM:
            return i
    return truths.shape[0]


@compiled
def forecasts_steps(bets, rows, latest, place, truths, predicted, numbers, labels, taus):  # type: ignore[no-untyped-def]
    """Take all pieces n steps further as `forecasts_step` does; return how many there are before one that is not calm.

    That step is not undone.

    Parameters
    ----------
    truths, predicted, taus : (n,) float64
    numbers, labels : (n, 9) and (n, c) float64
    """
    for i in range(truths.shape[0]):
        step = forecasts_step(bets, rows, latest, place + i, truths[i], predicted[i], numbers[i], labels[i], taus[i])
        if step != CALM:
            return i
    return truths.shape[0]
