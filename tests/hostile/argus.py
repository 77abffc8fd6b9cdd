"""Tables of τ-ARGUS: cells without a header, and what their columns are."""

from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pandas as pd
import xarray as xr

import taciturn as tc
from hostile.kinds import Kind, mutated
from hostile.offices import PIECES, plain_lines

__all__ = ["KINDS"]

METADATA = b"""<SEPARATOR> ";"
<SAFE> S
area "9"
  <RECODEABLE>
  <TOTCODE> "all"
sort
  <RECODEABLE>
  <TOTCODE> z
  <HIERARCHICAL>
  <HIERCODELIST> "sort.hrc"
  <HIERLEADSTRING> "@"
sales
  <NUMERIC>
  <DECIMALS> 1
firms
  <FREQUENCY>
first
  <MAXSCORE>
told
  <STATUS>
"""
CELLS = b"""A;x;12,5;3;8;S
A;y;1;1;1;U
B;x;8;4;3;P
B;y;20.5;6;10;
A;z;13.5;4;9;S
B;z;28,5;9;10;S
all;z;42;12;12;S
C;x;-;;;E
"""
CODES = b"x\ny\n"
TAGS = (b"<NUMERIC>", b"<SHADOW>", b"<HIERLEVELS> 1 1", b"<STATUS>", b"//", b"all", b"S", b"E")

type Read = tuple[dict[tuple[str, ...], xr.Dataset], pd.DataFrame | None]


def written(of_cells: bool) -> Any:
    """How a case is written: the cells or the metadata are changed."""

    def write(folder: Path, random: Random, number: int) -> Path:
        pieces = (*PIECES, *TAGS)
        cells = mutated(CELLS, random, pieces) if of_cells else CELLS
        metadata = METADATA if of_cells else mutated(METADATA, random, pieces)
        (folder / "sort.hrc").write_bytes(CODES)
        (folder / "cells.rda").write_bytes(metadata)
        (folder / "cells.tab").write_bytes(cells)
        return folder / "cells.tab"

    return write


def value(text: str) -> Decimal:
    """A number with a point or a comma; 0 where there is none."""
    return Decimal("0" if text.strip() in ("", "-") else text.strip().replace(",", "."))


def wrong_cells(path: Path, found: Read) -> str | None:
    """What differs between tables and the lines that they are from."""
    lines = plain_lines(path)
    if lines is None:
        return None
    expected = {}
    for line in lines:
        area, sort, *numbers = [field.strip().strip('"').strip() for field in line.split(";")]
        numbers = [float(value(number)) for number in numbers[:3]]
        if any(numbers):
            expected[area, sort] = tuple(numbers)
    held = {}
    for names, table in found[0].items():
        stacked = table[["total", "contributors"]].assign(first=table["largest"].isel(rank=0))
        for row in stacked.to_dataframe().reset_index().to_dict("records") if names else ():
            labels = (str(row.get("area", "all")), str(row.get("sort", "z")))
            held[labels] = (row["total"], row["contributors"], row["first"])
        if not names:
            held["all", "z"] = tuple(float(stacked[name]) for name in stacked)
    held = {labels: numbers for labels, numbers in held.items() if any(numbers)}
    return None if held == expected else f"{held} is not {expected}"


def wrong_metadata(path: Path, found: Read) -> str | None:
    """Whether the quantity is another column than the one that is said to be it."""
    lines = plain_lines(path.with_suffix(".rda"))
    if lines is None:
        return None
    names: list[str] = []
    quantities = []
    for line in map(str.strip, lines):
        if line and not line.startswith(("<", "//")):
            names.append(line.split()[0].strip('"'))
        elif line.upper().split("//")[0].split() == ["<NUMERIC>"]:
            quantities.append(names[-1])
    told = {str(table.attrs["value"]) for table in found[0].values()}
    return None if told <= set(quantities) else f"{told} is not in {quantities}"


def read(path: Path) -> Read:
    """The tables and instructions of a file beside its metadata."""
    return tc.magnitude.read_argus(path)


KINDS = (
    Kind("cells of τ-ARGUS, .tab", written(of_cells=True), read, wrong_cells),
    Kind("metadata of τ-ARGUS, .rda", written(of_cells=False), read, wrong_metadata),
)
