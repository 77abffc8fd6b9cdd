"""The records of a CSV file as bytes of UTF-8, some megabytes at a time.

Read strictly: a field that holds the separator, a line end or a quote is put in quotes,
in which quotes are doubled (RFC 4180), and nowhere else may a quote stand. Lines end
with LF or CRLF or, all of them, with CR. Which separator it is, where it is not given,
the header says: the one of comma, semicolon, tab and bar that stands in it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final

import numpy as np
import numpy.typing as npt

from taciturn.errors import FileFormatError
from taciturn.files import TableFile
from taciturn.tables.sources.csv_text import read_text

__all__ = ["SEPARATORS", "CsvRecords", "find_separator", "read_csv_records"]

Bytes = npt.NDArray[np.uint8]
Flags = npt.NDArray[np.bool_]
Positions = npt.NDArray[np.int64]

_LONGEST: Final = 2**24  # bytes of a record
_LF, _CR, _QUOTE, _SPACE = b'\n\r" '
SEPARATORS: Final = ",;\t|"


@dataclass(frozen=True)
class CsvRecords:
    """Complete records, one after the other."""

    path: TableFile
    line: int
    """The line of the file that they begin with."""
    raw: Bytes
    ends: Flags
    """Where a record ends: the line ends that are not in quotes."""
    sep: str = ","

    def split(self) -> tuple["CsvRecords", "CsvRecords"]:
        """The first record, and those after it."""
        size = int(self.ends.argmax()) + 1 if self.raw.size else 0
        first = replace(self, raw=self.raw[:size], ends=self.ends[:size])
        line = self.line_of(size)
        return first, replace(self, line=line, raw=self.raw[size:], ends=self.ends[size:])

    def line_of(self, position: int) -> int:
        """The line of the file in which a byte stands."""
        return self.line + int((self.raw[:position] == _LF).sum())

    def header(self) -> list[str]:
        """The fields of the first record."""
        first, _ = self.split()
        separators = first._separators()
        columns = first._cut(separators, separators.size, range(separators.size))
        return [name for [name] in columns]

    def columns(self, width: int, chosen: Sequence[int]) -> list[list[str]]:
        """Some columns of the records, each of which must have `width` fields or be a
        blank line, which is none; in a single column it is one whose field is missing.
        """
        separators = self._separators()
        ends = self.ends[separators]
        regular = ends.size == width * ends.sum() and ends[width - 1 :: width].all()
        if regular:
            return self._cut(separators, width, chosen)
        kept = self._without_blank_lines(separators, width)
        return kept._cut(kept._separators(), width, chosen)

    def _separators(self) -> Positions:
        marks = self.raw == ord(self.sep)
        quoted = _in_quotes(self.raw)
        return np.flatnonzero((marks if quoted is None else marks & ~quoted) | self.ends)

    def _cut(self, separators: Positions, width: int, chosen: Sequence[int]) -> list[list[str]]:
        marked = self.raw.copy()
        marked[separators] = 0  # which a text does not hold
        fields = _unquoted(marked).tobytes().decode("utf-8").split("\0")[:-1]
        return [fields[column::width] for column in chosen]

    def _without_blank_lines(self, separators: Positions, width: int) -> "CsvRecords":
        if not self.raw.size:
            return self
        last = np.flatnonzero(self.ends)
        start = np.concatenate([[0], last[:-1] + 1])
        fields = np.diff(np.searchsorted(separators, last, side="right"), prepend=0)
        blank = ~np.logical_or.reduceat(self.raw > _SPACE, start) & (fields == 1)
        wrong = ~blank & (fields != width)
        if wrong.any():
            record = int(wrong.argmax())
            raise FileFormatError(
                f"{self.path}: line {self.line_of(start[record])} has {fields[record]} fields, the"
                f" header has {width}"
            )
        kept = np.repeat(~blank, last - start + 1)
        return replace(self, raw=self.raw[kept], ends=self.ends[kept])


def find_separator(path: TableFile, encoding: str) -> str:
    """The separator that stands in the header; a comma where none does."""
    start = header = b""
    for block in read_text(path, encoding):
        start += block
        raw = np.frombuffer(start, dtype=np.uint8)
        quoted = _in_quotes(raw)
        outside = raw if quoted is None else raw[~quoted]
        header, ended, _ = outside.tobytes().partition(b"\n")
        if ended or len(start) > _LONGEST:
            break
    found = [mark for mark in SEPARATORS if mark.encode() in header]
    if len(found) > 1:
        raise FileFormatError(
            f"{path}: {' and '.join(map(repr, found))} stand in the header, and either may separate"
            f" the fields; say which: sep={found[0]!r} or sep={found[1]!r}, on the command line"
            " --sep"
        )
    return found[0] if found else ","


def read_csv_records(path: TableFile, sep: str, encoding: str) -> Iterator[CsvRecords]:
    """All records of a file; nothing of it is held but what was read last."""
    rest, line = b"", 1
    for block in chain(read_text(path, encoding), [b""]):
        rest += block
        if not block and rest and not rest.endswith(b"\n"):
            rest += b"\n"  # which the last line may lack
        raw = np.frombuffer(rest, dtype=np.uint8)
        ends = raw == _LF
        quoted = _in_quotes(raw)
        if quoted is not None:
            _check_quotes(raw, path, line, ord(sep))
            ends &= ~quoted
        size = int(ends.size - ends[::-1].argmax()) if ends.any() else 0
        if size:
            records = CsvRecords(path, line, raw[:size], ends[:size], sep)
            _refuse_lone_returns(records, quoted)
            yield records
            line = records.line_of(size)
            rest = rest[size:]
        if len(rest) > _LONGEST:
            raise FileFormatError(
                f"{path}: the record in line {line} is longer than {_LONGEST:,} bytes; is a quote"
                " never closed?"
            )
    if rest:
        raise FileFormatError(f"{path}: the record in line {line} has a quote that is never closed")


def _in_quotes(raw: Bytes) -> Flags | None:
    """Which bytes stand in quotes, the opening quote included; None without quotes."""
    quotes = raw == _QUOTE
    return np.bitwise_xor.accumulate(quotes.view(np.uint8)).view(np.bool_) if quotes.any() else None


def _unquoted(raw: Bytes) -> Bytes:
    """The bytes without the quotes around fields, and doubled ones as one."""
    quotes = raw == _QUOTE
    at = np.flatnonzero(quotes)
    if not at.size:
        return raw
    doubled = at[2::2][at[2::2] == at[1:-1:2] + 1]
    quotes[doubled] = False
    unquoted: Bytes = raw[~quotes]
    return unquoted


def _check_quotes(raw: Bytes, path: TableFile, line: int, sep: int) -> None:
    """Raise `FileFormatError` unless quotes open and close a field or are doubled."""
    quotes = np.flatnonzero(raw == _QUOTE)
    opening, closing = quotes[::2], quotes[1::2]
    before = raw[opening - 1]
    before[opening == 0] = _LF
    opens = (before == sep) | (before == _LF)
    opens[1:] |= opening[1:] == closing[: len(opening) - 1] + 1
    following = raw[np.minimum(closing + 1, raw.size - 1)]
    closes = (following == sep) | (following == _LF) | (following == _QUOTE)
    closes |= closing == raw.size - 1
    wrong = np.concatenate([opening[~opens], closing[~closes]])
    if wrong.size:
        line += int((raw[: wrong.min()] == _LF).sum())
        raise FileFormatError(
            f"{path}: not a CSV file, at line {line}: a quote within a field; put the field in"
            " quotes and double those in it"
        )


def _refuse_lone_returns(records: CsvRecords, quoted: Flags | None) -> None:
    returns = records.raw == _CR
    if quoted is not None:
        returns &= ~quoted[: returns.size]
    if returns.any():
        raise FileFormatError(
            f"{records.path}: not a CSV file, at line {records.line_of(int(returns.argmax()))}: a"
            " carriage return within the line"
        )
