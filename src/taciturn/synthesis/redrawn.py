"""Protection by drawing another table with the same margins."""

from collections.abc import Sequence
from math import isqrt
from typing import Final, Literal

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.attack import Suppression, attacker_posterior
from taciturn.errors import ParameterError, PerturbationError, TableError
from taciturn.perturbation.replicates import Counts, labelled, seed_mark
from taciturn.schema import cell_label
from taciturn.tables.checks import check_table
from taciturn.tables.margins import Margin, named_margins, without_implied
from taciturn.tables.steps import checked_mask
from taciturn.validate import generator, one_of, whole_number

__all__ = ["redraw_table"]

Booleans = npt.NDArray[np.bool_]

_CHAINS: Final = 4
_FEWEST_DRAWS: Final = 1000  # a chain, so that it can be told whether they agree
_DISTRIBUTIONS: Final = ("exact", "uniform")
_MOST_IN_TWO_WAY: Final = isqrt(2**63 - 1)  # SciPy multiplies row and column totals
_DETERMINED: Final = (
    "the margins in keep leave one table, so that the true one would be released: keep fewer or"
    " coarser margins"
)


def redraw_table(
    table: xr.DataArray,
    *,
    keep: Sequence[Margin],
    distribution: Literal["exact", "uniform"] = "exact",
    structural_zeros: xr.DataArray | None = None,
    replicates: int = 1,
    random_seed: int | np.random.Generator | None = None,
    progressbar: bool = True,
) -> xr.DataArray:
    r"""Release another table with the same margins, drawn from all of them.

    .. math::

        p(G) \propto 1\{A G = A F\} \prod_i \frac{1}{G_i!} \quad \text{(exact)}, \qquad
        p(G) \propto 1\{A G = A F\} \quad \text{(uniform)}

    with `A` the margins that are kept. The first is the exact conditional distribution
    of the table given these margins under the log-linear model that has them as terms;
    of two variables it is the multiple hypergeometric one, which assigns individuals at
    random. The second takes every table as equally likely. Kept: the margins and
    structural zeros. Not kept: everything else, so that a release says nothing of the
    true table but its margins.

    Parameters
    ----------
    table : DataArray
        Frequency table.
    keep : sequence of margins
        The margins that are kept, each named by its variables or levels above them,
        such as ``[("area", "sex"), "age"]``; they are given away exactly.
    distribution : {"exact", "uniform"}
        Which of the two.
    structural_zeros : DataArray of bool, optional
        True where a cell cannot be filled; it stays empty.
    replicates : int
        Number of releases, along a leading dimension ``replicate``.
    random_seed : int or Generator, optional
        For tables that can be repeated, in measurements and tests. What has been
        drawn with it has the attribute ``not_for_release``: whoever tries seeds can
        undo it. Without it the system's entropy is used.
    progressbar : bool
        Show progress of a walk, on standard error or below the cell of a notebook.

    Returns
    -------
    DataArray
        int64, dims ``(replicate, *dims)``.

    Raises
    ------
    TableError
        Whatever `check_table` refuses; structural zeros that are not bool, have other
        categories, or are filled.
    ParameterError
        `keep` that names no margin, the whole table, or what is no variable or level;
        an unknown `distribution`; fewer than one replicate; more draws than fit in
        memory; more than 3,037,000,499 individuals in a two-way table that is drawn
        directly.
    PerturbationError
        The margins and structural zeros leave one table, which is the true one: with
        one filled row, for instance.

    Warns
    -----
    ConvergenceWarning
        As `attacker_posterior`: r-hat above 1.01 or an effective sample size below 400
        in some cell.

    Notes
    -----
    Where two margins are kept that together name all variables, without structural
    zeros, the exact distribution is drawn directly, and releases are independent: given
    the variables that both name, a two-way table with its margins. Otherwise the tables
    are those of `attacker_posterior`, which knows nothing but the margins: listed where
    there are at most 50,000, and then independent; or of a walk among them, from whose
    four chains of at least 1,000 draws releases are taken at random places. Several of
    them then depend on each other a little.

    *What it does not protect.* Cells that the margins leave one value are released as
    they are; `attacker_bounds` of a `Suppression` of all cells with these totals shows
    which. Margins that leave few tables protect little: who knows the method can list
    them, and each release is the true table with the probability of that table, which
    is then large. The margins themselves are not protected at all.

    References
    ----------
    Diaconis & Sturmfels (1998), Algebraic algorithms for sampling from conditional
    distributions, Annals of Statistics 26(1), 363-397. Patefield (1981), Algorithm AS
    159: An efficient method of generating random R × C tables with given row and column
    totals, Applied Statistics 30, 91-97.

    Examples
    --------
    >>> import taciturn as tc
    >>> table = tc.load_dataset("area_by_religion")
    >>> margins = ["area", "religion"]
    >>> redrawn = tc.synthesis.redraw_table(table, keep=margins, random_seed=1)
    >>> bool((redrawn.sum("area") == table.sum("area")).all())
    True
    """
    table = check_table(table)
    replicates = whole_number(replicates, "replicates", least=1)
    one_of(distribution, "distribution", _DISTRIBUTIONS)
    margins = _checked_margins(keep, table)
    zeros = _checked_zeros(structural_zeros, table)
    rng = generator(random_seed)
    two = len(margins) == 2 and {*margins[0], *margins[1]} == set(table.dims)
    if distribution == "exact" and two and not zeros.any():
        drawn = _two_margins(table, margins, replicates, rng)
    else:
        release = Suppression(table, table.copy(data=~zeros), totals=margins)
        drawn = _walked(release, distribution, replicates, rng, progressbar)
    return labelled(table, drawn, seed_mark(random_seed))


