"""Several answers about the same records with noise from the same keys: what they say
together.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from taciturn.attack import CellKeys, Mechanism
from taciturn.attack.mechanisms.base import Floats, Integers
from taciturn.errors import ParameterError, TableError
from taciturn.release_log.codebook import Booleans
from taciturn.release_log.evidence import Seen
from taciturn.release_log.known import Hashes
from taciturn.release_log.mechanisms import canonical
from taciturn.release_log.published import PublishedTable
from taciturn.release_log.window import NEW, Source

__all__ = ["once", "refuse_unnamed_keys", "same_records", "shared_keys"]

_ROUNDING: Final = 1e-12  # of ends of intervals of keys


def same_records(every: Sequence[Seen], same: Hashes) -> list[dict[str, list[Seen]]]:
    """Counts of the same records with noise from the same keys together, by mechanism.

    Parameters
    ----------
    every : sequence of Seen
        All counts.
    same : array of uint64
        Numbers of the combinations of classes, whose sums are equal for the same
        records.

    Raises
    ------
    TableError
        Two of them differ and are by the same mechanism.
    """
    groups: dict[Hashable, dict[str, list[Seen]]] = {}
    mechanisms = {id(each.mechanism): each.mechanism for each in every}
    texts = {number: canonical(mechanism) for number, mechanism in mechanisms.items()}
    for each in every:
        group = groups.setdefault((each.keys, int(same[each.cells].sum())), {})
        own = group.setdefault(texts[id(each.mechanism)], [])
        own.append(each)
        if own[0].value != each.value:
            raise TableError(
                f"{own[0].name} is published as {own[0].value}, and"
                f" {each.name} as {each.value}: with the same keys the same"
                " records have one answer"
            )
    return [*groups.values()]


def once(every: Sequence[Seen], same: Hashes) -> list[Seen]:
    """Counts as of `same_records` once, with all that was released of them.

    Raises
    ------
    TableError
        As of `same_records`.
    """
    groups = same_records(every, same)
    return [_together([own[0] for own in group.values()]) for group in groups]


def shared_keys(one: Seen, other: Seen) -> tuple[Integers, Booleans] | None:
    """The counts that give each of two answers, and whether one key gives both; None
    where it is not known how they follow from keys.
    """
    if not isinstance(one.mechanism, CellKeys) or not isinstance(other.mechanism, CellKeys):
        return None
    both = _Together(tuple((each.mechanism, each.value) for each in (one, other)))
    ends = both.support(one.value)
    low, high = ends or (0, -1)
    counts = np.arange(low, int(high) + 1)
    return counts, np.asarray(both.log_probability(one.value, counts) > -np.inf)


def refuse_unnamed_keys(new: Sequence[PublishedTable], earlier: Sequence[Source]) -> None:
    """Raise `ParameterError` where it matters whether two releases have the same cell
    keys, and nothing says so: by two perturbation tables one key may give away more
    than two.
    """
    cell_keys = [
        (release, table.noise)
        for release, table in [*earlier, *((NEW, each) for each in new)]
        if table.noise is not None and table.noise.keyed
        if isinstance(table.noise.mechanism, CellKeys)
    ]
    fresh = [(noise, canonical(noise.mechanism)) for release, noise in cell_keys if release == NEW]
    for release, own in cell_keys:
        for noise, table in fresh:
            unnamed = own.keys is None or noise.keys is None
            if unnamed and canonical(own.mechanism) != table:
                whose = "this table" if release == NEW else f"release {release}"
                raise ParameterError(
                    f"keys must say whether the cell keys of {whose} and of this table, which have"
                    " different perturbation tables, are the same: give both releases a name of"
                    " their keys, one that is logged when it is removed and added again"
                )


def _together(seen: Sequence[Seen]) -> Seen:
    """One for all of these, which are by different mechanisms."""
    first, *others = seen
    if not others:
        return first
    return replace(
        first,
        mechanism=_Together(tuple((each.mechanism, each.value) for each in seen)),
        others=frozenset(each.source[0] for each in others) - {first.source[0]},
        same_key=tuple(others),
    )


@dataclass(frozen=True)
class _Together(Mechanism):
    r"""What several mechanisms released of one count, with the same keys.

    A cell key `u` gives one answer by each perturbation table, so that

    .. math:: P(y_1, y_2 \mid x) = P(u \in I_1(y_1, x) \cap I_2(y_2, x))

    with the keys `I` that give each answer. Answers by other mechanisms are multiplied,
    as how they follow from keys is not known.

    Attributes
    ----------
    answers : tuple of (Mechanism, int)
        The mechanisms, and what each released.
    """

    answers: tuple[tuple[Mechanism, int], ...]

    @property
    def gives(self) -> str:
        """What all of them together gave."""
        return f"what {self!r} gives"

    def support(self, released: int) -> tuple[int, float] | None:
        """From the least to the most of the counts that each of them gives; `released`
        is the first answer.
        """
        ends = [mechanism.support(value) for mechanism, value in self.answers]
        if None in ends:
            return None
        low, high = zip(*(each for each in ends if each is not None), strict=True)
        return (max(low), min(high)) if max(low) <= min(high) else None

    def log_probability(self, released: int, true: Integers) -> Floats:
        """The logarithm of the share of keys that give all answers, times the
        probabilities of others; `released` is the first answer.
        """
        found = np.zeros(len(true))
        least, most = np.zeros(len(true)), np.ones(len(true))
        for mechanism, value in self.answers:
            if isinstance(mechanism, CellKeys):
                low, high = mechanism.keys_of(value, true)
                least, most = np.maximum(least, low), np.minimum(most, high)
            else:
                found = found + mechanism.log_probability(value, true)
        share = np.where(most - least > _ROUNDING, most - least, 0.0)
        with np.errstate(divide="ignore"):
            return np.asarray(found + np.log(share))

    @property
    def reach(self) -> float:
        """The least of the distances."""
        return min(mechanism.reach for mechanism, _ in self.answers)

    def __repr__(self) -> str:
        return " and ".join(repr(mechanism) for mechanism, _ in self.answers)
