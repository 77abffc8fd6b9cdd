"""Sampling a PyMC model, and the check that it converged."""

import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.errors import ConvergenceWarning
from taciturn.estimators.base import SamplerSettings

if TYPE_CHECKING:
    import pymc as pm

__all__ = ["Diagnostics", "check_convergence", "sample_posterior"]

HIGHEST_R_HAT: Final = 1.01
SMALLEST_ESS: Final = 400.0
_TARGET_ACCEPT: Final = 0.9
"""Above the usual 0.8: margins of categories nobody in the sample has, have long tails that ask for smaller steps."""


_MOST_COMPILED: Final = 8
_compiled: dict[str, Any] = {}


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
            found.append(f"the effective sample size is {smallest:.0f}, at least {SMALLEST_ESS:.0f} is needed")
        if self.divergences:
            found.append(f"{self.divergences} transitions diverged, none is accepted")
        return tuple(found)

    @property
    def converged(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    def __str__(self) -> str:
        return (
            f"r-hat {self.r_hat:.3f}, effective draws {self.ess_bulk:.0f} (bulk) and {self.ess_tail:.0f} (tail), "
            f"{self.divergences} divergences"
        )


def sample_posterior(
    build: Callable[[], "pm.Model"],
    settings: SamplerSettings,
    seed: int,
    variables: list[str],
    *,
    key: str,
    data: Mapping[str, Any],
) -> tuple[xr.Dataset, xr.Dataset, str]:
    """Posterior draws of a model by NUTS.

    nutpie samples where it is installed, PyMC's own NUTS otherwise. Neither is trusted to warn: see
    `check_convergence`. With nutpie a model is compiled once for all samples that differ in their data only.

    Parameters
    ----------
    build : callable
        Makes the PyMC model.
    settings, seed
        How many draws, and from what seed.
    variables : list of str
        What to keep.
    key : str
        Says all that the compiled model depends on.
    data : mapping of str to array
        Values of the model's `pm.Data`, which it does not depend on.

    Returns
    -------
    Dataset, Dataset, str
        Parameters, the sampler's statistics, and its name.
    """
    from importlib.util import find_spec

    sampler = "nutpie" if find_spec("nutpie") else "pymc"
    with warnings.catch_warnings():
        # The convergence check below is ours and covers both samplers alike.
        warnings.filterwarnings("ignore", module=r"(pymc|pytensor|nutpie|arviz.*|numba)(\..*)?$")
        if sampler == "nutpie":
            trace = _run_nutpie(_compile(build, variables, key).with_data(**data), settings, seed)
        else:
            trace = _run_pymc(build(), settings, seed)
    posterior = trace["posterior"].to_dataset()[variables]
    stats = trace["sample_stats"].to_dataset()
    kept = [name for name in ("diverging", "n_steps", "energy", "step_size") if name in stats]
    return _bare(posterior), _bare(stats[kept]), sampler


def _compile(build: Callable[[], "pm.Model"], variables: list[str], key: str) -> Any:
    """The compiled model, from the last few where it is among them."""
    import nutpie

    key = f"{key} {variables}"
    if key not in _compiled:
        while len(_compiled) >= _MOST_COMPILED:
            del _compiled[next(iter(_compiled))]
        _compiled[key] = nutpie.compile_pymc_model(build(), freeze_model=False, var_names=variables)
    return _compiled[key]


def _run_nutpie(compiled: Any, settings: SamplerSettings, seed: int) -> xr.DataTree:
    import nutpie

    trace: xr.DataTree = nutpie.sample(
        compiled,
        draws=settings.draws,
        tune=settings.tune,
        chains=settings.chains,
        cores=_cores(settings),
        seed=seed,
        target_accept=_TARGET_ACCEPT,
        progress_bar=settings.progressbar,
    )
    return trace


def _run_pymc(model: "pm.Model", settings: SamplerSettings, seed: int) -> xr.DataTree:
    import pymc as pm

    with model:
        trace: xr.DataTree = pm.sample(
            draws=settings.draws,
            tune=settings.tune,
            chains=settings.chains,
            cores=_cores(settings),
            random_seed=seed,
            nuts_sampler="pymc",
            nuts={"target_accept": _TARGET_ACCEPT},
            progressbar=settings.progressbar,
            quiet=not settings.progressbar,
            compute_convergence_checks=False,
        )
    return trace


def _cores(settings: SamplerSettings) -> int:
    return min(settings.chains, os.cpu_count() or 1)


def check_convergence(posterior: xr.Dataset, sample_stats: xr.Dataset | None, *, warn: bool = False) -> Diagnostics:
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
    diverging = 0 if sample_stats is None or "diverging" not in sample_stats else int(sample_stats["diverging"].sum())
    diagnostics = Diagnostics(_extreme(r_hat, np.max), _extreme(bulk, np.min), _extreme(tail, np.min), diverging)
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
    """The worst value over all parameters; NaN, which no check passes, where one could not be computed."""
    flat = np.concatenate([np.ravel(values[name].values) for name in values.data_vars])
    return float(pick(flat)) if len(flat) else float("nan")


def _bare(dataset: xr.Dataset) -> xr.Dataset:
    return xr.Dataset(dataset.variables).drop_attrs() if dataset.attrs else dataset
