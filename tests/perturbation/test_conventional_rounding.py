"""Conventional rounding, and totals that are rounded on their own."""

from fractions import Fraction

import numpy as np
import pytest
import xarray as xr

import taciturn as tc
from perturbed import assert_follows, assert_unbiased, product_pmf
from taciturn.errors import ParameterError, TableError


def rounded_cell(count: int, base: int) -> dict[int, Fraction]:
    down, rest = count - count % base, Fraction(count % base, base)
    return {down: 1 - rest, down + base: rest} if rest else {count: Fraction(1)}


@pytest.mark.parametrize(
    ("counts", "base"), [([0, 1, 2, 3, 4], 3), ([1, 5, 9], 10), ([1, 1, 3], 2)]
)
def test_random_rounding_follows_its_exact_distribution(counts, base):
    pmf = product_pmf([rounded_cell(count, base) for count in counts])
    assert_unbiased(pmf, counts)
    rounded = tc.random_round(
        xr.DataArray(counts, dims="x"), rounding_base=base, replicates=20_000, random_seed=8
    )
    assert_follows(rounded, pmf)


def test_totals_are_rounded_on_their_own():
    table = xr.DataArray([[1, 3], [0, 1]], dims=("a", "b"), coords={"a": ["x", "y"], "b": [1, 2]})
    rounded = tc.random_round(
        table, rounding_base=3, totals="Total", replicates=20_000, random_seed=9
    )
    assert rounded.a.values.tolist() == ["x", "y", "Total"]
    assert rounded.b.values.tolist() == [1, 2, "Total"]
    with_totals = [1, 3, 4, 0, 1, 1, 1, 4, 5]
    assert_follows(rounded, product_pmf([rounded_cell(count, 3) for count in with_totals]))
    inner = rounded.drop_sel(a="Total", b="Total")
    assert bool((tc.disclosure_risk(table, inner).R2 <= 1).all())


def test_totals_of_three_variables_are_all_margins():
    table = xr.DataArray(np.full((2, 2, 2), 3), dims=("a", "b", "c"))
    rounded = tc.random_round(table, rounding_base=3, totals="Total").isel(replicate=0)
    assert int(rounded.sel(a="Total", b="Total", c="Total")) == 24
    assert rounded.sel(a="Total", b="Total").values.tolist() == [12, 12, 24]
    assert int(rounded.sel(b="Total").isel(a=0, c=0)) == 6


def test_a_label_that_is_taken():
    table = xr.DataArray([1, 2], dims="a", coords={"a": ["x", "Total"]})
    with pytest.raises(TableError, match="'Total' is already a category of 'a'"):
        tc.random_round(table, totals="Total")


@pytest.mark.parametrize(
    ("base", "expected"),
    [
        (2, [0, 2, 2, 4, 4, 6, 6, 8]),
        (3, [0, 0, 3, 3, 3, 6, 6, 6]),
        (4, [0, 0, 4, 4, 4, 4, 8, 8]),  # 2 and 6 lie halfway and go up
        (5, [0, 0, 0, 5, 5, 5, 5, 5]),
    ],
)
def test_conventional_rounding(base, expected):
    rounded = tc.perturbation.conventional_round(
        xr.DataArray(np.arange(8), dims="x"), rounding_base=base
    )
    assert rounded.dims == ("replicate", "x")
    assert rounded.values.tolist() == [expected]


@pytest.mark.parametrize("base", [1, 0, 2.5, True, "3", float("nan")])
def test_bad_base(base):
    with pytest.raises(
        ParameterError,
        match=rf"rounding_base must be a whole number from 2 to 2\*\*53, got {base!r}",
    ):
        tc.perturbation.conventional_round(xr.DataArray([1, 2], dims="x"), rounding_base=base)


@pytest.mark.parametrize("function", [tc.random_round, tc.perturbation.conventional_round])
def test_a_base_beyond_all_counts(function):
    with pytest.raises(
        ParameterError, match=r"rounding_base must be a whole number from 2 to 2\*\*53"
    ):
        function(xr.DataArray([1, 2], dims="x"), rounding_base=2**60)


def test_totals_that_would_overflow() -> None:
    table = xr.DataArray(np.full((64, 32), 2**53), dims=("a", "b"))
    with pytest.raises(TableError, match=r"grand total must be at most 2\*\*53"):
        tc.random_round(table, rounding_base=3, totals="all")
