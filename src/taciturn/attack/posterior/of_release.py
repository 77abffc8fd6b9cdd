"""What an attacker can work out from a release: the posterior of every cell over all
compatible tables.
"""

from collections.abc import Iterator
from typing import Final, Literal

import numpy as np
import numpy.typing as npt
import xarray as xr
from scipy.sparse import csr_array

from taciturn.attack.bounds.of_cells import attained_bounds, components
from taciturn.attack.mechanisms.likelihood import Likelihood
from taciturn.attack.posterior.cells import RESULTS, CellPosteriors
from taciturn.attack.posterior.parts import MOST_VALUES, Part
from taciturn.attack.posterior.prior import expected_counts, finite_bounds
from taciturn.attack.posterior.weights import LogWeights, within_cells
from taciturn.attack.releases.base import Release
from taciturn.attack.system import Integers, LinearSystem
from taciturn.errors import ParameterError
from taciturn.progress import progress_bar, progress_steps
from taciturn.schema import DRAW_DIMS, table_dims
from taciturn.validate import generator, whole_number

__all__ = ["attacker_posterior"]

Floats = npt.NDArray[np.float64]
_TAKEN: Final = {*RESULTS, *DRAW_DIMS}


def attacker_posterior(
    release: Release,
    *,
    prior: Literal["uniform"] | xr.DataArray = "uniform",
    draws: int = 1000,
    chains: int = 4,
    tune: int = 200,
    random_seed: int | np.random.Generator | None = None,
    progressbar: bool = True,
) -> xr.Dataset:
    r"""Posterior of every cell over all tables that are compatible with a release, and
    the risk it implies.

    The tables that a release leaves possible are the integer solutions `x` of its
    equations and inequalities. Given a prior over tables, the attacker's posterior is

    .. math:: p(x \mid y) \propto p(x) \; 1\{l \le A x \le h,\ u \le x \le v\}, \qquad
        \mathrm{DR}_j = \frac{1}{H(X_j \mid Y = y)}, \quad
        H(X_j \mid Y = y) = -\sum_k p(x_j = k \mid y) \log_2 p(x_j = k \mid y)

    The prior is uniform over tables, :math:`p(x) \propto 1`, or makes cells independent
    Poisson with given expected values, :math:`p(x) = \prod_j e^{-\mu_j} \mu_j^{x_j} /
    x_j!`; given the totals this is a multinomial model. Tables that are compatible with
    a `Perturbed` release are weighed by its likelihood as well. `attacker_bounds`
    instead takes the values of each cell as equally likely, which is not the same: in
    most of the tables a cell is near the middle of its range, or near one end.

    Cells that are connected by totals are treated together. Where these have at most
    50,000 tables, and some hundred thousand if they are at most four cells, all are
    listed, all numbers are exact and draws are independent.
    Elsewhere a Markov chain walks among the tables: it draws the next one from all
    those on a line through the present one, with their exact probabilities. Directions
    are random sums of a basis of all integer changes that the totals allow, so that
    the chain can reach any table from any other.

    Parameters
    ----------
    release : Release
        `Suppression`, `Rounding`, `GlobalRecoding`, `LinkedTables` or
        `attack.Perturbed`.
    prior : {"uniform"} or DataArray
        All compatible tables equally likely, or the counts that the attacker expects:
        dims and categories of the table, above 0 in cells that are open; for counts
        only, ``decimals=0``. Among cells whose totals are released exactly only the
        ratios of expected counts matter.
    draws : int
        Tables per chain, at least 4.
    chains : int
        Number of chains, at least 2; each starts from a table far out in a random
        direction.
    tune : int
        Tables that each chain draws first and discards.
    random_seed : int or Generator, optional
        The same seed gives the same numbers.
    progressbar : bool
        Show progress, on standard error or below the cell of a notebook.

    Returns
    -------
    Dataset
        `table`, dims ``(chain, draw, *dims of the table)``, draws of the whole table:
        int64 for counts, float64 for values with decimals, in the table's units. The
        others are over the table's dims:

        - ``lower``, ``upper``, ``n_values`` (`m`), ``disclosed``, ``published``: as in
          `attacker_bounds`;
        - ``mean``: posterior mean, in the table's units;
        - ``entropy``: `H`, in bits, from 0 to ``log2(m)``. For a walk it is the
          entropy of the average distribution along its lines, with the bias from a
          finite number of draws removed by the jackknife. Under the uniform prior the
          values of a cell that has more than 16,384 are grouped into at most that many
          intervals, within which they count as equally likely;
        - ``entropy_mcse``: its Monte Carlo standard error, 0 where exact;
        - ``risk``: ``1 / entropy``, in 1/bits: above 1 where less than one bit is left,
          infinite where only one value was ever seen, NaN where disclosed;
        - ``risk_uniform``: ``1 / log2(m)``, the risk of `attacker_bounds`;
        - ``exact`` (bool): whether all tables were listed, or the cell is disclosed;
        - ``r_hat``, ``ess_bulk``: rank-normalised split R-hat and bulk effective sample
          size of the cell's draws; NaN where exact, or where all draws agree.

    Raises
    ------
    TableError
        The release contradicts itself; a `prior` with other dimensions or categories,
        values that are negative, missing or infinite, or 0 in an open cell.
    ParameterError
        A `release` that is not a `Release`, or is of a table with negative values; a
        cell that no total limits under the uniform prior; a `prior` of another kind,
        for values with decimals, or for cells above 2**30; `draws`, `chains` or `tune`
        that are not whole numbers or too small; more than 200 million values of draws,
        or of distributions of cells; a release that leaves cells and totals more than
        20 million values to be weighed, as geometric noise does with large counts, any
        of which it may come from; a variable or level with the name of a result.
    AttackError
        The solver, HiGHS, finds no solution in whole numbers, as may happen with totals
        of 10**13 steps and more; a walk comes to no table that gives what is released,
        as there is none or it is hard to find.

    Warns
    -----
    ConvergenceWarning
        R-hat above 1.01 or an effective sample size below 400 in some cell.

    Notes
    -----
    The result holds only what follows from the release and the prior, nothing else of
    the true table.

    References
    ----------
    Oganian & Domingo-Ferrer (2003), A posteriori disclosure risk measure for tabular
    data based on conditional entropy, SORT 27, 175-190: equation (2), of which (3) is
    the case of equally likely values.

    Diaconis & Sturmfels (1998), Algebraic algorithms for sampling from conditional
    distributions, Annals of Statistics 26(1), 363-397: walks among tables with given
    totals.

    Examples
    --------
    >>> import xarray as xr, taciturn as tc
    >>> table = xr.DataArray([[1, 1], [1, 1], [1, 1]], dims=("a", "b"))
    >>> release = tc.GlobalRecoding(table, {"a": {"all": [0, 1, 2]}})  # two totals of 3
    >>> found = tc.attacker_posterior(release, random_seed=1, progressbar=False)

    Of the 10 columns that add up to 3, the cell is 0, 1, 2 and 3 in 4, 3, 2 and 1:

    >>> round(float(found["entropy"][0, 0]), 4)
    1.8464
    >>> round(float(found["risk"][0, 0]), 4), float(found["risk_uniform"][0, 0])
    (0.5416, 0.5)
    """
    if not isinstance(release, Release):
        raise ParameterError(
            "release must be a Suppression, Rounding, GlobalRecoding, LinkedTables or Perturbed,"
            f" got {type(release).__name__}"
        )
    draws = whole_number(draws, "draws", least=4)
    chains = whole_number(chains, "chains", least=2)
    tune = whole_number(tune, "tune", least=0)
    rng = generator(random_seed)
    with progress_steps("setting up the equations", shown=progressbar):
        system = release.system
    _check_size(system.published, chains, draws)
    if (system.lower < 0).any():
        raise ParameterError(
            "a posterior is of tables without negative values: use attacker_bounds, which takes"
            " others"
        )
    expected = expected_counts(prior, system.published, system.decimals)
    with progress_bar("cells that are open", len(system.unknown), shown=progressbar) as bar:
        lower, upper = attained_bounds(
            system, np.ones(len(system.unknown), dtype=np.bool_), on_cell=bar.advance
        )
    found = CellPosteriors(system, lower, upper, chains, draws)
    upper = finite_bounds(system, lower, upper, expected, release.likelihood)
    parts = list(_parts(system, lower, upper, expected, release.likelihood))
    with progress_bar("chains", len(parts) * chains, shown=progressbar) as bar:
        for columns, part in parts:
            found.keep(columns, part.posterior(chains, draws, tune, rng, bar.advance))
    found.warn()
    return found.dataset(release.publishes(table_dims(system.published)))


