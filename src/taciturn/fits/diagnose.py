"""Diagnostics of a fit, as it was made."""

import xarray as xr

from taciturn.diagnostics import (
    AnyDiagnostics,
    ImportanceDiagnostics,
    check_convergence,
    mixture_diagnostics,
)
from taciturn.errors import TableError
from taciturn.fits.mixtures import members_of, turns_of_members
from taciturn.fits.recorded import recorded_estimator

__all__ = ["diagnose"]


def diagnose(fit: xr.DataTree, risk: xr.Dataset | None = None) -> AnyDiagnostics | None:
    """Diagnostics of the way a fit was made: of a Markov chain, with R2 of `risk` among
    its parameters, of importance sampling, or of each member of a mixture.

    None where no parameters were sampled.
    """
    if members := members_of(fit):
        found = {name: diagnose(member.fit) for name, member in members.items()}
        shares = {name: member.share for name, member in members.items()}
        return mixture_diagnostics(found, shares, turns_of_members(fit))
    if "importance" in fit.attrs:
        return ImportanceDiagnostics.from_json(fit.attrs["importance"])
    if "posterior" not in fit.children:
        return None
    parameters = fit["posterior"].to_dataset()
    for name, values in parameters.data_vars.items():
        if values.dtype.kind not in "biuf" or not {"chain", "draw"} <= set(values.dims):
            raise TableError(
                f"{name!r} of the group 'posterior' must be numbers over 'chain' and 'draw', got"
                f" {values.dtype} over {values.dims}"
            )
    estimator = recorded_estimator(fit)
    if estimator is not None:
        parameters = estimator.monitored(parameters)
    parameters = parameters.compute()
    # A sample of everybody leaves nothing uncertain about R2.
    if risk is not None and float(risk["R2"].std()) > 0:
        parameters = parameters.assign(R2=risk["R2"])
    stats = fit["sample_stats"].to_dataset() if "sample_stats" in fit.children else None
    return check_convergence(parameters, stats)
