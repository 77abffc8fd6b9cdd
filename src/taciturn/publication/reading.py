"""Files of releases read back, and held against the true table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from os import PathLike
from pathlib import Path
from typing import Any, Final, NoReturn

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.attack.releases.base import Release
from taciturn.attack.releases.linked import LinkedTables
from taciturn.attack.releases.suppression import Suppression
from taciturn.errors import ParameterError, TableError
from taciturn.files import READABLE_RELEASES, TABLE_ENDINGS, StandardInput, check_readable
from taciturn.perturbation.replicates import MARK
from taciturn.publication.intervals import refuse_telling_intervals
from taciturn.publication.json_stat import read_json_stat
from taciturn.schema import (
    COUNT,
    INTERNAL_STATUS,
    PRIMARY,
    PUBLISHED,
    REPLICATE,
    SAFE,
    SECONDARY,
    SIDES,
    STATUS,
    SUPPRESSED,
)
from taciturn.tables.margins import (
    every_margin,
    hierarchies,
    labels_along,
    level_codes,
    margin,
    margin_of,
)
from taciturn.tables.sources import open_source, refuse_dialect
from taciturn.tables.spelling import legible
from taciturn.tables.steps import in_steps
from taciturn.tables.values import is_missing, signed_steps

__all__ = ["read_release"]

_PUBLISHED: Final = {PUBLISHED, SAFE}
_KNOWN: Final = (PUBLISHED, SUPPRESSED, SAFE, PRIMARY, SECONDARY)

Integers = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]


def read_release(
    path: str | PathLike[str] | StandardInput,
    table: xr.DataArray,
    *,
    value: str | None = None,
    total: str = "Total",
    decimals: int = 0,
    sep: str | None = None,
    encoding: str | None = None,
) -> Release | xr.DataArray:
    """Read what a file publishes of a table, as `write_release` wrote it.

    Parameters
    ----------
    path : path
        A ``.csv``, ``.parquet`` or ``.json`` file (JSON-stat) with a column for each
        variable, one of values and one of the status, and perhaps ``lower`` and
        ``upper``, the ends of intervals. Variables of the table that are no column are
        summed over.
    table : DataArray
        The true table; levels above a variable are further coordinates along it, as in
        `Suppression`.
    value : str, optional
        Name of the column of values; by default that of the one column which is neither
        a variable nor the status.
    total : str
        Label of a variable that is summed over.
    decimals : int
        Decimal places of the values.
    sep, encoding : str, optional
        How a CSV file is written, as in `read_table`.

    Returns
    -------
    Release or DataArray
        A `Suppression` where the table is released and only cells of it are suppressed,
        else `LinkedTables`. Of a file that has just the counts of all cells, which may
        be a perturbed table even where these are the true ones, the released table,
        int64, with the dimensions and categories of `table`, and with the coordinate
        ``replicate``, as a protection method returns it.

    Raises
    ------
    TableError
        A label that the table does not have, a cell given twice or not at all, a status
        that is none, a suppressed cell with a value or a published one without; in a
        release with suppressed cells, a published value that is not the true one; an
        interval narrower than what is published tells, as it tells more, or one that
        leaves out a published value; several replicates; perturbed totals.
    FileFormatError
        The file cannot be read as one of these formats.
    ParameterError
        `value` is no column; a variable and a level above it share a label.

    Examples
    --------
    >>> import xarray as xr, taciturn as tc
    >>> table = xr.DataArray([5, 1, 2], coords={"area": ["A", "B", "C"]}, dims="area")
    >>> release = tc.Suppression(table, table < 3)
    >>> tc.write_release(release, "released.csv")  # doctest: +SKIP
    >>> tc.publication.read_release("released.csv", table)  # doctest: +SKIP
    Suppression of area (3), 0 decimals
    """
    columns = _columns(path, sep, encoding)
    rows = _rows(columns, table, value, total, str(path))
    steps = in_steps(table, decimals, signed=True)
    shown = margin(steps, rows.variables)
    found = [_held(rows, part, shown, decimals) for part in _parts(rows, shown, total)]
    whole = all(part.published.all() for part in found)
    if whole and _may_be_perturbed(rows, found, steps, decimals):
        return _perturbed(rows, found[0], steps)
    if (wrong := _first_that_differs(rows, found)) is not None:
        _refuse_others(rows, wrong, steps, whole=whole)
    release = _release(found, shown, decimals)
    for part in found if rows.ends else ():
        totals, _ = margin_of(shown, part.names)
        hidden = totals.copy(data=~part.published.reshape(totals.shape))
        refuse_telling_intervals(
            release,
            totals,
            hidden,
            part.rows,
            rows.ends,
            decimals,
            lambda row: f"{rows.origin}: {rows.label(row)}",
        )
    return release


@dataclass(frozen=True)
class _Rows:
    """The columns of a file by what they are."""

    origin: str
    labels: Mapping[str, list[Any]]
    values: list[Any]
    status: list[Any]
    value: str
    ends: list[list[Any]]
    """The columns of the lower and upper ends of intervals, if there are any."""

    @property
    def variables(self) -> list[str]:
        return list(self.labels)

    def label(self, row: int) -> str:
        """The cell of a row, for a message."""
        named = (f"{name}={legible(str(each[row]))}" for name, each in self.labels.items())
        return ", ".join(named) or "the grand total"


@dataclass(frozen=True)
class _Part:
    """The rows of one margin, in the order of its cells."""

    names: tuple[str, ...]
    rows: Integers
    published: Booleans
    values: Integers
    """In steps, 0 where suppressed."""
    differs: Booleans
    """Where a published value is not the true one."""


def _columns(path: Any, sep: str | None, encoding: str | None) -> dict[str, list[Any]]:
    """All columns of a file, by its ending."""
    ending = "" if isinstance(path, StandardInput) else Path(path).suffix.lower()
    if ending == ".json":
        refuse_dialect(path, sep, encoding)
        return read_json_stat(Path(path))
    if ending and ending not in TABLE_ENDINGS:
        check_readable(Path(path), READABLE_RELEASES)
    return open_source(path, sep=sep, encoding=encoding).columns()


def _rows(
    columns: dict[str, list[Any]], table: xr.DataArray, value: str | None, total: str, origin: str
) -> _Rows:
    """Which column is what."""
    if REPLICATE in columns:
        raise TableError(
            f"{origin}: holds several replicates, of which a release is one: leave out the rows of"
            f" the others, and the column {REPLICATE!r}"
        )
    labels = {name: columns[name] for name in map(str, table.dims) if name in columns}
    named = [name for name in (STATUS, INTERNAL_STATUS) if name in columns and name not in labels]
    others = [name for name in columns if name not in labels and name not in named]
    ends = [columns[name] for name in SIDES] if set(SIDES) < set(others) else []
    others = [name for name in others if not ends or name not in SIDES]
    if value is not None and value not in others:
        raise ParameterError(f"{origin}: no column {value!r} of values: there are {list(columns)}")
    if len(named) != 1 or len(others) != 1 or not columns[named[0]]:
        raise TableError(
            f"{origin}: a release has a row for each cell, and as columns variables of the table"
            f" {list(map(str, table.dims))}, one of values, and {STATUS!r}: the columns are"
            f" {', '.join(map(repr, columns))}"
        )
    if not labels:  # the grand total alone
        labels = {name: [total] * len(columns[named[0]]) for name in map(str, table.dims)}
    return _Rows(origin, labels, columns[others[0]], columns[named[0]], others[0], ends)


def _parts(
    rows: _Rows, table: xr.DataArray, total: str
) -> list[tuple[tuple[str, ...], Integers, Integers]]:
    """Margins with their rows, and which of its cells each row is."""
    levels = {name: (None, name, *hierarchies(table)[name]) for name in map(str, table.dims)}
    sizes = {
        name: len(level_codes(table, name)[0])
        for names in levels.values()
        for name in names
        if name
    }
    places = {name: _places(table, levels[name], total, rows.origin) for name in levels}
    found: dict[tuple[str, ...], dict[int, int]] = {}
    for row in range(len(rows.status)):
        for place in product(*(_place(rows, row, name, places[name], total) for name in levels)):
            kept = {name: code for name, code in place if name is not None}
            cell = 0
            for name, code in kept.items():
                cell = cell * sizes[name] + code
            found.setdefault(tuple(kept), {})[row] = cell
    return [
        (names, np.array(list(cells)), np.array(list(cells.values())))
        for names, cells in sorted(found.items(), key=lambda part: min(part[1]))
        if len(cells) >= prod(sizes[name] for name in names) or not _repeats(names, found)
    ]


def _repeats(names: tuple[str, ...], found: Mapping[tuple[str, ...], Mapping[int, int]]) -> bool:
    """Whether all rows of a margin are of others, too: of branches that end above the
    rest.
    """
    others = {row for other, cells in found.items() if other != names for row in cells}
    return others >= set(found[names])


def _place(
    rows: _Rows,
    row: int,
    variable: str,
    places: Mapping[str, Sequence[tuple[str | None, int]]],
    total: str,
) -> Sequence[tuple[str | None, int]]:
    """On which level the label of a row is, and its place there; on several where they
    are one cell.
    """
    label = str(rows.labels[variable][row])
    if label not in places:
        raise TableError(
            f"{rows.origin}: row {row + 1} has {variable}={legible(label)}, which is no category"
            f" of the table and not the total, {total!r}"
        )
    return places[label]


def _places(
    table: xr.DataArray, names: Sequence[str | None], total: str, origin: str
) -> dict[str, list[tuple[str | None, int]]]:
    """For each label of a column its levels, None for the total, and its place
    there.
    """
    places: dict[str, list[tuple[str | None, int]]] = {}
    groups: dict[str, set[int]] = {}
    for name in filter(None, names):
        codes = level_codes(table, name)[1]
        for code, label in enumerate(map(str, labels_along(table, name))):
            group = set(np.flatnonzero(codes == code).tolist())
            if groups.setdefault(label, group) != group:
                raise ParameterError(
                    f"{origin}: {legible(label)} of {name!r} is another category of its"
                    " column, too, so that the file does not say which; give it another name"
                )
            places.setdefault(label, []).append((name, code))
    places.setdefault(total, [(None, 0)])
    return places


def _held(
    rows: _Rows,
    part: tuple[tuple[str, ...], Integers, Integers],
    table: xr.DataArray,
    decimals: int,
) -> _Part:
    """One margin, complete and held against the true table."""
    names, at, cells = part
    totals, _ = margin_of(table, names)
    order = np.argsort(cells, kind="stable")
    at, cells = at[order], cells[order]
    if (again := np.flatnonzero(np.diff(cells) == 0)).size:
        row = int(at[again[0] + 1])
        raise TableError(f"{rows.origin}: {rows.label(row)} stands in more than one row")
    if len(cells) < totals.size:
        raise TableError(
            f"{rows.origin}: has {len(cells):,} of the {totals.size:,} cells of"
            f" {' x '.join(names) or 'the grand total'}; each must have a row, a suppressed one"
            " without a value"
        )
    published = np.zeros(totals.size, dtype=np.bool_)
    values = np.zeros(totals.size, dtype=np.int64)
    for cell, row in enumerate(at.tolist()):
        steps = _published_value(rows, row, decimals)
        if steps is not None:
            published[cell], values[cell] = True, steps
    differs = published & (values != totals.values.ravel())
    return _Part(names, at, published, values, differs)


def _published_value(rows: _Rows, row: int, decimals: int) -> int | None:
    """The value of a row in steps; None where it is suppressed."""
    status, value = str(rows.status[row]), rows.values[row]
    where = f"{rows.origin}: {rows.label(row)}"
    if status not in _KNOWN:
        raise TableError(f"{where} has the status {status!r:.60}; known are {', '.join(_KNOWN)}")
    if status not in _PUBLISHED:
        if not is_missing(value):
            raise TableError(f"{where} is {status}, and has a value, which gives it away")
        return None
    steps = signed_steps(value, decimals)
    if steps is None:
        rule = f"with at most {decimals} decimals" if decimals else "that is a whole number"
        raise TableError(f"{where} is published and must have a value {rule}, got {value!r:.60}")
    return steps


def _first_that_differs(rows: _Rows, parts: Sequence[_Part]) -> str | None:
    """The first cell whose published value is not the true one, if there is one."""
    wrong = np.concatenate([part.rows[part.differs] for part in parts])
    return rows.label(int(wrong.min())) if wrong.size else None


def _release(parts: Sequence[_Part], steps: xr.DataArray, decimals: int) -> Release:
    """The release of these margins; a table with all or some of its totals where only
    cells of it are suppressed.
    """
    table = steps / 10.0**decimals if decimals else steps
    hidden: dict[Any, xr.DataArray] = {}
    for part in parts:
        totals, _ = margin_of(steps, part.names)
        hidden[part.names] = totals.copy(data=~part.published.reshape(totals.shape))
    cells = tuple(map(str, steps.dims))
    whole = hidden.get(cells)
    others = [names for names in hidden if names != cells]
    if whole is not None and not any(hidden[names].any() for names in others):
        every = set(map(frozenset, every_margin(steps))) == set(map(frozenset, others))
        return Suppression(table, whole, totals=every or others, decimals=decimals)
    suppressed = {names: mask for names, mask in hidden.items() if mask.any()}
    return LinkedTables(table, list(hidden), suppressed=suppressed, decimals=decimals)


def _may_be_perturbed(
    rows: _Rows, parts: Sequence[_Part], steps: xr.DataArray, decimals: int
) -> bool:
    """Whether a file has just the counts of the table. That one has the true ones by
    chance must make no difference to anything: it would tell that it does.
    """
    alone = [part.names for part in parts] == [tuple(map(str, steps.dims))]
    counts = (steps >= 0).all() and (parts[0].values >= 0).all()
    return alone and not decimals and not rows.ends and bool(counts)


def _perturbed(rows: _Rows, cells: _Part, steps: xr.DataArray) -> xr.DataArray:
    """The table as it is released, of a file that publishes every cell of it."""
    released = steps.copy(data=cells.values.reshape(steps.shape)).rename(COUNT)
    released = released.assign_coords({REPLICATE: 0})
    released.attrs = {}
    if rows.value.endswith(f"_{MARK}"):
        released.attrs[MARK] = "the file that it was read from says so"
    return released


def _refuse_others(rows: _Rows, wrong: str, steps: xr.DataArray, *, whole: bool) -> NoReturn:
    """Raise `TableError` for published values that are not the true ones."""
    if whole:
        raise TableError(
            f"{rows.origin}: the value of {wrong} is not that of the table, and no cell is"
            " suppressed: a perturbed table is one of counts without totals and intervals, with a"
            f" row for each cell of {' x '.join(map(str, steps.dims))}"
        )
    raise TableError(
        f"{rows.origin}: the published value of {wrong} is not that of the table, and other cells"
        " are suppressed: a release of which cells are suppressed has the true values of the others"
    )
