"""The mixed Poisson log-linear model in PyMC."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from taciturn.estimators.formula import Terms
from taciturn.estimators.log_linear.model import cell_shares, model_coords, sized_variable
from taciturn.estimators.mixed_poisson.mixing import Mixing
from taciturn.estimators.priors import Prior
from taciturn.estimators.problem import Problem

if TYPE_CHECKING:
    import pymc as pm

__all__ = ["build_model"]


def build_model(
    problem: Problem, terms: Terms, priors: Mapping[str, Prior], mixing: Mixing
) -> "pm.Model":
    """Build the PyMC model of a sample.

    Parameters
    ----------
    problem : Problem
        The sample and what is known of its population.
    terms : Terms
        Those with something to estimate.
    priors : mapping of str to Prior
        Of all parameters.
    mixing : Mixing
        Of the factors, which are integrated out.
    """
    import pymc as pm

    with pm.Model(coords=model_coords(problem)) as model:
        nu, power = sized_variable("nu", priors["nu"]), priors["power"].variable("power")
        pi = cell_shares(problem, terms, priors)
        counts = pm.Data("counts", problem.counts[problem.fillable.ravel()])
        # Flat in its logarithm, relative to the sample's size, near which it is.
        relative = pm.Flat("log_relative_intensity")
        intensity = pm.Deterministic("intensity", counts.sum() * pm.math.exp(relative))
        shape = nu * (problem.cells * pi) ** power
        mixing.observe("sample_counts", intensity * pi, shape, counts)
    return model
