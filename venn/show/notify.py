"""Tells somebody outside of an alarm: by a command, or by a message to a web address; the run never waits for it."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import threading
import urllib.error
import urllib.request
from abc import ABC, abstractmethod
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from http.client import HTTPException
from queue import Empty, Full, Queue
from time import monotonic
from time import time as wall
from typing import IO, Any
from urllib.parse import unquote, urlsplit

from venn.monitors.episodes import Episode
from venn.monitors.verdict import BELOW, CHANGED, Verdict
from venn.monitors.verdict import Moment as Moment

EVERY = 0.0  # least seconds between two notifications of the same watchers
MOST_WAITING = 100  # notifications that wait for a slow receiver; later ones are left out
TIMEOUT = 10.0  # seconds that a web address may take
PATIENCE = 30.0  # seconds that a command may take
LONGEST = 10_000  # letters of an environment variable
GRACE = 5.0  # seconds that the end of a run waits for what is being sent

Message = dict[str, Any]


BEGAN, KNOWN, ENDED = "began", "known", "ended"  # when somebody outside is told of an episode


class EpisodeNews:
    """Says when somebody outside is told of an episode: as it begins, as its columns or kind become known, as it ends.

    Examples
    --------
    >>> one = Episode(1, Moment(9), Moment(14), Moment(14), ("sets",), "", (), (), "the odds are 120 to 1", 1)
    >>> news = EpisodeNews()
    >>> [stage for stage, _ in news.news([one])], news.news([one])
    (['began'], [])
    """

    def __init__(self) -> None:
        self._notified: dict[tuple[int, int], tuple[bool, bool, bool]] = {}  # by first alarm

    @property
    def state(self) -> list[list[Any]]:
        """What was told of each."""
        return [[*at, *said] for at, said in self._notified.items()]

    def restore(self, state: Iterable[Any]) -> None:
        """Take over a state."""
        self._notified = {(when, at): (columns, kind, ended) for when, at, columns, kind, ended in state}

    def news(self, episodes: Iterable[Episode]) -> list[tuple[str, Episode]]:
        """Return what is to be told now, each with its stage."""
        found = []
        for one in episodes:
            now = bool(one.columns), bool(one.kind), not one.lasts
            at = one.rang.when, one.rang.number
            before = self._notified.get(at)
            self._notified[at] = now
            if before is None:
                found.append((BEGAN, one))
            elif now[2] and not before[2]:
                found.append((ENDED, one))
            elif now[:2] > before[:2] and not before[2]:
                found.append((KNOWN, one))
        return found


def message(run: str, stage: str, episode: Episode, verdict: Verdict, time: float) -> Message:
    """Return the JSON that is sent of an episode.

    Parameters
    ----------
    run : str
        The journal's path, or what else names the run.
    stage : str
        "began", "known" (its columns or its kind are) or "ended".
    episode : Episode
    verdict : Verdict
        That of the run, now.
    time : float
        Now, in seconds since 1970.

    Returns
    -------
    dict
        ``text``, one line for people, which chat services show; ``run``, ``stage``; ``time``, in UTC as in ISO 8601;
        ``predictor``, the names of what rang; ``episode`` and ``verdict``, all of both; ``left_out``, the number of
        notifications since the last one that were not sent.

    Examples
    --------
    >>> one = Episode(1, Moment(901), Moment(950), Moment(950), ("objects",), "", (), (), "the odds are 120 to 1", 1)
    >>> verdict = Verdict("doubtful", 901, None, "objects", "Ville", "doubtful: since about question 901 ...")
    >>> sent = message("run.db", "began", one, verdict, 0.0)
    >>> print(sent["text"])
    run.db: Look at the source since question 901: objects are not like before.
    >>> sent["time"], sent["verdict"]["state"]
    ('1970-01-01T00:00:00+00:00', 'doubtful')
    """
    broken = episode.claims and episode.lasts and verdict.state in (CHANGED, BELOW)
    said = episode.known if stage == KNOWN else verdict.sentence if broken else episode
    return {
        "text": f"{run}: {said}",
        "run": run,
        "stage": stage,
        "time": datetime.fromtimestamp(time, UTC).isoformat(timespec="seconds"),
        "predictor": ", ".join(episode.watchers),
        "episode": episode.plain(),
        "verdict": verdict.plain(),
        "left_out": 0,
    }


class Receiver(ABC):
    """Somebody who is told of alarms."""

    @property
    @abstractmethod
    def name(self) -> str:
        """In reports of failures; holds no secrets."""

    @abstractmethod
    def send(self, message: Message) -> None:
        """Send a message, or raise an OSError or a ValueError that says why it was not received."""

    def stop(self) -> None:  # noqa: B027 - not every one can
        """Give up what is being sent, if that can be done."""


class AlarmCommand(Receiver):
    """A command that is run for each message, without a shell: JSON on its standard input, the main parts as variables.

    Its standard output is thrown away; what it writes to standard error goes to that of the run.

    Parameters
    ----------
    arguments : sequence of str
        The program and its arguments.
    patience : float > 0
        Seconds after which it is killed, with all that it started.
    """

    def __init__(self, arguments: Sequence[str], patience: float = PATIENCE) -> None:
        if isinstance(arguments, str) or not arguments or not all(isinstance(one, str) for one in arguments):
            raise TypeError(f"arguments must be a program and its arguments, several str, got {arguments!r}")
        self.arguments, self.patience = list(arguments), patience
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped = False
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        """The program."""
        return self.arguments[0]

    def send(self, message: Message) -> None:
        """Run the command; OSError if it cannot be started, fails or takes too long."""
        with self._lock:
            if self._stopped:
                raise OSError("the run has ended")
            process = self._process = subprocess.Popen(
                self.arguments, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, env=os.environ | variables(message),
                start_new_session=True,  # Ctrl-C is for the run, and all of it can be killed
            )  # fmt: skip
        try:
            process.communicate(json.dumps(message).encode(), timeout=self.patience)
        except subprocess.TimeoutExpired:
            self._kill(process)
            raise TimeoutError(f"it took longer than {self.patience:g} seconds, and was killed") from None
        finally:
            with self._lock:
                self._process = None
            if process.stdin is not None:
                with suppress(OSError):
                    process.stdin.close()
        if process.returncode:
            raise OSError(f"it ended with code {process.returncode}")

    def stop(self) -> None:
        """Kill it, if it runs."""
        with self._lock:
            self._stopped = True
            if self._process is not None:
                self._kill(self._process)

    @staticmethod
    def _kill(process: subprocess.Popen[bytes]) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):  # it may not be ours to kill
            process.wait(1.0)


def variables(message: Message) -> dict[str, str]:
    """Return the main parts of a message as environment variables.

    Examples
    --------
    >>> one = Episode(1, Moment(901), Moment(950), Moment(950), ("objects",), "", ("heat",), (), "...", 1)
    >>> verdict = Verdict("doubtful", 901, None, "objects", "Ville", "doubtful: since about question 901 ...")
    >>> found = variables(message("run.db", "began", one, verdict, 0.0))
    >>> found["VENN_STAGE"], found["VENN_STATE"], found["VENN_SINCE"], found["VENN_COLUMNS"]
    ('began', 'doubtful', '901', 'heat')
    """
    found = {part: message[part] for part in ("run", "stage", "predictor", "time", "left_out", "text")}
    episode, first = message["episode"], message["episode"]["first"]
    found |= {"episode": episode["number"], "kind": episode["kind"], "state": message["verdict"]["state"]}
    found |= {"since": first["number"], "since_id": "" if first["id"] is None else first["id"]}
    found |= {"columns": ", ".join(episode["columns"]), "verdict": message["verdict"]["details"]}
    return {f"VENN_{part.upper()}": _clean(str(value)) for part, value in found.items()}


def _clean(text: str) -> str:
    """Return a text as the environment takes it."""
    return text[:LONGEST].replace("\0", "").encode(errors="replace").decode()


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Makes an error of a redirection: a message must not go where nobody sent it."""

    def redirect_request(self, req: Any, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str) -> None:
        """Return nothing."""


