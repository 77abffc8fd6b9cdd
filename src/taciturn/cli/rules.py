"""``taciturn rules``: apply sensitivity rules to a magnitude table and protect it."""

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from taciturn.cli.files import (
    FileCommand,
    Input,
    Output,
    StandardOutput,
    Target,
    apriori_option,
    check_intervals,
    force_option,
    hierarchy_option,
    intervals_option,
    write_releases,
)
from taciturn.cli.magnitudes import Inputs, check_inputs, read_inputs
from taciturn.cli.options import Names, Number, Whole, csv_options, search_options, total_option
from taciturn.cli.patterns import show_unproved
from taciturn.cli.printing import Format, format_option
from taciturn.cli.sensitive import print_sensitive
from taciturn.errors import ParameterError
from taciturn.files import METADATA_ENDING, RELEASE_ENDINGS, TableFile

if TYPE_CHECKING:
    from taciturn.magnitude import Rule
    from taciturn.suppression import ProtectedTable

__all__ = ["rules"]

_LARGEST: Final = 5, 100  # contributions that are kept by default, and at most


@click.command(cls=FileCommand)
@click.argument("microdata", type=Input(stream=True))
@click.option("--variables", type=Names(), help="Columns that classify the records.")
@click.option(
    "--value",
    "values",
    multiple=True,
    help="Column of the quantity; repeatable, for several quantities of the same records.",
)
@click.option(
    "--rule",
    "texts",
    multiple=True,
    required=True,
    help=(
        "nk:1,0.75  p%:10  pq:10,50  freq:3,20  zero:100  entropy:0.5  request:0.8; repeatable: a"
        " cell is sensitive if any rule says so. With a quantity before it, as in sales=p%:10, it"
        " is that quantity's alone."
    ),
)
@click.option(
    "--contributor", help="Column that names the contributor; without it each record is one."
)
@click.option("--holding", help="Column that names the holding to which a contributor belongs.")
@click.option("--sampling-weights", help="Column of sampling weights.")
@click.option("--request", help="Column that marks contributors who asked for protection, 0 or 1.")
@click.option(
    "--aggregated",
    type=Names(),
    help=(
        "MICRODATA has a row for each cell and total instead: its columns of how many contribute,"
        " and of the largest contributions in descending order."
    ),
)
@click.option(
    "--metadata",
    type=Input(),
    help=(
        f"MICRODATA is a table of tau-ARGUS with a line for each cell and total, and this file"
        f" {METADATA_ENDING} says what its columns are."
    ),
)
@click.option(
    "--waiver",
    type=Names(),
    help=(
        "Column that marks contributors who waived protection, 0 or 1; with --aggregated two: of"
        " how many have, and of the largest contribution of one who has not."
    ),
)
@click.option(
    "--missing",
    default="refuse",
    show_default=True,
    help=(
        "What is done about a missing label: refuse it, drop the record, or give it this label,"
        " such as 'unknown', which --safe can name."
    ),
)
@click.option(
    "--safe",
    multiple=True,
    metavar="VARIABLE=LABEL",
    help="A category of which no cell is sensitive, such as that of missing labels; repeatable.",
)
@click.option(
    "--decimals",
    type=Whole(0, 9),
    multiple=True,
    help="Decimal places of the values, 0 by default; once, or once for each --value.",
)
@hierarchy_option
@apriori_option
@click.option(
    "--safety-range",
    type=Number(0),
    default=0.0,
    show_default=True,
    help="Percent of its total that a cell must be open by that --apriori makes sensitive.",
)
@total_option
@click.option(
    "--top", type=Whole(0), default=20, show_default=True, help="Sensitive cells to print."
)
@search_options
@click.option(
    "--output",
    "outputs",
    type=Output(*RELEASE_ENDINGS, stream=True),
    multiple=True,
    help=(
        "Write the protected table to this .csv, .parquet, .json or .xlsx file, one for each"
        " --value in their order; - is standard output."
    ),
)
@click.option(
    "--same-cells",
    is_flag=True,
    help="Suppress a cell for all quantities where it is for one.",
)
@intervals_option
@format_option
@csv_options
@force_option
def rules(
    microdata: TableFile,
    texts: tuple[str, ...],
    safe: tuple[str, ...],
    hierarchy: tuple[TableFile, ...],
    metadata: Path | None,
    apriori: Path | None,
    safety_range: float,
    total: str,
    top: int,
    time_limit: float,
    seed: int,
    outputs: tuple[Target, ...],
    same_cells: bool,
    form: Format,
    force: bool,
    intervals: bool,
    **given: Any,
) -> None:
    """Find the sensitive cells of a magnitude table, and protect them.

    MICRODATA is a CSV or Parquet file with one record per row, or CSV from standard
    input, '-'; with --aggregated or --metadata one cell per row. Totals are cells, too.
    The output on the screen quotes true values and is not for release. With --output
    further cells are suppressed until no sensitive one can be worked out; the file
    holds the values of published cells, and the status of every cell: published or
    suppressed.

    Exit status: 0 done, 1 error, 2 wrong usage.
    """
    check_inputs(microdata, metadata, hierarchy, apriori, given)
    _check_outputs(outputs, given["values"], same_cells=same_cells, intervals=intervals)
    if not outputs and (apriori is not None or safety_range):
        option = "apriori" if apriori is not None else "safety-range"
        raise click.UsageError(f"--{option} needs --output: it is about what is suppressed")

    given["largest"] = _largest(_by_quantity(texts, given["values"]))  # before anything is read
    inputs = read_inputs(microdata, metadata, hierarchy, apriori, total, given)
    if not outputs and inputs.apriori is not None:
        click.echo(
            f"taciturn: what {microdata} says of single cells counts for what is suppressed, with"
            " --output",
            err=True,
        )
    chosen, categories = _by_quantity(texts, inputs.tables), _safe(safe, inputs.variables)
    done: dict[str, ProtectedTable] = {}
    if outputs:
        search = {"time_limit": time_limit, "random_seed": seed, "safety_range": safety_range}
        done = _protected(inputs, chosen, same_cells=same_cells, safe=categories, **search)
        pairs = list(zip(done.values(), outputs, strict=True))
        write_releases(pairs, intervals=intervals, total=total, overwrite=force)
    print_sensitive(
        _sensitive(inputs, chosen, categories, done),
        inputs.variables,
        total=total,
        top=top,
        form=form,
        patterns={name: table.pattern for name, table in done.items()},
        outputs=outputs,
    )


