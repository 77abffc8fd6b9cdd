"""Profits and changes: tables with negative values, protected and attacked."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import taciturn as tc
from patterns import seeds
from several import CHAIN, SIZES, Attacker, margins_of, projections
from taciturn.errors import ParameterError

OPTIONS = {"random_seed": 1, "progressbar": False, "time_limit": 60}
FAR = 100_000


def profits(seed, variables):
    generator = np.random.default_rng(seed)
    shape = [SIZES[name] for name in variables]
    values = generator.integers(-30, 31, shape)
    values.flat[0] = -7
    coords = {name: range(SIZES[name]) for name in variables}
    return xr.DataArray(values, dims=list(variables), coords=coords)


def asked(table):
    """Small sizes are sensitive, and must be possible from as far below to as far above
    as 0 and twice their size."""
    found = {}
    for names, margin in margins_of(table).items():
        size = abs(margin)
        interval = xr.Dataset({"lower": margin - size - 3, "upper": margin + size + 3})
        found[names] = (size < 12), interval
    primary, protection = ({names: each[i] for names, each in found.items()} for i in (0, 1))
    return primary, protection


def check(attacker, patterns, tables):
    some = False
    for name, pattern in patterns.items():
        primary, protection = asked(tables[name])
        for names, mask in primary.items():
            for at in np.argwhere(mask.values).tolist():
                low, high = attacker.ends(attacker.cell(names, at))
                interval = protection[names].isel(dict(zip(names, at, strict=True)))
                assert low <= interval["lower"]
                assert high >= interval["upper"]
                bounds = pattern.audit[names].isel(dict(zip(names, at, strict=True)))
                assert bounds["lower"] == (low if low > -FAR / 100 else -np.inf)
                assert bounds["upper"] == (high if high < FAR / 100 else np.inf)
                some = True
    assert some


@pytest.mark.parametrize("seed", seeds(4, 40))
def test_sensitive_cells_of_a_table_may_be_as_low_and_as_high_as_asked(seed):
    table = profits(seed, ["ab", "abc"][seed % 2])
    primary, protection = asked(table)
    pattern = tc.suppress(table, primary, linked=list(primary), protection=protection, **OPTIONS)
    names = tuple(table.dims)
    attacker = Attacker({"all": pattern.tables}, {"all": names}, FAR, -FAR)
    check(attacker, {"all": pattern}, {"all": table})


@pytest.mark.parametrize("seed", seeds(2, 30))
def test_so_may_those_of_several_tables(seed):
    tables = projections(profits(seed, "abcd"), CHAIN)
    given = {name: asked(table) for name, table in tables.items()}
    found = tc.suppression.suppress_tables(
        tables,
        {name: primary for name, (primary, _) in given.items()},
        protection={name: protection for name, (_, protection) in given.items()},
        **OPTIONS,
    )
    published = {name: pattern.tables for name, pattern in found.items()}
    attacker = Attacker(published, dict(zip(tables, CHAIN, strict=True)), FAR, -FAR)
    check(attacker, found, tables)


def test_no_pattern_that_protects_is_cheaper():
    """Enumeration: a primary cell is open if the pattern has a cycle through it, as a
    cell without bounds is worked out or can hold anything."""
    table = profits(3, "ab")
    primary = table.copy(data=np.zeros((3, 3), dtype=bool))
    primary[1, 1] = primary[0, 2] = True
    pattern = tc.suppress(table, primary, **OPTIONS)
    sums = np.vstack([np.kron(np.eye(3), np.ones(3)), np.kron(np.ones(3), np.eye(3))])
    costs = 1 + abs(table).values.ravel()
    least = np.inf
    for chosen in product([False, True], repeat=9):
        hidden = np.array(chosen) | primary.values.ravel()
        left = sums[:, hidden]
        own = np.eye(9)[primary.values.ravel()][:, hidden]
        ranks = [np.linalg.matrix_rank(np.vstack([left, row])) for row in own]
        if min(ranks) > np.linalg.matrix_rank(left):
            least = min(least, costs[hidden & ~primary.values.ravel()].sum())
    assert pattern.cost == least
    assert pattern.gap == 0


def test_knowledge_gives_cells_their_bounds():
    """The sensitive cell is known to be from -10 to 0, and all others to be at most
    100 in size."""
    table = xr.DataArray([[-5, 40, 20], [30, -20, 10], [15, 25, 35]], dims=["a", "b"])
    near = table == -5
    ranges = xr.Dataset(
        {"lower": xr.where(near, -10.0, -100.0), "upper": xr.where(near, 0.0, 100.0)}
    )
    pattern = tc.suppress(
        table,
        near,
        knowledge=ranges,
        protection=xr.Dataset({"lower": table - 50, "upper": table + 50}),
        **OPTIONS,
    )
    bounds = pattern.audit["a", "b"]
    assert (float(bounds["lower"][0, 0]), float(bounds["upper"][0, 0])) == (-10, 0)
    pattern = tc.suppress(table, near, knowledge=(-np.inf, -1), **OPTIONS)
    bounds = pattern.audit["a", "b"]
    assert (float(bounds["lower"][0, 0]), float(bounds["upper"][0, 0])) == (-np.inf, -1)
    with pytest.raises(ParameterError, match="knowledge must hold for the true value"):
        tc.suppress(table, near, knowledge=(0, np.inf), **OPTIONS)


def firms():
    generator = np.random.default_rng(5)
    frame = pd.DataFrame(
        {
            "area": generator.choice(list("NSWE"), 80),
            "trade": generator.choice(["food", "wood", "metal"], 80),
            "profit": np.round(generator.normal(20, 60, 80), 1),
        }
    )
    return frame.assign(firm=np.arange(80))


def test_profits_of_records_are_protected_and_written(tmp_path):
    rules = tc.PPercent(30) | tc.magnitude.MinimumFrequency(4)
    done = tc.protect_table(
        firms(), ["area", "trade"], "profit", rules, contributor="firm", decimals=1, **OPTIONS
    )
    table = firms().groupby(["area", "trade"])["profit"].sum().round(1)
    assert (table < 0).any()
    assert done.pattern.n_primary
    true = done.pattern.release.true_table
    for ending in (".csv", ".parquet", ".json"):
        path = tmp_path / f"profits{ending}"
        tc.write_release(done, path)
        release = tc.publication.read_release(path, true, decimals=1)
        for names, hidden in done.pattern.release.unpublished_cells().items():
            assert release.unpublished_cells()[names].equals(hidden)
    path = tmp_path / "intervals.csv"
    tc.write_release(done, path, intervals=True)
    rows = pd.read_csv(path)
    assert rows.loc[rows["status"] == "suppressed", ["lower", "upper"]].isna().all(axis=None)
    tc.publication.read_release(path, true, decimals=1)


def test_a_posterior_of_what_is_possible_is_refused():
    table = profits(0, "ab")
    pattern = tc.suppress(table, abs(table) < 8, **OPTIONS)
    with pytest.raises(ParameterError, match="use attacker_bounds"):
        tc.attacker_posterior(pattern.release, progressbar=False)
