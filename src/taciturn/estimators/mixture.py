"""Mixtures of members: which member makes each draw, the variables of each member, and
the leave-one-out terms of the mixture.

The draws of all members are kept side by side, with each member's name and an
underscore before the names of its variables; ``member`` is the number of the member
that made the tables of a draw.
"""

from collections.abc import Mapping
from typing import Final

import numpy as np
import numpy.typing as npt
import xarray as xr

__all__ = [
    "Turn",
    "draws_at",
    "member_variables",
    "mixture_terms",
    "prefixed",
    "turns",
]

_NEWTON_STEPS: Final = 50
_PRECISION: Final = 1e-12

Floats = npt.NDArray[np.float64]
Turn = npt.NDArray[np.bool_]
"""Whether a member makes the tables of a draw, (chain, draw)."""


def turns(shares: Floats, draws: int) -> npt.NDArray[np.int64]:
    """Number of the member that makes each draw, as close to the shares as whole
    numbers of draws allow.
    """
    ends = np.cumsum(shares)
    return np.searchsorted(ends / ends[-1], (np.arange(draws) + 0.5) / draws)


def prefixed(dataset: xr.Dataset, name: str) -> xr.Dataset:
    """A member's variables under the names they have in the mixture."""
    return dataset.rename_vars({variable: f"{name}_{variable}" for variable in dataset.data_vars})


def member_variables(dataset: xr.Dataset, name: str) -> xr.Dataset:
    """A member's variables under their own names."""
    prefix = f"{name}_"
    own = dataset[[variable for variable in dataset.data_vars if str(variable).startswith(prefix)]]
    return own.rename_vars(
        {variable: str(variable).removeprefix(prefix) for variable in own.data_vars}
    )


def draws_at(posterior: xr.Dataset, turn: Turn) -> xr.Dataset:
    """The draws of each chain where `turn` is True, which must be equally many."""
    chosen = np.nonzero(turn)[1].reshape(len(turn), -1)
    chains = xr.DataArray(np.arange(len(turn)), dims="chain")
    bare = posterior.drop_vars(["chain", "draw"], errors="ignore")
    return bare.isel(chain=chains, draw=xr.DataArray(chosen, dims=("chain", "draw")))


def mixture_terms(terms: xr.Dataset, shares: Mapping[str, float]) -> xr.DataArray:
    r"""One leave-one-out term for each draw of a mixture, from those of its members.

    The members learn from the sample separately, so that the mixture predicts
    individual `i` from the others with density

    .. math:: p(x_i \mid x_{-i}) = \sum_m w_m \Big/ \frac1S \sum_s \frac{1}{p_{ms}},
              \qquad p_{ms} = p_m(x_i \mid x_{-i}, \theta_{ms})

    over `S` draws. The harmonic mean of :math:`\bar p_s = \sum_m w_m p_{ms}`, which is
    what ArviZ would take, is larger, because at each draw the members' deviations
    partly cancel. The term of draw `s` is therefore :math:`a_i + b_i \log \bar p_s`,
    with two constants for each individual chosen so that the harmonic mean over draws
    is :math:`p(x_i \mid x_{-i})` above and the arithmetic mean is that of
    :math:`\bar p_s`, the density given the whole sample.

    Parameters
    ----------
    terms : Dataset
        One variable per member, (chain, draw, occupied_cell), in nats.
    shares : mapping of str to float
        Share of each member, summing to 1.

    Returns
    -------
    DataArray
        (chain, draw, occupied_cell), in nats.
    """
    each = np.stack([terms[name].transpose("chain", "draw", ...).values for name in shares])
    weights = np.array(list(shares.values()))
    mixture = _log_mean(each, axis=0, weights=weights)
    with_all = _log_mean(mixture)
    left_out = _log_mean(np.stack([-_log_mean(-own) for own in each]), axis=0, weights=weights)
    stretched = _stretch(mixture, with_all - left_out) * mixture
    first = terms[next(iter(shares))].transpose("chain", "draw", ...)
    return first.copy(data=stretched + (with_all - _log_mean(stretched)))


def _log_mean(
    logs: Floats, *, axis: int | tuple[int, ...] = (0, 1), weights: Floats | None = None
) -> Floats:
    """Logarithm of the mean, over chains and draws or else along one axis with weights;
    SciPy takes three times as long.
    """
    highest = logs.max(axis=axis)
    with np.errstate(invalid="ignore"):
        mean = np.average(np.exp(logs - highest), axis=axis, weights=weights)
    return np.where(np.isfinite(highest), highest + np.log(mean), highest)


def _stretch(logs: Floats, gap: Floats) -> Floats:
    """Factor by which the logarithms of each cell must be multiplied for the arithmetic
    mean over draws to exceed the harmonic mean by `gap` on the log scale; 1 where all
    draws are equal.
    """
    lowest, highest = logs.min(axis=(0, 1)), logs.max(axis=(0, 1))
    factor, half = np.ones(logs.shape[2]), (highest - lowest) / 2
    varies = half > 0
    away = logs - (lowest + half)  # from -half to half, so that both means are of numbers up to 1
    for _ in range(_NEWTON_STEPS):  # convex and increasing: it converges from anywhere above 0
        scaled = factor * away
        up, down = np.exp(scaled - factor * half), np.exp(-scaled - factor * half)
        above, below = up.mean(axis=(0, 1)), down.mean(axis=(0, 1))
        excess = np.log(above) + np.log(below) + 2 * factor * half - gap
        if not (np.abs(excess[varies]) > _PRECISION).any():
            break
        slope = (away * up).mean(axis=(0, 1)) / above - (away * down).mean(axis=(0, 1)) / below
        factor[varies] -= excess[varies] / slope[varies]
    return factor
