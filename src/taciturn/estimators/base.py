"""The interface of a population estimator, and the one way every fit is put
together.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import (
    MISSING,
    Field,
    fields,
    replace,
)
from functools import cache, partial
from importlib.metadata import version
from typing import (
    Any,
    ClassVar,
    Final,
    Literal,
)

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.errors import EstimationError, ParameterError
from taciturn.estimators.priors import Prior
from taciturn.estimators.problem import Problem, make_problem
from taciturn.estimators.settings import (
    Parameters,
    PriorDraws,
    SamplerSettings,
    by_blocks,
    is_streamed,
    make_settings,
    seed_of,
    spawned_seeds,
)
from taciturn.schema import (
    SCHEMA_VERSION,
    draws_at_a_time,
    occupied_cells,
)
from taciturn.tables.on_demand import DrawnTables

__all__ = ["BayesianEstimator", "Estimator", "PlugInEstimator"]

SEEDS: Final = ("sampler", "population", "count")
Counts = npt.NDArray[np.int64]
_RECORDED: Final = ("taciturn", "pymc", "arviz", "nutpie", "numpy", "xarray")
_POINTWISE_LIMIT: Final = (
    10_000_000  # values of the log-likelihood with a column an individual: 80 MB
)
_GROUPED_LIMIT: Final = 50_000_000  # values of that with a column an occupied cell: 400 MB


class Estimator(ABC):
    """A population estimator: from a sample table to draws of the population table.

    Subclasses are frozen dataclasses whose fields are the whole specification. They say
    how parameters are learned (`_learn`) and how tables are drawn given them; `fit`
    does the rest, the same for all of them.
    """

    title: ClassVar[str]
    """What a person calls it."""

    plug_in: ClassVar[bool] = False
    """Whether parameters are single values, so that intervals leave out their
    uncertainty."""

    caution: ClassVar[str] = ""
    """What is known to be wrong with its intervals, said in every summary."""

    keeps_margins: ClassVar[bool] = False
    """Whether draws can be held to known margins of the population."""

    def fit(
        self,
        sample: xr.DataArray,
        *,
        population_size: int,
        structural_zeros: xr.DataArray | None = None,
        known_margins: xr.DataArray | None = None,
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
            Frequency table of a simple random sample without replacement, `n`
            individuals.
        population_size : int
            `N`, at least `n`.
        structural_zeros : DataArray of bool, optional
            True where a cell cannot be filled.
        known_margins : DataArray, optional
            The population's table over some of the variables, such as its totals by
            area: every draw keeps it. One table only, as two margins that overlap would
            tie the cells of all strata together.
        draws : int
            Draws per chain.
        tune : int
            Warm-up draws per chain, thrown away; plug-in estimators need none and
            ignore it.
        chains : int
            Number of chains.
        random_seed : int or Generator, optional
            The same seed gives the same numbers. A fit without one records the seed it
            chose.
        progressbar : bool
            Show the sampler's progress.
        method : {"fast", "nuts"}
            How a Bayesian estimator draws its parameters: ``"fast"`` without a Markov
            chain and without compiling, turning to NUTS where its own diagnostics fail
            or it does not know the model; ``"nuts"`` by NUTS at once. Plug-in
            estimators ignore it; `LatentClass` has a sampler of its own and takes
            ``"fast"`` only.

        Returns
        -------
        DataTree
            ArviZ's groups: ``posterior`` and ``sample_stats`` (Bayesian estimators),
            ``posterior_predictive`` with ``population`` (chain, draw, and the
            variables) and ``sample``, which are drawn as they are read where all their
            draws would take more than fifty million values each, ``observed_data``,
            ``constant_data`` and ``log_prior`` (of each parameter at each draw; see the
            page on methods for its scale); ``cell_log_likelihood`` (leave-one-out
            conditional of an individual of each occupied cell, when it has at most
            fifty million values; what `compare` reads) and ``log_likelihood`` (the same
            with one column an individual, for ArviZ; at most ten million values, not
            for plug-in estimators). The attributes hold what is needed to repeat it.

        Raises
        ------
        TableError
            A sample that is no frequency table, is empty or has fewer than two cells; a
            filled structural zero; margins that contradict the sample, the population
            size or the structural zeros.
        ParameterError
            `population_size` below the sample, or draws, tune or chains that are not
            positive; known margins for an estimator that cannot keep them.
        EstimationError
            The estimator has no solution for this sample.
        FormulaError, PriorError
            The specification does not fit the table.

        Warns
        -----
        ConvergenceWarning
            The sampler did not converge.
        """
        problem = make_problem(sample, population_size, structural_zeros, known_margins)
        self.check_margins(problem)
        self._saved_spec()
        settings = make_settings(draws, tune, chains, random_seed, progressbar, method)
        parameters = self._learn(
            problem, settings, int(spawned_seeds(settings)[0].generate_state(1)[0])
        )
        terms = self._pointwise(problem, settings, parameters)
        groups = {
            "posterior": parameters.posterior,
            "sample_stats": parameters.sample_stats,
            "posterior_predictive": self.draw_tables(problem, settings, parameters),
            "log_likelihood": None if terms is None else _by_individual(terms),
            "cell_log_likelihood": terms,
            "log_prior": self._log_prior(problem, parameters),
            "observed_data": xr.Dataset({"count": problem.sample}),
            "constant_data": xr.Dataset(
                {
                    "population_size": problem.population_size,
                    "structural_zeros": problem.structural_zeros,
                    **(
                        {}
                        if problem.known_margins is None
                        else {"known_margins": problem.known_margins}
                    ),
                    **parameters.constants,
                }
            ),
        }
        tree = xr.DataTree.from_dict(
            {name: group for name, group in groups.items() if group is not None}
        )
        tree.attrs.update(self._record(problem, settings, parameters))
        return tree

    def draw_tables(
        self, problem: Problem, settings: SamplerSettings, parameters: Parameters
    ) -> xr.Dataset:
        """Return ``population`` and ``sample``, by chain, draw and the variables, given
        the parameters.

        Beyond fifty million values each they are not stored but drawn as they are read,
        a block of draws at a time.
        """
        tables = {}
        for what in ("population", "count"):
            if is_streamed(problem, settings):
                shape = (settings.chains, settings.draws, *problem.sample.shape)
                block = partial(self.draw_block, what, problem, settings, parameters)
                lazy = DrawnTables(shape, block).lazily()
                tables[what] = problem.label(lazy, what)
            else:
                drawn = self._draw(
                    what,
                    problem,
                    settings,
                    parameters,
                    np.random.default_rng(seed_of(what, settings)),
                )
                tables[what] = problem.draws(drawn, settings.chains, what)
        return xr.Dataset(tables)

    def draw_block(
        self,
        what: Literal["population", "count"],
        problem: Problem,
        settings: SamplerSettings,
        parameters: Parameters,
        chain: int,
        block: int,
    ) -> Counts:
        """Tables at some consecutive draws of one chain, (draws, cells); each block has
        a seed of its own.
        """
        step = draws_at_a_time(problem.sample.size)
        rows = slice(block * step, min((block + 1) * step, settings.draws))
        own = replace(settings, chains=1, draws=rows.stop - rows.start)
        seed = np.random.SeedSequence(
            seed_of(what, settings).entropy, spawn_key=(SEEDS.index(what), chain, block)
        )
        return self._draw(
            what, problem, own, parameters.at(chain, rows), np.random.default_rng(seed)
        )

    def _draw(
        self,
        what: Literal["population", "count"],
        problem: Problem,
        settings: SamplerSettings,
        parameters: Parameters,
        rng: np.random.Generator,
    ) -> Counts:
        draw = self._draw_population if what == "population" else self._draw_replicates
        return draw(problem, settings, parameters, rng)

    @abstractmethod
    def _learn(self, problem: Problem, settings: SamplerSettings, seed: int) -> Parameters:
        """Learn the parameters from the sample."""

    @abstractmethod
    def _draw_population(
        self,
        problem: Problem,
        settings: SamplerSettings,
        parameters: Parameters,
        rng: np.random.Generator,
    ) -> Counts:
        """Population tables, shape (chains * draws, cells)."""

    @abstractmethod
    def _draw_replicates(
        self,
        problem: Problem,
        settings: SamplerSettings,
        parameters: Parameters,
        rng: np.random.Generator,
    ) -> Counts:
        """Samples of the same size that the fitted model would give, shape (chains *
        draws, cells).
        """

    def _log_conditionals(
        self, problem: Problem, parameters: Parameters
    ) -> npt.NDArray[np.float64] | None:
        """Logarithm of p(x_i | x_-i, parameters) for an individual of each occupied
        cell.

        Shape (chain, draw, cell), or (cell,) of a plug-in estimator, whose parameters
        are single values.
        """
        return None

    def _log_prior(self, problem: Problem, parameters: Parameters) -> xr.Dataset | None:
        """Logarithm of the prior density of each parameter, (chain, draw); None without
        parameters that have one.
        """
        return None

    def monitored(self, posterior: xr.Dataset) -> xr.Dataset:
        """Return the variables of a posterior that a Markov chain must have converged
        in: all of them.
        """
        return posterior

    def check_margins(self, problem: Problem) -> None:
        """Raise `ParameterError` where margins are known and this estimator cannot keep
        them.
        """
        if problem.known_margins is not None and not self.keeps_margins:
            raise ParameterError(
                f"{type(self).__name__} cannot keep known margins of the population; use"
                " DirichletLogLinear"
            )

    def spec(self) -> dict[str, Any]:
        """Return the whole specification as plain values: the estimator's name and its
        fields.
        """
        return {
            "estimator": type(self).__name__,
            **{f.name: _plain(getattr(self, f.name)) for f in fields(self)},  # type: ignore[arg-type]
        }

    def _saved_spec(self) -> str:
        """The specification as a saved fit keeps it; an argument that would come back
        as another is an error.
        """
        spec = self.spec()
        for name, value in spec.items():
            try:
                survives = json.loads(json.dumps(value)) == value
            except (TypeError, ValueError):
                survives = False
            if not survives:
                raise ParameterError(
                    f"{type(self).__name__}: the argument {name} would not survive saving:"
                    f" {value!r}"
                )
        return json.dumps(spec)

    def __repr__(self) -> str:
        """As it would be written: the arguments that differ from their defaults."""
        given = [
            f"{f.name}={getattr(self, f.name)!r}"
            for f in fields(self)  # type: ignore[arg-type]
            if getattr(self, f.name) != _default(f)
        ]
        return f"{type(self).__name__}({', '.join(given)})"

    def _pointwise(
        self, problem: Problem, settings: SamplerSettings, parameters: Parameters
    ) -> xr.Dataset | None:
        """Logarithm of p(x_i | x_-i, parameters) for one individual of each occupied
        cell; all of a cell share it.
        """
        if settings.total * len(problem.occupied) > _GROUPED_LIMIT:
            return None
        terms = by_blocks(self._log_conditionals, problem, settings, parameters)
        if terms is None:
            return None
        coords = {
            "chain": np.arange(settings.chains),
            "draw": np.arange(settings.draws),
            **occupied_cells(problem.sample),
        }
        return xr.Dataset({"count": (("chain", "draw", "occupied_cell"), terms)}, coords=coords)

    def _record(
        self, problem: Problem, settings: SamplerSettings, parameters: Parameters
    ) -> dict[str, Any]:
        versions = {name: _version(name) for name in _RECORDED}
        return {
            "schema_version": SCHEMA_VERSION,
            "estimator": self._saved_spec(),
            "settings": json.dumps(
                {
                    "draws": settings.draws,
                    "tune": settings.tune,
                    "chains": settings.chains,
                    "random_seed": settings.seed,
                    "method": settings.method,
                }
            ),
            "sampler": parameters.sampler,
            **({"importance": parameters.importance.to_json()} if parameters.importance else {}),
            "versions": json.dumps(versions),
            **({"streamed": 1} if is_streamed(problem, settings) else {}),
        }


