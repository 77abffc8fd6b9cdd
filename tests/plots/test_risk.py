"""Plots of risk show the numbers that the summary gives."""

import numpy as np
import pytest
import xarray as xr
from matplotlib import pyplot as plt

import taciturn as tc


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
    [
        ({}, {}, "no fit"),
        (None, {"measure": "R3"}, "measure must be"),
        (None, {"probability": 0.0}, "probability"),
        (None, {"by": "sex"}, "by must name variables of the table"),
        (None, {"by": ["area"]}, "by must be the name of a variable"),
        (None, {"by": "area", "truth": 0.2}, "a single fit: leave it out with a truth"),
    ],
)
def test_plot_risk_refuses(fit_loglinear, fits, options, message):
    with pytest.raises(tc.TaciturnError, match=message):
        tc.plot_risk(fit_loglinear if fits is None else fits, **options)


def bars(axes):
    """Heights of the bars by their middles, of each row from the top."""
    rows = [{} for _ in axes.get_yticks()]
    for bar in axes.patches:
        middle = bar.get_x() + bar.get_width() / 2
        rows[len(rows) - 1 - round(bar.get_y())][middle] = bar.get_height()
    return rows


def test_counts_of_people_are_bars_one_for_each_number(fit_loglinear, fit_urn):
    fits = {"log-linear": fit_loglinear, "urn": fit_urn}
    axes = tc.plot_risk(fits, measure="tau1")
    assert "people alone in their cell" in axes.get_xlabel()
    for fit, drawn in zip(fits.values(), bars(axes), strict=True):
        draws = tc.assess(fit)["risk"]["tau1"].values.ravel()
        values, numbers = np.unique(draws, return_counts=True)
        assert sorted(drawn) == pytest.approx(values)
        heights = [drawn[at] for at in sorted(drawn)]
        np.testing.assert_allclose(heights, 0.75 * numbers / numbers.max())
    axes.figure.canvas.draw()
    assert all(float(at).is_integer() for at in axes.xaxis.get_majorticklocs())
    assert len(tc.plot_risk(fits, measure="R2").patches) == 0


def test_many_numbers_share_bars_and_a_constant_has_one(fit_loglinear):
    fit = tc.assess(fit_loglinear)
    tau1 = fit["risk"]["tau1"]
    wide = fit.copy(deep=True)
    wide["risk"]["tau1"] = tau1.copy(data=np.arange(tau1.size).reshape(tau1.shape))
    (drawn,) = bars(tc.plot_risk(wide, measure="tau1"))
    assert len(drawn) == 50
    assert max(drawn.values()) == 0.75
    wide["risk"]["tau1"] = tau1 * 0 + 3
    assert bars(tc.plot_risk(wide, measure="tau1")) == [{3.0: 0.75}]


def test_each_category_has_its_row_in_the_order_of_the_table(fit_loglinear):
    weights = (0.2, 0.5, 0.3)
    by = tc.assess(fit_loglinear, weights=weights, by="religion")["risk_by_religion"].to_dataset()
    axes = tc.plot_risk(tc.assess(fit_loglinear, weights=weights), by="religion", probability=0.9)
    assert [label.get_text() for label in axes.get_yticklabels()] == [
        str(at) for at in range(1, 10)
    ]
    assert axes.get_yticks().tolist() == list(range(8, -1, -1))  # the first one on top
    ends = np.quantile(by["R2"].values, [0.05, 0.5, 0.95], axis=(0, 1))
    (intervals,) = axes.collections
    drawn = np.array([segment[:, 0] for segment in intervals.get_segments()])
    np.testing.assert_allclose(drawn, ends[[0, 2]].T)
    np.testing.assert_allclose(axes.lines[0].get_xdata(), ends[1])
    shares = by["empty"].values
    assert (shares > 0).any()
    said = {round(text.get_position()[1]): text.get_text() for text in axes.texts}
    assert said == {
        8 - at: f"empty in {share:.1%} of draws" for at, share in enumerate(shares) if share > 0
    }


def test_categories_of_people_alone_have_whole_numbers(fit_loglinear):
    _, given = plt.subplots()
    axes = tc.plot_risk({"one": fit_loglinear}, by="area", measure="tau1", ax=given)
    assert axes is given
    assert (axes.get_ylabel(), axes.texts[:]) == ("area", [])
    axes.figure.canvas.draw()
    assert all(float(at).is_integer() for at in axes.xaxis.get_majorticklocs())


def test_categories_are_those_of_one_fit(fit_loglinear, fit_urn):
    with pytest.raises(tc.TaciturnError, match="a single fit: leave it out with 2 fits"):
        tc.plot_risk({"log-linear": fit_loglinear, "urn": fit_urn}, by="area")


def test_draws_that_differ_by_rounding_have_no_density() -> None:
    """The numbers themselves are the same; a density would have bins without width."""
    sample = xr.DataArray([2] * 4, dims="x", coords={"x": list("abcd")}, name="count")
    fit = tc.LogLinear().fit(sample, population_size=9, draws=400, random_seed=1)
    draws = tc.assess(fit)["risk"]["R2"].values
    assert 0 < np.ptp(draws) < 1e-15
    axes = tc.plot_risk(fit)
    axes.figure.canvas.draw()
    assert len(axes.collections) == 0
    interval, middle = axes.lines
    np.testing.assert_array_equal(interval.get_xdata(), np.quantile(draws, [0.025, 0.975]))
    assert middle.get_xdata() == np.median(draws)


@pytest.mark.parametrize("size", [1e-9, 1.0, 1e6])
@pytest.mark.parametrize(("spread", "densities"), [(0, 0), (1e-15, 0), (1e-11, 1), (0.1, 1)])
def test_draws_are_compared_with_their_rounding(fit_loglinear, size, spread, densities) -> None:
    fit = tc.assess(fit_loglinear).copy(deep=True)
    r2 = fit["risk"]["R2"]
    draws = size * (1 + spread * np.random.default_rng(1).uniform(size=r2.shape))
    fit["risk"]["R2"] = r2.copy(data=draws)
    assert len(tc.plot_risk(fit).collections) == densities


def test_a_category_is_empty_in_all_draws_or_in_none_only_if_it_is(fit_loglinear) -> None:
    fit = tc.assess(fit_loglinear, by="religion")
    shares = [0, 1 / 4000, 0.0004, 0.1234, 0.5, 0.9996, 3999 / 4000, 1, 1]
    by = fit["risk_by_religion"].to_dataset().assign_coords(empty=("religion", shares))
    fit["risk_by_religion"] = xr.DataTree(by)
    texts = tc.plot_risk(fit, by="religion").texts
    said = {8 - round(text.get_position()[1]): text.get_text() for text in texts}
    assert list(said) == list(range(8, 0, -1))
    for at, text in said.items():
        shown = float(text.removeprefix("empty in ").removesuffix("% of draws"))
        assert shown == pytest.approx(100 * shares[at], abs=0.05)
        assert (shown == 100) == (shares[at] == 1)
        assert shown > 0
    assert said[3] == "empty in 12.3% of draws"