def _checked_margins(keep: Sequence[Margin], table: xr.DataArray) -> list[tuple[str, ...]]:
    """The margins, without those that follow from others."""
    margins = named_margins(keep, table, name="keep")
    if not margins:
        raise ParameterError("keep must name a margin; () is the total")
    if any(set(names) == set(table.dims) for names in margins):
        raise ParameterError(f"keep names the whole table, {table.dims}: nothing could change")
    return without_implied(margins, table)


def _checked_zeros(structural_zeros: xr.DataArray | None, table: xr.DataArray) -> Booleans:
    """Which cells stay empty, in the shape of the table."""
    if structural_zeros is None:
        return np.zeros(table.shape, dtype=np.bool_)
    zeros = checked_mask(structural_zeros, table, name="structural_zeros")
    filled = np.argwhere(zeros & (table.values > 0))
    if len(filled):
        at = tuple(int(i) for i in filled[0])
        raise TableError(f"structural_zeros: somebody is in {cell_label(table, at)}")
    return zeros


def _two_margins(
    table: xr.DataArray, margins: list[tuple[str, ...]], replicates: int, rng: np.random.Generator
) -> Counts:
    """Draws of the exact distribution: for each category of what both margins name a
    table of its own with its row and column totals.
    """
    from scipy.stats import random_table

    shared = [dim for dim in margins[0] if dim in margins[1]]
    rows, columns = ([dim for dim in names if dim not in shared] for names in margins)
    order = [*shared, *rows, *columns]
    ordered = table.transpose(*order)
    sizes = [int(np.prod([table.sizes[dim] for dim in each])) for each in (shared, rows, columns)]
    strata = ordered.values.reshape(sizes)
    drawn = np.empty((replicates, *sizes), dtype=np.int64)
    determined = True
    for number, true in enumerate(strata):
        totals = true.sum(axis=1), true.sum(axis=0)
        if totals[0].sum() > _MOST_IN_TWO_WAY:
            raise ParameterError(
                f"tables of at most {_MOST_IN_TWO_WAY:,} individuals can be redrawn, for each"
                " category of what both margins name: this one has more"
            )
        if all(np.count_nonzero(each) > 1 for each in totals):
            determined = False
        made = random_table(*totals)
        drawn[:, number] = np.reshape(
            made.rvs(size=replicates, random_state=rng), (replicates, *true.shape)
        )
    if determined:
        raise PerturbationError(_DETERMINED)
    back = [1 + order.index(str(dim)) for dim in table.dims]
    return np.ascontiguousarray(drawn.reshape(replicates, *ordered.shape).transpose(0, *back))


def _walked(
    release: Suppression,
    distribution: str,
    replicates: int,
    rng: np.random.Generator,
    progressbar: bool,
) -> Counts:
    """Draws of what an attacker takes for possible who knows the margins only."""
    table = release.system.published
    draws = max(_FEWEST_DRAWS, -(-replicates // _CHAINS))
    # Given their margins, Poisson counts with any expected values of the model have the
    # exact distribution.
    found = attacker_posterior(
        release,
        prior=xr.ones_like(table) if distribution == "exact" else "uniform",
        draws=draws,
        chains=_CHAINS,
        random_seed=rng,
        progressbar=progressbar,
    )
    if found["disclosed"].all():
        raise PerturbationError(_DETERMINED)
    tables = found["table"].transpose("chain", "draw", *table.dims).values.reshape(-1, *table.shape)
    return np.asarray(tables[rng.choice(len(tables), replicates, replace=False)], dtype=np.int64)
