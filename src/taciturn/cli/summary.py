"""``taciturn summary``: what a saved fit says."""

import sys
from pathlib import Path
from typing import Literal

import click

from taciturn.cli.files import FileCommand, Input
from taciturn.cli.options import EXIT_NOT_CONVERGED, Number
from taciturn.files import check_readable

__all__ = ["summary"]


@click.command(cls=FileCommand)
@click.argument("fit", type=Input(), metavar="FIT.nc")
@click.option(
    "--threshold", type=Number(0, 1), help="Also give the probability that R2 exceeds this."
)
@click.option(
    "--probability",
    type=Number(0.01, 0.9999),
    default=0.95,
    show_default=True,
    help="Of the credible intervals.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "csv"]),
    default="text",
    show_default=True,
    help="Text, all of it as JSON, or the table of measures as CSV.",
)
def summary(
    fit: Path, threshold: float | None, probability: float, form: Literal["text", "json", "csv"]
) -> None:
    """Summarise a saved fit.

    FIT.nc is a file that assess --save or compare --save wrote. What is printed is what
    assess prints.

    Exit status: 0 done, 1 error, 2 wrong usage, 3 the sampler did not converge.
    """
    check_readable(fit)
    import taciturn as tc

    found = tc.summary(tc.read_fit(fit), threshold=threshold, probability=probability)
    if form == "json":
        click.echo(found.to_json())
    elif form == "csv":
        click.echo(found.table.to_csv(index_label="measure"), nl=False)
    else:
        click.echo(found)
    if not found.converged:
        click.echo("taciturn: the sampler did not converge", err=True)
        sys.exit(EXIT_NOT_CONVERGED)
