"""Saved and loaded, everything goes on to the last bit; what cannot be saved is refused, with its place."""

import inspect
import io
import math
import subprocess
import sys
import zipfile
from collections import deque

import numpy as np
import pytest
from centroids import NearestCentroid
from conftest import public
from hypothesis import given, settings
from hypothesis import strategies as st
from test_contract import CLASSES, MACHINES, PARAMETERS, PREDICTIONS, PREDICTORS, numbers, small_stream

import venn
from venn.machines.window import SlidingWindow
from venn.online.checkpoint import Generator, pack, unpack
from venn.predictors.restarting import Restarting
from venn.saved import KINDS
from venn.smoothing import Smoothing

#: When to save, around room for 64 and 128; whether nothing waits for its label then, the next object, or another.
MOMENTS = {0: 0, 1: 1, 6: 0, 63: 1, 64: 0, 65: 2, 128: 1}
AFTER = 3
#: Public classes that learn and have another way to be kept, or none.
WITHOUT = {
    "Predictor": "a base: what stands on it is saved", "BaseMachine": "a base: what stands on it is saved",
    "Record": "has save and load of its own", "Online": "lives in its journal",
    "Watches": "a protocol: what keeps it is saved",
    **dict.fromkeys(
        ("Outlook", "Outlooks", "NumberOutlook", "NumberOutlooks"),
        "predictions by name, a dict: its predictions can be saved",
    ),
    **dict.fromkeys(
        ("RiverClassifier", "RiverRegressor", "RiverForecaster"),
        "is pickled as river's estimators are; its predictor can be saved by itself",
    ),
    "RegressorFromRiver": "holds a model of river's, whose content is not ours to know",
    "FromRiver": "holds a model of river's, whose content is not ours to know",
}  # fmt: skip


def squares():
    return MACHINES["LeastSquaresSVM"]()


def centroid():
    return NearestCentroid(CLASSES)


def weighted():
    return venn.OneVsAllSVM(venn.RBF(0.5), 1.0, CLASSES, class_weights=[1, 2, 1])


def window(name):
    return lambda: SlidingWindow(MACHINES[name](), 30)


KEPT = [
    name
    for name in MACHINES
    if name not in ("SlidingWindow", "scaled bank") and hasattr(MACHINES[name](), "unlearn_one")
]
WINDOWS = {f"{name} in a window": window(name) for name in KEPT}
MORE = {
    "Restarting": lambda: Restarting(venn.Conformal(SlidingWindow(squares(), 40)), venn.Monitor(CLASSES), keep=9),
    "weighted": lambda: venn.TransductiveVenn(weighted(), venn.LeaveOneOut(venn.Argmax())),
    "windowed scaler": lambda: venn.ScoreCalibrator(
        SlidingWindow(squares(), 30), venn.maps.Isotonic(), venn.predictors.LeaveOneOutScores()
    ),
    "held-out scaler": lambda: venn.ScoreCalibrator(
        squares(), venn.maps.BetaCalibration(), venn.predictors.HeldOutScores()
    ),
    "cross-fitted scaler": lambda: venn.ScoreCalibrator(
        centroid(), venn.maps.Binning(), venn.predictors.CrossFittedScores()
    ),
    "scaler of all classes": lambda: venn.ScoreCalibrator(NearestCentroid(CLASSES), venn.maps.Temperature()),
    "bag of scores": lambda: venn.InductiveVenn(
        NearestCentroid(CLASSES), venn.taxonomies.AdaptiveMarginBins(), schedule=venn.schedules.Prefix()
    ),
    "weighted ranks": lambda: venn.InductiveConformal(
        centroid(), shift=venn.shifts.PriorShift((0.5, 0.3, 0.2), (0.2, 0.3, 0.5))
    ),
}
SUBJECTS = MACHINES | WINDOWS | {name: make for name, make in PREDICTORS.items() if name != "Restarting"} | MORE


def said(subject, x):
    """Return all numbers that a machine or predictor has to say of x, as bytes."""
    if hasattr(subject, "predict_one"):
        return numbers(subject.predict_one(x)).tobytes()
    answer = subject.hypotheses(x)
    bags = (subject.bag.scores, subject.leave_one_out_bag.scores)
    every = (answer.scores(0), answer.leave_one_out(2), subject.scores(x), *bags)
    return b"".join(np.ascontiguousarray(part).tobytes() for part in every)


