"""Secondary suppression: which further cells must not be published, so that the
primary ones cannot be worked out.
"""

import warnings
from collections.abc import Mapping, Sequence
from functools import partial
from time import monotonic
from typing import Final

import numpy as np
import xarray as xr

from taciturn.attack.bounds.knowledge import Knowledge
from taciturn.attack.solver import OutOfTimeError
from taciturn.attack.system import Booleans
from taciturn.errors import AttackError, UnprovedWarning
from taciturn.progress import progress_bar, progress_steps
from taciturn.suppression.apriori import Apriori, instructions_of
from taciturn.suppression.arguments import (
    checked_cells,
    checked_costs,
    checked_flags,
    checked_gap,
    checked_knowledge,
    checked_required,
    refuse_none,
)
from taciturn.suppression.audit import Make, audited, pattern_of, unaudited
from taciturn.suppression.pattern import SuppressionPattern
from taciturn.suppression.search import PatternSearch
from taciturn.suppression.task import Task
from taciturn.tables.margins import Margin
from taciturn.validate import generator, real_number

__all__ = ["searched", "suppress", "warn_if_unproved"]

_SEARCH: Final = 0.9  # of the time, for the search; the rest is for the audit
_WITH_SINGLETONS: Final = 0.6  # the same where what single contributors know comes after it


