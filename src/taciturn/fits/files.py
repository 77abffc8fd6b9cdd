"""Fits as files: writing and reading them."""

import warnings
from io import BytesIO
from os import PathLike
from pathlib import Path

import numpy as np
import xarray as xr

from taciturn.errors import FileFormatError, TaciturnError
from taciturn.estimators import estimator_from_spec
from taciturn.estimators.problem import make_problem
from taciturn.estimators.settings import Parameters
from taciturn.files import check_output, check_readable, whole_file
from taciturn.fits.declared import check_declared
from taciturn.fits.parts import fit_parts, fitted_parameters, known_parts
from taciturn.fits.recorded import recorded_estimator, recorded_settings
from taciturn.fits.stored import check_groups, check_stored
from taciturn.schema import SCHEMA_VERSION
from taciturn.validate import is_whole, quoted, whole_number

__all__ = ["read_fit", "save_fit"]


def save_fit(fit: xr.DataTree, path: str | PathLike[str], *, overwrite: bool = False) -> None:
    """Write a fit as netCDF, which ArviZ and xarray can read; the file appears complete
    or not at all.

    Tables that are drawn as they are read are left out if `read_fit` can draw the same
    ones again from the parameters and the seed. They are written in full for a subset
    of the draws, for a stack and for an estimator of your own.

    Parameters
    ----------
    fit : DataTree
        A fit, assessed or not.
    path : path
        Where to: a new file, in a folder that exists.
    overwrite : bool
        Replace a file that exists; it is kept, whole, until the new one is on disk.

    Raises
    ------
    TableError
        A group is missing; parameters or likelihoods are no numbers of the draws of the
        population.
    FileFormatError
        Something is there already, and it is no regular file or `overwrite` is False;
        the file cannot be written, as on a full disk; labels that netCDF cannot hold.

    Notes
    -----
    The compressed file is made in memory before any of it is written, which takes about
    its size beside the fit: 12 MB for 192 MB of tables.

    Examples
    --------
    >>> import taciturn as tc
    >>> from tempfile import TemporaryDirectory
    >>> sample = tc.draw_sample(tc.load_dataset("area_by_sex"), size=245, random_seed=1)
    >>> fit = tc.LogLinear().fit(sample, population_size=2449, draws=50, random_seed=1)
    >>> with TemporaryDirectory() as folder:
    ...     tc.save_fit(fit, f"{folder}/fit.nc")
    ...     tc.save_fit(tc.assess(fit), f"{folder}/fit.nc", overwrite=True)
    ...     "risk" in tc.read_fit(f"{folder}/fit.nc").children
    True
    """
    population = fit_parts(fit).population
    check_groups(fit, population)
    path = Path(path)
    check_output(path, overwrite=overwrite)
    if "streamed" in fit.attrs:
        again = _can_be_drawn_again(fit, population)
        fit = fit.drop_nodes("posterior_predictive") if again else _stored(fit)
    packed = {"zlib": True, "complevel": 4, "shuffle": True}
    encoding = {
        node.path: {variable: packed for variable, array in node.data_vars.items() if array.ndim}
        for node in fit.subtree
    }
    packed_fit = BytesIO()  # HDF5 does not survive a disk that is full
    try:
        with warnings.catch_warnings():  # of names with a space, which `read_fit` knows
            warnings.simplefilter("ignore", xr.SerializationWarning)
            fit.to_netcdf(packed_fit, engine="h5netcdf", encoding=encoding)
    except (OSError, ValueError, TypeError) as error:  # labels that netCDF cannot hold
        raise FileFormatError(f"{path}: cannot be written: {error}") from error
    with whole_file(path, overwrite=overwrite) as file:
        file.write(packed_fit.getbuffer())


def _can_be_drawn_again(fit: xr.DataTree, population: xr.DataArray) -> bool:
    """Whether all draws of a fit are there as its estimator, one of this package, made
    them.
    """
    if recorded_estimator(fit) is None:
        return False
    settings = recorded_settings(fit)
    return all(
        np.array_equal(population[dim] if dim in population.coords else [], np.arange(number))
        for dim, number in (("chain", settings.chains), ("draw", settings.draws))
    )


def _stored(fit: xr.DataTree) -> xr.DataTree:
    """The fit with its tables in memory."""
    stored = fit.copy()
    stored["posterior_predictive"] = xr.DataTree(fit["posterior_predictive"].to_dataset().compute())
    del stored.attrs["streamed"]
    return stored


