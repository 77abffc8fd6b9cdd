"""``taciturn compare``: compare fits of one sample."""

from pathlib import Path
from typing import Literal

import click

from taciturn.cli.files import FileCommand, Input, Output, force_option
from taciturn.cli.options import SEED
from taciturn.cli.printing import Format, format_option, print_as
from taciturn.cli.working import working
from taciturn.files import check_readable

__all__ = ["compare"]


@click.command(cls=FileCommand)
@click.argument("fits", nargs=-1, required=True, type=Input(), metavar="FIT.nc FIT.nc ...")
@click.option(
    "--method",
    type=click.Choice(["stacking", "bb-pseudo-bma", "pseudo-bma"]),
    default="stacking",
    show_default=True,
    help="How the weights are chosen.",
)
@click.option("--seed", type=SEED, help="The same seed saves the same mixture.")
@click.option(
    "--save",
    type=Output(".nc"),
    help="Write the mixture with these weights to this netCDF file.",
)
@format_option
@force_option
def compare(
    fits: tuple[Path, ...],
    method: Literal["stacking", "bb-pseudo-bma", "pseudo-bma"],
    seed: int | None,
    save: Path | None,
    form: Format,
    force: bool,
) -> None:
    """Compare saved fits by leave-one-out prediction.

    FIT.nc are files that assess --save wrote, all of one sample. The better fit gives
    an individual who is left out a higher probability. Each fit is named after its
    file.

    Exit status: 0 done, 1 error, 2 wrong usage.
    """
    import warnings

    import taciturn as tc

    names = [path.stem for path in fits]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise click.UsageError(
            f"two fits would be called {twice[0]!r}: copy one to a file of another name"
        )
    if len(names) < 2:
        raise click.UsageError(f"a comparison needs at least two fits, got {names[0]!r} alone")
    for path in fits:
        check_readable(path)
    with working("loading libraries, reading the fits"):
        named = {name: tc.read_fit(path) for name, path in zip(names, fits, strict=True)}
    with working("comparing the fits"), warnings.catch_warnings():
        # The table and the text say so.
        warnings.simplefilter("ignore", tc.errors.ComparisonWarning)
        table = tc.compare(named, method=method)
        stacked = None if save is None else tc.fits.stack(named, method=method, random_seed=seed)
    if stacked is not None and save is not None:
        tc.save_fit(stacked, save, overwrite=force)
    from taciturn.fits.comparison import comparison_text

    shown = table.drop(columns=["rank", "diag_diff", "high_k"])
    rows, words = table.rename_axis("fit").reset_index(), comparison_text(table)
    print_as(
        form,
        text=f"{shown.to_string(float_format=lambda value: f'{value:.2f}')}\n\n{words}",
        facts={"method": method, "fits": rows.to_dict("records"), "sentence": words, "saved": save},
        table=rows,
    )
