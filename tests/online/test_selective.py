"""Answers with a promise: the account holds at every moment on any sequence, and a restart goes on with it."""

from itertools import pairwise

import numpy as np
import pytest
from naive import selective as naive
from sklearn.base import BaseEstimator, ClassifierMixin

import venn
from streams.labels import Answer, Question
from venn.online.account import Account
from venn.online.checkpoint import pack
from venn.online.selective import Answering, AnswerLadder
from venn.prediction import Forecast, PredictionSet

CLASSES = ("no", "yes")


class Confident(venn.predictors.Predictor):
    """Says for x its first number as the probability of "yes", and counts what it learns."""

    classes = CLASSES

    def __init__(self):
        self.n = 0

    def predict_one(self, x):
        return Forecast(np.array([1 - x[0], x[0]]), CLASSES)

    def commit(self, x, y, prepared=None):
        self.n += 1


class Forgets(Answering):
    """The broken twin: its account has only what has been labelled."""

    @property
    def account(self):
        return super().account._replace(waiting=0)


def sequences(seed):
    """Yield what happens, for seeds that calm, drift, or wait for the answer and deny it."""
    rng, waiting, n = np.random.default_rng(seed), [], 0
    kind, patience = seed % 3, int(rng.integers(0, 25))
    while n < 250:
        n += 1
        p = [0.6, 0.8, 0.97, 0.97, 0.99, 1.0][rng.integers(6)]
        answer = yield ("ask", n, p)
        waiting.append((n, p, answer))
        while len(waiting) > patience:
            number, p, answer = waiting.pop(int(rng.integers(len(waiting))))
            if rng.random() < 0.1:
                yield ("never", number)
                continue
            right = rng.random() < (p if kind == 0 or n < 120 else 0.5)
            yield ("label", number, (answer is not None if kind == 2 else not right))


def account_of(kind, seed, unknown, error, allowance):
    """Run a sequence; return the account by hand and by the object after each event."""
    answering, events, found = kind(error, allowance, unknown=unknown), [], []
    stream, sent = sequences(seed), None
    while True:
        try:
            event = stream.send(sent)
        except StopIteration:
            return found
        sent = None
        if event[0] == "ask":
            said = {"said": Forecast(np.array([1 - event[2], event[2]]), CLASSES)}
            sent = answering.ask(event[1], said).answer
            event = ("ask", event[1], sent)
        elif event[0] == "label":
            answering.reveal(event[1], "no" if event[2] else "yes")
        else:
            answering.give_up(event[1])
        events.append(event)
        if len(events) % 5 == 0 or len(events) < 60:
            found.append((naive.counts(events, unknown), answering.account))


