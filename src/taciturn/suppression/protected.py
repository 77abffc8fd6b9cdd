"""From records to a magnitude table that may be published: sensitive cells, secondary
suppression, audit.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, Unpack, overload

import numpy as np
import xarray as xr

from taciturn.attack.bounds.knowledge import Knowledge
from taciturn.attack.releases.showing import Grid, Shown, sizes_label
from taciturn.attack.system import has_negative
from taciturn.errors import ParameterError
from taciturn.magnitude import Rule, protection_levels, tabulate_margins
from taciturn.magnitude.contradictions import refuse_other_margins
from taciturn.magnitude.sensitivity import Safe, sensitive_margins
from taciturn.progress import progress_steps
from taciturn.schema import INTERNAL_STATUS, STATUS
from taciturn.suppression.apriori import Apriori
from taciturn.suppression.pattern import SuppressionPattern
from taciturn.suppression.quantities import (
    ProtectOptions,
    by_quantity,
    quantities_of,
    with_same_cells,
)
from taciturn.suppression.secondary import suppress
from taciturn.tables.hierarchies import Hierarchies, read_levels
from taciturn.tables.margins import Margin
from taciturn.validate import real_number, seed_number

__all__ = [
    "ProtectedTable",
    "asked_of",
    "check_names",
    "protect_margins",
    "protect_table",
]


@dataclass(frozen=True, eq=False, repr=False)
class ProtectedTable:
    """A magnitude table and its totals, with sensitive and secondary cells suppressed.

    Printing it shows `tables`, which are for release, and nothing else. The true table
    is ``pattern.release.true_table``.

    Attributes
    ----------
    tables : mapping of tuple of str to Dataset
        What may be released, unless ``pattern.not_for_release`` says why not: for each
        margin, by its variables, ``value`` (float64, NaN where suppressed) and
        ``status`` (``published`` or ``suppressed``).
    value : str
        Name of the quantity.
    decimals : int
        Decimal places of the values.
    sensitive : mapping of tuple of str to Dataset
        `sensitive_cells` of each margin, with reasons that quote true values: not for
        release.
    pattern : SuppressionPattern
        The suppression with its audit and the true table, which tells primary cells
        from secondary ones: not for release.
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
        grids = [Grid(table["value"], self.decimals) for table in self.tables.values()]
        title = f"Protected table of {self.value!r}, {sizes_label(grids[0].values, self.decimals)}"
        if self.pattern.not_for_release:
            title += ": NOT FOR RELEASE, not all sensitive cells are proved to be protected"
        return Shown([title], grids)


@overload
def protect_table(
    records: str | PathLike[str] | Any,
    variables: str | Sequence[str],
    value: str,
    rules: Rule | Sequence[Rule] | Mapping[str, Rule | Sequence[Rule]],
    **options: Unpack[ProtectOptions],
) -> ProtectedTable: ...


@overload
def protect_table(
    records: str | PathLike[str] | Any,
    variables: str | Sequence[str],
    value: list[str] | tuple[str, ...],
    rules: Rule | Sequence[Rule] | Mapping[str, Rule | Sequence[Rule]],
    **options: Unpack[ProtectOptions],
) -> dict[str, ProtectedTable]: ...


