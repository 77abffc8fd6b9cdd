"""What every estimator promises, held for all of them: draws of F given f with F >= f,
sum N, structural zeros kept."""

import inspect
import json
from dataclasses import fields

import numpy as np
import pytest
import xarray as xr
from hypothesis import HealthCheck, given, settings, strategies as st
from hypothesis.extra import numpy as hnp

import taciturn as tc
from specifications import SPECIFICATIONS
from taciturn.errors import (
    ConvergenceWarning,
    EstimationError,
    FileFormatError,
    ParameterError,
    TableError,
)
from taciturn.estimators import (
    ESTIMATORS,
    BayesianEstimator,
    Estimator,
    Parameters,
    SamplerSettings,
    estimator_from_spec,
)
from taciturn.estimators.problem import make_problem
from taciturn.fits.parts import fitted_parameters
from taciturn.schema import check_population

DIMS = ("a", "b", "c", "d")
BAYESIAN = [name for name, cls in ESTIMATORS.items() if issubclass(cls, BayesianEstimator)]
PLUG_IN = [name for name, cls in ESTIMATORS.items() if cls.plug_in]
FITS = {
    "LinearPool": "fit_pool",
    "DirichletLogLinear": "fit_dirichlet",
    "ChineseRestaurant": "fit_restaurant",
    "MixedPoisson": "fit_mixed_poisson",
    "LatentClass": "fit_latent_class",
    "LogLinear": "fit_loglinear",
    "PolyaUrn": "fit_urn",
}
SLOW = [
    pytest.param("LinearPool", "pool_by_nuts", marks=pytest.mark.slow),
    pytest.param("DirichletLogLinear", "dirichlet_by_nuts", marks=pytest.mark.slow),
    pytest.param("ChineseRestaurant", "restaurant_by_nuts", marks=pytest.mark.slow),
]
SHORT = {"population_size": 2449, "chains": 2, "random_seed": 1, "progressbar": False}
SETTINGS = SamplerSettings(draws=3, tune=1, chains=2, seed=1, progressbar=False)


@st.composite
def problems(draw: st.DrawFn) -> tuple[xr.DataArray, int, xr.DataArray | None]:
    """A sample with at least two cells that can be filled, N from n up, structural
    zeros or none."""
    shape = draw(
        hnp.array_shapes(min_dims=2, max_dims=4, max_side=3).filter(lambda s: np.prod(s) >= 2)
    )
    counts = draw(hnp.arrays(np.int64, shape, elements=st.sampled_from([0, 0, 1, 1, 2, 7, 10**6])))
    zeros = draw(st.none() | hnp.arrays(bool, shape, elements=st.booleans()))
    if zeros is not None and (~zeros).sum() < 2:
        zeros = None
    if zeros is not None:
        counts = np.where(zeros, 0, counts)
    if counts.sum() == 0:
        first = np.argwhere(np.ones(shape, dtype=bool) if zeros is None else ~zeros)[0]
        counts[tuple(first)] = draw(st.sampled_from([1, 3]))
    dims = DIMS[: len(shape)]
    coords = {
        dim: [f"{dim}{i}" for i in range(size)] for dim, size in zip(dims, shape, strict=True)
    }
    sample = xr.DataArray(counts, dims=dims, coords=coords)
    extra = draw(st.sampled_from([0, 1, 2, 1000, 67_000_000, 2**52]))
    structural = None if zeros is None else xr.DataArray(zeros, dims=dims, coords=coords)
    return sample, int(counts.sum()) + extra, structural


formulas = st.sampled_from([None, "~ a", "~ a*b", "~ b:a"])


def plug_in(name: str, formula: str | None, theta: float | None) -> Estimator:
    return (
        tc.LogLinear(formula) if name == "LogLinear" else tc.PolyaUrn(theta=theta, formula=formula)
    )


