"""``taciturn validate``: refit model cards."""

import sys
from pathlib import Path

import click

from taciturn.cli.files import FileCommand, Input
from taciturn.cli.options import EXIT_ERROR
from taciturn.errors import FileFormatError, TaciturnError
from taciturn.files import check_readable

__all__ = ["validate"]


@click.command(cls=FileCommand)
@click.argument("cards", type=Input(), nargs=-1, required=True)
def validate(cards: tuple[Path, ...]) -> None:
    """Refit model cards and compare the results with their references.

    CARDS are model cards or folders of them. Every mean must lie within four combined
    Monte Carlo errors of its reference.

    Exit status: 0 all cards agree, 1 a card does not agree or cannot be read.
    """
    import warnings

    import taciturn as tc

    paths = [path for given in cards for path in _cards_in(given)]
    failed = []
    for number, path in enumerate(paths, start=1):
        click.echo(f"{number}/{len(paths)} {path}", err=True)
        try:
            check_readable(path)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", tc.ConvergenceWarning)  # the check says so
                check = tc.cards.validate_card(path)
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
