"""The record's numbers follow their definitions; its file survives, or says what is wrong."""

import copy
import math
import sys

import numpy as np
import pytest

import venn
from venn.online.record import Record
from venn.prediction import ClassIntervals, Forecast, Maximin, Multiprobability, PredictionSet

CLASSES = ("no", "yes", "maybe")


def random_run(n, seed=0, classes=CLASSES, rule=None):
    """Return predictions of a Venn and of a point predictor, and labels."""
    rng = np.random.default_rng(seed)
    c = len(classes)
    steps = []
    for _ in range(n):
        rows = rng.dirichlet(np.ones(c) / 2, size=c)
        venn, point = Multiprobability(rows, classes, rule), Forecast(rng.dirichlet(np.ones(c)), classes)
        steps.append(({"venn": venn, "point": point}, classes[rng.integers(c)]))
    return steps


def recorded(steps, classes=CLASSES, **parameters):
    record = Record(classes, ("venn", "point"), **parameters)
    for predictions, y in steps:
        record.update(predictions, y)
    return record


def assert_same(one, other):
    assert len(one) == len(other)
    for attribute in ("classes", "names", "data", "shuffle", "parameters", "clip", "seconds", "before"):
        assert getattr(one, attribute) == getattr(other, attribute)
    assert [type(label) for label in one.classes] == [type(label) for label in other.classes]
    np.testing.assert_array_equal(one.truth, other.truth)
    for name in one:
        mine, theirs = one[name], other[name]
        for field, values in vars(mine).items():
            if isinstance(values, np.ndarray):
                assert values.tobytes() == getattr(theirs, field).tobytes()
        for field, values in vars(mine.per_step).items():
            assert values.tobytes() == getattr(theirs.per_step, field).tobytes()
        assert (mine.interval, mine.clipped) == (theirs.interval, theirs.clipped)


# ------------------------------------------------------------------------------ definitions


@pytest.mark.parametrize("n", [1, 2, 255, 256, 257, 700])
@pytest.mark.parametrize("rule", [None, Maximin()])
def test_columns_follow_their_definitions(n, rule):
    steps = random_run(n, seed=n, rule=rule)
    record = recorded(steps)
    for name in record:
        curves, per_step = record[name], record[name].per_step
        assert curves.interval is (name == "venn")
        for i, (predictions, y) in enumerate(steps):
            prediction, true = predictions[name], CLASSES.index(y)
            p = prediction.proba
            row = prediction.probabilities[true] if name == "venn" else p
            assert per_step.hit[i] == (prediction.label == y)
            assert per_step.lower[i] == prediction.lower
            assert per_step.upper[i] == prediction.upper
            assert per_step.width[i] == prediction.width
            assert per_step.probability[i] == p[true]
            assert per_step.confidence[i] == p[prediction.index]
            assert per_step.log_loss[i] == pytest.approx(-math.log(max(p[true], 1e-15)))
            assert per_step.brier[i] == pytest.approx(sum((float(k == true) - p[k]) ** 2 for k in range(3)))
            assert per_step.realised_hit[i] == (row.argmax() == true)
            assert per_step.realised[i] == row.max()
            assert per_step.unanimous[i] == (prediction.unanimous if name == "venn" else True)


def test_columns_of_class_intervals():
    rng = np.random.default_rng(9)
    record = Record(CLASSES, ["abers"])
    steps = []
    for _ in range(300):
        pairs = rng.choice([0.0, 0.25, 0.5, 1.0], size=(3, 2)) * (rng.random() < 0.95)  # all 0 now and then
        steps.append((ClassIntervals(pairs, CLASSES), int(rng.integers(3))))
        record.update({"abers": steps[-1][0]}, CLASSES[steps[-1][1]])
    assert record["abers"].interval
    per_step = record["abers"].per_step
    for i, (prediction, true) in enumerate(steps):
        hit = prediction.index == true
        assert per_step.hit[i] == per_step.realised_hit[i] == hit
        assert (per_step.lower[i], per_step.upper[i]) == (prediction.lower, prediction.upper)
        assert per_step.probability[i] == pytest.approx(prediction.proba[true], abs=1e-15)
        brier = sum((float(k == true) - prediction.proba[k]) ** 2 for k in range(3))
        assert per_step.brier[i] == pytest.approx(brier)
        assert per_step.realised[i] == prediction.pairs[prediction.index, int(hit)]
        same = prediction.pairs[:, 0].argmax() == prediction.pairs[:, 1].argmax()
        assert per_step.unanimous[i] == same


