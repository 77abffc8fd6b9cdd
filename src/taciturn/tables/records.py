"""Records in DuckDB: one row a record, values in whole steps, everything checked before
it is counted.

Columns go under names of our own (``d0``, ``d1``, … for classifiers, ``x``, ``c``,
``h``, ``w``, ``r``), so that no name in a file ever becomes part of a query. Files are
read by DuckDB itself, within bounded memory.
"""

import csv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import prod
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from taciturn.errors import FileFormatError, MissingDependencyError, TableError
from taciturn.tables.columns import coded, numbers
from taciturn.tables.long import from_frame

__all__ = [
    "MAX_STEPS",
    "WEIGHT_DECIMALS",
    "WHOLE",
    "Records",
    "Roles",
    "open_records",
    "refuse_many_cells",
]

MAX_STEPS: Final = 10**15
"""Largest magnitude of a contribution or a cell in steps: fifteen digits survive double
precision at any decimals."""

WEIGHT_DECIMALS: Final = 6
"""Decimals that weights are read to."""

WHOLE: Final = {
    "TINYINT",
    "SMALLINT",
    "INTEGER",
    "BIGINT",
    "UTINYINT",
    "USMALLINT",
    "UINTEGER",
    "UBIGINT",
}
"""DuckDB's types of whole numbers, up to 64 bits."""

_MOST_TOGETHER: Final = 9 * 10**18  # sums of any contributions then fit in 64 bits
_MAX_CELLS: Final = 10**7
_MEMORY: Final = "2GB"  # of DuckDB; beyond it intermediate results go to a private temporary folder
_MAX_WEIGHT: Final = 10**6
_YES: Final = {"1", "1.0", "true"}
_NO: Final = {"0", "0.0", "false"}


@dataclass(frozen=True)
class Roles:
    """Which column is what."""

    dims: tuple[str, ...]
    value: str
    contributor: str | None = None
    holding: str | None = None
    weights: str | None = None
    request: str | None = None

    def columns(self) -> dict[str, str]:
        """Name of the column in the data by the name we give it."""
        named = {f"d{i}": dim for i, dim in enumerate(self.dims)}
        others = {
            "x": self.value,
            "c": self.contributor,
            "h": self.holding,
            "w": self.weights,
            "r": self.request,
        }
        return named | {short: name for short, name in others.items() if name is not None}


@dataclass
class Records:
    """The open database with its table ``records``, and what its codes stand for."""

    connection: Any
    roles: Roles
    origin: str
    coded: dict[str, list[Any]] = field(default_factory=dict)
    """What the values of a column of a data frame stand for, where they are codes."""
    declared: dict[str, list[Any]] = field(default_factory=dict)
    """Categories by variable, in the order that the data declare."""
    labels: list[list[tuple[Any, int]]] = field(default_factory=list)
    """For each variable its labels in order of appearance, each with the row where it
    is first."""

    @property
    def sizes(self) -> list[int]:
        """So many labels have the variables. A cell is numbered by its labels, the last
        variable running fastest.
        """
        return [len(labels) for labels in self.labels]

    def meaning(self, column: str, value: Any) -> Any:
        """What a value of a column stands for; None where it is missing."""
        return value if value is None or column not in self.coded else self.coded[column][value]

    def types(self, table: str) -> dict[str, str]:
        """Type of each column of a table."""
        return {name: kind for name, kind, *_ in self.fetch(f"DESCRIBE {table}")}

    def fetch(self, query: str) -> list[tuple[Any, ...]]:
        """All rows of a query."""
        rows: list[tuple[Any, ...]] = self.connection.execute(query).fetchall()
        return rows


@contextmanager
def open_records(
    microdata: str | PathLike[str] | Any, roles: Roles, *, decimals: int
) -> Iterator[Records]:
    """Read and check the records; they are gone when the block ends."""
    try:
        import duckdb
        import pyarrow  # noqa: F401 - hands data frames over
    except ImportError as error:
        raise MissingDependencyError(
            f"magnitude tables need DuckDB and pyarrow: pip install 'taciturn[magnitude]' ({error})"
        ) from error
    origin = str(microdata) if isinstance(microdata, str | PathLike) else "the data frame"
    with TemporaryDirectory(prefix="taciturn-") as folder:
        settings: dict[str, Any] = {
            "memory_limit": _MEMORY,
            "temp_directory": folder,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
        }
        with duckdb.connect(":memory:", config=settings) as connection:
            # A table is never looked for among the variables of Python.
            connection.execute(
                "SET python_enable_replacements = false; ATTACH ':memory:' AS work (COMPRESS); USE"
                " work"
            )
            try:
                if isinstance(microdata, str | PathLike):
                    records = _from_file(connection, Path(microdata), roles)
                else:
                    records = _from_frame(connection, microdata, roles)
                _parse(records, decimals)
                _number_cells(records)
                yield records
            except (duckdb.InterruptException, RuntimeError) as error:
                if "interrupted" not in str(error).lower():
                    raise
                raise KeyboardInterrupt from error  # which DuckDB takes Ctrl-C for within a query
            except duckdb.Error as error:
                reason = str(error).split("\nPossible fixes")[0].split("\n  file =")[0].strip()
                raise FileFormatError(f"{origin}: cannot be read: {reason}") from error


