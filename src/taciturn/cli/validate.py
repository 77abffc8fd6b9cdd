"""``taciturn validate``: refit model cards."""

import sys
from pathlib import Path

import click

from taciturn.cli.files import FileCommand, Input
from taciturn.cli.options import EXIT_ERROR
from taciturn.cli.printing import Format, format_option, print_as
from taciturn.cli.text import printable
from taciturn.errors import FileFormatError, TaciturnError
from taciturn.files import check_readable

__all__ = ["validate"]


@click.command(cls=FileCommand)
@click.argument("cards", type=Input(), nargs=-1, required=True, metavar="CARD.toml ...")
@format_option
def validate(cards: tuple[Path, ...], form: Format) -> None:
    """Refit model cards and compare the results with their references.

    CARD.toml are model cards or folders of them. Every mean must lie within four
    combined Monte Carlo errors of its reference.

    Exit status: 0 all cards agree, 1 a card does not agree or cannot be read, 2 wrong
    usage.
    """
    paths = [path for given in cards for path in _cards_in(given)]
    if not any(path.is_file() for path in paths):
        check_readable(paths[0])
    import warnings

    import pandas as pd

    import taciturn as tc

    texts, facts, tables = [], [], [pd.DataFrame(columns=["card", "quantity"])]
    for number, path in enumerate(paths, start=1):
        click.echo(f"{number}/{len(paths)} {path}", err=True)
        try:
            check_readable(path)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", tc.ConvergenceWarning)  # the check says so
                check = tc.cards.validate_card(path)
        except TaciturnError as error:
            facts.append({"card": path, "passed": False, "problems": [error.at_shell]})
            click.echo(f"taciturn: error: {printable(error.at_shell)}", err=True)
            continue
        texts.append(f"{check}\n\n")
        rows = check.table.rename_axis("quantity").reset_index()
        tables.append(rows.assign(card=str(path))[["card", *rows.columns]])
        found = {"passed": check.passed, "problems": list(check.problems)}
        facts.append({"card": path, **found, "quantities": rows.to_dict("records")})
    agree = sum(each["passed"] is True for each in facts)
    texts.append(f"{agree} of {len(paths)} cards agree with their references")
    print_as(
        form,
        text="".join(texts),
        facts={"agree": agree, "of": len(paths), "cards": facts},
        table=pd.concat(tables),
    )
    if agree < len(paths):
        sys.exit(EXIT_ERROR)


def _cards_in(given: Path) -> list[Path]:
    """The cards of a folder, or the file itself."""
    if not given.is_dir():
        return [given]
    found = sorted(given.glob("*.toml"))
    if not found:
        raise FileFormatError(f"{given}: no model card (*.toml) in this folder")
    return found
