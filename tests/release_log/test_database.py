"""The file of a log: what others changed in it is refused, and it holds what was added
without the files beside it."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pytest

import taciturn as tc
from taciturn.errors import FileFormatError
from taciturn.release_log import connection as connections
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

        def table(self, name: str) -> Any:
            return self.connection.table(name)

        def close(self) -> None:
            self.connection.close()

    connected = connections._connected
    monkeypatch.setattr(connections, "_connected", lambda *given: Full(connected(*given)))
    assert letters.add(LETTERS, name="four", where={"b": "z"}) == 4
    with pytest.raises(FileFormatError, match="No space left on device"):
        letters.remove("two")  # which writes the file anew, or leaves it
    monkeypatch.undo()
    assert letters.releases["name"].tolist() == NAMES


NAMES = ["one", "two", "three", "four"]


@pytest.fixture
def beside(letters: tc.ReleaseLog, tmp_path: Path) -> Path:
    """What was committed to the log, and is not in its file yet as the process that did
    it was killed then.
    """
    files = [letters.path, letters.path.with_name("log.duckdb.wal")]

    def commit(connection: Any) -> None:
        connection.execute("COMMIT")
        for file in files:
            shutil.copy(file, tmp_path / f"left-{file.name}")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("taciturn.release_log.database._commit", commit)
        letters.add(LETTERS, name="four", where={"b": "z"})
    for file in files:
        (tmp_path / f"left-{file.name}").rename(file)
    return files[1]


@pytest.mark.parametrize("failing", ["fsync", "replace"])
def test_a_log_that_is_not_replaced_after_all_has_lost_nothing(
    letters: tc.ReleaseLog,
    beside: Path,
    failing: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Neither if that fails, nor if the process is killed then."""
    if_killed = tmp_path / "if_killed"
    if_killed.mkdir()

    def full(*given: Any) -> None:
        for file in letters.path.parent.glob("log.duckdb*"):
            shutil.copy(file, if_killed)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, failing, full)
    with pytest.raises(FileFormatError, match="cannot be written: No space left"):
        tc.ReleaseLog(letters.path, variables={"a": list("ABC")}, overwrite=True)
    monkeypatch.undo()
    for path in (letters.path, if_killed / "log.duckdb"):
        assert tc.ReleaseLog(path).releases["name"].tolist() == NAMES


def test_nothing_of_a_log_gets_into_the_one_that_replaces_it(
    letters: tc.ReleaseLog, beside: Path
) -> None:
    stale = beside.read_bytes()
    log = tc.ReleaseLog(letters.path, variables={"a": list("ABC")}, overwrite=True)
    assert (len(log.releases), beside.exists()) == (0, False)
    # Nor what stands beside a file that is none of DuckDB, or that is gone.
    for text in (None, "area,count\n1,2\n"):
        log.path.unlink()
        if text is not None:
            log.path.write_text(text)
        beside.write_bytes(stale)
        log = tc.ReleaseLog(log.path, variables={"a": list("ABC")}, overwrite=text is not None)
        assert (len(log.releases), beside.exists()) == (0, False)


def test_nobody_adds_to_a_log_while_it_is_replaced(
    letters: tc.ReleaseLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is committed then would get lost, or into the new one."""
    command = (
        "import sys, taciturn as tc, taciturn.release_log.connection as connections;"
        "connections._PATIENCE = 0.1; tc.ReleaseLog(sys.argv[1]).remove('one')"
    )
    said = []
    synced = os.fsync

    def removing(descriptor: int) -> None:
        asked = [sys.executable, "-c", command, str(letters.path)]
        said.append(subprocess.run(asked, check=False, capture_output=True, text=True).stderr)
        synced(descriptor)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", removing)
        tc.ReleaseLog(letters.path, variables={"a": list("ABC")}, overwrite=True)
    assert "another process has had it open" in said[0]


def test_a_log_that_cannot_be_read_is_not_replaced(letters: tc.ReleaseLog, beside: Path) -> None:
    letters.path.write_bytes(letters.path.read_bytes()[:8192])
    before = letters.path.read_bytes(), beside.read_bytes()
    with pytest.raises(FileFormatError, match=r"not replaced, as log\.duckdb\.wal may hold"):
        tc.ReleaseLog(letters.path, variables={"a": list("ABC")}, overwrite=True)
    assert (letters.path.read_bytes(), beside.read_bytes()) == before


def test_nothing_is_left_of_a_release_that_is_removed(tmp_path):
    """Deleted rows stay in a file of DuckDB: the header that knew of them was still
    there, and with it the table.
    """
    log = tc.ReleaseLog(tmp_path / "log.duckdb", variables={"age": ["a", "b"], "sex": ["f", "m"]})
    index, columns = pd.Index(["a", "b"], name="age"), pd.Index(["f", "m"], name="sex")
    table = pd.DataFrame([[71_111_111, 1], [2, 72_222_222]], index, columns)
    log.add(table.sum(axis=1), name="by age", protection="none")
    log.add(table, name="raw table", protection="nothing yet")
    assert log.remove("raw table") == 2
    content = log.path.read_bytes()
    for told in (b"raw table", b"nothing yet", (71_111_111).to_bytes(8, "little")):
        assert told not in content
    assert [path.name for path in tmp_path.iterdir()] == ["log.duckdb"]
    again = tc.ReleaseLog(log.path)
    assert again.releases["name"].tolist() == ["by age"]
    assert log.add(table.sum(), name="by sex") == 3  # numbers are not used again
    with pytest.raises(tc.TaciturnError, match="there is no release 'raw table'"):
        log.remove("raw table")
