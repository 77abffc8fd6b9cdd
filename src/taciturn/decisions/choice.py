"""The protection with the least expected loss, what another would cost, and what it
would be worth to know the population.
"""

from collections.abc import Mapping, Sequence
from itertools import islice

import numpy as np
import xarray as xr

from taciturn.decisions.constraint import Constraint
from taciturn.decisions.decision import Decision
from taciturn.decisions.expectations import Expectation, checked_question
from taciturn.decisions.monte_carlo import ROUNDING, least_by_draw
from taciturn.progress import progress_bar
from taciturn.risk.outcomes import outcomes
from taciturn.risk.table_risk import DEFAULT_WEIGHTS
from taciturn.validate import check_weights

__all__ = ["choose_protection", "decided"]


def choose_protection(
    released: Mapping[str, xr.DataArray],
    *,
    table: xr.DataArray,
    population: xr.DataArray | None = None,
    loss: str | Mapping[str, float],
    constraint: Constraint | None = None,
    weights: Sequence[float] = DEFAULT_WEIGHTS,
    where: xr.DataArray | None = None,
    association: Sequence[str] | None = None,
    progressbar: bool = True,
) -> Decision:
    r"""The protection with the least expected loss, among those that keep a constraint.

    With the loss :math:`L_{a,d,i}` of protection `a`, if `d` is the population and `i`
    the release,

    .. math::

        a^* = \arg\min_{a \in A} \bar L_a, \qquad
        \bar L_a = \frac{1}{D B_a} \sum_{d,i} L_{a,d,i}, \qquad
        A = \Bigl\{a : \frac{1}{D B_a} \sum_{d,i} 1[M_{a,d,i} \le t] \ge p\Bigr\}

    and what it would be worth to be told the population before choosing, the expected
    value of perfect information, is

    .. math::

        \mathrm{EVPI} = \min_{a \in A} \bar L_a
            - \frac1D \sum_d \min_{a \in A} \bar L_{a,d}, \qquad
        \bar L_{a,d} = \frac{1}{B_a} \sum_i L_{a,d,i}

    Parameters
    ----------
    released : mapping of str to DataArray
        The candidates: what each method releases, under its name, a table or replicates
        of one. `perturbation.grid` makes those of all values of a parameter.
    table : DataArray
        The table that was protected; information loss is measured against it.
    population : DataArray, optional
        Whose risk it is: the population table, or posterior draws of it where `table`
        is a sample, ``fit["posterior_predictive"]["population"]``. Without it `table`
        is the population.
    loss : str or mapping of str to float
        What is to be small: ``"R2"``, a measure of `information_loss` of which less is
        better, or prices of several, each above 0, of which the weighted sum is taken,
        in whatever unit the prices have. ``spearman`` counts by what it is less than 1,
        a change of association, such as ``cramers_v_change``, by its size.
    constraint : Constraint, optional
        What must be kept with at least some probability. Needed unless R2 has a price:
        otherwise nothing weighs the risk.
    weights, where
        As in `disclosure_risk`.
    association : sequence of two str, optional
        As in `information_loss`.
    progressbar : bool
        Show progress, on standard error or below the cell of a notebook.

    Returns
    -------
    Decision
        Prints as a few sentences.

    Raises
    ------
    ParameterError
        No candidate, a loss, prices, a constraint or weights that cannot be, a loss
        that is not defined for the table, nothing that weighs the risk.
    TableError
        Tables with other categories, and what `disclosure_risk` refuses.

    Notes
    -----
    *Monte Carlo errors* take each draw for one of its Markov chain, draws from weighted
    proposals for as many as the attribute ``independent_draws`` of `population` says,
    which a fit writes and arithmetic may lose, and replicates for independent; a single
    replicate is taken for all that a method may release. Where two candidates have as
    many replicates these are compared one to one, so that those of the same seed make
    the margin surer. The error of the value of information takes what is best in each
    draw as it is found; noise of few replicates also raises the value itself, as the
    least of noisy means is too low.

    *A constraint that is met* by a bound or a probability exactly is kept: what is
    above the bound, or below the probability, by no more than 1e-12, or this part of a
    bound above 1, is rounding. Losses that agree to twelve digits are the same; of the
    best ones the first is then taken.

    *Doubt* about a constraint is that of Wilson's interval with two standard errors,
    :math:`(\hat p + 2/n \pm 2\sqrt{V + 1/n^2}) / (1 + 4/n)`, with `V` the variance over
    draws and replicates and `n` the effective number of draws or the number of
    replicates, whichever is smaller. All of 10 replicates within the bound leave 0.71
    to 1; to be sure of 0.95 takes 76. A probability of 1 is in doubt as long as
    anything is drawn.

    *How far a constraint can be trusted.* Its probability is that of the draws, whose
    upper tail may be too low: see `Constraint`.

    *A constraint and the value of information.* The constraint is about what is known
    now, so that the candidates that keep it are fixed, and information is valued for a
    choice among these. With a loss that does not depend on the population it then is
    worth nothing. If what is learned could change which candidates are allowed, it
    could also forbid the best of them, and its value could be below 0.

    *Prices* are not found by computing: what a unit of R2 is worth in units of loss is
    for those who answer for the release to say. Try several.

    References
    ----------
    Raiffa & Schlaifer (1961), Applied statistical decision theory, Harvard University.
    Wilson (1927), Probable inference, the law of succession, and statistical inference,
    JASA 22, 209-212.
    Zaslavsky & Horton (1998), Balancing disclosure risk against the loss of
    nonpublication, Journal of Official Statistics 14.

    See Also
    --------
    compare_protections : Differences between candidates in risk and in loss.
    decisions.value_of_sample : What a larger sample would be worth.

    Examples
    --------
    >>> import taciturn as tc
    >>> table = tc.load_dataset("area_by_religion")
    >>> candidates = {
    ...     "as it is": table,
    ...     "nearest 3": tc.perturbation.conventional_round(table, rounding_base=3),
    ...     "nearest 5": tc.perturbation.conventional_round(table, rounding_base=5),
    ... }
    >>> tc.choose_protection(
    ...     candidates,
    ...     table=table,
    ...     loss="hellinger",
    ...     constraint=tc.Constraint("R2", at_most=0.22),
    ...     progressbar=False,
    ... ).chosen
    'nearest 3'
    """
    question = checked_question(loss, constraint, check_weights(weights))
    each = outcomes(
        released, table=table, population=population, where=where, association=association
    )
    expected = {}
    with progress_bar("candidates", len(released), shown=progressbar) as bar:
        for name, outcome in each:
            expected[name] = question.answer(outcome)
            bar.advance()
    return decided(expected)


