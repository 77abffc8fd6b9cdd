"""Stacking: a mixture of fits in the shares that predict individuals left out best."""

import json
from collections.abc import Mapping
from importlib.metadata import version
from typing import Literal

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.errors import TableError
from taciturn.estimators.mixture import turns
from taciturn.fits.comparison import checked_fits, compared
from taciturn.fits.leave_one_out import first_cell
from taciturn.fits.parts import fit_parts, known_margins
from taciturn.schema import SCHEMA_VERSION, table_dims
from taciturn.tables.on_demand import STORED_LIMIT, TablesOnDemand
from taciturn.validate import seed_number

__all__ = ["stack"]

Method = Literal["stacking", "bb-pseudo-bma", "pseudo-bma"]


def stack(
    fits: Mapping[str, xr.DataTree],
    *,
    method: Method = "stacking",
    random_seed: int | np.random.Generator | None = None,
) -> xr.DataTree:
    r"""Mixture of the population draws of several fits, in the shares that predict
    individuals left out best.

    .. math:: p(F \mid f) = \sum_k \hat w_k \, p_k(F \mid f)

    with the weights of `compare`.

    Parameters
    ----------
    fits : mapping of str to DataTree
        At least two fits of the same sample, with the same population size, structural
        zeros and known margins.
    method : {"stacking", "bb-pseudo-bma", "pseudo-bma"}
        As in `compare`.
    random_seed : int or Generator, optional
        Of the order in which the fits take turns.

    Returns
    -------
    DataTree
        A fit, to be assessed, summarised, plotted and saved like any other. Each draw
        of ``population``, and of ``sample`` where all fits have replicates, is one of a
        fit's own at the same place of the same chain; there are as many chains and
        draws as every fit has. ``member`` in ``posterior`` numbers the fit it is from,
        in the order given. The attribute ``stack`` holds weights, method and seed as
        JSON; ``members`` keeps each fit's parameters, statistics of the sampler and
        attributes. There is no log likelihood: the weights were chosen with these
        individuals, who are therefore not left out.

    Raises
    ------
    ParameterError, TableError, EstimationError
        As `compare`; fits that differ in population size, structural zeros or known
        margins; a fit without draws of the population.

    Warns
    -----
    ComparisonWarning
        As in `loo`, for each fit.

    Notes
    -----
    The weights answer which mixture predicts the *cell* of an individual best. That is
    not what decides the error in R2, and a `LinearPool` with fixed weights is the
    default for that reason; see the page on methods.

    Examples
    --------
    >>> import taciturn as tc
    >>> sample = tc.draw_sample(tc.load_dataset("area_by_religion"), fraction=0.1, random_seed=1)
    >>> models = {"dirichlet": tc.DirichletLogLinear(), "restaurant": tc.ChineseRestaurant()}
    >>> fits = {name: model.fit(sample, population_size=2449, random_seed=1) for name, model in models.items()}
    >>> stacked = tc.fits.stack(fits, random_seed=1)
    >>> tc.assess(stacked)["risk"]["R2"].sizes
    Frozen({'chain': 4, 'draw': 1000})
    """
    named = checked_fits(fits)
    _check_same_population(named)
    table = compared(named, method)
    weights = {name: float(table["weight"][name]) for name in named}
    seed = seed_number(random_seed)
    predictive = [fit["posterior_predictive"].to_dataset() for fit in named.values()]
    chains, draws = (
        min(own["population"].sizes[dim] for own in predictive) for dim in ("chain", "draw")
    )
    rng = np.random.default_rng(seed)
    whose = turns(np.array(list(weights.values())), draws)
    member = np.stack([rng.permutation(whose) for _ in range(chains)])
    coords = {"chain": np.arange(chains), "draw": np.arange(draws)}
    drawn = [name for name in ("population", "count") if all(name in own for own in predictive)]
    first = next(iter(named.values()))
    sample = first["observed_data"].to_dataset()["count"]
    constants = first["constant_data"].to_dataset()
    kept = [
        name
        for name in ("population_size", "structural_zeros", "known_margins")
        if name in constants
    ]
    groups: dict[str, xr.Dataset] = {
        "posterior": xr.Dataset({"member": (("chain", "draw"), member)}, coords=coords),
        "posterior_predictive": xr.Dataset(
            {
                name: _take_turns([own[name] for own in predictive], member, table_dims(sample))
                for name in drawn
            }
        ),
        "observed_data": sample.to_dataset(name="count"),
        "constant_data": constants[kept],
    }
    for name, fit in named.items():
        groups[f"members/{name}"] = xr.Dataset(attrs=fit.attrs)
        for group in ("posterior", "sample_stats"):
            if group in fit.children:
                groups[f"members/{name}/{group}"] = fit[group].to_dataset()
    tree = xr.DataTree.from_dict(groups)
    tree.attrs["schema_version"] = SCHEMA_VERSION
    tree.attrs["stack"] = json.dumps({"weights": weights, "method": method, "random_seed": seed})
    tree.attrs["versions"] = json.dumps(
        {name: version(name) for name in ("taciturn", "arviz", "numpy", "xarray")}
    )
    return tree


