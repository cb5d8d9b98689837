"""A run's figures for Prometheus: read from its journal at each request."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from venn.monitors.verdict import CHANGED, STATES, Verdict
from venn.show.door import Reply, Routes
from venn.show.page.feed import Watched
from venn.show.page.fleet import ShownFleet
from venn.show.view import Standing, counting, standing

KIND = "text/plain; version=0.0.4; charset=utf-8"
ERRORS = (OSError, RuntimeError, ValueError)


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
EPISODES = Metric("venn_episodes_total", "counter", "Changes so far, each from its first alarm to its end.")
LASTING = Metric("venn_episode_lasting", "gauge", "1 while a change lasts, else 0.")
VERDICT = Metric("venn_verdict", "gauge", "1 for the state of the verdict, 0 for others.", ("predictor", "state"))
CHANGE = Metric("venn_change_step", "gauge", "Estimated step of the change, while the verdict is changed.", _EACH)

METRICS = (
    UP, QUESTIONS, ANSWERS, EXPIRED, PENDING, RATE, LAST, CREATED, PREDICTOR, ACCURACY, WINDOW, LOWER, UPPER, LOG_LOSS,
    BRIER, ECE, SET_ERROR, WINDOW_ERROR, SET_SIZE, WIDTH, INSIDE, WINDOW_INSIDE, EVIDENCE, THRESHOLD, ALARMS, VERDICT,
    CHANGE, EPISODES, LASTING,
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
    episodes = watched.episodes()
    yield EPISODES, (), float(len(episodes))
    yield LASTING, (), float(any(one.lasts for one in episodes))
    found = {name: watched.snapshot(name) for name in (*watched.names, *watched.objects)}
    known = {name: snapshot for name, snapshot in found.items() if snapshot is not None}
    for name, snapshot in known.items():
        yield from _of(name, watched.predictors.get(name), standing(snapshot))
    for name, verdict in counting(known).items():
        yield from _of_verdict(name, verdict)


def _of(name: str, parameters: str | None, one: Standing) -> Iterator[Sample]:
    """Yield the figures of a predictor, or of what watches objects, which has no parameters."""
    if parameters is not None:
        predictions = one.kind.name if one.step else "None"
        yield PREDICTOR, (name, parameters, predictions, str(one.guaranteed)), 1.0
    share, lately = (INSIDE, WINDOW_INSIDE) if one.of_numbers else (ACCURACY, WINDOW)
    found = {
        share: one.means.get("accuracy"), lately: one.lately.get("accuracy"), LOWER: one.means.get("lower"),
        UPPER: one.means.get("upper"), LOG_LOSS: one.means.get("log_loss"), BRIER: one.means.get("brier"), ECE: one.ece,
    }  # fmt: skip
    yield from ((metric, (name,), value) for metric, value in found.items() if value is not None)
    for metric, means in (
        (SET_ERROR, one.errors), (WINDOW_ERROR, one.by_level("error_", lately=True)),
        (WIDTH if one.of_numbers else SET_SIZE, one.spreads),
    ):  # fmt: skip
        yield from ((metric, (name, level), value) for level, value in means.items())
    if one.watched:
        yield ALARMS, (name,), one.alarms
    for path in one.evidence:
        labels = (name, path.detector, path.about)
        yield EVIDENCE, labels, path.log10
        yield THRESHOLD, labels, path.threshold


def _of_verdict(name: str, verdict: Verdict) -> Iterator[Sample]:
    for state in STATES:
        yield VERDICT, (name, state), float(state == verdict.state)
    if verdict.state == CHANGED and verdict.since is not None:
        yield CHANGE, (name,), float(verdict.since)


def exposition(opened: Callable[[], Watched]) -> bytes:
    """Return the metrics of a run as Prometheus reads them; if it is not there, `venn_up` is 0 and nothing else.

    Parameters
    ----------
    opened : callable
        Opens the run, or raises OSError, RuntimeError or ValueError.
    """
    found: list[Sample] = []
    try:
        watched = opened()
        try:
            found = [(UP, (), 1.0), *samples(watched)]
        finally:
            watched.close()
    except ERRORS:
        found = [(UP, (), 0.0)]
    return lines_of(METRICS, found)


def lines_of(metrics: Sequence[Metric], found: Sequence[Sample]) -> bytes:
    """Return samples of metrics, in the order of these, as Prometheus reads them."""
    lines: list[str] = []
    for metric in metrics:
        mine = [_line(*one) for one in found if one[0] is metric]
        if mine:
            lines += [f"# HELP {metric.name} {metric.help}", f"# TYPE {metric.name} {metric.kind}", *mine]
    return "".join(f"{line}\n" for line in lines).encode()


def _line(metric: Metric, values: tuple[str, ...], value: float) -> str:
    def quoted(text: str) -> str:
        return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")

    labels = ",".join(f'{name}="{quoted(text)}"' for name, text in zip(metric.labels, values, strict=True))
    return f"{metric.name}{{{labels}}} {float(value)!r}" if labels else f"{metric.name} {float(value)!r}"


def of_metrics(opened: Callable[[], Watched]) -> Routes:
    """Return the address of the metrics, for `venn.show.server.serving`: read from the run at each request."""
    return {"/metrics": lambda _: Reply(KIND, exposition(opened))}


# ---------------------------------------------------------------------------------------------------------------- fleet
# A fleet in counts: no series for each key.

FLEET_METRICS = (
    UP,
    Metric("venn_fleet_keys", "gauge", "Keys that have begun."),
    Metric("venn_fleet_changed_keys", "gauge", "Keys that are named: a tenth at most wrongly, on average."),
    Metric("venn_fleet_questions_total", "counter", "Questions of all keys."),
    Metric("venn_fleet_answers_total", "counter", "Answers of all keys."),
    Metric("venn_fleet_pending", "gauge", "Questions of all keys that wait."),
    Metric("venn_fleet_last_event_seconds", "gauge", "Time of the last event, in seconds since 1970."),
)


def fleet_exposition(read: Callable[[], ShownFleet]) -> bytes:
    """Return the counts of a fleet as Prometheus reads them; if it is not there, `venn_up` is 0 and nothing else.

    Examples
    --------
    >>> fleet = ShownFleet("shops", "", "", (), (), 0.0)
    >>> fleet_exposition(lambda: fleet).decode().splitlines()[2]
    'venn_up 1.0'
    """
    try:
        fleet = read()
    except ERRORS:
        return lines_of(FLEET_METRICS, [(UP, (), 0.0)])
    keys = fleet.keys
    values = (
        1.0, float(len(keys)), float(len(fleet.names)), float(sum(one.asked for one in keys)), float(fleet.answered),
        float(sum(one.pending for one in keys)), max((one.time for one in keys), default=0.0),
    )  # fmt: skip
    found: list[Sample] = [(metric, (), value) for metric, value in zip(FLEET_METRICS, values, strict=True)]
    return lines_of(FLEET_METRICS, found)


def fleet_metrics(read: Callable[[], ShownFleet]) -> Routes:
    """Return the address of a fleet's metrics."""
    return {"/metrics": lambda _: Reply(KIND, fleet_exposition(read))}
