"""What perturbed counts make nearly certain, against all tables of small bases."""

from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np
import pytest

from release_log.bases import all_tables, compatible, random_base, random_release
from release_log.test_checking import SHAPES
from taciturn.attack import (
    CellKeys,
    ConventionalRounding,
    GeometricNoise,
    Mechanism,
    RandomRounding,
    SmallCellAdjustment,
)
from taciturn.perturbation import perturbation_table
from taciturn.release_log.checking import check_tables
from taciturn.release_log.codebook import Codebook
from taciturn.release_log.noise import NOT_RELEASED, Noise
from taciturn.release_log.published import PublishedTable
from taciturn.release_log.reading import _perturbed
from taciturn.release_log.search import Limits

MECHANISMS = [
    RandomRounding(3),
    ConventionalRounding(3),
    SmallCellAdjustment(3),
    GeometricNoise(epsilon=1.5),
    GeometricNoise(epsilon=0.4),
    CellKeys(perturbation_table(2, 1)),
]


def drawn(mechanism: Mechanism, true: int, generator: np.random.Generator) -> int:
    """What the mechanism makes of a count."""
    results = np.arange(200)
    log_p = [mechanism.log_probability(int(y), np.array([true]))[0] for y in results]
    return int(generator.choice(results, p=np.exp(log_p) / np.exp(log_p).sum()))


def perturbed(table: PublishedTable, generator: np.random.Generator, keys: str | None = None):
    """The same table, by a mechanism."""
    mechanism = MECHANISMS[generator.integers(len(MECHANISMS))]
    keyed = keys is not None or mechanism.keyed
    repetitions = 1 if keyed else int(generator.integers(1, 3))
    released = np.full((repetitions, *table.least.shape), NOT_RELEASED)
    for at in np.argwhere(table.informative).tolist():
        for time in range(repetitions):
            released[(time, *at)] = drawn(mechanism, int(table.least[tuple(at)]), generator)
    found = replace(table, noise=None)
    for time in range(repetitions):
        noise = Noise(mechanism, keyed, keys, released[time : time + 1])
        again = _perturbed(table, mechanism, noise)
        both = np.maximum(found.least, again.least), np.minimum(found.most, again.most)
        least, most = both if found.noise is not None else (again.least, again.most)
        found = replace(again, least=least, most=most)
    return replace(found, noise=Noise(mechanism, keyed, keys, released))


def masks(table: PublishedTable, base) -> dict[tuple[int, ...], np.ndarray]:
    """The cells of the base that each cell of a table counts."""
    dims = list(map(str, base.dims))
    classes = {dim: table.classes(dim, base.sizes[dim]) for dim in dims}
    found = {}
    for at in product(*(range(len(axis.labels)) for axis in table.axes)):
        place = {axis.variable: i for axis, i in zip(table.axes, at, strict=True)}
        inside = np.ones(base.shape, dtype=bool)
        for i, dim in enumerate(dims):
            own = classes[dim] == place.get(dim, 0)
            inside &= own.reshape([-1 if j == i else 1 for j in range(base.ndim)])
        found[at] = inside.ravel()
    return found


def key_of(release: int, table: PublishedTable, at: tuple[int, ...]):
    """What the noise of a cell follows from: no answer may be used twice."""
    return release if table.noise.keyed else (release, id(table), at)


def ways_of(total: np.ndarray, released, base, keys: set) -> list:
    """The ways in which a total is a sum of perturbed counts: a mechanism and a value
    for each answer about each part.
    """
    found: dict = {}
    for release, table in released:
        if table.noise is None:
            continue
        parts = {at: own for at, own in masks(table, base).items() if (own & total).any()}
        if len(parts) < 2 or not (sum(map(np.int64, parts.values())) == total).all():
            continue
        if any(table.noise.released[(0, *at)] < 0 for at in parts):
            continue
        split = {
            axis.variable for i, axis in enumerate(table.axes) if len({at[i] for at in parts}) > 1
        }
        order = sorted(parts, key=lambda at: parts[at].tobytes())
        _, answers, used = found.setdefault(
            tuple(parts[at].tobytes() for at in order), (split, [[] for _ in order], set())
        )
        used |= {key_of(release, table, at) for at in parts}
        for own, at in zip(answers, order, strict=True):
            for value in table.noise.released[(slice(None), *at)]:
                own.append((table.noise.mechanism, int(value)))
    kept, done, keys = [], set(), set(keys)
    for split, answers, used in sorted(found.values(), key=lambda way: len(way[1])):
        if not split & done and not used & keys:
            kept.append(answers)
            done |= split
            keys |= used
    return kept


