"""The risk of a magnitude table, and the misprint of its formula."""

from math import log

import pandas as pd
import pytest
import xarray as xr

import taciturn as tc
from taciturn.errors import ParameterError, TableError


def table_of(*cells: list[int], columns: int = 1) -> xr.Dataset:
    rows = [(i // columns, i % columns, x) for i, cell in enumerate(cells) for x in cell]
    frame = pd.DataFrame(rows, columns=["row", "column", "x"])
    categories = {"row": range(len(cells) // columns), "column": range(columns)}
    return tc.tabulate_magnitude(frame, ["row", "column"], "x", categories=categories)


def H(*counts: int) -> float:
    return -sum(c / sum(counts) * log(c / sum(counts)) for c in counts if c)


def test_risk_by_hand():
    # 3 and 2 contributors, n = 5, shares of the largest 6/10 and 3/4; the empty cell
    # counts nowhere.
    risk = tc.magnitude.magnitude_risk(table_of([6, 3, 1], [3, 1], []))
    share = (6 / 10 + 3 / 4) / 2
    assert risk["risk"].item() == pytest.approx((1 - H(3, 2) / log(5) + share) / 2, rel=1e-12)
    assert risk["entropy_term"].item() == pytest.approx(1 - H(3, 2) / log(5), rel=1e-12)
    assert risk["mean_share"].item() == pytest.approx(share, rel=1e-12)


def test_rows_and_columns():
    table = table_of([6, 3, 1], [3, 1], [9], [2, 2], columns=2)
    rows = tc.magnitude.magnitude_risk(table, dim="column")["risk"]
    assert rows.dims == ("row",)
    first = (1 - H(3, 2) / log(5) + (6 / 10 + 3 / 4) / 2) / 2
    second = (1 - H(1, 2) / log(3) + (1 + 1 / 2) / 2) / 2
    assert rows.values.tolist() == pytest.approx([first, second], rel=1e-12)
    both = tc.magnitude.magnitude_risk(table, dim=["row", "column"])
    assert both.identical(tc.magnitude.magnitude_risk(table))


def test_one_contributor_is_the_largest_risk():
    assert tc.magnitude.magnitude_risk(table_of([5]))["risk"].item() == 1
    assert tc.magnitude.magnitude_risk(table_of([5], [], []))["risk"].item() == 1
    assert (
        tc.magnitude.magnitude_risk(table_of([5]), variant="handbook")["risk"].item()
        == 1 - (0 + 1) / 2
    )


def test_many_equal_contributors_each_in_a_cell_of_its_own():
    # Every cell has one: H = log n, and all shares are 1.
    assert tc.magnitude.magnitude_risk(table_of([1], [1], [1]))["risk"].item() == pytest.approx(
        1 / 2, rel=1e-12
    )


def test_the_printed_formula_falls_when_one_dominates():
    # Two cells of four. Even: shares 1/4. Dominated: 97 of 100. H / log n = log 2 / log
    # 8 = 1/3 in both.
    even, dominated = table_of([25] * 4, [25] * 4), table_of([97, 1, 1, 1], [97, 1, 1, 1])
    risks = {
        variant: [
            tc.magnitude.magnitude_risk(table, variant=variant)["risk"].item()
            for table in (even, dominated)
        ]
        for variant in ("consistent", "handbook")
    }
    assert risks["consistent"] == pytest.approx(
        [(1 - 1 / 3 + 0.25) / 2, (1 - 1 / 3 + 0.97) / 2], rel=1e-12
    )
    assert risks["handbook"] == pytest.approx(
        [1 - (1 / 3 + 0.25) / 2, 1 - (1 / 3 + 0.97) / 2], rel=1e-12
    )
    assert risks["consistent"][0] < risks["consistent"][1]
    assert risks["handbook"][0] > risks["handbook"][1]


def test_cells_of_nothing_but_zeros_have_no_share():
    risk = tc.magnitude.magnitude_risk(table_of([6, 4], [0, 0]))
    assert risk["mean_share"].item() == 0.6
    assert risk["entropy_term"].item() == pytest.approx(1 - H(2, 2) / log(4), rel=1e-12)


def test_margins_and_the_grand_total():
    frame = pd.DataFrame({"a": ["p", "q"], "x": [3, 1]})
    tables = tc.magnitude.tabulate_margins(frame, "a", "x")
    assert tc.magnitude.magnitude_risk(tables[()])["risk"].item() == pytest.approx(
        (1 - 0 + 3 / 4) / 2, rel=1e-12
    )


def test_what_is_refused():
    table = table_of([6, 4], [], [0, 0], [5], columns=2)
    with pytest.raises(TableError, match="row=1 has only zeros"):
        tc.magnitude.magnitude_risk(table.isel(column=[0]), dim="column")
    with pytest.raises(TableError, match="column=1 has no contributor"):
        tc.magnitude.magnitude_risk(table.isel(row=[0]), dim="row")
    with pytest.raises(ParameterError, match="dim must name variables of the table"):
        tc.magnitude.magnitude_risk(table, dim="rank")
    with pytest.raises(ParameterError, match="dim must be names of variables, got 5"):
        tc.magnitude.magnitude_risk(table, dim=5)
    with pytest.raises(ParameterError, match="variant must be one of"):
        tc.magnitude.magnitude_risk(table, variant="2014")
    with pytest.raises(TableError, match="needs the largest contribution to each cell"):
        tc.magnitude.magnitude_risk(table.isel(rank=[]))
    with pytest.raises(TableError, match="must be a Dataset of tabulate_magnitude"):
        tc.magnitude.magnitude_risk(table["total"])
