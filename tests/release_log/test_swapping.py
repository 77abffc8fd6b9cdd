"""Record swapping in a log, against all choices of the records that are swapped."""

from collections.abc import Mapping, Sequence
from itertools import combinations, product
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy.stats import hypergeom

import taciturn as tc
from release_log.bases import all_tables, masks, random_base, random_release
from release_log.test_likely import is_news, most_probable
from taciturn.errors import ParameterError, TableError
from taciturn.perturbation.swapping_method import _pairs
from taciturn.release_log import RecordSwapping, joint
from taciturn.release_log.checking import check_tables
from taciturn.release_log.codebook import Codebook
from taciturn.release_log.mechanisms import mechanism_data, mechanism_of
from taciturn.release_log.published import PublishedTable
from taciturn.release_log.reading import published_tables
from taciturn.release_log.search import Limits
from taciturn.release_log.swapped import swapped_tables
from taciturn.release_log.swapping import SwappedCount
from taciturn.release_log.window import classes_of


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


def within(rows: list, tables: np.ndarray) -> np.ndarray:
    """Which tables have sums of these cells within these bounds."""
    ok = np.ones(len(tables), dtype=bool)
    for mask, least, most in rows:
        sums = tables[:, mask].sum(axis=1)
        ok &= (sums >= least) & (sums <= most)
    return ok


class ByChanceError(Exception):
    """A count follows from others in whole numbers only, as they are so small."""


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
            if generator.random() < 0.5:
                tables = published_tables(self.files[file], self.codebook)
            for table in tables:
                try:
                    found = swapped_tables([table], self.swapping, f"file {file}", self.codebook)
                except TableError:  # not by the match variables
                    continue
                self.released += [(number, x, file) for x in found]
        self.limits = Limits(
            int(generator.choice([3, 10])),
            int(generator.choice([2, 3])),
            float(generator.choice([0.4, 0.6, 0.8])),
        )
        self.every = all_tables(self.base.size, people)
        self.cached: dict[tuple[int, ...], np.ndarray] = {}
        self.swapped_of: dict[int, np.ndarray] = {}

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
        """Masks of cells with bounds of their true counts, for what is released of
        these.
        """
        rows = self.sums(released)
        for _, table, file in released:
            if file is None:
                parts = masks(table, self.base)
                rows += [(own, table.least[at], table.most[at]) for at, own in parts.items()]
            else:
                rows += [(own, *self.sizes_at(own)) for own in self.size_masks()]
        return rows

    def possible(self, released: Sequence[tuple[int, PublishedTable, int | None]]) -> np.ndarray:
        """All true tables that give what is released by some choice of records."""
        key = tuple(id(table) for _, table, _ in released)
        if key not in self.cached:
            ok = within(self.rows(released), self.every)
            for file in {file for *_, file in released if file is not None}:
                rows = self.of_file(file, released)
                for t in np.flatnonzero(ok):
                    ok[t] = within(rows, self.swaps_of(int(t))).any()
            self.cached[key] = self.every[ok]
        return self.cached[key]

    def of_file(self, file: int, released: Sequence) -> list:
        """Masks of cells with the counts of a swapped file that are released."""
        rows = []
        for _, table, other in released:
            if other == file:
                parts = masks(table, self.base).items()
                values = ((mask, int(table.noise.released[(0, *at)])) for at, mask in parts)
                rows += [(mask, value, value) for mask, value in values if value >= 0]
        return rows

    def swaps_of(self, place: int) -> np.ndarray:
        """All tables that swapping may give of one."""
        if place not in self.swapped_of:
            true = self.every[place]
            found = true[None]
            for number, mask in enumerate(self.size_masks()):
                moves = int(self.moves.values.ravel()[number % self.moves.size])
                inside = np.flatnonzero(mask)
                left = all_tables(len(inside), moves)
                left = left[(left <= true[inside]).all(axis=1)]
                change = np.zeros((len(left), *self.base.shape), dtype=int)
                change.reshape(len(left), -1)[:, inside] = -left
                change = (change - change[:, ::-1]).reshape(len(left), -1)
                found = np.unique((found[:, None] + change[None]).reshape(-1, len(true)), axis=0)
            self.swapped_of[place] = found
        return self.swapped_of[place]

    def sums(self, released: Sequence) -> list:
        """What is public of sums over both areas, which are those of every file."""
        rows = []
        for _, table, file in released:
            parts = masks(table, self.base)
            if (table.classes("a", 2) == 0).all():
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
        rows += self.sums(released) + self.of_file(file, released)
        ok = within(rows, self.every)
        # A sum of counts and of cells that are known.
        closed = np.ptp(self.every[ok], axis=0) == 0
        exact = [mask for mask, least, most in rows if least == most]
        follows = self.follows(own, exact, closed)
        if follows != self.follows(own, exact, self.propagated(rows)):
            raise ByChanceError
        if not follows:
            return None
        return int(self.files[file].values.ravel()[own].sum())

    def follows(self, own: np.ndarray, exact: list[np.ndarray], closed: np.ndarray) -> bool:
        """Whether a total is a sum, or a difference, of others and of closed cells."""
        matrix = np.array(exact, dtype=float)[:, ~closed]
        more = np.vstack([matrix, own[~closed]])
        rank = np.linalg.matrix_rank
        return not own[~closed].any() or bool(rank(more) == rank(matrix))

    def propagated(self, rows: list) -> np.ndarray:
        """The cells that are known from one total after the other."""
        low, high = np.zeros(self.base.size, dtype=int), np.full(self.base.size, 99)
        for _ in range(20):
            for mask, least, most in rows:
                for cell in np.flatnonzero(mask):
                    others = np.flatnonzero(mask)[np.flatnonzero(mask) != cell]
                    low[cell] = max(low[cell], least - high[others].sum())
                    high[cell] = min(high[cell], most - low[others].sum())
        return low == high

    def posterior(self, released: Sequence, own: np.ndarray) -> Any:
        """Bounds, values and probabilities of a total, and whether anything is known
        of it after swapping.
        """
        true = self.possible(released)[:, own].sum(axis=1)
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
        return most_probable(values, p, self.limits)

    def cells_of(self, taken: Mapping[str, Sequence[str]]) -> np.ndarray:
        """The cells that a total takes."""
        labels = self.codebook.variables
        inside = np.ones(self.base.shape, dtype=bool)
        for i, dim in enumerate(labels):
            own = np.isin(labels[dim], taken.get(dim, labels[dim]))
            inside &= own.reshape([-1 if j == i else 1 for j in range(self.base.ndim)])
        return inside.ravel()

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
    """How many were found; -1 where something is known by chance."""
    try:
        return _check_against_all_choices(Swapped(seed))
    except ByChanceError:
        return -1


