"""Information loss: each measure by hand, dimensions, and memory."""

import tracemalloc
from math import sqrt

import numpy as np
import pytest
import xarray as xr

import taciturn as tc
from taciturn.errors import ParameterError, TableError

TABLE = xr.DataArray([[4, 0], [0, 6]], dims=("a", "b"))


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
    assert not any(bool(loss[name]) for name in loss if name != "kept_zeros")


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
    assert "cramers_v_change" not in tc.information_loss(cube, released)
    named = tc.information_loss(cube, released, association=("c", "a")).cramers_v_change
    flat = tc.information_loss(cube.sum("b"), released.sum("b")).cramers_v_change
    np.testing.assert_allclose(named, flat, rtol=1e-12)
    assert "cramers_v_change" not in tc.information_loss(cube[0, 0], released[:, 0, 0])


def test_an_empty_release():
    loss = tc.information_loss(TABLE, 0 * TABLE)
    assert float(loss.cramers_v_change) == pytest.approx(-1)
    assert float(loss.hellinger) == pytest.approx(sqrt(10 / 2))


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