def suppress(
    table: xr.DataArray,
    primary: xr.DataArray | Mapping[Margin, xr.DataArray],
    *,
    linked: Sequence[Margin] | None = None,
    protection: float | xr.Dataset | Mapping[Margin, xr.Dataset] = 1.0,
    costs: xr.DataArray | Mapping[Margin, xr.DataArray] | None = None,
    singletons: xr.DataArray | Mapping[Margin, xr.DataArray] | None = None,
    knowledge: tuple[float, float] | Knowledge | None = None,
    apriori: Apriori | None = None,
    decimals: int = 0,
    time_limit: float = 60.0,
    gap: float = 0.0,
    random_seed: int | np.random.Generator | None = None,
    progressbar: bool = True,
) -> SuppressionPattern:
    r"""Secondary suppression: suppress further cells, at the least cost found, so that
    no primary cell can be worked out.

    .. math::

        \min_{S \supseteq P} \sum_{c \in S \setminus P} w_c
        \quad \text{such that} \quad
        \min_{x \in T(S)} x_p \le \ell_p, \quad \max_{x \in T(S)} x_p \ge h_p
        \quad \text{for all } p \in P

    with `P` the primary cells, `w` the costs, and `T(S)` the tables that are compatible
    with what is published when `S` is suppressed, and with `knowledge`. If the
    protection is a risk, the condition is ``1 / log2 m <= risk`` instead, for the `m`
    values from the least to the most.

    The linear relaxation of this problem gives `bound` and the cells that it suppresses
    in part. The cheapest pattern of these and a few more cells comes first; linear
    programs for each primary cell add what it lacks. Cells that no pattern has which is
    cheaper than that are then left out, and if at most 2,000 remain, an integer program
    looks for the cheapest pattern of all and, once it is found, for others of the same
    cost: of up to 50 the one with the largest rank decrease is taken. In all cases the
    result is audited as by `attacker_bounds`. What a solver claims is believed only
    where tables of whole steps prove it.

    Parameters
    ----------
    table : DataArray
        The true table: counts, or magnitudes with `decimals` decimal places.
    primary : DataArray of bool or mapping of margin to DataArray of bool
        True for sensitive cells: of the table, or of released margins, such as
        ``{("area", "sex"): mask}``.
    linked : sequence of margins, optional
        All that is released: projections of the table, each named by its variables;
        ``()`` is the grand total, and all variables together are the table itself. Any
        of their cells may be suppressed. Without it the table is released with all its
        totals, and these remain published. Cells of the table are protected only as far
        as they are primary: projections together may give others away, which
        ``attacker_bounds(pattern.release)`` shows.
    protection : float, Dataset or mapping of margin to Dataset
        The uncertainty that must remain at each primary cell. A number above 0 and up
        to 1 is the largest risk in 1/bits; with 1, the default, no primary cell can be
        worked out exactly. A Dataset has the variables ``lower`` and ``upper`` in the
        table's units: values as low and as high as these must be possible.
    costs : DataArray or mapping of margin to DataArray, optional
        What it costs to suppress each cell, above 0; infinite where it must be
        published. By default 1 and the size of the cell's value, in the table's units.
    singletons : DataArray of bool or mapping of margin to DataArray of bool, optional
        True for cells with a single contributor, who knows the value and can subtract
        it. None of these contributors may then work out any other primary cell exactly.
        That who is alone in a total knows more of its parts is not considered.
    knowledge : pair of numbers, Dataset or mapping, optional
        What an attacker knows beforehand. A pair is the range of every primary cell, as
        known to who knows the rule: ``(1, 2)`` for counts that are primary if they are
        below 3 but not 0. If no cell with less than the first number may be suppressed,
        an attacker is taken to know that of all suppressed cells. Otherwise ranges or
        contributions as `attacker_bounds` takes them, of the table's cells, or ranges
        of margins whose cells may be suppressed. Where knowledge alone leaves a cell
        less uncertain than `protection` asks for, all that it leaves must remain, which
        is at least two values.
    apriori : DataFrame or path, optional
        Instructions for single cells: a data frame with a row for each, or a file that
        `read_apriori` reads. It has columns of variables, in which a level above one
        stands in the column of the variable, and a total is missing, or ``Total``
        unless a category is called so; and

        - ``status``: ``sensitive``, primary; ``safe``, not primary, whatever `primary`
          says; ``published``, must be published, as in an earlier release;
          ``suppressed``, was suppressed before and must not be worked out;
        - ``cost``: as in `costs`;
        - ``lower`` and ``upper``: how far below and above its value an attacker must
          have to consider a primary cell possible, in place of `protection`.
    decimals : int
        Decimal places of the values, from 0 to 12; an attacker knows them.
    time_limit : float
        Seconds, for search and audit together, after which the best pattern found so
        far is taken. Where there was no time to audit it, the bounds of `audit` are
        those that are proved to be possible.
    gap : float
        Relative distance to the least cost that is good enough, from 0 to below 1.
    random_seed : int or Generator, optional
        For the directions in which tables are looked for. The same seed gives the same
        pattern, unless the time limit ends the search.
    progressbar : bool
        Show progress, on standard error or below the cell of a notebook.

    Returns
    -------
    SuppressionPattern

    Raises
    ------
    TableError
        Values that are missing, infinite or have more decimals; masks, costs
        or intervals with other dimensions or categories; a row of `apriori` for a cell
        that may not be suppressed, with a status that is not known, or against another.
    ParameterError
        Margins that are not variables of the table; `primary`, `costs` or `protection`
        for a margin that is not released; costs that are not above 0; a risk outside
        (0, 1], an interval or `knowledge` that does not contain the true value; a
        primary cell that `apriori` wants published.
    AttackError
        No pattern protects, or `knowledge` alone leaves a single value: the message
        names the primary cell. No pattern that is proved to protect any of them was
        found within `time_limit`. The audit finds a primary cell that is not protected,
        which would be a fault of this function. The attribute `pattern` of the error,
        and of a `KeyboardInterrupt`, is what was found so far.

    Warns
    -----
    UnprovedWarning
        Some primary cells are not proved to be protected, as there was no time or the
        solver failed. They are in ``pattern.unproved``, and nothing is for release.

    Notes
    -----
    Where tables with some variables in common are released, but not the table that they
    are projections of, `suppression.suppress_tables` does the same with far fewer
    unknowns.

    An attacker knows that values are at least 0. If some cell of the table is negative,
    an attacker is taken to know no bound of any cell but those of `knowledge`; a cell
    that cannot be worked out may then hold anything.

    Who knows the rule learns more where primary cells can be told from secondary ones:
    release ``pattern.tables``, not ``pattern.status``. A range of the primary cells in
    `knowledge` assumes the worse, that they can be told. All that is possible to this
    attacker is possible to one who sees only which cells are suppressed. Who can tell
    them apart also knows that secondary cells are not in the range; that is no
    interval, and is considered only where ranges say it.

    References
    ----------
    Oganian & Domingo-Ferrer (2003), Section 4.5, Propositions 1 to 3. Fischetti &
    Salazar (2001), Solving the cell suppression problem on tabular data with linear
    constraints, Management Science 47, 1008-1027.

    Examples
    --------
    >>> import xarray as xr, taciturn as tc
    >>> values = [[20, 50, 10], [8, 19, 22], [17, 32, 12]]
    >>> table = xr.DataArray(values, dims=("activity", "region"))
    >>> pattern = tc.suppress(table, table == 8, random_seed=1, progressbar=False)
    >>> pattern.status["activity", "region"].values.tolist()[1:]
    [['primary', 'safe', 'secondary'], ['secondary', 'safe', 'secondary']]
    >>> pattern.cost, pattern.gap
    (54.0, 0.0)
    """
    start = monotonic()
    deadline = start + real_number(time_limit, "time_limit", above=0)
    gap = checked_gap(gap)
    with progress_steps("setting up the equations", shown=progressbar):
        cells = checked_cells(table, linked, decimals)
        told = instructions_of(apriori, cells)
        if apriori is None:
            refuse_none(primary, "primary")
        ruled = checked_flags(primary, cells, name="primary")
        flags = told.primary(ruled)
        required = told.required(checked_required(flags, protection, cells), ruled, cells)
        alone = checked_flags(singletons, cells, name="singletons")
        prices = told.prices(checked_costs(costs, cells), flags, cells)
        known = checked_knowledge(knowledge, cells, required, prices)
        task = Task(cells, prices, required.within(known), known)
        rng = generator(random_seed)
    make: Make[SuppressionPattern] = partial(pattern_of, table)
    pattern = searched(task, alone, make, rng, (start, deadline), gap, shown=progressbar)
    warn_if_unproved([pattern])
    return pattern


