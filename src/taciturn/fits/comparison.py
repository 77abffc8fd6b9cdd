"""Comparison of fits by how well each predicts the cell of an individual left out."""

import warnings
from collections.abc import Hashable, Mapping
from dataclasses import replace
from math import inf, nan
from typing import (
    TYPE_CHECKING,
    Any,
    Final,
    Literal,
)

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.errors import (
    ComparisonWarning,
    EstimationError,
    ParameterError,
    TableError,
)
from taciturn.figures import beside
from taciturn.fits.leave_one_out import (
    first_cell,
    leave_one_out,
    observed_sample,
)
from taciturn.tables.checks import same_categories
from taciturn.validate import quoted

if TYPE_CHECKING:
    import pandas as pd
    from arviz import ELPDData

__all__ = ["checked_fits", "compare", "compared", "comparison_text", "loo"]

SMALL_DIFFERENCE: Final = (
    4.0  # in elpd; below it fits predict alike (Sivula, Magnusson, Matamoros & Vehtari 2025)
)
Floats = npt.NDArray[np.float64]
Method = Literal["stacking", "bb-pseudo-bma", "pseudo-bma"]


def loo(fit: xr.DataTree) -> "ELPDData":
    r"""Expected log predictive density of a fit by leave-one-out cross-validation.

    .. math::

        \text{elpd} &= \sum_{i=1}^{n} \log p(x_i \mid x_{-i}), \\
        p(x_i \mid x_{-i})
        &= \int p(x_i \mid x_{-i}, \vartheta)\, p(\vartheta \mid x_{-i})\, d\vartheta

    where :math:`x_i` is the cell of a sampled individual and :math:`x_{-i}` the cells
    of all others. The draws of a Bayesian fit, made with everybody in the sample, are
    weighted by Pareto-smoothed importance sampling to stand for those without `i`. All
    individuals of a cell have the same term, so it is computed once for each occupied
    cell. A plug-in estimator's term is exact: its estimate is made again without the
    individual. A `LinearPool` predicts by its mixture, :math:`\log \sum_m w_m\, p_m(x_i
    \mid x_{-i})`.

    Parameters
    ----------
    fit : DataTree
        What an estimator's `fit` returns; or another package's, with the sample table
        in ``observed_data`` (``count``) and, in ``log_likelihood``, one variable
        (chain, draw, individual) with the logarithm of :math:`p(x_i \mid x_{-i},
        \vartheta)`. Its columns stand in the order of the table's cells, the last
        variable running fastest, or have the categories of each individual as
        coordinates along their dimension.

    Returns
    -------
    arviz.ELPDData
        In nats, over `n` individuals: ``elpd``, its standard error ``se`` over
        individuals, ``p`` (how much lower it is than the log density of the same
        individuals with nobody left out; the intensity of a mixed Poisson model counts
        as a parameter, too), and by individual ``elpd_i`` and
        ``pareto_k``, in the order of the cells, whose categories are coordinates.
        ``pareto_k`` is the largest of the members' for a pool, and None for a plug-in
        estimator, whose ``n_samples`` is 0. Where a plug-in estimator gives an
        individual probability 0, ``elpd`` is minus infinity and ``se`` and ``p`` are
        NaN.

    Raises
    ------
    TableError
        No log likelihood or no sample in the fit, or one that does not match the other.
    EstimationError
        A plug-in estimator that has no estimate without one of the individuals.

    Warns
    -----
    ComparisonWarning
        k-hat is above ``good_k`` for some individuals, which is 0.7 from 2,200 draws on
        and less for fewer.

    Notes
    -----
    The likelihoods do not factorise, so that the terms are conditionals (Bürkner, Gabry
    & Vehtari 2021). Priors that depend on the sample size, and margins that are plugged
    in, stay as they are when an individual is left out.

    The elpd says how well a model predicts *which* cell somebody is in. Risk is about
    how many cells are empty and how uneven the others are: the fit with the higher elpd
    need not be the closer one in R2. See the page on methods.

    References
    ----------
    Vehtari, Gelman & Gabry (2017), Practical Bayesian model evaluation using
    leave-one-out cross-validation and WAIC, Statistics and Computing 27; Vehtari,
    Simpson, Gelman, Yao & Gabry (2024), Pareto smoothed importance sampling, JMLR 25;
    Bürkner, Gabry & Vehtari (2021), Computational Statistics 36.

    Examples
    --------
    >>> import taciturn as tc
    >>> religion = tc.load_dataset("area_by_religion")
    >>> sample = tc.draw_sample(religion, fraction=0.1, random_seed=1)
    >>> fit = tc.ChineseRestaurant().fit(sample, population_size=2449, random_seed=1)
    >>> result = tc.loo(fit)
    >>> result.n_data_points
    245
    >>> bool(result.elpd < -800)
    True
    """
    result = leave_one_out(fit, "the fit")
    _warn(result, "the fit", stacklevel=3)
    return result


