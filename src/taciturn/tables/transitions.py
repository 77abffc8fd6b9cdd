"""Checks of tables of transition probabilities: what a value becomes, how likely."""

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.errors import ParameterError

__all__ = [
    "check_perturbation_table",
    "check_probabilities",
    "cumulated_rows",
    "perturbed_counts",
    "refuse_where",
]

Counts = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_NAME: Final = "perturbation"


def check_perturbation_table(perturbation: Any) -> tuple[Floats, Counts]:
    """Cumulated rows of a perturbation table, and the counts of its columns; raise
    `ParameterError` if it is not one.
    """
    values, rows, columns = check_probabilities(perturbation, ("original", "perturbed"))
    if not np.issubdtype(columns.dtype, np.integer):
        raise ParameterError(
            f"{_NAME}: the labels of 'perturbed' must be whole numbers, got {columns.dtype}"
        )
    for bad, rule in (
        ((values > 0) & (columns < 0), "counts cannot become negative"),
        (
            (values > 0) & (columns > 0) & (rows[:, None] == 0),
            "zero must stay zero, as an empty cell has no key",
        ),
    ):
        refuse_where(bad, rule, values, {"original": rows, "perturbed": columns})
    return cumulated_rows(values), columns.astype(np.int64)


def check_probabilities(
    perturbation: Any, dims: tuple[str, str]
) -> tuple[Floats, npt.NDArray[np.int64], npt.NDArray[Any]]:
    """Distributions over `dims`, and the labels of both; raise `ParameterError` unless
    the rows are 0, 1, ... and each is a distribution.
    """
    if not isinstance(perturbation, xr.DataArray) or set(perturbation.dims) != set(dims):
        found = (
            perturbation.dims
            if isinstance(perturbation, xr.DataArray)
            else type(perturbation).__name__
        )
        raise ParameterError(f"{_NAME} must be a DataArray with the dims {dims}, got {found}")
    perturbation = perturbation.transpose(*dims)
    rows, columns = (perturbation[dim].values for dim in dims)
    if not np.issubdtype(rows.dtype, np.integer):
        raise ParameterError(
            f"{_NAME}: the labels of {dims[0]!r} must be whole numbers, got {rows.dtype}"
        )
    if not np.array_equal(rows, np.arange(len(rows))) or len(rows) < 2:
        raise ParameterError(
            f"{_NAME}: the labels of {dims[0]!r} must be 0, 1, ... without a gap, got"
            f" {rows.tolist()}"
        )
    if not np.issubdtype(columns.dtype, np.number) or not (np.diff(columns) > 0).all():
        raise ParameterError(
            f"{_NAME}: the labels of {dims[1]!r} must be numbers that rise, got {columns.tolist()}"
        )
    values = np.asarray(perturbation.values, dtype=float)
    outside = ~((values >= 0) & (values <= 1 + 1e-9))
    labels = {dims[0]: rows, dims[1]: columns}
    refuse_where(outside, "probabilities must be from 0 to 1", values, labels)
    sums = values.sum(axis=1)
    wrong = np.flatnonzero(abs(sums - 1) > 1e-9)
    if len(wrong):
        raise ParameterError(
            f"{_NAME}: each row must sum to 1: {dims[0]}={wrong[0]} sums to {sums[wrong[0]]:.9g}"
        )
    return values, rows, columns


def cumulated_rows(values: Floats) -> Floats:
    """Cumulated probabilities. The last outcome of a row that has a positive one is
    cumulated to infinity, so that rounding cannot leave a key without an outcome.
    """
    cumulated = values.cumsum(axis=1)
    last = values.shape[1] - 1 - np.argmax(values[:, ::-1] > 0, axis=1)
    cumulated[np.arange(values.shape[1]) >= last[:, None]] = np.inf
    return cumulated


def perturbed_counts(counts: Counts, keys: Floats, cumulated: Floats, perturbed: Counts) -> Counts:
    """Perturbed counts at the given cell keys; `keys` may have leading axes."""
    last = len(cumulated) - 1
    rows = np.minimum(counts, last)
    out = np.empty(keys.shape, dtype=np.int64)
    for row in np.unique(rows):
        at = rows == row
        found = perturbed[np.searchsorted(cumulated[row], keys[..., at], side="right")]
        out[..., at] = counts[at] + (found - row)
    return out


def refuse_where(
    bad: npt.NDArray[np.bool_], rule: str, values: Floats, labels: dict[str, npt.NDArray[Any]]
) -> None:
    """Raise `ParameterError` for the first value that breaks a rule."""
    if not bad.any():
        return
    at = np.argwhere(bad)[0]
    place = ", ".join(
        f"{dim}={names[i]:g}" for (dim, names), i in zip(labels.items(), at, strict=True)
    )
    raise ParameterError(f"{_NAME}: {rule}: {place} holds {values[tuple(at)]:g}")
