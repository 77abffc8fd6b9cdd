"""Plots of risk; each returns the matplotlib axes, so that a user can go on from there."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

import numpy as np
import xarray as xr

from taciturn.assessment import assess
from taciturn.errors import MissingDependencyError, ParameterError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_risk"]


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
        Of the interval, between 0 and 1.
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
        An unknown measure, no fits, or a probability outside (0, 1).

    Examples
    --------
    >>> import taciturn as tc
    >>> sample = tc.draw_sample(tc.load_dataset("area_by_religion"), fraction=0.1, random_seed=1)
    >>> fit = tc.LogLinear().fit(sample, population_size=2449, draws=100, random_seed=1)
    >>> tc.plot_risk({"log-linear": fit}).get_xlabel()
    'R2'
    """
    try:
        from matplotlib import pyplot as plt
    except ImportError as error:
        raise MissingDependencyError("plots need matplotlib: pip install 'taciturn[plots]'") from error
    import arviz as az

    if not isinstance(fits, xr.DataTree | Mapping):
        raise ParameterError(f"fits must be a fit or a mapping of names to fits, got {type(fits).__name__}")
    named = {"": fits} if isinstance(fits, xr.DataTree) else dict(fits)
    if not named:
        raise ParameterError("there is no fit to plot")
    if measure not in ("R1", "R2", "tau1", "tau2"):
        raise ParameterError(f"measure must be 'R1', 'R2', 'tau1' or 'tau2', got {measure!r}")
    if not 0 < probability < 1:
        raise ParameterError(f"probability must be between 0 and 1, got {probability}")
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