@pytest.mark.parametrize("name", PLUG_IN)
@given(
    problem=problems(),
    formula=formulas,
    theta=st.none() | st.floats(0, 1e12),
    seed=st.integers(0, 2**32),
)
@settings(max_examples=25, deadline=None)
def test_plug_in_estimators(name, problem, formula, theta, seed) -> None:
    sample, size, zeros = problem
    estimator = plug_in(name, formula, theta)
    try:
        fit = estimator.fit(
            sample,
            population_size=size,
            structural_zeros=zeros,
            draws=4,
            chains=2,
            random_seed=seed,
        )
    except EstimationError:
        # No θ opens so many cells, or structural zeros contradict the margins; nothing
        # else may fail.
        if (name == "PolyaUrn" and theta is not None) or (name == "LogLinear" and zeros is None):
            raise
        return
    population = fit["posterior_predictive"]["population"]
    assert population.dims == ("chain", "draw", *sample.dims)
    assert dict(population.sizes) | {"chain": 2, "draw": 4} == dict(population.sizes)
    check_population(population, sample, population_size=size, structural_zeros=zeros)
    replicates = fit["posterior_predictive"]["count"]
    none = xr.zeros_like(sample)
    check_population(replicates, none, population_size=int(sample.sum()), structural_zeros=zeros)


def arbitrary_parameters(draw, estimator: Estimator, sample: xr.DataArray) -> Parameters:
    """Any value of the parameters, as if a sampler had gone there."""
    shape = (SETTINGS.chains, SETTINGS.draws)
    seed = draw(st.integers(0, 2**32))
    rng = np.random.default_rng(seed)
    positive = st.floats(1e-12, 1e15)
    if isinstance(estimator, tc.LatentClass):
        spread = draw(st.sampled_from([1e-2, 1.0, 1e4]))
        # Of some class the cell of a sampled individual has a share that is not 0.
        weight = np.maximum(rng.dirichlet(np.full(5, spread), size=shape), 1e-6)
        shares = {
            f"share_{dim}": (
                ("chain", "draw", "class", dim),
                np.maximum(rng.dirichlet(np.full(size, spread), size=(*shape, 5)), 1e-6),
            )
            for dim, size in sample.sizes.items()
        }
        own = {"nu": positive, "power": st.floats(0, 1), "intensity": positive}
        spreads = {
            parameter: (("chain", "draw"), draw(hnp.arrays(float, shape, elements=elements)))
            for parameter, elements in own.items()
        }
        classes = {"weight": (("chain", "draw", "class"), weight), **shares}
        return Parameters(xr.Dataset({**classes, **spreads}))
    if isinstance(estimator, tc.ChineseRestaurant):
        theta = draw(hnp.arrays(float, shape, elements=positive))
        values = {"theta": (("chain", "draw"), theta)}
        if estimator.discount is None:
            values["discount"] = (
                ("chain", "draw"),
                draw(hnp.arrays(float, shape, elements=st.floats(0, 0.999))),
            )
        return Parameters(
            posterior=(
                xr.Dataset(values)
                if estimator.discount is None or estimator.discount >= 0
                else None
            )
        )
    own = {"kappa": positive}
    if isinstance(estimator, tc.MixedPoisson):
        own = {"nu": positive, "power": st.floats(0, 1), "intensity": positive}
        if estimator.mixing == "mixture":
            own["share"] = st.floats(0, 1)
        if estimator.zero_inflated:
            own["inflation"] = st.floats(0, 1)
    values = {
        parameter: (("chain", "draw"), draw(hnp.arrays(float, shape, elements=elements)))
        for parameter, elements in own.items()
    }
    spread = draw(st.sampled_from([1e-2, 0.3, 1.0, 1e4]))
    for term in estimator.terms_for(make_problem(sample, int(sample.sum()))):
        sizes = [sample.sizes[dim] for dim in term]
        if len(term) == 1:
            margin = np.maximum(rng.dirichlet(np.full(sizes[0], spread), size=shape), 1e-290)
            values[f"margin_{term[0]}"] = (("chain", "draw", *term), margin)
        else:
            values["effect_" + "_".join(term)] = (
                ("chain", "draw", *term),
                rng.normal(0, 1 / spread, (*shape, *sizes)),
            )
    return Parameters(posterior=xr.Dataset(values))


