"""Which kind of change, and which column: p-values and names by definition, uniform, seldom wrong; and in words."""

import copy
import pickle
from collections import deque
from fractions import Fraction
from html import escape
from itertools import permutations
from types import SimpleNamespace

import numpy as np
import pytest
from naive import kinds as naive
from naive import objects as naive_objects
from scipy import stats

import venn
from venn.monitors import AmongAll, ClassDrift, Drift, class_drift, column_drift, together, watching, worst
from venn.monitors.class_drift import PARTS
from venn.monitors.column_drift import ColumnDrift
from venn.monitors.naming import Naming, Ties, rarity
from venn.monitors.watching import Case
from venn.show.page.feed import FollowedRun
from venn.show.page.page import render
from venn.show.page.words import changes
from venn.smoothing import Smoothing

LEVEL, REFUSED = 1e-3, 1e-9


def tied(n, seed, d=4):
    """Return objects on a grid, some with gaps."""
    X = np.random.default_rng(seed).integers(0, 4, size=(n, d)) / 2
    X[np.random.default_rng([seed, 1]).random((n, d)) < 0.1] = np.nan
    return X


# ------------------------------------------------------------------------------ by definition


def test_columns_are_ranked_bet_on_and_named_as_defined():
    n, level = 120, 0.5
    X, words = tied(n, 0), np.random.default_rng(3).choice(["a", "b", "c"], n)
    X[60:, 1], words[70:] = 1.5, "d"
    drift, ties = ColumnDrift(level, seed=5), Smoothing(5)
    ps: list[list[float]] = [[] for _ in range(5)]
    for i in range(n):
        drift.update([*[None if np.isnan(v) else float(v) for v in X[i]], str(words[i])])
        for j in range(4):
            column = [None if np.isnan(v) else v for v in X[: i + 1, j]]
            ps[j].append(naive.of_number(column, ties.at(i)))
        ps[4].append(naive.of_label(words[: i + 1].tolist(), ties.at(i)))
        assert drift.p_values == pytest.approx([own[-1] for own in ps], abs=1e-12)
        most = [max(naive.capitals(own)) for own in ps] if i % 10 == 9 else None
        if most is not None:
            named = naive.holm([min(1.0, 1 / one) for one in most], level / 2)
            assert {one.place for one in drift.found} == named
    assert named == {1, 4}


def test_labels_and_objects_within_classes_are_ranked_as_defined():
    rng, ties, drift = np.random.default_rng(0), Ties(3), ClassDrift(["a", "b", "c"], AmongAll(2), seed=3)
    X, y = rng.integers(0, 3, size=(60, 2)) / 2, [str(one) for one in rng.choice(list("abc"), 60)]
    for i in range(60):
        drift.update(X[i], y[i])
        alike = [X[j].tolist() for j in range(i + 1) if y[j] == y[i]]
        of_label, of_object = ties.at(i)
        wanted = naive.of_label(y[: i + 1], of_label), naive_objects.among_all(alike, 2, of_object)
        assert drift.p_values == pytest.approx(wanted, abs=1e-12)


# ------------------------------------------------------------------------------ joint uniformity


def _probability(low, high, u):
    """Return the probability of p <= u, where p is uniform from `low` to `high` as the tie-breaker varies."""
    return min(max((u - low) / (high - low), Fraction(0)), Fraction(1))


def departure(of_label):
    """Return how far joint probabilities of all p-values of a bag of five, in random order, are from the product."""
    bag, far = [(0.0, 0), (1.0, 0), (5.0, 0), (2.0, 1), (2.5, 1)], Fraction(0)
    rng = np.random.default_rng(1)
    for us in rng.integers(1, 20, size=(4, 10)):
        total, orders = Fraction(0), list(permutations(bag))
        for order in orders:
            at, product = 0, Fraction(1)
            counts, ranks = [0, 0], {tau: [AmongAll(1), AmongAll(1)] for tau in (0.0, 1.0)}
            for x, y in order:
                counts[y] += 1
                pairs = [[of_label(counts, y, tau), ranks[tau][y].rank([x], tau)] for tau in (0.0, 1.0)]
                for low, high in zip(*pairs, strict=True):
                    ends = (Fraction(end).limit_denominator(60) for end in (low, high))
                    product *= _probability(*ends, Fraction(int(us[at]), 20))
                    at += 1
            total += product
        far = max(far, abs(total / len(orders) - np.prod([Fraction(int(u), 20) for u in us])))
    return far


