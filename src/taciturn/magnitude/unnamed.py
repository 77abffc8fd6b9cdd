"""Totals under another label than that which was named, in tables that are aggregated:
they would pass as cells, and what is suppressed be worked out from them.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.errors import TableError
from taciturn.magnitude.contradictions import Steps, placed
from taciturn.tables.spelling import seen
from taciturn.tables.totals import mentions_total, names_total
from taciturn.validate import quoted

__all__ = ["refuse_names_of_totals", "refuse_sums"]

_SHOWN: Final = 3  # different sums, which hardly come about by chance
_NEAR: Final = 100  # a sum is at least so many times what it is off by rounding


def refuse_names_of_totals(
    name: str, column: Sequence[str], categories: Sequence[str], total: str, origin: str
) -> None:
    """Raise `TableError` where a category of a variable is called as its totals are but
    for case or spaces, or, where it has none, as totals often are.
    """
    for label in categories:
        alike = seen(label).casefold() == seen(total).casefold()
        if total not in column and (alike or names_total(label)):
            otherwise = "or give that category another name"
            raise _error(name, column, label, "names a total", total, origin, otherwise)
        if alike:
            raise TableError(
                f"{name!r} in row {column.index(label) + 1} of {origin} is {quoted(label)}, and"
                f" totals are {quoted(total)}: write one as the other if they are one, or so that"
                " they differ"
            )


def refuse_sums(
    labels: Mapping[str, Sequence[str]],
    at: Mapping[int, int],
    counted: Steps,
    values: Steps,
    frame: xr.DataArray,
    total: str,
    origin: str,
) -> None:
    """Raise `TableError` at a category of a variable without totals that is one: it is
    the sum of all others wherever it stands. The rows of the cells are `at`.
    """
    whole = [placed(each, at, frame.size) for each in (np.ones_like(counted), counted, values)]
    for name, column in labels.items():
        if total in column:
            continue
        axis, beside = frame.get_axis_num(name), tuple(range(1, frame.ndim))
        given, numbers, sizes = (np.moveaxis(x.reshape(frame.shape), axis, 0) for x in whole)
        parts = (numbers > 0).sum(axis=0) - (numbers > 0)
        off = np.abs(2 * sizes - sizes.sum(axis=0))
        near = (2 * off <= parts + 1) & (_NEAR * off <= sizes)  # each is rounded by half a step
        may_be = (near | (given == 0)).all(axis=beside) & (sizes > 0).any(axis=beside)
        for place in np.flatnonzero(may_be):
            label, stands = str(frame[name].values[place]), given[place] > 0
            each, number = (np.delete(x, place, axis=0) for x in (sizes, numbers))
            if _is_shown(label, stands, sizes[place], each) and _may_contribute(
                stands, numbers[place], number
            ):
                found = "is the sum of all other categories wherever it stands"
                otherwise = "or, if it is a category, give the rows of the totals, too"
                raise _error(name, column, label, found, total, origin, otherwise)


def _is_shown(label: str, stands: npt.NDArray[np.bool_], sums: Steps, parts: Steps) -> bool:
    """Whether sums show that a category is a total: one where its name says so, or it
    stands wherever others do and there are two; otherwise several, of which all are
    different, as two categories can be equal.
    """
    number = (parts > 0).sum(axis=0)
    several = len(np.unique(sums[sums > 0])) >= _SHOWN
    everywhere = bool((stands | (number == 0)).all() and ((sums > 0) & (number > 1)).any())
    return several or everywhere or mentions_total(label)


def _may_contribute(stands: npt.NDArray[np.bool_], totals: Steps, parts: Steps) -> bool:
    """Whether so many can contribute to totals; numbers may be of weights, rounded."""
    most = parts.sum(axis=0) + (parts > 0).sum(axis=0) // 2
    return bool(((totals >= parts.max(axis=0)) & (totals <= most))[stands].all())


def _error(
    name: str, column: Sequence[str], label: str, found: str, total: str, origin: str, more: str
) -> TableError:
    said = (
        f"{name!r} in row {column.index(label) + 1} of {origin} is {quoted(label)}, which {found},"
        f" and no row of {name!r} is {quoted(total)}: name the label of totals, one for all"
        " variables,"
    )
    return TableError(said, in_python=f" with total=, {more}", at_shell=f" with --total, {more}")
