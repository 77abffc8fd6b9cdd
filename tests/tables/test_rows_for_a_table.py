"""Rows where a table is expected: the message says what makes a table of them."""

from pathlib import Path

import pandas as pd
import polars as pl
import pytest

import taciturn as tc
from taciturn.errors import TableError

ROWS = {"area": ["A", "A", "B"], "sex": ["f", "m", "f"]}
TABLE = tc.tabulate(pd.DataFrame(ROWS), ["area", "sex"])
GIVEN = {
    "pandas": pd.DataFrame(ROWS),
    "polars": pl.DataFrame(ROWS),
    "arrow": pl.DataFrame(ROWS).to_arrow(),
    "series": pd.DataFrame(ROWS).groupby("area").size(),
    "name": "people.csv",
    "path": Path("people.csv"),
}
CALLS = {
    **{
        f"fit of {name}": lambda rows, cls=cls: cls().fit(rows, population_size=10)
        for name, cls in tc.estimators.ESTIMATORS.items()
    },
    "disclosure_risk": lambda rows: tc.disclosure_risk(rows),
    "released": lambda rows: tc.disclosure_risk(TABLE, rows),
    "known_margins": lambda rows: tc.LogLinear().fit(TABLE, population_size=10, known_margins=rows),
    "entropy": lambda rows: tc.information.entropy(rows),
    "margin": lambda rows: tc.margin(rows, "area"),
    "draw_sample": lambda rows: tc.draw_sample(rows, fraction=0.1),
    "random_round": lambda rows: tc.random_round(rows),
    "risk_utility": lambda rows: tc.risk_utility({"as it is": TABLE}, table=rows),
    "suppress": lambda rows: tc.suppress(rows, TABLE > 0),
    "Suppression": lambda rows: tc.Suppression(rows, TABLE > 0),
}


@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("call", CALLS)
def test_the_message_says_tabulate(call, given):
    message = (
        r"must be an xarray.DataArray, got \w+: tc\.tabulate\(records, variables\) .*read_table"
    )
    with pytest.raises(TableError, match=message):
        CALLS[call](GIVEN[given])


@pytest.mark.parametrize("given", [7, None, [1, 2]])
def test_of_other_things_none_can_be_made(given):
    with pytest.raises(TableError, match=r"must be an xarray.DataArray, got \w+$"):
        tc.disclosure_risk(given)
