"""``taciturn summary``: what a saved fit says."""

from pathlib import Path

import click

from taciturn.cli.files import FileCommand, Input
from taciturn.cli.fitting import Format, format_option, print_summary
from taciturn.cli.options import Number
from taciturn.cli.working import working
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
@format_option
def summary(fit: Path, threshold: float | None, probability: float, form: Format) -> None:
    """Summarise a saved fit.

    FIT.nc is a file that assess --save or compare --save wrote. What is printed is what
    assess prints.

    Exit status: 0 done, 1 error, 2 wrong usage, 3 the sampler did not converge.
    """
    check_readable(fit)
    import taciturn as tc

    with working("loading libraries, reading the fit"):
        found = tc.summary(tc.read_fit(fit), threshold=threshold, probability=probability)
    print_summary(found, form)
