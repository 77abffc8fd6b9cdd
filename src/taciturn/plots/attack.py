"""Map of what an attacker can work out."""

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.errors import ParameterError
from taciturn.plots.shared import plain, pyplot

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_attack"]

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
    plt = pyplot()
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
        part.set_title(f"{names[2]} = {plain(categories[place])}", fontsize="medium")
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
    uncoloured = np.logical_or.reduce(list(kinds.values()))
    grid: dict[str, Any] = {"edgecolors": "white", "linewidth": 0.5}
    mesh = ax.pcolormesh(
        np.ma.masked_array(risk, uncoloured), cmap="YlOrBr", vmin=0, vmax=1, **grid
    )
    for kind, inside in kinds.items():
        if inside.any():
            hatch = "////" if kind == "disclosed" else None
            colour = ListedColormap([_ATTACK_COLOURS[kind]])
            ax.pcolor(
                np.ma.masked_array(np.ones(risk.shape), ~inside), cmap=colour, hatch=hatch, **grid
            )
    for axis, name in zip((ax.xaxis, ax.yaxis), reversed(names), strict=False):
        labels = [plain(label) for label in bounds[name].values]
        step = -(-len(labels) // _MOST_LABELS)
        axis.set_ticks(np.arange(0, len(labels), step) + 0.5, labels[::step])
        axis.set_label_text(plain(name))
    if max(len(plain(label)) for label in bounds[names[-1]].values) > 4:
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
