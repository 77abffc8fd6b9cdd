"""Stacking: a mixture of fits in the shares that predict individuals left out best."""

import json
from collections.abc import Mapping
from importlib.metadata import version
from typing import Literal

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.diagnostics import draws_of_mixture
from taciturn.errors import TableError
from taciturn.estimators.mixture import turns
from taciturn.fits.comparison import checked_fits, compared
from taciturn.fits.leave_one_out import first_cell
from taciturn.fits.parts import PARAMETER_GROUPS, FitParts, fit_parts
from taciturn.schema import SCHEMA_VERSION, WORTH
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
        of ``population``, and of ``count`` where all fits have replicates, is one of a
        fit's own at the same place of the same chain; there are as many chains and
        draws as every fit has. ``posterior`` has the parameters of every fit that are
        one number, under its name; its coordinate ``member`` numbers the fit that made
        a draw of the population, in the order given. The attribute ``stack`` holds
        weights, method and seed as JSON; ``members`` keeps each fit's own parameters,
        statistics of the sampler and attributes. There is no log likelihood: the
        weights were chosen with these individuals, who are therefore not left out.

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
    not what decides the error in R2, and the default is a `LinearPool` with other
    weights for that reason; see the page on methods.

    Examples
    --------
    >>> import taciturn as tc
    >>> religion = tc.load_dataset("area_by_religion")
    >>> sample = tc.draw_sample(religion, fraction=0.1, random_seed=1)
    >>> models = {
    ...     "dirichlet": tc.DirichletLogLinear(),
    ...     "restaurant": tc.ChineseRestaurant(),
    ... }
    >>> given = {"population_size": 2449, "random_seed": 1}
    >>> fits = {name: model.fit(sample, **given) for name, model in models.items()}
    >>> stacked = tc.fits.stack(fits, random_seed=1)
    >>> tc.assess(stacked)["risk"]["R2"].sizes
    Frozen({'chain': 4, 'draw': 1000})
    """
    named = checked_fits(fits)
    parts = _of_one_population(named)
    table = compared(named, method)
    weights = {name: float(table["weight"][name]) for name in named}
    seed = seed_number(random_seed)
    sizes = [own.population.sizes for own in parts.values()]
    chains, draws = (min(own[dim] for own in sizes) for dim in ("chain", "draw"))
    rng = np.random.default_rng(seed)
    whose = turns(np.array(list(weights.values())), draws)
    member = np.stack([rng.permutation(whose) for _ in range(chains)])
    first = next(iter(parts.values()))
    groups: dict[str, xr.Dataset] = {
        "posterior": _parameters(named, member),
        "posterior_predictive": _tables(named, first.variables, member),
        "observed_data": first.sample.to_dataset(name="count"),
        "constant_data": _constants(next(iter(named.values()))),
    }
    for name, fit in named.items():
        groups[f"members/{name}"] = xr.Dataset(attrs=fit.attrs)
        for group in (*PARAMETER_GROUPS, "sample_stats"):
            if group in fit.children:
                groups[f"members/{name}/{group}"] = fit[group].to_dataset()
    tree = xr.DataTree.from_dict(groups)
    tree.attrs["schema_version"] = SCHEMA_VERSION
    tree.attrs["stack"] = json.dumps({"weights": weights, "method": method, "random_seed": seed})
    tree.attrs["versions"] = json.dumps(
        {name: version(name) for name in ("taciturn", "arviz", "numpy", "xarray")}
    )
    return tree


def _of_one_population(fits: Mapping[str, xr.DataTree]) -> dict[str, FitParts]:
    """Parts of all fits, which must be of one population and have draws of it."""
    parts: dict[str, FitParts] = {}
    for name, fit in fits.items():
        try:
            parts[name] = fit_parts(fit)
        except TableError as error:
            raise TableError(f"the fit {name!r} cannot be stacked: {error}") from error
    (first, one), *others = parts.items()
    for name, own in others:
        both = f"the fits {first!r} and {name!r}"
        if own.population_size != one.population_size:
            raise TableError(
                f"{both} are of populations of different size: {one.population_size} and"
                f" {own.population_size}"
            )
        if (differs := first_cell(one.sample, own.fillable != one.fillable)) is not None:
            raise TableError(f"{both} have different structural zeros, first at {differs[0]}")
        ours, theirs = one.known_margins, own.known_margins
        if theirs is not ours and (theirs is None or ours is None or not theirs.equals(ours)):
            raise TableError(f"{both} know different margins of the population")
    return parts


def _parameters(fits: Mapping[str, xr.DataTree], member: npt.NDArray[np.int64]) -> xr.Dataset:
    """Parameters that are one number, of all fits at the draws of the stack, each under
    the name of its fit; and as a coordinate the fit that made each draw.
    """
    chains, draws = member.shape
    coords = {"chain": np.arange(chains), "draw": np.arange(draws)}
    found = xr.Dataset(coords={**coords, "member": (("chain", "draw"), member)})
    for name, fit in fits.items():
        own = fit["posterior"].to_dataset() if "posterior" in fit.children else xr.Dataset()
        for variable, values in own.data_vars.items():
            if set(values.dims) == {"chain", "draw"}:
                values = values.transpose("chain", "draw")[:chains, :draws]
                found[f"{name}_{variable}"] = (("chain", "draw"), values.values)
    return found


def _tables(
    fits: Mapping[str, xr.DataTree], variables: tuple[str, ...], member: npt.NDArray[np.int64]
) -> xr.Dataset:
    """Population and, where all fits have them, replicates of the sample, each draw
    from the fit whose turn it is.
    """
    predictive = [fit["posterior_predictive"].to_dataset() for fit in fits.values()]
    drawn = [name for name in ("population", "count") if all(name in own for own in predictive)]
    tables = xr.Dataset(
        {name: _take_turns([own[name] for own in predictive], member, variables) for name in drawn}
    )
    worth = [own["population"].attrs.get(WORTH, member.size) for own in predictive]
    if min(worth) < member.size:
        shares = [float((member == number).mean()) for number in range(len(worth))]
        tables["population"].attrs[WORTH] = draws_of_mixture(shares, worth, member.size)
    return tables


def _constants(fit: xr.DataTree) -> xr.Dataset:
    """What the fits of a stack have in common."""
    constants = fit["constant_data"].to_dataset()
    common = ("population_size", "structural_zeros", "known_margins", "stratified")
    return constants[[name for name in common if name in constants]]


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
