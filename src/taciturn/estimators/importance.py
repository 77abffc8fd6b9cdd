"""Importance sampling: from weighted proposals to draws, and how far to trust them."""

import json
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

__all__ = ["ImportanceDiagnostics", "resample"]

HIGHEST_K_HAT: Final = 0.7
SMALLEST_ESS: Final = 400.0

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class ImportanceDiagnostics:
    """How well proposals covered a posterior.

    Attributes
    ----------
    k_hat : float
        Shape of the generalised Pareto distribution of the largest weights; above 0.7 the draws cannot be trusted.
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
            found.append(f"the effective sample size is {self.ess:.0f}, at least {SMALLEST_ESS:.0f} is needed")
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


def resample(
    log_weights: Floats, number: int, rng: np.random.Generator
) -> tuple[npt.NDArray[np.int64], ImportanceDiagnostics]:
    """Choose proposals in proportion to their Pareto-smoothed weights.

    Parameters
    ----------
    log_weights : array, shape (proposals,)
        Logarithm of target over proposal, up to a constant.
    number : int
        Draws wanted; a proposal may be chosen more than once.
    rng : Generator
        Source of randomness.

    Returns
    -------
    array, shape (number,)
        Indices of proposals, in random order.
    ImportanceDiagnostics

    References
    ----------
    Vehtari, Simpson, Gelman, Yao & Gabry (2024), Pareto smoothed importance sampling, JMLR 25.
    """
    from arviz_stats import base

    stats: Any = base.array_stats
    smoothed, k_hat = stats.psislw(log_weights.max() - log_weights)  # it takes log-likelihoods, the negative
    weights = np.exp(smoothed - smoothed.max())
    weights /= weights.sum()
    # Systematic resampling adds less noise than independent choices.
    points = (np.arange(number) + rng.random()) / number
    chosen = np.minimum(np.searchsorted(np.cumsum(weights), points), len(weights) - 1)
    diagnostics = ImportanceDiagnostics(k_hat=float(k_hat), ess=float(1 / np.sum(weights**2)))
    return rng.permutation(chosen), diagnostics
