"""Files that commands read and write, checked before any work is done."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from taciturn.cli.options import Model, is_card
from taciturn.errors import FileFormatError, TableError
from taciturn.files import (
    READABLE_RELEASES,
    TABLE_ENDINGS,
    check_output,
    check_readable,
    check_release_ending,
    whole_file,
)

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "FileCommand",
    "Input",
    "Output",
    "check_csv",
    "check_records",
    "check_release",
    "check_release_file",
    "check_tables",
    "force_option",
    "hierarchy_option",
    "print_csv",
    "write_csv",
]

_PARQUET: Final = (".parquet", ".pq")


class Input(click.Path):
    """A file that is read."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)


class Output(click.Path):
    """A file that is written, or continued where it is `resumed`."""

    def __init__(self, *, resumed: bool = False) -> None:
        super().__init__(path_type=Path)
        self.resumed = resumed


class FileCommand(click.Command):
    """A command that holds each of its outputs to `check_output` before it begins."""

    def invoke(self, ctx: click.Context) -> Any:
        """Check, then run."""
        read: list[Path] = []
        written: list[tuple[Path, bool]] = []
        for param in self.params:
            given = ctx.params.get(str(param.name))
            for value in given if isinstance(given, tuple) else (given,):
                if value is None:
                    continue
                if isinstance(param.type, Output):
                    written.append((value, param.type.resumed))
                elif isinstance(param.type, Input):
                    read.append(value)
                elif isinstance(param.type, Model) and is_card(value):
                    read.append(Path(value))
        for number, (path, resumed) in enumerate(written):
            others = [other for other, _ in written[:number]]
            overwrite = resumed or ctx.params["force"]
            check_output(path, inputs=read, outputs=others, overwrite=overwrite)
        return super().invoke(ctx)


hierarchy_option: Final = click.option(
    "--hierarchy",
    type=Input(),
    multiple=True,
    help=(
        "File of two columns, a variable and a level above it, such as region and country;"
        " repeatable."
    ),
)

force_option: Final = click.option(
    "--force", is_flag=True, help="Replace a file that exists by the output."
)


def check_tables(*paths: Path | None) -> None:
    """Raise unless every file that is named exists and can be a table."""
    for path in paths:
        if path is not None:
            check_readable(path, TABLE_ENDINGS)


def check_release_file(path: Path | None) -> None:
    """Raise unless the file that is named, if one is, exists and can be a release."""
    if path is not None:
        check_readable(path, READABLE_RELEASES)


def check_records(path: Path, count: str = "count", **written: str | None) -> None:
    """Raise if what is to be counted, a row an individual, has a column of counts."""
    from taciturn.tables.sources import open_source

    if count in open_source(path, **written).names:
        raise TableError(
            f"{path}: has a column {count!r}, so that it is no microdata but a table, whose rows"
            " are not to be counted; if it is none, call that column something else"
        )


def check_csv(output: Path | None) -> None:
    """Raise if the output, where there is one, has the ending of another format."""
    if output is not None and output.suffix.lower() in _PARQUET:
        raise FileFormatError(f"{output}: the output is a CSV file; give it another ending")


def check_release(output: Path | None) -> None:
    """Raise unless a release can be written to the output, where there is one."""
    if output is not None:
        check_release_ending(output)


def print_csv(table: "pd.DataFrame") -> None:
    """Print rows with their index, as `write_csv` writes them."""
    click.echo(table.to_csv(lineterminator="\n"), nl=False)


def write_csv(table: "pd.DataFrame", output: Path, *, overwrite: bool) -> None:
    """Write rows with their index; the file appears complete or not at all."""
    with whole_file(output, overwrite=overwrite) as file:
        table.to_csv(file, mode="wb")
