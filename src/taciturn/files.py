"""Files that are read and written: checked before any work, written as a whole or not
at all.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from taciturn.errors import FileFormatError

__all__ = ["TABLE_ENDINGS", "check_readable", "check_writable", "whole_file"]

TABLE_ENDINGS: Final = (".csv", ".parquet")
"""Files in long form that are read."""


def check_readable(path: Path, endings: tuple[str, ...] = ()) -> None:
    """Raise `FileFormatError` unless a file of one of these endings, or of any, is
    there.
    """
    ending = path.suffix.lower()
    if endings and ending not in endings:
        accepted = " and ".join(map(repr, endings))
        raise FileFormatError(f"{path}: cannot read the ending {ending!r}; accepted are {accepted}")
    try:
        found = path.is_file()
    except OSError as error:  # a name that is too long
        raise FileFormatError(f"{path}: cannot be read: {error}") from error
    if not found:
        raise FileFormatError(f"{path}: no such file")


def check_writable(path: Path) -> None:
    """Raise `FileFormatError` unless a file can appear at `path`; asked before long
    work, so that none is lost.
    """
    try:
        folder = path.is_dir()
    except OSError as error:  # a name that is too long
        raise FileFormatError(f"{path}: cannot be written: {error}") from error
    if folder:
        raise FileFormatError(f"{path}: is a folder; give the name of a file")
    if not path.parent.is_dir():
        raise FileFormatError(f"{path}: the folder {path.parent} does not exist")
    if not os.access(path.parent, os.W_OK):
        raise FileFormatError(f"{path}: the folder {path.parent} cannot be written to")


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A file beside `path` to write to, which takes its place at the end, and is gone
    if anything fails.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield temporary
        temporary.replace(path)
    except FileFormatError:
        raise
    except OSError as error:
        raise FileFormatError(f"{path}: cannot be written: {error}") from error
    finally:
        temporary.unlink(missing_ok=True)
