"""From records to a magnitude table that may be published: sensitive cells,
suppression, audit.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, Final

import numpy as np
import xarray as xr

from taciturn.attack.releases.showing import (
    SAFE,
    Grid,
    Shown,
    sizes_label,
)
from taciturn.errors import ParameterError, TableError
from taciturn.magnitude import (
    Rule,
    protection_levels,
    sensitive_cells,
    tabulate_margins,
)
from taciturn.schema import cell_label
from taciturn.suppression.pattern import SuppressionPattern
from taciturn.suppression.secondary import suppress

__all__ = ["ProtectedTable", "protect_table"]

_STATUS: Final = "status"


@dataclass(frozen=True, eq=False, repr=False)
class ProtectedTable:
    """A magnitude table and its totals with the cells suppressed that must be.

    Printing it shows `tables` and no suppressed value. The true table is
    ``pattern.release.true_table``.

    Attributes
    ----------
    tables : mapping of tuple of str to Dataset
        What may be released: for each margin, by its variables, ``value`` (float64, NaN
        where suppressed) and ``status`` (``safe``, ``primary`` or ``secondary``).
    value : str
        Name of the quantity.
    decimals : int
        Decimal places of the values.
    sensitive : mapping of tuple of str to Dataset
        `sensitive_cells` of each margin, with reasons that quote true values: not for
        release.
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
        grids = [
            Grid(table["value"], self.decimals, table[_STATUS]) for table in self.tables.values()
        ]
        return Shown(
            [f"Protected table of {self.value!r}, {sizes_label(grids[0].values, self.decimals)}"],
            grids,
        )


def protect_table(
    records: str | PathLike[str] | Any,
    variables: str | Sequence[str],
    value: str,
    rules: Rule | Sequence[Rule],
    *,
    contributor: str | None = None,
    holding: str | None = None,
    sampling_weights: str | None = None,
    request: str | None = None,
    decimals: int = 0,
    largest: int = 5,
    categories: Mapping[str, Sequence[Any]] | None = None,
    time_limit: float = 60.0,
    gap: float = 0.0,
    random_seed: int | np.random.Generator | None = 0,
    progressbar: bool = True,
) -> ProtectedTable:
    """Tabulate microdata with all totals, and suppress what rules refuse and what would
    give it back.

    The steps are `tabulate_margins`, `sensitive_cells` of every margin, `suppress` with
    `protection_levels` as the interval that each sensitive cell keeps, and the audit of
    the result by `attacker_bounds`. A lower level that would go below 0 ends there.
    Cells without a contributor are known to be empty and stay published; all others,
    totals too, may be suppressed, at a cost of 1 and their value.

    Parameters
    ----------
    records, variables, value, contributor, holding, sampling_weights, request,
    decimals, largest, categories
        As in `tabulate_magnitude`.
    rules : Rule or sequence of Rule
        As in `sensitive_cells`.
    time_limit, gap, random_seed, progressbar
        As in `suppress`.

    Returns
    -------
    ProtectedTable

    Raises
    ------
    TableError
        As `tabulate_magnitude` and `sensitive_cells`; a negative total, for which an
        attacker has no lower bound.
    ParameterError
        A column called ``status`` or a variable called ``value``; as
        `tabulate_magnitude` and `suppress`.
    AttackError
        No pattern protects, or none was found in time, as in `suppress`.

    Notes
    -----
    Attackers considered are one who contributed nothing, from whom the interval of each
    sensitive cell is kept, and each contributor who is alone in a suppressed cell and
    so knows its value, who must not work out another sensitive one exactly. Not
    considered are contributors who are one of several in a cell, who are alone in
    several cells that are no part of each other, or who tell each other what they know.

    References
    ----------
    Oganian & Domingo-Ferrer (2003), Sections 2 and 4; Hundepool et al., Handbook on
    Statistical Disclosure Control, Chapter 4.

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
    columns = [value, *([variables] if isinstance(variables, str) else variables)]
    if _STATUS in columns or "value" in columns[1:]:
        raise ParameterError(
            f"{columns} must not hold 'status', nor 'value' as a variable: results are called so"
        )
    tables = tabulate_margins(
        records,
        variables,
        value,
        contributor=contributor,
        holding=holding,
        sampling_weights=sampling_weights,
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
    pattern = suppress(
        true[margins[0]],
        {names: cells["sensitive"] for names, cells in found.items()},
        linked=margins,
        protection={
            names: xr.Dataset(
                {"lower": (total - levels[names]).clip(min=0), "upper": total + levels[names]}
            )
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


def _refuse_negative(total: xr.DataArray) -> None:
    below = np.argwhere(total.values < 0)
    if len(below):
        at = tuple(int(i) for i in below[0])
        where = cell_label(total, at) or "the grand total"
        raise TableError(
            f"totals must not be negative to be suppressed: {where} holds {total.values[at]:g}"
        )