def searched[T](
    task: Task,
    alone: Booleans,
    make: Make[T],
    rng: np.random.Generator,
    times: tuple[float, float],
    gap: float,
    *,
    shown: bool,
) -> T:
    """The audited result of a search from a start to a deadline. An error has what was
    found so far.
    """
    start, deadline = times
    with progress_steps("setting up the search", shown=shown):
        share = _WITH_SINGLETONS if alone.any() else _SEARCH
        until = start + share * (deadline - start)
        search = PatternSearch(task, rng, alone, deadline=until)
    try:
        primaries = len(task.required.cells)
        with progress_bar("primary cells to protect", primaries, shown=shown) as bar:
            search.first(bar.advance)
            bar.finish("cheaper patterns")
            search.cheapest(gap)
            search.hide_from_singletons(start + _SEARCH * (deadline - start))
            return audited(task, search.found, make, deadline=deadline)
    except (AttackError, KeyboardInterrupt) as error:
        _keep(error, search, make)
        raise


def _keep[T](error: AttackError | KeyboardInterrupt, search: PatternSearch, make: Make[T]) -> None:
    """Let an error have the pattern that was found so far."""
    if getattr(error, "pattern", None) is None:
        error.pattern = unaudited(search.task, search.found, make)  # type: ignore[union-attr]
    if isinstance(error, KeyboardInterrupt):
        error.add_note("The attribute `pattern` of this error is what was found so far.")


def warn_if_unproved(patterns: Sequence[SuppressionPattern], result: object = None) -> None:
    """Warn if it is not proved that patterns protect; raises if nothing is proved. The
    error has the result.
    """
    unproved, primary = (
        sum(counts)
        for counts in zip(*((each.n_unproved, each.n_primary) for each in patterns), strict=True)
    )
    if unproved and unproved == primary:
        error = OutOfTimeError(
            "no pattern was found within time_limit that is proved to protect, or the solver"
            " failed; a longer one, or a weaker protection, may do"
        )
        error.pattern = patterns[0] if result is None else result
        raise error
    if unproved:
        warnings.warn(
            f"{unproved} of {primary} primary cells are not proved to be protected"
            " (`unproved`): do not release this pattern; a longer time_limit may do",
            UnprovedWarning,
            stacklevel=3,
        )
