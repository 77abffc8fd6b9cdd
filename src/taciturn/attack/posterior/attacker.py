"""What an attacker can work out: the posterior of every cell over all tables that are
compatible with a release.
"""

import warnings
from collections.abc import Iterator
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
import xarray as xr
from scipy.sparse import csr_array

from taciturn.attack.bounds.programs import attained_bounds, components
from taciturn.attack.posterior.diagnostics import bulk_ess, split_r_hat
from taciturn.attack.posterior.parts import MOST_VALUES, Part, PartPosterior
from taciturn.attack.releases.base import Release
from taciturn.attack.system import UNLIMITED, Integers, LinearSystem
from taciturn.errors import ConvergenceWarning, ParameterError, TableError
from taciturn.progress import progress_bar
from taciturn.schema import MAX_COUNT, cell_label, table_dims
from taciturn.tables.checks import same_categories
from taciturn.validate import generator, whole_number

__all__ = ["attacker_posterior"]

_VARIABLES: Final = (
    *(
        "table",
        "chain",
        "draw",
        "lower",
        "upper",
        "n_values",
        "mean",
        "entropy",
        "entropy_mcse",
        "risk",
        "risk_uniform",
    ),
    *("disclosed", "published", "exact", "r_hat", "ess_bulk"),
)
_HIGHEST_R_HAT: Final = 1.01
_SMALLEST_ESS: Final = 400
_LARGEST_COUNT: Final = 2**30  # logarithms of factorials of larger ones are too coarse

