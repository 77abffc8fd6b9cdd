"""`check_certificate`: the second program, called from Python."""

import json
import os
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from taciturn.attack.bounds.knowledge import Knowledge, with_knowledge
from taciturn.attack.bounds.of_release import check_release
from taciturn.attack.certificates.checker import CertificateError, CheckedCertificate, check
from taciturn.attack.certificates.document import GRAND_TOTAL, published
from taciturn.attack.releases.base import Release
from taciturn.attack.system import Integers
from taciturn.errors import FileFormatError
from taciturn.files import check_readable
from taciturn.schema import cell_label, table_dims
from taciturn.tables.margins import hierarchies, margin_of

__all__ = ["check_certificate"]


def check_certificate(
    path: str | os.PathLike[str],
    *,
    release: Release | None = None,
    knowledge: Knowledge | None = None,
) -> CheckedCertificate:
    """Check a certificate of bounds, in exact arithmetic and without a solver.

    Every table in the file is held against every row, every product of multipliers and
    limits is computed again in whole numbers, and nothing that the file says of itself
    is believed. ``python checker.py certificate.json`` does the same: that file, in the
    folder ``taciturn/attack/certificates``, needs Python and nothing else.

    What is proved is proved of the cells and totals in the file. That these are those
    of a release can be read there, as they have their labels, or is checked, too, if
    the release is given.

    Parameters
    ----------
    path : str or path
        A file of `write_certificate`, ``.json``.
    release : Release, optional
        What the certificate should be of.
    knowledge : Dataset or mapping of margin to Dataset, optional
        The ranges that it was written with.

    Returns
    -------
    CheckedCertificate
        All bounds in the file, and which of them are not proved.

    Raises
    ------
    FileFormatError
        There is no such file, it is no certificate, or something in it is wrong: a
        table that breaks a row or does not attain a bound, or multipliers that do not
        prove one. The message says where in the file. Or it is of another release.
    ParameterError
        A `release` that is not a `Release`, or `knowledge` that is none of its ranges.

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
    >>> checked.bounds[1]
    CheckedBound(cell='a=0, b=0', side='upper', value=4, proved=True)
    """
    path = Path(path)
    check_readable(path, (".json",))
    try:
        checked = check(path)
    except CertificateError as error:
        raise FileFormatError(f"{path}: {error}") from error
    if release is not None:
        check_release(release)
        system, _ = with_knowledge(release.system, knowledge)
        document = json.loads(path.read_text(encoding="utf-8"))
        if document["decimals"] != system.decimals:
            raise FileFormatError(
                f"{path}: has {document['decimals']} decimals, and the release {system.decimals}"
            )
        _check_published(path, document, published(system))
        _check_labels(path, document["bounds"], system.published)
    return checked


def _check_labels(path: Path, bounds: Sequence[Mapping[str, Any]], table: xr.DataArray) -> None:
    """Raise `FileFormatError` unless each bound is called like the cell or total of the
    table that has its cells.
    """
    left = list(bounds)
    dims, above = table_dims(table), hierarchies(table)
    for choice in product(*((dim, *above[dim], None) for dim in dims)):
        if not left:
            return
        labels, group = margin_of(table, tuple(name for name in choice if name is not None))
        sizes = np.bincount(group, minlength=labels.size)
        left = [bound for bound in left if not _is_total(bound, labels, group, sizes)]
    if left:
        label, cells = left[0]["label"], left[0]["cells"]
        raise FileFormatError(
            f"{path}: has a bound of {len(cells)} cells that is called {label!r:.80}, and the"
            " release has no cell or total of these that is"
        )


def _is_total(
    bound: Mapping[str, Any], labels: xr.DataArray, group: Integers, sizes: Integers
) -> bool:
    """Whether a bound is of one total of a margin, and called so in some order of the
    variables.
    """
    cells = np.array(bound["cells"])
    at = int(group[cells[0]])
    if len(cells) != sizes[at] or (group[cells] != at).any():
        return False
    position = np.unravel_index(at, labels.shape)
    parts = [
        cell_label(labels[dim], (int(i),)) for dim, i in zip(labels.dims, position, strict=True)
    ]
    return _in_some_order(bound["label"], parts or [GRAND_TOTAL])


def _in_some_order(label: str, parts: Sequence[str]) -> bool:
    """Whether a label is made of these parts, each of them once. Only what it goes on
    with is tried: there are too many orders of many parts.
    """
    if len(parts) == 1:
        return label == parts[0]
    return any(
        label.startswith(f"{part}, ")
        and _in_some_order(label[len(part) + 2 :], [*parts[:at], *parts[at + 1 :]])
        for at, part in enumerate(parts)
    )


def _check_published(path: Path, document: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    """Raise `FileFormatError` unless a certificate is of what is published."""
    for name, items in expected.items():
        found = document[name]
        if len(found) != len(items):
            raise FileFormatError(f"{path}: has {len(found)} {name}, and the release {len(items)}")
        for at, (one, other) in enumerate(zip(found, items, strict=True)):
            if one != other:
                raise FileFormatError(
                    f"{path}: has other {name} than the release: {name}[{at}] is {one}, and not"
                    f" {other}"
                )
