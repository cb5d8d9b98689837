"""The report of a run: one file that asks nobody for anything, and says what the run says."""

import os
import re
import threading
from pathlib import Path

import numpy as np
import pytest
from browsing import Viewer, browser, chromium  # noqa: F401
from click.testing import CliRunner
from conftest import well
from page_cases import CLASSES, HOSTILE, predictions, write

from venn import cli
from venn.cli.journals import Recorded
from venn.online.record import Record
from venn.online.watch import Watch
from venn.show.page.feed import FollowedRun


@pytest.fixture
def command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(cli.main, ["report", *map(str, arguments)])


def recorded(n, flip=None, names="venn abers conformal platt"):
    """Return a record of n steps of all kinds of predictions."""
    rng = np.random.default_rng(0)
    record = Record(CLASSES, names.split(), data="made", parameters={name: f"{name}(<b>)" for name in names.split()})
    for step in range(n):
        y = CLASSES[2] if flip is not None and step >= flip else CLASSES[0 if rng.random() < 0.7 else 1]
        record.update(predictions(rng, names), y)
    return record


def test_a_record_is_a_run_that_has_ended(monkeypatch):
    monkeypatch.setattr("venn.show.page.feed.MOST_POINTS", 1000)
    record = recorded(1100)
    run = FollowedRun(Recorded(record))
    run.finish()
    assert (run.counts.asked, run.counts.answered, run.counts.pending) == (1100, 1100, 0)
    steps = [point.step for point in run.points]
    assert steps[-1] == 1100
    assert len(steps) <= 1001
    means = record.means()
    for name in run.names:
        last = run.points[-1].figures[name]["curves"]
        for field in ("accuracy", "lower", "upper", "log_loss", "error_0.05", "size_0.1"):
            assert (field in last) == (field in means[name])
            if field in last:
                assert last[field] == pytest.approx(means[name][field])
        hits = record.outcomes(name).predicted == record.outcomes(name).truth
        for point in run.points[::100]:
            assert point.figures[name]["curves"]["accuracy"] == pytest.approx(hits[: point.step].mean())
            window = hits[max(0, point.step - 1000) : point.step]
            assert point.figures[name]["window"]["accuracy"] == pytest.approx(window.mean())


def test_alarms_of_a_record_are_those_of_its_monitor():
    record = recorded(200, flip=100)
    run = FollowedRun(Recorded(record))
    for name in run.names:
        known = record.monitor(name, level=0.01 / 5, run_length=500_000).alarms  # one share is that of the objects
        assert [alarm["step"] for alarm in run.alarms[name]] == [alarm.step for alarm in known]
    assert run.alarms["venn"]


def test_the_last_steps_of_a_record():
    record = recorded(30)
    made = np.random.default_rng(0)
    said = []
    for _ in range(30):
        made.random()
        said.append(predictions(made, "venn abers conformal platt"))
    seen = Recorded(record).latest(4)
    assert [one.id for one in seen] == [30, 29, 28, 27]
    for one in seen:
        then = said[one.id - 1]
        for name in ("venn", "abers", "platt"):
            got = one.predictions[name]
            assert (got.label, got.lower, got.upper) == pytest.approx(
                (then[name].label, then[name].lower, then[name].upper)
            )
        assert one.predictions["conformal"].set(0.05) == then["conformal"].set(0.05)
    assert len(Recorded(record).latest(100)) == 30


def test_what_is_no_run_is_refused_and_nothing_written(command, tmp_path):
    recorded(0).save(tmp_path / "empty.npz")
    (tmp_path / "bad.npz").write_bytes(b"PK damage")
    (tmp_path / "bad.db").write_bytes(b"SQLite format 3\0 damage" * 40)
    (tmp_path / "folder").mkdir()
    (tmp_path / "table.csv").write_text("x,y\n1,a\n")
    (tmp_path / "report.html").write_text("before")
    write(tmp_path / "run.db", 5)
    for arguments, said in (
        (("none.db",), "no such file: none.db"),
        (("empty.npz",), "holds no step"),
        (("folder",), "folder is a folder: give a journal, or the record.npz of a replay"),
        (("bad.npz",), "bad.npz is not a readable record"),
        (("bad.db",), "bad.db"),
        (("table.csv",), "table.csv must be a journal of venn run or a record (.npz) of venn replay"),
        (("run.db", "--out", "folder"), "folder"),
        (
            ("run.db", "--out", "report.html/r.html"),
            "--out must be a place that can be written, got report.html/r.html",
        ),
    ):
        result = command(*arguments)
        assert result.exit_code in (1, 2), result.output
        assert said in result.output
        assert "Traceback" not in result.output
    assert (tmp_path / "report.html").read_text() == "before"
    assert not list(tmp_path.glob(".*.tmp"))


