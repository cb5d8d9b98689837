"""The page of a run in headless Chromium, while its run goes on, dies and comes back."""

import http.server
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from base64 import b64encode
from hashlib import sha256

import pytest
from browsing import LAST, PATIENCE, Viewer, browser, chromium, served  # noqa: F401
from click.testing import CliRunner
from conftest import well
from page_cases import CLASSES, HOSTILE, STATES, Fitted, predictions, write, write_run, write_state
from serve_cases import served as service
from test_doors import EVIL, TOKEN, metrics, pages  # noqa: F401
from test_series_online import told_of

from venn import Forecaster, Online, cli
from venn.online.record import Record
from venn.online.watch import Watch
from venn.show.page.feed import FollowedRun
from venn.show.page.page import render

# ruff: noqa: F811


def test_until_the_page_is_drawn_its_head_says_that_it_loads(browser, served):
    viewer = Viewer(browser, served.url)
    viewer.waits_for("is not there yet")
    said = "() => getComputedStyle(document.querySelector('[data-words=head]'), '::before').content"
    assert viewer.page.evaluate(said) == "none"
    viewer.page.evaluate("() => { document.querySelector('[data-words=head]').textContent = ''; }")
    assert viewer.page.evaluate(said) == '"loading …"'
    viewer.page.close()


def test_it_waits_comes_changes_with_the_journal_and_fits(browser, served):
    viewer = Viewer(browser, served.url, viewport={"width": 1400, "height": 900}, color_scheme="dark")
    viewer.waits_for("not there yet")
    write(served.path, 96, flip=48)
    viewer.waits_for("silent: no event for")  # beside the change
    viewer.shows(asked=100, answered=96, pending=3, expired=1)
    viewer.page.locator(".chart svg").first.wait_for()
    viewer.page.locator("select").select_option("venn")
    viewer.waits_for("the probabilities in the row of the true label")
    viewer.page.locator("select").select_option("conformal")
    viewer.waits_for("misses the true label with exactly that probability")
    viewer.waits_for("errors at 0.05")
    viewer.waits_for(f"{HOSTILE}96")  # as text
    assert viewer.page.evaluate("window.hacked") is None
    viewer.comes_to(f"{LAST} === 96")

    served.path.unlink()
    write(served.path, 16, "platt", created=1_800_000_000.0)
    viewer.waits_for("Nothing is guaranteed")
    viewer.reaches(16)
    viewer.page.locator("select").wait_for(state="hidden")

    # It fits, and has the theme of the system until it is told otherwise.
    for width in (1400, 420):
        viewer.page.set_viewport_size({"width": width, "height": 900})
        viewer.comes_to(f"document.documentElement.scrollWidth <= {width}")

    def paper(colour):
        viewer.comes_to(f"getComputedStyle(document.body).backgroundColor === '{colour}'")

    def ink(colour):
        text = "document.querySelector('.chart text')"
        viewer.comes_to(f"{text} !== null && getComputedStyle({text}).fill === '{colour}'")

    light, dark = "rgb(244, 245, 247)", "rgb(15, 18, 22)"
    paper(dark)
    ink("rgb(162, 171, 182)")
    viewer.page.emulate_media(color_scheme="light")
    paper(light)
    ink("rgb(93, 101, 112)")
    viewer.page.locator("#theme").click()
    paper(dark)
    ink("rgb(162, 171, 182)")
    viewer.page.reload()
    paper(dark)  # remembered
    viewer.is_clean(served.url)


FILLS = {
    "as claimed": (12, 107, 77), "too early to say": (76, 92, 112), "changed": (179, 38, 30),
    "doubtful": (240, 176, 63), "silent": (43, 48, 56),
}  # fmt: skip


