"""``venn run``: whoever dies and whenever, each message counts once; what it says, writes and refuses."""

import json
import os
import random
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from urllib.request import urlopen

import pytest
from click.testing import CliRunner
from conftest import well
from ports import RedisServer, free_port
from run_cases import CLASSES, OPTIONS, Life, counts, events, left, line, nobody_survives, parts, printed, shown, until  # noqa: F401

import streams
import venn
from venn import cli
from venn.cli import service
from venn.cli.access import guard
from venn.cli.output import Output, prediction_line
from venn.cli.predictors import PREDICTORS
from venn.online.loop import Online

N = 160


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run the command in an empty folder, in this process."""
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(cli.main, ["run", *map(str, arguments)])


def online(path=None):
    """Make by hand what the options of the tests make."""
    machine = venn.LeastSquaresSVM(venn.RBF(0.5), 1.0, CLASSES)
    panel = venn.Panel(inductive=PREDICTORS["inductive"][1](machine))
    return Online(panel, {"inductive": venn.Monitor(CLASSES)}, path)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """What a run over a file leaves that nobody disturbs, and what it prints."""
    folder = tmp_path_factory.mktemp("undisturbed")
    (folder / "in.jsonl").write_text("".join(map(line, events(N))))
    source = f"jsonl:{folder / 'in.jsonl'}"
    arguments = ["run", "--source", source, "--journal", str(folder / "run.db"), "--end", *OPTIONS]
    result = well(CliRunner().invoke(cli.main, arguments))
    return left(folder / "run.db"), [json.loads(text) for text in result.stdout.splitlines()]


def test_it_is_the_loop_that_one_would_write(undisturbed, tmp_path):
    tables, lines = undisturbed
    answered, expected = 0, []
    with online(tmp_path / "run.db") as by_hand:
        for event in events(N):
            if hasattr(event, "x"):
                prediction = by_hand.ask(event.x, f"k{event.id}")["inductive"]
                expected.append((f"k{event.id}", by_hand.asked + by_hand.answered, prediction))
            else:
                by_hand.answer(f"k{event.id}", event.y)
                answered += 1
    assert left(tmp_path / "run.db") == tables
    assert (len(lines), len(tables["answers"])) == (N, answered)
    for (id, number, prediction), said in zip(expected, lines, strict=True):
        assert said == {
            "id": id,
            "event": number,
            "predictions": {
                "inductive": {
                    "label": prediction.label, "best": prediction.best, "lower": prediction.lower,
                    "upper": prediction.upper, "probabilities": dict(zip(CLASSES, prediction.proba, strict=True)),
                    "intervals": dict(zip(CLASSES, prediction.bounds.T.tolist(), strict=True)),
                    "guaranteed": prediction.guaranteed,
                }
            },
        }  # fmt: skip


# Redis: whoever dies -------------------------------------------------------------------------------------------------


def produce(url, wanted, pause):
    """Send the messages, each as often as it takes until the server has it."""
    with streams.RedisStream(url, "s") as stream:
        for event in wanted:
            while True:
                try:
                    stream.send(*parts(event))
                    break
                except OSError:
                    time.sleep(0.02)
            time.sleep(pause)


@pytest.mark.skipif(shutil.which("redis-server") is None, reason="redis-server is not installed")
def test_redis_and_the_run_are_killed_and_each_message_counts_once(tmp_path, undisturbed):
    pytest.importorskip("redis", reason="the package redis is not installed")
    wanted, (tables, lines) = events(N), undisturbed
    server = RedisServer(tmp_path)
    arguments = ("--source", f"{server.url}?stream=s", "--journal", "run.db", *OPTIONS, "--out", "out.jsonl")
    hasty = ("--set", "run.batch=7", "--set", "run.linger=0.02", "--set", "journal.every=20")
    producer = threading.Thread(target=produce, args=(server.url, wanted, 0.004))
    dice = random.Random(0)
    journal = tmp_path / "run.db"
    deaths = 0
    try:
        life = Life(tmp_path, *arguments, *hasty)
        producer.start()
        for number in range(6):
            goal = (number + 1) * N // 8
            until(lambda: counts(journal)[0] >= goal)  # noqa: B023 - called before the next one
            if number == 2:
                server.kill()
                until(lambda: "is away" in life.said)  # noqa: B023
                server.start()
            else:
                time.sleep(dice.uniform(0, 0.02))
                assert life.send(signal.SIGKILL).end() == -signal.SIGKILL
                deaths += 1
                life = Life(tmp_path, *arguments, *hasty)
                # It hears signals from then on; the one before may already have done what is waited for next.
                until(lambda: life.said.count("goes on after") == deaths)  # noqa: B023
        until(lambda: counts(journal) == (N, len(tables["answers"])))
        producer.join()
        assert life.send(signal.SIGTERM).end() == 0, life.said
    finally:
        server.kill()
    assert deaths == 5
    assert left(journal) == tables
    assert printed(tmp_path / "out.jsonl") == lines
    assert "Traceback" not in life.said
    assert life.said.count("is away") >= 1
    assert life.said.count("goes on after") == deaths


# Files, stdin, signals -----------------------------------------------------------------------------------------------


def test_a_growing_file_in_a_process_of_its_own_with_metrics_and_sigterm(tmp_path, undisturbed):
    port = free_port()
    path, journal, wanted = tmp_path / "in.jsonl", tmp_path / "run.db", events(N)
    path.write_text("".join(map(line, wanted[:50])))
    arguments = ["--source", "jsonl:in.jsonl", "--journal", "run.db", "--metrics-port", str(port), *OPTIONS]
    process = subprocess.Popen(
        [sys.executable, "-m", "venn", "run", *arguments],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    asked = sum(hasattr(event, "x") for event in wanted[:50])
    try:
        until(lambda: counts(journal)[0] == asked)
        with path.open("a") as file:
            file.writelines(map(line, wanted[50:]))
        until(lambda: counts(journal) == (N, len(undisturbed[0]["answers"])))
        with urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
            assert f"venn_questions_total {float(N)}" in answer.read().decode()
    finally:
        process.send_signal(signal.SIGTERM)
        out, said = process.communicate(timeout=60)
    assert process.returncode == 0, said
    assert [json.loads(text) for text in out.splitlines()] == undisturbed[1]
    assert left(journal) == undisturbed[0]
    assert f"metrics: http://127.0.0.1:{port}/metrics" in said
    *_, summary, last = said.splitlines()
    assert summary.startswith(f"{N} asked and ")
    assert last.startswith("verdict: inductive: Wait, too early to say: ")


def test_stdin_to_its_end_and_what_is_refused(tmp_path):
    read, write = os.pipe()
    wanted = events(20)
    stray = ['{"id": "k1", "x": [0, 0]}\n', '{"id": "k99", "y": "no"}\n']
    os.write(write, "".join([*map(line, wanted), *stray, *(line(e) for e in wanted if hasattr(e, "y"))]).encode())
    os.close(write)
    life = Life(tmp_path, "--source", "-", "--journal", "run.db", *OPTIONS, stdin=read)
    os.close(read)
    assert life.end() == 0, life.said
    answers = sum(hasattr(event, "y") for event in wanted)
    assert counts(tmp_path / "run.db") == (20, answers)
    assert [one["id"] for one in printed(life.out)] == [f"k{i}" for i in range(1, 21)]
    assert "refused a question: standard input at" in life.said
    assert "id must be that of a question that waits, got 'k99', which was never asked" in life.said
    last = life.said.splitlines()[-2]
    assert last.endswith(f"refused a question 1 times, refused an answer {answers + 1} times")


def test_ctrl_c_ends_after_the_batch_and_a_second_one_at_once(tmp_path, undisturbed):
    (tmp_path / "in.jsonl").write_text("".join(map(line, events(N))))
    arguments = ("--source", "jsonl:in.jsonl", "--journal", "run.db", *OPTIONS)
    life = Life(tmp_path, *arguments)
    until(lambda: counts(tmp_path / "run.db")[0] == N)
    assert life.send(signal.SIGINT).end() == 130
    assert left(tmp_path / "run.db") == undisturbed[0]
    life = Life(tmp_path, *arguments)  # says nothing again
    until(lambda: life.said.count("goes on after") == 1)
    assert life.send(signal.SIGINT).send(signal.SIGINT).end() == 130
    assert printed(life.out) == undisturbed[1]


def test_after_a_burst_viewers_see_its_last_events_though_none_come_after(tmp_path, monkeypatch):
    monkeypatch.setattr("venn.online.restart.FRESH", 1.0)
    (tmp_path / "in.jsonl").write_text("".join(map(line, events(N))))
    Life(tmp_path, "--source", "jsonl:in.jsonl", "--journal", "run.db", *OPTIONS)
    until(lambda: counts(tmp_path / "run.db")[0] == N)
    until(lambda: shown(tmp_path / "run.db") == counts(tmp_path / "run.db")[1], seconds=20)


def test_a_bad_line_stops_the_run_where_it_stands_or_is_skipped(run, tmp_path, undisturbed):
    wanted = list(map(line, events(N)))
    path = tmp_path / "in.jsonl"
    path.write_text("".join([*wanted[:30], '{"id": 5, "x": [1]}\n', *wanted[30:]]))
    arguments = ("--source", "jsonl:in.jsonl", "--journal", "run.db", "--end", "--out", "o", "--quiet", *OPTIONS)
    for _ in range(2):
        result = run(*arguments)
        assert (result.exit_code, result.stdout) == (1, "")
        assert result.stderr == "Error: in.jsonl, line 31: x must have 2 values, got 1\n"
        assert sum(counts("run.db")) == 30  # what came before it counts, once
    result = run(*arguments, "--skip-bad")
    assert (result.exit_code, result.output) == (0, "")
    assert left("run.db") == undisturbed[0]
    assert printed(tmp_path / "o") == undisturbed[1]
    (tmp_path / "last.jsonl").write_text('{"id": 1, "x": [0, 1]}\n?\n')
    arguments = ("--source", "jsonl:last.jsonl", "--journal", "last.db", "--end", *OPTIONS)
    assert "skipped a bad message: last.jsonl, line 2" in run(*arguments, "--skip-bad").stderr
    assert run(*arguments).exit_code == 0  # the position after it was kept
    (tmp_path / "gap.csv").write_text("a,b,y\n1,0,0\n,0,1\n2,0,1\n")
    arguments = ("--source", "csv:gap.csv", "--label", "y", "--journal", "gap.db", "--end", "--classes", "0,1")
    alone, skipped = run(*arguments).stderr, run(*arguments, "--skip-bad").stderr
    advice = "gap.csv, line 3: x, feature 'a' is missing, got '': --fill a="
    assert f"Error: {advice}" in alone
    assert f"skipped a bad message: {advice}" in skipped


@pytest.mark.parametrize("depth", [101, 500, 900, 930, 960, 999, 100_000])
def test_a_message_nested_too_deep_ends_no_service(depth, run, tmp_path):
    poison = '{"id": 1, "x": ' + "[" * depth + "1" + "]" * depth + "}\n"
    (tmp_path / "in.jsonl").write_text(f'{{"id": 0, "x": [0, 1]}}\n{poison}{{"id": 2, "x": [0, 1]}}\n')
    arguments = ("--source", "jsonl:in.jsonl", "--journal", "run.db", "--end", "--out", "o", "--skip-bad", *OPTIONS)
    result = run(*arguments)
    assert (result.exit_code, counts("run.db")) == (0, (2, 0)), result.output
    assert "line 2: must be JSON nested at most 100 deep, got" in result.stderr


@pytest.mark.parametrize(
    ("gap", "wrong"), [("", "is missing, got ''"), ("NA", "is missing, got 'NA'")], ids=["empty", "NA"]
)
def test_a_live_file_with_text_and_gaps_says_which_options_read_it(run, tmp_path, gap, wrong):
    (tmp_path / "in.csv").write_text(f"age,it's,y\n30,red,no\n{gap},blue,yes\n")
    source = ("--source", "csv:in.csv", "--label", "y", "--classes", "no,yes", "--end", "--quiet", "--out", "o")

    def said(journal, *options):
        result = run(*source, "--journal", journal, *options)
        return result.exit_code, result.stderr

    name = "'it'\"'\"'s'"  # as a shell takes it
    options = f"--nominal {name}=VALUE,VALUE, or --skip {name}"
    assert said("a.db") == (1, f"Error: in.csv, line 2: x, feature \"it's\" must be a number, got 'red': {options}\n")
    nominal = ("--nominal", "it's=red,blue")
    answer = (1, f"Error: in.csv, line 3: x, feature 'age' {wrong}: --fill age=NUMBER, or --skip age\n")
    assert said("b.db", *nominal) == answer
    assert said("c.db", *nominal, "--fill", "age=40") == said("d.db", *nominal, "--skip", "age") == (0, "")


@pytest.mark.parametrize("kind", ["nominal", "ordinal"])
def test_an_empty_field_among_declared_words_says_what_reads_it(run, tmp_path, kind):
    (tmp_path / "in.csv").write_text("age,town,y\n30,Oslo,no\n40,,yes\n")
    source = ("--source", "csv:in.csv", "--label", "y", "--classes", "no,yes", "--end", "--quiet", "--out", "o")
    told = run(*source, "--journal", "a.db", f"--{kind}", "town=Oslo,Rome").stderr
    ways = "--config with a file in which \"\" is among the values of 'town', or --skip town"
    assert told == f"Error: in.csv, line 3: x, feature 'town' is missing, got '': {ways}\n"
    (tmp_path / "run.toml").write_text(f'[source]\n{kind} = {{ town = ["", "Oslo", "Rome"] }}\n')
    assert run(*source, "--config", "run.toml", "--journal", "b.db").exit_code == 0
    assert run(*source, "--skip", "town", "--journal", "c.db").exit_code == 0


def test_messages_that_take_long_make_several_transactions(run, tmp_path, monkeypatch):
    (tmp_path / "in.jsonl").write_text("".join(map(line, events(12))))
    arguments = ("--source", "jsonl:in.jsonl", "--end", "--quiet", *OPTIONS)
    assert run(*arguments, "--journal", "one.db", "--out", "one").exit_code == 0
    now, begun, ask, transaction = [0.0], [], Online.ask, Online.transaction

    def slow(self, *given):
        now[0] += 1
        return ask(self, *given)

    monkeypatch.setattr(service, "monotonic", lambda: now[0])
    monkeypatch.setattr(Online, "ask", slow)
    monkeypatch.setattr(Online, "transaction", lambda self: begun.append(1) or transaction(self))
    assert run(*arguments, "--journal", "many.db", "--out", "many").exit_code == 0
    assert len(begun) >= 12
    assert left("many.db") == left("one.db")
    assert printed(tmp_path / "many") == printed(tmp_path / "one")


def test_null_in_a_message_is_missing(run, tmp_path):
    (tmp_path / "in.jsonl").write_text('{"id": 1, "x": {"age": null, "b": 1.5}}\n')
    source = ("--source", "jsonl:in.jsonl", "--features", "age,b", "--classes", "no,yes", "--end", "--quiet")
    told = run(*source, "--journal", "a.db", "--out", "o").stderr
    assert told == "Error: in.jsonl, line 1: x, feature 'age' is missing, got null: --fill age=NUMBER, or --skip age\n"
    assert run(*source, "--journal", "b.db", "--out", "o", "--fill", "age=40").exit_code == 0
    with closing(sqlite3.connect(tmp_path / "b.db")) as db:
        (x,) = db.execute("SELECT x FROM questions").fetchone()
    assert struct.unpack("<2d", x) == (40.0, 1.5)


def test_a_file_cut_short_stops_the_run_or_is_read_anew(run, tmp_path):
    path, wanted = tmp_path / "in.jsonl", list(map(line, events(20)))
    path.write_text("".join(wanted))
    arguments = ("--source", "jsonl:in.jsonl", "--journal", "run.db", "--end", "--quiet", "--out", "o", *OPTIONS)
    assert run(*arguments).exit_code == 0
    before = left("run.db")
    with path.open("r+") as file:
        file.truncate(len(wanted[0]))
    result = run(*arguments)
    assert result.exit_code == 1
    assert "it was cut short" in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert run(*arguments, "--skip-lost").exit_code == 0  # the question in it is known
    assert left("run.db") == before


# What goes out -------------------------------------------------------------------------------------------------------


def test_lines_that_a_death_cut_off_at_any_byte_are_written_once(tmp_path):
    journal, path = venn.online.Journal(tmp_path / "run.db"), tmp_path / "out.jsonl"
    with online(journal) as asked:
        output = Output(str(path))
        assert output.catch_up(asked, journal) == 0
        lines = []
        for number in range(3):
            with asked.transaction():
                output.note(asked)
                lines.append(prediction_line(number + 1, number, asked.ask([0.0, number], number)))
            if number == 0:
                output.write(lines, 1)  # and the next two transactions die before they are written
        content = "".join(f"{one}\n" for one in lines).encode()
        first = len(lines[0]) + 1
        for there in (b"", *(content[:cut] for cut in range(first, len(content) + 1))):
            path.write_bytes(there)
            Output(str(path)).catch_up(asked, journal)
            # From an empty file nobody knows that it is not the one that was written to, put by.
            assert path.read_bytes() == (content[first:] if there == b"" else content)
        for there in (content[:first] + b"other", content + b'{"lost": tru'):
            path.write_bytes(there)
            Output(str(path)).catch_up(asked, journal)
            again = there + b"\n" + content[first:] if b"other" in there else there + b"\n"
            assert path.read_bytes() == again
        elsewhere = Output(str(tmp_path / "elsewhere"))
        assert elsewhere.catch_up(asked, journal) == 2
        assert (tmp_path / "elsewhere").read_bytes() == content[first:]


def test_a_line_holds_the_label_that_came_with_its_question_also_after_a_death(run, tmp_path, monkeypatch):
    """Not the one that came in a message of its own, right after it or later; refused ones are no labels."""
    wanted = ['{"id": 1, "x": [0, 0], "y": "no"}', '{"id": 2, "x": [0, 1]}', '{"id": 2, "y": "yes"}',
              '{"id": 3, "x": [1, 1], "y": "yes"}', '{"x": [1, 1], "y": "no"}']  # fmt: skip
    (tmp_path / "in.jsonl").write_text("\n".join(wanted) + "\n")
    given = ("--source", "jsonl:in.jsonl", "--end", "--quiet", *OPTIONS)
    assert run(*given, "--journal", "whole.db", "--out", "whole").exit_code == 0
    lines = printed(tmp_path / "whole")
    assert [one.get("y") for one in lines] == ["no", None, "yes", "no"]
    for one in lines:
        said = one["predictions"]["inductive"]
        assert said["intervals"][said["label"]] == [said["lower"], said["upper"]]
    with monkeypatch.context() as patched:
        patched.setattr(Output, "write", lambda *_: (_ for _ in ()).throw(OSError("no room")))
        assert run(*given, "--journal", "run.db", "--out", "o").exit_code == 1
    assert run(*given, "--journal", "run.db", "--out", "o").exit_code == 0
    assert (tmp_path / "o").read_bytes() == (tmp_path / "whole").read_bytes()


def test_predictions_that_could_not_be_written_come_with_the_next_run(run, tmp_path, undisturbed):
    (tmp_path / "in.jsonl").write_text("".join(map(line, events(N))))
    arguments = ("--source", "jsonl:in.jsonl", "--journal", "run.db", "--end", "--quiet", *OPTIONS)
    if Path("/dev/full").exists():
        result = run(*arguments, "--set", "run.batch=11", "--out", "/dev/full")
        assert result.exit_code == 1
        assert result.output.startswith("Error: --out must be a place that can be written, got /dev/full")
        assert 0 < sum(counts("run.db")) <= 11
    for _ in range(2):
        result = run(*arguments, "--out", "in.jsonl/o")
        assert result.exit_code == 1
        wanted = f"Error: --out must be a place that can be written, got {tmp_path / 'in.jsonl/o'}: Not a directory\n"
        assert result.output == wanted
    assert run(*arguments, "--out", "o", "--durable").exit_code == 0
    assert printed(tmp_path / "o") == undisturbed[1]
    assert left("run.db") == undisturbed[0]


def test_a_message_is_not_left_half_way_when_memory_runs_out(run, tmp_path, monkeypatch):
    wanted = [
        {"x": [i % 3, i % 2], "y": CLASSES[i % 2]} for i in range(40)
    ]  # without ids: nobody would notice a second
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(one) + "\n" for one in wanted))
    given = (
        "--source", "jsonl:in.jsonl", "--end", "--quiet", "--set", "run.batch=16", "--set", "journal.every=1", *OPTIONS,
    )  # fmt: skip
    assert run(*given, "--journal", "whole.db", "--out", "whole").exit_code == 0
    answer, seen = Online.answer, []

    def exhausted(self, id, y):
        seen.append(id)
        if len(seen) == 25:
            raise MemoryError
        return answer(self, id, y)

    monkeypatch.setattr(Online, "answer", exhausted)
    for code in (1, 0):
        assert run(*given, "--journal", "run.db", "--out", "o").exit_code == code
        assert counts("run.db") == ((16, 16) if code else (40, 40))
    assert left("run.db") == left("whole.db")
    assert (tmp_path / "o").read_bytes() == (tmp_path / "whole").read_bytes()


def test_a_reader_of_stdout_that_goes_away_is_one_line(tmp_path, undisturbed):
    (tmp_path / "in.jsonl").write_text("".join(map(line, events(N))))
    arguments = (
        "--source", "jsonl:in.jsonl", "--journal", "run.db", "--end", "--quiet", "--set", "run.batch=9", *OPTIONS,
    )  # fmt: skip
    read, write = os.pipe()
    os.close(read)
    life = Life(tmp_path, *arguments, stdout=write)
    os.close(write)
    assert life.end() == 1
    assert life.said == "Error: nobody reads stdout any more: the same command goes on\n"
    assert Life(tmp_path, *arguments).end() == 0
    assert printed(life.out) == undisturbed[1]


# Settings ------------------------------------------------------------------------------------------------------------

TOML = """
[run]
batch = 10
out = "o"
[source]
url = "jsonl:in.jsonl"
classes = ["no", "yes"]
features = ["a", "b"]
end = true
[predictor]
names = ["inductive"]
[machine]
gamma = 0.5
C = 3
[monitor]
conformal = false
drift = false
[journal]
path = "run.db"
"""


def test_files_of_windows_begin_with_a_mark(run, tmp_path):
    (tmp_path / "in.jsonl").write_text("")
    (tmp_path / "run.toml").write_text("\ufeff" + TOML, encoding="utf-8", newline="\r\n")
    well(run("--config", "run.toml", "--check"))
    (tmp_path / "token").write_text("\ufeffcorrect-horse-battery\r\n", encoding="utf-8", newline="")
    access = SimpleNamespace(token=None, token_file=str(tmp_path / "token"), no_token=False, allow_host=None)
    given = SimpleNamespace(access=access, where=lambda *_: "--token-file")
    assert guard(given)["token"] == "correct-horse-battery"


def test_a_toml_file_and_options_that_go_first(run, tmp_path, undisturbed):
    (tmp_path / "in.jsonl").write_text("".join(map(line, events(N))))
    (tmp_path / "run.toml").write_text(TOML)
    result = well(run("--config", "run.toml", "--check"))
    assert result.stdout.splitlines() == [
        "inductive: least-squares SVM with RBF(gamma=0.5), C=3", f"source: file {tmp_path / 'in.jsonl'}",
        "classes: 'no', 'yes'", "predictions: o", "journal: run.db, a new one",
    ]  # fmt: skip
    assert {path.name for path in tmp_path.iterdir()} == {"in.jsonl", "run.toml"}
    assert run("--config", "run.toml", "--C", 1, "--quiet").exit_code == 0
    assert left("run.db") == undisturbed[0]
    answers = len(undisturbed[0]["answers"])
    checked = run("--config", "run.toml", "--C", 1, "--check").stdout
    assert f"journal: run.db, goes on after {N} questions and {answers} answers" in checked
    for extra in ((), ("--check",)):
        result = run("--config", "run.toml", *extra)
        assert result.exit_code == 1
        assert "Error: run.db holds a run whose predictor inductive has C=1.0, not C=3.0" in result.stderr
    result = run("--config", "run.toml", "--C", 1, "--level", "0.02")
    assert "Error: run.db holds a run whose monitor of inductive has level=" in result.stderr
    result = run("--config", "run.toml", "--C", 1, "--predictors", "conformal")
    assert "Error: run.db holds a run of the predictors inductive, not conformal" in result.stderr
    result = run("--config", "run.toml", "--C", 1, "--classes", "no,maybe")
    assert "Error: run.db holds a run of the classes ('no', 'yes'), not the classes ('no', 'maybe')" in result.stderr
    result = run("--config", "run.toml", "--C", 1, "--source", "jsonl:other.jsonl")
    assert result.exit_code == 1
    assert f"run.db has read 'file {tmp_path / 'in.jsonl'}' and goes on with that, got the source" in result.stderr
    assert result.stderr.endswith("to add a source, use --new-source; a file that grows is read by --source csv:FILE\n")
    assert left("run.db") == undisturbed[0]


def test_another_sqlite_file_and_a_journal_in_use(run, tmp_path):
    (tmp_path / "text.db").write_text("no journal " * 100)
    result = run("--source", "car", "--journal", "text.db")
    assert result.exit_code == 1
    assert "text.db cannot be opened as a journal: file is not a database" in result.stderr
    with online(tmp_path / "run.db"):
        (tmp_path / "in.jsonl").write_text("")
        result = run("--source", "jsonl:in.jsonl", "--journal", "run.db", "--end", *OPTIONS)
        assert result.exit_code == 1
        assert result.stderr == "Error: run.db must belong to one process, and another one has it open\n"


def test_a_process_that_died_before_its_run_had_begun(run, tmp_path, undisturbed):
    """Between making the file and writing its tables: a database without any, of which the run knows nothing."""
    (tmp_path / "in.jsonl").write_text("".join(map(line, events(N))))
    arguments = ("--source", "jsonl:in.jsonl", "--journal", "run.db", "--end", *OPTIONS)
    with closing(sqlite3.connect("run.db")) as db:
        db.execute("PRAGMA journal_mode = WAL")
    assert Path("run.db").read_bytes().startswith(b"SQLite format 3\0")
    checked = well(run(*arguments, "--check"))
    assert "journal: run.db, a new one" in checked.output
    well(run(*arguments))
    assert left("run.db") == undisturbed[0]


def test_a_process_that_died_while_it_made_the_file(run, tmp_path, undisturbed):
    """Its rollback journal is there, with pages that must be put back before anything can be read."""
    (tmp_path / "in.jsonl").write_text("".join(map(line, events(N))))
    with closing(sqlite3.connect("made.db", isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA journal_mode = DELETE")
        db.execute("PRAGMA cache_size = 2")
        db.execute("BEGIN IMMEDIATE")
        db.execute("CREATE TABLE half (x)")
        for _ in range(50):
            db.execute("INSERT INTO half VALUES (zeroblob(4000))")  # more than the cache holds: written before its time
        for end in ("", "-journal"):
            shutil.copy(f"made.db{end}", f"run.db{end}")
        db.execute("ROLLBACK")
    arguments = ("--source", "jsonl:in.jsonl", "--journal", "run.db", "--end", *OPTIONS)
    assert "journal: run.db, a new one" in run(*arguments, "--check").output
    well(run(*arguments))
    assert left("run.db") == undisturbed[0]
