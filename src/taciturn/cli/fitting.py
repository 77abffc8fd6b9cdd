"""A fit and its summary on the command line."""

import sys
from typing import TYPE_CHECKING, Any

import click

from taciturn.cli.conditions import Condition, exit_if, found_in_fit
from taciturn.cli.options import EXIT_NOT_CONVERGED
from taciturn.cli.printing import Format, print_as
from taciturn.cli.text import printable

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    import taciturn as tc

__all__ = ["exit_unless", "fitted", "print_summary", "warn_of"]


def fitted(
    estimator: "tc.estimators.Estimator", table: "xr.DataArray", **settings: Any
) -> "xr.DataTree":
    """The fit, without a warning of what the summary and the exit status say."""
    import warnings

    import taciturn as tc

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tc.ConvergenceWarning)
        return estimator.fit(table, progressbar=sys.stderr.isatty(), **settings)


def print_summary(
    found: "tc.fits.Summary", form: Format, fit: "xr.DataTree", conditions: tuple[Condition, ...]
) -> None:
    """Print a summary of an assessed fit; end with a status of its own where the
    sampler did not converge, or else where a condition holds.
    """
    print_as(form, text=str(found), facts=found.to_dict(), table=_measures(found))
    if form != "text":
        warn_of(found)
    exit_unless(found.converged)
    exit_if(found_in_fit(conditions, fit, found))


def _measures(found: "tc.fits.Summary") -> "pd.DataFrame":
    """The measures of the whole table, and of each category if there are any."""
    import pandas as pd

    whole = found.table.rename_axis("measure").reset_index()
    if found.categories is None:
        return whole
    rows = found.categories.reset_index().astype({"category": object})  # else 1 becomes 1.0
    return pd.concat([whole, rows], ignore_index=True)[rows.columns.tolist()]


def warn_of(found: "tc.fits.Summary") -> None:
    """Say on the error stream that numbers are not to be relied on."""
    if found.problems:
        click.echo(f"taciturn: {printable(found.sentence)}", err=True)


def exit_unless(converged: bool) -> None:
    """End with a status of its own where the sampler did not converge."""
    if not converged:
        click.echo("taciturn: the sampler did not converge", err=True)
        sys.exit(EXIT_NOT_CONVERGED)
