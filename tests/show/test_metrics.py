"""The figures of a run for Prometheus, and the dashboard that draws them."""

import json
import re
import urllib.request
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from conftest import well
from page_cases import CLASSES, CREATED, HOSTILE, write

from venn import cli
from venn.monitors.verdict import STATES
from venn.online.watch import Watch

pytest.importorskip("prometheus_client", reason="prometheus-client is not installed")
from prometheus_client.parser import text_string_to_metric_families

from venn.show.metrics import INSIDE, METRICS, WIDTH, WINDOW_INSIDE, exposition, of_metrics
from venn.show.server import serving

DASHBOARD = Path(__file__).parents[2] / "docs/grafana.json"


def scraped(path):
    """Return what an endpoint says: value by name and labels."""
    text = exposition(lambda: Watch(path)).decode()
    return values(text)


def values(text):
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


@pytest.fixture
def run(tmp_path):
    path = tmp_path / "run.db"
    return path, write(path, 120, flip=60)


def test_the_figures_are_those_of_the_run(run):
    path, made = run
    found = scraped(path)
    assert found[("venn_up",)] == 1
    assert found[("venn_questions_total",)] == 124
    assert found[("venn_answers_total",)] == 120
    assert found[("venn_expired_total",)] == 1
    assert found[("venn_pending_questions",)] == 3
    assert found[("venn_run_created_timestamp_seconds",)] == CREATED
    assert found[("venn_last_event_timestamp_seconds",)] == CREATED + 245
    assert found[("venn_answers_per_second",)] == pytest.approx(0.5)  # an answer every other second

    # By hand, from the predictions.
    hits = [one["venn"].label == y for one, y in zip(made.said, made.truths, strict=True)]
    assert found[("venn_accuracy_ratio", ("predictor", "venn"))] == pytest.approx(np.mean(hits))
    assert found[("venn_window_accuracy_ratio", ("predictor", "venn"))] == pytest.approx(np.mean(hits[-50:]))
    lower, upper = (np.mean([getattr(one["venn"], end) for one in made.said]) for end in ("lower", "upper"))
    assert found[("venn_claimed_lower_ratio", ("predictor", "venn"))] == pytest.approx(lower)
    assert found[("venn_claimed_upper_ratio", ("predictor", "venn"))] == pytest.approx(upper)
    proba = np.array([one["platt"].proba[CLASSES.index(y)] for one, y in zip(made.said, made.truths, strict=True)])
    assert found[("venn_log_loss_nats", ("predictor", "platt"))] == pytest.approx(-np.log(proba).mean())
    for level in ("0.01", "0.05", "0.1", "0.2"):
        sets = [one["conformal"].set(float(level)) for one in made.said]
        missed = [y not in members for members, y in zip(sets, made.truths, strict=True)]
        key = (("level", level), ("predictor", "conformal"))
        assert found[("venn_set_error_ratio", *key)] == pytest.approx(np.mean(missed))
        assert found[("venn_window_set_error_ratio", *key)] == pytest.approx(np.mean(missed[-50:]))
        assert found[("venn_set_size_labels", *key)] == pytest.approx(np.mean([len(members) for members in sets]))
    for name, monitor in made.told.items():
        assert found[("venn_alarms_total", ("predictor", name))] == monitor.count
        verdict = monitor.verdict()
        for state in STATES:
            key = (("predictor", name), ("state", state))
            assert found[("venn_verdict", *key)] == (state == verdict.state)
        since = verdict.since if verdict.state == "changed" else None
        assert found.get(("venn_change_step", ("predictor", name))) == since
    assert made.told["venn"].count > 0, "labels that flip make alarms"
    assert made.told["venn"].verdict().state == "changed"


def test_evidence_of_every_detector_has_its_threshold(run):
    path, _ = run
    found = scraped(path)
    evidence = {key[1:]: value for key, value in found.items() if key[0] == "venn_evidence_log10"}
    thresholds = {key[1:]: value for key, value in found.items() if key[0] == "venn_evidence_threshold_log10"}
    assert evidence.keys() == thresholds.keys()
    forecast = tuple(sorted({"predictor": "platt", "detector": "ForwardEProcess", "source": "predicted label"}.items()))
    assert 10 ** -thresholds[forecast] == pytest.approx(0.005)  # half of the level 0.01
    names = {dict(key)["source"] for key in evidence}
    assert f"class {HOSTILE!r}" in names, "labels are escaped, and come back as they are"


def test_without_monitors_there_is_no_evidence(tmp_path):
    write(tmp_path / "run.db", 20, watched=False)
    names = {key[0] for key in scraped(tmp_path / "run.db")}
    assert "venn_accuracy_ratio" in names
    assert not names & {"venn_evidence_log10", "venn_alarms_total"}


def test_a_run_without_answers(tmp_path):
    write(tmp_path / "run.db", 0, pending=2, expired=0)
    found = scraped(tmp_path / "run.db")
    assert found[("venn_pending_questions",)] == 2
    assert not any(name == "venn_accuracy_ratio" for name, *_ in found)


