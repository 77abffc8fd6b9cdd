"""Tables in chunks of Dask: what is kept of each stays as lazy as they are.

A scheduler needs about a millisecond for a task, however small, and many a table takes
few. So a task takes several small chunks as they are, and what several tasks found is
put together before it is divided into arrays, one for each variable of the result:
``xarray.map_blocks`` would make sixteen tasks for each chunk.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import accumulate
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.estimators.base import Estimator
from taciturn.many.collection import Collection, Stack, stacked
from taciturn.many.results import labelled
from taciturn.many.shared_profile.estimator import Populations
from taciturn.many.tasks import Kept, Task, run_task

__all__ = ["Block", "assess_lazily"]

_TOGETHER: Final = {"shared": 200, "alone": 50}
"""Tables of small chunks that one task takes,"""
_KEPT_TOGETHER: Final = 1000
"""of how many small tasks' results are put together,"""
_NUMBERS: Final = 2**20
"""and how many numbers either may be."""

Found = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class Block:
    """How tables are assessed, and what their variables and categories are."""

    over: str
    categories: dict[Hashable, npt.NDArray[Any]]
    estimator: Estimator | Populations | None
    structural_zeros: xr.DataArray | None
    kept: Kept
    converged: bool
    seed: int

    def __dask_tokenize__(self) -> str:
        """All that decides the numbers, more than fields of an estimator included."""
        import cloudpickle  # which Dask needs

        return sha256(cloudpickle.dumps(self)).hexdigest()

    def assess(self, pieces: list[npt.NDArray[Any]], rows: "_Rows") -> Found:
        """What is kept of the tables in some chunks, which are checked here."""
        counts = np.concatenate(pieces) if len(pieces) > 1 else pieces[0]
        coords = {self.over: rows.labels, **self.categories}
        tables = xr.DataArray(counts, coords, (self.over, *self.categories))
        zeros = self.structural_zeros
        if zeros is not None and self.over in zeros.dims:
            zeros = zeros.sel({self.over: rows.labels})
        stack = stacked(tables, self.over, zeros)
        own = Collection(self.over, stack.labels, stack, rows.sizes)
        _, arrays = run_task(Task(0, own, self.estimator, self.kept, self.seed))
        arrays["converged"] &= self.converged
        return {str(k): v.values for k, v in labelled(arrays, own, self.kept).data_vars.items()}


@dataclass(frozen=True)
class _Rows:
    """Labels and sizes of the tables of a task, which Dask does not look into."""

    labels: npt.NDArray[Any]
    sizes: list[Any]


def assess_lazily(tables: xr.DataArray, sizes: list[Any], block: Block) -> xr.Dataset:
    """Assess tables when the result is asked for; small chunks that follow each other
    in one task.
    """
    from dask.base import tokenize

    tables = tables.transpose(block.over, ...)
    tables = tables.chunk(dict.fromkeys(tables.dims[1:], -1))
    (given, *_), labels = tables.chunks or ((),), tables[block.over].values
    example = _example(labels[:1].tolist(), sizes[:1], tables, block)
    numbers = sum(array.size for array in example.data_vars.values())
    most = _TOGETHER["shared" if isinstance(block.estimator, Populations) else "alone"]
    tasks = _joined(given, most, tables[0].size)
    results = _joined([sum(given[own]) for own in tasks], _KEPT_TOGETHER, numbers)
    # A task has its name by all that decides its numbers: Dask takes tasks of one name
    # for one.
    name = f"assess-many-{tokenize(tables.data, labels, sizes, block)}"
    part = f"{name}-part"
    pieces, starts = _pieces(tables.data), list(accumulate(given, initial=0))
    layer: dict[Any, Any] = {}
    for number, own in enumerate(tasks):
        of_tables = slice(starts[own.start], starts[own.stop])
        rows = _Rows(labels[of_tables], sizes[of_tables])
        layer[part, number] = (block.assess, pieces[own], rows)
    for number, own in enumerate(results):
        layer[name, number] = (_put_together, [(part, k) for k in range(own.start, own.stop)])
    of_results = [sum(sum(given[k]) for k in tasks[own]) for own in results]
    found = example.drop_dims(block.over).assign_coords({block.over: tables[block.over]})
    return found.assign(_arrays(example, of_results, name, layer, tables.data))


def _example(
    labels: list[Hashable], sizes: list[Any], tables: xr.DataArray, block: Block
) -> xr.Dataset:
    """What a result of one table looks like."""
    arrays = {
        name: np.zeros((1, *shape), dtype=kind) for name, (kind, shape) in block.kept.shapes.items()
    }
    first = Collection(block.over, labels, Stack(tables[:1], block.over, None), sizes)
    return labelled(arrays, first, block.kept)


def _pieces(tables: Any) -> list[Any]:
    """Each chunk as it is where it is in memory, the name of its task elsewhere."""
    keys = [(tables.name, k, *(0,) * (tables.ndim - 1)) for k in range(tables.numblocks[0])]
    each = [tables.dask[key] for key in keys]
    known = zip(each, keys, strict=True)
    return [piece if isinstance(piece, np.ndarray) else key for piece, key in known]


def _put_together(parts: list[Found]) -> Found:
    """The results of several tasks."""
    if len(parts) == 1:
        return parts[0]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _arrays(
    example: xr.Dataset, sizes: Sequence[int], name: str, layer: dict[Any, Any], tables: Any
) -> dict[Any, Any]:
    """The variables of the result in chunks of so many tables, each from what tasks of
    a name have found.
    """
    from operator import itemgetter

    import dask.array
    from dask.highlevelgraph import HighLevelGraph

    array_of: Any = dask.array.Array
    found = {}
    first = HighLevelGraph.from_collections(name, layer, dependencies=[tables])
    for variable, array in example.data_vars.items():
        own, rest = f"{variable}-{name}", array.shape[1:]
        get, zeros = itemgetter(variable), (0,) * len(rest)
        last: dict[Any, Any] = {(own, k, *zeros): (get, (name, k)) for k in range(len(sizes))}
        graph = HighLevelGraph({**first.layers, own: last}, {**first.dependencies, own: {name}})
        chunks = (tuple(sizes), *((size,) for size in rest))
        found[variable] = (array.dims, array_of(graph, own, chunks, dtype=array.dtype))
    return found


def _joined(sizes: Sequence[int], most: int, numbers: int) -> list[slice]:
    """Which parts that follow each other are joined: small ones, to as many tables as
    that, if each table has so many numbers.
    """
    most = min(most, max(1, _NUMBERS // numbers))
    found: list[slice] = []
    tables = 0
    for number, size in enumerate(sizes):
        if found and tables + size <= most:
            found[-1] = slice(found[-1].start, number + 1)
            tables += size
        else:
            found.append(slice(number, number + 1))
            tables = size
    return found
