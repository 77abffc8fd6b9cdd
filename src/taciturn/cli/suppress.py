"""``taciturn suppress``: a table of counts without its small cells, as a file."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from taciturn.cli.files import (
    FileCommand,
    Input,
    StandardOutput,
    Target,
    apriori_option,
    check_intervals,
    check_tables,
    force_option,
    hierarchy_option,
    intervals_option,
    read_counts,
    read_instructions,
    release_output_option,
    variables_option,
    with_hierarchies,
    write_release,
)
from taciturn.cli.options import (
    MOST_COUNT,
    Names,
    Number,
    Whole,
    count_option,
    csv_options,
    search_options,
    total_option,
)
from taciturn.cli.patterns import margins_table, pattern_facts, pattern_text, show_unproved
from taciturn.cli.printing import Format, format_option, print_as
from taciturn.cli.working import working
from taciturn.files import TableFile

if TYPE_CHECKING:
    import xarray as xr

    from taciturn.tables.margins import Margin

__all__ = ["suppress"]


@click.command(cls=FileCommand)
@click.argument("table", type=Input(stream=True))
@count_option("TABLE")
@variables_option
@click.option(
    "--threshold",
    type=Whole(2, MOST_COUNT),
    required=True,
    help="Smallest count that is published; 0 is published, too, where it gives nothing away.",
)
@click.option("--by", type=Names(), help="Variables to publish; counts are summed over the others.")
@click.option(
    "--linked",
    type=Names(),
    multiple=True,
    help=(
        "Variables of a projection that is released; by default the table and all its totals;"
        " repeatable."
    ),
)
@hierarchy_option
@apriori_option
@click.option(
    "--protection",
    type=Number(0, 1, min_open=True),
    default=1.0,
    show_default=True,
    help="Largest risk, in 1/bits, at a count below the threshold; 1: none can be worked out.",
)
@click.option(
    "--rule-known",
    is_flag=True,
    help="Protect against an attacker who knows the threshold, and which cells are below it.",
)
@total_option
@search_options
@release_output_option(required=True)
@intervals_option
@format_option
@csv_options
@force_option
def suppress(
    table: TableFile,
    count: str,
    variables: tuple[str, ...] | None,
    threshold: int,
    by: tuple[str, ...] | None,
    linked: tuple[tuple[str, ...], ...],
    hierarchy: tuple[TableFile, ...],
    apriori: Path | None,
    rule_known: bool,
    total: str,
    seed: int,
    output: Target,
    form: Format,
    force: bool,
    intervals: bool,
    sep: str | None,
    encoding: str | None,
    **given: Any,
) -> None:
    """Suppress small counts, so that none can be worked out.

    TABLE is a CSV or Parquet file in long form, as for assess, or CSV from standard
    input, '-'. Counts from 1 to below the threshold are suppressed in the table and in
    its totals, and further cells at the least cost found. The file holds the published
    cells and totals, and the status of each: published or suppressed. A suppressed cell
    has no value, and is never 0.

    What is printed tells how many cells are primary and is not for release.

    Exit status: 0 done, 1 error, 2 wrong usage.
    """
    check_tables(table, hierarchies=hierarchy, apriori=apriori)
    check_intervals(output, intervals)

    import taciturn as tc

    written = {"sep": sep, "encoding": encoding}
    true = _read(table, by, hierarchy, count=count, variables=variables, **written)
    margins, dims = _margins(true, linked), list(map(str, true.dims))
    # What cannot be written is refused before the search.
    tc.publication.release_rows(tc.LinkedTables(true, margins), value=count, total=total)
    pattern = tc.suppress(
        true,
        _small(true, margins, threshold),
        linked=margins,
        apriori=read_instructions(apriori, dims, total=total, **written),
        knowledge=(1, threshold - 1) if rule_known else None,
        random_seed=seed,
        progressbar=sys.stderr.isatty(),
        **given,
    )
    show_unproved(pattern)
    names = {"value": count, "total": total}
    write_release(pattern, output, intervals=intervals, overwrite=force, **names)
    print_as(
        form,
        text=pattern_text(pattern),
        facts=pattern_facts(pattern) | {"output": output},
        table=margins_table(pattern),
        to_stderr=isinstance(output, StandardOutput),
    )


def _read(
    table: TableFile,
    by: tuple[str, ...] | None,
    hierarchy: tuple[TableFile, ...],
    *,
    count: str,
    variables: tuple[str, ...] | None,
    **written: str | None,
) -> "xr.DataArray":
    """The table of the variables to publish, with the levels above them."""
    from taciturn.tables.margins import margin

    with working("loading libraries, reading the table"):
        true = read_counts(table, count=count, variables=variables, **written)
    return with_hierarchies(true if by is None else margin(true, by), hierarchy, **written)


def _margins(
    table: "xr.DataArray", linked: tuple[tuple[str, ...], ...]
) -> tuple[tuple[str, ...], ...]:
    """What is released: the projections that are named, or the table and all totals."""
    from taciturn.schema import table_dims
    from taciturn.tables.margins import every_margin, margin_names

    margins = linked or (table_dims(table), *reversed(every_margin(table)))
    return tuple(margin_names(names, table, name="--linked") for names in margins)


def _small(
    table: "xr.DataArray", margins: tuple[tuple[str, ...], ...], threshold: int
) -> Mapping["Margin", "xr.DataArray"]:
    """The counts of each margin that are not published."""
    from taciturn.tables.margins import margin_of

    totals = {names: margin_of(table, names)[0] for names in margins}
    return {names: (each > 0) & (each < threshold) for names, each in totals.items()}
