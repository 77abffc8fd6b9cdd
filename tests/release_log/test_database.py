"""The file of a log: what others changed in it is refused, and it holds what was added
without the files beside it."""

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pytest

import taciturn as tc
from taciturn.errors import FileFormatError
from taciturn.release_log.database import Database

LETTERS = pd.Series([5, 7, 9], index=pd.Index(list("ABC"), name="a"))
BY_B = {"where": {"b": ["x", "y"]}}


@pytest.fixture
def letters(tmp_path: Path) -> tc.ReleaseLog:
    """A log of three tables, the last of which leaves out a category."""
    variables = {"a": list("ABC"), "b": list("xyz")}
    log = tc.ReleaseLog(tmp_path / "log.duckdb", variables=variables, total=42)
    log.add(LETTERS, name="one", **BY_B)
    log.add(LETTERS, name="two", where={"b": "x"})
    log.add(LETTERS[:2], name="three", where={"a": ["A", "B"], "b": "x"})
    return log


def read(path: Path) -> None:
    log = tc.ReleaseLog(path)
    assert len(log.releases) == 3
    log.check(LETTERS, where={"b": "z"}, progressbar=False)


def with_axis(**given: Any) -> Callable[[Any], Any]:
    return lambda table: {**table, "axes": [table["axes"][0] | given]}


DEFINITIONS = {
    "a class too high": with_axis(classes=[0, 1, 7]),
    "a class too low": with_axis(classes=[0, 1, -2]),
    "lists of classes": with_axis(classes=[[0], [1], [2]]),
    "half a class": with_axis(classes=[0, 1, 1.7]),
    "a whole class that is none": with_axis(classes=[0, 1, 2.0]),
    "a truth": with_axis(classes=[0, 1, True]),
    "text of classes": with_axis(classes="012"),
    "a class less": with_axis(classes=[0, 1]),
    "text of labels": with_axis(labels="xyz"),
    "a label that is a number": with_axis(labels=["A", "B", 3]),
    "no label": with_axis(labels=[], classes=[-1, -1, -1]),
    "a name that is none": with_axis(name=None),
    "another variable": with_axis(variable="c"),
    "a variable twice": lambda table: {**table, "axes": table["axes"] * 2},
    "nobody selected": lambda table: {**table, "where": {"b": []}},
    "a selection too high": lambda table: {**table, "where": {"b": [0, 3]}},
    "a selection from the end": lambda table: {**table, "where": {"b": [0, -1]}},
    "a selection of truths": lambda table: {**table, "where": {"b": [True, False]}},
    "text selected": lambda table: {**table, "where": {"b": "01"}},
    "another variable selected": lambda table: {**table, "where": {"c": [0]}},
    "no definition": lambda _: [],
    "text of dimensions": lambda table: {**table, "axes": "a"},
}


@pytest.mark.parametrize("change", DEFINITIONS)
def test_a_definition_that_is_none_is_refused(letters: tc.ReleaseLog, change: str) -> None:
    with duckdb.connect(str(letters.path)) as connection:
        query = "SELECT definition FROM tables WHERE release = 1"
        definition = json.loads(connection.execute(query).fetchone()[0])
        changed = json.dumps(DEFINITIONS[change](definition))
        connection.execute("UPDATE tables SET definition = ? WHERE release = 1", [changed])
    with pytest.raises(FileFormatError, match=r"log\.duckdb: is damaged: \S"):
        read(letters.path)


