"""Records in a CSV file: UTF-8, commas, a header; all fields are text."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from taciturn.errors import FileFormatError
from taciturn.tables.sources.base import Source
from taciturn.tables.sources.csv_records import read_csv_records, refuse_undecodable

__all__ = ["CsvSource"]


class CsvSource(Source):
    """A CSV file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._readable():
            first = next(read_csv_records(path), None)
            if first is None:
                raise FileFormatError(
                    f"{path}: the file is empty; expected a header and one row a record or cell"
                )
            super().__init__(str(path), first.header())
        self._check_header()

    def parts(self, names: Sequence[str]) -> Iterator[list[Any]]:
        """The named columns of consecutive rows, part after part."""
        chosen = [self.names.index(name) for name in names]
        with self._readable():
            for number, records in enumerate(read_csv_records(self.path)):
                rows = records if number else records.split()[1]
                columns = rows.columns(len(self.names), chosen)
                if columns[0]:
                    yield columns

    def _check_header(self) -> None:
        if len(self.names) == 1 and not self.names[0].strip():
            raise FileFormatError(f"{self.path}: the first line must be the header, and is empty")
        for position, name in enumerate(self.names):
            if not name.strip():
                raise FileFormatError(
                    f"{self.path}: the header has no name for column {position + 1}; write a data"
                    " frame without its index"
                )
        for name, times in Counter(self.names).items():
            if times > 1:
                raise FileFormatError(f"{self.path}: the header names {name!r:.80} twice")
        if len(self.names) == 1 and any(mark in self.names[0] for mark in ";\t|"):
            raise FileFormatError(
                f"{self.path}: the fields must be separated by commas; the header is"
                f" {self.names[0]!r:.80}"
            )

    @contextmanager
    def _readable(self) -> Iterator[None]:
        """What is wrong with the file becomes a `FileFormatError`."""
        try:
            yield
        except FileFormatError:
            raise
        except UnicodeDecodeError:
            refuse_undecodable(self.path)
            raise
        except OSError as error:
            raise FileFormatError(f"{self.path}: cannot be read: {error.strerror}") from error
