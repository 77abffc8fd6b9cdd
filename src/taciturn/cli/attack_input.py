"""What ``attack`` reads: a table of counts or magnitudes, and suppressed cells.
`written` is how a CSV file is, its `sep` and `encoding`.
"""

from typing import TYPE_CHECKING, Any

import click

from taciturn.cli.files import read_counts
from taciturn.errors import TableError
from taciturn.files import TableFile

if TYPE_CHECKING:
    import xarray as xr

    from taciturn.attack.releases.base import Release

__all__ = ["read_file", "read_suppressed", "read_values"]


def read_values(
    path: TableFile, *, count: str, variables: tuple[str, ...] | None, decimals: int, **written: Any
) -> "xr.DataArray":
    """Read a table in long form whose values have at most so many decimals, or count
    microdata; numbers are read exactly as written.
    """
    from taciturn.tables.reading import read_steps

    if decimals == 0:
        return read_counts(path, count=count, variables=variables, **written)
    if variables is not None:
        raise click.UsageError(
            "--variables count microdata, and --decimals are those of magnitudes"
        )
    steps = read_steps(path, count, what="values", decimals=decimals, **written)
    return steps / 10.0**decimals


def read_file(path: TableFile, table: "xr.DataArray", *, total: str, decimals: int) -> "Release":
    """The release in a file, which leaves something to work out."""
    import taciturn as tc

    release = tc.publication.read_release(path, table, total=total, decimals=decimals)
    if not isinstance(release, tc.Suppression | tc.LinkedTables) or not release.unpublished_cells():
        raise TableError(
            f"{path}: every cell is published, as it is or perturbed: there is nothing to work out,"
            " as attack works on cells that are not"
        )
    if left_out := release.lacks(table):
        click.echo(
            f"taciturn: {path} has no {' or '.join(left_out)}: cells of the table, which are by"
            " that too, were not looked at; --linked and --suppressed do",
            err=True,
        )
    return release


def read_suppressed(
    path: TableFile, table: "xr.DataArray", projections: list[tuple[str, ...]], **written: Any
) -> tuple[tuple[str, ...], "xr.DataArray"]:
    """The projection whose variables are the columns of a file, and a mask of the cells
    in its rows.
    """
    from taciturn.schema import PRIMARY, PUBLISHED, SAFE, SECONDARY, STATUS, SUPPRESSED
    from taciturn.tables.margins import margin_of
    from taciturn.tables.sources import open_source

    known = (PUBLISHED, SUPPRESSED, SAFE, PRIMARY, SECONDARY)
    columns = open_source(path, **written).columns()
    statuses = columns.pop(STATUS, None) if STATUS not in table.coords else None
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
    for row, labels in enumerate(zip(*(columns[name] for name in names), strict=True)):
        cell = tuple(
            _place(path, row, name, label, categories[name])
            for name, label in zip(names, labels, strict=True)
        )
        if cell in seen:
            where = ", ".join(f"{name}={label}" for name, label in zip(names, labels, strict=True))
            raise TableError(f"{path}: row {row + 1} gives the cell {where} a second time")
        seen.add(cell)
        status = SUPPRESSED if statuses is None else statuses[row]
        if status not in known:
            raise TableError(
                f"{path}: a status is one of {', '.join(known)}; row {row + 1} has {status!r}"
            )
        mask[cell] = status not in (PUBLISHED, SAFE)
    return names, mask


def _positions(table: "xr.DataArray", dim: str) -> dict[str, int]:
    """Position of each category, by its text, since a file contains text only."""
    from taciturn.tables.labels import labels_of

    return {str(label): place for place, label in enumerate(labels_of(table[dim]))}


def _place(path: TableFile, row: int, dim: str, label: Any, categories: dict[str, int]) -> int:
    place = categories.get(str(label))
    if place is None:
        raise TableError(
            f"{path}: row {row + 1} has {dim}={label!s:.60}, which is no category of the table"
        )
    return place
