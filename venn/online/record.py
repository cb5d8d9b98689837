"""What happened in a replay: one row per predictor and step, tables, figures, a file."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from venn.online import archive
from venn.online.curves import Curves, PerStep, cumulate
from venn.prediction import (
    EACH_CLASS,
    NOTHING,
    PREDICTED_LABEL,
    REALISED_ROW,
    ClassIntervals,
    Forecast,
    Label,
    Multiprobability,
    Prediction,
)
from venn.show import plot, terminal

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.table import Table

# One row per step; everything else a reader asks for follows from these columns and the true labels.
ROW = np.dtype(
    [
        ("predicted", "<i4"),
        ("lower", "<f8"),
        ("upper", "<f8"),
        ("probability", "<f8"),  # of the true label, by the point forecast
        ("brier", "<f8"),
        ("realised_class", "<i4"),  # most probable class in the row of the true label; predicted class for pairs
        ("realised", "<f8"),  # its probability there; that of its pair under the true hypothesis
        ("unanimous", "?"),
    ]
)
TRUTH = np.dtype("<i4")
GUARANTEES = (PREDICTED_LABEL, REALISED_ROW, EACH_CLASS, NOTHING, "mixed")
KINDS = ("Forecast", "Multiprobability", "ClassIntervals")
# Steps are kept raw and reduced together, so that numpy's cost per call is paid once a block; with
# many classes the block shrinks to keep its (block, c, c) probabilities at 2 MiB.
BLOCK, BLOCK_NUMBERS = 256, 2**18
SUM_TOLERANCE = 1e-6
FORMAT, VERSION = "vennstream.record", 2


class Record:
    """Every prediction of a run, scored.

    Parameters
    ----------
    classes : sequence of c labels
    names : sequence of str
        The predictors, in the order in which they are shown.
    data : str, optional
        Name of the data.
    shuffle : int, optional
        Seed of the shuffle that ordered the data; an attribute that may be set later.
    parameters : mapping of str to str, optional
        What each predictor was, in words.
    clip : float in [0, 1), default 1e-15
        Probabilities of the true label below `clip` count as `clip` in the log loss; each predictor's
        curves say how many did. 0 lets a loss be infinite.

    Attributes
    ----------
    guaranteed : dict of str to str
        What is a theorem about each predictor's predictions so far, as their `guaranteed` says; "mixed" where
        they do not agree, and "nothing" before the first.
    seconds : float
        Time of the replay, summed over the calls of `venn.replay`; 0 for a loop written by hand.

    Raises
    ------
    ValueError
        No class, a class or a name that repeats, no name, or a clip out of range.

    See Also
    --------
    venn.replay : fills a record from a stream.

    Examples
    --------
    A loop written by hand keeps its record with `update`:

    >>> record = Record(("no", "yes"), ["venn"])
    >>> for y in ("yes", "yes", "no"):
    ...     rows = np.array([[0.5, 0.5], [0.25, 0.75]])
    ...     record.update({"venn": Multiprobability(rows, ("no", "yes"))}, y)
    >>> curves = record["venn"]
    >>> curves.accuracy.round(3), curves.lower, curves.upper
    (array([1.   , 1.   , 0.667]), array([0.5, 0.5, 0.5]), array([0.75, 0.75, 0.75]))
    >>> curves.per_step.hit
    array([ True,  True, False])
    """

    def __init__(
        self,
        classes: Sequence[Label],
        names: Sequence[str],
        *,
        data: str | None = None,
        shuffle: int | None = None,
        parameters: Mapping[str, str] | None = None,
        clip: float = 1e-15,
    ) -> None:
        if isinstance(names, str):
            raise TypeError(f"names must be a sequence of str, got {names!r}")
        self.classes = tuple(classes)
        self.names = tuple(names)
        self._codes: dict[Label, int] = {label: code for code, label in enumerate(self.classes)}
        if not self.classes or len(self._codes) < len(self.classes):
            raise ValueError(f"classes must be at least one label, each once, got {self.classes!r}")
        if not self.names or len(set(self.names)) < len(self.names):
            raise ValueError(f"names must be at least one name, each once, got {self.names!r}")
        if not 0 <= clip < 1:
            raise ValueError(f"clip must lie in [0, 1), got {clip}")
        self.data = data
        self.shuffle = shuffle
        self.parameters = dict(parameters or {})
        self.clip = float(clip)
        self.seconds = 0.0
        self._block = min(BLOCK, max(1, BLOCK_NUMBERS // len(self.classes) ** 2))
        self._tracks = {name: _Track(name, self.classes, self._block) for name in self.names}
        self._truth = np.empty(BLOCK, TRUTH)
        self._n = 0  # steps recorded
        self._reduced = 0  # of them, steps already in the tracks' rows

    # ---------------------------------------------------------------- recording

    def update(self, predictions: Mapping[str, Prediction], y: Label) -> None:
        """Record one step.

        Parameters
        ----------
        predictions : mapping of str to Forecast, Multiprobability or ClassIntervals
            One for each name.
        y : label
            The true label.

        Raises
        ------
        ValueError
            An unknown label, other names, other classes, or numbers that are no probabilities.
            The step is not recorded.
        TypeError
            A prediction of another kind than the predictor's first one.
        """
        code = self._codes.get(y)
        if code is None:
            raise ValueError(f"y must be one of the classes {self.classes!r}, got {y!r}")
        if len(predictions) != len(self._tracks):
            raise ValueError(f"predictions must have the names {self.names!r}, got {tuple(predictions)!r}")
        slot = self._n - self._reduced
        for name, track in self._tracks.items():
            prediction = predictions.get(name)
            if prediction is None:
                raise ValueError(f"predictions must have the names {self.names!r}, got {tuple(predictions)!r}")
            track.put(slot, prediction)
        if self._n == len(self._truth):
            self._truth = np.concatenate([self._truth, np.empty_like(self._truth)])
        self._truth[self._n] = code
        self._n += 1
        if slot + 1 == self._block:
            self._reduce()

    def _reduce(self) -> None:
        if self._reduced < self._n:
            truth = self._truth[self._reduced : self._n]
            for track in self._tracks.values():
                track.reduce(self._reduced, truth)
            self._reduced = self._n

    # ------------------------------------------------------------------ reading

    @property
    def truth(self) -> NDArray[np.int32]:
        """(n,) codes of the true labels: positions in `classes`."""
        truth = self._truth[: self._n].copy()
        truth.setflags(write=False)
        return truth

    def __len__(self) -> int:
        return self._n

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __contains__(self, name: object) -> bool:
        return name in self._tracks

    def __getitem__(self, name: str) -> Curves:
        return cumulate(self._per_step(name), self._tracks[name].kind not in (None, "Forecast"), self.clip)

    @property
    def guaranteed(self) -> dict[str, str]:
        """What is a theorem about the predictions of each predictor."""
        return {name: track.guaranteed or NOTHING for name, track in self._tracks.items()}

    def _per_step(self, name: str) -> PerStep:
        if name not in self._tracks:
            raise KeyError(f"no predictor {name!r} in this record; it has {', '.join(self.names)}")
        self._reduce()
        return self._tracks[name].per_step(self._truth[: self._n], self.clip)

    def __repr__(self) -> str:
        return f"Record({self.data or 'unnamed data'}, {self._n} steps: {', '.join(self.names)})"

    def means(self) -> dict[str, dict[str, float]]:
        """Return the means over the whole run.

        Returns
        -------
        dict of name to dict
            With accuracy, lower, upper, width, log_loss and brier.

        Raises
        ------
        ValueError
            The record has no step.
        """
        if not self._n:
            raise ValueError("a record without steps has no means")
        means = {}
        for name in self.names:
            steps = self._per_step(name)
            means[name] = {
                "accuracy": float(steps.hit.mean()),
                "lower": float(steps.lower.mean()),
                "upper": float(steps.upper.mean()),
                "width": float(steps.width.mean()),
                "log_loss": float(steps.log_loss.mean()),
                "brier": float(steps.brier.mean()),
            }
        return means

    def running(self, name: str) -> tuple[float, float, float]:
        """Return accuracy, mean lower and mean upper bound so far, cheaply enough for a progress bar."""
        self._reduce()
        rows = self._tracks[name].rows[: self._n]
        hit = rows["predicted"] == self._truth[: self._n]
        return float(hit.mean()), float(rows["lower"].mean()), float(rows["upper"].mean())

    def table(self) -> str:
        """Return the means as plain text, one line per predictor."""
        return terminal.table(self.means(), self._title(), self._footnote())

    def __rich__(self) -> Table:
        """Return the table that a rich console prints."""
        return terminal.rich_table(self.means(), self._title(), self._footnote())

    def plot(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """Draw accuracy and claimed bounds against the number of examples, one panel per predictor.

        Parameters
        ----------
        path : str or path, optional
            Where to write the figure; the suffix chooses the format. Folders are made as needed.

        Returns
        -------
        matplotlib.figure.Figure

        Raises
        ------
        ImportError
            matplotlib is not installed.
        ValueError
            The record has no step.
        """
        if not self._n:
            raise ValueError("a record without steps has no curves to draw")
        curves = {name: self[name] for name in self.names}
        return plot.curves(
            {name: plot.Curve(c.accuracy, c.lower, c.upper, c.interval) for name, c in curves.items()},
            title=self._title(),
            path=path,
        )

    def _title(self) -> str:
        shuffle = "" if self.shuffle is None else f", shuffle {self.shuffle}"
        examples = "example" if self._n == 1 else "examples"
        return f"{self.data or 'stream'}: {self._n} {examples}, {len(self.classes)} classes{shuffle}"

    def _footnote(self) -> str:
        clipped = {name: self[name].clipped for name in self.names}
        counts = ", ".join(f"{name} {count}" for name, count in clipped.items() if count)
        return (
            f"Means over all steps. Log loss in nats, probabilities clipped below at {self.clip:g} "
            f"({'steps clipped: ' + counts if counts else 'no step clipped'})."
        )

    # --------------------------------------------------------------------- file

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the record to one file.

        The file is an npz archive without pickled objects: a JSON header, the true labels and one
        table per predictor, each with its checksum. It appears whole or not at all, and equal
        records make equal bytes. Missing folders are made.

        Parameters
        ----------
        path : str or path
            Used as it is; no suffix is added.

        Raises
        ------
        TypeError
            A class is not a str, int, float or bool.
        """
        self._reduce()
        members: dict[str, NDArray[Any]] = {"truth": self._truth[: self._n]}
        for position, track in enumerate(self._tracks.values()):
            members[f"predictor_{position}"] = track.rows[: self._n]
        header = {
            "format": FORMAT,
            "version": VERSION,
            "steps": self._n,
            "classes": [_scalar(label) for label in self.classes],
            "names": list(self.names),
            "kinds": [track.kind for track in self._tracks.values()],
            "guaranteed": [track.guaranteed for track in self._tracks.values()],
            "data": self.data,
            "shuffle": self.shuffle,
            "parameters": self.parameters,
            "clip": self.clip,
            "seconds": self.seconds,
        }
        archive.write(Path(path), header, members)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Record:
        """Read a record that `save` wrote; all arrays come back bit for bit.

        Raises
        ------
        FileNotFoundError
            There is no such file.
        ValueError
            The file is not a record, is damaged, holds pickled objects, claims more than it holds,
            or was written by another version of the format. The message names the file.
        """
        data = Path(path).read_bytes()
        # Whatever a damaged or hostile archive makes zipfile, numpy or json raise means one thing here.
        try:
            return cls._parse(data)
        except Exception as error:
            raise ValueError(f"{path} is not a readable record: {error}") from error

    @classmethod
    def _parse(cls, data: bytes) -> Record:
        header, members = archive.unpack(data)
        if header.get("format") != FORMAT:
            raise ValueError(f"its header does not say {FORMAT!r}")
        if header.get("version") != VERSION:
            raise ValueError(f"its format has version {header.get('version')!r}, this program reads {VERSION}")
        steps = _typed(header, "steps", int)
        classes = [_scalar(label) for label in _typed(header, "classes", list)]
        names = _typed(header, "names", list)
        parameters = _typed(header, "parameters", dict)
        for text in (*names, *parameters, *parameters.values()):
            if not isinstance(text, str):
                raise ValueError(f"its header holds {text!r} where text belongs")
        record = cls(
            classes,
            names,
            data=_typed(header, "data", str, type(None)),
            shuffle=_typed(header, "shuffle", int, type(None)),
            parameters=parameters,
            clip=_typed(header, "clip", float),
        )
        record.seconds = _typed(header, "seconds", float)
        kinds = _typed(header, "kinds", list)
        guaranteed = _typed(header, "guaranteed", list)
        expected = {"truth": TRUTH} | {f"predictor_{position}": ROW for position in range(len(names))}
        if members.keys() != expected.keys() or not len(kinds) == len(guaranteed) == len(names):
            raise ValueError("its members are not those its header names")
        arrays = {name: archive.array(members[name], dtype, steps) for name, dtype in expected.items()}
        record._truth = arrays["truth"]
        for position, track in enumerate(record._tracks.values()):
            if not (kinds[position] in KINDS or (kinds[position] is None and not steps)):
                raise ValueError(f"its header says {kinds[position]!r} where a kind of prediction belongs")
            if guaranteed[position] not in (None, *GUARANTEES):
                raise ValueError(f"its header says {guaranteed[position]!r} where a guarantee belongs")
            track.restore(arrays[f"predictor_{position}"], kinds[position])
            track.guaranteed = guaranteed[position]
        codes = [arrays["truth"]]
        for position in range(len(names)):
            codes += [arrays[f"predictor_{position}"][field] for field in ("predicted", "realised_class")]
        if not all(((code >= 0) & (code < len(classes))).all() for code in codes):
            raise ValueError("it has labels outside its classes")
        record._n = record._reduced = steps
        if not steps:
            record._truth = np.empty(BLOCK, TRUTH)  # doubling needs a start
        return record


