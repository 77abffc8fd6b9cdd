"""Around the modes of the posterior of the mixed Poisson model, given the parameters of
the departures, the concentrations of margins and the scales of interactions.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from taciturn.estimators.mixed_poisson.density import factor_information
from taciturn.estimators.mixed_poisson.kernels import solve_factored
from taciturn.estimators.mixed_poisson.points import Bends, Points
from taciturn.estimators.mixed_poisson.target import Target

__all__ = ["NEAR", "ROUGH", "log_scale", "roots_of", "step_of", "usual_exponents"]

NEAR: Final = 1e-3
"""A step that ends Newton's method, after which a mode is far nearer,"""
ROUGH: Final = 0.03
"""and one that ends it while the grid is not known."""
_EXPONENT: Final = 0.2  # of powers of rates and intensities, before it is known better

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


def roots_of(bends: Bends) -> Floats:
    """Cholesky factors of the information about effects, whatever the intensities."""
    roots = np.empty_like(bends.effects)
    factor_information(tuple(vars(bends).values()), roots)
    return roots


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
