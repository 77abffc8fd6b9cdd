"""Unbiased random rounding: what each count can become, and how often."""

import numpy as np
import pytest
import xarray as xr
from scipy import stats

import taciturn as tc
from taciturn.errors import ParameterError, TableError

ROUNDINGS = 20_000
TINY_ALPHA = 1e-6


@pytest.mark.parametrize("base", [2, 3, 5, 10])
def test_every_remainder_goes_up_as_often_as_it_should(base):
    counts = np.arange(2 * base)
    rounded = tc.random_round(
        xr.DataArray(counts, dims="x"), rounding_base=base, replicates=ROUNDINGS, random_seed=11
    )
    for count, column in zip(counts, rounded.transpose("x", "replicate").values, strict=True):
        remainder = count % base
        down, up = count - remainder, count - remainder + base
        values, times = np.unique(column, return_counts=True)
        if remainder == 0:
            assert values.tolist() == [count]
            continue
        assert values.tolist() == [down, up]
        # Unbiased: down * (1 - remainder / base) + up * remainder / base == count.
        assert stats.binomtest(int(times[1]), ROUNDINGS, remainder / base).pvalue > TINY_ALPHA


class Fixed(np.random.Generator):
    """Gives the uniform numbers it is told to."""

    def __init__(self, uniforms):
        super().__init__(np.random.PCG64(0))
        self.uniforms = np.asarray(uniforms)

    def random(self, size):
        return np.broadcast_to(self.uniforms.reshape(-1, *[1] * (len(size) - 1)), size)


@pytest.mark.parametrize("base", [2, 4, 8])
def test_expected_value_is_the_count_exactly(base):
    counts = xr.DataArray(np.arange(3 * base), dims="x")
    midpoints = (np.arange(base) + 0.5) / base  # one from each interval of probability 1 / base
    rounded = tc.random_round(
        counts, rounding_base=base, replicates=base, random_seed=Fixed(midpoints)
    )
    assert rounded.sum("replicate").values.tolist() == (base * counts).values.tolist()


def test_cells_are_rounded_apart_from_each_other():
    rounded = tc.random_round(
        xr.DataArray([1, 1], dims="x"), rounding_base=2, replicates=ROUNDINGS, random_seed=5
    )
    first, second = rounded.transpose("x", "replicate").values
    both_up = int(((first == 2) & (second == 2)).sum())
    assert stats.binomtest(both_up, ROUNDINGS, 1 / 2 * 1 / 2).pvalue > TINY_ALPHA


def test_labels_dims_and_type():
    table = tc.load_dataset("area_by_religion")
    rounded = tc.random_round(table, replicates=2, random_seed=1)
    assert rounded.dims == ("replicate", "area", "religion")
    assert rounded.dtype == np.int64
    assert rounded.isel(replicate=0, drop=True).coords.equals(table.coords)
    assert bool((rounded % 3 == 0).all())
    assert bool((abs(rounded - table) < 3).all())


def test_the_seed_decides():
    table = tc.load_dataset("area_by_religion")
    first, again, other = (tc.random_round(table, random_seed=s) for s in (1, 1, 2))
    assert first.equals(again)
    assert not first.equals(other)


def test_large_counts_stay_whole():
    count = 2**53 - 4  # 1 modulo 3
    rounded = tc.random_round(
        xr.DataArray([count, 1], dims="x"), rounding_base=3, replicates=50, random_seed=1
    ).isel(x=0)
    assert set(rounded.values.tolist()) == {count - 1, count + 2}


@pytest.mark.parametrize("base", [1, 0, -3, 2.5, True, "3"])
def test_bad_base(base):
    with pytest.raises(ParameterError, match=rf"whole number from 2 to 2\*\*53, got {base!r}"):
        tc.random_round(xr.DataArray([1, 2], dims="x"), rounding_base=base)


def test_bad_replicates():
    with pytest.raises(ParameterError, match="at least 1, got 0"):
        tc.random_round(xr.DataArray([1, 2], dims="x"), replicates=0)


def test_bad_tables():
    with pytest.raises(TableError, match="x=1 holds -2"):
        tc.random_round(xr.DataArray([1, -2], dims="x"))
    with pytest.raises(TableError, match="must be one table"):
        tc.random_round(xr.DataArray([[1, 2]], dims=("draw", "x")))
