"""The records of a CSV file as bytes, some megabytes at a time.

One dialect, and strict: UTF-8 and commas; a field that holds a comma, a line end or a
quote is put in quotes, in which quotes are doubled (RFC 4180), and nowhere else may a
quote stand. Lines end with LF or CRLF or, all of them, with CR.
"""

import codecs
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from taciturn.errors import FileFormatError

__all__ = ["CsvRecords", "read_csv_records", "refuse_undecodable"]

Bytes = npt.NDArray[np.uint8]
Flags = npt.NDArray[np.bool_]
Positions = npt.NDArray[np.int64]

_BLOCK: Final = 2**22  # bytes that are read at once
_LONGEST: Final = 2**24  # bytes of a record
_LF, _CR, _QUOTE, _COMMA, _SPACE = b'\n\r", '

_NO_TEXTS: Final = {
    codecs.BOM_UTF16_LE: "in UTF-16",
    codecs.BOM_UTF16_BE: "in UTF-16",
    codecs.BOM_UTF32_BE: "in UTF-32",
    b"\x1f\x8b": "compressed (gzip)",
    b"BZh91AY&SY": "compressed (bzip2)",
    b"\xfd7zXZ\0": "compressed (xz)",
    b"\x28\xb5\x2f\xfd": "compressed (Zstandard)",
    b"PK\x03\x04": "a ZIP archive or an Excel workbook",
    b"\xd0\xcf\x11\xe0": "an Excel workbook",
    b"PAR1": "a Parquet file",
}
"""What files begin with that are no text in UTF-8."""


@dataclass(frozen=True)
class CsvRecords:
    """Complete records, one after the other."""

    path: Path
    line: int
    """The line of the file that they begin with."""
    raw: Bytes
    ends: Flags
    """Where a record ends: the line ends that are not in quotes."""

    def split(self) -> tuple["CsvRecords", "CsvRecords"]:
        """The first record, and those after it."""
        size = int(self.ends.argmax()) + 1 if self.raw.size else 0
        rest = CsvRecords(self.path, self.line_of(size), self.raw[size:], self.ends[size:])
        return CsvRecords(self.path, self.line, self.raw[:size], self.ends[:size]), rest

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
        blank line, which is none.
        """
        separators = self._separators()
        ends = self.ends[separators]
        regular = ends.size == width * ends.sum() and ends[width - 1 :: width].all()
        if regular and width > 1:
            return self._cut(separators, width, chosen)
        kept = self._without_blank_lines(separators, width)
        return kept._cut(kept._separators(), width, chosen)

    def _separators(self) -> Positions:
        commas = self.raw == _COMMA
        quoted = _in_quotes(self.raw)
        return np.flatnonzero((commas if quoted is None else commas & ~quoted) | self.ends)

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
        blank = ~np.logical_or.reduceat(self.raw > _SPACE, start)
        fields = np.diff(np.searchsorted(separators, last, side="right"), prepend=0)
        wrong = ~blank & (fields != width)
        if wrong.any():
            record = int(wrong.argmax())
            raise FileFormatError(
                f"{self.path}: line {self.line_of(start[record])} has {fields[record]} fields, the"
                f" header has {width}"
            )
        kept = np.repeat(~blank, last - start + 1)
        return CsvRecords(self.path, self.line, self.raw[kept], self.ends[kept])


def read_csv_records(path: Path) -> Iterator[CsvRecords]:
    """All records of a file; nothing of it is held but what was read last."""
    rest, line = b"", 1
    for block in chain(_blocks(path), [b""]):
        rest += block
        if not block and rest and not rest.endswith(b"\n"):
            rest += b"\n"  # which the last line may lack
        raw = np.frombuffer(rest, dtype=np.uint8)
        ends = raw == _LF
        quoted = _in_quotes(raw)
        if quoted is not None:
            _check_quotes(raw, path, line)
            ends &= ~quoted
        size = int(ends.size - ends[::-1].argmax()) if ends.any() else 0
        if size:
            records = CsvRecords(path, line, raw[:size], ends[:size])
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


def refuse_undecodable(path: Path) -> None:
    """Raise `FileFormatError` at the first byte of a file that is no text in UTF-8."""
    decoder, before, line = codecs.getincrementaldecoder("utf-8")(), 0, 1
    with path.open("rb") as file:
        for block in chain(iter(lambda: file.read(_BLOCK), b""), [b""]):
            pending = decoder.getstate()[0]
            given, reason, at = pending + block, "", -1
            try:
                decoder.decode(block, final=not block)
            except UnicodeDecodeError as error:
                reason, at = error.reason, error.start
            nul = given.find(b"\0", 0, at if at >= 0 else None)
            if nul >= 0:
                reason, at = "a NUL", nul
            if at >= 0:
                line += given.count(b"\n", 0, at)
                raise FileFormatError(
                    f"{path}: not a text file in UTF-8: {reason} in line {line}, at position"
                    f" {before - len(pending) + at}, the byte 0x{given[at]:02X}; save it as CSV in"
                    " UTF-8"
                )
            before += len(block)
            line += given.count(b"\n", len(pending))


def _blocks(path: Path) -> Iterator[bytes]:
    """What a file holds, lines ending with LF."""
    with path.open("rb") as file:
        block = file.read(_BLOCK)
        for beginning, what in _NO_TEXTS.items():
            if block.startswith(beginning):
                raise FileFormatError(
                    f"{path}: not a text file in UTF-8: it is {what}; save it as CSV in UTF-8"
                )
        block = block.removeprefix(codecs.BOM_UTF8)
        returns_only = b"\r" in block and b"\n" not in block
        held = b""  # a CR whose LF may follow
        while block:
            if b"\0" in block:
                refuse_undecodable(path)
            block = held + block
            if returns_only and b"\n" in block:
                raise FileFormatError(f"{path}: some lines end with CR, others with LF")
            held = b"\r" if block.endswith(b"\r") and not returns_only else b""
            block = block.removesuffix(held)
            yield block.replace(b"\r" if returns_only else b"\r\n", b"\n")
            block = file.read(_BLOCK)
        if held:
            yield held


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


def _check_quotes(raw: Bytes, path: Path, line: int) -> None:
    """Raise `FileFormatError` unless quotes open and close a field or are doubled."""
    quotes = np.flatnonzero(raw == _QUOTE)
    opening, closing = quotes[::2], quotes[1::2]
    before = raw[opening - 1]
    before[opening == 0] = _LF
    opens = (before == _COMMA) | (before == _LF)
    opens[1:] |= opening[1:] == closing[: len(opening) - 1] + 1
    following = raw[np.minimum(closing + 1, raw.size - 1)]
    closes = (following == _COMMA) | (following == _LF) | (following == _QUOTE)
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
