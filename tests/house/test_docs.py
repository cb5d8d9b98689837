"""What the documentation says can be typed, followed and found: snippets, commands, links, the reference."""

import ast
import importlib
import importlib.util
import inspect
import os
import re
import shlex
import subprocess
import sys
from functools import cache
from pathlib import Path

import click
import pytest

import streams
import venn
from tools import figures
from venn.cli import main

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(path for path in DOCS.glob("*.md") if path.name != "changelog.md")  # includes ../CHANGELOG.md
TEXTS = [ROOT / "README.md", ROOT / "CHANGELOG.md", *PAGES]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
FENCE = re.compile(r"^```(\S*)\n(.*?)^```$", flags=re.S | re.M)


def blocks(text: str, *languages: str) -> list[str]:
    return [code for language, code in FENCE.findall(text) if language in languages]


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


# The lines of other libraries stand in blocks that are called py, which nothing here runs. Those of the first steps run
# in test_examples.py, which reads what they print.
@pytest.mark.program
@pytest.mark.parametrize(
    "page", [path.name for path in PAGES if blocks(path.read_text(), "python") and path.name != "first_steps.md"]
)
def test_the_code_of_a_page_runs(page, tmp_path, monkeypatch, capsys, undrawn):
    monkeypatch.chdir(tmp_path)
    code = "\n".join(blocks((DOCS / page).read_text(), "python"))
    for module in ("river", "dask", "distributed"):
        if re.search(rf"\b(from|import) {module}\b", code):
            pytest.importorskip(module)
    if "tcp://" in code:  # the cluster is the reader's: what is imported must be there, and the rest be Python
        compile(code, page, "exec")
        code = "\n".join(re.findall(r"^(?:from|import) .*", code, flags=re.M))
    if "__main__" in code:  # a program, whose functions processes import; here without the processes
        (tmp_path / "program.py").write_text(code.replace('"processes", num_workers=2', '"synchronous"'))
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        subprocess.run(
            [sys.executable, "program.py"], env=environment, check=True, timeout=600, stdout=subprocess.DEVNULL
        )
        return
    # One page replays all of car to show what the whole program is.
    code = code.replace('streams.load("car", shuffle=0)  #', 'streams.load("car", shuffle=0).take(200)  #')
    exec(compile(code, page, "exec"), {"__name__": "__main__"})
    capsys.readouterr()


def commands(text: str) -> list[str]:
    """Return the lines of `venn` and `python` in blocks, fenced or indented, and between backticks."""
    inside = [line.strip() for code in blocks(text, "sh", "") for line in code.splitlines()]
    prose = FENCE.sub("", text)
    inside += [line.strip() for line in prose.splitlines() if line.startswith("    ")]
    inside += [re.sub(r"\s+", " ", one) for one in re.findall(r"`([^`]+)`", prose)]
    found = [re.sub(r"^STREAMS_DATA=\S+ ", "", line) for line in inside]
    return [line for line in found if re.match(r"(venn|python) [a-z./]", line) and "..." not in line]


@cache
def of_venn() -> list[tuple[str, str]]:
    return [(named(path), line) for path in TEXTS for line in commands(path.read_text()) if line.startswith("venn ")]


def test_every_command_line_of_venn_is_understood():
    assert len(of_venn()) > 20
    said = [f"{page}: {line}: {wrong}" for page, line in of_venn() if (wrong := misunderstood(line))]
    assert not said


def misunderstood(line: str) -> str | None:
    """Return what the command line has against a line, without running it."""
    words = shlex.split(line, comments=True)[1:]
    context = click.Context(main, info_name="venn")
    command = main.get_command(context, words[0])
    if command is None:
        return f"there is no command {words[0]}"
    given = [one for one in command.params if isinstance(one, click.Option)]
    known = {name for one in given for name in (*one.opts, *one.secondary_opts)}
    options = [word.split("=")[0] for word in words[1:] if word.startswith("--")]
    if unknown := [option for option in options if option not in {*known, "--help"}]:
        return f"there is no option {unknown[0]}"
    if len(words) == 1 or words[-1] in {name for one in given if not one.is_flag for name in one.opts}:
        return None  # it is spoken of, not typed
    try:
        # Nothing is read: standard input is no pipe here.
        command.make_context(words[0], ["x.csv" if word == "-" else word for word in words[1:]], parent=context)
    except click.exceptions.Exit:
        return None  # --help
    except click.ClickException as error:
        return None if "does not exist" in error.format_message() else error.format_message()
    return None