class Webhook(Receiver):
    """A web address to which each message is posted as JSON.

    Parameters
    ----------
    url : str
        http or https. It may hold a secret, so reports of failures name its host alone. USER:PASSWORD@ before the host
        is sent as basic authentication.
    timeout : float > 0
        Seconds for the connection, and for each wait for an answer.
    """

    def __init__(self, url: str, timeout: float = TIMEOUT) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"url must be http://HOST/... or https://HOST/..., got {url!r}")
        user, at, host = parts.netloc.rpartition("@")
        self.url, self.timeout = parts._replace(netloc=host).geturl(), timeout
        self._headers = {"Content-Type": "application/json", "User-Agent": "venn"}
        if at:
            self._headers["Authorization"] = f"Basic {b64encode(unquote(user).encode()).decode()}"
        self._host = parts.hostname if parts.port is None else f"{parts.hostname}:{parts.port}"
        self._opener = urllib.request.build_opener(_NoRedirect)

    @property
    def name(self) -> str:
        """The host."""
        return self._host

    def send(self, message: Message) -> None:
        """Post the message; OSError if the address cannot be reached or does not accept it."""
        request = urllib.request.Request(self.url, json.dumps(message).encode(), self._headers, method="POST")
        try:
            self._opener.open(request, timeout=self.timeout).close()
        except urllib.error.HTTPError as error:
            error.close()
            raise OSError(f"it answered {error.code}") from None
        except urllib.error.URLError as error:
            raise OSError(str(error.reason)) from None
        except (ValueError, HTTPException) as error:  # such as an answer that is no HTTP; it may spell the address
            raise OSError(type(error).__name__) from None


