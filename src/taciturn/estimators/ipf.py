"""Iterative proportional fitting of hierarchical log-linear models."""

from collections.abc import Sequence
from itertools import combinations
from typing import Final

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.errors import EstimationError
from taciturn.estimators.formula import Terms, generating_class
from taciturn.estimators.support import find_support

__all__ = ["fit_margins"]

_TOLERANCE: Final = 1e-10
_FIRST_CYCLES: Final = 1_000
_MOST_CYCLES: Final = 10_000
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
    to each margin of the generating class in turn until all of them fit to 1e-10.

    Where zeros in the sample put the maximum on the boundary, as is common for
    interactions, the steps towards it become ever smaller. If 1,000 cycles are not
    enough, the cells that are 0 in every table with these margins are found by a linear
    program and left out from the start: the fit is then the maximum of the extended
    model, zeros included.

    Margins that fit to a hundredth of an individual are accepted in three cases: with
    known margins, which those of the sample need not agree with; where more than 5,000
    cells have no margin of 0, too many for the program; and where 10,000 cycles without
    the zeros are not enough, as the maximum is next to a boundary.

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
        wherever a margin depends on it. Where terms with known variables share others,
        of which they would then say different things, the sample is fitted first, and
        the fitted table is scaled to what is known.

    Returns
    -------
    array, shape of `counts`
        Probabilities, summing to 1.

    Raises
    ------
    EstimationError
        An empty sample, or no convergence, as where margins contradict the structural
        zeros.

    References
    ----------
    Bishop, Fienberg & Holland (1975), Discrete Multivariate Analysis, chapter 3.

    Fienberg & Rinaldo (2012), Maximum likelihood estimation in log-linear models,
    Annals of Statistics 40, on the support of the extended estimate.
    """
    if not counts.any():
        raise EstimationError("nobody is in the sample: it has no margins to fit")
    axes_of = {name: axis for axis, name in enumerate(variables)}
    kept = [tuple(axes_of[name] for name in term) for term in generating_class(terms)]
    summed = [tuple(axis for axis in range(counts.ndim) if axis not in keep) for keep in kept]
    start = fillable / fillable.sum()
    targets = [_target(counts, axes, variables, known) for axes in summed]
    if known is not None and _contradict(targets, summed):
        start = fit_margins(counts, variables, terms, fillable)
        summed = [tuple(sorted({*axes, *_unknown(variables, known)})) for axes in summed]
        targets = [_target(counts, axes, variables, known) for axes in summed]
    fitted, off = _scale(start, targets, summed, _FIRST_CYCLES, _TOLERANCE)
    accepted = max(_TOLERANCE, _ACCEPTED_DIFFERENCE / counts.sum())
    if off >= _TOLERANCE and known is None:
        margins = [counts.sum(axis=axes, keepdims=True).astype(float) for axes in summed]
        support = find_support(margins, fillable, counts)
        if support is not None:
            start = support / support.sum()
            fitted, off = _scale(start, targets, summed, _MOST_CYCLES, _TOLERANCE)
    if off >= accepted:
        fitted, off = _scale(fitted, targets, summed, _MOST_CYCLES, accepted)
    if off >= accepted:
        raise EstimationError(
            f"iterative proportional fitting did not converge in {_MOST_CYCLES} cycles (largest"
            f" difference of a margin {off:.2g}): the margins contradict the structural zeros, or"
            " each other; use fewer terms"
        )
    return fitted / fitted.sum()


def _unknown(variables: tuple[str, ...], known: xr.DataArray) -> list[int]:
    """Axes of the variables of which nothing is known."""
    return [axis for axis, name in enumerate(variables) if name not in known.dims]


def _contradict(targets: Sequence[Floats], summed: Sequence[tuple[int, ...]]) -> bool:
    """Whether two margins differ in what they say of the variables they share."""
    for one, other in combinations(range(len(targets)), 2):
        axes = tuple({*summed[one], *summed[other]})
        differences = targets[one].sum(axis=axes) - targets[other].sum(axis=axes)
        if np.abs(differences).max() > _TOLERANCE:
            return True
    return False


def _scale(
    fitted: Floats,
    targets: Sequence[Floats],
    summed: Sequence[tuple[int, ...]],
    cycles: int,
    accepted: float,
) -> tuple[Floats, float]:
    """Scale a table to all margins in turn, for so many cycles or until they fit; and
    the largest difference of a margin in the last cycle.
    """
    largest = np.inf
    for _ in range(cycles):
        largest = 0.0
        for axes, target in zip(summed, targets, strict=True):
            current = fitted.sum(axis=axes, keepdims=True)
            largest = max(largest, float(np.abs(current - target).max()))
            fitted = fitted * np.divide(
                target, current, out=np.zeros_like(target), where=current > 0
            )
        if largest < accepted:
            break
    return fitted, largest


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
