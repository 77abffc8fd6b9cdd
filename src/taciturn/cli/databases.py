"""Records in a table of a database, in the place of a file of records."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeGuard

import click

from taciturn.cli.files import Input
from taciturn.errors import MissingDependencyError, TableError
from taciturn.files import TABLE_ENDINGS, StandardInput, TableFile, check_readable

__all__ = ["Records", "check_database", "is_file", "opened", "table_option"]

_ADDRESS: Final = re.compile(r"[a-z][a-z0-9+.-]+://", re.IGNORECASE)
_PASSWORD: Final = re.compile(r"(://[^/@:]*:)[^/@]*@")

table_option: Final = click.option(
    "--table",
    "database_table",
    metavar="NAME",
    help="RECORDS is a DuckDB file or the address of a database: count this table there.",
)


class Records(Input):
    """A file of records, or the address of a database, such as ``postgres://host/db``."""

    def __init__(self) -> None:
        super().__init__(stream=True)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Take an address as it is."""
        if isinstance(value, str) and _ADDRESS.match(value):
            return value
        return super().convert(value, param, ctx)


def is_file(records: Path | StandardInput | str, table: str | None) -> TypeGuard[TableFile]:
    """Whether these are a file of records, or standard input, and no database."""
    return table is None and not isinstance(records, str)


def check_database(records: object, table: str | None) -> None:
    """Raise where a table of a database is named and there is none, or the other way
    round.
    """
    if table is None and isinstance(records, str):
        raise click.UsageError("the address of a database needs --table, the table to count")
    if table is None or isinstance(records, str):
        return
    if not isinstance(records, Path) or records.suffix.lower() in TABLE_ENDINGS:
        raise click.UsageError(
            f"--table is that of a database: {records} is read as a file of records"
        )
    check_readable(records)


@contextmanager
def opened(records: Any, table: str | None) -> Iterator[Any]:
    """What `tabulate` takes: the file, or the table of a database that is open
    meanwhile, for reading only.
    """
    if table is None:
        yield records
    elif isinstance(records, str):
        yield _of_address(records, table)
    else:
        with _duckdb_file(records) as connection:
            yield _named(connection, table, records)


def _of_address(address: str, table: str) -> Any:
    try:
        import ibis
    except ImportError as error:
        raise MissingDependencyError(
            "the address of a database needs Ibis: install the extra 'ibis'"
        ) from error
    try:
        return ibis.connect(address).table(table)
    except Exception as error:  # each engine has errors of its own
        hidden = [_PASSWORD.sub(r"\1***@", str(x)) for x in (address, error)]
        raise TableError(
            f"{hidden[0]:.200}: {table!r} cannot be opened: {hidden[1]:.200}"
        ) from None


@contextmanager
def _duckdb_file(path: Path) -> Iterator[Any]:
    try:
        import duckdb
    except ImportError as error:
        raise MissingDependencyError(
            "a file of DuckDB needs DuckDB: install the extra 'magnitude'"
        ) from error
    try:
        connection = duckdb.connect(str(path), read_only=True)
    except duckdb.Error as error:
        raise TableError(f"{path}: cannot be opened as a file of DuckDB: {error!s:.200}") from error
    with connection:
        yield connection


def _named(connection: Any, table: str, path: Path) -> Any:
    import duckdb

    try:
        return connection.table(table)
    except duckdb.Error as error:
        names = [row[0] for row in connection.sql("SHOW TABLES").fetchall()]
        raise TableError(
            f"{path}: has no table {table!r:.80}; it has {', '.join(map(repr, names)) or 'none'}"
        ) from error
