"""What is to be borne in mind of a fit: of the estimators that made it, of sampling
weights, and of cells that may be impossible.
"""

from collections.abc import Iterable
from functools import reduce
from math import log
from typing import Final

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.estimators.base import Estimator
from taciturn.estimators.mixed_poisson import MixedPoisson
from taciturn.estimators.pool import LinearPool
from taciturn.fits.mixtures import is_stack, members_of, turns_of_members
from taciturn.fits.parts import Known
from taciturn.fits.recorded import recorded_estimator
from taciturn.schema import cell_label
from taciturn.tables.spelling import legible

__all__ = ["cautions_of"]

_WEIGHTED: Final = (
    "With sampling weights intervals and checks are approximate: at which rates cells were sampled"
    " is estimated, and taken as known."
)
_TOGETHER: Final = (
    "An effective size is rough: R2 is too low where people who were sampled together are alike in"
    " some of the table's variables alone."
)
_WEIGHTED_LARGE: Final = (
    "With weights intervals of tables of more than five variables were hardly tried: of three with"
    " eight, R2 of one was outside."
)
_OTHER: Final = 2.0  # times the population, or a part of it, that weights add up to
_RELATIVE: Final = 0.01
_CONTRADICTED: Final = 1.5  # as many people as weights say there are, and they are wrong
_ZERO_INFLATED: Final = (
    "Of a model with zero_inflated=True R1 and R2 are often too high where somebody can be in every"
    " cell."
)
_MOST_VARIABLES: Final = 5  # with more the default without weights is another model
_MANY: Final = 5  # people, of whom nobody is in less than one cell of a hundred


def cautions_of(fit: xr.DataTree, known: Known, *, quoting: bool) -> tuple[str, ...]:
    """What is to be borne in mind of a fit, whose estimator was given what is known;
    without what the sample shows, unless it may be quoted.
    """
    if known.is_census:
        return ()
    made_by = [recorded_estimator(own) for own in (fit, *_members_with_draws(fit))]
    found = [own.caution for own in made_by if own is not None and own.caution]
    found += _of_weights(known)
    found += _of_contradicted(known) if quoting else []
    if any(map(_fits_zeros, made_by)):
        found.append(_ZERO_INFLATED)
    elif quoting and not any(map(_fits_zeros, _pooled(made_by))):
        found += _of_empty_cells(known)
    return tuple(dict.fromkeys(found))


def _members_with_draws(fit: xr.DataTree) -> list[xr.DataTree]:
    """Members of a stack that made some of its draws."""
    if not is_stack(fit):
        return []
    made = np.unique(turns_of_members(fit))
    return [own.fit for k, own in enumerate(members_of(fit).values()) if k in made]


def _pooled(estimators: Iterable[Estimator | None]) -> list[Estimator]:
    """Members of the pools among them."""
    pools = (own for own in estimators if isinstance(own, LinearPool))
    return [member for pool in pools for member in pool.members.values()]


def _fits_zeros(estimator: Estimator | None) -> bool:
    """Whether it fits in how many cells nobody can be."""
    return isinstance(estimator, MixedPoisson) and estimator.zero_inflated


def _of_weights(known: Known) -> list[str]:
    if known.sampling_weights is None:
        return []
    more = {_WEIGHTED_LARGE: known.sample.ndim > _MOST_VARIABLES, _TOGETHER: known.together}
    return [_WEIGHTED, *(caution for caution, holds in more.items() if holds)]


def _of_contradicted(known: Known) -> list[str]:
    """Whether the weights leave fewer people in some cells than were sampled there, or
    are those of another population altogether.
    """
    weights = known.sampling_weights
    if weights is None:
        return []
    added, size = float(weights.sum()), known.population_size
    number = int((known.sample > _CONTRADICTED * size * weights / added).sum())
    if number:
        return [
            f"In {number:,} of the {known.cells:,} cells more people were sampled than there are by"
            f" the sampling weights, which add up to {added:,.0f} for a population of {size:,}:"
            " intervals are not to be relied on where these contradict each other."
        ]
    sampled = int(known.sample.sum())
    relative = abs(added - sampled) < _RELATIVE * sampled  # weights that are 1 on average
    if relative or max(added / size, size / added) <= _OTHER:
        return []
    return [
        f"The sampling weights add up to {added:,.0f}, and the population has {size:,} people: are"
        " these the weights? Only their proportions are used."
    ]


def _of_empty_cells(known: Known) -> list[str]:
    """Whether nobody was sampled where many were to be expected: perhaps nobody can be
    there, which the estimators do not know.
    """
    if known.sample.ndim == 1 or _is_told(known):
        return []  # of a single variable nothing says which sizes to expect
    least = _MANY + log(known.cells)  # so that none is empty by chance
    expected = np.where(known.fillable & (known.sample.values == 0), _expected(known.sample), 0.0)
    if known.known_margins is not None:
        filled = (known.known_margins > 0).broadcast_like(known.sample)
        expected *= filled.transpose(*known.sample.dims).values
    number = int((expected >= least).sum())
    if not number:
        return []
    first = tuple(map(int, np.unravel_index(expected.argmax(), expected.shape)))
    where = ", ".join(map(legible, cell_label(known.sample, first).split(", ")))
    return [
        f"In {number:,} of the {known.cells:,} cells nobody was sampled where {least:.0f} people"
        f" and more would be were variables independent: {where}, say. Name those where nobody can"
        " be as structural zeros, or fit how many there are, with tc.MixedPoisson(mixing='gamma',"
        " zero_inflated=True), where R2 is that of all cells, these included: if there are any and"
        " neither is done, R2 is often too low."
    ]


def _is_told(known: Known) -> bool:
    """Whether all cells of the population are known."""
    return known.known_margins is not None and known.known_margins.ndim == known.sample.ndim


def _expected(sample: xr.DataArray) -> npt.NDArray[np.float64]:
    """Sizes of the cells of a sample whose variables are independent."""
    counts = sample.values.astype(float)
    size, axes = float(counts.sum()), range(counts.ndim)
    margins = [counts.sum(axis=tuple(o for o in axes if o != axis)) / size for axis in axes]
    shares: npt.NDArray[np.float64] = reduce(np.multiply.outer, margins)
    return size * shares
