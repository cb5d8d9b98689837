"""A series in service: questions of the next value, a journal, a kill, a monitor; river's convention."""

import numpy as np
import pytest
from river import evaluate, metrics

import venn
from venn.adapters import RiverForecaster
from venn.labels import Real
from venn.series import NextValue


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
