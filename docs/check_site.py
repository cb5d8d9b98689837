"""Does every link of the built site lead somewhere, and does no page ask another host for anything?

    python docs/check_site.py docs/_build

Links to other hosts may stand in the text, as addresses that a reader follows; scripts, styles, images, fonts and
frames may not come from there. What is wrong is printed, a line each, and the status is 1.
"""

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADS = {("script", "src"), ("link", "href"), ("img", "src"), ("iframe", "src"), ("source", "src"), ("object", "data")}
IN_STYLE = re.compile(r"url\(\s*['\"]?([^'\")]+)|@import\s+['\"]([^'\"]+)")


class Page(HTMLParser):
    """What a page links to, what it loads, and where it can be linked to."""

    def __init__(self, text):
        super().__init__()
        self.links, self.loads, self.anchors = [], [], set()
        self._style = False
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.anchors |= {found[name] for name in ("id", "name") if found.get(name)}
        if tag == "a" and found.get("href"):
            self.links.append(found["href"])
        # rel="canonical" and the like name an address and load nothing.
        if tag != "link" or re.search("stylesheet|icon|preload|prefetch|preconnect|manifest", found.get("rel") or ""):
            self.loads += [value for name, value in attributes if (tag, name) in LOADS and value]
        self.loads += [one.split()[0] for one in (found.get("srcset") or "").split(",") if one.strip()]
        self.loads += styled(found.get("style") or "")
        self._style = tag == "style"

    def handle_endtag(self, tag):
        self._style = False

    def handle_data(self, data):
        if self._style:
            self.loads += styled(data)


def styled(text):
    """Return the addresses that a style sheet loads."""
    return [first or second for first, second in IN_STYLE.findall(text)]


def outside(address):
    """Return whether an address is of another host."""
    parts = urlsplit(address)
    return bool(parts.netloc) or parts.scheme in ("http", "https", "ftp", "ws", "wss")


def faults(folder):
    """Return a line for each fault of the site in a folder."""
    # Static files are parts of the theme, templates among them.
    paths = [path for path in sorted(folder.rglob("*.html")) if "_static" not in path.relative_to(folder).parts]
    pages = {path: Page(path.read_text()) for path in paths}
    if not pages:
        return [f"{folder} holds no page"]
    found = []

    def there(path, address, kind):
        parts = urlsplit(address)
        if outside(address):
            if kind == "loads":
                found.append(f"{path.relative_to(folder)} loads {address}, of another host")
            elif not re.fullmatch(r"https?://[\w.:-]+(/\S*)?|(?!https?)\w+://\S+", address):
                found.append(f"{path.relative_to(folder)} links to {address}, which is no address")
            return
        if parts.scheme:  # mailto, data, javascript
            return
        target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
        if target.is_dir():
            target /= "index.html"
        if not target.exists():
            found.append(f"{path.relative_to(folder)} {kind} {address}, which is not there")
        elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
            found.append(f"{path.relative_to(folder)} {kind} {address}: no such place in that page")

    for path, page in pages.items():
        for address in page.links:
            there(path, address, "links to")
        for address in page.loads:
            there(path, address, "loads")
    for path in sorted(folder.rglob("*.css")):
        for address in styled(path.read_text()):
            there(path, address, "loads")
    return found


def main():
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/_build").resolve()
    found = faults(folder)
    print(*found, sep="\n" if found else "", end="\n" if found else "")
    print(f"{folder.name}: {len(found)} faults")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
