"""Long data from files and data frames, before any meaning is given to it."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from taciturn.errors import FileFormatError, MissingDependencyError, TableError
from taciturn.files import TABLE_ENDINGS, check_readable

__all__ = ["LongTable", "from_frame", "read_long"]


@dataclass(frozen=True)
class LongTable:
    """Columns of labels and counts, as read."""

    columns: dict[str, npt.NDArray[Any]]
    origin: str
    categories: dict[str, list[Any]] = field(default_factory=dict)
    """Declared order of categories, for columns that carry one."""

    @property
    def rows(self) -> int:
        """Number of rows."""
        return min((len(column) for column in self.columns.values()), default=0)

    def names(self) -> str:
        """Column names for a message."""
        return ", ".join(repr(name) for name in self.columns)


def read_long(path: str | PathLike[str]) -> LongTable:
    """Read a CSV or Parquet file; the ending says which."""
    path = Path(path)
    check_readable(path, TABLE_ENDINGS)
    return _read_csv(path) if path.suffix.lower() == ".csv" else _read_parquet(path)


def from_frame(frame: Any) -> LongTable:
    """Take a pandas or polars data frame; named levels of a pandas index are columns
    like others.
    """
    import narwhals as nw

    try:
        data = nw.from_native(frame, eager_only=True)
        data = _with_index_levels(data)
        names = [
            name for name in data.columns if not isinstance(name, str)
        ]  # narwhals lets other types through
    except TypeError as error:
        raise TableError(
            f"cannot read a table from {type(frame).__name__}: accepted are a path to a CSV or"
            " Parquet file, a pandas or polars DataFrame, or an xarray.DataArray"
        ) from error
    except nw.exceptions.DuplicateError as error:
        raise TableError(f"a column stands twice in the data frame: {error}") from error
    if names:
        raise TableError(f"the columns of the data frame must be named by text, got {names[0]!r}")
    columns, categories = {}, {}
    for name in data.columns:
        series = data[name]
        columns[name] = _objects(series.to_list())
        if isinstance(series.dtype, nw.Enum):  # of polars, and an ordered pandas categorical
            categories[name] = list(series.dtype.categories)
        elif isinstance(series.dtype, nw.Categorical) and series.implementation.is_pandas():
            # One of polars shares its categories with other columns; one of pandas
            # declares its own.
            categories[name] = series.to_native().cat.categories.tolist()
    return LongTable(columns, origin="the data frame", categories=categories)


def _with_index_levels(data: Any) -> Any:
    import narwhals as nw

    if not data.implementation.is_pandas():
        return data
    native = data.to_native()
    levels = [name for name in native.index.names if name is not None]
    repeated = [name for name in levels if name in native.columns]
    if repeated:
        raise TableError(
            f"{repeated[0]!r} names both a column and an index level of the data frame"
        )
    return nw.from_native(native.reset_index(level=levels), eager_only=True) if levels else data


def _objects(values: Sequence[Any]) -> npt.NDArray[Any]:
    return np.fromiter(values, dtype=object, count=len(values))


def _read_csv(path: Path) -> LongTable:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileFormatError(f"{path}: not a text file in UTF-8: {error}") from error
    except OSError as error:
        raise FileFormatError(f"{path}: cannot be read: {error.strerror}") from error
    if "\0" in text:
        raise FileFormatError(f"{path}: not a text file: character {text.index(chr(0))} is a NUL")
    reader = csv.reader(io.StringIO(text), strict=True)
    rows: list[list[str]] = []
    try:
        for row in reader:
            if not "".join(row).strip() and len(row) <= 1:
                continue
            if rows and len(row) != len(rows[0]):
                raise FileFormatError(
                    f"{path}: line {reader.line_num} has {len(row)} fields, the header has"
                    f" {len(rows[0])}"
                )
            rows.append(row)
    except csv.Error as error:
        raise FileFormatError(
            f"{path}: not a CSV file, at line {reader.line_num}: {error}"
        ) from error
    if not rows:
        raise FileFormatError(f"{path}: the file is empty; expected a header and one row a cell")
    header, *body = rows
    for position, name in enumerate(header):
        if not name.strip():
            raise FileFormatError(
                f"{path}: the header has no name for column {position + 1}; a data frame is written"
                " without its index"
            )
        if name in header[:position]:
            raise FileFormatError(f"{path}: the header names {name!r} twice")
    if len(header) == 1 and any(mark in header[0] for mark in ";\t|"):
        raise FileFormatError(
            f"{path}: the fields must be separated by commas; the header is {header[0]!r}"
        )
    columns = {
        name: _objects([row[position] for row in body]) for position, name in enumerate(header)
    }
    return LongTable(columns, origin=str(path))


def _read_parquet(path: Path) -> LongTable:
    import pandas as pd

    try:
        frame = pd.read_parquet(path, engine="pyarrow")
    except ImportError as error:
        install = "pip install 'taciturn[parquet]'"
        raise MissingDependencyError(f"{path}: reading Parquet needs pyarrow: {install}") from error
    except (OSError, ValueError) as error:  # pyarrow's ArrowInvalid is a ValueError
        raise FileFormatError(f"{path}: not a readable Parquet file: {error}") from error
    long = from_frame(frame)
    return LongTable(long.columns, origin=str(path), categories=long.categories)
