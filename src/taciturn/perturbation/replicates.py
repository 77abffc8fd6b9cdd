"""Shared by protection methods: replicates, drawn in blocks, and their labels."""

from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.schema import COUNT

__all__ = ["Counts", "labelled", "replicated"]

Counts = npt.NDArray[np.int64]

_BLOCK_CELLS: Final = 2**20  # at a time, so that little memory is needed beside the result


def replicated(
    table: xr.DataArray, replicates: int, release: Callable[[tuple[int, ...]], Counts]
) -> xr.DataArray:
    """Independent releases of a checked table; `release` gives a block of them, shape
    ``(block, *table.shape)``.
    """
    out = np.empty((replicates, *table.shape), dtype=np.int64)
    step = max(1, _BLOCK_CELLS // table.size)
    for start in range(0, replicates, step):
        block = out[start : start + step]
        block[...] = release(block.shape)
    return labelled(table, out)


def labelled(table: xr.DataArray, releases: Counts) -> xr.DataArray:
    """Releases of shape ``(replicates, *table.shape)``, labelled as their table is."""
    coords = {"replicate": np.arange(len(releases)), **{dim: table[dim] for dim in table.dims}}
    return xr.DataArray(releases, dims=("replicate", *table.dims), coords=coords, name=COUNT)
