"""Plots of risk; each returns the matplotlib axes, to be refined further."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.errors import MissingDependencyError, ParameterError
from taciturn.fits.risk import assess
from taciturn.schema import RISK_MEASURES
from taciturn.validate import real_number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_attack", "plot_risk", "plot_risk_utility"]

_UTILITY_IN_WORDS: Final = {
    "hellinger": "Hellinger distance from the original",
    "mean_absolute_error": "mean absolute error, individuals a cell",
    "mean_relative_error": "mean relative error",
    "cramers_v_change": "change in Cramér's V",
}

_ATTACK_COLOURS: Final = {"published": "#dddddd", "disclosed": "black", "not asked for": "white"}
_RISK_IN_WORDS: Final = r"risk $1/\log_2 m$ (1/bits)"
_MOST_LABELS: Final = 40  # that are legible on one axis


def plot_attack(
    bounds: xr.Dataset, *, ax: "Axes | None" = None
) -> "Axes | npt.NDArray[np.object_]":
    """Heat map of the risk of each cell that is not published.

    Cells that are disclosed without being published are black and hatched, published
    ones grey, those that were not asked for white. The colours of the others range from
    no risk to the risk of a cell with two possible values, and can be distinguished by
    colour-blind readers and in print.

    Parameters
    ----------
    bounds : Dataset
        Result of `attacker_bounds`, over one to three variables: columns; rows and
        columns; or rows, columns and one map for each category of the third.
        ``bounds.transpose(...)`` changes their order, ``bounds.sel(...)`` selects.
    ax : matplotlib Axes, optional
        Axes for a single map; by default those of a new figure.

    Returns
    -------
    matplotlib.axes.Axes or array of them
        For three variables an array, one for each category of the third.

    Raises
    ------
    MissingDependencyError
        matplotlib is not installed.
    ParameterError
        Not bounds, no variable or more than three, or `ax` with three.

    Examples
    --------
    >>> import taciturn as tc
    >>> table = tc.load_dataset("area_by_religion")
    >>> hidden = tc.perturbation.small_cells(table, minimum=5)
    >>> bounds = tc.attacker_bounds(tc.Suppression(table, hidden), progressbar=False)
    >>> tc.plot_attack(bounds).get_ylabel()
    'area'
    """
    plt = _pyplot()
    if not {"lower", "risk", "disclosed", "published"} <= set(getattr(bounds, "data_vars", ())):
        raise ParameterError(
            f"bounds must be what attacker_bounds returns, got {type(bounds).__name__}"
        )
    names = [str(name) for name in bounds["risk"].dims]
    if not 1 <= len(names) <= 3:
        raise ParameterError(
            f"bounds must have one to three variables, got {names}; take a part with sel, or bound"
            " a margin"
        )
    if len(names) < 3:
        if ax is None:
            rows = bounds.sizes[names[0]] if len(names) == 2 else 1
            _, ax = plt.subplots(
                figsize=_map_size(rows, bounds.sizes[names[-1]]), layout="constrained"
            )
        mesh = _risk_map(bounds, ax)
        ax.figure.colorbar(mesh, ax=ax, label=_RISK_IN_WORDS)
        _attack_legend(bounds, ax)
        return ax
    if ax is not None:
        raise ParameterError(
            f"ax is for a single map; three variables, {names}, take one for each category of the"
            " last"
        )
    categories = bounds[names[2]].values
    across = math.ceil(math.sqrt(len(categories)))
    down = -(-len(categories) // across)
    width, height = _map_size(bounds.sizes[names[0]], bounds.sizes[names[1]])
    size = (min(1 + across * (width - 1), 16), min(down * height, 16))
    figure, axes = plt.subplots(down, across, figsize=size, squeeze=False, layout="constrained")
    flat = axes.ravel()
    for place, part in enumerate(flat):
        if place >= len(categories):
            part.set_visible(False)
            continue
        mesh = _risk_map(bounds.isel({names[2]: place}), part)
        part.set_title(f"{names[2]} = {_plain(categories[place])}", fontsize="medium")
    figure.colorbar(mesh, ax=axes, label=_RISK_IN_WORDS)
    _attack_legend(bounds, figure)
    return np.asarray(flat[: len(categories)], dtype=np.object_)


def _map_size(rows: int, columns: int) -> tuple[float, float]:
    return min(2.6 + 0.5 * columns, 12.0), min(max(1.6 + 0.32 * rows, 2.6), 10.0)


def _kinds(bounds: xr.Dataset) -> dict[str, npt.NDArray[np.bool_]]:
    """Cells that are drawn without a colour for their risk, by kind."""
    published = bounds["published"].values
    asked = bounds["lower"].notnull().values
    return {
        "published": published,
        "disclosed": bounds["disclosed"].values & ~published,
        "not asked for": ~asked & ~published,
    }


def _risk_map(bounds: xr.Dataset, ax: "Axes") -> Any:
    from matplotlib.colors import ListedColormap

    names = [str(name) for name in bounds["risk"].dims]
    risk = np.atleast_2d(bounds["risk"].values)
    kinds = {kind: np.atleast_2d(inside) for kind, inside in _kinds(bounds).items()}
    plain = np.logical_or.reduce(list(kinds.values()))
    grid: dict[str, Any] = {"edgecolors": "white", "linewidth": 0.5}
    mesh = ax.pcolormesh(np.ma.masked_array(risk, plain), cmap="YlOrBr", vmin=0, vmax=1, **grid)
    for kind, inside in kinds.items():
        if inside.any():
            hatch = "////" if kind == "disclosed" else None
            colour = ListedColormap([_ATTACK_COLOURS[kind]])
            ax.pcolor(
                np.ma.masked_array(np.ones(risk.shape), ~inside), cmap=colour, hatch=hatch, **grid
            )
    for axis, name in zip((ax.xaxis, ax.yaxis), reversed(names), strict=False):
        labels = [_plain(label) for label in bounds[name].values]
        step = -(-len(labels) // _MOST_LABELS)
        axis.set_ticks(np.arange(0, len(labels), step) + 0.5, labels[::step])
        axis.set_label_text(_plain(name))
    if max(len(_plain(label)) for label in bounds[names[-1]].values) > 4:
        ax.tick_params(axis="x", rotation=90)
    if len(names) == 1:
        ax.set_yticks([])
    ax.set_ylim(risk.shape[0], 0)  # rows from the top, as in the table
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    return mesh


def _attack_legend(bounds: xr.Dataset, where: Any) -> None:
    """Legend of cells without a colour for their risk, above the maps."""
    from matplotlib.patches import Patch

    handles = [
        Patch(
            facecolor=_ATTACK_COLOURS[kind],
            edgecolor="white" if kind == "disclosed" else "#888888",
            hatch="////" if kind == "disclosed" else None,
            label=kind,
        )
        for kind, inside in _kinds(bounds).items()
        if inside.any()
    ]
    if handles and hasattr(where, "get_xlabel"):
        where.legend(
            handles=handles, frameon=False, ncols=3, loc="lower left", bbox_to_anchor=(0.0, 1.0)
        )
    elif handles:
        where.legend(handles=handles, frameon=False, ncols=3, loc="outside upper left")


def _plain(label: Any) -> str:
    return str(label).replace("$", r"\$")  # not a formula


def plot_risk(
    fits: xr.DataTree | Mapping[str, xr.DataTree],
    *,
    measure: Literal["R1", "R2", "tau1", "tau2"] = "R2",
    probability: float = 0.95,
    truth: float | None = None,
    ax: "Axes | None" = None,
) -> "Axes":
    """Posterior distribution of a risk measure, one row per fit.

    Each row shows the density of the draws, their median as a point and the
    equal-tailed credible interval as a bar.

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
    import arviz as az

    plt = _pyplot()
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
    for row, (_, fit) in enumerate(reversed(named.items())):
        risk = (fit if "risk" in fit.children else assess(fit))["risk"].to_dataset()
        draws = risk[measure].values.ravel().astype(float)
        low, middle, high = np.quantile(draws, tails)
        color = f"C{(len(named) - 1 - row) % 10}"
        if np.ptp(draws) > 0:
            grid, density, _ = az.kde(draws)
            ax.fill_between(
                grid,
                row,
                row + 0.75 * density / density.max(),
                color=color,
                alpha=0.35,
                linewidth=0,
            )
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
    plt = _pyplot()
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
            label=" " + str(name).replace("$", r"\$"),  # neither a formula nor, after "_", left out
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


def _pyplot() -> Any:
    try:
        from matplotlib import pyplot as plt
    except ImportError as error:
        raise MissingDependencyError(
            "plots need matplotlib: pip install 'taciturn[plots]'"
        ) from error
    return plt
