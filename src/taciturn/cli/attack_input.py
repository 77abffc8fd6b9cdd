"""What ``attack`` reads: a table of counts or magnitudes, levels above its variables,
cells that are suppressed.
"""

import re
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from taciturn.errors import TableError

if TYPE_CHECKING:
    import xarray as xr

    from taciturn.tables.long import LongTable

__all__ = ["read_level", "read_suppressed", "read_values"]

_NUMBER: Final = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,9})?")
_STATUSES: Final = ("safe", "primary", "secondary")


def read_values(path: Path, *, count: str, decimals: int) -> "xr.DataArray":
    """Read a table in long form whose values have so many decimals; what a number says
    is taken exactly.
    """
    import numpy as np

    import taciturn as tc
    from taciturn.tables.long import read_long
    from taciturn.tables.placing import place_rows

    if decimals == 0:
        return tc.read_table(path, count=count)
    long = read_long(path)
    if count not in long.columns:
        raise TableError(f"no column {count!r} of values in {path}: the columns are {long.names()}")
    dims = [name for name in long.columns if name != count]
    steps = np.zeros(long.rows, dtype=np.int64)
    for row, raw in enumerate(long.columns[count]):
        value = _steps(raw, decimals)
        if value is None:
            where = ", ".join(f"{dim}={long.columns[dim][row]}" for dim in dims) or f"row {row + 1}"
            raise TableError(
                f"values must be numbers from 0 to 2**53 steps with at most {decimals} decimals: "
                f"{where} holds {raw!r:.60}"
            )
        steps[row] = value
    return place_rows(long, dims, None, steps) / 10.0**decimals


def _steps(raw: Any, decimals: int) -> int | None:
    """The whole number of steps that a number stands for, or None."""
    from taciturn.schema import MAX_COUNT

    text = str(raw).strip()
    if not _NUMBER.fullmatch(text):
        return None
    number = Decimal(text)
    if number == 0:
        return 0
    # Before 1e999999999 is written out.
    if number < 0 or number.adjusted() < -decimals or number.adjusted() > len(str(MAX_COUNT)):
        return None
    steps = Fraction(number) * 10**decimals
    return int(steps) if steps.denominator == 1 and steps <= MAX_COUNT else None


def read_level(path: Path, table: "xr.DataArray") -> "xr.DataArray":
    """The table with a further level, read from a file that gives each category of a
    variable the one it belongs to.
    """
    from taciturn.schema import RESERVED_NAMES
    from taciturn.tables.long import read_long

    long = read_long(path)
    dims = [name for name in long.columns if name in table.dims]
    if len(long.columns) != 2 or len(dims) != 1:
        raise TableError(
            f"{path}: a hierarchy has two columns, one of the variables"
            f" {list(map(str, table.dims))} and a level above it: the columns are {long.names()}"
        )
    dim = dims[0]
    level = next(name for name in long.columns if name != dim)
    if level in table.coords or level in RESERVED_NAMES:
        raise TableError(f"{path}: {level!r} cannot name a level: it is taken")
    categories = _positions(table, dim)
    above: dict[int, str] = {}
    for row, (label, parent) in enumerate(zip(long.columns[dim], long.columns[level], strict=True)):
        place = _place(long, row, dim, label, categories)
        if place in above:
            raise TableError(f"{path}: row {row + 1} gives {dim}={label} a second time")
        if not str(parent).strip():
            raise TableError(f"{path}: row {row + 1} has no {level!r} for {dim}={label}")
        above[place] = str(parent)
    without = [label for label, place in categories.items() if place not in above]
    if without:
        raise TableError(
            f"{path}: no row for {dim}={without[0]}; each category of {dim!r} must have one"
            f" {level!r}"
        )
    return table.assign_coords({level: (dim, [above[place] for place in range(len(categories))])})


def read_suppressed(
    path: Path, table: "xr.DataArray", projections: list[tuple[str, ...]]
) -> tuple[tuple[str, ...], "xr.DataArray"]:
    """The projection whose variables are the columns of a file, and a mask of the cells
    in its rows.
    """
    from taciturn.tables.long import read_long
    from taciturn.tables.margins import margin_of

    long = read_long(path)
    has_status = "status" in long.columns and "status" not in table.coords
    columns = [name for name in long.columns if not (has_status and name == "status")]
    names = next((each for each in projections if set(each) == set(columns)), None)
    if names is None:
        accepted = " or ".join(",".join(each) for each in projections if each)
        raise TableError(
            f"{path}: the columns must name what is released: {accepted}; beside a 'status' they"
            " are " + ", ".join(map(repr, columns))
        )
    template, _ = margin_of(table, names)
    categories = {name: _positions(template, name) for name in names}
    mask = template.copy(data=template.values < 0)
    seen: set[tuple[int, ...]] = set()
    for row in range(long.rows):
        cell = tuple(
            _place(long, row, name, long.columns[name][row], categories[name]) for name in names
        )
        if cell in seen:
            where = ", ".join(f"{name}={long.columns[name][row]}" for name in names)
            raise TableError(f"{path}: row {row + 1} gives the cell {where} a second time")
        seen.add(cell)
        status = long.columns["status"][row] if has_status else "primary"
        if status not in _STATUSES:
            raise TableError(
                f"{path}: a status is one of {', '.join(_STATUSES)}; row {row + 1} has {status!r}"
            )
        mask[cell] = status != "safe"
    return names, mask


def _positions(table: "xr.DataArray", dim: str) -> dict[str, int]:
    """Where each category is, by its text: a file has no other."""
    return {str(label): place for place, label in enumerate(table[dim].values.tolist())}


def _place(long: "LongTable", row: int, dim: str, label: Any, categories: dict[str, int]) -> int:
    place = categories.get(str(label))
    if place is None:
        raise TableError(
            f"{long.origin}: row {row + 1} has {dim}={label!s:.60}, which is no category of the"
            " table"
        )
    return place
