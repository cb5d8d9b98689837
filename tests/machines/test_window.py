"""A window over any machine, its readers, and the predictor that starts it anew."""

import copy
import pickle

import numpy as np
import pytest
from centroids import NearestCentroid
from conftest import labels, learned, objects, public, refused
from naive.coins import coin
from scipy import stats

import venn
from venn.machines.window import SlidingWindow
from venn.online.checkpoint import pack
from venn.predictors.groups import by_group
from venn.predictors.restarting import SEEDS, Restarting
from venn.predictors.transductive import p_values

CLASSES = ("a", "b", "c")
MACHINES = {
    "squares": lambda: venn.LeastSquaresSVM(venn.RBF(0.5), 5.0, CLASSES),
    "hinge": lambda: venn.OneVsAllSVM(venn.RBF(0.5), 1.0, CLASSES),
    "centroid": lambda: NearestCentroid(CLASSES),
}
FORGETFUL = [name for name, make in MACHINES.items() if hasattr(make(), "unlearn_one")]
READERS = {  # these compare scores on a grid, or not at all
    "leave_one_out": lambda m: venn.TransductiveVenn(m), "argmax": lambda m: venn.TransductiveVenn(m, venn.Argmax()),
    "abers": lambda m: venn.TransductiveVennAbers(m), "conformal": lambda m: venn.Conformal(m, smoothed=False),
}  # fmt: skip
SCALERS = {  # equal scores that differ in their last bits may be mapped to anything: no ties for these
    "platt": lambda m: venn.ScoreCalibrator(m, venn.maps.Platt()),
    "isotonic": lambda m: venn.ScoreCalibrator(m, venn.maps.Isotonic(), venn.predictors.LeaveOneOutScores()),
    "binning": lambda m: venn.ScoreCalibrator(m, venn.maps.Binning(5)),
    "temperature": lambda m: venn.ScoreCalibrator(m, venn.maps.Temperature(), venn.predictors.LeaveOneOutScores()),
}


def stream(seed, n, kind="grid"):
    rng = np.random.default_rng(seed)
    X = objects(kind, rng, n)
    return X, np.array(CLASSES)[labels("noise", rng, X, 3)].tolist()


def spread(seed, n):
    """Return examples in general position, all classes in turn."""
    return objects("normal", np.random.default_rng(seed), n), [CLASSES[i % 3] for i in range(n)]


def squares(size, C=5.0):
    return SlidingWindow(venn.LeastSquaresSVM(venn.RBF(0.5), C, CLASSES), size)


def numbers(prediction):
    if isinstance(prediction, venn.Multiprobability):
        return prediction.probabilities
    if isinstance(prediction, venn.prediction.ClassIntervals):
        return prediction.pairs
    return prediction.p_values if isinstance(prediction, venn.PredictionSet) else prediction.proba


# The machine ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 2, 9])
@pytest.mark.parametrize("name", FORGETFUL)
def test_every_reader_sees_the_window_alone(name, size):
    """Windowed equals learned from nothing at every step, for the machine and for all who read it."""
    X, y = stream([len(name), size], 19)
    window = SlidingWindow(MACHINES[name](), size)
    panel = venn.Panel(**{reader: make(window) for reader, make in READERS.items()})
    for step in range(len(X)):
        first = max(0, step - size)
        alone = MACHINES[name]()
        others = venn.Panel(**{reader: make(alone) for reader, make in READERS.items()})
        learned(others, X[first:step], y[first:step])
        assert (window.n, window.forgotten) == (min(step, size), max(0, step - size))
        said, expected = panel.predict_one(X[step]), others.predict_one(X[step])
        for reader in READERS:
            assert np.allclose(numbers(said[reader]), numbers(expected[reader]), atol=1e-6), reader
        assert np.allclose(window.scores(X[step]), alone.scores(X[step]), atol=1e-7)
        assert np.allclose(
            window.hypotheses(X[step]).leave_one_out(1), alone.hypotheses(X[step]).leave_one_out(1), atol=1e-6
        )
        assert window.residual < 1e-6
        panel.learn_one(X[step], y[step])


