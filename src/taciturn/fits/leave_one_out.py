"""From a fit to its leave-one-out terms: those of each occupied cell, and from these
every individual's.
"""

import warnings
from collections.abc import Hashable
from math import inf, log, nan, sqrt
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import xarray as xr
from scipy.special import logsumexp

from taciturn.diagnostics import FEWEST_TAIL_DRAWS, array_stats, highest_k_hat
from taciturn.errors import EstimationError, TableError
from taciturn.fits.mixtures import is_stack, likelihood_shares
from taciturn.schema import cell_label, occupied_cells
from taciturn.tables.checks import check_table

if TYPE_CHECKING:
    from arviz import ELPDData

__all__ = ["first_cell", "leave_one_out", "observed_sample"]

Floats = npt.NDArray[np.float64]

_NOISE: Final = 0.05  # of the logarithm of a probability near 1, from draws
_ROUNDING: Final = 1e-6  # of a logarithm


def leave_one_out(fit: Any, whose: str) -> "ELPDData":
    """The result of `loo`, without its warning; `whose` names the fit in messages."""
    from arviz import ELPDDataLOO

    sample = observed_sample(fit, whose)
    terms = _terms(fit, sample, whose)
    exact = "leave_one_out" in terms
    cells = _exact(terms, sample, whose) if exact else _estimated(fit, terms, sample, whose)
    each = cells.isel(
        occupied_cell=np.repeat(
            np.arange(cells.sizes["occupied_cell"]), cells["individuals"].values
        )
    )
    each = each.rename_dims(occupied_cell="individual")
    n, elpd = each.sizes["individual"], float(each["elpd_i"].sum())
    draws = 0 if exact else terms.sizes["chain"] * terms.sizes["draw"]
    good_k = highest_k_hat(draws)
    return ELPDDataLOO(
        elpd=elpd,
        se=sqrt(n * float(each["elpd_i"].var(ddof=min(1, n - 1)))) if elpd > -inf else nan,
        p=float((each["lppd_i"] - each["elpd_i"]).sum()) if elpd > -inf else nan,
        n_samples=draws,
        n_data_points=n,
        scale="log",
        warning=bool((each["pareto_k"] > good_k).any()),
        good_k=good_k,
        elpd_i=each["elpd_i"],
        pareto_k=None if exact else each["pareto_k"],
    )


def observed_sample(fit: Any, whose: str) -> xr.DataArray:
    """The sample table of a fit, checked."""
    if not isinstance(fit, xr.DataTree):
        raise TableError(f"{whose} must be an xarray.DataTree, got {type(fit).__name__}")
    if "observed_data" not in fit.children or "count" not in fit["observed_data"].data_vars:
        raise TableError(f"{whose} has no 'count' in the group 'observed_data'")
    sample = check_table(fit["observed_data"].to_dataset()["count"], name=f"the sample of {whose}")
    if not sample.any():
        raise TableError(f"the sample of {whose} is empty")
    return sample


def first_cell(
    table: xr.DataArray, bad: npt.NDArray[np.bool_]
) -> tuple[str, tuple[int, ...]] | None:
    """Label and position of the first cell where `bad`; None without one."""
    found = np.argwhere(bad)
    if not len(found):
        return None
    position = tuple(int(i) for i in found[0])
    return cell_label(table, position), position


def _terms(fit: xr.DataTree, sample: xr.DataArray, whose: str) -> xr.Dataset:
    """Terms of an individual of each occupied cell: (chain, draw, occupied_cell), or
    without draws where exact.
    """
    if "cell_log_likelihood" in fit.children:
        terms = (
            fit["cell_log_likelihood"]
            .to_dataset()
            .compute()
            .transpose("chain", "draw", ..., missing_dims="ignore")
        )
        for name, (_, expected) in occupied_cells(sample).items():
            if name not in terms.coords or not np.array_equal(terms[name].values, expected):
                raise TableError(
                    f"the occupied cells of {whose} are not those of its sample: {name!r} differs"
                )
        return terms
    if "log_likelihood" in fit.children:
        return _by_cell(fit["log_likelihood"].to_dataset().compute(), sample, whose)
    if is_stack(fit):
        raise TableError(
            f"{whose} is a stack: its weights were chosen with everybody in the sample, so nobody"
            " can be left out; compare the fits it is made of"
        )
    raise TableError(
        f"{whose} has no log likelihood, in neither 'cell_log_likelihood' nor 'log_likelihood':"
        " estimators give it for up to fifty million values, draws times occupied cells (cells"
        " times occupied cells for plug-in estimators), not for a sample with weights, nor where"
        " one person was sampled, or one in a category of known margins or in a stratum, who cannot"
        " be left out; LatentClass has none"
    )


