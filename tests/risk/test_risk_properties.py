"""What holds for every table and every release: R1 and R2 against slow twins, bounds
and symmetries."""

import numpy as np
import pytest
import xarray as xr
from hypothesis import assume, given, strategies as st

import taciturn as tc
import twins
from strategies import pairs, populations_with_samples, probability_weights, tables

CLOSE = {"rel": 1e-9, "abs": 1e-12}
TERMS = ("zero_term", "entropy_term", "size_term")
VARIANTS = st.sampled_from(["2015", "2014"])


def flat(table: xr.DataArray) -> list[int]:
    return table.values.ravel().tolist()


def terms_of(risk: xr.Dataset) -> list[float]:
    return [float(risk[name]) for name in TERMS]


@given(tables(), probability_weights())
def test_r1_is_the_formula(table, weights):
    expected = twins.terms_before(flat(table))
    risk = tc.disclosure_risk(table, weights=weights)
    assert terms_of(risk) == pytest.approx(expected, **CLOSE)
    assert float(risk.R1) == pytest.approx(twins.weighted(expected, weights), **CLOSE)


@given(pairs(empty_release=True), probability_weights(), VARIANTS)
def test_r2_is_the_formula(pair, weights, variant):
    F, G = pair
    expected = twins.terms_after(flat(F), flat(G), variant)
    risk = tc.disclosure_risk(F, G, weights=weights, variant=variant)
    assert terms_of(risk) == pytest.approx(expected, **CLOSE)
    assert float(risk.R2) == pytest.approx(twins.weighted(expected, weights), **CLOSE)
    assert float(risk.R1) == pytest.approx(
        twins.weighted(twins.terms_before(flat(F)), weights), **CLOSE
    )


@given(pairs(empty_release=True), VARIANTS, st.data())
def test_each_category_is_the_formula_on_its_own_table(pair, variant, data):
    F, G = pair
    variable = data.draw(st.sampled_from(F.dims))
    others = [dim for dim in F.dims if dim != variable]
    assume(F.size > F.sizes[variable])
    risk = tc.disclosure_risk(F, G, dim=others, variant=variant)
    for at in range(F.sizes[variable]):
        expected = twins.terms_after(
            flat(F.isel({variable: at})), flat(G.isel({variable: at})), variant
        )
        own = risk.isel({variable: at})
        assert terms_of(own) == pytest.approx(expected, **CLOSE)
        assert 0 <= float(own.R2) <= float(own.R1) <= 1 + 1e-12


@given(
    pairs(table_dims=("draw",), release_dims=("replicate",), empty_release=True),
    probability_weights(),
    VARIANTS,
)
def test_a_release_never_raises_the_risk_and_both_are_bounded(pair, weights, variant):
    risk = tc.disclosure_risk(*pair, weights=weights, variant=variant)
    assert bool((risk.R2 <= risk.R1).all())
    assert bool((risk.R2 >= 0).all())
    assert bool((risk.R1 <= 1 + 1e-12).all())
    assert all(bool(((risk[name] >= 0) & (risk[name] <= 1)).all()) for name in TERMS)


@given(tables(), st.integers(1, 50), probability_weights())
def test_a_proportional_release_keeps_the_risk(table, factor, weights):
    risk = tc.disclosure_risk(table, factor * table, weights=weights)
    assert float(risk.R2) == float(risk.R1)


@given(pairs(), st.data())
def test_order_of_cells_and_of_variables(pair, data):
    F, G = pair
    expected = tc.disclosure_risk(F, G)
    order = {dim: data.draw(st.permutations(range(size))) for dim, size in F.sizes.items()}
    turned = tc.disclosure_risk(
        F.isel(order).transpose(*data.draw(st.permutations(F.dims))), G.isel(order)
    )
    xr.testing.assert_allclose(turned, expected, rtol=1e-9, atol=1e-12)
    order = data.draw(st.permutations(range(F.size)))
    one_dimension = [xr.DataArray(np.array(flat(table))[order], dims="cell") for table in pair]
    xr.testing.assert_allclose(tc.disclosure_risk(*one_dimension), expected, rtol=1e-9, atol=1e-12)


@given(pairs(table_dims=("chain", "draw"), release_dims=("replicate",), max_dims=2))
def test_draws_and_replicates_give_all_pairs(pair):
    draws, releases = pair
    risk = tc.disclosure_risk(draws, releases)
    for chain, draw, replicate in np.ndindex(
        *(risk.sizes[dim] for dim in ("chain", "draw", "replicate"))
    ):
        expected = twins.terms_after(flat(draws[chain, draw]), flat(releases[replicate]), "2015")
        found = terms_of(risk.isel(chain=chain, draw=draw, replicate=replicate))
        assert found == pytest.approx(expected, **CLOSE)


@given(populations_with_samples(), st.data())
def test_structural_zeros_are_as_if_they_were_not_there(pair, data):
    F, f = pair
    fillable = F.values.ravel() > 0
    fillable |= np.array(data.draw(st.lists(st.booleans(), min_size=F.size, max_size=F.size)))
    if fillable.sum() < 2:
        fillable[:] = True
    masked = tc.disclosure_risk(F, f, where=F.copy(data=fillable.reshape(F.shape)))
    left_out = [xr.DataArray(np.array(flat(table))[fillable], dims="cell") for table in pair]
    xr.testing.assert_allclose(masked, tc.disclosure_risk(*left_out), rtol=1e-9, atol=1e-12)


@given(tables(max_count=20), st.integers(2, 6))
def test_property_2_larger_counts_of_the_same_shape_lower_the_risk(table, factor):
    assert float(tc.disclosure_risk(factor * table).R1) < float(tc.disclosure_risk(table).R1)


@given(st.integers(1, 10**6), st.integers(1, 30), st.integers(1, 30))
def test_property_3_more_empty_cells_around_one_populated(count, empty, more):
    fewer, cells = (xr.DataArray([count] + [0] * n, dims="x") for n in (empty, empty + more))
    assert float(tc.disclosure_risk(fewer).R1) < float(tc.disclosure_risk(cells).R1)


@given(tables())
def test_properties_1a_and_1b_concentration_between_uniform_and_one_cell(table):
    total = int(table.sum())
    one_cell = table.copy(data=np.where(np.arange(table.size) == 0, total, 0).reshape(table.shape))
    uniform = xr.full_like(table, total)
    concentration = float(tc.disclosure_risk(table).entropy_term)
    assert float(tc.disclosure_risk(uniform).entropy_term) == pytest.approx(0, abs=1e-12)
    assert float(tc.disclosure_risk(one_cell).entropy_term) == 1
    assert 0 <= concentration <= 1