@pytest.mark.parametrize("content", [None, b"", b"no journal", b"SQLite format 3\0 and damage" * 40])
def test_a_run_that_cannot_be_read_is_down(tmp_path, content):
    path = tmp_path / "run.db"
    if content is not None:
        path.write_bytes(content)
    assert scraped(path) == {("venn_up",): 0}


def test_over_http_it_follows_the_journal(run, tmp_path):
    path, _ = run
    with serving(of_metrics(lambda: Watch(tmp_path / "later.db")), "127.0.0.1", 0) as port:

        def asked():
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
                return values(answer.read().decode())

        assert asked() == {("venn_up",): 0}
        path.rename(tmp_path / "later.db")
        assert asked()[("venn_answers_total",)] == 120
    with pytest.raises(OSError, match="refused"):
        asked()


def test_names_are_well_formed_and_all_are_exported(run):
    path, _ = run
    text = exposition(lambda: Watch(path)).decode()
    families = {family.name: family for family in text_string_to_metric_families(text)}
    for metric in METRICS:
        if metric in (WIDTH, INSIDE, WINDOW_INSIDE):  # of numbers: these labels are classes
            continue
        assert re.fullmatch(r"venn_[a-z0-9_]*[a-z0-9]", metric.name)
        assert (metric.kind == "counter") == metric.name.endswith("_total")
        family = families[metric.name.removesuffix("_total")]
        assert family.documentation == metric.help
        assert metric.help.endswith(".")
        assert {label for sample in family.samples for label in sample.labels} == set(metric.labels)


def test_all_are_in_the_manual():
    manual = (DASHBOARD.parent / "monitoring.md").read_text("utf-8")
    for metric in METRICS:
        assert f"| `{metric.name}` | {', '.join(metric.labels)} | {metric.help.rstrip('.')} |" in manual


def test_the_command(run, tmp_path):
    path, _ = run
    result = well(CliRunner().invoke(cli.main, ["metrics", str(path), "--once"]))
    assert values(result.output) == scraped(path)
    missing = CliRunner().invoke(cli.main, ["metrics", str(tmp_path / "none.db"), "--once"])
    assert values(missing.output) == {("venn_up",): 0}
    assert missing.exit_code == 0, "a journal may come later"
    (tmp_path / "clean.csv").write_text("a,b\n1,2\n")
    for other in (tmp_path / "clean.csv", tmp_path):
        for option in (["--once"], []):
            none = CliRunner().invoke(cli.main, ["metrics", str(other), *option])
            assert none.exit_code == 1
            assert none.output == f"Error: {other} must be a journal, as `venn run` writes it, and is not\n"
    refused = CliRunner().invoke(cli.main, ["metrics", str(path), "--port", "65536"])
    assert refused.exit_code == 2
    assert "65536" in refused.output


# ------------------------------------------------------------------ the dashboard


def expressions(dashboard):
    """Return every query of a dashboard with its title."""
    return [(panel["title"], target["expr"]) for panel in dashboard["panels"] for target in panel.get("targets", ())]


def test_the_dashboard_asks_for_nothing_that_is_not_exported():
    dashboard = json.loads(DASHBOARD.read_text("utf-8"))
    labels = {metric.name: set(metric.labels) | {"job", "instance"} for metric in METRICS}
    queries = expressions(dashboard)
    assert len(queries) >= 12
    used = set()
    for title, expression in queries:
        selectors = re.findall(r"\b(venn_\w+)(?:\{([^}]*)\})?", expression)
        assert selectors, f"{title}: {expression}"
        for name, matchers in selectors:
            assert name in labels, f"{title} asks for {name}"
            assert set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", matchers)) <= labels[name], f"{title}: {expression}"
            used.add(name)
    drawn = {metric.name for metric in METRICS} - {"venn_run_created_timestamp_seconds"}
    assert drawn <= used, "every figure is on the dashboard"


def test_the_dashboard_is_one_that_grafana_takes():
    dashboard = json.loads(DASHBOARD.read_text("utf-8"))
    assert isinstance(dashboard["schemaVersion"], int)
    assert dashboard["id"] is None, "an id belongs to one Grafana"
    variables = {one["name"]: one for one in dashboard["templating"]["list"]}
    assert variables["datasource"]["type"] == "datasource"
    assert variables["datasource"]["query"] == "prometheus"
    cells, ids = set(), set()
    for panel in dashboard["panels"]:
        ids.add(panel["id"])
        place = panel["gridPos"]
        assert 0 <= place["x"] < place["x"] + place["w"] <= 24
        mine = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not mine & cells, f"{panel['title']} lies on another panel"
        cells |= mine
        for target in panel.get("targets", ()):
            assert target["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
            for name in re.findall(r"\$\{?(\w+)", target["expr"]):
                assert name in variables or name.startswith("__"), f"{panel['title']} uses ${name}"
    assert len(ids) == len(dashboard["panels"])
