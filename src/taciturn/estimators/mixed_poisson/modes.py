"""Where the posterior of the mixed Poisson model is highest, given the parameters of
the departures, the concentrations of margins and the scales of interactions, by
Newton's method.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from taciturn.estimators.mixed_poisson.kernels import solve_factored
from taciturn.estimators.mixed_poisson.points import Bends, Points
from taciturn.estimators.mixed_poisson.target import Target

__all__ = ["NEAR", "ROUGH", "log_scale", "modes", "roots_of", "step_of", "usual_exponents"]

NEAR: Final = 1e-3
"""A step that ends it, after which it is far nearer,"""
ROUGH: Final = 0.03
"""and one that ends it while the grid is not known."""
_EXPONENT: Final = 0.2  # of powers of rates and intensities, before it is known better
_STEPS: Final = 30  # at most
_LEAST: Final = 0.2  # information in any direction

Floats = npt.NDArray[np.float64]


def log_scale(bends: Bends, roots: Floats) -> Floats:
    """Logarithm of the square root of the determinant of the information."""
    own = np.log(np.diagonal(roots, axis1=1, axis2=2)).sum(axis=1)
    return np.asarray(own + 0.5 * np.log(bends.intensities).sum(axis=1))


def usual_exponents(target: Target, points: Points) -> Floats:
    """Of powers of intensities and rates, and of exponentials of coordinates, of which
    the density is largest, before they are known better; shape (points, strata +
    effects).
    """
    found = np.full(points.logs.shape, _EXPONENT)
    for group in target.effects.groups:
        if group.normal:
            found[:, len(target.strata.kept) :][:, group.own] = 0.0
    return found


def modes(
    target: Target, best: Points, exponents: Floats, near: float
) -> tuple[Points, Bends, Floats]:
    """Where powers of rates and intensities have the largest density, and, less than a
    last step from there, how it bends and roots of the information about the effects.
    """
    moving = np.arange(len(best.logs))
    best, found = best.at(moving), target.bends(best)
    bends = found
    for steps in range(1, _STEPS + 1):
        step = step_of(bends, roots_of(bends), bends.slopes - exponents[moving])
        best.logs[moving] += step
        best.sums[moving] = bends.sums
        moving = moving[np.abs(step).max(axis=1) > near]
        if len(moving) == 0 or steps == _STEPS:
            break
        bends = target.bends(best.at(moving))
        found.put(moving, bends)
    return best, found, roots_of(found)


def roots_of(bends: Bends) -> Floats:
    """Cholesky factors of the information about effects, whatever the intensities."""
    carried = bends.between / bends.intensities[:, :, None]
    information = bends.effects - np.einsum("rsj,rsk->rjk", carried, bends.between)
    try:
        return np.linalg.cholesky(information)
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(information)
        values = np.maximum(values, _LEAST)
        return np.linalg.cholesky((vectors * values[:, None, :]) @ vectors.transpose(0, 2, 1))


def step_of(bends: Bends, roots: Floats, slopes: Floats) -> Floats:
    """A step of Newton's method."""
    strata = bends.intensities.shape[1]
    ratio = slopes[:, :strata] / bends.intensities
    rest = slopes[:, strata:] - np.einsum("rs,rsj->rj", ratio, bends.between)
    effects = np.empty_like(rest)
    solve_factored(roots, rest, effects)
    np.clip(effects, -1, 1, out=effects)
    carried = np.einsum("rsj,rj->rs", bends.between, effects) / bends.intensities
    return np.concatenate([np.clip(ratio - carried, -1, 1), effects], axis=1)
