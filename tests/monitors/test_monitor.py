"""The monitor: its numbers are those of the record, its p-values uniform, its alarms seldom false and soon true."""

import json
from math import log

import numpy as np
import pytest
from conftest import refused
from naive import monitor as naive
from scipy import stats

import streams
import venn
from venn.monitors.calibration import ece
from venn.monitors.martingales import SimpleJumper
from venn.monitors.sources import ClassShare, OneClass, PredictedLabel, RealisedRow, TrueLabel
from venn.online.checkpoint import pack
from venn.online.record import Record
from venn.prediction import CategoryClass, ClassIntervals, Forecast, Multiprobability, PredictionSet
from venn.smoothing import Smoothing

CLASSES = ("no", "yes", "maybe")


def predictions(kind, rng, n):
    """Return n predictions of a kind over CLASSES."""
    for _ in range(n):
        if kind == "Forecast":
            yield Forecast(rng.dirichlet(np.ones(3)), CLASSES)
        elif kind == "Multiprobability":
            yield Multiprobability(rng.dirichlet(np.ones(3), size=3), CLASSES)
        elif kind == "guaranteed":
            yield Multiprobability(rng.dirichlet(np.ones(3), size=3), CLASSES, CategoryClass(), int(rng.integers(3)))
        elif kind == "ClassIntervals":
            yield ClassIntervals(rng.random((3, 2)), CLASSES)
        elif kind == "plain":
            yield PredictionSet(rng.random(3), CLASSES, smoothed=False)
        else:
            yield PredictionSet(rng.choice([0.0, 0.01, 0.05, 0.3, 1.0], size=3), CLASSES)


KINDS = ("Forecast", "Multiprobability", "guaranteed", "ClassIntervals", "PredictionSet", "plain")


def run(kind, n, seed=0, **parameters):
    """Return a monitor, and a record of the same steps."""
    rng = np.random.default_rng(seed)
    monitor, record = venn.Monitor(CLASSES, **parameters), Record(CLASSES, ["it"])
    for prediction in predictions(kind, rng, n):
        y = CLASSES[rng.integers(3)]
        monitor.update(prediction, y)
        record.update({"it": prediction}, y)
    return monitor, record


# ------------------------------------------------------------------------- curves


@pytest.mark.parametrize("kind", KINDS)
def test_means_are_those_of_the_record_over_all_steps_and_over_the_window(kind):
    monitor, record = run(kind, 700, window=128)
    snapshot, means = monitor.snapshot(), record.means()["it"]
    assert snapshot["step"] == 700
    assert snapshot["predictions"] == record.kinds["it"]
    assert snapshot["guaranteed"] == record.guaranteed["it"]
    for field, value in means.items():
        assert snapshot["curves"][field] == pytest.approx(value, abs=1e-12)
    latest = record.outcomes("it")
    hits = (latest.predicted == latest.truth)[-128:]
    assert snapshot["window"]["size"] == 128
    assert snapshot["window"]["accuracy"] == pytest.approx(hits.mean())
    if kind in ("PredictionSet", "plain"):
        assert "calibration" not in snapshot
        assert snapshot["window"]["error_0.05"] == pytest.approx((latest.probability[-128:] <= 0.05).mean())
        return
    curves = record["it"]
    assert snapshot["curves"]["realised_accuracy"] == pytest.approx(curves.realised_accuracy[-1])
    assert snapshot["curves"]["realised"] == pytest.approx(curves.realised[-1])
    assert snapshot["window"]["log_loss"] == pytest.approx(curves.per_step.log_loss[-128:].mean())
    assert snapshot["calibration"]["ece"] == pytest.approx(ece(curves.per_step.confidence, curves.per_step.hit))
    low, high = snapshot["accuracy_interval"]
    assert low <= means["accuracy"] <= high


def test_a_kind_that_is_none_is_not_followed():
    _, record = run("Forecast", 3)
    monitor = venn.Monitor(CLASSES)
    with pytest.raises(ValueError, match=r"kind must be one of Forecast, Multiprobability, .*, got 'Oracle'"):
        monitor.follow(record.outcomes("it"), "Oracle", "nothing")
    assert pack(monitor) == pack(venn.Monitor(CLASSES))


def test_clipped_losses_are_counted():
    monitor = venn.Monitor(("a", "b"), clip=0.1)
    monitor.update(Forecast(np.array([1.0, 0.0]), ("a", "b")), "b")
    monitor.update(Forecast(np.array([0.5, 0.5]), ("a", "b")), "b")
    curves = monitor.snapshot()["curves"]
    assert curves["clipped"] == 0.5
    assert curves["log_loss"] == pytest.approx((-log(0.1) - log(0.5)) / 2)


