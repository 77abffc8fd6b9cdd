"""Tables with negative values, of which nothing is known but sums and what is said."""

from itertools import product

import numpy as np
import pytest
import xarray as xr
from scipy.optimize import Bounds, LinearConstraint, milp

import taciturn as tc
from patterns import seeds
from taciturn.errors import ParameterError, TableError

FAR = 10_000


def signed_table(generator, shape):
    return xr.DataArray(
        generator.integers(-20, 20, shape), dims=[f"v{axis}" for axis in range(len(shape))]
    )


def equations(shape, margins):
    """Which cells of the table are in each total, by the margins as axes."""
    rows = []
    for axes in margins:
        for labels in product(*(range(shape[axis]) for axis in axes)):
            at = [slice(None)] * len(shape)
            for axis, label in zip(axes, labels, strict=True):
                at[axis] = label
            row = np.zeros(shape)
            row[tuple(at)] = 1
            rows.append(row.ravel())
    return np.array(rows)


@pytest.mark.parametrize("seed", seeds(6, 60))
def test_a_cell_is_worked_out_or_can_hold_anything(seed):
    """It is worked out if knowing it as well gives no further equation."""
    generator = np.random.default_rng(seed)
    shape = [(4, 4), (3, 3, 2)][seed % 2]
    table = signed_table(generator, shape)
    table[(0,) * len(shape)] = -5
    hidden = table.copy(data=generator.random(shape) < 0.6)
    bounds = tc.attacker_bounds(tc.Suppression(table, hidden), progressbar=False)
    margins = [[axis for axis in range(len(shape)) if axis != out] for out in range(len(shape))]
    unknown = np.flatnonzero(hidden.values)
    known_sums = equations(shape, margins)[:, unknown]
    rank = np.linalg.matrix_rank(known_sums)
    for column, cell in enumerate(unknown):
        at = np.unravel_index(cell, shape)
        low, high = float(bounds["lower"].values[at]), float(bounds["upper"].values[at])
        own = np.eye(len(unknown))[column]
        if np.linalg.matrix_rank(np.vstack([known_sums, own])) == rank:
            assert low == high == table.values[at]
        else:
            assert (low, high) == (-np.inf, np.inf)


@pytest.mark.parametrize("seed", seeds(4, 60))
def test_what_is_known_of_some_cells_limits_others_as_far_as_it_does(seed):
    """Integer programs within bounds that are far away."""
    generator = np.random.default_rng(seed)
    table = signed_table(generator, (4, 3))
    table[0, 0] = -5
    hidden = table.copy(data=generator.random((4, 3)) < 0.7)
    told = generator.random((2, 4, 3)) < 0.5
    lower = np.where(told[0], table - generator.integers(0, 9, (4, 3)), -np.inf)
    upper = np.where(told[1], table + generator.integers(0, 9, (4, 3)), np.inf)
    ranges = xr.Dataset({"lower": table.copy(data=lower), "upper": table.copy(data=upper)})
    found = tc.attacker_bounds(tc.Suppression(table, hidden), knowledge=ranges, progressbar=False)
    low = np.where(hidden, np.maximum(lower, -FAR), table).ravel()
    high = np.where(hidden, np.minimum(upper, FAR), table).ravel()
    sums = equations((4, 3), [[0], [1]])
    for cell in np.flatnonzero(hidden.values):
        for sign, side in ((1, "lower"), (-1, "upper")):
            costs = np.zeros(table.size)
            costs[cell] = sign
            solved = milp(
                costs,
                integrality=np.ones(table.size),
                bounds=Bounds(low, high),
                constraints=LinearConstraint(
                    sums, sums @ table.values.ravel(), sums @ table.values.ravel()
                ),
            )
            assert solved.status == 0
            end = sign * round(solved.fun)
            shown = float(found[side].values.ravel()[cell])
            assert shown == (end if abs(end) < FAR / 10 else -sign * np.inf)


