"""What a source of records is."""

from abc import ABC, abstractmethod
from collections.abc import Generator, Sequence
from typing import Any

from taciturn.errors import TableError
from taciturn.tables.spelling import seen, spelled
from taciturn.tables.values import python_values
from taciturn.validate import first_of

__all__ = ["Source"]


class Source(ABC):
    """Named columns of records, read a part at a time.

    Attributes
    ----------
    origin : str
        What to call it in a message.
    names : list of str
        Its columns.
    declared : dict of str to list
        Categories of the columns that declare them, in their order; complete once all
        parts have been read.
    """

    def __init__(self, origin: str, names: list[str]) -> None:
        self.origin, self.names = origin, names
        self.declared: dict[str, list[Any]] = {}

    @abstractmethod
    def parts(self, names: Sequence[str]) -> Generator[list[Any]]:
        """The named columns of consecutive rows, part after part."""

    def groups(self, names: Sequence[str]) -> Generator[tuple[list[Any], Any]]:
        """Rows of the named columns, and how many records each stands for: None for one
        each. A source that can count groups itself gives distinct rows, in any order.
        """
        for columns in self.parts(names):
            yield columns, None

    def declare(self, name: str, found: list[Any]) -> None:
        """Add categories that a part of a column declares."""
        known = self.declared.setdefault(name, [])
        if found != known:
            self.declared[name] = list(dict.fromkeys([*known, *found]))

    def columns(self) -> dict[str, list[Any]]:
        """All columns as Python values, of small data."""
        columns: dict[str, list[Any]] = {name: [] for name in self.names}
        for part in self.parts(self.names):
            for name, column in zip(self.names, part, strict=True):
                columns[name] += python_values(column)
        return columns

    def refused_zones(self, name: str) -> TableError:
        """The error for a column of times that are in zones."""
        return TableError(
            f"{name!r} in {self.origin} holds times in a time zone: write them as text"
        )

    def require(self, names: Sequence[str], *, of: str = "") -> None:
        """Raise `TableError` where a column is not there."""
        unknown = [name for name in dict.fromkeys(names) if name not in self.names]
        if unknown:
            raise TableError(
                f"no column {', '.join(map(repr, unknown))}{of and f' of {of}'} in {self.origin}:"
                f" the columns are {self.listed_names(unknown)}"
            )

    def listed_names(self, unknown: Sequence[Any]) -> str:
        """The columns, for a message about some that are not there."""
        wanted = {seen(str(name)) for name in unknown}
        alike = [name for name in self.names if seen(name) in wanted]
        hint = f"; {spelled(alike[0])} only looks like it" if alike else ""
        return first_of(self.names) + hint
