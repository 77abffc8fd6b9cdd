"""Protected tables of all kinds attacked by a program of the tests' own, which has what
is released and the sums that its cells must satisfy: no primary cell is narrower than
promised, for nobody who contributed nothing nor for who is alone in a cell."""

from collections import defaultdict
from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy.optimize import Bounds, LinearConstraint, milp

import taciturn as tc
from patterns import seeds
from taciturn.errors import AttackError

REGIONS = {0: 0, 1: 0, 2: 1, 3: 1, 4: 1}  # of the categories of a


class Attacker:
    """Finds tables in whole steps that agree with what is published. A cell is named by
    a pair of name and label for each variable, or None where that is summed over."""

    def __init__(self, published: dict, most: int):
        self.place = {cell: number for number, cell in enumerate(published)}
        values = list(published.values())
        self.lower = np.array([0 if value is None else value for value in values])
        self.upper = np.array([most if value is None else value for value in values])
        parts = defaultdict(list)
        for cell in published:
            for axis, named in enumerate(cell):
                for above in self.above(named):
                    total = (*cell[:axis], above, *cell[axis + 1 :])
                    if total in published:
                        parts[total, axis, named[0]].append(self.place[cell])
        self.sums = np.zeros((len(parts), len(published)), dtype=int)
        for row, ((total, *_), cells) in zip(self.sums, parts.items(), strict=True):
            row[cells] = 1
            row[self.place[total]] = -1
        self.tables = []

    @staticmethod
    def above(named):
        if named is None:
            return []
        name, label = named
        return [None, ("region", REGIONS[label])] if name == "a" else [None]

    def possible(self, cell, least, most, known=None) -> bool:
        """Whether the cell may be from `least` to `most`, if these others are known."""
        lower, upper = self.lower.copy(), self.upper.copy()
        for other, value in (known or {}).items():
            lower[self.place[other]] = upper[self.place[other]] = value
        at = self.place[cell]
        lower[at], upper[at] = max(lower[at], least), min(upper[at], most)
        if any(((lower <= table) & (table <= upper)).all() for table in self.tables):
            return True
        if lower[at] > upper[at]:
            return False
        found = milp(
            np.zeros(len(lower)),
            integrality=np.ones(len(lower)),
            bounds=Bounds(lower, upper),
            constraints=LinearConstraint(self.sums, 0, 0),
        )
        if found.x is None:
            assert found.status == 2  # no such table
            return False
        table = np.rint(found.x).astype(int)
        assert not (self.sums @ table).any()
        assert ((lower <= table) & (table <= upper)).all()
        self.tables.append(table)
        return True


