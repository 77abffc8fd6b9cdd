"""Files that commands read and write, and the standard streams in their place, checked
before any work is done.
"""

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from taciturn.cli.options import Decorator, Model, Names, is_card
from taciturn.cli.working import working
from taciturn.errors import TableError
from taciturn.files import (
    APRIORI_ENDINGS,
    HIERARCHY_ENDINGS,
    INTERVAL_ENDINGS,
    READABLE_RELEASES,
    RELEASE_ENDINGS,
    TABLE_ENDINGS,
    StandardInput,
    TableFile,
    as_csv,
    check_ending,
    check_folder,
    check_output,
    check_readable,
    whole_file,
)

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from taciturn.publication.published import Releasable

__all__ = [
    "FileCommand",
    "Folder",
    "Input",
    "Output",
    "StandardOutput",
    "Target",
    "apriori_option",
    "check_intervals",
    "check_release_file",
    "check_tables",
    "csv_output_option",
    "force_option",
    "hierarchies_of",
    "hierarchy_option",
    "intervals_option",
    "read_counts",
    "read_instructions",
    "release_output_option",
    "variables_option",
    "with_hierarchies",
    "write_csv",
    "write_release",
    "write_releases",
]

_STREAM: Final = "-"


class StandardOutput:
    """Standard output in the place of a CSV file."""

    def __str__(self) -> str:
        return "standard output"


type Target = Path | StandardOutput
"""Where a table is written to."""


class Input(click.Path):
    """A file that is read; with `stream` one of a table, which may be ``-``."""

    def __init__(self, *, stream: bool = False) -> None:
        super().__init__(path_type=Path)
        self.stream = stream

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Take ``-`` as standard input, or refuse it."""
        if value == _STREAM and self.stream:
            return StandardInput()
        if value != _STREAM:
            return super().convert(value, param, ctx)
        raise click.BadParameter(
            "'-', standard input, can hold a table as CSV and nothing else: give the name of a"
            " file",
            ctx,
            param,
        )


class Output(click.Path):
    """A file that is written, with one of these endings where there are any, or
    continued where it is `resumed`; with `stream` one of a table, which may be ``-``.
    """

    def __init__(self, *endings: str, stream: bool = False, resumed: bool = False) -> None:
        super().__init__(path_type=Path)
        self.endings = endings
        self.stream = stream
        self.resumed = resumed

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Take ``-`` as standard output, or refuse it."""
        if value == _STREAM and self.stream:
            return StandardOutput()
        if value != _STREAM:
            return super().convert(value, param, ctx)
        raise click.BadParameter(
            "'-', standard output, can take a table as CSV and nothing else: give the name of a"
            " file",
            ctx,
            param,
        )


class Folder(click.Path):
    """A folder that is written, and continued where it exists."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Refuse what names no folder of its own."""
        if value in ("", _STREAM):
            raise click.BadParameter(f"{value!r} is no name of a folder", ctx, param)
        return super().convert(value, param, ctx)


class FileCommand(click.Command):
    """A command that holds each of its outputs to `check_output` and to its endings
    before it begins, and reads standard input once.
    """

    def invoke(self, ctx: click.Context) -> Any:
        """Check, then run."""
        read: list[Path] = []
        folders: list[Path] = []
        streams: list[str] = []
        written: list[tuple[Path, Output]] = []
        for param in self.params:
            given = ctx.params.get(str(param.name))
            for value in given if isinstance(given, tuple) else (given,):
                if isinstance(value, StandardInput):
                    streams.append(param.get_error_hint(ctx))
                elif isinstance(value, Path) and isinstance(param.type, Output):
                    written.append((value, param.type))
                elif isinstance(value, Path) and isinstance(param.type, Folder):
                    check_folder(value)
                    folders.append(value)
                elif isinstance(value, Path) and isinstance(param.type, Input):
                    read.append(value)
                elif isinstance(param.type, Model) and value is not None and is_card(value):
                    read.append(Path(value))
        if len(streams) > 1:
            raise click.UsageError(
                f"standard input can be read once, and '-' is given for {' and '.join(streams)}"
            )
        for number, (path, kind) in enumerate(written):
            others = [*folders, *(other for other, _ in written[:number])]
            overwrite = kind.resumed or ctx.params["force"]
            check_output(path, inputs=read, outputs=others, overwrite=overwrite)
            if kind.endings:
                check_ending(path, kind.endings)
        return super().invoke(ctx)


hierarchy_option: Final = click.option(
    "--hierarchy",
    type=Input(stream=True),
    multiple=True,
    help=(
        "File of a column called like a variable and one for each level above it, such as region"
        " and country, or a .hrc file of tau-ARGUS, called like the variable; repeatable."
    ),
)

apriori_option: Final = click.option(
    "--apriori",
    type=Input(),
    help=(
        "File of instructions for single cells: .hst of tau-ARGUS, or columns of variables, status,"
        " cost, lower and upper."
    ),
)

force_option: Final = click.option(
    "--force", is_flag=True, help="Replace a file that exists by the output."
)


intervals_option: Final = click.option(
    "--intervals",
    is_flag=True,
    help="Write for each suppressed cell what everybody can work out; not to .json.",
)

