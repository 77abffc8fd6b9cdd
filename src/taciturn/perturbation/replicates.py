"""Shared by protection methods: replicates, drawn in blocks, their labels, and the mark
of those that must not be released.
"""

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.schema import COUNT
from taciturn.validate import generator

__all__ = ["MARK", "Counts", "labelled", "replicated", "seed_mark"]

MARK: Final = "not_for_release"
"""Attribute of what must not be released; says why."""

Counts = npt.NDArray[np.int64]

_BLOCK_CELLS: Final = 2**20  # at a time, so that little memory is needed beside the result


def replicated(
    table: xr.DataArray,
    replicates: int,
    random_seed: Any,
    release: Callable[[np.random.Generator, tuple[int, ...]], Counts],
) -> xr.DataArray:
    """Independent releases of a checked table; `release` gives a block of them, shape
    ``(block, *table.shape)``.
    """
    rng = generator(random_seed)
    out = np.empty((replicates, *table.shape), dtype=np.int64)
    step = max(1, _BLOCK_CELLS // table.size)
    for start in range(0, replicates, step):
        block = out[start : start + step]
        block[...] = release(rng, block.shape)
    return labelled(table, out, seed_mark(random_seed))


def labelled(table: xr.DataArray, releases: Counts, mark: dict[str, str]) -> xr.DataArray:
    """Releases of shape ``(replicates, *table.shape)``, labelled as their table is, and
    with no other attribute than the mark, that of the table if it must not be released
    itself: counts that are left as they are are still those of its seed.
    """
    kept = {MARK: table.attrs[MARK]} if MARK in table.attrs else {}
    labels = {dim: table[dim].drop_attrs() for dim in table.dims}
    coords = {"replicate": np.arange(len(releases)), **labels}
    dims = ("replicate", *table.dims)
    return xr.DataArray(releases, dims=dims, coords=coords, name=COUNT, attrs=kept | mark)


def seed_mark(random_seed: Any) -> dict[str, str]:
    """The attribute of what was drawn with a seed or from a given generator; none where
    the entropy was the system's.
    """
    if random_seed is None:
        return {}
    return {MARK: "drawn with random_seed: whoever tries seeds can undo the protection"}
