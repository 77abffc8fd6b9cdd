"""What perturbed counts make nearly certain, against all tables of small bases."""

from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np
import pytest

from release_log.bases import all_tables, masks, random_base, random_release
from release_log.test_checking import SHAPES
from release_log.weighing import TiedByChanceError, Weighing
from taciturn.attack import (
    CellKeys,
    ConventionalRounding,
    GeometricNoise,
    Mechanism,
    RandomRounding,
    SmallCellAdjustment,
)
from taciturn.perturbation import perturbation_table
from taciturn.release_log.checking import _windows, check_tables
from taciturn.release_log.codebook import Codebook
from taciturn.release_log.noise import NOT_RELEASED, Noise
from taciturn.release_log.published import PublishedTable
from taciturn.release_log.reading import _perturbed, published_tables
from taciturn.release_log.search import Limits
from taciturn.release_log.ties import Ties
from taciturn.release_log.totals import Totals
from taciturn.release_log.window import NEW, Window, told_of, window_of

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


def perturbed(
    table: PublishedTable, generator: np.random.Generator, mechanism: Mechanism | None = None
):
    """The same table, by a mechanism."""
    mechanism = mechanism or MECHANISMS[generator.integers(len(MECHANISMS))]
    keyed = mechanism.keyed
    repetitions = 1 if keyed else int(generator.integers(1, 3))
    released = np.full((repetitions, *table.least.shape), NOT_RELEASED)
    for at in np.argwhere(table.informative).tolist():
        for time in range(repetitions):
            released[(time, *at)] = drawn(mechanism, int(table.least[tuple(at)]), generator)
    found = replace(table, noise=None)
    for time in range(repetitions):
        noise = Noise(mechanism, keyed, None, released[time : time + 1])
        again = _perturbed(table, mechanism, noise)
        both = np.maximum(found.least, again.least), np.minimum(found.most, again.most)
        least, most = both if found.noise is not None else (again.least, again.most)
        found = replace(again, least=least, most=most)
    return replace(found, noise=Noise(mechanism, keyed, None, released))


def most_probable(values, p, limits: Limits) -> tuple[bool, np.ndarray, float]:
    """Whether the most probable values, one or more, are small and nearly certain, as
    few as are, and their probability.
    """
    for number in range(1, limits.values):
        order = np.argsort(-p.round(10), kind="stable")[:number]
        order = order[p[order] > 0]
        best, mass = np.sort(values[order]), p[order].sum()
        if 0 < best.max() < limits.threshold and mass >= limits.certainty - 1e-9:
            return True, best, mass
    return False, best, mass


def is_news(after: tuple[bool, np.ndarray, float], before: tuple[bool, np.ndarray, float]) -> bool:
    """Whether fewer values are nearly certain than before."""
    return after[0] and (not before[0] or len(after[1]) < len(before[1]))


@dataclass
class Noisy:
    """A random base with exact and perturbed releases, and a new one."""

    seed: int
    lines: bool = False  # with a perturbed table, and a perturbed margin of it
    earlier: list = field(default_factory=list)

    def __post_init__(self) -> None:
        generator = np.random.default_rng(self.seed)
        people = int(generator.integers(4, 8) if self.lines else generator.integers(2, 6))
        self.base = random_base(generator, SHAPES[self.seed % len(SHAPES)], people)
        labels = {str(dim): self.base[dim].values.tolist() for dim in self.base.dims}
        self.codebook = Codebook.of(labels)
        self.earlier = [(99, PublishedTable((), {}, np.array(people), np.array(people)))]
        if self.lines:
            self.earlier += self.cells_and_margin(generator)
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

    def cells_and_margin(self, generator: np.random.Generator) -> list:
        """A perturbed table, some cells of which may lack, and its sums over a variable
        that are perturbed, too, in another release, mostly by other keys.
        """
        table = self.base
        if table.ndim > 2:
            table = table.sum(str(generator.choice(table.dims)))
        over = str(generator.choice(table.dims))
        hidden = generator.random(table.shape) < generator.choice([0.0, 0.2])
        keyed = generator.random() < 0.4
        found = [
            perturbed(each, generator, mechanism=MECHANISMS[-1] if keyed else None)
            for counts in (table.astype(float).where(~hidden), table.sum(over))
            for each in published_tables(counts, self.codebook)
        ]
        if keyed and self.may_share_keys(found) and generator.random() < 0.7:
            found = [replace(each, noise=replace(each.noise, keys="common")) for each in found]
        return list(enumerate(found, start=50))

    def may_share_keys(self, tables: list) -> bool:
        """Whether the same people have the same answer."""
        answers: dict[bytes, set[int]] = {}
        for table in tables:
            for at, inside in masks(table, self.base).items():
                if (value := int(table.noise.released[(0, *at)])) >= 0:
                    people = inside & (self.base.values.ravel() > 0)
                    answers.setdefault(people.tobytes(), set()).add(value)
        return all(len(each) == 1 for each in answers.values())

    def posterior(self, released, total: np.ndarray):
        """Bounds and probabilities of the values of a total by listing all tables, and
        whether there are answers about it or what is tied to it, and sums.
        """
        weighing = Weighing(released, self.base, self.every)
        own = weighing.left @ total
        low, high = int(own.min()), int(own.max())
        values = np.arange(low, high + 1)
        if low == high:
            return low, high, values, np.ones(1), (False, False)
        weights, *kinds = weighing.likelihood(total.astype(bool), values)
        return low, high, values, weights / weights.sum(), kinds

    def window(self) -> tuple[Window, list]:
        """All that is released, and what of it is perturbed."""
        both = [*self.earlier, *((NEW, table) for table in self.new)]
        classes = _windows(self.new, self.earlier, self.codebook)[0][0]
        window = window_of(classes, told_of(classes, both), self.codebook)
        noisy = [source for source in both if source[1].noise is not None]
        return replace(window, classes=classes, told=[*window.told, *noisy]), noisy

    def nearly_known(self, found) -> tuple[bool, np.ndarray, float]:
        _, _, values, p, _ = found
        return most_probable(values, p, self.limits)

    def totals(self):
        """What is looked at, by the categories it takes, and whether that is so without
        an answer about it or what is tied to it: totals of categories, the cells of
        perturbed tables, and their margins, with cells of tables that lack some.
        """
        window, noisy = self.window()
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
                        put(sets, margin=not all(kept) or not table.noise.some.all())
        return found


