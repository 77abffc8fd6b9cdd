"""Distributions of draws, one below the other."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from taciturn.plots.shared import plain_labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Row", "draw_intervals", "draw_rows", "whole_numbers"]

_MOST_BARS: Final = 50
_HEIGHT: Final = 0.75  # of a distribution, in rows
_ROUNDING: Final = 1e-12  # of the largest draw: what is apart by less has no density

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Row:
    """Draws under a name, with a middle and an interval to be marked."""

    name: str
    draws: Floats
    lower: float
    middle: float
    upper: float


def draw_rows(ax: "Axes", rows: Sequence[Row], *, whole: bool) -> None:
    """Draw the rows, the first one on top: whole numbers as bars, a density of others.

    Each has its interval as a thick line below and its middle as a point. All rows have
    the same bars: one for each whole number, or for a few neighbouring ones where there
    are many.
    """
    edges = _edges(np.concatenate([row.draws for row in rows])) if whole else None
    for place, row in enumerate(reversed(rows)):
        colour = f"C{(len(rows) - 1 - place) % 10}"
        if edges is not None:
            _bars(ax, row.draws, edges, place, colour)
        elif np.ptp(row.draws) > _ROUNDING * np.abs(row.draws).max():
            _density(ax, row.draws, place, colour)
        ax.plot(
            [row.lower, row.upper],
            [place, place],
            color=colour,
            linewidth=3,
            solid_capstyle="butt",
        )
        ax.plot(row.middle, place, "o", color=colour, markersize=6)
    ax.set_yticks(range(len(rows)), plain_labels([row.name for row in rows])[::-1])
    ax.set_ylim(-0.35, len(rows))
    if whole:
        whole_numbers(ax)
    ax.spines[["left", "top", "right"]].set_visible(False)
    ax.tick_params(axis="y", length=0)


def whole_numbers(ax: "Axes") -> None:
    """Let the axis of values have ticks at whole numbers only."""
    from matplotlib.ticker import MaxNLocator

    ax.xaxis.set_major_locator(MaxNLocator("auto", integer=True, min_n_ticks=1))


def draw_intervals(ax: "Axes", labels: Sequence[str], ends: Floats, *, colour: str) -> None:
    """Draw an interval with its middle beside each label, the first one on top; `ends`
    are lower end, middle and upper end, (label, 3).
    """
    places = np.arange(len(labels))[::-1]
    ax.hlines(places, ends[:, 0], ends[:, 2], color=colour, linewidth=3)
    ax.plot(ends[:, 1], places, "o", color=colour, markersize=6, clip_on=False)
    ax.set_yticks(places, labels)
    ax.set_ylim(-0.7, len(labels) - 0.3)
    ax.spines[["left", "top", "right"]].set_visible(False)
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="y", alpha=0.25)
    ax.set_axisbelow(True)


def _edges(draws: Floats) -> Floats:
    """Where bars begin and end, half-way between whole numbers."""
    low, high = draws.min(), draws.max()
    width = np.ceil((high - low + 1) / _MOST_BARS)
    return np.asarray(np.arange(low - 0.5, high + 0.5 + width, width))


def _bars(ax: "Axes", draws: Floats, edges: Floats, place: int, colour: str) -> None:
    numbers, _ = np.histogram(draws, edges)
    drawn = numbers > 0
    ax.bar(
        ((edges[:-1] + edges[1:]) / 2)[drawn],
        (_HEIGHT * numbers / numbers.max())[drawn],
        bottom=place,
        width=0.9 * (edges[1] - edges[0]),
        color=colour,
        alpha=0.35,
    )


def _density(ax: "Axes", draws: Floats, place: int, colour: str) -> None:
    import arviz as az

    grid, density, _ = az.kde(draws)
    ax.fill_between(
        grid,
        place,
        place + _HEIGHT * density / density.max(),
        color=colour,
        alpha=0.35,
        linewidth=0,
    )
