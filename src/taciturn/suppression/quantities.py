"""Several quantities of the same records: what is said of each, and patterns that
suppress the same cells of all.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypedDict

import numpy as np
import xarray as xr

from taciturn.attack.bounds.knowledge import Knowledge
from taciturn.attack.bounds.of_release import attacker_bounds
from taciturn.attack.rank import rank_decrease
from taciturn.errors import ParameterError
from taciturn.magnitude.sensitivity import Safe
from taciturn.schema import PRIMARY, SAFE, SECONDARY
from taciturn.suppression.apriori import Apriori, instructions_of
from taciturn.suppression.arguments import checked_cells, checked_costs
from taciturn.suppression.pattern import SuppressionPattern
from taciturn.tables.hierarchies import Hierarchies
from taciturn.tables.margins import Margin
from taciturn.validate import names_of, quoted

__all__ = ["ProtectOptions", "by_quantity", "quantities_of", "with_same_cells"]


class ProtectOptions(TypedDict, total=False):
    """What `protect_table` is given beside its records and rules."""

    contributor: str | None
    holding: str | None
    sampling_weights: str | None
    request: str | None
    waiver: str | None
    decimals: int | Mapping[str, int]
    largest: int
    categories: Mapping[str, Sequence[Any]] | None
    missing: str | int
    hierarchies: Hierarchies | None
    sep: str | None
    encoding: str | None
    safe: Safe | None
    knowledge: tuple[float, float] | Knowledge | None
    apriori: Apriori | Mapping[str, Apriori | None] | None
    safety_range: float
    empty_cells_known: bool
    same_cells: bool
    time_limit: float
    gap: float
    random_seed: int | np.random.Generator | None
    progressbar: bool


def quantities_of(value: Any) -> list[str]:
    """One quantity or several, each once."""
    names = names_of(value, "value")
    if not names or len(set(names)) < len(names):
        raise ParameterError(f"value must name one column or several, each once, got {names}")
    return names


def by_quantity(quantities: Sequence[str], **given: Any) -> dict[str, dict[str, Any]]:
    """For each quantity what is given for it: one value for all, or a mapping by
    quantity.
    """
    for name, each in given.items():
        if isinstance(each, Mapping) and set(each) != set(quantities):
            raise ParameterError(
                f"{name} must be one for all quantities, or one for each of {list(quantities)}, got"
                f" {quoted(list(each))}"
            )
    return {
        quantity: {
            name: each[quantity] if isinstance(each, Mapping) else each
            for name, each in given.items()
        }
        for quantity in quantities
    }


def with_same_cells[T: Any](
    tables: Mapping[str, T], apriori: Apriori | Mapping[str, Apriori | None] | None
) -> dict[str, T]:
    """The protected tables of some quantities with all cells suppressed that are so for
    one of them, and their audits again.

    What protects still does: with more cells suppressed, all tables that were
    compatible with what is published still are.
    """
    hidden: dict[Margin, xr.DataArray] = {}
    for table in tables.values():
        for names, status in table.pattern.status.items():
            mask = status != SAFE
            hidden[names] = hidden[names] | mask if names in hidden else mask
    done = {}
    for name, told in by_quantity(list(tables), apriori=apriori).items():
        pattern = _widened(tables[name].pattern, hidden, name, told["apriori"])
        done[name] = replace(tables[name], pattern=pattern, tables=pattern.tables)
    return done


def _widened(
    pattern: SuppressionPattern,
    hidden: Mapping[Margin, xr.DataArray],
    quantity: str,
    told: Apriori | None,
) -> SuppressionPattern:
    """A pattern with these cells suppressed, all of its own among them."""
    status = {
        names: each.where((each != SAFE) | ~hidden[names], SECONDARY)
        for names, each in pattern.status.items()
    }
    released: Any = pattern.release  # linked tables, of which all cells may be suppressed
    release = replace(released, suppressed=hidden)
    cells = checked_cells(released.true_table, list(status), released.decimals)
    kinds = np.concatenate([each.values.ravel() for each in status.values()])
    primary = kinds == PRIMARY
    costs = instructions_of(told, cells).prices(checked_costs(None, cells), primary, cells)
    barred = np.isinf(costs) & (kinds != SAFE)
    if barred.any():
        raise ParameterError(
            f"same_cells: {cells.label(int(np.argmax(barred)))} is to be published in {quantity!r},"
            " and suppressed in another quantity"
        )
    cost = float(costs[kinds == SECONDARY].sum())
    audit = pattern.audit
    if pattern.complete:  # otherwise there may be no time; what was possible still is
        audit = {
            names: attacker_bounds(
                release,
                margin=names,
                cells=status[names] == PRIMARY,
                knowledge=pattern.knowledge or None,
                progressbar=False,
            )
            for names in pattern.audit
        }
    return replace(
        pattern,
        release=release,
        status=status,
        audit=audit,
        cost=cost,
        bound=min(pattern.bound, cost),
        rank_decrease=rank_decrease(replace(released, suppressed=None), hidden),
        compared=1,
    )