@pytest.mark.parametrize("name", [name for name in FORGETFUL if name in ("squares", "hinge")])
def test_every_scaler_is_fitted_to_the_window_alone(name):
    X, y = spread(3, 30)
    window = SlidingWindow(MACHINES[name](), 9)
    panel = venn.Panel(**{reader: make(window) for reader, make in SCALERS.items()})
    for step in range(len(X)):
        alone = MACHINES[name]()
        others = venn.Panel(**{reader: make(alone) for reader, make in SCALERS.items()})
        learned(others, X[max(0, step - 9) : step], y[max(0, step - 9) : step])
        said, expected = panel.predict_one(X[step]), others.predict_one(X[step])
        for reader in SCALERS:
            assert np.allclose(said[reader].proba, expected[reader].proba, atol=1e-5), reader
            assert panel[reader].n == step
        panel.learn_one(X[step], y[step])


def test_until_it_is_full_it_is_the_machine_itself():
    X, y = stream(1, 30)
    for reader, make in (READERS | SCALERS).items():
        window = make(squares(30))
        alone = make(venn.LeastSquaresSVM(venn.RBF(0.5), 5.0, CLASSES))
        for x, label in zip(X, y, strict=True):
            assert np.array_equal(numbers(window.predict_one(x)), numbers(alone.predict_one(x))), reader
            window.learn_one(x, label)
            alone.learn_one(x, label)


def test_ties_are_broken_by_a_new_number_at_every_step():
    """The number of examples held stands still, so it cannot number the steps."""
    X, y = stream(2, 30, "few")
    model = venn.Conformal(squares(5), seed=3)
    for step in range(30):
        hypotheses = model.machine.hypotheses(X[step])
        expected = p_values(model.measure.rank(hypotheses), coin(3, step, X[step]))
        assert np.array_equal(model.predict_one(X[step]).p_values, expected)
        model.learn_one(X[step], y[step])


def test_balancing_tosses_a_coin_for_every_example():
    X, y = stream(5, 200)
    keep = (0.2, 0.5, 1.0)
    windowed = venn.predictors.Balanced(venn.TransductiveVenn(squares(4), venn.Argmax()), keep)
    whole = venn.predictors.Balanced(venn.TransductiveVenn(squares(200), venn.Argmax()), keep)
    for x, label in zip(X, y, strict=True):
        windowed.learn_one(x, label)
        whole.learn_one(x, label)
        assert (windowed.n, windowed.kept) == (whole.n, whole.kept)
    assert windowed.n == 200
    assert windowed.learner.machine.n == 4


def test_what_suits_the_machine_inside_suits_the_window():
    window = squares(5)
    assert repr(venn.Conformal(window)).startswith("Conformal(SlidingWindow(LeastSquaresSVM(")
    with pytest.raises(TypeError, match=r"machine must hold all that it learns.*got SlidingWindow"):
        venn.ScoreCalibrator(window, venn.maps.Platt(), venn.predictors.CrossFittedScores())
    assert window.exact_leave_one_out
    assert window.tuning is None


def test_inductive_predictors_train_windows():
    X, y = stream(6, 40)
    model = venn.InductiveVenn(squares(6), venn.taxonomies.TopTwo(), schedule=venn.schedules.PrefixRestart(first=10))
    alone = venn.InductiveVenn(squares(40), venn.taxonomies.TopTwo(), schedule=venn.schedules.PrefixRestart(first=10))
    learned(model, X[:15], y[:15])
    assert model.scorer.n == 6
    assert np.allclose(model.scorer.scores(X[0]), learned(squares(6), X[4:10], y[4:10]).scores(X[0]), atol=1e-9)
    assert learned(alone, X[:15], y[:15]).scorer.n == 10


# Restarts ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FORGETFUL)
@pytest.mark.parametrize("keep", [0, 1, 4, 7, 9])
def test_after_a_restart_the_latest_are_left(name, keep):
    X, y = stream(7, 20)
    window = learned(SlidingWindow(MACHINES[name](), 7), X, y)
    answer = window.hypotheses(X[0])
    window.restart(keep)
    left = min(keep, 7)
    assert (window.n, window.forgotten) == (left, 20 - left)
    alone = learned(MACHINES[name](), X[20 - left :], y[20 - left :])
    assert np.allclose(window.scores(X[3]), alone.scores(X[3]), atol=1e-7)
    if keep < 7:
        with pytest.raises(RuntimeError, match="out of date"):
            answer.leave_one_out(0)
    learned(window, X[:12], y[:12])
    assert np.allclose(window.scores(X[3]), learned(MACHINES[name](), X[5:12], y[5:12]).scores(X[3]), atol=1e-7)


