"""The interface of a population estimator, and the one way every fit is put together."""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from importlib.metadata import version
from numbers import Real
from typing import Any, ClassVar, Final, Literal

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.errors import ParameterError
from taciturn.estimators.importance import ImportanceDiagnostics
from taciturn.estimators.priors import Prior
from taciturn.estimators.problem import Problem, make_problem
from taciturn.schema import SCHEMA_VERSION
from taciturn.validate import seed_number, whole_number

__all__ = ["BayesianEstimator", "Estimator", "Parameters", "PriorDraws", "SamplerSettings", "checked_number"]

Counts = npt.NDArray[np.int64]
PriorDraws = tuple[dict[str, npt.NDArray[np.float64]], Counts, Counts]

_RECORDED: Final = ("taciturn", "pymc", "arviz", "nutpie", "numpy", "xarray")
_POINTWISE_LIMIT: Final = 10_000_000  # values of the pointwise log-likelihood: 80 MB


@dataclass(frozen=True)
class SamplerSettings:
    """How many draws to take, from what seed, and whether to show progress."""

    draws: int
    tune: int
    chains: int
    seed: int
    progressbar: bool
    method: Literal["fast", "nuts"] = "fast"

    @property
    def total(self) -> int:
        """Draws of all chains together."""
        return self.chains * self.draws


@dataclass
class Parameters:
    """What an estimator learned from the sample.

    Attributes
    ----------
    posterior, sample_stats : Dataset, optional
        Draws of the parameters and of the sampler; None for a plug-in estimator.
    constants : dict
        Plug-in values and other fixed quantities, for ``constant_data``.
    sampler : str
        What drew the parameters, for the record.
    importance : ImportanceDiagnostics, optional
        How good the draws are that were made without a Markov chain.
    """

    posterior: xr.Dataset | None = None
    sample_stats: xr.Dataset | None = None
    constants: dict[str, Any] = field(default_factory=dict)
    sampler: str = "none"
    importance: ImportanceDiagnostics | None = None


