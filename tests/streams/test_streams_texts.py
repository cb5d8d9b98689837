"""One list of missing texts, and one rule for the same written differently, in every source."""

import gzip
import unicodedata
import warnings

import numpy as np
import pandas
import pytest

import streams
import venn.labels
from streams import Nominal, Numeric
from streams.checks import MISSING, Doubtful, alike, means_missing

SURE = [text for text in MISSING if text != "NA"]
E = "caf\u00e9"


@pytest.fixture
def write(tmp_path):
    """Write rows of a feature and a label."""

    def write(labels, values=None):
        path = tmp_path / "rows.csv"
        rows = [f"{i % 3},{values[i % len(values)] if values else i * 7 % 5},{y}" for i, y in enumerate(labels)]
        path.write_text("\n".join(["a,b,y", *rows]) + "\n", encoding="utf-8")
        return path

    return write


def from_csv(labels, write, **options):
    return streams.from_csv(write(labels), "y", **options)


def from_arrays(labels, write, **options):
    return streams.from_arrays([[i] for i in range(len(labels))], labels, **options)


def from_river(labels, write, **options):
    return streams.from_river([({"a": float(i)}, y) for i, y in enumerate(labels)], **options)


SOURCES = pytest.mark.parametrize("source", [from_csv, from_arrays, from_river])


@SOURCES
@pytest.mark.parametrize("gap", [*SURE, "  ", " nan "], ids=repr)
def test_a_label_that_means_missing_is_refused_with_its_rows_or_dropped(source, gap, write):
    labels = ["n", "p", gap, "n", "p", gap, "n"]
    with pytest.raises(ValueError, match=r"(is the label and is|have no) missing.*, got .*, as in row [57]"):
        source(labels, write)
    stream = source(labels, write, drop_unlabelled=True)
    assert [y for _, y in stream] == ["n", "p", "n", "p", "n"]
    whole = source(["n", "p", "z", "n", "p", "z", "n"], write, scale=False)
    assert source(labels, write, drop_unlabelled=True, scale=False).X.tolist() == whole.X[[0, 1, 3, 4, 6]].tolist()


@SOURCES
def test_a_declared_class_is_a_label_whatever_it_looks_like(source, write):
    stream = source(["None", "n", "None"], write, classes=["None", "n"], drop_unlabelled=True)
    assert [y for _, y in stream] == ["None", "n", "None"]


@SOURCES
def test_na_may_be_a_class_and_is_doubted(source, write):
    with pytest.warns(Doubtful, match=r"'NA' \(2 of 4 rows\) counts as one of the labels"):
        assert source(["NA", "EU", "EU", "NA"], write).classes == ("EU", "NA")


def test_the_same_list_holds_for_numbers_as_labels_and_as_features(write):
    path = write(["1.5", "nan", "2.5", "#N/A"], ["7", "NULL", " ", "9"])
    filled = {"b": Numeric(fill="median")}
    stream = streams.from_csv(path, "y", classes="numbers", schema=filled, scale=False, drop_unlabelled=True)
    assert stream.y.tolist() == [1.5, 2.5]
    assert stream.X[:, 1].tolist() == [7, 7]  # the median of the rows that are left
    with pytest.raises(ValueError, match=r"row 3, column 'b' is missing, got 'NULL'"):
        streams.from_csv(path, "y", classes="numbers", drop_unlabelled=True)


def test_further_texts_may_mean_a_missing_value(write):
    path = write(["n", "-", "p", "NA"], ["7", "-", "9", "8"])
    options = {"schema": {"b": Numeric(fill=0)}, "scale": False, "missing": ["-", "NA"]}
    with pytest.raises(ValueError, match=r"column 'y' is the label and is missing, got '-', as in row 5"):
        streams.from_csv(path, "y", **options)
    stream = streams.from_csv(path, "y", **options, drop_unlabelled=True)
    assert (stream.classes, stream.X[:, 1].tolist()) == (("n", "p"), [7, 9])
    with pytest.raises(ValueError, match=r"row 3, column 'b' is missing, got '-'"):
        streams.from_csv(path, "y", missing=["-"])