@pytest.mark.parametrize("reader", SCALERS)
@pytest.mark.parametrize("keep", [0, 6])
def test_a_scaler_reads_what_a_restart_has_left(reader, keep):
    X, y = spread(8, 30)
    silent, curious = ([SCALERS[reader](window := squares(8)), window] for _ in range(2))
    for model, window in (silent, curious):
        learned(model, X[:20], y[:20])
        window.restart(keep)
    alone = learned(SCALERS[reader](squares(8)), X[20 - keep : 20], y[20 - keep : 20])
    assert np.allclose(curious[0].predict_one(X[1]).proba, alone.predict_one(X[1]).proba, atol=1e-9)
    for step in range(20, 30):  # asking between a restart and the next example leaves no trace
        for model, _ in (silent, curious):
            model.learn_one(X[step], y[step])
        assert np.array_equal(silent[0].predict_one(X[0]).proba, curious[0].predict_one(X[0]).proba)
        alone.learn_one(X[step], y[step])
        assert np.allclose(curious[0].predict_one(X[1]).proba, alone.predict_one(X[1]).proba, atol=1e-6)


# Weights, refusals, copies -------------------------------------------------------------------------------------------


def test_weights_pass_through():
    X, y = stream(9, 12)
    window = squares(5)
    for step in range(12):
        window.learn_one(X[step], y[step], 1.0 + step)
    alone = window.machine.fresh()
    for step in range(7, 12):
        alone.learn_one(X[step], y[step], 1.0 + step)
    assert np.allclose(window.bag.scores, alone.bag.scores, atol=1e-9)
    assert np.allclose(window.hypotheses(X[0], 2.5).scores(1), alone.hypotheses(X[0], 2.5).scores(1), atol=1e-9)
    before = window.bag.scores
    window.learn_one(X[0], y[0], weight=0)
    assert (window.n, window.forgotten) == (5, 7)
    assert np.array_equal(window.bag.scores, before)


def test_one_of_the_middle_can_be_forgotten():
    X, y = stream(10, 12)
    window = learned(squares(5), X, y)
    window.unlearn_one(2)
    alone = learned(window.machine.fresh(), X[[7, 8, 10, 11]], [y[7], y[8], y[10], y[11]])
    assert np.allclose(window.bag.scores, alone.bag.scores, atol=1e-9)
    assert (window.n, window.forgotten) == (4, 8)
    with pytest.raises(ValueError, match=r"i must be an integer .* got 4"):
        window.unlearn_one(4)
    assert (window.n, window.forgotten) == (4, 8)


class Whole:
    """A machine that cannot forget."""

    classes, n = CLASSES, 0

    def hypotheses(self, x): ...


test_what_is_no_window = refused(lambda machine, size: SlidingWindow(machine(), size), [
    (lambda: squares(3), 3, TypeError, "machine must be the machine itself, not a window on one, got "),
    (Whole, 3, TypeError, "machine must be one that can forget, with a method 'unlearn_one'"),
    (lambda: learned(MACHINES["squares"](), np.eye(3), CLASSES), 2, ValueError,
     "machine must have learned at most size = 2 examples, got one of 3"),
])  # fmt: skip


def test_bad_input_changes_nothing():
    X, y = stream(11, 9)
    window = learned(squares(5), X, y)
    before = window.bag.scores
    for bad in (-1, 1.0, True, None, "1"):
        with pytest.raises((TypeError, ValueError), match=f"keep must be an integer >= 0, got {bad!r}"):
            window.restart(bad)
    for x, label in ((X[0], "d"), ([np.nan, 0.0], "a"), ([0.0], "a")):  # a full window would forget one
        for call in (window.check, window.learn_one):
            with pytest.raises((TypeError, ValueError)):
                call(x, label)
    assert (window.n, window.forgotten) == (5, 4)
    assert np.array_equal(window.bag.scores, before)


class Reluctant(venn.LeastSquaresSVM):
    """A machine that sometimes cannot be solved without its oldest example."""

    reluctant = False

    def unlearn_one(self, i=0):
        if self.reluctant and i == 0:
            raise venn.machines.NotConverged("residual must be at most 1e-7, got 1")
        super().unlearn_one(i)