def test_a_record_knows_what_is_guaranteed(tmp_path):
    record = Record(CLASSES, ["venn", "point", "turn"])
    assert set(record.guaranteed.values()) == {"nothing"}
    rows = np.full((3, 3), 1 / 3)
    for rule in (venn.prediction.CategoryClass(), venn.prediction.RowMean()):
        record.update(
            {
                "venn": Multiprobability(rows, CLASSES),
                "point": Forecast(np.full(3, 1 / 3), CLASSES),
                "turn": Multiprobability(rows, CLASSES, rule, 0),
            },
            CLASSES[0],
        )
    expected = {"venn": "realised row", "point": "nothing", "turn": "mixed"}
    assert record.guaranteed == expected
    record.save(tmp_path / "record")
    assert Record.load(tmp_path / "record").guaranteed == expected


def test_columns_of_prediction_sets(tmp_path):
    rng = np.random.default_rng(4)
    record = Record(CLASSES, ["conformal"])
    assert len(record["conformal"]) == 0
    steps = []
    for _ in range(300):
        p = rng.choice([0.0, 0.04, 0.05, 0.5, 1.0], size=3)
        steps.append((PredictionSet(p, CLASSES), int(rng.integers(3))))
        record.update({"conformal": steps[-1][0]}, CLASSES[steps[-1][1]])
    record.save(tmp_path / "record")
    for one in (record, Record.load(tmp_path / "record")):
        curves = one["conformal"]
        assert one.guaranteed == {"conformal": "error rate"}
        assert repr(curves).startswith("SetCurves(300 steps: at 0.05 error rate ")
        errors = hits = size = credibility = confidence = 0
        for i, (prediction, true) in enumerate(steps):
            kept = prediction.set(0.05)
            errors += CLASSES[true] not in kept
            size += len(kept)
            hits += prediction.label == CLASSES[true]
            credibility += prediction.credibility
            confidence += prediction.confidence
            assert curves.errors(0.05)[i] == errors
            assert curves.set_size(0.05)[i] == pytest.approx(size / (i + 1))
            assert curves.accuracy[i] == pytest.approx(hits / (i + 1))
            assert curves.credibility[i] == pytest.approx(credibility / (i + 1))
            assert curves.confidence[i] == pytest.approx(confidence / (i + 1))
            assert curves.p_true[i] == prediction.p_values[true]
        means = one.means()["conformal"]
        assert means["error_0.05"] == pytest.approx(errors / 300)
        assert means["size_0.05"] == pytest.approx(size / 300)
        assert "error .05" in one.table()
        assert f"at 0.05 error rate {errors / 300:.3f}" in one.running("conformal")
        with pytest.raises(ValueError, match=r"epsilon must lie in \[0, 1\], got 1.5"):
            curves.errors(1.5)
    with pytest.raises(ValueError, match="must predict p-values"):
        record.update({"conformal": tampered(steps[0][0], p_values=np.full(3, np.nan))}, CLASSES[0])
    assert len(record) == 300


def test_a_refused_first_step_leaves_no_trace():
    record = Record(CLASSES, ["venn", "point"])
    rows, point = np.full((3, 3), 1 / 3), Forecast(np.full(3, 1 / 3), CLASSES)
    with pytest.raises(TypeError, match="point must predict one of"):
        record.update({"venn": Multiprobability(rows, CLASSES), "point": "no"}, "no")
    assert record.kinds == {"venn": None, "point": None}
    assert set(record.guaranteed.values()) == {"nothing"}
    record.update({"venn": point, "point": point}, "no")