class Estimator(ABC):
    """A population estimator: from a sample table to draws of the population table.

    Subclasses are frozen dataclasses whose fields are the whole specification. They say how parameters are learned
    (`_learn`) and how tables are drawn given them; `fit` does the rest, the same for all of them.
    """

    title: ClassVar[str]
    """What a person calls it."""

    plug_in: ClassVar[bool] = False
    """Whether parameters are single values, so that intervals leave out their uncertainty."""

    def fit(
        self,
        sample: xr.DataArray,
        *,
        population_size: int,
        structural_zeros: xr.DataArray | None = None,
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
            Frequency table of a simple random sample without replacement, `n` individuals.
        population_size : int
            `N`, at least `n`.
        structural_zeros : DataArray of bool, optional
            True where a cell cannot be filled.
        draws : int
            Draws per chain.
        tune : int
            Warm-up draws per chain, thrown away; plug-in estimators need none and ignore it.
        chains : int
            Number of chains.
        random_seed : int or Generator, optional
            The same seed gives the same numbers. A fit without one records the seed it chose.
        progressbar : bool
            Show the sampler's progress.
        method : {"fast", "nuts"}
            How a Bayesian estimator draws its parameters: ``"fast"`` without a Markov chain and without compiling,
            turning to NUTS where its own diagnostics fail or it does not know the model; ``"nuts"`` by NUTS at once.
            Plug-in estimators ignore it.

        Returns
        -------
        DataTree
            ArviZ's groups: ``posterior`` and ``sample_stats`` (Bayesian estimators), ``posterior_predictive`` with
            ``population`` (chain, draw, and the variables) and ``sample``, ``observed_data``, ``constant_data`` and
            ``log_likelihood`` (leave-one-out conditional of each individual, when it has at most ten million values).
            The attributes hold what is needed to repeat it.

        Raises
        ------
        TableError
            A sample that is no frequency table, is empty or has fewer than two cells; a filled structural zero.
        ParameterError
            `population_size` below the sample, or draws, tune or chains that are not positive.
        EstimationError
            The estimator has no solution for this sample.
        FormulaError, PriorError
            The specification does not fit the table.

        Warns
        -----
        ConvergenceWarning
            The sampler did not converge.
        """
        problem = make_problem(sample, population_size, structural_zeros)
        settings = _settings(draws, tune, chains, random_seed, progressbar, method)
        sampler_seed, population_seed, replicate_seed = np.random.SeedSequence(settings.seed).spawn(3)
        parameters = self._learn(problem, settings, int(sampler_seed.generate_state(1)[0]))
        population = self._draw_population(problem, settings, parameters, np.random.default_rng(population_seed))
        replicates = self._draw_replicates(problem, settings, parameters, np.random.default_rng(replicate_seed))
        groups = {
            "posterior": parameters.posterior,
            "sample_stats": parameters.sample_stats,
            "posterior_predictive": xr.Dataset(
                {
                    "population": problem.draws(population, chains, "population"),
                    "sample": problem.draws(replicates, chains, "sample"),
                }
            ),
            "log_likelihood": self._pointwise(problem, settings, parameters),
            "observed_data": xr.Dataset({"sample": problem.sample}),
            "constant_data": xr.Dataset(
                {
                    "population_size": problem.population_size,
                    "structural_zeros": problem.structural_zeros,
                    **parameters.constants,
                }
            ),
        }
        tree = xr.DataTree.from_dict({name: group for name, group in groups.items() if group is not None})
        tree.attrs.update(self._record(problem, settings, parameters))
        return tree

    @abstractmethod
    def _learn(self, problem: Problem, settings: SamplerSettings, seed: int) -> Parameters:
        """Learn the parameters from the sample."""

    @abstractmethod
    def _draw_population(
        self, problem: Problem, settings: SamplerSettings, parameters: Parameters, rng: np.random.Generator
    ) -> Counts:
        """Population tables, shape (chains * draws, cells)."""

    @abstractmethod
    def _draw_replicates(
        self, problem: Problem, settings: SamplerSettings, parameters: Parameters, rng: np.random.Generator
    ) -> Counts:
        """Samples of the same size that the fitted model would give, shape (chains * draws, cells)."""

    def _log_conditionals(self, problem: Problem, parameters: Parameters) -> npt.NDArray[np.float64] | None:
        """Logarithm of p(x_i | x_-i, parameters) for an individual of each occupied cell, (chain, draw, cell)."""
        return None

    def spec(self) -> dict[str, Any]:
        """Return the whole specification as plain values: the estimator's name and its fields."""
        return {"estimator": type(self).__name__, **{f.name: _plain(getattr(self, f.name)) for f in fields(self)}}  # type: ignore[arg-type]

    def __repr__(self) -> str:
        """As it would be written: the arguments that differ from their defaults."""
        given = [f"{f.name}={getattr(self, f.name)!r}" for f in fields(self) if getattr(self, f.name) != _default(f)]  # type: ignore[arg-type]
        return f"{type(self).__name__}({', '.join(given)})"

    def _pointwise(self, problem: Problem, settings: SamplerSettings, parameters: Parameters) -> xr.Dataset | None:
        if problem.sample_size * settings.draws * settings.chains > _POINTWISE_LIMIT:
            return None
        terms = self._log_conditionals(problem, parameters)
        if terms is None:
            return None
        counts = problem.counts
        occupied = np.flatnonzero(counts)
        per_individual = np.repeat(terms, counts[occupied], axis=-1)
        coords = {"chain": np.arange(settings.chains), "draw": np.arange(settings.draws)}
        array = xr.DataArray(per_individual, dims=("chain", "draw", "individual"), coords=coords)
        return xr.Dataset({"sample": array})

    def _record(self, problem: Problem, settings: SamplerSettings, parameters: Parameters) -> dict[str, Any]:
        versions = {name: _version(name) for name in _RECORDED}
        return {
            "schema_version": SCHEMA_VERSION,
            "estimator": json.dumps(self.spec()),
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
        }


class BayesianEstimator(Estimator):
    """An estimator whose parameters have a prior.

    They are learned without a Markov chain where that works, and by NUTS elsewhere.
    """

    def _learn(self, problem: Problem, settings: SamplerSettings, seed: int) -> Parameters:
        if settings.method == "fast":
            parameters = self._learn_fast(problem, settings, np.random.default_rng(seed))
            if parameters is not None and (parameters.importance is None or parameters.importance.converged):
                return parameters
        return self._learn_nuts(problem, settings, seed)

    @abstractmethod
    def _learn_fast(self, problem: Problem, settings: SamplerSettings, rng: np.random.Generator) -> Parameters | None:
        """Independent draws with their diagnostics; None for a model that has no such path."""

    @abstractmethod
    def _learn_nuts(self, problem: Problem, settings: SamplerSettings, seed: int) -> Parameters:
        """Draws of the PyMC model."""

    @abstractmethod
    def _draw_prior(self, problem: Problem, draws: int, rng: np.random.Generator) -> PriorDraws:
        """Parameters by name (leading axis draws), samples and populations (draws, cells), for calibration.

        Of the problem only the sizes, the shape and the structural zeros may be used, not what is in the sample.
        """


def _settings(
    draws: int,
    tune: int,
    chains: int,
    random_seed: int | np.random.Generator | None,
    progressbar: bool,
    method: Literal["fast", "nuts"],
) -> SamplerSettings:
    if method not in ("fast", "nuts"):
        raise ParameterError(f"method must be 'fast' or 'nuts', got {method!r}")
    draws, tune, chains = (
        whole_number(value, name, least=1) for name, value in (("draws", draws), ("tune", tune), ("chains", chains))
    )
    return SamplerSettings(draws, tune, chains, seed_number(random_seed), progressbar, method)


def checked_number(value: Any, name: str) -> float:
    """Return a finite number of at least 0 as a float, so that a specification holds plain values only."""
    number = isinstance(value, Real | np.floating | np.integer) and not isinstance(value, bool)
    if not number or not 0 <= float(value) < float("inf"):
        raise ParameterError(f"{name} must be a finite number of at least 0, got {value!r}")
    return float(value)


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


def _version(name: str) -> str:
    from importlib.metadata import PackageNotFoundError

    try:
        return version(name)
    except PackageNotFoundError:
        return "missing"
