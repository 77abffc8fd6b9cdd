"""Perturbation tables of the cell-key method: the noise of each count and its
probabilities.
"""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.errors import ParameterError
from taciturn.perturbation.noise_rows import NoiseRow, one_for_each, probability_to_stay
from taciturn.validate import real_number, true_or_false, whole_number

__all__ = [
    "LARGEST_NOISE",
    "perturbation_table",
]

Floats = npt.NDArray[np.float64]

LARGEST_NOISE: Final = 100


def perturbation_table(
    max_noise: int,
    variance: float,
    *,
    js: int = 0,
    pstay: float | Sequence[float | None] | None = None,
    monotone: bool | Sequence[bool] = True,
) -> xr.DataArray:
    r"""Transition probabilities of the cell-key method that have the largest entropy.

    Row `i` is the distribution of the perturbed count if the original count is `i`. Of
    all distributions of the noise `k` with

    .. math::

        \sum_k p_k = 1, \quad \sum_k k\,p_k = 0, \quad \sum_k k^2 p_k \le V,
        \quad |k| \le D

    that give no negative count and none from 1 to `js`, it is the one with the largest
    entropy :math:`-\sum_k p_k \log p_k`. Zero stays zero. This is the table of the R
    package ptable.

    Parameters
    ----------
    max_noise : int
        Largest absolute noise `D`, from 1 to 100.
    variance : float
        Largest variance `V` of the noise, above 0 and at most `D²`, in squared counts.
        A small count has less where its largest entropy needs less.
    js : int
        Positive counts up to this one are never published; 0 publishes all.
    pstay : float or sequence of float or None, optional
        Probability that a count is not changed, above 0 and at most 1: of all positive
        counts that can be published, or one for each row from 1 on, None or NaN where
        it is free.
    monotone : bool or sequence of bool
        Whether noise must not be likelier than smaller noise in the same direction or,
        if the original count can be published, than no noise; of all rows, or one for
        each row from 1 on.

    Returns
    -------
    DataArray
        float64 in ``[0, 1]``, dims ``(original, perturbed)``, named ``probability``;
        rows sum to 1. There are `D` positive original counts, ``D + js + 1`` with `js`;
        all larger ones get the noise of the last row, which is symmetric.

    Raises
    ------
    ParameterError
        An argument outside its range, or an original count for which no noise meets the
        conditions; the message names the count and what it accepts.

    Notes
    -----
    First the largest entropy is computed without the bound `V`. If the variance is
    above `V`, that of the result is `V`. The logarithms of the probabilities are
    :math:`a k + b k^2`, with `b` = 0 without the bound, and a term of its own for `k` =
    0 with `pstay`; with `monotone` they are the projection of this on the sequences
    that fall on both sides of 0. Newton's method finds the coefficients.

    References
    ----------
    Enderle, Giessing & Tent (2020), Calculation of risk probabilities for the cell key
    method, Privacy in Statistical Databases, Springer, 151-165. Enderle (2023),
    Introduction to the ptable-package, vignette of ptable 1.0.0. Fraser & Wooton
    (2005), A proposed method for confidentialising tabular output to protect against
    differencing, UNECE/Eurostat work session on statistical data confidentiality.
    Marley & Leaver (2011), A method for confidentialising user-defined tables:
    statistical properties and a risk-utility analysis, 58th World Statistical Congress.
    Giessing (2016), Computational issues in the design of transition probabilities and
    disclosure risk estimation for additive noise, Privacy in Statistical Databases,
    Springer, 237-251.

    Examples
    --------
    >>> import taciturn as tc
    >>> noise = tc.perturbation.perturbation_table(2, 1)
    >>> noise.sel(original=1).values.round(4).tolist()
    [0.3665, 0.3665, 0.1676, 0.0995, 0.0]
    >>> noise = tc.perturbation.perturbation_table(4, 1, pstay=[0.5, 0.5, 0.7, 0.8])
    >>> noise.sel(original=4).values[4].round(4).item()
    0.8
    """
    max_noise = whole_number(max_noise, "max_noise", least=1, most=LARGEST_NOISE)
    js = whole_number(js, "js", least=0, most=LARGEST_NOISE)
    variance = real_number(variance, "variance", above=0, most=max_noise**2)
    # The first count whose noise reaches neither zero nor a count up to js.
    last = max_noise + (js + 1 if js else 0)
    names = [f"the original count {count}" for count in range(1, last + 1)]
    stays = _stays(pstay, names, js)
    falls = [true_or_false(each, "monotone") for each in one_for_each(monotone, "monotone", names)]
    published = np.array([0, *range(js + 1, last + max_noise + 1)])
    out = np.zeros((last + 1, last + max_noise + 1))
    out[0, 0] = 1
    for row, name in enumerate(names):
        original = row + 1
        reached = published[abs(published - original) <= max_noise]
        noise = (reached - original).astype(float)
        conditions = NoiseRow(name, noise, variance, falls[row], stays[row])
        out[original, reached] = conditions.probabilities()
    coords = {"original": np.arange(last + 1), "perturbed": np.arange(last + max_noise + 1)}
    attrs = {"max_noise": max_noise, "variance": variance, "js": js}
    return xr.DataArray(
        out, dims=("original", "perturbed"), coords=coords, name="probability", attrs=attrs
    )


def _stays(pstay: Any, names: list[str], js: int) -> list[float | None]:
    """The probability to stay of each row; a single one leaves out the counts that are
    never published.
    """
    each = one_for_each(pstay, "pstay", names)
    if each and pstay is each[0]:
        each[:js] = [None] * js
    stays = [probability_to_stay(*pair) for pair in zip(each, names, strict=True)]
    for name, value in zip(names[:js], stays, strict=False):
        if value is not None:
            raise ParameterError(
                f"pstay of {name} must be None, as with js={js} it is never published;"
                f" got {value:g}"
            )
    return stays
