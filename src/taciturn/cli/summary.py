"""``taciturn summary``: what a saved fit says."""

from pathlib import Path

import click

from taciturn.cli.conditions import CHECKS, Condition, fail_on_option
from taciturn.cli.files import FileCommand, Input
from taciturn.cli.fitting import print_summary
from taciturn.cli.options import Number
from taciturn.cli.printing import Format, format_option
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
@fail_on_option("risk", CHECKS)
@format_option
def summary(
    fit: Path,
    threshold: float | None,
    probability: float,
    fail_on: tuple[Condition, ...],
    form: Format,
) -> None:
    """Summarise a saved fit.

    FIT.nc is a file that assess --save or compare --save wrote. What is printed is what
    assess prints.

    Exit status: 0 done, 1 error, 2 wrong usage, 3 the sampler did not converge,
    4 a condition of --fail-on holds.
    """
    check_readable(fit)
    import taciturn as tc

    with working("loading libraries, reading the fit"):
        read = tc.read_fit(fit)
        assessed = read if "risk" in read.children else tc.assess(read)
        found = tc.summary(assessed, threshold=threshold, probability=probability)
    print_summary(found, form, assessed, fail_on)
