"""Figures: what is drawn where, layouts without overlaps, edge cases, bad input."""

import itertools
import sys

import numpy as np
import pytest
from scipy import stats

from venn.show import plot

matplotlib = pytest.importorskip("matplotlib")
Text = pytest.importorskip("matplotlib.text").Text

RNG = np.random.default_rng(4)


def means(values):
    return np.cumsum(values) / np.arange(1, len(values) + 1)


def curve(n, interval=True, band=True):
    accuracy, lower = means(RNG.random(n) < 0.9), means(0.85 + 0.05 * RNG.random(n))
    radius = 1.5 / np.sqrt(np.arange(1, n + 1))
    ends = (accuracy - radius, accuracy + radius) if band else None
    return plot.Curve(accuracy, lower, lower + 0.1 if interval else lower, interval, ends)


def diagram(n, b=10, shift=0.0):
    forecasts = RNG.beta(4, 1, n)
    hits = RNG.random(n) < forecasts - shift
    bins = np.minimum((forecasts * b).astype(int), b - 1)
    counts = np.bincount(bins, minlength=b)
    with np.errstate(invalid="ignore"):  # empty bins are NaN, as whoever divides finds them
        confidence, frequency = np.bincount(bins, forecasts, b) / counts, np.bincount(bins, hits, b) / counts
        low, high = stats.binom.interval(0.9, counts, np.nan_to_num(confidence)) / counts
    return plot.Diagram(confidence, frequency, counts, low, high, 0.0123)


def counts(n, rates=(0.01, 0.05, 0.1, 0.2)):
    return {rate: np.cumsum(RNG.random(n) < rate) for rate in rates}


def path(n, drift=0.0):
    return RNG.normal(drift, 0.05, n).cumsum()


FIGURES = {
    "curves": lambda k, n, to: plot.curves({f"p{i}": curve(n, i % 2) for i in range(k)}, "toy", to),
    "martingales": lambda k, n, to: plot.martingales(
        {f"p{i}": path(n) for i in range(k)}, {"level 0.01": 2.0, "level 0.05": 1.3}, {"p0": [n]}, "toy", to
    ),
    "reliability": lambda k, n, to: plot.reliability({f"p{i}": diagram(n) for i in range(k)}, "toy", to),
    "p_values": lambda k, n, to: plot.p_values({f"p{i}": RNG.random(n) for i in range(k)}, "toy", to),
    "errors": lambda k, n, to: plot.errors({f"p{i}": counts(n) for i in range(k)}, "toy", to),
}


def titles(axis):
    """Return the titles in the middle, on the left and on the right: texts that `axis.texts` leaves out."""
    return [one for one in axis.get_children() if isinstance(one, Text) and one not in axis.texts]


def assert_readable(figure):
    """No title over a title, nothing beyond the edge."""
    figure.draw_without_rendering()
    page = figure.bbox
    (legend,) = figure.legends
    shown = [*figure.texts, legend]
    for axis in figure.axes:
        shown += [*titles(axis), axis.xaxis.label, axis.yaxis.label, *axis.texts]
    extents = [one.get_window_extent() for one in shown if not (hasattr(one, "get_text") and not one.get_text())]
    for extent in extents:
        assert page.x0 <= extent.x0
        assert extent.x1 <= page.x1
        assert page.y0 <= extent.y0
        assert extent.y1 <= page.y1
    for axis in figure.axes:
        assert axis.get_window_extent().height > 0.08 * page.height / max(1, len(figure.axes) ** 0.5)
        _, left, right = titles(axis)
        if left.get_text() and right.get_text() and not left.get_text().endswith("\n"):
            assert left.get_window_extent().x1 < right.get_window_extent().x0
    for one, two in itertools.combinations([t.get_window_extent() for axis in figure.axes for t in axis.texts], 2):
        assert not one.overlaps(two)


@pytest.mark.parametrize("kind", FIGURES)
def test_writes_a_figure_and_makes_its_folder(kind, tmp_path):
    before = dict(matplotlib.rcParams)
    figure = FIGURES[kind](2, 300, tmp_path / "new" / "one" / f"{kind}.png")
    assert (tmp_path / "new" / "one" / f"{kind}.png").read_bytes().startswith(b"\x89PNG")
    assert figure.get_suptitle() == "toy"
    pyplot = sys.modules.get("matplotlib.pyplot")
    assert pyplot is None or not pyplot.get_fignums()
    assert dict(matplotlib.rcParams) == before


