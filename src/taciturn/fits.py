"""Fits as they are kept: their parts, writing and reading them, and making them again."""

import json
import os
from os import PathLike
from pathlib import Path
from typing import Final

import numpy as np
import xarray as xr

from taciturn.errors import FileFormatError, TableError
from taciturn.estimators import estimator_from_spec
from taciturn.schema import SCHEMA_VERSION, table_dims

__all__ = ["check_writable", "fit_parts", "read_fit", "repeat_fit", "save_fit"]

_NEEDED: Final = (
    ("posterior_predictive", "population"),
    ("observed_data", "sample"),
    ("constant_data", "population_size"),
)


def fit_parts(fit: xr.DataTree) -> tuple[xr.DataArray, xr.DataArray, int, xr.DataArray | None]:
    """Population draws, sample, population size and structural zeros (None without any) of a fit."""
    if not isinstance(fit, xr.DataTree):
        raise TableError(f"a fit is an xarray.DataTree, got {type(fit).__name__}")
    for group, name in _NEEDED:
        if group not in fit.children or name not in fit[group].data_vars:
            raise TableError(f"the fit has no {name!r} in the group {group!r}")
    sample = fit["observed_data"].to_dataset()["sample"]
    population = fit["posterior_predictive"].to_dataset()["population"]
    missing = [dim for dim in ("chain", "draw") if dim not in population.dims]
    if missing:
        raise TableError(f"the population draws of the fit have no dimension {missing}: they have {population.dims}")
    constants = fit["constant_data"].to_dataset()
    zeros = constants["structural_zeros"].astype(bool) if "structural_zeros" in constants else None
    if zeros is not None and not bool(zeros.any()):
        zeros = None
    population = population.transpose("chain", "draw", *table_dims(sample))
    return population, sample, int(constants["population_size"]), zeros


def save_fit(fit: xr.DataTree, path: str | PathLike[str]) -> None:
    """Write a fit as netCDF, which ArviZ and xarray read; the file appears complete or not at all.

    Parameters
    ----------
    fit : DataTree
        A fit, assessed or not.
    path : path
        Where to; an existing file is replaced.

    Raises
    ------
    FileFormatError
        The place cannot be written to.
    """
    fit_parts(fit)
    path = Path(path)
    check_writable(path)
    packed = {"zlib": True, "complevel": 4, "shuffle": True}
    encoding = {
        f"/{name}": {variable: packed for variable, array in node.data_vars.items() if array.ndim}
        for name, node in fit.children.items()
    }
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        fit.to_netcdf(temporary, engine="h5netcdf", encoding=encoding)
        temporary.replace(path)
    except (OSError, ValueError, TypeError) as error:  # the latter two: labels that netCDF cannot hold
        raise FileFormatError(f"{path}: cannot be written: {error}") from error
    finally:
        temporary.unlink(missing_ok=True)


def read_fit(path: str | PathLike[str]) -> xr.DataTree:
    """Read a fit that `save_fit` or ArviZ wrote as netCDF.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    DataTree
        Wholly in memory; the file is closed.

    Raises
    ------
    FileFormatError
        The file is missing, truncated, no netCDF, holds no fit, or was written by a newer version.
    """
    path = Path(path)
    if not path.is_file():
        raise FileFormatError(f"{path}: no such file")
    try:
        with xr.open_datatree(path, engine="h5netcdf") as tree:
            fit = tree.load()
    except (OSError, ValueError, KeyError, TypeError, RuntimeError, AttributeError) as error:
        raise FileFormatError(f"{path}: not a readable netCDF file: {error}") from error
    written = fit.attrs.get("schema_version", 0)
    if not isinstance(written, int | np.integer) or written > SCHEMA_VERSION:
        raise FileFormatError(f"{path}: written by a newer version (layout {written}, this one reads {SCHEMA_VERSION})")
    try:
        fit_parts(fit)
    except TableError as error:
        raise FileFormatError(f"{path}: holds no fit: {error}") from error
    return fit


def repeat_fit(fit: xr.DataTree, *, progressbar: bool = True) -> xr.DataTree:
    """Fit again from what a fit records: the same estimator, sample, settings and seed.

    Parameters
    ----------
    fit : DataTree
        A fit, as returned by an estimator or read from a file.
    progressbar : bool
        Show the sampler's progress.

    Returns
    -------
    DataTree
        A new fit. With the same versions on the same kind of machine its numbers are the same.

    Raises
    ------
    FileFormatError
        The fit does not say how it was made.
    """
    _, sample, population_size, zeros = fit_parts(fit)
    try:
        estimator = estimator_from_spec(fit.attrs["estimator"])
        settings = json.loads(fit.attrs["settings"])
        known = {name: int(settings[name]) for name in ("draws", "tune", "chains", "random_seed")}
        method = settings.get("method", "nuts")
    except (KeyError, ValueError, TypeError) as error:
        raise FileFormatError("the fit does not record its estimator and settings, so it cannot be repeated") from error
    return estimator.fit(
        sample, population_size=population_size, structural_zeros=zeros, progressbar=progressbar, method=method, **known
    )


def check_writable(path: Path) -> None:
    """Raise `FileFormatError` unless a file can appear at `path`; asked before long work, so that none is lost."""
    if path.is_dir():
        raise FileFormatError(f"{path}: is a folder; give the name of a file")
    if not path.parent.is_dir():
        raise FileFormatError(f"{path}: the folder {path.parent} does not exist")
    if not os.access(path.parent, os.W_OK):
        raise FileFormatError(f"{path}: the folder {path.parent} cannot be written to")