class _Worker:
    """Sends messages to one receiver, one after the other, in a thread."""

    def __init__(self, receiver: Receiver, complain: Callable[[str], None]) -> None:
        self.receiver, self._complain = receiver, complain
        self.waiting: Queue[Message | None] = Queue(MOST_WAITING)
        self.sent = self.failed = 0
        self._thread = threading.Thread(target=self._work, name=f"notify {receiver.name}", daemon=True)
        self._thread.start()

    def _work(self) -> None:
        while (one := self.waiting.get()) is not None:
            try:
                self.receiver.send(one)
                self.sent += 1
            except Exception as error:  # whatever it is, the run goes on
                self.failed += 1
                if self.failed == 1:
                    self._complain(
                        f"a notification failed: {self.receiver.name}: {error or type(error).__name__}; later failures "
                        "are only counted"
                    )

    def end(self, until: float) -> None:
        """Let it send what waits, until a time by `monotonic`; then give up."""
        with suppress(Full):
            self.waiting.put(None, timeout=max(until - monotonic(), 0.0))
        self._thread.join(max(until - monotonic(), 0.0))
        if not self._thread.is_alive():
            return
        with suppress(Empty):
            while True:
                self.waiting.get_nowait()
                self.failed += 1
        self.receiver.stop()


class Notifier:
    """Sends messages to receivers in threads that the caller never waits for.

    Of the same watchers one message in `every` seconds is sent, to each receiver; how many were left out since stands
    in the next. A failure is reported once for each receiver, and counted.

    Parameters
    ----------
    receivers : sequence of Receiver
        If there are none, nothing is done.
    complain : callable
        Takes one line that says why a receiver was not reached; called from another thread.
    every : float >= 0
        Seconds.
    clock : callable, optional
        Gives seconds, for tests.

    Examples
    --------
    >>> class Friend(Receiver):
    ...     name = "a friend"
    ...     def send(self, message):
    ...         print(message["predictor"], "left out before:", message["left_out"])
    >>> told = {"predictor": "abers"}
    >>> with Notifier([Friend()], print, every=60.0) as notifier:
    ...     for _ in range(3):
    ...         notifier.tell(told)
    abers left out before: 0
    >>> print(notifier.said())
    notifications: 1 sent, 2 left out
    """

    def __init__(
        self, receivers: Sequence[Receiver], complain: Callable[[str], None], every: float = EVERY,
        clock: Callable[[], float] = monotonic,
    ) -> None:  # fmt: skip
        self._workers = [_Worker(one, complain) for one in receivers]
        self._every, self._clock = every, clock
        self._last: dict[str, float] = {}  # when the last message of each predictor was sent
        self._left_out: dict[str, int] = {}
        self._all_left_out = 0
        self._closed = False

    def __enter__(self) -> Notifier:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __bool__(self) -> bool:
        return bool(self._workers)

    def tell(self, message: Mapping[str, Any]) -> None:
        """Send a message, unless one of the same watchers was sent a short time ago; returns at once."""
        if not self._workers:
            return
        name, now = message["predictor"], self._clock()
        last = self._last.get(name)
        if last is not None and now - last < self._every:
            self._leave_out(name)
            return
        taken = False
        for worker in self._workers:
            with suppress(Full):
                worker.waiting.put_nowait({**message, "left_out": self._left_out.get(name, 0)})
                taken = True
        if taken:
            self._last[name], self._left_out[name] = now, 0
        else:
            self._leave_out(name)

    def _leave_out(self, name: str) -> None:
        self._left_out[name] = self._left_out.get(name, 0) + 1
        self._all_left_out += 1

    def close(self, grace: float = GRACE) -> None:
        """Wait for what is being sent, at most `grace` seconds in all."""
        until = monotonic() + grace
        if not self._closed:
            self._closed = True
            for worker in self._workers:
                worker.end(until)

    def told(self, run: str, stage: str, episode: Episode, verdict: Verdict) -> None:
        """Tell of an episode."""
        if self._workers:
            self.tell(message(run, stage, episode, verdict, wall()))

    def said(self) -> str:
        """Return how many notifications were sent, as text; empty if there were none."""
        counts = {
            "sent": sum(worker.sent for worker in self._workers),
            "failed": sum(worker.failed for worker in self._workers),
            "left out": self._all_left_out,
        }
        found = [f"{count:,} {what}" for what, count in counts.items() if count]
        return f"notifications: {', '.join(found)}" if found else ""


