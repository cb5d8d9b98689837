"""The ridge system against dense solves: real targets, examples that come and go, other ridges."""

import copy
import pickle

import numpy as np
import pytest
from naive import ridge as naive

import venn
from venn.machines import NotConverged
from venn.machines.ridge import RidgeSystem
from venn.machines.store import ObjectStore

GAMMA, OUTPUTS, LOW = 0.7, 3, 0.25


class Examples:
    """The examples of a system, and what a dense solve says of them."""

    def __init__(self):
        self.X, self.T, self.ridge = np.zeros((0, 2)), np.zeros((OUTPUTS, 0)), np.zeros(0)

    def with_(self, x, targets, ridge):
        new = Examples()
        new.X, new.ridge = np.vstack([self.X, x]), np.append(self.ridge, ridge)
        new.T = np.column_stack([self.T, targets])
        return new

    def remove(self, i):
        self.X, self.ridge = np.delete(self.X, i, axis=0), np.delete(self.ridge, i)
        self.T = np.delete(self.T, i, axis=1)

    def kernel(self, Z):
        return np.exp(-GAMMA * ((Z[:, None] - self.X[None]) ** 2).sum(-1))

    def training(self):
        return naive.training(self.kernel(self.X), self.ridge, self.T)

    def leave_one_out(self):
        return naive.leave_one_out(self.kernel(self.X), self.ridge, self.T)

    def scores(self, x):
        return naive.fitted(self.kernel(self.X), self.ridge, self.T, self.kernel(x[None]))[:, 0]


def close(a, b):
    return np.allclose(a, b, rtol=0, atol=1e-8)


def check_answer(system, examples, x, ridges):
    """Compare scores of all examples and a new one, whatever its target, with dense solves."""
    for new in system.border(x, ridges):
        low, high = np.empty((2, OUTPUTS, system.n + 5))
        test_scores = system.new_scores()
        assert close(test_scores, examples.scores(x))
        for leave_one_out in (False, True):
            system.fill(leave_one_out, new, test_scores, 1.5, low, high)
            for table, target in ((low, LOW), (high, LOW + 1.5)):
                supposed = examples.with_(x, np.full(OUTPUTS, target), new.ridge)
                truth = supposed.leave_one_out() if leave_one_out else supposed.training()
                assert close(table[:, : system.n + 1], truth)


@pytest.mark.parametrize("seed", range(3))
def test_examples_come_and_go_as_dense_solves_say(seed):
    rng = np.random.default_rng(seed)
    system, examples = RidgeSystem(ObjectStore(venn.RBF(GAMMA)), OUTPUTS, LOW), Examples()
    for step in range(90):
        x, targets = rng.normal(size=2).round(1), rng.normal(size=OUTPUTS) * 3
        ridges = rng.uniform(0.05, 2.0, 1 + step % 3)
        if step % 6 == 0:
            check_answer(system, examples, x, ridges)
        system.append(system.border(x, ridges)[-1], targets)
        examples = examples.with_(x, targets, ridges[-1])
        if step % 4 == 3:
            i = int(rng.integers(system.n))
            system.remove(i)
            examples.remove(i)
        if step % 5 == 0:
            assert close(system.training_scores(), examples.training())
            assert close(system.leave_one_out_scores(), examples.leave_one_out())
            assert close(system.scores_of(x), examples.scores(x))
            assert system.residual < 1e-9
        if step == 50:
            system = pickle.loads(pickle.dumps(system)) if seed else copy.deepcopy(system)
    while system.n:
        system.remove(0)
        examples.remove(0)
        if system.n > 1:
            assert close(system.leave_one_out_scores(), examples.leave_one_out())
    assert np.array_equal(system.scores_of(np.array([1.0, 2.0, 3.0])), np.zeros(OUTPUTS))


def test_what_cannot_be_solved_changes_nothing():
    rng = np.random.default_rng(0)
    system = RidgeSystem(ObjectStore(venn.RBF(GAMMA)), 1)
    for x, target in zip(rng.normal(size=(20, 2)), rng.normal(size=(20, 1)), strict=True):
        system.append(system.border(x, [0.1])[0], target)
    scores = system.leave_one_out_scores()
    with pytest.raises(NotConverged, match=r"residual must be at most 1e-07, got .* at example 20: C times its weight"):
        system.border(system.store.held(20)[:, 3].copy(), [-0.2])
    assert np.array_equal(system.leave_one_out_scores(), scores)
    assert system.residual < 1e-12
