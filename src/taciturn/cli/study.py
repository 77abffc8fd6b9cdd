"""``taciturn study``: compare estimates with a known population."""

import sys
from pathlib import Path

import click

from taciturn.cli.files import (
    FileCommand,
    Input,
    Output,
    check_csv,
    check_tables,
    force_option,
    write_csv,
)
from taciturn.cli.options import SEED, Weights, Whole, csv_options
from taciturn.cli.working import working
from taciturn.estimators.registry import COMMANDS
from taciturn.validate import real_number

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
@click.argument("population", type=Input())
@click.option("--count", default="count", show_default=True, help="Column of counts in POPULATION.")
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
@click.option(
    "--draws",
    type=Whole(1),
    default=1000,
    show_default=True,
    help="Draws per sample.",
)
@click.option(
    "--weights",
    type=Weights(),
    default="0.1,0.8,0.1",
    show_default=True,
    help="Weights of the three terms of R1 and R2.",
)
@click.option("--seed", type=SEED, help="The same seed gives the same numbers.")
@click.option("--workers", type=Whole(1), help="Processes; all cores by default.")
@click.option(
    "--store",
    type=Output(resumed=True),
    help="File that keeps what is done, and from which the study continues.",
)
@click.option("--output", type=Output(), help="Write the table to this CSV file.")
@csv_options
@force_option
def study(
    population: Path,
    count: str,
    models: tuple[str, ...],
    fractions: tuple[float, ...],
    samples: int,
    draws: int,
    weights: tuple[float, float, float],
    seed: int | None,
    workers: int | None,
    store: Path | None,
    output: Path | None,
    force: bool,
    sep: str | None,
    encoding: str | None,
) -> None:
    """Compare estimates with a known population: bias, RMSE, coverage.

    Repeated samples are drawn from the population, and each estimator is fitted to
    every one of them.

    POPULATION is a CSV or Parquet file in long form, as for assess.
    """
    import taciturn as tc

    check_tables(population)
    check_csv(output)
    with working("loading libraries, reading the table"):
        table = tc.read_table(population, count=count, sep=sep, encoding=encoding)
    try:
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
    except KeyboardInterrupt:
        if store is not None:
            click.echo(f"taciturn: the same command continues from {store}", err=True)
        raise
    rows = tc.studies.study_table(result)
    if output is not None:
        write_csv(rows.set_index("fraction"), output, overwrite=force)
    shown = rows[[name for name in rows.columns if not name.endswith("_mcse")]]
    click.echo(shown.to_string(index=False, float_format=lambda value: f"{value:.4f}"))
    click.echo(
        f"\n{samples} samples per fraction, {draws} draws each. Monte Carlo errors: --output."
    )