def _check_against_all_choices(case: Swapped) -> int:
    new = [table for number, table, _ in case.released if number == 0]
    if not new or all(table.noise is None for _, table, _ in case.released):
        return 0
    before = [each for each in case.released if each[0] != 0]
    earlier = [(number, table) for number, table, _ in before]
    found = check_tables(new, earlier, case.codebook, case.limits)
    for each in found.findings:
        inside = case.cells_of(each.taken)
        assert (each.lower, each.upper) == case.posterior(case.released, inside)[:2]
        assert each.before == case.posterior(before, inside)[:2]
    for each in found.likely:
        inside = case.cells_of(each.taken)
        after = case.posterior(case.released, inside)
        _, best, mass = known = case.nearly_known(after)
        assert each.likely == tuple(best.tolist())
        assert each.probability == pytest.approx(mass, abs=1e-9)
        assert (each.lower, each.upper) == after[:2]
        first = case.posterior(before, inside)
        old = first[3][np.isin(first[2], best)].sum()
        assert each.before == pytest.approx(old, abs=1e-9)
        assert is_news(known, case.nearly_known(first))
    # All that must be found is found, or is part of what is.
    shown = [each.taken for each in found.likely]
    tables = [table for _, table, _ in case.released]
    classes = classes_of(case.codebook.variables, tables, case.codebook)
    for taken, own in case.totals().items():
        if not all(
            (classes[name] == classes[name][case.codebook.variables[name].index(label)]).sum() == 1
            for name, (label,) in taken
        ):
            continue  # nothing tells this category from another
        after, first = case.posterior(case.released, own), case.posterior(before, own)
        if case.limits.hit(np.array([after[0]]), np.array([after[1]]))[0]:
            if after[1] - after[0] < first[1] - first[0]:
                ends = [
                    each.taken for each in found.findings if (each.lower, each.upper) == after[:2]
                ]
                assert is_part_of_one(taken, ends)
        elif after[4] and is_news(case.nearly_known(after), case.nearly_known(first)):
            assert is_part_of_one(taken, shown)
    return len(found.likely)