@pytest.mark.parametrize("unknown", ["wrong", "right", "out"])
@pytest.mark.parametrize("seed", range(6))
def test_the_promise_is_kept_at_every_moment_and_the_account_is_that_of_the_definition(seed, unknown):
    error, allowance = ((0.05, 5), (0.1, 1), (0.3, 2.5))[seed // 2 % 3]
    for counted, account in account_of(Answering, seed, unknown, error, allowance):
        assert counted == (account.answered, account.wrong, account.waiting)
        assert naive.holds(*counted, error, allowance)
        assert account.kept


def test_a_twin_that_counts_only_what_is_labelled_breaks_the_promise():
    broken = [
        not naive.holds(*counted, 0.05, 2)
        for seed in (2, 5, 8)
        for counted, _ in account_of(Forgets, seed, "wrong", 0.05, 2)
    ]
    assert any(broken)


def test_no_rounding_lets_one_answer_too_many_pass():
    account = Account(20, 20, 2, 0, 0.05, 1.0)
    assert account.kept
    assert not account._replace(answered=19).kept
    assert Account(99, 99, 7, 0, 0.07, 1.0).may_answer  # 7 + 1 <= .07 x 100 + 1
    assert not Account(99, 99, 7, 0, 0.07, 1.0)._replace(promised=0.0699999).may_answer


@pytest.mark.parametrize("seed", range(10))
def test_the_threshold_is_that_of_the_definition(seed):
    rng = np.random.default_rng(seed)
    sure = rng.integers(5, 11, 30) / 10
    history = [(one, 1 - one, float(rng.random() < 0.25)) for one in sure]
    for n in (0, 1, 2, 10, 30):
        ladder = AnswerLadder(*zip(*history[:n], strict=True)) if n else AnswerLadder([], [], [])
        for target in (-0.1, 0.0, 0.05, 0.21, 0.4, 1.0):
            assert ladder.least(target) == naive.least(history[:n], target)


def test_silence_says_why_and_what_would_end_it():
    late, gone = Account(50, 20, 3, 3, 0.05, 5.0), Account(50, 20, 6, 0, 0.05, 5.0)
    assert late.silence.endswith("it answers again when 1 of those that wait have turned out right")
    assert late._replace(waiting=2).silence == ""
    assert gone.silence.endswith("it answers again with an allowance of 5.95, and with no less")
    assert gone._replace(allowance=5.95).silence == ""
    assert str(Account(0, 0, 0, 0, 0.05, 5.0)) == "nothing asked, wrong promised at most .05 of the answers"
    answering = Answering(0.05, 1)
    why = answering.choose({"it": Forecast(np.array([0.5, 0.5]), CLASSES)})[0].why
    # Not that it had never been sure enough: it may have been, and have answered, before others went wrong.
    assert why == "it is sure to 0.5, and no degree is known at which at most 0.053 of the answers are wrong"


# ----------------------------------------------------------------------------------------- by itself


def rows(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.choice([0.03, 0.5, 0.9, 0.97, 0.98], (200, 1))
    return X[:n], [CLASSES[int(rng.random() < x)] for (x,) in X][:n]


def test_blocks_are_as_one_by_one_with_equal_objects_and_late_labels():
    X, y = rows(120)
    one, other = (venn.Selective(Confident(), 0.1, 2) for _ in range(2))
    for start in range(0, 120, 30):
        block = slice(start, start + 30)
        singly = [one.predict_one(x).answer for x in X[block]]
        many = other.predict_many(X[block])
        assert many.answers == singly
        assert many.account == one.account == other.account
        for x, label in zip(X[block], y[block], strict=True):
            one.learn_one(x, label)
        other.learn_many(X[block], y[block])
        assert pack(one.answering) == pack(other.answering)
    assert one.account.waiting == 0 < one.account.answered
    assert one.account.kept


def given():
    """A classifier that refuses rows of large numbers, fitted to a table with text, and the table."""
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(
        {"size": [-1, 0, 2, 3] * 10, "kind": ["a", "b"] * 20, "age": [0.0, -0.0, np.nan, 1.5] * 10}
    )
    scorer = CountsSizes().fit(table, [CLASSES[size > 0] for size in table["size"]])
    return venn.Selective(venn.Forecaster(scorer=scorer), 0.4), table, [CLASSES[size > 0] for size in table["size"]]


class CountsSizes(ClassifierMixin, BaseEstimator):
    """Says of a row what its size says; it takes text, gaps, and no size above 50."""

    def fit(self, X, y):
        self.classes_, self.feature_names_in_ = np.array(CLASSES), np.array(list(X), object)
        return self

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.string = True
        return tags

    def predict_proba(self, X):
        sizes = np.asarray(X["size"], float)
        if (sizes > 50).any():
            raise ValueError("size must be at most 50")
        p = np.where(sizes > 0, 0.9, 0.1)
        return np.column_stack([1 - p, p])


def test_labels_reach_their_questions_in_whatever_form_an_object_comes():
    model, table, y = given()
    forms = (
        lambda row: row.to_dict(),
        lambda row: dict(reversed(row.to_dict().items())),
        lambda row: {name: cell if name == "kind" else float(cell) + 0.0 for name, cell in row.items()},
        lambda row: row,
    )
    model.predict_many(table[:4])
    for i, form in enumerate(forms):
        model.learn_one(form(table.iloc[i]), y[i])
        model.predict_one(form(table.iloc[4 + i]))
    model.learn_many(table[4:8], y[4:8])
    assert model.answering.known == model.account.asked == 8
    assert model.account.waiting == 0
    plain = venn.Selective(Confident())
    plain.predict_one(np.array([-0.0, 1.0]))
    plain.learn_one([0.0, 1.0], "no")
    assert plain.answering.known == 1


def test_a_row_that_is_refused_in_a_block_leaves_those_before_it_labelled():
    one, table, y = given()
    other = given()[0]
    one.predict_many(table[:10])
    other.predict_many(table[:10])
    table.loc[6, "size"] = 99
    with pytest.raises(ValueError, match="at most 50"):
        one.learn_many(table[:10], y[:10])
    for i in range(6):
        other.learn_one(table.iloc[i].to_dict(), y[i])
    assert one.model.n == one.answering.known == 6
    assert pack(one.answering) == pack(other.answering)


def test_it_learns_what_was_never_asked_and_counts_nothing():
    model = venn.Selective(Confident())
    model.learn_one([0.9], "yes")
    assert model.model.n == 1
    assert model.account.asked == 0
    with pytest.raises(ValueError, match="x must be an object about which a question waits"):
        model.give_up([0.9])
    model.predict_one([0.99])
    model.give_up([0.99])
    assert model.account.waiting == 0


def test_a_forecaster_keeps_all_that_it_says_and_a_file_goes_on(tmp_path):
    stream = np.random.default_rng(3).normal(size=(40, 2))
    y = [CLASSES[int(x[0] > 0)] for x in stream]

    def run(save_at):
        model = venn.Selective(venn.Forecaster(CLASSES, first=0, transductive=500), 0.3, 5)
        answers = []
        for i, (x, label) in enumerate(zip(stream, y, strict=True)):
            said = model.predict_one(x)
            answers.append((said.answer, said.proba.tolist(), said["yes"], said.set(0.1)))
            if i == save_at:
                venn.save(tmp_path / "model.npz", model)
                model = venn.load(tmp_path / "model.npz")
            model.learn_one(x, label)
        return answers, model.account

    assert run(-1) == run(25)
    assert run(-1)[1].answered > 10


def test_sets_answer_by_their_confidence_and_numbers_by_their_width():
    said = {"sets": PredictionSet(np.array([0.8, 0.01]), CLASSES)}
    assert Answering(0.05, 5).choose(said)[0].answer == "no"
    rng = np.random.default_rng(0)
    model = venn.Selective(venn.ConformalDistribution(venn.KernelRidge(venn.RBF(1.0), 1.0)), 0.2, 3, width=2.0)
    assert model.answering.level == 0.2
    given = 0
    for x in rng.normal(size=(120, 1)):
        said = model.predict_one(x)
        if said.answer is not None:
            low, high = said.answer
            assert high - low < 2.0
            given += 1
        model.learn_one(x, float(x[0] + 0.3 * rng.normal()))
        assert model.account.kept
    assert given == model.account.answered > 20


def test_what_is_not_as_described_is_refused():
    for bad, error in (
        ({"error": 0}, "error"), ({"allowance": 0.5}, "allowance"), ({"unknown": "maybe"}, "unknown"),
        ({"width": 1.0}, "width"), ({"error": "x"}, "error"), ({"level": 0.3}, "level"),
    ):  # fmt: skip
        with pytest.raises((TypeError, ValueError), match=f"^{error} must"):
            venn.Selective(Confident(), **bad)
    numbers = venn.ConformalDistribution(venn.KernelRidge(venn.RBF(1.0), 1.0))
    with pytest.raises(TypeError, match="width must be given where labels are numbers"):
        venn.Selective(numbers)
    with pytest.raises(ValueError, match="level must be at most error"):
        venn.Selective(numbers, 0.05, width=1.0, level=0.1)
    used = venn.Selective(Confident())
    used.predict_one([0.5])
    with pytest.raises(ValueError, match="predictor must have answered nothing yet"):
        venn.Online(used)
    with pytest.raises(ValueError, match="perhaps"):
        used.learn_one([0.5], "perhaps")
    assert used.account.asked == 1


# ------------------------------------------------------------------------------------------ in a run


def events(n):
    X, y = rows(n, 4)
    for i in range(n):
        yield Question(i, X[i])
        if i >= 7:
            yield Answer(i - 7, y[i - 7])


def machine():
    shared = venn.LeastSquaresSVM(venn.RBF(0.5), 1.0, CLASSES)
    return venn.Selective(venn.TransductiveVennAbers(shared), 0.2, 3)


def test_a_run_goes_on_with_the_same_account_to_the_bit(tmp_path):
    def run(name, *ends, forget=False):
        answers = []
        for end in ends:
            with venn.Online(machine(), journal=venn.online.Journal(tmp_path / name, every=10), patience=40) as online:
                answers += [(said.answer, said.why) for said in online.follow(list(events(end)), again=True)]
                state = online.account
                assert online.account.kept
            if forget:
                for file in tmp_path.glob(f"{name}-state*"):
                    file.unlink()
        return answers, state

    whole = run("a.db", 70)
    assert run("b.db", 23, 24, 70) == whole
    assert run("c.db", 40, 70, forget=True) == whole
    assert sum(answer is not None for answer, _ in whole[0]) > 10
    other = machine()
    other.answering.allowance = 4.0
    with pytest.raises(venn.online.JournalError, match="answers"):
        venn.Online(other, journal=tmp_path / "a.db", patience=40)


def test_given_up_questions_count_as_said_in_a_run():
    for unknown, wrong in (("wrong", 1), ("right", 0), ("out", 0)):
        online = venn.Online(venn.Selective(Confident(), unknown=unknown))
        assert online.ask([0.99]).answer == "yes"
        online.expire(1)
        assert (online.account.wrong, online.account.answered) == (wrong, int(unknown != "out"))


def test_rooms_of_accounts_never_grow_by_more_than_one_label():
    found = [account.room for _, account in account_of(Answering, 0, "wrong", 0.1, 3)][:50]
    assert all(abs(after - before) <= 25 for before, after in pairwise(found))


def test_the_less_room_is_left_below_the_reserve_the_surer_it_must_be():
    answering = Answering(0.05, 11)  # a reserve of .7 x 11 - 1 beside the room of one error
    rooms = [(0, 12.0), (1, 11.0), (3, 9.0), (5, 7.0), (8, 4.0), (11, 1.0), (12, 0.0)]
    for wrong, room in rooms:
        account = Account(20, 20, wrong, 0, 0.05, 11.0)
        assert account.room == pytest.approx(room)
        beyond = room - 1 - 6.7
        expected = 0.05 + beyond / 100 if beyond >= 0 else max(0.0, 0.05 * (1 + beyond / 6.7))
        assert answering.target(account) == pytest.approx(expected)
