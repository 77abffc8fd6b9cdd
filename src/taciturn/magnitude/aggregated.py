"""Magnitude tables that are aggregated already: a row for each cell and total."""

from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from os import PathLike
from typing import Any, Final

import numpy as np
import xarray as xr

from taciturn.errors import ParameterError, TableError
from taciturn.magnitude.contradictions import (
    Margins,
    Steps,
    refuse_contradictions,
    refuse_other_totals,
    refuse_other_waivers,
)
from taciturn.magnitude.roles import RESERVED
from taciturn.magnitude.unnamed import refuse_names_of_totals, refuse_sums
from taciturn.tables.hierarchies import Hierarchies, LevelRows, attach, read_levels
from taciturn.tables.labels import check_variables, refuse_large_table
from taciturn.tables.margins import (
    hierarchies as levels_above,
    labels_along,
    margin_of,
)
from taciturn.tables.sources import open_source
from taciturn.tables.spelling import check_spelling, legible, seen
from taciturn.tables.values import is_missing, whole_steps
from taciturn.validate import name_of, names_of, whole_number

__all__ = ["Columns", "margins_of_columns", "read_margins"]

_MAX_DECIMALS: Final = 9


def read_margins(
    cells: str | PathLike[str] | Any,
    variables: str | Sequence[str],
    value: str,
    *,
    contributors: str,
    largest: Sequence[str] = (),
    waiver: tuple[str, str] | None = None,
    total: str = "Total",
    hierarchies: Hierarchies | None = None,
    decimals: int = 0,
    sep: str | None = None,
    encoding: str | None = None,
) -> dict[tuple[str, ...], xr.Dataset]:
    """Read a magnitude table that is aggregated already, with its totals.

    Parameters
    ----------
    cells : path, pandas or polars DataFrame, pyarrow Table, relation of DuckDB
        A row for each cell: of the table, and of each total that is to be released. A
        cell without a row is empty; of a group that has a row, and none of its
        categories, all are.
    variables : str or sequence of str
        The columns of labels. A level above a variable stands in its column.
    value : str
        The column of totals, none of which is negative.
    contributors : str
        The column of how many contribute to each cell, in whole numbers. They may be
        sums of weights that were rounded: a total may then have one contributor more
        than its parts together for every two of them that are not empty, and such a
        table is not told from one that is wrong by as much. With `waiver` there are no
        weights, and none more. The `largest` must go with the number as it is given: no
        more of them are above 0 than contribute, they are the whole total where no more
        contribute than there are columns, and otherwise those who are left can make up
        the rest with no more each than the last of them. With weights that were rounded
        down this may not hold, and the table is refused.
    largest : sequence of str
        The columns of the largest contributions, from the largest of all on; 0 or empty
        beyond the number of contributors. A rule about the largest `n` needs `n` of
        them.
    waiver : pair of str, optional
        The columns of how many contributors have waived protection, and of the largest
        contribution of one who has not; 0 or empty where all have.
    total : str
        The label of a total, the same for all variables.
    hierarchies : mapping of str to file or data frame, optional
        Levels above some variables, as in `with_levels`.
    decimals : int
        Decimal places of the values, from 0 to 9.
    sep, encoding : str, optional
        Those of a CSV file, as in `read_table`.

    Returns
    -------
    dict of tuple of str to Dataset
        As of `tabulate_margins`, for the table and the margins of which there are rows.
        ``entropy`` is missing, as it does not follow from the largest contributions.

    Raises
    ------
    TableError
        A total that is not the sum of its parts; a cell that is given twice; a label
        that is no category; a value that is negative, missing or has more decimals;
        largest contributions that do not descend, add up to more than the total, are
        more than contribute, or leave more of the total to others than these can
        contribute; a total with fewer contributors, or a smaller largest
        contribution, than one of its parts, or with more contributors than all, so that
        cells of a value of 0 need their rows, too; a total of which some of the largest
        contributions are together more than as many of each of its parts; waivers that
        cannot be, as a contributor has waived in a total only if it has in each part; a
        variable that has the name of a result. A category that may be a total under
        another label: it is written as `total` but for case or spaces, or, of a
        variable without a row of `total`, it has the name of a total, such as ``All``,
        or is the sum of all other categories wherever it stands, unless that may well
        be by chance.
    ParameterError
        A `waiver` that is no pair of columns, a column in two roles, or a `total` that
        is no text.
    FileFormatError
        As `tabulate_margins`.

    See Also
    --------
    taciturn.suppression.protect_margins : Protects what this returns.
    read_argus : Reads a table with the metadata of τ-ARGUS.

    Examples
    --------
    >>> import pandas as pd, taciturn as tc
    >>> cells = pd.DataFrame(
    ...     [("A", 60, 3, 50), ("B", 40, 9, 8), ("Total", 100, 12, 50)],
    ...     columns=["area", "sales", "firms", "first"],
    ... )
    >>> tables = tc.magnitude.read_margins(
    ...     cells, "area", "sales", contributors="firms", largest=["first"]
    ... )
    >>> found = tc.sensitive_cells(tables["area",], tc.Dominance(1, 0.75))
    >>> found["sensitive"].values.tolist()
    [True, False]
    """
    names = names_of(
        list(variables) if isinstance(variables, tuple | list) else variables, "variables"
    )
    total = name_of(total, "total")
    decimals = whole_number(decimals, "decimals", least=0, most=_MAX_DECIMALS)
    waived = _waiver(waiver)
    levels = read_levels(hierarchies, names, sep=sep, encoding=encoding)
    columns = Columns(tuple(names), value, contributors, tuple(largest), waived)
    columns.check(levels)
    source = open_source(cells, sep=sep, encoding=encoding)
    source.require(columns.all)
    return margins_of_columns(
        source.columns(), columns, levels, total=total, decimals=decimals, origin=source.origin
    )


