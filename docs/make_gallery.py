"""Run the code of the gallery and save the pictures that it shows: ``python
docs/make_gallery.py``."""

import re
from pathlib import Path

import matplotlib as mpl

mpl.use("agg")
from matplotlib import pyplot as plt

PAGE = Path(__file__).parent / "reference" / "gallery.md"
BLOCK = re.compile(r"^```python\n(.*?)^```$(?:\n+!\[.*?\]\((.*?)\)$)?", re.DOTALL | re.MULTILINE)


def main() -> None:
    """Save the last figure of each block of code that a picture follows."""
    names: dict[str, object] = {}
    for code, picture in BLOCK.findall(PAGE.read_text(encoding="utf-8")):
        exec(code, names)  # noqa: S102 (our own page)
        if picture:
            plt.gcf().savefig(PAGE.parent / picture, dpi=100, bbox_inches="tight")
            plt.close("all")
            print(picture)


if __name__ == "__main__":
    main()
