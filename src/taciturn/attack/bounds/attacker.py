"""What an attacker can work out: bounds on every cell of a released table, and on
totals that it does not show.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.attack.bounds.knowledge import (
    contributions_of,
    held_at_least,
    nothing_left,
)
from taciturn.attack.bounds.programs import attained_bounds
from taciturn.attack.bounds.totals import total_bounds
from taciturn.attack.releases.base import Release
from taciturn.attack.system import (
    UNLIMITED,
    Booleans,
    Floats,
    LinearSystem,
)
from taciturn.errors import ParameterError, TableError
from taciturn.progress import progress_bar
from taciturn.schema import table_dims
from taciturn.tables.margins import (
    Margin,
    margin_names,
    margin_of,
)
from taciturn.tables.steps import checked_mask

__all__ = ["attacker_bounds"]

_RESULTS: Final = ("lower", "upper", "n_values", "risk", "disclosed", "published")


def attacker_bounds(
    release: Release,
    *,
    margin: Margin | None = None,
    cells: xr.DataArray | None = None,
    knowledge: Mapping[Any, float | Sequence[float]] | None = None,
    progressbar: bool = True,
) -> xr.Dataset:
    r"""Bounds on every cell, or every total of a margin, from what is released, and the
    risk that they mean.

    An attacker knows that the values are non-negative whole multiples of a step,
    ``10**-decimals``, and that they add up to what is released. The bounds are the
    least and the most that a cell holds in any such table, and are attained by one.
    With `m` the number of values between them and all of these equally likely

    .. math:: \mathrm{DR} = \frac{1}{H(X \mid Y = y)} = \frac{1}{\log_2 m}

    in 1/bits, from 0 (nothing limits the cell) to 1 (two values). For `m` = 1 the cell
    is disclosed: the formula has no value then, `risk` is NaN and `disclosed` is True.
    Values between the bounds are all counted, even where a table of more than two
    variables skips one.

    Parameters
    ----------
    release : Release
        `Suppression`, `Rounding`, `GlobalRecoding` or `LinkedTables`.
    margin : str or sequence of str, optional
        Bound the totals over these variables, or levels above them, instead of the
        cells: suppressed cells of a released projection, or totals that do not show.
        ``()`` is the grand total. All below on cells is then on these totals, but for
        `knowledge`.
    cells : DataArray of bool, optional
        True for the cells to bound, dims of the table or of the margin; all without it.
    knowledge : mapping of tuple to number or numbers, optional
        What the attackers themselves contributed to cells, of which they are the
        largest respondents but one, such as ``{("5", "small"): 400}``: categories in
        the order of the table's dimensions, and the contribution of one respondent or
        those of a coalition. Bounds of such a cell are those of the largest
        contribution of others: at least a step above the largest of the attackers', at
        most the cell's upper bound less all of theirs. That the cell holds these
        contributions limits other cells and totals, too.
    progressbar : bool
        Show progress on standard error.

    Returns
    -------
    Dataset
        Over the dims of the table or the margin, float64 but for the last two:

        - ``lower``, ``upper``: the attained bounds, in the table's units; infinite
          above where no total limits a cell;
        - ``n_values``: `m`, from 1 to infinity;
        - ``risk``: ``1 / log2(m)``, NaN where `m` is 1;
        - ``disclosed`` (bool): whether `m` is 1. A published cell is disclosed, with
          its value as both bounds;
        - ``published`` (bool): whether the cell itself is released, so that ``disclosed
          & ~published`` are the cells that follow from others.

        Where a cell is not asked for, bounds, `m` and risk are NaN and `disclosed` is
        False.

    Raises
    ------
    TableError
        The release contradicts itself where the asked cells are: the message has a
        minimal set of totals that no table has at once. A contribution in `knowledge`
        leaves nothing for a larger one. A `cells` that is not bool or has other
        dimensions or categories. A variable or level that is named like a result.
    ParameterError
        A `release` that is none; a `margin` that is not of the table's variables;
        `knowledge` of a cell that the table does not have, or contributions that are
        not above 0 or have more decimals.
    AttackError
        The solver, HiGHS, has no answer that holds in whole numbers, which totals of
        10**13 steps and more can cause. A total of the margin may reach 2**53 steps.

    Notes
    -----
    The result holds what follows from the release and from `knowledge`, and nothing
    else of the true table.

    References
    ----------
    Oganian & Domingo-Ferrer (2003), A posteriori disclosure risk measure for tabular
    data based on conditional entropy, SORT 27, 175-190: equations (2) and (3), Sections
    4.1 to 4.4; attackers who contributed: Section 4.5.4, equation (22).

    Examples
    --------
    >>> import xarray as xr, taciturn as tc
    >>> table = xr.DataArray([[3, 1, 9], [2, 4, 9]], dims=("a", "b"))
    >>> bounds = tc.attacker_bounds(tc.Suppression(table, table < 5), progressbar=False)
    >>> bounds["upper"].values.tolist()
    [[4.0, 4.0, 9.0], [5.0, 5.0, 9.0]]
    >>> float(bounds["n_values"][0, 0])
    5.0
    >>> linked = tc.LinkedTables(table.expand_dims(c=2), [("a", "b")])
    >>> tc.attacker_bounds(linked, margin=("a", "c"), progressbar=False)["upper"].values.tolist()
    [[26.0, 26.0], [30.0, 30.0]]
    """
    if not isinstance(release, Release):
        raise ParameterError(
            "release must be a Suppression, Rounding, GlobalRecoding or LinkedTables, got"
            f" {type(release).__name__}"
        )
    system = release.system()
    table = system.published
    names = table_dims(table) if margin is None else margin_names(margin, table, name="margin")
    of_cells = set(names) == set(table_dims(table))
    template, group = margin_of(table, table_dims(table) if of_cells else names)
    taken = [str(name) for name in template.coords if name in _RESULTS]
    if taken:
        raise TableError(
            f"{taken[0]!r} cannot name a variable or level: it is among the results, {_RESULTS}"
        )
    asked = np.ones(template.size, dtype=np.bool_)
    if cells is not None:
        asked = checked_mask(cells, template, name="cells").ravel()
    contributions = contributions_of(knowledge or {}, system)
    system = held_at_least(system, contributions)
    if of_cells:
        lower, upper = _cell_bounds(system, contributions, asked, progressbar)
    else:
        with progress_bar("cells that are open", int(asked.sum()), shown=progressbar) as bar:
            low, high = total_bounds(system, template, group, asked, on_total=bar.advance)
        lower, upper = low.astype(float), np.where(high >= UNLIMITED, np.inf, high)
    lower[~asked], upper[~asked] = np.nan, np.nan
    values = upper - lower + 1
    with np.errstate(divide="ignore"):
        risk = np.where(values == 1, np.nan, 1 / np.log2(values))
    step = 10.0**system.decimals
    published = release.publishes(table_dims(template))
    arrays: tuple[npt.NDArray[Any], ...] = (
        lower / step,
        upper / step,
        values,
        risk,
        values == 1,
        published,
    )
    columns = dict(zip(_RESULTS, arrays, strict=True))
    coords = {dim: template[dim] for dim in template.dims}
    found = xr.Dataset(
        {name: (template.dims, a.reshape(template.shape)) for name, a in columns.items()},
        coords=coords,
    )
    return found.transpose(*names)


def _cell_bounds(
    system: LinearSystem,
    contributions: Mapping[int, npt.NDArray[np.int64]],
    asked: Booleans,
    progressbar: bool,
) -> tuple[Floats, Floats]:
    table = system.published
    with progress_bar(
        "cells that are open", int(asked[system.unknown].sum()), shown=progressbar
    ) as bar:
        low, high = attained_bounds(system, asked[system.unknown], on_cell=bar.advance)
    lower, upper = table.values.ravel().astype(float), table.values.ravel().astype(float)
    lower[system.unknown] = low
    upper[system.unknown] = np.where(high >= UNLIMITED, np.inf, high)
    for cell, known in contributions.items():
        lower[cell], upper[cell] = known.max() + 1, upper[cell] - known.sum()
        if asked[cell] and lower[cell] > upper[cell]:
            raise TableError(nothing_left(table, cell))
    return lower, upper
