"""What comes in at every public door alike: numbers that no float holds, names with two meanings, copies."""

import copy

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import venn
from venn.online.checkpoint import pack

CLASSES = ("a", "b")


def fitted():
    return LogisticRegression().fit(np.array([[0.0], [1.0], [0.2], [0.9]]), np.array(["a", "b", "a", "b"]))


def scorer():
    return venn.FrozenScorer(fitted())


def machine():
    return venn.OneVsAllSVM(venn.RBF(1.0), C=1, classes=CLASSES)


def number_machine():
    return venn.KernelRidge(venn.RBF(1.0), C=1)


MODELS = {
    "hinge": machine, "least squares": lambda: venn.LeastSquaresSVM(venn.RBF(1.0), C=1, classes=CLASSES),
    "ridge": number_machine,
    "window": lambda: venn.SlidingWindow(venn.LeastSquaresSVM(venn.RBF(1.0), C=1, classes=CLASSES), 5),
    "venn": lambda: venn.TransductiveVenn(machine(), venn.Argmax()),
    "abers": lambda: venn.TransductiveVennAbers(machine()), "conformal": lambda: venn.Conformal(machine()),
    "distribution": lambda: venn.ConformalDistribution(number_machine()),
    "inductive venn-abers": lambda: venn.InductiveVennAbers(scorer()),
    "inductive conformal": lambda: venn.InductiveConformal(scorer()),
    "panel": lambda: venn.Panel(one=venn.TransductiveVennAbers(machine())),
    "forecaster": lambda: venn.Forecaster(CLASSES), "forecaster of numbers": lambda: venn.Forecaster(float),
    "forecaster with a scorer": lambda: venn.Forecaster(scorer=fitted()),
}  # fmt: skip
NUMBERS = ("ridge", "distribution", "forecaster of numbers")
EVERY = pytest.mark.parametrize("name", MODELS)


def label(name):
    return 1.5 if name in NUMBERS else "a"


@EVERY
@pytest.mark.parametrize("value", [10**400, -(10**5000)], ids=["digits", "more digits than Python shows"])
def test_an_integer_that_no_float_holds_is_refused_by_its_feature(name, value):
    """A forecaster, and `Online`, gave an OverflowError; a machine said that it was no sequence of numbers."""
    model = MODELS[name]()
    model.learn_one([0.5, 1.0] if "scorer" not in name and "inductive" not in name else [0.5], label(name))
    x = [value] if "scorer" in name or "inductive" in name else [0, value]
    asks = [getattr(model, call) for call in ("predict_one", "scores", "hypotheses") if hasattr(model, call)]
    assert asks
    for ask in (*asks, lambda x: model.learn_one(x, label(name))):
        with pytest.raises(ValueError, match=rf"x must be finite, got an integer of \d+ bits at feature {len(x) - 1}"):
            ask(x)


@pytest.mark.parametrize("kind", ["forecaster", "forecaster of numbers", "panel"])
def test_a_question_of_such_a_number_is_refused_too(kind):
    online = venn.Online(MODELS[kind]())
    with pytest.raises(ValueError, match="got an integer of 1329 bits at feature 0"):
        online.ask([10**400])
    assert not online.pending


@pytest.mark.parametrize("name", ["forecast", "intervals", "sets", "more"])
def test_no_class_has_the_name_of_a_predictor(name):
    """`outlook["forecast"]` was the predictor's, `outlook["rain"]` a probability."""
    beside = {"more": venn.Conformal(venn.LeastSquaresSVM(venn.RBF(1.0), C=1, classes=["rain", name]))}
    with pytest.raises(ValueError, match=f"classes must have other names than the predictors .*, got '{name}'"):
        venn.Forecaster(["rain", name], beside=beside)


def test_a_scorers_classes_have_other_names_too():
    model = LogisticRegression().fit([[0.0], [1.0]], ["rain", "sets"])
    with pytest.raises(ValueError, match="got 'sets'"):
        venn.Forecaster(scorer=model)


@EVERY
def test_what_a_copy_learns_the_first_one_does_not(name):
    """A copy of a panel or forecaster shared its predictors and monitors: both had learned half of it."""
    first, x = MODELS[name](), [0.5]
    other = copy.copy(first)
    before = pack(first)
    other.learn_one(x, label(name))
    assert pack(first) == before
    first.learn_one(x, label(name))
    assert pack(first) == pack(other)
