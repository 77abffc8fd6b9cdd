"""``taciturn attack``: what an attacker can work out from a release."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from taciturn.cli.attack_input import read_file, read_suppressed, read_values
from taciturn.cli.conditions import DISCLOSED, Condition, exit_if, fail_on_option
from taciturn.cli.files import (
    FileCommand,
    Input,
    Output,
    StandardOutput,
    Target,
    check_release_file,
    check_tables,
    csv_output_option,
    force_option,
    hierarchy_option,
    variables_option,
    with_hierarchies,
    write_csv,
)
from taciturn.cli.options import Names, Whole, csv_options
from taciturn.cli.printing import Format, format_option, print_as
from taciturn.cli.text import printable
from taciturn.cli.working import working
from taciturn.errors import TableError
from taciturn.files import TableFile

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from taciturn.attack.releases.base import Release

__all__ = ["attack"]

_COLUMNS: Final = ["lower", "upper", "n_values", "risk", "disclosed"]


@click.command(cls=FileCommand)
@click.argument("table", type=Input(stream=True))
@click.option("--count", default="count", show_default=True, help="Column of values in TABLE.")
@variables_option
@click.option(
    "--release",
    "file",
    type=Input(stream=True),
    help="File of a release of TABLE, such as suppress or rules writes.",
)
@click.option(
    "--suppressed",
    type=Input(stream=True),
    multiple=True,
    help=(
        "File of cells that are not published, one per row, whose columns are named after the"
        " variables; repeatable."
    ),
)
@click.option(
    "--linked",
    type=Names(),
    multiple=True,
    help=(
        "Variables of a released projection of TABLE, which is then not released itself;"
        " repeatable."
    ),
)
@click.option(
    "--totals",
    type=Names(),
    multiple=True,
    help="Variables of published totals; all totals by default; repeatable.",
)
@hierarchy_option
@click.option(
    "--margin",
    type=Names(),
    help="Bound the totals over these variables instead of suppressed cells.",
)
@click.option(
    "--decimals",
    type=Whole(0, 12),
    default=0,
    show_default=True,
    help="Decimal places of the values.",
)
@click.option(
    "--total", default="Total", show_default=True, help="Label of totals in the file of --release."
)
@click.option("--top", type=Whole(0), default=20, show_default=True, help="Cells to print.")
@csv_output_option("the bounds of all cells")
@click.option(
    "--certificate",
    type=Output(".json"),
    help="Write the bounds with proofs, which a second program checks, to this JSON file.",
)
@fail_on_option(DISCLOSED)
@format_option
@csv_options
@force_option
def attack(
    table: TableFile,
    count: str,
    variables: tuple[str, ...] | None,
    file: TableFile | None,
    suppressed: tuple[TableFile, ...],
    linked: tuple[tuple[str, ...], ...],
    totals: tuple[tuple[str, ...], ...],
    hierarchy: tuple[TableFile, ...],
    margin: tuple[str, ...] | None,
    decimals: int,
    total: str,
    top: int,
    output: Target | None,
    certificate: Path | None,
    fail_on: tuple[Condition, ...],
    form: Format,
    force: bool,
    sep: str | None,
    encoding: str | None,
) -> None:
    """Bound the cells that a release does not show, riskiest first.

    TABLE is the true table, a CSV or Parquet file in long form as for assess, or CSV
    from standard input, '-'; with --decimals its values may be magnitudes. What is
    released is what the file of --release publishes: .csv in UTF-8, .parquet or .json,
    as suppress and rules write it. Or it is the cells of TABLE and all totals, or the
    projections of --linked, without the cells of --suppressed. If these files have a
    column `status`, it holds published or suppressed, or safe, primary or secondary;
    published and safe cells are released.

    Exit status: 0 done, 1 error, 2 wrong usage, 4 a condition of --fail-on holds.
    """
    _check_options(file, suppressed, linked, totals, conditional=margin if fail_on else None)
    check_tables(table, *suppressed, hierarchies=hierarchy)
    written = {"sep": sep, "encoding": encoding}
    with working("loading libraries, reading the table"):
        true = read_values(table, count=count, variables=variables, decimals=decimals, **written)
    true = with_hierarchies(true, hierarchy, **written)
    margin = _checked_margin(margin, true)
    if file is not None:
        release = read_file(file, true, total=total, decimals=decimals)
    else:
        release = _release(true, suppressed, linked, totals, decimals, written)
    rows = _bounds(release, asked := _asked(release, margin))
    _write_certificate(release, asked, certificate, overwrite=force)
    if output is not None:
        write_csv(rows, output, overwrite=force)
    disclosed = int(rows["disclosed"].sum())
    print_as(
        form,
        text=_text(rows, top, decimals, margin),
        facts={
            "not_published": len(rows),
            "disclosed": disclosed,
            "cells": rows.to_dict("records"),
        },
        table=rows,
        to_stderr=isinstance(output, StandardOutput),
    )
    if fail_on and disclosed:
        exit_if([f"{disclosed:,} cells that are not published are disclosed"])


def _check_options(
    file: TableFile | None, suppressed: Any, linked: Any, totals: Any, *, conditional: Any
) -> None:
    """Raise unless the options say, once, what is released, and its file is there; or
    where a condition on all cells is asked of the totals of a margin alone.
    """
    if conditional is not None:
        raise click.UsageError(
            "--fail-on looks at every cell that is not published: leave out --margin, which bounds"
            " some totals alone"
        )
    if linked and totals:
        raise click.UsageError(
            "--totals are those of a released table; with --linked name them as projections, too"
        )
    if file is not None and (suppressed or linked or totals):
        raise click.UsageError(
            "--release says what is published: --suppressed, --linked and --totals do not apply"
        )
    if file is None and not linked and not suppressed:
        raise click.UsageError(
            "give --release, --suppressed or --linked: a whole table leaves nothing to work out"
        )
    check_release_file(file)


def _checked_margin(
    margin: tuple[str, ...] | None, table: "xr.DataArray"
) -> tuple[str, ...] | None:
    """The margin to bound, if one is given."""
    if margin is None:
        return None
    from taciturn.tables.margins import margin_names

    return margin_names(margin, table, name="--margin")


def _release(
    table: "xr.DataArray",
    files: tuple[TableFile, ...],
    linked: tuple[tuple[str, ...], ...],
    totals: tuple[tuple[str, ...], ...],
    decimals: int,
    written: dict[str, Any],
) -> "Release":
    """The release: what is published of a table and its projections."""
    import taciturn as tc
    from taciturn.schema import table_dims
    from taciturn.tables.margins import every_margin, margin_names

    cells = table_dims(table)
    margins = linked or (cells, *(totals or every_margin(table)))
    option = "--linked" if linked else "--totals"
    margins = tuple(margin_names(names, table, name=option) for names in margins)
    hidden: dict[tuple[str, ...], xr.DataArray] = {}
    masks: Mapping[Any, xr.DataArray] = hidden
    for path in files:
        names, mask = read_suppressed(path, table, list(margins), **written)
        hidden[names] = hidden[names] | mask if names in hidden else mask
    if files and not any(mask.any() for mask in hidden.values()):
        raise TableError(
            "no cell is suppressed: the files of --suppressed have no row, or only published ones"
        )
    if not linked and set(hidden) == {cells}:
        return tc.Suppression(table, hidden[cells], totals=list(totals) or True, decimals=decimals)
    return tc.LinkedTables(table, margins, suppressed=masks, decimals=decimals)


def _asked(release: "Release", margin: tuple[str, ...] | None) -> dict[tuple[str, ...], Any]:
    """The cells to bound, by the variables of each projection; None is all of them."""
    return release.unpublished_cells() if margin is None else {margin: None}


def _write_certificate(
    release: "Release",
    asked: dict[tuple[str, ...], Any],
    path: Path | None,
    *,
    overwrite: bool,
) -> None:
    """Write the bounds with their proofs, if there is a file for them."""
    import taciturn as tc

    if path is not None:
        shown = sys.stderr.isatty()
        tc.attack.write_certificate(
            release, path, cells=asked, overwrite=overwrite, progressbar=shown
        )


def _bounds(release: "Release", asked: dict[tuple[str, ...], Any]) -> "pd.DataFrame":
    """A row for each cell that is not published, riskiest first; in rows of totals, the
    variables summed over are empty.
    """
    import numpy as np
    import pandas as pd

    import taciturn as tc

    variables = list(dict.fromkeys(name for names in asked for name in names))
    parts = []
    for names, mask in asked.items():
        bounds = tc.attacker_bounds(
            release, margin=names, cells=mask, progressbar=sys.stderr.isatty()
        )
        cells = np.nonzero(np.atleast_1d(bounds["lower"].notnull() & ~bounds["published"]))
        labels = {name: bounds[name].values[at] for name, at in zip(names, cells, strict=False)}
        values = {name: np.atleast_1d(bounds[name].values)[cells] for name in _COLUMNS}
        parts.append(pd.DataFrame({**labels, **values}))
    rows = pd.concat(parts, ignore_index=True)[[*variables, *_COLUMNS]]
    return rows.sort_values(
        ["disclosed", "risk"], ascending=False, kind="stable", ignore_index=True
    )


def _text(rows: "pd.DataFrame", top: int, decimals: int, margin: tuple[str, ...] | None) -> str:
    """The first rows, aligned, and how many of all the cells are disclosed."""
    import pandas as pd

    shown = [["cell", "lower", "upper", "values", "risk"]]
    for row in rows.head(top).to_dict("records"):
        named = {
            name: label
            for name, label in row.items()
            if name not in _COLUMNS and not pd.isna(label)
        }
        cell = ", ".join(f"{name}={label}" for name, label in named.items()) or "the grand total"
        risk = "disclosed" if row["disclosed"] else f"{row['risk']:.4f}"
        bounds = (f"{row[name]:.{decimals}f}" for name in ("lower", "upper"))
        shown.append([printable(cell), *bounds, f"{row['n_values']:.0f}", risk])
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    lines = []
    if top:
        for first, *others in shown:
            numbers = "".join(
                f"  {text:>{width}}" for text, width in zip(others, widths[1:], strict=True)
            )
            lines.append(f"{first:<{widths[0]}}{numbers}")
        lines.append(f"and {len(rows) - top} more\n" if len(rows) > top else "")
    disclosed = int(rows["disclosed"].sum())
    what = "cells" if margin is None else f"totals over {', '.join(margin) or 'nothing'}"
    lines.append(
        f"{disclosed} of {len(rows)} {what} that are not published can be worked out exactly"
    )
    return "\n".join(lines)
