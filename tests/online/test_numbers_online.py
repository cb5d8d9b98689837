"""The house around predictions of numbers: replays, records, monitors, journals; kills change no bit."""

import itertools

import numpy as np
import pytest
from naive import kernel_ridge as naive
from scipy import stats

import streams
import venn
from venn.distribution import NormalDistribution, PredictiveDistribution
from venn.labels import Real, read_labels
from venn.machines import KernelRidge
from venn.monitors.kinds import KINDS, kept
from venn.online import Journal, Watch
from venn.online.checkpoint import pack
from venn.predictors import ConformalDistribution, ConformalIntervals, Predictor

LEVELS = (0.01, 0.05, 0.1, 0.2)


def data(seed=0, n=80, jump=None):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 5, (n, 2)) / 2
    y = np.round(10 * X[:, 0] + rng.normal(size=n) * 3, 1)
    if jump is not None:
        y[jump:] += 40
    return list(zip(X, y.tolist(), strict=True))


class Normal(Predictor):
    """A normal distribution with the mean and deviation of all labels so far."""

    classes, space = (), Real()

    def __init__(self):
        self.labels = []

    def predict_one(self, x):
        return NormalDistribution(np.mean(self.labels or [0.0]), np.std(self.labels or [1.0]))

    def commit(self, x, y, prepared=None):
        self.labels.append(y)


def panel(seed=0):
    machine = KernelRidge(venn.RBF(0.5), 2.0)
    return venn.Panel(one=ConformalDistribution(machine, seed=seed), two=ConformalIntervals(machine, seed=seed))


def test_a_record_has_the_scores_of_every_step():
    stream = data()
    predictors = venn.Panel(**panel(), normal=Normal())
    said = []

    class Told(venn.Panel):
        def predict_one(self, x):
            said.append(super().predict_one(x))
            return said[-1]

    record = venn.replay(stream, Told(**predictors))
    y = np.array([label for _, label in stream])
    for name in predictors:
        predictions, curves = [one[name] for one in said], record[name]
        assert np.array_equal(record.truth, y)
        assert np.array_equal(curves.label, [p.label for p in predictions])
        assert np.array_equal(curves.p_true, [p.p_value(v) for p, v in zip(predictions, y, strict=True)])
        means = record.means()[name]
        for level in LEVELS:
            ends = np.array([p.interval(level) for p in predictions])
            outside = (y < ends[:, 0]) | (y > ends[:, 1])
            finite = np.isfinite(ends).all(axis=1)
            assert means[f"error_{level}"] == pytest.approx(outside.mean())
            assert np.array_equal(curves.errors(level), np.cumsum(outside))
            if finite.any():
                scores = [p.interval_score(v, level) for p, v, f in zip(predictions, y, finite, strict=True) if f]
                assert means[f"width_{level}"] == pytest.approx(np.diff(ends[finite]).mean())
                assert means[f"score_{level}"] == pytest.approx(np.mean(scores))
            else:
                assert means[f"width_{level}"] == np.inf
    ranked = [p["one"] for p in said if p["one"].n]
    assert record.means()["one"]["crps"] == pytest.approx(
        (abs(y[0]) + sum(naive.crps(p.points, v) for p, v in zip(ranked, y[1:], strict=True))) / len(y)
    )
    assert "crps" not in record.means()["two"]
    assert "numbers" in record.title
    assert "CRPS" in record.table()
    assert "intervals at significance 0.05 missed" in record.kind("one").conclusion("one", record["one"], "error rate")


def test_a_record_is_saved_and_drawn(tmp_path):
    record = venn.replay(data(), panel())
    record.save(tmp_path / "record")
    again = venn.Record.load(tmp_path / "record")
    assert again.means() == record.means()
    assert again.space == Real()
    assert again.table() == record.table()
    names = {path.name for path in record.plot_all(tmp_path / "figures")}
    assert names == {"errors.png", "martingales.png", "p_values.png"}


def test_monitors_are_fed_alike_by_every_way(tmp_path):
    stream, monitor = data(), venn.Monitor(Real())
    record = venn.replay(stream, panel(), monitors={"one": monitor})
    assert record.monitor("one").snapshot() == monitor.snapshot()
    many = venn.Monitor(Real())
    fresh = panel()
    predictions = []
    for x, y in stream:
        predictions.append(fresh.predict_one(x)["one"])
        fresh.learn_one(x, y)
    many.update_many(predictions, [y for _, y in stream])
    assert pack(many) == pack(monitor)
    venn.save(tmp_path / "monitor", monitor)
    twin = venn.load(tmp_path / "monitor")
    assert pack(twin) == pack(monitor)
    assert twin.verdict() == monitor.verdict()
    assert monitor.snapshot()["curves"]["error_0.05"] == record.means()["one"]["error_0.05"]


def test_a_monitor_sees_a_change_and_no_other():
    calm, changed = venn.Monitor(Real()), venn.Monitor(Real())
    venn.replay(data(1, 400), panel(), monitors={"one": calm})
    venn.replay(data(1, 400, jump=250), panel(), monitors={"one": changed})
    assert calm.count == 0
    assert changed.count > 0
    assert min(alarm.step for alarm in changed.alarms) > 250
    assert changed.verdict().details.startswith("changed since about")


