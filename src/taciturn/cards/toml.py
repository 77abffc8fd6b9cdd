"""TOML as plain data: every field is checked when read, and reads back as written.

The standard library reads TOML; what is written here is tables, text, numbers and lists
of them, nothing more.
"""

import re
import tomllib
from collections.abc import Collection, Iterator, Mapping
from math import isfinite
from pathlib import Path
from typing import Any, Final

from taciturn.errors import FileFormatError
from taciturn.files import check_readable
from taciturn.validate import is_real

__all__ = ["Fields", "read_toml", "toml_text"]

_LARGEST_FILE: Final = 2**16  # bytes
_LONGEST_LINE: Final = 8192  # characters: reading a key of n dots takes time n**2
_DEEPEST: Final = 16  # tables and lists in each other
_TOO_DEEP: Final = f"tables and lists are nested more than {_DEEPEST} deep"
_LARGEST_NUMBER: Final = 2**53
_BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_ESCAPED: Final = re.compile(r'[\x00-\x1f\x7f"\\]')


def read_toml(path: Path) -> "Fields":
    """Read a small TOML file.

    Raises
    ------
    FileFormatError
        The file is missing, larger than 64 KiB, not UTF-8, not TOML, or has text with
        control characters.
    """
    check_readable(path)
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST_FILE + 1)
    except OSError as error:
        raise FileFormatError(f"{path}: cannot be read: {error.strerror}") from error
    if len(content) > _LARGEST_FILE:
        raise FileFormatError(f"{path}: larger than the {_LARGEST_FILE // 1024} KiB that are read")
    try:
        text = content.decode("utf-8-sig")
        if max(map(len, text.splitlines()), default=0) > _LONGEST_LINE:
            raise FileFormatError(f"{path}: a line has more than {_LONGEST_LINE} characters")
        values = tomllib.loads(text)
    except UnicodeDecodeError as error:
        raise FileFormatError(f"{path}: not a text file in UTF-8: {error}") from error
    except RecursionError as error:
        raise FileFormatError(f"{path}: {_TOO_DEEP}") from error
    except ValueError as error:  # TOMLDecodeError, or a number of too many digits
        raise FileFormatError(f"{path}: not a TOML file: {error}") from error
    _check_contents(values, path)
    return Fields(values, f"{path}")


def _check_contents(values: dict[str, Any], path: Path) -> None:
    """Refuse endless nesting, and text that would act on a terminal when printed."""
    level: list[Any] = [values]
    for _ in range(_DEEPEST):
        for found in level:
            if isinstance(found, str) and _CONTROL.search(found):
                raise FileFormatError(
                    f"{path}: text must have no control characters, got {_shown(found)}"
                )
        tables = [found for found in level if isinstance(found, dict)]
        lists = [found for found in level if isinstance(found, list)]
        level = [inner for found in tables for pair in found.items() for inner in pair]
        level += [inner for found in lists for inner in found]
    if level:
        raise FileFormatError(f"{path}: {_TOO_DEEP}")