def test_a_snapshot_is_plain_data_at_every_step():
    for kind in KINDS:
        monitor = venn.Monitor(CLASSES)
        assert json.loads(json.dumps(monitor.snapshot(), allow_nan=False))["step"] == 0
        for prediction in predictions(kind, np.random.default_rng(1), 3):
            monitor.update(prediction, "yes")
            assert json.loads(json.dumps(monitor.snapshot(), allow_nan=False)) == monitor.snapshot()


# ----------------------------------------------------------------------- p-values


@pytest.mark.parametrize("seed", range(3))
def test_certified_p_values_are_mondrian_conformal_p_values(seed):
    """In one category: the rows come from the labels so far, and so does the conformal p-value."""
    rng = np.random.default_rng(seed)
    record, seen = Record(CLASSES, ["it"]), []
    shares = [f"share of {k}" for k in CLASSES]
    expected = {name: [] for name in ("realised row", "predicted label", *CLASSES, *shares)}
    tau = Smoothing(0).block(0, 120)
    for step in range(120):
        counts = np.array([seen.count(k) for k in CLASSES])
        rows = (counts + np.eye(3)) / (len(seen) + 1)
        guess, y = int(rng.integers(3)), CLASSES[rng.choice(3, p=[0.6, 0.3, 0.1])]
        record.update({"it": Multiprobability(rows, CLASSES, CategoryClass(), guess)}, y)
        bag = [*seen, y]
        best = naive.best_label(bag, CLASSES)
        events = {"realised row": {best}, "predicted label": {CLASSES[guess]}}
        events |= {k: {k} if 2 * bag.count(k) >= len(bag) else set(CLASSES) - {k} for k in CLASSES}
        events |= {f"share of {k}": {k} for k in CLASSES}
        for name, event in events.items():
            expected[name].append(naive.certified(bag, y, event.__contains__, tau[step]))
        seen.append(y)
    steps = record.outcomes("it")
    found = {"realised row": RealisedRow(), "predicted label": PredictedLabel()}
    found |= {k: OneClass(k, code) for code, k in enumerate(CLASSES)}
    found |= {name: ClassShare(k, code) for name, (code, k) in zip(shares, enumerate(CLASSES), strict=True)}
    for name, source in found.items():
        np.testing.assert_allclose(source.read(steps, tau)[0], expected[name], rtol=0, atol=1e-12)
    np.testing.assert_array_equal(record.p_values("it")["predicted label"], PredictedLabel().read(steps, tau)[0])


@pytest.mark.parametrize("kind", ["Multiprobability", "guaranteed", "ClassIntervals", "PredictionSet"])
@pytest.mark.parametrize("seed", [0, 7])
def test_a_monitor_bets_on_the_p_values_of_the_record_step_by_step(kind, seed):
    """Those are compared with their definition above; here, that each step takes a random number of its own."""
    rng = np.random.default_rng(11)
    monitor, record, seen = venn.Monitor(CLASSES, seed=seed), Record(CLASSES, ["it"]), {}
    for prediction in predictions(kind, rng, 60):
        y = CLASSES[rng.integers(3)]
        monitor.update(prediction, y)
        record.update({"it": prediction}, y)
        for entry in monitor.snapshot()["evidence"]:
            if entry["detector"] == "Ville":
                seen.setdefault(entry["name"], []).append(entry["p_value"])
    expected = record.p_values("it", seed=seed)
    assert seen.keys() == expected.keys()
    for name, p in expected.items():
        np.testing.assert_array_equal(seen[name], p)


def replayed(seed, n, model, noise=False):
    """Return the record of a Venn predictor on a stream of Gaussians, with labels of noise if wanted."""
    stream = streams.gaussians(n, spread=0.8, seed=seed)
    rng = np.random.default_rng(seed)
    record = Record(stream.classes, ["it"])
    for x, y in stream:
        label = stream.classes[rng.integers(3)] if noise else y
        record.update({"it": model.predict_one(x)}, label)
        model.learn_one(x, label)
    return record


def machine():
    return venn.LeastSquaresSVM(venn.RBF(0.5), 1.0, (0, 1, 2))


VALID = {
    "predicted label": lambda: venn.TransductiveVenn(machine()),
    "realised row": lambda: venn.TransductiveVenn(machine(), venn.Argmax()),
    "each class": lambda: venn.TransductiveVennAbers(machine()),
    "error rate": lambda: venn.Conformal(machine()),
}


