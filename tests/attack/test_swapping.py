"""What an attacker knows of a table after record swapping between two areas: linked
tables of the moves, against every table and every choice of records."""

from collections import Counter
from itertools import combinations, product
from math import comb, log2

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy.stats import poisson

import taciturn as tc
from exact import assert_same_distribution

LABELS = "xyz"
PEOPLE = pd.DataFrame({"area": list("AAABBB"), "kind": list("xxyyzz")})
"""Three records an area; two pairs are swapped."""
PAIRS = 2
RATE = 2 * PAIRS / len(PEOPLE)
MEANS = np.array([[1.0, 2.0, 0.5], [0.7, 1.5, 2.5]])
"""What the attacker expects, by area and kind."""


def moves_of(kinds):
    """Every way to choose the records that leave each area, as moves by area before,
    kind, and area after; all are equally likely."""
    chosen = [list(combinations(range(len(of_area)), PAIRS)) for of_area in kinds]
    for leaving in product(*chosen):
        moves = np.zeros((2, 3, 2), dtype=int)
        for area, (of_area, gone) in enumerate(zip(kinds, leaving, strict=True)):
            for record, kind in enumerate(of_area):
                moves[area, LABELS.index(kind), 1 - area if record in gone else area] += 1
        yield moves


def records_of(counts):
    return "".join(label * int(count) for label, count in zip(LABELS, counts, strict=True))


def test_all_choices_of_records_are_equally_likely():
    law = Counter()
    for moves in moves_of(["xxy", "yzz"]):
        law[tuple(moves.sum(axis=0).T.ravel().tolist())] += 1 / comb(3, PAIRS) ** 2
    swaps = tc.swap_records(PEOPLE, geography="area", rate=RATE, replicates=20_000, random_seed=1)
    assert (swaps["pairs"] == PAIRS).all()
    drawn = tc.perturbation.swapped_table(PEOPLE, swaps, ["area", "kind"])
    assert_same_distribution(drawn.values.reshape(20_000, -1), dict(law))


def test_the_posterior_is_that_of_linked_tables_of_the_moves():
    swaps = tc.swap_records(PEOPLE, geography="area", rate=RATE, random_seed=3)
    moved = tc.perturbation.swapping_joint(PEOPLE, swaps, ["area", "kind"])
    index = ["area", "kind", "area_released"]
    moves = moved.set_index(index)["count"].to_xarray().fillna(0).astype(int)
    known = [("kind", "area_released"), ("area", "area_released")]
    expected = xr.DataArray(
        np.repeat(MEANS[:, :, None], 2, axis=2), coords=moves.coords, dims=index
    )
    found = tc.attacker_posterior(
        tc.LinkedTables(moves, known), prior=expected, random_seed=1, progressbar=False
    )
    released = moves.values.sum(axis=0)
    weights = Counter()
    for table in product(range(4), repeat=6):
        true = np.reshape(table, (2, 3))
        if (true.sum(axis=1) != 3).any():
            continue
        likely = float(np.prod(poisson.pmf(true, MEANS))) / comb(3, PAIRS) ** 2
        for each in moves_of([records_of(counts) for counts in true]):
            if (each.sum(axis=0) == released).all():
                weights[tuple(each.ravel().tolist())] += likely
    tables = np.array(list(weights)).reshape(-1, 2, 3, 2)
    shares = np.array(list(weights.values())) / sum(weights.values())
    assert found["exact"].all()
    for cell in np.ndindex(moves.shape):
        law = np.bincount(tables[(slice(None), *cell)], weights=shares)
        assert float(found["entropy"].values[cell]) == pytest.approx(
            -sum(p * log2(p) for p in law if p > 0), abs=1e-12
        )
    # The true table is a margin of the moves, and its draws are those of the posterior.
    drawn = found["table"].sum("area_released").values.reshape(-1, 6)
    law = Counter()
    for table, share in zip(tables, shares.tolist(), strict=True):
        law[tuple(table.sum(axis=2).ravel().tolist())] += share
    assert_same_distribution(drawn, dict(law))
