"""Records of magnitudes in DuckDB: one row a record, values in whole steps, everything
checked before it is counted.

Columns go under names of our own (``d0``, ``d1``, … for classifiers, ``x``, ``c``,
``h``, ``w``, ``r``, ``v``), so that no name in the data ever becomes part of a query.
Parts of the records go in one after the other.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from taciturn.errors import FileFormatError, MissingDependencyError, TableError
from taciturn.interrupts import interruptible_queries
from taciturn.magnitude.columns import identities, numbers
from taciturn.magnitude.engine import workspace
from taciturn.magnitude.expressions import (
    MAX_WEIGHT,
    flag_sql,
    identity_sql,
    steps_sql,
    weight_sql,
)
from taciturn.magnitude.roles import Roles
from taciturn.tables.labels import Labels, refuse_large_table, refuse_other_kinds
from taciturn.tables.sources import Source
from taciturn.tables.values import (
    convertible,
    is_missing,
    is_perhaps_thousands,
    number_hint,
    python_values,
)

__all__ = ["Database", "open_database"]

_MOST_TOGETHER: Final = 9 * 10**18  # sums of any contributions then fit in 64 bits
_BYTES_OF_CELL: Final = 64  # at least; 2**31 cells would not have a number of 32 bits


@dataclass
class Database:
    """The open database with its table ``records``, and what its codes stand for."""

    connection: Any
    roles: Roles
    origin: str
    labels: list[Labels]
    """The labels of each variable, whose codes number the cells."""
    dropped: int = 0
    """How many records were left out, as they lack a label."""
    meanings: dict[str, list[Any]] = field(default_factory=dict)
    """What the values of a column of a data frame stand for, where they are codes."""

    @property
    def sizes(self) -> list[int]:
        """How many labels each variable has. A cell is numbered by its labels, the last
        variable running fastest.
        """
        return [len(labels) for labels in self.labels]

    def meaning(self, column: str, value: Any) -> Any:
        """What a value of a column stands for; None where it is missing."""
        return (
            value if value is None or column not in self.meanings else self.meanings[column][value]
        )

    def types(self, table: str) -> dict[str, str]:
        """Type of each column of a table."""
        return {name: kind for name, kind, *_ in self.fetch(f"DESCRIBE {table}")}

    def fetch(self, query: str) -> list[tuple[Any, ...]]:
        """All rows of a query."""
        rows: list[tuple[Any, ...]] = self.connection.execute(query).fetchall()
        return rows


@contextmanager
def open_database(
    source: Source, roles: Roles, *, decimals: int, missing: str | int
) -> Iterator[Database]:
    """Load and check the records; they are gone when the block ends."""
    try:
        import duckdb
        import pyarrow  # noqa: F401 - hands columns over
    except ImportError as error:
        raise MissingDependencyError(
            f"magnitude tables need DuckDB and pyarrow: install the extra 'magnitude' ({error})"
        ) from error
    with workspace() as connection:
        labels = [Labels(dim, source.origin, missing=missing) for dim in roles.variables]
        database = Database(connection, roles, source.origin, labels)
        try:
            with interruptible_queries():
                _load(database, source, decimals)
                yield database
        except duckdb.Error as error:
            reason = str(error).split("\nPossible fixes")[0].strip()
            raise FileFormatError(f"{source.origin}: cannot be read: {reason}") from error


def _load(database: Database, source: Source, decimals: int) -> None:
    """Make the table ``records``, with the number of each record's cell."""
    roles, connection, rows = database.roles, database.connection, 0
    source.require(list(roles.columns.values()))
    for columns in source.parts(list(roles.columns.values())):
        _register(database, columns, decimals, start=rows)
        parsed = ", ".join(
            f"{sql} AS {short}" for short, sql in _parsed(database, decimals).items()
        )
        make = "INSERT INTO parsed" if rows else "CREATE TABLE parsed AS"
        connection.execute(f"{make} SELECT {parsed} FROM part")
        _refuse_unparsed(database, decimals, start=rows)
        rows += len(columns[0])
    if rows == 0:
        raise TableError(f"{source.origin} is empty: it has no rows")
    [(together,)] = database.fetch("SELECT sum(abs(x)) FROM parsed")
    if together > _MOST_TOGETHER:
        raise TableError(
            f"the sizes of all values of {roles.value!r} add up to more than 9*10**18 steps"
        )
    refuse_large_table(database.sizes, bytes_of_cell=_BYTES_OF_CELL)
    cell = "0"
    for i, size in enumerate(database.sizes):
        cell = f"({cell}) * {size} + d{i}"
    names = [name for name in database.types("parsed") if not name.startswith("d")]
    if roles.request is not None and roles.waiver is not None:
        names[names.index("v")] = "(v AND NOT r) AS v"  # who asks has not waived
    kept = ", ".join(names)
    labelled = " AND ".join(f"d{i} >= 0" for i in range(len(database.sizes)))
    [(database.dropped,)] = database.fetch(f"SELECT count(*) FROM parsed WHERE NOT ({labelled})")
    if database.dropped == rows:
        raise TableError(f"{source.origin}: each of the {rows} records lacks a label")
    connection.execute(
        f"CREATE VIEW records AS SELECT ({cell})::INTEGER AS cell, {kept} FROM parsed"
        f" WHERE {labelled}"
    )


