"""Labels of a classifying variable: their codes, and the categories they stand for.

Records of counts and of magnitudes follow the same rules. Labels are numbers where all
of them, and all declared categories, are whole numbers of 64 bits; otherwise they are
text, each written as Python writes it. The order of categories is the declared one, of
the call or else of the data. Without one, categories of records are sorted, by size
where all are numbers and else by their letters, so that their order says nothing of
that of the records; those of a table in long form stay in the order of its rows.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Sized
from datetime import datetime, time
from decimal import Decimal
from math import prod
from types import NoneType
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr

from taciturn.errors import ParameterError, TableError
from taciturn.schema import MAX_COUNT, RESERVED_NAMES
from taciturn.tables.spelling import check_spelling, check_types, legible, seen, spelled
from taciturn.tables.values import (
    convertible,
    exact_times,
    is_integer,
    is_label,
    is_missing,
    is_number,
    python_values,
    text_of,
)
from taciturn.validate import first_of, quoted

__all__ = [
    "DROP",
    "MOST_BYTES",
    "REFUSE",
    "Codes",
    "Labels",
    "check_missing",
    "check_variables",
    "declared_categories",
    "factorize",
    "labels_of",
    "other_kind",
    "refuse_large_table",
    "refuse_other_kinds",
]

Codes = npt.NDArray[np.int64]

MOST_BYTES: Final = 2**31
"""Largest table, in memory."""

REFUSE: Final = "refuse"
DROP: Final = "drop"
"""What is done about a missing label; anything else is the label that it gets."""

_MOST_VARIABLES: Final = 32  # NumPy ends at 64 dimensions, of which draws need some
_MOST_LABELS: Final = 10**7


class Labels:
    """The labels of one variable, coded in the order of their first appearance. A
    missing label is refused, has the code -1 (`DROP`) or is the label `missing`; where
    the rows are cells, and not `of_records`, nothing but to refuse it is offered.
    """

    def __init__(
        self,
        variable: str,
        origin: str,
        *,
        missing: str | int = REFUSE,
        of_records: bool = True,
    ) -> None:
        self.variable, self.origin, self._missing = variable, origin, missing
        self._of_records = of_records
        whole = not isinstance(missing, str) and abs(missing) <= MAX_COUNT
        self._float = float(missing) if whole else None
        self._met_float = False  # pandas has floats where a whole number is missing
        self._found: list[tuple[Any, int]] = []  # each label, and the row where it is first
        self._codes: dict[Any, int] = {}

    def __len__(self) -> int:
        return len(self._found)

    def encode(self, column: Any, *, start: int) -> Codes:
        """Codes of a column whose first row is number `start`, counted from 0."""
        with convertible(self.variable, self.origin):
            codes, labels = factorize(column)
        refuse_other_kinds(self.variable, self.origin, codes, labels, start=start)
        blank = [code for code, label in enumerate(labels) if is_missing(label)]
        missing = (codes < 0) | np.isin(codes, blank) if blank else codes < 0
        if missing.any() and self._missing == REFUSE:
            self._refuse_missing(start + int(missing.argmax()) + 1)
        first = np.empty(len(labels) + 1, dtype=np.int64)  # the last for codes of -1
        first[codes[::-1]] = np.arange(len(codes))[::-1]  # of several rows the last one written
        known = np.full(len(labels) + 1, -1, dtype=np.int64)
        for code, label in enumerate(labels):
            if code not in blank:
                known[code] = self._code(label, start + int(first[code]) + 1)
        if missing.any() and self._missing != DROP:
            known[[-1, *blank]] = self._code(self._missing, start + int(missing.argmax()) + 1)
        if len(self._found) > _MOST_LABELS:
            raise TableError(
                f"{self.variable!r} of {self.origin} has more than {_MOST_LABELS:,} labels: is it a"
                " classifying variable?"
            )
        return known[codes]

    def _refuse_missing(self, row: int) -> None:
        found = f"a label is missing: {self.variable!r} in row {row} of {self.origin}"
        if not self._of_records:
            raise TableError(f"{found}; each row needs one")
        raise TableError(
            found,
            in_python="; with missing= tabulate and protect_table leave such records out, or give"
            " them a label",
            at_shell="; --missing of taciturn tabulate and taciturn rules leaves such records out,"
            " or gives them a label",
        )

    def _code(self, label: Any, row: int) -> int:
        if isinstance(label, float) and label == self._float:
            label, self._met_float = self._missing, True
        code = self._codes.setdefault(_identity(label), len(self._found))
        if code == len(self._found):
            self._found.append((label, row))
        return code

    def categories(
        self, declared: Sequence[Any] | None, *, in_order: bool = False
    ) -> tuple[npt.NDArray[Any], Codes]:
        """The categories, declared, sorted or in order of appearance, and the position
        there of each code.
        """
        labels = self._as_found(declared)
        substituted = [label for label in labels if label == self._missing not in (REFUSE, DROP)]
        if declared is not None:
            check_declared(declared, self.variable)
            declared = [*declared, *(label for label in substituted if label not in declared)]
        number = all(_is_number(label) for label in [*labels, *(declared or [])])
        written: Any = int if number else text_of
        names = list(dict.fromkeys(map(written, labels if declared is None else declared)))
        if declared is None and not in_order:
            last = [written(label) for label in substituted]
            own = [name for name in names if name not in last]
            names = [*sorted(own, key=_rank(own)), *last]
        at = {name: position for position, name in enumerate(names)}
        positions: dict[int, None] = {}
        for label, (_, row) in zip(labels, self._found, strict=True):
            name = written(label)
            if name not in at:
                self._refuse_undeclared(name, row, names)
            if at[name] in positions:  # such as 1 and "1"
                raise TableError(
                    f"two labels of {self.variable!r} are both written {name!r:.80}, in row {row}"
                    f" of {self.origin}"
                )
            positions[at[name]] = None
        if not number:
            own_at = [at for at, label in enumerate(labels) if label != self._missing]
            check_types([labels[at] for at in own_at], lambda at: self._place(own_at[at]))
            if declared is None:
                check_spelling([str(label) for label in labels], self._place)
            else:
                check_spelling(names, lambda at: f"category {at + 1} of {self.variable!r}")
            refuse_large_labels(names, self.variable)
        return np.asarray(names), np.fromiter(positions, dtype=np.int64, count=len(positions))

    def _as_found(self, declared: Sequence[Any] | None) -> list[Any]:
        """The labels, with the number for missing ones as a float where all others are,
        unless it is declared as it is.
        """
        labels = [label for label, _ in self._found]
        if self._float is None:
            return labels
        own = [is_integer(label) and label == self._missing for label in labels]
        others = [label for label, is_own in zip(labels, own, strict=True) if not is_own]
        floats = all(isinstance(label, float) for label in others) and (others or self._met_float)
        texts = {*map(str, declared or [])}
        if str(self._missing) in texts or not (floats or str(self._float) in texts):
            return labels
        return [self._float if is_own else x for x, is_own in zip(labels, own, strict=True)]

    def _place(self, at: int) -> str:
        return f"the label of {self.variable!r} in row {self._found[at][1]} of {self.origin}"

    def _refuse_undeclared(self, name: Any, row: int, names: list[Any]) -> None:
        where = f"in row {row} of {self.origin}"
        alike = [other for other in names if seen(str(other)) == seen(str(name))]
        if alike:
            raise TableError(
                f"{self.variable}={spelled(str(name))} {where} is none of the categories, but looks"
                f" like {spelled(str(alike[0]))}: write them alike"
            )
        raise TableError(
            f"{self.variable}={legible(str(name))} {where} is none of the categories"
            f" [{first_of(names)}]"
        )


def labels_of(coordinate: xr.DataArray) -> list[Any]:
    """The labels along a dimension as Python's values, dates as timestamps: NumPy makes
    whole numbers of those that are counted in nanoseconds.
    """
    found: list[Any] = coordinate.to_index().tolist()
    return found


def check_missing(missing: Any) -> None:
    """Raise `ParameterError` unless it says what is done about a missing label."""
    text = isinstance(missing, str) and bool(missing.strip())
    if not text and not is_integer(missing):
        raise ParameterError(
            "missing must be 'refuse', 'drop', or the label of what is missing, such as 'not"
            f" stated', got {quoted(missing)}"
        )


def check_variables(
    variables: Sequence[str], *, reserved: frozenset[str] = RESERVED_NAMES, name: str = "table"
) -> None:
    """Raise `TableError` unless some names can be those of a table's variables."""
    if len(variables) > _MOST_VARIABLES:
        raise TableError(
            f"{name}: at most {_MOST_VARIABLES} variables are accepted, got {len(variables):,}"
        )
    if len(set(variables)) < len(variables):
        raise TableError(f"{name}: a variable stands twice in {list(variables)}")
    check_spelling(variables, lambda at: f"{name}: the name of variable {at + 1}")
    taken = [variable for variable in variables if seen(variable) in reserved]
    if taken:
        raise TableError(f"{name}: {taken} cannot name a variable: {sorted(reserved)} are reserved")