def seen(viewer, selector):
    """Return the colour of the ground of an element, and its box; it may just be replaced by a newer one."""
    of = viewer.page.locator(selector).first
    for _ in range(20):
        colour, box = of.evaluate("of => getComputedStyle(of).backgroundColor"), of.bounding_box()
        if colour and box is not None:
            return tuple(map(float, colour[colour.index("(") + 1 : -1].split(","))), box
    raise AssertionError(f"no {selector} to be seen")


LOST = """() => {
    document.documentElement.dataset.lost = "";
    return getComputedStyle(document.querySelector(".status")).backgroundColor;
}"""


@pytest.mark.parametrize("state", STATES)
def test_the_first_screen_says_which_state_it_is(state, browser, served):
    write_state(served.path, state)
    viewer = Viewer(browser, served.url, viewport={"width": 400, "height": 800})
    for width, height, theme in ((1400, 900, "dark"), (400, 800, "light")):
        viewer.page.set_viewport_size({"width": width, "height": height})
        viewer.page.emulate_media(color_scheme=theme)
        card = viewer.page.locator(f".status.{state.replace(' ', '-')}")
        card.wait_for()
        assert viewer.page.locator(".status").count() == 1
        colour, _ = seen(viewer, ".status")
        assert colour == FILLS[state]
        assert (colour[1] > max(colour[0], colour[2]) + 20) == (state == "as claimed"), "nothing else is green"
        # Verdict, shape, recent accuracy, alarms and outcomes: all on the first screen.
        assert card.locator(".title").inner_text().lower() == state
        for part in (".title", ".means", "p:last-child", "svg.shape"):
            inside(seen(viewer, f".status {part}")[1], width, height)
        for part in (".lately .pair", ".lately svg.bar", ".rung", ".outcomes .strip"):
            inside(seen(viewer, part)[1], width, height)
        assert viewer.page.evaluate("document.documentElement.scrollWidth") <= width
    assert viewer.page.title() == f"{state} · run.db"
    if state == "silent":
        assert "no event for 20 min" in viewer.page.locator(".status .since").inner_text()
        green = viewer.page.locator(".mini.as-claimed").first.evaluate("of => getComputedStyle(of).color")
        assert green == "rgb(93, 101, 112)", "not green in the table either"
    if state == "as claimed":  # the server goes: nothing stays green
        lost = viewer.page.evaluate(LOST)  # at once, for the server is there, and the page finds out
        assert lost == "rgb(93, 101, 112)"
    viewer.is_clean(served.url)
    viewer.page.close()


def inside(box, width, height):
    __tracebackhide__ = True
    assert box["x"] >= 0
    assert box["y"] >= 0
    assert box["width"] > 0 < box["height"]
    assert box["x"] + box["width"] <= width
    assert box["y"] + box["height"] <= height


RUN = """
import sys, time, streams, venn
stream = streams.load("car", shuffle=0)
machine = venn.LeastSquaresSVM(venn.RBF(0.5), C=10, classes=stream.classes)
panel = venn.Panel(conformal=venn.Conformal(machine))
from venn.online.loop import Online
with Online(panel, {"conformal": venn.Monitor(stream.classes)}, sys.argv[1]) as online:
    for step, (x, y) in enumerate(stream, 1):
        if step > online.asked:
            online.ask(x)
        if step in online.pending:
            online.answer(step, y)
        time.sleep(0.02)
"""


@pytest.mark.program
def test_two_viewers_follow_a_run_over_its_death(browser, served):
    program = [sys.executable, "-c", RUN, str(served.path)]
    process = subprocess.Popen(program)  # slower to come than the viewers
    try:
        first, second = (Viewer(browser, served.url, viewport={"width": 420, "height": 600}) for _ in range(2))
        for viewer in (first, second):
            viewer.reaches(20)
        first.waits_for("last event")
        process.send_signal(signal.SIGKILL)
        process.wait(30)
        with Watch(served.path) as watch:
            dead = watch.counts().answered
        first.reaches(dead)
        assert first.number("answered") == dead
        process = subprocess.Popen(program)
        for viewer in (first, second):
            viewer.reaches(dead + 20)
            viewer.comes_to(f"() => {LAST} > {dead}")
    finally:
        process.kill()
        process.wait(30)
    for viewer in (first, second):
        viewer.is_clean(served.url)


