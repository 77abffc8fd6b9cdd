"""What a table gives away after others, against all tables of small bases."""

import numpy as np
import pytest

from release_log.bases import all_tables, compatible, random_base, random_release
from taciturn.attack.system import UNLIMITED
from taciturn.errors import TableError
from taciturn.release_log.checking import _windows, check_tables
from taciturn.release_log.codebook import Codebook
from taciturn.release_log.published import Axis, PublishedTable
from taciturn.release_log.search import Limits
from taciturn.release_log.totals import Totals
from taciturn.release_log.window import NEW, Window, told_of, window_of

SHAPES = [(3, 2), (4, 2), (2, 2, 2), (3, 3), (5,), (3, 2, 2)]


MORE = 4  # people than there are, where their number is not known


class Base:
    """A random base with releases, a new table, and all tables of so many people: their
    number is release 99, is public, or is not known.
    """

    def __init__(self, seed: int, known: str = "released") -> None:
        generator = np.random.default_rng(seed)
        people = int(generator.integers(2, 5))
        self.table = random_base(generator, SHAPES[seed % len(SHAPES)], people)
        labels = {str(dim): self.table[dim].values.tolist() for dim in self.table.dims}
        self.codebook = Codebook.of(labels, None, people if known == "public" else None)
        everybody = PublishedTable((), {}, np.array(people), np.array(people))
        self.earlier = [(99, everybody)] * (known == "released") + [
            (number, table)
            for number in range(1, int(generator.integers(1, 6)) + 1)
            for table in random_release(generator, self.table, self.codebook)
        ]
        self.new = random_release(generator, self.table, self.codebook)
        self.limits = Limits(int(generator.choice([2, 3, 10])), int(generator.choice([2, 3, 4])))
        least, most = (0, people + MORE) if known == "no" else (people, people)
        sizes = range(least, most + 1)
        self.every = np.concatenate([all_tables(self.table.size, each) for each in sizes])

    def values(self, released: list[PublishedTable]) -> tuple[Totals, np.ndarray]:
        """All totals of all tables that are compatible with what is released."""
        classes = _windows(self.new, self.earlier, self.codebook)[0][0]
        both = [*self.earlier, *((0, table) for table in self.new)]
        window = window_of(classes, told_of(classes, both), self.codebook)
        return self.of_window(window, self.every[compatible(self.every, released, self.table)])

    def of_window(self, window: Window, held: np.ndarray) -> tuple[Totals, np.ndarray]:
        """All totals of a window, of some tables."""
        place = np.zeros(self.table.shape, dtype=int)
        for name, own in window.classes.items():
            shape = [-1 if dim == name else 1 for dim in self.table.dims]
            place = place * (own.max() + 1) + own.reshape(shape)
        cells = np.zeros((self.table.size, int(np.prod(window.shape))), dtype=np.int64)
        cells[np.arange(self.table.size), place.ravel()] = 1
        totals = Totals(window)
        return totals, np.array([totals.of(each) for each in held @ cells])


def taken(totals: Totals, total: int, codebook: Codebook) -> dict[str, tuple[str, ...]]:
    return {
        name: tuple(np.array(codebook.variables[name])[sets[totals.window.classes[name]]])
        for name, sets in totals.sets(total).items()
    }


def found_out(base, totals, open_, left):
    """Which totals are small counts that can be worked out, from the values that each
    can have before and after a new table."""
    hit = base.limits.hit(left.min(0), left.max(0))
    was, fewer = base.limits.hit(open_.min(0), open_.max(0)), np.ptp(left, 0) < np.ptp(open_, 0)
    hit &= ~was | fewer
    for total in np.flatnonzero(hit):  # all of a variable is the total over it
        hit[total] = not any(each.all() for each in totals.sets(int(total)).values())
    return hit


def check_against_all_tables(seed: int, known: str = "released") -> int:
    base = Base(seed, known)
    if not base.new:
        return 0
    before = [table for _, table in base.earlier]
    _, open_ = base.values(before)
    totals, left = base.values([*before, *base.new])
    hit = found_out(base, totals, open_, left)
    found = check_tables(base.new, base.earlier, base.codebook, base.limits)
    assert found.complete
    assert len(found.findings) + found.further == hit.sum()
    described = {
        tuple(sorted(taken(totals, int(total), base.codebook).items())): int(total)
        for total in np.flatnonzero(hit)
    }
    for finding in found.findings:
        total = described[tuple(sorted(finding.taken.items()))]
        assert (finding.lower, finding.upper) == (left[:, total].min(), left[:, total].max())
        first, last = finding.before
        assert first == open_[:, total].min()
        assert last is None or last == open_[:, total].max() or last > base.table.sum() + MORE
        enough = [table for number, table in base.earlier if number in finding.releases]
        _, values = base.values([*enough, *base.new])
        ends = values[:, total].min(), values[:, total].max()
        assert ends == (finding.lower, finding.upper)
    return int(hit.sum())


