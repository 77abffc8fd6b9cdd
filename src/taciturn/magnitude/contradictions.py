"""Refuses tables of cells and totals that cannot be as they are said to be: what is
wrong in them could make a cell look safe.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.errors import ParameterError, TableError
from taciturn.magnitude.cells import cells_of
from taciturn.tables.checks import aligned
from taciturn.tables.margins import following, hierarchies, margin_of
from taciturn.tables.steps import in_steps, is_between_steps
from taciturn.validate import quoted

__all__ = [
    "Margins",
    "Steps",
    "placed",
    "refuse_contradictions",
    "refuse_other_margins",
    "refuse_other_totals",
    "refuse_other_waivers",
]

type Steps = npt.NDArray[np.int64]
type Margins = dict[tuple[str, ...], dict[int, int]]
"""For each margin the row of each of its cells."""


def refuse_contradictions(
    counted: Steps, amounts: Sequence[Steps], names: Sequence[str], origin: str
) -> None:
    """Raise `TableError` where a cell cannot be as it is said to be."""
    totals, sizes = amounts[0], np.array([*amounts[1:]]).reshape(-1, len(counted))
    kept = np.minimum(counted, len(sizes))
    sums = sizes.sum(axis=0)
    others = np.maximum(counted - len(sizes), 1)
    least = sizes[-1] if len(sizes) else np.zeros_like(totals)
    problems = {
        f"a total of {names[0]!r} and nobody who contributes": (counted == 0) & (totals > 0),
        f"largest contributions that do not descend, {names[1:]}": (np.diff(sizes, axis=0) > 0).any(
            axis=0
        ),
        "largest contributions that add up to more than the total": sums > totals,
        "more largest contributions than contribute": (sizes > 0).sum(axis=0) > kept,
        "largest contributions of all who contribute that are less than the total": (
            (len(sizes) >= counted) & (sums < totals) & (len(sizes) > 0)
        ),
        # An empty one is 0, which would make a cell look safe.
        f"no contribution in {names[-1]!r} as large as those that must follow": (
            (len(sizes) > 0) & (counted > len(sizes)) & (-(-(totals - sums) // others) > least)
        ),
    }
    _refuse(problems, origin)


def refuse_other_waivers(
    counted: Steps,
    amounts: Sequence[Steps],
    waived: Sequence[Steps],
    blank: npt.NDArray[np.bool_],
    names: Sequence[str],
    origin: str,
) -> None:
    """Raise `TableError` where waivers cannot be as they are said to be: how many there
    are, and the largest contribution without one, which is `blank` in some rows.
    """
    totals, sizes = amounts[0], amounts[1:]
    number, unwaived = waived
    ranks = np.stack([*sizes, np.zeros_like(number)])
    least = _least_unwaived(counted, totals, ranks, number)
    among = (ranks[:-1] == unwaived).any(axis=0)
    beyond = np.where(counted > len(sizes), totals - ranks.sum(axis=0), 0)  # of the others
    inside = unwaived <= np.minimum(beyond, ranks[:-1].min(axis=0) if sizes else beyond)
    some = number < counted
    problems = {
        f"more waivers in {names[0]!r} than contribute": number > counted,
        f"nothing in {names[1]!r}, and not all have waived": some & blank,
        f"a contribution in {names[1]!r}, and all have waived": ~some & (unwaived > 0),
        f"no contribution in {names[1]!r} as large as the waivers leave": some & (unwaived < least),
        f"a contribution in {names[1]!r} that is none of the largest": some & ~(among | inside),
    }
    _refuse(problems, origin)


def _refuse(problems: Mapping[str, npt.NDArray[np.bool_]], origin: str) -> None:
    """Raise `TableError` at the first row that has a problem."""
    for what, bad in problems.items():
        for row in _first(bad):
            raise TableError(f"row {row + 1} of {origin} has {what}")


def _least_unwaived(counted: Steps, totals: Steps, ranks: Steps, number: Steps) -> Steps:
    """What the largest contribution without a waiver is at least: those of so many may
    be the largest of all, and those who follow share what is left.
    """
    kept = len(ranks) - 1
    least: Steps = ranks[np.minimum(number, kept), np.arange(len(number))]
    more = np.maximum(number - kept, 0)  # waivers of those who are none of the largest
    others = np.maximum(counted - kept - more, 1)
    left = totals - ranks.sum(axis=0) - more * ranks[max(kept - 1, 0)]
    share = np.where((number >= kept) & (kept > 0), -(-left // others), 0)
    return np.maximum(least, share)


def refuse_other_totals(
    rows: Margins,
    counted: Steps,
    total: Steps,
    largest: Mapping[str, Steps],
    waivers: Mapping[str, Steps],
    frame: xr.DataArray,
    origin: str,
    decimals: int,
) -> None:
    """Raise `TableError` at a total that is not the sum of the cells of the table, has
    fewer contributors than a part of it or more than all, a number of waivers that
    cannot be, or largest contributions that are smaller, of all or without a waiver, or
    larger than those of its parts allow: whoever contributes to a part contributes as
    much to the total, and to the total what he contributes to all parts.
    """
    step = 10.0**decimals
    grouped = {margin: margin_of(frame, margin) for margin in rows}
    open_ = (counted - waived for waived in waivers.values())
    columns = (counted, total, *largest.values(), *open_)
    given = {
        margin: [placed(steps, at, grouped[margin][0].size) for steps in columns]
        for margin, at in rows.items()
    }
    # One cell of the table stands for each part.
    parts = {margin: np.unique(group, return_index=True) for margin, (_, group) in grouped.items()}
    follows = following(frame)
    for margin, finer in ((one, other) for one in rows for other in rows if one != other):
        if not follows(finer, margin):
            continue
        template, group = grouped[margin]
        where, (part, cell_of_part) = partial(_where, template), parts[finer]
        numbers, values, *others = (
            _Beside.of(totals, held[part], group[cell_of_part])
            for totals, held in zip(given[margin], given[finer], strict=True)
        )
        for cell in _first(values.totals != values.sums):
            raise TableError(
                f"{origin}: the total of {where(cell)} must be the sum of its parts,"
                f" {values.sums[cell] / step:.15g}: it is {values.totals[cell] / step:.15g}"
            )
        # Numbers may be sums of weights that were rounded; with these nobody waives.
        most = numbers.sums + (0 if waivers else numbers.parts // 2)
        for cell in _first((numbers.totals < numbers.most) | (numbers.totals > most)):
            raise TableError(
                f"{origin}: to {where(cell)} must contribute from {numbers.most[cell]} to"
                f" {most[cell]}, as to its parts: it has {numbers.totals[cell]}"
            )
        for name, unwaived in zip(waivers, others[len(largest) :], strict=True):
            _refuse_other_waivers_of_totals(numbers, unwaived, name, where, origin)
        sizes = dict(zip(largest, others, strict=False))
        ranks = len(largest) - len(waivers)  # after them the largest without a waiver
        _refuse_other_sizes(sizes, ranks, where, origin, step)


def _refuse_other_sizes(
    sizes: Mapping[str, "_Beside"],
    ranks: int,
    where: Callable[[int], str],
    origin: str,
    step: float,
) -> None:
    """Raise `TableError` at a total with a contribution that is smaller than in a part,
    or of which the largest are together more than as many of each part.
    """
    for name, size in sizes.items():
        for cell in _first(size.totals < size.most):
            raise TableError(
                f"{origin}: {name!r} of {where(cell)} must be at least that of its parts,"
                f" {size.most[cell] / step:.15g}: it is {size.totals[cell] / step:.15g}"
            )
    ranked = [*sizes.values()][:ranks]
    together = np.cumsum([size.totals for size in ranked], axis=0)
    allowed = np.cumsum([size.sums for size in ranked], axis=0)
    for name, held, most in zip(sizes, together, allowed, strict=False):
        for cell in _first(held > most):
            raise TableError(
                f"{origin}: the largest contributions to {where(cell)} up to {name!r} must be"
                f" together at most those to its parts, {most[cell] / step:.15g}: they are"
                f" {held[cell] / step:.15g}"
            )


def _refuse_other_waivers_of_totals(
    numbers: "_Beside", unwaived: "_Beside", name: str, where: Callable[[int], str], origin: str
) -> None:
    """Raise `TableError` at a total of which more or fewer have no waiver than of its
    parts: whoever has none in a part has none in the total, and whoever has one in the
    total has one in each part.
    """
    both = numbers.sums - numbers.totals  # so often does somebody contribute once more
    least = np.maximum(unwaived.most, unwaived.sums - both)
    most = np.minimum(unwaived.sums, numbers.totals)
    for cell in _first((unwaived.totals < least) | (unwaived.totals > most)):
        raise TableError(
            f"{origin}: of {where(cell)} from {least[cell]} to {most[cell]} must have no waiver in"
            f" {name!r}, as of its parts: {unwaived.totals[cell]} have none"
        )


def refuse_other_margins(tables: Any) -> None:
    """Raise `TableError` unless magnitude tables are margins of the first, which is
    that over all variables: their totals are the sums of its cells.
    """
    if not isinstance(tables, Mapping) or not tables:
        raise ParameterError(
            "tables must be a mapping of margins to what read_margins or tabulate_margins give,"
            f" got {quoted(tables)}"
        )
    for names, table in tables.items():
        cells_of(table)
        if set(names) != set(table["total"].dims):
            raise TableError(f"the table of {names} has the dimensions {table['total'].dims}")
    whole, first = next(iter(tables.items()))
    quantity, decimals = first.attrs.get("value"), int(first.attrs["decimals"])
    known = {*whole, *chain.from_iterable(hierarchies(first["total"]).values())}
    for names, table in tables.items():
        if not set(names) <= known:
            raise TableError(
                f"the table over all variables must come first: {names} is no margin of {whole}"
            )
        own = table.attrs.get("value"), int(table.attrs["decimals"])
        if own != (quantity, decimals):
            raise TableError(
                f"a table and its margins must be of one quantity: {whole} is of {quantity!r} with"
                f" {decimals} decimals, {names} of {own[0]!r} with {own[1]}"
            )
    steps = in_steps(first["total"], decimals, name=f"the table of {whole}", signed=True)
    for names, table in tables.items():
        _refuse_other_sums(steps, names, table["total"], decimals)


def _refuse_other_sums(
    cells: xr.DataArray, names: tuple[str, ...], totals: xr.DataArray, decimals: int
) -> None:
    """Raise `TableError` at a total of a margin that is not the sum of its cells."""
    step = 10.0**decimals
    whole, (sums, _) = tuple(map(str, cells.dims)), margin_of(cells, names)
    ordered = aligned(totals, sums, names=(f"the table of {names}", f"that of {whole}"))
    given = ordered.transpose(*names).values
    # Of a large total the product with the step is no whole number of steps.
    off = is_between_steps(given, decimals) | (np.rint(given * step) != sums.values)
    for cell in _first(off.ravel()):
        raise TableError(
            f"the total of {_where(sums, cell)} in the table of {names} must be the sum of the"
            f" cells of {whole}, {sums.values.flat[cell] / step:.15g}: it is"
            f" {given.flat[cell]:.15g}"
        )


def placed(steps: Steps, at: Mapping[int, int], number: int) -> Steps:
    """The values of each cell of a margin; one without a row is empty."""
    cells = np.zeros(number, dtype=np.int64)
    cells[list(at)] = steps[list(at.values())]
    return cells


class _Beside(NamedTuple):
    """Totals as they are given, and the sum, the largest and the number of the parts
    of each.
    """

    totals: Steps
    sums: Steps
    most: Steps
    parts: Steps

    @classmethod
    def of(cls, totals: Steps, parts: Steps, total: Steps) -> "_Beside":
        """From the values of the parts, and the number of the total of each."""
        found = cls(totals, *np.zeros((3, len(totals)), dtype=np.int64))
        np.add.at(found.sums, total, parts)
        np.maximum.at(found.most, total, parts)
        np.add.at(found.parts, total, parts > 0)
        return found


def _first(bad: npt.NDArray[np.bool_]) -> list[int]:
    """The first cell that is bad, if any is."""
    return [int(np.argmax(bad))] if bad.any() else []


def _where(margin: xr.DataArray, cell: int) -> str:
    index = np.unravel_index(cell, margin.shape) if margin.dims else ()
    named = (f"{name}={margin[name].values[i]}" for name, i in zip(margin.dims, index, strict=True))
    return ", ".join(named) or "the whole table"
