"""How far the parameters of a fit, and the risk, move with the prior."""

import warnings
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.diagnostics import FEWEST_DRAWS, array_stats
from taciturn.errors import FileFormatError, ParameterError, TableError
from taciturn.estimators.bayesian import BayesianEstimator
from taciturn.estimators.priors import Prior
from taciturn.estimators.problem import Problem, make_problem
from taciturn.estimators.settings import Parameters, SamplerSettings, by_blocks
from taciturn.figures import beside
from taciturn.fits.mixtures import Maker, fit_makers
from taciturn.fits.parts import FitParts, fit_parts
from taciturn.fits.risk import risk_of_fit
from taciturn.validate import real_number

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["SENSITIVE", "prior_sensitivity", "sensitivity_lines", "sensitivity_of"]

SENSITIVE: Final = 0.05
"""From here on Kallioinen et al. call a quantity sensitive."""

_RISKS: Final = ("R2", "R1", "tau1")
_POWERS: Final = (0.99, 1.01)

Floats = npt.NDArray[np.float64]
Weights = tuple[Floats, ...]


def prior_sensitivity(fit: xr.DataTree, *, threshold: float = SENSITIVE) -> "pd.DataFrame":
    r"""How far the parameters, R2, R1 and τ1 move when the prior, or the likelihood, is
    raised to a power.

    .. math:: p_\alpha(\phi \mid f) \propto p(\phi)^\alpha \, p(f \mid \phi)
        \qquad\text{or}\qquad p(\phi) \, p(f \mid \phi)^\alpha

    The draws stand for :math:`p_\alpha` with Pareto-smoothed importance weights, so
    nothing is fitted again. The sensitivity of a quantity is the derivative of the
    distance between its distributions under :math:`p_\alpha` and under :math:`p_1` by
    :math:`\log_2 \alpha` at 1, the distance being the cumulative Jensen-Shannon
    distance.

    Parameters
    ----------
    fit : DataTree
        A fit by a Bayesian estimator, a pool or a stack; one that is not assessed is,
        with the default weights.
    threshold : float
        From what sensitivity on a diagnosis is given, in ``[0, 1]``.

    Returns
    -------
    pandas.DataFrame
        One row for each ``quantity``: each parameter that is one number, ``R2``, ``R1``
        and ``tau1``. In a pool or a stack for each ``member`` on its own, over the
        draws that it made; members without priors, and with fewer than 100 draws, are
        left out. The columns ``prior`` and ``likelihood`` are sensitivities, at least 0
        and seldom above 1; 0 for what is the same in all draws. ``driver`` is the
        parameter whose prior alone moves the quantity most, and ``diagnosis`` is in
        ArviZ's words.

    Raises
    ------
    TableError
        A group or a parameter is missing from the fit, or the draws break the
        population contract.
    FileFormatError
        The fit does not say what made it, so its priors are not known.
    ParameterError
        No parameter has a prior; fewer than 100 draws; `threshold` out of range.

    Notes
    -----
    *Scale.* Densities with a power depend on the scale they are taken on. Here it is
    the logarithm for a parameter whose prior has no upper end, and the value itself for
    one that has, as for a discount or a margin. On these scales a power changes how
    much a log-normal prior knows and not where it lies, and leaves uniform priors as
    they are. Distances are between distributions on the same scales.

    *Likelihood.* The joint one of all parameters given the sample. ``log_likelihood``
    in the fit holds leave-one-out conditionals, which `arviz.loo` needs and which do
    not add up to it: the column ``likelihood`` of ``arviz.psense_summary`` is that of a
    pseudo-likelihood. Its column ``prior`` is the same as here for a parameter on the
    same scale; ArviZ takes each parameter's own scale, and all members of a pool
    together.

    *Interpretation.* It says how much depends on how spread out a prior is, close to
    that prior. It does not say whether the model holds. A parameter may well be
    sensitive where the risk is not: the latter counts. In fits with few effective draws
    sensitivities have noise of their own, about 0.02 with 100 draws and 0.005 with
    4,000.

    References
    ----------
    Kallioinen, Paananen, Bürkner & Vehtari (2024), Detecting and diagnosing prior and
    likelihood sensitivity with power-scaling, Statistics and Computing 34, 57.
    https://doi.org/10.1007/s11222-023-10366-5

    Examples
    --------
    >>> import taciturn as tc
    >>> religion = tc.load_dataset("area_by_religion")
    >>> sample = tc.draw_sample(religion, fraction=0.1, random_seed=1)
    >>> fit = tc.ChineseRestaurant().fit(sample, population_size=2449, random_seed=1)
    >>> table = tc.prior_sensitivity(fit)
    >>> table.index.tolist()
    ['theta', 'discount', 'R2', 'R1', 'tau1']
    >>> bool(table.loc["R2", "prior"] < 0.05)
    True
    """
    parts = fit_parts(fit)
    threshold = real_number(threshold, "threshold", least=0, most=1)
    return sensitivity_of(fit, parts, risk=None, threshold=threshold)


