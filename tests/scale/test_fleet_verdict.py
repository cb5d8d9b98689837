"""Which keys are named: by the definition, never more wrong ones than promised, and by a broken twin too many."""

import numpy as np
import pytest
from conftest import refused
from scipy.stats import binomtest

import venn
from tests import naive
from tests.naive import fleet as by_definition
from tests.naive import kinds
from venn._compiled.martingales import bet_each, no_bets
from venn.monitors.key_evidence import KeyEvidence, e_bh, holm, log_adjusted
from venn.online import checkpoint
from venn.smoothing import Smoothing

assert naive
RATE, KEYS, STEPS, RUNS = 0.1, 50, 100, 500
BOLD = 0.1  # a bold bet wins so much, or loses all


def test_the_price_of_the_largest_capital_is_fair():
    """The integral of A(m) / m^2 from 1 on is 1, and the logarithm is that of the formula, also near 1."""
    m = np.exp(np.linspace(0, 400, 400_001))
    t = np.log(m)
    values = np.exp(log_adjusted(t) - t)  # A(m) / m^2 dm = A(m) / m dt
    assert np.trapezoid(values, t) + 1 / 400 == pytest.approx(1, abs=1e-3)
    for x in (1.0, 1 + 1e-9, 1.0009, 1.0011, 1.5, 20.0, 1e9):
        tolerance = 1e-6 if x < 1.01 else 1e-12
        expected = by_definition.adjusted(x) if x == 1 or x > 1.0005 else 0.5 + np.log(x) / 6
        assert np.exp(log_adjusted(np.log(x))) == pytest.approx(expected, rel=tolerance)
    assert np.isfinite(log_adjusted([0.0, 1e-300, 1e6])).all()


@pytest.mark.parametrize("seed", range(20))
def test_names_are_those_of_the_definition(seed):
    """Values full of ties; fewer keys than are counted; none."""
    rng = np.random.default_rng(seed)
    values = rng.choice([0.5, 1.0, 8.0, 20.0, 40.0, 100.0, 400.0], size=rng.integers(1, 12))
    assert set(e_bh(np.log(values), 0.2).tolist()) == kinds.e_bh(values.tolist(), 0.2)
    assert set(holm(np.log(values), 0.2).tolist()) == kinds.holm((1 / values).tolist(), 0.2)
    padded = [*values.tolist(), *[0.0] * 5]
    assert set(e_bh(np.log(values), 0.2, len(padded)).tolist()) == kinds.e_bh(padded, 0.2)
    for names in (e_bh, holm):
        assert names([], 0.2).size == 0


@pytest.mark.parametrize("seed", range(3))
def test_evidence_is_that_of_the_definition(seed):
    """After every step, of few classes and many ties; it is saved and goes on to the bit."""
    rng = np.random.default_rng(seed)
    evidence, ties = KeyEvidence(("a", "b", "c"), seed=seed), Smoothing(seed)
    model = venn.Conformal(venn.LeastSquaresSVM(venn.RBF(1.0), 10, ("a", "b", "c")))
    fit, labels, shares = [], [], []
    for step in range(80):
        x, y = rng.integers(3, size=2).astype(float), "abc"[rng.integers(2) if step < 30 else 2]
        said = model.predict_one(x)
        evidence.update(said, y)
        labels.append(y)
        fit.append(said.p_values["abc".index(y)])
        shares.append(kinds.of_label(labels, ties.at(2 * step + 1)))
        model.learn_one(x, y)
        standing = evidence.standing
        assert np.exp(standing.log_e) == pytest.approx(by_definition.e_value([fit, shares]), rel=1e-9)
        assert np.exp(-standing.log_p) == pytest.approx(by_definition.p_value([fit, shares]), rel=1e-9)
        if step == 40:
            evidence = checkpoint.unpack(checkpoint.pack(evidence))
    assert evidence.standing.kind
    assert 20 <= evidence.standing.since <= 50


