"""Rows of totals are recognised and refused; categories that only sound so are read."""

from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hypothesis import assume, given, strategies as st

import taciturn as tc
from taciturn.errors import TableError

NAMES = st.sampled_from(
    [
        *("Total", "TOTAL", " total", "All", "all", "Gesamt", "Insgesamt", "SUMME", "Ensemble"),
        *("Totaal", "totale", "Razem", "Ogółem", "Összesen", "yhteensä", "ΣΎΝΟΛΟ", "Всего", "_T"),
        *("Total:", "(all)", "*Total*", "合計", "All usual residents", "All categories: Sex"),
        *("Both sexes", "Total persons", "Sub-total", "All people: aged 16 and over"),
    ]
)


@st.composite
def tables(draw: st.DrawFn) -> xr.DataArray:
    shape = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    size = int(np.prod(shape))
    counts = draw(st.lists(st.integers(0, 9), min_size=size, max_size=size))
    assume(any(counts))
    dims = [f"v{i}" for i in range(len(shape))]
    coords = {dim: [f"c{at}" for at in range(n)] for dim, n in zip(dims, shape, strict=True)}
    return xr.DataArray(np.reshape(counts, shape), dims=dims, coords=coords, name="count")


def rows_of(table: xr.DataArray) -> pd.DataFrame:
    return table.to_dataframe().reset_index()


def totals_of(table: xr.DataArray, over: tuple[str, ...], name: str) -> pd.DataFrame:
    """Rows of the totals over some variables."""
    totals = table.sum(over)
    rows = rows_of(totals) if totals.ndim else pd.DataFrame({"count": [int(totals)]})
    return rows.assign(**dict.fromkeys(over, name))


@given(tables(), NAMES, st.data())
def test_totals_over_any_variables_are_refused(table, name, data):
    subsets = [s for n in range(1, table.ndim + 1) for s in combinations(table.dims, n)]
    chosen = data.draw(st.lists(st.sampled_from(subsets), min_size=1, unique=True))
    rows = pd.concat([rows_of(table), *(totals_of(table, over, name) for over in chosen)])
    with pytest.raises(TableError, match="is the total of the other categories") as refused:
        tc.read_table(rows)
    with pytest.raises(TableError, match="is the total of the other categories"):
        tc.read_table(array_of(rows))
    assert f"!= {name!r}]" in str(refused.value)
    kept = rows[~rows[list(table.dims)].isin([name]).any(axis=1)]  # as the message says
    assert tc.read_table(kept).equals(table)


def array_of(rows: pd.DataFrame) -> xr.DataArray:
    dims = [name for name in rows if name != "count"]
    series = rows.set_index(dims)["count"]
    return series.to_xarray().fillna(0)


@given(tables(), NAMES, st.integers(1, 3))
def test_a_category_whose_counts_are_no_sums_is_read(table, name, more):
    others = totals_of(table, ("v0",), name)
    rows = pd.concat([rows_of(table), others.assign(count=others["count"] + more)])
    read = tc.read_table(rows)
    assert int(read.sum()) == int(rows["count"].sum())
    assert name in read["v0"].values


def test_totals_that_do_not_all_add_up_are_refused_as_unclear():
    rows = pd.DataFrame(
        [("A", "f", 4), ("A", "m", 5), ("B", "f", 2), ("B", "m", 3), ("Total", "f", 6)],
        columns=["area", "sex", "count"],
    )
    rounded = pd.concat([rows, pd.DataFrame([("Total", "m", 9)], columns=rows.columns)])
    message = "area=Total says that it is a total, and some of its counts are the sums"
    with pytest.raises(TableError, match=message):
        tc.read_table(rounded)


def test_margins_alone_are_refused():
    """Nobody would be in other cells, and everybody in two."""
    rows = [("m", "Total", 5), ("f", "Total", 6), ("Total", "young", 7), ("Total", "old", 4)]
    rows = pd.DataFrame(rows, columns=["sex", "age", "count"])
    with pytest.raises(TableError, match="sex=Total says that it is a total, and nobody is in"):
        tc.read_table(rows)


