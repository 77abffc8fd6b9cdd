"""Records in a table of a database, in the place of a file of records."""

import re
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final, TypeGuard

import click

from taciturn.cli.files import Input
from taciturn.errors import MissingDependencyError, TableError
from taciturn.files import ADDRESS, TABLE_ENDINGS, StandardInput, TableFile, check_readable
from taciturn.validate import first_of

__all__ = ["Records", "check_database", "is_file", "opened", "table_option"]

_FILES: Final = (".duckdb", ".ddb", ".db")
_ALONE: Final[dict[str, Any]] = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
}
"""So that no name of a table reads another file or the network."""

table_option: Final = click.option(
    "--table",
    "database_table",
    metavar="NAME",
    help="RECORDS is a DuckDB file or the address of a database: count this table there.",
)


class Records(Input):
    """A file of records, or the address of a database, such as ``postgres://host/db``;
    that of a file is the file.
    """

    def __init__(self) -> None:
        super().__init__(stream=True)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Take an address as it is."""
        found = ADDRESS.match(value) if isinstance(value, str) else None
        if found and found[1].lower() == "duckdb":
            return super().convert(value[found.end() :], param, ctx)
        return value if found else super().convert(value, param, ctx)


def is_file(records: Path | StandardInput | str, table: str | None) -> TypeGuard[TableFile]:
    """Whether these are a file of records, or standard input, and no database."""
    return table is None and not isinstance(records, str)


def check_database(records: object, table: str | None) -> None:
    """Raise where a table of a database is named and there is none, or the other way
    round.
    """
    ending = records.suffix.lower() if isinstance(records, Path) else ""
    if table is None and (isinstance(records, str) or ending in _FILES):
        raise click.UsageError("a database needs --table, the table to count")
    if table is None or isinstance(records, str):
        return
    if not isinstance(records, Path) or ending in TABLE_ENDINGS:
        raise click.UsageError(
            f"--table is that of a database: {records} is read as a file of records"
        )
    check_readable(records)


@contextmanager
def opened(records: Any, table: str | None) -> Iterator[Any]:
    """What `tabulate` takes: the file, or the table of a database that is open
    meanwhile, under its name; a file of DuckDB for reading only.
    """
    if table is None:
        yield records
        return
    from taciturn.tables.sources.ibis_tables import IbisSource
    from taciturn.tables.sources.relations import RelationSource

    name = f"the table {table!r:.80} of"
    if isinstance(records, str):
        with closing(_Connection(records)) as connection:
            yield IbisSource(connection.table(table), origin=f"{name} {connection.origin}")
    else:
        with _duckdb_file(records) as connection:
            found = _named(connection, table, records)
            yield RelationSource(found, origin=f"{name} {records}")


class _Connection:
    """A database that Ibis knows. An address may hold a password, wherever its engine
    wants it: messages name the engine alone.
    """

    def __init__(self, address: str) -> None:
        self.secrets = [part for part in re.split(r"[/:@?&=#]+", address) if len(part) > 1]
        engine = self.secrets.pop(0)
        self.origin = f"{engine}://..."
        if engine.lower().startswith("sqlite"):
            check_readable(Path(address.partition("://")[2].partition("?")[0]))
        try:
            import ibis

            self.backend = ibis.connect(address)
        except ImportError as error:
            raise MissingDependencyError(
                f"{self.origin} needs Ibis with what it needs for {engine}: install the extra"
                f" 'ibis' and 'ibis-framework[{engine}]'"
            ) from error
        except Exception as error:  # each engine has errors of its own
            raise self._error("cannot be connected to", error) from None

    def table(self, name: str) -> Any:
        """The table, or an error that says which there are."""
        try:
            names = self.backend.list_tables()
            if name in names or "." in name:
                *schema, own = name.split(".") if name not in names else [name]
                return self.backend.table(own, database=".".join(schema) or None)
        except Exception as error:
            raise self._error(f"the table {name!r:.80} cannot be opened", error) from None
        raise TableError(f"{self.origin}: {_missing(name, names)}")

    def close(self) -> None:
        """End the connection."""
        self.backend.disconnect()

    def _error(self, what: str, error: Exception) -> TableError:
        text = _one_line(error)
        for secret in self.secrets:
            text = text.replace(secret, "***")
        return TableError(f"{self.origin}: {what}: {text:.200}")


@contextmanager
def _duckdb_file(path: Path) -> Iterator[Any]:
    try:
        import duckdb
    except ImportError as error:
        raise MissingDependencyError(
            "a file of DuckDB needs DuckDB: install the extra 'magnitude'"
        ) from error
    try:
        connection = duckdb.connect(str(path), read_only=True, config=_ALONE)
    except duckdb.Error as error:
        raise TableError(
            f"{path}: cannot be opened as a file of DuckDB: {_one_line(error):.200}"
        ) from error
    with connection:
        yield connection


def _named(connection: Any, table: str, path: Path) -> Any:
    import duckdb

    try:
        return connection.table(table)
    except duckdb.Error as error:
        names = [row[0] for row in connection.sql("SHOW TABLES").fetchall()]
        if table in names:
            raise TableError(
                f"{path}: {table!r:.80} cannot be read: {_one_line(error):.200}"
            ) from error
        raise TableError(f"{path}: {_missing(table, names)}") from error


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


def _missing(table: str, names: Sequence[str]) -> str:
    return f"has no table {table!r:.80}; it has {first_of(names) if names else 'none'}"
