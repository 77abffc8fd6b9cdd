"""Whether draws can be relied on: those of a Markov chain, of importance sampling and
of a mixture. All thresholds stand here.
"""

import json
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from math import isfinite, log10, sqrt
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.errors import ConvergenceWarning, FileFormatError
from taciturn.figures import beside
from taciturn.loading import loaded

__all__ = [
    "FEWEST_DRAWS",
    "FEWEST_TAIL_DRAWS",
    "HIGHEST_K_HAT",
    "HIGHEST_R_HAT",
    "SMALLEST_ESS",
    "AnyDiagnostics",
    "Diagnostics",
    "ImportanceDiagnostics",
    "PooledDiagnostics",
    "array_stats",
    "check_convergence",
    "draws_of_mixture",
    "effective_draws",
    "error_of_mean",
    "highest_k_hat",
    "mixture_diagnostics",
    "noted_failures",
]

HIGHEST_R_HAT: Final = 1.01
"""Highest potential scale reduction at which chains agree (Vehtari et al. 2021)."""

SMALLEST_ESS: Final = 400.0
"""Smallest effective sample size that supports a diagnosis (Vehtari et al. 2021)."""

HIGHEST_K_HAT: Final = 0.7
"""Highest shape of the tail of importance weights that can be smoothed (Vehtari et
al. 2024)."""

FEWEST_TAIL_DRAWS: Final = 25
"""With fewer draws importance weights have no tail to fit, so that nothing says whether
they can be trusted."""

FEWEST_DRAWS: Final = 100
"""With fewer draws the effect of power-scaling a prior is lost in Monte Carlo error."""

_TAIL: Final = 0.89
"""The quantiles at this probability and at 1 less it are the tails: ArviZ's default,
which a user's settings for intervals would change. Vehtari et al. (2021) take 0.95."""


_FEWEST_OF_CHAIN: Final = 20
"""With fewer draws ArviZ takes independent ones for several times as many."""

_MONTE_CARLO: Final = 1.5
"""Three standard deviations of a share of one half, times the root of the draws."""


def array_stats() -> Any:
    """ArviZ's statistics of plain arrays, loaded when they are first needed."""
    return loaded("arviz_stats.base").array_stats


def highest_k_hat(draws: int) -> float:
    """Highest k-hat that can be trusted with so many draws, at most `HIGHEST_K_HAT`."""
    return min(1 - 1 / log10(draws), HIGHEST_K_HAT) if draws > 1 else HIGHEST_K_HAT


class _Verdict(ABC):
    """What all diagnostics say: their problems, and whether there are any."""

    @property
    @abstractmethod
    def problems(self) -> tuple[str, ...]:
        """What is wrong, in words; empty if the draws can be used."""

    @property
    def converged(self) -> bool:
        """Whether no problem was found."""
        return not self.problems


@dataclass(frozen=True)
class Diagnostics(_Verdict):
    """Convergence of a Markov chain, over all parameters.

    Attributes
    ----------
    r_hat : float
        Largest potential scale reduction, near 1 where chains agree.
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
        """What is wrong, in words; empty if the draws can be used."""
        found = []
        if not self.r_hat <= HIGHEST_R_HAT:
            found.append(f"r-hat is {_r_hat(self.r_hat)}, at most {HIGHEST_R_HAT} is accepted")
        found += _too_few(min(self.ess_bulk, self.ess_tail))
        if self.divergences:
            found.append(f"{self.divergences} transitions diverged, none is accepted")
        return tuple(found)

    def __str__(self) -> str:
        return (
            f"r-hat {_r_hat(self.r_hat)}, effective draws {_ess(self.ess_bulk)} (bulk) and"
            f" {_ess(self.ess_tail)} (tail), {self.divergences} divergences"
        )


@dataclass(frozen=True)
class ImportanceDiagnostics(_Verdict):
    """How well the proposals of importance sampling cover a posterior.

    Attributes
    ----------
    k_hat : float
        Shape of the generalised Pareto distribution of the largest weights; above 0.7
        the draws cannot be trusted.
    ess : float
        Effective number of proposals, ``1 / sum of squared weights``; for
        `MixedPoisson` with several strata four times that of the tenth of ν of which
        there are fewest, if this is below 400.
    """

    k_hat: float
    ess: float

    @property
    def problems(self) -> tuple[str, ...]:
        """What is wrong, in words; empty if the draws can be used."""
        found = []
        if not self.k_hat <= HIGHEST_K_HAT:
            found.append(f"k-hat is {_k_hat(self.k_hat)}, at most {HIGHEST_K_HAT} is accepted")
        return (*found, *_too_few(self.ess))

    def __str__(self) -> str:
        return f"no Markov chain; k-hat {_k_hat(self.k_hat)}, effective draws {_ess(self.ess)}"

    def to_json(self) -> str:
        """As text, for the attributes of a fit."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "ImportanceDiagnostics":
        """Read what `to_json` wrote.

        Raises
        ------
        FileFormatError
            Text that it did not write.
        """
        try:
            values: dict[str, Any] = json.loads(text)
            found = cls(k_hat=float(values["k_hat"]), ess=float(values["ess"]))
        except (KeyError, ValueError, TypeError, RecursionError) as error:
            raise FileFormatError(
                f"diagnostics must have the numbers k_hat and ess, got {text!r:.80}"
            ) from error
        if not found.ess > 0:
            raise FileFormatError(f"the effective sample size must be above 0, got {found.ess}")
        return found


