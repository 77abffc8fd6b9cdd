"""Releases read back from their files, and held against the true table."""

import io
import json
import sys
from collections import Counter
from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import taciturn as tc
from attackers.outsider import read_file
from taciturn import files
from taciturn.errors import FileFormatError, ParameterError, TableError
from taciturn.files import StandardInput
from taciturn.publication import read_release, release_rows

TABLE = xr.DataArray(
    [[20, 1, 10], [8, 19, 2], [17, 32, 12]],
    dims=("activity", "region"),
    coords={"activity": ["farms", "shops", "banks"], "region": ["North", "West", "South"]},
    name="count",
)
LEVELS = TABLE.assign_coords(part=("region", ["upper", "upper", "lower"]))
CELLS = ("activity", "region")
READ = (".csv", ".parquet", ".json")
each_ending = pytest.mark.parametrize("ending", READ)


def masks():
    """Releases with cells and totals suppressed, with and without levels."""
    hidden = TABLE < 9
    total = xr.zeros_like(TABLE.sum("activity"), dtype=bool)
    total[1] = True
    part = xr.DataArray(
        [[True, False], [False] * 2, [False] * 2],
        dims=("activity", "part"),
        coords={"activity": TABLE["activity"], "part": ["upper", "lower"]},
    )
    linked = tc.LinkedTables
    return {
        "all totals": tc.Suppression(TABLE, hidden),
        "no totals": tc.Suppression(TABLE, hidden, totals=False),
        "some totals": tc.Suppression(TABLE, hidden, totals=["region", ()]),
        "levels": tc.Suppression(LEVELS, hidden),
        "a total": linked(TABLE, [CELLS, "region"], suppressed={"region": total, CELLS: hidden}),
        "a level": linked(
            LEVELS,
            [CELLS, ("activity", "part")],
            suppressed={CELLS[::-1]: hidden.T, ("activity", "part"): part},
        ),
        "projections": linked(TABLE, ["activity", "region"]),
        "no variable of a level": linked(LEVELS, ["part", "activity"]),
        "levels and total": linked(
            LEVELS, [("activity", "part"), "part", ()], suppressed={("activity", "part"): part}
        ),
        "the grand total": linked(TABLE, [()]),
        "nothing hidden": tc.Suppression(TABLE, TABLE < 0),
        "found": tc.suppress(TABLE, TABLE == 2, progressbar=False, random_seed=1).release,
    }


@each_ending
@pytest.mark.parametrize("name", masks())
def test_a_release_comes_back_as_it_was(name, ending, tmp_path):
    release, path = masks()[name], tmp_path / f"r{ending}"
    true = LEVELS if "level" in name else TABLE
    tc.write_release(release, path, value="people", total="All")
    found = read_release(path, true, total="All")
    assert isinstance(found, tc.Suppression) is isinstance(release, tc.Suppression)
    assert release_rows(found).equals(release_rows(release))
    ours, theirs = (tc.attacker_bounds(each, progressbar=False) for each in (found, release))
    xr.testing.assert_equal(ours[["lower", "upper"]], theirs[["lower", "upper"]].transpose(*CELLS))


NESTED = xr.DataArray(
    [[5, 1], [6, 0], [9, 2], [8, 4], [3, 7]],
    dims=("area", "sex"),
    coords={
        "area": list("ABCDE"),
        "sex": ["f", "m"],
        "region": ("area", ["N", "N", "S", "S", "Isle"]),
        "country": ("area", ["Main"] * 4 + ["Isle"]),
    },
    name="count",
)
MARGINS = list(product((None, "area", "region", "country"), (None, "sex")))


@pytest.mark.parametrize("first", MARGINS)
def test_margins_of_several_levels_come_back(first, tmp_path):
    """Whichever are released together, a level is in the column of its variable."""
    path = tmp_path / "r.csv"
    for others in combinations([names for names in MARGINS if names != first], 2):
        expected = {}
        for chosen in (first, *others):
            sums = Counter()
            for cell in NESTED.to_dataframe().reset_index().to_dict("records"):
                named = zip(NESTED.dims, chosen, strict=True)
                labels = frozenset((dim, cell[level]) for dim, level in named if level)
                sums[labels] += cell["count"]
            expected |= sums
        margins = [tuple(filter(None, names)) for names in (first, *others)]
        tc.write_release(tc.LinkedTables(NESTED, margins), path, overwrite=True)
        cells = read_file(path)
        assert len(cells) == len(expected)
        assert {cell.labels: cell.value for cell in cells} == expected
        back = read_release(path, NESTED)
        assert {*map(frozenset, back.released_margins())} >= {*map(frozenset, margins)}


