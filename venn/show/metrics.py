"""A run's figures for Prometheus: read from its journal at each request."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http import HTTPStatus
from io import StringIO
from socket import AI_PASSIVE, SHUT_RDWR, SOCK_STREAM, getaddrinfo, socket
from socketserver import ThreadingMixIn
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from venn.monitors.verdict import CHANGED, STATES, Verdict
from venn.show.door import HEADERS, Door, Refusal
from venn.show.page.feed import Watched
from venn.show.snapshots import counting

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

MISSING = "metrics need prometheus-client: pip install prometheus-client"
ERRORS = (OSError, RuntimeError, ValueError)
NONE = Refusal(404, "404: there is nothing here; the metrics are at /metrics")
ASKED = {name: f"HTTP_{name.upper()}" for name in ("Host", "Origin", "Authorization", "Cookie")}


class Metric(NamedTuple):
    """One metric: its name, its kind, its labels."""

    name: str
    kind: str  #: "gauge" or "counter"
    help: str
    labels: tuple[str, ...] = ()


_EACH = ("predictor",)
_PATH = ("predictor", "detector", "source")
_LEVEL = ("predictor", "level")

UP = Metric("venn_up", "gauge", "1 if the journal of the run can be read, else 0.")
QUESTIONS = Metric("venn_questions_total", "counter", "Questions asked.")
ANSWERS = Metric("venn_answers_total", "counter", "Labels that were received and learned.")
EXPIRED = Metric("venn_expired_total", "counter", "Questions given up before their label came.")
PENDING = Metric("venn_pending_questions", "gauge", "Questions that wait for their label.")
RATE = Metric("venn_answers_per_second", "gauge", "Answers a second over the latest 1000.")
LAST = Metric("venn_last_event_timestamp_seconds", "gauge", "Time of the last event, in seconds since 1970.")
CREATED = Metric("venn_run_created_timestamp_seconds", "gauge", "Time at which the run began, in seconds since 1970.")
PREDICTOR = Metric(
    "venn_predictor_info", "gauge", "The predictor's parameters and its guarantee; always 1.",
    ("predictor", "parameters", "predictions", "guaranteed"),
)  # fmt: skip
ACCURACY = Metric("venn_accuracy_ratio", "gauge", "Share of predicted labels that were right, over all steps.", _EACH)
WINDOW = Metric("venn_window_accuracy_ratio", "gauge", "The same over the latest steps.", _EACH)
LOWER = Metric("venn_claimed_lower_ratio", "gauge", "Mean lower probability of the predicted label.", _EACH)
UPPER = Metric("venn_claimed_upper_ratio", "gauge", "Mean upper probability of the predicted label.", _EACH)
LOG_LOSS = Metric("venn_log_loss_nats", "gauge", "Mean log loss of the point forecast, in nats.", _EACH)
BRIER = Metric("venn_brier_score", "gauge", "Mean Brier score, from 0 to 2.", _EACH)
ECE = Metric("venn_expected_calibration_error_ratio", "gauge", "Expected calibration error of the forecast.", _EACH)
SET_ERROR = Metric("venn_set_error_ratio", "gauge", "Share of sets at a level that missed the true label.", _LEVEL)
WINDOW_ERROR = Metric("venn_window_set_error_ratio", "gauge", "The same over the latest steps.", _LEVEL)
INSIDE = Metric(
    "venn_inside_interval_ratio", "gauge", "Share of labels inside the interval at level 0.05, of numbers.", _EACH
)
WINDOW_INSIDE = Metric("venn_window_inside_interval_ratio", "gauge", "The same over the latest steps.", _EACH)
WIDTH = Metric("venn_interval_width", "gauge", "Mean width of the finite intervals at a level, of numbers.", _LEVEL)
SET_SIZE = Metric("venn_set_size_labels", "gauge", "Mean number of labels in a set at a level.", _LEVEL)
EVIDENCE = Metric(
    "venn_evidence_log10", "gauge", "Base 10 logarithm of the evidence against a predictor's claims.", _PATH
)
THRESHOLD = Metric("venn_evidence_threshold_log10", "gauge", "Base 10 logarithm at which the detector rings.", _PATH)
ALARMS = Metric("venn_alarms_total", "counter", "Alarms of all detectors.", _EACH)
VERDICT = Metric("venn_verdict", "gauge", "1 for the state of the verdict, 0 for others.", ("predictor", "state"))
CHANGE = Metric("venn_change_step", "gauge", "Estimated step of the change, while the verdict is changed.", _EACH)

METRICS = (
    UP, QUESTIONS, ANSWERS, EXPIRED, PENDING, RATE, LAST, CREATED, PREDICTOR, ACCURACY, WINDOW, LOWER, UPPER, LOG_LOSS,
    BRIER, ECE, SET_ERROR, WINDOW_ERROR, SET_SIZE, WIDTH, INSIDE, WINDOW_INSIDE, EVIDENCE, THRESHOLD, ALARMS, VERDICT,
    CHANGE,
)  # fmt: skip

Sample = tuple[Metric, tuple[str, ...], float]


def samples(watched: Watched) -> Iterator[Sample]:
    """Yield the figures of a run as (metric, values of its labels, number)."""
    counts = watched.counts()
    for metric, value in (
        (QUESTIONS, counts.asked), (ANSWERS, counts.answered), (EXPIRED, counts.expired), (PENDING, counts.pending),
        (RATE, counts.rate), (CREATED, watched.created),
    ):  # fmt: skip
        yield metric, (), float(value)
    if counts.time:
        yield LAST, (), counts.time
    found = {name: watched.snapshot(name) for name in (*watched.names, *watched.objects)}
    known = {name: snapshot for name, snapshot in found.items() if snapshot is not None}
    for name, snapshot in known.items():
        if snapshot["told"] is not None:
            yield from _of_predictor(name, watched.predictors.get(name, ""), snapshot["told"])
        if snapshot["monitor"] is not None:
            yield from _of_monitor(name, snapshot["monitor"])
    for name, verdict in counting(known).items():
        yield from _of_verdict(name, verdict)


def _of_predictor(name: str, parameters: str, told: Mapping[str, Any]) -> Iterator[Sample]:
    curves, window = told["curves"], told["window"]
    yield PREDICTOR, (name, parameters, str(told["predictions"]), str(told["guaranteed"])), 1.0
    of_numbers = any(field.startswith("width_") for field in curves)
    share, lately = (INSIDE, WINDOW_INSIDE) if of_numbers else (ACCURACY, WINDOW)
    found = {
        share: curves.get("accuracy"), lately: window.get("accuracy"), LOWER: curves.get("lower"),
        UPPER: curves.get("upper"), LOG_LOSS: curves.get("log_loss"), BRIER: curves.get("brier"),
        ECE: told.get("calibration", {}).get("ece"),
    }  # fmt: skip
    for metric, value in found.items():
        if value is not None:
            yield metric, (name,), value
    for metric, key, means in (
        (SET_ERROR, "error_", curves), (WINDOW_ERROR, "error_", window), (SET_SIZE, "size_", curves),
        (WIDTH, "width_", curves),
    ):  # fmt: skip
        for field, value in means.items():
            if field.startswith(key):
                yield metric, (name, field.removeprefix(key)), value


def _of_monitor(name: str, monitor: Mapping[str, Any]) -> Iterator[Sample]:
    yield ALARMS, (name,), float(monitor["alarms"]["count"])
    for one in monitor["evidence"]:
        if "log10" in one:
            labels = (name, one["detector"], one["name"])
            yield EVIDENCE, labels, one["log10"]
            yield THRESHOLD, labels, one["threshold"]


def _of_verdict(name: str, verdict: Verdict) -> Iterator[Sample]:
    for state in STATES:
        yield VERDICT, (name, state), float(state == verdict.state)
    if verdict.state == CHANGED and verdict.since is not None:
        yield CHANGE, (name,), float(verdict.since)


class Collector:
    """Reads a run whenever Prometheus asks; if the run is not there, `venn_up` is 0 and there is nothing else.

    Parameters
    ----------
    opened : callable
        Opens the run, or raises OSError, RuntimeError or ValueError.
    """

    def __init__(self, opened: Callable[[], Watched]) -> None:
        self._open = opened

    def collect(self) -> Iterator[Any]:
        """Yield the families of metrics."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        found: list[Sample] = []
        try:
            watched = self._open()
            try:
                found = [(UP, (), 1.0), *samples(watched)]
            finally:
                watched.close()
        except ERRORS:
            found = [(UP, (), 0.0)]
        for metric in METRICS:
            family = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
            mine = [(labels, value) for of, labels, value in found if of is metric]
            if mine:
                made = family(metric.name, metric.help, labels=metric.labels)
                for labels, value in mine:
                    made.add_metric(labels, value)
                yield made

    def describe(self) -> list[Any]:
        """Return nothing: the metrics depend on the run."""
        return []