def protect_table(
    records: str | PathLike[str] | Any,
    variables: str | Sequence[str],
    value: str | list[str] | tuple[str, ...],
    rules: Rule | Sequence[Rule] | Mapping[str, Rule | Sequence[Rule]],
    *,
    contributor: str | None = None,
    holding: str | None = None,
    sampling_weights: str | None = None,
    request: str | None = None,
    waiver: str | None = None,
    decimals: int | Mapping[str, int] = 0,
    largest: int = 5,
    categories: Mapping[str, Sequence[Any]] | None = None,
    missing: str | int = "refuse",
    hierarchies: Hierarchies | None = None,
    sep: str | None = None,
    encoding: str | None = None,
    safe: Safe | None = None,
    knowledge: tuple[float, float] | Knowledge | None = None,
    apriori: Apriori | Mapping[str, Apriori | None] | None = None,
    safety_range: float = 0.0,
    empty_cells_known: bool = True,
    same_cells: bool = False,
    time_limit: float = 60.0,
    gap: float = 0.0,
    random_seed: int | np.random.Generator | None = None,
    progressbar: bool = True,
) -> ProtectedTable | dict[str, ProtectedTable]:
    """Tabulate microdata with all totals, and suppress the cells that rules find
    sensitive and those from which they could be worked out.

    The steps are `tabulate_margins`, `sensitive_cells` of every margin, `suppress` with
    `protection_levels` as the interval that must remain for each sensitive cell, and
    the audit of the result, as by `attacker_bounds`. A lower level that would go below
    0 ends there, unless the table has negative cells. Cells without a contributor are
    known to be empty, unless `empty_cells_known` is False, and remain published; all
    others, totals included, may be suppressed, at a cost of 1 plus the size of their
    total.

    Parameters
    ----------
    records, variables, contributor, holding, sampling_weights, request, waiver,
    largest, categories, missing, sep, encoding
        As in `tabulate_magnitude`.
    value : str or list of str
        The quantity, or several: each is then tabulated, judged and protected as if it
        were alone, with the same seed and `time_limit` seconds, in whatever order they
        are named.
    decimals : int or mapping of str to int
        Decimal places of the values, or those of each quantity.
    hierarchies : mapping of str to file or data frame, optional
        Levels above some variables, as in `with_levels`. Totals of all combinations of
        levels are tabulated, judged and protected, too.
    rules, safe
        As in `sensitive_cells`, `rules` also by quantity; what is safe on a variable is
        safe on the levels above it, too, where a group holds nothing else.
    knowledge, apriori, time_limit, gap, random_seed, progressbar
        As in `suppress`, `apriori` also by quantity. What it says of a cell stands
        above the rules.
    safety_range : float
        How far above and below, in percent of its total, a cell must be possible that
        `apriori` makes sensitive without saying so itself; at least one step.
    empty_cells_known : bool
        Whether everybody knows that cells without a contributor are empty, so that they
        are published in any case. Otherwise they may be suppressed, too.
    same_cells : bool
        Whether a cell that is suppressed for one of several quantities is suppressed
        for all.

    Returns
    -------
    ProtectedTable or dict of str to ProtectedTable
        Of several quantities one for each, by its name.

    Raises
    ------
    TableError
        As for `tabulate_magnitude` and `sensitive_cells`.
    ParameterError
        A column or level called ``status`` or ``status_not_for_release``, or a variable
        or level called ``value``; rules, decimals or instructions by quantity that are
        not those of each; with `same_cells`, a cell that `apriori` wants published in
        one quantity; as for `tabulate_magnitude` and `suppress`.
    AttackError
        No pattern protects, or none was found in time, as in `suppress`.

    Warns
    -----
    UnprovedWarning
        Some sensitive cells are not proved to be protected, as in `suppress`.

    Notes
    -----
    Two kinds of attackers are considered: an outsider who contributed nothing, for whom
    the interval of each sensitive cell must remain, and each contributor who is alone
    in a suppressed cell and so knows its value, who must not be able to work out
    another sensitive cell exactly. Not considered are contributors who are one of
    several in a cell, who are alone in several cells of which none is part of another,
    or who share what they know.

    Where a cell of the table is negative, as of profits or changes, an attacker is
    taken to know no bound of any cell, a positive one or an empty one, beyond what
    follows from the release and from `knowledge`. A cell that cannot be worked out may
    then hold anything. Rules look at the sizes of contributions, as in
    `sensitive_cells`.

    With `same_cells` the pattern of each quantity grows by the cells of the others. It
    still protects: what was compatible with the published cells is so with fewer of
    them. Nobody is taken to know how quantities hang together. Where they add up to
    another, they are no quantities of their own but categories of one more variable.

    References
    ----------
    Oganian & Domingo-Ferrer (2003), Sections 2 and 4; Hundepool et al., Handbook on
    Statistical Disclosure Control, Chapter 4.

    Examples
    --------
    >>> import pandas as pd, taciturn as tc
    >>> cells = [(area, size, x) for area in "ABC" for size in "xyz" for x in (5, 4, 3)]
    >>> columns = ["area", "size", "sales"]
    >>> firms = pd.DataFrame([*cells, ("A", "x", 90)], columns=columns)
    >>> rule = tc.Dominance(1, 0.75)
    >>> done = tc.protect_table(
    ...     firms, ["area", "size"], "sales", rule, random_seed=1, progressbar=False
    ... )
    >>> print(str(done.pattern).splitlines()[0])
    area x size: 1 primary, 6 secondary, 2 safe
    >>> cell = done.tables["area", "size"].isel(area=0, size=0)
    >>> cell["status"].item(), cell["value"].item()
    ('suppressed', nan)
    >>> several = tc.protect_table(
    ...     firms.assign(staff=9), "area", ["sales", "staff"], rule, progressbar=False
    ... )
    >>> {name: table.pattern.n_primary for name, table in several.items()}
    {'sales': 0, 'staff': 0}
    """
    names = quantities_of(value)
    dims = [variables] if isinstance(variables, str) else list(variables)
    levels = read_levels(hierarchies, dims, sep=sep, encoding=encoding)
    for name in names:
        check_names(name, [*dims, *(level for rows in levels for level in rows.levels)])
    seed = random_seed if isinstance(value, str) else seed_number(random_seed)
    form: dict[str, Any] = {"contributor": contributor, "holding": holding, "request": request}
    form |= {"waiver": waiver, "sampling_weights": sampling_weights, "largest": largest}
    form |= {"categories": categories, "missing": missing, "hierarchies": hierarchies}
    form |= {"sep": sep, "encoding": encoding}
    asked: dict[str, Any] = {"knowledge": knowledge, "safety_range": safety_range}
    asked |= {"empty_cells_known": empty_cells_known, "random_seed": seed}
    asked |= {"time_limit": time_limit, "gap": gap, "progressbar": progressbar}
    done = {}
    for name, own in by_quantity(names, rules=rules, decimals=decimals, apriori=apriori).items():
        with progress_steps("tabulating the records", shown=progressbar):
            tables = tabulate_margins(records, dims, name, decimals=own.pop("decimals"), **form)
        done[name] = _protected(tables, name, own.pop("rules"), safe, **own, **asked)
    done = with_same_cells(done, apriori) if same_cells else done
    return done[value] if isinstance(value, str) else done


