"""Mixtures, which are pools and stacks: their members, the members' shares and who made
each draw.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from math import isclose

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.errors import FileFormatError, ParameterError, TableError
from taciturn.estimators import Estimator, LinearPool
from taciturn.estimators.members import check_shares
from taciturn.estimators.mixture import member_variables
from taciturn.figures import beside
from taciturn.fits.parts import PARAMETER_GROUPS, fitted_parameters
from taciturn.fits.recorded import recorded_estimator, recorded_mapping
from taciturn.tables.spelling import legible
from taciturn.validate import quoted, real_number

__all__ = [
    "Maker",
    "Member",
    "estimator_in_words",
    "fit_makers",
    "is_stack",
    "likelihood_shares",
    "members_of",
    "turns_of_members",
]

Turns = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Member:
    """One member of a mixture.

    Attributes
    ----------
    share : float
        Its share of the draws of the population.
    fit : DataTree
        What its own fit holds of parameters, sampler and record, under its own names:
        groups ``posterior`` and ``sample_stats``, and attributes.
    """

    share: float
    fit: xr.DataTree


def is_stack(fit: xr.DataTree) -> bool:
    """Whether a fit says that it is a stack."""
    return "stack" in fit.attrs


def members_of(fit: xr.DataTree) -> dict[str, Member]:
    """Members of a pool or a stack by name, in the order in which ``member`` numbers
    them; empty for any other fit.

    Raises
    ------
    FileFormatError
        The fit says that it is a stack, but not of what.
    """
    if is_stack(fit):
        return _members_of_stack(fit)
    pool = recorded_estimator(fit)
    if isinstance(pool, LinearPool) and "posterior" in fit.children:
        return _members_of_pool(fit, pool)
    return {}


def _members_of_stack(fit: xr.DataTree) -> dict[str, Member]:
    try:
        recorded = recorded_mapping(fit, "stack")["weights"].items()
        weights = {str(name): real_number(share, "a share", least=0) for name, share in recorded}
    except (AttributeError, KeyError, FileFormatError, ParameterError) as error:
        raise FileFormatError(
            f"the weights of the stack cannot be read: {fit.attrs['stack']!r:.80}"
        ) from error
    if not isclose(sum(weights.values()), 1, abs_tol=1e-6):
        raise FileFormatError(f"the weights of the stack must sum to 1, got {weights}")
    held = fit["members"].children if "members" in fit.children else {}
    missing = sorted(set(weights) - set(held))
    if missing:
        raise FileFormatError(
            f"the stack has weights for {missing}, but the group 'members' does not have them"
        )
    return {name: Member(weight, held[name]) for name, weight in weights.items()}


def _members_of_pool(fit: xr.DataTree, pool: LinearPool) -> dict[str, Member]:
    importance = recorded_mapping(fit, "importance") if "importance" in fit.attrs else {}
    if unknown := sorted(set(importance) - set(pool.members)):
        raise FileFormatError(
            f"the fit records the importance sampling of {quoted(unknown[0])}, but the members of"
            f" the pool are {', '.join(pool.members)}"
        )
    members, shares = {}, _shares_of_pool(fit, pool)
    for name, estimator in pool.members.items():
        groups = {
            group: member_variables(fit[group].to_dataset(), name)
            for group in (*PARAMETER_GROUPS, "sample_stats")
            if group in fit.children
        }
        tree = xr.DataTree.from_dict({k: own for k, own in groups.items() if own.data_vars})
        tree.attrs["estimator"] = json.dumps(estimator.spec())
        if name in importance:
            tree.attrs["importance"] = json.dumps(importance[name])
        members[name] = Member(shares[name], tree)
    return members


def _shares_of_pool(fit: xr.DataTree, pool: LinearPool) -> dict[str, float]:
    """The shares that were given, or what the sample made of them."""
    if pool.nested is None:
        return pool.share_of
    recorded = recorded_mapping(fit, "shares")
    try:
        return check_shares(recorded, list(pool.members))
    except ParameterError as error:
        raise FileFormatError(f"the shares of the pool's members cannot be read: {error}") from None


def estimator_in_words(fit: xr.DataTree, *, shares: bool = True) -> str:
    """Who made a fit; with the shares that the sample gave to the members of a
    mixture, or without.
    """
    if is_stack(fit):
        members = members_of(fit)
        lines = [
            f"{f'{member.share:.3f} ' if shares else ''}{name}:"
            f" {recorded_estimator(member.fit) or 'estimator not recorded'!r}"
            for name, member in members.items()
        ]
        made = f"stack of {len(members)} fits, weighted by how they predict individuals left out"
        return "\n".join([made, *lines])
    estimator = recorded_estimator(fit)
    if estimator is None:
        return legible(str(fit.attrs.get("estimator", "not recorded in the fit")))
    if not shares or not isinstance(estimator, LinearPool) or estimator.nested is None:
        return estimator.title
    moved = _shares_of_pool(fit, estimator).items()
    told = ", ".join(f"{beside(share, 0, 1, decimals=2)} {name}" for name, share in moved)
    return f"{estimator.title}\nin shares of {told}"


def turns_of_members(fit: xr.DataTree) -> npt.NDArray[np.int64]:
    """Number of the member that made each draw of a mixture, (chain, draw).

    Raises
    ------
    TableError
        The fit does not have them, or has numbers of no member.
    """
    posterior = fit["posterior"].to_dataset() if "posterior" in fit.children else xr.Dataset()
    member = posterior.get("member")
    if member is None or set(member.dims) != {"chain", "draw"} or member.dtype.kind not in "iu":
        raise TableError(
            "the posterior of a mixture must have the numbers of the members, 'member', over"
            " ('chain', 'draw')"
        )
    turns = np.asarray(member.transpose("chain", "draw").values, dtype=np.int64)
    number = len(members_of(fit))
    if turns.size and not 0 <= turns.min() <= turns.max() < number:
        raise TableError(
            f"'member' of the posterior must be from 0 to {number - 1}, the numbers of the members,"
            f" got {turns.min()} to {turns.max()}"
        )
    return turns


def likelihood_shares(fit: xr.DataTree, names: Sequence[str], whose: str) -> dict[str, float]:
    """Weight of each log likelihood in what a fit predicts: 1 for a single one, the
    shares of the members for a pool's.
    """
    if len(names) == 1:
        return {names[0]: 1.0}
    members = members_of(fit)
    if set(names) == set(members):
        return {name: member.share for name, member in members.items()}
    raise TableError(
        f"{whose} has the log likelihoods {list(names)}: only one, or those of a LinearPool, can be"
        " compared"
    )


@dataclass(frozen=True)
class Maker:
    """What made draws of a fit: its estimator, or one member of a pool or of a stack.

    Attributes
    ----------
    estimator : Estimator or None
        None for another package's or a user's own.
    posterior : Dataset or None
        Its parameters at every draw, under their own names.
    made : array of bool, shape (chains, draws)
        Which draws of the population and of the sample it made.
    """

    estimator: Estimator | None
    posterior: xr.Dataset | None
    made: Turns


def fit_makers(fit: xr.DataTree, *, chains: int, draws: int) -> dict[str, Maker]:
    """What made the draws of a fit, by the names of members; a fit that is not a
    mixture has one, without a name.
    """
    return _makers(fit, np.ones((chains, draws), dtype=bool))


def _makers(fit: xr.DataTree, made: Turns) -> dict[str, Maker]:
    if members := members_of(fit):
        turns = turns_of_members(fit)[: made.shape[0], : made.shape[1]]
        return {
            f"{name} {inner}".strip(): maker
            for number, (name, member) in enumerate(members.items())
            for inner, maker in _makers(member.fit, made & (turns == number)).items()
        }
    posterior = fitted_parameters(fit)
    if posterior is not None:  # a member of a stack may have more draws than the stack
        posterior = posterior.compute().isel(chain=slice(made.shape[0]), draw=slice(made.shape[1]))
    return {"": Maker(recorded_estimator(fit), posterior, made)}
