"""Areas that share a profile: what they have in common is learned from all of them."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np
import numpy.typing as npt
import xarray as xr
from scipy.special import logsumexp

from taciturn.diagnostics import Diagnostics, check_convergence
from taciturn.errors import TableError
from taciturn.estimators.blocks import TABLES_AT_ONCE, generators
from taciturn.estimators.priors import Prior, check_priors, merge_priors
from taciturn.estimators.specification import Specified
from taciturn.many.collection import stacked
from taciturn.many.seeds import rng_of
from taciturn.many.shared_profile.chain import Chain
from taciturn.many.shared_profile.kernels import find_modes
from taciturn.many.shared_profile.layout import Layout
from taciturn.many.shared_profile.model import build_model
from taciturn.many.shared_profile.populations import draw_populations
from taciturn.parallel import WITHOUT_THREADS, Workers, run_all
from taciturn.validate import whole_number

if TYPE_CHECKING:
    import pymc as pm

__all__ = ["LearnedProfile", "Populations", "SharedProfile"]

Counts = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_STEPS: Final = (2, 2)  # of an area's effects between its populations: near, and far


@dataclass(frozen=True, repr=False)
class SharedProfile(Specified):
    r"""Areas whose tables have a profile in common, from which each departs by as much
    as areas do.

    .. math::

        p_{ai} &\propto w_{ai} =
        \begin{cases}
            \exp\bigl(x_i + \sum_v u_{a,v,v(i)}\bigr) \, g_{ai}
                & \text{with probability } 1 - \varepsilon \\
            \text{exponential with mean } \kappa K
                & \text{with probability } \varepsilon
        \end{cases} \\
        x_i &= \sum_v m_{v,v(i)} + z_i, \qquad
        m_{v,l} \sim N(0, M_v^2), \quad z_i \sim N(0, \omega^2) \\
        u_{a,v,l} &\sim N(0, \tau_v^2), \qquad
        g_{ai} \sim \text{Gamma}(r_i, r_i), \quad
        r_i = \nu \exp\bigl(\beta x_i + \sum_v s_{v,v(i)}\bigr), \quad
        s_{v,l} \sim N(0, \sigma_v^2) \\
        f_a \mid p_a &\sim \text{Multinomial}(n_a, p_a), \qquad
        F_a - f_a \mid f_a, p_a \sim \text{Multinomial}(N_a - n_a, p_a)

    `i` is one of `K` cells and `v(i)` its category of variable `v`. The profile `x` has
    main effects and interactions; an area `a` tilts it by effects of its own for each
    category, and a factor with mean 1 and variance :math:`1/r_i` departs from that in
    each cell, more in some categories than in others. A few cells are outliers, an
    institution in one area, say, which no profile tells of. How much of all this there
    is, the data of all areas say: with :math:`\tau = \varepsilon = 0` and
    :math:`\nu \to \infty` areas are alike, with large :math:`\tau` and small
    :math:`\nu` each stands alone.

    It is given to `assess_many`, which learns what areas share in a first pass and
    then draws the populations of each area, with the uncertainty of both.

    Parameters
    ----------
    priors : mapping of str to Prior, optional
        Replaces priors by name. The parameters are ``nu`` (:math:`\nu`), ``power``
        (:math:`\beta`), ``outliers`` (:math:`\varepsilon`), ``outlier_size``
        (:math:`\kappa`), ``interactions`` (:math:`\omega`), and for each variable
        ``main_<variable>`` (:math:`M_v`), ``tilt_<variable>`` (:math:`\tau_v`) and
        ``spread_<variable>`` (:math:`\sigma_v`).
    areas : int
        The first pass learns from at most so many areas, a random choice of all.
    draws, tune, chains : int
        Of the first pass: sweeps kept and discarded of each chain.

    Raises
    ------
    ParameterError
        Numbers that are not positive.
    PriorError
        On use: a prior for a parameter that the model does not have.

    Notes
    -----
    Default priors: ``nu`` is log-normal around `e` with scale 2; ``power`` is uniform
    between 0 and 1; ``outliers`` is beta with 1/2 and 2.5 `K`, so that an area is
    expected to have 0.2 of them; ``outlier_size`` is log-normal around 1 with scale 2;
    ``main_<variable>`` is half-normal with scale 2.5; ``tilt_<variable>``,
    ``spread_<variable>`` and ``interactions`` are, with scale 1. A table of one
    variable has neither interactions nor tilts nor spreads, which would be departures,
    too.

    *Where it does not hold.* Where a group lives in few of the areas and a handful of
    people of each is sampled, R2 can be understated, as the sample does not always show
    the group. Intervals are too narrow where areas depart by more than normal effects
    and gamma factors do, and for tables of one variable with two or three people of an
    area. The page on areas that share a profile has the numbers.

    *Computation.* Given an intensity for each area, with a density proportional to its
    inverse, counts are negative binomial once the factors are integrated out, or a
    mixture of two with outliers. What areas share is drawn by a Markov chain of slice
    samplers, in which the effects of an area are moved together by elliptical slice
    sampling relative to a normal distribution at their mode. Between the populations of
    an area its effects are moved so, too, and relative to their prior, as there may be
    several modes, and its intensity alone, as what areas share differs from draw to
    draw, by much where there are few. `build` returns the same model in PyMC.

    References
    ----------
    Rao & Molina (2015), Small Area Estimation, 2nd ed., Wiley, ch. 9 (areas that
    borrow strength); Nishihara, Murray & Adams (2014), JMLR 15; Yu & Meng (2011),
    Journal of Computational and Graphical Statistics 20; Neal (2003), Slice sampling,
    Annals of Statistics 31.

    Examples
    --------
    >>> import taciturn as tc
    >>> religion = tc.load_dataset("area_by_religion")
    >>> model = tc.SharedProfile().build(religion, over="area")
    >>> sorted(v.name for v in model.free_RVs if v.name.endswith("religion"))
    ['effect_religion', 'main_religion']
    """

    priors: Mapping[str, Prior] = field(default_factory=dict)
    areas: int = 300
    draws: int = 1500
    tune: int = 300
    chains: int = 4

    def __post_init__(self) -> None:
        object.__setattr__(self, "priors", check_priors(self.priors))
        for name, least in {"areas": 2, "draws": 1, "tune": 1, "chains": 1}.items():
            object.__setattr__(self, name, whole_number(getattr(self, name), name, least=least))

    def priors_for(self, layout: Layout) -> dict[str, Prior]:
        """Return the priors of all parameters but the effects."""
        scale = {"main": 2.5, "tilt": 1.0, "spread": 1.0, "interactions": 1.0}
        defaults = {
            "nu": Prior("LogNormal", mu=1.0, sigma=2.0),
            "power": Prior("Uniform", lower=0.0, upper=1.0),
            "outliers": Prior("Beta", alpha=0.5, beta=2.5 * layout.cells),
            "outlier_size": Prior("LogNormal", mu=0.0, sigma=2.0),
        }
        for name in layout.names[len(defaults) :]:
            defaults[name] = Prior("HalfNormal", sigma=scale[name.partition("_")[0]])
        return merge_priors(defaults, self.priors)

    def build(
        self,
        tables: xr.DataArray,
        *,
        over: str,
        structural_zeros: xr.DataArray | None = None,
    ) -> "pm.Model":
        """Return the PyMC model of the samples of several areas.

        Parameters
        ----------
        tables : DataArray
            The samples of all areas, none of them empty.
        over : str
            The variable whose categories are the areas.
        structural_zeros : DataArray of bool, optional
            True where a cell cannot be filled, in any area.

        Returns
        -------
        Model
            Its observed variable is ``count``, (areas, cells that can be filled), with
            the cells in row-major order.

        Raises
        ------
        TableError
            What `assess_many` refuses; an area with an empty sample.
        """
        found = stacked(tables, over, structural_zeros)
        if found.wrong:
            raise next(iter(found.wrong.values()))
        counts = found.counts.astype(float)
        empty = np.flatnonzero(counts.sum(axis=1) == 0)
        if len(empty):
            raise TableError(f"the sample of {over}={found.labels[int(empty[0])]} is empty")
        return build_model(counts, found.layout, self.priors_for(found.layout))

    def learn(
        self,
        counts: Counts,
        layout: Layout,
        *,
        seed: int,
        workers: Workers,
        progressbar: bool,
        kept: "KeptChains | None" = None,
    ) -> "LearnedProfile":
        """Learn what areas share from their samples, (areas, cells), none empty; chains
        that are kept are not drawn again.
        """
        priors = self.priors_for(layout)
        task = _Task(counts.astype(float), layout, priors, self.tune, self.draws, seed, 0)
        found = {} if kept is None else dict(kept.chains())
        tasks = [replace(task, chain=chain) for chain in range(self.chains) if chain not in found]
        title = f"what {len(counts)} areas share: {len(tasks)} chains"
        how: Any = {"workers": workers, "progressbar": progressbar, "title": title}
        with closing(run_all(_run, tasks, **how)) as drawn:
            for chain, arrays in drawn:
                found[chain] = arrays
                if kept is not None:
                    kept.add_chain(chain, arrays)
        chains = [found[chain] for chain in range(self.chains)]
        arrays = {name: np.stack([chain[name] for chain in chains]) for name in chains[0]}
        return LearnedProfile.of_arrays(arrays, layout)


class KeptChains(Protocol):
    """Where chains go that an interrupted call goes on from, by their number."""

    def chains(self) -> Mapping[int, Mapping[str, Floats]]:
        """Those that are there."""

    def add_chain(self, number: int, arrays: Mapping[str, Floats]) -> None:
        """Keep one."""


@dataclass(frozen=True)
class _Task:
    counts: Floats
    layout: Layout
    priors: dict[str, Prior]
    tune: int
    draws: int
    seed: int
    chain: int


def _run(task: _Task) -> tuple[int, dict[str, Floats]]:
    """Draws of one chain, with its number."""
    rng = rng_of(task.seed, f"chain {task.chain}")
    chain = Chain(task.counts, task.layout, task.priors, rng)
    for _ in range(task.tune):
        chain.sweep()
    chain.end_warm_up()
    kept: dict[str, list[Any]] = {name: [] for name in (*task.priors, "profile", "log_shape")}
    for _ in range(task.draws):
        chain.sweep()
        profile = chain.profile
        for name, value in chain.parameters.items():
            kept[name].append(value)
        kept["log_shape"].append(chain.log_shapes(profile))
        kept["profile"].append(profile)
    return task.chain, {name: np.array(values) for name, values in kept.items()}


@dataclass(frozen=True)
class LearnedProfile:
    """What areas share, as draws of its posterior.

    Attributes
    ----------
    posterior : Dataset
        ``profile`` and ``log_shape``, (chain, draw, cell), and the other parameters,
        (chain, draw).
    layout : Layout
        Variables and categories.
    """

    posterior: xr.Dataset
    layout: Layout

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, Floats], layout: Layout) -> "LearnedProfile":
        """Label arrays of shape (chain, draw) or (chain, draw, cell)."""
        dims = ("chain", "draw", "cell")
        return cls(xr.Dataset({name: (dims[: x.ndim], x) for name, x in arrays.items()}), layout)

    def diagnostics(self, *, warn: bool = False) -> Diagnostics:
        """r-hat and effective draws of all parameters; the profile's are shares."""
        shares = self.posterior["profile"] - _log_sum(self.posterior["profile"])
        remedy = "More draws and tune of SharedProfile, the estimator, may help"
        found = self.posterior.drop_vars("log_shape").assign(profile=shares)
        return check_convergence(found, None, warn=warn, remedy=remedy)

    def populations(self, draws: int) -> "Populations":
        """Return what draws so many populations of an area, each at one of so many
        draws of the posterior, evenly spaced, or at all of them over and over.
        """
        stacked = self.posterior.stack(sample=("chain", "draw")).transpose("sample", ...)
        number = stacked.sizes["sample"]
        at = np.arange(draws) * number // draws if draws <= number else np.arange(draws) % number
        tilts = np.zeros((len(at), len(self.layout.variable_of)))
        for name in self.layout.tilted:
            own = stacked[f"tilt_{name}"].values[at]
            tilts[:, self.layout.of_variable[name]] = own[:, None]
        profiles, log_shapes = stacked["profile"].values[at], stacked["log_shape"].values[at]
        outliers = self.layout.outliers(
            {name: stacked[name].values[at] for name in ("outliers", "outlier_size")}
        )
        # With shares that sum to 1 an area's intensity is about the same at all draws.
        level = logsumexp(profiles, axis=1, keepdims=True)
        outliers = outliers - level * np.array([0.0, 0.0, 1.0])
        return Populations(profiles - level, log_shapes, tilts, outliers, self.layout)