@dataclass(frozen=True)
class Columns:
    """Which column of a table of cells plays which part."""

    variables: tuple[str, ...]
    value: str
    contributors: str
    largest: tuple[str, ...]
    waiver: tuple[str, ...] = ()

    @property
    def all(self) -> list[str]:
        """Their names."""
        return [*self.variables, self.value, self.contributors, *self.largest, *self.waiver]

    def check(self, levels: Sequence[LevelRows]) -> None:
        """Raise `TableError` unless variables and the levels above them can be named as
        they are, `ParameterError` unless each column plays one part.
        """
        above = [name for rows in levels for name in rows.levels]
        check_variables([*self.variables, *above], reserved=RESERVED)
        twice = next((name for name, times in Counter(self.all).items() if times > 1), None)
        if twice is not None:
            raise ParameterError(f"the column {twice!r} is given in two roles")


def margins_of_columns(
    cells: Mapping[str, Sequence[Any]],
    columns: Columns,
    levels: Sequence[LevelRows],
    *,
    total: str,
    decimals: int,
    origin: str,
    repeats: Container[int] = (),
) -> dict[tuple[str, ...], xr.Dataset]:
    """The margins of cells that were read, checked as by `read_margins`, without those
    rows that repeat a cell.
    """
    labels = {name: _labels(cells[name], name, origin) for name in columns.variables}
    frame = attach(_frame(labels, total, levels, origin), levels)
    counted = _steps(cells[columns.contributors], columns.contributors, 0, origin)
    rows = _margins(labels, frame, counted, total, origin, repeats)

    def filled(name: str, places: int) -> Steps:
        given = [0 if is_missing(raw) else raw for raw in cells[name]]
        return _steps(given, name, places, origin)

    amounts = [_steps(cells[columns.value], columns.value, decimals, origin)]
    amounts += [filled(name, decimals) for name in columns.largest]
    waived = [filled(*each) for each in zip(columns.waiver, (0, decimals), strict=False)]
    refuse_contradictions(counted, amounts, [columns.value, *columns.largest], origin)
    if waived:
        blank = np.array([is_missing(raw) for raw in cells[columns.waiver[1]]])
        refuse_other_waivers(counted, amounts, waived, blank, columns.waiver, origin)
    named = (*columns.largest, *columns.waiver[1:])
    sizes = dict(zip(named, [*amounts[1:], *waived[1:]], strict=True))
    waivers = dict(zip(columns.waiver[:1], waived, strict=False))
    refuse_other_totals(rows, counted, amounts[0], sizes, waivers, frame, origin, decimals)
    refuse_sums(labels, rows[columns.variables], counted, amounts[0], frame, total, origin)
    return {
        margin: _dataset(margin, at, frame, counted, amounts, waived, columns.value, decimals)
        for margin, at in sorted(rows.items(), key=lambda part: -len(part[0]))
    }