def _check_outputs(
    outputs: tuple[Target, ...], values: tuple[str, ...], *, same_cells: bool, intervals: bool
) -> None:
    """Raise unless there is an output for each quantity, or none."""
    if outputs and len(outputs) != max(len(values), 1):
        raise click.UsageError(
            f"--output is given once for each --value: there are {len(outputs)} of"
            f" {max(len(values), 1)}"
        )
    if sum(isinstance(output, StandardOutput) for output in outputs) > 1:
        raise click.UsageError("'-', standard output, can take one table")
    if same_cells and (len(values) < 2 or not outputs):
        raise click.UsageError("--same-cells needs --output, and several of --value")
    for output in outputs or (None,):
        check_intervals(output, intervals)


def _by_quantity(texts: tuple[str, ...], values: Iterable[str]) -> "dict[str, list[Rule]]":
    """The rules of each quantity: those that name none, and its own."""
    from taciturn.magnitude import rule_from_text

    named = {
        text: next((name for name in values if text.startswith(f"{name}=")), None) for text in texts
    }
    found = {}
    for name in values:
        own = [text for text, of in named.items() if of in (None, name)]
        if not own:
            raise ParameterError(f"--rule gives no rule for {name!r}")
        found[name] = [rule_from_text(text.removeprefix(f"{named[text]}=")) for text in own]
    return found


def _largest(chosen: "Mapping[str, list[Rule]]") -> int:
    """How many of the largest contributions the rules need, or as many as usual."""
    from taciturn.magnitude import Dominance

    needed = [rule.n for rules in chosen.values() for rule in rules if isinstance(rule, Dominance)]
    usual, most = _LARGEST
    return min(max([usual, *needed]), most)


def _protected(
    inputs: Inputs, chosen: "Mapping[str, list[Rule]]", *, same_cells: bool, **options: Any
) -> "dict[str, ProtectedTable]":
    """Protect each quantity, and say what is not proved to be protected."""
    from taciturn.suppression import protect_margins
    from taciturn.suppression.quantities import with_same_cells

    options |= {"apriori": inputs.apriori, "progressbar": sys.stderr.isatty()}
    done = {
        name: protect_margins(tables, chosen[name], **options)
        for name, tables in inputs.tables.items()
    }
    done = with_same_cells(done, inputs.apriori) if same_cells else done
    for table in done.values():
        show_unproved(table.pattern)
    return done


def _safe(texts: tuple[str, ...], variables: tuple[str, ...]) -> dict[str, list[str]]:
    """The categories of each variable that are safe."""
    found: dict[str, list[str]] = {}
    for text in texts:
        name = next((name for name in variables if text.startswith(f"{name}=")), None)
        if name is None:
            raise ParameterError(
                f"--safe must be a variable of {list(variables)} and a label, such as"
                f" {variables[0]}=unknown, got {text!r}"
            )
        found.setdefault(name, []).append(text[len(name) + 1 :])
    return found


def _sensitive(
    inputs: Inputs,
    chosen: "Mapping[str, list[Rule]]",
    categories: Mapping[str, list[str]],
    done: "Mapping[str, ProtectedTable]",
) -> dict[str, Any]:
    """Which cells of each quantity are sensitive."""
    from taciturn.magnitude.sensitivity import sensitive_margins

    return {
        name: done[name].sensitive
        if name in done
        else sensitive_margins(tables, chosen[name], categories)
        for name, tables in inputs.tables.items()
    }