def _check_same_population(fits: Mapping[str, xr.DataTree]) -> None:
    """Raise `TableError` unless all fits are of one population, and have draws of
    it.
    """
    (first, (size, zeros, margins)), *others = (
        (name, _population(fit, name)) for name, fit in fits.items()
    )
    for name, (own_size, own_zeros, own_margins) in others:
        both = f"the fits {first!r} and {name!r}"
        if own_size != size:
            raise TableError(f"{both} are of populations of different size: {size} and {own_size}")
        if (differs := first_cell(zeros, own_zeros.values != zeros.values)) is not None:
            raise TableError(f"{both} have different structural zeros, first at {differs[0]}")
        if own_margins is not margins and (
            own_margins is None or margins is None or not own_margins.equals(margins)
        ):
            raise TableError(f"{both} know different margins of the population")


def _population(fit: xr.DataTree, name: str) -> tuple[int, xr.DataArray, xr.DataArray | None]:
    """Size, structural zeros and known margins."""
    try:
        _, sample, size, zeros = fit_parts(fit)
    except TableError as error:
        raise TableError(f"the fit {name!r} cannot be stacked: {error}") from error
    none = sample.copy(data=np.zeros(sample.shape, dtype=bool))
    return size, none if zeros is None else zeros.transpose(*sample.dims), known_margins(fit)


def _take_turns(
    draws: list[xr.DataArray], member: npt.NDArray[np.int64], variables: tuple[str, ...]
) -> xr.DataArray:
    """Each draw from the one whose turn it is, at the same chain and draw."""
    chains, length = member.shape
    own = [array.transpose("chain", "draw", *variables)[:chains, :length] for array in draws]
    taken = TablesInTurn(own, member)
    values = taken.lazily()
    if member.size * int(np.prod(taken.shape[2:])) <= STORED_LIMIT:
        values = np.asarray(values)
    coords = {
        "chain": np.arange(chains),
        "draw": np.arange(length),
        **{dim: own[0][dim] for dim in variables},
    }
    return xr.DataArray(values, dims=own[0].dims, coords=coords)


class TablesInTurn(TablesOnDemand):
    """Draws of several fits, of which one has its turn at each chain and draw."""

    def __init__(self, draws: list[xr.DataArray], member: npt.NDArray[np.int64]) -> None:
        super().__init__(draws[0].shape)
        self.draws, self.member = draws, member

    def tables(self, chain: int, draws: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Tables at some draws of one chain, (draw, *cells)."""
        out = np.empty((len(draws), *self.shape[2:]), dtype=np.int64)
        for number, array in enumerate(self.draws):
            turn = self.member[chain, draws] == number
            if turn.any():
                out[turn] = array[chain, draws[turn]].values
        return out
