"""The command line: ``taciturn assess SAMPLE.csv --population-size N``.

Heavy libraries are imported inside the commands, so that ``--help`` is quick.
"""

import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import click

from taciturn import __version__
from taciturn.errors import FileFormatError, TaciturnError

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    import taciturn as tc

__all__ = ["main"]

EXIT_ERROR: Final = 1
EXIT_NOT_CONVERGED: Final = 3
EXIT_INTERRUPTED: Final = 130

_MODELS: Final = {
    "linear-pool": "LinearPool",
    "dirichlet-log-linear": "DirichletLogLinear",
    "chinese-restaurant": "ChineseRestaurant",
    "latent-class": "LatentClass",
    "log-linear": "LogLinear",
    "polya-urn": "PolyaUrn",
}


class Weights(click.ParamType[tuple[float, float, float]]):
    """Three numbers joined by commas."""

    name = "w1,w2,w3"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[float, float, float]:
        """Read ``0.1,0.8,0.1``."""
        from taciturn.risk.table_risk import check_weights

        if isinstance(value, tuple):
            return value
        try:
            return check_weights([float(part) for part in re.split(r"\s*,\s*", str(value))])
        except ValueError as error:
            self.fail(f"{value!r}: {error}", param, ctx)


class Model(click.ParamType[str]):
    """The name of an estimator, or a file that is a model card."""

    name = "model"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Refuse what is neither."""
        model = str(value)
        if model not in _MODELS and not _is_card(model):
            self.fail(f"{model!r} is no model card and none of {', '.join(_MODELS)}", param, ctx)
        return model


def _is_card(model: str) -> bool:
    return model not in _MODELS and (model.lower().endswith(".toml") or Path(model).is_file())


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="taciturn")
def cli() -> None:
    """Measure how much a table gives away about people, and how sure one can be."""


@cli.command()
@click.argument("sample", type=click.Path(path_type=Path))
@click.option("--population-size", "-N", type=int, required=True, help="Individuals in the population.")
@click.option("--count", default="count", show_default=True, help="Column of counts in SAMPLE.")
@click.option(
    "--model",
    type=Model(),
    metavar="NAME|CARD.toml",
    default="linear-pool",
    show_default=True,
    help=f"Estimator: {', '.join(_MODELS)}, or that of a model card.",
)
@click.option(
    "--known-margins", type=click.Path(path_type=Path), help="File with the population's table over some variables."
)
@click.option("--formula", help="Log-linear formula, such as '~ area * religion'; main effects by default.")
@click.option(
    "--weights", type=Weights(), default="0.1,0.8,0.1", show_default=True, help="Of the three terms of R1 and R2."
)
@click.option("--threshold", type=click.FloatRange(0, 1), help="Also give the probability that R2 is above this.")
@click.option("--draws", type=click.IntRange(1), default=1000, show_default=True, help="Draws per chain.")
@click.option("--tune", type=click.IntRange(1), default=1000, show_default=True, help="Warm-up draws per chain.")
@click.option("--chains", type=click.IntRange(1), default=4, show_default=True, help="Chains.")
@click.option(
    "--method",
    type=click.Choice(["fast", "nuts"]),
    default="fast",
    show_default=True,
    help="Without a Markov chain where that works, or by NUTS.",
)
@click.option("--seed", type=click.IntRange(0), help="The same seed gives the same numbers.")
@click.option("--save", type=click.Path(path_type=Path), help="Write the fit to this netCDF file, which ArviZ reads.")
def assess(
    sample: Path,
    population_size: int,
    count: str,
    model: str,
    known_margins: Path | None,
    formula: str | None,
    weights: tuple[float, float, float],
    threshold: float | None,
    draws: int,
    tune: int,
    chains: int,
    method: Literal["fast", "nuts"],
    seed: int | None,
    save: Path | None,
) -> None:
    """Estimate the disclosure risk of a sample table.

    SAMPLE is a CSV or Parquet file in long form: one row a cell, one column a variable, one column of counts. List
    categories that nobody in the sample has with count 0: they are cells too.

    Exit status: 0 done, 1 error, 2 wrong usage, 3 the sampler did not converge.
    """
    import warnings

    import taciturn as tc
    from taciturn.fits import check_writable

    if threshold is not None and not 0 <= threshold <= 1:  # click lets NaN pass
        raise click.UsageError(f"--threshold must be from 0 to 1, got {threshold}")
    table = tc.read_table(sample, count=count)
    margins = None if known_margins is None else tc.read_table(known_margins, count=count)
    if save is not None:
        check_writable(save)
    estimator = _estimator(model, formula)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tc.ConvergenceWarning)  # the summary and the exit status say it
        fit = estimator.fit(
            table,
            population_size=population_size,
            known_margins=margins,
            draws=draws,
            tune=tune,
            chains=chains,
            random_seed=seed,
            method=method,
            progressbar=sys.stderr.isatty(),
        )
    fit = tc.assess(fit, weights=weights)
    result = tc.summary(fit, threshold=threshold)
    if save is not None:
        tc.save_fit(fit, save)
    click.echo(result)
    if not result.converged:
        click.echo("taciturn: the sampler did not converge", err=True)
        sys.exit(EXIT_NOT_CONVERGED)


def _estimator(model: str, formula: str | None) -> "tc.Estimator":
    """The estimator of that name or card; in a pool the formula is the log-linear member's."""
    import taciturn as tc
    from taciturn.estimators import ESTIMATORS, estimator_from_spec

    if _is_card(model):
        if formula is not None:
            raise click.UsageError("--formula does not apply to a model card, which has its own")
        return tc.load_card(model).estimator
    if formula is None:
        return ESTIMATORS[_MODELS[model]]()
    if model in ("chinese-restaurant", "latent-class"):
        raise click.UsageError(f"--formula does not apply to --model {model}")
    if model == "linear-pool":
        return tc.LinearPool({**tc.LinearPool().members, "dirichlet": tc.DirichletLogLinear(formula)})
    return estimator_from_spec({"estimator": _MODELS[model], "formula": formula})


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