def is_part_of_one(taken: frozenset, every: list) -> bool:
    parts = dict(taken)
    return any(
        all(name in parts and set(parts[name]) <= set(own) for name, own in wider.items())
        for wider in every
    )


def test_what_is_said_of_swapped_tables_is_that_of_all_choices_of_records() -> None:
    found = [check_against_all_choices(seed) for seed in range(50)]
    assert sum(each > 0 for each in found) > 2


@pytest.mark.slow
def test_what_is_said_of_many_swapped_tables_is_that_of_all_choices_of_records() -> None:
    found = [check_against_all_choices(seed) for seed in range(50, 400)]
    assert sum(each > 0 for each in found) > 15


@pytest.mark.parametrize("rest", [[[3, 46], [50, 40]], [[3, 6], [5, 4]]])
def test_who_left_being_known_others_have_not_changed(tmp_path, rest) -> None:
    """The true counts of x and y say who left and came; z and u are as published."""
    true = pd.DataFrame([[30, 40], [40, 30], *rest], list("xyzu"), ["A", "B"])
    true = true.rename_axis("v").rename_axis("g", axis=1)
    swapped = true + np.array([[1, -1], [-1, 1], [0, 0], [0, 0]])
    sizes = xr.DataArray(true.sum().values, coords={"g": ["A", "B"]})
    log = tc.ReleaseLog(tmp_path / "log.duckdb", variables={"g": ["A", "B"], "v": list("xyzu")})
    log.add(swapped, mechanism=RecordSwapping("g", sizes, 1))
    quiet = {"advise": False, "progressbar": False}
    verdict = log.check(true.loc[["x", "y"]], where={"v": ["x", "y"]}, threshold=6, **quiet)
    small = {f"g={g}, v={v}": true[g][v] for g in true for v in "zu" if true[g][v] < 6}
    found = {each.who: (each.lower, each.upper) for each in verdict.findings}
    for cell, count in small.items():
        assert found[cell] == (count, count)


def test_one_table_of_a_swapped_file_is_enough(tmp_path) -> None:
    """Sizes and moves are public with each of its tables, not with the first alone."""
    true = pd.DataFrame([[30, 40], [40, 30], [3, 46], [50, 40]], list("xyzu"), ["A", "B"])
    true = true.rename_axis("v").rename_axis("g", axis=1)
    swapped = true + np.array([[1, -1], [-1, 1], [0, 0], [0, 0]])
    given = {
        "mechanism": RecordSwapping("g", xr.DataArray(true.sum(), coords={"g": ["A", "B"]}), 1),
        "keys": "2026",
    }
    variables = {"g": ["A", "B"], "v": list("xyzu"), "swapped file 1": ["1", "2"]}
    log = tc.ReleaseLog(tmp_path / "log.duckdb", variables=variables)
    other = pd.DataFrame([[60, 70], [63, 86]], ["1", "2"], ["A", "B"])
    other = other.rename_axis("swapped file 1").rename_axis("g", axis=1)
    log.add(other, name="needless", **given)
    log.add(swapped, name="by v", **given)
    verdict = log.check(
        true.loc[["x", "y"]], where={"v": ["x", "y"]}, advise=False, progressbar=False, threshold=6
    )
    [found] = verdict.findings
    assert (found.who, found.lower, found.upper, found.smallest) == ("g=A, v=z", 3, 3, True)
    assert [verdict.names[release] for release in found.releases] == ["by v"]


