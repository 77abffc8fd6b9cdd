"""JSON-stat 2.0: the cells of a release as a cube."""

import json
from collections.abc import Mapping
from itertools import product
from math import isnan, prod
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, NoReturn

from taciturn.errors import FileFormatError
from taciturn.files import check_readable
from taciturn.publication.published import Published
from taciturn.schema import STATUS

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["read_json_stat", "to_json_stat"]

_LARGEST: Final = 2**28  # bytes of a file that is read


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


def read_json_stat(path: Path) -> dict[str, list[Any]]:
    """The cells of a dataset as columns: its dimensions, the values under its label,
    and the status.
    """
    check_readable(path)
    try:
        if path.stat().st_size > _LARGEST:
            raise FileFormatError(f"{path}: larger than {_LARGEST:,} bytes; write it as Parquet")
        dataset = json.loads(path.read_bytes(), parse_constant=_no_number)
        labels = {str(name): _labels(dataset["dimension"][name]) for name in dataset["id"]}
        sizes = [len(each) for each in labels.values()]
        if dataset["class"] != "dataset" or dataset["size"] != sizes:
            raise ValueError("its sizes are not those of its dimensions")
        values, status = (_by_place(dataset[name], prod(sizes)) for name in ("value", "status"))
    except FileFormatError:
        raise
    except OSError as error:
        raise FileFormatError(f"{path}: cannot be read: {error.strerror}") from error
    except (AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise FileFormatError(f"{path}: no dataset of JSON-stat 2.0: {error!s:.100}") from error
    columns: dict[str, list[Any]] = {name: [] for name in labels}
    stride = prod(sizes)
    for name, each in labels.items():
        stride //= len(each)
        columns[name] = [each[place // stride % len(each)] for place in status]
    name = str(dataset.get("label", "value"))
    if len({*labels, name, STATUS}) < len(labels) + 2:
        raise FileFormatError(
            f"{path}: two of its dimensions, label and {STATUS!r} are called alike"
        )
    return columns | {
        name: [values.get(place) for place in status],
        STATUS: list(status.values()),
    }


def _labels(dimension: Any) -> list[str]:
    """The categories of a dimension in their order, which are listed or numbered."""
    index = dimension["category"]["index"]
    if isinstance(index, Mapping):
        if sorted(index.values()) != list(range(len(index))):
            raise ValueError("categories must be numbered from 0")
        index = sorted(index, key=index.__getitem__)
    if not index or not all(isinstance(label, str) for label in index):
        raise ValueError("categories must be texts")
    if len(set(index)) < len(index):
        raise ValueError("a category stands twice in a dimension")
    return list(index)


def _by_place(given: Any, cells: int) -> dict[int, Any]:
    """What is given for each cell of the cube, or for some of them by their place."""
    if isinstance(given, Mapping):
        found = {int(place): each for place, each in given.items()}
    else:
        found = dict(enumerate(given))
        if not isinstance(given, list) or len(found) != cells:
            raise ValueError(f"{cells} cells have {len(found)} values or statuses")
    if len(found) < len(given) or not all(0 <= place < cells for place in found):
        raise ValueError("a cell must have one place in the cube")
    return found


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")
