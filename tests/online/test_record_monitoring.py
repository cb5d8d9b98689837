"""What a record says of the claims of its predictors: p-values, monitors, figures."""

import math

import numpy as np
import pytest

from venn.monitors.bounds import ForwardEProcess
from venn.monitors.martingales import CompositeJumper
from venn.monitors.monitor import Monitor
from venn.online.checkpoint import pack
from venn.online.record import Record
from venn.prediction import CategoryClass, ClassIntervals, Forecast, Multiprobability, PredictionSet
from venn.smoothing import Smoothing

CLASSES = ("no", "yes", "maybe")
FIGURES = ("plot", "plot_errors", "plot_martingales", "plot_p_values", "plot_reliability")
FILES = {
    "plot": "curves.png", "plot_errors": "errors.png", "plot_martingales": "martingales.png",
    "plot_p_values": "p_values.png", "plot_reliability": "reliability.png",
}  # fmt: skip
# What each kind of prediction can be drawn of.
KINDS = {
    "label": {"plot", "plot_martingales", "plot_p_values", "plot_reliability"},
    "row": {"plot", "plot_martingales", "plot_p_values", "plot_reliability"}, "unproved": {"plot", "plot_reliability"},
    "pairs": {"plot", "plot_martingales", "plot_p_values", "plot_reliability"},
    "point": {"plot", "plot_martingales", "plot_reliability"},
    "sets": {"plot_errors", "plot_martingales", "plot_p_values"}, "plain": {"plot_errors"},
}  # fmt: skip


def prediction(kind, rng, classes=CLASSES):
    """Return a prediction of a kind, full of ties."""
    c = len(classes)
    rows = rng.integers(1, 5, size=(c, c)) / 1.0
    rows /= rows.sum(axis=1, keepdims=True)
    if kind == "label":
        return Multiprobability(rows, classes, CategoryClass(), int(rng.integers(c)))
    if kind == "row":
        return Multiprobability(rows, classes)
    if kind == "unproved":
        return Multiprobability(rows, classes, guaranteed="nothing")
    if kind == "pairs":
        return ClassIntervals(rng.integers(0, 5, size=(c, 2)) / 4, classes)
    if kind == "point":
        return Forecast(rows[0], classes)
    values = rng.integers(0, 5, size=c) / 4
    return PredictionSet(values, classes, smoothed=kind == "sets")


def steps_of(kinds, n, seed=0, classes=CLASSES):
    rng = np.random.default_rng(seed)
    return [
        ({kind: prediction(kind, rng, classes) for kind in kinds}, classes[int(rng.integers(len(classes)))])
        for _ in range(n)
    ]


def recorded(kinds, n, seed=0, classes=CLASSES):
    record = Record(classes, tuple(kinds), data="toy")
    for predictions, y in steps_of(kinds, n, seed, classes):
        record.update(predictions, y)
    return record


def p_value_of_event(happened, probability, tau):
    """The smoothed p-value of an example among those that fail (share 1 - P) and those that do not (share P)."""
    missed = 1 - probability
    return missed + tau * (1 - missed) if happened else tau * missed


# ------------------------------------------------------------------------------ p-values


