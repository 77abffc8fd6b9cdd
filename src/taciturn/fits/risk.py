"""From a fit to the risk of its table."""

from collections.abc import Sequence

import xarray as xr

from taciturn.fits.parts import fit_parts, known_margins
from taciturn.risk.table_risk import DEFAULT_WEIGHTS, disclosure_risk
from taciturn.risk.uniques import unique_risk
from taciturn.schema import check_population, split_draws

__all__ = ["assess", "fit_risk"]


def assess(fit: xr.DataTree, *, weights: Sequence[float] = DEFAULT_WEIGHTS) -> xr.DataTree:
    """Add the risk of the sample table to a fit: R1, R2 and their terms, τ1 and τ2, for
    every posterior draw.

    Parameters
    ----------
    fit : DataTree
        What an estimator's `fit` returns, or any tree that keeps the population
        contract.
    weights : sequence of three floats
        As in `disclosure_risk`.

    Returns
    -------
    DataTree
        The fit with the group ``risk``: ``R1``, ``R2``, ``zero_term``,
        ``entropy_term``, ``size_term``, ``tau1``, ``tau2``, each (chain, draw). The
        given tree is left as it was.

    Raises
    ------
    TableError
        A group is missing, or the draws break the population contract.
    ParameterError
        Weights that are negative or do not sum to 1.

    Examples
    --------
    >>> import taciturn as tc
    >>> sample = tc.draw_sample(tc.load_dataset("area_by_religion"), fraction=0.1, random_seed=1)
    >>> fit = tc.LogLinear().fit(sample, population_size=2449, draws=100, random_seed=1)
    >>> tc.assess(fit)["risk"]["R2"].sizes
    Frozen({'chain': 4, 'draw': 100})
    """
    risk = fit_risk(fit, weights=weights)
    assessed = fit.copy()
    assessed["risk"] = xr.DataTree(risk)
    return assessed


def fit_risk(fit: xr.DataTree, *, weights: Sequence[float] | None = None) -> xr.Dataset:
    """R1, R2 and their terms, τ1 and τ2 of every draw of a fit: as assessed, or with
    `weights` where these are given.

    A fit that was not assessed gets the default weights. The draws are held to the
    population contract first.
    """
    if (
        weights is None
        and "risk" in fit.children
        and {"R1", "R2", "tau1", "tau2"} <= set(fit["risk"].data_vars)
    ):
        return fit["risk"].to_dataset().compute()
    population, sample, size, zeros = fit_parts(fit)
    margins = known_margins(fit)
    where = None if zeros is None else ~zeros
    given = DEFAULT_WEIGHTS if weights is None else weights
    parts: list[xr.Dataset] = []
    for part in split_draws(population):
        check_population(
            part, sample, population_size=size, structural_zeros=zeros, known_margins=margins
        )
        risk = disclosure_risk(part, sample, weights=given, where=where)
        parts.append(risk.merge(unique_risk(part, sample), combine_attrs="override"))
    each = len(parts) // population.sizes["chain"]
    if len(parts) == 1:
        return parts[0]
    chains = [
        xr.concat(parts[start : start + each], "draw") for start in range(0, len(parts), each)
    ]
    return xr.concat(chains, "chain", combine_attrs="override")
