"""Plots show the numbers that the summary gives."""

import matplotlib as mpl
import numpy as np
import pytest

import taciturn as tc

mpl.use("agg")
from matplotlib import pyplot as plt


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def test_each_fit_has_its_row_with_median_and_interval(fit_loglinear, fit_urn):
    axes = tc.plot_risk({"log-linear": fit_loglinear, "urn": fit_urn}, measure="R1", truth=0.2315)
    assert [label.get_text() for label in axes.get_yticklabels()] == ["urn", "log-linear"]
    assert axes.get_xlabel() == "R1"
    draws = tc.assess(fit_urn)["risk"]["R1"].values
    interval, middle = axes.lines[0], axes.lines[1]
    np.testing.assert_allclose(interval.get_xdata(), np.quantile(draws, [0.025, 0.975]))
    np.testing.assert_allclose(middle.get_xdata(), [np.quantile(draws, 0.5)])
    assert axes.lines[-1].get_xdata()[0] == 0.2315


def test_a_single_fit_and_given_axes(fit_loglinear):
    _, axes = plt.subplots()
    assert tc.plot_risk(fit_loglinear, ax=axes) is axes


@pytest.mark.parametrize(
    ("fits", "options", "message"),
    [({}, {}, "no fit"), (None, {"measure": "R3"}, "measure must be"), (None, {"probability": 0.0}, "probability")],
)
def test_plot_risk_refuses(fit_loglinear, fits, options, message):
    with pytest.raises(tc.TaciturnError, match=message):
        tc.plot_risk(fit_loglinear if fits is None else fits, **options)