def registry(opened: Callable[[], Watched]) -> CollectorRegistry:
    """Return a separate registry with the metrics of one run.

    Raises
    ------
    ImportError
        prometheus-client is not installed.
    """
    try:
        from prometheus_client import CollectorRegistry
    except ImportError as error:
        raise ImportError(MISSING) from error
    found = CollectorRegistry()
    found.register(Collector(opened))
    return found


class Requests(WSGIRequestHandler):
    """Reads requests; writes no log, and nothing of clients who leave."""

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""

    def get_stderr(self) -> TextIO:
        """Return where an answer that could not be sent is reported: nowhere, its client knows."""
        return StringIO()


class Threads(ThreadingMixIn, WSGIServer):
    """A thread for each connection, of which there are few, and none for long: a run must not suffer from its viewers.

    For one connection more than `most`, that which has lasted longest is ended. Bodies of requests are never read.
    """

    daemon_threads = True
    request_queue_size = 128  # that wait to be taken: the system delays further ones by seconds
    most = 16
    seconds = 10.0  # that a connection may last

    def __init__(self, *arguments: Any) -> None:
        self._open: dict[socket, float] = {}  # since when, oldest first
        self._slots = threading.Semaphore(self.most)
        super().__init__(*arguments)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Hand a connection to its thread."""
        if not self._slots.acquire(blocking=False):
            for oldest in list(self._open)[:1]:
                end(oldest)
            if not self._slots.acquire(timeout=1.0):
                self.shutdown_request(request)
                return
        self._open[request] = monotonic()
        try:
            super().process_request(request, client_address)
        except RuntimeError:  # no more threads
            self._done(request)
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer, in the thread."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._done(request)

    def _done(self, request: Any) -> None:
        del self._open[request]
        self._slots.release()

    def service_actions(self) -> None:
        """End connections that have lasted too long; called every half second."""
        now = monotonic()
        for request, since in list(self._open.items()):
            if now - since > self.seconds:
                end(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a client who leaves or is ended."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


def end(request: socket) -> None:
    """Let the thread that waits for a connection read its end."""
    with suppress(OSError):  # it has ended by itself
        request.shutdown(SHUT_RDWR)


def guarded(door: Door, serve: Callable[..., Iterable[bytes]]) -> Callable[..., Iterable[bytes]]:
    """Return a WSGI application that serves /metrics to those whom the door lets in, and one line to others.

    Parameters
    ----------
    door : Door
    serve : callable
        The WSGI application behind it.
    """

    def answer(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        def started(status: str, headers: list[tuple[str, str]], *rest: Any) -> Any:
            kept = [(name, value) for name, value in headers if name.title() not in HEADERS]
            return start_response(status, [*kept, *HEADERS.items(), ("Cache-Control", "no-store")], *rest)

        given = {name: environ[key] for name, key in ASKED.items() if key in environ}
        refused = door.refusal(given)
        if refused is None and environ.get("PATH_INFO") != "/metrics":
            refused = NONE
        if refused is None:
            return serve(environ, started)
        status, line = refused
        started(f"{status} {HTTPStatus(status).phrase}", [("Content-Type", "text/plain; charset=utf-8")])
        return [f"{line}\n".encode()]

    return answer


@contextmanager
def serving(
    opened: Callable[[], Watched], host: str, port: int,
    *, allowed: Iterable[str] = (), token: str | None = None, unguarded: bool = False,
) -> Iterator[int]:  # fmt: skip
    """Serve the metrics at ``http://host:port/metrics`` from a thread while the block lasts; give the port.

    Parameters
    ----------
    opened : callable
        Opens the run, see `Collector`.
    host : str
        Address to listen at.
    port : int
        0: any that is free.
    allowed, token, unguarded
        Who may read, see `venn.show.door.Door`; the token comes in the header Authorization.

    Raises
    ------
    ImportError
        prometheus-client is not installed.
    OSError
        The address cannot be listened at.
    ValueError
        `allowed` or `token` is not what it must be; nobody has listened then.
    """
    made = registry(opened)
    from prometheus_client import make_wsgi_app

    Door(host, port, allowed, token, unguarded)  # an error before anybody listens
    family, _, _, _, address = getaddrinfo(host, port, type=SOCK_STREAM, flags=AI_PASSIVE)[0]
    kind: type[Threads] = type("Server", (Threads,), {"address_family": family})
    with make_server(str(address[0]), port, lambda *_: [], kind, Requests) as server:
        door = Door(host, server.server_port, allowed, token, unguarded)
        server.set_app(guarded(door, make_wsgi_app(made)))
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


def text_of(opened: Callable[[], Watched]) -> bytes:
    """Return the metrics of a run as Prometheus would read them now.

    Raises
    ------
    ImportError
        prometheus-client is not installed.
    """
    made = registry(opened)
    from prometheus_client import generate_latest

    return generate_latest(made)