@pytest.mark.parametrize("seed", seeds(12, 200))
def test_one_side_that_is_known_limits_sums_as_far_as_it_does(seed):
    """Of cells and of the grand total, with some totals published; cells, rows and the
    grand total, by integer programs within bounds that are far away.
    """
    generator = np.random.default_rng(seed)
    table = signed_table(generator, (3, 2))
    table[0, 0] = -5
    published = [False, [()], ["v0"]][seed % 3]
    sums = equations((3, 2), {0: [], 1: [[]], 2: [[0]]}[seed % 3]).reshape(-1, 6)
    values = table.values.ravel()

    def told(true, size):
        side = generator.integers(0, 3, size)  # nothing, the lower end, the upper end
        far = generator.integers(0, 9, size)
        return np.where(side == 1, true - far, -np.inf), np.where(side == 2, true + far, np.inf)

    low, high = told(values, 6)
    total = told(values.sum(), ())
    cells = {"lower": low.reshape(3, 2), "upper": high.reshape(3, 2)}
    knowledge = {
        ("v0", "v1"): xr.Dataset({end: (("v0", "v1"), own) for end, own in cells.items()}),
        (): xr.Dataset({"lower": ((), total[0]), "upper": ((), total[1])}),
    }
    release = tc.Suppression(table, xr.ones_like(table, dtype=bool), totals=published)
    limits = [LinearConstraint(np.ones((1, 6)), *np.clip(total, -FAR, FAR))]
    if len(sums):
        limits.append(LinearConstraint(sums, sums @ values, sums @ values))
    for margin in (("v0", "v1"), ("v0",), ()):
        found = tc.attacker_bounds(release, margin=margin, knowledge=knowledge, progressbar=False)
        asked = equations((3, 2), [[int(name[1]) for name in margin]])
        for number, row in enumerate(asked):
            for sign, side in ((1, "lower"), (-1, "upper")):
                solved = milp(
                    sign * row,
                    integrality=np.ones(6),
                    bounds=Bounds(np.maximum(low, -FAR), np.minimum(high, FAR)),
                    constraints=limits,
                )
                assert solved.status == 0
                end = sign * round(solved.fun)
                shown = float(np.ravel(found[side].values)[number])
                assert shown == (end if abs(end) < FAR / 10 else -sign * np.inf), (margin, side)


def test_ranges_below_0_of_a_table_with_nothing_unknown():
    table = xr.DataArray([-3, 5], dims="a")
    release = tc.Suppression(table, xr.zeros_like(table, dtype=bool))
    knowledge = xr.Dataset({"lower": ("a", [-5.0, 0.0]), "upper": ("a", [0.0, 9.0])})
    found = tc.attacker_bounds(release, knowledge=knowledge, progressbar=False)
    assert found["lower"].values.tolist() == found["upper"].values.tolist() == [-3, 5]
    with pytest.raises(ParameterError, match="contributions is for tables without negative"):
        tc.attacker_bounds(release, knowledge={(0,): 1}, progressbar=False)


def test_totals_that_are_not_released_have_no_bounds_unless_they_follow():
    table = xr.DataArray([[5, -3], [2, 7]], dims=["a", "b"])
    linked = tc.LinkedTables(table.expand_dims(c=2), [("a", "b")])
    bounds = tc.attacker_bounds(linked, margin=("a", "c"), progressbar=False)
    assert np.isneginf(bounds["lower"]).all()
    assert np.isposinf(bounds["upper"]).all()
    rows = tc.attacker_bounds(linked, margin="a", progressbar=False)
    assert rows["lower"].values.tolist() == rows["upper"].values.tolist() == [4, 18]


def test_large_values_stay_exact():
    """A step in 2**52, and the sums of sizes at most 2**53."""
    large = 2**51
    table = xr.DataArray([[large, -large], [-large + 1, large]], dims=["a", "b"])
    hidden = table.copy(data=[[True, True], [False, False]])
    release = tc.LinkedTables(table, [("a", "b"), "a", "b"], suppressed={("a", "b"): hidden})
    bounds = tc.attacker_bounds(release, progressbar=False)
    assert (
        bounds["lower"].values.tolist() == bounds["upper"].values.tolist() == table.values.tolist()
    )
    with pytest.raises(TableError, match=r"at most 2\*\*53"):
        tc.Suppression(table * 4, hidden)


def test_a_table_without_negative_values_is_known_to_be_at_least_0():
    table = xr.DataArray([[5, 3], [2, 7]], dims=["a", "b"])
    bounds = tc.attacker_bounds(tc.Suppression(table, table > 0), progressbar=False)
    assert (bounds["lower"] >= 0).all()


def test_what_is_for_counts_refuses_negative_values():
    table = xr.DataArray([[5, -3], [2, 7]], dims=["a", "b"])
    release = tc.Suppression(table, table < 100)
    with pytest.raises(ParameterError, match="tables without negative values"):
        tc.attacker_posterior(release, progressbar=False)
    with pytest.raises(ParameterError, match="contributions is for tables without negative"):
        tc.attacker_bounds(release, knowledge={(0, 0): 1}, progressbar=False)
    with pytest.raises(TableError, match="not be negative"):
        tc.Rounding(table, 5)
    with pytest.raises(TableError, match="not be missing: a=0, b=1"):
        tc.Suppression(table.astype(float).where(table > -1), table < 100)
