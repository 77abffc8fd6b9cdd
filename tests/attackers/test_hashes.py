"""An attacker who tries all small tables on the hash of one."""

from itertools import combinations

import numpy as np
import pytest
import xarray as xr

import taciturn as tc
from taciturn.cards import table_hash

PEOPLE = 5
TABLE = xr.DataArray(
    [[2, 1, 0], [0, 1, 1]],
    dims=("area", "religion"),
    coords={"area": ["A", "B"], "religion": ["x", "y", "z"]},
    name="count",
)
TEXTS = {
    "citation": "made up",
    "calibration": "A plug-in estimator has no prior.",
    "command": "by hand",
}


def tables_with(digest: str) -> list[list[int]]:
    """All tables of these people with this hash."""
    found = []
    for bars in combinations(range(PEOPLE + TABLE.size - 1), TABLE.size - 1):
        counts = np.diff([-1, *bars, PEOPLE + TABLE.size - 1]) - 1
        if table_hash(TABLE.copy(data=counts.reshape(TABLE.shape))) == digest:
            found.append(counts.tolist())
    return found


@pytest.fixture
def card(tmp_path):
    def write(**public):
        file = tmp_path / "own.csv"
        TABLE.to_series().to_csv(file)
        fits = [
            tc.PolyaUrn(theta=2.0).fit(
                tc.read_table(file), population_size=60, draws=d, random_seed=d
            )
            for d in (300, 600)
        ]
        path = tmp_path / "card.toml"
        tc.cards.write_card(path, fits[0], reference=fits[1], table=file, **TEXTS, **public)
        return tc.cards.load_card(path)

    return write


def test_a_hash_gives_a_small_table_away(card):
    """Which is why a card has one only if the table is said to be public."""
    assert tables_with(card(public=True).table.hash) == [TABLE.values.ravel().tolist()]


def test_a_card_has_no_hash_of_a_table_that_is_not_public(card):
    described = card().table
    assert (described.hash, described.sample_hash) == (None, None)
