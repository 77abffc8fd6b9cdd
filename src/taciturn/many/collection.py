"""Many tables as they are given, in one form."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr

from taciturn.errors import ParameterError, TableError
from taciturn.estimators.problem import (
    Problem,
    check_names,
    checked_fillable,
    make_problem,
    problem_of,
    refuse_weighted,
)
from taciturn.many.shared_profile.layout import Layout
from taciturn.schema import MAX_COUNT, table_dims
from taciturn.tables.checks import check_table, no_counts, refuse_suppressed
from taciturn.validate import is_whole, quoted

__all__ = ["Collection", "Stack", "collected", "named_over", "stacked"]

Counts = npt.NDArray[np.int64]

TABLE = "table"
"""The dimension of tables that come one by one."""


@dataclass(frozen=True)
class Stack:
    """Tables of one shape.

    Attributes
    ----------
    tables : DataArray
        Checked, with the tables first.
    structural_zeros : DataArray of bool, optional
        Of each table, the tables first, or of all.
    wrong : dict
        What is wrong with a table, by its label; its counts are 0 here.
    """

    tables: xr.DataArray
    over: str
    structural_zeros: xr.DataArray | None
    wrong: Mapping[Hashable, TableError] = field(default_factory=dict)

    @property
    def labels(self) -> list[Hashable]:
        """Of the tables."""
        return list(self.tables.indexes[self.over].tolist())

    @cached_property
    def blank(self) -> xr.DataArray:
        """A table of the stack, with labels."""
        return self.tables[0].drop_vars(self.over)

    @property
    def sizes(self) -> dict[str, int]:
        """Number of categories of each variable of a table."""
        return {str(dim): self.tables.sizes[dim] for dim in self.tables.dims[1:]}

    @property
    def same_zeros(self) -> bool:
        """Whether all tables have the same cells that can be filled."""
        return self.structural_zeros is None or self.over not in self.structural_zeros.dims

    @property
    def layout(self) -> Layout:
        """Variables and categories, and the cells that can be filled."""
        fillable = np.ones(int(np.prod(self.tables.shape[1:])), dtype=bool)
        if self.structural_zeros is not None:
            zeros = self.structural_zeros
            if not self.same_zeros:
                raise TableError(
                    f"areas that share a profile have the same structural zeros: give them"
                    f" without {self.over!r}"
                )
            fillable = ~zeros.values.ravel()
        return Layout(self.sizes, fillable)

    @property
    def sampled(self) -> npt.NDArray[np.bool_]:
        """Which tables have a sample."""
        zeros = self.structural_zeros
        tables = self.tables if zeros is None else self.tables.where(~zeros, 0)
        found: npt.NDArray[np.bool_] = tables.any(tables.dims[1:]).values
        return found

    def part(self, numbers: npt.NDArray[np.int64]) -> "Stack":
        """Return some of the tables in this order, in memory, with common zeros."""
        own = self.tables[np.sort(numbers)].compute()
        own, wrong = _counted(own[np.searchsorted(np.sort(numbers), numbers)], self.over)
        return replace(self, tables=own, wrong=wrong)

    @property
    def counts(self) -> Counts:
        """Of the cells that can be filled, (tables, cells)."""
        whole = self.tables.values.reshape(self.tables.shape[0], -1)
        return np.ascontiguousarray(whole[:, self.layout.fillable])


@dataclass(frozen=True)
class Collection:
    """Tables with the sizes of their populations.

    Attributes
    ----------
    over : str
        The dimension of the result.
    labels : list
        One for each table, all different.
    tables : Stack or list
        Of one shape, or each of its own.
    sizes : list
        What was given as population size of each table.
    """

    over: str
    labels: list[Hashable]
    tables: Stack | list[Any]
    sizes: list[Any]

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def lazy(self) -> bool:
        """Whether the tables are in chunks of Dask."""
        return isinstance(self.tables, Stack) and self.tables.tables.chunks is not None

    def chosen(self, numbers: npt.NDArray[np.int64]) -> "Collection":
        """Return some of the tables of a stack in this order, in memory."""
        assert isinstance(self.tables, Stack)
        own = self.tables.part(numbers)
        return Collection(self.over, own.labels, own, [self.sizes[k] for k in numbers.tolist()])

    def part(self, start: int, stop: int) -> "Collection":
        """Return some of the tables."""
        tables = self.tables
        if isinstance(tables, Stack):
            zeros = tables.structural_zeros
            if zeros is not None and self.over in zeros.dims:
                zeros = zeros[start:stop]
            tables = Stack(tables.tables[start:stop], self.over, zeros, tables.wrong)
        else:
            tables = tables[start:stop]
        return Collection(self.over, self.labels[start:stop], tables, self.sizes[start:stop])

    @property
    def fine(self) -> npt.NDArray[np.bool_]:
        """Which of the tables, which have a layout in common, `problem` takes."""
        stack = self.tables
        assert isinstance(stack, Stack)
        counts = stack.tables.values.reshape(len(self), -1)
        fillable, sampled = stack.layout.fillable, counts.sum(axis=1)
        whole = [
            is_whole(size) and least <= size <= MAX_COUNT
            for size, least in zip(self.sizes, sampled.tolist(), strict=True)
        ]
        fine: npt.NDArray[np.bool_] = (sampled > 0) & whole & ~counts[:, ~fillable].any(axis=1)
        return fine & (fillable.sum() > 1)

    def problem(self, number: int) -> Problem:
        """Return what an estimator of one table is given, or raise what is wrong."""
        tables, size = self.tables, self.sizes[number]
        if not isinstance(tables, Stack):
            return make_problem(tables[number], size)
        if (wrong := tables.wrong.get(self.labels[number])) is not None:
            raise wrong
        zeros = tables.structural_zeros
        sample = tables.blank.copy(deep=False, data=tables.tables.values[number])
        if zeros is None:
            fillable = np.ones(sample.shape, dtype=bool)
        else:
            fillable = ~(zeros.values[number] if self.over in zeros.dims else zeros.values)
        return problem_of(sample, size, fillable)

    def sampled(self, number: int) -> int:
        """Return how many people are in a table that stands alone; 0 if it is none."""
        assert not isinstance(self.tables, Stack)
        try:
            return int(check_table(self.tables[number], name="sample").sum())
        except TableError:
            return 0

    def digest(self) -> str:
        """Return a hash of all tables, by which a store is recognised."""
        found, parts = sha256(), self.tables
        if isinstance(parts, Stack):
            found.update(repr(parts.wrong).encode())
            parts = [parts.tables, parts.structural_zeros]
        for part in parts:
            if isinstance(part, xr.DataArray):
                named = [(name, part.indexes[name].tolist()) for name in part.indexes]
                own = (part.name, part.dims, named) if parts is self.tables else part.dims
                found.update(repr((own, part.shape, str(part.dtype))).encode())
                found.update(np.ascontiguousarray(part.values).tobytes())
            else:  # no table, for a reason that names it
                found.update(f"{type(part).__name__} {quoted(part)}".encode())
        return found.hexdigest()


def collected(
    tables: Any, population_size: Any, over: str | None, structural_zeros: xr.DataArray | None
) -> Collection:
    """Check what `assess_many` is given as a whole; tables that come one by one are
    checked one by one.
    """
    if isinstance(tables, xr.DataArray):
        refuse_weighted(tables)
        over = named_over(over)
        stack = stacked(tables, over, structural_zeros)
        if len(stack.wrong) == len(stack.labels):
            raise next(iter(stack.wrong.values()))
        sizes = _checked_sizes(population_size, stack.labels, over)
        return Collection(over, stack.labels, stack, sizes)
    if over is not None or structural_zeros is not None:
        given = "over" if over is not None else "structural_zeros"
        raise ParameterError(
            f"{given} is for tables in one DataArray, or records with variables, got"
            f" {type(tables).__name__}"
        )
    if isinstance(tables, Mapping):
        labels, each = list(tables), list(tables.values())
    elif isinstance(tables, Iterable) and not _is_one(tables):
        each = list(tables)
        labels = list(range(len(each)))
    else:
        raise ParameterError(
            "tables must be a DataArray, a mapping of labels to tables or an iterable of tables, or"
            f" records with over and variables; got {type(tables).__name__}"
        )
    for label in labels:
        if not isinstance(label, str | int | np.integer | np.str_) or isinstance(label, bool):
            raise ParameterError(
                f"labels of tables must be text or whole numbers, got {quoted(label)}"
            )
    if not labels:
        raise ParameterError("give at least one table")
    return Collection(TABLE, labels, each, _checked_sizes(population_size, labels, TABLE))


def _is_one(tables: Any) -> bool:
    """Whether what can be iterated is no collection: text, an array, records."""
    return isinstance(tables, str | bytes) or hasattr(tables, "__array__")


def named_over(over: str | None) -> str:
    """The variable whose categories are the tables, which must be given."""
    if over is None:
        raise ParameterError(
            "over must name the variable whose categories are the tables, got None"
        )
    return over


def stacked(tables: xr.DataArray, over: str, structural_zeros: xr.DataArray | None) -> Stack:
    """Check tables of one shape, whose labels are the categories of `over`. What is
    wrong with the counts of one concerns no other.
    """
    lazy = getattr(tables, "chunks", None) is not None
    wrong: dict[Hashable, TableError] = {}
    if lazy:
        table = check_table(tables, name="tables", draws=True, values=False)
        refuse_suppressed(table, "tables")
    else:
        table, wrong = _counted(tables, over)
    if lazy and hasattr(table.data, "expr"):  # whose chunks have no names before it is computed
        raise TableError(
            "chunks of Dask's array expressions, which are experimental, cannot be taken: set"
            " array.query-planning to False before dask.array is imported",
            in_python=", by dask.config.set",
        )
    variables = table_dims(table)
    if over not in variables:
        raise ParameterError(f"over must be one of the variables {variables}, got {quoted(over)}")
    if len(variables) < 2:
        raise TableError(f"each table needs a variable besides {over!r}")
    check_names([name for name in variables if name != over])
    table = table.transpose(over, ...)
    if structural_zeros is None:
        return Stack(table, over, None, wrong)
    given: Any = structural_zeros
    of_each = isinstance(given, xr.DataArray) and over in given.dims
    like = table if of_each else table[0].drop_vars(over)
    return Stack(table, over, like.copy(data=~checked_fillable(like, given)), wrong)


def _counted(tables: Any, over: str) -> tuple[Any, dict[Hashable, TableError]]:
    """Tables with counts, 0 in those that hold anything else, and what is wrong with
    these. What is wrong besides counts is left to whoever checks the stack.
    """
    try:
        return check_table(tables, name="tables"), {}
    except TableError:
        if not isinstance(tables, xr.DataArray) or over not in tables.dims:
            raise
    tables, wrong = tables.copy(), {}
    bare = tables.drop_vars(over, errors="ignore")
    for number in _suspicious(tables.transpose(over, ...).values):
        try:
            check_table(bare.isel({over: number}), name="tables")
        except TableError as error:
            wrong[tables.indexes[over][number] if over in tables.indexes else number] = error
            tables[{over: number}] = 0
    return check_table(tables, name="tables"), wrong


def _suspicious(values: npt.NDArray[Any]) -> list[int]:
    """Numbers of the tables that may hold something else than counts."""
    if values.dtype.kind not in "iuf" or not len(values):
        return list(range(len(values)))
    rows = values.reshape(len(values), -1)
    wrong = np.any(list(no_counts(rows).values()), axis=0).any(axis=1)
    wrong |= rows.sum(axis=1, dtype=float) > MAX_COUNT
    return [int(number) for number in np.flatnonzero(wrong)]


def _checked_sizes(given: Any, labels: Sequence[Hashable], over: str) -> list[Any]:
    """The size of each table's population; those that are wrong are refused with their
    table, unless all are.
    """
    sizes = _sizes_of(given, labels, over)
    if not any(map(is_whole, sizes)):
        raise ParameterError(
            f"population_size must be whole numbers, got {quoted(sizes[0])} for {over}"
            f" {quoted(labels[0])}, and none for any other"
        )
    return sizes


def _sizes_of(given: Any, labels: Sequence[Hashable], over: str) -> list[Any]:
    """The size of each table's population, from one for all, one for each, or one by
    label.
    """
    if is_whole(given):
        if given < 1:
            raise ParameterError(f"population_size must be at least 1, got {given}")
        return [int(given)] * len(labels)
    if isinstance(given, pd.Series):
        dim = over if given.index.name is None else given.index.name
        given = xr.DataArray(given.to_numpy(), {dim: given.index.to_numpy()}, [dim])
    if isinstance(given, xr.DataArray):
        if given.dims != (over,):
            raise ParameterError(
                f"population_size must have the dimension {over!r} alone, got {given.dims}"
            )
        if over not in given.indexes:
            given = given.values
        elif given.indexes[over].is_unique:
            given = dict(zip(given.indexes[over].tolist(), given.values.tolist(), strict=True))
        else:
            twice = given.indexes[over][given.indexes[over].duplicated()][0]
            raise ParameterError(f"population_size has {over} {quoted(twice)} twice")
    if isinstance(given, Mapping):
        missing = [label for label in labels if label not in given]
        if missing:
            raise ParameterError(f"population_size has no {over} {quoted(missing[0])}")
        return [_plain(given[label]) for label in labels]
    if isinstance(given, np.ndarray) and given.ndim == 0:
        return _sizes_of(given.item(), labels, over)
    if isinstance(given, np.ndarray | Sequence) and not isinstance(given, str | bytes):
        if len(given) != len(labels):
            raise ParameterError(
                f"population_size has {len(given)} values for {len(labels)} tables"
            )
        return [_plain(value) for value in given]
    raise ParameterError(
        "population_size must be a whole number, one for each table, or a mapping or a series of"
        f" labels to them, got {quoted(given)}"
    )


def _plain(value: Any) -> Any:
    """A number as Python has it; anything else is refused with its table."""
    return int(value) if is_whole(value) else value
