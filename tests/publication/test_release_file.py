"""What stands in a released file: each value to its last decimal, each status at its
own cell, read back by means of the formats' own."""

import csv
import itertools
import json
from decimal import Decimal

import numpy as np
import openpyxl
import pyarrow.parquet as pq
import pytest
import xarray as xr
from hypothesis import HealthCheck, given, settings, strategies as st
from jsonstat_validator import validate_jsonstat

import taciturn as tc
from taciturn.errors import FileFormatError, ParameterError
from taciturn.files import RELEASE_ENDINGS, check_ending
from taciturn.publication.release_file import WRITERS
from taciturn.suppression.protected import ProtectedTable

ENDINGS = ("csv", "parquet", "json", "xlsx")
SIGNIFICANT = 15  # digits that a double keeps, whatever they are


def table_of(values, *, decimals=0, status=None):
    """A protected table of areas and sizes with its totals by size."""
    values = np.asarray(values, dtype=float)
    status = (
        np.full(values.shape, "published", dtype="<U10") if status is None else np.array(status)
    )
    coords = {"area": [f"a{i}" for i in range(len(values))], "size": ["s", "é"]}
    cells = xr.Dataset(
        {
            "value": (("area", "size"), np.where(status == "published", values, np.nan)),
            "status": (("area", "size"), status),
        },
        coords=coords,
    )
    zero = xr.full_like(cells.isel(area=0, drop=True), 0)
    zero["status"] = ("size", ["published", "published"])
    grand = zero.isel(size=0, drop=True)
    by_area = cells.isel(size=0, drop=True)
    tables = {("area", "size"): cells, ("area",): by_area, ("size",): zero, (): grand}
    return ProtectedTable(tables, "sales", decimals, {}, None)


def cells_in(path):
    """Exact value, None where there is none, and status of each cell."""
    if path.suffix == ".csv":
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        return {
            (row["area"], row["size"]): (
                Decimal(row["sales"]) if row["sales"] else None,
                row["status"],
            )
            for row in rows
        }
    if path.suffix == ".parquet":
        rows = pq.read_table(path).to_pylist()
        return {
            (row["area"], row["size"]): (
                None if row["sales"] is None else Decimal(repr(row["sales"])),
                row["status"],
            )
            for row in rows
        }
    if path.suffix == ".xlsx":
        header, *rows = openpyxl.load_workbook(path).active.iter_rows(values_only=True)
        assert header == ("area", "size", "sales", "status")
        return {
            row[:2]: (None if row[2] is None else Decimal(repr(row[2])), row[3]) for row in rows
        }
    text = path.read_text(encoding="utf-8")
    assert validate_jsonstat(json.loads(text))
    data = json.loads(text, parse_float=Decimal, parse_int=Decimal)
    labels = [data["dimension"][name]["category"]["index"] for name in data["id"]]
    return dict(
        zip(
            itertools.product(*labels),
            zip(data["value"], data["status"], strict=True),
            strict=True,
        )
    )


def written(protected, folder, ending):
    path = folder / f"out.{ending}"
    tc.write_release(protected, path, overwrite=True)
    return cells_in(path)


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    decimals=st.sampled_from([0, 1, 2, 6, 12]),
    steps=st.lists(st.integers(0, 10**SIGNIFICANT - 1), min_size=4, max_size=4),
)
@pytest.mark.parametrize("ending", ENDINGS)
def test_every_decimal_is_kept(ending, tmp_path, decimals, steps):
    exact = [Decimal(step).scaleb(-decimals) for step in steps]
    values = np.array([float(value) for value in exact]).reshape(2, 2)
    found = written(table_of(values, decimals=decimals), tmp_path, ending)
    cells = [("a0", "s"), ("a0", "é"), ("a1", "s"), ("a1", "é")]
    assert [found[cell] for cell in cells] == [(value, "published") for value in exact]


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize(
    ("decimals", "value"),
    [
        (0, "9007199254740991"),  # 2^53 - 1
        (1, "0.1"),
        (1, "99999999999999.9"),
        (2, "1234.56"),
        (2, "9999999999999.99"),
        (12, "0.000000000001"),
        (12, "123.123456789012"),
    ],
)
def test_large_and_small_values_are_kept(ending, decimals, value, tmp_path):
    protected = table_of([[float(value), 0]], decimals=decimals)
    assert written(protected, tmp_path, ending)["a0", "s"] == (Decimal(value), "published")


@pytest.mark.parametrize("ending", ENDINGS)
def test_each_status_stands_at_its_cell_and_suppressed_values_are_absent(ending, tmp_path):
    status = [["published", "suppressed"], ["suppressed", "published"]]
    protected = table_of([[5, 77], [88, 6]], status=status)
    assert written(protected, tmp_path, ending) == {
        ("a0", "s"): (5, "published"),
        ("a0", "é"): (None, "suppressed"),
        ("a0", "Total"): (5, "published"),
        ("a1", "s"): (None, "suppressed"),
        ("a1", "é"): (6, "published"),
        ("a1", "Total"): (None, "suppressed"),
        ("Total", "s"): (0, "published"),
        ("Total", "é"): (0, "published"),
        ("Total", "Total"): (0, "published"),
    }