def refuse_many_cells(sizes: Sequence[int]) -> None:
    """Raise `TableError` where a table of these sizes would be too large."""
    if prod(sizes) > _MAX_CELLS:
        raise TableError(
            f"the table would have {prod(sizes)} cells, at most {_MAX_CELLS} are accepted: sizes"
            f" {tuple(sizes)}"
        )


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _positions(names: Sequence[str], roles: Roles, origin: str) -> dict[str, int]:
    """Where the columns of the roles stand, each in one role."""
    wanted = roles.columns()
    unknown = sorted(set(wanted.values()) - set(names))
    if unknown:
        listed = ", ".join(repr(name) for name in names)
        raise TableError(
            f"no column {', '.join(map(repr, unknown))} in {origin}: the columns are {listed}"
        )
    return {short: names.index(name) for short, name in wanted.items()}


def _from_file(connection: Any, path: Path, roles: Roles) -> Records:
    ending = path.suffix.lower()
    if ending not in {".csv", ".parquet"}:
        raise FileFormatError(
            f"{path}: cannot read the ending {ending!r}; accepted are '.csv' and '.parquet'"
        )
    if not path.is_file():
        raise FileFormatError(f"{path}: no such file")
    # A path is no pattern: what would match several files is put in brackets.
    place = _literal("".join(f"[{sign}]" if sign in "*?[" else sign for sign in str(path)))
    if ending == ".csv":
        names = _header(path)
        columns = ", ".join(f"'f{i}': 'VARCHAR'" for i in range(len(names)))
        reader = (
            f"read_csv({place}, columns={{{columns}}}, auto_detect=false, header=true, delim=',',"
            " quote='\"', escape='\"', strict_mode=true, null_padding=false, compression='none',"
            " hive_partitioning=false)"
        )
        declared: dict[str, list[Any]] = {}
    else:
        names, declared = _parquet_schema(path, roles)
        reader = f"read_parquet({place}, hive_partitioning=false)"
    positions = _positions(names, roles, str(path))
    fields = ", ".join(f"f{i}" for i in range(len(names)))
    chosen = ", ".join(f"f{position} AS {short}" for short, position in positions.items())
    connection.execute(
        f"CREATE TEMP VIEW source AS SELECT row_number() OVER () AS row, {chosen} FROM {reader} AS t({fields})"
    )
    return Records(connection, roles, str(path), declared=declared)


