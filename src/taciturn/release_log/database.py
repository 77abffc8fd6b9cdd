"""The file of a release log: one DuckDB database, open only while it is asked or added
to, so that several processes can use it in turns.

What is added is added in one transaction: a process that is killed leaves the log as it
was. A new file appears complete or not at all.
"""

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from uuid import uuid4

from taciturn.errors import FileFormatError, ParameterError, TaciturnError
from taciturn.files import whole_file
from taciturn.release_log.codebook import Codebook
from taciturn.release_log.connection import ALONE, connection_to, duckdb_module, one_line, settled
from taciturn.release_log.published import PublishedTable
from taciturn.release_log.stored import row_of, table_of
from taciturn.schema import MAX_COUNT
from taciturn.tables.spelling import check_spelling
from taciturn.validate import quoted, whole_number

__all__ = ["Database", "create", "names_of"]

_FORMAT: Final = "taciturn release log"
_VERSION: Final = 4
_TABLES: Final = """
    CREATE TABLE project (key VARCHAR PRIMARY KEY, value VARCHAR NOT NULL);
    CREATE TABLE releases (
        number INTEGER PRIMARY KEY, name VARCHAR NOT NULL, added_utc TIMESTAMP NOT NULL,
        protection VARCHAR NOT NULL, removed_utc TIMESTAMP
    );
    CREATE TABLE tables (
        release INTEGER NOT NULL, position INTEGER NOT NULL, definition VARCHAR NOT NULL,
        least BIGINT[] NOT NULL, most BIGINT[] NOT NULL, noise VARCHAR, released BIGINT[][],
        PRIMARY KEY (release, position)
    );
"""

_INTO: Final = {
    "project": "INSERT INTO project VALUES (?, ?)",
    "releases": "INSERT INTO releases VALUES (?, ?, ?, ?, ?)",
    "tables": "INSERT INTO tables VALUES (?, ?, ?, ?, ?, ?, ?)",
}

Row = tuple[Any, ...]


def create(path: Path, codebook: Codebook, *, overwrite: bool) -> None:
    """Make the file of an empty log; it appears complete or not at all.

    Raises
    ------
    FileFormatError
        The file exists, or cannot be written; a log that is to be replaced cannot be
        opened, so that what was committed to it might get lost without being replaced.
    """
    about = {
        "format": _FORMAT,
        "version": str(_VERSION),
        "id": uuid4().hex,
        "codebook": json.dumps(
            {
                "variables": {name: list(labels) for name, labels in codebook.variables.items()},
                "levels": {
                    name: [v, list(labels)] for name, (v, labels) in codebook.levels.items()
                },
                "total": codebook.total,
            }
        ),
    }
    _put(path, _file_of({"project": list(about.items())}), overwrite=overwrite)


