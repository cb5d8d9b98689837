"""Anything at all in the TOML, the options and the messages of `venn run`: one line, and nothing has changed."""

import json
import os
import tempfile
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from naive.naive_messages import that_count
from run_cases import CLASSES, OPTIONS, left

from venn import cli
from venn.cli.options import offered

WIDTH = 2
OF_FILES = ("rows.csv, row ", "try: ")  # the lines after the first of what is wrong with a CSV file
QUICK = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
SEVERAL = settings(QUICK, max_examples=8)  # of whole runs; `tools.campaign` tries as many as one likes

values = st.one_of(
    st.booleans(), st.integers(), st.floats(), st.text(max_size=8),
    st.lists(st.one_of(st.text(max_size=3), st.integers(), st.booleans()), max_size=3),
    st.dictionaries(st.text("abc", min_size=1, max_size=2), st.lists(st.integers(0, 3), max_size=2), max_size=2),
)  # fmt: skip
keys = {table: [*known, "other"] for table, known in offered("run").items()}
tables = st.fixed_dictionaries(
    {}, optional={table: st.dictionaries(st.sampled_from(names), values, max_size=3) for table, names in keys.items()}
)
flags = [
    f"--{name}" for name in ("delay", "missing", "window", "C", "gamma", "classes", "predictors", "source", "kernel")
]
flags_of_columns = ["--label", "--nominal", "--ordinal", "--skip", "--fill", "--delimiter"]


@pytest.fixture(scope="module")
def folder():
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def invoke(folder, *arguments):
    """Run the command; whatever comes, it is no traceback."""
    before = os.getcwd()
    os.chdir(folder)
    try:
        result = CliRunner().invoke(cli.main, ["run", *arguments])
    finally:
        os.chdir(before)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exc_info
    assert result.exit_code in (0, 1, 2)
    if result.exit_code:
        *_, last = [line for line in result.stderr.rstrip("\n").split("\n") if not line.startswith(OF_FILES)]
        assert last.startswith("Error: "), result.stderr
        assert result.stderr.count("Error: ") >= 1
    return result


def toml(value):
    """Return a value as TOML writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return {"inf": "inf", "-inf": "-inf", "nan": "nan"}.get(str(value), repr(value))
    if isinstance(value, dict):
        return "{" + ", ".join(f"{toml(key)} = {toml(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value).replace("\x7f", "\\u007f") if isinstance(value, str) else str(value)


@QUICK
@given(tables)
def test_tables_of_anything(folder, found):
    text = "".join(
        f"[{table}]\n" + "".join(f"{key} = {toml(value)}\n" for key, value in content.items())
        for table, content in found.items()
    )
    (folder / "c.toml").write_text(text, errors="surrogatepass" if text.isascii() else "replace")
    result = invoke(folder, "--config", "c.toml", "--check")
    unknown = [key for table, content in found.items() for key in content if key == "other"]
    assert not (unknown and result.exit_code == 0)
    assert [path.name for path in folder.glob("*.db*")] == []


@QUICK
@given(st.binary(max_size=60))
@example(b"\xff")
@example(b"a = 1\na = 2")
@example(b"[source]\nurl = 'car'\n[journal]\npath = \"a\\u0000b\"")
@example(b"x = 1" + b"0" * 5000)
def test_files_of_anything(folder, content):
    (folder / "c.toml").write_bytes(content)
    result = invoke(folder, "--config", "c.toml", "--check")
    assert result.exit_code != 0  # for want of a source, if nothing else
    assert not (folder / "run.db").exists()


@QUICK
@given(st.lists(st.tuples(st.sampled_from(flags), st.text(max_size=9)), max_size=3))
@example([("--source", "redis://[::1")])
@example([("--source", "redis://h?stream=s&stream=t")])
@example([("--source", "kafka:///")])
@example([("--classes", "a,")])
@example([("--C", "1e999")])
@example([("--delay", "9" * 30)])
def test_options_of_anything(folder, found):
    arguments = [part for pair in found for part in pair]
    invoke(folder, "--source", "car", "--journal", "run.db", "--check", *arguments)
    assert not (folder / "run.db").exists()


words = st.one_of(st.text(max_size=6), st.sampled_from(["a", "b=u,v", "b=1", "y", "b=median", ";", "a=u", "=", "b=,"]))


@QUICK
@given(
    st.binary(max_size=30) | st.sampled_from([b"a,b,y\n1,u,n\n2,v,p\n", b"a;b;y\n1;;n\n2;1,5;p\n", b"\x1f\x8b"]),
    st.lists(st.tuples(st.sampled_from(flags_of_columns), words), max_size=4),
)
@example(b"a,b,y\n1,u,n\n2,v,p\n", [("--label", "y"), ("--nominal", "b=u,v")])
@example(b"a;b;y\n1;;n\n2;1,5;p\n", [("--label", "y"), ("--delimiter", ";"), ("--fill", "b=1")])
@example(b"", [("--ordinal", "\n")])
def test_columns_of_anything(folder, content, found):
    (folder / "rows.csv").write_bytes(content)
    given = [part for pair in found for part in pair]
    invoke(folder, "--source", "rows.csv", "--journal", "run.db", "--check", *given)
    assert not (folder / "run.db").exists()


ids = st.one_of(st.none(), st.integers(1, 5), st.sampled_from(["a", "b", ""]), st.sampled_from([True, 1.5, [1]]))
coordinates = st.sampled_from([0, 1, 0.5, -2.0, 1e300, "1", None])
objects = st.one_of(st.none(), st.lists(coordinates, min_size=1, max_size=3), st.just({"a": 1}))
good_objects = st.lists(st.sampled_from([0, 1, 0.5, -2.0]), min_size=WIDTH, max_size=WIDTH)
labels = st.one_of(st.none(), st.sampled_from([*CLASSES, "maybe", 0, True, ["no"]]))
messages = st.one_of(
    st.fixed_dictionaries({"id": st.integers(1, 6), "x": good_objects}),
    st.fixed_dictionaries({"id": st.integers(1, 6), "y": st.sampled_from(CLASSES)}),
    st.fixed_dictionaries({"id": ids, "x": objects, "y": labels}),
)
junk = st.one_of(st.binary(max_size=12).map(lambda raw: b"!" + raw.replace(b"\n", b" ")), st.just(b"[" * 3000))


@SEVERAL
@given(st.lists(st.one_of(messages, junk), max_size=25))
@example([{"id": 1, "x": [0, 1]}, {"x": [0, 1]}, {"id": 2, "x": [0, 0], "y": "no"}, {"id": 1, "y": "yes"}])
def test_what_is_refused_changes_nothing(found):
    """The journal is that of a run over the messages that count, and those only."""
    lines = [one if isinstance(one, bytes) else json.dumps(one).encode() for one in found]
    counting = that_count([one for one in found if isinstance(one, dict)], CLASSES, WIDTH)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "all.jsonl").write_bytes(b"".join(line + b"\n" for line in lines))
        (folder / "counting.jsonl").write_text("".join(json.dumps(one) + "\n" for one in counting))
        for which in ("all", "counting"):
            files = ("--source", f"jsonl:{which}.jsonl", "--journal", f"{which}.db", "--out", which)
            result = invoke(folder, *files, "--end", "--skip-bad", "--quiet", *OPTIONS)
            assert (result.exit_code, result.output) == (0, "")
        assert left(folder / "all.db") == left(folder / "counting.db")
        assert (folder / "all").read_bytes() == (folder / "counting").read_bytes()
        asked = sum("x" in one for one in counting)
        assert len((folder / "all").read_text().splitlines()) == asked
