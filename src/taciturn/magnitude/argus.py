"""Magnitude tables as τ-ARGUS reads them: cells and totals, with their metadata."""

from collections.abc import Container, Iterator, Mapping, Sequence
from itertools import chain
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Final

import pandas as pd
import xarray as xr

from taciturn.errors import FileFormatError, TableError
from taciturn.files import ARGUS_ENDINGS, METADATA_ENDING, check_readable
from taciturn.magnitude.aggregated import Columns, margins_of_columns
from taciturn.magnitude.metadata import ArgusColumn, Metadata, read_metadata
from taciturn.schema import PUBLISHED, SAFE, STATUS
from taciturn.tables.hierarchies import (
    branches_of_codes,
    branches_of_hrc,
    levels_of_branches,
    read_levels,
)
from taciturn.tables.sources.lines import fields_of, read_lines
from taciturn.tables.spelling import legible
from taciturn.tables.values import is_perhaps_thousands, number_hint, real_value
from taciturn.validate import UTF_8, check_encoding, quoted

__all__ = ["read_argus"]

_TOTAL: Final = "Total"
_EMPTY: Final = ("", "-")
_SENSITIVE: Final = "sensitive"
_LEAST_COST: Final = 1e-4  # that τ-ARGUS takes for 0

type Cells = dict[str, list[str]]
"""The fields of each column."""


def read_argus(
    table: str | PathLike[str],
    metadata: str | PathLike[str] | None = None,
    *,
    value: str | None = None,
    encoding: str | None = None,
) -> tuple[dict[tuple[str, ...], xr.Dataset], pd.DataFrame | None]:
    r"""Read a table that is aggregated already from files of τ-ARGUS.

    Parameters
    ----------
    table : path
        The file `.tab`, `.txt` or `.csv` with a line for each cell and each total that
        is to be released, and no header. A cell without a line, with the status ``E``
        or without a value is empty. Numbers have a decimal point or comma.
    metadata : path, optional
        The file `.rda`; by default that of the same name. Files of hierarchical codes
        are looked for beside it, whatever folder it names.
    value : str, optional
        Which column is the quantity, where several are ``<NUMERIC>``.
    encoding : str, optional
        That of all files; UTF-8 by default.

    Returns
    -------
    tables : dict of tuple of str to Dataset
        As of `read_margins`.
    instructions : DataFrame or None
        What the table says of single cells, for `apriori` of `protect_margins`: the
        status, costs, and protection levels of cells that are unsafe. None where it
        says nothing.

    Raises
    ------
    FileFormatError
        A file that is missing or no text; a keyword that is not known or not supported,
        such as ``<SHADOW>``; a line with another number of fields; a status that is not
        declared, or that of secondary cells; two codes of status that are the same; a
        variable of which no line is a total; a table without ``<FREQUENCY>``, of which
        it is not known how many contribute.
    TableError
        As `read_margins`; two lines of one total that differ.

    Notes
    -----
    A code that is above all others of its variable is a further name of the total: its
    line must say the same, and is no cell of its own.

    τ-ARGUS applies either rules or the status of the table; here the status stands
    above the rules. To apply rules only, do not hand `instructions` on. Lists of names
    (``<CODELIST>``) and distances (``<DISTANCE>``) are passed over. Codes of missing
    labels are categories that belong to no group: `safe` of `protect_margins` names
    them, where missing is safe.

    References
    ----------
    τ-ARGUS Version 4.1, User's Manual, metadata of tabular data; where it is silent,
    such as on what is assumed where nothing is said, the program itself (sdcTools,
    tauargus, ``Metadata.readTableMetadata``).

    See Also
    --------
    taciturn.suppression.protect_margins : Protects what this returns.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> import taciturn as tc
    >>> folder = Path(mkdtemp())
    >>> words = '<SEPARATOR> ";"|area|<RECODEABLE>|sales|<NUMERIC>|firms|<FREQUENCY>'
    >>> _ = (folder / "sales.rda").write_text(words.replace("|", "\n"))
    >>> _ = (folder / "sales.tab").write_text("A;60;3\nB;40;9\nTotal;100;12\n")
    >>> tables, instructions = tc.magnitude.read_argus(folder / "sales.tab")
    >>> tables["area",]["contributors"].values.tolist(), instructions
    ([3, 9], None)
    """
    path = Path(fspath(table))
    said = Path(fspath(metadata)) if metadata is not None else path.with_suffix(METADATA_ENDING)
    check_readable(path, ARGUS_ENDINGS)
    found = read_metadata(said, encoding)
    columns, quantity = _columns(found, value)
    _refuse_same_codes(found)
    written = check_encoding(encoding) if encoding is not None else UTF_8
    cells = _read(path, found, columns, written)
    frames, whole = _hierarchies(found, cells, said.parent, encoding)
    levels = read_levels(frames, columns.variables)
    columns.check(levels)
    cells, repeats = _with_one_total(cells, whole, found, str(path))
    decimals = max(
        column.decimals for column in found.columns if column.name in (quantity, *columns.largest)
    )
    tables = margins_of_columns(
        cells,
        columns,
        levels,
        total=_TOTAL,
        decimals=decimals,
        origin=str(path),
        repeats=repeats,
    )
    return tables, _instructions(cells, found, columns, decimals, str(path), repeats)


