"""DuckDB as it is used here: on data that it is handed, within bounded memory, and
without a way to files, networks or extensions.

What does not fit into memory is spilled to a private temporary folder. Opening an
engine takes forty times as long as asking it about a small table, so calls at the same
time share one, and so do all calls within ``with engine():``.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import count
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Any, Final

__all__ = ["engine", "workspace"]

_MEMORY: Final = "2GB"  # beyond it intermediate results are spilled
_NUMBERS: Final = count()
_LOCK: Final = Lock()


class _Shared:
    """The engine, while somebody uses it."""

    users = 0
    connection: Any = None
    open = ExitStack()


@contextmanager
def engine() -> Iterator[Any]:
    """The engine that all share: opened for the first who needs it, closed after the
    last.
    """
    with _LOCK:
        if _Shared.users == 0:
            with ExitStack() as opening:
                _Shared.connection = _opened(opening)
                _Shared.open = opening.pop_all()
        _Shared.users += 1
    try:
        yield _Shared.connection
    finally:
        with _LOCK:
            _Shared.users -= 1
            if _Shared.users == 0:
                _Shared.connection = None
                _Shared.open.close()


def _opened(stack: ExitStack) -> Any:
    import duckdb

    folder = stack.enter_context(TemporaryDirectory(prefix="taciturn-"))
    settings: dict[str, Any] = {
        "memory_limit": _MEMORY,
        "temp_directory": folder,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
    }
    connection = stack.enter_context(duckdb.connect(":memory:", config=settings))
    # Later than the folder, which could no longer be set.
    connection.execute("SET enable_external_access = false")
    return connection


@contextmanager
def workspace() -> Iterator[Any]:
    """A connection with an empty database of its own, which is gone at the end."""
    import duckdb

    with engine() as shared, shared.cursor() as connection:
        name = f"work_{next(_NUMBERS)}"
        # A table is never looked for among the variables of Python.
        connection.execute(
            f"SET python_enable_replacements = false; ATTACH ':memory:' AS {name} (COMPRESS);"
            f" USE {name}"
        )
        try:
            yield connection
        finally:
            with suppress(duckdb.Error):  # after an error that ended the engine
                connection.execute(f"USE memory; DETACH {name}")