def _check_size(table: xr.DataArray, chains: int, draws: int) -> None:
    """Raise `ParameterError` where names of the table are those of results, or the
    draws would not fit in memory.
    """
    taken = [name for name, coord in table.coords.items() if coord.dims and name in _TAKEN]
    if taken:
        raise ParameterError(
            f"a variable or level of the table is named {taken[0]!r}, as is one of the result:"
            " rename it first"
        )
    if chains * draws * table.size > MOST_VALUES:
        raise ParameterError(
            f"{chains} chains of {draws} draws of {table.size:,} cells are"
            f" {chains * draws * table.size:,} values, at most {MOST_VALUES:,} are accepted: for"
            f" this table, {MOST_VALUES // (chains * table.size):,} draws"
        )


def _parts(
    system: LinearSystem,
    lower: Integers,
    upper: Integers,
    expected: Floats,
    likelihood: Likelihood | None = None,
) -> Iterator[tuple[Integers, Part]]:
    """The connected parts of the open cells: their columns, and the tables that each
    part may have.
    """
    weights = None
    if likelihood is not None:
        system = within_cells(system, lower, upper)
        weights = LogWeights(system, lower, upper, expected, likelihood)
    settled = np.where(lower == upper, lower, 0)
    for rows, columns in components(
        system.matrix, lower, upper, np.ones(len(lower), dtype=np.bool_)
    ):
        taken = csr_array(system.matrix[rows])
        shown = taken @ settled
        known_mean = expected.size > 0 and weights is None
        ranges = rows[system.least[rows] < system.most[rows]]
        yield (
            columns,
            Part(
                csr_array(taken[:, columns]),
                system.least[rows] - shown,
                system.most[rows] - shown,
                lower[columns],
                upper[columns],
                np.log(expected[system.unknown[columns]]) if known_mean else np.empty(0),
                ()
                if weights is None
                else (*map(weights.of_cell, columns), *map(weights.of_total, ranges)),
            ),
        )