def _waiver(given: Any) -> tuple[str, ...]:
    """The two columns that say who waived protection, or none."""
    if given is None:
        return ()
    names = names_of(list(given) if isinstance(given, tuple | list) else given, "waiver")
    if len(names) != 2:
        raise ParameterError(
            "waiver must name two columns, of how many have waived protection and of the largest"
            f" contribution of one who has not, got {names}"
        )
    return tuple(names)


def _labels(column: Sequence[Any], name: str, origin: str) -> list[str]:
    for row, label in enumerate(column, 1):
        if is_missing(label) or not str(label).strip():
            raise TableError(f"a label is missing: {name!r} in row {row} of {origin}")
    texts = list(map(str, column))
    check_spelling(list(dict.fromkeys(texts)), lambda at: f"label {at + 1} of {name!r} in {origin}")
    return texts


def _frame(
    labels: Mapping[str, list[str]], total: str, levels: Sequence[LevelRows], origin: str
) -> xr.DataArray:
    """An empty table over the categories: labels that are no total and no level."""
    coords = {}
    for name, column in labels.items():
        above = [rows for rows in levels if rows.variable == name]
        others = {total}
        for rows in above:
            groups = {str(label) for labels in rows.levels.values() for label in labels}
            others |= groups - set(map(str, rows.categories))
        found = [each for each in dict.fromkeys(column) if each not in others]
        if not found:
            raise TableError(
                f"{origin}: {name!r} has no label of a cell, but totals only; there must be a row"
                " for each cell of the table, too"
            )
        refuse_names_of_totals(name, column, found, total, origin)
        coords[name] = [*found, *_of_empty_groups(above, found, set(column) - {total})]
    shape = [len(each) for each in coords.values()]
    refuse_large_table(shape)
    return xr.DataArray(np.zeros(shape, dtype=np.int64), dims=list(coords), coords=coords)


def _of_empty_groups(
    above: Sequence[LevelRows], categories: Sequence[str], named: Container[str]
) -> list[str]:
    """The categories of groups that are named, and of which no category is: all of them
    are empty.
    """
    present, found = set(map(seen, categories)), dict[str, None]()
    for rows in above:
        for labels in rows.levels.values():
            members: dict[str, list[str]] = {}
            for label, group in zip(rows.categories, labels, strict=True):
                members.setdefault(str(group), []).append(seen(str(label)))
            for group, own in members.items():
                if group in named and present.isdisjoint(own):
                    found |= dict.fromkeys(own)
    return list(found)


