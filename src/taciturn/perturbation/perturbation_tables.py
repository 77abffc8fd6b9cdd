"""Perturbation tables of the cell-key method: the noise of each count and its
probabilities.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import xarray as xr
from scipy.optimize import isotonic_regression, linprog
from scipy.special import logsumexp

from taciturn.errors import ParameterError
from taciturn.validate import real_number, whole_number

__all__ = ["check_perturbation_table", "perturbation_table"]

Floats = npt.NDArray[np.float64]

_LARGEST_NOISE: Final = 100
_NEWTON_STEPS: Final = 500
_TOLERANCE: Final = 1e-13


def perturbation_table(
    max_noise: int, variance: float, *, js: int = 0, monotone: bool = True
) -> xr.DataArray:
    r"""Transition probabilities of the cell-key method that have the largest entropy.

    Row `i` is the distribution of the perturbed count if the original count is `i`. Of
    all distributions of the noise `k` with

    .. math::

        \sum_k p_k = 1, \quad \sum_k k\,p_k = 0, \quad \sum_k k^2 p_k = V,
        \quad |k| \le D

    that give no negative count and none from 1 to `js`, it is the one with the largest
    entropy :math:`-\sum_k p_k \log p_k`. Zero stays zero.

    Parameters
    ----------
    max_noise : int
        Largest absolute noise `D`, from 1 to 100.
    variance : float
        Variance `V` of the noise, above 0 and at most `D²`, in squared counts.
    js : int
        Positive counts up to this one are never published; 0 publishes all.
    monotone : bool
        Whether noise must not be likelier than smaller noise in the same direction or,
        if the original count can be published, than no noise. Otherwise the
        probabilities are :math:`p_k \propto \exp(a k + b k^2)`.

    Returns
    -------
    DataArray
        float64 in ``[0, 1]``, dims ``(original, perturbed)``, named ``probability``;
        rows sum to 1. The last row is symmetric; all larger counts get its noise.

    Raises
    ------
    ParameterError
        An argument outside its range, or an original count for which no noise meets the
        conditions; the message names the count and the variances that it allows.

    Notes
    -----
    The dual problem has two unknowns, `a` and `b`: the logarithms of the probabilities
    are :math:`a k + b k^2`, with `monotone` its projection on the sequences that fall
    on both sides of 0. It is solved by Newton's method.

    References
    ----------
    Enderle, Giessing & Tent (2020), Calculation of risk probabilities for the cell key
    method, Privacy in Statistical Databases, Springer, 151-165. Fraser & Wooton (2005),
    A proposed method for confidentialising tabular output to protect against
    differencing, UNECE/Eurostat work session on statistical data confidentiality.
    Marley & Leaver (2011), A method for confidentialising user-defined tables:
    statistical properties and a risk-utility analysis, 58th World Statistical Congress.
    Giessing (2016), Computational issues in the design of transition probabilities and
    disclosure risk estimation for additive noise, Privacy in Statistical Databases,
    Springer, 237-251.

    Examples
    --------
    >>> import taciturn as tc
    >>> noise = tc.perturbation.perturbation_table(3, 1)
    >>> noise.sel(original=1).values.round(4).tolist()
    [0.3699, 0.3699, 0.1711, 0.0687, 0.0205, 0.0, 0.0]
    """
    max_noise = whole_number(max_noise, "max_noise", least=1, most=_LARGEST_NOISE)
    js = whole_number(js, "js", least=0, most=_LARGEST_NOISE)
    variance = real_number(variance, "variance", above=0, most=max_noise**2)
    # The first count whose noise reaches neither zero nor a count up to js.
    last = max_noise + (js + 1 if js else 0)
    published = np.array([0, *range(js + 1, last + max_noise + 1)])
    out = np.zeros((last + 1, last + max_noise + 1))
    out[0, 0] = 1
    for original in range(1, last + 1):
        reached = published[abs(published - original) <= max_noise]
        out[original, reached] = _row(original, reached - original, variance, monotone)
    coords = {"original": np.arange(last + 1), "perturbed": np.arange(last + max_noise + 1)}
    attrs = {"max_noise": max_noise, "variance": variance, "js": js}
    return xr.DataArray(
        out, dims=("original", "perturbed"), coords=coords, name="probability", attrs=attrs
    )


def check_perturbation_table(perturbation: Any) -> tuple[Floats, npt.NDArray[np.int64]]:
    """Cumulated rows of a perturbation table, and the counts of its columns; raise
    `ParameterError` if it is not one.

    The last outcome of a row that has a positive probability is cumulated to infinity,
    so that rounding cannot leave a key without an outcome.
    """
    name = "perturbation"
    if not isinstance(perturbation, xr.DataArray) or set(perturbation.dims) != {
        "original",
        "perturbed",
    }:
        found = (
            perturbation.dims
            if isinstance(perturbation, xr.DataArray)
            else type(perturbation).__name__
        )
        raise ParameterError(
            f"{name} must be a DataArray with the dims ('original', 'perturbed'), got {found}"
        )
    perturbation = perturbation.transpose("original", "perturbed")
    rows, columns = (_counts_of(perturbation, dim) for dim in ("original", "perturbed"))
    if not np.array_equal(rows, np.arange(len(rows))) or len(rows) < 2:
        raise ParameterError(
            f"{name}: the original counts must be 0, 1, ... without a gap, got {rows.tolist()}"
        )
    if (np.diff(columns) <= 0).any():
        raise ParameterError(f"{name}: the perturbed counts must rise, got {columns.tolist()}")
    values = np.asarray(perturbation.values, dtype=float)

    def first(bad: npt.NDArray[np.bool_]) -> str | None:
        where = np.argwhere(bad)
        if not len(where):
            return None
        i, j = where[0]
        return f"original={rows[i]}, perturbed={columns[j]} holds {values[i, j]:g}"

    at = first(~((values >= 0) & (values <= 1 + 1e-9)))
    if at:
        raise ParameterError(f"{name}: probabilities must be from 0 to 1: {at}")
    sums = values.sum(axis=1)
    wrong = np.flatnonzero(abs(sums - 1) > 1e-9)
    if len(wrong):
        raise ParameterError(
            f"{name}: each row must sum to 1: original={wrong[0]} sums to {sums[wrong[0]]:.9g}"
        )
    at = first((values > 0) & (columns < 0))
    if at:
        raise ParameterError(f"{name}: counts cannot become negative: {at}")
    at = first((values > 0) & (columns > 0) & (rows[:, None] == 0))
    if at:
        raise ParameterError(f"{name}: zero must stay zero, as an empty cell has no key: {at}")
    cumulated = values.cumsum(axis=1)
    last = values.shape[1] - 1 - np.argmax(values[:, ::-1] > 0, axis=1)
    cumulated[np.arange(values.shape[1]) >= last[:, None]] = np.inf
    return cumulated, columns


def _counts_of(perturbation: xr.DataArray, dim: str) -> npt.NDArray[np.int64]:
    labels = perturbation[dim].values
    if not np.issubdtype(labels.dtype, np.integer):
        raise ParameterError(
            f"perturbation: the labels of {dim!r} must be whole numbers, got {labels.dtype}"
        )
    return np.asarray(labels, dtype=np.int64)


def _row(original: int, noise: npt.NDArray[np.int64], variance: float, monotone: bool) -> Floats:
    """Probabilities of the noise of one original count."""
    bounds = _variances(noise, monotone)
    if bounds is None:
        raise ParameterError(
            f"the original count {original} has no noise with mean 0 among {noise.tolist()}"
        )
    least, most = bounds
    if not least - 1e-9 <= variance <= most + 1e-9:
        condition = " that does not rise away from 0" if monotone else ""
        raise ParameterError(
            f"the original count {original} has no unbiased noise among {noise.tolist()}{condition}"
            f" with variance {variance:g}; accepted there: {least:.6g} to {most:.6g}"
        )
    probabilities = _largest_entropy(noise, variance, monotone)
    missed = max(abs(probabilities @ noise), abs(probabilities @ noise**2 - variance))
    if missed > 1e-9:  # at the end of the range, where the dual has no solution
        raise ParameterError(
            f"the noise of the original count {original} misses mean 0 or variance {variance:g} by"
            f" {missed:.1g}: the variance is too near the end of its range, {least:.6g} to"
            f" {most:.6g}"
        )
    return probabilities


def _variances(noise: npt.NDArray[np.int64], monotone: bool) -> tuple[float, float] | None:
    """Smallest and largest variance of noise with mean 0, by linear programming."""
    pairs = [pair for side in _sides(noise) for pair in pairwise(side)] if monotone else []
    rises = np.zeros((len(pairs), len(noise)))
    for row, (near, far) in enumerate(pairs):
        rises[row, [near, far]] = -1, 1
    moments = np.vstack([np.ones(len(noise)), noise])
    ends = []
    for sign in (1.0, -1.0):
        found = linprog(
            sign * noise**2, A_ub=rises, b_ub=np.zeros(len(pairs)), A_eq=moments, b_eq=[1, 0]
        )
        if not found.success or found.fun is None:
            return None
        ends.append(sign * float(found.fun))
    return ends[0], ends[1]


def _sides(noise: npt.NDArray[np.int64]) -> list[list[int]]:
    """Positions of the noise from 0 downwards and from 0 upwards; 0 is in both if it is
    possible.
    """
    down, up = np.flatnonzero(noise <= 0)[::-1], np.flatnonzero(noise >= 0)
    return [down.tolist(), up.tolist()]


def _largest_entropy(noise: npt.NDArray[np.int64], variance: float, monotone: bool) -> Floats:
    """Newton's method on the dual, which is convex; its gradient is the error in mean
    and variance.
    """
    scale = float(abs(noise).max())
    features = np.column_stack([noise / scale, (noise / scale) ** 2])
    target = np.array([0, variance / scale**2])

    def at(point: Floats) -> tuple[float, Floats, Floats, npt.NDArray[np.int64]]:
        logs, of_block = features @ point, np.arange(len(noise))
        if monotone:
            logs, of_block = _falling(logs, noise)
        size = float(logsumexp(logs))
        p: Floats = np.exp(logs - size)
        off: Floats = p @ features - target
        return size - float(point @ target), p, off, of_block

    point = np.array([0, -(scale**2) / (2 * variance)])
    value, p, off, of_block = at(point)
    for _ in range(_NEWTON_STEPS):
        if abs(off).max() <= _TOLERANCE:
            break
        blocks = np.bincount(of_block)
        means = np.column_stack([np.bincount(of_block, column) / blocks for column in features.T])[
            of_block
        ]
        centred = means - p @ means
        curvature = centred.T @ (centred * p[:, None])
        # If all values are pooled there is no curvature; a little added makes the step
        # long and downhill.
        step = np.linalg.solve(curvature + 1e-14 * np.eye(2), off)
        length = 1.0
        while length > 1e-20:
            trial = at(point - length * step)
            if trial[0] < value or abs(trial[2]).max() < abs(off).max():
                break
            length /= 2
        else:
            break
        point = point - length * step
        value, p, off, of_block = trial
    return p


def _falling(logs: Floats, noise: npt.NDArray[np.int64]) -> tuple[Floats, npt.NDArray[np.int64]]:
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
