"""The completed parts of a study, or of other long work, one JSON line each, so that it
can continue after an interruption.
"""

import json
import os
import re
import sys
from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, Final, Self
from zlib import crc32

from taciturn.errors import FileFormatError

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

__all__ = ["Store", "recorded"]

_CHECKSUM: Final = "crc32"
_BEYOND: Final = 2**40  # bytes, where no store has any
_HASH: Final = re.compile("[0-9a-f]{64}")


class Store:
    """Records of a study in a file, under a header that identifies the study.

    Every line ends in a checksum of itself and is on the disk before the next begins. A
    last line without its end, which was being written when the study ended, is dropped.
    The file is locked as long as the store is open.

    Parameters
    ----------
    path : path, optional
        The file, created if there is none; by default records stay in memory only.
    header : mapping
        What identifies the study, in plain values.
    what : str
        What a study is called in messages.

    Raises
    ------
    FileFormatError
        The file is not the store of a study, is in use, has a line that is not as it
        was written, or belongs to another study; it is left unchanged.
    """

    def __init__(
        self, path: str | PathLike[str] | None, header: Mapping[str, Any], what: str = "study"
    ) -> None:
        self._what = what
        self.records: list[dict[str, Any]] = []
        self._file: Any = None
        if path is None:
            return
        self._path = Path(path)
        try:  # without a buffer, of which something might be left when it is closed
            mode = "r+b" if self._path.exists() else "x+b"
            self._file = self._path.open(mode, buffering=0)
        except OSError as error:
            raise self.unwritable(error) from error
        try:
            self._begin({"format": f"taciturn {what}", **header})
        except BaseException:
            self._file.close()
            raise

    def _begin(self, header: Mapping[str, Any]) -> None:
        """Read what the file holds, and leave it where the next line is written."""
        if not _locked(self._file):
            raise FileFormatError(
                f"{self._path}: another {self._what} is writing to this store; wait for it to end,"
                " or give another name"
            )
        held = self._file.readall()
        first = f'{{"format": "{header["format"]}"'.encode()
        if not (held.startswith(first) or first.startswith(held)):
            raise FileFormatError(
                f"{self._path}: not the store of a {self._what}; give another name"
            )
        whole = held.rfind(b"\n") + 1
        if whole:
            self.records = _read(self._path, held[:whole], header, self._what)
        try:
            self._file.truncate(whole)  # drops a line that was cut off when the study ended
            self._file.seek(whole)
        except OSError as error:
            raise self.unwritable(error) from error
        if not whole:
            self._write(_line(header))

    def add(self, record: dict[str, Any]) -> None:
        """Keep a record, on disk before this returns."""
        self.records.append(record)
        if self._file is not None:
            self._write(_line(record))

    def _write(self, line: bytes) -> None:
        rest = memoryview(line)
        try:
            while rest:
                rest = rest[self._file.write(rest) :]
            os.fsync(self._file.fileno())
        except OSError as error:
            raise self.unwritable(error) from error

    def unwritable(self, error: OSError) -> FileFormatError:
        """What to say where the disk refuses."""
        return FileFormatError(
            f"{self._path}: cannot be written: {error.strerror or error}; the same {self._what}"
            " continues from what is there"
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()


def recorded(path: str | PathLike[str], name: str, convert: Callable[[Any], Any]) -> Any:
    """One value from the header of an existing store; None if there is none to read."""
    try:
        with Path(path).open(encoding="utf-8") as file:
            return convert(json.loads(file.readline())[name])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _locked(file: Any) -> bool:
    """Lock a file as long as it is open; False if another process has locked it.

    A file system without locks gives none. If two studies then write to one store, its
    checksums say so when it is read.
    """
    try:
        if sys.platform == "win32":
            file.seek(_BEYOND)  # what is locked there cannot be read by others
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
            file.seek(0)
        else:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    except OSError:
        return True
    return True


def _line(value: Mapping[str, Any]) -> bytes:
    """A mapping as one line of JSON, of which the last value is the checksum of the
    others.
    """
    text = json.dumps(value)
    return f'{text[:-1]}, "{_CHECKSUM}": "{crc32(text.encode()):08x}"}}\n'.encode()


def _value(line: bytes) -> dict[str, Any] | None:
    """What `_line` has written, None where anything has changed since."""
    try:
        value = json.loads(line)
        del value[_CHECKSUM]
        return value if _line(value) == line else None
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def _read(path: Path, held: bytes, header: Mapping[str, Any], what: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for number, line in enumerate(held.splitlines(keepends=True), start=1):
        value = _value(line)
        if value is None:
            raise FileFormatError(f"{path}: line {number} is broken; give another name")
        found.append(value)
    theirs, ours = found.pop(0), json.loads(json.dumps(header))
    differ = [name for name in {**ours, **theirs} if theirs.get(name) != ours.get(name)]
    if differ:
        name = differ[0]
        values, shown = (theirs.get(name), ours.get(name)), name.replace("_", " ")
        if all(_HASH.fullmatch(str(value)) for value in values):
            how = f"its {shown} differ from what is given here, perhaps in order alone"
        else:
            how = f"its {shown} is {_short(values[0])}, here it is {_short(values[1])}"
        raise FileFormatError(f"{path}: holds another {what}, {how}; give another name")
    return found


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 200 else f"{text[:200]}…"