@pytest.mark.parametrize("seed", [0, 7])
def test_p_values_by_their_definitions(seed):
    kinds = tuple(KINDS)
    record, steps = recorded(kinds, 300), steps_of(kinds, 300)
    tau = [Smoothing(seed).at(step) for step in range(300)]
    found = {kind: record.p_values(kind, seed) for kind in kinds}
    shares = [f"share of class {k!r}" for k in CLASSES]
    names = {"label": ["predicted label", *shares], "row": ["realised row", *shares], "sets": ["true label"]}
    pairs = ["class 'no'", "class 'yes'", "class 'maybe'"]
    names["pairs"] = pairs + shares
    assert {kind: list(one) for kind, one in found.items()} == {kind: names.get(kind, []) for kind in kinds}
    for step, (predictions, y) in enumerate(steps):
        true = CLASSES.index(y)
        label = predictions["label"]
        expected = p_value_of_event(label.label == y, label.probabilities[true, label.index], tau[step])
        assert found["label"]["predicted label"][step] == pytest.approx(expected, abs=1e-12)
        row = predictions["row"].probabilities[true]
        expected = p_value_of_event(row.argmax() == true, row.max(), tau[step])
        assert found["row"]["realised row"][step] == pytest.approx(expected, abs=1e-12)
        for k, name in enumerate(shares):
            p = predictions["pairs"].pairs[k, int(k == true)]
            assert found["pairs"][name][step] == pytest.approx(p_value_of_event(true == k, p, tau[step]), abs=1e-12)
            expected = p_value_of_event(true == k, label.probabilities[true, k], tau[step])
            assert found["label"][name][step] == pytest.approx(expected, abs=1e-12)
        for k, name in enumerate(pairs):
            p = predictions["pairs"].pairs[k, int(k == true)]
            expected = (
                p_value_of_event(true == k, p, tau[step]) if p >= 0.5 else p_value_of_event(true != k, 1 - p, tau[step])
            )
            assert found["pairs"][name][step] == pytest.approx(expected, abs=1e-12)
        assert found["sets"]["true label"][step] == predictions["sets"].p_values[true]
    for one in found.values():
        for values in one.values():
            assert values.min() >= 0
            assert values.max() <= 1


def test_p_values_are_copies_and_of_a_prefix_the_prefix():
    short, long = recorded(("row", "sets"), 40), recorded(("row", "sets"), 300)
    for kind in ("row", "sets"):
        one, other = (next(iter(record.p_values(kind).values())) for record in (short, long))
        np.testing.assert_array_equal(one, other[:40])
        before = long[kind].per_step.probability.copy() if kind == "row" else long[kind].p_values.copy()
        other[:] = 0.5
        after = long[kind].per_step.probability if kind == "row" else long[kind].p_values
        np.testing.assert_array_equal(before, after)


def test_predictors_whose_guarantee_varies_have_no_p_values():
    record = recorded(("row",), 20)
    record.update({"row": prediction("unproved", np.random.default_rng(0))}, "no")
    assert record.guaranteed == {"row": "mixed"}
    assert record.p_values("row") == {}
    assert record.monitor("row").snapshot()["evidence"] == []


# ------------------------------------------------------------------------------ monitors


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("c", [2, 5])
@pytest.mark.parametrize("n", [1, 400])
def test_a_record_shows_the_monitor_that_watched_it(tmp_path, kind, c, n):
    classes = tuple(range(c))
    parameters = {"level": 0.2, "run_length": 50, "window": 30, "seed": 3}
    live = Monitor(classes, **parameters)
    record = Record(classes, [kind])
    rung = []
    for predictions, y in steps_of((kind,), n, seed=5, classes=classes):
        record.update(predictions, y)
        rung += live.update(predictions[kind], y)
    record.save(tmp_path / "record.npz")
    for one in (record, Record.load(tmp_path / "record.npz")):
        monitor = one.monitor(kind, **parameters)
        assert pack(monitor) == pack(live)
        assert monitor.snapshot() == live.snapshot()
        assert monitor.alarms == tuple(rung)[-100:]
    if n > 1 and kind in ("label", "row", "pairs", "point"):
        assert rung  # so that alarms are compared at all: labels are drawn without regard to the predictions


def test_a_monitor_of_nothing_and_of_nobody():
    record = Record(CLASSES, ["venn"])
    assert record.monitor("venn").n == 0
    assert record.p_values("venn") == {}
    for ask in (record.monitor, record.p_values, record.outcomes, record.running):
        with pytest.raises(KeyError, match=r"no predictor 'oracle' in this record; it has venn"):
            ask("oracle")
    with pytest.raises(ValueError, match="level must be"):
        record.monitor("venn", level=2)


