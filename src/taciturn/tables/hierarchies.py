"""Levels above a variable, such as the sectors of trades: from columns of a file or a
data frame, from nested codes, and from hierarchy files of τ-ARGUS.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
import xarray as xr

from taciturn.errors import FileFormatError, ParameterError, TableError
from taciturn.files import HIERARCHY_ENDINGS, StandardInput
from taciturn.schema import RESERVED_NAMES
from taciturn.tables.checks import require_array
from taciturn.tables.sources import open_source
from taciturn.tables.sources.lines import read_lines
from taciturn.tables.spelling import legible, seen
from taciturn.tables.values import is_missing
from taciturn.validate import UTF_8, check_encoding, is_whole, quoted

__all__ = [
    "Hierarchies",
    "Hierarchy",
    "LevelRows",
    "attach",
    "branches_of_codes",
    "branches_of_hrc",
    "levels_of_branches",
    "nested_codes",
    "read_hrc",
    "read_levels",
    "with_levels",
]

type Hierarchy = str | PathLike[str] | Any
"""Levels above a variable: a .hrc file, or a file or data frame of columns."""

type Hierarchies = Mapping[str, Hierarchy]
"""The levels above each of some variables."""

_HRC: Final = HIERARCHY_ENDINGS[-1]


@dataclass(frozen=True)
class LevelRows:
    """A row for each category of a variable: its labels on all levels."""

    origin: str
    variable: str
    categories: list[Any]
    levels: dict[str, list[Any]]


def with_levels(table: xr.DataArray, hierarchies: Hierarchies) -> xr.DataArray:
    """A table with levels above its variables, as further coordinates.

    Everything that takes a table then knows its levels: `suppress`, `Suppression` and
    `LinkedTables` publish their totals, and margins are named by them.

    Parameters
    ----------
    table : DataArray
        A table of counts or magnitudes.
    hierarchies : mapping of str to file or data frame
        By variable, where its levels come from: a file `.hrc` of τ-ARGUS, as
        `read_hrc` reads it, or a CSV or Parquet file or a data frame with a row for
        each category: a column called like the variable, and one for each level; or a
        list of several. Rows of further categories are left out.

    Returns
    -------
    DataArray

    Raises
    ------
    TableError
        A category without a row, with two, or without a label on a level; a level whose
        name is taken; a label that is also that of other categories on another level,
        as their totals would be called alike.
    ParameterError
        A variable that the table does not have.
    FileFormatError
        A file that is missing or malformed.

    Notes
    -----
    Branches may end on different levels: a category that belongs to no group of a level
    is a group of its own there, with its own label. What is then called alike is one
    cell, which files hold once.

    Examples
    --------
    >>> import pandas as pd, xarray as xr, taciturn as tc
    >>> table = xr.DataArray([5, 1, 2], coords={"area": ["A1", "A2", "B"]}, dims="area")
    >>> regions = pd.DataFrame({"area": ["A1", "A2", "B"], "region": ["A", "A", "B"]})
    >>> tc.tables.with_levels(table, {"area": regions})["region"].values.tolist()
    ['A', 'A', 'B']
    """
    require_array(table, name="table")
    return attach(table, read_levels(hierarchies, tuple(map(str, table.dims))))


def read_hrc(
    path: str | PathLike[str], variable: str, *, mark: str = "@", encoding: str | None = None
) -> pd.DataFrame:
    r"""Read a hierarchy file of τ-ARGUS: a line for each code, after the one that it
    belongs to, with as many leading marks as there are levels above it.

    Parameters
    ----------
    path : path
        The file, which ends in `.hrc`.
    variable : str
        The variable whose categories are the codes without others below them.
    mark : str
        What leads the lines, once for each level.
    encoding : str, optional
        UTF-8 by default.

    Returns
    -------
    DataFrame
        A row for each such code: the column `variable`, and ``<variable>_1``,
        ``<variable>_2``, ... from the coarsest level down. A code on a shallower branch
        is its own group on the levels below it. A level that has a single code, such as
        a total, is left out.

    Raises
    ------
    FileFormatError
        The file is missing, empty or no text; a line without a code, more than one
        level below the line before it, or with a code that stood before.
    ParameterError
        A `mark` that is empty.

    References
    ----------
    τ-ARGUS Version 4.1, User's Manual, hierarchical code lists.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> import taciturn as tc
    >>> path = Path(mkdtemp()) / "area.hrc"
    >>> _ = path.write_text("A\n@A1\n@A2\nB\n")
    >>> tc.tables.read_hrc(path, "area").values.tolist()
    [['A1', 'A'], ['A2', 'A'], ['B', 'B']]
    """
    return levels_of_branches(branches_of_hrc(path, mark, encoding), variable)


def nested_codes(codes: Sequence[Any], widths: Sequence[int], variable: str) -> pd.DataFrame:
    """Levels from codes whose first characters name the groups that they belong to.

    Parameters
    ----------
    codes : sequence of str
        The categories.
    widths : sequence of int
        How many characters each level adds, the coarsest first: ``(2, 1, 1)`` for codes
        of four. A shorter code ends on a level of its own.
    variable : str
        The variable.

    Returns
    -------
    DataFrame
        As of `read_hrc`.

    Raises
    ------
    ParameterError
        Widths that are not whole numbers of at least 1.
    TableError
        A code whose length is that of no level.

    Examples
    --------
    >>> import taciturn as tc
    >>> tc.tables.nested_codes(["101", "102", "20"], (2, 1), "trade").values.tolist()
    [['101', '10'], ['102', '10'], ['20', '20']]
    """
    return levels_of_branches(branches_of_codes(codes, widths, variable), variable)


def branches_of_codes(
    codes: Sequence[Any], widths: Sequence[int], variable: str
) -> list[list[str]]:
    """The codes from the coarsest down to each of those of `nested_codes`."""
    if not widths or not all(is_whole(width) and width >= 1 for width in widths):
        raise ParameterError(
            f"widths must be whole numbers of at least 1, such as (2, 1, 1), got {quoted(widths)}"
        )
    ends = list(accumulate(map(int, widths)))
    texts = list(dict.fromkeys(map(str, codes)))
    for text in texts:
        if len(text) not in ends:
            raise TableError(
                f"{variable}={legible(text)} has {len(text)} characters: codes of the levels have"
                f" {', '.join(map(str, ends))}"
            )
    return [[text[:end] for end in ends if end <= len(text)] for text in texts]


def branches_of_hrc(file: str | PathLike[str], mark: str, encoding: str | None) -> list[list[str]]:
    """The codes from the coarsest down to each code that has none below it."""
    if not mark.strip():
        raise ParameterError(
            f"mark must be text that leads the lines, such as '@', got {quoted(mark)}"
        )
    path, given = Path(fspath(file)), check_encoding(encoding) if encoding is not None else UTF_8
    branches: list[list[str]] = []
    known: dict[str, int] = {}
    branch: list[str] = []
    for number, line in read_lines(path, _HRC, given):
        where, code, depth = f"{path}: line {number}", line, 0
        while code.startswith(mark):
            code, depth = code[len(mark) :], depth + 1
        code = seen(code)
        if code.startswith(mark):
            raise FileFormatError(f"{where}, {legible(line)}, has something before its {mark!r}")
        if not code:
            raise FileFormatError(
                f"{where} has no code: a line is a code after {mark!r} for each level above it"
            )
        if depth > len(branch):
            raise FileFormatError(
                f"{where}, {legible(line)}, has {depth} marks {mark!r}: at most {len(branch)} can"
                " follow the line before"
            )
        if code in known:
            raise FileFormatError(
                f"{where} gives {legible(code)} a second time, after line {known[code]}"
            )
        known[code] = number
        if branches and depth == len(branch):
            branches.pop()  # the code before has others below it
        branch = [*branch[:depth], code]
        branches.append(branch)
    if not branches:
        raise FileFormatError(f"{path}: holds no codes")
    return branches


def levels_of_branches(branches: list[list[str]], variable: str) -> pd.DataFrame:
    """A row for each branch; where it ends, its last code is repeated. A level that has
    a single code is left out.
    """
    levels = max(map(len, branches), default=1) - 1
    columns = {variable: [branch[-1] for branch in branches]}
    for level in range(levels):
        labels = [branch[min(level, len(branch) - 1)] for branch in branches]
        if len(set(labels)) > 1:
            columns[f"{variable}_{level + 1}"] = labels
    return pd.DataFrame(columns)


def read_levels(
    hierarchies: Any,
    variables: Sequence[str],
    *,
    sep: str | None = None,
    encoding: str | None = None,
) -> list[LevelRows]:
    """The levels above some variables, from files and data frames; `sep` and `encoding`
    are those of files of text.
    """
    if hierarchies is None:
        return []
    if not isinstance(hierarchies, Mapping):
        raise ParameterError(
            "hierarchies must be files or data frames by variable, such as {'area': 'area.hrc'},"
            f" got {quoted(hierarchies)}"
        )
    found = []
    taken = {*variables, *RESERVED_NAMES}
    for variable, given in hierarchies.items():
        if variable not in variables:
            raise ParameterError(
                f"hierarchies: no variable {variable!r}: there are {list(variables)}"
            )
        for each in given if isinstance(given, list | tuple) else [given]:
            rows = _rows(each, variable, sep, encoding)
            for level in rows.levels:
                if level in taken:
                    raise TableError(f"{rows.origin}: {level!r} cannot name a level: it is taken")
            taken.update(rows.levels)
            found.append(rows)
    return found


def _rows(given: Any, variable: str, sep: str | None, encoding: str | None) -> LevelRows:
    if _ending(given) == _HRC:
        frame, origin = read_hrc(given, variable, encoding=encoding), str(given)
        columns: dict[str, list[Any]] = {str(name): frame[name].tolist() for name in frame}
    else:
        text = isinstance(given, StandardInput) or _ending(given) == ".csv"
        source = open_source(given, sep=sep, encoding=encoding) if text else open_source(given)
        columns, origin = source.columns(), source.origin
    if variable not in columns or len(columns) < 2:
        raise TableError(
            f"{origin}: a hierarchy has the column {variable!r} and one for each level above it:"
            f" the columns are {', '.join(map(repr, columns))}"
        )
    levels = {str(name): labels for name, labels in columns.items() if name != variable}
    return LevelRows(origin, variable, columns[variable], levels)


def _ending(given: Any) -> str:
    return Path(fspath(given)).suffix.lower() if isinstance(given, str | PathLike) else ""


def attach(table: xr.DataArray, hierarchies: Sequence[LevelRows]) -> xr.DataArray:
    """A table with levels that were read."""
    for rows in hierarchies:
        categories = table.get_index(rows.variable).tolist()
        row_of = _row_of(rows, [seen(str(label)) for label in categories])
        levels = {name: [_label(rows, name, row) for row in row_of] for name in rows.levels}
        for level in levels:
            if level in table.coords:
                raise TableError(
                    f"{rows.origin}: {level!r} cannot name a level: the table has it already"
                )
        before = {
            str(name): list(map(str, level.values.tolist()))
            for name, level in table.coords.items()
            if level.dims == (rows.variable,)
        }
        _refuse_alike(rows, before | levels)
        table = table.assign_coords(
            {name: (rows.variable, np.array(labels)) for name, labels in levels.items()}
        )
    return table


def _row_of(rows: LevelRows, categories: list[str]) -> list[int]:
    """The row of each category, as its label is seen."""
    wanted, found = set(categories), dict[str, int]()
    for row, given in enumerate(rows.categories):
        label = seen(str(given))
        if label in found:
            raise TableError(
                f"{rows.origin}: row {row + 1} gives {rows.variable}={legible(label)} a second time"
            )
        if label in wanted:
            found[label] = row
    lacking = next((label for label in categories if label not in found), None)
    if lacking is not None:
        groups = {seen(str(label)) for labels in rows.levels.values() for label in labels}
        is_group = (
            " which is a group of others there, and no category;" if lacking in groups else ""
        )
        raise TableError(
            f"{rows.origin}: no row for {rows.variable}={legible(lacking)};{is_group} each category"
            f" of {rows.variable!r} must have one"
        )
    return [found[label] for label in categories]


def _label(rows: LevelRows, level: str, row: int) -> str:
    label = rows.levels[level][row]
    if is_missing(label) or not seen(str(label)):
        raise TableError(
            f"{rows.origin}: row {row + 1} has no {level!r} for"
            f" {rows.variable}={legible(str(rows.categories[row]))}; where a branch ends there, it"
            " is that label again"
        )
    return str(label)


def _refuse_alike(rows: LevelRows, levels: Mapping[str, list[str]]) -> None:
    """Raise `TableError` where a label has different categories on two levels."""
    first: dict[str, tuple[str, set[int]]] = {}
    for name, labels in levels.items():
        members: dict[str, set[int]] = {}
        for at, label in enumerate(labels):
            members.setdefault(label, set()).add(at)
        for label, held in members.items():
            other, before = first.setdefault(label, (name, held))
            if before != held:
                raise TableError(
                    f"{rows.origin}: {legible(label)} of {other!r} and of {name!r} stand for"
                    " different categories, whose totals would be called alike: give one another"
                    " name"
                )
