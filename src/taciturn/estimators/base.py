"""The interface of a population estimator, and how every fit is put together."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.errors import ParameterError
from taciturn.estimators.blocks import TableBlock
from taciturn.estimators.drawing import labelled_tables
from taciturn.estimators.pointwise import (
    by_individual,
    fits_by_cell,
    fits_by_individual,
    labelled_terms,
)
from taciturn.estimators.problem import Problem, make_problem
from taciturn.estimators.record import recorded
from taciturn.estimators.settings import (
    Counts,
    Parameters,
    SamplerSettings,
    by_blocks,
    make_settings,
    seed_of,
)
from taciturn.estimators.specification import Specified
from taciturn.progress import progress_steps
from taciturn.schema import LATENT_CLASS, WORTH

__all__ = ["Estimator"]


class Estimator(Specified, ABC):
    """A population estimator: from a sample table to draws of the population table.

    Subclasses are frozen dataclasses whose fields are the whole specification. They
    define how the parameters are learned (`learn`) and how tables are drawn given them
    (`draw_population`, `draw_replicates`); `fit` does the rest, in the same way for
    every estimator. Those whose parameters have a prior derive from
    `BayesianEstimator`, those that plug in estimates from `PlugInEstimator`.
    """

    title: ClassVar[str]
    """Its name in summaries and reports."""

    command_name: ClassVar[str]
    """Its name on the command line, such as ``log-linear``; only the estimators of this
    package need one."""

    takes_formula: ClassVar[bool] = False
    """Whether `with_formula` gives it a log-linear formula."""

    plug_in: ClassVar[bool] = False
    """Whether the parameters are single values, so that intervals leave out their
    uncertainty."""

    caution: ClassVar[str] = ""
    """What is known to be wrong with its intervals; part of every summary."""

    keeps_margins: ClassVar[bool] = False
    """Whether its draws can reproduce known margins of the population, and so the sizes
    of strata."""

    takes_weights: ClassVar[bool] = False
    """Whether it can learn from a sample with unequal weights."""

    def fit(
        self,
        sample: xr.DataArray,
        *,
        population_size: int,
        structural_zeros: xr.DataArray | None = None,
        known_margins: xr.DataArray | None = None,
        strata: xr.DataArray | None = None,
        sampling_weights: xr.DataArray | None = None,
        effective_size: float | None = None,
        draws: int = 1000,
        tune: int = 1000,
        chains: int = 4,
        random_seed: int | np.random.Generator | None = None,
        progressbar: bool = True,
        method: Literal["fast", "nuts"] = "fast",
    ) -> xr.DataTree:
        """Draw population tables given a sample.

        Parameters
        ----------
        sample : DataArray
            Frequency table of a sample without replacement, `n` individuals: a simple
            random one, unless `strata` or `sampling_weights` say otherwise.
        population_size : int
            `N`, at least `n`.
        structural_zeros : DataArray of bool, optional
            True where a cell cannot be filled.
        known_margins : DataArray, optional
            The population's table over some of the variables, such as its totals by
            area, which every draw then reproduces. Only one table, because overlapping
            margins would make the strata depend on each other.
        strata : DataArray, optional
            The same where the sample was drawn by these variables: a simple random one
            in each of their cells, with sampling fractions of any size. Cells of a
            stratum without people still count as cells, which are empty: name them as
            `structural_zeros`, or leave them out, if nobody can be there.
        sampling_weights : DataArray, optional
            Sum of the weights of the sampled individuals of each cell, where not
            everybody was equally likely to be sampled. A weight is the number of
            individuals that one stands for, at least 1.
        effective_size : float, optional
            Where people were sampled together, such as households, and are alike: the
            number of people who, sampled one by one, would say as much of the cells,
            from 1 to `n`. Without it `n`.
        draws : int
            Draws per chain.
        tune : int
            Warm-up draws per chain, which are discarded; plug-in estimators need none
            and ignore it.
        chains : int
            Number of chains.
        random_seed : int or Generator, optional
            The same seed gives the same numbers. A fit without one records the seed it
            chose.
        progressbar : bool
            Show progress, on standard error or below the cell of a notebook.
        method : {"fast", "nuts"}
            How a Bayesian estimator draws its parameters: ``"fast"`` without a Markov
            chain and without compiling, falling back on NUTS where its own diagnostics
            fail or the model has no fast path; ``"nuts"`` by NUTS from the start.
            Plug-in estimators ignore it; `LatentClass` has a sampler of its own and
            accepts only ``"fast"``.

        Returns
        -------
        DataTree
            ArviZ's groups. ``posterior`` and ``sample_stats`` (Bayesian estimators);
            ``latent_classes``, the parameters of single classes, whose numbers change
            their meaning from draw to draw (`LatentClass`);
            ``posterior_predictive`` with ``population`` and ``count``, replicated
            samples, each (chain, draw, and the variables), drawn as they are read where
            all draws would take more than fifty million values; ``observed_data``;
            ``constant_data``; ``log_prior``, the log density of each parameter's prior
            at each draw (the page on methods gives its scale);
            ``cell_log_likelihood``, the leave-one-out conditional of an individual of
            each occupied cell, which `loo` and `compare` read, up to fifty million
            values; and ``log_likelihood``, the same with one column for each
            individual, for ArviZ (up to ten million values, not for plug-in
            estimators). The attributes hold what is needed to repeat the fit.

        Raises
        ------
        TableError
            A sample that is not a frequency table, is empty or has fewer than two
            cells; a structural zero with a positive count; margins that contradict the
            sample, the population size or the structural zeros, and the same of
            strata; weights that contradict the sample.
        ParameterError
            `population_size` below the sample size; draws, tune or chains that are not
            positive; an effective size beyond the sample's; known margins, strata or
            weights for an estimator that cannot take them, or two of them.
        EstimationError
            The estimator has no solution for this sample.
        FormulaError, PriorError
            The specification does not match the table.

        Warns
        -----
        ConvergenceWarning
            The sampler did not converge.
        """
        problem = make_problem(
            sample,
            population_size,
            structural_zeros=structural_zeros,
            known_margins=known_margins,
            strata=strata,
            sampling_weights=sampling_weights,
            effective_size=effective_size,
        )
        self.check_design(problem)
        self.saved_spec()
        settings = make_settings(draws, tune, chains, random_seed, progressbar, method)
        seed = int(seed_of("sampler", settings).generate_state(1)[0])
        with progress_steps("learning the parameters", shown=progressbar) as say:
            parameters = self.learn(problem, settings, seed)
            say("leaving individuals out")
            terms = self.cell_log_likelihood(problem, settings, parameters)
            say("drawing populations and samples")
            groups = {
                **_parameter_groups(parameters.posterior),
                "sample_stats": parameters.sample_stats,
                "posterior_predictive": self.draw_tables(problem, settings, parameters),
                "log_likelihood": None if terms is None else self.log_likelihood(terms, parameters),
                "cell_log_likelihood": terms,
                "log_prior": self.log_prior(problem, parameters),
                "observed_data": xr.Dataset({"count": problem.sample}),
                "constant_data": xr.Dataset({**problem.constants, **parameters.constants}),
            }
        tree = xr.DataTree.from_dict(
            {name: group for name, group in groups.items() if group is not None}
        )
        tree.attrs.update(self.record(problem, settings, parameters))
        return tree

    @abstractmethod
    def learn(self, problem: Problem, settings: SamplerSettings, seed: int) -> Parameters:
        """Learn the parameters from the sample.

        Parameters
        ----------
        problem : Problem
            The checked sample and what is known of its population.
        settings : SamplerSettings
            How many draws of the parameters to make.
        seed : int
            The only source of randomness.

        Returns
        -------
        learned : Parameters
            ``posterior`` with the dimensions ``chain`` and ``draw``, or single values
            in ``constants``.
        """

    @abstractmethod
    def draw_population(
        self,
        problem: Problem,
        settings: SamplerSettings,
        parameters: Parameters,
        rng: np.random.Generator,
    ) -> Counts:
        """Draw one population table for each draw of the parameters.

        Parameters
        ----------
        problem : Problem
            The checked sample and what is known of its population.
        settings : SamplerSettings
            `chains` and `draws` are those of `parameters`, which may be a block of the
            draws of one chain.
        parameters : Parameters
            What `learn` returned.
        rng : Generator
            The only source of randomness.

        Returns
        -------
        array of int64, shape (chains * draws, cells)
            All draws of the first chain, then those of the next; cells in row-major
            order. Every table is at least the sample, sums to the population size, and
            keeps structural zeros and known margins.
        """

    @abstractmethod
    def draw_replicates(
        self,
        problem: Problem,
        settings: SamplerSettings,
        parameters: Parameters,
        rng: np.random.Generator,
    ) -> Counts:
        """Draw one sample of the observed size for each draw of the parameters.

        Arguments and shape are those of `draw_population`. Each table sums to the
        sample size and keeps structural zeros.
        """

    def draw_unlabelled(
        self, problem: Problem, draws: int, seed: int, rng: np.random.Generator
    ) -> Counts | None:
        """Draw the populations of `learn`, with this seed, and `draw_population`, with
        this generator, for one chain, without labels; None, the default, for
        estimators that have no such path.
        """
        return None

    def draw_block(
        self,
        block: TableBlock,
        draws: int,
        seeds: Sequence[int],
        rngs: Sequence[np.random.Generator],
    ) -> tuple[Counts, npt.NDArray[np.bool_]] | None:
        """Draw the populations of `draw_unlabelled` for many tables without a call of
        Python for each, (tables, draws, cells), and tell which have them; None, the
        default, for estimators that have no such path.
        """
        return None

    def log_conditionals(
        self, problem: Problem, parameters: Parameters
    ) -> npt.NDArray[np.float64] | None:
        """Logarithm of ``p(x_i | x_-i, parameters)``, in nats, for one individual of
        each occupied cell.

        Returns
        -------
        array, shape (chain, draw, occupied cell), or None
            In the order of `problem.occupied`; with single values as parameters, of
            shape (occupied cell,). None, the default, where there is no closed form:
            the fit then cannot be compared with others.
        """
        return None

    def log_prior(self, problem: Problem, parameters: Parameters) -> xr.Dataset | None:
        """Logarithm of the prior density of each parameter, (chain, draw); None, the
        default, where no parameter has a prior.
        """
        return None

    def monitored(self, posterior: xr.Dataset) -> xr.Dataset:
        """Return the variables of a posterior in which a Markov chain must have
        converged; by default all of them.
        """
        return posterior

    def check_design(self, problem: Problem) -> None:
        """Raise `ParameterError` for known margins or strata that the estimator cannot
        reproduce, and for weights that it cannot use.
        """
        name = type(self).__name__
        if problem.known_margins is not None and not self.keeps_margins:
            what = "take a stratified sample" if problem.stratified else "keep known margins"
            raise ParameterError(f"{name} cannot {what}; use DirichletLogLinear or MixedPoisson")
        if problem.weighting is not None and not self.takes_weights:
            raise ParameterError(f"{name} cannot take sampling weights; use MixedPoisson")

    def with_formula(self, formula: str) -> Self:
        """Return the same estimator with a log-linear formula.

        Raises
        ------
        ParameterError
            An estimator that takes none.
        """
        if not self.takes_formula:
            raise ParameterError(f"{type(self).__name__} takes no formula")
        return replace(self, formula=formula)  # type: ignore[type-var]

    def draw_tables(
        self, problem: Problem, settings: SamplerSettings, parameters: Parameters
    ) -> xr.Dataset:
        """Return ``population`` and ``count``, replicated samples, by chain, draw and
        the variables.
        """
        ways = {"population": self.draw_population, "count": self.draw_replicates}
        tables = labelled_tables(ways, problem, settings, parameters)
        worth = parameters.worth(settings.total)
        if worth is not None and worth < settings.total:
            tables["population"].attrs[WORTH] = worth
        return tables

    def cell_log_likelihood(
        self, problem: Problem, settings: SamplerSettings, parameters: Parameters
    ) -> xr.Dataset | None:
        """Return the group of that name, made from `log_conditionals`; None where these
        are not available or too many to keep.
        """
        if not fits_by_cell(settings.total, problem):
            return None
        terms = by_blocks(self.log_conditionals, problem, settings, parameters)
        if terms is None:
            return None
        return labelled_terms(terms, problem, settings).to_dataset(name="count")

    def log_likelihood(self, terms: xr.Dataset, parameters: Parameters) -> xr.Dataset | None:
        """Return the group of that name, one column for each individual, from the terms
        of the cells; None for too many values and where there are no draws.
        """
        return by_individual(terms) if fits_by_individual(terms) else None

    def record(
        self, problem: Problem, settings: SamplerSettings, parameters: Parameters
    ) -> dict[str, Any]:
        """Return the attributes of a fit, from which it can be repeated."""
        return recorded(self.saved_spec(), problem, settings, parameters)


def _parameter_groups(posterior: xr.Dataset | None) -> dict[str, xr.Dataset]:
    """The parameters of a fit, those of single latent classes in a group of their own:
    they have no diagnostics, since a class is another one at the next draw.
    """
    if posterior is None:
        return {}
    single = [name for name, draws in posterior.data_vars.items() if LATENT_CLASS in draws.dims]
    groups = {"posterior": posterior.drop_vars(single), "latent_classes": posterior[single]}
    return groups if single else {"posterior": posterior}
