"""A fit on the command line."""

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import xarray as xr

    import taciturn as tc

__all__ = ["fitted"]


def fitted(
    estimator: "tc.estimators.Estimator", table: "xr.DataArray", **settings: Any
) -> "xr.DataTree":
    """The fit, without a warning of what the summary and the exit status say."""
    import warnings

    import taciturn as tc

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tc.ConvergenceWarning)
        return estimator.fit(table, progressbar=sys.stderr.isatty(), **settings)
