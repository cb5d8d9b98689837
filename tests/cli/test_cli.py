"""The command line: what it prints, writes and refuses."""

import importlib.util
import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import stand_ins
from click.testing import CliRunner
from conftest import well

import streams
import venn
from venn import cli
from venn.cli.predictors import PREDICTORS
from venn.cli.words import conclude, plain_words
from venn.monitors.verdict import Verdict
from venn.online.record import Record
from venn.prediction import Forecast, Multiprobability, PredictionSet

MULTISCALE = repr(venn.machines.MultiscaleLaplacian())


@pytest.fixture
def run(tmp_path, monkeypatch, undrawn):
    """Run a command line in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(cli.main, [str(argument) for argument in arguments])


@pytest.fixture
def table(tmp_path):
    """A small CSV file with a nominal column."""
    rng = np.random.default_rng(0)
    path = tmp_path / "fruit.csv"
    rows = [
        f"{rng.normal():.3f},{rng.normal():.3f},{rng.choice(['red', 'green'])},{label}"
        for label in rng.choice(["apple", "lemon"], size=30)
    ]
    path.write_text("\n".join(["weight,width,colour,fruit", *rows]) + "\n")
    return path


def test_module_runs():
    done = subprocess.run([sys.executable, "-m", "venn", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"venn, version {venn.__version__}\n"


def test_the_usual_folder_is_made_before_anything_is_done_too(run, tmp_path, monkeypatch):
    monkeypatch.setattr("venn.cli.replay.run", None)
    (tmp_path / "runs").write_text("in the way")
    assert run("replay", "car", "--steps", 5).stderr.splitlines()[-1].startswith("Error: --out must be a place that")


@pytest.mark.parametrize("command", ["replay", "monitor", "compare"])
def test_a_folder_that_cannot_be_made_is_named_with_its_option_before_the_first_step(
    run, tmp_path, monkeypatch, command
):
    monkeypatch.setattr(Record, "update", lambda *_: pytest.fail("a step was made"))
    monkeypatch.setattr(Record, "update_many", lambda *_: pytest.fail("a step was made"))
    (tmp_path / "file").write_text("")
    result = run(command, "car", "--steps", 5, "--out", "file/sub")
    assert result.exit_code == 1
    assert result.output.splitlines()[-1] == (
        "Error: --out must be a place that can be written, got file/sub: Not a directory"
    )


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="no folder here that nobody may write")
@pytest.mark.parametrize("command", ["replay", "monitor", "compare"])
def test_a_folder_where_nothing_can_be_written_is_named_before_the_first_step(run, monkeypatch, command):
    monkeypatch.setattr(Record, "update", lambda *_: pytest.fail("a step was made"))
    monkeypatch.setattr(Record, "update_many", lambda *_: pytest.fail("a step was made"))
    result = run(command, "car", "--steps", 5, "--out", "/proc")
    assert result.exit_code == 1
    assert result.output.splitlines()[-1].startswith("Error: --out must be a place that can be written, got /proc: ")


def test_the_table_is_printed_though_the_record_cannot_be_kept(run, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Record, "plot_all", full)
    kept = run("replay", "car", "--steps", 40, "--predictors", "leave_one_out")
    assert (kept.exit_code, "no figures: [Errno 28] No space" in kept.stderr) == (0, True)
    monkeypatch.setattr(Record, "save", full)
    lost = run("replay", "car", "--steps", 40, "--predictors", "leave_one_out")
    assert lost.exit_code == 1
    assert lost.stderr.splitlines()[-1].startswith("Error: --out must be a place that can be written, got runs/car: No")
    assert lost.stdout.splitlines() == [line for line in kept.stdout.splitlines() if "wrote runs/car/" not in line]
    watched = run("monitor", "car", "--steps", 40, "--predictors", "leave_one_out", "--out", "here")
    assert watched.exit_code == 1
    assert watched.stdout.splitlines()[-1].startswith("verdict: ")


@pytest.mark.parametrize("command", ["replay", "monitor"])
@pytest.mark.parametrize(("terminal", "options"), [(True, ()), (False, ()), (True, ("--no-progress",))])
def test_in_a_terminal_it_says_that_it_draws(run, monkeypatch, command, terminal, options):
    monkeypatch.setattr("venn.online.record.Record.plot_all", lambda record, folder: [])
    monkeypatch.setattr("venn.cli.replay.shows_progress", lambda show: terminal if show is None else show)
    result = well(run(command, "car", "--steps", 3, "--predictors", "leave_one_out", "--out", "here", *options))
    assert ("drawing figures ...\n" in result.stderr) == (terminal and not options)


def test_datasets_lists_every_set(run):
    result = well(run("datasets"))
    head, *rows = result.stdout.splitlines()
    assert head.split() == ["name", "rows", "features", "classes", "where"]
    assert [row.split()[0] for row in rows] == [info.name for info in streams.datasets()]
    assert rows[0].split() == ["car", "1728", "6", "4", "generated"]


def test_replay_prints_the_table_and_writes_record_and_figure(run, tmp_path, undrawn):
    undrawn.undo()
    pytest.importorskip("matplotlib")
    result = well(run("replay", "car", "--steps", 40, "--predictors", "venn"))
    assert result.stderr == ""
    order, first, *lines = result.stdout.splitlines()
    assert order == "car: 1728 examples in a random order, that of seed 0 (--shuffle none for the order of the data)"
    assert first == "venn: one-vs-all SVM with RBF(gamma=0.1), C=10, by default: kernel, C"
    assert lines[0] == "car: 40 examples, 4 classes, shuffle 0"
    assert lines[2].split()[0] == "venn"
    assert lines[4].startswith("venn: the accuracy, ")
    assert lines[-3].endswith("s; wrote runs/car/: record.npz, and as .png curves, martingales, p_values, reliability")
    assert lines[-2] == "look first at runs/car/curves.png: is the accuracy inside its band, and how wide is that?"
    assert lines[-1].startswith("verdict: venn: Wait, too early to say: 40 of 300 examples.")
    assert (tmp_path / "runs/car/curves.png").stat().st_size > 10_000
    record = Record.load(tmp_path / "runs/car/record.npz")
    assert (len(record), record.data, record.shuffle) == (40, "car", 0)
    assert "RBF(gamma=0.1)" in record.parameters["venn"]
    assert "\n".join(lines).startswith(record.table())


def test_the_first_output_fits_a_screen_and_says_why_others_stand_beside_the_forecaster(run):
    result = well(run("replay", "car", "--steps", 60))
    lines = result.stdout.splitlines()
    # Some more for a verdict that is too early to say, and for classes that sets miss.
    assert sum(-(-len(line) // 100) for line in lines) <= 28
    assert (
        lines[1] == "forecaster: forecast, intervals and sets, with nothing to choose; columns standardised beforehand"
    )
    assert lines[2].startswith("beside it, for comparison, what Lambrou, ")
    assert lines[3].startswith("venn, platt, binning, isotonic: one-vs-all SVM")
    assert [line.split()[0] for line in lines[6:8]] == ["forecast", "intervals"]
    assert "look first at runs/car/curves.png" in result.stdout
    assert lines[-1].startswith("verdict: intervals: Wait, too early to say: 60 of 363 examples.")


def test_default_predictors_share_their_machines(run, tmp_path):
    result = well(run("replay", "car", "--steps", 30, "--json", "--out", "here"))
    found = json.loads(result.stdout)
    assert list(found["predictors"]) == ["forecast", "intervals", "sets", "venn", "platt", "binning", "isotonic"]
    assert found["verdict"]["predictor"] == "intervals"
    for name in ("platt", "binning", "isotonic"):
        assert found["predictors"][name]["width"] == 0
    alone = json.loads(run("replay", "car", "--steps", 30, "--json", "--predictors", "venn").stdout)
    assert alone["predictors"]["venn"] == found["predictors"]["venn"]
    files = ["curves.png", "errors.png", "martingales.png", "p_values.png", "record.npz", "reliability.png"]
    assert sorted(path.name for path in (tmp_path / "here").iterdir()) == files


def test_json_is_one_object_and_nothing_else(run, tmp_path):
    result = well(run("replay", "car", "--steps", 25, "--shuffle", 3, "--json", "--predictors", "venn"))
    assert result.stdout.count("\n") == 1
    found = json.loads(result.stdout)
    keys = ["data", "n", "classes", "shuffle", "seconds", "tuned_on", "predictors", "verdicts", "verdict"]
    assert list(found) == keys
    assert (found["data"], found["n"], found["shuffle"]) == ("car", 25, 3)
    assert found["classes"] == ["unacc", "acc", "good", "vgood"]
    assert found["seconds"] > 0
    assert found["predictors"] == Record.load(tmp_path / "runs/car/record.npz").means()
    assert "wrote runs" in result.stderr


def test_replay_follows_the_library(run):
    result = run(
        *("replay", "car", "--steps", 30, "--shuffle", 1, "--gamma", 0.5, "--C", 2, "--json", "--predictors", "venn")
    )
    assert "by default" not in result.stderr
    stream = streams.load("car", shuffle=1)
    model = venn.TransductiveVenn(venn.OneVsAllSVM(venn.RBF(0.5), 2, stream.classes), venn.Argmax())
    hits, lower = [], []
    for x, y in stream.take(30):
        prediction = model.predict_one(x)
        model.learn_one(x, y)
        hits.append(prediction.label == y)
        lower.append(prediction.lower)
    found = json.loads(result.stdout)["predictors"]["venn"]
    assert found["accuracy"] == pytest.approx(np.mean(hits), abs=1e-12)
    assert found["lower"] == pytest.approx(np.mean(lower), abs=1e-12)


@pytest.mark.parametrize(
    ("options", "kernel"),
    [
        ((), f"{MULTISCALE}, C=10, by default"),
        (("--kernel", "rbf"), "RBF(gamma=0.25), C=10, by default"),
        (("--kernel", "linear"), "Linear(), C=10, by default"),
        (("--kernel", "linear", "--C", "0.5"), "Linear(), C=0.5"),
        (("--kernel", "poly", "--gamma", "1", "--C", "1"), "Polynomial(degree=3, gamma=1.0, coef0=1.0), C=1"),
        (("--kernel", "poly", "--gamma", "1", "--C", "1", "--set", "machine.degree=2", "--set", "machine.coef0=0"),
         "Polynomial(degree=2, gamma=1.0, coef0=0.0), C=1"),
    ],
)  # fmt: skip
def test_csv_files_and_kernels(run, table, options, kernel):
    arguments = ("--label", "fruit", "--nominal", "colour", "--steps", 12, "--predictors", "venn", "--no-progress")
    result = well(run("replay", table, *arguments, *options))
    assert result.stdout.splitlines()[1] == f"venn: one-vs-all SVM with {kernel}"
    assert "fruit: 12 examples, 2 classes" in result.stdout
    assert "wrote runs/fruit/: record.npz" in result.stdout


def test_the_sharp_predictor_stands_beside_the_published_one(run):
    result = well(run("replay", "car", "--steps", 60, "--predictors", "abers,leave_one_out,venn"))
    lines = result.stdout.splitlines()[1:]
    assert lines[0] == "abers, leave_one_out: least-squares SVM with RBF(gamma=0.5), C=10, by default: kernel, C"
    assert lines[1] == "venn: one-vs-all SVM with RBF(gamma=0.1), C=10, by default: kernel, C"
    [beside] = [line for line in lines if line.startswith("abers beside the published venn: width 0.")]
    assert ", log loss 0." in beside or ", log loss 1." in beside


def test_unknown_data_are_tuned_on_a_prefix_that_belongs_to_no_bag(run, tmp_path, monkeypatch):
    monkeypatch.setattr(streams, "load", stand_ins.load)  # where banknote is not at hand
    result = well(run("replay", "banknote", "--steps", 30, "--predictors", "abers", "--json"))
    found = json.loads(result.stdout)
    assert (found["tuned_on"], found["n"]) == (200, 30)
    assert "on the first 200 examples, by leave-one-out" in result.stderr
    stream = streams.load("banknote", shuffle=0)
    tuning = venn.tune(stream.take(200), kernels=[venn.machines.MultiscaleLaplacian()])
    assert f"chose {tuning.kernel!r}, C={tuning.C:g} on" in result.stderr
    record = Record.load(tmp_path / "runs/banknote/record.npz")
    assert [record.classes[code] for code in record.truth] == [y for _, y in stream.drop(200).take(30)]
    fixed = run("replay", "banknote", "--steps", 5, "--predictors", "abers", "--gamma", 0.01, "--tune", 50, "--json")
    assert "chose RBF(gamma=0.01), C=" in fixed.stderr
    known = run("replay", "banknote", "--steps", 5, "--predictors", "abers", "--gamma", 0.01, "--C", 2, "--json")
    assert json.loads(known.stdout)["tuned_on"] == 0
    none = run("replay", "banknote", "--steps", 5, "--predictors", "abers", "--tune", 0)
    assert f"{MULTISCALE}, C=10, by default" in none.stdout


def test_a_file_is_replayed_in_its_own_order_unless_a_seed_is_given(run, table, tmp_path):
    arguments = ("replay", table, "--label", "fruit", "--nominal", "colour", "--predictors", "leave_one_out", "--json")
    rows = [line.rsplit(",")[-1] for line in table.read_text().splitlines()[1:]]
    for given in ((), ("--shuffle", "none")):
        kept = run(*arguments, *given)
        assert json.loads(kept.stdout)["shuffle"] is None
        record = Record.load(tmp_path / "runs/fruit/record.npz")
        assert [record.classes[code] for code in record.truth] == rows
        first = kept.stderr.splitlines()[0]
        assert first == "fruit.csv: 30 rows in the order of the file (--shuffle SEED for another)"
    other = run(*arguments, "--shuffle", 3)
    assert json.loads(other.stdout)["shuffle"] == 3
    first = other.stderr.splitlines()[0]
    assert first == "fruit.csv: 30 rows in a random order, that of seed 3 (--shuffle none for the order of the data)"
    record = Record.load(tmp_path / "runs/fruit/record.npz")
    labels = [record.classes[code] for code in record.truth]
    assert labels != rows
    assert sorted(labels) == sorted(rows)


def test_the_order_of_a_named_set_is_that_of_seed_0_unless_none_is_asked_for(run):
    arguments = ("replay", "car", "--steps", 3, "--predictors", "conformal", "--json")
    assert json.loads(run(*arguments).stdout)["shuffle"] == 0
    kept = run(*arguments, "--shuffle", "none")
    assert json.loads(kept.stdout)["shuffle"] is None
    assert kept.stderr.startswith("car: 1728 examples in the order of the data (--shuffle SEED for another)\n")


def test_the_default_predictor_of_a_file_is_the_forecaster(run, table):
    result = well(run("replay", table, "--label", "fruit", "--nominal", "colour", "--json"))
    assert list(json.loads(result.stdout)["predictors"]) == ["forecast", "intervals", "sets"]
    assert "forecaster: forecast, intervals and sets, with nothing to choose" in result.stderr
    assert "SVM" not in result.stderr


def test_a_file_sorted_by_class_is_not_tuned_on_one_class(run, tmp_path):
    rows = [f"{k + i / 100},{'ab'[k]}" for k in (0, 1) for i in range(120)]
    (tmp_path / "sorted.csv").write_text("\n".join(["u,y", *rows]) + "\n")
    result = well(run("replay", "sorted.csv", "--label", "y", "--steps", 3, "--predictors", "abers"))
    assert "the first 48 examples are of one class: kernel and C are not chosen on them" in result.stdout
    assert f"{MULTISCALE}, C=10, by default" in result.stdout
    asked = run("replay", "sorted.csv", "--label", "y", "--tune", 48, "--predictors", "abers")
    assert "prefix must hold examples of at least 2 classes" in asked.stderr


def test_a_forecaster_needs_no_choice_and_tunes_nothing(run, table):
    asked = ["replay", str(table), "--label", "fruit", "--nominal", "colour", "--predictors", "forecaster"]
    alone = well(run(*asked, "--out", "here"))
    assert "chose" not in alone.stdout
    assert [row.split()[0] for row in alone.stdout.splitlines() if row.startswith(("forecast ", "intervals ", "sets "))]
    for option in (["--gamma", "1"], ["--C", "1"], ["--tune", "20"], ["--kernel", "linear"], ["--kernel", "rbf"]):
        for named in (asked, asked[:-2]):
            refused = run(*named, *option)
            assert refused.exit_code == 2
            assert f"{option[0]} chooses nothing of a forecaster" in refused.stderr
            assert "--predictors abers" in refused.stderr


def test_a_forecaster_scales_by_itself_or_not_at_all(run, table):
    asked = ["replay", str(table), "--label", "fruit", "--nominal", "colour", "--json"]
    found = []
    for option, said in (
        ([], "standardised beforehand"),
        (["--scale"], "scaled by the first"),
        (["--no-scale"], "taken"),
    ):
        done = run(*asked, *option)
        assert f"columns {said}" in done.stderr
        found.append(json.loads(done.stdout)["predictors"]["forecast"]["log_loss"])
    assert len(set(found)) == 3


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("replay",), 2, "Missing argument"),
        (("replay", "carr"), 1, "no data set and no file has the name 'carr' (did you mean car?)"),
        (("replay", "nowhere.csv"), 1, "no such file: nowhere.csv"),
        (("replay", "fruit.csv"), 2, "name the column of its label with --label"),
        (("replay", "fruit.csv", "--label", "kind", "--nominal", "colour"), 1, "kind"),
        (("replay", ".", "--label", "fruit"), 1, "is a folder"),
        (("replay", "car", "--label", "class"), 2, "--label does not go with car, a named data set"),
        (("replay", "car", "--kernel", "linear", "--gamma", "1"), 2, "--gamma belongs to the kernel rbf or poly"),
        (("replay", "car", "--set", "machine.degree=2"), 2,
         "--set machine.degree belongs to the kernel poly, not to laplacian"),
        (("replay", "car", "--set", "machine.coef0=2"), 2,
         "--set machine.coef0 belongs to the kernel poly, not to laplacian"),
        (("replay", "car", "--tune", "1728"), 2, "--tune must leave one of the 1728 examples, got 1728"),
        (("replay", "car", "--gamma", "1", "--C", "1", "--tune", "9"), 2, "--tune has nothing to choose"),
        (("replay", "car", "--predictors", "ven"), 2, "got 'ven' (did you mean venn?)"),
        (("replay", "car", "--out", "fruit.csv"), 1, "got fruit.csv: File exists"),
        (("show",), 2, "No such command"),
        (("serve", "--like", "car", "--ripe", "5"), 2, "--ripe is an option of venn run, not of venn serve"),
        (("replay", "car", "--floating", ".9"), 2, "No such option '--floating'"),
    ],
)  # fmt: skip
def test_errors_are_short_and_say_what_is_wrong(run, table, arguments, code, message):
    result = run(*arguments)
    assert result.exit_code == code
    assert result.stdout == ""
    error = result.stderr.partition("Error: ")[2]
    assert message in error
    assert error.count("\n") == 1
    assert "Traceback" not in result.output


class Stubborn(venn.predictors.Predictor):
    """A predictor that fails at the third step."""

    def __init__(self, machine):
        self.machine, self.classes = machine, machine.classes

    def predict_one(self, x):
        if self.machine.n == 2:
            raise venn.machines.NotConverged("residual must be at most 1e-8,\n got 1")
        return Forecast(np.full(4, 0.25), self.classes)


def test_what_fails_midway_is_one_line_with_its_step(run, monkeypatch, tmp_path):
    monkeypatch.setitem(PREDICTORS, "venn", ("hinge", Stubborn))
    result = run("replay", "car", "--predictors", "venn")
    assert result.exit_code == 1
    assert result.stderr == "Error: residual must be at most 1e-8, got 1 (at step 3 of the replay)\n"
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_without_matplotlib_the_record_is_still_written(run, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    result = well(run("replay", "car", "--steps", 5, "--predictors", "venn"))
    assert "no figures: figures need matplotlib: pip install matplotlib" in result.stderr
    assert "wrote runs/car/: record.npz\nverdict: venn: " in result.stdout
    assert [path.name for path in (tmp_path / "runs/car").iterdir()] == ["record.npz"]


def test_plain_words():
    classes = ("a", "b")
    record = Record(classes, ["in", "out", "safe", "sure", "unsure"])
    far = np.array([[0.1, 0.9], [0.05, 0.95]])
    rows = np.array([[0.5, 0.5], [0.25, 0.75]])
    for y in ("b", "b", "a"):
        record.update(
            {
                "in": Multiprobability(rows, classes), "out": Multiprobability(far, classes),
                "safe": Multiprobability(far, classes, venn.prediction.CategoryClass(), 1),
                "sure": Forecast(np.array([0.0, 1.0]), classes), "unsure": Forecast(np.array([0.5, 0.5]), classes),
            },
            y,
        )  # fmt: skip
    assert plain_words(record) == [
        "in: the accuracy, 0.667, ends inside its band [0.500, 0.750]; inside at 1 of 3 steps.",
        "out: the accuracy, 0.667, ends outside its band [0.900, 0.950], which is not guaranteed of the predicted "
        "class; inside at 0 of 3 steps.",
        "safe: the accuracy, 0.667, ends outside its band [0.900, 0.950] by 0.2333, within the 0.784 of 19 valid "
        "runs in 20; inside at 0 of 3 steps.",
        "Mean claim minus accuracy: sure +0.333, unsure +0.167.",
    ]
    sets = Record(classes, ["conformal"])
    for step in range(100):
        sets.update({"conformal": PredictionSet(np.array([0.04 if step < 12 else 0.5, 0.3]), classes)}, "a")
    assert plain_words(sets) == [
        "conformal: 12 of 100 sets at significance 0.05 missed the true label, BEYOND the 1 to 10 of 19 valid runs in "
        "20; 1.88 labels a set."
    ]
    plain = Record(classes, ["plain"])  # may miss less often than 5 in 100, and that is no surprise
    for _ in range(100):
        plain.update({"plain": PredictionSet(np.array([0.5, 0.3]), classes, smoothed=False)}, "a")
    assert plain_words(plain)[0].startswith(
        "plain: 0 of 100 sets at significance 0.05 missed the true label, within the 0 to 10 of 19 valid runs in 20"
    )


def test_a_class_that_sets_miss_more_often_than_all_together_is_named():
    classes = ("often", "rare")
    sets = Record(classes, ["conformal"])
    for step in range(400):
        rare = step % 80 == 79
        p_values = [0.5, 0.03] if rare and step < 320 else [0.5, 0.3]
        sets.update({"conformal": PredictionSet(np.array(p_values), classes)}, classes[rare])
    overall, named = plain_words(sets)
    assert overall.startswith("conformal: 4 of 400 sets at significance 0.05 missed the true label")
    assert named == (
        "conformal: classes missed more often: 'rare' (4 of 5). The promise is one over all classes "
        "together; the predictors conformal_by_class and inductive_conformal_by_class keep it within each, "
        "while nothing changes."
    )


def test_of_sets_by_class_nobody_says_that_their_promise_is_one_over_all_classes():
    sets = Record(("often", "rare"), ["conformal", "conformal_by_class"])
    for step in range(400):
        rare = step % 80 == 79
        prediction = PredictionSet(np.array([0.5, 0.03] if rare else [0.5, 0.3]), sets.classes)
        sets.update({"conformal": prediction, "conformal_by_class": prediction}, sets.classes[rare])
    assert [line.partition(":")[0] for line in plain_words(sets)] == ["conformal", "conformal", "conformal_by_class"]


def test_of_many_classes_that_sets_miss_the_worst_three_are_named():
    sets = Record(range(6), ["conformal"])
    for k, misses in enumerate([0, 20, 90, 40, 60, 50]):  # of 100 examples of class k; 20 of 100 are no chance either
        for step in range(100 if k else 5000):  # of all together as many are missed as may be
            p_values = np.where(np.arange(6) == k, 0.01 if step < misses else 0.5, 0.3)
            sets.update({"conformal": PredictionSet(p_values, range(6))}, k)
    (named,) = plain_words(sets)[1:]
    assert ": classes missed more often: 2 (90 of 100), 4 (60 of 100), 5 (50 of 100) and 2 others." in named


def test_no_class_is_named_where_all_together_are_missed_too_often():
    """As after a change, which predictors by class would not mend."""
    sets = Record(("n", "p"), ["conformal"])
    for step in range(800):
        p_values = np.where(np.arange(2) == step % 2, 0.01 if step % 9 == 0 else 0.5, 0.3)
        sets.update({"conformal": PredictionSet(p_values, sets.classes)}, sets.classes[step % 2])
    (line,) = plain_words(sets)
    assert line.startswith("conformal: 89 of 800 sets at significance 0.05 missed the true label, BEYOND the ")


def test_a_table_with_one_label_has_nothing_to_predict(run, tmp_path):
    (tmp_path / "one.csv").write_text("a,y\n1,u\n2,u\n3,u\n")
    result = run("replay", "one.csv", "--label", "y")
    assert result.exit_code == 1
    assert "one.csv holds one label only, 'u': there is nothing to predict" in result.output


@pytest.mark.parametrize("cause", [KeyboardInterrupt(), ValueError()])
def test_ctrl_c_that_numba_turns_into_a_system_error_is_ctrl_c(run, monkeypatch, cause):
    """Raised while Python objects are made of what a loop returns: one SystemError for each call on the way out."""

    def boxed(record, predictions, y):
        try:
            raise SystemError("method returned a result with an exception set") from cause
        except SystemError as error:
            raise SystemError("CPUDispatcher returned a result with an exception set") from error

    monkeypatch.setattr(Record, "update", boxed)
    result = run("replay", "car", "--predictors", "leave_one_out", "--out", "here")
    if isinstance(cause, KeyboardInterrupt):
        assert result.output.endswith("Aborted!\n")
        assert isinstance(result.exception, SystemExit)
    else:
        assert isinstance(result.exception, SystemError)
    assert result.exit_code == 1


def interrupted(monkeypatch):
    """Let a signal come in the middle of step 31 of each record."""
    update = Record.update

    def interrupting(record, predictions, y):
        if len(record) == 30:
            signal.raise_signal(signal.SIGINT)
        update(record, predictions, y)

    monkeypatch.setattr(Record, "update", interrupting)


def test_ctrl_c_ends_a_replay_and_keeps_what_was_done(run, tmp_path, monkeypatch):
    """The signal itself, sent in the middle of a step; the step is finished and all is as if it had been the last."""
    options = ("--predictors", "leave_one_out,conformal", "--json")
    expected = json.loads(run("replay", "car", *options, "--steps", 31, "--out", "whole").stdout)
    before = signal.getsignal(signal.SIGINT)
    interrupted(monkeypatch)
    result = run("replay", "car", *options, "--out", "here")
    assert result.exit_code == 130
    assert "interrupted at step 31 of 1728" in result.stderr
    assert json.loads(result.stdout) | {"seconds": 0} == expected | {"seconds": 0}
    assert len(Record.load(tmp_path / "here/record.npz")) == 31
    assert signal.getsignal(signal.SIGINT) is before
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    first = run("replay", "car", *options, "--steps", 1, "--out", "one")
    assert (first.exit_code, json.loads(first.stdout)["n"]) == (0, 1)


SLOW = """
import sys, time
from venn import cli
from venn.online.record import Record
update = Record.update
def slow(record, predictions, y):
    update(record, predictions, y)
    if len(record) == 30:
        print("thirty", file=sys.stderr, flush=True)
    if len(record) >= 30:
        time.sleep(0.05)