def test_where_a_model_trains_each_period_has_its_share():
    """The e-value is .9 of that of the first period and .1 / (r (r - 1)) of period r; it never falls, and is saved."""
    evidence, ties, labels = KeyEvidence(("a", "b"), seed=1, trains=True), Smoothing(1), []
    periods, before, rng = [[]], -1.0, np.random.default_rng(0)
    for step in range(90):
        labels.append("ab"[rng.integers(2) if step < 20 else 1])
        evidence.update(None, labels[-1])
        periods[-1].append(kinds.of_label(labels, ties.at(2 * step + 1)))
        shares = [0.9, *(0.1 / (r * (r - 1)) for r in range(2, len(periods) + 1))]
        each = [share * by_definition.e_value([ps]) for share, ps in zip(shares, periods, strict=True)]
        assert np.exp(evidence.standing.log_e) == pytest.approx(sum(each), rel=1e-9)
        assert evidence.standing.log_e >= before
        before = evidence.standing.log_e
        if step in (29, 59):
            evidence.begin_anew()
            periods.append([])
            evidence = checkpoint.unpack(checkpoint.pack(evidence))
    with pytest.raises(ValueError, match="trains must be True"):
        KeyEvidence(("a", "b")).begin_anew()


def test_a_forecaster_bets_anew_when_it_has_trained():
    fleet = venn.Fleet(lambda key: venn.Forecaster(("no", "yes"), first=0, transductive=20, last=20))
    rng, memories = np.random.default_rng(0), []
    for x in rng.normal(size=(24, 2)):
        fleet.learn_one("a", x, "yes" if x[0] > 0 else "no")
        memories.append(fleet._run("a")[1].evidence.memory[0, 0])
    assert memories == [*range(1, 20), 0, *range(1, 5)]


def paths(streams, seed):
    """Return the (streams, STEPS) logarithms of capitals of independent and uniform p-values, by the fleet's bets."""
    ps, memory = np.random.default_rng(seed).random((STEPS, streams)), no_bets(streams)
    found = np.empty((streams, STEPS))
    for step in range(STEPS):
        bet_each(memory, ps[step])
        found[:, step] = memory[:, 1]
    return found


def bold_paths(streams, seed):
    """Return the same by bets that win a little, or lose all: there the chance to reach m is 1 / m, and no less."""
    ps = np.random.default_rng(seed).random((streams, STEPS))
    alive = np.cumprod(ps * (1 + BOLD) <= 1, axis=1)
    return np.where(alive, np.log1p(BOLD) * np.arange(1, STEPS + 1), -1e3)


def copied(pool, rng):
    """All keys are one stream."""
    return np.repeat(rng.integers(len(pool), size=1), KEYS)


def independent(pool, rng):
    """Each key is a stream of its own."""
    return rng.integers(len(pool), size=KEYS)


def opposed(pool, rng):
    """Keys that conspire: each has the law of any stream, but just so many win together as is worst for e-BH.

    In a run k keys are copies of a stream whose largest capital lies between K / (k r) and K / ((k - 1) r), all others
    are of those that stay below 1 / r. Each key takes part with the chance of such a stream: k has the probability
    q K / k, where q is that chance.
    """
    most = np.exp(np.maximum(pool.max(axis=1), 0.0))
    bins = np.floor(KEYS / RATE / most).astype(int) + 1  # k of each stream
    chances = np.array([(bins == k).mean() * KEYS / k for k in range(1, KEYS + 1)])
    left = 1 - chances.sum()
    assert left > 0
    keys = rng.choice(np.flatnonzero(bins > KEYS), size=KEYS)
    k = int(rng.choice(KEYS + 1, p=[left, *chances]))
    if k:
        keys[rng.permutation(KEYS)[:k]] = rng.choice(np.flatnonzero(bins == k))
    return keys


def ever_named(logs):
    """Return whether any key is ever named: names stay, so it is enough to look at the end."""
    return e_bh(log_adjusted(np.maximum(logs.max(axis=1), 0.0)), RATE).size > 0


def named_by_current(logs):
    """Return whether a broken twin ever names one, which puts current capitals in the place of A of the largest."""
    ordered = -np.sort(-logs, axis=0)
    return bool((ordered >= np.log(KEYS / RATE / np.arange(1, KEYS + 1))[:, None]).any())