@pytest.mark.parametrize("noise", [False, True])
@pytest.mark.parametrize("guaranteed", VALID)
def test_p_values_are_uniform_and_independent(guaranteed, noise):
    """METHODS 10 row 14; the significance .001 is that of one test in 40 here, with fixed seeds."""
    found = {}
    for seed in range(8):
        record = replayed(seed, 120, VALID[guaranteed](), noise)
        assert record.guaranteed["it"] == guaranteed
        for name, p in record.p_values("it").items():
            found.setdefault(name, []).append(p)
    names = {"each class": {"class 0", "class 1", "class 2"}, "error rate": {"true label"}}
    shares = set() if guaranteed == "error rate" else {f"share of class {k}" for k in range(3)}
    assert set(found) == names.get(guaranteed, {guaranteed}) | shares
    for runs in found.values():
        assert_uniform(runs)


def uniformity(runs):
    """Return p-values of uniformity, and of no dependence between neighbours."""
    pairs = np.concatenate([np.column_stack([p[:-1:2], p[1::2]]) for p in runs])  # each p-value in one pair only
    table = np.histogram2d(*pairs.T, bins=3, range=[[0, 1], [0, 1]])[0]
    return stats.kstest(np.concatenate(runs), "uniform").pvalue, stats.chisquare(table.ravel()).pvalue


def assert_uniform(runs):
    assert min(uniformity(runs)) > 1e-3


def test_a_predicted_label_without_guarantee_fails_the_same_test():
    """The rule that looks at all rows picks the class that happens to look best: its hits are fewer than it says."""
    runs = []
    for seed in range(8):
        taxonomy = venn.LeaveOneOut(venn.Argmax())
        record = replayed(seed, 120, venn.TransductiveVenn(machine(), taxonomy, venn.prediction.RowMean()), noise=True)
        runs.append(PredictedLabel().read(record.outcomes("it"), Smoothing(0).block(0, 120))[0])
    assert min(uniformity(runs)) < 1e-3


# ------------------------------------------------------------------------- alarms


@pytest.mark.parametrize("guaranteed", VALID)
def test_a_label_flip_rings_soon_and_says_so(guaranteed):
    stream = streams.flip_labels(streams.gaussians(700, spread=0.4, seed=1), 300)
    model, monitor = VALID[guaranteed](), venn.Monitor(stream.classes)
    rung = []
    for x, y in stream:
        rung += monitor.update(model.predict_one(x), y)
        model.learn_one(x, y)
    assert rung
    assert 300 < rung[0].step < 360
    assert {"Ville", "ShiryaevRoberts"} <= {alarm.detector for alarm in rung}
    assert monitor.count == len(rung)
    assert monitor.alarms == tuple(rung)[-100:]
    first = rung[0]
    assert f"At step {first.step}" in first.sentence
    assert "Theorem" in first.sentence
    assert first.log_evidence > log(100)
    entry = monitor.snapshot()["alarms"]["last"][0]
    assert (entry["step"], entry["detector"], entry["about"]) == (first.step, first.detector, first.about)
    assert sum(entry["alarms"] for entry in monitor.snapshot()["evidence"]) == monitor.count


def test_a_point_forecaster_that_claims_too_much_rings_and_a_true_one_does_not():
    rng = np.random.default_rng(0)
    for claimed, rings in ((0.9, True), (0.7, False)):
        monitor = venn.Monitor(("a", "b"))
        for _ in range(600):
            monitor.update(Forecast(np.array([claimed, 1 - claimed]), ("a", "b")), "a" if rng.random() < 0.7 else "b")
        assert bool(monitor.count) is rings
        assert {alarm.detector for alarm in monitor.alarms} <= {"ForwardEProcess"}
        if rings:
            assert "the predicted label was right as often as the forecasts say" in monitor.alarms[0].sentence


def one_category(rng, n, monitor, flip=None):
    """Watch the Venn predictor of one category on coin tosses; return which detectors rang."""
    ones, rang = 0, set()
    for step in range(n):
        rows = np.array([[step + 1 - ones, ones], [step - ones, ones + 1]]) / (step + 1)
        y = int(rng.random() < (0.7 if flip is None or step < flip else 0.2))
        rang |= {alarm.detector for alarm in monitor.update(Multiprobability(rows, (0, 1)), y)}
        ones += y
    return rang