@cli.command()
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
    from taciturn.estimators import ESTIMATORS
    from taciturn.fits import check_writable

    table = tc.read_table(population, count=count)
    if store is not None:
        check_writable(store)
    if output is not None:
        _check_csv(output, source=population)
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
        _write_csv(rows.set_index("fraction"), output)
    shown = rows[[name for name in rows.columns if not name.endswith("_mcse")]]
    click.echo(shown.to_string(index=False, float_format=lambda value: f"{value:.4f}"))
    click.echo(f"\n{samples} samples a fraction, {draws} draws each. Monte Carlo errors: --output.")


@cli.command()
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


@cli.command()
@click.argument("fits", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FIT.nc FIT.nc ...")
@click.option(
    "--method",
    type=click.Choice(["stacking", "bb-pseudo-bma", "pseudo-bma"]),
    default="stacking",
    show_default=True,
    help="How the weights are chosen.",
)
@click.option("--seed", type=click.IntRange(0), help="Of the order of the fits in the mixture that is saved.")
@click.option("--save", type=click.Path(path_type=Path), help="Write the mixture with these weights to this file.")
def compare(
    fits: tuple[Path, ...],
    method: Literal["stacking", "bb-pseudo-bma", "pseudo-bma"],
    seed: int | None,
    save: Path | None,
) -> None:
    """Compare saved fits of one sample by how well each predicts the cell of a person left out.

    FIT.nc are files of assess --save. A fit is called by the name of its file.

    Exit status: 0 done, 1 error, 2 wrong usage.
    """
    import warnings

    import taciturn as tc
    from taciturn.comparison import comparison_text
    from taciturn.fits import check_writable

    names = [path.stem for path in fits]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise click.UsageError(f"two fits would be called {twice[0]!r}: copy one to a file of another name")
    if save is not None:
        check_writable(save)
    named = {name: tc.read_fit(path) for name, path in zip(names, fits, strict=True)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tc.ComparisonWarning)  # the table and the text say it
        table = tc.compare(named, method=method)
        stacked = None if save is None else tc.stack(named, method=method, random_seed=seed)
    if stacked is not None and save is not None:
        tc.save_fit(stacked, save)
    shown = table.drop(columns=["rank", "diag_diff", "high_k"])
    click.echo(shown.to_string(float_format=lambda value: f"{value:.2f}"))
    click.echo(f"\n{comparison_text(table)}")


_METHODS: Final = {
    "random-round": ("random_round", {"base"}),
    "conventional-round": ("conventional_round", {"base"}),
    "controlled-round": ("controlled_round", {"base"}),
    "small-cell-adjust": ("small_cell_adjust", {"threshold"}),
    "suppress-cells": ("suppress_cells", {"threshold"}),
    "cell-key": ("cell_key", {"max_noise", "variance"}),
    "geometric-noise": ("geometric_noise", {"epsilon"}),
}
"""Functions of the methods that need no microdata, and their options."""
_CERTAIN: Final = {"conventional-round", "suppress-cells"}
_NEEDED: Final = {"geometric-noise": "epsilon", "suppress-cells": "threshold"}


@cli.command()
@click.argument("table", type=click.Path(path_type=Path))
@click.option("--count", default="count", show_default=True, help="Column of counts in TABLE.")
@click.option("--method", type=click.Choice(list(_METHODS)), required=True, help="How to protect it.")
@click.option("--base", type=int, help="Of rounding; 3, of conventional rounding 5, by default.")
@click.option("--threshold", type=int, help="The smallest count that is kept; 3 to adjust, by default.")
@click.option("--max-noise", type=int, help="Of the cell key: the largest change; 3 by default.")
@click.option("--variance", type=float, help="Of the cell key's noise; 1 by default.")
@click.option("--epsilon", type=float, help="Of geometric noise: the smaller, the more noise.")
@click.option(
    "--replicates", type=click.IntRange(1, 1_000_000), default=1, show_default=True, help="Independent releases."
)
@click.option("--seed", type=click.IntRange(0), help="The same seed gives the same release.")
@click.option("--output", type=click.Path(path_type=Path), help="Write the release to this CSV file, in long form.")
@click.option("--report", is_flag=True, help="Print what the release leaves of the risk and what it costs.")
def perturb(
    table: Path,
    count: str,
    method: str,
    replicates: int,
    seed: int | None,
    output: Path | None,
    report: bool,
    **given: Any,
) -> None:
    """Protect a table: round it, adjust or suppress small cells, or add noise.

    TABLE is a CSV or Parquet file in long form, as for assess. Several replicates show what the method may release; the
    file then has a column `replicate`. To swap records takes microdata: see swap_records in Python.
    """
    import taciturn as tc

    if output is None and not report:
        raise click.UsageError("give --output, --report or both: otherwise nothing would be done with the release")
    function, options = _METHODS[method]
    chosen: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    for name in chosen:
        if name not in options:
            raise click.UsageError(f"--{name.replace('_', '-')} does not apply to --method {method}")
    if (needed := _NEEDED.get(method)) and needed not in chosen:
        raise click.UsageError(f"--method {method} needs --{needed}")
    if method in _CERTAIN and (replicates > 1 or seed is not None):
        raise click.UsageError(f"--method {method} has no randomness: --replicates and --seed do not apply")
    original = tc.read_table(table, count=count)
    if output is not None:
        _check_csv(output, source=table)
    if method not in _CERTAIN:
        chosen |= {"replicates": replicates, "random_seed": seed}
    if method == "cell-key":
        noise, variance = chosen.pop("max_noise", 3), chosen.pop("variance", 1.0)
        chosen["perturbation"] = tc.perturbation_table(noise, variance)
    release = getattr(tc, function)(original, **chosen)
    text = None
    if report:
        found = tc.risk_utility({"as it is": original, method: release}, original=original)
        text = _report_text(found, method, release.sizes["replicate"])
    if output is not None:
        single = release.sizes["replicate"] == 1
        rows = (release.isel(replicate=0, drop=True) if single else release).rename(count)
        _write_csv(rows.to_dataframe()[[count]], output)
    if text is not None:
        click.echo(text)


def _check_csv(output: Path, *, source: Path) -> None:
    """Raise before any work where the output would not be a CSV file of its own."""
    from taciturn.fits import check_writable

    check_writable(output)
    try:
        exists, same = output.exists(), output.exists() and output.samefile(source)
    except OSError as error:
        raise FileFormatError(f"{output}: cannot be written: {error}") from error
    if exists and not output.is_file():
        raise FileFormatError(f"{output}: is no regular file")
    if same:
        raise FileFormatError(f"{output}: is the file that is read; give the output a name of its own")
    if output.suffix.lower() in (".parquet", ".pq"):
        raise FileFormatError(f"{output}: the output is a CSV file, which this is no name for")


def _write_csv(table: "pd.DataFrame", output: Path) -> None:
    """Write rows with their index; complete or not at all."""
    temporary = output.with_name(f".{output.name}.{os.getpid()}.part")
    try:
        table.to_csv(temporary)
        temporary.replace(output)
    except OSError as error:
        raise FileFormatError(f"{output}: cannot be written: {error}") from error
    finally:
        if temporary.exists():
            temporary.unlink()


def _report_text(found: "xr.Dataset", method: str, replicates: int) -> str:
    """A line for each measure, before and after."""
    percent = f"{100 * found.attrs['probability']:g} %"
    lines = [f"{replicates} release{'s' if replicates > 1 else ''} by {method}", ""]
    lines.append(f"{'':<20}{'as it is':>12}{'released':>12}{f'{percent} of releases':>28}")
    for name, values in found.data_vars.items():
        before = float(values.sel(protection="as it is", statistic="mean"))
        after, low, high = (float(v) for v in values.sel(protection=method))
        lines.append(f"{str(name).replace('_', ' '):<20}{before:>12.4f}{after:>12.4f}{f'{low:.4f} to {high:.4f}':>28}")
    return "\n".join(lines)


def main() -> None:
    """Run the command line; whatever goes wrong is a message and an exit status, never a traceback."""
    try:
        cli(standalone_mode=False)
    except click.exceptions.Exit as done:
        sys.exit(done.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (KeyboardInterrupt, click.Abort):
        click.echo("taciturn: interrupted, nothing was written", err=True)
        sys.exit(EXIT_INTERRUPTED)
    except TaciturnError as error:
        click.echo(f"taciturn: error: {error}", err=True)
        sys.exit(EXIT_ERROR)
    except MemoryError:
        click.echo("taciturn: error: not enough memory for this table; use fewer draws", err=True)
        sys.exit(EXIT_ERROR)
    except Exception as error:  # the last resort of a command line
        click.echo(f"taciturn: internal error, please report it: {type(error).__name__}: {error}", err=True)
        sys.exit(EXIT_ERROR)
