"""Record swapping in a log, against all choices of the records that are swapped."""

from collections.abc import Sequence
from itertools import combinations, product
from math import comb
from typing import Any

import numpy as np
import pytest
import xarray as xr
from scipy.stats import hypergeom

from release_log.bases import all_tables, random_base, random_release
from release_log.test_likely import masks
from taciturn.errors import TableError
from taciturn.release_log import RecordSwapping
from taciturn.release_log.checking import check_tables
from taciturn.release_log.codebook import Codebook
from taciturn.release_log.published import PublishedTable
from taciturn.release_log.search import Limits
from taciturn.release_log.swapped import swapped_tables
from taciturn.release_log.swapping import SwappedCount


def of_all_choices(inside: int, outside: int, moves: int, both: int, true: int) -> dict[int, float]:
    """How many of a kind are in an area after swapping: every choice of the records
    that leave each area, one by one.
    """
    if not 0 <= both - true <= outside or true > inside:
        return {}
    found: dict[int, float] = {}
    for out in combinations(range(inside), moves):
        for into in combinations(range(outside), moves):
            left = sum(record < true for record in out)
            came = sum(record < both - true for record in into)
            after = true - left + came
            found[after] = found.get(after, 0) + 1
    number = comb(inside, moves) * comb(outside, moves)
    return {after: times / number for after, times in found.items()}


def test_the_probability_of_a_count_is_that_of_all_choices_of_records() -> None:
    for inside, outside in [(4, 3), (3, 3), (1, 5), (5, 2)]:
        for moves, both in product(range(min(inside, outside) + 1), range(inside + outside + 1)):
            count = SwappedCount(inside, outside, moves, both)
            true = np.arange(inside + outside + 1)
            listed = [of_all_choices(inside, outside, moves, both, t) for t in true.tolist()]
            for after in range(inside + 1):
                p = np.array([each.get(after, 0.0) for each in listed])
                with np.errstate(over="raise"):
                    own = np.exp(count.log_probability(after, true))
                np.testing.assert_allclose(own, p, atol=1e-12)
                ends = count.support(after)
                if ends is None:
                    assert p.sum() == 0
                else:
                    assert np.flatnonzero(p)[[0, -1]].tolist() == list(ends)


