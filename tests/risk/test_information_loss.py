"""Information loss: each measure by hand, dimensions, and memory."""

import tracemalloc
from math import sqrt

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from scipy import stats

import taciturn as tc
from strategies import pairs
from taciturn.errors import ParameterError, TableError

TABLE = xr.DataArray([[4, 0], [0, 6]], dims=("a", "b"))
ASSOCIATION = ("cramers_v_change", "chi_squared_change", "between_variance_change")


def test_by_hand():
    released = TABLE.copy(data=[[3, 3], [0, 0]])
    loss = tc.information_loss(TABLE, released)
    assert float(loss.hellinger) == pytest.approx(sqrt(((2 - sqrt(3)) ** 2 + 3 + 6) / 2))
    assert float(loss.mean_absolute_error) == (1 + 3 + 0 + 6) / 4
    assert float(loss.mean_relative_error) == (1 / 4 + 3 / 1 + 0 + 6 / 6) / 4
    assert [int(loss[name]) for name in ("kept_zeros", "lost_zeros", "new_zeros")] == [1, 1, 1]
    assert float(loss.cramers_v_change) == pytest.approx(
        0 - 1
    )  # from a perfect association to a single row


def test_cramers_v_by_hand():
    original = xr.DataArray([[10, 20, 30], [30, 20, 10]], dims=("a", "b"))
    even = xr.DataArray(np.full((2, 3), 7), dims=("a", "b"))
    chi_square = 4 * 10**2 / 20  # 20 expected in each cell, four of the six are 10 away
    loss = tc.information_loss(original, even)
    assert float(loss.cramers_v_change) == pytest.approx(-sqrt(chi_square / 120))


def test_the_table_itself_loses_nothing():
    religion = tc.load_dataset("area_by_religion")
    loss = tc.information_loss(religion, religion)
    assert int(loss.kept_zeros) == int((religion == 0).sum())
    assert float(loss.spearman) == 1
    assert not any(bool(loss[name]) for name in loss if name not in ("kept_zeros", "spearman"))


def test_draws_and_replicates_give_all_pairs():
    draws = TABLE.expand_dims(chain=2, draw=3) + xr.DataArray(np.arange(3), dims="draw")
    released = tc.random_round(TABLE, replicates=5, random_seed=1)
    loss = tc.information_loss(draws, released)
    assert dict(loss.sizes) == {"chain": 2, "draw": 3, "replicate": 5}
    for draw in range(3):
        single = tc.information_loss(draws.isel(chain=1, draw=draw), released.isel(replicate=4))
        for name in single:
            assert float(loss[name].isel(chain=1, draw=draw, replicate=4)) == float(single[name])
    xr.testing.assert_allclose(
        loss.hellinger, tc.information.hellinger_distance(draws, released).rename("hellinger")
    )


def test_association_of_two_among_three():
    cube = xr.DataArray(np.random.default_rng(1).poisson(3, (2, 3, 4)), dims=("a", "b", "c"))
    released = tc.random_round(cube, rounding_base=5, replicates=4, random_seed=1)
    for order in (("a", "c"), ("c", "a")):
        named = tc.information_loss(cube, released, association=order)
        flat = (each.sum("b").transpose(..., *order) for each in (cube, released))
        flat = tc.information_loss(*flat)
        for name in ASSOCIATION:
            np.testing.assert_allclose(named[name], flat[name], rtol=1e-12, err_msg=name)
    assert not set(ASSOCIATION) & set(tc.information_loss(cube, released))
    assert not set(ASSOCIATION) & set(tc.information_loss(cube[0, 0], released[:, 0, 0]))


def test_groups_and_what_is_compared_between_them():
    """Shares of a are 1/2 in both groups before, and 1 and 0 after; of the groups in
    each a, the other way round."""
    table = xr.DataArray([[9, 1], [1, 9]], dims=("group", "a"))
    released = xr.DataArray([[10, 0], [5, 5]], dims=("group", "a"))
    # Within each group the two categories depart from the overall shares alike.
    before, after = 2 * 0.4**2, 2 * 0.25**2
    loss = tc.information_loss(table, released, association=("group", "a"))
    assert float(loss.between_variance_change) == pytest.approx(after / before - 1)
    turned = tc.information_loss(table, released, association=("a", "group"))
    after = (3 / 4 * (2 / 3 - 1 / 2) ** 2 + 1 / 4 * (1 / 2) ** 2) * 2
    assert float(turned.between_variance_change) == pytest.approx(after / before - 1)


def between_variance(table):
    """A slow twin: one-way analysis of variance of who has each category."""
    groups, categories = (
        np.repeat(index, table.ravel()) for index in np.indices(table.shape).reshape(2, -1)
    )
    found = 0.0
    for category in range(table.shape[1]):
        has = (categories == category).astype(float)
        found += sum(
            (groups == group).sum() * (has[groups == group].mean() - has.mean()) ** 2
            for group in np.unique(groups)
        )
    return found / max(len(groups), 1)