def test_it_listens_at_the_loopback_only(served):
    port = int(served.url.rsplit(":", 1)[1])
    others = {found[4][0] for found in socket.getaddrinfo(socket.gethostname(), port, socket.AF_INET)}
    for address in others - {"127.0.0.1"}:
        if not address.startswith("127."):
            with pytest.raises(OSError, match=r"refused|unreachable|timed out"):
                socket.create_connection((address, port), timeout=2).close()
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(f"{served.url}/none", timeout=60)


# ------------------------------------------------------------------------ names that would be scripts


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
    well(CliRunner().invoke(cli.main, ["report", "record.npz", "--title", EVIL]))
    content = (tmp_path / "report.html").read_text("utf-8")
    known = set(re.findall(r"'sha256-([^']+)'", policy_of(content)))
    found = re.findall(r"<(?:script|style)>(.*?)</(?:script|style)>", content, flags=re.DOTALL)
    assert {b64encode(sha256(one.encode()).digest()).decode() for one in found} == known, "each has its hash, no other"
    assert "unsafe" not in policy_of(content)

    viewer = Viewer(browser, (tmp_path / "report.html").as_uri(), viewport={"width": 900, "height": 900})
    viewer.page.locator(".chart svg").first.wait_for()
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
    for box in [one.bounding_box() for one in viewer.page.locator(".chart > svg").all()][:6]:
        if box is not None:
            for share in (0.3, 0.6, 0.9):
                viewer.page.mouse.move(box["x"] + share * box["width"], min(box["y"] + 100, 880))


def test_hostile_names_are_text_on_the_page(browser, pages):
    made = pages()
    viewer = Viewer(browser, made.url, viewport={"width": 900, "height": 900})
    viewer.page.locator(".chart svg").first.wait_for()
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


# ---------------------------------------------------------------------------------- what it remembers


@pytest.mark.program
def test_the_strip_the_zone_of_the_viewer_and_a_question_on_a_telephone(browser, served):
    write_run(served.path, "doubtful twice", 1000)
    options = {"viewport": {"width": 390, "height": 844}, "timezone_id": "Asia/Tokyo"}
    viewer = Viewer(browser, served.url, **options)
    blocks = viewer.page.locator(".line-of-time button")
    blocks.nth(1).wait_for()
    assert blocks.count() == 2
    boxes = [blocks.nth(i).bounding_box() for i in range(2)]
    assert 0 < boxes[0]["x"] < boxes[1]["x"] < boxes[1]["x"] + boxes[1]["width"] <= 390
    for box in boxes:
        assert box["width"] >= 14, "a finger must find it"

    # A change opens, and stays as the viewer left it while the page goes on.
    parts = viewer.page.locator("details.episode")
    assert [parts.nth(i).evaluate("of => of.open") for i in range(2)] == [True, False], "the newest is open"
    blocks.first.click()
    viewer.until(lambda: parts.nth(1).evaluate("of => of.open"), bool)
    viewer.until(lambda: parts.nth(1).bounding_box()["y"], lambda y: 0 <= y < 844)
    with Online(Forecaster(scorer=Fitted()), journal=served.path) as online:
        online.ask({"amount": 20.0, "age": 0.0, "items": 3.0}, "one more")
    viewer.until(lambda: "to 1,001" in parts.first.inner_text(), bool)
    assert parts.nth(1).evaluate("of => of.open")

    # Times are the viewer's: Tokyo is nine hours ahead of UTC.
    shown = viewer.page.locator(".status time").first
    at = float(shown.get_attribute("data-at"))
    assert time.strftime("%H:%M", time.gmtime(at + 9 * 3600)) in shown.inner_text()
    assert "GMT+9" in viewer.page.locator(".status .since").inner_text()

    # A question by its id, typed or touched.
    viewer.page.locator("#search input").fill("order-10700")
    viewer.page.keyboard.press("Enter")
    found = viewer.page.locator("[data-words=found]")
    found.get_by_text("order-10700", exact=True).wait_for()
    assert "during change 1" in found.inner_text().replace("\n", " ")
    viewer.page.locator("[data-words=latest] button.id").first.click()
    found.get_by_text("one more", exact=True).wait_for()
    assert "has not come" in found.inner_text()
    viewer.page.locator("#search input").fill("<img src=x onerror=window.hacked=1>")
    viewer.page.keyboard.press("Enter")
    viewer.waits_for("No question has the id <img")  # as text
    assert viewer.page.evaluate("window.hacked") is None
    assert viewer.page.locator("img").count() == 0
    assert viewer.page.evaluate("document.documentElement.scrollWidth") <= 390
    viewer.is_clean(served.url)
    viewer.page.close()


