"""A theorem without probability: calibeating against adversaries, and what breaks them."""

import numpy as np
import pytest
from inductive_cases import AsGiven
from naive import calibeating as naive

import venn
from venn.predictors import calibeating
from venn.predictors.inductive import regret_bound, regret_of
from venn.taxonomies import Argmax, ScoreBins, TopTwo


def least_likely(proba, rng):
    return int(proba.argmin())


def second(proba, rng):
    """The second least likely: mixes classes in other shares."""
    return int(np.argsort(proba)[1])


def constant(proba, rng):
    return 0


def in_runs(proba, rng):
    """Stay with a label until it is believed, then leave it."""
    return int(np.where(proba > 0.6, -1, proba).argmax())


@pytest.mark.parametrize("adversary", [least_likely, second, constant, in_runs], ids=lambda one: one.__name__)
@pytest.mark.parametrize(("c", "taxonomy"), [(2, ScoreBins(3)), (2, Argmax()), (3, TopTwo()), (3, Argmax())], ids=str)
def test_calibeating_holds_at_every_step(adversary, c, taxonomy):
    rng = np.random.default_rng(9)
    model = venn.InductiveVenn(AsGiven(c), taxonomy)
    assert model.on_any_sequence == "calibeating"
    bins, ys, forecasts = [], [], []
    for step in range(250):
        x = rng.integers(-2, 3, c) / 2
        proba = model.predict_one(x).proba
        y = adversary(proba, rng)
        bins.append(int(taxonomy.categories(x[None])[0]))
        ys.append(y)
        forecasts.append(proba)
        model.learn_one(x, y)
        if step % 25 == 24 or step < 4:
            found = calibeating(model)
            log_loss, squares = naive.bins_losses(bins, ys, np.array(forecasts))
            assert abs(found.regret - log_loss) < 1e-9
            assert found.holds
            assert log_loss <= found.bound
            assert squares <= found.brier_bound
            assert (found.n, found.bins) == (step + 1, len(set(bins)))
    assert model.predict_one(x).guaranteed in ("predicted label", "realised row")  # the first word is untouched


@pytest.mark.parametrize(("c", "most"), [(2, 80), (3, 36), (4, 20), (6, 12), (10, 8)])
def test_the_bound_holds_for_all_counts(c, most):
    for n in range(1, most + 1):
        worst = max(regret_of(counts) for counts in naive.all_counts(n, c))
        assert worst <= regret_bound(n, c) + 1e-12, (n, c)
    large = regret_bound(10**6, c)
    even = np.full(c, 10**6 // c)
    assert regret_of(even) <= large <= regret_of(even) + 2 * c  # of the right order


def test_bins_that_move_with_the_labels_break_it():
    """The latest ten labels instead of all: against the constant best forecast it loses without end."""
    loss, ys, rng = 0.0, [], np.random.default_rng(10)
    for _ in range(2000):
        late = ys[-10:]
        p = (sum(late) + 0.5) / (len(late) + 1)
        y = int(rng.random() < 0.5)
        loss -= np.log(p if y else 1 - p)
        ys.append(y)
    share = np.mean(ys)
    best = -2000 * (share * np.log(share) + (1 - share) * np.log(1 - share))
    assert loss - best > 10 * regret_bound(2000, 2)


def test_it_is_claimed_only_where_it_holds():
    squares = venn.LeastSquaresSVM(venn.RBF(1.0), 1.0, (0, 1))
    shift = venn.shifts.PriorShift((0.5, 0.5), (0.9, 0.1))
    for model in (
        venn.InductiveVenn(squares),
        venn.InductiveVenn(AsGiven(2), venn.taxonomies.AdaptiveMarginBins()),
        venn.InductiveVenn(AsGiven(2), shift=shift),
    ):
        assert model.on_any_sequence == "nothing"
        with pytest.raises(ValueError, match="model must have a given scorer"):
            calibeating(model)
    with pytest.raises(ValueError, match="model must have"):
        calibeating(squares)
