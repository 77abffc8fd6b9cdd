"""Fitting again from what a fit records."""

import xarray as xr

from taciturn.errors import FileFormatError
from taciturn.estimators import estimator_from_spec
from taciturn.fits.mixtures import is_stack, members_of
from taciturn.fits.parts import fit_parts
from taciturn.fits.recorded import recorded_settings

__all__ = ["repeat_fit"]


def repeat_fit(fit: xr.DataTree, *, progressbar: bool = True) -> xr.DataTree:
    """Fit again from what a fit records: the same estimator, sample, settings and seed.

    Parameters
    ----------
    fit : DataTree
        A fit, as returned by an estimator or read from a file.
    progressbar : bool
        Show progress, on standard error or below the cell of a notebook.

    Returns
    -------
    DataTree
        A new fit. With the same versions on the same kind of machine its numbers are
        the same.

    Raises
    ------
    FileFormatError
        The fit does not say how it was made, or is a stack of others.
    """
    parts = fit_parts(fit)
    if is_stack(fit):
        raise FileFormatError(
            f"the fit is a stack of {', '.join(map(repr, members_of(fit)))} and no estimator made"
            " it: repeat these and stack them again"
        )
    try:
        estimator = estimator_from_spec(fit.attrs["estimator"])
    except KeyError as error:
        raise FileFormatError(
            "the fit does not record its estimator and settings, so it cannot be repeated"
        ) from error
    settings = recorded_settings(fit)
    return estimator.fit(
        parts.sample,
        **parts.given,
        draws=settings.draws,
        tune=settings.tune,
        chains=settings.chains,
        random_seed=settings.seed,
        progressbar=progressbar,
        method=settings.method,
    )
