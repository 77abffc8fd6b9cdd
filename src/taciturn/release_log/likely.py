"""What perturbed counts make nearly certain: totals that could have many values, of
which few are likely.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from taciturn.attack.system import UNLIMITED, Booleans
from taciturn.errors import TableError
from taciturn.release_log.codebook import Integers
from taciturn.release_log.evidence import Evidence
from taciturn.release_log.joint import Joint
from taciturn.release_log.search import (
    Limits,
    bounds_of_totals,
    compatible_tables,
    members_of,
    ranges,
)
from taciturn.release_log.sums import margins
from taciturn.release_log.ties import Ties
from taciturn.release_log.totals import Totals, coarsest
from taciturn.release_log.window import NEW, Source, Window, classes_of
from taciturn.release_log.words import Taken, in_words, taken_of

__all__ = ["Likely", "likely_totals", "with_perturbed"]

Floats = npt.NDArray[np.float64]

_AT_ONCE: Final = 400  # totals that get exact bounds
_MOST_VALUES: Final = 5_000_000  # of totals that are looked at together
_MOST_ROUNDS: Final = 10
_DIGITS: Final = 12  # of probabilities that are told apart
_ROUNDING: Final = 10.0**-_DIGITS


@dataclass(frozen=True)
class Likely:
    r"""A small count that perturbed counts make nearly certain once the table is
    published.

    Its values from the least to the greatest that is possible are equally likely before
    anything perturbed is published, and are weighed by the probability of all that is
    released of it and of what is tied to it, of counts that add up to it (`w`), and of
    a total and its other parts (`l`), which are equally likely whole numbers:

    .. math:: p(t \mid y) \propto 1\{\underline t \le t \le \overline t\}
        \prod_j P_j(y_j \mid c_j \pm t) \prod_w P_w(y_w \mid t) \prod_l P_l(y_l \mid t)

    Attributes
    ----------
    who : str
        Whom it counts, in words.
    taken : mapping of str to tuple of str
        The categories that it takes of each variable which it does not sum over.
    likely : tuple of int
        Its most probable values, as few as are nearly certain together.
    probability : float
        Of these together, with the table.
    before : float
        Of the same values, before.
    entropy : float
        Of all its values, with the table, in bits.
    lower, upper : int
        Its bounds with the table, which are certain; None above where there is none.
    releases : tuple of int
        The earlier releases whose perturbed counts say something of it.
    """

    who: str
    taken: Mapping[str, tuple[str, ...]]
    likely: tuple[int, ...]
    probability: float
    before: float
    entropy: float
    lower: int
    upper: int | None
    releases: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class _Asked:
    """A total of which something perturbed was released."""

    sets: Mapping[str, Booleans]
    taken: Taken
    cells: Integers
    evidence: Evidence


@dataclass(frozen=True, eq=False)
class _Posterior:
    """The probability of each value of a total."""

    values: Integers
    probability: Floats

    @classmethod
    def of(cls, evidence: Evidence, low: int, high: int) -> "_Posterior | None":
        """Of values within bounds, equally likely but for the evidence; None where they
        are so many that none of them is likely.

        Raises
        ------
        TableError
            None of them gives what was released.
        """
        low, high = evidence.ends(low, high)
        if high - low >= _MOST_VALUES:
            return None
        values = np.arange(low, high + 1)
        log_weights = evidence.log_weights(values)
        if not (log_weights > -np.inf).any():
            raise TableError(evidence.contradiction())
        weights = np.exp(log_weights - log_weights.max())
        return cls(values, weights / weights.sum())

    def of_values(self, wanted: Integers) -> float:
        """The probability of some values."""
        return float(self.probability[np.isin(self.values, wanted)].sum())

    def entropy(self) -> float:
        """In bits."""
        positive = self.probability[self.probability > 0]
        return float(max(0.0, -(positive * np.log2(positive)).sum()))

    def nearly_known(self, limits: Limits) -> Integers | None:
        """The most probable values, as few as are nearly certain together, if these are
        small and fewer than there must be; of those that are equally probable the
        smallest.
        """
        first = np.argsort(-self.probability.round(_DIGITS), kind="stable")[: limits.apart]
        first = first[self.probability[first] > 0]
        certain = np.cumsum(self.probability[first]) >= limits.certainty - _ROUNDING
        most = np.maximum.accumulate(self.values[first])
        enough = np.flatnonzero(certain & (most > 0) & (most < limits.threshold))
        return np.sort(self.values[first[: enough[0] + 1]]) if len(enough) else None


def likely_totals(
    window: Window,
    before: Window,
    noisy: Sequence[Source],
    limits: Limits,
    settled: set[frozenset[Any]],
) -> tuple[list[Likely], int, bool]:
    """The small counts that are nearly certain with the new release and were not, or
    with more values, before; how many more there are that are part of these; and
    whether some were left out. Those that are settled are not looked at; those that are
    found are added to them.
    """
    fine = with_perturbed(window, noisy)
    ties = Ties(fine, noisy)
    every_asked = _asked(fine, ties, noisy, settled)
    lacking = any(each.evidence.lacking for each in every_asked)
    every_asked = [each for each in every_asked if each.evidence.every]
    joint = Joint(fine, noisy)
    asked, left_out = _may_be_likely(joint, ties, every_asked, limits)
    left_out = left_out or lacking or not joint.complete
    columns = [joint.columns(each.cells) for each in asked]
    low, high = bounds_of_totals(joint.system, columns)
    hit: dict[int, tuple[_Posterior, Integers]] = {}
    for number, (each, *ends) in enumerate(zip(asked, low.tolist(), high.tolist(), strict=True)):
        own = _Posterior.of(each.evidence, *ends)
        best = None if own is None else own.nearly_known(limits)
        if own is not None and best is not None:
            hit[number] = own, best
    if not hit:
        return [], 0, left_out
    old = [source for source in noisy if source[0] != NEW]
    earlier = _earlier(
        replace(before, classes=fine.classes), old, [asked[number].cells for number in hit]
    )
    found: dict[int, Likely] = {}
    for (number, (own, best)), first in zip(hit.items(), earlier, strict=True):
        known = None if first is None else first.nearly_known(limits)
        if known is None or len(best) < len(known):
            bounds = int(low[number]), int(high[number])
            found[number] = _likely(asked[number], own, best, bounds, first, window)
    settled |= {frozenset(asked[number].taken) for number in found}
    kept = coarsest(
        [(number, asked[number].sets) for number in found],
        {number: each.likely for number, each in found.items()},
    )
    return [found[number] for number in kept], len(found) - len(kept), left_out


def with_perturbed(window: Window, noisy: Sequence[Source]) -> Window:
    """The window, over classes that perturbed tables tell apart, too, and what it is
    told with these.
    """
    every = [*window.told, *noisy]
    classes = classes_of(window.classes, [table for _, table in every], window.codebook)
    return replace(window, classes=classes, told=every)


def _asked(
    window: Window, ties: Ties, noisy: Sequence[Source], settled: set[frozenset[Any]]
) -> list[_Asked]:
    """The totals of which something perturbed was released, of what is tied to them, or
    of sums that they are or are a part of: what the new release has of them first.
    """
    totals = Totals(window)
    first = sorted(ties.seen, key=lambda each: each.source[0] != NEW)
    described = [(each.sets, each.cells) for each in first if ties.known.hash_of(each.cells)]
    hashes = totals.of(ties.known.numbers)
    may = np.isin(hashes, ties.tied)
    for file in ties.swapped:
        may |= (hashes != 0) & (totals.of(file.numbers) == 0)
    for total in np.flatnonzero(may).tolist():
        sets = {name: own[window.classes[name]] for name, own in totals.sets(total).items()}
        if not any(own.all() for own in sets.values()):
            described.append((sets, totals.cells(total)))
    described += [each for _, table in noisy for each in margins(window, table)]
    found: dict[frozenset[Any], _Asked] = {}
    for sets, cells in described:
        taken = taken_of(sets, window.codebook)
        if frozenset(taken) not in settled and frozenset(taken) not in found:
            found[frozenset(taken)] = _Asked(sets, taken, cells, ties.of(cells))
    return [x for x in found.values() if x.evidence.every or x.evidence.lacking]


@dataclass(frozen=True, eq=False)
class _Screen:
    """Which of some totals may be nearly known, by the least and the most of each in
    tables that were found: the probability of small values is no more than their share
    of what is certainly possible.

    Attributes
    ----------
    first, last : array of int64
        The least and the most that each practically is.
    start : array of int64
        Where each begins in `cumulated`.
    cumulated : array of float64
        Weights of the values, cumulated.
    best : array of float64
        The largest weight that small values can have, as many as are too few.
    certainty : float
        Of `Limits`.
    """

    first: Integers
    last: Integers
    start: Integers
    cumulated: Floats
    best: Floats
    certainty: float

    @classmethod
    def of(
        cls, evidence: Sequence[Evidence], first: Integers, last: Integers, limits: Limits
    ) -> "_Screen":
        """Of totals with this evidence."""
        parts, best = [], []
        for each, least, most in zip(evidence, first.tolist(), last.tolist(), strict=True):
            values = np.arange(least, most + 1)
            log_weights = each.log_weights(values)
            possible = log_weights.max(initial=-np.inf) > -np.inf
            weights = np.exp(log_weights - log_weights.max()) if possible else np.zeros(len(values))
            small = np.sort(weights[values < limits.threshold])
            # What contradicts itself is kept, for the error that says so.
            best.append(float(small[-limits.apart :].sum()) if possible else 1.0)
            parts.append(weights.cumsum())
        start = np.cumsum([0, *map(len, parts[:-1])])
        cumulated = np.concatenate([*parts, np.zeros(1)])
        return cls(first, last, start, cumulated, np.array(best), limits.certainty)

    def may(self, low: Integers, high: Integers) -> Booleans:
        """Which totals may be nearly known."""
        begin = np.clip(low, self.first, self.last + 1) - self.first
        end = np.clip(high, self.first - 1, self.last) - self.first
        inside = self._up_to(end) - self._up_to(begin - 1)
        return self.best + _ROUNDING >= self.certainty * np.maximum(inside, self.best)

    def _up_to(self, place: Integers) -> Floats:
        return np.where(place < 0, 0.0, self.cumulated[self.start + np.maximum(place, 0)])


def _may_be_likely(
    joint: Joint, ties: Ties, asked: Sequence[_Asked], limits: Limits
) -> tuple[list[_Asked], bool]:
    """The totals that are not too open for it, by values that they take in tables of a
    walk, and whether some were left out.
    """
    if not asked:
        return [], False
    members = members_of([each.cells for each in asked], len(ties.known.lower))
    unlimited = ties.known.upper >= UNLIMITED
    endless = np.asarray(members @ unlimited.astype(np.int64)) > 0
    high = np.where(endless, UNLIMITED, members @ np.where(unlimited, 0, ties.known.upper))
    ends = zip(asked, (members @ ties.known.lower).tolist(), high.tolist(), strict=True)
    first, last = np.array([each.evidence.ends(*own) for each, *own in ends]).T
    last = np.maximum(last, first - 1)  # of what contradicts itself
    small = np.flatnonzero((first < limits.threshold) & ((last > 0) | (last < first)))
    done = np.cumsum(last[small] - first[small] + 1)
    rounds = done // _MOST_VALUES
    found: list[int] = []
    for number in np.unique(rounds[rounds < _MOST_ROUNDS]):
        own = small[rounds == number]
        evidence = [asked[place].evidence for place in own.tolist()]
        screen = _Screen.of(evidence, first[own], last[own], limits)
        tables = (members[own] @ joint.cells(table) for table in compatible_tables(joint.system)[0])
        found += own[screen.may(*ranges(tables, endless[own], screen.may))].tolist()
    left_out = len(found) > _AT_ONCE or bool((rounds >= _MOST_ROUNDS).any())
    return [asked[place] for place in found[:_AT_ONCE]], left_out


def _earlier(
    before: Window, old: Sequence[Source], inside: Sequence[Integers]
) -> list[_Posterior | None]:
    """The posterior of each of some totals before."""
    ties, joint = Ties(before, old), Joint(before, old)
    columns = [joint.columns(cells) for cells in inside]
    ends = zip(*bounds_of_totals(joint.system, columns), strict=True)
    return [
        _Posterior.of(ties.of(cells), int(low), int(high))
        for cells, (low, high) in zip(inside, ends, strict=True)
    ]


def _likely(
    asked: _Asked,
    posterior: _Posterior,
    best: Integers,
    bounds: tuple[int, int],
    first: _Posterior | None,
    window: Window,
) -> Likely:
    """What is said of a total, by its posterior with the table, of which the `best`
    values are nearly certain, and before.
    """
    taken = dict(asked.taken)
    return Likely(
        who=in_words(taken, window.codebook),
        taken=taken,
        likely=tuple(best.tolist()),
        probability=posterior.of_values(best),
        before=0.0 if first is None else first.of_values(best),
        entropy=posterior.entropy(),
        lower=bounds[0],
        upper=None if bounds[1] >= UNLIMITED else bounds[1],
        releases=tuple(sorted(asked.evidence.releases - {NEW})),
    )
