"""Tables in chunks of Dask: what is kept of each stays as lazy as they are."""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

import numpy as np
import xarray as xr

from taciturn.estimators.base import Estimator
from taciturn.many.collection import Collection, Stack, stacked
from taciturn.many.results import labelled
from taciturn.many.shared_profile.estimator import Populations
from taciturn.many.tasks import Kept, Task, run_task

__all__ = ["Block", "assess_lazily"]

_TABLES, _SIZES = "taciturn_tables", "taciturn_sizes"
_TOGETHER: Final = {"shared": 200, "alone": 50}
"""Tables of small chunks that one task takes: a scheduler needs as long for the tasks
of a chunk as a few tables take."""
_NUMBERS: Final = 2**20  # in these, at most


@dataclass(frozen=True)
class Block:
    """How a chunk is assessed."""

    over: str
    estimator: Estimator | Populations | None
    structural_zeros: xr.DataArray | None
    kept: Kept
    converged: bool
    seed: int

    def __dask_tokenize__(self) -> str:
        """All that decides the numbers, more than fields of an estimator included."""
        import cloudpickle  # which Dask needs

        return sha256(cloudpickle.dumps(self)).hexdigest()


def assess_lazily(tables: xr.DataArray, sizes: list[Any], block: Block) -> xr.Dataset:
    """Assess each chunk of tables, which have labels, when its result is asked for;
    small chunks that follow each other as one.
    """
    import dask.array

    da: Any = dask.array

    over = block.over
    tables = tables.transpose(over, ...)
    (given, *_), labels = tables.chunks or ((),), tables[over].values.tolist()
    most = _TOGETHER["shared" if isinstance(block.estimator, Populations) else "alone"]
    of_tables = _joined(given, min(most, max(1, _NUMBERS // tables[0].size)))
    tables = tables.chunk({over: of_tables, **dict.fromkeys(tables.dims[1:], -1)})
    chunks = xr.Dataset({_TABLES: tables, _SIZES: (over, np.array(sizes))})
    example = {
        name: np.zeros((1, *shape), dtype=kind) for name, (kind, shape) in block.kept.shapes.items()
    }
    first = Collection(over, labels[:1], Stack(tables[:1], over, None), sizes[:1])
    one = labelled(example, first, block.kept)
    template = one.drop_dims(over).assign_coords({over: tables[over]})
    for name, array in one.data_vars.items():
        shape = (len(labels), *array.shape[1:])
        empty = da.zeros(shape, dtype=array.dtype, chunks=(of_tables, *array.shape[1:]))
        template[name] = (array.dims, empty)
    # As an argument: a task has its name by what it is given, and Dask takes tasks of
    # one name for one.
    return xr.map_blocks(_assessed, chunks, args=[block], template=template)


def _assessed(chunk: xr.Dataset, block: Block) -> xr.Dataset:
    """The result of the tables of a chunk, which are checked here."""
    zeros = block.structural_zeros
    if zeros is not None and block.over in zeros.dims:
        zeros = zeros.sel({block.over: chunk[block.over]})
    stack = stacked(chunk[_TABLES], block.over, zeros)
    tables = Collection(block.over, stack.labels, stack, chunk[_SIZES].values.tolist())
    task = Task(0, tables, block.estimator, block.kept, block.seed)
    _, arrays = run_task(task)
    arrays["converged"] &= block.converged
    return labelled(arrays, tables, block.kept)


def _joined(chunks: Sequence[int], most: int) -> tuple[int, ...]:
    """Numbers of tables of the chunks, with small ones joined to those before them, up
    to so many.
    """
    found = list(chunks[:1])
    for size in chunks[1:]:
        if found[-1] + size <= most:
            found[-1] += size
        else:
            found.append(size)
    return tuple(found)
