"""How likely the people of each cell were to be sampled, from the weights of those who
were.

People who differ in nothing that the table shows may have different weights: by its own
mean weight a cell with one of them would look rarer or more frequent than it is, and a
cell without a sample has none. Mean weights are smoothed, therefore.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, Self

import numpy as np
import numpy.typing as npt

__all__ = ["smoothed_weights"]

_STEPS: Final = (200, 2_000)  # at most, with many categories and with few
_MANY: Final = 150  # categories, of which a step takes long
_NEAR: Final = 1e-6  # a step that ends the fit, of a logarithm
_LEAST: Final = 1e-10  # a variance
_FURTHEST: Final = (-1.0, 2.0)  # a mean is from what is expected, relative to that

Counts = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def smoothed_weights(counts: Counts, totals: Floats) -> Floats:
    r"""Expected weight of an individual sampled in each cell, or who might have been.

    .. math::

        \operatorname{E} \bar w_i = e^{\eta_i}, \quad
        \operatorname{Var} \bar w_i = \phi e^{2 \eta_i} / f_i, \quad
        \eta_i = b_0 + \sum_v b_{v,v(i)} + u_i, \quad
        b_{v,l} \sim N(0, \omega_v^2), \quad u_i \sim N(0, \tau^2)

    by penalised quasi-likelihood: weights that differ between categories or cells by no
    more than within these are taken to be equal, others as they are. A cell without a
    sample has what its categories have.

    Parameters
    ----------
    counts : array of int64, shape of the table
        People sampled, of whom there are some.
    totals : array
        Sums of their weights.

    Returns
    -------
    array

    References
    ----------
    Beaumont (2008), A new approach to weighting and inference in sample surveys,
    Biometrika 95; Schall (1991), Estimation in generalized linear models with random
    effects, Biometrika 78.
    """
    fit = _Fit.start(counts, totals)
    for _ in range(_STEPS[sum(counts.shape) < _MANY]):
        before, fit = fit, fit.improved()
        if np.abs(fit.logs - before.logs).max() < _NEAR:
            break
    return np.exp(fit.of_table(counts))


@dataclass(frozen=True)
class _Fit:
    """Effects and variances as they are known so far.

    Attributes
    ----------
    number, means : array, shape (cells,)
        People sampled and their mean weight, of cells with a sample.
    columns : array of int64, shape (cells, 1 + variables)
        Positions among the effects of those of each cell.
    places : list of slice
        Where the effects of each variable are; the first effect is the level.
    effects, logs : array
        Of categories, and what these and a cell's own effect add up to.
    spread : array, shape (variables,)
        Variance of the effects of each variable.
    between, within : float
        Variance of the cells' own effects, and of single weights, relative to their
        mean.
    """

    number: Floats
    means: Floats
    columns: Counts
    places: list[slice]
    effects: Floats
    logs: Floats
    spread: Floats
    between: float = 0.05
    within: float = 0.1

    @classmethod
    def start(cls, counts: Counts, totals: Floats) -> Self:
        """All cells alike."""
        occupied = np.nonzero(counts)
        number = counts[occupied].astype(float)
        stops = 1 + np.cumsum(counts.shape)
        places = [slice(stop - size, stop) for stop, size in zip(stops, counts.shape, strict=True)]
        columns = [np.zeros(len(number), dtype=np.int64)]
        columns += [own.start + place for own, place in zip(places, occupied, strict=True)]
        level = np.log(totals.sum() / counts.sum())
        effects = np.zeros(stops[-1])
        effects[0] = level
        means, logs = totals[occupied] / number, np.full(len(number), level)
        spread = np.full(counts.ndim, 0.1)
        return cls(number, means, np.stack(columns, axis=1), places, effects, logs, spread)

    @cached_property
    def _penalty(self) -> Floats:
        """The inverse of the variance of each effect; 0 for the level."""
        found = np.zeros(len(self.effects))
        for place, variance in zip(self.places, self.spread, strict=True):
            found[place] = 1 / variance
        return found

    def improved(self) -> Self:
        """Effects given the variances, and then the variances given the effects."""
        expected = np.exp(self.logs)
        response = self.logs + np.clip((self.means - expected) / expected, *_FURTHEST)
        variance = self.within / self.number + self.between
        inverse = np.linalg.inv(self._information(1 / variance) + np.diag(self._penalty))
        effects = inverse @ self._sums(response / variance)
        of_categories = effects[self.columns].sum(axis=1)
        kept = self.between / variance
        own = kept * (response - of_categories)
        better = replace(self, effects=effects, logs=of_categories + own)
        pairs = inverse[self.columns[:, :, None], self.columns[:, None, :]]
        free = kept * (1 - pairs.sum(axis=(1, 2)) / variance)
        return better._with_variances(np.diag(inverse), own, free, response)

    def _with_variances(
        self, uncertain: Floats, own: Floats, free: Floats, response: Floats
    ) -> Self:
        """Variances that the effects of categories and cells suggest, each by as many
        as are not taken up by others.
        """
        spread = []
        for place, old in zip(self.places, self.spread, strict=True):
            count = place.stop - place.start - uncertain[place].sum() / old
            spread.append(max((self.effects[place] ** 2).sum() / max(count, _LEAST), _LEAST))
        between = max((own**2).sum() / max(free.sum(), _LEAST), _LEAST)
        used = len(self.effects) - uncertain @ self._penalty
        left, within = float(len(own) - used - free.sum()), self.within
        if left > 0.5:  # otherwise each cell is fitted by effects of its own
            within = max(float((self.number * (response - self.logs) ** 2).sum() / left), _LEAST)
        return replace(self, spread=np.array(spread), between=float(between), within=float(within))

    def _sums(self, values: Floats) -> Floats:
        """Sums over the cells of each effect."""
        size, repeated = len(self.effects), np.repeat(values, self.columns.shape[1])
        return np.bincount(self.columns.ravel(), weights=repeated, minlength=size)

    def _information(self, values: Floats) -> Floats:
        """Sums over the cells of each pair of effects."""
        size = len(self.effects)
        pairs = self.columns[:, :, None] * size + self.columns[:, None, :]
        repeated = np.repeat(values, self.columns.shape[1] ** 2)
        found = np.bincount(pairs.ravel(), weights=repeated, minlength=size**2)
        return found.reshape(size, size)

    def of_table(self, counts: Counts) -> Floats:
        """Logarithms for all cells of the table."""
        found = np.full(counts.shape, self.effects[0])
        for axis, place in enumerate(self.places):
            shape = [1] * counts.ndim
            shape[axis] = counts.shape[axis]
            found = found + self.effects[place].reshape(shape)
        found[np.nonzero(counts)] = self.logs
        return found
