"""Slow, obvious twins of what the package computes fast: dense, exact in fractions,
straight from the papers.

Tables are sequences of counts, one per cell; logarithms are natural.
"""

from collections.abc import Sequence
from fractions import Fraction
from itertools import permutations
from math import log, sqrt

Joint = list[list[Fraction]]


def shares(counts: Sequence[int]) -> list[Fraction]:
    total = sum(int(count) for count in counts)
    return [Fraction(int(count), total) for count in counts]


def entropy(probabilities: Sequence[Fraction]) -> float:
    """H(X), ASE14 eq. (3.1)."""
    return -sum(float(p) * _log(p) for p in probabilities if p > 0)


def joint_of(F: Sequence[int], G: Sequence[int]) -> Joint:
    """P(X = i, Y = j) of ASE14 Theorems 2 and 4, which divide it by P(X = i); F itself
    when G is proportional to it."""
    p, q = shares(F), shares(G)
    stay = [min(a, b) for a, b in zip(p, q, strict=True)]
    moved = 1 - sum(stay)
    cells = range(len(p))
    return [
        [
            (
                stay[i]
                if i == j
                else (p[i] - stay[i]) * (q[j] - stay[j]) / moved
                if moved
                else Fraction(0)
            )
            for j in cells
        ]
        for i in cells
    ]


def joint_by_enumeration(F: Sequence[int], G: Sequence[int]) -> Joint:
    """Average over all ways to give N individuals their cells after, among those that
    move as few as possible."""
    before = [cell for cell, count in enumerate(F) for _ in range(count)]
    after = [cell for cell, count in enumerate(G) for _ in range(count)]
    assert len(before) == len(after)
    most = sum(min(a, b) for a, b in zip(F, G, strict=True))
    joint = [[Fraction(0) for _ in G] for _ in F]
    ways = 0
    for assignment in permutations(after):  # each assignment of cells comes up equally often
        if sum(x == y for x, y in zip(before, assignment, strict=True)) == most:
            ways += 1
            for x, y in zip(before, assignment, strict=True):
                joint[x][y] += Fraction(1, len(before))
    return [[mass / ways for mass in row] for row in joint]


def mean_joint(joints: Sequence[Joint]) -> Joint:
    """ASE14 Theorem 6."""
    cells = range(len(joints[0]))
    return [[sum(joint[i][j] for joint in joints) / len(joints) for j in cells] for i in cells]


def conditional_entropy_of(joint: Joint) -> float:
    """H(X|Y) = -sum P(x, y) log P(x | y)."""
    after = [sum(column) for column in zip(*joint, strict=True)]
    return -sum(float(m) * _log(m / after[j]) for row in joint for j, m in enumerate(row) if m > 0)


def conditional_entropy(F: Sequence[int], G: Sequence[int]) -> float:
    return conditional_entropy_of(joint_of(F, G))


def terms_before(F: Sequence[int]) -> tuple[float, float, float]:
    """The three terms of R1, ASE14 Section 3.2; nothing is at risk where nobody is."""
    if not any(F):
        return 0.0, 0.0, 0.0
    K, N = len(F), sum(int(count) for count in F)
    D = sum(count == 0 for count in F)
    return D / K, 1 - entropy(shares(F)) / log(K), -1 / sqrt(N) * (-1 - log(sqrt(N)))


def terms_after(F: Sequence[int], G: Sequence[int], variant: str) -> tuple[float, float, float]:
    """The three terms of R2, ASE14 Section 3.3 and ASE15 eq. (4), with the edge cases
    of the methods page."""
    if not any(F):
        return 0.0, 0.0, 0.0
    zero_term, entropy_term, size_term = terms_before(F)
    D = {i for i, count in enumerate(F) if count == 0}
    E = {i for i, count in enumerate(G) if count == 0}
    zero_term = zero_term ** (len(D | E) / len(D & E)) if D & E else 0.0
    before = entropy(shares(F))
    if sum(G) == 0:
        factor = 0.0
    else:
        left = conditional_entropy(F, G) / before if before > 0 else 0.0
        factor = {"2015": 1 - left, "2014": left}[variant]
    return zero_term, entropy_term * factor, size_term


def weighted(terms: Sequence[float], weights: Sequence[float]) -> float:
    return sum(w * term for w, term in zip(weights, terms, strict=True))


def _log(x: Fraction) -> float:
    return log(x.numerator) - log(x.denominator)
