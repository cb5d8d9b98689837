"""The results of replays: a folder of files, from which the rows of a table are read."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from venn.online.archive import written
from venn.online.record import Record
from venn.scale.task import Task

FORMAT, VERSION = "vennstream.replay", 1


class Results:
    """A folder of results, one for each task.

    Parameters
    ----------
    folder : str or path
        Made at once: an error now is better than after an hour.
    records : bool
        Whether records are kept too.

    Raises
    ------
    OSError
        The folder cannot be made.

    Examples
    --------
    >>> import tempfile, streams, venn
    >>> def make():
    ...     return streams.synthetic.gaussians(30), venn.Conformal(venn.LeastSquaresSVM(venn.Linear(), 1.0, (0, 1, 2)))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Results(folder, records=False).read(Task({"seed": 0}, make))
    {}
    """

    def __init__(self, folder: str | os.PathLike[str], records: bool) -> None:
        self.folder, self.records = Path(folder), records
        self.folder.mkdir(parents=True, exist_ok=True)

    def read(self, task: Task) -> dict[str, Any]:
        """Return what is kept of a finished task; empty if the task is still to be done."""
        try:
            found = json.loads((self.folder / f"{task.name}.json").read_bytes())
        except (OSError, ValueError):
            return {}
        if not isinstance(found, dict) or (found.get("format"), found.get("version")) != (FORMAT, VERSION):
            return {}
        if not _is_whole(found) or found["error"] is not None:
            return {}
        if self.records:
            try:
                Record.load(self._record(task))
            except (OSError, ValueError):  # not there, or damaged
                return {}
        return found

    def keep(self, task: Task, outcome: dict[str, Any]) -> dict[str, Any]:
        """Write the outcome of a task; the summary comes last and shows that everything is there."""
        record = outcome.pop("record")
        if record is not None:
            record.save(self._record(task))
        kept = {"format": FORMAT, "version": VERSION, "labels": dict(task.labels), "steps": task.steps, **outcome}
        with written(self.folder / f"{task.name}.json") as file:
            file.write(json.dumps(kept, indent=1).encode())
        return kept

    def _record(self, task: Task) -> Path:
        return self.folder / f"{task.name}.npz"

    def rows(self, task: Task, kept: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield the rows of the table."""
        labels = dict(task.labels)
        shared = {"examples": kept["examples"], "seconds": kept["seconds"], "error": kept["error"]}
        if kept["error"] is not None:
            yield {**labels, **shared, "record": None}
            return
        shared["record"] = str(self._record(task)) if self.records else None
        for name, means in kept["means"].items():
            called = labels.get("predictor")
            member = name if called is None else f"{called}/{name}" if kept["panel"] else called
            yield {**labels, "predictor": member, **shared, "guaranteed": kept["guaranteed"][name], **means}


def _is_whole(found: dict[str, Any]) -> bool:
    """Whether a summary has everything that `Results.rows` reads."""
    means, guaranteed = found.get("means"), found.get("guaranteed")
    return (
        {"examples", "seconds", "error", "panel"} <= found.keys()
        and isinstance(means, dict)
        and all(isinstance(one, dict) for one in means.values())
        and isinstance(guaranteed, dict)
        and means.keys() == guaranteed.keys()
    )
