"""Diagnostics of a fit, as it was made."""

import warnings
from math import isfinite, sqrt
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from taciturn.diagnostics import (
    Diagnostics,
    ImportanceDiagnostics,
    PooledDiagnostics,
    check_convergence,
    mixture_diagnostics,
)
from taciturn.estimators import LinearPool
from taciturn.estimators.mixture import pooled_diagnostics
from taciturn.fits.mixtures import stack_weights
from taciturn.fits.parts import recorded_estimator

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["AnyDiagnostics", "diagnose", "draws_table"]

AnyDiagnostics = Diagnostics | ImportanceDiagnostics | PooledDiagnostics


def draws_table(risk: xr.Dataset, probability: float, independent: float | None) -> "pd.DataFrame":
    """Rows of the summary; `independent` is the effective number of draws where ArviZ
    cannot see it from them.
    """
    import arviz as az
    import pandas as pd

    tail = (1 - probability) / 2
    names = [f"{100 * q:g}%" for q in (tail, 0.5, 1 - tail)]
    rows = {}
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", category=RuntimeWarning
        )  # a constant has no Monte Carlo error
        mcse = az.mcse(risk.astype(float), method="mean")
    for measure in risk.data_vars:
        values = risk[measure]
        quantiles = np.quantile(values, [tail, 0.5, 1 - tail])
        spread = float(values.std(ddof=1)) if values.size > 1 else 0.0
        error = float(mcse[measure]) if independent is None else spread / sqrt(independent)
        if not isfinite(error):  # too few draws for ArviZ to see how they depend on each other
            error = spread / sqrt(values.size)
        error = error if spread > 0 else 0.0
        rows[str(measure)] = [float(values.mean()), spread, *map(float, quantiles), error]
    return pd.DataFrame.from_dict(rows, orient="index", columns=["mean", "sd", *names, "mcse"])


def diagnose(fit: xr.DataTree, risk: xr.Dataset | None = None) -> AnyDiagnostics | None:
    """Diagnostics as the fit was made; None without parameters that were drawn."""
    if weights := stack_weights(fit):
        members = {name: diagnose(fit["members"].children[name]) for name in weights}
        return mixture_diagnostics(members, weights, fit["posterior"].to_dataset()["member"].size)
    estimator = recorded_estimator(fit)
    if isinstance(estimator, LinearPool):
        return pooled_diagnostics(estimator.members, estimator.share_of, fit)
    if "importance" in fit.attrs:
        return ImportanceDiagnostics.from_json(fit.attrs["importance"])
    if "posterior" not in fit.children:
        return None
    stats = fit["sample_stats"].to_dataset() if "sample_stats" in fit.children else None
    checked = fit["posterior"].to_dataset()
    if estimator is not None:
        checked = estimator.monitored(checked)
    checked = checked.compute()
    if (
        risk is not None and float(risk["R2"].std()) > 0
    ):  # a sample of everybody leaves nothing to sample
        checked = checked.assign(R2=risk["R2"])
    return check_convergence(checked, stats)
