"""Restart a run from its journal: the last readable checkpoint, then all later events again."""

from __future__ import annotations

import logging
import time
from pathlib import Path
from typing import Any

from venn.online import checkpoint
from venn.online.bulletin import Bulletin
from venn.online.chain import AnswerRow, ChainPlace, QuestionRow
from venn.online.codec import decode, decode_object, encode
from venn.online.journal import Journal, JournalError
from venn.online.run import Run, Waiting
from venn.saved import described

log = logging.getLogger("venn")


def go_on(run: Run, journal: Journal, bulletin: Bulletin) -> None:
    """Bring a run that has seen nothing to the state that its journal describes.

    Raises
    ------
    JournalError
        The journal does not hold what this run would have done.
    """
    complaint: Exception | None = None
    models = checkpoint.models(run.panel)
    for file in journal.checkpoints.files():
        try:
            _take(run, journal, file, models)
            break
        except (OSError, ValueError) as error:
            complaint = complaint or error
    else:
        if complaint is not None:
            log.warning("no checkpoint of %s can be read, and all is learned again: %s", journal.path, complaint)
    journal.checkpoints.kept(run.events)
    ids = {waiting.event: id for id, waiting in run.waiting.items()}
    reached = journal.checksum_at(run.events, run.answered)
    assert reached is not None  # it was compared with that of the checkpoint
    for event in journal.after(ChainPlace(run.asked, run.answered, run.expired, reached)):
        happen_again(run, journal, bulletin, event, ids)


def _take(run: Run, journal: Journal, file: Path, models: list[Any]) -> None:
    """Take over a checkpoint, or raise ValueError and change nothing."""
    state = checkpoint.load(file, models)
    if not isinstance(state, dict) or state.keys() != run.state().keys():
        raise ValueError("it is no checkpoint of a run")
    events = state["asked"] + state["answered"] + state["expired"]
    found = journal.checksum_at(events, state["answered"])
    if state["run"] != journal.token or found is None or found != state["chain"]:
        file.unlink(missing_ok=True)  # of another run, or of events that this one lost in a power failure
        raise ValueError(f"it is that of another run, after {events} events")
    if {name: described(one) for name, one in state["panel"].items()} != {
        n: described(p) for n, p in run.panel.items()
    }:
        raise ValueError(f"it holds {state['panel']!r}")
    waiting = {}
    for event, number in zip(state["waiting"], state["numbers"], strict=True):
        question = journal.question(event)
        waiting[question.id] = _read(run, question, number)
    run.restore(state, waiting)


def _read(run: Run, question: QuestionRow, number: int) -> Waiting:
    predictions = decode(question.predictions, tuple(run.panel), run.panel.space)
    return Waiting(question.event, number, question.step, decode_object(question.x), predictions)


def happen_again(
    run: Run, journal: Journal, bulletin: Bulletin, event: QuestionRow | AnswerRow, ids: dict[int, int | str]
) -> None:
    """Repeat an event of the journal; `ids` are those of the waiting questions, by event."""
    if event.event != run.events + 1:
        raise JournalError(f"{journal.path} must hold every event, and {run.events + 1} is missing")
    if isinstance(event, QuestionRow):
        waiting = _read(run, event, run.asked + 1)
        # This proves that nothing has changed: the same question gets the same answer.
        if encode(run.panel.predict_one(waiting.x)) != event.predictions:
            raise JournalError(
                f"{journal.path} must hold the predictions of this program with these parameters, and at event "
                f"{event.event} holds another one. If another version of venn wrote it, go on with that one; or keep "
                "it, for venn report and venn export read it, and begin a new journal with what venn export writes"
            )
        ids[event.event] = event.id
        bulletin.ring(run.answered + 1, time.time(), run.ask(event.id, waiting, event.time))
        return
    if event.question not in ids:
        raise JournalError(f"{journal.path} must hold answers to its questions, got {event}")
    id = ids.pop(event.question)
    if event.truth is None:
        before = len(run.rung)
        run.give_up(id, event.time)
        bulletin.ring(run.answered + 1, time.time(), run.rung[before:])
        return
    waiting, y = run.waiting[id], run.panel.space.decode(event.truth)
    noted = run.note(waiting, y)
    rung, _ = run.learn(id, y, run.as_of_now(waiting), event.time, noted)
    bulletin.note(time.time(), rung)
