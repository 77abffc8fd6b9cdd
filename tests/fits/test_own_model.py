"""Draws of a model that is not ours: the how-to page as it stands, and trees that break
the contract in every way."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import taciturn as tc

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "your-own-model.md"
SAMPLE = xr.DataArray([[3, 1], [0, 2]], dims=("a", "b"), coords={"a": ["x", "y"], "b": ["u", "v"]})
SIZE = 20


@pytest.mark.slow
def test_the_page_runs_as_it_stands(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
    assert sum(bool(line.strip()) for line in blocks[0].splitlines()) <= 30
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    population = names["fit"]["posterior_predictive"]["population"]
    assert population.dims == ("chain", "draw", "area", "religion")
    printed = capsys.readouterr().out
    assert "Poisson-lognormal model, by hand" in printed
    assert "mine" in printed
    result = tc.summary(names["fit"])
    assert result.converged, result.diagnostics
    assert (
        result.table.loc["R2", "2.5%"]
        < float(true_risk(names["sample"]))
        < result.table.loc["R2", "97.5%"]
    )
    saved = tc.read_fit(tmp_path / "mine.nc")
    assert str(tc.summary(saved)) == str(result)
    with pytest.raises(
        tc.TaciturnError, match="not an estimator's specification: 'Poisson-lognormal"
    ):
        tc.fits.repeat_fit(saved)


def true_risk(sample: xr.DataArray) -> xr.DataArray:
    return tc.disclosure_risk(tc.load_dataset("area_by_religion"), sample)["R2"]


# ---- trees made by hand


def draws(dtype: Any = np.int64) -> xr.DataArray:
    """Twelve populations that keep the contract: the rest goes to the four cells at
    random."""
    rest = np.random.default_rng(1).multinomial(SIZE - 6, [0.25] * 4, size=(2, 6))
    values = (SAMPLE.values.ravel() + rest).reshape(2, 6, 2, 2).astype(dtype)
    return xr.DataArray(values, dims=("chain", "draw", "a", "b"), coords=SAMPLE.coords)


def tree(**changes: Any) -> xr.DataTree:
    """The smallest fit there is, with some of its variables replaced."""
    of = {"population": draws(), "sample": SAMPLE, "population_size": SIZE, **changes}
    constants = {name: of[name] for name in of if name not in ("population", "sample")}
    return xr.DataTree.from_dict(
        {
            "posterior_predictive": xr.Dataset({"population": of["population"]}),
            "observed_data": xr.Dataset({"count": of["sample"]}),
            "constant_data": xr.Dataset(constants),
        }
    )


def test_the_smallest_fit_is_assessed():
    assessed = tc.assess(tree())
    expected = tc.disclosure_risk(draws(), SAMPLE)
    np.testing.assert_array_equal(assessed["risk"]["R2"].values, expected["R2"].values)
    assert tc.summary(tree()).converged


SAME: dict[str, dict[str, Any]] = {
    "int32": {"population": draws(np.int32)},
    "uint8": {"population": draws(np.uint8)},
    "transposed": {"population": draws().transpose("b", "draw", "a", "chain")},
    "dask by draw": {"population": draws().chunk({"draw": 2})},
    "dask by category": {"population": draws().chunk({"a": 1})},
    "numbered draws": {"population": draws().assign_coords(chain=[3, 4], draw=np.arange(6) * 2)},
    "sample of floats": {"sample": SAMPLE.astype(float)},
    "sample int16": {"sample": SAMPLE.astype(np.int16)},
    "sample in dask": {"sample": SAMPLE.chunk()},
    "sample transposed": {"sample": SAMPLE.T},
    "size as float": {"population_size": float(SIZE)},
    "size int16": {"population_size": np.int16(SIZE)},
    "size in dask": {"population_size": xr.DataArray(SIZE).chunk()},
    "no zeros": {"structural_zeros": xr.zeros_like(SAMPLE, dtype=bool)},
    "zeros as numbers": {"structural_zeros": xr.zeros_like(SAMPLE, dtype=np.int8).T},
}


@pytest.mark.parametrize("changes", SAME.values(), ids=SAME)
def test_what_means_the_same_gives_the_same(changes, tmp_path):
    expected = tc.assess(tree())["risk"]
    fit = tc.assess(tree(**changes))
    for name in ("R1", "R2", "tau1", "tau2"):
        np.testing.assert_allclose(fit["risk"][name].values, expected[name].values, rtol=1e-12)
    assert str(tc.summary(fit)).splitlines()[-1] == str(tc.summary(tree())).splitlines()[-1]
    tc.save_fit(fit, tmp_path / "fit.nc")
    np.testing.assert_allclose(
        tc.read_fit(tmp_path / "fit.nc")["risk"]["R2"].values, expected["R2"].values
    )


def test_what_the_sampler_remarks_is_kept(tmp_path):
    """PyMC gives a message to each divergence, and NaN to other draws."""
    stats = xr.Dataset(
        {
            "diverging": (("chain", "draw"), np.arange(12).reshape(2, 6) == 7),
            "divergence_message": (("chain", "draw"), np.full((2, 6), np.nan, dtype=object)),
        }
    )
    stats["divergence_message"][1, 1] = "Energy change in leapfrog step is too large"
    fit = tree().assign({"sample_stats": xr.DataTree(stats)})
    tc.save_fit(fit, tmp_path / "fit.nc")
    saved = tc.read_fit(tmp_path / "fit.nc")
    assert saved["sample_stats"]["divergence_message"].values[1, 1] == (
        "Energy change in leapfrog step is too large"
    )
    assert str(tc.summary(saved)) == str(tc.summary(fit))
    fit["sample_stats"]["diverging"] = stats["divergence_message"]
    with pytest.raises(
        tc.TaciturnError, match="'diverging' of the group 'sample_stats' holds object"
    ):
        tc.save_fit(fit, tmp_path / "other.nc")
    assert not (tmp_path / "other.nc").exists()


def test_labels_may_be_left_out_of_both():
    bare = tree(population=draws().drop_vars(["a", "b"]), sample=SAMPLE.drop_vars(["a", "b"]))
    np.testing.assert_array_equal(
        tc.assess(bare)["risk"]["R2"].values, tc.assess(tree())["risk"]["R2"].values
    )


def with_value(array: xr.DataArray, value: Any, dtype: Any = None) -> xr.DataArray:
    """A copy with one number changed."""
    array = array.astype(dtype or array.dtype).copy(deep=True)
    array[(0,) * (array.ndim - 1) + (1,)] = value
    return array


def moved(array: xr.DataArray, by: int) -> xr.DataArray:
    """A copy in which the first draw moves some individuals from a cell to another, so
    that its sum stays."""
    array = array.copy(deep=True)
    array[0, 0, 1, 1] -= by
    array[0, 0, 0, 0] += by
    return array


OTHER_LABELS = draws().assign_coords(a=["x", "z"])
ZEROS = xr.zeros_like(SAMPLE, dtype=bool)
BROKEN: list[tuple[str, dict[str, Any], str]] = [
    ("float", {"population": draws(float)}, "population draws must be integers, got float64"),
    (
        "NaN",
        {"population": with_value(draws(), np.nan, float)},
        "population draws must be integers, got float64",
    ),
    ("bool", {"population": draws() > 0}, "population draws must be integers, got bool"),
    ("text", {"population": draws().astype(str)}, "population draws must be integers"),
    (
        "negative",
        {"population": with_value(draws(), -1)},
        "below the sample at chain=0, draw=0, a=x, b=v",
    ),
    ("below", {"population": moved(draws(), 20)}, "below the sample at chain=0, draw=0, a=y, b=v"),
    (
        "sum",
        {"population": draws() + 1},
        "does not sum to the population size 20 at chain=0, draw=0",
    ),
    ("size", {"population_size": 21}, "does not sum to the population size 21"),
    (
        "no draw",
        {"population": draws().isel(draw=0)},
        r"no dimension \['draw'\]: they have "
        r"\('chain', 'a', 'b'\)",
    ),
    ("no variable", {"population": draws().isel(b=0)}, r"no dimension \['b'\]"),
    ("margin", {"population": draws().sum("b")}, r"no dimension \['b'\]"),
    (
        "a variable more",
        {"population": draws().expand_dims(c=2)},
        "must be over .*, they are over .*'c'",
    ),
    ("replicate", {"population": draws().expand_dims(replicate=2)}, "must be over .*'replicate'"),
    (
        "other names",
        {"population": draws().rename(a="area")},
        r"no dimension \['a'\]: they "
        r"have .*'area'",
    ),
    (
        "order",
        {"population": draws()[:, :, ::-1]},
        "the categories of 'a' differ between population and sample",
    ),
    (
        "other labels",
        {"population": OTHER_LABELS},
        "the categories of 'a' differ between population and sample",
    ),
    (
        "no labels",
        {"population": draws().drop_vars("a")},
        "the categories of 'a' differ between population and sample",
    ),
    ("more categories", {"population": draws()[:, :, [0, 1, 1]]}, "the categories of 'a' differ"),
    ("no draws", {"population": draws()[:, :0]}, "the fit has no draws"),
    (
        "sample float",
        {"sample": with_value(SAMPLE, 0.5, float)},
        "the sample of the fit: counts must be whole .* b=v",
    ),
    (
        "sample NaN",
        {"sample": with_value(SAMPLE, np.nan, float)},
        "the sample of the fit: counts must not be missing",
    ),
    (
        "sample negative",
        {"sample": with_value(SAMPLE, -1)},
        "the sample of the fit: counts must not be negative",
    ),
    ("sample of draws", {"sample": draws()}, "the sample of the fit must be one table"),
    (
        "size NaN",
        {"population_size": np.nan},
        "population_size must be a whole number from 1 to .*, got nan",
    ),
    (
        "size fraction",
        {"population_size": 20.5},
        "population_size must be a whole number from 1 to .*, got 20.5",
    ),
    (
        "size text",
        {"population_size": "20"},
        "population_size must be a whole number from 1 to .*, got '20'",
    ),
    (
        "sizes",
        {"population_size": ("chain", [20, 20])},
        "population_size of the fit must be one number",
    ),
    (
        "zeros of numbers",
        {"structural_zeros": ZEROS.astype(float)},
        "structural_zeros of the fit must be bool",
    ),
    (
        "zeros elsewhere",
        {"structural_zeros": ZEROS.rename(a="c")},
        r"structural_zeros of the "
        r"fit must be bool over",
    ),
    (
        "zeros filled",
        {"structural_zeros": ~ZEROS},
        "fills a structural zero at chain=0, draw=0, a=x, b=u",
    ),
]


@pytest.mark.parametrize(
    ("changes", "message"), [case[1:] for case in BROKEN], ids=[case[0] for case in BROKEN]
)
@pytest.mark.parametrize("read", [tc.assess, tc.summary], ids=["assess", "summary"])
def test_a_tree_that_breaks_the_contract_is_a_clear_error(read, changes, message):
    with pytest.raises(tc.TaciturnError, match=message):
        read(tree(**changes))


@pytest.mark.parametrize(
    ("group", "name"),
    [
        ("posterior_predictive", "population"),
        ("observed_data", "count"),
        ("constant_data", "population_size"),
    ],
)
def test_what_is_missing_is_named(group, name):
    without_group, without_variable = tree(), tree()
    del without_group[group]
    without_variable[group] = xr.DataTree(without_variable[group].to_dataset().drop_vars(name))
    for fit in (without_group, without_variable):
        with pytest.raises(tc.TaciturnError, match=f"no '{name}' in the group '{group}'"):
            tc.assess(fit)
    with pytest.raises(tc.TaciturnError, match=r"a fit is an xarray\.DataTree, got Dataset"):
        tc.assess(xr.Dataset())


def test_categories_in_another_order_are_put_right_as_the_page_says():
    turned = draws()[:, :, ::-1]
    fit = tree(population=turned.reindex_like(SAMPLE))
    np.testing.assert_array_equal(
        tc.assess(fit)["risk"]["R2"].values, tc.assess(tree())["risk"]["R2"].values
    )


def test_a_tree_without_a_posterior_is_not_said_to_have_plugged_in_parameters():
    text = str(tc.summary(tree()))
    assert "not recorded in the fit" in text
    assert "plugged in" not in text