def test_frames_drop_rows_without_a_label():
    frame = pandas.DataFrame({"a": [1.0, 2.0, 3.0], "y": ["n", None, "p"]})
    with pytest.raises(
        ValueError, match=r"row 1, column 'y' is the label and is missing, .*; drop_unlabelled=True drops"
    ):
        list(streams.from_frames(frame, "y", classes=["n", "p"]))
    stream = streams.from_frames([frame, frame], "y", classes=["n", "p"], drop_unlabelled=True)
    assert [(x.tolist(), y) for x, y in stream] == [([1.0], "n"), ([3.0], "p")] * 2
    frame["y"] = [0.5, np.nan, 1.5]
    stream = streams.from_frames(frame, "y", classes="numbers", drop_unlabelled=True)
    assert [y for _, y in stream] == [0.5, 1.5]
    assert list(streams.from_frames(frame[1:2], "y", classes="numbers", drop_unlabelled=True)) == []


def test_a_growing_file_takes_missing_labels_by_the_same_list(tmp_path):
    path = tmp_path / "in.csv"
    path.write_text("a,y\n" + "".join(f"1,{gap}\n" for gap in ["nan", " ", "null", "NA", "n"]))
    rows = streams.CSVRows(path, "y", form=streams.Form(classes=["n", "p"]), follow=False)
    assert [message.y for message in rows.messages()] == [None] * 4 + ["n"]


@pytest.mark.parametrize(("header", "delimiter"), [("a;y", ";"), ("a y", " ")])
def test_a_growing_file_of_one_column_names_another_delimiter(header, delimiter, tmp_path):
    path = tmp_path / "in.csv"
    path.write_text(f"{header}\n")
    with pytest.raises(ValueError, match=f"line 1: a file of rows must .*: try delimiter='{delimiter}'"):
        next(streams.CSVRows(path, "y", follow=False).messages())


DIFFERENT = [
    (["1", "0", "1.0", "0.0"], ("0", "1")), (["<=50K", ">50K", "<=50K.", ">50K."], ("<=50K", ">50K")),
    (["Yes", "no", "yes ", "NO"], None), ([E, "tea", unicodedata.normalize("NFD", E)], (E, "tea")),
    (["a", "b", "a\u200b", "b"], ("a", "b")), (["01", "2", "1", "2e0"], ("1", "2")),
]  # fmt: skip


@SOURCES
@pytest.mark.parametrize(("names", "merged"), DIFFERENT, ids=range(len(DIFFERENT)))
def test_labels_that_are_the_same_written_differently_are_doubted_or_merged(source, names, merged, write):
    labels = names * 3
    with pytest.warns(Doubtful, match=r"are the same written differently.*merge_alike=True makes them one"):
        source(labels, write)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stream = source(labels, write, merge_alike=True)
        assert len(stream.classes) == 2
        assert merged is None or stream.classes == merged
        back = source(labels[::-1], write, merge_alike=True)
        assert back.classes == stream.classes  # whatever the order
        declared = source(labels, write, classes=list(stream.classes), merge_alike=True)
    assert declared.y.tolist() == stream.y.tolist()


@pytest.mark.parametrize(
    "names",
    [["a", "b"], ["1", "1.5"], ["a.b", "ab"], ["9" * 30, "9" * 29 + "8"], ["1_0", "10"], ["+", "-"], [".", ","]],
)
def test_other_names_are_several(names):
    assert alike(names) == []


