"""The risk-utility map: what each protection leaves of the risk, and what it costs."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import xarray as xr

from taciturn.errors import ParameterError
from taciturn.risk.information_loss import information_loss
from taciturn.risk.table_risk import DEFAULT_WEIGHTS, disclosure_risk
from taciturn.schema import split_draws
from taciturn.tables.checks import check_table
from taciturn.validate import check_weights, real_number

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
    _check_names(released)
    checked = check_weights(weights)
    probability = real_number(probability, "probability", least=0.01, most=0.9999)
    whose = check_table(
        table if population is None else population, name="population", draws=True, values=False
    )
    tails = ((1 - probability) / 2, (1 + probability) / 2)
    rows = {
        name: {**_risk(whose, release, checked, where), **_loss(table, release, association)}
        for name, release in released.items()
    }
    measures = list(next(iter(rows.values())))
    described = {
        name: np.array([_described(row[name], tails) for row in rows.values()]) for name in measures
    }
    return xr.Dataset(
        {name: (("protection", "statistic"), values) for name, values in described.items()},
        coords={"protection": list(rows), "statistic": list(_STATISTICS)},
        attrs={"weights": list(checked), "probability": probability},
    )


def _check_names(released: Any) -> None:
    if not isinstance(released, Mapping) or not released:
        raise ParameterError(
            f"released must be a mapping of names to releases, got {released!r:.80}"
        )
    for name in released:
        if not isinstance(name, str) or not name:
            raise ParameterError(f"the name of a method must be text, got {name!r}")


def _risk(
    population: xr.DataArray,
    release: xr.DataArray,
    weights: tuple[float, float, float],
    where: xr.DataArray | None,
) -> dict[str, Any]:
    """R1 of every draw and R2 of every pair; the population is read a part at a
    time.
    """
    drawn = {"chain", "draw"} <= set(population.dims)
    parts = split_draws(population) if drawn else [population]
    risks = [disclosure_risk(part, release, weights=weights, where=where) for part in parts]
    return {
        name: np.concatenate([risk[name].values.ravel() for risk in risks]) for name in ("R1", "R2")
    }


def _loss(
    original: xr.DataArray, release: xr.DataArray, association: Sequence[str] | None
) -> dict[str, Any]:
    loss = information_loss(original, release, association=association)
    return {str(name): values.values.ravel() for name, values in loss.data_vars.items()}


def _described(values: Any, tails: tuple[float, float]) -> list[float]:
    return [float(values.mean()), *map(float, np.quantile(values, tails))]
