"""Linear opinion pool: the draws of several estimators in fixed shares."""

import json
import re
from collections.abc import Mapping
from dataclasses import (
    asdict,
    dataclass,
    field,
    replace,
)
from math import isclose
from typing import (
    Any,
    ClassVar,
    Literal,
)

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.diagnostics import (
    Diagnostics,
    ImportanceDiagnostics,
    PooledDiagnostics,
    check_convergence,
    mixture_diagnostics,
)
from taciturn.errors import ParameterError, TableError
from taciturn.estimators.base import BayesianEstimator, Estimator
from taciturn.estimators.log_linear.dirichlet import DirichletLogLinear
from taciturn.estimators.problem import Problem
from taciturn.estimators.settings import (
    Counts,
    Parameters,
    SamplerSettings,
)
from taciturn.estimators.urn.chinese_restaurant import ChineseRestaurant
from taciturn.schema import RESERVED_NAMES
from taciturn.validate import real_number

__all__ = ["LinearPool", "member_draws", "pooled_diagnostics", "turns"]


@dataclass(frozen=True, repr=False)
class LinearPool(Estimator):
    r"""Mixture of the population draws of several estimators with weights that the
    sample does not change.

    .. math:: p(F \mid f) = \sum_m w_m \, p_m(F \mid f)

    Each member is fitted on its own; member `m` makes a share :math:`w_m` of the draws.
    By default the two families of this package at equal weights: `DirichletLogLinear`,
    which learns from the margins which cells are filled, and `ChineseRestaurant`, which
    learns from the counts how many.

    Parameters
    ----------
    members : mapping of str to Estimator, optional
        Bayesian estimators by a short name, which stands before the names of their
        parameters.
    weights : mapping of str to float, optional
        For each member, positive with sum 1; equal without them.

    Raises
    ------
    ParameterError
        Fewer than two members, a member that is a plug-in estimator or a pool, names
        that are no identifiers, or weights that are not positive, do not sum to 1 or
        name other members.

    Notes
    -----
    This is no posterior of one model. Weights by the evidence would be one, and were
    tried: the evidence of a table is nearly all about which cell an individual is in,
    the risk about how many cells stay empty and how uneven they are, so that the family
    that wins by evidence is often the one further off in risk. Intervals of the pool
    are as wide as the members disagree; a pool of members that are each calibrated is
    wider than it need be (Gneiting & Ranjan 2013). `calibrate` therefore applies to the
    members, and what is claimed for the pool rests on repeated samples.

    ``posterior`` holds every member's parameters for every draw, and ``member``: the
    number of the member, in the order given, that made that draw of the population.
    ``cell_log_likelihood`` and ``log_likelihood`` hold one variable for each member.

    References
    ----------
    Stone (1961), The opinion pool, Annals of Mathematical Statistics 32; Gneiting &
    Ranjan (2013), Combining predictive distributions, Electronic Journal of Statistics
    7.

    Examples
    --------
    >>> import taciturn as tc
    >>> sample = tc.draw_sample(tc.load_dataset("area_by_religion"), fraction=0.1, random_seed=1)
    >>> fit = tc.LinearPool().fit(sample, population_size=2449, random_seed=1)
    >>> sorted(fit["posterior"].data_vars)[:4]
    ['dirichlet_kappa', 'dirichlet_margin_area', 'dirichlet_margin_religion', 'member']
    >>> tc.assess(fit)["risk"]["R2"].groupby(fit["posterior"]["member"]).count().values
    array([2000, 2000])
    """

    members: Mapping[str, Estimator] = field(
        default_factory=lambda: {
            "dirichlet": DirichletLogLinear(),
            "restaurant": ChineseRestaurant(),
        }
    )
    weights: Mapping[str, float] | None = None

    title: ClassVar[str] = "Linear opinion pool of Bayesian estimators"

    def __post_init__(self) -> None:
        object.__setattr__(self, "members", _checked_members(self.members))
        if self.weights is not None:
            object.__setattr__(self, "weights", _checked_weights(self.weights, self.members))

    @property
    def shares(self) -> npt.NDArray[np.float64]:
        """Weight of each member, in their order."""
        if self.weights is None:
            return np.full(len(self.members), 1 / len(self.members))
        return np.array([self.weights[name] for name in self.members])

    def check_margins(self, problem: Problem) -> None:
        """Raise `ParameterError` where margins are known and a member cannot keep
        them.
        """
        for member in self.members.values():
            member.check_margins(problem)

    def _learn(self, problem: Problem, settings: SamplerSettings, seed: int) -> "PooledParameters":
        *seeds, order = np.random.SeedSequence(seed).spawn(len(self.members) + 1)
        learned = {
            name: member._learn(problem, settings, int(own.generate_state(1)[0]))
            for (name, member), own in zip(self.members.items(), seeds, strict=True)
        }
        whose = turns(self.shares, settings.draws)
        # Members come in random order, so that a chain's neighbours are as far apart as
        # any two draws.
        rng = np.random.default_rng(order)
        member = np.stack([rng.permutation(whose) for _ in range(settings.chains)])
        coords = {"chain": np.arange(settings.chains), "draw": np.arange(settings.draws)}
        posterior = xr.Dataset({"member": (("chain", "draw"), member)}, coords=coords)
        stats = xr.Dataset()
        for name, found in learned.items():
            _refuse_name_clash(problem, found, name)
            if found.posterior is not None:
                posterior = posterior.merge(_prefixed(found.posterior, name))
            if found.sample_stats is not None:
                stats = stats.merge(_prefixed(found.sample_stats, name))
        return PooledParameters(
            posterior,
            stats if stats.data_vars else None,
            sampler=", ".join(f"{name}: {found.sampler}" for name, found in learned.items()),
            members={
                name: found.importance
                for name, found in learned.items()
                if found.importance is not None
            },
        )

    def _draw_population(
        self,
        problem: Problem,
        settings: SamplerSettings,
        parameters: Parameters,
        rng: np.random.Generator,
    ) -> Counts:
        return self._in_turns("population", problem, settings, parameters, rng)

    def _draw_replicates(
        self,
        problem: Problem,
        settings: SamplerSettings,
        parameters: Parameters,
        rng: np.random.Generator,
    ) -> Counts:
        return self._in_turns("count", problem, settings, parameters, rng)

    def _in_turns(
        self,
        what: Literal["population", "count"],
        problem: Problem,
        settings: SamplerSettings,
        parameters: Parameters,
        rng: np.random.Generator,
    ) -> Counts:
        """Tables of every member, each from its own parameters at the draws that are
        its turn.
        """
        assert parameters.posterior is not None
        member = parameters.posterior["member"].transpose("chain", "draw").values
        out = np.empty((*member.shape, problem.sample.size), dtype=np.int64)
        for number, (name, estimator) in enumerate(self.members.items()):
            turn = member == number
            draws = int(turn[0].sum())
            if draws:
                own = _at(_parameters(parameters, name), turn)
                out[turn] = estimator._draw(what, problem, replace(settings, draws=draws), own, rng)
        return out.reshape(-1, problem.sample.size)

    def _pointwise(
        self, problem: Problem, settings: SamplerSettings, parameters: Parameters
    ) -> xr.Dataset | None:
        terms = {}
        for name, member in self.members.items():
            found = member._pointwise(problem, settings, _parameters(parameters, name))
            if found is None:
                return None
            terms[name] = found["count"]
        return xr.Dataset(terms)

    def _log_prior(self, problem: Problem, parameters: Parameters) -> xr.Dataset | None:
        own = {
            name: member._log_prior(problem, _parameters(parameters, name))
            for name, member in self.members.items()
        }
        return (
            xr.merge([_prefixed(found, name) for name, found in own.items() if found is not None])
            or None
        )

    def _record(
        self, problem: Problem, settings: SamplerSettings, parameters: Parameters
    ) -> dict[str, Any]:
        assert isinstance(parameters, PooledParameters)
        importance = {name: asdict(found) for name, found in parameters.members.items()}
        return {
            **super()._record(problem, settings, parameters),
            "importance": json.dumps(importance),
        }