def read_fit(path: str | PathLike[str], *, most_bytes: int = 2**32) -> xr.DataTree:
    """Read a fit that `save_fit` or ArviZ wrote as netCDF.

    The file is data, and may come from anybody: what it declares is checked before it
    is read, and its numbers are held against each other.

    Parameters
    ----------
    path : path
        The file.
    most_bytes : int
        What its arrays may take in memory together, by default 4 GiB.

    Returns
    -------
    DataTree
        Held in memory; the file is closed.

    Raises
    ------
    FileFormatError
        The file is missing, truncated or not netCDF, holds no fit, or was written by a
        newer version. It names other files or holds links, which are not followed. It
        declares more than `most_bytes`. A population that contradicts the sample, the
        population size or what is known of it; a risk that is not that of the
        population; parameters of other draws.
    ParameterError
        `most_bytes` that is no number of bytes.

    Notes
    -----
    R1, R2, τ1 and τ2 are computed again from the population, which takes as long as
    `assess` did. Whether the population is one that the model gives is not checked:
    `repeat_fit` does that.

    Examples
    --------
    >>> import taciturn as tc
    >>> from tempfile import TemporaryDirectory
    >>> sample = tc.draw_sample(tc.load_dataset("area_by_sex"), size=245, random_seed=1)
    >>> fit = tc.LogLinear().fit(sample, population_size=2449, draws=50, random_seed=1)
    >>> with TemporaryDirectory() as folder:
    ...     tc.save_fit(fit, f"{folder}/fit.nc")
    ...     tc.read_fit(f"{folder}/fit.nc")["posterior_predictive"]["population"].shape
    (4, 50, 10, 2)
    """
    most_bytes = whole_number(most_bytes, "most_bytes", least=1, most=2**63 - 1)
    path = Path(path)
    check_readable(path)
    fit = _read_netcdf(path, most_bytes)
    written = fit.attrs.get("schema_version", 0)
    if not is_whole(written) or written < 0:
        raise FileFormatError(
            f"{path}: its layout, 'schema_version', must be a whole number up to {SCHEMA_VERSION},"
            f" got {quoted(written)}"
        )
    if written > SCHEMA_VERSION:
        raise FileFormatError(
            f"{path}: written by a newer version (layout {int(written)}, this one reads"
            f" {SCHEMA_VERSION})"
        )
    try:
        if "streamed" in fit.attrs:
            fit["posterior_predictive"] = xr.DataTree(_streamed_tables(fit))
        check_stored(fit, fit_parts(fit))
    except (TaciturnError, ArithmeticError, LookupError, ValueError) as error:
        raise FileFormatError(f"{path}: holds no fit: {error}") from error
    return fit


def _read_netcdf(path: Path, most_bytes: int) -> xr.DataTree:
    """All of a netCDF file, of which nothing is read before it was checked."""
    try:
        size = path.stat().st_size
        if size > most_bytes:
            raise FileFormatError(f"it has {size:,} bytes, more than most_bytes = {most_bytes:,}")
        content = BytesIO(path.read_bytes())
        check_declared(content, most_bytes=most_bytes)
        with xr.open_datatree(content, engine="h5netcdf") as tree:
            return _with_labels(tree.load())
    except FileFormatError as error:
        raise FileFormatError(f"{path}: {error!s:.400}") from error
    except Exception as error:  # whatever the libraries make of a broken file
        raise FileFormatError(
            f"{path}: not a fit, which save_fit and assess --save write as netCDF: {error!s:.400}"
        ) from error


def _with_labels(fit: xr.DataTree) -> xr.DataTree:
    """The fit with the labels of its variables as such: netCDF cannot say so where the
    name of one has a space.
    """
    sample = fit["observed_data"].to_dataset() if "observed_data" in fit.children else xr.Dataset()
    variables = sample["count"].dims if "count" in sample else ()
    for node in fit.subtree:
        if labels := set(variables) & set(node.data_vars):
            node.dataset = node.to_dataset(inherit=False).set_coords(labels)
    return fit


def _streamed_tables(fit: xr.DataTree) -> xr.Dataset:
    """Population and sample of a fit that was saved without them."""
    if "posterior_predictive" in fit.children:
        raise FileFormatError("it holds tables, and says that they are to be drawn again")
    try:
        estimator, settings = estimator_from_spec(fit.attrs["estimator"]), recorded_settings(fit)
    except (KeyError, FileFormatError) as error:
        raise FileFormatError(
            f"it holds no tables, and they cannot be drawn again: {error}"
        ) from error
    constants = fit["constant_data"].to_dataset()
    known = known_parts(fit)
    problem = make_problem(known.sample, **known.given)
    posterior = fitted_parameters(fit)
    drawn = (settings.chains, settings.draws)
    if posterior is not None and (posterior.sizes["chain"], posterior.sizes["draw"]) != drawn:
        raise FileFormatError(
            f"it holds no tables, and not the {drawn[0]} x {drawn[1]} draws to draw them again from"
        )
    plugged_in = {
        str(name): value if value.ndim else value.item() for name, value in constants.items()
    }
    return estimator.draw_tables(problem, settings, Parameters(posterior, constants=plugged_in))