def _margins(
    labels: Mapping[str, list[str]],
    frame: xr.DataArray,
    counted: Steps,
    total: str,
    origin: str,
    repeats: Container[int],
) -> Margins:
    """The row of each cell of each margin; a cell that is one on several levels, as a
    branch ends above the others, has the same row on all. A margin is there if a row is
    of it and of no other; and for rows of several, none of which is, the finest that
    has a row for each cell with contributors.
    """
    places: dict[str, dict[str, list[tuple[str, int]]]] = {name: {} for name in labels}
    sizes = {}
    for dim, names in levels_above(frame).items():
        for name in (dim, *names):
            categories = labels_along(frame, name)
            sizes[name] = len(categories)
            for place, label in enumerate(categories):
                places[dim].setdefault(str(label), []).append((name, place))
    found: Margins = {tuple(map(str, frame.dims)): {}}
    there, shared = set(found), []
    for row, given in enumerate(zip(*labels.values(), strict=True)):
        if row in repeats:
            continue
        choices = [
            places[dim][label] for dim, label in zip(labels, given, strict=True) if label != total
        ]
        margins = []
        for at in product(*choices):
            margin = tuple(name for name, _ in at)
            margins.append(margin)
            shape = [sizes[name] for name in margin]
            cell = int(np.ravel_multi_index([place for _, place in at], shape)) if shape else 0
            if found.setdefault(margin, {}).setdefault(cell, row) != row:
                words = ", ".join(
                    f"{dim}={label}" for dim, label in zip(labels, given, strict=True)
                )
                raise TableError(f"a cell can be given once: row {row + 1} of {origin}, {words}")
        if len(margins) == 1:
            there.add(margins[0])
        else:
            shared.append(margins)
    table = found[tuple(map(str, frame.dims))]
    filled = [cell for cell, row in table.items() if counted[row]]

    def is_complete(margin: tuple[str, ...]) -> bool:
        return set(margin_of(frame, margin)[1][filled].tolist()) <= set(found[margin])

    for margins in shared:
        if there.isdisjoint(margins):
            there.add(next(filter(is_complete, margins), margins[0]))
    return {margin: at for margin, at in found.items() if margin in there}


def _steps(column: Sequence[Any], name: str, decimals: int, origin: str) -> Steps:
    """Numbers in whole steps."""
    steps = np.zeros(len(column), dtype=np.int64)
    for row, raw in enumerate(column):
        number = whole_steps(raw, decimals)
        if number is None:
            holds = "is blank" if is_missing(raw) else f"holds {legible(str(raw))}"
            raise TableError(
                f"{name!r} must be numbers from 0 with at most {decimals} decimals: row {row + 1}"
                f" of {origin} {holds}"
            )
        steps[row] = number
    return steps


def _dataset(
    margin: tuple[str, ...],
    at: Mapping[int, int],
    frame: xr.DataArray,
    counted: Steps,
    amounts: Sequence[Steps],
    waived: Sequence[Steps],
    value: str,
    decimals: int,
) -> xr.Dataset:
    """One margin as `tabulate_margins` gives it."""
    template, _ = margin_of(frame, margin)
    chosen = list(at.values())

    def placed(steps: Steps, by: float = 1.0) -> Any:
        flat = np.zeros(template.size)
        flat[list(at)] = steps[chosen] / by
        return flat.reshape(template.shape)

    step = 10.0**decimals
    total = placed(amounts[0], step)
    sizes = [placed(each, step) for each in amounts[1:]]
    largest = np.stack(sizes, axis=-1) if sizes else np.zeros((*template.shape, 0))
    with np.errstate(invalid="ignore", divide="ignore"):
        share = largest / total[..., None]
    ranked = (*margin, "rank")
    waivers: dict[str, Any] = {}
    if waived:
        waivers["waivers"] = (margin, placed(waived[0]).astype(np.int64))
        waivers["unwaived"] = (margin, placed(waived[1], step))
    return xr.Dataset(
        {
            **waivers,
            "total": (margin, total),
            "absolute_total": (margin, total),
            "contributors": (margin, placed(counted).astype(np.int64)),
            "largest": (ranked, largest),
            "share": (ranked, share),
            "entropy": (margin, np.full(template.shape, np.nan)),
        },
        coords={**template.coords, "rank": np.arange(1, len(sizes) + 1)},
        attrs={"value": value, "decimals": decimals},
    )