@dataclass
class PooledParameters(Parameters):
    """What the members learned, under prefixed names.

    Attributes
    ----------
    members : dict
        Diagnostics of the members that were fitted without a Markov chain.
    """

    members: dict[str, ImportanceDiagnostics] = field(default_factory=dict)


def pooled_diagnostics(pool: LinearPool, fit: xr.DataTree) -> PooledDiagnostics:
    """Diagnostics of a pool's fit: of importance sampling or of the Markov chain, as
    each member was fitted.
    """
    importance = json.loads(fit.attrs.get("importance", "{}"))
    posterior = fit["posterior"].to_dataset().compute()
    stats = fit["sample_stats"].to_dataset() if "sample_stats" in fit.children else xr.Dataset()
    found: dict[str, Diagnostics | ImportanceDiagnostics | PooledDiagnostics | None] = {}
    for name in pool.members:
        own = _of_member(posterior, name)
        if name in importance:
            found[name] = ImportanceDiagnostics(**importance[name])
        else:
            own = pool.members[name].monitored(own)
            found[name] = check_convergence(own, _of_member(stats, name)) if own.data_vars else None
    return mixture_diagnostics(
        found, dict(zip(pool.members, pool.shares, strict=True)), posterior["member"].size
    )


def member_draws(
    pool: LinearPool, posterior: xr.Dataset
) -> dict[str, tuple[xr.Dataset, npt.NDArray[np.bool_]]]:
    """Parameters of each member under their own names, and which draws of the
    population it made, (chain, draw).
    """
    member = posterior["member"].transpose("chain", "draw").values
    return {
        name: (_of_member(posterior, name), member == number)
        for number, name in enumerate(pool.members)
    }


