"""Records in a table of Ibis, which any of its engines counts where it is."""

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from taciturn.errors import TableError
from taciturn.tables.sources.base import Source
from taciturn.tables.sources.relations import columns_of, count_name, is_zoned_time
from taciturn.validate import is_of_class

__all__ = ["IbisSource", "is_ibis_table"]


def is_ibis_table(records: Any) -> bool:
    """Whether something is a table of Ibis, which is not loaded to find out."""
    return is_of_class(records, "ibis.expr.types.relations.Table")


class IbisSource(Source):
    """A table or another expression of Ibis that has rows."""

    def __init__(self, table: Any, *, origin: str = "the Ibis table") -> None:
        self._table = table
        super().__init__(origin, list(table.columns))

    def parts(self, names: Sequence[str]) -> Generator[list[Any]]:
        """The named columns of all rows together, which are held in memory."""
        with self._readable():
            self._refuse_zones(names)
            found = self._table.select(*dict.fromkeys(names)).to_pyarrow()
            if len(found):
                yield columns_of(self, found, names)

    def groups(self, names: Sequence[str]) -> Generator[tuple[list[Any], Any]]:
        """The distinct rows of the named columns, and how many records have each."""
        columns = list(dict.fromkeys(names))
        with self._readable():
            self._refuse_zones(names)
            grouped, count = self._table.group_by(columns), count_name(columns)
            found = grouped.aggregate(**{count: self._table.count()}).to_pyarrow()
            if len(found):
                yield columns_of(self, found, names), found.column(count).to_numpy()

    def _refuse_zones(self, names: Sequence[str]) -> None:
        """Ibis has one type for times with and without a zone."""
        from ibis.common.exceptions import OperationNotDefinedError

        for name in names:
            column = self._table[name]
            if column.type().is_time():
                with suppress(OperationNotDefinedError):  # of engines without zones
                    found = self._table.select(kind=column.typeof()).limit(1).to_pyarrow()
                    if any(map(is_zoned_time, found.column("kind").to_pylist())):
                        raise self.refused_zones(name)

    @contextmanager
    def _readable(self) -> Iterator[None]:
        """Whatever fails in the engine, each of which has errors of its own, becomes a
        `TableError`.
        """
        try:
            yield
        except TableError:
            raise
        except Exception as error:
            raise TableError(f"{self.origin} cannot be read: {error!s:.200}") from error
