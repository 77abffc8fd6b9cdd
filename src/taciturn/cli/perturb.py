"""``taciturn perturb``: protect a table of counts."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from taciturn.cli.files import (
    FileCommand,
    Input,
    Output,
    check_release,
    check_tables,
    force_option,
)
from taciturn.cli.options import MOST_COUNT, SEED, Number, Whole

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["perturb"]

_METHODS: Final = {
    "random-round": {"rounding_base"},
    "conventional-round": {"rounding_base"},
    "controlled-round": {"rounding_base"},
    "adjust-small-cells": {"minimum"},
    "suppress-small-cells": {"minimum"},
    "cell-key": {"max_noise", "variance"},
    "add-noise": {"epsilon"},
}
"""Methods that need no microdata, named after their functions, and their options."""
_CERTAIN: Final = {"conventional-round", "suppress-small-cells"}
_NEEDED: Final = {"add-noise": "epsilon", "suppress-small-cells": "minimum"}


@click.command(cls=FileCommand)
@click.argument("table", type=Input())
@click.option("--count", default="count", show_default=True, help="Column of counts in TABLE.")
@click.option(
    "--method", type=click.Choice(list(_METHODS)), required=True, help="Protection method."
)
@click.option(
    "--rounding-base",
    type=Whole(2, MOST_COUNT),
    help="Base of rounding; by default 3, in conventional rounding 5.",
)
@click.option(
    "--minimum",
    type=Whole(2, MOST_COUNT),
    help="Smallest count that is kept; 3 by default where cells are adjusted.",
)
@click.option(
    "--max-noise",
    type=Whole(1, 100),
    help="Largest change by the cell key; 3 by default.",
)
@click.option(
    "--variance",
    type=Number(0, min_open=True),
    help="Variance of the cell key's noise; 1 by default.",
)
@click.option(
    "--epsilon",
    type=Number(0, min_open=True),
    help="Privacy loss of added noise: the smaller, the more noise.",
)
@click.option(
    "--replicates",
    type=Whole(1),
    default=1,
    show_default=True,
    help="Independent releases.",
)
@click.option(
    "--seed",
    type=SEED,
    help="For a run that can be repeated; what it writes must not be released.",
)
@click.option(
    "--output",
    type=Output(),
    help="Write the release to this .csv, .parquet, .json or .xlsx file.",
)
@force_option
@click.option(
    "--report",
    is_flag=True,
    help="Print how much risk the method leaves and what it costs; not for publication.",
)
def perturb(
    table: Path,
    count: str,
    method: str,
    replicates: int,
    seed: int | None,
    output: Path | None,
    force: bool,
    report: bool,
    **given: Any,
) -> None:
    """Protect a table: round, adjust or suppress cells, or add noise.

    TABLE is a CSV or Parquet file in long form, as for assess. The output has a row for
    each cell and its status, published or suppressed. Swapping records takes microdata:
    see swap_records in Python.

    Several replicates show what the method may release; the file then has a column
    `replicate`. Whoever has many of them, or tries seeds, comes close to the true
    table: with --replicates or --seed the column of counts ends in _not_for_release.
    """
    import taciturn as tc

    if output is None and not report:
        raise click.UsageError(
            "give --output, --report or both: otherwise nothing would be done with the release"
        )
    chosen: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    _check_options(method, chosen, drawn=replicates > 1 or seed is not None)
    check_tables(table)
    check_release(output)
    original = tc.read_table(table, count=count)
    if method == "cell-key":
        noise, variance = chosen.pop("max_noise", 3), chosen.pop("variance", 1.0)
        chosen["perturbation"] = tc.perturbation.perturbation_table(noise, variance)
    protect = partial(getattr(tc.perturbation, method.replace("-", "_")), original, **chosen)
    if method not in _CERTAIN:
        protect = partial(protect, replicates=replicates)
    if seed is not None:
        protect = partial(protect, random_seed=seed)
    release = protect()
    text = None
    if report:
        # Other draws than those of the file: the numbers must not tell what happened to
        # it.
        apart = output is not None and method not in _CERTAIN
        measured = protect() if apart else release
        found = tc.risk_utility({"as it is": original, method: measured}, table=original)
        text = _report_text(found, method, measured.sizes["replicate"], apart=apart)
    if output is not None:
        _write(release, count, output, seeded=seed is not None, overwrite=force)
    if text is not None:
        click.echo(text)


def _check_options(method: str, chosen: dict[str, Any], *, drawn: bool) -> None:
    """Raise unless these options go with the method."""
    for name in chosen:
        if name not in _METHODS[method]:
            raise click.UsageError(
                f"--{name.replace('_', '-')} does not apply to --method {method}"
            )
    if (needed := _NEEDED.get(method)) and needed not in chosen:
        raise click.UsageError(f"--method {method} needs --{needed}")
    if method in _CERTAIN and drawn:
        raise click.UsageError(
            f"--method {method} has no randomness: --replicates and --seed do not apply"
        )


def _write(
    release: "xr.DataArray", count: str, output: Path, *, seeded: bool, overwrite: bool
) -> None:
    """Write the release, and say in the file and on the terminal if it must not be
    one.
    """
    import taciturn as tc

    several = release.sizes["replicate"] > 1
    why = [
        *(["it was drawn with --seed, and whoever tries seeds can undo it"] if seeded else []),
        *(["its replicates together come close to the true table"] if several else []),
    ]
    tc.write_release(release, output, value=count, internal=bool(why), overwrite=overwrite)
    if why:
        click.echo(f"taciturn: {output} must not be released: {'; '.join(why)}", err=True)


def _report_text(found: "xr.Dataset", method: str, replicates: int, *, apart: bool) -> str:
    """A line for each measure, before and after."""
    percent = f"{100 * found.attrs['probability']:g} %"
    title = f"{replicates} release{'s' if replicates > 1 else ''} by {method}"
    lines = [title + (", not those of the file" if apart else ""), ""]
    lines.append(f"{'':<20}{'as it is':>12}{'released':>12}{f'{percent} of releases':>28}")
    for name, values in found.data_vars.items():
        before = float(values.sel(protection="as it is", statistic="mean"))
        after, low, high = (float(v) for v in values.sel(protection=method))
        shown = f"{low:.4f} to {high:.4f}"
        title = str(name).replace("_", " ")
        lines.append(f"{title:<20}{before:>12.4f}{after:>12.4f}{shown:>28}")
    return "\n".join(lines)