def test_totals_that_add_up_among_themselves_alone_are_refused():
    """As where they were rounded apart from the cells."""
    cells = [("a0", "b0", 3), ("a1", "b0", 15)]
    totals = [("Total", "Total", 18), ("a0", "Total", 2), ("a1", "Total", 16), ("Total", "b0", 17)]
    rows = pd.DataFrame([*totals, *cells], columns=["a", "b", "count"])
    with pytest.raises(TableError, match="a=Total says that it is a total, and some"):
        tc.read_table(rows)


def test_a_category_called_so_does_not_hide_totals_of_another_variable():
    cells = [("A", "f", 4), ("A", "all", 50), ("B", "f", 2), ("B", "all", 3)]
    totals = [("Total", "f", 6), ("Total", "all", 53)]
    rows = pd.DataFrame([*cells, *totals], columns=["area", "sex", "count"])
    with pytest.raises(TableError, match="area=Total is the total"):
        tc.read_table(rows)
    assert tc.read_table(rows[rows["area"] != "Total"]).shape == (2, 2)


@pytest.mark.parametrize(
    "label",
    [
        *("Totally", "Total area", "all of them", "7", "All other religions", "Total loss", "T"),
        *("All people with no religion", "All ages under 16", "Total, male", "White: all"),
    ],
)
def test_only_whole_labels_name_totals(label):
    rows = pd.DataFrame({"area": ["A", "B", label], "count": [3, 4, 7]})
    assert tc.read_table(rows).sizes["area"] == 3


@pytest.mark.parametrize(
    "labels",
    [
        ("Total", "Total, male", "Total, female"),
        ("Total", "White: all", "Mixed: all"),
        ("All ages", "All ages under 16", "All ages 16 and over"),
        ("All categories: Sex", "Male, all", "Female, all"),
    ],
)
def test_parts_that_sound_like_totals_do_not_hide_one(labels):
    rows = pd.DataFrame({"group": labels, "count": [7, 3, 4]})
    with pytest.raises(TableError, match="is the total of the other categories"):
        tc.read_table(rows)


LONGER = st.sampled_from(["Persons, total", "Total (all ages)", "All people, 16 and over"])


@given(tables(), LONGER)
def test_longer_names_are_totals_where_several_sums_show_it(table, name):
    rows = pd.concat([rows_of(table), totals_of(table, ("v0",), name)])
    lines = (table > 0).sum("v0")
    if (lines > 1).sum() >= 3:
        with pytest.raises(TableError, match="is the total of the other categories"):
            tc.read_table(rows)
    else:
        assert name in tc.read_table(rows)["v0"].values


def test_one_count_that_is_no_sum_shows_that_a_longer_name_is_a_category():
    rows = pd.DataFrame(
        [(area, group, 2) for area in "ABCD" for group in ("Christian", "Muslim")]
        + [("A", "All others", 4), ("B", "All others", 4), ("C", "All others", 4)],
        columns=["area", "group", "count"],
    )
    with pytest.raises(TableError, match="group=All others is the total"):
        tc.read_table(rows)
    more = pd.concat([rows, pd.DataFrame([("D", "All others", 3)], columns=rows.columns)])
    assert tc.read_table(more).shape == (4, 3)


def test_a_variable_of_nothing_but_a_total_is_read():
    rows = pd.DataFrame({"area": ["A", "B"], "sex": "Total", "count": [3, 4]})
    assert tc.read_table(rows).shape == (2, 1)


def test_many_variables_of_two_categories_are_looked_through_quickly():
    dims = list("abcdefgh")
    rows = pd.DataFrame(
        [(*labels, 1) for labels in product(["x", "All"], repeat=len(dims))],
        columns=[*dims, "count"],
    )
    with pytest.raises(TableError, match="a=All is the total"):
        tc.read_table(rows)


def test_totals_of_magnitudes_are_refused_too(tmp_path):
    from taciturn.tables.reading import read_steps

    path = tmp_path / "t.csv"
    path.write_text("area,x\nA,1.5\nB,0.25\nInsgesamt,1.75\n", encoding="utf-8")
    with pytest.raises(TableError, match="area=Insgesamt is the total"):
        read_steps(path, "x", decimals=2)
