"""Small count rounding: small cells are rounded so that totals change little."""

from collections.abc import Sequence
from time import monotonic

import numpy as np
import numpy.typing as npt
import xarray as xr
from scipy.sparse import csr_array

from taciturn.errors import PerturbationError
from taciturn.perturbation.replicates import Counts, labelled, seed_mark
from taciturn.perturbation.rounding_programs import cells_up, totals_over
from taciturn.perturbation.threshold_suppression import is_small
from taciturn.schema import MAX_COUNT, table_dims
from taciturn.tables.checks import check_table
from taciturn.tables.margins import margin_of, named_margins
from taciturn.validate import generator, real_number, whole_number

__all__ = ["round_small_counts"]


def round_small_counts(
    table: xr.DataArray,
    *,
    rounding_base: int = 3,
    margins: Sequence[str | Sequence[str]] | None = None,
    replicates: int = 1,
    random_seed: int | np.random.Generator | None = None,
    time_limit: float = 60.0,
) -> xr.DataArray:
    r"""Round counts below a base to zero or the base so that totals change least.

    .. math:: G_i \in \{0, b\} \quad (0 < F_i < b), \qquad G_i = F_i \quad \text{else}

    Of all such tables the result is one with the smallest largest deviation of a total,

    .. math:: \max_m \Bigl|\sum_{i \in m} G_i - \sum_{i \in m} F_i\Bigr|,

    drawn by a random integer program: with `U` uniform on (0, 1) for each cell, the sum
    of ``U - F / b`` over the cells that become `b` is minimised, which keeps expected
    values near the true ones. All totals, those of other margins too, are computed from
    the rounded cells: everything adds up, and every total is 0 or at least `b`.

    Kept: additivity, zeros, counts of the base and above; totals as nearly as possible.
    Not kept: exact totals and exact expected values. Publish only totals of the rounded
    cells: true ones would reveal what was rounded.

    Parameters
    ----------
    table : DataArray
        Frequency table of the inner cells, the finest that totals are computed from;
        records are tabulated first, by `tabulate`. Further coordinates along a variable
        are levels of a hierarchy, which name margins.
    rounding_base : int
        The base `b`, at least 2. With 3, ones and twos are rounded.
    margins : sequence of str or of sequences of str, optional
        The margins whose totals count beside the grand total, each named by its
        variables or levels, such as ``[("area", "sex"), "age"]``. By default the totals
        of each variable.
    replicates : int
        Number of independent roundings, along a leading dimension ``replicate``.
    random_seed : int or Generator, optional
        For roundings that can be repeated, in measurements and tests. What has been
        drawn with it has the attribute ``not_for_release``: whoever tries seeds can
        undo it. Without it the system's entropy is used.
    time_limit : float
        Seconds for all replicates together, as in `controlled_round`.

    Returns
    -------
    DataArray
        int64, dims ``(replicate, *dims)``. Its `margin` gives the totals to publish;
        coordinates other than those of variables, such as levels, are not copied.

    Raises
    ------
    ParameterError
        `rounding_base` that is not a whole number from 2 to 2**53, fewer than one
        replicate, `margins` that the table does not have, a `time_limit` that is not
        above 0 and finite.
    PerturbationError
        The time limit was reached.
    TableError
        Whatever `check_table` refuses.

    See Also
    --------
    adjust_small_cells : Without bias, and without regard to totals.

    References
    ----------
    Langsrud & Heldal (2018), An algorithm for small count rounding of tabular data,
    Privacy in Statistical Databases, whose algorithm is a heuristic one for the sum of
    squared deviations.

    Examples
    --------
    >>> import taciturn as tc
    >>> religion = tc.load_dataset("area_by_religion")
    >>> rounded = tc.perturbation.round_small_counts(religion, random_seed=1)
    >>> change = tc.margin(rounded, "area") - tc.margin(religion, "area")
    >>> int(abs(change).max())
    2
    """
    table = check_table(table)
    rounding_base = whole_number(rounding_base, "rounding_base", least=2, most=MAX_COUNT)
    replicates = whole_number(replicates, "replicates", least=1)
    time_limit = real_number(time_limit, "time_limit", above=0)
    if margins is None:
        margins = table_dims(table)
    named = [(), *named_margins(margins, table, name="margins")]
    rng = generator(random_seed)
    deadline = monotonic() + time_limit
    small = is_small(table.values, rounding_base)
    counts, at = table.values[small], np.flatnonzero(small)
    out = np.repeat(table.values[None], replicates, axis=0)
    if len(at):
        totals = totals_over([margin_of(table, names)[1][at] for names in named])
        deviation = 0
        for done in range(replicates):
            costs = rng.random(len(counts)) - counts / rounding_base
            found = _rounded_up(costs, totals, counts, rounding_base, deviation, deadline)
            if found is None:
                raise PerturbationError(
                    f"the time limit of {time_limit:g} seconds was over after {done} of"
                    f" {replicates} replicates: allow more time, or ask for fewer replicates or"
                    " margins"
                )
            up, deviation = found
            out[done, small] = rounding_base * up
    return labelled(table, out, seed_mark(random_seed))


def _rounded_up(
    costs: npt.NDArray[np.float64],
    totals: csr_array,
    counts: Counts,
    base: int,
    deviation: int,
    deadline: float,
) -> tuple[Counts, int] | None:
    """Which cells become the base (1), and the smallest largest deviation of a total,
    at least the one given; None when the time is over.
    """
    sums = totals @ counts.astype(float)
    nearest = np.minimum(sums % base, -sums % base)
    deviation = max(deviation, int(nearest.max()))
    while (seconds := deadline - monotonic()) > 0:
        # So many cells of each total may become the base.
        least, most = -((deviation - sums) // base), (sums + deviation) // base
        up = cells_up(costs, totals, least, most, seconds)
        if up is None:
            return None
        if len(up):
            return up, deviation
        deviation += 1
    return None
