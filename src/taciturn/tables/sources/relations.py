"""Records in a relation of DuckDB, read a part at a time."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from taciturn.errors import MissingDependencyError, TableError
from taciturn.tables.sources.base import Source
from taciturn.tables.values import convertible

__all__ = ["RelationSource", "is_relation"]

_ROWS: Final = 500_000  # of one part


def is_relation(records: Any) -> bool:
    """Whether something is a relation of DuckDB, which is not loaded to find out."""
    return type(records).__name__ == "DuckDBPyRelation"


class RelationSource(Source):
    """A relation, such as `connection.table` or `connection.sql` returns; columns of an
    ENUM declare their categories.
    """

    def __init__(self, relation: Any) -> None:
        try:
            import pyarrow  # noqa: F401 - hands columns over
        except ImportError as error:
            raise MissingDependencyError(
                "reading a relation of DuckDB needs pyarrow: install the extra 'magnitude'"
            ) from error
        self._relation = relation
        super().__init__("the relation", list(relation.columns))
        for name, times in Counter(self.names).items():
            if times > 1:
                raise TableError(f"the relation has two columns called {name!r:.80}")

    def parts(self, names: Sequence[str]) -> Iterator[list[Any]]:
        """The named columns of consecutive rows, part after part."""
        import duckdb
        import pyarrow as pa

        columns = list(dict.fromkeys(names))
        with self._readable():
            chosen = self._relation.select(*map(duckdb.ColumnExpression, columns))
            newer = hasattr(chosen, "to_arrow_reader")  # than DuckDB 1.4
            reader = chosen.to_arrow_reader if newer else chosen.fetch_record_batch
            for part in reader(_ROWS):
                for name in columns:
                    with convertible(name, self.origin):
                        part.column(name).validate(full=True)
                    if pa.types.is_dictionary(part.column(name).type):
                        self.declare(name, part.column(name).dictionary.to_pylist())
                if len(part):
                    yield [part.column(name) for name in names]

    @contextmanager
    def _readable(self) -> Iterator[None]:
        """What fails in the query becomes a `TableError`."""
        import duckdb

        try:
            yield
        except TableError:
            raise
        except (duckdb.Error, OSError) as error:
            raise TableError(f"{self.origin} cannot be read: {error!s:.200}") from error