@pytest.mark.parametrize("name", SUBJECTS)
def test_it_goes_on_to_the_last_bit(name):
    X, y = small_stream(3, 140)
    subject, twins = SUBJECTS[name](), []
    last = 128 if name in MACHINES else 65  # what reads a machine or is made of one has no room of its own
    for n in range(last + AFTER):
        if n in MOMENTS:
            if MOMENTS[n]:
                for one in (subject, *(twin for _, twin in twins)):
                    said(one, X[n + MOMENTS[n] - 1])
            data = pack(subject)
            twins.append((n, unpack(data)))
            assert pack(twins[-1][1]) == data
            assert repr(twins[-1][1]) == repr(subject)
        twins = [(start, twin) for start, twin in twins if n < start + AFTER]
        for one in (subject, *(twin for _, twin in twins)):
            one.learn_one(X[n], y[n])
        for _, twin in twins:
            assert said(twin, X[n + 1]) == said(subject, X[n + 1])
        for start, twin in twins:
            if n == start + AFTER - 1:  # what had differed on the way would still differ
                assert pack(twin) == pack(subject)


@pytest.mark.parametrize("name", [*PARAMETERS, *PREDICTIONS])
def test_values_come_back(name):
    made = {**PARAMETERS, **PREDICTIONS}[name]()
    for thing in made if isinstance(made, list) else [made]:
        if not known(name):
            assert name == "CrossVennAbers"  # of an estimator, which is not saved
            continue
        again = unpack(pack(thing))
        assert vars(again).keys() == vars(thing).keys()
        assert again == thing if name in PARAMETERS else pack(again) == pack(thing)


def known(name):
    return name in KINDS


def test_a_process_that_has_imported_nothing_yet_loads_what_another_saved(tmp_path):
    """The first needs the least; the class of the last has no public name."""
    subjects = [PREDICTORS["InductiveConformal"](), PREDICTORS["Restarting"](), PREDICTORS["Panel"]()]
    subjects.append(venn.maps.Platt().fit([0.0, 1.0, 2.0], [0, 1, 1]))
    for number, subject in enumerate(subjects):
        venn.save(tmp_path / str(number), subject)
    code = "import sys, venn\nfor path in sys.argv[1:]: print(repr(venn.load(path)))"
    paths = [str(tmp_path / str(number)) for number in range(len(subjects))]
    done = subprocess.run([sys.executable, "-c", code, *paths], capture_output=True, text=True)
    assert done.stdout.splitlines() == list(map(repr, subjects)), done.stderr


def test_every_public_class_that_learns_is_covered():
    classes = {name: thing for name, thing in public().items() if inspect.isclass(thing)}
    learning = [
        name
        for name, thing in classes.items()
        if any(callable(getattr(thing, method, None)) for method in ("learn_one", "update", "insert"))
        or callable(getattr(thing, "calibrate", None))
    ]
    assert {"OneVsAllSVM", "InductiveVenn", "Monitor", "VennAbers", "Ville"} <= set(learning)
    missing = [name for name in learning if not known(name) and name not in WITHOUT]
    assert not missing, f"{missing} need @saved, or a reason in WITHOUT"


# Calibrators, generators, plain data -----------------------------------------------------------------------------


def test_calibrators_go_on():
    rng = np.random.default_rng(0)
    scores, codes = rng.integers(0, 6, (40, 3)) / 5, rng.integers(0, 3, 40)
    subject = venn.maps.VennAbers()
    for score, code in zip(scores[:, 0], codes == 1, strict=True):
        twin = unpack(pack(subject))
        assert [twin.query(s) for s in scores[:, 1]] == [subject.query(s) for s in scores[:, 1]]
        assert pack(twin) == pack(subject)
        subject.insert(score, code)


@pytest.mark.parametrize("bits", Generator.KINDS)
def test_generators_go_on(bits):
    rng = np.random.Generator(getattr(np.random, bits)(7))
    rng.random(5)
    rng.integers(0, 9, 3, np.int32)  # leaves half of a word
    twin = unpack(pack({"rng": rng}))["rng"]
    assert pack(rng) == pack(twin)
    assert np.array_equal(twin.integers(0, 99, 50, np.int32), rng.integers(0, 99, 50, np.int32))
    assert np.array_equal(twin.normal(size=700), rng.normal(size=700))


