"""The posterior of the Dirichlet-multinomial log-linear model with main effects,
without a Markov chain.

Importance sampling. Under independence the margins' posterior would be far too narrow:
where the table departs from the model (κ ≪ n) many individuals of a cell count as one
observation of the margins. Given κ and the margins, the number of such observations in
a cell has expectation ``t = a (ψ(a + f) - ψ(a))`` with ``a = κπ`` (the tables of a
Chinese restaurant), so the proposal is a Dirichlet on the expected tables, tempered by
what their own uncertainty ``a² (ψ'(a) - ψ'(a + f))`` leaves. κ comes from a grid whose
heights are the marginal likelihood that this proposal implies at its own mode. Where
too few of these proposals count others are learned from them.
"""

from collections.abc import Mapping, Sequence
from math import log
from typing import Final

import numpy as np
import numpy.typing as npt

from taciturn.diagnostics import ImportanceDiagnostics, highest_k_hat
from taciturn.errors import PriorError
from taciturn.estimators.log_linear.model import effect_name
from taciturn.estimators.log_linear.posterior import KappaPrior, Known, log_posteriors
from taciturn.estimators.log_linear.proposals import (
    HIGHEST_KAPPA,
    LOWEST_KAPPA,
    find_proposals,
    propose,
)
from taciturn.estimators.log_linear.ratios import Ratios
from taciturn.estimators.priors import Prior
from taciturn.estimators.problem import Problem
from taciturn.estimators.sampling.adaptive import adapted
from taciturn.estimators.sampling.importance import proposals_for, resample
from taciturn.interrupts import interruptible_kernels

__all__ = ["design_of", "kappa_prior", "known_of", "sample_main_effects"]

_MOST_PROPOSALS: Final = (
    40_000  # tried where few proposals count: large samples far from independence
)
_MOST_LEARNED: Final = 60  # shares, of whose covariances few proposals tell little
_TAIL: Final = 1e-7
_BLOCK: Final = 2**24

Floats = npt.NDArray[np.float64]
Levels = npt.NDArray[np.int64]


@interruptible_kernels()
def sample_main_effects(
    problem: Problem,
    dims: Sequence[str],
    priors: Mapping[str, Prior],
    draws: int,
    rng: np.random.Generator,
) -> tuple[Floats, list[Floats], ImportanceDiagnostics]:
    """Draws of κ and of the margin of each of `dims`; the other variables are uniform.

    Returns
    -------
    array, shape (draws,)
        κ.
    list of array, shape (draws, categories)
        The margins.
    ImportanceDiagnostics
    """
    known, prior = known_of(problem, dims, priors), kappa_prior(priors["kappa"])
    proposals = find_proposals(known, prior)
    for number in (proposals_for(draws), max(draws, _MOST_PROPOSALS)):
        kappa, log_margins, log_proposal = propose(known, proposals, number, rng)
        log_weights = _log_posteriors(kappa, log_margins, known, prior) - log_proposal
        chosen, diagnostics = resample(log_weights, draws, rng)
        if diagnostics.converged and diagnostics.k_hat <= highest_k_hat(number):
            break
    else:
        # Near known margins shares are the narrower the larger κ: proposals miss them.
        free = int(known.starts[-1]) - len(dims)
        if problem.known_margins is None and 0 < free <= _MOST_LEARNED:
            learned = _learned(known, prior, log_weights, kappa, log_margins, draws, rng)
            if learned is not None:
                return learned
    return kappa[chosen], _margins(known, log_margins[chosen]), diagnostics


