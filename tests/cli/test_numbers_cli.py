"""Labels that are numbers in streams and on the command line: declared, decided by the column, refused by name."""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from scipy import stats

import streams
import venn
from venn.cli.commands import main
from venn.cli.config import merge
from venn.cli.numbers import holds_numbers
from venn.cli.panels import usual_choices
from venn.machines import RBF, Linear, MultiscaleLaplacian


def said(*arguments):
    result = CliRunner().invoke(main, list(map(str, arguments)))
    return result.exit_code, result.output


pytestmark = pytest.mark.usefixtures("undrawn")


@pytest.fixture
def housing(tmp_path):
    rng = np.random.default_rng(0)
    rows = [f"{a:.3f},{b:.3f},{100 * a + 10 * rng.normal():.2f}" for a, b in rng.normal(size=(120, 2))]
    path = tmp_path / "housing.csv"
    path.write_text("area,age,price\n" + "\n".join(rows) + "\n")
    return path


def test_a_file_of_numbers_is_replayed(housing, tmp_path):
    code, output = said("replay", housing, "--label", "price", "--out", tmp_path / "out")
    assert code == 0, output
    assert "labels are numbers (--no-numbers takes them as classes)" in output
    assert "housing: 120 examples, numbers" in output
    assert "intervals at significance 0.05 missed the true label" in output
    code, output = said("replay", housing, "--label", "price", "--out", tmp_path / "out", "--json", "--steps", 30)
    summary = json.loads(output[output.index("{") : output.rindex("}") + 1])
    assert summary["predictors"]["distribution"]["width_0.01"] is None  # no interval was finite
    code, output = said("report", tmp_path / "out" / "record.npz", "--out", tmp_path / "report.html")
    assert code == 0, output


def test_a_run_of_numbers_goes_on(housing, tmp_path):
    where = ["--source", housing, "--label", "price", "--journal", tmp_path / "run.db", "--out", tmp_path / "out.jsonl"]
    code, output = said("run", *where, "--predictors", "distribution", "--window", 50)
    assert code == 0, output
    assert "the latest 50 examples" in output
    lines = (tmp_path / "out.jsonl").read_text().splitlines()
    assert len(lines) == 120
    said_last = json.loads(lines[-1])["predictions"]["distribution"]
    assert said_last["intervals"]["0.01"] == [None, None]
    code, output = said("run", *where, "--predictors", "distribution", "--window", 50)
    assert code == 0
    assert "in all 120 and 120" in output
    code, output = said("monitor", tmp_path / "run.db", "--json")
    assert code == 0, output
    assert "its intervals at level " in output