def _by_cell(terms: xr.Dataset, sample: xr.DataArray, whose: str) -> xr.Dataset:
    """One column for each occupied cell, from one for each individual."""
    if not terms.data_vars:
        raise TableError(f"the log likelihood of {whose} is empty")
    found = {}
    for name, array in terms.data_vars.items():
        rest = [str(dim) for dim in array.dims if dim not in ("chain", "draw")]
        if len(rest) != 1 or array.ndim != 3 or array.sizes[rest[0]] != sample.sum():
            raise TableError(
                f"the log likelihood {name!r} of {whose} must be (chain, draw, individual) with one"
                f" column for each of the {int(sample.sum())} individuals, got {dict(array.sizes)}"
            )
        cell = _cell_of_each(array, rest[0], sample, whose)
        values = array.transpose("chain", "draw", rest[0]).values
        _refuse_impossible(values, sample, cell, name, whose)
        columns = []
        for position in np.argwhere(sample.values):
            own = values[..., cell == np.ravel_multi_index(tuple(position), sample.shape)]
            if not np.allclose(own, own[..., :1], rtol=1e-9, atol=1e-9, equal_nan=True):
                raise TableError(
                    f"the log likelihood {name!r} of {whose} differs for individuals of the same"
                    f" cell, {cell_label(sample, tuple(position))}: its columns must stand in the"
                    " order of the cells, or have each individual's categories as coordinates"
                    f" along {rest[0]!r}"
                )
            columns.append(own[..., 0])
        found[name] = (("chain", "draw", "occupied_cell"), np.stack(columns, axis=-1))
    return xr.Dataset(found, coords=occupied_cells(sample))


def _cell_of_each(
    array: xr.DataArray, dim: str, sample: xr.DataArray, whose: str
) -> npt.NDArray[np.int64]:
    """Number of each individual's cell: by its categories where they are given, else in
    the order of the cells.
    """
    if not all(name in array.coords and array[name].dims == (dim,) for name in sample.dims):
        return np.repeat(np.arange(sample.size), sample.values.ravel())
    index = [sample.get_index(name).get_indexer(array[name].to_index()) for name in sample.dims]
    for name, own in zip(sample.dims, index, strict=True):
        if (own < 0).any():
            label = array[name].values[own < 0][0]
            raise TableError(
                f"the log likelihood of {whose} has an individual in {name}={label}, which is no"
                " category"
            )
    cell = np.ravel_multi_index(index, sample.shape)
    found = np.bincount(cell, minlength=sample.size).reshape(sample.shape)
    if (differs := first_cell(sample, found != sample.values)) is not None:
        at, position = differs
        raise TableError(
            f"the log likelihood of {whose} has {found[position]} individuals in {at}, its sample"
            f" has {sample.values[position]}"
        )
    return np.asarray(cell)


def _refuse_impossible(
    values: npt.NDArray[Any],
    sample: xr.DataArray,
    cells: npt.NDArray[np.int64],
    name: Hashable,
    whose: str,
    most: float = _ROUNDING,
) -> None:
    """Raise `TableError` unless values (chain, draw, column) can be logarithms of the
    probability of the cell of each column, or of terms whose harmonic mean is one.
    """
    if values.dtype.kind not in "iuf" or not values.size:
        raise TableError(
            f"the log likelihood {name!r} of {whose} must hold numbers, got {values.dtype} of shape"
            f" {values.shape}"
        )
    bad = np.argwhere(~(np.isfinite(values) & (values <= most)))
    if len(bad):
        chain, draw, column = (int(i) for i in bad[0])
        at = cell_label(sample, tuple(map(int, np.unravel_index(cells[column], sample.shape))))
        raise TableError(
            f"the log likelihood {name!r} of {whose} is {values[chain, draw, column]} at chain"
            f" {chain}, draw {draw} for an individual of {at}; the logarithm of a probability is"
            " finite and at most 0"
        )