def compare(fits: Mapping[str, xr.DataTree], *, method: Method = "stacking") -> "pd.DataFrame":
    r"""Compare fits of the same sample by leave-one-out cross-validation.

    Parameters
    ----------
    fits : mapping of str to DataTree
        At least two fits of the same sample table, as in `loo`. Their population sizes,
        structural zeros and known margins may differ: those are what a model knows, not
        what it predicts.
    method : {"stacking", "bb-pseudo-bma", "pseudo-bma"}
        How the weights are chosen. Stacking maximises the log score of the mixture,
        :math:`\sum_i \log \sum_k w_k\, p_k(x_i \mid x_{-i})`, over weights that sum
        to 1.

    Returns
    -------
    pandas.DataFrame
        One row a fit, the best first, in the columns of `arviz.compare`, not rounded:
        ``rank``, ``elpd_diff`` and ``dse`` (difference from the best and its standard
        error), ``p_worse``, ``diag_diff``, ``diag_elpd``, ``p``, ``elpd``, ``se`` and
        ``weight``; and ``high_k``, the share of individuals whose k-hat is too high. A
        fit that gives an observed individual probability 0 has ``elpd`` minus infinity,
        says so in ``diag_elpd``, and may still have a stacking weight: in a mixture the
        others can cover for it.

    Raises
    ------
    ParameterError
        Fewer than two fits, names that are not text, or an unknown method.
    TableError
        Fits of different samples, and what `loo` refuses.
    EstimationError
        No weights: all fits give the same individual probability 0; or, but for
        stacking, each gives one.

    Warns
    -----
    ComparisonWarning
        As in `loo`, for each fit.

    References
    ----------
    Yao, Vehtari, Simpson & Gelman (2018), Using stacking to average Bayesian predictive
    distributions, Bayesian Analysis 13; Sivula, Magnusson, Matamoros & Vehtari (2025),
    Uncertainty in Bayesian leave-one-out cross-validation based model comparison,
    Bayesian Analysis.

    Examples
    --------
    >>> import taciturn as tc
    >>> religion = tc.load_dataset("area_by_religion")
    >>> sample = tc.draw_sample(religion, fraction=0.1, random_seed=1)
    >>> models = {
    ...     "dirichlet": tc.DirichletLogLinear(),
    ...     "restaurant": tc.ChineseRestaurant(),
    ... }
    >>> given = {"population_size": 2449, "random_seed": 1}
    >>> fits = {name: model.fit(sample, **given) for name, model in models.items()}
    >>> table = tc.compare(fits)
    >>> list(table.index)
    ['dirichlet', 'restaurant']
    >>> round(float(table["weight"].sum()), 9)
    1.0
    """
    return compared(checked_fits(fits), method)


def comparison_text(table: "pd.DataFrame") -> str:
    """What `compare` found, in plain words."""
    best, *others = table.index
    if not np.isfinite(table.loc[best, "elpd"]):
        return "In words: every fit gives somebody in the sample probability 0, and none is best."
    said = [f"In words: {best!r} predicts the cell of a person left out of the sample best."]
    for name in others:
        difference, error = float(table.loc[name, "elpd_diff"]), float(table.loc[name, "dse"])
        if not np.isfinite(table.loc[name, "elpd"]):
            said.append(f"{name!r} gives somebody in the sample probability 0.")
        elif abs(difference) < SMALL_DIFFERENCE:
            behind = beside(abs(difference), SMALL_DIFFERENCE, decimals=1)
            said.append(
                f"{name!r} predicts alike: {behind} behind, where less than 4 counts as nothing."
            )
        else:
            clearly = "clearly" if -difference > 2 * error else "not clearly"
            said.append(
                f"{name!r} is {clearly} behind: by {-difference:.1f}, with standard error"
                f" {error:.1f}."
            )
    weights = [
        f"{weight:.2f} {name}" for name, weight in table["weight"].items() if weight >= 0.005
    ]
    said.append(f"Weights in a mixture: {', '.join(weights)}.")
    untrusted = [
        f"{beside(100 * share, 0, 100, decimals=1)}% of individuals for {name!r}"
        for name, share in table["high_k"].items()
        if share > 0
    ]
    if untrusted:
        said.append(f"Not to be trusted, k-hat being too high: {', '.join(untrusted)}.")
    said.append(
        "This is about which cell a person is in. It does not say which fit is nearer in R2, which"
        " depends on how many cells are empty and how uneven the others are."
    )
    return " ".join(said)


