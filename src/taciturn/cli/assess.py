"""``taciturn assess``: fit a model to a sample and summarise its risk."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from taciturn.cli.conditions import CHECKS, Condition, fail_on_option
from taciturn.cli.files import (
    FileCommand,
    Input,
    Output,
    check_tables,
    force_option,
    read_counts,
    variables_option,
)
from taciturn.cli.fitting import fitted, print_summary
from taciturn.cli.options import (
    MOST_COUNT,
    Model,
    Names,
    Number,
    Whole,
    check_model,
    count_option,
    csv_options,
    draws_option,
    is_card,
    seed_option,
    weights_option,
)
from taciturn.cli.printing import Format, format_option
from taciturn.cli.working import working
from taciturn.estimators.registry import COMMANDS
from taciturn.files import TableFile

if TYPE_CHECKING:
    from collections.abc import Callable

    import xarray as xr

    import taciturn as tc

__all__ = ["assess"]


@click.command(cls=FileCommand)
@click.argument("sample", type=Input(stream=True))
@click.option(
    "--population-size",
    "-N",
    type=Whole(1, MOST_COUNT),
    required=True,
    help="Individuals in the population.",
)
@count_option("SAMPLE")
@variables_option
@click.option(
    "--model",
    type=Model(),
    metavar="NAME|CARD.toml",
    help=f"Estimator: {', '.join(COMMANDS)}, or that of a model card. By default"
    " latent-class for six or more variables; for fewer, or with a formula, known margins, strata"
    " or weights, a pool of two kinds of mixed-poisson. dirichlet-log-linear is part of it for two"
    " variables, and for one with a formula, known margins or strata, but not with weights. With"
    " an effective size, mixed-poisson alone.",
)
@click.option(
    "--known-margins",
    type=Input(stream=True),
    help="File of the population's table over some of the variables.",
)
@click.option(
    "--strata",
    type=Input(stream=True),
    help="The same of a sample drawn in each of these cells, with any sampling fractions.",
)
@click.option(
    "--sampling-weights",
    metavar="COLUMN",
    help="Column of weights of the individuals; with --variables.",
)
@click.option(
    "--effective-size",
    type=Number(1),
    help="Number of people who, sampled one by one, would say as much of the cells, where some"
    " were sampled together; with --sampling-weights.",
)
@click.option(
    "--formula", help="Log-linear formula, such as '~ area * religion'; main effects by default."
)
@weights_option
@click.option(
    "--by",
    type=Names(),
    default="",
    help="Variables each of whose categories is assessed, too, as a table of its own.",
)
@click.option(
    "--threshold",
    type=Number(0, 1),
    help="Also give the probability that R2 exceeds this.",
)
@draws_option("chain")
@click.option(
    "--tune",
    type=Whole(1),
    default=1000,
    show_default=True,
    help="Warm-up draws per chain.",
)
@click.option("--chains", type=Whole(1), default=4, show_default=True, help="Chains.")
@click.option(
    "--method",
    type=click.Choice(["fast", "nuts"]),
    default="fast",
    show_default=True,
    help="Draw without a Markov chain where that works, or by NUTS.",
)
@seed_option
@click.option(
    "--save",
    type=Output(".nc"),
    help="Write the fit to this netCDF file, which ArviZ reads.",
)
@fail_on_option("risk", CHECKS)
@format_option
@csv_options
@force_option
def assess(
    sample: TableFile,
    population_size: int,
    count: str,
    variables: tuple[str, ...] | None,
    model: str | None,
    known_margins: TableFile | None,
    strata: TableFile | None,
    sampling_weights: str | None,
    effective_size: float | None,
    formula: str | None,
    weights: tuple[float, float, float],
    by: tuple[str, ...],
    threshold: float | None,
    draws: int,
    tune: int,
    chains: int,
    method: Literal["fast", "nuts"],
    seed: int | None,
    save: Path | None,
    fail_on: tuple[Condition, ...],
    form: Format,
    force: bool,
    sep: str | None,
    encoding: str | None,
) -> None:
    """Estimate the disclosure risk of a sample table.

    SAMPLE is a CSV or Parquet file in long form, or CSV from standard input, '-': one
    row per cell, one column per variable, one column of counts. List categories that
    nobody in the sample has with count 0: they are cells too. With --variables it has
    one row per individual instead; for missing labels, and categories that nobody in
    the sample has, tabulate it first.

    Exit status: 0 done, 1 error, 2 wrong usage, 3 the sampler did not converge,
    4 a condition of --fail-on holds.
    """
    import taciturn as tc

    check_model(model, formula)
    check_tables(sample, known_margins, strata)
    _check_weights(sample, variables, sampling_weights)
    with working("loading libraries, reading the table"):
        read = partial(read_counts, count=count, sep=sep, encoding=encoding)
        table = read(sample, variables=variables)
        known = _known(read, known_margins=known_margins, strata=strata)
        known["sampling_weights"] = _weights_of(sample, variables, sampling_weights, sep, encoding)
        from taciturn.fits.risk import check_by  # after reading, which needs much less

        check_by(by, tuple(map(str, table.dims)))  # before the fit, which takes its time
        estimator = _estimator(model, formula, table, known, effective_size)
        _check_method(method, estimator)
    settings = {"draws": draws, "tune": tune, "chains": chains, "method": method}
    size = {"population_size": population_size, "effective_size": effective_size}
    fit = fitted(estimator, table, random_seed=seed, **size, **known, **settings)
    with working("summarising the risk"):
        fit = tc.assess(fit, weights=weights, by=by)
        found = tc.summary(fit, threshold=threshold)
    if save is not None:
        tc.save_fit(fit, save, overwrite=force)
    print_summary(found, form, fit, fail_on)


def _known(
    read: "Callable[..., xr.DataArray]", **files: TableFile | None
) -> dict[str, "xr.DataArray | None"]:
    """The tables that are known of the population."""
    return {
        name: None if file is None else read(file, variables=None) for name, file in files.items()
    }


def _check_weights(sample: TableFile, variables: object, sampling_weights: str | None) -> None:
    if sampling_weights is not None and (variables is None or not isinstance(sample, Path)):
        raise click.UsageError("--sampling-weights needs --variables, and a file of individuals")


def _weights_of(
    sample: TableFile,
    variables: tuple[str, ...] | None,
    sampling_weights: str | None,
    sep: str | None,
    encoding: str | None,
) -> "xr.DataArray | None":
    """Sums of the weights of the individuals of each cell, if they have any."""
    import taciturn as tc

    if sampling_weights is None or variables is None:
        return None
    return tc.tabulate(
        sample, variables, sampling_weights=sampling_weights, sep=sep, encoding=encoding
    )


def _estimator(
    model: str | None,
    formula: str | None,
    table: "xr.DataArray",
    known: dict[str, "xr.DataArray | None"],
    effective_size: float | None,
) -> "tc.estimators.Estimator":
    """The estimator of that name or card, with the formula if there is one; without a
    name the default for the table.
    """
    import taciturn as tc

    if model is None:
        return tc.default_estimator(table, formula=formula, effective_size=effective_size, **known)
    if is_card(model):
        return tc.cards.load_card(model).estimator
    estimator = tc.estimators.ESTIMATORS[COMMANDS[model].name]()
    return estimator if formula is None else estimator.with_formula(formula)


def _check_method(method: str, estimator: "tc.estimators.Estimator") -> None:
    import taciturn as tc

    if method == "nuts" and isinstance(estimator, tc.LatentClass):
        raise click.UsageError(
            "--method nuts does not apply to latent-class, the default for six or more"
            " variables: leave it out, or choose another --model"
        )