def test_values_of_a_nominal_are_compared_as_labels_are(write):
    path = write(list("npnp") * 3, ["red", "Red", "blue", "red."])
    with pytest.warns(Doubtful, match=r"column 'b': the values 'Red' \(3 of 12 rows\) and 'red' .* and 'red.'"):
        apart = streams.from_csv(path, "y", schema={"b": Nominal()}, scale=False)
    assert len(apart.features) == 5
    one = streams.from_csv(path, "y", schema={"b": Nominal()}, scale=False, merge_alike=True)
    assert one.features == ("a", "b=Red", "b=blue")
    assert one.X[:4, 1].tolist() == [1, 1, 0, 1]
    by_kind = streams.from_csv(path, "y", schema={"b": Nominal(("blue", "red"), merge_alike=True)}, scale=False)
    assert by_kind.X[:4, 2].tolist() == [1, 1, 0, 1]
    frame = pandas.read_csv(path)
    with pytest.warns(Doubtful, match="X, column 'b': the values"):
        streams.from_arrays(frame[["a", "b"]], frame["y"], schema={"b": Nominal()})
    same = streams.from_arrays(frame[["a", "b"]], frame["y"], schema={"b": Nominal()}, merge_alike=True)
    assert (same.features, same.X.tolist()) == (one.features, one.X.tolist())
    form = streams.Form(["b"], schema={"b": Nominal(("blue", "red"), merge_alike=True)})
    assert streams.form.Decoder(form).point(["RED "]).tolist() == [0, 1]


def test_what_only_stands_in_dropped_rows_is_not_doubted(write):
    path = write(["n", "p", "", "n"] * 4, ["x", "y", "X", "y"])
    stream = streams.from_csv(path, "y", schema={"b": Nominal()}, drop_unlabelled=True)  # no warning
    assert len(stream) == 12
    path = write(["n", "p", "", "n"] * 4, [f"k{i}" for i in range(16)])
    with pytest.warns(Doubtful, match="column 'b' has another text in each row"):
        streams.from_csv(path, "y", schema={"b": Nominal()}, drop_unlabelled=True)


def test_blanks_around_a_missing_value_of_a_nominal_are_ignored(write):
    path = write(list("npnp"), [" ?", "x", "?", "y"])
    stream = streams.from_csv(path, "y", schema={"b": Nominal(missing="?")}, scale=False)
    assert stream.features == ("a", "b=?", "b=x", "b=y")
    assert stream.X[:, 1].tolist() == [1, 0, 1, 0]


def test_a_warning_points_to_the_line_that_asked(write):
    path = write(["a", "A"] * 5)
    for ask in (lambda: streams.from_csv(path, "y"), lambda: streams.from_arrays([[1.0], [2.0]], ["a", "A"])):
        with pytest.warns(Doubtful) as caught:
            ask()
        assert [warning.filename for warning in caught] == [__file__]


@pytest.mark.parametrize("classes", [[True, "true"], [1, "1"], [True, "True"], [1.5, "1.5"]])
def test_classes_with_one_text_are_refused(classes):
    with pytest.raises(ValueError, match="classes must be distinct as text"):
        streams.Form(classes=classes)
    if classes[1] != "True":  # JSON's own key is true
        with pytest.raises(ValueError, match="classes must differ as keys of a JSON object, got"):
            venn.labels.Classes(classes)


def test_blanks_do_not_hide_what_is_missing():
    assert means_missing("\tN/A ")
    assert not means_missing("none")
    assert not means_missing("0")


TEXT = "a;b;y\n1;x;n\u00e9\n2;y;p\n3;x;p\n"
SAME = [([1.0, 1.0, 0.0], "n\u00e9"), ([2.0, 0.0, 1.0], "p"), ([3.0, 1.0, 0.0], "p")]