def _checked_members(members: Any) -> dict[str, Estimator]:
    if not isinstance(members, Mapping) or len(members) < 2:
        raise ParameterError(
            f"members must be a mapping of at least two names to estimators, got {members!r}"
        )
    for name, member in members.items():
        if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z][A-Za-z0-9]*", name):
            raise ParameterError(f"the name of a member must be letters and digits, got {name!r}")
        if name in RESERVED_NAMES or name == "individual":
            raise ParameterError(
                f"{name!r} is a name that fits use themselves: give the member another"
            )
        if not isinstance(member, BayesianEstimator):
            raise ParameterError(
                f"the member {name!r} must be a Bayesian estimator, got {member!r}"
            )
    return dict(members)


def _checked_weights(weights: Any, members: Mapping[str, Estimator]) -> dict[str, float]:
    if not isinstance(weights, Mapping) or set(weights) != set(members):
        raise ParameterError(f"weights must have the members {list(members)}, got {weights!r}")
    values = {name: real_number(weights[name], f"the weight of {name!r}", least=0) for name in members}
    if min(values.values()) <= 0 or not isclose(sum(values.values()), 1, abs_tol=1e-9):
        raise ParameterError(f"weights must be positive and sum to 1, got {weights!r}")
    return values


def turns(shares: npt.NDArray[np.float64], draws: int) -> Counts:
    """Number of the member that makes each draw: as near to their shares as whole draws
    allow.
    """
    ends = np.cumsum(shares)
    return np.searchsorted(ends / ends[-1], (np.arange(draws) + 0.5) / draws)


def _at(parameters: Parameters, turn: npt.NDArray[np.bool_]) -> Parameters:
    """The parameters at the draws of each chain where `turn` is True, as many in each
    chain.
    """
    if parameters.posterior is None:
        return parameters
    chosen = np.nonzero(turn)[1].reshape(len(turn), -1)
    chains = xr.DataArray(np.arange(len(turn)), dims="chain")
    posterior = parameters.posterior.drop_vars(["chain", "draw"], errors="ignore")
    own = posterior.isel(chain=chains, draw=xr.DataArray(chosen, dims=("chain", "draw")))
    return replace(parameters, posterior=own)


def _parameters(pooled: Parameters, name: str) -> Parameters:
    assert pooled.posterior is not None
    own = _of_member(pooled.posterior, name)
    return Parameters(own if own.data_vars else None)


def _refuse_name_clash(problem: Problem, learned: Parameters, name: str) -> None:
    known = [
        dataset for dataset in (learned.posterior, learned.sample_stats) if dataset is not None
    ]
    names = {f"{name}_{variable}" for dataset in known for variable in dataset.data_vars}
    clash = sorted(names & set(problem.variables))
    if name in problem.variables:
        raise TableError(
            f"the variable {name!r} has the name of a member of the pool: rename one of them"
        )
    if clash:
        raise TableError(
            f"the variable {clash[0]!r} has the name of a parameter of the model: rename it"
        )


def _prefixed(dataset: xr.Dataset, name: str) -> xr.Dataset:
    return dataset.rename_vars({variable: f"{name}_{variable}" for variable in dataset.data_vars})


def _of_member(dataset: xr.Dataset, name: str) -> xr.Dataset:
    """A member's variables, under their own names."""
    prefix = f"{name}_"
    own = dataset[[variable for variable in dataset.data_vars if str(variable).startswith(prefix)]]
    return own.rename_vars(
        {variable: str(variable).removeprefix(prefix) for variable in own.data_vars}
    )
