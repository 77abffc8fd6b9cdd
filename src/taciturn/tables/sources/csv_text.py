"""The text of a CSV file, as bytes of UTF-8 whose lines end with LF.

A file is in UTF-8, with or without a byte order mark, unless its encoding is given. No
other is guessed: any bytes are some text in Latin-1, so a wrong guess would never show.
"""

import codecs
from collections.abc import Iterator
from itertools import chain
from typing import Final

from taciturn.errors import FileFormatError
from taciturn.files import TableFile
from taciturn.validate import UTF_8

__all__ = ["read_text", "refuse_undecodable"]

_BLOCK: Final = 2**22  # bytes that are read at once

_MARKS: Final = {
    codecs.BOM_UTF8: UTF_8,
    codecs.BOM_UTF32_LE: "utf-32",  # before UTF-16, whose mark it begins with
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_NO_TEXTS: Final = {
    b"\x1f\x8b": "compressed (gzip)",
    b"BZh91AY&SY": "compressed (bzip2)",
    b"\xfd7zXZ\0": "compressed (xz)",
    b"\x28\xb5\x2f\xfd": "compressed (Zstandard)",
    b"PK\x03\x04": "a ZIP archive or an Excel workbook",
    b"\xd0\xcf\x11\xe0": "an Excel workbook",
    b"PAR1": "a Parquet file",
}
"""What files begin with that are no text."""


def read_text(path: TableFile, encoding: str) -> Iterator[bytes]:
    """What a file holds, a block at a time."""
    with path.open("rb") as file:
        block = file.read(_BLOCK)
        _refuse_other_files(path, block, encoding)
        decoder = None if encoding == UTF_8 else codecs.getincrementaldecoder(encoding)()
        returns_only = None
        held = b""  # a CR whose LF may follow
        while block:
            text = block if decoder is None else decoder.decode(block).encode(UTF_8)
            block = file.read(_BLOCK)
            if decoder is not None and not block:
                text += decoder.decode(b"", final=True).encode(UTF_8)
            if b"\0" in text:
                refuse_undecodable(path, encoding)
            if returns_only is None:
                text = text.removeprefix(codecs.BOM_UTF8)
                returns_only = b"\r" in text and b"\n" not in text
            text = held + text
            if returns_only and b"\n" in text:
                raise FileFormatError(f"{path}: some lines end with CR, others with LF")
            held = b"\r" if text.endswith(b"\r") and not returns_only else b""
            text = text.removesuffix(held)
            if text:
                yield text.replace(b"\r" if returns_only else b"\r\n", b"\n")
        if held:
            yield held


def refuse_undecodable(path: TableFile, encoding: str) -> None:
    """Raise `FileFormatError` at the first byte of a file that is no text."""
    decoder, before, line = codecs.getincrementaldecoder(encoding)(), 0, 1
    with path.open("rb") as file:
        for block in chain(iter(lambda: file.read(_BLOCK), b""), [b""]):
            pending = decoder.getstate()[0]
            given, reason, at = pending + block, "", -1
            try:
                decoder.decode(block, final=not block)
            except UnicodeDecodeError as error:
                reason, at = error.reason, error.start
            nul = _first_nul(given[: at if at >= 0 else None], encoding)
            if nul >= 0:
                reason, at = "a NUL", nul
            if at >= 0:
                line += given.count(b"\n", len(pending), at)
                raise FileFormatError(
                    f"{path}: not a text file in {encoding.upper()}: {reason} in line {line}, at"
                    f" position {before - len(pending) + at}, the byte 0x{given[at]:02X};"
                    f" {_remedy(encoding, nul >= 0)}"
                )
            before += len(block)
            line += given.count(b"\n", len(pending))


def _first_nul(given: bytes, encoding: str) -> int:
    """Where a NUL stands, of several bytes in UTF-16 and UTF-32; -1 without."""
    width = len("\0\0".encode(encoding)) - len("\0".encode(encoding))
    at = given.find(bytes(width))
    while at % width and at >= 0:
        at = given.find(bytes(width), at + 1)
    return at


def _remedy(encoding: str, nul: bool) -> str:
    save = "save it as CSV in UTF-8"
    if encoding != UTF_8 or nul:
        return save
    return (
        f'{save}, or name its encoding, for western Europe encoding="latin-1" or "cp1252", on the'
        " command line --encoding"
    )


def _refuse_other_files(path: TableFile, start: bytes, encoding: str) -> None:
    """Raise `FileFormatError` where a file says that it is no text, or text in another
    encoding.
    """
    for beginning, what in _NO_TEXTS.items():
        if start.startswith(beginning):
            raise FileFormatError(
                f"{path}: not a text file in {encoding.upper()}: it is {what}; save it as CSV in"
                " UTF-8"
            )
    found = next((name for mark, name in _MARKS.items() if start.startswith(mark)), None)
    if found is not None and not encoding.startswith(found):
        raise FileFormatError(
            f"{path}: not a text file in {encoding.upper()}: it is in {found.upper()}, as its first"
            f' bytes say; give encoding="{found}", on the command line --encoding, or save it as'
            " CSV in UTF-8"
        )
