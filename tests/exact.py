"""Oracles: every table of a tiny case with its exact probability, and one exact test of
a sampler against them."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from math import exp, lgamma

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import chisquare, poisson

ALPHA = 1e-6
"""Level of each exact test; seeds are fixed, so a failure is a defect or a
one-in-a-million seed, once."""

Table = tuple[int, ...]


def tables(total: int, cells: int) -> list[Table]:
    """All tables of so many individuals in so many cells."""
    return [x for x in product(range(total + 1), repeat=cells) if sum(x) == total]


def dirichlet_multinomial_pmf(x: Table, weights: Iterable[float]) -> float:
    """n! Γ(A) / Γ(A + n) Π Γ(a + x) / (Γ(a) x!); a cell without weight holds nobody."""
    weights = tuple(weights)
    n, total = sum(x), sum(weights)
    if any(count and not weight for count, weight in zip(x, weights, strict=True)):
        return 0.0
    log = lgamma(n + 1) + lgamma(total) - lgamma(total + n)
    for count, weight in zip(x, weights, strict=True):
        log += lgamma(weight + count) - lgamma(weight) - lgamma(count + 1) if weight else 0.0
    return exp(log)


def urn_distribution(
    start: Table,
    empty: Iterable[bool],
    population_size: int,
    theta: float,
    discount: float = 0.0,
    base: Sequence[float] | None = None,
) -> dict[Table, float]:
    """Exact distribution of the urn's final table, ball by ball over everything that
    can be drawn.

    A seen cell is joined with weight F_i - σ, one of the empty cells opens with weight
    θ + kσ in all, which is gone once none is left; it is shared among the empty cells
    in proportion to `base`, equally without one."""
    empty = tuple(empty)
    base = base or [1.0] * len(start)
    states = {tuple(start): 1.0}
    for _ in range(population_size - sum(start)):
        following: dict[Table, float] = {}
        for state, chance in states.items():
            seen = [i for i, count in enumerate(state) if count]
            free = [i for i, count in enumerate(state) if not count and empty[i]]
            black = theta + len(seen) * discount if free else 0.0
            total = sum(state) - len(seen) * discount + black
            weights = {i: state[i] - discount for i in seen} | {
                i: black * base[i] / sum(base[j] for j in free) for i in free
            }
            for i, weight in weights.items():
                if weight:
                    after = (*state[:i], state[i] + 1, *state[i + 1 :])
                    following[after] = following.get(after, 0.0) + chance * weight / total
        states = following
    return states


def urn_from_nothing(
    cells: int, size: int, theta: float, discount: float = 0.0, base: Sequence[float] | None = None
) -> dict[Table, float]:
    """Exact distribution of a sample from the urn: the first individual's cell is drawn
    from the base."""
    base = base or [1.0] * cells
    total: dict[Table, float] = {}
    for first in range(cells):
        start = tuple(int(i == first) for i in range(cells))
        for state, chance in urn_distribution(
            start, [True] * cells, size, theta, discount, base
        ).items():
            total[state] = total.get(state, 0.0) + chance * base[first] / sum(base)
    return total


def assert_same_distribution(drawn: npt.NDArray[np.int64], expected: Mapping[Table, float]) -> None:
    """Pearson's test over all outcomes, with those expected fewer than 20 times pooled;
    none impossible may occur.

    Resolution: with 200,000 draws the standard error of a probability of 0.1 is 0.0007,
    so one that is off by 0.005 fails with near certainty."""
    assert sum(expected.values()) == pytest.approx(1, abs=1e-9)
    assert drawn.min() >= 0
    shape = tuple(drawn.max(axis=0) + 1)
    # One number for each table: sorting rows takes twenty times as long.
    codes, counts = np.unique(np.ravel_multi_index(tuple(drawn.T), shape), return_counts=True)
    keys = np.transpose(np.unravel_index(codes, shape))
    observed = {tuple(map(int, key)): int(count) for key, count in zip(keys, counts, strict=True)}
    assert not [key for key in observed if expected.get(key, 0.0) == 0.0], (
        "a table that cannot be drawn was"
    )
    common = [key for key, p in expected.items() if p * len(drawn) >= 20]
    f_exp = np.array([expected[key] * len(drawn) for key in common])
    f_obs = np.array([observed.get(key, 0) for key in common])
    rare_exp, rare_obs = max(len(drawn) - f_exp.sum(), 0.0), len(drawn) - f_obs.sum()
    assert poisson.sf(rare_obs - 1, rare_exp + 1e-6) > ALPHA
    assert poisson.cdf(rare_obs, rare_exp + 1e-6) > ALPHA
    if len(common) > 1:
        assert chisquare(f_obs, f_exp * f_obs.sum() / f_exp.sum()).pvalue > ALPHA