def check_declared(declared: Sequence[Any], variable: str) -> None:
    """Raise `TableError` unless some values can be the categories of a variable."""
    if any(is_missing(label) for label in declared):
        raise TableError(f"a label is missing: the categories of {variable!r}")
    for label in declared:
        if not is_label(label):
            raise TableError(f"the categories of {variable!r} hold one that {other_kind(label)}")
    written = list(map(text_of, declared))
    twice = next((label for label, times in Counter(written).items() if times > 1), None)
    if twice is not None:
        raise TableError(
            f"the declared categories of {variable!r} hold one twice: {legible(twice)}"
        )


def declared_categories(
    categories: Mapping[str, Sequence[Any]] | None, variables: Sequence[str]
) -> dict[str, list[Any]]:
    """Check which variables a call declares categories of, and list these."""
    if not isinstance(categories, Mapping | None):
        raise ParameterError(
            f"categories must be sequences of labels by variable, got {quoted(categories)}"
        )
    declared = dict(categories or {})
    unknown = [dim for dim in declared if dim not in variables]
    if unknown:
        raise ParameterError(
            f"categories are declared for {unknown}, the variables are {list(variables)}"
        )
    labels: Any
    for dim, labels in declared.items():
        ordered = isinstance(labels, Iterable) and isinstance(labels, Sized)
        if not ordered or isinstance(labels, str | bytes | set | frozenset):
            raise ParameterError(
                f"the categories of {dim!r} must be a sequence of labels, got {quoted(labels)}"
            )
        if len(labels) > _MOST_LABELS:
            raise ParameterError(
                f"a variable can have at most {_MOST_LABELS:,} categories, {dim!r} has"
                f" {len(labels):,}"
            )
    return {dim: list(labels) for dim, labels in declared.items()}