@pytest.mark.parametrize("joined", [copied, independent, opposed])
@pytest.mark.parametrize("bets", [paths, bold_paths])
def test_wrong_names_are_as_rare_as_promised(joined, bets):
    """Where no key has changed every name is wrong: some are there with a probability of at most the rate."""
    pool, rng = bets(5_000 if bets is paths else 20_000, seed=0), np.random.default_rng(1)
    runs = [pool[joined(pool, rng)] for _ in range(RUNS)]
    wrong = sum(map(ever_named, runs))
    assert binomtest(wrong, RUNS, RATE, alternative="greater").pvalue > 0.01
    level = 0.05
    ever = sum(holm(np.maximum(logs.max(axis=1), 0.0), level).size > 0 for logs in runs)
    assert binomtest(ever, RUNS, level, alternative="greater").pvalue > 0.01
    if joined is opposed and bets is bold_paths:  # the broken twin
        broken = sum(map(named_by_current, runs))
        assert binomtest(broken, RUNS, RATE, alternative="greater").pvalue < 1e-4


def test_of_many_names_few_are_wrong_and_a_name_stays():
    """25 of 500 keys change at step 60, and 475 are copies of 20 streams: all are named, with few others."""
    rng, shares = np.random.default_rng(2), []
    for _ in range(4):
        ps = np.empty((210, 500))
        ps[:, 25:] = rng.random((210, 20))[:, rng.integers(20, size=475)]
        ps[:, :25] = rng.random((210, 25))
        ps[60:, :25] **= 3
        memory, before = no_bets(500), set()
        for step in range(210):
            bet_each(memory, ps[step])
            if step % 30 == 29:
                names = set(e_bh(log_adjusted(memory[:, 2]), RATE).tolist())
                assert before <= names
                before = names
        shares.append(sum(name >= 25 for name in names) / max(len(names), 1))
        assert sum(name < 25 for name in names) >= 24
    assert np.mean(shares) <= RATE


@pytest.mark.parametrize(("turn", "rows", "enough"), [(15, 40, False), (100, 200, True)])
def test_how_many_rows_a_change_must_have_to_be_named(turn, rows, enough):
    """Where 10 of 200 keys turn, who knows when and how wins too little within 25 rows; 100 are enough."""
    needed = next(t for t in np.arange(5, 20, 0.01) if log_adjusted([t])[0] - np.log(2) >= np.log(200 / 10 / RATE))
    assert 10.7 < needed < 10.9
    rng, best, kappa = np.random.default_rng(0), [], 0.4
    for _ in range(5):
        model, ps, evidence = (
            venn.Conformal(venn.LeastSquaresSVM(venn.Linear(), 1, (False, True))), [], KeyEvidence((False, True)),
        )  # fmt: skip
        for step, x in enumerate(rng.normal(size=(rows, 2))):
            said, y = model.predict_one(x), bool((x[0] > 0) != (step >= turn))
            ps.append(said.p_values[int(y)])
            evidence.update(said, y)
            model.learn_one(x, y)
        knowing = np.cumsum(np.log(kappa) + (kappa - 1) * np.log(ps[turn:])).max()
        best.append((knowing, evidence.memory[0, 2]))
    assert (np.min(best, axis=0) > needed).all() if enough else (np.max(best, axis=0) < needed).all()


test_bad_input_is_named = refused(None, [
    (lambda: e_bh([1.0], 0.0), ValueError, "rate must"),
    (lambda: holm([1.0], 2.0), ValueError, "level must"),
    (lambda: e_bh(["a"], 0.1), "logs must be numbers"),
    (lambda: e_bh([1.0, 2.0], 0.1, 1), ValueError, "among must be an integer >= 2"),
    (lambda: KeyEvidence(["a"]), ValueError, "classes must"),
    (lambda: KeyEvidence(["a", "b"]).update(None, "c"), ValueError, "y must be one of"),
])  # fmt: skip
