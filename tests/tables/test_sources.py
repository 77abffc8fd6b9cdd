"""Records are read by the same rules for counts and magnitudes, a part at a time."""

from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st
from pyarrow import parquet as pq

import taciturn as tc
from taciturn.errors import FileFormatError, TableError
from taciturn.tables.sources import csv_text, open_source, parquet_files
from taciturn.tables.values import is_missing, whole_steps

PEOPLE = pd.DataFrame(
    {"area": ["B", "A", "B", "C", "A"], "sex": ["m", "m", "f", "m", "f"], "x": [1, 2, 4, 8, 16]}
)


def counts(records, variables="area"):
    return tc.tabulate(records, variables)


def totals(records, variables="area"):
    return tc.tabulate_magnitude(records, variables, "x")["total"]


BOTH = pytest.mark.parametrize("read", [counts, totals])


def written(frame: pd.DataFrame, folder: Path, ending: str, **options) -> Path:
    path = folder / f"records.{ending}"
    if ending == "csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_parquet(path, index=False, **options)
    return path


@BOTH
@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("rows", [1, 2, 100])
def test_parts_of_any_size_give_the_same_table(read, ending, rows, tmp_path, monkeypatch):
    monkeypatch.setattr(csv_text, "_BLOCK", 5 * rows)  # bytes
    monkeypatch.setattr(parquet_files, "_ROWS", rows)
    table = read(written(PEOPLE, tmp_path, ending), ["area", "sex"])
    assert table.identical(read(PEOPLE, ["area", "sex"]))
    assert table["area"].values.tolist() == ["A", "B", "C"]


@BOTH
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_row_of_a_later_part_is_named(read, ending, tmp_path, monkeypatch):
    monkeypatch.setattr(csv_text, "_BLOCK", 10)  # bytes
    monkeypatch.setattr(parquet_files, "_ROWS", 2)
    path = written(PEOPLE.assign(area=["B", "A", "B", " ", "A"]), tmp_path, ending)
    with pytest.raises(TableError, match=f"a label is missing: 'area' in row 4 of {path}"):
        read(path)


@BOTH
def test_categories_that_groups_of_rows_declare_are_put_together(read, tmp_path):
    path = tmp_path / "records.parquet"
    parts = [
        pa.DictionaryArray.from_arrays(pa.array([1, 0]), pa.array(["B", "A"])),
        pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["C", "A"])),
    ]
    pq.write_table(pa.table({"area": pa.chunked_array(parts), "x": [1, 2, 4, 8]}), path)
    table = read(path)
    assert table["area"].values.tolist() == ["B", "A", "C"]
    assert table.values.tolist() == ([1, 2, 1] if read is counts else [2, 1 + 8, 4])


@BOTH
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b"\narea,x\nA,1\n", "the first line must be the header, and is empty"),
        (b"area,area,x\nA,B,1\n", "the header names 'area' twice"),
        (b"area,x\nA,1\nB,2,3\n", "line 3 has 3 fields, the header has 2"),
        (b"area,x\nA,1\nB\n", "line 3 has 1 fields, the header has 2"),
        (b'area,x\nA,"1\n', "the record in line 2 has a quote that is never closed"),
        (b"area,x\nA\0,1\n", "not a text file in UTF-8: a NUL in line 2, at position 8"),
        (b"area,x\nA,1\n\xff,2\n", "not a text file in UTF-8: .* position 11"),
    ],
)
def test_files_that_are_refused(read, content, message, tmp_path):
    path = tmp_path / "records.csv"
    path.write_bytes(content)
    with pytest.raises(FileFormatError, match=f"^{path}: {message}"):
        read(path)


def test_the_byte_that_is_no_text_is_found_far_into_a_file(tmp_path):
    path = tmp_path / "records.csv"
    lines = b"area\n" + "Zürich\n".encode() * 5000
    path.write_bytes(lines + b"Bern \xe9\n")
    where = f"in line 5002, at position {len(lines) + len('Bern ')}, the byte 0xE9"
    with pytest.raises(FileFormatError, match=where):
        counts(path)


