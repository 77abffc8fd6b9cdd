"""The command that judges and protects a magnitude table: ``rules``."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from taciturn.cli.files import check_output
from taciturn.cli.options import Margin
from taciturn.cli.text import printable

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["rules"]


@click.command()
@click.argument("microdata", type=click.Path(path_type=Path))
@click.option("--dims", type=Margin(), required=True, help="Columns that classify the records.")
@click.option("--value", required=True, help="Column of the quantity.")
@click.option(
    "--rule",
    "texts",
    multiple=True,
    required=True,
    help=(
        "nk:1,0.75  p%:10  pq:10,50  freq:3  entropy:0.5  request:0.8; repeatable, each makes a"
        " cell sensitive."
    ),
)
@click.option(
    "--contributor", help="Column that names who contributes; each record its own without it."
)
@click.option("--holding", help="Column that names the holding of a contributor.")
@click.option("--weights", help="Column of sampling weights.")
@click.option("--request", help="Column that says who asked for protection, 0 or 1.")
@click.option(
    "--decimals",
    type=click.IntRange(0, 9),
    default=0,
    show_default=True,
    help="Decimal places of the values.",
)
@click.option("--total", default="Total", show_default=True, help="Label of totals in the output.")
@click.option(
    "--top", type=click.IntRange(0), default=20, show_default=True, help="Sensitive cells to print."
)
@click.option(
    "--time-limit",
    type=float,
    default=60.0,
    show_default=True,
    help="Seconds to look for a pattern.",
)
@click.option(
    "--seed",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="The same seed, the same pattern.",
)
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    help="Write the protected table to this .csv, .parquet or .json file.",
)
def rules(
    microdata: Path,
    dims: tuple[str, ...],
    value: str,
    texts: tuple[str, ...],
    total: str,
    top: int,
    time_limit: float,
    seed: int,
    output: Path | None,
    **given: Any,
) -> None:
    """Tell the sensitive cells of a magnitude table and its totals, and protect them.

    MICRODATA is a CSV or Parquet file, a record a row. What is printed quotes true
    values and is not for release. With --output further cells are suppressed until no
    sensitive one can be worked out; the file has the values of safe cells, and safe,
    primary or secondary for each.

    Exit status: 0 done, 1 error, 2 wrong usage.
    """
    import taciturn as tc
    from taciturn.magnitude import rule_from_text
    from taciturn.suppression.release_file import check_release

    chosen = [rule_from_text(text) for text in texts]
    if output is None:
        tables = tc.magnitude.tabulate_margins(microdata, dims, value, **given)
        found = {names: tc.sensitive_cells(table, chosen) for names, table in tables.items()}
        click.echo(_sensitive_text(found, top))
        return
    check_release(output)
    check_output(output, source=microdata)
    protected = tc.protect_table(
        microdata,
        dims,
        value,
        chosen,
        time_limit=time_limit,
        random_seed=seed,
        progressbar=sys.stderr.isatty(),
        **given,
    )
    tc.write_release(protected, output, total=total)
    click.echo(_sensitive_text(dict(protected.sensitive), top))
    click.echo()
    for line in str(protected.pattern).splitlines():
        click.echo(printable(line))
    if not protected.pattern.complete:
        click.echo("the search was ended by the time limit; a longer one may suppress less")


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