@pytest.mark.program
def test_the_predictor_of_the_verdict_is_shown_until_the_viewer_picks_one(browser, served):
    viewer = Viewer(browser, served.url)
    chooser = viewer.page.locator("#chooser")
    write(served.path, 16, "venn platt")
    viewer.until(chooser.input_value, lambda shown: shown == "venn")
    served.path.unlink()
    write(served.path, 96, "venn abers", flip=48, created=1_800_000_000.0)
    viewer.until(chooser.input_value, lambda shown: shown == "abers")
    chooser.select_option("venn")
    viewer.waits_for("the probabilities in the row of the true label")
    viewer.page.wait_for_timeout(1500)
    assert chooser.input_value() == "venn"
    viewer.is_clean(served.url)
    viewer.page.close()


def test_a_touch_on_a_chart_says_its_numbers_and_when(browser, served):
    write_state(served.path, "changed")
    viewer = Viewer(browser, served.url, viewport={"width": 390, "height": 844}, has_touch=True)
    chart = viewer.page.locator(".chart > svg").first
    chart.wait_for()
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    viewer.page.touchscreen.tap(box["x"] + 200, box["y"] + 80)
    viewer.page.locator(".tip dt", has_text="last one").first.wait_for()
    viewer.page.touchscreen.tap(box["x"] + 200, max(box["y"] - 30, 5))
    viewer.page.locator(".tip").wait_for(state="detached")
    viewer.is_clean(served.url)
    viewer.page.close()


def test_a_report_has_the_strip_and_no_search(tmp_path, browser):
    write_state(tmp_path / "run.db", "changed")
    with Watch(tmp_path / "run.db") as watch:
        content = render(FollowedRun(watch), "title", "data")
    (tmp_path / "report.html").write_text(content, "utf-8")
    assert 'id="search"' not in content
    viewer = Viewer(browser, (tmp_path / "report.html").as_uri(), timezone_id="Asia/Tokyo")
    viewer.page.locator(".line-of-time button").first.wait_for()
    assert viewer.page.get_by_text("GMT+9").count() >= 2
    viewer.page.locator("button.id").first.click()
    assert viewer.complaints == []
    viewer.page.close()


def test_the_fan_is_drawn_in_the_browser(browser, served):
    told_of(60, served.path)
    viewer = Viewer(browser, served.url)
    viewer.waits_for("as said before")
    place = viewer.page.locator("[data-chart=accuracy] svg[role=img]").first
    place.wait_for()
    assert place.locator("path.band").count() == 4
    assert viewer.page.locator("[data-chart=accuracy] svg[role=img]").count() == 2
    viewer.page.close()