def sum_of(answers: list, t: int) -> float:
    """How likely the answers are if all whole numbers that add up to the total are."""
    every = all_tables(len(answers), t)
    p = np.ones(len(every))
    for own, counts in zip(answers, every.T, strict=True):
        for mechanism, value in own:
            p *= np.exp(mechanism.log_probability(value, counts))
    return float(p.mean())


def most_probable(values, p, limits: Limits) -> tuple[bool, np.ndarray, float]:
    """Whether the values that are the most probable are small and nearly certain, which
    these are, and their probability.
    """
    order = np.argsort(-p.round(10), kind="stable")[: limits.values - 1]
    order = order[p[order] > 0]
    best, mass = np.sort(values[order]), p[order].sum()
    small = 0 < best.max() < limits.threshold
    return small and mass >= limits.certainty - 1e-9, best, mass


@dataclass
class Noisy:
    """A random base with exact and perturbed releases, and a new one."""

    seed: int
    earlier: list = field(default_factory=list)

    def __post_init__(self) -> None:
        generator = np.random.default_rng(self.seed)
        people = int(generator.integers(2, 6))
        self.base = random_base(generator, SHAPES[self.seed % len(SHAPES)], people)
        labels = {str(dim): self.base[dim].values.tolist() for dim in self.base.dims}
        self.codebook = Codebook.of(labels)
        self.earlier = [(99, PublishedTable((), {}, np.array(people), np.array(people)))]
        for number in range(1, int(generator.integers(2, 7))):
            for table in random_release(generator, self.base, self.codebook):
                noisy = generator.random() < 0.6
                self.earlier.append((number, perturbed(table, generator) if noisy else table))
        new = random_release(generator, self.base, self.codebook)
        noisy = generator.random() < 0.7
        self.new = [perturbed(table, generator) if noisy else table for table in new]
        self.limits = Limits(
            int(generator.choice([2, 3, 10])),
            int(generator.choice([2, 3])),
            float(generator.choice([0.51, 0.7, 0.9])),
        )
        self.every = all_tables(self.base.size, people)

    def posterior(self, released, total: np.ndarray):
        """Bounds and probabilities of the values of a total by listing all tables;
        None for what is tied to it only in these few tables.
        """
        left = self.every[compatible(self.every, [table for _, table in released], self.base)]
        own = left @ total
        low, high = int(own.min()), int(own.max())
        values = np.arange(low, high + 1)
        weights = np.ones(len(values))
        exact, nobody = [], np.zeros(self.base.size, dtype=bool)
        for _, table in released:
            for at, inside in masks(table, self.base).items():
                if table.least[at] == table.most[at]:
                    exact.append(inside.astype(float))
                    nobody |= inside & (table.most[at] == 0)
        rows = np.array(exact)[:, ~nobody] if exact else np.zeros((0, int((~nobody).sum())))
        rank = np.linalg.matrix_rank(rows) if rows.size else 0
        any_evidence = False
        keys = set()
        for release, table in released:
            if table.noise is None:
                continue
            for at, inside in masks(table, self.base).items():
                if table.noise.released[(0, *at)] < 0 or low == high:
                    continue
                seen = left @ inside
                for sign in (1, -1):
                    difference = (inside * 1.0 - sign * total)[~nobody]
                    tied = np.linalg.matrix_rank(np.vstack([rows, difference])) == rank
                    if not tied and np.ptp(seen - sign * own) == 0 and np.ptp(seen) > 0:
                        return None
                    if tied and np.ptp(seen) > 0:
                        any_evidence = True
                        keys.add(key_of(release, table, at))
                        true = seen[0] + sign * (values - own[0])
                        for value in table.noise.released[(slice(None), *at)]:
                            log_p = table.noise.mechanism.log_probability(
                                int(value), np.maximum(true, 0)
                            )
                            weights = weights * np.where(true >= 0, np.exp(log_p), 0)
        ways = ways_of(total.astype(bool), released, self.base, keys)
        for way in ways:
            weights = weights * [sum_of(way, int(t)) for t in values]
        return low, high, values, weights / weights.sum(), (any_evidence, bool(ways))

    def nearly_known(self, found) -> tuple[bool, np.ndarray, float]:
        _, _, values, p, _ = found
        return most_probable(values, p, self.limits)

    def totals(self):
        """What is looked at, by the categories it takes, and whether that is so without
        an answer about it or what is tied to it: totals of categories, the cells of
        perturbed tables, and their margins.
        """
        from taciturn.release_log.checking import _windows
        from taciturn.release_log.totals import Totals
        from taciturn.release_log.window import NEW, told_of, window_of

        both = [*self.earlier, *((NEW, table) for table in self.new)]
        classes = _windows(self.new, self.earlier, self.codebook)[0][0]
        window = window_of(classes, told_of(classes, both), self.codebook)
        noisy = [source for source in both if source[1].noise is not None]
        window = replace(window, classes=classes, told=[*window.told, *noisy])
        totals = Totals(window)
        found = {}
        dims = list(map(str, self.base.dims))

        def put(sets, *, margin: bool = False) -> None:
            inside = np.ones(self.base.shape, dtype=bool)
            taken = []
            for i, dim in enumerate(dims):
                if dim in sets and not sets[dim].all():
                    inside &= sets[dim].reshape([-1 if j == i else 1 for j in range(len(dims))])
                    labels = np.array(self.codebook.variables[dim])[sets[dim]]
                    taken.append((dim, tuple(labels.tolist())))
            own = found.get(frozenset(taken), (None, False))[1]
            found[frozenset(taken)] = inside.ravel().astype(int), margin or own

        for number in range(len(totals.of(np.zeros(int(np.prod(window.shape)), dtype=int)))):
            put({k: own[window.classes[k]] for k, own in totals.sets(number).items()})
        for _, table in noisy:
            for at in np.ndindex(table.least.shape):
                sets = dict(table.where)
                for axis, place in zip(table.axes, at, strict=True):
                    own = axis.classes == place
                    sets[axis.variable] = own & sets.get(axis.variable, own)
                if table.noise.released[(0, *at)] >= 0 and all(x.any() for x in sets.values()):
                    put(sets)
            for kept in product((False, True), repeat=len(table.axes)):
                for at in np.ndindex(table.least.shape):
                    sets = dict(table.where)
                    for axis, place, k in zip(table.axes, at, kept, strict=True):
                        own = axis.classes == place if k else axis.classes >= 0
                        sets[axis.variable] = own & sets.get(axis.variable, own)
                    if all(x.any() for x in sets.values()):
                        put(sets, margin=not all(kept))
        return found


