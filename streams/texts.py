"""What texts mean: which stand for a missing value, and which are one text written in several ways."""

from __future__ import annotations

import inspect
import unicodedata
import warnings
from collections.abc import Collection, Hashable, Iterable, Mapping
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Any, Literal

from streams.checks import is_missing

#: Texts that stand for a missing value, whatever blanks are around them: in features, in labels, in every source.
MISSING = ("", "?", "NA", "N/A", "n/a", "#N/A", "#NA", "<NA>", "nan", "NaN", "NAN", "NaT", "null", "NULL", "None")
#: Those of them that may as well be a name: Namibia's code, North America, "not applicable".
NAMES = ("NA",)
GROUPS = 3  # groups of alike texts that a warning names


class Doubtful(UserWarning):
    """What data hold and hardly mean: `what` it is, and the `remedy` in a program.

    Attributes
    ----------
    doubt : "identifier", "alike" or "missing"
        A column that might be left out, texts that might be merged, a text that might mean a missing value.
    name : str
        The column that might be left out, or the text.
    """

    def __init__(self, what: str, remedy: str, doubt: Literal["identifier", "alike", "missing"], name: str) -> None:
        super().__init__(what, remedy, doubt, name)
        self.what, self.remedy, self.doubt, self.name = what, remedy, doubt, name

    def __str__(self) -> str:
        return self.what + self.remedy


def warn(doubtful: Doubtful) -> None:
    """Warn at the line that called this package."""
    frame, level = inspect.currentframe(), 1
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "streams":
        frame, level = frame.f_back, level + 1
    warnings.warn(doubtful, stacklevel=level)


def means_missing(text: str, names: bool = False) -> bool:
    """Whether a text stands for a missing value; in a column of `names`, one that may be a name does not.

    Examples
    --------
    >>> means_missing(" nan "), means_missing("NA"), means_missing("NA", names=True)
    (True, True, False)
    """
    bare = text.strip()
    return bare in MISSING and not (names and bare in NAMES)


def lacks_label(label: Any, classes: Collection[Any], names: bool) -> bool:
    """Whether a label of any type stands for a missing one; none of the declared classes does.

    Examples
    --------
    >>> lacks_label(None, (), names=True), lacks_label("nan", (), names=True), lacks_label("nan", ("nan",), names=True)
    (True, True, False)
    """
    if isinstance(label, str):
        return means_missing(label, names) and label not in classes
    return is_missing(label)


@lru_cache(4096, typed=True)  # True and 1 are one key otherwise
def plain(text: Hashable) -> Hashable:
    """Return what all ways to write a text have in common.

    The same are texts that differ in blanks, capitals, a dot at the end, the form of a number, or the Unicode form.

    Examples
    --------
    >>> plain(" <=50K. ") == plain("<=50k"), plain("1") == plain("1.0"), plain("1") == plain("1.5")
    (True, True, False)
    """
    bare = str(text)
    if not bare.isascii():
        bare = unicodedata.normalize("NFKC", bare)
        # What is not seen: marks of the order of bytes, joiners, soft hyphens.
        bare = "".join(character for character in bare if unicodedata.category(character) != "Cf")
        bare = unicodedata.normalize("NFKC", bare.casefold())
    bare = " ".join(bare.split()).casefold()
    try:
        number = Decimal(bare) if "_" not in bare else None
    except InvalidOperation:
        number = None
    if number is not None and number.is_finite():
        return number  # equal to all numbers of its value, however large
    return bare.rstrip(".").rstrip() or bare


def alike(texts: Iterable[Any]) -> list[list[Any]]:
    """Return the groups of two or more texts that are one, written differently; in each the shortest comes first.

    Examples
    --------
    >>> alike(["<=50K.", ">50K", "<=50K", "1", "1.0"])
    [['1', '1.0'], ['<=50K', '<=50K.']]
    """
    groups: dict[Hashable, list[Any]] = {}
    for text in texts:
        groups.setdefault(plain(text), []).append(text)
    several = [sorted(group, key=_shortness) for group in groups.values() if len(group) > 1]
    return sorted(several, key=lambda group: str(group[0]))


def merged(texts: Iterable[Any]) -> dict[Any, Any]:
    """Return which text stands for each of those that are written differently: it does not depend on their order.

    Examples
    --------
    >>> merged(["<=50K.", ">50K", "<=50K"])
    {'<=50K.': '<=50K'}
    """
    return {text: group[0] for group in alike(texts) for text in group[1:]}


def doubt_names(where: str, counts: Mapping[Any, int], what: str) -> None:
    """Warn of names that are written differently and count as several, and of one that may mean a missing value.

    Parameters
    ----------
    where : str
    counts : mapping from name to its number of rows
    what : "labels" or "values"
    """
    rows = sum(counts.values())
    groups = alike(counts)
    if groups:
        shown = [" and ".join(f"{one!r} ({counts[one]:,} of {rows:,} rows)" for one in group) for group in groups]
        more = f", and {len(groups) - GROUPS} more" if len(groups) > GROUPS else ""
        several = "classes" if what == "labels" else "values"
        text = (
            f"{where}: the {what} {'; '.join(shown[:GROUPS])}{more} are the same written differently, and count as "
            f"several {several}"
        )
        warn(Doubtful(text, "; merge_alike=True makes them one", "alike", str(groups[0][0])))
    for name in counts:
        if isinstance(name, str) and name.strip() in NAMES:
            text = f"{where}: {name!r} ({counts[name]:,} of {rows:,} rows) counts as one of the {what}"
            remedy = "; if it means a missing one, give it as such (missing=, or NaN in place of it)"
            warn(Doubtful(text, remedy, "missing", name.strip()))


def _shortness(text: Any) -> tuple[int, str]:
    shown = str(text)
    return len(shown), shown
