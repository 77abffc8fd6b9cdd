"""The sample table of an Ewens-Pitman urn as a PyMC variable."""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from taciturn.estimators.sampling.draws import draw_urn_from_nothing
from taciturn.estimators.settings import Counts
from taciturn.estimators.urn.quadrature import closing_times

__all__ = ["urn_data", "urn_variable"]

_LARGE: Final = 1e4


def urn_data(counts: Counts) -> dict[str, Any]:
    """The data of the model: the cells that can be filled, and when the urn may have
    closed.

    Samples with the same number of cells differ in nothing else, so one compiled model
    serves them all.
    """
    steps, chance = closing_times(counts, len(counts))
    return {
        "counts": counts,
        "closing_times": steps.astype(float),
        "closing_log_chance": np.log(chance),
    }


def urn_variable(
    name: str,
    theta: Any,
    discount: Any,
    counts: Counts,
    base: npt.NDArray[np.float64] | None = None,
) -> Any:
    """Observed table whose log-probability is that of its partition, with new cells
    chosen at random.

    The distribution of closing times is that of `counts`. The log-probability of
    another table that fills all cells is therefore NaN; tables with an empty cell need
    no closing time. With a `base`, draws choose new cells with probability proportional
    to it, and the log-probability omits a term that does not depend on the parameters.
    """
    import pymc as pm

    cells = len(counts)

    def logp(value: Any, *parameters: Any) -> Any:
        return _log_probability(cells, value, *parameters)

    def random(
        theta: Any, discount: Any, given: Any, _s: Any, _p: Any, rng: Any = None, size: Any = None
    ) -> Any:
        shape = (
            np.broadcast_shapes(np.shape(theta), np.shape(discount))
            if size is None
            else tuple(size)
        )
        both = [
            np.broadcast_to(np.asarray(x, dtype=float), shape).ravel() for x in (theta, discount)
        ]
        number = int(np.reshape(given, (-1, cells))[0].sum())
        drawn = draw_urn_from_nothing(
            np.ones(cells, dtype=bool), number, both[0], rng, discount=both[1], base=base
        )
        return drawn.reshape(*shape, cells)

    data = {key: pm.Data(key, value) for key, value in urn_data(counts).items()}
    return pm.CustomDist(
        name,
        theta,
        discount,
        *data.values(),
        logp=logp,
        random=random,
        signature="(),(),(n),(s),(s)->(n)",
        dtype="int64",
        observed=data["counts"],
    )


def _log_probability(
    cells: int, value: Any, theta: Any, discount: Any, given: Any, steps: Any, log_chance: Any
) -> Any:
    """Log-probability of a table whose closing times are those of the table `given`."""
    import pytensor.tensor as pt

    n = value.sum()
    x = value[pt.nonzero(value)[0]]
    seen = x.shape[0]
    closed = pt.eq(seen, cells)
    times = pt.switch(closed, steps, n)
    taken = pt.switch(closed, cells * discount, 0.0)
    after = pt.gammaln(n - taken) - pt.gammaln(times - taken)
    waited = pt.logsumexp(log_chance - _log_rising(theta + 1, times - 1) - after)
    waited = pt.switch(pt.or_(pt.invert(closed), pt.eq(value, given).all()), waited, np.nan)
    opened = pt.log(theta + pt.arange(1, seen) * discount).sum()
    joined = (pt.gammaln(x - discount) - pt.gammaln(1.0 - discount)).sum()
    orders = pt.gammaln(_real(n + 1)) - pt.gammaln(_real(x + 1)).sum()
    labels = pt.gammaln(_real(cells - seen + 1)) - pt.gammaln(_real(pt.as_tensor(cells + 1)))
    return opened + joined + waited + orders + labels


def _log_rising(a: Any, n: Any) -> Any:
    """``log Γ(a + n) - log Γ(a)``, by Stirling's series where `a` is so large that the
    difference would cancel.
    """
    import pytensor.tensor as pt

    large = pt.gt(a, _LARGE)
    low, high = pt.switch(large, 1.0, a), pt.switch(large, a, _LARGE)
    series = (
        (high - 0.5) * pt.log1p(n / high)
        + n * (pt.log(high + n) - 1)
        + (1 / (high + n) - 1 / high) / 12
    )
    return pt.switch(large, series, pt.gammaln(low + n) - pt.gammaln(low))


def _real(value: Any) -> Any:
    """Cast to float64: PyTensor computes gammaln of small integer types in float32."""
    import pytensor.tensor as pt

    return pt.cast(value, "float64")