def test_a_level_that_would_be_taken_for_its_variable_or_the_total(tmp_path):
    named = NESTED.assign_coords(area=["A", "B", "C", "D", "N"])
    with pytest.raises(ParameterError, match="'N' is of 'area' and 'region'"):
        tc.write_release(tc.LinkedTables(named, ["region"]), tmp_path / "r.csv")
    with pytest.raises(ParameterError, match="no category, nor look like one: 'area' has 'E'"):
        tc.write_release(tc.LinkedTables(NESTED, ["region", ()]), tmp_path / "r.csv", total="E")


@each_ending
def test_a_file_for_the_office_is_a_release_too(ending, tmp_path):
    pattern = tc.suppress(TABLE, TABLE == 2, progressbar=False, random_seed=1)
    tc.write_release(pattern, tmp_path / f"r{ending}", internal=True)
    found = read_release(tmp_path / f"r{ending}", TABLE)
    assert release_rows(found).equals(release_rows(pattern))


@each_ending
def test_variables_that_are_no_column_are_summed_over(ending, tmp_path):
    cube = xr.concat([TABLE, 2 * TABLE], "year").assign_coords(year=[1, 2])
    small = tc.margin(cube, CELLS)
    tc.write_release(tc.Suppression(small, small < 9), tmp_path / f"r{ending}")
    found = read_release(tmp_path / f"r{ending}", cube)
    assert found.true_table.equals(small)
    assert found.suppressed.equals(small < 9)


@each_ending
def test_decimals(ending, tmp_path):
    amounts = TABLE / 100
    tc.write_release(tc.Suppression(amounts, TABLE < 9, decimals=2), tmp_path / f"r{ending}")
    found = read_release(tmp_path / f"r{ending}", amounts, decimals=2)
    xr.testing.assert_allclose(found.true_table, amounts)
    assert found.suppressed.equals(TABLE < 9)
    with pytest.raises(TableError, match="values must have at most 1 decimals"):
        read_release(tmp_path / f"r{ending}", amounts, decimals=1)


@each_ending
def test_a_perturbed_table_comes_back_as_a_table(ending, tmp_path):
    rounded = tc.random_round(TABLE)
    tc.write_release(rounded, tmp_path / f"r{ending}")
    found = read_release(tmp_path / f"r{ending}", TABLE.transpose())
    assert found.dtype == np.int64
    assert found.equals(rounded.isel(replicate=0).transpose())
    assert found.attrs == {}
    seeded = tc.random_round(TABLE, random_seed=1)
    tc.write_release(seeded, tmp_path / f"s{ending}", internal=True)
    with pytest.raises(ParameterError, match=r"must not be released"):
        tc.write_release(read_release(tmp_path / f"s{ending}", TABLE), tmp_path / "t.csv")
    assert "not_for_release" in read_release(tmp_path / f"s{ending}", TABLE).attrs
    several = tc.random_round(TABLE, replicates=2)
    tc.write_release(several, tmp_path / f"m{ending}", internal=True)
    with pytest.raises(TableError, match="holds several replicates"):
        read_release(tmp_path / f"m{ending}", TABLE)


@pytest.mark.parametrize("change", [0, 1, -100])
def test_the_true_counts_by_chance_are_a_perturbed_table(change, tmp_path):
    """But counts below 0 are none."""
    rows = release_rows(tc.random_round(TABLE))
    rows["count"] = TABLE.values.ravel() + np.eye(1, TABLE.size, dtype=int)[0] * change
    rows.to_csv(tmp_path / "r.csv", index=False)
    if change < 0:
        with pytest.raises(TableError, match="a perturbed table is one of counts"):
            read_release(tmp_path / "r.csv", TABLE)
    else:
        found = read_release(tmp_path / "r.csv", TABLE)
        assert isinstance(found, xr.DataArray)
        assert "replicate" in found.coords
        assert (found - TABLE).values.ravel().tolist() == [change] + [0] * (TABLE.size - 1)


@each_ending
def test_small_cells_that_are_suppressed(ending, tmp_path):
    protected = tc.perturbation.suppress_small_cells(TABLE, minimum=3)
    tc.write_release(protected, tmp_path / f"r{ending}")
    found = read_release(tmp_path / f"r{ending}", TABLE)
    assert isinstance(found, tc.Suppression)
    assert found.totals == []
    assert found.suppressed.equals(TABLE < 3)


ROWS = release_rows(tc.Suppression(TABLE, TABLE < 9)).astype({"count": "Int64"})


def changed(where, **given):
    """The file with one row changed."""
    rows = ROWS.astype(object)
    rows.loc[where, list(given)] = list(given.values())
    return rows.to_csv(index=False)