class Database:
    """The file of a log.

    Parameters
    ----------
    path : Path
        The file.

    Attributes
    ----------
    id : str
        Of this log and of no other; if another one takes the place of the file, it is
        neither read nor added to.
    codebook : Codebook
        The variables of the log.

    Raises
    ------
    FileFormatError
        The file is no log, or is damaged.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with connection_to(self.path, writing=False) as connection:
            about = dict(connection.execute("SELECT key, value FROM project").fetchall())
        if about.get("format") != _FORMAT or about.get("version") != str(_VERSION):
            raise FileFormatError(
                f"{self.path}: no release log of version {_VERSION}, but"
                f" {about.get('format', 'a database')!s:.40} {about.get('version', '')!s:.20}"
            )
        with self._readable():
            self.id = str(about["id"])
            given = json.loads(about["codebook"])
            levels = {name: (v, labels) for name, (v, labels) in given["levels"].items()}
            total = given["total"]
            if total is not None:
                total = whole_number(total, "total", least=0, most=MAX_COUNT)
            self.codebook = Codebook.of(given["variables"], levels, total)

    def releases(self) -> list[Row]:
        """Number, name, date and protection of each release."""
        with self._open(writing=False) as connection:
            return self._releases(connection)

    def tables(self) -> list[tuple[int, PublishedTable]]:
        """All tables, each with the number of its release."""
        return self.all()[1]

    def all(self) -> tuple[list[Row], list[tuple[int, PublishedTable]]]:
        """Releases as `releases`, and their tables as `tables`: both of one moment."""
        with self._open(writing=False) as connection:
            releases = self._releases(connection)
            rows = connection.execute(
                "SELECT release, definition, least, most, noise, released FROM tables"
                " ORDER BY release, position"
            ).fetchall()
        sizes = {name: len(labels) for name, labels in self.codebook.variables.items()}
        with self._readable():
            if {row[0] for row in rows} - names_of(releases).keys():
                raise ValueError("a table is of no release")
            return releases, [(int(release), table_of(row, sizes)) for release, *row in rows]

    def add(
        self,
        name: str | None,
        protection: str,
        tables: Sequence[PublishedTable],
        *,
        after: Mapping[int, str],
    ) -> int:
        """Add a release, whole or not at all, and return its number; only if the log
        has the releases `after`, by number, and no others.

        Raises
        ------
        ParameterError
            The log was changed meanwhile, or there is a release of this name.
        TableError
            A name or a protection that does not show what it holds.
        """
        if name is not None:
            _check_text(name, "name")
        if protection != "":
            _check_text(protection, "protection")
        with self._open(writing=True) as connection:
            connection.execute("BEGIN")
            found = connection.execute("SELECT coalesce(max(number), 0) FROM releases").fetchone()
            last = int(found[0])  # numbers of releases that were removed are not used again
            names = names_of(self._releases(connection))
            if names != dict(after):
                raise ParameterError(
                    f"{self.path}: {_changes(dict(after), names)} since the table was checked:"
                    " check it again"
                )
            name = str(last + 1) if name is None else name
            for number, other in names.items():
                if other == name:
                    raise ParameterError(
                        f"{self.path}: release {number} is called {name!r} already"
                    )
            added = datetime.now(UTC).replace(tzinfo=None)
            connection.execute(_INTO["releases"], [last + 1, name, added, protection, None])
            for position, table in enumerate(tables):
                connection.execute(_INTO["tables"], [last + 1, position, *row_of(table)])
            _commit(connection)
            return last + 1

    def add_checked(
        self,
        name: str | None,
        protection: str,
        tables: Sequence[PublishedTable],
        check: Callable[[list[tuple[int, PublishedTable]]], None],
    ) -> int:
        """Add a release that `check` does not refuse beside all that are there then."""
        while True:
            releases, earlier = self.all()
            check(earlier)
            try:
                return self.add(name, protection, tables, after=names_of(releases))
            except ParameterError:
                if self.releases() == releases:
                    raise  # not because others changed the log meanwhile

    def remove(self, name: str) -> int:
        """Take out the release of this name, and return its number, which is all that
        is left of it: the file is written anew.

        Raises
        ------
        ParameterError
            There is none.
        """
        with self._open(writing=True) as connection:
            connection.execute("BEGIN")
            numbers = {own: number for number, own in names_of(self._releases(connection)).items()}
            if name not in numbers:
                raise ParameterError(
                    f"{self.path}: there is no release {quoted(name)}, but"
                    f" {', '.join(map(quoted, numbers)) or 'none'}"
                )
            connection.execute("DELETE FROM tables WHERE release = ?", [numbers[name]])
            connection.execute(
                "UPDATE releases SET name = '', protection = '', removed_utc = ? WHERE number = ?",
                [datetime.now(UTC).replace(tzinfo=None), numbers[name]],
            )
            rest = {table: connection.table(table).fetchall() for table in _INTO}
            connection.execute("ROLLBACK")  # what is deleted would stay in the file
            if sys.platform == "win32":  # which does not replace an open file
                connection.close()
            _put(self.path, _file_of(rest), overwrite=True)
            return numbers[name]

    def _releases(self, connection: Any) -> list[Row]:
        """Those that were not removed, as `releases`."""
        rows = connection.execute(
            "SELECT number, name, added_utc, protection FROM releases WHERE removed_utc IS NULL"
            " ORDER BY number"
        ).fetchall()
        with self._readable():
            for name in [row[1] for row in rows]:
                _check_text(name, "name")
            if len({row[1] for row in rows}) < len(rows):
                raise ValueError("two releases have one name")
            return [(number, name, at.replace(tzinfo=UTC), how) for number, name, at, how in rows]

    @contextmanager
    def _open(self, *, writing: bool) -> Iterator[Any]:
        """A connection to the log that was opened first."""
        with connection_to(self.path, writing=writing) as connection:
            found = connection.execute("SELECT value FROM project WHERE key = 'id'").fetchone()
            if found != (self.id,):
                raise FileFormatError(
                    f"{self.path}: is not the log that was opened, but another one: open it again"
                )
            yield connection

    @contextmanager
    def _readable(self) -> Iterator[None]:
        """Errors of content that is not what was written."""
        try:
            yield
        except (
            *(ValueError, KeyError, TypeError, IndexError, AttributeError, OverflowError),
            *(RecursionError, TaciturnError),
        ) as error:
            raise FileFormatError(f"{self.path}: is damaged: {one_line(error)}") from error


def _file_of(contents: Mapping[str, Sequence[Sequence[Any]]]) -> bytes:
    """A new file with these rows of its tables."""
    with TemporaryDirectory(prefix="taciturn-") as folder:
        fresh = Path(folder) / "log.duckdb"
        connection = duckdb_module().connect(str(fresh), config=ALONE)
        try:
            connection.execute(_TABLES)
            for table, rows in contents.items():
                for row in rows:
                    connection.execute(_INTO[table], row)
        finally:
            connection.close()
        return fresh.read_bytes()


def _put(path: Path, content: bytes, *, overwrite: bool) -> None:
    """Put a file in its place, and hold until then what was committed to another one
    there.
    """
    with ExitStack() as until_replaced, whole_file(path, overwrite=overwrite) as file:
        file.write(content)
        until_replaced.enter_context(settled(path))


def _commit(connection: Any) -> None:
    """Commit, and write what is then in a second file, which may get lost, to the first
    one; if that fails, it is committed all the same.
    """
    connection.execute("COMMIT")
    with suppress(duckdb_module().Error):
        connection.execute("CHECKPOINT")


def _check_text(text: Any, what: str) -> None:
    """Raise unless something is text that can be read."""
    if not (isinstance(text, str) and text):
        raise ParameterError(f"{what} must be text, got {quoted(text)}")
    check_spelling([text], lambda _: what)


def names_of(releases: Sequence[Row]) -> dict[int, str]:
    """The names of releases, by number."""
    return {int(row[0]): str(row[1]) for row in releases}


def _changes(before: dict[int, str], now: dict[int, str]) -> str:
    """What was done to a log, in words."""
    changes = {"added": len(now.keys() - before.keys()), "removed": len(before.keys() - now.keys())}
    return " and ".join(
        f"a release was {done}" if number == 1 else f"{number} releases were {done}"
        for done, number in changes.items()
        if number
    )
