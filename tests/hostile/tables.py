"""Files of counts, of people and of magnitudes: CSV with `csv` and `decimal` as the
second reader, Parquet with polars.
"""

import csv
import io
import re
import unicodedata
from collections import Counter
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pandas as pd
import polars as pl
import xarray as xr

import taciturn as tc
from hostile.kinds import Kind, mutated

__all__ = ["KINDS"]

COUNTS = b'''area,sex,count
A,f,3
A,m,0
"B, the ""second""",f,12
"B, the ""second""",m,7
C\xc3\xa9,f,1
C\xc3\xa9,m,4
'''
RECORDS = b'''area,sex,sales,firm
A,f,12.50,one
A,m,3,two
"B, ""2""",f,1000000,three
"B, ""2""",m,0.25,one
A,f,7,three
C\xc3\xa9,m,40,two
'''
EUROPEAN = RECORDS.decode().replace(",", ";").encode("latin-1")
DIALECT = {"sep": ";", "encoding": "latin-1"}
PIECES = (
    *(b",", b'"', b'""', b"\n", b"\r", b"\r\n", b"\t", b";", b"\0", b" ", b", ", b' "', b'"\n"'),
    *(b"-1", b"1e3", b"1.5", b"nan", b"inf", b"", b"NA", b"1_000", b"9007199254740993", b"1e400"),
    *(b"99999999999999999999", b"0x10", b"01", b"+3", b"=1+1", b"'", b"\\", b"#", b"~", b"count"),
    *("é é \u200b \u00a0 \u202e \ufeff \ufffd ٣ ½ \u2028".encode().split(b" ")),
    b"\xff\xfe",
    b"\xed\xa0\x80",
    b"area,sex,count\n",
    b"A,f,3\n",
    b"A" * 2000,
)


def written(content: bytes) -> Any:
    """How a case of CSV is written."""

    def write(folder: Path, random: Random, number: int) -> Path:
        path = folder / "table.csv"
        path.write_bytes(mutated(content, random, PIECES))
        return path

    return write


def rows_of(
    path: Path, sep: str | None = None, encoding: str = "utf-8-sig"
) -> tuple[list[str], list[list[str]]]:
    """Header and rows, as the standard library reads them."""
    text = path.read_bytes().decode(encoding)
    if sep is None:
        unquoted = re.sub('"[^"]*"', "", text).splitlines()[0]
        sep = next((mark for mark in ",;\t|" if mark in unquoted), ",")
    header, *rows = csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=sep)
    return header, [row for row in rows if "".join(row).strip() or len(row) > 1]


def wrong_counts(path: Path, table: xr.DataArray) -> str | None:
    """What differs between a table and a file of counts."""
    header, rows = rows_of(path)
    at = header.index("count")
    expected = {(*row[:at], *row[at + 1 :]): int(Decimal(row[at].strip())) for row in rows}
    if len(expected) < len(rows):
        return "a cell stands twice"
    return wrong_cells(expected, table, [*header[:at], *header[at + 1 :]])


def wrong_people(path: Path, table: xr.DataArray, **dialect: str) -> str | None:
    """What differs between a table and a file of people."""
    header, rows = rows_of(path, **dialect)
    columns = [header.index(name) for name in ("area", "sex")]
    expected = Counter(tuple(row[column] for column in columns) for row in rows)
    return wrong_cells(expected, table, ["area", "sex"])


def wrong_totals(path: Path, table: xr.Dataset) -> str | None:
    """What differs between the totals of cells and a file of records."""
    header, rows = rows_of(path)
    area, sex, sales = (header.index(name) for name in ("area", "sex", "sales"))
    expected: dict[tuple[str, ...], Decimal] = {}
    for row in rows:
        cell = (row[area], row[sex])
        expected[cell] = expected.get(cell, Decimal(0)) + Decimal(row[sales].strip())
    return wrong_cells(
        {cell: float(x) for cell, x in expected.items()}, table["total"], ["area", "sex"]
    )


def wrong_cells(
    expected: dict[tuple[str, ...], Any], table: xr.DataArray, names: list[str]
) -> str | None:
    """The first cell that differs, or a label that is not seen."""
    if list(table.dims) != names:
        return f"variables {table.dims}, not {names}"
    for name in names:
        for label in table[name].values.tolist():
            if any(unicodedata.category(mark) in ("Cc", "Zl", "Zp") for mark in str(label)):
                return f"a label with a control character, {label!r}"
    found = {
        tuple(map(str, cell)): value for cell, value in table.to_series().items() if value != 0
    }
    filled = {cell: value for cell, value in expected.items() if value != 0}
    if found.keys() != filled.keys():
        return f"cells {sorted(found.keys() ^ filled.keys())[:2]}"
    off = [cell for cell, value in filled.items() if abs(found[cell] - value) > 1e-9 * abs(value)]
    return f"{off[0]} holds {found[off[0]]}, not {filled[off[0]]}" if off else None


def write_parquet(folder: Path, random: Random, number: int) -> Path:
    """A Parquet file with changed bytes, mostly in its footer, or in its metadata."""
    path = folder / "table.parquet"
    frame = pd.DataFrame({"area": ["A", "A", "B"], "sex": ["f", "m", "f"], "count": [3, 1, 4]})
    frame["area"] = frame["area"].astype("category")
    frame.to_parquet(path, index=bool(random.random() < 0.3))
    content = bytearray(path.read_bytes())
    start = content.find(b"pandas") if random.random() < 0.5 else 0
    for _ in range(random.choice((1, 1, 2, 8))):
        content[random.randrange(start, len(content))] = random.randrange(256)
    path.write_bytes(bytes(content if random.random() < 0.9 else content[: len(content) // 2]))
    return path


def wrong_parquet(path: Path, table: xr.DataArray) -> str | None:
    """What differs between a table and a Parquet file, as polars reads it."""
    try:
        frame = pl.read_parquet(path)
    except Exception:  # what it refuses, it cannot say
        return None
    names = [name for name in frame.columns if name != "count" and not name.startswith("__")]
    rows = frame.select(*names, "count").cast(dict.fromkeys(names, pl.String)).rows()
    return wrong_cells({row[:-1]: row[-1] for row in rows}, table, names)


KINDS = (
    Kind("counts, CSV", written(COUNTS), tc.read_table, wrong_counts),
    Kind("counts, Parquet", write_parquet, tc.read_table, wrong_parquet),
    Kind(
        "people, CSV",
        written(RECORDS),
        lambda path: tc.tabulate(path, ["area", "sex"]),
        wrong_people,
    ),
    Kind(
        "people, CSV with semicolons in Latin-1",
        written(EUROPEAN),
        lambda path: tc.tabulate(path, ["area", "sex"], **DIALECT),
        lambda path, table: wrong_people(path, table, **DIALECT),
    ),
    Kind(
        "magnitudes, CSV",
        written(RECORDS),
        lambda path: tc.tabulate_magnitude(path, ["area", "sex"], "sales", decimals=2),
        wrong_totals,
    ),
)
