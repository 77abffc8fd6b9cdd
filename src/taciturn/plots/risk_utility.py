"""Plot of risk against information loss."""

from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
import xarray as xr

from taciturn.errors import ParameterError
from taciturn.figures import beside
from taciturn.plots.shared import plain_labels, pyplot
from taciturn.validate import one_of, quoted

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
_LOSS_IN_WORDS: Final = {
    "spearman": "1 less the rank correlation with the original",
    **{
        name: f"size of the {words}"
        for name, words in _UTILITY_IN_WORDS.items()
        if name.endswith("_change")
    },
}
_MOST: Final = 0.5  # of the draws, in which a method is on the frontier


def plot_risk_utility(
    result: xr.Dataset,
    *,
    utility: str = "hellinger",
    risk: Literal["R1", "R2"] = "R2",
    reference: str | None = None,
    ax: "Axes | None" = None,
) -> "Axes":
    """Risk against information loss, one point with its intervals per method; or the
    differences to one of them. A mean outside a narrow interval is a point beside it.

    Parameters
    ----------
    result : Dataset
        Result of `risk_utility`; or of `compare_protections`, whose differences are
        drawn: thick lines are intervals between methods, thin ones between releases.
        The legend says in which share of the draws of the population a method is on the
        frontier; a grey line joins those that are in most, the others are hollow.
    utility : str
        Of a result of `risk_utility` the measure of information loss on the horizontal
        axis. A comparison has one.
    risk : {"R2", "R1"}
        Of a result of `risk_utility` the measure of risk on the vertical axis. A
        comparison has R2.
    reference : str, optional
        The protection that differences are to, of a comparison of all with all.
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
        A measure or a reference that is not in the result.

    Examples
    --------
    >>> import taciturn as tc
    >>> table = tc.load_dataset("area_by_religion")
    >>> rounded = tc.random_round(table, rounding_base=3, replicates=100, random_seed=1)
    >>> methods = {"as it is": table, "round to 3": rounded}
    >>> found = tc.risk_utility(methods, table=table)
    >>> tc.plot_risk_utility(found).get_ylabel()
    'R2'
    >>> compared = tc.compare_protections(methods, table=table, progressbar=False)
    >>> tc.plot_risk_utility(compared, reference="as it is").get_ylabel()
    "R2, less that of 'as it is'"
    """
    plt = pyplot()
    if "protection" not in getattr(result, "dims", ()):
        raise ParameterError(
            f"result must be what risk_utility returns, got {type(result).__name__}"
        )
    compared = "risk_difference" in result.data_vars
    if compared:
        result = _to_reference(result, reference)
    else:
        _check_measures(result, utility, risk, reference)
    if ax is None:
        size = (7.4, 4.4) if compared else (6.4, 4.4)  # its legend is wider
        _, ax = plt.subplots(figsize=size, layout="constrained")
    if compared:
        _draw_differences(ax, result)
    else:
        _draw_measures(ax, result, utility, risk)
    ax.legend(
        title="on the frontier (share of draws)" if compared else None,
        alignment="left",
        frameon=False,
        loc="upper left",
        bbox_to_anchor=(1.0, 1.0),
    )  # beside the points, not on them
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def _check_measures(result: xr.Dataset, utility: str, risk: str, reference: str | None) -> None:
    """Raise unless these measures are in a result of `risk_utility`."""
    if reference is not None:
        raise ParameterError("reference is for a result of compare_protections")
    measures = [str(name) for name in result.data_vars if name not in ("R1", "R2")]
    one_of(utility, "utility", measures)
    if risk not in ("R1", "R2"):
        raise ParameterError(f"risk must be 'R1' or 'R2', got {quoted(risk)}")


def _to_reference(result: xr.Dataset, reference: str | None) -> xr.Dataset:
    """The differences to one protection."""
    names = np.atleast_1d(result["reference"].values).tolist()
    if reference is None and len(names) == 1:
        reference = names[0]
    one_of(reference, "reference", names)
    return result.sel(reference=reference) if "reference" in result.dims else result


