"""Distributions of largest entropy with given moments, which may have to fall on both
sides of no noise.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.optimize import isotonic_regression
from scipy.special import logsumexp

__all__ = ["Moment", "largest_entropy"]

Floats = npt.NDArray[np.float64]
Positions = npt.NDArray[np.int64]

_NEWTON_STEPS: Final = 200
_TOLERANCE: Final = 1e-13
_FAR: Final = 5.0
_ROUNDING: Final = 1e-13  # of the dual's value


@dataclass(frozen=True, eq=False)
class Moment:
    """An expected value that a distribution must have."""

    column: Floats
    """Of what, at each value of the noise."""
    value: float
    start: float = 0.0
    """Where the search for its coefficient begins."""


def largest_entropy(noise: Floats, moments: Sequence[Moment], *, monotone: bool) -> Floats:
    """Probabilities of the noise that have the given moments.

    The logarithms of the probabilities are a combination of the moments' columns; with
    `monotone` its projection on the sequences that fall on both sides of 0. Its
    coefficients solve the dual problem, which is convex, by Newton's method; the
    gradient is the error in the moments.
    """
    scale = np.array([abs(moment.column).max() for moment in moments])
    columns = np.column_stack([moment.column for moment in moments]) / scale
    target = np.array([moment.value for moment in moments]) / scale

    def at(point: Floats) -> tuple[float, Floats, Floats, Positions]:
        logs, of_block = columns @ point, np.arange(len(noise))
        if monotone:
            logs, of_block = _falling(logs, noise)
        size = float(logsumexp(logs))
        p: Floats = np.exp(logs - size)
        off: Floats = p @ columns - target
        return size - float(point @ target), p, off, of_block

    point = np.array([moment.start for moment in moments]) * scale
    value, p, off, of_block = at(point)
    for _ in range(_NEWTON_STEPS):
        if abs(off).max() <= _TOLERANCE:
            break
        sizes = np.bincount(of_block)
        means = np.column_stack([np.bincount(of_block, column) / sizes for column in columns.T])
        centred = (means - p @ means[of_block])[of_block]
        curvature = centred.T @ (centred * p[:, None])
        # If all values are pooled there is no curvature; a little added makes the step
        # downhill, and it is cut where it would move the logarithms far.
        step = np.linalg.solve(curvature + 1e-14 * np.eye(len(target)), off)
        length = min(1.0, _FAR / abs(columns @ step).max())
        while length > 1e-20:
            trial = at(point - length * step)
            # Downhill; at the end, where rounding hides that, closer to the moments.
            # Either alone may go to and fro between two ways of pooling.
            closer = abs(trial[2]).max() < abs(off).max()
            if trial[0] < value - _ROUNDING or (closer and trial[0] <= value + _ROUNDING):
                break
            length /= 2
        else:
            break
        point = point - length * step
        value, p, off, of_block = trial
    return p


def _falling(logs: Floats, noise: Floats) -> tuple[Floats, Positions]:
    """Nearest sequence that does not rise away from 0 on either side, and the number of
    the pooled block of each value.
    """
    out = logs.copy()
    of_block = np.empty(len(noise), dtype=np.int64)
    queues: list[list[list[int]]] = []  # the blocks of each side, nearest first
    for positions in (np.flatnonzero(noise < 0)[::-1], np.flatnonzero(noise > 0)):
        cuts: Sequence[int] = []
        if len(positions):
            cuts = isotonic_regression(logs[positions], increasing=False).blocks.tolist()
        queues.append([positions[first:end].tolist() for first, end in pairwise(cuts)])
    centre = np.flatnonzero(noise == 0).tolist()
    # 0 absorbs the highest neighbouring block until it is the highest itself.
    while centre:
        nearest = [
            queue for queue in queues if queue and logs[queue[0]].mean() > logs[centre].mean()
        ]
        if not nearest:
            break
        centre += max(nearest, key=lambda queue: logs[queue[0]].mean()).pop(0)
    blocks = [block for queue in queues for block in queue] + ([centre] if centre else [])
    for number, block in enumerate(blocks):
        out[block] = logs[block].mean()
        of_block[block] = number
    return out, of_block
