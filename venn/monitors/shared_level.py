"""Monitors of several predictors on one stream that keep one promise together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, overload

from venn.labels import LabelSpace
from venn.machines.scale import FIRST
from venn.monitors.class_drift import ClassDrift
from venn.monitors.drift import ABOUT, Drift
from venn.monitors.monitor import Monitor
from venn.monitors.naming import MOST
from venn.monitors.rankings import AmongAll
from venn.monitors.verdict import OF_CLASSES
from venn.parameters import above_one, by_name, fraction, integer, several_names
from venn.prediction import Label
from venn.predictors.learning import elementary
from venn.schedules import periods


@overload
def together(
    names: Iterable[str], classes: LabelSpace | Sequence[Label], *,
    level: float = 0.01, run_length: float = 100_000, objects: None = None, examples: None = None,
    restarts: Mapping[str, Sequence[int]] | None = None, spare: int = 0, **parameters: Any,
) -> dict[str, Monitor]: ...  # fmt: skip


@overload
def together(
    names: Iterable[str], classes: LabelSpace | Sequence[Label], *,
    level: float = 0.01, run_length: float = 100_000, objects: Drift | None = None,
    examples: ClassDrift | None = None, restarts: Mapping[str, Sequence[int]] | None = None, spare: int = 0,
    **parameters: Any,
) -> dict[str, Monitor | Drift | ClassDrift]: ...  # fmt: skip


def together(
    names: Iterable[str],
    classes: LabelSpace | Sequence[Label],
    *,
    level: float = 0.01,
    run_length: float = 100_000,
    objects: Drift | None = None,
    examples: ClassDrift | None = None,
    restarts: Mapping[str, Sequence[int]] | None = None,
    spare: int = 0,
    **parameters: Any,
) -> Any:
    """Return a monitor for each predictor, with a share of the level, so that the promise is that of all together.

    Watch conformal p-values beside a Venn or Venn-Abers predictor of the same machine: they cost little more, and rank
    how well each label fits its object, where the others only count how often events happen. Of k monitors each has
    level / k and k run_length. So, where the theorems of `Monitor` hold for each, the probability that any of the
    detectors with a level ever rings is at most `level`, however much the predictors have in common; and those of
    `ShiryaevRoberts` together ring at most n / run_length times in n steps on average.

    Parameters
    ----------
    names : mapping of str to Predictor, such as a panel, or iterable of str
        Of the predictors; different, at least one. A mapping also says when each trains: where what is proved holds
        from one training to the next only, its monitor's bets begin anew there, with a share of its level (`restarts`).
        What is not to be watched is left out.
    classes : sequence of c labels, or LabelSpace
    level : float in (0, 1), default 0.01
    run_length : float > 1, default 100000
    objects : Drift, optional
        A pattern: one like it watches the objects as well, under the name "objects", with one more share of the level.
    examples : ClassDrift, optional
        A pattern: one like it watches the examples as well, under the name "classes". It has one more share of the
        level; with `objects` these two have it together, half each.
    restarts : mapping of str to sequence of int, optional
        For each predictor the steps after which its monitor's bets begin anew. By default those of its trainings where
        `names` is a mapping, else none.
    spare : int from 0 to 10**6, default 0
        Further shares of the level, which belong to others, such as what watches the objects elsewhere.
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
    abers: Wait, too early to say: no example of 300.
    """
    each = several_names("names", names)
    if not isinstance(objects, Drift | None):
        raise TypeError(f"objects must be a Drift, or None, got {objects!r}")
    if not isinstance(examples, ClassDrift | None):
        raise TypeError(f"examples must be a ClassDrift, or None, got {examples!r}")
    watchers = [(ABOUT, objects), (OF_CLASSES, examples)]
    others: list[tuple[str, Drift | ClassDrift]] = [(name, one) for name, one in watchers if one is not None]
    shares = len(each) + bool(others) + integer("spare", spare, 0, 10**6)
    share, apart = fraction("level", level) / shares, above_one("run_length", run_length) * shares
    if restarts is None and isinstance(names, Mapping):
        restarts = trainings_of(names)
    begins = by_name("restarts", restarts, "steps")
    found: dict[str, Monitor | Drift | ClassDrift] = {}
    for name in each:
        found[name] = Monitor(classes, level=share, run_length=apart, restarts=begins.get(name, ()), **parameters)
    for name, one in others:
        if name in found:
            raise ValueError(f"names must not hold {name!r}, the name of what watches {name}, got {each!r}")
        part = {"level": share / len(others), "run_length": apart * len(others)}
        found[name] = type(one).made_of(one.parameters | part)
    return found


BAG = 5000  # objects that new ones are compared with: time and memory of a step do not grow


def watchers(classes: Sequence[Label], columns: Sequence[str] | None = None) -> dict[str, Any]:
    """Return patterns of what watches objects, their columns, and examples of 2 to 100 classes, as `together` takes it.

    Columns go by their names where there are at most 100 different ones.
    """
    named = columns is None or not 0 < len(columns) <= MOST or len({*columns}) < len(columns)
    ranking, few = AmongAll(size=BAG), 2 <= len(classes) <= MOST
    objects = Drift(ranking, first=FIRST, columns=True if named else tuple(columns or ()))
    return {"objects": objects, "examples": ClassDrift(classes, ranking, first=FIRST) if few else None}


def beside(panel: Any) -> dict[str, Any]:
    """Return what watches the objects and classes of a model that watches itself, with the share that it has spared."""
    own = next(iter(panel.monitors.values()))
    found = {OF_CLASSES if name == "examples" else ABOUT: one
             for name, one in watchers(panel.classes).items() if one is not None}  # fmt: skip
    part = {"level": own.level / len(found), "run_length": own.run_length * len(found)}
    return {name: type(one).made_of(one.parameters | part) for name, one in found.items()}


def trainings(predictor: Any) -> tuple[int, ...]:
    """Return the steps from now on after which the bets of a predictor's monitor begin anew.

    Examples
    --------
    >>> import venn
    >>> schedule = venn.schedules.Prefix(first=1000, last=2000)
    >>> machine = venn.LeastSquaresSVM(venn.RBF(1.0), C=1, classes=["no", "yes"])
    >>> trainings(venn.InductiveVennAbers(machine, schedule=schedule)), trainings(venn.Conformal(machine))
    ((1000, 2000), ())
    """
    parts = [part for part in elementary([predictor]) if hasattr(part, "schedule")]
    return tuple(sorted({step - part.n for part in parts for step in periods(part.schedule, part.n)}))


def trainings_of(predictors: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """Return for each predictor that trains the steps after which its bets begin anew."""
    return {name: found for name, one in predictors.items() if (found := trainings(one))}
