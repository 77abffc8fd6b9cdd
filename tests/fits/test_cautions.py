"""What a summary says besides its numbers: where cells may be impossible."""

import json

import numpy as np
import pytest
import xarray as xr

import taciturn as tc
from taciturn.fits.cautions import cautions_of
from taciturn.fits.parts import known_parts

QUICK = {"draws": 20, "chains": 1, "random_seed": 1, "progressbar": False}
SAID = "nobody was sampled where 6 people and more would be"


def table(counts) -> xr.DataArray:
    counts = np.array(counts)
    coords = {d: [f"{d}{i}" for i in range(n)] for d, n in zip("abc", counts.shape, strict=False)}
    return xr.DataArray(counts, dims=tuple("abc"[: counts.ndim]), coords=coords)


def cautions(counts, **given) -> tuple[str, ...]:
    estimator = tc.DirichletLogLinear() if given else tc.ChineseRestaurant()
    fit = estimator.fit(table(counts), population_size=1_000, **QUICK, **given)
    return cautions_of(fit, known_parts(fit), quoting=True)


def test_an_empty_cell_where_many_would_be():
    """40 of 80 in the row, 20 in the column: 10 where there is nobody."""
    (said,) = cautions([[40, 0], [20, 20]])
    assert f"In 1 of the 4 cells {SAID} were variables independent: a=a0, b=b1, say." in said
    assert "structural zeros" in said


def test_not_of_a_model_that_fits_how_many_cells_are_impossible():
    model = tc.MixedPoisson(mixing="gamma", zero_inflated=True)
    without = tc.MixedPoisson(mixing="gamma")
    pool = tc.LinearPool({"zeros": model, "others": without})
    for own, low, high in ((model, 0, 1), (without, 1, 0), (pool, 0, 0)):
        fit = own.fit(table([[40, 0], [20, 20]]), population_size=1_000, **QUICK)
        found = cautions_of(fit, known_parts(fit), quoting=True)
        assert sum(SAID in caution for caution in found) == low
        assert sum("too high where somebody can be" in caution for caution in found) == high


def test_of_three_variables():
    counts = np.full((2, 2, 2), 20)
    counts[0, 1, 0] = 0
    (said,) = cautions(counts)
    assert "In 1 of the 8 cells nobody was sampled where 7 people" in said
    assert "a=a0, b=b1, c=c0, say" in said


@pytest.mark.parametrize(
    "counts",
    [
        [[40, 1], [20, 20]],  # somebody is there
        [[20, 0], [10, 10]],  # 5 would be, of whom chance alone leaves none in some table
        [[0, 0], [40, 40]],  # a row of which nobody was sampled at all
        [60, 40, 0, 0],  # one variable, of which nothing says which sizes to expect
        [[60], [40], [0], [0]],
    ],
)
def test_other_tables_have_no_caution(counts):
    assert cautions(counts) == ()


def test_not_of_cells_that_are_known_to_be_impossible():
    zeros = table([[False, True], [False, False]])
    assert cautions([[40, 0], [20, 20]], structural_zeros=zeros) == ()


@pytest.mark.parametrize("name", ["known_margins", "strata"])
def test_not_of_cells_that_are_known_to_be_empty(name):
    """Of the table itself, and of a margin in which nobody is."""
    known = {name: table([[500, 0], [250, 250]])}
    assert cautions([[40, 0], [20, 20]], **known) == ()
    counts = np.full((2, 2, 2), 30)
    counts[0, 1] = 0
    assert len(cautions(counts)) == 1
    assert cautions(counts, **{name: table([[400, 0], [300, 300]])}) == ()


def test_long_labels_are_shown_each_by_itself():
    sample = table([[40, 0], [20, 20]]).assign_coords(a=["x" * 60, "y"], b=["p", "q" * 60])
    fit = tc.ChineseRestaurant().fit(sample, population_size=1_000, **QUICK)
    (said,) = cautions_of(fit, known_parts(fit), quoting=True)
    assert f"a={'x' * 60}, b={'q' * 60}, say" in said


def test_a_summary_says_so_and_a_public_page_does_not(tmp_path):
    fit = tc.ChineseRestaurant().fit(table([[40, 0], [20, 20]]), population_size=1_000, **QUICK)
    fit = tc.assess(fit)
    assert SAID in str(tc.summary(fit))
    for public in (False, True):
        path = tmp_path / f"{public}.html"
        tc.report(fit, path, public=public, progressbar=False)
        assert (SAID in path.read_text()) is not public


def test_it_is_said_of_fits_that_must_not_be_relied_on():
    """There it may be why: a log-linear model has nobody in none of these cells."""
    counts = np.full((4, 4), 20)
    counts[0, 0] = 0
    fit = tc.LogLinear().fit(
        table(counts), population_size=1_000, draws=500, random_seed=1, progressbar=False
    )
    said = tc.summary(tc.assess(fit)).sentence
    assert said.startswith("Do not rely on these numbers")
    assert "In 1 of the 16 cells nobody was sampled where 8 people" in said


def test_weights_that_contradict_the_size_of_the_population():
    """One cell has all of it by its weights, so that the others have fewer people than
    were sampled there."""
    sample = xr.DataArray([[5, 3, 1], [0, 2, 7], [4, 0, 1]], dims=("a", "b"), name="count")
    factors = xr.ones_like(sample).astype(float)
    factors[0, 1] = 1000
    said = []
    several = (sample * factors, sample * 17.4, sample * 1.0, sample * 500.0)
    for weights, size in ((each, 400) for each in several):
        fit = tc.MixedPoisson().fit(
            sample,
            population_size=size,
            sampling_weights=weights,
            draws=100,
            chains=1,
            random_seed=1,
        )
        said.append(" ".join(cautions_of(fit, known_parts(fit), quoting=True)))
        assert "weights, which" not in " ".join(cautions_of(fit, known_parts(fit), quoting=False))
    assert "In 6 of the 9 cells more people were sampled" in said[0]
    assert "add up to 3,020 for a population of 400" in said[0]
    assert all("weights, which" not in text for text in said[1:])
    other = "The sampling weights add up to 11,500, and the population has 400 people"
    assert [other in text for text in said] == [False, False, False, True]


@pytest.mark.parametrize("turn", [0, 1])
@pytest.mark.filterwarnings("ignore::taciturn.errors.ComparisonWarning")  # of so few draws
def test_of_the_members_of_a_stack_that_made_draws(turn):
    """A model without weight neither warns nor keeps the others from it."""
    models = {"zeros": tc.MixedPoisson(mixing="gamma", zero_inflated=True), "plug": tc.LogLinear()}
    sample = table([[40, 0], [20, 20]])
    fits = {
        name: model.fit(sample, population_size=1_000, **QUICK) for name, model in models.items()
    }
    stack = tc.fits.stack(fits, random_seed=1)
    shares = [1.0 - turn, float(turn)]
    stack.attrs["stack"] = json.dumps({"weights": dict(zip(models, shares, strict=True))})
    member = stack["posterior"]["member"]
    stack["posterior"]["member"] = xr.full_like(member, turn)
    found = cautions_of(stack, known_parts(stack), quoting=True)
    assert any("zero_inflated=True R1" in said for said in found) == (turn == 0)
    assert any(SAID in said for said in found) == (turn == 1)
    assert any("prefer a Bayesian" in said for said in found) == (turn == 1)