def test_exchangeable_streams_are_silent_at_the_stated_rate():
    """500 streams: false alarms within the binomial limit of the stated rates, at significance .001."""
    ever = often = 0
    n, level, run_length = 60, 0.1, 500
    for seed in range(500):
        monitor = venn.Monitor((0, 1), level=level, run_length=run_length, window=10, seed=seed)
        rang = one_category(np.random.default_rng([seed, 1]), n, monitor)
        ever += bool(rang & {"Ville", "DeviationBand"})
        often += "ShiryaevRoberts" in rang
    assert ever <= stats.binom.ppf(0.999, 500, level)
    # R_n - n is a martingale from 0, so R reaches r within n steps with probability at most n / r.
    assert often <= stats.binom.ppf(0.999, 500, n / run_length)


def class_intervals(counts):
    """Return the Venn prediction in one category, each class against the others."""
    n = counts.sum()
    return ClassIntervals(np.column_stack([counts, counts + 1]) / (n + 1), CLASSES)


def test_false_alarms_of_several_sources_are_as_rare_as_those_of_one():
    """The mean number of alarms in n steps is at most n / run_length, whatever n and the number of sources."""
    counts_of_alarms, n, run_length = [], 150, 15
    for seed in range(40):
        rng = np.random.default_rng([seed, 2])
        monitor = venn.Monitor(CLASSES, level=1e-9, run_length=run_length, window=10, seed=seed)
        seen = np.zeros(3)
        for y in rng.choice(3, n, p=[0.5, 0.3, 0.2]):
            monitor.update(class_intervals(seen), CLASSES[y])
            seen[y] += 1
        counts_of_alarms.append(monitor.count)
    assert {alarm.detector for alarm in monitor.alarms} == {"ShiryaevRoberts"}
    error = np.std(counts_of_alarms, ddof=1) / np.sqrt(len(counts_of_alarms))
    assert n / run_length / 3 < np.mean(counts_of_alarms) < n / run_length + 4 * error


def test_level_and_run_length_are_divided_among_sources_and_detectors():
    """Half of both is for how sure it is, half for the shares of the classes; of two classes one speaks for both."""
    for kind, each in (("Multiprobability", [2, 6, 6, 6]), ("ClassIntervals", [6] * 6), ("PredictionSet", [1])):
        monitor, _ = run(kind, 1, level=0.02, run_length=5000)
        assert len(monitor._evidence) == len(each)
        for evidence, sources in zip(monitor._evidence, each, strict=True):
            share = 1 if kind == "PredictionSet" else 2
            thresholds = evidence.ville.log_threshold, evidence.repeated.log_threshold
            assert np.exp(thresholds) == pytest.approx([sources * share / 0.02, sources * 5000.0])
            if share == 2:
                assert evidence.band.delta == pytest.approx(0.02 / (2 * sources))
            else:
                assert evidence.band is None
    two = venn.Monitor((0, 1))
    two.update(ClassIntervals([[0.4, 0.5], [0.5, 0.6]], (0, 1)), 0)
    assert [evidence.name for evidence in two._evidence] == ["class 1", "share of class 1"]


def test_the_band_rings_when_the_sum_leaves_it():
    monitor = venn.Monitor((0, 1), level=0.1, martingale=SimpleJumper(1e-6), sources=[RealisedRow()])
    rang = []
    for _ in range(120):
        rang += monitor.update(Multiprobability(np.array([[0.9, 0.1]] * 2), (0, 1)), 1)
    band = [alarm for alarm in rang if alarm.detector == "DeviationBand"]
    assert len(band) == 1
    n = band[0].step
    assert 0.9 * n >= np.sqrt(n * log(2 * n * (n + 1) / 0.05) / 2)
    assert 0.9 * (n - 1) < np.sqrt((n - 1) * log(2 * (n - 1) * n / 0.05) / 2)
    assert "times fewer than its probabilities add up to" in band[0].sentence
    assert band[0].log_evidence == pytest.approx(2 * (0.9 * n) ** 2 / n - log(2 * n * (n + 1)))


# ----------------------------------------------------------------- parameters, refusals


def test_what_is_watched_follows_from_what_is_guaranteed():
    names = {}
    for kind in KINDS:
        monitor, _ = run(kind, 2)
        names[kind] = [
            entry["name"] for entry in monitor.snapshot()["evidence"] if entry["detector"] != "DeviationBand"
        ]
    shares = [f"share of class {k!r}" for k in CLASSES for _ in range(2)]
    assert names == {
        "Forecast": ["predicted label", *shares[::2]], "Multiprobability": ["realised row"] * 2 + shares,
        "guaranteed": ["predicted label"] * 2 + shares,
        "ClassIntervals": [f"class {k!r}" for k in CLASSES for _ in range(2)] + shares,
        "PredictionSet": ["true label"] * 2, "plain": [],
    }  # fmt: skip


