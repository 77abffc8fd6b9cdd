"""Which margins of a magnitude table are made: those that are named, or all."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from math import prod
from typing import Final

import xarray as xr

from taciturn.errors import ParameterError
from taciturn.tables.margins import coarser_levels, level_codes
from taciturn.validate import names_of, quoted

__all__ = ["all_margins", "named_margins"]

_MOST_MARGINS: Final = 2**10


def named_margins(
    margins: Iterable[str | Sequence[str]] | None, levels: Mapping[str, tuple[str, ...]]
) -> list[tuple[str, ...]] | None:
    """Margins by the names of variables or levels above them, in the order of the
    variables; None if all are wanted.
    """
    if margins is None:
        numbers = [2 + len(above) for above in levels.values()]
        if prod(numbers) > _MOST_MARGINS:
            raise ParameterError(
                f"{len(levels)} variables have {prod(numbers):,} margins: name those wanted"
            )
        return None
    if isinstance(margins, str) or not isinstance(margins, Iterable):
        raise ParameterError(
            f"margins must be several, such as [('area', 'sex'), 'area', ()], got {quoted(margins)}"
        )
    of = {name: dim for dim, above in levels.items() for name in (dim, *above)}
    found: dict[tuple[str, ...], None] = {}
    for margin in margins:
        names = names_of(list(margin) if isinstance(margin, tuple | list) else margin, "margins")
        if not set(names) <= set(of) or len({of[name] for name in names}) < len(names):
            or_levels = f" or levels above them {list(of)}" if len(of) > len(levels) else ""
            raise ParameterError(
                f"a margin must name variables of {list(levels)}{or_levels}, each once; got {names}"
            )
        found[tuple(sorted(names, key=lambda name: list(levels).index(of[name])))] = None
    return list(found)


def all_margins(frame: xr.DataArray) -> list[tuple[str, ...]]:
    """Each variable kept, raised to a level above it or summed over; margins of most
    variables first.
    """
    choices = [(dim, *_different_levels(frame, dim), None) for dim in map(str, frame.dims)]
    named = [tuple(name for name in names if name is not None) for names in product(*choices)]
    return sorted(named, key=len, reverse=True)


def _different_levels(frame: xr.DataArray, dim: str) -> tuple[str, ...]:
    """The levels that combine some categories, but not all; of those with the same
    groups the first. Margins of others would repeat a margin.
    """
    groups: dict[tuple[int, ...], str] = {}
    for name in coarser_levels(frame, dim):
        labels, codes = level_codes(frame, name)
        if len(labels) > 1:
            groups.setdefault(tuple(codes.tolist()), name)
    return tuple(groups.values())