def _exact(terms: xr.Dataset, sample: xr.DataArray, whose: str) -> xr.Dataset:
    """Scores of each cell for a plug-in estimator, which was estimated without an
    individual of each.
    """
    missing = np.flatnonzero(np.isnan(terms["leave_one_out"].values))
    if len(missing):
        raise EstimationError(
            f"{whose} cannot be compared: its estimator has no estimate without an individual of "
            f"{_label(sample, int(missing[0]))}"
        )
    return _scores(
        terms,
        terms["leave_one_out"].values,
        terms["count"].values,
        np.full(len(terms["individuals"]), -inf),
    )


def _estimated(fit: xr.DataTree, terms: xr.Dataset, sample: xr.DataArray, whose: str) -> xr.Dataset:
    """Scores of each cell by importance sampling; of a pool, those of its mixture."""
    shares = likelihood_shares(fit, [str(name) for name in terms.data_vars], whose)
    relative = _relative_ess(fit, terms.sizes["chain"] * terms.sizes["draw"])
    found = []
    for name in shares:
        values = terms[name].values
        # A mixed Poisson model has its intensity in them: they may be above 0, and only
        # their harmonic mean is a probability.
        _refuse_impossible(values, sample, np.flatnonzero(sample), name, whose, inf)
        own = _psis(values.astype(float), relative)
        _refuse_impossible(own[0][None, None], sample, np.flatnonzero(sample), name, whose, _NOISE)
        found.append(own)
    elpd, lppd, k_hat = (np.stack(part) for part in zip(*found, strict=True))
    log_shares = np.log(list(shares.values()))[:, None]
    return _scores(
        terms,
        logsumexp(log_shares + elpd, axis=0),
        logsumexp(log_shares + lppd, axis=0),
        k_hat.max(axis=0),
    )


def _scores(terms: xr.Dataset, elpd: Floats, lppd: Floats, k_hat: Floats) -> xr.Dataset:
    arrays = {"elpd_i": elpd, "lppd_i": lppd, "pareto_k": k_hat}
    labels = {
        name: coord for name, coord in terms.coords.items() if coord.dims == ("occupied_cell",)
    }
    return xr.Dataset(
        {name: ("occupied_cell", values) for name, values in arrays.items()}, coords=labels
    )


def _relative_ess(fit: xr.DataTree, draws: int) -> float:
    """Effective draws per draw, the mean over parameters as in `arviz.loo`; 1 where
    that cannot be known.
    """
    if "posterior" not in fit.children or fit["posterior"].sizes.get("chain", 1) == 1:
        return 1.0
    arrays = [
        array.transpose("chain", "draw", ...).values
        for array in fit["posterior"].to_dataset().data_vars.values()
        if array.dtype.kind in "biuf" and {"chain", "draw"} <= set(array.dims)
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # too few draws
        values = [
            np.ravel(array_stats().ess(array, chain_axis=0, draw_axis=1, method="mean"))
            for array in arrays
        ]
    mean = float(np.concatenate(values).mean()) / draws if values else nan
    return mean if np.isfinite(mean) else 1.0


def _psis(terms: Floats, relative_ess: float) -> tuple[Floats, Floats, Floats]:
    """Log density with and without leaving out, and k-hat, of each cell from terms
    (chain, draw, cell).
    """
    stats = array_stats()
    draws = terms.shape[0] * terms.shape[1]
    lppd: Floats = logsumexp(terms, axis=(0, 1)) - log(draws)
    elpd, k_hat = np.empty_like(lppd), np.empty_like(lppd)
    if draws < FEWEST_TAIL_DRAWS:
        return log(draws) - logsumexp(-terms, axis=(0, 1)), lppd, np.full_like(lppd, inf)
    for cell in range(len(lppd)):
        own = terms[..., cell]
        try:
            elpd[cell], k_hat[cell], _ = stats.loo(
                own, chain_axis=0, draw_axis=1, r_eff=relative_ess
            )
        except ValueError:  # the largest weights are all the same: there is no tail to smooth
            elpd[cell], k_hat[cell] = log(draws) - logsumexp(-own), -inf
    return elpd, lppd, k_hat


def _label(sample: xr.DataArray, occupied: int) -> str:
    """The occupied cell of that number, in words."""
    return cell_label(sample, tuple(int(i) for i in np.argwhere(sample.values)[occupied]))
