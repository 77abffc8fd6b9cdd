"""Tables in chunks of Dask: what is kept of each stays as lazy as they are."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from taciturn.estimators.base import Estimator
from taciturn.many.collection import Collection, Stack, stacked
from taciturn.many.results import labelled
from taciturn.many.shared_profile.estimator import Populations
from taciturn.many.tasks import Kept, Task, run_task

__all__ = ["Block", "assess_lazily"]

_TABLES, _SIZES = "taciturn_tables", "taciturn_sizes"


@dataclass(frozen=True)
class Block:
    """How a chunk is assessed."""

    over: str
    estimator: Estimator | Populations | None
    structural_zeros: xr.DataArray | None
    kept: Kept
    converged: bool
    seed: int

    def __call__(self, chunk: xr.Dataset) -> xr.Dataset:
        """The result of the tables of a chunk, which are checked here."""
        zeros = self.structural_zeros
        if zeros is not None and self.over in zeros.dims:
            zeros = zeros.sel({self.over: chunk[self.over]})
        stack = stacked(chunk[_TABLES], self.over, zeros)
        sizes = chunk[_SIZES].values.tolist()
        tables = Collection(self.over, stack.labels, stack, sizes)
        task = Task(0, tables, self.estimator, self.kept, self.seed)
        _, arrays = run_task(task)
        arrays["converged"] &= self.converged
        return labelled(arrays, tables, self.kept)


def assess_lazily(tables: xr.DataArray, sizes: list[Any], block: Block) -> xr.Dataset:
    """Assess each chunk of tables, which have labels, when its result is asked for."""
    import dask.array

    da: Any = dask.array

    over = block.over
    tables = tables.transpose(over, ...)
    tables = tables.chunk(dict.fromkeys(tables.dims[1:], -1))
    (of_tables, *_), labels = tables.chunks or ((),), tables[over].values.tolist()
    given = xr.Dataset(
        {_TABLES: tables, _SIZES: (over, da.from_array(np.array(sizes), chunks=(of_tables,)))}
    )
    example = {
        name: np.zeros((1, *shape), dtype=kind) for name, (kind, shape) in block.kept.shapes.items()
    }
    first = Collection(over, labels[:1], Stack(tables[:1], over, None), sizes[:1])
    one = labelled(example, first, block.kept)
    template = one.drop_dims(over).assign_coords({over: tables[over]})
    for name, array in one.data_vars.items():
        shape = (len(labels), *array.shape[1:])
        chunks = (of_tables, *array.shape[1:])
        template[name] = (array.dims, da.zeros(shape, dtype=array.dtype, chunks=chunks))
    return xr.map_blocks(block, given, template=template)