class Case:
    """Records of a generated survey, by the cells of everything that is released, and
    how much each sensitive cell was promised. Amounts are in whole steps."""

    def __init__(self, seed: int):
        generator = np.random.default_rng(seed)
        self.kind = ("two ways", "three ways", "levels", "linked")[seed % 4]
        self.decimals = int(generator.integers(3))
        self.p = int(generator.choice([5, 10, 30]))
        self.gap = float(generator.choice([0.0, 0.9]))  # the cheapest, or the first found
        columns = int(generator.integers(3, 6))
        shape = {"three ways": (3, 3, 2), "linked": (3, 4, 3)}.get(self.kind, (5, columns))
        self.sizes = dict(zip("abc", shape, strict=False))
        cells = 10 if self.kind == "linked" else int(np.prod(shape))
        size = cells * int(generator.integers(2, 5))
        self.labels = generator.integers(0, shape, (size, len(shape)))
        self.amounts = np.maximum(1, np.rint(generator.lognormal(5, 1.2, size))).astype(int)
        self.margins = self.released()
        self.inside = {cell: [] for names in self.margins for cell in self.cells(names)}
        for labels, amount in zip(self.labels.tolist(), self.amounts.tolist(), strict=True):
            label = dict(zip(self.sizes, labels, strict=True))
            label["region"] = REGIONS[label["a"]]
            for names in self.margins:
                self.inside[self.cell({name: label[name] for name in names})].append(amount)
        self.totals = {cell: sum(amounts) for cell, amounts in self.inside.items()}
        self.steps = {cell: self.level(amounts) for cell, amounts in self.inside.items()}
        self.sensitive = [cell for cell, steps in self.steps.items() if steps > 0]
        self.alone = [cell for cell, amounts in self.inside.items() if len(amounts) == 1]

    def released(self):
        every = [names for k in (3, 2, 1, 0) for names in combinations(self.sizes, k)]
        if self.kind == "levels":
            every += [("region", "b"), ("region",)]
        without = {("a", "b", "c"), ("b", "c")} if self.kind == "linked" else set()
        return [names for names in every if names not in without]

    def cells(self, names):
        """Those of a margin, in the order of its values."""
        for labels in product(*(range({**self.sizes, "region": 2}[name]) for name in names)):
            yield self.cell(dict(zip(names, labels, strict=True)))

    def cell(self, labels):
        names = ("region" if "region" in labels else "a", *list(self.sizes)[1:])
        return tuple((name, labels[name]) if name in labels else None for name in names)

    def level(self, amounts):
        """How far from the total the p%-rule wants values to be possible, in whole
        steps; 0 or less if it holds."""
        first, _, *rest = (*sorted(amounts, reverse=True), 0, 0)
        return -((100 * sum(rest) - self.p * first) // 100)

    def protected(self):
        """What is released, by the names of its variables."""
        options = {"time_limit": 600, "gap": self.gap, "random_seed": 1, "progressbar": False}
        by_hand = self.kind in {"levels", "linked"}
        make = self.by_hand if by_hand else self.from_records
        return make(decimals=self.decimals, **options).tables

    def from_records(self, **options):
        records = pd.DataFrame(self.labels, columns=list(self.sizes))
        records["x"] = self.amounts / 10**self.decimals
        options["categories"] = {name: list(range(size)) for name, size in self.sizes.items()}
        return tc.protect_table(records, list(self.sizes), "x", tc.PPercent(self.p), **options)

    def by_hand(self, **options):
        true = np.zeros(tuple(self.sizes.values()))
        np.add.at(true, tuple(self.labels.T), self.amounts)
        table = xr.DataArray(true / 10**self.decimals, dims=list(self.sizes))
        table = table.assign_coords({name: range(size) for name, size in self.sizes.items()})
        if self.kind == "levels":
            table = table.assign_coords(region=("a", list(REGIONS.values())))
        made = {
            "primary": lambda cell: self.steps[cell] > 0,
            "singletons": lambda cell: cell in self.alone,
            "costs": lambda cell: 1 + self.totals[cell] if self.inside[cell] else np.inf,
            "lower": lambda cell: self.ends(cell)[0] / 10**self.decimals,
            "upper": lambda cell: self.ends(cell)[1] / 10**self.decimals,
        }
        by_margin = {
            what: {names: self.grid(names, of) for names in self.margins}
            for what, of in made.items()
        }
        low, high = by_margin.pop("lower"), by_margin.pop("upper")
        interval = {n: xr.Dataset({"lower": low[n], "upper": high[n]}) for n in self.margins}
        return tc.suppress(table, linked=self.margins, protection=interval, **by_margin, **options)

    def ends(self, cell):
        """What must be possible, at least: in steps."""
        total, steps = self.totals[cell], max(self.steps[cell], 0)
        return max(total - steps, 0), total + steps

    def grid(self, names, value):
        sizes = {name: {**self.sizes, "region": 2}[name] for name in names}
        values = np.array([value(cell) for cell in self.cells(names)])
        coords = {name: range(size) for name, size in sizes.items()}
        return xr.DataArray(values.reshape(list(sizes.values())), dims=names, coords=coords)

    def published(self, tables):
        """The value of each released cell in steps, None where it is suppressed."""
        found = {}
        for names, table in tables.items():
            for cell, value in zip(self.cells(names), table["value"].values.ravel(), strict=True):
                found[cell] = None if np.isnan(value) else round(float(value) * 10**self.decimals)
        return found


def within(part, whole):
    """Whether all of one cell is in the other."""
    pairs = zip(part, whole, strict=True)
    return all(above in (named, None, *Attacker.above(named)) for named, above in pairs)


def nested(cell, other):
    return within(cell, other) or within(other, cell)


def protected_case(seed):
    """A case of this seed that can be protected, and what is released of it."""
    for again in range(20):
        case = Case(seed + 4000 * again)
        try:
            return case, case.protected()
        except AttackError as error:
            if "no pattern protects" not in str(error):
                raise
    raise AssertionError(f"no case of seed {seed} can be protected")


def check_promises(case, published):
    """What is published is true, and each sensitive cell may be as low and as high as
    promised; who is alone in a cell can still not tell what is in another."""
    assert all(value in {None, case.totals[cell]} for cell, value in published.items())
    most = 4 * int(case.amounts.sum())
    attacker = Attacker(published, most)
    attacker.tables.append(np.array([case.totals[cell] for cell in published]))
    for cell in case.sensitive:
        low, high = case.ends(cell)
        assert attacker.possible(cell, high, most), f"{cell} is below {high}"
        assert attacker.possible(cell, 0, low), f"{cell} is above {low}"
    hidden = [cell for cell in case.alone if published[cell] is None]
    for own in hidden:
        # Of a cell and its total with a single contributor each, it is the same one.
        known = {other: case.totals[other] for other in hidden if nested(own, other)}
        for cell in case.sensitive:
            total = case.totals[cell]
            assert (
                cell in known
                or attacker.possible(cell, total + 1, most, known)
                or attacker.possible(cell, 0, total - 1, known)
            ), f"{own} works out {cell}"


def test_the_attacker_of_the_tests_finds_what_can_be_found():
    """Four open cells: 8 may be more by what 17 and 22 may be less, or 0."""
    values = [[20, 50, 10], [8, 19, 22], [17, 32, 12]]
    cells = {(("a", a), ("b", b)): values[a][b] for a in range(3) for b in range(3)}
    totals = {(("a", a), None): sum(values[a]) for a in range(3)}
    totals |= {(None, ("b", b)): sum(row[b] for row in values) for b in range(3)}
    first, other = (("a", 1), ("b", 0)), (("a", 2), ("b", 0))
    open_ = [first, other, (("a", 1), ("b", 2)), (("a", 2), ("b", 2))]
    attacker = Attacker({**cells, **totals, **dict.fromkeys(open_)}, 1000)
    assert attacker.possible(first, 8 + 17, 8 + 17)
    assert not attacker.possible(first, 8 + 17 + 1, 1000)
    assert attacker.possible(first, 0, 0)
    assert attacker.possible(first, 8, 8, {other: 17})
    assert not attacker.possible(first, 9, 1000, {other: 17})


def test_the_attacker_of_the_tests_notices_a_cell_that_is_published_again():
    """Of the cheapest pattern, in which no cell is there for single contributors."""
    case, tables = protected_case(10)
    assert (case.gap, case.alone) == (0, [])
    published = case.published(tables)
    secondary = [c for c, v in published.items() if v is None and c not in case.sensitive]
    assert secondary
    for cell in secondary:
        with pytest.raises(AssertionError, match=r"is below|is above|works out"):
            check_promises(case, {**published, cell: case.totals[cell]})


@pytest.mark.parametrize("seed", seeds(8, 400))
def test_no_primary_cell_is_narrower_than_promised(seed):
    case, tables = protected_case(seed)
    check_promises(case, case.published(tables))
