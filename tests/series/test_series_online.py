"""A series in service: questions of the next value, a journal, a kill, a monitor; river's convention."""

import numpy as np
import pytest
from river import evaluate, metrics

import venn
from venn.adapters import RiverForecaster
from venn.labels import Real
from venn.online.watch import Watch
from venn.series import NextValue
from venn.show.page import charts
from venn.show.page.feed import FollowedRun
from venn.show.page.page import render


def values(n):
    t = np.arange(n)
    return (10 + 3 * np.sin(t * np.pi / 3) + np.random.default_rng(0).normal(size=n)).tolist()


def model():
    return venn.SeriesForecaster(season=6, horizon=3)


def test_a_series_in_service_says_what_the_model_says_and_goes_on_after_its_end(tmp_path):
    path, said = tmp_path / "run.db", []
    plain = model()
    for begin, end in ((0, 40), (40, 90)):
        online = venn.Online(NextValue(model()), journal=path, watch=False)
        for t, y in enumerate(values(90)[begin:end], begin):
            said.append((plain.forecast()[1].nested().interval(0.1), online.ask([]).interval(0.1)))
            plain.learn_one(y)
            online.answer(online.asked, y)
            if t == 39:
                online.journal.close()  # as a kill leaves it: the last checkpoint is an old one
        if end == 90:
            held = online.panel["NextValue"].model
            assert held.accounts()[0].n == plain.accounts()[0].n == 89
            np.testing.assert_array_equal(held.forecast().bands, plain.forecast().bands)
            online.close()
    assert all(one == other for one, other in said)


def test_a_monitor_watches_the_next_value():
    online = venn.Online(NextValue(model()), monitor=venn.Monitor(Real()))
    for y in values(60):
        online.ask([])
        online.answer(online.asked, y)
    assert online.verdict().state in ("as claimed", "too early to say")


def test_covariates_of_the_next_value_are_the_object():
    rng = np.random.default_rng(0)
    price = rng.normal(size=200)
    predictor = NextValue(venn.SeriesForecaster(season=1, horizon=2))
    widths = []
    for p in price:
        before = predictor.predict_one([p])
        assert predictor.predict_one([p]).interval(0.1) == before.interval(0.1)
        widths.append(np.subtract(*before.interval(0.1)[::-1]))
        predictor.learn_one([p], 5 + 3 * p + 0.1 * rng.normal())
    assert np.median(widths[150:]) < 1.5
    with pytest.raises(ValueError, match="x must have 1 covariates"):
        predictor.predict_one([])
    with pytest.raises(ValueError, match="x must be a row"):
        predictor.predict_one([np.nan])
    with pytest.raises(TypeError, match="model must be"):
        NextValue(3)


def test_rivers_evaluation_takes_it():
    forecaster = RiverForecaster(season=6, horizon=3)
    dataset = [(None, y) for y in values(80)]
    found = evaluate.evaluate(dataset, forecaster.clone(), metrics.MAE(), horizon=3)
    assert len(found.metrics) == 3
    assert all(one.get() < 4 for one in found.metrics)


def rounded(value):
    return float(f"{value:.6g}")


def told_of(n, path):
    online = venn.Online(NextValue(model()), journal=path, watch=False)
    for y in values(n):
        online.ask([])
        online.answer(online.asked, y)
    online.close()
    with Watch(path) as watch:
        return FollowedRun(watch)


def test_the_page_has_the_path_that_is_said_and_an_earlier_one_with_what_came(tmp_path):
    run = told_of(60, tmp_path / "run.db")
    plain, before = model(), None
    for t, y in enumerate(values(60)):
        plain.learn_one(y)
        before = plain.forecast() if t == 56 else before
    found, path = charts.path(run, "NextValue"), plain.forecast()
    assert found["step"] == list(range(55, 64))
    assert found["came"] == [*map(rounded, values(60)[54:]), *[None] * 3]
    for prefix, one, place in (("before_", before, 3), ("", path, 6)):
        columns = {f"{prefix}median": one.medians}
        for level in (0.05, 0.2):
            columns[f"{prefix}lower{level}"], columns[f"{prefix}upper{level}"] = one.intervals(level).T
        for name, expected in columns.items():
            assert found[name][place : place + 3] == pytest.approx(expected.tolist(), rel=1e-5)
            assert [i for i, value in enumerate(found[name]) if value is not None] == list(range(place, place + 3))
    chart = charts.of_predictor(run, "NextValue", "chosen", "ahead")["accuracy"][0]
    drawn = {key for item in chart["items"] for key in (item["column"], item.get("to")) if key}
    assert drawn <= found.keys()
    assert chart["x"] == (55, 63)
    assert '"ahead"' in render(run, "demand", "run.db").replace("0.ahead", "ahead")


def test_before_a_whole_path_has_come_there_is_none_before(tmp_path):
    run = told_of(2, tmp_path / "run.db")
    found = charts.path(run, "NextValue")
    assert found["came"] == [*map(rounded, values(2)), None, None, None]
    assert "before_median" not in found
    assert len(charts.of_predictor(run, "NextValue", "chosen", "ahead")["accuracy"]) == 2


@pytest.mark.parametrize(
    ("levels", "drawn"),
    [((0.1,), [0.1]), ((0.05, 0.2), [0.05, 0.2]), ((0.01, 0.05, 0.1), [0.05, 0.1]), ((0.1, 0.2, 0.3, 0.4), [0.2, 0.4])],
)
def test_the_fan_has_the_widest_level_and_the_one_in_the_middle(levels, drawn):
    series = venn.SeriesForecaster(season=2, horizon=2, levels=levels)
    for y in values(5):
        series.learn_one(y)
    assert series.fan()["levels"] == drawn
