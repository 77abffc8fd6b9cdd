"""Predictive checks: whether the sample looks like samples of the fitted model, in
statistics that bear on the risk.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.errors import TableError
from taciturn.figures import beside
from taciturn.fits.mixtures import fit_makers
from taciturn.fits.parts import FitParts, fit_parts
from taciturn.fits.unlabelled import attained_quantiles
from taciturn.information.entropies import entropy
from taciturn.schema import draw_dims, split_draws, table_dims
from taciturn.validate import interval_probability

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "STATISTICS",
    "Replicated",
    "check_frame",
    "check_lines",
    "checks_of",
    "compared_with_sample",
    "in_words",
    "inside",
    "is_counted",
    "is_rough",
    "missed",
    "missed_lines",
    "of_whole_fit",
    "predictive_checks",
    "replicated_statistics",
]

STATISTICS: Final = {
    "empty_cells": "empty cells",
    "uniques": "uniques",
    "pairs": "pairs",
    "entropy": "entropy (nats)",
}
"""What is compared, in words."""
_DECIMALS: Final = 12  # an entropy is a sum: tables that differ in their order only are to tie

_WIDTHS: Final = (9, 9, 20, 8, 8)
_COMPARED: Final = ("mean", "lower", "upper", "lower_tail", "upper_tail")

Floats = npt.NDArray[np.float64]


def predictive_checks(fit: xr.DataTree, *, probability: float = 0.95) -> xr.Dataset:
    r"""Compare the sample with samples that the fitted model gives, in what bears on
    the risk.

    For a statistic `T`, the sample `f` and replicates :math:`f^{rep} \sim p(f^{rep}
    \mid f)` of the same size:

    .. math::

        P(T(f^{rep}) \le T(f) \mid f)
        \qquad\text{and}\qquad P(T(f^{rep}) \ge T(f) \mid f)

    Parameters
    ----------
    fit : DataTree
        A fit with ``count`` in the group ``posterior_predictive``, as all estimators
        of this package return it.
    probability : float
        Of the interval, from 0.01 to 0.9999.

    Returns
    -------
    Dataset
        Dim ``statistic``: ``empty_cells``; ``uniques``, cells with one individual;
        ``pairs``, cells with two; ``entropy`` in nats. Structural zeros are no cells.
        For a pool or a stack also ``member``: ``all``, their replicates together, and
        each member's own.

        Variables: ``observed`` in the sample; ``mean``, ``lower`` and ``upper`` of the
        replicates, the smallest values that at least `(1 - probability) / 2` and `(1 +
        probability) / 2` of them do not exceed; ``lower_tail`` and ``upper_tail``, the
        two probabilities above, which both count ties and so add up to more than 1.

    Raises
    ------
    TableError
        The fit holds no replicates of the sample, or they have other dimensions.
    ParameterError
        `probability` out of range.

    Notes
    -----
    *Ties.* Counts tie often. The mid-p value, which gives half of the ties to either
    side, is ``(lower_tail + 1 - upper_tail) / 2``.

    *Interpretation.* The parameters were fitted to the sample, so where the model holds
    the probabilities are not uniform but nearer to 1/2: a small one says more than a
    middling one. ``ChineseRestaurant`` is fitted to the number of filled cells itself
    and can hardly miss it. A pool is spread as wide as its members disagree; look at
    each. All this is about samples of size `n`: a model may give samples like this one
    and still be wrong about what the population adds between `n` and `N`.

    *Entropy.* Chance makes a replicate uneven twice: in the sample from which the
    parameters were learned, and again in the replicate itself. The same holds for what
    a model adds to the sample in a draw of the population. Where the table is nearly
    even, and its risk therefore small, replicates have less entropy than the sample for
    this reason alone, and the risk is overestimated.

    *Weights.* Replicates have each cell at the rate that the weights say. With an
    effective size below that of the sample the comparison is shown, and nothing is
    called missed: replicates are drawn one by one, the sample was not.

    References
    ----------
    Gelman, Meng & Stern (1996), Posterior predictive assessment of model fitness via
    realized discrepancies, Statistica Sinica 6, 733-807.

    Examples
    --------
    >>> import taciturn as tc
    >>> religion = tc.load_dataset("area_by_religion")
    >>> sample = tc.draw_sample(religion, fraction=0.1, random_seed=1)
    >>> fit = tc.DirichletLogLinear().fit(sample, population_size=2449, random_seed=1)
    >>> checks = tc.fits.predictive_checks(fit)
    >>> int(checks["observed"].sel(statistic="uniques")) == int((sample == 1).sum())
    True
    >>> bool(checks["lower_tail"].sel(statistic="uniques") > 0.025)
    True
    """
    probability = interval_probability(probability)
    return checks_of(fit, fit_parts(fit), probability=probability)


def checks_of(fit: xr.DataTree, parts: FitParts, *, probability: float = 0.95) -> xr.Dataset:
    """`predictive_checks` of a fit with these parts."""
    found = compared_with_sample(replicated_statistics(fit, parts), probability=probability)
    return found.assign_attrs(together=1) if parts.together else found


def is_rough(checks: xr.Dataset) -> bool:
    """Whether nothing follows from what `predictive_checks` found, as people were
    sampled together.
    """
    return "together" in checks.attrs


@dataclass(frozen=True)
class Replicated:
    """The statistics of the sample and of its replicates.

    Attributes
    ----------
    observed : array, shape (statistic,)
        Of the sample.
    made_by : list of (str, array of shape (replicates, statistic))
        Of the replicates: ``all`` and, for a mixture, those of each member.
    """

    observed: Floats
    made_by: list[tuple[str, Floats]]


def replicated_statistics(fit: xr.DataTree, parts: FitParts) -> Replicated:
    """The statistics of `predictive_checks`, for each replicate that a fit holds."""
    samples = _replicates(fit, parts)
    blocks = [_statistics(part, parts.cells) for part in split_draws(samples)]
    replicated = np.concatenate([block.reshape(-1, len(STATISTICS)) for block in blocks])
    replicated = replicated.reshape(*samples.shape[:2], -1)
    makers = fit_makers(fit, chains=samples.sizes["chain"], draws=samples.sizes["draw"])
    made_by = [("all", replicated.reshape(-1, len(STATISTICS)))]
    if len(makers) > 1:
        made_by += [(name, replicated[own.made]) for name, own in makers.items() if own.made.any()]
    return Replicated(_statistics(parts.sample, parts.cells), made_by)


def compared_with_sample(found: Replicated, *, probability: float) -> xr.Dataset:
    """What `predictive_checks` returns."""
    tails = ((1 - probability) / 2, (1 + probability) / 2)
    values = [_compare(found.observed, own, tails) for _, own in found.made_by]
    checks = xr.Dataset(
        {
            name: (("member", "statistic"), column)
            for name, column in zip(_COMPARED, np.stack(values, axis=1), strict=True)
        },
        coords={"member": [name for name, _ in found.made_by], "statistic": list(STATISTICS)},
        attrs={"probability": probability},
    ).assign(observed=("statistic", found.observed))
    return checks if len(found.made_by) > 1 else checks.squeeze("member", drop=True)


def _replicates(fit: xr.DataTree, parts: FitParts) -> xr.DataArray:
    """Samples that the fitted model gives, (chain, draw, *variables)."""
    predictive = fit["posterior_predictive"].to_dataset()
    if "count" not in predictive:
        raise TableError(
            "the fit has no 'count' in the group 'posterior_predictive', so there is nothing to"
            " check"
        )
    expected = {"chain", "draw", *parts.variables}
    if set(predictive["count"].dims) != expected:
        raise TableError(
            f"the replicates must have the dimensions {sorted(expected)}, got"
            f" {predictive['count'].dims}"
        )
    return predictive["count"].transpose("chain", "draw", *parts.variables)


def check_frame(checks: xr.Dataset) -> "pd.DataFrame":
    """What `predictive_checks` found as text: a row for each statistic."""
    import pandas as pd

    together = of_whole_fit(checks)
    rows = {}
    for name in map(str, checks["statistic"].values):
        one = together.sel(statistic=name)
        seen, low, high = _seen_and_interval(one)
        mean = f"{float(one['mean']):.{1 if is_counted(name) else 3}f}"
        tails = [
            beside(float(one[which]), 0, 1, decimals=3) for which in ("lower_tail", "upper_tail")
        ]
        rows[STATISTICS[name]] = [seen, mean, f"{low} to {high}", *tails]
    interval = f"{100 * checks.attrs['probability']:g} % interval"
    columns = ["sample", "mean", interval, "P(<=)", "P(>=)"]
    return pd.DataFrame.from_dict(rows, orient="index", columns=columns)


def check_lines(checks: xr.Dataset) -> list[str]:
    """What `predictive_checks` found: a line for each statistic, and one for each that
    is outside its interval.
    """
    frame = check_frame(checks)
    rows = [
        ["", *frame.columns],
        *([name, *row] for name, row in zip(frame.index, frame.values, strict=True)),
    ]
    lines = [
        f"{name:<16}"
        + "".join(f" {text:>{width - 1}}" for text, width in zip(texts, _WIDTHS, strict=True))
        for name, *texts in rows
    ]
    return lines + missed_lines(checks)


def missed_lines(checks: xr.Dataset) -> list[str]:
    """In words, which observed values lie outside the interval of the replicates, and
    whose.
    """
    lines = [f"MISSED: {text}" for text in missed(checks)]
    if "member" in checks.dims:
        for name in checks["member"].values[1:]:
            own = checks.sel(member=name)
            lines += [f"MISSED: {text}" for text in _missed(own, f"its member {name}")]
    return lines


def of_whole_fit(checks: xr.Dataset) -> xr.Dataset:
    """What `predictive_checks` found of all replicates together."""
    return checks.isel(member=0, drop=True) if "member" in checks.dims else checks


def inside(checks: xr.Dataset) -> xr.DataArray:
    """Whether each observed value lies in the interval of the replicates."""
    return (checks["lower"] <= checks["observed"]) & (checks["observed"] <= checks["upper"])


def missed(checks: xr.Dataset) -> tuple[str, ...]:
    """In words, which observed values lie outside the interval of the replicates of the
    whole fit; those of members of a mixture may miss on either side of it.
    """
    who = "the mixture" if "member" in checks.dims else "the fitted model"
    return _missed(of_whole_fit(checks), who)


def _missed(checks: xr.Dataset, who: str) -> tuple[str, ...]:
    if is_rough(checks):
        return ()
    texts = []
    for name in checks["statistic"].values[~inside(checks).values]:
        one = checks.sel(statistic=name)
        seen, low, high = _seen_and_interval(one)
        texts.append(
            f"{STATISTICS[name]}, {seen} in the sample, {low} to {high} in samples of {who}"
        )
    return tuple(texts)


def is_counted(statistic: str) -> bool:
    """Whether a statistic is a whole number."""
    return statistic != "entropy"


def in_words(value: xr.DataArray, statistic: str, *limits: float) -> str:
    """A value of a statistic with as many decimals as are shown, or as many more as
    keep it on its side of limits.
    """
    return beside(float(value), *limits, decimals=0 if is_counted(statistic) else 3)


def _seen_and_interval(one: xr.Dataset) -> tuple[str, str, str]:
    """What was observed of a statistic, and both ends of the interval; what is outside
    is seen to be, also beside ends that are rounded.
    """
    name, outside = str(one["statistic"].values), not inside(one)
    seen = [float(one["observed"])] if outside else []
    low, high = (in_words(one[end], name, *seen) for end in ("lower", "upper"))
    ends = [float(low), float(high)] if outside else []
    return in_words(one["observed"], name, *ends), low, high


def _statistics(table: xr.DataArray, cells: int) -> Floats:
    """The statistics of each table, on a new last axis."""
    dims = table_dims(table)
    table = table.transpose(*draw_dims(table), *dims)
    counts = (cells - (table > 0).sum(dims), (table == 1).sum(dims), (table == 2).sum(dims))
    return np.stack([*counts, entropy(table).round(_DECIMALS)], axis=-1).astype(float)


def _compare(observed: Floats, replicated: Floats, tails: tuple[float, float]) -> Floats:
    """Rows `_COMPARED`, one column for each statistic, from replicates along the first
    axis.
    """
    lower, upper = attained_quantiles(replicated, tails, axis=0)
    below, above = (replicated <= observed).mean(axis=0), (replicated >= observed).mean(axis=0)
    return np.stack([replicated.mean(axis=0), lower, upper, below, above])