Floats = npt.NDArray[np.float64]


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
    the risk that it means.

    The tables that a release leaves possible are the whole-number solutions `x` of its
    equations and inequalities. With a prior over tables the attacker's posterior is

    .. math:: p(x \mid y) \propto p(x) \; 1\{l \le A x \le h,\ u \le x \le v\}, \qquad
        \mathrm{DR}_j = \frac{1}{H(X_j \mid Y = y)}, \quad
        H(X_j \mid Y = y) = -\sum_k p(x_j = k \mid y) \log_2 p(x_j = k \mid y)

    The prior is uniform over tables, :math:`p(x) \propto 1`, or makes cells independent
    Poisson with given expected values, :math:`p(x) = \prod_j e^{-\mu_j} \mu_j^{x_j} /
    x_j!`; with totals given this is a multinomial model. `attacker_bounds` instead
    takes the values of a cell as equally likely, which is another thing: most tables
    have a cell near the middle of its values, or near one end.

    Cells that hang together by totals are treated at once. Where they have at most
    50,000 tables these are listed, all numbers are exact, and draws are independent.
    Elsewhere a Markov chain walks among the tables: it draws the next one from all
    those on a line through the present one, with their exact probabilities. Directions
    are random sums of a basis of all whole-number changes that the totals allow, so
    that it comes from any table to any other.

    Parameters
    ----------
    release : Release
        `Suppression`, `Rounding`, `GlobalRecoding` or `LinkedTables`.
    prior : {"uniform"} or DataArray
        All compatible tables equally likely, or the expected counts that the attacker
        has in mind: dims and categories of the table, above 0 in cells that are open;
        for counts only, ``decimals=0``. Only their ratios matter among cells whose
        totals are released exactly.
    draws : int
        Tables a chain, at least 4.
    chains : int
        Number of chains, at least 2; each begins at a table far out in a random
        direction.
    tune : int
        Tables that each chain draws and drops first.
    random_seed : int or Generator, optional
        The same seed gives the same numbers.
    progressbar : bool
        Show progress on standard error.

    Returns
    -------
    Dataset
        `table`, dims ``(chain, draw, *dims of the table)``, draws of the whole table:
        int64 for counts, float64 for values with decimals, in the table's units. The
        others are over the table's dims:

        - ``lower``, ``upper``, ``n_values`` (`m`), ``disclosed``, ``published``: as in
          `attacker_bounds`;
        - ``mean``: posterior mean, in the table's units;
        - ``entropy``: `H`, in bits, from 0 to ``log2(m)``. Of a walk it is the entropy
          of the average distribution along its lines, with the bias of few draws
          removed by the jackknife. Under the uniform prior a cell with more than 16,384
          values has at most that many intervals of them, in which values count as
          equally likely;
        - ``entropy_mcse``: its Monte Carlo standard error, 0 where exact;
        - ``risk``: ``1 / entropy``, in 1/bits: above 1 where less than one bit is left,
          infinite where no other value has a probability that is seen, NaN where
          disclosed;
        - ``risk_uniform``: ``1 / log2(m)``, the risk of `attacker_bounds`;
        - ``exact`` (bool): whether all tables were listed, or the cell is disclosed;
        - ``r_hat``, ``ess_bulk``: rank-normalised split R-hat and effective sample size
          of the cell's draws; NaN where exact, or where all draws agree.

    Raises
    ------
    TableError
        The release contradicts itself; a `prior` with other dimensions or categories,
        values that are negative, missing or infinite, or 0 in an open cell.
    ParameterError
        A `release` that is none; a cell that no total limits under the uniform prior; a
        `prior` that is neither, for values with decimals, or for cells above 2**30;
        `draws`, `chains` or `tune` that are not whole; more than 200 million values of
        draws, or of distributions of cells.
    AttackError
        The solver, HiGHS, has no answer that holds in whole numbers, which totals of
        10**13 steps and more can cause.

    Warns
    -----
    ConvergenceWarning
        R-hat above 1.01 or an effective sample size below 400 in some cell.

    Notes
    -----
    The result holds what follows from the release and the prior, and nothing else of
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
    >>> round(float(found["entropy"][0, 0]), 4)  # of 10 tables a column 4, 3, 2 and 1 have 0, 1, 2 and 3
    1.8464
    >>> round(float(found["risk"][0, 0]), 4), float(found["risk_uniform"][0, 0])
    (0.5416, 0.5)
    """
    if not isinstance(release, Release):
        raise ParameterError(
            "release must be a Suppression, Rounding, GlobalRecoding or LinkedTables, got"
            f" {type(release).__name__}"
        )
    draws = whole_number(draws, "draws", least=4)
    chains = whole_number(chains, "chains", least=2)
    tune = whole_number(tune, "tune", least=0)
    rng = generator(random_seed)
    system = release.system()
    template = system.published
    _check_names(template)
    if chains * draws * template.size > MOST_VALUES:
        raise ParameterError(
            f"{chains} chains of {draws} draws of {template.size:,} cells are"
            f" {chains * draws * template.size:,} values, at most {MOST_VALUES:,} are accepted: for"
            f" this table, {MOST_VALUES // (chains * template.size):,} draws"
        )
    expected = _expected(prior, template, system.decimals)
    with progress_bar("cells that are open", len(system.unknown), shown=progressbar) as bar:
        lower, upper = attained_bounds(
            system, np.ones(len(system.unknown), dtype=np.bool_), on_cell=bar.advance
        )
    cells = _Cells(template, chains, draws)
    cells.settle(system.unknown, lower)
    parts = list(_parts(system, lower, _limited(system, lower, upper, expected), expected))
    with progress_bar("chains", len(parts) * chains, shown=progressbar) as bar:
        for columns, part in parts:
            cells.keep(
                system.unknown[columns], part.posterior(chains, draws, tune, rng, bar.advance)
            )
    cells.warn()
    return _dataset(system, lower, upper, cells)


class _Cells:
    """What is found for each cell of the table, in steps; settled unless a part tells
    otherwise.
    """

    def __init__(self, template: xr.DataArray, chains: int, draws: int) -> None:
        self._template = template
        self.table = np.empty((chains, draws, template.size), dtype=np.int64)
        self.mean = np.empty(template.size)
        self.settle(np.arange(template.size), template.values.ravel())
        self.entropy, self.error = np.zeros(template.size), np.zeros(template.size)
        self.exact = np.ones(template.size, dtype=np.bool_)
        self.r_hat, self.ess = np.full(template.size, np.nan), np.full(template.size, np.nan)

    def settle(self, places: Integers, values: Integers) -> None:
        """Give cells one value."""
        self.table[:, :, places], self.mean[places] = values, values

    def keep(self, places: Integers, found: PartPosterior) -> None:
        """Take over what is found for a part, with its diagnostics."""
        self.table[:, :, places] = found.draws
        self.entropy[places], self.error[places], self.mean[places] = (
            found.entropy,
            found.error,
            found.mean,
        )
        self.exact[places] = found.exact
        if not found.exact:
            for place in places:
                self.r_hat[place] = split_r_hat(self.table[:, :, place])
                self.ess[place] = bulk_ess(self.table[:, :, place])

    def warn(self) -> None:
        """Warn where the draws of a walk are too few or chains disagree."""
        bad = (self.r_hat > _HIGHEST_R_HAT) | (self.ess < _SMALLEST_ESS)
        if bad.any():
            worst = int(np.nanargmin(self.ess))
            where = cell_label(
                self._template, tuple(int(i) for i in np.unravel_index(worst, self._template.shape))
            )
            warnings.warn(
                f"the walk among the compatible tables did not converge in {int(bad.sum())} of"
                f" {int((~self.exact).sum())} cells: r-hat is up to {np.nanmax(self.r_hat):.3f}, at"
                f" most {_HIGHEST_R_HAT} is accepted; the effective sample size is"
                f" {self.ess[worst]:.0f} at {where}, at least {_SMALLEST_ESS} is needed. More tune"
                " and draws may help",
                ConvergenceWarning,
                stacklevel=3,
            )


def _check_names(template: xr.DataArray) -> None:
    clash = [dim for dim in table_dims(template) if dim in _VARIABLES]
    if clash:
        raise ParameterError(
            f"a variable of the table is named {clash[0]!r}, as one of the result is: rename it"
            " first"
        )


def _expected(prior: Any, table: xr.DataArray, decimals: int) -> Floats:
    """Expected value of each cell, none of them for the uniform prior."""
    if isinstance(prior, str) and prior == "uniform":
        return np.empty(0)
    if not isinstance(prior, xr.DataArray):
        raise ParameterError(
            f"prior must be 'uniform' or a DataArray of expected counts, got {prior!r:.80}"
        )
    if decimals:
        raise ParameterError(
            "a prior of expected counts needs a release of counts, decimals=0, got"
            f" decimals={decimals}: the spread of a Poisson count would depend on the unit of a"
            " magnitude"
        )
    if not (np.issubdtype(prior.dtype, np.integer) or np.issubdtype(prior.dtype, np.floating)):
        raise TableError(f"prior must hold numbers, got the type {prior.dtype}")
    if set(prior.dims) != set(table.dims) or any(
        prior.sizes[dim] != table.sizes[dim] for dim in table.dims
    ):
        raise TableError(f"prior must have the sizes {dict(table.sizes)}, got {dict(prior.sizes)}")
    prior = prior.assign_coords({dim: table[dim] for dim in table.dims if dim not in prior.coords})
    same_categories(prior, table, names=("prior", "the table"))
    values = prior.transpose(*table.dims).values.astype(np.float64)
    bad = np.argwhere(~(np.isfinite(values) & (values >= 0)))
    if len(bad):
        position = tuple(int(i) for i in bad[0])
        raise TableError(
            f"prior must be finite and not negative: {cell_label(table, position)} holds"
            f" {values[position]}"
        )
    return np.asarray(values.ravel(), dtype=np.float64)


def _limited(system: LinearSystem, lower: Integers, upper: Integers, expected: Floats) -> Integers:
    """Upper bounds for the sampler, finite also for cells that no total limits where
    the prior says how far they go.
    """
    limited = upper.copy()
    for column in np.flatnonzero(lower < upper).tolist():
        mean = expected[system.unknown[column]] if expected.size else None
        if mean == 0:
            raise TableError(
                f"prior must be above 0 where a cell is open: {system.unknown_label(column)}"
                " holds 0.0"
            )
        if upper[column] >= UNLIMITED:
            if mean is None:
                raise ParameterError(
                    f"no total limits the cell {system.unknown_label(column)}: not all of its"
                    " values can be equally likely; release a total of it, or give a prior of"
                    " expected counts"
                )
            limited[column] = min(
                np.ceil(mean + 10 * np.sqrt(mean) + 40), MAX_COUNT
            )  # further out is less than exp(-40)
        if mean is not None and limited[column] > _LARGEST_COUNT:
            raise ParameterError(
                "a prior of expected counts needs cells of at most 2**30, but"
                f" {system.unknown_label(column)} can hold {limited[column]:,}"
            )
    return limited


def _parts(
    system: LinearSystem, lower: Integers, upper: Integers, expected: Floats
) -> Iterator[tuple[Integers, Part]]:
    """Columns of the cells that hang together and are open, with the system that they
    are in.
    """
    settled = np.where(lower == upper, lower, 0)
    for rows, columns in components(
        system.matrix, lower, upper, np.ones(len(lower), dtype=np.bool_)
    ):
        taken = csr_array(system.matrix[rows])
        shown = taken @ settled
        log_mean = np.log(expected[system.unknown[columns]]) if expected.size else expected
        yield (
            columns,
            Part(
                csr_array(taken[:, columns]),
                system.least[rows] - shown,
                system.most[rows] - shown,
                lower[columns],
                upper[columns],
                log_mean,
            ),
        )


def _dataset(system: LinearSystem, lower: Integers, upper: Integers, cells: _Cells) -> xr.Dataset:
    template = system.published
    low, high = template.values.ravel().astype(float), template.values.ravel().astype(float)
    low[system.unknown] = lower
    high[system.unknown] = np.where(upper >= UNLIMITED, np.inf, upper)
    published = np.ones(template.size, dtype=np.bool_)
    published[system.unknown] = False
    values = high - low + 1
    disclosed = values == 1
    with np.errstate(divide="ignore"):
        risk = np.where(disclosed, np.nan, 1 / cells.entropy)
        risk_uniform = np.where(disclosed, np.nan, 1 / np.log2(values))
    step = 10.0**system.decimals
    columns: dict[str, npt.NDArray[Any]] = {
        "lower": low / step,
        "upper": high / step,
        "n_values": values,
        "mean": cells.mean / step,
        "entropy": cells.entropy,
        "entropy_mcse": cells.error,
        "risk": risk,
        "risk_uniform": risk_uniform,
        "disclosed": disclosed,
        "published": published,
        "exact": cells.exact,
        "r_hat": cells.r_hat,
        "ess_bulk": cells.ess,
    }
    chains, draws, _ = cells.table.shape
    table = cells.table / step if system.decimals else cells.table
    coords = {
        "chain": range(chains),
        "draw": range(draws),
        **{dim: template[dim] for dim in template.dims},
    }
    drawn = {
        "table": (("chain", "draw", *template.dims), table.reshape(chains, draws, *template.shape))
    }
    over_cells = {
        name: (template.dims, array.reshape(template.shape)) for name, array in columns.items()
    }
    return xr.Dataset({**drawn, **over_cells}, coords=coords)
