"""``taciturn perturb``: protect a table of counts."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from taciturn.cli.files import (
    FileCommand,
    Input,
    Output,
    check_csv,
    check_tables,
    force_option,
    write_csv,
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
@click.option("--seed", type=SEED, help="The same seed gives the same release.")
@click.option(
    "--output",
    type=Output(),
    help="Write the release to this CSV file, in long form.",
)
@force_option
@click.option(
    "--report", is_flag=True, help="Print how much risk the release leaves and what it costs."
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

    TABLE is a CSV or Parquet file in long form, as for assess. Several replicates show
    what the method may release; the file then has a column `replicate`. Swapping
    records takes microdata: see swap_records in Python.
    """
    import taciturn as tc

    if output is None and not report:
        raise click.UsageError(
            "give --output, --report or both: otherwise nothing would be done with the release"
        )
    chosen: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    for name in chosen:
        if name not in _METHODS[method]:
            raise click.UsageError(
                f"--{name.replace('_', '-')} does not apply to --method {method}"
            )
    if (needed := _NEEDED.get(method)) and needed not in chosen:
        raise click.UsageError(f"--method {method} needs --{needed}")
    if method in _CERTAIN and (replicates > 1 or seed is not None):
        raise click.UsageError(
            f"--method {method} has no randomness: --replicates and --seed do not apply"
        )
    check_tables(table)
    check_csv(output)
    original = tc.read_table(table, count=count)
    if method not in _CERTAIN:
        chosen |= {"replicates": replicates, "random_seed": seed}
    if method == "cell-key":
        noise, variance = chosen.pop("max_noise", 3), chosen.pop("variance", 1.0)
        chosen["perturbation"] = tc.perturbation.perturbation_table(noise, variance)
    release = getattr(tc.perturbation, method.replace("-", "_"))(original, **chosen)
    text = None
    if report:
        found = tc.risk_utility({"as it is": original, method: release}, table=original)
        text = _report_text(found, method, release.sizes["replicate"])
    if output is not None:
        single = release.sizes["replicate"] == 1
        rows = (release.isel(replicate=0, drop=True) if single else release).rename(count)
        write_csv(rows.to_dataframe()[[count]], output, overwrite=force)
    if text is not None:
        click.echo(text)


def _report_text(found: "xr.Dataset", method: str, replicates: int) -> str:
    """A line for each measure, before and after."""
    percent = f"{100 * found.attrs['probability']:g} %"
    lines = [f"{replicates} release{'s' if replicates > 1 else ''} by {method}", ""]
    lines.append(f"{'':<20}{'as it is':>12}{'released':>12}{f'{percent} of releases':>28}")
    for name, values in found.data_vars.items():
        before = float(values.sel(protection="as it is", statistic="mean"))
        after, low, high = (float(v) for v in values.sel(protection=method))
        shown = f"{low:.4f} to {high:.4f}"
        title = str(name).replace("_", " ")
        lines.append(f"{title:<20}{before:>12.4f}{after:>12.4f}{shown:>28}")
    return "\n".join(lines)