def decided(expected: Mapping[str, Expectation]) -> Decision:
    """The decision that follows from what is expected of each candidate."""
    question = next(iter(expected.values())).question
    ranked = sorted(expected, key=lambda name: _but_for_rounding(expected[name].loss.mean))
    feasible = {name: expected[name] for name in ranked if expected[name].feasible}
    chosen, runner_up = (next(islice(feasible, at, None), None) for at in (0, 1))
    regret: tuple[float | None, float | None] = (None, None)
    worth = regret
    if chosen is not None:
        own = feasible[chosen].loss
        worth = least_by_draw([each.loss for each in feasible.values()])
        if runner_up is not None:
            other = feasible[runner_up].loss
            regret = max(other.mean - own.mean, 0.0), other.error_beside(own)
    in_place = ranked if chosen is None else ranked[: ranked.index(chosen) + 1]
    return Decision(
        chosen=chosen,
        runner_up=runner_up,
        regret=regret[0],
        regret_mcse=regret[1],
        perfect_information=worth[0],
        perfect_information_mcse=worth[1],
        candidates=_table(expected, feasible),
        doubtful=tuple(name for name in in_place if expected[name].doubtful),
        prices=question.prices,
        constraint=question.constraint,
    )


def _but_for_rounding(loss: float) -> float:
    """A loss to twelve digits: of those that are then the same the first is taken."""
    return float(f"{loss:.12g}")


def _table(expected: Mapping[str, Expectation], feasible: Mapping[str, Expectation]) -> xr.Dataset:
    """What is said of each candidate."""
    best = dict.fromkeys(expected, 0.0)
    if feasible:
        losses = np.stack([each.loss.by_draw for each in feasible.values()])
        shares = (losses <= losses.min(axis=0) * (1 + ROUNDING)).mean(axis=1)
        best |= dict(zip(feasible, map(float, shares), strict=True))
    rows = {
        "expected_loss": [each.loss.mean for each in expected.values()],
        "mcse": [each.loss.error for each in expected.values()],
        "kept": [1.0 if each.kept is None else each.kept.mean for each in expected.values()],
        "kept_mcse": [0.0 if each.kept is None else each.kept.error for each in expected.values()],
        "feasible": [each.feasible for each in expected.values()],
        "best": list(best.values()),
    }
    return xr.Dataset(
        {name: ("protection", values) for name, values in rows.items()},
        coords={"protection": list(expected)},
    )