def test_findings_are_those_of_all_tables() -> None:
    assert sum(check_against_all_tables(seed) for seed in range(120)) > 100


@pytest.mark.parametrize("known", ["public", "no"])
def test_findings_do_not_need_a_release_of_how_many_there_are(known: str) -> None:
    seeds = [seed for seed in range(120) if np.prod(SHAPES[seed % len(SHAPES)]) <= 8]
    assert sum(check_against_all_tables(seed, known) for seed in seeds) > 30


@pytest.mark.slow
@pytest.mark.parametrize("known", ["released", "public"])
def test_findings_are_those_of_all_tables_of_many_bases(known: str) -> None:
    assert sum(check_against_all_tables(seed, known) for seed in range(120, 1500)) > 1000


@pytest.mark.parametrize("seed", range(40))
def test_no_smaller_set_of_releases_is_enough(seed: int) -> None:
    from itertools import combinations

    base = Base(seed + 5000)
    if not base.new:
        return
    found = check_tables(base.new, base.earlier, base.codebook, base.limits)
    totals, _ = base.values([])
    numbers = sorted({number for number, _ in base.earlier})
    for finding in found.findings:
        if not finding.smallest:
            continue
        total = next(
            i
            for i in range(len(totals.of(np.zeros(int(np.prod(totals.window.shape)), dtype=int))))
            if taken(totals, i, base.codebook) == finding.taken
        )
        # All tables that are listed have as many people as the base, which is what
        # release 99 says: only sets with it know as little as the list.
        for some in combinations(numbers, max(0, len(finding.releases) - 1)):
            if len(some) == len(finding.releases) or 99 not in some:
                continue
            tables = [table for number, table in base.earlier if number in some]
            _, values = base.values([*tables, *base.new])
            ends = values[:, total].min(), values[:, total].max()
            assert ends != (finding.lower, finding.upper)


