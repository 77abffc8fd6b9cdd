"""`check_certificate`: the second program, called from Python."""

import os
from pathlib import Path

from taciturn.attack.certificates.checker import CertificateError, Checked, check
from taciturn.errors import FileFormatError
from taciturn.files import check_readable

__all__ = ["check_certificate"]


def check_certificate(path: str | os.PathLike[str]) -> Checked:
    """Check a certificate of bounds, in exact arithmetic and without a solver.

    Every table in the file is held against every row, every product of multipliers and
    limits is computed again in whole numbers, and nothing that the file says of itself
    is believed. ``python checker.py certificate.json`` does the same: that file, in the
    folder ``taciturn/attack/certificates``, needs Python and nothing else.

    That the system in the file is that of a release is seen in its rows, which have the
    released totals and their labels.

    Parameters
    ----------
    path : str or path
        A file of `write_certificate`, ``.json``.

    Returns
    -------
    Checked
        All bounds in the file, and which of them are not proved.

    Raises
    ------
    FileFormatError
        There is no such file, it is no certificate, or something in it is wrong: a
        table that breaks a row or does not attain a bound, or multipliers that do not
        prove one. The message says where in the file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import xarray as xr, taciturn as tc
    >>> table = xr.DataArray([[3, 1, 9], [2, 4, 9]], dims=("a", "b"))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "bounds.json")
    ...     release = tc.Suppression(table, table < 5)
    ...     tc.attack.write_certificate(release, path, progressbar=False)
    ...     checked = tc.attack.check_certificate(path)
    >>> checked
    8 bounds proved, 0 not
    >>> checked.sides[1]
    Side(cell='a=0, b=0', side='upper', value=4, proved=True)
    """
    path = Path(path)
    check_readable(path, (".json",))
    try:
        return check(path)
    except CertificateError as error:
        raise FileFormatError(f"{path}: {error}") from error