def checked_fits(fits: Any) -> dict[str, xr.DataTree]:
    """Fits by name, of the same sample."""
    if isinstance(fits, xr.DataTree) or not isinstance(fits, Mapping):
        raise ParameterError(f"fits must be a mapping of names to fits, got {type(fits).__name__}")
    if len(fits) < 2:
        raise ParameterError(f"a comparison needs at least two fits, got {list(fits)}")
    for name in fits:
        if not isinstance(name, str) or name in ("", ".", "..") or "/" in name:
            raise ParameterError(f"the name of a fit must be text without '/', got {quoted(name)}")
    (first, one), *others = (
        (name, observed_sample(fit, f"the fit {name!r}")) for name, fit in fits.items()
    )
    strata = {name: _strata(fit) for name, fit in fits.items()}
    for name, other in others:
        both = f"the fits {first!r} and {name!r}"
        if other.dims != one.dims:
            raise TableError(
                f"{both} are of different tables, with the variables {one.dims} and {other.dims}"
            )
        if strata[name] != strata[first]:
            raise TableError(
                f"{both} do not know the sample to be drawn in the same way: one says in which cell"
                " of a stratum an individual is, the other in which of the table or of other strata"
            )
        same_categories(one, other, names=(f"the fit {first!r}", f"the fit {name!r}"))
        if (differs := first_cell(one, other.values != one.values)) is not None:
            at, position = differs
            raise TableError(
                f"{both} are of different samples: {at} holds {one.values[position]} in the one and"
                f" {other.values[position]} in the other"
            )
    return dict(fits)


def _strata(fit: xr.DataTree) -> set[Hashable]:
    """The variables by which the sample of a fit was stratified."""
    if "constant_data" not in fit.children or "stratified" not in fit["constant_data"]:
        return set()
    return set(fit["constant_data"]["known_margins"].dims)


def _warn(result: "ELPDData", whose: str, *, stacklevel: int) -> None:
    if result.warning:
        high = result.pareto_k > result.good_k
        warnings.warn(
            f"k-hat of {whose} is above {result.good_k:.2f} for {int(high.sum())} of"
            f" {result.n_data_points} individuals: their leave-one-out terms cannot be trusted",
            ComparisonWarning,
            stacklevel=stacklevel,
        )


def compared(fits: Mapping[str, xr.DataTree], method: Method) -> "pd.DataFrame":
    """`compare` of fits that were checked."""
    import arviz as az

    if method not in ("stacking", "bb-pseudo-bma", "pseudo-bma"):
        raise ParameterError(
            f"method must be 'stacking', 'bb-pseudo-bma' or 'pseudo-bma', got {quoted(method)}"
        )
    results = {name: leave_one_out(fit, f"the fit {name!r}") for name, fit in fits.items()}
    for name, result in results.items():
        _warn(result, f"the fit {name!r}", stacklevel=4)
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", RuntimeWarning
        )  # of the optimiser, at the edge of the weights
        table: pd.DataFrame = az.compare(
            _with_finite_terms(results, method), method=method, round_to="none"
        )
    table["weight"] = table["weight"].clip(0) / table["weight"].clip(0).sum()
    table["se"] = [results[name].se for name in table.index]  # some methods have one of their own
    table["high_k"] = [
        (
            0.0
            if results[name].pareto_k is None
            else float((results[name].pareto_k > results[name].good_k).mean())
        )
        for name in table.index
    ]
    return _with_infinite_rows(table, results)


def _with_infinite_rows(table: "pd.DataFrame", results: "Mapping[str, ELPDData]") -> "pd.DataFrame":
    """The table with minus infinity for the fits that give somebody probability 0."""
    best = float(max(result.elpd for result in results.values()))
    for name, result in results.items():
        if not np.isfinite(result.elpd):
            worse = np.isfinite(best)
            columns = {
                "elpd": -inf,
                "elpd_diff": -inf if worse else nan,
                "p_worse": 1.0 if worse else nan,
            }
            columns |= {"se": nan, "dse": nan, "p": nan}
            table.loc[name, list(columns)] = list(columns.values())
            table.loc[name, "diag_elpd"] = (
                f"{int(np.isinf(result.elpd_i).sum())} with probability 0"
            )
    return table


def _with_finite_terms(results: "Mapping[str, ELPDData]", method: Method) -> "dict[str, ELPDData]":
    """The same with numbers in place of minus infinity, which `arviz.compare` leaves
    out of its differences.
    """
    terms = np.stack([result.elpd_i.values for result in results.values()])
    possible = np.isfinite(terms)
    never = np.flatnonzero(~possible.any(axis=0))
    if len(never):
        elpd_i = next(iter(results.values())).elpd_i
        at = ", ".join(
            f"{name}={elpd_i[name].values[never[0]]}"
            for name in elpd_i.coords
            if name != "individuals"
        )
        raise EstimationError(
            f"there are no weights: all fits give an individual of {at} probability 0"
        )
    if possible.all():
        return dict(results)
    if method == "stacking":
        # Far below every chance that counts, and high enough for the optimiser to have
        # a slope where a weight is 0.
        least = terms[possible].min() - 50
    elif possible.all(axis=1).any():
        least = -1e100  # no weight, as it should be
    else:
        raise EstimationError(
            f"there are no weights by {method}: each fit gives some individual probability 0"
        )
    # Fits that give nobody probability 0 rank above the others, however far behind.
    last = min((one.elpd for one in results.values() if one.elpd > -inf), default=inf) - 1
    finite = {}
    for name, result in results.items():
        elpd_i, elpd = result.elpd_i.clip(min=least), result.elpd
        own = elpd if elpd > -inf else min(float(elpd_i.sum()), last)
        finite[name] = replace(result, elpd=own, elpd_i=elpd_i)
    return finite