def _log_posteriors(kappa: Floats, log_margins: Floats, known: Known, prior: KappaPrior) -> Floats:
    """Some at a time, between which the work can be interrupted."""
    step, found = max(1, _BLOCK // (len(known.counts) + known.fillable.shape[1])), []
    for start in range(0, len(kappa), step):
        rows = slice(start, start + step)
        found.append(log_posteriors(kappa[rows], log_margins[rows], known, prior))
    return np.concatenate(found)


def _margins(known: Known, logs: Floats) -> list[Floats]:
    """Those of each variable, (draws, categories)."""
    return np.split(np.exp(logs), known.starts[1:-1], axis=1) if len(known.prior) else []


def _learned(
    known: Known,
    prior: KappaPrior,
    log_weights: Floats,
    kappa: Floats,
    log_margins: Floats,
    draws: int,
    rng: np.random.Generator,
) -> tuple[Floats, list[Floats], ImportanceDiagnostics] | None:
    """Draws from proposals that are learned from others, if they can be."""
    ratios = Ratios.to_likeliest(np.split(log_margins, known.starts[1:-1], axis=1))

    def log_posterior(kappa: Floats, margins: list[Floats]) -> Floats:
        return _log_posteriors(kappa, np.concatenate(margins, axis=1), known, prior)

    found = adapted(
        lambda points: ratios.log_density(log_posterior, points),
        ratios.points(kappa, np.split(log_margins, known.starts[1:-1], axis=1)),
        log_weights,
        draws,
        rng,
    )
    if found is None:
        return None
    points, diagnostics = found
    log_kappa, learned = ratios.parameters(points)
    return np.exp(log_kappa), [np.exp(margin) for margin in learned], diagnostics


def kappa_prior(prior: Prior) -> KappaPrior:
    """The prior of κ as compiled code takes it, and the logarithms of the ends of what
    it reaches, but for its outermost tails.
    """
    low, high = prior.quantile(_TAIL), prior.quantile(1 - _TAIL)
    if not 0 <= low < HIGHEST_KAPPA or not high > LOWEST_KAPPA:
        raise PriorError(
            f"the prior of 'kappa' must reach between {LOWEST_KAPPA:g} and {HIGHEST_KAPPA:g}, got"
            f" {prior!r}"
        )
    ends = log(max(low, LOWEST_KAPPA)), log(min(high, HIGHEST_KAPPA))
    return KappaPrior(*prior.coded, *ends)


def design_of(
    problem: Problem, dims: Sequence[str], priors: Mapping[str, Prior]
) -> tuple[Levels, Levels, Floats, float]:
    """Levels of all cells, where the categories of each margin start, its prior, and
    the logarithm of the share of a cell within its categories.
    """
    sizes = [problem.sample.sizes[dim] for dim in dims]
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    index = np.indices(problem.sample.shape).reshape(problem.sample.ndim, -1)
    levels = index[[problem.variables.index(dim) for dim in dims]] + starts[:-1, None]
    prior = [priors[effect_name((dim,))].parameters["a"] for dim in dims]
    uniform = [problem.sample.sizes[dim] for dim in problem.variables if dim not in dims]
    return levels, starts, np.array(prior), -float(np.log(uniform).sum())


def known_of(problem: Problem, dims: Sequence[str], priors: Mapping[str, Prior]) -> Known:
    """What is known of a sample, from occupied cells only."""
    levels, starts, prior, constant = design_of(problem, dims, priors)
    occupied, fillable = problem.occupied, problem.fillable.ravel()
    return Known(
        problem.counts[occupied].astype(float),
        np.ascontiguousarray(levels[:, occupied]),
        starts,
        prior,
        constant,
        np.ascontiguousarray(levels[:, fillable if not fillable.all() else slice(0, 0)]),
        *_strata(problem, dims, starts),
    )


def _strata(
    problem: Problem, dims: Sequence[str], starts: Levels
) -> tuple[Levels, float, Levels, Floats, Floats]:
    """What is known of the strata of known margins."""
    members = np.ascontiguousarray(problem.strata[problem.fillable.ravel()])
    known = problem.known_margins
    if known is None:
        return np.empty((len(dims), 0), dtype=np.int64), 0.0, members, np.empty(0), np.empty(0)
    levels = dict(zip(known.dims, np.indices(known.shape).reshape(known.ndim, -1), strict=True))
    nowhere = np.full(known.size, -1)
    strata = [
        levels[dim] + start if dim in levels else nowhere
        for dim, start in zip(dims, starts[:-1], strict=True)
    ]
    uniform = [known.sizes[dim] for dim in known.dims if dim not in dims]
    sampled = np.bincount(problem.strata, weights=problem.counts, minlength=known.size)
    return (
        np.array(strata, dtype=np.int64).reshape(len(dims), known.size),
        -float(np.log(uniform).sum()),
        members,
        sampled,
        problem.stratum_sizes.astype(float),
    )