@dataclass(frozen=True)
class Populations:
    """What areas share at each of some draws, from which populations are drawn.

    Attributes
    ----------
    profiles, log_shapes : array, shape (draws, cells)
    scales : array, shape (draws, effects)
        Of an area's effects.
    outliers : array, shape (draws, 3)
        Their probability and size, see `Layout.outliers`.
    layout : Layout
    """

    profiles: Floats
    log_shapes: Floats
    scales: Floats
    outliers: Floats
    layout: Layout

    @property
    def shared(self) -> tuple[Floats, Floats, Floats, Floats]:
        """All that is shared."""
        return self.profiles, self.log_shapes, self.scales, self.outliers

    @cached_property
    def middle(self) -> list[Floats]:
        """Means over the draws, near which the mode of each area is looked for."""
        return [x.mean(axis=0) for x in self.shared]

    @property
    def at_once(self) -> int:
        """Number of areas that `draw` takes: fewer of large tables or many draws."""
        return max(1, min(TABLES_AT_ONCE, WITHOUT_THREADS // max(self.profiles.size, 1)))

    def draw(self, samples: Counts, sizes: Counts, rngs: Sequence[np.random.Generator]) -> Counts:
        """Populations of up to `at_once` areas in one compiled call, which lets other
        threads work.

        Parameters
        ----------
        samples : array, shape (areas, cells that can be filled)
            None empty.
        sizes : array, shape (areas,)
            Of the populations.
        rngs : sequence of Generator
            One for each area.

        Returns
        -------
        array, shape (areas, draws, cells that can be filled)
        """
        own, middle, levels = samples.astype(float), self.middle, self.layout.levels
        effects = len(middle[2]) + 1
        modes, roots = np.zeros((len(own), effects)), np.zeros((len(own), effects, effects))
        modes[:, 0] = np.log(own.sum(axis=1)) - logsumexp(middle[0])
        find_modes(own, (*middle[:2], levels, *middle[2:]), modes, roots)
        found = np.zeros((len(own), *self.profiles.shape), dtype=np.int64)
        rests = sizes - samples.sum(axis=1)
        draw_populations(
            own, rests, self.shared, levels, (modes, roots), _STEPS, generators(rngs), found
        )
        return found


def _log_sum(logs: xr.DataArray) -> xr.DataArray:
    summed: xr.DataArray = logs.reduce(logsumexp, "cell")
    return summed