def test_p_values_of_labels_and_within_classes_are_uniform_together():
    """Exactly: over all orders of a bag, with independent tie-breakers, every joint probability is the product."""
    assert departure(rarity) == 0
    one, other = zip(*(Ties(0).at(n) for n in range(500)), strict=True)
    assert len({*one, *other}) == 1000
    assert stats.spearmanr(one, other).pvalue > LEVEL


def test_a_label_that_is_not_counted_itself_is_found():
    def without_itself(counts, code, tau):
        before = [count - (k == code) for k, count in enumerate(counts)]
        return rarity(before, code, tau) if before[code] else tau

    assert departure(without_itself) > Fraction(1, 10**6)


def test_if_only_labels_change_nothing_within_classes_rings():
    rang = {"labels": 0, "objects within classes": 0}
    for seed in range(25):
        rng, drift = np.random.default_rng([seed, 2]), ClassDrift(["no", "yes"], AmongAll(3), level=0.6)
        for step in range(240):
            y = int(rng.random() < (0.2 if step < 120 else 0.7))
            drift.update(rng.normal(2 * y, size=1), drift.classes[y])
        for about in rang:
            rang[about] += any(one.about == about and one.detector != "ShiryaevRoberts" for one in drift.alarms)
    assert rang["labels"] > 12
    assert (
        stats.binomtest(rang["objects within classes"], 25, 0.4, "greater").pvalue > LEVEL
    )  # .2 each: to ring, to name


# ------------------------------------------------------------------------------ wrong names