@pytest.mark.parametrize("cells", [2, 4, 6])
def test_in_parts_nothing_is_claimed_that_does_not_follow(
    cells: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where classes are too many, bounds are wider than all tables say, never narrower,
    and the releases that are named are enough.
    """
    monkeypatch.setattr("taciturn.release_log.checking._MOST_CELLS", cells)
    monkeypatch.setattr("taciturn.release_log.checking._MOST_OF_PART", cells)
    incomplete = findings = 0
    for seed in range(150):
        base = Base(seed)
        if not base.new:
            continue
        found = check_tables(base.new, base.earlier, base.codebook, base.limits)
        incomplete += not found.complete
        for finding in found.findings:
            inside = np.ones(base.table.shape, dtype=bool)
            for axis, dim in enumerate(base.table.dims):
                if dim in finding.taken:
                    mask = np.isin(base.table[dim].values, finding.taken[dim])
                    inside &= mask.reshape([-1 if i == axis else 1 for i in range(inside.ndim)])
            for taken in (range(1, 100), finding.releases):
                released = [table for number, table in base.earlier if number in taken]
                held = compatible(base.every, [*released, *base.new], base.table)
                values = base.every[held][:, inside.ravel()].sum(axis=1)
                assert finding.lower <= values.min() <= values.max() <= finding.upper
            findings += 1
            whole = [*(table for _, table in base.earlier), *base.new]
            held = compatible(base.every, whole, base.table)
            values = base.every[held][:, inside.ravel()].sum(axis=1)
            assert finding.lower <= values.min()
            assert values.max() <= finding.upper
    assert incomplete > 50
    assert findings > 10


def test_differences_that_there_is_no_room_for_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    some = []
    for seed in range(60):
        base = Base(seed)
        with monkeypatch.context() as all_of_them:
            totals, values = base.values([])
            all_of_them.setattr("taciturn.release_log.totals._MOST_DIFFERENCES", 0)
            found = check_tables(base.new, base.earlier, base.codebook, base.limits)
        says_more = any(release == NEW for release, _ in totals.window.sources)
        others = values.shape[1] > np.prod([size + 1 for size in totals.window.shape])
        some.append(bool(says_more and others))
        assert found.complete is not some[-1]
    assert 10 < sum(some) < 50


@pytest.mark.parametrize("parts", [2, 3, 5, 10, 20])
def test_planted_differences_of_many_releases_are_found(parts: int) -> None:
    """The total is released, then one area after the other but that of one person."""
    import pandas as pd

    from taciturn.release_log.reading import published_tables

    generator = np.random.default_rng(parts)
    codebook = Codebook.of({"area": range(parts), "sex": ["f", "m"], "age": ["young", "old"]})
    counts = generator.integers(12, 40, size=(parts, 2))
    alone = int(generator.integers(parts))
    counts[alone] = [1, 30]

    def table(values: np.ndarray) -> pd.Series:
        return pd.Series(values, index=pd.Index(["f", "m"], name="sex"))

    earlier = [
        (1, each)
        for each in published_tables(table(counts.sum(axis=0)), codebook, where={"age": "old"})
    ]
    areas = [area for area in range(parts) if area != alone]
    for place, area in enumerate(areas):
        where = {"age": "old", "area": area}
        new = published_tables(table(counts[area]), codebook, where=where)
        found = check_tables(new, earlier, codebook, Limits(10, 2))
        if place + 1 < len(areas):
            assert not found.findings, area
        else:
            assert [each.lower for each in found.findings] == [1]
            finding = found.findings[0]
            assert finding.taken == {"area": (str(alone),), "sex": ("f",), "age": ("old",)}
            assert finding.releases == tuple(range(1, parts))
            assert finding.smallest
        earlier += [(place + 2, each) for each in new]


def counted(codebook: Codebook, counts: dict[str, float], by: str, **given: object) -> list:
    """A table over one variable."""
    import pandas as pd

    from taciturn.release_log.reading import published_tables

    index = pd.Index(list(counts), name=by)
    return published_tables(pd.Series(list(counts.values()), index=index), codebook, **given)


CODEBOOK = {"area": list("ABCD"), "sex": ["f", "m"], "age": ["a1", "a2", "a3", "a4"]}


@pytest.mark.parametrize(
    ("earlier", "new", "who"),
    [
        ([{"f": 99, "m": np.nan}], {"A": 60, "B": 40, "C": 0, "D": 0}, "sex=m"),
        ([{"A": 60, "B": 40, "C": 0, "D": 0}], {"f": 99, "m": np.nan}, "sex=m"),
        ([{"A": 3, "B": 97, "C": 0, "D": 0}], {"f": 100, "m": 0}, "sex=f, area not B"),
    ],
)
def test_tables_without_a_common_variable_have_their_number_of_people(
    earlier: list, new: dict[str, float], who: str
) -> None:
    codebook = Codebook.of(CODEBOOK)
    by = {"f": "sex", "A": "area"}
    logged = [
        (number, table)
        for number, counts in enumerate(earlier, start=1)
        for table in counted(codebook, counts, by[next(iter(counts))])
    ]
    found = check_tables(
        counted(codebook, new, by[next(iter(new))]), logged, codebook, Limits(10, 2)
    )
    said = {frozenset(each.who.split(", ")) for each in found.findings}
    assert frozenset(who.split(", ")) in said


def test_the_public_number_of_records_is_an_equation() -> None:
    codebook = Codebook.of(CODEBOOK, None, 100)
    found = check_tables(
        counted(codebook, {"f": 99, "m": np.nan}, "sex"), [], codebook, Limits(10, 2)
    )
    assert [(each.who, each.lower, each.releases) for each in found.findings] == [("sex=m", 1, ())]
    young = counted(codebook, {"f": 101, "m": np.nan}, "sex", where={"age": "a1"})
    with pytest.raises(TableError, match="total of the log of 100"):
        check_tables(young, [], codebook, Limits(10, 2))


def test_a_margin_that_is_published_otherwise_is_refused() -> None:
    codebook = Codebook.of(CODEBOOK)
    logged = [(1, table) for table in counted(codebook, {"f": 51, "m": 48}, "sex")]
    with pytest.raises(TableError, match=r"sex=f of this table is published as 1, and .* up to 51"):
        check_tables(counted(codebook, {"f": 1, "m": 30}, "sex"), logged, codebook, Limits(10, 2))
    men_more = counted(codebook, {"f": 51, "m": 46, "Total": 100}, "sex")
    with pytest.raises(TableError, match="total of this table is published as 100"):
        check_tables(men_more, [], codebook, Limits(10, 2))


def test_what_a_table_names_is_looked_at_where_another_has_it_finer() -> None:
    codebook = Codebook.of(CODEBOOK)
    merge = {"age": {"a1 or a2": ["a1", "a2"]}}
    merged = counted(codebook, {"a1 or a2": 60, "a3": 70, "a4": 80}, "age", merge=merge)
    sexes = counted(codebook, {"f": 70, "m": 140}, "sex")
    women = counted(codebook, {"f": 33, "m": np.nan}, "sex", where={"age": "a3"})
    fine = counted(codebook, {"a1": 20, "a2": 40, "a3": 70, "a4": 80}, "age")
    new = counted(codebook, {"f": 35, "m": np.nan}, "sex", where={"age": "a4"})
    for logged in ([merged, sexes, women], [fine, merged, sexes, women]):
        earlier = [(i, table) for i, each in enumerate(logged, start=1) for table in each]
        found = check_tables(new, earlier, codebook, Limits(10, 2))
        assert [(each.taken, each.lower) for each in found.findings] == [
            ({"age": ("a1", "a2"), "sex": ("f",)}, 2)
        ]


def test_the_sum_of_what_is_suppressed_in_a_line_is_looked_at() -> None:
    codebook = Codebook.of(CODEBOOK)
    counts = {"A": 50, "B": 60, "C": np.nan, "D": np.nan, "Total": 115}
    found = check_tables(counted(codebook, counts, "area"), [], codebook, Limits(10, 2))
    assert [(each.taken, each.lower) for each in found.findings] == [({"area": ("C", "D")}, 5)]


def test_what_is_the_same_count_is_counted_once() -> None:
    """A filter that selects everybody makes no further counts."""
    codebook = Codebook.of(CODEBOOK)
    for where in ({}, {"sex": ["f", "m"]}, {"sex": ["f", "m"], "age": CODEBOOK["age"]}):
        new = counted(codebook, {"A": 60, "B": 40, "C": 3, "D": 50}, "area", where=where)
        found = check_tables(new, [], codebook, Limits(10, 2))
        assert [(each.who, each.lower) for each in found.findings] == [("area=C", 3)]
        assert found.further == 0


def test_no_release_is_needed_for_what_is_public_or_in_the_table_itself() -> None:
    """Although an earlier one says it, too."""
    codebook = Codebook.of(CODEBOOK, None, 100)
    areas = {"A": 60, "B": 40, "C": 0, "D": 0}
    logged = [(1, table) for table in counted(codebook, areas, "area")]
    new = counted(codebook, {"f": 99, "m": np.nan}, "sex")
    found = check_tables(new, logged, codebook, Limits(10, 2))
    first = found.findings[0]
    assert (first.who, first.lower, first.releases, first.smallest) == ("sex=m", 1, (), True)
    codebook = Codebook.of(CODEBOOK)
    new = counted(codebook, {"f": 99, "m": np.nan, "Total": 100}, "sex")
    found = check_tables(new, logged, codebook, Limits(10, 2))
    first = found.findings[0]
    assert (first.who, first.lower, first.releases, first.smallest) == ("sex=m", 1, (), True)


@pytest.mark.parametrize("first", [True, False])
def test_a_category_that_a_filter_leaves_out_says_nothing_of_the_others(first: bool) -> None:
    """Its 0 is not that of all, where nothing is told apart along its variable."""
    codebook = Codebook.of(CODEBOOK)
    counts = {"a1": 0, "a2": 30, "a3": 20} if first else {"a2": 30, "a3": 20, "a1": 0}
    (table,) = counted(codebook, counts, "age", where={"age": ["a2", "a3"]})
    coarse = table.coarsened({})
    assert (coarse.axes, coarse.where) == ((), {})
    assert (int(coarse.least), int(coarse.most)) == (50, UNLIMITED)
    coarse = table.coarsened({"age": np.array([0, 1, 1, 0])})
    (axis,) = coarse.axes
    assert axis.classes.tolist() == [-1, 0, 0, -1]
    assert (coarse.least.tolist(), coarse.most.tolist()) == ([50], [50])
    everybody = counted(codebook, {"f": 60, "m": 40}, "sex")
    new = counted(codebook, {"A": 30, "B": 70, "C": 0, "D": 0}, "area")
    logged = [(1, table), *((2, each) for each in everybody)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("taciturn.release_log.checking._MOST_CELLS", 4)
        patch.setattr("taciturn.release_log.checking._MOST_OF_PART", 4)
        found = check_tables(new, logged, codebook, Limits(10, 2))
    assert (found.findings, found.complete) == ([], False)


def test_a_count_that_had_few_values_may_lose_more_of_them() -> None:
    """A count of 0 to 3 has few values where five are asked for; to publish it as 1 is
    found all the same, and to publish 0 to 3 again is not.
    """
    codebook = Codebook.of({"a": ["x", "y"]}, None, None)
    axes = (Axis("a", "a", ("x", "y"), np.array([0, 1])),)
    between = PublishedTable(axes, {}, np.array([0, 40]), np.array([3, 40]))
    exact = PublishedTable(axes, {}, np.array([1, 40]), np.array([1, 40]))
    limits = Limits(10, 5)
    (found,) = check_tables([exact], [(1, between)], codebook, limits).findings
    assert (found.lower, found.upper, found.before) == (1, 1, (0, 3))
    assert check_tables([between], [(1, between)], codebook, limits).nothing