@dataclass(frozen=True)
class PooledDiagnostics(_Verdict):
    """Diagnostics of every member of a mixture.

    Attributes
    ----------
    members : dict
        Diagnostics by the member's name, themselves pooled for a member that is a
        mixture; None for a member without sampled parameters.
    ess : float
        Effective number of draws of the mixture: those of its members, in proportion to
        their shares.
    turns : tuple of str
        Which members made more or fewer draws than their shares by more than Monte
        Carlo errors, as chains of a few draws make them.
    """

    members: "Mapping[str, AnyDiagnostics | None]"
    ess: float
    turns: tuple[str, ...] = ()

    @property
    def problems(self) -> tuple[str, ...]:
        """What is wrong, in words; empty if the draws can be used."""
        found = {name: own.problems for name, own in self.members.items() if own is not None}
        own = (f"{name}: {problem}" for name, problems in found.items() for problem in problems)
        return (*own, *self.turns)

    def __str__(self) -> str:
        said = {
            name: "no parameters sampled" if own is None else str(own)
            for name, own in self.members.items()
        }
        return "\n".join(
            f"{name}: {line}" for name, text in said.items() for line in text.splitlines()
        )


AnyDiagnostics = Diagnostics | ImportanceDiagnostics | PooledDiagnostics


def mixture_diagnostics(
    members: Mapping[str, AnyDiagnostics | None],
    shares: Mapping[str, float],
    whose: npt.NDArray[np.int64],
) -> PooledDiagnostics:
    """Diagnostics of a mixture, from its members' and their shares, and the number of
    the member that made each draw.
    """
    worth, draws, turns = [], whose.size, []
    for number, (name, own) in enumerate(members.items()):
        made = float((whose == number).mean())
        if abs(made - shares[name]) > _MONTE_CARLO / sqrt(draws):
            said, share = (beside(100 * x, 0, 100, decimals=1) for x in (made, shares[name]))
            turns.append(f"{name} made {said}% of the draws, its share is {share}%")
        ess = own.ess_bulk if isinstance(own, Diagnostics) else draws if own is None else own.ess
        worth.append(ess)
    ess = draws_of_mixture([shares[name] for name in members], worth, draws)
    return PooledDiagnostics(members, ess, tuple(turns))


def draws_of_mixture(shares: Iterable[float], worth: Iterable[float], draws: int) -> float:
    """How many independent draws those of a mixture are worth, from what as many draws
    of each part are worth, at most all: the variance of a mean is that of its parts, in
    their shares.
    """
    return 1 / sum(share / min(draws, own) for share, own in zip(shares, worth, strict=True))


