"""Plots of the posterior distribution of a risk measure."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
import xarray as xr

from taciturn.errors import ParameterError
from taciturn.figures import beside
from taciturn.fits.risk import RISK_BY, assess
from taciturn.plots.rows import Row, draw_intervals, draw_rows, whole_numbers
from taciturn.plots.shared import plain, plain_labels, pyplot
from taciturn.risk.table_risk import DEFAULT_WEIGHTS
from taciturn.schema import RISK_MEASURES
from taciturn.validate import interval_probability, quoted

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_risk"]

_IN_WORDS: Final = {
    "tau1": "tau1: people alone in their cell, in sample and population",
    "tau2": "tau2: correct matches to be expected",
}


def plot_risk(
    fits: xr.DataTree | Mapping[str, xr.DataTree],
    *,
    measure: Literal["R1", "R2", "tau1", "tau2"] = "R2",
    by: str | None = None,
    probability: float = 0.95,
    truth: float | None = None,
    ax: "Axes | None" = None,
) -> "Axes":
    """Posterior distribution of a risk measure, one row per fit, or per category of a
    variable.

    Each row shows the density of the draws, or bars where they are whole numbers
    (``tau1``), with their median as a point and the equal-tailed credible interval as a
    line below. With `by` a row has the median and the interval of a category, in the
    order of the table, and the share of draws with nobody in it where there are any.

    Parameters
    ----------
    fits : DataTree or mapping of str to DataTree
        One fit, or several by name.
    measure : {"R2", "R1", "tau1", "tau2"}
        The risk measure.
    by : str, optional
        Variable of a single fit each of whose categories has a row, as a table of its
        own.
    probability : float
        Probability of the interval, from 0.01 to 0.9999.
    truth : float, optional
        A known value to mark, in studies; not with `by`.
    ax : matplotlib Axes, optional
        Axes to draw on; by default those of a new figure.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    MissingDependencyError
        matplotlib is not installed.
    ParameterError
        An unknown measure, no fits, a probability out of range; `by` that is no
        variable of the table, or with several fits or a `truth`.

    Examples
    --------
    >>> import taciturn as tc
    >>> census = tc.load_dataset("area_by_religion")
    >>> sample = tc.draw_sample(census, fraction=0.1, random_seed=1)
    >>> fit = tc.LogLinear().fit(sample, population_size=2449, draws=100, random_seed=1)
    >>> tc.plot_risk({"log-linear": fit}).get_xlabel()
    'R2'
    >>> tc.plot_risk(fit, by="area").get_ylabel()
    'area'
    """
    plt = pyplot()
    if not isinstance(fits, xr.DataTree | Mapping):
        raise ParameterError(
            f"fits must be a fit or a mapping of names to fits, got {type(fits).__name__}"
        )
    named = {"": fits} if isinstance(fits, xr.DataTree) else dict(fits)
    if not named:
        raise ParameterError("there is no fit to plot")
    if measure not in RISK_MEASURES:
        raise ParameterError(f"measure must be 'R1', 'R2', 'tau1' or 'tau2', got {quoted(measure)}")
    probability = interval_probability(probability)
    tails = [(1 - probability) / 2, 0.5, (1 + probability) / 2]
    if by is not None:
        risk = _risk_by(named, by, truth)
        if ax is None:
            _, ax = plt.subplots(figsize=(6.4, 1 + 0.26 * risk.sizes[by]), layout="constrained")
        _draw_categories(ax, risk[measure], tails)
        ax.set_xlabel(_IN_WORDS.get(measure, measure))
        return ax
    if ax is None:
        _, ax = plt.subplots(figsize=(6.4, 1.2 + 0.8 * len(named)), layout="constrained")
    rows = []
    for name, fit in named.items():
        risk = (fit if "risk" in fit.children else assess(fit))["risk"].to_dataset()
        draws = risk[measure].values.ravel().astype(float)
        rows.append(Row(str(name), draws, *np.quantile(draws, tails)))
    draw_rows(ax, rows, whole=measure == "tau1")
    if truth is not None:
        ax.axvline(truth, color="black", linestyle="--", linewidth=1, label="true value")
        ax.legend(frameon=False, loc="lower right", bbox_to_anchor=(1.0, 1.0))  # not on the line
    ax.set_xlabel(_IN_WORDS.get(measure, measure))
    return ax


def _risk_by(named: Mapping[str, xr.DataTree], by: Any, truth: float | None) -> xr.Dataset:
    """The risk of each category of a variable, from the only fit."""
    if not isinstance(by, str):
        raise ParameterError(f"by must be the name of a variable, got {quoted(by)}")
    if len(named) > 1 or truth is not None:
        given = "a truth" if truth is not None else f"{len(named)} fits"
        raise ParameterError(f"by shows the categories of a single fit: leave it out with {given}")
    (fit,) = named.values()
    group = f"{RISK_BY}{by}"
    if group not in fit.children:
        recorded = fit["risk"].attrs.get("weights") if "risk" in fit.children else None
        fit = assess(fit, weights=DEFAULT_WEIGHTS if recorded is None else recorded, by=by)
    return fit[group].to_dataset()


def _draw_categories(ax: "Axes", draws: xr.DataArray, tails: Sequence[float]) -> None:
    """Intervals of (chain, draw, category), and where categories are empty."""
    (variable,) = set(draws.dims) - {"chain", "draw"}
    ends = draws.quantile(tails, ("chain", "draw")).transpose(variable, "quantile").values
    labels = plain_labels(draws.indexes[variable].tolist())
    draw_intervals(ax, labels, ends, colour="C0")
    for place, empty in enumerate(reversed(draws["empty"].values.tolist())):
        if empty > 0:
            said = f"empty in {beside(100 * empty, 0, 100, decimals=1)}% of draws"
            ax.text(
                1.01, place, said, transform=ax.get_yaxis_transform(), va="center", size="small"
            )
    least = 0.1
    if draws.dtype.kind == "i":
        least = 1.0
        whole_numbers(ax)
    ax.set_xlim(0, max(1.05 * float(ends.max()), least))
    ax.set_ylabel(plain(variable))