def chi_squared(table):
    filled = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
    return stats.chi2_contingency(filled, correction=False).statistic if filled.size else 0.0


@given(pairs(max_dims=2, empty_release=True))
def test_ranks_and_association_against_independent_programs(pair):
    table, released = pair
    loss = tc.information_loss(table, released)
    f, g = table.values.ravel(), released.values.ravel()
    if np.ptp(f) == 0:
        assert np.isnan(loss.spearman)
    else:
        expected = stats.spearmanr(f, g).statistic if np.ptp(g) else 0.0
        assert float(loss.spearman) == pytest.approx(expected, abs=1e-12)
        assert -1 <= float(loss.spearman) <= 1
    if table.ndim < 2:
        return
    for name, twin in (
        ("chi_squared_change", chi_squared),
        ("between_variance_change", between_variance),
    ):
        before, after = twin(table.values), twin(released.values)
        if before < 1e-9:
            assert np.isnan(loss[name])
        else:
            assert float(loss[name]) == pytest.approx(after / before - 1, abs=1e-9)
            assert float(loss[name]) >= -1


def test_no_association_to_change():
    independent = xr.DataArray([[1, 3, 7], [3, 9, 21], [7, 21, 49]], dims=("a", "b"))
    loss = tc.information_loss(independent, independent + 1)
    assert np.isnan(loss.chi_squared_change)
    assert np.isnan(loss.between_variance_change)
    back = tc.information_loss(
        independent + xr.DataArray(np.eye(3, dtype=int), dims=("a", "b")), independent
    )
    assert float(back.chi_squared_change) == float(back.between_variance_change) == -1


def test_fewer_people_with_the_same_shares():
    loss = tc.information_loss(4 * TABLE, TABLE)
    assert float(loss.chi_squared_change) == pytest.approx(-3 / 4)
    assert float(loss.between_variance_change) == pytest.approx(0)
    assert float(loss.spearman) == 1


def test_an_empty_release():
    loss = tc.information_loss(TABLE, 0 * TABLE)
    assert float(loss.cramers_v_change) == pytest.approx(-1)
    assert float(loss.hellinger) == pytest.approx(sqrt(10 / 2))
    assert float(loss.spearman) == 0
    assert float(loss.chi_squared_change) == float(loss.between_variance_change) == -1


def test_lazy_tables_are_computed():
    pytest.importorskip("dask")
    loss = tc.information_loss(TABLE.chunk(), tc.random_round(TABLE, random_seed=1).chunk())
    assert loss.equals(tc.information_loss(TABLE, tc.random_round(TABLE, random_seed=1)))


def test_many_pairs_take_little_memory():
    table = xr.DataArray(np.random.default_rng(1).poisson(2, (300, 300)), dims=("a", "b"))
    released = tc.random_round(table, replicates=100, random_seed=1)
    tracemalloc.start()
    tc.information_loss(table, released)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2 * released.nbytes


@pytest.mark.parametrize("association", ["a", ["a"], ["a", "a"], ["a", "z"], ["a", "b", "c"]])
def test_bad_association(association):
    with pytest.raises(ParameterError, match="association must name two variables of the table"):
        tc.information_loss(TABLE, TABLE, association=association)


def test_bad_tables():
    with pytest.raises(TableError, match="categories of 'b' differ"):
        tc.information_loss(TABLE, TABLE.isel(b=[0]))
    with pytest.raises(TableError, match="must be whole numbers"):
        tc.information_loss(TABLE, TABLE + 0.5)
    with pytest.raises(TableError, match=r"must be an xarray\.DataArray, got list"):
        tc.information_loss([1, 2], TABLE)


def test_structural_zeros_are_no_cells():
    """As if the table had those alone that can be filled; association aside."""
    rng = np.random.default_rng(3)
    where = xr.DataArray(rng.random((4, 5)) < 0.6, dims=("a", "b"))
    table, released = (where * rng.integers(0, 6, (4, 5)) for _ in range(2))
    found = tc.information_loss(table, released, where=where.transpose("b", "a"))
    cells = [xr.DataArray(x.values[where.values], dims="cell") for x in (table, released)]
    by_hand = tc.information_loss(*cells)
    xr.testing.assert_allclose(found[list(by_hand)], by_hand)
    everywhere = tc.information_loss(table, released)
    xr.testing.assert_allclose(found["cramers_v_change"], everywhere["cramers_v_change"])
    assert everywhere["kept_zeros"] > found["kept_zeros"]
    for bad in ((table + 1, released), (table, released + 1)):
        with pytest.raises(TableError, match="leaves out a cell"):
            tc.information_loss(*bad, where=where)
