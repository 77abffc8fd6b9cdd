"""Files that commands read and write, checked before any work is done."""

from pathlib import Path
from typing import TYPE_CHECKING, Final

from taciturn.errors import FileFormatError
from taciturn.files import TABLE_ENDINGS, check_readable, check_writable, whole_file

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["check_csv", "check_output", "check_tables", "write_csv"]

_PARQUET: Final = (".parquet", ".pq")


def check_tables(*paths: Path | None) -> None:
    """Raise unless every file that is named exists and can be a table."""
    for path in paths:
        if path is not None:
            check_readable(path, TABLE_ENDINGS)


def check_csv(output: Path | None, *sources: Path | None) -> None:
    """Raise if the output, where there is one, would not be a separate CSV file."""
    check_output(output, *sources)
    if output is not None and output.suffix.lower() in _PARQUET:
        raise FileFormatError(f"{output}: the output is a CSV file; give it another ending")


def check_output(output: Path | None, *sources: Path | None) -> None:
    """Raise if the output, where there is one, would not be a separate file."""
    if output is None:
        return
    check_writable(output)
    if not output.exists():
        return
    if not output.is_file():
        raise FileFormatError(f"{output}: is not a regular file")
    if any(
        source is not None and source.exists() and output.samefile(source) for source in sources
    ):
        raise FileFormatError(
            f"{output}: is the file that is read; give the output a name of its own"
        )


def write_csv(table: "pd.DataFrame", output: Path) -> None:
    """Write rows with their index; the file appears complete or not at all."""
    with whole_file(output) as temporary:
        table.to_csv(temporary)
