"""A refused step changes nothing: a refusal is forced inside every call that may refuse, with one feature too."""

import numpy as np
import pytest

import venn
from venn.machines import Bank, KernelRidge, Member, Mixture, NotConverged
from venn.machines import hinge as hinge_module
from venn.saved import saved

SIZE = 12  # of windows
CLASSES = (0, 1)


@saved
class Failing(venn.Linear):
    """A kernel that gives nonsense after so many more rows, while it is told to."""

    left: float = np.inf

    def row(self, columns, n, x, out):
        super().row(columns, n, x, out)
        Failing.left -= 1
        if Failing.left < 0:
            out[:n] = -1e6 * np.cos(np.arange(n) + x[0])


def machine(C=1.0, scale=None):
    return venn.LeastSquaresSVM(Failing(), C, CLASSES, scale=scale)


def ridge(scale=None):
    return KernelRidge(Failing(), 1.0, scale=scale)


def bank(scale=None):
    return Bank([Failing(), venn.RBF(0.5)], CLASSES, (0.3, 3.0), scale=scale)


MACHINES = {
    "LeastSquaresSVM": machine, "KernelRidge": ridge, "Bank": bank, "Member": lambda: Member(bank(), 1),
    "Mixture": lambda: Mixture(bank()), "window on LeastSquaresSVM": lambda: venn.SlidingWindow(machine(), SIZE),
    "window on KernelRidge": lambda: venn.SlidingWindow(ridge(), SIZE),
    "window on Bank": lambda: venn.SlidingWindow(bank(), SIZE), "scaled": lambda: machine(scale=4),
    "scaled Bank": lambda: bank(scale=venn.Scale(4, teach=True)),
    "scaled KernelRidge": lambda: ridge(scale=venn.Scale(4, teach=True)),
    "window on a scaled one": lambda: venn.SlidingWindow(machine(scale=4), SIZE),
    "Member of a window": lambda: Member(venn.SlidingWindow(bank(), SIZE), 0),
}  # fmt: skip


def objects(d, n=24, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def teach(model, X, start, stop):
    for i in range(start, stop):
        model.learn_one(X[i], int(X[i, 0] > 0))


def all_of(model, x):
    """What can be read of a machine."""
    bags = [getattr(model, name).scores for name in ("bag", "leave_one_out_bag")]
    return np.concatenate([*(bag.ravel() for bag in bags), np.ravel(model.scores(x)), [model.n, model.learned]])


def calls(model, x):
    """Every call that may refuse, by name."""
    found = {"ask": lambda: model.hypotheses(x), "learn": lambda: model.learn_one(x, 1)}
    scale = getattr(model, "scale", None)
    if hasattr(model, "unlearn_one") and not (scale and scale.teach):
        found |= {f"unlearn {i}": lambda i=i: model.unlearn_one(i) for i in (0, model.n // 2, model.n - 1)}
    return found


@pytest.mark.parametrize("d", [1, 3])
@pytest.mark.parametrize("kind", MACHINES)
def test_a_refusal_at_any_moment_of_any_call_changes_nothing(kind, d, monkeypatch):
    X = objects(d)

    def made():
        model = MACHINES[kind]()
        teach(model, X, 0, 20)
        return model

    refused = 0
    for name in calls(made(), X[20]):
        model, twin = made(), made()
        before = all_of(model, X[21])
        for left in range(60):
            with monkeypatch.context() as patch:
                patch.setattr(Failing, "left", left)
                try:
                    calls(model, X[20])[name]()
                except (NotConverged, ValueError):
                    refused += 1
                else:
                    break
            assert all_of(model, X[21]) == pytest.approx(before, abs=1e-11), (name, left)
        else:
            raise AssertionError(f"{name} asks for more than 60 rows")
        calls(twin, X[20])[name]()
        assert all_of(model, X[21]) == pytest.approx(all_of(twin, X[21]), abs=1e-11), name
    assert refused


@pytest.mark.parametrize("d", [1, 3])
def test_a_refused_step_of_a_hinge_machine_changes_nothing(d, monkeypatch):
    X, refused = objects(d), []
    for name in ("ask", "learn"):
        model = venn.OneVsAllSVM(venn.RBF(1.0), 10.0, CLASSES)
        teach(model, X, 0, 20)
        before = all_of(model, X[21])
        try:
            with monkeypatch.context() as patch:
                patch.setattr(hinge_module, "tolerance_of", lambda C, scale: -1.0)
                calls(model, X[20])[name]()
        except NotConverged:
            refused.append(name)
            assert all_of(model, X[21]) == pytest.approx(before, abs=1e-8), name
            assert model.residual <= model.tolerance
    assert refused == ["ask", "learn"]
