"""Records in a CSV file with a header; all fields are text."""

from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from taciturn.errors import FileFormatError
from taciturn.files import TableFile
from taciturn.tables.sources.base import Source
from taciturn.tables.sources.csv_records import (
    SEPARATORS,
    find_separator,
    read_csv_records,
)
from taciturn.tables.sources.csv_text import refuse_undecodable
from taciturn.validate import UTF_8, check_encoding, check_separator

__all__ = ["CsvSource"]


class CsvSource(Source):
    """A CSV file, in UTF-8 where no encoding is given; a separator that is not given is
    found in the header.
    """

    def __init__(
        self, path: TableFile, *, sep: str | None = None, encoding: str | None = None
    ) -> None:
        self.path = path
        self._encoding = UTF_8 if encoding is None else check_encoding(encoding)
        given = None if sep is None else check_separator(sep)
        with self._readable():
            self._sep = given or find_separator(path, self._encoding)
            first = next(read_csv_records(path, self._sep, self._encoding), None)
            if first is None:
                raise FileFormatError(
                    f"{path}: the file is empty; expected a header and one row a record or cell"
                )
            super().__init__(str(path), first.header())
        self._check_header()

    def parts(self, names: Sequence[str]) -> Generator[list[Any]]:
        """The named columns of consecutive rows, part after part."""
        chosen = [self.names.index(name) for name in names]
        with self._readable():
            found = read_csv_records(self.path, self._sep, self._encoding)
            for number, records in enumerate(found):
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
        others = set(SEPARATORS) - {self._sep}
        if len(self.names) == 1 and any(mark in self.names[0] for mark in others):
            raise FileFormatError(
                f"{self.path}: the fields must be separated by {self._sep!r}; the header is"
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
            refuse_undecodable(self.path, self._encoding)
            raise
        except UnicodeError as error:
            raise FileFormatError(
                f"{self.path}: not a text file in {self._encoding.upper()}: {error}"
            ) from error
        except OSError as error:
            raise FileFormatError(f"{self.path}: cannot be read: {error.strerror}") from error
