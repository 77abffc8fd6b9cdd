"""What departures from the model may be distributed like: factors with mean 1, and 0
where nobody can be.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit

from taciturn.estimators.mixed_poisson.blocks import in_cache
from taciturn.estimators.mixed_poisson.kernels import (
    LEAST_MEAN,
    LOG_SHAPES,
    NARROWEST,
    add_gamma_mixed,
    add_inverse_gaussian_mixed,
    draw_fillable,
    draw_inverse_gaussian_factors,
    draw_mixture_factors,
)
from taciturn.estimators.mixed_poisson.slopes import (
    gamma_slopes,
    inverse_gaussian_slopes,
    mixture_slopes,
)
from taciturn.estimators.sampling.draws import draw_log_gammas

__all__ = ["MIXING", "Mixing", "log_not_all", "mixing_with"]

_HEAD: Final = 30  # counts up to this have the sum of a Bessel function in closed form

Floats = npt.NDArray[np.float64]
Cells = npt.NDArray[np.int64]


class Mixing(ABC):
    """A distribution of factors with mean 1 and variance ``1 / shape``, or of such
    factors and 0; the count of a cell is Poisson with its mean times the factor.

    Arrays of logarithms of `mean` and `shape` are of shape (draws, cells), `counts` of
    shape (cells,).
    """

    @abstractmethod
    def log_pmf(self, counts: Floats, log_mean: Floats, log_shape: Floats) -> Floats:
        """Logarithm of ``f! p(f)``, the factor integrated out."""

    @abstractmethod
    def slopes(self, counts: Floats, log_mean: Floats, log_shape: Floats, power: Floats) -> Floats:
        """Derivatives of `log_pmf`, shape (5, draws, cells): by the logarithm of the
        mean, and along that of the share, which moves the shape by `power`, (draws,),
        times as much; and, with the sign changed, second derivatives by the mean, by
        both, and along the share.
        """

    @abstractmethod
    def draw(self, counts: Floats, mean: Floats, shape: Floats, rng: np.random.Generator) -> Floats:
        """Factors given the counts."""

    @abstractmethod
    def draw_log_prior(self, shape: Floats, of_cell: Cells, rng: np.random.Generator) -> Floats:
        """Logarithms of factors without counts, in cells of these strata, of which each
        has a cell that can be filled.
        """

    @abstractmethod
    def log_probability(self, counts: Any, mean: Any, shape: Any) -> Any:
        """Logarithm of the probability of each count, in PyTensor."""

    @abstractmethod
    def factors(self, shape: Any, size: Any) -> Any:
        """Factors without counts, as random variables of PyMC."""

    @property
    def parameters(self) -> tuple[Any, ...]:
        """Of the distribution, besides the shapes."""
        return ()

    def having(self, *parameters: Any) -> "Mixing":
        """The same with other values of these."""
        return self

    def observe(self, name: str, mean: Any, shape: Any, observed: Any) -> Any:
        """The counts as a variable of the PyMC model."""
        import pymc as pm

        def dist(mean: Any, shape: Any, *rest: Any) -> Any:
            *parameters, size = rest
            factors = self.having(*parameters).factors(shape, size)
            return pm.Poisson.dist(mu=mean * factors, size=size)

        def logp(counts: Any, mean: Any, shape: Any, *parameters: Any) -> Any:
            return self.having(*parameters).log_probability(counts, mean, shape)

        given = (mean, shape, *self.parameters)
        return pm.CustomDist(name, *given, dist=dist, logp=logp, observed=observed)


class _Gamma(Mixing):
    def log_pmf(self, counts: Floats, log_mean: Floats, log_shape: Floats) -> Floats:
        out, occupied = np.empty_like(log_mean), np.flatnonzero(counts)
        # Most cells are empty; one array of exponentials takes less than one by one.
        for rows in in_cache(out):
            x, y = _representable(log_mean[rows], log_shape[rows])
            with np.errstate(over="ignore"):
                shape, excess = np.exp(y), np.log1p(np.exp(x - y))
                np.multiply(-shape, excess, out=out[rows])
            add_gamma_mixed(counts, occupied, x, y, shape, excess, out[rows])
        return out

    def slopes(self, counts: Floats, log_mean: Floats, log_shape: Floats, power: Floats) -> Floats:
        out = np.empty((5, *log_mean.shape))
        for rows in in_cache(log_mean):
            x, y = _representable(log_mean[rows], log_shape[rows])
            with np.errstate(over="ignore"):
                ratio = np.exp(x - y)
            given = (np.exp(y), ratio, np.log1p(ratio), power[rows])
            gamma_slopes(counts, *given, out[:, rows])
        return out

    def draw(self, counts: Floats, mean: Floats, shape: Floats, rng: np.random.Generator) -> Floats:
        return np.asarray(rng.standard_gamma(shape + counts) / (shape + mean))

    def draw_log_prior(self, shape: Floats, of_cell: Cells, rng: np.random.Generator) -> Floats:
        shape = np.maximum(shape, 1e-200)
        return draw_log_gammas(shape, rng) - np.log(shape)

    def log_probability(self, counts: Any, mean: Any, shape: Any) -> Any:
        import pytensor.tensor as pt

        log_ratio = pt.log(mean) - pt.log(shape)
        excess = pt.log1p(mean / shape)
        seen = pt.nonzero(counts)[0]
        f, r = counts[seen], shape[seen]
        own = pt.gammaln(r + f) - pt.gammaln(r) + f * (log_ratio - excess)[seen]
        return (-shape * excess)[seen].inc(own - pt.gammaln(f + 1.0))

    def factors(self, shape: Any, size: Any) -> Any:
        import pymc as pm

        return pm.Gamma.dist(alpha=shape, beta=shape, size=size)

    def observe(self, name: str, mean: Any, shape: Any, observed: Any) -> Any:
        import pymc as pm

        return pm.NegativeBinomial(name, mu=mean, alpha=shape, observed=observed)


class _InverseGaussian(Mixing):
    def log_pmf(self, counts: Floats, log_mean: Floats, log_shape: Floats) -> Floats:
        out, occupied = np.empty_like(log_mean), np.flatnonzero(counts)
        for rows in in_cache(out):
            x, y = _representable(log_mean[rows], log_shape[rows])
            with np.errstate(over="ignore"):  # r (1 - s) without cancellation
                s = np.sqrt(1 + 2 * np.exp(x - y))
                np.divide(-2 * np.exp(x), 1 + s, out=out[rows])
            add_inverse_gaussian_mixed(counts, occupied, x, y, s, out[rows])
        return out

    def slopes(self, counts: Floats, log_mean: Floats, log_shape: Floats, power: Floats) -> Floats:
        out = np.empty((5, *log_mean.shape))
        for rows in in_cache(log_mean):
            x, y = _representable(log_mean[rows], log_shape[rows])
            with np.errstate(over="ignore"):
                given = (y, np.exp(x), np.exp(x - y), power[rows])
            inverse_gaussian_slopes(counts, *given, out[:, rows])
        return out

    def draw(self, counts: Floats, mean: Floats, shape: Floats, rng: np.random.Generator) -> Floats:
        out = np.empty_like(mean)
        draw_inverse_gaussian_factors(counts, mean, shape, rng, out)
        return out

    def draw_log_prior(self, shape: Floats, of_cell: Cells, rng: np.random.Generator) -> Floats:
        drawn = rng.wald(1.0, np.maximum(shape, NARROWEST))
        return np.asarray(np.log(np.maximum(drawn, 1e-300)))

    def log_probability(self, counts: Any, mean: Any, shape: Any) -> Any:
        import pytensor.tensor as pt

        s = pt.sqrt(1 + 2 * mean / shape)
        seen = pt.nonzero(counts)[0]
        f = counts[seen].astype("float64")
        own = f * (pt.log(mean) - pt.log(s))[seen] + _log_bessel_ratio(f, (shape * s)[seen])
        return (-2 * mean / (1 + s))[seen].inc(own - pt.gammaln(f + 1))

    def factors(self, shape: Any, size: Any) -> Any:
        import pymc as pm

        return pm.Wald.dist(mu=1.0, lam=shape, size=size)


@dataclass(frozen=True)
class _Mixture(Mixing):
    """Either of the two, cell by cell.

    Attributes
    ----------
    share : array, shape (draws,), or a variable in PyTensor
        The probability that a factor is inverse Gaussian.
    """

    share: Any

    def log_pmf(self, counts: Floats, log_mean: Floats, log_shape: Floats) -> Floats:
        first, second = self._joint(counts, log_mean, log_shape)
        more = np.log1p(np.exp(-abs(first - second)))  # in a third of the time of logaddexp
        return np.maximum(first, second) + more

    def slopes(self, counts: Floats, log_mean: Floats, log_shape: Floats, power: Floats) -> Floats:
        out, log_odds = np.empty((5, *log_mean.shape)), logit(self.share)
        for rows in in_cache(log_mean):
            x, y = _representable(log_mean[rows], log_shape[rows])
            with np.errstate(over="ignore"):
                ratio = np.exp(x - y)
            given = (x, y, np.exp(x), np.exp(y), ratio, np.log1p(ratio), log_odds[rows])
            mixture_slopes(counts, *given, power[rows], out[:, rows])
        return out

    def draw(self, counts: Floats, mean: Floats, shape: Floats, rng: np.random.Generator) -> Floats:
        out = np.empty_like(mean)
        draw_mixture_factors(counts, mean, shape, logit(self.share), rng, out)
        return out

    def draw_log_prior(self, shape: Floats, of_cell: Cells, rng: np.random.Generator) -> Floats:
        first, second = (mixing.draw_log_prior(shape, of_cell, rng) for mixing in MIXING.values())
        return np.where(rng.random(shape.shape) < self.share[:, None], second, first)

    def log_probability(self, counts: Any, mean: Any, shape: Any) -> Any:
        import pytensor.tensor as pt

        first, second = (mixing.log_probability(counts, mean, shape) for mixing in MIXING.values())
        return pt.logaddexp(pt.log1p(-self.share) + first, pt.log(self.share) + second)

    def factors(self, shape: Any, size: Any) -> Any:
        import pymc as pm
        import pytensor.tensor as pt

        first, second = (mixing.factors(shape, size) for mixing in MIXING.values())
        return pt.switch(pm.Bernoulli.dist(self.share, size=size), second, first)

    @property
    def parameters(self) -> tuple[Any, ...]:
        return (self.share,)

    def having(self, *parameters: Any) -> "Mixing":
        return _Mixture(*parameters)

    def _joint(self, counts: Floats, log_mean: Floats, log_shape: Floats) -> tuple[Floats, Floats]:
        """Logarithms of ``f! p(f)`` together with either."""
        first, second = (mixing.log_pmf(counts, log_mean, log_shape) for mixing in MIXING.values())
        with np.errstate(divide="ignore"):
            return first + np.log1p(-self.share)[:, None], second + np.log(self.share)[:, None]


@dataclass(frozen=True)
class _Inflated(Mixing):
    """Those of another distribution, or 0 in cells where nobody can be.

    Attributes
    ----------
    others : Mixing
        Of the factors that are not 0.
    inflation : array, shape (draws,), or a variable in PyTensor
        The probability that nobody can be in a cell.
    """

    others: Mixing
    inflation: Any

    def log_pmf(self, counts: Floats, log_mean: Floats, log_shape: Floats) -> Floats:
        out, empty = self.others.log_pmf(counts, log_mean, log_shape), counts == 0
        out += np.log1p(-self._inside)[:, None]
        out[:, empty] = np.logaddexp(np.log(self._inside)[:, None], out[:, empty])
        return out

    def slopes(self, counts: Floats, log_mean: Floats, log_shape: Floats, power: Floats) -> Floats:
        out, empty = self.others.slopes(counts, log_mean, log_shape, power), counts == 0
        chance = self._filled(log_mean[:, empty], log_shape[:, empty])
        either = chance * (1 - chance)
        by_mean, along, *bends = out[:, :, empty]
        products = by_mean * by_mean, by_mean * along, along * along
        found = [chance * by_mean, chance * along]
        found += [chance * b - either * p for b, p in zip(bends, products, strict=True)]
        out[:, :, empty] = found
        return out

    def draw(self, counts: Floats, mean: Floats, shape: Floats, rng: np.random.Generator) -> Floats:
        out, empty = self.others.draw(counts, mean, shape, rng), counts == 0
        with np.errstate(divide="ignore"):  # a shape may vanish
            chance = self._filled(np.log(mean[:, empty]), np.log(shape[:, empty]))
        out[:, empty] *= rng.random(chance.shape) < chance
        return out

    def draw_log_prior(self, shape: Floats, of_cell: Cells, rng: np.random.Generator) -> Floats:
        out = self.others.draw_log_prior(shape, of_cell, rng)
        fillable = np.empty(shape.shape, dtype=bool)
        draw_fillable(np.log(self._inside), of_cell, np.bincount(of_cell), rng, fillable)
        return np.where(fillable, out, -np.inf)

    def log_probability(self, counts: Any, mean: Any, shape: Any) -> Any:
        import pytensor.tensor as pt

        filled = pt.log1p(-self.inflation) + self.others.log_probability(counts, mean, shape)
        empty = pt.logaddexp(pt.log(self.inflation), filled)
        return pt.switch(pt.eq(counts, 0), empty, filled)

    def factors(self, shape: Any, size: Any) -> Any:
        import pymc as pm

        impossible = pm.Bernoulli.dist(self.inflation, size=size)
        return (1 - impossible) * self.others.factors(shape, size)

    @property
    def parameters(self) -> tuple[Any, ...]:
        return (self.inflation, *self.others.parameters)

    def having(self, *parameters: Any) -> "Mixing":
        inflation, *rest = parameters
        return _Inflated(self.others.having(*rest), inflation)

    def _filled(self, log_mean: Floats, log_shape: Floats) -> Floats:
        """The probability that empty cells can be filled."""
        nobody = np.zeros(log_mean.shape[1])
        log_empty = self.others.log_pmf(nobody, log_mean, log_shape)
        return np.asarray(expit(log_empty - logit(self._inside)[:, None]))

    @property
    def _inside(self) -> Floats:
        """The inflation, between what rounds to 0 and to 1."""
        return _between_ends(self.inflation)


def log_not_all(inflation: Floats, cells: Cells) -> Floats:
    """Logarithm of the probability that anybody can be in some cell of each stratum, of
    which each has so many cells; shape (draws,).
    """
    return np.asarray(np.log1p(-(_between_ends(inflation)[:, None] ** cells)).sum(axis=1))


def _between_ends(inflation: Floats) -> Floats:
    return np.clip(inflation, 1e-300, 1 - 2.0**-53)


def _representable(log_mean: Floats, log_shape: Floats) -> tuple[Floats, Floats]:
    """Both within what their exponentials and products can hold."""
    return np.maximum(log_mean, LEAST_MEAN), np.clip(log_shape, *LOG_SHAPES)


def _log_bessel_ratio(f: Any, w: Any) -> Any:
    """Logarithm of ``K_{f - 1/2}(w) / K_{1/2}(w)``: a finite sum for small counts, and
    the uniform expansion of DLMF 10.41.4 for others.
    """
    import pytensor.tensor as pt

    k = np.arange(_HEAD)[None, :]
    few = pt.minimum(f, _HEAD)[:, None]
    log_terms = pt.gammaln(few + k) - pt.gammaln(k + 1.0) - pt.gammaln(pt.maximum(few - k, 1.0))
    log_terms = pt.switch(k < few, log_terms - k * pt.log(2 * w)[:, None], -np.inf)
    order = pt.maximum(f, _HEAD) - 0.5
    z = w / order
    root = pt.sqrt(1 + z**2)
    p = 1 / root
    u1 = (3 * p - 5 * p**3) / 24
    u2 = (81 * p**2 - 462 * p**4 + 385 * p**6) / 1152
    u3 = (30375 * p**3 - 369603 * p**5 + 765765 * p**7 - 425425 * p**9) / 414720
    series = 1 - u1 / order + u2 / order**2 - u3 / order**3
    large = -order * (root + pt.log(z / (1 + root))) + 0.5 * pt.log(z / root) + pt.log(series) + w
    return pt.switch(f > _HEAD, large, pt.logsumexp(log_terms, axis=1))


MIXING: Final[Mapping[str, Mixing]] = {
    "gamma": _Gamma(),
    "inverse Gaussian": _InverseGaussian(),
}
"""By name."""


def mixing_with(share: Any, inflation: Any = 0.0) -> Mixing:
    """The distribution of factors of which so many are inverse Gaussian, in cells in so
    many of which nobody can be: numbers, arrays of shape (draws,), or variables in
    PyTensor.
    """
    if not _are(inflation, 0):
        return _Inflated(mixing_with(share), inflation)
    for number, mixing in enumerate(MIXING.values()):
        if _are(share, number):
            return mixing
    return _Mixture(share)


def _are(values: Any, number: float) -> bool:
    """Whether values that are known are all this number."""
    return isinstance(values, float | np.ndarray) and bool(np.all(values == number))
