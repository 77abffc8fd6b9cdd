"""Which cells of a magnitude table are sensitive, why, and how much protection each
needs.
"""

from collections.abc import Sequence
from math import ceil

import numpy as np
import xarray as xr

from taciturn.magnitude.cells import cells_of
from taciturn.magnitude.rules.base import Rule, as_rule

__all__ = ["protection_levels", "sensitive_cells"]


def sensitive_cells(table: xr.Dataset, rules: Rule | Sequence[Rule]) -> xr.Dataset:
    """Find the cells of a magnitude table that are sensitive by some rules.

    Parameters
    ----------
    table : Dataset
        Of `tabulate_magnitude` or `tabulate_margins`.
    rules : Rule or sequence of Rule
        `Dominance`, `PPercent`, `PQ`, `MinimumFrequency`, `EntropyRule` and `Request`,
        combined with ``|`` and ``&``. Of a sequence any makes a cell sensitive, as with
        ``|``.

    Returns
    -------
    Dataset
        Over the table's dims:

        - ``sensitive`` (bool): False in an empty cell;
        - ``by_rule`` (bool), with ``rule``: the same for each of the single rules,
          named by their text;
        - ``reason``: in words, for the single rules that hold in a sensitive cell;
          empty elsewhere;
        - ``unsafe_share``: sensitive cells among the cells with a contributor, in ``[0,
          1]``; a scalar.

    Raises
    ------
    TableError
        Not a magnitude table; one that keeps fewer of the largest contributions than a
        rule needs, or, for `Request`, was made without ``request=``; one without any
        contributor.
    ParameterError
        `rules` that are not rules.

    Notes
    -----
    Amounts are compared in whole steps, and parameters as the decimal numbers they are
    written as, so that rounding never moves a cell across the boundary. Each cell is
    judged by itself; what follows from totals is not considered.

    References
    ----------
    Oganian & Domingo-Ferrer (2003), Section 2; Hundepool et al., Handbook on
    Statistical Disclosure Control, Section 4.2.1; share of unsafe cells: the same,
    Section 4.6.

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
    cells = cells_of(table)
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
            "unsafe_share": ((), float(found.mean())),
        },
        coords={**coords, "rule": [str(part) for part in parts]},
        attrs={"rules": str(rule)},
    )


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
    levels = np.zeros(cells.occupied.shape)
    levels[cells.occupied] = [float(ceil(level) * cells.step) for level in rule.level(cells)]
    dims = table["total"].dims
    return xr.DataArray(levels, dims=dims, coords=table["total"].coords, name="protection_level")
