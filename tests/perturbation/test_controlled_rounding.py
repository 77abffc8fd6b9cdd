"""Controlled rounding: its exact distribution, additivity, and what has no solution."""

import tracemalloc
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
import xarray as xr

import taciturn as tc
from perturbed import assert_follows, assert_unbiased, controlled_pmf, controlled_roundings
from taciturn.errors import ParameterError, PerturbationError, TableError

ROUNDINGS = 20_000


@pytest.mark.parametrize(
    ("counts", "base"),
    [
        ([[1, 2, 0], [2, 1, 1]], 3),
        pytest.param([[1, 1], [1, 1]], 2, marks=pytest.mark.slow),
        pytest.param([[4, 7, 1], [0, 3, 9], [2, 2, 2]], 5, marks=pytest.mark.slow),
        ([[1, 2, 3, 4]], 5),
        pytest.param([[3], [1], [2]], 4, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_two_variables_follow_the_exact_distribution_of_the_cycles(counts, base):
    pmf = controlled_pmf(counts, base)
    assert_unbiased(pmf, np.ravel(counts).tolist())
    table = xr.DataArray(counts, dims=("a", "b"))
    assert_follows(
        tc.controlled_round(table, rounding_base=base, replicates=ROUNDINGS, random_seed=3), pmf
    )


def test_one_variable_is_a_table_with_one_row():
    counts = [1, 2, 3, 4]
    rounded = tc.controlled_round(
        xr.DataArray(counts, dims="a"), rounding_base=5, replicates=ROUNDINGS, random_seed=4
    )
    assert_follows(rounded, controlled_pmf([counts], 5))
    assert set(rounded.sum("a").values.tolist()) == {10}  # the total is a multiple already


def test_a_single_cycle_by_hand():
    # Up by 1 on the diagonal and down by 1 beside it, or the other way by 2: the
    # chances are 2/3 and 1/3.
    table = xr.DataArray([[2, 1], [1, 2]], dims=("a", "b"))
    rounded = tc.controlled_round(table, rounding_base=3, replicates=ROUNDINGS, random_seed=5)
    assert_follows(rounded, {(3, 0, 0, 3): Fraction(2, 3), (0, 3, 3, 0): Fraction(1, 3)})


def test_three_variables_by_hand():
    # The total 2 allows one cell to go up. Costs are U - 1/3: none goes up when both
    # are positive, else the smaller.
    table = xr.DataArray(np.ones((2, 1, 1), dtype=int), dims=("a", "b", "c"))
    rounded = tc.controlled_round(table, rounding_base=3, replicates=300, random_seed=6)
    pmf = {(0, 0): Fraction(2, 3) ** 2, (3, 0): Fraction(5, 18), (0, 3): Fraction(5, 18)}
    assert_follows(rounded, pmf)


def test_the_census_table_adds_up():
    religion = tc.load_dataset("area_by_religion")
    rounded = tc.controlled_round(religion, rounding_base=3, replicates=200, random_seed=1)
    assert rounded.dims == ("replicate", "area", "religion")
    assert rounded.isel(replicate=0, drop=True).coords.equals(religion.coords)
    for names in ([], ["area"], ["religion"], ["area", "religion"]):
        total, released = tc.margin(religion, names), tc.margin(rounded, names)
        assert bool((released % 3 == 0).all())
        assert bool((abs(released - total) < 3).all())


ODD_CYCLE = [(0, 0, 0), (1, 0, 0), (1, 1, 0), (2, 1, 0), (2, 1, 1), (0, 1, 1), (0, 0, 1)]


def odd_cycle() -> xr.DataArray:
    """Every two-way total is 0 or 2, so of each two neighbours on a cycle of seven
    cells one has to go up."""
    table = xr.DataArray(np.zeros((3, 2, 2), dtype=int), dims=("a", "b", "c"))
    for cell in ODD_CYCLE:
        table[cell] = 1
    return table


def test_no_solution_is_an_error_that_says_so():
    table = odd_cycle()
    pairs = list(combinations("abc", 2))
    assert controlled_roundings(table, 2, pairs) == []
    message = (
        "no controlled rounding of this table to base 2 keeps the totals of a by b, a by c, b by c:"
        " name fewer"
    )
    with pytest.raises(PerturbationError, match=message):
        tc.controlled_round(table, rounding_base=2, margins=pairs, random_seed=1)
    assert tc.controlled_round(table, rounding_base=2, random_seed=1).sum() in (6, 8)


def test_named_margins_of_three_variables():
    table = xr.DataArray(np.random.default_rng(1).poisson(2, (4, 3, 5)), dims=("a", "b", "c"))
    rounded = tc.controlled_round(table, margins=[("b", "a"), "c"], replicates=20, random_seed=1)
    for names in ([], ["a", "b"], ["c"]):
        assert bool((abs(tc.margin(rounded, names) - tc.margin(table, names)) < 3).all())


def test_many_cells_of_three_variables_are_settled_in_two_steps():
    table = xr.DataArray(np.random.default_rng(2).poisson(2, (20, 20, 20)), dims=("a", "b", "c"))
    rounded = tc.controlled_round(table, random_seed=1)
    assert bool((abs(rounded - table) < 3).all())
    for names in ([], ["a"], ["b"], ["c"]):
        assert bool((abs(tc.margin(rounded, names) - tc.margin(table, names)) < 3).all())


@pytest.mark.parametrize("shape", [(2,), (2, 2), (2, 2, 2)])
def test_multiples_stay(shape):
    table = xr.DataArray(np.full(shape, 6), dims=list("abc"[: len(shape)]))
    labels = {dim: range(2) for dim in table.dims}
    expected = table.expand_dims(replicate=2).assign_coords(replicate=[0, 1], **labels)
    assert tc.controlled_round(table, rounding_base=3, replicates=2).equals(expected)


def test_a_million_cells_take_little_beside_the_result():
    table = xr.DataArray(np.random.default_rng(1).poisson(2, (1000, 1000)), dims=("a", "b"))
    tc.controlled_round(table[:2])  # compiles
    tracemalloc.start()
    rounded = tc.controlled_round(table, rounding_base=10, random_seed=1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10 * table.nbytes
    for names in ([], ["a"], ["b"]):
        assert bool((abs(tc.margin(rounded, names) - tc.margin(table, names)) < 10).all())


@pytest.mark.parametrize("shape", [(4,), (2, 2), (2, 2, 2)])
def test_the_time_limit_holds(shape):
    table = xr.DataArray(np.ones(shape, dtype=int), dims=list("abc"[: len(shape)]))
    with pytest.raises(
        PerturbationError, match="time limit of 1e-09 seconds was over after 0 of 3 replicates"
    ):
        tc.controlled_round(table, replicates=3, time_limit=1e-9)


def test_the_time_limit_holds_inside_the_integer_program():
    table = xr.DataArray(np.random.default_rng(0).poisson(2, (40, 40, 40)), dims=("a", "b", "c"))
    with pytest.raises(PerturbationError, match="was over after 0 of 1 replicates"):
        tc.controlled_round(
            table, margins=list(combinations("abc", 2)), random_seed=1, time_limit=0.3
        )


CUBE = xr.DataArray(np.ones((2, 2, 2), dtype=int), dims=("a", "b", "c"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rounding_base": 1}, r"rounding_base must be a whole number from 2 to 2\*\*53, got 1"),
        ({"rounding_base": 2**60}, r"rounding_base must be a whole number from 2 to 2\*\*53"),
        ({"replicates": 0}, "replicates must be a whole number of at least 1, got 0"),
        ({"time_limit": 0}, "time_limit must be a finite number above 0, got 0"),
        ({"time_limit": float("nan")}, "time_limit must be a finite number above 0, got nan"),
        ({"margins": "a"}, r"must be a sequence of margins, such as \['a'\], got 'a'"),
        (
            {"margins": ["d"]},
            r"must name variables of the table, \('a', 'b', 'c'\), each once; got \('d',\)",
        ),
        ({"margins": [("a", "a")]}, r"each once; got \('a', 'a'\)"),
        ({"random_seed": -1}, "random_seed must be"),
    ],
    ids=str,
)
def test_bad_arguments(options, message):
    with pytest.raises(ParameterError, match=message):
        tc.controlled_round(CUBE, **options)


def test_margins_are_for_three_variables():
    with pytest.raises(
        ParameterError, match=r"for three or more variables, the table has \('a', 'b'\)"
    ):
        tc.controlled_round(CUBE[0].rename({"b": "a", "c": "b"}), margins=["a"])


def test_totals_beyond_double_precision():
    with pytest.raises(TableError, match=r"grand total must be at most 2\*\*53"):
        tc.controlled_round(xr.DataArray([2**53, 2**53], dims="a"))