class PlugInEstimator(Estimator):
    """An estimator whose parameters are single values, computed from the sample.

    They have no posterior to take an individual out of, so that its leave-one-out term
    is exact: the parameters are computed again without it. An estimate that cannot be
    made without it is marked by NaN.
    """

    plug_in: ClassVar[bool] = True
    caution: ClassVar[str] = (
        "The intervals leave out that the parameters are estimated: prefer a Bayesian estimator for"
        " them."
    )

    def _pointwise(
        self, problem: Problem, settings: SamplerSettings, parameters: Parameters
    ) -> xr.Dataset | None:
        if (
            problem.sample.size * len(problem.occupied) > _GROUPED_LIMIT
        ):  # every estimate passes over all cells
            return None
        terms = {
            "count": self._log_conditionals(problem, parameters),
            "leave_one_out": self._leave_one_out(problem, settings),
        }
        arrays = {name: ("occupied_cell", term) for name, term in terms.items()}
        return xr.Dataset(arrays, coords=occupied_cells(problem.sample))

    @abstractmethod
    def _log_conditionals(
        self, problem: Problem, parameters: Parameters
    ) -> npt.NDArray[np.float64]: ...

    def _leave_one_out(
        self, problem: Problem, settings: SamplerSettings
    ) -> npt.NDArray[np.float64]:
        """Logarithm of p(x_i | x_-i) with the parameters that the others give; minus
        infinity where that is 0.
        """
        terms = np.full(len(problem.occupied), np.nan)
        for number, cell in enumerate(problem.occupied):
            try:
                others = self._learn(problem.without(cell), settings, settings.seed)
            except EstimationError:
                continue
            terms[number] = self._log_conditionals(problem, others)[number]
        return terms


