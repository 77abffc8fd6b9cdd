"""Records in memory: the code of each record's label of each variable."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from taciturn.errors import TableError
from taciturn.schema import RESERVED_NAMES
from taciturn.tables.labels import Labels, declared_categories, refuse_many_cells
from taciturn.tables.sources import Source, open_source
from taciturn.tables.values import python_values

__all__ = ["Records", "code_records", "read_records"]

MAX_CELLS: Final = 2**31


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
        refuse_many_cells(sizes, MAX_CELLS)
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
) -> Records:
    """Read some variables of microdata, and other columns as they are, of each of which
    `others` says what it holds.
    """
    source = open_source(records)
    unknown = [dim for dim in variables if dim not in source.names]
    if unknown or not variables:
        raise TableError(
            f"no variable {unknown} in {source.origin}: the columns are"
            f" {', '.join(map(repr, source.names))}"
        )
    others = others or {}
    for name, held in others.items():
        source.require([name], of=held)
    return code_records(source, variables, categories, others=list(others))


def code_records(
    source: Source,
    variables: Sequence[str],
    categories: Mapping[str, Sequence[Any]] | None,
    *,
    others: Sequence[str] = (),
) -> Records:
    """Read columns that the source is known to have."""
    if len(set(variables)) < len(variables):
        raise TableError(f"a variable stands twice in {list(variables)}")
    declared = declared_categories(categories, variables)
    reserved = sorted(RESERVED_NAMES & set(variables))
    if reserved:
        raise TableError(
            f"{reserved} cannot name a variable: {sorted(RESERVED_NAMES)} are reserved"
        )
    labels = {dim: Labels(dim, source.origin) for dim in variables}
    parts: dict[str, list[npt.NDArray[np.int64]]] = {dim: [] for dim in variables}
    values: dict[str, list[Any]] = {name: [] for name in others}
    rows = 0
    for columns in source.parts([*variables, *others]):
        for dim, column in zip(variables, columns, strict=False):
            parts[dim].append(labels[dim].encode(column, start=rows))
        for name, column in zip(others, columns[len(variables) :], strict=True):
            values[name] += python_values(column)
        rows += len(columns[0])
    if rows == 0:
        raise TableError(f"{source.origin} is empty: it has no rows")
    codes, names = {}, {}
    for dim in variables:
        order = declared.get(dim, source.declared.get(dim))
        names[dim], positions = labels[dim].categories(order)
        codes[dim] = positions[np.concatenate(parts.pop(dim))]
    return Records(source.origin, rows, codes, names, values)
