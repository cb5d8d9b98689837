"""Names that would be scripts are text: in a report, on the page, in figures."""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256

import pytest
from browsing import Viewer, browser, chromium  # noqa: F401
from click.testing import CliRunner
from page_cases import CLASSES, HOSTILE, predictions
from test_doors import EVIL, pages  # noqa: F401

from venn import cli
from venn.online.record import Record

# ruff: noqa: F811


def hostile_record(n=40, evil=EVIL, kinds="venn abers conformal platt"):
    """Return a record whose data, predictors, parameters and classes have hostile names."""
    import numpy as np

    rng = np.random.default_rng(0)
    names = [f"{name} {evil}" for name in kinds.split()]
    record = Record(CLASSES, names, data=f"data {evil}", parameters={name: f"p {evil}" for name in names})
    for step in range(n):
        said = predictions(rng, kinds)
        y = CLASSES[2] if step > n // 2 else CLASSES[0]
        record.update(dict(zip(names, said.values(), strict=True)), y)
    return record


def policy_of(content):
    [policy] = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', content)
    return policy


def test_a_report_runs_its_own_scripts_and_no_other(tmp_path, monkeypatch, browser):
    monkeypatch.chdir(tmp_path)
    hostile_record().save(tmp_path / "record.npz")
    result = CliRunner().invoke(cli.main, ["report", "record.npz", "--title", EVIL])
    assert result.exit_code == 0, result.output
    content = (tmp_path / "report.html").read_text("utf-8")
    known = set(re.findall(r"'sha256-([^']+)'", policy_of(content)))
    found = re.findall(r"<script>(.*?)</script>", content, flags=re.DOTALL)
    assert {b64encode(sha256(one.encode()).digest()).decode() for one in found} == known, "each has its hash, no other"
    assert "unsafe-inline" not in policy_of(content).partition("script-src")[2].partition(";")[0]
    assert "unsafe-eval" not in policy_of(content)

    viewer = Viewer(browser, (tmp_path / "report.html").as_uri(), viewport={"width": 900, "height": 900})
    viewer.page.locator("canvas").first.wait_for()
    assert viewer.page.evaluate("window.hacked") is None
    assert viewer.page.title() == EVIL
    assert viewer.page.locator("img").count() == 0
    assert viewer.complaints == []
    hover(viewer)
    assert viewer.page.evaluate("window.hacked") is None
    # Even what got into the page would not run.
    viewer.page.evaluate("""() => {
      document.body.insertAdjacentHTML("beforeend", "<img src=x onerror='window.hacked=1'>");
      document.body.insertAdjacentHTML("beforeend", "<a id=go href='javascript:hacked=1'>go</a>");
      const script = document.createElement("script");
      script.textContent = "window.hacked=1";
      document.body.append(script);
      document.getElementById("go").click();
    }""")
    viewer.page.wait_for_timeout(300)
    assert viewer.page.evaluate("window.hacked") is None
    assert any("violates" in said for said in viewer.complaints)
    viewer.page.close()


def hover(viewer):
    """Move the pointer over all figures, so that their tooltips are shown."""
    for box in [one.bounding_box() for one in viewer.page.locator(".bk-Figure").all()][:6]:
        if box is not None:
            for share in (0.3, 0.6, 0.9):
                viewer.page.mouse.move(box["x"] + share * box["width"], min(box["y"] + 100, 880))


def test_hostile_names_are_text_on_the_page(browser, pages):
    made = pages()
    viewer = Viewer(browser, made.url, viewport={"width": 900, "height": 900})
    viewer.page.locator("canvas").first.wait_for()
    for name in ("abers", "conformal", "venn"):
        viewer.page.locator("select").select_option(name + EVIL)
        viewer.waits_for(f"{HOSTILE}32")
        hover(viewer)
    assert viewer.page.evaluate("window.hacked") is None
    assert viewer.complaints == []
    for attack in ("<img src=x onerror='window.hacked=1'>", "<svg onload='window.hacked=1'>"):
        viewer.page.evaluate("html => document.body.insertAdjacentHTML('beforeend', html)", attack)
    viewer.page.evaluate("() => { setTimeout('window.hacked=1', 0); }")
    viewer.page.wait_for_timeout(300)
    assert viewer.page.evaluate("window.hacked") is None, "the policy holds where a text would not"
    assert any("violates" in said for said in viewer.complaints)
    viewer.page.close()


def test_hostile_names_are_text_in_figures(tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    written = hostile_record(evil="$\\frac$/../%n<script>", kinds="venn").plot_all(tmp_path)
    assert written
    for file in written:
        assert file.parent == tmp_path, "a name leads to no other folder"
        if file.suffix == ".svg":
            assert "<script" not in file.read_text("utf-8")
