"""What record swapping leaves to those who know the method, but not who moved.

Records of one area that agree on `match`, and are both at risk or both not, have the
same chances to move. So it is enough to follow how many of each such kind have not
moved yet, from pair to pair, over everything that may be drawn.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import xarray as xr
from scipy.special import entr

from taciturn.errors import ParameterError
from taciturn.information.reduction import log_base
from taciturn.perturbation.record_swapping import Swappable, swappable
from taciturn.perturbation.replicates import Counts
from taciturn.tables.labels import check_variables
from taciturn.validate import names_of

__all__ = ["swapping_method_conditional_entropy"]

Floats = npt.NDArray[np.float64]
State = tuple[int, ...]
"""How many records of each kind have not moved."""

_MOST_STEPS: Final = 500_000


def swapping_method_conditional_entropy(
    records: str | PathLike[str] | Any,
    variables: Sequence[str],
    *,
    geography: str,
    rate: float,
    match: Sequence[str] = (),
    at_risk: Sequence[str] = (),
    minimum: int = 2,
    base: float | None = None,
    categories: Mapping[str, Sequence[Any]] | None = None,
) -> xr.DataArray:
    r"""`H(X | Y)` of record swapping for those who know the method, but not who moved.

    .. math::

        H(X|Y) = -\sum_{i,j} \frac{E\,n_{ij}}{n} \log \frac{E\,n_{ij}}{E\,n_{\cdot j}}

    with :math:`E\,n_{ij}` the expected number of records that `swap_records` moves from
    cell `i` to cell `j`, over all that it may draw.
    `swapping_conditional_entropy(averaged=True)` averages over replicates instead, and
    is too low where these are few.

    Parameters
    ----------
    records, variables, categories
        As in `swapped_table`.
    geography, rate, match, at_risk, minimum
        As in `swap_records`.
    base : float, optional
        Base of the logarithm: 2 gives bits, None nats.

    Returns
    -------
    DataArray
        A scalar in ``[0, H(X)]``.

    Raises
    ------
    ParameterError
        What `swap_records` refuses; `variables` without the geography; an invalid
        `base`; more than 500,000 steps from one state to the next. Two areas
        without `match` and `at_risk` have one state for each pair; states multiply
        with areas, groups of `match` and records at risk.
    TableError
        An unknown variable or one that stands twice, a missing label, no records.

    References
    ----------
    Antal, Shlomo & Elliot (2014), Theorem 6, with the joint distribution of a person's
    cell before and after known.

    Examples
    --------
    Half of the four records move, so that each is as likely to have come as to be from
    here:

    >>> import pandas as pd, taciturn as tc
    >>> people = pd.DataFrame({"area": list("AABB"), "religion": list("xxxx")})
    >>> left = tc.perturbation.swapping_method_conditional_entropy(
    ...     people, ["area", "religion"], geography="area", rate=0.5, base=2
    ... )
    >>> float(left.round(12))
    1.0
    """
    dims = names_of(variables, "variables")
    unit = log_base(base)
    check_variables(dims)
    names_of(geography, "geography")
    if geography not in dims:
        raise ParameterError(
            f"variables must include the geography {geography!r}, as swapping changes no"
            f" other table; got {dims}"
        )
    given = swappable(
        records, geography, rate, match, at_risk, minimum, others=dims, categories=categories
    )
    area = given.read.codes[geography]
    shape = [len(given.read.categories[dim]) for dim in dims]
    areas = shape[dims.index(geography)]
    step = int(np.prod(shape[dims.index(geography) + 1 :]))
    before = given.read.cells(dims)
    chances = _chances(given, area, areas)
    cell, own, number = np.unique(before, return_inverse=True, return_counts=True)
    joint = np.zeros((len(cell), areas))
    np.add.at(joint, own, chances / len(before))
    after = cell[:, None] + (np.arange(areas) - (cell // step % areas)[:, None]) * step
    _, place = np.unique(after, return_inverse=True)
    arrived = np.bincount(place.ravel(), weights=joint.ravel())
    whole = float(entr(number / len(before)).sum())
    left = float(entr(joint).sum() - entr(arrived).sum())
    return xr.DataArray(min(max(left, 0.0), whole) / unit, name="conditional_entropy")


def _chances(given: Swappable, area: Counts, areas: int) -> Floats:
    """Probability of each record to be in each area after swapping."""
    kinds, first, kind, number = np.unique(
        2 * given.local + given.risky, return_index=True, return_inverse=True, return_counts=True
    )
    moved = _expected_moves(
        tuple(number.tolist()),
        given.group[first].tolist(),
        area[first].tolist(),
        (kinds % 2).tolist(),
        areas,
        given.wanted,
    )
    chances = moved / number[:, None]
    chances[np.arange(len(kinds)), area[first]] = 1 - chances.sum(axis=1)
    return np.asarray(np.maximum(chances[kind], 0.0))


def _expected_moves(
    start: State,
    group: list[int],
    area: list[int],
    risky: list[int],
    areas: int,
    wanted: int,
) -> Floats:
    """Expected number of records of each kind that move to each area."""
    moved = np.zeros((len(start), areas))
    layer = {_alive(start, group, area): 1.0}
    steps = 0
    for _ in range(wanted):
        following: dict[State, float] = defaultdict(float)
        for state, chance in layer.items():
            for one, other, share in _pairs(state, group, area, risky):
                steps += 1
                moved[one, area[other]] += chance * share
                moved[other, area[one]] += chance * share
                left = list(state)
                left[one] -= 1
                left[other] -= 1
                following[_alive(tuple(left), group, area)] += chance * share
            if steps > _MOST_STEPS:
                raise ParameterError(
                    f"exact values take more than {_MOST_STEPS:,} steps for {len(start)} kinds of"
                    " records, of each area, category of match and risk: average over replicates"
                    " with swapping_conditional_entropy(..., averaged=True)"
                )
        layer = following
    return moved


def _pairs(
    state: State, group: list[int], area: list[int], risky: list[int]
) -> Iterator[tuple[int, int, float]]:
    """Kinds of the next record and of its partner, with the probability of the two."""
    ready = [kind for kind, count in enumerate(state) if count]
    first = [kind for kind in ready if risky[kind]] or ready
    whole = sum(state[kind] for kind in first)
    for one in first:
        partners = [k for k in ready if group[k] == group[one] and area[k] != area[one]]
        possible = sum(state[kind] for kind in partners)
        for other in partners:
            yield one, other, state[one] / whole * state[other] / possible


def _alive(state: State, group: list[int], area: list[int]) -> State:
    """The state without groups of which one area is left: nobody moves there any
    more.
    """
    found: dict[int, set[int]] = defaultdict(set)
    for kind, count in enumerate(state):
        if count:
            found[group[kind]].add(area[kind])
    return tuple(count if len(found[group[kind]]) > 1 else 0 for kind, count in enumerate(state))
