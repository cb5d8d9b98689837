"""Serves a learning model over HTTP: one thread owns the run, and an app passes requests to it."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from venn.online import Online
from venn.online.journal import Journal
from venn.online.panel import Panel
from venn.online.selective import Selective
from venn.predictors.learning import Predictor

__all__ = ["serve"]

LABELS = ("labels", "judge", "ripe", "silent")  # options of labels that do not come by one request


def serve(
    model: Predictor | Panel, journal: Journal | str | os.PathLike[str], *, name: str = "model", **options: Any
) -> Any:
    """Return a model that learns as an ASGI app, which a server such as uvicorn runs, or another app mounts.

    One thread owns the run. Requests wait in one queue, are taken in blocks, each in one transaction of the journal,
    and answered when it is written. After a kill the same call goes on where the run was. The program around it decides
    who may ask; `venn serve` on the command line checks passwords itself.

    Parameters
    ----------
    model : Predictor or Panel
        Such as a `Forecaster`, as a new process makes it; no `Selective`.
    journal : Journal, str or path
        Where the run is kept; one that it holds goes on.
    name : str, default "model"
        For the Open Inference Protocol: ``/v2/models/NAME``.
    **options
        Those of `Online` but `labels`, `judge`, `ripe` and `silent`: `monitor`, `patience`, `new_scorer`, `watch`,
        `on_alarm`.

    Returns
    -------
    ServedModel
        With ``/ask``, ``/answer``, ``/questions/ID``, the page at ``/``, ``/metrics``, ``/docs`` and others.

    Raises
    ------
    ImportError
        The packages of the extra ``serve`` are missing.
    TypeError, ValueError
        A parameter is not as described; what `Online` says of its own comes when the app begins.

    Examples
    --------
    >>> import asyncio, httpx, tempfile, venn
    >>> async def use(app):
    ...     async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
    ...         said = await client.post("/ask", json={"id": "a7", "x": [0.5, 1.5]})
    ...         learned = await client.post("/answer", json={"id": "a7", "y": "no"})
    ...         return said.json()["predictions"]["forecast"]["probabilities"], learned.json()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with venn.serve(venn.Forecaster(["no", "yes"]), f"{folder}/run.db") as app:
    ...         asyncio.run(use(app))
    ({'no': 0.5, 'yes': 0.5}, {'id': 'a7', 'event': 2, 'alarms': [], 'verdict': 'too early to say'})
    """
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9._-]+", name):
        raise ValueError(f"name must be letters, digits, dots, dashes and underscores, got {name!r}")
    if not isinstance(journal, Journal | str | os.PathLike):
        raise TypeError(f"journal must be a Journal or a path, got {journal!r}")
    if isinstance(model, Selective):
        raise TypeError(
            "model must be a predictor or a panel, got a Selective: a journal does not hold its answers, so a repeated "
            "question would not get the same one; give its model, or ask in an Online of your own"
        )
    for key in LABELS:
        if options.get(key) is not None:
            raise TypeError(
                f"{key} must not be given: a label of a served run comes by /answer, once, and counts at once; take an "
                "Online of your own for labels by lot, or that ripen"
            )
    from venn.serving.app import ServedModel  # what serves is imported for whoever serves
    from venn.serving.messages import PlainReaders, ValueReaders
    from venn.serving.owner import RunOwner

    path = journal.path if isinstance(journal, Journal) else Path(journal)
    owner = RunOwner(lambda: Online(model, journal=journal, **options))
    readers = ValueReaders() if getattr(model, "in_turn", False) else PlainReaders()
    return ServedModel(owner, path, readers, name)
