"""Teachers: every label comes once, after its question, when the teacher says; shares and delays as stated.

Statistical tests have fixed seeds; a true claim is refused at LEVEL, a false one must be refused at 1e-6.
"""

import pickle
from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import labels as naive
from scipy import stats

import streams
from streams.labels import Answer, Delayed, Immediate, Lazy, Question, RandomDelay, teach
from streams.messages import MessageSource

LEVEL = 1e-3
TEACHERS = [
    Immediate(), Delayed(0), Delayed(3), Delayed(1000), RandomDelay(0), RandomDelay(4.5, seed=1), Lazy(0), Lazy(1),
    Lazy(0.5, seed=2), Lazy(0.5, teacher=Delayed(10)), Lazy(0.3, teacher=RandomDelay(7, seed=3)),
    Lazy(0.5, teacher=Lazy(0.5)),
]  # fmt: skip


def plain(lessons):
    """Return the events as the oracle writes them."""
    return [("question" if isinstance(event, Question) else "answer", *event) for event in lessons]


class Scripted:
    """A teacher of a user's own."""

    def __init__(self, delays):
        self._delays = delays

    def delays(self):
        yield from self._delays
        while True:
            yield 0


@pytest.mark.parametrize("teacher", TEACHERS, ids=repr)
def test_events_are_those_of_the_oracle(teacher):
    examples = [(f"x{i % 3}", i % 2) for i in range(60)]
    lessons = teach(examples, teacher)
    assert plain(lessons) == naive.events(examples, list(islice(teacher.delays(), 60)))
    assert list(lessons) == list(lessons)


@given(st.lists(st.none() | st.integers(0, 12), max_size=12))
def test_any_delays(delays):
    examples = [(0, i % 2) for i in range(len(delays))]
    assert plain(teach(examples, Scripted(delays))) == naive.events(examples, delays)


@pytest.mark.parametrize("teacher", TEACHERS, ids=repr)
def test_each_answer_comes_once_and_after_its_question(teacher):
    stream = streams.gaussians(300, seed=5)
    asked, answered = {}, set()
    for event in teach(stream, teacher):
        if isinstance(event, Question):
            assert event.id == len(asked) + 1
            asked[event.id] = event.x
        else:
            assert isinstance(event, Answer)
            assert event.id in asked
            assert event.id not in answered
            assert event.y == stream.y[event.id - 1]
            answered.add(event.id)
    assert np.array_equal(list(asked.values()), stream.X)
    if not isinstance(teacher, Lazy):
        assert answered == set(asked)


def test_immediate_answers_before_the_next_question():
    assert list(teach([("a", 1), ("b", 2)], Immediate())) == [
        Question(1, "a"), Answer(1, 1), Question(2, "b"), Answer(2, 2),
    ]  # fmt: skip


def test_delayed_by_just_so_many_questions():
    asked = 0
    for event in teach([(i, i) for i in range(50)], Delayed(7)):
        if isinstance(event, Question):
            asked = event.id
        else:
            assert asked == min(event.id + 7, 50)


def chance(counts, expected):
    """Return the p-value of a chi-square test, cells with few examples put together at the end."""
    keep = expected >= 5
    observed = np.append(counts[keep], counts[~keep].sum())
    wanted = np.append(expected[keep], expected[~keep].sum())
    return stats.chisquare(observed, wanted * observed.sum() / wanted.sum()).pvalue


@pytest.mark.parametrize(
    ("mean", "claimed", "true"), [(3, 3, True), (0.4, 0.4, True), (3, 3.5, False), (3, 2.5, False)]
)
def test_random_delays_are_geometric_with_the_mean(mean, claimed, true):
    delays = np.array(list(islice(RandomDelay(mean, seed=4).delays(), 20_000)))
    q = claimed / (1 + claimed)
    k = np.arange(delays.max() + 1)
    p = chance(np.bincount(delays), len(delays) * (1 - q) * q**k)
    assert p > LEVEL if true else p < 1e-6


@pytest.mark.parametrize(
    ("teacher", "share", "true"),
    [
        (Lazy(0.3, seed=1), 0.3, True),
        (Lazy(0.3, seed=1, teacher=RandomDelay(2, seed=1)), 0.3, True),
        # The same seed inside and outside: withheld independently, not twice the same labels.
        (Lazy(0.5, seed=1, teacher=Lazy(0.5, seed=1)), 0.75, True),
        (Lazy(0.3, seed=1), 0.4, False),
        (Lazy(0.5, seed=1, teacher=Lazy(0.5, seed=1)), 0.5, False),
    ],
    ids=repr,
)
def test_share_of_labels_that_never_come(teacher, share, true):
    never = sum(delay is None for delay in islice(teacher.delays(), 5000))
    p = stats.binomtest(never, 5000, share).pvalue
    assert p > LEVEL if true else p < 1e-6


def test_delays_of_the_answered_are_those_of_the_inner_teacher():
    kept = list(islice(Lazy(0.5, seed=1, teacher=RandomDelay(2, seed=1)).delays(), 500))
    inner = list(islice(RandomDelay(2, seed=1).delays(), 500))
    assert all(delay is None or delay == k for delay, k in zip(kept, inner, strict=True))


def test_seeds_differ_and_repeat():
    def first(teacher):
        return list(islice(teacher.delays(), 50))

    assert first(RandomDelay(5, seed=1)) == first(RandomDelay(5, seed=1)) != first(RandomDelay(5, seed=2))
    assert first(Lazy(0.5, seed=1)) == first(Lazy(0.5, seed=1)) != first(Lazy(0.5, seed=2))


@pytest.mark.parametrize("teacher", TEACHERS, ids=repr)
def test_teachers_are_values(teacher):
    assert eval(repr(teacher), vars(streams.labels)) == teacher == pickle.loads(pickle.dumps(teacher))
    assert hash(teacher) == hash(pickle.loads(pickle.dumps(teacher)))


def test_lessons_are_a_live_source():
    lessons = teach([(i, i % 2) for i in range(20)], Lazy(0.3, teacher=Delayed(3)))
    events = list(lessons)
    assert isinstance(lessons, MessageSource)
    with lessons as source:
        messages = list(source.messages())
        assert len(messages) == len(events)
        for i, (message, event) in enumerate(zip(messages, events, strict=True), 1):
            x, y = (event.x, None) if isinstance(event, Question) else (None, event.y)
            assert message == (event.id, x, y, i)
            source.acknowledge(message.position)
            assert list(source.messages(message.position)) == messages[i:]
        assert list(source.messages(10**9)) == []
    assert "Delayed(steps=3)" in lessons.name


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Delayed(-1), ValueError, "steps must be an integer >= 0, got -1"),
        (lambda: RandomDelay(-0.5), ValueError, "mean must be a number from 0 to 1e+12, got -0.5"),
        (lambda: RandomDelay(float("nan")), ValueError, "mean must be a number from 0 to 1e+12, got nan"),
        (lambda: RandomDelay(3, seed=-1), ValueError, "seed must be an integer >= 0, got -1"),
        (lambda: Lazy(1.01), ValueError, "share must be a number from 0 to 1, got 1.01"),
        (lambda: teach(iter([]), Immediate()), TypeError, "stream must start anew at every loop, got the iterator"),
        (lambda: teach([], Immediate()).messages(-1), ValueError, "position must be an integer >= 0, got -1"),
        (lambda: teach([], Immediate()).messages("1"), TypeError, "position must be an integer >= 0, got '1'"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_bad_parameters(make, error, message):
    with pytest.raises(error) as caught:
        make()
    assert str(caught.value).startswith(message)