def _draw_measures(ax: "Axes", result: xr.Dataset, utility: str, risk: str) -> None:
    names = result["protection"].values
    for number, (name, label) in enumerate(zip(names, plain_labels(names), strict=True)):
        x, y = (result[which].sel(protection=name) for which in (utility, risk))
        # a label that begins with "_" is left out of a legend
        _draw_point(ax, x, y, color=f"C{number % 10}", capsize=3, label=" " + label)
    ax.set_xlabel(_in_words(utility))
    ax.set_ylabel(risk)


def _draw_differences(ax: "Axes", result: xr.Dataset) -> None:
    """Each protection's, with the frontier."""
    for line in (ax.axhline, ax.axvline):
        line(0, color="0.8", linewidth=0.8, zorder=0)
    names = result["protection"].values.tolist()
    labels = dict(zip(names, plain_labels(names), strict=True))
    for number, name in enumerate(names):
        own = result.sel(protection=name)
        x, y = own["loss_difference"], own["risk_difference"]
        share, color = float(own["frontier"]), f"C{number % 10}"
        shown = beside(100 * share, 0, 100 * _MOST, 100, decimals=0)
        methods, releases = (
            [values.sel(between=level) for values in (x, y)] for level in ("methods", "releases")
        )
        _draw_intervals(ax, *methods, color=color, linewidth=3)
        _draw_point(
            ax,
            *releases,
            color=color,
            linewidth=0.8,
            capsize=2,
            filled=share > _MOST,
            label=f" {labels[name]} ({shown} %)",
        )
    on = result.where(result["frontier"] > _MOST, drop=True).sel(between="methods")
    ends = on.sel(statistic="mean").sortby("loss_difference")
    ax.plot(ends["loss_difference"], ends["risk_difference"], color="0.6", linewidth=0.8, zorder=0)
    loss, reference = str(result.attrs["loss"]), labels[result["reference"].item()]
    words = _LOSS_IN_WORDS.get(loss, _in_words(loss))
    ax.set_xlabel(f"{words},\nless that of '{reference}'")  # in one line too long for the axes
    ax.set_ylabel(f"R2, less that of '{reference}'")


def _in_words(utility: str) -> str:
    return _UTILITY_IN_WORDS.get(utility, utility.replace("_", " "))


def _draw_point(
    ax: "Axes",
    x: xr.DataArray,
    y: xr.DataArray,
    *,
    color: str,
    label: str,
    capsize: float,
    linewidth: float | None = None,
    filled: bool = True,
) -> None:
    """A mean with its intervals, one thing in the legend."""
    from matplotlib.container import ErrorbarContainer

    (across, *ends_x), (up, *ends_y) = _numbers(x), _numbers(y)
    bars = _draw_intervals(ax, x, y, color=color, linewidth=linewidth)
    caps: dict[str, Any] = {"color": color, "markersize": 2 * capsize, "zorder": 1}
    drawn = ax.plot(ends_x, [up] * 2, "|", [across] * 2, ends_y, "_", **caps)
    (mean,) = ax.plot(across, up, "o", color=color, markerfacecolor=color if filled else "white")
    parts = (mean, tuple(drawn), bars)
    ax.add_container(ErrorbarContainer(parts, has_xerr=True, has_yerr=True, label=label))


def _draw_intervals(ax: "Axes", x: xr.DataArray, y: xr.DataArray, **style: Any) -> Any:
    """Both intervals from end to end: a mean may lie outside a narrow one."""
    (across, left, right), (up, below, above) = _numbers(x), _numbers(y)
    style["zorder"] = 1  # below the points
    return ax.hlines(up, left, right, **style), ax.vlines(across, below, above, **style)


def _numbers(values: xr.DataArray) -> list[float]:
    """Mean, lower and upper end."""
    return [float(values.sel(statistic=name)) for name in ("mean", "lower", "upper")]
