"""What commands print: text, one JSON object, or a table as CSV."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Literal

import click

from taciturn.files import as_csv

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Format", "format_option", "print_as"]

Format = Literal["text", "json", "csv"]

format_option: Final = click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "csv"]),
    default="text",
    show_default=True,
    help="Print text, all of it as one JSON object, or the table as CSV.",
)


def print_as(
    form: Format,
    *,
    text: str,
    facts: Mapping[str, Any],
    table: "pd.DataFrame",
    to_stderr: bool = False,
) -> None:
    """Print the text, the facts as JSON or the rows of the table without its index.

    In JSON a number that is missing or infinite is null, and what is no text, number or
    list is its text.
    """
    if form == "text":
        shown = text
    elif form == "json":
        from taciturn.tables.values import json_value

        shown = json.dumps(
            json_value(facts), indent=2, ensure_ascii=False, allow_nan=False, default=str
        )
    else:
        shown = as_csv(table).removesuffix("\n")
    click.echo(shown, err=to_stderr)
