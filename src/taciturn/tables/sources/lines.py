"""Files of text of which each line says something of its own."""

import csv
from collections.abc import Iterator
from pathlib import Path

from taciturn.errors import FileFormatError
from taciturn.files import check_readable
from taciturn.tables.sources.csv_text import read_text, refuse_undecodable
from taciturn.validate import UTF_8

__all__ = ["fields_of", "read_lines"]


def read_lines(path: Path, ending: str, encoding: str) -> Iterator[tuple[int, str]]:
    """The lines of a file with this ending and their numbers, without blank ones at its
    end.
    """
    check_readable(path, (ending,))
    try:
        text = b"".join(read_text(path, encoding)).decode(UTF_8)
    except UnicodeError as error:
        refuse_undecodable(path, encoding)
        raise FileFormatError(f"{path}: not a text file in {encoding.upper()}") from error
    except OSError as error:
        raise FileFormatError(f"{path}: cannot be read: {error.strerror or error}") from error
    lines = text.split("\n")
    while lines and not lines[-1].strip():  # what is empty at the end of a line is a field
        lines.pop()
    return enumerate(lines, 1)


def fields_of(line: str, sep: str) -> list[str]:
    """The fields of a line; none where a quotation does not end, or a line does
    within.
    """
    try:
        return [field.strip() for field in next(csv.reader([line], delimiter=sep, strict=True), [])]
    except csv.Error:
        return []