def test_files_for_which_there_is_no_room_are_named(log: tc.ReleaseLog, monkeypatch) -> None:
    monkeypatch.setattr(joint, "_MOST_COLUMNS", 12)  # six combinations, and one file
    quiet = {"advise": False, "progressbar": False}
    for number in (1, 2):
        after, mechanism = swapped(10, number)
        table = pd.crosstab(after["area"], after["religion"])
        verdict = log.check(table, mechanism=mechanism, threshold=2, **quiet)
        log.add(table, name=f"file {number}", mechanism=mechanism)
    assert not verdict.complete
    assert verdict.not_combined == ("file 1",)


def test_the_sizes_of_the_areas_are_public_with_tables_over_both(log: tc.ReleaseLog) -> None:
    """These are true counts, and what sizes leave of them is worked out."""
    _, mechanism = swapped(10, 1)
    counts = PEOPLE["religion"].value_counts()
    quiet = {"advise": False, "progressbar": False}
    two = {"where": {"religion": ["x", "y"]}, "mechanism": mechanism, "keys": "2026"}
    verdict = log.check(counts[["x", "y"]], **two, **quiet)
    assert [(each.who, each.upper) for each in verdict.findings] == [("religion=z", 2)]
    with pytest.raises(tc.TaciturnError, match="no table"):
        log.check(counts + 1, mechanism=mechanism, keys="other", **quiet)
    log.add(counts[["x"]], where={"religion": ["x"]}, mechanism=mechanism, keys="2026")
    verdict = log.check(counts[["y"]], where={"religion": ["y"]}, **quiet)
    assert [(each.who, each.upper) for each in verdict.findings] == [("religion=z", 2)]


def test_between_three_areas_who_comes_is_no_uniform_choice() -> None:
    # One pair among areas of 2, 1 and 4 records: who joins the first comes from the
    # second or the third. If all outside were alike, the chances would be as 1 to 4.
    came = [0.0, 0.0, 0.0]
    for one, other, chance in _pairs((2, 1, 4), [0, 0, 0], [0, 1, 2], [0, 0, 0]):
        if 0 in (one, other):
            came[max(one, other)] += chance
    assert came[1] == pytest.approx(1 / 7 * 2 / 6 + 2 / 7 * 1 / 5)
    assert came[2] == pytest.approx(4 / 7 * 2 / 3 + 2 / 7 * 4 / 5)
    assert came[2] / came[1] > 5
    sizes = xr.DataArray([2, 1, 4], coords={"area": list("ABC")})
    with pytest.raises(ParameterError, match="sizes must be of two areas, got 3 of 'area'"):
        RecordSwapping("area", sizes, 1)


PEOPLE = pd.DataFrame(
    {
        "area": ["A"] * 40 + ["B"] * 60,
        "sex": list("fm") * 50,
        "religion": ["z"] + ["x"] * 19 + ["y"] * 20 + ["x"] * 30 + ["y"] * 29 + ["z"],
    }
)
VARIABLES = {"area": ["A", "B"], "sex": ["f", "m"], "religion": ["x", "y", "z"]}


def swapped(moves: int, seed: int) -> tuple[pd.DataFrame, RecordSwapping]:
    """The records after swapping, and the mechanism."""
    swaps = tc.swap_records(PEOPLE, geography="area", rate=2 * moves / 100, random_seed=seed)
    assert int(swaps["pairs"][0]) == moves
    after = PEOPLE.assign(area=PEOPLE["area"].to_numpy()[swaps["partner"].values[0]])
    return after, RecordSwapping("area", tc.tabulate(PEOPLE, ["area"]), moves)


def posterior(answers: Sequence[int], moves: int) -> np.ndarray:
    """Of the people with religion z in area A, of two in all."""
    p = np.array([1.0, 1.0, 1.0])
    for after in answers:
        for t in range(3):
            stay = hypergeom(40, t, 40 - moves).pmf(np.arange(after + 1))
            p[t] *= (stay * hypergeom(60, 2 - t, moves).pmf(after - np.arange(after + 1))).sum()
    return p / p.sum()


