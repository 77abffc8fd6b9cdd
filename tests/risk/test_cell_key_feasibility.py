"""Feasibility of the cell-key method: all keys of a short line, the solver, and what is
certain."""

from itertools import product

import numpy as np
import pytest
import xarray as xr

import taciturn as tc
from taciturn.errors import ParameterError, TableError
from taciturn.tables.transitions import check_perturbation_table, perturbed_counts

feasibility = tc.risk.cell_key_feasibility

# Probabilities are quarters, so that keys count by the quarter they are in.
QUARTERS = xr.DataArray(
    [[1, 0, 0, 0], [0.25, 0.5, 0.25, 0], [0, 0.25, 0.5, 0.25]],
    coords={"original": [0, 1, 2], "perturbed": [0, 1, 2, 3]},
    dims=("original", "perturbed"),
)


def outcome(count, quarter):
    """The perturbed count of a key in a quarter."""
    return count + [-1, 0, 0, 1][quarter] if count else 0


def behind(released):
    """All counts that give a released one."""
    return {count for count in range(80) for key in range(4) if outcome(count, key) == released}


def summed(keys, table):
    """Quarters in which the sum of the keys of two cells falls, equally likely."""
    return [sum(keys) % 4, (sum(keys) + all(table)) % 4]


def independent(keys, table):
    return range(4)


def expected_by_enumeration(table, total_keys=summed):
    """Two cells and their total: every pair of quarters, and those of the total; then
    every pair of counts and total that give what is released."""
    disclosed = alone = values = 0.0
    cases = 0
    for quarters in product(range(4), repeat=2):
        keys = [quarter if count else 0 for quarter, count in zip(quarters, table, strict=True)]
        for total_key in total_keys(keys, table):
            found = after_release(table, keys, total_key)
            disclosed, alone, values = np.add((disclosed, alone, values), found)
            cases += 1
    return np.array([disclosed, alone, values]) / cases


def after_release(table, keys, total_key):
    """Shares and mean number of values for given quarters."""
    sets = [behind(outcome(count, key)) for count, key in zip(table, keys, strict=True)]
    totals = behind(outcome(sum(table), total_key))
    compatible = [pair for pair in product(*sets) if sum(pair) in totals]
    left = [{pair[cell] for pair in compatible} for cell in range(2)]
    return (
        np.mean([len(each) == 1 for each in left]),
        np.mean([len(each) == 1 for each in sets]),
        np.mean([max(each) - min(each) + 1 for each in left]),
    )


@pytest.mark.parametrize("table", [(1, 0), (1, 1), (1, 2), (3, 1), (4, 3), (0, 5)])
def test_all_keys_of_two_cells(table):
    replicates = 20_000
    found = feasibility(
        xr.DataArray(list(table), dims="x"),
        perturbation=QUARTERS,
        replicates=replicates,
        random_seed=1,
    )
    for name, expected in zip(found, expected_by_enumeration(table), strict=True):
        values = found[name].values
        error = 5 * values.std() / np.sqrt(replicates)  # 6e-7 in either tail
        assert abs(values.mean() - expected) <= error + 1e-12, name


def released_with_totals(table, perturbation, seed):
    """What the function draws from a seed, in the order of its draws."""
    cumulated, columns = check_perturbation_table(perturbation)
    keys = np.random.default_rng(seed).random((1, *table.shape))[0] * (table.values > 0)
    inner = table.copy(data=perturbed_counts(table.values, keys, cumulated, columns))
    totals = []
    for axis, dim in enumerate(table.dims):
        total = table.sum(dim)
        key = keys.sum(axis=axis) % 1
        totals.append(total.copy(data=perturbed_counts(total.values, key, cumulated, columns)))
    return inner, totals


@pytest.mark.parametrize("seed", range(6))
def test_the_solver_finds_no_less(seed):
    """All totals together can say more than each by itself, along one variable the
    same."""
    noise = tc.perturbation.perturbation_table(1, 0.5)
    mechanism = tc.attack.CellKeys(noise)
    for table in (
        xr.DataArray(np.random.default_rng(seed).poisson(1.5, (3, 3)), dims=("a", "b")),
        xr.DataArray(np.random.default_rng(seed).poisson(4, 4), dims="a"),
    ):
        found = feasibility(table, perturbation=noise, random_seed=seed).isel(replicate=0)
        inner, totals = released_with_totals(table, noise, seed)
        release = tc.attack.Perturbed(inner, mechanism, totals=totals, same_key=False)
        bounds = tc.attacker_bounds(release, progressbar=False)
        share, values = float(bounds["disclosed"].mean()), float(bounds["n_values"].mean())
        assert float(found["disclosed"]) <= share
        assert float(found["n_values"]) >= values - 1e-12
        if table.ndim == 1:
            assert (float(found["disclosed"]), float(found["n_values"])) == (share, values)


def test_without_noise_all_is_known():
    none = xr.DataArray(
        np.eye(3), coords={"original": range(3), "perturbed": range(3)}, dims=QUARTERS.dims
    )
    found = feasibility(tc.load_dataset("area_by_sex"), perturbation=none)
    assert [float(found[name][0]) for name in found] == [1, 1, 1]


def test_noise_of_totals_is_not_independent():
    """The largest noise in two cells and the smallest in their total would disclose
    both."""
    table = (40, 30)
    assert expected_by_enumeration(table, independent)[0] == 2 / 64
    assert expected_by_enumeration(table)[0] == 0
    noise = tc.perturbation.perturbation_table(1, 0.5)  # the same probabilities, above 1
    found = feasibility(
        tc.load_dataset("area_by_sex"), perturbation=noise, replicates=500, random_seed=1
    )
    assert not found["disclosed"].any()


def test_draws_keep_their_dimensions():
    table = tc.load_dataset("area_by_religion")
    draws = table.expand_dims(chain=2, draw=[5, 6, 7]) + xr.DataArray([0, 1, 2], dims="draw")
    noise = tc.perturbation.perturbation_table(2, 1)
    options = {"perturbation": noise, "replicates": 4, "random_seed": 1}
    found = feasibility(draws, **options)
    assert dict(found.sizes) == {"chain": 2, "draw": 3, "replicate": 4}
    assert found["draw"].values.tolist() == [5, 6, 7]
    assert (found["disclosed_alone"] <= found["disclosed"]).all()
    assert (found["n_values"] >= 1).all()
    pytest.importorskip("dask")
    turned = draws.transpose("religion", "draw", "area", "chain").chunk()
    assert dict(feasibility(turned, **options).sizes) == {"draw": 3, "chain": 2, "replicate": 4}


def test_bad_input():
    table = xr.DataArray([1, 2], dims="x")
    with pytest.raises(TableError, match="has the dimension 'replicate'"):
        feasibility(table.expand_dims(replicate=2), perturbation=QUARTERS)
    with pytest.raises(ParameterError, match="replicates must be"):
        feasibility(table, perturbation=QUARTERS, replicates=0)
    with pytest.raises(ParameterError, match="perturbation must be a DataArray"):
        feasibility(table, perturbation=[[1]])
    with pytest.raises(TableError, match=r"must be an xarray\.DataArray"):
        feasibility([1, 2], perturbation=QUARTERS)