def test_class_intervals_survive_the_file(tmp_path):
    record = Record(CLASSES, ["abers"])
    record.update({"abers": ClassIntervals(np.full((3, 2), 0.5), CLASSES)}, CLASSES[0])
    record.save(tmp_path / "record")
    again = Record.load(tmp_path / "record")
    assert again["abers"].interval
    again.update({"abers": ClassIntervals(np.zeros((3, 2)), CLASSES)}, CLASSES[1])
    with pytest.raises(TypeError, match="keep to one kind"):
        again.update({"abers": Forecast(np.full(3, 1 / 3), CLASSES)}, CLASSES[1])
    bad = tampered(ClassIntervals(np.zeros((3, 2)), CLASSES), pairs=np.full((3, 2), 1.5))
    with pytest.raises(ValueError, match="must predict probabilities, got"):
        again.update({"abers": bad}, CLASSES[1])


def test_curves_are_means_so_far_and_agree_with_the_error_form():
    record = recorded(random_run(500))
    steps = np.arange(1, 501)
    for name in record:
        curves, per_step = record[name], record[name].per_step
        assert len(curves) == 500
        for n in (1, 17, 500):
            assert curves.accuracy[n - 1] == pytest.approx(per_step.hit[:n].mean(), abs=1e-12)
            assert curves.log_loss[n - 1] == pytest.approx(per_step.log_loss[:n].mean(), abs=1e-12)
            assert curves.brier[n - 1] == pytest.approx(per_step.brier[:n].mean(), abs=1e-12)
            assert curves.realised[n - 1] == pytest.approx(per_step.realised[:n].mean(), abs=1e-12)
            realised_accuracy = per_step.realised_hit[:n].mean()
            assert curves.realised_accuracy[n - 1] == pytest.approx(realised_accuracy, abs=1e-12)
        np.testing.assert_allclose(curves.lower, 1 - curves.uep / steps, rtol=0, atol=1e-12)
        np.testing.assert_allclose(curves.upper, 1 - curves.lep / steps, rtol=0, atol=1e-12)
        np.testing.assert_allclose(curves.accuracy, 1 - curves.errors / steps, rtol=0, atol=1e-12)
        np.testing.assert_allclose(curves.width, curves.upper - curves.lower, rtol=0, atol=1e-12)


def test_means_are_the_ends_of_the_curves():
    record = recorded(random_run(300))
    means = record.means()
    assert list(means) == ["venn", "point"]
    for name, row in means.items():
        assert list(row) == ["accuracy", "lower", "upper", "width", "log_loss", "brier"]
        for field, value in row.items():
            assert value == pytest.approx(getattr(record[name], field)[-1], abs=1e-12)
        claim = f"in [{row['lower']:.3f}, {row['upper']:.3f}]" if name == "venn" else f"claimed {row['lower']:.3f}"
        assert record.running(name) == f"{name}: accuracy {row['accuracy']:.3f} {claim}"


def test_inside_forgives_the_rounding_of_sums():
    record = Record(("a",), ["venn"])
    for _ in range(1000):
        record.update({"venn": Multiprobability(np.array([[1.0]]), ("a",))}, "a")
    assert record["venn"].inside.all()
    record = Record(("a", "b"), ["point"])
    record.update({"point": Forecast(np.array([0.9, 0.1]), ("a", "b"))}, "b")
    assert not record["point"].inside.any()


@pytest.mark.parametrize(
    ("clip", "loss", "clipped"), [(1e-15, -math.log(1e-15), 1), (0.1, -math.log(0.1), 1), (0, math.inf, 0)]
)
def test_clip_is_stated_and_counted(clip, loss, clipped):
    record = Record(("a", "b"), ["point"], clip=clip)
    record.update({"point": Forecast(np.array([1.0, 0.0]), ("a", "b"))}, "b")
    record.update({"point": Forecast(np.array([0.5, 0.5]), ("a", "b"))}, "b")
    curves = record["point"]
    assert curves.per_step.log_loss[0] == pytest.approx(loss)
    assert curves.clipped == clipped
    assert f"clipped at {clip:g}" in record.table()
    assert ("point 1" in record.table()) is (clipped == 1)