Record.update = slow
cli.main(prog_name="venn")
"""


@pytest.mark.program
def test_sigterm_keeps_what_was_done_in_a_process_of_its_own(tmp_path):
    """What else is written then is tested in this process, and for `venn monitor` too."""
    words = ["replay", "car", "--predictors", "leave_one_out,conformal", "--out", "here", "--json"]
    with subprocess.Popen(
        [sys.executable, "-c", SLOW, *words], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        for line in process.stderr:
            if line == "thirty\n":
                break
        process.send_signal(signal.SIGTERM)
        said, complaints = process.communicate(timeout=60)
    assert process.returncode == 143, complaints
    record = Record.load(tmp_path / "here/record.npz")
    assert 30 <= len(record) < 1728
    assert f"interrupted at step {len(record)} of 1728" in complaints
    found = json.loads(said)
    assert found["n"] == len(record)
    assert found["predictors"]["leave_one_out"] == record.means()["leave_one_out"]
    if importlib.util.find_spec("matplotlib"):
        assert (tmp_path / "here/curves.png").exists()


def test_a_file_named_by_dots_writes_below_runs(run, tmp_path):
    rows = "".join(f"{i % 5},{'no' if i % 5 < 2 else 'yes'}\n" for i in range(30))
    (tmp_path / "...csv").write_text("a,y\n" + rows)
    well(run("replay", "...csv", "--label", "y", "--predictors", "inductive"))
    assert {one.name for one in tmp_path.iterdir()} == {"...csv", "runs"}
    assert {one.name for one in (tmp_path / "runs").iterdir()} == {"data"}


def test_the_last_line_shows_a_name_on_one_line():
    said = []
    verdict = Verdict("as claimed", None, None, "none", "", "fine", "a\nalarm: \u202eb")
    conclude(verdict, said.append)
    assert said == ["verdict: a alarm:  b: Go on: as claimed."]
