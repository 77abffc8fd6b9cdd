"""The risk-utility map: what each protection leaves of the risk, and what it costs."""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import xarray as xr

from taciturn.risk.outcomes import RISKS, Outcome, outcomes
from taciturn.risk.table_risk import DEFAULT_WEIGHTS, Weights
from taciturn.validate import check_weights, interval_probability

__all__ = ["risk_utility"]

_STATISTICS: Final = ("mean", "lower", "upper")


def risk_utility(
    released: Mapping[str, xr.DataArray],
    *,
    table: xr.DataArray,
    population: xr.DataArray | None = None,
    weights: Sequence[float] = DEFAULT_WEIGHTS,
    where: xr.DataArray | None = None,
    association: Sequence[str] | None = None,
    probability: float = 0.95,
) -> xr.Dataset:
    """Risk and information loss of several protections of one table, side by side.

    Parameters
    ----------
    released : mapping of str to DataArray
        What each method releases, under its name: a table, or replicates of one. The
        original under a name of its own, such as ``{"as it is": table}``, shows where
        the protections start from.
    table : DataArray
        The table that was protected; information loss is measured against it.
    population : DataArray, optional
        Whose risk it is: the population table, or posterior draws of it where `table`
        is a sample, ``fit["posterior_predictive"]["population"]``. Without it `table`
        is the population.
    weights, where
        As in `disclosure_risk`.
    association : sequence of two str, optional
        As in `information_loss`.
    probability : float
        Of the equal-tailed intervals, from 0.01 to 0.9999.

    Returns
    -------
    Dataset
        Dims ``protection``, which xarray's `sel` can select by name, and ``statistic``:
        ``mean``, ``lower`` and ``upper`` over all replicates and, for a population that
        is not known, over its draws too: all pairs of a draw and a replicate.
        Variables: ``R1`` and ``R2`` of `disclosure_risk`, in ``[0, 1]``, and the
        measures of `information_loss`, in their units.

    Raises
    ------
    ParameterError
        No method, a name that is not text, weights or a probability out of range.
    TableError
        Tables with other categories, and what `disclosure_risk` refuses.

    Notes
    -----
    *What the interval is.* A release happens once: the interval holds the given share
    of what the method may release, and with draws of the population of what may stand
    behind the sample, too. A method without randomness has an interval of no width,
    unless the population is unknown. Intervals from posterior draws are as good as the
    estimator's coverage.

    *What the map does not show.* R2 is about the whole table. That no single cell can
    be worked out is another question.

    References
    ----------
    Duncan, Keller-McNulty & Stokes (2001), Disclosure risk vs. data utility: the R-U
    confidentiality map, National Institute of Statistical Sciences, technical report
    121; Antal, Shlomo & Elliot (2014), Tables 1-4.

    See Also
    --------
    compare_protections : Differences between protections, which may be certain where
        these intervals overlap.

    Examples
    --------
    >>> import taciturn as tc
    >>> table = tc.load_dataset("area_by_religion")
    >>> given = {"replicates": 100, "random_seed": 1}
    >>> methods = {
    ...     "round to 3": tc.random_round(table, rounding_base=3, **given),
    ...     "round to 5": tc.random_round(table, rounding_base=5, **given),
    ... }
    >>> found = tc.risk_utility(methods, table=table)
    >>> found["R2"].sizes
    Frozen({'protection': 2, 'statistic': 3})
    >>> change = found.diff("protection")
    >>> bool((change["hellinger"] > 0).all() & (change["R2"] < 0).all())
    True
    """
    checked = check_weights(weights)
    probability = interval_probability(probability)
    tails = ((1 - probability) / 2, (1 + probability) / 2)
    rows = {
        name: _described(outcome, checked, tails)
        for name, outcome in outcomes(
            released, table=table, population=population, where=where, association=association
        )
    }
    measures = list(next(iter(rows.values())))
    return xr.Dataset(
        {
            name: (("protection", "statistic"), np.array([row[name] for row in rows.values()]))
            for name in measures
        },
        coords={"protection": list(rows), "statistic": list(_STATISTICS)},
        attrs={"weights": list(checked), "probability": probability},
    )


def _described(
    outcome: Outcome, weights: Weights, tails: tuple[float, float]
) -> dict[str, list[float]]:
    """Mean and quantiles of every measure of one protection."""
    measures = {name: outcome.risk(name, weights) for name in RISKS} | dict(outcome.losses)
    return {
        name: [float(values.mean()), *map(float, np.quantile(values, tails))]
        for name, values in measures.items()
    }