def refuse_large_table(*shapes: Sequence[int], bytes_of_cell: int = 8) -> None:
    """Raise `TableError` where a table, or several, would not fit into memory."""
    cells = sum(map(prod, shapes))
    size = cells * bytes_of_cell
    if size > MOST_BYTES:
        what = "the table" if len(shapes) == 1 else "all tables together"
        raise TableError(
            f"{what} would have {cells} cells and take {size // 2**30:,} GiB, at most"
            f" {MOST_BYTES // 2**30} GiB are accepted: sizes {tuple(max(shapes, key=prod))}"
        )


def refuse_large_labels(labels: Sequence[str], variable: str) -> None:
    """Raise `TableError` where labels would not fit into memory: NumPy gives each the
    room of the longest.
    """
    size = 4 * len(labels) * max(map(len, labels), default=0)
    if size > MOST_BYTES:
        raise TableError(
            f"the {len(labels):,} labels of {variable!r} would take {size / 2**30:,.1f} GiB, at"
            f" most {MOST_BYTES // 2**30} GiB are accepted"
        )


def refuse_other_kinds(
    name: str, origin: str, codes: Codes, values: Sequence[Any], *, start: int
) -> None:
    """Raise `TableError` where a column, given by its codes and what they stand for,
    holds values that name nothing, such as lists.
    """
    if set(map(type, values)) <= {str, int, NoneType}:
        return
    for code, value in enumerate(values):
        if not is_label(value) and not is_missing(value):
            row = start + int((codes == code).argmax()) + 1
            raise TableError(f"{name!r} in row {row} of {origin} {other_kind(value)}")


def other_kind(value: Any) -> str:
    """What is wrong with a value that names nothing, for a message."""
    kind = (
        "a time in a time zone"
        if isinstance(value, datetime | time)
        else f"of the type {type(value).__name__}"
    )
    return f"is {kind}; accepted are text, numbers, dates and times: write it as text"


def factorize(column: Any) -> tuple[Codes, list[Any]]:
    """Codes of a column in order of first appearance, and the values that they stand
    for; a missing value has the code -1 or one of its own.
    """
    column = exact_times(column)
    room = type(column).__module__.partition(".")[0]
    if room == "pyarrow":
        return _factorize_arrow(column)
    if room == "pandas" and column.dtype != np.dtype(object):
        codes, labels = column.factorize()
        return codes.astype(np.int64), labels.tolist()
    return _factorize_python(python_values(column))


def _factorize_arrow(column: Any) -> tuple[Codes, list[Any]]:
    import pyarrow as pa

    if getattr(column.type, "extension_name", "") in ("pandas.period", "pandas.interval"):
        return factorize(column.to_pandas())
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


def _rank(names: Sequence[Any]) -> Any:
    """What categories are sorted by."""
    if all(isinstance(name, str) and is_number(name) for name in names):
        return lambda name: (Decimal(name), name)
    return None


def _is_number(value: Any) -> bool:
    return is_integer(value) and -(2**63) <= int(value) < 2**63


def _identity(value: Any) -> Any:
    """What values are told apart by: text and whole numbers by themselves, others with
    their type, as True equals 1; those that name nothing are alike.
    """
    if isinstance(value, str) or is_integer(value):
        return value
    if is_missing(value):
        return None
    return (type(value), value) if is_label(value) else (type(value), None)
