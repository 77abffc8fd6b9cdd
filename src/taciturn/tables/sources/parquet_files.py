"""Records in a Parquet file, read a part at a time with pyarrow."""

import json
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from taciturn.errors import FileFormatError, MissingDependencyError, TableError
from taciturn.tables.sources.base import Source
from taciturn.tables.spelling import MOST_LETTERS
from taciturn.tables.values import convertible

__all__ = ["ParquetSource"]

_ROWS: Final = 500_000  # of one part
_BYTES: Final = 2**26  # of the columns of one part, by what the file says
_MOST_ROWS: Final = 2**32
_REPEATED: Final = 8  # bytes of a text on average, below which texts are repeated


class ParquetSource(Source):
    """A Parquet file. Columns that are dictionaries declare their categories."""

    def __init__(self, path: Path) -> None:
        try:
            import pyarrow.parquet  # noqa: F401 - must be there
        except ImportError as error:
            raise MissingDependencyError(
                f"{path}: reading Parquet needs pyarrow: install the extra 'parquet'"
            ) from error
        self.path = path
        with self._opened() as file:
            schema, rows = file.schema_arrow, file.metadata.num_rows
        if rows > _MOST_ROWS:
            raise FileFormatError(f"{path}: has {rows:,} rows, at most {_MOST_ROWS:,} are read")
        for name, times in Counter(schema.names).items():
            if times > 1:
                raise FileFormatError(f"{path}: {name!r:.80} names two columns")
        super().__init__(str(path), _column_names(schema, path))
        self._types = dict(zip(schema.names, schema.types, strict=True))
        # Those of polars stand in the order of the records; its enums are declared.
        self._incidental = {
            field.name
            for field in schema
            if any(key.startswith(b"_PL_CATEGORICAL") for key in field.metadata or {})
        }

    def parts(self, names: Sequence[str]) -> Generator[list[Any]]:
        """The named columns of consecutive rows, part after part."""
        import pyarrow as pa

        columns = list(dict.fromkeys(names))
        with self._opened() as file:
            sizes = _sizes(file.metadata, columns)
            rows = file.metadata.num_rows
        repeated = [name for name in columns if self._is_repeated(name, sizes[name], rows)]
        at_once = max(1, min(_ROWS, _BYTES * rows // max(1, *sizes.values())))
        with self._opened(repeated) as file:
            for part in file.iter_batches(batch_size=at_once, columns=columns):
                for name in columns:
                    with convertible(name, self.origin):
                        part.column(name).validate(full=True)
                    if pa.types.is_dictionary(self._types[name]) and name not in self._incidental:
                        self.declare(name, part.column(name).dictionary.to_pylist())
                if len(part):
                    yield [part.column(name) for name in names]

    def _is_repeated(self, name: str, size: int, rows: int) -> bool:
        """Whether a column holds texts that had better be read once each; one that
        cannot be read is refused.
        """
        from pyarrow import types

        kind = self._types[name]
        if types.is_timestamp(kind) and kind.tz is not None:
            raise self.refused_zones(name)
        if not (types.is_string(kind) or types.is_large_string(kind)):
            return False
        if size > 4 * MOST_LETTERS * (rows + 1):
            raise TableError(
                f"the texts of {name!r} in {self.origin} are longer than {MOST_LETTERS:,} letters"
            )
        return types.is_large_string(kind) or size < _REPEATED * rows

    @contextmanager
    def _opened(self, repeated: Sequence[str] = ()) -> Iterator[Any]:
        """The open file; whatever is wrong with it becomes a `FileFormatError`."""
        import pyarrow as pa
        from pyarrow import parquet

        try:
            with (
                pa.OSFile(str(self.path)) as opened,  # by its name, never an address
                parquet.ParquetFile(opened, read_dictionary=list(repeated)) as file,
            ):
                yield file
        except (FileFormatError, TableError):
            raise
        except (OSError, ValueError, NotImplementedError, LookupError, MemoryError) as error:
            raise FileFormatError(f"{self.path}: not a readable Parquet file: {error}") from error


def _sizes(metadata: Any, columns: Sequence[str]) -> dict[str, int]:
    """How many bytes some columns take without compression, as a file says; nested ones
    are not counted.
    """
    at = {metadata.schema.column(i).path: i for i in range(metadata.num_columns)}
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    return {
        name: sum(group.column(at[name]).total_uncompressed_size for group in groups)
        if name in at
        else 0
        for name in columns
    }


def _column_names(schema: Any, path: Path) -> list[str]:
    """Columns of a schema: named levels of an index that pandas wrote come first, as in
    the data frame, and an index without a name is no column.
    """
    try:
        metadata = json.loads((schema.metadata or {}).get(b"pandas", b"{}"))
        levels = [name for name in metadata.get("index_columns", []) if isinstance(name, str)]
        unnamed = {
            str(column.get("field_name"))
            for column in metadata.get("columns", [])
            if column.get("name") is None
        }
    except (AttributeError, RecursionError, TypeError, ValueError) as error:
        raise FileFormatError(
            f"{path}: what pandas says of the columns in this file cannot be read, {error!s:.80};"
            " write the file again, or without it"
        ) from error
    known, first = set(schema.names), dict.fromkeys(levels)
    others = [name for name in schema.names if name not in first]
    return [name for name in first if name in known and name not in unnamed] + others