@pytest.mark.parametrize("name", BAYESIAN)
@given(
    problem=problems(),
    formula=formulas,
    discount=st.none() | st.floats(0, 0.999) | st.floats(-1e6, -1e-9),
    base=st.sampled_from(["uniform", "log-linear"]),
    data=st.data(),
    seed=st.integers(0, 2**32),
)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_bayesian_estimators_at_any_parameters(
    name, problem, formula, discount, base, data, seed
) -> None:
    sample, size, zeros = problem
    restaurant = tc.ChineseRestaurant(discount, base)
    models = {
        "DirichletLogLinear": tc.DirichletLogLinear(formula),
        "MixedPoisson": tc.MixedPoisson(
            formula,
            mixing="mixture" if base == "uniform" else "inverse Gaussian",
            zero_inflated=discount is None,
        ),
        "ChineseRestaurant": restaurant,
    }
    estimator = models.get(name) or ESTIMATORS[name]()
    given_problem = make_problem(sample, size, zeros)
    parameters = arbitrary_parameters(data.draw, estimator, sample)
    rng = np.random.default_rng(seed)
    drawn = estimator.draw_population(given_problem, SETTINGS, parameters, rng)
    population = given_problem.draws(drawn, SETTINGS.chains, "population")
    assert population.dims == ("chain", "draw", *sample.dims)
    check_population(population, sample, population_size=size, structural_zeros=zeros)
    drawn = estimator.draw_replicates(given_problem, SETTINGS, parameters, rng)
    replicates = given_problem.draws(drawn, SETTINGS.chains, "count")
    check_population(
        replicates, xr.zeros_like(sample), population_size=int(sample.sum()), structural_zeros=zeros
    )


@pytest.fixture(scope="module")
def fit_latent_class(religion_sample) -> xr.DataTree:
    """Of few draws: nothing here asks whether the chain has converged."""
    with pytest.warns(ConvergenceWarning):
        return tc.LatentClass().fit(religion_sample, draws=50, tune=30, **SHORT)


def test_every_estimator_is_fitted() -> None:
    assert set(FITS) == set(ESTIMATORS)


@pytest.mark.parametrize(("name", "fitted"), [*FITS.items(), *SLOW])
def test_real_fits(name, fitted, request, religion_sample) -> None:
    fit = request.getfixturevalue(fitted)
    check_population(
        fit["posterior_predictive"]["population"], religion_sample, population_size=2449
    )
    assert int(fit["constant_data"]["population_size"]) == 2449
    xr.testing.assert_equal(fit["observed_data"]["count"].astype(int), religion_sample)
    assert not fit["constant_data"]["structural_zeros"].any()
    bayesian = not ESTIMATORS[name].plug_in
    assert ("posterior" in fit.children) == bayesian
    assert ("sample_stats" in fit.children) == (
        json.loads(fit.attrs["settings"])["method"] == "nuts" and bayesian
    )
    two_steps = name == "LatentClass"  # has no leave-one-out terms
    assert ("log_likelihood" in fit.children) == (bayesian and not two_steps)
    if two_steps:
        return
    terms = fit["cell_log_likelihood"].to_dataset()
    assert int(terms["individuals"].sum()) == 245
    assert ("draw" in terms.dims) == bayesian
    assert ("leave_one_out" in terms) != bayesian
    recorded = json.loads(fit.attrs["settings"])
    assert {**recorded, "chains": fit["posterior_predictive"].sizes["chain"]} == recorded
    assert recorded["random_seed"] == 1
    assert estimator_from_spec(fit.attrs["estimator"]) == ESTIMATORS[name]()
    assert json.loads(fit.attrs["versions"])["taciturn"] == tc.__version__


