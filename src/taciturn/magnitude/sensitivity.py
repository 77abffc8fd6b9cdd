"""Which cells of a magnitude table are sensitive, why, and how much protection each
needs.
"""

from collections.abc import Mapping, Sequence
from math import ceil
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.errors import ParameterError
from taciturn.magnitude.cells import cells_of
from taciturn.magnitude.rules.base import Rule, as_rule
from taciturn.tables.labels import labels_of
from taciturn.tables.margins import hierarchies, labels_along, level_codes
from taciturn.validate import first_of, quoted

__all__ = ["Safe", "protection_levels", "sensitive_cells", "sensitive_margins"]

type Safe = Mapping[str, Any]
"""By variable, a category of which no cell is sensitive, or a list of them."""


def sensitive_cells(
    table: xr.Dataset, rules: Rule | Sequence[Rule], *, safe: Safe | None = None
) -> xr.Dataset:
    """Find the cells of a magnitude table that are sensitive by some rules.

    Parameters
    ----------
    table : Dataset
        Of `tabulate_magnitude` or `tabulate_margins`.
    rules : Rule or sequence of Rule
        `Dominance`, `PPercent`, `PQ`, `MinimumFrequency`, `EntropyRule` and `Request`,
        combined with ``|`` and ``&``. Of a sequence any makes a cell sensitive, as with
        ``|``.
    safe : mapping of str to label or list of labels, optional
        By variable, categories of which no cell is sensitive, such as that of records
        whose label is missing: who is in it is not known.

    Returns
    -------
    Dataset
        Over the table's dims:

        - ``sensitive`` (bool): False in an empty cell, and where all have waived;
        - ``by_rule`` (bool), with ``rule``: the same for each of the single rules,
          named by their text;
        - ``reason``: in words, for the single rules that hold in a sensitive cell;
          empty elsewhere;
        - ``unsafe_share``: sensitive cells among the cells with a contributor, in ``[0,
          1]``; a scalar.

    Raises
    ------
    TableError
        Not a magnitude table; one whose amounts are no whole steps, whose largest
        contributions do not descend, whose shares are not those of its largest
        contributions, as in a sum of tables, or whose numbers of contributors are
        missing, negative or not whole; one that keeps fewer of the largest
        contributions than a rule needs, or, for `Request`, was made without
        ``request=``; one without any contributor.
    ParameterError
        `rules` that are not rules; `safe` names no variable or category of the table.

    Notes
    -----
    In a table with waivers the largest contributions that a rule looks at are the
    largest of which at least one is not waived: `Request` looks at the largest that is
    not, and the p%- and pq-rules protect it. `MinimumFrequency`, `UnsafeZeros` and
    `EntropyRule` hold as without waivers, unless all have waived.

    Amounts are compared in whole steps, and parameters as the decimal numbers they are
    written as, so that rounding never moves a cell across the boundary. Each cell is
    judged by itself; what follows from totals is not considered.

    References
    ----------
    Oganian & Domingo-Ferrer (2003), Section 2; Hundepool et al., Handbook on
    Statistical Disclosure Control, Section 4.2.1, waivers included; share of unsafe
    cells: the same, Section 4.6. `safe`: τ-ARGUS, option ``MIS`` of the safety rules.

    Examples
    --------
    >>> import pandas as pd, taciturn as tc
    >>> firms = pd.DataFrame(
    ...     {"area": ["A", "A", "A", "B", "B"], "turnover": [80, 15, 5, 50, 50]}
    ... )
    >>> table = tc.tabulate_magnitude(firms, "area", "turnover")
    >>> found = tc.sensitive_cells(table, tc.Dominance(1, 0.75))
    >>> found["sensitive"].values.tolist(), float(found["unsafe_share"])
    ([True, False], 0.5)
    >>> found["reason"].values[0]
    'largest 1 of 3 contributors holds 80.0 % of 100 (Dominance(1, 0.75))'
    """
    rule = as_rule(rules)
    every = cells_of(table)
    cells = every.where(every.open & ~_safe_cells(table, safe)[every.occupied])
    dims, shape = table["total"].dims, cells.occupied.shape
    parts = rule.parts()
    by_rule = np.zeros((*shape, len(parts)), dtype=bool)
    by_rule[cells.occupied] = np.stack([part.holds(cells) for part in parts], axis=-1)
    sensitive = np.zeros(shape, dtype=bool)
    sensitive[cells.occupied] = found = rule.holds(cells)
    reasons: list[list[str]] = [[] for _ in found]
    for part in parts:
        holds = found & part.holds(cells)
        for i, reason in zip(np.flatnonzero(holds), part.reasons(cells.where(holds)), strict=True):
            reasons[i].append(reason)
    words = np.full(shape, "", dtype=object)
    words[cells.occupied] = ["; ".join(given) for given in reasons]
    coords = table["total"].coords
    return xr.Dataset(
        {
            "sensitive": (dims, sensitive),
            "by_rule": ((*dims, "rule"), by_rule),
            "reason": (dims, words),
            "unsafe_share": ((), float(found.sum() / len(every.total))),
        },
        coords={**coords, "rule": [str(part) for part in parts]},
        attrs={"rules": str(rule)},
    )


