"""Fully synthetic tables: of people who are drawn from a fitted model."""

from typing import Final

import numpy as np
import xarray as xr

from taciturn.errors import FileFormatError, ParameterError
from taciturn.fits.parts import FitParts, fit_parts
from taciturn.fits.recorded import recorded_settings
from taciturn.perturbation.replicates import MARK, Counts, labelled, seed_mark
from taciturn.tables.sampling import MAX_SAMPLED_POPULATION
from taciturn.validate import generator, whole_number

__all__ = ["synthetic_tables"]

_GUESSED: Final = 2**32  # a smaller seed may have been chosen by somebody


def synthetic_tables(
    fit: xr.DataTree,
    *,
    size: int | None = None,
    replicates: int = 1,
    random_seed: int | np.random.Generator | None = None,
) -> xr.DataArray:
    r"""Tables of new people, drawn from the posterior predictive distribution of a fit.

    A draw `F` of the population consists of the sample `f` and of ``N - n`` individuals
    that the model adds. These are new people, given the sample. A synthetic table holds
    `size` of them, a simple random sample without replacement:

    .. math::

        F \sim p(F \mid f), \qquad
        G \sim \operatorname{MultivariateHypergeometric}(\text{size},\, F - f)

    so that `G` has the posterior predictive distribution of `size` further individuals
    of the population, each replicate from a draw of its own. None of them is in the
    sample: the table is *fully* synthetic (Rubin 1993). Partially synthetic tables,
    which keep individuals of the sample and replace some of their values, are not made
    here; a draw of the population as it is holds the sample unchanged.

    Parameters
    ----------
    fit : DataTree
        What an estimator's `fit` returns, or any tree that keeps the population
        contract.
    size : int, optional
        Number of people in each table, from 1 to ``N - n``; as many as in the sample by
        default.
    replicates : int
        Number of tables, along a leading dimension ``replicate``. Up to the number of
        draws in the fit each is from another draw, chosen at random.
    random_seed : int or Generator, optional
        For tables that can be repeated, in measurements and tests. What has been
        drawn with it has the attribute ``not_for_release``: whoever tries seeds can
        undo it. Without it the system's entropy is used. So has what is made of a fit
        with a seed below 2**32, see the notes.

    Returns
    -------
    DataArray
        int64, dims ``(replicate, *dims of the sample)``; structural zeros are 0. Known
        margins are not kept, except by tables of ``N - n`` people: with the sample
        these have them. So they have the attribute ``not_for_release``: known margins
        less theirs are those of the sample, to which tables of almost as many people
        are near.

    Raises
    ------
    TableError
        A group is missing, or the draws that are used break the population contract.
    ParameterError
        A `size` outside its range; fewer than one replicate; a population of 10**9 or
        more people beside the sample.

    Notes
    -----
    *Judging them.* Given the sample, a synthetic table and the population are
    independent: the table is from a draw of the population, not from the population. So
    it is judged against all draws, as `disclosure_risk` and `risk_utility` do with all
    pairs. Among ``D`` draws one is that which a replicate was made from; the mean of R2
    is too high by at most ``1 / D`` for that if draws are independent. In a Markov
    chain its neighbours resemble it, so that `D` is the effective number of draws.

    *For release* the draws of the fit must be unknown, too: a fit with a `random_seed`
    that can be guessed can be repeated by those who guess the sample. A fit without a
    given seed chooses one of 63 bits.

    References
    ----------
    Rubin (1993), Discussion: Statistical disclosure limitation, Journal of Official
    Statistics 9(2), 461-468. Raghunathan, Reiter & Rubin (2003), Multiple imputation
    for statistical disclosure limitation, Journal of Official Statistics 19(1), 1-16.

    Examples
    --------
    >>> import taciturn as tc
    >>> religion = tc.load_dataset("area_by_religion")
    >>> sample = tc.draw_sample(religion, fraction=0.1, random_seed=1)
    >>> fit = tc.LogLinear().fit(sample, population_size=2449, draws=50, random_seed=1)
    >>> made = tc.synthesis.synthetic_tables(fit, replicates=3, random_seed=1)
    >>> made.sum(["area", "religion"]).values.tolist()
    [245, 245, 245]
    """
    parts = fit_parts(fit)
    sampled = int(parts.sample.sum())
    most = parts.population_size - sampled
    replicates = whole_number(replicates, "replicates", least=1)
    if not most:
        raise ParameterError(
            f"the sample is all of the {sampled:,} people, so that the model adds nobody of whom a"
            " synthetic table could be made"
        )
    if size is None and sampled > most:
        raise ParameterError(
            f"the model adds {most:,} people to {sampled:,} sampled ones, too few for a synthetic"
            f" table of {sampled:,}: give a size of at most {most:,}"
        )
    if most >= MAX_SAMPLED_POPULATION:
        raise ParameterError(
            f"people can be drawn from fewer than 10**9, the model adds {most:,} to the sample"
        )
    size = whole_number(sampled if size is None else size, "size", least=1, most=most)
    rng = generator(random_seed)
    chains, draws = (parts.population.sizes[dim] for dim in ("chain", "draw"))
    chosen = rng.choice(chains * draws, replicates, replace=replicates > chains * draws)
    out = np.empty((replicates, parts.sample.size), dtype=np.int64)
    for chain in np.unique(chosen // draws).tolist():
        rows = np.flatnonzero(chosen // draws == chain)
        which, place = np.unique(chosen[rows] % draws, return_inverse=True)
        added = _added(parts, chain, which)
        for row, number in zip(rows, place, strict=True):
            out[row] = rng.multivariate_hypergeometric(added[number], size, method="marginals")
    made = out.reshape(replicates, *parts.sample.shape)
    marks = _mark_of_fit(fit) | seed_mark(random_seed)
    if parts.known_margins is not None and size == most:
        marks |= {MARK: "all people whom the model adds: known margins less these are the sample's"}
    return labelled(parts.sample, made, marks)


def _mark_of_fit(fit: xr.DataTree) -> dict[str, str]:
    """The attribute of what is made of a fit with a seed that can be guessed, if it
    records one.
    """
    try:
        seed = recorded_settings(fit).seed
    except FileFormatError:
        return {}
    return seed_mark(seed) if seed < _GUESSED else {}


def _added(parts: FitParts, chain: int, draws: Counts) -> Counts:
    """The individuals that the model adds in some draws of the population, shape
    (draws, cells).
    """
    population = parts.population.isel(chain=[chain], draw=draws).compute()
    parts.check_counts(population)
    tables = population.values[0].astype(np.int64)
    added: Counts = (tables - parts.sample.values).reshape(len(draws), -1)
    return added
