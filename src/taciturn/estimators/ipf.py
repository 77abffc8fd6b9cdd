"""Iterative proportional fitting of hierarchical log-linear models."""

from collections.abc import Sequence
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
    known margins that no term has together; where more than 5,000 cells have no margin
    of 0, too many for the program; and where 10,000 cycles without the zeros are not
    enough, as the maximum is next to a boundary.

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
        The population's table over some of the variables, in each of whose cells
        people were as likely to be sampled: the model is fitted to the sample with
        these variables together as one more term, and scaled to what is known. If a
        term of the model has them all, that is the maximum; if not, the margins of
        that table are those to which the model is fitted, and it has of what is known
        what its terms have.

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
    if known is not None:
        return _fit_known(counts, variables, terms, fillable, known)
    summed = _summed(variables, generating_class(terms))
    targets = [_margin(counts / counts.sum(), axes) for axes in summed]
    start = fillable / fillable.sum()
    fitted, off = _scale(start, targets, summed, _FIRST_CYCLES, _TOLERANCE)
    if off >= _TOLERANCE:
        margins = [counts.sum(axis=axes, keepdims=True).astype(float) for axes in summed]
        support = find_support(margins, fillable, counts)
        if support is not None:
            start = support / support.sum()
            fitted, off = _scale(start, targets, summed, _MOST_CYCLES, _TOLERANCE)
    return _accepted(fitted, off, targets, summed, int(counts.sum()))


def _accepted(
    fitted: Floats,
    off: float,
    targets: Sequence[Floats],
    summed: Sequence[tuple[int, ...]],
    sample_size: int,
) -> Floats:
    """Probabilities from a table whose margins are so far off, scaled further until
    they fit to a hundredth of an individual.
    """
    accepted = max(_TOLERANCE, _ACCEPTED_DIFFERENCE / sample_size)
    if off >= accepted:
        fitted, off = _scale(fitted, targets, summed, _MOST_CYCLES, accepted)
    if off >= accepted:
        raise EstimationError(
            f"iterative proportional fitting did not converge in {_MOST_CYCLES} cycles (largest"
            f" difference of a margin {off:.2g}): the margins contradict the structural zeros, or"
            " each other; use fewer terms"
        )
    return fitted / fitted.sum()


def _fit_known(
    counts: npt.NDArray[np.int64],
    variables: tuple[str, ...],
    terms: Terms,
    fillable: npt.NDArray[np.bool_],
    known: xr.DataArray,
) -> Floats:
    """The same where the population's table over some of the variables is known."""
    names = tuple(map(str, known.dims))
    unknown = tuple(axis for axis, name in enumerate(variables) if name not in names)
    fitted = fit_margins(counts, variables, (*terms, names), fillable)
    of_sample = fitted.sum(axis=unknown, keepdims=True)
    shares = (known / known.sum()).values.reshape(of_sample.shape)
    fitted = fitted * _ratio(shares, of_sample)
    classes = generating_class(terms)
    whole = not (shares[of_sample == 0] > 0).any()
    if whole and any(set(names) <= set(term) for term in classes):
        return fitted
    summed, targets = _summed(variables, classes), []
    for axes in summed:
        target, rest = _margin(fitted / fitted.sum(), axes), tuple({*axes, *unknown})
        # The same, unless nobody was sampled somewhere in what is known
        of_target, of_known = _margin(target, rest), _margin(shares, rest)
        alike = of_known.shape == target.shape
        targets.append(of_known if alike else target * _ratio(of_known, of_target))
    start = fillable / fillable.sum()
    fitted, off = _scale(start, targets, summed, _FIRST_CYCLES, _TOLERANCE)
    return _accepted(fitted, off, targets, summed, int(counts.sum()))


def _summed(variables: tuple[str, ...], classes: Terms) -> list[tuple[int, ...]]:
    """Axes that the margin of each term sums over."""
    return [
        tuple(axis for axis, name in enumerate(variables) if name not in term) for term in classes
    ]


def _margin(shares: Floats, axes: tuple[int, ...]) -> Floats:
    """Sums over axes, which stay as of one category."""
    return np.asarray(shares.sum(axis=axes, keepdims=True))


def _ratio(target: Floats, current: Floats) -> Floats:
    """What to multiply a margin by, 0 where it is empty."""
    return np.divide(target, current, out=np.zeros_like(target), where=current > 0)


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
            current = _margin(fitted, axes)
            largest = max(largest, float(np.abs(current - target).max()))
            fitted = fitted * _ratio(target, current)
        if largest < accepted:
            break
    return fitted, largest
