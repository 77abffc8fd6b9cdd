"""The command that compares fits: ``compare``."""

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

if TYPE_CHECKING:
    pass

__all__ = ["compare"]


@click.command()
@click.argument(
    "fits", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FIT.nc FIT.nc ..."
)
@click.option(
    "--method",
    type=click.Choice(["stacking", "bb-pseudo-bma", "pseudo-bma"]),
    default="stacking",
    show_default=True,
    help="How the weights are chosen.",
)
@click.option(
    "--seed", type=click.IntRange(0), help="Of the order of the fits in the mixture that is saved."
)
@click.option(
    "--save",
    type=click.Path(path_type=Path),
    help="Write the mixture with these weights to this file.",
)
def compare(
    fits: tuple[Path, ...],
    method: Literal["stacking", "bb-pseudo-bma", "pseudo-bma"],
    seed: int | None,
    save: Path | None,
) -> None:
    """Compare saved fits of one sample by how well each predicts the cell of a person
    left out.

    FIT.nc are files of assess --save. A fit is called by the name of its file.

    Exit status: 0 done, 1 error, 2 wrong usage.
    """
    import warnings

    import taciturn as tc
    from taciturn.files import check_writable
    from taciturn.fits.comparison import comparison_text

    names = [path.stem for path in fits]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise click.UsageError(
            f"two fits would be called {twice[0]!r}: copy one to a file of another name"
        )
    if save is not None:
        check_writable(save)
    named = {name: tc.read_fit(path) for name, path in zip(names, fits, strict=True)}
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", tc.errors.ComparisonWarning
        )  # the table and the text say it
        table = tc.compare(named, method=method)
        stacked = None if save is None else tc.fits.stack(named, method=method, random_seed=seed)
    if stacked is not None and save is not None:
        tc.save_fit(stacked, save)
    shown = table.drop(columns=["rank", "diag_diff", "high_k"])
    click.echo(shown.to_string(float_format=lambda value: f"{value:.2f}"))
    click.echo(f"\n{comparison_text(table)}")
