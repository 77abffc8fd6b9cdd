"""How a fit is drawn: sizes, seeds and blocks of draws, and the parameters learned."""

from collections.abc import Callable
from dataclasses import (
    dataclass,
    field,
    replace,
)
from typing import (
    Any,
    Final,
    Literal,
    NamedTuple,
    cast,
)

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.diagnostics import ImportanceDiagnostics, draws_of_mixture
from taciturn.errors import ParameterError
from taciturn.estimators.problem import Problem
from taciturn.schema import draws_at_a_time
from taciturn.tables.on_demand import STORED_LIMIT
from taciturn.validate import quoted, seed_number, whole_number

__all__ = [
    "SEEDS",
    "Counts",
    "Parameters",
    "PooledParameters",
    "PriorDraws",
    "SamplerSettings",
    "by_blocks",
    "check_method",
    "is_streamed",
    "make_settings",
    "seed_of",
]

Counts = npt.NDArray[np.int64]
SEEDS: Final = ("sampler", "population", "count")
"""What has a seed of its own, so that a change in one does not move the others."""


class PriorDraws(NamedTuple):
    """Draws from the priors, for calibration.

    Attributes
    ----------
    parameters : dict of array
        By name, the draws on the first axis.
    samples, populations : array of int64, shape (draws, cells)
        One of each for every draw of the parameters.
    """

    parameters: dict[str, npt.NDArray[np.float64]]
    samples: Counts
    populations: Counts


@dataclass(frozen=True)
class SamplerSettings:
    """How many draws to take, and how.

    Attributes
    ----------
    draws, tune : int
        Draws and warm-up draws per chain.
    chains : int
        Number of chains.
    seed : int
        From which the seeds of all parts of a fit are derived.
    progressbar : bool
        Show progress, on standard error or below the cell of a notebook.
    method : {"fast", "nuts"}
        Without a Markov chain where that works, or by NUTS.
    """

    draws: int
    tune: int
    chains: int
    seed: int
    progressbar: bool
    method: Literal["fast", "nuts"] = "fast"

    @property
    def recorded(self) -> dict[str, Any]:
        """Those that a fit records: the arguments of `Estimator.fit`."""
        return {
            "draws": self.draws,
            "tune": self.tune,
            "chains": self.chains,
            "random_seed": self.seed,
            "method": self.method,
        }

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
        Draws of the parameters, (chain, draw, ...), and statistics of the sampler; None
        for a plug-in estimator.
    constants : dict
        Plug-in values and other fixed quantities, for ``constant_data``.
    sampler : str
        What drew the parameters, for the record.
    importance : ImportanceDiagnostics, optional
        Diagnostics of draws that were made by importance sampling.
    """

    posterior: xr.Dataset | None = None
    sample_stats: xr.Dataset | None = None
    constants: dict[str, Any] = field(default_factory=dict)
    sampler: str = "none"
    importance: ImportanceDiagnostics | None = None

    def worth(self, draws: int) -> float | None:
        """How many independent draws so many are worth where they come from proposals,
        of which there may be fewer; None where they tell it themselves.
        """
        return None if self.importance is None else min(self.importance.ess, draws)

    def at(self, chain: int, draws: slice) -> "Parameters":
        """Return the parameters at some draws of one chain."""
        if self.posterior is None:
            return self
        return replace(self, posterior=self.posterior.isel(chain=[chain], draw=draws))


@dataclass
class PooledParameters(Parameters):
    """What the members learned, under prefixed names.

    Attributes
    ----------
    members : dict
        Diagnostics of the members that were fitted without a Markov chain.
    shares : dict
        Of all members, as the sample moved them.
    """

    members: dict[str, ImportanceDiagnostics] = field(default_factory=dict)
    shares: dict[str, float] = field(default_factory=dict)

    def worth(self, draws: int) -> float | None:
        """Of the members' proposals, in proportion to their shares."""
        if not self.members:
            return None
        worth = [self.members[own].ess if own in self.members else draws for own in self.shares]
        return draws_of_mixture(self.shares.values(), worth, draws)


def is_streamed(problem: Problem, settings: SamplerSettings) -> bool:
    """Whether tables are drawn as they are read, as too many to store."""
    return settings.total * problem.sample.size > STORED_LIMIT


def by_blocks[T: npt.NDArray[np.float64] | None](
    compute: Callable[[Problem, Parameters], T],
    problem: Problem,
    settings: SamplerSettings,
    parameters: Parameters,
) -> T:
    """Compute something for every draw, (chain, draw, ...), a block of draws at a time.

    Intermediate results have a value for each cell of each draw, too many for all draws
    at once. Without draws of the parameters it is computed once.
    """
    step = draws_at_a_time(problem.sample.size)
    if settings.total <= step or parameters.posterior is None:
        return compute(problem, parameters)
    chains = []
    for chain in range(settings.chains):
        starts = range(0, settings.draws, step)
        parts = [
            compute(problem, parameters.at(chain, slice(start, start + step))) for start in starts
        ]
        if any(part is None for part in parts):
            return parts[0]
        chains.append(np.concatenate([part for part in parts if part is not None], axis=1))
    return cast("T", np.concatenate(chains))


def seed_of(what: str, settings: SamplerSettings) -> np.random.SeedSequence:
    """Seed of one of `SEEDS`."""
    return np.random.SeedSequence(settings.seed).spawn(len(SEEDS))[SEEDS.index(what)]


def check_method(method: Any) -> None:
    """Raise unless there is such a method."""
    if method not in ("fast", "nuts"):
        raise ParameterError(f"method must be 'fast' or 'nuts', got {quoted(method)}")


def make_settings(
    draws: int,
    tune: int,
    chains: int,
    random_seed: int | np.random.Generator | None,
    progressbar: bool,
    method: Literal["fast", "nuts"],
) -> SamplerSettings:
    """Check the arguments of `Estimator.fit` that say how to draw."""
    check_method(method)
    draws, tune, chains = (
        whole_number(value, name, least=1)
        for name, value in (("draws", draws), ("tune", tune), ("chains", chains))
    )
    return SamplerSettings(draws, tune, chains, seed_number(random_seed), progressbar, method)