def protect_margins(
    tables: Mapping[tuple[str, ...], xr.Dataset],
    rules: Rule | Sequence[Rule],
    *,
    safe: Safe | None = None,
    knowledge: tuple[float, float] | Knowledge | None = None,
    apriori: Apriori | None = None,
    safety_range: float = 0.0,
    empty_cells_known: bool = True,
    time_limit: float = 60.0,
    gap: float = 0.0,
    random_seed: int | np.random.Generator | None = None,
    progressbar: bool = True,
) -> ProtectedTable:
    """Protect a magnitude table that is tabulated already, with its totals.

    Parameters
    ----------
    tables : mapping of tuple of str to Dataset
        Of `read_margins` or `tabulate_margins`: the table over all variables first, and
        the margins that are to be released with it. No other total is.
    rules, safe, knowledge, apriori, safety_range, empty_cells_known, time_limit, gap,
    random_seed, progressbar
        As in `protect_table`.

    Returns
    -------
    ProtectedTable

    Raises
    ------
    TableError
        A table that is no margin of the first: other variables, another quantity or
        other decimals, a total that is not the sum of its cells; as for
        `protect_table`.
    ParameterError, AttackError
        As for `protect_table`.

    Examples
    --------
    >>> import pandas as pd, taciturn as tc
    >>> cells = pd.DataFrame(
    ...     [("A", 60, 3, 50), ("B", 40, 9, 8), ("C", 9, 4, 3), ("Total", 109, 16, 50)],
    ...     columns=["area", "sales", "firms", "first"],
    ... )
    >>> tables = tc.magnitude.read_margins(
    ...     cells, "area", "sales", contributors="firms", largest=["first"]
    ... )
    >>> done = tc.suppression.protect_margins(
    ...     tables, tc.Dominance(1, 0.75), random_seed=1, progressbar=False
    ... )
    >>> done.tables["area",]["status"].values.tolist()
    ['suppressed', 'published', 'suppressed']
    """
    refuse_other_margins(tables)
    first, table = next(iter(tables.items()))
    value = str(table.attrs["value"])
    levels = [str(name) for name in table["total"].coords if name not in first]
    check_names(value, [*first, *levels])
    asked = {"knowledge": knowledge, "apriori": apriori, "safety_range": safety_range}
    more = {"empty_cells_known": empty_cells_known, "random_seed": random_seed}
    limits = {"time_limit": time_limit, "gap": gap, "progressbar": progressbar}
    return _protected(tables, value, rules, safe, **asked, **more, **limits)


