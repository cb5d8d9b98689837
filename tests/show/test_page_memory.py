"""What the page remembers: where changes lie on the strip, whose alarms are whose, and a question found by its id."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from page_cases import HOSTILE, write, write_state

import venn
from venn.monitors.episodes import Episode
from venn.monitors.verdict import Moment
from venn.online import JournalError
from venn.online.watch import Watch
from venn.show.page import memory, words
from venn.show.page.feed import Feed, FollowedRun, grouped
from venn.show.page.page import Page, document


@pytest.fixture
def lived(tmp_path):
    """A run whose labels come in any order, or never; what was asked, answered and given up, in this order."""
    rng, path = np.random.default_rng(0), tmp_path / "run.db"
    machine = venn.LeastSquaresSVM(venn.RBF(1.0), C=10, classes=["no", "yes"])
    found = SimpleNamespace(path=path, asked=[], answered=[], until=[], given_up=[], waiting=[])
    with venn.Online(venn.TransductiveVenn(machine), journal=path) as online:
        for i in range(60):
            id = i if i % 3 else f"<script>{i}</script>"
            online.ask([float(rng.normal())], id)
            found.asked.append(id)
            found.waiting.append(id)
            while len(found.waiting) > 4:
                one = found.waiting.pop(int(rng.integers(len(found.waiting))))
                if rng.random() < 0.3:
                    online.expire(one)
                    found.given_up.append(one)
                else:
                    online.answer(one, "yes")
                    found.answered.append(one)
                    found.until.append(len(found.asked))
    return found


def test_a_question_is_found_by_its_id_with_its_number_and_its_label(lived):
    with Watch(lived.path) as watch:
        for number, id in enumerate(lived.asked, 1):
            one = watch.question(id)
            assert (one.number, one.seen.id) == (number, id)
            of = {"pending": lived.waiting, "answered": lived.answered, "expired": lived.given_up}
            assert id in of[one.seen.status]
            assert (one.came is None) == (id in lived.waiting)
            assert one.came is None or one.came >= one.seen.time
            assert one.since == sum(until >= number for until in lived.until)
            assert watch.moment(number) == (number, one.seen.time, id) or watch.moment(number).id == id
            assert watch.asked_at(number) == one.seen.time
        for step, (id, until) in enumerate(zip(lived.answered, lived.until, strict=True), 1):
            assert watch.answer(step)[:2] == (lived.asked.index(id) + 1, until)
        assert [watch.question(id) for id in ("none", "1", 0, 99)] == [None] * 4, "'1' is not 1"
        assert watch.moment(61) is watch.answer(len(lived.answered) + 1) is None
        with pytest.raises(TypeError, match="id must be an int or a str, got None"):
            watch.question(None)
    with pytest.raises(JournalError, match="is closed"):
        watch.question(1)


def test_who_types_an_id_finds_text_and_number_and_else_the_number_of_the_question(lived):
    feed = Feed(lambda: Watch(lived.path), lived.path)

    def numbers(said):
        return [one.number for one in feed.find(said)]

    assert numbers("<script>0</script>") == [1]
    assert numbers("1") == [2], "as an id, for there is one"
    assert numbers("3") == [3], "no id 3: the third question"
    assert numbers("-1") == numbers("") == numbers("9" * 18) == numbers("1e3") == numbers("0x1") == []
    feed.close()


def asked(page, id):
    reply = page.routes()["/question.json"]({"id": [id]})
    return json.loads(reply.body)


def test_what_is_found_is_escaped_and_says_what_came(lived):
    feed = Feed(lambda: Watch(lived.path), lived.path)
    page = Page(feed)
    for id in lived.asked:
        found = asked(page, str(id))
        said = found["words"]["found"]
        assert "<script" not in said
        assert found["waits"] == (id in lived.waiting)
        assert ("has not come" in said) == (id in lived.waiting)
        assert said.count("given up") == 2 * (id in lived.given_up), "and when"
        assert ("answers late" in said) == (id in lived.answered)
    none = asked(page, "<script>none")["words"]["found"]
    assert none == "<p>No question has the id &lt;script&gt;none, nor this number.</p>"
    assert page.routes()["/question.json"]({}).body, "without an id, too"
    feed.close()


def test_where_there_is_no_journal_nothing_is_found(tmp_path):
    feed = Feed(lambda: Watch(tmp_path / "none.db"), tmp_path / "none.db")
    assert "No question has the id" in asked(Page(feed), "1")["words"]["found"]


# ------------------------------------------------------------------------------------------ strip


def change(number, first, rang, ended=None, at=1000.0, **more):
    """Return a change; its questions were asked a second each, from `at` on."""
    moments = [None if of is None else Moment(of, at and at + of, f"{HOSTILE}{of}") for of in (first, rang, ended)]
    said = ("venn",), "", (), (), "odds", 1, "nothing"
    return Episode(number, *moments[:2], moments[1], *said, moments[2], "over", True, **more)


class Remembered:
    """A run with changes, of which nothing else is read."""

    def __init__(self, episodes, created=1000.0, rung=()):
        self.episodes, self.created, self.ended = tuple(episodes), created, None
        self.counts = SimpleNamespace(asked=400, time=1400.0)
        self.monitors, self.verdict, self.names = {"venn": ""}, None, ("venn",)
        self.alarms = {"venn": list(rung)}
        self.answers = {alarm["step"]: self.answer(alarm["step"]) for alarm in self.alarms["venn"]}
        self.by_episode = grouped(self.episodes, self.alarms, self.answer)
        self.snapshots, self.drifts = {}, {}

    def answer(self, step):
        return SimpleNamespace(number=step, asked=step + 20, time=1000.0 + step + 20)


def ring(step):
    return {"step": step, "time": 1000.0 + step, "about": "", "detector": "Ville", "log_evidence": 9.0, "sentence": "!"}


def test_the_strip_has_each_change_from_its_first_question_to_its_end():
    run = Remembered([change(1, 50, 60, 100), change(2, 300, 310)])
    found = memory.strip(run)
    assert (found["timed"], found["from"], found["to"]) == (True, 1000.0, 1400.0)
    assert [(one["number"], one["from"], one["to"], one["lasts"]) for one in found["spans"]] == [
        (1, 1050.0, 1100.0, False), (2, 1300.0, 1400.0, True),
    ]  # fmt: skip
    assert found["spans"][0]["say"] == "change 1, from question 50 to 100: odds", "no time: it would be the server's"


def test_a_change_that_is_older_than_the_run_begins_with_it():
    old = Episode(1, Moment(0), *[Moment(9, 1009.0)] * 2, ("venn",), "", (), (), "odds", 1)
    found = memory.strip(Remembered([old]))
    assert (found["timed"], found["from"], found["spans"][0]["from"]) == (True, 1000.0, 1000.0)


def test_where_an_end_has_no_time_nothing_is_drawn_by_time():
    one = Episode(1, *[Moment(9, 1009.0)] * 3, ("venn",), "", (), (), "odds", 1, ended=Moment(50))
    found = memory.strip(Remembered([one]))
    assert (found["timed"], found["spans"][0]["to"]) == (False, 50.0)


def test_where_no_time_is_known_the_strip_counts_questions():
    found = memory.strip(Remembered([change(1, 50, 60, 100, at=None), change(2, 300, 310, at=None)], created=0.0))
    assert (found["timed"], found["from"], found["to"]) == (False, 1.0, 400.0)
    assert [(one["from"], one["to"]) for one in found["spans"]] == [(50.0, 100.0), (300.0, 400.0)]


def test_each_alarm_is_with_its_change():
    steps = [60, 70, 90, 310, 305, 320]  # labels come in any order
    run = Remembered([change(1, 50, 60, 100), change(2, 300, 310)], rung=map(ring, steps))
    assert [[alarm["step"] for _, alarm in of] for of in run.by_episode] == [[], [60, 70, 90], [310, 305, 320]]
    said = memory.changes(run)
    assert said.index('id="episode-2" open') < said.index('id="episode-1">')
    assert [one.count("<li>") for one in said.split("<details")[1:]] == [1, 1]
    assert "<img" not in said + memory.card(run)


def test_whatever_is_on_the_strip_can_be_opened():
    run = Remembered([change(i, 3 * i, 3 * i + 1, 3 * i + 2) for i in range(1, 131)])
    spans, said = memory.strip(run)["spans"], memory.changes(run)
    assert [one["number"] for one in spans] == list(range(31, 131))
    assert all(f'id="episode-{one["number"]}"' in said for one in spans)
    assert said.count("<details") == len(spans)
    assert "and 30 before" in said


def test_it_says_which_questions_to_look_at_again():
    anew = Moment(60, 1060.0, "q")
    run = Remembered([change(1, 50, 60, 100, anew=anew), change(2, 300, 310)], rung=map(ring, [60, 310]))
    assert memory.again(run, run.episodes[0]) == {"to look at again": "questions 50 to 80: 31"}, "until it began anew"
    late = Remembered([change(1, 50, 60, 70, anew=anew), change(2, 65, 70)], rung=map(ring, [60, 70]))
    assert memory.again(late, late.episodes[0]) == {"to look at again": "questions 50 to 69: 20"}, "then the next one"
    assert memory.again(run, run.episodes[1]) == {"to look at again": "questions 300 to 400: 101"}
    assert words.when(1080.0) in memory.done(run, run.episodes[0]), "when the label came, not when it was asked"


def test_a_document_holds_the_strip_when_there_is_news_only(tmp_path):
    write_state(tmp_path / "run.db", "changed")
    feed = Feed(lambda: Watch(tmp_path / "run.db"), tmp_path / "run.db")
    feed.look()
    found = document(feed)
    assert [one["number"] for one in found["strip"]["spans"]] == [1]
    assert "strip" not in document(feed, "", found["seen"])
    feed.close()


# ------------------------------------------------------------------------------------------ zones


@pytest.mark.parametrize("form", ["minute", "second", "zone"])
def test_times_are_marked_for_the_viewers_zone(form):
    said = words.when(1_700_000_000.0, form)
    assert 'data-at="1700000000.000"' in said
    assert 'datetime="2023-11-14T22:13:20+00:00"' in said
    assert f'data-form="{form}"' in said


def test_a_sentence_keeps_its_moments_and_its_text_is_escaped():
    at = Moment(7, 1_700_000_000.0, HOSTILE)
    said = words.placed(f"<b> since {at}: bad.", words.named(at, None))
    assert said.startswith("&lt;b&gt; since <time ")
    assert "(question 7 <button" in said
    assert "<img" not in said


def test_no_time_on_the_first_screen_stands_in_the_servers_zone(tmp_path):
    import re

    for state in ("changed", "silent"):
        write_state(tmp_path / f"{state}.db", state)
        feed = Feed(lambda path=tmp_path / f"{state}.db": Watch(path), tmp_path / f"{state}.db")
        feed.look()
        head = document(feed)["words"]["head"]
        assert "<time" in head
        assert not re.search(r"\d:\d\d", re.sub(r"<time.*?</time>", "", head)), state
        feed.close()


def test_identities_of_the_last_answers_are_buttons_that_find_them(tmp_path):
    write(tmp_path / "run.db", 20, "venn")
    with Watch(tmp_path / "run.db") as watch:
        said = words.outcomes(FollowedRun(watch), "venn")
    assert said.count('class="id"') == 20
    assert "<img" not in said
