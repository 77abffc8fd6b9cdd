"""Linear opinion pool: the draws of several estimators in given shares, or in shares
that the sample moves.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from operator import attrgetter
from typing import Any, ClassVar, Self

import numpy as np
import xarray as xr

from taciturn.estimators.base import Estimator
from taciturn.estimators.bayesian import BayesianEstimator
from taciturn.estimators.blocks import TableBlock
from taciturn.estimators.drawing import DrawTables
from taciturn.estimators.log_linear.dirichlet import DirichletLogLinear
from taciturn.estimators.members import (
    Nested,
    check_members,
    check_nested,
    check_shares,
    check_values,
    evidence_near,
    learn_blocks,
    learn_members,
    refuse_name_clash,
    shares_by_evidence,
    whose_turns,
)
from taciturn.estimators.mixture import (
    Turn,
    draws_at,
    member_variables,
    mixture_terms,
    prefixed,
)
from taciturn.estimators.pointwise import by_individual, fits_by_individual
from taciturn.estimators.priors import Prior
from taciturn.estimators.problem import Problem
from taciturn.estimators.settings import Counts, Parameters, PooledParameters, SamplerSettings
from taciturn.estimators.unlabelled import UnlabelledEstimator
from taciturn.estimators.urn.chinese_restaurant import ChineseRestaurant
from taciturn.parallel import in_threads, linear_algebra_alone

__all__ = ["LinearPool"]


@dataclass(frozen=True, repr=False)
class LinearPool(Estimator):
    r"""Mixture of the population draws of several estimators, in shares that are given,
    or that the sample moves.

    .. math:: p(F \mid f) = \sum_m w_m \, p_m(F \mid f)

    Each member is fitted separately; member `m` makes a share :math:`w_m` of the draws.
    By default the members are two families in equal shares: `DirichletLogLinear`, which
    learns from the margins which cells are filled, and `ChineseRestaurant`, which
    learns from the counts how many are filled. `default_estimator` has other members.

    Parameters
    ----------
    members : mapping of str to Estimator, optional
        Bayesian estimators, each under a short name that is put before the names of its
        parameters.
    shares : mapping of str to float, optional
        Share of the draws for each member: positive, summing to 1. Equal by default.
    nested : mapping of str to mapping of str to float, optional
        Where all members but one are special cases of that one: by their names, the
        values of its parameters at which it is them. With it the sample moves the
        shares.

    Raises
    ------
    ParameterError
        Fewer than two members, a member that is a plug-in estimator or a pool, names
        that are not letters and digits, or shares that are not positive, do not sum to
        1 or do not match the members; `nested` without all members but one. On `fit`:
        a value in `nested` of a parameter that is not fitted, or that it cannot have.

    Notes
    -----
    The pool is not the posterior of a single model. With shares given by the evidence
    it would be, and these were tried. But the evidence of a table is almost entirely
    about which cell an individual is in, whereas risk is about how many cells stay
    empty and how uneven they are, so the family that wins on evidence is often the one
    further off in risk. Intervals of the pool widen with the disagreement of its
    members; a pool of members that are each calibrated has wider intervals than
    necessary (Gneiting & Ranjan 2013). `calibrate` therefore applies to the members,
    and what is claimed for the pool rests on repeated samples.

    *Nested members.* Between special cases of one model evidence is about that which
    tells them apart alone, since all else is the same. With `nested` the shares are

    .. math:: w_m(f) \propto w_m B_m^{1/2}, \qquad
              B_m = \frac{\Pr(\phi \approx v_m \mid f)}{\Pr(\phi \approx v_m)}

    with the values :math:`v_m` of parameters :math:`\phi` and :math:`B = 1` for the
    member that has the others as special cases: the evidence for a neighbourhood of the
    values in its posterior, those up to 0.15 of the prior's probability away; at least
    0.01, and 1 with so few draws that of the prior's fewer than ten would be near. The
    exponent is chosen by coverage in repeated samples: with 1, intervals are too narrow
    where all members are off. The attribute ``shares`` of a fit has these shares, in
    JSON. Where individuals are left out, they stay as they are.

    ``posterior`` holds every member's parameters for every draw; its coordinate
    ``member`` is the number of the member, in the order given, that made the tables of
    that draw.
    ``cell_log_likelihood`` has one variable for each member, from which `loo` and
    `compare` are computed. ``log_likelihood`` has one variable, ``count``, as ArviZ
    requires: the logarithm of the members' mixture at each draw, shifted and stretched
    by two constants for each individual so that importance sampling over the draws
    leaves the individual out of each member separately, as the pool does.
    `arviz.loo` and `arviz.compare` then agree with `loo` and `compare`, up to the
    smoothing of the largest importance weights.

    References
    ----------
    Stone (1961), The opinion pool, Annals of Mathematical Statistics 32; Gneiting &
    Ranjan (2013), Combining predictive distributions, Electronic Journal of Statistics
    7; Dickey (1971), The weighted likelihood ratio, linear hypotheses on normal
    location parameters, Annals of Mathematical Statistics 42.

    Examples
    --------
    >>> import taciturn as tc
    >>> religion = tc.load_dataset("area_by_religion")
    >>> sample = tc.draw_sample(religion, fraction=0.1, random_seed=1)
    >>> fit = tc.LinearPool().fit(sample, population_size=2449, random_seed=1)
    >>> sorted(fit["posterior"].data_vars)[-2:]
    ['restaurant_discount', 'restaurant_theta']
    >>> tc.assess(fit)["risk"]["R2"].groupby(fit["posterior"]["member"]).count().values
    array([2000, 2000])
    """

    members: Mapping[str, Estimator] = field(
        default_factory=lambda: {
            "dirichlet": DirichletLogLinear(),
            "restaurant": ChineseRestaurant(),
        }
    )
    shares: Mapping[str, float] | None = None
    nested: Nested | None = None

    title: ClassVar[str] = "Linear opinion pool of Bayesian estimators"
    command_name: ClassVar[str] = "linear-pool"
    takes_formula: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "members", check_members(self.members))
        if self.shares is not None:
            object.__setattr__(self, "shares", check_shares(self.shares, list(self.members)))
        if self.nested is not None:
            object.__setattr__(self, "nested", check_nested(self.nested, list(self.members)))

    @property
    def share_of(self) -> dict[str, float]:
        """The share of each member, in the order of the members, before any sample."""
        if self.shares is None:
            return dict.fromkeys(self.members, 1 / len(self.members))
        return {name: self.shares[name] for name in self.members}

    def with_formula(self, formula: str) -> Self:
        """Return the same pool with the formula in each member that takes one."""
        members = {
            name: member.with_formula(formula) if member.takes_formula else member
            for name, member in self.members.items()
        }
        return replace(self, members=members)

    def check_design(self, problem: Problem) -> None:
        """Raise `ParameterError` for what a member cannot take."""
        for member in self.members.values():
            member.check_design(problem)
        if self.nested is not None:
            self._whole(problem, self.nested)

    def learn(self, problem: Problem, settings: SamplerSettings, seed: int) -> PooledParameters:
        """Learn the parameters of every member, and assign each draw to a member."""
        seeds, order = self._seeds(seed)
        learned = learn_members(self.members, problem, settings, seeds)
        shares = self._shares(problem, {name: own.posterior for name, own in learned.items()})
        member = whose_turns(shares, settings.chains, settings.draws, order)
        coords = {"chain": np.arange(settings.chains), "draw": np.arange(settings.draws)}
        posterior = xr.Dataset(coords={**coords, "member": (("chain", "draw"), member)})
        stats = xr.Dataset()
        for name, found in learned.items():
            known = [x for x in (found.posterior, found.sample_stats) if x is not None]
            refuse_name_clash(problem, [own for each in known for own in each.data_vars], name)
            if found.posterior is not None:
                posterior = posterior.merge(prefixed(found.posterior, name))
            if found.sample_stats is not None:
                stats = stats.merge(prefixed(found.sample_stats, name))
        return PooledParameters(
            posterior,
            stats if stats.data_vars else None,
            sampler=", ".join(f"{name}: {found.sampler}" for name, found in learned.items()),
            members={
                name: found.importance
                for name, found in learned.items()
                if found.importance is not None
            },
            shares=shares,
        )

    def _seeds(self, seed: int) -> tuple[dict[str, int], np.random.Generator]:
        """A seed for each member, and what orders their draws."""
        *seeds, order = np.random.SeedSequence(seed).spawn(len(self.members) + 1)
        own = [int(each.generate_state(1)[0]) for each in seeds]
        return dict(zip(self.members, own, strict=True)), np.random.default_rng(order)

    def _shares(self, problem: Problem, learned: Mapping[str, Any]) -> dict[str, float]:
        """The share of each member, from draws of every member's parameters by name."""
        if self.nested is None:
            return self.share_of
        whole, priors = self._whole(problem, self.nested)
        evidence = {
            name: evidence_near(values, learned[whole], priors)
            for name, values in self.nested.items()
        }
        return shares_by_evidence(self.share_of, evidence)

    def _whole(self, problem: Problem, nested: Nested) -> tuple[str, dict[str, Prior]]:
        """The member that has the others as special cases, and its priors."""
        (whole,) = self.members.keys() - nested.keys()
        model = self.members[whole]
        assert isinstance(model, BayesianEstimator)
        priors = model.priors_for(problem)
        check_values(nested, whole, priors)
        return whole, priors

    def draw_population(
        self,
        problem: Problem,
        settings: SamplerSettings,
        parameters: Parameters,
        rng: np.random.Generator,
    ) -> Counts:
        """Draw one population table per draw, from the member it is assigned to."""
        return self._labelled(attrgetter("draw_population"), problem, settings, parameters, rng)

    def draw_unlabelled(
        self, problem: Problem, draws: int, seed: int, rng: np.random.Generator
    ) -> Counts | None:
        """Draw populations as a fit of one chain does; None where a member would not
        take its fast path.
        """
        members = {
            name: member
            for name, member in self.members.items()
            if isinstance(member, UnlabelledEstimator)
        }
        if len(members) < len(self.members):
            return None
        seeds, order = self._seeds(seed)
        learned = {}
        with linear_algebra_alone():  # as where a fit learns
            for name, estimator in members.items():
                found = estimator.trusted(problem, draws, seeds[name])
                if found is None:
                    return None
                refuse_name_clash(problem, found, name)
                learned[name] = found
        whose = whose_turns(self._shares(problem, learned), 1, draws, order)

        def own(name: str, turn: Turn) -> Counts:
            at = {parameter: values[turn[0]] for parameter, values in learned[name].items()}
            return members[name].complete(problem, int(turn.sum()), at, rng)

        return self._in_turns(own, whose, problem)

    def draw_block(
        self,
        block: TableBlock,
        draws: int,
        seeds: Sequence[int],
        rngs: Sequence[np.random.Generator],
    ) -> tuple[Counts, Turn] | None:
        """Draw populations of each table as `draw_unlabelled` does."""
        if type(self) is not LinearPool or self.nested is not None:
            return None
        own, orders = zip(*map(self._seeds, seeds), strict=True)
        learned = learn_blocks(self.members, block, draws, own)
        if learned is None:
            return None
        trusted = np.all([found.trusted for _, found in learned], axis=0)
        whose = np.concatenate([whose_turns(self.share_of, 1, draws, rng) for rng in orders])
        out = np.zeros((*whose.shape, block.counts.shape[1]), dtype=np.int64)
        for number, (member, found) in enumerate(learned):
            turns = (whose == number) & trusted[:, None]
            member.complete_block(block, found.draws, turns, rngs, out)
        return out, trusted

    def draw_replicates(
        self,
        problem: Problem,
        settings: SamplerSettings,
        parameters: Parameters,
        rng: np.random.Generator,
    ) -> Counts:
        """Draw one replicated sample per draw, from the member it is assigned to."""
        return self._labelled(attrgetter("draw_replicates"), problem, settings, parameters, rng)

    def _labelled(
        self,
        way: Callable[[Estimator], DrawTables],
        problem: Problem,
        settings: SamplerSettings,
        parameters: Parameters,
        rng: np.random.Generator,
    ) -> Counts:
        """Tables of every member, each from labelled parameters at its own draws."""
        posterior = parameters.posterior
        assert posterior is not None

        def own(name: str, turn: Turn) -> Counts:
            mine = member_variables(posterior, name)
            at = Parameters(draws_at(mine, turn) if mine.data_vars else None)
            sizes = replace(settings, draws=int(turn[0].sum()))
            return way(self.members[name])(problem, sizes, at, rng)

        whose = posterior["member"].transpose("chain", "draw").values
        return self._in_turns(own, whose, problem)

    def _in_turns(
        self, own: Callable[[str, Turn], Counts], whose: Counts, problem: Problem
    ) -> Counts:
        """Tables of every member at the draws that it makes, (chain, draw)."""
        out = np.empty((*whose.shape, problem.sample.size), dtype=np.int64)
        for number, name in enumerate(self.members):
            turn = whose == number
            if turn.any():
                out[turn] = own(name, turn)
        return out.reshape(-1, problem.sample.size)

    def cell_log_likelihood(
        self, problem: Problem, settings: SamplerSettings, parameters: Parameters
    ) -> xr.Dataset | None:
        """Return the group of that name, with one variable for each member."""

        def own(name: str) -> xr.Dataset | None:
            at = _of_member(parameters, name)
            return self.members[name].cell_log_likelihood(problem, settings, at)

        numbers = len(self.members) * settings.total * problem.cells
        every = zip(self.members, in_threads(own, list(self.members), numbers=numbers), strict=True)
        terms = {name: found["count"] for name, found in every if found is not None}
        return xr.Dataset(terms) if len(terms) == len(self.members) else None

    def log_likelihood(self, terms: xr.Dataset, parameters: Parameters) -> xr.Dataset | None:
        """Return the group of that name, with the terms of the mixture."""
        if not fits_by_individual(terms):
            return None
        assert isinstance(parameters, PooledParameters)
        return by_individual(mixture_terms(terms, parameters.shares).to_dataset(name="count"))

    def log_prior(self, problem: Problem, parameters: Parameters) -> xr.Dataset | None:
        """Logarithm of the prior density of every member's parameters."""
        own = {
            name: member.log_prior(problem, _of_member(parameters, name))
            for name, member in self.members.items()
        }
        return (
            xr.merge([prefixed(found, name) for name, found in own.items() if found is not None])
            or None
        )

    def record(
        self, problem: Problem, settings: SamplerSettings, parameters: Parameters
    ) -> dict[str, Any]:
        """Return the attributes of a fit, including the diagnostics of each member."""
        assert isinstance(parameters, PooledParameters)
        importance = {name: asdict(found) for name, found in parameters.members.items()}
        moved = {} if self.nested is None else {"shares": json.dumps(parameters.shares)}
        own = super().record(problem, settings, parameters)
        return own | {"importance": json.dumps(importance)} | moved


def _of_member(pooled: Parameters, name: str) -> Parameters:
    assert pooled.posterior is not None
    own = member_variables(pooled.posterior, name)
    return Parameters(own if own.data_vars else None)