def test_where_the_oldest_cannot_go_the_new_one_does_not_come():
    X, y = stream(12, 20)
    machine = Reluctant(venn.RBF(0.5), 5.0, CLASSES)
    window = learned(SlidingWindow(machine, 6), X[:10], y[:10])
    model = venn.TransductiveVenn(window)
    before = window.bag.scores
    machine.reluctant = True
    for _ in range(3):
        with pytest.raises(venn.machines.NotConverged):
            model.learn_one(X[10], y[10])
        assert (window.n, window.forgotten) == (6, 4)
        assert np.array_equal(window.bag.scores, before)
    machine.reluctant = False
    model.learn_one(X[10], y[10])
    assert np.allclose(window.bag.scores, learned(squares(6), X[5:11], y[5:11]).bag.scores, atol=1e-9)


# Restarting ----------------------------------------------------------------------------------------------------------


def changing(seed, change, n):
    """Return objects, and labels that change places at `change`."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 1))
    y = np.where((X[:, 0] > 0) == (np.arange(n) < change), "yes", "no")
    return X, y.tolist()


def binary(size):
    return SlidingWindow(venn.LeastSquaresSVM(venn.RBF(1.0), 10, ["no", "yes"]), size)


def monitor(**options):
    return venn.Monitor(["no", "yes"], **options)


BASES = {
    "conformal": venn.Conformal, "venn": venn.TransductiveVenn, "abers": venn.TransductiveVennAbers,
    "platt": lambda m: venn.ScoreCalibrator(m, venn.maps.Platt()),
    "conformal within groups": lambda m: by_group(venn.Conformal(m), lambda x: bool(abs(x[0]) > 1)),
    "abers within groups": lambda m: by_group(venn.TransductiveVennAbers(m), lambda x: bool(abs(x[0]) > 1)),
}  # fmt: skip


@pytest.mark.parametrize("keep", [0, 10])
@pytest.mark.parametrize("name", BASES)
def test_it_restarts_as_the_loop_written_by_hand_would(name, keep):
    X, y = changing(0, 150, 260)
    model = Restarting(BASES[name](binary(120)), monitor(), keep, seed=4)
    window = binary(120)
    base, watch, restarts, since = BASES[name](window), monitor(seed=4), [], 0
    for step in range(260):
        expected = base.predict_one(X[step])
        said = model.predict_one(X[step])
        assert np.array_equal(numbers(said), numbers(expected))
        model.learn_one(X[step], y[step])
        base.learn_one(X[step], y[step])
        since += 1
        assert model.watching.n == (since if len(restarts) == len(model.restarts) else 0)
        if watch.update(expected, y[step]):
            restarts.append(step + 1)
            watch, since = monitor(seed=4 + SEEDS * len(restarts)), 0
            window.restart(keep)
        assert model.machine.n == window.n
    assert model.n == 260
    assert model.restarts == tuple(restarts)
    assert 150 < restarts[0] < 220
    assert all(rung for rung in model.alarms)
    assert len(model.alarms) == len(restarts)


def test_in_a_panel_the_others_find_the_window_restarted():
    X, y = changing(1, 100, 160)
    window = binary(300)
    panel = venn.Panel(
        platt=venn.ScoreCalibrator(window, venn.maps.Platt()),
        model=Restarting(venn.Conformal(window), monitor()),
        isotonic=venn.ScoreCalibrator(window, venn.maps.Isotonic()),
        mixed=venn.predictors.ExpertMixture([venn.ScoreCalibrator(window, venn.maps.Platt())]),
    )
    record = venn.replay(zip(X, y, strict=True), panel, progress=False)
    (step,) = panel["model"].restarts
    assert 100 < step < 140
    assert window.n == 160 - step
    assert len(record) == 160
    alone = learned(venn.ScoreCalibrator(binary(300), venn.maps.Platt()), X[step:], y[step:])
    assert np.allclose(panel["platt"].predict_one(X[0]).proba, alone.predict_one(X[0]).proba, atol=1e-6)
    assert np.allclose(panel.predict_one(X[0])["isotonic"].proba, learned(
        venn.ScoreCalibrator(binary(300), venn.maps.Isotonic()), X[step:], y[step:]
    ).predict_one(X[0]).proba, atol=1e-6)  # fmt: skip


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))], ids=["deepcopy", "pickle"])
def test_a_restarting_predictor_asks_without_trace_and_is_copied_whole(copied):
    X, y = changing(2, 60, 120)
    silent, curious = (Restarting(venn.Conformal(binary(100)), monitor(), 5) for _ in range(2))
    for step in range(120):
        if step == 50:
            silent = copied(silent)
        for x in (X[step // 2], X[step]):
            curious.predict_one(x)
        silent.learn_one(X[step], y[step])
        curious.learn_one(X[step], y[step])
    assert silent.restarts == curious.restarts != ()
    assert np.array_equal(silent.predict_one(X[0]).p_values, curious.predict_one(X[0]).p_values)
    assert pack(silent.monitor) == pack(curious.monitor)
    again = eval(repr(silent), public())
    assert repr(again) == repr(silent)
    assert (again.n, again.restarts, again.classes) == (0, (), ("no", "yes"))


def test_what_was_said_before_cannot_be_known_afterwards():
    X, y = changing(3, 60, 10)
    model = Restarting(venn.Conformal(binary(50)), monitor())
    learned(model, X[:3], y[:3])
    model.machine.learn_one(X[3], y[3])
    with pytest.raises(RuntimeError, match=r"commit needs what prepare\(x, y\) returned .* got none"):
        model.commit(X[3], y[3])
    assert model.watching.n == 3
    model.learn_one(X[6], y[6])
    assert (model.n, model.watching.n) == (5, 4)
    for x, label in ((X[0], "maybe"), ([np.inf], "yes"), ("x", "no")):
        with pytest.raises((TypeError, ValueError)):
            model.learn_one(x, label)
    assert (model.n, model.watching.n, model.machine.n) == (5, 4, 5)


test_what_cannot_restart = refused(None, [
    (lambda: Restarting(venn.TransductiveVenn(binary(9).machine), monitor()), TypeError,
     "predictor must read a machine that can restart, a SlidingWindow, got TransductiveVenn"),
    (lambda: Restarting(venn.InductiveVenn(binary(9)), monitor()), TypeError, "must read a machine that can"),
    (lambda: Restarting(venn.Conformal(binary(9)), monitor(), 10), ValueError, "at most the size .*, 9, got 10"),
])  # fmt: skip


# Validity ------------------------------------------------------------------------------------------------------------

LEVEL = 1e-4  # chance that a sound predictor fails one of these tests


class Selective(SlidingWindow):
    """A broken window: it forgets the example that fits worst, not the oldest."""

    def learn_one(self, x, y, weight=None):
        self.machine.learn_one(x, y)
        if self.machine.n > self.size:
            bag = self.machine.leave_one_out_bag
            own = bag.scores[bag.counts.argmax(axis=1), np.arange(self.machine.n)]
            self.machine.unlearn_one(int(own.argmin()))
            self.forgotten += 1


def last_p_values(window, streams=200, size=8, steps=20):
    """Return the p-value of the last true label in each of many streams."""
    ps = []
    for seed in range(streams):
        rng = np.random.default_rng([seed, 77])
        X = rng.normal(size=(steps, 1))
        y = np.where(X[:, 0] + rng.normal(size=steps) > 0, "yes", "no").tolist()
        model = venn.Conformal(window(venn.LeastSquaresSVM(venn.RBF(1.0), 1.0, ["no", "yes"]), size), seed=seed)
        learned(model, X[:-1], y[:-1])
        ps.append(model.predict_one(X[-1]).p_values[model.classes.index(y[-1])])
    return ps


def test_a_window_that_slid_gives_uniform_p_values():
    assert stats.kstest(last_p_values(SlidingWindow), "uniform").pvalue > LEVEL
    assert stats.kstest(last_p_values(Selective), "uniform").pvalue < LEVEL


def false_restarts(streams, broken=False):
    """Return the number of streams without a change in which a start rings, and in which the second one does too."""
    rung, again = 0, 0
    for seed in range(streams):
        rng = np.random.default_rng([seed, 78])
        X = rng.normal(size=(60, 1))
        y = np.where(X[:, 0] + (0 if broken else rng.normal(size=60)) > 0, "yes", "no")
        if broken:  # half of the labels change places: no longer exchangeable
            y[30:] = np.where(y[30:] == "yes", "no", "yes")
        watch = monitor(level=0.2, run_length=1e9)
        model = learned(Restarting(venn.Conformal(binary(60), seed=seed), watch, seed=seed), X, y.tolist())
        rung += len(model.restarts) > 0
        again += len(model.restarts) > 1
    return rung, again


def test_starts_ring_falsely_no_more_often_than_they_may():
    streams = 40
    rung, again = false_restarts(streams)
    assert stats.binom.sf(rung - 1, streams, 0.2) > LEVEL
    assert stats.binom.sf(again - 1, streams, 0.2**2) > LEVEL
    rung, _ = false_restarts(streams, broken=True)
    assert stats.binom.sf(rung - 1, streams, 0.2) < LEVEL
