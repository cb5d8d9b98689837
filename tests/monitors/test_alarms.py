"""Alarms: equal to their definitions by brute force, false ones as seldom as the theorems say, true ones soon."""

import dataclasses
import math
import pickle

import numpy as np
import pytest
from naive import martingales as naive
from scipy import stats

from venn._compiled.martingales import cusum_after, shiryaev_roberts_after
from venn.monitors.alarms import CUSUM, Alarm, ShiryaevRoberts, Ville, odds
from venn.monitors.martingales import CompositeJumper, Power, SimpleJumper

ALL = {
    "Ville": lambda martingale=None: Ville(martingale or Power(), 0.02),
    "CUSUM": lambda martingale=None: CUSUM(martingale or Power(), 50),
    "SR": lambda martingale=None: ShiryaevRoberts(martingale or Power(), 50),
}
every = pytest.mark.parametrize("make", ALL.values(), ids=ALL.keys())


def stream(seed=1, n=80):
    """Return p-values that are uniform, then too small, then uniform, with ties."""
    rng = np.random.default_rng(seed)
    ps = np.concatenate([rng.random(n // 2), rng.beta(0.3, 1, n // 4), rng.random(n - n // 2 - n // 4)])
    return np.round(ps, 2)


def steps(detector, ps):
    """Return the logs of the statistic, and the alarms, one update at a time."""
    path, alarms = [], []
    for p in ps:
        alarm = detector.update(float(p))
        path.append(detector.log)
        if alarm is not None:
            assert alarm is detector.last
            alarms.append(alarm)
    return np.array(path), alarms


# Definitions -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("make", "statistic"), [(CUSUM, naive.cusum), (ShiryaevRoberts, naive.shiryaev_roberts)])
@pytest.mark.parametrize("threshold", [3, 50, 1e4])
@pytest.mark.parametrize(
    ("martingale", "log_capital"),
    [
        (Power(0.4), lambda ps: naive.power(ps, 0.4)),
        (SimpleJumper(0.1), lambda ps: naive.jumper(ps, 0.1)),
    ],
    ids=lambda value: "definition" if callable(value) else repr(value),  # no address: workers must agree
)
def test_statistic_and_alarms_are_those_of_the_definition(make, statistic, threshold, martingale, log_capital):
    ps = stream(n=60).tolist()
    expected, rung = naive.restarting(statistic, log_capital, ps, threshold)
    path, alarms = steps(make(martingale, threshold), ps)
    np.testing.assert_allclose(path, np.log(expected), rtol=1e-9, atol=1e-9)
    assert [alarm.step for alarm in alarms] == rung
    for alarm in alarms:
        assert alarm.detector == make.__name__
        assert alarm.log_evidence == path[alarm.step - 1] >= math.log(threshold)


@pytest.mark.parametrize("level", [0.5, 0.05, 1e-3])
def test_ville_rings_once_where_the_martingale_reaches_the_level(level):
    ps = stream().tolist()
    logs = [naive.power(ps[: n + 1], 0.5) for n in range(len(ps))]
    path, alarms = steps(Ville(Power(), level), ps)
    np.testing.assert_allclose(path, logs, rtol=1e-12, atol=1e-12)
    assert [alarm.step for alarm in alarms] == [n + 1 for n, log in enumerate(logs) if log >= -math.log(level)][:1]


def test_the_alarm_of_ville_stays_on_record():
    detector = Ville(Power())
    _, alarms = detector.update_many([1e-4] * 3)
    detector.update_many(np.ones(1000))
    assert detector.log < 0
    assert (detector.count, detector.last) == (1, alarms[0])
    assert detector.update(0.0) is None
    assert detector.update_many(np.zeros(100))[1] == []
    assert detector.count == 1


def test_statistics_are_stable_however_large_or_small():
    """ln(R + 1) for R from e^-1e6 to e^1e6."""
    assert shiryaev_roberts_after(-math.inf, 0.25) == 0.25
    assert shiryaev_roberts_after(-1e6, 0.0) == 0.0
    assert shiryaev_roberts_after(1e6, 0.5) == 1e6 + 0.5
    for log in (-700.0, -40.0, -1.0, 0.0, 1.0, 30.0, 700.0):
        expected = math.log1p(math.exp(log)) if log < 30 else log + math.exp(-log)
        assert shiryaev_roberts_after(log, 0.0) == pytest.approx(expected, rel=1e-15)
    assert cusum_after(-1e9, 0.5) == 0.5
    assert cusum_after(1e9, -0.5) == 1e9 - 0.5


@every
@pytest.mark.parametrize("martingale", [Power(), Power(0.001), SimpleJumper()], ids=repr)
def test_extreme_streams_leave_finite_logs_and_constant_memory(make, martingale):
    detector = make(martingale)
    detector.update_many(stream())
    size = []
    for ps in ([0.0], [1.0], [1e-300], [1.0, 0.0], [1.0] * 50 + [0.0]):
        path, alarms = detector.update_many(np.tile(ps, 2000 // len(ps)))
        assert np.isfinite(path).all()
        assert len(alarms) <= 2000
        size.append(len(pickle.dumps(detector)))
    assert max(size) - min(size) < 200  # digits in the sentence of the last alarm


# Blocks, copies, states -------------------------------------------------------------------------------------------


@every
@pytest.mark.parametrize("martingale", [Power(), CompositeJumper()], ids=repr)
def test_a_block_is_the_loop_to_the_last_bit(make, martingale):
    ps, loop = np.concatenate([stream(2), np.full(8, 0.001)]), make(martingale)
    path, alarms = steps(loop, ps)
    assert len(alarms) == loop.count >= 1
    for cut in (0, 1, 44, 45, 46, 80):
        block = make(martingale)
        first, before = block.update_many(ps[:cut])
        second, after = block.update_many(ps[cut:])
        assert np.array_equal(np.concatenate([first, second]), path)
        assert before + after == alarms
        assert pickle.dumps(block) == pickle.dumps(loop)


def test_a_block_longer_than_a_chunk_with_alarms_far_apart_and_close():
    rng = np.random.default_rng(3)
    ps = np.concatenate([rng.random(6000), rng.beta(0.2, 1, 300), rng.random(5000)])
    for make in (CUSUM, ShiryaevRoberts):
        loop, block = make(SimpleJumper(), 200), make(SimpleJumper(), 200)
        path, alarms = steps(loop, ps)
        found, rung = block.update_many(ps)
        assert np.array_equal(found, path)
        assert rung == alarms
        assert sum(6000 < alarm.step <= 6300 for alarm in alarms) > 3
        assert pickle.dumps(block) == pickle.dumps(loop)


@every
def test_the_martingale_given_is_a_pattern(make):
    pattern = Power()
    pattern.update_many([0.01] * 5)
    seen, detector = pattern.log, make(pattern)
    assert (detector.n, detector.count, detector.last, detector.bets.n) == (0, 0, None, 0)
    detector.update_many(np.full(20, 0.01))
    assert pattern.log == seen


class AllIn:
    """A user's own martingale: all is bet that p < 1/2, so capital doubles or is lost."""

    def __init__(self):
        self.n, self.log = 0, 0.0

    def __repr__(self):
        return "AllIn()"

    def fresh(self):
        return type(self)()

    def update(self, p):
        self.update_many([p])

    def update_many(self, ps):
        path = [self.log]
        for p in ps:
            path.append(path[-1] + (math.log(2) if p < 0.5 else -math.inf))
        self.n, self.log = self.n + len(ps), path[-1]
        return np.array(path[1:])


def test_a_martingale_that_lost_all_never_rings_again_by_ville_and_begins_afresh_elsewhere():
    ps = np.array([0.1, 0.1, 0.7, 0.8, 0.2, 0.2, 0.2, 0.9, *[0.3] * 8])
    ville = Ville(AllIn(), 0.2)
    path, alarms = ville.update_many(ps)
    assert np.array_equal(path, [math.log(2), math.log(4), *[-math.inf] * 14])
    assert alarms == []
    for make in (CUSUM, ShiryaevRoberts):
        # By hand: R = 2, 6, 0, 0, 2, 6, 14, 0, 2, ... and gamma = 2, 4, 0, 0, 2, 4, 8, 0, 2, ...
        loop, block = make(AllIn(), 14), make(AllIn(), 14)
        path, alarms = steps(loop, ps)
        rise = {CUSUM: [2, 4, 8, 16], ShiryaevRoberts: [2, 6, 14]}[make]
        values = np.concatenate([rise[:2], [0, 0], rise[:3], [0], np.resize(rise, 8)])
        with np.errstate(divide="ignore"):
            np.testing.assert_allclose(path, np.log(values), rtol=1e-14)
        assert [alarm.step for alarm in alarms] == [n + 1 for n, value in enumerate(values) if value >= 14]
        found, rung = block.update_many(ps)
        assert np.array_equal(found, path)
        assert rung == alarms
        assert pickle.dumps(block) == pickle.dumps(loop)


@every
def test_a_martingale_that_lost_all_is_resumed_at_every_step(make):
    detector = make(AllIn())
    for p in [0.1, 0.1, 0.7, 0.8, 0.2, 0.2, 0.2, 0.9, *[0.3] * 8]:
        twin = pickle.loads(pickle.dumps(detector))
        assert detector.update(p) == twin.update(p)
        assert (detector.log, detector.bets.log, detector.n) == (twin.log, twin.bets.log, twin.n)


@every
@pytest.mark.parametrize("log", [math.inf, math.nan])
def test_a_martingale_of_infinite_or_no_capital_is_refused(make, log):
    class Broken(AllIn):
        def update_many(self, ps):
            path = super().update_many(ps)
            path[-1] = self.log = log
            return path

    with pytest.raises(ValueError, match=f"martingale must have a logarithm that is .* infinity, got {log}"):
        make(Broken()).update(0.1)
    with pytest.raises(ValueError, match="martingale must have a logarithm"):
        make(Broken()).update_many([0.1])


# Theorems --------------------------------------------------------------------------------------------------------


def p_value_of_false_alarms(make, level=0.05, streams=500, n=500):
    """Return the exact binomial p-value of "Ville rings with probability at most `level`"."""
    ps = np.random.default_rng(6).random((streams, n))
    rung = sum(bool(make(level).update_many(row)[1]) for row in ps)
    return stats.binomtest(rung, streams, level, alternative="greater").pvalue


def test_ville_seldom_rings_for_nothing():
    for martingale in (Power(), SimpleJumper(0.1)):
        assert p_value_of_false_alarms(lambda level, m=martingale: Ville(m, level)) > 1e-3


class Impatient(Ville):
    """Rings at a tenth of the threshold."""

    def derive(self):
        super().derive()
        self.log_threshold -= math.log(10)


@pytest.mark.parametrize("kind", [Ville, CUSUM, ShiryaevRoberts])
@pytest.mark.parametrize("p", [2.0, math.nan, True, "0.5"])
def test_one_p_value_is_refused_by_its_own_name(kind, p):
    """Whoever gives one is not told of a position among several."""
    detector = kind(SimpleJumper())
    with pytest.raises((ValueError, TypeError), match=r"^p must (be a number|lie) in \[0, 1\], got [^ ]*$"):
        detector.update(p)
    assert detector.n == 0


def test_the_same_test_refuses_an_impatient_alarm():
    assert p_value_of_false_alarms(lambda level: Impatient(SimpleJumper(0.1), level)) < 1e-6


def z_of_mean_time(detector, threshold, n=60_000):
    """Return how many standard errors the mean time between false alarms lies above the threshold."""
    ps = np.random.default_rng(7).random(n)
    _, alarms = detector.update_many(ps)
    times = np.diff([0, *(alarm.step for alarm in alarms)])
    assert len(times) > 20
    return (times.mean() - threshold) / (times.std(ddof=1) / math.sqrt(len(times)))


@pytest.mark.parametrize("make", [CUSUM, ShiryaevRoberts])
@pytest.mark.parametrize("threshold", [10, 50])
def test_mean_time_to_a_false_alarm_is_at_least_the_threshold(make, threshold):
    """A cycle is never shorter on average; 4 standard errors below would be chance 3e-5."""
    for martingale in (Power(0.7), Power(0.4)):
        n = 300_000 if make is CUSUM and threshold == 50 else 60_000
        assert z_of_mean_time(make(martingale, threshold), threshold, n) > -4


def test_the_same_test_refuses_alarms_that_come_too_soon():
    detector = ShiryaevRoberts(Power(0.7), 50)
    detector.log_threshold = math.log(10)
    assert z_of_mean_time(detector, 50) < -10


def test_the_bound_is_nearly_reached_by_shiryaev_roberts_on_small_bets():
    """R_n - n is a martingale: the mean time is the mean of R at the alarm, just over the threshold for small bets."""
    detector = ShiryaevRoberts(Power(0.9), 50)
    _, alarms = detector.update_many(np.random.default_rng(8).random(100_000))
    times = np.diff([0, *(alarm.step for alarm in alarms)])
    overshoot = np.exp([alarm.log_evidence for alarm in alarms])
    error = (times - overshoot).std(ddof=1) / math.sqrt(len(times))
    assert abs((times - overshoot).mean()) < 4 * error
    assert times.mean() < 60


def test_cusum_rings_after_a_change_that_ville_has_no_capital_left_for():
    rng = np.random.default_rng(9)
    ps = np.concatenate([rng.random(5000), rng.beta(0.4, 1, 200)])
    for make in (CUSUM, ShiryaevRoberts):
        _, alarms = make(Power()).update_many(ps)
        assert 5000 < alarms[0].step <= 5100
    assert Ville(Power()).update_many(ps)[1] == []


# Words -----------------------------------------------------------------------------------------------------------


def test_odds_in_words():
    assert odds(math.log(120)) == "120 to 1"
    assert odds(math.log(20)) == "20 to 1"
    assert odds(math.log(19.999)) == "19 to 1"
    assert odds(math.log(2.5)) == "2.5 to 1"
    assert odds(math.log(1e4)) == "10,000 to 1"
    assert odds(math.log(1e12)) == "10^12 to 1"
    assert odds(1e7) == "10^4342944 to 1"


def test_long_run_lengths_are_written_out():
    assert "at least 1,200,000;" in ShiryaevRoberts(Power(), 1.2e6).statement
    assert "at least 1.5;" in CUSUM(Power(), 1.5).statement


@every
def test_an_alarm_says_when_how_strong_and_what_is_a_theorem(make):
    detector = make()
    _, alarms = detector.update_many([0.5] * 3 + [1e-4] * 2)
    alarm = alarms[0]
    assert alarm == detector.last
    assert isinstance(alarm, Alarm)
    assert 4 <= alarm.step <= 5
    assert f"At step {alarm.step}" in alarm.sentence
    assert odds(alarm.log_evidence) in alarm.sentence
    assert "Theorem" in alarm.sentence
    assert detector.statement.startswith("Theorem")
    assert ("0.02" if isinstance(detector, Ville) else "50") in detector.statement
    with pytest.raises(dataclasses.FrozenInstanceError):
        alarm.step = 1
