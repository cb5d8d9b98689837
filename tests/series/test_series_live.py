"""A series that comes live, with gaps: in `Online`, by `venn run` and by `venn serve`, through kills."""

import json
import math
import signal
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from run_cases import Life, counts, left, nobody_survives, printed, until  # noqa: F401
from serve_cases import conformal, served
from test_serve_cli import post, process

import venn
from streams.form import Decoder, Form
from streams.messages import Message
from venn import cli
from venn.online.panel import Panel
from venn.online.watch import Watch
from venn.series import NextValue
from venn.series.watches import AccountWatch
from venn.show.page import charts
from venn.show.page.feed import FollowedRun

GAPS = (7, 8, 31, 59)
OPTIONS = ("--series", "load", "--season", "6", "--horizon", "3")


def values(n):
    t = np.arange(n)
    found = (10 + 3 * np.sin(t * np.pi / 3) + np.random.default_rng(0).normal(size=n)).round(3).tolist()
    return [math.nan if i in GAPS else one for i, one in enumerate(found)]


def model():
    return venn.SeriesForecaster(season=6, horizon=3)


def taught(n, covariates=None):
    """Return the model after n values, as by hand."""
    plain = model()
    for i, y in enumerate(values(n)):
        plain.learn_one(y, None if covariates is None else covariates[i])
    return plain


def same(one, other):
    """Whether two models say the same to the last bit, and have the same accounts."""
    assert one.accounts() == other.accounts()
    assert one.n == other.n
    np.testing.assert_array_equal(one.forecast().quantiles, other.forecast().quantiles)
    np.testing.assert_array_equal(one.forecast().bands, other.forecast().bands)


def message(i, y):
    return json.dumps({"id": f"t{i}", "y": None if math.isnan(y) else y}) + "\n"


# ------------------------------------------------------------------------------------------------------------ in Online


def asked(online, i, y):
    online.ask([])
    online.answer(online.asked, None if i % 2 and math.isnan(y) else y)


def alone(online, i, y):
    (taken,) = online.take([Message(None if i % 2 else f"t{i}", None, y, i)])
    assert taken.failure is None
    assert taken.asked


@pytest.mark.parametrize("learn", [asked, alone])
def test_a_gap_is_a_question_that_is_given_up_and_a_run_goes_on_after_its_death(tmp_path, learn):
    for begin, end in ((0, 8), (8, 40), (40, 90)):
        online = venn.Online(NextValue(model()), journal=tmp_path / "run.db", watch=False)
        assert online.asked == begin
        for i, y in enumerate(values(90)[begin:end], begin):
            learn(online, i, y)
        if end < 90:
            online.journal.close()  # as a kill leaves it
    assert (online.expired, online.answered) == (4, 86)
    same(online.panel["NextValue"].model, taught(90))
    online.close()


def test_a_run_that_does_not_learn_gaps_says_something_else(monkeypatch):
    monkeypatch.setattr(Panel, "skip", lambda panel, x: None)
    online = venn.Online(NextValue(model()))
    for i, y in enumerate(values(20)):
        asked(online, i, y)
    with pytest.raises(AssertionError):
        same(online.panel["NextValue"].model, taught(20))


def test_questions_and_values_come_in_turn():
    online = venn.Online(NextValue(model()))
    online.ask([], "first")
    with pytest.raises(ValueError, match="id must wait, got 'second': question 'first' of the series has no value yet"):
        online.ask([], "second")
    (refused,) = online.take([Message("second", None, 3.0, 0)])
    assert "id must wait" in str(refused.failure)
    (taken,) = online.take([Message(None, None, 3.0, 0)])  # without an id it is the value of the one that waits
    assert (taken.id, online.answered, online.pending) == ("first", 1, ())


