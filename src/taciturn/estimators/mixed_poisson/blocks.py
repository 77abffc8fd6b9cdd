"""Arrays of draws and cells a few rows at a time."""

from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from taciturn.estimators.unlabelled import Arrays
from taciturn.parallel import in_threads

__all__ = ["in_blocks", "in_cache", "of_draws"]

_FITS: Final = 2**14  # numbers: with a few arrays like it they fit in a core's cache
_FEW: Final = 2**20  # numbers in an array of draws and cells that is made at once, and
_BLOCK: Final = 2**17  # otherwise in each part of it


def of_draws[Number: np.generic](
    work: Callable[..., npt.NDArray[Number]],
    parameters: Arrays,
    cells: int,
    *rng: np.random.Generator,
) -> npt.NDArray[Number]:
    """What is made of draws of the parameters, and of random numbers if given, draws on
    the first axis.

    Many draws of many cells are cut into blocks of consecutive draws, each with a
    generator of its own, so that threads can share them and their number does not
    change what is drawn.
    """
    draws = len(parameters["nu"])
    if draws * cells <= _FEW:
        return work(parameters, *rng)
    blocks = list(in_blocks(draws, cells, most=_BLOCK))
    parts = zip(blocks, *(each.spawn(len(blocks)) for each in rng), strict=True)

    def at(part: tuple[Any, ...]) -> npt.NDArray[Number]:
        rows, *own = part
        return work({name: values[rows] for name, values in parameters.items()}, *own)

    return np.concatenate(in_threads(at, list(parts), numbers=draws * cells))


def in_cache(values: npt.NDArray[Any]) -> Iterator[slice]:
    """Rows of an array of shape (rows, cells) that several operations one after the
    other find in the cache.
    """
    return in_blocks(*values.shape, most=_FITS)


def in_blocks(rows: int, cells: int, *, most: int) -> Iterator[slice]:
    """Rows with at most so many numbers at once, or one row."""
    step = max(1, most // max(1, cells))
    return (slice(start, start + step) for start in range(0, rows, step))