def effective_draws(draws: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """How many independent draws those of a chain, along the last axis, are worth for
    their mean: at most all of them, NaN of fewer than four.
    """
    chains = draws[..., None, :]
    with np.errstate(all="ignore"):
        found = array_stats().ess(chains, method="mean", chain_axis=-2, draw_axis=-1)
    return np.asarray(np.minimum(found, draws.shape[-1]))


def error_of_mean(draws: npt.NDArray[np.float64]) -> float:
    """Monte Carlo error of the mean of draws, (chain, draw). Where chains are too short
    to see how draws depend on each other, it is at least that of independent draws, and
    that of the means of several chains.
    """
    chains, number = draws.shape
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=RuntimeWarning)
        error = float(array_stats().mcse(draws, chain_axis=0, draw_axis=1, method="mean"))
    if isfinite(error) and number >= _FEWEST_OF_CHAIN:
        return error
    found = [float(draws.std(ddof=1)) / sqrt(draws.size)]
    if isfinite(error):
        found.append(error)
    if chains > 1:
        found.append(float(draws.mean(axis=1).std(ddof=1)) / sqrt(chains))
    return max(found)


def check_convergence(
    posterior: xr.Dataset,
    sample_stats: xr.Dataset | None,
    *,
    warn: bool = False,
    remedy: str = "More tune and draws may help",
) -> Diagnostics:
    """r-hat, effective sample sizes and divergences over all parameters of a posterior.

    Parameters
    ----------
    posterior : Dataset
        Draws with dims ``chain`` and ``draw``.
    sample_stats : Dataset, optional
        Holds ``diverging`` where the sampler reports it.
    warn : bool
        Warn of problems.
    remedy : str
        What a warning says may help.

    Warns
    -----
    ConvergenceWarning
        Names each problem.
    """
    stats = array_stats()
    arrays = [
        np.where(np.isfinite(values), values, np.nan)  # ranks would hide what is infinite
        for values in (a.transpose("chain", "draw", ...).values for a in posterior.values())
    ]
    axes = {"chain_axis": 0, "draw_axis": 1}
    with np.errstate(all="ignore"):  # a constant has no r-hat
        r_hat = [stats.rhat(array, **axes) for array in arrays]
        bulk = [stats.ess(array, method="bulk", **axes) for array in arrays]
        tail = [stats.ess(array, method="tail", prob=_TAIL, **axes) for array in arrays]
    known = sample_stats is not None and "diverging" in sample_stats
    diverging = int(sample_stats["diverging"].sum()) if known else 0  # type: ignore[index]
    # NaN, which passes no check, where a value could not be computed
    diagnostics = Diagnostics(
        r_hat=float(np.max(_flat(r_hat))),
        ess_bulk=float(np.min(_flat(bulk))),
        ess_tail=float(np.min(_flat(tail))),
        divergences=diverging,
    )
    if warn and not diagnostics.converged:
        text = (
            "the sampler did not converge, so its numbers must not be used: "
            + "; ".join(diagnostics.problems)
            + f". {remedy}"
        )
        noted = _NOTED.get()
        if noted is None:
            warnings.warn(text, ConvergenceWarning, stacklevel=4)
        else:
            noted.append(text)
    return diagnostics


@contextmanager
def noted_failures() -> Iterator[list[str]]:
    """In which a sampler that does not converge is noted in the list, and nobody is
    warned. Other threads are not concerned, as they are by filters of warnings.
    """
    noted: list[str] = []
    token = _NOTED.set(noted)
    try:
        yield noted
    finally:
        _NOTED.reset(token)


_NOTED: Final[ContextVar[list[str] | None]] = ContextVar("noted", default=None)


def _too_few(ess: float) -> list[str]:
    if ess >= SMALLEST_ESS:
        return []
    return [f"the effective sample size is {_ess(ess)}, at least {SMALLEST_ESS:.0f} is needed"]


def _r_hat(value: float) -> str:
    return beside(value, HIGHEST_R_HAT, decimals=3)


def _k_hat(value: float) -> str:
    return beside(value, HIGHEST_K_HAT, decimals=2)


def _ess(value: float) -> str:
    return beside(value, SMALLEST_ESS, decimals=0)


def _flat(values: list[Any]) -> Any:
    """The values of all parameters in one array; NaN if there are none."""
    flat = [np.ravel(value) for value in values]
    return np.concatenate(flat) if sum(map(np.size, flat)) else np.array([np.nan])