@pytest.mark.filterwarnings("ignore::taciturn.errors.ConvergenceWarning")
@pytest.mark.parametrize(("name", "fitted"), [*FITS.items(), *SLOW])
def test_the_seed_is_all_that_decides(name, fitted, request, religion_sample) -> None:
    """Same seed, same numbers, in a fit of their own; another seed, others; a Generator
    serves as a seed."""
    shared = request.getfixturevalue(fitted)
    sizes = json.loads(shared.attrs["settings"]) | {"random_seed": 1}
    again = ESTIMATORS[name]().fit(
        religion_sample, population_size=2449, progressbar=False, **sizes
    )
    for group in shared.children:
        xr.testing.assert_allclose(shared[group].to_dataset(), again[group].to_dataset(), rtol=1e-9)
    xr.testing.assert_equal(
        shared["posterior_predictive"].to_dataset(), again["posterior_predictive"].to_dataset()
    )
    other = ESTIMATORS[name]()
    parameters = Parameters(
        posterior=fitted_parameters(shared),
        constants={
            k: v if v.ndim else float(v) for k, v in shared["constant_data"].data_vars.items()
        },
    )
    problem = make_problem(religion_sample, 2449)
    settings_ = SamplerSettings(sizes["draws"], 1, sizes["chains"], 1, False)
    first, second = (
        other.draw_population(problem, settings_, parameters, np.random.default_rng(s))
        for s in (1, 2)
    )
    assert (first != second).any()


@pytest.mark.parametrize("name", PLUG_IN)
def test_another_seed_and_none(name, religion_sample) -> None:
    def fit(seed):
        tree = ESTIMATORS[name]().fit(
            religion_sample, population_size=2449, draws=5, chains=2, random_seed=seed
        )
        return (
            tree["posterior_predictive"]["population"],
            json.loads(tree.attrs["settings"])["random_seed"],
        )

    assert not fit(1)[0].equals(fit(2)[0])
    assert fit(np.random.default_rng(3))[0].equals(fit(np.random.default_rng(3))[0])
    population, chosen = fit(None)
    assert fit(chosen)[0].equals(population)
    assert not fit(None)[0].equals(population)


@pytest.mark.parametrize("cls", ESTIMATORS.values())
def test_progress_is_shown_unless_refused(cls) -> None:
    assert inspect.signature(cls.fit).parameters["progressbar"].default is True


# ---- specifications


@pytest.mark.parametrize("model", SPECIFICATIONS, ids=str)
def test_a_specification_survives_json(model: Estimator) -> None:
    text = json.dumps(model.spec())
    assert estimator_from_spec(text) == model
    assert estimator_from_spec(json.loads(text)) == model
    assert set(model.spec()) == {"estimator", *(f.name for f in fields(model))}


def test_every_constructor_argument_is_among_the_specifications_tried() -> None:
    for cls in ESTIMATORS.values():
        tried = [model for model in SPECIFICATIONS if isinstance(model, cls)]
        for argument in inspect.signature(cls).parameters:
            assert len({json.dumps(model.spec()[argument]) for model in tried}) > 1, (cls, argument)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("{", "not an estimator's specification"),
        ("[1]", "not an estimator's specification"),
        ("3", "not an estimator's specification"),
        ("null", "not an estimator's specification"),
        ("{}", "no estimator None: there are LinearPool, DirichletLogLinear"),
        ({"estimator": "os.system"}, "no estimator 'os.system'"),
        ({"estimator": ["LogLinear"]}, "no estimator"),
        ({"estimator": "LinearPool", "members": [1]}, "cannot be used"),
        ({"estimator": "LinearPool", "members": {"a": 1, "b": 2}}, "a member must be"),
        (
            {"estimator": "LinearPool", "members": {"a": {"estimator": "LinearPool"}, "b": {}}},
            "not a pool",
        ),
        (
            {"estimator": "LinearPool", "members": {"a": {"estimator": "x"}, "b": {}}},
            "no estimator 'x'",
        ),
        ({"estimator": "LinearPool", "shares": {"dirichlet": 1}}, "shares must have the members"),
        ({"estimator": "LogLinear", "theta": 1}, r"LogLinear has no field \['theta'\]"),
        ({"estimator": "LogLinear", "plug_in": True}, r"LogLinear has no field \['plug_in'\]"),
        ({"estimator": "ChineseRestaurant", "discount": "x"}, "cannot be used"),
        ({"estimator": "ChineseRestaurant", "discount": 2}, "cannot be used"),
        ({"estimator": "DirichletLogLinear", "priors": [1]}, "cannot be used"),
        ({"estimator": "DirichletLogLinear", "priors": {"kappa": 1}}, "cannot be used"),
        (
            {"estimator": "DirichletLogLinear", "priors": {"kappa": {"distribution": "eval"}}},
            "cannot be used",
        ),
        (
            {
                "estimator": "DirichletLogLinear",
                "priors": {"kappa": {"distribution": "Beta", "self": 1}},
            },
            "cannot be used",
        ),
    ],
)
def test_a_foreign_specification_is_refused(spec, message) -> None:
    with pytest.raises(FileFormatError, match=message):
        estimator_from_spec(spec)


