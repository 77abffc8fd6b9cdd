"""Oracles for protection methods: exact distributions by enumeration, and one exact
test against them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import product
from math import prod

import numpy as np
import xarray as xr
from scipy.stats import binomtest

TINY_ALPHA = 1e-6

Outcome = tuple[int, ...]


def assert_follows(releases: xr.DataArray, pmf: Mapping[Outcome, Fraction | float]) -> None:
    """Hold the replicates of a small table to their exact distribution, an exact
    binomial test for each outcome."""
    assert float(sum(pmf.values())) == 1 or abs(float(sum(pmf.values())) - 1) < 1e-9
    rows = releases.values.reshape(releases.sizes["replicate"], -1).tolist()
    seen = Counter(map(tuple, rows))
    assert set(seen) <= {outcome for outcome, p in pmf.items() if p > 0}
    for outcome, p in pmf.items():
        assert binomtest(seen[outcome], len(rows), float(p)).pvalue > TINY_ALPHA / len(pmf), outcome


def assert_unbiased(pmf: Mapping[Outcome, Fraction], counts: Sequence[int]) -> None:
    """The expected value of each cell is its count, exactly."""
    means = [sum(p * outcome[cell] for outcome, p in pmf.items()) for cell in range(len(counts))]
    assert means == list(counts)


def product_pmf(cells: Sequence[Mapping[int, Fraction]]) -> dict[Outcome, Fraction]:
    """Distribution of cells that are independent of each other."""
    outcomes = product(*(cell.items() for cell in cells))
    return {
        tuple(value for value, _ in o): prod((p for _, p in o), start=Fraction(1)) for o in outcomes
    }


def controlled_pmf(counts: Sequence[Sequence[int]], base: int) -> dict[Outcome, Fraction]:
    """Both ways of every alternating cycle of Cox's procedure, in the order in which
    the package takes them."""
    inner = [[int(count) % base for count in row] for row in counts]
    extended = [[*row, -sum(row) % base] for row in inner]
    extended.append(
        [-sum(column) % base for column in zip(*inner, strict=True)] + [sum(map(sum, inner)) % base]
    )
    pmf: dict[Outcome, Fraction] = {}

    def follow(rest: list[list[int]], walk: list[tuple[str, int]], p: Fraction) -> None:
        side, here = walk[-1]
        if side == "row":
            steps = [("column", j) for j, value in enumerate(rest[here]) if 0 < value < base]
        else:
            steps = [("row", i) for i, row in enumerate(rest) if 0 < row[here] < base]
        steps = [step for step in steps if step not in walk[-2:-1]]
        if not steps:
            assert len(walk) == 1
            if here + 1 < len(rest):
                follow(rest, [("row", here + 1)], p)
                return
            outcome = tuple(
                int(count) - int(count) % base + moved
                for row, moves in zip(counts, rest, strict=False)
                for count, moved in zip(row, moves, strict=False)
            )
            pmf[outcome] = pmf.get(outcome, Fraction(0)) + p
            return
        if steps[0] not in walk:
            follow(rest, [*walk, steps[0]], p)
            return
        begin = walk.index(steps[0])
        cycle = walk[begin:]
        edges = [dict([a, b]) for a, b in zip(cycle, [*cycle[1:], cycle[0]], strict=True)]
        even, odd = edges[::2], edges[1::2]

        def room(edges: list[dict[str, int]], *, upwards: bool) -> int:
            values = [rest[e["row"]][e["column"]] for e in edges]
            return min(base - v if upwards else v for v in values)

        up = min(room(even, upwards=True), room(odd, upwards=False))
        down = min(room(even, upwards=False), room(odd, upwards=True))
        for step, chance in ((up, Fraction(down, up + down)), (-down, Fraction(up, up + down))):
            moved = [list(row) for row in rest]
            for sign, some in ((1, even), (-1, odd)):
                for e in some:
                    moved[e["row"]][e["column"]] += sign * step
            follow(moved, walk[: begin + 1], p * chance)

    follow(extended, [("row", 0)], Fraction(1))
    return pmf


def is_adjacent(total: int, rounded: int, base: int) -> bool:
    """Whether a rounded total is one of the two multiples around it, or the total
    itself if it is one."""
    return rounded in {total // base * base, -(-total // base) * base}


def controlled_roundings(
    table: xr.DataArray, base: int, margins: Sequence[Sequence[str]]
) -> list[np.ndarray]:
    """All controlled roundings of a table with few cells to round."""
    choices = [
        sorted({c // base * base, -(-c // base) * base}) for c in table.values.ravel().tolist()
    ]
    axes = [tuple(i for i, dim in enumerate(table.dims) if dim not in names) for names in margins]
    found = []
    for values in product(*choices):
        rounded = np.reshape(values, table.shape)
        totals = [(table.values.sum(a), rounded.sum(a)) for a in axes]
        if all(
            is_adjacent(int(t), int(r), base)
            for ts, rs in totals
            for t, r in zip(np.ravel(ts), np.ravel(rs), strict=True)
        ):
            found.append(rounded)
    return found
