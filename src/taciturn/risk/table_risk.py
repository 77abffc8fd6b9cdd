"""R1 and R2: the entropy-based risk of a table before and after protection."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.errors import ParameterError, TableError
from taciturn.information.kernels import PAIR_SUMS, pair_sums
from taciturn.information.reduction import (
    cell_mask,
    checked_pair,
    reduced_dims,
    sums_of_pair,
    sums_of_table,
)
from taciturn.schema import cell_label, table_dims
from taciturn.tables.checks import check_table, refuse_suppressed, reordered
from taciturn.validate import check_weights, one_of

__all__ = [
    "DEFAULT_WEIGHTS",
    "Weights",
    "disclosure_risk",
    "risk_from_sums",
    "risk_of_counts",
]

Counts = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Variant = Literal["2015", "2014"]
Weights = tuple[float, float, float]

DEFAULT_WEIGHTS: Final = (0.1, 0.8, 0.1)
_NAMES: Final = {"R1", "R2", "zero_term", "entropy_term", "size_term"}
_VARIANTS: Final = ("2015", "2014")


def disclosure_risk(
    population: xr.DataArray,
    released: xr.DataArray | None = None,
    *,
    weights: Sequence[float] = DEFAULT_WEIGHTS,
    dim: str | Sequence[str] | None = None,
    where: xr.DataArray | None = None,
    variant: Variant = "2015",
    conditional_entropy: xr.DataArray | None = None,
) -> xr.Dataset:
    r"""Entropy-based disclosure risk of a table, before (R1) and after (R2) what is
    released.

    With `D` and `E` the empty cells of the population `F` and of the release `G`, `K`
    cells and `N` individuals:

    .. math::

        R_1 &= w_1 \frac{|D|}{K} + w_2 \Bigl(1 - \frac{H(X)}{\log K}\Bigr)
             + w_3 \frac{1 + \log\sqrt N}{\sqrt N} \\
        R_2 &= w_1 \left(\frac{|D|}{K}\right)^{|D \cup E| / |D \cap E|}
             + w_2 \Bigl(1 - \frac{H(X)}{\log K}\Bigr)
                   \Bigl(1 - \frac{H(X|Y)}{H(X)}\Bigr)
             + w_3 \frac{1 + \log\sqrt N}{\sqrt N}

    Parameters
    ----------
    population : DataArray
        Population table `F`, or draws of it.
    released : DataArray, optional
        What is released, `G`: a sample, a perturbed table, replicates of one. Without
        it only R1 is computed. Draws and replicates give all their pairs; a dimension
        that both tables have pairs them one to one.
    weights : sequence of three floats
        Non-negative, summing to 1: empty cells, concentration, size.
    dim : str or sequence of str, optional
        Variables to sum over. Fewer than all give the risk of each row or column as a
        table of its own.
    where : DataArray of bool, optional
        True where a cell can be filled. The others, structural zeros, count neither in
        `K` nor in `D` and `E`.
    variant : {"2015", "2014"}
        The factor of the middle term: ``1 - H(X|Y)/H(X)``, which falls as the release
        discloses less, or ``H(X|Y)/H(X)`` as printed in the 2014 paper, for
        reproduction.
    conditional_entropy : DataArray, optional
        ``H(X|Y)`` in nats where it is known better than from the two tables, for
        instance from `swapping_conditional_entropy` or
        `conditional_entropy_from_joint`; its dimensions are among those of the result.
        Without it `conditional_entropy` of the two tables is taken.

    Returns
    -------
    Dataset
        ``R1`` and, with `released`, ``R2``, both in ``[0, 1]`` with ``R2 <= R1``;
        ``zero_term``, ``entropy_term`` and ``size_term``, the three terms of R2 (of R1
        without `released`) in ``[0, 1]`` before weighting. Dimensions `chain`, `draw`
        and `replicate` are kept; dask-backed input stays lazy.

    Raises
    ------
    TableError
        A table or category with fewer than two cells, a table with nobody in it,
        mismatched categories, a mask that leaves out a filled cell, or what
        `check_table` refuses.
    ParameterError
        Weights that are negative or do not sum to 1, unknown `dim` or `variant`, a
        `conditional_entropy` that is given without `released`, has other dimensions or
        labels, or is outside ``[0, H(X)]``.

    Notes
    -----
    One populated cell (`H(X) = 0`) takes ``H(X|Y)/H(X)`` as 0; `D` and `E` without a
    common cell make the first term of R2 zero; an empty release (`M = 0`) makes the
    middle term zero.

    *Categories without people.* With fewer variables in `dim` than the table has, a
    category may have nobody in the population. A release then gives nothing away about
    anybody in it, whatever it shows: R1, R2 and all three terms are 0.

    References
    ----------
    Antal, Shlomo & Elliot (2015), eq. (3)-(4); Antal, Shlomo & Elliot (2014), Sections
    3.2-3.3.

    Examples
    --------
    >>> import taciturn as tc
    >>> religion = tc.load_dataset("area_by_religion")
    >>> float(tc.disclosure_risk(religion).R1.round(4))
    0.2315
    >>> sample = tc.draw_sample(religion, fraction=0.1, random_seed=1)
    >>> risk = tc.disclosure_risk(religion, sample)
    >>> bool(risk.R2 < risk.R1)
    True
    """
    checked = check_weights(weights)
    one_of(variant, "variant", _VARIANTS)
    if conditional_entropy is not None and released is None:
        raise ParameterError(
            "conditional_entropy is that of a table given its release: give released, too"
        )
    if released is None:
        population = check_table(population, name="population", draws=True, values=False)
        refuse_suppressed(population, "population")
    else:
        population, released = checked_pair(population, released, values=False)
    over = reduced_dims(population, dim)
    # A population without anybody is a mistake; a category without anybody is none.
    whole = len(over) == len(table_dims(population))
    smallest = {"smallest_cells": 2, "smallest_total": int(whole)}
    clash = sorted(_NAMES & (set(population.dims) - set(over)))
    if clash:
        raise TableError(f"the variable {clash[0]!r} has the name of a result: rename it")
    mask = cell_mask(population, where)
    if released is None:
        sums = sums_of_table(population, mask, over, **smallest)
    else:
        if where is not None:
            cell_mask(released, where)
        sums = sums_of_pair(population, released, mask, over, **smallest)
    total = sums["total"]
    if conditional_entropy is not None:
        sums["conditional_entropy"] = _checked_entropy(conditional_entropy, sums["entropy"])
    # They are alike in their labels, which xarray would compare at every step.
    arrays = {name: array.data for name, array in sums.items()}
    risk = risk_from_sums(arrays, weights=checked, variant=variant)
    return xr.Dataset(
        {name: (total.dims, values) for name, values in risk.items()},
        coords=total.coords,
        attrs={"weights": list(checked), "variant": variant},
    )


def risk_of_counts(
    population: Counts,
    released: Counts,
    mask: npt.NDArray[np.bool_],
    *,
    core: int,
    weights: Weights,
    variant: Variant = "2015",
) -> dict[str, Floats]:
    """`disclosure_risk` of checked tables as plain arrays.

    Parameters
    ----------
    population, released : array, shape (..., *cells)
        Counts; the last `core` axes are the cells, leading axes broadcast.
    mask : array of bool, broadcastable to `population`
        False at structural zeros.
    core : int
        Number of cell axes.
    weights, variant
        Checked, as in `disclosure_risk`.

    Returns
    -------
    dict of arrays over the leading axes
        ``R1``, ``R2`` and the three terms of R2.
    """
    sums = np.moveaxis(pair_sums(population, released, mask, core=core), -1, 0)
    named = dict(zip(PAIR_SUMS, sums, strict=True))
    return risk_from_sums(named, weights=weights, variant=variant)


def risk_from_sums(
    sums: Mapping[str, Any], *, weights: Weights, variant: Variant
) -> dict[str, Any]:
    """R1 and the terms from `TABLE_SUMS`; from `PAIR_SUMS` also R2, whose terms they
    then are. Arrays of NumPy or dask. All are 0 where there is nobody.
    """
    total = np.maximum(sums["total"], 1)
    terms = {
        "zero_term": sums["zeros"] / sums["cells"],
        "entropy_term": np.clip(1 - sums["entropy"] / np.log(sums["cells"]), 0, 1),
        "size_term": (1 + np.log(total) / 2) / total**0.5,
    }
    terms = {name: np.where(sums["total"] > 0, term, 0.0) for name, term in terms.items()}
    risk = {"R1": _weighted(terms, weights)}
    if "released_total" in sums:
        terms = _after_release(terms, sums, variant)
        risk["R2"] = _weighted(terms, weights)
    return {**risk, **terms}


def _checked_entropy(given: Any, entropy: xr.DataArray) -> xr.DataArray:
    """A given `H(X | Y)` with the dimensions of the sums, or `ParameterError`."""
    name = "conditional_entropy"
    if not isinstance(given, xr.DataArray) or not set(given.dims) <= set(entropy.dims):
        shown = given.dims if isinstance(given, xr.DataArray) else type(given).__name__
        raise ParameterError(
            f"{name} must be a DataArray with dimensions among {entropy.dims}, got {shown}"
        )
    given = reordered(given, entropy)
    for dim in given.dims:
        if given.sizes[dim] != entropy.sizes[dim] or not np.array_equal(given[dim], entropy[dim]):
            raise ParameterError(f"the labels of {dim!r} differ between {name} and the tables")
    if given.dtype.kind not in "biuf":
        raise ParameterError(f"{name} must hold numbers, got {given.dtype}")
    known: xr.DataArray = given.broadcast_like(entropy).transpose(*entropy.dims)
    bad = np.argwhere(~((known >= 0) & (known <= entropy + 1e-9)).values)
    if len(bad):
        position = tuple(int(i) for i in bad[0])
        at = cell_label(known, position) or "the table"
        found = (
            f"{float(known.values[position]):.6g}, H(X) is {float(entropy.values[position]):.6g}"
        )
        raise ParameterError(f"{name} must be from 0 to H(X), in nats: {at} holds {found}")
    return known.clip(max=entropy)  # off by rounding, which may be much of a small one


def _after_release(
    before: dict[str, Any], sums: Mapping[str, Any], variant: Variant
) -> dict[str, Any]:
    """Terms of R2 from those of R1 and the sums of the pair."""
    both, entropy = sums["zeros_both"], sums["entropy"]
    exponent = sums["zeros_either"] / np.maximum(both, 1)
    zero_term = np.where(both > 0, before["zero_term"] ** exponent, 0.0)
    conditional = sums["conditional_entropy"] / np.where(entropy > 0, entropy, 1)
    left = np.where(entropy > 0, conditional, 0.0)
    factor = np.where(sums["released_total"] > 0, left if variant == "2014" else 1 - left, 0.0)
    return {**before, "zero_term": zero_term, "entropy_term": before["entropy_term"] * factor}


def _weighted(terms: dict[str, Any], weights: Weights) -> Any:
    return (
        weights[0] * terms["zero_term"]
        + weights[1] * terms["entropy_term"]
        + weights[2] * terms["size_term"]
    )