def test_what_is_left_out_of_large_files_is_too_improbable_to_matter() -> None:
    for inside, outside, moves, both, after in [
        (5_000, 5_000, 500, 60, 21),
        (2_000, 8_000, 900, 700, 120),
        (300, 300, 10, 40, 3),
        (40_000, 60_000, 2_000, 9_000, 3_600),
    ]:
        count = SwappedCount(inside, outside, moves, both)
        low, high = count.support(after)
        true = np.arange(max(0, after - moves), min(both, inside, after + moves) + 1)
        log_p = count.log_probability(after, true)
        out = (true < low) | (true > high)
        assert log_p[out].max(initial=-np.inf) < -45
        slope = 1 - moves / inside - moves / outside
        assert high - low < 2 + 2 * np.sqrt(45 * moves) / slope
        # The convolution of SciPy's distributions, for a few values.
        for t in true[:: len(true) // 5].tolist():
            s = np.arange(after + 1)
            stay = hypergeom(inside, t, inside - moves).pmf(s)
            p = (stay * hypergeom(outside, both - t, moves).pmf(after - s)).sum()
            assert np.exp(log_p[true == t][0]) == pytest.approx(p, rel=1e-6, abs=1e-30)


class Swapped:
    """A random base with tables of it and of swapped files, and a new table."""

    def __init__(self, seed: int) -> None:
        generator = np.random.default_rng(seed)
        shapes = [(2, 3), (2, 2, 2), (2, 3, 2), (2, 2, 3)]
        shape = shapes[seed % len(shapes)]
        people = int(generator.integers(4, 8))
        self.base = random_base(generator, shape, people)
        labels = {str(dim): self.base[dim].values.tolist() for dim in self.base.dims}
        self.codebook = Codebook.of(labels)
        self.match = ["b"] if len(shape) > 2 and generator.random() < 0.4 else []
        self.sizes = self.base.sum([dim for dim in self.base.dims if dim not in ("a", *self.match)])
        most = self.sizes.min("a")
        if generator.random() < 0.7:  # few moves, which leave something to say
            most = np.minimum(most, 1)
        self.moves = xr.DataArray(generator.integers(0, most.values + 1), coords=most.coords)
        self.swapping = RecordSwapping("a", self.sizes, self.moves)
        self.files = [self.swapped(generator) for _ in range(int(generator.integers(1, 4)))]
        everybody = PublishedTable((), {}, np.array(people), np.array(people))
        self.released: list[tuple[int, PublishedTable, int | None]] = [(99, everybody, None)]
        for number in [*range(1, int(generator.integers(2, 6))), 0]:
            file = int(generator.integers(len(self.files)))
            if number > 0 and generator.random() < 0.25:
                self.released += self.true_release(generator, number)
                continue
            tables = random_release(generator, self.files[file], self.codebook)
            while all("a" not in table.variables for table in tables) and generator.random() < 0.8:
                tables = random_release(generator, self.files[file], self.codebook)
            for table in tables:
                try:
                    found = swapped_tables([table], self.swapping, f"file {file}", self.codebook)
                except TableError:  # not by the match variables
                    continue
                # A table over both areas is that of the true records.
                self.released += [(number, x, file if x.noise else None) for x in found]
        self.limits = Limits(
            int(generator.choice([3, 10])),
            int(generator.choice([2, 3])),
            float(generator.choice([0.4, 0.6, 0.8])),
        )
        self.every = all_tables(self.base.size, people)

    def true_release(self, generator: np.random.Generator, number: int) -> list:
        """A table of the records as they are, mostly without the areas."""
        tables = random_release(generator, self.base, self.codebook)
        rare = generator.random() < 0.2
        return [(number, table, None) for table in tables if rare or "a" not in table.variables]

    def swapped(self, generator: np.random.Generator) -> xr.DataArray:
        """The table after swapping any records of each area and category."""
        moved = self.base.copy()
        cells = list(np.ndindex(self.base.shape))
        dims = list(map(str, self.base.dims))
        for at in np.ndindex(self.moves.shape):
            for area in (0, 1):
                records = []
                for cell in cells:
                    category = tuple(cell[dims.index(name)] for name in self.match)
                    if cell[0] == area and category == at:
                        records += [cell] * int(self.base.values[cell])
                picked = generator.choice(len(records), int(self.moves.values[at]), replace=False)
                for place in picked.tolist():
                    moved.values[records[place]] -= 1
                    moved.values[(1 - area, *records[place][1:])] += 1
        return moved

    def rows(self, released: Sequence[tuple[int, PublishedTable, int | None]]) -> list:
        """Masks of cells with bounds of their true counts: of a swapped count those
        that some choice of records gives, if the sum over the areas is in the table.
        """
        rows = self.sums(released)
        for _, table, file in released:
            parts = masks(table, self.base)
            if file is None:
                rows += [(own, table.least[at], table.most[at]) for at, own in parts.items()]
                continue
            seen = {own.tobytes(): int(table.noise.released[(0, *at)]) for at, own in parts.items()}
            rows += [(own, *self.sizes_at(own)) for own in self.size_masks()]
            for own in parts.values():
                if not own.any():
                    continue
                mirror = own.reshape(self.base.shape)[::-1].ravel()
                pair = seen[own.tobytes()], seen.get(mirror.tobytes(), -1)
                rows.append((own, *self.possible(own, *pair)))
        return rows

    def sums(self, released: Sequence) -> list:
        """What is public of sums over both areas, which are those of every file."""
        rows = []
        for _, table, file in released:
            parts = masks(table, self.base)
            if file is None and (table.classes("a", 2) == 0).all():
                rows += [(own, table.least[at], table.most[at]) for at, own in parts.items()]
            elif file is not None:
                for at, own in parts.items():
                    mirror = own.reshape(self.base.shape)[::-1].ravel()
                    other = [x for x, mask in parts.items() if (mask == mirror).all()]
                    values = [int(table.noise.released[(0, *x)]) for x in [at, *other]]
                    least = sum(value for value in values if value > 0)
                    exact = len(values) == 2 and min(values) >= 0
                    rows.append((own | mirror, least, least if exact else 99))
        return rows

    def possible(self, own: np.ndarray, value: int, other: int) -> tuple[int, int]:
        """The least and the most of a count, of which some choice of records gives what
        is released of it and of the other area; -1 is not released.
        """
        _, (n, m), moves = self.stratum(own)
        found = [
            t
            for t in range(n + 1)
            for both in range(t, t + m + 1)
            for after in of_all_choices(n, m, moves, both, t)
            if value in (after, -1) and other in (both - after, -1)
        ]
        return min(found), max(found)

    def size_masks(self) -> list[np.ndarray]:
        places = np.indices(self.base.shape).reshape(self.base.ndim, -1)
        names = ["a", *self.match]
        own = [places[list(self.base.dims).index(name)] for name in names]
        return [
            np.all([x == i for x, i in zip(own, at, strict=True)], axis=0)
            for at in np.ndindex(*(self.base.sizes[name] for name in names))
        ]

    def sizes_at(self, own: np.ndarray) -> tuple[int, int]:
        number = int(self.base.values.ravel()[own].sum())
        return number, number

    def stratum(self, own: np.ndarray) -> tuple[int, tuple[int, int], int]:
        """The area of a total, the sizes of its own and the other, and the moves; the
        area is -1 if it is of several categories or of both areas.
        """
        inside = [i for i, mask in enumerate(self.size_masks()) if (mask & own).any()]
        number = self.moves.size
        every = sum(int(self.moves.values.ravel()[i]) for i in {i % number for i in inside})
        if len(inside) != 1:
            return -1, (0, 0), every
        area, at = divmod(inside[0], number)
        sizes = self.sizes.transpose("a", ...).values.reshape(2, -1)[:, at]
        return area, (int(sizes[area]), int(sizes[1 - area])), every

    def after(self, file: int, released: Sequence, own: np.ndarray) -> int | None:
        """A count of a swapped file if what is released of it determines it."""
        rows = [(mask, *self.sizes_at(mask)) for mask in self.size_masks()]
        rows += self.sums(released)
        for _, table, other in released:
            if other == file:
                parts = masks(table, self.base).items()
                values = ((mask, int(table.noise.released[(0, *at)])) for at, mask in parts)
                rows += [(mask, value, value) for mask, value in values if value >= 0]
        ok = np.ones(len(self.every), dtype=bool)
        for mask, least, most in rows:
            sums = self.every[:, mask].sum(axis=1)
            ok &= (sums >= least) & (sums <= most)
        # The sum of cells of which some are known.
        closed = np.ptp(self.every[ok], axis=0) == 0
        exact = [mask for mask, least, most in rows if least == most]
        matrix = np.array(exact, dtype=float)[:, ~closed]
        more = np.vstack([matrix, own[~closed]])
        if own[~closed].any() and np.linalg.matrix_rank(more) > np.linalg.matrix_rank(matrix):
            return None
        return int(self.files[file].values.ravel()[own].sum())

    def posterior(self, released: Sequence, own: np.ndarray) -> Any:
        """Bounds, values and probabilities of a total, and whether anything is known
        of it after swapping.
        """
        ok = np.ones(len(self.every), dtype=bool)
        for mask, least, most in self.rows(released):
            sums = self.every[:, mask].sum(axis=1)
            ok &= (sums >= least) & (sums <= most)
        true = self.every[ok][:, own].sum(axis=1)
        values = np.arange(true.min(), true.max() + 1)
        weights, known = np.ones(len(values)), False
        area, sizes, moves = self.stratum(own)
        mirror = own.reshape(self.base.shape)[::-1].ravel()
        whole = (own == mirror).all()
        if (area >= 0 or whole) and len(values) > 1:
            for file in sorted({each for _, _, each in released if each is not None}):
                after = self.after(file, released, own)
                both = self.after(file, released, own | mirror)
                if after is None or both is None:
                    continue
                known = True
                if whole:  # swapping changes nothing
                    weights = weights * (values == after)
                    continue
                weights = weights * [
                    of_all_choices(*sizes, moves, both, int(t)).get(after, 0.0) for t in values
                ]
        return int(values[0]), int(values[-1]), values, weights / weights.sum(), known

    def nearly_known(self, found: Any) -> tuple[bool, np.ndarray, float]:
        _, _, values, p, _ = found
        order = np.argsort(-p.round(10), kind="stable")[: self.limits.values - 1]
        order = order[p[order] > 0]
        best, mass = np.sort(values[order]), p[order].sum()
        small = 0 < best.max() < self.limits.threshold
        return small and mass >= self.limits.certainty - 1e-9, best, mass

    def totals(self) -> dict[frozenset, np.ndarray]:
        """Every category of every variable, and all of it."""
        dims = list(map(str, self.base.dims))
        found = {}
        for at in product(*(range(-1, n) for n in self.base.shape)):
            inside = np.ones(self.base.shape, dtype=bool)
            taken = []
            for i, (dim, place) in enumerate(zip(dims, at, strict=True)):
                if place >= 0:
                    own = np.arange(self.base.shape[i]) == place
                    inside &= own.reshape([-1 if j == i else 1 for j in range(len(dims))])
                    taken.append((dim, (self.codebook.variables[dim][place],)))
            found[frozenset(taken)] = inside.ravel()
        return found


def check_against_all_choices(seed: int) -> int:
    """How many were found."""
    case = Swapped(seed)
    new = [table for number, table, _ in case.released if number == 0]
    if not new or all(table.noise is None for _, table, _ in case.released):
        return 0
    before = [each for each in case.released if each[0] != 0]
    earlier = [(number, table) for number, table, _ in before]
    found = check_tables(new, earlier, case.codebook, case.limits)
    labels = case.codebook.variables
    for each in found.likely:
        inside = np.ones(case.base.shape, dtype=bool)
        for i, dim in enumerate(labels):
            own = np.isin(labels[dim], each.taken.get(dim, labels[dim]))
            inside &= own.reshape([-1 if j == i else 1 for j in range(case.base.ndim)])
        after = case.posterior(case.released, inside.ravel())
        near, best, mass = case.nearly_known(after)
        assert near
        assert each.likely == tuple(best.tolist())
        assert each.probability == pytest.approx(mass, abs=1e-9)
        assert (each.lower, each.upper) == after[:2]
        first = case.posterior(before, inside.ravel())
        old = first[3][np.isin(first[2], best)].sum()
        assert each.before == pytest.approx(old, abs=1e-9)
        assert not case.nearly_known(first)[0]
    # All that must be found is found, or is part of what is.
    shown = [each.taken for each in found.likely]
    for taken, own in case.totals().items():
        after = case.posterior(case.released, own)
        if case.limits.hit(np.array([after[0]]), np.array([after[1]]))[0] or not after[4]:
            continue
        if case.nearly_known(after)[0] and not case.nearly_known(case.posterior(before, own))[0]:
            parts = dict(taken)
            assert any(
                all(name in parts and set(parts[name]) <= set(own) for name, own in wider.items())
                for wider in shown
            )
    return len(found.likely)


def test_what_is_said_of_swapped_tables_is_that_of_all_choices_of_records() -> None:
    found = [check_against_all_choices(seed) for seed in range(80)]
    assert sum(each > 0 for each in found) > 10


@pytest.mark.slow
def test_what_is_said_of_many_swapped_tables_is_that_of_all_choices_of_records() -> None:
    found = [check_against_all_choices(seed) for seed in range(80, 500)]
    assert sum(each > 0 for each in found) > 60
