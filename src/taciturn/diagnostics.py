"""Whether draws can be relied on: of a Markov chain, of importance sampling, of a
mixture; all thresholds stand here.
"""

import json
import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.errors import ConvergenceWarning

__all__ = [
    "Diagnostics",
    "ImportanceDiagnostics",
    "PooledDiagnostics",
    "_bare",
    "check_convergence",
    "mixture_diagnostics",
]

HIGHEST_K_HAT: Final = 0.7
SMALLEST_ESS: Final = 400.0
HIGHEST_R_HAT: Final = 1.01


@dataclass(frozen=True)
class PooledDiagnostics:
    """Diagnostics of every member of a mixture that has parameters.

    Attributes
    ----------
    members : dict
        Diagnostics by the member's name, a mixture's for a pool; None for one without
        parameters to sample.
    ess : float
        Effective number of draws of the mixture: what the members' draws are worth, in
        their shares.
    """

    members: "dict[str, Diagnostics | ImportanceDiagnostics | PooledDiagnostics | None]"
    ess: float

    @property
    def problems(self) -> tuple[str, ...]:
        """What is wrong, in words; empty when the fit can be used."""
        found = {name: own.problems for name, own in self.members.items() if own is not None}
        return tuple(
            f"{name}: {problem}" for name, problems in found.items() for problem in problems
        )

    @property
    def converged(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    def __str__(self) -> str:
        said = {
            name: "no parameters sampled" if own is None else str(own)
            for name, own in self.members.items()
        }
        return "\n".join(
            f"{name}: {line}" for name, text in said.items() for line in text.splitlines()
        )


def mixture_diagnostics(
    members: "dict[str, Diagnostics | ImportanceDiagnostics | PooledDiagnostics | None]",
    shares: Mapping[str, float],
    draws: int,
) -> PooledDiagnostics:
    """Diagnostics of a mixture of so many draws, from those of its members and their
    shares.
    """
    variance = 0.0  # of a mean, in units of one draw's
    for name, own in members.items():
        ess = own.ess_bulk if isinstance(own, Diagnostics) else draws if own is None else own.ess
        variance += shares[name] / min(draws, ess)
    return PooledDiagnostics(members, 1 / variance)


@dataclass(frozen=True)
class Diagnostics:
    """How well a sampler did, over all parameters.

    Attributes
    ----------
    r_hat : float
        Largest potential scale reduction, which is near 1 when chains agree.
    ess_bulk, ess_tail : float
        Smallest effective sample sizes.
    divergences : int
        Number of divergent transitions after warm-up.
    """

    r_hat: float
    ess_bulk: float
    ess_tail: float
    divergences: int

    @property
    def problems(self) -> tuple[str, ...]:
        """What is wrong, in words; empty when the fit can be used."""
        found = []
        if not self.r_hat <= HIGHEST_R_HAT:
            found.append(f"r-hat is {self.r_hat:.3f}, at most {HIGHEST_R_HAT} is accepted")
        smallest = min(self.ess_bulk, self.ess_tail)
        if not smallest >= SMALLEST_ESS:
            found.append(
                f"the effective sample size is {smallest:.0f}, at least {SMALLEST_ESS:.0f} is"
                " needed"
            )
        if self.divergences:
            found.append(f"{self.divergences} transitions diverged, none is accepted")
        return tuple(found)

    @property
    def converged(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    def __str__(self) -> str:
        return (
            f"r-hat {self.r_hat:.3f}, effective draws {self.ess_bulk:.0f} (bulk) and"
            f" {self.ess_tail:.0f} (tail), {self.divergences} divergences"
        )


def check_convergence(
    posterior: xr.Dataset, sample_stats: xr.Dataset | None, *, warn: bool = False
) -> Diagnostics:
    """r-hat, effective sample sizes and divergences over all parameters of a posterior.

    Parameters
    ----------
    posterior : Dataset
        Draws with dims ``chain`` and ``draw``.
    sample_stats : Dataset, optional
        Holds ``diverging`` where the sampler reports it.
    warn : bool
        Warn when something is wrong.

    Warns
    -----
    ConvergenceWarning
        Naming each problem.
    """
    import arviz as az

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=RuntimeWarning)
        r_hat = az.rhat(posterior)
        bulk = az.ess(posterior, method="bulk")
        tail = az.ess(posterior, method="tail")
    diverging = (
        0
        if sample_stats is None or "diverging" not in sample_stats
        else int(sample_stats["diverging"].sum())
    )
    diagnostics = Diagnostics(
        _extreme(r_hat, np.max), _extreme(bulk, np.min), _extreme(tail, np.min), diverging
    )
    if warn and not diagnostics.converged:
        warnings.warn(
            "the sampler did not converge, so its numbers must not be used: "
            + "; ".join(diagnostics.problems)
            + ". More tune and draws may help",
            ConvergenceWarning,
            stacklevel=4,
        )
    return diagnostics


def _extreme(values: xr.Dataset, pick: Callable[[npt.NDArray[np.float64]], Any]) -> float:
    """The worst value over all parameters; NaN, which no check passes, where one could
    not be computed.
    """
    flat = np.concatenate([np.ravel(values[name].values) for name in values.data_vars])
    return float(pick(flat)) if len(flat) else float("nan")


def _bare(dataset: xr.Dataset) -> xr.Dataset:
    return xr.Dataset(dataset.variables).drop_attrs() if dataset.attrs else dataset


@dataclass(frozen=True)
class ImportanceDiagnostics:
    """How well proposals covered a posterior.

    Attributes
    ----------
    k_hat : float
        Shape of the generalised Pareto distribution of the largest weights; above 0.7
        the draws cannot be trusted.
    ess : float
        Effective number of proposals, ``1 / sum of squared weights``.
    """

    k_hat: float
    ess: float

    @property
    def problems(self) -> tuple[str, ...]:
        """What is wrong, in words; empty when the draws can be used."""
        found = []
        if not self.k_hat <= HIGHEST_K_HAT:
            found.append(f"k-hat is {self.k_hat:.2f}, at most {HIGHEST_K_HAT} is accepted")
        if not self.ess >= SMALLEST_ESS:
            found.append(
                f"the effective sample size is {self.ess:.0f}, at least {SMALLEST_ESS:.0f} is"
                " needed"
            )
        return tuple(found)

    @property
    def converged(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    def __str__(self) -> str:
        return f"no Markov chain; k-hat {self.k_hat:.2f}, effective draws {self.ess:.0f}"

    def to_json(self) -> str:
        """For the attributes of a fit."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "ImportanceDiagnostics":
        """Back from `to_json`."""
        values: dict[str, Any] = json.loads(text)
        return cls(k_hat=float(values["k_hat"]), ess=float(values["ess"]))
