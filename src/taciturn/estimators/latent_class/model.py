"""The latent class model in PyMC, with the classes of individuals integrated out."""

from collections.abc import Mapping
from math import ceil, log, log1p
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from taciturn.estimators.halves import halves
from taciturn.estimators.log_linear.model import model_coords, model_counts
from taciturn.estimators.mixed_poisson.mixing import MIXING
from taciturn.estimators.priors import Prior
from taciturn.estimators.problem import Problem

if TYPE_CHECKING:
    import pymc as pm

__all__ = ["build_model", "number_of_classes"]

_LIKELY: Final = 0.95
"""Probability of the concentrations for which there are enough classes:"""
_REST: Final = 1e-3
"""on average the last, which stands for all further ones, has less than this."""
_MOST: Final = 100
_LEAST_SHARE: Final = 1e-300
"""Of a cell: its logarithm and the slope of that are numbers."""
_NAMES: Final = ("counts", "log_relative_intensity", "sample_counts", "stick")
_PARTS: Final = ("fading", "gamma")


def build_model(problem: Problem, priors: Mapping[str, Prior]) -> "pm.Model":
    """Build the PyMC model of a sample.

    Parameters
    ----------
    problem : Problem
        The sample.
    priors : mapping of str to Prior
        Of all parameters; those of ``nu`` and ``power`` where cells depart.
    """
    import pymc as pm

    parts = {f"{part}_{dim}" for part in _PARTS for dim in problem.variables}
    problem.refuse_names({*_NAMES, *parts})
    classes = number_of_classes(priors["concentration"])
    with pm.Model(coords={**model_coords(problem), "class": range(classes)}) as model:
        counts = pm.Data("counts", model_counts(problem))
        weight = _weights(priors["concentration"].variable("concentration"), classes)
        shares = {}
        for dim, size in problem.sizes.items():
            each = priors[f"profile_{dim}"].variable(f"profile_{dim}") / size
            shares[dim] = _profile(dim, each)
        pi = _cell_shares(problem, weight, shares)
        if "nu" not in priors:
            pm.Multinomial("sample_counts", n=counts.sum(), p=pi, observed=counts)
        else:
            nu, power = (priors[name].variable(name) for name in ("nu", "power"))
            # Flat in its logarithm, relative to what gives the sample.
            relative = pm.Flat("log_relative_intensity")
            intensity = pm.Deterministic("intensity", counts.sum() * pm.math.exp(relative))
            shape = nu * (1 + problem.cells * pi) ** power
            MIXING["inverse Gaussian"].observe("sample_counts", intensity * pi, shape, counts)
    return model


def number_of_classes(concentration: Prior) -> int:
    """How many classes are enough for a prior of the concentration.

    After as many breaks the rest of the stick is on average the power
    ``a / (1 + a)`` to that number, for a concentration of `a`.
    """
    likely = min(max(concentration.quantile(_LIKELY), 1e-6), 1e6)
    return 1 + min(ceil(log(1 / _REST) / log1p(1 / likely)), _MOST - 1)


def _weights(concentration: Any, classes: int) -> Any:
    """Weights of the classes. Minus the logarithm of what a break leaves, one minus a
    Beta(1, a) variate, is exponential with rate `a`.
    """
    import pymc as pm
    import pytensor.tensor as pt

    broken = pm.Exponential("stick", 1.0, shape=classes - 1) / concentration
    left = pt.concatenate([[1.0], pt.exp(-pt.cumsum(broken))])
    taken = pt.concatenate([-pt.expm1(-broken), [1.0]])
    return pm.Deterministic("weight", left * taken, dims="class")


def _profile(dim: str, each: Any) -> Any:
    """Shares of the categories within each class, Dirichlet with weights that are all
    alike.

    They are gamma variates over their sum, and a gamma variate of shape `a` is one of
    shape ``a + 1`` times a uniform one to the power ``1 / a``. So written, classes with
    nobody in them say next to nothing of `a`, and no logarithm overflows.
    """
    import pymc as pm

    dims = ("class", dim)
    faded = pm.Exponential(f"fading_{dim}", 1.0, dims=dims) / each
    logs = _log_gamma(f"gamma_{dim}", each + 1.0, dims) - faded
    return pm.Deterministic(f"share_{dim}", pm.math.softmax(logs, axis=1), dims=dims)


def _log_gamma(name: str, shape: Any, dims: tuple[str, str]) -> Any:
    """Logarithms of gamma variates relative to their shape. The variable is about
    standard normal whatever the shape.
    """
    import pymc as pm
    import pytensor.tensor as pt

    def logp(value: Any, shape: Any) -> Any:
        log_ratio = value / pt.sqrt(shape)
        constant = (shape - 0.5) * pt.log(shape) - pt.gammaln(shape)
        return constant + shape * (log_ratio - pt.exp(log_ratio))

    def dist(shape: Any, size: Any) -> Any:
        drawn = pm.Gamma.dist(shape, 1.0, size=size)
        return pt.sqrt(shape) * (pt.log(drawn) - pt.log(shape))

    standard = pm.CustomDist(name, shape, logp=logp, dist=dist, dims=dims)
    return standard / pt.sqrt(shape)


def _cell_shares(problem: Problem, weight: Any, shares: Mapping[str, Any]) -> Any:
    """Shares of the cells that can be filled, which add up to 1."""
    import pytensor.tensor as pt

    first, second = (_together([shares[dim] for dim in half]) for half in halves(problem.sizes))
    full = pt.dot((weight[:, None] * first).T, second).ravel()
    pi = full[np.flatnonzero(problem.fillable.ravel())]
    return pt.maximum(pi / pi.sum(), _LEAST_SHARE)


def _together(shares: list[Any]) -> Any:
    """Shares of the combinations of some variables' categories, (class,
    combination).
    """
    import pytensor.tensor as pt

    out = pt.ones((1, 1))
    for share in shares:
        out = (out[:, :, None] * share[:, None, :]).reshape((share.shape[0], -1))
    return out
