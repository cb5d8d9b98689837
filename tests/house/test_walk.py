"""The table of what a step goes through counts calls, files and moves."""

import venn
from tools.walk import Walk, walked


def test_a_walk_counts_our_calls_only():
    assert walked(lambda: sorted([3, 1])) == Walk(0, 0, 0)
    machine = venn.LeastSquaresSVM(venn.RBF(0.5), 1.0, ["no", "yes"])
    model = venn.Conformal(machine)
    model.learn_one([0.0], "no")
    first, again = walked(lambda: model.predict_one([1.0])), walked(lambda: model.predict_one([1.0]))
    assert 1 < first.files <= first.moves + 1 <= first.calls
    assert again.calls < first.calls, "the machine remembers its answer"
