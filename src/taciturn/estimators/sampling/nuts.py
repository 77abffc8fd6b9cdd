"""Sampling a PyMC model by NUTS."""

import os
import warnings
from collections.abc import Callable, Mapping
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

import xarray as xr

from taciturn.estimators.settings import SamplerSettings
from taciturn.progress import Bar, progress_bar, progress_steps

if TYPE_CHECKING:
    import pymc as pm

__all__ = ["sample_posterior"]

_TARGET_ACCEPT: Final = 0.9
"""Above the usual 0.8: margins of categories absent from the sample have long tails,
which require smaller steps."""
_MOST_COMPILED: Final = 8


_compiled: dict[str, Any] = {}
_ONE_AT_A_TIME = Lock()
"""Of what is compiled, and of filters of warnings, which all threads share."""


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

    By nutpie if it is installed, by PyMC's own NUTS otherwise. Neither is relied on for
    warnings: see `check_convergence`. With nutpie, a model is compiled once for all
    samples that differ only in their data.

    Parameters
    ----------
    build : callable
        Makes the PyMC model.
    settings, seed
        How many draws, and the seed.
    variables : list of str
        Parameters to keep.
    key : str
        Identifies everything that the compiled model depends on.
    data : mapping of str to array
        Values of the model's `pm.Data`, on which the compiled model does not depend.

    Returns
    -------
    Dataset, Dataset, str
        Parameters, the sampler's statistics, and its name.
    """
    from importlib.util import find_spec

    sampler = "nutpie" if find_spec("nutpie") else "pymc"
    with _ONE_AT_A_TIME, warnings.catch_warnings():
        # Convergence is checked by our own function, the same for both samplers.
        warnings.filterwarnings("ignore", module=r"(pymc|pytensor|nutpie|arviz.*|numba)(\..*)?$")
        nutpie = sampler == "nutpie"
        with progress_steps("compiling the model", shown=settings.progressbar):
            model = _compile(build, variables, key).with_data(**data) if nutpie else build()
        run = _run_nutpie if nutpie else _run_pymc
        draws = settings.chains * (settings.tune + settings.draws)
        with progress_bar("draws by NUTS", draws, shown=settings.progressbar) as bar:
            trace = run(model, settings, seed, bar)
    posterior = trace["posterior"].to_dataset()[variables]
    stats = trace["sample_stats"].to_dataset()
    kept = [name for name in ("diverging", "n_steps", "energy", "step_size") if name in stats]
    return _bare(posterior), _bare(stats[kept]), sampler


def _bare(dataset: xr.Dataset) -> xr.Dataset:
    """Drop the attributes in which samplers record their name and the time."""
    return xr.Dataset(dataset.variables).drop_attrs() if dataset.attrs else dataset


def _compile(build: Callable[[], "pm.Model"], variables: list[str], key: str) -> Any:
    """The compiled model, taken from the last few if it is among them."""
    import nutpie

    key = f"{key} {variables}"
    if key not in _compiled:
        while len(_compiled) >= _MOST_COMPILED:
            del _compiled[next(iter(_compiled))]
        _compiled[key] = nutpie.compile_pymc_model(build(), freeze_model=False, var_names=variables)
    return _compiled[key]


def _run_nutpie(compiled: Any, settings: SamplerSettings, seed: int, bar: Bar) -> xr.DataTree:
    import nutpie

    sampler = nutpie.sample(
        compiled,
        draws=settings.draws,
        tune=settings.tune,
        chains=settings.chains,
        cores=_cores(settings),
        seed=seed,
        target_accept=_TARGET_ACCEPT,
        progress_bar=False,
        progress_callback=lambda chains: bar.reach(sum(chain.finished_draws for chain in chains)),
        blocking=False,  # else it takes Ctrl-C for an order to return what there is
    )
    try:
        trace: xr.DataTree = sampler.wait()
    except BaseException:
        sampler.cancel()
        raise
    return trace


def _run_pymc(model: "pm.Model", settings: SamplerSettings, seed: int, bar: Bar) -> xr.DataTree:
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
            progressbar=False,
            callback=lambda **_: bar.advance(),
            quiet=True,
            compute_convergence_checks=False,
        )
    return trace


def _cores(settings: SamplerSettings) -> int:
    return min(settings.chains, os.cpu_count() or 1)
