"""Records in a data frame of pandas or polars, or in an Arrow table."""

from collections.abc import Generator, Sequence
from typing import Any

from taciturn.errors import TableError
from taciturn.tables.sources.base import Source
from taciturn.tables.values import convertible

__all__ = ["FrameSource"]


class FrameSource(Source):
    """A data frame of pandas or polars, or an Arrow table.

    Named levels of a pandas index are columns like others.
    """

    def __init__(self, frame: Any) -> None:
        import narwhals as nw

        try:
            self._data = _with_index_levels(nw.from_native(frame, eager_only=True))
        except TypeError as error:
            raise TableError(
                f"cannot read a table from {type(frame).__name__}: accepted are a path to a CSV or"
                " Parquet file, a pandas or polars DataFrame, or an xarray.DataArray"
            ) from error
        except nw.exceptions.DuplicateError as error:
            raise TableError(f"a column stands twice in the data frame: {error}") from error
        names = list(self._data.columns)
        unnamed = [name for name in names if not isinstance(name, str)]
        if unnamed:  # narwhals lets other types through
            raise TableError(
                f"the columns of the data frame must be named by text, got {unnamed[0]!r}"
            )
        super().__init__("the data frame", names)

    def parts(self, names: Sequence[str]) -> Generator[list[Any]]:
        """The named columns, all rows together."""
        if len(self._data):
            for name in dict.fromkeys(names):
                self._declare_categories(name)
            yield [self._column(name) for name in names]

    def _declare_categories(self, name: str) -> None:
        import narwhals as nw
        import pandas as pd

        series = self._data[name]
        native = series.to_native()
        if isinstance(getattr(native, "dtype", None), pd.CategoricalDtype):
            self.declared[name] = native.cat.categories.tolist()
        elif isinstance(series.dtype, nw.Enum):  # of polars, whose categoricals share theirs
            self.declared[name] = list(series.dtype.categories)

    def _column(self, name: str) -> Any:
        """One column; one that is held by Arrow as that, with valid values."""
        column = self._data[name].to_native()
        if hasattr(getattr(column, "dtype", None), "pyarrow_dtype"):
            import pyarrow as pa

            column = pa.array(column)
        if type(column).__module__.startswith("pyarrow"):
            with convertible(name, self.origin):
                column.validate(full=True)
        return column


def _with_index_levels(data: Any) -> Any:
    import narwhals as nw

    if not data.implementation.is_pandas():
        return data
    native = data.to_native()
    levels = [name for name in native.index.names if name is not None]
    repeated = [name for name in levels if name in native.columns or levels.count(name) > 1]
    if repeated:
        raise TableError(
            f"{repeated[0]!r} names both a column and an index level of the data frame, or two"
            " levels"
        )
    return nw.from_native(native.reset_index(level=levels), eager_only=True) if levels else data
