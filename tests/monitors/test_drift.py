"""Evidence without labels: p-values of objects are right after every step, uniform, and rung by what changes."""

import copy
import pickle
from collections import deque

import numpy as np
import pytest
from naive import objects as naive
from naive import scaled as by_hand
from scipy import stats

import streams
import venn
from venn.monitors import AgainstFirst, AmongAll, Drift, together
from venn.online import Watch, checkpoint
from venn.online.journal import Journal
from venn.smoothing import Smoothing

LEVEL, REFUSED = 1e-3, 1e-9


def tied(n, seed, d=2):
    """Return objects on a grid: many are equal, many distances are."""
    return np.random.default_rng(seed).integers(0, 3, size=(n, d)) / 2


@pytest.mark.parametrize("k", [1, 2, 5])
@pytest.mark.parametrize("seed", range(3))
def test_ranks_among_all_are_those_of_the_definition(k, seed):
    X, rng = tied(40, seed), np.random.default_rng(seed)
    ranking = AmongAll(k)
    for n in range(1, len(X) + 1):
        tau = rng.random()
        assert ranking.rank(X[n - 1], tau) == pytest.approx(naive.among_all(X[:n].tolist(), k, tau), abs=1e-12)


@pytest.mark.parametrize("k", [1, 4])
@pytest.mark.parametrize("size", [20, 25])
def test_ranks_against_the_first_are_those_of_the_definition(k, size):
    X = tied(60, k)
    ranking = AgainstFirst(size, k, 0.1)
    for n in range(1, len(X) + 1):
        assert ranking.rank(X[n - 1], 0.5) == (
            None if n <= size else pytest.approx(naive.against_first(X[:n].tolist(), size, k, 0.1), abs=1e-12)
        )


def test_the_order_of_those_before_does_not_matter():
    X = tied(50, 7)
    last = []
    for order in (np.arange(49), np.random.default_rng(0).permutation(49)):
        ranking = AmongAll(3)
        for i in order:
            ranking.rank(X[i], 0.5)
        last.append(ranking.rank(X[49], 0.5))
    assert last[0] == last[1]


class LeavesItselfOut(AmongAll):
    """A broken variant: the new object is not among the neighbours of the others, nor among the ties."""

    def rank(self, x, tau):
        crowd = self._crowd
        own = crowd.strangeness(crowd.clean(x)) if crowd.n else 0.0
        near = crowd.state["near"]
        others = np.where(near < np.inf, near, 0.0).sum(axis=1)
        p = (int((others > own).sum()) + tau * int((others == own).sum())) / max(len(others), 1) if crowd.n else tau
        crowd.join(crowd.clean(x), tau)
        return p


def p_values(ranking, streams=400, n=12):
    """Return (streams, n) p-values of exchangeable objects full of ties."""
    rng = np.random.default_rng(5)
    found = np.empty((streams, n))
    for s in range(streams):
        one, X = ranking.fresh() if ranking is not LeavesItselfOut else LeavesItselfOut(2), tied(n, [s, 9], 1)
        found[s] = [one.rank(x, tau) for x, tau in zip(X, rng.random(n), strict=True)]
    return found


def departs(p):
    """Return the smallest two-sided binomial p-value of #{p <= u}, and of both successive p-values being small."""
    counts = [stats.binomtest(int((p <= u).sum()), p.size, u).pvalue for u in (0.05, 0.1, 0.25, 0.5, 0.75)]
    both = (p[:, 1:] <= 0.3) & (p[:, :-1] <= 0.3)
    return min(*counts, stats.binomtest(int(both[:, ::2].sum()), both[:, ::2].size, 0.09).pvalue)


def test_p_values_of_objects_are_uniform_and_independent():
    assert departs(p_values(AmongAll(2))) > LEVEL


def test_a_broken_variant_is_found():
    assert departs(p_values(LeavesItselfOut)) < REFUSED