def test_a_command_line_with_a_slip_is_not_understood():
    assert misunderstood("venn replay car --shuffel 3")
    assert misunderstood("venn reply car")
    assert misunderstood("venn replay car --shuffle three")
    assert misunderstood("venn replay car   # and a remark") is None


def test_every_program_that_is_named_is_there_and_knows_its_options():
    found = [(named(path), line) for path in (*TEXTS, *EXAMPLES) for line in commands(text_of(path))]
    lines = [(page, shlex.split(line, comments=True)) for page, line in found if line.startswith("python ")]
    assert len(lines) > 20
    wrong = []
    for page, (_, program, *rest) in lines:
        if not program.endswith(".py"):
            continue
        path = ROOT / program
        source = path.read_text() if path.is_file() else ""
        options = [word for word in rest if word.startswith("--")]
        known = "".join(re.findall(r"command_options\((.*\n(?: {8}.*\n)*)", source))
        wrong += [f"{page}: {program}"] * (not source)
        wrong += [f"{page}: {program} {option}" for option in options
                  if f'"{option}"' not in source and not re.search(rf"\b{option[2:]}=", known)]  # fmt: skip
    assert not wrong


def test_a_program_finds_the_names_that_it_takes():
    """No test runs most of the programs, so they would be the last to know that a name has moved."""
    missing = []
    for path in (path for folder in ("benchmarks", "examples", "tools") for path in (ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            module, names = "", ()
            if isinstance(node, ast.ImportFrom):
                module, names = node.module or "", tuple(one.name for one in node.names)
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                module, names = node.value.id, (node.attr,)
            if module.split(".")[0] in ("venn", "streams"):
                here = importlib.import_module(module)
                missing += [f"{named(path)}: {module}.{name}" for name in names if not hasattr(here, name)]
    assert missing == []


@pytest.mark.parametrize("said", figures.SAID, ids=lambda said: f"{said.page}: {said.words[:40]}")
def test_a_figure_of_a_page_is_the_kept_one(said):
    assert figures.found((ROOT / said.page).read_text(), said) == said.numbers


def test_a_figure_that_is_not_the_kept_one_is_found_and_written_anew(monkeypatch):
    monkeypatch.setitem(figures.KEPT, "x.py", {"0.seconds": [0.12, 0.349, 0.35], "0.rows": [63_512.0]})
    said = figures.Said("a page", "It takes # s; # rows", "x.py", ("0.seconds", "0.rows"))
    page = "Rows. It takes .12\ns; 9 000 rows a second; 7 more."
    assert figures.found(page, said) == [".12", "9 000"] != said.numbers
    assert figures.with_kept(page, said) == "Rows. It takes .35\ns; 64 000 rows a second; 7 more."
    for other in ("It takes .12 s.", page + page):
        with pytest.raises(ValueError, match="must have these words once"):
            figures.found(other, said)


def test_the_table_of_benchmarks_has_the_kept_figures():
    spec = importlib.util.spec_from_file_location("all_benchmarks", ROOT / "benchmarks" / "all.py")
    module = sys.modules["all_benchmarks"] = importlib.util.module_from_spec(spec)  # a dataclass asks for its module
    spec.loader.exec_module(module)
    rows = [tuple(cells[1:3]) for cells in module.rows(figures.KEPT, {})]
    table = re.findall(r"^\| (?:`.*`)? \| (.*?) \| (.*?) \|", (DOCS / "benchmarks.md").read_text(), flags=re.M)
    assert len(rows) > 50
    assert table == rows


def text_of(path: Path) -> str:
    """Return the text of a page, or the docstring of a program."""
    return path.read_text() if path.suffix == ".md" else ast.get_docstring(ast.parse(path.read_text())) or ""


def rooms() -> dict[str, list[str]]:
    """Return the names in the reference, module by module, as often as they are there."""
    found: dict[str, list[str]] = {}
    for path in sorted((DOCS / "api").glob("*.rst")):
        module = ""
        for line in path.read_text().splitlines():
            if match := re.match(r"\.\. currentmodule:: (\S+)", line):
                module = match[1]
            elif match := re.match(r"   (?:(venn[\w.]*)\.)?(\w+)$", line):
                found.setdefault(match[1] or module, []).append(match[2])
    return found


ROOMS = [f"venn.{name}" for name in venn.__all__ if inspect.ismodule(getattr(venn, name))]


@pytest.mark.parametrize("module", ["venn", "streams", *ROOMS])
def test_every_public_name_is_in_the_reference_once(module):
    public = importlib.import_module(module)
    names = [name for name in public.__all__ if not name.startswith("_") and f"{module}.{name}" not in ROOMS]
    # What `venn` itself has too is there under the shorter name.
    elsewhere = {"venn": (), "streams": ()}.get(module, venn.__all__)
    assert sorted(rooms().get(module, [])) == sorted(set(names).difference(elsewhere))


@pytest.mark.parametrize("module", ["venn", "streams", *ROOMS])
def test_every_public_class_and_function_has_an_example(module):
    """The examples run as doctests; bases that cannot be made by themselves have none."""
    public = importlib.import_module(module)
    things = {name: getattr(public, name) for name in public.__all__}
    made = {name: one for name, one in things.items() if inspect.isroutine(one) or inspect.isclass(one)}
    assert not [name for name, one in made.items() if not inspect.isabstract(one) and ">>>" not in (one.__doc__ or "")]


def test_what_stands_in_venn_itself_fits_on_a_page():
    assert len(set(venn.__all__)) - len(ROOMS) <= 48


def slug(heading: str) -> str:
    """Return the place in a page that a heading makes."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


@cache
def places(path: Path) -> set[str]:
    return {slug(heading) for heading in re.findall(r"^#+ (.*)$", FENCE.sub("", path.read_text()), flags=re.M)}


def written_by_the_build(path: Path) -> bool:
    """Return whether a page is made of an example when the site is built."""
    made = path.stem == "index" or ROOT / "examples" / f"{path.stem}.py" in EXAMPLES
    return made and path.parent == DOCS / "gallery"


def in_trees(text: str) -> list[str]:
    """Return the pages that the trees of a page list."""
    lines = "\n".join(re.findall(r"^```\{toctree\}\n(.*?)^```", text, flags=re.S | re.M)).splitlines()
    return [match[1] for line in lines if (match := re.fullmatch(r"(?:[^:<].*<)?([\w/]+)>?", line))]


def astray(path: Path, text: str) -> list[str]:
    """Return the links of a text that lead nowhere."""
    prose = FENCE.sub("", text)
    wrong = []
    for target in re.findall(r"\]\(([^)\s]+)\)", prose) if path.suffix == ".md" else []:
        file, _, place = target.partition("#")
        if re.match(r"\w+:", target):
            wrong += [] if re.fullmatch(r"(https?://[\w.-]+\.\w+(/\S*)?|mailto:\S+@\S+)", target) else [target]
            continue
        other = path.parent / file if file else path
        if not other.is_file() or (place and place not in places(other)):
            wrong.append(target)
    roles = re.findall(r"(?:\{doc\}|:doc:)`(?:[^`<]*<)?([^`<>]+)>?`", prose)
    pages = [(DOCS / name.lstrip("/") if name.startswith("/") else path.parent / name) for name in roles]
    pages += [path.parent / name for name in in_trees(text)]
    for page in pages:
        if not any(page.with_suffix(end).is_file() for end in (".md", ".rst")) and not written_by_the_build(page):
            wrong.append(str(page))
    for image in re.findall(r"^(?:# )?\.\. image:: (\S+)", text, flags=re.M):
        wrong += [] if (DOCS / image.lstrip("/")).is_file() else [image]
    return wrong


@pytest.mark.parametrize("path", [*TEXTS, *sorted(DOCS.glob("api/*.rst")), *EXAMPLES], ids=named)
def test_every_link_leads_somewhere(path):
    assert not (wrong := astray(path, path.read_text())), wrong


def test_a_link_that_leads_nowhere_is_found():
    page = DOCS / "guarantees.md"
    assert astray(page, "[a](nowhere.md) [b](#no-such-place) [c](http:/slip) {doc}`/nowhere`") == [
        "nowhere.md", "#no-such-place", "http:/slip", str(DOCS / "nowhere"),
    ]  # fmt: skip
    assert not astray(page, "[a](index.md) [b](#what-an-alarm-means) [c](https://arxiv.org/x) {doc}`/gallery/own_csv`")


def test_every_page_is_in_the_tree():
    listed = {name for path in DOCS.glob("*.md") for name in in_trees(path.read_text())}
    assert {path.stem for path in DOCS.glob("*.md")} - {"index"} <= listed
    inner = (DOCS / "api" / "index.rst").read_text()
    assert all(f"   {path.stem}\n" in inner for path in DOCS.glob("api/*.rst") if path.stem != "index")


@pytest.mark.parametrize("path", EXAMPLES, ids=named)
def test_an_example_opens_with_a_question_that_makes_the_title_of_its_page(path):
    title, line, empty, *_ = text_of(path).split("\n")
    assert title.endswith("?")
    assert line == "=" * len(title)
    assert not empty


def checker():
    spec = importlib.util.spec_from_file_location("check_site", DOCS / "check_site.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_check_of_the_built_site_finds_what_it_is_for(tmp_path):
    (tmp_path / "a.html").write_text(
        '<link rel="canonical" href="https://else.where/"><p id="here"><a href="b.html#there">b</a>'
        ' <a href="#here">a</a> <a href="https://arxiv.org/abs/1">x</a> <a href="mailto:a@b.c">y</a>'
        ' <img src="data:image/png,AA">'
    )
    (tmp_path / "b.html").write_text('<h1 id="there">b</h1><a href="a.html">a</a><link rel="stylesheet" href="c.css">')
    (tmp_path / "c.css").write_text("p { background: url(d.png) }")
    (tmp_path / "d.png").write_bytes(b"")
    check = checker()
    assert check.faults(tmp_path) == []
    for slip, said in {
        '<a href="c.html">': "links to c.html, which is not there",
        '<a href="b.html#nowhere">': "links to b.html#nowhere: no such place",
        '<a href="http:/slip">': "links to http:/slip, which is no address",
        '<script src="https://cdn.net/x.js">': "loads https://cdn.net/x.js, of another host",
        '<link rel="preload" href="//fonts.net/x.woff2">': "loads //fonts.net/x.woff2, of another host",
        '<style>@import "https://fonts.net/x.css";</style>': "loads https://fonts.net/x.css, of another host",
        '<p style="background: url(https://x.net/y.png)">': "loads https://x.net/y.png, of another host",
        '<img srcset="e.png 2x">': "loads e.png, which is not there",
    }.items():
        (tmp_path / "z.html").write_text(slip)
        assert [said in fault for fault in check.faults(tmp_path)] == [True]
    assert check.faults(tmp_path / "empty") == [f"{tmp_path / 'empty'} holds no page"]


def test_the_architecture_names_files_and_classes_that_exist():
    text = (DOCS / "architecture.md").read_text()
    files = set(re.findall(r"`([a-z_/]+\.py)`", text))
    assert len(files) > 30
    assert not [file for file in files if not any((ROOT / folder / file).exists() for folder in ("", "venn"))]
    rows = re.findall(r"^\| `(?:venn|streams).*\| (.*) \|$", text, flags=re.M)
    names = {name for row in rows for name in re.findall(r"`([A-Z]\w+)`", row)}
    sources = "\n".join(path.read_text() for path in (ROOT / "venn").rglob("*.py"))
    assert not [name for name in names if f"\nclass {name}" not in sources]


def walked():
    """Return the (file, function) of each step of the page that walks an example through the code."""
    return re.findall(r"^\| \d+ \|.*\| `(\S+)` \| `(\S+)` \|$", (DOCS / "walk.md").read_text(), flags=re.M)


@pytest.mark.parametrize(("file", "function"), walked())
def test_each_step_of_the_walk_is_where_the_page_says(file, function):
    assert len(walked()) > 15
    *owner, name = function.split(".")
    tree = ast.parse((ROOT / file).read_text())
    for kind in owner:
        tree = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == kind)
    assert name in {node.name for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)}


def test_an_example_walks_as_the_page_says():
    """All steps but those inside compiled code, or for machines whose path fails."""
    stream, called = streams.gaussians(12, classes=2), set()
    machine = venn.OneVsAllSVM(venn.RBF(0.5), C=10, classes=stream.classes)
    panel = venn.Panel(venn=venn.TransductiveVenn(machine, venn.Argmax()), conformal=venn.Conformal(machine))
    record, monitor = venn.Record(stream.classes, tuple(panel)), venn.Monitor(stream.classes)

    def note(frame, event, argument):
        called.add((frame.f_code.co_filename, frame.f_code.co_qualname))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        for x, y in stream:
            said = panel.predict_one(x)
            panel.learn_one(x, y)
            monitor.update(said["venn"], y)
            record.update(said, y)
    finally:
        sys.setprofile(before)
    python = [(file, function) for file, function in walked() if not file.startswith("venn/_compiled/")]
    missed = [function for file, function in python if (str(ROOT / file), function) not in called]
    assert set(missed) <= {"follow", "exchanged", "solved_anew"}
