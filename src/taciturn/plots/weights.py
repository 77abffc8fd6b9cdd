"""Plot of the weights for which each protection has the least risk."""

from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.errors import ParameterError
from taciturn.figures import beside
from taciturn.plots.shared import plain_labels, pyplot

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_weights"]

Floats = npt.NDArray[np.float64]

_CORNERS: Final = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(3) / 2]])
_TERMS: Final = ("empty cells", "concentration", "size")
_LINES: Final = (0.2, 0.4, 0.6, 0.8)
_SAME: Final = 1e-12


def plot_weights(result: xr.Dataset, *, ax: "Axes | None" = None) -> "Axes":
    """Triangle of weights, coloured by the protection with the least expected R2.

    A corner has all weight on one term, a point has more on those that it is nearer to.
    The size term is the same for all protections, so the regions are bounded by lines
    through its corner. The legend says which share of the triangle each region is; a
    protection without a region has the least risk for no weights, or shares that with
    one that is named before it. A dot shows the weights of the result.

    Parameters
    ----------
    result : Dataset
        Result of `weight_sensitivity`.
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
        Something else than a result of `weight_sensitivity`.

    Examples
    --------
    >>> import taciturn as tc
    >>> table = tc.load_dataset("area_by_religion")
    >>> given = {"replicates": 100, "random_seed": 1}
    >>> methods = {
    ...     "rounded": tc.random_round(table, rounding_base=3, **given),
    ...     "noise": tc.add_noise(table, epsilon=1, **given),
    ... }
    >>> axes = tc.plot_weights(tc.weight_sensitivity(methods, table=table))
    >>> [text.get_text() for text in axes.get_legend().get_texts()]
    [' rounded: 5 %', ' noise: 95 %', ' weights 0.1, 0.8, 0.1']
    """
    plt = pyplot()
    if "R2_term" not in getattr(result, "data_vars", ()):
        raise ParameterError(
            f"result must be what weight_sensitivity returns, got {type(result).__name__}"
        )
    if ax is None:
        _, ax = plt.subplots(figsize=(6.4, 4.4), layout="constrained")
    terms = result["R2_term"].sel(statistic="mean").transpose("protection", "term").values
    names = plain_labels(result["protection"].values)
    for start, end, number in _least(terms[:, :2]):
        edge = [s * _CORNERS[0] + (1 - s) * _CORNERS[1] for s in (start, end)]
        ax.fill(
            *np.array([*edge, _CORNERS[2]]).T,
            color=f"C{number % 10}",
            alpha=0.55,
            linewidth=0,
            label=f" {names[number]}: {beside(100 * (end - start), 0, 100, decimals=0)} %",
        )
    _draw_triangle(ax)
    at = np.asarray(result.attrs["weights"]) @ _CORNERS
    shown = ", ".join(f"{weight:g}" for weight in result.attrs["weights"])
    ax.plot(*at, "o", color="black", markersize=6, label=f" weights {shown}")
    ax.legend(
        title="least expected R2",
        alignment="left",
        frameon=False,
        loc="upper left",
        bbox_to_anchor=(0.95, 1.0),
    )
    return ax


def _least(terms: Floats) -> list[tuple[float, float, int]]:
    """Ranges of the zero share, and the number of the protection that has the least sum
    of two weighted terms, (protections, 2), in each.
    """
    slopes, levels = terms[:, 0] - terms[:, 1], terms[:, 1]
    cuts = {0.0, 1.0}
    for one, other in combinations(range(len(terms)), 2):
        if slopes[one] != slopes[other]:
            cut = float((levels[other] - levels[one]) / (slopes[one] - slopes[other]))
            cut = round(cut, 12)  # those that differ by rounding have no region between them
            cuts |= {cut} if 0 < cut < 1 else set()
    found: list[tuple[float, float, int]] = []
    for start, end in pairwise(sorted(cuts)):
        risks = levels + slopes * (start + end) / 2
        number = int(np.argmax(risks <= risks.min() + _SAME))  # the first of those alike
        if found and found[-1][2] == number:
            start = found.pop()[0]
        found.append((start, end, number))
    return found


def _draw_triangle(ax: "Axes") -> None:
    """The edges, lines of equal weights, and what the corners stand for."""
    for share in _LINES:
        for corner in range(3):
            others = [_CORNERS[other] for other in range(3) if other != corner]
            ends = [share * _CORNERS[corner] + (1 - share) * other for other in others]
            ax.plot(*np.array(ends).T, color="white", linewidth=0.6)
    ax.plot(*np.array([*_CORNERS, _CORNERS[0]]).T, color="0.3", linewidth=0.8)
    for corner, name, side in zip(_CORNERS, _TERMS, ("top", "top", "bottom"), strict=True):
        gap = -0.03 if side == "top" else 0.03
        ax.text(corner[0], corner[1] + gap, name, ha="center", va=side)
    ax.set_aspect("equal")
    ax.set_axis_off()
