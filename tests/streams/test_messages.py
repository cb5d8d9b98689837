"""Messages of live sources: what they may hold, how text becomes numbers and labels, who is told what is wrong."""

import json
import logging
import re
import subprocess
import sys

import numpy as np
import pytest
from conftest import refused
from hypothesis import given
from hypothesis import strategies as st

from streams.example import Scaling
from streams.form import Decoder, Form, to_json
from streams.json_text import distinct_keys
from streams.lines import CSVRows
from streams.messages import BadMessage, Message, Tally
from streams.schema import Nominal, Numeric, Ordinal, Skip

FRUIT = Form(
    features=["weight", "colour", "note", "size"],
    classes=["lime", 2, True],
    schema={
        "weight": Numeric(missing="?", fill=-1.0), "colour": Nominal(("red", "green")), "note": Skip(),
        "size": Ordinal(("small", "big")),
    },
)  # fmt: skip


def read(text, form=None):
    identity, x, y = Decoder(form or Form()).json(text)
    return identity, None if x is None else x.tolist(), y


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"id": 7, "x": [1, 2.5], "y": "no"}', (7, [1.0, 2.5], "no")),
        ('{"id": "k", "x": [0]}', ("k", [0.0], None)),
        ('{"id": "k", "x": [0], "y": null, "when": [1]}', ("k", [0.0], None)),
        ('{"id": -9223372036854775808, "y": 1.5}', (-(2**63), None, 1.5)),
        ('{"x": [-1e308], "y": false}', (None, [-1e308], False)),
        (b' {"y": "\\u00e9\xc3\xa9", "id": "\\ud83d\\ude00"} \r', ("\U0001f600", None, "éé")),
    ],
)
def test_json(text, expected):
    found = read(text)
    assert found == expected
    assert [type(part) for part in found] == [type(part) for part in expected]


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        ({"weight": 3, "colour": "green", "note": None, "size": "big"}, [3, 0, 1, 1]),
        ({"size": "small", "note": 1, "weight": "?", "colour": "red"}, [-1, 1, 0, 0]),
        ([3, "green", [], "big"], [3, 0, 1, 1]),
        ([None, "green", [], "big"], [-1, 0, 1, 1]),
    ],
)
def test_names_and_kinds(x, expected):
    decoder = Decoder(FRUIT)
    for _ in range(2):
        assert decoder.point(x).tolist() == expected


def test_scaling_comes_last_and_objects_are_read_only():
    form = Form(features=["a", "b"], schema={"b": Nominal(("u", "v"))}, scaling=Scaling([1, 0, 0], [2, 1, 4]))
    x = Decoder(form).point([5, "v"])
    assert x.tolist() == [2, 0, 0.25]
    with pytest.raises(ValueError, match="read-only"):
        x[0] = 1
    with pytest.raises(ValueError, match="X must have 3 features, as the scaling has, got 1"):
        Decoder(Form(scaling=form.scaling)).point([1])
    with pytest.raises(ValueError, match="x must stay finite when scaled"):
        Decoder(Form(scaling=Scaling([0], [1e-300]))).point([1e300])


def test_labels_keep_their_type_and_text_finds_its_class():
    decoder = Decoder(FRUIT)
    assert [decoder.label(y) for y in ("lime", 2, 2.0, True)] == ["lime", 2, 2, True]
    assert type(decoder.label(2.0)) is int
    assert [decoder.text_label(y) for y in ("lime", "2", "True", "", "?")] == ["lime", 2, True, None, None]
    assert Decoder(Form(classes=["?", "x"])).text_label("?") == "?"
    assert Decoder(Form()).text_label("2") == "2"


DEEP = "[" * 100_000
MANY = "9" * 5000


def nested(depth):
    return "[" * depth + "1" + "]" * depth


def test_names_that_come_twice_are_found_in_one_pass():
    class Name(str):
        compared = 0
        __hash__ = str.__hash__

        def __eq__(self, other):
            Name.compared += 1
            return str.__eq__(self, other)

    pairs = [(Name(i), i) for i in range(1000)] + [(Name(999), 0)]
    with pytest.raises(ValueError, match="must name nothing twice, got two of '999'"):
        distinct_keys(pairs)
    assert Name.compared < 100