def _register(database: Database, columns: list[Any], decimals: int, *, start: int) -> None:
    """Make one part of the records known as ``part``: labels as their codes."""
    import pyarrow as pa

    variables = len(database.labels)
    part: dict[str, Any] = {"row": np.arange(start + 1, start + len(columns[0]) + 1)}
    for i, (labels, column) in enumerate(zip(database.labels, columns, strict=False)):
        part[f"d{i}"] = labels.encode(column, start=start).astype(np.int32)
    shorts = list(database.roles.columns)[variables:]
    for short, column in zip(shorts, columns[variables:], strict=True):
        name = database.roles.columns[short]
        with convertible(name, database.origin):
            if short in {"x", "w"}:
                part[short] = numbers(column)
                if short == "x" and "string" in str(getattr(part[short], "type", "")):
                    _refuse_thousands(database, python_values(column), decimals, start=start)
                continue
            part[short], codes, meanings = identities(column)
        if codes is not None:
            refuse_other_kinds(name, database.origin, codes, meanings, start=start)
            database.meanings[short] = meanings
    database.connection.register("part", pa.table(part))


def _refuse_thousands(database: Database, column: list[Any], decimals: int, *, start: int) -> None:
    for at, raw in enumerate(column):
        if is_perhaps_thousands(raw, decimals):
            raise TableError(
                f"{database.roles.value!r} may have separators of thousands: row {start + at + 1}"
                f" of {database.origin} holds {raw!r}{number_hint(raw, decimals)}"
            )


def _parsed(database: Database, decimals: int) -> dict[str, str]:
    """SQL for the columns of ``parsed``; what cannot be parsed is NULL there."""
    types, parsed = database.types("part"), {}
    for short, kind in types.items():
        if short == "x":
            parsed[short] = steps_sql(short, kind, decimals)
        elif short == "w":
            parsed[short] = weight_sql(short, kind)
        elif short in {"c", "h"}:
            parsed[short] = identity_sql(short, kind)
        elif short in {"r", "v"}:
            parsed[short] = flag_sql(short, database.meanings.get(short))
        else:
            parsed[short] = short
    return parsed


def _refuse_unparsed(database: Database, decimals: int, *, start: int) -> None:
    """Raise `TableError` at the first row that could not be parsed."""
    accepted = {
        "x": (
            f"must be plain numbers of at most {decimals} decimals ({decimals=}) and at most"
            f" 10**{15 - decimals}"
        ),
        "c": "must name a contributor in every row",
        "w": f"must be numbers from 1 to {MAX_WEIGHT}",
        "r": "must be 0 or 1, or false or true",
        "v": "must be 0 or 1, or false or true",
    }
    columns = database.roles.columns
    checked = [short for short in accepted if short in columns]
    first = ", ".join(f"min(row) FILTER ({short} IS NULL)" for short in checked)
    [rows] = database.fetch(f"SELECT {first} FROM parsed WHERE row > {start}")
    for short, row in zip(checked, rows, strict=True):
        if row is None:
            continue
        [(raw,)] = database.fetch(f"SELECT {short} FROM part WHERE row = {row}")
        raw = database.meaning(short, raw)
        shown = f"{raw!r:.60}" if isinstance(raw, str) else f"{raw!s:.60}"
        found = "is missing" if is_missing(raw) else f"holds {shown}{number_hint(raw, decimals)}"
        raise TableError(
            f"{columns[short]!r} {accepted[short]}: row {row} of {database.origin} {found}"
        )
