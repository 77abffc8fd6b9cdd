"""Log-linear shares of cells in PyMC, the names in such a model, and the
Dirichlet-multinomial model around them.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from taciturn.estimators.formula import Terms
from taciturn.estimators.halves import halves
from taciturn.estimators.log_linear.interactions import Interactions
from taciturn.estimators.priors import Prior
from taciturn.estimators.problem import Problem
from taciturn.tables.labels import labels_of

if TYPE_CHECKING:
    import pymc as pm

__all__ = [
    "COORDINATES",
    "build_model",
    "cell_shares",
    "concentration_name",
    "effect_name",
    "free_interactions",
    "hyperparameters",
    "main_effects",
    "model_coords",
    "model_counts",
    "model_data",
    "model_names",
    "scale_name",
    "sized_variable",
]

COORDINATES: Final = "interaction_coordinates"
_LARGE: Final = 1e5  # concentration
Floats = npt.NDArray[np.float64]


def scale_name(term: tuple[str, ...]) -> str:
    """Name of the size of an interaction."""
    return f"scale_{'_'.join(term)}"


def concentration_name(dim: str) -> str:
    """Name of how even a margin is."""
    return f"concentration_{dim}"


def rates_name(dim: str) -> str:
    """Name of what a margin with a fitted concentration is made of."""
    return f"rates_{dim}"


def effect_name(term: tuple[str, ...]) -> str:
    """Name of the effect of a term, the margin of a main effect."""
    return f"margin_{term[0]}" if len(term) == 1 else f"effect_{'_'.join(term)}"


def model_names(terms: Terms, priors: Mapping[str, Prior], sized: str) -> set[str]:
    """All names in a model with a prior that depends on the size of the sample."""
    fixed = {"sample_counts", "counts", "margins", "sampling_rates", COORDINATES}
    made = {rates_name(term[0]) for term in terms if concentration_name(term[0]) in priors}
    return {
        *fixed,
        *priors,
        *made,
        *map(effect_name, terms),
        *hyperparameters(sized, priors[sized]),
    }


def model_coords(problem: Problem) -> dict[str, list[Any]]:
    """Categories of every variable of the table."""
    return {dim: labels_of(problem.sample[dim]) for dim in problem.variables}


def model_data(problem: Problem, sized: str, prior: Prior) -> dict[str, npt.NDArray[Any]]:
    """What the model holds as data: samples that differ in nothing else share a
    compiled model.
    """
    data = {"counts": model_counts(problem), **hyperparameters(sized, prior)}
    if problem.known_margins is not None:
        data["margins"] = problem.stratum_sizes
    if problem.weighting is not None:
        data["sampling_rates"] = model_rates(problem)
    return data


def free_interactions(terms: Terms, problem: Problem) -> Interactions | None:
    """The coordinates of all interactions; None for main effects only."""
    own = tuple(term for term in terms if len(term) > 1)
    return Interactions(own, problem.sizes) if own else None


def build_model(problem: Problem, terms: Terms, priors: Mapping[str, Prior]) -> "pm.Model":
    """Build the PyMC model of a sample.

    Parameters
    ----------
    problem : Problem
        The sample and what is known of its population.
    terms : Terms
        Those with something to estimate.
    priors : mapping of str to Prior
        Of all parameters.
    """
    import pymc as pm
    import pytensor.tensor as pt

    with pm.Model(coords=model_coords(problem)) as model:
        kappa = sized_variable("kappa", priors["kappa"])
        pi = cell_shares(problem, terms, priors)
        kept = np.flatnonzero(problem.fillable.ravel())
        counts = pm.Data("counts", model_counts(problem))
        _dirichlet_multinomial("sample_counts", kappa * pi, counts)
        if problem.known_margins is not None:
            of_stratum = np.eye(problem.known_margins.size)[problem.strata[kept]]
            sampled = pt.dot(counts, of_stratum)
            a = pt.dot(kappa * pi, of_stratum) + sampled
            rest = pm.Data("margins", problem.stratum_sizes) - sampled
            # Of the individuals not sampled: Dirichlet-multinomial over the strata.
            log_p = (pt.gammaln(a + rest) - pt.gammaln(a))[pt.nonzero(rest)[0]].sum()
            pm.Potential(
                "known_margins", log_p + pt.gammaln(a.sum()) - pt.gammaln(a.sum() + rest.sum())
            )
    return model


def sized_variable(name: str, prior: Prior) -> Any:
    """A parameter whose prior depends on the size of the sample, so that the prior's
    parameters are data.
    """
    import pymc as pm

    parameters = {
        own.removeprefix(f"{name}_"): pm.Data(own, value)
        for own, value in hyperparameters(name, prior).items()
    }
    return prior.variable(name, parameters=parameters)


def cell_shares(problem: Problem, terms: Terms, priors: Mapping[str, Prior]) -> Any:
    """Log-linear shares π of the cells that can be filled, with their parameters."""
    import pymc as pm
    import pytensor.tensor as pt

    sizes = problem.sizes
    margins = {
        dim: pt.log(_margin(dim, sizes[dim], priors))
        for (dim,) in (term for term in terms if len(term) == 1)
    }
    full = main_effects(margins, sizes)
    if interactions := free_interactions(terms, problem):
        full = full + _interaction_effects(interactions, priors)
    return pm.math.softmax(full.ravel()[np.flatnonzero(problem.fillable.ravel())])


def _margin(dim: str, size: int, priors: Mapping[str, Prior]) -> Any:
    """The margin of a variable; how even it is may have a prior of its own.

    It is then in proportion to gamma variates, the logarithms of which have about the
    same distribution for all concentrations once divided by their spread.
    """
    import pymc as pm
    import pytensor.tensor as pt

    if (own := concentration_name(dim)) not in priors:
        return priors[effect_name((dim,))].variable(effect_name((dim,)), dims=dim, size=size)
    a = priors[own].variable(own)
    standard = pm.Flat(rates_name(dim), dims=dim)
    log_rates = standard / pt.sqrt(a)
    # Gamma(a), whose constant cancels for large concentrations
    constant = pt.switch(
        a < _LARGE,
        a * pt.log(a) - a - pt.gammaln(a) - pt.log(a) / 2,
        -np.log(2 * np.pi) / 2 - 1 / (12 * a),
    )
    log_density = constant + a * (log_rates - pt.expm1(log_rates))
    pm.Potential(f"{rates_name(dim)}_density", log_density.sum())
    return pm.Deterministic(effect_name((dim,)), pm.math.softmax(log_rates), dims=dim)


def main_effects(margins: Mapping[str, Any], sizes: Mapping[str, int]) -> Any:
    """Sum of the main effects as a matrix: combinations of categories of the first half
    of the variables by those of the second.
    """
    import pytensor.tensor as pt

    sums = []
    for half in halves(sizes):
        total = pt.zeros(1)
        for dim in half:
            total = (total[:, None] + margins.get(dim, np.zeros(sizes[dim]))).ravel()
        sums.append(total)
    return sums[0][:, None] + sums[1]


def _interaction_effects(interactions: Interactions, priors: Mapping[str, Prior]) -> Any:
    """Sum of all interactions as a matrix like that of `main_effects`; each effect is
    kept under its name.
    """
    import pymc as pm
    import pytensor.tensor as pt

    scales = [priors[name].variable(name) for name in map(scale_name, interactions.terms)]
    raw = pm.Normal(COORDINATES, 0, 1, shape=interactions.size)
    coordinates = raw * pt.stack(scales)[interactions.term]
    between = pt.zeros(interactions.shape)[interactions.row, interactions.column].set(coordinates)
    whole = pt.dot(pt.dot(interactions.left, between), interactions.right.T)
    for number, term in enumerate(interactions.terms):
        effect = pt.dot(interactions.basis(number), coordinates[interactions.term == number])
        shape = [interactions.sizes[dim] for dim in term]
        pm.Deterministic(effect_name(term), effect.reshape(shape), dims=term)
    return whole


def hyperparameters(name: str, prior: Prior) -> dict[str, Floats]:
    """The parameters of a parameter's prior, by name."""
    return {f"{name}_{own}": np.asarray(value) for own, value in prior.parameters.items()}


