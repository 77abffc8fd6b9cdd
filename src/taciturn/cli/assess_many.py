"""``taciturn assess-many``: the risk of the tables of all areas."""

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from taciturn.cli.databases import Records, check_database, is_file, opened, table_option
from taciturn.cli.files import (
    FileCommand,
    Folder,
    Input,
    StandardOutput,
    Target,
    check_tables,
    csv_output_option,
    force_option,
    read_counts,
    variables_option,
    write_csv,
)
from taciturn.cli.fitting import exit_unless
from taciturn.cli.options import (
    MOST_COUNT,
    Names,
    Whole,
    count_option,
    csv_options,
    draws_option,
    seed_option,
    weights_option,
    workers_option,
)
from taciturn.cli.printing import Format, format_option, print_as
from taciturn.cli.signals import continued_from
from taciturn.cli.working import working
from taciturn.errors import TableError
from taciturn.estimators.registry import COMMANDS
from taciturn.files import TableFile
from taciturn.validate import first_of

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

__all__ = ["assess_many"]

_ENDS: Final = {"lower": 0.025, "median": 0.5, "upper": 0.975}
_SIZE: Final = "population_size"
_NUMBERS: Final = [f"{name}_{end}" for name in ("R1", "R2", "tau1") for end in ("mean", *_ENDS)]
"""Columns of the output."""
_ESS: Final = "R2_ess"
_SHOWN: Final = 10  # areas, in text


@click.command(cls=FileCommand)
@click.argument("tables", metavar="RECORDS", type=Records())
@table_option
@click.option("--over", required=True, help="Column whose categories are the tables: the area.")
@click.option(
    "--population-size",
    "-N",
    type=Whole(1, MOST_COUNT),
    help="Individuals in the population of each table, if it is the same for all.",
)
@click.option(
    "--population-sizes",
    type=Input(stream=True),
    help=f"File with the columns of --over and {_SIZE}.",
)
@count_option("RECORDS")
@variables_option
@click.option(
    "--model",
    type=click.Choice(list(COMMANDS)),
    help=(
        "Estimator, fitted to each table by itself. By default, from five tables on, what all"
        " have in common is learned first."
    ),
)
@weights_option
@click.option(
    "--by",
    type=Names(),
    default="",
    help="Variables each of whose categories is assessed, too, in each table.",
)
@draws_option("table")
@seed_option
@workers_option
@click.option(
    "--store",
    type=Folder(),
    help="Folder that keeps what is done, and from which the same command continues.",
)
@csv_output_option("the table of results")
@format_option
@csv_options
@force_option
def assess_many(
    tables: TableFile | str,
    database_table: str | None,
    over: str,
    population_size: int | None,
    population_sizes: TableFile | None,
    count: str,
    variables: tuple[str, ...] | None,
    model: str | None,
    weights: tuple[float, float, float],
    by: tuple[str, ...],
    draws: int,
    seed: int | None,
    workers: int | None,
    store: Path | None,
    output: Target | None,
    form: Format,
    force: bool,
    sep: str | None,
    encoding: str | None,
) -> None:
    """Estimate the disclosure risk of many tables: of each area of a census.

    RECORDS is a CSV or Parquet file in long form, with a column for the area, or CSV
    from standard input, '-'. With --variables it has one row per individual, who are
    counted by area; with --table, too, it is a database. What cannot be assessed, such
    as an area without a sample, of which --population-sizes has a size or RECORDS has
    counts of 0, has no numbers but a reason.

    Exit status: 0 done, 1 error, 2 wrong usage, 3 a sampler did not converge.
    """
    import taciturn as tc

    _check_options(population_size, population_sizes, database_table, variables, over, by)
    check_database(tables, database_table)
    check_tables(tables if is_file(tables, database_table) else None, population_sizes)
    written: dict[str, Any] = {"sep": sep, "encoding": encoding}
    with working("loading libraries, reading the tables"):
        by_area = None if variables is None else (over, *variables)
        with opened(tables, database_table) as source:
            stack = read_counts(source, count=count, variables=by_area, **written)
        sizes: int | dict[Any, int] | None = population_size
        if population_sizes is not None:
            known = _known_sizes(population_sizes, stack, over, written)
            stack = _with_unsampled(stack, over, list(known))
            sizes = _sizes(population_sizes, stack, over, known)
        estimator = model and tc.estimators.ESTIMATORS[COMMANDS[model].name]()
    what = {"over": over, "population_size": sizes, "estimator": estimator, "by": by}
    how = {"weights": weights, "draws": draws, "random_seed": seed, "workers": workers}
    risk = _assessed(stack, store, **what, **how)
    rows = _rows(risk, over, by)
    if output is not None:
        write_csv(rows, output, overwrite=force)
    facts = _facts(rows, draws)
    on_screen = isinstance(output, StandardOutput)
    print_as(form, text=_text(rows, over, by, facts), facts=facts, table=rows, to_stderr=on_screen)
    if not (rows["reason"] == "").any():
        raise TableError("no table could be assessed: the reasons are in the output")
    exit_unless(bool((risk["converged"] | (risk["reason"] != "")).all()))


