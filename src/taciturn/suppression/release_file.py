"""A protected table in long form, and as a file."""

import json
from itertools import product
from os import PathLike
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

import numpy as np

from taciturn.errors import FileFormatError, ParameterError
from taciturn.files import check_output, whole_file
from taciturn.schema import INTERNAL_STATUS, STATUS
from taciturn.suppression.protected import ProtectedTable

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["check_release", "release_rows", "write_release"]

_INTERNAL_NOTE: Final = (
    "Not for release: the status tells primary cells from secondary ones, and with the rule for"
    " primary cells that gives away what range their values are in."
)


def release_rows(
    protected: ProtectedTable, *, total: str = "Total", internal: bool = False
) -> "pd.DataFrame":
    """All cells of a protected table in long form.

    Parameters
    ----------
    protected : ProtectedTable
        Of `protect_table`.
    total : str
        Label of a variable that is summed over.
    internal : bool
        Tell primary cells from secondary ones, in a column whose name says that this is
        not for release.

    Returns
    -------
    DataFrame
        A column for each variable, one with the name of the quantity, NaN where
        suppressed, and ``status``, which is ``published`` or ``suppressed``; with
        `internal` ``status_not_for_release`` instead, which is ``safe``, ``primary`` or
        ``secondary``.

    Raises
    ------
    ParameterError
        `total` is a category of a variable; two categories would be written alike.

    Examples
    --------
    >>> import pandas as pd, taciturn as tc
    >>> firms = pd.DataFrame({"area": list("AAABBB"), "sales": [5, 4, 3, 6, 5, 4]})
    >>> rule = tc.Dominance(1, 0.75)
    >>> done = tc.protect_table(firms, "area", "sales", rule, progressbar=False)
    >>> tc.suppression.release_rows(done).values.tolist()
    [['A', 12.0, 'published'], ['B', 15.0, 'published'], ['Total', 27.0, 'published']]
    """
    import pandas as pd

    variables = list(next(iter(protected.tables)))
    first = protected.tables[tuple(variables)]
    for name in variables:
        written = [str(label) for label in first[name].values]
        if total in written:
            raise ParameterError(
                f"total must be no category: {name!r} has {total!r}; choose another word"
            )
        if len(set(written)) < len(written):
            raise ParameterError(
                f"categories of {name!r} must differ when they are written: {written}"
            )
    column = INTERNAL_STATUS if internal else STATUS
    parts = []
    for names, table in protected.tables.items():
        labels = list(product(*(table[name].values.tolist() for name in names)))
        rows = pd.DataFrame(labels, columns=list(names), index=range(len(labels)), dtype=object)
        for name in variables:
            if name not in names:
                rows[name] = total
        rows[protected.value] = np.ravel(table["value"].values)
        status = protected.pattern.status[names] if internal else table[STATUS]
        rows[column] = np.ravel(status.values)
        parts.append(rows[[*variables, protected.value, column]])
    return pd.concat(parts, ignore_index=True)


def write_release(
    protected: ProtectedTable,
    path: str | PathLike[str],
    *,
    total: str = "Total",
    internal: bool = False,
    overwrite: bool = False,
) -> None:
    """Write a protected table to a file for publication, completely or not at all.

    The file holds the labels, the values of published cells and the status of each
    cell, ``published`` or ``suppressed``. Suppressed values are not in it: they are
    empty in CSV, null in Parquet and JSON-stat. It does not say which suppressed cells
    are primary: who knows the rule would learn what range their values are in.

    Parameters
    ----------
    protected : ProtectedTable
        Of `protect_table`.
    path : path
        Ends in ``.csv`` (UTF-8, long form), ``.parquet`` (long form) or ``.json``
        (JSON-stat 2.0).
    total : str
        Label of a variable that is summed over.
    internal : bool
        Tell primary cells from secondary ones, for use within the office. The file says
        that it is not for release: by the name of the column,
        ``status_not_for_release``, and in JSON-stat by a ``note``.
    overwrite : bool
        Replace a file that exists.

    Raises
    ------
    ParameterError
        As for `release_rows`.
    FileFormatError
        Another ending; something is there already, and it is no regular file or
        `overwrite` is False; the file cannot be written.
    """
    target = Path(path)
    check_release(target, overwrite=overwrite)
    write = _WRITERS[target.suffix.lower()]
    rows = release_rows(protected, total=total, internal=internal)
    with whole_file(target, overwrite=overwrite) as file:
        write(rows, protected, file)


def check_release(path: Path, *, overwrite: bool = False) -> None:
    """Raise `FileFormatError` unless a release can be written to `path`, before long
    work is begun.
    """
    if path.suffix.lower() not in _WRITERS:
        raise FileFormatError(
            f"{path}: a release is written to a file that ends in {', '.join(_WRITERS)}"
        )
    check_output(path, overwrite=overwrite)


def _to_csv(rows: "pd.DataFrame", protected: ProtectedTable, file: IO[bytes]) -> None:
    values = rows[protected.value]
    written = [
        f"{x:.{protected.decimals}f}" if safe else ""
        for x, safe in zip(values, values.notna(), strict=True)
    ]
    shown = rows.assign(**{protected.value: written})
    shown.to_csv(file, mode="wb", index=False, lineterminator="\n")


def _to_parquet(rows: "pd.DataFrame", protected: ProtectedTable, file: IO[bytes]) -> None:
    labels = rows.columns[:-2]
    text = rows.astype(dict.fromkeys(labels, str))
    file.write(text.to_parquet(index=False, engine="pyarrow"))


def _to_json_stat(rows: "pd.DataFrame", protected: ProtectedTable, file: IO[bytes]) -> None:
    *variables, value, status = map(str, rows.columns)
    categories = {name: list(dict.fromkeys(map(str, rows[name]))) for name in variables}
    keys = list(zip(*(rows[name].astype(str) for name in variables), strict=True))
    cells = dict(zip(keys, zip(rows[value], rows[status], strict=True), strict=True))
    grid = [cells[key] for key in product(*categories.values())]
    number = int if protected.decimals == 0 else float
    dataset = {
        "version": "2.0",
        "class": "dataset",
        "label": value,
        **({"note": [_INTERNAL_NOTE]} if status == INTERNAL_STATUS else {}),
        "id": variables,
        "size": [len(labels) for labels in categories.values()],
        "dimension": {
            name: {"label": name, "category": {"index": labels}}
            for name, labels in categories.items()
        },
        "value": [None if np.isnan(value) else number(value) for value, _ in grid],
        "status": [status for _, status in grid],
    }
    file.write(json.dumps(dataset, ensure_ascii=False, allow_nan=False).encode())


_WRITERS: Final = {".csv": _to_csv, ".parquet": _to_parquet, ".json": _to_json_stat}
