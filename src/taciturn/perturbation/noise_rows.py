"""One row of a perturbation table: the noise of one original value."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog

from taciturn.errors import ParameterError
from taciturn.perturbation.largest_entropy import Moment, largest_entropy
from taciturn.validate import quoted, real_number

__all__ = ["NoiseRow", "one_for_each", "probability_to_stay"]

Floats = npt.NDArray[np.float64]

_NEAR = 1e-9


@dataclass(frozen=True, eq=False)
class NoiseRow:
    """Conditions on the noise of one original value."""

    name: str
    """Of the row, for messages."""
    noise: Floats
    """What the noise can be, rising."""
    variance: float
    """The largest that is accepted."""
    monotone: bool
    stays: float | None
    """Probability of no noise; None where it is free."""

    def probabilities(self) -> Floats:
        """The distribution of largest entropy that meets the conditions."""
        moments = [Moment(self.noise, 0.0)]
        if self.stays is not None:
            moments.append(Moment((self.noise == 0).astype(float), self.stays))
        found = self._largest_entropy(moments)
        if found @ self.noise**2 > self.variance + _NEAR:
            # The largest entropy is beyond the bound, so the largest within is on it.
            # The search begins at a normal distribution.
            on_bound = Moment(self.noise**2, self.variance, start=-0.5 / self.variance)
            found = self._largest_entropy([*moments, on_bound])
        return found

    def _largest_entropy(self, moments: list[Moment]) -> Floats:
        found = largest_entropy(self.noise, moments, monotone=self.monotone)
        missed = max(abs(found @ moment.column - moment.value) for moment in moments)
        if missed > _NEAR:
            self._check()
            # At the end of what is possible, where the dual has no solution.
            raise ParameterError(
                f"the noise of {self.name} misses its mean, variance or probability to stay by"
                f" {missed:.1g}: that is too near the end of what is possible; accepted there: a"
                f" larger variance{' or another pstay' if self.stays is not None else ''}"
            )
        return found

    def _check(self) -> None:
        """Raise `ParameterError`, which says what would be accepted, unless some noise
        meets the conditions.
        """
        least = self._least(self.noise**2, stays=self.stays)
        if least is not None and least <= self.variance + _NEAR:
            return
        unbiased = f"noise with mean 0 among {_listed(self.noise)}"
        free = self._least(self.noise**2)
        if free is None:
            raise ParameterError(f"{self.name} has no {unbiased}")
        if free > self.variance + _NEAR:
            raise ParameterError(
                f"{self.name} has no {unbiased} with a variance of at most {self.variance:g};"
                f" accepted there: a variance of at least {free:.6g}"
            )
        stays = (self.noise == 0).astype(float)
        low, high = (self._least(sign * stays, bounded=True) or 0.0 for sign in (1.0, -1.0))
        raise ParameterError(
            f"{self.name} has no {unbiased} with a variance of at most {self.variance:g} that"
            f" leaves it unchanged with probability {self.stays:g}; accepted there: pstay from"
            f" {low:.6g} to {-high:.6g}"
        )

    def _least(
        self, cost: Floats, *, stays: float | None = None, bounded: bool = False
    ) -> float | None:
        """Smallest expected cost of unbiased noise, by linear programming; None where
        there is no such noise.
        """
        falls = [pair for side in _sides(self.noise) for pair in pairwise(side)]
        rises = np.zeros((len(falls) if self.monotone else 0, len(self.noise)))
        for row, (near, far) in zip(rises, falls, strict=False):
            row[[near, far]] = -1, 1
        above, limits = rises, np.zeros(len(rises))
        if bounded:
            above, limits = np.vstack([above, self.noise**2]), np.append(limits, self.variance)
        exact, values = [np.ones(len(self.noise)), self.noise], [1.0, 0.0]
        if stays is not None:
            exact.append((self.noise == 0).astype(float))
            values.append(stays)
        found = linprog(cost, A_ub=above, b_ub=limits, A_eq=np.vstack(exact), b_eq=values)
        return float(found.fun) if found.success and found.fun is not None else None


def one_for_each(given: Any, name: str, rows: Sequence[str]) -> list[Any]:
    """What is given for all rows or for each of them, as a list."""
    if given is None or isinstance(given, bool | np.bool_ | Real):
        return [given] * len(rows)
    each = list(given) if np.iterable(given) and not isinstance(given, str) else []
    if len(each) != len(rows):
        found = f"{len(each)} values" if each else quoted(given)
        raise ParameterError(
            f"{name} must be one value or {len(rows)}, from that of {rows[0]} to that of"
            f" {rows[-1]}; got {found}"
        )
    return each


def probability_to_stay(value: Any, row: str) -> float | None:
    """The `pstay` of a row; None where it is free."""
    if value is None or (isinstance(value, Real) and value != value):
        return None
    return real_number(value, f"pstay of {row}", above=0, most=1)


def _sides(noise: Floats) -> list[list[int]]:
    """Positions of the noise from 0 downwards and from 0 upwards; 0 is in both if it is
    possible.
    """
    down, up = np.flatnonzero(noise <= 0)[::-1], np.flatnonzero(noise >= 0)
    return [down.tolist(), up.tolist()]


def _listed(noise: Floats) -> str:
    return "[" + ", ".join(f"{value:g}" for value in noise) + "]"