def _check_options(
    size: object, sizes: object, table: object, variables: object, over: str, by: tuple[str, ...]
) -> None:
    if (size is None) == (sizes is None):
        raise click.UsageError("give either --population-size or --population-sizes")
    if table is not None and variables is None:
        raise click.UsageError("--table needs --variables, by which the records are counted")
    if isinstance(variables, tuple) and over in variables:
        raise click.UsageError(f"--over {over} is counted by already: leave it out of --variables")
    own = {*_NUMBERS, _ESS, *(("variable", "category", "empty") if by else ())}
    taken = [name for name in (over, *by) if name in own]
    if taken:
        raise click.UsageError(f"the output has a column {taken[0]!r}: rename the variable")


def _assessed(stack: "xr.DataArray", store: Path | None, **given: Any) -> "xr.Dataset":
    """The risk of each table; why a sampler did not converge goes to standard error."""
    import taciturn as tc
    from taciturn.diagnostics import noted_failures

    quantiles, shown = tuple(_ENDS.values()), sys.stderr.isatty()
    with continued_from(store), noted_failures() as noted:
        risk = tc.assess_many(stack, quantiles=quantiles, store=store, progressbar=shown, **given)
    for text in dict.fromkeys(noted):
        click.echo(f"taciturn: {text}", err=True)
    return risk


def _known_sizes(
    path: TableFile, stack: "xr.DataArray", over: str, written: dict[str, Any]
) -> dict[str, int]:
    """The sizes of populations in a file, by the label of the area as text."""
    from taciturn.tables.labels import labels_of
    from taciturn.tables.reading import read_steps
    from taciturn.tables.sources import open_source

    if over not in stack.dims:
        raise TableError(f"--over must be one of the variables {stack.dims}, got {over!r:.80}")
    source = open_source(path, **written)
    if set(source.names) != {over, _SIZE}:
        raise TableError(
            f"{path}: must have the columns {over!r} and {_SIZE!r} and no others, it has"
            f" {first_of(source.names)}"
        )
    sizes = read_steps(source, _SIZE, what="population sizes")
    labels = _spellings(labels_of(sizes[over]), f"{path}: labels of {over!r}")
    return dict(zip(labels, sizes.values.tolist(), strict=True))


def _with_unsampled(stack: "xr.DataArray", over: str, areas: list[str]) -> "xr.DataArray":
    """The tables with those of areas without a sample, after the others."""
    import numpy as np
    import xarray as xr

    from taciturn.tables.labels import labels_of

    labels = labels_of(stack[over])
    counted = set(map(_spelled, labels))
    others: list[Any] = [label for label in areas if label not in counted]
    if not others:
        return stack
    if stack[over].dtype.kind in "iu" and all(re.fullmatch(r"0|-?[1-9]\d*", own) for own in others):
        others = [int(own) for own in others]
    every = np.empty(len(labels) + len(others), dtype=object)
    every[:] = [*labels, *others]
    sizes = {**stack.sizes, over: len(others)}
    nobody = xr.DataArray(np.zeros(list(sizes.values()), dtype=stack.dtype), dims=stack.dims)
    return xr.concat([stack.drop_vars(over), nobody], dim=over).assign_coords({over: every})


