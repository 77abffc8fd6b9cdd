"""One protection against another, on the same draws of the population."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import xarray as xr

from taciturn.decisions.measures import DECIMALS, RISK, check_loss, values_of
from taciturn.decisions.monte_carlo import Means
from taciturn.decisions.pairs import both_less, less_and_same, quantile_of_differences
from taciturn.progress import progress_bar
from taciturn.risk.outcomes import Dependence, outcomes
from taciturn.risk.table_risk import DEFAULT_WEIGHTS
from taciturn.validate import check_weights, interval_probability, one_of

__all__ = ["compare_protections"]

_BETWEEN: Final = ("releases", "methods")
_STATISTICS: Final = ("mean", "lower", "upper")

Floats = npt.NDArray[np.float64]


class _Candidate(NamedTuple):
    """R2, (draws, replicates), and a loss, (1, replicates)."""

    risk: Floats
    loss: Floats


def compare_protections(
    released: Mapping[str, xr.DataArray],
    *,
    table: xr.DataArray,
    population: xr.DataArray | None = None,
    reference: str | None = None,
    loss: str = "hellinger",
    weights: Sequence[float] = DEFAULT_WEIGHTS,
    where: xr.DataArray | None = None,
    association: Sequence[str] | None = None,
    probability: float = 0.95,
    progressbar: bool = True,
) -> xr.Dataset:
    r"""Differences between protections in R2 and in information loss, and the
    probability that one is better than another.

    Intervals of `risk_utility` may overlap wholly although one protection has less risk
    than another in nearly every population that the sample may come from: what makes
    the risk of both high or low together is common to them, and goes out of the
    difference. With draws `d` of the population and replicates `i` and `j` of two
    protections, two questions are answered:

    .. math::

        \text{releases:}\quad & P(R_a < R_b) = \frac{1}{D B_a B_b}
            \sum_d \sum_{i,j} 1[R_{a,d,i} < R_{b,d,j}] \\
        \text{methods:}\quad & P(\bar R_a < \bar R_b) = \frac1D
            \sum_d 1[\bar R_{a,d} < \bar R_{b,d}], \qquad
            \bar R_{a,d} = \frac{1}{B_a} \sum_i R_{a,d,i}

    Which release would turn out better, chance included, is the first; which method is
    better on average over what it may release, so that only the population is
    uncertain, is the second.

    Parameters
    ----------
    released : mapping of str to DataArray
        What each method releases, under its name: a table, or replicates of one.
    table : DataArray
        The table that was protected; information loss is measured against it.
    population : DataArray, optional
        Whose risk it is: the population table, or posterior draws of it where `table`
        is a sample. Without it `table` is the population.
    reference : str, optional
        The protection that the others are compared with; by default all with all.
    loss : str
        A measure of `information_loss` of which less is better: a distance or lost or
        new zeros as they are, ``spearman`` by what it is less than 1, and a change of
        association, such as ``cramers_v_change``, by its size.
    weights, where
        As in `disclosure_risk`.
    association : sequence of two str, optional
        As in `information_loss`.
    probability : float
        Of the equal-tailed intervals, from 0.01 to 0.9999.
    progressbar : bool
        Show progress, on standard error or below the cell of a notebook.

    Returns
    -------
    Dataset
        Dims ``protection``, ``reference`` (a coordinate, where one is given),
        ``between`` (``releases``, ``methods``) and ``statistic`` (``mean``, ``lower``,
        ``upper``):

        - ``risk_difference`` and ``loss_difference``, protection less reference, (all
          four); the difference in loss between methods is one number, as the loss does
          not depend on the population;
        - ``less_risk``, ``less_loss``, ``less_both``: the probability that the
          protection has less than the reference, and ``same_risk`` and ``same_loss``,
          that both have the same, which counts as less for neither: what is left is the
          probability of more;
        - ``risk_mcse`` and ``loss_mcse`` (protection, reference): Monte Carlo errors of
          the means;
        - ``frontier`` (protection): the share of the draws of the population in which
          no other method has at most as much risk and loss, and less of one of them.

    Raises
    ------
    ParameterError
        No method, a name that is not text, an unknown reference or loss, one that is
        not defined for the table, weights or a probability out of range.
    TableError
        Tables with other categories, and what `disclosure_risk` refuses.

    Notes
    -----
    *What is common.* A draw of the population is common to all protections. Given it,
    releases of two methods are independent, so all pairs of their replicates are taken
    within each draw, which also counts pairs of the same seed, ``1 / B`` of them. Risk
    and loss of one protection are those of the same replicate. R1 is not compared, as
    it is the same whatever is released.

    *The same.* Values that differ by less than 1e-12 are the same. A protection and
    itself are the same release.

    *Ends of intervals.* The lower end is the smallest difference that has at least the
    tail's share of all pairs at or below it, the upper end the largest that has it at
    or above it, so that a protection and its reference can be exchanged.

    References
    ----------
    Duncan, Keller-McNulty & Stokes (2001), Disclosure risk vs. data utility: the R-U
    confidentiality map, National Institute of Statistical Sciences, technical report
    121.

    See Also
    --------
    choose_protection : The protection with the least expected loss.
    risk_utility : Each protection on its own.

    Examples
    --------
    >>> import taciturn as tc
    >>> table = tc.load_dataset("area_by_religion")
    >>> given = {"replicates": 100, "random_seed": 1}
    >>> methods = {
    ...     "round to 3": tc.random_round(table, rounding_base=3, **given),
    ...     "round to 5": tc.random_round(table, rounding_base=5, **given),
    ... }
    >>> found = tc.compare_protections(
    ...     methods, table=table, reference="round to 3", progressbar=False
    ... )
    >>> five = found.sel(protection="round to 5", between="releases")
    >>> float(five["less_risk"]), float(five["less_loss"]), float(five["less_both"])
    (0.9858, 0.0008, 0.0)
    """
    weights, loss = check_weights(weights), check_loss(loss, "loss")
    probability = interval_probability(probability)
    each = outcomes(
        released, table=table, population=population, where=where, association=association
    )
    if reference is not None:
        one_of(reference, "reference", list(released))
    found, dependence = {}, Dependence()
    with progress_bar("protections", len(released), shown=progressbar) as bar:
        for name, outcome in each:
            dependence = outcome.dependence
            found[name] = _Candidate(
                *(values_of(outcome, measure, weights) for measure in (RISK, loss))
            )
            bar.advance()
    references = list(found) if reference is None else [reference]
    tail = (1 - probability) / 2
    rows = [
        [_compared(first, found[second], dependence, tail) for second in references]
        for first in found.values()
    ]
    result = _labelled(rows, list(found), references)
    result["frontier"] = "protection", _frontier([_method(each) for each in found.values()])
    result.attrs = {"loss": loss, "weights": list(weights), "probability": probability}
    return result if reference is None else result.squeeze("reference")


def _compared(
    first: _Candidate, second: _Candidate, dependence: Dependence, tail: float
) -> dict[str, Any]:
    """What is said of one pair, by name, for releases and for methods."""
    if first is second:
        first = second = _method(first)  # a release and itself
    levels = ((_rounded(first), _rounded(second)), (_method(first), _method(second)))
    found: dict[str, Any] = {}
    for name in _Candidate._fields:
        pairs = [(getattr(ours, name), getattr(theirs, name)) for ours, theirs in levels]
        shares = [less_and_same(*pair) for pair in pairs]
        found[f"{name}_difference"] = [_described(*pair, tail) for pair in pairs]
        found[f"less_{name}"] = [less for less, _ in shares]
        found[f"same_{name}"] = [same for _, same in shares]
        ours, theirs = (Means.of(values, dependence) for values in pairs[0])
        found[f"{name}_mcse"] = ours.error_beside(theirs)
    found["less_both"] = [
        both_less((ours.risk, theirs.risk), (ours.loss[0], theirs.loss[0]))
        for ours, theirs in levels
    ]
    return found


def _method(candidate: _Candidate) -> _Candidate:
    """Means over the replicates, in the place of a single one."""
    return _rounded(_Candidate(*(values.mean(axis=1, keepdims=True) for values in candidate)))


def _rounded(candidate: _Candidate) -> _Candidate:
    """Values that are the same where they differ by rounding alone."""
    return _Candidate(*(values.round(DECIMALS) for values in candidate))


def _described(first: Floats, second: Floats, tail: float) -> list[float]:
    """Mean and ends of the differences of all pairs."""
    lower = quantile_of_differences(first, second, tail)
    upper = 0.0 - quantile_of_differences(second, first, tail)  # which is never -0
    return [float(first.mean() - second.mean()), lower, upper]


def _frontier(methods: Sequence[_Candidate]) -> Floats:
    """Share of the draws in which nothing beats each of the methods."""
    risks = np.stack([method.risk[:, 0] for method in methods])  # (methods, draws)
    losses = np.array([method.loss[0, 0] for method in methods])[:, np.newaxis]
    shares = []
    for risk, loss in zip(risks, losses, strict=True):
        no_worse = (risks <= risk) & (losses <= loss)
        better = (risks < risk) | (losses < loss)
        shares.append(1 - (no_worse & better).any(axis=0).mean())
    return np.array(shares)


def _labelled(
    rows: Sequence[Sequence[dict[str, Any]]], protections: list[str], references: list[str]
) -> xr.Dataset:
    """What was found of all pairs as one result."""
    coords = {
        "protection": protections,
        "reference": references,
        "between": list(_BETWEEN),
        "statistic": list(_STATISTICS),
    }
    arrays = {name: np.array([[pair[name] for pair in row] for row in rows]) for name in rows[0][0]}
    return xr.Dataset(
        {name: (tuple(coords)[: values.ndim], values) for name, values in arrays.items()},
        coords=coords,
    )
