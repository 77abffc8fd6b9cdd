"""Maps of a table's cells: a colour for each cell, and marks of what it is."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
import xarray as xr

from taciturn.plots.shared import plain, plain_labels
from taciturn.schema import PRIMARY, SECONDARY

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

__all__ = ["DISCLOSED", "NOT_ASKED_FOR", "PUBLISHED", "Scale", "draw_map", "legend_of", "map_size"]

PUBLISHED: Final = "published"
DISCLOSED: Final = "disclosed"
NOT_ASKED_FOR: Final = "not asked for"

_FACES: Final = {PUBLISHED: "white", DISCLOSED: "black", NOT_ASKED_FOR: "white"}
_HATCHES: Final = {DISCLOSED: "////", NOT_ASKED_FOR: "...."}
_EDGES: Final = {PUBLISHED: "#cccccc", DISCLOSED: "white", NOT_ASKED_FOR: "#999999"}
_OUTLINES: Final[dict[str, Literal["-", ":"]]] = {PRIMARY: "-", SECONDARY: ":"}
_LIGHTEST: Final = 0.2  # of a colour map: lighter ones are as white as published cells in print
_MOST_LABELS: Final = 40  # that are legible on one axis
_INSET: Final = 0.1  # of an outline, so that those of neighbours do not touch


@dataclass(frozen=True)
class Scale:
    """How values become colours.

    Attributes
    ----------
    label : str
        What the values are.
    norm : Any
        Matplotlib's norm.
    reverse : bool
        Whether small values are dark.
    bar : dict
        Arguments of the colour bar.
    """

    label: str
    norm: Any
    reverse: bool = False
    bar: dict[str, Any] = field(default_factory=dict)

    @property
    def colours(self) -> Any:
        """Colours that grow darker, in print as well."""
        from matplotlib import colormaps
        from matplotlib.colors import ListedColormap

        shades = colormaps["YlOrBr"](np.linspace(_LIGHTEST, 1, 256))
        return ListedColormap(shades[::-1] if self.reverse else shades)


def map_size(rows: int, columns: int) -> tuple[float, float]:
    """Width and height of a figure with one map, in inches."""
    return min(max(2.8 + 0.5 * columns, 4.4), 12.0), min(max(1.8 + 0.32 * rows, 3.2), 10.0)


def draw_map(cells: xr.Dataset, scale: Scale, ax: "Axes") -> Any:
    """Draw one map, and return its coloured mesh for a colour bar.

    Parameters
    ----------
    cells : Dataset
        Over one or two variables: ``value``, NaN where a cell has no colour; ``kind``,
        of cells without one, or empty; ``status``, primary or secondary cells, or
        empty.
    scale : Scale
        Colours of the values.
    ax : matplotlib Axes
        Where to draw.
    """
    from matplotlib.colors import ListedColormap

    names = [str(name) for name in cells.dims]
    value, kind, status = (np.atleast_2d(cells[name]) for name in ("value", "kind", "status"))
    mesh = ax.pcolormesh(
        np.ma.masked_invalid(value),
        cmap=scale.colours,
        norm=scale.norm,
        edgecolors="white",
        linewidth=0.5,
    )
    for one, face in _FACES.items():
        inside = kind == one
        if inside.any():
            ax.pcolor(
                np.ma.masked_array(np.ones(kind.shape), ~inside),
                cmap=ListedColormap([face]),
                hatch=_HATCHES.get(one),
                edgecolors=_EDGES[one],
                linewidth=0.5,
            )
    for one in _OUTLINES:
        _outline(np.argwhere(status == one), one, ax)
    for axis, name in zip((ax.xaxis, ax.yaxis), reversed(names), strict=False):
        labels = plain_labels(cells[name].values)
        step = -(-len(labels) // _MOST_LABELS)
        axis.set_ticks(np.arange(0, len(labels), step) + 0.5, labels[::step])
        axis.set_label_text(plain(name))
    if max(len(plain(label)) for label in cells[names[-1]].values) > 4:
        ax.tick_params(axis="x", rotation=90)
    if len(names) == 1:
        ax.set_yticks([])
    ax.set_ylim(value.shape[0], 0)  # rows from the top, as in the table
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    return mesh


def legend_of(cells: xr.Dataset) -> list["Artist"]:
    """What stands in a legend for the kinds and statuses that a map shows."""
    from matplotlib.patches import Patch

    kinds = [
        Patch(
            facecolor=face,
            edgecolor=_EDGES[kind],
            hatch=_HATCHES.get(kind),
            label=kind,
        )
        for kind, face in _FACES.items()
        if (cells["kind"] == kind).any()
    ]
    statuses = [
        Patch(facecolor="none", edgecolor="black", linewidth=1.8, linestyle=line, label=status)
        for status, line in _OUTLINES.items()
        if (cells["status"] == status).any()
    ]
    return [*kinds, *statuses]


def _outline(places: Iterable[Any], status: str, ax: "Axes") -> None:
    """Outline cells in black on white, which is seen on every colour."""
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Rectangle
    from matplotlib.patheffects import withStroke

    size = 1 - 2 * _INSET
    boxes = [Rectangle((column + _INSET, row + _INSET), size, size) for row, column in places]
    if boxes:
        ax.add_collection(
            PatchCollection(
                boxes,
                facecolor="none",
                edgecolor="black",
                linewidth=1.8,
                linestyle=_OUTLINES[status],
                path_effects=[withStroke(linewidth=3.6, foreground="white")],
                label=status,
            )
        )