def test_a_monitor_refuses_what_is_no_number():
    monitor = venn.Monitor(Real())
    prediction = PredictiveDistribution([1.0, 2.0])
    for bad in ("a", np.nan, None):
        with pytest.raises(ValueError, match="y must be a finite number"):
            monitor.update(prediction, bad)
    with pytest.raises(ValueError, match="must predict the classes"):
        monitor.update(venn.PredictionSet(np.array([0.1, 0.9]), ["a", "b"]), 1.0)
    with pytest.raises(ValueError, match="must predict the classes"):
        venn.Monitor(["a", "b"]).update(prediction, "a")
    with pytest.raises(ValueError, match="predictors must have the same classes, got numbers in a"):
        venn.Panel(a=panel()["one"], b=venn.Conformal(venn.LeastSquaresSVM(venn.RBF(1.0), 1, ["a", "b"])))
    assert monitor.n == 0


@pytest.mark.parametrize("delay", [0, 3])
def test_a_killed_run_goes_on_to_the_bit(tmp_path, delay):
    stream = data(2, 60)

    def events(count):
        return itertools.islice(streams.teach(stream, streams.Delayed(delay)), count)

    def online(path):
        monitors = {"one": venn.Monitor(Real()), "two": venn.Monitor(Real())}
        return venn.Online(panel(), monitors, Journal(path, every=17))

    with online(tmp_path / "whole.db") as whole:
        list(whole.follow(events(120)))
        expected = [pack(whole.monitors[name]) for name in ("one", "two")]
        told = [pack(whole.told[name]) for name in ("one", "two")]
    for stop in (20, 71, 120):
        run = online(tmp_path / "parts.db")
        list(run.follow(events(stop), again=True))
        run.journal.close()  # as if killed: no last checkpoint
    run = online(tmp_path / "parts.db")
    assert [pack(run.monitors[name]) for name in ("one", "two")] == expected
    assert [pack(run.told[name]) for name in ("one", "two")] == told
    record = run.record()
    run.close()
    direct = venn.replay(stream, panel())
    if not delay:
        assert record.means()["one"]["error_0.05"] == direct.means()["one"]["error_0.05"]
        assert record.means()["one"]["width_0.1"] == direct.means()["one"]["width_0.1"]
        assert abs(record.means()["one"]["crps"] / direct.means()["one"]["crps"] - 1) < 0.05
    with Watch(tmp_path / "parts.db") as watch:
        assert watch.space == Real()
        seen = watch.latest()[0]
        assert set(seen.predictions) == {"one", "two"}
        assert seen.y is None or isinstance(seen.y, float)


def test_journals_keep_some_points_only():
    rng = np.random.default_rng(0)
    big = PredictiveDistribution(np.sort(rng.normal(size=5000)), 0.3, origin=1.5, grid=2.0**-40)
    kind = KINDS["PredictiveDistribution"]
    content = kind.encode(big)
    assert len(content) < 1000
    again, end = kind.decode(content, 0, Real())
    short = kept({"one": big})["one"]
    assert end == len(content)
    assert kind.encode(again) == content == kind.encode(short)
    assert [again.interval(level) for level in LEVELS] == [big.interval(level) for level in LEVELS]
    assert (again.label, again.tau) == (big.label, big.tau)
    assert abs(again.crps(0.3) / big.crps(0.3) - 1) < 0.02
    for damaged in (content[:30], content[:-8], b""):
        with pytest.raises(Exception, match=r"."):
            kind.decode(damaged, 0, Real())


@pytest.mark.parametrize("ends", [(), ("lows", "highs"), ("lows", "highs", "lower", "upper")])
def test_journals_keep_where_intervals_end(ends):
    rng = np.random.default_rng(1)
    points = np.sort(rng.normal(size=300))
    given = {"lows": points - 0.01, "highs": points + 0.01, "lower": np.round(points), "upper": np.round(points) + 1}
    big = PredictiveDistribution(points, 0.3, **{name: given[name] for name in ends}, strays=2 * (len(ends) == 4))
    kind = KINDS["PredictiveDistribution"]
    content = b"before" + kind.encode(big)
    again, end = kind.decode(content + b"after", 6, Real())
    assert end == len(content)
    assert kind.encode(again) == content[6:]
    assert [again.interval(level) for level in LEVELS] == [big.interval(level) for level in LEVELS]
    assert again.strays == big.strays
    with pytest.raises(Exception, match=r"."):
        kind.decode(content[:-4], 6, Real())


def test_p_values_on_a_coarser_scale_are_uniform():
    rng = np.random.default_rng(3)
    p = []
    for _ in range(3000):
        bag = rng.normal(size=301)
        prediction = PredictiveDistribution(np.sort(bag[:-1]), rng.random())
        p.append(prediction.abridged(LEVELS).p_value(bag[-1]))
    assert stats.kstest(p, "uniform").pvalue > 0.001


def test_headers_name_the_label_space():
    assert read_labels(Real().header) == Real()
    assert read_labels({"classes": ["a", "b"]}).labels == ("a", "b")
    with pytest.raises(ValueError, match="its header has None as classes"):
        read_labels({"numbers": False})
