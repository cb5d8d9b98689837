"""What happened in a replay: one row per predictor and step, tables, figures, a file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from venn._compiled.outcomes import REALISED_CLASS, WIDTH
from venn.labels import HasLabels, LabelSpace, label_space, read_labels
from venn.machines.machine import grown
from venn.monitors.calibration import CLIP
from venn.monitors.curves import Curves, Outcomes, SetCurves, outcomes
from venn.monitors.evidence import Scored
from venn.monitors.kind import Kind
from venn.monitors.kinds import FORECAST, KINDS, ProbabilityKind, Scorer, kind_of
from venn.monitors.monitor import Monitor
from venn.monitors.notebook import table
from venn.monitors.sources import usual_sources
from venn.online import checkpoint, figures
from venn.parameters import ascending, by_name, integer, is_number, path_of, several_names
from venn.prediction import NOTHING, Floats, Label, Prediction
from venn.saved import checked_keys, restored_array, restored_float, restored_rows, restored_text
from venn.show import terminal
from venn.smoothing import Smoothing

if TYPE_CHECKING:
    from matplotlib.figure import Figure
else:  # for those who ask for hints while running, as dataclass tools do
    Figure = Any

START = 256
ARRAYS = ("predicted", "numbers", "rows")
GIVEN = ("names", "data", "shuffle", "parameters", "clip", "before", "restarts")  # what the constructor takes


class Track:
    """All steps of one predictor, scored; capacities double."""

    def __init__(self, name: str, space: LabelSpace) -> None:
        self.scorer = Scorer(name, space)
        self._predicted = np.empty(START, space.dtype)
        self._numbers = np.empty((START, WIDTH))
        self._rows = np.empty((START, 0))
        self._summed, self._sums = 0, dict[str, float]()  # number of steps summed, and the sums from which means follow

    @property
    def kind(self) -> Kind:
        """Kind of prediction; before the first one, the kind of forecasts."""
        return self.scorer.kind or FORECAST

    def put(self, step: int, prediction: Prediction, truth: Any) -> None:
        """Score a prediction in place `step`; it counts once the record includes that step."""
        if step == 0:
            self._rows = np.empty((START, kind_of(prediction, self.scorer.name).breadth(self.scorer.space)))
        if step == len(self._predicted):
            self._predicted, self._numbers, self._rows = (
                grown(held, 2 * step, *held.shape[1:]) for held in (self._predicted, self._numbers, self._rows)
            )
        self._predicted[step] = self.scorer.score(prediction, truth, self._numbers[step], self._rows[step])

    def put_many(self, step: int, block: Any, truths: Any) -> None:
        """Score predictions, a block of them or a sequence, in places from `step` on."""
        kind, n = kind_of(block[0], self.scorer.name), step + len(block)
        if step == 0:
            self._rows = np.empty((START, kind.breadth(self.scorer.space)))
        if n > len(self._predicted):
            self._predicted, self._numbers, self._rows = (
                grown(held, 2 * n, *held.shape[1:]) for held in (self._predicted, self._numbers, self._rows)
            )
        which = slice(step, n)
        numbers, rows = self._numbers[which], self._rows[which]
        whole = kind.score_each is not None and getattr(block, "one", None) is kind.of
        for i, truth in enumerate(truths[:1] if whole else truths):  # the first says what is wrong with its classes
            self._predicted[step + i] = self.scorer.score(block[i], truth.item(), numbers[i], rows[i])
        if whole:
            found = kind.scored_many(block, self.scorer.name, self.scorer.space, truths, numbers, rows)
            self._predicted[which] = found

    def outcomes(self, truth: NDArray[Any], start: int = 0) -> Outcomes:
        """Return views of the steps from `start` on, as far as true labels are given."""
        which = slice(start, len(truth))
        return outcomes(truth[which], self._predicted[which], self._numbers[which], self._rows[which])

    def running(self, truth: NDArray[Any]) -> str:
        """Return the results of the first n >= 1 steps as text.

        Only steps since the last call are added up, because a progress bar calls this often.
        """
        columns = self.kind.averaged(Scored.of(self.outcomes(truth, self._summed)), CLIP)
        for name, column in columns.items():
            self._sums[name] = self._sums.get(name, 0.0) + float(column.sum())
        self._summed = len(truth)
        return self.kind.running(self.kind.finished({name: sum_ / len(truth) for name, sum_ in self._sums.items()}))

    def saved(self, n: int) -> dict[str, Any]:
        """Return the first n steps as a file holds them."""
        kept = dict(zip(ARRAYS, (each[:n] for each in (self._predicted, self._numbers, self._rows)), strict=True))
        return {"kind": self.kind.name if n else None, "guaranteed": self.scorer.guaranteed, **kept}

    def restore(self, held: dict[str, Any], n: int) -> None:
        """Take over what `saved` gave, or say what is wrong with it."""
        checked_keys("predictors", held, ("kind", "guaranteed", *ARRAYS))
        kind, space = held["kind"], self.scorer.space
        if not n:
            return
        if kind not in KINDS:
            raise ValueError(f"kind must be a kind of prediction, got {kind!r}")
        self.scorer.kind, self.scorer.guaranteed = KINDS[kind], restored_text("guaranteed", held["guaranteed"])
        room, breadth = max(START, n), KINDS[kind].breadth(space)
        self._predicted = grown(restored_labels("predicted", held["predicted"], n, space), room)
        self._numbers = grown(restored_array("numbers", held["numbers"], (n, WIDTH)), room, WIDTH)
        self._rows = grown(restored_array("rows", held["rows"], (n, breadth)), room, breadth)
        if not space.holds(self._numbers[:n, REALISED_CLASS]):
            raise ValueError(f"numbers must hold codes of {space.told}, got others")


def restored_labels(name: str, codes: Any, n: int, space: LabelSpace) -> NDArray[Any]:
    """Return (n,) codes of labels, or say what they must be."""
    checked: NDArray[Any] = restored_array(name, codes, (n,), space.dtype)
    if not space.holds(checked):
        raise ValueError(f"{name} must hold codes of {space.told}, got others")
    return checked


class Record(HasLabels):
    """Every prediction of a run, scored.

    Parameters
    ----------
    classes : sequence of c labels, or LabelSpace
    names : sequence of str
        The predictors, in the order of display.
    data : str, optional
        Name of the data.
    shuffle : int, optional
        Seed of the shuffle that ordered the data; an attribute that may be set later.
    parameters : mapping of str to str, optional
        Description of each predictor.
    clip : float in [0, 1), default 1e-15
        Probabilities of the true label below `clip` count as `clip` in the log loss; each predictor's
        curves say how many did. 0 lets a loss be infinite.
    restarts : mapping of str to sequence of int, optional
        Steps after which the bets on a predictor begin anew, see `Monitor`. `venn.replay` fills it in.
    before : mapping of str to int, optional
        How many examples each predictor had learned before the first step; the title says so. `venn.replay` fills it
        in.

    Attributes
    ----------
    guaranteed : dict of str to str
        What is proved about each predictor's predictions so far, as their `guaranteed` says; "mixed" where they differ,
        and "nothing" before the first.
    seconds : float
        Time of the replay, summed over the calls of `venn.replay`; 0 for a loop written by hand.

    Raises
    ------
    ValueError
        No class, one that is not finite, a class or a name that repeats, no name, or a clip out of range.

    See Also
    --------
    venn.replay : fills a record from a stream.

    Examples
    --------
    A loop written by hand keeps its record with `update`:

    >>> from venn.prediction import Multiprobability
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
        classes: Sequence[Label] | LabelSpace,
        names: Sequence[str],
        *,
        data: str | None = None,
        shuffle: int | None = None,
        parameters: Mapping[str, str] | None = None,
        clip: float = 1e-15,
        before: Mapping[str, int] | None = None,
        restarts: Mapping[str, Sequence[int]] | None = None,
    ) -> None:
        self.space = label_space(classes)
        self.names = several_names("names", names)
        if not is_number(clip):
            raise TypeError(f"clip must be a number in [0, 1), got {clip!r}")
        if not 0 <= clip < 1:
            raise ValueError(f"clip must lie in [0, 1), got {clip}")
        self.data = data
        self.shuffle = shuffle
        self.parameters = by_name("parameters", parameters, "text")
        self.clip = float(clip)
        learned = by_name("before", before, "numbers of examples", self.names)
        self.before = {name: integer(f"before, of {name},", n, 0) for name, n in learned.items()}
        given = by_name("restarts", restarts, "steps", self.names)
        self.restarts = {name: ascending("restarts", steps) for name, steps in given.items()}
        self.seconds = 0.0
        self._tracks = {name: Track(name, self.space) for name in self.names}
        self._truth = np.empty(START, self.space.dtype)
        self._n = 0

    # ---------------------------------------------------------------- recording

    def update(self, predictions: Mapping[str, Prediction], y: Label) -> None:
        """Record one step.

        Parameters
        ----------
        predictions : mapping of str to Forecast, Multiprobability, ClassIntervals or PredictionSet
            One prediction for each name.
        y : label
            The true label.

        Raises
        ------
        ValueError
            An unknown label, other names, other classes, or numbers that are not probabilities or p-values.
            The step is not recorded.
        TypeError
            A prediction of another kind than the predictor's first one.
        """
        code = self.space.encode(y)
        if not isinstance(predictions, Mapping):
            raise TypeError(f"predictions must be a mapping of names to predictions, got {predictions!r}")
        if len(predictions) != len(self._tracks):
            raise ValueError(f"predictions must have the names {self.names!r}, got {tuple(predictions)!r}")
        for name, track in self._tracks.items():
            prediction = predictions.get(name)
            if prediction is None:
                raise ValueError(f"predictions must have the names {self.names!r}, got {tuple(predictions)!r}")
            track.put(self._n, prediction, code)
        for name, track in self._tracks.items():
            track.scorer.keep(predictions[name])
        if self._n == len(self._truth):
            self._truth = np.concatenate([self._truth, np.empty_like(self._truth)])
        self._truth[self._n] = code
        self._n += 1

    def update_many(self, blocks: Mapping[str, Any], labels: Sequence[Label]) -> None:
        """Record n steps, as `update` would one after the other, and faster.

        Parameters
        ----------
        blocks : mapping of str to block or sequence of n predictions
            By name, as from `Forecaster.replay_many`.
        labels : sequence of n labels

        Raises
        ------
        TypeError, ValueError
            As by `update`, or their numbers differ: no step is recorded.

        Examples
        --------
        >>> import venn
        >>> model, labels = venn.Forecaster(["no", "yes"]), ["no", "yes"] * 5
        >>> record = venn.Record(["no", "yes"], list(model))
        >>> record.update_many(model.replay_many([[i % 2] for i in range(10)], labels), labels)
        >>> len(record)
        10
        """
        codes = self.space.encode_many(labels)
        if not isinstance(blocks, Mapping) or set(blocks) != set(self._tracks):
            raise ValueError(f"blocks must have the names {self.names!r}, got {blocks!r:.80}")
        for name, block in blocks.items():
            if len(block) != len(codes):
                raise ValueError(f"labels must be one for each of {len(block)} predictions of {name}, got {len(codes)}")
        if not len(codes):
            return
        for name, track in self._tracks.items():
            track.put_many(self._n, blocks[name], codes)
        for name, track in self._tracks.items():
            block = blocks[name]
            for prediction in block if isinstance(block, list) else [block[0]]:
                track.scorer.keep(prediction)
        if (n := self._n + len(codes)) > len(self._truth):
            self._truth = grown(self._truth, 2 * n)
        self._truth[self._n : n] = codes
        self._n = n

    # ------------------------------------------------------------------ reading

    @property
    def truth(self) -> NDArray[Any]:
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

    def __getitem__(self, name: str) -> Curves | SetCurves:
        return self.kind(name).curves(self.outcomes(name), self.clip)

    def outcomes(self, name: str) -> Outcomes:
        """Return a predictor's predictions and their scores at each step, in read-only arrays.

        Raises
        ------
        KeyError
            No predictor has this name.
        """
        return self._track(name).outcomes(self._truth[: self._n])

    def _track(self, name: str) -> Track:
        if not isinstance(name, str) or name not in self._tracks:
            raise KeyError(f"name: no predictor {name!r} in this record; it has {', '.join(self.names)}")
        return self._tracks[name]

    def kind(self, name: str) -> Kind:
        """Return the kind of a predictor's predictions; before the first one, the kind of forecasts."""
        return self._track(name).kind

    @property
    def kinds(self) -> dict[str, str | None]:
        """Name of the class of each predictor's predictions; None before the first."""
        return {name: track.kind.name if self._n else None for name, track in self._tracks.items()}

    @property
    def guaranteed(self) -> dict[str, str]:
        """What is proved about the predictions of each predictor."""
        return {name: track.scorer.guaranteed or NOTHING for name, track in self._tracks.items()}

    def __repr__(self) -> str:
        return f"Record({self.data or 'unnamed data'}, {self._n} steps: {', '.join(self.names)})"

    def _repr_html_(self) -> str:
        """Return the table of means for notebooks."""
        return table(self.title, self.means() if self._n else {})

    def means(self) -> dict[str, dict[str, float]]:
        """Return the means over the whole run.

        Returns
        -------
        dict of name to dict
            With accuracy, lower, upper, width, log_loss and brier. For prediction sets with accuracy, credibility,
            confidence and, at each of the significance levels 0.01, 0.05, 0.1 and 0.2, ``error_0.05``: share of
            steps whose true label was not in the set, and ``size_0.05``: number of labels in a set.

        Raises
        ------
        ValueError
            The record has no step.
        """
        if not self._n:
            raise ValueError("a record without steps has no means")
        means: dict[str, dict[str, float]] = {}
        for name, track in self._tracks.items():
            columns, kind = self[name].columns, track.kind
            fields = kind.means if isinstance(kind, ProbabilityKind) else kind.columns
            means[name] = kind.finished({field: float(columns[field].mean()) for field in fields})
        return means

    def running(self, name: str) -> str:
        """Return a predictor's results so far as text, cheaply enough for a progress bar."""
        track = self._track(name)
        return f"{name}: {track.running(self._truth[: self._n]) if self._n else 'no step'}"

    def table(self) -> str:
        """Return the means as plain text, one line per predictor."""
        return terminal.table(self.means(), self.title, self._footnote())

    # ------------------------------------------------------------------ figures

    def plot(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """Draw accuracy and claimed bounds against the number of examples, one panel per predictor.

        Where the predicted label is guaranteed, a band shows the deviations from its bounds that chance allows: on
        exchangeable data the probability that the accuracy ever leaves it is at most 0.05. Predictors of sets are left
        out; `plot_errors` draws them.

        Parameters
        ----------
        path : str or path, optional
            Where to write the figure; the suffix chooses the format. Folders are made as needed. The same holds for the
            figures below.

        Returns
        -------
        matplotlib.figure.Figure

        Raises
        ------
        ImportError
            matplotlib is not installed.
        ValueError
            The record has no step, or no predictor of the kind that is drawn.
        """
        return figures.draw_curves(self, path)

    def plot_errors(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """Draw the number of errors of prediction sets at several significance levels, beside the number expected."""
        return figures.draw_errors(self, path)

    def plot_martingales(
        self, path: str | os.PathLike[str] | None = None, level: float = 0.01, seed: int = 0
    ) -> Figure:
        """Draw the evidence against each predictor's claims: test martingales, for point forecasts e-processes.

        Parameters
        ----------
        path : str or path, optional
        level : float in (0, 1), default 0.01
            Probability of ever raising a false alarm, for each path; an alarm is marked where it first rings.
        seed : int >= 0, default 0
            Seed of the random numbers that break ties in p-values.
        """
        return figures.draw_martingales(self, path, level, seed)

    def plot_p_values(self, path: str | os.PathLike[str] | None = None, seed: int = 0) -> Figure:
        """Draw histograms of the p-values, which are uniform on exchangeable data."""
        return figures.draw_p_values(self, path, seed)

    def plot_reliability(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """Draw the share of correct predicted labels against their probability by the point forecasts."""
        return figures.draw_reliability(self, path)

    def plot_all(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Draw all figures that apply into a folder; return the files."""
        return figures.draw_all(self, folder)

    # ---------------------------------------------------------------- monitoring

    def p_values(self, name: str, seed: int = 0) -> dict[str, Floats]:
        """Return the p-values that a monitor of this predictor would bet on.

        Parameters
        ----------
        name : str
        seed : int >= 0, default 0
            Seed of the random numbers that break ties.

        Returns
        -------
        dict of source name to (n,) float64
            Independent and uniform while what the predictor guarantees holds; empty where it guarantees nothing.
        """
        steps = self.outcomes(name)
        tau = Smoothing(seed).block(0, self._n)
        sources = usual_sources(self.guaranteed[name], self.classes)
        return {source.name: np.array(source.read(steps, tau)[0]) for source in sources}

    def monitor(self, name: str, **parameters: Any) -> Monitor:
        """Return a monitor that has watched one predictor over all steps.

        Parameters
        ----------
        name : str
        **parameters
            Those of `Monitor`, except the classes.
        """
        steps = self.outcomes(name)
        monitor = Monitor(self.space, **parameters)
        if self._n:
            monitor.follow(steps, self.kind(name).name, self.guaranteed[name])
        return monitor

    # ------------------------------------------------------------------------ text

    @property
    def title(self) -> str:
        """Title of tables and figures: the data, their order, the numbers of examples and classes."""
        shuffle = "" if self.shuffle is None else f", shuffle {self.shuffle}"
        examples = "example" if self._n == 1 else "examples"
        return f"{self.data or 'stream'}: {self._n} {examples}, {self.space.counted}{shuffle}{self._learned()}"

    def _learned(self) -> str:
        """Return as text what was learned before the first step: the means then do not show a fresh start."""
        counts = {name: self.before.get(name, 0) for name in self.names}
        if not any(counts.values()):
            return ""
        if len(set(counts.values())) == 1:
            return f", after {next(iter(counts.values()))} learned before"
        return f", after {', '.join(f'{n} by {name}' for name, n in counts.items() if n)} learned before"

    def _footnote(self) -> str:
        lossy = [name for name, track in self._tracks.items() if "log_loss" in track.kind.means]
        if not lossy:
            return "Means over all steps."
        clipped = {name: int((self.outcomes(name).probability < self.clip).sum()) for name in lossy}
        counts = ", ".join(f"{name} {count}" for name, count in clipped.items() if count)
        return (
            f"Means over all steps. Log loss in nats, clipped at {self.clip:g} "
            f"({'steps clipped: ' + counts if counts else 'no step clipped'})."
        )

    # --------------------------------------------------------------------- file

    def to_frame(self, backend: str = "pandas") -> Any:
        """Return a data frame with one row for each step.

        Columns: `step`, the true label `y`, and for each predictor what a record knows of its prediction, such as
        `forecast.label`, `forecast.lower`, `forecast.upper`, `forecast.probability_of_y`, `sets.p_values.no`.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}, default "pandas"

        Raises
        ------
        ImportError
            The package is not installed.
        ValueError
            Another backend.
        """
        return figures.frame(figures.of_record(self), backend)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the record to one file.

        The file is like that of `venn.save`: an npz archive without pickled objects, with a JSON header, checksums, and
        arrays: the true labels and, for each predictor, its labels, their scores, and its probabilities under the true
        hypothesis (p-values). It appears whole or not at all, and equal records make equal bytes.

        Parameters
        ----------
        path : str or path
            Used as it is; no suffix is added.

        Raises
        ------
        TypeError
            A class is not a str, int, float or bool.
        """
        held = {
            "record": {name: getattr(self, name) for name in GIVEN},
            "classes": self.space.header,
            "seconds": self.seconds,
            "truth": self._truth[: self._n],
            "predictors": [track.saved(self._n) for track in self._tracks.values()],
        }
        checkpoint.save(path, held)

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
        # Whatever zipfile, numpy or json raises on a damaged or hostile archive is one error here. Of a number `open`
        # would take the descriptor, and close it.
        with path_of("path", path).open("rb") as file:
            try:
                held = checkpoint.contents(file)
                checked_keys("its contents", held, ("record", "classes", "seconds", "truth", "predictors"))
                record = cls(read_labels(held["classes"]), **held["record"])
                record._take_over(held)
            except Exception as error:
                raise ValueError(f"{path} is not a readable record: {error}") from error
        return record

    def _take_over(self, held: dict[str, Any]) -> None:
        self.seconds = restored_float("seconds", held["seconds"], 0.0)
        self._n = restored_rows("truth", held["truth"])
        truth = restored_labels("truth", held["truth"], self._n, self.space)
        for track, state in zip(self._tracks.values(), held["predictors"], strict=True):
            track.restore(state, self._n)
        if self._n:  # else there is nothing to double
            self._truth = truth
