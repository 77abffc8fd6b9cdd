"""Generated surveys for ``suppression.py``: records, what is released of them, and the
cells that the p%-rule finds sensitive.
"""

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

PERCENT = 10  # of the p%-rule


@dataclass(frozen=True)
class Survey:
    """A generated survey: the sizes of its variables, the numbers of groups on the
    levels above each, from fine to coarse, and whether the first variable is crossed
    with each of the others in a table of its own.
    """

    sizes: tuple[int, ...]
    groups: tuple[tuple[int, ...], ...] = ()
    linked: bool = False

    @property
    def variables(self) -> list[str]:
        return [f"v{axis}" for axis in range(len(self.sizes))]

    @property
    def levels(self) -> dict[str, list[str]]:
        """The levels above each variable, from fine to coarse."""
        above = [*self.groups, *[()] * (len(self.sizes) - len(self.groups))]
        return {
            name: [f"{name}_{number}" for number in groups]
            for name, groups in zip(self.variables, above, strict=True)
        }

    @property
    def tables(self) -> list[list[str]]:
        """The variables of each released table."""
        first, *others = self.variables
        return [[first, other] for other in others] if self.linked else [self.variables]

    @property
    def margins(self) -> list[tuple[str, ...]]:
        """All that is released: the tables, and their totals on all levels."""
        found: dict[tuple[str, ...], None] = {}
        for names in self.tables:
            choices = ([name, *self.levels[name], None] for name in names)
            found |= {tuple(n for n in names if n): None for names in product(*choices)}
        return list(found)

    def labels(self, axis: int) -> dict[str, list[str]]:
        """The label of each category of a variable, and of its group on each level."""
        name, size = self.variables[axis], self.sizes[axis]
        found = {name: [f"{name}c{i:03d}" for i in range(size)]}
        for level in self.levels[name]:
            number = int(level.split("_")[1])
            found[level] = [f"{level}g{i * number // size:03d}" for i in range(size)]
        return found

    def records(self) -> pd.DataFrame:
        """Lognormal amounts: a cell in ten is empty, the others have 6 records on
        average, or 4 with three variables, and each category has an effect on their
        size.
        """
        rng = np.random.default_rng(1)
        shape = self.sizes[:2] if self.linked else self.sizes
        cells, mean = int(np.prod(shape)), 6 if len(shape) == 2 else 4
        counts = np.where(rng.random(cells) < 0.9, 1 + rng.poisson(mean - 1, cells), 0)
        place = list(np.unravel_index(np.repeat(np.arange(cells), counts), shape))
        place += [rng.integers(0, size, counts.sum()) for size in self.sizes[len(shape) :]]
        size = rng.lognormal(4, 1, counts.sum())
        columns: dict[str, Any] = {}
        for axis, at in enumerate(place):
            size *= np.exp(rng.normal(0, 0.5, self.sizes[axis]))[at]
            columns |= {name: np.array(of)[at] for name, of in self.labels(axis).items()}
        return pd.DataFrame({**columns, "x": np.maximum(1, np.rint(size)).astype(int)})


SURVEYS = {
    "6 x 6": Survey((6, 6)),
    "4 x 4 x 3": Survey((4, 4, 3)),
    "20 x 20": Survey((20, 20)),
    "50 x 20": Survey((50, 20)),
    "100 x 40": Survey((100, 40)),
    "400 x 40": Survey((400, 40)),
    "20 x 20, levels of 4": Survey((20, 20), ((4,),)),
    "60 x 30, levels of 12, 4": Survey((60, 30), ((12, 4),)),
    "100 x 40, levels of 20, 5 and of 8": Survey((100, 40), ((20, 5), (8,))),
    "400 x 40, levels of 80, 16, 4 and of 8": Survey((400, 40), ((80, 16, 4), (8,))),
    "8 x 8 x 6": Survey((8, 8, 6)),
    "12 x 12 x 10": Survey((12, 12, 10)),
    "20 x 15 x 10": Survey((20, 15, 10)),
    "30 x 20 x 10": Survey((30, 20, 10)),
    "20 x 10 and 20 x 8, linked": Survey((20, 10, 8), linked=True),
    "100 x 20 and 100 x 15, linked": Survey((100, 20, 15), linked=True),
}


def sensitive(survey: Survey, records: pd.DataFrame) -> set[tuple[str, ...]]:
    """The cells that the p%-rule finds sensitive, worked out from the records."""
    found = set()
    for names in survey.margins:
        groups = records.groupby(list(names))["x"] if names else [((), records["x"])]
        for labels, amounts in groups:
            first, *rest = sorted(amounts.tolist(), reverse=True)
            if 100 * sum(rest[1:]) < PERCENT * first:
                found.add(key(survey, names, labels))
    return found


def key(survey: Survey, names: tuple[str, ...], labels: tuple[str, ...]) -> tuple[str, ...]:
    """A cell as a label for each variable, on whatever level, or ``Total``."""
    label = {name.split("_")[0]: label for name, label in zip(names, labels, strict=True)}
    return tuple(label.get(name, "Total") for name in survey.variables)
