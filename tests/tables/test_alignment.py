"""Tables with the same categories in another order: the results are those of aligned
ones, wherever two meet."""

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, strategies as st

import taciturn as tc
from taciturn.errors import TableError
from taciturn.estimators.problem import make_problem
from taciturn.tables.checks import aligned

TABLE = tc.load_dataset("area_by_religion")
RELEASED = tc.random_round(TABLE, rounding_base=3, replicates=3, random_seed=1)
WHERE = TABLE > 0
SWAP = xr.DataArray(
    0.8 * np.eye(2) + 0.1, dims=("sex", "after"), coords={"sex": ["f", "m"], "after": ["f", "m"]}
)
PAIR = xr.DataArray([3, 5], dims="sex", coords={"sex": ["f", "m"]})


def mixed(table: xr.DataArray, seed: int = 1) -> xr.DataArray:
    """The same table with its dimensions and categories in another order."""
    random = np.random.default_rng(seed)
    order = {dim: random.permutation(table.sizes[dim]) for dim in table.dims if dim != "replicate"}
    other = table.isel(order).transpose(*table.dims[::-1])
    assert not other.identical(table)
    return other


TWO = {
    "disclosure_risk": lambda t, r: tc.disclosure_risk(t, r),
    "by area": lambda t, r: tc.disclosure_risk(t, r, dim="religion"),
    "information_loss": lambda t, r: tc.risk.information_loss(t, r),
    "hellinger_distance": lambda t, r: tc.information.hellinger_distance(t, r),
    "conditional_entropy": lambda t, r: tc.information.conditional_entropy(t, r),
    "averaged": lambda t, r: tc.information.averaged_conditional_entropy(t, r),
    "risk_utility": lambda t, r: tc.risk_utility({"round": r}, table=t),
}


@pytest.mark.parametrize("name", TWO)
def test_measures_of_two_tables(name):
    expected = TWO[name](TABLE, RELEASED)
    xr.testing.assert_allclose(TWO[name](TABLE, mixed(RELEASED)), expected, rtol=1e-12)


def test_masks_and_given_entropies():
    expected = tc.disclosure_risk(TABLE, where=WHERE)
    xr.testing.assert_identical(tc.disclosure_risk(TABLE, where=mixed(WHERE)), expected)
    after = tc.information.conditional_entropy_from_transition
    xr.testing.assert_allclose(after(PAIR, mixed(SWAP, 3)), after(PAIR, SWAP), rtol=1e-12)
    known = tc.information.entropy(TABLE, dim="religion") / 2
    shuffled = known.isel(area=slice(None, None, -1))
    args = {"dim": "religion", "released": TABLE}
    assert tc.disclosure_risk(TABLE, conditional_entropy=shuffled, **args).identical(
        tc.disclosure_risk(TABLE, conditional_entropy=known, **args)
    )


def test_structural_zeros_and_known_margins():
    sample = tc.draw_sample(TABLE, fraction=0.2, random_seed=1)
    empty = TABLE == 0
    margin = tc.margin(TABLE, "area")
    settings = {"population_size": int(TABLE.sum()), "random_seed": 1, "draws": 20}
    fit = tc.LogLinear().fit
    one = fit(sample, structural_zeros=empty, **settings)
    two = fit(sample, structural_zeros=mixed(empty), **settings)
    xr.testing.assert_identical(
        one["posterior_predictive"]["population"], two["posterior_predictive"]["population"]
    )
    size = int(TABLE.sum())
    given = [make_problem(sample, size, known_margins=m) for m in (margin, margin[::-1])]
    xr.testing.assert_identical(*(each.known_margins for each in given))


def test_suppression_and_attack():
    table = tc.load_dataset("area_by_sex")
    hidden = (table < 110) | (table.area == table.area[0])
    release, other = (tc.Suppression(table, mask) for mask in (hidden, mixed(hidden)))
    bounds = tc.attacker_bounds(release, progressbar=False)
    assert tc.attacker_bounds(other, progressbar=False).identical(bounds)
    assert tc.attacker_bounds(release, cells=mixed(hidden), progressbar=False).identical(
        tc.attacker_bounds(release, cells=hidden, progressbar=False)
    )
    costs = 1 + table * 1.0
    given = {"random_seed": 1, "progressbar": False}
    one = tc.suppress(table, table < 100, costs=costs, **given)
    two = tc.suppress(table, mixed(table < 100), costs=mixed(costs), **given)
    assert str(one) == str(two)


@given(st.permutations(list("abcd")), st.permutations(list("abcd")))
def test_any_order_becomes_that_of_the_table(first, second):
    given, table = (
        xr.DataArray([ord(label) for label in labels], dims="v", coords={"v": labels})
        for labels in (first, second)
    )
    assert aligned(given, table, names=("given", "table")).identical(table)


@pytest.mark.parametrize("labels", [["a", "b", "x"], ["a", "b"], ["a", "b", "b"], [1, 2, 3]])
def test_other_categories_remain_an_error(labels):
    table = xr.DataArray([1, 2, 3], dims="v", coords={"v": list("abc")})
    given = xr.DataArray(range(len(labels)), dims="v", coords={"v": labels})
    with pytest.raises(TableError, match="the categories of 'v' differ between given and table"):
        aligned(given, table, names=("given", "table"))


def test_levels_above_a_variable_move_with_it():
    table = xr.DataArray([1, 2, 3], dims="v", coords={"v": list("abc")})
    given = table.assign_coords(above=("v", list("xxy")))[::-1]
    found = aligned(given, table, names=("given", "table"))
    assert found["above"].values.tolist() == list("xxy")