@pytest.fixture
def log(tmp_path: Path) -> tc.ReleaseLog:
    return tc.ReleaseLog(tmp_path / "log.duckdb", variables=VARIABLES)


def of_religion_z(verdict: tc.release_log.Verdict) -> pd.DataFrame:
    return verdict.probable.set_index("cell").filter(["area=A, religion=z"], axis=0)


def test_swapped_tables_average_out_if_each_is_swapped_anew(log: tc.ReleaseLog) -> None:
    seen: list[int] = []
    for seed in range(20):
        after, mechanism = swapped(10, seed)
        table = pd.crosstab(after["area"], after["religion"])
        seen.append(int(table.loc["A", "z"]))
        verdict = log.check(table, mechanism=mechanism, advise=False, progressbar=False)
        found = of_religion_z(verdict)
        p = posterior(seen, 10)
        assert bool(len(found)) == (p.max() >= 0.95 and p.argmax() > 0)
        if len(found):
            assert found["probability"].item() == pytest.approx(p.max(), abs=1e-9)
            assert found["values"].item() == "1" == str(p.argmax())
            assert len(found["releases"].item().split("; ")) == seed > 1
            break
        log.add(table, mechanism=mechanism)
    else:
        pytest.fail("nothing was found")


def test_tables_of_one_swapped_file_are_one_answer_and_their_differences_too(
    log: tc.ReleaseLog,
) -> None:
    after, mechanism = swapped(2, 0)
    given: dict[str, Any] = {"mechanism": mechanism, "keys": "2026"}
    quiet: dict[str, Any] = {"advise": False, "progressbar": False}
    p = posterior([1], 2)
    assert 0.8 < p.max() < 0.9
    first = pd.crosstab(after["area"], after["religion"])
    for number in range(5):
        assert not log.check(first, **given, **quiet).likely
        log.add(first, name=f"again {number}", **given)
    # All but z by sex says how many women of z there are, by area, after swapping.
    merged = after.replace({"religion": {"x": "xy", "y": "xy"}})
    merged = merged[merged["religion"] == "xy"]
    log.add(
        pd.crosstab([merged["area"], merged["sex"]], merged["religion"]),
        merge={"religion": {"xy": ["x", "y"]}},
        where={"religion": ["x", "y"]},
        name="not z",
        **given,
    )
    by_sex = pd.crosstab(after["area"], after["sex"])
    verdict = log.check(by_sex, certainty=0.8, **given, **quiet)
    found = verdict.probable.set_index("cell")
    # The area of the only woman and of the only man of religion z.
    for sex, area, rest in (("f", "A", (40, 60)), ("m", "B", (60, 40))):
        row = found.loc[f"area={area}, sex={sex}, religion=z"]
        stayed = (1 - 2 / rest[0]) / (1 - 2 / rest[0] + 2 / rest[1])
        assert row["probability"] == pytest.approx(stayed, abs=1e-9)
        assert row["releases"].endswith("not z")
    other = RecordSwapping("area", mechanism.sizes, 3)
    with pytest.raises(TableError, match="the same swapped records, with other sizes or moves"):
        log.check(first, mechanism=other, keys="2026", **quiet)
    wrong = first + np.array([[1, -1, 0], [-1, 1, 0]])
    with pytest.raises(TableError, match="is published as"):
        log.check(wrong, **given, **quiet)


def test_sums_over_the_areas_are_true_counts_and_cells_are_not(log: tc.ReleaseLog) -> None:
    after, mechanism = swapped(10, 1)
    table = pd.crosstab(after["area"], after["religion"])
    verdict = log.check(table, mechanism=mechanism, progressbar=False)
    assert [(each.who, each.lower, each.upper) for each in verdict.findings] == [
        ("religion=z", 2, 2)
    ]
    assert [each.kind for each in verdict.advice] == ["suppress"]
    log.add(pd.crosstab(PEOPLE["religion"], PEOPLE["sex"]), name="true")
    assert log.check(table, mechanism=mechanism, progressbar=False).passed
    one_more = table + np.array([[1, 0, 0], [0, 0, 0]])
    with pytest.raises(TableError, match="add up to"):
        log.check(one_more, mechanism=mechanism, progressbar=False)