def test_what_is_shared_is_shared_again():
    panel = PREDICTORS["Panel"]()
    X, y = small_stream(1, 9)
    for x, label in zip(X, y, strict=True):
        panel.learn_one(x, label)
    array, rng, smoothing = np.arange(3.0), np.random.default_rng(1), Smoothing(3)
    state = {"panel": panel, "machine": panel["venn"].machine, "rngs": (rng, [rng]), "arrays": [array, array],
             "same": {"smoothing": smoothing}, "smoothing": smoothing}  # fmt: skip
    again = unpack(pack(state))
    assert again["panel"]["venn"].machine is again["panel"]["platt"].machine is again["machine"]
    assert again["rngs"][0] is again["rngs"][1][0]
    assert again["arrays"][0] is again["arrays"][1] is not array
    assert again["smoothing"] is again["same"]["smoothing"]
    again["panel"].learn_one(X[0], "a")
    assert (again["machine"].n, panel["venn"].machine.n) == (10, 9)


def test_arrays_that_are_equal_are_written_once_and_stay_apart():
    """To the bit, and of one type, shape and order; however many they are, a small file makes no huge memory."""
    rows, nothing = np.random.default_rng(0).normal(size=(50, 4)), np.array([0.0, np.nan])
    others = [rows.reshape(4, 50), np.asfortranarray(rows), rows.view(np.int64), -nothing, nothing]
    twice = rows.copy()
    thing = [*others, twice, twice, *(rows.copy() for _ in range(20))]
    again = unpack(pack(thing))
    for one, other in zip(thing, again, strict=True):
        assert (one.dtype, one.shape, one.flags.fnc) == (other.dtype, other.shape, other.flags.fnc)
        assert one.tobytes() == other.tobytes()
    assert len({id(one) for one in again}) == len(again) - 1
    assert again[5] is again[6]
    assert not any(np.shares_memory(again[5], one) for one in again[7:])
    assert pack(again) == pack(thing)
    members = len(zipfile.ZipFile(io.BytesIO(pack(thing))).namelist())
    assert members == len(others) + 3 + 1  # three for 21 equal ones, and the header


HASHABLE = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(), st.binary(max_size=9)
)
PLAIN = st.recursive(
    HASHABLE | st.just(math.inf),
    lambda inside: st.one_of(
        st.lists(inside), st.lists(inside).map(tuple), st.dictionaries(HASHABLE, inside), st.lists(inside).map(deque),
        st.frozensets(HASHABLE), st.sets(HASHABLE),
    ),
    max_leaves=12,
)  # fmt: skip


def alike(first, second):
    """Equal, and of equal types throughout."""
    if type(first) is not type(second):
        return False
    if isinstance(first, dict):
        return list(map(repr, first)) == list(map(repr, second)) and all(
            alike(first[key], second[key]) for key in first
        )
    if isinstance(first, list | tuple | deque):
        return len(first) == len(second) and all(map(alike, first, second))
    return repr(first) == repr(second) or (isinstance(first, set | frozenset) and first == second)


@given(PLAIN)
@settings(max_examples=60, deadline=None)
def test_plain_data_comes_back(thing):
    data = pack(thing)
    assert alike(unpack(data), thing)
    assert pack(unpack(data)) == data


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6.0).reshape(2, 3), np.asfortranarray(np.arange(6).reshape(2, 3)), np.zeros((0, 3)),
        np.zeros((3, 0)).T,
        np.array(3.5), np.array(["a", "ü"]), np.array([b"x", b"yz"]), np.array([1j]), np.array([True, False]),
        np.array(["2020-01-01"], "datetime64[D]"), np.arange(4, dtype=">i4"), np.arange(9.0).reshape(3, 3)[::2, ::2],
        np.array([math.nan, -0.0, math.inf]), np.arange(24, dtype=np.int8).reshape(2, 3, 4).transpose(1, 0, 2),
    ],
    ids=lambda array: f"{array.dtype.str} {array.shape}",
)  # fmt: skip
def test_arrays_come_back(array):
    again = unpack(pack([array]))[0]
    assert again.dtype == array.dtype
    assert again.shape == array.shape
    assert again.tobytes() == array.tobytes()
    assert again.flags.writeable
    if array.flags.c_contiguous or array.flags.f_contiguous:
        assert (again.flags.c_contiguous, again.flags.f_contiguous) == (
            array.flags.c_contiguous,
            array.flags.f_contiguous,
        )


@pytest.mark.parametrize("label", [3, 2.5, "ü", b"x", True, None, (1, "a"), np.int64(4), np.str_("z"), np.float32(0.5)])
def test_labels_of_all_kinds(label):
    machine = NearestCentroid([label, "other"])
    machine.learn_one([0.0], label)
    again = unpack(pack(machine))
    plain = label.item() if isinstance(label, np.generic) else label
    assert [type(one) for one in again.classes] == [type(plain), str]
    again.learn_one([1.0], label)
    assert again.n == 2


