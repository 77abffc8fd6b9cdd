"""How a fit is drawn: sizes, seeds, blocks of draws, and the parameters that were
learned.
"""

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
)

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.diagnostics import ImportanceDiagnostics
from taciturn.errors import ParameterError
from taciturn.estimators.problem import Problem
from taciturn.schema import draws_at_a_time
from taciturn.tables.on_demand import STORED_LIMIT
from taciturn.validate import seed_number, whole_number

__all__ = [
    "Parameters",
    "PriorDraws",
    "SamplerSettings",
    "by_blocks",
    "is_streamed",
    "make_settings",
    "seed_of",
    "spawned_seeds",
]

Counts = npt.NDArray[np.int64]
PriorDraws = tuple[dict[str, npt.NDArray[np.float64]], Counts, Counts]
SEEDS: Final = ("sampler", "population", "count")


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

    def at(self, chain: int, draws: slice) -> "Parameters":
        """Return those of some draws of one chain."""
        if self.posterior is None:
            return self
        return replace(self, posterior=self.posterior.isel(chain=[chain], draw=draws))


def is_streamed(problem: Problem, settings: SamplerSettings) -> bool:
    """Whether tables are drawn as they are read, as too many to store."""
    return settings.total * problem.sample.size > STORED_LIMIT


def by_blocks(
    compute: Callable[[Problem, Parameters], npt.NDArray[np.float64] | None],
    problem: Problem,
    settings: SamplerSettings,
    parameters: Parameters,
) -> npt.NDArray[np.float64] | None:
    """Something that parameters and sample give for each draw, (chain, draw, ...), a
    block of draws at a time.

    What is computed on the way has a value for each cell.
    """
    step = draws_at_a_time(problem.sample.size)
    if settings.total <= step:
        return compute(problem, parameters)
    chains = []
    for chain in range(settings.chains):
        starts = range(0, settings.draws, step)
        parts = [
            compute(problem, parameters.at(chain, slice(start, start + step))) for start in starts
        ]
        if any(part is None for part in parts):
            return None
        chains.append(np.concatenate([part for part in parts if part is not None], axis=1))
    return np.concatenate(chains)


def spawned_seeds(settings: SamplerSettings) -> list[np.random.SeedSequence]:
    return np.random.SeedSequence(settings.seed).spawn(len(SEEDS))


def seed_of(what: str, settings: SamplerSettings) -> np.random.SeedSequence:
    return spawned_seeds(settings)[SEEDS.index(what)]


def make_settings(
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
        whole_number(value, name, least=1)
        for name, value in (("draws", draws), ("tune", tune), ("chains", chains))
    )
    return SamplerSettings(draws, tune, chains, seed_number(random_seed), progressbar, method)
