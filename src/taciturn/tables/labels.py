"""Labels of a classifying variable: their codes, and the categories they stand for.

Records of counts and of magnitudes follow the same rules. Labels are numbers where all
of them, and all declared categories, are whole numbers; otherwise they are text. The
order of categories is the declared one, of the call or else of the data (a pandas
categorical, a polars Enum, a dictionary of Parquet), and without one that of first
appearance.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from taciturn.errors import ParameterError, TableError
from taciturn.tables.values import is_integer, is_missing, python_values

__all__ = ["Labels", "declared_categories", "factorize", "refuse_many_cells"]

Codes = npt.NDArray[np.int64]


class Labels:
    """The labels of one variable, coded in the order of their first appearance."""

    def __init__(self, variable: str, origin: str) -> None:
        self.variable, self.origin = variable, origin
        self._found: list[tuple[Any, int]] = []  # each label, and the row where it is first
        self._codes: dict[Any, int] = {}

    def __len__(self) -> int:
        return len(self._found)

    def encode(self, column: Any, *, start: int) -> Codes:
        """Codes of a column whose first row is number `start`, counted from 0."""
        codes, labels = factorize(column)
        blank = [code for code, label in enumerate(labels) if is_missing(label)]
        missing = (codes < 0) | np.isin(codes, blank) if blank else codes < 0
        if missing.any():
            raise TableError(
                f"a label is missing: {self.variable!r} in row {start + missing.argmax() + 1} of"
                f" {self.origin}"
            )
        first = np.empty(len(labels), dtype=np.int64)
        first[codes[::-1]] = np.arange(len(codes))[::-1]  # of several rows the last one written
        known = np.empty(len(labels), dtype=np.int64)
        for code, label in enumerate(labels):
            known[code] = self._codes.setdefault(_identity(label), len(self._found))
            if known[code] == len(self._found):
                self._found.append((label, start + int(first[code]) + 1))
        return known[codes]

    def categories(self, declared: Sequence[Any] | None) -> tuple[npt.NDArray[Any], Codes]:
        """The categories in their order, and the position there of each code."""
        dim, labels = self.variable, [label for label, _ in self._found]
        if declared is not None and any(is_missing(label) for label in declared):
            raise TableError(f"a label is missing: the categories of {dim!r}")
        number = all(is_integer(label) for label in [*labels, *(declared or [])])
        names = [
            int(label) if number else str(label)
            for label in (labels if declared is None else declared)
        ]
        if declared is None:
            names = list(dict.fromkeys(names))
        if len(set(names)) < len(names):
            raise TableError(f"the declared categories of {dim!r} hold one twice: {names}")
        at = {name: position for position, name in enumerate(names)}
        positions: dict[int, None] = {}
        for label, row in self._found:
            name = int(label) if number else str(label)
            where = f"in row {row} of {self.origin}"
            if name not in at:
                raise TableError(f"{dim}={label} {where} is none of the categories {names}")
            if "\0" in str(name):  # which NumPy would cut off
                raise TableError(f"{dim}={label!r} {where} holds a NUL")
            if at[name] in positions:  # such as 1 and "1"
                raise TableError(f"two labels of {dim!r} are both written {name!r}, {where}")
            positions[at[name]] = None
        return np.asarray(names), np.fromiter(positions, dtype=np.int64, count=len(positions))


def declared_categories(
    categories: Mapping[str, Sequence[Any]] | None, variables: Sequence[str]
) -> dict[str, list[Any]]:
    """Check the categories that a call declares."""
    if not isinstance(categories, Mapping | None):
        raise ParameterError(
            f"categories must be sequences of labels by variable, got {categories!r:.80}"
        )
    declared = dict(categories or {})
    unknown = [dim for dim in declared if dim not in variables]
    if unknown:
        raise ParameterError(
            f"categories are declared for {unknown}, the variables are {list(variables)}"
        )
    for dim, labels in declared.items():
        if isinstance(labels, str) or not isinstance(labels, Iterable):
            raise ParameterError(
                f"the categories of {dim!r} must be a sequence of labels, got {labels!r:.80}"
            )
    return {dim: list(labels) for dim, labels in declared.items()}


def refuse_many_cells(sizes: Sequence[int], most: int) -> None:
    """Raise `TableError` where a table of these sizes would have too many cells."""
    if prod(sizes) > most:
        raise TableError(
            f"the table would have {prod(sizes)} cells, at most {most} are accepted: sizes"
            f" {tuple(sizes)}"
        )


def factorize(column: Any) -> tuple[Codes, list[Any]]:
    """Codes of a column in order of first appearance, and the values that they stand
    for; a missing value has the code -1 or one of its own.
    """
    room = type(column).__module__.partition(".")[0]
    if room == "pyarrow":
        return _factorize_arrow(column)
    if room == "pandas" and column.dtype != np.dtype(object):
        codes, labels = column.factorize()
        return codes.astype(np.int64), labels.tolist()
    return _factorize_python(python_values(column))


def _factorize_arrow(column: Any) -> tuple[Codes, list[Any]]:
    import pyarrow as pa

    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if not pa.types.is_dictionary(column.type):
        try:
            column = column.dictionary_encode()
        except pa.ArrowNotImplementedError:  # lists and structures
            return _factorize_python(column.to_pylist())
    indices = column.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
    codes, used = pd.factorize(indices)
    values = column.dictionary.to_pylist()
    return codes.astype(np.int64), [None if index < 0 else values[index] for index in used]


def _factorize_python(column: list[Any]) -> tuple[Codes, list[Any]]:
    if set(map(type, column)) <= {str}:
        labels: list[Any] = list(dict.fromkeys(column))
        keys: Iterable[Any] = column
        found = {label: code for code, label in enumerate(labels)}
    else:
        keys = [_identity(value) for value in column]
        first = dict(zip(reversed(keys), reversed(column), strict=True))
        found = {key: code for code, key in enumerate(dict.fromkeys(keys))}
        labels = [first[key] for key in found]
    codes = np.fromiter(map(found.__getitem__, keys), dtype=np.int64, count=len(column))
    return codes, labels


def _identity(value: Any) -> Any:
    """What values are told apart by: text and whole numbers by themselves, others with
    their type, as True equals 1.
    """
    if isinstance(value, str) or is_integer(value):
        return value
    if is_missing(value):
        return None
    try:
        hash(value)
    except TypeError:  # a list, or something that holds one
        value = str(value)
    return type(value), value
