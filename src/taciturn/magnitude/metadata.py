"""What a metadata file of τ-ARGUS says of the columns of a table."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from taciturn.errors import FileFormatError
from taciturn.files import METADATA_ENDING
from taciturn.tables.sources.lines import read_lines
from taciturn.tables.spelling import legible
from taciturn.validate import UTF_8, check_encoding, check_separator

__all__ = ["ArgusColumn", "Metadata", "read_metadata"]

_WORD: Final = re.compile(r'"([^"]*)"|(//.*|(?:(?!//)[^\s"])+)')
_COMMENT: Final = "//"
_EMPTY: Final = "E"
_CATEGORY: Final = "category"
_ROLES: Final = {
    "<RECODEABLE>": _CATEGORY,
    "<RECODABLE>": _CATEGORY,
    "<FREQUENCY>": "frequency",
    "<MAXSCORE>": "largest",
    "<STATUS>": "status",
}
_NUMERIC: Final = {
    "": "value",
    "<COST>": "cost",
    "<COSTVAR>": "cost",
    "<LOWERPL>": "lower",
    "<UPPERPL>": "upper",
}
_OF_TABLE: Final = {
    "<SEPARATOR>": "separator",
    "<SAFE>": "safe",
    "<UNSAFE>": "unsafe",
    "<PROTECT>": "protect",
}
_PASSED_OVER: Final = ("<CODELIST>", "<DISTANCE>", "<HIERARCHICAL>")  # these change no cell
_OF_COLUMNS: Final = ("<NUMERIC>", "<DECIMALS>", "<TOTCODE>", "<HIERCODELIST>", "<HIERLEADSTRING>")
_KNOWN: Final = (*_OF_TABLE, *_ROLES, *_OF_COLUMNS, "<HIERLEVELS>", *_PASSED_OVER)
_MOST_DECIMALS: Final = 9


@dataclass(frozen=True)
class ArgusColumn:
    """One column of a table, in the order of its fields.

    Attributes
    ----------
    name : str
        Its name.
    line : int
        Where the metadata begin to speak of it.
    role : str
        ``category``, ``value``, ``frequency``, ``largest``, ``status``, ``cost``,
        ``lower`` or ``upper``; empty where none is said.
    total : str
        The code of totals of a category.
    decimals : int
        Decimal places of a number.
    codes : str
        Name of the file of hierarchical codes of a category.
    mark : str
        What leads its lines, once for each level.
    widths : tuple of int
        How many characters each level of nested codes adds.
    missing : tuple of str
        The codes of missing labels, which are in no hierarchy.
    """

    name: str
    line: int
    role: str = ""
    total: str = "Total"
    decimals: int = 0
    codes: str = ""
    mark: str = "."
    widths: tuple[int, ...] = ()
    missing: tuple[str, ...] = ()


@dataclass(frozen=True)
class Metadata:
    """The columns of a table, and how it is written."""

    origin: str
    columns: list[ArgusColumn] = field(default_factory=list)
    separator: str = ";"
    safe: str = "S"
    unsafe: str = "U"
    protect: str = "P"

    def says_empty(self, status: str) -> bool:
        """Whether a status is that of empty cells, and not one that is declared."""
        declared = {self.safe.upper(), self.unsafe.upper(), self.protect.upper()}
        return status.upper() == _EMPTY and _EMPTY not in declared

    def named(self, role: str) -> list[str]:
        """The names of all columns of a role."""
        return [column.name for column in self.columns if column.role == role]

    def only(self, role: str) -> str | None:
        """The column of a role that one has, or none."""
        names = self.named(role)
        if len(names) > 1:
            raise FileFormatError(f"{self.origin}: one column can be the {role}, not {names}")
        return names[0] if names else None


def read_metadata(path: Path, encoding: str | None) -> Metadata:
    """Read a metadata file; what it says that is not supported is refused."""
    written = check_encoding(encoding) if encoding is not None else UTF_8
    columns: list[ArgusColumn] = []
    told: dict[str, str] = {}
    for number, line in read_lines(path, METADATA_ENDING, written):
        where = f"{path}: line {number}"
        words = _words(line)
        if not words:
            continue
        key = words[0].upper()
        if not key.startswith("<"):
            if words[0] in [column.name for column in columns]:
                raise FileFormatError(f"{where} names the column {legible(words[0])} again")
            missing = tuple(word.strip() for word in words[1:])
            columns.append(ArgusColumn(words[0], number, missing=missing))
        elif key in _OF_TABLE:
            told[_OF_TABLE[key]] = _one(words, where)
        elif not columns:
            raise FileFormatError(f"{where}: {legible(words[0])} comes before any column")
        else:
            columns[-1] = _told(columns[-1], key, words, where)
    found = Metadata(str(path), columns, **told)
    try:
        check_separator(found.separator)
    except ValueError as error:
        raise FileFormatError(f"{path}: <SEPARATOR>: {error}") from error
    for column in columns:
        if not column.role:
            raise FileFormatError(
                f"{path}: line {column.line} says of {legible(column.name)} neither that it is"
                " <RECODEABLE> nor <NUMERIC>, <FREQUENCY>, <MAXSCORE> or <STATUS>"
            )
    return found


def _words(line: str) -> list[str]:
    """The words of a line, up to a comment."""
    found = []
    for quoted, plain in _WORD.findall(line):
        if plain.startswith(_COMMENT):
            break
        found.append(quoted or plain)
    return found


def _told(column: ArgusColumn, key: str, words: Sequence[str], where: str) -> ArgusColumn:
    """A column with what one line says of it."""
    if key in _PASSED_OVER:
        return column
    if key in _ROLES:
        return replace(column, role=_ROLES[key])
    match key:
        case "<NUMERIC>":
            return replace(column, role=_numeric(words, where))
        case "<TOTCODE>":
            return replace(column, total=_one(words, where))
        case "<HIERCODELIST>":
            return replace(column, codes=_one(words, where))
        case "<HIERLEADSTRING>":
            return replace(column, mark=_one(words, where))
        case "<HIERLEVELS>":
            return replace(column, widths=_wholes(words, where))
        case "<DECIMALS>":
            return replace(column, decimals=_decimals(words, where))
    raise FileFormatError(
        f"{where}: {legible(words[0])} is not supported; known are {', '.join(_KNOWN)}"
    )


def _numeric(words: Sequence[str], where: str) -> str:
    kind = words[1].upper() if len(words) > 1 else ""
    if kind not in _NUMERIC:
        raise FileFormatError(
            f"{where}: {legible(words[1])} is not supported; what is <NUMERIC> is the quantity"
            f" itself or one of {', '.join(list(_NUMERIC)[1:])}"
        )
    return _NUMERIC[kind]


def _one(words: Sequence[str], where: str) -> str:
    if len(words) != 2 or not words[1].strip(" "):
        raise FileFormatError(f"{where}: {words[0]} takes one word, got {list(words[1:])}")
    return words[1]


def _wholes(words: Sequence[str], where: str) -> tuple[int, ...]:
    """Numbers of characters; 0 for levels that there are not."""
    given = words[1:]
    if not given or not all(word.isascii() and word.isdigit() and len(word) < 4 for word in given):
        raise FileFormatError(f"{where}: {words[0]} takes whole numbers, got {list(given)}")
    return tuple(int(word) for word in given if int(word))


def _decimals(words: Sequence[str], where: str) -> int:
    given = _one(words, where)
    if not (given.isascii() and given.isdigit() and int(given) <= _MOST_DECIMALS):
        raise FileFormatError(
            f"{where}: {words[0]} takes a number from 0 to {_MOST_DECIMALS}, got {legible(given)}"
        )
    return int(given)
