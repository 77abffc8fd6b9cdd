"""What the records of a study say about each estimator: bias, error and coverage."""

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.fits.unlabelled import (
    INTERVAL,
    MEASURES,
)

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["STATISTICS", "study_table", "summarise"]

Floats = npt.NDArray[np.float64]
STATISTICS: Final = ("truth", "estimate", "bias", "rmse", "coverage", "width", "score")
"""What a study reports for each estimator, each with its Monte Carlo error
``<name>_mcse``."""
_ROUNDING: Final = 1e-12  # the truth may equal an end of the interval up to rounding


def summarise(
    records: Sequence[dict[str, Any]], names: list[str], sizes: Mapping[float, int], samples: int
) -> xr.Dataset:
    """The statistics of every estimator, fraction and measure."""
    by_cell: dict[tuple[str, int], dict[int, dict[str, Any]]] = {}
    for record in records:
        if record["sample"] < samples:
            by_cell.setdefault((record["estimator"], record["size"]), {})[record["sample"]] = record
    shape = (len(names), len(sizes), len(MEASURES))
    values = {
        f"{name}{end}": np.full(shape, np.nan) for name in STATISTICS for end in ("", "_mcse")
    }
    failures, unconverged = np.zeros(shape[:2], dtype=np.int64), np.zeros(shape[:2], dtype=np.int64)
    messages: dict[str, str] = {}
    for i, name in enumerate(names):
        for j, size in enumerate(sizes.values()):
            cell = [record for _, record in sorted(by_cell[name, size].items())]
            fitted = [record for record in cell if "failure" not in record]
            failures[i, j] = len(cell) - len(fitted)
            unconverged[i, j] = sum(not record["converged"] for record in fitted)
            for record in cell:
                if "failure" in record:
                    messages.setdefault(name, record["failure"])
            for k in range(len(MEASURES)):
                for statistic, value in _statistics(cell, fitted, k).items():
                    values[statistic][i, j, k] = value
    dims = ("estimator", "fraction", "measure")
    return xr.Dataset(
        {
            **{name: (dims, array) for name, array in values.items()},
            "failures": (dims[:2], failures),
            "unconverged": (dims[:2], unconverged),
        },
        coords={"estimator": names, "fraction": list(sizes), "measure": list(MEASURES)},
        attrs={"failure_messages": json.dumps(messages), "interval": INTERVAL},
    )


def _statistics(
    cell: list[dict[str, Any]], fitted: list[dict[str, Any]], k: int
) -> dict[str, float]:
    """The statistics of one measure; NaN where nothing was estimated, or for an error
    from a single sample.
    """
    found = dict(
        zip(("truth", "truth_mcse"), _mean_and_error([r["truth"][k] for r in cell]), strict=True)
    )
    truth = np.array([r["truth"][k] for r in fitted])
    mean = np.array([r["mean"][k] for r in fitted])
    low, high = np.array([r["interval"][k] for r in fitted]).reshape(-1, 2).T
    missed = np.maximum(low - truth, 0) + np.maximum(truth - high, 0)
    score = high - low + 2 / (1 - INTERVAL) * missed
    each = {"estimate": mean, "bias": mean - truth, "width": high - low, "score": score}
    for name, values in each.items():
        found[name], found[f"{name}_mcse"] = _mean_and_error(values)
    square, error = _mean_and_error((mean - truth) ** 2)
    found["rmse"] = square**0.5
    found["rmse_mcse"] = error / (2 * found["rmse"]) if found["rmse"] > 0 else error
    held, out = int((missed <= _ROUNDING).sum()), len(cell)
    a, b = held + 0.5, out - held + 0.5
    found["coverage"], found["coverage_mcse"] = held / out, (a * b / (a + b + 1)) ** 0.5 / (a + b)
    return found


def _mean_and_error(values: Sequence[float] | Floats) -> tuple[float, float]:
    array = np.asarray(values, dtype=float)
    mean = float(array.mean()) if array.size else np.nan
    return mean, float(array.std(ddof=1)) / array.size**0.5 if array.size > 1 else np.nan


def study_table(result: xr.Dataset) -> "pd.DataFrame":
    """Lay a study out as a table: one row for each fraction, measure and estimator.

    Parameters
    ----------
    result : Dataset
        What `study` returns.

    Returns
    -------
    pandas.DataFrame
        The statistics and their Monte Carlo errors as columns.

    Examples
    --------
    >>> import taciturn as tc
    >>> result = tc.study(
    ...     tc.load_dataset("area_by_sex"),
    ...     {"urn": tc.PolyaUrn()},
    ...     fractions=[0.1],
    ...     samples=3,
    ...     draws=10,
    ...     random_seed=1,
    ...     progressbar=False,
    ...     workers=1,
    ... )
    >>> columns = ["fraction", "measure", "estimator"]
    >>> tc.studies.study_table(result)[columns].values.tolist()
    [[0.1, 'R1', 'urn'], [0.1, 'R2', 'urn'], [0.1, 'tau1', 'urn']]
    """
    order: list[Any] = ["fraction", "measure", "estimator"]
    return result.to_dataframe(dim_order=order).reset_index()
