"""Known margins of the population: draws keep them, and their law is that of all tables
that have them."""

import itertools
from math import comb

import numpy as np
import pytest
import xarray as xr
from scipy.special import gammaln
from scipy.stats import chisquare

import taciturn as tc
from taciturn.errors import EstimationError, ParameterError, TableError
from taciturn.schema import check_population
from taciturn.studies import calibration

SAMPLE = xr.DataArray([[2, 0], [1, 1]], dims=("a", "b"), coords={"a": ["x", "y"], "b": ["u", "v"]})
ROWS = xr.DataArray([5, 4], dims="a", coords={"a": ["x", "y"]})
COLUMNS = xr.DataArray([6, 3], dims="b", coords={"b": ["u", "v"]})


def tables(margin: xr.DataArray) -> list[np.ndarray]:
    """All tables of nine people that hold the sample and have these margins."""
    cells = [range(2, 10), range(10), range(1, 10), range(1, 10)]
    found = [np.array(x).reshape(2, 2) for x in itertools.product(*cells) if sum(x) == 9]
    axis = 1 if margin.dims == ("a",) else 0
    if margin.ndim == 2:
        return [F for F in found if (margin.values == F).all()]
    return [F for F in found if (F.sum(axis=axis) == margin.values).all()]


def p_value(population: xr.DataArray, chances: dict[tuple[int, ...], float]) -> float:
    drawn = population.values.reshape(-1, 4)
    keys = list(chances)
    counts = np.array([(drawn == key).all(axis=1).sum() for key in keys])
    assert counts.sum() == len(drawn)
    expected = np.array([chances[key] for key in keys])
    some = expected * len(drawn) > 5
    pooled = (
        np.append(counts[some], counts[~some].sum()),
        np.append(expected[some], expected[~some].sum()),
    )
    kept = pooled[1] > 0
    return float(chisquare(pooled[0][kept], pooled[1][kept] * len(drawn)).pvalue)


@pytest.mark.parametrize("margin", [ROWS, COLUMNS], ids=["a", "b"])
def test_log_linear_draws_are_multinomial_within_the_margins(margin) -> None:
    """Main effects: the other variable's shares in the sample are those of every
    stratum."""
    fit = tc.LogLinear().fit(
        SAMPLE, population_size=9, known_margins=margin, draws=5000, random_seed=1
    )
    other = SAMPLE.sum(margin.dims[0]).values / 4
    left = (margin - SAMPLE.sum("b" if margin.dims == ("a",) else "a")).values
    chances = {}
    for F in tables(margin):
        rest = F - SAMPLE.values
        rest = rest if margin.dims == ("a",) else rest.T
        chance = [
            comb(int(n), int(r[0])) * other[0] ** r[0] * other[1] ** r[1]
            for n, r in zip(left, rest, strict=True)
        ]
        chances[tuple(F.ravel())] = float(np.prod(chance))
    assert sum(chances.values()) == pytest.approx(1)
    assert p_value(fit["posterior_predictive"]["population"], chances) > 1e-4


@pytest.mark.parametrize(
    ("method", "margin"),
    [
        pytest.param("fast", ROWS, id="fast-a"),
        pytest.param("fast", COLUMNS, id="fast-b"),
        pytest.param("nuts", ROWS, id="nuts-a", marks=pytest.mark.slow),
        pytest.param("nuts", COLUMNS, id="nuts-b", marks=pytest.mark.slow),  # a model of its own
    ],
)
def test_dirichlet_draws_against_all_tables(margin, method) -> None:
    """Probability of a table is the prior's, integrated over a grid, times the ways the
    sample comes out of it."""
    prior = tc.Prior("LogNormal", mu=1.0, sigma=1.0)
    model = tc.DirichletLogLinear(priors={"kappa": prior})
    sizes = (
        {"draws": 5000} if method == "fast" else {"draws": 5000, "tune": 1000, "progressbar": False}
    )
    fit = model.fit(
        SAMPLE, population_size=9, known_margins=margin, random_seed=2, method=method, **sizes
    )
    population = fit["posterior_predictive"]["population"]
    if method == "nuts":
        population = population[:, ::5]
    z = np.linspace(-4, 4, 41)
    kappa = np.exp(1.0 + z)
    p = (np.arange(40) + 0.5) / 40
    k, a, b = np.meshgrid(kappa, p, p, indexing="ij")
    pi = np.stack([a * b, a * (1 - b), (1 - a) * b, (1 - a) * (1 - b)], axis=-1)
    weight = np.exp(-(z**2) / 2)[:, None, None]
    chances = {}
    for F in tables(margin):
        x = F.ravel()
        log_p = (gammaln(k[..., None] * pi + x) - gammaln(k[..., None] * pi) - gammaln(x + 1)).sum(
            -1
        )
        log_p += gammaln(k) - gammaln(k + 9)
        ways = np.prod(
            [
                comb(int(big), int(small))
                for big, small in zip(x, SAMPLE.values.ravel(), strict=True)
            ]
        )
        chances[tuple(int(i) for i in x)] = float((np.exp(log_p) * weight).sum() * ways)
    total = sum(chances.values())
    assert p_value(population, {key: chance / total for key, chance in chances.items()}) > 1e-4