def read(path, delimiter=";"):
    stream = streams.from_csv(path, "y", delimiter=delimiter, schema={"b": Nominal()}, scale=False)
    return [(x.tolist(), y) for x, y in stream]


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"]
)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=repr)
def test_a_file_is_decoded_by_its_first_bytes_and_ends_its_lines_as_it_likes(encoding, end, tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(TEXT.replace("\n", end).encode(encoding))
    assert read(path) == SAME


@pytest.mark.parametrize("packing", ["gzip", "bz2", "lzma", "zip"])
def test_a_file_is_unpacked_by_its_first_bytes(packing, tmp_path):
    path = tmp_path / "t.csv.packed"
    if packing == "zip":
        import zipfile

        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("inner.csv", TEXT)
    else:
        path.write_bytes(__import__(packing).compress(TEXT.encode()))
    assert read(path) == SAME


def test_a_zip_of_several_files_and_a_workbook_are_named(tmp_path):
    import zipfile

    path = tmp_path / "t.zip"
    for names, said in ((["a.csv", "b.csv"], "got 2 files: unpack it"), (["[Content_Types].xml"], "an Excel workbook")):
        with zipfile.ZipFile(path, "w") as archive:
            for name in names:
                archive.writestr(name, TEXT)
        with pytest.raises(ValueError, match=said):
            read(path)


@pytest.mark.parametrize("text", ["sep=;\n" + TEXT, "sep=,\n" + TEXT.replace(";", ",")])
def test_a_first_line_may_declare_the_delimiter(text, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(text)
    assert read(path, ",") == read(path, ";") == SAME
    path.write_text(text.replace("\n2", "\nz"))
    with pytest.raises(ValueError, match=r"row 4, column 'a' must be a number, got 'z'"):
        read(path)


@pytest.mark.parametrize(
    "text",
    [
        TEXT.replace("\n", ";\n"),  # a delimiter at the end of every row, of the header too
        TEXT.replace("\n", ";\n").replace("y;\n", "y\n", 1),  # but of the header
        TEXT.replace("y\n", "y;\n", 1),  # of the header only
    ],
    ids=["all", "rows", "header"],
)
def test_a_delimiter_may_end_the_rows(text, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(text)
    assert read(path) == SAME


def test_what_follows_the_last_delimiter_must_be_nothing(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(TEXT.replace("\n", ";\n").replace("p;\n3", "p;lost\n3"))
    with pytest.raises(ValueError, match="row 3, column '' has no name and must be empty, got 'lost'"):
        read(path)


@pytest.mark.parametrize("header", ["a;b;y", ";a;b;y"])
def test_names_of_rows_as_r_and_pandas_write_them_are_left_out(header, tmp_path):
    path = tmp_path / "t.csv"
    _, *rows = TEXT.splitlines()
    path.write_text("\n".join([header, *(f"r{i};{row}" for i, row in enumerate(rows))]))
    with pytest.warns(Doubtful, match="the first column has no name and another text in each row"):
        assert read(path) == SAME
    path.write_text("\n".join([header, *(f"r;{row}" for row in rows)]))
    with pytest.raises(ValueError, match="the same text comes twice in it: give every column a name"):
        read(path)
    path.write_text("\n".join([header, *(f"0.{i + 1};{row}" for i, row in enumerate(rows))]))
    with pytest.raises(ValueError, match="but it holds fractions: give every column a name"):
        read(path)


def test_a_long_line_and_a_bomb_are_refused(tmp_path, monkeypatch):
    path = tmp_path / "t.csv.gz"
    monkeypatch.setattr("streams.files.LONGEST", 1000)
    path.write_bytes(gzip.compress(b"a,y\n1,n\n" + b"1" * 5000))
    with pytest.raises(ValueError, match=r"t\.csv\.gz, line 3 must have fewer than 1000 characters"):
        streams.from_csv(path, "y")
    monkeypatch.setattr("streams.files.FREE", 10_000)
    path.write_bytes(gzip.compress(b"a,y\n" + b"1,n\n" * 100_000))
    with pytest.raises(ValueError, match=r"must unpack to at most 100 times its size, as tables do, got more"):
        streams.from_csv(path, "y")
