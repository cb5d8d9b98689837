"""The live view: terminals of any size, pipes, a real pseudo-terminal."""

import fcntl
import io
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
from pathlib import Path

import numpy as np
import pytest
from live_cases import snapshots
from rich.cells import cell_len
from rich.console import Console

from venn.monitors.monitor import Monitor
from venn.prediction import Multiprobability
from venn.show.live import Live, lines
from venn.show.repeats import AlarmReporter

NAMES = ["venn", "abers", "platt", "conformal"]
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def terminal(width, height, encoding=None, **options):
    file = io.StringIO() if encoding is None else io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    return Console(width=width, height=height, file=file, force_terminal=True, record=True, **options)


def final(console, cases, names=NAMES, total=1728, title="car"):
    """Return the text that stays on the screen."""
    with Live(title, total, names, console) as live:
        for case in cases:
            live.show({name: case[name] for name in names})
        console.export_text()
    return console.export_text()


@pytest.fixture(scope="module")
def changing():
    return list(snapshots(1728, change=1100, stride=48))


@pytest.fixture(scope="module")
def quiet():
    return list(snapshots(600, stride=40))


# ----------------------------------------------------------------------------- sizes


@pytest.mark.parametrize(
    ("width", "height"),
    [(80, 24), (200, 60), (140, 20), (60, 40), (60, 16), (72, 24), (40, 12), (16, 4), (5, 2), (1, 1)],
)
@pytest.mark.parametrize("names", [NAMES, ["venn"], ["platt", "conformal"]])
def test_fits(changing, width, height, names):
    for console in (terminal(width, height), terminal(width, height, encoding="ascii")):
        text = final(console, changing[-3:], names)
        shown = text.rstrip("\n").split("\n")
        assert len(shown) <= max(height - 1, 1)
        assert max(map(cell_len, shown)) <= width
        if width >= 40:
            assert shown[0].startswith("car   step 1728 of 1728 (100 %)"[:width])


def test_80_by_24_shows_everything(changing):
    text = final(terminal(80, 24), changing)
    head, heads, *rows = text.split("\n")
    assert re.match(r"car   step 1728 of 1728 \(100 %\)   [\d,]+ steps/s", head)
    for column in ("predictor", "accuracy", "claimed", "log loss", "err .05", "set", "evidence", "alarms"):
        assert column in heads
    for name, row in zip(NAMES, rows, strict=False):
        curves = changing[-1][name]["curves"]
        assert row.startswith(name)
        assert f"{curves['accuracy']:.3f}"[1:] in row
        assert row.rstrip().endswith(str(changing[-1][name]["alarms"]["count"]))
    for row in ("8 alarms", "platt: At step 1230"):
        assert row in text


def test_more_predictors_than_lines():
    names = [f"p{i}" for i in range(30)]
    snapshot = {"step": 9, "curves": {"accuracy": 0.5, "lower": 0.4, "upper": 0.6}}
    text = final(terminal(80, 24), [dict.fromkeys(names, snapshot)], names)
    assert "and 17 more" in text
    assert re.search("^p12 ", text, re.MULTILINE)


@pytest.mark.parametrize("name", ["[red]x[/red]", "a\x1b[2Jb\nc", "分類器" * 9, "x" * 50, "é"])
def test_names_and_titles_are_text(quiet, name):
    for console in (terminal(80, 24), terminal(80, 24, encoding="ascii")):
        text = final(console, [{name: case["venn"]} for case in quiet], [name], title=name)
        assert max(map(cell_len, text.split("\n"))) <= 80
        assert "\x1b" not in text
        if name.startswith("["):
            assert name in text


def test_what_a_snapshot_may_lack():
    for snapshot in ({"step": 0}, {"step": 0, "curves": {}, "window": {"size": 0}, "evidence": [], "alarms": {}}):
        assert "venn" in final(terminal(80, 24), [{"venn": snapshot}], ["venn"])
        assert lines({"venn": snapshot}) == ["venn: no alarm"]


