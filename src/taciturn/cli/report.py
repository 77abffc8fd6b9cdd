"""``taciturn report``: the page of a release panel."""

import sys
from pathlib import Path
from typing import Any

import click

from taciturn.cli.files import (
    FileCommand,
    Input,
    Output,
    check_release_file,
    force_option,
)
from taciturn.cli.fitting import exit_unless
from taciturn.cli.options import Number, csv_options
from taciturn.files import check_page_ending, check_readable

__all__ = ["report"]


@click.command(cls=FileCommand)
@click.argument("fit", type=Input(), metavar="FIT.nc")
@click.option("--output", type=Output(), required=True, help="Write the page to this .html file.")
@click.option(
    "--release",
    "files",
    type=Input(),
    multiple=True,
    help=(
        "File of what may be released instead of the sample, as perturb and suppress write it;"
        " repeatable."
    ),
)
@click.option(
    "--total", default="Total", show_default=True, help="Label of totals in the files of --release."
)
@click.option(
    "--threshold", type=Number(0, 1), help="Also give the probability that R2 exceeds this."
)
@click.option("--public", is_flag=True, help="Leave out counts and labels of single cells.")
@click.option("--title", help="Heading; by default the variables of the table.")
@csv_options
@force_option
def report(
    fit: Path,
    output: Path,
    files: tuple[Path, ...],
    total: str,
    threshold: float | None,
    public: bool,
    title: str | None,
    sep: str | None,
    encoding: str | None,
    force: bool,
) -> None:
    """Write the page that a release panel reads.

    FIT.nc is a file that assess --save wrote. The page is one HTML file that needs no
    network: a verdict in a sentence, what it rests on, where the risk is, and what
    releases would change. Without --public it quotes the sample and is not for release.

    Exit status: 0 done, 1 error, 2 wrong usage, 3 the sampler did not converge.
    """
    check_readable(fit)
    check_page_ending(output)
    names = [path.stem for path in files]
    for name in names:
        if names.count(name) > 1:
            raise click.UsageError(f"two releases would be called {name!r}, after their files")
    for path in files:
        check_release_file(path)

    import taciturn as tc
    from taciturn.fits.parts import fit_parts

    read = tc.read_fit(fit)
    sample = fit_parts(read).sample
    written: dict[str, Any] = {"total": total, "sep": sep, "encoding": encoding}
    releases: Any = {
        name: tc.publication.read_release(path, sample, **written)
        for name, path in zip(names, files, strict=True)
    }
    tc.report(
        read,
        output,
        releases=releases,
        threshold=threshold,
        public=public,
        title=title,
        overwrite=force,
        progressbar=sys.stderr.isatty(),
    )
    click.echo(f"{output} written{'' if public else ': it is not for release'}")
    exit_unless(tc.summary(read).converged)