class Fields:
    """The fields of a table of a TOML file, each to be asked for once; `end` refuses
    the rest.

    Parameters
    ----------
    values : mapping
        The table, as read.
    origin : str
        The file, for messages.
    name : str
        The name of the table, for messages.
    """

    def __init__(self, values: Mapping[str, Any], origin: str, name: str = "") -> None:
        self._left = dict(values)
        self._asked: list[str] = []
        self._origin = origin
        self._name = name

    def __contains__(self, field: str) -> bool:
        return field in self._left

    def error(self, field: str, problem: str) -> FileFormatError:
        """An error that names the file, the field in full and what is wrong."""
        return FileFormatError(f"{self._origin}: {self._full(field)} {problem}")

    def text(self, field: str, among: Collection[str] | None = None) -> str:
        """Text, one of `among` if given."""
        value = self._take(field)
        if not isinstance(value, str) or (among is not None and value not in among):
            rule = "text" if among is None else " or ".join(map(repr, among))
            raise self.error(field, f"must be {rule}, got {_shown(value)}")
        return value

    def whole(self, field: str, *, least: int = 0, most: int = _LARGEST_NUMBER) -> int:
        """A whole number in a range."""
        value = self._take(field)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise self.error(
                field, f"must be a whole number from {least} to {most}, got {_shown(value)}"
            )
        return value

    def number(
        self, field: str, *, least: float = -_LARGEST_NUMBER, most: float = _LARGEST_NUMBER
    ) -> float:
        """A finite number in a range."""
        value = self._take(field)
        if not is_real(value) or not least <= value <= most:
            raise self.error(
                field, f"must be a number from {least:g} to {most:g}, got {_shown(value)}"
            )
        return float(value)

    def values(self, field: str) -> list[Any]:
        """A list of anything, for the caller to check."""
        value = self._take(field)
        if not isinstance(value, list):
            raise self.error(field, f"must be a list, got {_shown(value)}")
        return value

    def plain(self, field: str) -> dict[str, Any]:
        """A table as read, for the caller to check."""
        value = self._take(field)
        if not isinstance(value, dict):
            raise self.error(field, f"must be a table, got {_shown(value)}")
        return value

    def table(self, field: str) -> "Fields":
        """A table whose fields are to be asked for in turn."""
        return Fields(self.plain(field), self._origin, self._full(field))

    def remaining(self) -> Iterator[str]:
        """Names of the fields not yet asked for, where any name is allowed."""
        yield from list(self._left)

    def end(self) -> None:
        """Refuse fields that nobody asked for."""
        for field in self._left:
            accepted = ", ".join(self._asked)
            raise FileFormatError(
                f"{self._origin}: no field {self._full(field)}: the fields here are {accepted}"
            )

    def _take(self, field: str) -> Any:
        if field not in self._left:
            raise FileFormatError(f"{self._origin}: the field {self._full(field)} is missing")
        self._asked.append(field)
        return self._left.pop(field)

    def _full(self, field: str) -> str:
        return f"{self._name}.{field}" if self._name else field


def toml_text(content: Mapping[str, Any]) -> str:
    """A mapping as TOML: text, numbers, booleans, lists of these, and tables.

    From the third level on, tables that hold no tables are written on one line, which
    makes rows of numbers.

    Raises
    ------
    FileFormatError
        Values that TOML would not give back unchanged: None, NaN, arrays, keys that are
        not text.
    """
    return "\n".join(_lines(content, ())).lstrip("\n") + "\n"


def _lines(content: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[str]:
    tables = {key: value for key, value in content.items() if _is_section(value, len(path) + 1)}
    for key, value in content.items():
        if key not in tables:
            yield f"{_key(key)} = {_value(value)}"
    for key, table in tables.items():
        inner = (*path, _key(key))
        if any(not _is_section(value, len(inner) + 1) for value in table.values()):
            yield f"\n[{'.'.join(inner)}]"
        yield from _lines(table, inner)


def _is_section(value: Any, level: int) -> bool:
    flat = isinstance(value, Mapping) and not any(
        isinstance(inner, Mapping) for inner in value.values()
    )
    return isinstance(value, Mapping) and bool(value) and not (flat and level > 2)


def _key(key: Any) -> str:
    if not isinstance(key, str):
        raise FileFormatError(f"a name in a TOML file is text, got {key!r}")
    return key if _BARE_KEY.fullmatch(key) else _value(key)


def _value(value: Any) -> str:
    if isinstance(value, str):
        if any("\ud800" <= character <= "\udfff" for character in value):
            raise FileFormatError(f"{value!r} is not text that UTF-8 can hold")
        return '"' + _ESCAPED.sub(_escape, value) + '"'
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) or (isinstance(value, float) and isfinite(value)):
        return repr(int(value) if isinstance(value, int) else float(value))
    if isinstance(value, list):
        parts = [_value(part) for part in value]
        nested = any(isinstance(part, list) for part in value)
        return (
            "[\n" + "".join(f"    {part},\n" for part in parts) + "]"
            if nested
            else f"[{', '.join(parts)}]"
        )
    if isinstance(value, Mapping):
        inside = ", ".join(f"{_key(key)} = {_value(inner)}" for key, inner in value.items())
        return f"{{ {inside} }}" if inside else "{}"
    raise FileFormatError(
        f"a TOML file holds text, finite numbers and lists and tables of them, got {value!r}"
    )


def _escape(found: re.Match[str]) -> str:
    return f"\\{found[0]}" if found[0] in '"\\' else f"\\u{ord(found[0]):04x}"


def _shown(value: Any) -> str:
    """A value for a message, cut short."""
    shown = (
        repr(value)
        if not isinstance(value, int) or abs(value) < 10**20
        else "a number of more than 20 digits"
    )
    return shown if len(shown) <= 80 else f"{shown[:77]}..."