@pytest.mark.parametrize(("k", "n"), [(1, 1), (5, 700)])
@pytest.mark.parametrize("kind", FIGURES)
def test_readable_for_few_and_many(kind, k, n):
    assert_readable(FIGURES[kind](k, n, None))


@pytest.mark.parametrize("kind", FIGURES)
def test_long_names_and_titles_stay_readable(kind):
    name = "isotonic regression, by class"
    made = {
        "curves": lambda: plot.curves({name: curve(50), "b": curve(50)}, "t" * 70),
        "martingales": lambda: plot.martingales(
            {name: path(50)}, {"a long name of a line": 1}, {name: [3, 9]}, "t" * 70
        ),
        "reliability": lambda: plot.reliability({name: diagram(90), "b": diagram(90)}, "t" * 70),
        "p_values": lambda: plot.p_values({name: RNG.random(50), "b": RNG.random(9)}, "t" * 70),
        "errors": lambda: plot.errors({name: counts(50), "b": counts(50)}, "t" * 70),
    }
    assert_readable(made[kind]())


@pytest.mark.parametrize("kind", FIGURES)
def test_without_matplotlib_it_says_what_to_install(kind, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"figures need matplotlib: pip install matplotlib"):
        FIGURES[kind](1, 5, None)


# --------------------------------------------------------------------------- curves


def test_the_band_is_drawn_behind_the_accuracy_and_fits():
    one, other = curve(5000), curve(5000, band=False)
    figure = plot.curves({"a": one, "b": other}, "toy")
    first, second = figure.axes
    assert len(first.lines) == len(second.lines) + 2
    (accuracy,) = (line for line in first.lines if line.get_label() == "accuracy")
    low, high = (line.get_ydata() for line in first.lines[:2])
    assert low[-1] == one.band[0][-1]
    assert high[-1] == one.band[1][-1]
    assert (low <= accuracy.get_ydata()).all()
    assert list(first.lines).index(accuracy) == len(first.lines) - 1  # on top
    assert first.get_ylim()[0] < low[-1]
    assert first.get_ylim()[1] > high[-1]


# ---------------------------------------------------------------------- martingales


def lines(axis):
    return {line.get_label().split(":")[0]: line for line in axis.lines if not line.get_label().startswith("_")}


