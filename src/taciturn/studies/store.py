"""What a study has finished, one JSON line each, so that it can go on where it was
interrupted.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from os import PathLike
from pathlib import Path
from typing import Any, Final, Self
from zlib import crc32

from filelock import FileLock, Timeout

from taciturn.errors import FileFormatError
from taciturn.files import check_writable

__all__ = ["Store", "recorded"]

_FORMAT: Final = "taciturn study"
_FIRST: Final = f'{{"format": "{_FORMAT}"'.encode()
_CHECKSUM: Final = "crc32"


class Store:
    """Records of a study in a file, under a header that says which study it is.

    Every line ends in a checksum of itself and is on the disk before the next begins. A
    last line without its end, which was being written when the study ended, is dropped.
    The lock beside the file is held as long as the store is open and stays there.

    Parameters
    ----------
    path : path, optional
        The file, made if there is none; without it records are kept in memory alone.
    header : mapping
        What identifies the study, in plain values.

    Raises
    ------
    FileFormatError
        The file is no store, is in use, has a line that is not as it was written, or
        belongs to another study; it is left as it is.
    """

    def __init__(self, path: str | PathLike[str] | None, header: Mapping[str, Any]) -> None:
        self.records: list[dict[str, Any]] = []
        self._file: Any = None
        self._open = ExitStack()
        if path is None:
            return
        self._path = Path(path)
        check_writable(self._path)
        _refuse_other_files(self._path)
        with ExitStack() as stack:
            stack.enter_context(_locked(self._path))
            self._begin(stack, {"format": _FORMAT, **header})
            self._open = stack.pop_all()

    def _begin(self, stack: ExitStack, header: Mapping[str, Any]) -> None:
        try:
            held = self._path.read_bytes() if self._path.exists() else b""
        except OSError as error:
            raise FileFormatError(f"{self._path}: cannot be read: {error}") from error
        whole = held.rfind(b"\n") + 1
        if whole:
            self.records = _read(self._path, held[:whole], header)
        try:
            # Without a buffer, so that nothing is left to be written when it is closed.
            mode = "r+b" if self._path.exists() else "w+b"
            self._file = stack.enter_context(self._path.open(mode, buffering=0))
            self._file.truncate(whole)
            self._file.seek(whole)
        except OSError as error:
            raise FileFormatError(f"{self._path}: cannot be written: {error}") from error
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
            raise FileFormatError(
                f"{self._path}: cannot be written: {error}; the same study continues from what it"
                " holds"
            ) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()


def recorded(path: str | PathLike[str], name: str, convert: Callable[[Any], Any]) -> Any:
    """One value of the header of an existing store, None where there is none to
    read.
    """
    try:
        with Path(path).open(encoding="utf-8") as file:
            return convert(json.loads(file.readline())[name])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _refuse_other_files(path: Path) -> None:
    """Raise where there is a file that does not begin as a store does."""
    try:
        with path.open("rb") as file:
            first = file.read(len(_FIRST))
    except FileNotFoundError:
        return
    except OSError as error:
        raise FileFormatError(f"{path}: cannot be read: {error}") from error
    if not _FIRST.startswith(first):  # less of it was being written when the study ended
        raise FileFormatError(f"{path}: not the store of a study; give the name of a new file")


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Nobody else has the store open."""
    lock = FileLock(path.resolve().with_name(f"{path.resolve().name}.lock"))
    try:
        lock.acquire(timeout=0)
    except Timeout as error:
        raise FileFormatError(
            f"{path}: another study is writing to this store; wait for it to end, or give the name"
            " of a new file"
        ) from error
    except OSError as error:
        raise FileFormatError(f"{path}: cannot be written: {error}") from error
    try:
        yield
    finally:
        lock.release()


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


def _read(path: Path, held: bytes, header: Mapping[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for number, line in enumerate(held.splitlines(keepends=True), start=1):
        value = _value(line)
        if value is None:
            raise FileFormatError(f"{path}: line {number} is broken; give the name of a new file")
        found.append(value)
    theirs, ours = found.pop(0), json.loads(json.dumps(header))
    differ = [name for name in {**ours, **theirs} if theirs.get(name) != ours.get(name)]
    if differ:
        name = differ[0]
        raise FileFormatError(
            f"{path}: holds another study, its {name.replace('_', ' ')} is"
            f" {_short(theirs.get(name))}, here it is {_short(ours.get(name))}; give the name of"
            " a new file"
        )
    return found


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 200 else f"{text[:200]}…"
