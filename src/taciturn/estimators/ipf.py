"""Iterative proportional fitting of hierarchical log-linear models."""

from typing import Final

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.errors import EstimationError
from taciturn.estimators.formula import Terms, generating_class

__all__ = ["fit_margins"]

_TOLERANCE: Final = 1e-10
_MOST_CYCLES: Final = 10_000
_PATIENT_CYCLES: Final = 1_000
_ACCEPTED_DIFFERENCE: Final = 0.01  # individuals

Floats = npt.NDArray[np.float64]


def fit_margins(
    counts: npt.NDArray[np.int64],
    variables: tuple[str, ...],
    terms: Terms,
    fillable: npt.NDArray[np.bool_],
    known: xr.DataArray | None = None,
) -> Floats:
    """Maximum-likelihood cell probabilities of a hierarchical log-linear model.

    Starting from the same value in every cell that can be filled, the table is scaled
    to each margin of the generating class in turn until all of them fit. Where zeros in
    the sample put the maximum on the boundary, as is common for interactions, the steps
    towards it become ever smaller: after 1,000 cycles, margins that fit to within a
    hundredth of an individual are accepted.

    Parameters
    ----------
    counts : array, one axis per variable
        The sample.
    variables : tuple of str
        Names of the axes.
    terms : Terms
        The model; variables that appear in no term are uniform.
    fillable : array of bool, shape of `counts`
        False at structural zeros.
    known : DataArray, optional
        The population's table over some of the variables, which replaces the sample's
        wherever a margin depends on it.

    Returns
    -------
    array, shape of `counts`
        Probabilities, summing to 1.

    Raises
    ------
    EstimationError
        An empty sample, or no convergence because the margins contradict the structural
        zeros.

    References
    ----------
    Bishop, Fienberg & Holland (1975), Discrete Multivariate Analysis, chapter 3.
    """
    if not counts.any():
        raise EstimationError("nobody is in the sample: it has no margins to fit")
    axes_of = {name: axis for axis, name in enumerate(variables)}
    kept = [tuple(axes_of[name] for name in term) for term in generating_class(terms)]
    summed = [tuple(axis for axis in range(counts.ndim) if axis not in keep) for keep in kept]
    targets = [_target(counts, axes, variables, known) for axes in summed]
    fitted: Floats = fillable / fillable.sum()
    for cycle in range(_MOST_CYCLES):
        largest = 0.0
        for axes, target in zip(summed, targets, strict=True):
            current = fitted.sum(axis=axes, keepdims=True)
            largest = max(largest, float(np.abs(current - target).max()))
            fitted = fitted * np.divide(
                target, current, out=np.zeros_like(target), where=current > 0
            )
        accepted = _TOLERANCE if cycle < _PATIENT_CYCLES else _ACCEPTED_DIFFERENCE / counts.sum()
        if largest < accepted:
            return fitted / fitted.sum()
    raise EstimationError(
        f"iterative proportional fitting did not converge in {_MOST_CYCLES} cycles (largest"
        f" difference of a margin {largest:.2g}): the sample's margins contradict its structural"
        " zeros; use fewer terms"
    )


def _target(
    counts: npt.NDArray[np.int64],
    summed: tuple[int, ...],
    variables: tuple[str, ...],
    known: xr.DataArray | None,
) -> Floats:
    """Margin of a term: the sample's, scaled to the population's margin over those of
    its variables for which that is known.
    """
    target: Floats = (counts / counts.sum()).sum(axis=summed, keepdims=True)
    if known is None:
        return target
    shared = [
        axis for axis, name in enumerate(variables) if name in known.dims and axis not in summed
    ]
    others = tuple(axis for axis in range(counts.ndim) if axis not in shared)
    of_sample = target.sum(axis=others, keepdims=True)
    elsewhere = [dim for dim in known.dims if variables.index(str(dim)) not in shared]
    of_population = (known.sum(elsewhere) / known.sum()).values.reshape(of_sample.shape)
    if target.shape == of_sample.shape:
        return np.asarray(of_population)
    scale: Floats = np.divide(
        of_population, of_sample, out=np.zeros_like(of_sample), where=of_sample > 0
    )
    return target * scale
