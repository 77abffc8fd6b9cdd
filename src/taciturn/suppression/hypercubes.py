"""The cheapest hypercube through a cell: the quickest way to let it deviate without
changing any total.

Moving a cell up, its neighbours down, theirs up and so on over the corners of a box
leaves every sum along a variable unchanged. With two variables the box is a rectangle.
"""

from itertools import product

import numpy as np

from taciturn.attack.solver import Floats
from taciturn.attack.system import Booleans, Integers
from taciturn.suppression.published import PublishedCells
from taciturn.suppression.task import Task
from taciturn.tables.margins import hierarchies, level_codes

__all__ = ["Hypercubes"]


class Hypercubes:
    """Boxes in a released table, with two categories of each variable."""

    def __init__(self, task: Task) -> None:
        cells = task.cells
        self._shape = cells.table.shape
        self._up, self._down = (
            most.reshape(self._shape) for most in (task.inner_up, task.inner_down)
        )
        self._inner = cells.inner
        self._column = cells.column
        self._boxes = cells.boxes
        self._partners = [_partners(cells, str(dim)) for dim in cells.table.dims if self._boxes]

    def cheapest(self, cell: int, deviation: int, free: Booleans, costs: Floats) -> Integers | None:
        """The cheapest deviations of the table's cells over a box, in free cells only,
        that give this published cell its deviation; None where there are none.
        """
        column = int(self._column[cell])
        if column < 0 or not self._boxes:
            return None
        corner = np.unravel_index(column, self._shape)
        price = np.where(free, costs, np.inf)[self._inner].reshape(self._shape)
        # A corner that goes down must hold as much, and none may leave what is known.
        raised = np.where(self._up >= abs(deviation), price, np.inf)
        lowered = np.where(self._down >= abs(deviation), price, np.inf)
        total = np.zeros(self._shape)
        for far in product((False, True), repeat=len(self._shape)):
            at = tuple(
                slice(None) if away else slice(i, i + 1)
                for away, i in zip(far, corner, strict=True)
            )
            up = (deviation > 0) == (sum(far) % 2 == 0)
            total = total + (raised if up else lowered)[at]
        for axis, (partners, i) in enumerate(zip(self._partners, corner, strict=True)):
            shape = [-1 if other == axis else 1 for other in range(total.ndim)]
            total = np.where(partners[i].reshape(shape), total, np.inf)
        best = int(np.argmin(total))
        opposite = np.unravel_index(best, total.shape)
        if total[opposite] == np.inf:
            return None
        found = np.zeros(total.shape, dtype=np.int64)
        for far in product((False, True), repeat=total.ndim):
            at_corner = tuple(
                int(b if away else a) for away, a, b in zip(far, corner, opposite, strict=True)
            )
            found[at_corner] = deviation * (-1) ** sum(far)
        return found.ravel()


def _partners(cells: PublishedCells, dim: str) -> Booleans:
    """Which pairs of categories of a variable can be the two sides of a box: different
    ones in the same category of each level with totals.
    """
    size = cells.table.sizes[dim]
    allowed = ~np.eye(size, dtype=np.bool_)
    used = {name for names in cells.margins for name in names}
    for level in hierarchies(cells.table)[dim]:
        if level in used:
            _, codes = level_codes(cells.table, level)
            allowed &= codes[:, None] == codes[None]
    return allowed