def _header(path: Path) -> list[str]:
    """Column names of a CSV file."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            names = next(csv.reader(file, strict=True), None)
    except UnicodeDecodeError as error:
        raise FileFormatError(f"{path}: not a text file in UTF-8: {error}") from error
    except csv.Error as error:
        raise FileFormatError(f"{path}: not a CSV file, in its header: {error}") from error
    except OSError as error:
        raise FileFormatError(f"{path}: cannot be read: {error.strerror}") from error
    if not names:
        raise FileFormatError(f"{path}: the first line must be the header, and is empty")
    for position, name in enumerate(names):
        if not name.strip():
            raise FileFormatError(
                f"{path}: the header has no name for column {position + 1}; a data frame is written"
                " without its index"
            )
        if name in names[:position]:
            raise FileFormatError(f"{path}: the header names {name!r} twice")
    if len(names) == 1 and any(mark in names[0] for mark in ";\t|"):
        raise FileFormatError(
            f"{path}: the fields must be separated by commas; the header is {names[0]!r}"
        )
    return names


def _parquet_schema(path: Path, roles: Roles) -> tuple[list[str], dict[str, list[Any]]]:
    """Column names of a Parquet file, and the categories of the classifiers that
    declare them.
    """
    import pyarrow as pa
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path) as file:
            schema = file.schema_arrow
            twice = {name for name in schema.names if schema.names.count(name) > 1}
            if twice:
                raise FileFormatError(f"{path}: {min(twice)!r} names two columns")
            kinds = {dim: schema.field(dim).type for dim in roles.dims if dim in schema.names}
            declared = {}
            for dim in [dim for dim, kind in kinds.items() if pa.types.is_dictionary(kind)]:
                found: dict[Any, None] = {}
                for group in range(file.num_row_groups):
                    for chunk in file.read_row_group(group, columns=[dim]).column(0).chunks:
                        found.update(dict.fromkeys(chunk.dictionary.to_pylist()))
                declared[dim] = list(found)
    except (OSError, ValueError) as error:  # pyarrow's ArrowInvalid is a ValueError
        if isinstance(error, FileFormatError):
            raise
        raise FileFormatError(f"{path}: not a readable Parquet file: {error}") from error
    return schema.names, declared


def _from_frame(connection: Any, frame: Any, roles: Roles) -> Records:
    import numpy as np
    import pyarrow as pa

    none = (
        frame.slice(0, 0)
        if isinstance(frame, pa.Table)
        else frame.head(0)
        if hasattr(frame, "head")
        else frame
    )
    empty = from_frame(none)  # refuses what is no data frame
    _positions(list(empty.columns), roles, empty.origin)
    arrays, meanings = {}, {}
    for short, name in roles.columns().items():
        if short in {"x", "w"}:
            arrays[short] = numbers(frame, name)
        else:
            arrays[short], meanings[short] = coded(frame, name)
    rows = len(frame)
    table = pa.table({"row": np.arange(1, rows + 1), **arrays})
    connection.register("source", table)
    declared = {dim: order for dim, order in empty.categories.items() if dim in roles.dims}
    return Records(connection, roles, empty.origin, coded=meanings, declared=declared)


def _parse(records: Records, decimals: int) -> None:
    """Make the table ``parsed``; what cannot be parsed is NULL there, and refused."""
    types = records.types("source")
    for i, dim in enumerate(records.roles.dims):
        if types[f"d{i}"] == "TIMESTAMP WITH TIME ZONE":  # its text depends on where it is read
            raise TableError(
                f"{dim!r} in {records.origin} holds times in a time zone: write its categories as"
                " text"
            )
    parsed = {"row": "row", **{f"d{i}": f"d{i}" for i in range(len(records.roles.dims))}}
    parsed["x"] = _steps("x", types["x"], decimals)
    for short in "ch":
        if short in types:
            parsed[short] = _identity(short, types[short])
    if "w" in types:
        parsed["w"] = _steps("w", types["w"], WEIGHT_DECIMALS, rounded=True)
        least, most = 10**WEIGHT_DECIMALS, _MAX_WEIGHT * 10**WEIGHT_DECIMALS
        parsed["w"] = f"CASE WHEN {parsed['w']} BETWEEN {least} AND {most} THEN {parsed['w']} END"
    if "r" in types:
        parsed["r"] = _request(records)
    columns = ", ".join(f"{expression} AS {short}" for short, expression in parsed.items())
    records.connection.execute(f"CREATE TABLE parsed AS SELECT {columns} FROM source")
    [(rows, together)] = records.fetch("SELECT count(*), sum(abs(x)) FROM parsed")
    if rows == 0:
        raise TableError(f"{records.origin} is empty: it has no rows")
    accepted = {
        "x": (
            f"must be plain numbers of at most {decimals} decimals ({decimals=}) and at most"
            f" 10**{15 - decimals}"
        ),
        "c": "must name a contributor in every row",
        "w": f"must be numbers from 1 to {_MAX_WEIGHT}",
        "r": "must be 0 or 1, or false or true",
    }
    for short, rule in accepted.items():
        if short in parsed:
            _refuse_missing(records, short, rule)
    if together > _MOST_TOGETHER:
        raise TableError(
            f"the sizes of all values of {records.roles.value!r} add up to more than 9*10**18 steps"
        )


def _number_cells(records: Records) -> None:
    """Make the table ``records`` of ``parsed``: the labels of a record become the
    number of its cell.
    """
    connection, cell, joins = records.connection, "0", ""
    for i, dim in enumerate(records.roles.dims):
        connection.execute(
            f"CREATE TABLE labels{i} AS SELECT d{i} AS label, row, row_number() OVER (ORDER BY row) - 1 AS code "
            f"FROM (SELECT d{i}, min(row) AS row FROM parsed GROUP BY d{i})"
        )
        found = records.fetch(f"SELECT label, row FROM labels{i} ORDER BY code")
        labels = [(records.meaning(f"d{i}", value), row) for value, row in found]
        for label, row in labels:
            if label is None or (not label.strip() if isinstance(label, str) else label != label):
                raise TableError(f"a label is missing: {dim!r} in row {row} of {records.origin}")
        records.labels.append(labels)
        cell = f"({cell}) * {len(labels)} + labels{i}.code"
        joins += f" JOIN labels{i} ON labels{i}.label = parsed.d{i}"
    refuse_many_cells(records.sizes)
    kept = ", ".join(
        f"parsed.{name}" for name in records.types("parsed") if not name.startswith("d")
    )
    connection.execute(
        f"CREATE TABLE records AS SELECT ({cell})::INTEGER AS cell, {kept} FROM parsed{joins}"
    )
    connection.execute("DROP TABLE parsed")


def _refuse_missing(records: Records, short: str, rule: str) -> None:
    rows = records.fetch(f"SELECT min(row) FROM parsed WHERE {short} IS NULL")
    if rows[0][0] is None:
        return
    row = rows[0][0]
    [(raw,)] = records.fetch(f"SELECT {short} FROM source WHERE row = {row}")
    raw = records.meaning(short, raw)
    missing = raw is None or raw != raw or (isinstance(raw, str) and not raw.strip())
    shown = f"{raw!r:.60}" if isinstance(raw, str) else f"{raw!s:.60}"
    found = "is missing" if missing else f"holds {shown}"
    raise TableError(
        f"{records.roles.columns()[short]!r} {rule}: row {row} of {records.origin} {found}"
    )


def _steps(column: str, kind: str, decimals: int, *, rounded: bool = False) -> str:
    """SQL for a number in whole steps, NULL where it is none or has more decimals,
    which weights are rounded to.
    """
    limit = MAX_STEPS // 10**decimals
    if kind in WHOLE:
        return (
            f"CASE WHEN {column} BETWEEN {-limit} AND {limit} THEN {column}::BIGINT *"
            f" {10**decimals} END"
        )
    if kind in {"DOUBLE", "FLOAT"}:
        scaled = f"round({column}::DOUBLE * 1e{decimals})"
        # Divided again, a whole number of steps gives the double that its decimal text
        # is read as.
        exact = "" if rounded else f" AND {scaled} / 1e{decimals} = {column}"
        return (
            f"CASE WHEN isfinite({column}) AND abs({scaled}) <= {MAX_STEPS}{exact} THEN"
            f" {scaled}::BIGINT END"
        )
    text = f"trim({column}::VARCHAR)"
    places = "[0-9]*" if rounded else f"[0-9]{{0,{decimals}}}0*"
    written = (
        f"regexp_full_match({text}, {_literal(f'[+-]?[0-9]*([.]{places})?')}) AND"
        f" regexp_matches({text}, '[0-9]')"
    )
    digits = (
        f"TRY_CAST(replace(TRY_CAST({text} AS DECIMAL(38, {decimals}))::VARCHAR, '.', '') AS"
        " BIGINT)"
    )
    within = f"abs({digits}) <= {MAX_STEPS}"
    return f"CASE WHEN {written} AND {within} THEN {digits} END"


def _identity(column: str, kind: str) -> str:
    """SQL for what tells contributors or holdings apart, NULL where it is missing."""
    if kind in WHOLE:
        return column
    if kind in {"DOUBLE", "FLOAT"}:
        return f"CASE WHEN NOT isnan({column}) THEN {column} END"
    return f"CASE WHEN trim({column}::VARCHAR) <> '' THEN {column}::VARCHAR END"


def _request(records: Records) -> str:
    """SQL for whether a contributor asked for protection."""
    if "r" in records.coded:
        meaning = [str(label).strip().lower() for label in records.coded["r"]]
        listed = [
            f"WHEN {code} THEN {text in _YES}"
            for code, text in enumerate(meaning)
            if text in _YES | _NO
        ]
        return f"CASE r {' '.join(listed)} END" if listed else "NULL::BOOLEAN"
    text = "lower(trim(r::VARCHAR))"
    yes, no = (", ".join(_literal(word) for word in sorted(words)) for words in (_YES, _NO))
    return f"CASE WHEN {text} IN ({yes}) THEN true WHEN {text} IN ({no}) THEN false END"