def wrong_names(level, n=250, runs=60):
    """Return in how many streams a column is named that has not changed: four are copies, and one has changed."""
    wrong = found = 0
    for seed in range(runs):
        rng = np.random.default_rng([seed, 4])
        X = np.column_stack([rng.normal(size=n), *[rng.integers(0, 2, n)] * 4])
        X[n // 2 :, 0] += 3
        drift, columns = ColumnDrift(level, seed=seed), set()
        for x in X:
            drift.update(x)
            columns |= {one.place for one in drift.found}
        wrong += bool(columns - {0})
        found += 0 in columns
    return wrong, found, runs


def test_a_wrong_column_is_named_in_no_more_streams_than_the_level():
    wrong, found, runs = wrong_names(0.4)
    assert found == runs
    assert stats.binomtest(wrong, runs, 0.2, "greater").pvalue > LEVEL  # the first round has half the level


def test_without_tie_breaking_wrong_columns_are_named(monkeypatch):
    class Never(Smoothing):
        def at(self, n, digest=None):
            return 0.0

    monkeypatch.setattr(column_drift, "Smoothing", Never)
    wrong, _, runs = wrong_names(0.4)
    assert stats.binomtest(wrong, runs, 0.2, "greater").pvalue < REFUSED


def names_of_kept_streams(named, level=0.4, changed=30, kept=30, n=150, runs=60):
    """Return in how many runs one of many streams is named that stays uniform, while as many others do not."""
    wrong = 0
    for seed in range(runs):
        rng, naming, found = np.random.default_rng([seed, 7]), Naming(changed + kept, level), set()
        for step in range(1, n + 1):
            ps = rng.random(changed + kept)
            ps[:changed] **= 4
            found |= named(naming, ps, step)
        wrong += max(found) >= changed
    return stats.binomtest(wrong, runs, level, "greater").pvalue


def test_many_changed_streams_name_no_others():
    assert names_of_kept_streams(lambda naming, ps, step: {*naming.update(ps, step), 0}) > LEVEL


def test_e_bh_on_current_capitals_names_others():
    """Changed streams lower its threshold for all: what it promises is a share of wrong names, and at one step."""

    def current(naming, ps, step):
        naming.update(ps, step)
        return naive.e_bh(np.exp(naming.state["memory"][:, 1]).tolist(), naming.level) | {0}

    assert names_of_kept_streams(current) < REFUSED


def test_a_capital_is_no_martingale_once_another_column_is_seen():
    """Exactly: the mean of a column's third p-value is 1/2 given its own first two, and not given another column's."""
    own, both = {}, {}
    for order in permutations([(0, 0), (1, 2), (2, 1)]):
        one, other = zip(*order, strict=True)
        p = (naive.of_number(one, Fraction(0)) + naive.of_number(one, Fraction(1))) / 2
        own.setdefault(one[0] < one[1], []).append(p)
        both.setdefault((one[0] < one[1], other[0] < other[1]), []).append(p)
    assert {sum(ps) / len(ps) for ps in own.values()} == {Fraction(1, 2)}
    assert max(sum(ps) / len(ps) for ps in both.values()) == Fraction(5, 6)


# ------------------------------------------------------------------------------ in use


def test_after_a_while_a_column_may_be_named_again(monkeypatch):
    monkeypatch.setattr(column_drift, "MEMORY", 100)
    rng, drift = np.random.default_rng(0), ColumnDrift(0.01, ["a", "b"], size=300)
    steps = []
    for step in range(900):
        x = rng.normal(size=2)
        x[1] += 4 * (step >= 200) + 4 * (step >= 600)
        steps += [(alarm.step, drift.words) for alarm in drift.update(x)]
    assert [200 < step < 230 or 600 < step < 660 for step, _ in steps] == [True, True]
    assert all("'b' (middle" in words and "'a'" not in words for _, words in steps)
    assert [one.step for one in drift.found] == [steps[-1][0]]  # the latest stays known, the one before does not


def test_what_was_named_is_told_as_long_as_its_change_lasts(monkeypatch):
    """And alarms count all examples, those without a p-value, too."""
    for module in (column_drift, class_drift, watching):
        monkeypatch.setattr(module, "MEMORY", 100)
    rng, objects, classes = (
        np.random.default_rng(0), Drift(first=30, columns=["a"]), ClassDrift(["no", "yes"], first=30),
    )  # fmt: skip
    for step in range(740):
        x, y = rng.normal(4 * (step >= 200) + step / 40 * (200 <= step < 500), size=1), ["no", "yes"][rng.integers(2)]
        for alarm in (*objects.update(x), *classes.update(x, y)):
            assert alarm.sentence.startswith((f"At question {step + 1} ", f"At step {step + 1} "))
        if 230 <= step < 410:  # names of the round before, from 328 on
            assert "column 'a'" in objects.verdict().kind
            assert "of classes 'no' and 'yes'" in classes.verdict().kind
        assert bool(objects.snapshot()["columns"]) == bool(objects.verdict().kind)
    assert objects.verdict().kind == ""
    assert "as claimed again, no alarm since" in objects.verdict().details


@pytest.mark.parametrize("at", [0, 1, 45, 130, 180])
def test_what_is_saved_goes_on_to_the_last_bit(at, monkeypatch):
    monkeypatch.setattr(column_drift, "MEMORY", 60)
    monkeypatch.setattr(venn.monitors.class_drift, "MEMORY", 60)
    X, rng = tied(220, 2, 3), np.random.default_rng(0)
    X[100:, 1], y = 1.0, [str(one) for one in rng.choice(list("ab"), 220)]
    y[120:] = ["a"] * 100

    def watchers():
        drift = Drift(AmongAll(2, size=40), level=0.3, first=5, columns=("p", "q", "r"))
        return drift, ClassDrift(["a", "b"], AmongAll(2), level=0.3, first=4)

    def step(pair, i):
        return pair[0].update(X[i]), pair[1].update(X[i], y[i])

    whole = watchers()
    for i in range(at):
        step(whole, i)
    twins = [pickle.loads(pickle.dumps(whole)), copy.deepcopy(whole)]
    for i in range(at, 220):
        rung = step(whole, i)
        for twin in twins:
            assert step(twin, i) == rung
            assert [one.snapshot() for one in twin] == [one.snapshot() for one in whole]
    assert whole[0].count
    assert whole[1].count


def test_objects_with_text_are_named_by_their_values():
    rng, drift = np.random.default_rng(0), Drift(columns=True)
    for step in range(400):
        sky = rng.choice(["sun", "rain"], p=[0.9, 0.1] if step < 300 else [0.2, 0.8])
        drift.update({"heat": float(rng.normal()), "sky": str(sky)})
    assert "column 'sky' ('rain' in ." in drift.verdict().details
    (picture,) = drift.snapshot()["columns"]
    assert picture["name"] == "sky"
    assert {bar["to"] for bar in picture["bars"]} == {"sun", "rain"}
    with pytest.raises(TypeError, match="a number in column 0"):
        drift.update({"heat": "hot", "sky": "sun"})
    drift.update({"sky": "sun", "heat": 1.0})  # names have no order
    with pytest.raises(ValueError, match="columns"):
        drift.update({"sky": "sun", "cold": 1.0})


def test_of_more_than_a_hundred_columns_none_is_named():
    drift = ColumnDrift(0.1)
    for x in np.vstack([np.zeros((50, 101)), np.ones((50, 101))]):
        assert drift.update(x) == ()
    assert drift.words == ""


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("labels", ("the classes come in other shares ('yes' .",)),
        ("objects", ("objects of class 'yes' look different, or their labels mean something else",)),
        ("columns", ("column 'b' (middle",)),
    ],
)
def test_the_verdict_of_a_run_says_what_has_changed(change, words, tmp_path):
    """The same after a kill, and from its journal; the shares of the level are those of one monitor more."""
    rng = np.random.default_rng(1)

    def examples():
        for step in range(700):
            late = step >= 350
            y = int(rng.random() < (0.75 if late and change == "labels" else 0.25))
            x = rng.normal((4 * y, 0))
            x[0] -= 8 * y * (late and change == "objects")
            x[1] += 4 * (late and change == "columns")
            yield step, x, ["no", "yes"][y]

    def online(path):
        panel = venn.Panel(sets=venn.Conformal(venn.LeastSquaresSVM(venn.RBF(0.5), 1.0, ["no", "yes"])))
        objects, examples = Drift(AmongAll(5), first=10, columns=("a", "b")), ClassDrift(["no", "yes"], first=10)
        return venn.Online(panel, together(panel, panel.classes, objects=objects, examples=examples), path)

    path = tmp_path / "run.db"
    events = list(examples())
    for part in (events[:400], events[400:480]):
        with online(path) as run:
            for id, x, y in part:
                run.ask(x, id)
                run.answer(id, y)
            monitors, verdict = run.monitors, run.verdict()
    assert [monitors[name].level for name in ("sets", "objects", "classes")] == [0.005, 0.0025, 0.0025]
    for text in words:
        assert text in verdict.details
    with venn.online.Watch(path) as watch:
        assert watch.verdict() == verdict
        report = render(FollowedRun(watch), "title", "data")
        assert ('aria-label="no: ' in report) == (change == "labels")
        if change != "columns":
            (kind,) = [one["words"] for one in watch.snapshot("classes")["monitor"]["kinds"]]
            assert kind.startswith(words)
            assert f"<p><b>{escape(kind)}</b>, since about answer" in report
        named = "b" if change == "columns" else "a"  # the column that the classes differ in
        assert f"<p><b>column &#x27;{named}&#x27; (" in report