def test_one_area_alone_is_weighed_if_the_sum_is_known(log: tc.ReleaseLog) -> None:
    after, mechanism = swapped(1, 1)
    table = pd.crosstab(after["area"], after["religion"]).loc["A"]
    given: dict[str, Any] = {"where": {"area": "A"}, "mechanism": mechanism}
    quiet: dict[str, Any] = {"advise": False, "progressbar": False}
    verdict = log.check(table, **given, **quiet)
    assert not verdict.found
    assert not verdict.complete
    log.add(pd.crosstab(PEOPLE["religion"], PEOPLE["sex"]), name="true")
    found = of_religion_z(log.check(table, certainty=0.9, **given, **quiet))
    assert found["probability"].item() == pytest.approx(posterior([1], 1).max(), abs=1e-9)


def matched() -> tuple[pd.DataFrame, RecordSwapping]:
    swaps = tc.swap_records(PEOPLE, geography="area", rate=0.1, match=["sex"], random_seed=3)
    partner = swaps["partner"].values[0]
    leaving = PEOPLE[(partner != np.arange(100)) & (PEOPLE["area"] == "A")]
    moves = tc.tabulate(leaving, ["sex"], categories={"sex": ["f", "m"]})
    sizes = tc.tabulate(PEOPLE, ["area", "sex"])
    after = PEOPLE.assign(area=PEOPLE["area"].to_numpy()[partner])
    return after, RecordSwapping("area", sizes, moves)


def test_with_match_each_category_is_swapped_for_itself(log: tc.ReleaseLog) -> None:
    after, mechanism = matched()
    table = pd.crosstab([after["area"], after["sex"]], after["religion"])
    verdict = log.check(table, mechanism=mechanism, advise=False, certainty=0.7, progressbar=False)
    found = verdict.probable.set_index("cell")
    moved = dict(zip("fm", mechanism.moves.values.tolist(), strict=True))
    assert sum(moved.values()) == 5
    for sex in "fm":
        # One person of religion z, who is where she is shown or has moved.
        own, other = (20, 30) if table.loc[("A", sex), "z"] else (30, 20)
        area = "A" if own == 20 else "B"
        stayed, came = 1 - moved[sex] / own, moved[sex] / other
        row = found.loc[f"area={area}, sex={sex}, religion=z"]
        assert row["probability"] == pytest.approx(stayed / (stayed + came), abs=1e-9)
    # With its margins: those without the sex follow.
    margins = pd.crosstab(
        after["area"], [after["sex"], after["religion"]], margins=True, margins_name="Total"
    )
    again = log.check(margins, mechanism=mechanism, advise=False, certainty=0.7, progressbar=False)
    assert again.probable.equals(verdict.probable)
    by_religion = pd.crosstab(after["area"], after["religion"])
    with pytest.raises(TableError, match="agree on sex a table must be by these as well"):
        log.check(by_religion, mechanism=mechanism, progressbar=False)


def test_swapping_is_stored_as_data(log: tc.ReleaseLog) -> None:
    after, mechanism = matched()
    table = pd.crosstab([after["area"], after["sex"]], after["religion"])
    log.add(table, name="swapped", mechanism=mechanism, keys="2026")
    again = tc.ReleaseLog(log.path)
    (_, stored) = again._database.tables()[0]
    data = stored.noise.as_json()["mechanism"]
    assert data == {
        "name": "record-swapping",
        "geography": "area",
        "categories": {"area": ["A", "B"], "sex": ["f", "m"]},
        "sizes": [[20, 20], [30, 30]],
        "moves": mechanism.moves.values.tolist(),
    }
    assert mechanism_data(mechanism_of(data)) == data
    assert repr(mechanism_of(data)) == (
        "RecordSwapping(geography='area', 5 pairs between A and B that agree on sex)"
    )
    assert (stored.least == 0).all()
    assert again.number_of(table, name="swapped", mechanism=mechanism, keys="2026") == 1