def _columns(metadata: Metadata, value: str | None) -> tuple[Columns, str]:
    """Which column plays which part."""
    variables, quantities = metadata.named("category"), metadata.named("value")
    if not variables:
        raise FileFormatError(f"{metadata.origin}: no column is <RECODEABLE>")
    if value is None and len(quantities) != 1:
        raise FileFormatError(
            f"{metadata.origin}: one column must be <NUMERIC>, or value name one of them:"
            f" {quantities or 'there is none'}"
        )
    quantity = quantities[0] if value is None else value
    if quantity not in quantities:
        raise FileFormatError(
            f"{metadata.origin}: value must name one of the columns {quantities}, got"
            f" {legible(str(quantity))}"
        )
    contributors = metadata.only("frequency")
    if contributors is None:
        raise FileFormatError(
            f"{metadata.origin}: one column must be the <FREQUENCY>, how many contribute to each"
            " cell"
        )
    if (metadata.only("lower") is None) != (metadata.only("upper") is None):
        raise FileFormatError(f"{metadata.origin}: <LOWERPL> and <UPPERPL> go together")
    largest = tuple(metadata.named("largest"))
    return Columns(tuple(variables), quantity, contributors, largest), quantity


def _read(path: Path, metadata: Metadata, columns: Columns, encoding: str) -> Cells:
    """The fields of all lines, totals by one name and numbers with a point."""
    names = [column.name for column in metadata.columns]
    rows = []
    for number, line in read_lines(path, path.suffix.lower(), encoding):
        fields = fields_of(line, metadata.separator)
        if len(fields) != len(names):
            raise FileFormatError(
                f"{path}: line {number} must have {len(names)} fields, separated by"
                f" {metadata.separator!r}, as {metadata.origin} says: it has {len(fields)}"
            )
        rows.append(fields)
    if not rows:
        raise FileFormatError(f"{path}: holds no cells")
    cells = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    for column in metadata.columns:
        given = cells[column.name]
        if column.role == "category":
            _refuse_other_totals(given, column, path)
            cells[column.name] = [
                _TOTAL if text == column.total.strip() else text for text in given
            ]
        elif column.role != "status":
            cells[column.name] = [_number(text) for text in given]
    status = metadata.only(STATUS)
    for row, text in enumerate(cells[columns.value]):
        empty = text in _EMPTY
        if status is not None and metadata.says_empty(cells[status][row]):
            empty |= real_value(text) == 0
        if empty and cells[columns.contributors][row] in (*_EMPTY, "0"):
            cells[columns.value][row] = cells[columns.contributors][row] = "0"
    return cells


def _refuse_same_codes(metadata: Metadata) -> None:
    """Raise `FileFormatError` where two kinds of status have the same code."""
    codes = {"<SAFE>": metadata.safe, "<UNSAFE>": metadata.unsafe, "<PROTECT>": metadata.protect}
    if len({code.upper() for code in codes.values()}) < len(codes):
        said = ", ".join(f"{keyword} {code!r}" for keyword, code in codes.items())
        raise FileFormatError(
            f"{metadata.origin}: the codes of the status must differ by more than their case:"
            f" {said}"
        )


def _refuse_other_totals(given: Sequence[str], column: ArgusColumn, path: Path) -> None:
    """Raise `FileFormatError` where a category is called as totals are here, or no line
    is a total as the metadata have it: totals by another code would pass as a category.
    """
    if column.total.strip() != _TOTAL and _TOTAL in given:
        raise FileFormatError(
            f"{path}: line {given.index(_TOTAL) + 1} has the code {_TOTAL!r} of {column.name!r},"
            f" whose totals are {column.total!r}: give that category another name"
        )
    if column.total.strip() not in given:
        raise FileFormatError(
            f"{path}: no line has the code {column.total!r} of the totals of {column.name!r}: a"
            " table holds its totals, and <TOTCODE> says by which code"
        )


def _number(text: str) -> str:
    """A number with a decimal point; nothing where there is none."""
    if text in _EMPTY:
        return ""
    return text.replace(",", ".") if text.count(",") == 1 and "." not in text else text


def _hierarchies(
    metadata: Metadata, cells: Cells, folder: Path, encoding: str | None
) -> tuple[dict[str, pd.DataFrame], dict[str, set[str]]]:
    """The levels above each variable that has some, and the codes that stand for all of
    its categories.
    """
    found, whole = {}, {}
    for column in metadata.columns:
        if column.role != "category":
            continue
        if column.codes:
            name = column.codes.replace("\\", "/").rpartition("/")[2]
            branches = branches_of_hrc(folder / name, column.mark, encoding)
        elif column.widths:
            others = (_TOTAL, *column.missing)
            codes = [code for code in dict.fromkeys(cells[column.name]) if code not in others]
            above = {code[:end] for code in codes for end in range(1, len(code))}
            finest = [code for code in codes if code not in above]
            branches = branches_of_codes(finest, column.widths, column.name)
        else:
            continue
        known, given = set(chain.from_iterable(branches)), set(cells[column.name])
        missing = [code for code in column.missing if code in given - known]
        frame = levels_of_branches([*branches, *([code] for code in missing)], column.name)
        whole[column.name] = known - set(frame.to_numpy().ravel())
        if frame.shape[1] > 1:  # otherwise all codes are on one level
            found[column.name] = frame
    return found, whole


