"""What the attacker believes before the release: expected counts, or nothing."""

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import xarray as xr
from scipy.special import gammaln

from taciturn.attack.mechanisms.likelihood import Likelihood
from taciturn.attack.system import UNLIMITED, Integers, LinearSystem
from taciturn.errors import ParameterError, TableError
from taciturn.schema import MAX_COUNT, cell_label
from taciturn.tables.checks import aligned
from taciturn.validate import quoted

__all__ = ["expected_counts", "finite_bounds", "log_poisson"]

Floats = npt.NDArray[np.float64]
_LARGEST_COUNT: Final = 2**30  # logarithms of factorials of larger ones are too coarse


def expected_counts(prior: Any, table: xr.DataArray, decimals: int) -> Floats:
    """Check a prior and return the expected count of each cell; an empty array for the
    uniform prior.
    """
    if isinstance(prior, str) and prior == "uniform":
        return np.empty(0)
    if not isinstance(prior, xr.DataArray):
        raise ParameterError(
            f"prior must be 'uniform' or a DataArray of expected counts, got {quoted(prior)}"
        )
    if decimals:
        raise ParameterError(
            "a prior of expected counts needs a release of counts, decimals=0, got"
            f" decimals={decimals}: the spread of a Poisson count would depend on the unit of a"
            " magnitude"
        )
    if not (np.issubdtype(prior.dtype, np.integer) or np.issubdtype(prior.dtype, np.floating)):
        raise TableError(f"prior must hold numbers, got the type {prior.dtype}")
    if set(prior.dims) != set(table.dims) or any(
        prior.sizes[dim] != table.sizes[dim] for dim in table.dims
    ):
        raise TableError(f"prior must have the sizes {dict(table.sizes)}, got {dict(prior.sizes)}")
    prior = aligned(prior, table, names=("prior", "the table"))
    values = prior.transpose(*table.dims).values.astype(np.float64)
    bad = np.argwhere(~(np.isfinite(values) & (values >= 0)))
    if len(bad):
        position = tuple(int(i) for i in bad[0])
        raise TableError(
            f"prior must be finite and not negative: {cell_label(table, position)} holds"
            f" {values[position]}"
        )
    return np.asarray(values.ravel(), dtype=np.float64)


def finite_bounds(
    system: LinearSystem,
    lower: Integers,
    upper: Integers,
    expected: Floats,
    likelihood: Likelihood | None,
) -> Integers:
    """Upper bounds for the sampler: where no total limits a cell, the prior and the
    mechanism say how far it practically goes.
    """
    limited = upper.copy()
    largest, reach = np.zeros_like(upper), np.inf
    if likelihood is not None:
        largest, reach = likelihood.largest_released(system), likelihood.mechanism.reach
    for column in np.flatnonzero(lower < upper).tolist():
        mean = expected[system.unknown[column]] if expected.size else None
        if mean == 0:
            raise TableError(
                f"prior must be above 0 where a cell is open: {system.unknown_label(column)}"
                " holds 0.0"
            )
        if upper[column] >= UNLIMITED:
            # Further out than this is less than exp(-40).
            peak = max(mean or 0.0, largest[column])
            by_prior = np.inf if mean is None else peak + 10 * np.sqrt(peak) + 40
            furthest = min(by_prior, peak + reach)
            if np.isinf(furthest):
                raise ParameterError(
                    f"no total limits the cell {system.unknown_label(column)}: not all of its"
                    " values can be equally likely; release a total of it, or give a prior of"
                    " expected counts"
                )
            limited[column] = min(np.ceil(furthest), MAX_COUNT)
        if mean is not None and limited[column] > _LARGEST_COUNT:
            raise ParameterError(
                "a prior of expected counts needs cells of at most 2**30, but"
                f" {system.unknown_label(column)} can hold {limited[column]:,}"
            )
    return limited


def log_poisson(expected: Floats, cell: int, true: Integers) -> Floats:
    """Logarithms of the prior of a cell, up to a constant; 0 for the uniform prior."""
    if not expected.size:
        return np.zeros(true.shape)
    return np.asarray(true * np.log(expected[cell]) - gammaln(true + 1.0), dtype=np.float64)
