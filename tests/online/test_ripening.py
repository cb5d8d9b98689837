"""Labels that ripen: to the bit as in a stream whose labels all come then, so that p-values are uniform."""

import os
from collections import namedtuple
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from naive import ripening as naive
from scipy.stats import binom

import venn
from venn.online.checkpoint import pack
from venn.prediction import PredictionSet

CLASSES = ("fraud", "honest")
Asked = namedtuple("Asked", "id x at")
Told = namedtuple("Told", "id y at")


def machine():
    return venn.Conformal(venn.LeastSquaresSVM(venn.RBF(0.5), 1.0, CLASSES))


def events(n, seed=0, back=True):
    """Return what happens: frauds are reported soon, some twice; few honest ones are reported, and late."""
    rng, found, clock = np.random.default_rng(seed), [], 1e6
    later = []
    for number in range(n):
        clock += float(rng.integers(0, 3))
        fraud = rng.random() < 0.4
        now = clock - 5 * (back and rng.random() < 0.2)  # clocks that go back
        found.append(("ask", number, now))
        if fraud:
            later.append((number + int(rng.integers(0, 4)), number, "fraud"))
            if rng.random() < 0.2:
                later.append((number + int(rng.integers(0, 25)), number, ("honest", "fraud")[rng.integers(2)]))
        elif rng.random() < 0.3:
            later.append((number + int(rng.integers(0, 25)), number, "honest"))
        found += [("label", id, y, now) for due, id, y in later if due == number]
    return found


def x_of(id):
    return np.random.default_rng(id).integers(0, 3, 2) / 2


def feed(online, what):
    """Let it happen; return what is said of each question."""
    found = []
    for kind, id, *more in what:
        if kind == "ask":
            found.append(online.ask(x_of(id), id, at=more[-1]).p_values.tolist())
        else:
            online.answer(id, more[0], at=more[-1])
    return found


@pytest.mark.parametrize("silent", ["honest", None])
@pytest.mark.parametrize(("ripe", "by_time"), [(1, False), (8, False), (timedelta(seconds=9), True)])
def test_it_is_to_the_bit_a_stream_whose_labels_come_when_they_are_ripe(ripe, by_time, silent):
    happened = events(70)
    late = venn.Online(machine(), venn.Monitor(CLASSES), ripe=ripe, silent=silent)
    said = feed(late, happened)
    size = ripe.total_seconds() if by_time else ripe
    plain, count = naive.ripened(happened, size, silent, by_time)
    online, expected = venn.Online(machine(), venn.Monitor(CLASSES)), []
    for kind, id, *more in plain:
        if kind == "ask":
            expected.append(online.ask(x_of(id), id).p_values.tolist())
        elif more[0] is None:
            online.expire(id)
        else:
            online.answer(id, more[0])
    assert said == expected
    assert late.ripening.late == count > 0
    assert (late.answered, late.expired, late.pending) == (online.answered, online.expired, online.pending)
    assert pack(late.monitors) == pack(online.monitors)


@pytest.mark.parametrize("ripe", [6, timedelta(seconds=7)])
def test_a_restart_changes_nothing_wherever_it_comes(tmp_path, ripe):
    happened = events(45, seed=1)

    def run(name, cuts, forget):
        said = []
        for start, stop in zip((0, *cuts), (*cuts, len(happened)), strict=True):
            journal = venn.online.Journal(tmp_path / name, every=7)
            with venn.Online(machine(), venn.Monitor(CLASSES), journal, ripe=ripe, silent="honest") as online:
                said += feed(online, happened[start:stop])
                end = pack(online.monitors), online.ripening.late, online.ripening.reports, online.pending
            for file in tmp_path.glob(f"{name}-state*") if forget else ():
                file.unlink()
        venn.online.verify(tmp_path / name)
        return said, end

    whole = run("a.db", (), False)
    assert run("b.db", (1, 9, 10, 33, 60), False) == whole
    assert run("c.db", (20, 41), True) == whole
    with pytest.raises(venn.online.JournalError, match="ripe"):
        venn.Online(machine(), venn.Monitor(CLASSES), tmp_path / "a.db", ripe=5, silent="honest")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a Unix")
def test_a_kill_loses_no_report_and_events_that_come_again_change_nothing(tmp_path):
    happened = [
        Asked(id, x_of(id), more[-1]) if kind == "ask" else Told(id, more[0], more[-1])
        for kind, id, *more in events(40, seed=2, back=False)
    ]

    def run(name, stop):
        journal = venn.online.Journal(tmp_path / name, every=5)
        online = venn.Online(machine(), journal=journal, ripe=7, silent="honest")
        list(online.follow(happened[:stop], again=True))
        return online

    for stop in (9, 25, 26, 50):
        child = os.fork()
        if not child:
            try:
                run("a.db", stop)
            finally:
                os._exit(0)
        os.waitpid(child, 0)
    one, other = run("a.db", None), run("b.db", None)
    assert (one.answered, one.pending, one.ripening.late) == (other.answered, other.pending, other.ripening.late)
    assert one.ripening.reports.keys() == other.ripening.reports.keys()
    assert pack(one.panel) == pack(other.panel)
    one.close()
    other.close()


# ------------------------------------------------------------------------------------------- validity


