"""The gallery shows every plot of the package."""

import re
from pathlib import Path

import taciturn as tc

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "reference" / "gallery.md").read_text(encoding="utf-8")


def test_every_plot_is_drawn_and_has_its_picture():
    plots = {name for name in tc.__all__ if name.startswith("plot_")}
    shown = re.findall(r"^(?:axes = )?tc\.(plot_\w+)\(.*?^```\n\n!\[", PAGE, flags=re.DOTALL | re.M)
    assert set(shown) == plots
    pictures = [DOCS / "reference" / path for path in re.findall(r"\]\((.*\.png)\)", PAGE)]
    assert len(set(pictures)) == len(shown)
    assert all(0 < path.stat().st_size < 100_000 for path in pictures)
