"""How a sample was drawn, where it was not a simple random sample: in strata, or with
unequal weights.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.errors import ParameterError, TableError
from taciturn.schema import MAX_COUNT, cell_label, table_dims
from taciturn.tables.checks import aligned
from taciturn.validate import real_number

__all__ = ["Weighting", "check_weighting"]

_ROUNDING = 1e-6  # relative, of weights that were calibrated and written to a file

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Weighting:
    """Sampling weights, and how much the sample says.

    Attributes
    ----------
    totals : DataArray
        Sum of the weights of the sampled individuals of each cell, in the sample's
        order of variables and categories.
    effective_size : float
        Number of people who, sampled one by one, would say as much, from 1 to `n`.
    """

    totals: xr.DataArray
    effective_size: float


def check_weighting(
    sample: xr.DataArray, sampling_weights: Any, effective_size: float | None
) -> Weighting | None:
    """Weights of a checked sample; None without any.

    Raises
    ------
    TableError
        Weights that are not a table over the sample's variables, or are below the
        sample's count somewhere, or positive where nobody was sampled.
    ParameterError
        An effective size outside 1 to `n`, or without weights.
    """
    if sampling_weights is None:
        if effective_size is not None:
            raise ParameterError("effective_size is given without sampling_weights")
        return None
    totals = _checked(sample, sampling_weights)
    counts = np.asarray(sample.values, dtype=float)
    size = float(counts.sum())
    if effective_size is None:
        effective_size = size
    else:
        effective_size = real_number(effective_size, "effective_size", least=1, most=size)
    return Weighting(totals, float(effective_size))


def _checked(sample: xr.DataArray, weights: Any) -> xr.DataArray:
    if not isinstance(weights, xr.DataArray) or weights.dtype.kind not in "iuf":
        raise TableError(
            "sampling_weights must be a DataArray of numbers, the sum of the weights of the sampled"
            " individuals of each cell, as tabulate(sampling_weights=) gives it"
        )
    if set(weights.dims) != set(sample.dims):
        raise TableError(
            f"sampling_weights are over {weights.dims}, the sample is over {sample.dims}"
        )
    totals = aligned(weights, sample, names=("sampling_weights", "sample"))
    totals = totals.transpose(*table_dims(sample)).astype(float)
    values, counts = totals.values, sample.values
    for what, wrong in (
        ("must be finite numbers", ~np.isfinite(values)),
        (f"must be at most {MAX_COUNT:,}", values > MAX_COUNT),
        ("must be 0 where nobody was sampled", (counts == 0) & (values != 0)),
        (
            "must be at least 1 for each individual sampled",
            values < counts * (1 - _ROUNDING),
        ),
    ):
        if wrong.any():
            first = tuple(int(i) for i in np.argwhere(wrong)[0])
            raise TableError(
                f"sampling_weights {what}: {cell_label(sample, first)} has {values[first]:g} for"
                f" {int(counts[first])} sampled"
            )
    bare = {dim: sample[dim].values for dim in table_dims(sample)}
    return xr.DataArray(values, dims=totals.dims, coords=bare, name="sampling_weights")