def test_the_object_may_hold_the_covariates_of_several_steps():
    covariates, rng = [[float(one)] for one in np.random.default_rng(1).normal(size=70)], np.random.default_rng(2)
    said, plain = NextValue(model()), model()
    for t in range(60):
        y, ahead = 5 + 3 * covariates[t][0] + 0.1 * rng.normal(), covariates[t : t + 3]
        if t:
            path = plain.forecast(xs=ahead)
            np.testing.assert_array_equal(said.path(np.concatenate(ahead)).quantiles, path.quantiles)
        said.learn_one(np.concatenate(ahead) if t else ahead[0], y)
        plain.learn_one(y, covariates[t])
    same(said.model, plain)
    with pytest.raises(ValueError, match="x must have 1 covariates, as before, or so many for each step"):
        said.predict_one([])


# -------------------------------------------------------------------------------------------------------------- watches


def missed(said):
    """Return a value that the interval at .1 does not hold."""
    upper = said.interval(0.1)[1]
    return upper + 1 if math.isfinite(upper) else 0.0


def test_an_account_that_is_half_used_up_rings_in_the_run_and_does_so_again_after_its_death(tmp_path):
    steps, rung = venn.predictors.ConstantSteps(0.05), []
    for begin, end in ((0, 15), (15, 60)):
        fresh = venn.SeriesForecaster(season=1, horizon=2, steps=steps)
        online = venn.Online(NextValue(fresh), journal=tmp_path / "run.db", watch=False)
        for _ in range(begin, end):
            said = online.ask([])
            online.answer(online.asked, missed(said))
            rung += online.rung
        online.journal.close()
    found = {name for name, _ in rung}
    assert "accounts" in found
    first = next(one for name, one in rung if name == "accounts")
    assert first.sentence.startswith("The ")
    online = venn.Online(NextValue(fresh.fresh()), journal=tmp_path / "run.db", watch=False)
    assert online.verdicts()["accounts"].state == "doubtful"
    assert {"accounts", "values"} <= online.monitors.keys()
    assert [one.sentence for one in online.monitors["accounts"].alarms] == [
        one.sentence for name, one in rung if name == "accounts"
    ]
    assert any("accounts" in one.watchers for one in online.episodes())
    online.close()


def test_the_shares_that_are_used_up_are_those_of_the_accounts():
    plain = taught(90)
    used = plain._levels.used()  # noqa: SLF001
    expected = [(one.errors - one.level * one.n) / one.bound for one in plain.accounts()]
    np.testing.assert_allclose(used.ravel(), expected)
    assert plain.account_watch.n == 90


def test_each_horizon_rings_once_until_it_is_calm():
    watch, used = AccountWatch(), np.zeros((3, 2))
    for share, rings in ((0.4, 0), (0.6, 1), (0.6, 0), (0.3, 0), (0.1, 0), (-0.7, 1)):
        used[1, 1] = share
        assert len(watch.update(used, (0.05, 0.1))) == rings
    assert [(one.part, bool(one.ended)) for one in watch.cases] == [("horizon 2", True), ("horizon 2", False)]
    assert "missed too seldom" in str(watch.verdict().details)


def test_more_horizons_than_changes_are_remembered_ring_once_each():
    watch, used = AccountWatch(), np.full((169, 1), 0.6)
    assert [len(watch.update(used, (0.1,))) for _ in range(3)] == [169, 0, 0]
    watch.update(0.0 * used, (0.1,))
    assert all(one.ended for one in watch.cases)


# ------------------------------------------------------------------------------------------------------------- messages


def test_messages_of_a_series_have_values_gaps_and_covariates():
    plain, named = Decoder(Form(classes="values")), Decoder(Form(features=["heat"], classes="values"))
    assert plain.json('{"y": 3}') == (None, None, 3.0)
    assert math.isnan(plain.json('{"id": 1, "y": null}')[2])
    assert plain.json('{"id": 1}')[1].shape == (0,)
    assert plain.json('{"id": 1, "x": [2, 3]}')[1].tolist() == [2.0, 3.0]
    assert named.json('{"x": [{"heat": 2}, {"heat": 3}], "y": 4}')[1].tolist() == [2.0, 3.0]
    assert math.isnan(plain.text_label(""))
    with pytest.raises(ValueError, match="x must have a value for every feature"):
        named.json('{"x": [{"cold": 2}], "y": 4}')
    with pytest.raises(ValueError, match="y must be a finite number"):
        plain.json('{"y": "high"}')