def teller(name: str, on_alarm: Any, complain: Callable[[str], None]) -> Any:
    """Return what tells of episodes: a callable takes each, a command or a web address its JSON; None tells nobody.

    Raises
    ------
    TypeError, ValueError
        `on_alarm` is none of these, or an address that is none.
    """
    if on_alarm is None or isinstance(on_alarm, Notifier):
        return on_alarm
    if callable(on_alarm):
        return CallbackNotifier(on_alarm, complain)
    if isinstance(on_alarm, str) and on_alarm.startswith(("http:", "https:")):
        return Notifier([Webhook(on_alarm)], complain)
    command = shlex.split(on_alarm) if isinstance(on_alarm, str) else on_alarm
    if not isinstance(command, list | tuple) or not command or not all(isinstance(one, str) for one in command):
        what = "a callable, a command (text, or a sequence of texts) or an address, http://... or https://..."
        raise TypeError(f"{name} must be {what}, got {on_alarm!r}")
    return Notifier([AlarmCommand(command)], complain)


class CallbackNotifier:
    """Calls a function with each episode that has news; what it raises is said, and the run goes on."""

    def __init__(self, function: Callable[[Episode], Any], complain: Callable[[str], None]) -> None:
        self._function, self._complain = function, complain

    def told(self, run: str, stage: str, episode: Episode, verdict: Verdict) -> None:
        """Call it."""
        try:
            self._function(episode)
        except Exception as error:  # whatever it is, the run goes on
            self._complain(f"on_alarm failed with {type(error).__name__}: {error}")

    def close(self) -> None:
        """Nothing is open."""
