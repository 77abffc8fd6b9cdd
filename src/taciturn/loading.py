"""Libraries that are loaded when they are first needed, perhaps by several threads."""

import os
from importlib import import_module
from threading import RLock
from typing import Any

__all__ = ["loaded"]

_LOADING = RLock()


def loaded(library: str) -> Any:
    """A library, loaded by one thread at a time: where its modules need each other, two
    threads that load it may find it half loaded.
    """
    with _LOADING:
        return import_module(library)


def _begin_anew() -> None:
    """In a forked process, which has none of the threads."""
    global _LOADING
    _LOADING = RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)
