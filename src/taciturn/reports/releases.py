"""What releases of the table leave of its risk, and what an attacker works out from
them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.attack import attacker_bounds
from taciturn.attack.releases.base import Release
from taciturn.attack.releases.suppression import Suppression
from taciturn.errors import ParameterError
from taciturn.fits.parts import FitParts
from taciturn.risk import risk_utility
from taciturn.risk.table_risk import Weights
from taciturn.schema import PRIMARY, REPLICATE, SUPPRESSED, cell_label, table_dims
from taciturn.suppression import SuppressionPattern
from taciturn.tables import margin
from taciturn.tables.checks import aligned, check_table
from taciturn.validate import quoted

__all__ = [
    "Finding",
    "Protection",
    "attack_findings",
    "checked_releases",
    "protections",
]

type Protection = xr.DataArray | Release | SuppressionPattern
"""What the page compares: a perturbed table, or a release with cells to work out."""

type Attacked = tuple[xr.Dataset, npt.NDArray[np.bool_]]

ORIGINAL: Final = "as it is"
MOST_CHANGE: Final = 10  # people a cell by which a release may differ on average
_MOST_CELLS: Final = 10  # of a release that are listed


@dataclass(frozen=True)
class Finding:
    """What an attacker works out from one release.

    Attributes
    ----------
    name : str
        The release.
    hidden, disclosed : int
        Cells of the table, and of the tables and totals that something is released of,
        whose value is not published; and those of them with one possible value.
    fewest : float
        The fewest values that one of the others can have; infinite without any. Of a
        pattern no more than its audit found, which is of all tables that were protected
        together.
    fewest_alone : float
        The same for who knows the release alone, and none of the ranges that a pattern
        was made for: these are of the true values.
    riskiest : sequence of tuples
        Label, lower and upper bound and number of possible values of the cells with the
        fewest: not for release.
    unproved : str
        Why a pattern is not for release although this is all that was found.
    lacks : tuple of str
        Variables of the table that a file of released totals has not: cells that are by
        them too were not looked at.
    gives_size : bool
        Whether how many people the table has follows from the release alone.
    """

    name: str
    hidden: int
    disclosed: int
    fewest: float
    fewest_alone: float
    riskiest: Sequence[tuple[str, float, float, float]]
    unproved: str
    lacks: tuple[str, ...]
    gives_size: bool


def checked_releases(releases: Any, table: xr.DataArray) -> dict[str, Protection]:
    """Releases of this table by name.

    Raises
    ------
    ParameterError
        Something else, or a release of another table.
    """
    given = {} if releases is None else releases
    if not isinstance(given, Mapping):
        raise ParameterError(f"releases must map names to releases, got {type(given).__name__}")
    for name, release in given.items():
        if not isinstance(name, str) or not name.strip() or name == ORIGINAL:
            raise ParameterError(
                f"a release must have a name of its own that is text, got {quoted(name)}"
            )
        if not isinstance(release, xr.DataArray | Release | SuppressionPattern):
            raise ParameterError(
                f"releases[{name!r:.80}] must be a perturbed table, a SuppressionPattern or a"
                f" Release, got {type(release).__name__}"
            )
    return {name: _checked(release, name, table) for name, release in given.items()}


def _checked(release: Protection, name: str, table: xr.DataArray) -> Protection:
    """A release of this table; one with marks of suppressed cells leaves these to work
    out.
    """
    if not isinstance(release, xr.DataArray):
        _check_same(_release(release), name, table)
        return release
    _check_perturbed(release, name, table)
    if SUPPRESSED not in release.coords:
        return release
    marked = release.isel({REPLICATE: 0}) if REPLICATE in release.dims else release
    names = (f"releases[{name!r:.80}]", "the sample")
    marked = aligned(marked.drop_vars(REPLICATE), table, names=names).transpose(*table.dims)
    hidden = marked[SUPPRESSED].drop_vars(SUPPRESSED)
    if ((marked.values != table.values) & ~hidden.values).any():
        raise ParameterError(f"releases[{name!r:.80}] is a release of another table than the fit's")
    return Suppression(table, hidden, totals=False)


def _check_perturbed(release: xr.DataArray, name: str, table: xr.DataArray) -> None:
    """Raise unless a table may be a release of this one: it comes from a protection
    method or a file of a release, and holds about as many people.
    """
    if REPLICATE not in release.coords:
        raise ParameterError(
            f"releases[{name!r:.80}] must be what a protection method returned, with its coordinate"
            f" 'replicate': this table has {list(map(str, release.coords))}"
        )
    size, cells = int(table.sum()), table.size
    total = float(release.sum()) / release.sizes.get(REPLICATE, 1)
    if abs(total - size) > max(size / 10, MOST_CHANGE * cells):
        raise ParameterError(
            f"releases[{name!r:.80}] holds {total:,.0f} people, the sample of the fit {size:,}: it"
            " is a release of another table"
        )


def _release(protection: Release | SuppressionPattern) -> Release:
    return protection.release if isinstance(protection, SuppressionPattern) else protection


def _check_same(release: Any, name: str, table: xr.DataArray) -> None:
    """Raise unless a release is of this table, as far as it holds one."""
    true = getattr(release, "true_table", None)
    if true is None:
        return
    dims = [dim for dim in table_dims(table) if dim in table_dims(true)]
    mine = margin(table, dims)
    same = len(dims) == true.ndim and check_table(
        _bare(true.transpose(*dims)), name="true_table"
    ).equals(_bare(mine))
    if not same:
        raise ParameterError(f"releases[{name!r:.80}] is a release of another table than the fit's")


def _bare(table: xr.DataArray) -> xr.DataArray:
    """A table without the levels above its variables."""
    return table.drop_vars([name for name in table.coords if name not in table.dims])


def protections(
    releases: Mapping[str, Protection], parts: FitParts, weights: Weights
) -> xr.Dataset | None:
    """The risk-utility map of the perturbed tables, with the table as it is; None
    without any.
    """
    perturbed = {
        name: release for name, release in releases.items() if isinstance(release, xr.DataArray)
    }
    if not perturbed:
        return None
    where = None
    if parts.structural_zeros is not None:
        where = ~parts.structural_zeros
    return risk_utility(
        {ORIGINAL: parts.sample, **perturbed},
        table=parts.sample,
        population=parts.population,
        weights=weights,
        where=where,
    )


def attack_findings(
    releases: Mapping[str, Protection], table: xr.DataArray, *, progressbar: bool
) -> tuple[Finding, ...]:
    """What an attacker works out from each release of a table that leaves cells to work
    out.
    """
    return tuple(
        _finding(name, release, table, progressbar=progressbar)
        for name, release in releases.items()
        if not isinstance(release, xr.DataArray)
    )


def _finding(
    name: str,
    protection: Release | SuppressionPattern,
    table: xr.DataArray,
    *,
    progressbar: bool,
) -> Finding:
    release = _release(protection)
    pattern = protection if isinstance(protection, SuppressionPattern) else None
    knowledge = (pattern and pattern.knowledge) or None
    attacked = alone = _attacked(release, knowledge, progressbar=progressbar)
    if knowledge:
        alone = _attacked(release, None, progressbar=progressbar)
    total = attacker_bounds(release, margin=(), progressbar=False)
    return Finding(
        name,
        sum(int(cells.sum()) for _, cells in attacked),
        sum(int((bounds["n_values"].values[cells] == 1).sum()) for bounds, cells in attacked),
        _fewest(attacked if pattern is None else [*attacked, *_audited(pattern)]),
        _fewest(alone),
        sorted(_listed(attacked), key=lambda row: row[3])[:_MOST_CELLS],
        "" if pattern is None else pattern.not_for_release,
        release.lacks(table),
        bool((total["n_values"] == 1).all()),
    )


def _attacked(release: Release, knowledge: Any, *, progressbar: bool) -> list[Attacked]:
    """What can be worked out of the table and of each margin, and which of their cells
    are not published.
    """
    return [
        (
            attacker_bounds(
                release, margin=names, cells=cells, knowledge=knowledge, progressbar=progressbar
            ),
            cells.values,
        )
        for names, cells in release.unpublished_cells().items()
    ]


def _audited(pattern: SuppressionPattern) -> list[Attacked]:
    """The audit of primary cells, which are all that it is of."""
    return [
        (bounds, (pattern.status[names] == PRIMARY).values)
        for names, bounds in pattern.audit.items()
    ]


def _fewest(attacked: Sequence[Attacked]) -> float:
    """The fewest values above one that are left for an unpublished cell."""
    counts = [bounds["n_values"].values[cells] for bounds, cells in attacked]
    return min((count for own in counts for count in own[own > 1].tolist()), default=np.inf)


def _listed(attacked: Sequence[Attacked]) -> Iterator[tuple[str, float, float, float]]:
    """Of each margin the cells with the fewest possible values."""
    for bounds, cells in attacked:
        found = bounds["n_values"].values
        left = np.flatnonzero(cells)
        for flat in left[np.argsort(found.ravel()[left], kind="stable")][:_MOST_CELLS]:
            place = tuple(int(i) for i in np.unravel_index(flat, found.shape))
            label = cell_label(bounds["n_values"], place) or "grand total"
            low, high = (float(bounds[end].values[place]) for end in ("lower", "upper"))
            yield label, low, high, float(found[place])
