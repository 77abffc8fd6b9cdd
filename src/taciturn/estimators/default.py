"""Which estimator to begin with, by what is known of a table."""

from typing import Final

import xarray as xr

from taciturn.estimators.base import Estimator
from taciturn.estimators.latent_class import LatentClass
from taciturn.estimators.log_linear.dirichlet import DirichletLogLinear
from taciturn.estimators.mixed_poisson import MixedPoisson
from taciturn.estimators.pool import LinearPool
from taciturn.estimators.priors import Prior
from taciturn.estimators.problem import refuse_weighted
from taciturn.tables.checks import check_table

__all__ = ["default_estimator"]

_FEW: Final = 2  # variables, with which neighbouring cells may be alike
_MOST_POOLED: Final = 5  # variables, of the tables on which the pool was tried
_SHARES: Final = {"mixture": 0.425, "wald": 0.425, "dirichlet": 0.15}
_ALIKE: Final = "~ 1"  # of one variable, whose categories' effects are departures of cells
_WIDE: Final = {"nu": Prior("LogNormal", mu=0.0, sigma=2.0)}  # these are uneven or even
_WALD: Final = {"wald": {"share": 1.0}}  # which the mixture has as a special case
_NESTED: Final = _WALD | {"dirichlet": {"share": 0.0, "power": 1.0}}


def default_estimator(
    sample: xr.DataArray,
    *,
    formula: str | None = None,
    known_margins: xr.DataArray | None = None,
    strata: xr.DataArray | None = None,
    sampling_weights: xr.DataArray | None = None,
    effective_size: float | None = None,
) -> Estimator:
    """The estimator to begin with, by the number of variables and what is known.

    For up to five variables it is a `LinearPool` of kinds of departures from a
    log-linear model: `MixedPoisson` with a mixture of gamma and inverse Gaussian
    factors and with inverse Gaussian factors alone, in equal shares at first; for
    two variables with a little of `DirichletLogLinear`. The last two are special cases
    of the first, but for the prior of a Dirichlet model's margins, so that the sample
    moves the shares; not where a Dirichlet model learns from known margins or strata,
    as the others do not. For six or more variables it is `LatentClass`. With what
    latent classes cannot take, a formula, known margins or strata, it is the pool for
    any number of variables, as with weights, where no Dirichlet model is part of it;
    with an effective size `MixedPoisson` with gamma departures.

    For one variable cells depart from being alike, ``"~ 1"``, with a wide prior of
    ``nu``, and no Dirichlet model is part of the pool: the effects of its categories
    and the departures of its cells would be the same thing twice. With known margins or
    strata, which then say all there is to know, it is the pool for two.

    Parameters
    ----------
    sample : DataArray
        The sample's table; only its variables of two categories and more matter.
    formula : str, optional
        Log-linear formula.
    known_margins, strata, sampling_weights : DataArray, optional
        As in `Estimator.fit`, to which they are still to be given.
    effective_size : float, optional
        The same.

    Returns
    -------
    Estimator
        To be fitted, or looked at: it prints as the call that makes it.

    Raises
    ------
    TableError
        A sample that is not a table.

    Notes
    -----
    The choice for one variable, for two, for three to five and for eight rests on how
    often intervals held and how wide they were in repeated samples: see the pages on
    coverage and on large tables. The others follow from what the estimators can take.
    `LatentClass` samples by a Markov chain, which takes minutes for a large table.

    See Also
    --------
    study : How often its intervals hold on a population that you know.

    Examples
    --------
    >>> import taciturn as tc
    >>> religion = tc.load_dataset("area_by_religion")
    >>> sample = tc.draw_sample(religion, fraction=0.1, random_seed=1)
    >>> estimator = tc.default_estimator(sample)
    >>> list(estimator.members)
    ['mixture', 'wald', 'dirichlet']
    >>> fit = estimator.fit(sample, population_size=2449, random_seed=1)
    """
    refuse_weighted(sample)
    sample = check_table(sample, name="sample")
    variables = sum(size > 1 for size in sample.shape)
    told = known_margins is not None or strata is not None
    alike = variables < _FEW and formula is None and not told
    own = {"formula": _ALIKE, "priors": _WIDE} if alike else {"formula": formula}
    if effective_size is not None:
        return MixedPoisson(**own, mixing="gamma")
    others = (formula, known_margins, strata, sampling_weights)
    if variables > _MOST_POOLED and all(given is None for given in others):
        return LatentClass()
    members: dict[str, Estimator] = {
        "mixture": MixedPoisson(**own),
        "wald": MixedPoisson(**own, mixing="inverse Gaussian"),
    }
    if alike or variables > _FEW or sampling_weights is not None:
        return LinearPool(members, nested=_WALD)
    members["dirichlet"] = DirichletLogLinear(formula)
    # A Dirichlet model learns from what is told.
    return LinearPool(members, shares=_SHARES, nested=None if told else _NESTED)
