"""What an attacker can work out from a release: bounds on its cells and totals."""

from typing import Any

import numpy as np
import xarray as xr

from taciturn.attack.bounds.knowledge import Knowledge, nothing_left, with_knowledge
from taciturn.attack.bounds.of_system import bounds_of, bounds_table, check_names
from taciturn.attack.releases.base import Release
from taciturn.attack.system import UNLIMITED
from taciturn.errors import ParameterError, TableError
from taciturn.progress import progress_bar, progress_steps
from taciturn.schema import table_dims
from taciturn.tables.margins import Margin, margin_names, margin_of
from taciturn.tables.steps import checked_mask

__all__ = ["attacker_bounds", "check_release"]


def attacker_bounds(
    release: Release,
    *,
    margin: Margin | None = None,
    cells: xr.DataArray | None = None,
    knowledge: Knowledge | None = None,
    progressbar: bool = True,
) -> xr.Dataset:
    r"""Bounds that an attacker can put on every cell, or every total of a margin, and
    the risk they imply.

    An attacker knows that the values are non-negative whole multiples of a step,
    ``10**-decimals``, and that they add up to what is released. If some are negative,
    none is known to be at least 0. The bounds are the least and the most that a cell
    holds in any such table, and each is attained by one. If the `m` values from the
    lower to the upper bound are equally likely,

    .. math:: \mathrm{DR} = \frac{1}{H(X \mid Y = y)} = \frac{1}{\log_2 m}

    in 1/bits, from 0 (nothing limits the cell) to 1 (two values). For `m` = 1 the cell
    is disclosed: the formula is then undefined, `risk` is NaN and `disclosed` is True.
    All values between the bounds are counted, even one that no compatible table has,
    which can occur with more than two variables, or that the mechanism of a `Perturbed`
    table does not give.

    Parameters
    ----------
    release : Release
        `Suppression`, `Rounding`, `GlobalRecoding`, `LinkedTables` or
        `attack.Perturbed`.
    margin : str or sequence of str, optional
        Bound the totals over these variables, or levels above them, instead of the
        cells: suppressed cells of a released projection, or totals that are not
        published. ``()`` is the grand total. What is said of cells below then holds
        for these totals, except of contributions in `knowledge`.
    cells : DataArray of bool, optional
        True for the cells to bound, dims of the table or of the margin; by default all.
    knowledge : Dataset, mapping of margin to Dataset, or of cell to numbers, optional
        What the attackers know beforehand; it limits other cells and totals as well.

        - Ranges: a Dataset with the variables ``lower`` and ``upper``, infinite where
          nothing is known above, for the cells of the table, or one for each of several
          margins, such as ``{("area", "sex"): ranges}``. Who knows that a suppressed
          count is below 3 knows its range.
        - Contributions of their own to cells in which one other respondent is larger
          than any of them, such as ``{("5", "small"): 400}``: categories in the order
          of the table's dimensions, and the contribution of one respondent or those of
          a coalition. The bounds of such a cell are those of the largest contribution:
          at least a step above the attackers' largest, at most the cell's upper bound
          less all of theirs.
    progressbar : bool
        Show progress, on standard error or below the cell of a notebook.

    Returns
    -------
    Dataset
        Over the dims of the table or the margin, float64 except for the last two:

        - ``lower``, ``upper``: the attained bounds, in the table's units; infinite
          where nothing limits a cell;
        - ``n_values``: `m`, from 1 to infinity;
        - ``risk``: ``1 / log2(m)``, NaN where `m` is 1;
        - ``disclosed`` (bool): whether `m` is 1. A published cell is disclosed, with
          its value as both bounds;
        - ``published`` (bool): whether the cell itself is released, so that ``disclosed
          & ~published`` marks the cells that can be worked out from others.

        Where a cell is not asked for, bounds, `m` and risk are NaN and `disclosed` is
        False.

    Raises
    ------
    TableError
        The release contradicts itself where the asked cells are: the message quotes a
        minimal set of totals that no table can have at once. A contribution in
        `knowledge` leaves no room for a larger one, or a range in it no value. A
        `cells` that is not bool, a range that is missing or no number, or one of them
        with other dimensions or categories. A variable or level with the name of a
        result.
    ParameterError
        A `release` that is not a `Release`; a `margin` that is not over the table's
        variables; `knowledge` of a cell or margin that the table does not have, a range
        that is empty or, unless values are negative, below 0, or contributions that are
        not above 0, have more decimals, or are to a table with negative values.
    AttackError
        The solver, HiGHS, finds no solution in whole numbers, as may happen with totals
        of 10**13 steps and more. A total of the margin may reach 2**53 steps.

    Notes
    -----
    The result holds only what follows from the release and from `knowledge`, nothing
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
    >>> bounds = tc.attacker_bounds(linked, margin=("a", "c"), progressbar=False)
    >>> bounds["upper"].values.tolist()
    [[26.0, 26.0], [30.0, 30.0]]
    """
    check_release(release)
    with progress_steps("setting up the equations", shown=progressbar):
        system, contributions = with_knowledge(release.system, knowledge)
    variables = table_dims(system.published)
    names = variables
    if margin is not None:
        names = margin_names(margin, system.published, name="margin")
    labels, group = margin_of(system.published, names)
    check_names(labels)
    asked = np.ones(labels.size, dtype=np.bool_)
    if cells is not None:
        asked = checked_mask(cells, labels, name="cells").ravel()
    of_cells = set(names) == set(variables)
    open_ = asked[group][system.unknown] if of_cells else asked
    with progress_bar("cells that are open", int(open_.sum()), shown=progressbar) as bar:
        lower, upper = bounds_of(system, labels, group, asked, on_cell=bar.advance)
    if of_cells:
        for cell, known in contributions.items():
            at = group[cell]
            lower[at] = known.max() + 1
            if upper[at] < UNLIMITED:
                upper[at] -= known.sum()
            if asked[at] and lower[at] > upper[at]:
                raise TableError(nothing_left(system.published, cell))
    return bounds_table(
        labels,
        lower,
        upper,
        asked=asked,
        published=release.publishes(names),
        decimals=system.decimals,
    )


def check_release(release: Any) -> None:
    """Raise `ParameterError` at what is no release."""
    if not isinstance(release, Release):
        raise ParameterError(
            "release must be a Suppression, Rounding, GlobalRecoding, LinkedTables or Perturbed,"
            f" got {type(release).__name__}"
        )
