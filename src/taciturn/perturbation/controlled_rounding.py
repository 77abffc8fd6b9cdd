"""Controlled rounding: rounded cells and totals still add up."""

from collections.abc import Callable, Sequence
from time import monotonic

import numpy as np
import xarray as xr

from taciturn.errors import ParameterError, PerturbationError, TableError
from taciturn.perturbation.alternating_cycles import round_remainders
from taciturn.perturbation.replicates import Counts, labelled, seed_mark
from taciturn.perturbation.rounding_programs import cells_up, totals_over
from taciturn.schema import MAX_COUNT, table_dims
from taciturn.tables.checks import check_table
from taciturn.validate import generator, names_of, quoted, real_number, whole_number

__all__ = ["controlled_round"]


def controlled_round(
    table: xr.DataArray,
    *,
    rounding_base: int = 3,
    margins: Sequence[str | Sequence[str]] | None = None,
    replicates: int = 1,
    random_seed: int | np.random.Generator | None = None,
    time_limit: float = 60.0,
) -> xr.DataArray:
    r"""Round cells and totals to neighbouring multiples of a base so that they add up.

    Each cell, each total that is controlled and the grand total become one of the two
    nearest multiples of the base; what is a multiple already is unchanged
    (zero-restricted):

    .. math::

        G_i \in \{b \lfloor F_i / b \rfloor,\ b \lceil F_i / b \rceil\}, \qquad
        \sum_{i \in m} G_i \in
        \Bigl\{b \Bigl\lfloor \tfrac1b \sum_{i \in m} F_i \Bigr\rfloor,\
        b \Bigl\lceil \tfrac1b \sum_{i \in m} F_i \Bigr\rceil\Bigr\}

    *One or two variables.* Always possible, for all totals, by Cox's procedure: the
    expected value of each cell, and so of each total, is its true value. Cells are
    moved along cycles, which are taken in a fixed order; that order determines how
    cells depend on each other beyond the totals.

    *More variables.* A random linear program: with `U` uniform on (0, 1) for each cell
    and `r` its remainder, the sum of ``U - r / b`` over the cells that are rounded up
    is minimised. Without totals to control this is unbiased random rounding; with them
    expected values are near the true ones, but not equal to them. An integer program
    settles the cells that the linear one leaves between two multiples, or all cells if
    these are many.

    Kept: additivity, controlled totals to within less than `rounding_base`, zeros,
    multiples of the base. Not kept: other totals (they add up, but may be further off),
    and for more than two variables exact expected values.

    Parameters
    ----------
    table : DataArray
        Frequency table.
    rounding_base : int
        The base `b`, at least 2.
    margins : sequence of str or of sequences of str, optional
        For three or more variables: the margins whose totals are controlled beside the
        grand total, each named by its variables, such as ``[("area", "sex"), "age"]``.
        By default the totals of each variable.
    replicates : int
        Number of independent roundings, along a leading dimension ``replicate``.
    random_seed : int or Generator, optional
        For roundings that can be repeated, in measurements and tests. What has been
        drawn with it has the attribute ``not_for_release``: whoever tries seeds can
        undo it. Without it the system's entropy is used.
    time_limit : float
        Seconds for all replicates together. For more than two variables the solver,
        HiGHS, checks the clock between its steps, each of which takes seconds for
        hundreds of thousands of cells.

    Returns
    -------
    DataArray
        int64, dims ``(replicate, *dims)``. Its `margin` gives the rounded totals.

    Raises
    ------
    ParameterError
        `rounding_base` that is not a whole number from 2 to 2**53, fewer than one
        replicate, `margins` that are not variables of the table or are given for fewer
        than three, a `time_limit` that is not above 0 and finite.
    PerturbationError
        No controlled rounding with these margins exists, which is possible for three or
        more variables, or the time limit was reached.
    TableError
        Whatever `check_table` refuses, or a grand total beyond 2**53.

    References
    ----------
    Cox (1987), A constructive procedure for unbiased controlled rounding, Journal of
    the American Statistical Association 82, 520-524. Where there is none in three
    dimensions: Causey, Cox & Ernst (1985), Applications of transportation theory to
    statistical problems, Journal of the American Statistical Association 80, 903-909.

    Examples
    --------
    >>> import taciturn as tc
    >>> religion = tc.load_dataset("area_by_religion")
    >>> rounded = tc.controlled_round(religion, rounding_base=3, random_seed=1)
    >>> bool((abs(tc.margin(rounded, "area") - tc.margin(religion, "area")) < 3).all())
    True
    """
    table = check_table(table)
    rounding_base = whole_number(rounding_base, "rounding_base", least=2, most=MAX_COUNT)
    if table.values.sum(dtype=float) > MAX_COUNT:
        raise TableError(
            f"totals must be at most 2**53, that of the table is {table.values.sum(dtype=float):g}"
        )
    replicates = whole_number(replicates, "replicates", least=1)
    kept = _named_margins(table, margins)
    time_limit = real_number(time_limit, "time_limit", above=0)
    rng = generator(random_seed)
    deadline = monotonic() + time_limit
    down = table.values - table.values % rounding_base
    round_once = (
        _by_cycles(table.values, rounding_base)
        if table.ndim <= 2
        else _by_program(table, rounding_base, kept)
    )
    out = np.empty((replicates, *table.shape), dtype=np.int64)
    for done in range(replicates):
        seconds = deadline - monotonic()
        moved = round_once(rng, seconds) if seconds > 0 else None
        if moved is None:
            raise PerturbationError(
                f"the time limit of {time_limit:g} seconds was over after {done} of {replicates}"
                " replicates: allow more time, or ask for fewer replicates or margins"
            )
        out[done] = down + moved
    return labelled(table, out, seed_mark(random_seed))


