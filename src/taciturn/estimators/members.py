"""Members of a pool and their shares, as they are given, and as the sample moves them
where members are special cases of another one.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from math import isclose
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from taciturn.errors import ParameterError, TableError
from taciturn.estimators.base import Estimator
from taciturn.estimators.bayesian import BayesianEstimator
from taciturn.estimators.block_estimator import BlockEstimator, LearnedBlock
from taciturn.estimators.blocks import TableBlock
from taciturn.estimators.mixture import turns
from taciturn.estimators.priors import Prior
from taciturn.estimators.problem import Problem
from taciturn.estimators.settings import Parameters, SamplerSettings
from taciturn.estimators.unlabelled import UnlabelledEstimator
from taciturn.parallel import in_threads, linear_algebra_alone
from taciturn.progress import progress_steps
from taciturn.schema import RESERVED_NAMES
from taciturn.validate import quoted, real_number

__all__ = [
    "Nested",
    "check_members",
    "check_nested",
    "check_shares",
    "check_values",
    "evidence_near",
    "learn_blocks",
    "learn_members",
    "refuse_name_clash",
    "shares_by_evidence",
    "whose_turns",
]

Nested = Mapping[str, Mapping[str, float]]
"""By the names of members: the values of parameters of the member that is not named at
which it is the member that is."""

_NUMBERS: Final = 2**17  # that learning works on for each cell, at least
_NEAR: Final = 0.15  # of the prior probability of a parameter lies near a value
_TEMPER: Final = 0.5  # exponent of the evidence
_LEAST: Final = 0.01  # evidence
_FEWEST: Final = 10  # draws of the prior near values, without which nothing is said


def check_members(members: Any) -> dict[str, Estimator]:
    """What is given for `members`.

    Raises
    ------
    ParameterError
        Fewer than two, one that is not a Bayesian estimator, or a name that is not
        letters and digits.
    """
    if not isinstance(members, Mapping) or len(members) < 2:
        raise ParameterError(
            f"members must be a mapping of at least two names to estimators, got {quoted(members)}"
        )
    for name, member in members.items():
        if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z][A-Za-z0-9]*", name):
            raise ParameterError(
                f"the name of a member must be letters and digits, got {quoted(name)}"
            )
        if name in RESERVED_NAMES or name == "individual":
            raise ParameterError(
                f"{name!r} is a name that fits use themselves: give the member another"
            )
        if not isinstance(member, BayesianEstimator):
            raise ParameterError(
                f"the member {name!r} must be a Bayesian estimator, got {quoted(member)}"
            )
    return dict(members)


def learn_members(
    members: Mapping[str, Estimator],
    problem: Problem,
    settings: SamplerSettings,
    seeds: Mapping[str, int],
) -> dict[str, Parameters]:
    """What every member learns: on plain arrays all at the same time, with Markov
    chains and compilers one after the other.
    """
    plain = {
        name: member
        for name, member in members.items()
        if isinstance(member, UnlabelledEstimator) and member.learns_on_plain_arrays
    }

    def trusted(name: str) -> Parameters | None:
        return plain[name].learn_trusted(problem, settings, seeds[name])

    def others(name: str) -> Parameters:
        say(f"learning the parameters of {name}")
        learn = plain[name].learn_nuts if name in plain else members[name].learn
        return learn(problem, settings, seeds[name])

    title = f"learning the parameters of {', '.join(members)}"
    with progress_steps(title, shown=settings.progressbar) as say:
        with linear_algebra_alone():  # also with one thread: numbers do not depend on that
            fast = in_threads(trusted, list(plain), numbers=_NUMBERS * problem.cells)
        found = dict(zip(plain, fast, strict=True))
        return {name: found.get(name) or others(name) for name in members}


def learn_blocks(
    members: Mapping[str, Estimator],
    block: TableBlock,
    draws: int,
    seeds: Sequence[Mapping[str, int]],
) -> list[tuple[BlockEstimator, LearnedBlock]] | None:
    """What every member learns of each of many tables, with seeds of each table by the
    member; None where one of them is left to what takes one table.
    """
    learned = []
    for name, member in members.items():
        if not isinstance(member, BlockEstimator):
            return None
        refuse_name_clash(block.first, member.priors_for(block.first), name)
        rngs = [np.random.default_rng(own[name]) for own in seeds]
        found = member.learn_block(block, draws, rngs)
        if found is None:
            return None
        learned.append((member, found))
    return learned


def check_shares(shares: Any, names: list[str]) -> dict[str, float]:
    """What is given for `shares`, of members with these names.

    Raises
    ------
    ParameterError
        Not a mapping of all members to positive numbers that sum to 1.
    """
    if not isinstance(shares, Mapping) or set(shares) != set(names):
        raise ParameterError(f"shares must have the members {names}, got {quoted(shares)}")
    values = {name: real_number(shares[name], f"the share of {name!r}", least=0) for name in names}
    if min(values.values()) <= 0 or not isclose(sum(values.values()), 1, abs_tol=1e-9):
        raise ParameterError(f"shares must be positive and sum to 1, got {quoted(shares)}")
    return values


def check_nested(nested: Any, names: list[str]) -> dict[str, dict[str, float]]:
    """What is given for `nested`, of members with these names.

    Raises
    ------
    ParameterError
        Not a mapping of all members but one to values of parameters.
    """
    if not isinstance(nested, Mapping) or not set(nested) < set(names):
        raise ParameterError(
            f"nested must name all members but one, of {names}, got {quoted(nested)}"
        )
    if len(nested) != len(names) - 1:
        missing = [name for name in names if name not in nested]
        raise ParameterError(f"nested must name all members but one, but leaves out {missing}")
    found = {}
    for name, values in nested.items():
        named = isinstance(values, Mapping) and all(isinstance(key, str) for key in values)
        if not named or not values:
            raise ParameterError(
                f"nested must have names of parameters with values for {name!r}, got"
                f" {quoted(values)}"
            )
        found[name] = {
            parameter: real_number(value, f"nested: {parameter!r} of {name!r}", least=0)
            for parameter, value in values.items()
        }
    return found


def check_values(nested: Nested, whole: str, priors: Mapping[str, Prior]) -> None:
    """Check values of parameters against the priors of the member that has the others
    as special cases.

    Raises
    ------
    ParameterError
        A parameter that is not fitted or not one number, or a value that it cannot
        have.
    """
    for name, values in nested.items():
        for parameter, value in values.items():
            prior = priors.get(parameter)
            if prior is None or prior.distribution == "Dirichlet":
                single = [own for own, of in priors.items() if of.distribution != "Dirichlet"]
                raise ParameterError(
                    f"nested has a value of {parameter!r} for {name!r}, but the parameters of"
                    f" {whole!r} that are one number are {single}"
                )
            low, high = prior.quantile(0.0), prior.quantile(1.0)
            if not low <= value <= high:
                raise ParameterError(
                    f"nested has {parameter} = {value:g} for {name!r}, but its prior in {whole!r},"
                    f" {prior!r}, is from {low:g} to {high:g}"
                )


def evidence_near(
    values: Mapping[str, float], draws: Mapping[str, Any], priors: Mapping[str, Prior]
) -> float:
    r"""Evidence for the neighbourhood of some values of parameters, against all values.

    .. math:: B = \frac{\Pr(\lvert G_j(\phi_j) - G_j(v_j)\rvert \le 0.15
              \text{ for all } j \mid f)}
              {\prod_j \Pr(\lvert G_j(\phi_j) - G_j(v_j)\rvert \le 0.15)}

    with :math:`G_j` the distribution function of the prior of :math:`\phi_j`: the ratio
    of Savage and Dickey, of a neighbourhood instead of a point, which reaches far where
    the prior of a parameter has little probability.

    Parameters
    ----------
    values : mapping of str to float
        Of parameters, as `check_values` takes them.
    draws : mapping of str to array
        Of the posterior of all parameters, of one shape.
    priors : mapping of str to Prior
        Independent priors of all parameters.

    Returns
    -------
    float
        At least 0.01, as some hundred draws do not tell less from nothing; 1 where
        fewer than ten draws of the prior would be near, which is too few to tell.

    References
    ----------
    Dickey (1971), The weighted likelihood ratio, linear hypotheses on normal location
    parameters, Annals of Mathematical Statistics 42.
    """
    near, expected = np.array(True), 1.0
    for name, value in values.items():
        centre = float(priors[name].level(np.array(value)))
        level = priors[name].level(np.asarray(draws[name]))
        near = near & (np.abs(level - centre) <= _NEAR)
        expected *= min(centre + _NEAR, 1.0) - max(centre - _NEAR, 0.0)
    if near.size * expected < _FEWEST:
        return 1.0
    return max(float(near.mean()) / expected, _LEAST)


def shares_by_evidence(
    shares: Mapping[str, float], evidence: Mapping[str, float]
) -> dict[str, float]:
    r"""Shares in proportion to :math:`w_m B_m^{1/2}`, with 1 for the evidence of the
    member that has the others as special cases.
    """
    own = {name: w * evidence.get(name, 1.0) ** _TEMPER for name, w in shares.items()}
    total = sum(own.values())
    return {name: share / total for name, share in own.items()}


def whose_turns(
    shares: Mapping[str, float], chains: int, draws: int, rng: np.random.Generator
) -> npt.NDArray[np.int64]:
    """Number of the member that makes each draw, (chain, draw): in random order, so
    that neighbouring draws of a chain are as independent as any two draws.
    """
    whose = turns(np.array(list(shares.values())), draws)
    return np.stack([rng.permutation(whose) for _ in range(chains)])


def refuse_name_clash(problem: Problem, names: Iterable[object], member: str) -> None:
    """Raise `TableError` for a variable of the table that is called like a member, or
    like one of its parameters or statistics.
    """
    if member in problem.variables:
        raise TableError(
            f"the variable {member!r} has the name of a member of the pool: rename one of them"
        )
    problem.refuse_names({f"{member}_{own}" for own in names})
