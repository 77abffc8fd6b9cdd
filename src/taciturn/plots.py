"""Plots of risk; each returns the matplotlib axes, so that a user can go on from there."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.assessment import assess
from taciturn.errors import MissingDependencyError, ParameterError
from taciturn.validate import number_between

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_risk", "plot_risk_utility"]

_UTILITY_IN_WORDS: Final = {
    "hellinger": "Hellinger distance from the original",
    "mean_absolute_error": "mean absolute error, individuals a cell",
    "mean_relative_error": "mean relative error",
    "cramers_v_change": "change in Cramér's V",
}


def plot_risk(
    fits: xr.DataTree | Mapping[str, xr.DataTree],
    *,
    measure: Literal["R1", "R2", "tau1", "tau2"] = "R2",
    probability: float = 0.95,
    truth: float | None = None,
    ax: "Axes | None" = None,
) -> "Axes":
    """Posterior distribution of a risk measure, one row per fit.

    Each row shows the density of the draws, their median as a point and the equal-tailed credible interval as a bar.

    Parameters
    ----------
    fits : DataTree or mapping of str to DataTree
        One fit, or several under their names.
    measure : {"R2", "R1", "tau1", "tau2"}
        What to show.
    probability : float
        Of the interval, from 0.01 to 0.9999.
    truth : float, optional
        A known value to mark, in studies.
    ax : matplotlib Axes, optional
        Where to draw; a new figure without it.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    MissingDependencyError
        matplotlib is not installed.
    ParameterError
        An unknown measure, no fits, or a probability out of range.

    Examples
    --------
    >>> import taciturn as tc
    >>> sample = tc.draw_sample(tc.load_dataset("area_by_religion"), fraction=0.1, random_seed=1)
    >>> fit = tc.LogLinear().fit(sample, population_size=2449, draws=100, random_seed=1)
    >>> tc.plot_risk({"log-linear": fit}).get_xlabel()
    'R2'
    """
    import arviz as az

    plt = _pyplot()
    if not isinstance(fits, xr.DataTree | Mapping):
        raise ParameterError(f"fits must be a fit or a mapping of names to fits, got {type(fits).__name__}")
    named = {"": fits} if isinstance(fits, xr.DataTree) else dict(fits)
    if not named:
        raise ParameterError("there is no fit to plot")
    if measure not in ("R1", "R2", "tau1", "tau2"):
        raise ParameterError(f"measure must be 'R1', 'R2', 'tau1' or 'tau2', got {measure!r}")
    probability = number_between(probability, "probability", 0.01, 0.9999)
    if ax is None:
        _, ax = plt.subplots(figsize=(6.4, 1.2 + 0.8 * len(named)), layout="constrained")
    tails = [(1 - probability) / 2, 0.5, (1 + probability) / 2]
    for row, (_, fit) in enumerate(reversed(named.items())):
        risk = (fit if "risk" in fit.children else assess(fit))["risk"].to_dataset()
        draws = risk[measure].values.ravel().astype(float)
        low, middle, high = np.quantile(draws, tails)
        color = f"C{(len(named) - 1 - row) % 10}"
        if np.ptp(draws) > 0:
            grid, density, _ = az.kde(draws)
            ax.fill_between(grid, row, row + 0.75 * density / density.max(), color=color, alpha=0.35, linewidth=0)
        ax.plot([low, high], [row, row], color=color, linewidth=3, solid_capstyle="butt")
        ax.plot(middle, row, "o", color=color, markersize=6)
    if truth is not None:
        ax.axvline(truth, color="black", linestyle="--", linewidth=1, label="true value")
        ax.legend(frameon=False, loc="upper right")
    ax.set_yticks(range(len(named)), [str(name) for name in reversed(named)])
    ax.set_ylim(-0.35, len(named))
    ax.set_xlabel(measure)
    ax.spines[["left", "top", "right"]].set_visible(False)
    ax.tick_params(axis="y", length=0)
    return ax


def plot_risk_utility(
    result: xr.Dataset,
    *,
    utility: str = "hellinger",
    risk: Literal["R1", "R2"] = "R2",
    ax: "Axes | None" = None,
) -> "Axes":
    """Risk against information loss, a point with its intervals for each method.

    Parameters
    ----------
    result : Dataset
        What `risk_utility` returns.
    utility : str
        The measure of information loss on the horizontal axis.
    risk : {"R2", "R1"}
        The measure of risk on the vertical axis.
    ax : matplotlib Axes, optional
        Where to draw; a new figure without it.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    MissingDependencyError
        matplotlib is not installed.
    ParameterError
        A measure that the result does not have.

    Examples
    --------
    >>> import taciturn as tc
    >>> table = tc.load_dataset("area_by_religion")
    >>> rounded = tc.random_round(table, base=3, replicates=100, random_seed=1)
    >>> found = tc.risk_utility({"as it is": table, "round to 3": rounded}, original=table)
    >>> tc.plot_risk_utility(found).get_ylabel()
    'R2'
    """
    plt = _pyplot()
    if "protection" not in getattr(result, "dims", ()):
        raise ParameterError(f"result must be what risk_utility returns, got {type(result).__name__}")
    measures = [str(name) for name in result.data_vars if name not in ("R1", "R2")]
    if utility not in measures:
        raise ParameterError(f"utility must be one of {', '.join(map(repr, measures))}, got {utility!r}")
    if risk not in ("R1", "R2"):
        raise ParameterError(f"risk must be 'R1' or 'R2', got {risk!r}")
    if ax is None:
        _, ax = plt.subplots(figsize=(6.4, 4.4), layout="constrained")
    for number, name in enumerate(result["protection"].values):
        x, y = (result[which].sel(protection=name) for which in (utility, risk))
        ax.errorbar(
            float(x.sel(statistic="mean")),
            float(y.sel(statistic="mean")),
            xerr=_arms(x),
            yerr=_arms(y),
            fmt="o",
            color=f"C{number % 10}",
            capsize=3,
            label=" " + str(name).replace("$", r"\$"),  # neither a formula nor, after "_", left out
        )
    ax.set_xlabel(_UTILITY_IN_WORDS.get(utility, utility.replace("_", " ")))
    ax.set_ylabel(risk)
    ax.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))  # beside the points, not on them
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def _arms(values: xr.DataArray) -> npt.NDArray[np.float64]:
    """How far the interval reaches below and above the mean, which may lie outside of a narrow one."""
    mean, lower, upper = (float(values.sel(statistic=name)) for name in ("mean", "lower", "upper"))
    return np.array([[max(mean - lower, 0.0)], [max(upper - mean, 0.0)]])


def _pyplot() -> Any:
    try:
        from matplotlib import pyplot as plt
    except ImportError as error:
        raise MissingDependencyError("plots need matplotlib: pip install 'taciturn[plots]'") from error
    return plt