def test_against_the_first_small_p_values_are_no_more_frequent_than_they_say():
    """Conditional on each of many samples; a sample may mislead with probability `risk`."""
    rng, misled, samples = np.random.default_rng(3), 0, 40
    for _ in range(samples):
        ranking = AgainstFirst(40, 2, 0.2)
        for x in rng.normal(size=(40, 1)):
            ranking.rank(x, 0.5)
        p = np.array([ranking.rank(x, 0.5) for x in rng.normal(size=(400, 1))])
        misled += any(stats.binomtest(int((p <= u).sum()), p.size, u, "greater").pvalue < 1e-4 for u in (0.3, 0.5, 0.7))
    assert stats.binomtest(misled, samples, 0.2, "greater").pvalue > LEVEL


def test_it_rings_when_objects_change_and_not_when_they_do_not():
    rng, rang = np.random.default_rng(0), 0
    for _ in range(20):
        drift = Drift(AmongAll(5), level=0.05)
        for x in rng.normal(size=(150, 2)):
            drift.update(x)
        early = drift.count > 0
        rang += early
        while drift.count == 0:
            drift.update(rng.normal(4, size=2))
        assert drift.n < 250
        assert drift.alarms[0].about == "objects"
        assert early or drift.alarms[0].step == drift.n
    assert stats.binomtest(rang, 20, 0.05, "greater").pvalue > LEVEL


def test_after_a_long_calm_the_first_sample_sees_the_change_at_once():
    rng = np.random.default_rng(1)
    drift = Drift(AgainstFirst(400, 5))
    for x in rng.normal(size=(3000, 2)):
        assert not drift.update(x)
    while not drift.count:
        drift.update(rng.normal(4, size=2))
    assert drift.n < 3100
    assert [alarm.detector for alarm in drift.alarms] == ["ShiryaevRoberts"], "Ville has lost too much"


@pytest.mark.parametrize("ranking", [AmongAll(2), AgainstFirst(40, 2, 0.25)])
@pytest.mark.parametrize("at", [0, 1, 9, 21, 50])
def test_what_is_saved_goes_on_to_the_last_bit(ranking, at):
    X = np.vstack([tied(45, 3), tied(30, 4) + 5])
    whole = Drift(ranking, level=0.3, run_length=20, seed=4)
    for x in X[:at]:
        whole.update(x)
    twins = [pickle.loads(pickle.dumps(whole)), copy.deepcopy(whole)]
    for x in X[at:]:
        rung = whole.update(x)
        for twin in twins:
            assert twin.update(x) == rung
            assert twin.p_value == whole.p_value
    for twin in twins:
        assert twin.snapshot() == whole.snapshot()
    assert whole.count > 0
    assert repr(whole.fresh()) == repr(whole)
    assert whole.fresh().n == 0