# ------------------------------------------------------------------------------------------------------------- venn run


def test_a_killed_run_of_a_series_goes_on_and_says_everything_once(tmp_path):
    live = ("--source", "jsonl:in.jsonl", *OPTIONS, "--set", "run.batch=7", "--set", "journal.every=20")
    lines = [message(i, y) for i, y in enumerate(values(90))]
    (tmp_path / "in.jsonl").write_text("".join(lines))
    assert Life(tmp_path, *live, "--journal", "whole.db", "--out", "whole", "--end").end() == 0
    (tmp_path / "in.jsonl").write_text("".join(lines[:50]))
    life = Life(tmp_path, *live, "--journal", "run.db", "--out", "out")
    until(lambda: counts(tmp_path / "run.db")[0] >= 40)
    assert life.send(signal.SIGKILL).end() == -signal.SIGKILL
    (tmp_path / "in.jsonl").write_text("".join(lines))
    assert Life(tmp_path, *live, "--journal", "run.db", "--out", "out", "--end").end() == 0
    assert left(tmp_path / "run.db") == left(tmp_path / "whole.db")
    assert (tmp_path / "out").read_text() == (tmp_path / "whole").read_text()
    told, plain = printed(tmp_path / "out"), taught(90)
    assert [one["id"] for one in told] == [f"t{i}" for i in range(90)]
    assert told[-1]["path"] == plain.forecast().plain()
    assert told[-1]["y"] == values(90)[-1]
    assert "y" not in told[7]
    with Watch(tmp_path / "run.db") as watch:
        assert charts.path(FollowedRun(watch), "series")["step"][-1] == 93


@pytest.mark.parametrize(
    "bad", ['{"id": "t8", "y": "high"}', '{"id": "t8", "y":', '{"y": 1e300}', '{"x": [], "y": 1e999}']
)
def test_a_value_that_is_skipped_is_a_gap_and_later_ones_keep_their_place_in_the_season(bad, tmp_path):
    lines = [bad + "\n" if i in GAPS else message(i, y) for i, y in enumerate(values(64))]
    (tmp_path / "in.jsonl").write_text("".join(lines))
    live = ("--source", "jsonl:in.jsonl", *OPTIONS, "--skip-bad", "--end", "--journal", "run.db")
    assert Life(tmp_path, *live).end() == 0
    assert printed(tmp_path / "stdout")[-1]["path"] == taught(64).forecast().plain()


@pytest.mark.parametrize("place", [0, 7])
def test_a_row_that_is_skipped_is_a_gap_with_the_covariates_before_it_once_there_is_a_value(place, tmp_path):
    """A first row that cannot be read must not say that there are no covariates: all later ones would be refused."""
    rows = [f"{y},{i % 2}" for i, y in enumerate(values(40)) if i not in GAPS]
    (tmp_path / "in.csv").write_text("\n".join(["load,weekend", *rows[:place], "high,low", *rows[place:], ""]))
    live = ("--source", "csv:in.csv", *OPTIONS, "--covariates", "weekend", "--skip-bad", "--end", "--journal", "run.db")
    assert Life(tmp_path, *live).end() == 0
    plain = NextValue(model())
    for row in [*rows[:place], *([f"nan,{rows[place - 1][-1]}"] if place else []), *rows[place:]]:
        y, x = map(float, row.split(","))
        if math.isnan(y):
            plain.skip([x])
        else:
            plain.learn_one([x], y)
    assert printed(tmp_path / "stdout")[-1]["path"] == plain.path().plain()


