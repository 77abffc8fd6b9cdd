"""Records in a relation of DuckDB, read a part at a time."""

from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from taciturn.errors import MissingDependencyError, TableError
from taciturn.interrupts import interruptible_queries
from taciturn.tables.sources.base import Source
from taciturn.tables.values import convertible

__all__ = ["RelationSource", "columns_of", "count_name", "is_relation", "is_zoned_time"]

_ROWS: Final = 500_000  # of one part


def is_zoned_time(kind: str) -> bool:
    """Whether this type of an engine has times in zones, which Arrow would leave out:
    two of them would read alike.
    """
    return kind.lower() in ("time with time zone", "timetz")


def count_name(names: Sequence[str]) -> str:
    """What to call the column of how many records each group has."""
    name = "count"
    while any(name.lower() == other.lower() for other in names):
        name += "_"
    return name


def is_relation(records: Any) -> bool:
    """Whether something is a relation of DuckDB, which is not loaded to find out."""
    return type(records).__name__ == "DuckDBPyRelation"


class RelationSource(Source):
    """A relation, such as `connection.table` or `connection.sql` returns; columns of an
    ENUM declare their categories.
    """

    def __init__(self, relation: Any, *, origin: str = "the relation") -> None:
        try:
            import pyarrow  # noqa: F401 - hands columns over
        except ImportError as error:
            raise MissingDependencyError(
                "reading a relation of DuckDB needs pyarrow: install the extra 'magnitude'"
            ) from error
        self._relation = relation
        super().__init__(origin, list(relation.columns))
        for name, times in Counter(self.names).items():
            if times > 1:
                raise TableError(f"{origin} has two columns called {name!r:.80}")

    def parts(self, names: Sequence[str]) -> Generator[list[Any]]:
        """The named columns of consecutive rows, part after part."""
        import duckdb

        columns = dict.fromkeys(names)
        self._refuse_zones(names)
        with self._readable():
            chosen = self._relation.select(*map(duckdb.ColumnExpression, columns))
            for part in _read(chosen):
                yield columns_of(self, part, names)

    def groups(self, names: Sequence[str]) -> Generator[tuple[list[Any], Any]]:
        """The distinct rows of the named columns, and how many records have each."""
        import duckdb

        columns = [duckdb.ColumnExpression(name) for name in dict.fromkeys(names)]
        count = count_name(names)
        self._refuse_zones(names)
        number = duckdb.FunctionExpression("count_star").alias(count)
        with self._readable():
            for part in _read(self._relation.aggregate([*columns, number])):
                yield columns_of(self, part, names), part.column(count).to_numpy()

    def _refuse_zones(self, names: Sequence[str]) -> None:
        kinds = dict(zip(self._relation.columns, self._relation.types, strict=True))
        for name in names:
            if is_zoned_time(str(kinds[name])):
                raise self.refused_zones(name)

    @contextmanager
    def _readable(self) -> Iterator[None]:
        """What fails in the query becomes a `TableError`."""
        import duckdb

        try:
            with interruptible_queries():
                yield
        except TableError:
            raise
        except (duckdb.Error, OSError) as error:
            raise TableError(f"{self.origin} cannot be read: {error!s:.200}") from error


def _read(relation: Any) -> Iterator[Any]:
    """Record batches of Arrow, none of them empty."""
    newer = hasattr(relation, "to_arrow_reader")  # than DuckDB 1.4
    reader = relation.to_arrow_reader if newer else relation.fetch_record_batch
    return (part for part in reader(_ROWS) if len(part))


def columns_of(source: Source, part: Any, names: Sequence[str]) -> list[Any]:
    """Columns of a batch or table of Arrow, whose values are valid; dictionaries
    declare their categories.
    """
    import pyarrow as pa

    found = {}
    for name in dict.fromkeys(names):
        with convertible(name, source.origin):
            column = part.column(name)
            column.validate(full=True)
            if isinstance(column, pa.ChunkedArray):
                column = column.unify_dictionaries().combine_chunks()
        if pa.types.is_dictionary(column.type):
            source.declare(name, column.dictionary.to_pylist())
        found[name] = column
    return [found[name] for name in names]
