"""What the page says, gathered from a fit and releases of its table."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.fits import Summary, assess, summary
from taciturn.fits.parts import FitParts, fit_parts
from taciturn.fits.risk import fillable_cells
from taciturn.progress import progress_bar
from taciturn.reports.earlier import Earlier, earlier_releases
from taciturn.reports.releases import Finding, attack_findings, checked_releases, protections
from taciturn.reports.yardstick import Mark, yardstick
from taciturn.risk import cell_uniques
from taciturn.risk.table_risk import DEFAULT_WEIGHTS, Weights
from taciturn.schema import cell_label, split_draws
from taciturn.validate import check_weights

__all__ = ["CategoryRisk", "Contents", "UniqueCell", "gathered"]

_MOST_CELLS: Final = 20
_INTERVAL: Final = (0.025, 0.5, 0.975)


@dataclass(frozen=True)
class CategoryRisk:
    """R2 of the categories of one variable.

    Attributes
    ----------
    variable : str
        The variable.
    labels : sequence of str
        Its categories.
    risk : array of float
        Lower end, middle and upper end of the 95 % interval, (category, 3).
    empty : array of float
        Share of draws with nobody in the category, whose risk is then 0, (category,).
    """

    variable: str
    labels: Sequence[str]
    risk: npt.NDArray[np.float64]
    empty: npt.NDArray[np.float64]


@dataclass(frozen=True)
class UniqueCell:
    """A cell with one individual in the sample.

    Attributes
    ----------
    label : str
        The cell.
    p_unique, p_match : float
        Probability that this individual is alone in the population's cell, and that a
        match with somebody of that cell is correct.
    """

    label: str
    p_unique: float
    p_match: float


@dataclass(frozen=True)
class Contents:
    """What the page says.

    Attributes
    ----------
    fit : DataTree
        The fit, assessed.
    parts : FitParts
        Its parts.
    found : Summary
        Its summary.
    weights : tuple of float
        Those of the three terms.
    marks : sequence of Mark
        What R2 compares with.
    categories : sequence of CategoryRisk
        By variable.
    uniques : sequence of UniqueCell
        The riskiest: not for release.
    n_uniques : int
        How many there are.
    map : Dataset or None
        What `risk_utility` says of perturbed tables.
    findings : sequence of Finding
        What an attacker works out from the others.
    earlier : Earlier or None
        What was released before of the same records.
    """

    fit: xr.DataTree
    parts: FitParts
    found: Summary
    weights: Weights
    marks: Sequence[Mark]
    categories: Sequence[CategoryRisk]
    uniques: Sequence[UniqueCell]
    n_uniques: int
    map: xr.Dataset | None
    findings: Sequence[Finding]
    earlier: Earlier | None

    @property
    def row(self) -> dict[str, float]:
        """Mean, spread and interval of R2, by the names of the summary's columns."""
        return dict(self.found.table.T["R2"])

    @property
    def of_risk_alone(self) -> bool:
        """Whether the page is about no release, and no log. Otherwise R2, which is made
        of all counts, may tell which of the tables that are left is the true one.
        """
        return self.map is None and not self.findings and self.earlier is None

    @property
    def gives_size(self) -> bool:
        """Whether all that the page is about says how many people the sample has:
        otherwise this number may say what a suppressed cell or total is.
        """
        released = self.map is None and all(finding.gives_size for finding in self.findings)
        return released and (self.earlier is None or self.earlier.gives_size)


def gathered(
    fit: xr.DataTree,
    given: Any,
    *,
    log: Any = None,
    verdict: Any = None,
    threshold: float | None,
    progressbar: bool,
) -> Contents:
    """Everything the page says, whoever it is for, of a fit, of releases of its table
    and of earlier releases as they are given.
    """
    parts = fit_parts(fit)
    releases = checked_releases(given, parts.sample)
    earlier = earlier_releases(log, verdict, parts)
    recorded = fit["risk"].attrs.get("weights") if "risk" in fit.children else None
    weights = DEFAULT_WEIGHTS if recorded is None else check_weights(recorded)
    with progress_bar("risk", 4, shown=progressbar) as bar:
        assessed = assess(fit, weights=weights, by=_divisible(parts))
        bar.advance()
        found = summary(assessed, threshold=threshold)
        bar.advance()
        uniques = _uniques(parts)
        bar.advance()
        utility = protections(releases, parts, weights)
    return Contents(
        assessed,
        parts,
        found,
        weights,
        yardstick(weights),
        tuple(_categories(found)),
        uniques[:_MOST_CELLS],
        len(uniques),
        utility,
        attack_findings(releases, parts.sample, progressbar=progressbar),
        earlier,
    )


def _divisible(parts: FitParts) -> list[str]:
    """Variables each of whose categories has two cells that can be filled, so that it
    is a table of its own.
    """
    return [name for name in parts.variables if bool((fillable_cells(parts, name) >= 2).all())]


def _categories(found: Summary) -> Iterator[CategoryRisk]:
    """R2 of the categories of each variable that was assessed."""
    if found.categories is None:
        return
    r2 = found.categories.xs("R2", level="measure")
    for variable, own in r2.groupby("variable", sort=False):
        labels = [str(label) for label in own.index.get_level_values("category")]
        ends = own[[f"{100 * q:g}%" for q in _INTERVAL]]
        yield CategoryRisk(str(variable), labels, ends.to_numpy(), own["empty"].to_numpy())


def _uniques(parts: FitParts) -> list[UniqueCell]:
    """Cells with one individual in the sample, the riskiest first; draws are read a
    block at a time.
    """
    alone = np.argwhere(parts.sample.values == 1)
    if not len(alone):
        return []
    sums = np.zeros((2, *parts.sample.shape))
    for part in split_draws(parts.population):
        own = cell_uniques(part, parts.sample)
        weight = part.sizes["chain"] * part.sizes["draw"]
        sums += weight * np.stack([own["p_unique"].values, own["p_match"].values])
    unique, match = sums / (parts.population.sizes["chain"] * parts.population.sizes["draw"])
    cells = [
        UniqueCell(
            cell_label(parts.sample, tuple(map(int, at))),
            float(unique[tuple(at)]),
            float(match[tuple(at)]),
        )
        for at in alone
    ]
    return sorted(cells, key=lambda cell: (-cell.p_unique, -cell.p_match))
