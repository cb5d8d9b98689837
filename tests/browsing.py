"""A headless Chromium for tests of pages, and a viewer of one page."""

import shutil
import time
from types import SimpleNamespace

import pytest

from venn.online.watch import Watch
from venn.show.page.feed import Feed
from venn.show.page.page import Page
from venn.show.server import serving

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
PATIENCE = 60_000  # milliseconds, for a machine with much else to do
RULES = "--host-resolver-rules=MAP *.example 127.0.0.1"  # names of strangers stand for this machine: DNS rebinding


@pytest.fixture(scope="module")
def chromium():
    sync = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("chromium is not installed")
    quiet = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", RULES]
    with sync.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=quiet)
        yield started
        started.close()


@pytest.fixture
def browser(chromium):
    """A browser without a page; a page that is left open would try for ever to reach a server that has gone."""
    yield chromium
    for context in chromium.contexts:
        context.close()


@pytest.fixture
def served(tmp_path):
    """The address of a page of a journal that is not there yet, and the journal."""
    path = tmp_path / "run.db"
    feed = Feed(lambda: Watch(path), path)
    with serving(Page(feed).routes(), "127.0.0.1", 0) as port:
        yield SimpleNamespace(url=f"http://127.0.0.1:{port}", path=path)
    feed.close()


LAST = "Math.max(0, ...[...document.querySelectorAll('[data-last]')].map(one => Number(one.dataset.last)))"


class Viewer:
    """A page in the browser, what it complained of and whom it asked."""

    def __init__(self, browser, url, **options):
        self.page = browser.new_page(**options)
        self.page.set_default_timeout(PATIENCE)
        self.complaints, self.asked = [], []
        self.page.on("console", lambda said: self.complaints.append(said.text) if said.type == "error" else None)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(url)

    def waits_for(self, text):
        self.page.get_by_text(text).first.wait_for()

    def number(self, of):
        return int(self.page.locator(f"dt:text-is('{of}') + dd").first.inner_text().replace(",", ""))

    def shows(self, **numbers):
        """Wait until all numbers are these; they are drawn one after another."""
        self.until(lambda: {of: self.number(of) for of in numbers}, lambda shown: shown == numbers)

    def reaches(self, answered):
        self.until(lambda: self.number("answered"), lambda shown: shown >= answered)

    def until(self, seen, wanted):
        """Wait until what is seen is what is wanted; if that never comes, say what was seen last."""
        deadline = time.monotonic() + PATIENCE / 1000
        while not wanted(last := seen()):
            assert time.monotonic() < deadline, last
            self.page.wait_for_timeout(50)

    def comes_to(self, expression):
        """Wait until an expression of JavaScript is true; the page itself evaluates no text: its policy forbids it."""
        self.until(lambda: self.page.evaluate(expression), bool)

    def drawn(self):
        """Return the last step of the curves that the browser holds."""
        return self.page.evaluate(LAST)

    def is_clean(self, url):
        __tracebackhide__ = True
        assert self.complaints == []
        strange = [to for to in self.asked if not to.startswith((url, "data:"))]
        assert strange == []
