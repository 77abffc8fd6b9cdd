"""Priors as small values that can be named, saved and compared."""

from collections.abc import Mapping
from functools import lru_cache
from math import exp, inf, lgamma, log, pi
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from taciturn.errors import PriorError
from taciturn.estimators.densities import KINDS, log_density
from taciturn.loading import loaded
from taciturn.validate import is_real, quoted

if TYPE_CHECKING:
    import pymc as pm

Floats = npt.NDArray[np.float64]

__all__ = ["Prior", "check_priors", "merge_priors"]

_PARAMETERS: Final[dict[str, tuple[str, ...]]] = {
    "Beta": ("alpha", "beta"),
    "Dirichlet": ("a",),
    "Exponential": ("lam",),
    "Gamma": ("alpha", "beta"),
    "HalfCauchy": ("beta",),
    "HalfNormal": ("sigma",),
    "HalfStudentT": ("nu", "sigma"),
    "InverseGamma": ("alpha", "beta"),
    "LogNormal": ("mu", "sigma"),
    "Pareto": ("alpha", "m"),
    "Uniform": ("lower", "upper"),
}
_LARGEST_EXPONENT: Final = 700.0  # exp of more is infinite, of less than its negative 0
_REAL: Final = frozenset({"mu", "lower", "upper"})
_BOUNDED: Final = frozenset({"Beta", "Dirichlet", "Uniform"})
_NORMAL: Final = -0.5 * log(2 * pi)
_SMALLEST: Final = 1e-300  # a proportion that underflowed


