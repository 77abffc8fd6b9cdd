"""What is printed of a suppression pattern, which is not for release."""

from typing import TYPE_CHECKING, Any

import click

from taciturn.cli.text import printable

if TYPE_CHECKING:
    import pandas as pd

    from taciturn.suppression import SuppressionPattern

__all__ = ["margins_table", "pattern_facts", "pattern_text", "show_unproved"]


def show_unproved(pattern: "SuppressionPattern") -> None:
    """Print a pattern that is not proved to protect, which is then not written."""
    if pattern.not_for_release:
        click.echo(pattern_text(pattern), err=True)


def pattern_text(pattern: "SuppressionPattern") -> str:
    """How many cells are primary and secondary, and whether there was time for all."""
    lines = [printable(line) for line in str(pattern).splitlines()]
    if pattern.not_for_release:
        lines.append("nothing is written; a longer time limit may do")
    elif not pattern.complete:
        lines.append("the time limit ended the search; a longer one may suppress less")
    return "\n".join(lines)


def pattern_facts(pattern: "SuppressionPattern") -> dict[str, Any]:
    """The same as values, without the cost, which is a sum of suppressed values."""
    from taciturn.schema import PRIMARY, SAFE, SECONDARY

    return {
        "not_for_release": "this tells primary cells from secondary ones",
        "margins": [
            {
                "variables": list(names),
                "cells": status.size,
                **{kind: int((status == kind).sum()) for kind in (PRIMARY, SECONDARY, SAFE)},
            }
            for names, status in pattern.status.items()
        ],
        "gap": pattern.gap if pattern.bound > 0 or pattern.cost == 0 else None,
        "rank_decrease": pattern.rank_decrease,
        "complete": pattern.complete,
        "unproved": pattern.n_unproved,
    }


def margins_table(pattern: "SuppressionPattern") -> "pd.DataFrame":
    """A row for each margin; its columns say what is not for release."""
    import pandas as pd

    margins = pattern_facts(pattern)["margins"]
    rows = [{**row, "variables": " x ".join(row["variables"])} for row in margins]
    names = {name: f"{name}_not_for_release" for name in ("primary", "secondary")}
    return pd.DataFrame(rows).rename(columns=names)