def test_a_report_never_takes_the_place_of_a_journal_or_record(command, tmp_path):
    write(tmp_path / "run.db", 5)
    write(tmp_path / "other.db", 5)
    recorded(5, names="conformal").save(tmp_path / "record.npz")
    (tmp_path / "link.db").symlink_to("run.db")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    for run, out, said in (
        ("run.db", "run.db", "--out must be another file than run.db, got run.db"),
        ("run.db", "link.db", "--out must be another file than run.db, got link.db"),
        ("record.npz", "record.npz", "--out must be another file than record.npz"),
        ("run.db", "other.db", "--out must not be a journal, which the report would replace, got other.db"),
    ):
        result = command(run, "--out", out)
        assert result.exit_code == 2, result.output
        assert said in result.output
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_the_file_needs_nothing_and_shows_everything(command, tmp_path, browser):  # noqa: F811
    made = write(tmp_path / "run.db", 96, flip=48)
    title = "A <b>run</b> & more"
    well(command("run.db", "--out", "here/report.html", "--title", title))
    file = tmp_path / "here/report.html"
    content = file.read_text("utf-8")
    # Nothing in it is fetched from elsewhere: no address in an attribute that a browser would follow by itself.
    head = re.sub(r"<script.*?</script>", "", content, flags=re.S)
    assert not re.findall(r"""(?:src|href|url)\s*[=(]\s*["']?\s*(?:https?:)?//""", head)

    viewer = Viewer(browser, file.as_uri(), viewport={"width": 420, "height": 900}, color_scheme="dark")
    viewer.page.locator(".chart svg").first.wait_for()
    page = viewer.page
    assert page.title() == title
    assert page.locator("h1").inner_text() == title
    page.wait_for_function("document.querySelectorAll('.predictor').length == 4")
    for name, monitor in made.told.items():
        accuracy = monitor.snapshot()["curves"]["accuracy"]
        row = page.locator(f"main tr:has(td:text-is('{name}'))").first
        assert row.locator("td").nth(1).inner_text() == f"{accuracy:.3f}"
    for said in ("with exactly that probability", "Nothing is guaranteed", "At step", "venn(<b>)", f"{HOSTILE}96"):
        page.get_by_text(said).first.wait_for()
    figures = 1 + 4 * 2 + 4 * 2  # compared; accuracy and evidence; two for calibration, of each
    page.wait_for_function(f"document.querySelectorAll('.chart > svg').length == {figures}")
    assert page.evaluate("document.documentElement.scrollWidth") <= 420
    assert page.evaluate("window.hacked") is None
    assert viewer.complaints == []
    assert [to for to in viewer.asked if not to.startswith(("file:", "data:"))] == []


def test_of_a_record_over_another_file(command, tmp_path):
    recorded(40, names="conformal").save(tmp_path / "record.npz")
    (tmp_path / "report.html").write_text("before")
    result = command("record.npz")
    first, last = result.output.splitlines()
    assert first == "wrote report.html"
    assert last.startswith("verdict: conformal: Wait, too early to say: 40 of 300 examples.")
    assert "<title>made: 40 examples, 3 classes</title>" in (tmp_path / "report.html").read_text("utf-8")
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".tmp"] == []


def test_a_run_without_answers_has_a_report(command, tmp_path):
    write(tmp_path / "run.db", 0, "venn", pending=2, expired=0)
    well(command("run.db"))
    with Watch(tmp_path / "run.db") as watch:
        assert FollowedRun(watch).counts.pending == 2
    assert "No prediction has met its label yet." in (tmp_path / "report.html").read_text("utf-8")


def test_on_any_terminal_a_report_is_utf_8(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    record = recorded(30)
    record.save("record.npz")
    given = ["report", "record.npz", "--title", "Größe ≥ 1", "--out", "-"]
    for charset in ("utf-8", "ascii", "latin-1"):
        result = well(CliRunner(charset=charset).invoke(cli.main, given))
        assert "<title>Größe ≥ 1</title>" in result.stdout_bytes.decode()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_a_pipe_gets_the_report_and_stays_a_pipe(command):
    recorded(30).save("record.npz")
    os.mkfifo("pipe")
    got = []
    reader = threading.Thread(target=lambda: got.append(Path("pipe").read_text("utf-8")), daemon=True)
    reader.start()
    result = command("record.npz", "--out", "pipe")
    reader.join(20)
    assert result.exit_code == 0, result.output
    assert Path("pipe").is_fifo()
    assert got[0].endswith("</html>\n")


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="there is no such device")
def test_a_full_device_is_named_and_stays(command):
    recorded(30).save("record.npz")
    for to in ("/dev/full", "link"):
        if to == "link":
            Path("link").symlink_to("/dev/full")
        result = command("record.npz", "--out", to)
        assert result.exit_code == 1
        assert f"--out must be a place that can be written, got {to}: No space left on device" in result.output
        assert Path(to).is_char_device()
