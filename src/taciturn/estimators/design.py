"""How a sample was drawn, where it was not a simple random sample: in strata, or with
unequal weights.
"""

from dataclasses import dataclass
from math import isclose
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.errors import ParameterError, TableError
from taciturn.schema import MAX_COUNT, cell_label, table_dims
from taciturn.tables.checks import aligned
from taciturn.tables.tabulation import concentration
from taciturn.validate import is_real, real_number

__all__ = ["Weighting", "check_weighting"]

_ROUNDING = 1e-6  # relative, of weights that were calibrated and written to a file

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Weighting:
    """Sampling weights, and how much the sample says in spite of them.

    Attributes
    ----------
    totals : DataArray
        Sum of the weights of the sampled individuals of each cell, in the sample's
        order of variables and categories.
    effective_size : float
        Size of a simple random sample that says as much, from 1 to `n`.
    """

    totals: xr.DataArray
    effective_size: float

    @property
    def shares(self) -> Floats:
        """What the weights say of the population's shares, as counts that add up to the
        effective size.
        """
        totals = np.asarray(self.totals.values, dtype=float).ravel()
        return np.asarray(self.effective_size * totals / totals.sum())

    def unsampled(self, counts: npt.NDArray[np.int64], population_size: int) -> Floats:
        """The same of the individuals that were not sampled: those whom the sampled
        stand for besides themselves.
        """
        totals = np.asarray(self.totals.values, dtype=float).ravel()
        others = np.maximum(totals * (population_size / totals.sum()) - counts, 0.0)
        if not others.any():  # everybody was sampled
            return self.shares
        return np.asarray(self.effective_size * others / others.sum())


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
    name, kept = "effective_size", sampling_weights.attrs
    # As tabulated, unless it is a part of that table.
    if effective_size is None and kept.get("individuals") == size:
        name, effective_size = "the effective_size of sampling_weights", kept.get("effective_size")
        then, now = kept.get("concentration"), concentration(totals)
        known = is_real(effective_size) and is_real(then)
        if known and not isclose(then, now, rel_tol=_ROUNDING):
            raise ParameterError(
                "sampling_weights are not those that were tabulated, so that their effective_size,"
                f" {effective_size:.4g}, is no longer theirs: give effective_size"
            )
    if effective_size is None:
        occupied = counts > 0
        weights = totals.values[occupied]
        effective_size = min(weights.sum() ** 2 / (weights**2 / counts[occupied]).sum(), size)
    else:
        effective_size = real_number(effective_size, name, least=1, most=size)
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
