"""Commands that hold estimators and fits against what is known: ``study`` and ``validate``."""

import sys
from pathlib import Path

import click

from taciturn.cli._files import check_csv, write_csv
from taciturn.cli._options import _MODELS, EXIT_ERROR, EXIT_INTERRUPTED, Weights
from taciturn.errors import FileFormatError, TaciturnError

__all__ = ["study", "validate"]


class Fractions(click.ParamType[tuple[float, ...]]):
    """Sampling fractions joined by commas."""

    name = "x,y,..."

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[float, ...]:
        """Read ``0.1,0.05``."""
        if isinstance(value, tuple):
            return value
        try:
            return tuple(float(part) for part in str(value).split(","))
        except ValueError as error:
            self.fail(f"{value!r}: {error}", param, ctx)


@click.command()
@click.argument("population", type=click.Path(path_type=Path))
@click.option("--count", default="count", show_default=True, help="Column of counts in POPULATION.")
@click.option(
    "--model", "models", type=click.Choice(list(_MODELS)), multiple=True, required=True, help="Estimator; repeatable."
)
@click.option("--fractions", type=Fractions(), default="0.1,0.05,0.01", show_default=True, help="Sampling fractions.")
@click.option("--samples", type=click.IntRange(1), default=200, show_default=True, help="Samples for each fraction.")
@click.option("--draws", type=click.IntRange(1), default=1000, show_default=True, help="Draws for each sample.")
@click.option(
    "--weights", type=Weights(), default="0.1,0.8,0.1", show_default=True, help="Of the three terms of R1 and R2."
)
@click.option("--seed", type=click.IntRange(0), help="The same seed gives the same numbers.")
@click.option("--workers", type=click.IntRange(1), help="Processes; all cores by default.")
@click.option("--store", type=click.Path(path_type=Path), help="File to keep what is done in, and to continue from.")
@click.option("--output", type=click.Path(path_type=Path), help="Write the table to this CSV file.")
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
) -> None:
    """Hold estimators against a known population: bias, RMSE and coverage over repeated samples.

    POPULATION is a CSV or Parquet file in long form, as for assess.
    """
    import taciturn as tc
    from taciturn._files import check_writable
    from taciturn.estimators import ESTIMATORS

    table = tc.read_table(population, count=count)
    if store is not None:
        check_writable(store)
    if output is not None:
        check_csv(output, source=population)
    try:
        result = tc.study(
            table,
            {model: ESTIMATORS[_MODELS[model]]() for model in models},
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
        if store is None:
            raise
        click.echo(f"taciturn: interrupted; the same command continues from {store}", err=True)
        sys.exit(EXIT_INTERRUPTED)
    rows = tc.study_table(result)
    if output is not None:
        write_csv(rows.set_index("fraction"), output)
    shown = rows[[name for name in rows.columns if not name.endswith("_mcse")]]
    click.echo(shown.to_string(index=False, float_format=lambda value: f"{value:.4f}"))
    click.echo(f"\n{samples} samples a fraction, {draws} draws each. Monte Carlo errors: --output.")


@click.command()
@click.argument("cards", type=click.Path(path_type=Path), nargs=-1, required=True)
def validate(cards: tuple[Path, ...]) -> None:
    """Fit again what model cards describe, and compare with their reference.

    CARDS are model cards or folders of them. Each mean must lie within four combined Monte Carlo errors of its
    reference.

    Exit status: 0 all cards agree, 1 one does not or cannot be read.
    """
    import warnings

    import taciturn as tc

    paths = [path for given in cards for path in _cards_in(given)]
    failed = []
    for number, path in enumerate(paths, start=1):
        click.echo(f"{number}/{len(paths)} {path}", err=True)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", tc.ConvergenceWarning)  # the check says it
                check = tc.validate_card(path)
        except TaciturnError as error:
            failed.append(path)
            click.echo(f"taciturn: error: {error}", err=True)
            continue
        click.echo(f"{check}\n")
        if not check.passed:
            failed.append(path)
    click.echo(f"{len(paths) - len(failed)} of {len(paths)} cards agree with their references")
    if failed:
        sys.exit(EXIT_ERROR)


def _cards_in(given: Path) -> list[Path]:
    """The cards of a folder, or the file itself."""
    if not given.is_dir():
        return [given]
    found = sorted(given.glob("*.toml"))
    if not found:
        raise FileFormatError(f"{given}: no model card (*.toml) in this folder")
    return found
