"""What an attacker knows of a table after record swapping between two areas: linked
tables of the moves, against every table and every choice of records."""

from collections import Counter
from itertools import combinations, permutations, product
from math import comb, factorial, log2

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


def test_given_the_numbers_of_moves_all_choices_are_equally_likely_in_three_areas():
    # Three pairs among areas of three, three and two. How many move between each two is
    # taken as it is drawn; who moves must then be any choice of so many.
    people = pd.DataFrame({"area": list("AAABBBCC"), "kind": list("xxyyzzxz")})
    kinds = [people["kind"][people["area"] == area].tolist() for area in "ABC"]
    swaps = tc.swap_records(people, geography="area", rate=0.75, replicates=20_000, random_seed=2)
    area = people["area"].map("ABC".index).to_numpy()
    after = area[swaps["partner"].values]
    numbers = Counter(tuple(np.bincount(3 * area + row, minlength=9).tolist()) for row in after)
    assert len(numbers) > 2
    law = Counter()
    for flows, times in numbers.items():
        choices = []
        for of_area, sizes in zip(kinds, np.reshape(flows, (3, 3)), strict=True):
            places = Counter(permutations(np.repeat(range(3), sizes).tolist()))
            choices.append(
                [
                    (Counter(zip(of_area, places_, strict=True)), count / factorial(len(of_area)))
                    for places_, count in places.items()
                ]
            )
        for chosen in product(*choices):
            shown = sum((moves for moves, _ in chosen), Counter())
            table = tuple(shown[kind, to] for to in range(3) for kind in LABELS)
            law[*flows, *table] += times / 20_000 * np.prod([share for _, share in chosen])
    tables = tc.perturbation.swapped_table(people, swaps, ["area", "kind"]).values
    flows = np.array([np.bincount(3 * area + row, minlength=9) for row in after])
    drawn = np.concatenate([flows, tables.reshape(len(tables), -1)], axis=1)
    assert_same_distribution(drawn, dict(law))


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
