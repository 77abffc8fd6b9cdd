"""Differences between protections and their frontier, as they are drawn; the map of
single ones is held by the tests of `risk_utility`."""

from functools import partial

import numpy as np
import pytest
import xarray as xr

import taciturn as tc
from taciturn.errors import ParameterError

compare = partial(tc.compare_protections, progressbar=False)


@pytest.fixture(scope="module")
def compared(religion_sample, fit_restaurant) -> xr.Dataset:
    given = {"replicates": 20, "random_seed": 1}
    released = {
        "base 3": tc.random_round(religion_sample, rounding_base=3, **given),
        "base 5": tc.random_round(religion_sample, rounding_base=5, **given),
        "noise": tc.add_noise(religion_sample, epsilon=0.3, **given),
    }
    population = fit_restaurant["posterior_predictive"]["population"].isel(draw=slice(0, 50))
    return compare(released, table=religion_sample, population=population)


def test_differences_and_the_frontier(compared) -> None:
    axes = tc.plot_risk_utility(compared, reference="base 3")
    assert axes.get_xlabel() == "Hellinger distance from the original,\nless that of 'base 3'"
    labels = [box.get_label() for box in axes.containers if box.get_label()[0] == " "]
    shares = [round(100 * share) for share in compared["frontier"].values]
    assert labels == [
        f" {name} ({share} %)"
        for name, share in zip(["base 3", "base 5", "noise"], shares, strict=True)
    ]
    points = {box.get_label(): box for box in axes.containers}
    line, _, (across, up) = points[labels[1]].lines
    own = compared.sel(protection="base 5", reference="base 3", between="releases")
    x, y = own["loss_difference"], own["risk_difference"]
    np.testing.assert_allclose([line.get_xdata()[0], line.get_ydata()[0]], [x[0], y[0]])
    np.testing.assert_allclose(across.get_segments()[0][:, 0], x[1:])
    np.testing.assert_allclose(up.get_segments()[0][:, 1], y[1:])
    for label, share in zip(labels, compared["frontier"].values, strict=True):
        hollow = points[label].lines[0].get_markerfacecolor() == "white"
        assert hollow == (share <= 0.5)
    (frontier,) = [drawn for drawn in axes.lines if drawn.get_color() == "0.6"]
    on = compared.sel(reference="base 3", between="methods", statistic="mean")
    on = on.isel(protection=np.flatnonzero(compared["frontier"] > 0.5)).sortby("loss_difference")
    np.testing.assert_allclose(frontier.get_xdata(), on["loss_difference"])
    np.testing.assert_allclose(frontier.get_ydata(), on["risk_difference"])


@pytest.mark.parametrize(
    ("loss", "words"),
    [
        ("spearman", "1 less the rank correlation with the original"),
        ("cramers_v_change", "size of the change in Cramér's V"),
        ("chi_squared_change", "size of the relative change in chi-squared"),
    ],
)
def test_a_measure_that_was_made_a_loss_is_called_one(compared, loss, words) -> None:
    axes = tc.plot_risk_utility(compared.assign_attrs(loss=loss), reference="noise")
    assert axes.get_xlabel() == f"{words},\nless that of 'noise'"


def test_a_comparison_with_one_needs_no_reference(compared) -> None:
    one = tc.plot_risk_utility(compared.sel(reference="noise"))
    assert one.get_ylabel() == "R2, less that of 'noise'"


def test_names_that_are_shortened_alike_are_told_apart(compared, religion) -> None:
    names = [f"random rounding to base {base}, first run of it" for base in (3, 5)]
    found = tc.risk_utility(dict.fromkeys(names, religion), table=religion)
    legend = tc.plot_risk_utility(found).get_legend()
    shown = [text.get_text() for text in legend.get_texts()]
    assert shown == [f" random rounding to\N{HORIZONTAL ELLIPSIS}t run of it ({n})" for n in (1, 2)]


def test_bad_references(compared, religion) -> None:
    with pytest.raises(ParameterError, match=r"reference must be one of 'base 3'.* got None"):
        tc.plot_risk_utility(compared)
    with pytest.raises(ParameterError, match="reference must be one of 'noise', got 'base 3'"):
        tc.plot_risk_utility(compared.sel(reference="noise"), reference="base 3")
    found = tc.risk_utility({"as it is": religion}, table=religion)
    with pytest.raises(ParameterError, match="reference is for a result of compare_protections"):
        tc.plot_risk_utility(found, reference="as it is")


def test_an_interval_ends_where_it_ends() -> None:
    """The mean is outside of it where few of many replicates are far off."""
    table = xr.DataArray([1, 500, 0, 900], dims="x")
    small = tc.perturbation.adjust_small_cells(table, minimum=100, replicates=2000, random_seed=1)
    found = tc.risk_utility({"adjusted": small}, table=table)
    errors = np.abs(small - table).mean("x").values
    ends = np.quantile(errors, [0.025, 0.975])
    assert errors.mean() > ends[1]
    axes = tc.plot_risk_utility(found, utility="mean_absolute_error")
    (box,) = axes.containers
    mean, caps, (across, up) = box.lines
    r2 = found["R2"].sel(protection="adjusted")
    np.testing.assert_allclose(mean.get_xydata(), [[errors.mean(), r2.sel(statistic="mean")]])
    np.testing.assert_allclose(across.get_segments()[0][:, 0], ends)
    np.testing.assert_allclose(caps[0].get_xdata(), ends)
    for drawn in (up.get_segments()[0][:, 1], caps[1].get_ydata()):
        np.testing.assert_allclose(drawn, r2.sel(statistic=["lower", "upper"]))
    np.testing.assert_allclose(up.get_segments()[0][:, 0], errors.mean())


def test_an_interval_of_a_comparison_ends_where_it_ends(compared) -> None:
    """Of methods, whose bars are thick, and of releases."""
    moved = compared.copy(deep=True)
    for name in ("loss_difference", "risk_difference"):
        moved[name].loc[{"statistic": "mean"}] = moved[name].sel(statistic="upper") + 0.1
    axes = tc.plot_risk_utility(moved, reference="base 3")
    own = moved.sel(reference="base 3")
    expected = [
        own[name].sel(protection=protection, between=between, statistic=["lower", "upper"])
        for protection in own["protection"].values
        for between in ("methods", "releases")
        for name in ("loss_difference", "risk_difference")
    ]
    for number, (bar, ends) in enumerate(zip(axes.collections, expected, strict=True)):
        np.testing.assert_allclose(bar.get_segments()[0][:, number % 2], ends)


@pytest.mark.parametrize(
    ("share", "shown"),
    [
        (0.0, "0"),
        (0.003, "0.3"),
        (0.25, "25"),
        (0.496, "49.6"),
        (0.5, "50"),
        (0.504, "50.4"),
        (0.996, "99.6"),
        (1.0, "100"),
    ],
)
def test_a_share_is_shown_on_its_side_of_none_half_and_all(compared, share, shown) -> None:
    """A point is hollow up to half of the draws, and filled above."""
    changed = compared.copy(deep=True)
    changed["frontier"][:] = share
    axes = tc.plot_risk_utility(changed, reference="base 3")
    points = [box for box in axes.containers if box.get_label()[0] == " "]
    assert [box.get_label() for box in points] == [
        f" {name} ({shown} %)" for name in ("base 3", "base 5", "noise")
    ]
    assert {box.lines[0].get_markerfacecolor() == "white" for box in points} == {share <= 0.5}