@pytest.mark.parametrize(
    "change",
    [
        *(f"UPDATE tables SET least = [5, 7, {x}]" for x in (10, -(2**62), 2**53 + 1, "NULL")),
        *(f"UPDATE tables SET most = [5, 7, {x}]" for x in (8, -1, 2**60 + 1, 2**62)),
        "ALTER TABLE tables ALTER least TYPE DOUBLE[]; UPDATE tables SET least = [5, 7, 8.5]",
        "UPDATE tables SET release = 4 WHERE release = 3",
        "DELETE FROM releases WHERE number = 2",
        "UPDATE releases SET removed_utc = added_utc WHERE number = 2",
        "UPDATE releases SET name = 'one'",
        "UPDATE releases SET name = '' WHERE number = 2",
        "UPDATE releases SET name = chr(27) || '[2J' WHERE number = 2",
    ],
)
def test_counts_and_releases_that_cannot_be_are_refused(
    letters: tc.ReleaseLog, change: str
) -> None:
    with duckdb.connect(str(letters.path)) as connection:
        for statement in change.split("; "):
            least = statement.startswith("UPDATE tables SET least") or "SET most" in statement
            connection.execute(statement + (" WHERE release = 1" if least else ""))
    with pytest.raises(FileFormatError, match=r"log\.duckdb: is damaged: \S"):
        letters.check(LETTERS, where={"b": "z"}, progressbar=False)


@pytest.mark.parametrize("total", ["90", -91, 90.5, True, [90], {}, 2**62])
def test_a_number_of_records_that_is_none_is_refused(letters: tc.ReleaseLog, total: Any) -> None:
    with duckdb.connect(str(letters.path)) as connection:
        query = "SELECT value FROM project WHERE key = 'codebook'"
        codebook = json.loads(connection.execute(query).fetchone()[0]) | {"total": total}
        connection.execute(
            "UPDATE project SET value = ? WHERE key = 'codebook'", [json.dumps(codebook)]
        )
    with pytest.raises(FileFormatError, match="is damaged: total must be a whole number from 0"):
        tc.ReleaseLog(letters.path)


def test_what_was_added_is_read_as_it_was(letters: tc.ReleaseLog) -> None:
    """Categories that are left out, and intervals of totals that begin below 0."""
    read(letters.path)
    zero = 0 * LETTERS.to_xarray()
    rounded = tc.Rounding(zero, 3, totals=[zero.sum()])
    letters.add(rounded, where={"b": "y"}, name="rounded")
    tables = tc.ReleaseLog(letters.path)._database.tables()
    assert tables[2][1].axes[0].classes.tolist() == [0, 1, -1]
    assert [table.least.tolist() for number, table in tables if number == 4] == [[0, 0, 0], -1]


@contextmanager
def copied_before_it_is_closed(log: tc.ReleaseLog, copy: Path) -> Iterator[None]:
    """What a process that is killed when it has committed leaves in the file alone."""
    opened = Database._open

    @contextmanager
    def copying(self: Database, *, writing: bool) -> Iterator[Any]:
        with opened(self, writing=writing) as connection:
            yield connection
            shutil.copy(log.path, copy)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Database, "_open", copying)
        yield


def test_the_file_alone_holds_what_was_committed(letters: tc.ReleaseLog, tmp_path: Path) -> None:
    copy = tmp_path / "copy.duckdb"
    with copied_before_it_is_closed(letters, copy):
        letters.add(LETTERS, name="four", where={"b": "z"})
    assert tc.ReleaseLog(copy).releases["name"].tolist() == ["one", "two", "three", "four"]
    with copied_before_it_is_closed(letters, copy):
        letters.remove("two")
    assert tc.ReleaseLog(copy).releases["name"].tolist() == ["one", "three", "four"]


def test_what_was_committed_is_added_whatever_comes_then(
    letters: tc.ReleaseLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full:
        """A connection to a disk that is full after a commit."""

        def __init__(self, connection: Any) -> None:
            self.connection = connection

        def execute(self, query: str, *values: Any) -> Any:
            if query == "CHECKPOINT":
                raise duckdb.IOException("No space left on device")
            return self.connection.execute(query, *values)

        def close(self) -> None:
            self.connection.close()

    connected = Database._connected
    monkeypatch.setattr(Database, "_connected", lambda *given: Full(connected(*given)))
    assert letters.add(LETTERS, name="four", where={"b": "z"}) == 4
    assert letters.remove("two") == 2
    monkeypatch.undo()
    assert letters.releases["name"].tolist() == ["one", "three", "four"]
