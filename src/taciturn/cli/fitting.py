"""A fit and its summary on the command line."""

import sys
from typing import TYPE_CHECKING, Any, Final, Literal

import click

from taciturn.cli.files import print_csv
from taciturn.cli.options import EXIT_NOT_CONVERGED

if TYPE_CHECKING:
    import xarray as xr

    import taciturn as tc

__all__ = ["Format", "exit_unless", "fitted", "format_option", "print_summary"]

Format = Literal["text", "json", "csv"]

format_option: Final = click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "csv"]),
    default="text",
    show_default=True,
    help="Print text, all of it as JSON, or the table of measures as CSV.",
)


def fitted(
    estimator: "tc.estimators.Estimator", table: "xr.DataArray", **settings: Any
) -> "xr.DataTree":
    """The fit, without a warning of what the summary and the exit status say."""
    import warnings

    import taciturn as tc

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tc.ConvergenceWarning)
        return estimator.fit(table, progressbar=sys.stderr.isatty(), **settings)


def print_summary(found: "tc.fits.Summary", form: Format) -> None:
    """Print a summary; end with a status of its own where the sampler did not
    converge.
    """
    if form == "json":
        click.echo(found.to_json())
    elif form == "csv":
        print_csv(found.table.rename_axis("measure"))
    else:
        click.echo(found)
    exit_unless(found.converged)


def exit_unless(converged: bool) -> None:
    """End with a status of its own where the sampler did not converge."""
    if not converged:
        click.echo("taciturn: the sampler did not converge", err=True)
        sys.exit(EXIT_NOT_CONVERGED)