def _protected(
    tables: Mapping[tuple[str, ...], xr.Dataset],
    value: str,
    rules: Rule | Sequence[Rule],
    safe: Safe | None,
    **options: Any,
) -> ProtectedTable:
    """Protect the tables of all margins of one."""
    by_hand = {name: options.pop(name) for name in ("safety_range", "empty_cells_known")}
    real_number(by_hand["safety_range"], "safety_range", least=0)
    sensitive = sensitive_margins(tables, rules, safe)
    margins = list(tables)
    table = tables[margins[0]]
    places = int(table.attrs["decimals"])
    asked: Any = asked_of(tables, sensitive, rules, signed=has_negative(table["total"]), **by_hand)
    pattern = suppress(table["total"], linked=margins, decimals=places, **asked, **options)
    return ProtectedTable(pattern.tables, value, places, sensitive, pattern)


def check_names(value: str, variables: Sequence[str]) -> None:
    """Raise `ParameterError` where a column has the name of a result."""
    if {STATUS, INTERNAL_STATUS} & {value, *variables} or "value" in variables:
        raise ParameterError(
            f"{[value, *variables]} must not hold 'status' or 'status_not_for_release', nor 'value'"
            " as a variable: these name results"
        )


def asked_of(
    tables: Mapping[tuple[str, ...], xr.Dataset],
    sensitive: Mapping[tuple[str, ...], xr.Dataset],
    rules: Rule | Sequence[Rule],
    *,
    signed: bool,
    safety_range: float,
    empty_cells_known: bool,
) -> dict[str, dict[Margin, Any]]:
    """What `suppress` is asked of magnitude tables that are all margins of one: to
    suppress what is sensitive, to the protection levels of the rules, and what is to be
    by hand. If it is signed, no cell is known to be at least 0.
    """
    asked: dict[str, dict[Margin, Any]] = {
        name: {} for name in ("primary", "protection", "costs", "singletons")
    }
    for names, table in tables.items():
        total, by_rule = table["total"], protection_levels(table, rules)
        is_sensitive = sensitive[names]["sensitive"]
        step = 10.0 ** -int(table.attrs["decimals"])
        level = by_rule.where(is_sensitive, (abs(total) * (safety_range / 100)).clip(min=step))
        open_ = (table["contributors"] > 0) | (not empty_cells_known)
        asked["primary"][names] = is_sensitive
        asked["protection"][names] = xr.Dataset(
            {"lower": (total - level).clip(min=None if signed else 0), "upper": total + level}
        )
        asked["costs"][names] = (1 + abs(total)).where(open_, other=np.inf)
        asked["singletons"][names] = table["contributors"] == 1
    return asked