@BOTH
def test_what_is_written_alike_is_refused(read):
    frame = pd.DataFrame({"area": np.array([1, "1"], dtype=object), "x": 1})
    with pytest.raises(TableError, match="two labels of 'area' are both written '1', in row 2"):
        read(frame)


@BOTH
def test_times_in_a_time_zone_are_refused_in_a_file(read, tmp_path):
    times = pd.to_datetime(["2020-01-01"]).tz_localize("UTC")
    path = written(pd.DataFrame({"area": times, "x": [1]}), tmp_path, "parquet")
    with pytest.raises(TableError, match=r"'area' in .* holds times in a time zone"):
        read(path)


def test_an_index_in_a_parquet_file_is_read_as_from_the_data_frame(tmp_path):
    table = PEOPLE.groupby(["area", "sex"]).size().to_frame("count")
    table["age"] = "all"
    table.to_parquet(tmp_path / "named.parquet")
    assert tc.read_table(tmp_path / "named.parquet").identical(tc.read_table(table))
    PEOPLE.iloc[[3, 1]].to_parquet(tmp_path / "unnamed.parquet")
    assert open_source(tmp_path / "unnamed.parquet").names == ["area", "sex", "x"]


def test_blank_lines_are_no_rows(tmp_path):
    path = tmp_path / "records.csv"
    path.write_text("area,sex\n\nA,f\n  \nB,f\n\n")
    assert counts(path).values.tolist() == [1, 1]
    path.write_text("area,sex\n\n\n")
    with pytest.raises(TableError, match="is empty: it has no rows"):
        counts(path)


@pytest.mark.parametrize("blank", ["", "  "])
def test_in_a_single_column_a_blank_line_is_a_missing_label(tmp_path, blank):
    """So Polars, DuckDB and Arrow write one."""
    path = tmp_path / "records.csv"
    path.write_text(f"area\nA\n{blank}\nB\n{blank}\n")
    with pytest.raises(TableError, match="a label is missing: 'area' in row 2 of"):
        counts(path)
    assert tc.tabulate(path, "area", missing="drop").attrs["dropped"] == 2
    assert tc.tabulate(path, "area", missing="unknown").values.tolist() == [1, 1, 2]


@given(
    st.decimals(min_value=-10, max_value=10**17, allow_nan=False, places=None),
    st.integers(0, 9),
)
def test_whole_steps_are_exact(number, decimals):
    steps = Fraction(number) * 10**decimals
    expected = int(steps) if steps.denominator == 1 and 0 <= steps <= 2**53 else None
    assert whole_steps(str(number), decimals) == whole_steps(number, decimals) == expected


@given(st.floats(allow_nan=True), st.integers(0, 3))
def test_a_float_is_the_decimal_number_that_it_is_written_as(number, decimals):
    found, written = whole_steps(number, decimals), whole_steps(repr(number), decimals)
    assert found == written or (decimals and abs(number * 10**decimals - found) <= 1e-2)


@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=9), st.integers(1, 4))
def test_a_sum_of_floats_is_the_sum_of_decimals(steps, decimals):
    """Off by a few units in the last place, which is no further decimal."""
    parts = [step / 10**decimals for step in steps]
    assert whole_steps(sum(parts), decimals) == sum(steps)
    assert whole_steps(0.1 + 0.2, 1) == 3
    assert whole_steps(np.float64(0.1) + 0.2) is whole_steps(0.301, 2) is None
    assert whole_steps(str(0.1 + 0.2), 1) is None
    assert whole_steps(np.float32(1234567.125), 2) is None


@pytest.mark.parametrize(
    ("value", "missing"),
    [
        *((value, True) for value in (None, np.nan, pd.NA, pd.NaT, Decimal("sNaN"), "", " ")),
        *((value, False) for value in (0, False, "NA", "nan", [1], (1, [2]), np.array([1, 2]))),
    ],
)
def test_missing_values(value, missing):
    assert is_missing(value) is missing
