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
