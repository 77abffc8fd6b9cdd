"""`write_certificate`: bounds of a release, with their proofs, as one file."""

import json
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from taciturn.attack.bounds.knowledge import Knowledge, with_knowledge
from taciturn.attack.bounds.of_release import check_release
from taciturn.attack.bounds.of_system import bounds_of
from taciturn.attack.certificates.document import GRAND_TOTAL, Bound, document_of
from taciturn.attack.releases.base import Release
from taciturn.attack.system import LinearSystem
from taciturn.errors import ParameterError
from taciturn.files import check_ending, check_output, whole_file
from taciturn.progress import progress_bar, progress_steps
from taciturn.schema import cell_label, table_dims
from taciturn.tables.margins import Margin, margin_names, margin_of
from taciturn.tables.steps import checked_mask
from taciturn.validate import quoted

__all__ = ["write_certificate"]


def write_certificate(
    release: Release,
    path: str | os.PathLike[str],
    *,
    margin: Margin | None = None,
    cells: xr.DataArray | Mapping[Any, xr.DataArray | None] | None = None,
    knowledge: Knowledge | None = None,
    overwrite: bool = False,
    progressbar: bool = True,
) -> None:
    r"""Write the bounds that an attacker can put on cells or totals, each with a proof
    that a second program checks without a solver.

    The file holds the linear system that the release publishes, the bounds of
    `attacker_bounds`, tables that attain them, and multipliers `y` of the rows, with
    :math:`r = c - y A`, that show that nothing goes beyond:

    .. math:: c x = y (A x) + r x
        \le \sum_i \max(y_i l_i, y_i h_i) + \sum_j \max(r_j u_j, r_j v_j),

    rounded down to a whole number of steps. Where that is not enough, cells are split
    into at most a number and at least the next one, and each end of that tree has
    multipliers of its own. A cell that nothing limits has a ray, which can be added to
    any table again and again. A bound for which no proof of up to 1,000 nodes is found
    is in the file without one, and the checker says so.

    Parameters
    ----------
    release : Release
        `Suppression`, `Rounding`, `GlobalRecoding`, `LinkedTables` or `Perturbed`; of a
        pattern that `suppress` found, ``pattern.release``.
    path : str or path
        Where the file goes, ``.json``. It appears complete or not at all.
    margin : str or sequence of str, optional
        Bound the totals over these variables, or levels above them, instead of the
        cells.
    cells : DataArray of bool, or mapping of margin to DataArray of bool, optional
        True for the cells to bound, dims of the table or of the margin; for several
        margins by their names, as in ``release.unpublished_cells()``. By default, and
        where a margin has None, all but the published cells of the table.
    knowledge : Dataset or mapping of margin to Dataset, optional
        Ranges that the attackers know beforehand, as for `attacker_bounds`. They are in
        the file.
    overwrite : bool
        Whether to replace a file that exists.
    progressbar : bool
        Show progress, on standard error or below the cell of a notebook.

    Raises
    ------
    FileFormatError
        The file exists, or cannot be written there.
    ParameterError
        A `release` that is not a `Release`; no cell that is not published; a `margin`
        that is not over the table's variables, or one beside `cells` of several;
        `knowledge` of contributions.
    TableError, AttackError
        As `attacker_bounds`.

    Notes
    -----
    The file holds only what follows from the release and from `knowledge`: its tables
    are found by the solver, which does not have the true one. If there is one table
    only that is compatible with the release, that is the true table.

    References
    ----------
    Chvátal (1973), Edmonds polytopes and a hierarchy of combinatorial problems,
    Discrete Mathematics 4, 305-337.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import xarray as xr, taciturn as tc
    >>> table = xr.DataArray([[3, 1, 9], [2, 4, 9]], dims=("a", "b"))
    >>> release = tc.Suppression(table, table < 5)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "bounds.json")
    ...     tc.attack.write_certificate(release, path, progressbar=False)
    ...     print(tc.attack.check_certificate(path))
    8 bounds proved, 0 not
    """
    path = Path(path)
    check_ending(path, (".json",))
    check_output(path, overwrite=overwrite)
    check_release(release)
    with progress_steps("setting up the equations", shown=progressbar):
        system, contributions = with_knowledge(release.system, knowledge)
    if contributions:
        raise ParameterError(
            "knowledge of a certificate must be ranges of cells or totals: contributions bound the"
            " largest of other contributions, of which the released totals say nothing directly"
        )
    asked = _asked(system, margin, cells)
    if not any(mask.any() for *_, mask in asked):
        raise ParameterError("cells must have one that is not published: there is nothing to bound")
    with progress_bar(
        "bounds", sum(int(mask.sum()) for *_, mask in asked), shown=progressbar
    ) as bar:
        bounds = [bound for each in asked for bound in _bounds(system, *each, bar.advance)]
    with progress_bar("proofs", 2 * len(bounds), shown=progressbar) as bar:
        text = _text(document_of(system, bounds, on_bound=bar.advance))
    with whole_file(path, overwrite=overwrite) as file:
        file.write(text.encode())


type _Asked = tuple[xr.DataArray, Any, Any]  # labels, groups and which of them


def _asked(
    system: LinearSystem, margin: Margin | None, cells: xr.DataArray | Mapping[Any, Any] | None
) -> list[_Asked]:
    """The totals to bound, of which those without an unknown cell are left out."""
    table = system.published
    masks: Iterable[tuple[Any, Any]]
    if isinstance(cells, Mapping):
        if margin is not None:
            raise ParameterError(
                f"margin must be None where cells name theirs, got {quoted(margin)}"
            )
        masks = cells.items()
    else:
        masks = [(table_dims(table) if margin is None else margin, cells)]
    asked = []
    for key, mask in masks:
        name = "margin" if margin is not None else "cells"
        labels, group = margin_of(table, margin_names(key, table, name=name))
        wanted = np.bincount(group[system.unknown], minlength=labels.size) > 0
        if mask is not None:
            wanted &= checked_mask(mask, labels, name="cells").ravel()
        asked.append((labels, group, wanted))
    return asked


def _bounds(
    system: LinearSystem, labels: xr.DataArray, group: Any, asked: Any, on_cell: Callable[[], None]
) -> list[Bound]:
    """The bounds of the asked totals, without proofs."""
    lower, upper = bounds_of(system, labels, group, asked, on_cell=on_cell)
    order = np.argsort(group, kind="stable")
    start = np.searchsorted(group[order], np.arange(labels.size + 1))
    found = []
    for at in np.flatnonzero(asked).tolist():
        position = tuple(int(i) for i in np.unravel_index(at, labels.shape))
        name = cell_label(labels, position) or GRAND_TOTAL
        members = np.sort(order[start[at] : start[at + 1]])
        found.append(Bound(name, members, int(lower[at]), int(upper[at])))
    return found


def _text(document: Mapping[str, Any]) -> str:
    """JSON with a line for each cell, row, table and bound."""
    parts = []
    for name, value in document.items():
        if isinstance(value, list):
            lines = ",\n".join(json.dumps(item, ensure_ascii=False) for item in value)
            parts.append(f"{json.dumps(name)}: [\n{lines}\n]")
        else:
            parts.append(f"{json.dumps(name)}: {json.dumps(value)}")
    return "{\n" + ",\n".join(parts) + "\n}\n"
