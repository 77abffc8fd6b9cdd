"""Records in a Parquet file, read a part at a time with pyarrow."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from taciturn.errors import FileFormatError, MissingDependencyError, TableError
from taciturn.tables.sources.base import Source

__all__ = ["ParquetSource"]

_ROWS: Final = 500_000  # of one part


class ParquetSource(Source):
    """A Parquet file. Columns that are dictionaries declare their categories."""

    def __init__(self, path: Path) -> None:
        try:
            from pyarrow import parquet
        except ImportError as error:
            raise MissingDependencyError(
                f"{path}: reading Parquet needs pyarrow: pip install 'taciturn[parquet]'"
            ) from error
        self.path = path
        with self._readable(), parquet.ParquetFile(path) as file:
            self._schema = file.schema_arrow
        twice = [name for name in self._schema.names if self._schema.names.count(name) > 1]
        if twice:
            raise FileFormatError(f"{path}: {twice[0]!r} names two columns")
        super().__init__(str(path), _column_names(self._schema))

    def parts(self, names: Sequence[str]) -> Iterator[list[Any]]:
        """The named columns of consecutive rows, part after part."""
        import pyarrow as pa
        from pyarrow import parquet

        for name in names:
            kind = self._schema.field(name).type
            if pa.types.is_timestamp(kind) and kind.tz is not None:
                raise TableError(
                    f"{name!r} in {self.origin} holds times in a time zone: write them as text"
                )
        with self._readable(), parquet.ParquetFile(self.path) as file:
            for part in file.iter_batches(batch_size=_ROWS, columns=list(dict.fromkeys(names))):
                columns = [part.column(name) for name in names]
                for name, column in zip(names, columns, strict=True):
                    if pa.types.is_dictionary(column.type):
                        known = self.declared.setdefault(name, [])
                        new = column.dictionary.to_pylist()
                        if new != known:
                            self.declared[name] = list(dict.fromkeys([*known, *new]))
                if len(part):
                    yield columns

    @contextmanager
    def _readable(self) -> Iterator[None]:
        try:
            yield
        except FileFormatError:
            raise
        except (OSError, ValueError) as error:  # pyarrow's ArrowInvalid is a ValueError
            raise FileFormatError(f"{self.path}: not a readable Parquet file: {error}") from error


def _column_names(schema: Any) -> list[str]:
    """Columns of a schema: named levels of an index that pandas wrote come first, as in
    the data frame, and an index without a name is no column.
    """
    metadata = json.loads((schema.metadata or {}).get(b"pandas", b"{}"))
    levels = [name for name in metadata.get("index_columns", []) if isinstance(name, str)]
    unnamed = {
        column.get("field_name")
        for column in metadata.get("columns", [])
        if column.get("name") is None
    }
    others = [name for name in schema.names if name not in levels]
    return [name for name in levels if name in schema.names and name not in unnamed] + others