def sensitivity_of(
    fit: xr.DataTree, parts: FitParts, *, risk: xr.Dataset | None, threshold: float = SENSITIVE
) -> "pd.DataFrame":
    """`prior_sensitivity` of a fit with these parts; assessed where `risk` is None."""
    import pandas as pd

    problem = make_problem(parts.sample, **parts.given)
    draws = parts.population.sizes
    makers = fit_makers(fit, chains=draws["chain"], draws=draws["draw"])
    fitted = _with_priors(makers, problem)
    risk = risk_of_fit(fit, parts) if risk is None else risk
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for name, maker in fitted.items():
        rows |= {(name, quantity): row for quantity, row in _rows(maker, problem, risk).items()}
    table = pd.DataFrame.from_dict(rows, orient="index", columns=["prior", "likelihood", "driver"])
    table["diagnosis"] = [
        _diagnosis(prior, data, threshold)
        for prior, data in zip(table["prior"], table["likelihood"], strict=True)
    ]
    table.index = pd.MultiIndex.from_tuples(table.index, names=["member", "quantity"])
    return table if len(makers) > 1 else table.droplevel("member")


def sensitivity_lines(table: "pd.DataFrame") -> list[str]:
    """What `prior_sensitivity` found, in plain words: first of R2, then of the
    parameters.
    """
    moved, highest, parameters = [], 0.0, []
    rows: Any = table.reset_index().itertuples()
    for row in rows:
        whose = f"{row.member} " if "member" in row._fields else ""
        prior = beside(row.prior, SENSITIVE, decimals=2)
        if row.quantity == "R2":
            highest = max(highest, row.prior)
            if row.prior >= SENSITIVE:
                moved.append(
                    f"{whose}R2 moves with the priors (sensitivity {prior}, above"
                    f" {SENSITIVE:g}), most with that of {whose}{row.driver}"
                )
        elif row.quantity not in _RISKS and row.prior >= SENSITIVE:
            parameters.append(f"{whose}{row.quantity} {prior}")
    most = beside(highest, SENSITIVE, decimals=2)
    lines = moved or [f"R2 hardly moves with the priors (sensitivity at most {most})"]
    return lines + (
        [f"parameters that move with the priors: {', '.join(parameters)}"] if parameters else []
    )


def _with_priors(makers: Mapping[str, Maker], problem: Problem) -> dict[str, Maker]:
    """Those with parameters that have priors, and with draws enough to weigh."""
    if all(maker.estimator is None for maker in makers.values()):
        raise FileFormatError(
            "the fit does not record an estimator of this package, so its priors are not known"
        )
    fitted = {
        name: maker
        for name, maker in makers.items()
        if isinstance(maker.estimator, BayesianEstimator) and maker.estimator.priors_for(problem)
    }
    if not fitted:
        made_by = ", ".join(repr(maker.estimator) for maker in makers.values())
        raise ParameterError(f"no parameter has a prior in {made_by}")
    enough = {name: maker for name, maker in fitted.items() if maker.made.sum() >= FEWEST_DRAWS}
    if not enough:
        most = max(int(maker.made.sum()) for maker in fitted.values())
        raise ParameterError(
            f"{most} draws are too few to weigh: at least {FEWEST_DRAWS} are needed"
        )
    return enough


