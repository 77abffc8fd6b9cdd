"""Libraries that are loaded when they are first needed, perhaps by several threads."""

from importlib import import_module
from threading import RLock
from typing import Any, Final

__all__ = ["loaded"]

_LOADING: Final = RLock()


def loaded(library: str) -> Any:
    """A library, loaded by one thread at a time: where its modules need each other, two
    threads that load it may find it half loaded.
    """
    with _LOADING:
        return import_module(library)
