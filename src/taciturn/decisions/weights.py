"""What the weights of R1 and R2 decide: how the risk changes with each, and for which
of them one protection has less than another.

Weights are the points of a triangle whose corners put all weight on one term. R1 and R2
are linear on it, so that all of this is geometry of the terms.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.decisions.measures import DECIMALS
from taciturn.risk.outcomes import RISKS, TERMS, Outcome, outcomes
from taciturn.risk.table_risk import DEFAULT_WEIGHTS, Weights
from taciturn.validate import check_weights, interval_probability

__all__ = ["compare_over_weights", "weight_sensitivity"]

_STATISTICS: Final = ("mean", "lower", "upper")
_COMPARED: Final = TERMS[:2]
_ZERO_SHARES: Final = np.linspace(0, 1, 21).round(2)

Floats = npt.NDArray[np.float64]


def weight_sensitivity(
    released: Mapping[str, xr.DataArray],
    *,
    table: xr.DataArray,
    population: xr.DataArray | None = None,
    weights: Sequence[float] = DEFAULT_WEIGHTS,
    where: xr.DataArray | None = None,
    probability: float = 0.95,
) -> xr.Dataset:
    r"""How much R1 and R2 change with each of their weights.

    With `T` the three terms, the risk :math:`R = \sum_j w_j T_j` at a corner of the
    triangle of weights is a term itself. Weights sum to 1, so what one gains the others
    lose, here in proportion to what they have:

    .. math:: \frac{dR}{dw_j} = T_j - \frac{\sum_{i \ne j} w_i T_i}{1 - w_j}

    R is linear: a weight that is raised by `d` changes it by `d` times as much.

    Parameters
    ----------
    released : mapping of str to DataArray
        What each method releases, under its name: a table, or replicates of one.
    table : DataArray
        The table that was protected.
    population : DataArray, optional
        Whose risk it is: the population table, or posterior draws of it where `table`
        is a sample. Without it `table` is the population.
    weights, where
        As in `disclosure_risk`.
    probability : float
        Of the equal-tailed intervals, from 0.01 to 0.9999.

    Returns
    -------
    Dataset
        Dims ``protection``, ``term`` (``zero_term``, ``entropy_term``, ``size_term``)
        and ``statistic``: ``mean``, ``lower`` and ``upper`` over the draws of the
        population and, for R2, over all pairs of a draw and a replicate:

        - ``R1`` (statistic) and ``R2`` (protection, statistic) at these weights;
        - ``R1_term`` and ``R2_term``: the terms, in ``[0, 1]``, which are the risk with
          all weight on each;
        - ``R1_slope`` and ``R2_slope``: the derivative above, from -1 to 1; NaN for a
          weight of 1, beside which the others have no proportions.

    Raises
    ------
    ParameterError
        No method, a name that is not text, weights or a probability out of range.
    TableError
        Tables with other categories, and what `disclosure_risk` refuses.

    Notes
    -----
    *What it does not tell.* A large slope says that the level of the risk depends on
    the weight, not that a comparison does: the size term has one, and is the same for
    all protections. `compare_over_weights` tells of comparisons.

    References
    ----------
    Antal, Shlomo & Elliot (2015), eq. (3)-(4), whose weights are chosen by the agency.

    Examples
    --------
    >>> import taciturn as tc
    >>> table = tc.load_dataset("area_by_religion")
    >>> found = tc.weight_sensitivity({"as it is": table}, table=table)
    >>> found["R1_slope"].sel(statistic="mean").values.round(3).tolist()
    [0.051, 0.054, -0.147]
    """
    weights = check_weights(weights)
    probability = interval_probability(probability)
    tails = ((1 - probability) / 2, (1 + probability) / 2)
    found = {
        name: {risk: _slopes(outcome, risk, weights, tails) for risk in RISKS}
        for name, outcome in _terms_of(released, table, population, where)
    }
    before = next(iter(found.values()))["R1"]
    result = xr.Dataset(
        coords={"protection": list(found), "term": list(TERMS), "statistic": list(_STATISTICS)},
        attrs={"weights": list(weights), "probability": probability},
    )
    for suffix, dims in (("", ()), ("_term", ("term",)), ("_slope", ("term",))):
        after = np.array([each["R2"][suffix] for each in found.values()])
        result[f"R1{suffix}"] = (*dims, "statistic"), before[suffix]
        result[f"R2{suffix}"] = ("protection", *dims, "statistic"), after
    return result


def compare_over_weights(
    released: Mapping[str, xr.DataArray],
    *,
    table: xr.DataArray,
    population: xr.DataArray | None = None,
    where: xr.DataArray | None = None,
    probability: float = 0.95,
) -> xr.Dataset:
    r"""For which weights one protection has less expected R2 than another.

    With `T` the terms of protection `a`, `U` those of `b`, both means over the
    replicates, `a` has less risk in draw `d` of the population where

    .. math:: w_1 (T_{1d} - U_{1d}) + w_2 (T_{2d} - U_{2d}) < 0 ,

    whatever :math:`w_3` is: the size term depends on the number of individuals in the
    population alone, so its difference is 0. This is a comparison of the *zero share*
    :math:`s = w_1 / (w_1 + w_2)`, which is the same on each line through the corner of
    the size term, with a threshold. Where both differences have one sign there is none,
    and `a` has less, or more, for all weights.

    The lines cut the triangle of weights into triangles with that corner, whose areas
    are as their bases on the opposite edge, on which `s` runs evenly from 0 to 1. So
    the share of the triangle in which `a` has less is the length of the range of `s` in
    which it does:

    .. math::

        A_d = \frac{\max(-D_1, 0) + \max(-D_2, 0)}{|D_1| + |D_2|}, \qquad
        D_j = T_{jd} - U_{jd},

    and 0 where both differences are 0.

    Parameters
    ----------
    released : mapping of str to DataArray
        What each method releases, under its name: a table, or replicates of one.
    table : DataArray
        The table that was protected.
    population : DataArray, optional
        Whose risk it is: the population table, or posterior draws of it where `table`
        is a sample. Without it `table` is the population.
    where : DataArray of bool, optional
        As in `disclosure_risk`.
    probability : float
        Of the equal-tailed intervals, from 0.01 to 0.9999.

    Returns
    -------
    Dataset
        Dims ``protection`` and ``reference``, all with all:

        - ``difference`` (also ``term``, without the size term, and ``statistic``):
          protection less reference, mean and interval over the draws;
        - ``weight_ratio``: :math:`w_1 / w_2` at which both have the same expected R2,
          above 0; NaN where there is none. Above it, the one with the smaller zero
          term has less;
        - ``area``: the share of the triangle of weights in which the protection has
          less expected R2. 1 where it does for all weights, but for :math:`w_3 = 1`
          and, where one term is the same, for those on an edge;
        - ``less_for_all``: the share of the draws with :math:`A_d = 1`, in which the
          order holds for all weights, and ``less_mean_area``, the mean of all
          :math:`A_d`: the probability of less risk if weights are as likely as others;
        - ``less_risk`` (also ``zero_share``, `s` from 0 to 1): the share of the draws
          in which the protection has less risk at such weights.

    Raises
    ------
    ParameterError
        No method, a name that is not text, or a probability out of range.
    TableError
        Tables with other categories, and what `disclosure_risk` refuses.

    Notes
    -----
    *What is uncertain.* These are comparisons of methods, means over what they may
    release, so that only the population is uncertain; where it is known, all
    probabilities are 0 or 1. `compare_protections` has those of single releases at
    given weights, with their Monte Carlo errors. Terms that differ by less than 1e-12
    are the same.

    *Orders for all weights.* ``area == 1`` is a partial order: protections of which
    neither has an area of 1 are ordered by the weights only.

    *What it does not tell.* It compares risks. A protection with less risk for all
    weights may cost more: `plot_risk_utility`.

    Examples
    --------
    >>> import taciturn as tc
    >>> table = tc.load_dataset("area_by_religion")
    >>> given = {"replicates": 100, "random_seed": 1}
    >>> methods = {
    ...     "rounded": tc.random_round(table, rounding_base=3, **given),
    ...     "noise": tc.add_noise(table, epsilon=1, **given),
    ... }
    >>> pair = tc.compare_over_weights(methods, table=table).sel(
    ...     protection="rounded", reference="noise"
    ... )
    >>> round(float(pair["weight_ratio"]), 3), round(float(pair["area"]), 3)
    (0.054, 0.051)
    """
    probability = interval_probability(probability)
    tails = ((1 - probability) / 2, (1 + probability) / 2)
    terms = {
        name: np.stack([outcome.after[term].mean(axis=1) for term in _COMPARED])
        for name, outcome in _terms_of(released, table, population, where)
    }
    rows = [
        [_compared(ours - theirs, tails) for theirs in terms.values()] for ours in terms.values()
    ]
    coords = {
        "protection": list(terms),
        "reference": list(terms),
        "term": list(_COMPARED),
        "statistic": list(_STATISTICS),
        "zero_share": _ZERO_SHARES,
    }
    more = {"difference": ("term", "statistic"), "less_risk": ("zero_share",)}
    return xr.Dataset(
        {
            name: (
                ("protection", "reference", *more.get(name, ())),
                np.array([[pair[name] for pair in row] for row in rows]),
            )
            for name in rows[0][0]
        },
        coords=coords,
        attrs={"probability": probability},
    )


def _terms_of(
    released: Any, table: Any, population: Any, where: Any
) -> Iterator[tuple[str, Outcome]]:
    return outcomes(released, table=table, population=population, where=where, association=None)


def _slopes(
    outcome: Outcome, measure: str, weights: Weights, tails: tuple[float, float]
) -> dict[str, Any]:
    """R1 or R2 of a protection, its terms and its slopes, described."""
    terms = outcome.before if measure == "R1" else outcome.after
    risk = outcome.risk(measure, weights)
    slopes = []
    for weight, name in zip(weights, TERMS, strict=True):
        if weight < 1:
            slopes.append(_described((terms[name] - risk) / (1 - weight), tails))
        else:
            slopes.append([np.nan] * len(_STATISTICS))
    return {
        "": _described(risk, tails),
        "_term": [_described(terms[name], tails) for name in TERMS],
        "_slope": slopes,
    }


def _compared(differences: Floats, tails: tuple[float, float]) -> dict[str, Any]:
    """What is said of one pair, from the differences of two terms, (2, draws)."""
    expected = differences.mean(axis=1).round(DECIMALS)
    differences = differences.round(DECIMALS)
    areas = _areas(differences)
    mixed = _ZERO_SHARES[:, np.newaxis]
    at_shares = mixed * differences[0] + (1 - mixed) * differences[1]
    opposed = expected.prod() < 0
    return {
        "difference": [_described(each, tails) for each in differences],
        "weight_ratio": -expected[1] / expected[0] if opposed else np.nan,
        "area": _areas(expected),
        "less_for_all": (areas == 1).mean(),
        "less_mean_area": areas.mean(),
        "less_risk": (at_shares.round(DECIMALS) < 0).mean(axis=1),
    }


def _areas(differences: Floats) -> Any:
    """Shares of the triangle in which the weighted sum of two differences, (2, ...), is
    below 0.
    """
    sizes = np.abs(differences).sum(axis=0)
    return np.maximum(-differences, 0).sum(axis=0) / np.where(sizes > 0, sizes, 1)


def _described(values: Floats, tails: tuple[float, float]) -> list[float]:
    return [float(values.mean()), *map(float, np.quantile(values, tails))]