def test_the_card_of_changes_shows_the_floor_the_kinds_and_some_columns_and_counts_the_others():
    def seen(**monitor):
        return {"told": None, "monitor": monitor}

    columns = [{"words": f"'c{j}'", "since": "about 7", "bars": []} for j in range(9)]
    kinds = [{"words": "the classes", "since": "about 5 (4 to 6)", "bars": [{"to": "no", "before": 0.1, "after": 0.4}]}]
    floor = {"step": 9, "below": True, "sentence": "below the <floor>", "predictor": ""}
    drifts = {"objects": seen(columns=columns), "classes": seen(kinds=kinds)}
    shown = changes(SimpleNamespace(drifts=drifts | {"floor": seen(floor=floor)}, names=("a",), verdict=None))
    assert "<p class=alarm>below the &lt;floor&gt;</p>" in shown
    assert "<b>the classes</b>, since about answer 5 (4 to 6)" in shown
    assert "<b>column &#x27;c4&#x27;</b>, since about question 7" in shown
    assert "<b>column &#x27;c5&#x27;</b>" not in shown
    assert "And 4 more: column &#x27;c5&#x27;; " in shown
    assert changes(SimpleNamespace(drifts={}, snapshots={}, names=(), verdict=None)) == ""


def test_the_worst_verdict_says_what_the_labels_do_not_tell():
    quiet = ClassDrift(["no", "yes"])
    rng, monitor = np.random.default_rng(0), venn.Monitor(["no", "yes"])
    for _ in range(300):
        monitor.update(venn.prediction.Forecast(np.array([0.2, 0.8]), ("no", "yes")), "no")
    assert "do not tell whether" in worst({"one": monitor.verdict(), "classes": quiet.verdict()}).details
    assert "do not tell whether" not in worst({"one": monitor.verdict()}).details
    fine = venn.Monitor(["no", "yes"])
    drift = ClassDrift(["no", "yes"])
    for step in range(600):
        y = "yes" if rng.random() < (0.3 if step < 300 else 0.7) else "no"
        drift.update([0.0], y)
        fine.update(venn.prediction.Forecast(np.eye(2)[int(y == "yes")] * 0.98 + 0.01, ("no", "yes")), y)
    found = worst({"one": fine.verdict(), "classes": drift.verdict()})
    assert found.predictor == "classes"
    assert found.details.endswith("their labels keep the promise")


