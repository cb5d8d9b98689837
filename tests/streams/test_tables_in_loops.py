"""A table, or a single row, where a loop or an object is wanted; rows alone and in frames go through alike."""

import pytest
from test_frames import KINDS, table, taken

pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")

import streams  # noqa: E402
import venn  # noqa: E402
from streams.frames import from_frames  # noqa: E402
from streams.sources import from_river  # noqa: E402


def model():
    return venn.TransductiveVenn(venn.LeastSquaresSVM(venn.RBF(0.5), C=1, classes=["a", "b"]))


LOOPS = {
    "venn.replay": lambda frame: venn.replay(frame, model()),
    "venn.replay of a panel": lambda frame: venn.replay(frame, venn.Panel(venn=model())),
    "streams.teach": lambda frame: list(streams.teach(frame, streams.Immediate())),
    "Online.follow": lambda frame: list(venn.Online(model()).follow(frame)), "from_river": from_river,
    "predict_one": lambda frame: model().predict_one(frame), "learn_one": lambda frame: model().learn_one(frame, "a"),
    "Panel.learn_one": lambda frame: venn.Panel(venn=model()).learn_one(frame, "a"),
    "Online.ask": lambda frame: venn.Online(model()).ask(frame),
    "y of from_arrays": lambda frame: streams.from_arrays([[0.0]] * 3, frame),
}  # fmt: skip


@pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("loop", LOOPS)
def test_a_table_is_never_iterated_by_its_columns(make, loop):
    """Of two columns of two letters each, the names would be taken for pairs (x, y)."""
    frame = make({"xa": [1.0, 2.0, 3.0], "yb": [0.5, 1.0, 2.0]})
    with pytest.raises((TypeError, ValueError), match=r"(stream|dataset|events|x|y) must (?!give pairs)"):
        LOOPS[loop](frame)


MATRICES = {
    "predict_one": lambda: model().predict_one([[0.0, 1.0]]),
    "learn_one": lambda: model().learn_one([[0.0, 1.0]], "a"),
    "first of one value": lambda: model().learn_one(0.0, "a"),
    "Panel": lambda: venn.Panel(venn=model()).learn_one([[0.0, 1.0]], "a"),
    "Online": lambda: venn.Online(model()).ask([[0.0, 1.0]]),
    "replay": lambda: venn.replay([([[0.0, 1.0]], "a")], model()),
    "from_arrays": lambda: streams.from_arrays([0.0, 1.0], ["a", "b"]),
    "from_arrays of a series": lambda: streams.from_arrays(pandas.Series([0.0, 1.0]), ["a", "b"]),
}


@pytest.mark.parametrize("call", MATRICES)
def test_one_dimension_too_many_or_too_few_is_refused(call):
    with pytest.raises(ValueError, match=r"(X must be 2-D|x must have one dimension)"):
        MATRICES[call]()


def test_one_row_alone_is_a_whole_update():
    stream = streams.from_arrays([[0.5, 1.5]], ["a"], classes=["a", "b"])
    first = model()
    assert len(venn.replay(stream, first)) == 1
    assert first.machine.n == 1
    assert taken(from_frames(polars.DataFrame({"p": [0.5], "y": ["a"]}), "y", classes=["a", "b"])) == [([0.5], "a")]


def test_frames_and_rows_come_through_a_replay_alike():
    columns = table(60)
    frame = polars.DataFrame(columns)
    whole = streams.from_arrays(frame.select("a", "b"), frame["y"])
    parts = from_frames(frame, "y", classes=["no", "yes"], features=["a", "b"])
    rows = from_river((({"b": row["b"], "a": row["a"]}, row["y"]) for row in frame.to_dicts()), features=["a", "b"])

    def answers(stream):
        machine = venn.LeastSquaresSVM(venn.RBF(0.5), C=1, classes=["no", "yes"])
        return venn.replay(stream, venn.TransductiveVenn(machine))["TransductiveVenn"].log_loss.tolist()

    assert answers(whole) == answers(parts) == answers(rows)
