"""Noise of magnitudes: its distribution, and its size as a share of a total."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.errors import ParameterError
from taciturn.perturbation.noise_rows import NoiseRow, one_for_each, probability_to_stay
from taciturn.perturbation.perturbation_tables import LARGEST_NOISE
from taciturn.tables.transitions import check_probabilities, cumulated_rows, refuse_where
from taciturn.validate import real_number, true_or_false, whole_number

__all__ = [
    "FlexShare",
    "check_magnitude_perturbation",
    "drawn_noise",
    "magnitude_perturbation_table",
]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class FlexShare:
    r"""Noise as a share of the contributions, which falls as the total of a cell grows.

    .. math::

        m(X) = m_2 + (m_1 t - m_2) \Bigl(\frac{2}{1 + t}\Bigr)^q,
        \quad t = \max(X / z_f, 1)

    It is `m₁` for totals up to `z_f` and nears `m₂` above. With `q` below ``2 m₁ / (m₁
    - m₂)`` it first rises a little above `m₁`.

    Parameters
    ----------
    small : float
        The share `m₁` of small totals, above 0 and at most 1.
    large : float
        The share `m₂` that large totals near, above 0 and below `small`.
    turn : float
        The total `z_f` from which the share falls, above 0.
    power : float
        How fast it falls, `q`, above 1.

    Raises
    ------
    ParameterError
        A value outside its range.

    References
    ----------
    Giessing & Tent (2019), Concepts for generalising tools implementing the cell key
    method to the case of continuous variables, UNECE/Eurostat work session on
    statistical data confidentiality.

    Examples
    --------
    >>> import taciturn as tc
    >>> share = tc.perturbation.FlexShare(small=0.3, large=0.03, turn=1000)
    >>> share.at([0, 1000, 3000, 1_000_000]).round(4).tolist()
    [0.3, 0.3, 0.1387, 0.03]
    """

    small: float
    large: float
    turn: float
    power: float = 3.0

    def __post_init__(self) -> None:
        real_number(self.small, "small", above=0, most=1)
        real_number(self.large, "large", above=0)
        if self.large >= self.small:
            raise ParameterError(f"large must be below small, {self.small:g}; got {self.large:g}")
        real_number(self.turn, "turn", above=0)
        real_number(self.power, "power", above=1)

    def at(self, totals: npt.ArrayLike) -> Floats:
        """The shares at some totals of cells."""
        t = np.maximum(np.asarray(totals, dtype=float) / self.turn, 1)
        shares: Floats = self.large + (self.small * t - self.large) * (2 / (1 + t)) ** self.power
        return shares


def magnitude_perturbation_table(
    max_noise: int,
    variance: float,
    *,
    grid: int = 2,
    pstay: float | Sequence[float | None] | None = None,
    monotone: bool | Sequence[bool] = True,
) -> xr.DataArray:
    r"""Distributions of the noise of magnitudes that have the largest entropy.

    As `perturbation_table`, but the noise is a multiple of ``1 / grid``, in units that
    `cell_key_magnitudes` chooses for each contribution. Row `r` is for contributions of
    `r` such units, from which no more than `r` can be taken away; between two rows the
    noise is interpolated, which keeps the mean 0.

    Parameters
    ----------
    max_noise : int
        Largest absolute noise `D`, in units; ``max_noise * grid`` is at most 100.
    variance : float
        Largest variance `V` of the noise, above 0 and at most `D²`, in squared units.
    grid : int
        How many steps of the noise make a unit, the `step` of ptable.
    pstay : float or sequence of float or None, optional
        Probability of no noise, above 0 and at most 1: of all rows from 1 on, or of
        each, None or NaN where it is free.
    monotone : bool or sequence of bool
        Whether noise must not be likelier than smaller noise in the same direction or
        than none; of all rows from 1 on, or of each.

    Returns
    -------
    DataArray
        float64 in ``[0, 1]``, dims ``(ratio, noise)``, named ``probability``; rows sum
        to 1. All ratios above `D` get the last row, which is symmetric.

    Raises
    ------
    ParameterError
        An argument outside its range, or a row for which no noise meets the conditions.

    References
    ----------
    Giessing & Tent (2019), as in `FlexShare`.

    Examples
    --------
    >>> import taciturn as tc
    >>> noise = tc.perturbation.magnitude_perturbation_table(2, 1)
    >>> noise.noise.values[:5].tolist()
    [-2.0, -1.5, -1.0, -0.5, 0.0]
    >>> noise.sel(ratio=2).values[:5].round(3).tolist()
    [0.04, 0.078, 0.125, 0.166, 0.183]
    """
    max_noise = whole_number(max_noise, "max_noise", least=1, most=LARGEST_NOISE)
    grid = whole_number(grid, "grid", least=1, most=LARGEST_NOISE // max_noise)
    variance = real_number(variance, "variance", above=0, most=max_noise**2)
    names = [f"the ratio {ratio}" for ratio in range(1, max_noise + 1)]
    stays = [
        probability_to_stay(*pair)
        for pair in zip(one_for_each(pstay, "pstay", names), names, strict=True)
    ]
    falls = [true_or_false(each, "monotone") for each in one_for_each(monotone, "monotone", names)]
    noise = np.arange(-max_noise * grid, max_noise * grid + 1) / grid
    out = np.zeros((max_noise + 1, len(noise)))
    out[0, noise == 0] = 1
    for row, name in enumerate(names):
        possible = noise >= -(row + 1)
        conditions = NoiseRow(name, noise[possible], variance, falls[row], stays[row])
        out[row + 1, possible] = conditions.probabilities()
    return xr.DataArray(
        out,
        dims=("ratio", "noise"),
        coords={"ratio": np.arange(max_noise + 1), "noise": noise},
        name="probability",
        attrs={"max_noise": max_noise, "variance": variance, "grid": grid},
    )


def check_magnitude_perturbation(perturbation: Any) -> tuple[Floats, Floats]:
    """Cumulated rows of a perturbation table of magnitudes, and the noise of its
    columns; raise `ParameterError` if it is not one.
    """
    values, ratios, noise = check_probabilities(perturbation, ("ratio", "noise"))
    noise = noise.astype(float)
    refuse_where(
        (values > 0) & (noise < -ratios[:, None]),
        "totals cannot become negative",
        values,
        {"ratio": ratios, "noise": noise},
    )
    refuse_where(
        (values > 0) & (noise > 0) & (ratios[:, None] == 0),
        "zero must stay zero",
        values,
        {"ratio": ratios, "noise": noise},
    )
    return cumulated_rows(values), noise


def drawn_noise(ratios: Floats, keys: Floats, cumulated: Floats, noise: Floats) -> Floats:
    """Noise at the given keys, interpolated between the rows on both sides of each
    ratio; `keys` may have leading axes.
    """
    last = len(cumulated) - 1
    inside = np.minimum(ratios, last)
    below = inside.astype(np.int64)
    part = inside - below
    ends = []
    for rows in (below, np.minimum(below + 1, last)):
        found = np.empty(keys.shape)
        for row in np.unique(rows):
            at = rows == row
            found[..., at] = noise[np.searchsorted(cumulated[row], keys[..., at], side="right")]
        ends.append(found)
    drawn: Floats = (1 - part) * ends[0] + part * ends[1]
    return drawn
