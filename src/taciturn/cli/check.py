"""``taciturn check``: what a table gives away after all that was released before it."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

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
from taciturn.cli.mechanism import Specified
from taciturn.cli.options import (
    EXIT_CONDITION,
    EXIT_NOT_CONVERGED,
    MOST_COUNT,
    Number,
    Whole,
    count_option,
    csv_options,
)
from taciturn.cli.printing import Format, format_option, print_as
from taciturn.cli.text import printable
from taciturn.cli.working import working
from taciturn.errors import TableError
from taciturn.files import TableFile, check_readable

if TYPE_CHECKING:
    import pandas as pd

    import taciturn as tc

__all__ = ["check"]


class Assigned(click.ParamType[tuple[str, tuple[str, ...]]]):
    """A name, and categories joined by commas."""

    name = "name=a,b,..."

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, tuple[str, ...]]:
        """Read ``age=16-24,25-34``."""
        if isinstance(value, tuple):
            return value
        name, sign, labels = str(value).partition("=")
        if not (name.strip() and sign and labels.strip()):
            self.fail(f"{value!r} is no name=category,category", param, ctx)
        return name.strip(), tuple(label.strip() for label in labels.split(","))


@click.command(cls=FileCommand)
@click.argument("table", type=Input(stream=True))
@click.option("--log", type=Input(), required=True, help="The log of the project.")
@count_option("TABLE")
@click.option(
    "--where",
    type=Assigned(),
    multiple=True,
    help="Only records of these categories are counted, such as age=16-24,25-34; once for each"
    " variable.",
)
@click.option(
    "--merge",
    type=Assigned(),
    multiple=True,
    help="A merged category of TABLE, such as age:young=16-24,25-34; repeatable.",
)
@click.option(
    "--threshold",
    type=Whole(2, MOST_COUNT),
    default=10,
    show_default=True,
    help="Smallest count that is not small.",
)
@click.option(
    "--values",
    type=Whole(2, MOST_COUNT),
    default=2,
    show_default=True,
    help="How many values a small count must be able to have.",
)
@click.option(
    "--mechanism",
    type=Specified(),
    help="By which the counts were perturbed, such as geometric-noise:epsilon=0.5 or"
    " random-rounding:base=3; for cell-keys and record-swapping a JSON file with their tables.",
)
@click.option(
    "--keys",
    help="What the keys of the records are called from which the noise follows, if other releases"
    " have the same.",
)
@click.option(
    "--certainty",
    type=Number(0, 1, min_open=True),
    default=0.95,
    show_default=True,
    help="Probability from which on fewer values are nearly certain.",
)
@click.option("--add", metavar="NAME", help="Log the table under this name if nothing is found.")
@click.option("--protection", default="", help="How it is protected, in words, for the log.")
@click.option("--total", default="Total", show_default=True, help="Label of totals in TABLE.")
@csv_options
@csv_output_option("the small counts")
@format_option
@force_option
def check(
    table: TableFile,
    log: Path,
    count: str,
    where: tuple[tuple[str, tuple[str, ...]], ...],
    merge: tuple[tuple[str, tuple[str, ...]], ...],
    threshold: int,
    values: int,
    mechanism: "tc.attack.Mechanism | tc.release_log.RecordSwapping | None",
    keys: str | None,
    certainty: float,
    add: str | None,
    protection: str,
    total: str,
    sep: str | None,
    encoding: str | None,
    output: Target | None,
    form: Format,
    force: bool,
) -> None:
    """Check what a table gives away after all that was released before it.

    TABLE is what is to be published, a CSV or Parquet file in long form, or CSV from
    standard input, '-': a row for each cell, with the count or, where it is suppressed,
    none, or the status suppressed. Small counts are looked for that could be worked out
    with it, and not before; with --mechanism also those that would be nearly certain.

    Exit status: 0 passed, 1 error, 2 wrong usage, 3 nothing found but no proof, 4 do
    not release.
    """
    check_tables(table)
    check_readable(log)
    import taciturn as tc

    opened = tc.ReleaseLog(log)
    given: dict[str, Any] = {
        "where": _selected(where),
        "merge": _merged(merge),
        "mechanism": mechanism,
        "keys": keys,
        "total": total,
    }
    cells = _read(table, count, sep=sep, encoding=encoding)
    limits: dict[str, Any] = {"threshold": threshold, "values": values, "certainty": certainty}
    with working("working out what the releases say together"):
        verdict = opened.check(cells, progressbar=False, **limits, **given)
    rows = _rows(verdict)
    if output is not None:
        write_csv(rows, output, overwrite=force)
    number = None
    if add is not None and not verdict.found:
        number = opened.add(cells, name=add, protection=protection, after=verdict, **given)
    print_as(
        form,
        text=_text(verdict, add, number),
        facts=_facts(verdict) | {"number": number},
        table=rows,
        to_stderr=isinstance(output, StandardOutput),
    )
    _exit(verdict)


def _facts(verdict: "tc.release_log.Verdict") -> dict[str, Any]:
    """The verdict in plain types."""
    return {
        "log": verdict.log,
        "passed": verdict.passed,
        "complete": verdict.complete,
        "findings": verdict.cells.to_dict("records"),
        "likely": verdict.probable.to_dict("records"),
        "further": verdict.further,
        "advice": [str(each) for each in verdict.advice],
        "not_combined": list(verdict.not_combined),
    }


def _rows(verdict: "tc.release_log.Verdict") -> "pd.DataFrame":
    """The small counts that are found, the nearly certain ones with probabilities."""
    import pandas as pd

    parts = [each for each in (verdict.cells, verdict.probable) if len(each)]
    return pd.concat(parts) if parts else verdict.cells


def _exit(verdict: "tc.release_log.Verdict") -> None:
    """End with the status of a verdict that is not passed."""
    if verdict.found:
        sys.exit(EXIT_CONDITION)
    if not verdict.passed:
        sys.exit(EXIT_NOT_CONVERGED)


def _read(table: TableFile, count: str, **written: Any) -> "pd.DataFrame":
    """The cells of a table in long form."""
    import pandas as pd

    from taciturn.schema import COUNT
    from taciturn.tables.sources import open_source

    source = open_source(table, **written)
    columns = source.columns()
    if count not in columns:
        raise TableError(
            f"{source.origin}: no column {count!r} of counts: the columns are"
            f" {', '.join(map(repr, columns))}"
        )
    return pd.DataFrame({COUNT if name == count else name: x for name, x in columns.items()})


def _selected(given: tuple[tuple[str, tuple[str, ...]], ...]) -> dict[str, tuple[str, ...]]:
    """The selected categories of each variable."""
    found: dict[str, tuple[str, ...]] = {}
    for name, labels in given:
        if name in found:
            raise click.UsageError(
                f"--where: {name!r} is given twice: give all its categories once"
            )
        found[name] = labels
    return found


def _merged(given: tuple[tuple[str, tuple[str, ...]], ...]) -> dict[str, dict[str, Any]]:
    """The merged categories of each variable."""
    found: dict[str, dict[str, Any]] = {}
    for name, labels in given:
        variable, sign, new = name.partition(":")
        if not (variable and sign and new):
            raise click.UsageError(f"--merge: {name!r} is no variable:category")
        if new in found.setdefault(variable, {}):
            raise click.UsageError(
                f"--merge: {name!r} is given twice: give all its categories once"
            )
        found[variable][new] = labels
    return found


def _text(verdict: "tc.release_log.Verdict", add: str | None, number: int | None) -> str:
    """The verdict, and whether the table was logged."""
    lines = verdict.lines()
    if number is not None:
        lines.append(f"Logged as release {number}, {add!r}.")
    elif add is not None:
        lines.append("Not logged.")
    return "\n".join(map(printable, lines))