# ------------------------------------------------------------------------------ in a progress bar


@pytest.mark.parametrize("kind", ["row", "pairs", "point", "sets"])
def test_running_means_are_those_of_all_steps_whenever_they_are_asked_for(tmp_path, kind):
    record, asked = Record(CLASSES, [kind]), np.random.default_rng(2)
    assert record.running(kind) == f"{kind}: no step"
    for predictions, y in steps_of((kind,), 600):
        record.update(predictions, y)
        if asked.random() < 0.1:
            assert record.running(kind) == words(record, kind)
    record.save(tmp_path / "record.npz")
    assert Record.load(tmp_path / "record.npz").running(kind) == record.running(kind) == words(record, kind)


def words(record, kind):
    means = record.means()[kind]
    if kind == "sets":
        return (
            f"sets: accuracy {means['accuracy']:.3f}, at 0.05 error rate {means['error_0.05']:.3f}, "
            f"{means['size_0.05']:.2f} labels a set"
        )
    claim = f"claimed {means['lower']:.3f}" if kind == "point" else f"in [{means['lower']:.3f}, {means['upper']:.3f}]"
    return f"{kind}: accuracy {means['accuracy']:.3f} {claim}"


def test_running_adds_up_new_steps_only():
    record = recorded(("row",), 100)
    record.running("row")
    track = record._tracks["row"]
    track._numbers[:100] = np.nan  # what has been added up is not read again
    assert "nan" not in record.running("row")


# ------------------------------------------------------------------------------ figures


@pytest.mark.parametrize(
    ("kinds", "n"),
    [
        *(((kind,), 30) for kind in KINDS), (tuple(KINDS), 30), (("sets", "plain"), 1), (("plain", "point"), 30),
    ],
)  # fmt: skip
def test_what_there_is_is_drawn_and_nothing_else(tmp_path, kinds, n, undrawn):
    """Where n is 30, files are counted and not drawn: test_figures.py draws one of everything."""
    pytest.importorskip("matplotlib")
    drawn = n != 30
    if drawn:
        undrawn.undo()
    record = recorded(kinds, n)
    possible = set().union(*(KINDS[kind] for kind in kinds))
    for figure in FIGURES:
        if figure not in possible:
            with pytest.raises(ValueError, match=f"the figure needs a predictor that gives .*, got {', '.join(kinds)}"):
                getattr(record, figure)(tmp_path / "figure.png")
            assert not list(tmp_path.iterdir())
    written = record.plot_all(tmp_path / "new")
    assert [path.name for path in written] == [FILES[figure] for figure in FIGURES if figure in possible]
    assert sorted((tmp_path / "new").iterdir()) == sorted(written)
    for path in written if drawn else ():
        assert path.read_bytes().startswith(b"\x89PNG")
        assert path.stat().st_size > 5_000


def test_figures_bear_the_title_of_their_record():
    pytest.importorskip("matplotlib")
    record = recorded(tuple(KINDS), 3)
    for figure in FIGURES:
        assert getattr(record, figure)().get_suptitle() == record.title


def test_a_record_without_steps_has_nothing_to_draw(tmp_path):
    record = Record(CLASSES, ["venn"])
    for figure in FIGURES:
        with pytest.raises(ValueError, match="a record without steps has nothing to draw"):
            getattr(record, figure)()
    with pytest.raises(ValueError, match="a record without steps has nothing to draw"):
        record.plot_all(tmp_path / "new")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("level", [0, 1, -1, 2, math.nan, "x", None, True])
def test_the_level_of_alarms_is_a_probability(level):
    with pytest.raises((ValueError, TypeError), match=r"level must be .*, got"):
        recorded(("row",), 5).plot_martingales(level=level)


