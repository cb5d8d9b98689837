"""Rows that are no examples: a header that comes again, units, sums and notes, a first row taken for names."""

import random
import warnings

import pytest

import streams
from streams import Nominal, Numeric
from streams.checks import Doubtful

WORDS = [f"{('red', 'green', 'blue')[i % 3]},{('S', 'M')[i % 2]},{('up', 'down')[i % 5 == 0]}" for i in range(30)]
TEXT = {"colour": Nominal(), "size": Nominal()}
NUMBERS = [f"{i * 37 % 41},{i % 7}.5,{('up', 'down')[i % 3 == 0]}" for i in range(30)]


@pytest.fixture
def write(tmp_path):
    def written(header, lines):
        path = tmp_path / "t.csv"
        path.write_text("\n".join([*([] if header is None else [header]), *lines, ""]))
        return path

    return written


def doubts(read):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        read()
    return [str(one.message) for one in found if isinstance(one.message, Doubtful) and one.message.doubt == "row"]


@pytest.mark.parametrize("schema", [TEXT, None])
def test_a_header_that_comes_again_is_named(write, schema):
    header = "colour,size,y" if schema else "a,b,y"
    lines = WORDS if schema else NUMBERS
    path = write(header, [*lines[:10], header, *lines[10:20], header, *lines[20:]])
    with pytest.raises(ValueError, match="row 12 has the names of the columns again, as in row 23, as where one file"):
        streams.from_csv(path, "y", schema=schema)


def test_a_first_row_that_comes_again_in_a_table_without_names_is_no_header(write):
    """Other rows share each of its texts, so that it is an example; the advice of a header would leave it out."""
    path, schema = write(None, 2 * WORDS), dict.fromkeys(WORDS[0].split(",")[:2], Nominal())
    (said,) = doubts(lambda: streams.from_csv(path, 2, schema=schema))
    assert "row 1 may be an example" in said


def test_a_header_that_comes_again_in_a_growing_file_is_a_bad_message(write):
    path = write("colour,y", ["red,up", "colour,y", "blue,down"])
    tally = streams.Tally()
    form = streams.Form(schema={"colour": Nominal(("red", "blue", "colour"))})
    rows = streams.CSVRows(path, "y", form=form, follow=False, bad=tally)
    assert [message.y for message in rows.messages() if message is not None] == ["up", "down"]
    assert "line 3: must be an example, got the names of the columns again" in str(tally.last)


@pytest.mark.parametrize(
    ("lines", "row", "words"),
    [
        (["(name),(letter),(class)", *WORDS], 2, "has texts that stand in no other row, '(name)', '(letter)'"),
        ([*WORDS, "Source: shop,,n=30"], 32, "has texts that stand in no other row, 'Source: shop', 'n=30'"),
        ([*WORDS, "Total,M,up"], 32, "begins with 'Total', as a sum does"),
        ([*WORDS, "GRAND TOTAL:,,up", "red,S,up"], 32, "begins with 'GRAND TOTAL:'"),
    ],
)
def test_a_row_that_is_no_example_of_words_is_named(write, lines, row, words):
    path = write("colour,size,y", lines)
    schema = {name: Nominal(missing="") for name in TEXT}
    (said,) = doubts(lambda: streams.from_csv(path, "y", schema=schema))
    assert f"row {row} may be no example: it {words}" in said


def test_units_and_sums_among_numbers_are_named_in_the_error(write):
    path = write("a,b,y", ["kg,cm,", *NUMBERS])
    with pytest.raises(streams.troubles.BadColumns) as caught:
        streams.from_csv(path, "y", drop_unlabelled=True)
    first, *_ = str(caught.value).splitlines()
    assert "row 2 may be no example: it has texts that stand in no other row, 'kg', 'cm'" in first
    path = write("shop,b,y", [*(f"s{line}" for line in NUMBERS), "Total,99.5,up"])
    (said,) = doubts(lambda: streams.from_csv(path, "y", schema={"shop": Nominal()}))
    assert "row 32 may be no example: it begins with 'Total'" in said


@pytest.mark.parametrize(("lines", "schema"), [(WORDS, {"red": Nominal(), "S": Nominal()}), (NUMBERS, None)])
def test_a_first_row_that_may_be_an_example_is_named(write, lines, schema):
    lines = ["7,3,down", *(line.replace(".5", "") for line in lines[1:])] if schema is None else lines
    path = write(None, lines)
    (said,) = doubts(lambda: streams.from_csv(path, -1, schema=schema))
    assert "row 1 may be an example, and is taken for the names of the columns" in said


@pytest.mark.parametrize("header", ["0,1,y", "1,2,3", "2019,2020,2021", "1990,2000,2010"])
def test_columns_may_be_named_by_numbers(write, header):
    assert not doubts(lambda: streams.from_csv(write(header, [line.replace(".5", "") for line in NUMBERS]), -1))


def test_tables_of_texts_with_rare_values_are_no_reason_to_warn(write):
    """Most texts of these columns come once; 60 tables, of which the first and last rows are as any other."""
    for seed in range(60):
        draw = random.Random(seed)
        lines = [
            f"{'abcdefgh'[min(int(draw.expovariate(0.8)), 7)]}{int(draw.paretovariate(0.6)) % 97},"
            f"{'uvwxyz'[min(int(draw.expovariate(1)), 5)]},{'no' if draw.random() < 0.9 else 'yes'}"
            for _ in range(30)
        ]
        path = write("colour,size,y", lines)
        assert not doubts(lambda path=path: streams.from_csv(path, "y", schema=TEXT))


def test_published_tables_are_no_reason_to_warn():
    for name in ("car", "promoters", "banknote", "german"):
        try:
            stream = streams.load(name)
        except (FileNotFoundError, ValueError):
            continue
        assert len(stream)


def test_numbers_with_gaps_and_texts(write):
    lines = [f"{'' if i % 4 else i},{i},{'up' if i % 2 else 'down'}" for i in range(30)]
    path = write("a,b,y", lines)
    assert not doubts(lambda: streams.from_csv(path, "y", schema={"a": Numeric(fill="median")}))
