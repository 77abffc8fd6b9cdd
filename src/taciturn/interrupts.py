"""Ctrl-C where another library takes it for an error of its own."""

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["interruptible_queries"]


@contextmanager
def interruptible_queries() -> Iterator[None]:
    """Raise `KeyboardInterrupt` for Ctrl-C within a query of DuckDB."""
    import duckdb

    try:
        yield
    except (duckdb.InterruptException, RuntimeError) as error:
        if "interrupted" not in str(error).lower():
            raise
        raise KeyboardInterrupt from error
