"""Plot of the posterior distribution of a risk measure."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Literal

import numpy as np
import xarray as xr

from taciturn.errors import ParameterError
from taciturn.fits.risk import assess
from taciturn.plots.rows import Row, draw_rows
from taciturn.plots.shared import pyplot
from taciturn.schema import RISK_MEASURES
from taciturn.validate import real_number

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
    probability: float = 0.95,
    truth: float | None = None,
    ax: "Axes | None" = None,
) -> "Axes":
    """Posterior distribution of a risk measure, one row per fit.

    Each row shows the density of the draws, or bars where they are whole numbers
    (``tau1``), with their median as a point and the equal-tailed credible interval as a
    line below.

    Parameters
    ----------
    fits : DataTree or mapping of str to DataTree
        One fit, or several by name.
    measure : {"R2", "R1", "tau1", "tau2"}
        The risk measure.
    probability : float
        Probability of the interval, from 0.01 to 0.9999.
    truth : float, optional
        A known value to mark, in studies.
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
        An unknown measure, no fits, or a probability out of range.

    Examples
    --------
    >>> import taciturn as tc
    >>> census = tc.load_dataset("area_by_religion")
    >>> sample = tc.draw_sample(census, fraction=0.1, random_seed=1)
    >>> fit = tc.LogLinear().fit(sample, population_size=2449, draws=100, random_seed=1)
    >>> tc.plot_risk({"log-linear": fit}).get_xlabel()
    'R2'
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
        raise ParameterError(f"measure must be 'R1', 'R2', 'tau1' or 'tau2', got {measure!r}")
    probability = real_number(probability, "probability", least=0.01, most=0.9999)
    if ax is None:
        _, ax = plt.subplots(figsize=(6.4, 1.2 + 0.8 * len(named)), layout="constrained")
    tails = [(1 - probability) / 2, 0.5, (1 + probability) / 2]
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
