"""The command ``venn serve``: a real process that is killed, told to end, and goes on; what it refuses to begin."""

import json
import signal
import ssl
import subprocess
import time
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner
from conftest import well
from serve_cases import forecaster, process

import venn
from venn import cli
from venn.show.apart import WebProcess
from venn.show.server import serving

CAR = {"buying": "vhigh", "maint": "low", "doors": "2", "persons": "4", "lug_boot": "big", "safety": "high"}


def post(address, path, message, **options):
    """Return the reply to a request that is sent until there is one."""
    for _ in range(200):
        try:
            reply = httpx.post(f"{address}{path}", json=message, timeout=60, **options)
        except httpx.TransportError:
            time.sleep(0.05)
            continue
        if reply.status_code != 503:
            return reply
        time.sleep(0.05)
    raise AssertionError("no reply")


def test_a_process_that_is_killed_goes_on_and_one_that_is_told_to_end_writes_its_last_checkpoint(tmp_path):
    told = {}
    with process(tmp_path, "--port", 0, "--journal", "run.db", "--like", "car") as made:
        for number in range(12):
            told["/ask", number] = post(made.address, "/ask", {"id": number, "x": CAR}).text
            told["/answer", number] = post(made.address, "/answer", {"id": number, "y": "acc"}).text
        made.send_signal(signal.SIGKILL)
        made.wait(30)
    with process(tmp_path, "--port", 0, "--journal", "run.db", "--like", "car") as made:
        assert "goes on after 12 questions and 12 answers" in made.stderr.readline()
        for (path, number), text in told.items():
            message = {"id": number, "x": CAR} if path == "/ask" else {"id": number, "y": "acc"}
            assert post(made.address, path, message).text == text
        assert post(made.address, "/ask", {"id": "last", "x": CAR}).status_code == 200
        made.send_signal(signal.SIGTERM)
        assert made.wait(30) == 0
        assert "Traceback" not in made.stderr.read()
    assert (tmp_path / "run.db-state-000000000025").exists()
    verified = CliRunner().invoke(cli.main, ["verify", str(tmp_path / "run.db")])
    assert "13 questions, 12 answers" in verified.output


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--journal run.db", "--classes must be declared"), ("--like car", "--journal must say where the journal is"),
        ("--like cars --journal run.db", "--like must be one of car, "),
        ("--like car --classes a,b --journal run.db", "--classes does not go with --like"),
        ("--classes a,b --journal run.db --host 0.0.0.0", "token must be given"),
        ("--classes a,b --journal run.db --root-path churn", "--root-path must be a path"),
        ("--classes a,b --journal run.db --keyfile key.pem", "--keyfile needs --certfile"),
        ("--classes a,b --journal run.db --certfile none.pem", "No such file"),
        ("--classes a,b --journal run.db --source x", "--source is an option of venn run, not of venn serve"),
        ("--classes a,b --journal text.txt", "cannot be opened as a journal"),
    ],
)  # fmt: skip
def test_what_it_refuses_to_begin(options, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("VENN_TOKEN", raising=False)
    Path("text.txt").write_text("no journal")
    result = CliRunner().invoke(cli.main, ["serve", "--port", "0", *options.split()])
    assert result.exit_code in (1, 2), result.output
    assert said in " ".join(result.output.split())


def test_check_says_what_would_run_and_a_journal_of_another_form_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("run.toml").write_text(
        '[source]\nclasses = ["no", "yes"]\nfeatures = ["a", "b"]\n[journal]\npath = "run.db"\n'
    )
    told = well(CliRunner().invoke(cli.main, ["serve", "--config", "run.toml", "--check"]))
    assert "classes: 'no', 'yes'\njournal: run.db, a new one" in told.output
    lines = "".join(json.dumps({"id": i, "x": [i % 3, 1], "y": ("no", "yes")[i % 2]}) + "\n" for i in range(5))
    Path("in.jsonl").write_text(lines)
    run = [
        "run", "--source", "jsonl:in.jsonl", "--end", "--classes", "no,yes", "--features", "a,b", "--journal", "run.db",
    ]  # fmt: skip
    assert CliRunner().invoke(cli.main, [*run, "--quiet", "--out", "out"]).exit_code == 0
    told = CliRunner().invoke(cli.main, ["serve", "--config", "run.toml", "--check"])
    assert "goes on after 5 questions and 5 answers" in told.output
    other = CliRunner().invoke(
        cli.main, ["serve", "--config", "run.toml", "--set", "source.classes=no,maybe", "--check"]
    )
    assert "holds a run of" in other.output


def test_over_tls(tmp_path):
    made = subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
         "-nodes", "-keyout", "key.pem", "-out", "cert.pem",
         "-days", "1", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"],
        cwd=tmp_path, capture_output=True,
    )  # fmt: skip
    if made.returncode:
        pytest.skip("there is no openssl")
    files = str(tmp_path / "cert.pem"), str(tmp_path / "key.pem")
    trusting = ssl.create_default_context(cafile=files[0])
    with WebProcess() as web, venn.serve(forecaster(), tmp_path / "run.db") as app:
        for one in (serving, web.serving):
            with one(app.routes, "127.0.0.1", 0, tls=files) as port:
                said = httpx.post(f"https://127.0.0.1:{port}/ask", json={"id": "a", "x": [1, 1]}, verify=trusting)
                assert said.status_code == 200
