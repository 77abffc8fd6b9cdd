"""The risk-utility map: the measures of its parts, over replicates and draws
together."""

import matplotlib as mpl
import numpy as np
import pytest
import xarray as xr

import taciturn as tc
from taciturn.errors import ParameterError, TableError

mpl.use("agg")
from matplotlib import pyplot as plt


@pytest.fixture(scope="module")
def rounded(religion) -> xr.DataArray:
    return tc.random_round(religion, rounding_base=3, replicates=60, random_seed=1)


@pytest.fixture(scope="module")
def found(religion, rounded) -> xr.Dataset:
    conventional = tc.perturbation.conventional_round(religion, rounding_base=5)
    return tc.risk_utility(
        {"as it is": religion, "rr3": rounded, "conv5": conventional}, table=religion
    )


def test_means_and_intervals_are_those_of_the_parts(found, religion, rounded) -> None:
    risk, loss = tc.disclosure_risk(religion, rounded), tc.information_loss(religion, rounded)
    own = found.sel(protection="rr3")
    for name, values in {"R1": risk.R1, "R2": risk.R2, **loss.data_vars}.items():
        expected = [float(values.mean()), *np.quantile(values, [0.025, 0.975])]
        np.testing.assert_allclose(
            own[name].sel(statistic=["mean", "lower", "upper"]), expected, err_msg=name
        )
    assert found.attrs == {"weights": [0.1, 0.8, 0.1], "probability": 0.95}


def test_the_table_itself_is_where_protections_start_from(found, religion) -> None:
    own = found.sel(protection="as it is")
    assert float(own["R2"].sel(statistic="mean")) == pytest.approx(
        float(tc.disclosure_risk(religion).R1)
    )
    for name in (
        "hellinger",
        "mean_absolute_error",
        "mean_relative_error",
        "cramers_v_change",
        "lost_zeros",
    ):
        assert (own[name] == 0).all()
    certain = found.sel(protection="conv5")
    assert (certain["R2"] == certain["R2"][0]).all()


def test_both_uncertainties_at_once(fit_restaurant, religion_sample) -> None:
    """All pairs of a draw of the population and a replicate of the protected sample."""
    population = fit_restaurant["posterior_predictive"]["population"].isel(draw=slice(0, 40))
    release = tc.random_round(religion_sample, rounding_base=3, replicates=7, random_seed=1)
    found = tc.risk_utility(
        {"rr3": release}, table=religion_sample, population=population, probability=0.8
    )
    pairs = tc.disclosure_risk(population, release)
    assert pairs["R2"].sizes == {"chain": 2, "draw": 40, "replicate": 7}
    expected = [float(pairs["R2"].mean()), *np.quantile(pairs["R2"], [0.1, 0.9])]
    np.testing.assert_allclose(found["R2"].sel(protection="rr3"), expected)
    # One slow, obvious pair.
    one = tc.disclosure_risk(population.isel(chain=1, draw=3), release.isel(replicate=5))
    assert float(pairs["R2"].isel(chain=1, draw=3, replicate=5)) == pytest.approx(float(one["R2"]))
    known = tc.risk_utility({"rr3": release}, table=religion_sample)
    width = [np.ptp(each["R2"].sel(protection="rr3").values) for each in (found, known)]
    assert width[0] > width[1]


def test_a_population_in_parts_gives_the_same(fit_restaurant, religion_sample, monkeypatch) -> None:
    population = fit_restaurant["posterior_predictive"]["population"].isel(draw=slice(0, 30))
    release = tc.random_round(religion_sample, rounding_base=3, replicates=3, random_seed=1)
    arguments = {"table": religion_sample, "population": population}
    whole = tc.risk_utility({"rr3": release}, **arguments)
    monkeypatch.setattr("taciturn.schema._BLOCK", 7 * 90)
    xr.testing.assert_allclose(tc.risk_utility({"rr3": release}, **arguments), whole)


def test_structural_zeros_are_no_cells(religion, rounded) -> None:
    where = (religion > 0) | (xr.DataArray(np.arange(9) > 2, dims="religion"))
    found = tc.risk_utility({"rr3": rounded}, table=religion, where=where)
    expected = tc.disclosure_risk(religion, rounded, where=where)
    assert float(found["R2"].sel(protection="rr3", statistic="mean")) == pytest.approx(
        float(expected["R2"].mean())
    )


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"released": {}}, ParameterError, "released must be a mapping of names to releases"),
        ({"released": [1]}, ParameterError, "released must be a mapping of names to releases"),
        ({"released": {3: None}}, ParameterError, "the name of a method must be text, got 3"),
        ({"probability": 1.0}, ParameterError, "probability"),
        ({"weights": (1, 1, 1)}, ParameterError, "sum to 1"),
        ({"association": ["area", "area"]}, ParameterError, "association must name two variables"),
    ],
)
def test_bad_input(change, error, message, religion, rounded) -> None:
    arguments = {"released": {"rr3": rounded}, "table": religion, **change}
    with pytest.raises(error, match=message):
        tc.risk_utility(arguments.pop("released"), **arguments)


def test_wrong_types(religion, rounded) -> None:
    with pytest.raises(TableError, match=r"population must be an xarray\.DataArray, got ndarray"):
        tc.risk_utility({"rr3": rounded}, table=religion, population=religion.values)
    with pytest.raises(ParameterError, match="association must name two variables"):
        tc.risk_utility({"rr3": rounded}, table=religion, association=5)
    with pytest.raises(
        ParameterError, match="result must be what risk_utility returns, got NoneType"
    ):
        tc.plot_risk_utility(None)
    with pytest.raises(TableError, match="pairs them one to one, but with 60 and 3 of them"):
        tc.disclosure_risk(rounded, rounded.isel(replicate=slice(0, 3)))


def test_names_that_mean_something_to_the_plot(religion, rounded) -> None:
    axes = tc.plot_risk_utility(
        tc.risk_utility({"_mine": rounded, "p $x^{$": religion}, table=religion)
    )
    axes.figure.canvas.draw()
    assert len(axes.get_legend().get_texts()) == 2
    plt.close("all")


def test_a_release_of_another_table(religion) -> None:
    with pytest.raises(TableError, match="religion"):
        tc.risk_utility({"other": tc.load_dataset("area_by_sex")}, table=religion)


def test_the_plot_shows_means_and_intervals(found) -> None:
    axes = tc.plot_risk_utility(found)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("Hellinger distance from the original", "R2")
    points = {box.get_label(): box for box in axes.containers}
    assert list(points) == [" as it is", " rr3", " conv5"]
    line, _, (across, up) = points[" rr3"].lines
    x, y = found["hellinger"].sel(protection="rr3"), found["R2"].sel(protection="rr3")
    np.testing.assert_allclose([line.get_xdata()[0], line.get_ydata()[0]], [x[0], y[0]])
    np.testing.assert_allclose(across.get_segments()[0][:, 0], x[1:])
    np.testing.assert_allclose(up.get_segments()[0][:, 1], y[1:])
    _, given = plt.subplots()
    assert tc.plot_risk_utility(found, utility="lost_zeros", risk="R1", ax=given) is given
    assert (given.get_xlabel(), given.get_ylabel()) == ("lost zeros", "R1")
    for argument in ({"utility": "R2"}, {"utility": "x"}, {"risk": "tau1"}):
        with pytest.raises(ParameterError, match="must be"):
            tc.plot_risk_utility(found, **argument)
    plt.close("all")
