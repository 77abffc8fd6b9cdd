"""Magnitude tables: totals of a quantity, and how its contributors share them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from os import PathLike
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.errors import ParameterError, TableError
from taciturn.magnitude.query import (
    CellStatistics,
    cell_statistics,
    group_contributions,
    weight_decimals,
)
from taciturn.schema import RESERVED_NAMES, cell_label
from taciturn.tables.records import MAX_STEPS, Records, Roles, open_records, refuse_many_cells
from taciturn.validate import names_of, whole_number

__all__ = ["tabulate_magnitude", "tabulate_margins"]

_RESERVED: Final = RESERVED_NAMES | {
    *(
        "rank",
        "rule",
        "total",
        "absolute_total",
        "contributors",
        "largest",
        "share",
        "entropy",
        "requests",
    ),
    *(
        "requested",
        "sensitive",
        "by_rule",
        "reason",
        "unsafe_share",
        "risk",
        "entropy_term",
        "mean_share",
    ),
}
_MAX_DECIMALS: Final = 9


def tabulate_magnitude(
    records: str | PathLike[str] | Any,
    variables: str | Sequence[str],
    value: str,
    *,
    contributor: str | None = None,
    holding: str | None = None,
    sampling_weights: str | None = None,
    request: str | None = None,
    decimals: int = 0,
    largest: int = 5,
    categories: Mapping[str, Sequence[Any]] | None = None,
) -> xr.Dataset:
    r"""Total a quantity by some variables, with what sensitivity rules look at.

    With :math:`x_1 \ge x_2 \ge \dots \ge x_N` the sizes of the contributions to a cell
    and `X` their sum

    .. math:: H = -\sum_{i=1}^N \frac{x_i}{X} \log_2 \frac{x_i}{X}

    Parameters
    ----------
    records : path, pandas or polars DataFrame, pyarrow Table
        One row a record. A CSV (UTF-8, comma, header) or Parquet file by its ending is
        read by DuckDB within bounded memory; labels in a CSV are text, so ``"007"``
        stays ``"007"``.
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
        Column that says (0 or 1, false or true) who asked for protection; a contributor
        asks if one of its rows does.
    decimals : int
        Decimal places of the values, from 0 to 9. All sums are exact, in whole steps of
        ``10**-decimals``.
    largest : int
        How many of the largest contributions are kept, from 1 to 100; rules need as
        many as they speak of.
    categories : mapping of str to sequence, optional
        Declared categories, as in `tabulate`; the order without them is as there, too.

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
          and the largest contribution of one who did.

        The attribute ``decimals`` says the step of all amounts: `decimals`, and with
        weights as many more as write the weights out.

    Raises
    ------
    TableError
        A column that is not there; a missing label, contributor or number, one that is
        no number or infinite or has more decimals, with its row; a label outside the
        declared categories; a contributor with two holdings or two weights; a cell
        beyond ``10**15`` steps; no rows.
    ParameterError
        `decimals` or `largest` out of range, one column in two roles, weights with
        holdings.
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
    Oganian & Domingo-Ferrer (2003), Section 2, eq. (1). Holdings, weights and requests:
    Hundepool et al., Handbook on Statistical Disclosure Control, Section 4.2.1.

    Examples
    --------
    >>> import pandas as pd, taciturn as tc
    >>> firms = pd.DataFrame({"area": ["A", "A", "A", "B"], "turnover": [60, 30, 10, 5]})
    >>> table = tc.tabulate_magnitude(firms, "area", "turnover", largest=2)
    >>> table["total"].values.tolist(), table["contributors"].values.tolist()
    ([100.0, 5.0], [3, 1])
    >>> table["share"].values.tolist()
    [[0.6, 0.3], [1.0, 0.0]]
    """
    names = _dims(variables)
    tables = tabulate_margins(
        records,
        names,
        value,
        margins=[names],
        contributor=contributor,
        holding=holding,
        sampling_weights=sampling_weights,
        request=request,
        decimals=decimals,
        largest=largest,
        categories=categories,
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
    decimals: int = 0,
    largest: int = 5,
    categories: Mapping[str, Sequence[Any]] | None = None,
) -> dict[tuple[str, ...], xr.Dataset]:
    """Magnitude tables of several margins of the same microdata, read once.

    Who dominates a total does not follow from its cells where contributors are in
    several of them, so that margins are tabulated, too, and have sensitive cells of
    their own.

    Parameters
    ----------
    records, variables, value
        As in `tabulate_magnitude`.
    margins : iterable of names, optional
        The tables to make, each by its variables, such as ``[("area", "sex"), "area",
        ()]``; ``()`` is the grand total. All without it, `variables` themselves first
        and the grand total last.
    contributor, holding, sampling_weights, request, decimals, largest, categories
        As in `tabulate_magnitude`.

    Returns
    -------
    dict of tuple of str to Dataset
        As of `tabulate_magnitude`, by their variables in the order of `variables`.
        Categories are alike in all.

    Raises
    ------
    TableError
        As `tabulate_magnitude`.
    ParameterError
        A margin over other variables, and as `tabulate_magnitude`.
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
    >>> firms = pd.DataFrame({"area": ["A", "A", "B"], "firm": ["f", "g", "f"], "turnover": [60, 30, 10]})
    >>> tables = tc.magnitude.tabulate_margins(firms, "area", "turnover", contributor="firm", largest=1)
    >>> list(tables)
    [('area',), ()]
    >>> float(tables[()]["largest"].item()), int(tables[()]["contributors"])
    (70.0, 2)
    """
    names = _dims(variables)
    wanted = _margins(margins, names)
    roles = Roles(names, value, contributor, holding, sampling_weights, request)
    _check_roles(roles)
    decimals = whole_number(decimals, "decimals", least=0, most=_MAX_DECIMALS)
    largest = whole_number(largest, "largest", least=1, most=100)
    declared = _declared(categories, names)
    with open_records(records, roles, decimals=decimals) as records:
        found, tables = _categories(records, {**records.declared, **declared}), {}
        group_contributions(records)
        places = weight_decimals(records)
        for margin in wanted:
            at = tuple(names.index(name) for name in margin)
            cells = cell_statistics(records, at, largest=largest, places=places)
            of_margin = {name: found[name] for name in margin}
            tables[margin] = _dataset(cells, of_margin, decimals + places, roles, largest)
    return tables


def _dims(dims: str | Sequence[str]) -> tuple[str, ...]:
    names = names_of(list(dims) if isinstance(dims, tuple | list) else dims, "dims")
    if not names:
        raise TableError("dims must name at least one classifying variable, got none")
    if len(set(names)) < len(names):
        raise TableError(f"a variable stands twice in {names}")
    reserved = sorted(_RESERVED & set(names))
    if reserved:
        raise TableError(
            f"{reserved} cannot name a variable, results have these names: rename the column"
        )
    return tuple(names)


def _margins(
    margins: Iterable[str | Sequence[str]] | None, dims: tuple[str, ...]
) -> list[tuple[str, ...]]:
    if margins is None:
        return [subset for size in range(len(dims), -1, -1) for subset in combinations(dims, size)]
    if isinstance(margins, str) or not isinstance(margins, Iterable):
        raise ParameterError(
            f"margins must be several, such as [('area', 'sex'), 'area', ()], got {margins!r:.80}"
        )
    found: dict[tuple[str, ...], None] = {}
    for margin in margins:
        names = names_of(list(margin) if isinstance(margin, tuple | list) else margin, "margins")
        if not set(names) <= set(dims) or len(set(names)) < len(names):
            raise ParameterError(
                f"a margin must name variables of {list(dims)}, each once; got {names}"
            )
        found[tuple(dim for dim in dims if dim in names)] = None
    return list(found)


def _check_roles(roles: Roles) -> None:
    columns = roles.columns()
    for name in columns.values():
        if not isinstance(name, str):
            raise ParameterError(f"a column must be named by text, got {name!r:.80}")
    used = list(columns.values())
    twice = [name for name in dict.fromkeys(used) if used.count(name) > 1]
    # A classifier may be what names a contributor or a holding, such as tables by
    # enterprise.
    for name in twice:
        shorts = {short for short, of in columns.items() if of == name}
        if shorts & {"x", "w", "r"} or shorts >= {"c", "h"}:
            raise ParameterError(f"the column {name!r} is given in two roles")
    if roles.weights is not None and roles.holding is not None:
        raise ParameterError(
            "weights cannot be given with holding: whose holding is that of those whom a weighted"
            " one stands for?"
        )


def _declared(
    categories: Mapping[str, Sequence[Any]] | None, dims: tuple[str, ...]
) -> dict[str, list[Any]]:
    if not isinstance(categories, Mapping | None):
        raise ParameterError(
            f"categories must be sequences of labels by variable, got {categories!r:.80}"
        )
    declared = dict(categories or {})
    unknown = [dim for dim in declared if dim not in dims]
    if unknown:
        raise ParameterError(
            f"categories are declared for {unknown}, the variables are {list(dims)}"
        )
    for dim, labels in declared.items():
        if isinstance(labels, str) or not isinstance(labels, Iterable):
            raise ParameterError(
                f"the categories of {dim!r} must be a sequence of labels, got {labels!r:.80}"
            )
    return {dim: list(labels) for dim, labels in declared.items()}


@dataclass(frozen=True)
class _Categories:
    """The categories of a variable in their order."""

    names: npt.NDArray[Any]
    positions: npt.NDArray[np.int64]
    """Where the labels stand among them, in order of appearance in the data."""


def _categories(records: Records, declared: dict[str, list[Any]]) -> dict[str, _Categories]:
    categories = {}
    for dim, found in zip(records.roles.dims, records.labels, strict=True):
        labels, order = [label for label, _ in found], declared.get(dim)
        if order is not None and any(_is_missing(label) for label in order):
            raise TableError(f"a label is missing: the categories of {dim!r}")
        text = not all(_is_whole(label) for label in [*labels, *(order or [])])
        names = [
            str(label) if text else int(label) for label in (labels if order is None else order)
        ]
        if order is None:
            names = list(dict.fromkeys(names))
        if len(set(names)) < len(names):
            raise TableError(f"the declared categories of {dim!r} hold one twice: {names}")
        at = {name: position for position, name in enumerate(names)}
        positions: list[int] = []
        for label, row in found:
            name = str(label) if text else int(label)
            if name not in at:
                raise TableError(
                    f"{dim}={label} in row {row} of {records.origin} is none of the categories"
                    f" {names}"
                )
            if "\0" in str(name):  # which NumPy would cut off
                raise TableError(f"{dim}={label!r} in row {row} of {records.origin} holds a NUL")
            if at[name] in positions:  # such as 1.0 of two types
                raise TableError(
                    f"two labels of {dim!r} are both written {name!r}, in row {row} of"
                    f" {records.origin}"
                )
            positions.append(at[name])
        categories[dim] = _Categories(np.asarray(names), np.asarray(positions))
    refuse_many_cells([len(each.names) for each in categories.values()])
    return categories


def _is_whole(label: Any) -> bool:
    return isinstance(label, int | np.integer) and not isinstance(label, bool)


def _is_missing(label: Any) -> bool:
    return label is None or (not label.strip() if isinstance(label, str) else label != label)


def _dataset(
    cells: CellStatistics,
    categories: dict[str, _Categories],
    decimals: int,
    roles: Roles,
    largest: int,
) -> xr.Dataset:
    dims = tuple(categories)
    shape = tuple(len(each.names) for each in categories.values())
    labels = {dim: each.names for dim, each in categories.items()}
    at = np.zeros(len(cells.cells), dtype=np.int64)
    if dims:
        codes = np.unravel_index(
            cells.cells, tuple(len(each.positions) for each in categories.values())
        )
        index = [
            each.positions[code] for each, code in zip(categories.values(), codes, strict=True)
        ]
        at = np.ravel_multi_index(index, shape)
    template = xr.DataArray(np.broadcast_to(0, shape), dims=dims, coords=labels)
    for total, position in zip(cells.absolute_total, at, strict=True):
        if total > MAX_STEPS:
            where = (
                cell_label(template, tuple(int(i) for i in np.unravel_index(position, shape)))
                or "the grand total"
            )
            raise TableError(
                f"a cell can hold at most 10**15 steps of 10**-{decimals}: {where} holds {total};"
                " give the values in a larger unit, or values and weights with fewer decimals"
            )

    def placed(
        values: Any, *, empty: Any = 0, dtype: Any = np.float64, ranks: int | None = None
    ) -> Any:
        flat = np.full((int(np.prod(shape)), *([ranks] if ranks else [])), empty, dtype=dtype)
        flat[at] = values
        return flat.reshape((*shape, *([ranks] if ranks else [])))

    step = 10.0**decimals  # dividing by it gives the double nearest to the decimal number
    absolute = np.asarray(cells.absolute_total, dtype=np.float64)
    sizes = np.asarray(cells.largest, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        shares = sizes / absolute[:, None]
    counted = np.float64 if roles.weights is not None else np.int64
    ranked = (*dims, "rank")
    variables = {
        "total": (dims, placed(np.asarray(cells.total, dtype=np.float64) / step)),
        "absolute_total": (dims, placed(absolute / step)),
        "contributors": (dims, placed(cells.contributors, dtype=counted)),
        "largest": (ranked, placed(sizes / step, ranks=largest)),
        "share": (ranked, placed(shares, empty=np.nan, ranks=largest)),
        "entropy": (dims, placed(cells.entropy, empty=np.nan)),
    }
    if cells.requests is not None and cells.requested is not None:
        variables["requests"] = (dims, placed(cells.requests, dtype=counted))
        variables["requested"] = (
            dims,
            placed(np.asarray(cells.requested, dtype=np.float64) / step),
        )
    coords = labels | {"rank": np.arange(1, largest + 1)}
    return xr.Dataset(variables, coords=coords, attrs={"value": roles.value, "decimals": decimals})
