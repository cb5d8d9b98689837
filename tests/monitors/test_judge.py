"""A judge beside labels by lot: the mean of what a floor gets is that of the loss, whatever it says."""

import os

import numpy as np
import pytest
from naive import floor as naive

import venn
from venn.monitors.floor import Floor, FloorWatch
from venn.online.lot import JUDGED, Lot
from venn.prediction import Forecast

CLASSES = ("no", "yes")


class SaysYes(venn.predictors.Predictor):
    """Says .9 for "yes"."""

    classes = CLASSES

    def predict_one(self, x):
        return Forecast(np.array([0.1, 0.9]), CLASSES)


def run(journal=None, judge=None, chance=0.3):
    model = SaysYes() if journal is None else venn.TransductiveVenn(venn.LeastSquaresSVM(venn.RBF(0.5), 1.0, CLASSES))
    return venn.Online(model, FloorWatch(0.8), journal, labels=Lot(chance, seed=2), judge=judge)


@pytest.mark.parametrize("chance", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("guess", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("loss", [0.0, 0.25, 1.0])
def test_the_mean_over_the_draw_is_the_loss_whatever_the_judge_says(chance, guess, loss):
    each = []
    for told in (loss, None):
        watch = FloorWatch(Floor(0.8, chance=chance, judged=True))
        watch.update(told, guess, chance)
        each.append(float(watch.trace.latest(1)[0]))
    assert chance * each[0] + (1 - chance) * each[1] == pytest.approx(loss, abs=1e-12)


def test_the_floor_gets_what_the_judge_says_in_a_run():
    calls = []

    def judge(x, prediction):
        assert prediction.label == "yes"
        calls.append(float(x[0]))
        return float(x[0])

    online, rng, zs = run(judge=judge, chance=0.7), np.random.default_rng(1), []
    for number in range(40):
        x, wrong = rng.random(1), bool(rng.random() < 0.3)
        wanted = online.ask(x, number).wanted
        if wanted:
            online.answer(number, CLASSES[1 - wrong])
        zs.append(naive.by_lot(float(wrong), float(x[0]), 0.7, wanted))
    assert online.monitors["floor"].trace.latest(40) == pytest.approx(zs, abs=1e-12)
    assert len(calls) == 40


@pytest.mark.parametrize(
    "form", [lambda p: [p, 1 - p], lambda p: {"yes": 1 - p, "no": p}, lambda p: np.array([p, 1 - p])]
)
def test_probabilities_of_the_label_are_the_expected_loss(form):
    one, other = run(judge=lambda x, said: form(x[0])), run(judge=lambda x, said: x[0])
    for number in range(30):
        for online in (one, other):
            if online.ask([number / 30], number).wanted:
                online.answer(number, "yes")
    traces = [online.monitors["floor"].trace.latest(30) for online in (one, other)]
    assert traces[0] == pytest.approx(traces[1], abs=1e-12)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a Unix")
def test_it_is_called_once_for_a_question_also_after_a_kill(tmp_path):
    calls = tmp_path / "calls"

    def judge(x, said):
        with calls.open("a") as file:
            file.write(f"{x[0]:g}\n")
        return (x[0] % 7) / 10

    def part(name, stop):
        online = run(venn.online.Journal(tmp_path / name, every=9), judge)
        for number in range(stop):
            if online.journal.found(number) is None:
                wanted = online.ask([number], number).wanted
                if wanted and number % 5:
                    online.answer(number, CLASSES[number % 3 == 0])
        with pytest.raises(ValueError, match="id must be a new one"):
            online.ask([0.0], 0)
        return online

    for stop in (5, 20, 23):
        child = os.fork()
        if not child:
            try:
                part("a.db", stop)
            finally:
                os._exit(0)
        os.waitpid(child, 0)
    one = part("a.db", 40)
    assert calls.read_text().split() == [str(number) for number in range(40)]
    assert one.journal.position(f"{JUDGED}{1:015d}") == 0.0
    other = part("b.db", 40)
    watches = [online.monitors["floor"] for online in (one, other)]
    assert watches[0].trace.latest(40).tolist() == watches[1].trace.latest(40).tolist()
    one.close()
    other.close()
    with pytest.raises(venn.online.JournalError, match="judge"):
        run(tmp_path / "a.db")


def test_what_a_judge_may_not_be_or_say_is_refused():
    for bad in (2, "x", [0.5], [0.5, 0.6], {"no": 1.0}, None):
        online = run(judge=lambda x, said, bad=bad: bad)
        with pytest.raises((TypeError, ValueError), match="judge must"):
            online.ask([0.0], 1)
        assert online.asked == 0
    for call, words in (
        (lambda: run(judge=1), "judge must be a function"),
        (lambda: run(judge=len, chance=1), "judge must be given with labels by lot"),
        (lambda: venn.Online(SaysYes(), judge=len), "judge must be given with labels by lot"),
        (lambda: venn.Online(SaysYes(), judge=len, labels=Lot(0.5)), "judge must be given with a floor"),
    ):
        with pytest.raises((TypeError, ValueError), match=words):
            call()
