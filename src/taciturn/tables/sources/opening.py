"""The one way in for records, from files and from data frames."""

from os import PathLike
from pathlib import Path
from typing import Any

from taciturn.errors import FileFormatError
from taciturn.tables.sources.base import Source
from taciturn.tables.sources.csv_files import CsvSource
from taciturn.tables.sources.frames import FrameSource
from taciturn.tables.sources.parquet_files import ParquetSource

__all__ = ["open_source"]


def open_source(records: str | PathLike[str] | Any) -> Source:
    """Open a CSV or Parquet file, by its ending, or a data frame."""
    if not isinstance(records, str | PathLike):
        return FrameSource(records)
    path = Path(records)
    ending = path.suffix.lower()
    if ending not in {".csv", ".parquet"}:
        raise FileFormatError(
            f"{path}: cannot read the ending {ending!r}; accepted are '.csv' and '.parquet'"
        )
    if not path.is_file():
        raise FileFormatError(f"{path}: no such file")
    return CsvSource(path) if ending == ".csv" else ParquetSource(path)