def _named_margins(
    table: xr.DataArray, margins: Sequence[str | Sequence[str]] | None
) -> list[tuple[str, ...]]:
    """Variables of each margin to control, first those of the grand total, none."""
    variables = table_dims(table)
    if margins is None:
        return [(), *((dim,) for dim in variables)]
    if len(variables) < 3:
        raise ParameterError(
            f"margins are for three or more variables, the table has {variables}: all its totals"
            " are kept"
        )
    if isinstance(margins, str) or not isinstance(margins, Sequence):
        raise ParameterError(
            f"margins must be a sequence of margins, such as [{variables[0]!r}], got"
            f" {quoted(margins)}"
        )
    named = [tuple(names_of(names, "margins")) for names in margins]
    for names in named:
        if not set(names) <= set(variables) or len(set(names)) < len(names):
            raise ParameterError(
                f"margins must name variables of the table, {variables}, each once; got {names}"
            )
    return [(), *named]


def _by_cycles(counts: Counts, base: int) -> Callable[[np.random.Generator, float], Counts | None]:
    """Rounding of one or two variables: what to add to the multiples below."""
    inner = counts.reshape(-1, counts.shape[-1]) % base
    # With the negative totals as a further row and column, every row and column sums to
    # zero.
    rows, columns = inner.sum(axis=1, keepdims=True), inner.sum(axis=0, keepdims=True)
    extended = np.block([[inner, -rows], [-columns, rows.sum(keepdims=True)]]) % base

    def round_once(rng: np.random.Generator, seconds: float) -> Counts | None:
        rest = extended.copy()
        round_remainders(rest, base, rng)
        return rest[:-1, :-1].reshape(counts.shape)

    return round_once


def _by_program(
    table: xr.DataArray, base: int, margins: list[tuple[str, ...]]
) -> Callable[[np.random.Generator, float], Counts | None]:
    """Rounding of any number of variables: what to add to the multiples below, or None
    when the time limit is reached.
    """
    share = table.values % base / base
    cells = np.nonzero(share)
    chances = share[cells]
    groups = []
    for names in margins:
        group = np.zeros(len(chances), dtype=np.int64)
        for axis in (table.get_axis_num(dim) for dim in names):
            group = group * table.shape[axis] + cells[axis]
        groups.append(group)
    totals = totals_over(groups)
    # The remainders of a total sum to whole multiples of the base and a rest: this
    # many of its cells are rounded up, or one more.
    sums = totals @ (table.values % base)[cells]

    def round_once(rng: np.random.Generator, seconds: float) -> Counts | None:
        moved = np.zeros(table.shape, dtype=np.int64)
        if len(chances) == 0:
            return moved
        up = cells_up(
            rng.random(len(chances)) - chances, totals, sums // base, -(-sums // base), seconds
        )
        if up is None:
            return None
        if len(up) == 0:
            names = ", ".join(" by ".join(margin) for margin in margins if margin)
            raise PerturbationError(
                f"no controlled rounding of this table to base {base} keeps the totals of {names}:"
                " name fewer margins"
            )
        moved[cells] = base * up
        return moved

    return round_once
