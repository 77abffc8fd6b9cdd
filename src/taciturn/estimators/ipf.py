"""Iterative proportional fitting of hierarchical log-linear models."""

from typing import Final

import numpy as np
import numpy.typing as npt

from taciturn.errors import EstimationError
from taciturn.estimators.formula import Terms, generating_class

__all__ = ["fit_margins"]

_TOLERANCE: Final = 1e-10
_MOST_CYCLES: Final = 10_000
_PATIENT_CYCLES: Final = 1_000
_ACCEPTED_DIFFERENCE: Final = 0.01  # individuals

Floats = npt.NDArray[np.float64]


def fit_margins(
    counts: npt.NDArray[np.int64], variables: tuple[str, ...], terms: Terms, fillable: npt.NDArray[np.bool_]
) -> Floats:
    """Maximum-likelihood cell probabilities of a hierarchical log-linear model.

    Starting from the same value in every cell that can be filled, the table is scaled to each margin of the
    generating class in turn until all of them fit. Where zeros in the sample put the maximum on the boundary, as is
    common for interactions, this takes ever smaller steps towards it: after 1,000 cycles margins within a hundredth of
    an individual are accepted.

    Parameters
    ----------
    counts : array, one axis per variable
        The sample.
    variables : tuple of str
        Names of the axes.
    terms : Terms
        The model; variables in no term are uniform.
    fillable : array of bool, shape of `counts`
        False at structural zeros.

    Returns
    -------
    array, shape of `counts`
        Probabilities, summing to 1.

    Raises
    ------
    EstimationError
        No convergence: the margins contradict the structural zeros.

    References
    ----------
    Bishop, Fienberg & Holland (1975), Discrete Multivariate Analysis, chapter 3.
    """
    axes_of = {name: axis for axis, name in enumerate(variables)}
    kept = [tuple(axes_of[name] for name in term) for term in generating_class(terms)]
    summed = [tuple(axis for axis in range(counts.ndim) if axis not in keep) for keep in kept]
    observed = counts / counts.sum()
    targets = [observed.sum(axis=axes, keepdims=True) for axes in summed]
    fitted: Floats = fillable / fillable.sum()
    for cycle in range(_MOST_CYCLES):
        largest = 0.0
        for axes, target in zip(summed, targets, strict=True):
            current = fitted.sum(axis=axes, keepdims=True)
            largest = max(largest, float(np.abs(current - target).max()))
            fitted = fitted * np.divide(target, current, out=np.zeros_like(target), where=current > 0)
        accepted = _TOLERANCE if cycle < _PATIENT_CYCLES else _ACCEPTED_DIFFERENCE / counts.sum()
        if largest < accepted:
            return fitted / fitted.sum()
    raise EstimationError(
        f"iterative proportional fitting did not converge in {_MOST_CYCLES} cycles (largest difference of a margin "
        f"{largest:.2g}): the sample's margins contradict its structural zeros; use fewer terms"
    )
