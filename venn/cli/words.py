"""A record summarised in plain words."""

from __future__ import annotations

import math

from venn.online.curves import SetCurves
from venn.online.record import Record
from venn.prediction import ERROR_RATE, PREDICTED_LABEL

SHARP, PUBLISHED = "abers", "venn"


def plain_words(record: Record) -> list[str]:
    """Say in plain words how the accuracy of each predictor compares with its claim.

    If the predicted label is guaranteed, chance allows the sum of departures sqrt(N ln(2 / 0.05) / 2).
    """
    lines, claims = [], []
    for name in record:
        curves = record[name]
        if isinstance(curves, SetCurves):
            lines.append(_about_sets(name, curves, record.guaranteed[name] == ERROR_RATE))
            continue
        accuracy, lower, upper = curves.accuracy[-1], curves.lower[-1], curves.upper[-1]
        if curves.interval:
            inside = curves.inside
            share = "at every step" if inside.all() else f"at {int(inside.sum())} of {len(inside)} steps"
            end = f"{'inside' if inside[-1] else 'outside'} its band [{lower:.3f}, {upper:.3f}]"
            if not inside[-1] and record.guaranteed[name] == PREDICTED_LABEL:
                gap, chance = max(lower - accuracy, accuracy - upper), math.sqrt(math.log(2 / 0.05) / (2 * len(record)))
                end += f" by {gap:.4f}, {'within' if gap <= chance else 'BEYOND'} the {chance:.3f} that chance allows"
            lines.append(f"{name}: the accuracy, {accuracy:.3f}, ends {end}; it was inside {share}.")
        else:
            claims.append(f"{name} {lower - accuracy:+.3f}")
    if SHARP in record and PUBLISHED in record:
        means = record.means()
        pairs = (
            f"{field.replace('_', ' ')} {means[SHARP][field]:.3f} against {means[PUBLISHED][field]:.3f}"
            for field in ("width", "log_loss")
        )
        lines.append(f"{SHARP} beside the published {PUBLISHED}: {', '.join(pairs)}.")
    if claims:
        lines.append(f"Mean claimed probability minus accuracy: {', '.join(claims)}.")
    return lines


def _about_sets(name: str, curves: SetCurves, exact: bool, epsilon: float = 0.05) -> str:
    """Compare the number of errors with the central 95 % of the binomial distribution that the theorem gives.

    Sets of plain p-values (not `exact`) may miss the true label less often.
    """
    from scipy.stats import binom

    n, errors = len(curves), int(curves.errors(epsilon)[-1])
    low, high = (int(limit) for limit in binom.interval(0.95, n, epsilon))
    if not exact:
        low = 0
    inside = "within" if low <= errors <= high else "BEYOND"
    return (
        f"{name}: {errors} of {n} sets at significance {epsilon} missed the true label, {inside} the {low} to {high} "
        f"that chance allows; {curves.set_size(epsilon)[-1]:.2f} labels a set."
    )
