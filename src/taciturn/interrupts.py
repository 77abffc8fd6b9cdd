"""Ctrl-C where another library takes it for an error of its own."""

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["interruptible_kernels", "interruptible_queries"]


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


@contextmanager
def interruptible_kernels() -> Iterator[None]:
    """Raise `KeyboardInterrupt` for Ctrl-C while Numba makes what it returns."""
    try:
        yield
    except SystemError as error:
        cause: BaseException | None = error
        while isinstance(cause, SystemError):
            cause = cause.__cause__
        if not isinstance(cause, KeyboardInterrupt):
            raise
        raise KeyboardInterrupt from error