@pytest.mark.parametrize("log10", [None, float("-inf"), float("inf"), 1e6, -1e6])
def test_evidence_of_any_size(log10):
    entry = {"name": "rows", "detector": "CUSUM", "log10": log10, "threshold": 4.0}
    case = {"step": 1, "curves": {"accuracy": 1.0, "lower": 0.9, "upper": 0.9}, "evidence": [entry]}
    text = final(terminal(80, 24), [{"a": case}, {"a": case | {"step": 2}}], ["a"])
    assert "CUSUM" in text
    assert "nan" not in text


def test_plain_data_from_a_file_shows_the_same(changing):
    again = [json.loads(json.dumps(case)) for case in changing[-2:]]
    texts = [final(terminal(80, 24), cases) for cases in (changing[-2:], again)]
    assert texts[0].split("\n")[1:] == texts[1].split("\n")[1:]  # all but the rate


def test_it_shows_what_a_monitor_says():
    monitor = Monitor(["no", "yes"], window=50)
    rows = np.array([[0.9, 0.1], [0.8, 0.2]])
    console = terminal(100, 30)
    with Live("always wrong", 60, ["venn"], console) as live:
        for _ in range(60):
            monitor.update(Multiprobability(rows, ["no", "yes"]), "yes")
            live.show({"venn": monitor.snapshot()})
        console.export_text()
    text = console.export_text()
    snapshot = monitor.snapshot()
    for part in ("[.800, .900]", "last 50", "ECE", f"{snapshot['alarms']['count']} alarms"):
        assert part in text
    assert snapshot["alarms"]["last"][-1]["sentence"][:40] in text
    assert snapshot["alarms"]["last"][-1]["sentence"] in lines({"venn": snapshot})[0]


# ----------------------------------------------------------------------------- pipes


@pytest.mark.parametrize("options", [{"force_terminal": False}, {"force_terminal": True, "_environ": {"TERM": "dumb"}}])
def test_elsewhere_one_line_for_each_alarm_and_a_summary(changing, options):
    file = io.StringIO()
    with Live("car", 1728, NAMES, Console(file=file, width=60, **options)) as live:
        for case in changing:
            live.show(case)
    said = file.getvalue().rstrip("\n").split("\n")
    alarms = [
        (a["step"], f"alarm: {name}: {a['sentence']}") for name in NAMES for a in changing[-1][name]["alarms"]["last"]
    ]
    assert len(alarms) == 8
    assert sorted(said[:8]) == sorted(line for _, line in alarms)
    assert said[8] == "car: step 1728 of 1728"
    assert said[9:] == lines(changing[-1])
    assert not re.search(r"(accuracy|claimed|to|errors at|ECE)( [.]05)? 0[.]", file.getvalue())  # but .10
    assert "\x1b" not in file.getvalue()


def ringing(steps, level=0.01):
    """Return a snapshot of a monitor that rang at these steps, as `Monitor` says it."""
    last = [
        {"step": step, "detector": "ShiryaevRoberts", "about": "true label", "log_evidence": np.log(1e5 * step),
         "sentence": f"At step {step} it changed. Theorem: seldom, at {level}."}
        for step in steps
    ]  # fmt: skip
    return {"step": steps[-1], "alarms": {"count": len(last), "last": last}}


