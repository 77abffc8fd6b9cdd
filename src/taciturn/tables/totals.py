"""Totals among the categories of a table, which would be taken for people.

A label is suspected where it says that it is a total. It is one where its counts are
the sums of the other categories, and is refused; where only some are, also of those of
other such labels, or where nobody is in other cells, it cannot be told and is refused,
too; where none is, it is a category like others. Zeros say nothing. A label that says
more, as "Persons, total", mostly is a category: several sums have to show that it is
none.
"""

import re
from itertools import combinations
from typing import Final

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.errors import TableError
from taciturn.schema import table_dims
from taciturn.tables.labels import labels_of
from taciturn.tables.spelling import legible, seen

__all__ = ["mentions_total", "names_total", "refuse_totals"]

Booleans = npt.NDArray[np.bool_]
Integers = npt.NDArray[np.int64]

_NAMES: Final = frozenset(
    {
        *("total", "totals", "grand total", "subtotal", "sum", "all", "overall", "tot", "gesamt"),
        *("insgesamt", "zusammen", "summe", "ensemble", "totaux", "totaal", "totale", "totali"),
        *("totales", "suma", "razem", "ogółem", "celkem", "úhrnem", "spolu", "összesen", "skupaj"),
        *("ukupno", "totalt", "samtliga", "i alt", "yhteensä", "kokku", "kopā", "iš viso"),
        *("σύνολο", "toplam", "всего", "итого", "разом", "общо", "合計", "総数", "合计", "总计"),
        *("總計", "합계", "المجموع"),
        "_t",  # SDMX
    }
)
_AROUND: Final = " :;.,*()[]-–—="  # as in "Total:" or "(all)"
_EVERYBODY: Final = re.compile(
    r"(?:all|both|total)(?: usual| ethnic| age)* (?:ages|areas|categories|classes|groups"
    r"|households|individuals|people|persons|population|regions|religions|residents|sexes)"
    r"(?:: .*)?|(?:grand|sub)[- ]?totals?"
)
"""As in "All usual residents" or "All categories: Sex"; "All ages under 16" is none."""
_MENTIONED: Final = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, _NAMES))})(?!\w)")
_LONGEST: Final = 60
_SHOWN: Final = 3  # sums of two categories and more, which hardly come about by chance

_SUM: Final = "is the total of the other categories, not one of them"
_UNCLEAR: Final = (
    "says that it is a total, and some of its counts are the sums of the other categories, others"
    " are not"
)
_ALONE: Final = "says that it is a total, and nobody is in cells that are none"


def refuse_totals(table: xr.DataArray, name: str) -> None:
    """Raise `TableError` where a category is the total of the others, or may be."""
    suspected: dict[str, list[int]] = {}
    for dim in table_dims(table):
        named = [at for at, label in enumerate(labels_of(table[dim])) if names_total(label)]
        if 0 < len(named) < table.sizes[dim]:
            suspected[dim] = named
    inner = table.isel(_others(table, suspected))
    if len(suspected) > 1 and table.values.any() and not inner.values.any():  # margins alone
        raise _error(table, suspected, next(iter(suspected)), name, _ALONE)
    size = 1
    while size <= len(suspected):
        for dims in combinations(suspected, size):
            equal = _are_sums(inner, table, suspected, dims)
            if equal.any():
                raise _error(table, suspected, dims[0], name, _SUM if equal.all() else _UNCLEAR)
            if equal.size and size == 1:
                own = {dims[0]: suspected[dims[0]]}
                if _are_sums(table.isel(_others(table, own)), table, own, dims).any():
                    raise _error(table, suspected, dims[0], name, _UNCLEAR)
                suspected.pop(dims[0])  # a category
                inner = table.isel(_others(table, suspected))
                break
        else:
            size += 1
    _refuse_shown(table, name)


def _refuse_shown(table: xr.DataArray, name: str) -> None:
    """Raise `TableError` where the counts of a category that has the name of a total in
    a longer one show that it is one.
    """
    for axis, dim in enumerate(table_dims(table)):
        named = [at for at, label in enumerate(labels_of(table[dim])) if mentions_total(label)]
        if not named:
            continue
        every, filled = table.values.sum(axis=axis), (table.values != 0).sum(axis=axis)
        for at in named:
            totals = table.values.take(at, axis=axis)
            sums = (totals != 0) & (filled > 2)
            equal = totals == every - totals
            if sums.sum() >= _SHOWN and equal[totals != 0].all():
                raise _error(table, {dim: [at]}, dim, name, _SUM)


def mentions_total(label: object) -> bool:
    """Whether a label has the name of a total among its words."""
    return _MENTIONED.search(_words(label)) is not None


def names_total(label: object) -> bool:
    """Whether a label says that it is a total, and nothing else."""
    words = _words(label).strip(_AROUND)
    return words in _NAMES or _EVERYBODY.fullmatch(words) is not None


def _words(label: object) -> str:
    """A label that may name a total, as it is read; nothing of others."""
    if not isinstance(label, str) or len(label) > _LONGEST:
        return ""
    return seen(label).casefold()


def _others(table: xr.DataArray, suspected: dict[str, list[int]]) -> dict[str, Integers]:
    """Where the labels are along these variables that are not suspected."""
    return {dim: np.delete(np.arange(table.sizes[dim]), at) for dim, at in suspected.items()}


def _are_sums(
    cells: xr.DataArray, table: xr.DataArray, suspected: dict[str, list[int]], dims: tuple[str, ...]
) -> Booleans:
    """Which of the counts that are suspected to be totals over `dims`, and over nothing
    else, are the sums of the cells; of those that are not zero.
    """
    where = _others(table, suspected) | {dim: suspected[dim] for dim in dims}
    totals = table.isel(where).transpose(*cells.dims)
    axes = cells.get_axis_num(dims)
    sums = cells.values.sum(axis=axes, keepdims=True)
    equal: Booleans = (totals.values == sums)[totals.values != 0]
    return equal


def _error(
    table: xr.DataArray, suspected: dict[str, list[int]], dim: str, name: str, found: str
) -> TableError:
    label = str(table[dim].values[suspected[dim][0]])
    otherwise = "; if it is a category, give it another name"
    return TableError(
        f"{name}: {dim}={legible(label)} {found}: leave its rows out",
        in_python=f", of a data frame with rows[rows[{dim!r}] != {label!r:.80}]{otherwise}",
        at_shell=otherwise,
    )
