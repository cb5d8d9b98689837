"""A fleet on the command line: messages with a key, the page, the report, metrics, notification."""

import contextlib
import json
import re
import sqlite3
import urllib.error
import urllib.request

import numpy as np
import pytest
from click.testing import CliRunner
from conftest import refused

import venn
from streams.form import Decoder, Form
from tests.scale.test_fleet import die
from venn.cli.commands import main
from venn.cli.fleets import shown
from venn.scale.fleet_store import FILE, read_log, read_rows
from venn.show.page.fleet import FleetPage
from venn.show.server import serving

OPTIONS = ("--key", "shop", "--classes", "no,yes", "--predictors", "conformal", "--end")


def lines(n, seed=0):
    """Return messages of three shops, of which one changes half way; two questions wait, one message is bad."""
    rng, found = np.random.default_rng(seed), []
    for i in range(n):
        for shop in ("Oslo", "Riga <b>", "Bern"):
            x = rng.normal(size=2)
            y = "yes" if (x[0] > 1) != (shop == "Bern" and i >= n // 2) else "no"
            found.append({"shop": shop, "id": i, "x": x.tolist()})
            found.append({"shop": shop, "id": i, "y": y})
    found += [{"shop": "Oslo", "id": "a", "x": [0.0, 1.0]}, {"shop": "Oslo", "id": "b", "x": [0.0, 1.0]}]
    return [json.dumps(one) for one in [*found, {"id": 7, "x": [0.0, 1.0]}]]


def run(*arguments, code=0):
    done = CliRunner().invoke(main, [str(one) for one in arguments])
    assert done.exit_code == code, done.output
    return done


def test_verify_finds_a_change_in_any_key(tmp_path):
    """Of partitions too, beside a process that goes on."""

    def make(key):
        return venn.Conformal(venn.LeastSquaresSVM(venn.RBF(1.0), 10, ("no", "yes")))

    def text(statement):
        with contextlib.closing(sqlite3.connect(tmp_path / "1" / FILE)) as db, db:
            db.execute(statement)
        return " ".join(run("verify", tmp_path, code=1).stderr.split())

    with venn.Fleet(make, tmp_path / "0") as one, venn.Fleet(make, tmp_path / "1", every=5) as other:
        for i in range(6):
            one.learn_one("Oslo", [i, 1.0], "no")
            other.ask("Riga", [i, 1.0], i)
        other.answer("Riga", 0, "no")
        other.expire("Riga", 1)
        assert "is whole: 12 questions, 7 answers, 1 given up; 1 checkpoints" in run("verify", tmp_path).stdout
        die(other)
    assert "event 6 of key 1 has another checksum" in text("UPDATE log SET what = 2 WHERE event = 6")
    assert "events of key 'Riga' are missing" in text("DELETE FROM log WHERE event = 6")
    assert "the state of key" in text("UPDATE states SET state = substr(state, 1, 300)")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Served in two lives, the second of which goes on."""
    scratch = tmp_path_factory.mktemp("fleet")
    source, whole = scratch / "in.jsonl", lines(140)
    told = scratch / "told.txt"
    command = ("run", "--source", f"jsonl:{source}", "--journal", scratch / "shops", "--out", scratch / "out.jsonl",
               *OPTIONS, "--skip-bad", "--on-alarm", f"sh -c 'echo $VENN_PREDICTOR >> {told}'")  # fmt: skip
    for part in (100, len(whole)):
        source.write_text("".join(f"{one}\n" for one in whole[:part]))
        done = run(*command)
    assert "skipped a message" in done.stderr
    assert "goes on with 3 keys" in done.stderr
    assert "named: Bern since about" in done.stderr
    assert "verdict: 1 of 3 keys changed: Bern" in done.stderr
    assert told.read_text() == "Bern\n"
    return scratch / "shops"


def test_each_message_counts_once_and_each_key_is_as_if_alone(folder):
    said = [json.loads(line) for line in (folder.parent / "out.jsonl").read_text().splitlines()]
    assert [(one["key"], one["id"]) for one in said[:2]] == [("Oslo", "0"), ("Riga <b>", "0")]
    assert len(said) == 422
    rows = {row.key: row for row in read_rows(folder)}
    assert [(row.asked, row.answered) for row in rows.values()] == [(142, 140), (140, 140), (140, 140)]
    assert rows["Bern"].named > 70
    assert {one["predictions"]["conformal"]["guaranteed"] for one in said} == {"error rate"}


def test_the_page_shows_names_the_rest_as_counts_and_finds_keys(folder):
    page = FleetPage(lambda: shown(str(folder)), lambda key: read_log(folder, key))
    with serving(page.routes(), "127.0.0.1", 0) as port:

        def get(path):
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}") as answer:
                assert "script-src" not in answer.headers["Content-Security-Policy"]
                return answer.read().decode()

        first = get("/")
        assert "1 key that changed" in first
        assert "The other 2 keys" in first
        assert first.count("<tr>") == 2  # the head and one line
        assert "<svg" in first
        found = get("/?find=rIGA")
        assert 'href="key?of=Riga%20%3Cb%3E">Riga &lt;b&gt;</a>' in found
        assert "<b>" not in found
        assert "no key holds" in get("/?find=%3Cscript%3E")
        one = get("/key?of=Bern")
        assert "It changed, since about its answer" in one
        assert "Nothing is known to have changed" in get("/key?of=Oslo")
        assert "142 asked, 140 answered, 2 wait" in get("/key?of=Oslo")
        assert "there is no such key" in get("/key?of=none")
        with pytest.raises(urllib.error.HTTPError, match="404"):
            get("/run.json")


def test_the_page_of_a_fleet_that_is_not_there_says_so(tmp_path):
    page = FleetPage(lambda: shown(str(tmp_path)), lambda key: [])
    for path in ("/", "/key"):
        assert b"must be the folder of a fleet" in page.routes()[path]({}).body


def test_report_metrics_and_monitor(folder, tmp_path):
    done = run("report", folder, "--out", tmp_path / "fleet.html", "--title", "Shops <1>")
    assert "verdict: 1 of 3 keys changed" in done.output
    report = (tmp_path / "fleet.html").read_text()
    assert "<h1>Shops &lt;1&gt;</h1>" in report
    assert "href=" not in report.replace('href="data:,"', "")
    metrics = run("metrics", folder, "--once").output
    assert re.search(r"^venn_fleet_changed_keys 1\.0$", metrics, re.MULTILINE)
    assert re.search(r"^venn_fleet_questions_total 422\.0$", metrics, re.MULTILINE)
    assert "Bern" not in metrics
    assert "verdict: 1 of 3 keys changed" in run("monitor", folder).output
    found = json.loads(run("monitor", folder, "--json").output)
    assert [one["key"] for one in found["changed"]] == ["Bern"]
    assert len(found["all"]) == 3


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--patience", "5"), "--patience does not go with --key"),
        (("--floor", ".8"), "--floor does not go with --key"),
        (("--answer-error", ".1"), "--answer-error does not go with --key: leave it out"),
        (("--ripe", "5", "--silent", "no"), "--ripe does not go with --key"),
        (("--labels-by-lot", ".5"), "--labels-by-lot does not go with --key"),
        (("--key", "id"), "key must be another name"),
    ],
)
def test_what_does_not_go_with_a_key(tmp_path, arguments, words):
    (tmp_path / "in.jsonl").write_text("")
    command = ["run", "--source", f"jsonl:{tmp_path / 'in.jsonl'}", "--journal", tmp_path / "f", *OPTIONS, *arguments]
    done = CliRunner().invoke(main, [str(one) for one in command])
    assert done.exit_code
    assert words in done.stderr
    assert words in CliRunner().invoke(main, [*map(str, command), "--check"]).stderr


def test_a_plan_says_that_there_is_a_model_for_each_key(folder, tmp_path):
    def planned(journal, source="jsonl:in.jsonl", code=0):
        return run("run", "--source", source, "--journal", journal, *OPTIONS, "--check", code=code)

    assert "a model of its own for each shop" in planned(tmp_path / "new").output
    assert f"journal: the folder {tmp_path / 'new'}, a new one" in planned(tmp_path / "new").output
    assert f"journal: the folder {folder}, goes on with 3 keys" in planned(folder).output
    (tmp_path / "file").write_text("")
    assert "must be a folder" in planned(tmp_path / "file", code=2).stderr
    refused = planned(tmp_path / "new", "csv:in.csv", code=2).stderr
    assert "--key does not go with csv:in.csv: it goes with jsonl:FILE or -, redis://..., kafka://..." in refused


test_bad_messages = refused(lambda text: Decoder(Form(key="shop")).json(text), [
    ('{"id": 7, "x": [1]}', "shop must be text without a slash"),
    ('{"shop": "a/b", "id": 7, "x": [1]}', "shop must be text without a slash"),
    ('{"shop": 3, "id": 7, "x": [1]}', "shop must be text without a slash"),
    ('{"shop": "a", "x": [1]}', "must have an id beside shop"),
], kind=ValueError)  # fmt: skip


def test_each_key_calibrates_a_model_of_your_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "of_shops.py").write_text(
        "import numpy as np\nclass Signs:\n    classes_ = np.array(['no', 'yes'])\n"
        "    def predict_proba(self, X):\n"
        "        p = np.where(np.asarray(X, float)[:, 0] > 1, 0.9, 0.2)\n        return np.column_stack([1 - p, p])\n"
    )
    (tmp_path / "in.jsonl").write_text("".join(f"{one}\n" for one in lines(8)[:-1]))
    command = ("run", "--source", "jsonl:in.jsonl", "--end", "--scorer", "of_shops:Signs", "--journal", "shops")
    assert "3 keys, 26 asked, 24 answered" in run(*command, "--key", "shop", "--out", "out").stderr
    said = [json.loads(line) for line in (tmp_path / "out").read_text().splitlines()]
    assert [(one["key"], set(one["predictions"])) for one in said[:1]] == [("Oslo", {"forecast", "intervals", "sets"})]
    assert "key must be another name" in run(*command, "--key", "id", code=1).stderr