def model_counts(problem: Problem) -> npt.NDArray[Any]:
    """What the parameters are learned from, of the cells that can be filled."""
    found = problem.counts if problem.whole else problem.learned_from
    return np.asarray(found[problem.fillable.ravel()])


def model_rates(problem: Problem) -> Floats:
    """Relative sampling rates of the cells that can be filled."""
    return problem.relative_rates[problem.fillable.ravel()]


def _log_probability(counts: Any, alpha: Any) -> Any:
    import pytensor.tensor as pt

    n, total = counts.sum(), alpha.sum()
    occupied = pt.nonzero(counts)[0]
    x, a = counts[occupied], alpha[occupied]
    cells = pt.gammaln(a + x) - pt.gammaln(a) - pt.gammaln(x + 1)
    return pt.gammaln(n + 1) + pt.gammaln(total) - pt.gammaln(total + n) + cells.sum()


def _dirichlet_multinomial(name: str, alpha: Any, observed: Any) -> Any:
    """Observed Dirichlet-multinomial whose log-probability is computed from occupied
    cells only: an empty cell adds nothing.
    """
    import pymc as pm

    def logp(value: Any, alpha: Any, _size: Any) -> Any:
        return _log_probability(value, alpha)

    def dist(alpha: Any, size: Any, batch: Any) -> Any:
        return pm.DirichletMultinomial.dist(n=size, a=alpha, size=batch)

    return pm.CustomDist(
        name,
        alpha,
        observed.sum(),
        dist=dist,
        logp=logp,
        signature="(n),()->(n)",
        observed=observed,
    )