# ---- what every estimator refuses, before any work


@pytest.mark.parametrize("cls", ESTIMATORS.values())
@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (
            {"population_size": 3},
            ParameterError,
            "from the sample's 4 individuals to 2\\*\\*53, got 3",
        ),
        ({"population_size": 10.5}, ParameterError, r"whole number up to 2\*\*53, got 10.5"),
        ({"population_size": float("nan")}, ParameterError, r"whole number up to 2\*\*53, got nan"),
        ({"population_size": float("inf")}, ParameterError, r"whole number up to 2\*\*53, got inf"),
        ({"population_size": 2**54}, ParameterError, "2\\*\\*53"),
        ({"population_size": "10"}, ParameterError, r"whole number up to 2\*\*53, got '10'"),
        ({"population_size": True}, ParameterError, r"whole number up to 2\*\*53, got True"),
        ({"draws": 0}, ParameterError, "draws must be a whole number of at least 1, got 0"),
        ({"chains": -1}, ParameterError, "chains must be"),
        ({"tune": 1.5}, ParameterError, "tune must be"),
        ({"draws": True}, ParameterError, "draws must be"),
        ({"random_seed": -1}, ParameterError, "random_seed must be"),
        ({"random_seed": 1.0}, ParameterError, "random_seed must be"),
        ({"sample": [[2, 0], [1, 1]]}, TableError, "sample must be an xarray.DataArray, got list"),
        ({"sample": xr.DataArray([[0, 0]], dims=("a", "b"))}, TableError, "the sample is empty"),
        ({"sample": xr.DataArray([[4]], dims=("a", "b"))}, TableError, "has 1 cell"),
        ({"sample": xr.DataArray([[4, -1]], dims=("a", "b"))}, TableError, "not be negative"),
        ({"sample": xr.DataArray([[4, 0.5]], dims=("a", "b"))}, TableError, "whole numbers"),
        ({"sample": xr.DataArray([[4, np.nan]], dims=("a", "b"))}, TableError, "not be missing"),
        (
            {"structural_zeros": np.zeros((2, 2), dtype=bool)},
            TableError,
            "must be a DataArray of bool",
        ),
        (
            {"structural_zeros": xr.DataArray([[0, 1], [0, 0]], dims=("a", "b"))},
            TableError,
            "DataArray of bool",
        ),
        (
            {"structural_zeros": xr.DataArray(np.eye(2, dtype=bool), dims=("a", "b"))},
            TableError,
            "a=0, b=0 holds 2",
        ),
        (
            {"structural_zeros": xr.DataArray(np.zeros((2, 2), bool), dims=("a", "x"))},
            TableError,
            "variables",
        ),
    ],
)
def test_bad_input(cls, change, error, message) -> None:
    arguments = {
        "sample": xr.DataArray([[2, 0], [1, 1]], dims=("a", "b")),
        "population_size": 10,
        **change,
    }
    with pytest.raises(error, match=message):
        cls().fit(arguments.pop("sample"), **arguments)


def test_structural_zeros_in_another_order_of_dimensions() -> None:
    sample = xr.DataArray([[2, 0, 0], [1, 1, 0]], dims=("a", "b"))
    zeros = (sample == 0).transpose("b", "a") & (xr.DataArray([1, 2, 3], dims="b") < 3)
    fit = tc.LogLinear("~ a").fit(
        sample, population_size=1000, structural_zeros=zeros, draws=50, chains=1
    )
    check_population(
        fit["posterior_predictive"]["population"],
        fit["observed_data"]["count"],
        population_size=1000,
    )
    assert (fit["posterior_predictive"]["population"].isel(a=0, b=1) == 0).all()
    assert (fit["posterior_predictive"]["population"].isel(a=0, b=2) > 0).any()
