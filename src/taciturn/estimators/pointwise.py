"""The leave-one-out terms of a fit: one for each occupied cell, or one for each
individual.
"""

from typing import Final

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.estimators.problem import Problem
from taciturn.estimators.settings import SamplerSettings
from taciturn.schema import occupied_cells

__all__ = ["by_individual", "fits_by_cell", "fits_by_individual", "labelled_terms"]

_BY_INDIVIDUAL_LIMIT: Final = 10_000_000
"""Values kept with one column per individual: 80 MB."""
_BY_CELL_LIMIT: Final = 50_000_000
"""Values kept, or computed, with one column per occupied cell: 400 MB."""


def fits_by_cell(rows: int, problem: Problem) -> bool:
    """Whether `rows` rows with one column per occupied cell are few enough."""
    return rows * len(problem.occupied) <= _BY_CELL_LIMIT


def labelled_terms(
    terms: npt.NDArray[np.float64], problem: Problem, settings: SamplerSettings
) -> xr.DataArray:
    """Terms labelled by chain, draw and occupied cell; repeated for all draws if they
    do not depend on a parameter.
    """
    whole = (settings.chains, settings.draws, len(problem.occupied))
    coords = {
        "chain": np.arange(settings.chains),
        "draw": np.arange(settings.draws),
        **occupied_cells(problem.sample),
    }
    dims = ("chain", "draw", "occupied_cell")
    values = terms if terms.shape == whole else np.broadcast_to(terms, whole).copy()
    return xr.DataArray(values, dims=dims, coords=coords)


def fits_by_individual(terms: xr.Dataset) -> bool:
    """Whether there are draws, and few enough for one column per individual."""
    if "draw" not in terms.dims:
        return False
    values = terms.sizes["chain"] * terms.sizes["draw"] * int(terms["individuals"].sum())
    return values <= _BY_INDIVIDUAL_LIMIT


def by_individual(terms: xr.Dataset) -> xr.Dataset:
    """Repeat the terms of each cell for all its individuals, as ArviZ expects."""
    counts = terms["individuals"].values
    bare = terms.drop_vars([name for name in terms.coords if name not in ("chain", "draw")])
    each = np.repeat(np.arange(len(counts)), counts)
    return bare.isel(occupied_cell=each).rename_dims(occupied_cell="individual")