def test_a_theorem_is_told_once():
    file = io.StringIO()
    with Live("car", None, ["a", "b"], Console(file=file, force_terminal=False, width=60)) as live:
        live.show({"a": ringing([3])})
        live.show({"a": ringing([3, 2010]), "b": ringing([2010])})
        live.show({"b": ringing([2010, 4012], level=0.5)})  # another theorem
    assert file.getvalue().splitlines() == [
        "alarm: a: At step 3 it changed. Theorem: seldom, at 0.01.",
        "alarm: a: At step 2010 ShiryaevRoberts rang against the true label, evidence 10^8.30.",
        "alarm: b: At step 2010 ShiryaevRoberts rang against the true label, evidence 10^8.30.",
        "alarm: b: At step 4012 it changed. Theorem: seldom, at 0.5.",
        "car: step 4012",
        "a: 2 alarms, the last: At step 2010 ShiryaevRoberts rang against the true label, evidence 10^8.30.",
        "b: 2 alarms, the last: At step 4012 ShiryaevRoberts rang against the true label, evidence 10^8.60.",
    ]
    text = final(terminal(100, 40), [{"a": ringing([3, 10, 12])}], ["a"])
    assert text.count("Theorem") == 1
    assert text.index("At step 3 it changed.") < text.index("2 more until step 12.")
    text = final(terminal(100, 40), [{"a": ringing([3, 2010])}], ["a"])
    assert text.count("Theorem") == 1
    assert text.index("At step 2010 it changed.") < text.index("At step 3 Shir")


def test_of_alarms_that_follow_one_another_the_first_is_told_then_counts():
    file = io.StringIO()
    with Live("car", None, ["a"], Console(file=file, force_terminal=False, width=60)) as live:
        for n in range(1, 61):
            live.show({"a": ringing(list(range(20, 20 * n + 1, 20)))})
    assert file.getvalue().splitlines() == [
        "alarm: a: At step 20 it changed. Theorem: seldom, at 0.01.",
        "alarm: a: ShiryaevRoberts rang again against the true label, 9 more until step 200",
        "car: step 1200",
        "a: 60 alarms, the last: At step 1200 ShiryaevRoberts rang against the true label, evidence 10^8.08.",
    ]


def test_what_was_only_counted_is_told_before_the_next_burst_and_at_the_end():
    reporter = AlarmReporter()
    one = ringing([1])["alarms"]["last"][0]
    said = [line for step in (1, 500, 1400, 5000, 5001) for line in reporter.tell("a", one | {"step": step})]
    assert said == [
        f"a: {one['sentence']}",
        "a: ShiryaevRoberts rang again against the true label, 2 more until step 1,400",
        "a: At step 5000 ShiryaevRoberts rang against the true label, evidence 10^5.00.",
    ]
    assert reporter.rest() == ["a: ShiryaevRoberts rang again against the true label, 1 more until step 5,001"]
    assert reporter.rest() == []


def test_alarms_of_another_detector_or_predictor_are_told_by_themselves():
    reporter = AlarmReporter()
    one = ringing([1])["alarms"]["last"][0]
    for name, changed in (("a", {}), ("b", {}), ("a", {"detector": "Ville"}), ("a", {"about": "realised row"})):
        assert len(reporter.tell(name, one | changed)) == 1
        assert reporter.tell(name, one | changed) == []


def test_the_table_names_the_detector_of_its_evidence(changing):
    wide, narrow = (final(terminal(width, 24), changing).split("\n") for width in (120, 80))
    assert wide[1].split()[-3:] == ["evidence", "by", "alarms"]
    for row in wide[2:6]:
        assert row.split()[-2] in ("Ville", "ShiryaevRoberts")
    assert "by" not in narrow[1].split()
    assert re.search(r"; evidence 10\^[\d.]+ \((Ville|ShiryaevRoberts)\), alarm at 10\^", lines(changing[-1])[0])


def test_alarms_that_a_snapshot_no_longer_holds_are_counted_once():
    file = io.StringIO()
    with Live("car", None, ["a"], Console(file=file, force_terminal=False)) as live:
        for step, count in ((1, 0), (2, 3), (2, 3), (3, 4), (4, 4)):
            last = [
                {"step": step, "detector": "CUSUM", "sentence": f"number {i}"} for i in range(max(0, count - 2), count)
            ]
            live.show({"a": {"step": step, "alarms": {"count": count, "last": last}}})
    assert file.getvalue().split("\n")[:3] == [f"alarm: a: number {n}" for n in (1, 2, 3)]
    assert "car: step 4\na: 4 alarms, the last: number 3\n" in file.getvalue()