def test_bad_objects_and_parameters_change_nothing():
    drift = Drift(AmongAll(1))
    drift.update([1.0, 2.0])
    for bad in ([1.0], [np.nan, 1.0], [[1.0, 2.0]], [1e200, 0.0], ["a", "b"]):
        with pytest.raises((TypeError, ValueError)):
            drift.update(bad)
    assert drift.n == 1
    for make, said in (
        (lambda: AmongAll(0), "neighbours must be"), (lambda: AgainstFirst(10), "size must be"),
        (lambda: AgainstFirst(20, 11), "at most half"), (lambda: AgainstFirst(risk=0.0), "risk must"),
        (lambda: Drift(AgainstFirst(risk=0.02)), "level must be larger than the risk"),
        (lambda: Drift(level=2), "level must"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=said):
            make()
    with pytest.raises(TypeError, match="ranking must be"):
        Drift("knn")


def test_a_damaged_state_is_refused():
    drift = Drift(AmongAll(2), seed=1)
    for x in tied(10, 0):
        drift.update(x)
    state = drift.state
    for damage in ({"count": -1}, {"p_value": "x"}, {"reason": None}, {"ranks": AgainstFirst()}, {"alarms": deque([1])},
                   {"fixed": np.zeros(3)}, {"rows": np.zeros(3)}):  # fmt: skip
        with pytest.raises(ValueError, match="must"):
            drift.fresh().restore(state | damage)
    crowd = state["ranks"].state["crowd"]
    held = crowd.state
    for damage in ({"near": held["near"][:-1]}, {"objects": held["objects"] * np.nan}):
        with pytest.raises(ValueError, match=r"must|objects|near"):
            crowd.fresh().restore(held | damage)


@pytest.mark.parametrize("size", [7, 20])
def test_a_bag_of_fixed_size_begins_anew(size):
    X, rng = tied(60, 3), np.random.default_rng(3)
    ranking = AmongAll(2, size)
    for n in range(len(X)):
        tau, first = rng.random(), n // size * size
        assert ranking.rank(X[n], tau) == pytest.approx(naive.among_all(X[first : n + 1].tolist(), 2, tau), abs=1e-12)
    assert ranking.n == 60


def test_the_first_objects_fix_the_scale_and_do_nothing_else():
    X = np.random.default_rng(0).normal(size=(80, 3)) * [1, 1e6, 1e-3]
    X[:, 2] = np.where(np.arange(80) < 12, 0.0, X[:, 2])  # constant among the first
    center, spread, _ = by_hand.fixed_by(X[:10])
    drift, ranking = Drift(AmongAll(3), first=10), AmongAll(3)
    smoothing = Smoothing(0)
    for n, x in enumerate(X):
        drift.update(x)
        expected = None if n < 10 else ranking.rank((x - center) / spread, smoothing.at(n))
        assert drift.p_value == (None if expected is None else pytest.approx(expected, abs=1e-12))
    assert drift.n == 80


CLASSES = ("no", "yes")


def drifting(panel=None):
    """Return a run of a panel whose objects are watched."""
    machine = venn.LeastSquaresSVM(venn.RBF(0.5), 1.0, CLASSES)
    panel = panel or venn.Panel(abers=venn.TransductiveVennAbers(machine))
    return panel, together(panel, CLASSES, objects=Drift(AmongAll(3, 60), first=5), level=0.03)


def questions(n, change):
    X = np.random.default_rng(1).normal(size=(n, 2))
    X[change:] += 4
    return X, [CLASSES[int(x[0] > 0)] for x in X]


def test_in_service_it_rings_at_the_question_before_any_label_and_shares_the_level(tmp_path):
    X, _ = questions(100, 30)
    panel, monitors = drifting()
    assert [monitors[name].level for name in ("abers", "objects")] == [0.015, 0.015]
    alone = Drift(AmongAll(3, 60), first=5, level=0.015, run_length=200_000)
    with venn.Online(panel, monitors, tmp_path / "run.db") as online:
        for x in X:
            online.ask(x)
            if alone.update(x):
                break
        assert online.answered == 0
        assert online.monitors["objects"].alarms == alone.alarms
        verdict = online.verdict()
        assert (verdict.state, verdict.predictor) == ("doubtful", "objects")
        with Watch(tmp_path / "run.db") as watch:
            (rung,) = watch.alarms("objects")
            assert (rung["step"], rung["sentence"]) == (online.asked, alone.alarms[0].sentence)
            assert watch.asked_at(online.asked) <= rung["time"]
            assert watch.objects == ("objects",)


@pytest.mark.parametrize("killed", [3, 5, 44, 70])
def test_a_journal_goes_on_with_it_to_the_last_bit(killed, tmp_path):
    X, y = questions(100, 45)
    events = list(streams.teach(list(zip(X, y, strict=True)), streams.Delayed(10)))
    whole = venn.Online(*drifting(), tmp_path / "whole.db")
    list(whole.follow(events))
    first = venn.Online(*drifting(), Journal(tmp_path / "run.db", every=7))
    list(first.follow(events[:killed]))
    first.journal.close()  # as if it had been killed
    again = venn.Online(*drifting(), Journal(tmp_path / "run.db", every=7))
    list(again.follow(events, again=True))
    assert again.monitors["objects"].count > 0
    assert checkpoint.pack(again.monitors) == checkpoint.pack(whole.monitors)
    for online in (whole, again):
        online.close()
    with Watch(tmp_path / "whole.db") as one, Watch(tmp_path / "run.db") as other:
        told = [[{**alarm, "time": 0} for alarm in watch.alarms("objects")] for watch in (one, other)]
        assert told[0] == told[1]
        shown = [watch.snapshot("objects")["monitor"] for watch in (one, other)]
        for each in shown:  # the question of the change has the time of its own run
            assert each["verdict"].pop("at")["id"] == each["verdict"]["since"]
            each["verdict"].pop("sentence")
        assert shown[0] == shown[1]


def test_what_watches_objects_has_a_name_of_its_own_and_refuses_with_the_question():
    panel, monitors = drifting()
    with pytest.raises(ValueError, match="monitor must give a Drift a name that no predictor has, got 'abers'"):
        venn.Online(panel, {"abers": monitors["objects"]})
    with pytest.raises(ValueError, match="names must not hold 'objects'"):
        together(["objects"], CLASSES, objects=Drift())
    online = venn.Online(panel, Drift(AmongAll()))
    with pytest.raises(ValueError, match="x must lie within 1e"):
        online.ask([1e160, 0.0])
    assert (online.asked, online.monitors["objects"].n) == (0, 0)


@pytest.mark.parametrize("first", [0, 2])
def test_a_gap_is_refused_with_what_to_do_and_changes_nothing(first):
    drift = Drift(AmongAll(1), first=first)
    for x in ([0.0, 1.0], [1.0, 0.0], [0.5, 0.5]):
        with pytest.raises(ValueError, match=r"got nan at feature 1: put a fixed number .*; or watch without a Drift"):
            drift.update([0.0, np.nan])
        drift.update(x)
    assert drift.n == 3
    with pytest.raises(ValueError, match=r"got inf at feature 0$"):
        drift.update([np.inf, 0.0])


def objects_by_name(n=60, seed=3):
    rng = np.random.default_rng(seed)
    return [{"weight": float(w), "age": float(a)} for w, a in rng.normal(size=(n, 2))]


@pytest.mark.parametrize("columns", [("weight", "age"), ("age", "weight"), True])
def test_objects_with_names_are_the_same_in_any_order(columns):
    one, other = (Drift(columns=columns, level=0.2) for _ in range(2))
    for x in objects_by_name():
        one.update(x)
        other.update(dict(sorted(x.items(), key=lambda pair: pair[1])))
    assert checkpoint.pack(one) == checkpoint.pack(other)
    for wrong in ({"weight": 1.0, "height": 1.0}, {"weight": 1.0}, {"weight": 1.0, "age": 1.0, "height": 0.0}):
        before = checkpoint.pack(one)
        with pytest.raises(ValueError, match="x must have the columns"):
            one.update(wrong)
        assert checkpoint.pack(one) == before


def test_columns_keep_the_names_that_their_numbers_had():
    drift = Drift(columns=("weight", "age"), level=0.2)
    rng = np.random.default_rng(0)
    for n in range(400):
        drift.update({"age": float(rng.normal()) + 4 * (n >= 200), "weight": float(rng.normal())})
    assert [one["name"] for one in drift.snapshot()["columns"]] == ["age"]


def test_a_table_of_one_row_is_an_object():
    pd = pytest.importorskip("pandas")
    one, other = (Drift(columns=("weight", "age"), level=0.2) for _ in range(2))
    for x in objects_by_name():
        one.update(pd.DataFrame([x]))
        other.update(np.array([*x.values()]))
    assert checkpoint.pack(one) == checkpoint.pack(other)
