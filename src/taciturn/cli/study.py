"""``taciturn study``: compare estimates with a known population."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from taciturn.cli.files import (
    FileCommand,
    Input,
    Output,
    StandardOutput,
    Target,
    check_tables,
    csv_output_option,
    force_option,
    write_csv,
)
from taciturn.cli.options import (
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
from taciturn.estimators.registry import COMMANDS
from taciturn.files import TableFile
from taciturn.validate import real_number

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["study"]


class Fractions(click.ParamType[tuple[float, ...]]):
    """Sampling fractions joined by commas."""

    name = "x,y,..."

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[float, ...]:
        """Read ``0.1,0.05``."""
        if isinstance(value, tuple):
            return value
        try:
            parts = [float(part) for part in str(value).split(",")]
            return tuple(real_number(part, "a fraction", above=0, most=1) for part in parts)
        except ValueError as error:
            self.fail(f"{value!r}: {error}", param, ctx)


@click.command(cls=FileCommand)
@click.argument("population", type=Input(stream=True))
@count_option("POPULATION")
@click.option(
    "--model",
    "models",
    type=click.Choice(list(COMMANDS)),
    multiple=True,
    required=True,
    help="Estimator; repeatable.",
)
@click.option(
    "--fractions",
    type=Fractions(),
    default="0.1,0.05,0.01",
    show_default=True,
    help="Sampling fractions.",
)
@click.option(
    "--samples",
    type=Whole(1),
    default=200,
    show_default=True,
    help="Samples per fraction.",
)
@draws_option("sample")
@weights_option
@seed_option
@workers_option
@click.option(
    "--store",
    type=Output(resumed=True),
    help="File that keeps what is done, and from which the study continues.",
)
@csv_output_option()
@format_option
@csv_options
@force_option
def study(
    population: TableFile,
    count: str,
    models: tuple[str, ...],
    fractions: tuple[float, ...],
    samples: int,
    draws: int,
    weights: tuple[float, float, float],
    seed: int | None,
    workers: int | None,
    store: Path | None,
    output: Target | None,
    form: Format,
    force: bool,
    sep: str | None,
    encoding: str | None,
) -> None:
    """Compare estimates with a known population: bias, RMSE, coverage.

    Repeated samples are drawn from the population, and each estimator is fitted to
    every one of them.

    POPULATION is a CSV or Parquet file in long form, as for assess, or CSV from
    standard input, '-'.

    Exit status: 0 done, 1 error, 2 wrong usage.
    """
    import taciturn as tc

    check_tables(population)
    with working("loading libraries, reading the table"):
        table = tc.read_table(population, count=count, sep=sep, encoding=encoding)
    with continued_from(store):
        result = tc.study(
            table,
            {model: tc.estimators.ESTIMATORS[COMMANDS[model].name]() for model in models},
            fractions=fractions,
            samples=samples,
            draws=draws,
            weights=weights,
            random_seed=seed,
            progressbar=sys.stderr.isatty(),
            workers=workers,
            store=store,
        )
    rows = tc.studies.study_table(result)
    if output is not None:
        write_csv(rows, output, overwrite=force)
    note = f"{samples} samples per fraction, {draws} draws each. Monte Carlo errors: --format csv."
    print_as(
        form,
        text=f"{_text(rows)}\n\n{note}",
        facts={"samples": samples, "draws": draws, "statistics": rows.to_dict("records")},
        table=rows,
        to_stderr=isinstance(output, StandardOutput),
    )


def _text(rows: "pd.DataFrame") -> str:
    """The statistics, without their Monte Carlo errors."""
    shown = rows[[name for name in rows.columns if not name.endswith("_mcse")]]
    return shown.to_string(index=False, float_format=lambda value: f"{value:.4f}")