def test_the_names_inside_joined_files_are_no_gap(tmp_path):
    rows = [*map(str, values(40))]
    live = ("--source", "csv:in.csv", *OPTIONS, "--skip-bad", "--end", "--journal", "run.db")
    (tmp_path / "in.csv").write_text("\n".join(["load", *rows[:25], "load", *rows[25:], ""]))
    assert Life(tmp_path, *live).end() == 0
    assert printed(tmp_path / "stdout")[-1]["path"] == taught(40).forecast().plain()


def test_a_value_that_is_learned_with_an_error_is_no_gap(tmp_path, monkeypatch):
    learn = NextValue.commit

    def failing(self, x, y, prepared=None):
        learn(self, x, y, prepared)
        if self.n == 9:
            raise ValueError("it is learned, but something else went wrong")

    monkeypatch.setattr(NextValue, "commit", failing)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.jsonl").write_text("".join(message(i, 1.0 + i % 6) for i in range(20)))
    live = ("--source", "jsonl:in.jsonl", *OPTIONS, "--end", "--journal", "run.db")
    result = CliRunner().invoke(cli.main, ["run", *live])
    assert "learned an answer with an error" in result.stderr
    assert [json.loads(line)["id"] for line in result.stdout.splitlines()] == [f"t{i}" for i in range(20)]


def test_rows_of_a_growing_file_are_values_their_empty_cells_gaps(tmp_path):
    rows = [f"{i},{'' if math.isnan(y) else y},{i % 2}" for i, y in enumerate(values(60))]
    (tmp_path / "in.csv").write_text("time,load,weekend\n" + "\n".join(rows) + "\n")
    live = ("--source", "csv:in.csv", *OPTIONS, "--covariates", "weekend", "--id", "time", "--end", "--journal")
    assert Life(tmp_path, *live, "run.db").end() == 0
    plain = model()
    for i, y in enumerate(values(60)):
        if i:
            plain.forecast(1, xs=[[i % 2]])
        plain.learn_one(y, [i % 2])
    assert printed(tmp_path / "stdout")[-1]["path"] == plain.forecast().plain()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--source jsonl:in --series load --C 1", "--C does not go with --series"),
        ("--source jsonl:in --series load --numbers", "--numbers does not go with --series"),
        ("--source jsonl:in --series load --ripe 3", "--ripe does not go with --series"),
        ("--source car --series load", "--source must be live for a series"),
        ("--source jsonl:in --classes a,b --season 6", "--season needs --series"),
    ],
)
def test_what_says_nothing_of_a_series_is_refused(options, said, tmp_path):
    told = CliRunner().invoke(cli.main, ["run", *options.split(), "--journal", str(tmp_path / "run.db")])
    assert told.exit_code == 2
    assert said in told.output


# ----------------------------------------------------------------------------------------------------------- venn serve


