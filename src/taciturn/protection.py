"""From microdata to a magnitude table that may leave the house: sensitive cells, suppression, audit, file."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import xarray as xr

from taciturn._files import check_writable, whole_file
from taciturn.attack import SuppressionPattern, suppress_secondary
from taciturn.attack.showing import SAFE, Grid, Shown, sizes_label
from taciturn.errors import FileFormatError, ParameterError, TableError
from taciturn.magnitude import Rule, magnitude_margins, protection_levels, sensitive_cells
from taciturn.schema import cell_label

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["ProtectedTable", "check_release", "protect_table", "release_rows", "write_release"]

_STATUS: Final = "status"


@dataclass(frozen=True, eq=False, repr=False)
class ProtectedTable:
    """A magnitude table and its totals with the cells suppressed that must be.

    Printing it shows `tables` and no suppressed value. The true table is ``pattern.release.true_table``.

    Attributes
    ----------
    tables : mapping of tuple of str to Dataset
        What may be released: for each margin, by its variables, ``value`` (float64, NaN where suppressed) and
        ``status`` (``safe``, ``primary`` or ``secondary``).
    value : str
        Name of the quantity.
    decimals : int
        Decimal places of the values.
    sensitive : mapping of tuple of str to Dataset
        `sensitive_cells` of each margin, with reasons that quote true values: not for release.
    pattern : SuppressionPattern
        The suppression with its audit, and the true table: not for release.
    """

    tables: Mapping[tuple[str, ...], xr.Dataset]
    value: str
    decimals: int
    sensitive: Mapping[tuple[str, ...], xr.Dataset]
    pattern: SuppressionPattern

    def __repr__(self) -> str:
        """What may be released, in words and small tables."""
        return self._shown().text()

    def _repr_html_(self) -> str:
        return self._shown().html()

    def _shown(self) -> Shown:
        grids = [Grid(table["value"], self.decimals, table[_STATUS]) for table in self.tables.values()]
        return Shown([f"Protected table of {self.value!r}, {sizes_label(grids[0].values, self.decimals)}"], grids)


def protect_table(
    microdata: str | PathLike[str] | Any,
    dims: str | Sequence[str],
    value: str,
    rules: Rule | Sequence[Rule],
    *,
    contributor: str | None = None,
    holding: str | None = None,
    weights: str | None = None,
    request: str | None = None,
    decimals: int = 0,
    largest: int = 5,
    categories: Mapping[str, Sequence[Any]] | None = None,
    time_limit: float = 60.0,
    gap: float = 0.0,
    random_seed: int | np.random.Generator | None = 0,
    progressbar: bool = True,
) -> ProtectedTable:
    """Tabulate microdata with all totals, and suppress what rules refuse and what would give it back.

    The steps are `magnitude_margins`, `sensitive_cells` of every margin, `suppress_secondary` with `protection_levels`
    as the interval that each sensitive cell keeps, and the audit of the result by `attacker_bounds`. A lower level
    that would go below 0 ends there. Cells without a contributor are known to be empty and stay published; all others,
    totals too, may be suppressed, at a cost of 1 and their value.

    Parameters
    ----------
    microdata, dims, value, contributor, holding, weights, request, decimals, largest, categories
        As in `magnitude_table`.
    rules : Rule or sequence of Rule
        As in `sensitive_cells`.
    time_limit, gap, random_seed, progressbar
        As in `suppress_secondary`.

    Returns
    -------
    ProtectedTable

    Raises
    ------
    TableError
        As `magnitude_table` and `sensitive_cells`; a negative total, for which an attacker has no lower bound.
    ParameterError
        A column called ``status`` or a variable called ``value``; as `magnitude_table` and `suppress_secondary`.
    AttackError
        No pattern protects, or none was found in time, as in `suppress_secondary`.

    Notes
    -----
    Attackers considered are one who contributed nothing, from whom the interval of each sensitive cell is kept, and
    each contributor who is alone in a suppressed cell and so knows its value, who must not work out another sensitive
    one exactly. Not considered are contributors who are one of several in a cell, who are alone in several cells that
    are no part of each other, or who tell each other what they know.

    References
    ----------
    Oganian & Domingo-Ferrer (2003), Sections 2 and 4; Hundepool et al., Handbook on Statistical Disclosure Control,
    Chapter 4.

    Examples
    --------
    >>> import pandas as pd, taciturn as tc
    >>> cells = [(area, size, sales) for area in "ABC" for size in "xyz" for sales in (5, 4, 3)]
    >>> firms = pd.DataFrame([*cells, ("A", "x", 90)], columns=["area", "size", "sales"])
    >>> done = tc.protect_table(firms, ["area", "size"], "sales", tc.Dominance(1, 0.75), progressbar=False)
    >>> print(str(done.pattern).splitlines()[0])
    area x size: 1 primary, 6 secondary, 2 safe
    >>> done.tables["area", "size"]["status"].item(0), done.tables["area", "size"]["value"].item(0)
    ('primary', nan)
    """
    columns = [value, *([dims] if isinstance(dims, str) else dims)]
    if _STATUS in columns or "value" in columns[1:]:
        raise ParameterError(f"{columns} must not hold 'status', nor 'value' as a variable: results are called so")
    tables = magnitude_margins(
        microdata,
        dims,
        value,
        contributor=contributor,
        holding=holding,
        weights=weights,
        request=request,
        decimals=decimals,
        largest=largest,
        categories=categories,
    )
    margins = list(tables)
    for table in tables.values():
        _refuse_negative(table["total"])
    places = int(tables[margins[0]].attrs["decimals"])
    found = {names: sensitive_cells(table, rules) for names, table in tables.items()}
    levels = {names: protection_levels(table, rules) for names, table in tables.items()}
    true = {names: table["total"] for names, table in tables.items()}
    pattern = suppress_secondary(
        true[margins[0]],
        {names: cells["sensitive"] for names, cells in found.items()},
        linked=margins,
        protection={
            names: xr.Dataset({"lower": (total - levels[names]).clip(min=0), "upper": total + levels[names]})
            for names, total in true.items()
        },
        costs={
            names: (1 + table["total"]).where(table["contributors"] > 0, other=np.inf)
            for names, table in tables.items()
        },
        singletons={names: table["contributors"] == 1 for names, table in tables.items()},
        decimals=places,
        time_limit=time_limit,
        gap=gap,
        random_seed=random_seed,
        progressbar=progressbar,
    )
    shown = {}
    for names, status in pattern.status.items():
        total = true[names].where(status == SAFE)
        shown[names] = xr.Dataset({"value": total, _STATUS: status})
    return ProtectedTable(shown, value, places, found, pattern)


def release_rows(protected: ProtectedTable, *, total: str = "Total") -> "pd.DataFrame":
    """All cells of a protected table in long form.

    Parameters
    ----------
    protected : ProtectedTable
        Of `protect_table`.
    total : str
        What stands for a variable that is summed over.

    Returns
    -------
    DataFrame
        A column for each variable, the quantity by its name, NaN where suppressed, and ``status``.

    Raises
    ------
    ParameterError
        `total` is a category of a variable; two categories are written alike.

    Examples
    --------
    >>> import pandas as pd, taciturn as tc
    >>> firms = pd.DataFrame({"area": list("AAABBB"), "sales": [5, 4, 3, 6, 5, 4]})
    >>> done = tc.protect_table(firms, "area", "sales", tc.Dominance(1, 0.75), progressbar=False)
    >>> tc.release_rows(done).values.tolist()
    [['A', 12.0, 'safe'], ['B', 15.0, 'safe'], ['Total', 27.0, 'safe']]
    """
    import pandas as pd

    variables = list(next(iter(protected.tables)))
    first = protected.tables[tuple(variables)]
    for name in variables:
        written = [str(label) for label in first[name].values]
        if total in written:
            raise ParameterError(f"total must be no category: {name!r} has {total!r}; choose another word")
        if len(set(written)) < len(written):
            raise ParameterError(f"categories of {name!r} must differ when they are written: {written}")
    parts = []
    for names, table in protected.tables.items():
        labels = list(product(*(table[name].values.tolist() for name in names)))
        rows = pd.DataFrame(labels, columns=list(names), index=range(len(labels)), dtype=object)
        for name in variables:
            if name not in names:
                rows[name] = total
        rows[protected.value] = np.ravel(table["value"].values)
        rows[_STATUS] = np.ravel(table[_STATUS].values)
        parts.append(rows[[*variables, protected.value, _STATUS]])
    return pd.concat(parts, ignore_index=True)


def write_release(protected: ProtectedTable, path: str | PathLike[str], *, total: str = "Total") -> None:
    """Write a protected table to a file that may leave the house; complete or not at all.

    The file holds the labels, the values of safe cells and a code for each cell. Values of suppressed cells are not in
    it: empty in CSV, null in Parquet and JSON-stat.

    Parameters
    ----------
    protected : ProtectedTable
        Of `protect_table`.
    path : path
        Ends in ``.csv`` (UTF-8, long form), ``.parquet`` (long form) or ``.json`` (JSON-stat 2.0).
    total : str
        What stands for a variable that is summed over.

    Raises
    ------
    ParameterError
        As `release_rows`.
    FileFormatError
        Another ending, or a file that cannot be written.
    """
    target = Path(path)
    check_release(target)
    write = _WRITERS[target.suffix.lower()]
    rows = release_rows(protected, total=total)
    with whole_file(target) as temporary:
        write(rows, protected, temporary)


def check_release(path: Path) -> None:
    """Raise `FileFormatError` unless a release can be written to `path`; asked before long work."""
    if path.suffix.lower() not in _WRITERS:
        raise FileFormatError(f"{path}: a release is written to a file that ends in {', '.join(_WRITERS)}")
    check_writable(path)


def _to_csv(rows: "pd.DataFrame", protected: ProtectedTable, path: Path) -> None:
    values = rows[protected.value]
    written = [f"{x:.{protected.decimals}f}" if safe else "" for x, safe in zip(values, values.notna(), strict=True)]
    rows.assign(**{protected.value: written}).to_csv(path, index=False, lineterminator="\n")


def _to_parquet(rows: "pd.DataFrame", protected: ProtectedTable, path: Path) -> None:
    labels = rows.columns.difference([protected.value, _STATUS])
    rows.astype(dict.fromkeys(labels, str)).to_parquet(path, index=False, engine="pyarrow")


def _to_json_stat(rows: "pd.DataFrame", protected: ProtectedTable, path: Path) -> None:
    variables = [str(name) for name in rows.columns if name not in (protected.value, _STATUS)]
    categories = {name: list(dict.fromkeys(map(str, rows[name]))) for name in variables}
    keys = list(zip(*(rows[name].astype(str) for name in variables), strict=True))
    cells = dict(zip(keys, zip(rows[protected.value], rows[_STATUS], strict=True), strict=True))
    grid = [cells[key] for key in product(*categories.values())]
    number = int if protected.decimals == 0 else float
    dataset = {
        "version": "2.0",
        "class": "dataset",
        "label": protected.value,
        "id": variables,
        "size": [len(labels) for labels in categories.values()],
        "dimension": {name: {"label": name, "category": {"index": labels}} for name, labels in categories.items()},
        "value": [None if np.isnan(value) else number(value) for value, _ in grid],
        "status": [status for _, status in grid],
    }
    path.write_text(json.dumps(dataset, ensure_ascii=False, allow_nan=False), encoding="utf-8")


_WRITERS: Final = {".csv": _to_csv, ".parquet": _to_parquet, ".json": _to_json_stat}


def _refuse_negative(total: xr.DataArray) -> None:
    below = np.argwhere(total.values < 0)
    if len(below):
        at = tuple(int(i) for i in below[0])
        where = cell_label(total, at) or "the grand total"
        raise TableError(f"totals must not be negative to be suppressed: {where} holds {total.values[at]:g}")
