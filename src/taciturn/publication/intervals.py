"""Intervals of the cells of a release in a file, held against what is published."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.attack.bounds.of_release import attacker_bounds
from taciturn.attack.releases.base import Release
from taciturn.errors import TableError
from taciturn.schema import SIDES
from taciturn.tables.values import is_missing, signed_steps

__all__ = ["refuse_telling_intervals"]


def refuse_telling_intervals(
    release: Release,
    totals: xr.DataArray,
    hidden: xr.DataArray,
    rows: npt.NDArray[np.int64],
    columns: Sequence[Sequence[Any]],
    decimals: int,
    place: Callable[[int], str],
) -> None:
    """Raise `TableError` where the intervals of the cells of a margin, in steps, of
    which the true mask tells the suppressed ones, say more than everybody can work out,
    or leave out the value of a published one.

    Each cell has its row in the columns of lower and of upper ends. Wider ones are not
    judged, although they may be chosen so that they tell something.
    """
    names = tuple(map(str, hidden.dims))
    bounds = attacker_bounds(release, margin=names, cells=hidden, progressbar=False)
    sides = [bounds[side].transpose(*names).values.ravel() for side in SIDES]
    for cell, is_hidden in enumerate(hidden.values.ravel().tolist()):
        row = int(rows[cell])
        lower, upper = (_end(column[row], decimals, place(row)) for column in columns)
        if not is_hidden:
            value = totals.values.ravel()[cell] / 10.0**decimals
            if (lower is not None and lower > value) or (upper is not None and upper < value):
                raise TableError(
                    f"{place(row)}: its interval leaves out {value:.15g}, which is published"
                )
            continue
        least, most = (float(side[cell]) for side in sides)
        if (min(0.0, least) if lower is None else lower) > least or (
            most if upper is None else upper
        ) < most:
            raise TableError(
                f"{place(row)}: its interval is narrower than {least:.15g} to {most:.15g}, which is"
                " what the published cells tell of it, and so may give its value away"
            )


def _end(raw: Any, decimals: int, where: str) -> float | None:
    """An end of an interval; None where it is open."""
    if is_missing(raw) or str(raw).strip() == "":
        return None
    steps = signed_steps(raw, decimals)
    if steps is None:
        raise TableError(
            f"{where}: an end of its interval must be a number with at most {decimals}"
            f" decimals, or nothing where it is open: it is {str(raw)!r:.60}"
        )
    return steps / 10.0**decimals
