"""Tables in chunks of Dask: what is kept of each stays as lazy as they are.

A scheduler needs some milliseconds for a task, however small, and so does a small
table. So a task takes several small chunks as they are, and what several tasks found is
put together before it is divided into arrays, one for each variable of the result:
``xarray.map_blocks`` would make sixteen tasks for each chunk.
"""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import accumulate, pairwise
from operator import itemgetter
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.estimators.base import Estimator
from taciturn.estimators.block_estimator import BlockEstimator
from taciturn.many.collection import Collection, Stack, stacked
from taciturn.many.results import label_array, labelled
from taciturn.many.shared_profile.estimator import Populations
from taciturn.many.tasks import Kept, Task, run_task

__all__ = ["Block", "assess_lazily"]

_OF_TASK: Final = {"in blocks": 200, "alone": 50}
"""Tables of small chunks that one task takes,"""
_OF_RESULT: Final = 200
"""of how many what small tasks found is put together,"""
_NUMBERS: Final = 2**20
"""and how many numbers either may be."""
_COPIES: Final = 64
"""Of how tables are assessed, which may be megabytes: enough for tasks to spread."""

Found = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class Block:
    """How tables are assessed, and what their variables and categories are."""

    over: str
    categories: dict[Hashable, npt.NDArray[Any]]
    estimator: Estimator | Populations | None
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
        stack = stacked(tables, self.over, rows.structural_zeros)
        own = Collection(self.over, stack.labels, stack, rows.sizes)
        _, arrays = run_task(Task(0, own, self.estimator, self.kept, self.seed))
        arrays["converged"] &= self.converged
        return {str(k): v.values for k, v in labelled(arrays, own, self.kept).data_vars.items()}


@dataclass(frozen=True)
class _Rows:
    """What is known of the tables of a task, which Dask does not look into."""

    labels: npt.NDArray[Any]
    sizes: list[Any]
    structural_zeros: xr.DataArray | None


def assess_lazily(stack: Stack, sizes: list[Any], block: Block) -> xr.Dataset:
    """Assess tables when the result is asked for; small chunks that follow each other
    in one task.
    """
    from dask.base import tokenize

    tables = stack.tables.chunk(dict.fromkeys(stack.tables.dims[1:], -1))
    pieces, given = _pieces(tables.data)
    example = _example(stack, sizes, block)
    numbers = sum(array.size for array in example.data_vars.values())
    in_blocks = isinstance(block.estimator, Populations | BlockEstimator)
    most = _OF_TASK["in blocks" if in_blocks else "alone"]
    tasks = _joined(given, most, tables[0].size)
    of_tasks = [sum(given[own]) for own in tasks]
    results = _joined(of_tasks, _OF_RESULT, numbers)
    # A task has its name by all that decides its numbers: Dask takes tasks of one name
    # for one.
    decides = (tables.data, stack.labels, stack.structural_zeros, sizes, block)
    name = f"assess-many-{tokenize(*decides)}"
    how, part = f"{name}-how", f"{name}-part"
    copies = min(len(tasks), _COPIES)
    layer: dict[Any, Any] = {(how, k): block for k in range(copies)}
    for number, (own, rows) in enumerate(zip(tasks, _rows(stack, sizes, of_tasks), strict=True)):
        copy = (how, number * copies // len(tasks))
        layer[part, number] = (Block.assess, copy, pieces[own], rows)
    for number, own in enumerate(results):
        layer[name, number] = (_put_together, [(part, k) for k in range(own.start, own.stop)])
    of_results = [sum(of_tasks[own]) for own in results]
    labels = label_array(stack.labels)  # no coordinates that come with them
    found = example.drop_dims(stack.over).assign_coords({stack.over: (stack.over, labels)})
    return found.assign(_arrays(example, of_results, name, layer, tables.data))


def _example(stack: Stack, sizes: list[Any], block: Block) -> xr.Dataset:
    """What a result of one table looks like."""
    arrays = {
        name: np.zeros((1, *shape), dtype=kind) for name, (kind, shape) in block.kept.shapes.items()
    }
    first = Collection(stack.over, stack.labels, stack, sizes).part(0, 1)
    return labelled(arrays, first, block.kept)


def _pieces(tables: Any) -> tuple[list[Any], list[int]]:
    """Each chunk with tables, as it is where it is in memory, elsewhere the name of its
    task; and how many tables it has.
    """
    sizes = tables.chunks[0]
    filled = [k for k, size in enumerate(sizes) if size]
    keys = [(tables.name, k, *(0,) * (tables.ndim - 1)) for k in filled]
    known = ((tables.dask[key], key) for key in keys)
    pieces = [piece if isinstance(piece, np.ndarray) else key for piece, key in known]
    return pieces, [sizes[k] for k in filled]


def _rows(stack: Stack, sizes: list[Any], of_tasks: Sequence[int]) -> Iterator[_Rows]:
    """What is known of the tables of each task."""
    labels, zeros = stack.tables[stack.over].values, stack.structural_zeros
    for start, stop in pairwise(accumulate(of_tasks, initial=0)):
        own = slice(start, stop)
        if zeros is not None and stack.over in zeros.dims:
            yield _Rows(labels[own], sizes[own], zeros[own])
        else:
            yield _Rows(labels[own], sizes[own], zeros)


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
    """Parts that follow each other, equally many together: as many as have at most so
    many tables, if each table has so many numbers. Where all have the same size but for
    a smaller last one, so it is with what they are joined to, as Zarr wants it.
    """
    together = max(1, min(most, _NUMBERS // numbers) // max(sizes))
    starts = range(0, len(sizes), together)
    return [slice(start, min(start + together, len(sizes))) for start in starts]