def check_against_all_tables(seed: int, *, lines: bool = False) -> int:
    """How many were found; -1 where two totals are tied by chance only."""
    base = Noisy(seed, lines)
    if not base.new or all(t.noise is None for t in [*base.new, *(t for _, t in base.earlier)]):
        return 0
    both = [*base.earlier, *((0, table) for table in base.new)]
    expected, must = {}, False
    for taken, (total, margin) in base.totals().items():
        try:
            after, before = (base.posterior(each, total) for each in (both, base.earlier))
        except TiedByChanceError:
            return -1
        ends = np.array([after[0]]), np.array([after[1]])
        was = base.limits.hit(np.array([before[0]]), np.array([before[1]]))[0]
        # Bounds alone may have found it, if what is not perturbed tells it apart.
        fewer = not was or np.ptp(after[:2]) < np.ptp(before[:2])
        certain = base.limits.hit(*ends)[0] and fewer
        _, best, mass = known = base.nearly_known(after)
        direct, split = after[4]
        if (direct or (margin and split)) and is_news(known, base.nearly_known(before)):
            must |= not certain
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
    assert found.likely or not must
    assert not (expected and found.nothing)
    return len(expected)


def test_likely_totals_are_those_of_all_tables() -> None:
    found = [check_against_all_tables(seed) for seed in range(120)]
    assert sum(each > 0 for each in found) > 10
    assert sum(each >= 0 for each in found) > 90


def check_every_posterior(seed: int) -> int:
    """How many totals were compared that are sums or parts of them; -1 where two totals
    are tied by chance only.
    """
    base = Noisy(seed, lines=True)
    window, noisy = base.window()
    ties = Ties(window, noisy)
    weighing = Weighing(
        [*base.earlier, *((NEW, table) for table in base.new)], base.base, base.every
    )
    first = np.indices(base.base.shape).reshape(base.base.ndim, -1)
    names = [*base.base.dims]
    columns = np.ravel_multi_index(
        [window.classes[name][first[names.index(name)]] for name in window.classes], window.shape
    )
    compared = 0
    for total, _ in base.totals().values():
        own = weighing.left @ total
        if np.ptp(own) == 0:
            continue
        values = np.arange(own.min(), own.max() + 1)
        try:
            expected, _, sums = weighing.likelihood(total.astype(bool), values)
        except TiedByChanceError:
            return -1
        found = np.exp(ties.of(np.unique(columns[total > 0])).log_weights(values))
        np.testing.assert_allclose(found / found.sum(), expected / expected.sum(), atol=1e-11)
        compared += sums
    return compared


def test_weights_are_those_of_all_tables_with_perturbed_margins() -> None:
    compared = [check_every_posterior(seed) for seed in range(60)]
    assert sum(each >= 0 for each in compared) > 30
    assert sum(compared) > 300


def test_likely_totals_are_those_of_all_tables_with_perturbed_margins() -> None:
    found = [check_against_all_tables(seed, lines=True) for seed in range(80)]
    assert sum(each > 0 for each in found) > 3


@pytest.mark.slow
def test_likely_totals_are_those_of_all_tables_of_many_bases() -> None:
    found = [check_against_all_tables(seed) for seed in range(120, 900)]
    assert sum(each > 0 for each in found) > 70


@pytest.mark.slow
def test_likely_totals_are_those_of_all_tables_with_many_perturbed_margins() -> None:
    found = [check_against_all_tables(seed, lines=True) for seed in range(80, 400)]
    assert sum(each > 0 for each in found) > 20
    compared = [check_every_posterior(seed) for seed in range(60, 600)]
    assert sum(compared) > 2_000