def test_classes_are_ranked_by_exact_p_values_only():
    """Large p-values are bet on, too; those of `AgainstFirst` are only not too small."""
    with pytest.raises(
        ValueError, match=r"ranking must be one of exact p-values, such as AmongAll\(\), got AgainstFirst"
    ):
        ClassDrift(["no", "yes"], venn.monitors.AgainstFirst(20))


# ------------------------------------------------------------------------------ what rang, and how long it lasts


def test_labels_and_objects_ring_apart_last_so_long_and_the_first_change_counts():
    drift = ClassDrift(["no", "yes"], AmongAll(2), level=0.6)
    rng = np.random.default_rng(0)
    for step in range(300):
        drift.update(rng.normal(size=1), "yes" if rng.random() < (0.1 if step < 150 else 0.8) else "no")
    assert [kind[:32] for kind in drift.kinds] == ["the classes come in other shares"]
    early, late = (venn.monitors.ChangePoint(step, step, step) for step in (20, 50))

    def at(n, last, changes):
        one = ClassDrift(["no", "yes"], AmongAll(2), level=0.6)
        cases = [
            Case(when, when, change, "classes", "", "", part=part)
            for when, change, part in zip(last, changes, PARTS, strict=True) if change is not None
        ]  # fmt: skip
        one.restore(drift.state | {"counts": np.array([n, 0]), "cases": cases})
        return one

    for n, lasts in ((1000, True), (1001, False)):  # what is over is seen at the next step
        one = at(n, [1, 0], [early, None])
        one.pass_by()
        assert bool(one.kinds) == lasts
    for pair in ([early, late], [late, early]):
        assert at(300, [60, 60], pair).verdict().since == 20
    # The share was .5; of 100 since, two deviations are .1: .61 has plainly moved, .59 has not.
    change, latest = venn.monitors.ChangePoint(901, 901, 901), deque([0] * 39 + [1] * 61)
    for moved, told in ((latest, " ('yes' .50 to .61)"), (deque([0] * 41 + [1] * 59), "")):
        parts = {"latest": moved, "before": np.array([0.5, 0.5])}
        one = at(1000, [1000, 0], [change, None])
        one.restore(one.state | parts)
        assert one.kinds == (f"the classes come in other shares{told}",)
    # Of four classes, two at most are told that have moved most; one that never came before has moved far.
    one, four = ClassDrift(["a", "b", "c", "d"]), np.repeat([0, 1, 2, 3], [20, 34, 26, 20])
    parts = {"counts": np.array([1000, 0, 0, 0]), "cases": [Case(1000, 1000, change, "classes", "", "", part="labels")]}
    one.restore(one.state | parts | {"latest": deque(four.tolist()), "before": np.array([0.4, 0.3, 0.3, 0.0])})
    assert one.kinds == ("the classes come in other shares ('d' .00 to .20, 'a' .40 to .20)",)


