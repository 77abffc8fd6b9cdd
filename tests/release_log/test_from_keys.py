"""What follows where answers with the same keys differ, against all tables of small
bases: with the same keys the same records have one answer.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import taciturn as tc
from release_log.bases import compatible, masks, with_one_answer
from release_log.test_checking import SHAPES, Base, found_out, taken
from release_log.test_likely import drawn
from taciturn.attack import (
    CellKeys,
    GeometricNoise,
    Mechanism,
    RandomRounding,
    SmallCellAdjustment,
)
from taciturn.attack.system import UNLIMITED
from taciturn.errors import TableError
from taciturn.perturbation import perturbation_table
from taciturn.release_log import from_keys
from taciturn.release_log.checking import _windows, check_tables, refuse_contradictions
from taciturn.release_log.findings import Checked
from taciturn.release_log.noise import NOT_RELEASED, Noise
from taciturn.release_log.published import PublishedTable
from taciturn.release_log.reading import _perturbed
from taciturn.release_log.totals import Totals
from taciturn.release_log.window import NEW, Source, told_of, window_of

WIDE, NARROW = CellKeys(perturbation_table(2, 1.0)), CellKeys(perturbation_table(1, 0.4))
ONE = [WIDE, RandomRounding(3), SmallCellAdjustment(3), GeometricNoise(epsilon=1.0)]
TWO = [WIDE, NARROW]


class Keyed(Base):
    """A base some of whose releases were perturbed by keys of the records, so that the
    same people have one answer.
    """

    def __init__(self, seed: int, mechanisms: list[Mechanism], known: str = "released") -> None:
        super().__init__(seed, known)
        self.generator = np.random.default_rng([seed, 1])
        self.answers: dict[Any, float] = {}
        self.earlier = [(r, self.answered(r, table, mechanisms)) for r, table in self.earlier]
        self.new = [self.answered(NEW, table, mechanisms) for table in self.new]

    def answered(
        self, release: int, table: PublishedTable, mechanisms: list[Mechanism]
    ) -> PublishedTable:
        if release == 99 or self.generator.random() < 0.3:
            return table
        mechanism = mechanisms[self.generator.integers(len(mechanisms))]
        keys = None if mechanisms == ONE and self.generator.random() < 0.2 else "K"
        released = np.full((1, *table.least.shape), NOT_RELEASED)
        for at, inside in masks(table, self.table).items():
            if table.informative[at]:
                people = (keys or release, (inside & (self.table.values.ravel() > 0)).tobytes())
                released[(0, *at)] = self.answer(mechanism, people, int(table.least[at]))
        return _perturbed(table, mechanism, Noise(mechanism, True, keys, released))

    def answer(self, mechanism: Mechanism, people: tuple[Any, bytes], true: int) -> int:
        if not isinstance(mechanism, CellKeys):
            value = drawn(mechanism, true, self.generator)
            return int(self.answers.setdefault((repr(mechanism), people), value))
        key = self.answers.setdefault(people, self.generator.random())
        for value in range(max(0, true - 3), true + 4):
            low, high = mechanism.keys_of(value, np.array([true]))
            if low[0] <= key < high[0]:
                return value
        raise AssertionError(key)

    def held(self, released: list[Source]) -> np.ndarray:
        """The tables that have all that is released, by the rule of the keys, too."""
        every = self.every[compatible(self.every, [t for _, t in released], self.table)]
        return with_one_answer(every, released, self.table)

    def ends(self, totals: Totals, total: int, releases: Sequence[int]) -> tuple[int, int]:
        """The least and the most of a total by some releases and the new one."""
        some = [source for source in self.earlier if source[0] in releases]
        found = self.sums([*some, *((NEW, table) for table in self.new)])[1][:, total]
        return int(found.min()), int(found.max())

    def sums(self, released: list[Source]) -> tuple[Totals, np.ndarray]:
        """All totals of all these tables."""
        classes = _windows(self.new, self.earlier, self.codebook)[0][0]
        both = [*self.earlier, *((NEW, table) for table in self.new)]
        window = window_of(classes, told_of(classes, both), self.codebook)
        window = from_keys.told_apart(window, [x for x in both if x[1].noise is not None])
        return self.of_window(window, self.held(released))


def check_against_all_tables(seed: int, mechanisms: list[Mechanism], known: str) -> Checked | None:
    """What is found; None where there is no new table."""
    base = Keyed(seed, mechanisms, known)
    if not base.new:
        return None
    new = [(NEW, table) for table in base.new]
    _, open_ = base.sums(base.earlier)
    totals, left = base.sums([*base.earlier, *new])
    hit = found_out(base, totals, open_, left)
    found = check_tables(base.new, base.earlier, base.codebook, base.limits)
    assert not (hit.any() and found.nothing and found.complete)
    if mechanisms == TWO and not found.complete:
        return found
    assert found.complete
    assert len(found.findings) + found.further >= hit.sum()
    described = {
        tuple(sorted(taken(totals, int(total), base.codebook).items())): int(total)
        for total in np.flatnonzero(hit)
    }
    for finding in found.findings:
        place = tuple(sorted(finding.taken.items()))
        if place not in described and mechanisms == TWO:
            continue  # known before, as what was said then was not complete
        total = described[place]
        ends = finding.lower, finding.upper
        assert ends == (left[:, total].min(), left[:, total].max())
        if known != "no" and mechanisms == ONE:
            assert finding.before == (open_[:, total].min(), open_[:, total].max())
        assert base.ends(totals, total, finding.releases) == ends
    return found


def test_findings_are_those_of_all_tables_where_the_same_records_have_one_answer() -> None:
    found = [check_against_all_tables(seed, ONE, "released") for seed in range(100)]
    assert sum(len(each.findings) for each in found if each) > 50


@pytest.mark.parametrize("known", ["public", "no"])
def test_that_does_not_need_a_release_of_how_many_there_are(known: str) -> None:
    seeds = [seed for seed in range(90) if np.prod(SHAPES[seed % len(SHAPES)]) <= 8]
    found = [check_against_all_tables(seed, ONE, known) for seed in seeds]
    assert sum(len(each.findings) for each in found if each) > 10


def test_by_two_perturbation_tables_nothing_is_passed_over() -> None:
    """Where it depends on counts whether one key gives both answers, that is said."""
    found = [check_against_all_tables(seed, TWO, "released") for seed in range(100)]
    assert 5 < sum(not each.complete for each in found if each) < 50


@pytest.mark.slow
@pytest.mark.parametrize("known", ["released", "public", "no"])
def test_findings_are_those_of_all_tables_of_many_bases(known: str) -> None:
    for seed in range(100, 700):
        check_against_all_tables(seed, ONE, known)
        check_against_all_tables(seed, TWO, known)


def test_what_no_table_has_is_not_added() -> None:
    """One answer is changed: it is refused where it contradicts all tables."""
    refused = 0
    for seed in range(150):
        base = Keyed(seed, ONE)
        tables = [i for i, table in enumerate(base.new) if table.noise is not None]
        if not tables:
            continue
        table = base.new[tables[0]]
        released = table.noise.released.copy()
        selected = [own.any() for own in masks(table, base.table).values()]
        seen = np.flatnonzero((released.ravel() >= 0) & selected)
        if not len(seen):
            continue
        place = base.generator.choice(seen)
        steps = isinstance(table.noise.mechanism, RandomRounding | SmallCellAdjustment)
        released.flat[place] += 3 if steps else 1
        base.new[tables[0]] = _perturbed(
            replace(table, least=table.least * 0, most=table.most * 0 + UNLIMITED, noise=None),
            table.noise.mechanism,
            replace(table.noise, released=released),
        )
        if len(base.held([*base.earlier, *((NEW, each) for each in base.new)])):
            refuse_contradictions(base.new, base.earlier, base.codebook)
            continue
        refused += 1
        with pytest.raises(TableError):
            refuse_contradictions(base.new, base.earlier, base.codebook)
    assert refused > 20


@pytest.mark.parametrize("cells", [2, 4, 6])
def test_in_parts_nothing_is_claimed_that_does_not_follow(
    cells: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("taciturn.release_log.checking._MOST_CELLS", cells)
    monkeypatch.setattr("taciturn.release_log.checking._MOST_OF_PART", cells)
    findings = 0
    for seed in range(60):
        base = Keyed(seed, ONE)
        found = check_tables(base.new, base.earlier, base.codebook, base.limits)
        for finding in found.findings:
            inside = np.ones(base.table.shape, dtype=bool)
            for axis, dim in enumerate(base.table.dims):
                mask = np.isin(base.table[dim].values, finding.taken.get(dim, base.table[dim]))
                inside &= mask.reshape([-1 if i == axis else 1 for i in range(inside.ndim)])
            some = [source for source in base.earlier if source[0] in finding.releases]
            held = base.held([*some, *((NEW, table) for table in base.new)])
            values = held[:, inside.ravel()].sum(axis=1)
            assert finding.lower <= values.min() <= values.max() <= finding.upper
            findings += 1
    assert findings > 5


VARIABLES = {"age": ["16-64", "65"], "sex": ["f", "m"]}
OF_65 = {"age": "65", "sex": "f"}


def women(count: int) -> pd.Series:
    return pd.Series({"f": count}).rename_axis("sex")


def check(log: tc.ReleaseLog, table: Any, **given: Any) -> tc.release_log.Verdict:
    return log.check(table, **{"progressbar": False, "advise": False, **given})


@pytest.fixture
def rounded(tmp_path: Path) -> tuple[tc.ReleaseLog, tuple[Any, dict[str, Any]]]:
    """A log, and a table by which the women of 65 are 0 or 1, with its filter."""
    log = tc.ReleaseLog(tmp_path / "keys.duckdb", variables=VARIABLES)
    counts = xr.DataArray([[0, 9]], coords={"age": ["65"], "sex": ["f", "m"]})
    return log, (tc.Rounding(counts, 3), {"where": {"age": "65"}})


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 2, 0), (2, 0, 1)])
@pytest.mark.parametrize(
    ("mechanism", "answers"),
    [(WIDE, (7, 6)), (RandomRounding(3), (87, 90))],
    ids=["keys", "rounded"],
)
def test_two_answers_say_that_somebody_makes_the_difference(
    rounded: Any, mechanism: Mechanism, answers: tuple[int, int], order: tuple[int, ...]
) -> None:
    """Those of 16 to 64, and of all ages, who then are not the same."""
    log, first = rounded
    given = {"mechanism": mechanism, "keys": "2026"}
    tables = [
        first,
        (women(answers[0]), {**given, "where": {"age": "16-64", "sex": "f"}}),
        (women(answers[1]), {**given, "where": {"sex": "f"}}),
    ]
    *logged, last = [tables[place] for place in order]
    for name, (table, which) in zip("ab", logged, strict=True):
        assert check(log, table, **which).passed
        log.add(table, name=name, **which)
    verdict = check(log, last[0], **last[1])
    (found,) = verdict.findings
    assert (found.who, found.lower, found.upper) == ("age=65, sex=f", 1, 1)
    assert found.before != (1, 1)
    assert (found.releases, found.smallest) == ((1, 2), True)
    log.add(last[0], **last[1])
    assert check(log, women(1), where=OF_65).passed  # as is known
    for ask in (log.add, log.check):
        with pytest.raises(TableError, match="the same records have one answer"):
            ask(women(0), where=OF_65)


def test_sets_that_overlap_are_not_the_same_either(tmp_path: Path) -> None:
    """The women, and those of 65: men of these and other women are 0 or 1 together."""
    log = tc.ReleaseLog(tmp_path / "overlap.duckdb", variables=VARIABLES)
    given = {"mechanism": WIDE, "keys": "2026"}
    log.add(women(7), where={"sex": "f"}, **given)
    least_and_most = {"lower": 0, "upper": [1, np.nan, np.nan, 0], "count": np.nan}
    both = {"sex": ["f", "f", "m", "m"], "age": ["16-64", "65"] * 2}
    log.add(pd.DataFrame({**both, **least_and_most}))
    old = pd.Series({"65": 6}).rename_axis("age")
    (found,) = check(log, old, where={"age": "65"}, **given).findings
    assert (found.who, found.lower, found.upper, found.before) == ("age=16-64, sex=f", 1, 1, (0, 1))
    assert check(log, old, where={"age": "65"}, **(given | {"keys": "2027"})).passed


@pytest.mark.parametrize(
    ("old", "new"), [((RandomRounding(3), 9), (RandomRounding(3), 6)), ((WIDE, 102), (NARROW, 100))]
)
def test_two_answers_about_the_same_records_are_not_added(
    tmp_path: Path, old: tuple[Mechanism, int], new: tuple[Mechanism, int]
) -> None:
    """Also where the count is large: no key adds two and takes one away."""
    log = tc.ReleaseLog(tmp_path / "same.duckdb", variables=VARIABLES)
    (mechanism, answer), (other, second) = old, new
    log.add(women(answer), where={"sex": "f"}, mechanism=mechanism, keys="K")
    for ask in (log.add, log.check):
        with pytest.raises(TableError, match=r"sex=f of release 1.*sex=f of this table"):
            ask(women(second), where={"sex": "f"}, mechanism=other, keys="K")
    assert len(log.releases) == 1
    log.add(women(second), where={"sex": "f"}, mechanism=other, keys="L")


def test_a_contradiction_names_the_answers(tmp_path: Path) -> None:
    """Of one person who makes two differences."""
    log = tc.ReleaseLog(tmp_path / "ages.duckdb", variables={"age": list("abc")})
    for count, ages in ((7, "a"), (6, "ab"), (8, "ac")):
        log.add(xr.DataArray(count), where={"age": list(ages)}, mechanism=WIDE, keys="K")
    said = (
        r"only one of total of release 2 as 6 and total of release 1 as 7, by the same keys, of 1"
    )
    for ask in (log.add, log.check):
        with pytest.raises(TableError, match=said):
            ask(xr.DataArray(1), where={"age": ["b", "c"]})


@pytest.mark.parametrize("limit", ["_MOST_PAIRS", "_MOST_TOTALS"])
def test_what_there_is_no_room_for_is_said(
    rounded: Any, limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, (table, which) = rounded
    log.add(table, **which)
    given = {"mechanism": WIDE, "keys": "2026"}
    log.add(women(7), where={"age": "16-64", "sex": "f"}, **given)
    monkeypatch.setattr(from_keys, limit, 0)
    verdict = check(log, women(6), where={"sex": "f"}, **given)
    assert (verdict.found, verdict.complete, verdict.passed) == (0, False, False)
    assert "answers with the same keys" in repr(verdict)


def test_of_answers_in_several_releases_no_smallest_set_is_claimed(rounded: Any) -> None:
    log, (table, which) = rounded
    log.add(table, **which)
    given = {"mechanism": WIDE, "keys": "2026"}
    for _ in range(2):
        log.add(women(7), where={"age": "16-64", "sex": "f"}, **given)
    (found,) = check(log, women(6), where={"sex": "f"}, **given).findings
    assert (found.releases, found.smallest) == ((1, 2), False)