@pytest.mark.parametrize(("given", "said"), [({}, "loops may need compiling"), ({"waiting": "no answer"}, "no answer")])
def test_before_the_first_step_it_says_what_it_waits_for(given, said):
    console = terminal(80, 24)
    live = Live("car", 10, ["venn"], console, **given)
    console.print(live)
    assert console.export_text().startswith(f"car   {said}" if given else f"car   first steps: {said}")


def test_nothing_shown_nothing_said():
    file = io.StringIO()
    with Live("car", None, ["a"], Console(file=file, force_terminal=False)):
        pass
    assert file.getvalue() == ""


def test_ascii_pipes_take_names_they_cannot_spell():
    file = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    with Live("été", None, ["é"], Console(file=file, force_terminal=False)) as live:
        live.show({"é": {"step": 1}})
    file.flush()
    assert file.buffer.getvalue() == b"?t?: step 1\n?: no alarm\n"


# ------------------------------------------------------------------------- bad input


def test_due():
    with Live("car", None, ["a"], Console(file=io.StringIO(), force_terminal=False), interval=1e9) as live:
        assert live.due()
        live.show({"a": {"step": 1}})
        assert not live.due()


# --------------------------------------------------------------- a real pseudo-terminal


def in_terminal(arguments, interrupt=False, size=(24, 80)):
    """Run the cases as a program in a terminal of this size; return exit code and all it wrote."""
    near, far = pty.openpty()
    fcntl.ioctl(far, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
    environment = {**os.environ, "TERM": "xterm-256color", "PYTHONIOENCODING": "utf-8"}
    for variable in ("COLUMNS", "LINES", "NO_COLOR"):
        environment.pop(variable, None)
    script = Path(__file__).parents[1] / "live_cases.py"
    process = subprocess.Popen(
        [sys.executable, script, *map(str, arguments)],
        stdin=far, stdout=far, stderr=far, env=environment, start_new_session=True,
    )  # fmt: skip
    os.close(far)
    written = b""
    while True:
        try:
            piece = os.read(near, 65536)
        except OSError:  # the program has closed its end
            break
        if not piece:
            break
        written += piece
        if interrupt and b"evidence" in written:
            process.send_signal(signal.SIGINT)
            interrupt = False
    os.close(near)
    return process.wait(timeout=60), written.decode()


def test_in_a_terminal():
    code, written = in_terminal([600, 0.02])
    assert code == 0
    assert written.count("\x1b[?1049h") == written.count("\x1b[?1049l") == 1  # the alternate screen, and back
    during, after = written.split("\x1b[?1049l")
    assert during.count("\x1b[H") > 2  # drawings, each from the upper left corner,
    assert "\x1b[2K" not in during  # over what is there: nothing is erased, nothing flickers
    assert during.count("\x1b[2J") <= 1
    assert written.rindex("\x1b[?25h") > written.rindex("\x1b[?25l")  # the cursor is back
    shown = ESCAPE.sub("", after).replace("\r", "").rstrip("\n").split("\n")
    assert len(shown) <= 23
    assert max(map(cell_len, shown)) <= 80
    assert shown[0].startswith("toy   step 600 of 600 (100 %)")
    assert any("alarms" in line for line in shown[5:])


def test_an_interrupt_gives_the_terminal_back():
    code, written = in_terminal([2_000_000, 0.02], interrupt=True)
    assert code != 0
    assert written.rindex("\x1b[?1049l") > written.rindex("\x1b[?1049h")
    assert written.rindex("\x1b[?25h") > written.rindex("\x1b[?25l")
    assert "KeyboardInterrupt" in written.split("\x1b[?1049l")[1]