def test_what_rings_within_classes_names_none_as_long_as_each_may_be_as_before():
    drift, rng = ClassDrift(list("abcdefgh"), AmongAll(2)), np.random.default_rng(0)
    alarms = []
    for step in range(270):
        alarms += drift.update(rng.normal(2.5 * (step >= 200), size=1), drift.classes[rng.integers(8)])
    assert {alarm.about for alarm in alarms} == {"objects within classes"}
    assert drift.verdict().kind == "objects of some class look different, or their labels mean something else"
    for latest in ([8], [-1], [0.0]):
        with pytest.raises(ValueError, match="latest must be an integer"):
            drift.restore(drift.state | {"latest": deque(latest)})


def test_a_spread_that_has_changed_is_no_middle_that_has():
    before = np.linspace(9.0, 11.0, 101)
    assert column_drift.difference(before, 10 + 3 * (before - 10), None).startswith("middle half 9.5 to 10.5, now")


def test_of_a_column_that_is_nearly_constant_the_value_is_told_that_comes_more_often():
    before, after = np.repeat([5.0, 1.0], [90, 10]), np.repeat([5.0, 1.0], [40, 10])
    assert column_drift.difference(before, after, None) == "1 in .20, .10 before"
    texts = (before == 1).astype(float), (after == 1).astype(float)
    assert column_drift.difference(*texts, ["five", "one"]) == "'one' in .20, .10 before"


@pytest.mark.parametrize("x", [5, None, {1, 2}, np.array([[1.0, "a"]], object)])
def test_what_is_no_object_is_named(x):
    drift = Drift(columns=True)
    with pytest.raises((TypeError, ValueError), match="x must"):
        drift.update(x)
    assert drift.n == 0


def test_a_column_that_begins_with_gaps_is_of_what_comes_first():
    nan = np.nan
    rows = [[nan, nan], [nan, nan], [3.0, nan], [1.0, 2.0], [nan, 5.0], [2.0, 2.0]]
    lists, arrays = ColumnDrift(0.01), ColumnDrift(0.01)
    for row in rows:
        lists.update([None if one != one else one for one in row])
        arrays.update(np.array(row))
        assert lists.p_values.tolist() == arrays.p_values.tolist()
    words = ColumnDrift(0.01, ["age", "city"])
    for city in (nan, None, "Oslo", nan, "Rome"):
        words.update({"age": 31.0, "city": city})
    assert words.texts == [None, ["Oslo", "Rome"]]
    for wrong in ({"age": 31.0, "city": 2.0}, {"age": "x", "city": "Rome"}):
        with pytest.raises(TypeError, match="x must have"):
            words.update(wrong)
    again = ColumnDrift(0.01, ["age", "city"])
    again.restore(words.state)
    assert again.texts == words.texts