@pytest.mark.parametrize("estimator", [tc.LogLinear(), tc.DirichletLogLinear()], ids=repr)
@pytest.mark.parametrize(
    "dims",
    [
        "area",
        pytest.param("religion", marks=pytest.mark.slow),
        pytest.param(["area", "religion"], marks=pytest.mark.slow),
        ["religion", "area"],
    ],
)
def test_every_draw_keeps_the_margins(estimator, dims, religion, religion_sample, tmp_path) -> None:
    known = tc.margin(religion, dims)
    fit = estimator.fit(
        religion_sample,
        population_size=2449,
        known_margins=known,
        draws=20,
        chains=2,
        random_seed=1,
    )
    check_population(
        fit["posterior_predictive"]["population"],
        religion_sample,
        population_size=2449,
        known_margins=known,
    )
    if len(known.dims) == 2:
        assert (fit["posterior_predictive"]["population"] == religion).all()
    assert (
        "Known:     the population's table of"
        f" {' x '.join(d for d in religion.dims if d in known.dims)}" in str(tc.summary(fit))
    )
    tc.save_fit(fit, tmp_path / "fit.nc")
    again = tc.fits.repeat_fit(tc.read_fit(tmp_path / "fit.nc"), progressbar=False)
    assert again["posterior_predictive"]["population"].equals(
        fit["posterior_predictive"]["population"]
    )


def test_replicates_have_the_stratum_sizes_of_a_simple_random_sample(
    religion, religion_sample
) -> None:
    known = tc.margin(religion, "area")
    fit = tc.DirichletLogLinear().fit(
        religion_sample, population_size=2449, known_margins=known, random_seed=1
    )
    sizes = fit["posterior_predictive"]["count"].sum("religion")
    expected = known * 245 / 2449
    variance = expected * (1 - known / 2449) * (2449 - 245) / 2448
    error = np.abs(sizes.mean(("chain", "draw")) - expected) / np.sqrt(variance / 4000)
    assert float(error.max()) < 5


@pytest.mark.parametrize("formula", [None, "a * b"])
def test_margins_over_all_variables_are_the_population(formula) -> None:
    """There is nothing else to estimate, but how cells depart from it."""
    known = SAMPLE * 5 + 1
    sizes = {"population_size": int(known.sum()), "draws": 50, "random_seed": 1}
    fit = tc.MixedPoisson(formula).fit(SAMPLE, known_margins=known, progressbar=False, **sizes)
    assert set(fit["posterior"].data_vars) == {"nu", "power", "share", "intensity"}
    assert (fit["posterior_predictive"]["population"] == known).all()


def test_a_category_nobody_sampled_has(religion, religion_sample) -> None:
    """Its total is known, and main effects tell how it is spread; with an interaction
    nothing does."""
    empty = religion_sample.copy()
    empty.loc[{"area": "3"}] = 0
    known = tc.margin(religion, "area")
    fit = tc.LogLinear().fit(
        empty, population_size=2449, known_margins=known, draws=20, random_seed=1
    )
    assert (
        fit["posterior_predictive"]["population"].sel(area="3").sum("religion")
        == known.sel(area="3")
    ).all()
    with pytest.raises(
        EstimationError,
        match=r"known margin of area=3 is \d+, but the model gives all of its cells",
    ):
        tc.LogLinear("~ area * religion").fit(
            empty, population_size=2449, known_margins=known, draws=20
        )


def test_with_structural_zeros(religion, religion_sample) -> None:
    zeros = (religion == 0) & (religion["area"] == "1")
    assert zeros.any()
    known = tc.margin(religion, "religion")
    settings = {"population_size": 2449, "random_seed": 1, "progressbar": False}
    for estimator in (tc.LogLinear(), tc.DirichletLogLinear()):
        fit = estimator.fit(
            religion_sample, known_margins=known, structural_zeros=zeros, **settings
        )
        check_population(
            fit["posterior_predictive"]["population"],
            religion_sample,
            population_size=2449,
            structural_zeros=zeros,
            known_margins=known,
        )