class Prior:
    """A prior distribution by name, with PyMC's name and parameters.

    Parameters
    ----------
    distribution : str
        ``Beta``, ``Dirichlet`` (for margins; `a` is the same for all categories),
        ``Exponential``, ``Gamma``, ``HalfCauchy``, ``HalfNormal``, ``HalfStudentT``,
        ``InverseGamma``, ``LogNormal``, ``Pareto`` or ``Uniform``.
    **parameters : float
        The parameters of that distribution, all of them.

    Raises
    ------
    PriorError
        An unknown distribution or parameter, or a value that is not valid for it.

    Examples
    --------
    >>> import taciturn as tc
    >>> tc.Prior("LogNormal", mu=4.5, sigma=1.5)
    Prior('LogNormal', mu=4.5, sigma=1.5)
    """

    __slots__ = ("distribution", "parameters")

    def __init__(self, distribution: str, **parameters: float) -> None:
        if distribution not in _PARAMETERS:
            raise PriorError(
                f"no distribution {distribution!r} for a prior: there are {', '.join(_PARAMETERS)}"
            )
        expected = _PARAMETERS[distribution]
        if set(parameters) != set(expected):
            raise PriorError(
                f"{distribution} takes the parameters {expected}, got {tuple(parameters)}"
            )
        for name, value in parameters.items():
            if not is_real(value) or (name not in _REAL and value <= 0):
                rule = "a finite number" if name in _REAL else "a positive number"
                raise PriorError(f"{distribution}: {name} must be {rule}, got {quoted(value)}")
        if distribution == "Uniform" and parameters["lower"] >= parameters["upper"]:
            raise PriorError(f"Uniform: lower must be below upper, got {parameters}")
        self.distribution = distribution
        self.parameters = {name: float(parameters[name]) for name in expected}

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={value:g}" for name, value in self.parameters.items())
        return f"Prior({self.distribution!r}, {inside})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Prior) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.distribution, *self.parameters.items()))

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {"distribution": self.distribution, **self.parameters}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Prior":
        """Return the prior that `to_dict` was made from."""
        rest = {name: value for name, value in values.items() if name != "distribution"}
        return cls(str(values.get("distribution")), **rest)

    def draw(self, rng: np.random.Generator, size: int, *, categories: int | None = None) -> Floats:
        """Independent draws: shape (size,), or (size, categories) of a margin."""
        if self.distribution == "Dirichlet":
            return rng.dirichlet(np.full(categories or 1, self.parameters["a"]), size=size)
        return np.asarray(_frozen(self).rvs(size=size, random_state=rng), dtype=float)

    def logpdf(self, values: Floats) -> Floats:
        """Logarithm of the density of positive numbers."""
        x = self.parameters  # the most used first; SciPy takes ten times as long
        if self.distribution == "LogNormal":
            with np.errstate(divide="ignore", invalid="ignore"):
                logs = np.log(values)
                away = (logs - x["mu"]) / x["sigma"]
                found = _NORMAL - log(x["sigma"]) - logs - 0.5 * away**2
            return np.where(values > 0, found, -np.inf)
        if self.distribution == "Uniform":
            within = (x["lower"] <= values) & (values <= x["upper"])
            return np.where(within, -log(x["upper"] - x["lower"]), -np.inf)
        return np.asarray(_frozen(self).logpdf(values), dtype=float)

    def log_at(self, value: float) -> float:
        """The same of one number, for Markov chains that ask for one after the other:
        SciPy takes a hundred times as long.
        """
        return float(log_density(*self.coded, value))

    @property
    def coded(self) -> tuple[float, float, float]:
        """What `densities.log_density` takes: the kind, by number, and two parameters,
        the second of which may have no meaning.
        """
        first, *rest = self.parameters.values()
        return float(KINDS.index(self.distribution)), first, rest[0] if rest else 0.0

    @property
    def is_bounded(self) -> bool:
        """Whether values have an upper bound, as for a Beta, a Uniform and a margin."""
        return self.distribution in _BOUNDED

    def log_density(self, values: Floats) -> Floats:
        r"""Logarithm of the density on the scale on which priors are power-scaled; of a
        margin, over the last axis.

        That is the density of the logarithm of a parameter without an upper bound, and
        of the value itself otherwise. Raised to a power :math:`\alpha` and normalised,
        a log-normal then keeps its median and has :math:`\sigma/\sqrt\alpha`, a
        Gamma(a, b) becomes Gamma(:math:`\alpha a, \alpha b`) with the same mean, and a
        uniform stays as it is.
        """
        if self.distribution == "Dirichlet":
            a, categories = self.parameters["a"], values.shape[-1]
            logs = np.log(np.maximum(values, _SMALLEST))
            return np.asarray(
                lgamma(a * categories) - categories * lgamma(a) + (a - 1) * logs.sum(axis=-1)
            )
        return self.logpdf(values) + (0.0 if self.is_bounded else np.log(values))

    def quantile(self, probability: float) -> float:
        """Quantile of a distribution of positive numbers."""
        if self.distribution == "LogNormal":
            log_value = self.parameters["mu"] + self.parameters["sigma"] * ndtri(probability)
            return exp(log_value) if log_value < _LARGEST_EXPONENT else inf
        return float(_frozen(self).ppf(probability))

    def level(self, values: Floats) -> Floats:
        """The probability of numbers up to these."""
        return np.asarray(_frozen(self).cdf(values), dtype=float)

    def exceeded(self, probability: Floats) -> Floats:
        """The values that are exceeded with these probabilities."""
        if self.distribution == "Pareto":
            with np.errstate(divide="ignore", over="ignore"):
                ratio = np.asarray(probability, dtype=float) ** (-1 / self.parameters["alpha"])
            return np.asarray(self.parameters["m"] * ratio)
        return np.asarray(_frozen(self).ppf(1 - probability), dtype=float)

    def variable(
        self,
        name: str,
        *,
        dims: str | None = None,
        size: int | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> "pm.Distribution":
        """Add the random variable to the PyMC model in context.

        A margin has `size` categories along `dims`; `parameters` replaces the numbers
        by variables of the model.
        """
        import pymc as pm

        build = getattr(pm, self.distribution)
        if self.distribution == "Dirichlet":
            return build(name, a=np.full(size or 1, self.parameters["a"]), dims=dims)
        return build(name, **(parameters or self.parameters), dims=dims)


@lru_cache(maxsize=128)  # SciPy takes longer to make one than to evaluate it a thousand times
def _frozen(prior: Prior) -> Any:
    stats, x = loaded("scipy.stats"), prior.parameters
    match prior.distribution:
        case "Beta":
            return stats.beta(x["alpha"], x["beta"])
        case "Exponential":
            return stats.expon(scale=1 / x["lam"])
        case "Gamma":
            return stats.gamma(x["alpha"], scale=1 / x["beta"])
        case "HalfCauchy":
            return stats.halfcauchy(scale=x["beta"])
        case "HalfNormal":
            return stats.halfnorm(scale=x["sigma"])
        case "HalfStudentT":
            return _HalfStudentT(x["nu"], x["sigma"])
        case "InverseGamma":
            return stats.invgamma(x["alpha"], scale=x["beta"])
        case "LogNormal":
            return stats.lognorm(
                s=x["sigma"], scale=exp(min(max(x["mu"], -_LARGEST_EXPONENT), _LARGEST_EXPONENT))
            )
        case "Pareto":
            return stats.pareto(x["alpha"], scale=x["m"])
        case "Uniform":
            return stats.uniform(x["lower"], x["upper"] - x["lower"])
    raise PriorError(f"{prior.distribution} is no distribution of one number")


class _HalfStudentT:
    """Absolute value of a scaled Student t, which SciPy has no name for."""

    def __init__(self, nu: float, sigma: float) -> None:
        self.whole: Any = loaded("scipy.stats").t(nu, scale=sigma)

    def rvs(self, size: int, random_state: np.random.Generator) -> Floats:
        return np.asarray(np.abs(self.whole.rvs(size=size, random_state=random_state)))

    def logpdf(self, values: Floats) -> Floats:
        return np.where(np.asarray(values) >= 0, self.whole.logpdf(values) + log(2), -np.inf)

    def cdf(self, values: Floats) -> Floats:
        return np.asarray(np.maximum(2 * self.whole.cdf(values) - 1, 0.0))

    def ppf(self, probability: Floats) -> Floats:
        return np.asarray(self.whole.ppf((1 + probability) / 2))


def check_priors(priors: Mapping[str, Prior] | None) -> dict[str, Prior]:
    """Return the priors by name as a plain dict.

    Raises
    ------
    PriorError
        No mapping, or a value that is not a `Prior`.
    """
    if priors is not None and not isinstance(priors, Mapping):
        raise PriorError(f"priors must be a mapping of names to priors, got {quoted(priors)}")
    checked = dict(priors or {})
    for name, prior in checked.items():
        if not isinstance(prior, Prior):
            raise PriorError(
                f"the prior of {name!r} must be a Prior, such as Prior('HalfNormal', sigma=1); got"
                f" {quoted(prior)}"
            )
    return checked


def merge_priors(defaults: Mapping[str, Prior], given: Mapping[str, Prior]) -> dict[str, Prior]:
    """Return the default priors, with those given in their place.

    Raises
    ------
    PriorError
        A prior that matches no parameter, or does not suit its parameter.
    """
    unknown = sorted(set(given) - set(defaults))
    if unknown:
        raise PriorError(
            f"a prior is given for {unknown}, the parameters of this model are"
            f" {', '.join(defaults)}"
        )
    for name, prior in given.items():
        on_simplex = defaults[name].distribution == "Dirichlet"
        if (prior.distribution == "Dirichlet") != on_simplex:
            kind = "a Dirichlet" if on_simplex else "a distribution of one positive number"
            raise PriorError(f"the prior of {name!r} must be {kind}, got {quoted(prior)}")
        if prior.parameters.get("lower", 0.0) < 0:
            raise PriorError(f"{name!r} is positive: lower must be at least 0, got {prior!r}")
    return {**defaults, **given}