class _Track:
    """Rows of one predictor: a block of raw probabilities, reduced into rows when full or read."""

    def __init__(self, name: str, classes: tuple[Label, ...], block: int) -> None:
        self.name = name
        self.classes = classes
        self.block = block
        self.kind: str | None = None  # of prediction; known from the first one on
        self.guaranteed: str | None = None
        self.rows = np.empty(BLOCK, ROW)

    def restore(self, rows: NDArray[Any], kind: str | None) -> None:
        probabilities = np.array([rows[name] for name in ("lower", "upper", "probability", "realised")])
        inside = (probabilities >= -SUM_TOLERANCE) & (probabilities <= 1 + SUM_TOLERANCE)
        if not inside.all() or not (rows["brier"] >= 0).all() or not (rows["lower"] <= rows["upper"]).all():
            raise ValueError(f"the rows of {self.name} hold numbers that are no probabilities")
        if kind is not None:
            self._start(kind)
        if len(rows) >= BLOCK:  # doubling must make room for a whole block
            self.rows = rows
        else:
            self.rows[: len(rows)] = rows

    def _start(self, kind: str) -> None:
        c = len(self.classes)
        self.kind = kind
        self._shape = {"Forecast": (c,), "Multiprobability": (c, c), "ClassIntervals": (c, 2)}[kind]
        self._raw = np.empty((self.block, *self._shape))
        self._predicted = np.empty(self.block, np.int64)

    def put(self, slot: int, prediction: Prediction) -> None:
        kind = type(prediction).__name__
        raw: Any
        if isinstance(prediction, Multiprobability):
            raw, total = prediction.probabilities, float(len(self.classes))
        elif isinstance(prediction, Forecast):
            raw, total = prediction.proba, 1.0
        elif isinstance(prediction, ClassIntervals):
            raw, total = prediction.pairs, None
        else:
            raise TypeError(f"{self.name} must predict one of {', '.join(KINDS)}, got {prediction!r}")
        if self.kind is None:
            self._start(kind)
        if kind != self.kind:
            raise TypeError(f"{self.name} must keep to one kind of prediction, got {prediction!r}")
        if prediction.classes != self.classes:
            raise ValueError(f"{self.name} must predict the classes {self.classes!r}, got {prediction.classes!r}")
        # The comparisons are written so that NaN fails them. Pairs have no sum to keep to, and lie below 1.
        if (
            raw.shape != self._shape
            or not np.minimum.reduce(raw, axis=None) >= 0.0
            or (total is None and not np.maximum.reduce(raw, axis=None) <= 1.0)
            or (total is not None and not abs(np.add.reduce(raw, axis=None) - total) <= SUM_TOLERANCE * total)
        ):
            raise ValueError(f"{self.name} must predict probabilities{' of sum 1' if total else ''}, got {raw!r}")
        if prediction.guaranteed != self.guaranteed:
            self.guaranteed = prediction.guaranteed if self.guaranteed is None else "mixed"
        self._raw[slot] = raw
        self._predicted[slot] = prediction.index

    def reduce(self, start: int, truth: NDArray[np.int32]) -> None:
        """Turn the raw block that begins at step `start` into rows."""
        k = len(truth)
        if start + k > len(self.rows):
            self.rows = np.concatenate([self.rows, np.empty_like(self.rows)])
        raw, predicted, at = self._raw[:k], self._predicted[:k], np.arange(k)
        rows = self.rows[start : start + k]
        if self.kind == "Multiprobability":
            claimed = raw[at, :, predicted]
            proba = raw.mean(axis=1)
            realised = raw[at, truth]
            rows["realised_class"] = realised.argmax(axis=1)
            rows["realised"] = realised.max(axis=1)
            best = raw.argmax(axis=2)
        elif self.kind == "ClassIntervals":
            claimed = raw[at, predicted]
            proba = raw.mean(axis=2)
            sums = proba.sum(axis=1, keepdims=True)
            proba = np.where(sums > 0, proba / np.where(sums > 0, sums, 1), 1 / len(self.classes))
            rows["realised_class"] = predicted
            rows["realised"] = claimed[at, (truth == predicted).astype(int)]
            best = raw.argmax(axis=1)
        else:
            # A point forecast is a multiprobability whose rows are all the same.
            proba = raw
            claimed = raw[at, predicted][:, None]
            best = raw.argmax(axis=1)[:, None]
            rows["realised_class"] = best[:, 0]
            rows["realised"] = raw.max(axis=1)
        rows["lower"], rows["upper"] = claimed.min(axis=1), claimed.max(axis=1)
        rows["unanimous"] = (best == best[:, :1]).all(axis=1)
        rows["predicted"] = predicted
        rows["probability"] = proba[at, truth]
        difference = proba.copy()
        difference[at, truth] -= 1.0
        rows["brier"] = (difference**2).sum(axis=1)

    def per_step(self, truth: NDArray[np.int32], clip: float) -> PerStep:
        """Return the columns of the first steps, whose true labels are given."""
        rows = self.rows[: len(truth)]
        with np.errstate(divide="ignore"):  # clip = 0 asks for infinite losses
            log_loss = -np.log(np.maximum(rows["probability"], clip))
        return PerStep(
            hit=rows["predicted"] == truth,
            lower=rows["lower"].copy(),
            upper=rows["upper"].copy(),
            width=rows["upper"] - rows["lower"],
            probability=rows["probability"].copy(),
            log_loss=log_loss,
            brier=rows["brier"].copy(),
            realised_hit=rows["realised_class"] == truth,
            realised=rows["realised"].copy(),
            unanimous=rows["unanimous"].copy(),
        )


def _scalar(label: Hashable) -> str | int | float | bool:
    """Return a label as the JSON value that reads back as the same label."""
    plain = label.item() if isinstance(label, np.generic) else label
    if not isinstance(plain, str | int | float | bool):
        raise TypeError(f"classes must be str, int, float or bool to be saved, got {label!r}")
    return plain


def _typed(header: dict[str, Any], key: str, *types: type) -> Any:
    value = header.get(key)
    if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
        raise ValueError(f"its header has {value!r} as {key}")
    return value