def test_sources_of_ones_own():
    monitor, _ = run("guaranteed", 20, sources=[RealisedRow(), OneClass("yes", 1)])
    assert {entry["name"] for entry in monitor.snapshot()["evidence"]} == {"realised row", "class 'yes'"}
    assert "OneClass(label='yes', code=1)" in repr(monitor)
    for kind, source in (
        ("Multiprobability", PredictedLabel()),
        ("PredictionSet", RealisedRow()),
        ("plain", TrueLabel()),
    ):
        monitor = venn.Monitor(CLASSES, sources=[source])
        prediction = next(predictions(kind, np.random.default_rng(0), 1))
        before = pack(monitor)
        with pytest.raises(ValueError, match="sources must suit predictions that guarantee"):
            monitor.update(prediction, "yes")
        assert pack(monitor) == before


def tampered(prediction, **values):
    vars(prediction).update(values)
    return prediction


def test_bad_steps_are_refused_and_change_nothing():
    third = np.full((3, 3), 1 / 3)
    good = Multiprobability(third, CLASSES)
    monitor = venn.Monitor(CLASSES)
    refused = [
        (good, "perhaps", ValueError, r"y must be one of the classes \['no', 'yes', 'maybe'\], got 'perhaps'"),
        (good, ["no"], ValueError, "y must be one of the classes"),
        (Multiprobability(third, ("a", "b", "c")), "no", ValueError, "must predict the classes"),
        (0.5, "no", TypeError, "must predict one of Forecast, Multiprobability, ClassIntervals, PredictionSet"),
        (None, "no", TypeError, "must predict one of"),
        (tampered(Multiprobability(third, CLASSES), probabilities=third * np.nan), "no", ValueError, "of sum 1"),
        (tampered(Multiprobability(third, CLASSES), probabilities=third * 2), "no", ValueError, "of sum 1"),
    ]
    later = [
        (Forecast(third[0], CLASSES), "no", TypeError, "must keep to one kind of prediction"),
        (Multiprobability(third, CLASSES, CategoryClass(), 0), "no", ValueError, "must guarantee 'realised row'"),
    ]
    for cases in (refused, [*refused, *later]):
        before = pack(monitor)
        for prediction, y, error, message in cases:
            with pytest.raises(error, match=message):
                monitor.update(prediction, y)
            assert pack(monitor) == before
        monitor.update(good, "yes")
    sets = venn.Monitor(CLASSES)
    for p in (np.nan, 1.2, -0.1):
        with pytest.raises(ValueError, match="must predict p-values"):
            sets.update(tampered(PredictionSet(third[0], CLASSES), p_values=np.array([0.5, p, 0.5])), "no")
        with pytest.raises(ValueError, match=r"p_values must lie in \[0, 1\]"):
            PredictionSet(np.array([0.5, p, 0.5]), CLASSES)
    assert sets.n == 0


test_bad_parameters = refused(lambda parameters: venn.Monitor(**({"classes": CLASSES} | parameters)), [
    ({"classes": []}, ValueError, r"got \[\]: labels that are numbers have none, and ConformalDistribution"),
    ({"martingale": SimpleJumper}, TypeError, "martingale must be a martingale object"),
    ({"martingale": "jumper"}, TypeError, "martingale must be"),
    ({"sources": [RealisedRow]}, TypeError, "sources must be source objects"),
    ({"sources": [OneClass("yes", 0)]}, ValueError, r"sources must be of the classes \['no', 'yes', 'maybe'\]"),
    ({"sources": [OneClass("other", 5)]}, ValueError, "sources must be of the classes"),
])  # fmt: skip


@pytest.mark.parametrize("window", [1, 5, 8, 1000])
@pytest.mark.parametrize("of", [Forecast, PredictionSet])
def test_figures_inside_a_block_are_those_of_one_by_one(of, window):
    rng, labels = np.random.default_rng(window), ["no", "yes"]
    alone, model = (venn.Monitor(labels, window=window) for _ in range(2))
    proba = rng.dirichlet([1, 1], size=98) if of is Forecast else rng.random((98, 2))
    said, truths = [of(row, labels) for row in proba], [labels[int(rng.random() > row[0])] for row in proba]
    done = 0
    for size, looked in ((2, []), (24, [1]), (24, [3, 4, 20]), (24, [5, 9]), (24, [24])):
        part = slice(done, done + size)
        found, expected = model.scored(said[part], model.space.encode_many(truths[part])), []
        assert model.quiet(found) == size
        found = model.go_on(found, looked)
        for i in range(size):
            alone.update(said[done + i], truths[done + i])
            expected += [alone.figures()] if i + 1 in looked else []
        done += size
        assert found == expected
    assert model.snapshot() == alone.snapshot()
