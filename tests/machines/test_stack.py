"""The stack and its parts: scores left out, shares, odds, what is shared, saved, refused; validity across trainings."""

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import stats
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

import venn
from venn._compiled.mixture import sum_of
from venn.machines import Bank, Mixture, MultiscaleLaplacian, NotConverged, Stack, stack, trees
from venn.machines.stack import Fit, Learners, fitted_pool, kernel_rows, odds, ridge
from venn.machines.trees import FlatTrees
from venn.online import checkpoint
from venn.predictors import Refits, ScorerForecast, Switch
from venn.schedules import Prefix

BACK = {"pickle": lambda m: pickle.loads(pickle.dumps(m)), "file": lambda m: checkpoint.unpack(checkpoint.pack(m))}


def examples(n, c=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) * [1.0, 1e5, 1e-3]
    y = (X[:, 0] * X[:, 1] > 0).astype(int) + (rng.random(n) < 0.2) * (c > 2)
    return X, y


def all_heard(learners):
    """Return the same learners as they were fitted, none of whom is left out."""
    return Learners.made_of(learners.parameters | {"powers": np.ones(3)})


def test_scores_of_kernel_machines_left_out_are_those_of_refits():
    X, y = examples(25)
    columns = np.ascontiguousarray(X.T / [[1.0], [1e5], [1e-3]])
    gram, targets = kernel_rows(columns, columns.T), np.where(y[:, None] == np.arange(3), 1.0, -1.0)
    coefficients, bases, left_out = ridge(gram, targets, 0.5)
    np.testing.assert_allclose(coefficients.sum(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(gram @ coefficients + bases + 0.5 * coefficients, targets, atol=1e-9)
    for i in range(25):
        others = np.arange(25) != i
        a, b, _ = ridge(gram[np.ix_(others, others)], targets[others], 0.5)
        np.testing.assert_allclose(left_out[i], gram[i, others] @ a + b, atol=1e-8)
    assert (ridge(gram[:1, :1], targets[:1], 0.5)[2] == 0).all()  # nobody is left to say anything


def test_odds_are_those_of_normalised_probabilities():
    total = np.random.default_rng(0).normal(size=(5, 4)) * 3
    shares = np.exp(total) / np.exp(total).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(odds(total), np.log(shares / (1 - shares)), atol=1e-12)
    two = odds(total[:, :2])
    np.testing.assert_array_equal(two[:, 0], -two[:, 1])
    assert np.isfinite(odds(np.array([[0.0, -5000.0]]))).all()


def test_a_row_has_the_same_scores_in_a_block_as_alone_and_copies_share_what_is_fitted():
    X, y = examples(90)
    stack = Stack([0, 1, 2], landmarks=50)
    assert (stack.scores(X[0]) == 0).all()
    one, other = stack.fresh(), stack.fresh()
    one.fit_rows(X, y)
    other.fit_rows(X, y)
    assert one.fit is other.fit
    assert stack.learned == 0
    assert one.learned == 90
    assert one.fit.columns.shape == (3, 50)
    block = one.score_rows(X)
    assert all(np.array_equal(block[i], one.scores(X[i])) for i in range(90))
    assert (block.argmax(axis=1) == y).mean() > 0.8
    np.testing.assert_array_equal(one.score_rows(venn.machines.sparse.clean_sparse("X", sp.csr_array(X), None)), block)
    other.fit_rows(X[:60], y[:60])
    assert one.fit is not other.fit
    for back in BACK.values():
        again = back(one)
        np.testing.assert_array_equal(again.score_rows(X), block)
        assert repr(again) == repr(one)


def test_one_class_only_and_classes_that_are_missing():
    X, y = examples(40)
    stack = Stack([0, 1, 2, 3])
    stack.fit_rows(X, np.zeros(40, int))
    assert (stack.score_rows(X).argmax(axis=1) == 0).all()
    stack.fit_rows(X, y)
    assert (stack.score_rows(X)[:, 3] < stack.score_rows(X)[:, :3].max(axis=1)).all()
    said = all_heard(Learners.fitted(X, y, 4)).answers(X)
    np.testing.assert_allclose(said.sum(axis=2), 1)
    assert (said[:, :, 3] == 0).all()


def test_learners_are_scikit_learns_on_the_scale_of_the_examples():
    X, y = examples(80, c=2)
    learners = all_heard(Learners.fitted(X, y, 2))
    linear = LogisticRegression(max_iter=300).fit(learners.place(X), y)
    np.testing.assert_allclose(learners.answers(X)[2], linear.predict_proba(learners.place(X)), atol=1e-12)
    np.testing.assert_array_equal(Learners.fitted(X[::-1], y[::-1], 2).answers(X)[2].shape, (80, 2))


def test_a_stack_is_a_product_of_powers_fitted_to_what_its_parts_say_of_examples_not_seen(monkeypatch):
    """By definition, but for the ridge and the pool, which have tests of their own; the last landmark is example 40."""
    monkeypatch.setattr(stack, "TREES", 20)
    monkeypatch.setattr(stack, "LEAVES", 20)
    monkeypatch.setattr(stack, "MANY", 40)
    X, y = examples(60)
    fit, part, others = Fit.of(X, y, 3, 40), np.arange(0, 40, 3), np.setdiff1d(np.arange(60), np.arange(0, 40, 3))
    Z = fit.learners.place(X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some examples are in no tree's rest
        forest = RandomForestClassifier(30, oob_score=True, random_state=0).fit(Z, y)
    place = all_heard(Learners.fitted(X[others], y[others], 3)).place
    extra = ExtraTreesClassifier(30, random_state=0).fit(place(X[others]), y[others]).predict_proba(place(X[part]))
    said = np.concatenate([(forest.oob_decision_function_[None, part] + extra) / 2,
                           all_heard(Learners.fitted(X[others], y[others], 3)).answers(X[part])[1:]])  # fmt: skip
    both = (forest, ExtraTreesClassifier(30, random_state=0).fit(Z, y))
    np.testing.assert_allclose(all_heard(fit.learners).answers(X)[0], np.mean([m.predict_proba(Z) for m in both], 0))
    heard = fit.learners.powers > 0
    assert heard[0]
    assert not heard[2]  # a product of columns is nothing for a regression
    far = np.abs(Z[:, None] - Z[:40]).sum(axis=2) / 3
    K = 0.94 * np.mean([np.exp(-w * far) for w in (0.25, 1, 4)], axis=0) + 0.06 * Z @ Z[:40].T / 3
    machines = [ridge(K[:40], np.where(y[:40, None] == np.arange(3), 1.0, -1.0), 1 / C) for C in (0.3, 3, 30)]

    def logs(probabilities, scores):
        return np.array([*np.log(0.9999 * probabilities + 1e-4 / 3), *scores]).swapaxes(0, 1)

    assert (fit.learners.powers[:2] != 1).all()
    to_power = fit.learners.powers[:, None, None]
    said = (0.9999 * said + 1e-4 / 3) ** to_power
    said /= said.sum(axis=2, keepdims=True)
    np.testing.assert_allclose(said[~heard], 1 / 3)
    tried = logs(said, [left_out[part] for _, _, left_out in machines])
    powers, biases = fitted_pool(tried, y[part], np.array([0.3, 0.3, 0.1, 0.0, 1.0, 0.0]), 1.0)
    powers[:3] *= heard
    whole = (0.9999 * all_heard(fit.learners).answers(X) + 1e-4 / 3) ** to_power
    each = logs(whole / whole.sum(axis=2, keepdims=True), [K @ a + b for a, b, _ in machines])
    np.testing.assert_allclose(fit.answers(X), odds(biases + np.tensordot(each, powers, (1, 0))), atol=1e-6)


def test_a_class_of_few_examples_is_not_boosted_and_has_what_the_forest_says(monkeypatch):
    monkeypatch.setattr(stack, "LEAVES", 20)
    X, y = examples(90, c=2)
    y[[7, 40, 41]] = 2
    learners = all_heard(Learners.fitted(X, y, 4))
    said, Z, common = learners.answers(X), learners.place(X), y < 2
    boosted = HistGradientBoostingClassifier(max_iter=20, random_state=0).fit(Z[common], y[common])
    np.testing.assert_array_equal(said[1, :, 2:], said[0, :, 2:])
    np.testing.assert_allclose(said[1, :, :2], boosted.predict_proba(Z) * (1 - said[0, :, 2:3]))
    np.testing.assert_allclose(said.sum(axis=2), 1)
    assert said[1, 7, 2] > 0.1  # it has learned what the class looks like


def many_classes(c):
    """Return examples of c classes, the last of which comes three times, and learners of them with powers."""
    rng = np.random.default_rng(c)
    X, y = rng.normal(size=(40 * c, 4)), np.arange(40 * c) % (c - 1)
    y[[5, 6, 7]] = c - 1
    X[:, 0] += y
    powers = np.array([1.3, 0.6, 0.0])
    return X, Learners.made_of(Learners.fitted(X, y, c + 1).parameters | {"powers": powers})


def test_a_block_says_of_rare_classes_beside_many_what_rows_say_alone():
    X, learners = many_classes(12)
    assert len(learners.often) == 11
    alone = np.concatenate([learners.answers(row[None]) for row in X], axis=1)
    np.testing.assert_array_equal(learners.answers(X), alone)


@pytest.mark.parametrize("name", ["forest", "boosted"])
def test_trees_of_other_classes_are_refused(name):
    (X, y), (_, other) = examples(60, 3), examples(60, 2)
    trees = getattr(Learners.fitted(X, other, 2), name)
    mixed = Learners.made_of(Learners.fitted(X, y, 3).parameters | {name: trees})
    with pytest.raises(ValueError, match="forest, extra and boosted must be of 3 classes, got others"):
        mixed.answers(X[:1])


@pytest.mark.parametrize("c", [3, 10, 20])
def test_parts_are_put_together_as_numpy_does(c):
    X, learners = many_classes(c)
    Z = learners.place(X)
    scores = Z @ learners.coefficients[:, :-1].T + learners.coefficients[:, -1]
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    plain = all_heard(learners).answers(X)
    np.testing.assert_allclose(plain[2], learners.of_all(shares), rtol=1e-12)
    np.testing.assert_array_equal(plain[0], learners.of_all(learners.forest.proba(Z)))
    logs = learners.powers[:, None, None] * stack.logarithms(plain)
    powered = np.exp(logs - logs.max(axis=2, keepdims=True))
    powered /= powered.sum(axis=2, keepdims=True)
    said = learners.answers(X)
    np.testing.assert_allclose(said[:2], powered[:2], rtol=1e-13)
    assert np.isnan(said[2]).all()
    for row in shares:  # its order is numpy's
        assert sum_of(row) == row.sum()


def test_where_trees_cannot_be_read_scikit_learn_is_asked_and_one_warning_says_so(monkeypatch):
    """Learners say the same, in blocks, alone, and from files; also of classes before the first that came."""
    monkeypatch.setattr(stack, "LEAVES", 20)
    monkeypatch.setattr(stack, "MANY", 40)
    monkeypatch.setattr(trees, "_warned", False)
    X, y = examples(60)
    read = all_heard(Learners.fitted(X, y + 1, 4))
    monkeypatch.setattr(FlatTrees, "of", lambda estimator: None)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        asked = all_heard(Learners.fitted(X, y + 1, 4))
        others = [back(asked) for back in BACK.values()]
    assert ["keeps its trees otherwise" in str(one.message) for one in told] == [True]
    np.testing.assert_allclose(asked.answers(X), read.answers(X), atol=1e-12)
    for one in (asked, *others):
        np.testing.assert_array_equal(one.answers(X)[:, 5], asked.answers(X[5:6])[:, 0])


def spoiled(monkeypatch):
    """Let boosted trees be sure of the second class, whatever they are asked."""
    right = FlatTrees.of

    def wrong(estimator):
        found = right(estimator)
        return FlatTrees.made_of(found.parameters | {"start": np.array([40.0])}) if found.link == "logistic" else found

    monkeypatch.setattr(stack, "LEAVES", 20)
    monkeypatch.setattr(FlatTrees, "of", wrong)


def test_a_part_that_says_less_than_frequencies_is_left_out_and_the_log_names_it(monkeypatch, caplog):
    X, y = examples(90, c=2)
    refits, boosted = Refits([0, 1], first=90), Stack([0, 1])
    with monkeypatch.context() as patch, caplog.at_level("INFO", "venn"):
        spoiled(patch)
        for x, label in zip(X, y.tolist(), strict=True):
            refits.learn_one(x, label)
        boosted.fit_rows(X, y)
    goes = "fitted to 90 examples goes without boosted trees: how often each class came says more"
    assert caplog.messages == [f"an expert of the forecast {goes}", f"a stack {goes}"]
    assert np.isnan(refits.predict_one(X[0])).any(axis=1).tolist() == [False, True, False]
    assert boosted.fit.powers[0] > 0
    assert boosted.fit.powers[1] == 0
    assert (boosted.score_rows(X).argmax(axis=1) == y).mean() > 0.8
    for back in BACK.values():
        np.testing.assert_array_equal(back(refits).predict_one(X[0]), refits.predict_one(X[0]))


@pytest.mark.parametrize(("least", "seen"), [(stack.RARE, {0, 1}), (0, {0, 1, 2})])
def test_no_power_of_a_stack_is_fitted_to_a_class_that_hardly_ever_comes(monkeypatch, least, seen):
    told = []
    best, pooled = stack.best_power, stack.fitted_pool
    monkeypatch.setattr(stack, "best_power", lambda *given: told.append(given[1]) or best(*given))
    monkeypatch.setattr(stack, "fitted_pool", lambda *given: told.append(given[1]) or pooled(*given))
    monkeypatch.setattr(stack, "TREES", 20)
    monkeypatch.setattr(stack, "LEAVES", 20)
    monkeypatch.setattr(stack, "RARE", least)
    X, y = examples(330, c=2)
    y[[3, 100]] = 2
    Fit.of(X, y, 3, 400)
    assert [set(codes.tolist()) for codes in told] == [seen] * 4
    y[:4] = 2  # there are enough of them
    told.clear()
    Fit.of(X, y, 3, 400)
    assert [set(codes.tolist()) for codes in told] == [{0, 1, 2}] * 4


@pytest.mark.parametrize("how", BACK)
def test_refits_go_on_to_the_last_bit(how):
    X, y = examples(75)
    model, kept = Refits([0, 1, 2], first=30, growth=2.0, last=60), Refits([0, 1, 2], first=30, growth=2.0, last=60)
    for i, (x, label) in enumerate(zip(X, y.tolist(), strict=True)):
        if i in (0, 29, 45, 70):
            kept = BACK[how](kept)
        if i in (10, 30, 59, 74):
            np.testing.assert_array_equal(model.predict_one(x), kept.predict_one(x))
            assert np.isnan(model.predict_one(x)).all() == (i < 30)
        model.learn_one(x, label)
        kept.learn_one(x, label)
    np.testing.assert_array_equal(model.predict_many(X[:5])[:, 2], model.predict_one(X[2]))
    assert model.state["history"] is None
    by_hand = Learners.fitted(X[:60], y[:60], 3)
    np.testing.assert_array_equal(model.predict_one(X[3]), by_hand.answers(X[3:4])[:, 0])


def test_a_scorers_own_say():
    X, y = examples(60, c=2)
    scorer = GaussianNB().fit(X[:30], y[:30])
    abers = venn.InductiveVennAbers(venn.FrozenScorer(scorer, method="predict_proba"))
    own = ScorerForecast(abers)
    np.testing.assert_allclose(own.predict_one(X[40])[0], scorer.predict_proba(X[40:41])[0])
    np.testing.assert_array_equal(own.predict_many(X[40:42])[0, 0], own.predict_one(X[40])[0])
    late = ScorerForecast(venn.InductiveVennAbers(Stack([0, 1]), schedule=Prefix(0.7, first=40)))
    assert np.isnan(late.predict_one(X[0])).all()
    late.predictor.learn_many(X, y.tolist())
    assert late.predict_one(X[0]).sum() == pytest.approx(1)
    assert late.n == 60
    machine = Mixture(Bank(MultiscaleLaplacian(), [0, 1], scale=10))
    both = Switch(venn.TransductiveVennAbers(machine), late.predictor.fresh())
    own = ScorerForecast(both)
    assert np.isnan(own.predict_one(X[0])).all()
    for i in range(41):
        if i == 39:
            scores = machine.scores(X[50])
            np.testing.assert_allclose(own.predict_one(X[50])[0], scores / scores.sum())
            np.testing.assert_array_equal(own.predict_many(X[50:52])[:, 0], own.predict_one(X[50]))
        both.learn_one(X[i], int(y[i]))
    np.testing.assert_array_equal(own.predict_one(X[50]), ScorerForecast(both.late).predict_one(X[50]))
    for wrong in (venn.InductiveVennAbers(venn.LeastSquaresSVM(venn.Linear(), 1.0, [0, 1])), 3):
        with pytest.raises(TypeError, match="predictor must be an inductive one with a scorer of probabilities"):
            ScorerForecast(wrong)


def test_what_cannot_be_fitted_is_named_and_the_stream_goes_on(monkeypatch):
    X, y = examples(60, c=2)
    model = venn.InductiveVennAbers(Stack([0, 1]), schedule=Prefix(0.7, first=40, last=80))

    def fail(*given):
        raise ValueError("no")

    with monkeypatch.context() as patched:
        patched.setattr(Fit, "of", fail)
        with pytest.raises(NotConverged, match="the stack must be fitted to 28 examples: no"):
            model.learn_many(X[:40], y[:40].tolist())
    assert model.n == 40
    assert np.array_equal(model.predict_one(X[0]).pairs, [[0, 1], [0, 1]])
    model.learn_many(X[40:], y[40:].tolist())
    with pytest.raises(ValueError, match="classes must hold at least 2"):
        Stack([0])
    with pytest.raises(ValueError, match="landmarks must be an integer >= 1"):
        Stack([0, 1], landmarks=0)


@pytest.mark.parametrize(("name", "value"), [("learned", 0), ("features", 2), ("fit", None), ("fit", 3)])
def test_a_damaged_stack_is_refused(name, value):
    X, y = examples(40, c=2)
    stack = Stack([0, 1])
    stack.fit_rows(X, y)
    with pytest.raises(ValueError, match="must"):
        Stack([0, 1]).restore(stack.state | {name: value})
    with pytest.raises(ValueError, match="must"):
        Fit.made_of(stack.fit.parameters | {"powers": np.zeros(2)})
    for name, wrong in (("present", [0, 2]), ("often", [2])):
        with pytest.raises(ValueError, match=f"{name} must be integers from 0 to 1"):
            Learners.made_of(stack.fit.learners.parameters | {name: np.array(wrong)})


# Validity ------------------------------------------------------------------------------------------------------------


def noisy(n, seed):
    """Return examples of which a quarter of the labels are wrong: what was learned by heart does not hold."""
    X, y = examples(n, c=2, seed=seed)
    return X, np.where(np.random.default_rng(seed).random(n) < 0.25, 1 - y, y)


def test_sets_err_as_often_as_they_say_in_each_period_between_trainings():
    missed, n = 0, 0
    for seed in range(4):
        X, y = noisy(150, seed)
        model = venn.InductiveConformal(Stack([0, 1]), schedule=Prefix(0.5, first=40, last=80), seed=seed)
        model.learn_many(X[:40], y[:40].tolist())
        for part in (slice(40, 80), slice(80, 150)):
            p_values = model.replay_many(X[part], y[part].tolist()).p_values
            missed += int((p_values[np.arange(len(p_values)), y[part]] <= 0.2).sum())
            n += len(p_values)
    assert stats.binomtest(missed, n, 0.2).pvalue > 0.001


def test_a_stack_that_has_seen_the_calibration_set_errs_more_often():
    X, y = noisy(100, 0)
    stack = Stack([0, 1])
    stack.fit_rows(X[:60], y[:60])
    own = stack.score_rows(X)[np.arange(100), y]
    ranks = (own[:60, None] <= own[60:]).mean(axis=0)
    assert stats.binomtest(int((ranks <= 0.2).sum()), 40, 0.2, alternative="greater").pvalue < 0.001


def test_a_value_that_overflows_counts_as_one_far_out():
    X, y = examples(60, 2)
    X[:, 1] *= 1e-200
    model = venn.InductiveVennAbers(Stack([0, 1]), schedule=Prefix(0.7, first=40, last=40))
    model.learn_many(X, y)
    block = np.array([X[0], X[1], [0.5, 1e200, 0.0], [0.5, 1e99, 0.0]])
    said = model.predict_many(block)
    for one in (said[2], model.predict_one(block[2])):
        assert np.array_equal(one.bounds, said[3].bounds)
