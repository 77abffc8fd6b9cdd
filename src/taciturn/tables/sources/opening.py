"""The one way in for records, from files and from data frames."""

from os import PathLike
from pathlib import Path
from typing import Any

from taciturn.files import TABLE_ENDINGS, check_readable
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
    check_readable(path, TABLE_ENDINGS)
    return CsvSource(path) if path.suffix.lower() == ".csv" else ParquetSource(path)
