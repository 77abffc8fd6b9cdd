"""Records in memory: the code of each record's label of each variable."""

from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from os import PathLike
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from taciturn.errors import TableError
from taciturn.schema import COUNT, WEIGHTED_COUNT
from taciturn.tables.labels import (
    Codes,
    Labels,
    check_variables,
    declared_categories,
    refuse_large_table,
)
from taciturn.tables.sources import Source, open_source
from taciturn.tables.values import convertible, python_values

__all__ = [
    "Records",
    "code_records",
    "encoded_groups",
    "encoded_parts",
    "open_records",
    "read_records",
    "refuse_counts",
]

_MOST_BYTES: Final = 2**33  # of records that are held in memory


@dataclass(frozen=True)
class Records:
    """Records whose labels are known to be there and to be categories."""

    origin: str
    rows: int
    codes: dict[str, npt.NDArray[np.int64]]
    """By variable, the position of each record's category."""
    categories: dict[str, npt.NDArray[Any]]
    others: dict[str, list[Any]]
    """Further columns, as Python values."""

    def cells(self, variables: Sequence[str]) -> npt.NDArray[np.int64]:
        """Number of each record's cell, the last variable running fastest."""
        sizes = tuple(len(self.categories[dim]) for dim in variables)
        refuse_large_table(sizes)
        cells = np.ravel_multi_index([self.codes[dim] for dim in variables], sizes)
        return cells.astype(np.int64, copy=False)

    def label(self, variables: Sequence[str], row: int) -> str:
        """One record's categories for a message, such as ``area=A, sex=f``."""
        return ", ".join(f"{dim}={self.categories[dim][self.codes[dim][row]]}" for dim in variables)


def read_records(
    records: str | PathLike[str] | Any,
    variables: Sequence[str],
    categories: Mapping[str, Sequence[Any]] | None = None,
    *,
    others: Mapping[str, str] | None = None,
    counted: bool = True,
    sep: str | None = None,
    encoding: str | None = None,
) -> Records:
    """Read some variables of microdata, and other columns as they are, of each of which
    `others` says what it holds. Of records that are counted none may be a count.
    """
    others = others or {}
    known = others if counted else (*others, COUNT, WEIGHTED_COUNT)
    source = open_records(records, variables, known, sep=sep, encoding=encoding)
    for name, held in others.items():
        source.require([name], of=held)
    return code_records(source, variables, categories, others=list(others))


def open_records(
    records: str | PathLike[str] | Any,
    variables: Sequence[str],
    others: Collection[str] = (),
    *,
    sep: str | None = None,
    encoding: str | None = None,
) -> Source:
    """Open microdata that have some variables, and no counts but as other columns."""
    source = open_source(records, sep=sep, encoding=encoding)
    unknown = [dim for dim in variables if dim not in source.names]
    if unknown or not variables:
        raise TableError(
            f"no variable {unknown} in {source.origin}: the columns are"
            f" {source.listed_names(unknown)}"
        )
    refuse_counts(source, *(name for name in (COUNT, WEIGHTED_COUNT) if name not in others))
    return source


def refuse_counts(source: Source, *names: str) -> None:
    """Raise `TableError` for a column of counts, whose rows are no individuals."""
    for name in names:
        if name in source.names:
            raise TableError(
                f"{source.origin}: has a column {name!r}, so that it is no microdata but a table,"
                " whose rows are not to be counted; if it is none, call that column something else"
            )


def code_records(
    source: Source,
    variables: Sequence[str],
    categories: Mapping[str, Sequence[Any]] | None,
    *,
    others: Sequence[str] = (),
    in_order: bool = False,
) -> Records:
    """Read columns that the source is known to have, and hold them in memory;
    categories may stay in their order.
    """
    check_variables(variables)
    declared = declared_categories(categories, variables)
    labels = {dim: Labels(dim, source.origin, of_records=not in_order) for dim in variables}
    parts: dict[str, list[npt.NDArray[np.int64]]] = {dim: [] for dim in variables}
    values: dict[str, list[Any]] = {name: [] for name in others}
    rows = 0
    for codes, columns in encoded_parts(source, labels, others):
        rows += len(codes[0])
        if 8 * rows * (len(variables) + len(others)) > _MOST_BYTES:
            raise TableError(
                f"{source.origin} has more than {rows:,} rows, whose {len(variables) + len(others)}"
                f" columns would take more than {_MOST_BYTES // 2**30} GiB"
            )
        for dim, part in zip(variables, codes, strict=True):
            parts[dim].append(part)
        for name, column in zip(others, columns, strict=True):
            with convertible(name, source.origin):
                values[name] += python_values(column)
    placed, names = {}, {}
    for dim in variables:
        names[dim], positions = labels[dim].categories(
            declared.get(dim, source.declared.get(dim)), in_order=in_order
        )
        placed[dim] = positions[np.concatenate(parts.pop(dim))]
    return Records(source.origin, rows, placed, names, values)


def encoded_groups(
    source: Source, labels: Mapping[str, Labels], others: Sequence[str] = ()
) -> Iterator[tuple[list[Codes], list[Any], Codes]]:
    """Rows, part after part, in any order: the codes of some variables, other columns
    as they are, and how many records each row stands for; at least one.
    """
    for codes, columns, number in _encoded(source, labels, source.groups([*labels, *others])):
        rows = len(codes[0])
        yield codes, columns, np.ones(rows, np.int64) if number is None else number.astype(np.int64)


def encoded_parts(
    source: Source, labels: Mapping[str, Labels], others: Sequence[str] = ()
) -> Iterator[tuple[list[Codes], list[Any]]]:
    """Consecutive rows, part after part: the codes of some variables, and other columns
    as they are; at least one.
    """
    parts = ((columns, None) for columns in source.parts([*labels, *others]))
    for codes, columns, _ in _encoded(source, labels, parts):
        yield codes, columns


def _encoded(
    source: Source, labels: Mapping[str, Labels], parts: Generator[tuple[list[Any], Any]]
) -> Iterator[tuple[list[Codes], list[Any], Any]]:
    """Parts of a source with the codes of the variables that come first."""
    rows = 0
    with closing(parts):  # an error would keep the query of a database open with its frames
        for columns, number in parts:
            coded = zip(labels.values(), columns, strict=False)
            codes = [each.encode(column, start=rows) for each, column in coded]
            yield codes, columns[len(labels) :], number
            rows += len(columns[0])
    if rows == 0:
        raise TableError(f"{source.origin} is empty: it has no rows")