def _in_one_chain(draws: xr.Dataset, chosen: npt.NDArray[np.bool_]) -> xr.Dataset:
    arrays = {
        name: array.transpose("chain", "draw", ...) for name, array in draws.data_vars.items()
    }
    return xr.Dataset(
        {name: (array.dims, array.values[chosen][None]) for name, array in arrays.items()}
    )


def _rows(maker: Maker, problem: Problem, risk: xr.Dataset) -> dict[str, dict[str, Any]]:
    estimator = maker.estimator
    assert isinstance(estimator, BayesianEstimator)
    priors = estimator.priors_for(problem)
    posterior = xr.Dataset() if maker.posterior is None else maker.posterior
    missing = [name for name in priors if name not in posterior]
    if missing:
        raise TableError(f"the fit has no draws of the parameter {missing[0]!r} of {estimator!r}")
    posterior, risk = _in_one_chain(posterior, maker.made), _in_one_chain(risk, maker.made)
    parameters = Parameters(posterior)
    densities = estimator.log_prior(problem, parameters)
    assert densities is not None
    each = {str(name): density.values.ravel() for name, density in densities.items()}
    alone = {name: _power_weights(density) for name, density in each.items()}
    together = _power_weights(np.sum(list(each.values()), axis=0))
    settings = SamplerSettings(posterior.sizes["draw"], 0, 1, 0, False)
    likelihood = _power_weights(
        by_blocks(estimator.log_joint, problem, settings, parameters).ravel()
    )
    rows = {}
    for name, values in _quantities(priors, posterior, risk):
        moved_by = {one: _sensitivity(values, weights) for one, weights in alone.items()}
        driver = max(moved_by, key=lambda one: moved_by[one])
        rows[name] = {
            "prior": _sensitivity(values, together),
            "likelihood": _sensitivity(values, likelihood),
            "driver": driver if moved_by[driver] > 0 else "",
        }
    return rows


def _quantities(
    priors: Mapping[str, Prior], posterior: xr.Dataset, risk: xr.Dataset
) -> Iterator[tuple[str, Floats]]:
    """Parameters that are one number, on the scale of their prior's density, and the
    risk.
    """
    for name, prior in priors.items():
        if posterior[name].ndim == 2:
            values = posterior[name].values.ravel()
            yield name, values if prior.is_bounded else np.log(values)
    for name in _RISKS:
        yield name, risk[name].values.ravel().astype(float)


def _power_weights(log_density: Floats) -> Weights | None:
    """Weights of the draws that raise a density to each of the powers; None for one
    that is the same in all draws.
    """
    if np.ptp(log_density) == 0:
        return None
    weights = []
    for power in _POWERS:
        with warnings.catch_warnings():
            warnings.filterwarnings(
                "ignore", "Number of tail draws", UserWarning
            )  # fewer or more are as good here
            try:
                logs = array_stats().power_scale_lw(log_density, alpha=power)
            except ValueError:  # all values of a tail are the same: nothing to smooth
                logs = (power - 1) * log_density
        relative = np.exp(logs - logs.max())
        weights.append(relative / relative.sum())
    return tuple(weights)


def _sensitivity(values: Floats, weights: Weights | None) -> float:
    if weights is None or np.ptp(values) == 0:
        return 0.0
    sense = array_stats().power_scale_sense
    return float(sense(values[None], *(each[None] for each in weights), *_POWERS))


def _diagnosis(prior: float, likelihood: float, threshold: float) -> str:
    if prior < threshold:
        return "✓"
    return (
        "potential prior-data conflict"
        if likelihood >= threshold
        else "potential strong prior / weak likelihood"
    )