@pytest.fixture
def messages(tmp_path):
    """Questions and their answers, two questions later; columns on scales of 1e6 and 1e-3, some labels missing."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(70, 2)) * [1e6, 1e-3]
    y = np.round(X[:, 0] / 1e4 + rng.normal(size=70) * 10, 2).tolist()
    lines = []
    for i, x in enumerate(X.tolist()):
        lines.append(json.dumps({"id": i, "x": x}))
        if i >= 2 and i % 10:
            lines.append(json.dumps({"id": i - 2, "y": y[i - 2]}))
    (tmp_path / "in.jsonl").write_text("\n".join(lines) + "\n")
    rows = [f"{a},{b},{'' if i % 10 == 8 else label},{i}" for i, ((a, b), label) in enumerate(zip(X, y, strict=True))]
    (tmp_path / "in.csv").write_text("a,b,price,id\n" + "\n".join(rows) + "\n")
    return tmp_path


def test_a_live_source_of_numbers(messages):
    where = ["--numbers", "--end", "--journal", messages / "run.db", "--out", messages / "out.jsonl", "--window", 40]
    lines = (messages / "in.jsonl").read_text().splitlines(keepends=True)
    (messages / "in.jsonl").write_text("".join(lines[:50]))
    arguments = ["run", "--source", f"jsonl:{messages}/in.jsonl", *where, "--restart-on-alarm"]
    code, output = said(*arguments)
    assert code == 0, output
    assert "scaled by the first 30 examples, the latest 40 examples" in output
    (messages / "in.jsonl").write_text("".join(lines))
    code, output = said(*arguments)
    assert code == 0, output
    assert "goes on after" in output
    assert "in all 70 and 62, 8 pending" in output
    found = [json.loads(line) for line in (messages / "out.jsonl").read_text().splitlines()]
    assert [one["id"] for one in found] == list(range(70))
    lower, upper = found[-1]["predictions"]["distribution"]["intervals"]["0.2"]
    assert lower < upper
    where[3], where[5] = messages / "rows.db", messages / "rows.jsonl"
    code, output = said("run", "--source", f"csv:{messages}/in.csv", "--label", "price", "--id", "id", *where)
    assert code == 0, output
    assert "in all 70 and 63, 7 pending" in output


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"id": 1, "y": "three"}', "y must be a finite number, as labels are declared to be numbers, got 'three'"),
        ('{"id": 1, "y": true}', "y must be a finite number"),
        ('{"id": 1, "y": 1e999}', "y must be a finite number"),
        ('{"id": 0, "y": 1e101}', "y must be a finite number of size at most"),
    ],
)
def test_a_label_that_is_no_number_is_named(messages, line, message):
    (messages / "in.jsonl").write_text('{"id": 0, "x": [1, 2]}\n' + line + "\n")
    where = ["--journal", messages / "run.db", "--out", messages / "out.jsonl", "--predictors", "distribution"]
    _, output = said("run", "--source", f"jsonl:{messages}/in.jsonl", "--numbers", "--end", *where)
    assert message in output


def test_the_default_is_several_widths_and_a_kernel_that_is_given_is_taken():
    def chosen(**machine):
        given = {("machine", key): (f"--{key}", value) for key, value in machine.items()}
        return usual_choices("a file", merge("run", {}, "", given).machine, 4)["ridge"]

    assert chosen() == (MultiscaleLaplacian(), 10.0, ", by default: kernel, C")
    assert chosen(kernel="rbf") == (RBF(0.25), 10.0, ", by default: gamma, C")
    assert chosen(gamma=2.0, C=3.0) == chosen(kernel="rbf", gamma=2.0, C=3.0) == (RBF(2.0), 3.0, "")
    assert chosen(kernel="linear", C=3.0) == (Linear(), 3.0, "")
    in_file = merge("run", {"machine": {"kernel": "rbf"}}, "run.toml", {})
    assert usual_choices("a file", in_file.machine, None)["ridge"].kernel == RBF("auto")


def test_numbers_or_classes_of_a_live_source(messages):
    for given, message in (
        ([], "--classes must be declared for a live source, such as no,yes; --numbers where labels are numbers"),
        (["--numbers", "--classes", "a,b"], "--numbers does not go with --classes"),
    ):
        code, output = said("run", "--source", f"jsonl:{messages}/in.jsonl", "--journal", messages / "x.db", *given)
        assert code == 2
        assert message in output


def test_numbers_in_frames():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"width": [0.5, 1.5], "price": [3, 2]})
    stream = streams.from_frames([frame, frame.astype(float)], "price", classes="numbers")
    assert [(x.tolist(), y) for x, y in stream] == [([0.5], 3.0), ([1.5], 2.0)] * 2
    assert (stream.classes, "numbers" in repr(stream)) == ((), True)
    for bad in (["a", 1], [np.inf, 1], [True, False], [None, 1.0]):
        with pytest.raises(
            ValueError, match=r"row 0, column 'price' (must be a finite number, as labels|is the label and is missing)"
        ):
            list(streams.from_frames(pandas.DataFrame({"w": [1.0, 2.0], "price": bad}), "price", classes="numbers"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--predictors", "abers"], "labels are numbers here: --predictors must be of forecaster"),
        (["--tune", 30], "--tune chooses nothing where labels are numbers"),
        (["--no-numbers"], "must hold classes, got"),
    ],
)
def test_what_does_not_suit_numbers_is_refused(housing, tmp_path, arguments, message):
    code, output = said("replay", housing, "--label", "price", "--out", tmp_path / "out", *arguments)
    assert code != 0
    assert message in output


def test_a_run_refuses_a_parameter_that_the_kernel_lacks(housing, tmp_path):
    where = ["--source", housing, "--label", "price", "--journal", tmp_path / "run.db", "--check"]
    code, output = said("run", *where, "--set", "machine.degree=3", "--predictors", "distribution")
    assert code != 0
    assert "--set machine.degree belongs to the kernel poly, not to laplacian" in output


def test_predictors_of_numbers_do_not_suit_classes(tmp_path):
    code, output = said("replay", "car", "--predictors", "distribution", "--out", tmp_path / "out")
    assert code != 0
    assert "labels are classes here, and distribution predicts numbers" in output


@pytest.mark.parametrize(
    ("labels", "numbers"),
    [
        (["yes", "no"], False), (["1", "2", "3"], False), ([str(i) for i in range(60)], True), (["1.5", "2"], True),
        (["1.0", "0.0"], False), (["1.5", "x"], False), (["1.5", "", "nan"], True), (["1.5", "inf"], False),
        ([], False),
    ],
)  # fmt: skip
def test_the_column_decides(tmp_path, labels, numbers):
    path = tmp_path / "file.csv"
    path.write_text("\n".join(["x,y", *(f"0,{label}" for label in labels)]) + "\n")
    assert holds_numbers(path, "y", ",") is numbers


def test_streams_of_numbers(tmp_path):
    stream = streams.from_arrays([[1.0], [2.0], [3.0]], [5, 2.5, np.float32(1)], classes="numbers")
    assert [y for _, y in stream] == [5.0, 2.5, 1.0]
    assert (stream.classes, "numbers" in repr(stream)) == ((), True)
    assert stream.shuffle(0).take(2).drop(1).y.dtype == np.float64
    for bad in (["a", 1, 2], [np.inf, 1, 2], [True, 1, 2]):
        with pytest.raises(
            ValueError, match="y, row 0 must be a finite number, as labels are declared to be numbers, got"
        ):
            streams.from_arrays([[1.0], [2.0], [3.0]], bad, classes="numbers")
    path = tmp_path / "file.csv"
    path.write_text("x,y\n1,2.5\n2,3\n")
    assert streams.from_csv(path, "y", classes="numbers").y.tolist() == [2.5, 3.0]
    path.write_text("x,y\n1,2.5\n2,?\n")
    with pytest.raises(
        ValueError, match=r"row 3, column 'y' is the label and is missing, got '\?'; drop_unlabelled=True"
    ):
        streams.from_csv(path, "y", classes="numbers")
    for name, n in (("diabetes", 442), ("linnerud", 20)):
        assert len(streams.load(name)) == n
    inductive = venn.predictors.InductiveDistribution(venn.machines.KernelRidge(venn.RBF("auto"), 1.0))
    inductive.learn_many(streams.load("linnerud"))
    assert inductive.n == 20


def test_the_distributions_of_waves_are_known():
    stream = streams.waves(2000, seed=3)
    values = [stream.cdf(i, y) for i, y in enumerate(stream.y.tolist())]
    assert stats.kstest(values, "uniform").pvalue > 0.001
    part = stream.shuffle(1).take(50)
    assert all(part.cdf(i, part.means[i]) == 0.5 for i in range(50))
    with pytest.raises(ValueError, match="noise must be positive"):
        streams.waves(5, noise=0)


def test_knowing_the_truth_is_hardly_better():
    """The distribution approaches the true one: its scores are within a tenth of the best possible ones."""
    stream = streams.waves(500, seed=1)
    record = venn.replay(stream, venn.predictors.ConformalDistribution(venn.machines.KernelRidge(venn.RBF(1.0), 10.0)))
    curves = record["ConformalDistribution"]
    best = [
        venn.distribution.NormalDistribution(float(m), float(s)).crps(y)
        for m, s, y in zip(stream.means, stream.deviations, stream.y, strict=True)
    ]
    assert np.mean(best[200:]) < curves.crps[200:].mean() < 1.15 * np.mean(best[200:])
