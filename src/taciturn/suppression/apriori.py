"""What is known of single cells before a search: which must be published or suppressed,
what they cost, and how much protection they need.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from taciturn.attack.solver import Floats
from taciturn.attack.system import Booleans
from taciturn.errors import FileFormatError, ParameterError, TableError
from taciturn.files import APRIORI_ENDINGS
from taciturn.schema import MAX_COUNT, PUBLISHED, SAFE, STATUS, SUPPRESSED
from taciturn.suppression.published import PublishedCells
from taciturn.suppression.task import Required
from taciturn.tables.margins import hierarchies, labels_along
from taciturn.tables.sources import open_source
from taciturn.tables.sources.lines import fields_of, read_lines
from taciturn.tables.spelling import legible, seen
from taciturn.tables.values import is_missing, is_perhaps_thousands, number_hint, real_value
from taciturn.validate import UTF_8, check_encoding, quoted

__all__ = ["Apriori", "Instructions", "instructions_of", "read_apriori"]

type Apriori = str | PathLike[str] | Any
"""Instructions for single cells: a file, or a data frame with a row for each."""

SENSITIVE: Final = "sensitive"
_STATUSES: Final = (SENSITIVE, SAFE, PUBLISHED, SUPPRESSED)
_ACTIONS: Final = {"u": SENSITIVE, "s": SAFE, "p": PUBLISHED}
_NUMBERS: Final = {"c": ("cost",), "pl": ("lower", "upper")}
_COLUMNS: Final = (STATUS, "cost", "lower", "upper")
_HST: Final = APRIORI_ENDINGS[-1]
_TOTAL: Final = "Total"


def read_apriori(
    path: str | PathLike[str],
    variables: Sequence[str],
    *,
    total: str = "Total",
    sep: str | None = None,
    encoding: str | None = None,
) -> pd.DataFrame:
    r"""Read instructions for single cells, from an a priori file of τ-ARGUS or from
    columns.

    Parameters
    ----------
    path : path
        A file `.hst` of τ-ARGUS, each line of which holds a code of each variable, an
        action and its numbers: ``u``, sensitive; ``s``, safe; ``p``, to be published;
        ``c`` with a cost; ``pl`` with a lower and an upper protection level. Or a CSV
        or Parquet file with the columns that are returned here.
    variables : sequence of str
        The variables, in the order of the codes.
    total : str
        The code of totals.
    sep : str, optional
        What separates the codes. By default the semicolon, if with it the first line
        has an action after its codes, and else the comma.
    encoding : str, optional
        UTF-8 by default.

    Returns
    -------
    DataFrame
        A column for each variable, missing where the cell is a total over it;
        ``status``, which is ``sensitive``, ``safe``, ``published``, ``suppressed`` or
        missing; ``cost``; ``lower`` and ``upper``, protection levels, which say nothing
        of a cell that is not sensitive in the end.

    Raises
    ------
    FileFormatError
        The file is missing or no text; a line with another number of fields, an action
        that is not known, or something that is no number, or is one with three decimals
        such as 1.000, which may be a thousand.

    References
    ----------
    τ-ARGUS Version 4.1, User's Manual, a priori information.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> import taciturn as tc
    >>> path = Path(mkdtemp()) / "cells.hst"
    >>> _ = path.write_text("north,food,u\nnorth,Total,p\n")
    >>> found = tc.suppression.read_apriori(path, ["area", "trade"])
    >>> found["status"].tolist(), found["trade"].tolist()
    (['sensitive', 'published'], ['food', None])
    """
    names, file = list(variables), Path(fspath(path))
    if file.suffix.lower() != _HST:
        source = open_source(file, sep=sep, encoding=encoding)
        rows = pd.DataFrame(source.columns(), dtype=object)
    else:
        given = check_encoding(encoding) if encoding is not None else UTF_8
        rows = pd.DataFrame(_rows(file, names, sep, given), columns=[*names, *_COLUMNS])
    for name in [name for name in names if name in rows]:
        summed = [is_missing(label) or str(label) in ("", total) for label in rows[name]]
        rows[name] = rows[name].astype(object).mask(np.array(summed, dtype=bool), None)
    return rows


def _rows(path: Path, names: list[str], sep: str | None, encoding: str) -> list[list[Any]]:
    rows = []
    for number, line in read_lines(path, _HST, encoding):
        where = f"{path}: line {number}"
        sep = sep or next((each for each in ";," if _action(fields_of(line, each), names)), ",")
        fields = fields_of(line, sep)
        action = _action(fields, names)
        if not action:
            raise FileFormatError(
                f"{where} must have {len(names)} codes, of {names}, and one of the actions"
                f" {', '.join([*_ACTIONS, *_NUMBERS])}, separated by {sep!r}: it is {legible(line)}"
            )
        wanted, given = _NUMBERS.get(action, ()), fields[len(names) + 1 :]
        if len(given) != len(wanted):
            raise FileFormatError(
                f"{where}: {action!r} takes {len(wanted)} numbers{' after it' if wanted else ''},"
                f" got {given}"
            )
        numbers = dict(zip(wanted, map(real_value, given), strict=True))
        for text in given:
            if is_perhaps_thousands(text, 0):
                raise FileFormatError(
                    f"{where}: {text} may be thousands: leave the point out, or add a zero"
                )
            if real_value(text) is None:
                raise FileFormatError(
                    f"{where}: {action!r} takes numbers, got {given}{number_hint(text, 0)}"
                )
        rest = [numbers.get(name) for name in _COLUMNS[1:]]
        rows.append([*fields[: len(names)], _ACTIONS.get(action), *rest])
    return rows


def _action(fields: Sequence[str], names: Sequence[str]) -> str:
    """What stands after the codes, if it is an action."""
    action = fields[len(names)].lower() if len(fields) > len(names) else ""
    return action if action in (*_ACTIONS, *_NUMBERS) else ""


@dataclass(frozen=True, eq=False, repr=False)
class Instructions:
    """What is asked of some published cells, by their numbers."""

    status: dict[int, str] = field(default_factory=dict)
    costs: dict[int, float] = field(default_factory=dict)
    levels: dict[int, tuple[float, float]] = field(default_factory=dict)

    def __repr__(self) -> str:
        cells = {*self.status, *self.costs, *self.levels}
        return f"{type(self).__name__}({len(cells):,} cells)"

    def primary(self, flags: Booleans) -> Booleans:
        """Which cells are primary."""
        flags = flags.copy()
        for cell, status in self.status.items():
            if status != PUBLISHED:
                flags[cell] = status != SAFE
        return flags

    def required(self, required: Required, ruled: Booleans, cells: PublishedCells) -> Required:
        """The uncertainty that must remain, where levels are given; of a cell that is
        primary only as it was suppressed before, and not as rules say, that it cannot
        be worked out.
        """
        up, down, width = required.up.copy(), required.down.copy(), required.width.copy()
        for at, cell in enumerate(required.cells.tolist()):
            if cell in self.levels:
                steps = np.array(self.levels[cell]) * 10.0**cells.decimals
                low, high = np.minimum(np.ceil(steps - 1e-6), MAX_COUNT - 1)
                most = np.inf if cells.signed else cells.values[cell]
                down[at], up[at] = min(low, most), high
                width[at] = max(down[at] + up[at], 1)
            elif self.status.get(cell) == SUPPRESSED and not ruled[cell]:
                down[at], up[at], width[at] = 0, 0, 1
        return replace(required, up=up, down=down, width=width)

    def prices(self, costs: Floats, flags: Booleans, cells: PublishedCells) -> Floats:
        """The costs of all cells; raises where a primary cell must be published."""
        costs = costs.copy()
        for cell, cost in self.costs.items():
            costs[cell] = cost
        for cell, status in self.status.items():
            if status == PUBLISHED:
                if flags[cell]:
                    raise ParameterError(
                        f"apriori: {cells.label(cell)} is to be published, and is primary; say"
                        " that it is safe, or suppress it"
                    )
                costs[cell] = np.inf
        return costs


def instructions_of(given: Apriori | None, cells: PublishedCells) -> Instructions:
    """Check instructions, and number the cells that they are for."""
    found = Instructions()
    if given is None:
        return found
    names = list(map(str, cells.table.dims))
    places = {name: _places(cells, name) for name in names}
    rows, origin = given, "apriori"
    if isinstance(given, str | PathLike):
        rows, origin = read_apriori(given, names, total=""), str(given)
        for name in set(names) & set(rows):
            own = map(str, labels_along(cells.table, name))
            if _TOTAL in own and _TOTAL in rows[name].tolist():
                raise TableError(
                    f"{origin}: {_TOTAL!r} may be a total or a category of {name!r}; give what"
                    " read_apriori(total=...) returns, with another label of totals"
                )
    if not isinstance(rows, pd.DataFrame) or not set(rows) <= {*names, *_COLUMNS}:
        has = f"the columns {list(rows)}" if isinstance(rows, pd.DataFrame) else type(rows).__name__
        raise TableError(
            f"{origin} must be a data frame or a file with columns of {names} and of"
            f" {', '.join(_COLUMNS)}, got {has}"
        )
    for number, row in enumerate(rows.to_dict("records"), 1):
        where = f"{origin}: row {number}"
        for cell in _cells(row, places, cells, where):
            _keep(found, cell, row, where, cells)
    return found


def _places(cells: PublishedCells, variable: str) -> dict[str, list[tuple[str, int]]]:
    """On which levels each label of a variable stands, and its place there."""
    found: dict[str, list[tuple[str, int]]] = {}
    for name in (variable, *hierarchies(cells.table)[variable]):
        for place, label in enumerate(labels_along(cells.table, name)):
            found.setdefault(seen(str(label)), []).append((name, place))
    return found


def _cells(
    row: dict[Any, Any],
    places: dict[str, dict[str, list[tuple[str, int]]]],
    cells: PublishedCells,
    where: str,
) -> list[int]:
    """The cells that a row is for; several where a branch ends above the others, so
    that one cell stands on several levels.
    """
    known, summed = [], []  # as a category where one is called as totals are, and as a total
    for name, own in places.items():
        label = "" if is_missing(row.get(name)) else str(row[name])
        if label not in ("", _TOTAL) and seen(label) not in own:
            raise TableError(f"{where}: {name}={legible(label)} is no category of the table")
        if label and seen(label) in own:
            known.append(own[seen(label)])
            summed += [known[-1]] if label != _TOTAL else []
    found = _numbers(known, cells) or _numbers(summed, cells)
    if not found:
        raise TableError(
            f"{where} is for a cell of none of the margins whose cells may be suppressed,"
            f" {list(cells.suppressible)}"
        )
    return found


def _numbers(choices: list[list[tuple[str, int]]], cells: PublishedCells) -> list[int]:
    """The cells with one of the labels of each variable, and of no other variable."""
    found = []
    for at in map(dict, product(*choices)):
        for number, names in enumerate(cells.suppressible):
            if set(names) == set(at):
                shape = cells.labels(number).shape
                place = np.ravel_multi_index([at[name] for name in names], shape) if shape else 0
                found.append(cells.first[number] + int(place))
    return found


def _keep(
    found: Instructions, cell: int, row: dict[Any, Any], where: str, cells: PublishedCells
) -> None:
    """Add what a row says of a cell."""
    values = {name: value for name, value in row.items() if not is_missing(value) and value != ""}
    if STATUS in values:
        status = str(values[STATUS])
        if status not in _STATUSES:
            raise TableError(f"{where}: a status is one of {', '.join(_STATUSES)}, got {status!r}")
        if found.status.setdefault(cell, status) != status:
            raise TableError(
                f"{where}: {cells.label(cell)} is to be {status}, and was {found.status[cell]}"
            )
    if "cost" in values:
        cost = _number(values["cost"], "a cost is a number above 0", where, 0, cells.decimals)
        if found.costs.setdefault(cell, cost) != cost:
            raise TableError(
                f"{where}: {cells.label(cell)} is to cost {cost:g}, and was to cost"
                f" {found.costs[cell]:g}"
            )
    if ("lower" in values) != ("upper" in values):
        raise TableError(f"{where}: has one of 'lower' and 'upper'; a protection level is both")
    if "lower" in values:
        rule = "a protection level is a number of at least 0"
        low, high = (
            _number(values[side], rule, where, -1, cells.decimals) for side in ("lower", "upper")
        )
        if found.levels.setdefault(cell, (low, high)) != (low, high):
            raise TableError(
                f"{where}: {cells.label(cell)} has the protection levels {low:g} and {high:g}, and"
                " had {:g} and {:g}".format(*found.levels[cell])
            )


def _number(value: Any, rule: str, where: str, above: float, decimals: int) -> float:
    number = None if is_perhaps_thousands(value, decimals) else real_value(value)
    if number is None or not (number > above and 0 <= number <= MAX_COUNT):
        raise TableError(f"{where}: {rule}, got {quoted(value)}{number_hint(value, decimals)}")
    return number