def check_against_all_tables(seed: int) -> int:
    """How many were found; -1 where two totals are tied by chance only."""
    base = Noisy(seed)
    if not base.new or all(t.noise is None for t in [*base.new, *(t for _, t in base.earlier)]):
        return 0
    both = [*base.earlier, *((0, table) for table in base.new)]
    expected, certain = {}, 0
    for taken, (total, margin) in base.totals().items():
        after = base.posterior(both, total)
        if after is None:
            return -1
        before = base.posterior(base.earlier, total)
        if before is None:
            return -1
        ends = np.array([after[0]]), np.array([after[1]])
        if base.limits.hit(*ends)[0]:
            was = base.limits.hit(np.array([before[0]]), np.array([before[1]]))[0]
            certain += not was
            continue
        near, best, mass = base.nearly_known(after)
        direct, split = after[4]
        if (direct or (margin and split)) and near and not base.nearly_known(before)[0]:
            old = before[3][np.isin(before[2], best)].sum()
            expected[taken] = (tuple(best.tolist()), mass, old, after[:2])
    found = check_tables(base.new, base.earlier, base.codebook, base.limits)
    assert found.complete
    for each in found.likely:
        best, mass, old, ends = expected[frozenset(each.taken.items())]
        assert each.likely == best
        assert each.probability == pytest.approx(mass, abs=1e-9)
        assert each.before == pytest.approx(old, abs=1e-9)
        assert (each.lower, each.upper) == ends
    assert bool(found.likely) == bool(expected)
    return len(expected)


def test_likely_totals_are_those_of_all_tables() -> None:
    found = [check_against_all_tables(seed) for seed in range(120)]
    assert sum(each > 0 for each in found) > 10
    assert sum(each >= 0 for each in found) > 90


@pytest.mark.slow
def test_likely_totals_are_those_of_all_tables_of_many_bases() -> None:
    found = [check_against_all_tables(seed) for seed in range(120, 900)]
    assert sum(each > 0 for each in found) > 70
