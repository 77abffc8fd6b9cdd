"""JSON-stat 2.0: the cells of a release as a cube."""

import json
from itertools import product
from math import isnan, prod
from typing import IO, TYPE_CHECKING, Any

from taciturn.publication.published import Published

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["to_json_stat"]


def to_json_stat(rows: "pd.DataFrame", what: Published, file: IO[bytes]) -> None:
    """One dataset, in which suppressed values are null. Where a release has not all
    cells of the cube, it names those it has.
    """
    labels = rows.drop(columns=[what.value, what.status]).astype(str)
    categories = {str(name): list(dict.fromkeys(labels[name])) for name in labels}
    number = int if what.decimals == 0 else float
    keys = map(tuple, labels.to_numpy().tolist())
    values = [None if isnan(value) else number(value) for value in rows[what.value]]
    cells = dict(zip(keys, zip(values, map(str, rows[what.status]), strict=True), strict=True))
    dataset = {
        "version": "2.0",
        "class": "dataset",
        "label": what.value,
        **({"note": [f"Not for release: {what.why_internal}."]} if what.why_internal else {}),
        "id": list(categories),
        "size": [len(labels) for labels in categories.values()],
        "dimension": {
            name: {"label": name, "category": {"index": labels}}
            for name, labels in categories.items()
        },
        **_observations(cells, categories),
    }
    file.write(json.dumps(dataset, ensure_ascii=False, allow_nan=False).encode())


def _observations(
    cells: dict[tuple[str, ...], tuple[int | float | None, str]],
    categories: dict[str, list[str]],
) -> dict[str, Any]:
    """Values and statuses in the order of the cube, or by their place in it."""
    if len(cells) == prod(map(len, categories.values())):
        grid = [cells[key] for key in product(*categories.values())]
        return {
            "value": [value for value, _ in grid],
            "status": [status for _, status in grid],
        }
    position = [{label: at for at, label in enumerate(each)} for each in categories.values()]
    found: dict[str, tuple[int | float | None, str]] = {}
    for key, cell in cells.items():
        place = 0
        for at, label in zip(position, key, strict=True):
            place = place * len(at) + at[label]
        found[str(place)] = cell
    return {
        "value": {place: value for place, (value, _) in found.items()},
        "status": {place: status for place, (_, status) in found.items()},
    }
