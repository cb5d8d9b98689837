"""Take pictures of the page's first screen in each state, in a browser: on a telephone and a wall, light and dark.

    python -m tools.pictures FOLDER           # state x width x theme, to be looked at
    python -m tools.pictures FOLDER --docs    # and those of the documentation

Needs playwright and Chromium. The journals are those of the tests of the page.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import image

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import page_cases

from venn.online.watch import Watch
from venn.show.page.feed import Feed
from venn.show.page.page import Page
from venn.show.server import serving

STATES = ("as claimed", "too early to say", "doubtful", "changed", "silent")
SIZES = {"narrow": (390, 800), "wide": (1400, 900)}
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DOCS = Path(__file__).parents[1] / "docs"


@contextmanager
def served(path: Path) -> Iterator[str]:
    """Serve the page of a journal; give its address."""
    feed = Feed(lambda: Watch(path), path)
    with serving(Page(feed).routes(), "127.0.0.1", 0) as port:
        yield f"http://127.0.0.1:{port}"
    feed.close()


def take(browser: Any, folder: Path, state: str) -> None:
    """Take the four pictures of a state."""
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch, "run.db")
        if state in STATES:
            page_cases.write_state(path, state)
        else:
            page_cases.write_run(path, state)
        with served(path) as address:
            page = browser.new_page()
            page.set_default_timeout(120_000)
            page.goto(address)
            page.locator(".status").wait_for()
            page.locator(".chart svg").first.wait_for()
            for size, (width, height) in SIZES.items():
                page.set_viewport_size({"width": width, "height": height})
                for theme in ("light", "dark"):
                    page.emulate_media(color_scheme=theme)
                    page.wait_for_timeout(300)
                    page.screenshot(path=folder / f"{state.replace(' ', '-')}_{size}_{theme}.png")
            page.close()


def joined(files: list[Path], height: int) -> Any:
    """Return pictures side by side, with a line between them."""
    parts = [image.imread(file)[:height, :, :3] for file in files]
    line = np.full((height, 10, 3), 0.55)
    return np.hstack([part for one in parts for part in (one, line)][:-1])


def main() -> None:
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--docs", action="store_true", help="also write the pictures of the documentation")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    page_cases.CLASSES = ("no", "yes", "maybe")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        for state in (*STATES, *page_cases.RUNS):
            take(browser, options.folder, state)
        browser.close()
    if options.docs:
        themes = ("light", "dark", "light", "dark", "light")
        narrow = [options.folder / f"{s.replace(' ', '-')}_narrow_{t}.png" for s, t in zip(STATES, themes, strict=True)]
        image.imsave(DOCS / "page_narrow.png", joined(narrow, 780))
        image.imsave(DOCS / "page.png", image.imread(options.folder / "changed_wide_light.png")[:800])
        image.imsave(DOCS / "page_dark.png", image.imread(options.folder / "silent_wide_dark.png")[:640])


if __name__ == "__main__":
    main()
