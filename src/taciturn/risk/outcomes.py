"""What each of several protections of one table may come to: the terms of its risk for
every draw of the population and every replicate, and its losses for every replicate.

Maps, comparisons and decisions are summaries of these. R1 and R2 are linear in the
weights, so the terms are kept and not their sums.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.errors import ParameterError, TableError
from taciturn.information.reduction import cell_mask
from taciturn.risk.information_loss import information_loss
from taciturn.risk.table_risk import Weights, disclosure_risk
from taciturn.schema import REPLICATE, WORTH, split_draws
from taciturn.tables.checks import aligned, check_table, refuse_suppressed
from taciturn.validate import is_real, quoted

__all__ = ["RISKS", "TERMS", "Dependence", "Outcome", "outcomes"]

RISKS: Final = ("R1", "R2")
TERMS: Final = ("zero_term", "entropy_term", "size_term")
"""In the order of the weights."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Dependence:
    """How draws of the population depend on each other.

    Attributes
    ----------
    chains : int
        Number of Markov chains, of which the draws are those of the first, then those
        of the second and so on.
    worth : float
        How many independent draws they are worth at most, which draws from proposals do
        not show.
    """

    chains: int = 1
    worth: float = inf


@dataclass(frozen=True, repr=False)
class Outcome:
    """What one protection may come to, over `draws` of the population (one where it is
    known) and `replicates` of the release.

    Attributes
    ----------
    before : mapping of str to array of shape (draws, 1)
        The terms of R1, those of `TERMS`, which do not depend on the release.
    after : mapping of str to array of shape (draws, replicates)
        The terms of R2.
    losses : mapping of str to array of shape (replicates,)
        The measures of `information_loss`; a replicate is the same one as in `after`.
    dependence : Dependence
        Of the draws.
    """

    before: Mapping[str, Floats]
    after: Mapping[str, Floats]
    losses: Mapping[str, Floats]
    dependence: Dependence

    def risk(self, measure: str, weights: Weights) -> Floats:
        """R1, (draws, 1), or R2, (draws, replicates), at these weights."""
        terms = self.before if measure == "R1" else self.after
        weighted: Floats = sum(
            weight * terms[name] for weight, name in zip(weights, TERMS, strict=True)
        )  # type: ignore[assignment]
        return weighted


def outcomes(
    released: Mapping[str, xr.DataArray],
    *,
    table: xr.DataArray,
    population: xr.DataArray | None,
    where: xr.DataArray | None,
    association: Sequence[str] | None,
) -> Iterator[tuple[str, Outcome]]:
    """The outcomes of each protection in turn, by name, from unchecked arguments as in
    `risk_utility`.

    One at a time, because all of them may be more than fits in memory.
    """
    _check_released(released)
    like = (table, population, *released.values())
    table = check_table(table, like=like)
    whose = table
    if population is not None:
        whose = check_table(population, name="population", draws=True, values=False, like=(table,))
        refuse_suppressed(whose, "population")
    if REPLICATE in whose.dims:
        raise TableError(
            "population must be one table or draws of one over 'chain' and 'draw': it has the"
            f" dimensions {whose.dims}"
        )
    aligned(whose, table, names=("population", "table"))
    for name, release in released.items():
        _check_release(release, f"released[{name!r:.80}]", table, where)
    before = _terms(whose, None, where)
    worth: Any = getattr(population, "attrs", {}).get(WORTH)
    known = is_real(worth) and worth > 0
    dependence = Dependence(whose.sizes.get("chain", 1), float(worth) if known else inf)

    def outcome(release: xr.DataArray) -> Outcome:
        loss = information_loss(table, release, association=association, where=where)
        losses = {str(measure): values.values.ravel() for measure, values in loss.items()}
        after = _terms(whose, release, where)
        return Outcome(before, after, losses, dependence)

    return ((name, outcome(release)) for name, release in released.items())


def _check_released(released: Any) -> None:
    """Raise unless there are releases by name."""
    if not isinstance(released, Mapping) or not released:
        raise ParameterError(
            f"released must be a mapping of names to releases, got {quoted(released)}"
        )
    for name in released:
        if not isinstance(name, str) or not name:
            raise ParameterError(f"the name of a method must be text, got {quoted(name)}")


def _check_release(
    release: xr.DataArray, called: str, table: xr.DataArray, where: xr.DataArray | None
) -> None:
    """Raise unless it is a table of the same cells or replicates of one, by its name
    among all that are released.
    """
    release = check_table(release, name=called, draws=True, like=(table,))
    drawn = [dim for dim in ("chain", "draw") if dim in release.dims]
    if drawn:
        raise TableError(
            f"{called} must be one table or replicates of one along {REPLICATE!r}: it has the"
            f" dimensions {drawn}"
        )
    aligned(release, table, names=(called, "table"))
    if where is not None:
        cell_mask(release, where, name=f"where, which holds for {called}, too,")


def _terms(
    population: xr.DataArray, release: xr.DataArray | None, where: xr.DataArray | None
) -> dict[str, Floats]:
    """Terms of the risk, each (draws, replicates); the population is read a part at a
    time.
    """
    drawn = {"chain", "draw"} <= set(population.dims)
    parts = split_draws(population) if drawn else [population]
    risks = [disclosure_risk(part, release, where=where) for part in parts]
    return {name: np.concatenate([_by_draw(risk[name]) for risk in risks]) for name in TERMS}


def _by_draw(values: xr.DataArray) -> Floats:
    """Values of a part of the draws with their replicates, if any, on the last axis."""
    replicates = values.sizes.get(REPLICATE, 1)
    ordered = values.transpose("chain", "draw", REPLICATE, missing_dims="ignore")
    flat: Floats = ordered.values.reshape(-1, replicates)
    return flat