def test_the_order_of_categories_in_a_file_means_nothing(religion, religion_sample) -> None:
    known = tc.margin(religion, "area")
    settings = {"population_size": 2449, "draws": 20, "random_seed": 1}
    one = tc.LogLinear().fit(religion_sample, known_margins=known, **settings)
    other = tc.LogLinear().fit(religion_sample, known_margins=known[::-1], **settings)
    assert one.equals(other)


def test_contradictions_are_refused() -> None:
    def refused(message: str, margin: object, **more: object) -> None:
        with pytest.raises((TableError, ParameterError), match=message):
            tc.LogLinear().fit(SAMPLE, population_size=9, known_margins=margin, **more)

    refused(
        "known_margins sum to 10, but population_size is 9", ROWS + xr.DataArray([1, 0], dims="a")
    )
    refused(
        "known margin 1 of a=x is below the sample's 2",
        xr.DataArray([1, 8], dims="a", coords=ROWS.coords),
    )
    refused("table over some of the sample's variables", ROWS.rename(a="c"))
    refused("categories of 'a' differ", ROWS.assign_coords(a=["x", "z"]))
    refused("one DataArray: several margins", [ROWS, ROWS])
    refused("must be an xarray.DataArray", {"x": 5, "y": 4})
    refused("not be negative", xr.DataArray([-1, 10], dims="a", coords=ROWS.coords))
    refused("whole numbers", xr.DataArray([4.5, 4.5], dims="a", coords=ROWS.coords))
    zeros = xr.DataArray([[False, True], [False, False]], dims=("a", "b"), coords=SAMPLE.coords)
    columns = xr.DataArray([[5, 1], [2, 1]], dims=("a", "b"), coords=SAMPLE.coords)
    refused("known margin 1 of a=x, b=v cannot be filled", columns, structural_zeros=zeros)


@pytest.mark.parametrize(
    "estimator", [tc.ChineseRestaurant(), tc.PolyaUrn(), tc.LinearPool()], ids=repr
)
def test_urns_cannot_keep_them(estimator, religion) -> None:
    with pytest.raises(ParameterError, match=r"cannot keep known margins.*use DirichletLogLinear"):
        estimator.fit(SAMPLE, population_size=9, known_margins=ROWS)
    with pytest.raises(ParameterError, match="cannot keep known margins"):
        tc.study(religion, {"x": estimator}, known_margins="area", samples=1, progressbar=False)


def test_the_contract_names_the_stratum() -> None:
    population = xr.DataArray([[[4, 1], [2, 2]]], dims=("draw", "a", "b"), coords=SAMPLE.coords)
    check_population(population, SAMPLE, population_size=9, known_margins=ROWS)
    with pytest.raises(TableError, match="does not keep the known margin at draw=0, a=x"):
        check_population(
            population,
            SAMPLE,
            population_size=9,
            known_margins=ROWS[::-1].assign_coords(a=["x", "y"]),
        )


def test_a_study_tells_the_estimators(religion) -> None:
    result = tc.study(
        religion,
        {"log-linear": tc.LogLinear()},
        known_margins=["area", "religion"],
        fractions=[0.1],
        samples=2,
        draws=20,
        random_seed=1,
        progressbar=False,
        workers=1,
    )
    np.testing.assert_allclose(result["rmse"], 0, atol=1e-12)


def test_a_calibration_tells_each_fit_the_margins_of_its_own_population(monkeypatch) -> None:
    """With all variables known every draw is the simulated population, and so is its
    risk."""
    measured = []

    def remembered(*arguments):
        measured.append(calibration_measure(*arguments))
        return measured[-1]

    calibration_measure = calibration.measure
    monkeypatch.setattr(calibration, "measure", remembered)
    tc.calibrate(
        tc.DirichletLogLinear(),
        SAMPLE,
        sample_size=20,
        population_size=200,
        known_margins=["b", "a"],
        simulations=3,
        draws=10,
        random_seed=1,
        progressbar=False,
        workers=1,
    )
    truths, drawn = measured[::2], measured[1::2]
    for truth, draws in zip(truths, drawn, strict=True):
        np.testing.assert_array_equal(draws, np.repeat(truth, 10, axis=1))
    assert len({float(truth[0, 0]) for truth in truths}) == 3
