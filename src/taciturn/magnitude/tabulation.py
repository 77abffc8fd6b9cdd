"""Magnitude tables: totals of a quantity, and how its contributors share them."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from os import PathLike
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.errors import TableError
from taciturn.magnitude.database import Database, open_database
from taciturn.magnitude.dataset import bytes_of_cell, magnitude_dataset
from taciturn.magnitude.margins import all_margins, named_margins
from taciturn.magnitude.roles import RESERVED, Roles
from taciturn.magnitude.statistics import (
    Kept,
    cell_statistics,
    group_contributions,
    weight_decimals,
)
from taciturn.tables.hierarchies import Hierarchies, attach, read_levels
from taciturn.tables.labels import (
    DROP,
    REFUSE,
    Codes,
    check_missing,
    check_variables,
    declared_categories,
    refuse_large_table,
)
from taciturn.tables.margins import level_codes
from taciturn.tables.sources import open_source
from taciturn.validate import names_of, whole_number

__all__ = ["tabulate_magnitude", "tabulate_margins"]

_MAX_DECIMALS: Final = 9

type Categories = Mapping[str, tuple[npt.NDArray[Any], Codes]]
"""The labels of each variable, and the position there of each code of the records."""


def tabulate_magnitude(
    records: str | PathLike[str] | Any,
    variables: str | Sequence[str],
    value: str,
    *,
    contributor: str | None = None,
    holding: str | None = None,
    sampling_weights: str | None = None,
    request: str | None = None,
    waiver: str | None = None,
    decimals: int = 0,
    largest: int = 5,
    categories: Mapping[str, Sequence[Any]] | None = None,
    missing: str | int = REFUSE,
    sep: str | None = None,
    encoding: str | None = None,
) -> xr.Dataset:
    r"""Total a quantity by some variables, with what sensitivity rules need.

    With :math:`x_1 \ge x_2 \ge \dots \ge x_N` the sizes of the contributions to a cell
    and `X` their sum,

    .. math:: H = -\sum_{i=1}^N \frac{x_i}{X} \log_2 \frac{x_i}{X}

    Parameters
    ----------
    records : path, pandas or polars DataFrame, pyarrow Table, relation of DuckDB
        One row a record. A CSV file with a header or a Parquet file, by its ending, is
        read a part at a time, so that it may be larger than memory; labels in a CSV
        are text, so ``"007"`` stays ``"007"``.
    variables : str or sequence of str
        The classifying variables.
    value : str
        The quantity: a number in every row.
    contributor : str, optional
        Column that names who contributes. Rows of one contributor in one cell are one
        contribution, their sum. Without it every row is a contributor of its own. A
        contributor may contribute to several cells.
    holding : str, optional
        Column that names the holding of a contributor, or nothing where it has none.
        All contributions of a holding to one cell are one contribution.
    sampling_weights : str, optional
        Column of sampling weights, from 1 on, read to six decimals. A contribution of
        weight `w` stands for `w` of its size; the part of one that a fraction leaves
        shares its rank with what follows. Not together with `holding`.
    request : str, optional
        Column that says (0 or 1, false or true) who asked for protection: a contributor
        does in the cells in which one of its rows says so.
    waiver : str, optional
        Column that says who waived protection; a contributor has, if all of its rows in
        the cell say so and none of them asks for protection. Not together with
        `sampling_weights`.
    decimals : int
        Decimal places of the values, from 0 to 9. All sums are exact, in whole steps of
        ``10**-decimals``.
    largest : int
        How many of the largest contributions are kept, from 1 to 100; a rule about the
        largest `n` needs `n` of them.
    categories : mapping of str to sequence, optional
        Declared categories, as in `read_table`; without them sorted, as in `tabulate`.
    missing : str or int
        What is done about a missing label, as in `tabulate`: ``"refuse"`` it,
        ``"drop"`` the record, or give it this label, which `sensitive_cells` can take
        as safe.
    sep, encoding : str, optional
        Those of a CSV file, as in `read_table`.

    Returns
    -------
    Dataset
        Over `variables`, in the units of `value`:

        - ``total``: `X` with its sign, float64; 0 in an empty cell;
        - ``absolute_total``: sum of the sizes of the contributions, the `X` of shares,
          entropy and rules. It is ``total`` where no contribution is negative;
        - ``contributors``: `N`, contributions of zero included; the sum of weights,
          then float64, else int64;
        - ``largest``, with ``rank`` from 1: the sizes of the largest contributions, 0
          beyond `N`;
        - ``share``, with ``rank``: ``largest / absolute_total``, NaN where that is 0;
        - ``entropy``: `H` in bits, in ``[0, log2 N]``, NaN in an empty cell; 0 where
          nobody contributes anything;
        - with `request`, ``requests`` and ``requested``: how many asked for protection,
          and the largest contribution of one who did;
        - with `waiver`, ``waivers`` and ``unwaived``: how many waived it, and the
          largest contribution of one who did not.

        The attribute ``decimals`` says the step of all amounts: `decimals`, and with
        weights as many more as write the weights out. With `missing`, the attribute
        ``missing`` is the label, or ``dropped`` the number of records left out.

    Raises
    ------
    TableError
        An unknown column; a missing label, contributor or number; a value that is not a
        number, is infinite or has more decimals; a label outside the declared
        categories; a contributor with two holdings or two weights; a cell beyond
        ``10**15`` steps; no rows.
    ParameterError
        `decimals` or `largest` out of range, `missing` is no label, one column in two
        roles, weights with holdings or waivers.
    FileFormatError
        The file is missing, unreadable, malformed or of another format.
    MissingDependencyError
        DuckDB or pyarrow is not installed.

    See Also
    --------
    tabulate_margins : The same for totals over some of the variables, from one reading.
    sensitive_cells : Which cells are sensitive.

    References
    ----------
    Oganian & Domingo-Ferrer (2003), Section 2, eq. (1). Holdings, weights, requests,
    waivers: Hundepool et al., Handbook on Statistical Disclosure Control, Section
    4.2.1.

    Examples
    --------
    >>> import pandas as pd, taciturn as tc
    >>> firms = pd.DataFrame({"area": list("AAAB"), "turnover": [60, 30, 10, 5]})
    >>> table = tc.tabulate_magnitude(firms, "area", "turnover", largest=2)
    >>> table["total"].values.tolist(), table["contributors"].values.tolist()
    ([100.0, 5.0], [3, 1])
    >>> table["share"].values.tolist()
    [[0.6, 0.3], [1.0, 0.0]]
    """
    names = _variables(variables)
    tables = tabulate_margins(
        records,
        names,
        value,
        margins=[names],
        contributor=contributor,
        holding=holding,
        sampling_weights=sampling_weights,
        request=request,
        waiver=waiver,
        decimals=decimals,
        largest=largest,
        categories=categories,
        missing=missing,
        sep=sep,
        encoding=encoding,
    )
    return tables[names]


def tabulate_margins(
    records: str | PathLike[str] | Any,
    variables: str | Sequence[str],
    value: str,
    *,
    margins: Iterable[str | Sequence[str]] | None = None,
    contributor: str | None = None,
    holding: str | None = None,
    sampling_weights: str | None = None,
    request: str | None = None,
    waiver: str | None = None,
    decimals: int = 0,
    largest: int = 5,
    categories: Mapping[str, Sequence[Any]] | None = None,
    missing: str | int = REFUSE,
    hierarchies: Hierarchies | None = None,
    sep: str | None = None,
    encoding: str | None = None,
) -> dict[tuple[str, ...], xr.Dataset]:
    """Magnitude tables of several margins of the same microdata, read once.

    Where contributors are in several cells, who dominates a total does not follow from
    its cells. Margins are therefore tabulated, too, and have sensitive cells of their
    own.

    Parameters
    ----------
    records, variables, value
        As in `tabulate_magnitude`.
    margins : iterable of names, optional
        The tables to make, each by its variables or levels above them, such as
        ``[("area", "sex"), "area", ()]``; ``()`` is the grand total. All without it,
        `variables` themselves first and the grand total last; of levels with the same
        groups the first, and none that combines nothing or everything.
    contributor, holding, sampling_weights, request, waiver, decimals, largest,
    categories, missing, sep, encoding
        As in `tabulate_magnitude`.
    hierarchies : mapping of str to file or data frame, optional
        Levels above some variables, as in `with_levels`.

    Returns
    -------
    dict of tuple of str to Dataset
        As of `tabulate_magnitude`, by their variables or levels in the order of
        `variables`. Categories are alike in all, and levels are coordinates along their
        variable. What is said of a total is counted from the records, as those of one
        contributor to several of its cells are one contribution to it.

    Raises
    ------
    TableError
        As `tabulate_magnitude`.
    ParameterError
        A margin over other variables, or over two levels of one, and as
        `tabulate_magnitude`.
    FileFormatError
        As `tabulate_magnitude`.
    MissingDependencyError
        DuckDB or pyarrow is not installed.

    References
    ----------
    Hundepool et al., Handbook on Statistical Disclosure Control, Sections 4.1 and
    4.2.1.

    Examples
    --------
    >>> import pandas as pd, taciturn as tc
    >>> firms = pd.DataFrame(
    ...     {"area": ["A", "A", "B"], "firm": ["f", "g", "f"], "turnover": [60, 30, 10]}
    ... )
    >>> tables = tc.magnitude.tabulate_margins(
    ...     firms, "area", "turnover", contributor="firm", largest=1
    ... )
    >>> list(tables)
    [('area',), ()]
    >>> float(tables[()]["largest"].item()), int(tables[()]["contributors"])
    (70.0, 2)
    """
    names = _variables(variables)
    levels = read_levels(hierarchies, names, sep=sep, encoding=encoding)
    above = {rows.variable: tuple(rows.levels) for rows in levels}
    check_variables([*names, *chain.from_iterable(above.values())], reserved=RESERVED)
    named = named_margins(margins, {name: above.get(name, ()) for name in names})
    roles = Roles(names, value, contributor, holding, sampling_weights, request, waiver)
    roles.check()
    check_missing(missing)
    decimals = whole_number(decimals, "decimals", least=0, most=_MAX_DECIMALS)
    largest = whole_number(largest, "largest", least=1, most=100)
    declared = declared_categories(categories, names)
    source, tables = open_source(records, sep=sep, encoding=encoding), {}
    with open_database(source, roles, decimals=decimals, missing=missing) as database:
        found = _categories(database, {**source.declared, **declared})
        frame = attach(_frame(found), levels)
        wanted = all_margins(frame) if named is None else named
        shapes = [[len(level_codes(frame, name)[0]) for name in margin] for margin in wanted]
        refuse_large_table(*shapes, bytes_of_cell=bytes_of_cell(roles, largest))
        told = _told_of_missing(database, missing)
        group_contributions(database)
        places = weight_decimals(database)
        for margin in wanted:
            kept = [_kept(frame, name, found) for name in margin]
            cells = cell_statistics(database, kept, largest=largest, places=places)
            of_margin = {name: _labels(frame, name, found) for name in margin}
            table = magnitude_dataset(cells, of_margin, decimals + places, roles, largest)
            coarser = {level: frame[level] for name in margin for level in above.get(name, ())}
            tables[margin] = table.assign_coords(coarser).assign_attrs(told)
    return tables


def _told_of_missing(database: Database, missing: str | int) -> dict[str, str | int]:
    """What a table says of missing labels."""
    if missing == REFUSE:
        return {}
    return {"dropped": database.dropped} if missing == DROP else {"missing": missing}


def _categories(database: Database, declared: Mapping[str, Sequence[Any]]) -> Categories:
    """The categories of each variable, declared or found."""
    return {
        labels.variable: labels.categories(declared.get(labels.variable))
        for labels in database.labels
    }


def _frame(categories: Categories) -> xr.DataArray:
    """An empty table over all categories, of no size in memory."""
    labels = {name: names for name, (names, _) in categories.items()}
    shape = [len(names) for names in labels.values()]
    return xr.DataArray(np.broadcast_to(0, shape), dims=list(labels), coords=labels)


def _labels(frame: xr.DataArray, name: str, found: Categories) -> tuple[npt.NDArray[Any], Codes]:
    """The labels of a variable or level, and the position there of each code."""
    if name in found:
        return found[name]
    labels, _ = level_codes(frame, name)
    return labels, np.arange(len(labels))


def _kept(frame: xr.DataArray, name: str, found: Categories) -> Kept:
    """What a margin keeps of a variable: its labels as they are coded in the records,
    or the groups that they belong to.
    """
    variable = str(frame[name].dims[0])
    at = list(map(str, frame.dims)).index(variable)
    if name == variable:
        return Kept(at)
    groups, codes = level_codes(frame, name)
    return Kept(at, codes[found[variable][1]].tolist(), len(groups))


def _variables(variables: str | Sequence[str]) -> tuple[str, ...]:
    names = names_of(
        list(variables) if isinstance(variables, tuple | list) else variables, "variables"
    )
    if not names:
        raise TableError("variables must name at least one classifying variable, got none")
    check_variables(names, reserved=RESERVED)
    return tuple(names)
