"""Small cell adjustment and threshold suppression."""

from fractions import Fraction

import numpy as np
import pytest
import xarray as xr

import taciturn as tc
from perturbed import assert_follows, assert_unbiased, product_pmf
from taciturn.errors import ParameterError, TableError


@pytest.mark.parametrize(
    ("counts", "minimum"), [([0, 1, 2, 3, 4], 3), ([1, 2, 3, 4, 5, 0], 5), ([1, 2, 1], 2)]
)
def test_adjusted_cells_follow_their_exact_distribution(counts, minimum):
    share = [Fraction(count, minimum) for count in counts]
    cells = [
        {minimum: p, 0: 1 - p} if 0 < p < 1 else {count: Fraction(1)}
        for count, p in zip(counts, share, strict=True)
    ]
    pmf = product_pmf(cells)
    assert_unbiased(pmf, counts)
    table = xr.DataArray(counts, dims="x")
    assert_follows(
        tc.perturbation.adjust_small_cells(
            table, minimum=minimum, replicates=20_000, random_seed=7
        ),
        pmf,
    )


def test_suppressed_cells_are_the_small_ones():
    table = xr.DataArray([[0, 1, 4], [5, 9, 2]], dims=("a", "b"), coords={"a": ["x", "y"]})
    released = tc.perturbation.suppress_small_cells(table, minimum=5)
    assert released.dims == ("replicate", "a", "b")
    assert released.values.tolist() == [[[0, 1, 1], [5, 9, 1]]]
    small = tc.perturbation.small_cells(table, minimum=5)
    assert small.values.tolist() == [[False, True, True], [False, False, True]]
    assert small.a.values.tolist() == ["x", "y"]
    assert (released.isel(replicate=0).values == np.where(small, 1, table)).all()


def test_a_margin_of_suppressed_cells_is_missing():
    """It was published as if these were zeros."""
    table = xr.DataArray([[0, 2, 30], [5, 3, 7]], dims=("a", "b"))
    released = tc.perturbation.suppress_small_cells(table, minimum=3)
    by_a = tc.margin(released, "a")
    np.testing.assert_array_equal(by_a.values, [[np.nan, 15]])
    assert "suppressed" not in by_a.coords
    kept = tc.margin(tc.perturbation.suppress_small_cells(table + 9, minimum=3), "a")
    assert kept.dtype == np.int64
    level = table.assign_coords(suppressed=("b", ["x", "y", "y"]))
    assert tc.margin(level, "a").values.tolist() == [32, 15]
    named = table.rename(b="suppressed")
    assert tc.margin(named, "a").values.tolist() == [32, 15]


def _suppressed() -> xr.DataArray:
    table = xr.DataArray([[4, 1], [8, 6]], dims=("a", "b"), coords={"a": [0, 1], "b": [0, 1]})
    return tc.perturbation.suppress_small_cells(table, minimum=3)[0]


@pytest.mark.parametrize(
    "use",
    [
        lambda table: tc.Rounding(table, 3, method="random"),
        lambda table: tc.attack.Perturbed(table, tc.attack.RandomRounding(3)),
        lambda table: tc.Suppression(table, table == 0),
        lambda table: tc.perturbation.conventional_round(table, rounding_base=3),
        lambda table: tc.random_round(table, rounding_base=3),
        lambda table: tc.perturbation.adjust_small_cells(table, minimum=3),
        lambda table: tc.controlled_round(table, rounding_base=3),
        lambda table: tc.add_noise(table, epsilon=1),
        lambda table: tc.LogLinear().fit(table, population_size=100),
        lambda table: tc.draw_sample(table, fraction=0.5),
        lambda table: tc.assess_many(table, population_size=100, over="a"),
        lambda table: tc.assess_many(table.chunk(a=1), population_size=100, over="a"),
    ],
)
def test_suppressed_cells_are_not_taken_for_counts(use):
    with pytest.raises(TableError, match="marks as suppressed: give"):
        tc.attacker_bounds(use(_suppressed()), progressbar=False)


@pytest.mark.parametrize(
    "use",
    [
        lambda table: tc.disclosure_risk(table),
        lambda table: tc.disclosure_risk(table, table.drop_vars("suppressed")),
        lambda table: tc.information_loss(table, table.drop_vars("suppressed")),
        lambda table: tc.risk_utility(
            {"a": table}, table=table.drop_vars("suppressed"), population=table
        ),
    ],
)
def test_suppressed_cells_are_no_counts_of_the_table_that_is_measured(use):
    with pytest.raises(TableError, match="marks as suppressed: give"):
        use(_suppressed())


def test_marks_are_known_whatever_xarray_makes_of_them(tmp_path):
    table = _suppressed()
    several = xr.concat([table, table], "c").assign_coords(c=[0, 1])
    for changed in (table.reindex(a=[0, 1, 2]).fillna(0).astype(int), several):
        with pytest.raises(TableError, match="marks as suppressed: give"):
            tc.random_round(changed, rounding_base=3)
        assert bool(tc.margin(changed, ["a"]).isnull().any())
    tc.write_release(table.reindex(a=[0, 1, 2]).fillna(0).astype(int), tmp_path / "t.csv")
    assert "0,1,,suppressed" in (tmp_path / "t.csv").read_text()


def test_marks_of_nothing_are_no_obstacle():
    table = xr.DataArray([3, 4], dims="a")
    released = tc.perturbation.suppress_small_cells(table, minimum=2)[0]
    assert tc.perturbation.conventional_round(released, rounding_base=3).values.tolist() == [[3, 3]]


def test_a_lower_minimum_suppresses_less():
    religion = tc.load_dataset("area_by_religion")
    numbers = [int(tc.perturbation.small_cells(religion, minimum=t).sum()) for t in (2, 3, 5, 10)]
    assert numbers == sorted(numbers)
    assert numbers[0] == int((religion == 1).sum())


def test_a_million_cells():
    table = xr.DataArray(np.random.default_rng(1).poisson(2, (1000, 1000)), dims=("a", "b"))
    adjusted = tc.perturbation.adjust_small_cells(table, random_seed=1)
    assert not bool(
        tc.perturbation.small_cells(adjusted.isel(replicate=0, drop=True), minimum=3).any()
    )
    assert bool(
        tc.perturbation.small_cells(
            tc.perturbation.suppress_small_cells(table, minimum=3)[0].drop_vars(
                ["replicate", "suppressed"]
            ),
            minimum=2,
        ).sum()
        == (table < 3).sum() - (table == 0).sum()
    )


@pytest.mark.parametrize(
    "function",
    [
        tc.perturbation.adjust_small_cells,
        tc.perturbation.suppress_small_cells,
        tc.perturbation.small_cells,
    ],
)
@pytest.mark.parametrize("minimum", [1, 0, 2.5, True, "3"])
def test_bad_minimum(function, minimum):
    with pytest.raises(
        ParameterError,
        match=rf"minimum must be a whole number from 2 to 2\*\*53, got {minimum!r}",
    ):
        function(xr.DataArray([1, 2], dims="x"), minimum=minimum)


def test_bad_replicates():
    with pytest.raises(ParameterError, match="at least 1, got 0"):
        tc.perturbation.adjust_small_cells(xr.DataArray([1, 2], dims="x"), replicates=0)
