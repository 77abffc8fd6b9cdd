"""``taciturn report``: the page of a release panel."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from taciturn.cli.conditions import (
    CHECKS,
    DISCLOSED,
    Condition,
    exit_if,
    fail_on_option,
    found_in_fit,
)
from taciturn.cli.files import (
    FileCommand,
    Input,
    Output,
    check_release_file,
    force_option,
)
from taciturn.cli.fitting import exit_unless, warn_of
from taciturn.cli.options import Number, csv_options
from taciturn.cli.printing import Format, format_option, print_as
from taciturn.cli.working import working
from taciturn.files import TableFile, check_readable

if TYPE_CHECKING:
    import pandas as pd

    from taciturn.reports.contents import Contents

__all__ = ["report"]


@click.command(cls=FileCommand)
@click.argument("fit", type=Input(), metavar="FIT.nc")
@click.option(
    "--output", type=Output(".html"), required=True, help="Write the page to this .html file."
)
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
    "--log",
    type=Input(),
    metavar="LOG.duckdb",
    help="Also list what was released before of the same records.",
)
@click.option(
    "--threshold", type=Number(0, 1), help="Also give the probability that R2 exceeds this."
)
@click.option("--public", is_flag=True, help="Leave out counts and labels of single cells.")
@click.option("--title", help="Heading; by default the variables of the table.")
@fail_on_option("risk", CHECKS, DISCLOSED)
@format_option
@csv_options
@force_option
def report(
    fit: Path,
    output: Path,
    files: tuple[Path, ...],
    total: str,
    log: Path | None,
    threshold: float | None,
    public: bool,
    title: str | None,
    fail_on: tuple[Condition, ...],
    form: Format,
    sep: str | None,
    encoding: str | None,
    force: bool,
) -> None:
    """Write the page that a release panel reads.

    FIT.nc is a file that assess --save wrote. The page is one HTML file that needs no
    network: a verdict in a sentence, what it rests on, where the risk is, and what
    releases would change. Without --public it quotes the sample and is not for release.

    Exit status: 0 done, 1 error, 2 wrong usage, 3 the sampler did not converge,
    4 a condition of --fail-on holds.
    """
    check_readable(fit)
    if log is not None:
        check_readable(log)
    names = _names(files)
    if title is not None and not title.strip():
        raise click.UsageError("--title is empty")

    import taciturn as tc
    from taciturn.fits.parts import fit_parts
    from taciturn.reports.contents import gathered
    from taciturn.reports.page import write_page

    with working("loading libraries, reading the fit"):
        read = tc.read_fit(fit)
        sample = fit_parts(read).sample
        written: dict[str, Any] = {"total": total, "sep": sep, "encoding": encoding}
        releases = {
            name: tc.publication.read_release(path, sample, **written)
            for name, path in zip(names, files, strict=True)
        }
        earlier = None if log is None else tc.ReleaseLog(log)
    contents = gathered(
        read, releases, log=earlier, threshold=threshold, progressbar=sys.stderr.isatty()
    )
    write_page(contents, output, threshold=threshold, public=public, title=title, overwrite=force)
    rows = _rows(contents)
    print_as(
        form,
        text=f"{output} written{'' if public else ': it is not for release'}",
        facts={"output": output, "public": public, **_facts(contents, rows)},
        table=rows,
    )
    warn_of(contents.found)
    exit_unless(contents.found.converged)
    exit_if(_held(contents, fail_on))


def _names(files: tuple[TableFile, ...]) -> list[str]:
    """Releases are called after their files."""
    names = [Path(str(path)).stem for path in files]
    for name, path in zip(names, files, strict=True):
        if names.count(name) > 1:
            raise click.UsageError(f"two releases would be called {name!r}, after their files")
        check_release_file(path)
    return names


def _rows(contents: "Contents") -> "pd.DataFrame":
    """The table as it is, and each release: R2, or what can be worked out."""
    import pandas as pd

    r2 = contents.row
    rows = [{"release": "as it is", **{name: r2[name] for name in ("mean", "2.5%", "97.5%")}}]
    if contents.map is not None:
        for name in contents.map["protection"].values.tolist()[1:]:
            values = contents.map["R2"].sel(protection=name).values.tolist()
            rows.append(
                {"release": name, **dict(zip(("mean", "2.5%", "97.5%"), values, strict=True))}
            )
    rows += [
        {"release": own.name, "hidden": own.hidden, "disclosed": own.disclosed}
        for own in contents.findings
    ]
    columns = ["release", "mean", "2.5%", "97.5%", "hidden", "disclosed"]
    return pd.DataFrame(rows, columns=columns).astype({"hidden": "Int64", "disclosed": "Int64"})


def _facts(contents: "Contents", rows: "pd.DataFrame") -> dict[str, Any]:
    return {
        "problems": contents.found.problems,
        "measures": contents.found.table.to_dict("index"),
        "releases": rows.to_dict("records"),
    }


def _held(contents: "Contents", conditions: tuple[Condition, ...]) -> list[str]:
    """In words, the conditions that hold."""
    of_fit = tuple(each for each in conditions if each.text != DISCLOSED)
    held = found_in_fit(of_fit, contents.fit, contents.found)
    if len(of_fit) < len(conditions):
        held += [
            f"{own.disclosed} of {own.hidden} unpublished cells of {own.name!r} can be worked out"
            for own in contents.findings
            if own.disclosed
        ]
    return held