def test_reading_between_updates_changes_nothing():
    steps = random_run(600, seed=5)
    quiet, read = recorded(steps), Record(CLASSES, ("venn", "point"))
    for n, (predictions, y) in enumerate(steps):
        read.update(predictions, y)
        if n % 7 == 0:
            read.means()
            assert len(read["venn"]) == n + 1
    assert_same(quiet, read)


def test_what_is_read_cannot_change_the_record():
    record = recorded(random_run(10))
    record["venn"].per_step.lower[:] = -1
    assert (record["venn"].per_step.lower >= 0).all()
    with pytest.raises(ValueError, match="read-only"):
        record.truth[0] = 1


def test_many_classes():
    classes = tuple(range(600))
    record = Record(classes, ["venn"])
    for y in (3, 4, 5):
        record.update({"venn": Multiprobability(np.full((600, 600), 1 / 600), classes)}, y)
    assert record["venn"].per_step.lower == pytest.approx(1 / 600)


def test_repr_and_mapping():
    record = recorded(random_run(4), data="toy")
    assert repr(record) == "Record(toy, 4 steps: venn, point)"
    assert repr(record["venn"]).startswith("Curves(4 steps: accuracy ")
    assert list(record) == ["venn", "point"]
    assert "venn" in record
    assert "platt" not in record
    assert repr(Record(CLASSES, ["venn"])["venn"]) == "Curves(0 steps)"
    with pytest.raises(KeyError, match="no predictor 'platt' in this record; it has venn, point"):
        record["platt"]


# ------------------------------------------------------------------------------ refusals


def tampered(prediction, **values):
    """Return a prediction that its own constructor would refuse."""
    prediction = copy.copy(prediction)
    vars(prediction).update(values)
    return prediction


def test_bad_updates_are_not_recorded():
    record = recorded(random_run(3))
    (predictions, y), *_ = random_run(1)
    good, point = predictions["venn"], predictions["point"]
    third = np.full((3, 3), 1 / 3)
    for bad, error, match in (
        ({"venn": good}, ValueError, "must have the names"),
        ({"venn": good, "platt": point}, ValueError, "must have the names"),
        ({"venn": good, "point": point, "platt": point}, ValueError, "must have the names"),
        ({"venn": point, "point": point}, TypeError, "one kind of prediction"),
        (
            {"venn": good, "point": 0.5},
            TypeError,
            "point must predict one of Forecast, Multiprobability, ClassIntervals",
        ),
        (
            {"venn": Multiprobability(third, ("a", "b", "c")), "point": point},
            ValueError,
            "venn must predict the classes",
        ),
        ({"venn": tampered(good, probabilities=third[:2]), "point": point}, ValueError, "of sum 1"),
        ({"venn": tampered(good, probabilities=third * np.nan), "point": point}, ValueError, "of sum 1"),
        ({"venn": tampered(good, probabilities=third * 2), "point": point}, ValueError, "of sum 1"),
        ({"venn": good, "point": tampered(point, proba=np.array([-0.5, 0.5, 1.0]))}, ValueError, "of sum 1"),
    ):
        with pytest.raises(error, match=match):
            record.update(bad, y)
    with pytest.raises(ValueError, match="y must be one of the classes"):
        record.update(predictions, "perhaps")
    assert len(record) == 3
    assert_same(record, recorded(random_run(3)))
    record.update(predictions, y)
    assert len(record["venn"]) == 4


def test_bad_parameters():
    for classes, match in (((), "classes must hold at least 1 label, got"), (("a", "a"), "classes must be distinct")):
        with pytest.raises(ValueError, match=match):
            Record(classes, ["venn"])
    for names in ((), ("venn", "venn")):
        with pytest.raises(ValueError, match="names must be different, at least one"):
            Record(CLASSES, names)
    with pytest.raises(TypeError, match="names must be a sequence of str"):
        Record(CLASSES, "venn")
    with pytest.raises(TypeError, match="before must be a mapping of names to numbers of examples, got 3"):
        Record(("a", "b"), ["point"], before=3)
    for clip in (-1e-9, 1, math.nan):
        with pytest.raises(ValueError, match=r"clip must lie in \[0, 1\)"):
            Record(CLASSES, ["venn"], clip=clip)


