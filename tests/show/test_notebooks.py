"""What notebooks show: tables of records and runs, with everything escaped, and figures that need no window system."""

import pickle

import numpy as np
import pytest

import venn


def run(n):
    """Return a run of two predictors, one with a name that is no markup, with its record."""
    model = venn.Panel(**{
        "a<b": venn.TransductiveVenn(venn.LeastSquaresSVM(venn.RBF(1.0), 1, ["no", "yes"])),
        "sets": venn.Conformal(venn.LeastSquaresSVM(venn.RBF(1.0), 1, ["no", "yes"])),
    })  # fmt: skip
    record = venn.Record(model.classes, list(model), data="<toy>")
    online = venn.Online(model, {name: venn.Monitor(model.classes) for name in model})
    rng = np.random.default_rng(0)
    for i in range(n):
        x, y = rng.normal(size=2), ("no", "yes")[i % 2]
        record.update(model.predict_one(x), y)
        online.ask(x, i)
        online.answer(i, y)
    return record, online


@pytest.mark.parametrize("n", [0, 6])
def test_tables_have_a_row_for_each_predictor_and_no_markup_of_names(n):
    record, _ = run(n)
    page = record._repr_html_()
    assert page.count("<tr>") == (3 if n else 1)
    assert "&lt;toy&gt;" in page
    assert "<toy>" not in page
    assert "a<b" not in page
    for name, means in record.means().items() if n else ():
        for column, value in means.items():
            assert f"<th>{column}</th>" in page, name
            assert f"<td>{value:.4f}</td>" in page


def test_a_run_shows_the_verdict_of_each_monitor():
    _, online = run(6)
    page = online._repr_html_()
    assert page.count("<tr>") == 1 + len(online.verdicts())
    assert "6 asked, 6 answered" in page
    assert "too early" in page


def test_verdicts_and_changes_show_all_that_they_say_and_no_markup():
    from venn.monitors import Episode, Episodes, Moment

    verdict = venn.Monitor(["no", "yes"]).verdict()
    assert str(verdict) in verdict._repr_html_()
    assert verdict.details in verdict._repr_html_()
    evil = "<img src=x onerror=alert(1)>"
    at = Moment(901, None, evil)
    one = Episode(1, at, at, at, (evil,), f"column '{evil}'", (evil,), (), evil, 3, evil, at, evil)
    for shown, lines in ((one, 1), (Episodes((one,)), 1), (Episodes(()), 0)):
        page = shown._repr_html_()
        assert page.count("<tr>") == 1 + lines
        assert "<img" not in page
        assert ("3" in page) == ("&lt;img" in page) == bool(lines)


def test_a_figure_shows_itself():
    pytest.importorskip("matplotlib")
    figure = run(6)[0].plot()
    for one in (figure, pickle.loads(pickle.dumps(figure))):
        assert one._repr_png_().startswith(b"\x89PNG")
