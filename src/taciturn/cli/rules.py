"""``taciturn rules``: apply sensitivity rules to a magnitude table and protect it."""

import sys
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
    check_tables,
    force_option,
    hierarchies_of,
    hierarchy_option,
    intervals_option,
    read_instructions,
    write_release,
)
from taciturn.cli.options import Names, Number, Whole, csv_options, search_options, total_option
from taciturn.cli.patterns import pattern_facts, pattern_text, show_unproved
from taciturn.cli.printing import Format, format_option, print_as
from taciturn.cli.text import printable
from taciturn.cli.working import working
from taciturn.errors import ParameterError
from taciturn.files import RELEASE_ENDINGS, TableFile

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from taciturn.suppression import ProtectedTable

__all__ = ["rules"]

_REASON: Final = "reason_not_for_release"


@click.command(cls=FileCommand)
@click.argument("microdata", type=Input(stream=True))
@click.option("--variables", type=Names(), required=True, help="Columns that classify the records.")
@click.option("--value", required=True, help="Column of the quantity.")
@click.option(
    "--rule",
    "texts",
    multiple=True,
    required=True,
    help=(
        "nk:1,0.75  p%:10  pq:10,50  freq:3,20  zero:100  entropy:0.5  request:0.8; repeatable: a"
        " cell is sensitive if any rule says so."
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
@click.option("--waiver", help="Column that marks contributors who waived protection, 0 or 1.")
@click.option(
    "--safe",
    multiple=True,
    metavar="VARIABLE=LABEL",
    help="A category of which no cell is sensitive, such as that of missing labels; repeatable.",
)
@click.option(
    "--decimals",
    type=Whole(0, 9),
    default=0,
    show_default=True,
    help="Decimal places of the values.",
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
    type=Output(*RELEASE_ENDINGS, stream=True),
    help=(
        "Write the protected table to this .csv, .parquet, .json or .xlsx file; - is standard"
        " output."
    ),
)
@intervals_option
@format_option
@csv_options
@force_option
def rules(
    microdata: TableFile,
    variables: tuple[str, ...],
    value: str,
    texts: tuple[str, ...],
    safe: tuple[str, ...],
    aggregated: tuple[str, ...] | None,
    hierarchy: tuple[TableFile, ...],
    apriori: Path | None,
    safety_range: float,
    total: str,
    top: int,
    time_limit: float,
    seed: int,
    output: Target | None,
    form: Format,
    force: bool,
    intervals: bool,
    **given: Any,
) -> None:
    """Find the sensitive cells of a magnitude table, and protect them.

    MICRODATA is a CSV or Parquet file with one record per row, or CSV from standard
    input, '-'; with --aggregated one cell per row. Totals are cells, too.
    The output on the screen quotes true values and is not for release. With --output
    further cells are suppressed until no sensitive one can be worked out; the file
    holds the values of published cells, and the status of every cell: published or
    suppressed.

    Exit status: 0 done, 1 error, 2 wrong usage.
    """
    import taciturn as tc

    check_tables(microdata, hierarchies=hierarchy, apriori=apriori)
    check_intervals(output, intervals)
    _check_roles(aggregated, given)
    given["hierarchies"] = hierarchies_of(hierarchy, variables, **_written(given))
    chosen = [tc.magnitude.rule_from_text(text) for text in texts]
    categories = _safe_categories(safe, variables)
    with working("tabulating the records"):
        tables = _tables(microdata, variables, value, aggregated, total, given)
    if output is None:
        from taciturn.magnitude.sensitivity import sensitive_margins

        found = sensitive_margins(tables, chosen, categories)
        _print_sensitive(found, variables, total, top, form)
        return
    protected = tc.suppression.protect_margins(
        tables,
        chosen,
        time_limit=time_limit,
        random_seed=seed,
        progressbar=sys.stderr.isatty(),
        apriori=read_instructions(apriori, variables, total=total, **_written(given)),
        safety_range=safety_range,
        safe=categories,
    )
    show_unproved(protected.pattern)
    write_release(protected, output, total=total, intervals=intervals, overwrite=force)
    _print_protected(protected, variables, total, top, output, form)


def _check_roles(aggregated: tuple[str, ...] | None, given: dict[str, Any]) -> None:
    """Raise where columns of records are named, and there are none."""
    roles = ("contributor", "holding", "sampling_weights", "request", "waiver")
    named = [f"--{role.replace('_', '-')}" for role in roles if given[role] is not None]
    if aggregated is not None and named:
        raise click.UsageError(f"--aggregated has no records to which {named[0]} could apply")


def _tables(
    microdata: TableFile,
    variables: tuple[str, ...],
    value: str,
    aggregated: tuple[str, ...] | None,
    total: str,
    given: dict[str, Any],
) -> dict[tuple[str, ...], "xr.Dataset"]:
    """The table and its margins, from records or from a row for each cell."""
    from taciturn.magnitude import read_margins, tabulate_margins

    if aggregated is None:
        return tabulate_margins(microdata, variables, value, **given)
    contributors, *largest = aggregated
    kept = ("hierarchies", "decimals", "sep", "encoding")
    return read_margins(
        microdata,
        variables,
        value,
        contributors=contributors,
        largest=largest,
        total=total,
        **{name: given[name] for name in kept},
    )


def _print_sensitive(
    found: dict[tuple[str, ...], "xr.Dataset"],
    variables: tuple[str, ...],
    total: str,
    top: int,
    form: Format,
) -> None:
    """Say what is sensitive."""
    rows = _sensitive_rows(found, variables, total)
    print_as(form, text=_sensitive_text(found, top), facts=_facts(found, rows), table=rows)


def _print_protected(
    protected: "ProtectedTable",
    variables: tuple[str, ...],
    total: str,
    top: int,
    output: Target,
    form: Format,
) -> None:
    """Say what was sensitive, and what is suppressed."""
    found = dict(protected.sensitive)
    rows = _sensitive_rows(found, variables, total)
    print_as(
        form,
        text=f"{_sensitive_text(found, top)}\n\n{pattern_text(protected.pattern)}",
        facts=_facts(found, rows) | {"pattern": pattern_facts(protected.pattern), "output": output},
        table=rows,
        to_stderr=isinstance(output, StandardOutput),
    )


def _safe_categories(texts: tuple[str, ...], variables: tuple[str, ...]) -> dict[str, list[str]]:
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


def _written(given: dict[str, Any]) -> dict[str, str | None]:
    """How the CSV files are written."""
    return {name: given[name] for name in ("sep", "encoding")}


def _sensitive_rows(
    found: dict[tuple[str, ...], "xr.Dataset"], variables: tuple[str, ...], total: str
) -> "pd.DataFrame":
    """A row for each sensitive cell, with the reasons."""
    import numpy as np
    import pandas as pd

    from taciturn.tables.margins import hierarchies

    finest = next(iter(found.values()))["sensitive"]
    column_of = {level: dim for dim, levels in hierarchies(finest).items() for level in levels}
    rows = []
    for names, cells in found.items():
        reasons = np.atleast_1d(cells["reason"].values)
        for place in map(tuple, np.argwhere(np.atleast_1d(cells["sensitive"].values))):
            labels = {
                column_of.get(name, name): cells[name].values[at]
                for name, at in zip(names, place, strict=False)
            }
            rows.append(
                {name: labels.get(name, total) for name in variables} | {_REASON: reasons[place]}
            )
    return pd.DataFrame(rows, columns=[*variables, _REASON])


def _facts(found: dict[tuple[str, ...], "xr.Dataset"], rows: "pd.DataFrame") -> dict[str, Any]:
    """How many cells of each margin are sensitive, and all of them."""
    return {
        "not_for_release": "the reasons quote true values",
        "margins": [
            {
                "variables": list(names),
                "sensitive": int(cells["sensitive"].sum()),
                "unsafe_share": float(cells["unsafe_share"]),
            }
            for names, cells in found.items()
        ],
        "sensitive": rows.to_dict("records"),
    }


def _sensitive_text(found: dict[tuple[str, ...], "xr.Dataset"], top: int) -> str:
    """How many cells of each margin are sensitive, and the first of them with their
    reasons.
    """
    import numpy as np

    lines: list[str] = []
    listed: list[str] = []
    for names, cells in found.items():
        sensitive = np.argwhere(np.atleast_1d(cells["sensitive"].values))
        share = 100 * float(cells["unsafe_share"])
        name = " x ".join(names) or "grand total"
        lines.append(
            f"{printable(name)}: {len(sensitive)} sensitive, {share:.1f} % of the cells with a"
            " contributor"
        )
        for position in sensitive[: max(top - len(listed), 0)]:
            at = tuple(int(i) for i in position) if names else ()
            labels = ", ".join(
                f"{name}={cells[name].values[i]}" for name, i in zip(names, at, strict=True)
            )
            listed.append(
                printable(f"  {labels or 'the grand total'}: {cells['reason'].values[at]}")
            )
    return "\n".join([*lines, *([""] if listed else []), *listed])