def test_empty_record_has_no_means_and_no_curves():
    for ask in ("means", "table", "plot"):
        with pytest.raises(ValueError, match="a record without steps"):
            getattr(Record(CLASSES, ["venn"]), ask)()


# ------------------------------------------------------------------------------ table, figure


@pytest.mark.parametrize(
    ("before", "said"),
    [
        ({}, ""), ({"venn": 0}, ""), ({"venn": 20, "point": 20}, ", after 20 learned before"),
        ({"venn": 20, "point": 5}, ", after 20 by venn, 5 by point learned before"),
        ({"point": 5}, ", after 5 by point learned before"),
    ],
)  # fmt: skip
def test_the_title_says_what_was_learned_before(tmp_path, before, said):
    record = recorded(random_run(6), data="toy", before=before)
    assert record.title == f"toy: 6 examples, 3 classes{said}"
    record.save(tmp_path / "r.npz")
    assert_same(Record.load(tmp_path / "r.npz"), record)


def test_table_is_plain_text():
    record = recorded(random_run(50), data="toy", shuffle=3)
    title, head, venn, point, foot = record.table().splitlines()
    assert title == "toy: 50 examples, 3 classes, shuffle 3"
    assert head.split() == ["predictor", "accuracy", "lower", "upper", "width", "log", "loss", "Brier"]
    means = record.means()
    assert venn.split() == ["venn", *(f"{value:.4f}" for value in means["venn"].values())]
    assert point.split()[0] == "point"
    assert "no step clipped" in foot


@pytest.mark.parametrize("n", [1, 5, 120, 5000])
def test_plot_writes_a_figure(tmp_path, n):
    matplotlib = pytest.importorskip("matplotlib")
    before = dict(matplotlib.rcParams)
    record = recorded(random_run(n), data="toy")
    path = tmp_path / "new" / "curves.png"
    figure = record.plot(path)
    assert path.read_bytes().startswith(b"\x89PNG")
    assert path.stat().st_size > 10_000
    pyplot = sys.modules.get("matplotlib.pyplot")
    assert pyplot is None or not pyplot.get_fignums()
    assert dict(matplotlib.rcParams) == before
    first, second = figure.axes
    curves = record["venn"]
    assert [axis.get_title(loc="left") for axis in (first, second)] == ["venn", "point"]
    title = f"accuracy {curves.accuracy[-1]:.3f} in [{curves.lower[-1]:.3f}, {curves.upper[-1]:.3f}]"
    assert first.get_title(loc="right") == title
    assert second.get_title(loc="right").endswith(f"claimed {record['point'].lower[-1]:.3f}")
    low, high = first.get_ylim()
    for name in record:  # the last 90 % are never cropped
        for curve in (record[name].accuracy, record[name].lower, record[name].upper):
            assert low < curve[n // 10 :].min()
            assert curve[n // 10 :].max() < high
    (accuracy,) = (line for line in first.lines if line.get_label() == "accuracy")
    assert accuracy.get_xdata()[-1] == n
    assert accuracy.get_ydata()[-1] == curves.accuracy[-1]


@pytest.mark.parametrize("k", [1, 3, 5])
def test_plot_has_one_panel_per_predictor(k):
    pytest.importorskip("matplotlib")
    names = [f"p{i}" for i in range(k)]
    record = Record(CLASSES, names)
    for predictions, y in random_run(20):
        record.update(dict.fromkeys(names, predictions["venn"]), y)
    figure = record.plot()
    assert [axis.get_title(loc="left") for axis in figure.axes] == names


def test_plot_without_matplotlib_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"pip install matplotlib"):
        recorded(random_run(5)).plot()
