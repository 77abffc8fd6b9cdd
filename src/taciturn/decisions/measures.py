"""What decisions are about: R2, and the losses of which less is better."""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from taciturn.errors import ParameterError
from taciturn.risk.outcomes import Outcome
from taciturn.risk.table_risk import Weights
from taciturn.validate import one_of

__all__ = ["DECIMALS", "LOSSES", "RISK", "check_loss", "named", "values_of"]

RISK: Final = "R2"
LOSSES: Final = (
    "hellinger",
    "mean_absolute_error",
    "mean_relative_error",
    "lost_zeros",
    "new_zeros",
    "spearman",
    "cramers_v_change",
    "chi_squared_change",
    "between_variance_change",
)
"""Of `information_loss`: a rank correlation is a loss by what it is less than 1, a
change by its size.
"""

DECIMALS: Final = 12
"""Of a measure; what differs by less is the same, as the rest is rounding."""

Floats = npt.NDArray[np.float64]


def values_of(outcome: Outcome, name: str, weights: Weights) -> Floats:
    """R2, (draws, replicates), or a loss, (1, replicates), of one protection."""
    if name == RISK:
        return _without_dust(outcome.risk(RISK, weights))
    if name not in outcome.losses:
        raise ParameterError(f"{name} is not measured here: give association=, two variables")
    measured = outcome.losses[name]
    if np.isnan(measured).any():  # of the table alone, and so for every release
        raise ParameterError(
            f"{name} is not defined for this table, which has no"
            f" {'order of cells' if name == 'spearman' else 'association'} to lose: take another"
            " measure"
        )
    losses: Floats = 1 - measured if name == "spearman" else np.abs(measured)
    return _without_dust(losses[np.newaxis])


def _without_dust(values: Floats) -> Floats:
    """Zeros in the place of what rounding left of them; the rest is not rounded, as
    means would then differ where those of exact values are the same.
    """
    return np.where(np.abs(values) < 10.0**-DECIMALS, 0.0, values)


def named(name: str) -> str:
    """A measure as it is compared, where less is better: what `values_of` gives."""
    if name == "spearman":
        return "1 - spearman"
    return f"|{name}|" if name.endswith("_change") else name


def check_loss(name: Any, argument: str, *, also: tuple[str, ...] = ()) -> str:
    """The name of a loss, or one of some others."""
    return one_of(name, argument, (*also, *LOSSES))