@pytest.mark.parametrize(
    ("text", "form", "reason"),
    [
        ("", None, "must be JSON: Expecting value"), ("{", None, "must be JSON"),
        (DEEP, None, "must be JSON nested at most 100 deep, got"),
        (f'{{"id": 1, "x": {nested(100)}}}', None, "must be JSON nested at most 100 deep, got"),
        (f'{{"id": 1, "x": {nested(930)}}}', None, "must be JSON nested at most 100 deep, got"),
        (f'{{"id": 1, "x": {nested(99)}, "z": "]]]"}}', None, "x[0] must be a number, got [["),
        (f'{{"y": {MANY}}}', None, "4300"), ("[]", None, "must be a JSON object with id, x, y, got '[]'"),
        (b'{"y": "\xff"}', None, "must be UTF-8"), ("{}", None, "must have x, y or both, got neither"),
        ('{"id": 1}', None, "must have x, y or both, got neither"),
        ('{"y": 1}', None, "must have an id, as it has y and no x, got none"),
        ('{"id": 1, "y": 1, "id": 2}', None, "must name nothing twice, got two of 'id'"),
        ('{"id": true, "y": 1}', None, "id must be text or an integer of 64 bits, got True"),
        ('{"id": 1.0, "y": 1}', None, "id must be text or an integer of 64 bits, got 1.0"),
        ('{"id": 9223372036854775808, "y": 1}', None, "id must be text or an integer of 64 bits"),
        ('{"id": "", "y": 1}', None, "id must not be empty"),
        ('{"id": "\\ud800", "y": 1}', None, "id must be whole Unicode characters"),
        ('{"id": 1, "y": "\\udfff"}', None, "y must be whole Unicode characters"),
        ('{"id": 1, "y": []}', None, "y must be text, a number or a truth value, got []"),
        ('{"id": 1, "y": 1e999}', None, "y must be finite, got inf"),
        ('{"id": 1, "y": NaN}', None, "must hold finite numbers only, got NaN"),
        ('{"id": 1, "y": "two"}', FRUIT, "y must be one of the classes ('lime', 2, True), got 'two'"),
        ('{"id": 1, "y": "2"}', FRUIT, "y must be one of the classes ('lime', 2, True), got '2'"),
        ('{"id": 1, "y": 1}', FRUIT, "y must be one of the classes ('lime', 2, True), got 1"),
        ('{"x": 3}', None, "x must be a list of numbers or an object from feature to value, got 3"),
        ('{"x": []}', None, "x must have at least one value, got none"),
        ('{"x": [1, null]}', None, "x[1] is missing, got null"),
        ('{"x": ["one"]}', None, "x[0] must be a number, got 'one'"),
        ('{"x": [true]}', None, "x[0] must be a number, got True"),
        ('{"x": [Infinity]}', None, "must hold finite numbers only, got Infinity"),
        ('{"x": [-1e999]}', None, "x[0] must be a finite number, got -inf"),
        (f'{{"x": [{MANY[:400]}]}}', None, "x[0] must be a finite number, got 999"),
        ('{"x": {"a": 1}}', None, "x has names, and no features are declared"),
        ('{"x": [1]}', Form(features=["a", "b"]), "x must have 2 values, got 1"),
        ('{"x": ["one", 2]}', Form(features=["a", "b"]), "x, feature 'a' must be a number, got 'one'"),
        ('{"x": {"a": 1}}', Form(features=["a", "b"]), "x must have a value for every feature, got none for 'b'"),
        ('{"x": {"a": 1, "b": 2, "c": 3}}', Form(features=["a", "b"]), "x must have values for the features only"),
        ('{"x": [1, "blue", 0, "big"]}', FRUIT, "x, feature 'colour' must be one of the declared values"),
        ('{"x": [1, 0, 0, "big"]}', FRUIT, "x, feature 'colour' must be text, got 0"),
        ('{"x": ["", "red", 0, "big"]}', FRUIT, "x, feature 'weight' must be a number, got ''"),
        ('{"x": [1, "red", 0, ""]}', FRUIT, "x, feature 'size' is missing, got ''"),
    ],
    ids=lambda value: value if isinstance(value, str) and len(value) < 60 else "",
)  # fmt: skip
def test_what_is_no_message(text, form, reason):
    with pytest.raises(ValueError, match=re.escape(reason)) as caught:
        Decoder(form or Form()).json(text)
    assert len(str(caught.value)) < 300


