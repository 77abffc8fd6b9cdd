"""Files as offices have them: hierarchies and instructions of τ-ARGUS, and tables that
are aggregated already.
"""

import csv
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pandas as pd
import xarray as xr

import taciturn as tc
from hostile.kinds import Kind, mutated
from hostile.tables import rows_of
from taciturn.suppression.apriori import instructions_of
from taciturn.suppression.arguments import checked_cells

__all__ = ["KINDS"]

NAMES = ["area", "sort"]
TABLE = xr.DataArray(
    [[12, 1, 10], [8, 19, 2]], coords={"area": ["A", "B"], "sort": ["x", "y", "z"]}, dims=NAMES
)
CODES = b"north\n@A\n@@A1\n@@A2\n@B\nsouth\nwest\n@C\n@@C1\n@D\n"
INSTRUCTIONS = b"A,x,u\nA,Total,p\nB,y,c,12.5\nB,z,pl,1,3\nTotal,Total,s\nB,z,u\n"
CELLS = b"""area,sort,sales,firms,first
A,x,12.5,3,8
A,y,1,1,1
B,x,8,4,3
B,y,20.5,6,10
A,Total,13.5,4,9
B,Total,28.5,9,10
Total,Total,42,12,12
"""
PIECES = (
    *(
        b"@",
        b"@@",
        b"\n",
        b"\r\n",
        b",",
        b";",
        b'"',
        b" ",
        b"\t",
        b"\0",
        b"",
        b"A",
        b"A1",
        b"Total",
    ),
    *(b"u", b"s", b"p", b"c", b"pl", b"ml", b"c,5", b"1", b"-1", b"1e400", b"nan", b"inf", b"1_0"),
    *("é \u200b \u202e \ufeff ٣ \u2028".encode().split(b" ")),
    b"\xff",
    b"A" * 2000,
)


def written(name: str, content: bytes) -> Any:
    """How a case is written."""

    def write(folder: Path, random: Random, number: int) -> Path:
        path = folder / name
        path.write_bytes(mutated(content, random, PIECES))
        return path

    return write


def plain_lines(path: Path) -> list[str] | None:
    """The lines of a file of plain text; None of one that looks otherwise than it
    is.
    """
    text = path.read_bytes().decode("utf-8-sig").replace("\r\n", "\n")
    lines = text.rstrip().split("\n") if text.strip() else []
    return lines if all(line.isascii() and line.isprintable() for line in lines) else None


def wrong_codes(path: Path, frame: pd.DataFrame) -> str | None:
    """What differs between levels and the file that they are from."""
    lines = plain_lines(path)
    if lines is None:
        return None
    above: list[str] = []
    chains: list[list[str]] = []
    for line in lines:
        depth = len(line) - len(line.lstrip("@"))
        above = [*above[:depth], " ".join(line[depth:].split())]
        chains = [chain for chain in chains if chain != above[:-1]] + [above]
    common = set.intersection(*map(set, chains))
    if frame["area"].tolist() != [chain[-1] for chain in chains]:
        return f"categories {frame['area'].tolist()}"
    for labels, chain in zip(frame.to_numpy().tolist(), chains, strict=True):
        if not set(chain) - common <= set(labels) <= set(chain):
            return f"{labels} is not {chain}"
    return None


def read_instructions(path: Path) -> pd.DataFrame:
    """The rows of a file, once they have been taken as instructions."""
    rows = tc.suppression.read_apriori(path, NAMES)
    instructions_of(rows, checked_cells(TABLE, [NAMES, "area", "sort", ()], 0))
    return rows


def wrong_instructions(path: Path, rows: pd.DataFrame) -> str | None:
    """What differs between instructions and the file that they are from."""
    lines = plain_lines(path)
    if lines is None:
        return None
    expected, sep = [], ","
    for line in lines:
        if line == lines[0] and ";" in line and "," not in line:
            sep = ";"
        first, second, action, *numbers = map(str.strip, next(csv.reader([line], delimiter=sep)))
        status = {"u": "sensitive", "s": "safe", "p": "published"}.get(action.lower())
        cost, *levels = [float(Decimal(number)) for number in (numbers or ["-1"])]
        cost, levels = (None, [cost, *levels]) if levels else (cost, [None, None])
        labels = [None if label in ("", "Total") else label for label in (first, second)]
        expected.append([*labels, status, cost if cost != -1 else None, *levels])
    found = [
        [None if pd.isna(value) else value for value in row] for row in rows.to_numpy().tolist()
    ]
    return None if found == expected else f"{found} is not {expected}"


def read_cells(path: Path) -> dict[tuple[str, ...], xr.Dataset]:
    """The margins of a file of cells."""
    return tc.magnitude.read_margins(
        path, NAMES, "sales", contributors="firms", largest=["first"], decimals=1
    )


def wrong_cells(path: Path, margins: dict[tuple[str, ...], xr.Dataset]) -> str | None:
    """What differs between margins and the file that they are from."""
    header, rows = rows_of(path)
    places = [header.index(name) for name in (*NAMES, "sales", "firms", "first")]
    expected = {}
    for row in rows:
        area, sort, *numbers = (row[place] for place in places)
        values = tuple(float(Decimal(number.strip() or "0")) for number in numbers)
        if any(values):
            expected[area, sort] = values
    found = {}
    for names, table in margins.items():
        stacked = table[["total", "contributors"]].assign(first=table["largest"].isel(rank=0))
        for row in stacked.to_dataframe().reset_index().to_dict("records") if names else ():
            labels = tuple(str(row.get(name, "Total")) for name in NAMES)
            found[labels] = (row["total"], row["contributors"], row["first"])
        if not names:
            found["Total", "Total"] = tuple(float(stacked[name]) for name in stacked)
    found = {labels: values for labels, values in found.items() if any(values)}
    return None if found == expected else f"{found} is not {expected}"


KINDS = (
    Kind(
        "hierarchies, .hrc",
        written("area.hrc", CODES),
        lambda path: tc.tables.read_hrc(path, "area"),
        wrong_codes,
    ),
    Kind(
        "instructions, .hst",
        written("cells.hst", INSTRUCTIONS),
        read_instructions,
        wrong_instructions,
    ),
    Kind("cells, CSV", written("cells.csv", CELLS), read_cells, wrong_cells),
)
