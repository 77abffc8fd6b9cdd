"""Random record swapping between two areas, as an attacker knows it who knows how many
pairs were swapped.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import xarray as xr
from scipy.special import gammaln

from taciturn.attack import Mechanism
from taciturn.attack.mechanisms.base import Floats, Integers
from taciturn.errors import ParameterError, TableError
from taciturn.release_log.codebook import label_text
from taciturn.tables.checks import check_table
from taciturn.tables.labels import labels_of
from taciturn.validate import is_whole, quoted

__all__ = ["RecordSwapping", "SwappedCount"]

_AREAS: Final = 2
_AT_ONCE: Final = 1_000_000  # terms of sums
_FAR: Final = 45.0  # minus the logarithm of what is too improbable


@dataclass(frozen=True, eq=False, repr=False)
class RecordSwapping:
    r"""Random record swapping between two areas, as `swap_records` does it without
    `at_risk`, for a `ReleaseLog`.

    Of the :math:`n_a` records of area `a` that agree on the `match` variables any
    :math:`w` leave with equal probability, and any :math:`w` of the :math:`n_b` of the
    other area come. Of the `T` records of some kind in both areas let `t` be in `a`
    before, and `y` after:

    .. math::

        P(y \mid t) = \sum_s h(s; n_a, t, n_a - w) \, h(y - s; n_b, T - t, w)

    with `s` the number of those that stay, and :math:`h(i; n, k, m) = \binom{k}{i}
    \binom{n - k}{m - i} / \binom{n}{m}` the hypergeometric distribution. Swapping keeps
    `T`, the sum over the areas, and the sizes.

    Parameters
    ----------
    geography : str
        The variable that was exchanged, or a level above it, of two areas.
    sizes : DataArray
        The number of records of each area and category of the `match` variables, whole
        numbers over these variables: of all records of the log.
    moves : int or DataArray
        How many pairs were swapped: the number of records that left each of the two
        areas. With `match` variables an array over these.

    Raises
    ------
    TableError
        `sizes` that are no table of counts.
    ParameterError
        Not two areas: with more, who comes is no uniform choice of those outside. Moves
        that are no whole numbers from 0 to the size of the smaller area.

    References
    ----------
    Dalenius & Reiss (1982), Data-swapping: a technique for disclosure control, Journal
    of Statistical Planning and Inference 6, 73-85.

    Examples
    --------
    >>> import pandas as pd, taciturn as tc
    >>> people = pd.DataFrame({"area": list("AABB"), "religion": list("xyzz")})
    >>> swaps = tc.swap_records(people, geography="area", rate=0.5, random_seed=1)
    >>> sizes = tc.tabulate(people, ["area"])
    >>> tc.release_log.RecordSwapping("area", sizes, moves=int(swaps["pairs"][0]))
    RecordSwapping(geography='area', 1 pair between A and B)
    """

    geography: str
    sizes: xr.DataArray
    moves: int | xr.DataArray

    def __post_init__(self) -> None:
        table = check_table(self.sizes, name="sizes")
        if self.geography not in table.dims:
            raise ParameterError(
                f"geography must be a variable of sizes, {list(table.dims)}, got"
                f" {quoted(self.geography)}"
            )
        if table.sizes[self.geography] != _AREAS:
            raise ParameterError(
                f"sizes must be of two areas, got {table.sizes[self.geography]} of"
                f" {self.geography!r}: between more, who comes into an area is no uniform choice of"
                " those outside"
            )
        object.__setattr__(self, "sizes", table.transpose(self.geography, ...))
        object.__setattr__(self, "moves", self._checked_moves())

    def _checked_moves(self) -> xr.DataArray:
        """The moves over the match variables, in their order."""
        dims = self.match
        given = self.moves if isinstance(self.moves, xr.DataArray) else xr.DataArray(self.moves)
        if set(given.dims) != set(dims):
            raise ParameterError(
                f"moves must be over the variables of sizes but the geography, {dims}, got"
                f" {list(given.dims)}"
            )
        try:
            own = given.transpose(*dims).reindex({dim: self.sizes[dim] for dim in dims})
        except (ValueError, KeyError):
            raise ParameterError("moves must have the categories of sizes") from None
        most = self.sizes.min(self.geography).values
        values = own.values
        if (
            values.dtype.kind not in "iuf"
            or not ((values == np.floor(values)) & (values >= 0) & (values <= most)).all()
        ):
            raise ParameterError(
                f"moves must be whole numbers from 0 to the size of the smaller area,"
                f" {most.tolist()}, for the categories of sizes, got {values.tolist()!r:.200}"
            )
        return xr.DataArray(values.astype(np.int64), dims=dims)

    @property
    def match(self) -> list[str]:
        """The variables on which both records of a pair agree."""
        return [str(dim) for dim in self.sizes.dims if dim != self.geography]

    @cached_property
    def categories(self) -> Mapping[str, list[str]]:
        """The labels of `sizes`, as text, the areas first."""
        return {
            str(dim): list(map(label_text, labels_of(self.sizes[dim]))) for dim in self.sizes.dims
        }

    def as_json(self) -> dict[str, Any]:
        """The parameters, in plain types."""
        return {
            "geography": self.geography,
            "categories": dict(self.categories),
            "sizes": self.sizes.values.tolist(),
            "moves": xr.DataArray(self.moves).values.tolist(),
        }

    @classmethod
    def from_json(cls, geography: Any, categories: Any, sizes: Any, moves: Any) -> "RecordSwapping":
        """What `as_json` gave.

        Raises
        ------
        ParameterError
            Not that.
        """
        if not isinstance(categories, Mapping) or not all(
            isinstance(labels, list) and all(type(each) in (int, str) for each in labels)
            for labels in categories.values()
        ):
            raise ParameterError(
                f"categories must be lists of labels by variable, got {quoted(categories)}"
            )
        dims, match = list(categories), [name for name in categories if name != geography]
        try:
            # A number is a label as well as a text, as everywhere in a log.
            coords = {name: list(map(label_text, own)) for name, own in categories.items()}
            table = xr.DataArray(_whole(sizes), dims=dims, coords=coords)
            of_pairs = {name: coords[name] for name in match}
            pairs = xr.DataArray(_whole(moves), dims=match, coords=of_pairs)
            return cls(geography, table, pairs)
        except OverflowError:
            raise ParameterError("sizes and moves must be numbers of 64 bits") from None
        except (ValueError, TypeError, TableError) as error:
            raise ParameterError(
                f"sizes and moves must be lists of whole numbers over {dims} and {match}:"
                f" {error!s:.200}"
            ) from None

    def __repr__(self) -> str:
        pairs = int(xr.DataArray(self.moves).sum())
        areas = " and ".join(self.categories[self.geography])
        matched = f" that agree on {', '.join(self.match)}" if self.match else ""
        return (
            f"{type(self).__name__}(geography={self.geography!r},"
            f" {pairs:,} {'pair' if pairs == 1 else 'pairs'} between {areas}{matched})"
        )


def _whole(nested: Any) -> Integers:
    """Nested lists of whole numbers as an array, which would take `True` for 1."""
    array = np.array(nested, dtype=object)
    if not all(map(is_whole, array.ravel())):
        raise TypeError(f"got {quoted(nested)}")
    return array.astype(np.int64)


@dataclass(frozen=True)
class SwappedCount(Mechanism):
    """One count of an area after swapping, see `RecordSwapping`.

    Attributes
    ----------
    inside, outside : int
        The number of records of the area, and of the other one.
    moves : int
        How many left, and as many came.
    both : int
        How many records of the kind that is counted are in the two areas.
    """

    inside: int
    outside: int
    moves: int
    both: int

    @property
    def gives(self) -> str:
        """Counts of people who are there."""
        return f"counts up to {min(self.inside, self.both)}"

    def support(self, released: int) -> tuple[int, float] | None:
        """From the least to the most of the true counts that give the released one with
        more than ``exp(-45)``: sums of draws without replacement are as close to their
        mean as Hoeffding's inequality says.
        """
        other, moves = self.both - released, self.moves
        least = max(0, self.both - self.outside)
        least = max(least, released - moves, other - (self.outside - moves))
        most = min(self.inside, self.both)
        most = min(most, released + moves, other + (self.inside - moves))
        there = 0 <= released <= self.inside and 0 <= other <= self.outside
        if not there or least > most:
            return None
        # The mean of what is released is `slope * t + shift`.
        shift = self.both * moves / self.outside if moves else 0.0
        slope = 1 - moves / self.inside - moves / self.outside if moves else 1.0
        if slope <= 0:
            return least, most
        likeliest, reach = (released - shift) / slope, np.sqrt(_FAR * moves) / slope
        near = int(np.ceil(likeliest - reach)), int(np.floor(likeliest + reach))
        least, most = max(least, near[0]), min(most, near[1])
        return (least, most) if least <= most else None

    def log_probability(self, released: int, true: Integers) -> Floats:
        """The logarithm of the convolution of who stays and who comes."""
        true = np.asarray(true, dtype=np.int64)
        found = np.full(true.shape, -np.inf)
        inside = (true <= min(self.inside, self.both)) & (self.both - true <= self.outside)
        stay = np.arange(min(released, int(true[inside].max(initial=0))) + 1)
        places = np.flatnonzero(inside)
        for part in np.array_split(places, len(places) * len(stay) // _AT_ONCE + 1):
            own = true[part][:, None]
            stayed = _hypergeometric(stay, self.inside, own, self.inside - self.moves)
            came = _hypergeometric(released - stay, self.outside, self.both - own, self.moves)
            with np.errstate(divide="ignore"):
                found[part] = np.log(np.exp(stayed + came).sum(axis=1))
        return found


def _hypergeometric(hits: Integers, number: int, marked: Integers, drawn: int) -> Floats:
    """The logarithm of the probability of so many hits among those that are drawn."""
    return np.asarray(
        _log_choose(marked, hits)
        + _log_choose(number - marked, drawn - hits)
        - _log_choose(np.array(number), np.array(drawn))
    )


def _log_choose(of: Integers, some: Integers) -> Floats:
    possible = (some >= 0) & (some <= of)
    some = np.where(possible, some, 0)
    chosen = gammaln(of + 1.0) - gammaln(some + 1.0) - gammaln(np.where(possible, of - some, 0) + 1)
    return np.where(possible, chosen, -np.inf)
