"""``taciturn perturb``: protect a table of counts."""

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import click

from taciturn.cli.files import (
    FileCommand,
    Input,
    StandardOutput,
    Target,
    check_tables,
    force_option,
    read_counts,
    release_output_option,
    variables_option,
    write_release,
)
from taciturn.cli.fitting import exit_unless, fitted, warn_of
from taciturn.cli.options import MOST_COUNT, SEED, Number, Whole, count_option, csv_options
from taciturn.cli.printing import Format, format_option, print_as
from taciturn.cli.working import working
from taciturn.files import TableFile

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    import pandas as pd
    import xarray as xr

    import taciturn as tc

__all__ = ["perturb"]

_METHODS: Final = {
    "random-round": {"rounding_base"},
    "conventional-round": {"rounding_base"},
    "controlled-round": {"rounding_base"},
    "round-small-counts": {"rounding_base"},
    "adjust-small-cells": {"minimum"},
    "suppress-small-cells": {"minimum"},
    "cell-key": {"max_noise", "variance", "js", "pstay"},
    "add-noise": {"epsilon"},
}
"""Methods that need no microdata, named after their functions, and their options."""
_CERTAIN: Final = {"conventional-round", "suppress-small-cells"}
_NEEDED: Final = {"add-noise": "epsilon", "suppress-small-cells": "minimum"}


@click.command(cls=FileCommand)
@click.argument("table", type=Input(stream=True))
@count_option("TABLE")
@variables_option
@click.option(
    "--method", type=click.Choice(list(_METHODS)), required=True, help="Protection method."
)
@click.option(
    "--rounding-base",
    type=Whole(2, MOST_COUNT),
    help="Base of rounding; by default 3, in conventional rounding 5.",
)
@click.option(
    "--minimum",
    type=Whole(2, MOST_COUNT),
    help="Smallest count that is kept; 3 by default where cells are adjusted.",
)
@click.option(
    "--max-noise",
    type=Whole(1, 100),
    help="Largest change by the cell key; 3 by default.",
)
@click.option(
    "--variance",
    type=Number(0, min_open=True),
    help="Largest variance of the cell key's noise; 1 by default.",
)
@click.option(
    "--js",
    type=Whole(0, 100),
    help="Positive counts up to this one never come out of the cell key; 0 by default.",
)
@click.option(
    "--pstay",
    type=Number(0, 1, min_open=True),
    help="Probability that the cell key leaves a count as it is; by default free.",
)
@click.option(
    "--epsilon",
    type=Number(0, min_open=True),
    help="Privacy loss of added noise: the smaller, the more noise.",
)
@click.option(
    "--replicates",
    type=Whole(1),
    default=1,
    show_default=True,
    help="Independent releases.",
)
@click.option(
    "--seed",
    type=SEED,
    help="For a run that can be repeated; what it writes must not be released.",
)
@click.option(
    "--population-size",
    "-N",
    type=Whole(1, MOST_COUNT),
    help=(
        "TABLE is a sample of a population of this size, whose risk --report estimates as assess"
        " does by default. Without it TABLE is taken as the population."
    ),
)
@click.option(
    "--report",
    is_flag=True,
    help="Print how much risk the method leaves and what it costs; not for publication.",
)
@release_output_option()
@format_option
@csv_options
@force_option
def perturb(
    table: TableFile,
    count: str,
    variables: tuple[str, ...] | None,
    method: str,
    replicates: int,
    seed: int | None,
    output: Target | None,
    form: Format,
    force: bool,
    sep: str | None,
    encoding: str | None,
    population_size: int | None,
    report: bool,
    **given: Any,
) -> None:
    """Protect a table: round, adjust or suppress cells, or add noise.

    TABLE is a CSV or Parquet file in long form, as for assess, or CSV from standard
    input, '-'. The output has a row for each cell and its status, published or
    suppressed. Swapping records takes microdata: see swap_records in Python.

    Several replicates show what the method may release; the file then has a column
    `replicate`. Whoever has many of them, or tries seeds, comes close to the true
    table: with --replicates or --seed the column of counts ends in _not_for_release.

    Exit status: 0 done, 1 error, 2 wrong usage, 3 the sampler that --population-size
    asks for did not converge.
    """
    if output is None and not report:
        raise click.UsageError(
            "give --output, --report or both: otherwise nothing would be done with the release"
        )
    if population_size is not None and not report:
        raise click.UsageError("--population-size is for --report, which is not given")
    chosen: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    _check_options(method, chosen, drawn=replicates > 1 or seed is not None)
    check_tables(table)
    import pandas as pd

    with working("loading libraries, reading the table"):
        original = read_counts(table, count=count, variables=variables, sep=sep, encoding=encoding)
    protect = _method(original, method, chosen, replicates)
    release = protect() if seed is None else protect(random_seed=seed)
    text = f"{_releases(replicates)} by {method} written to {output}"
    facts = {"method": method, "replicates": replicates, "output": output}
    rows, found = pd.DataFrame([facts]), None
    if report:
        # Other draws than those of the file: the numbers must not tell what happened to
        # it.
        apart = output is not None and method not in _CERTAIN
        population, found = _population(original, population_size, seed)
        measured = protect(random_seed=_other_draws(seed)) if apart else release
        rows = _measures(original, measured, population, method)
        title = _title(method, replicates, population_size, apart=apart)
        text = _report_text(rows, title, found)
        facts = _facts(facts, rows, found) | {"population_size": population_size}
    if output is not None:
        _write(release, count, output, seeded=seed is not None, overwrite=force)
    print_as(form, text=text, facts=facts, table=rows, to_stderr=isinstance(output, StandardOutput))
    if found is not None:
        warn_of(found)
        exit_unless(found.converged)


