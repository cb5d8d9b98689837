"""Tells somebody outside of an alarm: by a command, or by a message to a web address; the run never waits for it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import urllib.error
import urllib.request
from abc import ABC, abstractmethod
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from http.client import HTTPException
from queue import Empty, Full, Queue
from time import monotonic
from typing import IO, Any
from urllib.parse import unquote, urlsplit

from venn.monitors.alarms import PER_DECADE, Alarm
from venn.monitors.verdict import Verdict

EVERY = 60.0  # least seconds between two notifications about one predictor
MOST_WAITING = 100  # notifications that wait for a slow receiver; later ones are left out
TIMEOUT = 10.0  # seconds that a web address may take
PATIENCE = 30.0  # seconds that a command may take
LONGEST = 10_000  # letters of an environment variable
GRACE = 5.0  # seconds that the end of a run waits for what is being sent

Message = dict[str, Any]


def message(run: str, predictor: str, alarm: Alarm, verdict: Verdict, time: float) -> Message:
    """Return the JSON that is sent of an alarm.

    Parameters
    ----------
    run : str
        The journal's path.
    predictor : str
        Its name.
    alarm : Alarm
    verdict : Verdict
        On this predictor, after the alarm.
    time : float
        Of the alarm, in seconds since 1970.

    Returns
    -------
    dict
        ``run``, ``predictor``; ``step``, ``detector``, ``about`` and ``sentence`` of the alarm; ``evidence_log10``;
        ``time``, in UTC as in ISO 8601; ``verdict``, all of it; ``left_out``, the number of alarms since the last
        notification that were not sent; ``text``, one line for people, which chat services show.

    Examples
    --------
    >>> verdict = Verdict("changed", 901, None, "p-values", "Ville", "changed since about 901: it errs in .47")
    >>> sent = message("run.db", "abers", Alarm(950, "Ville", 6.9, "At step 950 ..."), verdict, 0.0)
    >>> sent["text"], sent["time"], sent["verdict"]["state"]
    ('run.db: abers: changed since about 901: it errs in .47', '1970-01-01T00:00:00+00:00', 'changed')
    """
    return {
        "text": f"{run}: {predictor}: {verdict.sentence}",
        "run": run,
        "predictor": predictor,
        "step": alarm.step,
        "time": datetime.fromtimestamp(time, UTC).isoformat(timespec="seconds"),
        "detector": alarm.detector,
        "about": alarm.about,
        "evidence_log10": round(alarm.log_evidence / PER_DECADE, 3),
        "sentence": alarm.sentence,
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
    >>> verdict = Verdict("changed", 901, None, "p-values", "Ville", "changed since about 901: it errs in .47")
    >>> found = variables(message("run.db", "abers", Alarm(950, "Ville", 6.9, "At step 950 ..."), verdict, 0.0))
    >>> found["VENN_STATE"], found["VENN_SINCE"], found["VENN_STEP"], found["VENN_EVIDENCE_LOG10"]
    ('changed', '901', '950', '2.997')
    """
    parts = ("run", "predictor", "step", "time", "detector", "about", "evidence_log10", "left_out", "text")
    found = {part: message[part] for part in parts}
    found |= {"state": message["verdict"]["state"], "verdict": message["verdict"]["sentence"]}
    since = message["verdict"]["since"]
    found["since"] = "" if since is None else since
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
    """Sends alarms to receivers, seldom enough to be read, in threads that the caller never waits for.

    Of each predictor one alarm in `every` seconds is sent, to each receiver; how many were left out since stands in
    the next. A failure is reported once for each receiver, and counted.

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
    >>> with Notifier([Friend()], print) as notifier:
    ...     for _ in range(3):
    ...         notifier.tell(told)
    abers left out before: 0
    >>> print(notifier.said())
    notifications: 1 sent, 2 alarms left out
    """

    def __init__(
        self, receivers: Sequence[Receiver], complain: Callable[[str], None], every: float = EVERY,
        clock: Callable[[], float] = monotonic,
    ) -> None:  # fmt: skip
        self._workers = [_Worker(one, complain) for one in receivers]
        self._every, self._clock = every, clock
        self._last: dict[str, float] = {}  # when each predictor's last alarm was sent
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
        """Send a message about an alarm, unless one about this predictor was sent a short time ago; returns at once."""
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

    def said(self) -> str:
        """Return how many notifications were sent, as text; empty if there were none."""
        counts = {
            "sent": sum(worker.sent for worker in self._workers),
            "failed": sum(worker.failed for worker in self._workers),
            "alarms left out": self._all_left_out,
        }
        found = [f"{count:,} {what}" for what, count in counts.items() if count]
        return f"notifications: {', '.join(found)}" if found else ""