def test_a_machine_remembers_what_it_was_tuned_on():
    X, y = small_stream(0, 12)
    tuning = venn.tune(list(zip(X, y, strict=True)), CLASSES)
    machine = unpack(pack(tuning.machine()))
    assert repr(machine.tuning) == repr(tuning)
    assert machine.tuning.met(X[3], y[3])
    assert not machine.tuning.met(X[3] + 1, y[3])
    assert pack(machine) == pack(tuning.machine())


# What cannot be saved ----------------------------------------------------------------------------------------------


class OwnKernel:
    def row(self, columns, n, x, out):
        out[:n] = x @ columns[:, :n]


def own_group(x):
    return x[0]


def itself():
    thing = []
    thing.append({"thing": thing})
    return thing


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: venn.taxonomies.Grouped(own_group, venn.Argmax()), TypeError,
         r"thing\.by must .*no code; got a function"),
        (lambda: [1, {"f": len}], TypeError, r"thing\[1\]\['f'\] must .*len"),
        (lambda: venn.OneVsAllSVM(OwnKernel(), 1.0, CLASSES), TypeError, r"thing\.kernel must .*a OwnKernel"),
        (lambda: venn.Monitor, TypeError, "thing must"),
        (lambda: np.array([object()]), TypeError, "thing must"),
        (lambda: venn.FrozenScorer, TypeError, "thing must"),
        (itself, ValueError, r"thing\[0\]\['thing'\] must not hold itself"),
        (lambda: venn.ProbabilitySVC(), TypeError, "thing must .*ProbabilitySVC"),
    ],
    ids=range(8),
)  # fmt: skip
def test_what_is_no_data_is_refused_with_its_place(tmp_path, make, error, message):
    with pytest.raises(error, match=message):
        venn.save(tmp_path / "x.npz", make())
    assert not list(tmp_path.iterdir())


def nested(depth):
    thing = []
    for _ in range(depth):
        thing = [thing]
    return thing


def test_deep_nesting_is_refused():
    with pytest.raises(ValueError, match="nested"):
        pack(nested(100_000))


# Estimators of the user's own ---------------------------------------------------------------------------------------


def fitted(C=1.0):
    from sklearn.linear_model import LogisticRegression

    X, y = small_stream(8, 40)
    return LogisticRegression(C=C).fit(X, y)


def test_a_frozen_scorer_gets_its_estimator_back():
    X, y = small_stream(5, 30)
    subject = venn.InductiveVenn(venn.FrozenScorer(fitted()))
    subject.learn_many(X, y)
    data = pack(subject)
    assert b"coef_" not in data
    twin = unpack(data, models=[fitted()])
    subject.learn_one(X[0], "b")
    twin.learn_one(X[0], "b")
    assert all(np.array_equal(twin.predict_one(x).probabilities, subject.predict_one(x).probabilities) for x in X)
    for models, message in (
        ([], r"1 that were not saved, in order: LogisticRegression\(\); got \[\]"),
        ([fitted(), fitted()], "1 that were not saved"),
        ([venn.Argmax()], "1 that were not saved"),
        ([fitted(C=0.01)], "with other coefficients"),
        ([type(fitted())()], "fitted"),
    ):
        with pytest.raises(ValueError, match=message):
            unpack(data, models=models)


@pytest.mark.parametrize("last", [None, 8])
def test_a_refitted_estimator_is_fitted_again_or_given_back(last):
    from sklearn.linear_model import LogisticRegression

    X, y = small_stream(6, 40)
    subject = venn.predictors.Refitted(
        LogisticRegression(), CLASSES, schedule=venn.schedules.PrefixRestart(first=8, last=last)
    )
    for n, (x, label) in enumerate(zip(X, y, strict=True)):
        models = [LogisticRegression()] + [subject.fitted] * (last is not None and subject.fitted is not None)
        twin = unpack(pack(subject), models)
        assert (twin.n, twin.fitted_to) == (n, subject.fitted_to)
        assert np.array_equal(twin.predict_one(x).proba, subject.predict_one(x).proba)
        twin.learn_one(x, label)
        subject.learn_one(x, label)
        assert np.array_equal(twin.predict_one(X[0]).proba, subject.predict_one(X[0]).proba)