@pytest.mark.parametrize("n", [1, 100, 50_000])
def test_paths_start_at_0_and_no_peak_is_lost(n):
    values = path(n)
    values[n // 3] = 40.0
    if n > 1:
        values[n // 2] = -30.0
    figure = plot.martingales({"a": values}, {}, {}, "toy")
    (axis,) = figure.axes
    figure.draw_without_rendering()
    assert axis.get_window_extent().height > 0.45 * figure.bbox.height  # no room goes to waste
    drawn = lines(axis)["a"]
    assert drawn.get_xydata()[0].tolist() == [0, 0]
    assert drawn.get_xydata()[-1].tolist() == [n, values[-1]]
    shown = dict(drawn.get_xydata().tolist())
    assert all(shown[x] == values[int(x) - 1] for x in shown if x)
    assert (max(shown.values()), min(shown.values())) == (max(*values, 0), min(*values, 0))
    assert len(shown) <= 4001


def test_thresholds_and_alarms_stand_where_they_belong():
    values = {"a": path(500, 0.02), "b": path(500, 0.01)}
    (axis,) = plot.martingales(values, {"level 0.01": 2.0}, {"a": [300, 20], "b": []}, "toy").axes
    (marks,) = (line for line in axis.lines if line.get_marker() == "v")
    assert marks.get_xydata().tolist() == [[300, values["a"][299]], [20, values["a"][19]]]
    assert any(set(line.get_ydata()) == {2.0} for line in axis.lines)
    assert axis.texts[0].get_text() == "2  level 0.01"
    assert "an alarm rings" in axis.figure.legends[0].texts[-1].get_text()
    labels = axis.get_legend_handles_labels()[1]
    assert labels == [f"a: {values['a'][-1]:.4g}, 2 alarms from step 20", f"b: {values['b'][-1]:.4g}"]


def test_the_infinite_and_the_far_depths_are_drawn_at_the_edge_and_said():
    n = 200
    up, down, deep = path(n), path(n), path(n)
    up[150:], down[100:], deep[:] = np.inf, -np.inf, -np.arange(n) * 10.0
    (axis,) = plot.martingales({"up": up, "down": down, "deep": deep}, {"t": 4.0}, {"up": [151]}, "toy").axes
    assert "drawn at the edge: up is infinite from step 151, down falls to -inf and 1 more" in axis.get_xlabel()
    low, high = axis.get_ylim()
    assert -30 < low < high < 6
    for name, line in lines(axis).items():
        assert np.isfinite(line.get_ydata()).all(), name
    assert lines(axis)["up"].get_ydata()[-1] > 4.0  # above every line
    (only,) = plot.martingales({"a": np.full(3, -np.inf)}, {}, {}, "toy").axes
    assert "a falls to -inf" in only.get_xlabel()


# ---------------------------------------------------------------------- reliability


def test_points_bars_and_counts():
    asked = diagram(400, shift=0.15)
    figure = plot.reliability({"a": asked}, "toy")
    axis, histogram = figure.axes
    some = asked.counts > 0
    assert 0 < some.sum() < 10  # some bins are empty
    beyond = some & ((asked.frequency < asked.low) | (asked.frequency > asked.high))
    assert beyond.any()
    bars, inside, outside = axis.collections
    assert np.allclose([s[:, 1] for s in bars.get_segments()], np.column_stack([asked.low, asked.high])[some])
    assert np.allclose(outside.get_offsets(), np.column_stack([asked.confidence, asked.frequency])[beyond])
    assert np.allclose(inside.get_offsets(), np.column_stack([asked.confidence, asked.frequency])[some & ~beyond])
    assert (np.argsort(outside.get_sizes()) == np.argsort(asked.counts[beyond])).all()
    assert np.allclose([s[1, 1] for s in histogram.collections[0].get_segments()], asked.counts[some])
    assert axis.get_title(loc="right") == f"ECE 0.012, {beyond.sum()} of {some.sum()} bins beyond"
    assert not any(one.get_text().startswith("*") for one in figure.legends[0].texts)
    beside = plot.reliability({"a": asked._replace(claimed=False)}, "toy")
    assert beside.axes[0].get_title(loc="right").startswith("* ECE")
    assert beside.legends[0].texts[-1].get_text().startswith("* of point forecasts, which are not claimed")
    for limits in (axis.get_xlim(), axis.get_ylim()):
        assert limits[0] < np.nanmin([asked.confidence, asked.frequency, asked.low])
        assert limits[1] > 1


def test_a_diagram_without_forecasts():
    nothing = np.full(3, np.nan)
    figure = plot.reliability({"a": plot.Diagram(nothing, nothing, np.zeros(3, int), nothing, nothing, np.nan)}, "toy")
    assert "no forecast" in figure.axes[0].get_title(loc="right")
    assert_readable(figure)


# ------------------------------------------------------------------------- p-values


def test_histogram_level_and_band():
    values = np.concatenate([RNG.random(900), np.zeros(60), np.ones(40)])
    (axis,) = plot.p_values({"a": values}, "toy").axes
    heights = {round(bar.get_x(), 6): bar.get_height() for bar in axis.patches if bar.get_width() < 0.5}
    expected = [np.sum((values >= i / 20) & ((values < (i + 1) / 20) | (i == 19))) for i in range(20)]
    assert np.allclose([heights[round(i / 20, 6)] for i in range(20)], np.array(expected) / 50)
    # The exact 99 % limits of a count of 1000 with chance 1/20, from the probabilities themselves.
    chances = np.cumsum([stats.binom.pmf(k, 1000, 0.05) for k in range(1001)])
    low, high = (int(np.argmax(chances >= q)) for q in (0.005, 0.995))
    assert np.allclose(sorted(line.get_ydata()[0] for line in axis.lines), [low / 50, 1.0, high / 50])
    outside = sum(not low <= count <= high for count in expected)
    assert axis.get_title(loc="right") == f"1000 p-values, {outside} of 20 bins beyond"
    assert sum(bar.get_hatch() is not None for bar in axis.patches) == outside


# --------------------------------------------------------------------------- errors


def test_errors_follow_their_lines():
    n = 10_000
    asked = {"a": counts(n, (0.05, 0.2)), "b": counts(n, (0.2,))}
    first, second = plot.errors(asked, "toy").axes
    for axis, of in ((first, asked["a"]), (second, asked["b"])):
        drawn = {line.get_label(): line for line in axis.lines if line.get_label().startswith("at")}
        straight = {line.get_ydata()[-1] for line in axis.lines if not line.get_label().startswith("at")}
        assert straight == {epsilon * n for epsilon in of}
        for epsilon, values in of.items():
            assert drawn[f"at {epsilon:g}"].get_xydata()[-1].tolist() == [n, values[-1]]
    # One level has one colour in all panels.
    assert first.lines[1].get_color() == second.lines[1].get_color()
    assert f"{asked['a'][0.05][-1] / n:.3f} at 0.05" in first.get_title(loc="right")
