"""Plots as inline SVG, in the colours of the page around them."""

import re
from collections.abc import Sequence
from io import StringIO
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
from markupsafe import Markup

from taciturn.plots import plot_checks, plot_risk_utility
from taciturn.plots.rows import draw_intervals
from taciturn.reports.yardstick import Mark

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

__all__ = [
    "category_picture",
    "check_picture",
    "inline",
    "map_picture",
    "rc_of_page",
    "yardstick_picture",
]

_INK: Final = "#010203"  # stands for the colour of the page's text, light or dark
_OURS: Final = "#2a7de1"  # legible on white and on black

Floats = npt.NDArray[np.float64]


def rc_of_page(name: str) -> Any:
    """Settings of matplotlib under which a picture has the colours and the font of the
    page.
    """
    ink = ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color")
    return {
        **dict.fromkeys(ink, _INK),
        "axes.facecolor": "none",
        "figure.facecolor": "none",
        "font.size": 10,
        "svg.fonttype": "none",  # text stays text, to be read aloud and searched
        "svg.hashsalt": name,  # the same picture has the same identifiers
    }


def inline(figure: "Figure", name: str, description: str) -> Markup:
    """A figure as an element of the page; `name` tells its identifiers from those of
    others.
    """
    from matplotlib import pyplot as plt

    file = StringIO()
    figure.savefig(
        file, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Type", "Format"))
    )
    plt.close(figure)
    svg = file.getvalue()
    svg = re.sub("<[^>]*>", lambda tag: _adapted(tag[0], name), svg[svg.index("<svg") :])
    label = Markup('<svg role="img" aria-label="{}"').format(description)
    return Markup(svg.replace("<svg", label, 1))  # noqa: S704, matplotlib escapes labels


def _adapted(tag: str, name: str) -> str:
    """A tag in the page's colour and with identifiers of its own; texts between tags
    are labels, and stay as they are.
    """
    tag = re.sub(f"{_INK}|#000000", "currentColor", tag)
    return re.sub(r'\b(id="|url\(#|href="#)', rf"\g<1>{name}-", tag)


def yardstick_picture(ours: tuple[float, float, float], marks: Sequence[Mark]) -> Markup:
    """The interval of this table beside well-known values, the highest above."""
    from matplotlib import pyplot as plt

    low, middle, high = ours
    ordered = sorted(marks, key=lambda mark: mark.risk)
    name = "yardstick"
    with plt.rc_context(rc_of_page(name)):
        figure, ax = plt.subplots(figsize=(7.2, 1.1 + 0.27 * len(marks)), layout="constrained")
        ax.axvspan(low, high, color=_OURS, alpha=0.2, linewidth=0)
        ax.plot([low, high], [len(marks)] * 2, color=_OURS, linewidth=4, solid_capstyle="butt")
        ax.plot(middle, len(marks), "o", color=_OURS, markersize=7)
        ax.plot([mark.risk for mark in ordered], range(len(marks)), "D", color=_INK, markersize=5)
        ax.set_yticks(range(len(marks) + 1), [*(mark.name for mark in ordered), "THIS TABLE"])
        ax.set_xlim(0, max(0.4, 1.1 * high, 1.1 * ordered[-1].risk))
        ax.set_xlabel("R2")
        _plain_axes(ax)
        return inline(
            figure, name, f"R2 of this table, {low:.2f} to {high:.2f}, beside that of other tables"
        )


def category_picture(variable: str, labels: Sequence[str], risk: Floats) -> Markup:
    """R2 of each category of a variable: lower end, middle and upper end of its
    interval, (category, 3); labels as they are drawn.
    """
    from matplotlib import pyplot as plt

    name = "category-" + "".join(f"{ord(mark):x}" for mark in variable)
    with plt.rc_context(rc_of_page(name)):
        figure, ax = plt.subplots(figsize=(7.2, 0.8 + 0.24 * len(labels)), layout="constrained")
        draw_intervals(ax, labels, risk, colour=_OURS)
        ax.set_xlim(0, max(1.05 * float(risk.max()), 0.1))
        ax.set_xlabel("R2")
        _plain_axes(ax)
        return inline(figure, name, f"R2 of each category of {variable}")


def _plain_axes(ax: Any) -> None:
    ax.spines[["left", "top", "right"]].set_visible(False)
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="y", color=_INK, alpha=0.12)
    ax.set_axisbelow(True)


def check_picture(fit: "xr.DataTree") -> Markup:
    """The sample among samples that the fitted model gives: not for release."""
    from matplotlib import pyplot as plt

    name = "checks"
    with plt.rc_context(rc_of_page(name)):
        figure = plot_checks(fit)[0].figure
        return inline(figure, name, "The sample among samples that the fitted model gives")


def map_picture(utility: "xr.Dataset") -> Markup:
    """The risk-utility map."""
    from matplotlib import pyplot as plt

    name = "map"
    with plt.rc_context(rc_of_page(name)):
        figure, ax = plt.subplots(figsize=(7.2, 3.8), layout="constrained")
        plot_risk_utility(utility, ax=ax)
        return inline(figure, name, "R2 of each protection against what it changes in the table")
