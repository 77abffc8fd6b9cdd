"""``taciturn cell-key``: records to a table with the same noise in every table."""

from typing import TYPE_CHECKING, Any, Final

import click

from taciturn.cli.categories import categories_option, declared_categories
from taciturn.cli.files import (
    FileCommand,
    Input,
    StandardOutput,
    Target,
    check_tables,
    csv_output_option,
    force_option,
    write_csv,
)
from taciturn.cli.options import Names, Number, Numbers, Whole, csv_options
from taciturn.cli.printing import Format, format_option, print_as
from taciturn.files import TableFile

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["cell_key"]

_OF_COUNTS: Final = {"js"}
_OF_TOTALS: Final = {
    *("share", "large_share", "turn", "rank_weights", "separation"),
    *("contributor", "decimals", "grid"),
}


@click.command(cls=FileCommand)
@click.argument("records", type=Input(stream=True))
@click.option("--variables", type=Names(), required=True, help="Columns that classify the records.")
@categories_option
@click.option("--keys", required=True, help="Column of record keys, random numbers from 0 to 1.")
@click.option("--value", help="Column of a quantity: perturb its totals, not the counts.")
@click.option(
    "--max-noise", type=Whole(1, 100), default=3, show_default=True, help="Largest noise."
)
@click.option(
    "--variance",
    type=Number(0, min_open=True),
    default=1.0,
    show_default=True,
    help="Largest variance of the noise.",
)
@click.option(
    "--pstay", type=Number(0, 1, min_open=True), help="Probability of no noise; by default free."
)
@click.option(
    "--js", type=Whole(0, 100), help="Positive counts up to this one never come out; 0 by default."
)
@click.option(
    "--share",
    type=Number(0, 1, min_open=True),
    help="A unit of noise as a share of the largest contribution; needed with --value.",
)
@click.option(
    "--large-share", type=Number(0, 1, min_open=True), help="The share that large totals near."
)
@click.option(
    "--turn", type=Number(0, min_open=True), help="Total from which the share falls to it."
)
@click.option(
    "--rank-weights",
    type=Numbers(),
    help="Noise of the largest contributions, such as 1,0.5,0.2; 1 by default.",
)
@click.option(
    "--separation", type=Number(0), help="Total up to which the noise is of a fixed size."
)
@click.option("--grid", type=Whole(1, 100), help="Steps of the noise in a unit; 2 by default.")
@click.option("--contributor", help="Column that names who contributes; by default each record.")
@click.option("--decimals", type=Whole(0, 9), help="Decimal places of the quantity; 0 by default.")
@csv_options
@csv_output_option()
@format_option
@force_option
def cell_key(
    records: TableFile,
    variables: tuple[str, ...],
    categories: tuple[TableFile, ...],
    keys: str,
    value: str | None,
    max_noise: int,
    variance: float,
    pstay: float | None,
    sep: str | None,
    encoding: str | None,
    output: Target | None,
    form: Format,
    force: bool,
    **given: Any,
) -> None:
    """Count records, or total a quantity, with noise from their keys.

    RECORDS is a CSV or Parquet file, or CSV from standard input, '-', with a key for
    each record, which is a secret. The same records get the same noise in every table.
    The table has a row for each combination of categories; without --output it is
    printed, as CSV or JSON. A category that only records name is one that somebody
    has: declare all there may be, so that a count of 0 does not say so.

    Exit status: 0 done, 1 error, 2 wrong usage.
    """
    chosen = {name: each for name, each in given.items() if each is not None}
    _check_options(chosen, value)
    check_tables(records, *categories)
    import taciturn as tc

    noise: dict[str, Any] = {"max_noise": max_noise, "variance": variance, "pstay": pstay}
    written = {"sep": sep, "encoding": encoding}
    declared = declared_categories(categories, variables, written)
    asked: dict[str, Any] = {"keys": keys, "categories": declared, **written}
    if value is None:
        table = tc.perturbation.perturbation_table(**noise, js=chosen.get("js", 0))
        release = tc.perturbation.cell_key_records(records, variables, perturbation=table, **asked)
    else:
        release = _totals(records, variables, value, noise, chosen | asked)
    rows = release.isel(replicate=0, drop=True).to_dataframe().reset_index()
    if output is not None:
        write_csv(rows, output, overwrite=force)
    print_as(
        "csv" if output is None and form == "text" else form,
        text=f"{len(rows):,} cells written to {output}",
        facts={"output": output, "cells": rows.to_dict("records")},
        table=rows,
        to_stderr=isinstance(output, StandardOutput),
    )


def _totals(
    records: TableFile,
    variables: tuple[str, ...],
    value: str,
    noise: dict[str, Any],
    chosen: dict[str, Any],
) -> "xr.DataArray":
    """Perturbed totals of a quantity."""
    import taciturn as tc

    table = tc.perturbation.magnitude_perturbation_table(**noise, grid=chosen.pop("grid", 2))
    share = chosen.pop("share")
    if "turn" in chosen:
        large, turn = chosen.pop("large_share"), chosen.pop("turn")
        share = tc.perturbation.FlexShare(small=share, large=large, turn=turn)
    return tc.perturbation.cell_key_magnitudes(
        records, variables, value, perturbation=table, share=share, **chosen
    )


def _check_options(chosen: dict[str, Any], value: str | None) -> None:
    """Raise unless these options go together."""
    for name in chosen:
        if name in (_OF_TOTALS if value is None else _OF_COUNTS):
            other = "without --value" if value is None else "with --value"
            raise click.UsageError(f"--{name.replace('_', '-')} does not apply {other}")
    if value is not None and "share" not in chosen:
        raise click.UsageError("--value needs --share")
    if ("turn" in chosen) != ("large_share" in chosen):
        raise click.UsageError("--large-share and --turn need each other")
