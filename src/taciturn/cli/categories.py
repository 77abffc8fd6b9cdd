"""``--categories``: those that the records of some variables may have."""

from typing import Any

import click

from taciturn.cli.files import Input
from taciturn.errors import TableError
from taciturn.files import TableFile

__all__ = ["categories_option", "declared_categories"]

categories_option = click.option(
    "--categories",
    type=Input(stream=True),
    multiple=True,
    help=(
        "File that lists the categories of a variable, in the column called so, in their order;"
        " repeatable."
    ),
)


def declared_categories(
    files: tuple[TableFile, ...], variables: tuple[str, ...], written: dict[str, Any]
) -> dict[str, list[Any]]:
    """The categories of variables, each from the column of that name of a file.

    Raises
    ------
    TableError
        A file without such a column, or with several; two of one variable.
    """
    from taciturn.tables.sources import open_source

    declared = {}
    for path in files:
        columns = open_source(path, **written).columns()
        named = [name for name in columns if name in variables]
        if len(named) != 1:
            raise TableError(
                f"{path}: one column must be called like one of the variables {list(variables)}:"
                f" the columns are {', '.join(map(repr, columns))}"
            )
        if named[0] in declared:
            raise TableError(f"{path}: another file of --categories has those of {named[0]!r}")
        declared[named[0]] = columns[named[0]]
    return declared
