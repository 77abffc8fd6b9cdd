"""Draws in numbers: mean, spread, quantiles and Monte Carlo error of each measure."""

from math import sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from taciturn.diagnostics import AnyDiagnostics, Diagnostics, error_of_mean

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["columns_of", "draws_table", "independent_draws", "row_of"]


def independent_draws(diagnostics: AnyDiagnostics | None, draws: int) -> float | None:
    """The effective number of draws that were made from proposals, of which there may
    be more; None of a chain, whose draws tell it themselves, and of independent ones.
    """
    return None if isinstance(diagnostics, Diagnostics | None) else min(diagnostics.ess, draws)


def draws_table(risk: xr.Dataset, probability: float, independent: float | None) -> "pd.DataFrame":
    """One row a measure: mean, sd, the ends and the middle of the interval, and the
    Monte Carlo error of the mean; ``size_term``, an attribute, among the terms.

    `independent` is the effective number of draws where it cannot be told from the
    draws themselves: without it ArviZ estimates it.
    """
    import pandas as pd

    rows: dict[str, list[float]] = {}
    for measure, draws in risk.data_vars.items():
        rows[str(measure)] = row_of(draws, probability, independent)
        if measure == "entropy_term" and "size_term" in risk.attrs:
            size = float(risk.attrs["size_term"])
            rows["size_term"] = [size, 0.0, size, size, size, 0.0]
    return pd.DataFrame.from_dict(rows, orient="index", columns=columns_of(probability))


def columns_of(probability: float) -> list[str]:
    """Names of the numbers of a row."""
    return ["mean", "sd", *(f"{100 * q:g}%" for q in _quantiles(probability)), "mcse"]


def row_of(draws: xr.DataArray, probability: float, independent: float | None) -> list[float]:
    """The numbers of one measure."""
    values = draws.transpose("chain", "draw").values.astype(float)
    spread = float(values.std(ddof=1)) if values.size > 1 else 0.0
    ends = map(float, np.quantile(values, _quantiles(probability)))
    return [float(values.mean()), spread, *ends, _error(values, spread, independent)]


def _quantiles(probability: float) -> list[float]:
    tail = (1 - probability) / 2
    return [tail, 0.5, 1 - tail]


def _error(values: Any, spread: float, independent: float | None) -> float:
    """Monte Carlo error of the mean of draws, (chain, draw)."""
    if spread == 0:
        return 0.0
    if independent is not None:
        return spread / sqrt(independent)
    return error_of_mean(values)