def test_values_are_served_and_what_is_repeated_gets_the_same_reply(tmp_path):
    told = {}
    for begin, end in ((0, 30), (30, 62)):
        with served(tmp_path / "run.db", NextValue(model())) as (client, _):
            for i, y in enumerate(values(62)[begin:end], begin):
                content = {"id": f"t{i}", "y": None if math.isnan(y) else y}
                if i % 3 == 0:
                    assert client.post("/ask", json={"id": f"t{i}"}).status_code == 200
                reply = client.post("/answer", json=content)
                assert reply.status_code == 200, reply.text
                told[json.dumps(content)] = reply.text
            found = client.get("/path").json()
            assert found == {"n": end, "path": taught(end).forecast().plain()}
    with served(tmp_path / "run.db", NextValue(model())) as (client, _):
        for content, text in told.items():
            assert client.post("/answer", json=json.loads(content)).text == text
        assert client.get("/path").json()["n"] == 62  # nothing was learned twice
        assert client.post("/answer", json={"y": 3.0}).status_code == 200
        assert client.get("/path").json()["n"] == 63
        assert client.post("/answer", json={"id": "t7", "y": 3.0}).status_code == 410
        assert client.post("/ask", json={"id": "a"}).status_code == 200
        refused = client.post("/ask", json={"id": "b"})
        assert refused.status_code == 422
        assert "has no value yet" in refused.json()["error"]
        assert "/path" in client.get("/openapi.json").json()["paths"]
        assert client.get("/").status_code == 200
        page = client.get("/run.json").json()
        assert "Objects and classes" not in page["words"]["head"]  # of which it has none
        assert "accounts" in client.get("/metrics").text
        for content, words in (
            ({"y": "high"}, "y must be a number, or null for a gap"), ({"y": True}, "y must be a number"),
            ({"id": "c"}, "y must be given"),
        ):  # fmt: skip
            refused = client.post("/answer", json=content)
            assert refused.status_code == 422
            assert words in refused.json()["error"]


def test_a_model_of_labels_has_no_path_and_its_page_says_how_objects_are(tmp_path):
    def monitors():
        return {"Conformal": venn.Monitor(("no", "yes")), "objects": venn.monitors.Drift()}

    with served(tmp_path / "run.db", conformal(), monitor=monitors()) as (client, _):
        assert client.get("/path").status_code == 404
        assert client.post("/ask", json={"id": 1, "x": [0.5, 1.5]}).status_code == 200
        assert client.post("/answer", json={"id": 1, "y": "no"}).status_code == 200
    with served(tmp_path / "run.db", conformal(), monitor=monitors()) as (client, _):
        assert "Objects and classes" in client.get("/run.json").json()["words"]["head"]


def test_a_served_series_that_is_killed_goes_on(tmp_path):
    told = []
    with process(tmp_path, "--port", 0, "--journal", "run.db", *OPTIONS) as made:
        for i, y in enumerate(values(40)):
            told.append(post(made.address, "/answer", json.loads(message(i, y))).text)
        made.send_signal(signal.SIGKILL)
        made.wait(30)
    with process(tmp_path, "--port", 0, "--journal", "run.db", *OPTIONS) as made:
        for i, y in enumerate(values(40)):
            assert post(made.address, "/answer", json.loads(message(i, y))).text == told[i]
        assert post(made.address, "/answer", {"y": values(41)[40]}).status_code == 200
        said = json.loads(fetched(made.address))
        made.send_signal(signal.SIGTERM)
        assert made.wait(30) == 0
    assert said == {"n": 41, "path": taught(41).forecast().plain()}
    assert Path(tmp_path / "run.db").exists()


def fetched(address):
    import httpx

    return httpx.get(f"{address}/path", timeout=60).text


@pytest.mark.parametrize("id", [None, "t1"])
def test_a_value_that_is_refused_leaves_no_question_which_would_stop_all_later_ones(id):
    online = venn.Online(NextValue(model()))
    (refused,) = online.take([Message(id, None, 1e300, 1)])
    (beside,) = online.take([Message(id, [], 1e300, 1)])
    assert "at most 1e+100" in str(refused.failure)
    assert "at most 1e+100" in str(beside.failure)
    assert (online.asked, online.pending) == (0, ())
    for i in range(2, 5):
        assert online.take([Message(f"t{i}", None, float(i), i)])[0].failure is None
    assert online.answered == 3


def test_a_served_value_that_is_refused_is_no_unknown_question_and_later_ones_come(tmp_path):
    with served(tmp_path / "run.db", NextValue(model())) as (client, _):
        for message in ({"y": 1e300}, {"id": "t1", "y": 1e300}):
            reply = client.post("/answer", json=message)
            assert (reply.status_code, reply.json()["at"]) == (422, "y")
        assert client.post("/answer", json={"id": "t2", "y": 3.0}).json()["event"] == 2
