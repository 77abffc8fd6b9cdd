"""What a release of any kind publishes: its tables, with the status of each cell."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import xarray as xr

from taciturn.attack.releases.base import Release
from taciturn.errors import ParameterError
from taciturn.perturbation.replicates import MARK
from taciturn.schema import (
    COUNT,
    INTERNAL_STATUS,
    PUBLISHED,
    REPLICATE,
    SAFE,
    SIDES,
    STATUS,
    SUPPRESSED,
)
from taciturn.suppression.pattern import SuppressionPattern
from taciturn.suppression.protected import ProtectedTable
from taciturn.tables.checks import check_table
from taciturn.tables.margins import without_suppressed

__all__ = ["Published", "Releasable", "published"]

type Releasable = ProtectedTable | SuppressionPattern | Release | xr.DataArray
"""All that can be written for publication."""

type Table = tuple[xr.DataArray, xr.DataArray]

_MEAN: Final = "its replicates together come close to the true table"
_INTERNAL_NOTE: Final = (
    "the status tells primary cells from secondary ones, and with the rule for"
    " primary cells that gives away what range their values are in"
)


@dataclass(frozen=True, eq=False, repr=False)
class Published:
    """Tables as they are written.

    Attributes
    ----------
    tables : sequence of pairs of DataArray
        For each margin the values, float64, NaN where suppressed, and the status of
        each cell.
    cells : DataArray
        The table that they are totals of, for its labels and levels.
    intervals : sequence of Dataset
        For each of these, ``lower`` and ``upper``, missing where open; empty if there
        are none.
    value, status : str
        Names of the columns of values and of the status.
    decimals : int
        Decimal places of the values.
    why_internal : str
        Why this is not for release; empty if it is.
    """

    tables: Sequence[Table]
    cells: xr.DataArray
    value: str
    status: str
    decimals: int
    why_internal: str = ""
    intervals: Sequence[xr.Dataset] = ()

    @property
    def numbers(self) -> list[str]:
        """The names of the columns of numbers."""
        return [self.value, *(SIDES if self.intervals else ())]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.tables):,} tables of {self.value!r})"


def published(
    release: Releasable, *, value: str | None, internal: bool, intervals: bool = False
) -> Published:
    """What a release publishes; with `internal` the status that is not for release, and
    what must not be released at all; with `intervals` those of suppressed cells.
    """
    pattern = release.pattern if isinstance(release, ProtectedTable) else release
    if isinstance(pattern, SuppressionPattern) and pattern.not_for_release and not internal:
        raise ParameterError(
            f"release must not be released: {pattern.not_for_release}; give the search a longer"
            " time_limit, or write it with internal=True"
        )
    if intervals:
        return _with_intervals(published(release, value=value, internal=internal), pattern)
    match release:
        case ProtectedTable():
            tables = [(table["value"], table[STATUS]) for table in release.tables.values()]
            status = release.pattern.status if internal else {}
            cells, _ = tables[0]
            return _suppressed(tables, cells, value or release.value, release.decimals, status)
        case SuppressionPattern():
            return _of_release(release.release, value, release.status if internal else {})
        case Release():
            return _of_release(release, value, {})
        case xr.DataArray():
            return _perturbed(release, value or str(release.name or COUNT), internal=internal)
    raise ParameterError(
        "release must be a ProtectedTable, a SuppressionPattern, a Release or a table that a"
        f" protection method returned, got {type(release).__name__}"
    )


def _with_intervals(what: Published, pattern: Releasable) -> Published:
    """The same, with what everybody can work out of each cell."""
    if not isinstance(pattern, SuppressionPattern):
        raise ParameterError(
            "intervals are those of a ProtectedTable or a SuppressionPattern, got"
            f" {type(pattern).__name__}"
        )
    found = {
        frozenset(names): table for names, table in pattern.intervals(progressbar=False).items()
    }
    sides = []
    for values, _ in what.tables:
        dims = tuple(map(str, values.dims))
        known = found.get(frozenset(dims), xr.Dataset(dict.fromkeys(SIDES, values)))
        ends = known[list(SIDES)].transpose(*dims)
        sides.append(ends.where(np.isfinite(ends)))
    return replace(what, intervals=sides)


def _of_release(
    release: Release, value: str | None, status: Mapping[tuple[str, ...], xr.DataArray]
) -> Published:
    for held in vars(release).values():
        if isinstance(held, xr.DataArray) and MARK in held.attrs and not status:
            raise ParameterError(
                f"release must not be released: its table is {held.attrs[MARK]}; draw that without"
                " random_seed"
            )
    grids = release.published_tables()
    if not grids:
        raise ParameterError(f"release must publish a table; {type(release).__name__} has none")
    decimals = grids[0].decimals
    tables = [(grid.values, _status(grid.values)) for grid in grids]
    name = value or (COUNT if decimals == 0 else "value")
    return _suppressed(tables, release.system.published, name, decimals, status)


def _status(values: xr.DataArray) -> xr.DataArray:
    return values.copy(data=np.where(values.isnull(), SUPPRESSED, PUBLISHED))


def _suppressed(
    tables: list[Table],
    cells: xr.DataArray,
    value: str,
    decimals: int,
    office: Mapping[tuple[str, ...], xr.DataArray],
) -> Published:
    """Tables with the status that is for release, or with that of the office where it
    is given; what it does not name is a total that is published in any case.
    """
    if not office:
        return Published(tables, cells, value, STATUS, decimals)
    told = {frozenset(names): status for names, status in office.items()}
    marked = [
        (
            values,
            told.get(frozenset(map(str, values.dims)), xr.full_like(values, SAFE, dtype=object)),
        )
        for values, _ in tables
    ]
    return Published(marked, cells, value, INTERNAL_STATUS, decimals, _INTERNAL_NOTE)


def _perturbed(release: xr.DataArray, value: str, *, internal: bool) -> Published:
    """A table as a protection method returns it: one replicate, drawn without a seed,
    unless it is written for the office.
    """
    if REPLICATE not in release.coords:
        raise ParameterError(
            "release must be what a protection method returned, with its coordinate 'replicate':"
            f" this table has {list(map(str, release.coords))}, and may be the true one"
        )
    several = release.sizes.get(REPLICATE, 1) > 1
    if several and not internal:
        raise ParameterError(
            f"release has {release.sizes[REPLICATE]:,} replicates, and {_MEAN}: choose one with"
            " isel(replicate=0), or write all of them with internal=True"
        )
    why = [*([str(release.attrs[MARK])] if MARK in release.attrs else []), *[_MEAN] * several]
    if why and not internal:
        raise ParameterError(
            f"release must not be released: {why[0]}; draw it without random_seed, or write it"
            " with internal=True"
        )
    if not several and REPLICATE in release.dims:
        release = release.isel(replicate=0)
    marks = {name: held for name, held in release.coords.items() if name == SUPPRESSED}
    counts = check_table(release.drop_vars(marks), name="release", draws=several)
    values = without_suppressed(counts.astype(np.float64).assign_coords(marks))
    column = f"{value}_{MARK}" if why else value
    return Published([(values, _status(values))], values, column, STATUS, 0, "; ".join(why))
