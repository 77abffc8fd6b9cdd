"""What single contributors of suppressed cells know, and what they can work out.

Who is alone in a cell knows its value and can subtract it. What remains open to them
are the whole-number deviations in which their own cells do not take part. Such
deviations, read off a basis, show of most primary cells at once that they are not
worked out, or that they are.
"""

from collections.abc import Container, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.sparse import csr_array

from taciturn.attack.free_columns import lattice_of
from taciturn.attack.solver import Floats
from taciturn.attack.system import Booleans, Integers
from taciturn.suppression.task import Task

__all__ = ["Insider", "Insiders"]

_MANY: Final = 4_000  # open cells of the table, beyond which a basis is not looked for
_LARGE: Final = 2**12  # steps of a deviation: up to these all sums are exact
_NEAR: Final = 1e-9  # of a row's length: less is rounding


@dataclass(frozen=True, eq=False, repr=False)
class Insider:
    """A single contributor of suppressed cells.

    Attributes
    ----------
    number : int
        Of all single contributors.
    own : array of bool, shape (cells,)
        The cells that the contributor knows.
    """

    number: int
    own: Booleans


@dataclass(frozen=True, eq=False, repr=False)
class _Basis:
    """A basis of the whole-number deviations that a pattern leaves open.

    Attributes
    ----------
    tables : array of float64, shape (cells of the table, dimensions)
        Deviations of the table's cells.
    moved : array of float64, shape (cells, dimensions)
        Deviations of the published cells.
    possible : array of bool, shape (dimensions,)
        Whether an attacker must consider them possible, up or down.
    """

    tables: Floats
    moved: Floats
    possible: Booleans


class Insiders:
    """The single contributors of cells.

    If two cells have a single contributor and one is part of the other, it is the same
    contributor, who knows both, and all that are tied in this way.
    """

    def __init__(self, task: Task, singletons: Booleans) -> None:
        self._task = task
        self._groups: list[Booleans] = []
        left = singletons.copy()
        while left.any():
            own = self._contributed(int(np.argmax(left)), singletons)
            self._groups.append(own)
            left &= ~own
        self._pattern = np.zeros(0, dtype=np.bool_)
        self._basis: _Basis | None = None

    def of(self, pattern: Booleans, met: Container[int] = ()) -> Iterator[Insider]:
        """Those who are alone in a suppressed cell and are not met yet, when these
        cells are suppressed.
        """
        for number, own in enumerate(self._groups):
            if number not in met and (own & pattern).any():
                yield Insider(number, own)

    def tied(self, insider: Insider, pattern: Booleans) -> Integers:
        """The suppressed primary cells that follow from what an insider knows and what
        is published; none where that is not known.
        """
        basis = self._basis_of(pattern)
        if basis is None:
            return np.zeros(0, dtype=np.int64)
        primaries = self._task.required.cells
        asked = primaries[pattern[primaries] & ~insider.own[primaries]]
        known = basis.moved[insider.own & pattern]
        return np.asarray(asked[_spanned(basis.moved[asked], known)])

    def hidden(self, insider: Insider, pattern: Booleans) -> Booleans:
        """Primary cells for which an insider must consider more than the true value
        possible, by tables of whole numbers.
        """
        primaries = self._task.required.cells
        if self._basis is None or (self._pattern & ~pattern).any():
            self._basis_of(pattern)
        basis = self._basis  # what fewer suppressed cells leave open is open still
        if basis is None:
            return np.zeros(len(primaries), dtype=np.bool_)
        known = basis.moved[insider.own & pattern]
        found = (basis.moved[primaries][:, basis.possible & ~known.any(axis=0)] != 0).any(axis=1)
        if not (found | insider.own[primaries]).all():
            left = _without(known)
            left = left[:, (left != 0).sum(axis=0) > 1]  # the others have been looked at
            tables, moved = basis.tables @ left, basis.moved @ left
            found |= (moved[primaries][:, _possible(self._task, tables, moved)] != 0).any(axis=1)
        return np.asarray(found)

    def _basis_of(self, pattern: Booleans) -> _Basis | None:
        """The basis for a pattern, kept until another is asked for."""
        if not np.array_equal(pattern, self._pattern):
            self._pattern, self._basis = pattern.copy(), self._new_basis(pattern)
        return self._basis

    def _new_basis(self, pattern: Booleans) -> _Basis | None:
        """None where there are too many cells, or no basis is found."""
        cells = self._task.cells
        open_ = np.ones(cells.table.size, dtype=np.bool_)
        inner = cells.column >= 0
        open_[cells.column[inner & ~pattern]] = False
        columns = np.flatnonzero(open_)
        if len(columns) > _MANY:
            return None
        sums = csr_array(cells.matrix[np.flatnonzero(~pattern & ~inner)][:, columns])
        found = lattice_of(sums).basis
        if found is None or np.abs(found).max(initial=0) > _LARGE:
            return None
        tables = np.zeros((len(open_), found.shape[1]))
        tables[columns] = found
        moved = np.asarray(cells.matrix @ tables)
        return _Basis(tables, moved, _possible(self._task, tables, moved))

    def _contributed(self, cell: int, singletons: Booleans) -> Booleans:
        """The cells with a single contributor that must be this one's."""
        own = np.zeros_like(singletons)
        found = [cell]
        while found:
            own[found[0]] = True
            tied = self._task.cells.nested(found.pop(0)) & singletons & ~own
            found += [each for each in np.flatnonzero(tied).tolist() if each not in found]
        return own


def _possible(task: Task, tables: Floats, moved: Floats) -> Booleans:
    """Which deviations are within what is known, as they are or with signs changed."""
    found = []
    for sign in (1, -1):
        inner = (sign * tables >= -task.inner_down[:, None]) & (
            sign * tables <= task.inner_up[:, None]
        )
        outer = (sign * moved >= -task.down[:, None]) & (sign * moved <= task.up[:, None])
        found.append(inner.all(axis=0) & outer.all(axis=0))
    return np.asarray(found[0] | found[1])


def _without(rows: Floats) -> Floats:
    """Whole numbers for which all rows are 0: as many as are independent, but for those
    that would be large.
    """
    left = np.eye(rows.shape[1])
    for row in rows:
        along = (row @ left).astype(np.int64)
        held = np.flatnonzero(along)
        if len(held):
            pivot = held[np.argmin(np.abs(along[held]))]
            others = np.delete(np.arange(left.shape[1]), pivot)
            common = np.gcd(along[pivot], along[others])
            of_others, of_pivot = along[pivot] // common, along[others] // common
            left = left[:, others] * of_others - left[:, [pivot]] * of_pivot
            left = left[:, np.abs(left).max(axis=0, initial=0.0) <= _LARGE]
    return left


def _spanned(rows: Floats, own: Floats) -> Booleans:
    """Which rows are sums of multiples of others."""
    basis, strength, _ = np.linalg.svd(own.T, full_matrices=False)
    basis = basis[:, strength > _NEAR * strength.max(initial=0.0)]
    rest = rows - (rows @ basis) @ basis.T
    size = np.abs(rows).max(axis=1, initial=0.0)
    return np.asarray(np.abs(rest).max(axis=1, initial=0.0) <= _NEAR * np.maximum(size, 1.0))
