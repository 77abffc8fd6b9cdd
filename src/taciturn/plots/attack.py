"""Map of what an attacker can work out."""

import math
from itertools import product
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.errors import ParameterError
from taciturn.plots.maps import (
    DISCLOSED,
    NOT_ASKED_FOR,
    PUBLISHED,
    Scale,
    draw_map,
    legend_of,
    map_size,
)
from taciturn.plots.shared import plain, plain_labels, pyplot
from taciturn.schema import SAFE
from taciturn.suppression import SuppressionPattern
from taciturn.validate import quoted

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["plot_attack"]

_NEEDED: Final = frozenset({"lower", "upper", "n_values", "risk", "disclosed", "published"})
_MANY_VALUES: Final = 1000  # whose risk, 1/log2(1000) = 0.1, no longer differs to the eye
_SHARES: Final = (0.01, 0.03, 0.1, 0.3, 1.0)  # marked on the scale of widths
_MOST_MAPS: Final = 30
_WIDE: Final = 7  # columns of a map as wide as a legend with three
_ON_ONE_LINE: Final = 24  # letters of the title of one of several maps
_INTERNAL: Final = "not for release"


def plot_attack(
    bounds: xr.Dataset,
    *,
    show: Literal["risk", "width"] | None = None,
    pattern: SuppressionPattern | None = None,
    ax: "Axes | None" = None,
) -> "Axes | npt.NDArray[np.object_]":
    r"""Heat map of how much an attacker can say about each cell that is not published.

    Cells that are disclosed without being published are black and hatched, published
    ones white, those that were not asked for dotted. The colours of the others are
    darker the more is known, and can be distinguished by colour-blind readers and in
    print.

    Parameters
    ----------
    bounds : Dataset
        Result of `attacker_bounds`, over one or more variables: columns; rows and
        columns; or rows, columns and one map for each combination of the categories of
        the others, 30 at most. ``bounds.transpose(...)`` changes their order,
        ``bounds.sel(...)`` and ``bounds.isel(...)`` select.
    show : {"risk", "width"}, optional
        ``"risk"``, from none to that of a cell with two possible values. ``"width"``:
        to within how many percent the cell is known, which is half the width of its
        interval divided by its middle, :math:`(u - l) / (u + l)`; 100 % where the cell
        may be empty. By default the width for magnitudes, which have so many possible
        values that all risks are small: tables with decimals, and those in which half
        of the coloured cells or more have over a thousand possible values.
    pattern : SuppressionPattern, optional
        Outlines the primary cells of this pattern by a solid line and the secondary
        ones by a dotted one. The plot is then not for release, and says so: who knows
        the rule learns from a primary cell what range its value is in.
    ax : matplotlib Axes, optional
        Axes for a single map; by default those of a new figure.

    Returns
    -------
    matplotlib.axes.Axes or array of them
        For three variables or more an array, one for each combination of categories,
        those of the last variable changing fastest.

    Raises
    ------
    MissingDependencyError
        matplotlib is not installed.
    ParameterError
        Not bounds, no variable, more than 30 maps, or `ax` with several; a `pattern`
        that is none, or has no such margin or cells.

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
    names = _checked_names(bounds, several=ax is None)
    cells = _cells(bounds, show, None if pattern is None else _status(bounds, pattern))
    scale = _scale(cells)
    if len(names) < 3:
        if ax is None:
            rows = bounds.sizes[names[0]] if len(names) == 2 else 1
            _, ax = plt.subplots(
                figsize=map_size(rows, bounds.sizes[names[-1]]), layout="constrained"
            )
        mesh = draw_map(cells, scale, ax)
        ax.figure.colorbar(mesh, ax=ax, label=scale.label, **scale.bar)
        narrow = bounds.sizes[names[-1]] < _WIDE
        above: dict[str, Any] = {
            "loc": "lower left",
            "bbox_to_anchor": (0.0, 1.0),
            "ncols": 2 if narrow else 3,
        }
        _legend(cells, ax, **above)
        return ax
    places = list(product(*(range(bounds.sizes[name]) for name in names[2:])))
    figure, axes = _grid(plt, len(places), map_size(bounds.sizes[names[0]], bounds.sizes[names[1]]))
    for place, part in zip(places, axes, strict=True):
        mesh = draw_map(cells.isel(dict(zip(names[2:], place, strict=True))), scale, part)
    _set_titles(axes, cells, names[2:])
    _outer_labels(axes)
    figure.colorbar(mesh, ax=axes, label=scale.label, **scale.bar)
    _legend(cells, figure, loc="outside upper left", ncols=3)
    return axes


def _checked_names(bounds: Any, *, several: bool) -> list[str]:
    """Names of the variables of bounds that can be drawn."""
    if not isinstance(bounds, xr.Dataset) or not set(bounds.data_vars) >= _NEEDED:
        raise ParameterError(
            f"bounds must be what attacker_bounds returns, got {type(bounds).__name__}"
        )
    names = [str(name) for name in bounds["risk"].dims]
    if not names:
        raise ParameterError(
            "bounds must have one variable or more, got the total of all: bound a margin"
        )
    if len(names) > 2 and not several:
        raise ParameterError(
            f"ax is for a single map; {names} take one for each category of {names[2:]}"
        )
    maps = math.prod(bounds.sizes[name] for name in names[2:])
    if maps > _MOST_MAPS:
        last = names[-1]
        raise ParameterError(
            f"bounds over {names} take {maps} maps, one for each combination of {names[2:]}, and at"
            f" most {_MOST_MAPS} can be read: select, as by"
            f" bounds.sel({{{last!r}: {bounds[last].values[0]!s:.40}}}), or bound a margin"
        )
    return names


def _cells(
    bounds: xr.Dataset, show: Literal["risk", "width"] | None, status: xr.DataArray | None
) -> xr.Dataset:
    """What is drawn of each cell, as `draw_map` takes it."""
    if show not in ("risk", "width", None):
        raise ParameterError(f"show must be 'risk' or 'width', got {quoted(show)}")
    bounds = bounds.transpose(*bounds["risk"].dims)
    published, asked = bounds["published"], bounds["lower"].notnull()
    coloured = asked & ~published & ~bounds["disclosed"]
    kinds = np.select([coloured, published, ~asked], ["", PUBLISHED, NOT_ASKED_FOR], DISCLOSED)
    kind = coloured.copy(data=kinds)
    if show is None:
        show = "width" if _are_magnitudes(bounds.where(coloured)) else "risk"
    value = bounds["risk"] if show == "risk" else _width(bounds)
    return xr.Dataset(
        {
            "value": value.where(coloured),
            "kind": kind,
            "status": xr.full_like(kind, "") if status is None else status,
        },
        attrs={"show": show},
    )


def _are_magnitudes(open_: xr.Dataset) -> bool:
    """Whether open cells have so many possible values that all risks are small, or
    steps below 1.
    """
    if not open_["n_values"].notnull().any():
        return False
    has_decimals = open_["n_values"] - 1 > 1.5 * (open_["upper"] - open_["lower"])
    return bool(has_decimals.any() or open_["n_values"].median() > _MANY_VALUES)


def _width(bounds: xr.Dataset) -> xr.DataArray:
    """Half the width of each interval as a share of its middle, from 0 to 1."""
    lower, upper = bounds["lower"], bounds["upper"]
    finite = np.isfinite(upper)
    limited = upper.where(finite, lower)
    share: xr.DataArray = (limited - lower) / (limited + lower).where(limited > 0)
    return share.where(finite, 1.0)


def _scale(cells: xr.Dataset) -> Scale:
    from matplotlib.colors import LogNorm, Normalize
    from matplotlib.ticker import FixedFormatter, FixedLocator

    if cells.attrs["show"] == "risk":
        return Scale(r"risk $1/\log_2 m$ (1/bits)", Normalize(0, 1))
    names = FixedFormatter([f"{100 * tick:g} %" for tick in _SHARES])
    extend = "min" if (cells["value"] < _SHARES[0]).any() else "neither"
    return Scale(
        "known to within \N{PLUS-MINUS SIGN},\nof the interval's middle",
        LogNorm(_SHARES[0], _SHARES[-1]),
        reverse=True,
        bar={"ticks": FixedLocator(_SHARES), "format": names, "extend": extend},
    )


def _status(bounds: xr.Dataset, pattern: Any) -> xr.DataArray:
    """Primary and secondary cells among those of the bounds."""
    if not isinstance(pattern, SuppressionPattern):
        raise ParameterError(
            "pattern must be what suppress returns, or protect_table(...).pattern, got"
            f" {type(pattern).__name__}"
        )
    dims = set(bounds["risk"].dims)
    selected = {name for name, coord in bounds.coords.items() if coord.ndim == 0}
    found = [
        names for names in pattern.status if dims <= set(names) and set(names) - dims <= selected
    ]
    if not found:
        raise ParameterError(
            f"pattern must have the margin of the bounds, {sorted(map(str, dims))}; it has"
            f" {[list(names) for names in pattern.status]}"
        )
    names = max(found, key=len)
    try:
        status = pattern.status[names].sel({name: bounds[name] for name in names})
    except KeyError as error:
        raise ParameterError(
            f"pattern must have the cells of the bounds: {error.args[0]}"
        ) from error
    return status.where(status != SAFE, "").transpose(*bounds["risk"].dims)


def _grid(
    plt: Any, maps: int, size: tuple[float, float]
) -> tuple["Figure", npt.NDArray[np.object_]]:
    """A figure with room for some maps of this size, and the axes of each."""
    across = math.ceil(math.sqrt(maps))
    down = -(-maps // across)
    width, height = size
    whole = (min(1 + across * (width - 1), 16), min(down * height, 16))
    figure, axes = plt.subplots(down, across, figsize=whole, squeeze=False, layout="constrained")
    for unused in axes.flat[maps:]:
        unused.set_visible(False)
    return figure, np.asarray(axes.flat[:maps], dtype=np.object_)


def _set_titles(axes: npt.NDArray[np.object_], cells: xr.Dataset, names: list[str]) -> None:
    """Say above each map which categories it is of."""
    labels = [[f"{plain(name)} = {x}" for x in plain_labels(cells[name].values)] for name in names]
    titles = list(product(*labels))
    longest = max(len(", ".join(title)) for title in titles)
    for part, title in zip(axes, titles, strict=True):
        line = (", " if longest <= _ON_ONE_LINE else "\n").join(title)
        part.set_title(line, fontsize="medium")


def _outer_labels(axes: Any) -> None:
    """Keep the labels of rows at the left, those of columns at the lower end."""
    across = axes[0].get_gridspec().ncols
    for place, part in enumerate(axes):
        if place % across:
            part.set_ylabel("")
            part.tick_params(labelleft=False)
        if place + across < len(axes):
            part.set_xlabel("")
            part.tick_params(labelbottom=False)


def _legend(cells: xr.Dataset, where: Any, **place: Any) -> None:
    """Legend of what has no colour or an outline, above the maps."""
    handles = legend_of(cells)
    if handles:
        title = _INTERNAL if (cells["status"] != "").any() else None
        where.legend(handles=handles, frameon=False, title=title, alignment="left", **place)
