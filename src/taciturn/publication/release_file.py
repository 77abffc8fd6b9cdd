"""A release as a file."""

from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import Final

from taciturn.files import INTERVAL_ENDINGS, RELEASE_ENDINGS, check_ending, check_output, whole_file
from taciturn.publication.formats import to_csv, to_excel, to_parquet
from taciturn.publication.json_stat import to_json_stat
from taciturn.publication.published import Releasable, published
from taciturn.publication.rows import long_form

__all__ = ["WRITERS", "release_bytes", "write_release"]

WRITERS: Final = {
    ".csv": to_csv,
    ".parquet": to_parquet,
    ".json": to_json_stat,
    ".xlsx": to_excel,
}
"""What writes rows to a file, by its ending."""


def write_release(
    release: Releasable,
    path: str | PathLike[str],
    *,
    value: str | None = None,
    total: str = "Total",
    internal: bool = False,
    intervals: bool = False,
    overwrite: bool = False,
) -> None:
    """Write a release to a file for publication, completely or not at all.

    The file holds the labels, the values of published cells and totals, and the status
    of each cell, ``published`` or ``suppressed``. Suppressed values are not in it, and
    are never 0: they are empty in CSV and Excel, null in Parquet and JSON-stat. It does
    not say which suppressed cells are primary: who knows the rule would learn what
    range their values are in.

    Parameters
    ----------
    release : ProtectedTable, SuppressionPattern, Release or DataArray
        Of `protect_table` or `suppress`; a `Suppression`, `LinkedTables`, `Rounding` or
        `GlobalRecoding`, with the totals that it publishes; or a table that a
        protection method returned, of which one replicate is released.
    path : path
        Ends in ``.csv`` (UTF-8), ``.parquet`` or ``.xlsx`` (Excel), all in long form,
        or ``.json`` (JSON-stat 2.0).
    value : str, optional
        Name of the column of values; by default that of the quantity, or ``count``.
    total : str
        Label of a variable that is summed over. Categories of a level above a variable
        are in the column of the variable, too.
    internal : bool
        For use within the office: tell primary cells from secondary ones, and write
        what must not be released, which is what was drawn with a seed, several
        replicates, or a pattern that is not proved to protect. The file says that it is
        not for release: by the name of a column, ``status_not_for_release`` or
        ``count_not_for_release``, and in JSON-stat by a
        ``note``.
    intervals : bool
        Beside each value of a `ProtectedTable` or `SuppressionPattern` the interval
        that everybody can work out, in the columns ``lower`` and ``upper``: that of
        `SuppressionPattern.intervals`, empty where no total limits a cell, and the
        value of a published one. Not in JSON-stat, where a cell has one value.
    overwrite : bool
        Replace a file that exists.

    Raises
    ------
    ParameterError
        No release, or one of no table; a table without the coordinate ``replicate``,
        which may be the true one; several replicates, a table drawn with a seed or a
        pattern that is `not_for_release`, without `internal`; `total` is a category of
        a variable, or looks like one; two categories, also of a variable and a level
        above it, would be written alike; a variable has the name of another column;
        `intervals` of something else.
    FileFormatError
        Another ending; something is there already, and it is no regular file or
        `overwrite` is False; the file cannot be written, or has more cells than a sheet
        of Excel.
    MissingDependencyError
        A format whose library is not installed.

    Examples
    --------
    >>> import taciturn as tc
    >>> rounded = tc.random_round(tc.load_dataset("area_by_sex"))
    >>> tc.write_release(rounded, "rounded.csv")  # doctest: +SKIP
    """
    target = Path(path)
    check_ending(target, INTERVAL_ENDINGS if intervals else RELEASE_ENDINGS)
    check_output(target, overwrite=overwrite)
    given = {"internal": internal, "intervals": intervals}
    with whole_file(target, overwrite=overwrite) as file:
        file.write(release_bytes(release, target.suffix, value=value, total=total, **given))


def release_bytes(
    release: Releasable,
    ending: str,
    *,
    value: str | None = None,
    total: str = "Total",
    internal: bool = False,
    intervals: bool = False,
) -> bytes:
    """What `write_release` writes to a file with this ending."""
    what = published(release, value=value, internal=internal, intervals=intervals)
    buffer = BytesIO()
    WRITERS[ending.lower()](long_form(what, total=total), what, buffer)
    return buffer.getvalue()
