"""Plot of predictive checks."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.fits.checks import (
    STATISTICS,
    compared_with_sample,
    in_words,
    is_counted,
    replicated_statistics,
)
from taciturn.fits.parts import fit_parts
from taciturn.plots.rows import Row, draw_rows
from taciturn.plots.shared import pyplot
from taciturn.validate import interval_probability

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["plot_checks"]

_MARKS: Final = ("lower", "mean", "upper")


def plot_checks(fit: xr.DataTree, *, probability: float = 0.95) -> "npt.NDArray[np.object_]":
    """Predictive checks: the sample among samples that the fitted model gives.

    One panel for each statistic of `fits.predictive_checks`: how it is distributed over
    the replicates, with their mean as a point and their interval as a line below, and
    the sample's value as a vertical line. The word MISSED stands beside an interval
    that does not contain it. A pool or a stack has a row for all replicates together,
    and one for those of each member.

    Parameters
    ----------
    fit : DataTree
        A fit with replicated samples, as all estimators of this package return it.
    probability : float
        Of the interval, from 0.01 to 0.9999.

    Returns
    -------
    array of matplotlib.axes.Axes, shape (4,)
        Empty cells, uniques, pairs, entropy.

    Raises
    ------
    MissingDependencyError
        matplotlib is not installed.
    TableError
        The fit holds no replicates of the sample, or they have other dimensions.
    ParameterError
        `probability` out of range.

    Examples
    --------
    >>> import taciturn as tc
    >>> census = tc.load_dataset("area_by_religion")
    >>> sample = tc.draw_sample(census, fraction=0.1, random_seed=1)
    >>> fit = tc.LogLinear().fit(sample, population_size=2449, draws=100, random_seed=1)
    >>> axes = tc.plot_checks(fit)
    >>> axes[1].get_title().startswith("uniques")
    True
    """
    plt = pyplot()
    probability = interval_probability(probability)
    found = replicated_statistics(fit, fit_parts(fit))
    checks = compared_with_sample(found, probability=probability)
    names, made_by = zip(*found.made_by, strict=True)
    if len(names) == 1:
        names = ("",)
    figure, axes = plt.subplots(
        2, 2, figsize=(8.6, 2.6 + 1.5 * len(names)), sharey=True, layout="constrained"
    )
    for number, (statistic, ax) in enumerate(zip(STATISTICS, axes.flat, strict=True)):
        one = checks.sel(statistic=statistic)
        rows = [
            Row(name, draws[:, number], *(np.atleast_1d(one[mark])[at] for mark in _MARKS))
            for at, (name, draws) in enumerate(zip(names, made_by, strict=True))
        ]
        draw_rows(ax, rows, whole=is_counted(statistic))
        _mark_sample(ax, rows, float(one["observed"]))
        ax.set_title(
            f"{STATISTICS[statistic]}: {in_words(one['observed'], statistic)} in the sample"
        )
    _legend(figure, probability)
    return np.asarray(axes.ravel(), dtype=np.object_)


def _mark_sample(ax: "Axes", rows: Sequence[Row], observed: float) -> None:
    """Draw the sample's value, and say beside each interval that it misses that it
    does.
    """
    ax.axvline(observed, color="black", linestyle="--", linewidth=1.2)
    for place, row in enumerate(reversed(rows)):
        if not row.lower <= observed <= row.upper:
            ax.text(
                1.01,
                place,
                "MISSED",
                transform=ax.get_yaxis_transform(),
                fontweight="bold",
                fontsize="small",
                verticalalignment="center",
            )


def _legend(figure: "Figure", probability: float) -> None:
    from matplotlib.lines import Line2D

    interval = f"mean and {100 * probability:g} % interval of replicates"
    handles = [
        Line2D([], [], color="black", linestyle="--", linewidth=1.2, label="the sample"),
        Line2D([], [], color="grey", linewidth=3, marker="o", markersize=6, label=interval),
    ]
    figure.legend(handles=handles, frameon=False, ncols=2, loc="outside lower center")