def _method(
    table: "xr.DataArray", method: str, chosen: dict[str, Any], replicates: int
) -> "Callable[..., xr.DataArray]":
    """What makes releases of a table, by a `random_seed` if there is one."""
    import taciturn as tc

    if method == "cell-key":
        given = {name: chosen.pop(name) for name in _METHODS[method] & set(chosen)}
        noise = {"max_noise": 3, "variance": 1.0} | given
        chosen["perturbation"] = tc.perturbation.perturbation_table(**noise)
    protect = partial(getattr(tc.perturbation, method.replace("-", "_")), table, **chosen)
    return protect if method in _CERTAIN else partial(protect, replicates=replicates)


def _other_draws(seed: int | None) -> "np.random.Generator | None":
    """A source of other draws than those of a seed."""
    import numpy as np

    return None if seed is None else np.random.default_rng(np.random.SeedSequence(seed).spawn(1)[0])


def _population(
    sample: "xr.DataArray", population_size: int | None, seed: int | None
) -> tuple["xr.DataArray | None", "tc.fits.Summary | None"]:
    """Draws of the population that a sample comes from, by the default estimator of
    ``assess``, and their summary; none for a population of its own.
    """
    if population_size is None:
        return None, None
    import taciturn as tc

    fit = fitted(
        tc.default_estimator(sample), sample, population_size=population_size, random_seed=seed
    )
    found = tc.summary(tc.assess(fit))
    return fit["posterior_predictive"].to_dataset()["population"], found


def _releases(replicates: int) -> str:
    return f"{replicates} release{'s' if replicates > 1 else ''}"


def _title(method: str, replicates: int, population_size: int | None, *, apart: bool) -> str:
    """What the report is of, and whose the risk is."""
    title = f"{_releases(replicates)} by {method}"
    whose = (
        "The table is taken as the population itself. If it is a sample, this is not its risk:\n"
        "give --population-size."
        if population_size is None
        else f"Risk of the population of {population_size:,} that the sample comes from, estimated."
    )
    return f"{title}{', not those of the file' if apart else ''}\n{whose}"


