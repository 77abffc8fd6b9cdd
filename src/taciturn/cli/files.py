"""Files that commands write: checked before any work, complete or not at all."""

from pathlib import Path
from typing import TYPE_CHECKING

from taciturn.errors import FileFormatError
from taciturn.files import check_writable, whole_file

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["check_csv", "check_output", "write_csv"]


def check_csv(output: Path, *, source: Path) -> None:
    """Raise before any work where the output would not be a CSV file of its own."""
    check_output(output, source=source)
    if output.suffix.lower() in (".parquet", ".pq"):
        raise FileFormatError(f"{output}: the output is a CSV file, which this is no name for")


def check_output(output: Path, *, source: Path) -> None:
    """Raise before any work where the output would not be a file of its own."""
    check_writable(output)
    try:
        exists, same = output.exists(), output.exists() and output.samefile(source)
    except OSError as error:
        raise FileFormatError(f"{output}: cannot be written: {error}") from error
    if exists and not output.is_file():
        raise FileFormatError(f"{output}: is no regular file")
    if same:
        raise FileFormatError(
            f"{output}: is the file that is read; give the output a name of its own"
        )


def write_csv(table: "pd.DataFrame", output: Path) -> None:
    """Write rows with their index; complete or not at all."""
    with whole_file(output) as temporary:
        table.to_csv(temporary)