def _with_one_total(
    cells: Cells, whole: Mapping[str, set[str]], metadata: Metadata, origin: str
) -> tuple[Cells, set[int]]:
    """Cells of which totals have one name, where a code stands for all categories, too,
    and the lines that repeat one of them by another name.
    """
    renamed = cells | {
        name: [_TOTAL if code in codes else code for code in cells[name]]
        for name, codes in whole.items()
    }
    names = metadata.named("category")
    others = [column.name for column in metadata.columns if column.name not in names]
    seen, first, repeats = set[tuple[str, ...]](), dict[tuple[str, ...], int](), set[int]()
    for row, (given, labels) in enumerate(
        zip(_rows(cells, names), _rows(renamed, names), strict=True)
    ):
        line = first.setdefault(labels, row)
        if line != row and given not in seen:
            repeats.add(row)
            for name in others:
                if _said(cells[name][row]) != _said(cells[name][line]):
                    words = ", ".join(map("{}={}".format, names, given))
                    raise TableError(
                        f"{origin}: line {row + 1}, {words}, is the same total as line {line + 1}:"
                        f" {name!r} must be {quoted(cells[name][line])}, got"
                        f" {quoted(cells[name][row])}"
                    )
        seen.add(given)
    return renamed, repeats


def _rows(cells: Cells, names: Sequence[str]) -> Iterator[tuple[str, ...]]:
    return zip(*(cells[name] for name in names), strict=True)


def _said(text: str) -> float | str:
    """What a field says, however it is written; blank is 0."""
    number = real_value(text) if text.strip() else 0.0
    return text.upper() if number is None else number


def _instructions(
    cells: Cells,
    metadata: Metadata,
    columns: Columns,
    decimals: int,
    origin: str,
    repeats: Container[int],
) -> pd.DataFrame | None:
    """What is said of single cells, a row for each of which something is."""
    given = {role: metadata.only(role) for role in (STATUS, "cost", "lower", "upper")}
    own = {column.name: column.decimals for column in metadata.columns}
    places = {role: max(decimals, own.get(str(name), 0)) for role, name in given.items()}
    rows = []
    for row in range(len(cells[columns.value])):
        if row in repeats:
            continue
        where = f"{origin}: line {row + 1}"
        held = {role: cells[name][row] if name else "" for role, name in given.items()}
        empty = not real_value(cells[columns.contributors][row])
        told = _of_cell(held, metadata, places, where, empty=empty)
        if told:
            labels = {name: cells[name][row] for name in columns.variables}
            where_to = {name: None if at == _TOTAL else at for name, at in labels.items()}
            rows.append(where_to | told)
    names = [*columns.variables, *given]
    return pd.DataFrame(rows, columns=names, dtype=object) if rows else None


def _of_cell(
    held: Mapping[str, str],
    metadata: Metadata,
    places: Mapping[str, int],
    where: str,
    *,
    empty: bool,
) -> dict[str, Any]:
    """What is said of one cell, in numbers with so many decimal places."""
    known = {metadata.safe: SAFE, metadata.unsafe: _SENSITIVE, metadata.protect: PUBLISHED}
    accepted = {code.upper(): status for code, status in known.items()}
    status, said_empty = held[STATUS].upper(), metadata.says_empty(held[STATUS])
    if status == "M" and status not in accepted:
        raise FileFormatError(
            f"{where} has the status 'M' of a cell that was suppressed to protect others: give the"
            " table as it was before"
        )
    if status and status not in accepted and not said_empty:
        raise FileFormatError(
            f"{where} has the status {legible(held[STATUS])}: accepted are"
            f" {', '.join(map(repr, known))}, and 'E' for empty cells"
        )
    if empty:
        return {}
    if said_empty:
        raise FileFormatError(f"{where} has the status 'E' of an empty cell, and contributors")
    told: dict[str, Any] = {STATUS: accepted[status]} if status else {}
    if held["cost"]:
        told["cost"] = max(_amount(held["cost"], places["cost"], where), _LEAST_COST)
    if told.get(STATUS) == _SENSITIVE:
        sides = [side for side in ("lower", "upper") if held[side]]
        told |= {side: _amount(held[side], places[side], where) for side in sides}
    return told


def _amount(text: str, decimals: int, where: str) -> float:
    """A number from 0."""
    number = None if is_perhaps_thousands(text, decimals) else real_value(text)
    if number is None or number < 0:
        raise FileFormatError(
            f"{where} holds {legible(text)} in place of a number from 0"
            f"{number_hint(text, decimals)}"
        )
    return number
