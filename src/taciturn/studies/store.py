"""The completed parts of a study, one JSON line each, so that it can continue after an
interruption.
"""

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import Any, Self

from taciturn.errors import FileFormatError

__all__ = ["Store", "recorded"]

_FORMAT = "taciturn study"


class Store:
    """Records of a study in a file, under a header that identifies the study.

    Parameters
    ----------
    path : path, optional
        The file, created if there is none; by default records stay in memory only.
    header : mapping
        What identifies the study, in plain values.

    Raises
    ------
    FileFormatError
        The file is not the store of a study, is broken before its last line, or belongs
        to another study; it is left unchanged.
    """

    def __init__(self, path: str | PathLike[str] | None, header: Mapping[str, Any]) -> None:
        self.records: list[dict[str, Any]] = []
        self._file: Any = None
        if path is None:
            return
        path = Path(path)
        first = json.dumps({"format": _FORMAT, **header}) + "\n"
        try:
            held = path.read_bytes() if path.exists() else b""
        except OSError as error:
            raise FileFormatError(f"{path}: cannot be read: {error}") from error
        whole = held.rfind(b"\n") + 1
        if whole == 0 and not first.encode().startswith(held):
            raise FileFormatError(f"{path}: not the store of a study; give the name of a new file")
        if whole:
            self.records = _read(path, held[:whole], json.loads(first))
        try:
            self._file = path.open("r+b" if path.exists() else "w+b")
            self._file.truncate(whole)  # drops a line that was cut off when the study ended
            self._file.seek(whole)
        except OSError as error:
            raise FileFormatError(f"{path}: cannot be written: {error}") from error
        if not whole:
            self._write(first)

    def add(self, record: dict[str, Any]) -> None:
        """Keep a record, on disk before this returns."""
        self.records.append(record)
        if self._file is not None:
            self._write(json.dumps(record) + "\n")

    def _write(self, line: str) -> None:
        try:
            self._file.write(line.encode())
            self._file.flush()
        except OSError as error:
            self.__exit__()
            raise FileFormatError(
                f"{self._file.name}: cannot be written: {error.strerror or error}; the same study"
                " continues from what is there"
            ) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            with suppress(OSError):  # a line that could not be written has been reported
                self._file.close()


def recorded(path: str | PathLike[str], name: str, convert: Callable[[Any], Any]) -> Any:
    """One value from the header of an existing store; None if there is none to read."""
    try:
        with Path(path).open(encoding="utf-8") as file:
            return convert(json.loads(file.readline())[name])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _read(path: Path, held: bytes, header: dict[str, Any]) -> list[dict[str, Any]]:
    lines = held.decode(errors="replace").splitlines()
    found: list[dict[str, Any]] = []
    for number, line in enumerate(lines, start=1):
        try:
            value = json.loads(line)
        except ValueError as error:
            what = "not the store of a study" if number == 1 else f"line {number} is broken"
            raise FileFormatError(f"{path}: {what}; give the name of a new file") from error
        if number == 1 and not (isinstance(value, dict) and value.get("format") == _FORMAT):
            raise FileFormatError(f"{path}: not the store of a study; give the name of a new file")
        found.append(value)
    theirs = found.pop(0)
    differ = [name for name in {**header, **theirs} if theirs.get(name) != header.get(name)]
    if differ:
        name = differ[0]
        raise FileFormatError(
            f"{path}: holds another study, its {name.replace('_', ' ')} is"
            f" {_short(theirs.get(name))}, here it is {_short(header.get(name))}; give the name of"
            " a new file"
        )
    return found


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 200 else f"{text[:200]}…"
