"""Draws of tables that are made when they are read, for those that would not fit into
memory together.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from math import prod
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from xarray.backends import BackendArray
from xarray.core import indexing

from taciturn.schema import draws_at_a_time

__all__ = ["STORED_LIMIT", "DrawnTables", "TablesOnDemand"]

STORED_LIMIT: Final = 50_000_000
"""Values of all draws of a table together, beyond which they are not stored: 400 MB."""

Counts = npt.NDArray[np.int64]


class TablesOnDemand(BackendArray, ABC):
    """Array of shape (chain, draw, *cells) whose tables are made as they are read."""

    dtype = np.dtype(np.int64)

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape

    @abstractmethod
    def tables(self, chain: int, draws: npt.NDArray[np.int64]) -> Counts:
        """Tables at some draws of one chain, (draw, *cells)."""

    def lazily(self) -> Any:
        """Return it as xarray holds an array that is not in memory."""
        return indexing.LazilyIndexedArray(self)

    def __getitem__(self, key: indexing.ExplicitIndexer) -> npt.NDArray[np.int64]:
        """Return what xarray asks for."""
        read = indexing.explicit_indexing_adapter(
            key, self.shape, indexing.IndexingSupport.OUTER, self._read
        )
        return np.asarray(read)

    def _read(self, key: tuple[Any, ...]) -> Counts:
        chains, draws = (
            np.arange(size)[k] for k, size in zip(key[:2], self.shape[:2], strict=True)
        )
        read = [
            self._cells(self.tables(int(chain), np.atleast_1d(draws)), key[2:])
            for chain in np.atleast_1d(chains)
        ]
        out = np.stack(
            read or [self._cells(np.empty((draws.size, *self.shape[2:]), dtype=np.int64), key[2:])]
        )
        if not read:
            out = out[:0]
        if draws.ndim == 0:
            out = out[:, 0]
        return out if chains.ndim else out[0]

    @staticmethod
    def _cells(tables: Counts, key: tuple[Any, ...]) -> Counts:
        for axis, k in reversed(
            list(enumerate(key, start=1))
        ):  # from the last, as a number takes its axis away
            tables = tables[(slice(None),) * axis + (k,)]
        return tables


class DrawnTables(TablesOnDemand):
    """Tables drawn in blocks of consecutive draws, each with a seed of its own.

    The same draw has the same numbers however it is read.
    """

    def __init__(self, shape: tuple[int, ...], draw_block: Callable[[int, int], Counts]) -> None:
        super().__init__(shape)
        self.draw_block = draw_block  # tables (draw, cells) of a chain and a block
        self.step = draws_at_a_time(prod(shape[2:]))
        self._last: tuple[tuple[int, int], Counts] | None = None

    def tables(self, chain: int, draws: npt.NDArray[np.int64]) -> Counts:
        """Tables at some draws of one chain, (draw, *cells)."""
        out = np.empty((len(draws), *self.shape[2:]), dtype=np.int64)
        for block in np.unique(draws // self.step):
            chosen = draws // self.step == block
            out[chosen] = self._block(chain, int(block))[draws[chosen] - block * self.step]
        return out

    def _block(self, chain: int, block: int) -> Counts:
        last = self._last
        if last is None or last[0] != (chain, block):
            drawn = self.draw_block(chain, block).reshape(-1, *self.shape[2:])
            self._last = last = (chain, block), drawn
        return last[1]
