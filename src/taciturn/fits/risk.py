"""From a fit to the risk of its table."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.errors import ParameterError, TableError
from taciturn.fits.parts import FitParts, fit_parts
from taciturn.risk.table_risk import DEFAULT_WEIGHTS, Weights, risk_of_counts
from taciturn.risk.uniques import uniques_of_counts
from taciturn.schema import cell_label, split_draws
from taciturn.validate import check_weights, names_of

__all__ = [
    "MEASURES",
    "RISK_BY",
    "assess",
    "check_by",
    "check_cells",
    "fillable_cells",
    "measures",
    "risk_of_fit",
    "risks",
]

RISK_BY: Final = "risk_by_"
MEASURES: Final = ("R1", "R2", "zero_term", "entropy_term", "size_term", "tau1", "tau2")


def assess(
    fit: xr.DataTree,
    *,
    weights: Sequence[float] = DEFAULT_WEIGHTS,
    by: str | Sequence[str] = (),
) -> xr.DataTree:
    """Add the risk of the sample table to a fit: R1, R2 and their terms, τ1 and τ2 of
    every posterior draw.

    Parameters
    ----------
    fit : DataTree
        What an estimator's `fit` returns, or any tree that keeps the population
        contract.
    weights : sequence of three floats
        As in `disclosure_risk`.
    by : str or sequence of str
        Variables whose categories are to be assessed, too, each category as a table of
        its own.

    Returns
    -------
    DataTree
        The fit with the group ``risk``: ``R1``, ``R2``, ``zero_term``,
        ``entropy_term``, ``tau1`` and ``tau2``, each (chain, draw). Its attributes hold
        ``weights``, ``variant`` and ``size_term``, which depends on the population size
        alone. For each variable in `by` also the group ``risk_by_<variable>``: the
        same, ``size_term`` included, each (chain, draw, variable), and the coordinate
        ``empty``, the share of draws that have nobody in the category. The given tree
        is left as it was.

    Raises
    ------
    TableError
        A group is missing, or the draws break the population contract; a table, or a
        category of `by`, with fewer than two cells that can be filled.
    ParameterError
        Weights that are negative or do not sum to 1; `by` that does not name variables
        of the table.

    Notes
    -----
    *Categories without people.* A draw of the population may have nobody in a category
    that has nobody in the sample. A release gives nothing away about anybody there, and
    all measures are 0 in that draw, so that the posterior has the probability ``empty``
    at 0. The risk given that there is somebody is that of the draws with a
    ``size_term`` above 0.

    Examples
    --------
    >>> import taciturn as tc
    >>> religion = tc.load_dataset("area_by_religion")
    >>> sample = tc.draw_sample(religion, fraction=0.1, random_seed=1)
    >>> fit = tc.LogLinear().fit(sample, population_size=2449, draws=100, random_seed=1)
    >>> assessed = tc.assess(fit, by="area")
    >>> assessed["risk"]["R2"].sizes
    Frozen({'chain': 4, 'draw': 100})
    >>> assessed["risk_by_area"]["R2"].sizes
    Frozen({'chain': 4, 'draw': 100, 'area': 10})
    """
    parts = fit_parts(fit)
    variables = check_by(by, parts.variables)
    whole, *rest = risks(parts, check_weights(weights), (None, *variables))
    assessed = fit.copy()
    for name in [name for name in assessed.children if name.startswith(RISK_BY)]:
        del assessed[name]
    assessed["risk"] = xr.DataTree(whole)
    for variable, risk in zip(variables, rest, strict=True):
        assessed[f"{RISK_BY}{variable}"] = xr.DataTree(risk)
    return assessed


def risk_of_fit(fit: xr.DataTree, parts: FitParts) -> xr.Dataset:
    """The group ``risk`` of a fit with these parts; with the default weights if the fit
    was not assessed.
    """
    if "risk" in fit.children and {"R1", "R2", "tau1", "tau2"} <= set(fit["risk"].data_vars):
        return fit["risk"].to_dataset().compute()
    (risk,) = risks(parts, DEFAULT_WEIGHTS, (None,))
    return risk


def check_by(by: Any, of_table: tuple[str, ...]) -> tuple[str, ...]:
    """Names of variables whose categories can be assessed in a table of these."""
    variables = tuple(names_of(by, "by"))
    if not set(variables) <= set(of_table) or len(set(variables)) < len(variables):
        raise ParameterError(
            f"by must name variables of the table, {of_table}, each once; got {list(variables)}"
        )
    if variables and len(of_table) == 1:
        raise TableError(f"a table needs at least 2 cells: each of {variables[0]!r} has 1")
    for variable in variables:
        if variable in (*MEASURES, "empty"):
            raise TableError(f"the variable {variable!r} has the name of a result: rename it")
    return variables


def risks(
    parts: FitParts, weights: Weights, variables: Sequence[str | None]
) -> Iterator[xr.Dataset]:
    """Risk of the whole table (None) or of each category of a variable.

    The draws are read once, a block at a time.
    """
    blocks = [
        _measured(part.compute(), parts, weights, variables)
        for part in split_draws(parts.population)
    ]
    for variable, of_blocks in zip(variables, zip(*blocks, strict=True), strict=True):
        yield _labelled(parts, weights, variable, of_blocks)


def _measured(
    part: xr.DataArray, parts: FitParts, weights: Weights, variables: Sequence[str | None]
) -> list[dict[str, Any]]:
    """Measures of a block of draws that keep the population contract, (draws,) or, of
    the categories of a variable, (draws, categories).
    """
    parts.check_counts(part)
    measured = []
    for variable in variables:
        check_cells(fillable_cells(parts, variable))
        tables = part.values.reshape(-1, *parts.sample.shape)
        axis = None if variable is None else parts.variables.index(variable)
        measured.append(measures(tables, parts.sample.values, parts.fillable, axis, weights))
    return measured


def measures(
    tables: npt.NDArray[np.int64],
    sample: npt.NDArray[np.int64],
    mask: npt.NDArray[np.bool_],
    axis: int | None,
    weights: Weights,
) -> dict[str, Any]:
    """Every measure of each table, (..., draws), or of the categories along an axis of
    the table, (..., draws, categories). Leading axes of tables and samples broadcast;
    the mask has those of a table alone.
    """
    core = mask.ndim
    if axis is not None:
        own = axis - core
        tables, sample = np.moveaxis(tables, own, -core), np.moveaxis(sample, own, -core)
        mask, core = np.moveaxis(mask, own, -core), core - 1
    tau1, tau2 = uniques_of_counts(tables, sample, core=core)
    risk = risk_of_counts(tables, sample, mask, core=core, weights=weights)
    return {**risk, "tau1": tau1, "tau2": tau2}


def fillable_cells(parts: FitParts, variable: str | None) -> xr.DataArray:
    """How many cells of the table (None), or of each category of a variable, can be
    filled.
    """
    cells = parts.sample.copy(data=parts.fillable)
    return cells.sum([dim for dim in parts.variables if dim != variable])


def check_cells(cells: xr.DataArray) -> None:
    """Raise `TableError` unless there are two cells to fill, in every category."""
    few = np.argwhere(cells.values < 2)
    if len(few):
        position = tuple(int(i) for i in few[0])
        at = cell_label(cells, position) or "the table"
        raise TableError(f"a table needs at least 2 cells: {at} has {cells.values[position]}")


def _labelled(
    parts: FitParts, weights: Weights, variable: str | None, blocks: Sequence[dict[str, Any]]
) -> xr.Dataset:
    """The measures of all blocks with the labels of the draws and of the variable."""
    draws = parts.population
    dims = ("chain", "draw") if variable is None else ("chain", "draw", variable)
    shape = tuple(draws.sizes[dim] for dim in dims)
    arrays = {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}
    risk = xr.Dataset(
        {name: (dims, arrays[name].reshape(shape)) for name in MEASURES},
        coords={dim: draws[dim] for dim in dims if dim in draws.coords},
        attrs={"weights": list(weights), "variant": "2015"},
    )
    if variable is not None:
        # The size term is 0 where there is nobody, and nowhere else.
        return risk.assign_coords(empty=(risk["size_term"] == 0).mean(("chain", "draw")))
    return risk.drop_vars("size_term").assign_attrs(size_term=float(risk["size_term"][0, 0]))
