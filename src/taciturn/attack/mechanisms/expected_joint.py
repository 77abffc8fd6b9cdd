"""The joint distribution of a person's cell before and after a mechanism that changes
each cell for itself, over everything that it may release.

Cells are independent, but every share of a release is divided by its total `M`, and
every move by `t`, the share of those who move. A Fourier transform over the release
picks out one `M`; for that, ``1 / t`` is an integral of ``exp(-u t)`` over `u`. At one
frequency and one `u` an expected value is a product of one factor for each cell, so
that all pairs of cells are an outer product. Cells that are alike are counted once.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.special import entr

from taciturn.attack.mechanisms.base import Floats, Integers
from taciturn.errors import ParameterError

__all__ = ["Alike", "ExpectedJoint", "expected_joint"]

Complexes = npt.NDArray[np.complex128]

_NEGLIGIBLE: Final = 1e-11  # probability of the totals, and part of the movers, left out
_STEP: Final = 0.4  # of log u: the error of 1 / t is below 1e-9 of it
_SMALLEST: Final = 3e-4  # u t, below which exp(-u t) is nearly a straight line
_LARGEST: Final = 1e11  # u t, for the largest t: what moves later is negligible
_NOT_ZERO: Final = 1e-100  # added to factors that are multiplied and divided by
_MOST_TOTALS: Final = 2**22
_MOST_WORK: Final = 2e11
_BLOCK: Final = 2**20


@dataclass(frozen=True, eq=False, repr=False)
class Alike:
    """Cells that are alike: as many before, and the same distribution after.

    Attributes
    ----------
    number : array of int64, shape (kinds,)
        How many cells are of each kind.
    share : array of float64, shape (kinds,)
        Share of the individuals in one such cell before.
    least : array of int64, shape (kinds,)
        The least count that may be released of it.
    probability : array of float64, shape (kinds, values)
        Of this count, and of each `step` above it.
    step : int
        A common divisor of all differences.
    """

    number: Integers
    share: Floats
    least: Integers
    probability: Floats
    step: int


@dataclass(frozen=True, eq=False, repr=False)
class ExpectedJoint:
    """Expected values over all releases; a pair of cells is one before and one after.

    Attributes
    ----------
    number : array of int64, shape (kinds,)
        How many cells are of each kind.
    share, released : array of float64, shape (kinds,)
        Share of one cell before and after.
    stay : array of float64, shape (kinds,)
        ``min(p, q)``, who is in the cell before and after.
    moved : array of float64, shape (kinds, kinds)
        ``r s / t`` of two different cells, the first before and the second after.
    nothing : float
        Probability that nothing is released.
    """

    number: Integers
    share: Floats
    released: Floats
    stay: Floats
    moved: Floats
    nothing: float

    def conditional_entropy(self) -> float:
        """``H(X, Y) - H(Y)`` in nats; a release of nothing is an outcome of its own."""
        pairs = np.outer(self.number, self.number) - np.diag(self.number)
        whole = float(self.number @ entr(self.share))
        left = self.number @ (entr(self.stay) - entr(self.released))
        left += (pairs * entr(self.moved)).sum() + self.nothing * whole
        return min(max(float(left), 0.0), whole)


def expected_joint(cells: Alike) -> ExpectedJoint:
    """The joint distribution of Theorem 6, without simulation.

    Raises
    ------
    ParameterError
        More work than some minutes.
    """
    total = _Totals.of(cells)
    kinds = len(cells.number)
    nothing, released, stay, moved = 0.0, np.zeros(kinds), np.zeros(kinds), np.zeros((kinds, kinds))
    offsets = np.arange(cells.probability.shape[1])
    counts = cells.least[:, None] + cells.step * offsets
    all_others = np.exp(total.logarithm[:, None] - np.log(total.factor.T))
    for place in total.places:
        size = total.least + cells.step * place
        if size == 0:
            nothing = total.probability(place)
            continue
        share = counts / size
        phase = np.asarray(np.exp(-1j * total.angle * place) * total.weight, dtype=np.complex128)
        at_total = ((phase[:, None] * all_others).T @ total.wave.T).real * cells.probability
        released += (share * at_total).sum(axis=1)
        stay += (np.minimum(cells.share[:, None], share) * at_total).sum(axis=1)
        moved += _moved(cells, total, share, phase)
    released, stay, moved = (np.maximum(each, 0) for each in (released, stay, moved))
    return ExpectedJoint(cells.number, cells.share, released, stay, moved, nothing)


@dataclass(frozen=True, eq=False, repr=False)
class _Totals:
    """The distribution of the total of a release, in steps above its least value.

    Attributes
    ----------
    least : int
        The least total.
    places : range
        The totals that are not negligible.
    angle, weight : array of float64, shape (frequencies,)
        Those of half the transform; the other half has the complex conjugates.
    wave : array of complex128, shape (values, frequencies)
        Of each value of a cell.
    factor : array of complex128, shape (kinds, frequencies)
        Expected wave of one cell.
    logarithm : array of complex128, shape (frequencies,)
        Of the expected wave of the total.
    """

    least: int
    places: range
    angle: Floats
    weight: Floats
    wave: Complexes
    factor: Complexes
    logarithm: Complexes

    @classmethod
    def of(cls, cells: Alike) -> "_Totals":
        """Find the totals, and as many frequencies as tell them apart."""
        chance = _distribution_of_total(cells)
        kept = np.flatnonzero(np.cumsum(chance) > _NEGLIGIBLE)[0]
        last = len(chance) - 1 - np.flatnonzero(np.cumsum(chance[::-1]) > _NEGLIGIBLE)[0]
        frequencies = (last - kept + 1) | 1
        half = np.arange(frequencies // 2 + 1)
        angle = 2 * np.pi * half / frequencies
        wave = np.exp(1j * np.outer(np.arange(cells.probability.shape[1]), angle))
        factor: Complexes = np.asarray(cells.probability @ wave + _NOT_ZERO)
        logarithm: Complexes = np.asarray(cells.number @ np.log(factor))
        return cls(
            least=int(cells.number @ cells.least),
            places=range(int(kept), int(last) + 1),
            angle=angle,
            weight=np.where(half == 0, 1, 2) / frequencies,
            wave=wave,
            factor=factor,
            logarithm=logarithm,
        )

    def transformed(self, of_values: Floats) -> Complexes:
        """Sums over the values of a cell, the last axis, at each frequency."""
        flat = of_values.reshape(-1, of_values.shape[-1])
        found = np.empty((len(flat), len(self.angle)), dtype=np.complex128)
        found.real, found.imag = flat @ self.wave.real, flat @ self.wave.imag
        return found.reshape(*of_values.shape[:-1], -1)

    def probability(self, place: int) -> float:
        """Of one total."""
        terms = self.weight * np.exp(self.logarithm - 1j * self.angle * place)
        return max(float(terms.real.sum()), 0.0)


def _distribution_of_total(cells: Alike) -> Floats:
    """Probability of each total, from the least."""
    values = cells.probability.shape[1]
    size = int(cells.number.sum()) * (values - 1) + 1
    if size > _MOST_TOTALS:
        raise ParameterError(
            f"the total of the release may take {size:,} values, at most {_MOST_TOTALS:,} are"
            " worked out exactly; average over replicates with averaged_conditional_entropy"
        )
    transform = np.ones(size // 2 + 1, dtype=np.complex128)
    for number, probability in zip(cells.number, cells.probability, strict=True):
        transform *= np.fft.rfft(probability, size) ** number
    return np.asarray(np.maximum(np.fft.irfft(transform, size), 0))


def _moved(cells: Alike, total: _Totals, share: Floats, phase: Complexes) -> Floats:
    """Expected ``r s / t`` of all pairs where the release has one total."""
    less = np.maximum(cells.share[:, None] - share, 0)
    more = np.maximum(share - cells.share[:, None], 0)
    at, weight = _nodes(cells, less)
    kinds, values = less.shape
    _check_work(len(total.places) * len(at) * len(phase) * kinds * (kinds + 2 * values + 20))
    gained = total.transformed(cells.probability * more)[:, None]
    moved = np.zeros((kinds, kinds))
    block = max(1, _BLOCK // (kinds * len(phase)))
    for start in range(0, len(at), block):
        nodes = slice(start, start + block)
        tilted = cells.probability[:, None] * np.exp(-at[nodes, None] * less[:, None])
        factor = total.transformed(tilted) + _NOT_ZERO  # kinds, nodes, frequencies
        every = _product(factor, cells.number) * (weight[nodes, None] * phase)
        factor = 1 / factor
        lost = total.transformed(tilted * less[:, None]) * factor * every
        left, right = lost.reshape(kinds, -1), (gained * factor).reshape(kinds, -1)
        moved += left.real @ right.real.T - left.imag @ right.imag.T
    return moved


def _product(factor: Complexes, number: Integers) -> Complexes:
    """Product of the factors of all cells, from those of one cell of each kind."""
    found = np.ones(factor.shape[1:], dtype=np.complex128)
    for power, times in zip(factor, number.tolist(), strict=True):
        while times:
            if times % 2:
                found *= power
            times //= 2
            if times:
                power = power * power
    return found


def _nodes(cells: Alike, less: Floats) -> tuple[Floats, Floats]:
    r"""Values of `u` and weights with :math:`1/t \approx \sum_l w_l \exp(-u_l t)`.

    The trapezoidal rule in ``log u``. All nodes below the first are one, at their mean.
    They end where of the expected share of movers, ``E t``, a negligible part is left,
    ``E t exp(-u t)``.
    """
    furthest = float(cells.number @ less.max(axis=1))
    if furthest == 0:
        return np.empty(0), np.empty(0)
    first = _SMALLEST / furthest
    at = first * np.exp(_STEP * np.arange(int(np.log(_LARGEST / _SMALLEST) / _STEP)))
    tilted = cells.probability * np.exp(-at[:, None, None] * less)
    factor = tilted.sum(axis=2) + _NOT_ZERO
    left = np.exp(np.log(factor) @ cells.number)
    left *= ((tilted * less).sum(axis=2) / factor) @ cells.number
    movers = float((cells.probability * less).sum(axis=1) @ cells.number)
    needed = np.flatnonzero(left > _NEGLIGIBLE * movers)
    at = at[: needed[-1] + 1 if needed.size else 1]
    below = np.expm1(_STEP)
    at, weight = np.append(first / (below + 2), at), _STEP * np.append(first / below, at)
    return at, weight


def _check_work(work: float) -> None:
    if work > _MOST_WORK:
        raise ParameterError(
            f"exact values take about {work:.1g} operations for this table and mechanism, at most"
            f" {_MOST_WORK:.0g} are accepted; average over replicates with"
            " averaged_conditional_entropy"
        )