test_bad_parameters = refused(None, [
    (lambda: Form(features="ab"), TypeError, "features must be a sequence of str, got 'ab'"),
    (lambda: Form(features=[]), ValueError, "features must name at least one value"),
    (lambda: Form(features=["a", "a"]), ValueError, "features must be distinct, got 'a' twice"),
    (lambda: Form(classes=[1, "1"]), ValueError, "classes must be distinct as text, got (1, '1')"),
    (lambda: Form(classes="ab"), TypeError, "classes must be a sequence of labels"),
    (lambda: Form(schema=[]), TypeError, "schema must be a mapping from name to kind, got []"),
    (lambda: Form(schema={"a": 1}), TypeError, "schema['a'] must be Numeric, Nominal, Ordinal or Skip, got 1"),
    (lambda: Form(["b"], schema={"a": Skip()}), ValueError, "schema must name features of ('b',), got 'a'"),
    (lambda: Form(schema={"a": Nominal()}), ValueError, "schema['a'] must have its values declared"),
    (lambda: Form(schema={"a": Numeric("?", "median")}), ValueError, "schema['a'] must fill with a number"),
    (lambda: Form(scaling=True), TypeError, "scaling must be a Scaling, got True"),
    (lambda: Decoder(Form(["a"], schema={"a": Skip()})), ValueError, "schema must leave a feature"),
    (lambda: Tally(-1), ValueError, "limit must be an integer >= 0, got -1"),
    (lambda: to_json(), ValueError, "must have x, y or both, got neither"),
    (lambda: to_json(y=1), ValueError, "must have an id"),
    (lambda: to_json(1, [[1]]), ValueError, "x must be a sequence of finite numbers"),
    (lambda: to_json(1, []), ValueError, "x must be a sequence of finite numbers"),
    (lambda: to_json(1, [float("nan")]), ValueError, "x must be a sequence of finite numbers"),
    (lambda: to_json(1, ["a"]), ValueError, "x must be a sequence of finite numbers"),
    (lambda: to_json(1, {"a": float("inf")}), ValueError, "x, feature 'a' must be a finite number, got inf"),
    (lambda: to_json(1, {1: 1}), TypeError, "x must be str, got 1"),
    (lambda: to_json(1, y=float("inf")), ValueError, "y must be finite, got inf"),
], plain=True)  # fmt: skip


NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
WORDS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=5)
IDS = st.integers(-(2**63), 2**63 - 1) | WORDS
LABELS = WORDS | st.integers(-(2**70), 2**70) | NUMBERS | st.booleans()


@given(IDS, st.none() | st.lists(NUMBERS, min_size=1, max_size=3), st.none() | LABELS)
def test_what_is_written_is_read(identity, x, y):
    if x is None and y is None:
        return
    text = to_json(identity, None if x is None else np.array(x), y)
    assert "\n" not in text
    assert json.loads(text).get("y") == y
    assert read(text) == (identity, x, y)


def test_numpy_labels_and_ids_are_written():
    assert to_json(np.int64(7), np.array([1, 2]), np.str_("a")) == '{"id": 7, "x": [1.0, 2.0], "y": "a"}'


def test_tally_counts_and_stops(caplog):
    errors = [BadMessage(f"line {i}", i) for i in range(1, 14)]
    tally = Tally(limit=12)
    with caplog.at_level(logging.WARNING, "streams"):
        for error in errors[:12]:
            tally(error)
    assert (tally.count, tally.last) == (12, errors[11])
    assert [record.getMessage() for record in caplog.records] == [
        "skipped (1 so far): line 1",
        "skipped (10 so far): line 10",
    ]
    with pytest.raises(BadMessage, match="line 13") as caught:
        tally(errors[12])
    assert caught.value.position == 13


def test_message_is_a_tuple():
    assert Message(1, None, "a", 5) == (1, None, "a", 5)


def test_only_numpy_is_imported():
    program = "import sys, streams.labels, streams.lines, streams.brokers, streams.brokers\n"
    program += "print(sorted({'redis', 'confluent_kafka', 'scipy', 'sklearn', 'numba', 'venn'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_an_object_is_what_a_form_makes_of_its_cells(tmp_path):
    made = Form(["city", "age"], ["no", "yes"], make=lambda cells: ("made", cells))
    expected = ("made", {"city": "Oslo", "age": 31})
    assert Decoder(made).json('{"x": {"age": 31, "city": "Oslo"}}')[1] == expected
    assert Decoder(made).json('{"x": ["Oslo", 31]}')[1] == expected
    assert Decoder(Form(make=tuple)).json('{"x": ["Oslo", null]}')[1] == ("Oslo", None)
    (tmp_path / "in.csv").write_text("age,extra,city,y\n31,?,Oslo,no\n")
    (message,) = CSVRows(tmp_path / "in.csv", "y", form=made, follow=False).messages()
    assert (message.x, message.y) == (("made", {"city": "Oslo", "age": "31"}), "no")
    for text in ('{"x": ["Oslo"]}', '{"x": {"city": "Oslo"}}', '{"x": []}', '{"x": 3}'):
        with pytest.raises(ValueError, match=r"x must (have|be)"):
            Decoder(made).json(text)
    with pytest.raises(TypeError, match="make must be a function"):
        Form(make=3)
    for more in ({"schema": {"age": Numeric()}}, {"scaling": Scaling([0], [1])}):
        with pytest.raises(ValueError, match="make must be None where there is a schema or scaling"):
            Form(make=tuple, **more)
