"""Totals among the categories of a table, which would be taken for people.

A label is suspected where it says that it is a total. It is one where its counts are
the sums of the other categories, and is refused; where only some are, it cannot be told
and is refused, too; where none is, it is a category like others. Zeros say nothing.
"""

from itertools import combinations
from typing import Final

import numpy as np
import xarray as xr

from taciturn.errors import TableError
from taciturn.schema import table_dims
from taciturn.tables.labels import labels_of
from taciturn.tables.spelling import legible, seen

__all__ = ["refuse_totals"]

_NAMES: Final = frozenset(
    {
        *("total", "totals", "grand total", "subtotal", "sum", "all", "overall", "tot", "gesamt"),
        *("insgesamt", "zusammen", "summe", "ensemble", "totaux", "totaal", "totale", "totali"),
        *("totales", "suma", "razem", "ogółem", "celkem", "úhrnem", "spolu", "összesen", "skupaj"),
        *("ukupno", "totalt", "samtliga", "i alt", "yhteensä", "kokku", "kopā", "iš viso"),
        *("σύνολο", "toplam", "всего", "итого", "разом", "общо"),
        "_t",  # SDMX
    }
)


def refuse_totals(table: xr.DataArray, name: str) -> None:
    """Raise `TableError` where a category is the total of the others, or may be."""
    suspected: dict[str, list[int]] = {}
    for dim in table_dims(table):
        named = [at for at, label in enumerate(labels_of(table[dim])) if _names_total(label)]
        if 0 < len(named) < table.sizes[dim]:
            suspected[dim] = named
    size = 1
    while size <= len(suspected):
        for dims in combinations(suspected, size):
            equal = _are_sums(table, suspected, dims)
            if equal.any():
                raise _error(table, suspected, dims, name, certain=bool(equal.all()))
            if equal.size and size == 1:  # a category
                suspected.pop(dims[0])
                break
        else:
            size += 1


def _names_total(label: object) -> bool:
    return isinstance(label, str) and len(label) < 20 and seen(label).casefold() in _NAMES


def _are_sums(
    table: xr.DataArray, suspected: dict[str, list[int]], dims: tuple[str, ...]
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which of the counts that are suspected to be totals over `dims`, and over nothing
    else, are the sums; of those that are not zero.
    """
    others = {
        dim: np.delete(np.arange(table.sizes[dim]), named) for dim, named in suspected.items()
    }
    cells = table.isel(others)
    totals = table.isel(others | {dim: suspected[dim] for dim in dims}).transpose(*cells.dims)
    axes = cells.get_axis_num(dims)
    sums = cells.values.sum(axis=axes, keepdims=True)
    filled = totals.values != 0
    equal: np.ndarray[tuple[int], np.dtype[np.bool_]] = (totals.values == sums)[filled]
    return equal


def _error(
    table: xr.DataArray,
    suspected: dict[str, list[int]],
    dims: tuple[str, ...],
    name: str,
    *,
    certain: bool,
) -> TableError:
    dim = dims[0]
    label = str(table[dim].values[suspected[dim][0]])
    found = (
        f"{name}: {dim}={legible(label)} is the total of the other categories, not one of them"
        if certain
        else f"{name}: {dim}={legible(label)} says that it is a total, and some of its counts are"
        " the sums of the other categories, others are not"
    )
    otherwise = "; if it is a category, give it another name"
    return TableError(
        f"{found}: leave its rows out",
        in_python=f", of a data frame with rows[rows[{dim!r}] != {label!r:.80}]{otherwise}",
        at_shell=otherwise,
    )