class BayesianEstimator(Estimator):
    """An estimator whose parameters have a prior.

    They are learned without a Markov chain where that works, and by NUTS elsewhere.
    """

    def _learn(self, problem: Problem, settings: SamplerSettings, seed: int) -> Parameters:
        if settings.method == "fast":
            parameters = self._learn_fast(problem, settings, np.random.default_rng(seed))
            if parameters is not None and (
                parameters.importance is None or parameters.importance.converged
            ):
                return parameters
        return self._learn_nuts(problem, settings, seed)

    @abstractmethod
    def _learn_fast(
        self, problem: Problem, settings: SamplerSettings, rng: np.random.Generator
    ) -> Parameters | None:
        """Independent draws with their diagnostics; None for a model that has no such
        path.
        """

    @abstractmethod
    def _learn_nuts(self, problem: Problem, settings: SamplerSettings, seed: int) -> Parameters:
        """Draws of the PyMC model."""

    @abstractmethod
    def _priors(self, problem: Problem) -> dict[str, Prior]:
        """The prior of each parameter that is fitted; empty where none is."""

    def log_joint(
        self, problem: Problem, settings: SamplerSettings, parameters: Parameters
    ) -> npt.NDArray[np.float64]:
        """`_log_joint`, a block of draws at a time."""
        value = by_blocks(self._log_joint, problem, settings, parameters)
        assert value is not None
        return value

    @abstractmethod
    def _log_joint(self, problem: Problem, parameters: Parameters) -> npt.NDArray[np.float64]:
        """Logarithm of p(what is known | parameters) up to a constant, (chain, draw):
        of the sample and known margins.

        The conditionals of `_log_conditionals` do not add up to it: they do not
        factorise.
        """

    def _log_prior(self, problem: Problem, parameters: Parameters) -> xr.Dataset | None:
        posterior = parameters.posterior
        priors = self._priors(problem)
        if posterior is None or not priors:
            return None
        densities = {
            name: (
                ("chain", "draw"),
                prior.log_density(posterior[name].transpose("chain", "draw", ...).values),
            )
            for name, prior in priors.items()
        }
        return xr.Dataset(densities, coords={dim: posterior[dim] for dim in ("chain", "draw")})

    @abstractmethod
    def _draw_prior(self, problem: Problem, draws: int, rng: np.random.Generator) -> PriorDraws:
        """Parameters by name (leading axis draws), samples and populations (draws,
        cells), for calibration.

        Of the problem only the sizes, the shape and the structural zeros may be used,
        not what is in the sample.
        """


def _by_individual(terms: xr.Dataset) -> xr.Dataset | None:
    """The same with one column an individual, as ArviZ reads it; None beyond the limit
    and where there are no draws.
    """
    counts = terms["individuals"].values
    if (
        "draw" not in terms.dims
        or terms.sizes["chain"] * terms.sizes["draw"] * counts.sum() > _POINTWISE_LIMIT
    ):
        return None
    bare = terms.drop_vars([name for name in terms.coords if name not in ("chain", "draw")])
    each = np.repeat(np.arange(len(counts)), counts)
    return bare.isel(occupied_cell=each).rename_dims(occupied_cell="individual")


def _default(argument: Field[Any]) -> Any:
    return argument.default if argument.default_factory is MISSING else argument.default_factory()


def _plain(value: Any) -> Any:
    if isinstance(value, Prior):
        return value.to_dict()
    if isinstance(value, Estimator):
        return value.spec()
    if isinstance(value, Mapping):
        return {name: _plain(inner) for name, inner in value.items()}
    return value


@cache  # reading a package's metadata takes half a millisecond
def _version(name: str) -> str:
    from importlib.metadata import PackageNotFoundError

    try:
        return version(name)
    except PackageNotFoundError:
        return "missing"
