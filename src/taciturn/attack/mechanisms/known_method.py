"""`H(X | Y)` for those who know the mechanism, but not what it did to this table."""

from typing import Final

import numpy as np
import xarray as xr

from taciturn.attack.mechanisms.base import Floats, Integers, Mechanism
from taciturn.attack.mechanisms.expected_joint import Alike, expected_joint
from taciturn.errors import ParameterError, TableError
from taciturn.information.reduction import log_base
from taciturn.schema import draw_dims, table_dims
from taciturn.tables.checks import aligned, check_table

__all__ = ["mechanism_conditional_entropy"]

_WIDEST: Final = 2**10
_MOST_COUNTS: Final = 1_000
_LEFT_OUT: Final = 1e-12


def mechanism_conditional_entropy(
    table: xr.DataArray,
    mechanism: Mechanism,
    *,
    population: xr.DataArray | None = None,
    base: float | None = None,
) -> xr.DataArray:
    r"""`H(X | Y)` of a table under a known mechanism, over all that it may release.

    What is left to somebody who sees one person's cell in a release and knows the
    method, but not what it did. The mechanism gives the table `G` with the probability
    `T(G)`, a product over cells, and the joint distribution of the cells before and
    after is the expected value

    .. math::

        P(X = i, Y = i) = \sum_G T(G)\, m_i, \qquad
        P(X = i, Y = j) = \sum_G T(G)\, r_i s_j / t

    with `m`, `r`, `s` and `t` of `F` and `G` as in `conditional_entropy`. Averages over
    replicates, `averaged_conditional_entropy`, are too low where these are few. Given
    to `disclosure_risk` as `conditional_entropy`, it gives R2 for those who know the
    method.

    Parameters
    ----------
    table : DataArray
        The table that is perturbed.
    mechanism : Mechanism
        Such as `RandomRounding`, `SmallCellAdjustment`, `CellKeys` or
        `GeometricNoise`; it changes each cell for itself.
    population : DataArray, optional
        The table whose entropy it is, `F`, where `table` is a sample of it, or draws of
        it along ``chain`` and ``draw``. Without it `table` is the population.
    base : float, optional
        Base of the logarithm: 2 gives bits, None nats.

    Returns
    -------
    DataArray
        In ``[0, H(X)]``, one value for each draw of the population, a scalar without
        any. The error is below 1e-9: that of the quadrature, and of totals of a
        probability below 1e-11 and of counts of one below 1e-12, which are left out. It
        is a larger part of values near 0, of tables nearly all in one cell.

    Raises
    ------
    TableError
        What `check_table` refuses, a table with nobody in it, or tables whose
        categories differ.
    ParameterError
        `mechanism` that is not a `Mechanism`, or whose probabilities do not sum to 1;
        an invalid `base`; more than 1,000 different counts, or more work than some
        minutes.

    Notes
    -----
    *Work.* It grows with the square of the number of different counts in the table,
    not of cells, with the square of the width of the distribution of the total `M`,
    and with some 40 nodes of an integral. Each draw of a population costs as much:
    take every tenth or so. Random rounding of 2,000 cells takes seconds, geometric
    noise with `ε` = 1 about half a minute for 100 cells.

    *Structural zeros.* The mechanism is taken to change every cell of the table, as
    `add_noise` does.

    *Nothing released.* A release with `M = 0` is an outcome of its own, which says
    nothing. *F released.* `G` proportional to `F` has `t = 0` and moves nobody, the
    term `T(F)` of Theorem 6.

    *Theorem 5*, where all assignments of individuals to a release are equally likely,
    has the joint :math:`p_i \sum_G T(G) G_j / M_G`, a product: `H(X|Y) = H(X)` for any
    mechanism.

    References
    ----------
    Antal, Shlomo & Elliot (2014), Theorems 5 and 6.

    Examples
    --------
    >>> import taciturn as tc
    >>> sex = tc.load_dataset("area_by_sex")
    >>> rounding = tc.attack.RandomRounding(3)
    >>> exact = tc.attack.mechanism_conditional_entropy(sex, rounding)
    >>> rounded = tc.random_round(sex, rounding_base=3, replicates=50, random_seed=1)
    >>> bool(tc.information.averaged_conditional_entropy(sex, rounded) < exact)
    True
    """
    table = check_table(table, like=(population,))
    unit = log_base(base)
    if not isinstance(mechanism, Mechanism):
        raise ParameterError(f"mechanism must be a Mechanism, got {type(mechanism).__name__}")
    whose = (
        table
        if population is None
        else check_table(population, name="population", draws=True, like=(table,))
    )
    whose = aligned(whose, table, names=("population", "table"))
    dims = [dim for dim in draw_dims(whose) if dim in whose.dims]
    whose = whose.transpose(*dims, *table_dims(table))
    counts = whose.values.reshape(-1, table.size)
    if (counts.sum(axis=1) == 0).any():
        raise TableError("a table with nobody in it has no entropy")
    different = np.unique(table.values).tolist()
    if len(different) > _MOST_COUNTS:
        raise ParameterError(
            f"the table has {len(different):,} different counts, at most {_MOST_COUNTS:,} are"
            " worked out exactly; average over replicates with averaged_conditional_entropy"
        )
    released = {count: _released(mechanism, count) for count in different}
    values = [_left(row, table.values.ravel(), released) / unit for row in counts]
    return xr.DataArray(
        np.reshape(values, [whose.sizes[dim] for dim in dims]),
        dims=dims,
        coords={dim: whose[dim] for dim in dims if dim in whose.coords},
        name="conditional_entropy",
    )


def _left(
    population: Integers, perturbed: Integers, released: dict[int, tuple[Integers, Floats]]
) -> float:
    """`H(X | Y)` in nats of one population."""
    pairs, number = np.unique(np.stack([population, perturbed]), axis=1, return_counts=True)
    # Cells that are empty before and after add nothing to any sum.
    shown = np.array([released[count][0].max() > 0 for count in pairs[1].tolist()])
    kept = shown | (pairs[0] > 0)
    pairs, number = pairs[:, kept], number[kept]
    given = [released[count] for count in pairs[1].tolist()]
    least = np.array([values[0] for values, _ in given])
    step = int(np.gcd.reduce(np.concatenate([values - values[0] for values, _ in given]))) or 1
    width = max(int(values[-1] - values[0]) // step for values, _ in given) + 1
    probability = np.zeros((len(number), width))
    for row, (values, chances) in zip(probability, given, strict=True):
        row[(values - values[0]) // step] = chances
    share = pairs[0] / population.sum()
    return expected_joint(Alike(number, share, least, probability, step)).conditional_entropy()


def _released(mechanism: Mechanism, count: int) -> tuple[Integers, Floats]:
    """What may be released of a count, and its probabilities: ever further from the
    count, until they sum to 1.
    """
    true, width = np.array([count]), 1
    while True:
        values = np.arange(max(count - width, 0), count + width + 1)
        chances = np.exp([mechanism.log_probability(y, true)[0] for y in values.tolist()])
        missing = 1 - chances.sum()
        if missing < _LEFT_OUT:
            break
        width *= 2
        if width > _WIDEST:
            raise ParameterError(
                f"{mechanism!r} releases counts more than {width // 2:,} away from {count}, or its"
                f" probabilities of {count} sum to {chances.sum():.9g} and not to 1"
            )
    if missing < -1e-9:
        raise ParameterError(
            f"the probabilities of what {mechanism!r} releases of {count} sum to"
            f" {chances.sum():.9g} and not to 1"
        )
    positive = chances > 0
    return values[positive], chances[positive]
