"""The smallest set of earlier releases from which the bounds of a total follow.

A set of releases leaves a total open if a table that is compatible with it has the
total beyond its bounds. Whatever makes the difference holds a release that such tables
contradict. So sets are tried that hold one of each such list, smallest first: the
first that leaves the total closed is as small as any.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

from taciturn.attack.solver import Floats, Program
from taciturn.attack.system import UNLIMITED, Booleans, Integers, open_ended
from taciturn.release_log.joint import Joint
from taciturn.release_log.window import NEW, PUBLIC
from taciturn.schema import MAX_COUNT

__all__ = ["Effort", "SmallestSets"]

_NEAR: Final = 1e-6


@dataclass
class Effort:
    """What may still be spent on the sets of a check, in cells of the programs solved.

    Attributes
    ----------
    smaller : int
        To make sets smaller.
    any_set : int
        To find sets at all, once that is spent.
    """

    smaller: int = 50_000
    any_set: int = 20_000

    def spend(self, cells: int) -> None:
        """Take off one program."""
        if self.smaller > 0:
            self.smaller -= cells
        else:
            self.any_set -= cells


class _Wanted(NamedTuple):
    """A total, with a one for each of its cells, and its bounds."""

    costs: Floats
    lower: int
    upper: int


class SmallestSets:
    """Sets of earlier releases from which, with the new one, the bounds of a total
    follow, by linear programs.

    Parameters
    ----------
    joint : Joint
        What is published, the new release under `NEW`.
    effort : Effort
        What may be spent on it; it is spent.
    """

    def __init__(self, joint: Joint, effort: Effort) -> None:
        self._effort = effort
        system = joint.system
        self._system, self._of_row = system, joint.releases_of_row
        self._earlier = frozenset(int(r) for r in np.unique(self._of_row)) - {NEW, PUBLIC}
        # Beyond all that is published, so that it limits no total.
        finite = np.maximum(system.least, np.where(system.most < UNLIMITED, system.most, 0))
        most = np.minimum(system.upper, min(int(finite.max(initial=1)) * 2 + 1, MAX_COUNT))
        self._program = Program(
            system.matrix,
            open_ended(system.least),
            open_ended(system.most),
            open_ended(system.lower),
            open_ended(most),
        )

    def of(
        self, columns: Integers, lower: int, upper: int, *, prove: bool
    ) -> tuple[tuple[int, ...], bool] | None:
        """A set of earlier releases that is enough for the total of these columns to be
        within these bounds, and whether it is proved that no smaller one is; None where
        linear programs do not tell, whichever releases are taken, or after many.

        Unless it is to `prove`, these are the releases of the bounds' multipliers, of
        which some may not be needed.
        """
        costs = np.zeros(self._system.matrix.shape[1])
        costs[columns] = 1.0
        wanted = _Wanted(costs, lower, upper)
        if self._effort.any_set <= 0:
            return None
        against, enough = self._tried(wanted, self._earlier)
        if against is not None:
            return None
        if not prove:
            return tuple(sorted(enough)), not enough
        enough = self._without_needless(wanted, enough)
        lists: list[frozenset[int]] = []
        while self._effort.smaller > 0:
            chosen = _hitting(lists, sorted(self._earlier))
            if len(chosen) == len(enough):
                return tuple(sorted(enough)), True
            against, _ = self._tried(wanted, chosen)
            if against is None:
                return tuple(sorted(chosen)), True
            lists.append(self._narrowed(wanted, chosen, against))
        return tuple(sorted(enough)), not enough

    def _narrowed(
        self, wanted: _Wanted, chosen: Collection[int], against: frozenset[int]
    ) -> frozenset[int]:
        """A shorter list: releases are added to those that leave the total open, for as
        long as they do.
        """
        kept = frozenset(chosen) | (self._earlier - against)
        pieces = [sorted(against)]
        while pieces and self._effort.smaller > 0:
            piece = pieces.pop()
            found, _ = self._tried(wanted, kept | set(piece))
            if found is not None:
                kept = self._earlier - found
                pieces = [[r for r in each if r in found] for each in pieces]
                pieces = [each for each in pieces if each]
            elif len(piece) > 1:
                pieces += [piece[: len(piece) // 2], piece[len(piece) // 2 :]]
        return self._earlier - kept

    def _without_needless(self, wanted: _Wanted, enough: frozenset[int]) -> frozenset[int]:
        """Of a set that is enough, one of which each release is needed."""
        for release in sorted(enough, reverse=True):
            if release in enough and self._effort.smaller > 0:
                against, used = self._tried(wanted, enough - {release})
                enough = enough if against is not None else used
        return enough

    def _tried(
        self, wanted: _Wanted, taken: Collection[int]
    ) -> tuple[frozenset[int] | None, frozenset[int]]:
        """Of the tables that are compatible with some releases and the new one, and in
        which the total is least and greatest, the releases that those contradict which
        have it beyond its bounds; None if neither has, and then those of the releases
        that this rests on.
        """
        system, costs = self._system, wanted.costs
        self._effort.spend(system.matrix.shape[1])
        held = np.isin(self._of_row, [NEW, PUBLIC, *taken]).all(axis=1)
        least = np.where(held, open_ended(system.least), -np.inf)
        most = np.where(held, open_ended(system.most), np.inf)
        beyond, used = [], np.zeros(len(held), dtype=np.bool_)
        for sign, end in ((1.0, wanted.lower), (-1.0, -wanted.upper)):
            solved = self._program.solve(sign * costs, least=least, most=most, sure=True)
            assert solved is not None, "there is a table, as the totals have bounds"
            used |= np.abs(solved.duals) > _NEAR
            if np.ceil(sign * float(costs @ solved.values) - _NEAR) < end:
                beyond.append(solved.values)
        if not beyond:
            return None, self._releases(used & held)
        against = np.zeros(len(held), dtype=np.bool_)
        for table in beyond:
            sums = system.matrix @ table
            near = _NEAR * np.maximum(1.0, np.abs(sums))
            against |= (sums < system.least - near) | (sums > system.most + near)
        return self._releases(against) - frozenset(taken), frozenset()

    def _releases(self, rows: Booleans) -> frozenset[int]:
        return frozenset(int(r) for r in np.unique(self._of_row[rows])) - {NEW, PUBLIC}


def _hitting(lists: Sequence[frozenset[int]], every: Sequence[int]) -> frozenset[int]:
    """A smallest set with one of each list."""
    if not lists:
        return frozenset()
    place = {release: number for number, release in enumerate(every)}
    matrix = np.zeros((len(lists), len(every)))
    for row, each in enumerate(lists):
        matrix[row, [place[release] for release in each]] = 1.0
    solved = milp(
        np.ones(len(every)),
        integrality=np.ones(len(every), dtype=np.int64),
        bounds=Bounds(0, 1),
        constraints=LinearConstraint(matrix, 1, np.inf),
    )
    assert solved.x is not None, "all releases together hold one of each list"
    return frozenset(np.array(every)[np.rint(solved.x) > 0].tolist())
