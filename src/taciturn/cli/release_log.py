"""``taciturn release-log``: a new log of what is released of some records."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from taciturn.cli.files import (
    FileCommand,
    Input,
    Output,
    check_tables,
    force_option,
    hierarchy_option,
)
from taciturn.cli.options import Names, csv_options
from taciturn.cli.printing import Format, format_option, print_as
from taciturn.cli.text import printable
from taciturn.cli.working import working
from taciturn.files import TableFile

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["release_log"]


@click.command(cls=FileCommand, name="release-log")
@click.argument("records", type=Input(stream=True))
@click.option(
    "--variables", type=Names(), required=True, help="Columns by which tables will be made."
)
@click.option(
    "--missing",
    default="refuse",
    show_default=True,
    help="The category of records without a label, such as 'not stated', or refuse them.",
)
@hierarchy_option
@click.option(
    "--public-total",
    is_flag=True,
    help="The number of records is public: a table of everybody must add up to it.",
)
@csv_options
@click.option("--output", type=Output(".duckdb"), required=True, help="The file of the new log.")
@format_option
@force_option
def release_log(
    records: TableFile,
    variables: tuple[str, ...],
    missing: str,
    hierarchy: tuple[TableFile, ...],
    public_total: bool,
    sep: str | None,
    encoding: str | None,
    output: Path,
    form: Format,
    force: bool,
) -> None:
    """Make a log of what is released of some records, for check.

    RECORDS is a CSV or Parquet file, one row an individual, or CSV from standard input,
    '-'. Only the categories of their variables go into the log, and with --public-total
    their number.

    Exit status: 0 done, 1 error, 2 wrong usage.
    """
    check_tables(records, hierarchies=hierarchy)
    import pandas as pd

    import taciturn as tc
    from taciturn.tables.labels import labels_of

    written: dict[str, Any] = {"sep": sep, "encoding": encoding}
    with working("reading the records"):
        tables = _categories(records, variables, missing, written)
        tables = {name: _with_levels(x, hierarchy, written) for name, x in tables.items()}
    levels = {
        str(level): (name, labels_of(table[level]))
        for name, table in tables.items()
        for level in table.coords
        if level != name
    }
    log = tc.ReleaseLog(
        output,
        variables={name: labels_of(table[name]) for name, table in tables.items()},
        levels=levels,
        total=int(next(iter(tables.values())).sum()) if public_total else None,
        overwrite=force,
    )
    book = log.codebook
    labels = {name: list(book.labels_of(name)) for name in (*book.variables, *book.levels)}
    categories = [(name, label) for name, own in labels.items() for label in own]
    rows = pd.DataFrame(categories, columns=["variable", "category"])
    print_as(
        form,
        text="\n".join(map(printable, [*log.lines(), f"written to {output}"])),
        facts={
            "variables": labels,
            "total": book.total,
            "output": output,
        },
        table=rows,
    )


def _categories(
    records: TableFile, variables: tuple[str, ...], missing: str, written: dict[str, Any]
) -> dict[str, "xr.DataArray"]:
    """A table over each variable. A file is read once for each, standard input once."""
    import pandas as pd

    import taciturn as tc
    from taciturn.tables.sources import open_source

    if isinstance(records, Path):
        return {
            name: tc.tabulate(records, [name], missing=missing, **written) for name in variables
        }
    whole = pd.DataFrame(open_source(records, **written).columns())
    return {name: tc.tabulate(whole, [name], missing=missing) for name in variables}


def _with_levels(
    table: "xr.DataArray", hierarchy: tuple[TableFile, ...], written: dict[str, Any]
) -> "xr.DataArray":
    """The table with the levels of those files that are about its variable."""
    from taciturn.cli.files import with_hierarchies
    from taciturn.tables.sources import open_source

    own = [path for path in hierarchy if table.dims[0] in open_source(path, **written).names]
    return with_hierarchies(table, own, **written)