variables_option: Final = click.option(
    "--variables",
    type=Names(),
    help="The input is microdata: count its records by these columns first.",
)


def csv_output_option(what: str = "the table") -> Decorator:
    """Return the option of a CSV file, or standard output, that takes this."""
    return click.option(
        "--output",
        type=Output(".csv", stream=True),
        help=f"Write {what} to this CSV file; - is standard output.",
    )


def release_output_option(*, required: bool = False) -> Decorator:
    """Return the option of a file, or standard output, that takes a release."""
    return click.option(
        "--output",
        type=Output(*RELEASE_ENDINGS, stream=True),
        required=required,
        help="Write the release to this .csv, .parquet, .json or .xlsx file; - is standard output.",
    )


def check_tables(
    *sources: TableFile | None, hierarchies: Iterable[TableFile] = (), apriori: Path | None = None
) -> None:
    """Raise unless every file that is named exists and can be a table, a hierarchy or
    instructions.
    """
    for given, endings in (
        (sources, TABLE_ENDINGS),
        (hierarchies, HIERARCHY_ENDINGS),
        ((apriori,), APRIORI_ENDINGS),
    ):
        for source in given:
            if isinstance(source, Path):
                check_readable(source, endings)


def hierarchies_of(
    paths: Iterable[TableFile], variables: Sequence[str], **written: str | None
) -> dict[str, list[TableFile]]:
    """The files of levels above each variable: those of columns name it in their
    header, those of tau-ARGUS by what they are called.
    """
    from taciturn.tables.sources import open_source

    found: dict[str, list[TableFile]] = {}
    for path in paths:
        codes = isinstance(path, Path) and path.suffix.lower() not in TABLE_ENDINGS
        names = [Path(str(path)).stem] if codes else open_source(path, **written).names
        named = [name for name in names if name in variables]
        if len(named) != 1:
            rule = (
                "a file of codes is called like the variable whose levels it holds"
                if codes
                else "a hierarchy has one column called like a variable, and one for each level"
            )
            raise TableError(
                f"{path}: {rule}: it has {', '.join(map(repr, names))}, the variables are"
                f" {list(variables)}"
            )
        found.setdefault(named[0], []).append(path)
    return found


def read_instructions(
    path: Path | None, variables: Sequence[str], *, total: str, **written: str | None
) -> "pd.DataFrame | None":
    """Instructions for single cells, if there are any."""
    if path is None:
        return None
    from taciturn.suppression.apriori import read_apriori

    return read_apriori(path, variables, total=total, **written)


def with_hierarchies(
    table: "xr.DataArray", paths: Iterable[TableFile], **written: str | None
) -> "xr.DataArray":
    """The table with the levels that files give its variables."""
    from taciturn.tables.hierarchies import attach, read_levels

    dims = list(map(str, table.dims))
    return attach(table, read_levels(hierarchies_of(paths, dims, **written), dims, **written))


def check_intervals(output: Target | None, intervals: bool) -> None:
    """Raise where intervals are asked for, and there is no output with room for
    them.
    """
    if intervals and output is None:
        raise click.UsageError("--intervals needs --output")
    if intervals and isinstance(output, Path):
        check_ending(output, INTERVAL_ENDINGS)


def check_release_file(source: TableFile | None) -> None:
    """Raise unless the file that is named, if one is, exists and can be a release."""
    if isinstance(source, Path):
        check_readable(source, READABLE_RELEASES)


def read_counts(
    source: Any, *, count: str, variables: tuple[str, ...] | None, **written: Any
) -> "xr.DataArray":
    """A table of counts, or that of microdata by these variables."""
    import taciturn as tc
    from taciturn.tables.records import refuse_counts
    from taciturn.tables.sources import open_source

    if variables is None:
        return tc.read_table(source, count=count, **written)
    refuse_counts(open_source(source, **written), count)
    return tc.tabulate(source, variables, **written)


def write_csv(table: "pd.DataFrame", output: Target, *, overwrite: bool) -> None:
    """Write rows without their index; a file appears complete or not at all."""
    if isinstance(output, StandardOutput):
        click.echo(as_csv(table), nl=False)
        return
    with whole_file(output, overwrite=overwrite) as file:
        file.write(as_csv(table).encode())


def write_release(release: "Releasable", output: Target, *, overwrite: bool, **given: Any) -> None:
    """Write a release; a file appears complete or not at all."""
    write_releases([(release, output)], overwrite=overwrite, **given)


def write_releases(
    releases: "Sequence[tuple[Releasable, Target]]", *, overwrite: bool, **given: Any
) -> None:
    """Write releases; where one cannot be written, none appears."""
    from taciturn.publication.release_file import release_bytes

    with working("writing the release"), ExitStack() as files:
        shown = []
        for release, output in releases:
            if isinstance(output, StandardOutput):
                shown.append(release_bytes(release, ".csv", **given))
            else:
                file = files.enter_context(whole_file(output, overwrite=overwrite))
                file.write(release_bytes(release, output.suffix, **given))
    for content in shown:
        click.echo(content, nl=False)
