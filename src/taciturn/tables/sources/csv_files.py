"""Records in a CSV file: UTF-8, commas, a header; all fields are text."""

import csv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

from taciturn.errors import FileFormatError
from taciturn.tables.sources.base import Source

__all__ = ["CsvSource"]

_ROWS: Final = 200_000  # of one part
_AT_ONCE: Final = 2_000  # rows that are split before they leave the processor's cache


class CsvSource(Source):
    """A CSV file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._rows() as rows:
            header = next(rows, None)
            if header is None or (_is_blank(header) and all(_is_blank(row) for row in rows)):
                raise FileFormatError(
                    f"{path}: the file is empty; expected a header and one row a record or cell"
                )
        super().__init__(str(path), header)
        self._check_header()

    def parts(self, names: Sequence[str]) -> Iterator[list[Any]]:
        """The named columns of consecutive rows, part after part."""
        fields = [itemgetter(self.names.index(name)) for name in names]
        width = len(self.names)
        columns: list[list[str]] = [[] for _ in names]
        with self._rows() as rows:
            next(rows)
            while some := list(islice(rows, _AT_ONCE)):
                if width == 1 or set(map(len, some)) != {width}:
                    some = [row for row in some if not _is_blank(row)]
                    if any(len(row) != width for row in some):
                        self._refuse_width()
                for column, field in zip(columns, fields, strict=True):
                    column.extend(map(field, some))
                if len(columns[0]) >= _ROWS:
                    yield columns
                    columns = [[] for _ in names]
        if columns[0]:
            yield columns

    def _check_header(self) -> None:
        if _is_blank(self.names):
            raise FileFormatError(f"{self.path}: the first line must be the header, and is empty")
        for position, name in enumerate(self.names):
            if not name.strip():
                raise FileFormatError(
                    f"{self.path}: the header has no name for column {position + 1}; write a data"
                    " frame without its index"
                )
            if name in self.names[:position]:
                raise FileFormatError(f"{self.path}: the header names {name!r} twice")
        if len(self.names) == 1 and any(mark in self.names[0] for mark in ";\t|"):
            raise FileFormatError(
                f"{self.path}: the fields must be separated by commas; the header is"
                f" {self.names[0]!r}"
            )

    @contextmanager
    def _rows(self) -> Iterator[Any]:
        """A reader of rows; what is wrong with the file becomes a `FileFormatError`."""
        rows = None
        try:
            with self.path.open(encoding="utf-8-sig") as file:
                rows = csv.reader(self._text(file), strict=True)
                yield rows
        except FileFormatError:
            raise
        except UnicodeDecodeError as error:
            raise FileFormatError(
                f"{self.path}: not a text file in UTF-8: {error.reason} at position"
                f" {self._undecodable()}"
            ) from error
        except csv.Error as error:
            line = rows.line_num if rows is not None else 1
            raise FileFormatError(
                f"{self.path}: not a CSV file, at line {line}: {error}"
            ) from error
        except OSError as error:
            raise FileFormatError(f"{self.path}: cannot be read: {error.strerror}") from error

    def _text(self, lines: Any) -> Iterator[str]:
        read = 0
        for line in lines:
            if "\0" in line:
                position = read + line.index("\0")
                raise FileFormatError(
                    f"{self.path}: not a text file: character {position} is a NUL"
                )
            read += len(line)
            yield line

    def _undecodable(self) -> int:
        """Position of the first byte that is not UTF-8: the reader knows it only within
        what it decodes at once.
        """
        before = 0
        with self.path.open("rb") as file:
            for line in file:
                try:
                    line.decode("utf-8")
                except UnicodeDecodeError as error:
                    return before + error.start
                before += len(line)
        return before

    def _refuse_width(self) -> None:
        with self._rows() as rows:
            for row in rows:
                if len(row) != len(self.names) and not _is_blank(row):
                    raise FileFormatError(
                        f"{self.path}: line {rows.line_num} has {len(row)} fields, the header has"
                        f" {len(self.names)}"
                    )


def _is_blank(row: list[str]) -> bool:
    return not row or (len(row) == 1 and not row[0].strip())
