"""``taciturn tabulate``: from records to a table of counts in long form."""

import click

from taciturn.cli.categories import categories_option, declared_categories
from taciturn.cli.databases import Records, check_database, is_file, opened, table_option
from taciturn.cli.files import (
    FileCommand,
    StandardOutput,
    Target,
    check_tables,
    csv_output_option,
    force_option,
    write_csv,
)
from taciturn.cli.options import Names, csv_options
from taciturn.cli.printing import Format, format_option, print_as
from taciturn.files import TableFile

__all__ = ["tabulate"]


@click.command(cls=FileCommand)
@click.argument("records", type=Records())
@table_option
@click.option("--variables", type=Names(), required=True, help="Columns that classify the records.")
@categories_option
@click.option(
    "--missing",
    default="refuse",
    show_default=True,
    help=(
        "What is done about a missing label: refuse it, drop the record, or give it this label,"
        " such as 'not stated'."
    ),
)
@click.option(
    "--sampling-weights",
    help="Column of sampling weights: write their sums, which are no sample to assess.",
)
@csv_options
@csv_output_option()
@format_option
@force_option
def tabulate(
    records: TableFile | str,
    database_table: str | None,
    variables: tuple[str, ...],
    categories: tuple[TableFile, ...],
    missing: str,
    sampling_weights: str | None,
    sep: str | None,
    encoding: str | None,
    output: Target | None,
    form: Format,
    force: bool,
) -> None:
    """Count records, one row an individual, by some of their columns.

    RECORDS is a CSV or Parquet file, or CSV from standard input, '-'. With --table it
    is a file of DuckDB, or the address of a database that Ibis knows, such as
    postgres://host/census: the database counts.

    The table is in long form, as assess and the other commands read it, with a row for
    each combination of categories, those that nobody has included. Without --output it
    is printed, as CSV or JSON.

    Exit status: 0 done, 1 error, 2 wrong usage.
    """
    import taciturn as tc

    check_database(records, database_table)
    check_tables(records if is_file(records, database_table) else None, *categories)
    written = {"sep": sep, "encoding": encoding}
    declared = declared_categories(categories, variables, written)
    with opened(records, database_table) as source:
        table = tc.tabulate(
            source,
            variables,
            categories=declared,
            missing=missing,
            sampling_weights=sampling_weights,
            sep=sep,
            encoding=encoding,
        )
    rows = table.to_dataframe().reset_index()
    if output is not None:
        write_csv(rows, output, overwrite=force)
    print_as(
        "csv" if output is None and form == "text" else form,
        text=f"{table.size:,} cells with a total of {table.values.sum():,} written to {output}",
        facts={
            "variables": {str(name): table.sizes[name] for name in table.dims},
            "dropped": table.attrs.get("dropped", 0),
            "output": output,
            "cells": rows.to_dict("records"),
        },
        table=rows,
        to_stderr=isinstance(output, StandardOutput),
    )
    if table.attrs.get("dropped"):
        click.echo(
            f"taciturn: {table.attrs['dropped']:,} records that lack a label are left out", err=True
        )
