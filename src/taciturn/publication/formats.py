"""Formats in long form: CSV, Parquet, Excel. A suppressed value is absent."""

from datetime import UTC, datetime
from io import BytesIO
from typing import IO, TYPE_CHECKING, Final

from taciturn.errors import FileFormatError
from taciturn.files import as_csv
from taciturn.publication.published import Published

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["to_csv", "to_excel", "to_parquet"]

_MOST_ROWS: Final = 2**20  # of a sheet, as Excel has it
_SAME_DAY: Final = datetime(2000, 1, 1, tzinfo=UTC)  # the same release gives the same bytes


def to_csv(rows: "pd.DataFrame", what: Published, file: IO[bytes]) -> None:
    """UTF-8, with all decimals; suppressed values are empty."""
    written = {
        name: [
            f"{x:.{what.decimals}f}" if safe else ""
            for x, safe in zip(rows[name], rows[name].notna(), strict=True)
        ]
        for name in what.numbers
    }
    file.write(as_csv(rows.assign(**written)).encode())


def to_parquet(rows: "pd.DataFrame", what: Published, file: IO[bytes]) -> None:
    """Labels as text; whole numbers as integers; suppressed values are null."""
    number = "Int64" if what.decimals == 0 else "float64"
    kinds = dict.fromkeys(rows.columns, "str") | dict.fromkeys(what.numbers, number)
    file.write(rows.astype(kinds).to_parquet(index=False, engine="pyarrow"))


def to_excel(rows: "pd.DataFrame", what: Published, file: IO[bytes]) -> None:
    """One sheet; labels are text whatever they look like; suppressed values are
    empty.
    """
    from xlsxwriter import Workbook

    if len(rows) >= _MOST_ROWS:
        raise FileFormatError(
            f"{len(rows):,} cells are too many for a sheet of Excel, which has {_MOST_ROWS:,} rows:"
            " write a .csv or .parquet file"
        )
    number = int if what.decimals == 0 else float
    buffer = BytesIO()  # the file itself is written at once, so that a full disk is noticed
    with Workbook(buffer, {"in_memory": True}) as book:
        book.set_properties({"created": _SAME_DAY, "comments": what.why_internal})
        sheet = book.add_worksheet("not for release" if what.why_internal else "release")
        for place, name in enumerate(rows.columns):
            sheet.write_string(0, place, str(name))
            safe = rows[name].notna()
            for row, (cell, there) in enumerate(zip(rows[name], safe, strict=True), start=1):
                if name not in what.numbers:
                    sheet.write_string(row, place, str(cell))
                elif there:
                    sheet.write_number(row, place, number(cell))
    file.write(buffer.getvalue())