WRONG = {
    "not the true value": (changed(0, count=21), "farms, region=North is not that of the table"),
    "not the true total": (changed(9, count=4), "is not that of the table"),
    "a value that is suppressed": (changed(1, count=1), "is suppressed, and has a value"),
    "no value": (changed(0, count=pd.NA), "region=North is published and must have a value"),
    "half a person": (changed(0, count=0.5), "must have a value that is a whole number"),
    "no category": (changed(0, region="East"), "row 1 has region=East, which is no category"),
    "a cell twice": (changed(0, region="West"), "region=West stands in more than one row"),
    "no status": (changed(0, status="hidden"), "has the status 'hidden'; known are published"),
    "a row less": (ROWS.drop(3).to_csv(index=False), "has 8 of the 9 cells of activity x region"),
    "no rows": (ROWS[:0].to_csv(index=False), "has a row for each cell"),
    "two values": (ROWS.assign(other=1).to_csv(index=False), "one of values, and 'status'"),
    "a table": (ROWS.drop(columns="status").to_csv(index=False), "one of values, and 'status'"),
    "rounded totals": (
        changed(9, count=4).replace(",suppressed", "1,published"), "a perturbed table is one of"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_release_of_the_table_is_refused(name, tmp_path):
    text, message = WRONG[name]
    (tmp_path / "r.csv").write_text(text)
    with pytest.raises(TableError, match=message) as refused:
        read_release(tmp_path / "r.csv", TABLE)
    # No true value: 20 is that of the cell that is named most often.
    assert " 20" not in str(refused.value).replace("20 cells", "")


def test_names_that_are_ambiguous_and_columns(tmp_path):
    ROWS.to_csv(tmp_path / "r.csv", index=False)
    same = TABLE.assign_coords(part=("region", ["North", "North", "other"]))
    with pytest.raises(ParameterError, match="North of 'part' is another category of its column"):
        read_release(tmp_path / "r.csv", same)
    with pytest.raises(ParameterError, match="no column 'people' of values"):
        read_release(tmp_path / "r.csv", TABLE, value="people")
    assert read_release(tmp_path / "r.csv", TABLE, value="count").suppressed.equals(TABLE < 9)


def test_standard_input_and_other_dialects(tmp_path, monkeypatch):
    text = ROWS.to_csv(index=False, sep=";")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode("utf-16"))))
    found = read_release(StandardInput(), TABLE, sep=";", encoding="utf-16")
    assert found.suppressed.equals(TABLE < 9)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text[:-11].encode())))
    with pytest.raises(
        FileFormatError, match="standard input: line 17 has 3 fields, the header has 4"
    ):
        read_release(StandardInput(), TABLE)
    monkeypatch.setattr(files, "_LARGEST", 10)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"12345678901")))
    with pytest.raises(FileFormatError, match="standard input: holds more than 10 bytes"):
        StandardInput().open()


def test_files_of_excel_are_refused_by_name(tmp_path):
    (tmp_path / "r.xlsx").write_text("")
    with pytest.raises(FileFormatError, match=r"the ending '.xlsx'; accepted are '.csv'"):
        read_release(tmp_path / "r.xlsx", TABLE)


@pytest.fixture
def dataset(tmp_path):
    """A release in JSON-stat as Python values, and where it is."""
    path = tmp_path / "r.json"
    tc.write_release(tc.Suppression(TABLE, TABLE < 9, totals=False), path)
    return json.loads(path.read_text()), path


def test_json_stat_of_others(dataset):
    found, path = dataset
    index = found["dimension"]["region"]["category"]
    index["index"] = {label: place for place, label in enumerate(index["index"])}
    for name in ("value", "status"):
        found[name] = {str(place): each for place, each in enumerate(found[name])}
    found["value"] = {place: each for place, each in found["value"].items() if each is not None}
    path.write_text(json.dumps(found))
    assert read_release(path, TABLE).suppressed.equals(TABLE < 9)


@pytest.mark.parametrize(
    "change",
    [
        {"class": "collection"},
        {"size": [3, 4]},
        {"id": ["activity", "nothing"]},
        {"id": 5},
        {"value": [1, 2]},
        {"value": {"9": 1}},
        {"value": {"-1": 1}},
        {"value": {"1": 1, "01": 2}},
        {"status": None},
        {"status": "published"},
        {"dimension": []},
        {"label": "region"},
        {"label": "status"},
        {"value": [float("nan")] * 9},
    ],
    ids=str,
)
def test_json_that_is_no_dataset(change, dataset):
    found, path = dataset
    path.write_text(json.dumps(found | change))
    with pytest.raises(FileFormatError, match=r"r\.json: "):
        read_release(path, TABLE)


@pytest.mark.parametrize("text", ["", "[]", "null", "[" * 100_000, "\xff", '{"id": NaN}'])
def test_what_is_no_json_stat(text, tmp_path):
    (tmp_path / "r.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(FileFormatError, match=r"r\.json: no dataset of JSON-stat 2\.0"):
        read_release(tmp_path / "r.json", TABLE)