def _check_options(method: str, chosen: dict[str, Any], *, drawn: bool) -> None:
    """Raise unless these options go with the method."""
    for name in chosen:
        if name not in _METHODS[method]:
            raise click.UsageError(
                f"--{name.replace('_', '-')} does not apply to --method {method}"
            )
    if (needed := _NEEDED.get(method)) and needed not in chosen:
        raise click.UsageError(f"--method {method} needs --{needed}")
    if method in _CERTAIN and drawn:
        raise click.UsageError(
            f"--method {method} has no randomness: --replicates and --seed do not apply"
        )


def _write(
    release: "xr.DataArray", count: str, output: Target, *, seeded: bool, overwrite: bool
) -> None:
    """Write the release, and say in the file and on the terminal if it must not be
    one.
    """
    several = release.sizes["replicate"] > 1
    why = [
        *(["it was drawn with --seed, and whoever tries seeds can undo it"] if seeded else []),
        *(["its replicates together come close to the true table"] if several else []),
    ]
    write_release(release, output, value=count, internal=bool(why), overwrite=overwrite)
    if why:
        click.echo(f"taciturn: {output} must not be released: {'; '.join(why)}", err=True)


def _measures(
    table: "xr.DataArray", measured: "xr.DataArray", population: "xr.DataArray | None", method: str
) -> "pd.DataFrame":
    """A row for each measure, before and after."""
    import pandas as pd

    import taciturn as tc
    from taciturn.schema import RISK_MEASURES

    # One random release tells nothing of others; draws of a population have a range.
    alone = method not in _CERTAIN and measured.sizes["replicate"] == 1
    released = {"as it is": table, method: measured}
    found = tc.risk_utility(released, table=table, population=population)
    rows = []
    for name, values in found.data_vars.items():
        after, low, high = (float(v) for v in values.sel(protection=method))
        before = float(values.sel(protection="as it is", statistic="mean"))
        ends = [low, high, found.attrs["probability"]]
        known = not alone or (population is not None and name in RISK_MEASURES)
        rows.append([str(name), before, after, *(ends if known else [None] * 3)])
    columns = ["measure", "as_it_is", "released", "lower", "upper", "probability"]
    return pd.DataFrame(rows, columns=columns)


def _facts(
    facts: dict[str, Any], rows: "pd.DataFrame", found: "tc.fits.Summary | None"
) -> dict[str, Any]:
    """What the report says, after what is wrong with the fit."""
    return {
        "problems": [] if found is None else found.problems,
        **facts,
        "measures": rows.to_dict("records"),
        "not_for_release": "the measures tell of the true table",
    }


def _report_text(rows: "pd.DataFrame", title: str, found: "tc.fits.Summary | None") -> str:
    """A line for each measure, after a warning where the fit is not to be relied on."""
    warning = [found.sentence, ""] if found is not None and found.problems else []
    another = "Another release has other numbers: --replicates shows in which range they are."
    alone = rows["probability"].isna()  # of one random release, which has no range
    if alone.all():
        heading = f"{'':<24}{'as it is':>12}{'one release':>14}"
        own = [
            f"{name.replace('_', ' '):<24}{_figure(before):>12}{_figure(after):>14}"
            for name, before, after, *_ in rows.itertuples(index=False)
        ]
        return "\n".join([title, "", heading, *own, "", another])
    of = "of releases" if found is None else "interval"
    percent = f"{100 * rows['probability'].dropna().iloc[0]:g} % {of}"
    heading = f"{'':<24}{'as it is':>12}{'released':>12}{percent:>28}"
    lines = [*warning, title, "", heading]
    for of_one, row in zip(alone, rows.itertuples(index=False), strict=True):
        name, before, after, low, high, _ = row
        ends = f"{low:.4f} to {high:.4f}" if low == low else _figure(low)
        shown = "one release" if of_one else ends
        lines.append(
            f"{name.replace('_', ' '):<24}{_figure(before):>12}{_figure(after):>12}{shown:>28}"
        )
    return "\n".join([*lines, "", another] if alone.any() else lines)


def _figure(value: float) -> str:
    """A measure, which is NaN where it is not defined for a table."""
    return "not defined" if value != value else f"{value:.4f}"
