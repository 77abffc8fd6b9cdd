"""The one way in for records, from files and from data frames."""

from os import PathLike, fspath
from pathlib import Path
from typing import Any

from taciturn.errors import FileFormatError, ParameterError
from taciturn.files import ADDRESS, TABLE_ENDINGS, StandardInput, check_readable, expanded
from taciturn.tables.sources.base import Source
from taciturn.tables.sources.csv_files import CsvSource
from taciturn.tables.sources.frames import FrameSource
from taciturn.tables.sources.ibis_tables import IbisSource, is_ibis_table
from taciturn.tables.sources.parquet_files import ParquetSource
from taciturn.tables.sources.relations import RelationSource, is_relation

__all__ = ["open_source", "refuse_dialect"]


def open_source(
    records: str | PathLike[str] | Any, *, sep: str | None = None, encoding: str | None = None
) -> Source:
    """Open a CSV or Parquet file, by its ending, standard input, which is CSV, a data
    frame, a relation of DuckDB or a table of Ibis; a source is one already.

    A name stands for one file on this machine: ``~`` is the home directory, as for
    pandas; nothing else in it has a meaning, and no address is opened. `sep` and
    `encoding` are those of a CSV file.
    """
    if isinstance(records, StandardInput):
        return CsvSource(records, sep=sep, encoding=encoding)
    path = _local(fspath(records)) if isinstance(records, str | PathLike) else None
    if path is not None:
        check_readable(path, TABLE_ENDINGS)
        if path.suffix.lower() == ".csv":
            return CsvSource(path, sep=sep, encoding=encoding)
    refuse_dialect(records, sep, encoding)
    if path is not None:
        return ParquetSource(path)
    if isinstance(records, Source):
        return records
    if is_ibis_table(records):
        return IbisSource(records)
    return RelationSource(records) if is_relation(records) else FrameSource(records)


def refuse_dialect(records: Any, sep: str | None, encoding: str | None) -> None:
    """Raise `ParameterError` where what is no CSV file is given a separator or an
    encoding.
    """
    for name, given in (("sep", sep), ("encoding", encoding)):
        if given is not None:
            what = records if isinstance(records, str | PathLike) else type(records).__name__
            if isinstance(records, Source):
                what = records.origin
            raise ParameterError(f"{name} is that of a CSV file: it does not apply to {what!s:.80}")


def _local(named: Any) -> Path:
    """The file on this machine that a path names."""
    if not isinstance(named, str) or "\0" in named:
        raise FileFormatError(f"a path must be text without a NUL, got {named!r:.80}")
    if ADDRESS.match(named):
        raise FileFormatError(
            f"{named:.200}: is an address; only files on this machine are read: download it first"
        )
    return expanded(named)
