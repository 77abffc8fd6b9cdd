"""The mixed Poisson log-linear model in PyMC."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from taciturn.estimators.formula import Terms
from taciturn.estimators.log_linear.model import (
    cell_shares,
    model_coords,
    model_counts,
    model_rates,
    sized_variable,
)
from taciturn.estimators.mixed_poisson.mixing import mixing_with
from taciturn.estimators.mixed_poisson.shares import Strata
from taciturn.estimators.priors import Prior
from taciturn.estimators.problem import Problem

if TYPE_CHECKING:
    import pymc as pm

__all__ = ["build_model"]


def build_model(
    problem: Problem, terms: Terms, priors: Mapping[str, Prior], pure: float
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
    pure : float
        The share of inverse Gaussian factors if it has no prior, 0 or 1; the factors
        are integrated out.
    """
    import pymc as pm
    import pytensor.tensor as pt

    seen = Strata(problem, sampled=True)
    of_fillable = np.searchsorted(np.flatnonzero(problem.fillable.ravel()), seen.seen)

    with pm.Model(coords=model_coords(problem)) as model:
        nu, power = sized_variable("nu", priors["nu"]), priors["power"].variable("power")
        counts = pm.Data("counts", model_counts(problem))[of_fillable]
        pi = cell_shares(problem, terms, priors)[of_fillable]
        if problem.known_margins is not None:
            sizes = pm.Data("margins", problem.stratum_sizes)
            within = (sizes / sizes.sum())[seen.kept] / pt.dot(pi, seen.members)
            pi = pi * within[seen.of_cell]
        # Flat in their logarithms, relative to what gives the sample.
        rates = _rates(problem, of_fillable)
        start = pt.dot(counts, seen.members) / pt.dot(pi * rates, seen.members)
        relative = pm.Flat("log_relative_intensity", shape=len(seen.kept))
        intensity = start * pm.math.exp(relative)
        _keep(problem, seen, intensity)
        shape = nu * (problem.cells * pi) ** power
        mean = intensity[seen.of_cell] * pi * rates
        share = priors["share"].variable("share") if "share" in priors else pure
        inflation: Any = 0.0
        if "inflation" in priors:
            inflation = priors["inflation"].variable("inflation")
            pm.Potential("not_all_impossible", -pt.log1p(-(inflation**seen.cells)).sum())
        factors = mixing_with(share, inflation)
        if problem.whole:
            factors.observe("sample_counts", mean, shape, counts)
        else:  # no counts of anybody
            pm.Potential("sample_counts", factors.log_probability(counts, mean, shape).sum())
    return model


def _rates(problem: Problem, cells: npt.NDArray[np.int64]) -> Any:
    """Sampling rates, relative to those of a simple random sample."""
    import pymc as pm

    return (
        1.0 if problem.weighting is None else pm.Data("sampling_rates", model_rates(problem))[cells]
    )


def _keep(problem: Problem, seen: Strata, intensity: Any) -> None:
    """Keep the intensities under their name, 0 in strata without a sample."""
    import pymc as pm
    import pytensor.tensor as pt

    if problem.known_margins is None:
        pm.Deterministic("intensity", intensity[0])
    else:
        every = pt.zeros(problem.known_margins.size)[seen.kept].set(intensity)
        known = problem.known_margins
        pm.Deterministic("intensity", every.reshape(known.shape), dims=known.dims)