class Ranks(venn.predictors.Predictor):
    """A conformal predictor that ranks frauds above honest ones; it keeps the p-value of each label it learns."""

    classes = CLASSES

    def __init__(self):
        self.scores, self.seen, self.rng = [], [], np.random.default_rng(5)

    def _score(self, x, y):
        return (y == "fraud") + 0.001 * x[0]

    def _p_value(self, x, y, tau):
        score, bag = self._score(x, y), np.array(self.scores)
        return (np.sum(bag > score) + tau * (np.sum(bag == score) + 1)) / (len(bag) + 1)

    def predict_one(self, x):
        return PredictionSet(np.array([self._p_value(x, y, 0.5) for y in CLASSES]), CLASSES)

    def commit(self, x, y, prepared=None):
        self.seen.append(self._p_value(x, y, self.rng.random()))
        self.scores.append(self._score(x, y))


def large_p_values(seed, n=100, **ripening):
    """Return how many p-values of the examples learned are above a half, of how many; frauds are reported sooner."""
    model, rng = Ranks(), np.random.default_rng(seed)
    online, later = venn.Online(model, **ripening), []
    for number in range(n):
        fraud = rng.random() < 0.2
        online.ask([rng.random()], number)
        later.append((number + (2 if fraud else 60), number, CLASSES[1 - fraud]))
        for one in [one for one in later if one[0] == number]:
            online.answer(*one[1:])
    seen = np.array(online.panel["Ranks"].seen)
    return int((seen > 0.5).sum()), len(seen)


def chance(count, n):
    """Return the two-sided chance of a count that is binomial (n, .5)."""
    return 2 * min(binom.cdf(count, n, 0.5), binom.sf(count - 1, n, 0.5))


def test_p_values_are_uniform_where_the_delay_depends_on_the_class():
    found = [large_p_values(seed, ripe=20, silent="honest") for seed in range(8)]
    assert chance(*np.sum(found, axis=0)) > 1e-3


def test_a_twin_that_learns_early_reports_fails_that_test():
    found = [large_p_values(seed) for seed in range(8)]
    assert chance(*np.sum(found, axis=0)) < 1e-6


# ------------------------------------------------------------------------------------------ refusals


def test_times_may_be_dates_and_a_clock_never_goes_back():
    online = venn.Online(machine(), ripe=timedelta(days=90), silent="honest")
    day = datetime(2026, 1, 1, tzinfo=UTC)
    online.ask([0.0, 0.0], "a", at=day)
    online.ask([0.0, 0.0], "b", at=day - timedelta(days=200))
    assert online.ripen(day + timedelta(days=89)) == ()
    assert online.pending == ("a", "b")
    online.ripen(day + timedelta(days=90))
    assert (online.pending, online.answered) == ((), 2)
    online.answer("a", "fraud", at=day)
    online.answer("a", "fraud", at=day)
    assert online.ripening.late == 1
    assert "1 too late" in repr(online)


def test_to_give_up_a_question_moves_no_clock(tmp_path):
    for _ in range(2):  # the second goes on, by the times of the events
        with venn.Online(machine(), journal=tmp_path / "run.db", ripe=timedelta(days=90), silent="honest") as online:
            if not online.asked:
                online.ask([0.0, 0.0], "a", at=0)
                online.ask([0.0, 0.0], "b", at=1)
                online.expire("b")
            online.ripen(at=2)
            assert online.pending == ("a",)


def test_an_answer_or_an_id_that_is_refused_moves_no_clock():
    online = venn.Online(machine(), ripe=timedelta(seconds=100), silent="honest")
    for i in range(5):
        online.ask([0.0, i], i, at=1000 + i)
    for call in (
        lambda: online.answer("unknown", "fraud", at=1e10), lambda: online.ask([0.0, 0.0], 1.5, at=1e10),
        lambda: online.ask([0.0, 4], 4),  # sent again without a time
    ):  # fmt: skip
        with pytest.raises((TypeError, ValueError), match="id must"):
            call()
    assert (online.answered, len(online.pending), online.ripening.clock) == (0, 5, 1004)


def test_what_is_not_as_described_is_refused_and_nothing_is_lost():
    for bad, words in (
        ({"ripe": 0}, "ripe must"), ({"ripe": 1.5}, "ripe must"), ({"ripe": timedelta(0)}, "ripe must"),
        ({"ripe": True}, "ripe must"), ({"silent": "honest"}, "silent must"),
        ({"ripe": 3, "silent": "x"}, "silent must"),
        ({"ripe": 3, "patience": 5}, "ripe must"), ({"ripe": 3, "labels": venn.online.Lot(0.5)}, "ripe must"),
    ):  # fmt: skip
        with pytest.raises((TypeError, ValueError), match=words):
            venn.Online(machine(), **bad)
    online = venn.Online(machine(), ripe=3, silent="honest")
    online.ask([0.0, 0.0], 1)
    for call, words in (
        (lambda: online.ask([0.0, 0.0], 2, at="noon"), "at must be seconds"),
        (lambda: online.ask([0.0, 0.0], 2, at=float("nan")), "at must be a finite"),
        (lambda: online.answer(1, "fraud", at=datetime(2026, 1, 1)), "time zone"),
        (lambda: online.answer(7, "fraud"), "id must be that of a question that waits"),
        (lambda: online.answer(1, "theft"), "theft"),
    ):
        with pytest.raises((TypeError, ValueError), match=words):
            call()
    assert (online.asked, online.pending, len(online.ripening.reports)) == (1, (1,), 0)
    with pytest.raises(ValueError, match="ripe must be given"):
        venn.Online(machine()).ripen()