def _sizes(
    path: TableFile, stack: "xr.DataArray", over: str, named: dict[str, int]
) -> dict[Any, int]:
    """The size of each population, by area, whose labels may be numbers in a database
    and text in a file.
    """
    from taciturn.tables.labels import labels_of

    labels = labels_of(stack[over])
    written = dict(zip(labels, _spellings(labels, f"labels of {over!r}"), strict=True))
    missing = [label for label in labels if written[label] not in named]
    if missing:
        raise TableError(
            f"{path}: has no size of {over}={missing[0]!r:.80}, one of {len(missing)} that"
            f" lack one; it has sizes of {first_of(list(named))}"
        )
    return {label: named[text] for label, text in written.items()}


def _spellings(labels: list[Any], what: str) -> list[str]:
    """Labels as text, all of them different."""
    written = list(map(_spelled, labels))
    if len(set(written)) < len(written):
        raise TableError(f"{what} differ in nothing but decimals of 0")
    return written


def _spelled(label: Any) -> str:
    """A label as text; whole numbers without decimals, which a file may have where a
    database has none.
    """
    whole = re.fullmatch(r"(-?\d+)\.0+", str(label))
    return whole[1] if whole else str(label)


def _rows(risk: "xr.Dataset", over: str, by: tuple[str, ...]) -> "pd.DataFrame":
    """A row for each table and, after these, one for each category of each table."""
    import pandas as pd

    from taciturn.fits.unlabelled import MEASURES

    known = risk[["sample_size", _SIZE, _ESS, "converged", "reason"]]
    parts = []
    for variable in (None, *by):
        own = "" if variable is None else f"_by_{variable}"
        columns = {}
        for measure in MEASURES:
            columns[f"{measure}_mean"] = risk[f"{measure}{own}_mean"]
            for end, probability in _ENDS.items():
                found = risk[f"{measure}{own}"].sel(quantile=probability, drop=True)
                columns[f"{measure}_{end}"] = found
        if variable is not None:
            columns["empty"] = risk[f"empty{own}"]
        part = known.assign(columns).to_dataframe().reset_index()
        if variable is not None:  # known of areas, not of their categories
            part[["sample_size", _SIZE, _ESS]] = None
        if by:
            part.insert(1, "category", "" if variable is None else part.pop(variable))
            part.insert(1, "variable", variable or "")
        parts.append(part)
    rows = pd.concat(parts, ignore_index=True)
    first = [over, *(["variable", "category"] if by else [])]
    last = [_ESS, *(["empty"] if by else []), "converged", "reason"]
    return rows[[*first, "sample_size", _SIZE, *_NUMBERS, *last]]


def _facts(rows: "pd.DataFrame", draws: int) -> dict[str, Any]:
    """All that is said, for JSON."""
    from taciturn.fits.problems import of_few_draws

    unsure = int(((rows["reason"] == "") & ~rows["converged"]).sum())
    whole = rows[rows["sample_size"].notna() & (rows["reason"] == "")]
    # Where everybody was sampled all draws are alike.
    problems = of_few_draws(draws) if (whole["sample_size"] < whole[_SIZE]).any() else []
    if unsure:
        problems.append(
            f"of {unsure:,} of {len(rows):,} rows, where 'converged' is False, the sampler did not"
            " converge, so that their numbers must not be used"
        )
    return {"draws": draws, "problems": problems, "tables": rows.to_dict("records")}


def _text(rows: "pd.DataFrame", over: str, by: tuple[str, ...], facts: dict[str, Any]) -> str:
    """How many were assessed, the highest of them, and why others were not."""
    whole = rows[rows["variable"] == ""] if by else rows
    done = whole[whole["reason"] == ""]
    lines = [f"{len(done):,} of {len(whole):,} tables assessed"]
    failed = whole[whole["reason"] != ""]
    lines += [f"  {over}={row[over]}: {row['reason']}" for _, row in failed.head(_SHOWN).iterrows()]
    if len(failed) > _SHOWN:
        lines.append(f"  and {len(failed) - _SHOWN:,} more")
    if len(done):
        shown = done.nlargest(_SHOWN, "R2_mean")
        columns = [over, "sample_size", _SIZE, *(f"R2_{x}" for x in ("mean", "lower", "upper"))]
        table = shown[[*columns, "tau1_mean"]].to_string(
            index=False, float_format=lambda value: f"{value:.4f}"
        )
        lines += ["", "Those with the highest R2:", table]
    lines += [line for each in facts["problems"] for line in ("", f"Take care: {each}.")]
    return "\n".join(lines)