def sensitive_margins(
    tables: Mapping[tuple[str, ...], xr.Dataset],
    rules: Rule | Sequence[Rule],
    safe: Safe | None = None,
) -> dict[tuple[str, ...], xr.Dataset]:
    """`sensitive_cells` of each margin of the first table. What is safe on a variable
    is so on the levels above it, too, where a group holds nothing else.
    """
    frame = next(iter(tables.values()))
    everywhere = _on_levels(frame, safe)
    return {
        names: sensitive_cells(
            table, rules, safe={name: everywhere[name] for name in names if name in everywhere}
        )
        for names, table in tables.items()
    }


def _on_levels(table: xr.Dataset, safe: Safe | None) -> dict[str, list[Any]]:
    """The safe labels of variables and of the levels above them."""
    found, total = {}, table["total"]
    for dim, chosen in _safe_labels(table, safe).items():
        for name in (dim, *hierarchies(total)[dim]):
            labels, codes = labels_along(total, name), level_codes(total, name)[1]
            others = set(codes[~chosen].tolist())
            found[name] = [label for at, label in enumerate(labels) if at not in others]
    return found


def _safe_cells(table: xr.Dataset, safe: Safe | None) -> npt.NDArray[np.bool_]:
    """Which cells are of a safe category."""
    total = table["total"]
    cells = np.zeros(total.shape, dtype=np.bool_)
    for dim, chosen in _safe_labels(table, safe).items():
        at = total.get_axis_num(dim)
        cells |= chosen.reshape([-1 if axis == at else 1 for axis in range(total.ndim)])
    return cells


def _safe_labels(table: xr.Dataset, safe: Safe | None) -> dict[str, npt.NDArray[np.bool_]]:
    """Which categories of each variable that is named are safe."""
    if not isinstance(safe, Mapping | None):
        raise ParameterError(
            f"safe must give categories by variable, such as {{'area': 'unknown'}}, got"
            f" {quoted(safe)}"
        )
    found, dims = {}, list(map(str, table["total"].dims))
    for dim, given in (safe or {}).items():
        if dim not in dims:
            raise ParameterError(f"safe must name variables of {dims}, got {quoted(dim)}")
        written = list(map(str, labels_of(table[dim])))
        # Where no label is missing, that of missing ones is no category.
        missing = table.attrs.get("missing")
        absent = [] if missing is None else [str(missing)]
        labels = list(map(str, given if isinstance(given, list | tuple) else [given]))
        if isinstance(missing, int) and (among_floats := f"{missing}.0") in written:
            labels = [among_floats if label in absent else label for label in labels]
        for label in labels:
            if label not in [*written, *absent]:
                raise ParameterError(
                    f"safe must name categories of {dim!r}, [{first_of(written)}], got"
                    f" {quoted(label)}"
                )
        found[dim] = np.isin(written, labels)
    return found


def protection_levels(table: xr.Dataset, rules: Rule | Sequence[Rule]) -> xr.DataArray:
    r"""Upper protection levels of the sensitive cells of a magnitude table.

    Once everything released allows the cell any value up to :math:`X + U`, the rule no
    longer holds for what can be worked out. The level is the least such `U`, which is,
    with :math:`x_1 \ge x_2 \ge \dots` the contributions:

    .. math::

        \text{Dominance}(n, k):&\quad U = \frac{x_1 + \dots + x_n}{k} - X \\
        \text{PPercent}(p):&\quad U = \frac{p}{100} x_1 - (X - x_1 - x_2) \\
        \text{PQ}(p, q):&\quad U = \frac{p}{q} x_1 - (X - x_1 - x_2)

    Parameters
    ----------
    table : Dataset
        Of `tabulate_magnitude` or `tabulate_margins`.
    rules : Rule or sequence of Rule
        As in `sensitive_cells`.

    Returns
    -------
    DataArray
        Upper protection levels over the table's dims, in its units, rounded up to whole
        steps; 0 where the cell is not sensitive. The lower protection level is taken to
        be the same. Of rules combined with ``|`` the largest is needed, of those
        combined with ``&`` the smallest is enough. `MinimumFrequency` and `EntropyRule`
        involve no amount and give one step, which keeps the value itself from being
        worked out.

    Raises
    ------
    TableError
        As `sensitive_cells`.
    ParameterError
        `rules` that are not rules.

    Notes
    -----
    With the second largest contributor as the attacker, who subtracts :math:`x_2`, the
    p%-rule asks for :math:`X + U - x_2 \ge (1 + p/100) x_1`, which gives the formula.
    With negative contributions `X` is the sum of sizes.

    References
    ----------
    Hundepool et al., Handbook on Statistical Disclosure Control, Section 4.2.2, "Upper
    protection levels"; Loeve (2001), Notes on sensitivity measures and protection
    levels, Statistics Netherlands.

    Examples
    --------
    >>> import pandas as pd, taciturn as tc
    >>> firms = pd.DataFrame({"area": ["A", "A", "A"], "turnover": [300, 20, 10]})
    >>> table = tc.tabulate_magnitude(firms, "area", "turnover")
    >>> tc.magnitude.protection_levels(table, tc.PPercent(10)).values.tolist()
    [20.0]
    """
    rule = as_rule(rules)
    cells = cells_of(table)
    cells = cells.where(cells.open)
    levels = np.zeros(cells.occupied.shape)
    levels[cells.occupied] = [float(ceil(level) * cells.step) for level in rule.level(cells)]
    dims = table["total"].dims
    return xr.DataArray(levels, dims=dims, coords=table["total"].coords, name="protection_level")
