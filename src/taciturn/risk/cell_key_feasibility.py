"""What the cell-key method leaves possible to an attacker who has its perturbation
table and the totals.
"""

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.errors import TableError
from taciturn.schema import REPLICATE, draw_dims, table_dims
from taciturn.tables.checks import check_table
from taciturn.tables.transitions import check_perturbation_table, perturbed_counts
from taciturn.validate import generator, whole_number

__all__ = ["cell_key_feasibility"]

Counts = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_BLOCK_CELLS: Final = 2**18  # of draws perturbed at a time
_RESULTS: Final = ("disclosed", "disclosed_alone", "n_values")


def cell_key_feasibility(
    table: xr.DataArray,
    *,
    perturbation: xr.DataArray,
    replicates: int = 1,
    random_seed: int | np.random.Generator | None = None,
) -> xr.Dataset:
    r"""Share of the counts that can be worked out after the cell-key method.

    A perturbed count :math:`y_i` comes from counts between :math:`l_i` and
    :math:`u_i`, the least and the most that the perturbation table turns into it. So
    does the total :math:`y_+` of a line of cells, one for each category of a variable,
    which is perturbed as well, and the true counts add up to the true total:

    .. math:: \max\Bigl(l_i,\ l_+ - \sum_{j \ne i} u_j\Bigr) \le F_i \le
        \min\Bigl(u_i,\ u_+ - \sum_{j \ne i} l_j\Bigr)

    This is the feasibility interval of a cell in a line; that in a table is what the
    lines along all its variables have in common.

    Parameters
    ----------
    table : DataArray
        The true table `F`, or draws of it.
    perturbation : DataArray
        Transition probabilities as `perturbation_table` returns them, dims ``(original,
        perturbed)``, which the attacker knows.
    replicates : int
        Number of independent sets of record keys for each table.
    random_seed : int or Generator, optional
        For results that can be repeated.

    Returns
    -------
    Dataset
        On `chain` and `draw` of the table and `replicate`; lazy draws are computed:

        - ``disclosed``: share of the cells whose interval is one value, in ``[0, 1]``;
        - ``disclosed_alone``: share of those for which this already follows from their
          own perturbed count, not above ``disclosed``;
        - ``n_values``: mean number of whole numbers in the interval, at least 1.

    Raises
    ------
    ParameterError
        A perturbation table that `cell_key` refuses; fewer than one replicate.
    TableError
        A table with the dimension `replicate`, and what `check_table` refuses.

    Notes
    -----
    *The noise of totals.* As in `cell_key_records`, the key of a total is the sum of
    the keys of its cells modulo 1. Keys near 1 add up to a key near 1 where they are
    few, so that noise which is largest in all cells of a short line and smallest in its
    total, and would disclose all of them, does not occur. With noise of its own in
    every total it would, and probabilities that take it for independent are too high
    for short lines.

    *What it does not tell.* Each total is used by itself; those of lines together, and
    the totals of these, may tell more. `attacker_bounds` of an `attack.Perturbed` table
    has everything that follows from one release, where the noise of its totals is
    independent. An interval of two values can be as good as one for an attacker who
    weighs them.

    References
    ----------
    Enderle, Giessing & Tent (2020), Calculation of risk probabilities for the cell key
    method, Privacy in Statistical Databases, Springer, 151-165; Hundepool et al.,
    Handbook on Statistical Disclosure Control, second edition, Section 5.4.

    Examples
    --------
    >>> import taciturn as tc
    >>> table = tc.load_dataset("area_by_religion")
    >>> for most in (1, 3):
    ...     noise = tc.perturbation.perturbation_table(most, 0.5)
    ...     options = {"replicates": 100, "random_seed": 1}
    ...     found = tc.risk.cell_key_feasibility(table, perturbation=noise, **options)
    ...     print(round(float(found["n_values"].mean()), 1))
    2.6
    5.6
    """
    table = check_table(check_table(table, draws=True, values=False).compute(), draws=True)
    if REPLICATE in table.dims:
        raise TableError(f"table has the dimension {REPLICATE!r}, which numbers sets of keys here")
    replicates = whole_number(replicates, "replicates", least=1)
    cumulated, columns = check_perturbation_table(perturbation)
    possible = _possible_counts(cumulated, columns)
    rng = generator(random_seed)
    lead, variables = draw_dims(table), table_dims(table)
    table = table.transpose(*lead, *variables)
    shape = table.shape[len(lead) :]
    counts = table.values.reshape(-1, *shape)
    found = np.empty((len(_RESULTS), len(counts), replicates))
    step = max(1, _BLOCK_CELLS // int(np.prod(shape)))
    for start in range(0, len(counts), step):
        block = slice(start, start + step)
        for replicate in range(replicates):
            true = counts[block]
            keys = rng.random(true.shape) * (true > 0)
            lines = [_line(true, keys, axis, cumulated, columns) for axis in range(1, true.ndim)]
            released = perturbed_counts(true, keys, cumulated, columns)
            found[:, block, replicate] = _feasible(released, lines, possible)
    dims = (*lead, REPLICATE)
    sizes = (*(table.sizes[dim] for dim in lead), replicates)
    return xr.Dataset(
        {name: (dims, each.reshape(sizes)) for name, each in zip(_RESULTS, found, strict=True)},
        coords={dim: table[dim] for dim in lead if dim in table.coords}
        | {REPLICATE: np.arange(replicates)},
    )


def _line(counts: Counts, keys: Floats, axis: int, cumulated: Floats, columns: Counts) -> Counts:
    """Perturbed totals along an axis, which is kept."""
    total, key = counts.sum(axis=axis, keepdims=True), keys.sum(axis=axis, keepdims=True) % 1
    return perturbed_counts(total, key, cumulated, columns)


def _possible_counts(cumulated: Floats, columns: Counts) -> tuple[Counts, Counts, Counts]:
    """The least and the most of the counts behind each perturbed one up to the last
    column, and by how much those behind a larger one differ from it.
    """
    outcomes = np.diff(np.minimum(cumulated, 1), axis=1, prepend=0) > 0
    last = len(outcomes) - 1
    noise = columns[outcomes[last]] - last
    most = int(columns.max())
    lower, upper = np.full((2, most + 1), -1)
    for count in range(most - int(noise.min()) + 1):
        row = min(count, last)
        given = columns[outcomes[row]] + count - row
        given = given[given <= most]
        upper[given] = count
        lower[given[lower[given] < 0]] = count
    return lower, upper, np.array([-noise.max(), -noise.min()])


def _feasible(released: Counts, lines: list[Counts], possible: Any) -> list[Floats]:
    """The results for releases of shape (tables, *cells) with their totals."""
    alone = _interval(released, possible)
    lower, upper = alone
    for axis, totals in enumerate(lines, start=1):
        least, most = _interval(totals, possible)
        above = alone[1].sum(axis=axis, keepdims=True) - alone[1]
        below = alone[0].sum(axis=axis, keepdims=True) - alone[0]
        lower, upper = np.maximum(lower, least - above), np.minimum(upper, most - below)
    cells = tuple(range(1, released.ndim))
    return [
        (lower == upper).mean(axis=cells),
        (alone[0] == alone[1]).mean(axis=cells),
        (upper - lower + 1).mean(axis=cells),
    ]


def _interval(released: Counts, possible: tuple[Counts, Counts, Counts]) -> tuple[Counts, Counts]:
    """The least and the most of the counts that give the released ones."""
    lower, upper, beyond = possible
    at = np.minimum(released, len(lower) - 1)
    large = released > at
    return (
        np.where(large, released + beyond[0], lower[at]),
        np.where(large, released + beyond[1], upper[at]),
    )