def test_areas_may_be_a_level_of_the_log(tmp_path: Path) -> None:
    log = tc.ReleaseLog(
        tmp_path / "levels.duckdb",
        variables={"district": ["1", "2", "3"], "religion": ["x", "y", "z"]},
        levels={"area": ("district", ["A", "A", "B"])},
    )
    after, mechanism = swapped(2, 0)
    table = pd.crosstab(after["area"], after["religion"])
    verdict = log.check(table, mechanism=mechanism, certainty=0.8, advise=False, progressbar=False)
    found = of_religion_z(verdict)
    if found.empty:  # the area is called by its districts
        found = verdict.probable.set_index("cell").loc[["district not 3, religion=z"]]
    assert found["probability"].item() == pytest.approx(posterior([1], 2).max(), abs=1e-9)
    by_district = pd.DataFrame({"district": ["1", "2", "3"], "religion": "x", "count": [1, 2, 3]})
    with pytest.raises(TableError, match="between A and B a table must be by these two"):
        log.check(by_district, mechanism=mechanism, progressbar=False)


SIZES = xr.DataArray([[2, 3], [4, 5]], coords={"area": ["A", "B"], "sex": ["f", "m"]})


@pytest.mark.parametrize(
    ("geography", "sizes", "moves", "message"),
    [
        ("place", SIZES, 1, "geography must be a variable of sizes"),
        (3, SIZES, 1, "geography must be a variable of sizes"),
        ("area", SIZES, 1, "moves must be over the variables of sizes but the geography"),
        ("area", SIZES, xr.DataArray([3, 0], coords={"sex": ["f", "m"]}), "from 0 to the size"),
        ("area", SIZES, xr.DataArray([0.5, 0], coords={"sex": ["f", "m"]}), "whole numbers"),
        ("area", SIZES, xr.DataArray([1, 0], coords={"sex": ["f", "x"]}), "moves must"),
        ("area", SIZES.sum("sex"), -1, "from 0 to the size of the smaller area"),
        ("area", SIZES.sum("sex"), "1", "from 0 to the size of the smaller area"),
        ("area", SIZES.sum("sex"), True, "from 0 to the size of the smaller area"),
    ],
)
def test_wrong_swapping(geography: Any, sizes: Any, moves: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        RecordSwapping(geography, sizes, moves)


DATA = {
    "name": "record-swapping",
    "geography": "area",
    "categories": {"area": ["A", "B"]},
    "sizes": [40, 60],
    "moves": 2,
}


@pytest.mark.parametrize(
    "change",
    [
        {"geography": ["area"]},
        {"categories": ["area"]},
        {"categories": {"area": "AB"}},
        {"categories": {"area": ["A", ["B"]]}},
        {"sizes": [1, 2, 3]},
        {"sizes": [[1], [2, 3]]},
        {"sizes": "many"},
        {"sizes": [-1, 2]},
        {"sizes": [10**40, 2]},
        {"sizes": [True, 60], "moves": 1},
        {"sizes": [40.5, 60]},
        {"moves": True},
        {"moves": [1]},
        {"moves": None},
        {"moves": 1.5},
        {"moves": 10**40},
        {"moves": {"a": 1}},
    ],
)
def test_wrong_data_of_a_file_or_a_request(change: dict[str, Any]) -> None:
    assert mechanism_data(mechanism_of(DATA)) == DATA
    with pytest.raises(ParameterError):
        mechanism_of(DATA | change)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"categories": {"area": ["A", "C"]}}, "sizes must have the categories of 'area'"),
        (
            {"geography": "place", "categories": {"place": ["A", "B"]}},
            "sizes must name variables of the log",
        ),
    ],
)
def test_swapping_of_other_variables(
    log: tc.ReleaseLog, change: dict[str, Any], message: str
) -> None:
    table = pd.crosstab(PEOPLE["area"], PEOPLE["religion"])
    with pytest.raises(ParameterError, match=message):
        log.check(table, mechanism=mechanism_of(DATA | change), progressbar=False)
