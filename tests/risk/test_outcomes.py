"""The outcomes of protections: every (draw, replicate) by a call of its own, and sums
of terms at any weights."""

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, strategies as st

import taciturn as tc
from strategies import probability_weights, tables
from taciturn.errors import TableError
from taciturn.risk.outcomes import TERMS, outcomes


@st.composite
def cases(draw) -> tuple[xr.DataArray, xr.DataArray, dict[str, xr.DataArray]]:
    """A table, draws of a population over its cells, and two releases of it."""
    shape = st.just(draw(st.sampled_from([(2,), (2, 2), (3, 2)])))
    return (
        draw(tables(shape=shape)),
        draw(tables(shape=shape, draw_dims=("chain", "draw"))),
        {
            "several": draw(tables(shape=shape, draw_dims=("replicate",))),
            "one": draw(tables(shape=shape)),
        },
    )


def of(released, table, population=None, where=None):
    arguments = {"table": table, "population": population, "where": where, "association": None}
    return dict(outcomes(released, **arguments))


@given(case=cases(), weights=probability_weights())
def test_every_pair_is_that_of_a_call_of_its_own(case, weights) -> None:
    table, population, released = case
    found = of(released, table, population)
    draws = population.stack(number=("chain", "draw")).transpose("number", ...)
    for name, release in released.items():
        outcome = found[name]
        several = release if "replicate" in release.dims else release.expand_dims("replicate")
        assert outcome.after["zero_term"].shape == (len(draws), len(several))
        assert outcome.dependence.chains == population.sizes["chain"]
        for d, F in enumerate(draws):
            F = F.drop_vars(["number", "chain", "draw"])
            before = tc.disclosure_risk(F, weights=weights)
            assert outcome.risk("R1", weights)[d, 0] == pytest.approx(float(before["R1"]))
            for b, G in enumerate(several):
                after = tc.disclosure_risk(F, G, weights=weights)
                assert outcome.risk("R2", weights)[d, b] == pytest.approx(float(after["R2"]))
                for term in TERMS:
                    assert outcome.after[term][d, b] == pytest.approx(float(after[term]))
        for b, G in enumerate(several):
            for measure, value in tc.information_loss(table, G).items():
                assert outcome.losses[measure][b] == pytest.approx(float(value), nan_ok=True)


def test_the_dimensions_may_come_in_any_order(religion_sample, fit_restaurant) -> None:
    population = fit_restaurant["posterior_predictive"]["population"].isel(draw=slice(0, 5))
    release = tc.random_round(religion_sample, replicates=3, random_seed=1)
    (first,) = of({"a": release}, religion_sample, population).values()
    (second,) = of(
        {"a": release.transpose(..., "replicate")},
        religion_sample,
        population.transpose("area", "draw", "religion", "chain"),
    ).values()
    np.testing.assert_allclose(first.after["entropy_term"], second.after["entropy_term"])


def test_a_population_has_no_replicates(religion) -> None:
    release = tc.random_round(religion, replicates=3, random_seed=1)
    with pytest.raises(TableError, match="population must be one table or draws of one"):
        of({"a": religion}, religion, release)


def test_tables_and_releases_have_no_draws(religion, fit_restaurant) -> None:
    draws = fit_restaurant["posterior_predictive"]["population"]
    with pytest.raises(TableError, match="table must be one table, but has the dimensions"):
        of({"a": religion}, draws)
    with pytest.raises(TableError, match=r"released\['a'\] must be one table or replicates"):
        of({"a": draws}, religion)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (lambda table: table.values, r"released\['bad'\] must be an xarray.DataArray"),
        (lambda table: table - 1, r"released\['bad'\]: counts must not be negative"),
        (lambda table: table * 1.5, r"released\['bad'\]: counts must be whole numbers"),
        (lambda table: table.isel(x=[0]), r"'x' differ between released\['bad'\] and table"),
        (lambda table: table.rename(x="z"), r"released\['bad'\] has the variables \('z', 'y'\)"),
        (lambda table: table + 1, r"where, which holds for released\['bad'\], too, leaves out"),
    ],
)
def test_an_error_says_of_which_release_it_is(bad, message) -> None:
    table = xr.DataArray([[2, 0], [1, 3]], dims=("x", "y"), coords={"x": [1, 2], "y": [1, 2]})
    with pytest.raises(TableError, match=message):
        of({"good": table, "bad": bad(table)}, table, where=table > 0)


def test_a_population_of_other_cells_is_not_said_of_a_release() -> None:
    table = xr.DataArray([[2, 0], [1, 3]], dims=("x", "y"), coords={"x": [1, 0]})
    with pytest.raises(TableError, match="'x' differ between population and table"):
        of({"good": table}, table, table.assign_coords(x=[1, 2]))