def test_only_where_the_predicted_label_is_guaranteed_a_band_is_drawn():
    pytest.importorskip("matplotlib")
    record = recorded(("label", "row", "pairs", "point"), 200)
    axes = record.plot().axes
    bands = [[patch for patch in axis.collections if patch.get_label() == "time-uniform band"] for axis in axes]
    assert [len(found) for found in bands] == [1, 0, 0, 0]
    corners = bands[0][0].get_paths()[0].vertices
    # 5.3: with chance 0.95 the sum of deviations stays, at all N together, within sqrt(N ln(2 N (N + 1) / 0.05) / 2).
    n, curves = 200, record["label"]
    allowed = math.sqrt(n / 2 * math.log(2 * n * (n + 1) / 0.05)) / n
    last = corners[corners[:, 0] == n][:, 1]
    assert last.min() == pytest.approx(curves.lower[-1] - allowed)
    assert last.max() == pytest.approx(curves.upper[-1] + allowed)


def test_martingales_are_those_of_the_p_values_and_alarms_those_of_the_monitor():
    pytest.importorskip("matplotlib")
    record = recorded(tuple(KINDS), 400)
    level, seed = 0.05, 3
    (axis,) = record.plot_martingales(level=level, seed=seed).axes
    logs = {}
    for kind in KINDS:
        one = record.p_values(kind, seed)
        for source, p in one.items():
            logs[f"{kind}: {source}" if len(one) > 1 else kind] = CompositeJumper().update_many(p)
    o = record.outcomes("point")
    logs["point"] = ForwardEProcess().update_many(o.predicted == o.truth, o.lower, o.lower)
    drawn = {line.get_label().rsplit(": ", 1)[0]: line for line in axis.lines if ": " in str(line.get_label())}
    assert list(drawn) == list(logs)
    some = 0
    for name, values in logs.items():
        text = drawn[name].get_label().rsplit(": ", 1)[1]
        kind, _, source = name.partition(": ")
        rung = Monitor(CLASSES, level=level, seed=seed).follow(
            record.outcomes(kind), record.kinds[kind], record.guaranteed[kind]
        )
        reached = [
            one.step
            for one in rung
            if one.detector in ("Ville", "ForwardEProcess")
            and one.about == (source or {"point": "predicted label"}.get(kind, one.about))
        ]
        assert float(text.split(",")[0]) == pytest.approx(values[-1] / math.log(10), rel=1e-3)
        assert (f"1 alarm from step {reached[0]}" in text) if reached else ("alarm" not in text)
        some += bool(reached)
    assert 0 < some < len(logs)


def test_one_panel_for_each_histogram_of_p_values():
    pytest.importorskip("matplotlib")
    record = recorded(("row", "pairs", "point", "sets"), 100)
    titles = [axis.get_title(loc="left").strip() for axis in record.plot_p_values().axes]
    shares = [f"share of class {k!r}" for k in CLASSES]
    pairs = ["class 'no'", "class 'yes'", "class 'maybe'", *shares]
    expected = [f"row: {source}" for source in ("realised row", *shares)] + [f"pairs: {source}" for source in pairs]
    assert titles == [*expected, "sets"]


def test_reliability_is_that_of_the_point_forecasts():
    pytest.importorskip("matplotlib")
    record = recorded(("row", "sets", "point"), 100)
    axes = record.plot_reliability().axes
    assert [title for axis in axes if (title := axis.get_title(loc="left").strip())] == ["row", "point"]


def test_errors_are_drawn_for_sets_alone():
    pytest.importorskip("matplotlib")
    record = recorded(("row", "sets", "plain"), 100)
    axes = record.plot_errors().axes
    assert [axis.get_title(loc="left").strip() for axis in axes] == ["sets", "plain"]
    (line,) = (line for line in axes[0].lines if line.get_label() == "at 0.2")
    p_true = [p["sets"].p_values[CLASSES.index(y)] for p, y in steps_of(("row", "sets", "plain"), 100)]
    np.testing.assert_array_equal(line.get_ydata()[1:], np.cumsum(np.array(p_true) <= 0.2))
