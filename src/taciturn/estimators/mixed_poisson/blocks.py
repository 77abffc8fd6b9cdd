"""Arrays of draws and cells a few rows at a time."""

from collections.abc import Iterator
from typing import Any, Final

import numpy.typing as npt

__all__ = ["in_blocks", "in_cache"]

_FITS: Final = 2**14  # numbers: with a few arrays like it they fit in a core's cache


def in_cache(values: npt.NDArray[Any]) -> Iterator[slice]:
    """Rows of an array of shape (rows, cells) that several operations one after the
    other find in the cache.
    """
    return in_blocks(*values.shape, most=_FITS)


def in_blocks(rows: int, cells: int, *, most: int) -> Iterator[slice]:
    """Rows with at most so many numbers at once, or one row."""
    step = max(1, most // max(1, cells))
    return (slice(start, start + step) for start in range(0, rows, step))
