"""Monitors of several predictors on one stream that keep one promise together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from venn.labels import LabelSpace
from venn.monitors.monitor import Monitor
from venn.parameters import above_one, fraction, members
from venn.prediction import Label


def together(
    names: Iterable[str],
    classes: LabelSpace | Sequence[Label],
    *,
    level: float = 0.01,
    run_length: float = 100_000,
    **parameters: Any,
) -> dict[str, Monitor]:
    """Return a monitor for each predictor, with a share of the level, so that the promise is that of all together.

    Watch conformal p-values beside a Venn or Venn-Abers predictor of the same machine: they cost little more, and rank
    how well each label fits its object, where the others only count how often events happen. Of k monitors each has
    level / k and k run_length. So, where the theorems of `Monitor` hold for each, the probability that any of the
    detectors with a level ever rings is at most `level`, however much the predictors have in common; and those of
    `ShiryaevRoberts` together ring at most n / run_length times in n steps on average.

    Parameters
    ----------
    names : iterable of str
        Of the predictors, such as a panel; different, at least one.
    classes : sequence of c labels, or LabelSpace
    level : float in (0, 1), default 0.01
    run_length : float > 1, default 100000
    **parameters
        Others of `Monitor`, the same for each.

    Raises
    ------
    TypeError, ValueError
        A parameter is not as described.

    Examples
    --------
    >>> monitors = together(["abers", "conformal"], ["no", "yes"])
    >>> monitors["abers"].level, monitors["conformal"].run_length
    (0.005, 200000.0)

    After some steps, `worst` has the verdict on both:

    >>> from venn.monitors.verdict import worst
    >>> print(worst({name: monitor.verdict() for name, monitor in monitors.items()}))
    abers: too early to say: no example of 300
    """
    if isinstance(names, str):
        raise TypeError(f"names must be several names, such as a panel, got {names!r}")
    each = members("names", names, "str")
    if not each or len(set(each)) < len(each):
        raise ValueError(f"names must be different, at least one, got {each!r}")
    share, apart = fraction("level", level) / len(each), above_one("run_length", run_length) * len(each)
    return {name: Monitor(classes, level=share, run_length=apart, **parameters) for name in each}