def test_the_page_and_the_docs_in_a_browser_under_a_path(browser, tmp_path):
    root = "/models/churn"
    with service(tmp_path / "run.db", root=root) as (client, _):
        for number in range(20):
            client.post(f"{root}/ask", json={"id": f"k{number}", "x": [number % 3 - 1.0, 1.0]})
            client.post(f"{root}/answer", json={"id": f"k{number}", "y": ("no", "yes")[number % 2]})
        url = f"{client.base_url}".rstrip("/") + root
        viewer = Viewer(browser, f"{url}/")
        viewer.shows(asked=20, answered=20)
        viewer.page.locator("#search input").fill("k7")
        viewer.page.locator("#search button").click()
        viewer.waits_for("k7")
        viewer.page.goto(f"{url}/docs")
        viewer.waits_for("POST /ask")
        assert viewer.page.evaluate("getComputedStyle(document.querySelector('.card')).display") != "inline"
        viewer.page.get_by_role("link", name="the page of the run").click()
        viewer.shows(asked=20)
        viewer.is_clean(url)
        viewer.page.close()


# ------------------------------------------------------------- what other sites read


def tried(browser, url, script):
    """Return what a script says that runs in the page at an address."""
    page = browser.new_page()
    page.set_default_timeout(PATIENCE)
    answer = page.goto(url)
    found = page.evaluate(script)
    page.close()
    return answer.status, found


READS = """async (port) => {
  const said = {};
  for (const host of [`localhost:${port}`, `127.0.0.1:${port}`, location.host]) {
    for (const path of ["/", "/metrics", "/run.json", "/question.json?id=1", "/page.js"]) {
      try { said[host + path] = (await (await fetch(`http://${host}${path}`)).text()).length > 200; }
      catch { said[host + path] = false; }
    }
    said["script " + host] = await new Promise(done => {
      const script = document.createElement("script");
      script.src = `http://${host}/page.js`;
      script.onload = () => done(true);
      script.onerror = () => done(false);
      document.body.append(script);
    });
    said["frame " + host] = await new Promise(done => {
      const frame = document.createElement("iframe");
      frame.src = `http://${host}/`;
      frame.onload = () => {
        let seen = false;
        try { seen = frame.contentDocument.querySelector("header") !== null; } catch { /* another origin */ }
        done(seen || frame.contentWindow.length > 0);
      };
      document.body.append(frame);
    });
  }
  return said;
}"""


def test_a_site_whose_name_was_pointed_here_reads_nothing(browser, pages, metrics):
    made = pages()
    with metrics() as port:
        for at in (made.port, port):
            for path in ("/", "/metrics"):
                status, said = tried(browser, f"http://evil.example:{at}{path}", "document.body.innerText")
                assert status == 403
                assert said.startswith("403: this server does not go by that name")


def test_the_page_of_another_site_reads_nothing(browser, pages, metrics):
    """It runs in the same browser, on a port of this machine, with a policy that forbids it nothing."""

    class Evil(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!DOCTYPE html><body>evil")

        def log_message(self, *_):
            """Log nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Evil)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    made = pages()
    with metrics() as port:
        page = browser.new_page()
        page.set_default_timeout(PATIENCE)
        page.goto(f"http://evil.example:{server.server_port}/")
        for at in (made.port, port):
            said = page.evaluate(READS, at)
            own = {key for key in said if f"evil.example:{server.server_port}" in key}
            assert {key for key in said if said[key]} - own == set()
        page.close()
    server.shutdown()
    server.server_close()


def test_a_viewer_with_the_token_enters_once_and_stays(browser, pages):
    made = pages(token=TOKEN)
    page = browser.new_page()
    page.set_default_timeout(PATIENCE)
    complaints = []
    page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
    assert page.goto(made.url).status == 401
    complaints.clear()
    page.goto("about:blank")
    page.set_content(f'<a href="{made.url}/?token={TOKEN}">the page</a>')  # a link on another site
    page.locator("a").click()
    page.locator(".chart svg").first.wait_for()
    assert page.url == f"{made.url}/", "the token is out of the address"
    assert page.evaluate("document.cookie") == ""
    assert TOKEN not in page.content()
    page.reload()
    page.locator(".chart svg").first.wait_for()
    assert complaints == []
    page.close()
