"""The file of a record: its contents, and the checks when it is read."""

from __future__ import annotations

from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from venn.labels import read_labels
from venn.monitors.kind import NUMBER
from venn.monitors.kinds import FORECAST, KINDS, MIXED
from venn.online import archive
from venn.prediction import (
    EACH_CLASS,
    EACH_GROUP,
    ERROR_BOUND,
    ERROR_RATE,
    LOG_LOSS,
    LONG_RUN,
    NOTHING,
    PREDICTED_LABEL,
    REALISED_ROW,
    Floats,
)

GUARANTEES = (
    PREDICTED_LABEL,
    REALISED_ROW,
    EACH_CLASS,
    ERROR_RATE,
    ERROR_BOUND,
    NOTHING,
    MIXED,
    EACH_GROUP,
    LONG_RUN,
    LOG_LOSS,
)
FORMAT, VERSION = "vennstream.record", 3


class SavedTrack(NamedTuple):
    """The n steps of one predictor."""

    kind: str | None
    guaranteed: str | None
    rows: NDArray[Any]  #: (n,) scores, with the columns of its kind
    tails: Floats  #: (n * breadth of its kind,)


RARE = ("before", "restarts")  # written where they say anything


class SavedRecord(NamedTuple):
    """All that a file holds: the parameters of a `Record`, and its n steps."""

    parameters: dict[str, Any]
    seconds: float
    truth: NDArray[Any]  #: (n,) codes
    tracks: list[SavedTrack]


def write(path: Path, saved: SavedRecord) -> None:
    """Write a record; the file appears whole or not at all."""
    header = {
        "format": FORMAT,
        "version": VERSION,
        "steps": len(saved.truth),
        **saved.parameters["classes"].header,
        "kinds": [track.kind for track in saved.tracks],
        "guaranteed": [track.guaranteed for track in saved.tracks],
        **{key: saved.parameters[key] for key in ("names", "data", "shuffle", "parameters", "clip")},
        "seconds": saved.seconds,
    }
    header |= {key: saved.parameters[key] for key in RARE if saved.parameters[key]}
    members: dict[str, NDArray[Any]] = {"truth": saved.truth}
    for place, track in enumerate(saved.tracks):
        members[f"predictor_{place}"], members[f"row_{place}"] = track.rows, track.tails
    archive.write(path, header, members)


def read(file: IO[bytes]) -> SavedRecord:
    """Return what `write` wrote, or raise: not always a ValueError, see `archive.read`."""
    header, members = archive.read(file)
    if header.get("format") != FORMAT:
        raise ValueError(f"its header does not say {FORMAT!r}")
    if header.get("version") != VERSION:
        raise ValueError(f"its format has version {header.get('version')!r}, this program reads {VERSION}")
    steps = _typed(header, "steps", int)
    space = read_labels(header)
    names = _typed(header, "names", list)
    described = _typed(header, "parameters", dict)
    for text in (*names, *described, *described.values()):
        if not isinstance(text, str):
            raise ValueError(f"its header holds {text!r} where text belongs")
    parameters = {
        "classes": space,
        "names": names,
        "data": _typed(header, "data", str, type(None)),
        "shuffle": _typed(header, "shuffle", int, type(None)),
        "parameters": described,
        "clip": _typed(header, "clip", float),
        **{key: _typed(header, key, dict) if key in header else {} for key in RARE},
    }
    seconds = _typed(header, "seconds", float)
    kinds, guaranteed = _typed(header, "kinds", list), _typed(header, "guaranteed", list)
    expected: dict[str, tuple[np.dtype[Any], int]] = {"truth": (space.dtype, steps)}
    for place, name in enumerate(kinds):
        kind = KINDS.get(str(name), FORECAST)  # the record refuses an unknown kind when it takes the steps over
        expected[f"predictor_{place}"] = kind.row, steps
        expected[f"row_{place}"] = NUMBER, steps * kind.breadth(space)
    if members.keys() != expected.keys() or not len(kinds) == len(guaranteed) == len(names):
        raise ValueError("its members are not those its header names")
    for one in guaranteed:
        if one not in (None, *GUARANTEES):
            raise ValueError(f"its header says {one!r} where a guarantee belongs")
    arrays = {name: archive.expected(members[name], *form) for name, form in expected.items()}
    tracks = [
        SavedTrack(kinds[place], guaranteed[place], arrays[f"predictor_{place}"], arrays[f"row_{place}"])
        for place in range(len(names))
    ]
    codes = [arrays["truth"], *(track.rows[field] for track in tracks for field in ("predicted", "realised_class"))]
    if not all(map(space.holds, codes)):
        raise ValueError("it has labels outside its classes")
    return SavedRecord(parameters, seconds, arrays["truth"], tracks)


def _typed(header: dict[str, Any], key: str, *types: type) -> Any:
    value = header.get(key)
    if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
        raise ValueError(f"its header has {value!r} as {key}")
    return value