def test_whole_numbers_are_written_without_a_point(tmp_path):
    protected = table_of([[5, 6]])
    tc.write_release(protected, tmp_path / "out.csv")
    tc.write_release(protected, tmp_path / "out.json")
    assert (tmp_path / "out.csv").read_bytes() == (
        "area,size,sales,status\n"
        "a0,s,5,published\na0,é,6,published\na0,Total,5,published\n"
        "Total,s,0,published\nTotal,é,0,published\nTotal,Total,0,published\n"
    ).encode()
    assert '"value": [5, 6, 5, 0, 0, 0]' in (tmp_path / "out.json").read_text(encoding="utf-8")


def test_json_stat_as_its_specification_has_it(tmp_path):
    tc.write_release(table_of([[1.25, 6]], decimals=2), tmp_path / "out.json")
    content = (tmp_path / "out.json").read_text(encoding="utf-8")
    assert "é" in content
    assert json.loads(content) == {
        "version": "2.0",
        "class": "dataset",
        "label": "sales",
        "id": ["area", "size"],
        "size": [2, 3],
        "dimension": {
            "area": {"label": "area", "category": {"index": ["a0", "Total"]}},
            "size": {"label": "size", "category": {"index": ["s", "é", "Total"]}},
        },
        "value": [1.25, 6.0, 1.25, 0.0, 0.0, 0.0],
        "status": ["published"] * 6,
    }


def test_the_word_for_a_total_is_chosen(tmp_path):
    tc.write_release(table_of([[5, 6]]), tmp_path / "out.csv", total="alle")
    assert cells_in(tmp_path / "out.csv")["alle", "alle"] == (0, "published")
    with pytest.raises(ParameterError, match=r"no category, nor look like one: 'area' has 'a0'"):
        tc.write_release(table_of([[5, 6]]), tmp_path / "no.csv", total="a0")
    for alike in (" a0", "a\u200d0"):
        with pytest.raises(ParameterError, match=r"nor look like one: 'area' has 'a0'"):
            tc.write_release(table_of([[5, 6]]), tmp_path / "no.csv", total=alike)


def test_categories_that_would_be_written_alike():
    tables = {
        names: table.assign_coords(area=["1"]) if "area" in names else table
        for names, table in table_of([[5, 6]]).tables.items()
    }
    both = xr.concat(
        [tables["area", "size"], tables["area", "size"].assign_coords(area=[1])], "area"
    )
    both = both.assign_coords(area=np.array(["1", 1], dtype=object))
    protected = ProtectedTable({("area", "size"): both}, "sales", 0, {}, None)
    with pytest.raises(ParameterError, match=r"categories of 'area' must differ.*\['1', '1'\]"):
        tc.publication.release_rows(protected)


@pytest.mark.parametrize("unit", ["s", "us", "ns"])
def test_dates_of_every_unit(unit, tmp_path):
    """Weeks named by their first day are labels of days, too; NumPy makes whole numbers
    of nanoseconds, which are none."""
    days = np.array(["2020-01-06", "2020-01-07", "2020-01-13"], f"datetime64[{unit}]")
    table = xr.DataArray([5, 1, 7], dims="day", coords={"day": days}, name="count")
    hidden = table < 6
    release = tc.Suppression(table, hidden, totals=[()])
    tc.write_release(release, tmp_path / "days.csv")
    read = tc.publication.read_release(tmp_path / "days.csv", table)
    np.testing.assert_array_equal(read.suppressed, hidden)
    weeks = table.assign_coords(week=("day", days[[0, 0, 2]]))
    linked = tc.LinkedTables(weeks, [("week",), ("day",)], suppressed={("day",): hidden})
    with pytest.raises(ParameterError, match="'day' and of a level above it must differ"):
        tc.write_release(linked, tmp_path / "weeks.csv")
    log = tc.ReleaseLog(tmp_path / "log.duckdb", variables={"day": days})
    assert log.check(table, progressbar=False).findings
    coarse = tc.GlobalRecoding(table, {"day": {"week": table.get_index("day")[:2].tolist()}})
    assert coarse.system is not None


def test_an_ending_in_capitals_is_taken_and_others_are_named(tmp_path):
    check_ending(tmp_path / "OUT.CSV", RELEASE_ENDINGS)
    with pytest.raises(FileFormatError, match=r"ends in \.csv, \.parquet, \.json, \.xlsx$"):
        check_ending(tmp_path / "out.xls", RELEASE_ENDINGS)
    assert tuple(WRITERS) == RELEASE_ENDINGS
