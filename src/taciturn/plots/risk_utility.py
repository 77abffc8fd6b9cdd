"""Plot of risk against information loss."""

from typing import TYPE_CHECKING, Final, Literal

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.errors import ParameterError
from taciturn.plots.shared import plain, pyplot

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_risk_utility"]

_UTILITY_IN_WORDS: Final = {
    "hellinger": "Hellinger distance from the original",
    "mean_absolute_error": "mean absolute error, individuals a cell",
    "mean_relative_error": "mean relative error",
    "spearman": "rank correlation with the original",
    "cramers_v_change": "change in Cramér's V",
    "chi_squared_change": "relative change in chi-squared",
    "between_variance_change": "relative change in the variance between groups",
}


def plot_risk_utility(
    result: xr.Dataset,
    *,
    utility: str = "hellinger",
    risk: Literal["R1", "R2"] = "R2",
    ax: "Axes | None" = None,
) -> "Axes":
    """Risk against information loss, one point with its intervals per method.

    Parameters
    ----------
    result : Dataset
        Result of `risk_utility`.
    utility : str
        The measure of information loss on the horizontal axis.
    risk : {"R2", "R1"}
        The measure of risk on the vertical axis.
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
        A measure that is not in the result.

    Examples
    --------
    >>> import taciturn as tc
    >>> table = tc.load_dataset("area_by_religion")
    >>> rounded = tc.random_round(table, rounding_base=3, replicates=100, random_seed=1)
    >>> found = tc.risk_utility({"as it is": table, "round to 3": rounded}, table=table)
    >>> tc.plot_risk_utility(found).get_ylabel()
    'R2'
    """
    plt = pyplot()
    if "protection" not in getattr(result, "dims", ()):
        raise ParameterError(
            f"result must be what risk_utility returns, got {type(result).__name__}"
        )
    measures = [str(name) for name in result.data_vars if name not in ("R1", "R2")]
    if utility not in measures:
        raise ParameterError(
            f"utility must be one of {', '.join(map(repr, measures))}, got {utility!r}"
        )
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
            label=" " + plain(name),  # a label that begins with "_" is left out of a legend
        )
    ax.set_xlabel(_UTILITY_IN_WORDS.get(utility, utility.replace("_", " ")))
    ax.set_ylabel(risk)
    ax.legend(
        frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0)
    )  # beside the points, not on them
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def _arms(values: xr.DataArray) -> npt.NDArray[np.float64]:
    """How far the interval reaches below and above the mean, which may lie outside a
    narrow one.
    """
    mean, lower, upper = (float(values.sel(statistic=name)) for name in ("mean", "lower", "upper"))
    return np.array([[max(mean - lower, 0.0)], [max(upper - mean, 0.0)]])
